// Benchmark reports of other tools, in the format that they look like and in every other: an Error, or rows that read again.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <servecap/io/embedded.hpp>
#include <servecap/io/import_bench.hpp>
#include <servecap/io/rows.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    static auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    static auto const names = NameMap::read(*find_embedded("names.csv"), "names.csv");
    std::string_view const text{reinterpret_cast<char const*>(data), size};
    BenchImportOptions options;
    options.gpus = *gpus;
    options.names = &*names;
    auto const guessed = guess_bench_format(text);
    for (std::size_t i = 0; i < kBenchFormats.size(); ++i) {
        auto const format = static_cast<BenchFormat>(i);
        auto const r = import_bench(text, "runs_h100_tp4/x.json", format, options);
        if (!r) {
            assert(!r.error().message.empty());
            continue;
        }
        assert(static_cast<std::int64_t>(r->rows.size()) <= r->read);
        // What was taken reads as rows again; a file that is of this format is recognised as it.
        auto const again = read_benchmarks(write_benchmarks(r->rows), "again.csv");
        assert(again && again->size() == r->rows.size());
        if (format != BenchFormat::serving_text && format != BenchFormat::trtllm) assert(guessed);
    }
    return 0;
}
