// servecap: the forward functions of a sweep turned round
// SPDX-License-Identifier: Apache-2.0
//
// Each answer is found by asking the forward function, so it inverts it exactly: the answer meets the limits
// and one more token or request does not. Lengths: the verdict falls once as the length grows, so halving
// finds the place. Users: measured rows make speed uneven, so the load is tried from the top down in steps
// of a quarter and at the loads that were measured, and the place is halved upwards from the best of them.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <servecap/perf/types.hpp>
#include <servecap/plan/sweep.hpp>

namespace servecap {

/// Limits that a plan must keep.
struct LatencyLimits {
    std::optional<Seconds> ttft{}, tpot{};

    [[nodiscard]] bool any() const noexcept { return ttft || tpot; }
    [[nodiscard]] bool kept_by(Seconds first, Seconds each) const noexcept {
        return (!ttft || first <= *ttft) && (!tpot || each <= *tpot);
    }
};

/// The largest max_model_len with which the replica starts at `at`; 0 when none does.
inline Tokens longest_context(SweepReplica const& r, SweepPoint at) noexcept {
    auto const starts = [&](std::int64_t n) {
        at.max_model_len = Tokens{n};
        return r.verdict(at).starts();
    };
    std::int64_t low = 1, high = r.max_context().value();
    if (high < 1 || !starts(1)) return Tokens{0};
    if (starts(high)) return Tokens{high};
    while (high - low > 1) { // starts at low, not at high
        std::int64_t const mid = low + (high - low) / 2;
        (starts(mid) ? low : high) = mid;
    }
    return Tokens{low};
}

/// The most users of the whole deployment that run at once within the limits; 0 when not even one does.
inline Requests most_users(SweepReplica const& r, SweepPoint at, LatencyLimits const& limits) noexcept {
    SweepVerdict const v = r.verdict(at);
    if (!v.starts()) return Requests{0};
    auto const top = static_cast<std::int64_t>(std::clamp(std::floor(v.slots * std::max(1, at.replicas)), 1.0, 1e9));
    auto const good = [&](std::int64_t n) {
        at.users = Requests{n};
        SweepPlan const p = r.plan(at);
        return !p.queued && limits.kept_by(p.ttft, p.tpot);
    };
    if (good(top)) return Requests{top};
    std::int64_t low = 0;
    for (std::int64_t n = top - 1; n >= 1 && low == 0; n = n > 1 ? std::max<std::int64_t>(1, n - std::max<std::int64_t>(1, n / 4)) : 0)
        if (good(n)) low = n;
    for (SpeedRow const* row : r.speed().own_rows()) {
        auto const n = static_cast<std::int64_t>(std::llround(row->concurrency * std::max(1, at.replicas)));
        if (n > low && n < top && good(n)) low = n;
    }
    if (low == 0) return Requests{0};
    // `top` does not keep the limits; from `low`, which does, up by doubling steps to one that does not.
    std::int64_t high = top;
    for (std::int64_t step = 1; low + step < top; step *= 2) {
        if (!good(low + step)) {
            high = low + step;
            break;
        }
        low += step;
    }
    while (high - low > 1) {
        std::int64_t const mid = low + (high - low) / 2;
        (good(mid) ? low : high) = mid;
    }
    return Requests{low};
}

/// The fewest replicas that answer `rate` requests a second, each within the limits; nothing when none can.
/// Replicas share the load evenly, so each must answer rate / n.
inline std::optional<std::int32_t> fewest_replicas(SweepReplica const& r, SweepPoint at, LatencyLimits const& limits, RequestsPerSecond rate) noexcept {
    at.replicas = 1;
    at.users = most_users(r, at, limits);
    if (at.users.value() < 1) return std::nullopt;
    double const each = r.plan(at).requests.value();
    double const n = std::ceil(rate.value() / each);
    if (!(each > 0) || !(n < 1e9)) return std::nullopt;
    return std::max(1, static_cast<std::int32_t>(n));
}

} // namespace servecap
