// One full prediction of speed from a prepared deployment: TPOT, TTFT, output and their intervals, without allocation. Its
// target is 2 microseconds on one core at about 3 GHz, held against a loop of dependent multiplications that takes so long
// there and runs in the same process. Making a deployment ready, with the residual of its rows, is what new rows of a user
// cost at run time: at most 50 ms.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/perf/predict.hpp>

#include "targets.hpp"

namespace {
std::int64_t allocations = 0;
} // namespace

// Not inlined: the compiler would take the pair for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t n) {
    ++allocations;
    if (void* p = std::malloc(n)) return p;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace servecap;

struct Deployment {
    char const* model;
    char const* gpus;
    std::int32_t tp;
};
constexpr Deployment kDeployments[] = {{"Kimi-K3", "b300x8", 8},
                                       {"gpt-oss-120b", "h200x8", 8},
                                       {"DeepSeek-V4.1-Flash-1017", "b300x4", 4},
                                       {"Llama-3.3-70B-Instruct", "h200x4", 4}};

// 1,500 dependent 64-bit multiply-adds: four cycles each, 2 microseconds at 3 GHz.
void calibration(benchmark::State& state) {
    std::uint64_t x = 88172645463325252u;
    for (auto _ : state)
        for (int i = 0; i < 1500; ++i) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            benchmark::DoNotOptimize(x);
        }
}

/// What a request refers to.
struct Made {
    Model model;
    GpuSet gpus;
    StartPlan fit;
    Layout layout;
    std::string name;
};

} // namespace

int main(int argc, char** argv) {
    auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    auto const rows = read_benchmarks(*find_embedded("benchmarks.csv"), "benchmarks.csv");
    auto const coefficients = read_coefficients(*find_embedded("coefficients.csv"), "coefficients.csv");
    if (!gpus || !rows || !coefficients) return 2;
    std::vector<std::unique_ptr<Made>> made;
    std::vector<std::unique_ptr<PreparedDeployment>> ready;
    for (Deployment const& d : kDeployments) {
        auto const model = load_model(d.model);
        auto const set = parse_gpus(d.gpus, *gpus);
        if (!model || !set) {
            std::fprintf(stderr, "%s on %s is not in the catalogue\n", d.model, d.gpus);
            return 2;
        }
        made.push_back(std::make_unique<Made>(Made{*model, *set, {}, Layout{.tp = d.tp}, d.model}));
    }
    auto const prepare = [&](Made const& m) {
        return PreparedDeployment{SpeedRequest{.model = m.model,
                                               .gpus = m.gpus,
                                               .layout = m.layout,
                                               .settings = {},
                                               .fit = m.fit,
                                               .workload = {},
                                               .rows = *rows,
                                               .coefficients = *coefficients,
                                               .known_gpus = *gpus}};
    };
    for (auto const& m : made) ready.push_back(std::make_unique<PreparedDeployment>(prepare(*m)));

    std::int64_t allocated = 0;
    benchmark::RegisterBenchmark("calibration", calibration)->Repetitions(9)->ReportAggregatesOnly(true);
    for (std::size_t i = 0; i < ready.size(); ++i) {
        benchmark::RegisterBenchmark(("prediction/" + made[i]->name).c_str(),
                                     [&, i](benchmark::State& state) {
                                         double users = 1, sum = 0;
                                         std::int64_t const before = allocations;
                                         for (auto _ : state) {
                                             users = users < 512 ? users + 1.7 : 1;
                                             sum += ready[i]->at(users).output;
                                             benchmark::DoNotOptimize(sum);
                                         }
                                         allocated += allocations - before;
                                     })
            ->Repetitions(9)
            ->ReportAggregatesOnly(true);
        benchmark::RegisterBenchmark(("ready/" + made[i]->name).c_str(),
                                     [&, i](benchmark::State& state) {
                                         for (auto _ : state) benchmark::DoNotOptimize(prepare(*made[i]).slots());
                                     })
            ->Repetitions(9)
            ->ReportAggregatesOnly(true);
    }
    std::vector<char*> arguments(argv, argv + argc);
    std::string interleave = "--benchmark_enable_random_interleaving=true", shortly = "--benchmark_min_time=0.05";
    arguments.push_back(interleave.data());
    arguments.push_back(shortly.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    bench::Medians medians;
    benchmark::RunSpecifiedBenchmarks(&medians);

    bench::Targets targets;
    for (auto const& m : made) {
        std::string const point = "prediction/" + m->name, ready_name = "ready/" + m->name;
        if (medians.has(point) && medians.has("calibration"))
            targets.at_most((point + " beside the calibrating loop (2 us at 3 GHz)").c_str(),
                            medians[point] / medians["calibration"], 1.0, "x");
        if (medians.has(ready_name) && medians.has("calibration")) // 25,000 loops of 2 us
            targets.at_most((ready_name + " with all rows, beside 50 ms of that loop").c_str(),
                            medians[ready_name] / (25000 * medians["calibration"]), 1.0, "x");
    }
    targets.at_most("allocations of all predictions", static_cast<double>(allocated), 0.0, "");
    benchmark::Shutdown();
    return targets.missed() == 0 && !medians.failed() ? 0 : 1;
}
