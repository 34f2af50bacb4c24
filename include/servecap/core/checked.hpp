// servecap: 64-bit integer arithmetic that reports overflow
// SPDX-License-Identifier: Apache-2.0
//
// Sizes read from files (layers x heads x tokens x bytes) can pass 2^63 when hostile. Readers multiply
// with these functions; behind the catalogue's border plain arithmetic is safe.

#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace servecap {

/// a * b, or nothing when it does not fit 63 bits.
constexpr std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t r = 0;
    if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
    return r;
}

/// a + b, or nothing when it does not fit 63 bits.
constexpr std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t r = 0;
    if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
    return r;
}

/// Product of many factors, or nothing when it does not fit 63 bits.
template <class... T>
constexpr std::optional<std::int64_t> checked_product(std::int64_t first, T... rest) noexcept {
    std::optional<std::int64_t> r = first;
    ((r = r ? checked_mul(*r, static_cast<std::int64_t>(rest)) : r), ...);
    return r;
}

} // namespace servecap
