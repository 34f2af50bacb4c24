// servecap: benchmark reports of other tools -> rows of the benchmarks CSV
// SPDX-License-Identifier: Apache-2.0
//
// Read are, told apart by their shape:
//   vllm-serve      JSON of `vllm bench serve --save-result`, one run or a list of them
//   vllm-sweep      summary.csv of `vllm bench sweep`, and CSVs with the same columns
//   sglang          JSON lines of `python -m sglang.bench_serving --output-file`
//   serving-text    the "Serving Benchmark Result" block that both print, any number in one text (logs, Markdown pages)
//   trtllm-bench    report JSON of trtllm-bench (--report_json), or the report that it prints
//   inferencex      aggregated JSON or CSV of InferenceX (InferenceMAX)
//   aiconfigurator  result CSV of aiconfigurator (predictions, marked so) and its measured references
//   guidellm        benchmarks.json of GuideLLM
//   aiperf          profile_export_aiperf.json of AIPerf (and of GenAI-Perf)
//   gpustack        GPUStack's benchmark table as CSV
// Each is taken as it stands (ReportedRun) and settled by settle_run (io/import_run.hpp). Units: ms unless the format says
// seconds (InferenceX, request latency of GuideLLM and GPUStack).

#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/import_run.hpp>
#include <servecap/io/json.hpp>

namespace servecap {

enum class BenchFormat : std::uint8_t { vllm_serve, vllm_sweep, sglang, serving_text, trtllm, inferencex, aiconfigurator, guidellm, aiperf, gpustack };

inline constexpr std::array<std::string_view, 10> kBenchFormats{"vllm-serve", "vllm-sweep",     "sglang",   "serving-text", "trtllm-bench",
                                                                "inferencex", "aiconfigurator", "guidellm", "aiperf",       "gpustack"};

constexpr std::string_view to_string(BenchFormat f) noexcept { return kBenchFormats[static_cast<std::size_t>(f)]; }

/// Rows that came out, in the order of the file, and what was noticed.
struct BenchImport {
    std::vector<BenchmarkRow> rows;
    std::vector<ImportFinding> findings;
    std::int64_t read = 0; ///< runs that the file holds
};

namespace detail::import_bench {

/// Files with every request's times can be long.
inline constexpr JsonLimits kLimits{std::size_t{512} << 20, 64};

/// The number under a path of keys; numbers written as text count ("1024", "inf").
inline std::optional<double> number_of(Json const& v) {
    if (auto const n = json_number(v)) return n;
    auto const s = json_text(v);
    if (!s) return std::nullopt;
    std::string_view const t = trim(*s);
    if (to_lower(t) == "inf" || to_lower(t) == "infinity") return std::numeric_limits<double>::infinity();
    double d = 0;
    auto const [end, ec] = std::from_chars(t.data(), t.data() + t.size(), d);
    return ec == std::errc{} && end == t.data() + t.size() && !t.empty() ? std::optional<double>{d} : std::nullopt;
}

inline Json const* at(Json const& j, std::initializer_list<std::string_view> path) {
    Json const* v = &j;
    for (std::string_view key : path) {
        v = find_member(*v, key);
        if (v == nullptr) return nullptr;
    }
    return v;
}
inline std::optional<double> number(Json const& j, std::initializer_list<std::string_view> path) {
    Json const* v = at(j, path);
    return v == nullptr ? std::nullopt : number_of(*v);
}
/// The first of several keys of one object that holds a number.
inline std::optional<double> any_number(Json const& j, std::initializer_list<std::string_view> keys) {
    for (std::string_view k : keys)
        if (auto const v = number(j, {k})) return v;
    return std::nullopt;
}
inline std::string text(Json const& j, std::initializer_list<std::string_view> path) {
    Json const* v = at(j, path);
    if (v == nullptr) return {};
    if (auto const s = json_text(*v)) return *s;
    if (auto const n = json_number(*v)) return fmt::format("{:.6g}", *n);
    if (v->is_boolean()) return v->get<bool>() ? "true" : "false";
    return {};
}
inline std::string any_text(Json const& j, std::initializer_list<std::string_view> keys) {
    for (std::string_view k : keys)
        if (std::string s = text(j, {k}); !s.empty()) return s;
    return {};
}
inline std::optional<double> scaled(std::optional<double> v, double by) { return v ? std::optional<double>{*v * by} : std::nullopt; }

/// "20260129-101252" and ISO stamps -> "2026-01-29".
inline std::string day_of(std::string_view s) {
    auto const digits = [](std::string_view t) { return !t.empty() && t.find_first_not_of("0123456789") == std::string_view::npos; };
    if (s.size() >= 8 && digits(s.substr(0, 8))) {
        std::string const iso = std::string{s.substr(0, 4)} + "-" + std::string{s.substr(4, 2)} + "-" + std::string{s.substr(6, 2)};
        return is_iso_date(iso) ? iso : std::string{};
    }
    std::string const day{s.substr(0, 10)};
    return is_iso_date(day) ? day : std::string{};
}

/// One CSV record as a JSON object of texts, so that CSVs and JSON of one tool are read by one function.
inline Json record_object(CsvReader& csv) {
    Json j = Json::object();
    for (std::size_t i = 0; i < csv.header().size(); ++i)
        if (std::string v = csv.string({static_cast<std::int32_t>(i)}); !v.empty()) j[csv.header()[i]] = std::move(v);
    return j;
}

// ---- one run of each format -----------------------------------------------------------------------

/// The keys that vLLM and SGLang share.
inline void take_serving_keys(Json const& j, ReportedRun& r) {
    r.completed = any_number(j, {"completed", "Successful_requests"});
    r.failed = any_number(j, {"failed"});
    r.duration = any_number(j, {"duration", "Benchmark_duration_s", "duration_s"});
    r.input_tokens = any_number(j, {"total_input_tokens", "Total_input_tokens"});
    r.output_tokens = any_number(j, {"total_output_tokens", "Total_generated_tokens"});
    r.requests_per_second = any_number(j, {"request_throughput", "Request_throughput_req_s", "throughput_req_per_s"});
    r.request_rate = any_number(j, {"request_rate"});
    r.concurrency = any_number(j, {"max_concurrency", "concurrency", "conc"});
    r.output_rate = any_number(j, {"output_throughput", "Output_token_throughput_tok_s", "output_tok_s"});
    r.total_rate = any_number(j, {"total_token_throughput", "total_throughput", "Total_Token_throughput_tok_s"});
    auto const ms = [&](std::initializer_list<std::string_view> keys) { return scaled(any_number(j, keys), 1e-3); };
    r.ttft_mean = ms({"mean_ttft_ms", "Mean_TTFT_ms"});
    r.ttft_median = ms({"median_ttft_ms", "p50_ttft_ms", "Median_TTFT_ms"});
    r.tpot_mean = ms({"mean_tpot_ms", "Mean_TPOT_ms"});
    r.tpot_median = ms({"median_tpot_ms", "p50_tpot_ms", "Median_TPOT_ms"});
    r.itl_mean = ms({"mean_itl_ms", "Mean_ITL_ms"});
    r.itl_median = ms({"median_itl_ms", "p50_itl_ms", "Median_ITL_ms"});
    r.e2e_mean = ms({"mean_e2el_ms", "mean_e2e_latency_ms", "Mean_E2EL_ms"});
    r.e2e_median = ms({"median_e2el_ms", "median_e2e_latency_ms", "p50_e2el_ms", "Median_E2EL_ms"});
    r.isl = any_number(j, {"random_input_len", "input_len", "isl"});
    r.osl = any_number(j, {"random_output_len", "output_len", "osl"});
    r.dataset = any_text(j, {"dataset_name"});
    r.date = day_of(any_text(j, {"date"}));
}

inline ReportedRun vllm_run(Json const& j) {
    ReportedRun r;
    take_serving_keys(j, r);
    for (std::string_view key : {"model", "model_id", "tokenizer_id"})
        if (std::string s = text(j, {key}); !s.empty()) r.models.push_back(std::move(s));
    r.engine = "vllm";
    std::string const backend = to_lower(any_text(j, {"backend", "endpoint_type"}));
    if (backend.find("sglang") != std::string::npos) r.engine = "sglang";
    if (backend.find("tensorrt") != std::string::npos) r.engine = "trtllm";
    if (backend.starts_with("openai")) {
        r.engine.clear(); // the client speaks to any server
        r.note = "the client spoke the OpenAI protocol: the engine is not stated";
    }
    r.gpu = any_text(j, {"gpu", "gpu_type", "gpu_name"});
    r.tp = any_number(j, {"tensor_parallel_size", "tensor-parallel-size", "tp", "tp_size", "tp_degree"});
    r.pp = any_number(j, {"pipeline_parallel_size", "pipeline-parallel-size", "pp", "pp_size"});
    r.dp = any_number(j, {"data_parallel_size", "data-parallel-size", "dp", "dp_size"});
    r.n_gpus = any_number(j, {"n_gpus", "num_gpus", "gpu_count"});
    if (std::string const e = any_text(j, {"enable_expert_parallel", "enable-expert-parallel"}); e == "true" || e == "True") r.ep = "yes";
    if (j.contains("spec_decode_acceptance_rate") || j.contains("spec_decode_acceptance_length")) r.spec = "yes";
    return r;
}

inline ReportedRun sglang_run(Json const& j) {
    ReportedRun r;
    take_serving_keys(j, r);
    if (r.dataset != "random" && r.dataset != "random-ids") r.isl = r.osl = std::nullopt; // the defaults of options that were not used
    r.engine = "sglang";
    if (std::string const b = to_lower(text(j, {"backend"})); !b.empty() && b.find("sglang") == std::string::npos)
        r.engine = b.find("vllm") != std::string::npos ? "vllm" : b.find("trt") != std::string::npos ? "trtllm" : "";
    Json const* s = find_member(j, "server_info");
    if (s != nullptr && s->is_object()) {
        for (std::string_view key : {"served_model_name", "model_path", "tokenizer_path"})
            if (std::string t = text(*s, {key}); !t.empty()) r.models.push_back(std::move(t));
        auto const tp = number(*s, {"tp_size"}), dp = number(*s, {"dp_size"});
        bool const attention = text(*s, {"enable_dp_attention"}) == "true";
        if (tp && dp && attention && *dp > 1) { // attention runs on tp/dp ranks; the experts span them all
            r.tp = *tp / *dp;
            r.dp = dp;
            r.dp_attention = "yes";
        } else {
            r.tp = tp;
            if (dp && *dp > 1) r.replicas = dp;
        }
        r.pp = number(*s, {"pp_size"});
        if (auto const ep = number(*s, {"ep_size"}); ep && *ep > 1) r.ep = fmt::format("{}", *ep);
        r.precision = to_lower(text(*s, {"quantization"}));
        std::string const algorithm = to_lower(text(*s, {"speculative_algorithm"}));
        r.spec = s->contains("speculative_algorithm") ? (algorithm.empty() ? "none" : algorithm) : "";
        r.engine_version = text(*s, {"version"});
        if (std::string const mode = text(*s, {"disaggregation_mode"}); !mode.empty() && mode != "null") r.disaggregated = true;
    }
    if (std::string m = text(j, {"model"}); !m.empty()) r.models.push_back(std::move(m));
    return r;
}

inline ReportedRun inferencex_run(Json const& j) {
    ReportedRun r;
    if (std::string m = text(j, {"model"}); !m.empty()) r.models.push_back(std::move(m));
    if (std::string m = text(j, {"infmax_model_prefix"}); !m.empty()) r.models.push_back(std::move(m));
    std::string const hw = text(j, {"hw"});
    r.gpu = hw.substr(0, hw.find('-')); // "h100-cw": the runner's site
    std::string const framework = to_lower(text(j, {"framework"}));
    r.engine = framework.find("sglang") != std::string::npos ? "sglang"
               : framework.find("trt") != std::string::npos  ? "trtllm"
               : framework.find("vllm") != std::string::npos ? "vllm"
                                                             : framework;
    std::string const image = text(j, {"image"});
    if (auto const colon = image.rfind(':'); colon != std::string::npos) {
        r.engine_version = image.substr(colon + 1);
        if (r.engine_version.starts_with('v')) r.engine_version.erase(0, 1);
        r.engine_version = r.engine_version.substr(0, r.engine_version.find('-'));
    }
    r.precision = to_lower(text(j, {"precision"}));
    r.spec = to_lower(text(j, {"spec_decoding"}));
    r.isl = number(j, {"isl"});
    r.osl = number(j, {"osl"});
    // Lengths are drawn between 0.8 and 1.0 of these.
    r.isl_mean = scaled(r.isl, 0.9);
    r.osl_mean = scaled(r.osl, 0.9);
    r.drawn_lengths = true;
    r.dataset = "ix";
    r.concurrency = number(j, {"conc"});
    r.output_rate_gpu = number(j, {"output_tput_per_gpu"});
    r.total_rate_gpu = number(j, {"tput_per_gpu"}); // input and output tokens
    r.ttft_mean = number(j, {"mean_ttft"});         // seconds
    r.ttft_median = number(j, {"median_ttft"});
    r.tpot_mean = number(j, {"mean_tpot"});
    r.tpot_median = number(j, {"median_tpot"});
    r.e2e_mean = number(j, {"mean_e2el"});
    r.e2e_median = number(j, {"median_e2el"});
    r.itl_mean = number(j, {"mean_itl"});
    auto const tp = number(j, {"tp"}), ep = number(j, {"ep"}), pp = number(j, {"pp"});
    std::string const attention = to_lower(text(j, {"dp_attention"}));
    if (attention == "true" && tp) { // every GPU holds attention whole
        r.tp = 1;
        r.dp = tp;
        r.dp_attention = "yes";
    } else {
        r.tp = tp;
        if (!attention.empty()) r.dp_attention = "no";
    }
    r.pp = pp;
    if (ep && *ep > 1) r.ep = fmt::format("{}", *ep);
    if (tp) r.n_gpus = *tp * pp.value_or(1);
    if (text(j, {"disagg"}) == "true" || text(j, {"is_multinode"}) == "true") {
        r.disaggregated = text(j, {"disagg"}) == "true";
        auto const pg = number(j, {"num_prefill_gpu"}), dg = number(j, {"num_decode_gpu"});
        if (pg && dg) r.n_gpus = *pg + *dg;
    }
    r.date = day_of(any_text(j, {"date", "timestamp"}));
    return r;
}

/// aiconfigurator: its searched configurations (predicted), or its measured references ("silicon_...").
inline ReportedRun aiconfigurator_run(Json const& j) {
    ReportedRun r;
    if (std::string m = any_text(j, {"model", "model_path"}); !m.empty()) r.models.push_back(std::move(m));
    std::string gpu = any_text(j, {"system"});
    for (char& c : gpu)
        if (c == '_') c = '-';
    r.gpu = gpu;
    std::string const b = to_lower(text(j, {"backend"}));
    r.engine = b;
    r.engine_version = any_text(j, {"version", "backend_version"});
    r.isl = number(j, {"isl"});
    r.osl = number(j, {"osl"});
    auto const dp = any_number(j, {"dp", "attention_dp_size"});
    r.tp = any_number(j, {"tp", "tp_size"});
    r.pp = any_number(j, {"pp", "pp_size"});
    if (dp && *dp > 1) {
        r.dp = dp;
        r.dp_attention = "yes";
    }
    if (auto const ep = any_number(j, {"moe_ep", "moe_ep_size"}); ep && *ep > 1) r.ep = fmt::format("{}", *ep);
    if (j.contains("silicon_tpot_ms")) {
        r.ttft_mean = scaled(number(j, {"silicon_ttft_ms"}), 1e-3);
        r.tpot_mean = scaled(number(j, {"silicon_tpot_ms"}), 1e-3);
        r.precision = to_lower(any_text(j, {"moe_quant_mode", "gemm_quant_mode", "precision"}));
        std::string const source = text(j, {"silicon_data_source"});
        auto const after = [&source](std::string_view key) {
            auto const p = source.find(key);
            if (p == std::string::npos) return std::string{};
            auto const from = p + key.size();
            return source.substr(from, source.find(';', from) - from);
        };
        r.concurrency = number_of(Json(after("silicon_concurrency=")));
        r.date = day_of(after("measured="));
        r.disaggregated = text(j, {"mode"}) == "disagg";
        // The measured references come from InferenceX, whose lengths are 0.8 to 1.0 of the nominal ones.
        r.isl_mean = scaled(r.isl, 0.9);
        r.osl_mean = scaled(r.osl, 0.9);
        r.drawn_lengths = true;
        r.dataset = "ix";
        return r;
    }
    r.predicted = true;
    r.ttft_mean = scaled(number(j, {"ttft"}), 1e-3); // ms
    r.tpot_mean = scaled(number(j, {"tpot"}), 1e-3);
    r.e2e_mean = scaled(number(j, {"request_latency"}), 1e-3);
    r.requests_per_second = number(j, {"seq/s"});
    r.concurrency = number(j, {"concurrency"});
    r.n_gpus = number(j, {"num_total_gpus"});
    r.unnamed_rate = number(j, {"tokens/s"});
    if (!r.unnamed_rate) r.output_rate_gpu = number(j, {"tokens/s/gpu"});
    r.precision = to_lower(any_text(j, {"moe", "gemm"}));
    r.spec = "none";
    r.disaggregated = j.contains("(p)tp") || j.contains("(d)tp");
    if (r.tp && r.n_gpus) {
        double const one = *r.tp * r.pp.value_or(1) * r.dp.value_or(1);
        if (one > 0 && *r.n_gpus > one && std::fmod(*r.n_gpus, one) == 0) r.replicas = *r.n_gpus / one;
    }
    return r;
}

inline ReportedRun guidellm_run(Json const& root, Json const& b) {
    ReportedRun r;
    for (Json const* place : {at(root, {"args", "model"}), at(b, {"config", "backend", "model"}), at(b, {"worker", "backend_model"}),
                              at(b, {"benchmarker", "backend", "model"}), at(root, {"args", "processor"})})
        if (place != nullptr)
            if (auto s = json_text(*place); s && !s->empty()) r.models.push_back(std::move(*s));
    Json const* const m = find_member(b, "metrics");
    if (m == nullptr) return r;
    auto const stat = [&](std::string_view metric, std::string_view which) -> std::optional<double> {
        if (auto const v = number(*m, {metric, "successful", which})) return v;
        return number(*m, {metric, which});
    };
    r.completed = number(*m, {"request_totals", "successful"});
    if (!r.completed) r.completed = number(b, {"run_stats", "requests_made", "successful"});
    r.failed = number(*m, {"request_totals", "errored"});
    r.requests_per_second = stat("requests_per_second", "mean");
    r.ttft_mean = scaled(stat("time_to_first_token_ms", "mean"), 1e-3);
    r.ttft_median = scaled(stat("time_to_first_token_ms", "median"), 1e-3);
    r.itl_mean = scaled(stat("inter_token_latency_ms", "mean"), 1e-3);
    r.itl_median = scaled(stat("inter_token_latency_ms", "median"), 1e-3);
    r.tpot_mean = scaled(stat("time_per_output_token_ms", "mean"), 1e-3);
    r.tpot_includes_first = true; // latency / output tokens; the time between tokens is what TPOT means elsewhere
    r.e2e_mean = stat("request_latency", "mean"); // seconds
    r.e2e_median = stat("request_latency", "median");
    r.isl_mean = stat("prompt_token_count", "mean");
    r.osl_mean = stat("output_token_count", "mean");
    r.output_rate = stat("output_tokens_per_second", "mean");
    r.total_rate = stat("tokens_per_second", "mean");
    std::string type = text(b, {"config", "strategy", "type_"});
    if (type.empty()) type = text(b, {"args", "strategy", "type_"});
    if (type == "synchronous") r.concurrency = 1;
    if (type == "concurrent") {
        r.concurrency = number(b, {"config", "strategy", "streams"});
        if (!r.concurrency) r.concurrency = number(b, {"config", "strategy", "max_concurrency"});
        if (!r.concurrency) r.concurrency = number(b, {"args", "strategy", "streams"});
    }
    if (type == "constant" || type == "poisson" || type == "async") {
        r.request_rate = number(b, {"config", "strategy", "rate"});
        if (!r.request_rate) r.request_rate = number(b, {"args", "strategy", "rate"});
        if (!r.request_rate) r.request_rate = r.requests_per_second;
    }
    return r;
}

inline ReportedRun aiperf_run(Json const& j) {
    ReportedRun r;
    // A local name says less than the tokenizer's, which is the checkpoint's.
    std::string const tokenizer = text(j, {"input_config", "tokenizer", "name"});
    if (!tokenizer.empty()) r.models.push_back(tokenizer);
    if (Json const* items = at(j, {"input_config", "models", "items"}); items != nullptr && items->is_array() && !items->empty())
        if (std::string s = text((*items)[0], {"name"}); !s.empty()) r.models.push_back(std::move(s));
    if (Json const* names = at(j, {"input_config", "endpoint", "model_names"}); names != nullptr && names->is_array() && !names->empty())
        if (auto s = json_text((*names)[0])) r.models.push_back(std::move(*s));
    auto const stat = [&](std::string_view metric, std::string_view which) { return number(j, {metric, which}); };
    auto const seconds = [&](std::string_view metric, std::string_view which) {
        std::string const unit = text(j, {metric, "unit"});
        return scaled(stat(metric, which), unit == "ms" || unit.empty() ? 1e-3 : unit == "us" ? 1e-6 : unit == "ns" ? 1e-9 : 1.0);
    };
    r.completed = stat("request_count", "avg");
    r.failed = stat("error_request_count", "avg");
    r.duration = seconds("benchmark_duration", "avg");
    r.requests_per_second = stat("request_throughput", "avg");
    r.output_rate = stat("output_token_throughput", "avg");
    r.total_rate = stat("total_token_throughput", "avg");
    r.ttft_mean = seconds("time_to_first_token", "avg");
    r.ttft_median = seconds("time_to_first_token", "p50");
    r.tpot_mean = seconds("inter_token_latency", "avg"); // mean over requests of (latency - TTFT) / (tokens - 1)
    r.tpot_median = seconds("inter_token_latency", "p50");
    r.e2e_mean = seconds("request_latency", "avg");
    r.e2e_median = seconds("request_latency", "p50");
    r.isl_mean = stat("input_sequence_length", "avg");
    r.osl_mean = stat("output_sequence_length", "avg");
    if (Json const* phases = at(j, {"input_config", "phases"}); phases != nullptr && phases->is_array())
        for (Json const& p : *phases)
            if (text(p, {"exclude_from_results"}) != "true") {
                r.concurrency = number(p, {"concurrency"});
                r.request_rate = number(p, {"rate"});
            }
    if (!r.concurrency) r.concurrency = number(j, {"input_config", "loadgen", "concurrency"});
    if (!r.request_rate) r.request_rate = number(j, {"input_config", "loadgen", "request_rate"});
    r.date = day_of(text(j, {"start_time"}));
    return r;
}

inline ReportedRun gpustack_run(Json const& j) {
    ReportedRun r;
    if (std::string m = any_text(j, {"model_name", "model"}); !m.empty()) r.models.push_back(std::move(m));
    r.gpu = any_text(j, {"gpu_name", "gpu", "gpu_summary"});
    r.engine = to_lower(any_text(j, {"backend", "engine"}));
    r.engine_version = any_text(j, {"backend_version", "engine_version"});
    r.n_gpus = any_number(j, {"gpu_count", "n_gpus"});
    r.isl_mean = any_number(j, {"input_tokens_mean", "dataset_input_tokens"});
    r.osl_mean = any_number(j, {"output_tokens_mean", "dataset_output_tokens"});
    r.completed = number(j, {"request_successful"});
    r.failed = number(j, {"request_errored"});
    r.requests_per_second = number(j, {"requests_per_second_mean"});
    r.request_rate = number(j, {"request_rate"});
    r.concurrency = number(j, {"request_concurrency_mean"});
    r.output_rate = number(j, {"output_tokens_per_second_mean"});
    r.total_rate = number(j, {"tokens_per_second_mean"});
    r.ttft_mean = scaled(number(j, {"time_to_first_token_mean"}), 1e-3);
    r.itl_mean = scaled(number(j, {"inter_token_latency_mean"}), 1e-3);
    r.tpot_mean = scaled(number(j, {"time_per_output_token_mean"}), 1e-3);
    r.tpot_includes_first = true; // GuideLLM's meaning
    r.e2e_mean = number(j, {"request_latency_mean"}); // seconds
    // Rates and lengths are tied: output tok/s / (requests/s).
    if (!r.osl_mean && r.output_rate && r.requests_per_second && *r.requests_per_second > 0) r.osl_mean = *r.output_rate / *r.requests_per_second;
    if (!r.isl_mean && r.requests_per_second && *r.requests_per_second > 0)
        r.isl_mean = scaled(number(j, {"input_tokens_per_second_mean"}), 1 / *r.requests_per_second);
    r.date = day_of(any_text(j, {"created_at", "date"}));
    return r;
}

inline ReportedRun trtllm_run(Json const& j) {
    ReportedRun r;
    for (std::string_view key : {"model", "model_path"})
        if (std::string s = text(j, {"engine", key}); !s.empty() && s != "None") r.models.push_back(std::move(s));
    r.engine = "trtllm";
    r.engine_version = text(j, {"engine", "version"});
    std::string const quant = to_lower(text(j, {"engine", "quantization"}));
    r.precision = !quant.empty() && quant != "none" ? quant : text(j, {"engine", "dtype"}) == "bfloat16" ? "bf16" : "";
    if (Json const* machine = find_member(j, "machine"); machine != nullptr) r.gpu = text(*machine, {"name"});
    r.tp = number(j, {"world_info", "tp_size"});
    r.pp = number(j, {"world_info", "pp_size"});
    if (auto const ep = number(j, {"world_info", "ep_size"}); ep && *ep > 1) r.ep = fmt::format("{}", *ep);
    r.n_gpus = number(j, {"world_info", "world_size"});
    r.completed = number(j, {"request_info", "num_requests"});
    r.concurrency = number(j, {"request_info", "avg_num_concurrent_requests"});
    r.isl_mean = number(j, {"request_info", "avg_input_length"});
    r.osl_mean = number(j, {"request_info", "avg_output_length"});
    r.duration = scaled(number(j, {"performance", "total_latency_ms"}), 1e-3);
    r.requests_per_second = number(j, {"performance", "request_throughput_req_s"});
    r.output_rate = number(j, {"performance", "system_output_throughput_tok_s"});
    r.total_rate = number(j, {"performance", "system_total_throughput_tok_s"});
    r.unnamed_rate = number(j, {"performance", "token_throughput_tok_s"});
    r.e2e_mean = scaled(number(j, {"performance", "avg_request_latency_ms"}), 1e-3);
    r.ttft_mean = scaled(number(j, {"streaming_metrics", "avg_ttft_ms"}), 1e-3);
    r.tpot_mean = scaled(number(j, {"streaming_metrics", "avg_tpot_ms"}), 1e-3);
    // An offline engine has no speculation unless its report says so.
    r.spec = find_member(j, "decoding_stats") != nullptr ? "yes" : "";
    return r;
}

// ---- printed reports -------------------------------------------------------------------------------

/// Calls `line(text, number)` for each line.
template <class F>
void each_line(std::string_view all, F&& line) {
    std::int64_t number = 0;
    for (std::size_t from = 0; from < all.size();) {
        auto const end = std::min(all.find('\n', from), all.size());
        std::string_view l = all.substr(from, end - from);
        if (l.ends_with('\r')) l.remove_suffix(1);
        line(l, ++number);
        from = end + 1;
    }
}

/// "Mean TTFT (ms):     2244.53" -> name and value; nothing for other lines.
inline std::optional<std::pair<std::string_view, std::string_view>> labelled(std::string_view line) {
    auto const colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    return std::pair{trim(line.substr(0, colon)), trim(line.substr(colon + 1))};
}

/// The word after an option of a command in a text ("-tp 2", "--tp=2").
inline std::string option_value(std::string_view line, std::string_view option) {
    for (auto p = line.find(option); p != std::string_view::npos; p = line.find(option, p + 1)) {
        auto const end = p + option.size();
        if ((p > 0 && line[p - 1] != ' ' && line[p - 1] != '\t') || end >= line.size() || (line[end] != ' ' && line[end] != '=')) continue;
        std::string_view rest = trim(line.substr(end + 1));
        return std::string{rest.substr(0, rest.find_first_of(" \t\\,)'\""))};
    }
    return {};
}

/// The "Serving Benchmark Result" blocks of a text, with the last command line before each.
inline std::vector<ReportedRun> serving_blocks(std::string_view all, std::string const& file) {
    std::vector<ReportedRun> runs;
    ReportedRun context; // what the text has said so far
    bool open = false;
    each_line(all, [&](std::string_view line, std::int64_t number) {
        auto const value = [](std::string_view s) { return number_of(Json(std::string{s})); };
        if (!open) {
            // A command that starts a server begins anew; its options count until the next one.
            bool const vllm = line.find("vllm serve") != std::string_view::npos || line.find("vllm.entrypoints") != std::string_view::npos;
            bool const sglang = line.find("sglang.launch_server") != std::string_view::npos;
            bool const trt = line.find("trtllm-serve") != std::string_view::npos;
            if (vllm || sglang || trt) {
                context = ReportedRun{};
                context.engine = vllm ? "vllm" : sglang ? "sglang" : "trtllm";
                std::string model = option_value(line, "--model");
                if (model.empty()) model = option_value(line, "--model-path");
                if (model.empty())
                    for (std::string_view verb : {"vllm serve", "trtllm-serve serve", "trtllm-serve"})
                        if (model.empty() && line.find(verb) != std::string_view::npos) model = option_value(line, verb.substr(verb.rfind(' ') + 1));
                if (!model.empty() && !model.starts_with('-')) context.models = {model};
            }
            auto const option = [&](std::initializer_list<std::string_view> names, std::optional<double>& into) {
                for (std::string_view n : names)
                    if (auto const v = value(option_value(line, n))) into = v;
            };
            option({"-tp", "--tp", "--tensor-parallel-size", "--tp_size", "--tp-size"}, context.tp);
            option({"-pp", "--pp", "--pipeline-parallel-size", "--pp_size"}, context.pp);
            option({"-dp", "--dp", "--data-parallel-size"}, context.dp);
            if (line.find("--speculative-config") != std::string_view::npos || line.find("--speculative-algorithm") != std::string_view::npos) {
                auto const m = line.find("\"method\":\"");
                context.spec = m == std::string_view::npos ? "yes" : std::string{line.substr(m + 10, line.substr(m + 10).find('"'))};
            }
            if (line.find("--enable-expert-parallel") != std::string_view::npos) context.ep = "yes";
            // Python prints its options: Namespace(..., random_input_len=1024, ...)
            if (line.find("Namespace(") != std::string_view::npos) {
                auto const field = [&](std::string_view key) -> std::string {
                    auto const p = line.find(std::string{" "} + std::string{key} + "=");
                    if (p == std::string_view::npos) return {};
                    std::string_view rest = line.substr(p + key.size() + 2);
                    if (rest.starts_with('\'')) rest.remove_prefix(1);
                    return std::string{rest.substr(0, rest.find_first_of("',)"))};
                };
                if (std::string const m = field("model"); !m.empty() && m != "None" && context.models.empty()) context.models = {m};
                context.dataset = field("dataset_name");
                if (context.dataset == "random") {
                    context.isl = value(field("random_input_len"));
                    context.osl = value(field("random_output_len"));
                }
                if (auto const b = field("backend"); b == "sglang" || b == "vllm") context.engine = b;
            }
            if (line.find("Traffic request rate:") != std::string_view::npos) context.request_rate = value(trim(line.substr(line.find(':') + 1)));
            if (line.find("Serving Benchmark Result") != std::string_view::npos) {
                open = true;
                runs.push_back(context);
                runs.back().where = fmt::format("{}:{}", file, number);
            }
            return;
        }
        ReportedRun& r = runs.back();
        std::string_view const bare = trim(line);
        bool const rule = bare.size() >= 40 && bare.find_first_not_of('=') == std::string_view::npos;
        if (rule || bare.starts_with("```") || bare.find("Serving Benchmark Result") != std::string_view::npos) {
            open = false;
            return;
        }
        auto const pair = labelled(bare);
        if (!pair) return;
        auto const& [name, v] = *pair;
        auto const set = [&, &name = name, &v = v](std::string_view key, std::optional<double>& into, double scale = 1) {
            if (name == key) into = scaled(value(v), scale);
        };
        if (name == "Backend" && r.engine.empty()) r.engine = to_lower(v).starts_with("openai") ? "" : to_lower(v);
        set("Traffic request rate", r.request_rate);
        set("Successful requests", r.completed);
        set("Failed requests", r.failed);
        set("Maximum request concurrency", r.concurrency);
        set("Max request concurrency", r.concurrency);
        if (name == "Max reqeuest concurrency") r.concurrency = value(v); // SGLang prints it so
        set("Benchmark duration (s)", r.duration);
        set("Total input tokens", r.input_tokens);
        set("Total generated tokens", r.output_tokens);
        set("Request throughput (req/s)", r.requests_per_second);
        set("Output token throughput (tok/s)", r.output_rate);
        for (std::string_view k : {"Total Token throughput (tok/s)", "Total token throughput (tok/s)"}) set(k, r.total_rate);
        set("Mean TTFT (ms)", r.ttft_mean, 1e-3);
        set("Median TTFT (ms)", r.ttft_median, 1e-3);
        set("Mean TPOT (ms)", r.tpot_mean, 1e-3);
        set("Median TPOT (ms)", r.tpot_median, 1e-3);
        set("Mean ITL (ms)", r.itl_mean, 1e-3);
        set("Median ITL (ms)", r.itl_median, 1e-3);
        for (std::string_view k : {"Mean E2EL (ms)", "Mean E2E Latency (ms)"}) set(k, r.e2e_mean, 1e-3);
        for (std::string_view k : {"Median E2EL (ms)", "Median E2E Latency (ms)"}) set(k, r.e2e_median, 1e-3);
        set("Mean Latency(s)", r.e2e_mean);
        set("Median Latency(s)", r.e2e_median);
    });
    return runs;
}

/// The report that trtllm-bench prints, as the object that its JSON would hold.
inline Json trtllm_report_object(std::string_view all) {
    Json j = Json::object();
    auto const set = [&j](std::string_view group, std::string_view key, std::string_view v) {
        if (v.empty() || v == "None") return;
        if (!j.contains(std::string{group})) j[std::string{group}] = Json::object();
        j[std::string{group}][std::string{key}] = std::string{v};
    };
    struct Field {
        std::string_view printed, group, key;
    };
    constexpr Field fields[]{
        {"Model", "engine", "model"},
        {"Model Path", "engine", "model_path"},
        {"TensorRT-LLM Version", "engine", "version"},
        {"TensorRT LLM Version", "engine", "version"},
        {"Dtype", "engine", "dtype"},
        {"Quantization", "engine", "quantization"},
        {"TP Size", "world_info", "tp_size"},
        {"PP Size", "world_info", "pp_size"},
        {"EP Size", "world_info", "ep_size"},
        {"Number of requests", "request_info", "num_requests"},
        {"Number of concurrent requests", "request_info", "avg_num_concurrent_requests"},
        {"Average Input Length (tokens)", "request_info", "avg_input_length"},
        {"Average Output Length (tokens)", "request_info", "avg_output_length"},
        {"Request Throughput (req/sec)", "performance", "request_throughput_req_s"},
        {"Total Output Throughput (tokens/sec)", "performance", "system_output_throughput_tok_s"},
        {"Total Token Throughput (tokens/sec)", "performance", "system_total_throughput_tok_s"},
        {"Token Throughput (tokens/sec)", "performance", "token_throughput_tok_s"},
        {"Total Latency (ms)", "performance", "total_latency_ms"},
        {"Average request latency (ms)", "performance", "avg_request_latency_ms"},
        {"Average time-to-first-token [TTFT] (ms)", "streaming_metrics", "avg_ttft_ms"},
        {"Average time-per-output-token [TPOT] (ms)", "streaming_metrics", "avg_tpot_ms"},
    };
    each_line(all, [&](std::string_view line, std::int64_t) {
        auto const pair = labelled(trim(line));
        if (!pair) return;
        for (Field const& f : fields)
            if (pair->first == f.printed) set(f.group, f.key, pair->second);
    });
    return j;
}

inline std::string_view without_bom(std::string_view s) {
    if (s.starts_with("\xEF\xBB\xBF")) s.remove_prefix(3);
    return s;
}

/// The text begins as JSON objects do; "[07/11/2025-..." is a log.
inline bool looks_like_json(std::string_view head) {
    return head.starts_with('{') || (head.starts_with('[') && (trim(head.substr(1)).starts_with('{') || trim(head.substr(1)).starts_with(']')));
}

/// The format of one JSON object.
inline std::optional<BenchFormat> format_of(Json const& j) {
    if (j.is_array()) return j.empty() ? std::nullopt : format_of(j[0]);
    if (!j.is_object()) return std::nullopt;
    if (Json const* b = find_member(j, "benchmarks"); b != nullptr && b->is_array() && (b->empty() || b->at(0).contains("metrics"))) return BenchFormat::guidellm;
    if (at(j, {"output_token_throughput", "avg"}) != nullptr || at(j, {"time_to_first_token", "avg"}) != nullptr) return BenchFormat::aiperf;
    if (j.contains("tput_per_gpu")) return BenchFormat::inferencex;
    if (at(j, {"performance", "request_throughput_req_s"}) != nullptr) return BenchFormat::trtllm;
    if (j.contains("output_throughput") || j.contains("request_throughput")) {
        if (j.contains("server_info") || j.contains("total_output_tokens_retokenized") || j.contains("sharegpt_output_len")) return BenchFormat::sglang;
        return BenchFormat::vllm_serve;
    }
    return std::nullopt;
}

inline std::optional<BenchFormat> format_of_header(std::vector<std::string> const& header) {
    auto const has = [&](std::string_view name) { return std::find(header.begin(), header.end(), name) != header.end(); };
    if (has("silicon_tpot_ms") || has("tokens/s/gpu")) return BenchFormat::aiconfigurator;
    if (has("tput_per_gpu")) return BenchFormat::inferencex;
    if (has("output_tokens_per_second_mean") || has("inter_token_latency_mean")) return BenchFormat::gpustack;
    if ((has("output_throughput") || has("Output_token_throughput_tok_s") || has("mean_tpot_ms") || has("median_tpot_ms"))) return BenchFormat::vllm_sweep;
    return std::nullopt;
}

/// The objects of a text of JSON lines, or of one JSON value.
inline Result<std::vector<Json>> objects_of(std::string_view all, std::string_view file) {
    auto whole = parse_json(all, file, kLimits);
    std::vector<Json> out;
    if (whole) {
        if (whole->is_array())
            for (Json& j : *whole) out.push_back(std::move(j));
        else
            out.push_back(std::move(*whole));
        return out;
    }
    std::optional<Error> mistake;
    std::int64_t lines = 0;
    each_line(all, [&](std::string_view line, std::int64_t number) {
        if (mistake || trim(line).empty()) return;
        ++lines;
        auto one = parse_json(trim(line), fmt::format("{}:{}", file, number), kLimits);
        if (one)
            out.push_back(std::move(*one));
        else
            mistake = one.error();
    });
    if (lines > 1 && !out.empty() && mistake) return tl::unexpected<Error>{*mistake};
    if (mistake || out.empty()) return tl::unexpected<Error>{whole.error()};
    return out;
}

} // namespace detail::import_bench

/// Which report a text is, by its shape; nothing for what is no benchmark report.
inline std::optional<BenchFormat> guess_bench_format(std::string_view text) {
    namespace d = detail::import_bench;
    text = d::without_bom(text);
    std::string_view const head = trim(text);
    if (head.empty()) return std::nullopt;
    if (d::looks_like_json(head)) {
        if (auto const objects = d::objects_of(text, "text"); objects && !objects->empty()) return d::format_of(objects->front());
        return std::nullopt;
    }
    if (text.find("Serving Benchmark Result") != std::string_view::npos) return BenchFormat::serving_text;
    if (text.find("= PERFORMANCE OVERVIEW") != std::string_view::npos) return BenchFormat::trtllm;
    if (auto csv = CsvReader::open(text, "text")) return d::format_of_header(csv->header());
    return std::nullopt;
}

/// The runs of a report as it states them. Errors: bad_format with place, where the text is not of this format.
inline Result<std::vector<ReportedRun>> read_bench_runs(std::string_view text, std::string_view file, BenchFormat format) {
    namespace d = detail::import_bench;
    text = d::without_bom(text);
    std::string const name{file};
    std::vector<ReportedRun> runs;
    std::string_view const head = trim(text);
    bool const json = d::looks_like_json(head);
    auto const wrong = [&](std::string what) {
        auto const other = guess_bench_format(text);
        return fail(ErrorCode::bad_format, fmt::format("no {} report: {}", to_string(format), what), name,
                    other && *other != format ? fmt::format("it looks like {}: give --kind {}, or no --kind", to_string(*other), to_string(*other)) : std::string{});
    };
    if (format == BenchFormat::serving_text) {
        runs = d::serving_blocks(text, name);
        if (runs.empty()) return wrong("it has no block \"Serving Benchmark Result\"");
        return runs;
    }
    if (format == BenchFormat::trtllm && !json) {
        Json const j = d::trtllm_report_object(text);
        if (!j.contains("performance")) return wrong("it has no \"PERFORMANCE OVERVIEW\"");
        runs.push_back(d::trtllm_run(j));
        runs.back().where = name;
        return runs;
    }
    if (json) {
        auto objects = d::objects_of(text, file);
        if (!objects) return tl::unexpected<Error>{objects.error()};
        std::int64_t index = 0;
        for (Json const& j : *objects) {
            ++index;
            std::string const where = objects->size() == 1 ? name : fmt::format("{}: run {}", name, index);
            auto const is = d::format_of(j);
            bool const fits = is == format || (format == BenchFormat::vllm_sweep && is == BenchFormat::vllm_serve);
            if (!fits) return wrong(objects->size() == 1 ? "its keys are others" : fmt::format("the keys of run {} are others", index));
            auto const add = [&](ReportedRun r, std::string at) {
                r.where = std::move(at);
                runs.push_back(std::move(r));
            };
            switch (format) {
            case BenchFormat::vllm_serve:
            case BenchFormat::vllm_sweep: add(d::vllm_run(j), where); break;
            case BenchFormat::sglang: add(d::sglang_run(j), where); break;
            case BenchFormat::inferencex: add(d::inferencex_run(j), where); break;
            case BenchFormat::trtllm: add(d::trtllm_run(j), where); break;
            case BenchFormat::aiperf: add(d::aiperf_run(j), where); break;
            case BenchFormat::guidellm: {
                std::int64_t k = 0;
                for (Json const& b : *find_member(j, "benchmarks"))
                    add(d::guidellm_run(j, b), fmt::format("{}: benchmark {}", name, ++k));
                break;
            }
            default: return wrong("it is JSON");
            }
        }
        return runs;
    }
    auto csv = CsvReader::open(text, file);
    if (!csv) return tl::unexpected<Error>{csv.error()};
    if (d::format_of_header(csv->header()) != format) return wrong("its columns are others");
    while (csv->next()) {
        Json const j = d::record_object(*csv);
        ReportedRun r = format == BenchFormat::vllm_sweep       ? d::vllm_run(j)
                        : format == BenchFormat::inferencex     ? d::inferencex_run(j)
                        : format == BenchFormat::aiconfigurator ? d::aiconfigurator_run(j)
                                                                : d::gpustack_run(j);
        r.where = fmt::format("{}:{}", name, csv->line());
        runs.push_back(std::move(r));
    }
    if (csv->failed()) return tl::unexpected<Error>{csv->error()};
    return runs;
}

/// A report -> rows, with every doubt as a finding. Errors: bad_format.
inline Result<BenchImport> import_bench(std::string_view text, std::string_view file, BenchFormat format, BenchImportOptions const& o) {
    auto runs = read_bench_runs(text, file, format);
    if (!runs) return tl::unexpected<Error>{runs.error()};
    BenchImport out;
    out.read = static_cast<std::int64_t>(runs->size());
    detail::Findings findings{out.findings};
    std::vector<ImportFinding> of_run;
    for (ReportedRun& r : *runs) {
        of_run.clear();
        take_path_hints(r, file, o, of_run);
        if (auto row = settle_run(r, o, of_run)) out.rows.push_back(std::move(*row));
        for (ImportFinding& f : of_run) findings.add(std::move(f.where), std::move(f.what), f.dropped);
    }
    findings.close();
    return out;
}

} // namespace servecap
