// servecap: which rules a version of vLLM follows
// SPDX-License-Identifier: Apache-2.0
//
// The allocator changed many times; each change has the first version that shows it, from public
// sources and logs. Where only a range is known the later end is taken and `uncertain` says so to
// whoever builds intervals. Development builds named 0.1.devN and builds without a version follow the
// rules of their date. Release dates are those of public release notes and of the oldest log seen.

#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace servecap {

/// A version 0.minor.patch; `guessed` when it comes from a date or a default instead of a version string.
struct VllmVersion {
    std::int32_t minor = 33;
    std::int32_t patch = 0;
    bool v0_engine = false; ///< the first engine (before 0.8): one pool of equal blocks
    bool guessed = false;

    /// minor * 100 + patch, the number that rules compare.
    [[nodiscard]] constexpr std::int32_t number() const noexcept { return minor * 100 + (patch < 99 ? patch : 99); }
};

/// Newest version whose rules are modelled.
inline constexpr std::int32_t kNewestVllmMinor = 33;

struct VllmRelease {
    std::int32_t minor;
    std::string_view date; ///< ISO
};

/// Releases and when they appeared. 0.13, 0.27 and 0.32 are known to a fortnight only.
inline constexpr std::array<VllmRelease, 29> kVllmReleases{{
    {5, "2024-06-11"},  {6, "2024-09-05"},  {7, "2025-01-27"},  {8, "2025-03-18"},  {9, "2025-05-28"},  {10, "2025-07-24"},
    {11, "2025-10-02"}, {12, "2025-12-03"}, {13, "2025-12-18"}, {14, "2026-01-20"}, {15, "2026-01-29"}, {16, "2026-02-20"},
    {17, "2026-03-07"}, {18, "2026-03-20"}, {19, "2026-04-03"}, {20, "2026-04-27"}, {21, "2026-05-15"}, {22, "2026-06-03"},
    {23, "2026-06-18"}, {24, "2026-06-30"}, {25, "2026-07-15"}, {26, "2026-07-27"}, {27, "2026-08-12"}, {28, "2026-08-28"},
    {29, "2026-09-12"}, {30, "2026-09-27"}, {31, "2026-10-05"}, {32, "2026-10-20"}, {33, "2026-11-03"},
}};

/// The day from which a family of models runs on any build, by `model_type`: rows of it are no older. Empty: always.
constexpr std::string_view vllm_supports_since(std::string_view model_type) noexcept {
    struct Since {
        std::string_view type, date;
    };
    constexpr std::array<Since, 9> since{{{"gpt_oss", "2025-08-05"},     {"qwen3_next", "2025-09-12"},  {"qwen3_5", "2026-02-16"},
                                          {"deepseek_v4", "2026-04-27"}, {"kimi_k3", "2026-07-27"},     {"glm5_next", "2026-08-28"},
                                          {"deepseek_v41", "2026-09-12"}, {"qwen4_exp", "2026-09-20"}, {"mimo_v2", "2025-12-20"}}};
    for (Since const& s : since)
        if (s.type == model_type) return s.date;
    return {};
}

/// The newest release on an ISO date; a month ("2026-08") counts as its end; no date: the newest modelled.
constexpr VllmVersion vllm_version_at(std::string_view date) noexcept {
    VllmVersion v;
    v.guessed = true;
    if (date.size() < 7 || date[4] != '-' || date[0] < '0' || date[0] > '9') return v;
    v.minor = kVllmReleases.front().minor;
    for (VllmRelease const& r : kVllmReleases)
        if (r.date.substr(0, date.size() < 10 ? 7 : 10) <= date.substr(0, date.size() < 10 ? 7 : 10)) v.minor = r.minor;
    v.v0_engine = v.minor < 8;
    return v;
}

/// The day of a development build 0.1.devN: N counts commits of the main line, about 61 a day in 2026.
/// Anchors: dev20051 on 2026-08-31, dev24216 on 2026-11-07 (public images).
inline std::string vllm_dev_date(std::int32_t commits) {
    std::int32_t const days = (commits - 20051) * 68 / 4165; // after 2026-08-31
    std::int32_t month = 8, day = 31 + days;
    constexpr std::int32_t length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    std::int32_t year = 2026;
    while (day < 1 || day > length[month - 1]) {
        if (day < 1) {
            if (--month < 1) month = 12, --year;
            day += length[month - 1];
        } else {
            day -= length[month - 1];
            if (++month > 12) month = 1, ++year;
        }
    }
    auto const two = [](std::int32_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    return std::to_string(year) + "-" + two(month) + "-" + two(day);
}

/// Reads "0.19.0", "0.26.1rc0", "~0.24 (2026-08)", "0.31.1rc1.dev50+g...", "0.1.dev24216", "V0 ~0.7", "NIM 2.0.12"...
/// What holds no version is placed by `date`.
inline VllmVersion parse_vllm_version(std::string_view text, std::string_view date = {}) {
    auto const number_at = [&](std::size_t i) {
        std::int32_t n = 0;
        auto const [end, ec] = std::from_chars(text.data() + i, text.data() + text.size(), n);
        return std::pair{ec == std::errc{} ? n : -1, static_cast<std::size_t>(end - text.data())};
    };
    // NVIDIA NIM wraps vLLM; 1.12 and 2.0 showed the messages and defaults of 0.10 and 0.20.
    if (text.find("NIM") != std::string_view::npos) {
        VllmVersion v;
        v.guessed = true;
        // NIM 1 ran hybrid models on the first engine, which keeps states of max_num_seqs beside the pool
        v.v0_engine = text.find("NIM 1") != std::string_view::npos;
        v.minor = v.v0_engine ? 10 : 21;
        return v;
    }
    for (std::size_t i = text.find("0."); i != std::string_view::npos; i = text.find("0.", i + 1)) {
        if (i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9') continue;
        auto const [minor, after] = number_at(i + 2);
        if (minor < 2 || minor > 999) continue; // 0.1.devN carries no rules
        VllmVersion v;
        v.minor = minor;
        if (after + 1 < text.size() && text[after] == '.')
            if (auto const [patch, end] = number_at(after + 1); patch >= 0) v.patch = patch;
        if (minor > kNewestVllmMinor) v.guessed = true;
        v.v0_engine = v.minor < 8 || text.find("V0") != std::string_view::npos;
        return v;
    }
    std::string built{date};
    if (auto const dev = text.find("0.1.dev"); dev != std::string_view::npos && (date.empty() || date == "unknown"))
        if (auto const [commits, end] = number_at(dev + 7); commits > 5000) built = vllm_dev_date(commits);
    VllmVersion v = vllm_version_at(built);
    if (text.find("V0") != std::string_view::npos) {
        v.v0_engine = true;
        if (v.minor > 10) v.minor = 10;
    }
    return v;
}

/// How a version names itself in notes: "0.33".
inline std::string to_string(VllmVersion const& v) {
    std::string s = "0." + std::to_string(v.minor);
    if (v.patch > 0) s += "." + std::to_string(v.patch);
    return s;
}

/// When the check of state slots against max_num_seqs stops a start.
enum class StateSlotCheck : std::uint8_t { none, shrinks_capture, refuses };

/// The rules of one version.
struct VllmRules {
    VllmVersion version;
    double default_utilization = 0.92;
    bool subtracts_graphs = true;       ///< the graph estimate is taken off the pool
    bool linear_graph_estimate = false; ///< first + (n - 1) * second, which overestimates
    bool null_block = true;             ///< one block is kept back in the check of a full-length request
    bool tokens_by_concurrency = true;  ///< tokens = blocks / pages of a request * max_model_len
    bool two_batches_in_flight = true;  ///< async scheduling keeps two batches of window tokens
    bool packed_groups = true;          ///< V4: groups overlay one another; before: slots by page size
    bool start_block_aligns = true;     ///< hybrid block is a multiple of max(kernel rule, start block)
    std::int32_t mla_alignment = 128;   ///< kernel rule of MLA blocks in hybrid models
    StateSlotCheck slot_check = StateSlotCheck::refuses;
    bool align_by_default = true;       ///< hybrid models with prefix caching do it in align mode
    bool chunked_prefill = true;        ///< a profile run takes max_num_batched_tokens, not max_model_len
    bool capture_1024_on_blackwell = true;
    double logit_bytes = 15.0;          ///< bytes a logit of the sampler's profile run
};

/// Rules by version. Sources: public vLLM sources 0.11 to 0.33 and logs; 0.20 and 0.21 from their release notes.
constexpr VllmRules vllm_rules(VllmVersion const& v) noexcept {
    VllmRules r;
    r.version = v;
    std::int32_t const n = v.number();
    r.default_utilization = n >= 2100 ? 0.92 : 0.90;
    r.subtracts_graphs = n >= 2100;
    r.linear_graph_estimate = n < 2900;
    r.null_block = n >= 2800;
    r.tokens_by_concurrency = n >= 2101;
    r.two_batches_in_flight = n >= 2600;
    r.packed_groups = n >= 2601;
    r.start_block_aligns = n >= 1900;
    r.mla_alignment = n >= 2500 ? 128 : 64;
    r.slot_check = n >= 1900 ? StateSlotCheck::refuses : n >= 1600 ? StateSlotCheck::shrinks_capture : StateSlotCheck::none;
    r.align_by_default = n >= 3000;
    r.chunked_prefill = n >= 800 && !v.v0_engine;
    r.capture_1024_on_blackwell = n >= 3000;
    r.logit_bytes = n >= 1700 ? 15.0 : 38.7;
    return r;
}

} // namespace servecap
