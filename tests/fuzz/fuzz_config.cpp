// A Hugging Face config.json, also our own cards: an Error with a message, or a model whose bytes can be counted.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <servecap/io/hf_config.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    auto const model = model_from_config({reinterpret_cast<char const*>(data), size}, "config.json");
    if (!model) {
        assert(!model.error().message.empty());
        return 0;
    }
    assert(!model->layers.empty());
    assert(kv_bytes_per_token(*model, KvOptions{.tp = 8}).value() >= 0);
    assert(state_bytes(*model, StateOptions{}).value() >= 0);
    assert(total_params(*model).value() > 0 && active_params(*model).value() > 0);
    assert(active_params(*model) <= total_params(*model));
    return 0;
}
