// servecap: number formats of weights and caches, and their exact sizes
// SPDX-License-Identifier: Apache-2.0
//
// Sizes follow the checkpoint formats: scales and zero points are part of the bytes, rounded up once
// per matrix. Sources: OCP MX specification (mxfp8, mxfp4: one e8m0 scale per 32 values); NVFP4 (one
// e4m3 scale per 16 values); fp8 block scales per block_rows x block_cols; AWQ / GPTQ (fp16 scale and
// packed zero per group); compressed-tensors pack-quantized (bf16 scale per group, symmetric).

#pragma once

#include <cstdint>
#include <string_view>

#include <servecap/units/quantity.hpp>

namespace servecap {

/// Element format of a weight matrix or a cache row.
enum class Format : std::uint8_t {
    fp32,
    bf16,
    fp16,
    fp8,       ///< one scale a tensor
    fp8_row,   ///< one scale an output row
    fp8_block, ///< one scale a block of rows x cols
    mxfp8,
    mxfp6,
    mxfp4,
    nvfp4,
    int8,
    int4_group, ///< AWQ, GPTQ: scale and zero a group
    int4_sym,   ///< compressed-tensors, symmetric: scale a group
    nf4,
};

constexpr std::string_view to_string(Format f) noexcept {
    switch (f) {
    case Format::fp32: return "fp32";
    case Format::bf16: return "bf16";
    case Format::fp16: return "fp16";
    case Format::fp8: return "fp8";
    case Format::fp8_row: return "fp8_row";
    case Format::fp8_block: return "fp8_block";
    case Format::mxfp8: return "mxfp8";
    case Format::mxfp6: return "mxfp6";
    case Format::mxfp4: return "mxfp4";
    case Format::nvfp4: return "nvfp4";
    case Format::int8: return "int8";
    case Format::int4_group: return "int4";
    case Format::int4_sym: return "int4_sym";
    case Format::nf4: return "nf4";
    }
    return "?";
}

/// A weight format with the sizes of its scale blocks.
struct WeightFormat {
    Format format = Format::bf16;
    std::int32_t block_rows = 128;   ///< fp8_block: rows of a scale block
    std::int32_t block_cols = 128;   ///< fp8_block: columns of a scale block
    std::int32_t group = 128;        ///< int4: values a scale
    std::int32_t scale_bytes = 4;    ///< fp8_block: bytes of a scale (1 for ue8m0, 2 for bf16)

    friend constexpr bool operator==(WeightFormat const&, WeightFormat const&) = default;
};

/// Bits of one element, without scales; the native width for flops and bandwidth by type.
constexpr int element_bits(Format f) noexcept {
    switch (f) {
    case Format::fp32: return 32;
    case Format::bf16:
    case Format::fp16: return 16;
    case Format::fp8:
    case Format::fp8_row:
    case Format::fp8_block:
    case Format::mxfp8:
    case Format::int8: return 8;
    case Format::mxfp6: return 6;
    case Format::mxfp4:
    case Format::nvfp4:
    case Format::int4_group:
    case Format::int4_sym:
    case Format::nf4: return 4;
    }
    return 16;
}

/// Exact bytes of one matrix [rows, cols] with its scales.
constexpr Bytes matrix_bytes(WeightFormat const& w, std::int64_t rows, std::int64_t cols) noexcept {
    std::int64_t const n = rows * cols;
    switch (w.format) {
    case Format::fp32: return Bytes{4 * n};
    case Format::bf16:
    case Format::fp16: return Bytes{2 * n};
    case Format::fp8: return Bytes{n + 4};
    case Format::fp8_row: return Bytes{n + 4 * rows};
    case Format::fp8_block:
        return Bytes{n + w.scale_bytes * ceil_div(rows, w.block_rows) * ceil_div(cols, w.block_cols)};
    case Format::mxfp8: return Bytes{n + ceil_div(n, 32)};
    case Format::mxfp6: return Bytes{ceil_div(3 * n, 4) + ceil_div(n, 32)};
    case Format::mxfp4: return Bytes{ceil_div(n, 2) + ceil_div(n, 32)};
    case Format::nvfp4: return Bytes{ceil_div(n, 2) + ceil_div(n, 16) + 8};
    case Format::int8: return Bytes{n + 4 * rows};
    case Format::int4_group: return Bytes{ceil_div(n, 2) + 2 * ceil_div(n, w.group) + ceil_div(n, 2 * w.group)};
    case Format::int4_sym: return Bytes{ceil_div(n, 2) + 2 * ceil_div(n, w.group)};
    case Format::nf4: return Bytes{ceil_div(n, 2) + ceil_div(n, 64)};
    }
    return Bytes{2 * n};
}

/// Element format of KV cache rows.
enum class KvFormat : std::uint8_t { fp32, bf16, fp16, fp8, fp8_ds_mla, nvfp4, nvfp4_ds_mla, int8, q8_0, q4_0 };

constexpr std::string_view to_string(KvFormat f) noexcept {
    switch (f) {
    case KvFormat::fp32: return "fp32";
    case KvFormat::bf16: return "bf16";
    case KvFormat::fp16: return "fp16";
    case KvFormat::fp8: return "fp8";
    case KvFormat::fp8_ds_mla: return "fp8_ds_mla";
    case KvFormat::nvfp4: return "nvfp4";
    case KvFormat::nvfp4_ds_mla: return "nvfp4_ds_mla";
    case KvFormat::int8: return "int8";
    case KvFormat::q8_0: return "q8_0";
    case KvFormat::q4_0: return "q4_0";
    }
    return "?";
}

} // namespace servecap
