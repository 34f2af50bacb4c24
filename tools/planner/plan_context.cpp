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

std::optional<Error> Inputs::read(Args const& args, Context const& context, Scope scope, std::string const& gpu_id) {
    if (auto e = take(context.model(args.model), model)) return e;
    names = context.spellings(model);
    if (auto e = take(context.startups(names), startups)) return e;
    if (scope != Scope::fit) {
        if (auto e = take(context.benchmarks(names), benchmarks)) return e;
        if (auto e = take(context.coefficients(), coefficients)) return e;
    }
    if (scope == Scope::whole) {
        if (auto e = take(context.setups({}), setups)) return e;
        if (auto e = take(context.gpu_prices(gpu_id.empty() ? std::vector<std::string>{} : std::vector<std::string>{gpu_id}), gpu_prices)) return e;
        // with --api every name may be meant, and a wrong one asks for the nearest of all
        if (auto e = take(context.api_prices(args.api.empty() ? model.api_names : std::vector<std::string>{}), api_prices)) return e;
    }
    return std::nullopt;
}

PlanRequest Inputs::request(Args const& args, Context const& context, bool money, bool compare_api) const {
    PlanRequest q{.model = model, .gpus = gpus};
    q.settings = args.settings;
    q.given = args.given;
    q.workload = args.workload;
    if (args.price) q.price.deployment = UsdPerHour{*args.price};
    if (args.price_gpu_hour) q.price.per_gpu = UsdPerHour{*args.price_gpu_hour};
    q.price.provider = args.price_source;
    if (!args.price_kind.empty()) q.price.kind = args.price_kind;
    q.price.force = args.force;
    if (compare_api) {
        q.api.named = !args.api.empty();
        q.api.models = q.api.named ? std::vector<std::string>{args.api} : model.api_names;
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
    return q;
}

std::optional<Error> model_missing(Args const& args) {
    if (!args.model.empty()) return std::nullopt;
    return Error{ErrorCode::bad_usage, "no model named", "--model", "for example: planner --model kimi-k3.1 --gpu b300x8; planner --help shows more"};
}

std::optional<Error> gpu_missing(Args const& args) {
    if (!args.gpu.empty()) return std::nullopt;
    return Error{ErrorCode::bad_usage, "no GPUs named", "--gpu", "for example --gpu b300x8; planner list gpus shows all"};
}

Result<OwnedPlan> plan_for(Args const& args, Context const& context, Scope scope, bool compare_api) {
    if (auto e = model_missing(args)) return tl::unexpected<Error>{*e};
    if (auto e = gpu_missing(args)) return tl::unexpected<Error>{*e};
    auto gpus = context.gpu_set(args.gpu);
    if (!gpus) return tl::unexpected<Error>{gpus.error()};
    auto layout = asked_layout(args);
    if (!layout) return tl::unexpected<Error>{layout.error()};
    Inputs in;
    in.gpus = std::move(*gpus);
    if (auto e = in.read(args, context, scope, in.gpus.gpu.id)) return tl::unexpected<Error>{*e};
    PlanRequest q = in.request(args, context, scope == Scope::whole, compare_api);
    q.layout = *layout;
    auto plan = scope == Scope::fit ? make_fit(q) : make_plan(q);
    if (!plan) return tl::unexpected<Error>{plan.error()};
    OwnedPlan out{std::make_unique<Model>(std::move(in.model)), std::move(*plan)};
    out.plan.model = out.model.get();
    return out;
}

} // namespace planner
