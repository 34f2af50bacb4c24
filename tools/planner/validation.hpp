// planner: scores as tables and JSON
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <servecap/engine/validate_startups.hpp>
#include <servecap/report/table.hpp>

#include "args.hpp"

namespace planner {

servecap::Result<int> validate_startup_rows(Args const& args);
servecap::Result<int> validate_benchmark_rows(Args const& args);

/// Three decimals are enough for a percentage.
inline double rounded(double x) { return std::round(x * 1000) / 1000; }

inline nlohmann::ordered_json score_json(servecap::QuantityScore const& s) {
    nlohmann::ordered_json j;
    j["n"] = s.n;
    if (s.n == 0) return j;
    j["median_abs_pct_error"] = rounded(s.median_abs_pct_error);
    j["p90_abs_pct_error"] = rounded(s.p90_abs_pct_error);
    j["within_1pct"] = rounded(s.within_1pct);
    j["within_3pct"] = rounded(s.within_3pct);
    j["within_5pct"] = rounded(s.within_5pct);
    j["within_10pct"] = rounded(s.within_10pct);
    j["within_15pct"] = rounded(s.within_15pct);
    j["within_20pct"] = rounded(s.within_20pct);
    j["bias_pct"] = rounded(s.bias_pct);
    j["interval_coverage"] = s.interval_coverage ? nlohmann::ordered_json(rounded(*s.interval_coverage)) : nlohmann::ordered_json(nullptr);
    return j;
}

inline void score_columns(servecap::TextTable& t, std::string first) {
    t.column(std::move(first), servecap::TextTable::Align::left).column("n").column("median %").column("p90 %").column("within 1 %").column("10 %").column("20 %")
        .column("bias %").column("interval covers %");
}

inline void score_row(servecap::TextTable& t, std::string name, servecap::QuantityScore const& s) {
    if (s.n == 0) return;
    auto const n = [](double x) { return fmt::format("{:.1f}", x); };
    t.row({std::move(name), std::to_string(s.n), fmt::format("{:.2f}", s.median_abs_pct_error), n(s.p90_abs_pct_error), n(s.within_1pct), n(s.within_10pct), n(s.within_20pct),
           fmt::format("{:+.1f}", s.bias_pct), s.interval_coverage ? n(*s.interval_coverage) : ""});
}

/// "; refused: 12 unknown model, 3 unusable".
inline std::string refused_text(std::map<std::string, std::int64_t> const& refused) {
    std::string s;
    for (auto const& [reason, n] : refused) s += fmt::format("{} {} {}", s.empty() ? "; refused:" : ",", n, reason);
    return s;
}

} // namespace planner
