// The doctor: an observed start beside a prediction. Logs are those of tests/data/logs; predictions are made by hand
// where a term is to differ, by the allocators where the whole path is to be seen.

#include <catch.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>

#include <servecap/engine/doctor.hpp>
#include <servecap/engine/engine.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/io/startup_csv.hpp>
#include <servecap/io/startup_log.hpp>

#include "engine_fixtures.hpp"

using namespace servecap;

namespace {

ObservedStart seen(std::string const& name) {
    auto const s = read_startup_log(std::string{SERVECAP_TEST_DATA} + "/logs/" + name);
    REQUIRE(s.has_value());
    return *s;
}

/// A vLLM start of 14.99 GiB of weights on a card of 79.18 GiB at 0.92.
ObservedStart observed() {
    ObservedStart s;
    s.engine = EngineKind::vllm;
    s.total = gib(79.18);
    s.utilization = 0.92;
    s.requested = gib(72.85);
    s.weights = gib(14.99);
    s.activation = gib(1.20);
    s.non_torch = gib(0.60);
    s.cuda_graph_estimate = gib(0.50);
    s.pool = gib(55.56);
    s.block_size = 16;
    s.kv_tokens = Tokens{455152};
    s.starts = true;
    s.verdict = Verdict::starts;
    s.stage = StartStage::ready;
    return s;
}

StartPlan predicted() {
    StartPlan p;
    p.starts = true;
    p.verdict = Verdict::starts;
    p.budget = {gib(79.18), 0.92, gib(72.85), gib(14.99), gib(1.20), gib(0.60), gib(0.50)};
    p.pool = gib(55.56);
    p.block_tokens = Tokens{16};
    p.num_blocks = 28447;
    p.kv_tokens = Tokens{455152};
    p.kv_tokens_low = Tokens{450000};
    p.kv_tokens_high = Tokens{460000};
    return p;
}

std::string_view culprit(Diagnosis const& d) { return d.culprit ? d.terms[*d.culprit].name : std::string_view{}; }

} // namespace

TEST_CASE("doctor: a start as predicted", "[engine][doctor]") {
    auto const d = diagnose(observed(), predicted());
    CHECK(d.agrees);
    CHECK(d.verdict_agrees);
    CHECK_FALSE(d.culprit.has_value());
    CHECK(d.explanation.find("agrees") != std::string::npos);
    CHECK(term_text(d.terms.front(), true) == "79.18 GiB");
}

TEST_CASE("doctor: the term with the largest effect on the pool is named", "[engine][doctor]") {
    auto p = predicted();
    p.budget.weights = gib(8.0); // quantised, by the prediction
    p.budget.activation = gib(1.6);
    p.pool = gib(62.15);
    auto const d = diagnose(observed(), p);
    CHECK_FALSE(d.agrees);
    CHECK(culprit(d) == "weights a GPU");
    CHECK(d.explanation.find("2 times as large") != std::string::npos);
    CHECK(d.explanation.find("+6.99 GiB of the pool") != std::string::npos);

    auto q = predicted();
    q.budget.activation = gib(4.0);
    q.pool = gib(52.76);
    CHECK(culprit(diagnose(observed(), q)) == "activation peak");

    auto unexplained = predicted();
    unexplained.pool = gib(40);
    CHECK(culprit(diagnose(observed(), unexplained)) == "KV cache pool");
}

TEST_CASE("doctor: where the pool agrees, tokens point at the bytes of a token", "[engine][doctor]") {
    auto p = predicted();
    p.kv_tokens = Tokens{910304};
    p.kv_tokens_low = Tokens{900000};
    p.kv_tokens_high = Tokens{920000};
    p.num_blocks = 56894;
    auto const d = diagnose(observed(), p);
    CHECK(culprit(d) == "KV tokens");
    CHECK(d.explanation.find("KV type") != std::string::npos);
    bool outside = false;
    for (auto const& f : d.findings) outside = outside || f.find("outside the prediction's 80 % interval") != std::string::npos;
    CHECK(outside);
    p.block_tokens = Tokens{32};
    CHECK(culprit(diagnose(observed(), p)) == "block size"); // the cause, not the effect
}

TEST_CASE("doctor: verdicts that differ are said", "[engine][doctor]") {
    auto s = observed();
    s.starts = false;
    s.verdict = Verdict::state_slots_too_few;
    s.error = "max_num_seqs (1024) exceeds available Mamba cache blocks (784)";
    auto const d = diagnose(s, predicted());
    CHECK_FALSE(d.verdict_agrees);
    REQUIRE_FALSE(d.findings.empty());
    CHECK(d.findings.front().find("max_num_seqs (1024)") != std::string::npos);
    auto p = predicted();
    p.starts = false;
    p.verdict = Verdict::state_slots_too_few;
    CHECK(diagnose(s, p).verdict_agrees);
    p.verdict = Verdict::no_kv_memory;
    CHECK_FALSE(diagnose(s, p).verdict_agrees);
    ObservedStart cut = observed();
    cut.starts.reset();
    CHECK(diagnose(cut, predicted()).verdict_agrees); // nothing was decided
}

TEST_CASE("doctor: a log becomes the request that it is about", "[engine][doctor]") {
    auto const s = seen("vllm_0.20_hybrid_nvfp4_gb10.log");
    auto const settings = settings_of(s);
    CHECK(settings.engine == EngineKind::vllm);
    CHECK(settings.version == "0.20.0");
    CHECK(settings.gpu_memory_utilization == 0.9);
    CHECK(settings.max_num_seqs == Requests{1});
    CHECK(layout_of(s) == Layout{});
    CHECK(model_hint(s) == "RedHatAI/Qwen3.6-35B-A3B-NVFP4");
    auto const g = seen("sglang_r1_distill_7b_rtx3090.log");
    CHECK(model_hint(g) == "DeepSeek-R1-Distill-Qwen-7B");
    CHECK(settings_of(g).mem_fraction_static == 0.88);
    auto const k = seen("sglang_kimi_k25_tp8_mi355x.log");
    CHECK(layout_of(k).tp == 8); // from the workers
    auto const l = seen("llamacpp_qwen35_9b_vulkan_partial.log");
    CHECK(model_hint(l) == "qwen3.5-9b-ud-q4kxl");
    CHECK(settings_of(l).n_gpu_layers == 31);
    ObservedStart cached;
    cached.model = "/data/hub/models--moonshotai--Kimi-K3/snapshots/0123abcd";
    CHECK(model_hint(cached) == "moonshotai/Kimi-K3");
    cached.model = "moonshotai/Kimi-K3";
    CHECK(model_hint(cached) == "moonshotai/Kimi-K3");
}

TEST_CASE("doctor: GPUs are told by their visible memory", "[engine][doctor]") {
    std::vector<Gpu> const gpus{fixtures::h100().gpu, fixtures::h200().gpu, fixtures::rtx4090().gpu, fixtures::rtx3090().gpu};
    ObservedStart s;
    s.engine = EngineKind::vllm;
    s.total = gib(139.81);
    CHECK(gpu_candidates(s, gpus) == std::vector<std::string>{"h200-sxm"});
    s.total = gib(23.57);
    CHECK(gpu_candidates(s, gpus) == std::vector<std::string>{"rtx-3090", "rtx-4090"});
    s.total.reset();
    CHECK(gpu_candidates(s, gpus).empty());
}

TEST_CASE("doctor: the whole path on a logged SGLang start", "[engine][doctor]") {
    // DeepSeek-R1-Distill-Qwen-7B on one RTX 3090: 22.76 GiB free before, 105,531 tokens
    auto const s = seen("sglang_r1_distill_7b_rtx3090.log");
    auto const m = fixtures::model("Qwen2.5-7B-Instruct"); // the same shapes
    auto const g = fixtures::rtx3090();
    auto const plan = plan_start(StartRequest{m, g, layout_of(s), settings_of(s), Tokens{1000}, Tokens{1000}, s.date});
    REQUIRE(plan.starts);
    auto const d = diagnose(s, plan);
    CHECK(d.verdict_agrees);
    CHECK(plan.kv_tokens_low <= *s.kv_tokens);
    CHECK(*s.kv_tokens <= plan.kv_tokens_high);
}

TEST_CASE("doctor: a start-up row holds what the log stated, and survives the CSV", "[engine][doctor]") {
    auto const s = seen("vllm_0.20_docker_prefix_wsl.log");
    auto const r = startup_row(s, "Qwen/Qwen3.6-35B-A3B", "rtx-5090", 1, "my log", "https://example.org/log, with a comma");
    CHECK(r.usable == "yes");
    CHECK(r.starts == "yes");
    CHECK(r.verdict == "starts");
    CHECK(r.kv_tokens == Tokens{75456});
    auto const first = startup_row_csv(r, "", "f.csv");
    REQUIRE(first.has_value());
    auto const second = startup_row_csv(r, *first, "f.csv");
    REQUIRE(second.has_value());
    CHECK(second->find("engine_version") == std::string::npos); // no second header
    auto const rows = read_startups(*first + *second, "f.csv");
    REQUIRE(rows.has_value());
    REQUIRE(rows->size() == 2);
    StartupRow const& back = (*rows)[1];
    CHECK(back.engine == "vllm");
    CHECK(back.model == r.model);
    CHECK(back.gpu == r.gpu);
    CHECK(back.kv_tokens == r.kv_tokens);
    CHECK(back.block_size == r.block_size);
    CHECK(back.url == r.url);
    CHECK(in_gib(*back.available_kv_per_gpu) == Approx(2.95));
    CHECK(in_gib(*back.cuda_graph) == Approx(0.73));
    CHECK(back.date == "2026-05-01");
    // a file with other columns keeps them
    auto const narrow = startup_row_csv(r, "gpu,model,engine,kv_tokens,mine", "f.csv");
    REQUIRE(narrow.has_value());
    CHECK(*narrow == "\nrtx-5090,Qwen/Qwen3.6-35B-A3B,vllm,75456,\n");
    CHECK_FALSE(startup_row_csv(r, "a,b\n", "f.csv").has_value());

    ObservedStart nothing;
    CHECK(startup_row(nothing, "", "", 0).usable == "no");
}

TEST_CASE("doctor: learning appends to a file", "[engine][doctor]") {
    std::string const path = "servecap_doctor_learn_test.csv";
    std::remove(path.c_str());
    auto const r = startup_row(seen("vllm_tp2_h200_summary.log"), "m", "h200-sxm", 2);
    REQUIRE(learn_startup(path, r).has_value());
    REQUIRE(learn_startup(path, r).has_value());
    std::ifstream in{path, std::ios::binary};
    std::string const text{std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
    auto const rows = read_startups(text, path);
    REQUIRE(rows.has_value());
    CHECK(rows->size() == 2);
    CHECK(rows->front().tp == 2);
    std::remove(path.c_str());
    CHECK_FALSE(learn_startup("/nonexistent/folder/f.csv", r).has_value());
}
