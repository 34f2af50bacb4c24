// Every figure of tests/data/engine_checks.csv (printed by engines, each with its source) against the library.

#include <catch.hpp>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include <servecap/engine/llama_cpp.hpp>
#include <servecap/engine/sglang.hpp>
#include <servecap/engine/tensorrt_llm.hpp>
#include <servecap/io/csv.hpp>

#include "engine_fixtures.hpp"

using namespace servecap;

namespace {

double gib_of(double bytes) { return bytes / 1073741824.0; }
double mib_of(Bytes b) { return static_cast<double>(b.value()) / 1048576.0; }

SglangCosts sglang_costs(char const* card, GpuSet const& g, std::int32_t tp, char const* version, EngineSettings const& s = {}) {
    auto const m = fixtures::model(card);
    Layout l;
    l.tp = tp;
    return sglang_detail::costs(m, g.gpu, l, s, sglang_rules(parse_sglang_version(version)), 0, m.layers.size());
}

double v4_tokens(double available, std::int64_t requests) {
    auto const c = sglang_costs("DeepSeek-V4-Flash-0731", fixtures::h200(4), 4, "0.5.17");
    SglangPoolRequest q;
    q.budget = gib(available);
    q.context = 1048576;
    q.requests = requests;
    return static_cast<double>(sglang_pools(c, q, sglang_rules(parse_sglang_version("0.5.17"))).tokens);
}

/// Conv and recurrent bytes of one slot of the whole model, apart.
std::pair<double, double> state_parts(char const* card, int conv_bytes, int recurrent_bytes) {
    double conv = 0, recurrent = 0;
    auto const m = fixtures::model(card);
    for (Layer const& l : m.layers)
        for (Mixer const& x : l.mixers) {
            auto const e = state_elements(x, 1);
            conv += static_cast<double>(e.conv) * conv_bytes;
            recurrent += static_cast<double>(e.recurrent) * recurrent_bytes;
        }
    return {conv, recurrent};
}

double trtllm_token(char const* card, char const* kv, std::int32_t tp = 1) {
    auto const m = fixtures::model(card);
    Layout l;
    l.tp = tp;
    EngineSettings s;
    s.kv_cache_dtype = kv;
    return static_cast<double>(trtllm_detail::costs(m, fixtures::b200().gpu, l, s, 1, 0, m.layers.size()).token.value());
}

/// GQA rows of 16 bits of a model that has no card.
double gqa_token(std::int64_t layers, std::int32_t heads, std::int32_t dim) {
    Gqa a;
    a.q_heads = heads;
    a.kv_heads = heads;
    a.head_dim = a.v_head_dim = dim;
    return static_cast<double>(layers * kv_token_bytes(a, KvOptions{}).value());
}

llama_cpp_detail::Outcome llama(char const* card, std::int64_t n_ctx, std::int32_t parallel, char const* kv,
                                std::int32_t draft = 0) {
    EngineSettings s;
    s.engine = EngineKind::llama_cpp;
    s.max_model_len = Tokens{n_ctx};
    if (parallel > 0) s.n_parallel = parallel;
    s.kv_cache_dtype = kv;
    s.n_gpu_layers = 999;
    s.speculative_tokens = draft;
    auto const m = fixtures::model(card);
    auto const g = fixtures::b300();
    return llama_cpp_detail::evaluate(StartRequest{m, g, Layout{}, s, Tokens{1}, Tokens{1}, {}});
}

std::map<std::string, std::function<double()>> checks() {
    std::map<std::string, std::function<double()>> c;
    c["sglang-kimi-k25-kv"] = [] { return gib_of(2454421 * sglang_costs("Kimi-K2.5", fixtures::mi355x(8), 8, "0.5.9").token); };
    c["sglang-llama-kv"] = [] { return gib_of(20480 * sglang_costs("Llama-3.1-8B", fixtures::h100(), 1, "0.5.12").token); };
    c["sglang-qwen25-k"] = [] {
        return gib_of(1330288 * sglang_costs("Qwen2.5-0.5B", fixtures::rtx4090(), 1, "0.5.17").token / 2);
    };
    c["sglang-4090-loss"] = [] {
        SglangFractionInput in;
        in.gpu_mib = 24564;
        in.chunk = 4096;
        in.graph_batch = 48;
        double const few = sglang_static_fraction(in, true);
        in.graph_batch = 128;
        return (few - sglang_static_fraction(in, true)) * 23.1 * 1024;
    };
    c["sglang-qwen36-ssm"] = [] { return gib_of(155 * state_parts("Qwen3.6-27B", 2, 4).second); };
    c["sglang-qwen36-conv"] = [] { return gib_of(155 * state_parts("Qwen3.6-27B", 2, 4).first); };
    c["sglang-qwen36-kv"] = [] { return gib_of(403904 * sglang_costs("Qwen3.6-27B", fixtures::rtxpro6000(), 1, "0.5.9").token); };
    c["sglang-qwen36-slots"] = [] {
        EngineSettings s;
        s.mamba_scheduler_strategy = "no_buffer";
        auto const k = sglang_costs("Qwen3.6-27B", fixtures::rtxpro6000(), 1, "0.5.9", s);
        SglangPoolRequest q;
        q.budget = Bytes{static_cast<std::int64_t>(403904 * k.token) + 154 * k.state.value()};
        return static_cast<double>(sglang_pools(k, q, sglang_rules(parse_sglang_version("0.5.9"))).slots);
    };
    c["sglang-granite-ssm"] = [] { return gib_of(219 * state_parts("granite-4.0-h-small", 2, 4).second); };
    c["sglang-granite-conv"] = [] { return gib_of(219 * state_parts("granite-4.0-h-small", 2, 4).first); };
    c["sglang-v4-npu"] = [] { return sglang_costs("DeepSeek-V4-Flash-0731", fixtures::h200(4), 4, "0.5.17").token; };
    c["sglang-v4-tp8"] = [] { return sglang_costs("DeepSeek-V4-Flash", fixtures::h200(8), 8, "0.5.12").token; };
    c["sglang-v4-eagle"] = [] { return sglang_v4_token(44, 21, 20, 0.8, 16, 256, false); };
    c["sglang-v4-c128-8"] = [] { return in_gib(sglang_v4_request_state(8, 128, 20)); };
    c["sglang-v4-c128-4"] = [] { return in_gib(sglang_v4_request_state(4, 128, 20)); };
    c["sglang-v4-tokens-8"] = [] { return v4_tokens(11.89, 8); };
    c["sglang-v4-tokens-4"] = [] { return v4_tokens(1.57, 4); };
    c["sglang-v4-rest"] = [] { return 57.01 - 93.58 * (1 - 0.60); };
    c["trtllm-kimi-kv"] = [] { return gib_of(5073376 * trtllm_token("Kimi-K2.5", "fp8", 8)); };
    c["trtllm-kimi-tokens"] = [] {
        TrtllmCosts k;
        k.token = Bytes{static_cast<std::int64_t>(trtllm_token("Kimi-K2.5", "fp8", 8))};
        return static_cast<double>(trtllm_tokens(k.token * (158543 * 32 + 31), k));
    };
    c["trtllm-smol-kv"] = [] { return gib_of(422048 * gqa_token(30, 3, 64)); };
    c["trtllm-smol-blocks"] = [] { return static_cast<double>(ceil_div(2049, TrtllmCosts{}.block)); };
    c["trtllm-smol-tokens"] = [] {
        TrtllmCosts k;
        k.token = Bytes{static_cast<std::int64_t>(gqa_token(30, 3, 64))};
        return static_cast<double>(trtllm_tokens(k.token * (13189 * 32), k));
    };
    c["trtllm-qwen3-fp16"] = [] { return gib_of(33984 * trtllm_token("Qwen3-8B", "fp16")); };
    c["trtllm-qwen3-fp8"] = [] { return gib_of(33984 * trtllm_token("Qwen3-8B", "fp8")); };
    c["trtllm-8kv-kv"] = [] { return gib_of(12800 * gqa_token(32, 8, 128)); };
    c["trtllm-qwen25-kv"] = [] { return gib_of(301472 * trtllm_token("Qwen2.5-7B-Instruct", "auto")); };
    c["trtllm-tinyllama-kv"] = [] { return gib_of(3731744 * gqa_token(22, 4, 64)); };
    c["trtllm-qwen3-235b-weights"] = [] {
        auto const m = load_as(fixtures::model("Qwen3-235B-A22B"), "fp8_block");
        REQUIRE(m.has_value());
        Layout l;
        l.tp = 8;
        l.ep = true;
        return in_gib(rank_weights(*m, l).total);
    };
    c["llamacpp-oss20-k"] = [] { return mib_of(gguf_bytes(GgufType::q8_0, 8192 * 12, 512)); };
    c["llamacpp-oss20-k-window"] = [] { return mib_of(gguf_bytes(GgufType::q8_0, 256 * 12, 512)); };
    c["llamacpp-oss120-kv"] = [] { // the whole less the window part
        auto const o = llama("gpt-oss-120b", 65535, 0, "f16");
        return mib_of(o.kv_total) - 1024 * 18 * 512 * 2 * 2 / 1048576.0;
    };
    c["llamacpp-oss120-window"] = [] {
        auto const x = llama_cpp_context(65535, 4, true);
        return static_cast<double>(llama_cpp_window_cells(x.cells, 128, x, 512, false));
    };
    c["llamacpp-oss20-window"] = [] {
        auto const x = llama_cpp_context(131072, 1, false);
        return static_cast<double>(llama_cpp_window_cells(x.cells, 128, x, 2048, false));
    };
    c["llamacpp-gemma4-window"] = [] {
        auto const x = llama_cpp_context(262144, 4, true);
        return static_cast<double>(llama_cpp_window_cells(x.cells, 1024, x, 2048, false));
    };
    c["llamacpp-gemma4-window-kv"] = [] {
        double sum = 0;
        auto const m = fixtures::model("gemma-4-12B-it");
        for (Layer const& l : m.layers)
            for (Mixer const& x : l.mixers)
                if (auto const* a = std::get_if<SlidingWindow>(&x))
                    sum += mib_of(gguf_bytes(GgufType::f16, 6144, std::int64_t{a->attn.kv_heads} * a->attn.head_dim) +
                                  gguf_bytes(GgufType::f16, 6144, std::int64_t{a->attn.kv_heads} * a->attn.v_head_dim));
        return sum;
    };
    c["llamacpp-laguna-k"] = [] { return mib_of(gguf_bytes(GgufType::q4_0, std::int64_t{1048576} * 12, 1024)); };
    c["llamacpp-qwen35-k"] = [] { return mib_of(llama("Qwen3.5-27B", 24576, 1, "f16").kv_total) / 2; };
    c["llamacpp-qwen35-s"] = [] { return state_parts("Qwen3.5-27B", 4, 4).second / 1048576; };
    c["llamacpp-qwen35-r"] = [] { return state_parts("Qwen3.5-27B", 4, 4).first / 1048576; };
    c["llamacpp-qwen35-9b-rs"] = [] { return mib_of(llama("Qwen3.5-9B", 8192, 4, "f16").state_total); };
    c["llamacpp-qwen35-35b-rs"] = [] { return mib_of(llama("Qwen3.5-35B-A3B", 8192, 4, "f16").state_total); };
    c["llamacpp-qwen38-rs2"] = [] { return mib_of(llama("Qwen3.8-27B", 8192, 1, "f16", 2).state_total); };
    c["llamacpp-qwen38-rs4"] = [] { return mib_of(llama("Qwen3.8-27B", 8192, 1, "f16", 4).state_total); };
    c["llamacpp-qwen38-k"] = [] { return mib_of(llama("Qwen3.8-27B", 200704, 1, "q4_0").kv_total) / 2; };
    c["llamacpp-glm52-kv"] = [] { return mib_of(gguf_bytes(GgufType::f16, std::int64_t{524288} * 78, 576)); };
    c["llamacpp-glm52-index"] = [] { return mib_of(llama("GLM-5.2", 524288, 1, "f16").kv_total) - 44928; };
    c["llamacpp-v4-raw"] = [] { return mib_of(gguf_bytes(GgufType::f16, 8448 * 43, 512)); };
    c["llamacpp-qwen36-embed"] = [] { return mib_of(gguf_bytes(GgufType::q4_k, 248320, 5120)); };
    c["llamacpp-qwen36-leave"] = [] { return 23257.0 - (15345 + 5206 + 836); };
    c["llamacpp-27b-q8-embed"] = [] { return mib_of(gguf_bytes(GgufType::q8_0, 248320, 5120)); };
    c["llamacpp-gemma4-embed"] = [] { return mib_of(gguf_bytes(GgufType::q6_k, 262144, 3840)); };
    c["llamacpp-qwen25-compute"] = [] { return mib_of(llama_cpp_compute(512, 152064, 3584, 18944, 4096, false)); };
    c["llamacpp-gemma2-compute"] = [] { return mib_of(llama_cpp_compute(512, 256000, 2304, 9216, 4096, false)); };
    c["llamacpp-gemma4-compute"] = [] { return mib_of(llama_cpp_compute(2048, 262144, 3840, 15360, 8192, true)); };
    return c;
}

} // namespace

TEST_CASE("every printed figure of the engine checks is reproduced", "[engine][checks]") {
    std::string const path = std::string{SERVECAP_TEST_DATA} + "/engine_checks.csv";
    std::ifstream in{path, std::ios::binary};
    REQUIRE(in.good());
    std::string const text{std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
    auto opened = CsvReader::open(text, path);
    REQUIRE(opened.has_value());
    CsvReader& csv = *opened;
    auto const id = csv.required("id"), value = csv.required("value"), tolerance = csv.required("tolerance"),
               source = csv.required("source");
    auto const known = checks();
    std::size_t rows = 0;
    while (csv.next()) {
        std::string const name = csv.string(id);
        INFO(name);
        auto const check = known.find(name);
        REQUIRE(check != known.end());
        auto const printed = csv.number(value, 0, 1e15);
        auto const allowed = csv.number(tolerance, 0, 1e6);
        REQUIRE(printed.has_value());
        REQUIRE(allowed.has_value());
        CHECK_FALSE(csv.string(source).empty());
        CHECK(std::abs(check->second() - *printed) <= *allowed + 1e-9);
        ++rows;
    }
    INFO((csv.failed() ? to_line(csv.error()) : std::string{}));
    CHECK_FALSE(csv.failed());
    CHECK(rows == known.size());
}
