// Other people's price lists, in the format that they look like and in every other: an Error or rows with sane prices.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <servecap/io/embedded.hpp>
#include <servecap/io/price_import.hpp>
#include <servecap/io/rows.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    static auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    std::string_view const text{reinterpret_cast<char const*>(data), size};
    PriceImportOptions const options{.provider = "nebius", .date = "2026-11-01", .as_of = "2026-12-01", .gpus = *gpus};
    static_cast<void>(guess_price_format(text));
    for (PriceFormat const format : {PriceFormat::skypilot, PriceFormat::gpuhunt, PriceFormat::genai_prices, PriceFormat::models_dev,
                                     PriceFormat::litellm}) {
        auto const list = import_prices(text, "list", format, options);
        if (!list) {
            assert(!list.error().message.empty());
            continue;
        }
        // What was taken reads as rows again.
        if (!list->gpu_prices.empty()) {
            auto const again = read_gpu_prices(write_gpu_prices(list->gpu_prices), "again.csv");
            assert(again && again->size() == list->gpu_prices.size());
        }
        if (!list->api_prices.empty()) {
            auto const again = read_api_prices(write_api_prices(list->api_prices), "again.csv");
            assert(again && again->size() == list->api_prices.size());
        }
    }
    return 0;
}
