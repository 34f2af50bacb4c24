// servecap: which flags mend a start that vLLM refuses
// SPDX-License-Identifier: Apache-2.0
//
// Goal seek on the same allocator: each candidate flag is moved to the mildest value with which the
// deployment starts even at the low end of the memory estimate. Cheapest first: fewer sequences, a shorter
// longest request, an fp8 cache, more of the memory, smaller batches, no CUDA graphs; then another layout of
// the same GPUs, then more GPUs. Where one flag alone does not do, the first step is named and what follows it.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/engine/request.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/engine/vllm.hpp>
#include <servecap/layout/layout.hpp>

namespace servecap {

namespace detail {

/// "1,048,576".
inline std::string grouped_digits(std::int64_t n) {
    std::string s = std::to_string(n);
    for (std::size_t i = s.size(); i > 3 + (n < 0 ? 1u : 0u);) s.insert(i -= 3, ",");
    return s;
}

/// Starts as estimated, and at the low end of the estimate too.
inline bool surely_starts(PreparedVllm const& d, VllmPoint const& p) noexcept {
    VllmOutcome const o = evaluate_vllm(d, p);
    if (o.verdict != Verdict::starts) return false;
    if (p.pool) return true;
    VllmPoint low = p;
    low.pool = std::max<std::int64_t>(0, o.pool - static_cast<std::int64_t>(1.2816 * o.sd));
    return evaluate_vllm(d, low).verdict == Verdict::starts;
}

/// A length that people would type: multiples of 1024 from 8192 on, of 128 below.
inline std::int64_t rounded_length(std::int64_t n) noexcept {
    std::int64_t const step = n >= 8192 ? 1024 : 128;
    return n < step ? n : n - n % step;
}

inline std::string tokens_of(PreparedVllm const& d, VllmPoint const& p) {
    VllmOutcome const o = evaluate_vllm(d, p);
    return fmt::format("{:.2f} GiB and {} tokens of KV cache a {}", in_gib(Bytes{o.pool}), grouped_digits(o.tokens), "GPU");
}

} // namespace detail

/// Flags that mend the refusal `plan` of `r`, cheapest first; empty for a start.
inline std::vector<Fix> vllm_fixes(StartRequest const& r, PreparedVllm const& d, StartPlan const& plan) {
    std::vector<Fix> fixes;
    if (plan.starts || plan.verdict == Verdict::unsupported) return fixes;
    VllmPoint const& asked = d.point;
    bool const flags_help = plan.verdict != Verdict::layout_invalid && plan.verdict != Verdict::weights_do_not_fit;
    EngineSettings const& s = r.settings;

    auto const with = [&](auto change) {
        EngineSettings t = s;
        change(t);
        return t;
    };
    auto const capture_for = [&](VllmPoint p) {
        if (asked.capture > 0 && !s.max_cudagraph_capture_size)
            p.capture = vllm_capture_default(p.seqs, s.speculative_tokens, r.gpus.gpu, d.rules);
        return p;
    };

    if (flags_help && plan.verdict == Verdict::free_memory_below_request) {
        double const most = std::floor(static_cast<double>(d.free) / static_cast<double>(d.visible) * 100.0 - 0.5) / 100.0;
        VllmPoint p = asked;
        p.utilization = most;
        if (p.utilization > 0)
            fixes.push_back({"--gpu-memory-utilization", fmt::format("{:.2f}", most), "asks for no more than is free at the start",
                             with([&](EngineSettings& t) { t.gpu_memory_utilization = most; })});
    }
    if (flags_help && !asked.pool) {
        // 1. fewer sequences: state slots, logits and graphs shrink
        std::int64_t power = 1, enough = 0;
        while (power * 2 < asked.seqs) power *= 2;
        for (std::int64_t k = power; k >= 1 && asked.seqs > 1 && enough == 0; k /= 2) {
            VllmPoint p = asked;
            p.seqs = k;
            if (detail::surely_starts(d, capture_for(p))) enough = k;
        }
        // a server of few sequences is a poor mend: rather more of them, and a shorter longest request
        if (enough < 32 && enough < asked.seqs / 8)
            for (std::int64_t k = std::min<std::int64_t>(power, 256); k > std::max<std::int64_t>(enough, 8); k /= 2) {
                VllmPoint p = asked;
                p.seqs = k;
                p = capture_for(p);
                VllmOutcome const o = evaluate_vllm(d, p);
                if (o.verdict != Verdict::max_model_len_too_long) continue;
                VllmPoint low = p;
                low.pool = std::max<std::int64_t>(0, o.pool - static_cast<std::int64_t>(1.2816 * o.sd));
                VllmOutcome const pessimistic = evaluate_vllm(d, low);
                std::int64_t const len = detail::rounded_length(pessimistic.verdict == Verdict::max_model_len_too_long ? pessimistic.estimated_len : 0);
                if (len < std::max<std::int64_t>(r.isl.value() + r.osl.value(), std::min<std::int64_t>(asked.max_len / 8, 32768))) continue;
                p.max_len = len;
                if (!detail::surely_starts(d, p)) continue;
                fixes.push_back({fmt::format("--max-num-seqs {} --max-model-len", k), std::to_string(len),
                                 fmt::format("at most {} requests run at once instead of {}, of {} tokens instead of {}; leaves {}", k, asked.seqs,
                                             detail::grouped_digits(len), detail::grouped_digits(asked.max_len), detail::tokens_of(d, p)),
                                 with([&](EngineSettings& t) {
                                     t.max_num_seqs = Requests{k};
                                     t.max_model_len = Tokens{len};
                                 })});
                break;
            }
        if (enough > 0) {
            VllmPoint p = asked;
            p.seqs = enough;
            p = capture_for(p);
            fixes.push_back({"--max-num-seqs", std::to_string(enough),
                             fmt::format("at most {} requests run at once instead of {}; leaves {}", enough, asked.seqs, detail::tokens_of(d, p)),
                             with([&](EngineSettings& t) { t.max_num_seqs = Requests{enough}; })});
        }
        // 2. a shorter longest request
        VllmOutcome const now = evaluate_vllm(d, asked);
        if (now.verdict == Verdict::max_model_len_too_long) {
            VllmPoint low = asked;
            low.pool = std::max<std::int64_t>(0, now.pool - static_cast<std::int64_t>(1.2816 * now.sd));
            VllmOutcome const pessimistic = evaluate_vllm(d, low);
            std::int64_t len = detail::rounded_length(pessimistic.verdict == Verdict::max_model_len_too_long ? pessimistic.estimated_len
                                                                                                             : now.estimated_len);
            if (len <= 0) len = detail::rounded_length(now.estimated_len);
            VllmPoint p = asked;
            p.max_len = len;
            if (len > 0) {
                VllmOutcome const after = evaluate_vllm(d, p);
                if (after.verdict == Verdict::starts || after.verdict == Verdict::state_slots_too_few)
                    fixes.push_back({"--max-model-len", std::to_string(len),
                                     fmt::format("the longest request has {} tokens instead of {}{}", detail::grouped_digits(len),
                                                 detail::grouped_digits(asked.max_len),
                                                 after.verdict == Verdict::starts ? "" : "; then --max-num-seqs must fall too"),
                                     with([&](EngineSettings& t) { t.max_model_len = Tokens{len}; })});
            }
        }
        // 3. an fp8 cache
        if ((now.verdict == Verdict::max_model_len_too_long || now.verdict == Verdict::state_slots_too_few) &&
            (d.kv_format == KvFormat::bf16 || d.kv_format == KvFormat::fp16) && r.gpus.gpu.native_fp8) {
            StartRequest q{r.model, r.gpus, r.layout, with([](EngineSettings& t) { t.kv_cache_dtype = "fp8"; }), r.isl, r.osl, r.date, r.logged_pool};
            PreparedVllm const e = prepare_vllm(q);
            if (detail::surely_starts(e, e.point))
                fixes.push_back({"--kv-cache-dtype", "fp8", fmt::format("keys and values in 8 bits; leaves {}", detail::tokens_of(e, e.point)),
                                 q.settings});
        }
        // 4. more of the memory
        double const most = std::floor(static_cast<double>(d.free) / static_cast<double>(d.visible) * 100.0) / 100.0;
        double first_step = 0;
        for (double u = std::floor(asked.utilization * 100.0 + 1.0) / 100.0; u <= most + 1e-9; u += 0.01) {
            VllmPoint p = asked;
            p.utilization = u;
            if (detail::surely_starts(d, p)) {
                fixes.push_back({"--gpu-memory-utilization", fmt::format("{:.2f}", u),
                                 fmt::format("{:.2f} GiB instead of {:.2f} for the engine; less is left for anything else on the GPU",
                                             in_gib(Bytes{evaluate_vllm(d, p).requested}), in_gib(Bytes{now.requested})),
                                 with([&](EngineSettings& t) { t.gpu_memory_utilization = u; })});
                first_step = 0;
                break;
            }
            if (now.verdict == Verdict::no_kv_memory && evaluate_vllm(d, p).verdict == Verdict::max_model_len_too_long) first_step = u;
        }
        // 5. smaller batches
        if (now.verdict == Verdict::no_kv_memory || now.verdict == Verdict::max_model_len_too_long)
            for (std::int64_t b = asked.batched / 2; b >= 1024; b /= 2) {
                VllmPoint p = asked;
                p.batched = b;
                p.seqs = std::min(p.seqs, b);
                if (!detail::surely_starts(d, p)) continue;
                fixes.push_back({"--max-num-batched-tokens", std::to_string(b),
                                 fmt::format("prefill in steps of {} tokens instead of {}", b, asked.batched),
                                 with([&](EngineSettings& t) { t.max_num_batched_tokens = Tokens{b}; })});
                break;
            }
        // 6. no CUDA graphs
        if (asked.capture > 0) {
            VllmPoint p = asked;
            p.capture = 0;
            p.graphs = GraphMode::none;
            if (detail::surely_starts(d, p))
                fixes.push_back({"--enforce-eager", "", "no CUDA graphs: decoding is slower, most of all with few users",
                                 with([](EngineSettings& t) { t.enforce_eager = true; })});
        }
        // nothing alone: the most memory, and then the length that it allows
        if (fixes.empty() && first_step > 0) {
            VllmPoint p = asked;
            p.utilization = first_step;
            VllmOutcome const o = evaluate_vllm(d, p);
            fixes.push_back({"--gpu-memory-utilization", fmt::format("{:.2f}", first_step),
                             fmt::format("leaves {:.2f} GiB of KV cache a GPU; then --max-model-len {} is needed too", in_gib(Bytes{o.pool}),
                                         detail::rounded_length(o.estimated_len)),
                             with([&](EngineSettings& t) { t.gpu_memory_utilization = first_step; })});
        }
    }
    return fixes;
}

/// Other layouts of the same GPUs, and more of them, with which the deployment starts; the first of each.
inline std::vector<Fix> vllm_layout_fixes(StartRequest const& r) {
    std::vector<Fix> fixes;
    auto const starts = [&](GpuSet const& g, Layout const& l) {
        if (!detail::layout_refusal(r.model, l).empty()) return false;
        StartRequest q{r.model, g, l, r.settings, r.isl, r.osl, r.date, r.logged_pool};
        PreparedVllm const d = prepare_vllm(q);
        VllmOutcome const o = evaluate_vllm(d, d.point);
        return o.verdict == Verdict::starts || o.verdict == Verdict::state_slots_too_few || o.verdict == Verdict::max_model_len_too_long;
    };
    bool moe = false;
    for (Layer const& l : r.model.layers) moe = moe || (l.ffn && std::holds_alternative<Moe>(*l.ffn));
    auto const candidates = [&](GpuSet const& g, std::int32_t gpus) {
        std::vector<Layout> out;
        std::int32_t const domain = std::max(1, std::min(g.domain() > 1 ? g.domain() : g.per_node(), gpus));
        for (std::int32_t tp = 1; tp <= domain; tp *= 2)
            if (gpus % tp == 0 && gpus / tp <= 16) out.push_back(Layout{.tp = tp, .pp = gpus / tp});
        if (moe) out.push_back(Layout{.tp = 1, .dp = gpus, .ep = true});
        if (gpus > domain && gpus <= 64) out.push_back(Layout{.tp = gpus});
        std::stable_sort(out.begin(), out.end(), [](Layout const& a, Layout const& b) { return a.pp < b.pp; });
        return out;
    };
    std::int32_t const have = r.layout.gpus();
    for (Layout const& l : candidates(r.gpus, have))
        if (!(l == r.layout) && starts(r.gpus, l)) {
            fixes.push_back({"--layout", layout_name(l), fmt::format("the same {} GPUs as {}", have, layout_name(l)), std::nullopt});
            break;
        }
    for (std::int32_t k : {2, 3, 4, 8}) {
        GpuSet more = r.gpus;
        std::int32_t const unit = std::max(have, 1);
        more.count = unit * k;
        more.nodes = std::max(1, static_cast<std::int32_t>(ceil_div(more.count, std::max(1, more.gpu.node_gpus))));
        bool found = false;
        for (Layout const& l : candidates(more, more.count))
            if (starts(more, l)) {
                fixes.push_back({"--gpu", fmt::format("{}x{}", r.gpus.gpu.id, more.count),
                                 fmt::format("{} GPUs as {}", more.count, layout_name(l)), std::nullopt});
                found = true;
                break;
            }
        if (found) break;
    }
    return fixes;
}

} // namespace servecap
