// servecap: bytes of the recurrent state of one sequence, exact
// SPDX-License-Identifier: Apache-2.0
//
// A recurrent mixer keeps a convolution tail and a state of fixed size a sequence; both are cut by
// tensor parallelism. k = convolution kernel, s = draft tokens of a step, rows = k - 1 + s:
//   Mamba 1      conv inner/tp * (k - 1)                      state inner/tp * d_state
//   Mamba 2      conv (inner + 2 * G * d_state)/tp * rows      state heads/tp * head_dim * d_state
//                G = groups, or tp when groups do not divide (they are copied)
//   gated delta  conv (2 * k_heads * k_dim + v_heads * v_dim)/tp * rows   state v_heads/tp * v_dim * k_dim
//   KDA          conv 3 * heads/tp * dim * rows                state heads/tp * dim * dim
//   lightning    state heads/tp * dim * dim                    short conv: dim/tp * (k - 1)
// Source: vLLM mamba_utils.py (public); checked against logged page paddings.

#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include <servecap/catalog/format.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// Element counts of one sequence's state of one mixer on one rank.
struct StateElements {
    std::int64_t conv = 0;
    std::int64_t recurrent = 0;
};

/// What decides the size of a state on a rank. Sizes are bytes of one value.
struct StateOptions {
    std::int32_t conv_bytes = 2;
    std::int32_t recurrent_bytes = 4;
    std::int32_t tp = 1;
    std::int32_t draft_tokens = 0; ///< lengthens the convolution tail
};

/// Elements of the state of one mixer on one rank; zero for attention.
constexpr StateElements state_elements(Mixer const& m, std::int32_t tp, std::int32_t draft_tokens = 0) noexcept {
    std::int64_t const t = tp > 0 ? tp : 1;
    std::int64_t const s = draft_tokens;
    if (auto const* k = std::get_if<Kda>(&m)) {
        std::int64_t const heads = ceil_div(k->heads, t); // engines that accept other widths pad the heads
        std::int64_t const d = k->head_dim;
        return {3 * heads * d * (k->conv_kernel - 1 + s), heads * d * d};
    }
    if (auto const* g = std::get_if<GatedDelta>(&m)) {
        std::int64_t const kd = static_cast<std::int64_t>(g->k_heads) * g->k_dim;
        std::int64_t const vd = static_cast<std::int64_t>(g->v_heads) * g->v_dim;
        return {ceil_div(2 * kd + vd, t) * (g->conv_kernel - 1 + s), ceil_div(g->v_heads, t) * g->v_dim * g->k_dim};
    }
    if (auto const* a = std::get_if<Mamba2>(&m)) {
        std::int64_t const groups = a->groups % t == 0 ? a->groups : t;
        std::int64_t const inner = static_cast<std::int64_t>(a->heads) * a->head_dim;
        return {ceil_div(inner + 2 * groups * a->d_state, t) * (a->conv_kernel - 1 + s),
                ceil_div(a->heads, t) * a->head_dim * a->d_state};
    }
    if (auto const* a = std::get_if<Mamba1>(&m))
        return {ceil_div(a->inner, t) * (a->conv_kernel - 1), ceil_div(a->inner, t) * a->d_state};
    if (auto const* a = std::get_if<Lightning>(&m)) {
        std::int64_t const d = a->head_dim;
        return {0, ceil_div(a->heads, t) * d * d};
    }
    if (auto const* a = std::get_if<ShortConv>(&m)) return {ceil_div(a->dim, t) * (a->kernel - 1), 0};
    return {};
}

/// Bytes of the state of one mixer of one sequence on one rank.
constexpr Bytes state_bytes(Mixer const& m, StateOptions const& o) noexcept {
    StateElements const e = state_elements(m, o.tp, o.draft_tokens);
    bool const fixed_fp32 = std::holds_alternative<Kda>(m); // KDA keeps fp32 whatever is asked
    return Bytes{e.conv * o.conv_bytes + e.recurrent * (fixed_fp32 ? 4 : o.recurrent_bytes)};
}

/// Bytes of the state of one sequence over the whole trunk on one rank.
inline Bytes state_bytes(Model const& model, StateOptions const& o) noexcept {
    Bytes sum{0};
    for (Layer const& l : model.layers)
        for (Mixer const& m : l.mixers) sum += state_bytes(m, o);
    return sum;
}

/// Bytes of one value of the recurrent state when nothing is asked: what the config names; else 4 for KDA and for
/// models that name fp32, 2 for the rest (engines take the model's dtype).
constexpr std::int32_t default_state_value_bytes(std::optional<Format> named, Format model_dtype) noexcept {
    Format const f = named ? *named : model_dtype;
    return f == Format::fp32 ? 4 : 2;
}

} // namespace servecap
