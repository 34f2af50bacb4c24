// Your own measurements: which rows can teach the speed model, and what a report of a benchmark tool becomes.
// `planner calibrate --benchmarks mine.csv` then fits the coefficients to them.
#include <string>

#include <fmt/format.h>

#include <servecap/io/embedded.hpp>
#include <servecap/io/import_bench.hpp>
#include <servecap/perf/deployment.hpp>

using namespace servecap;

int main() {
    // What `vllm bench serve --save-result` writes (a run of gpt-oss-120b on 4 x H200).
    std::string const report = R"({"date": "20260610-205322", "backend": "vllm", "model_id": "openai/gpt-oss-120b", "max_concurrency": 64,
      "duration": 129.414, "completed": 640, "total_input_tokens": 590227, "total_output_tokens": 589961, "output_throughput": 4558.70,
      "mean_ttft_ms": 338.24, "mean_tpot_ms": 13.268, "mean_e2el_ms": 12565.7, "request_rate": "inf"})";
    auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    BenchImportOptions options;
    options.gpus = *gpus;
    options.gpu = "h200";
    options.tp = 4;
    for (std::string const& known : {std::string{}, std::string{"none"}}) {
        options.spec = known; // was there speculation? the report does not say
        options.precision = known.empty() ? "" : "mxfp4";
        auto const imported = import_bench(report, "run.json", *guess_bench_format(report), options);
        if (!imported) return 2;
        for (BenchmarkRow const& r : imported->rows) fmt::print("calibrates: {}\n", may_calibrate(r) ? "yes" : "no, flags: " + r.flags);
        for (ImportFinding const& f : imported->findings) fmt::print("  {}\n", f.what);
        if (!known.empty()) fmt::print("{}", write_benchmarks(imported->rows));
    }
}
