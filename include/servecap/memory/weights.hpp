// servecap: every weight tensor of a model, and the bytes that one rank holds
// SPDX-License-Identifier: Apache-2.0
//
// weight_tensors lists the matrices that the layers of a model imply, with the shapes of the published
// checkpoints: projections, gates, routers, norms, biases, latents, indexers, compressors, convolutions.
// rank_weights cuts them as engines do: heads, FFN widths and the padded vocabulary over tensor
// parallelism; kv heads copied when there are more ranks than heads; norms, routers, low-rank
// down-projections, indexers, compressors, towers whole on every rank; experts cut by tensor parallelism
// or spread whole over the ranks of expert parallelism; embedding on the first and head on the last stage
// of a pipeline. Sources: vLLM's layers (ColumnParallelLinear, QKVParallelLinear, VocabParallelEmbedding,
// FusedMoE) and model files; the checkpoint headers that the cards name. Integers are exact.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <servecap/catalog/format.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/core/checked.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

namespace detail {

/// Collects the tensors of one layer with the formats of the model's plan.
class TensorSink {
public:
    TensorSink(Model const& m, std::vector<WeightTensor>& out) : model_{&m}, out_{&out} {}

    void enter(std::int32_t layer, bool mtp) {
        layer_ = layer;
        mtp_ = mtp;
    }
    /// The format that tensors of a class have in this layer.
    [[nodiscard]] WeightFormat format(TensorClass cls) const {
        QuantPlan const& q = model_->quant;
        if (mtp_) return q.mtp_as_trunk ? q[cls] : q[TensorClass::mtp];
        auto const from = std::lower_bound(q.exceptions.begin(), q.exceptions.end(), layer_,
                                           [](LayerFormat const& f, std::int32_t l) { return f.layer < l; });
        for (auto it = from; it != q.exceptions.end() && it->layer == layer_; ++it)
            if (it->cls == cls) return it->format;
        return q[cls];
    }
    /// The format of a projection of latent attention that the plan may name apart.
    [[nodiscard]] WeightFormat latent_format(std::optional<WeightFormat> const& apart) const {
        QuantPlan const& q = model_->quant;
        WeightFormat const f = format(TensorClass::attention);
        return apart && f == q[TensorClass::attention] && (!mtp_ || q.mtp_as_trunk) ? *apart : f;
    }
    [[nodiscard]] Model const& model() const { return *model_; }
    [[nodiscard]] WeightFormat plain() const { return {model_->dtype}; }
    static constexpr WeightFormat fp32() { return {Format::fp32}; }

    void add(TensorClass cls, Shard shard, std::string_view name, std::int64_t rows, std::int64_t cols, WeightFormat f,
             std::int64_t count = 1, bool cut_cols = false, std::int32_t heads = 0) {
        if (rows <= 0 || cols <= 0 || count <= 0) return;
        WeightTensor t;
        t.cls = mtp_ ? TensorClass::mtp : cls;
        t.shard = shard;
        t.layer = mtp_ ? -1 : layer_;
        t.rows = rows;
        t.cols = cols;
        t.count = count;
        t.heads = heads;
        t.cut_cols = cut_cols;
        t.format = f;
        t.name = name;
        out_->push_back(t);
    }
    /// A matrix of a class, in the class's format.
    void matrix(TensorClass cls, Shard shard, std::string_view name, std::int64_t rows, std::int64_t cols, std::int64_t count = 1,
                bool cut_cols = false) {
        add(cls, shard, name, rows, cols, format(cls), count, cut_cols);
    }
    /// A vector that every rank holds, in the model's dtype.
    void vector(std::string_view name, std::int64_t n, std::int64_t count = 1) {
        add(TensorClass::norm, Shard::replicated, name, n, 1, plain(), count);
    }
    /// A vector whose entries go with heads.
    void head_vector(std::string_view name, std::int64_t n, WeightFormat f, std::int64_t count = 1) {
        add(TensorClass::norm, Shard::tensor, name, n, 1, f, count);
    }

private:
    Model const* model_;
    std::vector<WeightTensor>* out_;
    std::int32_t layer_ = -1;
    bool mtp_ = false;
};

inline void gqa_tensors(TensorSink& s, std::int64_t hidden, Gqa const& a) {
    constexpr TensorClass cls = TensorClass::attention;
    std::int64_t const in = a.input > 0 ? a.input : hidden;
    std::int64_t const v_dim = a.v_head_dim > 0 ? a.v_head_dim : a.head_dim;
    std::int64_t const q_rows = std::int64_t{a.q_heads} * a.head_dim * (a.output_gate ? 2 : 1);
    std::int64_t const k_rows = std::int64_t{a.kv_heads} * a.head_dim;
    std::int64_t const v_rows = std::int64_t{a.kv_heads} * v_dim;
    WeightFormat const f = s.format(cls);
    if (a.stored_shards > 0 && !a.reuses_kv) {
        std::int64_t const n = a.stored_shards;
        s.add(cls, Shard::tensor, "qkv_proj", (q_rows + k_rows + v_rows) / n, in, f, n);
    } else {
        s.add(cls, Shard::tensor, "q_proj", q_rows, in, f);
        if (!a.reuses_kv) {
            s.add(cls, Shard::kv_heads, "k_proj", k_rows, in, f, 1, false, a.kv_heads);
            if (!a.k_eq_v) s.add(cls, Shard::kv_heads, "v_proj", v_rows, in, f, 1, false, a.kv_heads);
        }
    }
    s.add(cls, Shard::tensor, "o_proj", hidden, std::int64_t{a.q_heads} * v_dim, a.o_plain ? s.plain() : f, 1, true);
    if (a.bias) {
        s.head_vector("q_proj.bias", q_rows, s.plain());
        if (!a.reuses_kv) {
            s.add(TensorClass::norm, Shard::kv_heads, "k_proj.bias", k_rows, 1, s.plain(), 1, false, a.kv_heads);
            s.add(TensorClass::norm, Shard::kv_heads, "v_proj.bias", v_rows, 1, s.plain(), 1, false, a.kv_heads);
        }
    }
    if (a.o_bias) s.vector("o_proj.bias", hidden);
    if (a.qk_norm) {
        s.vector("q_norm", a.head_dim);
        if (!a.reuses_kv) s.vector("k_norm", a.head_dim);
    }
    if (a.qk_norm_full) {
        s.head_vector("q_norm", std::int64_t{a.q_heads} * a.head_dim, s.plain());
        if (!a.reuses_kv) s.add(TensorClass::norm, Shard::kv_heads, "k_norm", k_rows, 1, s.plain(), 1, false, a.kv_heads);
    }
    if (a.sinks) s.head_vector("sinks", a.q_heads, s.plain());
    if (a.head_gate) s.matrix(cls, Shard::tensor, "g_proj", a.q_heads, hidden);
}

inline void mla_tensors(TensorSink& s, std::int64_t hidden, Mla const& a) {
    std::int64_t const h = a.heads;
    std::int64_t const qk = a.qk_nope + a.qk_rope;
    if (a.q_lora_rank > 0) {
        s.matrix(TensorClass::attention_shared, Shard::replicated, "q_a_proj", a.q_lora_rank, hidden);
        s.vector("q_a_layernorm", a.q_lora_rank);
        s.matrix(TensorClass::attention, Shard::tensor, "q_b_proj", h * qk, a.q_lora_rank);
    } else {
        s.matrix(TensorClass::attention, Shard::tensor, "q_proj", h * qk, hidden);
    }
    s.matrix(TensorClass::attention_shared, Shard::replicated, "kv_a_proj", a.kv_lora_rank + a.qk_rope, hidden);
    s.vector("kv_a_layernorm", a.kv_lora_rank);
    QuantPlan const& q = s.model().quant;
    s.add(TensorClass::attention, Shard::tensor, "kv_b_proj", h * (a.qk_nope + a.v_head_dim), a.kv_lora_rank, s.latent_format(q.mla_kv_b));
    s.add(TensorClass::attention, Shard::tensor, "o_proj", hidden, h * a.v_head_dim, s.latent_format(q.mla_out), 1, true);
    if (a.output_gate) s.matrix(TensorClass::attention, Shard::tensor, "g_proj", h * a.v_head_dim, hidden);
    if (a.head_gate) s.matrix(TensorClass::attention, Shard::tensor, "g_proj", h, hidden);
}

/// The indexer of DeepSeek V3.2 and GLM-5: queries from the query latent, keys from the hidden state.
inline void indexer_tensors(TensorSink& s, std::int64_t hidden, std::int64_t query_input, Indexer const& x) {
    if (!x.owns_keys) return;
    constexpr TensorClass cls = TensorClass::attention_shared;
    s.matrix(cls, Shard::replicated, "indexer.wq_b", std::int64_t{x.heads} * x.head_dim, query_input);
    s.matrix(cls, Shard::replicated, "indexer.wk", x.head_dim, hidden);
    s.vector("indexer.k_norm", x.head_dim, x.key_bias ? 2 : 1);
    s.add(cls, Shard::replicated, "indexer.weights_proj", x.heads, hidden, s.plain());
}

inline void compressed_tensors(TensorSink& s, std::int64_t hidden, Compressed const& a) {
    std::int64_t const h = a.heads, d = a.head_dim, groups = a.o_groups, o_rank = a.o_lora_rank;
    WeightFormat const bf16 = s.plain();
    constexpr TensorClass shared = TensorClass::attention_shared;
    s.add(TensorClass::norm, Shard::tensor, "attn_sink", h, 1, TensorSink::fp32());
    s.vector("kv_norm", d);
    s.vector("q_norm", a.q_lora_rank);
    s.matrix(shared, Shard::replicated, "wkv", d, hidden);
    s.matrix(shared, Shard::replicated, "wq_a", a.q_lora_rank, hidden);
    s.matrix(TensorClass::attention, Shard::tensor, "wq_b", h * d, a.q_lora_rank);
    s.matrix(TensorClass::attention, Shard::tensor, "wo_a", groups * o_rank, groups > 0 ? h * d / groups : 0);
    s.matrix(TensorClass::attention, Shard::tensor, "wo_b", hidden, groups * o_rank, 1, true);
    if (a.latent_keys) {
        if (a.kv_source) {
            s.vector("compressor.norm", d);
            s.add(shared, Shard::replicated, "compressor.wkv", d, hidden, bf16, a.ratio > 1 ? 2 : 1); // and the gate
        }
        if (a.indexer && a.kv_source) {
            s.vector("indexer.k_norm", a.indexer->head_dim);
            s.add(shared, Shard::replicated, "indexer.wk", a.indexer->head_dim, d, bf16);
        }
        if (a.indexer && a.index_source) {
            s.add(shared, Shard::replicated, "indexer.weights_proj", a.indexer->heads, hidden, bf16);
            s.matrix(shared, Shard::replicated, "indexer.wq_b", std::int64_t{a.indexer->heads} * a.indexer->head_dim, a.q_lora_rank);
        }
        return;
    }
    if (a.ratio > 0) { // V4: entries overlap where an indexer picks them, so there are two per position
        std::int64_t const width = (a.indexer ? 2 : 1) * d;
        s.add(shared, Shard::replicated, "compressor.ape", a.ratio, width, TensorSink::fp32());
        s.vector("compressor.norm", d);
        s.add(shared, Shard::replicated, "compressor.wkv_wgate", width, hidden, bf16, 2);
    }
    if (a.indexer) {
        std::int64_t const k = a.indexer->head_dim;
        s.add(shared, Shard::replicated, "indexer.compressor.ape", a.ratio, 2 * k, TensorSink::fp32());
        s.vector("indexer.compressor.norm", k);
        s.add(shared, Shard::replicated, "indexer.compressor.wkv_wgate", 2 * k, hidden, bf16, 2);
        s.add(shared, Shard::replicated, "indexer.weights_proj", a.indexer->heads, hidden, bf16);
        s.matrix(shared, Shard::replicated, "indexer.wq_b", std::int64_t{a.indexer->heads} * k, a.q_lora_rank);
    }
}

inline void kda_tensors(TensorSink& s, std::int64_t hidden, Kda const& a) {
    constexpr TensorClass cls = TensorClass::linear_attention;
    std::int64_t const inner = std::int64_t{a.heads} * a.head_dim;
    s.matrix(cls, Shard::tensor, "qkv_proj", inner, hidden, 3);
    s.add(cls, Shard::tensor, "conv1d", inner, a.conv_kernel, TensorSink::fp32(), 3);
    if (a.full_rank_decay) {
        s.matrix(cls, Shard::tensor, "f_proj", inner, hidden);
    } else {
        s.matrix(cls, Shard::replicated, "f_a_proj", a.head_dim, hidden);
        s.matrix(cls, Shard::tensor, "f_b_proj", inner, a.head_dim);
    }
    if (a.full_rank_gate) {
        s.matrix(cls, Shard::tensor, "g_proj", inner, hidden);
    } else {
        s.matrix(cls, Shard::replicated, "g_a_proj", a.head_dim, hidden);
        s.matrix(cls, Shard::tensor, "g_b_proj", inner, a.head_dim);
    }
    s.matrix(cls, Shard::tensor, "b_proj", a.heads, hidden);
    s.add(TensorClass::norm, a.stored_a_log > 0 ? Shard::replicated : Shard::tensor, "A_log", a.stored_a_log > 0 ? a.stored_a_log : a.heads, 1,
          TensorSink::fp32());
    s.head_vector("dt_bias", inner, TensorSink::fp32());
    s.add(TensorClass::norm, Shard::replicated, "o_norm", a.head_dim, 1, TensorSink::fp32());
    s.matrix(cls, Shard::tensor, "o_proj", hidden, inner, 1, true);
}

inline void gated_delta_tensors(TensorSink& s, std::int64_t hidden, GatedDelta const& a) {
    constexpr TensorClass cls = TensorClass::linear_attention;
    std::int64_t const key = std::int64_t{a.k_heads} * a.k_dim, value = std::int64_t{a.v_heads} * a.v_dim;
    s.matrix(cls, Shard::tensor, "in_proj_qkv", 2 * key + value, hidden);
    s.matrix(cls, Shard::tensor, "in_proj_z", value, hidden);
    s.add(cls, Shard::tensor, "in_proj_ba", 2 * std::int64_t{a.v_heads}, hidden, s.plain());
    s.add(cls, Shard::tensor, "conv1d", 2 * key + value, a.conv_kernel, s.plain());
    s.head_vector("A_log_dt_bias", a.v_heads, s.plain(), 2);
    s.vector("norm", a.v_dim);
    s.matrix(cls, Shard::tensor, "out_proj", hidden, value, 1, true);
}

inline void mamba1_tensors(TensorSink& s, std::int64_t hidden, Mamba1 const& a) {
    constexpr TensorClass cls = TensorClass::linear_attention;
    s.matrix(cls, Shard::tensor, "in_proj", 2 * std::int64_t{a.inner}, hidden);
    s.add(cls, Shard::tensor, "conv1d", a.inner, a.conv_kernel, s.plain());
    s.head_vector("conv1d.bias", a.inner, s.plain());
    s.matrix(cls, Shard::tensor, "x_proj", a.dt_rank + 2 * std::int64_t{a.d_state}, a.inner, 1, true);
    s.matrix(cls, Shard::tensor, "dt_proj", a.inner, a.dt_rank);
    s.head_vector("dt_proj.bias", a.inner, s.plain());
    s.add(cls, Shard::tensor, "A_log", a.inner, a.d_state, s.plain());
    s.head_vector("D", a.inner, s.plain());
    s.matrix(cls, Shard::tensor, "out_proj", hidden, a.inner, 1, true);
}

inline void mamba2_tensors(TensorSink& s, std::int64_t hidden, Mamba2 const& a) {
    constexpr TensorClass cls = TensorClass::linear_attention;
    std::int64_t const inner = std::int64_t{a.heads} * a.head_dim;
    std::int64_t const bc = 2 * std::int64_t{a.groups} * a.d_state;
    s.matrix(cls, Shard::tensor, "in_proj", 2 * inner + bc + a.heads, hidden);
    s.add(cls, Shard::tensor, "conv1d", inner + bc, a.conv_kernel, s.plain());
    if (a.conv_bias) s.head_vector("conv1d.bias", inner + bc, s.plain());
    if (a.proj_bias) {
        s.head_vector("in_proj.bias", 2 * inner + bc + a.heads, s.plain());
        s.vector("out_proj.bias", hidden);
    }
    s.head_vector("A_log_D_dt_bias", a.heads, s.plain(), 3);
    if (a.norm) s.head_vector("norm", inner, s.plain());
    s.matrix(cls, Shard::tensor, "out_proj", hidden, inner, 1, true);
}

inline void lightning_tensors(TensorSink& s, std::int64_t hidden, Lightning const& a) {
    constexpr TensorClass cls = TensorClass::linear_attention;
    std::int64_t const inner = std::int64_t{a.heads} * a.head_dim;
    s.matrix(cls, Shard::tensor, "qkv_proj", 3 * inner, hidden);
    s.matrix(cls, Shard::tensor, "output_gate", inner, hidden);
    s.head_vector("norm", inner, s.plain());
    if (a.qk_norm) s.vector("qk_norm", a.head_dim, 2);
    s.matrix(cls, Shard::tensor, "out_proj", hidden, inner, 1, true);
}

inline void short_conv_tensors(TensorSink& s, std::int64_t hidden, ShortConv const& a) {
    constexpr TensorClass cls = TensorClass::linear_attention;
    s.matrix(cls, Shard::tensor, "in_proj", 3 * std::int64_t{a.dim}, hidden);
    s.add(cls, Shard::tensor, "conv1d", a.dim, a.kernel, s.plain());
    s.matrix(cls, Shard::tensor, "out_proj", hidden, a.dim, 1, true);
}

inline void mixer_tensors(TensorSink& s, std::int64_t hidden, Mixer const& mixer) {
    struct Visit {
        TensorSink& s;
        std::int64_t hidden;
        void operator()(Gqa const& a) const { gqa_tensors(s, hidden, a); }
        void operator()(SlidingWindow const& a) const { gqa_tensors(s, hidden, a.attn); }
        void operator()(ChunkedLocal const& a) const { gqa_tensors(s, hidden, a.attn); }
        void operator()(Mla const& a) const { mla_tensors(s, hidden, a); }
        void operator()(SparseIndexed const& a) const {
            if (auto const* mla = std::get_if<Mla>(&a.base)) {
                mla_tensors(s, hidden, *mla);
                indexer_tensors(s, hidden, mla->q_lora_rank > 0 ? mla->q_lora_rank : hidden, a.indexer);
            } else if (auto const* gqa = std::get_if<Gqa>(&a.base)) {
                gqa_tensors(s, hidden, *gqa);
                if (!a.indexer.owns_keys) return; // MiniMax M3, Qwen 3.8 Flash: plain query and key projections
                constexpr TensorClass cls = TensorClass::attention_shared;
                s.matrix(cls, Shard::replicated, "indexer.q_proj", std::int64_t{a.indexer.heads} * a.indexer.head_dim, hidden);
                s.matrix(cls, Shard::replicated, "indexer.k_proj", a.indexer.head_dim, hidden);
                s.vector("indexer.qk_norm", a.indexer.head_dim, 2);
            }
        }
        void operator()(Compressed const& a) const { compressed_tensors(s, hidden, a); }
        void operator()(Kda const& a) const { kda_tensors(s, hidden, a); }
        void operator()(GatedDelta const& a) const { gated_delta_tensors(s, hidden, a); }
        void operator()(Mamba1 const& a) const { mamba1_tensors(s, hidden, a); }
        void operator()(Mamba2 const& a) const { mamba2_tensors(s, hidden, a); }
        void operator()(Lightning const& a) const { lightning_tensors(s, hidden, a); }
        void operator()(ShortConv const& a) const { short_conv_tensors(s, hidden, a); }
    };
    std::visit(Visit{s, hidden}, mixer);
}

inline void dense_tensors(TensorSink& s, TensorClass cls, std::int64_t hidden, std::int64_t width, bool gated, bool bias) {
    s.matrix(cls, Shard::tensor, gated ? "gate_up_proj" : "up_proj", width, hidden, gated ? 2 : 1);
    s.matrix(cls, Shard::tensor, "down_proj", hidden, width, 1, true);
    if (bias) {
        s.head_vector("up_proj.bias", width, s.plain(), gated ? 2 : 1);
        s.vector("down_proj.bias", hidden);
    }
}

inline void ffn_tensors(TensorSink& s, std::int64_t hidden, Ffn const& ffn) {
    if (auto const* d = std::get_if<Dense>(&ffn)) {
        dense_tensors(s, TensorClass::dense_ffn, hidden, d->intermediate, d->gated, d->bias);
        return;
    }
    Moe const& m = std::get<Moe>(ffn);
    std::int64_t const width = m.latent > 0 ? m.latent : hidden;
    std::int64_t const e = m.experts;
    s.add(TensorClass::router, Shard::replicated, "router", e + m.zero_experts, hidden, s.plain());
    if (m.router_bias) s.add(TensorClass::router, Shard::replicated, "router.bias", e + m.zero_experts, 1, TensorSink::fp32());
    if (m.latent > 0) {
        // The way down and up stays whole on every rank: it surrounds the experts' exchange.
        s.add(TensorClass::router, Shard::replicated, "latent_proj", m.latent, hidden, s.plain(), 2);
        if (m.latent_norm) s.vector("latent_norm", m.latent);
    }
    WeightFormat const f = s.format(TensorClass::routed_expert);
    s.add(TensorClass::routed_expert, Shard::expert, m.gated ? "experts.w13" : "experts.up", m.intermediate, width, f, e * (m.gated ? 2 : 1));
    s.add(TensorClass::routed_expert, Shard::expert, "experts.w2", width, m.intermediate, f, e, true);
    if (m.bias) {
        s.add(TensorClass::routed_expert, Shard::expert, "experts.w13.bias", m.intermediate, 1, s.plain(), e * (m.gated ? 2 : 1));
        s.add(TensorClass::routed_expert, Shard::expert, "experts.w2.bias", width, 1, s.plain(), e, true);
    }
    if (m.shared_intermediate > 0) dense_tensors(s, TensorClass::shared_expert, hidden, m.shared_intermediate, m.gated, false);
    if (m.shared_gate) s.add(TensorClass::router, Shard::replicated, "shared_expert_gate", 1, hidden, s.plain());
    if (m.dense_intermediate > 0) dense_tensors(s, TensorClass::dense_ffn, hidden, m.dense_intermediate, true, false);
}

inline void layer_tensors(TensorSink& s, std::int64_t hidden, Layer const& l) {
    for (Mixer const& mixer : l.mixers) mixer_tensors(s, hidden, mixer);
    if (l.ffn) ffn_tensors(s, hidden, *l.ffn);
    s.vector("layernorm", hidden, std::int64_t{l.norms} * (l.norm_bias ? 2 : 1));
}

} // namespace detail

/// Every weight tensor of the model: trunk, embedding and head, MTP layers, and what the card adds (towers,
/// tables, drafts). Layers that share one block of weights (Zamba2) give it once.
inline std::vector<WeightTensor> weight_tensors(Model const& m) {
    std::vector<WeightTensor> out;
    out.reserve(m.layers.size() * 24 + 64);
    detail::TensorSink s{m, out};
    s.add(TensorClass::embedding, Shard::vocabulary, "embed_tokens", m.vocab, m.hidden, s.plain());
    if (!m.tied_embeddings) s.add(TensorClass::lm_head, Shard::vocabulary, "lm_head", m.vocab, m.hidden, m.quant[TensorClass::lm_head]);
    std::vector<std::int32_t> blocks;
    for (std::size_t i = 0; i < m.layers.size(); ++i) {
        Layer const& l = m.layers[i];
        if (l.shared_block >= 0) {
            if (std::find(blocks.begin(), blocks.end(), l.shared_block) != blocks.end()) continue;
            blocks.push_back(l.shared_block);
        }
        s.enter(static_cast<std::int32_t>(i), false);
        detail::layer_tensors(s, m.hidden, l);
    }
    s.enter(-1, false);
    s.vector("norm", m.hidden, std::int64_t{m.final_norms} * (!m.layers.empty() && m.layers.back().norm_bias ? 2 : 1));
    for (Layer const& l : m.mtp_layers) {
        s.enter(-1, true);
        detail::layer_tensors(s, m.hidden, l);
    }
    out.insert(out.end(), m.extra_tensors.begin(), m.extra_tensors.end());
    return out;
}

/// Values in a tensor, scales not counted.
constexpr Params params_of(WeightTensor const& t) noexcept { return Params{t.rows * t.cols * t.count}; }
/// Bytes of a tensor as stored, scales included.
constexpr Bytes bytes_of(WeightTensor const& t) noexcept { return matrix_bytes(t.format, t.rows, t.cols) * t.count; }

/// The class counts towards the model's published size: not MTP, drafts, towers, lookup tables.
constexpr bool in_trunk(TensorClass c) noexcept {
    return c != TensorClass::mtp && c != TensorClass::draft && c != TensorClass::vision && c != TensorClass::lookup;
}

/// The sums of the tensors fit 63 bits; false for hostile sizes.
inline bool sizes_are_sane(std::vector<WeightTensor> const& tensors) noexcept {
    std::int64_t total = 0;
    for (WeightTensor const& t : tensors) {
        auto const n = checked_product(t.rows, t.cols, t.count, 16);
        auto const sum = n ? checked_add(total, *n) : std::nullopt;
        if (!sum) return false;
        total = *sum;
    }
    return true;
}

/// Parameters of the trunk, embedding and head (MTP, drafts, towers and lookup tables apart).
inline Params total_params(Model const& m) {
    Params n{};
    for (WeightTensor const& t : weight_tensors(m))
        if (in_trunk(t.cls)) n += params_of(t);
    return n;
}

/// Parameters of one class.
inline Params class_params(Model const& m, TensorClass cls) {
    Params n{};
    for (WeightTensor const& t : weight_tensors(m))
        if (t.cls == cls) n += params_of(t);
    return n;
}

/// Parameters that one token uses: everything of the trunk, of the routed experts the top-k. `input_embedding`
/// counts the whole embedding matrix although a token reads one row (the usual published figure does).
inline Params active_params(Model const& m, bool input_embedding = true) {
    Params n{};
    for (WeightTensor const& t : weight_tensors(m)) {
        if (!in_trunk(t.cls)) continue;
        if (t.cls == TensorClass::embedding && !input_embedding && !m.tied_embeddings) continue;
        if (t.cls == TensorClass::routed_expert && t.layer >= 0) {
            Layer const& l = m.layers[static_cast<std::size_t>(t.layer)];
            auto const* moe = l.ffn ? std::get_if<Moe>(&*l.ffn) : nullptr;
            if (moe != nullptr && moe->experts > 0) {
                n += Params{t.rows * t.cols * (t.count / moe->experts) * moe->top_k};
                continue;
            }
        }
        n += params_of(t);
    }
    return n;
}

/// Bytes of the whole model as stored, by class: the checkpoint's payload.
struct StoredBytes {
    Bytes total{};
    std::array<Bytes, kTensorClasses> by_class{};

    [[nodiscard]] Bytes operator[](TensorClass c) const noexcept { return by_class[static_cast<std::size_t>(c)]; }
};

inline StoredBytes stored_bytes(Model const& m) {
    StoredBytes b;
    for (WeightTensor const& t : weight_tensors(m)) {
        Bytes const n = bytes_of(t);
        b.total += n;
        b.by_class[static_cast<std::size_t>(t.cls)] += n;
    }
    return b;
}

// ---- loaded in another type -------------------------------------------------------------------------

/// The model as it is loaded with --weights-dtype, or as another checkpoint of it stores it. "auto" and the
/// dtype that it has change nothing. bf16, fp16, fp32: every matrix unpacked. fp8 (a scale a row), fp8_block,
/// int8, int4 (AWQ, GPTQ): every matrix of the layers. nvfp4, mxfp4: the routed experts alone; of models without
/// experts every matrix of the layers, but attention and recurrent mixers of hybrids in fp8 (the recipes of the
/// published ModelOpt checkpoints; four start-up logs agree within 0.5 %). Embedding, head, routers and norms
/// keep the model's dtype. Errors: bad_value.
inline Result<Model> load_as(Model m, std::string_view dtype) {
    std::string const want = to_lower(trim(dtype));
    if (want.empty() || want == "auto" || want == m.quant.label) return m;
    std::optional<WeightFormat> f;
    bool fp4 = false;
    if (want == "fp8") f = WeightFormat{Format::fp8_row};
    if (want == "fp8_block") f = WeightFormat{Format::fp8_block};
    if (want == "int8" || want == "w8a8") f = WeightFormat{Format::int8};
    if (want == "int4" || want == "awq" || want == "gptq" || want == "w4a16") f = WeightFormat{Format::int4_group};
    if (want == "nf4" || want == "bnb4") f = WeightFormat{Format::nf4};
    if (want == "mxfp8") f = WeightFormat{Format::mxfp8};
    if (want == "nvfp4" || want == "mxfp4" || want == "fp4") {
        f = WeightFormat{want == "mxfp4" ? Format::mxfp4 : Format::nvfp4};
        fp4 = true;
    }
    std::optional<Format> plain;
    if (want == "bf16" || want == "bfloat16") plain = Format::bf16;
    if (want == "fp16" || want == "float16" || want == "half") plain = Format::fp16;
    if (want == "fp32" || want == "float32" || want == "float") plain = Format::fp32;
    if (!f && !plain)
        return fail(ErrorCode::bad_value, "'" + std::string{dtype.substr(0, 40)} + "' is no weights dtype", "--weights-dtype",
                    "expected auto, bf16, fp16, fp32, fp8, fp8_block, mxfp8, int8, int4, nf4, nvfp4 or mxfp4");
    bool experts = false, hybrid = false;
    for (Layer const& l : m.layers) {
        experts = experts || (l.ffn && std::holds_alternative<Moe>(*l.ffn));
        for (Mixer const& x : l.mixers) hybrid = hybrid || is_recurrent(x);
    }
    if (plain) {
        m.dtype = *plain;
        for (WeightFormat& w : m.quant.of) w = WeightFormat{*plain};
        for (WeightTensor& t : m.extra_tensors)
            if (t.format.format != Format::fp32) t.format = WeightFormat{*plain};
    } else {
        using enum TensorClass;
        for (TensorClass const c : {attention, attention_shared, linear_attention, dense_ffn, shared_expert})
            if (!(fp4 && experts)) m.quant[c] = *f;
        if (fp4 && hybrid && !experts)
            for (TensorClass const c : {attention, linear_attention}) m.quant[c] = WeightFormat{Format::fp8};
        m.quant[routed_expert] = *f;
    }
    m.quant.exceptions.clear();
    m.quant.mla_out.reset();
    m.quant.mla_kv_b.reset();
    m.quant.method = "load_as";
    m.quant.label = plain ? std::string{to_string(*plain)} : want == "w8a8" ? "int8" : want == "awq" || want == "gptq" || want == "w4a16" ? "int4"
                    : want == "fp8_block" ? "fp8" : want == "fp4" ? "nvfp4" : want;
    m.exact_bytes.clear();
    m.inferred.push_back("weights as " + m.quant.label + " (by the usual recipe of that type, not read from a checkpoint)");
    return m;
}

// ---- one rank -----------------------------------------------------------------------------------

/// What of a model is loaded, and how an engine keeps it.
struct WeightOptions {
    bool mtp = false;             ///< multi-token-prediction layers (only with speculation)
    bool draft = false;           ///< draft modules
    bool vision = true;           ///< towers and projectors
    bool lookup_on_host = false;  ///< lookup tables in host memory
    bool mm_data_parallel = true; ///< towers whole on every rank; false: cut by TP
    bool shared_experts_copied = false; ///< shared experts whole on every rank (some sequence-parallel modes)
    std::int32_t expert_width_multiple = 1;  ///< the expert's width on a rank is padded to this
    std::int32_t expert_input_multiple = 1;  ///< and the width it works on
    std::int32_t redundant_experts = 0;      ///< extra copies of experts that EP balances with
    bool absorbed_mla = false;               ///< kv_b_proj kept once more in 16 bits, split for decoding (vLLM, SGLang)
    bool rope_tables = false;                ///< count the model's cosine and sine tables (class other)
    std::optional<WeightFormat> experts_as;  ///< routed experts unpacked to this format
    std::optional<WeightFormat> linears_as;  ///< every other quantised matrix unpacked to this format
};

/// Bytes of one rank.
struct RankWeights {
    Bytes total{};
    std::array<Bytes, kTensorClasses> by_class{};
    Bytes host{};            ///< lookup tables kept in host memory, this rank's part
    std::int32_t experts = 0; ///< routed experts of one layer that the rank holds whole (expert parallelism), else 0

    [[nodiscard]] Bytes operator[](TensorClass c) const noexcept { return by_class[static_cast<std::size_t>(c)]; }
};

/// First layer and number of layers of each pipeline stage: layers // pp each; a remainder of r adds one
/// layer to r stages counted backwards from the last but one (vLLM's get_pp_indices).
inline std::vector<std::pair<std::int32_t, std::int32_t>> pipeline_stages(std::int32_t layers, std::int32_t pp) {
    std::vector<std::int32_t> n(static_cast<std::size_t>(pp), layers / pp);
    for (std::int32_t r = layers % pp, at = pp - 2; r > 0; --r, --at)
        ++n[static_cast<std::size_t>(at < 0 ? at + pp : at)];
    std::vector<std::pair<std::int32_t, std::int32_t>> out;
    std::int32_t first = 0;
    for (std::int32_t const k : n) {
        out.push_back({first, k});
        first += k;
    }
    return out;
}

namespace detail {

/// Bytes of a tensor on one rank of a stage that holds it.
inline Bytes rank_bytes(WeightTensor const& t, Layout const& l, WeightOptions const& o, std::int32_t experts_of_layer) {
    WeightFormat f = t.format;
    bool const quantised = element_bits(f.format) < 16;
    if (quantised && t.cls == TensorClass::routed_expert && o.experts_as) f = *o.experts_as;
    if (quantised && t.cls != TensorClass::routed_expert && t.cls != TensorClass::lookup && o.linears_as) f = *o.linears_as;
    std::int64_t const tp = l.tp;
    auto const cut = [&](std::int64_t ways) {
        return t.cut_cols ? matrix_bytes(f, t.rows, ceil_div(t.cols, ways)) : matrix_bytes(f, ceil_div(t.rows, ways), t.cols);
    };
    switch (t.shard) {
    case Shard::replicated: return matrix_bytes(f, t.rows, t.cols) * t.count;
    case Shard::tensor:
        if (t.cls == TensorClass::vision && o.mm_data_parallel) return matrix_bytes(f, t.rows, t.cols) * t.count;
        if (t.cls == TensorClass::shared_expert && o.shared_experts_copied) return matrix_bytes(f, t.rows, t.cols) * t.count;
        return cut(tp) * t.count;
    case Shard::kv_heads: {
        std::int64_t const heads = t.heads > 0 ? t.heads : 1;
        std::int64_t const mine = heads >= tp ? ceil_div(heads, tp) : 1;
        return matrix_bytes(f, t.rows / heads * mine, t.cols) * t.count;
    }
    case Shard::vocabulary: return matrix_bytes(f, round_up(t.rows, 64) / tp + (round_up(t.rows, 64) % tp != 0 ? 1 : 0), t.cols) * t.count;
    case Shard::expert: {
        std::int64_t rows = t.rows, cols = t.cols;
        std::int64_t count = t.count;
        std::int64_t const experts = experts_of_layer > 0 ? experts_of_layer : t.count;
        std::int64_t const each = t.count / experts; // matrices of one expert
        if (l.ep) {
            count = ceil_div(experts + o.redundant_experts, l.ep_size()) * each;
        } else {
            std::int64_t const ways = tp * l.dp;
            (t.cut_cols && cols > 1 ? cols : rows) = ceil_div(t.cut_cols && cols > 1 ? cols : rows, ways);
        }
        std::int64_t& width = t.cut_cols ? cols : rows;
        std::int64_t& input = t.cut_cols ? rows : cols;
        if (cols > 1) {
            width = round_up(width, o.expert_width_multiple);
            input = round_up(input, o.expert_input_multiple);
        }
        return matrix_bytes(f, rows, cols) * count;
    }
    case Shard::lookup_table: return matrix_bytes(f, ceil_div(t.rows, tp), t.cols) * t.count;
    }
    return {};
}

/// Scales each class by what the checkpoint's own headers say it has. Exact where a class has one format.
inline void scale_to_exact(Model const& m, std::span<WeightTensor const> tensors, RankWeights& w) {
    std::array<std::int64_t, kTensorClasses> stored{}, exact{};
    for (WeightTensor const& t : tensors) stored[static_cast<std::size_t>(t.cls)] += bytes_of(t).value();
    for (auto const& [cls, bytes] : m.exact_bytes) exact[static_cast<std::size_t>(cls)] += bytes.value();
    w.total = Bytes{};
    for (std::size_t k = 0; k < stored.size(); ++k) {
        if (stored[k] > 0 && exact[k] > 0)
            w.by_class[k] = Bytes{static_cast<std::int64_t>(
                std::ceil(static_cast<double>(w.by_class[k].value()) * static_cast<double>(exact[k]) / static_cast<double>(stored[k])))};
        w.total += w.by_class[k];
    }
    auto const lookup = static_cast<std::size_t>(TensorClass::lookup);
    if (stored[lookup] > 0 && exact[lookup] > 0)
        w.host = Bytes{static_cast<std::int64_t>(
            std::ceil(static_cast<double>(w.host.value()) * static_cast<double>(exact[lookup]) / static_cast<double>(stored[lookup])))};
}

} // namespace detail

/// Bytes of the weights on one rank of `stage`; -1: of the fullest stage.
/// Formula and shard rules: the title of this file. Parts that are not loaded (options) are left out.
/// `tensors` are weight_tensors(m).
inline RankWeights rank_weights(Model const& m, std::span<WeightTensor const> tensors, Layout const& l, WeightOptions const& o = {}, int stage = -1) {
    auto const stages = pipeline_stages(static_cast<std::int32_t>(m.layers.size()), l.pp);
    auto const of_stage = [&](std::size_t p) {
        RankWeights w;
        auto const [first, n] = stages[p];
        bool const is_first = p == 0, is_last = p + 1 == stages.size();
        for (WeightTensor const& t : tensors) {
            std::int32_t experts = 0;
            bool here = false;
            if (t.cls == TensorClass::mtp || t.cls == TensorClass::draft) {
                if (t.cls == TensorClass::mtp ? !o.mtp : !o.draft) continue;
                here = is_last;
                if (t.shard == Shard::expert && t.cls == TensorClass::mtp)
                    for (Layer const& layer : m.mtp_layers)
                        if (layer.ffn && std::holds_alternative<Moe>(*layer.ffn)) experts = std::get<Moe>(*layer.ffn).experts;
                if (t.shard == Shard::expert && t.heads > 0) experts = t.heads; // a draft names its experts here
            } else if (t.layer >= 0) {
                here = t.layer >= first && t.layer < first + n;
                Layer const& layer = m.layers[static_cast<std::size_t>(t.layer)];
                if (here && t.shard == Shard::expert && layer.ffn && std::holds_alternative<Moe>(*layer.ffn))
                    experts = std::get<Moe>(*layer.ffn).experts;
            } else if (t.cls == TensorClass::embedding) {
                here = is_first || (is_last && m.tied_embeddings && t.name == "embed_tokens");
            } else if (t.cls == TensorClass::vision) {
                if (!o.vision) continue;
                here = is_first;
            } else if (t.cls == TensorClass::lookup) {
                here = is_first;
            } else {
                here = is_last; // head, final norm, output mixing
            }
            if (!here) continue;
            Bytes const b = detail::rank_bytes(t, l, o, experts);
            if (t.cls == TensorClass::lookup && o.lookup_on_host) {
                w.host += b;
                continue;
            }
            if (t.shard == Shard::expert && l.ep && experts > 0 && t.cls == TensorClass::routed_expert)
                w.experts = static_cast<std::int32_t>(ceil_div(experts + o.redundant_experts, l.ep_size()));
            w.total += b;
            w.by_class[static_cast<std::size_t>(t.cls)] += b;
        }
        if (!m.exact_bytes.empty()) detail::scale_to_exact(m, tensors, w);
        if (o.absorbed_mla)
            for (std::int32_t i = first; i < first + n; ++i)
                for (Mixer const& x : m.layers[static_cast<std::size_t>(i)].mixers) {
                    auto const* mla = std::get_if<Mla>(&x);
                    if (auto const* s = std::get_if<SparseIndexed>(&x)) mla = std::get_if<Mla>(&s->base);
                    if (mla == nullptr) continue;
                    Bytes const b{2 * ceil_div(mla->heads, l.tp) * (mla->qk_nope + mla->v_head_dim) * mla->kv_lora_rank};
                    w.total += b;
                    w.by_class[static_cast<std::size_t>(TensorClass::attention)] += b;
                }
        if (o.rope_tables && m.rope_tables) {
            w.total += *m.rope_tables;
            w.by_class[static_cast<std::size_t>(TensorClass::other)] += *m.rope_tables;
        }
        return w;
    };
    if (stage >= 0 && static_cast<std::size_t>(stage) < stages.size()) return of_stage(static_cast<std::size_t>(stage));
    RankWeights fullest;
    for (std::size_t p = 0; p < stages.size(); ++p) {
        RankWeights const w = of_stage(p);
        if (p == 0 || w.total > fullest.total) fullest = w;
    }
    return fullest;
}

inline RankWeights rank_weights(Model const& m, Layout const& l, WeightOptions const& o = {}, int stage = -1) {
    return rank_weights(m, weight_tensors(m), l, o, stage);
}

} // namespace servecap
