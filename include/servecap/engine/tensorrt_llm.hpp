// servecap: what TensorRT-LLM's PyTorch backend makes of a GPU's memory
// SPDX-License-Identifier: Apache-2.0
//
//   KV bytes = fraction * (device total - peak of a dummy forward)      fraction 0.9 of what is LEFT, not of the card
//   peak     = weights + activations of max_num_tokens + what lies outside torch (NCCL, context, graphs)
//   tokens   = whole blocks of 32; recurrent models pay max_batch_size states first: bytes(t) = slope * t + intercept
// A pool smaller than max_seq_len does not stop the start: the context is cut to the pool. Recurrent models
// with the default max_batch_size of 2,048 usually do not start.
// Sources: tensorrt_llm/_torch/pyexecutor/_util.py, resource_manager.py, mamba_cache_manager, KvCacheConfig
// (1.0 to 1.4.0rc4). Sizes of a token are exact and confirmed by logs; the activation peak is taken from the
// layers' intermediates and 0.5 to 2.5 GiB outside torch: no complete budget line of a known deployment was
// found to fit it to, so the interval is wide. Not modelled: pools of several windows, encoder-decoders.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <servecap/core/text.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/support.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/engine/vllm_budget.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>

namespace servecap {

/// Newest version whose rules are modelled.
inline constexpr std::string_view kTrtllmRules = "TensorRT-LLM 1.4";
/// Requests that the engine prepares for when --max_batch_size is not given.
inline constexpr std::int64_t kTrtllmMaxBatch = 2048;
/// Tokens of one forward when --max_num_tokens is not given.
inline constexpr std::int64_t kTrtllmMaxTokens = 8192;
/// What NCCL, the context, graphs and kernels take outside torch: GiB, and half of its 80 % interval.
inline constexpr double kTrtllmOutsideGib = 1.5;
inline constexpr double kTrtllmOutsideDoubtGib = 1.0;

/// What tokens and sequences cost on a rank: bytes(t) = token * t + fixed.
struct TrtllmCosts {
    Bytes token{}; ///< attention caches of one token
    Bytes state{}; ///< recurrent state of one request
    Bytes fixed{}; ///< states of max_batch_size requests and the padding ones
    std::int64_t block = 32;
};

/// Largest number of tokens in whole blocks that `quota` bytes hold; 0 when the states alone do not fit.
constexpr std::int64_t trtllm_tokens(Bytes quota, TrtllmCosts const& c) noexcept {
    Bytes const left = quota - c.fixed;
    if (left.value() <= 0) return 0;
    if (c.token.value() <= 0) return std::int64_t{1} << 40;
    return left.value() / c.token.value() / c.block * c.block;
}

namespace trtllm_detail {

inline std::pair<KvFormat, std::string> kv_format(Model const& m, EngineSettings const& s) {
    std::string asked = to_lower(s.kv_cache_dtype.value_or("auto"));
    if (asked == "auto" || asked.empty()) {
        std::string const hint = to_lower(m.kv_dtype_hint.value_or(""));
        if (hint.find("fp8") != std::string::npos) return {KvFormat::fp8, "fp8"};
        if (hint.find("fp4") != std::string::npos) return {KvFormat::nvfp4, "nvfp4"};
        return {m.dtype == Format::fp16 ? KvFormat::fp16 : m.dtype == Format::fp32 ? KvFormat::fp32 : KvFormat::bf16, "auto"};
    }
    if (asked.starts_with("fp8")) return {KvFormat::fp8, "fp8"};
    if (asked.starts_with("nvfp4") || asked.starts_with("fp4")) return {KvFormat::nvfp4, "nvfp4"};
    if (asked == "fp16" || asked == "float16" || asked == "half") return {KvFormat::fp16, "fp16"};
    return {KvFormat::bf16, "bf16"};
}

/// Attention cost of one token over the layers [first, last): every layer keeps every token, windows included.
inline Bytes token_bytes(Model const& m, KvOptions const& kv, std::size_t first, std::size_t last) {
    Bytes sum{};
    for (std::size_t i = first; i < last && i < m.layers.size(); ++i)
        for (Mixer const& x : m.layers[i].mixers) {
            if (auto const* a = std::get_if<SlidingWindow>(&x))
                sum += kv_token_bytes(a->attn, kv);
            else if (auto const* c = std::get_if<ChunkedLocal>(&x))
                sum += kv_token_bytes(c->attn, kv);
            else if (auto const* v = std::get_if<Compressed>(&x)) {
                constexpr std::int64_t sample = 1 << 20;
                sum += Bytes{ceil_div(kv_growing_bytes(Mixer{*v}, kv, Tokens{sample}).value(), sample)};
            } else
                sum += kv_growing_bytes(x, kv, Tokens{1});
        }
    return sum;
}

inline TrtllmCosts costs(Model const& m, Gpu const& g, Layout const& l, EngineSettings const& s, std::int64_t batch,
                         std::size_t first, std::size_t last) {
    KvOptions kv;
    kv.format = kv_format(m, s).first;
    kv.tp = l.tp;
    TrtllmCosts c;
    c.token = token_bytes(m, kv, first, last);
    StateOptions st;
    st.tp = l.tp;
    st.conv_bytes = m.dtype == Format::fp32 ? 4 : 2;
    st.recurrent_bytes = default_state_value_bytes(m.state_dtype, m.dtype);
    if (s.state_dtype && *s.state_dtype != "auto") st.recurrent_bytes = s.state_dtype->find("32") != std::string::npos ? 4 : 2;
    for (std::size_t i = first; i < last && i < m.layers.size(); ++i)
        for (Mixer const& x : m.layers[i].mixers) c.state += state_bytes(x, st);
    // One padding request for graphs, one more with attention data parallelism.
    if (c.state.value() > 0) c.fixed = c.state * (batch * l.pp + 1 + (l.dp > 1 ? 1 : 0));
    bool mla = false;
    for (Layer const& layer : m.layers)
        for (Mixer const& x : layer.mixers)
            mla = mla || std::holds_alternative<Mla>(x) || std::holds_alternative<SparseIndexed>(x);
    c.block = s.block_size ? std::max<std::int64_t>(1, s.block_size->value()) : mla && compute_capability(g) == 90 ? 64 : 32;
    return c;
}

struct Outcome {
    double fraction = 0.9;
    std::int64_t batch = kTrtllmMaxBatch, batched = kTrtllmMaxTokens, context = 0;
    Bytes visible{}, weights{}, weights_total{}, host{}, activation{}, outside{}, pool{};
    std::int64_t tokens = 0, low = 0, high = 0;
    TrtllmCosts costs;
    KvFormat format = KvFormat::bf16;
    std::string kv_name;
    Verdict verdict = Verdict::starts;
    std::string message;
};

inline std::string no_memory(std::string_view component, Bytes total, Bytes free) {
    return fmt::format("Executor creation failed due to insufficient GPU memory. The following component could not be created: "
                       "{}. Total GPU memory "
                       "(GiB): {:.2f}, Free GPU memory before component creation attempt (GiB): {:.2f}",
                       component, in_gib(total), std::max(0.0, in_gib(free)));
}

inline Outcome evaluate(StartRequest const& r) {
    Outcome o;
    Model const& m = r.model;
    EngineSettings const& s = r.settings;
    Layout const& l = r.layout;
    o.visible = r.gpus.gpu.visible;
    o.fraction = s.free_gpu_memory_fraction ? *s.free_gpu_memory_fraction : s.gpu_memory_utilization.value_or(0.9);
    o.batch = s.max_batch_size ? s.max_batch_size->value() : s.max_num_seqs ? s.max_num_seqs->value() : kTrtllmMaxBatch;
    o.batched = s.max_num_batched_tokens ? s.max_num_batched_tokens->value() : kTrtllmMaxTokens;
    o.context = s.max_model_len && s.max_model_len->value() > 0 ? s.max_model_len->value() : m.max_context.value();
    std::tie(o.format, o.kv_name) = kv_format(m, s);

    if (auto const support = engine_support(EngineKind::trtllm, m, r.gpus.gpu); !support.supported) {
        o.verdict = Verdict::unsupported;
        o.message = support.reason + " (" + std::string{support.source} + ")";
        return o;
    }
    if (l.gpus_per_replica() > r.gpus.count || l.pp > static_cast<std::int32_t>(m.layers.size())) {
        o.verdict = Verdict::layout_invalid;
        o.message = fmt::format("{} needs {} GPUs and {} layers for {} stages", layout_name(l), l.gpus_per_replica(),
                                m.layers.size(), l.pp);
        return o;
    }
    if (auto const bad = heads_that_do_not_divide(m, l.tp)) {
        o.verdict = Verdict::layout_invalid;
        o.message = fmt::format("{} cannot be divided over {} tensor-parallel ranks", *bad, l.tp);
        return o;
    }

    WeightOptions w;
    w.mtp = s.speculative_tokens > 0;
    w.draft = w.mtp;
    VllmMemoryModel const memory = vllm_memory_model(m, r.gpus, l, vllm_rules(VllmVersion{}), true);
    o.activation = Bytes{
        static_cast<std::int64_t>((memory.bytes_per_token + memory.layer_bytes_per_token) * static_cast<double>(o.batched))};
    o.outside = gib(kTrtllmOutsideGib);
    auto const stages = pipeline_stages(static_cast<std::int32_t>(m.layers.size()), l.pp);
    for (std::size_t p = 0; p < stages.size(); ++p) {
        auto const first = static_cast<std::size_t>(stages[p].first);
        RankWeights const rw = rank_weights(m, l, w, static_cast<int>(p));
        TrtllmCosts const c = costs(m, r.gpus.gpu, l, s, o.batch, first, first + static_cast<std::size_t>(stages[p].second));
        auto const quota = [&](double doubt_gib) {
            if (s.kv_cache_memory) return *s.kv_cache_memory;
            Bytes const left = o.visible - rw.total - o.activation - o.outside + gib(doubt_gib);
            return Bytes{static_cast<std::int64_t>(o.fraction * static_cast<double>(left.value()))};
        };
        double const doubt = kTrtllmOutsideDoubtGib + 0.4 * in_gib(o.activation) + 0.02 * in_gib(rw.total);
        auto const tokens = [&](double doubt_gib) {
            std::int64_t t = trtllm_tokens(quota(doubt_gib), c);
            if (s.max_total_tokens) t = std::min(t, s.max_total_tokens->value() / c.block * c.block);
            return t;
        };
        std::int64_t const t = tokens(0);
        if (p == 0 || t < o.tokens) {
            o.tokens = t;
            o.low = tokens(-doubt);
            o.high = tokens(doubt);
            o.pool = quota(0);
            o.costs = c;
        }
        if (rw.total > o.weights) o.weights = rw.total;
        o.weights_total += rw.total * (l.tp * l.dp);
        o.host += rw.host * (l.tp * l.dp);
    }
    Bytes const after_weights = o.visible - o.weights - gib(0.5);
    if (after_weights.value() <= 0) {
        o.verdict = Verdict::weights_do_not_fit;
        o.message = no_memory("Model", o.visible, o.visible - gib(0.5));
    } else if (o.pool.value() <= 0) {
        o.verdict = Verdict::no_kv_memory;
        o.message = no_memory("Initial KV cache (temporary for KV cache size estimation)", o.visible, after_weights);
    } else if (o.costs.fixed > o.pool) {
        o.verdict = Verdict::state_slots_too_few;
        o.message = fmt::format("The V2 Mamba state pool has only {} slots but needs at least {}",
                                o.pool.value() / std::max<std::int64_t>(1, o.costs.state.value()),
                                o.costs.fixed.value() / std::max<std::int64_t>(1, o.costs.state.value()));
    } else if (o.tokens < o.costs.block) {
        o.verdict = Verdict::no_kv_memory;
        o.message = "Impossible to fit in any sequence in kvCache";
    }
    return o;
}

} // namespace trtllm_detail

/// What TensorRT-LLM would make of the deployment. `explain` adds fixes and notes; a sweep leaves them out.
inline StartPlan plan_tensorrt_llm(StartRequest const& r, bool explain = true) {
    using namespace trtllm_detail;
    Outcome const o = evaluate(r);
    StartPlan p;
    p.verdict = o.verdict;
    p.starts = o.verdict == Verdict::starts;
    p.engine_message = o.message;
    p.rules_version = std::string{kTrtllmRules};
    p.basis = r.model.is_inferred() ? Basis::inferred : Basis::assumed;
    p.kv_format = o.format;
    p.kv_cache_dtype = o.kv_name;
    p.weights = o.weights;
    p.weights_total = o.weights_total;
    p.host_bytes = o.host;
    p.budget.visible = o.visible;
    p.budget.utilization = o.fraction;
    p.budget.requested = o.visible;
    p.budget.weights = o.weights;
    p.budget.activation = o.activation;
    p.budget.non_torch = o.outside;
    p.pool = o.pool.value() > 0 ? o.pool : Bytes{};
    p.kv_per_token = o.costs.token;
    p.state_per_sequence = o.costs.state;
    p.block_tokens = Tokens{o.costs.block};
    p.bytes_per_block = o.costs.token * o.costs.block;
    p.max_batched_tokens = Tokens{o.batched};
    p.max_num_seqs = Requests{o.batch};
    p.blocks_per_max_request = ceil_div(o.context, o.costs.block);
    p.max_model_len = Tokens{o.context};
    if (o.costs.state.value() > 0) p.state_slots = o.batch;
    std::int64_t const one = r.isl.value() + r.osl.value();
    Bytes const room = o.visible - o.weights - gib(kTrtllmOutsideGib);
    p.fits =
        o.verdict != Verdict::unsupported && o.verdict != Verdict::layout_invalid &&
        (o.costs.token * one + o.costs.state * 2) < Bytes{static_cast<std::int64_t>(0.98 * static_cast<double>(room.value()))} &&
        (r.model.max_context.value() <= 0 || one <= r.model.max_context.value());
    if (o.verdict == Verdict::weights_do_not_fit) p.shortfall = o.weights + gib(0.5) - o.visible;
    if (p.starts) {
        p.kv_tokens = Tokens{o.tokens};
        p.kv_tokens_low = Tokens{std::min(o.low, o.tokens)};
        p.kv_tokens_high = Tokens{std::max(o.high, o.tokens)};
        p.num_blocks = o.tokens / o.costs.block;
        p.pages_of_request = {PageRule{o.costs.block, 0, 0, 1, 1}};
        p.longest = Tokens{std::min(o.context, o.tokens)};
        p.max_model_len = p.longest;
        p.max_requests_at_max_model_len =
            p.longest.value() > 0 ? static_cast<double>(o.tokens) / static_cast<double>(p.longest.value()) : 0;
    }
    if (!explain) return p;
    if (p.starts) {
        if (o.tokens < o.context)
            p.notes.push_back(fmt::format("starts, but max_seq_len is cut from {} to {}", o.context, o.tokens));
        p.notes.push_back("the activation peak and what lies outside torch are estimates: no complete budget line of a known "
                          "deployment was found");
        bool windows = false;
        for (Layer const& layer : r.model.layers)
            for (Mixer const& x : layer.mixers) windows = windows || std::holds_alternative<SlidingWindow>(x);
        if (windows)
            p.notes.push_back("layers with windows are priced as full ones; the engine splits the bytes over one pool a window");
        return p;
    }
    if (o.verdict == Verdict::unsupported || o.verdict == Verdict::layout_invalid) return p;

    auto const offer = [&](std::string flag, std::string value, auto&& change, std::string price) {
        EngineSettings s = r.settings;
        change(s);
        auto const v = plan_tensorrt_llm(StartRequest{r.model, r.gpus, r.layout, s, r.isl, r.osl, r.date}, false);
        if (!v.starts) return false;
        p.fixes.push_back(
            {std::move(flag), std::move(value), fmt::format("starts with {} KV tokens; {}", v.kv_tokens.value(), price), s});
        return true;
    };
    if (o.verdict == Verdict::state_slots_too_few) {
        std::int64_t const one_request = o.costs.token.value() * one;
        std::int64_t most = (o.pool.value() - one_request) / std::max<std::int64_t>(1, o.costs.state.value()) / r.layout.pp - 2;
        std::int64_t round = 1;
        while (round * 2 <= most) round *= 2;
        if (most >= 1)
            offer(
                "--max_batch_size", std::to_string(round), [&](EngineSettings& s) { s.max_batch_size = Requests{round}; },
                fmt::format("{:.1f} GiB of state for {} requests", in_gib(o.costs.state * (round + 1)), round));
    }
    if (o.verdict == Verdict::no_kv_memory) {
        for (std::int64_t tokens : {4096, 2048, 1024})
            if (tokens < o.batched && offer(
                                          "--max_num_tokens", std::to_string(tokens),
                                          [&](EngineSettings& s) { s.max_num_batched_tokens = Tokens{tokens}; },
                                          "prompts are prefilled in smaller pieces"))
                break;
        if (o.fraction < 0.95)
            offer(
                "--kv_cache_free_gpu_memory_fraction", "0.95", [&](EngineSettings& s) { s.free_gpu_memory_fraction = 0.95; },
                "less room for growth while it runs");
    }
    for (std::int32_t tp = r.layout.tp * 2; tp * r.layout.pp * r.layout.dp <= r.gpus.count; tp *= 2) {
        StartRequest q{r.model, r.gpus, r.layout, r.settings, r.isl, r.osl, r.date};
        q.layout.tp = tp;
        auto const v = plan_tensorrt_llm(q, false);
        if (!v.starts) continue;
        p.fixes.push_back({"--tp_size", std::to_string(tp),
                           fmt::format("starts with {} KV tokens on {} GPUs", v.kv_tokens.value(), q.layout.gpus_per_replica()),
                           std::nullopt});
        break;
    }
    return p;
}

/// TensorRT-LLM as one of the engines that share the concept EngineModel.
struct TrtllmEngine {
    static constexpr EngineKind kind = EngineKind::trtllm;
    static StartPlan start(StartRequest const& r) { return plan_tensorrt_llm(r); }
};

} // namespace servecap
