// servecap: which price an hour of GPUs is planned with
// SPDX-License-Identifier: Apache-2.0
//
// Prices of one GPU differ 3 to 5 times between providers, so a plan names the rows it used. Without a wish: the
// median over providers of their newest on-demand row of medium or high confidence. Rows of less confidence are used
// only where there are no others, and marked. Without any row there is no price: nothing is ever taken as $0.
// What is no offer of that kind stays apart: community hosts, market indices, averages of one session, capacity
// blocks, cost models.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/rows.hpp>
#include <servecap/core/basis.hpp>
#include <servecap/core/date.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// Prices of a GPU-hour outside of this are asked about: a slip of unit (an instance, a second, a month) is likelier.
inline constexpr double kLeastUsdPerGpuHour = 0.05;
inline constexpr double kMostUsdPerGpuHour = 100.0;
/// Prices older than this are warned about.
inline constexpr std::int64_t kStaleDays = 90;

/// What is known about the wanted price.
struct PriceQuery {
    std::string gpu;                      ///< id in the catalogue
    std::int32_t gpus = 1;                ///< of the whole deployment
    std::optional<UsdPerHour> deployment; ///< --price: of the whole deployment
    std::optional<UsdPerHour> per_gpu;    ///< --price-gpu-hour
    std::string provider;                 ///< --price-source; empty = any
    std::string kind = "on-demand";       ///< on-demand, spot, reserved, or a price type as the rows name it
    std::string as_of;                    ///< ISO day from which ages count; later rows are not used
    bool force = false;                   ///< accept an implausible price
};

/// The price of the deployment, and where it comes from.
struct PriceChoice {
    UsdPerHour per_hour{}; ///< whole deployment
    UsdPerHour per_gpu{};
    UsdPerHour low{}, high{}; ///< whole deployment: range of the rows; both equal per_hour when given by the user
    std::string source;       ///< "given", "RunPod", "median of 6 providers (Nebius, RunPod)"
    std::string url, date, kind;
    Confidence confidence = Confidence::high;
    std::vector<GpuPrice> rows;           ///< one a provider, by price
    std::optional<std::int64_t> age_days; ///< of the oldest row that makes the price; empty when undated or given
    Basis basis = Basis::measured;        ///< measured: rows; assumed: given on the command line
};

/// A price, or why there is none.
struct PriceFinding {
    std::optional<PriceChoice> price;
    std::string reason;                ///< why there is none; empty otherwise
    std::vector<std::string> warnings; ///< stale or doubtful figures
};

constexpr std::string_view to_string(Confidence c) noexcept {
    constexpr std::array<std::string_view, 4> names{"unverified", "low", "medium", "high"};
    return names[static_cast<std::size_t>(c)];
}

/// Does a row of `type` belong to the asked `kind`? "reserved" takes every commitment; other words match as written.
inline bool is_price_kind(std::string_view type, std::string_view kind) noexcept {
    if (type == kind) return true;
    return kind == "reserved" && (type.substr(0, 8) == "reserved" || type.substr(0, 9) == "committed");
}

/// Is this type something that one can order, alone and by its name? Indices, averages, quotes and cost models are not.
inline bool is_offer(std::string_view type) noexcept {
    return type == "on-demand" || type == "spot" || type == "capacity-block" || type == "flex-start" || type == "monthly-contract" ||
           type.starts_with("reserved") || type.starts_with("committed") || type.starts_with("cluster-");
}

/// Years that a reserved or committed price binds; 0 when it does not say ("cluster-2w-1y" is a range).
inline int commitment_years(std::string_view type) noexcept {
    if (!type.starts_with("reserved") && !type.starts_with("committed")) return 0;
    auto const dash = type.rfind('-');
    if (dash == std::string_view::npos || dash + 2 >= type.size() || type[dash + 2] != 'y') return 0;
    char const c = type[dash + 1];
    return c >= '1' && c <= '9' ? c - '0' : 0;
}

/// Refuses what cannot be a price: not a number, not positive, and without `force` below 0.05 or above 100 $ a GPU-hour.
inline std::optional<Error> price_mistake(UsdPerHour per_gpu, std::string_view where, bool force) {
    double const v = per_gpu.value();
    if (!std::isfinite(v) || v <= 0)
        return Error{ErrorCode::bad_value, fmt::format("{} $/h is no price", v), std::string{where}, "expected more than 0"};
    if (!force && (v < kLeastUsdPerGpuHour || v > kMostUsdPerGpuHour))
        return Error{ErrorCode::bad_value, fmt::format("{:.4g} $ a GPU-hour is implausible", v), std::string{where},
                     fmt::format("expected {} to {} $ a GPU-hour; --force accepts it", kLeastUsdPerGpuHour, kMostUsdPerGpuHour)};
    return std::nullopt;
}

namespace detail {

/// Is `a` a better row of one provider than `b`? Newer first; of the same day the one sold in the asked number of
/// GPUs, the shorter commitment, the cheaper.
inline bool better_offer(GpuPrice const& a, GpuPrice const& b, std::int32_t gpus) {
    if (a.origin.user != b.origin.user) return a.origin.user;
    std::string_view const da = is_iso_date(a.date) ? std::string_view{a.date} : std::string_view{};
    std::string_view const db = is_iso_date(b.date) ? std::string_view{b.date} : std::string_view{};
    if (da != db) return da > db;
    bool const ua = a.gpus_per_unit == gpus, ub = b.gpus_per_unit == gpus;
    if (ua != ub) return ua;
    int const ca = commitment_years(a.price_type), cb = commitment_years(b.price_type);
    if (ca != cb) return ca < cb;
    return *a.per_gpu < *b.per_gpu;
}

/// The best row of each provider, cheapest first.
inline std::vector<GpuPrice> best_by_provider(std::vector<GpuPrice> rows, std::int32_t gpus) {
    std::stable_sort(rows.begin(), rows.end(), [&](GpuPrice const& a, GpuPrice const& b) {
        if (a.provider != b.provider) return a.provider < b.provider;
        return better_offer(a, b, gpus);
    });
    rows.erase(
        std::unique(rows.begin(), rows.end(), [](GpuPrice const& a, GpuPrice const& b) { return a.provider == b.provider; }),
        rows.end());
    std::stable_sort(rows.begin(), rows.end(), [](GpuPrice const& a, GpuPrice const& b) { return *a.per_gpu < *b.per_gpu; });
    return rows;
}

inline std::string list_of(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::string s;
    for (auto const& n : names) s += (s.empty() ? "" : ", ") + n;
    return s;
}

} // namespace detail

/// Chooses the price of an hour of the deployment. `rows` may hold other GPUs. A user's own rows (--prices) come before
/// the catalogue's of the same provider, and alone count where there are any of the asked kind.
inline Result<PriceFinding> choose_price(PriceQuery const& q, std::span<GpuPrice const> rows) {
    PriceFinding found;
    double const n = std::max(1, q.gpus);
    if (q.deployment && q.per_gpu)
        return fail(ErrorCode::bad_usage, "both --price and --price-gpu-hour are given", "--price", "give one of them");
    if (q.deployment || q.per_gpu) {
        UsdPerHour const each = q.per_gpu ? *q.per_gpu : *q.deployment / n;
        if (auto mistake = price_mistake(each, q.per_gpu ? "--price-gpu-hour" : "--price", q.force))
            return tl::unexpected<Error>{std::move(*mistake)};
        PriceChoice c;
        c.per_gpu = each;
        c.per_hour = q.deployment ? *q.deployment : each * n;
        c.low = c.high = c.per_hour;
        c.source = "given";
        c.kind = "given";
        c.date = q.as_of;
        c.basis = Basis::assumed;
        found.price = std::move(c);
        return found;
    }

    // "oracle" is Oracle OCI, where no provider is called just so.
    std::string const asked = fold_name(q.provider);
    bool const exact = std::any_of(rows.begin(), rows.end(),
                                   [&](GpuPrice const& r) { return r.gpu == q.gpu && fold_name(r.provider) == asked; });
    auto const is_asked = [&](std::string const& provider) {
        std::string const name = fold_name(provider);
        return name == asked || (!exact && name.starts_with(asked + "-"));
    };

    std::vector<GpuPrice> of_kind;
    std::vector<std::string> kinds, providers;
    std::size_t later = 0;
    for (GpuPrice const& r : rows) {
        if (r.gpu != q.gpu || !r.per_gpu) continue;
        if (!q.as_of.empty() && days_between(r.date, q.as_of).value_or(0) < 0) {
            ++later;
            continue;
        }
        providers.push_back(r.provider);
        if (!q.provider.empty() && !is_asked(r.provider)) continue;
        kinds.push_back(r.price_type);
        if (is_price_kind(r.price_type, q.kind)) of_kind.push_back(r);
    }
    if (!q.provider.empty() && kinds.empty()) {
        std::sort(providers.begin(), providers.end());
        providers.erase(std::unique(providers.begin(), providers.end()), providers.end());
        std::string hint = did_you_mean(q.provider, providers);
        if (hint.empty()) hint = providers.empty() ? "no price of this GPU is known" : "known: " + detail::list_of(providers);
        return fail(ErrorCode::unknown_name, fmt::format("no price of {} by \"{}\"", q.gpu, q.provider), "--price-source", hint);
    }
    if (of_kind.empty()) {
        found.reason = kinds.empty()
                           ? fmt::format("no price of {} is known; give --price or --price-gpu-hour", q.gpu)
                           : fmt::format("no {} price of {} is known{}, only {}; give --price, or --price-kind", q.kind, q.gpu,
                                         q.provider.empty() ? "" : " from " + q.provider, detail::list_of(kinds));
        if (later > 0) found.reason += fmt::format(" ({} rows are later than {})", later, q.as_of);
        return found;
    }
    if (std::any_of(of_kind.begin(), of_kind.end(), [](GpuPrice const& r) { return r.origin.user; }))
        std::erase_if(of_kind, [](GpuPrice const& r) { return !r.origin.user; });

    std::vector<GpuPrice> trusted;
    for (GpuPrice const& r : of_kind)
        if (r.confidence >= Confidence::medium) trusted.push_back(r);
    bool const doubtful = trusted.empty();
    auto offers = detail::best_by_provider(doubtful ? of_kind : trusted, q.gpus);
    for (GpuPrice const& r : offers)
        if (auto mistake = price_mistake(*r.per_gpu, fmt::format("{}:{}", r.origin.file, r.origin.line), q.force))
            return tl::unexpected<Error>{std::move(*mistake)};

    PriceChoice c;
    std::size_t const mid = offers.size() / 2;
    std::vector<GpuPrice const*> used{&offers[mid]};
    if (offers.size() % 2 == 0) used.insert(used.begin(), &offers[mid - 1]);
    c.per_gpu = (*used.front()->per_gpu + *used.back()->per_gpu) / 2.0;
    c.per_hour = c.per_gpu * n;
    c.low = *offers.front().per_gpu * n;
    c.high = *offers.back().per_gpu * n;
    c.kind = q.kind;
    c.confidence = std::min(used.front()->confidence, used.back()->confidence);
    c.url = used.front()->url;
    c.date = std::min(used.front()->date, used.back()->date);
    if (offers.size() == 1)
        c.source = offers[0].provider;
    else
        c.source = fmt::format("median of {} providers ({})", offers.size(),
                               used.size() == 1 ? used[0]->provider : used[0]->provider + ", " + used[1]->provider);

    bool undated = false;
    for (GpuPrice const* r : used) {
        auto const age = q.as_of.empty() ? std::nullopt : days_between(r->date, q.as_of);
        if (!age && !is_iso_date(r->date)) undated = true;
        if (age) c.age_days = std::max(c.age_days.value_or(0), *age);
    }
    if (undated) c.age_days.reset();
    if (c.age_days && *c.age_days > kStaleDays)
        found.warnings.push_back(fmt::format("the price of {} is {} days old ({}, {})", q.gpu, *c.age_days, c.source, c.date));
    if (undated) found.warnings.push_back(fmt::format("the price of {} has no date ({})", q.gpu, c.source));
    if (doubtful)
        found.warnings.push_back(
            fmt::format("only prices of {} confidence are known for {}: {}", to_string(c.confidence), q.gpu, c.source));
    c.rows = std::move(offers);
    found.price = std::move(c);
    return found;
}

} // namespace servecap
