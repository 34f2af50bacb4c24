// servecap: one benchmark run as somebody's tool reports it -> a row of the benchmarks CSV, after checks
// SPDX-License-Identifier: Apache-2.0
//
// Tools call the same figure by different names and different figures by the same name. A run is first taken as it is
// written (ReportedRun), then settled by identities that hold for every closed set of requests:
//   output tok/s = output tokens / duration = requests/s x mean output length
//   end to end   = TTFT + TPOT x (output length - 1)          TPOT without the first token
//   in flight    = requests/s x end to end                    Little's law
// A throughput is output or total, of one GPU or of all, as the first identity says; a TPOT that counts chunks of a
// stream (several tokens an event) breaks the second one and is taken from the latency instead; a concurrency that was
// only asked for breaks the third. What is settled, and what stays open, is a finding with its place.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/text.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/import_finding.hpp>
#include <servecap/io/rows.hpp>

namespace servecap {

/// A run as its report states it. Times in seconds. Empty = not stated.
struct ReportedRun {
    std::string where;                ///< for findings
    std::vector<std::string> models;  ///< names of the model, the most telling first
    std::string gpu, engine, engine_version, precision, spec, ep, dp_attention, dataset, date, note;
    std::optional<double> n_gpus, tp, pp, dp, replicas;
    std::optional<double> isl, osl;           ///< nominal lengths
    std::optional<double> isl_mean, osl_mean; ///< mean lengths of the run
    std::optional<double> completed, failed, duration, input_tokens, output_tokens;
    std::optional<double> requests_per_second, request_rate; ///< reached; asked (infinite = all at once)
    std::optional<double> concurrency;                       ///< asked or capped
    std::optional<double> output_rate, total_rate;           ///< tok/s of all GPUs
    std::optional<double> output_rate_gpu, total_rate_gpu;   ///< tok/s of one GPU
    std::optional<double> unnamed_rate;                      ///< "token throughput": output or total, one GPU or all
    std::optional<double> ttft_mean, ttft_median, tpot_mean, tpot_median, itl_mean, itl_median, e2e_mean, e2e_median;
    bool tpot_includes_first = false; ///< the report's TPOT is latency / tokens (GuideLLM)
    bool drawn_lengths = false;       ///< the mean lengths are those of InferenceX's draw, not counted
    bool predicted = false;           ///< figures of a model, not of a run (aiconfigurator)
    bool disaggregated = false;       ///< prefill and decode on GPUs apart: no layout of ours
};

/// What the user knows and the report does not say; a field that is set wins.
struct BenchImportOptions {
    std::string model{}, gpu{}, precision{}, engine{}, engine_version{}, spec{}, ep{}, dp_attention{}, date{}, source{}, url{}, grade{};
    std::optional<std::int32_t> n_gpus{}, tp{}, pp{}, dp{}, replicas{};
    std::optional<double> isl{}, osl{}, concurrency{};
    NameMap const* names = nullptr; ///< spellings of models and engines
    std::span<Gpu const> gpus{};    ///< the catalogue
};

namespace detail::import_run {

/// A figure that can be: above zero, and not so large or small that no run has it.
inline std::optional<double> positive(std::optional<double> v) { return v && *v > 1e-9 && *v < 1e12 ? v : std::nullopt; }
inline bool near(double a, double b, double share) { return std::fabs(a - b) <= share * std::fabs(b); }

/// "/models/models--Qwen--Qwen3-32B/snapshots/f7..." -> "Qwen/Qwen3-32B"; other paths as their last folder.
inline std::string model_of_path(std::string_view path) {
    while (path.ends_with('/')) path.remove_suffix(1);
    if (auto const hub = path.find("models--"); hub != std::string_view::npos) {
        path.remove_prefix(hub + 8);
        path = path.substr(0, path.find('/'));
    } else if (path.starts_with('/') || path.starts_with('.') || path.starts_with('~') ||
               std::count(path.begin(), path.end(), '/') > 1) {
        path = path.substr(path.rfind('/') + 1);
    }
    std::string out{path};
    if (auto const at = out.find("--"); at != std::string::npos) out.replace(at, 2, "/");
    return out;
}

/// The precision that a model's name tells: "GLM-4.7-FP8" -> fp8.
inline std::string precision_of_name(std::string_view name) {
    std::string const low = to_lower(name);
    for (std::string_view p : {"nvfp4", "mxfp4", "mxfp8", "fp8", "int4", "int8", "awq", "gptq", "fp4", "bf16"})
        if (low.find(p) != std::string::npos) return std::string{p};
    if (low.find("w4a16") != std::string::npos) return "int4";
    if (low.find("w8a8") != std::string::npos) return "int8";
    return {};
}

/// The label of a precision as engines write it: "bfloat16" -> bf16, "FP8_BLOCK_SCALES" -> fp8; empty for what names none.
inline std::string precision_label(std::string_view written) {
    std::string const low = to_lower(trim(written));
    if (low == "bfloat16" || low == "bf16") return "bf16";
    if (low == "float16" || low == "half" || low == "fp16") return "fp16";
    if (low == "modelopt_fp4") return "nvfp4";
    return precision_of_name(low);
}

/// "GLM-4.7-FP8" -> "GLM-4.7"; names that end otherwise as they are.
inline std::string_view without_precision(std::string_view name) {
    std::string const low = to_lower(name);
    for (std::string_view p : {"nvfp4", "mxfp4", "mxfp8", "fp8", "int4", "int8", "awq", "gptq", "fp4", "bf16"})
        if (low.ends_with(p) && low.size() > p.size() + 1 && (low[low.size() - p.size() - 1] == '-' || low[low.size() - p.size() - 1] == '_'))
            return name.substr(0, name.size() - p.size() - 1);
    return name;
}

/// The model that one of `names` means. A name with its organisation stays as written; others get the catalogue's spelling.
inline std::string known_model(std::vector<std::string> const& names, NameMap const* map, bool& known) {
    known = false;
    for (std::string const& n : names) {
        std::string const whole = model_of_path(n);
        if (map == nullptr) continue;
        for (std::string_view const form : {std::string_view{whole}, without_precision(whole)}) {
            auto c = map->find("model", form);
            bool const named = c && form.find('/') != std::string_view::npos;
            if (auto const slash = form.find('/'); !c && slash != std::string_view::npos) c = map->find("model", form.substr(slash + 1));
            if (!c) continue;
            known = true;
            return std::string{named ? form : *c};
        }
    }
    return names.empty() ? std::string{} : model_of_path(names.front());
}

/// Text of a cell: no control characters, no broken UTF-8, no blanks at its ends, at most 200 bytes.
inline std::string clean(std::string_view s) {
    std::string out;
    for (std::size_t i = 0; i < s.size() && out.size() < 200; ++i) {
        auto const c = static_cast<unsigned char>(s[i]);
        out.push_back(c < 0x20 || c == 0x7f ? ' ' : s[i]);
    }
    out.resize(utf8_prefix(out));
    return std::string{trim(out)};
}

/// A word of a file name that is a letter pair and a number: "TP4" -> {"tp", 4}.
inline std::optional<double> numbered(std::string_view word, std::string_view letters) {
    if (!to_lower(word).starts_with(letters) || word.size() <= letters.size() || word.size() > letters.size() + 4) return std::nullopt;
    double n = 0;
    for (char c : word.substr(letters.size())) {
        if (c < '0' || c > '9') return std::nullopt;
        n = n * 10 + (c - '0');
    }
    return n >= 1 ? std::optional<double>{n} : std::nullopt;
}

} // namespace detail::import_run

/// Layout, GPU and concurrency that a path tells ("runpod_b200/GLM-4.7-FP8/run_TP4_DP2_C100.json"), filled in where the
/// run does not state them; what was taken is said.
inline void take_path_hints(ReportedRun& r, std::string_view path, BenchImportOptions const& o, std::vector<ImportFinding>& findings) {
    using detail::import_run::numbered;
    std::string taken;
    auto const say = [&](std::string what) { taken += (taken.empty() ? "" : ", ") + std::move(what); };
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < path.size();) {
        auto const end = std::min(path.find_first_of("/\\_-. ,=", at), path.size());
        if (end > at) words.push_back(path.substr(at, end - at));
        at = end + 1;
    }
    ReportedRun const before = r;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string_view const w = words[i];
        auto const count = [&](std::string_view letters, std::optional<double> const& had, std::optional<double>& into) {
            if (had || into) return;
            if (auto const n = numbered(w, letters)) {
                into = n;
                say(fmt::format("{} {}", letters, *n));
            }
        };
        if (!before.tp) {
            count("tp", before.tp, r.tp);
            count("pp", before.pp, r.pp);
            count("dp", before.dp, r.dp);
            if (auto const n = numbered(w, "ep"); n && *n > 1 && r.ep.empty()) {
                r.ep = fmt::format("{}", *n);
                say("ep " + r.ep);
            }
        }
        count("conc", before.concurrency, r.concurrency);
        if (before.gpu.empty() && r.gpu.empty() && w.size() >= 2) {
            Gpu const* g = find_gpu(w, o.gpus);
            for (std::string_view form : {"sxm", "pcie", "nvl"})
                if (g == nullptr && to_lower(w).ends_with(form)) g = find_gpu(w.substr(0, w.size() - form.size()), o.gpus);
            if (g != nullptr) {
                r.gpu = g->id;
                say("GPU " + g->id);
            }
        }
    }
    // A model that the run calls by a local path may have its name in a folder.
    bool known = false;
    static_cast<void>(detail::import_run::known_model(r.models, o.names, known));
    for (std::size_t at = 0; !known && o.model.empty() && o.names != nullptr && at < path.size();) {
        auto const end = std::min(path.find_first_of("/\\_ ", at), path.size());
        std::string_view const part = path.substr(at, end - at);
        if (part.size() > 3)
            if (o.names->find("model", part) || o.names->find("model", detail::import_run::without_precision(part))) {
                r.models.insert(r.models.begin(), std::string{part});
                say("model " + std::string{part});
                known = true;
            }
        at = end + 1;
    }
    if (!taken.empty()) findings.push_back({r.where, "from the name of the file, not its text: " + taken});
}

/// The row of a run, or nothing where no figure can be trusted; findings say what was settled and what is open.
inline std::optional<BenchmarkRow> settle_run(ReportedRun const& r, BenchImportOptions const& o, std::vector<ImportFinding>& findings) {
    namespace d = detail::import_run;
    auto const say = [&](std::string what, bool dropped = false) { findings.push_back({r.where, std::move(what), dropped}); };
    if (r.completed && *r.completed < 1) {
        say("no request succeeded", true);
        return std::nullopt;
    }
    BenchmarkRow row;
    std::string flags, note = r.note;
    auto const remark = [&note](std::string_view text) { note += (note.empty() ? "" : "; ") + std::string{text}; };
    auto const flag = [&flags](std::string_view f) { flags += (flags.empty() ? "" : " ") + std::string{f}; };

    // What ran.
    bool known = false;
    std::vector<std::string> const names = o.model.empty() ? r.models : std::vector<std::string>{o.model};
    row.model = d::clean(d::known_model(names, o.names, known));
    if (row.model.empty()) {
        say("the file names no model: give --model", true);
        return std::nullopt;
    }
    if (!known && o.names != nullptr) say(fmt::format("model \"{}\" is not in the list of names: kept as written; --model gives another", row.model));
    std::string gpu = o.gpu.empty() ? r.gpu : o.gpu;
    if (o.names != nullptr) gpu = o.names->canonical("gpu", gpu);
    if (Gpu const* g = gpu.empty() ? nullptr : find_gpu(gpu, o.gpus))
        row.gpu = g->id;
    else {
        row.gpu = gpu;
        say(gpu.empty() ? "the file names no GPU: give --gpu" : fmt::format("\"{}\" is no GPU of the catalogue", gpu));
    }
    row.engine = o.engine.empty() ? (o.names != nullptr ? o.names->canonical("engine", r.engine) : r.engine) : o.engine;
    row.engine_version = o.engine_version.empty() ? r.engine_version : o.engine_version;
    auto const count = [](std::optional<std::int32_t> given, std::optional<double> stated) -> std::optional<std::int32_t> {
        if (given) return given;
        if (stated && *stated >= 1 && *stated <= 1e6 && *stated == std::floor(*stated)) return static_cast<std::int32_t>(*stated);
        return std::nullopt;
    };
    row.tp = count(o.tp, r.tp);
    row.pp = count(o.pp, r.pp);
    row.dp = count(o.dp, r.dp);
    row.replicas = count(o.replicas, r.replicas);
    row.ep = o.ep.empty() ? r.ep : o.ep;
    row.dp_attention = o.dp_attention.empty() ? r.dp_attention : o.dp_attention;
    auto gpus = count(o.n_gpus, r.n_gpus);
    if (!gpus && row.tp) {
        double const all = static_cast<double>(*row.tp) * row.pp.value_or(1) * row.dp.value_or(1) * row.replicas.value_or(1);
        if (all <= 1e6) gpus = static_cast<std::int32_t>(all);
    }
    row.n_gpus = gpus.value_or(0);
    if (!gpus) say("the file states neither the number of GPUs nor the layout: give --gpu h100x8 and --tp");
    row.precision = !o.precision.empty() ? o.precision : d::precision_label(r.precision);
    if (row.precision.empty()) {
        for (std::string const& n : names)
            if (row.precision.empty()) row.precision = d::precision_of_name(n);
        if (row.precision.empty()) {
            flag("prec?");
            say("precision not stated: the row will not calibrate; --weights-dtype tells it");
        }
    }
    row.spec_method = !o.spec.empty() ? o.spec : r.spec;
    if (row.spec_method.empty()) {
        flag("spec?");
        say("speculation not stated: the row will not calibrate; --speculative-method none (or mtp, eagle3...) tells it");
    }
    if (r.disaggregated) {
        flag("disagg");
        remark("prefill and decode on GPUs apart");
        say("prefill and decode run on GPUs apart: the row is kept, its layout is not one that is modelled");
    }

    // Lengths.
    auto const mean_of = [&](std::optional<double> stated, std::optional<double> tokens) -> std::optional<double> {
        if (d::positive(tokens) && d::positive(r.completed)) return *tokens / *r.completed;
        return d::positive(stated);
    };
    row.isl_mean = mean_of(r.isl_mean, r.input_tokens);
    row.osl_mean = mean_of(r.osl_mean, r.output_tokens);
    auto const nominal = [&](std::optional<double> given, std::optional<double> stated, std::optional<double> mean, std::string_view which) {
        if (given) return given;
        if (d::positive(stated)) {
            if (mean && !r.drawn_lengths && !d::near(*mean, *stated, 0.02))
                say(fmt::format("{} {:.0f} was asked, {:.1f} tokens were counted on average: both are kept", which, *stated, *mean));
            return d::positive(stated);
        }
        return mean ? std::optional<double>{std::max(1.0, std::round(*mean))} : std::nullopt;
    };
    row.isl = nominal(o.isl, r.isl, row.isl_mean, "ISL");
    row.osl = nominal(o.osl, r.osl, row.osl_mean, "OSL");
    if (r.drawn_lengths) say("lengths are drawn between 0.8 and 1.0 of ISL and OSL: means of 0.9 are taken");
    auto const osl = row.osl_mean ? row.osl_mean : row.osl;
    auto const isl = row.isl_mean ? row.isl_mean : row.isl;

    // Output rate of all GPUs: what tokens and time say, against what is stated.
    double by_count = 0, output = 0; // 0 = not known
    if (d::positive(r.output_tokens) && d::positive(r.duration))
        by_count = *r.output_tokens / *r.duration;
    else if (d::positive(r.requests_per_second) && osl)
        by_count = *r.requests_per_second * *osl;
    double const n = std::max(1, row.n_gpus);
    double const total_share = isl && osl ? 1 + *isl / *osl : 0; // total / output
    std::string basis = "measured";
    auto const by_total = [&](double total) {
        output = total / total_share;
        basis = "from_total";
        say("only a total rate is stated: output = total / (1 + ISL/OSL)");
    };
    if (d::positive(r.output_rate)) {
        output = *r.output_rate;
    } else if (d::positive(r.output_rate_gpu) && row.n_gpus > 0) {
        output = *r.output_rate_gpu * n;
    } else if (d::positive(r.unnamed_rate)) {
        double const v = *r.unnamed_rate;
        if (by_count > 0 && d::near(v, by_count, 0.03)) {
            output = v;
            say("\"throughput\" is that of output tokens, by requests and lengths");
        } else if (by_count > 0 && total_share > 0 && d::near(v, by_count * total_share, 0.03)) {
            output = by_count;
            say("\"throughput\" counts input and output tokens, by requests and lengths: output is taken apart");
        } else if (by_count > 0 && d::near(v * n, by_count, 0.03)) {
            output = by_count;
            say("\"throughput\" is of one GPU: multiplied");
        } else {
            say("\"throughput\" could be output or total, nothing tells which: left out");
        }
    } else if (d::positive(r.total_rate_gpu) && total_share > 0 && row.n_gpus > 0) {
        by_total(*r.total_rate_gpu * n);
    } else if (d::positive(r.total_rate) && total_share > 0) {
        by_total(*r.total_rate);
    }
    if (output > 0 && by_count > 0 && !d::near(output, by_count, 0.03)) {
        if (total_share > 0 && d::near(output, by_count * total_share, 0.03))
            say(fmt::format("the stated output rate {:.6g} counts input tokens too: {:.6g} is taken", output, by_count));
        else if (n > 1 && d::near(output * n, by_count, 0.03))
            say(fmt::format("the stated output rate {:.6g} is of one GPU: {:.6g} is taken", output, by_count));
        else
            say(fmt::format("the stated output rate {:.6g} does not agree with requests and lengths ({:.6g}, which is taken)", output, by_count));
        output = by_count;
    }
    if (output <= 0) output = by_count;
    if (output > 0) {
        row.output = TokensPerSecond{output};
        row.out_basis = basis;
    }

    // Latencies: the mean where there is one.
    std::string ttft_basis = "mean", tpot_basis = "mean";
    std::optional<double> ttft = d::positive(r.ttft_mean);
    if (!ttft) {
        ttft = d::positive(r.ttft_median);
        ttft_basis = "median";
    }
    std::optional<double> tpot = d::positive(r.tpot_mean);
    if (!tpot) {
        tpot = d::positive(r.tpot_median);
        tpot_basis = "median";
    }
    // From the end-to-end latency, for lengths above one token.
    std::optional<double> from_e2e;
    if (ttft && osl && *osl > 1.5) {
        auto const e2e = ttft_basis == "mean" || !r.e2e_median ? d::positive(r.e2e_mean) : d::positive(r.e2e_mean ? r.e2e_mean : r.e2e_median);
        if (e2e && *e2e > *ttft) from_e2e = (*e2e - *ttft) / (*osl - 1);
    }
    if (tpot && r.tpot_includes_first && d::positive(r.itl_mean)) {
        tpot = r.itl_mean; // per token after the first, which is what TPOT means here
        tpot_basis = "mean";
    }
    if (tpot && from_e2e) {
        if (*from_e2e > 1.5 * *tpot) {
            say(fmt::format("TPOT {:.4g} ms contradicts the latency ({:.4g} ms a token after the first): it counts events of a stream that carry "
                            "several tokens; the latency's figure is taken",
                            *tpot * 1e3, *from_e2e * 1e3));
            tpot = from_e2e;
            tpot_basis = "mean";
            remark("TPOT from the end-to-end latency");
        } else if (*from_e2e < 0.75 * *tpot && r.itl_mean && d::near(*r.itl_mean, *from_e2e, 0.1)) {
            say(fmt::format("TPOT {:.4g} ms is a mean over requests, in which answers of a few tokens weigh most; a token took {:.4g} ms by latency "
                            "and by the time between tokens, which is taken",
                            *tpot * 1e3, *from_e2e * 1e3));
            tpot = from_e2e;
            tpot_basis = "mean";
            remark("TPOT from the end-to-end latency");
        } else if (!d::near(*tpot, *from_e2e, 0.2)) {
            say(fmt::format("TPOT {:.4g} ms, the end-to-end latency says {:.4g} ms (requests of unequal lengths weigh differently): kept as stated",
                            *tpot * 1e3, *from_e2e * 1e3));
        }
    }
    if (!tpot && from_e2e) {
        tpot = from_e2e;
        tpot_basis = "mean";
        remark("TPOT from the end-to-end latency");
        auto const itl = d::positive(r.itl_mean ? r.itl_mean : r.itl_median);
        say(fmt::format("no TPOT is stated: {:.4g} ms follows from the end-to-end latency{}", *tpot * 1e3,
                        itl ? fmt::format(" (time between events: {:.4g} ms)", *itl * 1e3) : std::string{}));
    }
    if (!tpot) {
        if (auto const itl = d::positive(r.itl_mean)) {
            tpot = itl;
            say("no TPOT is stated: the mean time between tokens is taken");
        } else if (d::positive(r.itl_median)) {
            say("only a median time between events is stated, which is no TPOT: left out");
        }
    }
    if (ttft) row.ttft = Seconds{*ttft};
    if (tpot) row.tpot = Seconds{*tpot};
    if (ttft || tpot) {
        std::string const a = tpot ? tpot_basis : ttft_basis, b = ttft ? ttft_basis : tpot_basis;
        row.lat_basis = a == b ? a : a + "/" + b;
        if (row.lat_basis != "mean") say("latencies are the " + row.lat_basis + (a == b ? "" : " of TPOT/TTFT") + ": the file has no mean");
    }

    // Requests in flight.
    auto const e2e = d::positive(r.e2e_mean) ? r.e2e_mean : ttft && tpot && osl ? std::optional<double>{*ttft + *tpot * (*osl - 1)} : std::nullopt;
    auto const rate = d::positive(r.requests_per_second) ? r.requests_per_second
                      : d::positive(r.completed) && d::positive(r.duration) ? std::optional<double>{*r.completed / *r.duration}
                      : output > 0 && osl                                   ? std::optional<double>{output / *osl}
                                                                            : std::nullopt;
    std::optional<double> in_flight;
    if (e2e && rate) in_flight = *e2e * *rate;
    row.concurrency = o.concurrency ? o.concurrency : d::positive(r.concurrency);
    bool const open = r.request_rate && std::isfinite(*r.request_rate);
    if (row.concurrency && !o.concurrency && in_flight && *in_flight < 0.7 * *row.concurrency) {
        say(fmt::format("concurrency {:.0f} was allowed, but {:.1f} requests were in flight on average: that is taken", *row.concurrency, *in_flight));
        remark(fmt::format("in flight on average, {:.0f} allowed", *row.concurrency));
        row.concurrency = std::max(1.0, std::round(*in_flight));
    } else if (row.concurrency && in_flight && *in_flight > 1.3 * *row.concurrency) {
        say(fmt::format("{:.1f} requests were in flight by rate and latency, {:.0f} are stated: one of the figures is not of the whole deployment",
                        *in_flight, *row.concurrency));
        remark("in flight and concurrency disagree");
    }
    if (!row.concurrency && open && in_flight) {
        row.concurrency = std::max(1.0, std::round(*in_flight));
        remark(fmt::format("requests arrive at {:.4g}/s; in flight on average", *r.request_rate));
        say(fmt::format("requests arrive at {:.4g}/s: {:.1f} in flight on average is taken as the concurrency", *r.request_rate, *in_flight));
    } else if (!row.concurrency) {
        say("no concurrency and no finite rate are stated (all requests at once): a row of saturation");
    }
    if (row.concurrency && r.completed && !open && *r.completed < 3 * *row.concurrency)
        say(fmt::format("a short run, {:.0f} requests at concurrency {:.0f}: start and end weigh on the rates", *r.completed, *row.concurrency));
    if (ttft && tpot && osl && *ttft > 0.3 * (*ttft + *tpot * (*osl - 1))) flag("queue");
    if (r.failed && *r.failed > 0) {
        say(fmt::format("{:.0f} requests failed", *r.failed));
        remark(fmt::format("{:.0f} requests failed", *r.failed));
    }
    // What the columns cannot hold is no figure of a run.
    auto const within = [&](auto& cell, double value, double low, double high, std::string_view what) {
        if (!cell || (value >= low && value <= high)) return;
        say(fmt::format("{} {:.6g} cannot be", what, value));
        cell.reset();
    };
    within(row.isl, row.isl.value_or(0), 1, 1e9, "ISL");
    within(row.osl, row.osl.value_or(0), 1, 1e9, "OSL");
    within(row.isl_mean, row.isl_mean.value_or(0), 0.5, 1e9, "mean ISL");
    within(row.osl_mean, row.osl_mean.value_or(0), 0.5, 1e9, "mean OSL");
    within(row.concurrency, row.concurrency.value_or(0), 0.01, 1e9, "concurrency");
    within(row.output, row.output ? row.output->value() : 0, 1e-6, 1e12, "output tok/s");
    within(row.ttft, row.ttft ? row.ttft->value() : 0, 1e-9, 1e7, "TTFT in seconds");
    within(row.tpot, row.tpot ? row.tpot->value() : 0, 1e-9, 1e7, "TPOT in seconds");
    if (!row.output && !row.ttft && !row.tpot) {
        say("neither a rate nor a latency that can be used", true);
        return std::nullopt;
    }
    for (std::string* cell : {&row.precision, &row.gpu, &row.ep, &row.dp_attention, &row.engine, &row.engine_version, &row.spec_method}) *cell = d::clean(*cell);
    row.date = !o.date.empty() ? o.date : !r.date.empty() ? r.date : "unknown";
    row.source = d::clean(o.source.empty() ? r.where : o.source);
    row.url = d::clean(o.url);
    row.grade = !o.grade.empty() ? o.grade : r.predicted ? "C" : "A";
    if (r.predicted) {
        flag("predicted");
        remark("figures of a model, not of a run");
    }
    row.dataset = d::clean(r.dataset);
    row.flags = flags;
    row.note = d::clean(note);
    row.origin.user = true;
    return row;
}

/// Rows as CSV text, in the columns of data/benchmarks.csv.
inline std::string write_benchmarks(std::span<BenchmarkRow const> rows) {
    auto const number = [](std::optional<double> v) { return v ? fmt::format("{:.6g}", *v) : std::string{}; };
    auto const whole = [](std::optional<std::int32_t> v) { return v ? std::to_string(*v) : std::string{}; };
    std::string out;
    append_csv_record(out, std::vector<std::string_view>{
                               "model", "precision", "gpu", "n_gpus", "tp", "pp", "dp", "ep", "dp_attention", "replicas", "engine",
                               "engine_version", "spec_method", "isl", "osl", "isl_mean", "osl_mean", "concurrency", "output_tok_s", "ttft_ms",
                               "tpot_ms", "date", "source", "url", "grade", "dataset", "out_basis", "lat_basis", "flags", "note"});
    for (BenchmarkRow const& r : rows)
        append_csv_record(
            out, std::vector<std::string>{
                     r.model, r.precision, r.gpu, r.n_gpus > 0 ? std::to_string(r.n_gpus) : std::string{}, whole(r.tp), whole(r.pp), whole(r.dp),
                     r.ep, r.dp_attention, whole(r.replicas), r.engine, r.engine_version, r.spec_method, number(r.isl), number(r.osl),
                     number(r.isl_mean), number(r.osl_mean), number(r.concurrency),
                     number(r.output ? std::optional<double>{r.output->value()} : std::nullopt),
                     number(r.ttft ? std::optional<double>{in_ms(*r.ttft)} : std::nullopt),
                     number(r.tpot ? std::optional<double>{in_ms(*r.tpot)} : std::nullopt), r.date, r.source, r.url, r.grade,
                     r.dataset, r.out_basis, r.lat_basis, r.flags, r.note});
    return out;
}

} // namespace servecap
