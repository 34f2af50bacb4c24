// servecap: towers and projectors that stand beside a language model
// SPDX-License-Identifier: Apache-2.0
//
// Shapes by the kind of tower: SigLIP and CLIP style, Pixtral, Qwen-VL, MoonViT (Kimi), the tower of
// DeepSeek V4.1, Gemma 4. Towers stay in the model's dtype. A tower that is not known adds nothing, and the
// model says so among its inferred fields.

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <servecap/catalog/model.hpp>
#include <servecap/io/hf_families.hpp>
#include <servecap/io/json.hpp>

namespace servecap::detail {

/// Adds `count` matrices of a tower.
inline void tower(Config& c, std::string_view name, std::int64_t rows, std::int64_t cols, std::int64_t count = 1, bool cut = true,
                  WeightFormat f = {Format::bf16}) {
    if (rows <= 0 || cols <= 0 || count <= 0) return;
    c.m.extra_tensors.push_back(extra(TensorClass::vision, cut ? Shard::tensor : Shard::replicated, -1, name, rows, cols, f, count));
}

/// A block of a classic ViT: q, k, v, o with biases, two-layer FFN with biases, two LayerNorms.
inline void vit_blocks(Config& c, std::int64_t h, std::int64_t w, std::int64_t n) {
    tower(c, "attn.qkv", 3 * h, h + 1, n);
    tower(c, "attn.proj", h, h + 1, n);
    tower(c, "mlp.fc1", w, h + 1, n);
    tower(c, "mlp.fc2", h, w, n);
    tower(c, "mlp.fc2.bias", h, 1, n, false);
    tower(c, "norms", h, 1, 4 * n, false);
}

/// Adds the tower that `vision_config` describes. False: the kind is not known.
inline bool add_vision(Config& c) {
    Json const* block = c.root.find({"vision_config"});
    if (block == nullptr || !block->is_object() || block->empty()) return true;
    FieldReader const v{*block, c.root.file(), "vision_config", c.error};
    std::int64_t const text = c.m.hidden;
    std::string const& arch = c.m.architecture;
    auto const size = [&](FieldReader::Names names, std::int64_t fallback) { return v.integer(names, 0, 1 << 20, fallback); };
    std::string const kind = v.text({"model_type"}, "");

    if (arch == "DeepseekV41ForCausalLM") {
        auto const h = size({"hidden_size"}, 0), n = size({"num_hidden_layers"}, 0), w = size({"intermediate_size"}, 0);
        auto const patch = size({"patch_size"}, 14), down = size({"downsample_ratio"}, 3);
        tower(c, "delimiters", text, 1, 3, false);
        tower(c, "aligner.w1", text, h * down * down);
        tower(c, "aligner.w2", text, text);
        tower(c, "aligner.bias", text, 1, 2, false);
        tower(c, "patch_embed", h, 3 * patch * patch + 1, 1, false);
        tower(c, "norm", h, 1, 1 + 2 * n, false);
        tower(c, "attn.wqkv", 3 * h, h + 1, n);
        tower(c, "attn.wo", h, h + 1, n);
        tower(c, "mlp.w1", 2 * w, h, n);
        tower(c, "mlp.w2", h, w, n);
        return true;
    }
    if (arch.starts_with("Kimi")) { // MoonViT; Kimi K3: RMSNorm, no biases, a wider attention
        auto const h = size({"vt_hidden_size", "hidden_size"}, 0), n = size({"vt_num_hidden_layers", "num_hidden_layers"}, 0);
        auto const w = size({"vt_intermediate_size", "intermediate_size"}, 0), patch = size({"patch_size"}, 14);
        auto const wide = size({"qkv_hidden_size"}, h);
        auto const grid = size({"init_pos_emb_height"}, 64) * size({"init_pos_emb_width"}, 64);
        bool const bias = v.flag({"attn_bias"}, true);
        std::int64_t const merged = 4 * h; // two by two patches
        tower(c, "patch_embed", h, 3 * patch * patch + (v.flag({"patch_embed_proj_bias"}, true) ? 1 : 0), 1, false);
        tower(c, "pos_emb", grid, h, 1, false);
        if (bias) {
            vit_blocks(c, h, w, n);
            tower(c, "final_layernorm", h, 1, 2, false);
            tower(c, "projector.pre_norm", h, 1, 2, false);
            tower(c, "projector.linear_1", merged, merged + 1);
            tower(c, "projector.linear_2", text, merged + 1);
        } else {
            tower(c, "attn.wqkv", 3 * wide, h, n);
            tower(c, "attn.wo", h, wide, n);
            tower(c, "mlp.fc", w, h, 2 * n);
            tower(c, "norms", h, 1, 2 * n + 1, false);
            tower(c, "projector.linear_1", merged, merged);
            tower(c, "projector.linear_2", text, merged);
            tower(c, "projector.norm", text, 1, 1, false);
        }
        return true;
    }
    if (arch.starts_with("Qwen2_5_VL")) {
        auto const h = size({"hidden_size"}, 0), n = size({"depth"}, 0), w = size({"intermediate_size"}, 0);
        auto const patch = size({"patch_size", "spatial_patch_size"}, 14), merge = size({"spatial_merge_size"}, 2), out = size({"out_hidden_size"}, text);
        tower(c, "patch_embed", h, 3 * size({"temporal_patch_size"}, 2) * patch * patch, 1, false);
        tower(c, "attn.qkv", 3 * h, h + 1, n);
        tower(c, "attn.proj", h, h + 1, n);
        tower(c, "mlp.gate_up", w, h + 1, 2 * n);
        tower(c, "mlp.down", h, w, n);
        tower(c, "mlp.down.bias", h, 1, n, false);
        tower(c, "norms", h, 1, 2 * n + 1, false);
        tower(c, "merger.0", h * merge * merge, h * merge * merge + 1);
        tower(c, "merger.2", out, h * merge * merge + 1);
        return true;
    }
    if (arch.starts_with("Qwen3VL") || arch.starts_with("Qwen3_5") || arch.starts_with("Qwen4Exp")) {
        auto const h = size({"hidden_size"}, 0), n = size({"depth"}, 0), w = size({"intermediate_size"}, 4304);
        auto const patch = size({"patch_size"}, 16), merge = size({"spatial_merge_size"}, 2), out = size({"out_hidden_size"}, text);
        auto const wide = h * merge * merge;
        auto const deep = static_cast<std::int64_t>(v.integers({"deepstack_visual_indexes"}, 0, kMaxLayers).size());
        tower(c, "patch_embed", h, size({"in_channels"}, 3) * size({"temporal_patch_size"}, 2) * patch * patch + 1, 1, false);
        tower(c, "pos_embed", size({"num_position_embeddings"}, 2304), h, 1, false);
        vit_blocks(c, h, w, n);
        tower(c, "merger.norm", h, 1, 2, false);
        tower(c, "merger.fc1", wide, wide + 1, 1 + deep);
        tower(c, "merger.fc2", out, wide + 1, 1 + deep);
        tower(c, "deepstack.norm", wide, 1, 2 * deep, false);
        return true;
    }
    if (arch.starts_with("Glm5Next") || arch.starts_with("Glm4v")) {
        auto const h = size({"hidden_size"}, 0), n = size({"depth"}, 0), w = size({"intermediate_size"}, 0), out = size({"out_hidden_size"}, text);
        auto const patch = size({"patch_size"}, 14), merge = size({"spatial_merge_size"}, 2), heads = std::max<std::int64_t>(1, size({"num_heads"}, 16));
        auto const wide = size({"projection_intermediate_size"}, 10240);
        std::int64_t const bias = v.flag({"attention_bias"}, true) ? 1 : 0;
        tower(c, "patch_embed", h, 3 * size({"temporal_patch_size"}, 2) * patch * patch + 1, 1, false);
        tower(c, "attn.qkv", 3 * h, h + bias, n);
        tower(c, "attn.proj", h, h + bias, n);
        tower(c, "qk_norm", h / heads, 1, 2 * n, false);
        tower(c, "mlp.gate_up_down", w, h, 3 * n);
        tower(c, "norms", h, 1, 2 * n + 1, false);
        tower(c, "downsample", out, h * merge * merge + 1, 1, false);
        tower(c, "merger.proj", out, out);
        tower(c, "merger.norm", out, 1, 2, false);
        tower(c, "merger.gate_up_down", wide, out, 3);
        return true;
    }
    if (arch.starts_with("Gemma4")) {
        auto const h = size({"hidden_size"}, 0), n = size({"num_hidden_layers"}, 0), w = size({"intermediate_size"}, 0);
        auto const patch = size({"patch_size"}, 16), heads = size({"num_attention_heads"}, 1), dim = size({"head_dim"}, h / std::max<std::int64_t>(1, heads));
        tower(c, "patch_embed", h, 3 * patch * patch, 1, false);
        tower(c, "position_embedding", 2 * size({"position_embedding_size"}, 10240), h, 1, false);
        tower(c, "attn.qkv", 3 * heads * dim, h, n);
        tower(c, "attn.proj", h, heads * dim, n);
        tower(c, "mlp.gate_up_down", w, h, 3 * n);
        tower(c, "norms", h, 1, 4 * n, false);
        tower(c, "qk_norm", dim, 1, 2 * n, false);
        if (v.flag({"standardize"}, false)) tower(c, "standardize", h, 1, 2, false);
        tower(c, "projector", text, h);
        return true;
    }
    if (kind == "siglip_vision_model" || arch.starts_with("Gemma3") || arch.starts_with("LlavaNext")) {
        auto const h = size({"hidden_size"}, 0), n = size({"num_hidden_layers"}, 0), w = size({"intermediate_size"}, 0);
        auto const patch = std::max<std::int64_t>(1, size({"patch_size"}, 14)), side = size({"image_size"}, 896) / patch;
        tower(c, "patch_embed", h, 3 * patch * patch + 1, 1, false);
        tower(c, "position_embedding", side * side, h, 1, false);
        vit_blocks(c, h, w, n);
        tower(c, "post_layernorm", h, 1, 2, false);
        if (arch.starts_with("Gemma3")) {
            tower(c, "mm_input_projection", text, h);
            tower(c, "mm_soft_emb_norm", h, 1, 1, false);
        } else {
            auto const layers = std::max<std::int64_t>(1, static_cast<std::int64_t>(c.root.integers({"vision_feature_layer"}, -kMaxLayers, kMaxLayers).size()));
            tower(c, "projector.linear_1", text, layers * h + 1);
            tower(c, "projector.linear_2", text, text + 1);
        }
        return true;
    }
    if (kind == "pixtral" || arch.starts_with("Mistral")) {
        auto const h = size({"hidden_size"}, 0), n = size({"num_hidden_layers"}, 0), w = size({"intermediate_size"}, 0);
        auto const patch = size({"patch_size"}, 14), merge = size({"spatial_merge_size"}, 2);
        tower(c, "patch_conv", h, 3 * patch * patch, 1, false);
        tower(c, "attn.qkvo", h, h, 4 * n);
        tower(c, "mlp.gate_up_down", w, h, 3 * n);
        tower(c, "norms", h, 1, 2 * n + 2, false); // with ln_pre and the projector's
        tower(c, "projector.patch_merger", h, h * merge * merge);
        tower(c, "projector.linear_1", text, h);
        tower(c, "projector.linear_2", text, text);
        return true;
    }
    return false;
}

} // namespace servecap::detail
