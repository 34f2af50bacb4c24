// What vLLM takes beside weights and cache, against start-up logs that print the terms, and laws of the estimate.
#include <catch.hpp>

#include <servecap/engine/vllm_budget.hpp>

#include "start_fixtures.hpp"

using namespace servecap;

TEST_CASE("vllm budget: sizes of captured graphs") {
    CHECK(CaptureSizes::up_to(0).count == 0);
    CHECK(CaptureSizes::up_to(1).count == 1);
    CHECK(CaptureSizes::up_to(8).count == 4);       // 1, 2, 4, 8
    CHECK(CaptureSizes::up_to(256).count == 35);    // and every 8
    CHECK(CaptureSizes::up_to(512).count == 51);    // and every 16; a K3 log counts 51
    CHECK(CaptureSizes::up_to(512).second == 496);
    CHECK(CaptureSizes::up_to(1024).count == 83);
    static_assert(CaptureSizes::up_to(512).largest == 512);
}

TEST_CASE("vllm budget: activation peak, non-torch memory and graphs of logged starts on H100") {
    // vLLM 0.19, batches of 8,192 tokens, 1,024 sequences: the peaks that the logs print, GiB
    struct Logged {
        char const* model;
        std::int32_t tp;
        double activation, tolerance;
    };
    for (Logged const& l : {Logged{"Llama-3.1-8B", 1, 1.89, 0.05}, Logged{"Qwen2.5-7B-Instruct", 1, 2.21, 0.1}, Logged{"Qwen3-30B-A3B", 1, 2.68, 0.1},
                            Logged{"Llama-3.3-70B-Instruct", 2, 1.96, 0.05}, Logged{"gpt-oss-20b", 2, 2.87, 0.4}}) {
        starts::Asked a = starts::ask(l.model, l.tp == 1 ? "h100x1" : "h100x2", l.tp);
        a.settings.version = "0.19.0";
        a.settings.max_model_len = Tokens{8192};
        StartPlan const p = a.plan();
        INFO(l.model);
        CHECK(in_gib(p.budget.activation) == Approx(l.activation).margin(l.tolerance));
        CHECK(in_gib(p.budget.non_torch) == Approx(l.tp == 1 ? 0.25 : 2.0).margin(0.3));
    }
}

TEST_CASE("vllm budget: laws") {
    for (char const* name : {"Llama-3.1-8B", "Kimi-K3", "Qwen3.6-27B", "DeepSeek-V4-Flash", "gpt-oss-20b"}) {
        INFO(name);
        Model const& m = starts::model(name);
        Layout l;
        l.tp = 8;
        VllmRules const rules = vllm_rules(parse_vllm_version("0.31.0"));
        VllmMemoryModel const k = vllm_memory_model(m, starts::set("b300x8"), l, rules, true, 131072);
        auto const at = [&](std::int64_t t, std::int64_t s, std::int64_t c, GraphMode g = GraphMode::full_and_piecewise) {
            return vllm_memory(k, t, s, c, g, 0);
        };
        VllmMemory const base = at(8192, 256, 512);
        CHECK(base.activation > 0);
        CHECK(base.sd > 0);
        CHECK(at(16384, 256, 512).activation > base.activation); // more of anything never takes less
        CHECK(at(8192, 1024, 512).activation >= base.activation);
        CHECK(at(8192, 1024, 512).graphs >= base.graphs);
        CHECK(at(8192, 256, 1024).graphs >= base.graphs);
        CHECK(at(8192, 256, 0).graphs == 0);
        CHECK(at(8192, 256, 512, GraphMode::none).graphs == 0);
        CHECK(at(8192, 256, 512, GraphMode::full_decode_only).graphs < base.graphs);
        l.tp = 4;
        CHECK(vllm_memory(vllm_memory_model(m, starts::set("b300x4"), l, rules, true, 131072), 8192, 256, 512, GraphMode::full_and_piecewise, 0).activation >=
              base.activation); // a smaller share each
    }
}

TEST_CASE("vllm budget: Kimi K3 on MI355X: one kind of graphs instead of two frees 11.7 GiB (start-up logs)") {
    starts::Asked a = starts::ask("Kimi-K3", "mi355xx8", 8);
    a.layout.ep = true;
    a.settings.version = "0.1.dev19253";
    a.settings.max_num_seqs = Requests{512};
    a.settings.max_model_len = Tokens{12800};
    a.settings.max_num_batched_tokens = Tokens{8192};
    double const both = in_gib(a.plan().pool);
    a.settings.graph_mode = GraphMode::full_decode_only;
    double const one = in_gib(a.plan().pool);
    CHECK(both == Approx(49.41).margin(0.5));
    CHECK(one == Approx(61.09).margin(0.5));
}
