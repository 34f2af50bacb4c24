// The sweep says what the explained plan says, the front is that of brute force, goals invert the forward function.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <catch.hpp>

#include <servecap/engine/engine.hpp>
#include <servecap/perf/predict.hpp>
#include <servecap/plan/goal.hpp>
#include <servecap/plan/pareto.hpp>
#include <servecap/plan/search.hpp>
#include <servecap/plan/sweep.hpp>

#include "start_fixtures.hpp"

namespace plan_search_test {

using namespace servecap;

struct Point {
    PlanAxes axes;
    int id = 0;
};

std::set<int> ids(std::vector<Point> const& points) {
    std::set<int> out;
    for (Point const& p : points) out.insert(p.id);
    return out;
}

/// Those that none of all others dominates, by asking every pair.
std::vector<Point> brute_force(std::vector<Point> const& all) {
    std::vector<Point> out;
    for (Point const& p : all)
        if (std::none_of(all.begin(), all.end(), [&](Point const& q) { return dominates(q.axes, p.axes); })) out.push_back(p);
    return out;
}

PlanRequest request(Model const& m, GpuSet const& set) {
    PlanRequest q{.model = m, .gpus = set};
    q.known_gpus = starts::gpus();
    return q;
}

std::optional<UsdPerHour> five_dollars(GpuSet const& s) { return UsdPerHour{5.0 * s.count}; }

bool has(SearchAnswer const& a, std::string const& layout, bool starts) {
    return std::any_of(a.judged.begin(), a.judged.end(), [&](JudgedLayout const& j) { return layout_name(j.layout) == layout && j.fit.starts == starts; });
}

JudgedLayout const& judged(SearchAnswer const& a, std::string const& layout) {
    auto const at = std::find_if(a.judged.begin(), a.judged.end(), [&](JudgedLayout const& j) { return layout_name(j.layout) == layout; });
    INFO(layout);
    REQUIRE(at != a.judged.end());
    return *at;
}

} // namespace plan_search_test

using namespace plan_search_test;

TEST_CASE("the Pareto front of 500 random spaces is that of brute force, whole or in parts", "[plan][search]") {
    std::mt19937 random{20261202};
    auto const pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int space = 0; space < 500; ++space) {
        int const n = 1 + pick(40), values = 2 + pick(12); // few values: many ties
        std::vector<Point> all;
        ParetoFront<Point> whole, first, second;
        for (int i = 0; i < n; ++i) {
            Point p;
            p.id = i;
            p.axes.per_user = pick(values);
            p.axes.per_gpu = pick(values);
            p.axes.context = pick(3);
            p.axes.gpus = 1 + pick(4);
            p.axes.priced = pick(5) > 0;
            p.axes.per_million = p.axes.priced ? 1 + pick(values) : 0;
            all.push_back(p);
            whole.add(p);
            (pick(2) == 0 ? first : second).add(p);
        }
        first.merge(second);
        auto const expected = ids(brute_force(all));
        CAPTURE(space, n, values);
        REQUIRE(ids(whole.items()) == expected);
        REQUIRE(ids(first.items()) == expected);
    }
}

TEST_CASE("a search finds the front of every layout judged, predicted and priced one by one", "[plan][search]") {
    std::mt19937 random{7};
    Model const& m = starts::model("Llama-3.1-8B-Instruct");
    for (int space = 0; space < 60; ++space) {
        std::vector<GpuSet> sets;
        for (char const* name : {"h100x1", "h100x2", "l4x1", "l4x2", "b200x1", "l40sx2"})
            if (random() % 2 == 0) sets.push_back(starts::set(name));
        if (sets.empty()) sets.push_back(starts::set("t4x1"));
        PlanRequest q = request(m, sets.front());
        q.workload.concurrency = {Requests{1}, Requests{8 + static_cast<std::int64_t>(random() % 40)}};
        SearchTargets targets;
        if (random() % 2 == 0) targets.slo_tpot = milliseconds(6 + static_cast<double>(random() % 20));
        if (random() % 3 == 0) targets.budget = UsdPerHour{7};
        SearchAnswer const found = search_plans(q, sets, targets, five_dollars);
        std::vector<Point> all;
        for (GpuSet const& set : sets)
            for (Layout const& l : layouts_on(m, set)) {
                StartRequest const start{.model = m, .gpus = set, .layout = l, .settings = {}};
                MendedStart const mended = mend_start(start, {}, {}, MendChoice::keep_given);
                if (!mended.judged.plan.starts) continue;
                for (SpeedPoint const& s : predict_speed({.model = m, .gpus = set, .layout = l, .settings = mended.settings, .fit = mended.judged.plan,
                                                          .workload = q.workload, .rows = {}, .coefficients = {}, .known_gpus = starts::gpus()})) {
                    double const hour = 5.0 * set.count;
                    if ((targets.slo_tpot && s.tpot.value > *targets.slo_tpot) || (targets.budget && hour > targets.budget->value())) continue;
                    Point p;
                    p.id = static_cast<int>(all.size());
                    p.axes = {s.per_user.value.value(), (UsdPerHour{hour} / s.output.value).value(), s.per_gpu.value.value(),
                              std::max(mended.judged.plan.longest, mended.judged.plan.max_model_len).value(), set.count, true};
                    all.push_back(p);
                }
            }
        std::vector<Point> const front = brute_force(all);
        CAPTURE(space, sets.size(), all.size());
        CHECK(found.front.size() == front.size());
        for (Point const& p : front)
            CHECK(std::any_of(found.front.begin(), found.front.end(), [&](SearchPoint const& f) {
                return f.speed.per_user.value.value() == p.axes.per_user && f.per_million_output && f.per_million_output->value() == p.axes.per_million &&
                       f.gpus.count == p.axes.gpus && f.context.value() == p.axes.context;
            }));
        if (!all.empty()) {
            REQUIRE(found.best);
            double least = 1e300;
            for (Point const& p : all) least = std::min(least, p.axes.per_million);
            CHECK(found.best->per_million_output->value() == least);
        } else {
            CHECK_FALSE(found.best);
        }
    }
}

TEST_CASE("a point of the sweep is the explained plan of those settings", "[plan][search]") {
    struct Case {
        char const* model;
        char const* gpus;
        Layout layout;
    };
    std::mt19937 random{11};
    for (Case const& c : {Case{"Llama-3.1-8B-Instruct", "l4x1", {}}, Case{"Kimi-K3.1-Pro", "b300x8", {.tp = 8}}, Case{"DeepSeek-V3.2", "h200x8", {.tp = 8}},
                          Case{"DeepSeek-V4.1-Flash-1017", "b300x2", {.tp = 2}}, Case{"gpt-oss-20b", "h100x1", {}}}) {
        CAPTURE(c.model);
        Model const& m = starts::model(c.model);
        GpuSet const set = starts::set(c.gpus);
        PlanRequest const q = request(m, set);
        SweepShared const shared{q};
        SweepReplica const r{q, shared, set, c.layout, q.settings};
        REQUIRE(r.starts());
        for (int i = 0; i < 8; ++i) {
            SweepPoint at;
            at.max_num_seqs = Requests{1 + static_cast<std::int64_t>(random() % 1200)};
            at.max_model_len = Tokens{1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(m.max_context.value()))};
            at.utilization = 0.80 + 0.01 * static_cast<double>(random() % 14);
            at.users = Requests{1 + static_cast<std::int64_t>(random() % 300)};
            EngineSettings s = r.settings();
            s.max_num_seqs = at.max_num_seqs;
            s.max_model_len = at.max_model_len;
            s.gpu_memory_utilization = at.utilization;
            StartRequest const start{.model = m, .gpus = set, .layout = c.layout, .settings = s};
            StartPlan const plan = plan_start(start);
            SweepPlan const fast = r.plan(at);
            CAPTURE(at.max_num_seqs.value(), at.max_model_len.value(), at.utilization, at.users.value());
            REQUIRE(fast.fit.verdict == plan.verdict);
            if (!plan.starts) continue;
            CHECK(fast.fit.kv_tokens == plan.kv_tokens);
            SpeedRequest const speed{.model = m, .gpus = set, .layout = c.layout, .settings = s, .fit = plan, .workload = q.workload, .rows = {}, .coefficients = {},
                                     .known_gpus = starts::gpus()};
            PreparedDeployment const d{speed};
            CHECK(fast.fit.slots == d.slots());
            SpeedPoint const slow = speed_at(d, speed, at.users);
            CHECK(fast.tpot.value() == slow.tpot.value.value());
            CHECK(fast.ttft.value() == slow.ttft.value.value());
            CHECK(fast.output.value() == slow.output.value.value());
        }
    }
}

TEST_CASE("goals invert the forward function within one token and one request", "[plan][search]") {
    for (char const* name : {"Llama-3.1-8B-Instruct", "DeepSeek-V3.2"}) {
        Model const& m = starts::model(name);
        bool const small = std::string{name}.starts_with("Llama");
        GpuSet const set = starts::set(small ? "l4x1" : "h200x8");
        Layout const layout{.tp = small ? 1 : 8};
        PlanRequest const q = request(m, set);
        SweepShared const shared{q};
        SweepReplica const r{q, shared, set, layout, q.settings};
        REQUIRE(r.starts());
        auto const starts_at = [&](std::int64_t len) { // the explained engine, not the sweep
            EngineSettings s = r.settings();
            s.max_model_len = Tokens{len};
            return plan_start({.model = m, .gpus = set, .layout = layout, .settings = s}).starts;
        };
        std::int64_t const longest = longest_context(r, {}).value();
        CAPTURE(name, longest);
        REQUIRE(longest > 0);
        CHECK(starts_at(longest));
        if (longest < m.max_context.value()) CHECK_FALSE(starts_at(longest + 1));
        for (double const tpot : {15.0, 40.0, 70.0, 150.0}) {
            LatencyLimits const limits{.ttft = milliseconds(60 * tpot), .tpot = milliseconds(tpot)};
            SweepPoint at;
            auto const kept = [&](std::int64_t n) {
                at.users = Requests{n};
                SweepPlan const p = r.plan(at);
                return !p.queued && limits.kept_by(p.ttft, p.tpot);
            };
            std::int64_t const most = most_users(r, {}, limits).value();
            CAPTURE(tpot, most);
            if (most > 0) CHECK(kept(most));
            CHECK_FALSE(kept(most + 1));
            if (most == 0) continue;
            for (double const rate : {0.1, 3.0, 77.7}) {
                auto const n = fewest_replicas(r, {}, limits, RequestsPerSecond{rate});
                REQUIRE(n);
                SweepPoint all;
                auto const answered = [&](std::int32_t replicas) {
                    all.replicas = replicas;
                    all.users = Requests{most * replicas};
                    return r.plan(all).requests.value();
                };
                CHECK(answered(*n) >= rate * (1 - 1e-9));
                if (*n > 1) CHECK(answered(*n - 1) < rate);
            }
        }
    }
}

TEST_CASE("any number of threads gives the same answer, and limits say what they cost", "[plan][search]") {
    Model const& m = starts::model("Llama-3.1-8B-Instruct");
    std::vector<GpuSet> const sets{starts::set("l4x1"), starts::set("l4x2"), starts::set("h100x1"), starts::set("h100x2")};
    PlanRequest const q = request(m, sets.front());
    SearchTargets targets;
    targets.slo_tpot = milliseconds(30);
    targets.budget = UsdPerHour{6};
    SearchOptions three;
    three.jobs = 3;
    SearchAnswer const a = search_plans(q, sets, targets, five_dollars), b = search_plans(q, sets, targets, five_dollars, three);
    REQUIRE(a.best);
    REQUIRE(b.best);
    CHECK(a.plans == b.plans);
    CHECK(a.left_out == b.left_out);
    auto const same = [](SearchPoint const& x, SearchPoint const& y) {
        return x.gpus.gpu.id == y.gpus.gpu.id && x.gpus.count == y.gpus.count && x.layout == y.layout && x.speed.concurrency == y.speed.concurrency;
    };
    CHECK(same(*a.best, *b.best));
    REQUIRE(a.front.size() == b.front.size());
    for (std::size_t i = 0; i < a.front.size(); ++i) CHECK(same(a.front[i], b.front[i]));
    // The most users within the limit are tried besides powers of two, so the limit binds and its price is named.
    REQUIRE_FALSE(a.relaxations.empty());
    for (Relaxation const& r : a.relaxations) {
        CHECK(r.by > 1);
        CHECK(*r.better.per_million_output < *a.best->per_million_output);
    }
    // What no plan keeps: the nearest miss, and what it misses.
    targets.slo_tpot = milliseconds(0.01);
    SearchAnswer const none = search_plans(q, sets, targets, five_dollars);
    CHECK_FALSE(none.best);
    REQUIRE(none.nearest);
    CHECK(none.missed == std::vector<Target>{Target::tpot});
}

TEST_CASE("Kimi K3.1 on 8 x B300: TP8 and TEP8 start, DEP8 needs 274.9 GiB a GPU and 16 GPUs", "[plan][search]") {
    Model const& m = starts::model("Kimi-K3.1-Pro");
    std::vector<GpuSet> const sets{starts::set("b300x8")};
    PlanRequest q = request(m, sets.front());
    q.startups = starts::rows();
    q.workload.concurrency = {Requests{1}};
    SearchOptions options;
    options.judge_layouts = true;
    SearchAnswer const a = search_plans(q, sets, {}, five_dollars, options);
    CHECK(has(a, "tp8", true));
    CHECK(has(a, "tep8", true));

    REQUIRE(a.best);
    CHECK(judged(a, "tp8").speeds.size() == 1);
    CHECK(judged(a, "tep8").speeds.size() == 1);
    JudgedLayout const& dep = judged(a, "dep8");
    CHECK_FALSE(dep.fit.starts);
    CHECK(dep.fit.verdict == Verdict::weights_do_not_fit);
    CHECK(in_gib(dep.fit.weights) == Approx(274.9).epsilon(0.01));
    REQUIRE(dep.larger);
    CHECK(layout_name(*dep.larger) == "dep16");
}

TEST_CASE("V4.1 Flash as four copies of TP2, Engram tables on the host: a layout nobody measured, with its interval", "[plan][search]") {
    Model const& m = starts::model("DeepSeek-V4.1-Flash-1017");
    std::vector<GpuSet> const sets{starts::set("b300x8")};
    PlanRequest q = request(m, sets.front());
    q.layout = Layout{.tp = 2, .replicas = 4};
    q.workload.concurrency = {Requests{64}};
    SearchOptions options;
    options.judge_layouts = true;
    SearchAnswer const a = search_plans(q, sets, {}, five_dollars, options);
    REQUIRE(a.judged.size() == 1);
    JudgedLayout const& j = judged(a, "tp2x4");
    CHECK(j.fit.starts);
    CHECK(j.fit.host_bytes.value() > 0);
    REQUIRE(j.speeds.size() == 1);
    SpeedPoint const& s = j.speeds.front().speed;
    CHECK(s.basis != Basis::measured);
    CHECK(s.output.low < s.output.value);
    CHECK(s.output.value < s.output.high);
}

TEST_CASE("the fewest GPUs for Kimi K3 by kind", "[plan][search]") {
    Model const& m = starts::model("Kimi-K3");
    auto const fewest = [&](std::string const& gpu, EngineSettings const& settings) {
        std::vector<GpuSet> sets;
        for (std::string const n : {"4", "8", "16", "32"}) {
            std::string const name = gpu + "x" + n;
            sets.push_back(starts::set(name));
        }
        PlanRequest q = request(m, sets.front());
        q.settings = settings;
        q.startups = starts::rows();
        q.workload.concurrency = {Requests{1}};
        SearchTargets targets;
        targets.goal = SearchGoal::fewest_gpus;
        SearchAnswer const a = search_plans(q, sets, targets, five_dollars);
        return a.best ? a.best->gpus.count : 0;
    };
    CHECK(fewest("b300", {}) == 8);
    CHECK(fewest("gb300", {}) == 8);
    CHECK(fewest("mi355x", {}) == 8);
    CHECK(fewest("b200", {}) == 16);
    // H200: with nearly all of the memory and a short context alone
    EngineSettings tight;
    tight.gpu_memory_utilization = 0.97;
    tight.max_model_len = Tokens{16384};
    tight.max_num_seqs = Requests{32};
    CHECK(fewest("h200", tight) == 16);
}
