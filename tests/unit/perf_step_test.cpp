// Laws of a decode step and of prefill, whatever the coefficients.
#include <catch.hpp>

#include <cmath>

#include <servecap/perf/queue.hpp>
#include <servecap/perf/step.hpp>

#include "handmade_models.hpp"

using namespace servecap;

namespace {

GpuSet h200(std::int32_t count) {
    GpuSet s;
    s.gpu.id = "h200-sxm";
    s.gpu.architecture = "Hopper";
    s.gpu.vendor = GpuVendor::nvidia;
    s.gpu.bandwidth = BytesPerSecond{4.8e12};
    s.gpu.bf16 = FlopsPerSecond{9.895e14};
    s.gpu.fp8 = FlopsPerSecond{1.979e15};
    s.gpu.scaleup = BytesPerSecond{4.5e11};
    s.gpu.scaleup_domain = 8;
    s.count = count;
    return s;
}

PreparedSpeed prepared(Model const& m, Layout const& l) {
    PreparedSpeed p = prepare_speed(m, l, h200(l.gpus()));
    SpeedIdentity const id;
    set_coefs(p, resolve_coefs(CoefficientTable{}, CoefContext{id}));
    return p;
}

StepLoad load(double batch, double isl = 1000, double osl = 1000) {
    StepLoad l;
    l.batch = batch;
    l.isl = isl;
    l.osl = osl;
    l.context = isl + osl / 2;
    return l;
}

} // namespace

TEST_CASE("A step is the sum of its terms and never gets cheaper with load", "[perf]") {
    for (Model const& m : {handmade::llama31_8b(), handmade::kimi_k3(), handmade::v4_flash(), handmade::gpt_oss_20b(),
                           handmade::glm53_flash(), handmade::qwen36_27b()})
        for (Layout const& l : {Layout{.tp = 1}, Layout{.tp = 8}, Layout{.dp = 8, .ep = true}, Layout{.tp = 4, .pp = 2}}) {
            INFO(m.id << " " << layout_name(l));
            PreparedSpeed const p = prepared(m, l);
            double before = 0;
            for (double b : {1.0, 2.0, 7.0, 64.0, 500.0, 4000.0}) {
                StepTimes const s = step_times(p, load(b));
                double sum = 0;
                for (double t : s.term) {
                    CHECK(t >= 0);
                    sum += t;
                }
                CHECK(s.total == Approx(sum));
                CHECK(s.total >= before);
                before = s.total;
            }
            CHECK(step_times(p, load(8, 16000)).total >= step_times(p, load(8, 1000)).total);
        }
}

TEST_CASE("One rank has no collectives; ranks split weights", "[perf]") {
    Model const m = handmade::llama31_8b();
    StepTimes const one = step_times(prepared(m, Layout{.tp = 1}), load(1));
    StepTimes const eight = step_times(prepared(m, Layout{.tp = 8}), load(1));
    CHECK(one[StepTerm::allreduce_floor] == 0);
    CHECK(one[StepTerm::allreduce_bytes] == 0);
    CHECK(eight[StepTerm::allreduce_floor] > 0);
    CHECK(one[StepTerm::dense] / eight[StepTerm::dense] == Approx(8).epsilon(0.02));
    // 8.03 B parameters less the embedding's 0.53 B, in bf16, at 4.8 TB/s and the prior's factor 1.25.
    CHECK(one[StepTerm::dense] == Approx(15.0e9 / 4.8e12 * 1.25).epsilon(0.02));
}

TEST_CASE("Windows, top-k and shared KV bound what long contexts cost", "[perf]") {
    PreparedSpeed const window = prepared(handmade::gpt_oss_20b(), Layout{.tp = 1});
    PreparedSpeed const full = prepared(handmade::llama31_8b(), Layout{.tp = 1});
    auto const growth = [](PreparedSpeed const& p) {
        return step_times(p, load(8, 32000))[StepTerm::kv_cache] / step_times(p, load(8, 8000))[StepTerm::kv_cache];
    };
    CHECK(growth(full) == Approx(32500.0 / 8500).epsilon(1e-6));
    CHECK(growth(window) < growth(full)); // half of gpt-oss' layers see 128 tokens
    PreparedSpeed const sparse = prepared(handmade::v41_flash(), Layout{.tp = 4});
    CHECK(growth(sparse) == Approx(1.0)); // at most 512 entries a layer
    // DeepSeek V4.1: layers behind the last KV source (20 of 0..39) see the last tokens of a prompt alone.
    CHECK(sparse.prompt_depth == Approx(21));
    CHECK(sparse.depth == Approx(40));
    CHECK(full.prompt_depth == full.depth);
}

TEST_CASE("Speculation: tokens a step", "[perf]") {
    CHECK(tokens_a_step(0.9, 3, 3) == Approx(1.9));
    CHECK(tokens_a_step(0.9, 3, 0) == 1);
    CHECK(tokens_a_step(0.9, 3, 1) < 1.9);
    CHECK(tokens_a_step(0.9, 3, 8) > 1.9);
    CHECK(tokens_a_step(9, 3, 3) == Approx(4)); // no more than every draft
    double const a = 0.5;                       // three drafts at one half each: 1/2 + 1/4 + 1/8
    CHECK(tokens_a_step(a + a * a + a * a * a, 3, 2) == Approx(1 + a + a * a).epsilon(1e-6));
}

TEST_CASE("Graphs that do not cover prompt chunks cost every rank of data-parallel attention", "[perf]") {
    // DeepSeek V4.1 Flash, DEP8 on 8 B300: 37.2 K output tok/s captured to 1,536 tokens, 55.0 K to 8,192 (kbespalov, 2026-10-21).
    PreparedSpeed const p = prepared(handmade::v41_flash(), Layout{.dp = 8, .ep = true});
    StepLoad small = load(2048, 1024, 1024), large = small;
    small.verify = large.verify = 6;
    small.capture = 1536;
    large.capture = 8192;
    CHECK(step_times(p, small).total > step_times(p, large).total);
    CHECK(step_times(p, small)[StepTerm::prefill_launches] > 5 * step_times(p, large)[StepTerm::prefill_launches]);
    small.capture = large.capture = 0;
    CHECK(step_times(p, small).total == step_times(p, large).total);
}

TEST_CASE("Erlang C against published values", "[perf]") {
    // c = 1: the probability of waiting is the load (M/M/1).
    CHECK(erlang_c(1, 0.7) == Approx(0.7));
    // c = 2, a = 1: 1/3. c = 5, a = 3: 0.2362. c = 10, a = 8: 0.4092 (tables of M/M/c).
    CHECK(erlang_c(2, 1) == Approx(1.0 / 3).epsilon(1e-9));
    CHECK(erlang_c(5, 3) == Approx(0.2362).epsilon(1e-3));
    CHECK(erlang_c(10, 8) == Approx(0.4092).epsilon(1e-3));
    CHECK(erlang_c(4, 4) == 1);
    CHECK(erlang_c(4, 0) == 0);
}
