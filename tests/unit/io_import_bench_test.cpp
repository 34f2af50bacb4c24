// Benchmark reports of other tools, real excerpts (tests/data/import/README.md names each): rows, ambiguities, wrong formats.

#include <catch.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <servecap/io/embedded.hpp>
#include <servecap/io/import_bench.hpp>
#include <servecap/io/rows.hpp>

using namespace servecap;

namespace {

std::string report_text(std::string const& name) {
    std::ifstream in{std::string{SERVECAP_TEST_DATA} + "/import/" + name, std::ios::binary};
    REQUIRE(in.good());
    std::ostringstream s;
    s << in.rdbuf();
    return s.str();
}

struct ReportCatalogue {
    std::vector<Gpu> gpus = *read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    NameMap names = *NameMap::read(*find_embedded("names.csv"), "names.csv");
    [[nodiscard]] BenchImportOptions options() const {
        BenchImportOptions o;
        o.gpus = gpus;
        o.names = &names;
        return o;
    }
};

ReportCatalogue const& report_catalogue() {
    static ReportCatalogue const c;
    return c;
}

BenchImport import_report(std::string const& name, BenchFormat expected, BenchImportOptions o = report_catalogue().options()) {
    std::string const text = report_text(name);
    auto const format = guess_bench_format(text);
    INFO(name);
    REQUIRE(format);
    REQUIRE(*format == expected);
    auto r = import_bench(text, name, *format, o);
    if (!r) FAIL(to_line(r.error()));
    // What was taken reads as rows again.
    auto const again = read_benchmarks(write_benchmarks(r->rows), "again.csv");
    if (!again) FAIL(to_line(again.error()));
    REQUIRE(again->size() == r->rows.size());
    return *r;
}

bool report_says(BenchImport const& i, std::string_view part) {
    return std::any_of(i.findings.begin(), i.findings.end(), [&](ImportFinding const& f) { return f.what.find(part) != std::string::npos; });
}

double row_rate(BenchmarkRow const& r) { return r.output.value().value(); }
double row_ttft(BenchmarkRow const& r) { return in_ms(r.ttft.value()); }
double row_tpot(BenchmarkRow const& r) { return in_ms(r.tpot.value()); }

} // namespace

TEST_CASE("vllm bench serve: layout, GPU and model from the path, rates and latencies from the text", "[import]") {
    auto const i = import_report("runpod_b200/GLM-4.7-FP8_TP4_DP2_CTX1024_C100.json", BenchFormat::vllm_serve);
    REQUIRE(i.rows.size() == 1);
    auto const& r = i.rows[0];
    CHECK(r.model.find("GLM-4.7") != std::string::npos);
    CHECK(r.gpu == "b200-sxm");
    CHECK(r.n_gpus == 8);
    CHECK(r.tp == 4);
    CHECK(r.dp == 2);
    CHECK(r.precision == "fp8");
    CHECK(r.engine == "vllm");
    CHECK(r.concurrency == 100.0);
    CHECK(r.isl_mean == 1024.0);
    CHECK(*r.osl_mean == Approx(127.96));
    CHECK(row_rate(r) == Approx(1457.709));
    CHECK(row_ttft(r) == Approx(2209.299));
    CHECK(row_tpot(r) == Approx(50.856));
    CHECK(r.lat_basis == "mean");
    CHECK(r.date == "2026-01-29");
    CHECK(r.flags.find("spec?") != std::string::npos); // not stated: never calibrated on
    CHECK(report_says(i, "from the name of the file"));
    CHECK(report_says(i, "short run, 100 requests at concurrency 100"));
}

TEST_CASE("vllm bench serve: a run of the InferenceX client, options fill what it does not say", "[import]") {
    auto o = report_catalogue().options();
    o.spec = "none";
    o.precision = "mxfp4";
    auto const i = import_report("gptoss_fp4_h200_tp4_conc64_isl1024_osl1024.json", BenchFormat::vllm_serve, o);
    auto const& r = i.rows.at(0);
    CHECK(r.model == "openai/gpt-oss-120b"); // written openai--gpt-oss-120b
    CHECK(r.gpu == "h200-sxm");
    CHECK(r.tp == 4);
    CHECK(r.n_gpus == 4);
    CHECK(r.flags.empty());
    CHECK(*r.isl_mean == Approx(922.2).margin(0.1)); // drawn between 0.8 and 1.0 of 1024
    CHECK(row_rate(r) == Approx(4558.7));
    CHECK(row_tpot(r) == Approx(13.2685).margin(1e-3));
}

TEST_CASE("vllm bench serve: a client that speaks the OpenAI protocol does not tell the engine", "[import]") {
    auto const i = import_report("minimax_gpus_16_ctx_8_gen_8.json", BenchFormat::vllm_serve);
    auto const& r = i.rows.at(0);
    CHECK(r.model == "MiniMaxAI/MiniMax-M2.5"); // from .../models--MiniMaxAI--MiniMax-M2.5/snapshots/...
    CHECK(r.engine.empty());
    CHECK(report_says(i, "names no GPU"));
    CHECK(report_says(i, "neither the number of GPUs nor the layout"));
    CHECK(row_rate(r) == Approx(5368.18));
}

TEST_CASE("vllm bench sweep: the CSV has one row a run", "[import]") {
    auto o = report_catalogue().options();
    o.gpu = "b200";
    auto const i = import_report("vllm_sweep_summary.csv", BenchFormat::vllm_sweep, o);
    REQUIRE(i.rows.size() == 2);
    CHECK(i.rows[0].tp == 4);
    CHECK(i.rows[0].dp == 2);
    CHECK(i.rows[1].tp == 8);
    CHECK(i.rows[1].n_gpus == 8);
    CHECK(row_rate(i.rows[1]) == Approx(1469.6).epsilon(1e-3));
}

TEST_CASE("SGLang bench_serving: old lines without TPOT, arrivals at a rate, ShareGPT lengths", "[import]") {
    auto o = report_catalogue().options();
    o.model = "meta-llama/Llama-3.3-70B-Instruct";
    o.gpu = "h200";
    o.tp = 4;
    auto const i = import_report("llama_3_3_70b_online_output.jsonl", BenchFormat::sglang, o);
    REQUIRE(i.rows.size() == 4);
    auto const& one = i.rows[0];
    CHECK(one.isl == 1024.0);
    CHECK(*one.isl_mean == Approx(508.7).margin(0.1)); // random_range_ratio 0: lengths from 1 to 1024
    // One request a second for 7.84 s each: 7.9 in flight.
    CHECK(*one.concurrency == Approx(8));
    CHECK(row_ttft(one) == Approx(85.745));
    CHECK(one.lat_basis == "mean/median");
    CHECK(row_tpot(one) == Approx((7840.616 - 85.745) / (160347.0 / 300 - 1)));
    CHECK(row_rate(one) == Approx(537.414));
    CHECK(i.rows[2].dataset == "sharegpt");
    CHECK(*i.rows[2].isl == Approx(224)); // the random lengths were options that this run did not use
    CHECK(!i.rows[3].concurrency);        // Infinity: all at once
    CHECK(row_rate(i.rows[3]) == Approx(12412.39));
    CHECK(report_says(i, "no TPOT is stated"));
}

TEST_CASE("SGLang bench_serving: server_info gives the layout; a TPOT that short answers dominate is not a token's time", "[import]") {
    auto const i = import_report("H100_tp4_dp2_in1024_out128_p100_c100.jsonl", BenchFormat::sglang);
    auto const& r = i.rows.at(0);
    CHECK(r.model == "gpt-oss-120b"); // written /workspace/gpt-oss-120b
    CHECK(r.gpu == "h100-sxm");
    CHECK(r.tp == 4);
    CHECK(r.replicas == 2); // dp 2 without attention DP is two copies
    CHECK(r.n_gpus == 8);
    CHECK(r.engine_version == "0.5.8.post1");
    CHECK(r.spec_method == "none");
    // Mean over requests 57.2 ms (answers of 1 to 4 tokens); (5548.8 - 3700.0) / (61.08 - 1) = 30.77 = mean time between tokens.
    CHECK(row_tpot(r) == Approx(30.77).margin(0.01));
    CHECK(report_says(i, "mean over requests"));
    CHECK(r.flags.find("queue") != std::string::npos); // TTFT is two thirds of the request
}

TEST_CASE("printed blocks: several in one page, each with the command before it", "[import]") {
    auto const i = import_report("gpustack_gpt-oss-120b_h100.md", BenchFormat::serving_text);
    REQUIRE(i.rows.size() == 3);
    CHECK(i.rows[0].engine == "vllm");
    CHECK(i.rows[1].engine == "trtllm");
    CHECK(i.rows[2].tp == 2);
    CHECK(i.rows[2].n_gpus == 2);
    CHECK(!i.rows[0].tp);
    for (auto const& r : i.rows) {
        CHECK(r.model == "openai/gpt-oss-120b");
        CHECK(r.gpu == "h100-sxm");
        CHECK(!r.concurrency); // all 1000 requests at once
    }
    CHECK(row_rate(i.rows[0]) == Approx(2901.05).epsilon(1e-3));
    CHECK(row_tpot(i.rows[2]) == Approx(86.54));
}

TEST_CASE("printed blocks: a TPOT of stream events is found out by the latency", "[import]") {
    auto o = report_catalogue().options();
    o.model = "Qwen/Qwen3.5-9B";
    o.tp = 1;
    auto const i = import_report("gpustack_qwen3.5-9b_h100_8rps.txt", BenchFormat::serving_text, o);
    auto const& r = i.rows.at(0);
    // 1.34 ms as printed; (2620 - 41.12) / (281.4 - 1) = 9.20 ms.
    CHECK(row_tpot(r) == Approx(9.197).margin(0.01));
    CHECK(report_says(i, "contradicts the latency"));
    // 31 is a peak; 7.68/s x 2.62 s = 20.1 in flight.
    CHECK(*r.concurrency == Approx(20));
    CHECK(report_says(i, "was allowed"));
}

TEST_CASE("trtllm-bench: \"Token Throughput\" of 0.16 is that of output tokens", "[import]") {
    auto const i = import_report("trtllm_016_result_1024_1024_3000.txt", BenchFormat::trtllm);
    auto const& r = i.rows.at(0);
    CHECK(r.model.find("Llama-3.1-70B") != std::string::npos);
    CHECK(r.tp == 8);
    CHECK(r.precision == "fp8");
    CHECK(r.engine == "trtllm");
    CHECK(r.engine_version == "0.16.0");
    CHECK(row_rate(r) == Approx(10893.87)); // 10.6385 requests/s x 1024, not x 2048
    CHECK(report_says(i, "is that of output tokens"));
    CHECK(!r.ttft);
    CHECK(!r.concurrency);
}

TEST_CASE("trtllm-bench: the printed report and its JSON are one", "[import]") {
    auto const i = import_report("trtllm_021_llama-3.1-8b.txt", BenchFormat::trtllm);
    auto const& r = i.rows.at(0);
    CHECK(r.precision == "bf16");
    CHECK(*r.concurrency == Approx(94.605));
    CHECK(row_rate(r) == Approx(11076.77));
    CHECK(row_ttft(r) == Approx(162.67).margin(0.01));
    CHECK(row_tpot(r) == Approx(7.3272));
    std::string const json = R"({"engine":{"model":"meta-llama/Llama-3.1-8B-Instruct","version":"0.21.0rc0","dtype":"bfloat16","quantization":null},
      "world_info":{"tp_size":1,"pp_size":1},"request_info":{"num_requests":100,"avg_num_concurrent_requests":94.605,"avg_input_length":128.0,
      "avg_output_length":128.0},"performance":{"total_latency_ms":1155.5715,"avg_request_latency_ms":1093.2284,"request_throughput_req_s":86.5373,
      "system_output_throughput_tok_s":11076.77,"system_total_throughput_tok_s":22153.5399},
      "streaming_metrics":{"avg_ttft_ms":162.6706,"avg_tpot_ms":7.3272}})";
    REQUIRE(guess_bench_format(json) == BenchFormat::trtllm);
    auto const same = import_bench(json, "trtllm_021_llama-3.1-8b.txt", BenchFormat::trtllm, report_catalogue().options());
    REQUIRE(same);
    CHECK(write_benchmarks(same->rows) == write_benchmarks(i.rows));
}

TEST_CASE("InferenceX: seconds, rates of one GPU, total and output apart", "[import]") {
    auto const i = import_report("agg_kimik2.5_8k1k_int4_vllm_mi355x.json", BenchFormat::inferencex);
    auto const& r = i.rows.at(0);
    CHECK(r.model == "moonshotai/Kimi-K2.5");
    CHECK(r.gpu == "mi355x");
    CHECK(r.n_gpus == 8);
    CHECK(r.engine_version == "0.21.0");
    CHECK(r.spec_method == "mtp");
    CHECK(row_rate(r) == Approx(26.0129 * 8).epsilon(1e-4)); // not 234.5, which counts input
    CHECK(row_ttft(r) == Approx(3538.79));
    CHECK(row_tpot(r) == Approx(300.136));
    CHECK(*r.isl_mean == Approx(7372.8));
    CHECK(r.flags.find("spec?") == std::string::npos);
}

TEST_CASE("aiconfigurator: searched configurations are predictions and marked so; its references are measured", "[import]") {
    auto const p = import_report("aiconfigurator_best_config_topn.csv", BenchFormat::aiconfigurator);
    auto const& r = p.rows.at(0);
    CHECK(r.flags.find("predicted") != std::string::npos);
    CHECK(r.grade == "C");
    CHECK(r.gpu == "h200-sxm");
    CHECK(row_rate(r) == Approx(44568.232).epsilon(1e-4));
    CHECK(report_says(p, "is that of output tokens")); // seq/s x 128
    auto const m = import_report("aiconfigurator_silicon.csv", BenchFormat::aiconfigurator);
    auto const& s = m.rows.at(0);
    CHECK(s.flags.find("predicted") == std::string::npos);
    CHECK(s.gpu == "b200-sxm");
    CHECK(s.precision == "nvfp4");
    CHECK(s.concurrency == 4.0);
    CHECK(s.date == "2026-04-22");
    CHECK(row_tpot(s) == Approx(7.23795));
}

TEST_CASE("GuideLLM: TPOT is the time after the first token, not latency / tokens", "[import]") {
    auto const i = import_report("guidellm_Qwen3-30B-A3B_tp4_quant-fp8.json", BenchFormat::guidellm);
    auto const& r = i.rows.at(0);
    CHECK(r.model == "Qwen/Qwen3-30B-A3B");
    CHECK(r.tp == 4);
    CHECK(r.concurrency == 1.0);
    CHECK(row_tpot(r) == Approx(38.6512));
    CHECK(row_ttft(r) == Approx(59.9928));
    CHECK(*r.osl == Approx(1024));
    // requests/s counts a window with idle ends; 25.86 is stated, 0.025 x 1024 = 25.6 agrees within 3 %.
    CHECK(row_rate(r) == Approx(25.86).epsilon(1e-3));
}

TEST_CASE("AIPerf: the checkpoint is the tokenizer's, the warm-up phase is not the run", "[import]") {
    auto const i = import_report("aiperf_qwen3.6_nvfp4_5090_agent_c16.json", BenchFormat::aiperf);
    auto const& r = i.rows.at(0);
    CHECK(r.model.find("Qwen3.6-35B-A3B") != std::string::npos);
    CHECK(r.precision == "nvfp4");
    CHECK(r.gpu == "rtx-5090");
    CHECK(*r.isl_mean == Approx(3761.3125));
    CHECK(row_rate(r) == Approx(1172.146));
    CHECK(row_tpot(r) == Approx(11.8473).margin(1e-3));
    CHECK(r.concurrency == 16.0);
    CHECK(r.date == "2026-07-03");
}

TEST_CASE("GPUStack's table: seconds of latency, lengths from the rates, CRLF", "[import]") {
    auto const i = import_report("gpustack_benchmarks.csv", BenchFormat::gpustack);
    auto const& r = i.rows.at(0);
    CHECK(r.model == "Qwen/Qwen3.5-9B");
    CHECK(r.gpu == "h100-sxm");
    CHECK(r.engine == "sglang");
    CHECK(*r.osl_mean == Approx(282.3).margin(0.1));
    CHECK(*r.isl_mean == Approx(343.2).margin(0.1));
    CHECK(row_tpot(r) == Approx(28.63));
    CHECK(*r.concurrency == Approx(62)); // 7.6/s x 8.13 s
}

TEST_CASE("imports: a figure that cannot be is settled by tokens and time", "[import]") {
    auto const settle = [](std::string const& json) {
        auto r = import_bench(json, "x.json", BenchFormat::vllm_serve, report_catalogue().options());
        REQUIRE(r);
        return *r;
    };
    std::string const start = R"({"model_id":"Qwen/Qwen3-32B","backend":"vllm","max_concurrency":10,"completed":100,"duration":10,)"
                              R"("total_input_tokens":90000,"total_output_tokens":10000,"mean_ttft_ms":100,"mean_tpot_ms":9,"tp":2,)";
    auto const total = settle(start + R"("output_throughput":10000})"); // 1000 output tok/s and 9000 of input
    CHECK(row_rate(total.rows.at(0)) == Approx(1000));
    CHECK(report_says(total, "counts input tokens too"));
    auto const one_gpu = settle(start + R"("output_throughput":500})");
    CHECK(row_rate(one_gpu.rows.at(0)) == Approx(1000));
    CHECK(report_says(one_gpu, "of one GPU"));
    auto const none = settle(R"({"model_id":"Qwen/Qwen3-32B","backend":"vllm","completed":0,"output_throughput":0,"mean_ttft_ms":0})");
    CHECK(none.rows.empty());
    CHECK(report_says(none, "no request succeeded"));
    auto const empty = settle(R"({"output_throughput":5})");
    CHECK(empty.rows.empty());
    CHECK(report_says(empty, "names no model"));
}

TEST_CASE("imports: a text of another format says which it looks like", "[import]") {
    std::string const sglang = report_text("llama_3_3_70b_online_output.jsonl");
    auto const wrong = import_bench(sglang, "r.jsonl", BenchFormat::vllm_serve, report_catalogue().options());
    REQUIRE(!wrong);
    CHECK(to_line(wrong.error()).find("looks like sglang") != std::string::npos);
    auto const csv = import_bench(report_text("vllm_sweep_summary.csv"), "s.csv", BenchFormat::gpustack, report_catalogue().options());
    REQUIRE(!csv);
    CHECK(to_line(csv.error()).find("looks like vllm-sweep") != std::string::npos);
    auto const cut = import_bench(sglang.substr(0, 900), "cut.jsonl", BenchFormat::sglang, report_catalogue().options());
    REQUIRE(!cut); // the second line ends too early
    CHECK(to_line(cut.error()).find("cut.jsonl:2") != std::string::npos);
    CHECK(!guess_bench_format("{\"hello\": 1}"));
    CHECK(!guess_bench_format(""));
    CHECK(!guess_bench_format("model,precision,gpu\n"));
    // Byte order marks are read over.
    CHECK(guess_bench_format("\xEF\xBB\xBF" + report_text("vllm_sweep_summary.csv")) == BenchFormat::vllm_sweep);
    CHECK(guess_bench_format("\xEF\xBB\xBF" + report_text("agg_kimik2.5_8k1k_int4_vllm_mi355x.json")) == BenchFormat::inferencex);
}
