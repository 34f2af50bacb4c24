// servecap: the time of one decode step and of one prefill, as a sum of terms
// SPDX-License-Identifier: Apache-2.0
//
// A model on a layout and a GPU is prepared once: bytes and flops a rank touches, layers by kind, KV groups.
// A step of B running requests of a replica then costs
//   launches      sum over layers of a time by kind (kernels of 1-2 us each; MLA, routing... have many)
//   all-reduce    2 a layer: floor * sqrt(ranks / 8), and bytes * 2 (n - 1) / n / link
//   dense         hypot(bytes / bandwidth, flops / peak) of attention, dense and shared weights and the head
//   experts       the same for the distinct experts that B tokens reach: E (1 - (1 - k/E)^B) over the ranks,
//                 times the fullest rank's share over the mean where whole experts lie on ranks
//   KV cache      hypot(bytes / bandwidth, attention flops / peak); windows, top-k and compressed entries are caps
//   index keys    read whole by the layers that own an indexer;   state: read and written once
//   prefill       B * isl / osl prompt tokens a step (closed loop in balance): flops by class + attention + links
//   prefill launches  steps that carry a prompt chunk run its kernels besides: 1 - exp(-chunks a step)
//   host          a constant and a part a sequence
// Speculation: the step computes 1 + n tokens a sequence (flops, experts, messages; KV rows are read once), n
// drafts come before it, and 1 + accepted tokens come out.
// Pipeline stages split the batch: the period of one token is the time of all layers at B / pp.
// Evaluation allocates nothing.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/perf/coefficients.hpp>
#include <servecap/perf/precision.hpp>

namespace servecap {

/// Parts of a decode step.
enum class StepTerm : std::uint8_t {
    launches,
    allreduce_floor,
    allreduce_bytes,
    dense,
    experts,
    kv_cache,
    index_keys,
    state,
    prefill,
    prefill_launches,
    host,
};
inline constexpr std::size_t kStepTerms = 11;

constexpr std::string_view to_string(StepTerm t) noexcept {
    constexpr std::array<std::string_view, kStepTerms> names{
        "kernel launches", "all-reduce latency", "all-reduce bytes", "dense weights", "routed experts", "KV cache", "index keys",
        "recurrent state", "prefill share",      "prefill launches", "host"};
    return names[static_cast<std::size_t>(t)];
}

/// Rows of a cache that a step reads alike: min(context / ratio, cap) entries a sequence.
struct KvGroup {
    double ratio = 1;                                     ///< tokens an entry
    double cap = std::numeric_limits<double>::infinity(); ///< entries at most: window, top-k
    double bytes = 0;                                     ///< a sequence and entry, all layers of the group, one rank
    double flops = 0;                                     ///< of decode, a sequence and entry
    double prefill_flops = 0;                             ///< of prefill, a token and entry
    double prompt_seen = 0;                               ///< prefill_flops of the layers that prompts pass, while preparing
    bool index = false;                                   ///< index keys
};

/// Equal expert layers.
struct MoeGroup {
    double experts = 0, top_k = 0;
    double bytes = 0; ///< of one expert in all layers of the group, over the ranks of the replica
    double flops = 0; ///< of one token in all layers of the group, over the ranks of the replica
};

/// What a rank does, with everything that does not depend on the load already summed.
struct PreparedSpeed {
    std::array<double, 7> layers{};                              ///< by launch kind, in the order launch_gqa..launch_moe
    double depth = 0;                                            ///< layers in all
    double weight_bytes = 0;                                     ///< attention, dense, shared, head: read every step
    double attention_flops = 0, dense_flops = 0, head_flops = 0; ///< a token of the rank
    double prompt_attention_flops = 0, prompt_dense_flops = 0, prompt_expert_flops = 0; ///< the same of a prompt's token
    double prompt_depth = 0; ///< layers that prompts pass: those up to the last that caches rows or a state
    std::array<KvGroup, 12> kv{};
    std::size_t kv_count = 0;
    std::array<MoeGroup, 6> moe{};
    std::size_t moe_count = 0;
    double state_bytes = 0;                                                    ///< a sequence, read and written
    double rate_attention = 1, rate_dense = 1, rate_expert = 1, rate_bf16 = 1; ///< peak flops/s by the format of weights
    double bandwidth = 1;                                                      ///< bytes/s
    double link = 1;                                                           ///< bytes/s, one direction
    double hidden = 0;
    double ranks = 1, tp = 1, dp = 1, pp = 1;
    bool whole_experts = false; ///< expert parallelism over more than one rank
    ResolvedCoefs coefs;
    std::array<double, kCoefs> factor{}; ///< exp of the coefficients (date: the slope itself)
};

/// The load of one replica.
struct StepLoad {
    double batch = 1;  ///< running requests
    double isl = 1000; ///< prompt tokens that are computed (cached prefix not counted)
    double osl = 1000;
    double context = 1500;    ///< mean tokens a running request attends to
    double years = 0;         ///< date, years from 2026-03-01
    double capture = 0;       ///< largest number of tokens that graphs were captured for, where it is known; 0 = the usual
    double verify = 1;        ///< tokens a sequence that one step computes: 1 + draft tokens
    double tokens_a_step = 1; ///< tokens a sequence that one step yields: 1 + accepted draft tokens
};

/// The times of the terms of one step, in seconds.
struct StepTimes {
    std::array<double, kStepTerms> term{};
    double total = 0; ///< the step, with its share of prefill
    bool experts_by_flops = false, dense_by_flops = false, kv_by_flops = false;

    [[nodiscard]] double operator[](StepTerm t) const noexcept { return term[static_cast<std::size_t>(t)]; }
};

namespace detail {

/// Peak of the tensor cores for weights of a format. A GPU without the format computes in bf16 or fp8.
inline double peak_flops(Gpu const& g, Format f) noexcept {
    double const bf16 = g.bf16 ? g.bf16->value() : g.fp16 ? g.fp16->value() : 1e14;
    double const fp8 = g.fp8 && g.fp8->value() > 0 ? g.fp8->value() : bf16;
    double const fp4 = g.fp4 && g.fp4->value() > 0 ? g.fp4->value() : 0;
    switch (element_bits(f)) {
    case 8: return f == Format::int8 && g.int8 && g.int8->value() > 0 ? std::max(bf16, g.int8->value()) : fp8;
    case 6: return fp8;
    case 4:
        if (f == Format::nvfp4) return fp4 > 0 ? fp4 : fp8; // else unpacked to fp8
        // MXFP4 weights meet 8-bit activations on NVIDIA, 4-bit ones on AMD; without native types they are unpacked to bf16.
        if (f == Format::mxfp4 && fp4 > 0) return g.vendor == GpuVendor::amd ? fp4 : fp8;
        return bf16;
    default: return bf16;
    }
}

inline void add_kv(PreparedSpeed& p, KvGroup const& g) noexcept {
    if (g.bytes <= 0 && g.flops <= 0) return;
    for (std::size_t i = 0; i < p.kv_count; ++i) {
        KvGroup& have = p.kv[i];
        if (have.ratio == g.ratio && have.cap == g.cap && have.index == g.index) {
            have.bytes += g.bytes;
            have.flops += g.flops;
            have.prefill_flops += g.prefill_flops;
            return;
        }
    }
    if (p.kv_count < p.kv.size()) {
        p.kv[p.kv_count++] = g;
        return;
    }
    KvGroup& last = p.kv[p.kv_count - 1]; // more kinds than room: counted with the last, its cap the larger
    last.cap = std::max(last.cap, g.cap);
    last.bytes += g.bytes;
    last.flops += g.flops;
    last.prefill_flops += g.prefill_flops;
}

inline void add_gqa(PreparedSpeed& p, Gqa const& a, KvOptions const& o, double cap) noexcept {
    double const per = 2.0 * a.q_heads / p.tp * (a.head_dim + a.v_head_dim);
    KvGroup g;
    g.cap = cap;
    if (a.reuses_kv) {
        Gqa own = a;
        own.reuses_kv = false;
        g.bytes = static_cast<double>(kv_token_bytes(own, o).value()); // read though not stored twice
    } else {
        g.bytes = static_cast<double>(kv_token_bytes(a, o).value());
    }
    g.flops = g.prefill_flops = per;
    add_kv(p, g);
}

inline void add_mla(PreparedSpeed& p, Mla const& a, KvOptions const& o, double cap) noexcept {
    KvGroup g;
    g.cap = cap;
    g.bytes = static_cast<double>(kv_token_bytes(a, o).value());
    g.flops = 2.0 * (2.0 * a.kv_lora_rank + a.qk_rope) * a.heads / p.tp;
    g.prefill_flops = 2.0 * (a.qk_nope + a.qk_rope + a.v_head_dim) * a.heads / p.tp;
    add_kv(p, g);
}

/// Tokens that a sparse layer attends to: MiniMax M3 names blocks, the DeepSeek line tokens.
inline double attended_tokens(Indexer const& i) noexcept { return i.top_k; }

/// The mixer keeps something of every prompt token: rows that grow, or a state.
inline bool keeps_prompt(Mixer const& m) noexcept {
    if (is_recurrent(m)) return true;
    if (auto const* a = std::get_if<Gqa>(&m)) return !a->reuses_kv;
    if (auto const* c = std::get_if<Compressed>(&m)) return c->ratio > 0 && c->kv_source;
    if (auto const* w = std::get_if<SlidingWindow>(&m)) return !w->attn.reuses_kv;
    return true;
}

inline void add_mixer(PreparedSpeed& p, Mixer const& m, KvOptions const& o, std::int32_t state_value_bytes) noexcept {
    auto const launch = [&](Coef c) -> double& {
        return p.layers[static_cast<std::size_t>(c) - static_cast<std::size_t>(Coef::launch_gqa)];
    };
    constexpr double none = std::numeric_limits<double>::infinity();
    if (auto const* a = std::get_if<Gqa>(&m)) {
        launch(Coef::launch_gqa) += 1;
        add_gqa(p, *a, o, none);
    } else if (auto const* w = std::get_if<SlidingWindow>(&m)) {
        launch(Coef::launch_gqa) += 1;
        add_gqa(p, w->attn, o, w->window);
    } else if (auto const* c = std::get_if<ChunkedLocal>(&m)) {
        launch(Coef::launch_gqa) += 1;
        add_gqa(p, c->attn, o, c->chunk);
    } else if (auto const* l = std::get_if<Mla>(&m)) {
        launch(Coef::launch_mla) += 1;
        add_mla(p, *l, o, none);
    } else if (auto const* s = std::get_if<SparseIndexed>(&m)) {
        launch(Coef::launch_indexer) += 1;
        double const top = attended_tokens(s->indexer);
        if (auto const* b = std::get_if<Mla>(&s->base)) {
            launch(Coef::launch_mla) += 1;
            add_mla(p, *b, o, top);
        } else {
            launch(Coef::launch_gqa) += 1;
            add_gqa(p, std::get<Gqa>(s->base), o, top);
        }
        KvGroup g;
        g.index = true;
        g.ratio = std::max(1, s->indexer.key_pool);
        g.bytes = static_cast<double>(index_key_bytes(s->indexer, o.index).value());
        add_kv(p, g);
    } else if (auto const* x = std::get_if<Compressed>(&m)) {
        launch(Coef::launch_compressed) += 1;
        double const record = static_cast<double>(compressed_record_bytes(*x, o.record).value());
        double const per = 4.0 * x->head_dim * x->heads / p.tp;
        KvGroup window;
        window.cap = x->window;
        window.bytes = record;
        window.flops = window.prefill_flops = per;
        add_kv(p, window);
        if (x->ratio > 0) {
            KvGroup g = window;
            g.ratio = x->ratio;
            g.cap = none;
            if (x->indexer)
                g.cap = x->indexer->top_k;
            else if (x->ratio <= 4)
                g.cap = 512; // takes the choice of another layer
            add_kv(p, g);
        }
        if (x->indexer) {
            KvGroup g;
            g.index = true;
            g.ratio = std::max(1, x->ratio);
            Indexer own = *x->indexer;
            own.owns_keys = true; // the keys may be another layer's; they are read all the same
            g.bytes = static_cast<double>(index_key_bytes(own, o.index).value());
            add_kv(p, g);
        }
    } else {
        launch(Coef::launch_recurrent) += 1;
        StateOptions so;
        so.tp = static_cast<std::int32_t>(p.tp);
        so.recurrent_bytes = state_value_bytes;
        p.state_bytes += 2.0 * static_cast<double>(servecap::state_bytes(m, so).value());
    }
}

} // namespace detail

/// How a deployment is prepared.
struct PrepareOptions {
    KvFormat kv = KvFormat::fp8;
    std::optional<std::int32_t> state_value_bytes; ///< empty = what the config names
};

/// Sums bytes and flops of one rank. `model` carries the formats of the weights as loaded (model_as).
/// `layout` is of one replica. The coefficients are set by `set_coefs`.
/// `tensors` are weight_tensors(model).
inline PreparedSpeed prepare_speed(Model const& model, std::span<WeightTensor const> tensors, Layout const& layout, GpuSet const& gpus,
                                   PrepareOptions const& options) {
    PreparedSpeed p;
    Gpu const& g = gpus.gpu;
    p.tp = layout.tp;
    p.dp = layout.dp;
    p.pp = layout.pp;
    p.ranks = p.tp * p.dp;
    p.whole_experts = layout.ep && p.ranks > 1;
    p.hidden = model.hidden;
    p.depth = static_cast<double>(model.layers.size());
    p.bandwidth = g.bandwidth ? g.bandwidth->value() : 1e12;
    p.link = g.scaleup ? g.scaleup->value() : g.pcie ? g.pcie->value() / 2 : 32e9;
    std::int32_t const domain = g.scaleup ? std::max(1, g.scaleup_domain) : 1;
    if (layout.tp * layout.dp > domain) { // the slowest link of the ring decides
        double const across = g.scaleup ? (g.node_nic ? g.node_nic->value() : 50e9) : p.link;
        p.link = std::min(p.link, across);
    }
    KvOptions o;
    o.format = options.kv;
    o.tp = layout.tp;
    std::int32_t const state_bytes_each =
        options.state_value_bytes.value_or(default_state_value_bytes(model.state_dtype, model.dtype));
    // Layers behind the last that keeps something of the prompt see its last tokens alone (shared KV: V4.1, Gemma 3n).
    std::int32_t last = static_cast<std::int32_t>(model.layers.size()) - 1;
    while (last > 0 && std::none_of(model.layers[static_cast<std::size_t>(last)].mixers.begin(),
                                    model.layers[static_cast<std::size_t>(last)].mixers.end(),
                                    [](Mixer const& m) { return detail::keeps_prompt(m); }))
        --last;
    // A model whose last layers have no mixer at all (feed-forward layers of hybrids) still passes every layer.
    if (last + 1 < static_cast<std::int32_t>(model.layers.size()) && model.layers.back().mixers.empty())
        last = static_cast<std::int32_t>(model.layers.size()) - 1;
    p.prompt_depth = last + 1;
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        for (Mixer const& m : model.layers[i].mixers) {
            detail::add_mixer(p, m, o, state_bytes_each);
            if (static_cast<std::int32_t>(i) == last)
                for (std::size_t k = 0; k < p.kv_count; ++k) p.kv[k].prompt_seen = p.kv[k].prefill_flops;
        }
    for (std::size_t k = 0; k < p.kv_count; ++k) p.kv[k].prefill_flops = p.kv[k].prompt_seen;

    WeightOptions w;
    double attention_bits = 0, dense_bits = 0; // weighted by flops, to find the format that decides
    double attention_peak = 0, dense_peak = 0, expert_peak = 0, expert_weight = 0;
    Layout one = layout;
    one.ep = false;
    for (WeightTensor const& t : tensors) {
        if (!in_trunk(t.cls) || t.cls == TensorClass::embedding) {
            if (!(t.cls == TensorClass::embedding && model.tied_embeddings && t.name == "embed_tokens")) continue;
        }
        double const params = static_cast<double>(t.rows) * static_cast<double>(t.cols) * static_cast<double>(t.count);
        bool const head = t.cls == TensorClass::lm_head || t.cls == TensorClass::embedding;
        if (t.cls == TensorClass::routed_expert) {
            Layer const& layer = model.layers[static_cast<std::size_t>(std::max(0, t.layer))];
            auto const* e = layer.ffn ? std::get_if<Moe>(&*layer.ffn) : nullptr;
            if (!e || e->experts < 1) continue;
            double const bytes = static_cast<double>(bytes_of(t).value()) / e->experts / p.ranks;
            double const flops = t.cols > 1 ? 2.0 * params / e->experts * e->top_k / p.ranks : 0.0;
            std::size_t i = 0;
            while (i < p.moe_count && (p.moe[i].experts != e->experts || p.moe[i].top_k != e->top_k)) ++i;
            if (i == p.moe.size()) i = p.moe.size() - 1;
            if (i == p.moe_count) {
                p.moe[i].experts = e->experts;
                p.moe[i].top_k = e->top_k;
                ++p.moe_count;
            }
            p.moe[i].bytes += bytes;
            p.moe[i].flops += flops;
            expert_peak += flops / detail::peak_flops(g, t.format.format);
            expert_weight += flops;
            if (t.layer <= last) p.prompt_expert_flops += flops;
            continue;
        }
        double const bytes = static_cast<double>(detail::rank_bytes(t, one, w, 0).value());
        p.weight_bytes += bytes;
        if (t.cols <= 1) continue;
        double const share = t.shard == Shard::replicated ? 1.0
                             : t.shard == Shard::kv_heads
                                 ? static_cast<double>(kv_heads_on_rank(t.heads, layout.tp)) / std::max(1, t.heads)
                                 : 1.0 / p.tp;
        double const flops = 2.0 * params * share;
        double const peak = detail::peak_flops(g, t.format.format);
        if (head) {
            p.head_flops += flops;
        } else if (t.cls == TensorClass::attention || t.cls == TensorClass::attention_shared ||
                   t.cls == TensorClass::linear_attention) {
            p.attention_flops += flops;
            if (t.layer <= last) p.prompt_attention_flops += flops;
            attention_peak += flops / peak;
            attention_bits += flops;
        } else {
            p.dense_flops += flops;
            if (t.layer <= last) p.prompt_dense_flops += flops;
            dense_peak += flops / peak;
            dense_bits += flops;
        }
    }
    for (Layer const& l : model.layers) {
        if (!l.ffn) continue;
        std::size_t const kind =
            static_cast<std::size_t>(std::holds_alternative<Moe>(*l.ffn) ? Coef::launch_moe : Coef::launch_dense) -
            static_cast<std::size_t>(Coef::launch_gqa);
        p.layers[kind] += 1;
    }
    p.rate_bf16 = g.bf16 ? g.bf16->value() : g.fp16 ? g.fp16->value() : 1e14;
    p.rate_attention = attention_peak > 0 ? attention_bits / attention_peak : p.rate_bf16;
    p.rate_dense = dense_peak > 0 ? dense_bits / dense_peak : p.rate_bf16;
    p.rate_expert = expert_peak > 0 ? expert_weight / expert_peak : p.rate_bf16;
    return p;
}

inline PreparedSpeed prepare_speed(Model const& model, Layout const& layout, GpuSet const& gpus, PrepareOptions const& options = {}) {
    return prepare_speed(model, weight_tensors(model), layout, gpus, options);
}

/// Puts the coefficients of a deployment in.
inline void set_coefs(PreparedSpeed& p, ResolvedCoefs const& c) noexcept {
    p.coefs = c;
    for (std::size_t i = 0; i < kCoefs; ++i)
        p.factor[i] = i == static_cast<std::size_t>(Coef::date) ? c.log[i] : std::exp(c.log[i]);
}

/// Distinct experts that `tokens` tokens reach when each picks k of E evenly: E (1 - (1 - k/E)^tokens).
inline double distinct_experts(double experts, double top_k, double tokens) noexcept {
    if (experts <= 0) return 0;
    double const p = std::min(1.0, top_k / experts);
    if (p >= 1.0) return experts;
    return experts * -std::expm1(tokens * std::log1p(-p));
}

/// Flops-time of the prefill of one token of the replica on a rank, at peak, with the fitted efficiency;
/// `attended` = mean tokens that a prompt token attends to.
struct PrefillTimes {
    double flops = 0;     ///< seconds a token: linear layers
    double attention = 0; ///< seconds a token: attention products
    double links = 0;     ///< seconds a token: collectives
    double launch = 0;    ///< seconds a prompt chunk
    [[nodiscard]] double a_token() const noexcept { return flops + attention + links; }
};

/// Kernel launches of one decode step, in CUDA graphs.
inline double decode_launches(PreparedSpeed const& p, std::array<double, kCoefs> const& f) noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < p.layers.size(); ++i) sum += p.layers[i] * f[static_cast<std::size_t>(Coef::launch_gqa) + i];
    return sum * f[static_cast<std::size_t>(Coef::overhead)];
}

/// Times of prefill on a replica for prompts of `isl` computed tokens.
inline PrefillTimes prefill_times(PreparedSpeed const& p, double isl, std::array<double, kCoefs> const& f) noexcept {
    auto const at = [&](Coef c) { return f[static_cast<std::size_t>(c)]; };
    PrefillTimes t;
    t.flops = at(Coef::prefill_flops) *
              ((p.prompt_attention_flops / p.rate_attention + p.prompt_dense_flops / p.rate_dense) / p.dp +
               at(Coef::prefill_experts) * p.prompt_expert_flops / p.rate_expert) /
              p.pp;
    double products = 0;
    for (std::size_t i = 0; i < p.kv_count; ++i)
        products += p.kv[i].prefill_flops * std::min(0.5 * isl / p.kv[i].ratio, p.kv[i].cap);
    t.attention = at(Coef::prefill_attention) * products / p.dp / p.rate_bf16 / p.pp;
    if (p.ranks > 1)
        t.links = at(Coef::allreduce_bytes) * 2 * p.prompt_depth * p.hidden * 2 * 2 * (p.ranks - 1) / p.ranks / p.link / p.pp;
    t.launch = decode_launches(p, f) * at(Coef::prefill_launch);
    return t;
}

/// A kernel launched from the host over one in a CUDA graph: 6-15 us against 1.4-2 us, measured on one H200.
inline constexpr double kEagerLaunch = 6;
/// Largest number of prompt tokens that one step takes (engines split longer prompts).
inline constexpr double kPromptChunk = 8192;

/// Years of software progress at a date: with the calendar up to 2026-03-01, then levelling off within weeks. Rows later
/// than that are no faster (gpt-oss-120b on H200 with vLLM: the same TPOT in March and in June 2026), and a straight
/// line would promise a third off a year for ever. The scale is from leaving groups out (0.05 to 0.2 do about as well).
inline double progress_years(double years) noexcept {
    constexpr double scale = 0.1;
    return years > 0 ? scale * std::tanh(years / scale) : years;
}

/// The terms of one decode step at a load, with the coefficients `f` (exponentials).
inline StepTimes step_times(PreparedSpeed const& p, StepLoad const& load, std::array<double, kCoefs> const& f) noexcept {
    auto const at = [&](Coef c) { return f[static_cast<std::size_t>(c)]; };
    StepTimes r;
    auto const term = [&](StepTerm t) -> double& { return r.term[static_cast<std::size_t>(t)]; };
    double const micro = std::max(1.0, load.batch / p.pp); // requests that pass the layers together
    double const rank_batch = std::max(1.0, micro / p.dp); // of one attention rank
    double const tokens = micro * load.verify;             // that meet the experts

    double const launches = decode_launches(p, f);
    term(StepTerm::launches) = launches;

    if (p.ranks > 1) {
        double const ring = 2 * (p.ranks - 1) / p.ranks;
        term(StepTerm::allreduce_floor) = 2 * p.depth * at(Coef::allreduce_floor) * std::sqrt(p.ranks / 8);
        term(StepTerm::allreduce_bytes) = 2 * p.depth * tokens * p.hidden * 2 * ring / p.link * at(Coef::allreduce_bytes);
    }

    double const byte_time = at(Coef::bandwidth) / p.bandwidth;
    double const dense_bytes = p.weight_bytes * byte_time;
    double const dense_flops = at(Coef::flops) * rank_batch * load.verify *
                               (p.attention_flops / p.rate_attention + p.dense_flops / p.rate_dense + p.head_flops / p.rate_bf16);
    term(StepTerm::dense) = std::sqrt(dense_bytes * dense_bytes + dense_flops * dense_flops);
    r.dense_by_flops = dense_flops > dense_bytes;

    double expert_bytes = 0, expert_flops = 0;
    for (std::size_t i = 0; i < p.moe_count; ++i) {
        double const distinct = distinct_experts(p.moe[i].experts, p.moe[i].top_k, tokens);
        double const fullest = p.whole_experts ? 1 + at(Coef::expert_imbalance) * std::sqrt(p.ranks / distinct) : 1.0;
        expert_bytes += p.moe[i].bytes * distinct * fullest;
        expert_flops += p.moe[i].flops * tokens * fullest;
    }
    expert_bytes *= byte_time * at(Coef::expert_bytes);
    expert_flops *= at(Coef::flops) * at(Coef::expert_flops) / p.rate_expert;
    term(StepTerm::experts) = std::sqrt(expert_bytes * expert_bytes + expert_flops * expert_flops);
    r.experts_by_flops = expert_flops > expert_bytes;

    double kv_bytes = 0, kv_flops = 0, index = 0;
    for (std::size_t i = 0; i < p.kv_count; ++i) {
        KvGroup const& g = p.kv[i];
        double const entries = std::min(load.context / g.ratio, g.cap);
        if (g.index) {
            index += entries * g.bytes;
        } else {
            kv_bytes += entries * g.bytes;
            kv_flops += entries * g.flops;
        }
    }
    kv_bytes *= rank_batch * at(Coef::kv_bytes) / p.bandwidth;
    kv_flops *= rank_batch * load.verify * at(Coef::kv_flops) / p.rate_bf16;
    term(StepTerm::kv_cache) = std::sqrt(kv_bytes * kv_bytes + kv_flops * kv_flops);
    r.kv_by_flops = kv_flops > kv_bytes;
    term(StepTerm::index_keys) = index * rank_batch * at(Coef::index_bytes) / p.bandwidth;
    term(StepTerm::state) = p.state_bytes * rank_batch * at(Coef::state_bytes) / p.bandwidth;

    PrefillTimes const prefill = prefill_times(p, load.isl, f);
    double const requests_a_step = load.batch * load.tokens_a_step / load.osl; // that begin during one step
    term(StepTerm::prefill) = requests_a_step * load.isl * prefill.a_token();
    // With a known capture size: a step with a prompt chunk runs in graphs as a decode step does, or without any. Under
    // data-parallel attention every rank pads to the largest and the whole step loses its graphs.
    double mixed = prefill.launch;
    if (load.capture > 0) {
        bool const covered = load.capture >= std::min(kPromptChunk, load.isl + rank_batch * load.verify);
        if (covered)
            mixed = std::min(mixed, 0.5 * launches);
        else if (p.dp > 1)
            mixed = std::max(mixed, (kEagerLaunch - 1) * launches);
    }
    term(StepTerm::prefill_launches) = -std::expm1(-requests_a_step * std::max(1.0, load.isl / kPromptChunk)) * mixed;
    term(StepTerm::host) = at(Coef::host_step) + at(Coef::host_sequence) * load.batch;

    double sum = 0;
    for (double t : r.term) sum += t;
    double const drift = std::exp(f[static_cast<std::size_t>(Coef::date)] * progress_years(load.years));
    for (double& t : r.term) t *= drift;
    r.total = sum * drift;
    return r;
}

inline StepTimes step_times(PreparedSpeed const& p, StepLoad const& load) noexcept { return step_times(p, load, p.factor); }

/// Draft tokens a step that engines use where nobody says otherwise.
constexpr double usual_drafts(std::string_view method) noexcept { return method == "dspark" || method == "dflash" ? 5 : 3; }

/// Tokens that a step yields with `drafts` draft tokens, when it yields 1 + `extra` with the usual number: every further
/// draft token is accepted with the same chance a, extra = a + a^2 + ... + a^n.
inline double tokens_a_step(double extra, double usual, double drafts) noexcept {
    if (drafts <= 0 || extra <= 0) return 1;
    auto const sum = [](double a, double n) { return a >= 1 ? n : a * (1 - std::pow(a, n)) / (1 - a); };
    if (drafts == usual) return 1 + std::min(extra, usual);
    double low = 0, high = 1;
    for (int i = 0; i < 40; ++i) {
        double const mid = 0.5 * (low + high);
        (sum(mid, usual) < extra ? low : high) = mid;
    }
    return 1 + sum(high, drafts);
}

/// Mean time of a token: the step over the tokens that it yields, with the drafts made before it.
inline double token_time(PreparedSpeed const& p, StepLoad const& load, StepTimes const& step,
                         std::array<double, kCoefs> const& f) noexcept {
    if (load.verify <= 1) return step.total;
    double const layer =
        (step[StepTerm::launches] + step[StepTerm::allreduce_floor] + step[StepTerm::dense]) / std::max(1.0, p.depth);
    double const drafts = (load.verify - 1) * f[static_cast<std::size_t>(Coef::draft_cost)] * layer;
    return (step.total + drafts) / load.tokens_a_step;
}

/// Puts speculation into a load: `drafts` tokens by `method`; 0 = none.
inline void add_speculation(StepLoad& load, std::string_view method, double drafts,
                            std::array<double, kCoefs> const& f) noexcept {
    if (drafts <= 0) return;
    load.verify = 1 + drafts;
    load.tokens_a_step = tokens_a_step(f[static_cast<std::size_t>(Coef::draft_extra)], usual_drafts(method), drafts);
}

/// Time to the first token of a request in a closed loop of `users` on the replica; `step` = its decode step.
/// Formula: base + launches + own prefill + steps waited for + a share of the others' prefills and launches.
inline double first_token_time(PreparedSpeed const& p, StepLoad const& load, double users, double step,
                               std::array<double, kCoefs> const& f) noexcept {
    auto const at = [&](Coef c) { return f[static_cast<std::size_t>(c)]; };
    PrefillTimes const prefill = prefill_times(p, load.isl, f);
    double const chunks = std::max(1.0, load.isl / kPromptChunk);
    double const own = load.isl * prefill.a_token() * p.pp; // one prompt passes every stage
    double const wait = at(Coef::ttft_queue) * std::max(0.0, users - 1) * load.isl * prefill.a_token();
    double const wait_launch = at(Coef::ttft_queue_launch) * std::max(0.0, users - 1) * prefill.launch;
    return at(Coef::ttft_base) + at(Coef::ttft_launch) * prefill.launch * chunks + at(Coef::ttft_flops) * own + wait +
           wait_launch + at(Coef::ttft_step) * step;
}

} // namespace servecap
