// servecap: from which volume self-hosting beats an API, or another deployment
// SPDX-License-Identifier: Apache-2.0
//
// Over the volume x of a month (million output tokens, with r input tokens for each), an API costs a x with
//   a = r ((1 - h - w) p_in + h p_cached + w p_write) + p_out,
// a deployment costs (n + spare) C with n = ceil(x * peak / m) whole replicas, m what one replica makes in a month at
// this workload. So the lines can cross never, once or several times. The volume C / a alone is no break-even: whether
// the deployment can make it at that context and latency is part of the answer, and "cannot" differs from "not known".

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/core/basis.hpp>
#include <servecap/cost/api.hpp>
#include <servecap/cost/tokens.hpp>
#include <servecap/perf/types.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// One way of serving a volume: a fixed month for each replica, a price for each million output tokens, or both.
struct Supply {
    std::string name;
    UsdPerMonth per_replica{};                        ///< 0 for an API
    std::optional<double> million_output_per_replica; ///< what one makes in a month; empty = no limit
    std::int32_t spare = 0;                           ///< replicas kept for failure: N + spare
    double peak_to_mean = 1;                          ///< of the traffic: replicas are sized for the peak
    UsdPerMillionTokens per_million_output{};         ///< with the input that comes with it; 0 for a deployment
};

/// Whole replicas for `x` million output tokens a month, spare ones included; 0 where there are none to count.
inline std::int64_t replicas_for(Supply const& s, double x) {
    if (s.per_replica.value() == 0) return 0;
    std::int64_t working = 1;
    if (s.million_output_per_replica)
        working = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(std::ceil(x * s.peak_to_mean / *s.million_output_per_replica - 1e-9)));
    return working + s.spare;
}

/// What `x` million output tokens a month cost.
inline UsdPerMonth monthly_cost(Supply const& s, double x) {
    return UsdPerMonth{s.per_replica.value() * static_cast<double>(replicas_for(s, x)) + s.per_million_output.value() * x};
}

/// A volume at which the cheaper of two ways changes.
struct Crossing {
    double million_output = 0; ///< a month
    double million_input = 0;  ///< a month
    std::int64_t replicas = 0; ///< of the first way just above the volume, spare ones included
    bool cheaper_above = true; ///< the first way is the cheaper one from here up to the next crossing
};

struct Crossings {
    std::vector<Crossing> list;
    bool more = false;                   ///< more than are listed
    bool first_cheaper_at_start = false; ///< at the smallest volume
    bool first_cheaper_at_end = false;   ///< beyond the last crossing that was looked for
};

namespace detail {

/// End of the constant piece of `s` that begins just above `x`.
inline double piece_end(Supply const& s, double x) {
    if (s.per_replica.value() == 0 || !s.million_output_per_replica) return std::numeric_limits<double>::infinity();
    double const step = *s.million_output_per_replica / s.peak_to_mean;
    return (std::floor(x / step + 1e-9) + 1) * step;
}

} // namespace detail

/// Every volume at which `a` and `b` change places, by walking the pieces between whole replicas. At most `most`
/// crossings within `pieces` pieces are listed.
inline Crossings crossings(Supply const& a, Supply const& b, double input_per_output, std::size_t most = 64,
                           std::size_t pieces = 20'000) {
    Crossings out;
    auto const fixed = [](Supply const& s, double inside) {
        return s.per_replica.value() * static_cast<double>(replicas_for(s, inside));
    };
    double from = 0;
    std::optional<bool> before; // was `a` cheaper just below `from`?
    auto const note = [&](double x, bool cheaper_above) {
        if (out.list.size() >= most) {
            out.more = true;
            return;
        }
        out.list.push_back({x, x * input_per_output, replicas_for(a, x * (1 + 1e-6)), cheaper_above});
    };
    for (std::size_t k = 0; k < pieces; ++k) {
        double const to = std::min(detail::piece_end(a, from), detail::piece_end(b, from));
        double const inside = std::isinf(to) ? from * 2 + 1 : (from + to) / 2;
        double const level = fixed(a, inside) - fixed(b, inside);
        double const slope = a.per_million_output.value() - b.per_million_output.value();
        // a - b = level + slope x on (from, to)
        double const at_from = level + slope * from;
        bool const cheaper_at_from = at_from < 0 || (at_from == 0 && slope < 0);
        if (before && *before != cheaper_at_from) note(from, cheaper_at_from);
        if (!before) out.first_cheaper_at_start = cheaper_at_from;
        bool cheaper = cheaper_at_from;
        if (slope != 0) {
            double const x = -level / slope;
            if (x > from && x < to) {
                cheaper = slope < 0;
                if (cheaper != cheaper_at_from) note(x, cheaper);
            }
        }
        before = cheaper;
        if (std::isinf(to)) break;
        from = to;
        // A piece holds both ways at a multiple of their steps; with room to spare it stays decided: the unit costs
        // differ by more than the one step that a replica can lag behind.
        double const unit_a =
            a.million_output_per_replica ? a.per_replica.value() * a.peak_to_mean / *a.million_output_per_replica : 0;
        double const unit_b =
            b.million_output_per_replica ? b.per_replica.value() * b.peak_to_mean / *b.million_output_per_replica : 0;
        double const gap = (unit_a + a.per_million_output.value()) - (unit_b + b.per_million_output.value());
        double const lag = std::max(a.per_replica.value() * (1 + a.spare), b.per_replica.value() * (1 + b.spare));
        if (std::fabs(gap) * from > lag + a.per_replica.value() + b.per_replica.value()) {
            // Settled: what is cheaper by unit cost stays cheaper.
            if (*before == (gap < 0)) break;
        }
        if (out.more) break;
    }
    out.first_cheaper_at_end = before.value_or(false);
    return out;
}

enum class Reachable : std::uint8_t { yes, no, unknown };

constexpr std::string_view to_string(Reachable r) noexcept {
    constexpr std::array<std::string_view, 3> names{"yes", "no", "unknown"};
    return names[static_cast<std::size_t>(r)];
}

/// What a deployment makes at this workload.
struct Capacity {
    Interval<TokensPerSecond> output{}; ///< steady output tok/s of the whole deployment
    std::string at;                     ///< "1000 in / 1000 out, 64 users": where that holds
    std::optional<Seconds> ttft{}, tpot{}; ///< the latency there, where it is known
};

/// The fastest of the speeds that meets the limits, as the capacity; nothing when none does.
inline std::optional<Capacity> capacity_of(std::span<SpeedPoint const> speeds, std::optional<Seconds> slo_ttft = {},
                                           std::optional<Seconds> slo_tpot = {}) {
    SpeedPoint const* best = nullptr;
    for (SpeedPoint const& s : speeds) {
        if (slo_ttft && s.ttft.value > *slo_ttft) continue;
        if (slo_tpot && s.tpot.value > *slo_tpot) continue;
        if (s.output.value.value() > 0 && (best == nullptr || s.output.value > best->output.value)) best = &s;
    }
    if (best == nullptr) return std::nullopt;
    Capacity c{best->output,
               fmt::format("{} in / {} out, {} {}", best->isl.value(), best->osl.value(), best->concurrency.value(),
                           best->concurrency.value() == 1 ? "user" : "users"),
               best->ttft.value, best->tpot.value};
    if (slo_ttft) c.at += fmt::format(", TTFT {:.0f} of at most {:.0f} ms", in_ms(best->ttft.value), in_ms(*slo_ttft));
    if (slo_tpot) c.at += fmt::format(", TPOT {:.1f} of at most {:.4g} ms", in_ms(best->tpot.value), in_ms(*slo_tpot));
    return c;
}

/// What a deployment makes, or why that is not known, or that it can make nothing: three different answers.
struct CapacityFinding {
    std::optional<Capacity> capacity;
    bool cannot_serve = false; ///< known: it does not start, or meets the latency at no load
    std::string reason;        ///< why there is no capacity
};

/// The capacity out of a prediction. `starts`: the engine starts. A latency bound that every speed misses even at the
/// near end of its interval is a "cannot"; one that only the middle misses is "not known".
inline CapacityFinding find_capacity(std::span<SpeedPoint const> speeds, bool starts, std::optional<Seconds> slo_ttft = {},
                                     std::optional<Seconds> slo_tpot = {}) {
    CapacityFinding f;
    if (!starts) return {std::nullopt, true, "the engine does not start there"};
    f.capacity = capacity_of(speeds, slo_ttft, slo_tpot);
    if (f.capacity) return f;
    if (speeds.empty()) {
        f.reason = "no speed is predicted";
        return f;
    }
    f.cannot_serve = std::none_of(speeds.begin(), speeds.end(), [&](SpeedPoint const& s) {
        auto const near = [](Interval<Seconds> const& t) { return t.low.value() > 0 ? t.low : t.value; };
        return (!slo_ttft || near(s.ttft) <= *slo_ttft) && (!slo_tpot || near(s.tpot) <= *slo_tpot);
    });
    f.reason = f.cannot_serve ? "no number of users at once meets the latency bounds"
                              : "no number of users at once meets the latency bounds in the middle of its interval, though one may";
    return f;
}

struct BreakEvenRequest {
    UsdPerMonth deployment{};    ///< a month of one deployment (rent, or the month of ownership)
    double input_per_output = 1; ///< input tokens for each output token
    double cache_hit = 0, cache_write = 0;
    std::optional<Capacity> capacity; ///< of one deployment at this workload; empty = not known
    std::string no_capacity_reason;   ///< why it is not known
    bool cannot_serve = false;        ///< it is known that nothing can be served at this workload
    std::int32_t spare = 0;           ///< deployments kept for failure
    double peak_to_mean = 1;
};

/// The answer against one API.
struct BreakEven {
    ApiTariff against;
    UsdPerMonth self_hosted{};                    ///< one deployment, with its spare ones
    UsdPerMillionTokens api_per_million_output{}; ///< at the API, with the input that comes with it
    std::vector<Crossing> crossings;              ///< empty: never, or not known
    bool more_crossings = false;
    double million_output = 0, million_input = 0; ///< a month: the first crossing, or what it would take
    TokensPerSecond output_rate{}, input_rate{};  ///< the same around the clock
    Reachable reachable = Reachable::unknown;
    std::optional<Capacity> capacity;         ///< that the answer was held against
    std::optional<double> utilization_needed; ///< share of the capacity of the deployments then running, without spares
    std::string reason;
    std::vector<std::string> notes;
};

/// Break-even of a deployment against an API.
inline BreakEven break_even(BreakEvenRequest const& q, ApiTariff const& api) {
    BreakEven b;
    b.against = api;
    b.self_hosted = q.deployment * (1 + q.spare);
    b.api_per_million_output = api_cost_per_million_output(api, q.input_per_output, q.cache_hit, q.cache_write);
    double const a = b.api_per_million_output.value();
    b.notes = api.notes;
    b.capacity = q.capacity;
    if (!api.cached_input_known && q.cache_hit > 0)
        b.notes.push_back(fmt::format("{:.0f} % of the input is cached, but the tariff names no cached price: billed as input",
                                      100 * q.cache_hit));
    if (!(a > 0)) {
        b.reason = "the API charges nothing for this traffic";
        b.reachable = Reachable::no;
        return b;
    }
    b.million_output = b.self_hosted.value() / a;
    auto const finish = [&] {
        b.million_input = b.million_output * q.input_per_output;
        b.output_rate = rate_of_month(b.million_output);
        b.input_rate = rate_of_month(b.million_input);
    };
    if (!q.capacity) {
        finish();
        b.reachable = q.cannot_serve ? Reachable::no : Reachable::unknown;
        b.reason = fmt::format("it would take {:.0f} output and {:.0f} input tok/s around the clock; {}", b.output_rate.value(),
                               b.input_rate.value(),
                               q.no_capacity_reason.empty() ? "what the deployment can do at this workload is not known"
                                                            : q.no_capacity_reason);
        return b;
    }
    auto const self = [&](TokensPerSecond rate) {
        Supply s{"self-hosted", q.deployment, million_tokens_per_month(rate), q.spare, q.peak_to_mean, {}};
        return s;
    };
    Supply const service{api.model, {}, std::nullopt, 0, 1, b.api_per_million_output};
    auto const at = [&](TokensPerSecond rate) { return crossings(self(rate), service, q.input_per_output); };
    Interval<TokensPerSecond> const& rate = q.capacity->output;
    auto const mid = at(rate.value);
    bool const low = rate.low.value() > 0 ? !at(rate.low).list.empty() : !mid.list.empty();
    bool const high = rate.high.value() > 0 ? !at(rate.high).list.empty() : !mid.list.empty();
    double const capacity = million_tokens_per_month(rate.value);
    if (!mid.list.empty()) {
        b.crossings = mid.list;
        b.more_crossings = mid.more;
        b.million_output = mid.list.front().million_output;
        b.utilization_needed =
            b.million_output / (capacity * static_cast<double>(std::max<std::int64_t>(1, mid.list.front().replicas - q.spare)));
    } else {
        b.utilization_needed = b.million_output / capacity;
    }
    finish();
    double const full_load = q.deployment.value() * q.peak_to_mean / capacity; // $/M output at full load
    if (low && high && !mid.list.empty()) {
        b.reachable = Reachable::yes;
        b.reason =
            fmt::format("{:.0f} of {:.0f} output tok/s at {}: {:.0f} % load around the clock", b.output_rate.value(),
                        rate.value.value() * static_cast<double>(std::max<std::int64_t>(1, mid.list.front().replicas - q.spare)),
                        q.capacity->at, 100 * *b.utilization_needed);
    } else if (!low && !high && mid.list.empty()) {
        b.reachable = Reachable::no;
        b.reason =
            fmt::format("it would take {:.0f} output tok/s around the clock, the deployment does {:.0f} at {}: even at full load "
                        "{:.2f} $/M output against {:.2f} at the API with its input",
                        b.output_rate.value(), rate.value.value() / q.peak_to_mean, q.capacity->at, full_load, a);
    } else {
        b.reachable = Reachable::unknown;
        b.reason = fmt::format("it takes {:.0f} output tok/s around the clock; the deployment does {:.0f} to {:.0f} at {}",
                               b.output_rate.value(), rate.low.value(), rate.high.value(), q.capacity->at);
    }
    return b;
}

/// Two deployments over the volume: which is the cheaper one, and where that turns.
struct DeploymentBreakEven {
    Crossings crossings;                   ///< of the first against the second
    Reachable reachable = Reachable::no;   ///< yes: they change places at a volume; no: one is cheaper at every volume
    UsdPerMillionTokens first_full_load{}, second_full_load{}; ///< $/M output at full load, peaks and spare ones aside
    std::string reason;
};

/// The first deployment against the second, over whole replicas of each up to any volume. Both requests carry the same
/// traffic. Where the intervals of their speeds allow another answer than the middle gives, it is "unknown".
inline DeploymentBreakEven break_even_between(BreakEvenRequest const& first, std::string_view first_name,
                                              BreakEvenRequest const& second, std::string_view second_name) {
    DeploymentBreakEven d;
    for (auto const* side : {&first, &second}) {
        if (side->capacity) continue;
        d.reachable = side->cannot_serve ? Reachable::no : Reachable::unknown;
        d.reason = fmt::format("{}: {}", side == &first ? first_name : second_name,
                               side->no_capacity_reason.empty() ? "what it can do at this workload is not known"
                                                                : side->no_capacity_reason);
        return d;
    }
    auto const supply = [](BreakEvenRequest const& q, TokensPerSecond rate) {
        return Supply{{}, q.deployment, million_tokens_per_month(rate), q.spare, q.peak_to_mean, {}};
    };
    auto const at = [&](TokensPerSecond a, TokensPerSecond b) {
        return crossings(supply(first, a), supply(second, b), first.input_per_output);
    };
    auto const end = [](TokensPerSecond of_interval, TokensPerSecond middle) { return of_interval.value() > 0 ? of_interval : middle; };
    Interval<TokensPerSecond> const &a = first.capacity->output, &b = second.capacity->output;
    d.crossings = at(a.value, b.value);
    auto const worst = at(end(a.low, a.value), end(b.high, b.value)), best = at(end(a.high, a.value), end(b.low, b.value));
    d.first_full_load = UsdPerMillionTokens{first.deployment.value() / million_tokens_per_month(a.value)};
    d.second_full_load = UsdPerMillionTokens{second.deployment.value() / million_tokens_per_month(b.value)};
    bool const turns = !d.crossings.list.empty();
    bool const sure = worst.list.empty() != turns && best.list.empty() != turns &&
                      worst.first_cheaper_at_end == d.crossings.first_cheaper_at_end &&
                      best.first_cheaper_at_end == d.crossings.first_cheaper_at_end;
    d.reachable = !sure ? Reachable::unknown : turns ? Reachable::yes : Reachable::no;
    d.reason = fmt::format("at full load {:.2f} against {:.2f} $/M output", d.first_full_load.value(), d.second_full_load.value());
    if (turns)
        d.reason += fmt::format("; {} is the cheaper one at the smallest volumes, {} beyond the last crossing{}",
                                d.crossings.first_cheaper_at_start ? first_name : second_name,
                                d.crossings.first_cheaper_at_end ? first_name : second_name,
                                d.crossings.more ? " that was looked for" : "");
    else
        d.reason += fmt::format("; {} is the cheaper one at every volume", d.crossings.first_cheaper_at_start ? first_name : second_name);
    if (!sure)
        d.reason += fmt::format("; the intervals of the speeds ({:.0f} to {:.0f} and {:.0f} to {:.0f} output tok/s) allow another answer",
                                a.low.value(), a.high.value(), b.low.value(), b.high.value());
    return d;
}

/// How much one input of the break-even moves the answer.
struct Sensitivity {
    std::string_view name;    ///< "price of the deployment", "cache hit rate"...
    double value = 0;         ///< as planned
    double low = 0, high = 0; ///< the answer with this input 10 % lower and 10 % higher
    double elasticity = 0;    ///< change of the answer in % for 1 % of change of the input
};

/// Sensitivity of the break-even, what moves it most first. The answer is the load needed where the capacity is known,
/// else the volume. Each input is moved by 10 % of itself, the others kept; a hit rate stays within 0 to 1.
inline std::vector<Sensitivity> break_even_sensitivity(BreakEvenRequest const& q, ApiTariff const& api) {
    auto const answer = [](BreakEvenRequest const& r, ApiTariff const& t) {
        double const a = api_cost_per_million_output(t, r.input_per_output, r.cache_hit, r.cache_write).value();
        double const x = a > 0 ? r.deployment.value() * (1 + r.spare) / a : 0;
        return r.capacity ? x / million_tokens_per_month(r.capacity->output.value) : x;
    };
    double const base = answer(q, api);
    std::vector<Sensitivity> out;
    auto const vary = [&](std::string_view name, double value, auto&& set) {
        if (value == 0 || base == 0) return;
        Sensitivity s{name, value, 0, 0, 0};
        for (double k : {0.9, 1.1}) {
            BreakEvenRequest r = q;
            ApiTariff t = api;
            set(r, t, value * k);
            (k < 1 ? s.low : s.high) = answer(r, t);
        }
        s.elasticity = (s.high - s.low) / base / 0.2;
        out.push_back(s);
    };
    vary("price of the deployment", q.deployment.value(),
         [](BreakEvenRequest& r, ApiTariff&, double v) { r.deployment = UsdPerMonth{v}; });
    vary("output price of the API", api.output.value(),
         [](BreakEvenRequest&, ApiTariff& t, double v) { t.output = UsdPerMillionTokens{v}; });
    vary("input price of the API", api.input.value(),
         [](BreakEvenRequest&, ApiTariff& t, double v) { t.input = UsdPerMillionTokens{v}; });
    if (q.cache_hit > 0)
        vary("cached price of the API", api.cached_input.value(),
             [](BreakEvenRequest&, ApiTariff& t, double v) { t.cached_input = UsdPerMillionTokens{v}; });
    vary("cache hit rate", q.cache_hit, [](BreakEvenRequest& r, ApiTariff&, double v) { r.cache_hit = std::min(v, 1.0); });
    vary("input tokens for each output token", q.input_per_output,
         [](BreakEvenRequest& r, ApiTariff&, double v) { r.input_per_output = v; });
    if (q.capacity)
        vary("speed of the deployment", q.capacity->output.value.value(),
             [](BreakEvenRequest& r, ApiTariff&, double v) { r.capacity->output.value = TokensPerSecond{v}; });
    std::stable_sort(out.begin(), out.end(), [](Sensitivity const& a, Sensitivity const& b) {
        return std::fabs(a.elasticity) > std::fabs(b.elasticity);
    });
    return out;
}

} // namespace servecap
