// servecap: from what is asked to a whole plan
// SPDX-License-Identifier: Apache-2.0
//
// make_plan is a pure function of its request. Where the engine's defaults would not start it goes on
// with the cheapest fix and says so; a flag that the user gave is kept, then the refusal is the answer
// and speed and cost are for the fix. Measured start-ups of the same deployment override the model.

#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/core/result.hpp>
#include <servecap/engine/engine.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/perf/predict.hpp>
#include <servecap/plan/layouts.hpp>
#include <servecap/plan/mend.hpp>
#include <servecap/plan/plan.hpp>

namespace servecap {

/// What a plan is asked for. Holds references: keep them alive as long as the plan.
struct PlanRequest {
    Model const& model;
    GpuSet const& gpus;
    std::optional<Layout> layout{};       ///< empty: default_layout
    EngineSettings settings{};
    std::vector<std::string> given{};     ///< flags that the user gave: never changed
    Workload workload{};
    PriceQuery price{};
    ApiQuery api{};
    std::optional<double> output_input_price_ratio{};
    std::string as_of{};
    std::span<BenchmarkRow const> benchmarks{};
    std::span<StartupRow const> startups{};
    std::span<SetupRow const> setups{};
    std::span<GpuPrice const> gpu_prices{};
    std::span<ApiPrice const> api_prices{};
    std::span<Coefficient const> coefficients{};
    std::span<Gpu const> known_gpus{};
    std::vector<std::string> model_names{}; ///< spellings under which set-up rows may know the model
    bool with_money = true;
    bool force = false; ///< accept requests beyond the model's context
};

namespace detail {

/// Powers of two up to min(256, what is resident).
inline std::vector<Requests> default_concurrency(StartPlan const& fit, Layout const& layout, Tokens request) {
    std::int64_t const room = room_for(fit, layout, request).value() * layout.replicas;
    std::int64_t const seqs = fit.max_num_seqs.value() * layout.dp * layout.replicas;
    std::int64_t const most = std::clamp<std::int64_t>(std::min(room, seqs), 1, 256);
    std::vector<Requests> out;
    for (std::int64_t c = 1; c <= most; c *= 2) out.emplace_back(c);
    return out;
}

} // namespace detail

/// Fills price, set-up, $/M and break-even of a plan that has its speeds.
inline Result<void> add_money(PlanRequest const& q, Plan& p) {
    PriceQuery price = q.price;
    price.gpu = q.gpus.gpu.id;
    price.gpus = q.gpus.count;
    price.as_of = q.as_of;
    auto found = choose_price(price, q.gpu_prices);
    if (!found) return tl::unexpected<Error>{found.error()};
    p.warnings.insert(p.warnings.end(), found->warnings.begin(), found->warnings.end());
    p.cost.missing = found->reason;

    ApiQuery api = q.api;
    api.as_of = q.as_of;
    api.isl = q.workload.isl;
    std::vector<ApiTariff> tariffs;
    if (!api.models.empty()) {
        auto chosen = choose_tariffs(api, q.api_prices);
        if (!chosen) return tl::unexpected<Error>{chosen.error()};
        tariffs = std::move(*chosen);
    } else {
        p.break_even_missing = "the card names no API of this model; give --api";
    }
    if (q.output_input_price_ratio) {
        p.cost.output_input_price_ratio = *q.output_input_price_ratio;
        p.cost.ratio_source = "given";
    } else if (!tariffs.empty()) {
        p.cost.output_input_price_ratio = tariffs.front().output_input_ratio();
        p.cost.ratio_source = tariffs.front().model + " API";
    } else {
        p.cost.ratio_source = "default; list prices show 4 to 6";
    }
    SetupRequest setup{.model_names = q.model_names,
                       .gpu = q.gpus.gpu.id,
                       .gpus = q.gpus.count,
                       .gpus_per_replica = p.layout.gpus_per_replica(),
                       .engine = std::string{to_string(p.planned.engine)},
                       .checkpoint = q.model.checkpoint_bytes,
                       .download_rate = {},
                       .read_rate = {},
                       .compile = {},
                       .loader = {}};
    p.cost.setup = setup_time(setup, q.setups);
    if (!found->price) {
        if (p.break_even_missing.empty()) p.break_even_missing = "no price of the deployment is known";
        return {};
    }
    p.cost.price = std::move(found->price);
    UsdPerHour const rate = p.cost.price->per_hour;
    if (p.cost.setup.known) p.cost.setup_usd = setup_cost(p.cost.setup, rate);
    p.cost.by_concurrency = cost_by_concurrency(p.speed, rate, p.cost.output_input_price_ratio);
    if (p.cost.price->basis != Basis::assumed)
        p.sources.push_back({"price", p.cost.price->source, p.cost.price->url, p.cost.price->date});

    double const ratio = q.workload.osl.value() > 0 ? q.workload.isl / q.workload.osl : 1.0;
    auto capacity = find_capacity(p.speed, p.fit.starts, q.workload.slo_ttft, q.workload.slo_tpot);
    BreakEvenRequest const ask{.deployment = per_month(rate),
                               .input_per_output = ratio,
                               .cache_hit = q.workload.cache_hit,
                               .capacity = std::move(capacity.capacity),
                               .no_capacity_reason = std::move(capacity.reason),
                               .cannot_serve = capacity.cannot_serve};
    for (ApiTariff const& t : tariffs) {
        p.break_even.push_back(break_even(ask, t));
        p.sources.push_back({"API price of " + t.model, t.provider, t.url, t.date});
    }
    if (tariffs.empty() && p.break_even_missing.empty()) p.break_even_missing = "no tariff of this model is known";
    return {};
}

/// Refuses lengths beyond the model's context.
inline std::optional<Error> context_mistake(Model const& m, EngineSettings const& s, Workload const& w) {
    std::int64_t const most = m.max_context.value();
    if (most <= 0) return std::nullopt;
    auto const hint = fmt::format("expected at most {}, the context of {}; --force accepts it", most, m.display_name);
    if (s.max_model_len && s.max_model_len->value() > most)
        return Error{ErrorCode::bad_value, fmt::format("{} tokens are more than the model's context", s.max_model_len->value()), "--max-model-len", hint};
    if (w.isl.value() + w.osl.value() > most)
        return Error{ErrorCode::bad_value, fmt::format("{} + {} tokens are more than the model's context", w.isl.value(), w.osl.value()), "--isl/--osl", hint};
    return std::nullopt;
}

namespace detail {

/// The layout that was asked for, or the default; what is planned for.
inline Result<StartRequest> choose_layout(PlanRequest const& q, Plan& p) {
    if (!q.force)
        if (auto mistake = context_mistake(q.model, q.settings, q.workload)) return tl::unexpected<Error>{std::move(*mistake)};
    p.model = &q.model;
    p.gpus = q.gpus;
    p.asked = p.planned = q.settings;
    p.workload = q.workload;
    p.as_of = q.as_of;
    StartRequest start{.model = q.model, .gpus = q.gpus, .layout = {}, .settings = q.settings, .isl = q.workload.isl, .osl = q.workload.osl};
    if (q.layout) {
        p.layout = *q.layout;
        p.layout_reason = "given";
        if (p.layout.gpus() != q.gpus.count) {
            auto const filled = p.layout.replicas == 1 ? fill_replicas(p.layout, q.gpus.count) : std::nullopt;
            if (!filled)
                return fail(ErrorCode::bad_usage, fmt::format("layout {} takes {} GPUs, {} were named", layout_name(p.layout), p.layout.gpus(), q.gpus.count),
                            "--layout", "GPUs of one replica times replicas must give the number of GPUs");
            p.layout = *filled;
            p.layout_reason = "given, replicas fill the GPUs";
        }
    } else {
        ChosenLayout const chosen = default_layout(start, q.startups);
        p.layout = chosen.layout;
        p.layout_reason = chosen.reason;
        p.layout_source = chosen.source;
        if (!chosen.source.empty()) p.sources.push_back({"layout " + layout_name(p.layout), chosen.source, {}, {}});
    }
    start.layout = p.layout;
    return start;
}

inline void take_judgement(Plan& p, StartJudgement const& j) {
    p.fit = j.plan;
    p.blind = j.blind;
    p.measured_source = j.source;
    p.measured_url = j.url;
    p.measured_date = j.date;
    p.measured_note = j.note;
    if (!j.source.empty()) p.sources.push_back({"start-up", j.source, j.url, j.date});
}

/// What a reader must know besides the numbers.
inline void add_warnings(PlanRequest const& q, Plan& p) {
    if (q.model.is_inferred()) {
        bool const all = std::find(q.model.inferred.begin(), q.model.inferred.end(), "*") != q.model.inferred.end();
        p.warnings.push_back(all ? fmt::format("{}: every field of the card is inferred, there is no public config.", q.model.display_name)
                                 : fmt::format("{}: {} card field{} inferred, not public in full ({}).", q.model.display_name, q.model.inferred.size(),
                                               q.model.inferred.size() == 1 ? " is" : "s are", q.model.confidence));
    }
    Bytes const held = stored_bytes(q.model).total;
    Bytes const memory = q.gpus.gpu.memory_reported.value_or(q.gpus.gpu.visible) * q.gpus.count;
    if (p.layout.replicas == 1 && p.fit.verdict == Verdict::weights_do_not_fit && held > memory)
        p.warnings.push_back(fmt::format("The checkpoint's tensors are {:.1f} GB; all {} GPUs together report {:.1f} GB: {:.1f} GB short before any reserve.", in_gb(held),
                                         q.gpus.count, in_gb(memory), in_gb(held - memory)));
    if (q.gpus.gpu.visible_is_estimate)
        p.warnings.push_back(fmt::format("What the runtime sees of a {} is estimated from the reported {}.", q.gpus.gpu.short_name,
                                         q.gpus.gpu.memory_reported ? fmt::format("{} MiB", q.gpus.gpu.memory_reported->value() / 1048576) : "size"));
    for (LicenceFact const& l : q.model.licence) p.warnings.push_back("Licence: " + l.text + (l.source.empty() ? "" : " (" + l.source + ")"));
    for (std::string const& n : p.fit.notes) p.warnings.push_back(n);
}

} // namespace detail

/// Memory and the verdict of exactly what is asked: nothing is mended. Errors as make_plan.
inline Result<Plan> make_fit(PlanRequest const& q) {
    Plan p;
    auto start = detail::choose_layout(q, p);
    if (!start) return tl::unexpected<Error>{start.error()};
    StartJudgement const judged = judge_start(*start, q.startups);
    p.as_asked = judged.plan;
    detail::take_judgement(p, judged);
    p.command = start_command(*start);
    detail::add_warnings(q, p);
    return p;
}

/// The whole plan. Errors: what cannot be asked (a layout that does not match the GPUs, prices that cannot be, an
/// unknown provider or API); a refusal of the engine is an answer.
inline Result<Plan> make_plan(PlanRequest const& q) {
    Plan p;
    auto start = detail::choose_layout(q, p);
    if (!start) return tl::unexpected<Error>{start.error()};
    // The cheapest fix; where it would change a flag of the user, the refusal stays the answer.
    MendedStart mended = mend_start(*start, q.startups, q.given, MendChoice::cheapest);
    p.as_asked = mended.asked.plan;
    p.mended = std::move(mended.mends);
    p.for_fix = mended.changes_given;
    p.planned = std::move(mended.settings);
    start->settings = p.planned;
    detail::take_judgement(p, mended.judged);
    if (p.fit.starts) {
        if (p.workload.concurrency.empty())
            p.workload.concurrency = detail::default_concurrency(p.fit, p.layout, Tokens{p.workload.isl.value() + p.workload.osl.value()});
        p.speed = predict_speed({.model = q.model,
                                 .gpus = q.gpus,
                                 .layout = p.layout,
                                 .settings = p.planned,
                                 .fit = p.fit,
                                 .workload = p.workload,
                                 .rows = q.benchmarks,
                                 .coefficients = q.coefficients,
                                 .known_gpus = q.known_gpus,
                                 .row_models = q.model_names});
        std::vector<std::string> seen;
        for (SpeedPoint const& s : p.speed)
            for (Evidence const& e : s.evidence) {
                std::string key = e.url + e.source;
                if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
                seen.push_back(std::move(key));
                p.sources.push_back({"speed", e.source, e.url, e.date});
            }
    }
    p.command = start_command(*start);
    detail::add_warnings(q, p);
    if (q.with_money) {
        auto money = add_money(q, p);
        if (!money) return tl::unexpected<Error>{money.error()};
    }
    return p;
}

} // namespace servecap
