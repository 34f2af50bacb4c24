// servecap: from a price an hour and a rate of tokens to dollars a million tokens
// SPDX-License-Identifier: Apache-2.0
//
// Formula: usd_per_M = usd_per_hour / (3600 * tok_s) * 1e6. "tok/s" must say of what: for one run, the answers per
// output, input and total token differ 2 to 25 times. A cost that makes input and output together can be split at a
// ratio q = price(output) / price(input): p_in = C / (I + q O), p_out = q p_in, I and O the tokens of the same time.
// With a utilisation U (share of the paid time at that rate) all of them grow by 1 / U.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <servecap/core/basis.hpp>
#include <servecap/core/result.hpp>
#include <servecap/perf/types.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// price(output) / price(input) where no tariff says otherwise: list prices show 4 to 6, Google's GKE guide takes 4.
inline constexpr double kDefaultOutputInputRatio = 4.0;

/// What a million tokens cost, by what is counted.
struct TokenCost {
    UsdPerMillionTokens output_alone{}; ///< the whole cost on output tokens, input counted as free
    UsdPerMillionTokens input{};        ///< the cost split at the ratio: input
    UsdPerMillionTokens output{};       ///< the cost split at the ratio: output
    UsdPerMillionTokens total{};        ///< the whole cost on input and output tokens alike
    double output_input_ratio = kDefaultOutputInputRatio;
};

/// $/M of a deployment that costs `price` and makes `output` and takes `input` tokens a second while it works, for a
/// share `utilization` of the paid time. Positive price, output and utilization expected.
inline TokenCost token_cost(UsdPerHour price, TokensPerSecond output, TokensPerSecond input,
                            double ratio = kDefaultOutputInputRatio, double utilization = 1.0) {
    UsdPerHour const c = price / utilization;
    TokenCost t;
    t.output_input_ratio = ratio;
    t.output_alone = c / output;
    t.input = c / (input + output * ratio);
    t.output = t.input * ratio;
    t.total = c / (input + output);
    return t;
}

/// $/M of one predicted or measured speed, with the interval of the speed.
struct CostPoint {
    Requests concurrency{};
    Interval<UsdPerMillionTokens> output_alone, input, output, total;
    double output_input_ratio = kDefaultOutputInputRatio;
    Basis basis = Basis::assumed;
};

/// $/M at one speed. A faster deployment is cheaper, so the ends of the interval change places.
inline CostPoint cost_at(SpeedPoint const& s, UsdPerHour price, double ratio = kDefaultOutputInputRatio,
                         double utilization = 1.0) {
    // Input follows output: each request brings isl tokens for osl.
    double const r = s.osl.value() > 0 ? s.isl / s.osl : 0.0;
    auto const at = [&](TokensPerSecond out) { return token_cost(price, out, out * r, ratio, utilization); };
    TokenCost const mid = at(s.output.value);
    TokenCost const cheap = at(s.output.high.value() > 0 ? s.output.high : s.output.value);
    TokenCost const dear = at(s.output.low.value() > 0 ? s.output.low : s.output.value);
    CostPoint p;
    p.concurrency = s.concurrency;
    p.output_alone = {mid.output_alone, cheap.output_alone, dear.output_alone};
    p.input = {mid.input, cheap.input, dear.input};
    p.output = {mid.output, cheap.output, dear.output};
    p.total = {mid.total, cheap.total, dear.total};
    p.output_input_ratio = ratio;
    p.basis = s.basis;
    return p;
}

/// $/M at every concurrency of a prediction.
inline std::vector<CostPoint> cost_by_concurrency(std::span<SpeedPoint const> speeds, UsdPerHour price,
                                                  double ratio = kDefaultOutputInputRatio, double utilization = 1.0) {
    std::vector<CostPoint> out;
    for (SpeedPoint const& s : speeds)
        if (s.output.value.value() > 0) out.push_back(cost_at(s, price, ratio, utilization));
    return out;
}

/// Tokens that a month of 730 hours brings at a steady rate, in millions.
constexpr double million_tokens_per_month(TokensPerSecond rate) noexcept { return rate.value() * 3600.0 * kHoursPerMonth / 1e6; }
/// The steady rate that makes `millions` tokens in a month of 730 hours.
constexpr TokensPerSecond rate_of_month(double millions) noexcept {
    return TokensPerSecond{millions * 1e6 / (3600.0 * kHoursPerMonth)};
}

} // namespace servecap
