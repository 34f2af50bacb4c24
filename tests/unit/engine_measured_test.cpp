// Measured starts beside the engine model's own answer, and the line to paste.
#include <catch.hpp>

#include <servecap/engine/validate_startups.hpp>

#include "start_fixtures.hpp"

using namespace servecap;
using starts::Asked;
using starts::ask;

TEST_CASE("measured start: Kimi K3.1 Pro on 8 B300 at 256 sequences, the blind figure beside it") {
    Asked a = ask("Kimi-K3.1-Pro", "b300x8", 8);
    a.settings.max_num_seqs = Requests{256};
    StartJudgement const j = judge_start(a.request(), starts::rows());
    CHECK(j.plan.basis == Basis::measured);
    CHECK(j.plan.starts);
    CHECK(in_gib(j.plan.weights) == Approx(193.66));
    CHECK(in_gib(j.plan.pool) == Approx(34.74));
    CHECK(j.plan.kv_tokens == Tokens{2151492});
    CHECK(j.date == "2026-11-08");
    CHECK(j.source.find("Spheron") != std::string::npos);
    REQUIRE(j.blind);
    CHECK(j.blind->basis == Basis::inferred);
    CHECK(j.blind->kv_tokens != j.plan.kv_tokens);
}

TEST_CASE("measured start: the default of 1,024 sequences is refused with 603 slots, and the start at 256 is the first fix") {
    Asked a = ask("Kimi-K3.1-Pro", "b300x8", 8);
    StartJudgement const j = judge_start(a.request(), starts::rows());
    CHECK(j.plan.basis == Basis::measured);
    CHECK(j.plan.verdict == Verdict::state_slots_too_few);
    CHECK(j.plan.engine_message == "max_num_seqs (1024) exceeds available Mamba cache blocks (603)");
    CHECK(j.plan.state_slots == 603);
    REQUIRE_FALSE(j.plan.fixes.empty());
    Fix const& f = j.plan.fixes.front();
    CHECK(f.flag == "--max-num-seqs");
    CHECK(f.value == "256");
    CHECK(f.effect.find("2,151,492") != std::string::npos);
    REQUIRE(f.settings);
    Asked b = a;
    b.settings = *f.settings;
    CHECK(judge_start(b.request(), starts::rows()).plan.starts);
    CHECK(start_command(b.request()).find("--max-num-seqs 256") != std::string::npos);
}

TEST_CASE("measured start: Kimi K3 at TP16 on H200 starts only at 0.97 and up to 29,696 tokens") {
    Asked a = ask("Kimi-K3", "h200x16", 16);
    a.settings.gpu_memory_utilization = 0.97;
    a.settings.max_model_len = Tokens{29696};
    StartJudgement const yes = judge_start(a.request(), starts::rows());
    CHECK(yes.plan.basis == Basis::measured);
    CHECK(yes.plan.starts);
    CHECK(yes.plan.kv_tokens == Tokens{30062});
    a.settings.max_model_len = Tokens{32768};
    StartJudgement const no = judge_start(a.request(), starts::rows());
    CHECK(no.plan.basis == Basis::measured);
    CHECK(no.plan.verdict == Verdict::max_model_len_too_long);
    REQUIRE_FALSE(no.plan.fixes.empty());
    CHECK(no.plan.fixes.front().flag == "--max-model-len");
    CHECK(no.plan.fixes.front().value == "29696");
    a.settings.gpu_memory_utilization.reset(); // at the default nothing is known but the model's own answer: no
    StartJudgement const blind = judge_start(a.request(), starts::rows());
    CHECK(blind.plan.basis != Basis::measured);
    CHECK_FALSE(blind.plan.starts);
    CHECK(blind.plan.fits);
}

TEST_CASE("measured start: a row of another deployment never answers") {
    Asked const base = [] {
        Asked a = ask("Kimi-K3.1-Pro", "b300x8", 8);
        a.settings.max_num_seqs = Requests{256};
        return a;
    }();
    auto const measured = [](Asked const& a) { return judge_start(a.request(), starts::rows()).plan.basis == Basis::measured; };
    CHECK(measured(base));
    auto const changed = [&](auto change) {
        Asked a = base;
        change(a);
        return measured(a);
    };
    CHECK_FALSE(changed([](Asked& a) { a.gpus = starts::set("b200x8"); }));
    CHECK_FALSE(changed([](Asked& a) { a.layout.ep = true; }));
    CHECK_FALSE(changed([](Asked& a) { a.layout.pp = 2; }));
    CHECK_FALSE(changed([](Asked& a) { a.settings.max_num_seqs = Requests{255}; }));
    CHECK_FALSE(changed([](Asked& a) { a.settings.max_model_len = Tokens{65536}; }));
    CHECK_FALSE(changed([](Asked& a) { a.settings.kv_cache_dtype = "bf16"; }));
    CHECK_FALSE(changed([](Asked& a) { a.settings.speculative_tokens = 2; }));
    CHECK_FALSE(changed([](Asked& a) { a.settings.enforce_eager = true; }));
    CHECK_FALSE(changed([](Asked& a) { a.settings.engine = EngineKind::sglang; }));
    CHECK_FALSE(changed([](Asked& a) { a.model = starts::model("Kimi-K3"); }));
}

TEST_CASE("measured start: a user's row wins over the catalogue's; unusable rows and rows without a verdict are passed over") {
    Asked a = ask("Llama-3.1-8B", "h100x1");
    StartupRow row;
    row.engine = "vllm";
    row.model = "meta-llama/Llama-3.1-8B";
    row.gpu = "h100-sxm";
    row.tp = 1;
    row.starts = "yes";
    row.kv_tokens = Tokens{111};
    row.date = "2026-11-01";
    StartupRow mine = row;
    mine.origin.user = true;
    mine.kv_tokens = Tokens{222};
    mine.date = "2026-01-01";
    std::vector<StartupRow> rows{row, mine};
    CHECK(judge_start(a.request(), rows).plan.kv_tokens == Tokens{222});
    rows[1].usable = "no";
    CHECK(judge_start(a.request(), rows).plan.kv_tokens == Tokens{111});
    rows[0].starts.clear();
    CHECK(judge_start(a.request(), rows).plan.basis != Basis::measured);
}

TEST_CASE("command line: the flags that are set, no others") {
    Asked a = ask("Kimi-K3", "b300x8", 8);
    CHECK(start_command(a.request()) == "vllm serve moonshotai/Kimi-K3 --tensor-parallel-size 8");
    a.settings.max_num_seqs = Requests{128};
    a.settings.max_model_len = Tokens{262144};
    a.settings.kv_cache_dtype = "fp8";
    a.settings.gpu_memory_utilization = 0.95;
    std::string const line = start_command(a.request());
    for (char const* part : {"--max-num-seqs 128", "--max-model-len 262144", "--kv-cache-dtype fp8", "--gpu-memory-utilization 0.95"})
        CHECK(line.find(part) != std::string::npos);
}

namespace {

/// Scores of the catalogue's rows, predicted without any measured start.
StartupScores const& scored(bool given_pool) {
    static auto const names = NameMap::read(*find_embedded("names.csv"), "names.csv");
    REQUIRE(names.has_value());
    static auto const rows = read_startups(*find_embedded("startups.csv"), "startups.csv", {{}, &*names, false});
    REQUIRE(rows.has_value());
    auto const make = [](bool pool) {
        StartupCatalogue c;
        c.model = [](std::string_view name) { return starts::find(std::string{name}); };
        c.gpu = [](std::string_view name) { return find_gpu(name, starts::gpus()); };
        return validate_startups(*rows, c, {.given_pool = pool});
    };
    static StartupScores const blind = make(false), pool = make(true);
    return given_pool ? pool : blind;
}

} // namespace

TEST_CASE("start-ups of the catalogue: weights, verdicts and tokens keep the accuracy that docs/accuracy.md states", "[startups]") {
    StartupGroupScore const& all = scored(false).all;
    QuantityScore const &tokens = all.quantity[0], &block = all.quantity[1], &weights = all.quantity[2];
    CHECK(weights.n > 85);
    CHECK(weights.median_abs_pct_error <= 1);
    CHECK(weights.within_3pct >= 90);
    CHECK(all.starts.n > 150);
    CHECK(all.starts.accuracy >= 95);
    // Missed refusals, each with its cause in docs/accuracy.md: aimed at none.
    CHECK(all.starts.missed_failures <= 3);
    CHECK(tokens.n >= 118);
    CHECK(tokens.median_abs_pct_error <= 5);
    CHECK(*tokens.interval_coverage >= 75);
    CHECK(*tokens.interval_coverage <= 88);
    CHECK(tokens.within_15pct >= 64); // aimed at 85: rows that name neither version nor utilization
    CHECK(block.n >= 13);
    CHECK(block.within_1pct > 92); // one row's block size is its author's, from another layout
    // What can be known: rows that state both.
    auto const stated = score_startups(std::span<StartupResult const>{scored(false).results},
                                       [](StartupResult const& r) { return r.version_known && r.utilization_known; });
    CHECK(stated.quantity[0].n >= 50);
    CHECK(stated.quantity[0].within_15pct >= 85);
}

TEST_CASE("start-ups of the catalogue: given the pool, plain models' tokens are within 1 %", "[startups]") {
    StartupScores const& s = scored(true);
    CHECK(s.all.quantity[0].n > 70);
    CHECK(s.all.quantity[0].within_1pct >= 85);
    for (StartupResult const& r : s.results) {
        if (!r.compared[0] || r.row->engine != "vllm" || r.drafter_unknown) continue;
        if (r.row->model.find("Llama") == std::string::npos && r.row->model.find("Qwen2.5") == std::string::npos) continue;
        INFO(r.row->id << " " << r.row->model);
        CHECK(std::abs(r.compared[0]->error_pct()) <= 1);
    }
}
