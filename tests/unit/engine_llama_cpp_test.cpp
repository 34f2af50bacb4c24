// llama.cpp: GGUF sizes, caches, states and buffers against figures of public logs (sources beside each).

#include <catch.hpp>

#include <servecap/engine/llama_cpp.hpp>

#include "engine_fixtures.hpp"

using namespace servecap;

namespace {

double mebibytes(Bytes b) { return static_cast<double>(b.value()) / 1048576; }

llama_cpp_detail::Outcome outcome(Model const& m, GpuSet const& g, EngineSettings s, Layout l = {}) {
    s.engine = EngineKind::llama_cpp;
    return llama_cpp_detail::evaluate(StartRequest{m, g, l, s, Tokens{1000}, Tokens{1000}, {}});
}

StartPlan start(Model const& m, GpuSet const& g, EngineSettings s, Layout l = {}) {
    s.engine = EngineKind::llama_cpp;
    return plan_llama_cpp(StartRequest{m, g, l, s, Tokens{1000}, Tokens{1000}, {}});
}

EngineSettings with(std::int64_t n_ctx, std::int32_t parallel, char const* kv = "f16") {
    EngineSettings s;
    s.max_model_len = Tokens{n_ctx};
    if (parallel > 0) s.n_parallel = parallel;
    s.kv_cache_dtype = kv;
    s.n_gpu_layers = 999;
    return s;
}

/// Bits a weight of a whole file.
double average_bits(Model const& m, char const* label) {
    auto const mix = parse_gguf_mix(label);
    REQUIRE(mix.has_value());
    double bytes = 0, params = 0;
    for (WeightTensor const& t : weight_tensors(m)) {
        if (!in_trunk(t.cls)) continue;
        bytes += static_cast<double>(
            (gguf_bytes(gguf_type_of(*mix, t, static_cast<std::int64_t>(m.layers.size()), 0, 4), t.rows, t.cols) * t.count)
                .value());
        params += static_cast<double>(params_of(t).value());
    }
    return bytes * 8 / params;
}

} // namespace

TEST_CASE("GGUF: block types", "[engine][llama.cpp]") {
    for (std::size_t i = 0; i < kGgufTypes.size(); ++i) CHECK(static_cast<std::size_t>(kGgufTypes[i].type) == i);
    CHECK(gguf_bytes(GgufType::q8_0, 1, 32).value() == 34);
    CHECK(gguf_bytes(GgufType::q4_k, 2, 512).value() == 2 * 2 * 144);
    CHECK(parse_gguf_type("IQ4_XS") == GgufType::iq4_xs);
    CHECK_FALSE(parse_gguf_type("q9_z").has_value());
    // Public logs: the token embedding in host memory
    CHECK(mebibytes(gguf_bytes(GgufType::q4_k, 248320, 5120)) == Approx(682.03).margin(0.01));  // Qwen3.6-27B Q4_K_M
    CHECK(mebibytes(gguf_bytes(GgufType::q8_0, 248320, 5120)) == Approx(1288.28).margin(0.01)); // 27B Q8_0
    CHECK(mebibytes(gguf_bytes(GgufType::q6_k, 262144, 3840)) == Approx(787.5).margin(0.01));   // Gemma-4-12B
}

TEST_CASE("GGUF: averages of whole files, llama-quantize's table for Llama-3.1-8B", "[engine][llama.cpp]") {
    auto const m = fixtures::model("Llama-3.1-8B");
    CHECK(average_bits(m, "Q8_0") == Approx(8.50).margin(0.01));
    CHECK(average_bits(m, "Q6_K") == Approx(6.56).margin(0.01));
    CHECK(average_bits(m, "Q5_K_M") == Approx(5.70).margin(0.01));
    CHECK(average_bits(m, "Q4_K_M") == Approx(4.89).margin(0.01));
    CHECK(average_bits(m, "Q4_K_S") == Approx(4.67).margin(0.01));
    CHECK(average_bits(m, "IQ4_XS") == Approx(4.46).margin(0.01));
    CHECK(average_bits(m, "Q3_K_M") == Approx(4.00).margin(0.01));
    CHECK(average_bits(m, "Q2_K") == Approx(3.16).margin(0.01));
    CHECK_FALSE(parse_gguf_mix("fp8").has_value());
    CHECK(parse_gguf_mix("gguf:Q4_0")->base == GgufType::q4_0);
    CHECK(parse_gguf_mix("UD-Q2_K_XL")->bits == Approx(2.75));
}

TEST_CASE("llama.cpp: contexts, streams and windows in cells", "[engine][llama.cpp]") {
    CHECK(llama_cpp_context(65535, 4, true).cells == 65536);
    CHECK(llama_cpp_context(32768, 4, false).cells == 8192);
    CHECK(llama_cpp_context(32768, 4, false).total() == 32768);
    CHECK(llama_cpp_context(32768, 4, false).per_sequence == 8192);
    auto const four = llama_cpp_context(65536, 4, true), one = llama_cpp_context(65536, 1, true);
    CHECK(llama_cpp_window_cells(65536, 128, four, 512, false) == 1024);    // gpt-oss-120b, 2026-08
    CHECK(llama_cpp_window_cells(65536, 128, one, 2048, false) == 2304);    // gpt-oss-20b on an M5
    CHECK(llama_cpp_window_cells(262144, 1024, four, 2048, false) == 6144); // Gemma-4-12B, 2026-09
    CHECK(llama_cpp_window_cells(65536, 512, one, 512, false) == 1024);     // Gemma-4-E4B
    CHECK(llama_cpp_window_cells(64000, 128, one, 4096, false) == 4352);    // DeepSeek V4, ggml-org/llama.cpp issue 27680
    CHECK(llama_cpp_window_cells(65536, 128, four, 512, true) == 65536);
}

TEST_CASE("llama.cpp: KV caches of public logs", "[engine][llama.cpp]") {
    auto const gpu = fixtures::b300();
    auto s = with(65535, 0);
    auto const oss = outcome(fixtures::model("gpt-oss-120b"), gpu, s);
    // base 2304 MiB (18 layers) and window 1024 cells (18 layers)
    CHECK(mebibytes(oss.kv_total) == Approx(2304 + 1024 * 18 * 512 * 2 * 2 / 1048576.0).margin(0.01));
    auto const oss20 = outcome(fixtures::model("gpt-oss-20b"), gpu, with(8192, 1, "q8_0"));
    CHECK(mebibytes(oss20.kv_total) ==
          Approx(2 * (51.0 + 768 * 12 * 544 / 1048576.0)).margin(0.01)); // K and V; 640 cells pad to 768
    CHECK(8192 * 12 * 544 / 1048576.0 == Approx(51.0));                  // Hexagon log of 2025-11: K of the base cache
    auto const hybrid = outcome(fixtures::model("Qwen3.5-27B"), gpu, with(24576, 1));
    CHECK(mebibytes(hybrid.kv_total) == Approx(2 * 768).margin(0.01)); // K 768 MiB
    auto const q4 = outcome(fixtures::model("Qwen3.8-27B"), gpu, with(200704, 1, "q4_0"));
    CHECK(mebibytes(q4.kv_total) == Approx(2 * 1764).margin(0.01)); // K 1764 MiB
    auto const q8 = outcome(fixtures::model("Qwen3.5-9B"), gpu, with(262144, 1, "q8_0"));
    CHECK(mebibytes(q8.kv_total) == Approx(4352).margin(0.01)); // Apple M4 Pro log
    // GLM-5.2, 4 GPUs, 524,288 cells: 44,928 MiB of latents without values and 2,688 of index keys in 21 layers
    auto const glm = outcome(fixtures::model("GLM-5.2"), fixtures::b300(4), with(524288, 1), [] {
        Layout l;
        l.tp = 4;
        return l;
    }());
    CHECK(mebibytes(glm.kv_total) == Approx(44928 + 2688).margin(0.01));
}

TEST_CASE("llama.cpp: recurrent states of public logs", "[engine][llama.cpp]") {
    auto const gpu = fixtures::b300();
    CHECK(mebibytes(outcome(fixtures::model("Qwen3.5-27B"), gpu, with(8192, 1)).state_total) == Approx(5.625 + 144).margin(0.001));
    CHECK(mebibytes(outcome(fixtures::model("Qwen3.5-9B"), gpu, with(8192, 4)).state_total) == Approx(201.0).margin(0.001));
    CHECK(mebibytes(outcome(fixtures::model("Qwen3.5-35B-A3B"), gpu, with(8192, 4)).state_total) == Approx(251.25).margin(0.001));
    auto s = with(8192, 1);
    s.speculative_tokens = 2;
    CHECK(mebibytes(outcome(fixtures::model("Qwen3.8-27B"), gpu, s).state_total) == Approx(448.88).margin(0.01));
    s.speculative_tokens = 4;
    CHECK(mebibytes(outcome(fixtures::model("Qwen3.8-27B"), gpu, s).state_total) == Approx(748.12).margin(0.01));
    s = with(8192, 4);
    s.speculative_tokens = 2;
    CHECK(mebibytes(outcome(fixtures::model("Qwen3.8-27B"), gpu, s).state_total) == Approx(1795.5).margin(0.01));
    s = with(8192, 0); // without -np the server keeps four
    CHECK(mebibytes(outcome(fixtures::model("Qwen3.5-9B"), gpu, s).state_total) == Approx(201.0).margin(0.001));
}

TEST_CASE("llama.cpp: compute buffers", "[engine][llama.cpp]") {
    CHECK(mebibytes(llama_cpp_compute(512, 152064, 3584, 18944, 4096, false)) == Approx(304 + 7).margin(8)); // Qwen2.5-7B log: 304
    CHECK(mebibytes(llama_cpp_compute(512, 256000, 2304, 9216, 4096, false)) == Approx(509).margin(0.1));    // Gemma-2-2B log
    // Servers that reserve few logits: Qwen3.5-9B 447.38 and Qwen3.8-27B 618.44 MiB at ubatch 2048 and 8,192 cells
    CHECK(mebibytes(llama_cpp_compute(2048, 248320, 4096, 12288, 8192, true)) == Approx(447.38).epsilon(0.02));
    CHECK(mebibytes(llama_cpp_compute(2048, 248320, 5120, 17408, 8192, true)) == Approx(618.44).epsilon(0.02));
}

TEST_CASE("llama.cpp: builds and dates", "[engine][llama.cpp]") {
    CHECK(parse_llama_cpp_build("b9849").build == 9849);
    CHECK(parse_llama_cpp_build("9849 (799fcc04a)").build == 9849);
    CHECK(parse_llama_cpp_build("").guessed);
    CHECK_FALSE(llama_cpp_rules(parse_llama_cpp_build("", "2025-06")).fits);
    CHECK(llama_cpp_rules(parse_llama_cpp_build("b11195")).latent_keys_only);
}

TEST_CASE("llama.cpp: a fit takes as many layers as leave a GiB free", "[engine][llama.cpp]") {
    // Public log: a 9B file short by 133 MiB at 8,192 cells goes to 31 of 33 layers.
    auto const m = fixtures::model("Qwen3.5-9B");
    EngineSettings s;
    s.weights_dtype = "Q4_K_M";
    s.max_model_len = Tokens{8192};
    s.ubatch = Tokens{2048};
    s.kv_cache_dtype = "f16";
    auto all = s;
    all.n_gpu_layers = 33;
    Bytes const need = llama_cpp_detail::most_used(outcome(m, fixtures::b300(), all));
    auto const with_free = [&](Bytes free) {
        auto g = fixtures::rtx4090();
        g.gpu.visible = free + gib(llama_cpp_detail::kDeviceContextGib);
        return outcome(m, g, s);
    };
    auto const short_by_133 = with_free(need + mib(1024 - 133));
    CHECK(short_by_133.verdict == Verdict::starts);
    CHECK(short_by_133.all_units == 33);
    CHECK(short_by_133.gpu_units >= 31); // the logged file has other types by layer: its first layer freed 122 MiB
    CHECK(short_by_133.gpu_units <= 32);
    CHECK(llama_cpp_detail::most_used(short_by_133) + mib(1024) <= short_by_133.free);
    auto more = s;
    more.n_gpu_layers = short_by_133.gpu_units + 1;
    CHECK(llama_cpp_detail::most_used(outcome(m, fixtures::b300(), more)) + mib(1024) > short_by_133.free);
    CHECK(with_free(need + mib(1024)).gpu_units == 33); // just enough
    CHECK(with_free(need + mib(1023)).gpu_units == 32);
    CHECK(with_free(mib(1024)).gpu_units == 0);
}

TEST_CASE("llama.cpp: a fit shrinks the context when none is given", "[engine][llama.cpp]") {
    auto const m = fixtures::model("Qwen3-8B");
    EngineSettings s;
    s.weights_dtype = "Q4_K_M";
    auto const p = start(m, fixtures::gpus("rtx-4060", GpuVendor::nvidia, "8.9", 8188, 7.75), s);
    REQUIRE(p.starts);
    CHECK(p.kv_tokens.value() < m.max_context.value());
    CHECK(p.kv_tokens.value() >= 4096);
    CHECK(p.kv_tokens.value() % 256 == 0);
    CHECK(p.budget.weights + p.pool + p.budget.activation + mib(1024) <= p.budget.requested);
    CHECK_FALSE(p.notes.empty());
}

TEST_CASE("llama.cpp: experts go to the host before layers do", "[engine][llama.cpp]") {
    auto const m = fixtures::model("gpt-oss-120b"); // 60 GB of MXFP4 experts
    EngineSettings s;
    s.max_model_len = Tokens{32768};
    auto const o = outcome(m, fixtures::rtx4090(), s);
    CHECK(o.verdict == Verdict::starts);
    CHECK(o.gpu_units == o.all_units);
    CHECK(o.expert_layers_on_host > 0);
    CHECK(o.expert_layers_on_host < 36);
    CHECK(in_gib(o.weights_total) == Approx(59.0).margin(1.5)); // the published file of 63.4 GB
}

TEST_CASE("llama.cpp: layers spread over devices add up", "[engine][llama.cpp]") {
    auto const m = fixtures::model("Llama-3.3-70B-Instruct");
    auto s = with(32768, 1);
    s.weights_dtype = "Q4_K_M";
    Layout two;
    two.pp = 2;
    auto const one = outcome(m, fixtures::b300(1), s), both = outcome(m, fixtures::b300(2), s, two);
    REQUIRE(both.devices.size() == 2);
    CHECK(both.devices[0].model + both.devices[1].model == one.devices[0].model);
    CHECK(both.devices[0].kv + both.devices[1].kv == one.devices[0].kv);
    CHECK(one.devices[0].model + one.host == one.weights_total);
    s.tensor_split = {3, 1};
    auto const uneven = outcome(m, fixtures::b300(2), s, two);
    CHECK(uneven.devices[0].kv.value() * 19 == uneven.devices[1].kv.value() * 61); // 81 units: 61, and 19 with the head
}

TEST_CASE("llama.cpp: refusals when the layers are set by hand", "[engine][llama.cpp]") {
    auto const m = fixtures::model("Qwen3-32B");
    auto s = with(32768, 1);
    s.weights_dtype = "Q8_0";
    auto const p = start(m, fixtures::rtx4090(), s);
    CHECK(p.verdict == Verdict::weights_do_not_fit);
    CHECK(p.engine_message.find("cudaMalloc failed: out of memory") != std::string::npos);
    CHECK(p.shortfall.value() > 0);
    REQUIRE_FALSE(p.fixes.empty());
    CHECK(p.fixes.back().flag == "-ngl");
    REQUIRE(p.fixes.back().settings.has_value());
    CHECK(start(m, fixtures::rtx4090(), *p.fixes.back().settings).starts);

    s.weights_dtype = "Q4_K_M"; // 18.4 GiB; 32,768 cells of 256 KiB do not fit beside them
    auto const kv = start(m, fixtures::rtx4090(), s);
    CHECK(kv.verdict == Verdict::no_kv_memory);
    CHECK(kv.engine_message.find("failed to allocate buffer for kv cache") != std::string::npos);
    REQUIRE_FALSE(kv.fixes.empty());
    CHECK(kv.fixes.front().flag == "-c");
    CHECK(start(m, fixtures::rtx4090(), *kv.fixes.front().settings).starts);
    CHECK(start(fixtures::model("Kimi-K3"), fixtures::b300(8), {}).verdict == Verdict::unsupported);
}

TEST_CASE("llama.cpp: total allocation of Qwen3.6-27B Q4_K_M with q8 KV at 65,536", "[engine][llama.cpp]") {
    // tobocop2/lilbee pull request 721: 17.6 GiB in all on one A40
    auto s = with(65536, 1, "q8_0");
    s.weights_dtype = "Q4_K_M";
    auto const o = outcome(fixtures::model("Qwen3.6-27B"), fixtures::a100(), s);
    CHECK(in_gib(llama_cpp_detail::most_used(o)) == Approx(17.6).epsilon(0.03));
}
