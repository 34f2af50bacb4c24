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
#include <servecap/cost/break_even.hpp>
#include <servecap/cost/price.hpp>
#include <servecap/cost/setup.hpp>
#include <servecap/cost/tokens.hpp>
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

struct PlanCost {
    std::optional<PriceChoice> price; ///< none: no price is known, and no $ figure is given
    std::string missing;              ///< why there is none and what would give one
    double output_input_price_ratio = kDefaultOutputInputRatio;
    std::string ratio_source;
    SetupTime setup;
    std::optional<Interval<Usd>> setup_usd;
    std::vector<CostPoint> by_concurrency; ///< one for each entry of Plan::speed
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
    std::vector<BreakEven> break_even;
    std::string break_even_missing; ///< why there is no comparison
    std::string command;
    std::vector<std::string> warnings;
    std::vector<PlanSource> sources;
    std::string as_of;

    /// The engine starts as planned.
    [[nodiscard]] bool starts() const noexcept { return fit.starts; }
};

} // namespace servecap
