// The sweep: verdicts and complete plans (fit, speed, cost) of a prepared replica, without allocation, and a whole search.
// Targets on one core at about 3 GHz: 1.5 million verdicts and 300,000 plans a second, held against a loop of known length
// that runs in the same process; and a search is linear in its plans.
// SPDX-License-Identifier: Apache-2.0

#include "harness.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/plan/search.hpp>

namespace {

using namespace servecap;

constexpr bench::Deployment kDeployments[] = {{"Kimi-K3.1-Pro", "b300x8", 8}, {"DeepSeek-V4.1-Flash-1017", "b300x4", 2}, {"Llama-3.3-70B-Instruct", "h200x4", 4}};

struct Made {
    Model model;
    GpuSet gpus;
    std::vector<std::string> names;
    std::unique_ptr<PlanRequest> base;
    std::unique_ptr<SweepShared> shared;
    std::unique_ptr<SweepReplica> replica;
};

} // namespace

int main(int argc, char** argv) {
    auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    auto const rows = read_benchmarks(*find_embedded("benchmarks.csv"), "benchmarks.csv");
    auto const starts = read_startups(*find_embedded("startups.csv"), "startups.csv");
    auto const coefficients = read_coefficients(*find_embedded("coefficients.csv"), "coefficients.csv");
    if (!gpus || !rows || !starts || !coefficients) return 2;
    std::vector<std::unique_ptr<Made>> made;
    for (bench::Deployment const& d : kDeployments) {
        auto const model = load_model(d.model);
        auto const set = parse_gpus(d.gpus, *gpus);
        if (!model || !set) {
            std::fprintf(stderr, "%s on %s is not in the catalogue\n", d.model, d.gpus);
            return 2;
        }
        made.push_back(std::make_unique<Made>(Made{*model, *set, {model->id}, {}, {}, {}}));
        Made& m = *made.back();
        m.base = std::make_unique<PlanRequest>(PlanRequest{.model = m.model, .gpus = m.gpus});
        m.base->benchmarks = *rows;
        m.base->startups = *starts;
        m.base->coefficients = *coefficients;
        m.base->known_gpus = *gpus;
        m.base->model_names = m.names;
        m.shared = std::make_unique<SweepShared>(*m.base);
        m.replica = std::make_unique<SweepReplica>(*m.base, *m.shared, m.gpus, Layout{.tp = d.tp}, m.base->settings);
        if (!m.replica->starts()) {
            std::fprintf(stderr, "%s on %s does not start\n", d.model, d.gpus);
            return 2;
        }
    }
    bench::register_calibration(2e-6);
    std::int64_t allocated = 0;
    for (auto const& m : made) {
        SweepReplica const& r = *m->replica;
        auto const sweep = [&allocated, &r](benchmark::State& state, auto const& ask) {
            SweepPoint at{.users = Requests{1}, .replicas = 1, .max_num_seqs = {}, .max_model_len = {}, .utilization = 0, .per_hour = UsdPerHour{49.61}};
            std::int64_t i = 0;
            double sum = 0;
            std::int64_t const before = bench::allocations;
            for (auto _ : state) {
                ++i;
                at.users = Requests{1 + (i & 255)};
                at.replicas = static_cast<std::int32_t>(1 + (i >> 8 & 7));
                at.max_num_seqs = Requests{16 + (i & 255)};
                at.max_model_len = Tokens{8192 + 64 * (i >> 3 & 1023)};
                sum += ask(at);
                benchmark::DoNotOptimize(sum);
            }
            allocated += bench::allocations - before;
        };
        benchmark::RegisterBenchmark(("verdict/" + m->model.name).c_str(),
                                     [sweep, &r](benchmark::State& s) { sweep(s, [&r](SweepPoint const& at) { return r.verdict(at).slots; }); })
            ->Repetitions(9)
            ->ReportAggregatesOnly(true);
        benchmark::RegisterBenchmark(("plan/" + m->model.name).c_str(),
                                     [sweep, &r](benchmark::State& s) { sweep(s, [&r](SweepPoint const& at) { return r.plan(at).per_million_output.value(); }); })
            ->Repetitions(9)
            ->ReportAggregatesOnly(true);
    }
    // A whole search of the biggest model over every GPU on sale, and the same with many more concurrencies.
    std::vector<GpuSet> sets;
    for (Gpu const& g : *gpus)
        if (g.status == Availability::available && g.visible.value() > 0)
            for (std::int64_t n : {1, 2, 4, 8, 16, 32})
                if (auto set = make_gpu_set(g, n)) sets.push_back(std::move(*set));
    PlanRequest& base = *made.front()->base;
    std::int64_t plans = 0;
    auto const search = [&](std::int64_t concurrencies, std::int32_t jobs) {
        base.workload.concurrency.clear();
        for (std::int64_t c = 1; c <= concurrencies; ++c) base.workload.concurrency.emplace_back(c);
        SearchOptions options;
        options.jobs = jobs;
        auto const start = std::chrono::steady_clock::now();
        plans = search_plans(base, sets, {}, [](GpuSet const& s) { return std::optional<UsdPerHour>{UsdPerHour{5.0 * s.count}}; }, options).plans;
        base.workload.concurrency.clear();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    bench::Medians const medians = bench::run(argc, argv);
    double one = 1e9, many = 1e9, two = 1e9, double_many = 1e9;
    std::int64_t plans_many = 0, plans_double = 0;
    for (int i = 0; i < 5; ++i) {
        one = std::min(one, search(8, 1));
        many = std::min(many, search(2000, 1));
        plans_many = plans;
        double_many = std::min(double_many, search(4000, 1));
        plans_double = plans;
        two = std::min(two, search(4000, 2));
    }
    bench::Targets targets;
    std::printf("search: 8 concurrencies %.1f ms; %lld plans %.1f ms; %lld plans %.1f ms, with 2 threads %.1f ms\n", 1e3 * one, static_cast<long long>(plans_many), 1e3 * many,
                static_cast<long long>(plans_double), 1e3 * double_many, 1e3 * two);
    if (medians.has("calibration")) {
        double const loop = medians["calibration"] / 2e-6; // of this machine over one at 3 GHz
        for (auto const& m : made) {
            std::string const verdict = "verdict/" + m->model.name, plan = "plan/" + m->model.name;
            if (medians.has(verdict)) targets.at_most((verdict + ", 1.5 million a second at 3 GHz").c_str(), medians[verdict] / loop * 1.5e6, 1.0, "x");
            if (medians.has(plan)) targets.at_most((plan + ", 300,000 a second at 3 GHz").c_str(), medians[plan] / loop * 3e5, 1.0, "x");
        }
        targets.at_most("a plan within a search, 300,000 a second at 3 GHz", (double_many - one) / static_cast<double>(plans_double) / loop * 3e5, 1.0, "x");
    }
    targets.at_most("time of twice the plans over time, less preparation", (double_many - one) / (many - one), 2.3, "x");
    targets.at_most("two threads: time over one thread's", two / double_many, 1 / 1.7, "x");
    targets.at_most("allocations of all verdicts and plans", static_cast<double>(allocated), 0.0, "");
    benchmark::Shutdown();
    return targets.missed() == 0 && !medians.failed() ? 0 : 1;
}
