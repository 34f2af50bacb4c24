// servecap: what it takes, in time and money, until the first token
// SPDX-License-Identifier: Apache-2.0
//
// setup = download (bytes / rate) + start. start = reading the weights (bytes / rate of the loader) + compiling,
// tuning and graph capture + the rest (container, processes). A rented node is paid all the while, so it costs
// usd_per_hour * setup_s / 3600 every session, not every month; spread over the session's tokens it can double $/M.
// A measured row of the same model on the same GPUs is used as it is; what is missing is filled from the median rate
// of the other rows, with their spread as the interval. Data: data/setups.csv.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/rows.hpp>
#include <servecap/core/basis.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// What is to be set up.
struct SetupRequest {
    std::span<std::string const> model_names; ///< every spelling under which rows may know the model
    std::string gpu;
    std::int32_t gpus = 1;                       ///< of the deployment
    std::int32_t gpus_per_replica = 1;           ///< copies start side by side, so a row of one copy counts
    std::string engine;                          ///< empty = any
    std::optional<Bytes> checkpoint;             ///< files on disk
    std::optional<BytesPerSecond> download_rate; ///< given; else from rows
    std::optional<BytesPerSecond> read_rate;     ///< given; else from rows by loader
    std::optional<Seconds> compile;              ///< compile, tuning, capture: given; else from rows
    std::string loader;                          ///< "fastsafetensors", "default"; empty = default
    bool downloaded = false;                     ///< the files are there already
    std::int32_t failed_starts = 0;              ///< starts that fail (at graph capture, say) before the one that works
};

/// Time from an empty disk to the first answer.
struct SetupTime {
    Interval<Seconds> download{}, start{}, failed{};
    Interval<Seconds> total{};
    bool known = false;           ///< false: neither a row nor the size of the files is known
    Basis basis = Basis::assumed; ///< measured: one row gave all of it; calibrated: rates of other rows; assumed: given
    std::string source, date;
    std::vector<std::string> notes;
};

namespace detail {

/// Median with the least and the greatest of some numbers; nothing of none.
inline std::optional<Interval<double>> spread(std::vector<double> v) {
    if (v.empty()) return std::nullopt;
    std::sort(v.begin(), v.end());
    std::size_t const m = v.size() / 2;
    return Interval<double>{v.size() % 2 != 0 ? v[m] : (v[m - 1] + v[m]) / 2.0, v.front(), v.back()};
}

/// Seconds that `bytes` take at a rate in bytes a second; the fastest rate gives the low end.
inline Interval<Seconds> time_at(Bytes bytes, Interval<double> const& rate) {
    double const n = static_cast<double>(bytes.value());
    return {Seconds{n / rate.value}, Seconds{n / rate.high}, Seconds{n / rate.low}};
}

inline Interval<Seconds> operator+(Interval<Seconds> const& a, Interval<Seconds> const& b) {
    return {a.value + b.value, a.low + b.low, a.high + b.high};
}

} // namespace detail

/// How long the set-up takes, from rows and what is given.
inline SetupTime setup_time(SetupRequest const& q, std::span<SetupRow const> rows) {
    using detail::operator+;
    SetupTime t;
    auto const same_model = [&](SetupRow const& r) {
        return std::find(q.model_names.begin(), q.model_names.end(), r.model) != q.model_names.end();
    };
    // Rows of this deployment: those that know most count; several of one worth give their median and spread.
    std::vector<SetupRow const*> same;
    auto const worth = [&](SetupRow const& r) {
        return (r.origin.user ? 8 : 0) + (r.download && r.start ? 4 : 0) + (q.engine.empty() || r.engine == q.engine ? 1 : 0);
    };
    for (SetupRow const& r : rows) {
        if (!same_model(r) || r.gpu != q.gpu || !r.start) continue;
        if (r.n_gpus != q.gpus && r.n_gpus != q.gpus_per_replica) continue;
        if (!q.loader.empty() && !r.loader.empty() && r.loader != q.loader) continue;
        if (!same.empty() && worth(r) < worth(*same.front())) continue;
        if (!same.empty() && worth(r) > worth(*same.front())) same.clear();
        same.push_back(&r);
    }
    SetupRow const* const own = same.empty() ? nullptr : same.front();
    std::string const loader = !q.loader.empty() ? q.loader : "default";
    std::vector<double> download_rates, read_rates, read_rates_any, inits, rests;
    for (SetupRow const& r : rows) {
        if (r.bytes_on_disk && r.download && r.download->value() > 0)
            download_rates.push_back(*r.bytes_on_disk / Bytes{1} / r.download->value());
        if (r.bytes_on_disk && r.weights && r.weights->value() > 0) {
            double const rate = *r.bytes_on_disk / Bytes{1} / r.weights->value();
            read_rates_any.push_back(rate);
            if (r.loader == loader) read_rates.push_back(rate);
        }
        if (r.engine_init) inits.push_back(r.engine_init->value());
        if (r.engine_init && r.weights && r.start)
            rests.push_back(std::max(0.0, (*r.start - *r.weights - *r.engine_init).value()));
    }
    bool estimated = false, given = false;

    if (q.downloaded) {
        t.notes.push_back("the files are there already: no download");
    } else if (own != nullptr && own->download && !q.download_rate) {
        t.download = Interval<Seconds>::point(*own->download);
    } else {
        Bytes size = q.checkpoint.value_or(Bytes{0});
        if (size.value() == 0 && own != nullptr) size = own->bytes_on_disk.value_or(Bytes{0});
        auto const rate = q.download_rate ? std::optional<Interval<double>>{Interval<double>::point(q.download_rate->value())}
                                          : detail::spread(download_rates);
        if (size.value() == 0 || !rate) {
            t.notes.push_back(size.value() == 0 ? "size of the files not known: no download time" : "no download rate known");
            return t;
        }
        t.download = detail::time_at(size, *rate);
        (q.download_rate ? given : estimated) = true;
        if (!q.download_rate)
            t.notes.push_back(fmt::format("download at {:.2f} GB/s, the median of {} measured downloads ({:.2f} to {:.2f})",
                                          rate->value / 1e9, download_rates.size(), rate->low / 1e9, rate->high / 1e9));
    }

    if (own != nullptr && !q.read_rate && !q.compile) {
        std::vector<double> starts;
        for (SetupRow const* r : same) starts.push_back(r->start->value());
        auto const s = *detail::spread(starts);
        t.start = {Seconds{s.value}, Seconds{s.low}, Seconds{s.high}};
        if (same.size() > 1) t.notes.push_back(fmt::format("median of {} measured starts", same.size()));
        t.source = own->source;
        t.date = own->date;
        if (!own->state.empty()) t.notes.push_back("measured start: " + own->state);
    } else {
        auto const rate = q.read_rate          ? std::optional<Interval<double>>{Interval<double>::point(q.read_rate->value())}
                          : read_rates.empty() ? detail::spread(read_rates_any)
                                               : detail::spread(read_rates);
        auto const init =
            q.compile ? std::optional<Interval<double>>{Interval<double>::point(q.compile->value())} : detail::spread(inits);
        if (!q.checkpoint || !rate || !init) {
            t.notes.push_back(!q.checkpoint ? "size of the files not known: no start time"
                                            : "no start was measured that a rate could be taken from");
            return t;
        }
        auto const rest = detail::spread(rests).value_or(Interval<double>{});
        t.start =
            detail::time_at(*q.checkpoint, *rate) +
            Interval<Seconds>{Seconds{init->value + rest.value}, Seconds{init->low + rest.low}, Seconds{init->high + rest.high}};
        (q.read_rate && q.compile ? given : estimated) = true;
        t.notes.push_back(
            fmt::format("start = reading at {:.2f} GB/s ({}) + {:.0f} s of compiling and capture + {:.0f} s around them",
                        rate->value / 1e9, loader, init->value, rest.value));
    }
    if (q.failed_starts > 0) {
        double const n = q.failed_starts;
        if (own != nullptr && own->first_launch_to_ready && own->start) {
            t.failed = Interval<Seconds>::point((*own->first_launch_to_ready - *own->start) * n);
            t.notes.push_back("a failed first start, as measured");
        } else {
            t.failed = {t.start.value * n, t.start.low * n, t.start.high * n};
            t.notes.push_back("a failed start is taken to last as long as one that works");
        }
    }
    t.total = t.download + t.start + t.failed;
    t.known = true;
    t.basis = estimated ? Basis::calibrated : given ? Basis::assumed : Basis::measured;
    return t;
}

/// Dollars paid before the first token. Formula: usd_per_hour * seconds / 3600.
inline Interval<Usd> setup_cost(SetupTime const& t, UsdPerHour price) {
    return {price * t.total.value, price * t.total.low, price * t.total.high};
}

/// A rented session: set-up, then serving.
struct SessionCost {
    Usd setup{}, serving{}, total{};
    double setup_share = 0;              ///< of the session's cost, 0 to 1
    UsdPerMillionTokens while_serving{}; ///< $/M output as if set-up were free
    UsdPerMillionTokens all_in{};        ///< $/M output with the set-up spread over the session's tokens
};

/// Cost of a session of `setup` and `serving` at `price`, making `output` tokens a second while it serves.
inline SessionCost session_cost(UsdPerHour price, Seconds setup, Seconds serving, TokensPerSecond output) {
    SessionCost s;
    s.setup = price * setup;
    s.serving = price * serving;
    s.total = s.setup + s.serving;
    s.setup_share = s.total.value() > 0 ? s.setup / s.total : 0.0;
    double const millions = output.value() * serving.value() / 1e6;
    if (millions > 0) {
        s.while_serving = UsdPerMillionTokens{s.serving.value() / millions};
        s.all_in = UsdPerMillionTokens{s.total.value() / millions};
    }
    return s;
}

} // namespace servecap
