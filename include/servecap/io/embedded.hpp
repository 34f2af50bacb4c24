// servecap: the catalogue that is built into the program (target servecap::data)
// SPDX-License-Identifier: Apache-2.0
//
// The build turns every CSV and JSON file of data/ into bytes of a static library. Names are paths
// below data/: "gpus.csv", "models/Kimi-K3.json". They are in sorted order.

#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace servecap {

struct EmbeddedFile {
    std::string_view name;
    std::string_view text;
};

/// Number of embedded files. Defined by servecap::data.
std::size_t embedded_file_count() noexcept;
/// The file at `i` < embedded_file_count(), in the order of names. Defined by servecap::data.
EmbeddedFile embedded_file(std::size_t i) noexcept;

/// The text of the file called `name`, if there is one.
inline std::optional<std::string_view> find_embedded(std::string_view name) noexcept {
    std::size_t low = 0, high = embedded_file_count();
    while (low < high) {
        std::size_t const mid = (low + high) / 2;
        EmbeddedFile const f = embedded_file(mid);
        if (f.name == name) return f.text;
        if (f.name < name)
            low = mid + 1;
        else
            high = mid;
    }
    return std::nullopt;
}

} // namespace servecap
