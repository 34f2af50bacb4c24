// servecap: how well start-up predictions agree with real starts
// SPDX-License-Identifier: Apache-2.0
//
// Every row is predicted by the engine model alone: measured starts are never used here, so that a row or its
// twin cannot answer for itself. Two ways: end to end (weights, budget, pool, tokens), and with the pool given,
// which scores the allocator. A row without a version follows the newest at its date, one without a utilization
// that version's default; its interval spans the alternatives. What a row's free text of flags says is read.
// Formula of errors: (predicted - logged) / logged, in percent.

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/text.hpp>
#include <servecap/engine/engine.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/engine/vllm.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// The day whose newest version an undated row is taken to have run. One day for all of them: most undated rows show
/// the token line and the groups of mid-2026 builds.
inline constexpr std::string_view kUndatedRow = "2026-07-20";

/// Where rows' models and GPUs come from. Null: not known. The row's weights precision is applied here.
struct StartupCatalogue {
    std::function<Model const*(std::string_view model)> model;
    std::function<Gpu const*(std::string_view gpu)> gpu;
};

/// What is asked of a validation.
struct StartupScoring {
    bool given_pool = false;     ///< the pool is taken from the row where it states one
    bool only_usable = true;     ///< rows marked usable = no are refused as "unusable"
};

/// A quantity that rows state and predictions are compared with.
enum class StartupQuantity : std::uint8_t { kv_tokens, block_size, weights };
inline constexpr std::size_t kStartupQuantities = 3;
constexpr std::string_view to_string(StartupQuantity q) noexcept {
    constexpr std::array<std::string_view, kStartupQuantities> names{"kv_tokens", "block_size", "weights_gib_per_gpu"};
    return names[static_cast<std::size_t>(q)];
}

/// A logged figure and ours.
struct Compared {
    double actual = 0, predicted = 0, low = 0, high = 0;
    [[nodiscard]] double error_pct() const noexcept { return actual != 0 ? 100.0 * (predicted - actual) / actual : 0.0; }
    [[nodiscard]] bool covered() const noexcept { return actual >= low && actual <= high; }
};

/// One row and its prediction.
struct StartupResult {
    StartupRow const* row = nullptr;
    std::string refused;                 ///< why it was not predicted; empty when it was
    StartPlan plan;
    std::array<std::optional<Compared>, kStartupQuantities> compared;
    std::optional<bool> starts_actual;   ///< where the row states it
    bool starts_predicted = false;
    bool named_kind = false;             ///< a start, or a refusal of a kind that has a name
    bool drafter_unknown = false;        ///< speculation with caches of unknown shape
    bool version_known = false, utilization_known = false;
};

/// Scores of one quantity.
struct QuantityScore {
    std::int64_t n = 0;
    double median_abs_pct_error = 0, p90_abs_pct_error = 0, bias_pct = 0;
    double within_1pct = 0, within_3pct = 0, within_5pct = 0, within_10pct = 0, within_15pct = 0, within_20pct = 0;
    std::optional<double> interval_coverage; ///< shares are 0-100
};

/// Scores of "starts or not".
struct StartsScore {
    std::int64_t n = 0;
    double accuracy = 0; ///< 0-100
    std::int64_t missed_failures = 0, false_alarms = 0;
    std::map<std::string, std::int64_t> missed_by_kind;
    std::int64_t other_n = 0, other_right = 0; ///< refusals whose kind has no name, apart
};

struct StartupGroupScore {
    std::array<QuantityScore, kStartupQuantities> quantity;
    StartsScore starts;
    std::int64_t rows = 0, scored = 0;
};

struct StartupScores {
    std::vector<StartupResult> results;
    StartupGroupScore all;
    std::map<std::string, std::int64_t> refused; ///< reason: rows
};

namespace detail {

inline std::string_view date_of_row(StartupRow const& row, std::string_view model_type = {}) noexcept {
    if (row.date.size() >= 7 && row.date != "unknown") return row.date;
    if (row.engine_version.find("0.1.dev") != std::string::npos) return {};
    return std::max(kUndatedRow, vllm_supports_since(model_type));
}

/// The number that follows `key` in `text`: "k=7" for key "k=", "MTP 3" for "mtp". Blanks and '=' between are skipped.
inline std::optional<std::int64_t> count_after(std::string_view text, std::string_view key) {
    for (std::size_t i = text.find(key); i != std::string_view::npos; i = text.find(key, i + key.size())) {
        std::size_t j = i + key.size();
        while (j < text.size() && (text[j] == ' ' || text[j] == '=' || text[j] == 'k' || text[j] == ':')) ++j;
        std::int64_t n = 0;
        bool any = false;
        for (; j < text.size() && ((text[j] >= '0' && text[j] <= '9') || (text[j] == ',' && any)); ++j)
            if (text[j] != ',' && n < (std::int64_t{1} << 50)) n = 10 * n + (text[j] - '0'), any = true;
        if (any) return n;
    }
    return std::nullopt;
}

/// Flags of a row: its columns, and what its free text says.
inline EngineSettings settings_of_row(StartupRow const& row, bool& drafter_unknown) {
    EngineSettings s;
    std::string const engine = fold_name(row.engine);
    s.engine = engine == "sglang" ? EngineKind::sglang : engine == "trtllm" || engine == "tensorrt-llm" ? EngineKind::trtllm
               : engine == "llama.cpp" || engine == "ollama"                                           ? EngineKind::llama_cpp
                                                                                                       : EngineKind::vllm;
    s.version = row.engine_version;
    s.max_model_len = row.max_model_len;
    s.max_num_seqs = row.max_num_seqs;
    s.max_num_batched_tokens = row.max_num_batched_tokens;
    if (s.engine == EngineKind::sglang) {
        s.mem_fraction_static = row.gpu_memory_utilization;
        s.max_running_requests = row.max_num_seqs;
    } else {
        s.gpu_memory_utilization = row.gpu_memory_utilization;
    }
    if (!row.kv_cache_dtype.empty()) s.kv_cache_dtype = row.kv_cache_dtype;

    std::string const f = to_lower(row.other_flags + "; " + row.model_as_written);
    auto const has = [&](std::string_view w) { return f.find(w) != std::string::npos; };
    if (has("no prefix caching") || has("prefix caching off"))
        s.prefix_caching = false;
    else if (has("prefix caching") || has("prefix-caching"))
        s.prefix_caching = true;
    if (has("mode none") || has("mamba-cache-mode none")) s.mamba_cache_mode = MambaCacheMode::none;
    if (has("align mode") || has("cache-mode align") || has("(align)") || has("caching align") || has("; align;")) s.mamba_cache_mode = MambaCacheMode::align;
    if (has("enforce-eager") || has("enforce_eager")) s.enforce_eager = true;
    if (has("full_decode_only"))
        s.graph_mode = GraphMode::full_decode_only;
    else if (has("full_and_piecewise"))
        s.graph_mode = GraphMode::full_and_piecewise;
    else if (has("piecewise"))
        s.graph_mode = GraphMode::piecewise;
    for (std::string_view key : {"block_size", "block-size", "window page", "draft page"})
        if (auto n = count_after(f, key)) s.block_size = Tokens{*n};
    if (auto n = count_after(f, "cudagraph capture")) s.max_cudagraph_capture_size = Tokens{*n};
    else if (auto g = count_after(f, "graph max")) s.max_cudagraph_capture_size = Tokens{*g};
    else if (auto t = count_after(f, "graph sizes to")) s.max_cudagraph_capture_size = Tokens{*t};
    else if (auto u = count_after(f, "graph size ")) s.max_cudagraph_capture_size = Tokens{*u};
    if (auto n = count_after(f, "kv-cache-memory-bytes"); n && *n < 4096) s.kv_cache_memory = gib(static_cast<double>(*n));
    else if (auto m = count_after(f, "kv-cache-memory"); m && *m >= (1 << 20)) s.kv_cache_memory = Bytes{*m};
    else if (auto p = count_after(f, "kv pinned"); p && *p >= (1 << 20)) s.kv_cache_memory = Bytes{*p};
    if (has("mamba-ssm bf16") || has("ssm-cache-dtype float16") || has("ssm-cache-dtype bfloat16")) s.state_dtype = "bfloat16";
    if (has("language-model-only")) s.language_model_only = true;
    if (has("estimate_cudagraphs=0")) s.estimate_cuda_graphs = false;
    if (has("indexer mxfp4")) s.indexer_kv_dtype = "mxfp4";
    if (has("engram") || has("on host")) s.lookup_tables_on_host = true;
    if (has("hybrid") && has("disable-hybrid")) s.hybrid_manager_off = true;
    // graphs cover every batch that decodes, so a smaller largest graph says how many sequences there are
    if (s.max_cudagraph_capture_size && !s.max_num_seqs && s.max_cudagraph_capture_size->value() < 512)
        s.max_num_seqs = Requests{s.max_cudagraph_capture_size->value()};
    // "PP4 partition 13,12,12,8" names layers of stages; the engine's own split is near enough for pools

    drafter_unknown = false;
    if (has("dflash") || has("dspark") || has("eagle") || has("spec decode") || has("drafter")) {
        drafter_unknown = true;
        s.speculative_method = has("dspark") ? "dspark" : has("eagle") ? "eagle3" : "dflash";
        if (auto n = count_after(f, "k=")) s.speculative_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(*n, 64));
        else if (auto m = count_after(f, "spec=")) s.speculative_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(*m, 64));
        else if (auto t = count_after(f, "mtp")) s.speculative_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(*t, 64));
        else if (auto k = count_after(f, "; k")) s.speculative_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(*k, 64));
        else s.speculative_tokens = 5;
    } else if (has("mtp")) {
        s.speculative_method = "mtp";
        s.speculative_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(count_after(f, "mtp").value_or(1), 64));
    }
    return s;
}

/// The layout that a row states.
inline Layout layout_of_row(StartupRow const& row) {
    Layout l;
    l.tp = row.tp.value_or(1);
    l.pp = row.pp.value_or(1);
    l.dp = row.dp.value_or(1);
    l.ep = says_yes(row.ep) && (l.tp > 1 || l.dp > 1);
    l.dcp = dcp_of(row.other_flags);
    return l;
}

/// Settings that a row may have had where it does not say: versions around its date (all that know the model, without a
/// date), the utilizations that people set where it names none, and with either of these, sizes of batches.
inline std::vector<EngineSettings> alternatives_of_row(StartupRow const& row, EngineSettings const& s, std::string_view date,
                                                       std::string_view model_type) {
    if (s.engine != EngineKind::vllm) return {s};
    VllmVersion const newest = parse_vllm_version(row.engine_version, date);
    std::vector<std::int32_t> minors{newest.minor};
    if (newest.guessed && row.engine_version.find("NIM") == std::string::npos) {
        bool const dated = row.date.size() >= 7 && row.date != "unknown";
        std::string_view const since = vllm_supports_since(model_type);
        std::int32_t const oldest = since.empty() ? 11 : vllm_version_at(since).minor;
        for (std::int32_t m : dated ? std::vector<std::int32_t>{newest.minor - 1, newest.minor - 2} : std::vector<std::int32_t>{19, 22, 28, 33})
            if (m >= oldest && m != newest.minor) minors.push_back(m);
    }
    std::vector<double> utilizations;
    if (!s.gpu_memory_utilization && !s.kv_cache_memory) utilizations = {0.85, 0.90, 0.92, 0.95};
    // a report that leaves these out mostly leaves the sizes of batches out too
    std::vector<EngineSettings> sizes{s};
    if (minors.size() > 1 || !utilizations.empty()) {
        if (!s.max_num_seqs) sizes.push_back(s), sizes.back().max_num_seqs = Requests{16};
        if (!s.max_num_batched_tokens) sizes.push_back(s), sizes.back().max_num_batched_tokens = Tokens{16384};
    }
    std::vector<EngineSettings> out;
    for (EngineSettings const& size : sizes)
        for (std::int32_t m : minors) {
            EngineSettings t = size;
            if (m != newest.minor) t.version = "0." + std::to_string(m) + ".0";
            out.push_back(t);
            for (double u : utilizations) {
                t.gpu_memory_utilization = u;
                out.push_back(t);
            }
        }
    return out;
}

/// The tokens of a plan in the sense of the row: a note says when they are blocks times block size.
inline double tokens_in_sense(StartupRow const& row, StartPlan const& p, Tokens tokens) {
    double const scale = p.kv_tokens.value() > 0 ? tokens / p.kv_tokens : 1.0;
    if (row.note.find("kv_tokens = max concurrency x") != std::string::npos)
        return p.max_requests_at_max_model_len * scale * static_cast<double>(p.max_model_len.value());
    if (row.note.find("blocks x block_size") == std::string::npos) return static_cast<double>(tokens.value());
    // metrics multiply blocks with the smallest block; without a prefix cache a state's block is the whole length
    double const block = static_cast<double>(std::min(p.block_tokens, p.max_model_len).value());
    return std::floor(static_cast<double>(p.num_blocks) * scale) * block;
}

/// The precision that a row's weights were in, in load_as' words; empty: as the card has them.
inline std::string precision_of_row(StartupRow const& row, Model const& m) {
    std::string p = to_lower(row.weights_precision);
    if (p.empty() || p == "checkpoint" || p == "auto") {
        std::string const w = to_lower(row.model_as_written);
        for (std::string_view known : {"nvfp4", "mxfp4", "w4a16", "int4", "awq", "gptq", "fp8", "w8a8"})
            if (w.find(known) != std::string::npos) return std::string{known};
        return {};
    }
    if (p.starts_with("exl3") || p.starts_with("bnb")) return "nf4"; // about four bits a weight
    bool const mixed = m.quant.label.find('+') != std::string::npos;
    if (mixed && (p == "fp4" || p == "fp8" || p == "mxfp4" || p == m.quant.label)) return {}; // mixed cards are called by either part
    if (p == "fp4" && m.quant.label.find("fp4") != std::string::npos) return {};
    return p;
}

/// The memory that a row's log printed as the GPU's total ("total 79.18 GiB"), in GiB.
inline std::optional<double> total_of_row(StartupRow const& row) {
    for (std::string const& text : {row.other_flags, row.note}) {
        for (std::size_t i = text.find("total "); i != std::string::npos; i = text.find("total ", i + 6)) {
            double whole = 0, part = 0, scale = 1;
            std::size_t j = i + 6;
            bool digits = false, point = false;
            for (; j < text.size(); ++j) {
                char const c = text[j];
                if (c >= '0' && c <= '9') {
                    digits = true;
                    if (point)
                        part += (c - '0') * (scale /= 10);
                    else
                        whole = 10 * whole + (c - '0');
                } else if (c == '.' && digits && !point) {
                    point = true;
                } else {
                    break;
                }
            }
            if (digits && point) return whole + part;
        }
    }
    return std::nullopt;
}

inline double quantile(std::vector<double> v, double q) {
    if (v.empty()) return 0;
    std::sort(v.begin(), v.end());
    double const at = q * static_cast<double>(v.size() - 1);
    std::size_t const i = static_cast<std::size_t>(at);
    double const f = at - static_cast<double>(i);
    return i + 1 < v.size() ? v[i] * (1 - f) + v[i + 1] * f : v[i];
}

} // namespace detail

/// Predicts one row. Nothing measured is used.
inline StartupResult predict_startup(StartupRow const& row, StartupCatalogue const& catalogue, StartupScoring const& how = {}) {
    StartupResult out;
    out.row = &row;
    auto const refuse = [&](std::string why) {
        out.refused = std::move(why);
        return out;
    };
    if (how.only_usable && row.usable == "no") return refuse("unusable");
    Gpu const* gpu = catalogue.gpu(row.gpu);
    if (gpu == nullptr) return refuse("unknown gpu");
    // a card of the very checkpoint wins over the family's card in the row's precision
    Model const* model = row.model_as_written.empty() ? nullptr : catalogue.model(row.model_as_written);
    if (model != nullptr && !detail::same_name(model->id, row.model_as_written)) model = nullptr; // only the very name counts
    if (model == nullptr) model = catalogue.model(row.model);
    if (model == nullptr) return refuse("unknown model");
    if (!row.tp && !row.n_gpus) return refuse("no layout");

    EngineSettings settings = detail::settings_of_row(row, out.drafter_unknown);
    if (settings.speculative_tokens > 0 && settings.speculative_method == "mtp" && model->mtp_layers.empty()) out.drafter_unknown = true;
    std::string const precision = detail::precision_of_row(row, *model);
    std::optional<Model> loaded;
    if (!precision.empty() && precision != model->quant.label)
        if (auto as = load_as(*model, precision)) {
            loaded = std::move(*as);
            model = &*loaded;
        }
    // Checkpoints in NVFP4 are made with ModelOpt, which writes an fp8 cache into the checkpoint.
    if ((!settings.kv_cache_dtype || *settings.kv_cache_dtype == "auto") && !model->kv_dtype_hint && precision == "nvfp4")
        settings.kv_cache_dtype = "fp8";
    Layout const layout = detail::layout_of_row(row);
    GpuSet gpus;
    gpus.gpu = *gpu;
    if (auto const total = detail::total_of_row(row); total && std::abs(*total / in_gib(gpu->visible) - 1.0) < 0.1)
        gpus.gpu.visible = gib(*total);
    gpus.count = std::max(row.n_gpus.value_or(0), layout.gpus_per_replica());
    gpus.nodes = std::max(1, static_cast<std::int32_t>(ceil_div(gpus.count, std::max(1, gpu->node_gpus))));
    if (how.given_pool && !row.available_kv_per_gpu) return refuse("no pool stated");
    out.version_known = !parse_vllm_version(row.engine_version, detail::date_of_row(row, model->model_type)).guessed;
    out.utilization_known = row.gpu_memory_utilization.has_value();

    StartRequest request{.model = *model, .gpus = gpus, .layout = layout, .settings = settings, .date = {}};
    request.date = detail::date_of_row(row, model->model_type);
    if (how.given_pool && !settings.kv_cache_memory) request.logged_pool = row.available_kv_per_gpu;
    out.plan = plan_start(request);
    double low = detail::tokens_in_sense(row, out.plan, out.plan.kv_tokens_low);
    double high = detail::tokens_in_sense(row, out.plan, out.plan.kv_tokens_high);
    if (settings.engine == EngineKind::vllm && !how.given_pool) {
        for (EngineSettings const& alternative : detail::alternatives_of_row(row, settings, request.date, model->model_type)) {
            request.settings = alternative;
            StartPlan const p = plan_vllm(request);
            if (p.kv_tokens.value() <= 0) continue;
            low = std::min(low, detail::tokens_in_sense(row, p, p.kv_tokens_low));
            high = std::max(high, detail::tokens_in_sense(row, p, p.kv_tokens_high));
        }
    }

    out.starts_predicted = out.plan.starts;
    if (row.starts == "yes" || row.starts == "no") {
        out.starts_actual = row.starts == "yes";
        out.named_kind = *out.starts_actual;
        for (int v = 1; v < 8; ++v) out.named_kind = out.named_kind || row.verdict == to_string(static_cast<Verdict>(v));
    }
    if (row.kv_tokens && row.starts != "no" && (!how.given_pool || (row.max_model_len && !row.kv_cache_dtype.empty() && row.kv_cache_dtype != "auto"))) {
        double const ours = detail::tokens_in_sense(row, out.plan, out.plan.kv_tokens);
        out.compared[0] = Compared{static_cast<double>(row.kv_tokens->value()), ours, low, high};
    }
    bool recurrent = false;
    for (Layer const& l : model->layers)
        for (Mixer const& x : l.mixers) recurrent = recurrent || is_recurrent(x);
    if (row.block_size && recurrent && !out.drafter_unknown) {
        double const ours = static_cast<double>(out.plan.block_tokens.value());
        out.compared[1] = Compared{static_cast<double>(*row.block_size), ours, ours, ours};
    }
    if (row.weights_per_gpu && !how.given_pool) {
        // some logs print only weights and non-torch memory together; their rows say so
        bool const together = row.note.find("w incl non-torch") != std::string::npos || row.note.find("consumed") != std::string::npos;
        double const ours = in_gib(out.plan.weights) + (together ? in_gib(out.plan.budget.non_torch) : 0.0);
        out.compared[2] = Compared{in_gib(*row.weights_per_gpu), ours, ours, ours};
    }
    return out;
}

/// Scores results; `keep` picks those of a group.
template <class Keep>
inline StartupGroupScore score_startups(std::span<StartupResult const> results, Keep keep) {
    StartupGroupScore g;
    std::array<std::vector<double>, kStartupQuantities> errors;
    std::array<std::vector<Compared>, kStartupQuantities> all;
    std::int64_t right = 0;
    for (StartupResult const& r : results) {
        if (!keep(r)) continue;
        ++g.rows;
        if (!r.refused.empty()) continue;
        ++g.scored;
        for (std::size_t q = 0; q < kStartupQuantities; ++q)
            if (r.compared[q]) {
                errors[q].push_back(r.compared[q]->error_pct());
                all[q].push_back(*r.compared[q]);
            }
        if (!r.starts_actual) continue;
        bool const agrees = *r.starts_actual == r.starts_predicted;
        if (!r.named_kind) {
            ++g.starts.other_n;
            g.starts.other_right += agrees ? 1 : 0;
            continue;
        }
        ++g.starts.n;
        right += agrees ? 1 : 0;
        if (!*r.starts_actual && r.starts_predicted) {
            ++g.starts.missed_failures;
            ++g.starts.missed_by_kind[r.row->verdict];
        }
        if (*r.starts_actual && !r.starts_predicted) ++g.starts.false_alarms;
    }
    if (g.starts.n > 0) g.starts.accuracy = 100.0 * static_cast<double>(right) / static_cast<double>(g.starts.n);
    for (std::size_t q = 0; q < kStartupQuantities; ++q) {
        QuantityScore& s = g.quantity[q];
        s.n = static_cast<std::int64_t>(errors[q].size());
        if (s.n == 0) continue;
        std::vector<double> absolute;
        double sum = 0;
        for (double e : errors[q]) absolute.push_back(std::abs(e)), sum += e;
        s.median_abs_pct_error = detail::quantile(absolute, 0.5);
        s.p90_abs_pct_error = detail::quantile(absolute, 0.9);
        s.bias_pct = sum / static_cast<double>(s.n);
        auto const share = [&](double limit) {
            return 100.0 * static_cast<double>(std::count_if(absolute.begin(), absolute.end(), [&](double e) { return e <= limit; })) /
                   static_cast<double>(s.n);
        };
        s.within_1pct = share(1);
        s.within_3pct = share(3);
        s.within_5pct = share(5);
        s.within_10pct = share(10);
        s.within_15pct = share(15);
        s.within_20pct = share(20);
        if (q == 0) {
            std::int64_t covered = 0;
            for (Compared const& c : all[q]) covered += c.covered() ? 1 : 0;
            s.interval_coverage = 100.0 * static_cast<double>(covered) / static_cast<double>(s.n);
        }
    }
    return g;
}

/// Predicts and scores all rows.
inline StartupScores validate_startups(std::span<StartupRow const> rows, StartupCatalogue const& catalogue, StartupScoring const& how = {}) {
    StartupScores out;
    for (StartupRow const& row : rows) {
        out.results.push_back(predict_startup(row, catalogue, how));
        if (!out.results.back().refused.empty()) ++out.refused[out.results.back().refused];
    }
    out.all = score_startups(std::span<StartupResult const>{out.results}, [](StartupResult const&) { return true; });
    return out;
}

/// The same by a key of the row ("model", "gpu", "engine"): sorted by key.
inline std::vector<std::pair<std::string, StartupGroupScore>> scores_by(StartupScores const& scores, std::string_view key) {
    auto const of = [&](StartupResult const& r) -> std::string const& {
        return key == "gpu" ? r.row->gpu : key == "engine" ? r.row->engine : r.row->model;
    };
    std::vector<std::string> keys;
    for (StartupResult const& r : scores.results) keys.push_back(of(r));
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<std::pair<std::string, StartupGroupScore>> out;
    for (std::string const& k : keys)
        out.emplace_back(k, score_startups(std::span<StartupResult const>{scores.results}, [&](StartupResult const& r) { return of(r) == k; }));
    return out;
}

} // namespace servecap
