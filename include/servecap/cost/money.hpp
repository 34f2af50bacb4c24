// servecap: amounts in other currencies, and the dated rates that turn them into dollars
// SPDX-License-Identifier: Apache-2.0
//
// A plan counts in US dollars. An amount in another currency is never added to it: it is converted at a rate that has
// a date and a source, or refused. A stale rate is a real mistake: 7.25 CNY a dollar for 6.79 moves a result 6.8 %.

#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/core/date.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// Units of one currency a US dollar bought on a day.
struct CurrencyRate {
    std::string currency; ///< ISO 4217: "CNY"
    double per_usd = 0;
    std::string date, source, url;
};

/// An amount with its currency.
struct Money {
    double amount = 0;
    std::string currency = "USD";
};

/// a + b, both of one currency; different ones are refused, not converted behind one's back.
inline Result<Money> add(Money const& a, Money const& b) {
    if (a.currency != b.currency)
        return fail(ErrorCode::bad_usage, fmt::format("{} and {} cannot be added", a.currency, b.currency), {},
                    "convert both to one currency at one dated rate");
    return Money{a.amount + b.amount, a.currency};
}

/// Reads "49.61", "$49.61", "USD 49.61", "CNY 342", "342 CNY". The yen sign stands for two currencies and is refused.
inline Result<Money> parse_money(std::string_view text, std::string_view where = {}) {
    std::string_view s = trim(text);
    auto const bad = [&](std::string what, std::string hint) {
        return fail(ErrorCode::bad_value, fmt::format("\"{}\" {}", s.substr(0, 40), what), std::string{where}, std::move(hint));
    };
    Money m;
    std::string_view digits = s;
    auto const letters = [](std::string_view w) {
        return w.size() == 3 &&
               std::all_of(w.begin(), w.end(), [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
    };
    auto const code = [&](std::string_view w) {
        m.currency = to_lower(w);
        for (char& c : m.currency) c = static_cast<char>(c - 'a' + 'A');
    };
    if (!s.empty() && s.front() == '$') {
        digits = trim(s.substr(1));
    } else if (s.substr(0, 3) == "\xE2\x82\xAC") { // euro sign
        m.currency = "EUR";
        digits = trim(s.substr(3));
    } else if (s.substr(0, 2) == "\xC2\xA5") { // yen or yuan sign
        return bad("is ambiguous", "write CNY or JPY");
    } else if (s.size() > 3 && letters(s.substr(0, 3))) {
        code(s.substr(0, 3));
        digits = trim(s.substr(3));
    } else if (s.size() > 3 && letters(s.substr(s.size() - 3))) {
        code(s.substr(s.size() - 3));
        digits = trim(s.substr(0, s.size() - 3));
    }
    auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), m.amount);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(m.amount))
        return bad("is no amount of money", "a number, with a currency code where it is not US dollars: \"CNY 342\"");
    return m;
}

/// The amount in dollars and the rate it was converted at.
struct InDollars {
    double usd = 0;
    std::optional<CurrencyRate> rate; ///< empty: it was dollars
    std::vector<std::string> warnings;
};

/// Converts at the newest rate that is not later than `as_of` (empty: the newest).
inline Result<InDollars> in_dollars(Money const& m, std::span<CurrencyRate const> rates, std::string_view as_of) {
    if (m.currency == "USD") return InDollars{m.amount, std::nullopt, {}};
    CurrencyRate const* best = nullptr;
    for (CurrencyRate const& r : rates) {
        if (r.currency != m.currency || r.per_usd <= 0) continue;
        if (!as_of.empty() && days_between(r.date, as_of).value_or(-1) < 0) continue;
        if (best == nullptr || r.date > best->date) best = &r;
    }
    if (best == nullptr)
        return fail(ErrorCode::missing, fmt::format("no dated rate of {} is known", m.currency), {},
                    "give the amount in US dollars, or a rate");
    InDollars d{m.amount / best->per_usd, *best, {}};
    if (auto const age = days_between(best->date, as_of); age && *age > 90)
        d.warnings.push_back(
            fmt::format("the rate of {} is {} days old ({} a dollar, {})", m.currency, *age, best->per_usd, best->date));
    return d;
}

} // namespace servecap
