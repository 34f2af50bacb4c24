// Targets of the benchmarks: medians collected while google benchmark prints, then judged side by side.
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

/// Prints as usual and keeps the median real time of every benchmark, in seconds.
class Medians : public benchmark::ConsoleReporter {
public:
    Medians() : ConsoleReporter{OO_None} {}

    void ReportRuns(std::vector<Run> const& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (Run const& run : runs) {
            if (run.error_occurred) failed_ = true;
            if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "median")
                medians_[run.run_name.function_name] = run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
        }
    }

    [[nodiscard]] bool has(std::string const& name) const { return medians_.contains(name); }
    [[nodiscard]] double operator[](std::string const& name) const { return medians_.at(name); }

    /// Some benchmark could not be run.
    [[nodiscard]] bool failed() const { return failed_; }

private:
    bool failed_ = false;
    std::map<std::string, double> medians_;
};

/// Lines of the form "met: what, is, at most"; counts those that are missed.
class Targets {
public:
    void at_most(char const* what, double is, double most, char const* unit) {
        bool const met = is <= most;
        std::printf("%-6s %-64s %8.2f %s, at most %.2f\n", met ? "met" : "MISSED", what, is, unit, most);
        if (!met) ++missed_;
    }
    [[nodiscard]] int missed() const { return missed_; }

private:
    int missed_ = 0;
};

} // namespace bench
