// Bytes of recurrent states; figures are checked against logged page paddings and published constants.
#include <catch.hpp>

#include <servecap/memory/kv.hpp>
#include <servecap/memory/state.hpp>

#include "handmade_models.hpp"

using namespace servecap;

TEST_CASE("memory: the KDA state of Kimi K3 is 449,372,160 bytes a sequence, 56,171,520 on a rank of TP8 (aiconfigurator)") {
    Model const k3 = handmade::kimi_k3();
    CHECK(state_bytes(k3, {}) == Bytes{449372160});
    CHECK(state_bytes(k3, {.tp = 8}) == Bytes{56171520});
    CHECK(state_bytes(k3.layers[0].mixers[0], {.tp = 8}) == Bytes{814080});
    // KDA keeps fp32 whatever is asked
    CHECK(state_bytes(k3, {.recurrent_bytes = 2}) == Bytes{449372160});
}

TEST_CASE("memory: one user of 1,048,576 tokens of Kimi K3 takes 29.44 GB, one of 8,192 takes 0.676 GB") {
    // bf16 latents of one rank and the state of the whole model, as a published guide counts it (29.5 and 0.7 there)
    Model const k3 = handmade::kimi_k3();
    auto const user = [&](std::int64_t n) { return kv_growing_bytes(k3, {}, Tokens{n}) + state_bytes(k3, {}); };
    CHECK(in_gb(user(1048576)) == Approx(29.44).epsilon(0.0002));
    CHECK(in_gb(user(8192)) == Approx(0.676).epsilon(0.0005));
}

TEST_CASE("memory: states of the other families") {
    Model const q = handmade::qwen36_27b();
    CHECK(state_bytes(q.layers[0].mixers[0], {}) == Bytes{3207168}); // 3,145,728 fp32 + 61,440 convolution
    CHECK(state_bytes(q, {}) == Bytes{153944064});
    CHECK(state_bytes(q.layers[0].mixers[0], {.draft_tokens = 3}) == Bytes{3145728 + 2 * 61440});
    CHECK(state_bytes(q.layers[3].mixers[0], {}) == Bytes{0});
    Model const glm = handmade::glm53_flash();
    CHECK(state_bytes(glm.layers[0].mixers[0], {.tp = 8}) == Bytes{542720});
    // nvidia/Nemotron-3-Nano: 64 heads x 64, 8 groups, state 128, kernel 4
    Mixer const nano = Mamba2{.heads = 64, .head_dim = 64, .groups = 8, .d_state = 128, .conv_kernel = 4};
    CHECK(state_bytes(nano, {}) * 23 == Bytes{49082368});
    // TP4 in fp32: 540,672 bytes a layer, as a public vLLM discussion logs it
    CHECK(state_bytes(nano, {.tp = 4}) == Bytes{524288 + 9216});
    CHECK(state_bytes(nano, {.recurrent_bytes = 2, .tp = 4}) == Bytes{262144 + 9216});
    // groups that do not divide are copied up to tp
    CHECK(state_elements(Mamba2{.heads = 64, .head_dim = 64, .groups = 1, .d_state = 128}, 4).conv == (4096 + 2 * 4 * 128) / 4 * 3);
    CHECK(state_elements(Mixer{Mamba1{.inner = 8192, .d_state = 16, .conv_kernel = 4}}, 2).conv == 4096 * 3);
    CHECK(state_elements(Mixer{Lightning{.heads = 64, .head_dim = 128}}, 8).recurrent == 8 * 128 * 128);
    CHECK(state_elements(Mixer{ShortConv{.dim = 2048, .kernel = 3}}, 1).conv == 4096);
}

TEST_CASE("memory: what the state dtype is when nothing is asked") {
    CHECK(default_state_value_bytes(Format::fp32, Format::bf16) == 4);
    CHECK(default_state_value_bytes(std::nullopt, Format::bf16) == 2);
    CHECK(default_state_value_bytes(std::nullopt, Format::fp32) == 4);
}
