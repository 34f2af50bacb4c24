// servecap: what an engine makes of a model's bytes
// SPDX-License-Identifier: Apache-2.0
//
// StartPlan is the answer of every engine's allocator: the budget, the pool, blocks, tokens, state
// slots, the verdict with the engine's own message, and the flags that mend a refusal. "Does not
// start" is an answer, never an Error. All byte figures are per GPU (the poorest rank) unless named.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/catalog/format.hpp>
#include <servecap/core/basis.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

enum class Verdict : std::uint8_t {
    starts,
    weights_do_not_fit,
    no_kv_memory,
    max_model_len_too_long,
    state_slots_too_few,
    free_memory_below_request,
    layout_invalid,
    unsupported,
};

constexpr std::string_view to_string(Verdict v) noexcept {
    constexpr std::array<std::string_view, 8> names{"starts",
                                                    "weights_do_not_fit",
                                                    "no_kv_memory",
                                                    "max_model_len_too_long",
                                                    "state_slots_too_few",
                                                    "free_memory_below_request",
                                                    "layout_invalid",
                                                    "unsupported"};
    return names[static_cast<std::size_t>(v)];
}

/// A flag that mends a refusal.
struct Fix {
    std::string flag;   ///< "--max-num-seqs"
    std::string value;  ///< "512"
    std::string effect; ///< what it costs or gives, in words with numbers
    /// The asked settings with this fix applied; empty when it changes the layout or the GPUs instead.
    std::optional<EngineSettings> settings;
};

/// Where the memory of one GPU goes.
struct MemoryBudget {
    Bytes visible{};       ///< what the runtime can allocate from
    double utilization = 0;
    Bytes requested{};     ///< what the engine may use
    Bytes weights{};
    Bytes activation{};    ///< peak of the profile run
    Bytes non_torch{};     ///< NCCL, CUDA context and the like
    Bytes cuda_graph{};    ///< estimate that this version subtracts, or what capture takes
};

/// A part of what one request takes of the pool, in blocks.
/// Formula: copies * weight * (constant + ceil(min(n, window) / block)); window 0 = grows without end.
struct PageRule {
    std::int64_t block = 0;    ///< tokens of a page; 0: a constant number of pages
    std::int64_t window = 0;   ///< tokens after which it stops growing
    std::int64_t constant = 0; ///< pages whatever the length
    std::int64_t copies = 1;
    double weight = 1;         ///< share of a block that one page takes
    std::int64_t flight = 0;   ///< tokens of `window` that are there only while a batch of a prompt is computed
};

struct StartPlan {
    bool fits = false;     ///< weights and one request of ISL + OSL have room with some settings
    bool starts = false;   ///< starts with the settings as asked
    Verdict verdict = Verdict::unsupported;
    std::string engine_message; ///< the engine's own number-bearing line; empty when it starts
    std::vector<std::string> risks;
    std::vector<Fix> fixes;
    Bytes shortfall{};     ///< a GPU; 0 when the weights fit

    Bytes weights_total{}; ///< of one replica, over all its GPUs
    Bytes weights{};       ///< a GPU, the fullest rank
    Bytes host_bytes{};    ///< tables kept in host memory, a replica
    KvFormat kv_format = KvFormat::bf16;
    std::string kv_cache_dtype; ///< as the engine names it
    Bytes kv_per_token{};       ///< a GPU: growing part only
    Bytes fixed_per_sequence{}; ///< a GPU: windows, rings and the like
    Bytes state_per_sequence{}; ///< a GPU: recurrent state (one slot)
    MemoryBudget budget;
    Bytes pool{};               ///< KV cache memory a GPU
    Tokens block_tokens{};
    std::int64_t num_blocks = 0;
    Bytes bytes_per_block{};
    std::int64_t blocks_per_max_request = 0; ///< blocks of one request of max_model_len
    Tokens kv_tokens{};         ///< as the engine logs it: a replica, or a DP rank where it logs ranks
    Tokens kv_tokens_low{}, kv_tokens_high{};
    std::optional<std::int64_t> state_slots; ///< recurrent models: blocks a sequence's state can take
    Requests max_num_seqs{};    ///< in force, a DP rank
    Tokens max_model_len{};     ///< in force
    Tokens max_batched_tokens{};///< in force
    Tokens longest{};           ///< longest max_model_len that would start
    double max_requests_at_max_model_len = 0;
    Basis basis = Basis::calibrated;
    std::vector<PageRule> pages_of_request; ///< what one request takes, by its length
    std::string rules_version;  ///< engine version whose rules were used
    std::vector<std::string> notes;
};

/// Blocks that one rule takes of the pool for a request of `n` tokens.
constexpr double blocks_of_rule(PageRule const& r, std::int64_t n) noexcept {
    std::int64_t const grown = r.window > 0 && n > r.window ? r.window : n;
    std::int64_t const pages = r.constant + (r.block > 0 ? ceil_div(grown, r.block) : 0);
    return static_cast<double>(r.copies * pages) * r.weight;
}

/// Blocks that one request of `n` tokens takes.
inline double blocks_of_request(StartPlan const& plan, Tokens n) noexcept {
    double sum = 0;
    for (PageRule const& r : plan.pages_of_request) sum += blocks_of_rule(r, n.value());
    return sum;
}

/// Blocks of a request of one length, in the two states that matter for how many run at once.
struct PagesOfRequest {
    double starting = 0; ///< what the engine asks at start-up: the request's prompt is being computed
    double running = 0;  ///< while it decodes: windows hold their window alone
    double in_flight = 0;///< what the batches of prompts in flight take of windows, once for the whole pool

    constexpr void add(PageRule const& r, std::int64_t n) noexcept {
        double const now = blocks_of_rule(r, n);
        starting += now;
        if (r.flight <= 0) {
            running += now;
            return;
        }
        PageRule decoding = r;
        decoding.window = r.window - r.flight + 1;
        running += blocks_of_rule(decoding, n);
        in_flight += static_cast<double>(r.copies * ceil_div(r.flight, r.block)) * r.weight;
    }
    /// Requests that `blocks` hold: one or two are being computed, the others decode.
    [[nodiscard]] constexpr std::int64_t requests(std::int64_t blocks) const noexcept {
        if (starting <= 0 || running <= 0) return 0;
        double const all = static_cast<double>(blocks);
        return static_cast<std::int64_t>(std::max(all / starting, (all - in_flight) / running));
    }
};

/// Requests of `tokens` each that the pool of one engine (a DP rank) holds at once; max_num_seqs is another limit.
/// Sliding windows give pages back as they move (vLLM's SlidingWindowManager), so only the prompts that are being
/// computed hold a batch of tokens besides. A plan without rules of pages counts bytes: growing, fixed part and state.
inline std::int64_t requests_with_room(StartPlan const& plan, Tokens tokens) noexcept {
    if (!plan.pages_of_request.empty()) {
        PagesOfRequest each;
        for (PageRule const& r : plan.pages_of_request) each.add(r, tokens.value());
        return each.requests(plan.num_blocks);
    }
    std::int64_t const each = plan.kv_per_token.value() * tokens.value() + plan.fixed_per_sequence.value() + plan.state_per_sequence.value();
    std::int64_t n = each > 0 ? plan.pool.value() / each : 0;
    if (plan.state_slots && *plan.state_slots < n) n = *plan.state_slots;
    return n;
}

} // namespace servecap
