// Speed of a deployment: rows used as they are, between rows, and from physics alone.
#include <catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <servecap/perf/predict.hpp>

#include "handmade_models.hpp"

using namespace servecap;

namespace {

GpuSet b300x8() {
    GpuSet s;
    s.gpu.id = "b300-sxm";
    s.gpu.architecture = "Blackwell Ultra";
    s.gpu.vendor = GpuVendor::nvidia;
    s.gpu.bandwidth = BytesPerSecond{8e12};
    s.gpu.bf16 = FlopsPerSecond{2.25e15};
    s.gpu.fp8 = FlopsPerSecond{4.5e15};
    s.gpu.fp4 = FlopsPerSecond{13.5e15};
    s.gpu.scaleup = BytesPerSecond{9e11};
    s.gpu.scaleup_domain = 8;
    s.count = 8;
    return s;
}

BenchmarkRow row(double concurrency, double output, double ttft_ms, double tpot_ms) {
    BenchmarkRow r;
    r.model = "moonshotai/Kimi-K3";
    r.precision = "mxfp4";
    r.gpu = "b300-sxm";
    r.n_gpus = 8;
    r.tp = 8;
    r.replicas = 1;
    r.engine = "vllm";
    r.spec_method = "none";
    r.isl = r.osl = r.isl_mean = r.osl_mean = 1000;
    r.concurrency = concurrency;
    if (output > 0) r.output = TokensPerSecond{output};
    if (ttft_ms > 0) r.ttft = milliseconds(ttft_ms);
    if (tpot_ms > 0) r.tpot = milliseconds(tpot_ms);
    r.date = "2026-11-08";
    r.source = "a run";
    return r;
}

struct Case {
    Model model = handmade::kimi_k3();
    GpuSet gpus = b300x8();
    StartPlan fit;
    std::vector<BenchmarkRow> rows;
    std::vector<Coefficient> coefficients;
    Layout layout{.tp = 8};
    Workload workload;
    EngineSettings settings;

    Case() {
        fit.kv_tokens = Tokens{2151492};
        fit.max_num_seqs = Requests{256};
    }
    [[nodiscard]] SpeedRequest request() const { return {model, gpus, layout, settings, fit, workload, rows, coefficients}; }
    [[nodiscard]] std::vector<SpeedPoint> speed(std::vector<std::int64_t> const& users) {
        workload.concurrency.clear();
        for (auto u : users) workload.concurrency.push_back(Requests{u});
        return predict_speed(request());
    }
};

} // namespace

TEST_CASE("Rows of the deployment are used as they are", "[perf]") {
    Case c; // Kimi K3.1 Pro on 8 x B300, vLLM, 1,000 in and out, 2026-11-08: 101.1 and 2,073.2 output tok/s
    c.rows = {row(1, 101.1, 298.1, 0), row(64, 2073.2, 1624.3, 29.24)};
    auto const p = c.speed({1, 64});
    REQUIRE(p.size() == 2);
    CHECK(p[0].output.value.value() == Approx(101.1));
    CHECK(p[0].ttft.value.value() == Approx(0.2981));
    CHECK(in_ms(p[0].tpot.value) == Approx(9.593).epsilon(1e-3)); // (1000 / 101.1 - 0.2981) / 1000
    CHECK(p[0].basis == Basis::measured);
    CHECK(p[1].output.value.value() == Approx(2073.2));
    CHECK(in_ms(p[1].tpot.value) == Approx(29.24));
    REQUIRE(p[1].evidence.size() == 1);
    CHECK(p[1].evidence[0].source == "a run");
    CHECK(p[1].output.low < p[1].output.value);
    CHECK(p[1].output.high > p[1].output.value);
    CHECK(p[1].per_gpu.value.value() == Approx(2073.2 / 8));
}

TEST_CASE("Between rows the prediction runs through them; away from them it widens", "[perf]") {
    Case c;
    c.rows = {row(1, 101.1, 298.1, 0), row(64, 2073.2, 1624.3, 29.24)};
    auto const p = c.speed({1, 16, 64, 65, 256});
    CHECK(p[1].basis == Basis::interpolated);
    CHECK(p[1].tpot.value > p[0].tpot.value);
    CHECK(p[1].tpot.value < p[2].tpot.value);
    CHECK(p[3].tpot.value.value() == Approx(p[2].tpot.value.value()).epsilon(0.08)); // next door to a row
    CHECK(p[4].basis == Basis::calibrated);
    auto const relative = [](Interval<Seconds> const& i) { return i.high / i.low; };
    CHECK(relative(p[1].tpot) > relative(p[2].tpot));
    CHECK(relative(p[4].tpot) > relative(p[3].tpot));
}

TEST_CASE("Without rows and coefficients it is a roofline, and says so", "[perf]") {
    Case c;
    auto const p = c.speed({1, 64});
    CHECK(p[0].basis == Basis::roofline);
    CHECK(p[0].evidence.empty());
    CHECK(in_ms(p[0].tpot.value) == Approx(9.6).epsilon(0.5)); // measured: 9.6 ms
    CHECK(in_ms(p[1].tpot.value) == Approx(29.24).epsilon(0.5));
}

TEST_CASE("Users that the engine does not run at once queue", "[perf]") {
    Case c;
    c.fit.max_num_seqs = Requests{32};
    auto const p = c.speed({32, 128});
    CHECK(p[1].resident.value() == 32);
    CHECK(p[1].bound_by == BoundBy::max_num_seqs);
    CHECK(p[1].tpot.value.value() == Approx(p[0].tpot.value.value()).epsilon(0.01)); // the batch is the same
    CHECK(p[1].output.value.value() == Approx(p[0].output.value.value()).epsilon(0.02));
    // Little's law: users = rate * (wait + decode).
    double const rate = p[1].output.value.value() / 0.978 / 1000;
    CHECK(rate * (p[1].ttft.value.value() + 1000 * p[1].tpot.value.value()) == Approx(128).epsilon(1e-6));
}

TEST_CASE("One user of two replicas runs on one copy", "[perf]") {
    Case c;
    c.layout = Layout{.tp = 4, .replicas = 2};
    auto one = row(1, 268.6, 37.8, 0); // measured on one of two copies (4 GPUs)
    one.n_gpus = 4;
    one.tp = 4;
    auto both = row(64, 6851.2, 272.8, 9.07); // the sum over two copies
    both.tp = 4;
    both.replicas = 2;
    c.rows = {one, both};
    auto const p = c.speed({1, 64});
    CHECK(p[0].output.value.value() == Approx(268.6));
    CHECK(p[0].basis == Basis::measured);
    CHECK(p[1].output.value.value() == Approx(6851.2));
    CHECK(p[1].basis == Basis::measured);
    CHECK(p[1].per_gpu.value.value() == Approx(6851.2 / 8));
}

TEST_CASE("Rows that must not teach do not", "[perf]") {
    Case c;
    auto bad = row(64, 300, 1600, 200);
    for (std::string const flag : {"spec?", "prec?", "nfix spec?", "seedbad"}) {
        bad.flags = flag;
        c.rows = {bad};
        CHECK(c.speed({64})[0].basis == Basis::roofline);
    }
}

TEST_CASE("Distinct experts: E (1 - (1 - k/E)^B)", "[perf]") {
    CHECK(distinct_experts(896, 16, 1) == Approx(16));
    CHECK(distinct_experts(896, 16, 64) == Approx(613).epsilon(0.005)); // Kimi K3 at 64 requests
    CHECK(distinct_experts(128, 4, 1e6) == Approx(128));
    CHECK(distinct_experts(8, 8, 1) == Approx(8));
}

TEST_CASE("Arrivals at a rate: waits grow, then it saturates", "[perf]") {
    Case c;
    c.rows = {row(1, 101.1, 298.1, 0), row(64, 2073.2, 1624.3, 29.24)};
    double before = 0;
    for (double rate : {0.2, 0.8, 1.6, 2.4}) {
        c.workload.request_rate = RequestsPerSecond{rate};
        auto const p = predict_speed(c.request());
        REQUIRE(p.size() == 1);
        REQUIRE(p[0].saturated.has_value());
        CHECK_FALSE(*p[0].saturated);
        CHECK(p[0].output.value.value() == Approx(1000 * rate)); // below saturation what arrives is served
        REQUIRE(p[0].ttft_p99.has_value());
        CHECK(*p[0].ttft_p99 >= *p[0].ttft_p90);
        CHECK(p[0].ttft.value.value() >= before);
        before = p[0].ttft.value.value();
    }
    c.workload.request_rate = RequestsPerSecond{50};
    auto const p = predict_speed(c.request());
    CHECK(*p[0].saturated);
    CHECK_FALSE(p[0].ttft_p99.has_value()); // no stationary wait exists
    CHECK(p[0].output.value.value() < 50 * 1000);
}

TEST_CASE("Beyond ten times what was measured the prediction says so", "[perf]") {
    Case c;
    c.rows = {row(1, 101.1, 298.1, 0), row(16, 840, 667, 0)};
    CHECK_FALSE(c.speed({128})[0].extrapolated);
    CHECK(c.speed({256})[0].extrapolated);
}

TEST_CASE("Precisions of mixed checkpoints go by their experts", "[perf]") {
    CHECK(same_precision("fp4", "fp8+mxfp4"));
    CHECK(same_precision("nvfp4", "fp8+nvfp4"));
    CHECK_FALSE(same_precision("nvfp4", "fp8+mxfp4"));
    CHECK_FALSE(same_precision("fp8", "nvfp4"));
    CHECK(same_precision("fp8", "fp8"));
}

TEST_CASE("The terms of a prediction add up to it", "[perf]") {
    Case c;
    for (std::int32_t drafts : {0, 3}) {
        c.settings.speculative_tokens = drafts;
        c.settings.speculative_method = drafts > 0 ? "mtp" : "";
        auto const p = c.speed({1, 64, 400});
        for (SpeedPoint const& x : p) {
            double decode = 0, first = 0;
            for (SpeedTerm const& t : x.decode_terms) decode += t.time.value();
            for (SpeedTerm const& t : x.prefill_terms) first += t.time.value();
            CHECK(decode == Approx(x.tpot.value.value()));
            CHECK(first == Approx(x.ttft.value.value()));
        }
    }
}
