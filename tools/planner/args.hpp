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

struct Args;

/// An amount of money as typed; settle_money turns all of them into dollars.
struct TypedMoney {
    std::string flag;
    std::string currency; ///< empty: none was written
    std::optional<double> Args::*amount = nullptr;
    bool in_usd = false; ///< the flag says dollars: without a currency of its own it is not in --currency
};

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
    bool json_lines = false; ///< search: every plan, a line each
    std::string output;
    ColorMode color = ColorMode::automatic;

    // predict, cost, breakeven
    std::optional<double> tokens_per_second; ///< typed throughput
    std::optional<double> ratio;             ///< input : output tokens
    std::optional<double> price_ratio;       ///< output : input price
    std::optional<double> utilization;       ///< share of paid time at that rate
    std::optional<double> api_input, api_cached, api_output, api_cache_write;
    std::optional<double> cache_write_share, batch_share, batch_discount;
    std::optional<double> usd_per_month;
    std::optional<double> hours_per_day, days_per_month, starts_per_day;
    std::optional<double> peak_to_mean;
    std::optional<std::int64_t> reserve_replicas;
    std::string against;                     ///< another deployment: "MODEL@GPU" or a plan JSON
    std::optional<double> against_price;     ///< USD an hour of it
    std::optional<double> buy_price, own_months, residual, interest, power_kw, pue, tariff, colo_per_kw_month, maintenance, staff_per_month, network_share;
    std::string currency;
    std::optional<double> currency_rate;
    std::string currency_date;
    std::vector<TypedMoney> money;
    std::vector<std::string> money_notes;    ///< amounts that were converted, and at which rate

    // how the deployment is paid
    bool spot = false;
    std::optional<double> interruptions_per_day, restart_minutes, wait_minutes, lost_minutes;
    std::optional<double> commit_months, upfront, on_demand;
    std::optional<std::int64_t> min_gpus;
    // set-up and sessions
    std::optional<double> session_hours, download_gbs, read_gbs, compile_seconds, setup_minutes;
    std::int64_t failed_starts = 0;
    std::string loader;
    bool downloaded = false;

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
