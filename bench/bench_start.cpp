// The verdict in the sweep path: a pure function of prepared inputs, without allocation. Its target is 0.7 microseconds on
// one core at about 3 GHz; a loop of dependent multiplications that takes so long there is timed in the same run, and
// the verdict is held against it, so that the figure does not depend on the machine.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <servecap/engine/engine.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/rows.hpp>

#include "harness.hpp"

namespace {

struct Deployment {
    char const* model;
    char const* gpus;
    std::int32_t tp, pp;
};
constexpr Deployment kDeployments[] = {
    {"Llama-3.1-8B", "h100x1", 1, 1}, {"Kimi-K3.1-Pro", "b300x8", 8, 1}, {"Kimi-K3", "h100x32", 8, 4}, {"DeepSeek-V4.1-Flash", "b300x4", 4, 1}};

void verdict(benchmark::State& state, servecap::PreparedVllm const& prepared, std::int64_t& allocated) {
    servecap::VllmPoint p = prepared.point;
    std::int64_t i = 0, tokens = 0;
    std::int64_t const before = bench::allocations;
    for (auto _ : state) {
        ++i;
        p.seqs = 16 + (i & 1023);
        p.max_len = 8192 + 64 * ((i >> 3) & 4095);
        p.utilization = 0.85 + 0.0001 * static_cast<double>(i & 1023);
        tokens += servecap::evaluate_vllm(prepared, p).tokens;
        benchmark::DoNotOptimize(tokens);
    }
    allocated += bench::allocations - before;
}

} // namespace

int main(int argc, char** argv) {
    auto const gpus = servecap::read_gpus(*servecap::find_embedded("gpus.csv"), "gpus.csv");
    if (!gpus) return 2;
    std::vector<servecap::PreparedVllm> prepared;
    std::vector<std::string> names;
    for (Deployment const& d : kDeployments) {
        auto const model = servecap::load_model(d.model);
        auto const set = servecap::parse_gpus(d.gpus, *gpus);
        if (!model || !set) {
            std::fprintf(stderr, "%s on %s is not in the catalogue\n", d.model, d.gpus);
            return 2;
        }
        servecap::Layout layout;
        layout.tp = d.tp;
        layout.pp = d.pp;
        servecap::StartRequest const request{.model = *model, .gpus = *set, .layout = layout, .settings = {}};
        prepared.push_back(servecap::prepare_vllm(request));
        names.push_back(std::string{"verdict/"} + d.model);
    }

    std::int64_t allocated = 0;
    bench::register_calibration(0.7e-6);
    for (std::size_t i = 0; i < prepared.size(); ++i)
        benchmark::RegisterBenchmark(names[i].c_str(), [&, i](benchmark::State& s) { verdict(s, prepared[i], allocated); })
            ->Repetitions(9)
            ->ReportAggregatesOnly(true);

    bench::Medians const medians = bench::run(argc, argv);

    bench::Targets targets;
    for (std::string const& name : names)
        if (medians.has(name) && medians.has("calibration"))
            targets.at_most((name + " beside the calibrating loop (0.7 us at 3 GHz)").c_str(), medians[name] / medians["calibration"], 1.0, "x");
    targets.at_most("allocations of all verdicts", static_cast<double>(allocated), 0.0, "");
    benchmark::Shutdown();
    return targets.missed() == 0 && !medians.failed() ? 0 : 1;
}
