// servecap: what llama.cpp makes of a machine's memory
// SPDX-License-Identifier: Apache-2.0
//
// llama.cpp places whole layers on devices and allocates everything at the start:
//   units = layers + 1 (the head is the last); -ngl N puts the LAST N on GPUs, split by free memory or -ts
//   KV    = cells * streams * rows of the attention layers; windows keep min(base, n_swa * sequences + ubatch) cells
//   state = sequences * (1 + draft depth) * (R + S) * 4 bytes, both f32
//   compute buffer = n_ubatch * (vocabulary + 2 * width) * 4 where all rows have logits; servers since spring 2026
//                    reserve logits for few rows, and the widest layer decides
// The token embedding stays on the host. Since December 2025 the parameters are fitted to free memory when
// -ngl is not given: the context shrinks first (when -c is not given either), then layers stay on the host.
// Sources: llama-model.cpp, llama-kv-cache*.cpp, llama-memory-recurrent.cpp, common/fit.cpp (to b11195); sizes
// checked against public logs. The limited compute buffer follows three of those logs to 2 %; it is an
// estimate elsewhere. Not modelled: split mode row and tensor, RPC, vision projectors.

#pragma once

#include <algorithm>
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
#include <servecap/engine/gguf_types.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/support.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>

namespace servecap {

/// A build number of llama.cpp; `guessed` when it is placed by a date or a default.
struct LlamaCppBuild {
    std::int32_t build = 11195;
    bool guessed = false;
};

/// Reads "b9849", "9849", "b9849 (799fcc04a)"; else by date, else the newest modelled.
inline LlamaCppBuild parse_llama_cpp_build(std::string_view text, std::string_view date = {}) {
    LlamaCppBuild b;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] < '0' || text[i] > '9') continue;
        std::int32_t n = 0;
        std::size_t digits = 0;
        while (i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 8) {
            n = n * 10 + (text[i++] - '0');
            ++digits;
        }
        if (n >= 1000) {
            b.build = n;
            b.guessed = n > 12000;
            return b;
        }
    }
    b.guessed = true;
    if (date.size() >= 7 && date[4] == '-') {
        std::string_view const month = date.substr(0, 7);
        b.build = month < "2025-12" ? 7000 : month < "2026-02" ? 7500 : month < "2026-05" ? 8500 : 11195;
    }
    return b;
}

/// The rules of one build.
struct LlamaCppRules {
    LlamaCppBuild build;
    bool fits = true;             ///< parameters are fitted to free memory
    bool latent_keys_only = true; ///< MLA caches no values
    bool few_logits = true;       ///< the server reserves logits for few rows
    bool auto_parallel = true;    ///< four unified sequences when -np is not given
};

/// Rules by build. Fit and automatic parallelism: December 2025 (about b7400); V-less MLA: pull request 19067 (January
/// 2026, about b7850); limited outputs: spring 2026 (about b8900).
constexpr LlamaCppRules llama_cpp_rules(LlamaCppBuild const& b) noexcept {
    LlamaCppRules r;
    r.build = b;
    r.fits = b.build >= 7400;
    r.auto_parallel = b.build >= 7400;
    r.latent_keys_only = b.build >= 7850;
    r.few_logits = b.build >= 8900;
    return r;
}

/// Context cells and sequences as the flags give them.
struct LlamaCppContext {
    std::int64_t cells = 0; ///< of one stream
    std::int64_t streams = 1;
    std::int64_t sequences = 1;
    bool unified = true;
    std::int64_t per_sequence = 0; ///< longest request

    /// Cells of all streams.
    [[nodiscard]] constexpr std::int64_t total() const noexcept { return cells * streams; }
};

/// Cells for a context of `n_ctx` tokens; both are padded to 256.
constexpr LlamaCppContext llama_cpp_context(std::int64_t n_ctx, std::int64_t sequences, bool unified) noexcept {
    LlamaCppContext c;
    c.sequences = sequences < 1 ? 1 : sequences;
    c.unified = unified;
    c.streams = unified ? 1 : c.sequences;
    c.cells = round_up(unified ? n_ctx : ceil_div(n_ctx, c.sequences), 256);
    c.per_sequence = unified ? n_ctx : ceil_div(n_ctx, c.sequences);
    return c;
}

/// Cells of the window cache of one stream.
constexpr std::int64_t llama_cpp_window_cells(std::int64_t base, std::int64_t window, LlamaCppContext const& c,
                                              std::int64_t ubatch, bool full) noexcept {
    if (full) return base;
    std::int64_t const wanted = window * (c.unified ? c.sequences : 1) + ubatch;
    return round_up(wanted < base ? wanted : base, 256);
}

/// Compute buffer of one device. Classic: logits for every row of the ubatch. Few: the widest layer's intermediates and
/// the mask; 4.3 floats for each unit of FFN width, from logs of Qwen3.5-9B, Qwen3.8-27B and Gemma-4-12B (2 % apart).
constexpr Bytes llama_cpp_compute(std::int64_t ubatch, std::int64_t vocab, std::int64_t hidden, std::int64_t ffn_width,
                                  std::int64_t cells, bool few_logits) noexcept {
    if (!few_logits) return Bytes{ubatch * (vocab + 2 * hidden) * 4};
    return Bytes{ubatch * ffn_width * 172 / 10 + 2 * ubatch * cells};
}

namespace llama_cpp_detail {

/// What one layer (or the head) takes, bytes.
struct Unit {
    Bytes dense{};
    Bytes experts{};
    Bytes kv_cell{};     ///< KV of one cell of the base cache
    Bytes window_cell{}; ///< KV of one cell of the window cache
    std::int64_t window = 0;
    Bytes quarter_cell{}; ///< V4: a cell for every four tokens
    Bytes far_cell{};     ///< V4: a cell for every 128 tokens
    Bytes state{};        ///< of one sequence
};

struct Device {
    Bytes model{}, kv{}, state{}, compute{};
    [[nodiscard]] Bytes used() const noexcept { return model + kv + state + compute; }
};

struct Outcome {
    LlamaCppRules rules;
    GgufMix mix;
    GgufType key = GgufType::f16, value = GgufType::f16;
    LlamaCppContext context;
    std::int64_t ubatch = 512;
    std::int32_t gpu_units = 0, all_units = 0, expert_layers_on_host = 0;
    std::vector<Device> devices;
    Bytes host{}, visible{}, free{}, weights_total{}, kv_total{}, state_total{}, state_sequence{}, window_sequence{};
    Bytes cell{};
    Verdict verdict = Verdict::starts;
    std::string message;
    bool fitted = false;
    std::vector<std::string> notes;
};

inline std::vector<Unit> units_of(Model const& m, GgufMix const& mix, GgufType key, GgufType value, LlamaCppRules const& rules,
                                  Bytes& embedding, Bytes& total) {
    auto const layers = static_cast<std::int64_t>(m.layers.size());
    std::vector<Unit> units(m.layers.size() + 1);
    std::int64_t experts = 0, q_per_kv = 1;
    for (Layer const& l : m.layers) {
        if (l.ffn && std::holds_alternative<Moe>(*l.ffn)) experts = std::get<Moe>(*l.ffn).experts;
        for (Mixer const& x : l.mixers)
            if (auto const* a = std::get_if<Gqa>(&x); a != nullptr && a->kv_heads > 0) q_per_kv = a->q_heads / a->kv_heads;
    }
    double stored = 0, params = 0;
    std::vector<std::pair<WeightTensor, Bytes>> sized;
    for (WeightTensor const& t : weight_tensors(m)) {
        if (!in_trunk(t.cls) && t.cls != TensorClass::lookup) continue;
        Bytes const b = gguf_bytes(gguf_type_of(mix, t, layers, experts, q_per_kv), t.rows, t.cols) * t.count;
        stored += static_cast<double>(b.value());
        params += static_cast<double>(params_of(t).value());
        sized.push_back({t, b});
    }
    // A file whose bytes by class are known, or whose average alone is: every tensor in proportion.
    auto const scale_of = [&](TensorClass c) {
        for (auto const& [cls, exact] : m.exact_bytes)
            if (cls == c) {
                double sum = 0;
                for (auto const& [t, b] : sized)
                    if (t.cls == c) sum += static_cast<double>(b.value());
                if (sum > 0) return static_cast<double>(exact.value()) / sum;
            }
        return mix.bits > 0 && stored > 0 ? mix.bits / 8 * params / stored : 1.0;
    };
    std::vector<double> scales(kTensorClasses);
    for (int c = 0; c < kTensorClasses; ++c) scales[static_cast<std::size_t>(c)] = scale_of(static_cast<TensorClass>(c));
    embedding = total = Bytes{};
    for (auto const& [t, plain] : sized) {
        Bytes const b{static_cast<std::int64_t>(static_cast<double>(plain.value()) * scales[static_cast<std::size_t>(t.cls)])};
        total += b;
        if (t.cls == TensorClass::embedding || t.cls == TensorClass::lookup) {
            embedding += b; // on the host
            if (m.tied_embeddings && t.name == "embed_tokens") units.back().dense += b;
        } else if (t.layer < 0) {
            units.back().dense += b;
        } else if (t.cls == TensorClass::routed_expert) {
            units[static_cast<std::size_t>(t.layer)].experts += b;
        } else {
            units[static_cast<std::size_t>(t.layer)].dense += b;
        }
    }
    auto const row = [](GgufType t, std::int64_t n) { return n > 0 ? gguf_bytes(t, 1, n) : Bytes{}; };
    for (std::size_t i = 0; i < m.layers.size(); ++i) {
        Unit& u = units[i];
        for (Mixer const& x : m.layers[i].mixers) {
            auto const gqa = [&](Gqa const& a) {
                if (a.reuses_kv) return Bytes{};
                return row(key, std::int64_t{a.kv_heads} * a.head_dim) +
                       row(value, std::int64_t{a.kv_heads} * (a.v_head_dim > 0 ? a.v_head_dim : a.head_dim));
            };
            auto const mla = [&](Mla const& a) {
                return row(key, std::int64_t{a.kv_lora_rank} + a.qk_rope) +
                       (rules.latent_keys_only ? Bytes{} : row(value, a.kv_lora_rank));
            };
            if (auto const* a = std::get_if<Gqa>(&x)) u.kv_cell += gqa(*a);
            if (auto const* a = std::get_if<Mla>(&x)) u.kv_cell += mla(*a);
            if (auto const* a = std::get_if<SlidingWindow>(&x)) {
                u.window_cell += gqa(a->attn);
                u.window = a->window;
            }
            if (auto const* a = std::get_if<ChunkedLocal>(&x)) {
                u.window_cell += gqa(a->attn);
                u.window = a->chunk;
            }
            if (auto const* a = std::get_if<SparseIndexed>(&x)) {
                u.kv_cell += std::holds_alternative<Mla>(a->base) ? mla(std::get<Mla>(a->base)) : gqa(std::get<Gqa>(a->base));
                if (a->indexer.owns_keys) u.kv_cell += row(GgufType::f16, a->indexer.head_dim);
            }
            if (auto const* a = std::get_if<Compressed>(&x)) {
                u.window_cell += row(key == GgufType::bf16 ? key : GgufType::f16, a->head_dim);
                u.window = a->window;
                Bytes const entry =
                    row(GgufType::f16, a->head_dim) + (a->indexer ? row(GgufType::f16, a->indexer->head_dim) : Bytes{});
                if (a->kv_source && a->ratio > 0 && a->ratio <= 4) u.quarter_cell += entry;
                if (a->kv_source && a->ratio > 4) u.far_cell += entry;
            }
            StateElements const e = state_elements(x, 1);
            u.state += Bytes{(e.conv + e.recurrent) * 4};
        }
    }
    return units;
}

inline std::int64_t ffn_width(Model const& m) {
    std::int64_t most = m.hidden;
    for (Layer const& l : m.layers) {
        if (!l.ffn) continue;
        if (auto const* d = std::get_if<Dense>(&*l.ffn)) most = std::max<std::int64_t>(most, d->intermediate);
        if (auto const* e = std::get_if<Moe>(&*l.ffn))
            most = std::max<std::int64_t>(most, std::int64_t{e->top_k} * e->intermediate + e->shared_intermediate);
    }
    return most;
}

/// First device whose share of the split passes unit `j` of `n`.
inline std::size_t device_of(std::int64_t j, std::int64_t n, std::vector<double> const& cumulative) {
    for (std::size_t d = 0; d + 1 < cumulative.size(); ++d)
        if (static_cast<double>(j) < cumulative[d] * static_cast<double>(n)) return d;
    return cumulative.size() - 1;
}

struct Asked {
    std::vector<Unit> units;
    Bytes embedding{};
    std::vector<double> cumulative; ///< split of the units over the devices
    std::int64_t draft_depth = 0;
    bool kv_on_host = false;
    bool swa_full = false;
    std::optional<Bytes> compute;
    std::int64_t vocab = 0, hidden = 0, width = 0;
};

/// Bytes of KV of one layer.
inline Bytes kv_of(Unit const& u, LlamaCppContext const& c, std::int64_t ubatch, bool swa_full) {
    Bytes b = u.kv_cell * (c.cells * c.streams);
    if (u.window_cell.value() > 0)
        b += u.window_cell * (llama_cpp_window_cells(c.cells, u.window, c, ubatch, swa_full) * c.streams);
    if (u.quarter_cell.value() > 0) b += u.quarter_cell * (round_up(ceil_div(c.cells, 4), 256) * c.streams);
    if (u.far_cell.value() > 0) b += u.far_cell * (round_up(ceil_div(c.cells, 128), 256) * c.streams);
    return b;
}

/// Places the units and sums what each device takes.
inline void place(Outcome& o, Asked const& a, std::int32_t gpu_units, LlamaCppContext const& c,
                  std::int32_t expert_layers_on_host) {
    o.devices.assign(a.cumulative.size(), Device{});
    o.host = a.embedding;
    o.kv_total = o.state_total = Bytes{};
    o.gpu_units = gpu_units;
    o.context = c;
    o.expert_layers_on_host = expert_layers_on_host;
    auto const n = static_cast<std::int64_t>(a.units.size());
    std::int64_t const first = n - gpu_units;
    for (std::int64_t i = 0; i < n; ++i) {
        Unit const& u = a.units[static_cast<std::size_t>(i)];
        Bytes const kv = kv_of(u, c, o.ubatch, a.swa_full);
        Bytes const state = u.state * (c.sequences * (1 + a.draft_depth));
        o.kv_total += kv;
        o.state_total += state;
        bool const on_gpu = i >= first;
        bool const experts_on_host = !on_gpu || i < expert_layers_on_host;
        if (experts_on_host) o.host += u.experts;
        if (!on_gpu) {
            o.host += u.dense;
            continue;
        }
        Device& d = o.devices[device_of(i - first, gpu_units, a.cumulative)];
        d.model += u.dense + (experts_on_host ? Bytes{} : u.experts);
        if (!a.kv_on_host) {
            d.kv += kv;
            d.state += state;
        }
    }
    Bytes const compute =
        a.compute ? *a.compute : llama_cpp_compute(o.ubatch, a.vocab, a.hidden, a.width, c.cells, o.rules.few_logits);
    for (Device& d : o.devices)
        if (gpu_units > 0) d.compute = compute;
}

inline Bytes most_used(Outcome const& o) {
    Bytes most{};
    for (Device const& d : o.devices) most = std::max(most, d.used());
    return most;
}

/// The margin that the fit keeps on every device.
inline constexpr Bytes kFitMargin = mib(1024);
/// What a device's context takes before anything is loaded: 0.25 to 0.5 GiB by experience.
inline constexpr double kDeviceContextGib = 0.3;

inline Outcome evaluate(StartRequest const& r) {
    Outcome o;
    Model const& m = r.model;
    EngineSettings const& s = r.settings;
    o.rules = llama_cpp_rules(parse_llama_cpp_build(s.version, r.date));
    o.visible = r.gpus.gpu.visible;
    o.free = o.visible - gib(kDeviceContextGib);
    if (auto const support = engine_support(EngineKind::llama_cpp, m, r.gpus.gpu); !support.supported) {
        o.verdict = Verdict::unsupported;
        o.message = support.reason + " (" + std::string{support.source} + ")";
        return o;
    }
    std::int32_t const devices = std::max(1, std::min(r.layout.gpus_per_replica(), r.gpus.count));
    if (r.layout.gpus_per_replica() > r.gpus.count) {
        o.verdict = Verdict::layout_invalid;
        o.message = fmt::format("the layout needs {} GPUs, {} are given", r.layout.gpus_per_replica(), r.gpus.count);
        return o;
    }

    // The file: what is asked, else the nearest of what the checkpoint is.
    std::optional<GgufMix> mix;
    if (s.weights_dtype && *s.weights_dtype != "auto") mix = parse_gguf_mix(*s.weights_dtype);
    if (!mix) mix = parse_gguf_mix(m.quant.label);
    if (!mix) {
        Format const f = m.quant[TensorClass::routed_expert].format;
        Format const d = m.quant[TensorClass::dense_ffn].format;
        auto const is = [&](Format x) { return f == x || d == x; };
        if (is(Format::mxfp4))
            mix = parse_gguf_mix("mxfp4");
        else if (is(Format::nvfp4))
            mix = parse_gguf_mix("nvfp4");
        else if (element_bits(d) == 8 || element_bits(f) == 8)
            mix = parse_gguf_mix("q8_0");
        else if (element_bits(d) == 4 || element_bits(f) == 4)
            mix = parse_gguf_mix("q4_k_m");
        else
            mix = parse_gguf_mix(m.dtype == Format::fp16 ? "f16" : "bf16");
        o.notes.push_back("no GGUF type given: " + mix->label + " taken as the nearest of the checkpoint");
    }
    o.mix = *mix;
    auto const cache_type = [&](std::optional<std::string> const& given, GgufType fallback) {
        if (!given || *given == "auto") return fallback;
        if (auto const t = parse_gguf_type(*given)) return *t;
        if (given->starts_with("fp8")) return GgufType::q8_0;
        if (*given == "fp16" || *given == "float16" || *given == "half") return GgufType::f16;
        if (*given == "bfloat16") return GgufType::bf16;
        return fallback;
    };
    o.key = cache_type(s.kv_cache_dtype, GgufType::f16);
    o.value = cache_type(s.cache_type_v, s.cache_type_v ? GgufType::f16 : o.key);

    std::int64_t const trained = std::max<std::int64_t>(m.max_context.value(), 1);
    bool const context_given = s.max_model_len && s.max_model_len->value() > 0;
    std::optional<std::int64_t> parallel;
    if (s.n_parallel)
        parallel = std::max(1, *s.n_parallel);
    else if (s.max_num_seqs)
        parallel = std::max<std::int64_t>(1, s.max_num_seqs->value());
    std::int64_t const sequences = parallel ? *parallel : o.rules.auto_parallel ? 4 : 1;
    bool const unified = s.kv_unified ? *s.kv_unified : !parallel;
    std::int64_t const streams = unified ? 1 : sequences;
    std::int64_t const n_ctx = context_given ? s.max_model_len->value() : trained * streams;
    o.ubatch = s.ubatch ? std::max<std::int64_t>(1, s.ubatch->value()) : 512;

    Asked a;
    a.units = units_of(m, o.mix, o.key, o.value, o.rules, a.embedding, o.weights_total);
    a.draft_depth = s.speculative_tokens;
    a.kv_on_host = s.kv_on_host;
    a.swa_full = s.swa_full;
    a.compute = s.compute_buffer;
    a.vocab = m.vocab;
    a.hidden = m.hidden;
    a.width = ffn_width(m);
    double sum = 0;
    for (std::int32_t d = 0; d < devices; ++d)
        sum += d < static_cast<std::int32_t>(s.tensor_split.size()) ? s.tensor_split[static_cast<std::size_t>(d)]
               : s.tensor_split.empty()                             ? 1.0
                                                                    : 0.0;
    double run = 0;
    for (std::int32_t d = 0; d < devices; ++d) {
        run += d < static_cast<std::int32_t>(s.tensor_split.size()) ? s.tensor_split[static_cast<std::size_t>(d)]
               : s.tensor_split.empty()                             ? 1.0
                                                                    : 0.0;
        a.cumulative.push_back(sum > 0 ? run / sum : 1.0);
    }
    o.all_units = static_cast<std::int32_t>(a.units.size());
    for (Unit const& u : a.units) {
        o.cell += u.kv_cell;
        o.state_sequence += u.state;
        if (u.window_cell.value() > 0) o.window_sequence += u.window_cell * u.window;
    }

    std::int32_t const asked_units =
        s.n_gpu_layers && *s.n_gpu_layers >= 0 ? std::min(*s.n_gpu_layers, o.all_units) : o.all_units;
    std::int32_t const host_experts = std::min(s.n_cpu_moe, static_cast<std::int32_t>(m.layers.size()));
    place(o, a, asked_units, llama_cpp_context(n_ctx, sequences, unified), host_experts);
    bool const may_fit = o.rules.fits && s.fit_params.value_or(true) && !s.n_gpu_layers && s.tensor_split.empty();
    auto const has_room = [&] { return most_used(o) + kFitMargin <= o.free; };
    if (may_fit && !has_room()) {
        o.fitted = true;
        bool done = false;
        if (!context_given) { // the context shrinks linearly, in whole 256s a stream, to no less than 4,096
            std::int64_t low = std::min<std::int64_t>(4096 * streams, n_ctx), high = n_ctx;
            place(o, a, asked_units, llama_cpp_context(low, sequences, unified), host_experts);
            if (has_room()) {
                while (high - low > 256 * streams) {
                    std::int64_t const middle = (low + (high - low) / 2) / (256 * streams) * (256 * streams);
                    if (middle <= low) break;
                    place(o, a, asked_units, llama_cpp_context(middle, sequences, unified), host_experts);
                    (has_room() ? low : high) = middle;
                }
                place(o, a, asked_units, llama_cpp_context(low, sequences, unified), host_experts);
                o.notes.push_back(fmt::format("context size reduced from {} to {} to leave 1024 MiB free", n_ctx, low));
                done = true;
            }
        }
        LlamaCppContext const c = o.context;
        bool moe = false;
        for (Unit const& u : a.units) moe = moe || u.experts.value() > 0;
        if (!done && moe) { // dense parts first, then whole layers from the back as far as they go
            std::int32_t const layers = static_cast<std::int32_t>(m.layers.size());
            std::int32_t few = 0, many = layers;
            place(o, a, o.all_units, c, many);
            if (has_room()) {
                while (few < many) {
                    std::int32_t const middle = (few + many) / 2;
                    place(o, a, o.all_units, c, middle);
                    if (has_room())
                        many = middle;
                    else
                        few = middle + 1;
                }
                place(o, a, o.all_units, c, many);
                o.notes.push_back(fmt::format("experts of {} of {} layers stay on the host", many, layers));
                done = true;
            }
        }
        if (!done) {
            std::int32_t low = 0, high = o.all_units;
            while (low < high) {
                std::int32_t const middle = (low + high + 1) / 2;
                place(o, a, middle, c, moe ? static_cast<std::int32_t>(m.layers.size()) : host_experts);
                if (has_room())
                    low = middle;
                else
                    high = middle - 1;
            }
            place(o, a, low, c, moe ? static_cast<std::int32_t>(m.layers.size()) : host_experts);
            o.notes.push_back(fmt::format("{} of {} layers on the GPU, the rest on the host", low, o.all_units));
        }
        return o;
    }
    for (std::size_t d = 0; d < o.devices.size(); ++d) {
        Device const& x = o.devices[d];
        Bytes left = o.free - x.model;
        auto const refuse = [&](Verdict v, Bytes wanted, std::string_view then) {
            o.verdict = v;
            o.message = fmt::format("ggml_backend_cuda_buffer_type_alloc_buffer: allocating {:.2f} MiB on device {}: cudaMalloc "
                                    "failed: out of memory; {}",
                                    static_cast<double>(wanted.value()) / 1048576, d, then);
        };
        if (left.value() < 0) {
            refuse(Verdict::weights_do_not_fit, x.model, fmt::format("unable to allocate CUDA{} buffer", d));
            return o;
        }
        left -= x.kv;
        if (left.value() < 0) {
            refuse(Verdict::no_kv_memory, x.kv, "failed to allocate buffer for kv cache");
            return o;
        }
        left -= x.state;
        if (left.value() < 0) {
            refuse(Verdict::state_slots_too_few, x.state, "failed to allocate buffer for rs cache");
            return o;
        }
        left -= x.compute;
        if (left.value() < 0) {
            refuse(Verdict::no_kv_memory, x.compute, "failed to allocate compute pp buffers");
            return o;
        }
    }
    return o;
}

inline KvFormat kv_format_of(GgufType t) noexcept {
    switch (t) {
    case GgufType::f32: return KvFormat::fp32;
    case GgufType::bf16: return KvFormat::bf16;
    case GgufType::q8_0: return KvFormat::q8_0;
    case GgufType::q4_0: return KvFormat::q4_0;
    default: return KvFormat::fp16;
    }
}

} // namespace llama_cpp_detail

/// What llama-server would make of the deployment. `explain` adds fixes and notes; a sweep leaves them out. The devices
/// are the GPUs of the layout, whatever its kind: llama.cpp spreads layers over them.
inline StartPlan plan_llama_cpp(StartRequest const& r, bool explain = true) {
    using namespace llama_cpp_detail;
    Outcome const o = evaluate(r);
    StartPlan p;
    p.verdict = o.verdict;
    p.starts = o.verdict == Verdict::starts;
    p.engine_message = o.message;
    p.rules_version = fmt::format("llama.cpp b{}", o.rules.build.build);
    p.basis = r.model.is_inferred() ? Basis::inferred : Basis::calibrated;
    p.kv_format = kv_format_of(o.key);
    p.kv_cache_dtype = o.key == o.value ? std::string{gguf_info(o.key).name}
                                        : fmt::format("{}/{}", gguf_info(o.key).name, gguf_info(o.value).name);
    if (o.verdict == Verdict::unsupported || o.verdict == Verdict::layout_invalid) return p;
    Device fullest;
    for (Device const& d : o.devices)
        if (d.used() > fullest.used()) fullest = d;
    p.weights = fullest.model;
    p.weights_total = o.weights_total;
    p.host_bytes = o.host;
    p.budget.visible = o.visible;
    p.budget.utilization = 1;
    p.budget.requested = o.free;
    p.budget.weights = fullest.model;
    p.budget.activation = fullest.compute;
    p.budget.non_torch = o.visible - o.free;
    p.pool = fullest.kv + fullest.state;
    p.kv_per_token = o.cell;
    p.fixed_per_sequence = o.window_sequence;
    p.state_per_sequence = o.state_sequence * (1 + r.settings.speculative_tokens);
    p.block_tokens = Tokens{256};
    p.bytes_per_block = o.cell * 256;
    p.max_num_seqs = Requests{o.context.sequences};
    p.max_model_len = Tokens{o.context.per_sequence};
    p.max_batched_tokens = Tokens{o.ubatch};
    p.blocks_per_max_request = ceil_div(o.context.per_sequence, 256);
    if (o.state_sequence.value() > 0) p.state_slots = o.context.sequences;
    std::int64_t const one = r.isl.value() + r.osl.value();
    p.fits = r.model.max_context.value() <= 0 || one <= r.model.max_context.value();
    if (o.verdict == Verdict::weights_do_not_fit) p.shortfall = fullest.model - o.free;
    if (p.starts) {
        p.kv_tokens = p.kv_tokens_low = p.kv_tokens_high = Tokens{o.context.total()};
        if (o.fitted &&
            !(r.settings.max_model_len && r.settings.max_model_len->value() > 0)) { // the compute buffer is an estimate
            p.kv_tokens_low = Tokens{o.context.total() * 85 / 100};
            p.kv_tokens_high = Tokens{std::min(o.context.total() * 115 / 100,
                                               std::max(o.context.total(), r.model.max_context.value() * o.context.streams))};
        }
        p.num_blocks = o.context.total() / 256;
        p.pages_of_request = {PageRule{256, 0, 0, 1, 1}};
        p.longest = p.max_model_len;
        p.max_requests_at_max_model_len = o.context.unified ? 1.0 : static_cast<double>(o.context.sequences);
    }
    if (!explain) return p;
    p.notes = o.notes;
    if (p.starts) {
        if (o.gpu_units < o.all_units) p.notes.push_back(fmt::format("{} of {} layers run on the GPU", o.gpu_units, o.all_units));
        if (o.host.value() > 0) p.notes.push_back(fmt::format("{:.1f} GiB of the model stay in host memory", in_gib(o.host)));
        if (o.context.unified && o.context.sequences > 1)
            p.notes.push_back(fmt::format("{} sequences share {} cells", o.context.sequences, o.context.total()));
        if (r.gpus.gpu.node_ram && o.host * (r.gpus.count / std::max(1, r.layout.gpus_per_replica())) > *r.gpus.gpu.node_ram)
            p.risks.push_back("the part on the host is larger than the node's memory: it is read from disk again and again");
        return p;
    }
    auto const offer = [&](std::string flag, std::string value, auto&& change, std::string_view price) {
        EngineSettings s = r.settings;
        change(s);
        auto const v = plan_llama_cpp(StartRequest{r.model, r.gpus, r.layout, s, r.isl, r.osl, r.date}, false);
        if (!v.starts) return false;
        p.fixes.push_back(
            {std::move(flag), std::move(value), fmt::format("starts with {} cells; {}", v.kv_tokens.value(), price), s});
        return true;
    };
    if (o.verdict != Verdict::weights_do_not_fit) {
        std::int64_t n = r.settings.max_model_len && r.settings.max_model_len->value() > 0 ? r.settings.max_model_len->value()
                                                                                           : o.context.total();
        for (n /= 2; n >= one; n /= 2)
            if (offer(
                    "-c", std::to_string(n), [&](EngineSettings& s) { s.max_model_len = Tokens{n}; }, "a shorter context"))
                break;
        if (o.key == GgufType::f16 || o.key == GgufType::bf16)
            offer(
                "-ctk", "q8_0 -ctv q8_0",
                [](EngineSettings& s) {
                    s.kv_cache_dtype = "q8_0";
                    s.cache_type_v = "q8_0";
                },
                "KV in 8 bits (needs flash attention)");
        if (o.context.sequences > 1)
            offer(
                "-np", "1", [](EngineSettings& s) { s.n_parallel = 1; }, "one request at a time");
    }
    for (std::int32_t n = o.gpu_units - 1; n >= 0; --n)
        if (offer(
                "-ngl", std::to_string(n), [&](EngineSettings& s) { s.n_gpu_layers = n; },
                "the other layers on the host, slower"))
            break;
    return p;
}

/// llama.cpp as one of the engines that share the concept EngineModel.
struct LlamaCppEngine {
    static constexpr EngineKind kind = EngineKind::llama_cpp;
    static StartPlan start(StartRequest const& r) { return plan_llama_cpp(r); }
};

} // namespace servecap
