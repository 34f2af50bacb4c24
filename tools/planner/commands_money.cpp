// planner: cost and breakeven
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <servecap/cost/break_even.hpp>
#include <servecap/cost/own.hpp>
#include <servecap/cost/rent.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/plan_json.hpp>
#include <servecap/report/plan_charts.hpp>
#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>

#include "context.hpp"
#include "output.hpp"
#include "plan_context.hpp"

namespace planner {

using namespace servecap;
using Json = nlohmann::ordered_json;

namespace {


/// The traffic's input tokens per output token.
double input_per_output(Args const& a) {
    if (a.ratio) return *a.ratio;
    return a.workload.isl / a.workload.osl;
}

/// The price of the deployment from what was typed alone.
Result<UsdPerHour> typed_price(Args const& a) {
    std::int32_t gpus = 1;
    if (a.price_gpu_hour && a.gpu.empty())
        return fail(ErrorCode::bad_usage, "--price-gpu-hour needs --gpu to know how many GPUs", "--price-gpu-hour", "for example --gpu b300x8, or give --price");
    if (!a.gpu.empty()) {
        auto context = Context::open(a);
        if (!context) return tl::unexpected<Error>{context.error()};
        auto set = context->gpu_set(a.gpu);
        if (!set) return tl::unexpected<Error>{set.error()};
        gpus = set->count;
    }
    if (a.usd_per_month) {
        if (*a.usd_per_month <= 0) return fail(ErrorCode::bad_value, "0 is no cost of a month", "--usd-per-month", "expected more than 0");
        return UsdPerHour{*a.usd_per_month / kHoursPerMonth};
    }
    if (!a.price && !a.price_gpu_hour)
        return fail(ErrorCode::bad_usage, "no price", "--price", "give --price (USD an hour, whole deployment), --price-gpu-hour or --usd-per-month; or name --model and --gpu");
    double const rate = a.price ? *a.price : *a.price_gpu_hour * gpus;
    if (auto mistake = price_mistake(UsdPerHour{rate / gpus}, a.price ? "--price" : "--price-gpu-hour", a.force || a.gpu.empty()))
        return tl::unexpected<Error>{std::move(*mistake)};
    return UsdPerHour{rate};
}

Json token_cost_json(TokenCost const& t) {
    using detail::quantity;
    return {{"usd_per_million_output_tokens", quantity(t.output_alone)},
            {"usd_per_million_input_tokens", quantity(t.input)},
            {"usd_per_million_output_tokens_split", quantity(t.output)},
            {"usd_per_million_total_tokens", quantity(t.total)}};
}

/// $/M of a typed throughput.
Result<int> cost_of_typed(Args const& a) {
    auto price = typed_price(a);
    if (!price) return tl::unexpected<Error>{price.error()};
    double const r = input_per_output(a);
    double const q = a.price_ratio.value_or(kDefaultOutputInputRatio);
    double const u = a.utilization.value_or(1.0);
    TokensPerSecond const out{*a.tokens_per_second};
    TokenCost const t = token_cost(*price, out, out * r, q, u);
    UsdPerMonth const month = per_month(*price);
    if (a.format == OutputFormat::json) {
        Json j;
        j["currency"] = "USD";
        j["usd_per_hour"] = detail::quantity(*price);
        j["usd_per_month"] = detail::quantity(month);
        j["output_tokens_per_second"] = detail::quantity(out);
        j["input_tokens_per_second"] = detail::quantity(out * r);
        j["utilization"] = u;
        j["output_input_price_ratio"] = q;
        j["by_concurrency"] = Json::array({token_cost_json(t)});
        j["by_concurrency"][0]["concurrency"] = nullptr;
        auto done = emit(a, j.dump(2) + "\n");
        return done ? Result<int>{kAnswered} : tl::unexpected<Error>{done.error()};
    }
    TextTable table;
    table.column("$/M output").column("$/M input (split)").column("$/M output (split)").column("$/M total").column("$ an hour").column("$ a month");
    table.row({grouped(t.output_alone.value(), 2), grouped(t.input.value(), 3), grouped(t.output.value(), 3), grouped(t.total.value(), 3),
               grouped(price->value(), 2), grouped(month.value(), 0)});
    std::string text;
    if (a.format == OutputFormat::md) {
        text = table.markdown();
    } else if (a.format == OutputFormat::csv) {
        text = "usd_per_million_output_tokens,usd_per_million_input_tokens,usd_per_million_output_tokens_split,usd_per_million_total_tokens,usd_per_hour,usd_per_month\n" +
               fmt::format("{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g}\n", t.output_alone.value(), t.input.value(), t.output.value(), t.total.value(),
                           price->value(), month.value());
    } else {
        text = fmt::format("{} output tok/s + {} input tok/s for {} an hour{}\n\n", sig3(out.value()), sig3(out.value() * r), usd_text(price->value()),
                           u < 1 ? fmt::format(", {} of the paid time", percent_text(u)) : "") +
               table.text() +
               fmt::format("\n$/M output puts the whole cost on output tokens. The split takes an output token as {} input tokens{}.\n"
                           "A month counts 730 hours.\n",
                           fmt::format("{:g}", q), a.price_ratio ? "" : " (default; --output-input-price-ratio)");
    }
    auto done = emit(a, text);
    return done ? Result<int>{kAnswered} : tl::unexpected<Error>{done.error()};
}

/// The tariff that was typed, or that of --api.
Result<std::vector<ApiTariff>> asked_tariffs(Args const& a, Context const& context, Model const* model) {
    if (a.api_input || a.api_output || a.api_cached) {
        if (!a.api_input || !a.api_output)
            return fail(ErrorCode::bad_usage, "an API price needs both sides", a.api_input ? "--api-output" : "--api-input", "give --api-input and --api-output, USD/M tokens");
        if (*a.api_input + *a.api_output <= 0)
            return fail(ErrorCode::bad_value, "an API that charges nothing", "--api-output", "expected USD/M tokens above 0");
        ApiTariff t;
        t.model = "given";
        t.input = UsdPerMillionTokens{*a.api_input};
        t.output = UsdPerMillionTokens{*a.api_output};
        t.cached_input_known = a.api_cached.has_value();
        t.cached_input = UsdPerMillionTokens{a.api_cached.value_or(*a.api_input)};
        t.cache_write = t.input;
        t.date = context.as_of();
        return std::vector<ApiTariff>{t};
    }
    ApiQuery q;
    q.as_of = context.as_of();
    q.isl = a.workload.isl;
    if (!a.api.empty()) {
        q.models = {a.api};
        q.named = true;
    } else if (model != nullptr) {
        q.models = model->api_names;
    }
    if (q.models.empty())
        return fail(ErrorCode::bad_usage, "no API to compare with", "--api", "give --api NAME, or --api-input and --api-output");
    auto rows = context.api_prices({});
    if (!rows) return tl::unexpected<Error>{rows.error()};
    auto tariffs = choose_tariffs(q, *rows);
    if (!tariffs) return tl::unexpected<Error>{tariffs.error()};
    if (tariffs->empty()) return fail(ErrorCode::missing, "no tariff of " + q.models.front() + " is known", "--api", "planner list apis shows all");
    return tariffs;
}

Chart break_even_chart(BreakEven const& b, BreakEvenRequest const& q, std::string const& title) {
    Chart c;
    c.title = title;
    c.subtitle = fmt::format("{} an API at {:.2f} in, {:.2f} out USD/M; {:g} input tokens for each output token", b.against.model, b.against.input.value(),
                             b.against.output.value(), q.input_per_output);
    c.x_label = "million output tokens a month";
    c.y_label = "USD a month";
    double most = b.million_output * 2;
    if (q.capacity) most = std::max(most, million_tokens_per_month(q.capacity->output.value) * 1.05);
    ChartSeries own{.name = "self-hosted, whole replicas", .points = {}, .line = true, .band = false, .markers = false, .colour = 0};
    ChartSeries api{.name = "API", .points = {}, .line = true, .band = false, .markers = false, .colour = 1};
    Supply self{"self", q.deployment, q.capacity ? std::optional<double>{million_tokens_per_month(q.capacity->output.value)} : std::nullopt, q.spare, q.peak_to_mean, {}};
    for (int i = 0; i <= 400; ++i) {
        double const x = most * i / 400.0;
        double const y = monthly_cost(self, std::max(x, 1e-9)).value();
        own.points.push_back({x, y, y, y, {}});
        double const z = b.api_per_million_output.value() * x;
        api.points.push_back({x, z, z, z, {}});
    }
    c.series = {std::move(own), std::move(api)};
    for (Crossing const& x : b.crossings)
        c.marks.push_back({x.million_output, b.api_per_million_output.value() * x.million_output, "break-even " + large_text(x.million_output * 1e6)});
    c.footnote = b.reason;
    return c;
}

} // namespace

Result<int> run_cost(Args const& a) {
    if (a.tokens_per_second) return cost_of_typed(a);
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    auto owned = plan_for(a, *context, Scope::whole);
    if (!owned) return tl::unexpected<Error>{owned.error()};
    Plan const* const plan = &owned->plan;
    for (auto const& w : plan->warnings) warn(w);
    std::string text;
    if (a.format == OutputFormat::json) {
        Json j = cost_to_json(plan->cost);
        text = j.dump(2) + "\n";
    } else {
        TextTable t;
        t.column("Users").column("output tok/s").column("$/M output").column("80 % interval").column("$/M input (split)").column("$/M output (split)").column("$/M total");
        t.column("basis", TextTable::Align::left);
        for (std::size_t i = 0; i < plan->cost.by_concurrency.size(); ++i) {
            CostPoint const& c = plan->cost.by_concurrency[i];
            t.row({grouped(c.concurrency.value()), grouped(plan->speed[i].output.value.value(), 1), grouped(c.output_alone.value.value(), 2),
                   grouped(c.output_alone.low.value(), 2) + "-" + grouped(c.output_alone.high.value(), 2), grouped(c.input.value.value(), 3),
                   grouped(c.output.value.value(), 3), grouped(c.total.value.value(), 3), std::string{to_string(c.basis)}});
        }
        std::string head = plan_headline(*plan) + "\n\n";
        if (plan->cost.price)
            head += fmt::format("{} an hour ({})\n\n", usd_text(plan->cost.price->per_hour.value()), detail::price_text(*plan->cost.price));
        else
            head += "No price is known: " + plan->cost.missing + "\n\n";
        if (a.format == OutputFormat::csv) {
            text = "concurrency,output_tokens_per_second,usd_per_million_output_tokens,usd_per_million_output_tokens_low,usd_per_million_output_tokens_high,"
                   "usd_per_million_input_tokens,usd_per_million_total_tokens,basis\n";
            for (std::size_t i = 0; i < plan->cost.by_concurrency.size(); ++i) {
                CostPoint const& c = plan->cost.by_concurrency[i];
                text += fmt::format("{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{}\n", c.concurrency.value(), plan->speed[i].output.value.value(),
                                    c.output_alone.value.value(), c.output_alone.low.value(), c.output_alone.high.value(), c.input.value.value(),
                                    c.total.value.value(), to_string(c.basis));
            }
        } else if (a.format == OutputFormat::svg) {
            Chart chart;
            chart.title = plan_headline(*plan);
            chart.subtitle = "cost of a million output tokens, 80 % interval";
            chart.x_label = "users at once";
            chart.y_label = "USD per million output tokens";
            chart.x_log = chart.y_log = true;
            ChartSeries s{.name = "$/M output", .points = {}};
            for (CostPoint const& c : plan->cost.by_concurrency)
                s.points.push_back({static_cast<double>(c.concurrency.value()), c.output_alone.value.value(), c.output_alone.low.value(), c.output_alone.high.value(), {}});
            chart.series.push_back(std::move(s));
            if (plan->cost.price) chart.footnote = usd_text(plan->cost.price->per_hour.value()) + " an hour (" + detail::price_text(*plan->cost.price) + ")";
            text = svg_chart(chart);
        } else {
            text = a.format == OutputFormat::md ? head + t.markdown() : head + t.text();
        }
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return plan->cost.price && plan->fit.starts ? kAnswered : kNo;
}

Result<int> run_breakeven(Args const& a) {
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    std::optional<OwnedPlan> owned;
    BreakEvenRequest q;
    q.input_per_output = input_per_output(a);
    q.cache_hit = a.workload.cache_hit;
    q.spare = static_cast<std::int32_t>(a.reserve_replicas.value_or(0));
    q.peak_to_mean = a.peak_to_mean.value_or(1.0);
    std::string deployment = "deployment";
    std::optional<UsdPerHour> rent;
    if (!a.model.empty() && !a.gpu.empty()) {
        bool const priced = !a.usd_per_month && !a.buy_price;
        auto made = plan_for(a, *context, priced ? Scope::whole : Scope::speed, false);
        if (!made) return tl::unexpected<Error>{made.error()};
        owned = std::move(*made);
        Plan const* const plan = &owned->plan;
        deployment = fmt::format("{} on {}", plan->model->display_name, detail::gpus_text(plan->gpus));
        q.capacity = capacity_of(plan->speed, a.workload.slo_ttft, a.workload.slo_tpot);
        if (!q.capacity)
            q.no_capacity_reason = !plan->fit.starts ? "the engine does not start" : "no concurrency meets the latency bounds";
        if (priced) {
            if (!plan->cost.price) return fail(ErrorCode::missing, "no price of the deployment: " + plan->cost.missing, "--price", "give --price or --price-gpu-hour");
            rent = plan->cost.price->per_hour;
        }
    }
    if (a.tokens_per_second) {
        q.capacity = Capacity{Interval<TokensPerSecond>::point(TokensPerSecond{*a.tokens_per_second}), "the rate given"};
        q.no_capacity_reason.clear();
    }
    std::optional<OwnCost> own;
    if (a.buy_price) {
        double const rate = a.currency_rate.value_or(1.0);
        OwnTerms t;
        t.purchase = Usd{*a.buy_price / rate};
        t.months = a.own_months.value_or(36);
        t.annual_interest = a.interest.value_or(0);
        t.residual_share = a.residual.value_or(0);
        double kw = a.power_kw.value_or(0);
        if (kw == 0 && owned && owned->plan.gpus.gpu.node_power) kw = owned->plan.gpus.gpu.node_power->value() / 1000.0 * owned->plan.gpus.nodes;
        if (a.colo_per_kw_month) {
            t.provisioned_kw = kw;
            t.place_usd_per_kw_month = *a.colo_per_kw_month / rate;
        } else {
            t.load_kw = kw;
            t.pue = a.pue.value_or(1.3);
            t.usd_per_kwh = a.tariff.value_or(0) / rate;
        }
        t.maintenance_share = a.maintenance.value_or(0);
        t.other = UsdPerMonth{a.staff_per_month.value_or(0) / rate};
        if (auto mistake = own_mistake(t)) return tl::unexpected<Error>{std::move(*mistake)};
        own = own_cost(t);
        q.deployment = own->total;
    } else if (rent) {
        q.deployment = per_month(*rent);
    } else {
        auto price = typed_price(a);
        if (!price) return tl::unexpected<Error>{price.error()};
        rent = *price;
        q.deployment = per_month(*price);
    }
    std::optional<DutyCost> duty;
    if (a.hours_per_day && rent) {
        DutyRental d;
        d.hours_per_day = *a.hours_per_day;
        d.days_per_month = a.days_per_month.value_or(365.0 / 12.0);
        d.starts_per_day = a.starts_per_day.value_or(1.0);
        if (owned && owned->plan.cost.setup.known) d.setup = owned->plan.cost.setup.total.value;
        duty = duty_cost(*rent, d);
        q.deployment = duty->monthly;
        // What is off cannot serve: the capacity of a month shrinks with the useful hours.
        if (q.capacity) {
            double const share = duty->useful_hours / kHoursPerMonth;
            q.capacity->output = {q.capacity->output.value * share, q.capacity->output.low * share, q.capacity->output.high * share};
            q.capacity->at += fmt::format(", averaged over the month at {:g} h a day", d.hours_per_day);
        }
    }
    auto tariffs = asked_tariffs(a, *context, owned ? owned->model.get() : nullptr);
    if (!tariffs) return tl::unexpected<Error>{tariffs.error()};
    std::vector<BreakEven> answers;
    for (ApiTariff const& t : *tariffs) answers.push_back(break_even(q, t));
    auto const sensitivity = break_even_sensitivity(q, tariffs->front());

    std::string text;
    if (a.format == OutputFormat::json) {
        Json j;
        j["schema"] = "servecap.breakeven/1";
        j["usd_per_month"] = detail::quantity(q.deployment);
        j["input_per_output"] = q.input_per_output;
        j["cache_hit"] = q.cache_hit;
        j["break_even"] = Json::array();
        for (BreakEven const& b : answers) j["break_even"].push_back(break_even_to_json(b));
        Json s = Json::array();
        for (Sensitivity const& x : sensitivity)
            s.push_back({{"input", std::string{x.name}}, {"value", detail::number(x.value)}, {"answer_at_minus_10_pct", detail::number(x.low)},
                         {"answer_at_plus_10_pct", detail::number(x.high)}, {"elasticity", detail::number(x.elasticity)}});
        j["sensitivity"] = s;
        if (own)
            j["own"] = {{"capital", detail::quantity(own->capital)}, {"power", detail::quantity(own->power)}, {"place", detail::quantity(own->place)},
                        {"maintenance", detail::quantity(own->maintenance)}, {"other", detail::quantity(own->other)}, {"total", detail::quantity(own->total)},
                        {"straight_line", detail::quantity(own->straight_line)}};
        if (own && a.price) j["buy_over_rent_duty"] = detail::number(buy_over_rent_duty(own->total, UsdPerHour{*a.price}));
        text = j.dump(2) + "\n";
    } else if (a.format == OutputFormat::svg) {
        text = svg_chart(break_even_chart(answers.front(), q, deployment + " against " + answers.front().against.model));
    } else {
        TextTable t;
        t.column("Against", TextTable::Align::left).column("M output/month").column("M input/month").column("output tok/s").column("input tok/s");
        t.column("load").column("reachable", TextTable::Align::left);
        for (BreakEven const& b : answers)
            t.row({detail::api_text(b.against), grouped(b.million_output, 1), grouped(b.million_input, 1), grouped(b.output_rate.value(), 0),
                   grouped(b.input_rate.value(), 0), b.utilization_needed ? percent_text(*b.utilization_needed) : "not known", std::string{to_string(b.reachable)}});
        if (a.format == OutputFormat::csv) {
            text = "against,usd_per_month,million_output_tokens_per_month,million_input_tokens_per_month,output_tokens_per_second,input_tokens_per_second,utilization_needed,reachable\n";
            for (BreakEven const& b : answers)
                text += fmt::format("{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{},{}\n", b.against.model, b.self_hosted.value(), b.million_output, b.million_input,
                                    b.output_rate.value(), b.input_rate.value(), b.utilization_needed ? fmt::format("{:.6g}", *b.utilization_needed) : "",
                                    to_string(b.reachable));
        } else {
            bool const md = a.format == OutputFormat::md;
            text = fmt::format("{}{}: {} a month{}; {:g} input tokens for each output token{}\n\n", md ? "# " : "", deployment, usd_text(q.deployment.value()),
                               own    ? " of ownership"
                               : duty ? fmt::format(" for {:g} h a day, {} of it setting up", *a.hours_per_day, percent_text(duty->setup_share))
                               : rent ? fmt::format(" ({} an hour x 730 h)", usd_text(rent->value()))
                                      : "",
                               q.input_per_output, q.cache_hit > 0 ? fmt::format(", {} of the input cached", percent_text(q.cache_hit)) : "");
            text += md ? t.markdown() : t.text();
            text += "\n";
            for (BreakEven const& b : answers) {
                text += (md ? "- " : "") + b.against.model + ": " + b.reason + "\n";
                for (std::string const& n : b.notes) text += (md ? "  - " : "  ") + n + "\n";
                if (b.crossings.size() > 1) {
                    text += md ? "  - " : "  ";
                    text += fmt::format("{} crossings: ", b.crossings.size());
                    for (std::size_t i = 0; i < b.crossings.size() && i < 8; ++i)
                        text += fmt::format("{}{} M ({} from there)", i > 0 ? ", " : "", grouped(b.crossings[i].million_output, 1),
                                            b.crossings[i].cheaper_above ? "self-hosting is cheaper" : "the API is cheaper");
                    text += b.crossings.size() > 8 ? ", ...\n" : "\n";
                }
            }
            if (own) {
                text += fmt::format("\nOwning a month: capital {}, power {}, place {}, maintenance {}, other {} (straight line without interest and residual: {})\n",
                                    usd_text(own->capital.value()), usd_text(own->power.value()), usd_text(own->place.value()), usd_text(own->maintenance.value()),
                                    usd_text(own->other.value()), usd_text(own->straight_line.value()));
                if (a.price)
                    text += fmt::format("Buying beats renting at {} an hour above {} of the hours of a month.\n", usd_text(*a.price),
                                        percent_text(buy_over_rent_duty(own->total, UsdPerHour{*a.price})));
            }
            if (!sensitivity.empty()) {
                text += "\nWhat moves it most (change of the answer for 1 % more):\n";
                TextTable s;
                s.column("input", TextTable::Align::left).column("as planned").column("% change");
                for (Sensitivity const& x : sensitivity) s.row({std::string{x.name}, sig3(x.value), fmt::format("{:+.2f}", x.elasticity)});
                text += md ? "\n" + s.markdown() : s.text("  ");
            }
        }
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return std::any_of(answers.begin(), answers.end(), [](BreakEven const& b) { return b.reachable != Reachable::no; }) ? kAnswered : kNo;
}

} // namespace planner
