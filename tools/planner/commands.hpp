// planner: the commands
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <servecap/core/result.hpp>

#include "args.hpp"

namespace planner {

/// Turns every amount that was typed into dollars: those with a currency of their own, those of --currency. Notes in
/// `money_notes`. A mistake: amounts with and without a currency side by side, a currency without a rate.
servecap::Result<void> settle_money(Args& args);

/// Each command answers with an exit status (kAnswered or kNo), or with the user's mistake.
servecap::Result<int> run_plan(Args const& args);
servecap::Result<int> run_fit(Args const& args);
servecap::Result<int> run_predict(Args const& args);
servecap::Result<int> run_cost(Args const& args);
servecap::Result<int> run_breakeven(Args const& args);
servecap::Result<int> run_explain(Args const& args);
servecap::Result<int> run_list(Args const& args);
servecap::Result<int> run_validate(Args const& args);
servecap::Result<int> run_calibrate(Args const& args);
servecap::Result<int> run_doctor(Args const& args);
servecap::Result<int> run_import(Args const& args);
servecap::Result<int> run_search(Args const& args);
servecap::Result<int> run_table(Args const& args);
servecap::Result<int> run_compare(Args const& args);
servecap::Result<int> run_completion(Args const& args);

} // namespace planner
