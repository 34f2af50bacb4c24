// servecap: a whole plan
// SPDX-License-Identifier: Apache-2.0
//
// A plan is the answer to one question: this model on these GPUs, with these flags, this traffic and
// this price. It holds every number with its basis and where it comes from; formatting it is the work
// of report/ (pages) and io/ (JSON, CSV).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/basis.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/perf/types.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// A default of the engine that was changed so that it starts.
struct Mend {
    std::string flag;   ///< "--max-num-seqs"
    std::string value;  ///< "512"
    std::string avoids; ///< the engine's message without it
    Basis basis = Basis::calibrated; ///< measured where a real refusal says so
};

/// The price that a plan uses.
struct PlanPrice {
    UsdPerHour per_hour{}; ///< whole deployment
    std::string source, url, date, kind;
    Confidence confidence = Confidence::unverified;
    std::optional<UsdPerHour> low, high; ///< range of the rows that were considered, whole deployment
    std::int64_t rows = 0;               ///< rows considered
    bool given = false;                  ///< on the command line
};

/// Download and start before the first token.
struct PlanSetup {
    std::optional<Seconds> download, start;
    std::optional<Usd> usd;
    Basis basis = Basis::assumed;
    std::string source; ///< the row, or how it was estimated
};

/// $/M at one concurrency.
struct PlanCostPoint {
    Requests concurrency{};
    Interval<UsdPerMillionTokens> output; ///< all cost on output tokens
    Interval<UsdPerMillionTokens> input;  ///< split at output_input_price_ratio
    Interval<UsdPerMillionTokens> split_output; ///< the output side of that split
    Interval<UsdPerMillionTokens> total;  ///< input and output tokens counted alike
};

struct PlanCost {
    std::optional<PlanPrice> price; ///< none: no price is known, and no $ figure is given
    std::string missing;            ///< why there is none and what would give one
    double output_input_price_ratio = 0;
    std::string ratio_source;
    PlanSetup setup;
    std::vector<PlanCostPoint> by_concurrency;
};

/// One volume at which self-hosting and the API cost the same.
struct PlanCrossing {
    double million_output_tokens_per_month = 0;
    double million_input_tokens_per_month = 0;
    std::int64_t replicas = 0;
};

enum class Reachable : std::uint8_t { yes, no, unknown };

struct PlanBreakEven {
    std::string name;          ///< what it is compared with
    std::string url, date;
    std::optional<UsdPerMillionTokens> input, cached, output;
    UsdPerMonth self_hosted{}; ///< of one deployment
    std::vector<PlanCrossing> crossings;
    Reachable reachable = Reachable::unknown;
    std::optional<double> utilization_needed; ///< share of the rate the deployment can do
    std::optional<TokensPerSecond> output_needed, output_possible;
    Requests at_concurrency{}; ///< concurrency of output_possible
    Basis basis = Basis::roofline; ///< of output_possible
    std::string reason;
};

/// Where a figure was published.
struct PlanSource {
    std::string what, source, url, date;
};

struct Plan {
    Model const* model = nullptr; ///< outlives the plan
    GpuSet gpus;
    Layout layout;
    std::string layout_reason, layout_source;
    EngineSettings asked;   ///< as given
    EngineSettings planned; ///< with the mends
    Workload workload;
    StartPlan as_asked;     ///< verdict of exactly what was asked
    StartPlan fit;          ///< of what is planned (equal to as_asked where nothing was mended)
    std::optional<StartPlan> blind; ///< the model alone, where measured rows override `fit`
    std::string measured_source, measured_url, measured_date, measured_note; ///< the start-up row behind `fit`
    std::vector<Mend> mended;
    bool for_fix = false;   ///< a flag of the user refuses: speed and cost are for the fix
    std::vector<SpeedPoint> speed;
    PlanCost cost;
    std::vector<PlanBreakEven> break_even;
    std::string command;
    std::vector<std::string> warnings;
    std::vector<PlanSource> sources;
    std::string as_of;

    /// The engine starts as planned.
    [[nodiscard]] bool starts() const noexcept { return fit.starts; }
};

} // namespace servecap
