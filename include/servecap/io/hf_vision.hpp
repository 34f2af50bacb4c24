// servecap: towers and projectors that stand beside a language model
// SPDX-License-Identifier: Apache-2.0
//
// Shapes by the kind of tower: SigLIP and CLIP style, Pixtral, Qwen-VL, MoonViT (Kimi), the tower of
// DeepSeek V4.1, Gemma 4. Towers stay in the model's dtype. A tower that is not known adds nothing, and the
// model says so among its inferred fields.

#pragma once

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

/// Adds the tower that `vision_config` describes. False: the kind is not known.
inline bool add_vision(Config& c) {
    Json const* block = c.root.find({"vision_config"});
    if (block == nullptr || !block->is_object() || block->empty()) return true;
    FieldReader const v{*block, c.root.file(), "vision_config", c.error};
    std::int64_t const text = c.m.hidden;
    std::string const& arch = c.m.architecture;
    auto const size = [&](FieldReader::Names names, std::int64_t fallback) { return v.integer(names, 0, 1 << 24, fallback); };

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
    return false;
}

} // namespace servecap::detail
