// planner: capacity and cost planning for serving large language models
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <exception>

#include "args.hpp"
#include "commands.hpp"
#include "output.hpp"

namespace {

servecap::Result<int> run(planner::Args const& args) {
    using planner::Command;
    switch (args.command) {
    case Command::plan: return planner::run_plan(args);
    case Command::fit: return planner::run_fit(args);
    case Command::predict: return planner::run_predict(args);
    case Command::cost: return planner::run_cost(args);
    case Command::breakeven: return planner::run_breakeven(args);
    case Command::explain: return planner::run_explain(args);
    case Command::list: return planner::run_list(args);
    case Command::validate: return planner::run_validate(args);
    case Command::calibrate: return planner::run_calibrate(args);
    case Command::doctor: return planner::run_doctor(args);
    case Command::import: return planner::run_import(args);
    case Command::search: return planner::run_search(args);
    case Command::table: return planner::run_table(args);
    case Command::compare: return planner::run_compare(args);
    case Command::completion: return planner::run_completion(args);
    }
    return planner::kFault;
}

} // namespace

int main(int argc, char** argv) {
    try {
        auto parsed = planner::parse_args(argc, argv);
        if (!parsed) {
            planner::complain(parsed.error());
            return planner::kBadInput;
        }
        if (!parsed->help.empty()) {
            std::fputs(parsed->help.c_str(), stdout);
            return planner::kAnswered;
        }
        if (auto settled = planner::settle_money(parsed->args); !settled) {
            planner::complain(settled.error());
            return planner::kBadInput;
        }
        auto status = run(parsed->args);
        if (!status) {
            planner::complain(status.error());
            return planner::kBadInput;
        }
        return *status;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "planner: fault of the program: %s\n", e.what());
        return planner::kFault;
    }
}
