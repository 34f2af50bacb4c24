// planner: a plan request from a command line, with the rows that it needs
// SPDX-License-Identifier: Apache-2.0

#include "plan_context.hpp"

#include <algorithm>

#include <servecap/plan/make.hpp>

namespace planner {

using namespace servecap;

Result<std::optional<Layout>> asked_layout(Args const& a) {
    if (!a.layout.empty()) {
        auto l = parse_layout(a.layout);
        if (!l) return tl::unexpected<Error>{l.error()};
        return *l;
    }
    if (!a.tp && !a.pp && !a.dp && !a.ep && !a.dcp && !a.replicas) return std::nullopt;
    auto const of = [](std::optional<std::int64_t> const& v) { return static_cast<std::int32_t>(v.value_or(1)); };
    Layout l{of(a.tp), of(a.pp), of(a.dp), of(a.dcp), of(a.replicas), a.ep.value_or(1) > 1};
    if (l.ep && *a.ep != l.tp * l.dp)
        return fail(ErrorCode::bad_value, "--ep " + std::to_string(*a.ep) + " with tp " + std::to_string(l.tp) + " and dp " + std::to_string(l.dp), "--ep",
                    "experts are spread over tp x dp = " + std::to_string(l.tp * l.dp) + " ranks");
    return l;
}

namespace {

template <class T>
std::optional<Error> take(Result<T> from, T& into) {
    if (!from) return from.error();
    into = std::move(*from);
    return std::nullopt;
}

} // namespace

Result<OwnedPlan> plan_for(Args const& args, Context const& context, Scope scope, bool compare_api) {
    if (args.model.empty())
        return fail(ErrorCode::bad_usage, "no model named", "--model", "for example: planner --model kimi-k3.1 --gpu b300x8; planner --help shows more");
    if (args.gpu.empty()) return fail(ErrorCode::bad_usage, "no GPUs named", "--gpu", "for example --gpu b300x8; planner list gpus shows all");
    OwnedPlan out{std::make_unique<Model>(), {}};
    GpuSet gpus;
    std::optional<Layout> layout;
    std::vector<BenchmarkRow> benchmarks;
    std::vector<StartupRow> startups;
    std::vector<SetupRow> setups;
    std::vector<GpuPrice> gpu_prices;
    std::vector<ApiPrice> api_prices;
    std::vector<Coefficient> coefficients;
    std::optional<Error> e;
    auto const failed = [&e](std::optional<Error> x) {
        e = std::move(x);
        return e.has_value();
    };
    if (failed(take(context.model(args.model), *out.model)) || failed(take(context.gpu_set(args.gpu), gpus)) || failed(take(asked_layout(args), layout)))
        return tl::unexpected<Error>{*e};
    std::vector<std::string> const names = context.spellings(*out.model);
    if (failed(take(context.startups(names), startups))) return tl::unexpected<Error>{*e};
    bool const money = scope == Scope::whole;
    if (scope != Scope::fit)
        if (failed(take(context.benchmarks(names), benchmarks)) || failed(take(context.coefficients(), coefficients))) return tl::unexpected<Error>{*e};
    if (money)
        if (failed(take(context.setups({}), setups)) || failed(take(context.gpu_prices({gpus.gpu.id}), gpu_prices)) ||
            failed(take(context.api_prices({}), api_prices)))
            return tl::unexpected<Error>{*e};

    PlanRequest q{.model = *out.model, .gpus = gpus, .layout = layout, .settings = args.settings};
    q.given = args.given;
    q.workload = args.workload;
    if (args.price) q.price.deployment = UsdPerHour{*args.price};
    if (args.price_gpu_hour) q.price.per_gpu = UsdPerHour{*args.price_gpu_hour};
    q.price.provider = args.price_source;
    if (!args.price_kind.empty()) q.price.kind = args.price_kind;
    q.price.force = args.force;
    if (compare_api) {
        q.api.named = !args.api.empty();
        q.api.models = q.api.named ? std::vector<std::string>{args.api} : out.model->api_names;
    }
    q.output_input_price_ratio = args.price_ratio;
    q.as_of = context.as_of();
    q.benchmarks = benchmarks;
    q.startups = startups;
    q.setups = setups;
    q.gpu_prices = gpu_prices;
    q.api_prices = api_prices;
    q.coefficients = coefficients;
    q.known_gpus = context.gpus();
    q.model_names = names;
    q.with_money = money;
    q.force = args.force;
    auto plan = scope == Scope::fit ? make_fit(q) : make_plan(q);
    if (!plan) return tl::unexpected<Error>{plan.error()};
    out.plan = std::move(*plan);
    return out;
}

} // namespace planner
