// servecap: small text helpers shared by every stage
// SPDX-License-Identifier: Apache-2.0
//
// Names are compared without case and separators, so that "Kimi_K3.1" and "kimi-k3.1" are one name;
// the nearest valid name is found by edit distance (Damerau-Levenshtein, adjacent swaps count one).

#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servecap {

/// ASCII lower case; locale-free.
inline std::string to_lower(std::string_view s) {
    std::string r{s};
    for (char& c : r)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return r;
}

/// `s` without leading and trailing blanks.
inline std::string_view trim(std::string_view s) noexcept {
    auto const first = s.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1);
}

/// Lower case, with '_', ' ' and '/' read as '-': the form in which names are compared.
inline std::string fold_name(std::string_view s) {
    std::string r = to_lower(trim(s));
    for (char& c : r)
        if (c == '_' || c == ' ' || c == '/') c = '-';
    return r;
}

/// Number of insertions, deletions, replacements and adjacent swaps that turn `a` into `b`.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        now[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            std::size_t const cost = a[i - 1] == b[j - 1] ? 0 : 1;
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + cost});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(now);
    }
    return last[b.size()];
}

/// The up to `most` names of `known` nearest to `asked` (containing it, or at small edit distance), best first.
inline std::vector<std::string> nearest_names(std::string_view asked, std::span<std::string const> known, std::size_t most = 3) {
    struct Scored {
        std::size_t score;
        std::string const* name;
    };
    std::string const want = fold_name(asked).substr(0, 80);
    std::vector<Scored> scored;
    for (std::string const& name : known) {
        std::string const have = fold_name(name);
        std::size_t d = edit_distance(want, have);
        if (want.size() >= 3 && (have.find(want) != std::string::npos || (have.size() >= 3 && want.find(have) != std::string::npos)))
            d = std::min<std::size_t>(d, 2);
        if (d <= std::max<std::size_t>(2, want.size() / 3)) scored.push_back({d, &name});
    }
    std::stable_sort(scored.begin(), scored.end(), [](Scored const& a, Scored const& b) {
        return a.score != b.score ? a.score < b.score : *a.name < *b.name;
    });
    std::vector<std::string> out;
    for (std::size_t i = 0; i < scored.size() && out.size() < most; ++i) out.push_back(*scored[i].name);
    return out;
}

/// "did you mean A, B or C?", or an empty string when nothing is near.
inline std::string did_you_mean(std::string_view asked, std::span<std::string const> known) {
    auto const near = nearest_names(asked, known);
    if (near.empty()) return {};
    std::string s = "did you mean " + near[0];
    for (std::size_t i = 1; i < near.size(); ++i) s += (i + 1 == near.size() ? " or " : ", ") + near[i];
    return s + "?";
}

} // namespace servecap
