// servecap: what an import noticed
// SPDX-License-Identifier: Apache-2.0
//
// Importers correct nothing silently: every drop and every doubt is a finding with its place.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace servecap {

/// Something about an imported file that a reader should know.
struct ImportFinding {
    std::string where; ///< file:line, a run, or the model in a JSON file
    std::string what;
    bool dropped = false; ///< the row was not taken
};

namespace detail {

/// Collects findings; one text with the number of its places where it repeats.
class Findings {
public:
    explicit Findings(std::vector<ImportFinding>& out) : out_{out} {}
    void add(std::string where, std::string what, bool dropped = false) {
        auto const [at, fresh] = seen_.try_emplace(what + (dropped ? "\x01" : ""), Seen{out_.size(), 1});
        if (fresh)
            out_.push_back({std::move(where), std::move(what), dropped});
        else
            ++at->second.times;
    }
    void close() {
        for (auto const& [what, s] : seen_)
            if (s.times > 1) out_[s.at].what += " (" + std::to_string(s.times) + " times)";
    }

private:
    struct Seen {
        std::size_t at;
        std::size_t times;
    };
    std::vector<ImportFinding>& out_;
    std::map<std::string, Seen> seen_;
};

} // namespace detail

} // namespace servecap
