// servecap: what vLLM takes beside weights and cache: activation peak, non-torch memory, CUDA graphs
// SPDX-License-Identifier: Apache-2.0
//
// The pool is what is left of  utilization x visible memory  after weights, the peak of a profile run,
// memory that is not torch's, and (since 0.21) an estimate of CUDA graphs. These three are estimates, so
// each is physics with few constants and an uncertainty:
//   activation = residual streams T * H + buffers of experts T * top_k * (2I/tp or H, and H) + the larger of
//                the widest layer's intermediates (T tokens) and the sampler's logits (S sequences * vocabulary *
//                15 B; 38.7 B before 0.17: logits, their fp32 copy, sorted values and 8-byte indices)
//   non-torch  = CUDA context and, with more than one rank, communicators and symmetric buffers
//   graphs     = graphs captured * (bytes of a graph) + captured tokens * (bytes of a token that they keep)
// Constants are measured (logs that print the terms: vLLM 0.11 and 0.19 on H100, 0.21 to 0.31 on H100, H200,
// GB300, RTX PRO 6000) or derived from the tensors' shapes; spreads are those of the same logs.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/vllm_version.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// CUDA-graph batch sizes up to `most`: 1, 2, 4, then steps of 8 to 256 and of 16 beyond.
struct CaptureSizes {
    std::int64_t count = 0;
    std::int64_t second = 0;  ///< second largest
    std::int64_t largest = 0;

    static constexpr CaptureSizes up_to(std::int64_t most) noexcept {
        CaptureSizes c;
        for (std::int64_t s : {1, 2, 4})
            if (s <= most) ++c.count;
        std::int64_t const eights = std::min<std::int64_t>(most, 256) / 8;
        c.count += eights;
        if (most > 256) c.count += (most - 256) / 16;
        c.largest = most;
        c.second = most > 272 ? most - most % 16 - 16 : most > 8 ? most - most % 8 - 8 : most / 2;
        return c;
    }
};

/// The memory model of one deployment: everything that does not depend on batch sizes, worked out once.
struct VllmMemoryModel {
    double bytes_per_token = 0;       ///< kept through the profile run, a token of the batch
    double layer_bytes_per_token = 0; ///< widest layer's intermediates, a token of the batch
    double tower_bytes_per_token = 0; ///< encoder of images as large as a batch, a token of the batch
    double logit_bytes_per_seq = 0;   ///< sampler, a sequence
    double state_bytes_per_seq = 0;   ///< buffers of state kernels, a sequence
    double constant = 0;              ///< towers, workspaces
    double constant_per_len = 0;      ///< of `constant`: a token of max_model_len
    double non_torch = 0;
    double graph_constant = 0;
    double bytes_per_piecewise_graph = 0;
    double bytes_per_full_graph = 0;
    double graph_bytes_per_token = 0; ///< what a captured token keeps: of every graph where linear_graphs, else of the largest
    bool linear_graphs = false;       ///< the version takes the second largest graph for all of them
    bool subtracts_graphs = true;
    double sd_relative = 0.1;         ///< of everything but non-torch
    double sd_constant = 0;           ///< bytes
    double graph_sd_relative = 0.3;
};

/// The three terms, and the standard deviation of their sum, in bytes.
struct VllmMemory {
    double activation = 0; ///< of the last stage, which samples
    double sampling = 0;   ///< what of it the other stages do not take
    double non_torch = 0, graphs = 0, sd = 0;
};

/// The terms for `batched` tokens, `seqs` sequences and graphs up to `capture` tokens (0: none). No allocation.
inline VllmMemory vllm_memory(VllmMemoryModel const& m, std::int64_t batched, std::int64_t seqs, std::int64_t capture, GraphMode mode,
                              std::int64_t draft_tokens) noexcept {
    VllmMemory out;
    double const t = static_cast<double>(batched);
    double const s = static_cast<double>(std::min(seqs, batched));
    double const layer = m.layer_bytes_per_token * t;
    double const sampler = m.logit_bytes_per_seq * s;
    double const others = std::max(layer, m.tower_bytes_per_token * t);
    out.activation = m.constant + m.bytes_per_token * t + m.state_bytes_per_seq * s + std::max(others, sampler);
    out.sampling = std::max(others, sampler) - layer;
    out.non_torch = m.non_torch;
    if (capture > 0 && mode != GraphMode::none) {
        bool const piecewise = mode == GraphMode::full_and_piecewise || mode == GraphMode::piecewise;
        bool const full = mode == GraphMode::full_and_piecewise || mode == GraphMode::full_decode_only;
        CaptureSizes const p = CaptureSizes::up_to(capture);
        CaptureSizes const f = CaptureSizes::up_to(std::min(capture, seqs * (1 + draft_tokens)));
        auto const kept = [&](CaptureSizes const& c) {
            // graphs share a pool as large as the largest needs: a log of 16 data-parallel ranks shows four times that
            return static_cast<double>(m.linear_graphs ? c.count * c.second : 4 * c.largest) * m.graph_bytes_per_token;
        };
        out.graphs = m.graph_constant;
        if (piecewise) out.graphs += static_cast<double>(p.count) * m.bytes_per_piecewise_graph + kept(p);
        if (full) out.graphs += static_cast<double>(f.count) * m.bytes_per_full_graph + 0.25 * kept(f);
    }
    double const a = m.sd_relative * out.activation, g = m.subtracts_graphs ? m.graph_sd_relative * out.graphs : 0.0;
    double const n = 0.15 * out.non_torch;
    out.sd = std::sqrt(a * a + g * g + n * n + m.sd_constant * m.sd_constant);
    return out;
}

namespace detail {

/// Hidden-wide streams that run beside one another through the layers (hyper-connections).
inline double residual_streams(Model const& m) noexcept {
    if (m.model_type == "deepseek_v4" || m.model_type == "deepseek_v41" || m.model_type == "glm5_next" || m.model_type == "qwen4_exp")
        return 4;
    return 1;
}

/// What CUDA graphs take, by how vLLM's class of a model captures them. Bytes a layer of the model.
struct GraphCost {
    double piecewise = 0, full = 0; ///< of one graph
    double token = 0;               ///< of one captured token, in hidden-wide 16-bit rows a layer; only where one graph is taken for all
};
inline GraphCost graph_cost(Model const& m, bool moe, bool latent, double tp) noexcept {
    // Kimi K3 at TP8 on MI355X: 0.23 GiB a piecewise graph (49.41 against 61.09 GiB of pool with 51 of them), 0.1 a full one
    if (m.model_type == "kimi_k3") return {2.65e6, 1.2e6, 0.0};
    // DeepSeek V4 and V4.1 at TP8 on H100, TP2 on RTX PRO 6000 and TP4 on B300: 0.6 to 0.8 MB
    if (m.model_type == "deepseek_v4" || m.model_type == "deepseek_v41") return {0.7e6, 0.7e6, 0.0};
    // graphs of torch.compile: Llama, Qwen, gpt-oss, DeepSeek V2 on H100, vLLM 0.19
    double const each = (moe || latent ? 0.40e6 : 0.22e6) * (tp > 1 ? 0.8 : 1.0);
    return {each, each, 0.0};
}

/// Bytes of one token's intermediates in one mixer on one rank, 16 bits a value.
inline double mixer_bytes(Mixer const& x, double tp) noexcept {
    if (auto const* a = std::get_if<Gqa>(&x))
        return 2.0 * ((a->q_heads * (a->output_gate ? 3.0 : 2.0) + 2.0 * std::max(1.0, a->kv_heads / tp) * tp) * a->head_dim) / tp;
    if (auto const* a = std::get_if<SlidingWindow>(&x)) return mixer_bytes(Mixer{a->attn}, tp);
    if (auto const* a = std::get_if<ChunkedLocal>(&x)) return mixer_bytes(Mixer{a->attn}, tp);
    if (auto const* a = std::get_if<Mla>(&x))
        return 2.0 * (2.0 * a->heads * (a->qk_nope + a->qk_rope + a->v_head_dim) / tp + a->q_lora_rank + a->kv_lora_rank + a->qk_rope);
    if (auto const* a = std::get_if<SparseIndexed>(&x))
        return (std::holds_alternative<Mla>(a->base) ? mixer_bytes(Mixer{std::get<Mla>(a->base)}, tp)
                                                     : mixer_bytes(Mixer{std::get<Gqa>(a->base)}, tp)) +
               2.0 * a->indexer.heads * a->indexer.head_dim;
    if (auto const* a = std::get_if<Compressed>(&x)) return 2.0 * 3.0 * a->heads * a->head_dim / tp;
    if (auto const* a = std::get_if<Kda>(&x)) return 2.0 * 9.0 * a->heads * a->head_dim / tp;
    if (auto const* a = std::get_if<GatedDelta>(&x))
        return 2.0 * (4.0 * a->k_heads * a->k_dim + 6.0 * a->v_heads * a->v_dim) / tp;
    if (auto const* a = std::get_if<Mamba2>(&x)) return 2.0 * 6.0 * a->heads * a->head_dim / tp;
    if (auto const* a = std::get_if<Mamba1>(&x)) return 2.0 * 5.0 * a->inner / tp;
    if (auto const* a = std::get_if<Lightning>(&x)) return 2.0 * 5.0 * a->heads * a->head_dim / tp;
    if (auto const* a = std::get_if<ShortConv>(&x)) return 2.0 * 4.0 * a->dim / tp;
    return 0;
}

} // namespace detail

/// Works the memory model out for a deployment.
inline VllmMemoryModel vllm_memory_model(Model const& m, GpuSet const& gpus, Layout const& l, VllmRules const& rules, bool towers_loaded,
                                         std::int64_t max_len = 0) {
    VllmMemoryModel out;
    double const tp = std::max(1, l.tp);
    double const h = m.hidden;
    double const value = m.dtype == Format::fp32 ? 4.0 : 2.0;
    Format const expert_format = m.quant[TensorClass::routed_expert].format;
    bool const native_fp4 = expert_format == Format::nvfp4 ? gpus.gpu.native_nvfp4 : expert_format == Format::mxfp4 && gpus.gpu.native_mxfp4;
    bool const amd = gpus.gpu.vendor == GpuVendor::amd;
    double const ranks = static_cast<double>(l.tp) * l.dp;

    double widest = 0, experts = 0;
    bool moe_model = false, latent = false, recurrent = false;
    double kda_state = 0;
    bool sparse_latent = false;
    for (Layer const& layer : m.layers) {
        double mix = 0;
        for (Mixer const& x : layer.mixers) {
            mix += detail::mixer_bytes(x, tp) * value / 2.0;
            latent = latent || std::holds_alternative<Mla>(x) || std::holds_alternative<SparseIndexed>(x) || std::holds_alternative<Compressed>(x);
            if (auto const* s = std::get_if<SparseIndexed>(&x)) sparse_latent = sparse_latent || std::holds_alternative<Mla>(s->base);
            recurrent = recurrent || is_recurrent(x);
            if (auto const* k = std::get_if<Kda>(&x)) kda_state = 4.0 * std::ceil(k->heads / tp) * k->head_dim * k->head_dim;
        }
        double ffn = 0;
        if (layer.ffn) {
            if (auto const* d = std::get_if<Dense>(&*layer.ffn)) ffn = value * (d->gated ? 3.0 : 2.0) * d->intermediate / tp;
            if (auto const* e = std::get_if<Moe>(&*layer.ffn)) {
                moe_model = true;
                double const in = e->latent > 0 ? e->latent : h;
                double const up = (e->gated ? 2.0 : 1.0) * e->intermediate / (l.ep ? 1.0 : tp);
                // a rank with data-parallel attention sees its own tokens; what is gathered from others is in sd
                // kernels of four-bit weights without native arithmetic (Marlin) keep the narrow product in the second buffer
                bool const narrow = element_bits(expert_format) == 4 && !native_fp4;
                experts = std::max(experts, value * e->top_k * (std::max(up, in) + (narrow ? up / 2.0 : std::max(up / 2.0, in))));
                ffn = value * (3.0 * e->shared_intermediate / tp + h);
            }
        }
        widest = std::max(widest, std::max(mix, ffn) + value * h);
    }
    out.bytes_per_token = value * h * detail::residual_streams(m) + experts;
    out.layer_bytes_per_token = widest;
    out.logit_bytes_per_seq = rules.logit_bytes * static_cast<double>(m.vocab);
    // The second model runner, first of Qwen3, samples in chunks: a log of 0.27 shows no peak of logits.
    if (m.model_type == "qwen3" && rules.version.number() >= 2200) out.logit_bytes_per_seq *= 0.1;
    if (kda_state > 0 && m.model_type == "kimi_k3") out.state_bytes_per_seq = 2.0 * kda_state; // FlashKDA: two states a sequence
    constexpr double kGib = 1073741824.0;
    // Sparse MLA gathers rows into a workspace of five requests of max_model_len in 16 bits (public source).
    if (sparse_latent && !recurrent) out.constant_per_len = 5.0 * 1152.0;
    out.constant += out.constant_per_len * static_cast<double>(max_len);
    // Towers whose images grow with the batch (patches of 2 x 2 make a token) are profiled with one of max_num_batched_tokens:
    // queries, keys, values and the widest layer of four patches. Towers of fixed tiles take about 0.1 GiB.
    double tower_hidden = 0, tower_width = 0;
    for (WeightTensor const& t : m.extra_tensors)
        if (t.cls == TensorClass::vision && t.cols > 1) {
            if (tower_hidden == 0 || static_cast<double>(t.cols) < tower_hidden) tower_hidden = static_cast<double>(t.cols);
            tower_width = std::max(tower_width, static_cast<double>(t.rows));
        }
    if (tower_hidden > 0 && towers_loaded) {
        bool const grows = m.model_type.starts_with("qwen") || m.model_type.starts_with("kimi") || m.model_type.starts_with("glm");
        if (grows)
            out.tower_bytes_per_token = 4.0 * 2.0 * (2.0 * std::min(tower_width, 4.0 * tower_hidden) + 6.0 * tower_hidden);
        else
            out.constant += 0.12 * kGib;
    }

    std::int32_t const n = rules.version.number();
    if (ranks > 1.5)
        out.non_torch = (n < 1700 ? 0.55 : 2.0 + 0.02 * (std::min(ranks, 16.0) - 2.0)) * kGib;
    else
        out.non_torch = (n < 1700 ? 0.13 : l.pp > 1 ? 0.07 : 0.25) * kGib;
    if (amd) out.non_torch *= 0.8;
    if (rules.version.v0_engine) out.non_torch = std::max(out.non_torch, 0.35 * kGib);
    // Memory shared with the host (GB10): what the system and network buffers take counts too; 2.2 GiB alone (log), 4 of two
    if (gpus.gpu.id.starts_with("gb10")) out.non_torch = (ranks > 1.5 ? 4.2 : 2.2) * kGib;

    out.subtracts_graphs = rules.subtracts_graphs;
    out.linear_graphs = rules.linear_graph_estimate;
    double parts = 0; // a layer is a mixer and a feed-forward part; some models count them as two
    for (Layer const& layer : m.layers) parts += (layer.mixers.empty() ? 0.0 : 0.5) + (layer.ffn ? 0.5 : 0.0);
    double const layers = parts / std::max(1, l.pp);
    out.graph_constant = 0.1 * kGib;
    detail::GraphCost const graph = detail::graph_cost(m, moe_model, latent, tp);
    out.bytes_per_piecewise_graph = layers * graph.piecewise;
    out.bytes_per_full_graph = layers * graph.full;
    // experts spread over data-parallel ranks see the tokens of all of them: buffers of dispatch and combine stay in the graphs
    double rows = rules.linear_graph_estimate ? graph.token : 0.0;
    if (moe_model && l.dp > 1) rows = std::max(rows, 0.4 * static_cast<double>(l.dp));
    out.graph_bytes_per_token = rows * layers * h * 2.0;
    out.sd_relative = recurrent || latent ? 0.25 : moe_model ? 0.15 : 0.08;
    out.sd_constant = (recurrent || latent ? 0.5 : 0.12) * kGib;
    if (gpus.gpu.id.starts_with("gb10")) out.sd_constant = 1.5 * kGib; // what the host uses differs from one to the next
    out.graph_sd_relative = 0.35;
    return out;
}

} // namespace servecap
