// planner: import: benchmark reports, start-up logs and price lists of others
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <servecap/engine/doctor.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/import_bench.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/price_import.hpp>
#include <servecap/io/startup_csv.hpp>
#include <servecap/io/startup_log.hpp>

#include "context.hpp"
#include "output.hpp"

namespace planner {

using namespace servecap;

namespace {

enum class Sort : std::uint8_t { bench, prices, log };

/// What a file is, by --kind or by its shape.
struct Kind {
    Sort sort = Sort::bench;
    BenchFormat bench{};
    PriceFormat price{};
};

std::vector<std::string> kind_names() {
    std::vector<std::string> names;
    for (std::string_view n : kBenchFormats) names.emplace_back(n);
    for (int i = 0; i < 5; ++i) names.emplace_back(to_string(static_cast<PriceFormat>(i)));
    names.emplace_back("log");
    return names;
}

Result<Kind> kind_named(std::string const& asked) {
    auto const names = kind_names();
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (fold_name(asked) != fold_name(names[i]) && !(asked == "startup" && names[i] == "log")) continue;
        if (i < kBenchFormats.size()) return Kind{Sort::bench, static_cast<BenchFormat>(i), {}};
        if (i < kBenchFormats.size() + 5) return Kind{Sort::prices, {}, static_cast<PriceFormat>(i - kBenchFormats.size())};
        return Kind{Sort::log, {}, {}};
    }
    std::string all;
    for (auto const& n : names) all += (all.empty() ? "" : ", ") + n;
    auto hint = did_you_mean(asked, names);
    return fail(ErrorCode::unknown_name, "unknown kind '" + asked + "'", "--kind", hint.empty() ? all : hint);
}

/// The text holds lines of a start, not merely a command that would make one.
bool is_start(ObservedStart const& seen) {
    if (!seen.engine) return false;
    StartupRow const row = startup_row(seen, "m", "g", 0);
    return seen.starts || !seen.error.empty() || row.weights_per_gpu || row.available_kv_per_gpu || row.kv_tokens || row.gpu_blocks;
}

/// The kind of a text by its shape.
Result<Kind> kind_of(std::string const& text, std::string const& path) {
    if (auto const bench = guess_bench_format(text)) return Kind{Sort::bench, *bench, {}};
    if (auto const price = guess_price_format(text)) return Kind{Sort::prices, {}, *price};
    if (is_start(parse_startup_log(text))) return Kind{Sort::log, {}, {}};
    // Our own tables need no import.
    if (auto csv = CsvReader::open(text, path)) {
        if (csv->optional("isl") && csv->optional("precision"))
            return fail(ErrorCode::bad_usage, "this is a benchmarks CSV already", path, "give it to --benchmarks");
        if (csv->optional("available_kv_gib_per_gpu")) return fail(ErrorCode::bad_usage, "this is a start-ups CSV already", path, "give it to --startups");
    }
    std::string all;
    for (auto const& n : kind_names()) all += (all.empty() ? "" : ", ") + n;
    return fail(ErrorCode::bad_format, "no report, price list or log that is known by its shape", path, all);
}

/// Findings on standard error; at most thirty lines.
void tell(std::vector<ImportFinding> const& findings) {
    std::size_t n = 0;
    for (ImportFinding const& f : findings) {
        if (++n > 30) {
            warn(fmt::format("... and {} more remarks; --format json has all", findings.size() - 30));
            break;
        }
        warn(f.where + ": " + f.what + (f.dropped ? " (left out)" : ""));
    }
}

nlohmann::ordered_json findings_json(std::vector<ImportFinding> const& findings) {
    auto list = nlohmann::ordered_json::array();
    for (ImportFinding const& f : findings) list.push_back({{"where", f.where}, {"what", f.what}, {"dropped", f.dropped}});
    return list;
}

/// A CSV text as a list of objects, cells that are empty left out.
Result<nlohmann::ordered_json> rows_json(std::string const& csv_text) {
    auto table = read_csv_table(csv_text, "rows");
    if (!table) return tl::unexpected<Error>{table.error()};
    auto rows = nlohmann::ordered_json::array();
    for (auto const& row : table->rows) {
        nlohmann::ordered_json j = nlohmann::ordered_json::object();
        for (std::size_t i = 0; i < table->header.size(); ++i)
            if (!row[i].empty()) j[table->header[i]] = row[i];
        rows.push_back(std::move(j));
    }
    return rows;
}

/// A checkpoint's name tells its precision: that of its card in the catalogue.
void take_card_precision(BenchImport& i) {
    std::unordered_map<std::string, std::string> labels; // looked up only
    for (BenchmarkRow& r : i.rows) {
        if (!r.precision.empty()) continue;
        auto [at, fresh] = labels.try_emplace(r.model);
        if (fresh)
            if (auto m = load_model(r.model, {})) at->second = m->quant.label;
        if (at->second.empty()) continue;
        r.precision = at->second;
        if (auto const p = r.flags.find("prec?"); p != std::string::npos) r.flags.erase(p, p + 5 < r.flags.size() ? 6 : 5);
        while (!r.flags.empty() && r.flags.back() == ' ') r.flags.pop_back();
    }
    for (ImportFinding& f : i.findings)
        if (f.what.starts_with("precision not stated"))
            for (auto const& r : i.rows)
                if (!labels.empty() && !labels[r.model].empty()) {
                    f.what = "precision not stated: " + r.precision + ", that of the catalogue's card, is taken; --weights-dtype gives another";
                    break;
                }
}

Result<BenchImportOptions> bench_options(Args const& a, Context const& context) {
    BenchImportOptions o;
    o.model = a.model;
    o.names = &context.names();
    o.gpus = context.gpus();
    if (!a.gpu.empty()) {
        if (find_gpu(a.gpu, context.gpus()) != nullptr) {
            o.gpu = a.gpu; // without a number: the report or the layout counts
        } else {
            auto set = context.gpu_set(a.gpu);
            if (!set) return tl::unexpected<Error>{set.error()};
            o.gpu = set->gpu.id;
            o.n_gpus = set->count;
        }
    }
    auto const small = [](std::optional<std::int64_t> v) { return v ? std::optional<std::int32_t>{static_cast<std::int32_t>(*v)} : std::nullopt; };
    if (!a.layout.empty()) {
        auto l = parse_layout(a.layout);
        if (!l) return tl::unexpected<Error>{l.error()};
        o.tp = l->tp;
        if (l->pp > 1) o.pp = l->pp;
        if (l->dp > 1) o.dp = l->dp;
        o.replicas = l->replicas;
        if (l->ep) o.ep = std::to_string(l->ep_size());
        if (l->dp > 1) o.dp_attention = "yes";
        if (!o.n_gpus) o.n_gpus = l->gpus();
    }
    if (a.tp) o.tp = small(a.tp);
    if (a.pp) o.pp = small(a.pp);
    if (a.dp) o.dp = small(a.dp);
    if (a.replicas) o.replicas = small(a.replicas);
    if (a.ep && *a.ep > 1) o.ep = std::to_string(*a.ep);
    if (a.settings.weights_dtype && *a.settings.weights_dtype != "auto") o.precision = *a.settings.weights_dtype;
    if (a.engine_given) o.engine = std::string{to_string(a.settings.engine)};
    o.engine_version = a.settings.version;
    o.spec = a.settings.speculative_method;
    if (o.spec.empty() && a.settings.speculative_tokens > 0) o.spec = "yes";
    if (a.isl_given) o.isl = static_cast<double>(a.workload.isl.value());
    if (a.osl_given) o.osl = static_cast<double>(a.workload.osl.value());
    if (a.workload.concurrency.size() == 1) o.concurrency = static_cast<double>(a.workload.concurrency.front().value());
    o.date = a.import_date;
    o.source = a.import_source;
    o.url = a.import_url;
    return o;
}

Result<int> give(Args const& a, std::string_view kind, std::int64_t read, std::string const& csv, std::vector<ImportFinding> const& findings,
                 bool any) {
    std::string text = csv;
    if (a.format == OutputFormat::json) {
        auto rows = rows_json(csv);
        if (!rows) return tl::unexpected<Error>{rows.error()};
        nlohmann::ordered_json j;
        j["kind"] = kind;
        j["read"] = read;
        j["rows"] = *rows;
        j["findings"] = findings_json(findings);
        text = j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    } else {
        tell(findings);
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return any ? kAnswered : kNo;
}

} // namespace

Result<int> run_import(Args const& a) {
    if (a.positional.empty())
        return fail(ErrorCode::bad_usage, "no file named", "planner import", "benchmark reports, start-up logs or a price list; - is standard input");
    if (a.format == OutputFormat::md || a.format == OutputFormat::svg)
        return fail(ErrorCode::bad_usage, "rows are written as csv or json", "--format", "csv or json");
    if (!a.import_date.empty() && !is_iso_date(a.import_date))
        return fail(ErrorCode::bad_value, "'" + a.import_date + "' is no date", "--date", "expected YYYY-MM-DD");
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    std::optional<Kind> named;
    if (!a.kind.empty()) {
        auto k = kind_named(a.kind);
        if (!k) return tl::unexpected<Error>{k.error()};
        named = *k;
    }
    auto options = bench_options(a, *context);
    if (!options) return tl::unexpected<Error>{options.error()};

    std::optional<Sort> sort;
    std::string first;
    BenchImport bench;
    PriceImport prices;
    std::string logs, kinds;
    std::int64_t starts = 0;
    std::vector<ImportFinding> log_findings;
    std::vector<GpuPrice> known;
    for (std::string const& path : a.positional) {
        auto text = read_file(path == "-" ? "/dev/stdin" : path);
        if (!text) return tl::unexpected<Error>{text.error()};
        std::string const shown = path == "-" ? "standard input" : path;
        if (trim(*text).empty()) return fail(ErrorCode::bad_format, "the file is empty", shown, "a report, a log or a price list");
        auto kind = named ? Result<Kind>{*named} : kind_of(*text, shown);
        if (!kind) return tl::unexpected<Error>{kind.error()};
        if (sort && *sort != kind->sort)
            return fail(ErrorCode::bad_usage, "files of two sorts: " + first + " and " + shown, "planner import", "one sort of rows at a time");
        sort = kind->sort;
        if (first.empty()) first = shown;
        std::string name;
        if (kind->sort == Sort::bench) {
            name = to_string(kind->bench);
            auto one = import_bench(*text, shown, kind->bench, *options);
            if (!one) return tl::unexpected<Error>{one.error()};
            take_card_precision(*one);
            bench.read += one->read;
            for (auto& r : one->rows) bench.rows.push_back(std::move(r));
            for (auto& f : one->findings) bench.findings.push_back(std::move(f));
        } else if (kind->sort == Sort::log) {
            name = "log";
            ObservedStart const seen = parse_startup_log(*text);
            if (!is_start(seen)) {
                auto const other = kind_of(*text, shown);
                return fail(ErrorCode::bad_format, "no line of a start-up log is in it", shown,
                            other ? "it looks like another kind: leave --kind away" : "a log of vLLM, SGLang, TensorRT-LLM or llama.cpp");
            }
            StartupRow const row = startup_row(seen, a.model.empty() ? model_hint(seen) : a.model, options->gpu.empty() ? seen.gpu : options->gpu,
                                               options->n_gpus.value_or(0), a.import_source.empty() ? shown : a.import_source);
            auto csv = startup_row_csv(row, logs, shown);
            if (!csv) return tl::unexpected<Error>{csv.error()};
            logs += *csv;
            ++starts;
            for (std::string const& n : seen.notes) log_findings.push_back({shown, n, false});
        } else {
            name = to_string(kind->price);
            if (known.empty()) {
                auto rows = context->gpu_prices({});
                if (!rows) return tl::unexpected<Error>{rows.error()};
                known = std::move(*rows);
            }
            PriceImportOptions o;
            o.provider = a.price_source;
            o.date = a.import_date;
            o.as_of = context->as_of();
            o.url = a.import_url;
            o.gpus = context->gpus();
            o.known = known;
            auto one = import_prices(*text, shown, kind->price, o);
            if (!one) return tl::unexpected<Error>{one.error()};
            prices.read += one->read;
            for (auto& r : one->gpu_prices) prices.gpu_prices.push_back(std::move(r));
            for (auto& r : one->api_prices) prices.api_prices.push_back(std::move(r));
            for (auto& f : one->findings) prices.findings.push_back(std::move(f));
        }
        if (kinds.find(name) == std::string::npos) kinds += (kinds.empty() ? "" : ", ") + name;
    }
    if (sort == Sort::bench) {
        warn(fmt::format("{}: {} run{} read, {} row{} written", kinds, bench.read, bench.read == 1 ? "" : "s", bench.rows.size(), bench.rows.size() == 1 ? "" : "s"));
        return give(a, kinds, bench.read, write_benchmarks(bench.rows), bench.findings, !bench.rows.empty());
    }
    if (sort == Sort::log) return give(a, kinds, starts, logs, log_findings, starts > 0);
    warn(fmt::format("{} list: {} rows read, {} GPU prices and {} API prices written", kinds, prices.read, prices.gpu_prices.size(), prices.api_prices.size()));
    return give(a, kinds, prices.read, !prices.gpu_prices.empty() ? write_gpu_prices(prices.gpu_prices) : write_api_prices(prices.api_prices), prices.findings,
                !prices.gpu_prices.empty() || !prices.api_prices.empty());
}

} // namespace planner
