// planner: a plan request from a command line, with the rows that it needs
// SPDX-License-Identifier: Apache-2.0

#include "plan_context.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/plan_json.hpp>
#include <servecap/plan/make.hpp>
#include <servecap/plan/search.hpp>
#include <servecap/report/page.hpp>

#include "commands.hpp"
#include "output.hpp"

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

namespace {

/// Everything that a PlanRequest refers to, kept alive together.
struct Inputs {
    Model model;
    GpuSet gpus;
    std::vector<std::string> names;
    std::vector<BenchmarkRow> benchmarks;
    std::vector<StartupRow> startups;
    std::vector<SetupRow> setups;
    std::vector<GpuPrice> gpu_prices;
    std::vector<ApiPrice> api_prices;
    std::vector<Coefficient> coefficients;

    /// Reads the model and the rows; of `gpu_id` the prices (all GPUs where it is empty).
    std::optional<Error> read(Args const& args, Context const& context, Scope scope, std::string const& gpu_id) {
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
            if (auto e = take(context.api_prices({}), api_prices)) return e;
        }
        return std::nullopt;
    }

    [[nodiscard]] PlanRequest request(Args const& args, Context const& context, bool money, bool compare_api) const {
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
};

std::optional<Error> model_missing(Args const& args) {
    if (!args.model.empty()) return std::nullopt;
    return Error{ErrorCode::bad_usage, "no model named", "--model", "for example: planner --model kimi-k3.1 --gpu b300x8; planner --help shows more"};
}

std::optional<Error> gpu_missing(Args const& args) {
    if (!args.gpu.empty()) return std::nullopt;
    return Error{ErrorCode::bad_usage, "no GPUs named", "--gpu", "for example --gpu b300x8; planner list gpus shows all"};
}

} // namespace

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

namespace {

/// The sets of GPUs that a search looks at: the one named, or counts of every GPU that is on sale.
Result<std::vector<GpuSet>> asked_sets(Args const& args, Context const& context) {
    std::vector<GpuSet> sets;
    if (fold_name(args.gpu) != "any") {
        auto set = context.gpu_set(args.gpu);
        if (!set) return tl::unexpected<Error>{set.error()};
        sets.push_back(std::move(*set));
        return sets;
    }
    std::string const include = to_lower(args.include);
    for (Gpu const& g : context.gpus()) {
        bool const wanted = g.status == Availability::available || (g.status == Availability::legacy && include.find("legacy") != std::string::npos) ||
                            (g.status == Availability::announced && include.find("announced") != std::string::npos);
        if (!wanted) continue;
        for (std::int64_t n : {1, 2, 4, 8, 16, 32}) {
            if (auto set = make_gpu_set(g, n)) sets.push_back(std::move(*set));
        }
    }
    return sets;
}

TextTable search_table(std::vector<SearchPoint> const& points, bool money) {
    TextTable t;
    t.column("GPUs", TextTable::Align::left).column("layout", TextTable::Align::left).column("users").column("tok/s a user").column("output tok/s").column("tok/s a GPU")
        .column("TTFT").column("TPOT");
    if (money) t.column("$/h").column("$/M output");
    t.column("basis", TextTable::Align::left).column("changed so that it starts", TextTable::Align::left);
    for (SearchPoint const& p : points) {
        std::vector<std::string> c{detail::typed_gpus(p.gpus),
                                   layout_name(p.layout),
                                   grouped(p.speed.concurrency.value()),
                                   sig3(p.speed.per_user.value.value()),
                                   detail::with_interval(p.speed.output, p.speed.basis != Basis::measured),
                                   sig3(p.speed.per_gpu.value.value()),
                                   duration_text(p.speed.ttft.value),
                                   duration_text(p.speed.tpot.value)};
        if (money) {
            c.push_back(p.per_hour ? grouped(p.per_hour->value(), 2) : "not known");
            c.push_back(p.per_million_output ? grouped(p.per_million_output->value(), 2) : "not known");
        }
        c.emplace_back(to_string(p.speed.basis));
        c.push_back(p.mended);
        t.row(std::move(c));
    }
    return t;
}

nlohmann::ordered_json search_json(SearchPoint const& p) {
    nlohmann::ordered_json j;
    j["gpu"] = {{"name", p.gpus.gpu.id}, {"count", p.gpus.count}, {"nodes", p.gpus.nodes}};
    j["layout"] = layout_name(p.layout);
    j["mended"] = p.mended;
    j["kv_tokens"] = p.kv_tokens.value();
    j["speed"] = speed_to_json(p.speed);
    j["usd_per_hour"] = detail::maybe(p.per_hour);
    j["usd_per_million_output_tokens"] = detail::maybe(p.per_million_output);
    j["meets"] = p.meets;
    return j;
}

} // namespace

Result<int> run_search(Args const& args) {
    if (auto e = model_missing(args)) return tl::unexpected<Error>{*e};
    if (auto e = gpu_missing(args)) return tl::unexpected<Error>{*e};
    auto context = Context::open(args);
    if (!context) return tl::unexpected<Error>{context.error()};
    auto sets = asked_sets(args, *context);
    if (!sets) return tl::unexpected<Error>{sets.error()};
    Inputs in;
    if (auto e = in.read(args, *context, Scope::whole, sets->size() == 1 ? sets->front().gpu.id : std::string{})) return tl::unexpected<Error>{*e};
    if (!args.force)
        if (auto mistake = context_mistake(in.model, args.settings, args.workload)) return tl::unexpected<Error>{std::move(*mistake)};
    PlanRequest const base = in.request(args, *context, false, false);
    std::optional<Error> price_error;
    PriceOf const price = [&](GpuSet const& set) -> std::optional<UsdPerHour> {
        PriceQuery q = base.price;
        q.gpu = set.gpu.id;
        q.gpus = set.count;
        q.as_of = base.as_of;
        auto found = choose_price(q, in.gpu_prices);
        if (!found) {
            if (sets->size() == 1) price_error = found.error();
            return std::nullopt;
        }
        return found->price ? std::optional<UsdPerHour>{found->price->per_hour} : std::nullopt;
    };
    SearchTargets targets;
    targets.slo_ttft = args.workload.slo_ttft;
    targets.slo_tpot = args.workload.slo_tpot;
    if (args.budget_per_hour) targets.budget = UsdPerHour{*args.budget_per_hour};
    if (args.max_gpus) targets.max_gpus = static_cast<std::int32_t>(*args.max_gpus);
    SearchAnswer const answer = search_plans(base, *sets, targets, price);
    if (price_error) return tl::unexpected<Error>{*price_error};
    std::string left;
    for (auto const& [reason, n] : answer.left_out) left += fmt::format("{}{} {}", left.empty() ? "" : ", ", n, reason);
    std::string text;
    if (args.format == OutputFormat::json) {
        nlohmann::ordered_json j;
        j["schema"] = "servecap.search/1";
        j["model"] = in.model.id;
        j["layouts"] = answer.layouts;
        j["plans"] = answer.plans;
        j["best"] = answer.best ? search_json(*answer.best) : nlohmann::ordered_json(nullptr);
        j["nearest"] = answer.nearest && !answer.best ? search_json(*answer.nearest) : nlohmann::ordered_json(nullptr);
        j["front"] = nlohmann::ordered_json::array();
        for (SearchPoint const& p : answer.front) j["front"].push_back(search_json(p));
        j["left_out"] = answer.left_out;
        text = j.dump(2) + "\n";
    } else {
        TextTable const t = search_table(answer.front, true);
        if (args.format == OutputFormat::csv) {
            append_csv_record(text, t.headers());
            for (auto const& r : t.rows()) append_csv_record(text, r);
        } else {
            text = fmt::format("{} · {} in / {} out · {} layouts judged, {} plans predicted\n\n", in.model.display_name, grouped(args.workload.isl.value()),
                               grouped(args.workload.osl.value()), grouped(answer.layouts), grouped(answer.plans));
            if (answer.best)
                text += fmt::format("{}: {} {} at {} users{}\n\n", answer.best->per_million_output ? "Cheapest that meets the targets" : "Most tok/s a GPU (no price is known)",
                                    detail::typed_gpus(answer.best->gpus), layout_name(answer.best->layout), grouped(answer.best->speed.concurrency.value()),
                                    answer.best->per_million_output ? fmt::format(", {} per M output tokens", usd_text(answer.best->per_million_output->value())) : "");
            else if (answer.nearest)
                text += fmt::format("Nothing meets the targets. Nearest: {} {} at {} users, TPOT {}, TTFT {}\n\n", detail::typed_gpus(answer.nearest->gpus),
                                    layout_name(answer.nearest->layout), grouped(answer.nearest->speed.concurrency.value()), duration_text(answer.nearest->speed.tpot.value),
                                    duration_text(answer.nearest->speed.ttft.value));
            else
                text += "No layout starts here.\n\n";
            if (!t.empty()) text += args.format == OutputFormat::md ? t.markdown() : t.text();
            if (!left.empty()) text += "\nLeft out: " + left + "\n";
        }
    }
    auto done = emit(args, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return answer.best ? kAnswered : kNo;
}

} // namespace planner
