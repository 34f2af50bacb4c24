// Every CSV reader of the catalogue. The first byte says which; the rest is the file.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <servecap/io/rows.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace {

// A reader gives rows, or one Error with a message and a place.
template <class Rows>
void look_at(Rows const& rows) {
    if (!rows) assert(!rows.error().message.empty() && !rows.error().where.empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    if (size == 0) return 0;
    std::string_view const text{reinterpret_cast<char const*>(data) + 1, size - 1};
    switch (data[0]) {
    case 'b': look_at(read_benchmarks(text, "f.csv")); break;
    case 's': look_at(read_startups(text, "f.csv")); break;
    case 'p': look_at(read_gpu_prices(text, "f.csv")); break;
    case 'a': look_at(read_api_prices(text, "f.csv")); break;
    case 't': look_at(read_setups(text, "f.csv")); break;
    case 'c': look_at(read_coefficients(text, "f.csv")); break;
    case 'g': look_at(read_gpus(text, "f.csv")); break;
    default: {
        auto const table = read_csv_table(text, "f.csv");
        look_at(table);
        // What is written reads as the same table.
        if (table) {
            auto const again = read_csv_table(write_csv_table(*table), "f.csv");
            assert(again && again->header == table->header && again->rows == table->rows);
        }
    }
    }
    return 0;
}
