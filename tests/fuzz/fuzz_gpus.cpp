// "b300x8" and the like, against the embedded catalogue: an Error, or a set that can be built.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/rows.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    static auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    assert(gpus);
    auto const set = parse_gpus({reinterpret_cast<char const*>(data), size}, *gpus);
    if (!set) {
        assert(!set.error().message.empty() && set.error().message.size() < 400);
        return 0;
    }
    assert(set->count >= 1 && set->nodes >= 1 && set->nodes <= set->count && set->domain() >= 1);
    return 0;
}
