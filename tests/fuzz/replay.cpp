// Runs one fuzz target over the files of some folders, without a fuzzer: any compiler, any machine.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#define FUZZ(name) extern "C" int fuzz_##name(std::uint8_t const* data, std::size_t size);
#include <targets.inc>
#undef FUZZ

namespace {

using Target = int (*)(std::uint8_t const*, std::size_t);

Target find(std::string_view asked) {
#define FUZZ(name)                                                                                                                 \
    if (asked == #name) return fuzz_##name;
#include <targets.inc>
#undef FUZZ
    return nullptr;
}

} // namespace

int main(int argc, char** argv) {
    Target const target = argc >= 3 ? find(argv[1]) : nullptr;
    if (target == nullptr) {
        std::fputs("usage: servecap_replay TARGET FOLDER...\n", stderr);
        return 2;
    }
    int count = 0;
    for (int i = 2; i < argc; ++i)
        for (auto const& entry : std::filesystem::recursive_directory_iterator{argv[i]}) {
            if (!entry.is_regular_file()) continue;
            std::ifstream file{entry.path(), std::ios::binary};
            std::string const text{std::istreambuf_iterator<char>{file}, {}};
            // A copy of just that size, so that a read beyond the end is one beyond the allocation too.
            std::vector<std::uint8_t> const copy(text.begin(), text.end());
            target(copy.data(), copy.size());
            ++count;
        }
    std::printf("%s: %d inputs\n", argv[1], count);
    return count > 0 ? 0 : 1;
}
