// servecap: charts of a plan
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/cost/break_even.hpp>
#include <servecap/cost/tokens.hpp>
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

/// One line of a cost chart: a deployment by users at once.
struct CostLine {
    std::string name; ///< of the legend; empty where there is one line only
    std::vector<CostPoint> points;
};

/// $ a million output tokens against users at once, with the 80 % band, both axes logarithmic.
inline Chart cost_chart(std::string title, std::span<CostLine const> lines, std::string footnote) {
    Chart c;
    c.title = std::move(title);
    c.subtitle = "the whole cost on output tokens, input counted as free; band: 80 % interval of the speed";
    c.x_label = "users at once";
    c.y_label = "USD per million output tokens";
    c.x_log = c.y_log = true;
    int colour = 0;
    for (CostLine const& line : lines) {
        ChartSeries s{.name = line.name, .points = {}, .line = true, .band = true, .markers = true, .colour = colour++};
        for (CostPoint const& p : line.points)
            s.points.push_back({static_cast<double>(p.concurrency.value()), p.output_alone.value.value(), p.output_alone.low.value(),
                                p.output_alone.high.value(), lines.size() == 1 ? sig3(p.output_alone.value.value()) : std::string{}});
        c.series.push_back(std::move(s));
    }
    c.footnote = std::move(footnote);
    return c;
}

/// What each way costs a month against the volume, with the volumes at which the cheapest of the first two changes.
/// Whole replicas are steps. `crossings` are of the first way against the second.
inline Chart monthly_cost_chart(std::string title, std::span<Supply const> ways, std::span<Crossing const> crossings,
                                double most_million_output, double input_per_output, std::string footnote) {
    Chart c;
    c.title = std::move(title);
    c.subtitle = fmt::format("cost of a month over the volume, whole replicas; each output token comes with {:g} input {}", input_per_output,
                             input_per_output == 1 ? "token" : "tokens");
    c.x_label = "output tokens a month";
    c.y_label = "USD a month";
    int colour = 0;
    for (Supply const& way : ways) {
        ChartSeries s{.name = way.name, .points = {}, .line = true, .band = false, .markers = false, .colour = colour++};
        auto const add = [&](double x, double y) { s.points.push_back({x * 1e6, y, y, y, {}}); };
        double from = 0;
        for (int step = 0; step < 400 && from < most_million_output; ++step) {
            double const to = std::min(detail::piece_end(way, from), most_million_output);
            double const fixed = way.per_replica.value() * static_cast<double>(replicas_for(way, (from + to) / 2));
            add(from, fixed + way.per_million_output.value() * from);
            add(to, fixed + way.per_million_output.value() * to);
            from = to;
        }
        c.series.push_back(std::move(s));
    }
    if (ways.size() > 1)
        for (Crossing const& x : crossings) {
            if (x.million_output > most_million_output) break;
            double const y = monthly_cost(ways[1], x.million_output).value();
            c.marks.push_back({x.million_output * 1e6, y,
                               fmt::format("{} cheaper from {}", ways[x.cheaper_above ? 0 : 1].name, large_text(x.million_output * 1e6))});
        }
    c.footnote = std::move(footnote);
    return c;
}

} // namespace servecap
