// servecap: a workload, and the speed predicted for it
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/core/basis.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// What is asked of a deployment.
struct Workload {
    Tokens isl{1000};
    Tokens osl{1000};
    std::vector<Requests> concurrency; ///< whole deployment; empty = powers of two up to what is resident
    std::optional<RequestsPerSecond> request_rate;
    double cache_hit = 0; ///< share of input tokens found in the prefix cache, 0..1
    std::optional<Seconds> slo_ttft, slo_tpot;
};

enum class BoundBy : std::uint8_t { memory, compute, communication, overhead, kv_room, state_slots, max_num_seqs };

constexpr std::string_view to_string(BoundBy b) noexcept {
    constexpr std::array<std::string_view, 7> names{"memory",  "compute",     "communication", "overhead",
                                                    "kv_room", "state_slots", "max_num_seqs"};
    return names[static_cast<std::size_t>(b)];
}

/// Rows that a prediction rests on.
struct Evidence {
    std::string source, url, date;
    std::int64_t rows = 0;
};

/// One term of a step or of a prefill, for --explain.
struct SpeedTerm {
    std::string_view name; ///< static text: "routed experts", "KV cache", "all-reduce"...
    Seconds time{};
    std::string formula; ///< filled in the explained form only
};

/// Speed at one concurrency.
struct SpeedPoint {
    Requests concurrency{};
    Requests resident{};
    Tokens isl{}, osl{};
    Interval<Seconds> ttft, tpot;
    Interval<TokensPerSecond> output; ///< whole deployment
    Interval<TokensPerSecond> input;
    Interval<TokensPerSecond> total;
    Interval<TokensPerSecond> per_user; ///< output tok/s of one user while it decodes: 1 / TPOT
    Interval<TokensPerSecond> per_gpu;  ///< output tok/s a GPU
    Basis basis = Basis::roofline;
    std::vector<Evidence> evidence;
    BoundBy bound_by = BoundBy::memory;
    std::optional<Seconds> ttft_p90, ttft_p99; ///< with a request rate
    std::optional<bool> saturated;
    bool extrapolated = false; ///< beyond ten times the fitted range
    std::vector<SpeedTerm> decode_terms, prefill_terms;
};

} // namespace servecap
