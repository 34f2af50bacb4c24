// servecap: how vLLM lays the caches of a model's layers into one pool of blocks
// SPDX-License-Identifier: Apache-2.0
//
// Every cached thing of a layer becomes a spec with a page; specs that can share block tables become
// groups; one block holds one page of every layer of the widest group. Then
//   pages of a request = sum over groups of the pages that a request of n tokens holds,
//   blocks = pool / bytes of a block (smallest stage), tokens logged = blocks / pages * max_model_len.
// Written from the public sources (vllm/v1/core/kv_cache_utils.py, kv_cache_interface.py, platforms/
// interface.py, versions 0.11 to 0.33) as integer arithmetic; compared with logs block by block.
// Not modelled: caches of a drafter whose shape is not in the model, CPU and TPU layouts.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <servecap/catalog/model.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/vllm_version.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// What decides how many pages a request holds.
enum class CacheKind : std::uint8_t { full, window, chunk, recurrent, ring };

/// One cached thing of one layer, as the engine's spec of it.
struct CacheSpec {
    CacheKind kind = CacheKind::full;
    std::int32_t layer = 0;     ///< of the trunk; MTP layers count on after the last
    bool latent = false;        ///< MLA or index rows: never padded, whole on every rank
    bool index = false;         ///< rows of an indexer
    Tokens block{16};           ///< tokens of one page
    Bytes page{};               ///< bytes of one page on one rank
    std::int64_t window = 0;    ///< window or chunk: tokens
    std::int64_t ratio = 1;     ///< tokens of one stored row

    [[nodiscard]] bool same_slots(CacheSpec const& o) const noexcept {
        return kind == o.kind && (kind == CacheKind::recurrent || block == o.block) &&
               (kind == CacheKind::full || kind == CacheKind::recurrent || kind == CacheKind::ring || window == o.window);
    }
    friend bool operator==(CacheSpec const& a, CacheSpec const& b) noexcept {
        return a.kind == b.kind && a.latent == b.latent && a.index == b.index && a.block == b.block && a.page == b.page &&
               a.window == b.window && a.ratio == b.ratio;
    }
};

/// Everything beside the model that decides the layout of the pool.
struct CacheOptions {
    Layout layout;
    KvOptions kv;
    StateOptions state;
    MambaCacheMode mode = MambaCacheMode::none;
    std::int64_t kernel_block = 16;          ///< what the attention kernel asks of a block
    std::optional<std::int64_t> user_block;  ///< --block-size
    std::int64_t draft_tokens = 0;
    bool draft_cached = false;               ///< the MTP layers of the model draft, and cache like its own
    std::optional<SlidingWindow> drafter;    ///< layers of a separate drafter, which cache in 16 bits
    std::int32_t drafter_layers = 0;
    std::int64_t drafter_block = 16;         ///< tokens of a page of the drafter
    bool internal_checkpoint = false;        ///< the prefill kernel stores a state inside a block (FlashKDA)
    bool hybrid_manager = true;
    std::int64_t window_block = 0;           ///< V4 line: tokens of a page of raw rows; 0 = by the rule
    std::int64_t block_alignment = 1;        ///< bytes that a block of packed groups is rounded up to
    bool states_outside = false;             ///< the first engine kept recurrent states beside the pool
    std::int64_t block_divides = 0;          ///< > 0: a hybrid block is lengthened until it divides this many tokens
    std::int32_t extra_recurrent = 0;        ///< recurrent layers beside the mixers (n-gram convolution of Qwen 4 Exp)
    std::vector<std::int32_t> partition;     ///< layers of each pipeline stage; empty = the engine's own
};


/// Specs that share block tables.
struct CacheGroup {
    CacheKind kind = CacheKind::full;
    Tokens block{16};
    std::int64_t window = 0;
    std::int64_t copies = 1; ///< equal groups counted once
    Bytes widest{};          ///< pages of all its layers, whole model
};

/// The pool's layout. Pages of a request depend on nothing else.
struct CacheLayout {
    std::vector<CacheGroup> groups;          ///< distinct kinds; `copies` of each
    std::vector<Bytes> bytes_per_block;      ///< of each pipeline stage
    Tokens block{16};                        ///< of the attention group, what people call the block size
    Tokens smallest_block{16};               ///< what block counts are multiplied with in older logs
    std::int64_t group_count = 1;
    std::int64_t dcp = 1;
    std::int64_t recurrent_pages = 1;        ///< pages of one request in one recurrent group (none, align)
    bool recurrent = false;
    bool recurrent_by_blocks = false;        ///< mode all: one page a block of tokens
    bool weighted = false;                   ///< pages count by their bytes against the first group (slots by page size)
    Bytes tuple_page{};                      ///< weighted: the page with which the length is checked (whole layer tuples)
    std::int64_t drafts_kept = 0;            ///< tokens that multi-module drafters keep beyond a window
    Bytes recurrent_state{};                 ///< one layer, before padding
    double recurrent_padding = 0;            ///< share that padding adds to a recurrent page
    std::string note;                        ///< what is not modelled, if anything

    /// Pages that a request of `n` tokens holds when `in_flight` tokens are being computed.
    [[nodiscard]] std::int64_t pages(std::int64_t n, std::int64_t in_flight) const noexcept { return count(n, in_flight, weighted); }

    /// The same as the check of the length counts them: never weighed.
    [[nodiscard]] std::int64_t checked_pages(std::int64_t n, std::int64_t in_flight) const noexcept { return count(n, in_flight, false); }
    /// Bytes of a page in that check.
    [[nodiscard]] Bytes checked_page(std::size_t stage) const noexcept { return weighted ? tuple_page : bytes_per_block[stage]; }

    [[nodiscard]] std::int64_t count(std::int64_t n, std::int64_t in_flight, bool weigh) const noexcept {
        std::int64_t sum = 0, weighted_bytes = 0;
        for (CacheGroup const& g : groups) {
            std::int64_t const b = g.block.value();
            std::int64_t p = 0;
            switch (g.kind) {
            case CacheKind::full: p = ceil_div(ceil_div(n, dcp), b); break;
            case CacheKind::window: p = ceil_div(std::min(g.window - 1 + drafts_kept + in_flight, n), b) + 1; break;
            case CacheKind::chunk: p = ceil_div(std::min(g.window + in_flight, n), b); break;
            case CacheKind::recurrent: p = recurrent_by_blocks ? ceil_div(n, b) + recurrent_pages : recurrent_pages; break;
            case CacheKind::ring: p = 1; break;
            }
            sum += p * g.copies;
            if (weigh) weighted_bytes += p * g.copies * g.widest.value();
        }
        return weigh ? ceil_div(weighted_bytes, groups.front().widest.value()) : sum;
    }

    /// The longest request whose pages are at most `limit`; 0 when not even one token fits.
    [[nodiscard]] std::int64_t longest(std::int64_t limit, std::int64_t in_flight, std::int64_t most) const noexcept {
        if (most <= 0 || checked_pages(1, in_flight) > limit) return 0;
        std::int64_t low = 1, high = most;
        while (low < high) {
            std::int64_t const mid = low + (high - low + 1) / 2;
            if (checked_pages(mid, in_flight) <= limit)
                low = mid;
            else
                high = mid - 1;
        }
        return low;
    }
};

namespace detail {

/// Layers of the trunk and, when they cache, the MTP layers after it.
inline std::vector<Layer const*> cached_layers(Model const& m, CacheOptions const& o) {
    std::vector<Layer const*> all;
    for (Layer const& l : m.layers) all.push_back(&l);
    if (o.draft_cached)
        for (Layer const& l : m.mtp_layers) all.push_back(&l);
    return all;
}

inline bool has_recurrent(std::vector<Layer const*> const& layers) {
    for (Layer const* l : layers)
        for (Mixer const& x : l->mixers)
            if (is_recurrent(x)) return true;
    return false;
}

/// Bytes of one token of the attention layer that decides the hybrid block, and whether it is a latent.
inline std::pair<Bytes, bool> attention_token(std::vector<Layer const*> const& layers, KvOptions const& kv) {
    for (Layer const* l : layers)
        for (Mixer const& x : l->mixers) {
            if (auto const* a = std::get_if<Gqa>(&x)) return {kv_token_bytes(*a, kv), false};
            if (auto const* a = std::get_if<SlidingWindow>(&x)) return {kv_token_bytes(a->attn, kv), false};
            if (auto const* a = std::get_if<Mla>(&x)) return {kv_token_bytes(*a, kv), true};
            if (auto const* a = std::get_if<SparseIndexed>(&x)) {
                bool const mla = std::holds_alternative<Mla>(a->base);
                return {mla ? kv_token_bytes(std::get<Mla>(a->base), kv) : kv_token_bytes(std::get<Gqa>(a->base), kv), mla};
            }
        }
    return {Bytes{0}, false};
}

/// Largest state of one recurrent mixer.
inline Bytes largest_state(std::vector<Layer const*> const& layers, StateOptions const& s) {
    Bytes most{0};
    for (Layer const* l : layers)
        for (Mixer const& x : l->mixers)
            if (is_recurrent(x)) most = std::max(most, state_bytes(x, s));
    return most;
}

inline std::int64_t gcd(std::int64_t a, std::int64_t b) noexcept {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
}

/// Rows that the V4 line keeps to compress the next entry: fp32, key part and score part; ratio 4 overlaps two windows.
struct CompressorState {
    std::int64_t block = 0;  ///< tokens of a page
    std::int64_t window = 0; ///< tokens kept
    std::int64_t width = 0;  ///< fp32 values a token
};
constexpr CompressorState compressor_state(std::int64_t ratio, std::int64_t head_dim) noexcept {
    bool const overlaps = ratio <= 4;
    return {overlaps ? 4 : 8, overlaps ? 2 * ratio : ratio, (overlaps ? 2 : 1) * 2 * head_dim};
}

} // namespace detail

/// The block that a hybrid model's attention layers get, and the page that its states are padded to.
/// mode none and align: a multiple of `align` tokens that holds one state; all: a multiple of the state kernel's chunk.
inline std::pair<Tokens, Bytes> hybrid_block(Bytes token, Bytes state, std::int64_t align, MambaCacheMode mode, std::int64_t chunk,
                                             std::int64_t user_block) noexcept {
    std::int64_t block = 0;
    if (mode == MambaCacheMode::all) {
        std::int64_t const unit = align / detail::gcd(align, chunk) * chunk;
        block = round_up(ceil_div(state.value(), token.value()), unit);
    } else {
        block = align * ceil_div(state.value(), align * token.value());
    }
    block = std::max(block, user_block);
    return {Tokens{block}, Bytes{block * token.value()}};
}

/// Specs of every cached thing, layer by layer in the engine's order.
inline std::vector<CacheSpec> cache_specs(Model const& model, CacheOptions const& o, CacheLayout& out) {
    auto const layers = detail::cached_layers(model, o);
    bool const recurrent = detail::has_recurrent(layers) && !o.states_outside;
    auto const [token, latent] = detail::attention_token(layers, o.kv);

    std::int64_t block = o.user_block ? *o.user_block : std::max<std::int64_t>(16, o.kernel_block);
    if (!recurrent) block = round_up(block, std::max<std::int64_t>(1, std::min<std::int64_t>(o.kernel_block, 64)));
    Bytes padded{0};
    out.recurrent = recurrent;
    if (recurrent) {
        out.recurrent_state = detail::largest_state(layers, o.state);
        if (token.value() > 0) {
            std::int64_t chunk = 256; // of the Mamba kernels; only mode all asks
            auto const [b, page] = hybrid_block(token, out.recurrent_state, o.kernel_block, o.mode, chunk, o.user_block.value_or(0));
            block = b.value();
            padded = page;
            if (o.block_divides > 0) {
                std::int64_t longer = block;
                while (longer < o.block_divides && o.block_divides % longer != 0) longer += o.kernel_block;
                if (o.block_divides % longer == 0) block = longer, padded = token * longer;
            }
        } else {
            padded = out.recurrent_state;
        }
        out.recurrent_padding = out.recurrent_state.value() > 0 ? padded / out.recurrent_state - 1.0 : 0.0;
        out.recurrent_by_blocks = o.mode == MambaCacheMode::all;
        out.recurrent_pages = o.mode == MambaCacheMode::none    ? 1 + o.draft_tokens
                              : o.mode == MambaCacheMode::align ? 2 + o.draft_tokens + (o.internal_checkpoint ? 1 : 0)
                                                                : o.draft_tokens;
    }
    out.block = Tokens{block};

    std::vector<CacheSpec> specs;
    auto const add = [&](CacheSpec s, std::size_t layer) {
        s.layer = static_cast<std::int32_t>(layer);
        specs.push_back(s);
    };
    auto const rows = [&](Bytes per_token, bool is_latent) {
        CacheSpec s;
        s.latent = is_latent;
        s.block = Tokens{block};
        s.page = per_token * block;
        return s;
    };
    for (std::size_t i = 0; i < layers.size(); ++i) {
        for (Mixer const& x : layers[i]->mixers) {
            if (auto const* a = std::get_if<Gqa>(&x)) {
                if (!a->reuses_kv) add(rows(kv_token_bytes(*a, o.kv), false), i);
            } else if (auto const* a = std::get_if<Mla>(&x)) {
                add(rows(kv_token_bytes(*a, o.kv), true), i);
            } else if (auto const* a = std::get_if<SlidingWindow>(&x)) {
                if (a->attn.reuses_kv) continue;
                CacheSpec s = rows(kv_token_bytes(a->attn, o.kv), false);
                if (o.hybrid_manager) {
                    s.kind = CacheKind::window;
                    s.window = a->window;
                }
                add(s, i);
            } else if (auto const* a = std::get_if<ChunkedLocal>(&x)) {
                if (a->attn.reuses_kv) continue;
                CacheSpec s = rows(kv_token_bytes(a->attn, o.kv), false);
                if (o.hybrid_manager) {
                    s.kind = CacheKind::chunk;
                    s.window = a->chunk;
                }
                add(s, i);
            } else if (auto const* a = std::get_if<SparseIndexed>(&x)) {
                bool const mla = std::holds_alternative<Mla>(a->base);
                add(rows(mla ? kv_token_bytes(std::get<Mla>(a->base), o.kv) : kv_token_bytes(std::get<Gqa>(a->base), o.kv), mla), i);
                if (!a->indexer.owns_keys) continue;
                CacheSpec s = rows(index_key_bytes(a->indexer, o.kv.index), true);
                s.index = true;
                s.ratio = std::max(1, a->indexer.key_pool);
                s.page = index_key_bytes(a->indexer, o.kv.index) * ceil_div(block, s.ratio);
                add(s, i);
                if (s.ratio > 1) { // raw keys of the unfinished pool
                    CacheSpec tail;
                    tail.kind = CacheKind::ring;
                    tail.index = true;
                    tail.block = Tokens{s.ratio};
                    tail.page = s.page; // sits in an index slot
                    add(tail, i);
                }
            } else if (auto const* a = std::get_if<Compressed>(&x)) {
                std::int64_t const align = compressed_page_alignment(o.kv.record);
                Bytes const record = compressed_record_bytes(*a, o.kv.record);
                bool const rings = model.model_type == "deepseek_v41";
                std::int64_t const wb = o.window_block > 0 ? o.window_block : rings ? 32 : 64;
                auto const page = [&](std::int64_t bytes) { return Bytes{round_up(bytes, align)}; };
                if (a->window > 0) {
                    CacheSpec s;
                    s.kind = o.hybrid_manager ? CacheKind::window : CacheKind::full;
                    s.latent = true;
                    s.window = a->window;
                    s.block = Tokens{wb};
                    s.page = page(record.value() * wb);
                    add(s, i);
                }
                if (a->ratio <= 0 || !a->kv_source) continue;
                CacheSpec s;
                s.latent = true;
                s.block = Tokens{block};
                s.ratio = a->ratio;
                s.page = page(record.value() * (block / a->ratio));
                add(s, i);
                bool const indexed = a->indexer && a->indexer->owns_keys;
                if (indexed) {
                    CacheSpec k = s;
                    k.index = true;
                    k.page = page(index_key_bytes(*a->indexer, o.kv.index).value() * (block / a->ratio));
                    add(k, i);
                }
                if (rings) {
                    if (a->ratio > 1) {
                        CacheSpec ring;
                        ring.kind = CacheKind::ring;
                        ring.block = Tokens{8};
                        ring.page = page(8 * 4 * 2 * a->head_dim);
                        add(ring, i);
                    }
                    continue;
                }
                auto const state = [&](std::int64_t width) {
                    auto const c = detail::compressor_state(a->ratio, width);
                    CacheSpec st;
                    st.kind = CacheKind::window;
                    st.window = c.window;
                    st.block = Tokens{c.block};
                    st.page = page(c.block * c.width * 4);
                    return st;
                };
                add(state(a->head_dim), i);
                if (indexed) add(state(a->indexer->head_dim), i);
            } else if (recurrent) {
                CacheSpec s;
                s.kind = CacheKind::recurrent;
                s.block = Tokens{block};
                s.page = std::max(padded, state_bytes(x, o.state));
                add(s, i);
            }
        }
    }
    for (std::int32_t e = 0; e < o.drafter_layers && o.drafter; ++e) {
        KvOptions kv = o.kv;
        kv.format = KvFormat::bf16;
        CacheSpec s;
        s.kind = CacheKind::window;
        s.window = o.drafter->window;
        s.block = Tokens{o.drafter_block};
        s.page = kv_token_bytes(o.drafter->attn, kv) * o.drafter_block;
        add(s, layers.empty() ? 0 : layers.size() - 1);
    }
    for (std::int32_t e = 0; e < o.extra_recurrent && recurrent; ++e) {
        CacheSpec s;
        s.kind = CacheKind::recurrent;
        s.block = Tokens{block};
        s.page = padded;
        add(s, 0);
    }
    return specs;
}

namespace detail {

/// Groups with equal counting rules written once.
inline void add_group(CacheLayout& out, CacheSpec const& s, std::int64_t copies, Bytes widest) {
    ++out.group_count;
    out.group_count += copies - 1;
    for (CacheGroup& g : out.groups)
        if (g.kind == s.kind && g.block == s.block && g.window == s.window && g.widest == widest) {
            g.copies += copies;
            return;
        }
    out.groups.push_back({s.kind, s.block, s.window, copies, widest});
}

struct Stages {
    std::vector<std::int32_t> first; ///< first layer of each stage
    [[nodiscard]] std::size_t of(std::int32_t layer) const {
        std::size_t s = 0;
        while (s + 1 < first.size() && layer >= first[s + 1]) ++s;
        return s;
    }
};

/// One bucket per counting rule, in the order of layers.
inline std::vector<std::vector<CacheSpec>> buckets_by_slots(std::vector<CacheSpec> const& specs) {
    std::vector<std::vector<CacheSpec>> buckets;
    for (CacheSpec const& s : specs) {
        auto it = std::find_if(buckets.begin(), buckets.end(), [&](auto const& b) { return b.front().same_slots(s); });
        if (it == buckets.end())
            buckets.push_back({s});
        else
            it->push_back(s);
    }
    return buckets;
}

inline Bytes sum_pages(std::vector<CacheSpec> const& specs) {
    Bytes b{0};
    for (CacheSpec const& s : specs) b += s.page;
    return b;
}

/// Layers of one bucket dealt round-robin by page size into `groups` groups.
inline std::vector<std::vector<CacheSpec>> deal(std::vector<CacheSpec> const& bucket, std::int64_t groups) {
    std::vector<std::vector<CacheSpec>> out(static_cast<std::size_t>(groups));
    std::vector<std::pair<Bytes, std::int64_t>> seen;
    for (CacheSpec const& s : bucket) {
        auto it = std::find_if(seen.begin(), seen.end(), [&](auto const& p) { return p.first == s.page; });
        if (it == seen.end()) it = seen.insert(seen.end(), {s.page, 0});
        out[static_cast<std::size_t>(it->second++ % groups)].push_back(s);
    }
    return out;
}

/// Largest count of layers with one page size, and the number of page sizes.
struct PageCounts {
    std::int64_t most = 0;
    std::int64_t sizes = 0;
    bool balanced = true;
};
inline PageCounts page_counts(std::vector<CacheSpec> const& bucket) {
    std::vector<std::pair<Bytes, std::int64_t>> n;
    for (CacheSpec const& s : bucket) {
        auto it = std::find_if(n.begin(), n.end(), [&](auto const& p) { return p.first == s.page; });
        if (it == n.end())
            n.push_back({s.page, 1});
        else
            ++it->second;
    }
    PageCounts c;
    c.sizes = static_cast<std::int64_t>(n.size());
    for (auto const& [page, count] : n) {
        c.most = std::max(c.most, count);
        c.balanced = c.balanced && count == n.front().second;
    }
    return c;
}

/// Packed groups: the groups of one block overlay one another, layers within a group lie side by side.
inline std::vector<std::vector<CacheSpec>> packed_groups(std::vector<CacheSpec> const& specs) {
    auto const buckets = buckets_by_slots(specs);
    std::vector<PageCounts> counts;
    for (auto const& b : buckets) counts.push_back(page_counts(b));
    std::int64_t floor = 0, ceiling = 0;
    for (PageCounts const& c : counts) {
        if (!c.balanced) continue;
        ceiling = std::max(ceiling, c.most);
        if (c.sizes > 1) floor = std::max(floor, c.most);
    }
    std::int64_t repeats = 0, best = -1;
    for (std::int64_t d = floor; floor > 0 && d <= ceiling; ++d) {
        std::int64_t padding = 0;
        for (PageCounts const& c : counts)
            if (c.balanced) padding += (d - c.most % d) % d;
        if (best < 0 || padding <= best) {
            best = padding;
            repeats = d;
        }
    }
    std::vector<std::vector<CacheSpec>> groups;
    auto const is_state = [&](CacheSpec const& s) {
        return s.kind == CacheKind::recurrent || s.kind == CacheKind::ring || (s.kind == CacheKind::window && repeats == 0);
    };
    Bytes anchor{0};
    std::vector<std::int64_t> of(buckets.size(), 1);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        if (counts[i].balanced && repeats > 0) of[i] = ceil_div(counts[i].most, repeats);
        if (is_state(buckets[i].front())) {
            for (CacheSpec const& s : buckets[i]) anchor = std::max(anchor, s.page); // counted with one layer a group
        } else {
            for (auto const& g : deal(buckets[i], of[i])) anchor = std::max(anchor, sum_pages(g));
        }
    }
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        std::int64_t n = of[i];
        if (is_state(buckets[i].front())) {
            std::int64_t const fit = std::max<std::int64_t>(1, anchor.value() / buckets[i].front().page.value());
            n = std::max(n, ceil_div(static_cast<std::int64_t>(buckets[i].size()), fit));
        }
        for (auto& g : deal(buckets[i], n))
            if (!g.empty()) groups.push_back(std::move(g));
    }
    return groups;
}

/// The scheme of V4 before packed groups: every group has slots of each page size, pages of windows are padded up to
/// the next page size in use, and a block holds for each size as many slots as the group that uses most.
inline std::vector<std::vector<CacheSpec>> slot_groups(std::vector<CacheSpec> specs) {
    std::vector<Bytes> sizes; // pages of the attention layers, which windows share
    for (CacheSpec const& s : specs)
        if (s.kind == CacheKind::full && std::find(sizes.begin(), sizes.end(), s.page) == sizes.end()) sizes.push_back(s.page);
    std::sort(sizes.begin(), sizes.end());
    for (CacheSpec& s : specs)
        if (s.kind != CacheKind::full)
            if (auto it = std::lower_bound(sizes.begin(), sizes.end(), s.page); it != sizes.end()) s.page = *it;
    auto const buckets = buckets_by_slots(specs);
    std::int64_t most = 0;
    for (auto const& b : buckets)
        if (b.front().kind == CacheKind::full) most = std::max(most, page_counts(b).most);
    std::vector<std::vector<CacheSpec>> groups;
    for (auto const& b : buckets) { // the full group first: pages are weighed against it
        if (b.front().kind == CacheKind::full) groups.push_back(b);
    }
    for (auto const& b : buckets) {
        if (b.front().kind == CacheKind::full) continue;
        PageCounts const c = page_counts(b);
        std::int64_t const n = c.most <= most + most / 2 ? 1 : ceil_div(c.most, std::max<std::int64_t>(1, most) + 1);
        for (auto& g : deal(b, n))
            if (!g.empty()) groups.push_back(std::move(g));
    }
    return groups;
}

/// Bytes of a block in each stage, and the groups, from groups of specs.
inline void finish(CacheLayout& out, std::vector<std::vector<CacheSpec>> const& groups, Stages const& stages, bool slots,
                   std::int64_t alignment) {
    out.groups.clear();
    out.group_count = 0;
    std::size_t const n = stages.first.size();
    out.bytes_per_block.assign(n, Bytes{0});
    std::vector<std::vector<std::pair<Bytes, std::int64_t>>> slot(n);
    for (auto const& g : groups) {
        std::vector<Bytes> bytes(n, Bytes{0});
        std::vector<std::vector<std::pair<Bytes, std::int64_t>>> count(n);
        for (CacheSpec const& s : g) {
            std::size_t const st = stages.of(s.layer);
            bytes[st] += s.page;
            auto& c = count[st];
            auto it = std::find_if(c.begin(), c.end(), [&](auto const& p) { return p.first == s.page; });
            if (it == c.end())
                c.push_back({s.page, 1});
            else
                ++it->second;
        }
        for (std::size_t st = 0; st < n; ++st) {
            if (!slots) {
                out.bytes_per_block[st] = std::max(out.bytes_per_block[st], bytes[st]);
                continue;
            }
            for (auto const& have : count[st]) {
                auto it = std::find_if(slot[st].begin(), slot[st].end(), [&](auto const& p) { return p.first == have.first; });
                if (it == slot[st].end())
                    slot[st].push_back(have);
                else
                    it->second = std::max(it->second, have.second);
            }
        }
        add_group(out, g.front(), 1, sum_pages(g));
    }
    if (slots)
        for (std::size_t st = 0; st < n; ++st) {
            // blocks hold the slots in use; the check of the length reckons with whole tuples of one slot of each size
            std::int64_t tuples = 0;
            Bytes tuple{0};
            for (auto const& [page, k] : slot[st]) {
                out.bytes_per_block[st] += page * k;
                tuples = std::max(tuples, k);
                tuple += page;
            }
            out.tuple_page = std::max(out.tuple_page, tuple * tuples);
        }
    if (alignment > 1)
        for (Bytes& b : out.bytes_per_block) b = Bytes{round_up(b.value(), alignment)};
    out.smallest_block = Tokens{std::int64_t{1} << 40};
    for (CacheGroup const& g : out.groups)
        if (g.kind != CacheKind::recurrent || out.recurrent_by_blocks) out.smallest_block = std::min(out.smallest_block, g.block);
    if (out.smallest_block.value() == std::int64_t{1} << 40) out.smallest_block = out.block;
}

} // namespace detail

/// The whole layout of the pool of one rank.
inline CacheLayout cache_layout(Model const& model, CacheOptions const& o, VllmRules const& rules) {
    CacheLayout out;
    out.dcp = std::max(1, o.layout.dcp);
    std::vector<CacheSpec> specs = cache_specs(model, o, out);

    detail::Stages stages;
    if (o.partition.empty()) {
        for (auto const& [first, n] : pipeline_stages(static_cast<std::int32_t>(model.layers.size()), std::max(1, o.layout.pp)))
            stages.first.push_back(first);
    } else {
        std::int32_t first = 0;
        for (std::int32_t n : o.partition) {
            stages.first.push_back(first);
            first += n;
        }
    }
    if (specs.empty()) {
        out.bytes_per_block.assign(stages.first.size(), Bytes{0});
        return out;
    }

    auto const all_of = [&](auto f) { return std::all_of(specs.begin(), specs.end(), f); };
    auto const any_of = [&](auto f) { return std::any_of(specs.begin(), specs.end(), f); };

    // 1 and 2: one counting rule for all layers: one group, each layer keeps its page
    if (all_of([&](CacheSpec const& s) { return s.same_slots(specs.front()); })) {
        detail::finish(out, {specs}, stages, false, 1);
        return out;
    }

    bool const compressed = any_of([](CacheSpec const& s) { return s.kind == CacheKind::window && s.latent; });
    if (compressed) { // V4 and V4.1
        bool const slots = !rules.packed_groups;
        detail::finish(out, slots ? detail::slot_groups(specs) : detail::packed_groups(specs), stages, slots, o.block_alignment);
        out.weighted = slots;
        return out;
    }

    // 3: latents or rows, index keys and recurrent states (GLM-5.3-Flash, Qwen3.8-Flash-Next)
    bool const indexed = any_of([](CacheSpec const& s) { return s.index; });
    bool const recurrent = any_of([](CacheSpec const& s) { return s.kind == CacheKind::recurrent; });
    if (indexed && recurrent) {
        std::vector<std::int64_t> rows(stages.first.size(), 0), states(stages.first.size(), 0);
        std::vector<CacheSpec> main, tails, states_all, draft;
        for (CacheSpec const& s : specs) {
            if (s.kind == CacheKind::window) {
                draft.push_back(s);
            } else if (s.kind == CacheKind::recurrent) {
                states_all.push_back(s);
                ++states[stages.of(s.layer)];
            } else if (s.kind == CacheKind::ring) {
                tails.push_back(s);
            } else {
                main.push_back(s);
                if (!s.index) ++rows[stages.of(s.layer)];
            }
        }
        std::int64_t groups = 1;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (states[i] > 0) groups = std::max(groups, ceil_div(states[i], std::max<std::int64_t>(1, rows[i])));
        detail::finish(out, {main}, stages, false, 1); // states sit in row slots, tails in index slots
        if (!draft.empty()) { // a drafter's pages lie beside them
            out.bytes_per_block.back() += detail::sum_pages(draft);
            detail::add_group(out, draft.front(), 1, detail::sum_pages(draft));
        }
        if (!tails.empty()) detail::add_group(out, tails.front(), 1, detail::sum_pages(tails));
        detail::add_group(out, states_all.front(), groups, Bytes{detail::sum_pages(states_all).value() / groups});
        return out;
    }

    // 5: equal pages. States are padded; a page that divides the largest gets a longer block; other rows are padded.
    Bytes target{0};
    for (CacheSpec const& s : specs) target = std::max(target, s.page);
    for (CacheSpec& s : specs) {
        if (s.page == target) continue;
        if (s.kind != CacheKind::recurrent && s.kind != CacheKind::ring && target.value() % s.page.value() == 0)
            s.block = Tokens{s.block.value() * (target.value() / s.page.value())};
        s.page = target;
    }
    std::vector<std::vector<CacheSpec>> buckets;
    for (CacheSpec const& s : specs) {
        auto it = std::find_if(buckets.begin(), buckets.end(), [&](auto const& b) { return b.front() == s; });
        if (it == buckets.end())
            buckets.push_back({s});
        else
            it->push_back(s);
    }
    std::int64_t low = static_cast<std::int64_t>(buckets.front().size()), high = low;
    for (auto const& b : buckets) {
        low = std::min(low, static_cast<std::int64_t>(b.size()));
        high = std::max(high, static_cast<std::int64_t>(b.size()));
    }
    std::int64_t const size = 2 * high < 3 * low ? high : low;
    std::vector<std::vector<CacheSpec>> groups;
    for (auto const& b : buckets) {
        std::int64_t const n = ceil_div(static_cast<std::int64_t>(b.size()), size);
        std::vector<std::vector<CacheSpec>> dealt(static_cast<std::size_t>(n));
        for (std::size_t j = 0; j < b.size(); ++j) dealt[j % static_cast<std::size_t>(n)].push_back(b[j]);
        for (auto& g : dealt) groups.push_back(std::move(g));
    }
    detail::finish(out, groups, stages, false, 1);
    if (stages.first.size() == 1) out.bytes_per_block.front() = target * size; // groups are padded to `size` layers
    for (CacheGroup& g : out.groups) g.widest = target * size;
    std::vector<CacheGroup> merged; // equal counting rules once
    for (CacheGroup const& g : out.groups) {
        auto it = std::find_if(merged.begin(), merged.end(), [&](CacheGroup const& m) {
            return m.kind == g.kind && m.block == g.block && m.window == g.window;
        });
        if (it == merged.end())
            merged.push_back(g);
        else
            it->copies += g.copies;
    }
    out.groups = std::move(merged);
    return out;
}

} // namespace servecap
