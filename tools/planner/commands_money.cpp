// planner: cost and breakeven
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <servecap/cost/break_even.hpp>
#include <servecap/cost/money.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/report/plan_charts.hpp>
#include <servecap/report/table.hpp>

#include "payment.hpp"

namespace planner {

Result<void> settle_money(Args& a) {
    auto const upper = [](std::string s) {
        for (char& c : s) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        return s;
    };
    std::string const common = upper(std::string{trim(a.currency)});
    if (!common.empty() && (common.size() != 3 || common.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos))
        return fail(ErrorCode::bad_value, "'" + a.currency + "' is no currency", "--currency", "expected a code of three letters such as CNY");
    if (!a.currency_date.empty() && (!is_iso_date(a.currency_date) || a.currency_date.size() != 10))
        return fail(ErrorCode::bad_value, "'" + a.currency_date + "' is no date", "--currency-date", "expected YYYY-MM-DD");
    if (!a.currency_date.empty() && !a.currency_rate)
        return fail(ErrorCode::bad_usage, "a date without a rate", "--currency-date", "give --currency-rate too");
    std::string foreign; // the currency that a rate given on the command line is of
    TypedMoney const* written = nullptr;
    for (TypedMoney const& m : a.money) {
        std::string const& c = !m.currency.empty() ? m.currency : m.in_usd ? std::string{} : common;
        if (c.empty() || c == "USD") continue;
        if (!foreign.empty() && c != foreign && a.currency_rate)
            return fail(ErrorCode::bad_usage, "one rate for " + foreign + " and " + c, "--currency-rate", "give amounts of one currency, or none in the other");
        foreign = c;
        if (!m.currency.empty() && written == nullptr) written = &m;
    }
    if (a.currency_rate && foreign.empty())
        return fail(ErrorCode::bad_usage, "a rate, but every amount is in US dollars", "--currency-rate", "say whose rate it is: --currency CNY");
    if (foreign.empty()) return {};
    if (common.empty() && written != nullptr)
        for (TypedMoney const& m : a.money)
            if (m.currency.empty() && !m.in_usd)
                return fail(ErrorCode::bad_usage, fmt::format("the amount has no currency, while {} is in {}", written->flag, written->currency), m.flag,
                            fmt::format("write \"{} ...\" or \"USD ...\", or give --currency for all of them", written->currency));
    std::string as_of = a.as_of;
    if (as_of.empty()) {
        auto newest = read_as_of(find_embedded("as_of.csv").value_or(""), "as_of.csv");
        if (!newest) return tl::unexpected<Error>{newest.error()};
        as_of = std::move(*newest);
    }
    std::vector<CurrencyRate> rates;
    if (a.currency_rate) {
        rates.push_back({foreign, *a.currency_rate, a.currency_date, "given", {}});
        if (auto const age = days_between(a.currency_date, as_of); age && *age > kStaleDays)
            a.money_notes.push_back(fmt::format("the rate of {} is {} days old ({} a dollar, {})", foreign, *age, *a.currency_rate, a.currency_date));
    } else {
        auto known = read_currency_rates(find_embedded("currency.csv").value_or(""), "currency.csv");
        if (!known) return tl::unexpected<Error>{known.error()};
        rates = std::move(*known);
    }
    for (TypedMoney const& m : a.money) {
        std::string const c = !m.currency.empty() ? m.currency : m.in_usd || common.empty() ? std::string{"USD"} : common;
        if (c == "USD") continue;
        std::optional<double>& amount = a.*(m.amount);
        auto usd = in_dollars(Money{*amount, c}, rates, a.currency_rate ? std::string_view{} : std::string_view{as_of});
        if (!usd) {
            Error e = usd.error();
            e.where = m.flag;
            e.hint = "give --currency-rate (units of " + c + " a dollar) and --currency-date, or the amount in US dollars";
            return tl::unexpected<Error>{std::move(e)};
        }
        a.money_notes.push_back(fmt::format("{} {} {} = {} at {:.6g} {} a dollar ({}, {})", m.flag, c, grouped(*amount, 2), usd->usd < 1 ? fmt::format("${:.4g}", usd->usd) : usd_text(usd->usd),
                                            usd->rate->per_usd, c, usd->rate->date.empty() ? "no date given" : usd->rate->date, usd->rate->source));
        for (std::string const& w : usd->warnings)
            if (std::find(a.money_notes.begin(), a.money_notes.end(), w) == a.money_notes.end()) a.money_notes.push_back(w);
        amount = usd->usd;
    }
    for (std::string const& n : a.money_notes) warn(n);
    return {};
}

namespace {

/// The traffic's input tokens per output token.
double input_per_output(Args const& a) {
    if (a.ratio) return *a.ratio;
    return a.workload.isl / a.workload.osl;
}

/// With --ratio the requests that are predicted have that shape too: a break-even at 5:1 is held against the speed at 5:1.
Result<Args> shaped(Args a) {
    if (!a.ratio || a.model.empty()) return a;
    if (a.isl_given) {
        if (std::fabs(a.workload.isl / a.workload.osl - *a.ratio) > 0.01 * *a.ratio)
            return fail(ErrorCode::bad_usage, fmt::format("--ratio {:g}, while --isl and --osl are {:g}:1", *a.ratio, a.workload.isl / a.workload.osl), "--ratio",
                        "give one of them");
        return a;
    }
    a.workload.isl = Tokens{std::max<std::int64_t>(1, std::llround(*a.ratio * static_cast<double>(a.workload.osl.value())))};
    return a;
}

/// Facts of the licence with their source, as they stand in the card.
std::vector<std::string> licence_lines(Model const& m) {
    std::vector<std::string> out;
    for (LicenceFact const& f : m.licence) out.push_back("Licence: " + f.text + (f.source.empty() ? "" : " (" + f.source + ")"));
    return out;
}

std::string noted(std::string_view line, bool md) { return md ? "- " + std::string{line} + "\n" : "  " + detail::wrapped(line, 98, "    ") + "\n"; }

std::string price_line(Payment const& p, std::string_view gpu) {
    if (!p.chosen) return {};
    PriceChoice const& c = *p.chosen;
    std::string s = fmt::format("Price of {}: {}", gpu, detail::price_text(c));
    if (c.low < c.high) s += fmt::format("; {} providers from {} to {} an hour", c.rows.size(), usd_text(c.low.value()), usd_text(c.high.value()));
    auto const undated = std::count_if(c.rows.begin(), c.rows.end(), [](GpuPrice const& r) { return !is_iso_date(r.date); });
    if (undated > 0 && c.rows.size() > 1) s += fmt::format("; {} of them undated", undated);
    if (c.age_days) s += fmt::format("; {}{} days old", c.date.size() == 10 ? "" : "at most ", *c.age_days);
    if (!c.url.empty()) s += "; " + c.url;
    return s;
}

Json token_cost_json(TokenCost const& t) {
    using detail::quantity;
    return {{"usd_per_million_output_tokens", quantity(t.output_alone)},
            {"usd_per_million_input_tokens", quantity(t.input)},
            {"usd_per_million_output_tokens_split", quantity(t.output)},
            {"usd_per_million_total_tokens", quantity(t.total)}};
}

/// Set-up and serving of one rented session, in words.
std::string session_text(Args const& a, SetupTime const& setup, SessionCost const& s) {
    return fmt::format("A session that serves {:g} h: set-up {} ({}, {} of the bill) + serving {} = {}; spread over its tokens {:.2f} $/M output instead of {:.2f}",
                       *a.session_hours, usd_text(s.setup.value()), duration_text(setup.total.value), percent_text(s.setup_share, 1),
                       usd_text(s.serving.value()), usd_text(s.total.value()), s.all_in.value(), s.while_serving.value());
}

Json session_json(Args const& a, SetupTime const& setup, SessionCost const& s) {
    using detail::quantity;
    return {{"serving_hours", *a.session_hours},
            {"setup_s", detail::number(setup.total.value.value())},
            {"setup_basis", std::string{to_string(setup.basis)}},
            {"setup_usd", quantity(s.setup)},
            {"serving_usd", quantity(s.serving)},
            {"setup_share", detail::number(s.setup_share)},
            {"usd_per_million_output_tokens_with_setup", quantity(s.all_in)}};
}

/// $/M of a typed throughput.
Result<int> cost_of_typed(Args const& a) {
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    auto paid = payment_of(a, *context, nullptr);
    if (!paid) return tl::unexpected<Error>{paid.error()};
    if (!paid->known) return fail(ErrorCode::missing, "no price of the deployment: " + paid->missing, "--price", "give --price or --price-gpu-hour");
    UsdPerHour const price = paid->per_useful_hour;
    double const r = input_per_output(a);
    double const q = a.price_ratio.value_or(kDefaultOutputInputRatio);
    double const u = a.utilization.value_or(1.0);
    TokensPerSecond const out{*a.tokens_per_second};
    TokenCost const t = token_cost(price, out, out * r, q, u);
    std::optional<SetupTime> setup;
    std::optional<SessionCost> session;
    std::vector<std::string> notes = paid->warnings;
    notes.insert(notes.end(), paid->notes.begin(), paid->notes.end());
    for (std::string const& w : paid->warnings) warn(w);
    if (a.session_hours) {
        auto s = setup_of(a, *context, nullptr);
        if (!s) return tl::unexpected<Error>{s.error()};
        setup = std::move(*s);
        if (setup->known)
            session = session_cost(price, setup->total.value, Seconds{*a.session_hours * 3600}, out * u);
        else
            notes.insert(notes.end(), setup->notes.begin(), setup->notes.end());
    }
    if (a.format == OutputFormat::json) {
        Json j;
        j["currency"] = "USD";
        j["usd_per_hour"] = detail::quantity(paid->rate.value_or(price));
        j["usd_per_month"] = detail::quantity(paid->month);
        j["output_tokens_per_second"] = detail::quantity(out);
        j["input_tokens_per_second"] = detail::quantity(out * r);
        j["utilization"] = u;
        j["output_input_price_ratio"] = q;
        j["by_concurrency"] = Json::array({token_cost_json(t)});
        j["by_concurrency"][0]["concurrency"] = nullptr;
        j["payment"] = payment_json(*paid);
        if (session) j["session"] = session_json(a, *setup, *session);
        j["notes"] = a.money_notes;
        auto done = emit(a, j.dump(2) + "\n");
        return done ? Result<int>{kAnswered} : tl::unexpected<Error>{done.error()};
    }
    TextTable table;
    table.column("$/M output").column("$/M input (split)").column("$/M output (split)").column("$/M total").column("$ an hour").column("$ a month");
    table.row({grouped(t.output_alone.value(), 2), grouped(t.input.value(), 3), grouped(t.output.value(), 3), grouped(t.total.value(), 3),
               grouped(price.value(), 2), grouped(paid->month.value(), 0)});
    std::string text;
    bool const md = a.format == OutputFormat::md;
    if (a.format == OutputFormat::csv) {
        text = "usd_per_million_output_tokens,usd_per_million_input_tokens,usd_per_million_output_tokens_split,usd_per_million_total_tokens,usd_per_hour,usd_per_month\n" +
               fmt::format("{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g}\n", t.output_alone.value(), t.input.value(), t.output.value(), t.total.value(),
                           price.value(), paid->month.value());
    } else if (a.format == OutputFormat::svg) {
        return fail(ErrorCode::bad_usage, "one typed rate makes no chart", "--format svg", "name --model and --gpu for $/M against users at once");
    } else {
        if (!md)
            text = fmt::format("{} output tok/s + {} input tok/s for {} {}{}\n\n", sig3(out.value()), sig3(out.value() * r), usd_text(price.value()),
                               paid->rate && *paid->rate == price ? "an hour" : "a served hour",
                               u < 1 ? fmt::format(", {} of the paid time", percent_text(u)) : "");
        text += md ? table.markdown() : table.text();
        if (!md)
            text += fmt::format("\n$/M output puts the whole cost on output tokens. The split takes an output token as {} input tokens{}.\n"
                                "A month counts 730 hours.\n",
                                fmt::format("{:g}", q), a.price_ratio ? "" : " (default; --output-input-price-ratio)");
        if (session) notes.push_back(session_text(a, *setup, *session));
        notes.insert(notes.end(), a.money_notes.begin(), a.money_notes.end());
        if (!notes.empty()) text += "\n";
        for (std::string const& n : notes) text += noted(n, md);
    }
    auto done = emit(a, text);
    return done ? Result<int>{kAnswered} : tl::unexpected<Error>{done.error()};
}

/// The tariff that was typed, or those of --api, or of the model's card.
Result<std::vector<ApiTariff>> asked_tariffs(Args const& a, Context const& context, Model const* model) {
    if (a.workload.cache_hit + a.cache_write_share.value_or(0) > 1)
        return fail(ErrorCode::bad_value, "--cache-hit and --cache-write are more than the whole input", "--cache-write", "expected a sum of at most 1");
    double const batch = 1 - a.batch_share.value_or(0) * a.batch_discount.value_or(0.5);
    if (a.api_input || a.api_output || a.api_cached || a.api_cache_write) {
        if (!a.api_input || !a.api_output)
            return fail(ErrorCode::bad_usage, "an API price needs both sides", a.api_input ? "--api-output" : "--api-input", "give --api-input and --api-output, USD/M tokens");
        if (!a.api.empty()) return fail(ErrorCode::bad_usage, "--api and typed API prices say the same thing twice", "--api", "give one of them");
        if (*a.api_input + *a.api_output <= 0)
            return fail(ErrorCode::bad_value, "an API that charges nothing", "--api-output", "expected USD/M tokens above 0");
        if (a.api_cached && *a.api_cached > *a.api_input && !a.force)
            return fail(ErrorCode::bad_value, "cached input dearer than input", "--api-cached", "expected at most --api-input; --force accepts it");
        ApiTariff t;
        t.model = "given";
        t.input = UsdPerMillionTokens{*a.api_input * batch};
        t.output = UsdPerMillionTokens{*a.api_output * batch};
        t.cached_input_known = a.api_cached.has_value();
        t.cached_input = UsdPerMillionTokens{a.api_cached.value_or(*a.api_input) * batch};
        t.cache_write = UsdPerMillionTokens{a.api_cache_write.value_or(*a.api_input) * batch};
        t.date = context.as_of();
        if (batch < 1)
            t.notes.push_back(fmt::format("{} of the traffic as batches, {} off", percent_text(*a.batch_share), percent_text(a.batch_discount.value_or(0.5))));
        return std::vector<ApiTariff>{t};
    }
    ApiQuery q;
    q.as_of = context.as_of();
    q.isl = a.workload.isl;
    q.batch_share = a.batch_share.value_or(0);
    q.batch_discount = a.batch_discount.value_or(0.5);
    if (!a.api.empty()) {
        q.models = {a.api};
        q.named = true;
    } else if (model != nullptr) {
        q.models = model->api_names;
    }
    if (q.models.empty())
        return fail(ErrorCode::bad_usage, model != nullptr ? "the card of " + model->display_name + " names no API to compare with" : "no API to compare with", "--api",
                    "give --api NAME (planner list apis shows them), --api-input and --api-output, or --against MODEL@GPU");
    auto rows = context.api_prices({});
    if (!rows) return tl::unexpected<Error>{rows.error()};
    auto tariffs = choose_tariffs(q, *rows);
    if (!tariffs) return tl::unexpected<Error>{tariffs.error()};
    if (tariffs->empty())
        return fail(ErrorCode::missing, fmt::format("no tariff of {} is known to hold on {}", q.models.front(), q.as_of), "--api",
                    "planner list apis shows all; --api-input and --api-output give one");
    return tariffs;
}

/// The other deployment of --against.
struct Rival {
    std::string name, model, gpus; ///< "Kimi K3.1 Pro on b300x8", its parts
    BreakEvenRequest request;
    std::vector<std::string> notes;
};

Result<Rival> rival_of(Args const& a, Context const& context, BreakEvenRequest const& like) {
    Rival r;
    r.request.input_per_output = like.input_per_output;
    r.request.spare = like.spare;
    r.request.peak_to_mean = like.peak_to_mean;
    if (a.against_price)
        if (auto mistake = price_mistake(UsdPerHour{std::min(*a.against_price, kMostUsdPerGpuHour)}, "--against-price", a.force))
            return tl::unexpected<Error>{std::move(*mistake)};
    auto const at = a.against.find('@');
    if (at != std::string::npos) {
        Args other = a;
        other.model = std::string{trim(std::string_view{a.against}.substr(0, at))};
        other.gpu = std::string{trim(std::string_view{a.against}.substr(at + 1))};
        other.layout.clear();
        other.tp = other.pp = other.dp = other.ep = other.dcp = other.replicas = std::nullopt;
        other.settings = {};
        other.given.clear();
        other.price = a.against_price;
        other.price_gpu_hour = std::nullopt;
        other.price_source.clear();
        other.workload.concurrency.clear();
        auto owned = plan_for(other, context, Scope::whole, false);
        if (!owned) {
            Error e = owned.error();
            e.where = "--against, " + e.where;
            return tl::unexpected<Error>{std::move(e)};
        }
        Plan const& p = owned->plan;
        r.model = p.model->display_name;
        r.gpus = detail::typed_gpus(p.gpus);
        r.name = r.model + " on " + r.gpus;
        auto found = find_capacity(p.speed, p.fit.starts, a.workload.slo_ttft, a.workload.slo_tpot);
        r.request.capacity = std::move(found.capacity);
        r.request.no_capacity_reason = std::move(found.reason);
        r.request.cannot_serve = found.cannot_serve;
        if (!p.cost.price)
            return fail(ErrorCode::missing, "no price of " + r.name + ": " + p.cost.missing, "--against", "give --against-price, USD an hour of that deployment");
        r.request.deployment = per_month(p.cost.price->per_hour);
        r.notes.push_back(fmt::format("{}: {} an hour ({}), {}", r.name, usd_text(p.cost.price->per_hour.value()), detail::price_text(*p.cost.price),
                                      layout_name(p.layout)));
        for (Mend const& m : p.mended) r.notes.push_back(fmt::format("{} starts with {} {}", r.name, m.flag, m.value));
        return r;
    }
    auto text = read_file(a.against);
    if (!text) {
        Error e = text.error();
        e.hint = "--against takes MODEL@GPU, such as deepseek-v4.1-flash-1017@b300x8, or a plan written with --format json";
        return tl::unexpected<Error>{std::move(e)};
    }
    auto const j = nlohmann::json::parse(*text, nullptr, false);
    if (j.is_discarded() || !j.is_object() || j.value("schema", std::string{}) != "servecap.plan/1")
        return fail(ErrorCode::bad_format, "is no plan", a.against, "expected JSON of schema servecap.plan/1, or MODEL@GPU");
    using Pointer = nlohmann::json::json_pointer;
    auto const number = [&](nlohmann::json const& at_node, char const* key) {
        auto const it = at_node.find(key);
        return it != at_node.end() && it->is_number() ? it->get<double>() : 0.0;
    };
    r.name = fmt::format("{} on {} x {}", j.value(Pointer{"/model"}, std::string{"?"}), j.value(Pointer{"/gpu/count"}, 0), j.value(Pointer{"/gpu/name"}, std::string{"?"}));
    double const rate = a.against_price ? *a.against_price
                        : j.contains(Pointer{"/cost/usd_per_hour"}) && j.at(Pointer{"/cost/usd_per_hour"}).is_number() ? j.at(Pointer{"/cost/usd_per_hour"}).get<double>()
                                                                                                                      : 0.0;
    if (rate <= 0) return fail(ErrorCode::missing, "the plan has no price", a.against, "give --against-price, USD an hour of that deployment");
    r.request.deployment = per_month(UsdPerHour{rate});
    std::vector<SpeedPoint> speeds;
    for (nlohmann::json const& s : j.value("speed", nlohmann::json::array())) {
        SpeedPoint p;
        p.concurrency = Requests{static_cast<std::int64_t>(number(s, "concurrency"))};
        p.isl = Tokens{static_cast<std::int64_t>(number(s, "isl"))};
        p.osl = Tokens{static_cast<std::int64_t>(number(s, "osl"))};
        p.ttft = {milliseconds(number(s, "ttft_ms")), milliseconds(number(s, "ttft_ms_low")), milliseconds(number(s, "ttft_ms_high"))};
        p.tpot = {milliseconds(number(s, "tpot_ms")), milliseconds(number(s, "tpot_ms_low")), milliseconds(number(s, "tpot_ms_high"))};
        p.output = {TokensPerSecond{number(s, "output_tokens_per_second")}, TokensPerSecond{number(s, "output_tokens_per_second_low")},
                    TokensPerSecond{number(s, "output_tokens_per_second_high")}};
        if (p.isl != a.workload.isl || p.osl != a.workload.osl)
            return fail(ErrorCode::bad_usage, fmt::format("the plan is of {} in / {} out, this one of {} / {}", p.isl.value(), p.osl.value(), a.workload.isl.value(),
                                                          a.workload.osl.value()),
                        a.against, "compare at one workload: give --isl and --osl");
        speeds.push_back(std::move(p));
    }
    auto found = find_capacity(speeds, j.value(Pointer{"/fit/starts"}, false), a.workload.slo_ttft, a.workload.slo_tpot);
    r.request.capacity = std::move(found.capacity);
    r.request.no_capacity_reason = std::move(found.reason);
    r.request.cannot_serve = found.cannot_serve;
    r.notes.push_back(fmt::format("{}: {} an hour ({})", r.name, usd_text(rate), a.against_price ? "given" : "of the plan " + a.against));
    return r;
}

Supply supply_of(std::string name, BreakEvenRequest const& q) {
    return {std::move(name), q.deployment, q.capacity ? std::optional<double>{million_tokens_per_month(q.capacity->output.value)} : std::nullopt, q.spare, q.peak_to_mean, {}};
}

std::string crossings_text(std::vector<Crossing> const& list, bool more, std::string_view first, std::string_view second) {
    std::string s = fmt::format("{}: ", count_text(static_cast<std::int64_t>(list.size()), "crossing", "crossings"));
    for (std::size_t i = 0; i < list.size() && i < 8; ++i)
        s += fmt::format("{}{} M ({} is cheaper from there)", i > 0 ? ", " : "", grouped(list[i].million_output, 1), list[i].cheaper_above ? first : second);
    if (list.size() > 8 || more) return s + ", ...";
    return s + (list.size() > 1 ? ", and so for every volume above the last" : "");
}

} // namespace

Result<int> run_cost(Args const& typed) {
    if (typed.tokens_per_second) return cost_of_typed(typed);
    auto const asked = shaped(typed);
    if (!asked) return tl::unexpected<Error>{asked.error()};
    Args const& a = *asked;
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    bool const priced = !a.usd_per_month && !a.buy_price;
    Args planned = a;
    if (a.spot) planned.price_kind = "spot";
    auto owned = plan_for(planned, *context, priced ? Scope::whole : Scope::speed);
    if (!owned) return tl::unexpected<Error>{owned.error()};
    Plan& plan = owned->plan;
    for (auto const& w : plan.warnings)
        if (!w.starts_with("Licence: ")) warn(w); // the licence stands in the answer
    auto paid = payment_of(a, *context, &plan);
    if (!paid) return tl::unexpected<Error>{paid.error()};
    double const q = a.price_ratio.value_or(plan.cost.output_input_price_ratio);
    double const u = a.utilization.value_or(1.0);
    plan.cost.output_input_price_ratio = q;
    plan.cost.by_concurrency = paid->known ? cost_by_concurrency(plan.speed, paid->per_useful_hour, q, u) : std::vector<CostPoint>{};
    auto made_setup = setup_of(a, *context, &plan);
    if (!made_setup) return tl::unexpected<Error>{made_setup.error()};
    SetupTime const& setup = *made_setup;
    std::vector<std::string> notes;
    if (u < 1) notes.push_back(fmt::format("the node is at these rates for {} of the paid time (--utilization)", percent_text(u)));
    for (std::string const& w : paid->warnings)
        if (std::find(plan.warnings.begin(), plan.warnings.end(), w) == plan.warnings.end()) warn(w);
    notes.insert(notes.end(), paid->warnings.begin(), paid->warnings.end());
    notes.insert(notes.end(), paid->notes.begin(), paid->notes.end());
    auto const session = [&](SpeedPoint const& s) -> std::optional<SessionCost> {
        if (!a.session_hours || !setup.known || !paid->known) return std::nullopt;
        return session_cost(paid->per_useful_hour, setup.total.value, Seconds{*a.session_hours * 3600}, s.output.value * u);
    };
    if (a.session_hours && !setup.known) notes.insert(notes.end(), setup.notes.begin(), setup.notes.end());
    std::string text;
    if (a.format == OutputFormat::json) {
        if (setup.known) {
            plan.cost.setup = setup;
            if (paid->rate) plan.cost.setup_usd = setup_cost(setup, *paid->rate);
        }
        Json j = cost_to_json(plan.cost);
        if (!priced) j["usd_per_hour"] = detail::number(paid->month.value() / kHoursPerMonth);
        j["utilization"] = u;
        if (paid->known) j["payment"] = payment_json(*paid);
        for (std::size_t i = 0; i < plan.cost.by_concurrency.size(); ++i)
            if (auto const s = session(plan.speed[i])) j["by_concurrency"][i]["session"] = session_json(a, setup, *s);
        j["notes"] = notes;
        j["licence"] = Json::array();
        for (LicenceFact const& f : plan.model->licence) j["licence"].push_back({{"text", f.text}, {"source", f.source}});
        text = j.dump(2) + "\n";
    } else if (a.format == OutputFormat::csv) {
        text = "concurrency,output_tokens_per_second,usd_per_million_output_tokens,usd_per_million_output_tokens_low,usd_per_million_output_tokens_high,"
               "usd_per_million_input_tokens,usd_per_million_total_tokens,basis,usd_per_million_output_tokens_with_setup\n";
        for (std::size_t i = 0; i < plan.cost.by_concurrency.size(); ++i) {
            CostPoint const& c = plan.cost.by_concurrency[i];
            auto const s = session(plan.speed[i]);
            text += fmt::format("{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{},{}\n", c.concurrency.value(), plan.speed[i].output.value.value(),
                                c.output_alone.value.value(), c.output_alone.low.value(), c.output_alone.high.value(), c.input.value.value(),
                                c.total.value.value(), to_string(c.basis), s ? fmt::format("{:.9g}", s->all_in.value()) : "");
        }
    } else {
        bool const md = a.format == OutputFormat::md;
        std::string const gpus = detail::gpus_text(plan.gpus);
        std::string const source = price_line(*paid, gpus);
        if (a.format == OutputFormat::svg) {
            std::vector<CostLine> const lines{{std::string{}, plan.cost.by_concurrency}};
            std::string foot = paid->known ? fmt::format("{} a served hour ({}).", usd_text(paid->per_useful_hour.value()), source.empty() ? "price given" : source) : "No price is known: " + paid->missing;
            std::string rows;
            for (PlanSource const& s : plan.sources)
                if (s.what == "speed" && rows.size() < 160) rows += (rows.empty() ? " Speed: " : "; ") + s.source + (s.date.empty() ? "" : " " + s.date);
            text = svg_chart(cost_chart(plan_headline(plan), lines, foot + rows));
        } else {
            TextTable t;
            t.column("Users").column("output tok/s").column("$/M output").column("80 % interval").column("$/M input (split)").column("$/M output (split)").column("$/M total");
            if (a.session_hours && setup.known) t.column("$/M output with set-up");
            t.column("basis", TextTable::Align::left);
            for (std::size_t i = 0; i < plan.cost.by_concurrency.size(); ++i) {
                CostPoint const& c = plan.cost.by_concurrency[i];
                std::vector<std::string> row{grouped(c.concurrency.value()), grouped(plan.speed[i].output.value.value(), 1), grouped(c.output_alone.value.value(), 2),
                                             grouped(c.output_alone.low.value(), 2) + "-" + grouped(c.output_alone.high.value(), 2), grouped(c.input.value.value(), 3),
                                             grouped(c.output.value.value(), 3), grouped(c.total.value.value(), 3)};
                if (auto const s = session(plan.speed[i])) row.push_back(grouped(s->all_in.value(), 2));
                row.emplace_back(to_string(c.basis));
                t.row(std::move(row));
            }
            text = (md ? "# " : "") + plan_headline(plan) + "\n\n";
            if (paid->known)
                text += fmt::format("{} a month ({}){}\n\n", usd_text(paid->month.value()), paid->how,
                                    paid->rate && std::fabs(*paid->rate / paid->per_useful_hour - 1) < 1e-9 ? "" : fmt::format(": {} a served hour", usd_text(paid->per_useful_hour.value())));
            else
                text += "No price is known: " + paid->missing + "\n\n";
            if (!plan.fit.starts) text += "It does not start: " + plan.fit.engine_message + "\n\n";
            if (!t.empty()) text += (md ? t.markdown() : t.text()) + "\n";
            if (!source.empty()) text += noted(source, md);
            if (!t.empty())
                text += noted(fmt::format("$/M output puts the whole cost on output tokens; the split takes an output token as {:.3g} input tokens ({}).", q,
                                          a.price_ratio ? "given" : plan.cost.ratio_source.empty() ? "default" : plan.cost.ratio_source), md);
            if (setup.known && paid->rate)
                text += noted(fmt::format("Set-up before the first token: {} ({} download, {} start{}) [{}]{}", usd_text(setup_cost(setup, *paid->rate).value.value()),
                                          duration_text(setup.download.value), duration_text(setup.start.value),
                                          setup.failed.value.value() > 0 ? ", " + duration_text(setup.failed.value) + " of failed starts" : "",
                                          to_string(setup.basis), a.session_hours ? "" : "; each rented session pays it, --session-hours spreads it"), md);
            if (!plan.speed.empty() && a.session_hours)
                if (auto const s = session(plan.speed.back())) text += noted(session_text(a, setup, *s) + fmt::format(" ({} users)", plan.speed.back().concurrency.value()), md);
            for (std::string const& n : notes) text += noted(n, md);
            for (std::string const& n : a.money_notes) text += noted(n, md);
            for (std::string const& n : licence_lines(*plan.model)) text += noted(n, md);
        }
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return paid->known && plan.fit.starts ? kAnswered : kNo;
}

Result<int> run_breakeven(Args const& typed) {
    auto const asked = shaped(typed);
    if (!asked) return tl::unexpected<Error>{asked.error()};
    Args const& a = *asked;
    if (a.volume && *a.volume <= 0)
        return fail(ErrorCode::bad_value, "a volume of 0 tokens has no cost a million and no break-even", "--volume", "expected million output tokens a month above 0");
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    std::optional<OwnedPlan> owned;
    std::optional<Model> named; // a model without GPUs: for the API of its card
    BreakEvenRequest q;
    q.input_per_output = input_per_output(a);
    q.cache_hit = a.workload.cache_hit;
    q.cache_write = a.cache_write_share.value_or(0);
    q.spare = static_cast<std::int32_t>(a.reserve_replicas.value_or(0));
    q.peak_to_mean = a.peak_to_mean.value_or(1.0);
    std::string deployment = "deployment";
    std::vector<std::string> notes;
    if (!a.model.empty() && !a.gpu.empty()) {
        auto made = plan_for(a, *context, Scope::speed, false);
        if (!made) return tl::unexpected<Error>{made.error()};
        owned = std::move(*made);
        Plan const& plan = owned->plan;
        deployment = fmt::format("{} on {}", plan.model->display_name, detail::gpus_text(plan.gpus));
        auto found = find_capacity(plan.speed, plan.fit.starts, a.workload.slo_ttft, a.workload.slo_tpot);
        q.capacity = std::move(found.capacity);
        q.no_capacity_reason = std::move(found.reason);
        q.cannot_serve = found.cannot_serve;
        for (Mend const& m : plan.mended) notes.push_back(fmt::format("it starts with {} {}", m.flag, m.value));
        if (plan.for_fix) notes.emplace_back("it does not start as asked: the speed is that of the fix");
    } else if (!a.model.empty()) {
        auto m = context->model(a.model);
        if (!m) return tl::unexpected<Error>{m.error()};
        named = std::move(*m);
    }
    if (a.tokens_per_second) {
        q.capacity = Capacity{Interval<TokensPerSecond>::point(TokensPerSecond{*a.tokens_per_second}), "the rate given"};
        q.no_capacity_reason.clear();
        q.cannot_serve = false;
    }
    auto made = payment_of(a, *context, owned ? &owned->plan : nullptr);
    if (!made) return tl::unexpected<Error>{made.error()};
    Payment const& paid = *made;
    if (!paid.known) return fail(ErrorCode::missing, "no price of the deployment: " + paid.missing, "--price", "give --price or --price-gpu-hour");
    q.deployment = paid.month;
    if (q.capacity && (paid.share < 1 || a.utilization)) {
        // What is off cannot serve: the capacity of a month shrinks with the hours that serve.
        double const share = paid.share * a.utilization.value_or(1.0);
        q.capacity->output = {q.capacity->output.value * share, q.capacity->output.low * share, q.capacity->output.high * share};
        if (paid.share < 1) q.capacity->at += fmt::format(", averaged over the month: it serves {} of it", percent_text(paid.share));
        if (a.utilization) q.capacity->at += fmt::format(", at most {} loaded", percent_text(*a.utilization));
    }
    std::optional<Rival> rival;
    std::optional<DeploymentBreakEven> duel;
    if (!a.against.empty()) {
        auto r = rival_of(a, *context, q);
        if (!r) return tl::unexpected<Error>{r.error()};
        rival = std::move(*r);
        if (owned) deployment = fmt::format("{} on {}", owned->plan.model->display_name, detail::typed_gpus(owned->plan.gpus));
        duel = break_even_between(q, deployment, rival->request, rival->name);
    }
    std::vector<BreakEven> answers;
    std::vector<Sensitivity> sensitivity;
    Model const* const model = owned ? owned->model.get() : named ? &*named : nullptr;
    bool const api_asked = !a.api.empty() || a.api_input || a.api_output || a.api_cached || a.api_cache_write;
    if (!rival || api_asked) {
        auto tariffs = asked_tariffs(a, *context, model);
        // Renting against buying, or what a volume costs, is an answer without an API too.
        if (!tariffs && (api_asked || (!a.buy_price && !a.volume))) return tl::unexpected<Error>{tariffs.error()};
        if (!tariffs) {
            notes.push_back("no API is compared: " + tariffs.error().message);
        } else {
            for (ApiTariff const& t : *tariffs) answers.push_back(break_even(q, t));
            sensitivity = break_even_sensitivity(q, tariffs->front());
        }
    }
    std::vector<WayToPay> ways;
    if (owned) {
        auto w = ways_to_pay(a, *context, owned->plan.gpus);
        if (!w) return tl::unexpected<Error>{w.error()};
        ways = std::move(*w);
    }
    for (std::string const& w : paid.warnings) warn(w);
    notes.insert(notes.end(), paid.warnings.begin(), paid.warnings.end());
    notes.insert(notes.end(), paid.notes.begin(), paid.notes.end());
    notes.insert(notes.end(), a.money_notes.begin(), a.money_notes.end());
    if (q.spare > 0) notes.push_back(fmt::format("{} kept for failure, beside those that serve (--reserve)", count_text(q.spare, "deployment is", "deployments are")));
    if (q.peak_to_mean > 1) notes.push_back(fmt::format("sized for a peak of {:g} times the mean traffic", q.peak_to_mean));
    Supply const self = supply_of("self-hosted", q);

    /// One way at the volume of --volume.
    struct AtVolume {
        std::string name;
        std::int64_t replicas = 0;
        UsdPerMonth cost{};
        bool known = true;
    };
    std::vector<AtVolume> at_volume;
    if (a.volume) {
        auto const add = [&](std::string name, Supply const& s, bool known) { at_volume.push_back({std::move(name), replicas_for(s, *a.volume), monthly_cost(s, *a.volume), known}); };
        add(deployment, self, q.capacity.has_value());
        for (BreakEven const& b : answers) add(detail::api_text(b.against), Supply{{}, {}, std::nullopt, 0, 1, b.api_per_million_output}, true);
        if (rival) add(rival->name, supply_of(rival->name, rival->request), rival->request.capacity.has_value());
    }
    constexpr std::array<double, 6> duties{0.1, 0.25, 0.5, 0.75, 0.9, 1.0};

    std::string text;
    if (a.format == OutputFormat::json) {
        Json j;
        j["schema"] = "servecap.breakeven/1";
        j["deployment"] = deployment;
        j["usd_per_month"] = detail::quantity(q.deployment);
        j["input_per_output"] = q.input_per_output;
        j["cache_hit"] = q.cache_hit;
        j["payment"] = payment_json(paid);
        if (paid.chosen) {
            PlanCost c;
            c.price = paid.chosen;
            j["price"] = cost_to_json(c)["price"];
        }
        j["break_even"] = Json::array();
        for (BreakEven const& b : answers) j["break_even"].push_back(break_even_to_json(b));
        if (duel) {
            Json list = Json::array();
            for (Crossing const& c : duel->crossings.list)
                list.push_back({{"million_output_tokens_per_month", detail::number(c.million_output)},
                                {"million_input_tokens_per_month", detail::number(c.million_input)},
                                {"replicas", c.replicas},
                                {"other_replicas", replicas_for(supply_of({}, rival->request), c.million_output * (1 + 1e-6))},
                                {"first_cheaper_above", c.cheaper_above}});
            j["against_deployment"] = {{"name", rival->name},
                                       {"usd_per_month", detail::quantity(rival->request.deployment)},
                                       {"capacity_output_tokens_per_second", rival->request.capacity ? detail::quantity(rival->request.capacity->output.value) : Json(nullptr)},
                                       {"usd_per_million_output_tokens_full_load", {detail::quantity(duel->first_full_load), detail::quantity(duel->second_full_load)}},
                                       {"crossings", list},
                                       {"more_crossings", duel->crossings.more},
                                       {"first_cheaper_at_start", duel->crossings.first_cheaper_at_start},
                                       {"first_cheaper_at_end", duel->crossings.first_cheaper_at_end},
                                       {"turns", std::string{to_string(duel->reachable)}},
                                       {"reason", duel->reason},
                                       {"notes", rival->notes}};
        }
        if (a.volume) {
            j["volume"] = {{"million_output_tokens_per_month", *a.volume}, {"ways", Json::array()}};
            for (AtVolume const& v : at_volume)
                j["volume"]["ways"].push_back({{"name", v.name}, {"replicas", v.known && v.replicas > 0 ? Json(v.replicas) : Json(nullptr)}, {"usd_per_month", v.known ? detail::quantity(v.cost) : Json(nullptr)}});
        }
        Json s = Json::array();
        for (Sensitivity const& x : sensitivity)
            s.push_back({{"input", std::string{x.name}}, {"value", detail::number(x.value)}, {"answer_at_minus_10_pct", detail::number(x.low)},
                         {"answer_at_plus_10_pct", detail::number(x.high)}, {"elasticity", detail::number(x.elasticity)}});
        j["sensitivity"] = s;
        if (paid.own)
            j["own"] = {{"capital", detail::quantity(paid.own->capital)}, {"power", detail::quantity(paid.own->power)}, {"place", detail::quantity(paid.own->place)},
                        {"maintenance", detail::quantity(paid.own->maintenance)}, {"other", detail::quantity(paid.own->other)}, {"total", detail::quantity(paid.own->total)},
                        {"straight_line", detail::quantity(paid.own->straight_line)}};
        if (paid.own && paid.on_demand) j["buy_over_rent_duty"] = detail::number(buy_over_rent_duty(paid.own->total, *paid.on_demand));
        Json w = Json::array();
        for (WayToPay const& x : ways)
            w.push_back({{"kind", x.kind}, {"usd_per_hour", detail::quantity(x.price.per_hour)}, {"usd_per_month", detail::quantity(per_month(x.price.per_hour))},
                         {"committed_months", x.years > 0 ? Json(x.years * 12) : Json(nullptr)}, {"source", x.price.source}, {"date", detail::text_or_null(x.price.date)},
                         {"confidence", std::string{to_string(x.price.confidence)}}, {"url", detail::text_or_null(x.price.url)}});
        j["ways_to_pay"] = w;
        j["notes"] = notes;
        j["licence"] = Json::array();
        if (model != nullptr)
            for (LicenceFact const& f : model->licence) j["licence"].push_back({{"text", f.text}, {"source", f.source}});
        text = j.dump(2) + "\n";
    } else if (a.format == OutputFormat::svg) {
        double const capacity = q.capacity ? million_tokens_per_month(q.capacity->output.value) / q.peak_to_mean : 0;
        std::vector<Supply> lines{self};
        std::vector<Crossing> marks;
        double first = 0;
        std::string against, foot;
        if (!answers.empty()) {
            BreakEven const& b = answers.front();
            against = b.against.model + (b.against.provider.empty() ? " API" : " API of " + b.against.provider);
            lines.push_back({"API", {}, std::nullopt, 0, 1, b.api_per_million_output});
            marks = b.crossings;
            first = b.million_output;
            foot = fmt::format("Against {}: {}. ", detail::api_text(b.against), b.reason);
            // Without a known capacity the volume is marked all the same, as what it would take.
            if (marks.empty() && !q.capacity) marks.push_back({b.million_output, b.million_input, 1, true});
        } else if (!rival) {
            return fail(ErrorCode::bad_usage, "nothing to draw against", "--format svg", "give --api NAME, --api-input and --api-output, or --against MODEL@GPU");
        } else {
            against = rival->name;
            // The title has the whole names; the legend what tells them apart.
            bool const same_model = owned && owned->plan.model->display_name == rival->model;
            std::string const here = owned ? detail::typed_gpus(owned->plan.gpus) : std::string{};
            bool const same_gpus = owned && here == rival->gpus;
            lines[0].name = same_model && !same_gpus ? here : same_gpus && !same_model ? owned->plan.model->display_name : deployment;
            lines.push_back(supply_of(same_model && !same_gpus ? rival->gpus : same_gpus && !same_model ? rival->model : rival->name, rival->request));
            marks = duel->crossings.list;
            if (!marks.empty()) first = marks.front().million_output;
            foot = duel->reason + ". ";
        }
        if (marks.size() > 3) marks.resize(3);
        double const most = std::max({first * 1.5, capacity * 2.1, marks.empty() ? 0.0 : marks.back().million_output * 1.15, 1.0});
        std::string const source = price_line(paid, owned ? detail::gpus_text(owned->plan.gpus) : "the deployment");
        text = svg_chart(monthly_cost_chart(deployment + " against " + against, lines, marks, most, q.input_per_output,
                                            foot + (source.empty() ? "Price given: " : source + ": ") + usd_text(paid.month.value()) + " a month."));
    } else if (a.format == OutputFormat::csv) {
        text = "against,usd_per_month,million_output_tokens_per_month,million_input_tokens_per_month,output_tokens_per_second,input_tokens_per_second,utilization_needed,reachable,crossings,reason\n";
        for (BreakEven const& b : answers)
            append_csv_record(text, std::vector<std::string>{b.against.model, fmt::format("{:.9g}", b.self_hosted.value()), fmt::format("{:.9g}", b.million_output),
                                                             fmt::format("{:.9g}", b.million_input), fmt::format("{:.9g}", b.output_rate.value()),
                                                             fmt::format("{:.9g}", b.input_rate.value()), b.utilization_needed ? fmt::format("{:.6g}", *b.utilization_needed) : "",
                                                             std::string{to_string(b.reachable)}, std::to_string(b.crossings.size()), b.reason});
        if (duel) {
            bool const some = !duel->crossings.list.empty();
            double const x = some ? duel->crossings.list.front().million_output : 0;
            append_csv_record(text, std::vector<std::string>{rival->name, fmt::format("{:.9g}", q.deployment.value()), some ? fmt::format("{:.9g}", x) : "",
                                                             some ? fmt::format("{:.9g}", x * q.input_per_output) : "", some ? fmt::format("{:.9g}", rate_of_month(x).value()) : "",
                                                             some ? fmt::format("{:.9g}", rate_of_month(x * q.input_per_output).value()) : "", "",
                                                             std::string{to_string(duel->reachable)}, std::to_string(duel->crossings.list.size()), duel->reason});
        }
    } else {
        bool const md = a.format == OutputFormat::md;
        auto const heading = [&](std::string_view s) { text += fmt::format("\n{}{}\n{}", md ? "## " : "", s, md ? "\n" : ""); };
        text = fmt::format("{}{}: {} a month ({}); {:g} input {} for each output token{}\n\n", md ? "# " : "", deployment, usd_text(q.deployment.value()), paid.how,
                           q.input_per_output, q.input_per_output == 1 ? "token" : "tokens",
                           q.cache_hit > 0 ? fmt::format(", {} of the input cached", percent_text(q.cache_hit)) : "");
        std::string const source = price_line(paid, owned ? detail::gpus_text(owned->plan.gpus) : "the deployment");
        if (!source.empty()) text += noted(source, md);
        if (q.capacity)
            text += noted(fmt::format("It does {} output tok/s{} ({})", grouped(q.capacity->output.value.value(), 0),
                                      q.capacity->output.low < q.capacity->output.high
                                          ? fmt::format(" [{} to {}]", grouped(q.capacity->output.low.value(), 0), grouped(q.capacity->output.high.value(), 0))
                                          : "",
                                      q.capacity->at), md);
        else
            text += noted(q.cannot_serve ? "It serves nothing: " + q.no_capacity_reason
                                         : "What it does at this workload is not known" + (q.no_capacity_reason.empty() ? std::string{"; name --model and --gpu, or --tok-s"} : ": " + q.no_capacity_reason), md);
        text += "\n";
        if (!answers.empty()) {
            TextTable t;
            t.column("Against", TextTable::Align::left).column("M output/month").column("M input/month").column("output tok/s").column("input tok/s");
            t.column("load").column("reachable", TextTable::Align::left);
            for (BreakEven const& b : answers) {
                bool const never = b.reachable == Reachable::no;
                t.row({detail::api_text(b.against), never ? "never" : grouped(b.million_output, 1), never ? "never" : grouped(b.million_input, 1),
                       grouped(b.output_rate.value(), 0), grouped(b.input_rate.value(), 0), b.utilization_needed ? percent_text(*b.utilization_needed) : "not known",
                       std::string{to_string(b.reachable)}});
            }
            text += md ? t.markdown() : t.text();
            text += "\n";
            std::size_t told = 0;
            for (BreakEven const& b : answers) {
                if (told++ == 3) {
                    text += noted(fmt::format("{} more: --format csv has the reason of each; --api \"{}/{}\" tells one alone", answers.size() - 3,
                                              answers[3].against.provider, answers[3].against.model), md);
                    break;
                }
                text += noted(b.against.model + (b.against.provider.empty() ? "" : " of " + b.against.provider) + ": " + b.reason, md);
                for (std::string const& n : b.notes)
                    if (!n.starts_with("no price of cached input")) text += noted(n, md); // the table says it, and what it does to this traffic
                if (b.crossings.size() > 1) text += noted(crossings_text(b.crossings, b.more_crossings, "self-hosting", "the API"), md);
            }
        }
        if (duel) {
            if (!answers.empty()) heading("Against another deployment");
            text += noted(fmt::format("{} against {}: {}", deployment, rival->name, duel->reason), md);
            if (!duel->crossings.list.empty()) {
                text += noted(crossings_text(duel->crossings.list, duel->crossings.more, deployment, rival->name), md);
                TextTable t;
                t.column("M output/month").column("M input/month").column("replicas").column("of the other").column("cheaper from there", TextTable::Align::left);
                Supply const other = supply_of({}, rival->request);
                for (std::size_t i = 0; i < duel->crossings.list.size() && i < 8; ++i) {
                    Crossing const& c = duel->crossings.list[i];
                    t.row({grouped(c.million_output, 1), grouped(c.million_input, 1), grouped(c.replicas), grouped(replicas_for(other, c.million_output * (1 + 1e-6))),
                           c.cheaper_above ? deployment : rival->name});
                }
                text += "\n" + (md ? t.markdown() : t.text("  ")) + "\n";
            }
            if (rival->request.capacity)
                text += noted(fmt::format("{} does {} output tok/s ({})", rival->name, grouped(rival->request.capacity->output.value.value(), 0), rival->request.capacity->at), md);
            for (std::string const& n : rival->notes) text += noted(n, md);
        }
        if (a.volume) {
            heading(fmt::format("At {} output and {} input tokens a month", large_text(*a.volume * 1e6), large_text(*a.volume * q.input_per_output * 1e6)));
            TextTable t;
            t.column("way", TextTable::Align::left).column("replicas").column("USD a month").column("$/M output");
            for (AtVolume const& v : at_volume)
                t.row({v.name, v.known && v.replicas > 0 ? grouped(v.replicas) : v.known ? "" : "not known", v.known ? grouped(v.cost.value(), 2) : "not known",
                       v.known ? grouped(v.cost.value() / *a.volume, 2) : "not known"});
            text += md ? t.markdown() : t.text("  ");
        }
        if (paid.own) {
            heading("Owning");
            text += noted(fmt::format("a month: capital {}, power {}, place {}, maintenance {}, other {} (straight line without interest and residual: {})",
                                      usd_text(paid.own->capital.value()), usd_text(paid.own->power.value()), usd_text(paid.own->place.value()),
                                      usd_text(paid.own->maintenance.value()), usd_text(paid.own->other.value()), usd_text(paid.own->straight_line.value())), md);
            if (owned)
                text += noted(fmt::format("{} a GPU-hour around the clock, {} at half the hours", usd_text(own_per_gpu_hour(*paid.own, owned->plan.gpus.count).value()),
                                          usd_text(own_per_gpu_hour(*paid.own, owned->plan.gpus.count, 0.5).value())), md);
            if (paid.on_demand) {
                double const duty = buy_over_rent_duty(paid.own->total, *paid.on_demand);
                text += noted(duty <= 1 ? fmt::format("Buying beats renting at {} an hour ({}) above {} of the hours of a month.", usd_text(paid.on_demand->value()),
                                                      paid.on_demand_source, percent_text(duty))
                                        : fmt::format("Buying never beats renting at {} an hour ({}).", usd_text(paid.on_demand->value()), paid.on_demand_source), md);
                TextTable t;
                t.column("hours a month").column("share").column("rent, USD a month").column("own, USD a month").column("cheaper", TextTable::Align::left);
                for (double const d : duties) {
                    double const rent = paid.on_demand->value() * kHoursPerMonth * d;
                    t.row({grouped(kHoursPerMonth * d, 0), percent_text(d), grouped(rent, 0), grouped(paid.own->total.value(), 0), rent < paid.own->total.value() ? "rent" : "own"});
                }
                text += "\n" + (md ? t.markdown() : t.text("  "));
            }
        }
        if (!ways.empty()) {
            heading("Other ways to pay for these GPUs (rows of the catalogue)");
            TextTable t;
            t.column("kind", TextTable::Align::left).column("USD an hour").column("USD a month").column("bound for").column("beats on-demand above").column("source", TextTable::Align::left)
                .column("date", TextTable::Align::left).column("confidence", TextTable::Align::left);
            for (WayToPay const& w : ways) {
                double const duty = paid.on_demand ? w.price.per_hour / *paid.on_demand : 0;
                t.row({w.kind, grouped(w.price.per_hour.value(), 2), grouped(per_month(w.price.per_hour).value(), 0),
                       w.years > 0 ? fmt::format("{} months", w.years * 12) : w.kind.starts_with("reserved") || w.kind.starts_with("committed") || w.kind == "monthly-contract" ? "not stated" : "",
                       w.years > 0 && paid.on_demand ? (duty <= 1 ? percent_text(duty) + " of hours" : std::string{"never"}) : "", w.price.source, w.price.date,
                       std::string{to_string(w.price.confidence)}});
            }
            text += md ? t.markdown() : t.text("  ");
        }
        if (!sensitivity.empty()) {
            heading("What moves it most (change of the answer for 1 % more)");
            TextTable s;
            s.column("input", TextTable::Align::left).column("as planned").column("% change");
            for (Sensitivity const& x : sensitivity) s.row({std::string{x.name}, sig3(x.value), fmt::format("{:+.2f}", x.elasticity)});
            text += md ? s.markdown() : s.text("  ");
        }
        if (model != nullptr) {
            auto const lines = licence_lines(*model);
            notes.insert(notes.end(), lines.begin(), lines.end());
        }
        if (!notes.empty()) heading("Notes");
        for (std::string const& n : notes) text += noted(n, md);
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    bool const api_no = !answers.empty() && std::all_of(answers.begin(), answers.end(), [](BreakEven const& b) { return b.reachable == Reachable::no; });
    bool const duel_no = q.cannot_serve || (rival && rival->request.cannot_serve);
    return (answers.empty() ? duel_no : api_no) ? kNo : kAnswered;
}

} // namespace planner
