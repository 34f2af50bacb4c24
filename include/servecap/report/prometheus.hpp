// servecap: a plan's figures in Prometheus' text format
// SPDX-License-Identifier: Apache-2.0
//
// For the textfile collector of node_exporter, or a static scrape target: what was planned, beside what a server reports.
// Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4): HELP, TYPE, then one sample a
// line. Base units (seconds, bytes, dollars). What is not known has no sample, never a zero. Every sample carries model,
// gpu, engine and layout; figures with an interval have bound="value", "low" and "high".

#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/plan/plan.hpp>

namespace servecap {

namespace detail::prometheus {

/// A label's value: backslash, quote and line feed are escaped.
inline std::string escaped(std::string_view s) {
    std::string out;
    for (char c : s) {
        if (c == '\\' || c == '"') out.push_back('\\');
        if (c == '\n')
            out += "\\n";
        else
            out.push_back(c);
    }
    return out;
}

/// Samples of one metric.
class Metric {
public:
    Metric(std::string& out, std::string name, std::string_view help, std::string labels) : out_{out}, name_{std::move(name)}, labels_{std::move(labels)} {
        out_ += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name_, help, name_);
    }
    void sample(double v, std::string const& more = {}) {
        if (!std::isfinite(v)) return;
        out_ += fmt::format("{}{{{}{}{}}} {:.9g}\n", name_, labels_, more.empty() ? "" : ",", more, v);
    }
    template <class T, class F>
    void interval(Interval<T> const& i, F convert, std::string const& more = {}) {
        std::string const lead = more.empty() ? "" : more + ",";
        sample(convert(i.value), lead + "bound=\"value\"");
        sample(convert(i.low), lead + "bound=\"low\"");
        sample(convert(i.high), lead + "bound=\"high\"");
    }

private:
    std::string& out_;
    std::string name_, labels_;
};

} // namespace detail::prometheus

/// The figures of a plan as a text file for Prometheus.
inline std::string prometheus_text(Plan const& p) {
    namespace d = detail::prometheus;
    std::string out;
    std::string const labels = fmt::format("model=\"{}\",gpu=\"{}\",gpus=\"{}\",engine=\"{}\",layout=\"{}\"", d::escaped(p.model->id), d::escaped(p.gpus.gpu.id), p.gpus.count,
                                           to_string(p.planned.engine), layout_name(p.layout));
    auto const metric = [&](std::string_view name, std::string_view help) { return d::Metric{out, "servecap_" + std::string{name}, help, labels}; };
    auto const bytes = [](Bytes b) { return static_cast<double>(b.value()); };
    auto const number = [](auto q) { return static_cast<double>(q.value()); };

    metric("starts", "1 if the engine starts as planned, else 0.").sample(p.fit.starts ? 1 : 0, fmt::format("verdict=\"{}\"", to_string(p.fit.verdict)));
    metric("fits", "1 if the weights and one request have room with some settings.").sample(p.fit.fits ? 1 : 0);
    metric("weights_bytes_per_gpu", "Weights of the fullest rank.").sample(bytes(p.fit.weights));
    metric("host_bytes", "Tables kept in host memory, a replica.").sample(bytes(p.fit.host_bytes));
    if (p.fit.starts) {
        metric("kv_pool_bytes_per_gpu", "KV cache memory of one GPU.").sample(bytes(p.fit.pool));
        auto tokens = metric("kv_tokens", "Tokens of KV cache, as the engine logs it.");
        tokens.sample(number(p.fit.kv_tokens), "bound=\"value\"");
        tokens.sample(number(p.fit.kv_tokens_low), "bound=\"low\"");
        tokens.sample(number(p.fit.kv_tokens_high), "bound=\"high\"");
        if (p.fit.state_slots) metric("state_slots", "Sequences whose recurrent state has room.").sample(static_cast<double>(*p.fit.state_slots));
        metric("max_num_seqs", "Sequences at once, a data-parallel rank.").sample(number(p.fit.max_num_seqs));
        metric("max_model_len_tokens", "Longest request.").sample(number(p.fit.max_model_len));
    }
    if (!p.speed.empty()) {
        auto const at = [](SpeedPoint const& s) { return fmt::format("concurrency=\"{}\",isl=\"{}\",osl=\"{}\"", s.concurrency.value(), s.isl.value(), s.osl.value()); };
        auto const seconds = [](Seconds t) { return t.value(); };
        auto const rate = [](TokensPerSecond r) { return r.value(); };
        auto ttft = metric("ttft_seconds", "Time to the first token, mean.");
        for (auto const& s : p.speed) ttft.interval(s.ttft, seconds, at(s));
        auto tpot = metric("tpot_seconds", "Time per output token after the first, mean.");
        for (auto const& s : p.speed) tpot.interval(s.tpot, seconds, at(s));
        auto output = metric("output_tokens_per_second", "Output tokens a second of the whole deployment.");
        for (auto const& s : p.speed) output.interval(s.output, rate, at(s));
        auto input = metric("input_tokens_per_second", "Input tokens a second of the whole deployment.");
        for (auto const& s : p.speed) input.interval(s.input, rate, at(s));
    }
    if (p.cost.price) metric("usd_per_hour", "Price of the whole deployment.").sample(number(p.cost.price->per_hour));
    if (p.cost.price && !p.cost.by_concurrency.empty()) {
        auto usd = metric("usd_per_million_output_tokens", "All cost on output tokens.");
        for (CostPoint const& c : p.cost.by_concurrency)
            usd.interval(c.output_alone, [](UsdPerMillionTokens x) { return x.value(); }, fmt::format("concurrency=\"{}\"", c.concurrency.value()));
    }
    if (p.cost.setup.known) {
        metric("download_seconds", "Download of the files, predicted.").sample(p.cost.setup.download.value.value());
        metric("start_seconds", "From the launch to the first answer, predicted.").sample(p.cost.setup.start.value.value());
    }
    if (!p.break_even.empty()) {
        auto be = metric("break_even_million_output_tokens_per_month", "First volume from which self-hosting is cheaper.");
        for (BreakEven const& b : p.break_even)
            if (b.million_output > 0)
                be.sample(b.million_output, fmt::format("against=\"{}\",provider=\"{}\",reachable=\"{}\"", d::escaped(b.against.model), d::escaped(b.against.provider),
                                                        to_string(b.reachable)));
    }
    return out;
}

} // namespace servecap
