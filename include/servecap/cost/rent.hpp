// servecap: renting: around the clock, some hours a day, spot, under commitment
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <servecap/units/quantity.hpp>

namespace servecap {

/// Renting for some hours and giving back in between.
struct DutyRental {
    double hours_per_day = 24;
    double days_per_month = 365.0 / 12.0;
    double starts_per_day = 1; ///< each pays one set-up; 0 when the node is kept
    Seconds setup{};           ///< of one start
};

struct DutyCost {
    UsdPerMonth monthly{};
    double paid_hours = 0;        ///< a month
    double useful_hours = 0;      ///< a month, set-up taken off
    double setup_share = 0;       ///< of the paid hours
    UsdPerHour per_useful_hour{}; ///< infinite where the set-up eats all of the time
};

/// Cost of duty rental. Formula: rate * (hours + starts * setup hours) where the set-up comes on top of the hours.
inline DutyCost duty_cost(UsdPerHour rate, DutyRental const& d) {
    DutyCost c;
    c.useful_hours = d.hours_per_day * d.days_per_month;
    double const setup = d.starts_per_day * d.days_per_month * d.setup.value() / 3600.0;
    c.paid_hours = c.useful_hours + setup;
    c.setup_share = c.paid_hours > 0 ? setup / c.paid_hours : 0.0;
    c.monthly = UsdPerMonth{rate.value() * c.paid_hours};
    c.per_useful_hour = UsdPerHour{c.monthly.value() / c.useful_hours};
    return c;
}

/// Share of a paid window that a set-up eats: 27 minutes of a 4-hour day is 11 %.
inline double setup_share_of_window(Seconds setup, double hours) { return setup.value() / 3600.0 / hours; }

/// A spot node that is taken away now and then.
struct SpotTerms {
    UsdPerHour rate{};
    double interruptions_per_hour = 0; ///< of running time
    Seconds restart{};                 ///< download and start of the replacement, paid
    Seconds wait{};                    ///< until a replacement is found, not paid
    Seconds lost_work{};               ///< work done over again after an interruption, paid
};

struct SpotCost {
    UsdPerHour per_useful_hour{};
    double availability = 1; ///< useful time over all time
};

/// What an hour of useful serving costs on spot. Each useful hour brings `interruptions_per_hour` restarts.
/// Formula: rate * (1 + f * (restart + lost)); availability 1 / (1 + f * (restart + lost + wait)), f in 1/h, times in h.
inline SpotCost spot_cost(SpotTerms const& s) {
    double const paid = 1 + s.interruptions_per_hour * (s.restart + s.lost_work).value() / 3600.0;
    double const all = paid + s.interruptions_per_hour * s.wait.value() / 3600.0;
    return {s.rate * paid, 1.0 / all};
}

/// Interruptions an hour at which spot costs as much as on-demand; nothing when spot is never dearer (no restart cost).
inline std::optional<double> spot_break_even_interruptions(SpotTerms const& s, UsdPerHour on_demand) {
    double const lost = (s.restart + s.lost_work).value() / 3600.0;
    if (lost <= 0) return std::nullopt;
    return std::max(0.0, (on_demand / s.rate - 1) / lost);
}

/// A commitment: a lower rate that is paid around the clock for a term.
struct Commitment {
    UsdPerHour rate{}; ///< of the deployment, upfront payment not counted
    double months = 12;
    Usd upfront{};
    std::int32_t least_gpus = 0; ///< smallest order (256 at some providers); 0 = none stated
};

struct CommitmentCost {
    UsdPerMonth monthly{};      ///< with the upfront payment spread over the term
    Usd total{};                ///< over the term
    double duty_break_even = 0; ///< share of the hours above which it beats on-demand; over 1 = never
    bool order_too_small = false;
};

/// Cost of a commitment for `gpus` GPUs against the on-demand rate. Formula: duty = committed month / (on_demand * 730 h).
inline CommitmentCost commitment_cost(Commitment const& c, UsdPerHour on_demand, std::int32_t gpus) {
    CommitmentCost r;
    r.total = Usd{c.rate.value() * kHoursPerMonth * c.months} + c.upfront;
    r.monthly = UsdPerMonth{r.total.value() / c.months};
    r.duty_break_even = r.monthly / per_month(on_demand);
    r.order_too_small = gpus < c.least_gpus;
    return r;
}

} // namespace servecap
