// TensorRT-LLM: sizes against public start-up logs and issues (sources beside each), budgets and refusals.

#include <catch.hpp>

#include <servecap/engine/tensorrt_llm.hpp>

#include "engine_fixtures.hpp"

using namespace servecap;

namespace {

StartPlan started(Model const& m, GpuSet const& g, EngineSettings s = {}, Layout l = {}) {
    s.engine = EngineKind::trtllm;
    return plan_tensorrt_llm(StartRequest{m, g, l, s, Tokens{1000}, Tokens{1000}, {}});
}

TrtllmCosts costs_of(Model const& m, EngineSettings const& s = {}, std::int32_t tp = 1, std::int64_t batch = 2048) {
    Layout l;
    l.tp = tp;
    return trtllm_detail::costs(m, fixtures::b200(8).gpu, l, s, batch, 0, m.layers.size());
}

EngineSettings with_kv(char const* dtype) {
    EngineSettings s;
    s.kv_cache_dtype = dtype;
    return s;
}

} // namespace

TEST_CASE("TensorRT-LLM: bytes of a token confirmed by logs", "[engine][trtllm]") {
    CHECK(costs_of(fixtures::model("Kimi-K2.5"), with_kv("fp8"), 8).token.value() == 35136); // 61 * 576, whole on every rank
    CHECK(in_gib(Bytes{5073376 * std::int64_t{35136}}) == Approx(166.02).margin(0.005));     // public log, 2026-03
    CHECK(costs_of(fixtures::model("Qwen3-8B"), with_kv("fp16")).token.value() == 147456);
    CHECK(in_gib(Bytes{33984 * std::int64_t{147456}}) == Approx(4.67).margin(0.005));
    CHECK(costs_of(fixtures::model("Qwen3-8B"), with_kv("fp8")).token.value() == 73728);
    CHECK(costs_of(fixtures::model("Qwen2.5-7B-Instruct")).token.value() == 57344);
    CHECK(in_gib(Bytes{301472 * std::int64_t{57344}}) == Approx(16.1).margin(0.005)); // NVIDIA/TensorRT-LLM issue 5306
    CHECK(costs_of(fixtures::model("Llama-3.1-8B")).token.value() == 131072);
    CHECK(in_gib(Bytes{12800 * std::int64_t{131072}}) == Approx(1.56).margin(0.005));
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), {}, 4).token.value() == 32768);
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), {}, 16).token.value() == 16384); // copied heads
    CHECK(costs_of(fixtures::model("DeepSeek-V3.2"), with_kv("fp8"), 8).token.value() == 61 * (576 + 132));
    CHECK(costs_of(fixtures::model("Llama-3.1-8B"), with_kv("nvfp4")).token.value() == 32 * 8 * 2 * 72);
}

TEST_CASE("TensorRT-LLM: fraction of what is left, as a logged budget line has it", "[engine][trtllm]") {
    // "Peak memory ... 91.46 GiB, available KV cache memory ... 41.11 GiB, fraction is set 0.85 ... device total memory
    // 139.81 GiB"
    CHECK(0.85 * (139.81 - 91.46) == Approx(41.11).margin(0.02)); // the temporary cache is the rest
}

TEST_CASE("TensorRT-LLM: blocks and tokens", "[engine][trtllm]") {
    TrtllmCosts c;
    c.token = Bytes{1000};
    c.block = 32;
    CHECK(trtllm_tokens(Bytes{31999}, c) == 0);
    CHECK(trtllm_tokens(Bytes{32000}, c) == 32);
    CHECK(trtllm_tokens(Bytes{63999}, c) == 32);
    c.fixed = Bytes{32000};
    CHECK(trtllm_tokens(Bytes{63999}, c) == 0);
    CHECK(trtllm_tokens(Bytes{64000}, c) == 32);
    CHECK(158543 * 32 == 5073376); // Kimi-K2.5 log: primary blocks and tokens
    CHECK(13189 * 32 == 422048);   // SmolLM2-135M log
}

TEST_CASE("TensorRT-LLM: recurrent models pay for max_batch_size first", "[engine][trtllm]") {
    auto const m = fixtures::model("Qwen3.5-27B");
    auto const c = costs_of(m);
    CHECK(c.state.value() == 48 * (10240 * 3 * 2 + 48 * 128 * 128 * 4));
    CHECK(c.fixed.value() == c.state.value() * 2049);
    CHECK(in_gib(c.fixed) == Approx(293.8).margin(0.5)); // 2,048 states of 146.8 MiB
    auto const p = started(m, fixtures::h200());
    CHECK(p.verdict == Verdict::state_slots_too_few);
    CHECK(p.engine_message.starts_with("The V2 Mamba state pool has only "));
    REQUIRE_FALSE(p.fixes.empty());
    CHECK(p.fixes[0].flag == "--max_batch_size");
    REQUIRE(p.fixes[0].settings.has_value());
    auto const mended = started(m, fixtures::h200(), *p.fixes[0].settings);
    CHECK(mended.starts);
    CHECK(mended.kv_tokens.value() > 0);
    // twice as many would not start: the fix is the largest power of two
    auto twice = *p.fixes[0].settings;
    twice.max_batch_size = Requests{twice.max_batch_size->value() * 2};
    CHECK_FALSE(started(m, fixtures::h200(), twice).starts);
}

TEST_CASE("TensorRT-LLM: parts of the budget add up and refusals have their messages", "[engine][trtllm]") {
    auto const m = fixtures::model("Llama-3.1-8B");
    auto const p = started(m, fixtures::h100());
    REQUIRE(p.starts);
    Bytes const left = p.budget.visible - p.budget.weights - p.budget.activation - p.budget.non_torch;
    CHECK(static_cast<double>(p.pool.value()) == Approx(0.9 * static_cast<double>(left.value())).epsilon(1e-9));
    CHECK(p.kv_tokens.value() == p.num_blocks * p.block_tokens.value());
    CHECK(p.kv_tokens_low < p.kv_tokens);
    CHECK(p.kv_tokens < p.kv_tokens_high);

    auto const big = started(fixtures::model("Llama-3.1-70B"), fixtures::h100(8));
    CHECK(big.verdict == Verdict::weights_do_not_fit);
    CHECK(big.engine_message.find("could not be created: Model. Total GPU memory (GiB): 79.18") != std::string::npos);
    REQUIRE_FALSE(big.fixes.empty());
    CHECK(big.fixes.back().flag == "--tp_size");
    Layout odd;
    odd.tp = 3;
    CHECK(started(m, fixtures::h100(8), {}, odd).verdict == Verdict::layout_invalid);
    CHECK(started(m, fixtures::mi355x()).verdict == Verdict::unsupported);
}

TEST_CASE("TensorRT-LLM: a context longer than the pool is cut, not refused", "[engine][trtllm]") {
    auto const p = started(fixtures::model("Llama-3.1-8B"), fixtures::rtx4090());
    REQUIRE(p.starts);
    CHECK(p.kv_tokens.value() < 131072);
    CHECK(p.max_model_len == p.kv_tokens);
    CHECK(p.notes.front().find("cut from 131072") != std::string::npos);
}
