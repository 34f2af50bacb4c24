// servecap: an observed start beside the predicted one, term by term
// SPDX-License-Identifier: Apache-2.0
//
// diagnose() lines up what a log states with what the allocator predicts: the budget of a GPU, what each part
// takes of it, the pool, blocks, tokens, slots and the verdict. Each byte term has an effect on the pool
// (more weights = less pool), so the terms explain the pool's difference; the one with the largest effect is
// named with what usually causes it. Where the pool agrees and the tokens do not, the bytes of a token or the
// pages of a request differ, and the block size tells which. The rest are conversions: the observed start as
// a request (to predict it) and as a start-up row (to learn from it).

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/text.hpp>
#include <servecap/engine/observed.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/layout/layout.hpp>

namespace servecap {

/// What a term is counted in.
enum class TermUnit : std::uint8_t { bytes, tokens, count, ratio, text };

/// One line of the comparison. A side that is not known is empty.
struct DoctorTerm {
    std::string_view name; ///< static text: "weights a GPU", "KV cache pool"...
    TermUnit unit = TermUnit::count;
    std::optional<double> observed, predicted; ///< bytes, tokens or a number
    std::string observed_text, predicted_text; ///< of terms that are words
    double pool_effect = 0; ///< bytes by which the prediction's pool changes through this term: predicted - observed
    bool differs = false;   ///< beyond what rounding explains

    /// (predicted - observed) / observed; 0 where a side is missing.
    [[nodiscard]] double relative() const noexcept {
        return observed && predicted && *observed != 0 ? (*predicted - *observed) / *observed : 0;
    }
};

/// What the comparison says.
struct Diagnosis {
    std::vector<DoctorTerm> terms;
    std::optional<std::size_t> culprit; ///< term that differs most, by its effect
    std::string explanation;            ///< what it does and what usually causes it
    std::vector<std::string> findings;  ///< verdicts that differ, settings that are not the same, notes of the log
    bool verdict_agrees = true;
    bool agrees = true; ///< no term differs
};

/// "12.34 GiB", "403,904", "0.90" or the text itself.
inline std::string term_text(DoctorTerm const& t, bool observed) {
    std::string const& text = observed ? t.observed_text : t.predicted_text;
    auto const& value = observed ? t.observed : t.predicted;
    if (t.unit == TermUnit::text) return text.empty() ? "-" : text;
    if (!value) return "-";
    switch (t.unit) {
    case TermUnit::bytes: return fmt::format("{:.2f} GiB", *value / 1073741824.0);
    case TermUnit::ratio: return fmt::format("{:.2f}", *value);
    default: break;
    }
    std::string digits = fmt::format("{:.0f}", std::abs(*value));
    for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
        digits.insert(static_cast<std::size_t>(i), ",");
    return (*value < 0 ? "-" : "") + digits;
}

namespace doctor_detail {

inline std::optional<double> number(std::optional<Bytes> const& b) {
    return b ? std::optional{static_cast<double>(b->value())} : std::nullopt;
}
inline std::optional<double> number(std::optional<Tokens> const& t) {
    return t ? std::optional{static_cast<double>(t->value())} : std::nullopt;
}
inline std::optional<double> number(std::optional<std::int64_t> const& n) {
    return n ? std::optional{static_cast<double>(*n)} : std::nullopt;
}
inline std::optional<double> positive(Bytes b) {
    return b.value() > 0 ? std::optional{static_cast<double>(b.value())} : std::nullopt;
}

/// Nearest simple ratio between two sizes that a change of type makes: 2, 4, 8 or their inverses; 0 = none within 8 %.
inline double type_ratio(double ratio) {
    for (double r : {2.0, 4.0, 8.0, 0.5, 0.25, 0.125})
        if (std::abs(ratio / r - 1) < 0.08) return r;
    return 0;
}

} // namespace doctor_detail

/// The comparison of a log with the prediction for the same deployment.
inline Diagnosis diagnose(ObservedStart const& seen, StartPlan const& plan) {
    using namespace doctor_detail;
    Diagnosis d;
    EngineKind const engine = seen.engine.value_or(EngineKind::vllm);
    // Budget terms are printed to 0.01 GiB; an estimate within 2 % or 0.15 GiB is no difference worth a name.
    auto const bytes = [&](std::string_view name, std::optional<double> o, std::optional<double> p, double sign) {
        if (!o && !p) return;
        DoctorTerm t;
        t.name = name;
        t.unit = TermUnit::bytes;
        t.observed = o;
        t.predicted = p;
        if (o && p) {
            t.pool_effect = sign * (*p - *o);
            t.differs = std::abs(*p - *o) > std::max(0.02 * std::abs(*o), 0.15 * 1073741824.0);
        }
        d.terms.push_back(std::move(t));
    };
    auto const count = [&](std::string_view name, TermUnit unit, std::optional<double> o, std::optional<double> p,
                           double tolerance) {
        if (!o && !p) return;
        DoctorTerm t;
        t.name = name;
        t.unit = unit;
        t.observed = o;
        t.predicted = p;
        if (o && p) t.differs = std::abs(*p - *o) > tolerance * std::max(std::abs(*o), 1.0);
        d.terms.push_back(std::move(t));
    };
    MemoryBudget const& b = plan.budget;
    bool const subtracts_requested = engine == EngineKind::vllm;

    bytes("memory that the runtime sees", number(seen.total), positive(b.visible), engine == EngineKind::vllm ? 0 : 1);
    if (seen.free_before && engine != EngineKind::vllm)
        bytes("free before the weights", number(seen.free_before),
              positive(b.requested + (engine == EngineKind::sglang ? b.activation : Bytes{})), 1);
    if (subtracts_requested) bytes("budget (utilization x memory)", number(seen.requested), positive(b.requested), 1);
    count("share in force", TermUnit::ratio, seen.utilization, b.utilization > 0 ? std::optional{b.utilization} : std::nullopt,
          0.002);
    if (seen.consumed && !seen.weights && engine == EngineKind::vllm)
        bytes("weights and non-torch a GPU", number(seen.consumed), positive(b.weights + b.non_torch), -1);
    else
        bytes("weights a GPU", number(seen.weights), positive(b.weights), -1);
    if (engine == EngineKind::vllm || engine == EngineKind::trtllm) {
        bytes("activation peak", number(seen.activation), positive(b.activation), -1);
        bytes("outside torch", number(seen.non_torch), positive(b.non_torch), -1);
        bytes("CUDA graphs, estimate", number(seen.cuda_graph_estimate), positive(b.cuda_graph), -1);
        if (!seen.cuda_graph_estimate)
            bytes("CUDA graphs", number(seen.cuda_graph), positive(b.cuda_graph), 0);
        else
            bytes("CUDA graphs, captured", number(seen.cuda_graph), std::nullopt, 0);
    } else if (engine == EngineKind::sglang) {
        bytes("CUDA graphs", number(seen.cuda_graph), std::nullopt, 0);
    } else {
        bytes("compute buffer", number(seen.compute_buffer), positive(b.activation), -1);
        bytes("host memory", number(seen.host_weights), positive(plan.host_bytes), 0);
    }
    if (engine == EngineKind::llama_cpp) {
        std::optional<double> kv = number(seen.kv_allocated);
        if (kv && seen.state_bytes) *kv += static_cast<double>(seen.state_bytes->value());
        bytes("KV cache and state", kv, positive(plan.pool), 0);
    } else {
        bytes("KV cache pool", number(seen.pool), positive(plan.pool), 0);
    }
    count("block size", TermUnit::tokens, number(seen.block_size),
          plan.block_tokens.value() > 0 && engine != EngineKind::llama_cpp
              ? std::optional{static_cast<double>(plan.block_tokens.value())}
              : std::nullopt,
          0);
    count("blocks", TermUnit::count, number(seen.blocks),
          plan.num_blocks > 0 ? std::optional{static_cast<double>(plan.num_blocks)} : std::nullopt, 0.01);
    count("KV tokens", TermUnit::tokens, number(seen.kv_tokens),
          plan.kv_tokens.value() > 0 ? std::optional{static_cast<double>(plan.kv_tokens.value())} : std::nullopt, 0.01);
    count("state slots", TermUnit::count, number(seen.state_slots), number(plan.state_slots), 0.01);
    count("longest length that fits", TermUnit::tokens, number(seen.estimated_max_len),
          seen.estimated_max_len && plan.longest.value() > 0 ? std::optional{static_cast<double>(plan.longest.value())}
                                                             : std::nullopt,
          0.01);
    if (engine == EngineKind::sglang && seen.max_requests)
        count("running requests", TermUnit::count, static_cast<double>(seen.max_requests->value()),
              plan.max_num_seqs.value() > 0 ? std::optional{static_cast<double>(plan.max_num_seqs.value())} : std::nullopt, 0.01);

    DoctorTerm verdict;
    verdict.name = "outcome";
    verdict.unit = TermUnit::text;
    if (seen.starts)
        verdict.observed_text = *seen.starts ? "starts" : seen.verdict ? std::string{to_string(*seen.verdict)} : "does not start";
    else
        verdict.observed_text = std::string{"not decided ("} + std::string{to_string(seen.stage)} + ")";
    verdict.predicted_text = to_string(plan.verdict);
    if (seen.starts) {
        bool const same_kind = !seen.verdict || *seen.verdict == plan.verdict;
        d.verdict_agrees = *seen.starts == plan.starts && same_kind;
        verdict.differs = !d.verdict_agrees;
        if (*seen.starts != plan.starts)
            d.findings.push_back(*seen.starts ? "it started, and the prediction refuses: " + plan.engine_message
                                              : "it did not start, and the prediction does: " +
                                                    (seen.error.empty() ? std::string{"no reason in the log"} : seen.error));
        else if (!same_kind)
            d.findings.push_back(fmt::format("both refuse, for other reasons: {} in the log, {} predicted",
                                             to_string(*seen.verdict), to_string(plan.verdict)));
    }
    d.terms.push_back(std::move(verdict));

    // Settings that are not those of the prediction explain more than any estimate.
    auto const not_same = [&](std::string_view what, std::optional<double> o, double p) {
        if (o && p > 0 && std::abs(*o - p) > 0.5)
            d.findings.push_back(fmt::format("{}: {:.0f} in the log, {:.0f} predicted with", what, *o, p));
    };
    if (seen.stage >= StartStage::configured || seen.max_model_len) {
        not_same("maximum length", number(seen.max_model_len), static_cast<double>(plan.max_model_len.value()));
        not_same("batched tokens", number(seen.max_batched_tokens), static_cast<double>(plan.max_batched_tokens.value()));
    }

    // Who explains the pool, or else the tokens?
    auto const index_of = [&](std::string_view name) {
        std::size_t i = 0;
        while (i < d.terms.size() && d.terms[i].name != name) ++i;
        return i;
    };
    std::size_t const pool_at = index_of(engine == EngineKind::llama_cpp ? "KV cache and state" : "KV cache pool");
    std::size_t const tokens_at = index_of("KV tokens");
    auto const effect = [&](std::size_t i) { return std::abs(d.terms[i].pool_effect); };
    bool const pool_known = pool_at < d.terms.size() && d.terms[pool_at].observed && d.terms[pool_at].predicted;
    bool const pool_differs = pool_known && d.terms[pool_at].differs;
    if (pool_differs) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < d.terms.size(); ++i)
            if (i != pool_at && d.terms[i].pool_effect != 0 && (!best || effect(i) > effect(*best))) best = i;
        double const gap = *d.terms[pool_at].predicted - *d.terms[pool_at].observed;
        d.culprit = best && effect(*best) > 0.25 * std::abs(gap) ? best : std::optional{pool_at};
    } else if (!pool_known) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < d.terms.size(); ++i)
            if (d.terms[i].differs && d.terms[i].unit == TermUnit::bytes && (!best || effect(i) > effect(*best))) best = i;
        d.culprit = best;
    }
    if (!d.culprit) {
        for (std::size_t i = 0; i < d.terms.size(); ++i)
            if (d.terms[i].differs && d.terms[i].unit != TermUnit::text &&
                (!d.culprit || std::abs(d.terms[i].relative()) > std::abs(d.terms[*d.culprit].relative())))
                d.culprit = i;
        // A block size that differs is the cause of tokens that differ, not the other way round.
        for (std::size_t i = 0; i < d.terms.size(); ++i)
            if (d.terms[i].differs && d.terms[i].name == "block size") d.culprit = i;
    }
    for (DoctorTerm const& t : d.terms) d.agrees = d.agrees && !t.differs;

    if (!d.culprit) {
        d.explanation = d.terms.size() <= 1 ? "the log states nothing that could be compared"
                                            : "every term that the log states agrees with the prediction";
    } else {
        DoctorTerm const& t = d.terms[*d.culprit];
        double const o = t.observed.value_or(0), p = t.predicted.value_or(0);
        double const ratio = p != 0 ? o / p : 0;
        std::string why;
        if (t.name == "weights a GPU" || t.name == "weights and non-torch a GPU") {
            double const simple = type_ratio(ratio);
            if (simple > 1)
                why = fmt::format("they are {:.0f} times as large: loaded in a wider type, or not spread over as many GPUs",
                                  simple);
            else if (simple > 0)
                why = fmt::format("they are {:.2g} of it: a quantised checkpoint, or spread over more GPUs", simple);
            else if (o > p)
                why = "a drafter, a vision tower, adapters or kernel copies are loaded besides, or layers are left in 16 bits";
            else
                why = "more of the model is quantised or spread than the card says, or a tower is left out";
        } else if (t.name == "activation peak") {
            why = o > p ? "a larger batch of tokens in the profile run, images, or a kernel workspace"
                        : "fewer batched tokens or sequences in the profile run";
        } else if (t.name == "outside torch") {
            why = o > p ? "another process on the GPU, communication buffers, or page cache counted as used on a machine with "
                          "one memory"
                        : "fewer communication buffers than estimated";
        } else if (t.name == "CUDA graphs, estimate" || t.name == "CUDA graphs") {
            why = "the number and size of captured batches, or the engine's way to estimate them, differ";
        } else if (t.name == "budget (utilization x memory)" || t.name == "memory that the runtime sees" ||
                   t.name == "share in force" || t.name == "free before the weights") {
            why = "the GPU, its visible memory or the utilization is not the one predicted with";
        } else if (t.name == "compute buffer") {
            why = "the build reserves logits differently, or the backend keeps other buffers";
        } else if (t.name == "block size") {
            why = "the KV type, the state type or draft tokens are not those predicted with: the block of a hybrid model grows "
                  "with them";
        } else if (t.name == "KV cache pool") {
            why = "no single term explains it: terms that the log does not print differ";
        } else if (t.name == "KV tokens" || t.name == "blocks") {
            why = "the pool agrees, so a token or a request takes other bytes: KV type, prefix-cache mode, batched tokens or "
                  "drafter";
        } else if (t.name == "state slots" || t.name == "running requests") {
            why = "the share of the state pool or the slots of one request differ (radix cache, scheduler strategy, speculation)";
        }
        d.explanation = fmt::format("{}: {} in the log, {} predicted", t.name, term_text(t, true), term_text(t, false));
        if (t.pool_effect != 0) d.explanation += fmt::format(" ({:+.2f} GiB of the pool)", t.pool_effect / 1073741824.0);
        if (!why.empty()) d.explanation += "; " + why;
    }
    if (tokens_at < d.terms.size() && seen.kv_tokens && plan.starts && plan.kv_tokens_low.value() > 0) {
        bool const within = *seen.kv_tokens >= plan.kv_tokens_low && *seen.kv_tokens <= plan.kv_tokens_high;
        if (d.terms[tokens_at].differs)
            d.findings.push_back(fmt::format("the logged KV tokens lie {} the prediction's 80 % interval of {} to {}",
                                             within ? "within" : "outside", plan.kv_tokens_low.value(),
                                             plan.kv_tokens_high.value()));
    }
    for (std::string const& n : seen.notes) d.findings.push_back("log: " + n);
    return d;
}

// ---- the observed start as a request ------------------------------------------------------------

/// The layout that the log states; one GPU where it states none.
inline Layout layout_of(ObservedStart const& seen) {
    Layout l;
    l.tp = seen.tp.value_or(1);
    l.pp = seen.pp.value_or(1);
    l.dp = seen.dp.value_or(1);
    l.dcp = seen.dcp.value_or(1);
    l.ep = seen.expert_parallel;
    if (!seen.tp && !seen.pp && !seen.dp && seen.engine == EngineKind::sglang && seen.ranks_seen > 1) l.tp = seen.ranks_seen;
    if (seen.engine == EngineKind::llama_cpp && seen.ranks_seen > 1) l.pp = seen.ranks_seen; // devices that hold layers
    if (!seen.tp && !seen.pp && seen.engine == EngineKind::vllm && seen.ranks_seen > 1) l.tp = seen.ranks_seen;
    return l;
}

/// The settings to predict with: flags that were typed, and values in force where the log prints them.
inline EngineSettings settings_of(ObservedStart const& seen) {
    EngineSettings s = seen.settings;
    s.engine = seen.engine.value_or(EngineKind::vllm);
    s.version = seen.engine_version;
    if (!s.max_model_len && seen.max_model_len) s.max_model_len = seen.max_model_len;
    if (!s.max_num_batched_tokens && seen.max_batched_tokens && s.engine != EngineKind::llama_cpp)
        s.max_num_batched_tokens = seen.max_batched_tokens;
    if (seen.utilization && *seen.utilization > 0 && *seen.utilization <= 1) {
        if (s.engine == EngineKind::vllm && !s.gpu_memory_utilization) s.gpu_memory_utilization = seen.utilization;
        if (s.engine == EngineKind::sglang && !s.mem_fraction_static) s.mem_fraction_static = seen.utilization;
        if (s.engine == EngineKind::trtllm && !s.free_gpu_memory_fraction) s.free_gpu_memory_fraction = seen.utilization;
    }
    if (s.engine == EngineKind::vllm && seen.asked_seqs && !s.max_num_seqs) s.max_num_seqs = Requests{*seen.asked_seqs};
    if (s.engine == EngineKind::trtllm && seen.max_requests && !s.max_batch_size) s.max_batch_size = seen.max_requests;
    if (s.engine == EngineKind::llama_cpp && seen.gpu_layers && !s.n_gpu_layers) s.n_gpu_layers = seen.gpu_layers;
    return s;
}

/// What the log calls the model, without folders: the last part of a path, "org/name" of a Hugging Face cache.
inline std::string model_hint(ObservedStart const& seen) {
    std::string name = seen.model;
    std::replace(name.begin(), name.end(), '\\', '/');
    while (!name.empty() && name.back() == '/') name.pop_back();
    if (auto const at = name.find("models--"); at != std::string::npos) { // .../models--org--name/snapshots/<hash>
        std::string repo = name.substr(at + 8);
        repo = repo.substr(0, repo.find('/'));
        if (auto const sep = repo.find("--"); sep != std::string::npos) repo.replace(sep, 2, "/");
        return repo;
    }
    bool const path = name.starts_with('/') || name.starts_with("./") || name.starts_with("../") || name.starts_with('<') ||
                      name.find(":/") != std::string::npos || std::count(name.begin(), name.end(), '/') > 1;
    if (path) name = name.substr(name.rfind('/') + 1);
    if (seen.engine == EngineKind::llama_cpp) {
        if (auto const colon = name.rfind(':'); colon != std::string::npos && colon > 2) name.erase(colon); // org/name:Q4_K_M
        if (name.ends_with(".gguf")) name.erase(name.size() - 5);
    }
    return name;
}

/// GPUs whose runtime-visible memory is the logged total, nearest first; within 0.8 %.
inline std::vector<std::string> gpu_candidates(ObservedStart const& seen, std::span<Gpu const> gpus) {
    std::vector<std::pair<double, std::string>> near;
    if (!seen.total || seen.engine == EngineKind::llama_cpp) return {};
    for (Gpu const& g : gpus) {
        if (g.visible.value() <= 0) continue;
        double const off = std::abs(static_cast<double>(g.visible.value()) / static_cast<double>(seen.total->value()) - 1);
        if (off <= 0.008) near.push_back({off, g.id});
    }
    std::sort(near.begin(), near.end());
    std::vector<std::string> out;
    for (auto& [off, id] : near) out.push_back(std::move(id));
    return out;
}

// ---- the observed start as a row ----------------------------------------------------------------

/// A start-up row of the log, under the catalogue's names. `source` and `url` say where the log is from.
inline StartupRow startup_row(ObservedStart const& seen, std::string model, std::string gpu, std::int32_t n_gpus,
                              std::string source = {}, std::string url = {}) {
    StartupRow r;
    r.engine = seen.engine ? std::string{to_string(*seen.engine)} : std::string{};
    r.engine_version = seen.engine_version;
    r.model_as_written = seen.model;
    r.model = std::move(model);
    r.gpu = std::move(gpu);
    Layout const l = layout_of(seen);
    r.n_gpus = n_gpus > 0 ? n_gpus : l.gpus_per_replica();
    r.tp = l.tp;
    if (l.pp > 1) r.pp = l.pp;
    if (l.dp > 1) r.dp = l.dp;
    if (l.ep) r.ep = "yes";
    r.weights_precision = seen.quantization;
    EngineSettings const s = settings_of(seen);
    r.kv_cache_dtype_as_written = seen.settings.kv_cache_dtype.value_or("");
    r.kv_cache_dtype = r.kv_cache_dtype_as_written;
    r.gpu_memory_utilization = s.engine == EngineKind::sglang   ? s.mem_fraction_static
                               : s.engine == EngineKind::trtllm ? s.free_gpu_memory_fraction
                                                                : s.gpu_memory_utilization;
    r.max_model_len = s.max_model_len;
    r.max_num_seqs = s.engine == EngineKind::vllm ? s.max_num_seqs
                     : seen.max_requests          ? seen.max_requests
                                                  : s.max_running_requests;
    r.max_num_batched_tokens = s.max_num_batched_tokens;
    auto const flag = [&](std::string text) { r.other_flags += (r.other_flags.empty() ? "" : "; ") + text; };
    if (l.dcp > 1) flag("DCP" + std::to_string(l.dcp));
    if (s.enforce_eager) flag("enforce-eager");
    if (s.prefix_caching) flag(*s.prefix_caching ? "prefix caching" : "no prefix caching");
    if (s.mamba_cache_mode)
        flag(*s.mamba_cache_mode == MambaCacheMode::align ? "mamba align"
             : *s.mamba_cache_mode == MambaCacheMode::all ? "mamba all"
                                                          : "mamba none");
    if (s.speculative_tokens > 0)
        flag(fmt::format("speculative {} {}", s.speculative_method.empty() ? "tokens" : s.speculative_method,
                         s.speculative_tokens));
    if (s.hybrid_manager_off) flag("hybrid manager off");
    r.weights_per_gpu = seen.weights;
    r.available_kv_per_gpu = seen.pool;
    r.kv_tokens = seen.kv_tokens;
    r.max_concurrency = seen.max_concurrency;
    r.gpu_blocks = seen.blocks;
    r.block_size = seen.block_size;
    r.state_slots = seen.state_slots;
    r.cuda_graph = seen.cuda_graph ? seen.cuda_graph : seen.cuda_graph_estimate;
    r.peak_activation = seen.activation;
    r.non_torch = seen.non_torch;
    if (seen.starts)
        r.starts = *seen.starts ? "yes" : "no";
    else if (seen.kv_tokens)
        r.starts = "yes"; // the KV line was seen
    if (seen.verdict)
        r.verdict = to_string(*seen.verdict);
    else if (r.starts == "yes")
        r.verdict = "starts";
    else if (r.starts == "no")
        r.verdict = "other";
    r.error_text = seen.error.substr(0, 300);
    r.date = seen.date.size() >= 7 ? seen.date : std::string{"unknown"};
    r.source = source.empty() ? "start-up log" : std::move(source);
    r.url = std::move(url);
    std::string missing;
    auto const need = [&](bool have, std::string_view what) {
        if (!have) missing += (missing.empty() ? "" : "; ") + std::string{what};
    };
    need(!r.model.empty(), "base model cannot be told");
    need(!r.gpu.empty(), "GPU not stated");
    need(r.weights_per_gpu || r.available_kv_per_gpu || r.kv_tokens || r.block_size || !r.starts.empty(), "no scored quantity");
    r.usable = missing.empty() ? "yes" : "no";
    r.why_not = missing;
    return r;
}

} // namespace servecap
