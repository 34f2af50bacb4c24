// What the benchmarks of the sweep path share: a calibrating loop, a count of allocations, the run itself.
// SPDX-License-Identifier: Apache-2.0
//
// A loop of dependent multiplications (four cycles each) that takes a known time at 3 GHz runs in the same process, and
// figures are held against it, so that they do not depend on the machine. Include it in one file of a program: it
// replaces operator new.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "targets.hpp"

namespace bench {

/// What is measured: a card, a set of GPUs ("b300x8") and its tensor parallel ranks.
struct Deployment {
    char const* model;
    char const* gpus;
    std::int32_t tp;
};

inline thread_local std::int64_t allocations = 0; // of the thread that measures

/// `rounds` dependent 64-bit multiply-adds: 1,500 are 2 microseconds at 3 GHz.
inline void calibration(benchmark::State& state, int rounds) {
    std::uint64_t x = 88172645463325252u;
    for (auto _ : state)
        for (int i = 0; i < rounds; ++i) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            benchmark::DoNotOptimize(x);
        }
}

/// Registers "calibration"; the loop stands for `seconds` on one core at 3 GHz.
inline void register_calibration(double seconds) {
    int const rounds = static_cast<int>(seconds * 3e9 / 4 + 0.5);
    benchmark::RegisterBenchmark("calibration", calibration, rounds)->Repetitions(9)->ReportAggregatesOnly(true);
}

/// Runs what is registered, interleaved, so that a busy second of the machine meets all of it.
inline Medians run(int argc, char** argv) {
    std::vector<char*> arguments(argv, argv + argc);
    std::string interleave = "--benchmark_enable_random_interleaving=true", shortly = "--benchmark_min_time=0.05";
    arguments.push_back(interleave.data());
    arguments.push_back(shortly.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    Medians medians;
    benchmark::RunSpecifiedBenchmarks(&medians);
    return medians;
}

} // namespace bench

// Not inlined: the compiler would take the pair for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t n) {
    ++bench::allocations;
    if (void* p = std::malloc(n)) return p;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
