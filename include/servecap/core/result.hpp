// servecap: how a user's or a file's mistake is reported
// SPDX-License-Identifier: Apache-2.0
//
// Result<T> is tl::expected<T, Error>. An Error is for mistakes of input alone; "does not fit" is an
// answer and has types of its own. The message shows the value and what was expected; `where` is
// file:line:column as far as known; `hint` is one thing to try (often the nearest valid name).

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace servecap {

/// What kind of mistake an Error reports.
enum class ErrorCode : std::uint8_t {
    bad_usage,     ///< contradictory or impossible arguments
    unknown_name,  ///< a model, GPU, engine, price or column that is not known
    bad_value,     ///< a number or word outside what is allowed
    bad_format,    ///< a file that is not what it should be
    unsupported,   ///< understood, but not modelled
    missing,       ///< a file or required field that is not there
    overflow,      ///< sizes beyond 63 bits
};

/// A user's or file's mistake.
struct Error {
    ErrorCode code{};
    std::string message; ///< what is wrong, with the value
    std::string where;   ///< file:line:column, option or field; empty if none
    std::string hint;    ///< what was expected or the nearest valid name; empty if none
};

template <class T>
using Result = tl::expected<T, Error>;

/// Makes the failing side of a Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {}, std::string hint = {}) {
    return tl::unexpected<Error>{Error{code, std::move(message), std::move(where), std::move(hint)}};
}

/// One line: "where: message (hint)".
inline std::string to_line(Error const& e) {
    std::string s = e.where.empty() ? e.message : e.where + ": " + e.message;
    if (!e.hint.empty()) s += " (" + e.hint + ")";
    return s;
}

} // namespace servecap
