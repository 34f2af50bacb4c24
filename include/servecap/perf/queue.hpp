// servecap: requests that arrive at a rate: waiting, percentiles, saturation
// SPDX-License-Identifier: Apache-2.0
//
// An engine that batches serves everybody at once and slows down with the number it serves. With arrivals
// at random (Poisson) of rate r a replica the running requests n solve  r = n / (ttft(n) + osl tpot(n)).
// Two places to wait:
//   prefill   one prompt after the other, M/G/1:  W = r S^2 (1 + v) / (2 (1 - r S)), S = prefill of a prompt,
//             v = squared variation of its length (0.01: lengths of 0.8 to 1 of nominal)
//   slots     M/G/c with c = requests that run at once, Allen-Cunneen:  W = C(c, a) / (c / R - r) (1 + v) / 2,
//             C = Erlang's probability of waiting, a = r R, R = residence of a running request at full batch
// A wait is taken as exponential beyond its probability: P(W > t) = p exp(-p t / W). Saturated: r at or above
// the rate at which full slots leave. Sources: Erlang 1917; Pollaczek-Khinchine; Allen and Cunneen 1978.

#pragma once

#include <algorithm>
#include <cmath>

#include <servecap/perf/evaluate.hpp>

namespace servecap {

/// Probability that an arrival waits in M/M/c with offered load `a` < `c` (Erlang C), by the stable recursion.
inline double erlang_c(double c, double a) noexcept {
    if (a <= 0) return 0;
    if (a >= c) return 1;
    double b = 1; // Erlang B with 0 servers
    auto const servers = static_cast<long>(std::min(c, 100000.0));
    for (long k = 1; k <= servers; ++k) b = a * b / (static_cast<double>(k) + a * b);
    double const rho = a / static_cast<double>(servers);
    return b / (1 - rho * (1 - b));
}

/// The state of one replica under random arrivals.
struct OpenLoop {
    double running = 0;  ///< mean running requests
    double capacity = 0; ///< requests a second at which it saturates
    double wait = 0;     ///< mean seconds before the own prefill
    double wait_probability = 0;
    double ttft = 0, ttft_p90 = 0, ttft_p99 = 0;
    bool saturated = false;
    ReplicaSpeed speed; ///< at the running requests
};

/// Requests a second that leave when `n` requests run.
inline double leaving_rate(ReplicaSpeed const& s, double osl) noexcept { return s.output / closed_loop_share(s.users) / osl; }

/// Solves one replica for arrivals of `rate` requests a second.
inline OpenLoop open_loop(PreparedDeployment const& d, double rate, double isl, double osl) noexcept {
    OpenLoop o;
    double const most = std::min(d.slots(), 4096.0);
    // Capacity: the best rate over running requests; it rises to the slots unless the step grows faster than the batch.
    double best_n = 1;
    for (double n = 1; n <= most; n = n < most ? std::min(most, n * 1.25) : most + 1) {
        double const x = leaving_rate(d.at(n), osl);
        if (x > o.capacity) {
            o.capacity = x;
            best_n = n;
        }
    }
    o.saturated = rate >= 0.995 * o.capacity;
    double low = 1e-3, high = best_n;
    if (!o.saturated) {
        for (int i = 0; i < 40; ++i) {
            double const mid = std::sqrt(low * high);
            ReplicaSpeed const s = d.at(std::max(1.0, mid));
            double const x = mid >= 1 ? leaving_rate(s, osl) : mid * leaving_rate(s, osl); // below one: idle part of the time
            (x < rate ? low : high) = mid;
        }
    }
    o.running = o.saturated ? most : high;
    o.speed = d.at(std::max(1.0, o.running));
    constexpr double variation = 0.01;
    PrefillTimes const p = prefill_times(d.physics(), std::max(1.0, isl), d.physics().factor);
    double const service = isl * p.a_token() + p.launch;
    double const load = std::min(0.995, rate * service);
    double const prefill_wait = load * service * (1 + variation) / (2 * (1 - load));
    double slot_wait = 0, slot_probability = 0;
    ReplicaSpeed const full = d.at(most);
    double const residence = most / std::max(1e-12, leaving_rate(full, osl));
    double const offered = rate * residence;
    if (!o.saturated && offered < most) {
        slot_probability = erlang_c(most, offered);
        slot_wait = slot_probability / (most / residence - rate) * (1 + variation) / 2;
    }
    o.wait = prefill_wait + slot_wait;
    o.wait_probability = std::clamp(load + slot_probability - load * slot_probability, 0.0, 1.0);
    // The closed-loop TTFT already holds a share of waiting for others; alone, a request waits for none.
    double const own = std::min(o.speed.ttft, d.at(1).ttft + (o.speed.ttft - d.at(1).ttft) * 0.5);
    o.ttft = own + o.wait;
    auto const quantile = [&](double q) {
        if (o.wait_probability <= 1 - q || o.wait <= 0) return own;
        return own + o.wait / o.wait_probability * std::log(o.wait_probability / (1 - q));
    };
    o.ttft_p90 = quantile(0.90);
    o.ttft_p99 = quantile(0.99);
    return o;
}

/// The point at a request rate: mean, p90 and p99 TTFT, or saturated with what it can do at most.
inline SpeedPoint speed_at_rate(PreparedDeployment const& d, SpeedRequest const& r, RequestsPerSecond rate) {
    double const replicas = d.replicas();
    double const isl = static_cast<double>(r.workload.isl.value()) * (1 - std::clamp(r.workload.cache_hit, 0.0, 1.0));
    double const osl = std::max(2.0, static_cast<double>(r.workload.osl.value()));
    OpenLoop const o = open_loop(d, rate.value() / replicas, isl, osl);
    double const users = std::max(1.0, o.running * replicas);
    SpeedPoint p = speed_at(d, r, Requests{static_cast<std::int64_t>(std::llround(users))});
    if (p.basis == Basis::measured) p.basis = Basis::interpolated; // the rows are of a closed loop
    p.saturated = o.saturated;
    double const sd_ttft = o.speed.ttft_sd, sd_out = o.speed.output_sd;
    double const served = o.saturated ? o.capacity * replicas : rate.value();
    double const output = served * osl;
    // Below saturation the output is what arrives: it is known, not predicted.
    double const width = o.saturated ? sd_out : 0.0;
    double const ratio = static_cast<double>(r.workload.isl.value()) / osl;
    p.output = detail::log_interval<TokensPerSecond>(output, width);
    p.input = detail::log_interval<TokensPerSecond>(output * ratio, width);
    p.total = detail::log_interval<TokensPerSecond>(output * (1 + ratio), width);
    p.per_gpu = detail::log_interval<TokensPerSecond>(output / std::max(1, r.layout.gpus()), width);
    if (!o.saturated) {
        // Near saturation a small error of the capacity is a large one of the wait.
        double const load = std::min(0.99, rate.value() / replicas / o.capacity);
        double const waits = o.wait / std::max(1e-9, o.ttft);
        double const sd = std::sqrt(sd_ttft * sd_ttft + std::pow(waits * sd_out / (1 - load), 2));
        p.ttft = detail::log_interval<Seconds>(o.ttft, std::min(sd, 2.0));
        p.ttft_p90 = Seconds{o.ttft_p90};
        p.ttft_p99 = Seconds{o.ttft_p99};
    }
    return p;
}

} // namespace servecap
