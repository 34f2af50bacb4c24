// servecap: where a number comes from, and how sure it is
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace servecap {

/// How a number was obtained; one vocabulary everywhere.
enum class Basis : std::uint8_t {
    exact,        ///< integer arithmetic on known sizes
    measured,     ///< a row
    interpolated, ///< between rows of the same deployment
    calibrated,   ///< physics with fitted coefficients
    roofline,     ///< physics alone
    inferred,     ///< rests on card fields that are not public
    assumed,      ///< given or assumed, no evidence
};

constexpr std::string_view to_string(Basis b) noexcept {
    constexpr std::array<std::string_view, 7> names{"exact",    "measured", "interpolated", "calibrated",
                                                    "roofline", "inferred", "assumed"};
    return names[static_cast<std::size_t>(b)];
}

/// A value with the ends of its 80 % interval.
template <class T>
struct Interval {
    T value{};
    T low{};
    T high{};

    /// A value that is known: the interval has no width.
    static constexpr Interval point(T v) { return {v, v, v}; }
};

} // namespace servecap
