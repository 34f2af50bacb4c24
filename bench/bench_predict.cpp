// One full prediction of speed from a prepared deployment: TPOT, TTFT, output and their intervals, without allocation. Its
// target is 2 microseconds on one core at about 3 GHz, held against a loop of dependent multiplications that takes so long
// there and runs in the same process. Making a deployment ready, with the residual of its rows, is what new rows of a user
// cost at run time: at most 50 ms.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/perf/predict.hpp>

#include "harness.hpp"

namespace {

using namespace servecap;

constexpr bench::Deployment kDeployments[] = {{"Kimi-K3", "b300x8", 8},
                                       {"gpt-oss-120b", "h200x8", 8},
                                       {"DeepSeek-V4.1-Flash-1017", "b300x4", 4},
                                       {"Llama-3.3-70B-Instruct", "h200x4", 4}};

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
    for (bench::Deployment const& d : kDeployments) {
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
    bench::register_calibration(2e-6);
    for (std::size_t i = 0; i < ready.size(); ++i) {
        benchmark::RegisterBenchmark(("prediction/" + made[i]->name).c_str(),
                                     [&, i](benchmark::State& state) {
                                         double users = 1, sum = 0;
                                         std::int64_t const before = bench::allocations;
                                         for (auto _ : state) {
                                             users = users < 512 ? users + 1.7 : 1;
                                             sum += ready[i]->at(users).output;
                                             benchmark::DoNotOptimize(sum);
                                         }
                                         allocated += bench::allocations - before;
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
    bench::Medians const medians = bench::run(argc, argv);

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
