// planner: list
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <servecap/core/date.hpp>
#include <servecap/cost/price.hpp>
#include <servecap/engine/support.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/plan_json.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/published.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>

#include "context.hpp"
#include "output.hpp"

namespace planner {

using namespace servecap;
using Json = nlohmann::ordered_json;

namespace {

using Align = TextTable::Align;

/// The table in the form asked for; CSV and JSON take the headers as names.
Result<int> show(Args const& a, TextTable const& t, std::string const& foot = {}) {
    std::string text;
    if (a.format == OutputFormat::csv) {
        append_csv_record(text, t.headers());
        for (auto const& r : t.rows()) append_csv_record(text, r);
    } else if (a.format == OutputFormat::json) {
        Json rows = Json::array();
        for (auto const& r : t.rows()) {
            Json row;
            for (std::size_t i = 0; i < r.size(); ++i) row[t.headers()[i]] = r[i].empty() ? Json(nullptr) : Json(r[i]);
            rows.push_back(row);
        }
        text = rows.dump(2) + "\n";
    } else {
        text = (a.format == OutputFormat::md ? t.markdown() : t.text()) + foot;
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return kAnswered;
}

std::string optional_number(std::optional<double> v, int decimals) { return v ? grouped(*v, decimals) : std::string{}; }

/// "1.2 T", "405 B", "0.6 B".
std::string params_text(double n) {
    if (n >= 1e12) return fmt::format("{:.2f} T", n / 1e12);
    if (n >= 1e10) return fmt::format("{:.0f} B", n / 1e9);
    return fmt::format("{:.2f} B", n / 1e9);
}

/// "93: 69 kda, 24 mla".
std::string layers_text(Model const& m) {
    std::vector<std::pair<std::string_view, int>> kinds;
    for (Layer const& l : m.layers)
        for (Mixer const& x : l.mixers) {
            auto const name = kind_name(x);
            auto const at = std::find_if(kinds.begin(), kinds.end(), [&](auto const& k) { return k.first == name; });
            if (at == kinds.end())
                kinds.emplace_back(name, 1);
            else
                ++at->second;
        }
    std::string s = std::to_string(m.layers.size()) + ":";
    for (auto const& [name, n] : kinds) s += fmt::format(" {} {},", n, name);
    s.pop_back();
    return s;
}

Result<int> list_models_command(Args const& a) {
    StoreOptions options;
    if (!a.data_dir.empty()) options.data_dirs.push_back(a.data_dir);
    options.assume = a.assume;
    TextTable t;
    if (a.check)
        t.column("model", Align::left).column("computed").column("published").column("deviation %").column("counted", Align::left).column("config", Align::left);
    else
        t.column("model", Align::left).column("parameters").column("active").column("layers", Align::left).column("weights GB").column("format", Align::left)
            .column("KV bytes a token").column("state MiB a sequence").column("context").column("config", Align::left);
    std::size_t bad = 0, checked = 0, n = 0;
    std::string const wanted = a.positional.size() > 1 ? fold_name(a.positional[1]) : fold_name(a.model);
    for (std::string const& name : list_models(options)) {
        if (!wanted.empty() && fold_name(name).find(wanted) == std::string::npos) continue;
        auto m = load_model(name, options);
        if (!m) {
            warn(to_line(m.error()));
            ++bad;
            continue;
        }
        ++n;
        if (a.check) {
            auto const counted = published_count(*m);
            if (!counted) continue;
            ++checked;
            if (std::fabs(counted->deviation) > 0.015) ++bad;
            t.row({m->id, params_text(static_cast<double>(counted->computed.value())), params_text(static_cast<double>(m->published_params->value())),
                   fmt::format("{:+.2f}", counted->deviation * 100), counted->parts, m->confidence});
            continue;
        }
        KvOptions const kv{};
        double state = 0;
        for (Layer const& l : m->layers)
            for (Mixer const& x : l.mixers)
                if (is_recurrent(x)) state += static_cast<double>(state_bytes(x, StateOptions{}).value());
        t.row({m->id, params_text(static_cast<double>(total_params(*m).value())), params_text(static_cast<double>(active_params(*m).value())), layers_text(*m),
               grouped(in_gb(stored_bytes(*m).total), 1), m->quant.label, grouped(kv_bytes_per_token(*m, kv).value()),
               state > 0 ? grouped(state / 1048576.0, 1) : "", grouped(m->max_context.value()), m->confidence});
    }
    std::string foot = a.check ? fmt::format("\n{} models with a published count, {} more than 1.5 % off\n", checked, bad)
                               : fmt::format("\n{} models. KV bytes: one token, 16 bits, whole model, growing part. Config: read = public, inferred = not.\n", n);
    auto status = show(a, t, foot);
    if (status && bad > 0) return kNo;
    return status;
}

Result<int> list_gpus_command(Args const& a, Context const& c) {
    TextTable t;
    t.column("gpu", Align::left).column("name", Align::left).column("printed GB").column("reported MiB").column("visible GiB").column("GB/s")
        .column("bf16 TF").column("fp8 TF").column("fp4 TF").column("link GB/s").column("domain").column("node").column("status", Align::left);
    for (Gpu const& g : c.gpus()) {
        auto const tf = [](std::optional<FlopsPerSecond> const& f) { return f ? grouped(f->value() / 1e12, 0) : std::string{}; };
        auto const gbs = [](std::optional<BytesPerSecond> const& b) { return b ? grouped(b->value() / 1e9, 0) : std::string{}; };
        constexpr std::string_view status[] = {"available", "legacy", "announced", "restricted"};
        t.row({g.id, g.short_name, g.memory_printed, g.memory_reported ? grouped(g.memory_reported->value() / 1048576) : "",
               grouped(in_gib(g.visible), 1) + (g.visible_is_estimate ? " ~" : ""), gbs(g.bandwidth), tf(g.bf16), tf(g.fp8), tf(g.fp4), gbs(g.scaleup),
               grouped(static_cast<std::int64_t>(g.scaleup_domain)), grouped(static_cast<std::int64_t>(g.node_gpus)),
               std::string{status[static_cast<std::size_t>(g.status)]}});
    }
    return show(a, t, "\n~ = estimated from the reported total. Link: one direction, per GPU; blank = PCIe only. Flops dense.\n");
}

/// Lowest, median and highest price of a kind: rows of medium or high confidence of the last year, others where there are none.
void spread_rows(TextTable& t, std::vector<GpuPrice> const& rows, std::string_view as_of) {
    for (std::size_t from = 0; from < rows.size();) {
        std::size_t to = from;
        std::vector<double> sure, all;
        while (to < rows.size() && rows[to].gpu == rows[from].gpu && rows[to].price_type == rows[from].price_type) {
            if (rows[to].per_gpu) all.push_back(rows[to].per_gpu->value());
            auto const age = days_between(rows[to].date, as_of);
            if (rows[to].per_gpu && rows[to].confidence >= Confidence::medium && age && *age <= 365) sure.push_back(rows[to].per_gpu->value());
            ++to;
        }
        auto const& v = sure.empty() ? all : sure; // sorted by price already
        if (!v.empty()) {
            std::size_t const m = v.size() / 2;
            t.row({rows[from].gpu, rows[from].price_type, grouped(v.front(), 2), grouped(v.size() % 2 != 0 ? v[m] : (v[m - 1] + v[m]) / 2, 2), grouped(v.back(), 2),
                   fmt::format("{:.1f}", v.back() / v.front()), std::to_string(v.size()), sure.empty() ? "low, unverified or undated" : ""});
        }
        from = to;
    }
}

Result<int> list_prices_command(Args const& a, Context const& c) {
    std::vector<std::string> only;
    if (!a.gpu.empty()) {
        auto set = c.gpu_set(a.gpu);
        if (!set) return tl::unexpected<Error>{set.error()};
        only = {set->gpu.id};
    }
    auto rows = c.gpu_prices(only);
    if (!rows) return tl::unexpected<Error>{rows.error()};
    std::string const& kind = a.price_kind;
    std::size_t later = 0;
    std::erase_if(*rows, [&](GpuPrice const& r) {
        if (!kind.empty() && !is_price_kind(r.price_type, kind)) return true;
        if (!a.price_source.empty() && fold_name(r.provider).find(fold_name(a.price_source)) == std::string::npos) return true;
        if (!a.as_of.empty() && days_between(r.date, a.as_of).value_or(0) < 0) return ++later, true;
        return false;
    });
    if (rows->empty())
        return fail(ErrorCode::missing, "no such price", !a.price_source.empty() ? "--price-source" : !kind.empty() ? "--price-kind" : "--gpu",
                    later > 0 ? fmt::format("{} rows are later than {}", later, a.as_of) : "planner list prices shows every row");
    std::stable_sort(rows->begin(), rows->end(), [](GpuPrice const& x, GpuPrice const& y) {
        if (x.gpu != y.gpu) return x.gpu < y.gpu;
        if (x.price_type != y.price_type) return x.price_type < y.price_type;
        return x.per_gpu < y.per_gpu;
    });
    TextTable t;
    t.column("gpu", Align::left).column("kind", Align::left).column("$/GPU-h").column("provider", Align::left).column("unit", Align::left)
        .column("region", Align::left).column("date", Align::left).column("days old").column("confidence", Align::left);
    if (a.format != OutputFormat::text) t.column("url", Align::left);
    std::size_t stale = 0;
    for (GpuPrice const& r : *rows) {
        auto const age = days_between(r.date, c.as_of());
        if (age && *age > kStaleDays) ++stale;
        std::vector<std::string> cells{r.gpu, r.price_type, r.per_gpu ? grouped(r.per_gpu->value(), 3) : "", r.provider, r.sku, r.region.substr(0, 28),
                                       r.date.empty() ? "unknown" : r.date, age ? std::to_string(*age) : "", std::string{to_string(r.confidence)}};
        if (a.format != OutputFormat::text) cells.push_back(r.url);
        t.row(std::move(cells));
    }
    TextTable spread;
    spread.column("gpu", Align::left).column("kind", Align::left).column("lowest $/GPU-h").column("median").column("highest").column("highest / lowest").column("rows")
        .column("confidence", Align::left);
    spread_rows(spread, *rows, c.as_of());
    bool const md = a.format == OutputFormat::md;
    std::string foot = "\nSpread, rows of the last year with medium or high confidence where there are any:\n" + std::string{md ? "\n" : ""} + (md ? spread.markdown() : spread.text());
    foot += fmt::format("\n{} rows as of {}", rows->size(), c.as_of());
    if (stale > 0) foot += fmt::format(", {} of them older than {} days", stale, kStaleDays);
    if (later > 0) foot += fmt::format("; {} later rows left out", later);
    foot += md ? "\n" : "; --format csv shows the page of each\n";
    return show(a, t, foot);
}

Result<int> list_apis_command(Args const& a, Context const& c) {
    auto rows = c.api_prices({});
    if (!rows) return tl::unexpected<Error>{rows.error()};
    TextTable t;
    t.column("model", Align::left).column("provider", Align::left).column("kind", Align::left).column("input").column("cached").column("output")
        .column("when", Align::left).column("date", Align::left).column("confidence", Align::left);
    std::string const wanted = fold_name(!a.api.empty() ? a.api : a.positional.size() > 1 ? a.positional[1] : a.model);
    auto const usd = [](std::optional<UsdPerMillionTokens> const& x) { return optional_number(x ? std::optional<double>{x->value()} : std::nullopt, 3); };
    std::size_t n = 0;
    for (ApiPrice const& r : *rows) {
        if (!wanted.empty() && fold_name(r.model).find(wanted) == std::string::npos && fold_name(r.family).find(wanted) == std::string::npos) continue;
        ++n;
        auto const why = why_no_tariff(r);
        t.row({r.model, r.provider, r.provider_kind, usd(r.input), usd(r.cached_input), usd(r.output),
               (why.empty() ? r.applies_when : "no tariff: " + std::string{why}).substr(0, 48), r.date.empty() ? "unknown" : r.date, std::string{to_string(r.confidence)}});
    }
    return show(a, t, fmt::format("\n{} rows, USD per million tokens, as of {}\n", n, c.as_of()));
}

Result<std::vector<std::string>> wanted_models(Args const& a, Context const& c) {
    if (a.model.empty()) return std::vector<std::string>{};
    auto m = c.model(a.model);
    if (!m) return tl::unexpected<Error>{m.error()};
    return c.spellings(*m);
}

Result<int> list_benchmarks_command(Args const& a, Context const& c) {
    auto models = wanted_models(a, c);
    if (!models) return tl::unexpected<Error>{models.error()};
    auto rows = c.benchmarks(*models);
    if (!rows) return tl::unexpected<Error>{rows.error()};
    TextTable t;
    t.column("model", Align::left).column("gpu", Align::left).column("GPUs").column("layout", Align::left).column("engine", Align::left)
        .column("precision", Align::left).column("spec", Align::left).column("in").column("out").column("users").column("output tok/s").column("TTFT ms")
        .column("TPOT ms").column("date", Align::left).column("source", Align::left);
    std::string gpu;
    if (!a.gpu.empty()) {
        auto set = c.gpu_set(a.gpu);
        if (!set) return tl::unexpected<Error>{set.error()};
        gpu = set->gpu.id;
    }
    std::size_t n = 0;
    for (BenchmarkRow const& r : *rows) {
        if (!gpu.empty() && r.gpu != gpu) continue;
        ++n;
        std::string layout;
        if (r.tp) layout += "tp" + std::to_string(*r.tp);
        if (r.pp.value_or(1) > 1) layout += "pp" + std::to_string(*r.pp);
        if (r.dp.value_or(1) > 1) layout += "dp" + std::to_string(*r.dp);
        if (!r.ep.empty()) layout += " ep " + r.ep;
        t.row({r.model, r.gpu, std::to_string(r.n_gpus), layout, r.engine + (r.engine_version.empty() ? "" : " " + r.engine_version), r.precision, r.spec_method,
               optional_number(r.isl, 0), optional_number(r.osl, 0), optional_number(r.concurrency, 0),
               optional_number(r.output ? std::optional<double>{r.output->value()} : std::nullopt, 1),
               optional_number(r.ttft ? std::optional<double>{in_ms(*r.ttft)} : std::nullopt, 1),
               optional_number(r.tpot ? std::optional<double>{in_ms(*r.tpot)} : std::nullopt, 2), r.date.empty() ? "unknown" : r.date, r.source});
    }
    return show(a, t, fmt::format("\n{} rows\n", n));
}

Result<int> list_startups_command(Args const& a, Context const& c) {
    auto models = wanted_models(a, c);
    if (!models) return tl::unexpected<Error>{models.error()};
    auto rows = c.startups(*models);
    if (!rows) return tl::unexpected<Error>{rows.error()};
    TextTable t;
    t.column("id", Align::left).column("engine", Align::left).column("model", Align::left).column("gpu", Align::left).column("GPUs").column("tp")
        .column("max len").column("seqs").column("weights GiB").column("pool GiB").column("KV tokens").column("verdict", Align::left).column("date", Align::left);
    auto const gib_cell = [](std::optional<Bytes> const& b) { return b ? grouped(in_gib(*b), 2) : std::string{}; };
    for (StartupRow const& r : *rows)
        t.row({r.id, r.engine + (r.engine_version.empty() ? "" : " " + r.engine_version.substr(0, 16)), r.model, r.gpu, r.n_gpus ? std::to_string(*r.n_gpus) : "",
               r.tp ? std::to_string(*r.tp) : "", r.max_model_len ? grouped(r.max_model_len->value()) : "", r.max_num_seqs ? grouped(r.max_num_seqs->value()) : "",
               gib_cell(r.weights_per_gpu), gib_cell(r.available_kv_per_gpu), r.kv_tokens ? grouped(r.kv_tokens->value()) : "", r.verdict,
               r.date.empty() ? "unknown" : r.date});
    return show(a, t, fmt::format("\n{} rows\n", rows->size()));
}

Result<int> list_setups_command(Args const& a, Context const& c) {
    auto rows = c.setups({});
    if (!rows) return tl::unexpected<Error>{rows.error()};
    TextTable t;
    t.column("model", Align::left).column("gpu", Align::left).column("GPUs").column("engine", Align::left).column("GB on disk").column("download s")
        .column("start s").column("state", Align::left).column("date", Align::left).column("source", Align::left);
    for (SetupRow const& r : *rows)
        t.row({r.model, r.gpu, std::to_string(r.n_gpus), r.engine, r.bytes_on_disk ? grouped(in_gb(*r.bytes_on_disk), 1) : "",
               optional_number(r.download ? std::optional<double>{r.download->value()} : std::nullopt, 1),
               optional_number(r.start ? std::optional<double>{r.start->value()} : std::nullopt, 1), r.state, r.date.empty() ? "unknown" : r.date, r.source});
    return show(a, t);
}

Result<int> list_engines_command(Args const& a, Context const& c) {
    TextTable t;
    t.column("engine", Align::left);
    std::optional<Model> model;
    std::optional<GpuSet> set;
    if (!a.model.empty()) {
        auto m = c.model(a.model);
        if (!m) return tl::unexpected<Error>{m.error()};
        model = std::move(*m);
    }
    if (!a.gpu.empty()) {
        auto s = c.gpu_set(a.gpu);
        if (!s) return tl::unexpected<Error>{s.error()};
        set = std::move(*s);
    }
    if (model && set) {
        t.column("serves", Align::left).column("why", Align::left).column("source", Align::left);
        for (EngineKind const e : {EngineKind::vllm, EngineKind::sglang, EngineKind::trtllm, EngineKind::llama_cpp}) {
            Support const s = engine_support(e, *model, set->gpu);
            t.row({std::string{to_string(e)}, s.supported ? "yes" : "no", std::string{s.reason}, std::string{s.source}});
        }
        return show(a, t);
    }
    t.column("what is modelled", Align::left);
    t.row({"vllm", "budget, pages, groups, slots and verdict by version; the default engine"});
    t.row({"sglang", "static fraction, request and state slots, pools by version"});
    t.row({"trtllm", "PyTorch backend: budget of free memory, hybrid cost, lengths that are cut"});
    t.row({"llama.cpp", "layers over devices, window cache, recurrent state, compute buffers, fit"});
    return show(a, t, "\nWith --model and --gpu: which engine serves that model there, and why.\n");
}

} // namespace

Result<int> run_list(Args const& a) {
    std::vector<std::string> const kinds{"models", "gpus", "prices", "apis", "benchmarks", "startups", "setups", "engines"};
    if (a.positional.empty())
        return fail(ErrorCode::bad_usage, "list what?", "planner list", "models, gpus, prices, apis, benchmarks, startups, setups or engines");
    std::string kind = to_lower(a.positional.front());
    if (kind == "list") kind = a.positional.size() > 1 ? to_lower(a.positional[1]) : "";
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    if (kind == "models") return list_models_command(a);
    if (kind == "gpus") return list_gpus_command(a, *context);
    if (kind == "prices") return list_prices_command(a, *context);
    if (kind == "apis") return list_apis_command(a, *context);
    if (kind == "benchmarks") return list_benchmarks_command(a, *context);
    if (kind == "startups") return list_startups_command(a, *context);
    if (kind == "setups") return list_setups_command(a, *context);
    if (kind == "engines") return list_engines_command(a, *context);
    return fail(ErrorCode::unknown_name, "unknown list '" + a.positional.front() + "'", "planner list", did_you_mean(kind, kinds));
}

} // namespace planner
