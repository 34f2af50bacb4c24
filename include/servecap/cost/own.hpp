// servecap: owning the machines
// SPDX-License-Identifier: Apache-2.0
//
// A month of ownership = annuity of the price less the present value of what is left at the end, plus power (or a
// place paid by the provisioned kW), maintenance, people and spares:
//   P (1 - R / (1 + i)^n) * i / (1 - (1 + i)^-n) + kW * PUE * tariff * 730 (or kW_provisioned * place) + ...
// with P the price with its network, R the residual share, i the monthly interest, n the months. Price and tariff are
// in one currency at one dated rate. Orders of magnitude of 2026: HGX B300 550-660 k$, 14-16 kW; a place 120-250 $ a
// kW and month; residual 25-35 % after 36 months; add 20-35 % for fabric, storage and people.

#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include <servecap/core/result.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

struct OwnTerms {
    Usd purchase{};           ///< of the machines
    double network_share = 0; ///< switches and cables, as a share of the purchase, on top of it
    double months = 36;
    double annual_interest = 0; ///< 0.10 = 10 % a year, compounded monthly (a twelfth each month)
    double residual_share = 0;  ///< of the purchase with network, at the end
    double load_kw = 0;         ///< average draw at the machine
    double pue = 1.0;           ///< power usage effectiveness of the place
    double usd_per_kwh = 0;     ///< with load_kw and pue; 0 when the place is paid by the kW
    double provisioned_kw = 0;  ///< with place_usd_per_kw_month
    double place_usd_per_kw_month = 0;
    double maintenance_share = 0; ///< of the purchase, a year
    double posts = 0;             ///< people, full-time
    double usd_per_post_year = 0;
    UsdPerMonth other{}; ///< spares, software, insurance
};

struct OwnCost {
    UsdPerMonth capital{}, power{}, place{}, maintenance{}, people{}, other{}, total{};
    UsdPerMonth straight_line{}; ///< capital without interest and residual, for comparison
};

/// What owning costs a month. Months, PUE and shares in range expected (see own_mistake).
inline OwnCost own_cost(OwnTerms const& t) {
    OwnCost c;
    double const p = t.purchase.value() * (1 + t.network_share);
    double const i = t.annual_interest / 12.0;
    if (i > 0) {
        double const discount = std::pow(1 + i, -t.months);
        c.capital = UsdPerMonth{p * (1 - t.residual_share * discount) * i / (1 - discount)};
    } else {
        c.capital = UsdPerMonth{p * (1 - t.residual_share) / t.months};
    }
    c.straight_line = UsdPerMonth{p / t.months};
    c.power = UsdPerMonth{t.load_kw * t.pue * t.usd_per_kwh * kHoursPerMonth};
    c.place = UsdPerMonth{t.provisioned_kw * t.place_usd_per_kw_month};
    c.maintenance = UsdPerMonth{t.purchase.value() * t.maintenance_share / 12.0};
    c.people = UsdPerMonth{t.posts * t.usd_per_post_year / 12.0};
    c.other = t.other;
    c.total = c.capital + c.power + c.place + c.maintenance + c.people + c.other;
    return c;
}

/// The first thing in the terms that cannot be.
inline std::optional<Error> own_mistake(OwnTerms const& t) {
    auto const bad = [](char const* what, char const* hint) { return Error{ErrorCode::bad_value, what, {}, hint}; };
    if (!(t.purchase.value() > 0)) return bad("the purchase price is not positive", "a price in US dollars");
    if (!(t.months >= 1)) return bad("fewer than one month", "the months until the machines are written off");
    if (!(t.annual_interest >= 0 && t.annual_interest < 1)) return bad("interest out of range", "0 to 1 a year; 0.1 is 10 %");
    if (!(t.residual_share >= 0 && t.residual_share <= 1)) return bad("residual share out of range", "0 to 1");
    if (!(t.pue >= 1)) return bad("PUE below 1", "1.0 or more; 1.54 is the world average of 2025 (Uptime)");
    if (t.load_kw < 0 || t.usd_per_kwh < 0 || t.provisioned_kw < 0 || t.place_usd_per_kw_month < 0 || t.maintenance_share < 0 ||
        t.posts < 0 || t.usd_per_post_year < 0 || t.network_share < 0 || t.other.value() < 0)
        return bad("a negative cost", "0 or more");
    return std::nullopt;
}

/// $ a GPU-hour of owning, for a share `utilization` of the hours used.
inline UsdPerHour own_per_gpu_hour(OwnCost const& c, std::int32_t gpus, double utilization = 1.0) {
    return UsdPerHour{c.total.value() / (kHoursPerMonth * gpus * utilization)};
}

/// Share of the hours of a month above which owning is cheaper than renting by the hour; above 1 it never is.
inline double buy_over_rent_duty(UsdPerMonth own, UsdPerHour rent) { return own / per_month(rent); }

} // namespace servecap
