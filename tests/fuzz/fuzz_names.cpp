// Folding of names and the search for the nearest one: any bytes, no answer that was not offered.
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/core/text.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    std::string_view const text{reinterpret_cast<char const*>(data), std::min<std::size_t>(size, 4096)};
    std::vector<std::string> const known{"Kimi-K3.1-Pro", "DeepSeek-V4.1-Flash", "b300-sxm", "", "x"};
    assert(fold_name(fold_name(text)) == fold_name(text));
    for (std::string const& name : nearest_names(text, known)) assert(std::find(known.begin(), known.end(), name) != known.end());
    std::string_view const head = text.substr(0, 64);
    assert(edit_distance(head, head) == 0 && edit_distance(head, "") == head.size());
    assert(edit_distance(head, "b300") == edit_distance("b300", head));
    return 0;
}
