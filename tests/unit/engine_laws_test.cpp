// Laws that every engine keeps, whatever its rules: run on vLLM, SGLang, TensorRT-LLM and llama.cpp alike.

#include <catch.hpp>

#include <servecap/engine/concept.hpp>

#include "engine_fixtures.hpp"

using namespace servecap;

namespace {

struct Case {
    char const* card;
    GpuSet gpus;
    std::int32_t tp;
};

/// Plain, grouped with windows, latent, and two kinds of recurrent models, small enough for the GPUs beside them.
std::vector<Case> cases() {
    return {{"Llama-3.1-8B", fixtures::h100(8), 1},       {"gpt-oss-20b", fixtures::h100(8), 1},
            {"Qwen3.5-27B", fixtures::h200(8), 1},        {"DeepSeek-V3", fixtures::h200(8), 8},
            {"Gemma-4-26B-A4B", fixtures::h200(8), 2},    {"Kimi-Linear-48B-A3B-Instruct", fixtures::h200(8), 2},
            {"granite-4.0-h-small", fixtures::h200(8), 1}};
}

/// Settings under which each engine starts with state for few sequences.
EngineSettings modest(EngineKind e) {
    EngineSettings s;
    s.engine = e;
    s.gpu_memory_utilization = 0.85;
    s.max_num_seqs = Requests{32};
    s.max_model_len = Tokens{8192};
    if (e == EngineKind::sglang) s.max_running_requests = Requests{32};
    if (e == EngineKind::llama_cpp) {
        s.max_num_seqs.reset();
        s.n_parallel = 4;
        s.kv_unified = true;
        s.weights_dtype = "Q4_K_M";
    }
    return s;
}

template <EngineModel E>
StartPlan start(Model const& m, GpuSet const& g, Layout const& l, EngineSettings const& s) {
    return E::start(StartRequest{m, g, l, s, Tokens{1000}, Tokens{1000}, {}});
}

template <EngineModel E>
void plans_are_sound() {
    for (Case const& c : cases()) {
        Model const m = fixtures::model(c.card);
        Layout l;
        l.tp = c.tp;
        EngineSettings const s = modest(E::kind);
        auto const p = start<E>(m, c.gpus, l, s);
        INFO(to_string(E::kind) << " " << c.card << ": " << p.engine_message);
        REQUIRE(p.starts);
        CHECK(p.verdict == Verdict::starts);
        CHECK(p.engine_message.empty());
        CHECK_FALSE(p.rules_version.empty());
        CHECK(p.fits);
        CHECK(p.kv_tokens.value() > 0);
        CHECK(p.kv_tokens_low <= p.kv_tokens);
        CHECK(p.kv_tokens <= p.kv_tokens_high);
        CHECK(p.block_tokens.value() > 0);
        CHECK(p.num_blocks > 0);
        CHECK(p.max_num_seqs.value() > 0);
        CHECK(p.weights.value() > 0);
        CHECK(p.weights <= p.weights_total);
        // the parts of a GPU have room in it
        CHECK(p.budget.weights + p.budget.non_torch + p.pool <= p.budget.visible);
        CHECK(p.budget.weights + p.budget.activation + p.budget.non_torch + p.pool <= p.budget.visible + mib(1));
        // a pure function: the same again
        auto const q = start<E>(m, c.gpus, l, s);
        CHECK(q.kv_tokens == p.kv_tokens);
        CHECK(q.pool == p.pool);
        CHECK(q.notes == p.notes);
    }
}

template <EngineModel E>
void more_memory_never_means_fewer_tokens() {
    for (Case const& c : cases()) {
        Model const m = fixtures::model(c.card);
        Layout l;
        l.tp = c.tp;
        EngineSettings s = modest(E::kind);
        std::int64_t last = -1;
        bool started = false;
        for (double u : {0.5, 0.6, 0.7, 0.8, 0.9}) {
            s.gpu_memory_utilization = u;
            auto const p = start<E>(m, c.gpus, l, s);
            INFO(to_string(E::kind) << " " << c.card << " " << u);
            if (started) CHECK(p.starts); // what starts with less starts with more
            started = p.starts;
            std::int64_t const tokens = p.starts ? p.kv_tokens.value() : 0;
            CHECK(tokens >= last);
            last = tokens;
        }
        s = modest(E::kind);
        last = -1;
        started = false;
        for (double visible : {0.6, 0.8, 1.0, 1.5}) {
            GpuSet g = c.gpus; // the same card with more memory behind its name: defaults by size stay
            g.gpu.visible = Bytes{static_cast<std::int64_t>(static_cast<double>(c.gpus.gpu.visible.value()) * visible)};
            auto const p = start<E>(m, g, l, s);
            INFO(to_string(E::kind) << " " << c.card << " x" << visible);
            if (started) CHECK(p.starts);
            started = p.starts;
            std::int64_t const tokens = p.starts ? p.kv_tokens.value() : 0;
            CHECK(tokens >= last);
            last = tokens;
        }
    }
}

template <EngineModel E>
void longer_contexts_and_more_sequences_never_help() {
    for (Case const& c : cases()) {
        Model const m = fixtures::model(c.card);
        Layout l;
        l.tp = c.tp;
        bool refused = false;
        for (std::int64_t n : {2048, 8192, 32768, 131072, 1048576, 8388608}) {
            EngineSettings s = modest(E::kind);
            s.max_model_len = Tokens{n};
            bool const starts = start<E>(m, c.gpus, l, s).starts;
            INFO(to_string(E::kind) << " " << c.card << " " << n);
            if (refused) CHECK_FALSE(starts);
            refused = refused || !starts;
        }
        refused = false;
        for (std::int64_t n : {1, 16, 256, 1024, 8192}) {
            EngineSettings s = modest(E::kind);
            s.max_num_seqs = Requests{n};
            s.max_running_requests = Requests{n};
            if (E::kind == EngineKind::llama_cpp) {
                s.max_num_seqs.reset();
                s.n_parallel = static_cast<std::int32_t>(n);
                s.fit_params = false;
            }
            bool const starts = start<E>(m, c.gpus, l, s).starts;
            INFO(to_string(E::kind) << " " << c.card << " sequences " << n);
            if (refused) CHECK_FALSE(starts);
            refused = refused || !starts;
        }
    }
}

template <EngineModel E>
void one_rank_is_not_split_and_more_ranks_hold_less_each() {
    for (char const* card : {"Llama-3.1-8B", "Qwen3.5-27B"}) {
        Model const m = fixtures::model(card);
        EngineSettings const s = modest(E::kind);
        Bytes last{};
        std::int64_t cell = 0;
        for (std::int32_t tp : {1, 2, 4}) {
            Layout l;
            l.tp = tp;
            auto const p = start<E>(m, fixtures::h200(8), l, s);
            INFO(to_string(E::kind) << " " << card << " tp" << tp);
            REQUIRE(p.starts);
            if (tp == 1) {
                CHECK(p.weights + p.host_bytes >= p.weights_total - mib(1)); // everything on the one rank or its host
            } else {
                CHECK(p.weights < last);
                CHECK((p.weights * tp + p.host_bytes).value() + tp * mib(64).value() >= 0);
                if (E::kind != EngineKind::llama_cpp) CHECK(p.kv_per_token.value() * tp >= cell); // copies only add
                CHECK(p.kv_per_token.value() <= cell);
            }
            if (tp == 1) cell = p.kv_per_token.value();
            last = p.weights;
        }
    }
}

template <EngineModel E>
void narrower_rows_hold_no_fewer_tokens() {
    Model const m = fixtures::model("Llama-3.1-8B");
    EngineSettings s = modest(E::kind);
    auto const wide = start<E>(m, fixtures::h100(1), {}, s);
    s.kv_cache_dtype = E::kind == EngineKind::llama_cpp ? "q8_0" : "fp8";
    auto const narrow = start<E>(m, fixtures::h100(1), {}, s);
    REQUIRE(wide.starts);
    REQUIRE(narrow.starts);
    INFO(to_string(E::kind));
    CHECK(narrow.kv_tokens >= wide.kv_tokens);
    CHECK(narrow.kv_per_token < wide.kv_per_token);
}

template <EngineModel E>
void refusals_say_why_and_fixes_start() {
    // weights that no setting makes room for
    Model const big = fixtures::model("Llama-3.1-405B");
    EngineSettings s = modest(E::kind);
    s.weights_dtype.reset();
    if (E::kind == EngineKind::llama_cpp) s.n_gpu_layers = 999;
    auto const p = start<E>(big, fixtures::h100(1), {}, s);
    INFO(to_string(E::kind));
    CHECK_FALSE(p.starts);
    CHECK(p.verdict == Verdict::weights_do_not_fit);
    CHECK_FALSE(p.engine_message.empty());
    CHECK(p.shortfall.value() > 0);
    CHECK(p.kv_tokens.value() == 0);
    // and each fix that keeps the layout does start
    for (char const* card : {"Llama-3.1-8B", "Qwen3.5-27B", "Qwen3-32B"}) {
        Model const m = fixtures::model(card);
        for (double u : {0.3, 0.7}) {
            EngineSettings q = modest(E::kind);
            q.gpu_memory_utilization = u;
            q.max_num_seqs = Requests{2048};
            q.max_running_requests.reset();
            auto const r = start<E>(m, fixtures::h100(1), {}, q);
            if (r.starts) continue;
            CHECK_FALSE(r.engine_message.empty());
            for (Fix const& f : r.fixes) {
                CHECK_FALSE(f.flag.empty());
                CHECK_FALSE(f.effect.empty());
                INFO(card << " " << f.flag << " " << f.value);
                if (f.settings) CHECK(start<E>(m, fixtures::h100(1), {}, *f.settings).starts);
            }
        }
    }
    // heads that ranks cannot share; llama.cpp spreads layers, so any number of devices will do
    Layout odd;
    odd.tp = 3;
    auto const layout = start<E>(fixtures::model("Llama-3.1-8B"), fixtures::h100(8), odd, modest(E::kind));
    CHECK(layout.starts == (E::kind == EngineKind::llama_cpp));
    if (!layout.starts) CHECK(layout.verdict == Verdict::layout_invalid);
}

template <EngineModel E>
void keeps_the_laws() {
    SECTION("plans are sound") { plans_are_sound<E>(); }
    SECTION("more memory never means fewer tokens") { more_memory_never_means_fewer_tokens<E>(); }
    SECTION("longer contexts and more sequences never help") { longer_contexts_and_more_sequences_never_help<E>(); }
    SECTION("one rank is not split") { one_rank_is_not_split_and_more_ranks_hold_less_each<E>(); }
    SECTION("narrower rows hold no fewer tokens") { narrower_rows_hold_no_fewer_tokens<E>(); }
    SECTION("refusals say why and fixes start") { refusals_say_why_and_fixes_start<E>(); }
}

} // namespace

TEST_CASE("vLLM keeps the laws of engines", "[engine][laws]") { keeps_the_laws<VllmEngine>(); }
TEST_CASE("SGLang keeps the laws of engines", "[engine][laws]") { keeps_the_laws<SglangEngine>(); }
TEST_CASE("TensorRT-LLM keeps the laws of engines", "[engine][laws]") { keeps_the_laws<TrtllmEngine>(); }
TEST_CASE("llama.cpp keeps the laws of engines", "[engine][laws]") { keeps_the_laws<LlamaCppEngine>(); }
