// servecap: which of many phrases occur in a line, in one pass
// SPDX-License-Identifier: Apache-2.0
//
// Aho and Corasick, "Efficient string matching: an aid to bibliographic search" (1975): a trie of the
// phrases with failure links folded into a table of transitions, so that a log is read at a fixed cost
// a byte, whatever the number of phrases. Bytes that occur in no phrase share one column of the table.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace servecap {

/// Finds every occurrence of a fixed set of phrases. Phrases are byte strings, none of them empty.
class LineMatcher {
public:
    /// One occurrence: the phrase and where it ends.
    struct Match {
        std::size_t phrase = 0; ///< index in the list given to the constructor
        std::size_t end = 0;    ///< offset just behind the phrase
    };

    explicit LineMatcher(std::span<std::string_view const> phrases) {
        columns_of_.fill(0);
        for (std::string_view p : phrases)
            for (char c : p) {
                std::uint16_t& column = columns_of_[static_cast<unsigned char>(c)];
                if (column == 0) column = static_cast<std::uint16_t>(columns_++);
            }
        add_state();
        for (std::size_t i = 0; i < phrases.size(); ++i) {
            std::uint32_t state = 0;
            for (char c : phrases[i]) {
                std::size_t const at = cell(state, c);
                if (next_[at] == 0) {
                    std::uint32_t const fresh = add_state();
                    next_[at] = fresh;
                }
                state = next_[at];
            }
            chain_.push_back(phrase_at_[state]);
            phrase_at_[state] = static_cast<std::int32_t>(i);
        }
        link();
    }

    /// Appends the occurrences in `line` to `out`, in the order of their ends.
    void find(std::string_view line, std::vector<Match>& out) const {
        std::uint32_t state = 0;
        for (std::size_t i = 0; i < line.size(); ++i) {
            state = next_[cell(state, line[i])];
            if (!ends_[state]) continue;
            for (std::uint32_t s = state; s != 0; s = shorter_[s])
                for (std::int32_t p = phrase_at_[s]; p >= 0; p = chain_[static_cast<std::size_t>(p)])
                    out.push_back({static_cast<std::size_t>(p), i + 1});
        }
    }

private:
    [[nodiscard]] std::size_t cell(std::uint32_t state, char c) const noexcept {
        return static_cast<std::size_t>(state) * columns_ + columns_of_[static_cast<unsigned char>(c)];
    }

    std::uint32_t add_state() {
        auto const id = static_cast<std::uint32_t>(phrase_at_.size());
        next_.resize(next_.size() + columns_, 0);
        phrase_at_.push_back(-1);
        return id;
    }

    /// Breadth first: failure links become transitions.
    void link() {
        std::vector<std::uint32_t> fail(phrase_at_.size(), 0);
        shorter_.assign(phrase_at_.size(), 0);
        ends_.assign(phrase_at_.size(), 0);
        std::vector<std::uint32_t> queue;
        for (std::size_t c = 0; c < columns_; ++c)
            if (std::uint32_t const s = next_[c]; s != 0) queue.push_back(s);
        for (std::size_t head = 0; head < queue.size(); ++head) {
            std::uint32_t const s = queue[head];
            std::uint32_t const f = fail[s];
            shorter_[s] = phrase_at_[f] >= 0 ? f : shorter_[f];
            ends_[s] = static_cast<std::uint8_t>(phrase_at_[s] >= 0 || shorter_[s] != 0);
            for (std::size_t c = 0; c < columns_; ++c) {
                std::uint32_t& to = next_[static_cast<std::size_t>(s) * columns_ + c];
                std::uint32_t const over = next_[static_cast<std::size_t>(f) * columns_ + c];
                if (to != 0) {
                    fail[to] = over;
                    queue.push_back(to);
                } else {
                    to = over;
                }
            }
        }
    }

    std::size_t columns_ = 1; ///< column 0: bytes of no phrase
    std::array<std::uint16_t, 256> columns_of_{};
    std::vector<std::uint32_t> next_;
    std::vector<std::int32_t> phrase_at_; ///< a phrase that ends at the state, -1: none
    std::vector<std::int32_t> chain_;     ///< by phrase: another one that ends there
    std::vector<std::uint32_t> shorter_;  ///< nearest state on the failure path where a phrase ends
    std::vector<std::uint8_t> ends_;      ///< some phrase ends here or on the failure path
};

} // namespace servecap
