// servecap: charts of a plan
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include <fmt/format.h>

#include <servecap/plan/plan.hpp>
#include <servecap/report/page.hpp>
#include <servecap/report/svg.hpp>

namespace servecap {

/// Output tok/s of the deployment against tok/s of one user, with the 80 % band; measured points apart.
inline Chart speed_chart(Plan const& p) {
    Chart c;
    c.title = plan_headline(p);
    c.subtitle = "throughput against speed of one user; numbers beside points are users at once; band: 80 % interval";
    c.x_label = "output tok/s of one user while it decodes (1 / TPOT)";
    c.y_label = "output tok/s, whole deployment";
    ChartSeries predicted{.name = "predicted", .points = {}, .line = true, .band = true, .markers = true, .colour = 0};
    ChartSeries measured{.name = "measured", .points = {}, .line = false, .band = false, .markers = true, .colour = 1};
    for (SpeedPoint const& s : p.speed) {
        ChartPoint const point{s.per_user.value.value(), s.output.value.value(), s.output.low.value(), s.output.high.value(),
                               grouped(s.concurrency.value())};
        predicted.points.push_back(point);
        if (s.basis == Basis::measured) measured.points.push_back({point.x, point.y, point.y, point.y, {}});
    }
    for (ChartPoint const& m : measured.points)
        for (ChartPoint& x : predicted.points)
            if (x.x == m.x && x.y == m.y) x.label += " (measured)";
    c.series.push_back(std::move(predicted));
    if (!measured.points.empty()) c.series.push_back(std::move(measured));
    std::string sources;
    for (PlanSource const& s : p.sources)
        if (s.what == "speed" && sources.size() < 90) sources += (sources.empty() ? "Rows: " : "; ") + s.source + (s.date.empty() ? "" : " " + s.date);
    c.footnote = sources;
    return c;
}

} // namespace servecap
