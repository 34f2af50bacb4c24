// The program as a whole process, beside an empty C++ program and Python's shortest start; and what a
// consumer's file costs to compile, beside one that includes standard headers and fmt. Medians of
// interleaved runs.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <spawn.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "targets.hpp"

namespace {

using Command = std::vector<std::string>;

struct Spent {
    double seconds = 0;
    long peak_kib = 0;
    int status = 0;
};

// Starts a process without output and waits for its end.
Spent run(Command const& command) {
    std::vector<char*> argv;
    for (std::string const& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    Spent spent;
    auto const start = std::chrono::steady_clock::now();
    pid_t child = 0;
    if (posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ) == 0) {
        rusage used{};
        int status = 0;
        wait4(child, &status, 0, &used);
        spent.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        spent.peak_kib = used.ru_maxrss;
    } else {
        spent.status = -1;
    }
    spent.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    posix_spawn_file_actions_destroy(&files);
    return spent;
}

void add(char const* name, Command command, int repetitions, std::map<std::string, long>& peaks) {
    benchmark::RegisterBenchmark(name,
                                 [name, command, &peaks](benchmark::State& state) {
                                     for (auto _ : state) {
                                         Spent const spent = run(command);
                                         if (spent.status != 0) state.SkipWithError(("exit " + std::to_string(spent.status)).c_str());
                                         state.SetIterationTime(spent.seconds);
                                         if (spent.peak_kib > peaks[name]) peaks[name] = spent.peak_kib;
                                     }
                                 })
        ->UseManualTime()
        ->Iterations(1)
        ->Repetitions(repetitions)
        ->ReportAggregatesOnly(true)
        ->Unit(benchmark::kMillisecond);
}

Command compile(char const* file) {
    return {SERVECAP_CXX, "-std=c++20", "-isystem", "/usr/include/eigen3", "-I" SERVECAP_INCLUDE, "-c", std::string{SERVECAP_BENCH "/"} + file,
            "-o", "/dev/null"};
}

} // namespace

int main(int argc, char** argv) {
    std::map<std::string, long> peaks;
    add("empty", {SERVECAP_EMPTY}, 21, peaks);
    add("python", {"/usr/bin/python3", "-I", "-S", "-c", "pass"}, 21, peaks);
    add("planner", {SERVECAP_PLANNER, "--model", "kimi-k3.1", "--gpu", "b300x8"}, 21, peaks);
    add("compile_std_fmt", compile("consumer_std_fmt.cpp"), 5, peaks);
    add("compile_bytes", compile("consumer_bytes.cpp"), 5, peaks);
    add("compile_plan", compile("consumer_plan.cpp"), 5, peaks);

    // Interleaved, so that a busy second of the machine meets all of them.
    std::vector<char*> arguments(argv, argv + argc);
    std::string interleave = "--benchmark_enable_random_interleaving=true";
    arguments.push_back(interleave.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    bench::Medians medians;
    benchmark::RunSpecifiedBenchmarks(&medians);

    bench::Targets targets;
    if (medians.has("planner") && medians.has("python"))
        targets.at_most("planner beside /usr/bin/python3 -I -S -c pass", medians["planner"] / medians["python"], 1.0, "x");
    if (medians.has("planner") && medians.has("empty"))
        targets.at_most("planner over an empty C++ program", 1e3 * (medians["planner"] - medians["empty"]), 6.0, "ms");
    if (medians.has("planner")) targets.at_most("planner, peak memory", static_cast<double>(peaks["planner"]) / 1024.0, 30.0, "MiB");
    if (medians.has("compile_plan") && medians.has("compile_std_fmt"))
        targets.at_most("a program of 40 lines beside <vector>, <string>, <fmt/format.h>", medians["compile_plan"] / medians["compile_std_fmt"], 4.0,
                        "x");
    if (medians.has("compile_bytes") && medians.has("compile_std_fmt"))
        targets.at_most("a file with servecap/memory/kv.hpp beside the same", medians["compile_bytes"] / medians["compile_std_fmt"], 1.0, "x");
    benchmark::Shutdown();
    return targets.missed() == 0 && !medians.failed() ? 0 : 1;
}
