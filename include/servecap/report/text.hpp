// servecap: numbers as people read them
// SPDX-License-Identifier: Apache-2.0
//
// Fixed, locale-free forms: 2,151,492 tokens; 193.7 GiB; 298 ms; 1.6 s; $6.65. The unit is always
// printed. Rounding is to the digits shown, never to a hidden unit.

#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <servecap/units/quantity.hpp>

namespace servecap {

/// 2151492 -> "2,151,492".
inline std::string grouped(std::int64_t n) {
    std::string digits = fmt::format("{}", n < 0 ? 0ULL - static_cast<unsigned long long>(n) : static_cast<unsigned long long>(n));
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return n < 0 ? "-" + digits : digits;
}

/// A number with `decimals` digits and thousands separated: 41456.7, 1 -> "41,456.7".
inline std::string grouped(double x, int decimals) {
    if (!std::isfinite(x)) return "not known";
    std::string s = fmt::format("{:.{}f}", std::fabs(x), decimals);
    std::size_t const point = s.find('.') == std::string::npos ? s.size() : s.find('.');
    for (std::size_t at = point; at > 3;) s.insert(at -= 3, ",");
    bool const zero = s.find_first_not_of("0.,") == std::string::npos;
    return x < 0 && !zero ? "-" + s : s;
}

/// "193.7 GiB" with `decimals` digits.
inline std::string gib_text(Bytes b, int decimals = 1) { return grouped(in_gib(b), decimals) + " GiB"; }
/// "1,561.4 GB".
inline std::string gb_text(Bytes b, int decimals = 1) { return grouped(in_gb(b), decimals) + " GB"; }

/// Bytes in the unit that suits: "768 B", "27.0 KiB", "535.7 MiB", "34.7 GiB".
inline std::string bytes_text(Bytes b) {
    double const x = static_cast<double>(b.value());
    double const a = std::fabs(x);
    if (a < 1024.0) return fmt::format("{} B", b.value());
    if (a < 1048576.0) return fmt::format("{:.1f} KiB", x / 1024.0);
    if (a < 1073741824.0) return fmt::format("{:.1f} MiB", x / 1048576.0);
    return gib_text(b);
}

/// A number rounded to three significant digits, thousands separated: 2073.2 -> "2,073", 34.19 -> "34.2", 6.647 -> "6.65".
inline std::string sig3(double x) {
    if (!std::isfinite(x)) return "not known";
    double const a = std::fabs(x);
    if (a >= 99.95) return grouped(x, 0);
    if (a >= 9.995) return grouped(x, 1);
    if (a >= 0.9995) return grouped(x, 2);
    return grouped(x, 3);
}

/// "298 ms", "9.6 ms", "1.6 s", "30 min 0 s".
inline std::string duration_text(Seconds t) {
    double const s = t.value();
    if (!std::isfinite(s)) return "not known";
    if (s < 0.0995) return fmt::format("{:.1f} ms", s * 1e3);
    if (s < 0.9995) return fmt::format("{:.0f} ms", s * 1e3);
    if (s < 59.95) return fmt::format("{:.1f} s", s);
    if (s < 7200) {
        auto const whole = static_cast<std::int64_t>(std::llround(s));
        return fmt::format("{} min {} s", whole / 60, whole % 60);
    }
    return fmt::format("{:.1f} h", s / 3600.0);
}

/// Dollars with cents: "$6.65", "$41,456.70"; below a cent with three significant digits.
inline std::string usd_text(double x) {
    if (!std::isfinite(x)) return "not known";
    if (x != 0 && std::fabs(x) < 0.01) return (x < 0 ? "-$" : "$") + fmt::format("{:.3g}", std::fabs(x));
    return (x < 0 ? "-$" : "$") + grouped(std::fabs(x), 2);
}

/// Large counts in words: 2.07 B, 450.3 M, 12,000.
inline std::string large_text(double x) {
    double const a = std::fabs(x);
    if (a >= 1e12) return fmt::format("{:.2f} T", x / 1e12);
    if (a >= 1e9) return fmt::format("{:.2f} B", x / 1e9);
    if (a >= 1e6) return fmt::format("{:.1f} M", x / 1e6);
    return grouped(x, 0);
}

/// "71.4 %".
inline std::string percent_text(double share, int decimals = 0) { return fmt::format("{:.{}f} %", share * 100.0, decimals); }

/// "1 GPU", "8 GPUs".
inline std::string count_text(std::int64_t n, std::string_view one, std::string_view many) {
    return grouped(n) + " " + std::string{n == 1 ? one : many};
}

} // namespace servecap
