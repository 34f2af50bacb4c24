// servecap: ISO dates as text, and days between them
// SPDX-License-Identifier: Apache-2.0
//
// Rows carry dates as people publish them: a day, a month ("2026-08"), a year ("2026") or "unknown". Only the first
// day of a month or year is known to be no later than the fact, so ages count from it: "at most so many days old".

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace servecap {

/// `s` is YYYY, YYYY-MM or YYYY-MM-DD and a date that exists.
constexpr bool is_iso_date(std::string_view s) noexcept {
    if (s.size() != 4 && s.size() != 7 && s.size() != 10) return false;
    for (std::size_t i = 0; i < s.size(); ++i)
        if (i == 4 || i == 7 ? s[i] != '-' : (s[i] < '0' || s[i] > '9')) return false;
    auto const two = [&](std::size_t i) { return (s[i] - '0') * 10 + (s[i + 1] - '0'); };
    int const year = two(0) * 100 + two(2);
    if (year < 1900) return false;
    if (s.size() == 4) return true;
    int const month = two(5);
    if (month < 1 || month > 12) return false;
    if (s.size() == 7) return true;
    bool const leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    int const days = month == 2 ? (leap ? 29 : 28) : (month == 4 || month == 6 || month == 9 || month == 11) ? 30 : 31;
    return two(8) >= 1 && two(8) <= days;
}

/// Days since 1970-01-01 of an ISO date (its first day where it names a month or a year); nothing for other text.
/// Counting in 400-year eras that begin on 1 March makes leap days the last of a year.
constexpr std::optional<std::int64_t> day_number(std::string_view s) noexcept {
    if (!is_iso_date(s)) return std::nullopt;
    auto const two = [&](std::size_t i) { return std::int64_t{(s[i] - '0') * 10 + (s[i + 1] - '0')}; };
    std::int64_t year = two(0) * 100 + two(2);
    std::int64_t const month = s.size() >= 7 ? two(5) : 1;
    std::int64_t const day = s.size() == 10 ? two(8) : 1;
    if (month <= 2) --year;
    std::int64_t const era = year / 400;
    std::int64_t const of_era = year - era * 400;
    std::int64_t const of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/// The ISO day that is `n` days after 1970-01-01: the inverse of day_number.
inline std::string iso_day(std::int64_t n) {
    n += 719468;
    std::int64_t const era = (n >= 0 ? n : n - 146096) / 146097;
    std::int64_t const of_era = n - era * 146097;
    std::int64_t const year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    std::int64_t const of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    std::int64_t const shifted = (5 * of_year + 2) / 153; // months from March
    std::int64_t const day = of_year - (153 * shifted + 2) / 5 + 1;
    std::int64_t const month = shifted < 10 ? shifted + 3 : shifted - 9;
    std::int64_t const year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
    std::string s(10, '-');
    auto const put = [&s](std::size_t at, std::size_t width, std::int64_t v) {
        for (std::size_t i = width; i-- > 0; v /= 10) s[at + i] = static_cast<char>('0' + v % 10);
    };
    put(0, 4, year);
    put(5, 2, month);
    put(8, 2, day);
    return s;
}

/// Days from `then` to `now`; nothing when one of them is no date. Negative when `then` is later.
constexpr std::optional<std::int64_t> days_between(std::string_view then, std::string_view now) noexcept {
    auto const a = day_number(then), b = day_number(now);
    if (!a || !b) return std::nullopt;
    return *b - *a;
}

} // namespace servecap
