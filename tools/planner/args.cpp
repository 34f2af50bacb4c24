// planner: the command line, read with CLI11
// SPDX-License-Identifier: Apache-2.0

#include "args.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>

#include <CLI/CLI.hpp>

#include <servecap/core/text.hpp>
#include <servecap/cost/money.hpp>
#include <servecap/version.hpp>

namespace planner {

using servecap::ErrorCode;
using servecap::Result;

namespace {

struct SubCommand {
    Command command;
    char const* name;
    char const* text;
};
constexpr SubCommand kCommands[] = {
    {Command::plan, "plan", "the whole plan: fit, speed, cost, break-even (also without a command name)"},
    {Command::fit, "fit", "memory and start-up verdict of exactly what is asked"},
    {Command::predict, "predict", "speed alone, over a list of concurrencies"},
    {Command::cost, "cost", "$/M tokens from a throughput (typed, measured or predicted) and a price"},
    {Command::breakeven, "breakeven", "self-hosting against an API or another deployment; rent against buy"},
    {Command::search, "search", "every layout on the given GPUs (or every GPU with --gpu any)"},
    {Command::table, "table", "many plans at once, as one table for documents"},
    {Command::compare, "compare", "two plans (JSON files): what differs and why"},
    {Command::doctor, "doctor", "a start-up log against the prediction"},
    {Command::calibrate, "calibrate", "fit the coefficients to measured rows; errors by leave-one-group-out"},
    {Command::validate, "validate", "score predictions: validate benchmarks [F.csv], validate startups [F.csv]"},
    {Command::import, "import", "somebody's results into our CSVs"},
    {Command::list, "list", "what the catalogue knows: models, gpus, prices, apis, benchmarks, startups, setups, engines"},
    {Command::explain, "explain", "every number of a plan as formula, inputs, source"},
    {Command::completion, "completion", "completion script of a shell: bash, zsh or fish; or the manual page: man"},
};

/// Lines to try; a test runs each.
std::vector<std::string> examples_of(Command c, bool root) {
    if (root)
        return {"planner --model kimi-k3.1 --gpu b300x8", "planner fit --model llama-3.1-8b --gpu l4 --max-model-len 16384",
                "planner --model deepseek-v4.1-flash-1017 --gpu b300x8 --layout tp4x2 --price 49.61 --concurrency 1,64",
                "planner breakeven --usd-per-month 41457 --api-input 2 --api-output 10 --ratio 5", "planner list gpus"};
    switch (c) {
    case Command::plan:
        return {"planner plan --model qwen3-32b --gpu h100x2 --isl 4k --osl 500", "planner plan --model gpt-oss-120b --gpu h100x2 --format json",
                "planner plan --model gpt-oss-120b --gpu h100x2 --emit k8s"};
    case Command::fit: return {"planner fit --model llama-3.1-8b --gpu l4 --max-model-len 16384", "planner fit --model qwen3-32b --gpu rtx-4090x2 --kv-cache-dtype fp8"};
    case Command::predict: return {"planner predict --model qwen3-32b --gpu h200 --concurrency 1,16,64", "planner predict --model qwen3-32b --gpu h200 --request-rate 2"};
    case Command::cost: return {"planner cost --tok-s 2073 --price 49.61 --ratio 1", "planner cost --model qwen3-32b --gpu h200 --concurrency 32"};
    case Command::breakeven: return {"planner breakeven --usd-per-month 41457 --api-input 2 --api-output 10 --ratio 5", "planner breakeven --model kimi-k3.1 --gpu b300x8"};
    case Command::search: return {"planner search --model qwen3-32b --gpu h100x8 --slo-tpot 30", "planner search --model gpt-oss-120b --gpu any --budget 10"};
    case Command::table: return {"planner table --models qwen3-32b,gpt-oss-120b --gpus h100x2,h200x2 --concurrency 1,32"};
    case Command::doctor: return {"planner doctor vllm.log --gpu h200x2", "planner doctor vllm.log --learn my-starts.csv"};
    case Command::import: return {"planner import results/*.json --gpu h100x4 --speculative-method none -o mine.csv", "planner import bench.jsonl --kind sglang", "planner import vllm.log"};
    case Command::validate: return {"planner validate startups --given-pool", "planner validate benchmarks mine.csv"};
    case Command::calibrate: return {"planner calibrate --benchmarks mine.csv --write coefficients.csv"};
    case Command::compare: return {"planner compare before.json after.json"};
    case Command::list: return {"planner list models --check", "planner list prices --gpu b300"};
    case Command::explain: return {"planner explain --model qwen3-32b --gpu h100x2"};
    case Command::completion: return {"planner completion bash > ~/.local/share/bash-completion/completions/planner", "planner completion man > planner.1"};
    }
    return {};
}

/// A count as engines accept it: 8192, 8_192, 8,192, 8k (x 1000), 8K (x 1024), 1M, 25.6k.
Result<std::int64_t> read_count(std::string const& option, std::string text, std::int64_t low, std::int64_t high) {
    std::string const as_typed = text;
    std::erase_if(text, [](char c) { return c == '_' || c == ','; });
    double factor = 1;
    if (!text.empty()) {
        switch (text.back()) {
        case 'k': factor = 1e3; break;
        case 'K': factor = 1024; break;
        case 'm': factor = 1e6; break;
        case 'M': factor = 1048576; break;
        case 'g': factor = 1e9; break;
        case 'G': factor = 1073741824; break;
        default: break;
        }
        if (factor != 1) text.pop_back();
    }
    auto const expected = "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    double value = 0;
    auto const [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || ec != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        return servecap::fail(ErrorCode::bad_value, "'" + as_typed + "' is not a number", option, expected);
    value *= factor;
    if (value != std::floor(value) || value < static_cast<double>(low) || value > static_cast<double>(high))
        return servecap::fail(ErrorCode::bad_value, "'" + as_typed + "' is out of range", option, expected);
    return static_cast<std::int64_t>(value);
}

Result<double> read_number(std::string const& option, std::string const& text, double low, double high, char const* expected) {
    double value = 0;
    auto const [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || ec != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        return servecap::fail(ErrorCode::bad_value, "'" + text + "' is not a number", option, expected);
    if (value < low || value > high) return servecap::fail(ErrorCode::bad_value, "'" + text + "' is out of range", option, expected);
    return value;
}

constexpr std::int64_t kMany = 1'000'000'000'000;

/// Collects the options of one command line; the first mistake stops the reading.
class Reader {
public:
    explicit Reader(CLI::App& app) : app_{app} {}

    void set_group(std::string group) { group_ = std::move(group); }

    CLI::Option* text(std::string const& name, std::string& into, std::string const& help) {
        return app_.add_option(name, into, help)->group(group_);
    }
    CLI::Option* flag(std::string const& name, bool& into, std::string const& help) {
        return app_.add_flag(name, into, help)->group(group_);
    }
    CLI::Option* texts(std::string const& name, std::vector<std::string>& into, std::string const& help) {
        return app_.add_option(name, into, help)->group(group_)->type_name("TEXT ...");
    }
    void call(std::string const& name, std::string const& type, std::string const& help, std::function<void(std::string const&)> f) {
        app_.add_option_function<std::string>(name, std::move(f), help)->group(group_)->type_name(type);
    }
    void count(std::string const& name, std::string const& help, std::int64_t low, std::int64_t high,
               std::function<void(std::int64_t)> f) {
        call(name, "N", help, [this, name, low, high, f = std::move(f)](std::string const& s) {
            auto v = read_count(first_name(name), s, low, high);
            v ? f(*v) : keep(std::move(v.error()));
        });
    }
    void number(std::string const& name, std::string const& help, double low, double high, char const* expected,
                std::function<void(double)> f) {
        call(name, "X", help, [this, name, low, high, expected, f = std::move(f)](std::string const& s) {
            auto v = read_number(first_name(name), s, low, high, expected);
            v ? f(*v) : keep(std::move(v.error()));
        });
    }
    void number(std::string const& name, std::optional<double>& into, std::string const& help, double low, double high,
                char const* expected) {
        number(name, help, low, high, expected, [&into](double v) { into = v; });
    }
    /// An amount of money: "49.61", "$49.61", "CNY 342".
    void money(Args& a, std::string const& name, std::optional<double> Args::*into, std::string const& help, double high,
               bool in_usd = false) {
        call(name, "MONEY", help, [this, name, into, high, in_usd, &a](std::string const& s) {
            auto const flag = first_name(name);
            auto m = servecap::parse_money(s, flag);
            if (!m) return keep(std::move(m.error()));
            if (m->amount < 0 || m->amount > high)
                return keep({ErrorCode::bad_value, "'" + s + "' is out of range", flag, "expected an amount of 0 or more"});
            a.*into = m->amount;
            bool const named = s.find_first_not_of("0123456789.eE+- ") != std::string::npos;
            a.money.push_back({flag, named ? m->currency : std::string{}, into, in_usd});
        });
    }
    /// One of a list of words; an unknown word is answered with the nearest.
    void choice(std::string const& name, std::string const& help, std::vector<std::string> words,
                std::function<void(std::size_t)> f) {
        std::string type;
        for (auto const& w : words) type += (type.empty() ? "" : "|") + w;
        call(name, type, help, [this, name, words = std::move(words), f = std::move(f)](std::string const& s) {
            for (std::size_t i = 0; i < words.size(); ++i)
                if (servecap::fold_name(words[i]) == servecap::fold_name(s)) return f(i);
            std::string expected = "expected ";
            for (std::size_t i = 0; i < words.size(); ++i) expected += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
            keep({ErrorCode::bad_value, "'" + s + "' is not known", first_name(name), expected});
        });
    }
    void keep(servecap::Error e) {
        if (!error_) error_ = std::move(e);
    }
    [[nodiscard]] std::optional<servecap::Error> const& error() const { return error_; }

    static std::string first_name(std::string const& names) { return names.substr(0, names.find(',')); }

private:
    CLI::App& app_;
    std::string group_;
    std::optional<servecap::Error> error_;
};

/// The value of a key in a flat JSON-like argument: {"cpu_offload":true} -> "true". Empty if absent.
std::string json_like_value(std::string_view text, std::string_view key) {
    auto at = text.find("\"" + std::string{key} + "\"");
    if (at == std::string_view::npos) return {};
    at = text.find(':', at);
    if (at == std::string_view::npos) return {};
    auto value = text.substr(at + 1);
    value = servecap::trim(value.substr(0, value.find_first_of(",}")));
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    return std::string{value};
}

void add_engine_options(Reader& r, Args& a) {
    using namespace servecap;
    auto& s = a.settings;
    r.set_group("Engine");
    r.choice("--engine", "engine; default vllm", {"vllm", "sglang", "trtllm", "llama.cpp"},
             [&a](std::size_t i) {
                 a.settings.engine = static_cast<EngineKind>(i);
                 a.engine_given = true;
             });
    r.text("--engine-version", s.version, "engine version; default the newest modelled");
    auto const given = [&a](char const* flag) { a.given.emplace_back(flag); };
    auto const dtype = [&r, given](char const* names, char const* help, char const* flag, std::optional<std::string>& into) {
        r.call(names, "DTYPE", help, [&into, given, flag](std::string const& v) {
            into = v;
            given(flag);
        });
    };
    dtype("--weights-dtype,--dtype", "weights as loaded; default auto", "--weights-dtype", s.weights_dtype);
    dtype("--kv-cache-dtype,--kv-dtype", "KV cache; default auto", "--kv-cache-dtype", s.kv_cache_dtype);
    dtype("--state-dtype,--mamba-ssm-cache-dtype", "recurrent state; default auto", "--mamba-ssm-cache-dtype", s.state_dtype);
    r.number("--gpu-memory-utilization", "share of visible memory that the engine may use", 0.01, 1.0, "expected 0.01 to 1",
             [&s, given](double v) {
                 s.gpu_memory_utilization = v;
                 given("--gpu-memory-utilization");
             });
    r.call("--max-model-len", "N", "longest request; -1 or auto = as long as fits", [&r, &s, given](std::string const& v) {
        given("--max-model-len");
        if (v == "auto" || v == "-1") {
            s.max_model_len = Tokens{-1};
            return;
        }
        auto n = read_count("--max-model-len", v, 1, kMany);
        n ? void(s.max_model_len = Tokens{*n}) : r.keep(std::move(n.error()));
    });
    auto const counted = [&r, given](char const* name, char const* help, std::int64_t low, auto set) {
        r.count(name, help, low, kMany, [given, name, set](std::int64_t v) {
            set(v);
            given(Reader::first_name(name).c_str());
        });
    };
    counted("--max-num-seqs", "sequences at once, a DP rank", 1, [&s](std::int64_t v) { s.max_num_seqs = Requests{v}; });
    counted("--max-num-batched-tokens", "tokens a step", 1, [&s](std::int64_t v) { s.max_num_batched_tokens = Tokens{v}; });
    counted("--block-size", "tokens a KV block", 1, [&s](std::int64_t v) { s.block_size = Tokens{v}; });
    counted("--kv-cache-memory-bytes", "KV pool a GPU, instead of the profiled one", 1, [&s](std::int64_t v) { s.kv_cache_memory = Bytes{v}; });
    counted("--num-gpu-blocks-override", "KV blocks, instead of the computed number", 1, [&s](std::int64_t v) { s.num_gpu_blocks_override = v; });
    counted("--max-cudagraph-capture-size", "largest captured batch", 0, [&s](std::int64_t v) { s.max_cudagraph_capture_size = Tokens{v}; });
    counted("--speculative,--num-speculative-tokens", "draft tokens a step", 0,
            [&s](std::int64_t v) { s.speculative_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(v, 1000)); });
    r.text("--speculative-method", s.speculative_method, "mtp, eagle3, dspark, dflash");
    r.choice("--cudagraph-mode", "CUDA graphs", {"FULL_AND_PIECEWISE", "FULL_DECODE_ONLY", "PIECEWISE", "NONE"},
             [&s, given](std::size_t i) {
                 s.graph_mode = static_cast<GraphMode>(i);
                 given("--cudagraph-mode");
             });
    r.choice("--mamba-cache-mode", "recurrent state beside a prefix cache", {"none", "align", "all"}, [&s, given](std::size_t i) {
        s.mamba_cache_mode = static_cast<MambaCacheMode>(i);
        given("--mamba-cache-mode");
    });
    r.call("--engram-config", "JSON", "lookup tables: {\"cpu_offload\":true}", [&s, given](std::string const& v) {
        auto const on = json_like_value(v, "cpu_offload");
        if (!on.empty()) s.lookup_tables_on_host = on == "true";
        given("--engram-config");
    });
    r.call("--attention-config", "JSON", "backend and index key dtype", [&s, given](std::string const& v) {
        auto const dtype_text = json_like_value(v, "indexer_kv_dtype");
        auto const backend = json_like_value(v, "backend");
        if (!dtype_text.empty()) s.indexer_kv_dtype = dtype_text;
        if (!backend.empty()) s.attention_backend = backend;
        given("--attention-config");
    });
    r.text("--mm-encoder-tp-mode", a.mm_encoder_mode, "weights (cut) or data (copied) for the vision tower");
    r.number("--mem-fraction-static", "SGLang: static share of memory", 0.01, 1.0, "expected 0.01 to 1", [&s, given](double v) {
        s.mem_fraction_static = v;
        given("--mem-fraction-static");
    });
    counted("--max-running-requests", "SGLang: requests at once", 1, [&s](std::int64_t v) { s.max_running_requests = Requests{v}; });
    r.number("--mamba-full-memory-ratio", "SGLang: state to KV memory", 0.001, 1000, "expected a positive number", [&s, given](double v) {
        s.mamba_full_memory_ratio = v;
        given("--mamba-full-memory-ratio");
    });
    r.number("--free-gpu-memory-fraction", "TensorRT-LLM: share of free memory for KV", 0.01, 1.0, "expected 0.01 to 1",
             [&s, given](double v) {
                 s.free_gpu_memory_fraction = v;
                 given("--free-gpu-memory-fraction");
             });
    counted("--max-batch-size", "TensorRT-LLM: requests at once", 1, [&s](std::int64_t v) { s.max_batch_size = Requests{v}; });
    counted("--n-gpu-layers,--ngl", "llama.cpp: layers on GPUs", 0,
            [&s](std::int64_t v) { s.n_gpu_layers = static_cast<std::int32_t>(std::min<std::int64_t>(v, 100000)); });
    counted("--parallel,--np", "llama.cpp: slots", 1,
            [&s](std::int64_t v) { s.n_parallel = static_cast<std::int32_t>(std::min<std::int64_t>(v, 100000)); });
    counted("--ubatch-size,--ub", "llama.cpp: tokens a physical batch", 1, [&s](std::int64_t v) { s.ubatch = Tokens{v}; });
}

void add_switches(CLI::App& app, Args& a) {
    auto& s = a.settings;
    auto const given = [&a](char const* flag) { a.given.emplace_back(flag); };
    auto const sw = [&app, given](char const* name, char const* help, auto set) {
        app.add_flag_function(
               name,
               [name, set, given](std::int64_t n) {
                   if (n <= 0) return;
                   set();
                   given(Reader::first_name(name).c_str());
               },
               help)
            ->group("Engine");
    };
    sw("--no-enable-prefix-caching,--no-prefix-caching", "prefix cache off", [&s] { s.prefix_caching = false; });
    sw("--enable-prefix-caching", "prefix cache on", [&s] { s.prefix_caching = true; });
    sw("--enforce-eager", "no CUDA graphs", [&s] { s.enforce_eager = true; });
    sw("--disable-hybrid-kv-cache-manager", "window layers get full-length pages", [&s] { s.hybrid_manager_off = true; });
    sw("--no-async-scheduling", "one batch in flight", [&s] { s.async_scheduling = false; });
}

void add_common(CLI::App& app, Reader& r, Args& a) {
    using namespace servecap;
    r.set_group("What");
    r.text("-m,--model", a.model, "catalogue name or alias, a config.json, or a checkpoint folder");
    r.text("-g,--gpu", a.gpu, "b300x8, 8xb300, h200x16 (two nodes of 8), any (search, table)");
    r.text("--layout", a.layout, "tp8, pp2, tep8, dep8, tp4x2, tp8dcp8; default: the card's, else the smallest TP that serves 8 requests");
    auto const size = [&r](char const* name, char const* help, std::optional<std::int64_t>& into) {
        r.count(name, help, 1, 1000000, [&into](std::int64_t v) { into = v; });
    };
    size("--tp,--tensor-parallel-size", "tensor parallel ranks", a.tp);
    size("--pp,--pipeline-parallel-size", "pipeline stages", a.pp);
    size("--dp,--data-parallel-size", "data-parallel attention ranks", a.dp);
    size("--ep,--expert-parallel-size", "ranks that share whole experts (1 = off)", a.ep);
    size("--dcp,--decode-context-parallel-size", "ranks that share one sequence's KV cache", a.dcp);
    size("--replicas", "copies of the model", a.replicas);
    add_engine_options(r, a);
    add_switches(app, a);

    r.set_group("Workload");
    auto& w = a.workload;
    r.count("--isl", "input tokens of a request; default 1000", 1, kMany, [&a](std::int64_t v) {
        a.workload.isl = Tokens{v};
        a.isl_given = true;
    });
    r.count("--osl", "output tokens of a request; default 1000", 1, kMany, [&a](std::int64_t v) {
        a.workload.osl = Tokens{v};
        a.osl_given = true;
    });
    r.call("-c,--concurrency", "LIST", "requests in flight, whole deployment: 1,8,64 (default powers of two)", [&r, &w](std::string const& v) {
        w.concurrency.clear();
        std::size_t at = 0;
        while (at <= v.size()) {
            auto const comma = std::min(v.find_first_of(", ", at), v.size());
            auto n = read_count("--concurrency", v.substr(at, comma - at), 1, 10'000'000);
            if (!n) return r.keep(std::move(n.error()));
            w.concurrency.emplace_back(*n);
            at = comma + 1;
        }
    });
    r.number("--request-rate", "requests a second that arrive (open loop)", 1e-9, 1e9, "expected a positive number",
             [&w](double v) { w.request_rate = RequestsPerSecond{v}; });
    r.number("--cache-hit", "share of input tokens found in the prefix cache; default 0", 0, 1, "expected 0 to 1",
             [&w](double v) { w.cache_hit = v; });
    r.number("--slo-ttft", "bound on the mean TTFT in ms", 1e-3, 1e9, "expected milliseconds above 0",
             [&w](double v) { w.slo_ttft = milliseconds(v); });
    r.number("--slo-tpot", "bound on TPOT in ms", 1e-3, 1e9, "expected milliseconds above 0",
             [&w](double v) { w.slo_tpot = milliseconds(v); });

    r.set_group("Money");
    r.money(a, "--price", &Args::price, "USD an hour, whole deployment; \"CNY 411.7\" is converted at a dated rate", 1e9);
    r.money(a, "--price-gpu-hour", &Args::price_gpu_hour, "USD an hour, one GPU", 1e6);
    r.text("--price-source", a.price_source, "provider whose price to use");
    r.text("--price-kind", a.price_kind, "on-demand, spot, reserved, or a kind as `planner list prices` names it");
    r.text("--api", a.api, "API model to compare with; default the card's first-party rows");
    r.text("--currency", a.currency, "currency of amounts typed without one; default USD");
    r.number("--currency-rate", a.currency_rate, "units of it a USD; default the catalogue's newest at --as-of", 1e-9, 1e9, "expected a number above 0");
    r.text("--currency-date", a.currency_date, "date of that rate");
    r.text("--as-of", a.as_of, "ISO date from which ages of prices count; default the newest in the catalogue");

    r.set_group("More rows (on top of the catalogue; they win)");
    r.text("--data", a.data_dir, "folder with models/*.json and CSVs");
    r.texts("--benchmarks", a.benchmarks, "measured rows");
    r.texts("--startups", a.startups, "start-up rows");
    r.texts("--prices", a.prices, "GPU prices");
    r.texts("--apis", a.apis, "API prices");
    r.texts("--setups", a.setups, "download and start times");

    r.set_group("Output");
    r.text("--assume", a.assume, "treat an attention that is not understood as this kind (gqa); marked in the output");
    r.flag("--force", a.force, "accept an implausible input");
    r.count("--jobs", "threads", 1, 1024, [&a](std::int64_t v) { a.jobs = v; });
    r.flag("--explain", a.explain, "terms in place");
    r.choice("-f,--format", "form of the result; jsonl: every plan of a search, a line each", {"text", "json", "csv", "md", "svg", "prometheus", "jsonl"},
             [&a](std::size_t i) {
                 a.json_lines = i == 6;
                 a.format = a.json_lines ? OutputFormat::json : static_cast<OutputFormat>(i);
             });
    r.text("-o,--output", a.output, "file instead of standard output");
    r.choice("--color", "colour and bars", {"auto", "always", "never"}, [&a](std::size_t i) { a.color = static_cast<ColorMode>(i); });
}

void add_special(Reader& r, Args& a) {
    r.set_group("Of this command");
    char const* const positive = "expected a number of 0 or more";
    switch (a.command) {
    case Command::cost:
    case Command::breakeven:
        r.number("--tok-s,--output-tok-s", a.tokens_per_second, "output tok/s of the deployment, instead of a prediction", 1e-9, 1e12,
                 "expected output tokens a second above 0");
        r.number("--ratio", a.ratio, "input tokens per output token; default ISL / OSL", 0, 1e6, positive);
        r.number("--output-input-price-ratio", a.price_ratio, "price of an output token in input tokens", 1e-6, 1e6, positive);
        r.number("--utilization", a.utilization, "share of paid time at that rate, 0 to 1; default 1", 1e-6, 1, "expected 0 to 1");
        r.money(a, "--api-input", &Args::api_input, "API price, USD/M input tokens", 1e6, true);
        r.money(a, "--api-cached", &Args::api_cached, "API price, USD/M cached input tokens; without it cached input is billed as input", 1e6, true);
        r.money(a, "--api-cache-write", &Args::api_cache_write, "API price, USD/M input tokens written to the cache; default as input", 1e6, true);
        r.money(a, "--api-output", &Args::api_output, "API price, USD/M output tokens", 1e6, true);
        r.number("--cache-write", a.cache_write_share, "share of the input written to the API's cache; default 0", 0, 1, "expected 0 to 1");
        r.number("--batch-share", a.batch_share, "share of the traffic that the API takes as batches", 0, 1, "expected 0 to 1");
        r.number("--batch-discount", a.batch_discount, "discount on batches; default 0.5", 0, 1, "expected 0 to 1");
        r.money(a, "--usd-per-month", &Args::usd_per_month, "cost of the deployment a month, instead of a price an hour", 1e12, true);
        r.number("--peak-to-mean", a.peak_to_mean, "peak over mean of the traffic; default 1", 1, 1000, "expected 1 or more");
        r.count("--reserve", "spare replicas (N+1 = 1)", 0, 1000, [&a](std::int64_t v) { a.reserve_replicas = v; });
        r.text("--against", a.against, "another deployment: MODEL@GPU, or a plan written with --format json");
        r.money(a, "--against-price", &Args::against_price, "USD an hour of that deployment; default its catalogue price", 1e9);
        r.number("--volume", a.volume, "million output tokens a month: what each way costs there", 0, 1e12, "expected more than 0");

        r.set_group("How it is paid");
        r.flag("--spot", a.spot, "the same as --price-kind spot");
        r.number("--interruptions-per-day", a.interruptions_per_day, "spot: how often the node is taken away", 0, 1e4, positive);
        r.number("--restart-minutes", a.restart_minutes, "spot: paid time until it serves again; default the set-up", 0, 1e5, positive);
        r.number("--wait-minutes", a.wait_minutes, "spot: unpaid time until a node is found; default 0", 0, 1e6, positive);
        r.number("--lost-minutes", a.lost_minutes, "spot: work done over again; default 0", 0, 1e5, positive);
        r.number("--commit-months", a.commit_months, "commitment: months that the price is owed around the clock", 1, 600, "expected 1 to 600");
        r.money(a, "--upfront", &Args::upfront, "commitment: paid at the start, on top of the price", 1e12);
        r.count("--min-gpus", "commitment: smallest order in GPUs", 1, 10'000'000, [&a](std::int64_t v) { a.min_gpus = v; });
        r.money(a, "--on-demand", &Args::on_demand, "USD an hour that spot, commitment and owning are held against; default on-demand rows", 1e9);
        r.number("--hours-per-day", a.hours_per_day, "duty: hours a day that it runs", 0, 24, "expected 0 to 24");
        r.number("--days-per-month", a.days_per_month, "duty: days a month; default 30.4", 0, 31, "expected 0 to 31");
        r.number("--starts-per-day", a.starts_per_day, "duty: starts a day, each with its set-up on top of the hours; default 1", 0, 1000, positive);
        r.money(a, "--buy", &Args::buy_price, "purchase price of the node(s)", 1e12);
        r.number("--months", a.own_months, "owning: months over which it is paid; default 36", 1, 600, "expected 1 to 600");
        r.number("--residual", a.residual, "owning: share of the price left at the end, 0 to 1; default 0", 0, 1, "expected 0 to 1");
        r.number("--interest", a.interest, "owning: interest a year, 0.10 = 10 %; default 0", 0, 0.9999, "expected 0 to 1; 0.1 is 10 %");
        r.number("--network", a.network_share, "owning: switches and cables as a share of the price, on top; default 0", 0, 10, positive);
        r.number("--power-kw", a.power_kw, "owning: power at the wall in kW; default the node's", 0, 1e6, positive);
        r.number("--pue", a.pue, "owning: power usage effectiveness; default 1.3", 1, 10, "expected 1 to 10");
        r.money(a, "--tariff", &Args::tariff, "owning: electricity a kWh", 1000);
        r.money(a, "--colo", &Args::colo_per_kw_month, "owning: colocation a kW and month, instead of electricity", 1e6);
        r.number("--maintenance", a.maintenance, "owning: share of the price a year; default 0", 0, 10, positive);
        r.money(a, "--staff", &Args::staff_per_month, "owning: staff a month; default 0", 1e9);

        r.set_group("Set-up and sessions");
        r.number("--session-hours", a.session_hours, "hours that a rented session serves, after its set-up", 1e-3, 1e5, "expected hours above 0");
        r.number("--setup-minutes", a.setup_minutes, "set-up, instead of measured rows and estimates", 0, 1e5, positive);
        r.number("--download-gbs", a.download_gbs, "download in GB/s", 1e-6, 1e4, "expected GB/s above 0");
        r.number("--read-gbs", a.read_gbs, "reading weights from disk in GB/s", 1e-6, 1e4, "expected GB/s above 0");
        r.number("--compile-s", a.compile_seconds, "compiling, tuning and graph capture in seconds", 0, 1e6, positive);
        r.text("--loader", a.loader, "loader of the weights: default, fastsafetensors");
        r.flag("--downloaded", a.downloaded, "the files are on the disk already");
        r.count("--failed-starts", "starts that fail before the one that works", 0, 1000, [&a](std::int64_t v) { a.failed_starts = v; });
        break;
    case Command::search:
    case Command::table:
        r.text("--models", a.models, "models, separated by commas");
        r.text("--gpus", a.gpus, "GPU sets, separated by commas, or any");
        r.text("--include", a.include, "also GPUs that are announced, legacy");
        r.text("--sort", a.sort, "order of the answer");
        r.text("--columns", a.columns, "columns, separated by commas");
        r.call("--budget", "USD/h", "USD at most: 60/h, 40000/month; a bare number is an hour", [&r, &a](std::string const& v) {
            auto const slash = v.find('/');
            std::string const unit = slash == std::string::npos ? "h" : servecap::fold_name(v.substr(slash + 1));
            double const hours = unit == "h" || unit == "hour" ? 1 : unit == "d" || unit == "day" ? 24 : unit == "month" ? servecap::kHoursPerMonth : 0;
            if (hours == 0) return r.keep({ErrorCode::bad_value, "'" + v.substr(slash + 1) + "' is no time of a budget", "--budget", "expected 60/h, 1440/day or 40000/month"});
            auto n = read_number("--budget", v.substr(0, slash), 0, 1e9, "expected a number of USD, as in 60/h");
            n ? void(a.budget_per_hour = *n / hours) : r.keep(std::move(n.error()));
        });
        r.number("--max-gpus", a.max_gpus, "GPUs at most", 1, 100000, "expected 1 to 100,000");
        r.text("--objective", a.objective, "cheapest (default), fastest, fewest-gpus, context, users, smallest-gpu, largest-model");
        break;
    case Command::validate:
        r.flag("--given-pool", a.given_pool, "take the stated KV pool as given; score the allocator alone");
        r.flag("--leave-rows", a.leave_rows, "benchmarks: leave out the row and its twins, not its whole group");
        r.flag("--all", a.all_rows, "benchmarks: rows with speculation and flags too");
        r.text("--by", a.by, "group by model, gpu or engine");
        r.text("--rows", a.rows, "write every row and its prediction to this CSV");
        break;
    case Command::calibrate:
        r.text("--by", a.by, "group the table by model, gpu, engine, precision or concurrency");
        r.text("--write", a.out_file, "write the coefficients to this CSV");
        break;
    case Command::doctor: r.text("--learn", a.learn, "append the start as a row to this CSV"); break;
    case Command::import:
        r.text("--kind", a.kind, "format of the files, where it cannot be told: vllm-serve, sglang, trtllm-bench, guidellm, aiperf, log...");
        r.text("--source", a.import_source, "source of the rows; default the file's name");
        r.text("--url", a.import_url, "where the report is published");
        r.text("--date", a.import_date, "ISO day of the run, or of the list");
        break;
    case Command::plan:
        r.choice("--emit", "a deployment file with the plan's numbers instead of the page", {"compose", "k8s"},
                 [&a](std::size_t i) { a.emit = i == 0 ? "compose" : "k8s"; });
        r.text("--image", a.image, "container image of that file; default the engine's own");
        break;
    case Command::list: r.flag("--check", a.check, "compare cards with published counts"); break;
    default: break;
    }
}

} // namespace

std::vector<CommandHelp> describe_commands() {
    std::vector<CommandHelp> out;
    auto const add = [&out](Command command, bool root, char const* name, char const* text) {
        Args a;
        a.command = command;
        CLI::App app;
        app.set_help_flag("-h,--help", "this text");
        bool version = false;
        if (root) app.add_flag("-V,--version", version, "version");
        Reader r{app};
        add_common(app, r, a);
        add_special(r, a);
        CommandHelp c{name, text, {}, examples_of(command, root)};
        for (CLI::Option const* o : app.get_options()) {
            OptionHelp h;
            for (auto const& n : o->get_lnames()) h.names.push_back("--" + n);
            for (auto const& n : o->get_snames()) h.names.push_back("-" + n);
            if (o->get_expected_max() > 0) h.value = o->get_type_name();
            h.help = o->get_description();
            h.group = o->get_group();
            c.options.push_back(std::move(h));
        }
        out.push_back(std::move(c));
    };
    add(Command::plan, true, "", "the whole plan: fit, speed, cost, break-even");
    for (auto const& c : kCommands) add(c.command, false, c.name, c.text);
    return out;
}

Result<ParsedArgs> parse_args(int argc, char const* const* argv) {
    ParsedArgs out;
    Args& a = out.args;
    std::string first;
    int command_at = 0;
    std::vector<std::string> names;
    for (auto const& c : kCommands) names.emplace_back(c.name);
    if (argc > 1 && argv[1][0] != '-') {
        first = argv[1];
        command_at = 1;
        auto const it = std::find(names.begin(), names.end(), first);
        if (it == names.end()) {
            auto hint = servecap::did_you_mean(first, names);
            return servecap::fail(ErrorCode::bad_usage, "unknown command '" + first + "'", {},
                                  hint.empty() ? "planner --help lists them" : hint);
        }
        a.command = kCommands[it - names.begin()].command;
    }

    CLI::App app{"planner " SERVECAP_VERSION ": capacity and cost planning for serving large language models",
                 first.empty() ? "planner" : "planner " + first};
    app.set_help_flag("-h,--help", "this text");
    bool version = false;
    app.add_flag("-V,--version", version, "version");
    Reader r{app};
    add_common(app, r, a);
    add_special(r, a);
    std::string footer;
    if (first.empty()) {
        footer = "Commands (planner COMMAND --help has the options of each):\n";
        for (auto const& c : kCommands) footer += "  " + std::string{c.name} + std::string(12 - std::string{c.name}.size(), ' ') + c.text + "\n";
        footer += "\n";
    }
    footer += "Examples:\n";
    for (std::string const& e : examples_of(a.command, first.empty())) footer += "  " + e + "\n";
    app.footer(footer);
    app.add_option("names", a.positional, "")->group("");

    try {
        app.parse(argc - command_at, argv + command_at);
    } catch (CLI::CallForHelp const&) {
        out.help = app.help();
        return out;
    } catch (CLI::ExtrasError const&) {
        std::vector<std::string> options;
        for (CLI::Option const* o : app.get_options())
            for (auto const& n : o->get_lnames()) options.push_back("--" + n);
        auto const extra = app.remaining();
        std::string const bad = extra.empty() ? "?" : extra.front();
        auto const bare = bad.substr(0, bad.find('='));
        return servecap::fail(ErrorCode::bad_usage, "unknown option '" + bad + "'", {},
                              servecap::did_you_mean(bare, options));
    } catch (CLI::ParseError const& e) {
        return servecap::fail(ErrorCode::bad_usage, e.what(), {}, "planner --help lists the options");
    }
    if (version) {
        out.help = "planner " SERVECAP_VERSION "\n";
        return out;
    }
    if (r.error()) return tl::unexpected<servecap::Error>{*r.error()};
    if (!a.mm_encoder_mode.empty()) {
        if (a.mm_encoder_mode != "data" && a.mm_encoder_mode != "weights")
            return servecap::fail(ErrorCode::bad_value, "'" + a.mm_encoder_mode + "' is not known", "--mm-encoder-tp-mode", "expected weights or data");
        a.settings.mm_encoder_data_parallel = a.mm_encoder_mode == "data";
        a.given.emplace_back("--mm-encoder-tp-mode");
    }
    if (a.json_lines && a.command != Command::search)
        return servecap::fail(ErrorCode::bad_usage, "JSON lines are of planner search alone", "--format", "expected text, json, csv, md or svg");
    if (!a.layout.empty() && (a.tp || a.pp || a.dp || a.ep || a.dcp || a.replicas))
        return servecap::fail(ErrorCode::bad_usage, "--layout and --tp/--pp/--dp/--ep/--dcp/--replicas say the same thing twice", {},
                              "give one of them");
    if (a.format == OutputFormat::prometheus && a.command != Command::plan && a.command != Command::fit && a.command != Command::predict)
        return servecap::fail(ErrorCode::bad_usage, "prometheus is a form of plans", "--format", "with planner --model..., fit or predict");
    if (a.price && a.price_gpu_hour)
        return servecap::fail(ErrorCode::bad_usage, "--price and --price-gpu-hour were both given", {}, "give one of them");
    return out;
}

} // namespace planner
