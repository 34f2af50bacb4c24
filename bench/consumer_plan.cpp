// A small program of a consumer: does a model fit, and what does a token take? Without io/ and perf/fit.hpp.
#include <string>
#include <vector>

#include <fmt/format.h>

#include <servecap/servecap.hpp>

int main() {
    using namespace servecap;
    Model model;
    model.name = "example";
    for (int i = 0; i < 80; ++i)
        model.layers.push_back({.mixers = {Gqa{.q_heads = 64, .kv_heads = 8, .head_dim = 128, .v_head_dim = 128}},
                                .ffn = Dense{.intermediate = 28672}});
    std::string out;
    for (int tp : {1, 2, 4, 8}) {
        Bytes const token = kv_bytes_per_token(model, KvOptions{.format = KvFormat::fp8, .tp = tp});
        out += fmt::format("tp{}: {} bytes a token\n", tp, token.value());
    }
    auto const layout = parse_layout("tp8x2");
    if (!layout) {
        fmt::print("{}\n", to_line(layout.error()));
        return 2;
    }
    fmt::print("{}{} GPUs\n", out, layout->gpus());
    return 0;
}
