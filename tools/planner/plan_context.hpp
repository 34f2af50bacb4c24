// planner: a plan request from a command line, with the rows that it needs
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>

#include <servecap/plan/plan.hpp>

#include "args.hpp"
#include "context.hpp"

namespace planner {

/// The layout that --layout or --tp, --pp... ask for, if any.
servecap::Result<std::optional<servecap::Layout>> asked_layout(Args const& args);

/// A plan with the model that it refers to.
struct OwnedPlan {
    std::unique_ptr<servecap::Model> model;
    servecap::Plan plan;
};

/// What of a plan a command needs.
enum class Scope {
    fit,   ///< memory and the verdict of exactly what is asked
    speed, ///< with mends and speed
    whole, ///< with money too
};

/// The plan that the command line asks for. `compare_api`: with the break-even against an API.
servecap::Result<OwnedPlan> plan_for(Args const& args, Context const& context, Scope scope, bool compare_api = true);

} // namespace planner
