// vLLM's verdicts, with the messages and figures that real starts and refusals print.
#include <catch.hpp>

#include <cmath>

#include "start_fixtures.hpp"

using namespace servecap;
using starts::Asked;
using starts::ask;

namespace {

bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }
double gap_pct(double ours, double theirs) { return 100.0 * (ours - theirs) / theirs; }

} // namespace

TEST_CASE("vllm verdict: a 27B hybrid on 38.45 GiB: block 784, 803 blocks, 622,785 tokens; fp8: 1,568 (start-up logs)") {
    Asked a = ask("Qwen3.6-27B", "rtx-pro-6000-bw-wsx1");
    a.settings.max_model_len = Tokens{262144};
    a.settings.max_num_seqs = Requests{256};
    a.pool = gib(38.45);
    StartPlan const p = a.plan();
    CHECK(p.starts);
    CHECK(p.block_tokens == Tokens{784});
    CHECK(p.num_blocks == 803);
    CHECK(p.state_slots == 803);
    CHECK(p.kv_tokens == Tokens{622785});
    CHECK(p.basis == Basis::exact);
    a.settings.kv_cache_dtype = "fp8";
    a.pool = gib(9.8);
    a.settings.max_num_seqs = Requests{192};
    StartPlan const f = a.plan();
    CHECK(f.starts);
    CHECK(f.block_tokens == Tokens{1568});
    CHECK(f.kv_tokens == Tokens{312733});
    a.settings.max_num_seqs = Requests{256}; // 204 slots
    StartPlan const refused = a.plan();
    CHECK(refused.verdict == Verdict::state_slots_too_few);
    CHECK(refused.engine_message == "max_num_seqs (256) exceeds available Mamba cache blocks (204)");
}

TEST_CASE("vllm verdict: Kimi K3 at TP16 on H200, 0.82 GiB: 30,062 tokens at 29,696, refused at 32,768 (start-up logs)") {
    Asked a = ask("Kimi-K3", "h200x16", 16);
    a.settings.version = "0.26.0";
    a.settings.max_num_seqs = Requests{64};
    a.settings.max_model_len = Tokens{29696};
    a.pool = gib(0.82);
    StartPlan const p = a.plan();
    CHECK(p.starts);
    CHECK(p.block_tokens == Tokens{384});
    CHECK(p.num_blocks == 82);
    CHECK(p.kv_tokens == Tokens{30062});
    CHECK(in_gib(p.weights) == Approx(129.75).epsilon(0.001));

    a.settings.max_model_len = Tokens{32768};
    StartPlan const r = a.plan();
    CHECK(r.verdict == Verdict::max_model_len_too_long);
    CHECK(contains(r.engine_message, "max seq len (32768)"));
    CHECK(contains(r.engine_message, "estimated maximum model length is 30336"));
    CHECK(r.longest == Tokens{30336});

    a.settings.max_model_len = Tokens{-1}; // as long as fits
    StartPlan const longest = a.plan();
    CHECK(longest.starts);
    CHECK(longest.max_model_len == Tokens{30336});
}

TEST_CASE("vllm verdict: Kimi K3 at TP16 with decode context parallel 8, 1.732 GiB: 1,054,602 tokens (start-up log)") {
    Asked a = ask("Kimi-K3", "rtx-pro-6000-bw-wsx16", 16);
    a.layout.dcp = 8;
    a.settings.version = "0.26.0";
    a.settings.max_num_seqs = Requests{1};
    a.settings.kv_cache_dtype = "fp8_e4m3";
    a.settings.prefix_caching = false;
    a.settings.max_model_len = Tokens{1048576};
    a.pool = gib(1.732);
    CHECK(a.plan().kv_tokens == Tokens{1054602});
}

TEST_CASE("vllm verdict: Llama 3.1 8B on one L4 at 0.92: refused at 131,072, 40,208 tokens, longest 40,192") {
    Asked a = ask("Llama-3.1-8B", "l4x1");
    a.settings.gpu_memory_utilization = 0.92;
    StartPlan const blind = a.plan(); // the whole way, nothing given
    CHECK(blind.verdict == Verdict::max_model_len_too_long);
    CHECK(contains(blind.engine_message, "max seq len (131072), 16.00 GiB KV cache is needed"));
    CHECK(blind.longest < Tokens{40192}); // the runtime sees 22.07 GiB of the 22.49 that the figure is reckoned from, and graphs are counted now
    Asked b = a;
    b.settings.version = "0.19.0";
    b.gpus.gpu.visible = gib(22.49);
    CHECK(std::abs(gap_pct(static_cast<double>(b.plan().longest.value()), 40192)) < 3);

    a.pool = Bytes{2513ll * 16 * 131072}; // 2,513 blocks of 16 tokens
    StartPlan const refused = a.plan();
    CHECK(refused.verdict == Verdict::max_model_len_too_long);
    CHECK(refused.num_blocks == 2513);
    CHECK(refused.longest == Tokens{40192});
    CHECK(contains(refused.engine_message, "estimated maximum model length is 40192"));
    a.settings.max_model_len = Tokens{40192};
    StartPlan const p = a.plan();
    CHECK(p.starts);
    CHECK(p.kv_tokens == Tokens{40208});
}

TEST_CASE("vllm verdict: GLM-5.3-Flash: 512 slots that come from the largest graph, not from the memory") {
    Asked a = ask("GLM-5.3-Flash", "h200x8", 8);
    StartPlan const p = a.plan(); // 1,024 sequences by default on this GPU
    CHECK(p.verdict == Verdict::state_slots_too_few);
    CHECK(p.engine_message == "max_num_seqs (1024) exceeds available Mamba cache blocks (512)");
    REQUIRE_FALSE(p.fixes.empty());
    CHECK(p.fixes.front().flag == "--max-num-seqs");
    CHECK(p.fixes.front().value == "512");
    CHECK(p.num_blocks > 1024); // memory would do
}

TEST_CASE("vllm verdict: DeepSeek V4.1 Flash at TP4, 144.66 GiB: 85,171,942 tokens by the packed layout (start-up log)") {
    Asked a = ask("DeepSeek-V4.1-Flash-1017", "b300x4", 4);
    a.settings.version = "0.33.0";
    a.settings.max_num_seqs = Requests{256};
    a.settings.indexer_kv_dtype = "mxfp4";
    a.pool = Bytes{833463 * a.plan().bytes_per_block.value()}; // prints 144.66 GiB
    StartPlan const p = a.plan();
    CHECK(std::round(100.0 * in_gib(p.pool)) == 14466);
    CHECK(p.num_blocks == 833463);
    CHECK(p.blocks_per_max_request == 10261);
    CHECK(p.kv_tokens == Tokens{85171942});
    CHECK(gap_pct(in_gib(p.weights), 79.25) == Approx(0).margin(1)); // 288 wide experts padded to tiles of 128
}

TEST_CASE("vllm verdict: the first V4 builds check the length with whole layer tuples: 6.66 GiB, 13,528 (public report)") {
    Asked a = ask("DeepSeek-V4-Flash", "gh200-96x2", 2);
    a.layout.ep = true;
    a.settings.version = "0.22.0";
    a.settings.kv_cache_dtype = "fp8";
    a.settings.max_model_len = Tokens{30000};
    a.settings.max_num_batched_tokens = Tokens{16384}; // the offline class' default
    a.pool = gib(5.44);
    StartPlan const p = a.plan();
    CHECK(p.verdict == Verdict::max_model_len_too_long);
    CHECK(contains(p.engine_message, "6.66 GiB KV cache is needed"));
    CHECK(static_cast<double>(p.longest.value()) == Approx(13528).margin(8)); // the pool is printed to 0.01 GiB
}

TEST_CASE("vllm verdict: V4 before packed groups weighs pages in the token line (start-up logs)") {
    Asked a = ask("DeepSeek-V4-Flash", "h200x2", 2);
    a.settings.version = "0.25.0";
    a.pool = gib(32.08);
    a.settings.max_model_len = Tokens{262144};
    CHECK(gap_pct(static_cast<double>(a.plan().kv_tokens.value()), 2175276) == Approx(0).margin(0.05));
    a.settings.max_model_len = Tokens{4096};
    CHECK(gap_pct(static_cast<double>(a.plan().kv_tokens.value()), 90841) == Approx(0).margin(0.05));
    a.settings.version = "0.26.0"; // two batches in flight: a public report has 7.7 GiB for 150 thousand tokens
    a.settings.max_model_len = Tokens{121344};
    a.settings.max_num_seqs = Requests{32};
    a.settings.max_num_batched_tokens = Tokens{8192};
    a.pool = gib(7.7);
    CHECK(static_cast<double>(a.plan().kv_tokens.value()) == Approx(150000).epsilon(0.01));
}

TEST_CASE("vllm verdict: Kimi K3.1 Pro on 8 B300, blind from its inferred card, beside the measured start") {
    Asked a = ask("Kimi-K3.1-Pro", "b300x8", 8);
    a.settings.max_num_seqs = Requests{256};
    StartPlan const p = a.plan();
    CHECK(p.starts);
    CHECK(p.basis == Basis::inferred);
    CHECK(std::abs(gap_pct(in_gib(p.weights), 193.66)) < 1.5);
    CHECK(std::abs(gap_pct(static_cast<double>(p.kv_tokens.value()), 2151492)) < 5);
    CHECK(p.kv_tokens_low < Tokens{2151492});
    CHECK(p.kv_tokens_high > Tokens{2151492});

    a.settings.max_num_seqs.reset(); // 1,024
    StartPlan const r = a.plan();
    CHECK(r.verdict == Verdict::state_slots_too_few);
    CHECK(contains(r.engine_message, "max_num_seqs (1024) exceeds available Mamba cache blocks ("));
    REQUIRE(r.state_slots);
    CHECK(std::abs(gap_pct(static_cast<double>(*r.state_slots), 603)) < 10); // graphs of 1,024 tokens and state buffers
    REQUIRE_FALSE(r.fixes.empty());
    CHECK(r.fixes.front().flag == "--max-num-seqs");
}

TEST_CASE("vllm verdict: which GPUs hold Kimi K3") {
    struct Fit {
        char const* gpus;
        std::int32_t tp, pp, dp;
        bool ep, fits;
        double short_gib;
    };
    for (Fit const& f : {Fit{"h100x8", 8, 1, 1, false, false, 119}, Fit{"h100x32", 8, 4, 1, false, true, 0}, Fit{"h200x8", 8, 1, 1, false, false, 63},
                         Fit{"b200x8", 8, 1, 1, false, false, 28}, Fit{"b200x16", 16, 1, 1, false, true, 0}, Fit{"b200x16", 8, 2, 1, false, true, 0},
                         Fit{"b300x8", 8, 1, 1, false, true, 0}, Fit{"gb300x8", 8, 1, 1, false, true, 0}, Fit{"mi355xx8", 8, 1, 1, false, true, 0},
                         Fit{"b300x8", 1, 1, 8, true, false, 29}, Fit{"b300x16", 1, 1, 16, true, true, 0}}) {
        Asked a = ask("Kimi-K3", f.gpus, f.tp);
        a.layout.pp = f.pp;
        a.layout.dp = f.dp;
        a.layout.ep = f.ep;
        StartPlan const p = a.plan();
        INFO(f.gpus << " tp" << f.tp << " pp" << f.pp << " dp" << f.dp << ": " << p.engine_message);
        CHECK(p.fits == f.fits);
        CHECK(in_gib(p.shortfall) == Approx(f.short_gib).margin(1.0));
        if (!f.fits) {
            CHECK(p.verdict == Verdict::weights_do_not_fit);
            CHECK_FALSE(p.fixes.empty()); // another layout, or more GPUs
        } else if (!p.starts) {
            REQUIRE_FALSE(p.fixes.empty()); // the defaults do not start everywhere: a flag mends it
            CHECK(p.fixes.front().settings.has_value());
        }
    }
    Asked dep = ask("Kimi-K3", "b300x8");
    dep.layout.dp = 8;
    dep.layout.ep = true;
    CHECK(in_gib(dep.plan().weights) == Approx(274.9).epsilon(0.005)); // a rank keeps all attention and an eighth of the experts
    Asked games = ask("Kimi-K3", "h200x8", 8);
    CHECK(static_cast<double>(1560860324864 - 8 * games.gpus.gpu.memory_reported->value()) / 1e9 == Approx(354.8).margin(0.05));
    Asked few = ask("Kimi-K3", "b200x8", 8);
    CHECK(static_cast<double>(1560860324864 - 8 * few.gpus.gpu.memory_reported->value()) / 1e9 == Approx(22.7).margin(0.05));
    Asked desks = ask("Kimi-K3", "rtx-4090x1");
    desks.gpus.count = 75;
    desks.gpus.nodes = 10;
    desks.layout.tp = 75;
    StartPlan const none = desks.plan();
    CHECK(none.verdict == Verdict::layout_invalid);
    CHECK(contains(none.engine_message, "not divisible by tensor parallel size 75"));
    CHECK(75 * desks.gpus.gpu.memory_reported->value() > 1560860324864); // there would be bytes enough
}

TEST_CASE("vllm verdict: the fixes of a large model on few GPUs keep a useful number of sequences") {
    Asked a = ask("Kimi-K3", "b200x16", 16);
    StartPlan const p = a.plan();
    REQUIRE(p.verdict == Verdict::no_kv_memory);
    REQUIRE_FALSE(p.fixes.empty());
    REQUIRE(p.fixes.front().settings);
    EngineSettings const& s = *p.fixes.front().settings;
    REQUIRE(s.max_num_seqs);
    CHECK(s.max_num_seqs->value() >= 64);
    for (Fix const& f : p.fixes)
        if (f.settings) { // each mends it
            Asked b = a;
            b.settings = *f.settings;
            INFO(f.flag << " " << f.value);
            CHECK(b.plan().starts);
        }
}

TEST_CASE("vllm verdict: layouts that do not divide are refused in the engine's words") {
    Asked a = ask("Kimi-K3", "h200x24", 24);
    a.gpus.nodes = 3;
    CHECK(contains(a.plan().engine_message, "163840 is not divisible by 24"));
    CHECK(contains(ask("Llama-3.1-8B", "h100x8", 3).plan().engine_message,
                   "Total number of attention heads (32) must be divisible by tensor parallel size (3)."));
    CHECK(ask("Qwen2.5-7B-Instruct", "h100x8", 8).plan().verdict == Verdict::layout_invalid); // 28 heads
    CHECK(ask("Llama-3.1-8B", "h100x8", 8).plan().starts);
}

TEST_CASE("vllm verdict: more memory asked than is free") {
    Asked a = ask("Llama-3.1-8B", "h100x1");
    a.settings.gpu_memory_utilization = 0.995;
    StartPlan const p = a.plan();
    CHECK(p.verdict == Verdict::free_memory_below_request);
    CHECK(contains(p.engine_message, "is less than desired GPU memory utilization (0.995"));
    REQUIRE_FALSE(p.fixes.empty());
    CHECK(p.fixes.front().flag == "--gpu-memory-utilization");
    Asked b = a;
    b.settings = *p.fixes.front().settings;
    CHECK(b.plan().starts);
}

TEST_CASE("vllm verdict: vLLM 0.19 on H100, blind, against the token line of the logs") {
    struct Logged {
        char const* model;
        std::int32_t tp, pp;
        std::int64_t len, tokens;
    };
    for (Logged const& l : {Logged{"Llama-3.1-8B", 1, 1, 8192, 476016}, Logged{"Llama-3.1-8B", 2, 1, 8192, 1044688}, Logged{"Llama-3.1-8B", 4, 1, 8192, 2209792},
                            Logged{"Llama-3.1-8B", 1, 2, 8192, 1075312}, Logged{"Llama-3.1-8B", 1, 4, 8192, 2257264}, Logged{"Qwen3-8B", 1, 1, 8192, 418688},
                            Logged{"Qwen3-30B-A3B", 1, 1, 8192, 168288}, Logged{"CodeLlama-7b-hf", 1, 1, 8192, 126256},
                            Logged{"DeepSeek-V2-Lite", 1, 1, 8192, 1505552}, Logged{"gemma-3-12b-it", 1, 1, 8192, 130304}}) {
        Asked a = ask(l.model, "h100x" + std::to_string(l.tp * l.pp), l.tp);
        a.layout.pp = l.pp;
        a.settings.version = "0.19.0";
        a.settings.gpu_memory_utilization = 0.95;
        a.settings.max_model_len = Tokens{l.len};
        a.gpus.gpu.visible = gib(79.19); // as these logs print it
        StartPlan const p = a.plan();
        INFO(l.model << " tp" << l.tp << " pp" << l.pp << " " << p.kv_tokens.value());
        CHECK(p.starts);
        CHECK(std::abs(gap_pct(static_cast<double>(p.kv_tokens.value()), static_cast<double>(l.tokens))) < 2.5);
        CHECK_FALSE(p.risks.empty()); // this version does not count graphs
    }
}

TEST_CASE("vllm verdict: laws") {
    for (char const* name : {"Llama-3.1-8B", "gpt-oss-20b", "Qwen3.6-27B", "Kimi-Linear-48B-A3B-Instruct", "DeepSeek-V2-Lite"}) {
        INFO(name);
        Asked a = ask(name, "h200x2", 2);
        a.settings.max_num_seqs = Requests{64};
        a.settings.max_model_len = Tokens{16384};
        a.settings.gpu_memory_utilization = 0.9;
        StartPlan const p = a.plan();
        REQUIRE(p.starts);
        CHECK(p.kv_tokens_low <= p.kv_tokens);
        CHECK(p.kv_tokens_high >= p.kv_tokens);
        CHECK(p.budget.requested.value() >= (p.weights + p.pool).value());
        CHECK(std::abs(static_cast<double>(p.num_blocks * p.bytes_per_block.value() - p.pool.value())) <= static_cast<double>(p.bytes_per_block.value()));
        CHECK(requests_with_room(p, Tokens{1024}) >= requests_with_room(p, Tokens{2048}));
        CHECK(std::abs(blocks_of_request(p, p.max_model_len) - static_cast<double>(p.blocks_per_max_request)) <= 1.0);
        Asked more = a;
        more.settings.gpu_memory_utilization = 0.95;
        CHECK(more.plan().kv_tokens >= p.kv_tokens);
        Asked wider = a;
        wider.settings.max_num_batched_tokens = Tokens{32768};
        CHECK(wider.plan().pool <= p.pool);
        Asked longest = a; // the longest that starts does, the next does not
        longest.settings.max_model_len = p.longest;
        CHECK(longest.plan().verdict != Verdict::max_model_len_too_long);
        Asked given = a; // the allocator alone, from the pool that it says
        given.pool = p.pool;
        CHECK(given.plan().kv_tokens == p.kv_tokens);
    }
}

TEST_CASE("vllm verdict: requests that decode hold their windows, not a batch of prompt tokens each") {
    // DeepSeek V4 on 8 x GB200, 8,000 in and 1,000 out: a prompt of 8,192 tokens is in flight for one request at a time.
    Asked a = ask("DeepSeek-V4-Pro", "gb200x8", 8);
    a.settings.max_model_len = Tokens{131072};
    StartPlan const p = a.plan();
    REQUIRE(p.starts);
    Tokens const request{9000};
    double const at_start = blocks_of_request(p, request);
    auto const n = requests_with_room(p, request);
    CHECK(n > 2 * static_cast<std::int64_t>(static_cast<double>(p.num_blocks) / at_start));
    // what they hold together, with the batches in flight once, is within the pool; one more would not be
    PagesOfRequest each;
    for (PageRule const& r : p.pages_of_request) each.add(r, request.value());
    CHECK(each.starting == at_start);
    CHECK(each.running < each.starting);
    CHECK(static_cast<double>(n) * each.running + each.in_flight <= static_cast<double>(p.num_blocks));
    CHECK(static_cast<double>(n + 1) * each.running + each.in_flight > static_cast<double>(p.num_blocks));
    // without windows nothing changes
    StartPlan const plain = ask("Llama-3.1-8B", "h200", 1).plan();
    CHECK(requests_with_room(plain, request) == static_cast<std::int64_t>(static_cast<double>(plain.num_blocks) / blocks_of_request(plain, request)));
}
