// servecap: strong types for the quantities of a capacity plan
// SPDX-License-Identifier: Apache-2.0
//
// A Quantity is one number with a tag. Counts (bytes, tokens, parameters) are 64-bit integers and
// refuse floating point; measures (seconds, dollars, rates) are doubles. Only the products that have
// a meaning exist, so that a rate cannot be added to a price and GB cannot be taken for GiB: both are
// Bytes, made by literals that say which is meant (80_GiB, 80_GB).

#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace servecap {

/// One number with a unit. `Tag` names the unit; `Rep` is std::int64_t (counts) or double (measures).
template <class Tag, class Rep>
class Quantity {
public:
    using rep = Rep;

    constexpr Quantity() noexcept = default;

    /// Makes a count from an integer, or a measure from any number.
    template <class T>
        requires(std::integral<T> || (std::floating_point<T> && std::floating_point<Rep>))
    explicit constexpr Quantity(T value) noexcept : value_{static_cast<Rep>(value)} {}

    /// A count is never made from floating point: round it in a named function first.
    template <std::floating_point T>
        requires(std::integral<Rep>)
    explicit constexpr Quantity(T value) = delete;

    /// The bare number, in the unit of the type.
    [[nodiscard]] constexpr Rep value() const noexcept { return value_; }

    friend constexpr auto operator<=>(Quantity, Quantity) noexcept = default;

    friend constexpr Quantity operator+(Quantity a, Quantity b) noexcept { return Quantity{a.value_ + b.value_}; }
    friend constexpr Quantity operator-(Quantity a, Quantity b) noexcept { return Quantity{a.value_ - b.value_}; }
    friend constexpr Quantity operator-(Quantity a) noexcept { return Quantity{-a.value_}; }
    constexpr Quantity& operator+=(Quantity other) noexcept {
        value_ += other.value_;
        return *this;
    }
    constexpr Quantity& operator-=(Quantity other) noexcept {
        value_ -= other.value_;
        return *this;
    }

    /// Scaling: counts by integers only, measures by any number.
    template <class T>
        requires(std::integral<T> || (std::floating_point<T> && std::floating_point<Rep>))
    friend constexpr Quantity operator*(Quantity a, T k) noexcept {
        return Quantity{a.value_ * static_cast<Rep>(k)};
    }
    template <class T>
        requires(std::integral<T> || (std::floating_point<T> && std::floating_point<Rep>))
    friend constexpr Quantity operator*(T k, Quantity a) noexcept {
        return a * k;
    }
    template <class T>
        requires(std::floating_point<Rep> && (std::integral<T> || std::floating_point<T>))
    friend constexpr Quantity operator/(Quantity a, T k) noexcept {
        return Quantity{a.value_ / static_cast<Rep>(k)};
    }

    /// The ratio of two quantities of one unit, a pure number.
    friend constexpr double operator/(Quantity a, Quantity b) noexcept {
        return static_cast<double>(a.value_) / static_cast<double>(b.value_);
    }

private:
    Rep value_{};
};

/// Memory or file size in bytes.
using Bytes = Quantity<struct BytesTag, std::int64_t>;
/// Number of tokens.
using Tokens = Quantity<struct TokensTag, std::int64_t>;
/// Number of model parameters.
using Params = Quantity<struct ParamsTag, std::int64_t>;
/// Number of requests (users, sequences) in flight.
using Requests = Quantity<struct RequestsTag, std::int64_t>;

using Seconds = Quantity<struct SecondsTag, double>;
using Flops = Quantity<struct FlopsTag, double>;
using Usd = Quantity<struct UsdTag, double>;
using TokensPerSecond = Quantity<struct TokensPerSecondTag, double>;
using RequestsPerSecond = Quantity<struct RequestsPerSecondTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
using UsdPerHour = Quantity<struct UsdPerHourTag, double>;
using UsdPerMonth = Quantity<struct UsdPerMonthTag, double>;
using UsdPerMillionTokens = Quantity<struct UsdPerMillionTokensTag, double>;
using Watts = Quantity<struct WattsTag, double>;

/// Hours that one month counts as (365 * 24 / 12).
inline constexpr double kHoursPerMonth = 730.0;

constexpr Seconds operator/(Bytes n, BytesPerSecond rate) noexcept {
    return Seconds{static_cast<double>(n.value()) / rate.value()};
}
constexpr Seconds operator/(Flops n, FlopsPerSecond rate) noexcept { return Seconds{n.value() / rate.value()}; }
constexpr Seconds operator/(Tokens n, TokensPerSecond rate) noexcept {
    return Seconds{static_cast<double>(n.value()) / rate.value()};
}
constexpr TokensPerSecond operator/(Tokens n, Seconds t) noexcept {
    return TokensPerSecond{static_cast<double>(n.value()) / t.value()};
}
constexpr Usd operator*(UsdPerHour rate, Seconds t) noexcept { return Usd{rate.value() * t.value() / 3600.0}; }
constexpr Usd operator*(Seconds t, UsdPerHour rate) noexcept { return rate * t; }

/// What a million tokens cost when `rate` is paid for a stream of `speed`. Positive `speed` expected.
/// Formula: rate / (speed * 3600) * 1e6.
constexpr UsdPerMillionTokens operator/(UsdPerHour rate, TokensPerSecond speed) noexcept {
    return UsdPerMillionTokens{rate.value() / (speed.value() * 3600.0) * 1e6};
}

/// A month of 730 hours at an hourly rate.
constexpr UsdPerMonth per_month(UsdPerHour rate) noexcept { return UsdPerMonth{rate.value() * kHoursPerMonth}; }

/// Milliseconds as Seconds.
constexpr Seconds milliseconds(double ms) noexcept { return Seconds{ms / 1e3}; }
/// Seconds as a bare number of milliseconds, for printing.
constexpr double in_ms(Seconds t) noexcept { return t.value() * 1e3; }

/// `x` GiB (2^30 bytes), rounded to the nearest byte.
constexpr Bytes gib(double x) noexcept { return Bytes{static_cast<std::int64_t>(x * 1073741824.0 + (x < 0 ? -0.5 : 0.5))}; }
/// `n` MiB (2^20 bytes).
constexpr Bytes mib(std::int64_t n) noexcept { return Bytes{n * 1048576}; }
/// Bytes as a bare number of GiB, for printing.
constexpr double in_gib(Bytes b) noexcept { return static_cast<double>(b.value()) / 1073741824.0; }
/// Bytes as a bare number of GB (10^9), for printing.
constexpr double in_gb(Bytes b) noexcept { return static_cast<double>(b.value()) / 1e9; }

inline namespace literals {

consteval Bytes operator""_B(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n)}; }
consteval Bytes operator""_KiB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) * 1024}; }
consteval Bytes operator""_MiB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) * 1048576}; }
consteval Bytes operator""_GiB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) * 1073741824}; }
consteval Bytes operator""_GiB(long double x) { return gib(static_cast<double>(x)); }
consteval Bytes operator""_TiB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) * 1099511627776}; }
consteval Bytes operator""_MB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) * 1000000}; }
consteval Bytes operator""_GB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) * 1000000000}; }
consteval Bytes operator""_TB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) * 1000000000000}; }
consteval Tokens operator""_tok(unsigned long long n) { return Tokens{static_cast<std::int64_t>(n)}; }

} // namespace literals

/// Ceiling division of non-negative integers; `b` > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return a / b + (a % b != 0 ? 1 : 0); }
/// `a` rounded up to a multiple of `m`; `m` > 0.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t m) noexcept { return ceil_div(a, m) * m; }

} // namespace servecap
