// servecap: will vLLM start, and with how much cache
// SPDX-License-Identifier: Apache-2.0
//
// prepare_vllm() works out once what a model, a layout and a class of settings fix: weights of each
// stage, the layout of the pool, the memory model. evaluate_vllm() is the verdict for batch sizes, length
// and utilization: integers and a few products, no allocation, so that a search can ask it millions of
// times. plan_vllm() is the explained form: both, with the engine's own message, ranges and notes.
// Order of checks as in the engine: shapes, free memory, weights, profile, one full-length request, state
// slots. Sources: public vLLM sources 0.11 to 0.33 (arg_utils.py, gpu_worker.py, kv_cache_utils.py,
// gpu_model_runner.py) and start-up logs.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/core/text.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/engine/vllm_budget.hpp>
#include <servecap/engine/vllm_cache.hpp>
#include <servecap/engine/vllm_version.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// What a search varies on one prepared deployment.
struct VllmPoint {
    double utilization = 0.92;
    std::int64_t max_len = 0;      ///< tokens; -1 = as long as fits
    std::int64_t seqs = 0;         ///< max_num_seqs of one DP rank
    std::int64_t batched = 0;      ///< max_num_batched_tokens of one DP rank
    std::int64_t capture = 0;      ///< largest CUDA-graph batch; 0 = none
    GraphMode graphs = GraphMode::full_and_piecewise;
    std::optional<std::int64_t> pool;        ///< bytes: the pool of every rank is given and not worked out
    std::optional<std::int64_t> logged_pool; ///< bytes: the pool that the first rank's log prints; other stages differ from it
    std::int64_t blocks = -1;      ///< >= 0: --num-gpu-blocks-override
    double extra = 0;              ///< bytes taken besides what the memory model says (less, if negative)
};

/// The verdict of one point; plain numbers.
struct VllmOutcome {
    Verdict verdict = Verdict::starts;
    double activation = 0, non_torch = 0, graphs = 0, sd = 0; ///< bytes a GPU; sd of the pool
    std::int64_t requested = 0;    ///< bytes that the engine may use
    std::int64_t pool = 0;         ///< bytes of the stage that decides
    std::size_t stage = 0;         ///< which stage decides
    std::int64_t blocks = 0;
    std::int64_t pages = 0;        ///< of one request of max_len
    std::int64_t max_len = 0;      ///< in force (auto resolved)
    std::int64_t tokens = 0;       ///< as the engine logs them
    std::int64_t estimated_len = 0;///< the length that a refusal names
};

/// A deployment whose parts that sweeps do not change are worked out.
struct PreparedVllm {
    VllmRules rules;
    CacheLayout cache;
    VllmMemoryModel memory;
    std::vector<std::int64_t> stage_weights; ///< bytes a rank, by pipeline stage
    std::int64_t visible = 0;      ///< bytes that the runtime sees
    std::int64_t free = 0;         ///< of them free when the engine starts
    std::int32_t pp = 1;
    bool async = true;
    bool profile_checks_slots = false; ///< the runner checks slots against its temporary pool of `capture` blocks
    std::int64_t draft_tokens = 0;
    std::int64_t max_context = 0;
    std::int64_t memory_len = 0;   ///< max_model_len that the memory model was made for
    // for the explained form
    Bytes weights_total{}, host{};
    KvFormat kv_format = KvFormat::bf16;
    std::string kv_cache_dtype;
    Bytes kv_per_token{}, fixed_per_sequence{}, state_per_sequence{};
    VllmPoint point;               ///< the settings in force
    std::string invalid;           ///< the message of a layout that the engine refuses
    std::string unsupported;       ///< why the engine cannot run it at all
    std::vector<std::string> notes, risks;

    /// Tokens being computed at once that windows must keep.
    [[nodiscard]] std::int64_t in_flight(std::int64_t batched) const noexcept {
        std::int64_t const batches = !rules.two_batches_in_flight ? 1 : pp > 1 ? (async ? pp + 1 : pp) : async ? 2 : 1;
        return batches * batched;
    }
};

/// The verdict of `p` on a prepared deployment.
inline VllmOutcome evaluate_vllm(PreparedVllm const& d, VllmPoint const& p) noexcept {
    VllmOutcome o;
    bool const graphs_on = p.capture > 0 && p.graphs != GraphMode::none;
    // The engine's first versions profile a whole prompt at once.
    std::int64_t const profiled = d.rules.chunked_prefill ? p.batched : std::max(p.batched, std::max<std::int64_t>(p.max_len, 0));
    VllmMemory const mem = vllm_memory(d.memory, profiled, p.seqs, p.capture, p.graphs, d.draft_tokens);
    o.activation = mem.activation;
    o.non_torch = mem.non_torch;
    o.graphs = mem.graphs;
    o.sd = mem.sd;
    o.requested = static_cast<std::int64_t>(std::ceil(static_cast<double>(d.visible) * p.utilization));

    std::int64_t fullest = 0;
    for (std::int64_t w : d.stage_weights) fullest = std::max(fullest, w);
    if (!p.pool && !p.logged_pool) {
        if (o.requested > d.free) {
            o.verdict = Verdict::free_memory_below_request;
            return o;
        }
        if (fullest > d.free) {
            o.verdict = Verdict::weights_do_not_fit;
            return o;
        }
    }
    double const taken = mem.activation + mem.non_torch + (d.memory.subtracts_graphs ? mem.graphs : 0.0) + p.extra;
    o.blocks = std::numeric_limits<std::int64_t>::max();
    std::int64_t check = std::numeric_limits<std::int64_t>::max(); // blocks that one full-length request may take
    bool any = false;
    std::int64_t first_need = 0;
    for (std::size_t s = 0; s < d.stage_weights.size(); ++s) {
        // only the last stage samples
        std::int64_t const need = d.stage_weights[s] - static_cast<std::int64_t>(s + 1 < d.stage_weights.size() ? mem.sampling : 0.0);
        if (s == 0) first_need = need;
        std::int64_t const pool = p.pool          ? *p.pool
                                  : p.logged_pool ? *p.logged_pool - (need - first_need)
                                                  : o.requested - need - static_cast<std::int64_t>(taken);
        std::int64_t const page = d.cache.bytes_per_block[s].value();
        if (page <= 0) { // a stage without caches
            if (!any) o.pool = pool, o.stage = s;
            continue;
        }
        std::int64_t const checked = pool - (d.rules.null_block ? page : 0);
        std::int64_t const n = pool >= 0 ? pool / page : -1; // the poorest stage decides for all
        if (!any || n < o.blocks) {
            o.blocks = n;
            o.pool = pool;
            o.stage = s;
            check = checked > 0 ? checked / d.cache.checked_page(s).value() : -1;
        }
        any = true;
    }
    if (!any) { // nothing to cache
        o.blocks = 0;
        o.verdict = o.pool < 0 ? Verdict::no_kv_memory : Verdict::starts;
        return o;
    }
    if (check < 0 || o.blocks <= 0) {
        o.blocks = std::max<std::int64_t>(o.blocks, 0);
        o.verdict = Verdict::no_kv_memory;
        return o;
    }
    std::int64_t const flight = d.in_flight(p.batched);
    o.max_len = p.max_len;
    if (p.max_len < 0) {
        o.max_len = d.cache.longest(check, flight, d.max_context);
        if (o.max_len == 0) {
            o.verdict = Verdict::no_kv_memory;
            return o;
        }
    }
    o.pages = d.cache.pages(o.max_len, flight);
    if (p.blocks >= 0) o.blocks = p.blocks;
    if ((d.cache.weighted ? d.cache.checked_pages(o.max_len, flight) : o.pages) > (p.blocks >= 0 ? p.blocks : check)) {
        o.verdict = Verdict::max_model_len_too_long;
        o.estimated_len = d.cache.longest(p.blocks >= 0 ? p.blocks : check, flight, o.max_len);
        o.tokens = o.blocks * d.cache.smallest_block.value();
        return o;
    }
    if (d.rules.tokens_by_concurrency)
        o.tokens = static_cast<std::int64_t>(static_cast<double>(o.blocks) / static_cast<double>(std::max<std::int64_t>(o.pages, 1)) *
                                             static_cast<double>(o.max_len));
    else
        o.tokens = o.blocks / d.cache.group_count * d.cache.smallest_block.value() * d.cache.dcp;
    if (d.cache.recurrent && graphs_on && p.graphs != GraphMode::piecewise && d.rules.slot_check == StateSlotCheck::refuses) {
        std::int64_t const profiled_slots = d.profile_checks_slots ? std::min(p.seqs, p.capture) : o.blocks;
        if (p.seqs > o.blocks || p.seqs > profiled_slots) o.verdict = Verdict::state_slots_too_few;
    }
    return o;
}

namespace detail {

/// What one request takes of a group of caches while `flight` tokens are being computed.
inline PageRule vllm_page_rule(PreparedVllm const& d, CacheGroup const& g, std::int64_t flight) noexcept {
    PageRule rule;
    rule.copies = g.copies;
    rule.weight = d.cache.weighted ? g.widest / d.cache.groups.front().widest : 1.0;
    switch (g.kind) {
    case CacheKind::full: rule.block = g.block.value() * d.cache.dcp; break;
    case CacheKind::window: rule = {g.block.value(), g.window - 1 + flight, 1, g.copies, rule.weight, flight}; break;
    case CacheKind::chunk: rule = {g.block.value(), g.window + flight, 0, g.copies, rule.weight, flight}; break;
    case CacheKind::recurrent:
        rule.constant = d.cache.recurrent_pages;
        rule.block = d.cache.recurrent_by_blocks ? g.block.value() : 0;
        break;
    case CacheKind::ring: rule.constant = 1; break;
    }
    return rule;
}

} // namespace detail

/// Requests of `tokens` tokens that the pool of one engine holds at once at the outcome `o` of `p`: what
/// requests_with_room() counts on the explained plan, without making one.
inline std::int64_t vllm_room(PreparedVllm const& d, VllmPoint const& p, VllmOutcome const& o, std::int64_t tokens) noexcept {
    if (d.cache.groups.empty()) { // no rules of pages: bytes
        std::int64_t const each = d.kv_per_token.value() * tokens + d.fixed_per_sequence.value() + d.state_per_sequence.value();
        std::int64_t const n = each > 0 ? o.pool / each : 0;
        return d.cache.recurrent ? std::min(n, o.blocks) : n;
    }
    std::int64_t const flight = d.in_flight(p.batched);
    PagesOfRequest each;
    for (CacheGroup const& g : d.cache.groups) each.add(detail::vllm_page_rule(d, g, flight), tokens);
    return each.requests(o.blocks);
}

namespace detail {

/// "fp8_e4m3" -> fp8; nothing for what is not modelled.
inline std::optional<KvFormat> kv_format_of(std::string_view s) noexcept {
    if (s == "bf16" || s == "bfloat16") return KvFormat::bf16;
    if (s == "fp16" || s == "float16" || s == "half") return KvFormat::fp16;
    if (s == "fp32" || s == "float32") return KvFormat::fp32;
    if (s == "nvfp4_ds_mla") return KvFormat::nvfp4_ds_mla;
    if (s == "nvfp4" || s == "fp4") return KvFormat::nvfp4;
    if (s == "fp8_ds_mla") return KvFormat::fp8_ds_mla;
    if (s.substr(0, 3) == "fp8") return KvFormat::fp8;
    if (s.substr(0, 4) == "int8") return KvFormat::int8;
    if (s.find("k4") != std::string_view::npos || s.find("4bit") != std::string_view::npos || s.find("int4") != std::string_view::npos)
        return KvFormat::nvfp4; // four-bit caches of forks: near enough in size
    return std::nullopt;
}

inline KvFormat kv_format_of(Format f) noexcept {
    return f == Format::fp32 ? KvFormat::fp32 : f == Format::fp16 ? KvFormat::fp16 : KvFormat::bf16;
}

/// Major number of "9.0", "10.3", "12.1"; 0 for other vendors.
inline std::int32_t compute_major(Gpu const& g) noexcept {
    std::int32_t n = 0;
    for (char c : g.compute_capability) {
        if (c < '0' || c > '9') break;
        n = 10 * n + (c - '0');
    }
    return g.vendor == GpuVendor::nvidia ? n : 0;
}

struct MixerKinds {
    bool gqa = false, mla = false, sparse = false, compressed = false, recurrent = false, mamba = false, window = false;
    std::int64_t key_pool = 1, head_dim = 0;
};
inline MixerKinds mixer_kinds(Model const& m) noexcept {
    MixerKinds k;
    for (Layer const& l : m.layers)
        for (Mixer const& x : l.mixers) {
            if (auto const* a = std::get_if<Gqa>(&x)) k.gqa = true, k.head_dim = std::max<std::int64_t>(k.head_dim, a->head_dim);
            if (std::holds_alternative<SlidingWindow>(x) || std::holds_alternative<ChunkedLocal>(x)) k.window = true;
            k.mla = k.mla || std::holds_alternative<Mla>(x);
            if (auto const* a = std::get_if<SparseIndexed>(&x)) {
                k.sparse = true;
                k.mla = k.mla || std::holds_alternative<Mla>(a->base);
                k.key_pool = std::max<std::int64_t>(k.key_pool, a->indexer.key_pool);
            }
            k.compressed = k.compressed || std::holds_alternative<Compressed>(x);
            k.recurrent = k.recurrent || is_recurrent(x);
            k.mamba = k.mamba || std::holds_alternative<Mamba1>(x) || std::holds_alternative<Mamba2>(x);
        }
    return k;
}

/// The message with which the engine refuses a layout; empty when it takes it.
inline std::string layout_refusal(Model const& m, Layout const& l) {
    std::int64_t const tp = l.tp;
    if (tp <= 1) return {};
    std::int64_t const padded = round_up(m.vocab, 64);
    for (Layer const& layer : m.layers)
        for (Mixer const& x : layer.mixers) {
            std::int64_t heads = 0, kv = 0;
            if (auto const* a = std::get_if<Gqa>(&x)) heads = a->q_heads, kv = a->kv_heads;
            if (auto const* a = std::get_if<SlidingWindow>(&x)) heads = a->attn.q_heads, kv = a->attn.kv_heads;
            if (auto const* a = std::get_if<ChunkedLocal>(&x)) heads = a->attn.q_heads, kv = a->attn.kv_heads;
            if (auto const* a = std::get_if<Mla>(&x)) heads = a->heads;
            if (auto const* a = std::get_if<SparseIndexed>(&x)) {
                if (auto const* mla = std::get_if<Mla>(&a->base)) heads = mla->heads;
                if (auto const* g = std::get_if<Gqa>(&a->base)) heads = g->q_heads, kv = g->kv_heads;
            }
            if (auto const* a = std::get_if<Compressed>(&x)) heads = a->heads;
            // public builds of GLM-5.3-Flash for three GPUs pad the heads of a rank
            if (m.model_type == "glm5_next" && tp == 3) continue;
            if (heads > 0 && heads % tp != 0)
                return fmt::format("Total number of attention heads ({}) must be divisible by tensor parallel size ({}).", heads, tp);
            if (kv > 0 && (kv >= tp ? kv % tp : tp % kv) != 0)
                return fmt::format("{} KV heads can neither be divided over nor copied to tensor parallel size {}", kv, tp);
            if (auto const* k = std::get_if<Kda>(&x); k && k->heads % tp != 0)
                return fmt::format("{} linear attention heads are not divisible by tensor parallel size {}", k->heads, tp);
            if (auto const* g = std::get_if<GatedDelta>(&x);
                g && (g->v_heads % tp != 0 ||
                      (2ll * g->k_heads * g->k_dim + static_cast<std::int64_t>(g->v_heads) * g->v_dim) % tp != 0))
                return fmt::format("{} linear attention value heads are not divisible by tensor parallel size {}", g->v_heads, tp);
            if (auto const* a = std::get_if<Mamba2>(&x); a && a->heads % tp != 0)
                return fmt::format("{} state heads are not divisible by tensor parallel size {}", a->heads, tp);
        }
    if (padded % tp != 0 && !(m.model_type == "glm5_next" && tp == 3)) return fmt::format("{} is not divisible by {}", padded, tp) + " (padded vocabulary by tensor parallel size)";
    for (std::size_t i = 0; i < m.layers.size(); ++i) {
        auto const& ffn = m.layers[i].ffn;
        if (!ffn) continue;
        std::int64_t width = 0;
        bool routed = false;
        if (auto const* d = std::get_if<Dense>(&*ffn)) width = d->intermediate;
        if (auto const* e = std::get_if<Moe>(&*ffn); e && !l.ep) width = e->intermediate, routed = true;
        if (width <= 0 || (m.model_type == "glm5_next" && tp == 3)) continue;
        if (width % tp != 0) return fmt::format("{} is not divisible by {}", width, tp) + (routed ? " (expert width by tensor parallel size)" : " (feed-forward width by tensor parallel size)");
        WeightFormat const& f = m.quant[routed ? TensorClass::routed_expert : TensorClass::dense_ffn];
        if (f.format == Format::fp8_block && (width / tp) % f.block_rows != 0)
            return fmt::format("Weight output_partition_size = {} is not divisible by weight quantization block_n = {}.", width / tp, f.block_rows);
    }
    return {};
}

/// How vLLM keeps the weights of this model on this GPU.
inline WeightOptions vllm_weight_options(Model const& m, Gpu const& gpu, EngineSettings const& s) {
    WeightOptions o;
    o.absorbed_mla = true; // W_UK and W_UV are kept beside kv_b_proj
    o.rope_tables = true;
    o.mtp = s.speculative_tokens > 0 && (s.speculative_method == "mtp" || s.speculative_method.empty()) && !m.mtp_layers.empty();
    o.draft = s.speculative_tokens > 0 && !o.mtp;
    // Tables of lookups live in host memory in every public recipe; the engine's flag can put them on the GPUs.
    o.lookup_on_host = s.lookup_tables_on_host.value_or(true);
    o.vision = !s.language_model_only;
    if (s.mm_encoder_data_parallel) o.mm_data_parallel = *s.mm_encoder_data_parallel;
    Format const experts = m.quant[TensorClass::routed_expert].format;
    if (element_bits(experts) == 4 && gpu.vendor == GpuVendor::nvidia) {
        o.expert_width_multiple = 128; // tiles of the 4-bit expert kernels (Marlin, Triton, FlashInfer)
        if (experts == Format::mxfp4) o.expert_input_multiple = 256;
    }
    return o;
}

} // namespace detail

/// Defaults of max_num_batched_tokens and max_num_seqs: large for GPUs of 70 GiB and more that are no A100.
inline std::pair<std::int64_t, std::int64_t> vllm_batch_defaults(Gpu const& gpu, VllmRules const& rules) {
    bool const large = in_gib(gpu.visible) >= 70.0 && gpu.id.find("a100") == std::string::npos;
    if (rules.version.v0_engine) return {2048, 256};
    return large ? std::pair<std::int64_t, std::int64_t>{8192, 1024} : std::pair<std::int64_t, std::int64_t>{2048, 256};
}

/// Largest CUDA-graph batch when nothing is said.
inline std::int64_t vllm_capture_default(std::int64_t seqs, std::int64_t draft_tokens, Gpu const& gpu, VllmRules const& rules) noexcept {
    std::int64_t const most = rules.capture_1024_on_blackwell && detail::compute_major(gpu) == 10 ? 1024 : 512;
    return std::min(2 * seqs * (1 + draft_tokens), most);
}

/// Memory that is free when the engine looks: CUDA context and, with several ranks, communicators are there before (H100: 0.51 GiB
/// alone, 1.55 of four; the least that was seen is taken, so that a start is not refused for it).
inline Bytes vllm_free_memory(Gpu const& gpu, Layout const& layout) {
    double const ranks = static_cast<double>(layout.gpus_per_replica());
    return gpu.visible - gib(gpu.vendor == GpuVendor::amd ? 0.35 : 0.45 + 0.2 * std::log2(std::max(ranks, 1.0)));
}

/// Works out once what the batch sizes, the length and the utilization do not change.
/// The model is taken as it is loaded: another weights dtype is applied to it before.
/// `tensors` are weight_tensors(model); a search makes them once.
inline PreparedVllm prepare_vllm(StartRequest const& r, std::span<WeightTensor const> tensors) {
    PreparedVllm d;
    Model const& m = r.model;
    Gpu const& gpu = r.gpus.gpu;
    EngineSettings const& s = r.settings;
    d.rules = vllm_rules(parse_vllm_version(s.version, r.date));
    if (s.estimate_cuda_graphs) d.rules.subtracts_graphs = *s.estimate_cuda_graphs;
    d.pp = std::max(1, r.layout.pp);
    d.async = s.async_scheduling;
    d.draft_tokens = s.speculative_tokens;
    d.max_context = m.max_context.value();
    d.visible = gpu.visible.value();
    d.free = vllm_free_memory(gpu, r.layout).value();
    if (d.rules.version.guessed && parse_vllm_version(s.version, r.date).minor > kNewestVllmMinor)
        d.notes.push_back("rules of 0." + std::to_string(kNewestVllmMinor) + " were used: " + s.version + " is newer than what is modelled");

    auto const kinds = detail::mixer_kinds(m);
    d.invalid = detail::layout_refusal(m, r.layout);
    if (m.model_type == "glm5_next" && r.layout.tp == 3)
        d.risks.push_back("tensor parallel size 3 needs a build that pads heads; upstream refuses 64 heads by 3");

    // ---- KV format --------------------------------------------------------------------------------
    CacheOptions o;
    o.layout = r.layout;
    std::string asked = to_lower(s.kv_cache_dtype.value_or("auto"));
    if (asked.empty()) asked = "auto";
    d.kv_format = detail::kv_format_of(m.dtype);
    d.kv_cache_dtype = "auto";
    if (asked == "auto" && m.kv_dtype_hint) asked = to_lower(*m.kv_dtype_hint);
    if (asked != "auto") {
        if (auto const f = detail::kv_format_of(asked)) {
            d.kv_format = *f;
            d.kv_cache_dtype = asked;
        } else {
            d.notes.push_back("KV cache dtype '" + asked + "' is not modelled; " + std::string{to_string(d.kv_format)} + " was used");
        }
    }
    bool const fp8_family = d.kv_format == KvFormat::fp8;
    std::int32_t const major = detail::compute_major(gpu);
    // FlashMLA's sparse kernel stores scaled rows; FlashInfer's on Blackwell takes plain fp8
    if (kinds.sparse && kinds.mla && !kinds.recurrent && fp8_family && major != 10) d.kv_format = KvFormat::fp8_ds_mla;
    o.kv.format = d.kv_format;
    o.kv.tp = r.layout.tp;
    bool const v41 = m.model_type == "deepseek_v41";
    if (kinds.compressed) {
        if (d.kv_format == KvFormat::nvfp4_ds_mla || d.kv_format == KvFormat::nvfp4)
            o.kv.record = CompressedRecord::nvfp4;
        else if (v41 && major == 10)
            o.kv.record = asked == "fp8_ds_mla" ? CompressedRecord::mxfp8 : CompressedRecord::fp8;
        else
            o.kv.record = CompressedRecord::ds_mla;
        if (o.kv.record != CompressedRecord::nvfp4) d.kv_format = fp8_family ? KvFormat::fp8 : KvFormat::fp8_ds_mla;
        if (d.kv_cache_dtype == "auto") d.kv_cache_dtype = v41 && major == 10 ? "fp8" : "fp8_ds_mla";
    }
    std::string const index = to_lower(s.indexer_kv_dtype.value_or(""));
    o.kv.index = index == "mxfp4" || index == "fp4" ? IndexFormat::mxfp4
                 : m.model_type == "qwen4_exp"      ? IndexFormat::bf16
                                                    : IndexFormat::fp8;

    // ---- recurrent state --------------------------------------------------------------------------
    o.state.tp = r.layout.tp;
    o.state.draft_tokens = s.speculative_tokens;
    o.state.conv_bytes = m.dtype == Format::fp32 ? 4 : 2;
    o.state.recurrent_bytes = default_state_value_bytes(m.state_dtype, m.dtype);
    if (d.rules.version.v0_engine && kinds.recurrent) o.state.recurrent_bytes = 4; // NIM of that time set fp32 states
    if (s.state_dtype) {
        std::string const t = to_lower(*s.state_dtype);
        if (t != "auto") o.state.recurrent_bytes = t.find("32") != std::string::npos ? 4 : 2;
    }
    if (s.mamba_cache_mode)
        o.mode = *s.mamba_cache_mode;
    else if (s.prefix_caching)
        o.mode = !*s.prefix_caching ? MambaCacheMode::none
                 : d.rules.align_by_default || !kinds.mamba ? MambaCacheMode::align
                                                            : MambaCacheMode::all;
    else
        // Prefix caching of hybrid models came model by model: KDA models show align without a flag, gated delta and Mamba none.
        o.mode = d.rules.align_by_default && (m.model_type == "kimi_k3" || m.model_type == "glm5_next") ? MambaCacheMode::align
                                                                                                       : MambaCacheMode::none;
    o.internal_checkpoint = m.model_type == "kimi_k3" && (major == 9 || major == 10 || major == 12); // FlashKDA
    o.draft_tokens = s.speculative_tokens;
    o.draft_cached = s.speculative_tokens > 0 && !m.mtp_layers.empty() && (s.speculative_method.empty() || s.speculative_method == "mtp");
    o.hybrid_manager = !s.hybrid_manager_off;
    if (s.speculative_tokens > 0 && !o.draft_cached && to_lower(s.speculative_method).starts_with("dflash") && m.model_type == "glm5_next") {
        // DFlash 2 drafter of GLM-5.3-Flash: five window layers of 8 x 128 (public geometry scripts and logs)
        o.drafter = SlidingWindow{Gqa{.q_heads = 8, .kv_heads = 8, .head_dim = 128, .v_head_dim = 128}, 2048};
        o.drafter_layers = 5;
        o.drafter_block = s.block_size ? s.block_size->value() : major == 12 ? 256 : 16;
        d.notes.push_back("the drafter's cache is taken as five window layers of 8 heads x 128 over 2,048 tokens");
    }
    if (m.model_type == "qwen4_exp") o.extra_recurrent = 1; // the convolution over n-gram embeddings keeps a state

    // ---- block ------------------------------------------------------------------------------------
    std::int64_t kernel = 16;
    if (kinds.compressed)
        kernel = v41 ? (major == 10 ? 128 : 64) : 256;
    else if (kinds.mla && kinds.key_pool > 1)
        kernel = std::max<std::int64_t>(32 * kinds.key_pool, major == 12 ? 256 : 0); // six logs on SM120 and SM121 show 256
    else if (kinds.mla)
        kernel = kinds.recurrent ? d.rules.mla_alignment : (kinds.sparse || major == 10 || d.rules.version.minor < 15) ? 64 : 16;
    else if (major == 10 && kinds.head_dim == 256 && d.rules.version.number() >= 1300 && d.rules.version.number() < 2000)
        kernel = 32;
    if (s.block_size) {
        o.user_block = s.block_size->value();
        if (kinds.recurrent && d.rules.start_block_aligns) {
            kernel = std::max(kernel, *o.user_block);
            o.user_block.reset();
        }
    }
    o.kernel_block = kernel;
    std::int64_t const batch_tokens = s.max_num_batched_tokens ? s.max_num_batched_tokens->value() : vllm_batch_defaults(gpu, d.rules).first;
    if (m.model_type == "kimi_k3" && o.mode == MambaCacheMode::align && d.rules.align_by_default) o.block_divides = batch_tokens;
    if (d.rules.version.v0_engine) o.states_outside = true;
    d.cache = cache_layout(m, o, d.rules);
    d.profile_checks_slots = m.model_type == "glm5_next";

    // ---- weights ----------------------------------------------------------------------------------
    WeightOptions const wo = detail::vllm_weight_options(m, gpu, s);
    Layout as_loaded = r.layout;
    if (m.model_type == "glm5_next" && r.layout.tp == 3) as_loaded.ep = true; // expert widths do not divide by 3: whole experts
    for (int stage = 0; stage < d.pp; ++stage) {
        RankWeights const w = rank_weights(m, tensors, as_loaded, wo, stage);
        d.stage_weights.push_back(w.total.value());
        d.weights_total += w.total * r.layout.tp * r.layout.dp;
        d.host += w.host * r.layout.tp;
    }
    std::int64_t const longest = s.max_model_len && s.max_model_len->value() > 0 ? s.max_model_len->value() : m.max_context.value();
    d.memory = vllm_memory_model(m, r.gpus, r.layout, d.rules, wo.vision, longest);
    d.memory_len = longest;
    // a drafter of its own is not in the card: its weights and caches are about a twentieth of the model's
    if (s.speculative_tokens > 0 && !o.draft_cached && !o.drafter)
        d.memory.sd_constant = std::hypot(d.memory.sd_constant, 0.05 * static_cast<double>(*std::max_element(d.stage_weights.begin(), d.stage_weights.end())));
    if (o.states_outside) d.memory.state_bytes_per_seq += static_cast<double>(state_bytes(m, o.state).value());

    d.kv_per_token = kv_bytes_per_token(m, o.kv);
    d.fixed_per_sequence = kv_window_bytes(m, o.kv);
    d.state_per_sequence = state_bytes(m, o.state);

    // ---- settings in force ------------------------------------------------------------------------
    auto const [batched, seqs] = vllm_batch_defaults(gpu, d.rules);
    VllmPoint& p = d.point;
    p.utilization = s.gpu_memory_utilization.value_or(d.rules.default_utilization);
    p.max_len = s.max_model_len ? s.max_model_len->value() : m.max_context.value();
    p.batched = s.max_num_batched_tokens ? s.max_num_batched_tokens->value() : batched;
    if (!s.max_num_batched_tokens && !d.rules.chunked_prefill) p.batched = std::max<std::int64_t>(p.batched, p.max_len);
    p.seqs = s.max_num_seqs ? s.max_num_seqs->value() : seqs;
    p.seqs = std::min(p.seqs, p.batched);
    p.capture = s.max_cudagraph_capture_size ? s.max_cudagraph_capture_size->value()
                                             : vllm_capture_default(p.seqs, s.speculative_tokens, gpu, d.rules);
    p.graphs = s.enforce_eager ? GraphMode::none : s.graph_mode.value_or(GraphMode::full_and_piecewise);
    if (p.graphs == GraphMode::none) p.capture = 0;
    if (s.kv_cache_memory) p.pool = s.kv_cache_memory->value();
    if (r.logged_pool) p.logged_pool = r.logged_pool->value();
    if (s.num_gpu_blocks_override) p.blocks = *s.num_gpu_blocks_override;
    return d;
}

inline PreparedVllm prepare_vllm(StartRequest const& r) { return prepare_vllm(r, weight_tensors(r.model)); }

namespace detail {

/// The line with which the engine refuses, with its numbers.
inline std::string vllm_message(PreparedVllm const& d, VllmPoint const& p, VllmOutcome const& o) {
    auto const g = [](double bytes) { return fmt::format("{:.2f} GiB", bytes / 1073741824.0); };
    switch (o.verdict) {
    case Verdict::starts: return {};
    case Verdict::layout_invalid: return d.invalid;
    case Verdict::unsupported: return d.unsupported;
    case Verdict::free_memory_below_request:
        return fmt::format("Free memory on device ({}/{}) on startup is less than desired GPU memory utilization ({:g}, {}).",
                           g(static_cast<double>(d.free)), g(static_cast<double>(d.visible)), p.utilization, g(static_cast<double>(o.requested)));
    case Verdict::weights_do_not_fit: {
        std::int64_t most = 0;
        for (std::int64_t w : d.stage_weights) most = std::max(most, w);
        return fmt::format("CUDA out of memory while loading weights: {} a GPU, {} free", g(static_cast<double>(most)), g(static_cast<double>(d.free)));
    }
    case Verdict::no_kv_memory:
        return fmt::format("No available memory for the cache blocks. (Available KV cache memory: {})", g(static_cast<double>(o.pool)));
    case Verdict::max_model_len_too_long: {
        double const page = static_cast<double>(d.cache.checked_page(o.stage).value());
        std::int64_t const pages = d.cache.checked_pages(o.max_len, d.in_flight(p.batched));
        if (d.rules.version.v0_engine)
            return fmt::format("The model's max seq len ({}) is larger than the maximum number of tokens that can be stored in KV cache ({}).",
                               o.max_len, o.tokens);
        return fmt::format("To serve at least one request with the model's max seq len ({}), {} KV cache is needed, which is larger than the "
                           "available KV cache memory ({}). The estimated maximum model length is {}.",
                           o.max_len, g(static_cast<double>(pages) * page), g(static_cast<double>(o.pool)), o.estimated_len);
    }
    case Verdict::state_slots_too_few: {
        std::int64_t const m = d.profile_checks_slots && p.seqs > std::min(p.seqs, p.capture) ? std::min(p.seqs, p.capture) : o.blocks;
        return fmt::format("max_num_seqs ({}) exceeds available Mamba cache blocks ({})", p.seqs, m);
    }
    }
    return {};
}

} // namespace detail

/// The explained verdict of a prepared deployment at the settings in force.
inline StartPlan explain_vllm(PreparedVllm const& d, StartRequest const& r) {
    StartPlan plan;
    VllmPoint const& p = d.point;
    VllmOutcome o = evaluate_vllm(d, p);
    if (!d.unsupported.empty()) o.verdict = Verdict::unsupported;
    if (!d.invalid.empty()) o.verdict = Verdict::layout_invalid;
    std::int64_t fullest = 0;
    for (std::int64_t w : d.stage_weights) fullest = std::max(fullest, w);

    plan.verdict = o.verdict;
    plan.starts = o.verdict == Verdict::starts;
    plan.engine_message = detail::vllm_message(d, p, o);
    plan.weights = Bytes{fullest};
    plan.weights_total = d.weights_total;
    plan.host_bytes = d.host;
    plan.shortfall = Bytes{std::max<std::int64_t>(0, fullest - o.requested)};
    plan.kv_format = d.kv_format;
    plan.kv_cache_dtype = d.kv_cache_dtype;
    plan.kv_per_token = d.kv_per_token;
    plan.fixed_per_sequence = d.fixed_per_sequence;
    plan.state_per_sequence = d.state_per_sequence;
    plan.budget = {Bytes{d.visible}, p.utilization,  Bytes{o.requested}, Bytes{fullest}, Bytes{static_cast<std::int64_t>(o.activation)},
                   Bytes{static_cast<std::int64_t>(o.non_torch)}, Bytes{static_cast<std::int64_t>(o.graphs)}};
    plan.pool = Bytes{o.pool};
    plan.block_tokens = d.cache.block;
    plan.num_blocks = o.blocks;
    plan.bytes_per_block = d.cache.bytes_per_block[o.stage];
    plan.blocks_per_max_request = o.pages;
    plan.kv_tokens = Tokens{o.verdict == Verdict::starts || o.verdict == Verdict::state_slots_too_few ? o.tokens : 0};
    plan.max_num_seqs = Requests{p.seqs};
    plan.max_model_len = Tokens{o.max_len > 0 ? o.max_len : p.max_len};
    plan.max_batched_tokens = Tokens{p.batched};
    plan.rules_version = to_string(d.rules.version);
    std::int64_t const flight = d.in_flight(p.batched);
    for (CacheGroup const& g : d.cache.groups) plan.pages_of_request.push_back(detail::vllm_page_rule(d, g, flight));
    plan.notes = d.notes;
    plan.risks = d.risks;
    if (d.cache.recurrent) plan.state_slots = o.blocks;
    if (o.pages > 0) plan.max_requests_at_max_model_len = static_cast<double>(o.blocks) / static_cast<double>(o.pages);
    plan.basis = p.pool || p.logged_pool ? Basis::exact : r.model.is_inferred() ? Basis::inferred : Basis::calibrated;

    // the interval: the same allocator with more and less memory taken
    std::int64_t const page = plan.bytes_per_block.value();
    if (page > 0 && o.pool > 0) {
        std::int64_t const check = std::max<std::int64_t>(0, (o.pool - (d.rules.null_block ? page : 0)) / d.cache.checked_page(o.stage).value());
        plan.longest = Tokens{d.cache.longest(check, flight, d.max_context)};
        if (p.pool || p.logged_pool) {
            plan.kv_tokens_low = plan.kv_tokens_high = plan.kv_tokens;
        } else {
            double const half = 1.2816 * o.sd;
            auto const tokens_at = [&](double pool) {
                VllmPoint q = p;
                q.pool = static_cast<std::int64_t>(std::max(pool, 0.0));
                VllmOutcome const x = evaluate_vllm(d, q);
                return Tokens{x.verdict == Verdict::starts || x.verdict == Verdict::state_slots_too_few ? x.tokens : 0};
            };
            plan.kv_tokens_low = tokens_at(static_cast<double>(o.pool) - half);
            plan.kv_tokens_high = tokens_at(static_cast<double>(o.pool) + half);
        }
    }

    // does it fit with some settings: least batch, no graphs, nearly all memory
    if (d.invalid.empty() && d.unsupported.empty()) {
        VllmPoint least = p;
        least.utilization = static_cast<double>(d.free) / static_cast<double>(d.visible);
        least.utilization = std::floor(least.utilization * 1000.0) / 1000.0;
        least.seqs = 1;
        least.batched = std::min<std::int64_t>(p.batched, 2048);
        least.capture = 0;
        least.graphs = GraphMode::none;
        least.pool.reset();
        least.logged_pool.reset();
        least.blocks = -1;
        least.max_len = std::min<std::int64_t>(d.max_context, r.isl.value() + r.osl.value());
        plan.fits = evaluate_vllm(d, least).verdict == Verdict::starts;
    }
    if (plan.starts && p.utilization > 0.945 && p.graphs != GraphMode::none && !d.memory.subtracts_graphs)
        plan.risks.push_back("graph capture or sampler warm-up may run out of memory: this version does not count CUDA graphs, and " +
                             fmt::format("{:.1f} GiB are left beside the pool", in_gib(Bytes{d.free - o.requested})));
    return plan;
}

/// vLLM's verdict on a deployment, explained.
inline StartPlan plan_vllm(StartRequest const& r) { return explain_vllm(prepare_vllm(r), r); }

/// The allocator alone: the pool is what the first rank's log prints ("Available KV cache memory").
inline StartPlan plan_vllm_given_pool(StartRequest r, Bytes pool) {
    r.logged_pool = pool;
    return plan_vllm(r);
}

} // namespace servecap
