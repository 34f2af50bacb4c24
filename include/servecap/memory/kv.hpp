// servecap: bytes of the KV cache, by kind of token mixer, exact
// SPDX-License-Identifier: Apache-2.0
//
// A layer caches three things on a rank: rows that grow with every token (keys and values, latents,
// compressed entries, index keys), rows of a window that stop growing, and fixed buffers. Sizes follow
// the public vLLM sources (kv_cache_interface.py) and are confirmed by start-up logs:
//   GQA        heads * (key dim + value dim) * element size, heads = max(1, kv_heads / tp)
//   MLA        one row of kv_lora_rank + qk_rope on EVERY rank; fp8_ds_mla: rank + rank/128 fp32 scales + bf16 rope
//   indexer    one key of head_dim + scale per `key_pool` tokens: 132 bytes (fp8), 68 (mxfp4), 256 (bf16) for 128
//   V4         `ratio` tokens share one record: 584, 528, 512 or 288 bytes; a window of raw rows besides
// What an engine makes of it (pages, padding, groups) is not here. Light: no allocation beyond the model.

#pragma once

#include <cstdint>
#include <variant>

#include <servecap/catalog/format.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// Format of the index keys of sparse attention.
enum class IndexFormat : std::uint8_t {
    bf16,
    fp8,   ///< one byte a value and one fp32 scale per 128 values
    mxfp4, ///< half a byte a value and one e8m0 scale per 32 values
};

/// How one compressed entry of the DeepSeek V4 line is stored; decided by the GPU and the KV dtype.
enum class CompressedRecord : std::uint8_t {
    ds_mla, ///< 584 B: 448 fp8 + 64 bf16 rope + 8 scale bytes; pages rounded up to 576
    mxfp8,  ///< 528 B: 512 fp8 + 16 scale bytes; pages rounded up to 512
    fp8,    ///< 512 B, one scale a layer; pages rounded up to 512
    nvfp4,  ///< 288 B: 256 + 32 scale bytes
    bf16,   ///< 1024 B
};

/// What decides the size of cached rows on a rank.
struct KvOptions {
    KvFormat format = KvFormat::bf16;
    IndexFormat index = IndexFormat::fp8;
    CompressedRecord record = CompressedRecord::ds_mla;
    std::int32_t tp = 1;
};

/// Bytes of `n` cached values that lie in one row (one head's key or value), with their scales.
constexpr Bytes kv_vector_bytes(KvFormat f, std::int64_t n) noexcept {
    switch (f) {
    case KvFormat::fp32: return Bytes{4 * n};
    case KvFormat::bf16:
    case KvFormat::fp16: return Bytes{2 * n};
    case KvFormat::fp8:
    case KvFormat::fp8_ds_mla:
    case KvFormat::int8: return Bytes{n};
    case KvFormat::nvfp4:
    case KvFormat::nvfp4_ds_mla: return Bytes{ceil_div(n, 2) + ceil_div(n, 16)};
    case KvFormat::q8_0: return Bytes{ceil_div(n, 32) * 34};
    case KvFormat::q4_0: return Bytes{ceil_div(n, 32) * 18};
    }
    return Bytes{2 * n};
}

/// KV heads that one of `tp` ranks holds: a share, or one copied head when there are more ranks than heads.
constexpr std::int64_t kv_heads_on_rank(std::int32_t kv_heads, std::int32_t tp) noexcept {
    return kv_heads <= tp ? (kv_heads > 0 ? 1 : 0) : ceil_div(kv_heads, tp);
}

/// Key and value rows of one token of one layer on one rank, whoever may reuse them.
constexpr Bytes kv_token_bytes(Gqa const& a, KvOptions const& o) noexcept {
    if (a.reuses_kv) return Bytes{0};
    return kv_heads_on_rank(a.kv_heads, o.tp) * (kv_vector_bytes(o.format, a.head_dim) + kv_vector_bytes(o.format, a.v_head_dim));
}

/// The latent row of one token of one layer; whole on every rank.
constexpr Bytes kv_token_bytes(Mla const& a, KvOptions const& o) noexcept {
    switch (o.format) {
    case KvFormat::fp8_ds_mla: return Bytes{a.kv_lora_rank + 4 * ceil_div(a.kv_lora_rank, 128) + 2 * a.qk_rope};
    case KvFormat::nvfp4_ds_mla: return kv_vector_bytes(KvFormat::nvfp4, a.kv_lora_rank) + Bytes{2 * a.qk_rope};
    default: return kv_vector_bytes(o.format, a.kv_lora_rank + a.qk_rope);
    }
}

/// One key of the indexer, with its scale; shared by `key_pool` tokens. 0 where the layer owns no keys.
constexpr Bytes index_key_bytes(Indexer const& i, IndexFormat f) noexcept {
    if (!i.owns_keys) return Bytes{0};
    switch (f) {
    case IndexFormat::bf16: return Bytes{2 * i.head_dim};
    case IndexFormat::fp8: return Bytes{i.head_dim + 4 * ceil_div(i.head_dim, 128)};
    case IndexFormat::mxfp4: return Bytes{ceil_div(i.head_dim, 2) + ceil_div(i.head_dim, 32)};
    }
    return Bytes{0};
}

/// One compressed entry (or one raw row of the window) of the DeepSeek V4 line.
constexpr Bytes compressed_record_bytes(Compressed const& a, CompressedRecord r) noexcept {
    std::int64_t const plain = a.head_dim - a.qk_rope; // the part that fp8_ds_mla quantises
    switch (r) {
    case CompressedRecord::ds_mla: return Bytes{plain + 2 * a.qk_rope + round_up(ceil_div(plain, 64), 8)};
    case CompressedRecord::mxfp8: return Bytes{a.head_dim + ceil_div(a.head_dim, 32)};
    case CompressedRecord::fp8: return Bytes{a.head_dim};
    case CompressedRecord::nvfp4: return Bytes{ceil_div(a.head_dim, 2) + ceil_div(a.head_dim, 16)};
    case CompressedRecord::bf16: return Bytes{2 * a.head_dim};
    }
    return Bytes{2 * a.head_dim};
}

/// What pages of compressed entries are rounded up to, in bytes.
constexpr std::int64_t compressed_page_alignment(CompressedRecord r) noexcept {
    switch (r) {
    case CompressedRecord::ds_mla: return 576;
    case CompressedRecord::mxfp8:
    case CompressedRecord::fp8: return 512;
    case CompressedRecord::nvfp4:
    case CompressedRecord::bf16: return 1;
    }
    return 1;
}

/// Growing bytes of one sequence of `tokens` tokens in one mixer on one rank, before any paging.
constexpr Bytes kv_growing_bytes(Mixer const& m, KvOptions const& o, Tokens tokens) noexcept {
    std::int64_t const n = tokens.value();
    if (auto const* a = std::get_if<Gqa>(&m)) return kv_token_bytes(*a, o) * n;
    if (auto const* a = std::get_if<Mla>(&m)) return kv_token_bytes(*a, o) * n;
    if (auto const* a = std::get_if<SparseIndexed>(&m)) {
        Bytes const base = std::holds_alternative<Mla>(a->base) ? kv_token_bytes(std::get<Mla>(a->base), o)
                                                                : kv_token_bytes(std::get<Gqa>(a->base), o);
        std::int64_t const pool = a->indexer.key_pool > 1 ? a->indexer.key_pool : 1;
        return base * n + index_key_bytes(a->indexer, o.index) * ceil_div(n, pool);
    }
    if (auto const* a = std::get_if<Compressed>(&m)) {
        if (a->ratio <= 0 || !a->kv_source) return Bytes{0};
        std::int64_t const entries = ceil_div(n, a->ratio);
        Bytes const index = a->indexer ? index_key_bytes(*a->indexer, o.index) : Bytes{0};
        return (compressed_record_bytes(*a, o.record) + index) * entries;
    }
    return Bytes{0}; // windows and recurrent states stop growing
}

/// Bytes that windows of one sequence take in one mixer on one rank once they are full, before any paging.
constexpr Bytes kv_window_bytes(Mixer const& m, KvOptions const& o, Tokens tokens) noexcept {
    std::int64_t const n = tokens.value();
    if (auto const* a = std::get_if<SlidingWindow>(&m)) return kv_token_bytes(a->attn, o) * (n < a->window ? n : a->window);
    if (auto const* a = std::get_if<ChunkedLocal>(&m)) return kv_token_bytes(a->attn, o) * (n < a->chunk ? n : a->chunk);
    if (auto const* a = std::get_if<Compressed>(&m))
        return compressed_record_bytes(*a, o.record) * (n < a->window ? n : a->window);
    return Bytes{0};
}

/// Growing bytes of one sequence over the layers [first, last) of the trunk on one rank.
inline Bytes kv_growing_bytes(Model const& model, KvOptions const& o, Tokens tokens, std::size_t first = 0,
                              std::size_t last = static_cast<std::size_t>(-1)) noexcept {
    Bytes sum{0};
    for (std::size_t i = first; i < last && i < model.layers.size(); ++i)
        for (Mixer const& m : model.layers[i].mixers) sum += kv_growing_bytes(m, o, tokens);
    return sum;
}

/// Full windows of one sequence over the layers of the trunk on one rank.
inline Bytes kv_window_bytes(Model const& model, KvOptions const& o, Tokens tokens = Tokens{std::int64_t{1} << 40}) noexcept {
    Bytes sum{0};
    for (Layer const& l : model.layers)
        for (Mixer const& m : l.mixers) sum += kv_window_bytes(m, o, tokens);
    return sum;
}

/// Growing bytes of one token on one rank, rounded up once where several tokens share an entry.
inline Bytes kv_bytes_per_token(Model const& model, KvOptions const& o) noexcept {
    constexpr std::int64_t sample = std::int64_t{1} << 20; // every ratio in use divides it
    return Bytes{ceil_div(kv_growing_bytes(model, o, Tokens{sample}).value(), sample)};
}

} // namespace servecap
