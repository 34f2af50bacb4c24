// servecap: the speed of a deployment at every load asked for
// SPDX-License-Identifier: Apache-2.0
//
// The entry to perf/: a deployment is made ready once (evaluate.hpp), then asked at every concurrency, and at
// a request rate (queue.hpp) where one is given. What the numbers are made of: step.hpp.

#pragma once

#include <vector>

#include <servecap/perf/evaluate.hpp>
#include <servecap/perf/queue.hpp>
#include <servecap/perf/types.hpp>

namespace servecap {

/// Speed at every concurrency of the workload; with a request rate one more point, at that rate, comes first
/// (alone, when no concurrencies are listed).
inline std::vector<SpeedPoint> predict_speed(SpeedRequest const& r) {
    PreparedDeployment const d{r};
    std::vector<SpeedPoint> points;
    if (r.workload.request_rate) {
        points.push_back(speed_at_rate(d, r, *r.workload.request_rate));
        if (r.workload.concurrency.empty()) return points;
    }
    for (Requests const users : concurrencies_of(r.workload, d.slots() * d.replicas())) points.push_back(speed_at(d, r, users));
    return points;
}

} // namespace servecap
