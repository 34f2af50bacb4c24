// servecap: the layers of each known model family, from its Hugging Face config
// SPDX-License-Identifier: Apache-2.0
//
// One builder a family. A builder reads the fields that its class in Transformers or vLLM reads, and adds
// what those classes know without a field: alternating windows of Gemma 2, every fourth global layer of
// Llama 4 and Command A, the biases of Qwen 2, the number of norms. Families are found by the architecture
// name; a name that is not in the table is refused, since plain attention would be a plausible lie.
// Sources: the modelling files of Transformers and vLLM; checkpoint headers where the cards say so.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/catalog/model.hpp>
#include <servecap/io/json.hpp>
#include <servecap/memory/weights.hpp>

namespace servecap::detail {

inline constexpr std::int32_t kMaxLayers = 2048;
inline constexpr std::int32_t kMaxWidth = 1 << 22;
inline constexpr std::int32_t kMaxHeads = 1 << 16;
inline constexpr std::int32_t kMaxHeadDim = 1 << 16;
inline constexpr std::int32_t kMaxExperts = 1 << 17;

/// A config while it is turned into a model. `t` reads the text part, `root` the whole file.
struct Config {
    FieldReader t;
    FieldReader root;
    Model& m;
    std::optional<Error>& error;

    [[nodiscard]] bool failed() const { return error.has_value(); }
    [[nodiscard]] std::int32_t layer_count() const { return static_cast<std::int32_t>(m.layers.size()); }
};

/// How the attention and the dense part of a plain decoder look.
struct PlainStyle {
    bool qkv_bias = false;
    bool o_bias = false;
    bool mlp_bias = false;
    bool qk_norm = false;
    bool qk_norm_full = false;
    bool gated = true;
    std::int32_t norms = 2;
    bool norm_bias = false;
};

inline void refuse(Config& c, std::string_view field, std::string const& what) {
    c.t.mistake(ErrorCode::unsupported, field, what + " is not modelled");
}

/// A list that says something about every layer; other lengths are mistakes.
template <class T>
bool one_a_layer(Config& c, std::string_view field, std::vector<T> const& list) {
    if (list.size() == c.m.layers.size()) return true;
    c.t.mistake(ErrorCode::bad_value, field, std::to_string(list.size()) + " entries", "expected one for each of the " +
                                                                                          std::to_string(c.m.layers.size()) + " layers");
    return false;
}

inline Gqa read_gqa(Config& c, PlainStyle const& s = {}) {
    Gqa a;
    a.q_heads = c.t.size({"num_attention_heads", "n_head", "num_heads"}, kMaxHeads);
    a.kv_heads = c.t.size({"num_key_value_heads", "num_kv_heads", "num_attention_groups", "multi_query_group_num"}, kMaxHeads, a.q_heads);
    if (!c.t.has("head_dim") && !c.t.has("attention_head_dim") && !c.failed() && c.m.hidden % a.q_heads != 0)
        c.t.mistake(ErrorCode::bad_value, "num_attention_heads",
                    std::to_string(a.q_heads) + " heads do not divide hidden_size " + std::to_string(c.m.hidden), "head_dim is missing");
    a.head_dim = c.t.size({"head_dim", "attention_head_dim"}, kMaxHeadDim, std::max(1, c.m.hidden / std::max(1, a.q_heads)));
    a.v_head_dim = c.t.size({"v_head_dim"}, kMaxHeadDim, a.head_dim);
    if (!c.failed() && a.kv_heads > a.q_heads)
        c.t.mistake(ErrorCode::bad_value, "num_key_value_heads", std::to_string(a.kv_heads) + " is more than the query heads",
                    "expected at most " + std::to_string(a.q_heads));
    a.bias = s.qkv_bias;
    a.o_bias = s.o_bias;
    a.qk_norm = s.qk_norm;
    a.qk_norm_full = s.qk_norm_full;
    return a;
}

inline Mla read_mla(Config& c) {
    Mla a;
    a.heads = c.t.size({"num_attention_heads"}, kMaxHeads);
    a.q_lora_rank = c.t.size({"q_lora_rank"}, kMaxWidth, 0, 0);
    a.kv_lora_rank = c.t.size({"kv_lora_rank"}, kMaxWidth);
    a.qk_nope = c.t.size({"qk_nope_head_dim"}, kMaxHeadDim, std::nullopt, 0);
    a.qk_rope = c.t.size({"qk_rope_head_dim"}, kMaxHeadDim, std::nullopt, 0);
    a.v_head_dim = c.t.size({"v_head_dim"}, kMaxHeadDim);
    return a;
}

/// The kinds of attention by layer: from `layer_types`, else none.
inline std::vector<std::string> read_layer_types(Config& c) {
    auto types = c.t.texts({"layer_types"});
    if (!types.empty() && !one_a_layer(c, "layer_types", types)) types.clear();
    return types;
}

/// Full attention or a window, as `layer_types` or `is_window(i)` says.
template <class IsWindow>
void set_windows(Config& c, Gqa const& full, Gqa const& windowed, std::int32_t window, IsWindow const& is_window) {
    auto const types = read_layer_types(c);
    for (std::size_t i = 0; i < c.m.layers.size() && !c.failed(); ++i) {
        bool slides = is_window(static_cast<std::int32_t>(i));
        if (!types.empty()) {
            if (types[i] == "sliding_attention" || types[i] == "local_attention") {
                slides = true;
            } else if (types[i] == "full_attention" || types[i] == "attention" || types[i] == "global_attention") {
                slides = false;
            } else {
                refuse(c, "layer_types", "the kind '" + types[i] + "'");
                return;
            }
        }
        if (slides && window <= 0) {
            c.t.mistake(ErrorCode::missing, "sliding_window", "the field is missing", "layers slide, so the window is needed");
            return;
        }
        if (slides)
            c.m.layers[i].mixers.push_back(SlidingWindow{windowed, window});
        else
            c.m.layers[i].mixers.push_back(full);
    }
}

inline std::int32_t read_window(Config& c) {
    return static_cast<std::int32_t>(c.t.integer({"sliding_window", "sliding_window_size"}, 0, 1 << 30, 0));
}

inline void set_ffn(Config& c, Ffn const& ffn) {
    for (Layer& l : c.m.layers) l.ffn = ffn;
}
inline void set_norms(Config& c, std::int32_t norms, bool bias = false) {
    for (Layer& l : c.m.layers) {
        l.norms = norms;
        l.norm_bias = bias;
    }
}

/// Reads an FFN width; a list (OpenELM, some distillations) is taken layer by layer elsewhere.
inline std::int32_t read_width(Config& c, FieldReader::Names names, std::optional<std::int32_t> fallback = std::nullopt) {
    return c.t.size(names, kMaxWidth, fallback);
}

/// A field that is one number or a list of equal ones (Hunyuan).
inline std::int32_t number_or_list(Config& c, std::string_view name, std::int32_t high, std::optional<std::int32_t> fallback) {
    Json const* v = c.t.find({name});
    if (v != nullptr && v->is_array()) {
        auto const list = c.t.integers({name}, 0, high);
        for (std::int64_t const n : list)
            if (n != list.front()) {
                refuse(c, name, "a list of different sizes");
                return 1;
            }
        return list.empty() ? fallback.value_or(1) : static_cast<std::int32_t>(list.front());
    }
    return c.t.size({name}, high, fallback, 0);
}

/// Which layers are mixtures: first_k_dense_replace, moe_layer_freq (a step or a list), mlp_only_layers,
/// decoder_sparse_step, mlp_layer_types, in the way of the family's class.
inline std::vector<bool> read_moe_layers(Config& c) {
    std::size_t const n = c.m.layers.size();
    std::vector<bool> moe(n, true);
    auto const first = static_cast<std::size_t>(c.t.integer({"first_k_dense_replace"}, 0, kMaxLayers, 0));
    for (std::size_t i = 0; i < std::min(first, n); ++i) moe[i] = false;
    if (Json const* freq = c.t.find({"moe_layer_freq"}); freq != nullptr && freq->is_array()) {
        auto const list = c.t.integers({"moe_layer_freq"}, 0, 1, kMaxLayers);
        if (!c.failed() && one_a_layer(c, "moe_layer_freq", list))
            for (std::size_t i = 0; i < n; ++i) moe[i] = list[i] != 0;
    } else {
        auto const step = c.t.integer({"moe_layer_freq"}, 1, kMaxLayers, 1);
        if (step > 1)
            for (std::size_t i = 0; i < n; ++i) moe[i] = moe[i] && static_cast<std::int64_t>(i) % step == 0;
    }
    auto const sparse_step = c.t.integer({"decoder_sparse_step"}, 1, kMaxLayers, 1);
    if (sparse_step > 1)
        for (std::size_t i = 0; i < n; ++i) moe[i] = moe[i] && (static_cast<std::int64_t>(i) + 1) % sparse_step == 0;
    for (std::int64_t const i : c.t.integers({"mlp_only_layers"}, 0, kMaxLayers))
        if (static_cast<std::size_t>(i) < n) moe[static_cast<std::size_t>(i)] = false;
    if (auto const types = c.t.texts({"mlp_layer_types"}); !types.empty() && one_a_layer(c, "mlp_layer_types", types))
        for (std::size_t i = 0; i < n; ++i) moe[i] = types[i] == "sparse";
    return moe;
}

inline void set_moe(Config& c, Moe const& moe, Dense const& dense, std::vector<bool> const& where) {
    for (std::size_t i = 0; i < c.m.layers.size(); ++i) {
        if (where[i])
            c.m.layers[i].ffn = moe;
        else
            c.m.layers[i].ffn = dense;
    }
}

/// Routed experts of the DeepSeek, Qwen, GLM and Kimi way of naming.
inline Moe read_moe(Config& c) {
    Moe e;
    e.experts = c.t.size({"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"}, kMaxExperts);
    e.top_k = c.t.size({"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "experts_per_token", "moe_top_k"}, kMaxExperts);
    e.intermediate = read_width(c, {"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"});
    e.shared_experts = c.t.size({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, kMaxExperts, 0, 0);
    e.shared_intermediate = e.shared_experts * e.intermediate;
    return e;
}

/// A module of multi-token prediction as DeepSeek V3 has it: a projection of two hidden states, norms of
/// both and of the output, and layers that look like the last one.
inline void add_mtp(Config& c, std::int64_t modules, std::vector<Layer> const& layers_of_one, std::int32_t norms = 3) {
    if (c.failed()) return;
    std::int64_t const h = c.m.hidden;
    for (std::int64_t k = 0; k < modules; ++k) {
        c.m.mtp_layers.insert(c.m.mtp_layers.end(), layers_of_one.begin(), layers_of_one.end());
        WeightTensor t;
        t.cls = TensorClass::mtp;
        t.shard = Shard::replicated;
        t.rows = h;
        t.cols = 2 * h;
        t.format = {c.m.dtype};
        t.name = "mtp.eh_proj";
        c.m.extra_tensors.push_back(t);
        t.cols = 1;
        t.count = norms;
        t.name = "mtp.norms";
        c.m.extra_tensors.push_back(t);
    }
}
inline std::int64_t read_mtp_modules(Config& c) {
    return c.t.integer({"num_nextn_predict_layers", "mtp_num_hidden_layers"}, 0, 64, 0);
}

inline WeightTensor extra(TensorClass cls, Shard shard, std::int32_t layer, std::string_view name, std::int64_t rows, std::int64_t cols,
                          WeightFormat f, std::int64_t count = 1, bool cut_cols = false) {
    WeightTensor t;
    t.cls = cls;
    t.shard = shard;
    t.layer = layer;
    t.rows = rows;
    t.cols = cols;
    t.count = count;
    t.cut_cols = cut_cols;
    t.format = f;
    t.name = name;
    return t;
}

// ---- plain decoders -----------------------------------------------------------------------------

inline void build_plain(Config& c, PlainStyle const& s) {
    Gqa const a = read_gqa(c, s);
    std::int32_t window = read_window(c);
    if (!c.t.flag({"use_sliding_window"}, true)) window = 0;
    auto const from = c.t.integer({"max_window_layers"}, 0, kMaxLayers, 0);
    set_windows(c, a, a, window, [&](std::int32_t i) { return window > 0 && i >= from; });
    set_ffn(c, Dense{read_width(c, {"intermediate_size", "ffn_dim", "n_inner"}), s.gated, s.mlp_bias});
    set_norms(c, s.norms, s.norm_bias);
}

inline void build_llama(Config& c) {
    bool const bias = c.t.flag({"attention_bias"}, false);
    build_plain(c, {.qkv_bias = bias,
                    .o_bias = c.t.flag({"attention_out_bias"}, c.m.architecture == "SeedOssForCausalLM" ? false : bias),
                    .mlp_bias = c.t.flag({"mlp_bias"}, false)});
}
inline void build_mistral(Config& c) { build_plain(c, {}); }
inline void build_qwen2(Config& c) { build_plain(c, {.qkv_bias = true}); }
inline void build_qwen3(Config& c) {
    bool const bias = c.t.flag({"attention_bias"}, false);
    build_plain(c, {.qkv_bias = bias, .o_bias = bias, .qk_norm = true});
}
inline void build_olmo2(Config& c) { build_plain(c, {.qk_norm_full = true}); }
inline void build_gemma1(Config& c) { build_plain(c, {}); }
inline void build_glm4(Config& c) { build_plain(c, {.qkv_bias = c.t.flag({"attention_bias"}, true), .norms = 4}); }
inline void build_phi2(Config& c) {
    build_plain(c, {.qkv_bias = true, .o_bias = true, .mlp_bias = true, .gated = false, .norms = 1, .norm_bias = true});
    c.m.extra_tensors.push_back(extra(TensorClass::lm_head, Shard::vocabulary, -1, "lm_head.bias", c.m.vocab, 1, {c.m.dtype}));
}
inline void build_starcoder2(Config& c) {
    bool const bias = c.t.flag({"use_bias"}, true);
    build_plain(c, {.qkv_bias = bias, .o_bias = bias, .mlp_bias = bias, .gated = false, .norm_bias = true});
}
/// MiMo-7B: a Qwen 2 with one module of prediction.
inline void build_mimo_7b(Config& c) {
    build_qwen2(c);
    Layer mtp;
    mtp.mixers.push_back(read_gqa(c, {.qkv_bias = true}));
    mtp.ffn = Dense{read_width(c, {"intermediate_size"})};
    add_mtp(c, read_mtp_modules(c), {mtp});
}

/// Nemotron NAS (DeciLM): every layer has its own number of KV heads and FFN width, and may lack either part.
/// Widths are 2/3 of the multiple of the hidden size, up to the next 256 (configuration_decilm.py).
inline void build_deci(Config& c) {
    Json const* blocks = c.t.find({"block_configs"});
    if (blocks == nullptr || !blocks->is_array()) return refuse(c, "block_configs", "a file without the list");
    std::vector<std::int64_t> entries(blocks->size());
    if (!one_a_layer(c, "block_configs", entries)) return;
    auto const heads = c.t.size({"num_attention_heads"}, kMaxHeads);
    bool const bias = c.t.flag({"attention_bias"}, false);
    for (std::size_t i = 0; i < c.m.layers.size() && !c.failed(); ++i) {
        Layer& l = c.m.layers[i];
        l.norms = 0;
        std::string const at = "block_configs." + std::to_string(i);
        Json const* attention = find_member((*blocks)[i], "attention");
        Json const* ffn = find_member((*blocks)[i], "ffn");
        if (attention == nullptr || ffn == nullptr) return refuse(c, "block_configs", "an entry without attention and ffn");
        FieldReader const a{*attention, c.t.file(), at + ".attention", c.error}, f{*ffn, c.t.file(), at + ".ffn", c.error};
        for (FieldReader const* part : {&a, &f})
            if (part->flag({"replace_with_linear"}, false)) return refuse(c, "block_configs", "a part replaced by a linear layer");
        if (a.has("window_length") || a.has("sparsify") || f.has("sparsify")) return refuse(c, "block_configs", "a window or a sparse part in a block");
        if (!a.flag({"no_op"}, false)) {
            Gqa g;
            g.q_heads = heads;
            g.kv_heads = heads / a.size({"n_heads_in_group"}, heads);
            g.head_dim = c.t.size({"head_dim"}, kMaxHeadDim, std::max(1, c.m.hidden / std::max(1, heads)));
            g.v_head_dim = g.head_dim;
            g.bias = bias;
            g.o_bias = bias;
            l.mixers.push_back(g);
            ++l.norms;
        }
        if (!f.flag({"no_op"}, false)) {
            Json const* mult = f.find({"ffn_mult"});
            double const m = mult == nullptr ? 0 : json_number(*mult).value_or(0);
            if (!(m > 0 && m <= 64)) return f.mistake(ErrorCode::bad_value, "ffn_mult", mult == nullptr ? "the field is missing" : show_json(*mult) + " is not usable", "expected a number up to 64");
            l.ffn = Dense{static_cast<std::int32_t>(round_up(static_cast<std::int64_t>(2 * m * c.m.hidden / 3), 256))};
            ++l.norms;
        }
    }
}
inline void build_cohere2(Config& c) {
    Gqa const a = read_gqa(c);
    auto const pattern = c.t.integer({"sliding_window_pattern"}, 1, kMaxLayers, 4);
    std::int32_t const window = read_window(c);
    set_windows(c, a, a, window, [&](std::int32_t i) { return window > 0 && (i + 1) % pattern != 0; });
    set_ffn(c, Dense{read_width(c, {"intermediate_size"})});
    set_norms(c, 1);
}
inline void build_cohere(Config& c) { build_plain(c, {.norms = 1}); }

/// Gemma 2: even layers slide. Gemma 3: every sixth is global.
inline void build_gemma2(Config& c) {
    Gqa const a = read_gqa(c);
    set_windows(c, a, a, read_window(c), [](std::int32_t i) { return i % 2 == 0; });
    set_ffn(c, Dense{read_width(c, {"intermediate_size"})});
    set_norms(c, 4);
}
inline void build_gemma3(Config& c) {
    Gqa const a = read_gqa(c, {.qk_norm = true});
    auto const pattern = c.t.integer({"sliding_window_pattern"}, 1, kMaxLayers, 6);
    set_windows(c, a, a, read_window(c), [&](std::int32_t i) { return (i + 1) % pattern != 0; });
    set_ffn(c, Dense{read_width(c, {"intermediate_size"})});
    set_norms(c, 4);
}

/// Gemma 4: global layers have heads of their own and make K and V with one projection; the last
/// num_kv_shared_layers take K and V of earlier layers; small ones have an embedding a layer.
inline void build_gemma4(Config& c) {
    Gqa local = read_gqa(c, {.qk_norm = true});
    Gqa global = local;
    global.head_dim = c.t.size({"global_head_dim"}, kMaxHeadDim, local.head_dim);
    global.v_head_dim = global.head_dim;
    global.kv_heads = c.t.size({"num_global_key_value_heads"}, kMaxHeads, local.kv_heads);
    global.k_eq_v = c.t.flag({"attention_k_eq_v"}, false);
    auto const shared = c.t.integer({"num_kv_shared_layers"}, 0, kMaxLayers, 0);
    bool const wide = c.t.flag({"use_double_wide_mlp"}, false);
    std::int32_t const width = read_width(c, {"intermediate_size"});
    set_windows(c, global, local, read_window(c), [](std::int32_t i) { return (i + 1) % 6 != 0; });
    bool const moe = c.t.flag({"enable_moe_block"}, false);
    std::int32_t const ple = c.t.size({"hidden_size_per_layer_input"}, kMaxWidth, 0, 0);
    std::int32_t const n = c.layer_count();
    WeightFormat const plain{c.m.dtype};
    for (std::int32_t i = 0; i < n && !c.failed(); ++i) {
        Layer& l = c.m.layers[static_cast<std::size_t>(i)];
        l.norms = moe ? 7 : 4; // with experts: norms around the dense part and around the experts
        bool const reuses = i >= n - shared;
        if (reuses) {
            Mixer& x = l.mixers.front();
            if (auto* w = std::get_if<SlidingWindow>(&x)) w->attn.reuses_kv = true;
            if (auto* g = std::get_if<Gqa>(&x)) g->reuses_kv = true;
        }
        if (moe) {
            Moe e;
            e.experts = c.t.size({"num_experts"}, kMaxExperts);
            e.top_k = c.t.size({"top_k_experts", "num_experts_per_tok"}, kMaxExperts);
            e.intermediate = read_width(c, {"moe_intermediate_size", "expert_intermediate_size"});
            e.dense_intermediate = width;
            l.ffn = e;
            c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, i, "router.scale", c.m.hidden, 1, plain));
            c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, i, "router.per_expert_scale", e.experts, 1, plain));
        } else {
            l.ffn = Dense{reuses && wide ? 2 * width : width};
        }
        c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, i, "layer_scalar", 1, 1, plain));
        if (ple > 0) {
            c.m.extra_tensors.push_back(extra(TensorClass::other, Shard::replicated, i, "per_layer_input_gate", ple, c.m.hidden, plain));
            c.m.extra_tensors.push_back(extra(TensorClass::other, Shard::replicated, i, "per_layer_projection", c.m.hidden, ple, plain));
            c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, i, "post_per_layer_input_norm", c.m.hidden, 1, plain));
        }
    }
    if (ple > 0 && !c.failed()) {
        std::int64_t const all = std::int64_t{ple} * n;
        auto const vocab = c.t.integer({"vocab_size_per_layer_input"}, 1, 1 << 28, c.m.vocab);
        c.m.extra_tensors.push_back(extra(TensorClass::embedding, Shard::vocabulary, -1, "embed_tokens_per_layer", vocab, all, plain));
        c.m.extra_tensors.push_back(extra(TensorClass::embedding, Shard::replicated, -1, "per_layer_model_projection", all, c.m.hidden, plain));
        c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, 0, "per_layer_projection_norm", ple, 1, plain));
    }
}

// ---- mixtures of experts over grouped attention ---------------------------------------------------

inline void attention_everywhere(Config& c, Gqa const& a) {
    std::int32_t const window = c.t.flag({"use_sliding_window"}, true) ? read_window(c) : 0;
    set_windows(c, a, a, window, [&](std::int32_t) { return window > 0; });
}

inline void build_mixtral(Config& c) {
    attention_everywhere(c, read_gqa(c));
    Moe e = read_moe(c);
    e.intermediate = read_width(c, {"intermediate_size"});
    set_ffn(c, e);
}
inline void build_qwen_moe(Config& c, bool qwen3) {
    attention_everywhere(c, read_gqa(c, {.qkv_bias = qwen3 ? c.t.flag({"attention_bias"}, false) : true, .qk_norm = qwen3}));
    Moe e = read_moe(c);
    e.shared_intermediate = c.t.size({"shared_expert_intermediate_size"}, kMaxWidth, 0, 0);
    e.shared_experts = e.shared_intermediate > 0 ? 1 : 0;
    e.shared_gate = e.shared_intermediate > 0;
    set_moe(c, e, Dense{read_width(c, {"intermediate_size"}, e.intermediate)}, read_moe_layers(c));
}
inline void build_qwen2_moe(Config& c) { build_qwen_moe(c, false); }
inline void build_qwen3_moe(Config& c) { build_qwen_moe(c, true); }

inline void build_minimax_m2(Config& c) {
    bool const norm = c.t.flag({"use_qk_norm"}, true);
    bool const whole = c.t.text({"qk_norm_type"}, "per_layer") == "per_layer";
    attention_everywhere(c, read_gqa(c, {.qk_norm = norm && !whole, .qk_norm_full = norm && whole}));
    Moe e = read_moe(c);
    e.router_bias = c.t.flag({"use_routing_bias"}, true);
    set_ffn(c, e);
}
inline void build_glm4_moe(Config& c) {
    Gqa const a = read_gqa(c, {.qkv_bias = c.t.flag({"attention_bias"}, false), .qk_norm = c.t.flag({"use_qk_norm"}, false)});
    attention_everywhere(c, a);
    Moe e = read_moe(c);
    e.router_bias = true;
    set_moe(c, e, Dense{read_width(c, {"intermediate_size"})}, read_moe_layers(c));
    Layer mtp;
    mtp.mixers.push_back(a);
    mtp.ffn = e;
    add_mtp(c, read_mtp_modules(c), {mtp});
}
inline void build_ernie_moe(Config& c) {
    bool const bias = c.t.flag({"use_bias"}, false);
    attention_everywhere(c, read_gqa(c, {.qkv_bias = bias, .o_bias = bias}));
    Moe e = read_moe(c);
    e.router_bias = true;
    auto const first = c.t.integer({"moe_layer_start_index"}, 0, kMaxLayers, 0);
    auto const last = c.t.integer({"moe_layer_end_index"}, -1, kMaxLayers, -1);
    auto const step = c.t.integer({"moe_layer_interval"}, 1, kMaxLayers, 1);
    std::vector<bool> where(c.m.layers.size());
    for (std::size_t i = 0; i < where.size(); ++i) {
        auto const k = static_cast<std::int64_t>(i);
        where[i] = k >= first && (last < 0 || k <= last) && (k + 1) % step == 0;
    }
    set_moe(c, e, Dense{read_width(c, {"intermediate_size"})}, where);
}
inline void build_hunyuan_moe(Config& c) {
    if (c.t.flag({"use_cla"}, false)) return refuse(c, "use_cla", "attention that shares K and V across layers");
    attention_everywhere(c, read_gqa(c, {.qkv_bias = c.t.flag({"attention_bias"}, false), .qk_norm = c.t.flag({"use_qk_norm"}, false)}));
    Moe e;
    e.experts = number_or_list(c, "num_experts", kMaxExperts, std::nullopt);
    e.top_k = number_or_list(c, "moe_topk", kMaxExperts, 1);
    e.intermediate = number_or_list(c, "moe_intermediate_size", kMaxWidth, c.t.size({"intermediate_size"}, kMaxWidth));
    e.shared_experts = number_or_list(c, "num_shared_expert", kMaxExperts, 0);
    e.shared_intermediate = e.shared_experts * c.t.size({"intermediate_size"}, kMaxWidth);
    set_ffn(c, e);
}
inline void build_gpt_oss(Config& c) {
    bool const bias = c.t.flag({"attention_bias"}, true);
    Gqa a = read_gqa(c, {.qkv_bias = bias, .o_bias = bias});
    a.sinks = true;
    set_windows(c, a, a, read_window(c), [](std::int32_t i) { return i % 2 == 0; });
    Moe e = read_moe(c);
    e.intermediate = read_width(c, {"intermediate_size"});
    e.bias = true;
    set_ffn(c, e);
    for (std::int32_t i = 0; i < c.layer_count(); ++i)
        c.m.extra_tensors.push_back(extra(TensorClass::router, Shard::replicated, i, "router.bias", e.experts, 1, {c.m.dtype}));
}
/// Llama 4: three of four layers attend within chunks, every fourth to everything.
inline void build_llama4(Config& c) {
    Gqa const a = read_gqa(c);
    auto const chunk = static_cast<std::int32_t>(c.t.integer({"attention_chunk_size"}, 1, 1 << 30, 8192));
    auto const rope = c.t.integers({"no_rope_layers"}, 0, 1, kMaxLayers);
    auto const types = c.t.texts({"layer_types"});
    if (!rope.empty() && !one_a_layer(c, "no_rope_layers", rope)) return;
    if (!types.empty() && !one_a_layer(c, "layer_types", types)) return;
    auto const step = c.t.integer({"interleave_moe_layer_step"}, 1, kMaxLayers, 1);
    Moe e = read_moe(c);
    e.intermediate = read_width(c, {"intermediate_size"});
    e.shared_experts = 1;
    e.shared_intermediate = e.intermediate;
    std::int32_t const dense = read_width(c, {"intermediate_size_mlp"}, e.intermediate);
    for (std::size_t i = 0; i < c.m.layers.size() && !c.failed(); ++i) {
        bool global = (i + 1) % 4 == 0;
        if (!rope.empty()) global = rope[i] == 0;
        if (!types.empty()) global = types[i] == "full_attention";
        if (global)
            c.m.layers[i].mixers.push_back(a);
        else
            c.m.layers[i].mixers.push_back(ChunkedLocal{a, chunk});
        if ((static_cast<std::int64_t>(i) + 1) % step == 0)
            c.m.layers[i].ffn = e;
        else
            c.m.layers[i].ffn = Dense{dense};
    }
}
inline void build_bailing_v2(Config& c) {
    bool const bias = c.t.flag({"use_qkv_bias", "use_bias"}, false);
    attention_everywhere(c, read_gqa(c, {.qkv_bias = bias, .qk_norm = c.t.flag({"use_qk_norm"}, true)}));
    Moe e = read_moe(c);
    e.router_bias = true;
    set_moe(c, e, Dense{read_width(c, {"intermediate_size"})}, read_moe_layers(c));
}
/// Step 3.5 / 3.7: windowed layers have more query heads; a gate a head; a shared expert.
inline void build_step3p7(Config& c) {
    Gqa full = read_gqa(c, {.qk_norm = true});
    full.head_gate = true;
    Gqa local = full;
    if (Json const* other = c.t.find({"attention_other_setting"})) {
        FieldReader const o{*other, c.t.file(), "attention_other_setting", c.error};
        local.q_heads = o.size({"num_attention_heads"}, kMaxHeads, full.q_heads);
        local.kv_heads = o.size({"num_attention_groups"}, kMaxHeads, full.kv_heads);
    }
    set_windows(c, full, local, read_window(c), [](std::int32_t i) { return i % 4 != 0; });
    Moe e = read_moe(c);
    e.shared_intermediate = c.t.size({"share_expert_dim", "share_expert_dims"}, kMaxWidth, e.shared_intermediate, 0);
    e.router_bias = c.t.flag({"use_moe_router_bias"}, true);
    set_moe(c, e, Dense{read_width(c, {"intermediate_size"})}, read_moe_layers(c));
    Layer mtp;
    mtp.mixers.push_back(SlidingWindow{local, std::max(1, read_window(c))});
    mtp.ffn = Dense{read_width(c, {"intermediate_size"})};
    add_mtp(c, read_mtp_modules(c), {mtp});
}
/// MiMo V2: windowed layers have other heads; q, k, v are stored in fused shards, o_proj in bf16.
inline void build_mimo_v2(Config& c) {
    Gqa full = read_gqa(c);
    full.stored_shards = full.kv_heads; // 4 in Flash, 8 in Pro, in windowed layers too
    full.o_plain = true;
    Gqa local = full;
    local.q_heads = c.t.size({"swa_num_attention_heads"}, kMaxHeads, full.q_heads);
    local.kv_heads = c.t.size({"swa_num_key_value_heads"}, kMaxHeads, full.kv_heads);
    local.head_dim = c.t.size({"swa_head_dim"}, kMaxHeadDim, full.head_dim);
    local.v_head_dim = c.t.size({"swa_v_head_dim"}, kMaxHeadDim, full.v_head_dim);
    full.sinks = c.t.flag({"add_full_attention_sink_bias"}, false);
    local.sinks = c.t.flag({"add_swa_attention_sink_bias"}, false);
    auto const pattern = c.t.integers({"hybrid_layer_pattern"}, 0, 1, kMaxLayers);
    if (!one_a_layer(c, "hybrid_layer_pattern", pattern)) return;
    std::int32_t const window = read_window(c);
    set_windows(c, full, local, window, [&](std::int32_t i) { return pattern[static_cast<std::size_t>(i)] == 1; });
    Moe e = read_moe(c);
    e.router_bias = c.t.text({"topk_method"}, "") == "noaux_tc";
    Dense const dense{read_width(c, {"intermediate_size"})};
    set_moe(c, e, dense, read_moe_layers(c));
    Layer mtp;
    mtp.mixers.push_back(SlidingWindow{local, std::max(1, window)});
    mtp.ffn = dense;
    add_mtp(c, c.t.integer({"num_nextn_predict_layers"}, 0, 64, 3), {mtp});
}
/// MiniMax M3: blocks of keys are picked by a small indexer in most layers.
inline void build_minimax_m3(Config& c) {
    Gqa const a = read_gqa(c, {.qk_norm = c.t.flag({"use_qk_norm"}, true)});
    std::vector<std::int64_t> sparse(c.m.layers.size(), 0);
    Indexer x;
    if (Json const* block = c.t.find({"sparse_attention_config"})) {
        FieldReader const s{*block, c.t.file(), "sparse_attention_config", c.error};
        if (s.flag({"use_sparse_attention"}, true)) {
            sparse = s.integers({"sparse_attention_freq"}, 0, 1, kMaxLayers);
            if (!one_a_layer(c, "sparse_attention_config.sparse_attention_freq", sparse)) return;
            x.heads = s.size({"sparse_num_index_heads"}, kMaxHeads);
            x.head_dim = s.size({"sparse_index_dim"}, kMaxHeadDim);
            x.top_k = s.size({"sparse_topk_blocks"}, 1 << 24) * s.size({"sparse_block_size"}, 1 << 20, 1);
        }
    }
    for (std::size_t i = 0; i < c.m.layers.size(); ++i) {
        if (sparse[i] != 0)
            c.m.layers[i].mixers.push_back(SparseIndexed{a, x});
        else
            c.m.layers[i].mixers.push_back(a);
    }
    Moe e = read_moe(c);
    e.shared_intermediate = e.shared_experts * c.t.size({"shared_intermediate_size"}, kMaxWidth, e.intermediate);
    e.router_bias = c.t.flag({"use_routing_bias"}, true);
    set_moe(c, e, Dense{read_width(c, {"dense_intermediate_size", "intermediate_size"})}, read_moe_layers(c));
}

// ---- latent attention -----------------------------------------------------------------------------

inline void build_deepseek(Config& c, bool v2) {
    Mla const a = read_mla(c);
    Moe e = read_moe(c);
    e.router_bias = !v2 && c.t.text({"topk_method"}, "noaux_tc") == "noaux_tc";
    std::int32_t const dense = read_width(c, {"intermediate_size"});
    auto const where = read_moe_layers(c);
    set_moe(c, e, Dense{dense}, where);
    std::optional<Indexer> x;
    if (c.t.has("index_topk")) {
        x.emplace();
        x->heads = c.t.size({"index_n_heads"}, kMaxHeads);
        x->head_dim = c.t.size({"index_head_dim"}, kMaxHeadDim);
        x->top_k = c.t.size({"index_topk"}, 1 << 24);
    }
    auto const kinds = c.t.texts({"indexer_types"});
    if (!kinds.empty() && !one_a_layer(c, "indexer_types", kinds)) return;
    for (std::size_t i = 0; i < c.m.layers.size(); ++i) {
        if (!x) {
            c.m.layers[i].mixers.push_back(a);
            continue;
        }
        Indexer mine = *x;
        if (!kinds.empty()) {
            if (kinds[i] != "full" && kinds[i] != "shared") return refuse(c, "indexer_types", "the kind '" + kinds[i] + "'");
            mine.owns_keys = kinds[i] == "full";
        }
        c.m.layers[i].mixers.push_back(SparseIndexed{a, mine});
    }
    Layer mtp;
    if (x)
        mtp.mixers.push_back(SparseIndexed{a, *x});
    else
        mtp.mixers.push_back(a);
    mtp.ffn = e;
    add_mtp(c, read_mtp_modules(c), {mtp});
}
inline void build_deepseek_v2(Config& c) { build_deepseek(c, true); }
inline void build_deepseek_v3(Config& c) { build_deepseek(c, false); }

/// LongCat: a published layer holds two attention blocks and two dense FFNs, and a mixture beside them.
inline void build_longcat(Config& c) {
    Mla const a = read_mla(c);
    Moe e = read_moe(c);
    e.zero_experts = c.t.size({"zero_expert_num"}, kMaxExperts, 0, 0);
    e.router_bias = true;
    e.dense_intermediate = read_width(c, {"ffn_hidden_size"});
    std::size_t const n = c.m.layers.size();
    c.m.layers.assign(2 * n, Layer{});
    for (std::size_t i = 0; i < c.m.layers.size(); ++i) {
        c.m.layers[i].mixers.push_back(a);
        if (i % 2 == 0)
            c.m.layers[i].ffn = e;
        else
            c.m.layers[i].ffn = Dense{e.dense_intermediate};
    }
}

// ---- DeepSeek V4 ----------------------------------------------------------------------------------

/// Hyper-connections of one part of a layer: a mixing matrix, its base and scale, in fp32.
inline void add_hyper_connections(Config& c, TensorClass cls, std::int32_t layer, std::int64_t mult, std::int64_t parts) {
    WeightFormat const f{Format::fp32};
    std::int64_t const mix = (2 + mult) * mult;
    c.m.extra_tensors.push_back(extra(cls, Shard::replicated, layer, "hc_fn", mix, mult * c.m.hidden, f, parts));
    c.m.extra_tensors.push_back(extra(cls, Shard::replicated, layer, "hc_base_scale", mix + 3, 1, f, parts));
}
/// The mixing of the copies of the hidden state before a head.
inline void add_hyper_head(Config& c, TensorClass cls, std::int64_t mult) {
    WeightFormat const f{Format::fp32};
    c.m.extra_tensors.push_back(extra(cls, Shard::replicated, -1, "hc_head_fn", mult, mult * c.m.hidden, f));
    c.m.extra_tensors.push_back(extra(cls, Shard::replicated, -1, "hc_head_base_scale", mult + 1, 1, f));
}

/// The format of quantised matrices, and of experts, that a draft stage has: the trunk's own rules. The
/// scales of the V4 line are one byte (ue8m0).
inline WeightFormat v4_block_format(Config& c) {
    WeightFormat f{Format::fp8_block};
    f.scale_bytes = 1;
    if (Json const* q = c.root.find({"quantization_config"})) {
        FieldReader const r{*q, c.root.file(), "quantization_config", c.error};
        auto const block = r.integers({"weight_block_size"}, 1, 1 << 16, 2);
        if (block.size() == 2) {
            f.block_rows = static_cast<std::int32_t>(block[0]);
            f.block_cols = static_cast<std::int32_t>(block[1]);
        }
    } else {
        f.format = c.m.dtype;
    }
    return f;
}

/// The tensors of one draft stage (DSpark) or prediction layer of the V4 line, as class `cls`.
inline void add_v4_draft_stage(Config& c, TensorClass cls, Compressed const& attention, Moe const& e, std::int64_t mult, bool second_bias) {
    Model scratch;
    scratch.hidden = c.m.hidden;
    scratch.dtype = c.m.dtype;
    scratch.layers.emplace_back();
    scratch.layers[0].mixers.push_back(attention);
    scratch.layers[0].ffn = e;
    WeightFormat const block = v4_block_format(c);
    for (TensorClass const k : {TensorClass::attention, TensorClass::attention_shared, TensorClass::shared_expert}) scratch.quant[k] = block;
    scratch.quant[TensorClass::routed_expert] = {Format::mxfp4};
    std::vector<WeightTensor> tensors;
    TensorSink sink{scratch, tensors};
    sink.enter(0, false);
    layer_tensors(sink, c.m.hidden, scratch.layers[0]);
    for (WeightTensor& t : tensors) {
        if (t.shard == Shard::expert) t.heads = e.experts;
        t.cls = cls;
        t.layer = -1;
        c.m.extra_tensors.push_back(t);
    }
    if (second_bias) c.m.extra_tensors.push_back(extra(cls, Shard::replicated, -1, "router.bias_vl", e.experts, 1, {Format::fp32}));
    add_hyper_connections(c, cls, -1, mult, 2);
}

/// What DSpark stages own besides their blocks: the fold of the target layers' states, the Markov head and
/// the confidence head.
inline void add_dspark_heads(Config& c, bool hyper_head, std::int64_t mult) {
    WeightFormat const plain{c.m.dtype};
    auto const rank = c.t.integer({"dspark_markov_rank"}, 1, kMaxWidth);
    auto const targets = static_cast<std::int64_t>(c.t.integers({"dspark_target_layer_ids"}, 0, kMaxLayers).size());
    constexpr TensorClass cls = TensorClass::draft;
    std::int64_t const h = c.m.hidden;
    c.m.extra_tensors.push_back(extra(cls, Shard::replicated, -1, "dspark.main_proj", h, h * targets, v4_block_format(c)));
    c.m.extra_tensors.push_back(extra(cls, Shard::replicated, -1, "dspark.norms", h, 1, plain, 2));
    c.m.extra_tensors.push_back(extra(cls, Shard::vocabulary, -1, "dspark.markov_head", c.m.vocab, rank, plain, 2));
    c.m.extra_tensors.push_back(extra(cls, Shard::replicated, -1, "dspark.confidence_head", 1, h + rank, plain));
    if (hyper_head) add_hyper_head(c, cls, mult);
}

inline Compressed read_compressed(Config& c) {
    Compressed a;
    a.heads = c.t.size({"num_attention_heads"}, kMaxHeads);
    a.head_dim = c.t.size({"head_dim"}, kMaxHeadDim);
    a.qk_rope = c.t.size({"qk_rope_head_dim"}, kMaxHeadDim);
    a.q_lora_rank = c.t.size({"q_lora_rank"}, kMaxWidth);
    a.o_lora_rank = c.t.size({"o_lora_rank"}, kMaxWidth);
    a.o_groups = c.t.size({"o_groups"}, kMaxHeads);
    a.window = read_window(c);
    return a;
}
inline Indexer read_v4_indexer(Config& c) {
    Indexer x;
    x.heads = c.t.size({"index_n_heads"}, kMaxHeads);
    x.head_dim = c.t.size({"index_head_dim"}, kMaxHeadDim);
    x.top_k = c.t.size({"index_topk"}, 1 << 24);
    return x;
}
/// The ratios of the trunk's layers; a longer list also names the draft stages.
inline std::vector<std::int64_t> read_ratios(Config& c) {
    auto ratios = c.t.integers({"compress_ratios"}, 0, 1 << 20, kMaxLayers);
    if (ratios.size() < c.m.layers.size())
        c.t.mistake(ErrorCode::bad_value, "compress_ratios", std::to_string(ratios.size()) + " entries",
                    "expected at least one for each of the " + std::to_string(c.m.layers.size()) + " layers");
    return ratios;
}

inline void build_deepseek_v4(Config& c) {
    Compressed const base = read_compressed(c);
    Indexer const x = read_v4_indexer(c);
    auto const ratios = read_ratios(c);
    Moe e = read_moe(c);
    auto const hashed = c.t.integer({"num_hash_layers"}, 0, kMaxLayers, 0);
    auto const mult = c.t.integer({"hc_mult"}, 1, 64, 1);
    if (c.failed()) return;
    for (std::int32_t i = 0; i < c.layer_count(); ++i) {
        Layer& l = c.m.layers[static_cast<std::size_t>(i)];
        Compressed a = base;
        a.ratio = static_cast<std::int32_t>(ratios[static_cast<std::size_t>(i)]);
        if (a.ratio != 0 && a.ratio != 4 && a.ratio != 128) return refuse(c, "compress_ratios", "the ratio " + std::to_string(a.ratio));
        if (a.ratio == 4) {
            a.indexer = x;
            a.index_source = true;
        }
        l.mixers.push_back(a);
        Moe mine = e;
        mine.router_bias = i >= hashed;
        l.ffn = mine;
        // Hash routing: experts by token id, 64-bit integers (two 32-bit words each).
        if (i < hashed)
            c.m.extra_tensors.push_back(
                extra(TensorClass::router, Shard::replicated, i, "tid2eid", c.m.vocab, 2 * std::int64_t{e.top_k}, {Format::fp32}));
        add_hyper_connections(c, TensorClass::other, i, mult, 2);
    }
    add_hyper_head(c, TensorClass::other, mult);
    auto const stages = c.t.integer({"num_nextn_predict_layers"}, 0, 64, 0);
    bool const dspark = c.t.has("dspark_markov_rank");
    e.router_bias = true;
    for (std::int64_t k = 0; k < stages; ++k) {
        Compressed a = base; // stages see a window alone
        add_v4_draft_stage(c, dspark ? TensorClass::draft : TensorClass::mtp, a, e, mult, false);
    }
    if (dspark) {
        add_dspark_heads(c, true, mult);
    } else if (stages > 0) {
        c.m.extra_tensors.push_back(extra(TensorClass::mtp, Shard::replicated, -1, "mtp.e_h_proj", c.m.hidden, c.m.hidden,
                                          v4_block_format(c), 2 * stages));
        c.m.extra_tensors.push_back(extra(TensorClass::mtp, Shard::replicated, -1, "mtp.norms", c.m.hidden, 1, {c.m.dtype}, 3 * stages));
        add_hyper_head(c, TensorClass::mtp, mult);
    }
}

/// V4.1: a few layers publish compressed KV, more layers choose entries, tables of n-grams are looked up.
inline void build_deepseek_v41(Config& c) {
    Compressed const base = read_compressed(c);
    Indexer const x = read_v4_indexer(c);
    auto const ratios = read_ratios(c);
    auto const kv_sources = c.t.integers({"kv_source_layer_ids"}, 0, kMaxLayers);
    auto const index_sources = c.t.integers({"index_source_layer_ids"}, 0, kMaxLayers);
    Moe e = read_moe(c);
    e.router_bias = true;
    auto const mult = c.t.integer({"hc_mult"}, 1, 64, 1);
    auto const engram_layers = c.t.integers({"engram_layer_ids"}, 0, kMaxLayers);
    auto const engram_rows = c.t.integers({"engram_num_embeddings"}, 1, std::int64_t{1} << 40);
    bool const vision = c.root.has("vision_config");
    if (!c.failed() && engram_layers.size() != engram_rows.size())
        c.t.mistake(ErrorCode::bad_value, "engram_num_embeddings", std::to_string(engram_rows.size()) + " entries",
                    "expected one for each of the " + std::to_string(engram_layers.size()) + " engram layers");
    if (c.failed()) return;
    auto const in = [](std::vector<std::int64_t> const& list, std::int64_t v) { return std::find(list.begin(), list.end(), v) != list.end(); };
    WeightFormat const plain{c.m.dtype}, fp32{Format::fp32}, block = v4_block_format(c);
    for (std::int32_t i = 0; i < c.layer_count(); ++i) {
        Layer& l = c.m.layers[static_cast<std::size_t>(i)];
        Compressed a = base;
        a.latent_keys = true;
        a.ratio = static_cast<std::int32_t>(ratios[static_cast<std::size_t>(i)]);
        a.kv_source = in(kv_sources, i);
        a.index_source = in(index_sources, i);
        if (a.ratio > 0) a.indexer = x;
        if (a.indexer) a.indexer->owns_keys = a.kv_source;
        l.mixers.push_back(a);
        l.ffn = e;
        if (vision) c.m.extra_tensors.push_back(extra(TensorClass::router, Shard::replicated, i, "router.bias_vl", e.experts, 1, fp32));
        add_hyper_connections(c, TensorClass::other, i, mult, 2);
    }
    for (std::size_t k = 0; k < engram_layers.size(); ++k) {
        auto const layer = static_cast<std::int32_t>(engram_layers[k]);
        if (layer >= c.layer_count()) {
            c.t.mistake(ErrorCode::bad_value, "engram_layer_ids", "layer " + std::to_string(layer), "expected layers below num_hidden_layers");
            return;
        }
        auto const dim = c.t.integer({"engram_head_dim"}, 1, kMaxHeadDim);
        auto const columns = (c.t.integer({"engram_max_ngram_size"}, 2, 64) - 1) * c.t.integer({"engram_n_heads"}, 1, kMaxHeads);
        WeightFormat table = block;
        table.block_rows = 1; // a scale for every `block` columns of each row
        c.m.extra_tensors.push_back(extra(TensorClass::lookup, Shard::lookup_table, layer, "engram.embed", engram_rows[k], dim, table));
        c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, layer, "engram.qk_weight", mult, c.m.hidden, plain, 2));
        c.m.extra_tensors.push_back(
            extra(TensorClass::other, Shard::replicated, layer, "engram.wkv", c.m.hidden * (mult + 1), columns * dim, block));
    }
    auto const stages = c.t.integer({"num_nextn_predict_layers"}, 0, 64, 0);
    if (c.t.has("dspark_markov_rank")) {
        Moe draft = e;
        draft.experts = c.t.size({"dspark_n_routed_experts"}, kMaxExperts, e.experts);
        draft.top_k = c.t.size({"dspark_num_experts_per_tok"}, kMaxExperts, e.top_k);
        Compressed a = base;
        a.latent_keys = true;
        a.kv_source = false;
        for (std::int64_t k = 0; k < stages; ++k) add_v4_draft_stage(c, TensorClass::draft, a, draft, mult, vision);
        add_dspark_heads(c, false, mult);
    }
}

// ---- hybrids with recurrent layers ------------------------------------------------------------------

/// Kimi Linear and Kimi K3: lists of layers, counted from 1; GLM-5.3-Flash counts from 0.
inline void build_kimi_linear(Config& c) {
    Mla a = read_mla(c);
    a.output_gate = c.t.flag({"mla_use_output_gate"}, false);
    Kda k;
    std::vector<std::int64_t> kda, full;
    if (Json const* block = c.t.find({"linear_attn_config"})) {
        FieldReader const l{*block, c.t.file(), "linear_attn_config", c.error};
        k.heads = l.size({"num_heads"}, kMaxHeads);
        k.head_dim = l.size({"head_dim"}, kMaxHeadDim);
        k.conv_kernel = l.size({"short_conv_kernel_size"}, 1024, 4);
        k.full_rank_gate = l.flag({"use_full_rank_gate"}, false);
        kda = l.integers({"kda_layers"}, 0, kMaxLayers);
        full = l.integers({"full_attn_layers"}, 0, kMaxLayers);
    } else {
        c.t.mistake(ErrorCode::missing, "linear_attn_config", "the field is missing", "expected the lists of KDA and full layers");
    }
    if (c.failed()) return;
    if (k.full_rank_gate) k.stored_a_log = k.head_dim; // Kimi K3 pads A_log to the head dimension
    bool const zero_based = std::find(kda.begin(), kda.end(), 0) != kda.end() || std::find(full.begin(), full.end(), 0) != full.end();
    if (kda.size() + full.size() != c.m.layers.size()) {
        c.t.mistake(ErrorCode::bad_value, "linear_attn_config", std::to_string(kda.size() + full.size()) + " layers are listed",
                    "expected every one of the " + std::to_string(c.m.layers.size()) + " layers once");
        return;
    }
    std::optional<Indexer> x;
    if (c.t.has("index_topk")) {
        x.emplace();
        x->heads = c.t.size({"index_n_heads"}, kMaxHeads);
        x->head_dim = c.t.size({"index_head_dim"}, kMaxHeadDim);
        x->top_k = c.t.size({"index_topk"}, 1 << 24);
        x->key_pool = c.t.size({"index_kpool"}, 1 << 16, 1);
    }
    for (auto const* list : {&kda, &full})
        for (std::int64_t const raw : *list) {
            auto const i = static_cast<std::size_t>(raw - (zero_based ? 0 : 1));
            if (i >= c.m.layers.size() || !c.m.layers[i].mixers.empty()) {
                c.t.mistake(ErrorCode::bad_value, "linear_attn_config", "layer " + std::to_string(raw), "expected every layer once");
                return;
            }
            if (list == &kda)
                c.m.layers[i].mixers.push_back(k);
            else if (x)
                c.m.layers[i].mixers.push_back(SparseIndexed{a, *x});
            else
                c.m.layers[i].mixers.push_back(a);
        }
    Moe e = read_moe(c);
    e.latent = c.t.size({"routed_expert_hidden_size"}, kMaxWidth, 0, 0);
    e.latent_norm = c.t.flag({"latent_moe_use_norm"}, false);
    e.router_bias = true;
    Dense const dense{read_width(c, {"intermediate_size"})};
    set_moe(c, e, dense, read_moe_layers(c));
    WeightFormat const plain{c.m.dtype};
    // Attention residuals: a norm and a score vector before each part of a layer, and once at the end.
    if (c.t.has("attn_res_block_size")) {
        for (std::int32_t i = 0; i < c.layer_count(); ++i)
            c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, i, "attn_res", c.m.hidden, 1, plain, 4));
        c.m.extra_tensors.push_back(extra(TensorClass::norm, Shard::replicated, -1, "output_attn_res", c.m.hidden, 1, plain, 2));
    }
    if (c.t.has("hc_mult")) {
        auto const mult = c.t.integer({"hc_mult"}, 1, 64);
        for (std::int32_t i = 0; i < c.layer_count(); ++i) add_hyper_connections(c, TensorClass::other, i, mult, 2);
        // The copies are averaged before the head (Glm5NextTextHyperHead): no weights there.
    }
    Layer mtp;
    if (x)
        mtp.mixers.push_back(SparseIndexed{a, *x});
    else
        mtp.mixers.push_back(a);
    mtp.ffn = e;
    add_mtp(c, read_mtp_modules(c), {mtp});
}

/// Ling / Ring 2.5 (lightning) and Ling 3 (KDA): every layer_group_size-th layer and the last ones have latent
/// attention.
inline void build_bailing_hybrid(Config& c) {
    bool const v3 = c.m.architecture == "BailingMoeV3ForCausalLM" || c.t.has("kda_lower_bound");
    Mla a = read_mla(c);
    a.head_gate = v3 && c.t.text({"gated_attention_proj_granularity_type"}, "") == "head_wise";
    auto const group = c.t.integer({"layer_group_size"}, 1, kMaxLayers);
    std::int32_t const heads = c.t.size({"num_attention_heads"}, kMaxHeads);
    std::int32_t const dim = c.t.size({"head_dim"}, kMaxHeadDim);
    std::int32_t const n = c.layer_count();
    for (std::int32_t i = 0; i < n && !c.failed(); ++i) {
        bool const full = (i + 1) % group == 0 || i >= n / group * group;
        if (full) {
            c.m.layers[static_cast<std::size_t>(i)].mixers.push_back(a);
        } else if (v3) {
            Kda k;
            k.heads = heads;
            k.head_dim = dim;
            k.conv_kernel = c.t.size({"short_conv_kernel_size"}, 1024, 4);
            k.full_rank_gate = k.full_rank_decay = c.t.flag({"no_kda_lora"}, false);
            c.m.layers[static_cast<std::size_t>(i)].mixers.push_back(k);
        } else {
            Lightning k;
            k.heads = c.t.size({"num_kv_heads_for_linear_attn"}, kMaxHeads, heads);
            k.head_dim = dim;
            k.qk_norm = c.t.flag({"use_qk_norm"}, true);
            c.m.layers[static_cast<std::size_t>(i)].mixers.push_back(k);
        }
    }
    Moe e = read_moe(c);
    e.shared_intermediate = e.shared_experts * c.t.size({"moe_shared_expert_intermediate_size"}, kMaxWidth, e.intermediate);
    e.router_bias = true;
    set_moe(c, e, Dense{read_width(c, {"intermediate_size"})}, read_moe_layers(c));
    Layer mtp;
    mtp.mixers.push_back(a);
    mtp.ffn = e;
    add_mtp(c, read_mtp_modules(c), {mtp});
}

inline GatedDelta read_gated_delta(Config& c) {
    GatedDelta g;
    g.k_heads = c.t.size({"linear_num_key_heads"}, kMaxHeads);
    g.v_heads = c.t.size({"linear_num_value_heads"}, kMaxHeads);
    g.k_dim = c.t.size({"linear_key_head_dim"}, kMaxHeadDim);
    g.v_dim = c.t.size({"linear_value_head_dim"}, kMaxHeadDim);
    g.conv_kernel = c.t.size({"linear_conv_kernel_dim"}, 1024, 4);
    return g;
}

/// Qwen 3.8 Flash Next: gated residual streams in place of norms, and a table of hashed n-grams that one layer
/// looks up (Qwen4ExpTextGatedResidual, Qwen4ExpTextPLELayer).
inline void add_qwen4_parts(Config& c) {
    auto const count = c.t.integer({"hc_count"}, 2, 64, 4);
    auto const rank = c.t.integer({"hc_lowrank"}, 1, kMaxWidth, 320);
    std::int64_t const h = c.m.hidden, wide = count * h;
    WeightFormat const plain{c.m.dtype};
    auto const add = [&](TensorClass cls, std::int32_t layer, std::string_view name, std::int64_t rows, std::int64_t cols, std::int64_t n) {
        c.m.extra_tensors.push_back(extra(cls, Shard::replicated, layer, name, rows, cols, plain, n));
    };
    for (std::int32_t i = 0; i <= c.layer_count(); ++i) { // the last one: the mixer before the head
        bool const last = i == c.layer_count();
        std::int32_t const layer = last ? -1 : i;
        std::int64_t const parts = last ? 1 : 2;
        add(TensorClass::norm, layer, "hc_norm", wide, 1, parts);
        add(TensorClass::other, layer, "hc_input_mix_down", rank, wide, parts);
        add(TensorClass::other, layer, "hc_input_mix_up", wide, rank, parts);
        if (!last) add(TensorClass::other, layer, "hc_block_inject", count, wide, parts);
    }
    set_norms(c, 0);
    c.m.final_norms = 0;
    auto const heads = (c.t.integer({"ngram_size"}, 2, 64, 3) - 1) * c.t.integer({"heads_per_ngram"}, 1, kMaxHeads, 8);
    auto const dim = c.t.integer({"ple_embed_dim"}, 1, kMaxWidth, h);
    auto const base = c.t.integer({"ngram_vocab_size_base"}, 2, std::int64_t{1} << 34, 20000000);
    auto const multiple = c.t.integer({"make_ngram_vocab_size_divisible_by"}, 1, 1 << 20, 128);
    auto const kernel = c.t.integer({"ple_conv_kernel_size"}, 1, 1024, 4);
    std::int64_t prime = base - 1;
    for (std::int64_t const one_based : c.t.integers({"ple_layer_ids"}, 1, kMaxLayers)) {
        // Each head hashes into as many rows as the next prime says.
        std::int64_t rows = 0;
        for (std::int64_t k = 0; k < heads && k < 4096; ++k) {
            auto const is_prime = [](std::int64_t n) {
                if (n % 2 == 0) return n == 2;
                for (std::int64_t d = 3; d * d <= n; d += 2)
                    if (n % d == 0) return false;
                return n > 1;
            };
            do ++prime;
            while (!is_prime(prime));
            rows += prime;
        }
        auto const layer = static_cast<std::int32_t>(one_based - 1);
        if (layer >= c.layer_count()) return refuse(c, "ple_layer_ids", "layer " + std::to_string(one_based));
        c.m.extra_tensors.push_back(
            extra(TensorClass::lookup, Shard::lookup_table, layer, "ple.ngram_embedding", round_up(rows, multiple), dim / heads, plain));
        add(TensorClass::other, layer, "ple.key_proj", wide, dim, 1);
        add(TensorClass::other, layer, "ple.value_proj", h, dim, 1);
        add(TensorClass::norm, layer, "ple.norms", wide, 1, 3);
        add(TensorClass::other, layer, "ple.conv1d", wide, kernel, 1);
    }
}

/// Qwen3-Next and Qwen 3.5 to 3.8: gated delta layers, every fourth one full attention with a gate.
inline void build_qwen_hybrid(Config& c) {
    Gqa a = read_gqa(c, {.qkv_bias = c.t.flag({"attention_bias"}, false), .qk_norm = true});
    a.output_gate = c.t.flag({"attn_output_gate"}, true);
    GatedDelta const g = read_gated_delta(c);
    auto const interval = c.t.integer({"full_attention_interval"}, 1, kMaxLayers, 4);
    auto const types = read_layer_types(c);
    bool const sparse = c.t.has("indexer_n_heads");
    bool const streams = c.t.has("hc_count");
    Indexer x;
    if (sparse) {
        x.heads = c.t.size({"indexer_n_heads"}, kMaxHeads);
        x.head_dim = c.t.size({"indexer_head_dim"}, kMaxHeadDim);
        x.top_k = c.t.size({"indexer_budget"}, 1 << 24);
        x.key_pool = c.t.size({"indexer_compress_ratio"}, 1 << 16, 1);
    }
    for (std::size_t i = 0; i < c.m.layers.size() && !c.failed(); ++i) {
        bool full = (static_cast<std::int64_t>(i) + 1) % interval == 0;
        if (!types.empty()) {
            if (types[i] != "full_attention" && types[i] != "linear_attention") return refuse(c, "layer_types", "the kind '" + types[i] + "'");
            full = types[i] == "full_attention";
        }
        if (!full)
            c.m.layers[i].mixers.push_back(g);
        else if (sparse)
            c.m.layers[i].mixers.push_back(SparseIndexed{a, x});
        else
            c.m.layers[i].mixers.push_back(a);
    }
    Layer mtp;
    if (sparse)
        mtp.mixers.push_back(SparseIndexed{a, x});
    else
        mtp.mixers.push_back(a);
    if (c.t.has("num_experts") && c.t.integer({"num_experts"}, 0, kMaxExperts) > 0) {
        Moe e = read_moe(c);
        e.shared_intermediate = c.t.size({"shared_expert_intermediate_size"}, kMaxWidth, 0, 0);
        e.shared_experts = e.shared_intermediate > 0 ? 1 : 0;
        e.shared_gate = e.shared_intermediate > 0;
        set_moe(c, e, Dense{read_width(c, {"intermediate_size"}, e.intermediate)}, read_moe_layers(c));
        mtp.ffn = e;
    } else {
        Dense const d{read_width(c, {"intermediate_size"})};
        set_ffn(c, d);
        mtp.ffn = d;
    }
    if (streams && !c.failed()) add_qwen4_parts(c);
    add_mtp(c, c.t.integer({"mtp_num_hidden_layers", "num_nextn_predict_layers"}, 0, 64, c.m.architecture == "Qwen3NextForCausalLM" ? 1 : 0), {mtp});
}

/// Nemotron-H: each layer is one part: M Mamba 2, * attention, - dense, E experts.
inline void build_nemotron_h(Config& c) {
    std::string pattern = c.t.text({"hybrid_override_pattern"}, "");
    std::string mtp_pattern = c.t.text({"mtp_hybrid_override_pattern"}, "");
    auto const letters = [&](std::string_view field, std::string& to) {
        for (std::string const& kind : c.t.texts({field})) {
            if (kind == "mamba") to += 'M';
            else if (kind == "attention") to += '*';
            else if (kind == "moe") to += 'E';
            else if (kind == "mlp") to += '-';
            else return refuse(c, field, "the kind '" + kind + "'");
        }
    };
    if (pattern.empty()) letters("layers_block_type", pattern);
    if (mtp_pattern.empty()) letters("mtp_layers_block_type", mtp_pattern);
    if (!one_a_layer(c, "hybrid_override_pattern", std::vector<char>{pattern.begin(), pattern.end()})) return;
    Gqa const a = read_gqa(c, {.qkv_bias = c.t.flag({"attention_bias"}, false)});
    Mamba2 k;
    k.heads = c.t.size({"mamba_num_heads"}, kMaxHeads);
    k.head_dim = c.t.size({"mamba_head_dim"}, kMaxHeadDim);
    k.groups = c.t.size({"n_groups"}, kMaxHeads, 8);
    k.d_state = c.t.size({"ssm_state_size"}, kMaxWidth, 128);
    k.conv_kernel = c.t.size({"conv_kernel"}, 1024, 4);
    k.conv_bias = c.t.flag({"use_conv_bias"}, true);
    k.proj_bias = c.t.flag({"mamba_proj_bias"}, false);
    Dense const d{read_width(c, {"intermediate_size"}), false, c.t.flag({"mlp_bias"}, false)};
    Moe e;
    if (pattern.find('E') != std::string::npos) {
        e = read_moe(c);
        e.gated = false;
        e.router_bias = true;
        e.latent = c.t.size({"moe_latent_size"}, kMaxWidth, 0, 0);
        e.shared_intermediate = e.shared_experts * c.t.size({"moe_shared_expert_intermediate_size"}, kMaxWidth, e.intermediate);
    }
    auto const part = [&](char kind) {
        Layer l;
        l.norms = 1;
        if (kind == 'M') l.mixers.push_back(k);
        else if (kind == '*') l.mixers.push_back(a);
        else if (kind == '-') l.ffn = d;
        else if (kind == 'E') l.ffn = e;
        else refuse(c, "hybrid_override_pattern", std::string{"the letter '"} + kind + "'");
        return l;
    };
    for (std::size_t i = 0; i < pattern.size() && !c.failed(); ++i) c.m.layers[i] = part(pattern[i]);
    std::vector<Layer> mtp;
    for (char const kind : mtp_pattern) mtp.push_back(part(kind));
    if (!mtp.empty()) add_mtp(c, read_mtp_modules(c), mtp);
}

inline void build_jamba(Config& c) {
    Gqa const a = read_gqa(c);
    Mamba1 k;
    k.inner = c.t.size({"mamba_expand"}, 64, 2) * c.m.hidden;
    k.d_state = c.t.size({"mamba_d_state"}, kMaxWidth, 16);
    k.conv_kernel = c.t.size({"mamba_d_conv"}, 1024, 4);
    k.dt_rank = c.t.size({"mamba_dt_rank"}, kMaxWidth, (c.m.hidden + 15) / 16);
    auto const period = c.t.integer({"attn_layer_period"}, 1, kMaxLayers, 8), offset = c.t.integer({"attn_layer_offset"}, 0, kMaxLayers, 4);
    auto const e_period = c.t.integer({"expert_layer_period"}, 1, kMaxLayers, 2);
    auto const e_offset = c.t.integer({"expert_layer_offset"}, 0, kMaxLayers, 1);
    Moe const e = read_moe(c);
    for (std::int32_t i = 0; i < c.layer_count() && !c.failed(); ++i) {
        Layer& l = c.m.layers[static_cast<std::size_t>(i)];
        if (i % period == offset) {
            l.mixers.push_back(a);
        } else {
            l.mixers.push_back(k);
            c.m.extra_tensors.push_back(
                extra(TensorClass::norm, Shard::replicated, i, "dt_b_c_layernorm", k.dt_rank + 2 * k.d_state, 1, {c.m.dtype}));
        }
        if (i % e_period == e_offset && e.experts > 1)
            l.ffn = e;
        else
            l.ffn = Dense{e.intermediate};
    }
}

inline Mamba2 read_mamba_n(Config& c) {
    Mamba2 k;
    k.heads = c.t.size({"mamba_n_heads"}, kMaxHeads);
    k.head_dim = c.t.size({"mamba_d_head"}, kMaxHeadDim);
    k.groups = c.t.size({"mamba_n_groups"}, kMaxHeads, 1);
    k.d_state = c.t.size({"mamba_d_state"}, kMaxWidth, 128);
    k.conv_kernel = c.t.size({"mamba_d_conv"}, 1024, 4);
    k.conv_bias = c.t.flag({"mamba_conv_bias"}, true);
    k.proj_bias = c.t.flag({"mamba_proj_bias"}, false);
    return k;
}
/// Falcon-H1: attention and Mamba 2 side by side in every layer.
inline void build_falcon_h1(Config& c) {
    Gqa const a = read_gqa(c, {.qkv_bias = c.t.flag({"attention_bias"}, false)});
    Mamba2 k = read_mamba_n(c);
    k.norm = c.t.flag({"mamba_rms_norm"}, false);
    for (Layer& l : c.m.layers) {
        l.mixers.push_back(k);
        l.mixers.push_back(a);
        l.ffn = Dense{read_width(c, {"intermediate_size"})};
    }
}
inline void build_granite_hybrid(Config& c) {
    Gqa const a = read_gqa(c, {.qkv_bias = c.t.flag({"attention_bias"}, false)});
    Mamba2 const k = read_mamba_n(c);
    auto const types = c.t.texts({"layer_types", "layers_block_type"});
    if (!one_a_layer(c, "layer_types", types)) return;
    std::int32_t const shared = c.t.size({"shared_intermediate_size"}, kMaxWidth, 0, 0);
    std::int32_t const experts = c.t.size({"num_local_experts"}, kMaxExperts, 0, 0);
    Moe e;
    if (experts > 0) {
        e = read_moe(c);
        e.shared_experts = shared > 0 ? 1 : 0;
        e.shared_intermediate = shared;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (types[i] == "mamba")
            c.m.layers[i].mixers.push_back(k);
        else if (types[i] == "attention")
            c.m.layers[i].mixers.push_back(a);
        else
            return refuse(c, "layer_types", "the kind '" + types[i] + "'");
        if (experts > 0)
            c.m.layers[i].ffn = e;
        else
            c.m.layers[i].ffn = Dense{shared > 0 ? shared : read_width(c, {"intermediate_size"})};
    }
}
/// Zamba 2: Mamba 2 layers; some also run a shared block of attention and FFN over the hidden state and the
/// embedding side by side, with a small adapter and a projection of their own.
inline void build_zamba2(Config& c) {
    Mamba2 k;
    k.head_dim = c.t.size({"mamba_headdim"}, kMaxHeadDim, 64);
    k.heads = c.t.size({"n_mamba_heads"}, kMaxHeads);
    k.groups = c.t.size({"mamba_ngroups"}, kMaxHeads, 1);
    k.d_state = c.t.size({"mamba_d_state"}, kMaxWidth, 64);
    k.conv_kernel = c.t.size({"mamba_d_conv"}, 1024, 4);
    Gqa a = read_gqa(c);
    a.input = c.t.size({"attention_hidden_size"}, kMaxWidth, 2 * c.m.hidden);
    std::int32_t const width = read_width(c, {"intermediate_size"});
    std::int32_t const rank = c.t.size({"adapter_rank"}, kMaxWidth, 128);
    auto const blocks = c.t.integer({"num_mem_blocks"}, 1, 64, 1);
    auto const types = c.t.texts({"layers_block_type"});
    if (!one_a_layer(c, "layers_block_type", types)) return;
    WeightFormat const plain{c.m.dtype};
    std::int64_t const h = c.m.hidden;
    std::vector<Layer> layers;
    std::int32_t used = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (types[i] == "hybrid") {
            // The shared block stands in front of the Mamba layer; it is a layer of its own for the cache.
            Layer shared;
            shared.shared_block = static_cast<std::int32_t>(used % blocks);
            shared.mixers.push_back(a);
            shared.ffn = Dense{width};
            shared.norms = 3; // one of twice the hidden width, one before the FFN
            auto const at = static_cast<std::int32_t>(layers.size());
            layers.push_back(shared);
            if (c.t.flag({"use_shared_mlp_adapter"}, true)) {
                c.m.extra_tensors.push_back(extra(TensorClass::other, Shard::replicated, at, "mlp_adapter.down", rank, h, plain));
                c.m.extra_tensors.push_back(extra(TensorClass::other, Shard::tensor, at, "mlp_adapter.up", 2 * std::int64_t{width}, rank, plain));
            }
            c.m.extra_tensors.push_back(extra(TensorClass::other, Shard::replicated, at, "linear", h, h, plain));
            ++used;
        } else if (types[i] != "mamba") {
            return refuse(c, "layers_block_type", "the kind '" + types[i] + "'");
        }
        Layer l;
        l.norms = 1;
        l.mixers.push_back(k);
        layers.push_back(l);
    }
    c.m.layers = std::move(layers);
}

/// MiniMax 01 and M1: lightning attention, every eighth layer full attention.
inline void build_minimax_01(Config& c) {
    Gqa const a = read_gqa(c);
    auto kinds = c.t.integers({"attn_type_list"}, 0, 1, kMaxLayers);
    if (kinds.empty())
        for (std::string const& t : read_layer_types(c)) kinds.push_back(t == "full_attention" ? 1 : 0);
    if (!one_a_layer(c, "attn_type_list", kinds)) return;
    Moe const e = read_moe(c);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i] == 1)
            c.m.layers[i].mixers.push_back(a);
        else
            c.m.layers[i].mixers.push_back(Lightning{a.q_heads, a.head_dim});
        c.m.layers[i].ffn = e;
    }
}

/// LFM2: gated short convolutions and a few attention layers.
inline void build_lfm2(Config& c) {
    Gqa const a = read_gqa(c, {.qk_norm = true});
    auto const types = c.t.texts({"layer_types"});
    if (!one_a_layer(c, "layer_types", types)) return;
    std::int32_t width = read_width(c, {"intermediate_size", "block_ff_dim"});
    if (c.t.flag({"block_auto_adjust_ff_dim"}, false)) {
        auto const multiple = c.t.integer({"block_multiple_of"}, 1, 1 << 16, 256);
        width = static_cast<std::int32_t>(round_up(2 * std::int64_t{width} / 3, multiple));
    }
    bool const moe = c.t.has("num_experts");
    Moe e;
    if (moe) {
        e = read_moe(c);
        e.router_bias = c.t.flag({"use_expert_bias"}, true);
    }
    auto const dense_first = c.t.integer({"num_dense_layers"}, 0, kMaxLayers, 0);
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (types[i] == "conv")
            c.m.layers[i].mixers.push_back(ShortConv{c.m.hidden, c.t.size({"conv_L_cache"}, 1024, 3)});
        else if (types[i] == "full_attention")
            c.m.layers[i].mixers.push_back(a);
        else
            return refuse(c, "layer_types", "the kind '" + types[i] + "'");
        if (moe && static_cast<std::int64_t>(i) >= dense_first)
            c.m.layers[i].ffn = e;
        else
            c.m.layers[i].ffn = Dense{width};
    }
}

// ---- the table ------------------------------------------------------------------------------------

struct Family {
    std::string_view architecture;
    std::string_view model_type; ///< of the text part; empty: none
    void (*build)(Config&);
};

/// Known architectures. The first entry with a model_type is taken when a file names no architecture.
inline constexpr Family kFamilies[] = {
    {"LlamaForCausalLM", "llama", build_llama},
    {"MistralForCausalLM", "mistral", build_mistral},
    {"Ministral3ForCausalLM", "ministral3", build_mistral},
    {"Qwen2ForCausalLM", "qwen2", build_qwen2},
    {"Qwen3ForCausalLM", "qwen3", build_qwen3},
    {"MiMoForCausalLM", "mimo", build_mimo_7b},
    {"DeciLMForCausalLM", "nemotron-nas", build_deci},
    {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", build_qwen2},
    {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text", build_qwen2},
    {"Qwen2VLForConditionalGeneration", "qwen2_vl", build_qwen2},
    {"Qwen3VLForConditionalGeneration", "qwen3_vl_text", build_qwen3},
    {"Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text", build_qwen3_moe},
    {"SeedOssForCausalLM", "seed_oss", build_llama},
    {"SmolLM3ForCausalLM", "smollm3", build_llama},
    {"GraniteForCausalLM", "granite", build_llama},
    {"Olmo2ForCausalLM", "olmo2", build_olmo2},
    {"Olmo3ForCausalLM", "olmo3", build_olmo2},
    {"Phi3ForCausalLM", "phi3", build_mistral},
    {"PhiForCausalLM", "phi", build_phi2},
    {"Starcoder2ForCausalLM", "starcoder2", build_starcoder2},
    {"Glm4ForCausalLM", "glm4", build_glm4},
    {"CohereForCausalLM", "cohere", build_cohere},
    {"Cohere2ForCausalLM", "cohere2", build_cohere2},
    {"GemmaForCausalLM", "gemma", build_gemma1},
    {"Gemma2ForCausalLM", "gemma2", build_gemma2},
    {"Gemma3ForCausalLM", "gemma3_text", build_gemma3},
    {"Gemma3ForConditionalGeneration", "gemma3", build_gemma3},
    {"Gemma4ForConditionalGeneration", "gemma4_text", build_gemma4},
    {"Gemma4UnifiedForConditionalGeneration", "gemma4_unified_text", build_gemma4},
    {"MixtralForCausalLM", "mixtral", build_mixtral},
    {"Qwen2MoeForCausalLM", "qwen2_moe", build_qwen2_moe},
    {"Qwen3MoeForCausalLM", "qwen3_moe", build_qwen3_moe},
    {"MiniMaxM2ForCausalLM", "minimax_m2", build_minimax_m2},
    {"MiniMaxM3ForCausalLM", "minimax_m3", build_minimax_m3},
    {"MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", build_minimax_m3},
    {"Glm4MoeForCausalLM", "glm4_moe", build_glm4_moe},
    {"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", build_ernie_moe},
    {"HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", build_hunyuan_moe},
    {"GptOssForCausalLM", "gpt_oss", build_gpt_oss},
    {"Llama4ForConditionalGeneration", "llama4_text", build_llama4},
    {"BailingMoeV2ForCausalLM", "bailing_moe", build_bailing_v2},
    {"Step3p7FlashForCausalLM", "step3p7", build_step3p7},
    {"MiMoV2FlashForCausalLM", "mimo_v2_flash", build_mimo_v2},
    {"MiMoV2ForCausalLM", "mimo_v2", build_mimo_v2},
    {"DeepseekV2ForCausalLM", "deepseek_v2", build_deepseek_v2},
    {"DeepseekV3ForCausalLM", "deepseek_v3", build_deepseek_v3},
    {"DeepseekV3ForCausalLM", "kimi_k2", build_deepseek_v3},
    {"DeepseekV32ForCausalLM", "deepseek_v32", build_deepseek_v3},
    {"GlmMoeDsaForCausalLM", "glm_moe_dsa", build_deepseek_v3},
    {"KimiK25ForConditionalGeneration", "kimi_k25", build_deepseek_v3},
    {"KimiVLForConditionalGeneration", "kimi_vl", build_deepseek_v3},
    {"MistralLarge3ForCausalLM", "mistral_large_3", build_deepseek_v3},
    {"Mistral4ForCausalLM", "mistral4", build_deepseek_v3},
    {"LongcatFlashForCausalLM", "longcat_flash", build_longcat},
    {"DeepseekV4ForCausalLM", "deepseek_v4", build_deepseek_v4},
    {"DeepseekV41ForCausalLM", "deepseek_v41_text", build_deepseek_v41},
    {"KimiLinearForCausalLM", "kimi_linear", build_kimi_linear},
    {"KimiK3ForConditionalGeneration", "kimi_k3", build_kimi_linear},
    {"Glm5NextForConditionalGeneration", "glm5_next_text", build_kimi_linear},
    {"BailingMoeV2_5ForCausalLM", "bailing_hybrid", build_bailing_hybrid},
    {"BailingMoeV3ForCausalLM", "bailing_hybrid", build_bailing_hybrid},
    {"Qwen3NextForCausalLM", "qwen3_next", build_qwen_hybrid},
    {"Qwen3_5ForCausalLM", "qwen3_5_text", build_qwen_hybrid},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5", build_qwen_hybrid},
    {"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", build_qwen_hybrid},
    {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", build_qwen_hybrid},
    {"Qwen4ExpForConditionalGeneration", "qwen4_exp_text", build_qwen_hybrid},
    {"NemotronHForCausalLM", "nemotron_h", build_nemotron_h},
    {"JambaForCausalLM", "jamba", build_jamba},
    {"FalconH1ForCausalLM", "falcon_h1", build_falcon_h1},
    {"GraniteMoeHybridForCausalLM", "granitemoehybrid", build_granite_hybrid},
    {"Zamba2ForCausalLM", "zamba2", build_zamba2},
    {"MiniMaxText01ForCausalLM", "minimax_text_01", build_minimax_01},
    {"MiniMaxM1ForCausalLM", "minimax_m1", build_minimax_01},
    {"Lfm2ForCausalLM", "lfm2", build_lfm2},
    {"Lfm2MoeForCausalLM", "lfm2_moe", build_lfm2},
};

/// Wrappers around a text model that says its own kind.
inline constexpr std::string_view kWrappers[] = {"Mistral3ForConditionalGeneration", "LlavaNextForConditionalGeneration",
                                                 "LlavaForConditionalGeneration", "InternVLForConditionalGeneration",
                                                 "Llama4ForConditionalGeneration"};

} // namespace servecap::detail
