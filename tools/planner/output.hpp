// planner: where results go
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <servecap/core/result.hpp>
#include <servecap/report/page.hpp>

#include "args.hpp"

namespace planner {

/// Exit status of the program.
enum Exit : int { kAnswered = 0, kNo = 1, kBadInput = 2, kFault = 3 };

/// Writes the result to standard output, or to --output.
servecap::Result<void> emit(Args const& args, std::string_view text);

/// Colour and bars as --color, NO_COLOR and the terminal say.
servecap::PageStyle page_style(Args const& args);

/// One line on standard error.
void complain(servecap::Error const& e);
void warn(std::string_view text);

/// The words of a list with commas, without blanks around them; empty ones are passed over.
std::vector<std::string> words_of(std::string_view list);

} // namespace planner
