// SGLang: formulas against worked values and figures of public start-up logs (sources beside each).

#include <catch.hpp>

#include <servecap/engine/sglang.hpp>

#include "engine_fixtures.hpp"

using namespace servecap;

namespace {

SglangFractionInput fraction_of(std::int64_t mib, std::int32_t tp, std::int64_t chunk, std::int64_t batch) {
    SglangFractionInput in;
    in.gpu_mib = mib;
    in.tp = tp;
    in.chunk = chunk;
    in.graph_batch = batch;
    return in;
}

StartPlan start(Model const& m, GpuSet const& g, EngineSettings s = {}, Layout l = {}, std::string_view date = {}) {
    s.engine = EngineKind::sglang;
    return plan_sglang(StartRequest{m, g, l, s, Tokens{1000}, Tokens{1000}, date});
}

SglangCosts costs_of(Model const& m, GpuSet const& g, std::int32_t tp, EngineSettings const& s, std::string_view version) {
    Layout l;
    l.tp = tp;
    return sglang_detail::costs(m, g.gpu, l, s, sglang_rules(parse_sglang_version(version)), 0, m.layers.size());
}

} // namespace

TEST_CASE("SGLang: automatic static fraction, rules of 0.5.6 to 0.5.8", "[engine][sglang]") {
    CHECK(sglang_static_fraction(fraction_of(81559, 1, 8192, 256), false) == Approx(0.835));
    CHECK(sglang_static_fraction(fraction_of(81559, 8, 8192, 512), false) == Approx(0.818));
    CHECK(sglang_static_fraction(fraction_of(143771, 1, 8192, 256), false) == Approx(0.907));
    CHECK(sglang_static_fraction(fraction_of(143771, 8, 8192, 512), false) == Approx(0.897));
    CHECK(sglang_static_fraction(fraction_of(24564, 1, 2048, 24), false) == Approx(0.847));
    CHECK(sglang_static_fraction(fraction_of(183359, 8, 16384, 512), false) == Approx(0.852));
    auto eagle = fraction_of(143771, 8, 8192, 512);
    eagle.draft = true;
    CHECK(sglang_static_fraction(eagle, false) == Approx(0.882));
    auto dp = fraction_of(143771, 8, 8192, 512);
    dp.dp = 8;
    dp.dp_attention = true;
    CHECK(sglang_static_fraction(dp, false) == Approx(0.769));
    CHECK(sglang_static_fraction(fraction_of(0, 1, 4096, 160), false) == Approx(0.88)); // size not known
}

TEST_CASE("SGLang: automatic static fraction with prefill graphs, a measured pair on a 4090", "[engine][sglang]") {
    CHECK(sglang_prefill_graphs(8192) == 58);
    CHECK(sglang_prefill_graphs(4096) == 50);
    CHECK(sglang_static_fraction(fraction_of(24564, 1, 4096, 48), true) == Approx(0.704));
    CHECK(sglang_static_fraction(fraction_of(24564, 1, 4096, 128), true) == Approx(0.697));
}

TEST_CASE("SGLang: defaults by GPU", "[engine][sglang]") {
    CHECK(sglang_defaults(24564, 1, false).chunk == 2048);
    CHECK(sglang_defaults(24564, 1, true).chunk == 4096);
    CHECK(sglang_defaults(24564, 1, true).graph_batch == 48);
    CHECK(sglang_defaults(81559, 8, true).graph_batch == 512);
    CHECK(sglang_defaults(143771, 1, true).chunk == 8192);
    CHECK(sglang_defaults(183359, 1, true).chunk == 16384);
}

TEST_CASE("SGLang: versions and dates", "[engine][sglang]") {
    CHECK(parse_sglang_version("0.5.9").number() == 509);
    CHECK(parse_sglang_version("v0.5.6.post1").number() == 506);
    CHECK(parse_sglang_version("0.5.19-cu129").number() == 519);
    CHECK_FALSE(parse_sglang_version("0.5.19-cu129").guessed);
    CHECK(parse_sglang_version("", "2026-01-10").number() == 507);
    CHECK(parse_sglang_version("", "2026-02").number() == 509);
    CHECK(parse_sglang_version("").number() == 519);
    CHECK(parse_sglang_version("").guessed);
    CHECK(parse_sglang_version("0.6.2").guessed); // newer than the rules
}

TEST_CASE("SGLang: bytes of a token by kind", "[engine][sglang]") {
    CHECK(costs_of(fixtures::model("Kimi-K2.5"), fixtures::mi355x(8), 8, {}, "0.5.9").token == 70272); // 61 * 576 * 2
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), fixtures::h100(), 1, {}, "0.5.9").token == 131072);
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), fixtures::h100(8), 8, {}, "0.5.9").token == 16384);
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), fixtures::h100(16), 16, {}, "0.5.9").token == 16384); // copied heads
    CHECK(costs_of(fixtures::model("Qwen2.5-0.5B"), fixtures::rtx4090(), 1, {}, "0.5.9").token == 12288);
    EngineSettings fp8;
    fp8.kv_cache_dtype = "fp8_e4m3";
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), fixtures::h100(), 1, fp8, "0.5.9").token == 65536);
    EngineSettings fp4;
    fp4.kv_cache_dtype = "fp4_e2m1";
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), fixtures::b200(), 1, fp4, "0.5.9").token == 32 * 8 * 2 * 72);
    // DeepSeek V3.2: 61 layers of 1152 + 132, 656 + 132, 576 + 132
    auto const v32 = fixtures::model("DeepSeek-V3.2");
    CHECK(costs_of(v32, fixtures::h200(8), 8, {}, "0.5.9").token == 78324);
    CHECK(costs_of(v32, fixtures::h200(8), 8, fp8, "0.5.9").token == 48068);
    CHECK(costs_of(v32, fixtures::b200(8), 8, fp8, "0.5.9").token == 43188);
    CHECK(costs_of(v32, fixtures::b200(8), 8, {}, "0.5.9").token == 43188); // auto is fp8 there
    CHECK(costs_of(v32, fixtures::b200(8), 8, {}, "0.5.9").page == 64);
}

TEST_CASE("SGLang: DeepSeek V4 bytes per full token as its logs print them", "[engine][sglang]") {
    CHECK(sglang_v4_token(43, 21, 20, 0.1, 8, 128, true) == Approx(7705.45).margin(0.005));     // 2026-08, 4 NPUs
    CHECK(sglang_v4_token(44, 21, 20, 0.1, 8, 128, false) == Approx(15955.85).margin(0.005));   // 2026-05, TP8
    CHECK(sglang_v4_token(44, 21, 20, 0.8, 16, 256, false) == Approx(176983.05).margin(0.005)); // 2026-05, EAGLE on AMD
    CHECK(in_gib(sglang_v4_request_state(8, 128, 20)) == Approx(0.1074).margin(0.0001));
    CHECK(in_gib(sglang_v4_request_state(4, 128, 20)) == Approx(0.0684).margin(0.0001));
    auto const v4 = fixtures::model("DeepSeek-V4-Flash-0731");
    auto const c = costs_of(v4, fixtures::h200(4), 4, {}, "0.5.17");
    CHECK(c.token == Approx(7705.45).margin(0.005));
    CHECK(c.page == 256);
    SglangPoolRequest q;
    q.budget = gib(11.89);
    q.context = 1048576;
    q.requests = 8;
    auto const p = sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.17")));
    CHECK(static_cast<double>(p.tokens) == Approx(1641472.0).epsilon(0.001)); // the budget is printed to 0.01 GiB
}

TEST_CASE("SGLang: state slots of a hybrid by the automatic ratio, Qwen3.6-27B on one RTX PRO 6000", "[engine][sglang]") {
    // Public log of 2026: 154 slots, ssm 21.80, conv 0.43, KV 24.66 GiB, 403,904 tokens.
    auto const m = fixtures::model("Qwen3.6-27B");
    EngineSettings s;
    s.mamba_scheduler_strategy = "no_buffer";
    auto const c = costs_of(m, fixtures::rtxpro6000(), 1, s, "0.5.9");
    CHECK(c.state.value() == 48 * (10240 * 3 * 2 + 48 * 128 * 128 * 4));
    CHECK(c.token == 65536);
    CHECK(in_gib(Bytes{155 * 48 * (std::int64_t{48} * 128 * 128 * 4)}) == Approx(21.80).margin(0.005));
    CHECK(in_gib(Bytes{155 * 48 * (std::int64_t{10240} * 3 * 2)}) == Approx(0.43).margin(0.005));
    CHECK(in_gib(Bytes{403904 * std::int64_t{65536}}) == Approx(24.65).margin(0.01));
    SglangPoolRequest q;
    q.budget = Bytes{403904 * std::int64_t{65536} + 154 * c.state.value()};
    q.context = 262144;
    q.slots_per_request = 3;
    auto const older = sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.9")));
    CHECK(older.slots == 154);
    CHECK(older.tokens == 403904);
    auto const newer = sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.18")));
    CHECK(newer.slots == 153); // the padding row is reserved
    CHECK(older.requests == 154 / 3);
}

TEST_CASE("SGLang: Mamba 2 state rows of granite-4.0-h-small", "[engine][sglang]") {
    auto const c = costs_of(fixtures::model("granite-4.0-h-small"), fixtures::h100(), 1, {}, "0.5.9");
    // Public log: 218 slots and the padding row take 30.80 GiB of ssm and 0.37 GiB of convolution.
    CHECK(in_gib(Bytes{219 * c.state.value()}) == Approx(30.80 + 0.37).margin(0.01));
}

TEST_CASE("SGLang: slots per request cap the running requests", "[engine][sglang]") {
    // sgl-project/sglang issue 38846: 47 slots, 5 a request, 32 asked: 9 run.
    // jpezzulli/sglang-rtxpro6000 issue 5: 40 slots, 8 run.
    auto const c = costs_of(fixtures::model("Qwen3.5-27B"), fixtures::rtxpro6000(), 1, {}, "0.5.19");
    SglangPoolRequest q;
    q.budget = gib(40);
    q.context = 262144;
    q.requests = 32;
    q.slots = 47;
    q.slots_per_request = sglang_slots_per_request(true, "", sglang_rules(parse_sglang_version("0.5.19")).extra_buffer);
    CHECK(sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.19"))).requests == 9);
    q.slots = 40;
    CHECK(sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.19"))).requests == 8);
    CHECK(sglang_slots_per_request(false, "extra_buffer", true) == 1);
    CHECK(sglang_slots_per_request(true, "no_buffer", true) == 3);
    CHECK(sglang_slots_per_request(true, "extra_buffer_lazy", true) == 4);
}

TEST_CASE("SGLang: window pool of gemma-4-26B-A4B", "[engine][sglang]") {
    // Public log on GB10: full 213,761, window 171,008, KV 36.69 GiB.
    auto const c = costs_of(fixtures::model("Gemma-4-26B-A4B"), fixtures::h100(), 1, {}, "0.5.19");
    CHECK(c.window_ratio == Approx(0.8));
    SglangPoolRequest q;
    q.budget = gib(36.69);
    q.context = 262144;
    auto const p = sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.19")));
    CHECK(static_cast<double>(p.tokens) == Approx(213761.0).epsilon(0.0005)); // the pool is printed to 0.01 GiB
    CHECK(static_cast<double>(p.window_tokens) == Approx(171008.0).epsilon(0.0005));
    CHECK(in_gib(p.kv) == Approx(36.69).margin(0.005));
    // Gemma 3 prices its windows as full layers
    CHECK(costs_of(fixtures::model("Gemma-3-27B-it"), fixtures::h100(), 1, {}, "0.5.19").window_ratio == 0);
}

TEST_CASE("SGLang: rest memory of a logged profile", "[engine][sglang]") {
    // "available_gpu_memory=57.01 GB, total_gpu_memory=93.58 GB, mem_fraction_static=0.60, rest_memory=19.58 GB"
    CHECK(57.01 - 93.58 * (1 - 0.60) == Approx(19.58).margin(0.005));
    auto const v4 = fixtures::model("DeepSeek-V4-Flash");
    auto const c = costs_of(v4, fixtures::h200(8), 8, {}, "0.5.12");
    CHECK(c.token == Approx(15955.85).margin(0.005));
    SglangPoolRequest q;
    q.budget = gib(19.58);
    q.context = 1048576;
    q.requests = 256;
    auto const p = sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.12")));
    CHECK(static_cast<double>(p.tokens) == Approx(1317632.0).epsilon(0.0005));
}

TEST_CASE("SGLang: a start end to end, Qwen3.6-27B FP8 on one RTX PRO 6000", "[engine][sglang]") {
    auto m = fixtures::model("Qwen3.6-27B");
    for (TensorClass c : {TensorClass::attention, TensorClass::linear_attention, TensorClass::dense_ffn})
        m.quant[c] = {Format::fp8_block};
    EngineSettings s;
    s.mamba_scheduler_strategy = "no_buffer";
    auto const p = start(m, fixtures::rtxpro6000(), s, {}, "2026-05");
    REQUIRE(p.starts);
    CHECK(p.kv_tokens_low.value() <= 403904);
    CHECK(p.kv_tokens_high.value() >= 403904);
    CHECK(static_cast<double>(p.kv_tokens.value()) == Approx(403904.0).epsilon(0.06));
    CHECK(*p.state_slots == Approx(154).epsilon(0.06));
}

TEST_CASE("SGLang: parts of the budget add up", "[engine][sglang]") {
    for (char const* card : {"Llama-3.1-8B", "Qwen3.5-27B", "Gemma-4-26B-A4B", "Kimi-Linear-48B-A3B-Instruct"}) {
        auto const m = fixtures::model(card);
        auto const p = start(m, fixtures::h200());
        INFO(card);
        REQUIRE(p.starts);
        CHECK(std::abs((p.budget.requested - p.budget.weights - p.budget.non_torch - p.pool).value()) <= 1);
        CHECK(p.budget.requested + p.budget.activation < p.budget.visible);
        CHECK(p.num_blocks * p.block_tokens.value() == p.kv_tokens.value());
        CHECK(p.kv_tokens_low <= p.kv_tokens);
        CHECK(p.kv_tokens <= p.kv_tokens_high);
    }
}

TEST_CASE("SGLang: refusals carry the engine's message and a flag that mends them", "[engine][sglang]") {
    auto const m = fixtures::model("Qwen3-32B"); // 61 GiB of bf16 weights
    EngineSettings s;
    s.mem_fraction_static = 0.7;
    s.version = "0.5.18";
    auto const p = start(m, fixtures::h100(), s);
    CHECK(p.verdict == Verdict::no_kv_memory);
    CHECK(p.engine_message.starts_with(
        "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.700. Raise"));
    REQUIRE_FALSE(p.fixes.empty());
    CHECK(p.fixes[0].flag == "--mem-fraction-static");
    REQUIRE(p.fixes[0].settings.has_value());
    CHECK(start(m, fixtures::h100(), *p.fixes[0].settings).starts);
    s.version = "0.5.8";
    CHECK(start(m, fixtures::h100(), s)
              .engine_message.starts_with("Not enough memory. Please try to increase --mem-fraction-static."));

    auto const too_big = start(m, fixtures::rtx4090(4));
    CHECK(too_big.verdict == Verdict::weights_do_not_fit);
    CHECK(too_big.shortfall.value() > 0);
    REQUIRE_FALSE(too_big.fixes.empty());
    CHECK(too_big.fixes[0].flag == "--tp");

    Layout odd;
    odd.tp = 5;
    CHECK(start(m, fixtures::h100(8), {}, odd).verdict == Verdict::layout_invalid);
    CHECK(start(fixtures::model("GLM-5"), fixtures::a100(8)).verdict == Verdict::unsupported);
}

TEST_CASE("SGLang: a pool smaller than the context starts, with a note", "[engine][sglang]") {
    EngineSettings s;
    s.mem_fraction_static = 0.75;
    auto const p = start(fixtures::model("Llama-3.1-8B"), fixtures::rtx4090(), s);
    REQUIRE(p.starts);
    CHECK(p.kv_tokens.value() < 131072);
    CHECK(p.longest == p.kv_tokens);
    CHECK_FALSE(p.notes.empty());
}
