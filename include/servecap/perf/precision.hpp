// servecap: the number formats of a checkpoint published in another precision
// SPDX-License-Identifier: Apache-2.0
//
// Measured rows name a precision ("nvfp4", "fp8"); a model card describes one checkpoint. The other
// checkpoints of a model differ in the formats of tensor classes, by habits that are alike over publishers:
//   8-bit checkpoints quantise every linear layer, not embeddings, head, router and norms;
//   4-bit checkpoints of mixture models quantise the routed experts (and, where the first release was fp8,
//   shared experts and dense layers) and leave attention in bf16; of dense models every linear layer.
// Sources: model cards of the NVFP4, MXFP4, FP8 and INT4 checkpoints of DeepSeek-R1, Kimi K2.5, MiniMax M2.5,
// Qwen3.5, Llama 3.3 and gpt-oss. Where the card's own label is asked for, nothing changes.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <servecap/catalog/model.hpp>

namespace servecap {

/// The format that a precision label stands for; nothing for labels that name no single format.
inline std::optional<WeightFormat> format_of_label(std::string_view label) noexcept {
    WeightFormat f;
    if (label == "bf16" || label == "fp16")
        f.format = Format::bf16;
    else if (label == "fp8")
        f.format = Format::fp8_row;
    else if (label == "mxfp8")
        f.format = Format::mxfp8;
    else if (label == "nvfp4")
        f.format = Format::nvfp4;
    else if (label == "mxfp4" || label == "w4a8")
        f.format = Format::mxfp4;
    else if (label == "int4" || label == "awq" || label == "gptq")
        f.format = Format::int4_sym, f.group = 32;
    else if (label == "int8")
        f.format = Format::int8;
    else
        return std::nullopt;
    return f;
}

/// The model has routed experts.
inline bool has_experts(Model const& m) noexcept {
    for (Layer const& l : m.layers)
        if (l.ffn && std::holds_alternative<Moe>(*l.ffn)) return true;
    return false;
}

/// The formats of `m` in the checkpoint called `label`; the card's own where the label is its own or not known.
inline QuantPlan quant_plan_as(Model const& m, std::string_view label) {
    QuantPlan own = m.quant;
    if (label.empty() || label == "auto" || label == own.label) return own;
    bool const moe = has_experts(m);
    Format const experts = own[TensorClass::routed_expert].format;
    auto const wanted = format_of_label(label);
    if (!wanted) return own; // "fp4" of mixed checkpoints: the card's own
    int const bits = element_bits(wanted->format);
    // A mixed card (4-bit experts, 8-bit rest) is what people call by the experts' format.
    if (moe && bits == 4 && element_bits(experts) == 4 && (experts == wanted->format || label == "w4a8")) return own;
    QuantPlan p = own;
    p.label = std::string{label};
    p.exceptions.clear();
    WeightFormat const plain{};
    bool const first_release_8bit = element_bits(own[TensorClass::dense_ffn].format) == 8;
    auto const all_linears = [&](WeightFormat const& f) {
        for (TensorClass c : {TensorClass::attention, TensorClass::attention_shared, TensorClass::linear_attention,
                              TensorClass::dense_ffn, TensorClass::shared_expert, TensorClass::routed_expert})
            p[c] = f;
    };
    if (bits >= 8 || !moe) {
        all_linears(*wanted);
    } else {
        bool const mixed_eight = element_bits(own[TensorClass::attention].format) == 8 && element_bits(experts) == 4;
        if (!mixed_eight) all_linears(plain);
        p[TensorClass::routed_expert] = *wanted;
        if (first_release_8bit && !mixed_eight && wanted->format == Format::nvfp4)
            p[TensorClass::shared_expert] = p[TensorClass::dense_ffn] = *wanted;
        if (first_release_8bit && wanted->format == Format::mxfp4 && !mixed_eight) {
            WeightFormat eight;
            eight.format = Format::fp8_row;
            all_linears(eight);
            p[TensorClass::routed_expert] = *wanted;
        }
    }
    return p;
}

/// A copy of `m` as the checkpoint called `label`.
inline Model model_as(Model const& m, std::string_view label) {
    Model copy = m;
    copy.quant = quant_plan_as(m, label);
    if (copy.quant.label != m.quant.label) copy.exact_bytes.clear();
    return copy;
}

} // namespace servecap
