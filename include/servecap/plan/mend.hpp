// servecap: from a refusal to settings with which the engine starts
// SPDX-License-Identifier: Apache-2.0
//
// The engine is judged as asked; while it refuses, the cheapest flag that mends it is applied and it is
// judged again, three times at most. A plan takes the cheapest flag whatever the user gave, and says so; a
// search leaves the user's flags alone. Where no flag helps, the refusal as asked is the answer.

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/engine/engine.hpp>
#include <servecap/plan/plan.hpp>

namespace servecap {

/// Which flags may be changed.
enum class MendChoice : std::uint8_t {
    cheapest,   ///< the cheapest that helps, even one of the user's
    keep_given, ///< none of the user's
};

/// A start with the flags that were changed for it.
struct MendedStart {
    StartJudgement asked;  ///< as asked
    StartJudgement judged; ///< with the mends; the same as `asked` where it starts or no flag helps
    EngineSettings settings;
    std::vector<Mend> mends;
    bool changes_given = false; ///< one of the mends changes a flag of the user
};

namespace detail {

/// The user gave one of the flags that a fix sets; a fix can set several ("--max-num-seqs 128 --max-model-len").
inline bool was_given(std::vector<std::string> const& given, std::string_view flags) {
    return std::any_of(given.begin(), given.end(), [&](std::string const& g) {
        for (auto at = flags.find(g); at != std::string_view::npos; at = flags.find(g, at + 1)) {
            auto const end = at + g.size();
            if ((at == 0 || flags[at - 1] == ' ') && (end == flags.size() || flags[end] == ' ')) return true;
        }
        return false;
    });
}

/// The cheapest fix of flags alone (not of the layout or the GPUs) that may be taken.
inline Fix const* usable_fix(std::vector<Fix> const& fixes, std::vector<std::string> const& given, MendChoice choice) {
    for (Fix const& f : fixes)
        if (f.settings && (choice == MendChoice::cheapest || !was_given(given, f.flag))) return &f;
    return nullptr;
}

} // namespace detail

/// Judges `start` and mends a refusal. `given`: flags of the user, as typed.
inline MendedStart mend_start(StartRequest start, std::span<StartupRow const> rows, std::vector<std::string> const& given, MendChoice choice,
                              StartOptions const& options = {}) {
    MendedStart out;
    EngineSettings const asked = start.settings;
    out.asked = judge_start(start, rows, options);
    out.settings = asked;
    out.judged = out.asked;
    for (int round = 0; round < 3 && !out.judged.plan.starts; ++round) {
        Fix const* const fix = detail::usable_fix(out.judged.plan.fixes, given, choice);
        if (fix == nullptr) break;
        out.changes_given = out.changes_given || detail::was_given(given, fix->flag);
        out.mends.push_back({fix->flag, fix->value, out.judged.plan.engine_message, out.judged.plan.basis});
        out.settings = *fix->settings;
        start.settings = out.settings;
        out.judged = judge_start(start, rows, options);
    }
    if (!out.judged.plan.starts && !out.mends.empty()) { // no way out by flags
        out.mends.clear();
        out.changes_given = false;
        out.settings = asked;
        out.judged = out.asked;
    }
    return out;
}

} // namespace servecap
