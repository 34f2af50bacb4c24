// planner: how a deployment is paid: by the hour, for some hours, spot, under commitment, or owned
// SPDX-License-Identifier: Apache-2.0
//
// Every way ends in the same three figures: what is owed a month, which share of the month's hours serves, and what a
// served hour costs. Included by commands_money.cpp alone.

#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <servecap/cost/own.hpp>
#include <servecap/cost/price.hpp>
#include <servecap/cost/rent.hpp>
#include <servecap/cost/setup.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/plan_json.hpp>
#include <servecap/report/page.hpp>
#include <servecap/report/text.hpp>

#include "args.hpp"
#include "context.hpp"
#include "output.hpp"
#include "plan_context.hpp"

namespace planner {

using namespace servecap;
using Json = nlohmann::ordered_json;

/// What is owed and what serves.
struct Payment {
    bool known = false;
    std::string missing;              ///< why no price is known
    UsdPerMonth month{};              ///< owed
    UsdPerHour per_useful_hour{};     ///< month over the hours that serve
    double share = 1;                 ///< of the month's 730 hours that serve
    std::optional<UsdPerHour> rate;   ///< of the hour, where it is rented
    std::string how;                  ///< "$56.79 an hour x 730 h"
    std::vector<std::string> notes;
    std::vector<std::string> warnings; ///< of the price: stale, undated, doubtful
    std::optional<OwnCost> own;
    std::optional<UsdPerHour> on_demand; ///< what spot, commitment and owning are held against
    std::string on_demand_source;
    std::optional<PriceChoice> chosen;   ///< the rows behind the price, where it was not given
};

namespace payment {

inline tl::unexpected<Error> bad(ErrorCode code, std::string what, std::string where, std::string hint) {
    return fail(code, std::move(what), std::move(where), std::move(hint));
}

/// GPUs of the deployment; 0 where none were named.
inline Result<GpuSet> named_gpus(Args const& a, Context const& context) {
    if (a.gpu.empty()) return GpuSet{};
    return context.gpu_set(a.gpu);
}

inline PriceQuery query(Args const& a, Context const& context, GpuSet const& set) {
    PriceQuery q;
    q.gpu = set.gpu.id;
    q.gpus = set.count;
    q.as_of = context.as_of();
    q.force = a.force;
    return q;
}

} // namespace payment

/// The price of an hour from what was typed, or from the rows of the GPUs named.
inline Result<Payment> rented(Args const& a, Context const& context, GpuSet const& set) {
    Payment p;
    if (a.price_gpu_hour && a.gpu.empty())
        return payment::bad(ErrorCode::bad_usage, "--price-gpu-hour needs --gpu to know how many GPUs", "--price-gpu-hour",
                            "for example --gpu b300x8, or give --price");
    if (a.usd_per_month) {
        if (a.price || a.price_gpu_hour)
            return payment::bad(ErrorCode::bad_usage, "--usd-per-month and a price an hour say the same thing twice", "--usd-per-month",
                                "give one of them");
        if (*a.usd_per_month <= 0) return payment::bad(ErrorCode::bad_value, "0 is no cost of a month", "--usd-per-month", "expected more than 0");
        p.rate = UsdPerHour{*a.usd_per_month / kHoursPerMonth};
        if (set.count > 0)
            if (auto mistake = price_mistake(*p.rate / set.count, "--usd-per-month", a.force)) return tl::unexpected<Error>{std::move(*mistake)};
        p.how = fmt::format("{} an hour x 730 h", usd_text(p.rate->value()));
    } else if (a.price || a.price_gpu_hour) {
        std::string const flag = a.price ? "--price" : "--price-gpu-hour";
        double const rate = a.price ? *a.price : *a.price_gpu_hour * set.count;
        // Of how many GPUs the price is may not be known; below the least for one it is below it for any number.
        bool const count_known = set.count > 0;
        double const each = count_known ? rate / set.count : std::min(rate, kMostUsdPerGpuHour);
        if (auto mistake = price_mistake(UsdPerHour{each}, flag, a.force)) return tl::unexpected<Error>{std::move(*mistake)};
        p.rate = UsdPerHour{rate};
        p.how = fmt::format("{} an hour x 730 h", usd_text(rate));
    } else if (set.count > 0) {
        auto rows = context.gpu_prices({set.gpu.id});
        if (!rows) return tl::unexpected<Error>{rows.error()};
        PriceQuery q = payment::query(a, context, set);
        q.provider = a.price_source;
        if (!a.price_kind.empty()) q.kind = a.price_kind;
        if (a.spot) q.kind = "spot";
        auto found = choose_price(q, *rows);
        if (!found) return tl::unexpected<Error>{found.error()};
        p.warnings = found->warnings;
        if (!found->price) {
            p.missing = found->reason;
            return p;
        }
        p.chosen = std::move(found->price);
        p.rate = p.chosen->per_hour;
        p.how = fmt::format("{} an hour x 730 h", usd_text(p.rate->value()));
    } else {
        return payment::bad(ErrorCode::bad_usage, "no price", "--price",
                            "give --price (USD an hour, whole deployment), --price-gpu-hour or --usd-per-month; or name --model and --gpu");
    }
    p.month = per_month(*p.rate);
    p.per_useful_hour = *p.rate;
    p.known = true;
    return p;
}

/// The set-up of the deployment: as typed, from measured rows, or estimated from the size of the files.
inline Result<SetupTime> setup_of(Args const& a, Context const& context, Plan const* plan) {
    SetupTime t;
    if (a.setup_minutes) {
        t.start = t.total = Interval<Seconds>::point(Seconds{*a.setup_minutes * 60});
        t.known = true;
        t.source = "given";
        return t;
    }
    if (plan == nullptr) {
        t.notes.emplace_back("no model and GPUs named: the set-up is not known; --setup-minutes gives it");
        return t;
    }
    auto rows = context.setups({});
    if (!rows) return tl::unexpected<Error>{rows.error()};
    auto const names = context.spellings(*plan->model);
    SetupRequest q{.model_names = names,
                   .gpu = plan->gpus.gpu.id,
                   .gpus = plan->gpus.count,
                   .gpus_per_replica = plan->layout.gpus_per_replica(),
                   .engine = std::string{to_string(plan->planned.engine)},
                   .checkpoint = plan->model->checkpoint_bytes,
                   .download_rate = {},
                   .read_rate = {},
                   .compile = {},
                   .loader = a.loader,
                   .downloaded = a.downloaded,
                   .failed_starts = static_cast<std::int32_t>(a.failed_starts)};
    if (a.download_gbs) q.download_rate = BytesPerSecond{*a.download_gbs * 1e9};
    if (a.read_gbs) q.read_rate = BytesPerSecond{*a.read_gbs * 1e9};
    if (a.compile_seconds) q.compile = Seconds{*a.compile_seconds};
    return setup_time(q, *rows);
}

/// The terms of ownership as typed; `kw_default`: what the machines draw by the catalogue.
inline Result<Payment> owned_payment(Args const& a, GpuSet const& set) {
    Payment p;
    OwnTerms t;
    t.purchase = Usd{*a.buy_price};
    t.months = a.own_months.value_or(36);
    t.annual_interest = a.interest.value_or(0);
    t.residual_share = a.residual.value_or(0);
    t.network_share = a.network_share.value_or(0);
    double kw = a.power_kw.value_or(0);
    std::string kw_source = "given";
    if (!a.power_kw && set.count > 0 && set.gpu.node_power) {
        kw = set.gpu.node_power->value() / 1000.0 * set.nodes;
        kw_source = "the catalogue";
    }
    if (a.tariff && a.colo_per_kw_month)
        return payment::bad(ErrorCode::bad_usage, "--tariff and --colo both pay for the power", "--colo", "give one of them");
    if ((a.tariff || a.colo_per_kw_month) && kw <= 0)
        return payment::bad(ErrorCode::bad_usage, "the power is not known", "--power-kw", "give --power-kw, or --gpu of a node whose power is known");
    if (a.colo_per_kw_month) {
        t.provisioned_kw = kw;
        t.place_usd_per_kw_month = *a.colo_per_kw_month;
        p.notes.push_back(fmt::format("place paid by {:g} kW ({})", kw, kw_source));
    } else if (a.tariff) {
        t.load_kw = kw;
        t.pue = a.pue.value_or(1.3);
        t.usd_per_kwh = *a.tariff;
        p.notes.push_back(fmt::format("{:g} kW ({}) x PUE {:g}", kw, kw_source, t.pue));
    } else {
        p.notes.emplace_back("neither --tariff nor --colo is given: power and place are left out");
    }
    t.maintenance_share = a.maintenance.value_or(0);
    t.other = UsdPerMonth{a.staff_per_month.value_or(0)};
    std::string left_out;
    for (auto const& [given, name] : {std::pair{a.interest.has_value(), "interest"}, std::pair{a.residual.has_value(), "residual value"},
                                      std::pair{a.maintenance.has_value(), "maintenance"}, std::pair{a.staff_per_month.has_value(), "staff"},
                                      std::pair{a.network_share.has_value(), "network"}})
        if (!given) left_out += std::string{left_out.empty() ? "" : ", "} + name;
    if (!left_out.empty()) p.notes.push_back("not counted, as not given: " + left_out);
    if (auto mistake = own_mistake(t)) return tl::unexpected<Error>{std::move(*mistake)};
    p.own = own_cost(t);
    p.month = p.own->total;
    p.per_useful_hour = UsdPerHour{p.month.value() / kHoursPerMonth};
    p.how = fmt::format("ownership over {:g} months", t.months);
    p.known = true;
    return p;
}

/// How the deployment of the command line is paid. `plan`: what is deployed, where it is known.
inline Result<Payment> payment_of(Args const& a, Context const& context, Plan const* plan) {
    auto set = payment::named_gpus(a, context);
    if (!set) return tl::unexpected<Error>{set.error()};
    bool const committed_asked = a.commit_months || a.upfront || a.min_gpus;
    std::string const kind = a.spot ? "spot" : a.price_kind;
    if (a.spot && !a.price_kind.empty() && a.price_kind != "spot")
        return payment::bad(ErrorCode::bad_usage, "--spot and --price-kind " + a.price_kind, "--spot", "give one of them");
    if (a.buy_price && (a.usd_per_month || committed_asked || a.spot || a.interruptions_per_day))
        return payment::bad(ErrorCode::bad_usage, "the node is bought and rented at once", "--buy",
                            "leave out --usd-per-month, --spot and commitments; --price is then what renting would cost");
    if (committed_asked && (a.spot || a.interruptions_per_day))
        return payment::bad(ErrorCode::bad_usage, "spot capacity has no commitment", "--commit-months", "give one of them");
    if (a.buy_price && *a.buy_price <= 0) return payment::bad(ErrorCode::bad_value, "0 is no purchase price", "--buy", "expected more than 0");
    if (a.hours_per_day && *a.hours_per_day <= 0)
        return payment::bad(ErrorCode::bad_value, "0 hours a day serve nothing", "--hours-per-day", "expected more than 0 and at most 24");

    auto made = a.buy_price ? owned_payment(a, *set) : rented(a, context, *set);
    if (!made || !made->known) return made;
    Payment p = std::move(*made);

    // What the other ways are held against: as given, the price typed beside --buy, or on-demand rows.
    if (a.on_demand) {
        p.on_demand = UsdPerHour{*a.on_demand};
        p.on_demand_source = "given";
    } else if (a.buy_price && (a.price || a.price_gpu_hour)) {
        auto rent = rented(a, context, *set);
        if (!rent) return tl::unexpected<Error>{rent.error()};
        p.on_demand = rent->rate;
        p.on_demand_source = "given";
    } else if (set->count > 0) {
        auto rows = context.gpu_prices({set->gpu.id});
        if (!rows) return tl::unexpected<Error>{rows.error()};
        auto found = choose_price(payment::query(a, context, *set), *rows);
        if (found && found->price) {
            p.on_demand = found->price->per_hour;
            p.on_demand_source = detail::price_text(*found->price);
        }
    }

    bool const by_hour = p.rate && !committed_asked;
    double const days = a.days_per_month.value_or(365.0 / 12.0);
    std::optional<int> years;
    if (p.chosen && !p.chosen->rows.empty() && !committed_asked)
        if (int const y = commitment_years(p.chosen->rows[p.chosen->rows.size() / 2].price_type); y > 0) years = y;
    SetupTime setup;
    bool const spot = kind == "spot" || a.interruptions_per_day.has_value();
    if (spot || a.hours_per_day) {
        auto t = setup_of(a, context, plan);
        if (!t) return tl::unexpected<Error>{t.error()};
        setup = std::move(*t);
    }
    double spot_share = 1;
    if (spot && by_hour) {
        SpotTerms s;
        s.rate = *p.rate;
        s.interruptions_per_hour = a.interruptions_per_day.value_or(0) / 24.0;
        s.restart = a.restart_minutes ? Seconds{*a.restart_minutes * 60} : setup.total.value;
        s.wait = Seconds{a.wait_minutes.value_or(0) * 60};
        s.lost_work = Seconds{a.lost_minutes.value_or(0) * 60};
        SpotCost const c = spot_cost(s);
        spot_share = c.availability;
        p.per_useful_hour = c.per_useful_hour;
        p.share = c.availability;
        p.month = UsdPerMonth{c.per_useful_hour.value() * kHoursPerMonth * c.availability};
        p.how = fmt::format("spot at {} an hour", usd_text(p.rate->value()));
        if (a.interruptions_per_day)
            p.notes.push_back(fmt::format("spot: {:g} interruptions a day of running, each with {} of restart{}{}: serves {} of the time at {} a served hour",
                                          *a.interruptions_per_day, duration_text(s.restart),
                                          s.wait.value() > 0 ? fmt::format(", {} of waiting unpaid", duration_text(s.wait)) : "",
                                          s.lost_work.value() > 0 ? fmt::format(", {} of work done again", duration_text(s.lost_work)) : "",
                                          percent_text(spot_share, 1), usd_text(c.per_useful_hour.value())));
        else
            p.notes.emplace_back("spot: how often the node is taken away is not known, so none is counted; --interruptions-per-day says it");
        if (!a.restart_minutes && !setup.known) p.notes.emplace_back("the restart is not known and counts as 0 min; --restart-minutes says it");
        if (p.on_demand)
            if (auto const most = spot_break_even_interruptions(s, *p.on_demand))
                p.notes.push_back(*most > 0 ? fmt::format("spot costs as much as on-demand ({}, {}) at {:.1f} interruptions a day",
                                                          usd_text(p.on_demand->value()), p.on_demand_source, *most * 24)
                                            : fmt::format("spot is no cheaper than on-demand ({}, {}) even without interruptions",
                                                          usd_text(p.on_demand->value()), p.on_demand_source));
    }
    if (committed_asked || years) {
        Commitment c;
        c.rate = *p.rate;
        c.months = committed_asked ? a.commit_months.value_or(12) : *years * 12.0;
        c.upfront = Usd{a.upfront.value_or(0)};
        c.least_gpus = static_cast<std::int32_t>(a.min_gpus.value_or(0));
        CommitmentCost const r = commitment_cost(c, p.on_demand.value_or(c.rate), set->count);
        p.month = r.monthly;
        p.per_useful_hour = UsdPerHour{p.month.value() / kHoursPerMonth};
        p.how = fmt::format("committed for {:g} months at {} an hour{}", c.months, usd_text(c.rate.value()),
                            c.upfront.value() > 0 ? " and " + usd_text(c.upfront.value()) + " upfront" : "");
        p.notes.push_back(fmt::format("the commitment is owed around the clock: {} over {:g} months, used or not", usd_text(r.total.value()), c.months));
        if (p.on_demand)
            p.notes.push_back(r.duty_break_even <= 1
                                  ? fmt::format("it beats on-demand at {} an hour ({}) above {} of the hours", usd_text(p.on_demand->value()),
                                                p.on_demand_source, percent_text(r.duty_break_even))
                                  : fmt::format("it never beats on-demand at {} an hour ({})", usd_text(p.on_demand->value()), p.on_demand_source));
        if (set->count > 0 && r.order_too_small)
            p.notes.push_back(fmt::format("the smallest order is {} GPUs, {} are planned: the rest must be paid or found a use for", c.least_gpus, set->count));
    } else if (p.chosen && is_price_kind(p.chosen->kind, "reserved")) {
        p.notes.emplace_back("the row does not say for how long it binds; --commit-months says it");
    }
    if (a.hours_per_day) {
        double const hours = *a.hours_per_day * days;
        p.share = std::min(1.0, hours / kHoursPerMonth) * spot_share;
        if (by_hour && !years) {
            DutyRental d;
            d.hours_per_day = *a.hours_per_day;
            d.days_per_month = days;
            d.starts_per_day = a.starts_per_day.value_or(1.0);
            d.setup = setup.known ? setup.total.value : Seconds{0};
            DutyCost const c = duty_cost(p.per_useful_hour, d);
            p.month = c.monthly;
            p.share = std::min(1.0, hours / kHoursPerMonth);
            p.per_useful_hour = c.per_useful_hour;
            p.how = fmt::format("{} an hour for {:g} h a day on {:.3g} days, {} of it setting up", usd_text(p.rate->value()), d.hours_per_day, days,
                                percent_text(c.setup_share));
            if (setup.known)
                p.notes.push_back(fmt::format("{:g} {} a day of {} each, paid on top of the hours: {:.0f} h paid for {:.0f} h served", d.starts_per_day,
                                              d.starts_per_day == 1 ? "start" : "starts", duration_text(d.setup), c.paid_hours, c.useful_hours));
            else
                p.notes.emplace_back("the set-up is not known and not counted; --setup-minutes gives it");
        } else {
            p.per_useful_hour = UsdPerHour{p.month.value() / (kHoursPerMonth * p.share)};
            p.notes.push_back(fmt::format("it serves {:.0f} of 730 hours a month and is owed for all of them", hours));
        }
    }
    return p;
}

inline Json payment_json(Payment const& p) {
    using detail::quantity;
    Json j;
    j["usd_per_month"] = quantity(p.month);
    j["usd_per_hour_listed"] = p.rate ? quantity(*p.rate) : Json(nullptr);
    j["usd_per_served_hour"] = quantity(p.per_useful_hour);
    j["share_of_hours_served"] = detail::number(p.share);
    j["how"] = p.how;
    j["on_demand_usd_per_hour"] = p.on_demand ? quantity(*p.on_demand) : Json(nullptr);
    j["notes"] = p.notes;
    return j;
}

/// A way to pay for the GPUs that the catalogue has rows of.
struct WayToPay {
    std::string kind;
    PriceChoice price;
    int years = 0; ///< of commitment
};

/// Every kind of offer of these GPUs, cheapest first.
inline Result<std::vector<WayToPay>> ways_to_pay(Args const& a, Context const& context, GpuSet const& set) {
    std::vector<WayToPay> ways;
    auto rows = context.gpu_prices({set.gpu.id});
    if (!rows) return tl::unexpected<Error>{rows.error()};
    std::vector<std::string> kinds;
    for (GpuPrice const& r : *rows)
        if (is_offer(r.price_type) && std::find(kinds.begin(), kinds.end(), r.price_type) == kinds.end()) kinds.push_back(r.price_type);
    for (std::string const& kind : kinds) {
        std::vector<GpuPrice> of_kind;
        for (GpuPrice const& r : *rows)
            if (r.price_type == kind) of_kind.push_back(r);
        PriceQuery q = payment::query(a, context, set);
        q.kind = kind;
        auto found = choose_price(q, of_kind);
        if (!found) return tl::unexpected<Error>{found.error()};
        if (found->price) ways.push_back({kind, std::move(*found->price), commitment_years(kind)});
    }
    std::stable_sort(ways.begin(), ways.end(), [](WayToPay const& x, WayToPay const& y) { return x.price.per_hour < y.price.per_hour; });
    return ways;
}

} // namespace planner
