// servecap: what SGLang makes of a GPU's memory
// SPDX-License-Identifier: Apache-2.0
//
// SGLang sizes its caches from free memory, without a dummy run:
//   pre    = free before the weights (after the process group is set up), post = free after them
//   budget = post - pre * (1 - static fraction); what lies outside holds activations and graphs
//   budget -> recurrent state (a share of it, 0.9 : 1.9) -> tokens = rest / bytes of a token, in whole pages
// The static fraction has an automatic value from the GPU's size, the prefill chunk, the graph batch and
// the parallel sizes. A pool smaller than the context does not stop the start: longer requests are refused.
// Sources: sglang server_args.py, arg_groups/gpu memory hook, model_runner_kv_cache_mixin.py,
// pool_configurator.py (0.5.6 to 0.5.19); compared with public start-up logs. What is estimated: `pre`
// (an idle card's free memory) and what loading takes beside the weights; the interval of the tokens spans
// both. Not modelled: HiSparse, post-capture sizing (opt-in), host offload of KV.

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <servecap/core/text.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/support.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>

namespace servecap {

/// A version 0.5.patch of SGLang; `guessed` when it is placed by a date or a default.
struct SglangVersion {
    std::int32_t minor = 5;
    std::int32_t patch = 19;
    bool guessed = false;

    /// minor * 100 + patch, the number that rules compare.
    [[nodiscard]] constexpr std::int32_t number() const noexcept { return minor * 100 + (patch < 99 ? patch : 99); }
};

struct SglangRelease {
    std::int32_t patch;
    std::string_view date;
};

/// Releases of 0.5 and when they appeared; from 0.5.10 on placed by the oldest public log or issue that names them.
inline constexpr std::array<SglangRelease, 19> kSglangReleases{{
    {1, "2025-08-23"},  {2, "2025-09-12"},  {3, "2025-10-06"},  {4, "2025-10-26"},  {5, "2025-11-06"},
    {6, "2025-12-03"},  {7, "2026-01-01"},  {8, "2026-01-23"},  {9, "2026-02-24"},  {10, "2026-04-06"},
    {11, "2026-04-25"}, {12, "2026-05-15"}, {13, "2026-06-05"}, {14, "2026-06-25"}, {15, "2026-07-10"},
    {16, "2026-07-25"}, {17, "2026-08-10"}, {18, "2026-08-25"}, {19, "2026-09-10"},
}};

/// Reads "0.5.9", "v0.5.6.post1", "0.5.19-cu129"; what holds no version is placed by the date, else the newest modelled.
inline SglangVersion parse_sglang_version(std::string_view text, std::string_view date = {}) {
    SglangVersion v;
    for (std::size_t i = text.find("0."); i != std::string_view::npos; i = text.find("0.", i + 1)) {
        if (i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9') continue;
        std::int32_t minor = -1, patch = 0;
        auto const [end, ec] = std::from_chars(text.data() + i + 2, text.data() + text.size(), minor);
        if (ec != std::errc{} || minor < 1 || minor > 99) continue;
        if (end + 1 < text.data() + text.size() && *end == '.') std::from_chars(end + 1, text.data() + text.size(), patch);
        v.minor = minor;
        v.patch = patch;
        v.guessed = v.number() > 519;
        return v;
    }
    v.guessed = true;
    if (date.size() >= 7 && date[4] == '-') {
        v.patch = kSglangReleases.front().patch;
        std::size_t const n = date.size() < 10 ? 7 : 10;
        for (SglangRelease const& r : kSglangReleases)
            if (r.date.substr(0, n) <= date.substr(0, n)) v.patch = r.patch;
    }
    return v;
}

inline std::string to_string(SglangVersion const& v) { return "0." + std::to_string(v.minor) + "." + std::to_string(v.patch); }

/// The rules of one version.
struct SglangRules {
    SglangVersion version;
    bool prefill_graphs = true; ///< the automatic fraction reserves for prefill graphs; drafts are loaded before the profile
    bool padding_slot = false;  ///< the solve of the state pool reserves its extra row
    bool draft_in_cell = true;  ///< draft layers are part of the bytes of a token
    bool request_compressor_state = true; ///< V4: the state of ratio 128 is per request, before: per token
    bool v4_counts_mtp = false;           ///< V4: the window pool counts the MTP layer
    double v4_window_ratio = 0.1;         ///< V4: window tokens for each full token
    bool extra_buffer = true;             ///< state slots per request: 5 where nothing is said, before: 3
};

/// Rules by version. The padding slot (merged July 2026) is taken only where the version is stated: logs of October
/// 2026 still lack it.
constexpr SglangRules sglang_rules(SglangVersion const& v) noexcept {
    SglangRules r;
    r.version = v;
    std::int32_t const n = v.number();
    r.prefill_graphs = n >= 516;
    r.padding_slot = !v.guessed && n >= 517;
    r.draft_in_cell = n >= 512;
    r.request_compressor_state = n >= 515;
    r.v4_counts_mtp = n < 514;
    r.v4_window_ratio = n >= 512 ? 0.1 : 0.8;
    r.extra_buffer = n >= 515;
    return r;
}

// ---- automatic settings -------------------------------------------------------------------------

/// What SGLang sets by the size of the GPU.
struct SglangDefaults {
    std::int64_t chunk = 4096;      ///< chunked_prefill_size, tokens
    std::int64_t graph_batch = 160; ///< largest decode graph
};

/// Defaults by GPU memory as nvidia-smi reports it (MiB); 0 = unknown. `tp` as the engine counts it.
constexpr SglangDefaults sglang_defaults(std::int64_t gpu_mib, std::int32_t tp, bool newer) noexcept {
    bool const wide = tp >= 4;
    if (gpu_mib <= 0) return {4096, 160};
    if (gpu_mib < 20 * 1024) return {2048, 8};
    if (gpu_mib < 35 * 1024) return newer ? SglangDefaults{4096, wide ? 160 : 48} : SglangDefaults{2048, wide ? 80 : 24};
    if (gpu_mib < 60 * 1024) return {4096, wide ? 160 : 32};
    if (gpu_mib < 160 * 1024) return {8192, wide ? 512 : 256};
    return {16384, 512};
}

/// Number of prefill graphs up to `most` tokens: steps of 4, 16, 32, 64, 256 and 512.
constexpr std::int64_t sglang_prefill_graphs(std::int64_t most) noexcept {
    struct Range {
        std::int64_t first, last, step;
    };
    constexpr std::array<Range, 6> ranges{
        {{4, 32, 4}, {48, 256, 16}, {288, 512, 32}, {576, 1024, 64}, {1280, 4096, 256}, {4608, 1 << 20, 512}}};
    std::int64_t n = 0;
    for (Range const& r : ranges)
        if (most >= r.first) n += (std::min(most, r.last) - r.first) / r.step + 1;
    return n;
}

/// What the automatic static fraction depends on. MiB where not said.
struct SglangFractionInput {
    std::int64_t gpu_mib = 0; ///< reported by nvidia-smi; 0 = unknown
    std::int32_t tp = 1;      ///< as the engine counts it: all GPUs of a stage
    std::int32_t pp = 1;
    std::int32_t dp = 1;
    bool dp_attention = false;
    std::int64_t chunk = 8192; ///< tokens, before it is divided by dp
    std::int64_t graph_batch = 256;
    bool decode_graphs = true;
    bool prefill_graphs = true;
    bool mla = false;
    bool draft = false; ///< speculation with a draft (not n-gram)
    bool standalone_draft = false;
    double vision_capacity = 0; ///< vit layers * width^2 / (24 * 1024^2); 0 = no tower
};

/// mem_fraction_static when it is not given: (GPU - reserved) / GPU, to three decimals.
inline double sglang_static_fraction(SglangFractionInput const& in, bool newer) {
    double const tokens = static_cast<double>(std::max<std::int64_t>(in.chunk, 2048));
    double const batch = static_cast<double>(in.graph_batch);
    double reserved = 512 + 1.5 * tokens + static_cast<double>(in.tp) * in.pp / 8 * 1024;
    if (!newer || in.decode_graphs) reserved += 2 * batch;
    if (in.dp_attention) {
        reserved += 3 * batch * in.dp;
        if (in.graph_batch > 300) reserved += 1.5 * batch * in.dp;
    }
    if (newer && in.prefill_graphs) reserved += in.mla ? 1536.0 : 8.0 * static_cast<double>(sglang_prefill_graphs(in.chunk));
    if (in.gpu_mib > 60 * 1024) reserved = std::max(reserved, 10240.0);
    if (!newer && in.draft) reserved += in.standalone_draft ? 6144 : 2048;
    double fraction = newer ? 0.95 : 0.88;
    if (in.gpu_mib > 0) {
        double const total = static_cast<double>(in.gpu_mib);
        fraction = std::round((total - reserved) / total * 1000) / 1000;
    }
    if (in.vision_capacity > 0) fraction *= 0.95 * std::clamp(1 - 0.1 * (in.vision_capacity - 1), 0.8, 1.05);
    return fraction;
}

// ---- bytes of a token ---------------------------------------------------------------------------

/// What one token, one slot and one request cost on a rank.
struct SglangCosts {
    double token = 0;        ///< bytes of a token in the full pool
    double window_token = 0; ///< bytes of a token in the window pool (models with windows)
    double window_ratio = 0; ///< window tokens for each full token; 0 = no window pool
    Bytes state{};           ///< one slot of recurrent state
    Bytes request{};         ///< V4: compressor state of one request
    Bytes request_base{};    ///< V4: compressor state without requests
    std::int64_t page = 1;
    bool v4 = false;
};

/// Gemma 2 and 3 price windows as full layers: their split is switched off in the engine.
constexpr bool sglang_splits_windows(std::string_view architecture) noexcept {
    return !architecture.starts_with("Gemma2") && !architecture.starts_with("Gemma3");
}

/// The bytes of a full token of the DeepSeek V4 line: raw window rows, compressed entries, index keys and the
/// compressor's rings. `layers` counts all layers, `layers4` and `layers128` those of ratio 4 and 128.
constexpr double sglang_v4_token(std::int64_t layers, std::int64_t layers4, std::int64_t layers128, double ratio,
                                 std::int64_t ring4, std::int64_t ring128, bool state_per_request) noexcept {
    constexpr double kv = 584, index = 132, window = 128;
    double const l = static_cast<double>(layers), l4 = static_cast<double>(layers4), l128 = static_cast<double>(layers128);
    double b = ratio * kv * l + kv / 4 * l4 + kv / 128 * l128 + index / 4 * l4;
    b += ratio * (static_cast<double>(ring4) / window) * (4 * 512 + 4 * 128) * 4 * l4;
    if (!state_per_request) b += ratio * (static_cast<double>(ring128) / window) * 2 * 512 * 4 * l128;
    return b;
}

/// Compressor state of ratio 128 for `requests` requests: rows in whole 128s, fp32.
constexpr Bytes sglang_v4_request_state(std::int64_t requests, std::int64_t ring128, std::int64_t layers128) noexcept {
    std::int64_t const rows = round_up((requests + 1) * ring128 + ring128 + 1, 128);
    return Bytes{rows * 2 * 512 * 4 * layers128};
}

/// State slots that one running request holds.
constexpr std::int64_t sglang_slots_per_request(bool radix_cache, std::string_view strategy,
                                                bool extra_buffer_by_default) noexcept {
    if (!radix_cache) return 1;
    if (strategy == "no_buffer") return 3;
    if (strategy == "extra_buffer_lazy") return 4;
    if (strategy == "extra_buffer") return 5;
    return extra_buffer_by_default ? 5 : 3;
}

/// Largest number of running requests when none is given.
constexpr std::int64_t sglang_default_requests(std::int64_t tokens, std::int64_t context, bool draft) noexcept {
    if (draft) return 48;
    auto const share =
        context > 0 ? static_cast<std::int64_t>(static_cast<double>(tokens) / static_cast<double>(context) * 512) : 4096;
    return std::max<std::int64_t>(2048, std::min<std::int64_t>(4096, share));
}

/// How the profiled bytes of one rank become pools.
struct SglangPools {
    std::int64_t tokens = 0;        ///< max_total_num_tokens
    std::int64_t window_tokens = 0; ///< of the window pool
    std::int64_t slots = -1;        ///< recurrent state slots; -1 = no such layers
    std::int64_t requests = 0;      ///< max_running_requests in force
    Bytes kv{};                     ///< what the KV pools take
    Bytes state{};                  ///< what the state pool takes, its padding row included
};

/// What is asked of the pools beside the bytes.
struct SglangPoolRequest {
    Bytes budget{};
    std::int64_t context = 0;
    std::optional<std::int64_t> requests; ///< of one copy of attention
    std::optional<std::int64_t> slots;
    std::optional<std::int64_t> max_tokens;
    double state_ratio = 0.9;
    std::int64_t slots_per_request = 5;
    bool radix_cache = true;
    std::int64_t draft_tokens = 0;
    bool draft = false;
};

/// Splits the budget of one rank. A count of zero or less is a refusal.
inline SglangPools sglang_pools(SglangCosts const& c, SglangPoolRequest const& r, SglangRules const& rules) {
    SglangPools p;
    double bytes = static_cast<double>(r.budget.value());
    if (bytes <= 0) return p;
    if (c.state.value() > 0) {
        double const state = static_cast<double>(c.state.value());
        std::int64_t m = 0;
        if (r.slots) {
            m = *r.slots;
        } else if (!r.radix_cache && r.requests) {
            m = *r.requests;
        } else {
            double share = bytes * r.state_ratio / (1 + r.state_ratio);
            double const q = static_cast<double>(r.slots_per_request), d = static_cast<double>(r.draft_tokens);
            if (rules.padding_slot) {
                m = static_cast<std::int64_t>(std::floor((share - state * (1 + d)) / (state * (1 + d / q))));
            } else {
                if (r.draft_tokens > 0 && r.requests) share -= state * static_cast<double>(*r.requests) * d;
                m = static_cast<std::int64_t>(std::floor(share / state));
            }
        }
        p.slots = m;
        if (m <= 0) return p;
        double intermediate = 0;
        if (r.draft_tokens > 0) {
            std::int64_t const running = std::min(r.requests.value_or(m), m / std::max<std::int64_t>(1, r.slots_per_request));
            intermediate =
                state * static_cast<double>(running + (rules.padding_slot ? 1 : 0)) * static_cast<double>(r.draft_tokens);
        }
        p.state = Bytes{static_cast<std::int64_t>(state * static_cast<double>(m + 1) + intermediate)};
        bytes -= state * static_cast<double>(rules.padding_slot ? m + 1 : m) + intermediate;
        if (bytes <= 0) return p;
    }
    auto const whole_pages = [&](double n) {
        auto t = static_cast<std::int64_t>(std::floor(std::min(n, 4e18)));
        if (r.max_tokens) t = std::min(t, *r.max_tokens);
        return t / c.page * c.page;
    };
    double const per_token = c.token + c.window_ratio * c.window_token;
    if (per_token <= 0 && c.window_token <= 0) { // recurrent layers alone: a token costs nothing
        p.tokens = whole_pages(r.max_tokens ? static_cast<double>(*r.max_tokens) : 1 << 30);
    } else if (c.token <= 0 && !c.v4) {
        p.tokens = whole_pages(bytes / c.window_token);
        p.window_tokens = p.tokens;
    } else {
        if (c.request.value() > 0) {
            std::int64_t const first = whole_pages(bytes / per_token);
            std::int64_t const n = r.requests.value_or(sglang_default_requests(first, r.context, r.draft));
            bytes -= static_cast<double>(c.request_base.value() + n * c.request.value());
            if (bytes <= 0) return p;
        }
        p.tokens = whole_pages(bytes / per_token);
        if (c.window_ratio > 0)
            p.window_tokens =
                static_cast<std::int64_t>(std::floor(static_cast<double>(p.tokens) * c.window_ratio)) / c.page * c.page;
    }
    p.kv = Bytes{static_cast<std::int64_t>(static_cast<double>(p.tokens) * c.token +
                                           static_cast<double>(p.window_tokens) * c.window_token)};
    if (c.v4) p.kv = Bytes{static_cast<std::int64_t>(static_cast<double>(p.tokens) * per_token)};
    std::int64_t n = r.requests.value_or(sglang_default_requests(p.tokens, r.context, r.draft));
    n = std::min(n, std::max<std::int64_t>(p.tokens / 2, 1));
    if (p.slots >= 0) n = std::min(n, p.slots / std::max<std::int64_t>(1, r.slots_per_request));
    p.requests = n;
    return p;
}

namespace sglang_detail {

/// KV dtype as SGLang resolves it.
inline std::pair<KvFormat, std::string> kv_format(Model const& m, Gpu const& g, EngineSettings const& s, bool sparse_latent) {
    std::string asked = to_lower(s.kv_cache_dtype.value_or("auto"));
    std::int32_t const cc = compute_capability(g);
    if (asked == "auto" || asked.empty()) {
        if (sparse_latent)
            asked = cc >= 100 ? "fp8_e4m3" : "bfloat16";
        else if (m.kv_dtype_hint && m.kv_dtype_hint->find("fp8") != std::string::npos)
            asked = "fp8_e4m3";
        else
            return {m.dtype == Format::fp16 ? KvFormat::fp16 : m.dtype == Format::fp32 ? KvFormat::fp32 : KvFormat::bf16, "auto"};
    }
    if (asked.starts_with("fp8") || asked.starts_with("float8"))
        return {sparse_latent && cc < 100 ? KvFormat::fp8_ds_mla : KvFormat::fp8, "fp8_e4m3"};
    if (asked.starts_with("fp4") || asked.starts_with("nvfp4")) return {KvFormat::nvfp4, "fp4_e2m1"};
    if (asked == "fp16" || asked == "float16" || asked == "half") return {KvFormat::fp16, "float16"};
    return {KvFormat::bf16, "bfloat16"};
}

inline bool uses_mla(Model const& m) {
    for (Layer const& l : m.layers)
        for (Mixer const& x : l.mixers) {
            if (std::holds_alternative<Mla>(x) || std::holds_alternative<Compressed>(x)) return true;
            auto const* s = std::get_if<SparseIndexed>(&x);
            if (s != nullptr && std::holds_alternative<Mla>(s->base)) return true;
        }
    return false;
}

/// Layers of one pipeline stage.
inline SglangCosts costs(Model const& m, Gpu const& g, Layout const& l, EngineSettings const& s, SglangRules const& rules,
                         std::size_t first, std::size_t last) {
    bool const sparse = support_detail::has(m, ModelTrait::sparse_latent);
    auto const [format, name] = kv_format(m, g, s, sparse);
    KvOptions kv;
    kv.format = format;
    kv.tp = l.tp;
    StateOptions st;
    st.tp = l.tp;
    st.conv_bytes = 2;
    st.recurrent_bytes = 4;
    if (s.state_dtype)
        st.recurrent_bytes = s.state_dtype->find("32") != std::string::npos ? 4 : 2;
    else if (m.state_dtype)
        st.recurrent_bytes = *m.state_dtype == Format::fp32 ? 4 : 2;

    SglangCosts c;
    bool const split = sglang_splits_windows(m.architecture);
    std::int64_t attention = 0, v4 = 0, v4_4 = 0, v4_128 = 0, v4_2 = 0, v4_1 = 0;
    for (std::size_t i = first; i < last && i < m.layers.size(); ++i)
        for (Mixer const& x : m.layers[i].mixers) {
            c.state += state_bytes(x, st);
            if (!is_recurrent(x)) ++attention;
            if (auto const* a = std::get_if<Gqa>(&x)) c.token += static_cast<double>(kv_token_bytes(*a, kv).value());
            if (auto const* a = std::get_if<Mla>(&x)) c.token += static_cast<double>(kv_token_bytes(*a, kv).value());
            if (auto const* a = std::get_if<SlidingWindow>(&x))
                (split ? c.window_token : c.token) += static_cast<double>(kv_token_bytes(a->attn, kv).value());
            if (auto const* a = std::get_if<ChunkedLocal>(&x))
                (split ? c.window_token : c.token) += static_cast<double>(kv_token_bytes(a->attn, kv).value());
            if (auto const* a = std::get_if<SparseIndexed>(&x)) {
                Indexer owned = a->indexer;
                owned.owns_keys = true; // every layer is priced, whether it computes a choice or not
                c.token += static_cast<double>((std::holds_alternative<Mla>(a->base) ? kv_token_bytes(std::get<Mla>(a->base), kv)
                                                                                     : kv_token_bytes(std::get<Gqa>(a->base), kv))
                                                   .value());
                c.token += static_cast<double>(
                    index_key_bytes(owned, std::holds_alternative<Mla>(a->base) ? IndexFormat::fp8 : IndexFormat::bf16).value());
            }
            if (auto const* a = std::get_if<Compressed>(&x)) {
                ++v4;
                if (a->ratio == 4) ++v4_4;
                if (a->ratio == 128) ++v4_128;
                if (a->ratio == 2 && a->kv_source) ++v4_2;
                if (a->ratio == 1 && a->kv_source) ++v4_1;
            }
        }
    if (c.window_token > 0) c.window_ratio = s.swa_full_tokens_ratio.value_or(0.8);
    if (v4 > 0) {
        c.v4 = true;
        double const ratio = s.swa_full_tokens_ratio.value_or(rules.v4_window_ratio);
        bool const draft = s.speculative_tokens > 0;
        std::int64_t const ring128 = draft ? 256 : 128;
        bool const last_stage = last >= m.layers.size();
        std::int64_t const counted = v4 + (rules.v4_counts_mtp && last_stage ? 1 : 0);
        c.token = sglang_v4_token(counted, v4_4, v4_128, ratio, draft ? 16 : 8, ring128, rules.request_compressor_state);
        c.token += (584.0 + 132.0) / 2 * static_cast<double>(v4_2) + (584.0 + 132.0) * static_cast<double>(v4_1);
        if (draft && rules.draft_in_cell) c.token *= static_cast<double>(v4 + 1) / static_cast<double>(v4);
        if (rules.request_compressor_state && v4_128 > 0) {
            c.request = Bytes{ring128 * 2 * 512 * 4 * v4_128};
            c.request_base = sglang_v4_request_state(0, ring128, v4_128);
        }
        c.window_ratio = 0; // inside the token already
    } else if (s.speculative_tokens > 0 && attention > 0 && (rules.draft_in_cell || uses_mla(m)) &&
               s.speculative_method != "ngram") {
        auto const draft = static_cast<double>(std::max<std::size_t>(m.mtp_layers.size(), 1));
        c.token *= 1 + draft / static_cast<double>(attention);
    }

    std::string const backend = to_lower(s.attention_backend.value_or(""));
    if (s.block_size)
        c.page = std::max<std::int64_t>(1, s.block_size->value());
    else if (v4 > 0)
        c.page = 256;
    else if (sparse || backend == "flashmla" || backend == "trtllm_mla" || backend == "trtllm_mha")
        c.page = 64;
    else if (backend == "cutlass_mla")
        c.page = 128;
    else if (c.state.value() > 0 && rules.extra_buffer && s.mamba_scheduler_strategy.value_or("") != "no_buffer")
        c.page = 64;
    return c;
}

/// Vision towers shrink the automatic fraction by layers * width^2 / (24 * 1024^2); both are read off the output
/// projection of the tower's attention.
inline double vision_capacity(Model const& m) {
    double n = 0;
    for (WeightTensor const& t : m.extra_tensors)
        if (t.cls == TensorClass::vision && (t.name == "attn.proj" || t.name == "attn.wo"))
            n += static_cast<double>(t.count) * static_cast<double>(t.rows) * static_cast<double>(t.rows);
    return n / (24.0 * 1024 * 1024);
}

/// One evaluation, without fixes.
struct Outcome {
    SglangRules rules;
    double fraction = 0;
    double fraction_auto = 0;
    std::int64_t chunk = 0, graph_batch = 0, context = 0, slots_per_request = 1;
    Bytes visible{}, outside{}, pre{}, weights{}, weights_total{}, host{}, loading{}, budget{};
    SglangCosts costs;
    SglangPools pools, low, high;
    KvFormat format = KvFormat::bf16;
    std::string kv_name;
    Verdict verdict = Verdict::starts;
    std::string message;
    std::int64_t attention_dp = 1;
};

/// Free memory that the runtime has lost before the weights are loaded: context, communicators, kernels.
/// Measured: 0.6 GiB on one GPU (22.76 of 23.57 on a 3090, 15.24 of 15.7), 1.2 to 1.5 with tensor parallelism on NVIDIA
/// (93.56 of 95.0), 4 on AMD (283.5 of 288).
inline Bytes before_weights(Gpu const& g, std::int32_t gpus) {
    if (gpus <= 1) return gib(0.6);
    return g.vendor == GpuVendor::amd ? gib(4.0) : gib(1.2);
}

/// What loading takes beside the tensors themselves (padding, workspaces); derived from logs, +-0.3.
inline constexpr double kLoadingGib = 0.3;

/// MLA keeps the two halves of kv_b unpacked for absorbed decoding: 2 bytes * heads/tp * (nope + v) * rank a layer.
inline Bytes absorbed_mla(Model const& m, std::int32_t tp, std::size_t first, std::size_t last) {
    std::int64_t n = 0;
    auto const add = [&](Mla const& a) {
        n += 2 * ceil_div(a.heads, tp) * (std::int64_t{a.qk_nope} + a.v_head_dim) * a.kv_lora_rank;
    };
    for (std::size_t i = first; i < last && i < m.layers.size(); ++i)
        for (Mixer const& x : m.layers[i].mixers) {
            if (auto const* a = std::get_if<Mla>(&x)) add(*a);
            if (auto const* a = std::get_if<SparseIndexed>(&x); a != nullptr && std::holds_alternative<Mla>(a->base))
                add(std::get<Mla>(a->base));
        }
    return Bytes{n};
}

inline Outcome evaluate(StartRequest const& r) {
    Outcome o;
    Model const& m = r.model;
    Gpu const& g = r.gpus.gpu;
    EngineSettings const& s = r.settings;
    Layout const& l = r.layout;
    o.rules = sglang_rules(parse_sglang_version(s.version, r.date));
    o.attention_dp = l.dp;
    std::int32_t const engine_tp = l.tp * l.dp;
    std::int64_t const reported = g.memory_reported
                                      ? g.memory_reported->value() / 1048576
                                      : static_cast<std::int64_t>(static_cast<double>(g.visible.value()) * 1.0045) / 1048576;
    SglangDefaults const d = sglang_defaults(reported, engine_tp, o.rules.prefill_graphs);
    o.chunk = s.max_num_batched_tokens ? s.max_num_batched_tokens->value() : d.chunk;
    o.graph_batch = s.max_cudagraph_capture_size ? s.max_cudagraph_capture_size->value() : d.graph_batch;
    bool const draft = s.speculative_tokens > 0 && s.speculative_method != "ngram";

    SglangFractionInput in;
    in.gpu_mib = reported;
    in.tp = engine_tp;
    in.pp = l.pp;
    in.dp = l.dp;
    in.dp_attention = l.dp > 1;
    in.chunk = o.chunk;
    in.graph_batch = o.graph_batch;
    in.decode_graphs = !s.enforce_eager;
    in.prefill_graphs = !s.enforce_eager;
    in.mla = uses_mla(m);
    in.draft = draft;
    in.standalone_draft = s.speculative_method == "standalone";
    in.vision_capacity = vision_capacity(m);
    o.fraction_auto = sglang_static_fraction(in, o.rules.prefill_graphs);
    o.fraction = s.mem_fraction_static      ? *s.mem_fraction_static
                 : s.gpu_memory_utilization ? *s.gpu_memory_utilization
                                            : o.fraction_auto;

    o.visible = g.visible;
    o.outside = before_weights(g, l.gpus_per_replica());
    o.pre = g.visible - o.outside;
    o.loading = gib(kLoadingGib);
    o.context = s.max_model_len && s.max_model_len->value() > 0 ? s.max_model_len->value() : m.max_context.value();
    bool const radix = s.prefix_caching.value_or(true);
    o.slots_per_request = sglang_slots_per_request(radix, s.mamba_scheduler_strategy.value_or(""), o.rules.extra_buffer);
    auto const [format, name] = kv_format(m, g, s, support_detail::has(m, ModelTrait::sparse_latent));
    o.format = format;
    o.kv_name = name;

    if (auto const support = engine_support(EngineKind::sglang, m, g); !support.supported) {
        o.verdict = Verdict::unsupported;
        o.message = support.reason + " (" + std::string{support.source} + ")";
        return o;
    }
    if (l.gpus_per_replica() > r.gpus.count) {
        o.verdict = Verdict::layout_invalid;
        o.message = fmt::format("the layout needs {} GPUs, {} are given", l.gpus_per_replica(), r.gpus.count);
        return o;
    }
    if (auto const bad = heads_that_do_not_divide(m, l.tp)) {
        o.verdict = Verdict::layout_invalid;
        o.message = fmt::format("{} cannot be divided over {} tensor-parallel ranks", *bad, l.tp);
        return o;
    }
    if (l.pp > static_cast<std::int32_t>(m.layers.size())) {
        o.verdict = Verdict::layout_invalid;
        o.message = fmt::format("{} layers cannot be divided over {} pipeline stages", m.layers.size(), l.pp);
        return o;
    }

    WeightOptions w;
    w.mtp = draft;
    w.draft = draft;
    w.mm_data_parallel = s.mm_encoder_data_parallel.value_or(false);
    w.lookup_on_host = s.lookup_tables_on_host.value_or(false);
    SglangPoolRequest q;
    q.context = o.context;
    if (s.max_running_requests)
        q.requests = std::max<std::int64_t>(1, s.max_running_requests->value() / l.dp);
    else if (s.max_num_seqs)
        q.requests = std::max<std::int64_t>(1, s.max_num_seqs->value() / l.dp);
    if (s.max_mamba_cache_size) q.slots = *s.max_mamba_cache_size / l.dp;
    if (s.max_total_tokens) q.max_tokens = s.max_total_tokens->value();
    q.state_ratio = s.mamba_full_memory_ratio.value_or(0.9);
    q.slots_per_request = o.slots_per_request;
    q.radix_cache = radix;
    q.draft_tokens = draft ? s.speculative_tokens : 0;
    q.draft = draft;

    auto const stages = pipeline_stages(static_cast<std::int32_t>(m.layers.size()), l.pp);
    bool first = true;
    for (std::size_t p = 0; p < stages.size(); ++p) {
        auto const begin = static_cast<std::size_t>(stages[p].first);
        auto const end = begin + static_cast<std::size_t>(stages[p].second);
        RankWeights const rw = rank_weights(m, l, w, static_cast<int>(p));
        Bytes const weights = rw.total + absorbed_mla(m, l.tp, begin, end);
        SglangCosts const c = costs(m, g, l, s, o.rules, begin, end);
        Bytes const post = o.pre - weights - o.loading;
        auto const slack = static_cast<std::int64_t>(static_cast<double>(o.pre.value()) * (1 - o.fraction));
        q.budget = s.kv_cache_memory ? *s.kv_cache_memory : post - Bytes{slack};
        // What is not known of `pre` and of loading, and two hundredths of the weights: 80 % of starts should lie within.
        Bytes const doubt = s.kv_cache_memory ? Bytes{} : gib(0.7) + Bytes{weights.value() / 50};
        SglangPools const pools = sglang_pools(c, q, o.rules);
        SglangPoolRequest less = q, more = q;
        less.budget -= doubt;
        more.budget += doubt;
        o.weights_total += weights * (l.tp * l.dp);
        o.host += rw.host * (l.tp * l.dp);
        if (first || pools.tokens < o.pools.tokens) {
            o.pools = pools;
            o.low = sglang_pools(c, less, o.rules);
            o.high = sglang_pools(c, more, o.rules);
            o.costs = c;
            o.budget = q.budget;
        }
        if (first || weights > o.weights) o.weights = weights;
        first = false;
    }

    Bytes const post = o.pre - o.weights - o.loading;
    if (post.value() <= 0) {
        o.verdict = Verdict::weights_do_not_fit;
        o.message =
            fmt::format("torch.OutOfMemoryError: CUDA out of memory. {:.2f} GiB of weights a GPU, {:.2f} GiB free before loading",
                        in_gib(o.weights), in_gib(o.pre));
    } else if (o.budget.value() <= 0) {
        o.verdict = Verdict::no_kv_memory;
        double const least = std::ceil((1 - post / o.pre) * 1000) / 1000;
        o.message =
            o.rules.prefill_graphs
                ? fmt::format("Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static={:.3f}. Raise "
                              "--mem-fraction-static above {:.3f}",
                              o.fraction, least)
                : fmt::format("Not enough memory. Please try to increase --mem-fraction-static. Current value: "
                              "mem_fraction_static={:.3f}",
                              o.fraction);
    } else if (o.pools.slots == 0 || o.pools.slots < -1) {
        o.verdict = Verdict::state_slots_too_few;
        o.message =
            fmt::format("Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size={}",
                        o.pools.slots);
    } else if (o.pools.slots > 0 && o.pools.slots / o.slots_per_request == 0) {
        o.verdict = Verdict::state_slots_too_few;
        o.message = fmt::format(
            "Hybrid (mamba/linear-attention) state cache is too small to serve any requests. max_mamba_cache_size={}, {} state "
            "slots per request",
            o.pools.slots, o.slots_per_request);
    } else if (o.pools.tokens <= 0) {
        o.verdict = Verdict::no_kv_memory;
        o.message = fmt::format(
            "Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static={:.3f}",
            o.fraction);
    } else if (o.costs.window_ratio > 0 && o.rules.prefill_graphs) {
        std::int64_t window = 0;
        for (Layer const& layer : m.layers)
            for (Mixer const& x : layer.mixers) {
                if (auto const* a = std::get_if<SlidingWindow>(&x)) window = std::max<std::int64_t>(window, a->window);
                if (auto const* a = std::get_if<ChunkedLocal>(&x)) window = std::max<std::int64_t>(window, a->chunk);
            }
        if (window + o.costs.page >= o.pools.window_tokens) {
            o.verdict = Verdict::no_kv_memory;
            o.message = fmt::format(
                "SWA pool ({} tokens) cannot hold even one request: the prefill admission floor is sliding_window_size ({}) + "
                "page_size ({})",
                o.pools.window_tokens, window, o.costs.page);
        }
    }
    return o;
}

/// Bytes of the pools that one request of `n` tokens needs.
inline double request_bytes(Outcome const& o, std::int64_t n) {
    return static_cast<double>(n) * (o.costs.token + o.costs.window_ratio * o.costs.window_token) +
           static_cast<double>(o.costs.state.value()) * static_cast<double>(o.slots_per_request + 1) +
           static_cast<double>((o.costs.request + o.costs.request_base).value());
}

} // namespace sglang_detail

/// What SGLang would make of the deployment. `explain` adds fixes and notes; a sweep leaves them out.
inline StartPlan plan_sglang(StartRequest const& r, bool explain = true) {
    using namespace sglang_detail;
    Outcome const o = evaluate(r);
    StartPlan p;
    p.verdict = o.verdict;
    p.starts = o.verdict == Verdict::starts;
    p.engine_message = o.message;
    p.rules_version = "SGLang " + to_string(o.rules.version);
    p.basis = r.model.is_inferred() ? Basis::inferred : Basis::calibrated;
    p.kv_format = o.format;
    p.kv_cache_dtype = o.kv_name;
    p.weights = o.weights;
    p.weights_total = o.weights_total;
    p.host_bytes = o.host;
    p.budget.visible = o.visible;
    p.budget.utilization = o.fraction;
    p.budget.requested = Bytes{static_cast<std::int64_t>(static_cast<double>(o.pre.value()) * o.fraction)};
    p.budget.weights = o.weights;
    p.budget.non_torch = o.loading;
    p.budget.activation = o.pre - p.budget.requested; // the slack that activations and graphs live in
    p.pool = o.budget.value() > 0 ? o.budget : Bytes{};
    double const token = o.costs.token + o.costs.window_ratio * o.costs.window_token;
    p.kv_per_token = Bytes{static_cast<std::int64_t>(std::ceil(token))};
    p.state_per_sequence = o.costs.state;
    p.fixed_per_sequence = o.costs.request;
    p.block_tokens = Tokens{o.costs.page};
    p.bytes_per_block = Bytes{static_cast<std::int64_t>(std::ceil(token * static_cast<double>(o.costs.page)))};
    p.max_model_len = Tokens{o.context};
    p.max_batched_tokens = Tokens{r.layout.dp > 1 ? std::max<std::int64_t>(1, o.chunk / r.layout.dp) : o.chunk};
    p.blocks_per_max_request = ceil_div(o.context, o.costs.page);
    if (o.pools.slots >= 0) p.state_slots = o.pools.slots;
    Bytes const room = o.pre - o.weights - o.loading - gib(1.0); // a GiB is the least that graphs and activations can do with
    std::int64_t const one = r.isl.value() + r.osl.value();
    p.fits = o.verdict != Verdict::unsupported && o.verdict != Verdict::layout_invalid &&
             static_cast<double>(room.value()) >= request_bytes(o, one) &&
             (r.model.max_context.value() <= 0 || one <= r.model.max_context.value());
    if (o.verdict == Verdict::weights_do_not_fit) p.shortfall = o.weights + o.loading - o.pre;
    if (p.starts) {
        p.kv_tokens = Tokens{o.pools.tokens};
        p.kv_tokens_low = Tokens{std::min(o.low.tokens, o.pools.tokens)};
        p.kv_tokens_high = Tokens{std::max(o.high.tokens, o.pools.tokens)};
        p.num_blocks = o.pools.tokens / o.costs.page;
        p.pages_of_request = {PageRule{o.costs.page, 0, 0, 1, 1}};
        p.max_num_seqs = Requests{o.pools.requests};
        p.longest = Tokens{std::min(o.context, o.pools.tokens)};
        double n = o.context > 0 ? static_cast<double>(o.pools.tokens) / static_cast<double>(o.context) : 0;
        if (o.pools.slots >= 0) n = std::min(n, static_cast<double>(o.pools.slots / o.slots_per_request));
        p.max_requests_at_max_model_len = n;
    }
    if (!explain) return p;

    auto const variant = [&](auto&& change) {
        EngineSettings s = r.settings;
        change(s);
        StartRequest q{r.model, r.gpus, r.layout, s, r.isl, r.osl, r.date};
        return std::pair{plan_sglang(q, false), s};
    };
    if (p.starts) {
        if (o.pools.tokens < o.context)
            p.notes.push_back(
                fmt::format("starts, but the pool holds {} tokens: requests longer than that are refused (context {})",
                            o.pools.tokens, o.context));
        if (o.pools.slots > 0 && o.pools.requests == o.pools.slots / o.slots_per_request)
            p.notes.push_back(fmt::format(
                "max_running_requests is capped to {} by the mamba state cache (max_mamba_cache_size={}, {} state slots per "
                "request)",
                o.pools.requests, o.pools.slots, o.slots_per_request));
        if (o.fraction > o.fraction_auto + 0.0005) {
            Bytes const slack = p.budget.activation;
            Bytes const advised{static_cast<std::int64_t>(static_cast<double>(o.pre.value()) * (1 - o.fraction_auto))};
            if (slack < Bytes{advised.value() / 2})
                p.risks.push_back(fmt::format(
                    "graph capture or a prefill of {} tokens may run out of memory: {:.1f} GiB stay outside the static "
                    "fraction, the engine's own value leaves {:.1f}",
                    o.chunk, in_gib(slack), in_gib(advised)));
        }
        if (o.costs.v4 && r.model.architecture != "DeepseekV4ForCausalLM")
            p.notes.push_back("the pool of this member of the V4 line is priced by V4's formula with its own ratios; no log of "
                              "it was compared");
        if (o.rules.version.guessed) p.notes.push_back("no SGLang version given: rules of " + to_string(o.rules.version));
        return p;
    }
    if (o.verdict == Verdict::unsupported || o.verdict == Verdict::layout_invalid) return p;

    auto const offer = [&](std::string flag, std::string value, std::pair<StartPlan, EngineSettings> const& v,
                           std::string price) {
        if (!v.first.starts) return false;
        p.fixes.push_back(
            {std::move(flag), std::move(value),
             fmt::format("starts with {} KV tokens{}{}", v.first.kv_tokens.value(),
                         v.first.state_slots ? fmt::format(", {} state slots", *v.first.state_slots) : std::string{},
                         price.empty() ? std::string{} : "; " + price),
             v.second});
        return true;
    };
    if (o.verdict == Verdict::no_kv_memory || o.verdict == Verdict::state_slots_too_few) {
        double const post = static_cast<double>((o.pre - o.weights - o.loading).value());
        double const pre = static_cast<double>(o.pre.value());
        double need = request_bytes(o, one);
        if (o.costs.state.value() > 0 &&
            !r.settings.max_mamba_cache_size) { // the state pool takes its share of whatever there is
            double const ratio = r.settings.mamba_full_memory_ratio.value_or(0.9);
            need = std::max(need, static_cast<double>(o.costs.state.value()) * static_cast<double>(o.slots_per_request + 1) *
                                      (1 + ratio) / ratio);
        }
        double const wanted = std::ceil((1 - (post - need) / pre) * 100) / 100;
        if (wanted > o.fraction && wanted <= 0.98)
            offer("--mem-fraction-static", fmt::format("{:.2f}", wanted),
                  variant([&](EngineSettings& s) { s.mem_fraction_static = wanted; }),
                  fmt::format("{:.1f} GiB stay for activations and graphs", in_gib(o.pre) * (1 - wanted)));
        if (o.costs.state.value() > 0 && o.verdict == Verdict::state_slots_too_few)
            for (double ratio : {2.0, 4.0, 9.0})
                if (offer("--mamba-full-memory-ratio", fmt::format("{:.1f}", ratio),
                          variant([&](EngineSettings& s) { s.mamba_full_memory_ratio = ratio; }),
                          "fewer KV tokens for more state"))
                    break;
        if (o.format == KvFormat::bf16 || o.format == KvFormat::fp16)
            offer("--kv-cache-dtype", "fp8_e4m3", variant([&](EngineSettings& s) { s.kv_cache_dtype = "fp8_e4m3"; }),
                  "KV in 8 bits");
    }
    std::int32_t widest = 0;
    bool mended = false;
    StartRequest q{r.model, r.gpus, r.layout, r.settings, r.isl, r.osl, r.date};
    for (std::int32_t tp = r.layout.tp * 2; !mended && tp * r.layout.pp * r.layout.dp <= r.gpus.count; tp *= 2) {
        widest = tp;
        q.layout.tp = tp;
        auto const v = plan_sglang(q, false);
        mended = v.starts;
        if (mended)
            p.fixes.push_back(
                {"--tp", std::to_string(tp * r.layout.dp),
                 fmt::format("starts with {} KV tokens on {} GPUs", v.kv_tokens.value(), q.layout.gpus_per_replica()),
                 std::nullopt});
    }
    if (!mended && widest > 0) { // the widest layout, with the flag that it needs besides
        auto const v = plan_sglang(q, true);
        for (Fix const& f : v.fixes)
            if (f.settings) {
                p.fixes.push_back(
                    {"--tp", fmt::format("{} {} {}", widest * r.layout.dp, f.flag, f.value), f.effect, std::nullopt});
                break;
            }
    }
    return p;
}

/// SGLang as one of the engines that share the concept EngineModel.
struct SglangEngine {
    static constexpr EngineKind kind = EngineKind::sglang;
    static StartPlan start(StartRequest const& r) { return plan_sglang(r); }
};

} // namespace servecap
