// planner: what was typed
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <servecap/core/result.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/perf/types.hpp>

namespace planner {

enum class Command { plan, fit, predict, cost, breakeven, search, table, compare, doctor, calibrate, validate, import, list, explain, completion };
enum class OutputFormat { text, json, csv, md, svg, prometheus };
enum class ColorMode { automatic, always, never };

/// Everything that a command line can say; commands read what concerns them.
struct Args {
    Command command = Command::plan;
    std::vector<std::string> positional; ///< of the sub-command

    std::string model;
    std::string gpu;
    std::string layout;
    std::optional<std::int64_t> tp, pp, dp, ep, dcp, replicas;
    servecap::EngineSettings settings;
    std::vector<std::string> given; ///< engine flags that the user gave, as typed: they are never changed
    servecap::Workload workload;
    std::optional<double> price, price_gpu_hour;
    std::string price_source, price_kind;
    std::string api;
    std::string as_of;
    std::string data_dir;
    std::vector<std::string> benchmarks, startups, prices, apis, setups;
    std::string assume;
    bool force = false;
    std::int64_t jobs = 1;
    bool explain = false;
    OutputFormat format = OutputFormat::text;
    std::string output;
    ColorMode color = ColorMode::automatic;

    // predict, cost, breakeven
    std::optional<double> tokens_per_second; ///< typed throughput
    std::optional<double> ratio;             ///< input : output tokens
    std::optional<double> price_ratio;       ///< output : input price
    std::optional<double> utilization;       ///< share of paid time at that rate
    std::optional<double> api_input, api_cached, api_output;
    std::optional<double> usd_per_month;
    std::optional<double> hours_per_day, days_per_month, starts_per_day;
    std::optional<double> peak_to_mean;
    std::optional<std::int64_t> reserve_replicas;
    std::string against;                     ///< another deployment: "MODEL@GPU" or a plan JSON
    std::optional<double> buy_price, own_months, residual, interest, power_kw, pue, tariff, colo_per_kw_month, maintenance, staff_per_month;
    std::string currency;
    std::optional<double> currency_rate;
    std::string currency_date;
    std::optional<double> volume;            ///< million output tokens a month

    // search, table
    std::string models, gpus, include, sort, columns;
    std::optional<double> budget_per_hour, max_gpus;
    std::string objective;

    // list, validate, doctor, import, calibrate
    bool check = false;
    bool given_pool = false;
    bool leave_rows = false; ///< validate benchmarks: leave the row and its twins out, not its group
    bool all_rows = false;   ///< validate benchmarks: speculative and flagged rows too
    std::string by, rows, learn, kind, out_file, mm_encoder_mode;
    std::string emit;  ///< compose or k8s: a deployment file instead of the page
    std::string image; ///< container image of that file
    std::string import_source, import_url, import_date;
    bool engine_given = false, isl_given = false, osl_given = false;
};

/// One option, as completions and the manual show it.
struct OptionHelp {
    std::vector<std::string> names; ///< "--gpu", "-g"
    std::string value;              ///< "N", "text|json"; empty for a switch
    std::string help, group;
};

/// One command with its options; the one without a name is the root command.
struct CommandHelp {
    std::string name, text;
    std::vector<OptionHelp> options;
    std::vector<std::string> examples;
};
std::vector<CommandHelp> describe_commands();

/// Reads the command line. An Error is wrong use; `help` holds text to print on stdout with exit 0.
struct ParsedArgs {
    Args args;
    std::string help;
};
servecap::Result<ParsedArgs> parse_args(int argc, char const* const* argv);

} // namespace planner
