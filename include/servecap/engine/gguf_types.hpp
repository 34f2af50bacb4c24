// servecap: the block types of GGUF files, and how llama-quantize mixes them
// SPDX-License-Identifier: Apache-2.0
//
// A type stores blocks of 32 to 256 weights in a fixed number of bytes (ggml's type traits). A label such as
// Q4_K_M names a mix: most matrices take the base type, the output head, attention values and a part of the
// down-projections take wider ones (llama.cpp, src/llama-quant.cpp); rows that are no multiple of 256 fall back
// to a type of 32. Mixes of importance matrices (IQ*, UD-*) are per tensor and known as averages only.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <servecap/catalog/model.hpp>
#include <servecap/core/text.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

enum class GgufType : std::uint8_t {
    f32,
    f16,
    bf16,
    q8_0,
    q4_0,
    q4_1,
    q5_0,
    q5_1,
    iq4_nl,
    q2_k,
    q3_k,
    q4_k,
    q5_k,
    q6_k,
    q8_k,
    iq1_s,
    iq1_m,
    iq2_xxs,
    iq2_xs,
    iq2_s,
    iq3_xxs,
    iq3_s,
    iq4_xs,
    tq1_0,
    tq2_0,
    mxfp4,
    nvfp4,
};

struct GgufTypeInfo {
    GgufType type;
    std::string_view name;
    std::int32_t weights; ///< in a block
    std::int32_t bytes;   ///< of a block
};

inline constexpr std::array<GgufTypeInfo, 27> kGgufTypes{{
    {GgufType::f32, "f32", 1, 4},          {GgufType::f16, "f16", 1, 2},           {GgufType::bf16, "bf16", 1, 2},
    {GgufType::q8_0, "q8_0", 32, 34},      {GgufType::q4_0, "q4_0", 32, 18},       {GgufType::q4_1, "q4_1", 32, 20},
    {GgufType::q5_0, "q5_0", 32, 22},      {GgufType::q5_1, "q5_1", 32, 24},       {GgufType::iq4_nl, "iq4_nl", 32, 18},
    {GgufType::q2_k, "q2_k", 256, 84},     {GgufType::q3_k, "q3_k", 256, 110},     {GgufType::q4_k, "q4_k", 256, 144},
    {GgufType::q5_k, "q5_k", 256, 176},    {GgufType::q6_k, "q6_k", 256, 210},     {GgufType::q8_k, "q8_k", 256, 292},
    {GgufType::iq1_s, "iq1_s", 256, 50},   {GgufType::iq1_m, "iq1_m", 256, 56},    {GgufType::iq2_xxs, "iq2_xxs", 256, 66},
    {GgufType::iq2_xs, "iq2_xs", 256, 74}, {GgufType::iq2_s, "iq2_s", 256, 82},    {GgufType::iq3_xxs, "iq3_xxs", 256, 98},
    {GgufType::iq3_s, "iq3_s", 256, 110},  {GgufType::iq4_xs, "iq4_xs", 256, 136}, {GgufType::tq1_0, "tq1_0", 256, 54},
    {GgufType::tq2_0, "tq2_0", 256, 66},   {GgufType::mxfp4, "mxfp4", 32, 17},     {GgufType::nvfp4, "nvfp4", 64, 36},
}};

constexpr GgufTypeInfo const& gguf_info(GgufType t) noexcept { return kGgufTypes[static_cast<std::size_t>(t)]; }

/// The type of a name such as "q8_0" (any case), if there is one.
inline std::optional<GgufType> parse_gguf_type(std::string_view name) {
    std::string const n = to_lower(name);
    for (GgufTypeInfo const& t : kGgufTypes)
        if (t.name == n) return t.type;
    return std::nullopt;
}

/// Bytes of `rows` rows of `cols` weights; a row is stored in whole blocks.
constexpr Bytes gguf_bytes(GgufType t, std::int64_t rows, std::int64_t cols) noexcept {
    GgufTypeInfo const& i = gguf_info(t);
    return Bytes{rows * ceil_div(cols, i.weights) * i.bytes};
}

/// A quantisation label: the base type, how much wider some matrices are, or an average.
struct GgufMix {
    std::string label = "F16";
    GgufType base = GgufType::f16;
    bool medium = false;    ///< _M: values and downs take a wider type in three eighths of the layers and more
    bool small_mix = false; ///< _S: wider in the first layers only
    double bits = 0;        ///< average bits a weight of the whole file, where only that is known; 0 = by types
};

/// Reads "Q4_K_M", "q8_0", "F16", "IQ4_XS", "UD-Q2_K_XL"...; nothing for labels that are no GGUF mix.
inline std::optional<GgufMix> parse_gguf_mix(std::string_view text) {
    std::string label = to_lower(trim(text));
    for (char& c : label)
        if (c == '-') c = '_';
    if (label.starts_with("gguf:")) label.erase(0, 5);
    GgufMix m;
    m.label = label;
    for (char& c : m.label)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    struct Average {
        std::string_view label;
        double bits;
    };
    // Whole-file averages: of the quantize tool's table for an 8B model, and middles of published dynamic quants of
    // large mixtures of experts (their range is a tenth either way).
    constexpr std::array<Average, 14> averages{{{"iq1_s", 2.00},
                                                {"iq1_m", 2.15},
                                                {"iq2_xxs", 2.38},
                                                {"iq2_xs", 2.59},
                                                {"iq2_s", 2.75},
                                                {"iq2_m", 2.93},
                                                {"iq3_xxs", 3.25},
                                                {"iq3_s", 3.66},
                                                {"iq3_m", 3.76},
                                                {"ud_iq1_s", 1.75},
                                                {"ud_iq1_m", 2.0},
                                                {"ud_q2_k_xl", 2.75},
                                                {"ud_q3_k_xl", 3.7},
                                                {"ud_q4_k_xl", 4.75}}};
    for (Average const& a : averages)
        if (a.label == label) {
            m.bits = a.bits;
            return m;
        }
    if (label.starts_with("ud_")) label.erase(0, 3);
    if (label.ends_with("_xl")) label = label.substr(0, label.size() - 3) + "_m";
    if (label.ends_with("_l") && label.find("_k_") != std::string::npos) label = label.substr(0, label.size() - 2) + "_m";
    std::string base = label;
    if (base.ends_with("_k_m") || base.ends_with("_k_s")) {
        m.medium = base.ends_with("_m");
        m.small_mix = !m.medium;
        base.erase(base.size() - 2);
    }
    if (base == "fp16") base = "f16";
    auto const type = parse_gguf_type(base);
    if (!type) return std::nullopt;
    m.base = *type;
    return m;
}

/// Layers whose values and down-projections a medium mix stores wider: the first and last eighth, and each third between.
constexpr bool gguf_more_bits(std::int64_t layer, std::int64_t layers) noexcept {
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

/// The type of one matrix in a mix. `tied`: the embedding is the head too.
constexpr GgufType gguf_type_of(GgufMix const& m, WeightTensor const& t, std::int64_t layers, std::int64_t experts,
                                std::int64_t q_per_kv) noexcept {
    GgufType const base = m.base;
    bool const k_quant = base == GgufType::q2_k || base == GgufType::q3_k || base == GgufType::q4_k || base == GgufType::q5_k ||
                         base == GgufType::q6_k;
    if (t.cols <= 1 || t.cls == TensorClass::norm || t.cls == TensorClass::router || t.name == "conv1d") return GgufType::f32;
    if (t.name.find("bias") != std::string_view::npos) return GgufType::f32;
    if ((base == GgufType::mxfp4 || base == GgufType::nvfp4) && t.cls != TensorClass::routed_expert)
        return t.cols % 32 == 0 ? GgufType::q8_0 : GgufType::f16; // published files of 4-bit experts
    GgufType type = base;
    if (k_quant || base == GgufType::iq4_xs || base == GgufType::iq4_nl) {
        if (t.cls == TensorClass::lm_head) {
            type = GgufType::q6_k;
        } else if (t.name == "v_proj") {
            if (m.medium && (base == GgufType::q4_k || base == GgufType::q5_k) && gguf_more_bits(t.layer, layers))
                type = GgufType::q6_k;
            if (m.medium && base == GgufType::q3_k) type = t.layer < 2 ? GgufType::q5_k : GgufType::q4_k;
            if (m.small_mix && base == GgufType::q4_k && t.layer < 4) type = GgufType::q5_k;
            if (base == GgufType::q2_k) type = q_per_kv >= 4 ? GgufType::q4_k : GgufType::q3_k;
            if (base == GgufType::iq4_xs || base == GgufType::iq4_nl) type = q_per_kv >= 4 ? GgufType::q5_k : base;
            if (experts == 8 && m.medium) type = GgufType::q8_0;
        } else if (t.name == "k_proj" && experts == 8 && m.medium) {
            type = GgufType::q8_0;
        } else if (t.name == "down_proj" || t.name == "experts.w2") {
            if (m.medium && (base == GgufType::q4_k || base == GgufType::q5_k) && gguf_more_bits(t.layer, layers))
                type = GgufType::q6_k;
            if (m.medium && base == GgufType::q3_k) type = t.layer < layers / 16 ? GgufType::q5_k : GgufType::q4_k;
            if (m.small_mix && base == GgufType::q4_k && t.layer < layers / 8) type = GgufType::q5_k;
            if (base == GgufType::q2_k) type = GgufType::q3_k;
            if ((base == GgufType::iq4_xs || base == GgufType::iq4_nl) && t.layer < layers / 8) type = GgufType::q5_k;
        } else if (t.name == "in_proj_qkv" || t.name == "qkv_proj") { // fused projections
            if (m.medium && base == GgufType::q3_k) type = GgufType::q4_k;
            if (m.medium && base == GgufType::q4_k) type = GgufType::q5_k;
            if (m.medium && base == GgufType::q5_k) type = GgufType::q6_k;
        } else if (t.name == "o_proj" && experts != 8) {
            if (base == GgufType::q3_k && m.medium) type = GgufType::q4_k;
            if (base == GgufType::q2_k) type = GgufType::q3_k;
        }
    }
    if (gguf_info(type).weights == 256 && t.cols % 256 != 0) {
        switch (type) {
        case GgufType::q4_k: return GgufType::q5_0;
        case GgufType::q5_k: return GgufType::q5_1;
        case GgufType::q6_k: return GgufType::q8_0;
        default: return GgufType::iq4_nl;
        }
    }
    if (gguf_info(type).weights == 32 && t.cols % 32 != 0) return GgufType::f16;
    return type;
}

} // namespace servecap
