// A layout's name: reads as an Error or as a layout whose name reads as the same layout.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <servecap/layout/layout.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    auto const layout = parse_layout({reinterpret_cast<char const*>(data), size});
    if (!layout) {
        assert(!layout.error().message.empty());
        return 0;
    }
    assert(layout->gpus() >= 1);
    auto const again = parse_layout(layout_name(*layout));
    assert(again && layout_name(*again) == layout_name(*layout) && again->gpus() == layout->gpus());
    return 0;
}
