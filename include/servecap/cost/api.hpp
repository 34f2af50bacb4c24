// servecap: what an API charges for the same traffic
// SPDX-License-Identifier: Apache-2.0
//
// A bill of I input and O output tokens, of which a share h of the input is read from the provider's cache and a share
// w written to it:
//   I ((1 - h - w) p_in + h p_cached + w p_write) + O p_out.
// A tariff without a cached price bills cached input as input. Tariffs have tiers by the length of the input (the
// whole request pays the higher tier), windows of the day (weighted by hours of the week) and dates. A row that holds
// an effective price at an observed hit rate, or a blended price without an output price, is no tariff.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/rows.hpp>
#include <servecap/core/date.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/cost/price.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// Prices that hold for a share of the week, for one tier.
struct TariffPart {
    double weight = 1; ///< share of the hours of a week
    std::string when;  ///< as the row words it; empty = all the time
    UsdPerMillionTokens input{}, output{};
    std::optional<UsdPerMillionTokens> cached_input, cache_write;
    RowOrigin origin;
};

/// One provider's tariff of one model, at one length of input.
struct ApiTariff {
    std::string model, provider, url, date; ///< date: when the price was read or became valid
    Confidence confidence = Confidence::unverified;
    bool first_party = false;
    UsdPerMillionTokens input{}, output{}; ///< weighted over the week
    UsdPerMillionTokens cached_input{};    ///< equal to input where the provider names none
    UsdPerMillionTokens cache_write{};     ///< equal to input where the provider names none
    bool cached_input_known = false;
    Tokens tier_min_input{}; ///< the tier in force begins above this; 0 = the lowest
    std::vector<TariffPart> parts;
    std::vector<std::string> notes;

    /// price(output) / price(input); 4 where input is free.
    [[nodiscard]] double output_input_ratio() const noexcept { return input.value() > 0 ? output / input : 4.0; }
};

/// Which tariff is wanted.
struct ApiQuery {
    std::vector<std::string> models; ///< model ids (the card's api_names), or what --api says: "kimi-k3", "Novita/kimi-k3"
    std::string as_of;               ///< ISO day
    Tokens isl{1000};                ///< decides the tier
    bool named = false;              ///< given by --api: hosts count too, not only first parties
    double batch_share = 0;          ///< share of the traffic sent as batches
    double batch_discount = 0;       ///< off every price of that share; 0.5 is usual
};

/// Hours of a week that a time window names: "daily 01:00:00Z-04:00:00Z" 21, "peak: 01-04 and 06-10 UTC, Mon-Fri" 35.
/// Nothing where the text names no window. Public holidays are not taken off.
inline std::optional<double> window_hours_per_week(std::string_view when) {
    double hours = 0;
    auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
    // A clock is HH or HH:MM or HH:MM:SS, maybe with Z; a window is clock-clock.
    auto const clock = [&](std::size_t& i) -> std::optional<double> {
        std::size_t j = i;
        auto const two = [&]() -> std::optional<int> {
            if (j + 1 >= when.size() || !is_digit(when[j]) || !is_digit(when[j + 1])) return std::nullopt;
            int const v = (when[j] - '0') * 10 + (when[j + 1] - '0');
            j += 2;
            return v;
        };
        auto const h = two();
        if (!h || *h > 24 || (j < when.size() && is_digit(when[j]))) return std::nullopt;
        double t = *h;
        for (double unit : {60.0, 3600.0})
            if (j < when.size() && when[j] == ':') {
                ++j;
                auto const part = two();
                if (!part) return std::nullopt;
                t += *part / unit;
            }
        if (j < when.size() && when[j] == 'Z') ++j;
        i = j;
        return t;
    };
    for (std::size_t i = 0; i < when.size();) {
        if (!is_digit(when[i]) || (i > 0 && (is_digit(when[i - 1]) || when[i - 1] == '-'))) { // "2026-10-07" is a date
            ++i;
            continue;
        }
        std::size_t j = i;
        auto const from = clock(j);
        if (!from || j >= when.size() || when[j] != '-') {
            ++i;
            continue;
        }
        ++j;
        auto const to = clock(j);
        if (!to) {
            ++i;
            continue;
        }
        hours += *to > *from ? *to - *from : *to + 24 - *from;
        i = j;
    }
    if (hours <= 0) return std::nullopt;
    double const days = when.find("Mon-Fri") != std::string_view::npos ? 5 : 7;
    return std::min(hours, 24.0) * days;
}

namespace detail {

/// Words of `applies_when` that name no window, no speed and no batch: the price that holds otherwise.
inline bool is_base_tariff(std::string_view when) noexcept {
    return when.empty() || when == "off-peak" || when == "from start date" || when == "until the next dated entry";
}

inline bool holds_on(ApiPrice const& r, std::string_view as_of) {
    if (as_of.empty()) return true;
    if (!r.valid_from.empty() && days_between(r.valid_from, as_of).value_or(0) < 0) return false;
    if (!r.valid_to.empty() && days_between(r.valid_to, as_of).value_or(0) > 0) return false;
    // Read later than `as_of`, a row holds then only where it says from or until when.
    return days_between(r.date, as_of).value_or(0) >= 0 || !r.valid_from.empty() || !r.valid_to.empty();
}

} // namespace detail

/// Why a row is no tariff; empty when it is one.
inline std::string_view why_no_tariff(ApiPrice const& r) noexcept {
    if (r.provider_kind == "measured-effective") return "an effective price at an observed hit rate";
    if (!r.input) return "no input price";
    if (!r.output) return "a blended price without an output price";
    return {};
}

/// Tariffs of the asked models, first parties first, then by the output price. One for each model and provider. A
/// name may carry its provider ("Novita/kimi-k3"). Fails when --api names a model that no row knows.
inline Result<std::vector<ApiTariff>> choose_tariffs(ApiQuery const& q, std::span<ApiPrice const> rows) {
    std::vector<ApiTariff> out;
    std::vector<std::string> known;
    std::string refused;
    for (std::string const& name : q.models) {
        auto const wants = [&](ApiPrice const& r) {
            std::string const want = fold_name(name);
            return fold_name(r.model) == want || fold_name(r.provider_model) == want ||
                   fold_name(r.provider + "/" + r.model) == want;
        };
        std::vector<ApiPrice const*> mine;
        for (ApiPrice const& r : rows) {
            if (!wants(r)) continue;
            if (auto const why = why_no_tariff(r); !why.empty()) {
                refused = fmt::format("{} by {}: {}", r.model, r.provider, why);
                continue;
            }
            if (!q.named && r.provider_kind != "first-party") continue;
            if (!detail::holds_on(r, q.as_of)) {
                refused = fmt::format("no price of {} by {} is known to hold on {}", r.model, r.provider, q.as_of);
                continue;
            }
            mine.push_back(&r);
        }
        // The user's rows win over the catalogue's of the same provider and model.
        std::vector<std::pair<std::string, std::string>> groups;
        for (ApiPrice const* r : mine) {
            std::pair<std::string, std::string> g{r->provider, r->model};
            if (std::find(groups.begin(), groups.end(), g) == groups.end()) groups.push_back(std::move(g));
        }
        for (auto const& [provider, model] : groups) {
            std::vector<ApiPrice const*> g;
            for (ApiPrice const* r : mine)
                if (r->provider == provider && r->model == model) g.push_back(r);
            if (std::any_of(g.begin(), g.end(), [](ApiPrice const* r) { return r->origin.user; }))
                std::erase_if(g, [](ApiPrice const* r) { return !r->origin.user; });
            // The highest tier that this input reaches. A short tier list may start above it: then no price is known.
            Tokens tier{-1};
            for (ApiPrice const* r : g) {
                Tokens const t = r->tier_min_input.value_or(Tokens{0});
                if (t.value() == 0 || q.isl > t) tier = std::max(tier, t);
            }
            std::erase_if(g, [&](ApiPrice const* r) { return r->tier_min_input.value_or(Tokens{0}) != tier; });
            if (g.empty()) continue;
            // Base price: the newest start of validity, then the newest reading, then the surest.
            auto const newer = [](ApiPrice const* a, ApiPrice const* b) {
                if (a->valid_from != b->valid_from) return a->valid_from > b->valid_from;
                auto const day = [](std::string const& d) { return is_iso_date(d) ? std::string_view{d} : std::string_view{}; };
                if (day(a->date) != day(b->date)) return day(a->date) > day(b->date);
                return a->confidence > b->confidence;
            };
            std::stable_sort(g.begin(), g.end(), newer);
            auto const base =
                std::find_if(g.begin(), g.end(), [](ApiPrice const* r) { return detail::is_base_tariff(r->applies_when); });
            if (base == g.end()) continue;
            ApiTariff t;
            t.model = model;
            t.provider = provider;
            t.first_party = (*base)->provider_kind == "first-party";
            t.url = (*base)->url;
            t.date = (*base)->date;
            t.confidence = (*base)->confidence;
            t.tier_min_input = tier;
            auto const part = [](ApiPrice const& r, double weight) {
                return TariffPart{weight,    r.applies_when, *r.input,
                                  *r.output, r.cached_input, r.cache_write_5m ? r.cache_write_5m : r.cache_write_1h,
                                  r.origin};
            };
            double rest = 1;
            for (ApiPrice const* r : g) {
                if (r->valid_from != (*base)->valid_from || detail::is_base_tariff(r->applies_when)) continue;
                auto const hours = window_hours_per_week(r->applies_when);
                if (!hours) {
                    t.notes.push_back(fmt::format("\"{}\" ({}:{}) is a tariff of its own and left out", r->applies_when,
                                                  r->origin.file, r->origin.line));
                    continue;
                }
                t.parts.push_back(part(*r, *hours / 168.0));
                rest -= *hours / 168.0;
            }
            t.parts.insert(t.parts.begin(), part(**base, std::max(0.0, rest)));
            if (t.parts.size() > 1)
                t.notes.push_back(
                    fmt::format("peak and off-peak weighted by hours: {:.1f} % of the week at peak, holidays not taken off",
                                100 * (1 - t.parts[0].weight)));
            t.cached_input_known = true;
            for (TariffPart const& p : t.parts) {
                t.input += p.input * p.weight;
                t.output += p.output * p.weight;
                t.cached_input += p.cached_input.value_or(p.input) * p.weight;
                t.cache_write += p.cache_write.value_or(p.input) * p.weight;
                t.cached_input_known = t.cached_input_known && p.cached_input.has_value();
            }
            if (!t.cached_input_known) t.notes.push_back("no price of cached input is known: billed as input");
            if (t.confidence < Confidence::medium)
                t.notes.push_back(fmt::format("price of {} confidence: {}", to_string(t.confidence), (*base)->notes));
            if (auto const age = days_between(t.date, q.as_of); age && *age > kStaleDays)
                t.notes.push_back(fmt::format("the price of {} is {} days old ({})", t.model, *age, t.date));
            if (t.date == "unknown") t.notes.push_back(fmt::format("the price of {} has no date", t.model));
            if (q.batch_share > 0 && q.batch_discount > 0) {
                double const k = 1 - q.batch_share * q.batch_discount;
                t.input = t.input * k;
                t.output = t.output * k;
                t.cached_input = t.cached_input * k;
                t.cache_write = t.cache_write * k;
                t.notes.push_back(
                    fmt::format("{:.0f} % of the traffic as batches, {:.0f} % off", 100 * q.batch_share, 100 * q.batch_discount));
            }
            out.push_back(std::move(t));
        }
    }
    if (out.empty() && q.named) {
        for (ApiPrice const& r : rows) known.push_back(r.model);
        std::sort(known.begin(), known.end());
        known.erase(std::unique(known.begin(), known.end()), known.end());
        std::string const asked = q.models.empty() ? std::string{} : q.models.front();
        if (!refused.empty()) return fail(ErrorCode::bad_value, fmt::format("\"{}\" has no tariff: {}", asked, refused), "--api");
        std::string hint = did_you_mean(asked, known);
        return fail(ErrorCode::unknown_name, fmt::format("no API price of \"{}\"", asked), "--api",
                    hint.empty() ? "planner list apis shows all of them" : hint);
    }
    std::stable_sort(out.begin(), out.end(), [](ApiTariff const& a, ApiTariff const& b) {
        if (a.first_party != b.first_party) return a.first_party;
        return a.first_party ? false : a.output < b.output;
    });
    return out;
}

/// Traffic, in millions of tokens of some time.
struct Traffic {
    double million_input = 0;
    double million_output = 0;
    double cache_hit = 0;   ///< share of the input read from the provider's cache
    double cache_write = 0; ///< share of the input written to it
};

/// A bill by what it is for.
struct ApiBill {
    Usd input{}, cached_input{}, cache_write{}, output{}, total{};
};

/// What the traffic costs at the API. `cache_hit` + `cache_write` up to 1 expected.
inline ApiBill api_bill(ApiTariff const& t, Traffic const& f) {
    ApiBill b;
    b.input = Usd{f.million_input * (1 - f.cache_hit - f.cache_write) * t.input.value()};
    b.cached_input = Usd{f.million_input * f.cache_hit * t.cached_input.value()};
    b.cache_write = Usd{f.million_input * f.cache_write * t.cache_write.value()};
    b.output = Usd{f.million_output * t.output.value()};
    b.total = b.input + b.cached_input + b.cache_write + b.output;
    return b;
}

/// $ that a million output tokens cost at the API with the input that comes with them, `input_per_output` tokens each.
inline UsdPerMillionTokens api_cost_per_million_output(ApiTariff const& t, double input_per_output, double cache_hit = 0,
                                                       double cache_write = 0) {
    return UsdPerMillionTokens{api_bill(t, {input_per_output, 1.0, cache_hit, cache_write}).total.value()};
}

} // namespace servecap
