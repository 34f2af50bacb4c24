// servecap: which layouts a set of GPUs allows, and which one to take when none is named
// SPDX-License-Identifier: Apache-2.0
//
// The default layout is the one that the model's card recommends for the GPU, else the smallest tensor
// parallelism within the scale-up domain that starts with room for 8 requests of ISL + OSL, replicas
// filling the rest. Where no layout within one domain starts, layouts over several nodes are tried:
// tensor parallel in the domain and pipeline over nodes, then tensor parallel over all GPUs.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/engine/engine.hpp>
#include <servecap/layout/layout.hpp>

namespace servecap {

/// Requests of `tokens` each that one replica holds at once, by its KV room and state slots (not by max-num-seqs).
/// Formula: blocks over the blocks of one request, the engine's own count.
inline Requests room_for(StartPlan const& fit, Layout const& layout, Tokens tokens) {
    return Requests{requests_with_room(fit, tokens) * layout.dp};
}

/// A layout with the reason for it.
struct ChosenLayout {
    Layout layout;
    std::string reason;
    std::string source; ///< where a recommendation was published; empty otherwise
};

/// `base` with as many replicas as `gpus` hold; nothing when its GPUs do not divide them.
inline std::optional<Layout> fill_replicas(Layout base, std::int32_t gpus) {
    std::int32_t const each = base.gpus_per_replica();
    if (each < 1 || gpus % each != 0) return std::nullopt;
    base.replicas = gpus / each;
    return base;
}

/// The layout to plan with when none was asked for.
inline ChosenLayout default_layout(StartRequest request, std::span<StartupRow const> rows = {}) {
    GpuSet const& set = request.gpus;
    for (auto const& r : request.model.recommended) {
        if (r.gpu != set.gpu.id) continue;
        auto parsed = parse_layout(r.layout);
        if (!parsed) continue;
        parsed->replicas = 1;
        if (auto const filled = fill_replicas(*parsed, set.count)) return {*filled, "recommended for this GPU", r.source};
    }
    std::int32_t const domain = std::min(set.domain() > 1 ? set.domain() : set.per_node(), set.count);
    std::vector<Layout> candidates;
    for (std::int32_t tp = 1; tp <= domain; ++tp)
        if (set.count % tp == 0 && domain % tp == 0) candidates.push_back(Layout{.tp = tp});
    if (set.count > domain) {
        for (std::int32_t pp = 2; pp * domain <= set.count; ++pp)
            if (set.count % (pp * domain) == 0) candidates.push_back(Layout{.tp = domain, .pp = pp});
        for (std::int32_t tp = domain * 2; tp <= set.count; tp += domain)
            if (set.count % tp == 0) candidates.push_back(Layout{.tp = tp});
    }
    Tokens const one{request.isl.value() + request.osl.value()};
    std::optional<ChosenLayout> starts, fits;
    for (Layout const& c : candidates) {
        auto const filled = fill_replicas(c, set.count);
        if (!filled) continue;
        request.layout = *filled;
        StartPlan plan = judge_start(request, rows).plan;
        bool const fits_here = plan.fits;
        if (!plan.starts) // a refusal that one flag mends counts as a start
            for (Fix const& f : plan.fixes)
                if (f.settings) {
                    StartRequest mended{request.model, request.gpus, request.layout, *f.settings, request.isl, request.osl, request.date};
                    plan = judge_start(mended, rows).plan;
                    break;
                }
        if (plan.starts && room_for(plan, *filled, one).value() >= 8)
            return {*filled, "smallest tensor parallelism that starts with room for 8 such requests", {}};
        if (plan.starts && !starts) starts = ChosenLayout{*filled, "smallest tensor parallelism that starts", {}};
        if (fits_here && !fits) fits = ChosenLayout{*filled, "smallest tensor parallelism that fits", {}};
    }
    if (starts) return *starts;
    if (fits) return *fits;
    Layout all{.tp = domain};
    if (auto const filled = fill_replicas(all, set.count); filled && set.count == domain) return {*filled, "all GPUs as one replica", {}};
    all.tp = set.count;
    return {all, "all GPUs as one replica", {}};
}

} // namespace servecap
