// Which engine serves which model on which GPU. The expected answers are those of the pages that the table names.

#include <catch.hpp>

#include <servecap/engine/support.hpp>

#include "engine_fixtures.hpp"

using namespace servecap;

TEST_CASE("compute capability is read from the catalogue's text", "[engine][support]") {
    Gpu g;
    g.vendor = GpuVendor::nvidia;
    for (auto const& [text, value] :
         {std::pair{"9.0", 90}, {"10.3", 103}, {"12.1", 121}, {"7.5", 75}, {"", 0}, {"gfx950", 0}, {"9", 90}}) {
        g.compute_capability = text;
        CHECK(compute_capability(g) == value);
    }
    g.vendor = GpuVendor::amd;
    g.compute_capability = "9.0";
    CHECK(compute_capability(g) == 0);
}

TEST_CASE("plain models run on every engine and current GPU", "[engine][support]") {
    auto const llama = fixtures::model("Llama-3.1-8B");
    for (EngineKind e : {EngineKind::vllm, EngineKind::sglang, EngineKind::trtllm, EngineKind::llama_cpp}) {
        auto const s = engine_support(e, llama, fixtures::h100().gpu);
        CHECK(s.supported);
        CHECK(s.reason.empty());
    }
}

TEST_CASE("sparse latent attention needs Hopper or newer", "[engine][support]") {
    auto const glm = fixtures::model("GLM-5");
    for (EngineKind e : {EngineKind::vllm, EngineKind::sglang, EngineKind::trtllm}) {
        auto const old = engine_support(e, glm, fixtures::a100().gpu);
        CHECK_FALSE(old.supported);
        CHECK_FALSE(old.reason.empty());
        CHECK(old.source.starts_with("https://"));
        CHECK(engine_support(e, glm, fixtures::h200().gpu).supported);
    }
    CHECK(engine_support(EngineKind::llama_cpp, glm, fixtures::a100().gpu).supported); // "glm-dsa"
}

TEST_CASE("DeepSeek V4 in TensorRT-LLM is for Blackwell alone", "[engine][support]") {
    auto const v4 = fixtures::model("DeepSeek-V4-Pro");
    CHECK_FALSE(engine_support(EngineKind::trtllm, v4, fixtures::h200().gpu).supported);
    CHECK(engine_support(EngineKind::trtllm, v4, fixtures::b200().gpu).supported);
    CHECK(engine_support(EngineKind::vllm, v4, fixtures::h200().gpu).supported);
}

TEST_CASE("TensorRT-LLM needs NVIDIA GPUs from Ampere on", "[engine][support]") {
    auto const llama = fixtures::model("Llama-3.1-8B");
    CHECK_FALSE(engine_support(EngineKind::trtllm, llama, fixtures::mi355x().gpu).supported);
    CHECK_FALSE(engine_support(EngineKind::trtllm, llama, fixtures::v100().gpu).supported);
    CHECK(engine_support(EngineKind::vllm, llama, fixtures::mi355x().gpu).supported);
    CHECK(engine_support(EngineKind::vllm, llama, fixtures::v100().gpu).supported);
}

TEST_CASE("architectures that an engine's list does not hold are refused with the list", "[engine][support]") {
    auto const m1 = fixtures::model("MiniMax-M1-80k");
    auto const trt = engine_support(EngineKind::trtllm, m1, fixtures::b200().gpu);
    CHECK_FALSE(trt.supported);
    CHECK(trt.reason.find("MiniMaxM1ForCausalLM") != std::string::npos);
    auto const cpp = engine_support(EngineKind::llama_cpp, m1, fixtures::b200().gpu);
    CHECK_FALSE(cpp.supported);
    CHECK(cpp.source.find("llama-arch.cpp") != std::string_view::npos);
    CHECK_FALSE(engine_support(EngineKind::sglang, fixtures::model("Zamba2-2.7B"), fixtures::h100().gpu).supported);
    CHECK_FALSE(engine_support(EngineKind::llama_cpp, fixtures::model("Kimi-K3"), fixtures::h100().gpu).supported);
    CHECK(engine_support(EngineKind::vllm, fixtures::model("Kimi-K3"), fixtures::h100().gpu).supported);
}

TEST_CASE("GGUF names of families", "[engine][support]") {
    CHECK(gguf_architecture("Qwen3_5ForConditionalGeneration") == "qwen35");
    CHECK(gguf_architecture("DeepseekV3ForCausalLM") == "deepseek2");
    CHECK_FALSE(gguf_architecture("SomethingNewForCausalLM").has_value());
}

TEST_CASE("every rule gives a reason and a source, and the lists are without doubles", "[engine][support]") {
    for (SupportRule const& r : kSupportRules) {
        CHECK_FALSE(r.reason.empty());
        CHECK(r.source.starts_with("https://"));
    }
    for (std::size_t i = 0; i < kTrtllmArchitectures.size(); ++i)
        for (std::size_t j = i + 1; j < kTrtllmArchitectures.size(); ++j)
            CHECK(kTrtllmArchitectures[i] != kTrtllmArchitectures[j]);
    for (std::size_t i = 0; i < kLlamaCppArchitectures.size(); ++i)
        for (std::size_t j = i + 1; j < kLlamaCppArchitectures.size(); ++j)
            CHECK(kLlamaCppArchitectures[i].hf != kLlamaCppArchitectures[j].hf);
}

TEST_CASE("head counts that ranks cannot share", "[engine][support]") {
    auto const llama = fixtures::model("Llama-3.1-8B"); // 32 heads, 8 key-value heads
    CHECK_FALSE(heads_that_do_not_divide(llama, 1).has_value());
    CHECK_FALSE(heads_that_do_not_divide(llama, 8).has_value());
    CHECK_FALSE(heads_that_do_not_divide(llama, 16).has_value()); // key-value heads are copied
    CHECK(heads_that_do_not_divide(llama, 6) == "32 attention heads");
    CHECK(heads_that_do_not_divide(fixtures::model("Kimi-K3"), 24) == std::nullopt); // 96 heads of KDA and of MLA
    CHECK(heads_that_do_not_divide(fixtures::model("Kimi-K3"), 10).has_value());
}
