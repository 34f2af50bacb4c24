// servecap: will it start, whatever the engine
// SPDX-License-Identifier: Apache-2.0
//
// plan_start() asks the allocator of the engine that is meant and adds the flags that mend a refusal.
// measured_start() answers from a real start of the same deployment, where there is one: same model,
// precision, GPU and layout, and no setting that both sides name differently. judge_start() gives the
// measured answer with the blind one beside it. start_command() is the line to paste.

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

#include <servecap/catalog/rows.hpp>
#include <servecap/core/text.hpp>
#include <servecap/engine/llama_cpp.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/sglang.hpp>
#include <servecap/engine/support.hpp>
#include <servecap/engine/tensorrt_llm.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/engine/vllm.hpp>
#include <servecap/engine/vllm_fixes.hpp>
#include <servecap/layout/layout.hpp>

namespace servecap {

/// What a search spares or keeps when it judges thousands of starts.
struct StartOptions {
    std::span<WeightTensor const> tensors{};         ///< weight_tensors(model), made once; empty: made here
    bool layout_fixes = true;                        ///< also look for other layouts and more GPUs
    std::optional<PreparedVllm>* prepared = nullptr; ///< where vLLM's prepared deployment is kept
};

/// The verdict of the engine that is meant, with fixes where it refuses.
inline StartPlan plan_start(StartRequest const& r, StartOptions const& o = {}) {
    Support const support = engine_support(r.settings.engine, r.model, r.gpus.gpu);
    StartPlan plan;
    if (!support.supported) {
        plan.verdict = Verdict::unsupported;
        plan.engine_message = support.reason;
        if (!support.source.empty()) plan.notes.push_back("source: " + std::string{support.source});
        return plan;
    }
    switch (r.settings.engine) {
    case EngineKind::vllm: {
        PreparedVllm d = o.tensors.empty() ? prepare_vllm(r) : prepare_vllm(r, o.tensors);
        plan = explain_vllm(d, r);
        if (!plan.starts) {
            plan.fixes = vllm_fixes(r, d, plan);
            if (o.layout_fixes && (plan.fixes.empty() || plan.verdict == Verdict::no_kv_memory))
                for (Fix& f : vllm_layout_fixes(r)) plan.fixes.push_back(std::move(f));
        }
        if (o.prepared != nullptr) *o.prepared = std::move(d);
        break;
    }
    case EngineKind::sglang: plan = plan_sglang(r); break;
    case EngineKind::trtllm: plan = plan_tensorrt_llm(r); break;
    case EngineKind::llama_cpp: plan = plan_llama_cpp(r); break;
    }
    if (!support.reason.empty()) plan.notes.push_back(support.reason);
    return plan;
}

/// How one measured row stands to a request.
enum class RowMatch : std::uint8_t {
    other,      ///< another deployment
    deployment, ///< the same deployment with other settings
    same,       ///< the same deployment with the settings in force
};

namespace detail {

inline bool same_name(std::string_view a, std::string_view b) {
    auto const last = [](std::string_view s) {
        auto const slash = s.rfind('/');
        return slash == std::string_view::npos ? s : s.substr(slash + 1);
    };
    return fold_name(last(a)) == fold_name(last(b));
}

inline bool says_yes(std::string_view s) noexcept { return !s.empty() && s != "no" && s != "0" && s != "1"; }

/// "DCP8" in a free text of flags; 1 when it says nothing.
inline std::int32_t dcp_of(std::string_view flags) noexcept {
    for (std::size_t i = flags.find("DCP"); i != std::string_view::npos; i = flags.find("DCP", i + 3)) {
        std::int32_t n = 0;
        for (std::size_t j = i + 3; j < flags.size() && flags[j] >= '0' && flags[j] <= '9'; ++j) n = 10 * n + (flags[j] - '0');
        if (n > 0) return n;
    }
    return 1;
}

/// The flags of a row name a drafter.
inline bool row_speculates(StartupRow const& row) {
    std::string const f = to_lower(row.other_flags);
    auto const is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    for (std::string_view w : {"mtp", "dflash", "dspark", "spec decode", "eagle", "ngram"})
        for (std::size_t at = f.find(w); at != std::string::npos; at = f.find(w, at + 1))
            if (at == 0 || !is_letter(f[at - 1])) return true; // "engram" is a table, not an n-gram drafter
    return false;
}

} // namespace detail

/// Compares a row with a request; `plan` gives the settings in force.
inline RowMatch match_row(StartRequest const& r, StartPlan const& plan, StartupRow const& row) {
    EngineSettings const& s = r.settings;
    if (fold_name(row.engine) != to_string(s.engine)) return RowMatch::other;
    if (!detail::same_name(row.model, r.model.id) || fold_name(row.gpu) != fold_name(r.gpus.gpu.id)) return RowMatch::other;
    if (row.tp.value_or(1) != r.layout.tp || row.pp.value_or(1) != r.layout.pp || row.dp.value_or(1) != r.layout.dp) return RowMatch::other;
    bool const ep = detail::says_yes(row.ep);
    if (ep != r.layout.ep && (r.layout.dp > 1 || r.layout.ep || ep)) return RowMatch::other;
    if (detail::dcp_of(row.other_flags) != std::max(1, r.layout.dcp)) return RowMatch::other;
    if (detail::row_speculates(row) != (s.speculative_tokens > 0)) return RowMatch::other;
    std::string const label = fold_name(r.model.quant.label), theirs = fold_name(row.weights_precision);
    if (!theirs.empty() && theirs != label && !(theirs == "fp4" && label.find("fp4") != std::string::npos)) return RowMatch::other;

    if (!s.version.empty() && !row.engine_version.empty() && row.engine_version.find(s.version) == std::string::npos) return RowMatch::deployment;
    auto const differs = [](auto const& theirs_, auto const& asked, auto const& in_force) {
        if (theirs_) return *theirs_ != in_force;
        return asked.has_value(); // the row ran with the default
    };
    if (differs(row.max_num_seqs, s.max_num_seqs, plan.max_num_seqs)) return RowMatch::deployment;
    Tokens const longest = s.max_model_len.value_or(r.model.max_context);
    if (row.max_model_len ? *row.max_model_len != longest : s.max_model_len.has_value()) return RowMatch::deployment;
    if (row.max_num_batched_tokens ? *row.max_num_batched_tokens != plan.max_batched_tokens : s.max_num_batched_tokens.has_value())
        return RowMatch::deployment;
    if (row.gpu_memory_utilization ? std::abs(*row.gpu_memory_utilization - plan.budget.utilization) > 1e-6
                                   : s.gpu_memory_utilization.has_value())
        return RowMatch::deployment;
    // "auto" and "auto (bf16)" are what the checkpoint chooses; a format that was named is compared with that.
    std::string const kv = to_lower(row.kv_cache_dtype_as_written.empty() ? row.kv_cache_dtype : row.kv_cache_dtype_as_written);
    std::string const asked_kv = to_lower(s.kv_cache_dtype.value_or("auto"));
    auto const is_auto = [](std::string const& k) { return k.empty() || k.starts_with("auto"); };
    auto const format = [&](std::string const& k) -> std::optional<KvFormat> {
        if (!is_auto(k)) return detail::kv_format_of(std::string_view{k});
        if (is_auto(asked_kv)) return plan.kv_format; // what the engine chose
        return r.model.kv_dtype_hint ? detail::kv_format_of(std::string_view{*r.model.kv_dtype_hint}) : std::optional<KvFormat>{detail::kv_format_of(r.model.dtype)};
    };
    if (is_auto(kv) != is_auto(asked_kv) || !is_auto(kv))
        if (kv != asked_kv && format(kv) != format(asked_kv)) return RowMatch::deployment;
    if (s.enforce_eager || s.hybrid_manager_off || s.kv_cache_memory || s.num_gpu_blocks_override || s.graph_mode) return RowMatch::deployment;
    return RowMatch::same;
}

/// The answer of a real start of the same deployment; nothing when no row is the same. User rows win, then the newest.
/// `blind` is the engine model's own answer to the same request.
inline std::optional<std::pair<StartPlan, StartupRow const*>> measured_start(StartRequest const& r, StartPlan const& blind,
                                                                            std::span<StartupRow const> rows) {
    StartupRow const* best = nullptr;
    for (StartupRow const& row : rows) {
        if (row.usable == "no" || (row.starts != "yes" && row.starts != "no")) continue;
        if (match_row(r, blind, row) != RowMatch::same) continue;
        if (best == nullptr || (row.origin.user && !best->origin.user) || (row.origin.user == best->origin.user && row.date > best->date))
            best = &row;
    }
    if (best == nullptr) return std::nullopt;
    StartupRow const& row = *best;
    StartPlan p = blind;
    p.basis = Basis::measured;
    p.notes.clear();
    p.risks.clear();
    p.fixes.clear();
    p.starts = row.starts == "yes";
    if (row.weights_per_gpu) {
        p.weights = *row.weights_per_gpu;
        p.budget.weights = p.weights;
    }
    if (row.peak_activation) p.budget.activation = *row.peak_activation;
    if (row.non_torch) p.budget.non_torch = *row.non_torch;
    if (row.cuda_graph) p.budget.cuda_graph = *row.cuda_graph;
    if (row.available_kv_per_gpu) p.pool = *row.available_kv_per_gpu;
    if (row.block_size) p.block_tokens = Tokens{*row.block_size};
    if (p.starts) {
        p.verdict = Verdict::starts;
        p.engine_message.clear();
        p.fits = true;
        p.shortfall = Bytes{0};
        if (row.kv_tokens) p.kv_tokens = *row.kv_tokens;
        if (row.gpu_blocks)
            p.num_blocks = *row.gpu_blocks;
        else if (row.kv_tokens && p.blocks_per_max_request > 0 && p.max_model_len.value() > 0) // the tokens the engine logs are blocks over pages
            p.num_blocks = static_cast<std::int64_t>(std::llround(*row.kv_tokens / p.max_model_len * static_cast<double>(p.blocks_per_max_request)));
        else if (row.available_kv_per_gpu && p.bytes_per_block.value() > 0)
            p.num_blocks = p.pool.value() / p.bytes_per_block.value();
        if (p.blocks_per_max_request > 0)
            p.max_requests_at_max_model_len = row.max_concurrency.value_or(static_cast<double>(p.num_blocks) / static_cast<double>(p.blocks_per_max_request));
        if (p.state_slots) p.state_slots = row.state_slots.value_or(p.num_blocks);
        p.kv_tokens_low = p.kv_tokens_high = p.kv_tokens;
    } else {
        for (int v = 0; v < 8; ++v)
            if (row.verdict == to_string(static_cast<Verdict>(v))) p.verdict = static_cast<Verdict>(v);
        if (p.verdict == Verdict::starts) p.verdict = Verdict::no_kv_memory;
        if (!row.error_text.empty()) p.engine_message = row.error_text;
        if (row.state_slots) {
            p.state_slots = *row.state_slots;
            p.num_blocks = *row.state_slots;
        }
        p.kv_tokens = p.kv_tokens_low = p.kv_tokens_high = Tokens{0};
    }
    return std::pair{std::move(p), best};
}

/// A verdict with what it rests on.
struct StartJudgement {
    StartPlan plan;
    std::optional<StartPlan> blind; ///< the model alone, where a measured start overrides it
    std::string source, url, date, note; ///< the measured row
};

namespace detail {

/// A real start of the same deployment that differs in one flag: the surest fix.
inline std::optional<Fix> measured_fix(StartRequest const& r, StartPlan const& refused, std::span<StartupRow const> rows) {
    std::optional<Fix> best;
    for (StartupRow const& row : rows) {
        if (row.usable == "no" || row.starts != "yes") continue;
        StartRequest q{r.model, r.gpus, r.layout, r.settings, r.isl, r.osl, r.date, r.logged_pool};
        Fix f;
        if (refused.verdict == Verdict::state_slots_too_few && row.max_num_seqs && *row.max_num_seqs < refused.max_num_seqs) {
            f.flag = "--max-num-seqs";
            f.value = std::to_string(row.max_num_seqs->value());
            q.settings.max_num_seqs = row.max_num_seqs;
        } else if (refused.verdict == Verdict::max_model_len_too_long && row.max_model_len && *row.max_model_len < refused.max_model_len) {
            f.flag = "--max-model-len";
            f.value = std::to_string(row.max_model_len->value());
            q.settings.max_model_len = row.max_model_len;
        } else {
            continue;
        }
        StartPlan in_force = refused;
        if (q.settings.max_num_seqs) in_force.max_num_seqs = *q.settings.max_num_seqs;
        if (q.settings.max_model_len) in_force.max_model_len = *q.settings.max_model_len;
        if (match_row(q, in_force, row) != RowMatch::same) continue;
        f.effect = "started so on " + (row.date.empty() || row.date == "unknown" ? std::string{"record"} : row.date);
        if (row.kv_tokens) f.effect += " with " + grouped_digits(row.kv_tokens->value()) + " tokens of KV cache";
        f.settings = q.settings;
        if (!best || std::stoll(f.value) > std::stoll(best->value)) best = std::move(f);
    }
    return best;
}

} // namespace detail

/// The measured start where one is known, with the blind figure beside it; else the model's own.
inline StartJudgement judge_start(StartRequest const& r, std::span<StartupRow const> rows, StartOptions const& o = {}) {
    StartJudgement j;
    StartPlan blind = plan_start(r, o);
    if (blind.verdict == Verdict::unsupported) {
        j.plan = std::move(blind);
        return j;
    }
    if (auto measured = measured_start(r, blind, rows)) {
        StartupRow const& row = *measured->second;
        j.plan = std::move(measured->first);
        j.source = row.source.empty() ? row.origin.file : row.source;
        j.url = row.url;
        j.date = row.date;
        j.note = row.note;
        if (!j.plan.starts) j.plan.fixes = blind.fixes;
        j.blind = std::move(blind);
    } else {
        j.plan = std::move(blind);
    }
    if (!j.plan.starts)
        if (auto fix = detail::measured_fix(r, j.plan, rows)) {
            std::erase_if(j.plan.fixes, [&](Fix const& f) { return f.flag == fix->flag; });
            j.plan.fixes.insert(j.plan.fixes.begin(), std::move(*fix));
        }
    return j;
}

/// The line that starts the engine so, one replica.
inline std::string start_command(StartRequest const& r) {
    EngineSettings const& s = r.settings;
    Layout const& l = r.layout;
    std::string c;
    auto const flag = [&](std::string_view name, auto const& value) { c += fmt::format(" {} {}", name, value); };
    switch (s.engine) {
    case EngineKind::vllm:
        c = "vllm serve " + r.model.id;
        if (l.tp > 1) flag("--tensor-parallel-size", l.tp);
        if (l.pp > 1) flag("--pipeline-parallel-size", l.pp);
        if (l.dp > 1) flag("--data-parallel-size", l.dp);
        if (l.ep) c += " --enable-expert-parallel";
        if (l.dcp > 1) flag("--decode-context-parallel-size", l.dcp);
        if (s.gpu_memory_utilization) flag("--gpu-memory-utilization", fmt::format("{:g}", *s.gpu_memory_utilization));
        if (s.max_model_len) flag("--max-model-len", s.max_model_len->value() < 0 ? std::string{"auto"} : std::to_string(s.max_model_len->value()));
        if (s.max_num_seqs) flag("--max-num-seqs", s.max_num_seqs->value());
        if (s.max_num_batched_tokens) flag("--max-num-batched-tokens", s.max_num_batched_tokens->value());
        if (s.kv_cache_dtype && *s.kv_cache_dtype != "auto") flag("--kv-cache-dtype", *s.kv_cache_dtype);
        if (s.block_size) flag("--block-size", s.block_size->value());
        if (s.state_dtype && *s.state_dtype != "auto") flag("--mamba-ssm-cache-dtype", *s.state_dtype);
        if (s.mamba_cache_mode)
            flag("--mamba-cache-mode", *s.mamba_cache_mode == MambaCacheMode::none    ? "none"
                                       : *s.mamba_cache_mode == MambaCacheMode::align ? "align"
                                                                                      : "all");
        if (s.prefix_caching) c += *s.prefix_caching ? " --enable-prefix-caching" : " --no-enable-prefix-caching";
        if (s.kv_cache_memory) flag("--kv-cache-memory-bytes", s.kv_cache_memory->value());
        if (s.num_gpu_blocks_override) flag("--num-gpu-blocks-override", *s.num_gpu_blocks_override);
        if (s.max_cudagraph_capture_size) flag("--max-cudagraph-capture-size", s.max_cudagraph_capture_size->value());
        if (s.enforce_eager) c += " --enforce-eager";
        if (s.graph_mode && !s.enforce_eager) {
            constexpr std::string_view names[] = {"FULL_AND_PIECEWISE", "FULL_DECODE_ONLY", "PIECEWISE", "NONE"};
            c += fmt::format(" --compilation-config '{{\"cudagraph_mode\":\"{}\"}}'", names[static_cast<std::size_t>(*s.graph_mode)]);
        }
        if (s.hybrid_manager_off) c += " --disable-hybrid-kv-cache-manager";
        if (s.lookup_tables_on_host) flag("--engram-config", *s.lookup_tables_on_host ? "'{\"cpu_offload\":true}'" : "'{\"cpu_offload\":false}'");
        if (s.indexer_kv_dtype || s.attention_backend) {
            std::string v;
            if (s.attention_backend) v += "\"backend\":\"" + *s.attention_backend + "\"";
            if (s.indexer_kv_dtype) v += (v.empty() ? "" : ",") + std::string{"\"indexer_kv_dtype\":\""} + *s.indexer_kv_dtype + "\"";
            flag("--attention-config", "'{" + v + "}'");
        }
        if (s.mm_encoder_data_parallel) flag("--mm-encoder-tp-mode", *s.mm_encoder_data_parallel ? "data" : "weights");
        if (s.speculative_tokens > 0)
            flag("--speculative-config", fmt::format("'{{\"method\":\"{}\",\"num_speculative_tokens\":{}}}'",
                                                     s.speculative_method.empty() ? "mtp" : s.speculative_method, s.speculative_tokens));
        break;
    case EngineKind::sglang:
        c = "python3 -m sglang.launch_server --model-path " + r.model.id;
        if (l.tp * l.dp > 1) flag("--tp", l.tp * l.dp);
        if (l.dp > 1) c += fmt::format(" --dp {} --enable-dp-attention", l.dp);
        if (l.pp > 1) flag("--pp", l.pp);
        if (l.ep) flag("--ep", l.ep_size());
        if (s.mem_fraction_static) flag("--mem-fraction-static", fmt::format("{:g}", *s.mem_fraction_static));
        if (s.max_model_len && s.max_model_len->value() > 0) flag("--context-length", s.max_model_len->value());
        if (s.max_running_requests) flag("--max-running-requests", s.max_running_requests->value());
        if (s.kv_cache_dtype && *s.kv_cache_dtype != "auto") flag("--kv-cache-dtype", *s.kv_cache_dtype);
        if (s.max_total_tokens) flag("--max-total-tokens", s.max_total_tokens->value());
        if (s.mamba_full_memory_ratio) flag("--mamba-full-memory-ratio", fmt::format("{:g}", *s.mamba_full_memory_ratio));
        break;
    case EngineKind::trtllm:
        c = "trtllm-serve " + r.model.id;
        if (l.tp > 1) flag("--tp_size", l.tp);
        if (l.pp > 1) flag("--pp_size", l.pp);
        if (l.ep) flag("--ep_size", l.ep_size());
        if (s.max_batch_size) flag("--max_batch_size", s.max_batch_size->value());
        if (s.max_num_batched_tokens) flag("--max_num_tokens", s.max_num_batched_tokens->value());
        if (s.max_model_len && s.max_model_len->value() > 0) flag("--max_seq_len", s.max_model_len->value());
        if (s.free_gpu_memory_fraction) flag("--kv_cache_free_gpu_memory_fraction", fmt::format("{:g}", *s.free_gpu_memory_fraction));
        break;
    case EngineKind::llama_cpp:
        c = "llama-server -hf " + r.model.id;
        if (s.n_gpu_layers) flag("-ngl", *s.n_gpu_layers);
        if (s.max_model_len && s.max_model_len->value() > 0) flag("-c", s.max_model_len->value());
        if (s.n_parallel) flag("-np", *s.n_parallel);
        if (s.ubatch) flag("-ub", s.ubatch->value());
        if (s.kv_cache_dtype && *s.kv_cache_dtype != "auto") flag("-ctk", *s.kv_cache_dtype);
        if (s.cache_type_v) flag("-ctv", *s.cache_type_v);
        break;
    }
    for (auto const& [name, value] : s.other) c += " " + name + (value.empty() ? "" : " " + value);
    return c;
}

} // namespace servecap
