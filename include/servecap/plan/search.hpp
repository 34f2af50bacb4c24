// servecap: which GPUs, which layout
// SPDX-License-Identifier: Apache-2.0
//
// Every valid layout on every set of GPUs that is named is judged by the engine's allocator, predicted over
// the concurrencies and priced; what stays is the Pareto front of speed of one user against cost (or against
// throughput of a GPU where no price is known), and the plan that meets the targets best. Nothing is pruned
// that could be an optimum: a layout is left out only where its weights alone exceed the memory. What was
// left out is counted by reason, so that an empty answer says which constraint emptied it.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <servecap/engine/engine.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/perf/predict.hpp>
#include <servecap/plan/make.hpp>

namespace servecap {

/// What is searched and what an answer must meet.
struct SearchTargets {
    std::optional<Seconds> slo_ttft{}, slo_tpot{};
    std::optional<UsdPerHour> budget{};        ///< of the deployment
    std::optional<RequestsPerSecond> request_rate{}; ///< the deployment must serve it
    std::int32_t max_gpus = 100000;
};

/// One plan of a search, at one concurrency.
struct SearchPoint {
    GpuSet gpus;
    Layout layout;
    EngineSettings settings;
    std::string mended;                 ///< flags that were changed so that it starts
    Tokens kv_tokens{};
    Basis fit_basis = Basis::calibrated;
    SpeedPoint speed;
    std::optional<UsdPerHour> per_hour; ///< none: no price is known
    std::optional<UsdPerMillionTokens> per_million_output;
    bool meets = true;                  ///< all targets
};

struct SearchAnswer {
    std::vector<SearchPoint> front;          ///< by falling speed of one user
    std::optional<SearchPoint> best;         ///< cheapest $/M (or most tok/s a GPU) of those that meet the targets
    std::optional<SearchPoint> nearest;      ///< where none meets them: the nearest miss
    std::int64_t layouts = 0, plans = 0;     ///< judged, predicted
    std::map<std::string, std::int64_t> left_out; ///< reason: layouts or plans
};

/// The price of an hour of a set of GPUs, if one is known.
using PriceOf = std::function<std::optional<UsdPerHour>(GpuSet const&)>;

/// Layouts that use all GPUs of a set: tensor parallel in the scale-up domain, expert and data-parallel attention for
/// mixtures of experts, pipelines over nodes, replicas for the rest.
inline std::vector<Layout> layouts_on(Model const& model, GpuSet const& set) {
    bool moe = false;
    for (Layer const& l : model.layers) moe = moe || (l.ffn && std::holds_alternative<Moe>(*l.ffn));
    std::int32_t const domain = std::max(1, std::min(set.domain() > 1 ? set.domain() : set.per_node(), set.count));
    std::vector<Layout> out;
    auto const add = [&](Layout l) {
        auto const filled = fill_replicas(l, set.count);
        if (filled && std::find(out.begin(), out.end(), *filled) == out.end()) out.push_back(*filled);
    };
    for (std::int32_t tp = 1; tp <= set.count; ++tp) {
        if (set.count % tp != 0 || (tp > domain && tp % domain != 0)) continue;
        if (tp > 72) break;
        add({.tp = tp});
        if (moe && tp > 1) {
            add({.tp = tp, .ep = true});
            add({.dp = tp, .ep = true});
        }
        for (std::int32_t pp : {2, 3, 4, 8}) add({.tp = tp, .pp = pp});
    }
    return out;
}

/// `a` is at least as good as `b` in both axes and better in one, or equal with fewer GPUs. A point without a price is
/// compared with others without one.
inline bool dominates(SearchPoint const& a, SearchPoint const& b) noexcept {
    double const ua = a.speed.per_user.value.value(), ub = b.speed.per_user.value.value();
    if (a.per_million_output && b.per_million_output) {
        double const ca = a.per_million_output->value(), cb = b.per_million_output->value();
        return ua >= ub && ca <= cb && (ua > ub || ca < cb || a.gpus.count < b.gpus.count);
    }
    if (a.per_million_output.has_value() != b.per_million_output.has_value()) return false;
    double const ga = a.speed.per_gpu.value.value(), gb = b.speed.per_gpu.value.value();
    return ua >= ub && ga >= gb && (ua > ub || ga > gb || a.gpus.count < b.gpus.count);
}

/// Keeps the points that no other dominates.
inline void add_to_front(std::vector<SearchPoint>& front, SearchPoint p) {
    for (SearchPoint const& f : front)
        if (dominates(f, p)) return;
    std::erase_if(front, [&](SearchPoint const& f) { return dominates(p, f); });
    front.push_back(std::move(p));
}

/// Searches all layouts on all sets. `base` gives model, settings, workload, rows and coefficients (its GPUs and layout
/// are not read).
inline SearchAnswer search_plans(PlanRequest const& base, std::span<GpuSet const> sets, SearchTargets const& targets, PriceOf const& price) {
    SearchAnswer out;
    auto const better = [](SearchPoint const& a, SearchPoint const& b) {
        if (a.per_million_output && b.per_million_output) return *a.per_million_output < *b.per_million_output;
        if (a.per_million_output.has_value() != b.per_million_output.has_value()) return a.per_million_output.has_value();
        return a.speed.per_gpu.value > b.speed.per_gpu.value;
    };
    auto const miss = [&](SearchPoint const& p) { // how far the worst target is missed, as a ratio
        double worst = 1;
        if (targets.slo_tpot) worst = std::max(worst, p.speed.tpot.value / *targets.slo_tpot);
        if (targets.slo_ttft) worst = std::max(worst, p.speed.ttft.value / *targets.slo_ttft);
        if (targets.budget && p.per_hour) worst = std::max(worst, *p.per_hour / *targets.budget);
        return worst;
    };
    Bytes const stored = stored_bytes(base.model).total;
    for (GpuSet const& set : sets) {
        if (set.count > targets.max_gpus) {
            ++out.left_out["more GPUs than allowed"];
            continue;
        }
        auto const per_hour = price(set);
        if (targets.budget && per_hour && *per_hour > *targets.budget) {
            ++out.left_out["over the budget"];
            continue;
        }
        // Tables may lie in host memory; without them the weights must have room on all GPUs together.
        Bytes const tables = stored_bytes(base.model)[TensorClass::lookup];
        if (set.gpu.visible * set.count < stored - tables) {
            ++out.left_out["weights do not fit"];
            continue;
        }
        for (Layout const& layout : layouts_on(base.model, set)) {
            ++out.layouts;
            StartRequest start{.model = base.model, .gpus = set, .layout = layout, .settings = base.settings, .isl = base.workload.isl, .osl = base.workload.osl};
            StartJudgement judged = judge_start(start, base.startups);
            std::string mended;
            for (int round = 0; round < 2 && !judged.plan.starts; ++round) {
                Fix const* const fix = detail::free_fix(judged.plan.fixes, base.given);
                if (fix == nullptr) break;
                mended += (mended.empty() ? "" : " ") + fix->flag + " " + fix->value;
                start.settings = *fix->settings;
                judged = judge_start(start, base.startups);
            }
            if (!judged.plan.starts) {
                ++out.left_out[std::string{to_string(judged.plan.verdict)}];
                continue;
            }
            Workload workload = base.workload;
            if (workload.concurrency.empty())
                workload.concurrency = detail::default_concurrency(judged.plan, layout, Tokens{workload.isl.value() + workload.osl.value()});
            auto const speeds = predict_speed({.model = base.model,
                                               .gpus = set,
                                               .layout = layout,
                                               .settings = start.settings,
                                               .fit = judged.plan,
                                               .workload = workload,
                                               .rows = base.benchmarks,
                                               .coefficients = base.coefficients,
                                               .known_gpus = base.known_gpus,
                                               .row_models = base.model_names});
            for (SpeedPoint const& s : speeds) {
                ++out.plans;
                SearchPoint p{.gpus = set, .layout = layout, .settings = start.settings, .mended = mended, .kv_tokens = judged.plan.kv_tokens,
                              .fit_basis = judged.plan.basis, .speed = s, .per_hour = per_hour, .per_million_output = {}};
                if (per_hour && s.output.value.value() > 0) p.per_million_output = *per_hour / s.output.value;
                p.meets = miss(p) <= 1.0 && !(s.saturated.value_or(false));
                if (p.meets) {
                    if (!out.best || better(p, *out.best)) out.best = p;
                } else {
                    ++out.left_out["misses the latency or budget"];
                    if (!out.nearest || miss(p) < miss(*out.nearest)) out.nearest = p;
                    continue;
                }
                add_to_front(out.front, std::move(p));
            }
        }
    }
    std::stable_sort(out.front.begin(), out.front.end(), [](SearchPoint const& a, SearchPoint const& b) { return a.speed.per_user.value > b.speed.per_user.value; });
    return out;
}

} // namespace servecap
