// Start-up logs: any bytes; read in pieces they say what they say in one.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <servecap/io/startup_log.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace servecap;
    std::string_view const text{reinterpret_cast<char const*>(data), size};
    ObservedStart const whole = parse_startup_log(text);
    StartupLogReader reader;
    for (std::size_t at = 0, step = 1; at < size; at += step, step = step * 3 % 101 + 1) reader.feed(text.substr(at, step));
    ObservedStart const pieces = reader.finish();
    assert(pieces.engine == whole.engine && pieces.lines == whole.lines && pieces.stage == whole.stage && pieces.starts == whole.starts);
    assert(pieces.weights == whole.weights && pieces.pool == whole.pool && pieces.kv_tokens == whole.kv_tokens);
    // The pool may be negative: engines print by how much the weights are too large.
    for (auto const& bytes : {whole.weights, whole.total, whole.kv_allocated}) assert(!bytes || bytes->value() >= 0);
    assert(!whole.kv_tokens || whole.kv_tokens->value() >= 0);
    return 0;
}
