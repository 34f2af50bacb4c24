// planner: a plan request from a command line, with the rows that it needs
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <servecap/plan/make.hpp>

#include "args.hpp"
#include "context.hpp"

namespace planner {

/// The layout that --layout or --tp, --pp... ask for, if any.
servecap::Result<std::optional<servecap::Layout>> asked_layout(Args const& args);

/// What of a plan a command needs.
enum class Scope {
    fit,   ///< memory and the verdict of exactly what is asked
    speed, ///< with mends and speed
    whole, ///< with money too
};

/// Everything that a PlanRequest refers to, kept alive together.
struct Inputs {
    servecap::Model model;
    servecap::GpuSet gpus;
    std::vector<std::string> names;
    std::vector<servecap::BenchmarkRow> benchmarks;
    std::vector<servecap::StartupRow> startups;
    std::vector<servecap::SetupRow> setups;
    std::vector<servecap::GpuPrice> gpu_prices;
    std::vector<servecap::ApiPrice> api_prices;
    std::vector<servecap::Coefficient> coefficients;

    /// Reads the model and the rows; of `gpu_id` the prices (all GPUs where it is empty).
    std::optional<servecap::Error> read(Args const& args, Context const& context, Scope scope, std::string const& gpu_id);
    [[nodiscard]] servecap::PlanRequest request(Args const& args, Context const& context, bool money, bool compare_api) const;
};

/// Why a command line that names no model, or no GPUs, cannot be answered.
std::optional<servecap::Error> model_missing(Args const& args);
std::optional<servecap::Error> gpu_missing(Args const& args);

/// A plan with the model that it refers to.
struct OwnedPlan {
    std::unique_ptr<servecap::Model> model;
    servecap::Plan plan;
};

/// The plan that the command line asks for. `compare_api`: with the break-even against an API.
servecap::Result<OwnedPlan> plan_for(Args const& args, Context const& context, Scope scope, bool compare_api = true);

} // namespace planner
