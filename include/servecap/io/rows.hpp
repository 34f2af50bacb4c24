// servecap: the catalogue's CSV files -> rows
// SPDX-License-Identifier: Apache-2.0
//
// One function a file. Text and a file name (for messages) go in, rows or the first mistake come out. A cell that
// is empty is unknown. Rows may be narrowed to some models or GPUs while reading, so that one plan does not pay
// for the whole catalogue. Other spellings of models, GPUs and engines are brought to the canonical ones where a
// NameMap (data/names.csv) is given; the built-in files are canonical already.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/text.hpp>
#include <servecap/cost/money.hpp>
#include <servecap/io/csv.hpp>

namespace servecap {

/// Spellings -> canonical names, by kind ("model", "gpu", "engine").
class NameMap {
public:
    static Result<NameMap> read(std::string_view text, std::string_view file) {
        auto csv = CsvReader::open(text, file);
        if (!csv) return tl::unexpected<Error>{csv.error()};
        auto const kind = csv->required("kind"), written = csv->required("written"), canonical = csv->required("canonical");
        NameMap m;
        m.index_.reserve(text.size() / 16);
        while (csv->next()) {
            Entry e{csv->string(kind), csv->string(written), csv->string(canonical)};
            auto const at = static_cast<std::uint32_t>(m.entries_.size());
            m.index_.emplace(key(e.kind, e.written), at);
            m.index_.emplace(key(e.kind, e.canonical), at);
            m.entries_.push_back(std::move(e));
        }
        if (csv->failed()) return tl::unexpected<Error>{csv->error()};
        return m;
    }

    /// The canonical name of `written`, if the map has it; compared without case, with '_', ' ' and '/' as '-'.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view kind, std::string_view written) const {
        auto const at = index_.find(key(kind, written));
        if (at == index_.end()) return std::nullopt;
        return entries_[at->second].canonical;
    }

    /// The canonical name, or `written` itself where the map does not have it.
    [[nodiscard]] std::string canonical(std::string_view kind, std::string_view written) const {
        auto const c = find(kind, written);
        return std::string{c ? *c : written};
    }

    /// Every spelling of `canonical`, itself first, as they stand in the map.
    [[nodiscard]] std::vector<std::string> spellings(std::string_view kind, std::string_view canonical) const {
        std::vector<std::string> out{std::string{canonical}};
        for (Entry const& e : entries_)
            if (e.kind == kind && e.canonical == canonical) out.push_back(e.written);
        return out;
    }

private:
    struct Entry {
        std::string kind, written, canonical;
    };
    static std::string key(std::string_view kind, std::string_view name) { return std::string{kind} + ":" + fold_name(name); }
    std::vector<Entry> entries_;
    std::unordered_map<std::string, std::uint32_t> index_; // looked up only, never walked: its order shows nowhere
};

/// How rows are read.
struct RowOptions {
    std::span<std::string const> only; ///< names to keep (models, GPUs for GPU prices), as written or canonical; empty = all
    NameMap const* names = nullptr;    ///< brings other spellings to canonical names
    bool user = false;                 ///< the file was given on the command line
    std::span<std::string const> mention{}; ///< API prices: records that mention none of these are passed over; empty = none is
};

namespace detail {

inline std::string canonical_name(RowOptions const& o, std::string_view kind, std::string_view written) {
    return o.names == nullptr ? std::string{written} : o.names->canonical(kind, written);
}

/// Which rows are wanted. Files hold runs of rows of one model, so the last answer is kept.
class RowFilter {
public:
    RowFilter(RowOptions const& o, std::string_view kind) : options_{o}, kind_{kind} {}

    /// Moves to the next record whose name in `key` is asked for.
    bool next(CsvReader& csv, CsvColumn key) {
        if (options_.only.empty()) return csv.next();
        return csv.next_where(key, [&](std::string_view written) {
            if (!known_ || written != last_) {
                last_ = written;
                known_ = true;
                wanted_ = wanted(written);
            }
            return wanted_;
        });
    }

private:
    [[nodiscard]] bool listed(std::string_view name) const {
        return std::find(options_.only.begin(), options_.only.end(), name) != options_.only.end();
    }
    [[nodiscard]] bool wanted(std::string_view written) const {
        if (listed(written)) return true;
        if (options_.names == nullptr) return false;
        auto const c = options_.names->find(kind_, written);
        return c && listed(*c);
    }
    RowOptions const& options_;
    std::string_view kind_;
    std::string last_;
    bool known_ = false, wanted_ = false;
};

inline RowOrigin origin_of(CsvReader const& csv, RowOptions const& o) { return {csv.file(), csv.line(), o.user}; }

template <class Count>
std::optional<Count> count_of(CsvReader& csv, CsvColumn c, std::int64_t low, std::int64_t high) {
    auto const n = csv.whole(c, low, high);
    return n ? std::optional<Count>{Count{*n}} : std::nullopt;
}

inline std::optional<std::int32_t> small_count(CsvReader& csv, CsvColumn c, std::int64_t low = 1, std::int64_t high = 1'000'000) {
    auto const n = csv.whole(c, low, high);
    return n ? std::optional<std::int32_t>{static_cast<std::int32_t>(*n)} : std::nullopt;
}

template <class Measure>
std::optional<Measure> measure_of(CsvReader& csv, CsvColumn c, double low, double high, double scale = 1.0) {
    auto const v = csv.number(c, low, high);
    return v ? std::optional<Measure>{Measure{*v * scale}} : std::nullopt;
}

// Engines log negative room ("Available KV cache memory: -0.3 GiB") when nothing is left.
inline std::optional<Bytes> gib_of(CsvReader& csv, CsvColumn c) {
    auto const v = csv.number(c, -1e7, 1e7);
    return v ? std::optional<Bytes>{gib(*v)} : std::nullopt;
}

inline std::optional<Bytes> mib_of(CsvReader& csv, CsvColumn c) {
    auto const n = csv.whole(c, 1, 1'000'000'000);
    return n ? std::optional<Bytes>{mib(*n)} : std::nullopt;
}

inline Confidence confidence_of(CsvReader& csv, CsvColumn c) {
    std::string_view const s = csv.text(c);
    if (s == "high") return Confidence::high;
    if (s == "medium") return Confidence::medium;
    if (s == "low") return Confidence::low;
    if (!s.empty() && s != "unverified") csv.refuse(c, "is no confidence", "expected high, medium, low or unverified");
    return Confidence::unverified;
}

/// "yes", "yes (OCP)" -> true; "no ...", "" -> false.
inline bool yes(std::string_view s) noexcept { return s.substr(0, 3) == "yes"; }

template <class T>
Result<std::vector<T>> rows_or_error(CsvReader const& csv, std::vector<T>&& rows) {
    if (csv.failed()) return tl::unexpected<Error>{csv.error()};
    return std::move(rows);
}

} // namespace detail

/// Measured serving runs (data/benchmarks.csv). `only` names models.
inline Result<std::vector<BenchmarkRow>> read_benchmarks(std::string_view text, std::string_view file, RowOptions const& o = {}) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const model = csv.required("model"), precision = csv.required("precision"), gpu = csv.required("gpu"),
               n_gpus = csv.required("n_gpus"), tp = csv.required("tp"), pp = csv.required("pp"), dp = csv.required("dp"),
               ep = csv.required("ep"), dp_attention = csv.required("dp_attention"), replicas = csv.required("replicas"),
               engine = csv.required("engine"), engine_version = csv.required("engine_version"),
               spec = csv.required("spec_method"), isl = csv.required("isl"), osl = csv.required("osl"),
               isl_mean = csv.required("isl_mean"), osl_mean = csv.required("osl_mean"),
               concurrency = csv.required("concurrency");
    csv.any_of({"output_tok_s", "ttft_ms", "tpot_ms"});
    auto const output = csv.optional("output_tok_s"), ttft = csv.optional("ttft_ms"), tpot = csv.optional("tpot_ms"),
               date = csv.optional("date"), source = csv.optional("source"), url = csv.optional("url"),
               grade = csv.optional("grade"), dataset = csv.optional("dataset"), out_basis = csv.optional("out_basis"),
               lat_basis = csv.optional("lat_basis"), flags = csv.optional("flags"), note = csv.optional("note");
    std::vector<BenchmarkRow> rows;
    detail::RowFilter filter{o, "model"};
    while (!csv.failed() && filter.next(csv, model)) {
        BenchmarkRow& r = rows.emplace_back();
        r.model = detail::canonical_name(o, "model", csv.text(model));
        if (r.model.empty()) csv.refuse(model, "names no model", "the model of the row");
        r.precision = csv.string(precision);
        r.gpu = detail::canonical_name(o, "gpu", csv.text(gpu));
        r.n_gpus = detail::small_count(csv, n_gpus).value_or(0);
        r.tp = detail::small_count(csv, tp);
        r.pp = detail::small_count(csv, pp);
        r.dp = detail::small_count(csv, dp);
        r.replicas = detail::small_count(csv, replicas);
        r.ep = csv.string(ep);
        r.dp_attention = csv.string(dp_attention);
        r.engine = detail::canonical_name(o, "engine", csv.text(engine));
        r.engine_version = csv.string(engine_version);
        r.spec_method = csv.string(spec);
        r.isl = csv.number(isl, 1, 1e9);
        r.osl = csv.number(osl, 1, 1e9);
        r.isl_mean = csv.number(isl_mean, 0.5, 1e9);
        r.osl_mean = csv.number(osl_mean, 0.5, 1e9);
        r.concurrency = csv.number(concurrency, 0.01, 1e9);
        r.output = detail::measure_of<TokensPerSecond>(csv, output, 1e-9, 1e12);
        r.ttft = detail::measure_of<Seconds>(csv, ttft, 1e-9, 1e10, 1e-3);
        r.tpot = detail::measure_of<Seconds>(csv, tpot, 1e-9, 1e10, 1e-3);
        r.date = csv.date(date);
        r.source = csv.string(source);
        r.url = csv.string(url);
        r.grade = csv.string(grade);
        r.dataset = csv.string(dataset);
        r.out_basis = csv.string(out_basis);
        r.lat_basis = csv.string(lat_basis);
        r.flags = csv.string(flags);
        r.note = csv.string(note);
        r.origin = detail::origin_of(csv, o);
    }
    return detail::rows_or_error(csv, std::move(rows));
}

/// The verdict that a `failure_kind` of older start-up files stands for; as written where it stands for none.
inline std::string_view verdict_of_failure_kind(std::string_view kind) noexcept {
    if (kind == "mamba_blocks") return "state_slots_too_few";
    if (kind == "max_len_too_big") return "max_model_len_too_long";
    if (kind == "oom_kv") return "no_kv_memory";
    if (kind == "oom_weights") return "weights_do_not_fit";
    if (kind == "heads_divide" || kind == "vocab_divides") return "layout_invalid";
    return kind;
}

/// Real starts and refusals (data/startups.csv). `only` names models.
inline Result<std::vector<StartupRow>> read_startups(std::string_view text, std::string_view file, RowOptions const& o = {}) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const engine = csv.required("engine"), engine_version = csv.required("engine_version"), model = csv.required("model"),
               gpu = csv.required("gpu"), n_gpus = csv.required("n_gpus"), tp = csv.required("tp"), pp = csv.required("pp"),
               dp = csv.required("dp"), ep = csv.required("ep"), weights_precision = csv.required("weights_precision"),
               kv_dtype = csv.required("kv_cache_dtype"), utilization = csv.required("gpu_memory_utilization"),
               max_len = csv.required("max_model_len"), max_seqs = csv.required("max_num_seqs"),
               max_batched = csv.required("max_num_batched_tokens"), other = csv.required("other_flags");
    csv.any_of({"weights_gib_per_gpu", "available_kv_gib_per_gpu", "kv_tokens", "gpu_blocks", "block_size", "state_slots",
                "starts", "verdict", "failure_kind"});
    auto const id = csv.optional("id"), weights = csv.optional("weights_gib_per_gpu"),
               pool = csv.optional("available_kv_gib_per_gpu"), kv_tokens = csv.optional("kv_tokens"),
               max_x = csv.optional("max_concurrency_x"), blocks = csv.optional("gpu_blocks"),
               block_size = csv.optional("block_size"), slots = csv.optional("state_slots"),
               graph = csv.optional("cuda_graph_gib"), activation = csv.optional("peak_activation_gib"),
               non_torch = csv.optional("non_torch_gib"), starts = csv.optional("starts"), failure = csv.optional("failure_kind"),
               verdict = csv.optional("verdict"), error = csv.optional("error_text_short"),
               error_long = csv.optional("error_text"), date = csv.optional("date"), source = csv.optional("source"),
               url = csv.optional("url"), note = csv.optional("note"), usable = csv.optional("usable"),
               why_not = csv.optional("why_not"), precision_canonical = csv.optional("weights_precision_canonical"),
               kv_canonical = csv.optional("kv_dtype_canonical"), written_model = csv.optional("model_as_written");
    std::vector<StartupRow> rows;
    detail::RowFilter filter{o, "model"};
    while (!csv.failed() && filter.next(csv, model)) {
        StartupRow& r = rows.emplace_back();
        r.id = csv.string(id);
        r.engine = detail::canonical_name(o, "engine", csv.text(engine));
        r.engine_version = csv.string(engine_version);
        r.model = detail::canonical_name(o, "model", csv.text(model));
        r.gpu = detail::canonical_name(o, "gpu", csv.text(gpu));
        r.n_gpus = detail::small_count(csv, n_gpus);
        r.tp = detail::small_count(csv, tp);
        r.pp = detail::small_count(csv, pp);
        r.dp = detail::small_count(csv, dp);
        r.ep = csv.string(ep);
        r.weights_precision = csv.string(csv.text(precision_canonical).empty() ? weights_precision : precision_canonical);
        r.kv_cache_dtype = csv.string(csv.text(kv_canonical).empty() ? kv_dtype : kv_canonical);
        r.kv_cache_dtype_as_written = csv.string(kv_dtype);
        r.model_as_written = csv.string(written_model);
        r.gpu_memory_utilization = csv.number(utilization, 0.001, 1.0);
        r.max_model_len = detail::count_of<Tokens>(csv, max_len, -1, 1'000'000'000);
        r.max_num_seqs = detail::count_of<Requests>(csv, max_seqs, 1, 10'000'000);
        r.max_num_batched_tokens = detail::count_of<Tokens>(csv, max_batched, 1, 1'000'000'000);
        r.other_flags = csv.string(other);
        r.weights_per_gpu = detail::gib_of(csv, weights);
        r.available_kv_per_gpu = detail::gib_of(csv, pool);
        r.kv_tokens = detail::count_of<Tokens>(csv, kv_tokens, 0, 1'000'000'000'000);
        r.max_concurrency = csv.number(max_x, 0, 1e9);
        r.gpu_blocks = csv.whole(blocks, 0, 1'000'000'000'000);
        r.block_size = csv.whole(block_size, 1, 100'000'000);
        r.state_slots = csv.whole(slots, 0, 1'000'000'000);
        r.cuda_graph = detail::gib_of(csv, graph);
        r.peak_activation = detail::gib_of(csv, activation);
        r.non_torch = detail::gib_of(csv, non_torch);
        r.starts = to_lower(csv.text(starts));
        if (r.starts == "true") r.starts = "yes";
        if (r.starts == "false") r.starts = "no";
        if (!r.starts.empty() && r.starts != "yes" && r.starts != "no")
            csv.refuse(starts, "is neither yes nor no", "yes, no or nothing");
        r.verdict = csv.string(verdict);
        if (r.verdict.empty()) r.verdict = std::string{verdict_of_failure_kind(csv.text(failure))};
        if (r.verdict.empty() && r.starts == "yes") r.verdict = "starts";
        if (r.starts.empty() && !r.verdict.empty()) r.starts = r.verdict == "starts" ? "yes" : "no";
        r.error_text = csv.string(csv.text(error).empty() ? error_long : error);
        r.date = csv.date(date);
        r.source = csv.string(source);
        r.url = csv.string(url);
        r.note = csv.string(note);
        r.usable = csv.string(usable);
        r.why_not = csv.string(why_not);
        r.origin = detail::origin_of(csv, o);
    }
    return detail::rows_or_error(csv, std::move(rows));
}

/// GPU prices (data/gpu_prices.csv). `only` names GPUs. Prices are $ an hour; a row of zero or less is a mistake.
inline Result<std::vector<GpuPrice>> read_gpu_prices(std::string_view text, std::string_view file, RowOptions const& o = {}) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const provider = csv.required("provider"), gpu = csv.required("gpu_id"), type = csv.required("price_type"),
               per_gpu = csv.required("usd_per_gpu_hour"), date = csv.required("price_date");
    auto const provider_class = csv.optional("provider_class"), gpu_name = csv.optional("gpu_name"),
               sku = csv.optional("instance_or_sku"), unit = csv.optional("gpus_per_unit"),
               per_unit = csv.optional("usd_per_unit_hour"), original = csv.optional("price_original"),
               region = csv.optional("region"), date_kind = csv.optional("date_kind"), confidence = csv.optional("confidence"),
               url = csv.optional("source_url"), notes = csv.optional("notes");
    std::vector<GpuPrice> rows;
    detail::RowFilter filter{o, "gpu"};
    while (!csv.failed() && filter.next(csv, gpu)) {
        GpuPrice& r = rows.emplace_back();
        r.provider = csv.string(provider);
        r.provider_class = csv.string(provider_class);
        r.gpu = detail::canonical_name(o, "gpu", csv.text(gpu));
        if (r.gpu.empty()) csv.refuse(gpu, "names no GPU", "a GPU of gpus.csv");
        r.gpu_name = csv.string(gpu_name);
        r.sku = csv.string(sku);
        r.gpus_per_unit = detail::small_count(csv, unit);
        r.price_type = to_lower(csv.text(type));
        r.per_gpu = detail::measure_of<UsdPerHour>(csv, per_gpu, 1e-6, 1e6);
        r.per_unit = detail::measure_of<UsdPerHour>(csv, per_unit, 1e-6, 1e9);
        if (!r.per_gpu && r.per_unit && r.gpus_per_unit) r.per_gpu = *r.per_unit / *r.gpus_per_unit;
        r.price_original = csv.string(original);
        r.region = csv.string(region);
        r.date = csv.date(date);
        r.date_kind = csv.string(date_kind);
        r.confidence = confidence ? detail::confidence_of(csv, confidence) : (o.user ? Confidence::high : Confidence::unverified);
        r.url = csv.string(url);
        r.notes = csv.string(notes);
        r.origin = detail::origin_of(csv, o);
    }
    return detail::rows_or_error(csv, std::move(rows));
}

/// API tariffs (data/api_prices.csv), $ a million tokens. `only` names model ids of the provider.
inline Result<std::vector<ApiPrice>> read_api_prices(std::string_view text, std::string_view file, RowOptions const& o = {}) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const model = csv.required("model_id"), provider = csv.required("provider"), input = csv.required("input_usd_per_m"),
               output = csv.required("output_usd_per_m");
    auto const family = csv.optional("family"), provider_model = csv.optional("provider_model_id"),
               kind = csv.optional("provider_kind"), cached = csv.optional("cached_input_usd_per_m"),
               write_5m = csv.optional("cache_write_5m_usd_per_m"), write_1h = csv.optional("cache_write_1h_usd_per_m"),
               applies = csv.optional("applies_when"), tier = csv.optional("tier_min_input_tokens"),
               from = csv.optional("valid_from"), to = csv.optional("valid_to"), date = csv.optional("price_date"),
               confidence = csv.optional("confidence"), url = csv.optional("source_url"), notes = csv.optional("notes");
    std::vector<ApiPrice> rows;
    auto const money = [&](CsvColumn c) { return detail::measure_of<UsdPerMillionTokens>(csv, c, 0, 1e6); };
    detail::RowFilter filter{o, "api"};
    while (!csv.failed() && (o.mention.empty() ? filter.next(csv, model) : csv.next_with(o.mention))) {
        ApiPrice& r = rows.emplace_back();
        r.family = csv.string(family);
        r.model = csv.string(model);
        if (r.model.empty()) csv.refuse(model, "names no model", "the model id of the provider");
        r.provider = csv.string(provider);
        r.provider_model = csv.string(provider_model);
        r.provider_kind = csv.string(kind);
        r.input = money(input);
        r.cached_input = money(cached);
        r.cache_write_5m = money(write_5m);
        r.cache_write_1h = money(write_1h);
        r.output = money(output);
        r.applies_when = csv.string(applies);
        r.tier_min_input = detail::count_of<Tokens>(csv, tier, 0, 1'000'000'000);
        if (!csv.text(from).empty()) r.valid_from = csv.date(from);
        if (!csv.text(to).empty()) r.valid_to = csv.date(to);
        r.date = csv.date(date);
        r.confidence = confidence ? detail::confidence_of(csv, confidence) : (o.user ? Confidence::high : Confidence::unverified);
        r.url = csv.string(url);
        r.notes = csv.string(notes);
        r.origin = detail::origin_of(csv, o);
    }
    return detail::rows_or_error(csv, std::move(rows));
}

/// Measured downloads and starts (data/setups.csv). `only` names models.
inline Result<std::vector<SetupRow>> read_setups(std::string_view text, std::string_view file, RowOptions const& o = {}) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const model = csv.required("model"), gpu = csv.required("gpu");
    csv.any_of({"download_s", "start_s", "weights_s", "engine_init_s"});
    auto const n_gpus = csv.optional("n_gpus"), engine = csv.optional("engine"), engine_version = csv.optional("engine_version"),
               size = csv.optional("bytes_on_disk"), download = csv.optional("download_s"), start = csv.optional("start_s"),
               weights = csv.optional("weights_s"), loader = csv.optional("loader"), init = csv.optional("engine_init_s"),
               state = csv.optional("state"), first = csv.optional("first_launch_to_ready_s"),
               failed = csv.optional("failed_first_start"), date = csv.optional("date"), source = csv.optional("source"),
               url = csv.optional("url"), note = csv.optional("note");
    std::vector<SetupRow> rows;
    auto const seconds = [&](CsvColumn c) { return detail::measure_of<Seconds>(csv, c, 0, 1e8); };
    detail::RowFilter filter{o, "model"};
    while (!csv.failed() && filter.next(csv, model)) {
        SetupRow& r = rows.emplace_back();
        r.model = detail::canonical_name(o, "model", csv.text(model));
        r.gpu = detail::canonical_name(o, "gpu", csv.text(gpu));
        r.n_gpus = detail::small_count(csv, n_gpus).value_or(0);
        r.engine = detail::canonical_name(o, "engine", csv.text(engine));
        r.engine_version = csv.string(engine_version);
        r.bytes_on_disk = detail::count_of<Bytes>(csv, size, 1, std::int64_t{1} << 60);
        r.download = seconds(download);
        r.start = seconds(start);
        r.weights = seconds(weights);
        r.engine_init = seconds(init);
        r.first_launch_to_ready = seconds(first);
        r.loader = csv.string(loader);
        r.state = csv.string(state);
        r.failed_first_start = csv.string(failed);
        r.date = csv.date(date);
        r.source = csv.string(source);
        r.url = csv.string(url);
        r.note = csv.string(note);
        r.origin = detail::origin_of(csv, o);
    }
    return detail::rows_or_error(csv, std::move(rows));
}

/// Dated rates of currencies (data/currency.csv): units a US dollar buys.
inline Result<std::vector<CurrencyRate>> read_currency_rates(std::string_view text, std::string_view file) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const currency = csv.required("currency"), rate = csv.required("per_usd"), date = csv.required("date"),
               source = csv.optional("source"), url = csv.optional("url");
    std::vector<CurrencyRate> rows;
    while (!csv.failed() && csv.next()) {
        CurrencyRate& r = rows.emplace_back();
        r.currency = csv.string(currency);
        if (r.currency.size() != 3) csv.refuse(currency, "is no currency", "a code of three letters such as CNY");
        auto const v = csv.number(rate, 1e-6, 1e9);
        if (!v) csv.refuse(rate, "is no rate", "units of the currency that a US dollar buys");
        r.per_usd = v.value_or(0);
        r.date = csv.date(date);
        if (r.date == "unknown") csv.refuse(date, "is no date", "a rate without a date is of no use");
        r.source = csv.string(source);
        r.url = csv.string(url);
    }
    return detail::rows_or_error(csv, std::move(rows));
}

/// Fitted coefficients: name, value, sd.
inline Result<std::vector<Coefficient>> read_coefficients(std::string_view text, std::string_view file) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const name = csv.required("name"), value = csv.required("value"), sd = csv.optional("sd");
    std::vector<Coefficient> rows;
    while (!csv.failed() && csv.next()) {
        Coefficient& r = rows.emplace_back();
        r.name = csv.string(name);
        if (r.name.empty()) csv.refuse(name, "names no coefficient", "a name");
        auto const v = csv.number(value, -1e300, 1e300);
        if (!v) csv.refuse(value, "is no value", "a number");
        r.value = v.value_or(0);
        r.sd = csv.number(sd, 0, 1e300).value_or(0);
    }
    return detail::rows_or_error(csv, std::move(rows));
}

namespace detail {

/// Fills `visible` of every GPU whose runtime total is not measured. What runtimes hide (page tables, firmware) was
/// seen as an amount plus a share of the reported memory: 0.3 to 0.6 % on 80 to 288 GB parts, 1.5 % on 32 GB. So per
/// vendor a straight line hidden = a + b * reported through the measured parts (three or more), else their mean
/// share. Parts without a reported total take the printed GB as 10^9 bytes, the smaller reading.
inline void estimate_visible(std::vector<Gpu>& gpus) {
    struct Sums {
        double n = 0, x = 0, y = 0, xx = 0, xy = 0, share = 0;
    };
    std::array<Sums, 4> by_vendor{};
    Sums all;
    for (Gpu const& g : gpus) {
        if (!g.memory_reported || !g.memory_visible) continue;
        double const x = in_gib(*g.memory_reported), y = x - in_gib(*g.memory_visible);
        for (Sums* s : {&by_vendor[static_cast<std::size_t>(g.vendor)], &all}) {
            s->n += 1;
            s->x += x;
            s->y += y;
            s->xx += x * x;
            s->xy += x * y;
            s->share += y / x;
        }
    }
    for (Gpu& g : gpus) {
        if (g.memory_visible) {
            g.visible = *g.memory_visible;
            continue;
        }
        g.visible_is_estimate = true;
        double reported = 0;
        if (g.memory_reported)
            reported = in_gib(*g.memory_reported);
        else {
            double printed = 0;
            std::string_view const s = g.memory_printed;
            std::from_chars(s.data(), s.data() + s.size(), printed);
            reported = printed * 1e9 / 1073741824.0;
        }
        Sums const& own = by_vendor[static_cast<std::size_t>(g.vendor)];
        Sums const& s = own.n > 0 ? own : all;
        double hidden = 0;
        if (double const d = s.n * s.xx - s.x * s.x; s.n >= 3 && d > 0) {
            double const slope = (s.n * s.xy - s.x * s.y) / d;
            hidden = (s.y - slope * s.x) / s.n + slope * reported;
        } else if (s.n > 0) {
            hidden = s.share / s.n * reported;
        }
        g.visible = gib(std::max(0.0, reported - std::max(0.0, hidden)));
    }
}

} // namespace detail

/// GPUs (data/gpus.csv), with `visible` filled for all of them.
inline Result<std::vector<Gpu>> read_gpus(std::string_view text, std::string_view file) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const id = csv.required("gpu_id"), name = csv.required("name"), vendor = csv.required("vendor"),
               printed = csv.required("memory_marketing_gb"), reported = csv.required("memory_reported_mib"),
               visible = csv.required("cuda_or_runtime_visible_mib"), bandwidth = csv.required("mem_bw_gb_per_s");
    auto const short_name = csv.optional("short_name"), architecture = csv.optional("architecture"),
               status = csv.optional("status"), fp16 = csv.optional("fp16_dense_tflops"),
               bf16 = csv.optional("bf16_dense_tflops"), fp8 = csv.optional("fp8_dense_tflops"),
               fp6 = csv.optional("fp6_dense_tflops"), fp4 = csv.optional("fp4_dense_tflops"),
               int8 = csv.optional("int8_dense_tops"), native_fp8 = csv.optional("native_fp8"),
               native_mxfp4 = csv.optional("native_mxfp4"), native_nvfp4 = csv.optional("native_nvfp4"),
               link = csv.optional("scaleup_link"), scaleup = csv.optional("scaleup_gb_per_s_per_direction"),
               domain = csv.optional("scaleup_domain_gpus"), pcie = csv.optional("pcie_gb_per_s_per_direction"),
               tdp = csv.optional("tdp_w"), sms = csv.optional("sm_or_cu_count"), capability = csv.optional("compute_capability"),
               node = csv.optional("node_gpus"), ram = csv.optional("node_ram_gib"),
               nic = csv.optional("node_nic_gb_per_s_per_gpu_per_direction"), power = csv.optional("node_power_kw"),
               url = csv.optional("source_url"), notes = csv.optional("notes"), unverified = csv.optional("unverified_columns");
    std::vector<Gpu> rows;
    while (!csv.failed() && csv.next()) {
        Gpu& g = rows.emplace_back();
        g.id = csv.string(id);
        if (g.id.empty()) csv.refuse(id, "names no GPU", "an id such as h100-sxm");
        if (std::any_of(rows.begin(), rows.end() - 1, [&](Gpu const& other) { return other.id == g.id; }))
            csv.refuse(id, "occurs twice", "one row a GPU");
        g.name = csv.string(name);
        g.short_name = csv.string(csv.text(short_name).empty() ? name : short_name);
        std::string const v = to_lower(csv.text(vendor));
        g.vendor = v == "nvidia"  ? GpuVendor::nvidia
                   : v == "amd"   ? GpuVendor::amd
                   : v == "intel" ? GpuVendor::intel
                                  : GpuVendor::other;
        g.architecture = csv.string(architecture);
        g.compute_capability = csv.string(capability);
        g.status_text = csv.string(status);
        std::string_view const st = g.status_text;
        g.status = st.empty() || st.substr(0, 9) == "available" ? Availability::available
                   : st.substr(0, 6) == "legacy"                ? Availability::legacy
                   : st.substr(0, 5) == "China"                 ? Availability::restricted
                                                                : Availability::announced;
        g.memory_printed = csv.string(printed);
        static_cast<void>(csv.number(printed, 1, 100'000));
        g.memory_reported = detail::mib_of(csv, reported);
        g.memory_visible = detail::mib_of(csv, visible);
        if (g.memory_reported && g.memory_visible && *g.memory_visible > *g.memory_reported)
            csv.refuse(visible, "is more than the reported memory", "at most memory_reported_mib");
        g.bandwidth = detail::measure_of<BytesPerSecond>(csv, bandwidth, 1, 1e7, 1e9);
        auto const rate = [&](CsvColumn c) { return detail::measure_of<FlopsPerSecond>(csv, c, 0.001, 1e7, 1e12); };
        g.fp16 = rate(fp16);
        g.bf16 = rate(bf16);
        g.fp8 = rate(fp8);
        g.fp6 = rate(fp6);
        g.fp4 = rate(fp4);
        g.int8 = rate(int8);
        g.native_fp8 = detail::yes(csv.text(native_fp8));
        g.native_mxfp4 = detail::yes(csv.text(native_mxfp4));
        g.native_nvfp4 = detail::yes(csv.text(native_nvfp4));
        g.scaleup_link = csv.string(link);
        g.scaleup = detail::measure_of<BytesPerSecond>(csv, scaleup, 0.001, 1e7, 1e9);
        g.scaleup_domain = detail::small_count(csv, domain).value_or(1);
        g.pcie = detail::measure_of<BytesPerSecond>(csv, pcie, 0.001, 1e7, 1e9);
        g.tdp = detail::measure_of<Watts>(csv, tdp, 1, 1e6);
        g.sm_count = detail::small_count(csv, sms).value_or(0);
        g.node_gpus = detail::small_count(csv, node).value_or(8);
        g.node_ram = detail::gib_of(csv, ram);
        g.node_nic = detail::measure_of<BytesPerSecond>(csv, nic, 0.001, 1e7, 1e9);
        g.node_power = detail::measure_of<Watts>(csv, power, 0.001, 1e6, 1e3);
        g.source_url = csv.string(url);
        g.notes = csv.string(notes);
        g.unverified = csv.string(unverified);
    }
    if (csv.failed()) return tl::unexpected<Error>{csv.error()};
    detail::estimate_visible(rows);
    return rows;
}

/// The newest date in the catalogue, which data/as_of.csv states so that no plan has to read every row for it.
inline Result<std::string> read_as_of(std::string_view text, std::string_view file) {
    auto csv = CsvReader::open(text, file);
    if (!csv) return tl::unexpected<Error>{csv.error()};
    auto const name = csv->required("name"), date = csv->required("date");
    std::string newest;
    while (csv->next())
        if (csv->text(name) == "newest") newest = csv->date(date);
    if (csv->failed()) return tl::unexpected<Error>{csv->error()};
    if (newest.empty()) return fail(ErrorCode::missing, "no row \"newest\"", std::string{file});
    return newest;
}

/// The newest day named by any row, as ISO text; months and years count as their first day. Empty when none has one.
inline std::string newest_date(Catalog const& c) {
    std::string newest;
    auto const take = [&](std::string const& date) {
        if (is_iso_date(date) && date > newest) newest = date;
    };
    for (auto const& r : c.gpu_prices) take(r.date);
    for (auto const& r : c.api_prices) take(r.date);
    for (auto const& r : c.benchmarks) take(r.date);
    for (auto const& r : c.startups) take(r.date);
    for (auto const& r : c.setups) take(r.date);
    return newest;
}

} // namespace servecap
