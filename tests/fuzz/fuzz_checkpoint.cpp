// Headers of checkpoints: the first byte says which kind, the next how much larger the file is than the header.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <servecap/io/checkpoint.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    if (size < 2) return 0;
    std::string_view const text{reinterpret_cast<char const*>(data) + 2, size - 2};
    auto const file_size = static_cast<std::int64_t>(text.size()) + 16 * data[1];
    switch (data[0]) {
    case 's': {
        CheckpointBytes bytes;
        auto const read = parse_safetensors(text, file_size, "f.safetensors", bytes);
        if (!read) {
            assert(!read.error().message.empty() && bytes.tensors == 0);
            break;
        }
        // The tensors fill the data: nothing is counted twice, nothing is left over.
        Bytes sum{};
        for (Bytes const b : bytes.by_class) sum += b;
        assert(sum == bytes.payload && bytes.payload.value() >= 0 && bytes.payload.value() < file_size);
        break;
    }
    case 'i': {
        auto const index = parse_safetensors_index(text, "model.safetensors.index.json");
        if (index) assert(!index->files.empty());
        break;
    }
    case 'g': {
        auto const gguf = parse_gguf(text, file_size, "f.gguf");
        if (gguf) {
            assert(gguf->bytes.payload.value() >= 0 && gguf->bytes.payload.value() <= file_size);
            static_cast<void>(config_from_gguf(gguf->meta, "f.gguf"));
        }
        break;
    }
    case 'p': {
        auto const json = parse_json(text, "params.json");
        if (json) static_cast<void>(config_from_params(*json, "params.json"));
        break;
    }
    default: break;
    }
    return 0;
}
