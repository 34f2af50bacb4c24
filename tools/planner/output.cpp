// planner: where results go
// SPDX-License-Identifier: Apache-2.0

#include "output.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <unistd.h>

#include <servecap/core/text.hpp>

namespace planner {

servecap::Result<void> emit(Args const& args, std::string_view text) {
    if (args.output.empty() || args.output == "-") {
        if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
            return servecap::fail(servecap::ErrorCode::bad_usage, "writing failed", "standard output");
        return {};
    }
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(args.output.c_str(), "wb"), &std::fclose};
    if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0)
        return servecap::fail(servecap::ErrorCode::bad_usage, "cannot be written", args.output, "--output wants a file in an existing folder");
    return {};
}

servecap::PageStyle page_style(Args const& args) {
    servecap::PageStyle style;
    bool const terminal = args.output.empty() && isatty(fileno(stdout)) != 0;
    char const* const no_colour = std::getenv("NO_COLOR");
    bool const plain = no_colour != nullptr && *no_colour != '\0';
    style.colour = args.color == ColorMode::always || (args.color == ColorMode::automatic && terminal && !plain);
    style.bars = args.color == ColorMode::always || (args.color == ColorMode::automatic && terminal);
    style.explain = args.explain;
    return style;
}

void complain(servecap::Error const& e) { std::fprintf(stderr, "planner: %s\n", servecap::to_line(e).c_str()); }
void warn(std::string_view text) { std::fprintf(stderr, "planner: %.*s\n", static_cast<int>(text.size()), text.data()); }

std::vector<std::string> words_of(std::string_view list) {
    std::vector<std::string> out;
    while (!list.empty()) {
        auto const comma = std::min(list.find(','), list.size());
        auto const word = servecap::trim(list.substr(0, comma));
        if (!word.empty()) out.emplace_back(word);
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return out;
}

} // namespace planner
