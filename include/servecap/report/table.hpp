// servecap: plain-text and Markdown tables
// SPDX-License-Identifier: Apache-2.0
//
// A table is rows of cells; columns are as wide as their widest cell. Width counts code points, not
// bytes, so that bars and arrows line up.

#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servecap {

/// Columns that a terminal needs for `s`: its code points (no wide or combining characters are printed).
inline std::size_t display_width(std::string_view s) noexcept {
    std::size_t n = 0;
    for (char const c : s) n += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    return n;
}

/// A table of text cells.
class TextTable {
public:
    enum class Align : unsigned char { left, right };

    /// Adds a column with its header.
    TextTable& column(std::string header, Align align = Align::right) {
        headers_.push_back(std::move(header));
        aligns_.push_back(align);
        return *this;
    }

    /// Adds a row; missing cells are empty.
    void row(std::vector<std::string> cells) {
        cells.resize(headers_.size());
        rows_.push_back(std::move(cells));
    }

    [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

    /// The table for a terminal: two blanks between columns, `indent` before the first.
    [[nodiscard]] std::string text(std::string_view indent = "") const {
        std::vector<std::size_t> width(headers_.size());
        for (std::size_t c = 0; c < headers_.size(); ++c) {
            width[c] = display_width(headers_[c]);
            for (auto const& r : rows_) width[c] = std::max(width[c], display_width(r[c]));
        }
        std::string out;
        auto const line = [&](std::vector<std::string> const& cells) {
            std::string s{indent};
            for (std::size_t c = 0; c < cells.size(); ++c) {
                std::string const pad(width[c] - display_width(cells[c]), ' ');
                if (c > 0) s += "  ";
                s += aligns_[c] == Align::right ? pad + cells[c] : cells[c] + pad;
            }
            s.erase(s.find_last_not_of(' ') + 1);
            out += s + "\n";
        };
        line(headers_);
        for (auto const& r : rows_) line(r);
        return out;
    }

    /// The table in Markdown; `|` in cells is escaped.
    [[nodiscard]] std::string markdown() const {
        auto const cell = [](std::string const& s) {
            std::string r;
            for (char const ch : s) {
                if (ch == '|') r += '\\';
                r += ch == '\n' ? ' ' : ch;
            }
            return r;
        };
        std::string out = "|";
        for (auto const& h : headers_) out += " " + cell(h) + " |";
        out += "\n|";
        for (auto const a : aligns_) out += a == Align::right ? "---:|" : "---|";
        out += "\n";
        for (auto const& r : rows_) {
            out += "|";
            for (auto const& c : r) out += " " + cell(c) + " |";
            out += "\n";
        }
        return out;
    }

    [[nodiscard]] std::vector<std::string> const& headers() const noexcept { return headers_; }
    [[nodiscard]] std::vector<std::vector<std::string>> const& rows() const noexcept { return rows_; }

private:
    std::vector<std::string> headers_;
    std::vector<Align> aligns_;
    std::vector<std::vector<std::string>> rows_;
};

} // namespace servecap
