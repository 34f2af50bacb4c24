// servecap: a plan as JSON, schema "servecap.plan/1"
// SPDX-License-Identifier: Apache-2.0
//
// Names are fixed within schema version 1; more may be added. What is not known is null, never zero.

#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <servecap/plan/plan.hpp>

namespace servecap {

inline constexpr std::string_view kPlanSchema = "servecap.plan/1";

namespace detail {

using OrderedJson = nlohmann::ordered_json;

/// A measure without the noise of binary fractions: nine significant digits; null where not finite.
inline OrderedJson number(double x) {
    if (!std::isfinite(x)) return nullptr;
    if (x == 0) return 0.0;
    double const scale = std::pow(10.0, 9 - std::ceil(std::log10(std::fabs(x))));
    double const r = std::round(x * scale) / scale;
    return std::isfinite(r) ? r : x;
}

template <class Tag, class Rep>
OrderedJson quantity(Quantity<Tag, Rep> q) {
    if constexpr (std::is_integral_v<Rep>)
        return q.value();
    else
        return number(q.value());
}

template <class T>
OrderedJson maybe(std::optional<T> const& q) {
    if (!q) return nullptr;
    if constexpr (std::is_arithmetic_v<T>) {
        if constexpr (std::is_floating_point_v<T>)
            return number(*q);
        else
            return *q;
    } else {
        return quantity(*q);
    }
}

inline OrderedJson text_or_null(std::string_view s) { return s.empty() ? OrderedJson(nullptr) : OrderedJson(std::string{s}); }

template <class T, class F>
void put_interval(OrderedJson& j, std::string const& name, Interval<T> const& i, F convert) {
    j[name] = convert(i.value);
    j[name + "_low"] = convert(i.low);
    j[name + "_high"] = convert(i.high);
}

} // namespace detail

/// The `fit` object of a start plan.
inline nlohmann::ordered_json fit_to_json(StartPlan const& f) {
    using namespace detail;
    OrderedJson j;
    j["fits"] = f.fits;
    j["starts"] = f.starts;
    j["verdict"] = std::string{to_string(f.verdict)};
    j["engine_message"] = text_or_null(f.engine_message);
    j["risks"] = f.risks;
    OrderedJson fixes = OrderedJson::array();
    for (Fix const& x : f.fixes) fixes.push_back({{"flag", x.flag}, {"value", x.value}, {"effect", x.effect}});
    j["fixes"] = fixes;
    j["shortfall_bytes_per_gpu"] = quantity(f.shortfall);
    j["weights_bytes_total"] = quantity(f.weights_total);
    j["weights_bytes_per_gpu"] = quantity(f.weights);
    j["host_bytes"] = quantity(f.host_bytes);
    j["kv_cache_dtype"] = f.kv_cache_dtype;
    j["kv_bytes_per_token_per_gpu"] = quantity(f.kv_per_token);
    j["fixed_bytes_per_sequence_per_gpu"] = quantity(f.fixed_per_sequence);
    j["state_bytes_per_sequence_per_gpu"] = quantity(f.state_per_sequence);
    j["budget"] = {{"visible_bytes", quantity(f.budget.visible)},
                   {"utilization", number(f.budget.utilization)},
                   {"requested_bytes", quantity(f.budget.requested)},
                   {"activation_bytes", quantity(f.budget.activation)},
                   {"non_torch_bytes", quantity(f.budget.non_torch)},
                   {"cuda_graph_bytes", quantity(f.budget.cuda_graph)}};
    j["pool_bytes_per_gpu"] = quantity(f.pool);
    j["block_tokens"] = quantity(f.block_tokens);
    j["num_blocks"] = f.num_blocks;
    j["bytes_per_block"] = quantity(f.bytes_per_block);
    j["kv_tokens"] = quantity(f.kv_tokens);
    j["kv_tokens_low"] = quantity(f.kv_tokens_low);
    j["kv_tokens_high"] = quantity(f.kv_tokens_high);
    j["state_slots"] = maybe(f.state_slots);
    j["max_num_seqs"] = quantity(f.max_num_seqs);
    j["max_model_len"] = quantity(f.max_model_len);
    j["longest_max_model_len"] = quantity(f.longest);
    j["max_requests_at_max_model_len"] = number(f.max_requests_at_max_model_len);
    j["basis"] = std::string{to_string(f.basis)};
    j["rules_version"] = text_or_null(f.rules_version);
    j["notes"] = f.notes;
    return j;
}

/// One entry of `speed`.
inline nlohmann::ordered_json speed_to_json(SpeedPoint const& p) {
    using namespace detail;
    auto const ms = [](Seconds t) { return number(in_ms(t)); };
    auto const rate = [](TokensPerSecond r) { return number(r.value()); };
    OrderedJson j;
    j["concurrency"] = quantity(p.concurrency);
    j["resident_concurrency"] = quantity(p.resident);
    j["isl"] = quantity(p.isl);
    j["osl"] = quantity(p.osl);
    put_interval(j, "ttft_ms", p.ttft, ms);
    put_interval(j, "tpot_ms", p.tpot, ms);
    put_interval(j, "output_tokens_per_second", p.output, rate);
    put_interval(j, "input_tokens_per_second", p.input, rate);
    put_interval(j, "total_tokens_per_second", p.total, rate);
    put_interval(j, "output_tokens_per_second_per_user", p.per_user, rate);
    put_interval(j, "output_tokens_per_second_per_gpu", p.per_gpu, rate);
    j["basis"] = std::string{to_string(p.basis)};
    OrderedJson evidence = OrderedJson::array();
    for (Evidence const& e : p.evidence)
        evidence.push_back({{"source", text_or_null(e.source)}, {"url", text_or_null(e.url)}, {"date", text_or_null(e.date)}, {"rows", e.rows}});
    j["evidence"] = evidence;
    j["bound_by"] = std::string{to_string(p.bound_by)};
    if (p.ttft_p90) j["ttft_p90_ms"] = ms(*p.ttft_p90);
    if (p.ttft_p99) j["ttft_p99_ms"] = ms(*p.ttft_p99);
    if (p.saturated) j["saturated"] = *p.saturated;
    if (p.extrapolated) j["extrapolated"] = true;
    auto const terms = [&](std::vector<SpeedTerm> const& list) {
        OrderedJson a = OrderedJson::array();
        for (SpeedTerm const& t : list) a.push_back({{"term", std::string{t.name}}, {"ms", ms(t.time)}, {"formula", text_or_null(t.formula)}});
        return a;
    };
    if (!p.decode_terms.empty()) j["decode_terms"] = terms(p.decode_terms);
    if (!p.prefill_terms.empty()) j["prefill_terms"] = terms(p.prefill_terms);
    return j;
}

inline nlohmann::ordered_json cost_to_json(PlanCost const& c) {
    using namespace detail;
    auto const usd = [](UsdPerMillionTokens x) { return number(x.value()); };
    OrderedJson j;
    j["currency"] = "USD";
    j["usd_per_hour"] = c.price ? quantity(c.price->per_hour) : OrderedJson(nullptr);
    if (c.price) {
        OrderedJson rows = OrderedJson::array();
        for (GpuPrice const& r : c.price->rows)
            rows.push_back({{"provider", r.provider},
                            {"usd_per_gpu_hour", maybe(r.per_gpu)},
                            {"kind", r.price_type},
                            {"date", text_or_null(r.date)},
                            {"confidence", std::string{to_string(r.confidence)}},
                            {"url", text_or_null(r.url)}});
        j["price"] = {{"source", text_or_null(c.price->source)},
                      {"url", text_or_null(c.price->url)},
                      {"date", text_or_null(c.price->date)},
                      {"kind", text_or_null(c.price->kind)},
                      {"confidence", c.price->basis == Basis::assumed ? "given" : std::string{to_string(c.price->confidence)}},
                      {"low", quantity(c.price->low)},
                      {"high", quantity(c.price->high)},
                      {"rows", rows}};
    } else {
        j["price"] = nullptr;
    }
    if (!c.missing.empty()) j["missing"] = c.missing;
    j["output_input_price_ratio"] = number(c.output_input_price_ratio);
    auto const seconds = [&](Interval<Seconds> const& t) { return c.setup.known ? number(t.value.value()) : OrderedJson(nullptr); };
    j["setup"] = {{"download_s", seconds(c.setup.download)},
                  {"start_s", seconds(c.setup.start)},
                  {"usd", c.setup_usd ? number(c.setup_usd->value.value()) : OrderedJson(nullptr)},
                  {"basis", std::string{to_string(c.setup.basis)}},
                  {"source", text_or_null(c.setup.source)},
                  {"date", text_or_null(c.setup.date)},
                  {"notes", c.setup.notes}};
    OrderedJson rows = OrderedJson::array();
    for (CostPoint const& p : c.by_concurrency) {
        OrderedJson r;
        r["concurrency"] = quantity(p.concurrency);
        put_interval(r, "usd_per_million_output_tokens", p.output_alone, usd);
        put_interval(r, "usd_per_million_input_tokens", p.input, usd);
        put_interval(r, "usd_per_million_output_tokens_split", p.output, usd);
        put_interval(r, "usd_per_million_total_tokens", p.total, usd);
        rows.push_back(r);
    }
    j["by_concurrency"] = rows;
    return j;
}

inline nlohmann::ordered_json break_even_to_json(BreakEven const& b) {
    using namespace detail;
    OrderedJson j;
    j["against"] = {{"name", b.against.model},
                    {"provider", text_or_null(b.against.provider)},
                    {"input", quantity(b.against.input)},
                    {"cached", b.against.cached_input_known ? quantity(b.against.cached_input) : OrderedJson(nullptr)},
                    {"output", quantity(b.against.output)},
                    {"date", text_or_null(b.against.date)},
                    {"url", text_or_null(b.against.url)}};
    j["usd_per_month_self_hosted"] = quantity(b.self_hosted);
    j["usd_per_million_output_tokens_at_api"] = quantity(b.api_per_million_output);
    OrderedJson crossings = OrderedJson::array();
    for (Crossing const& c : b.crossings)
        crossings.push_back({{"million_output_tokens_per_month", number(c.million_output)},
                             {"million_input_tokens_per_month", number(c.million_input)},
                             {"replicas", c.replicas},
                             {"self_hosted_cheaper_above", c.cheaper_above}});
    j["crossings"] = crossings;
    j["million_output_tokens_per_month"] = b.million_output > 0 ? number(b.million_output) : OrderedJson(nullptr);
    j["million_input_tokens_per_month"] = b.million_output > 0 ? number(b.million_input) : OrderedJson(nullptr);
    j["output_tokens_per_second_needed"] = quantity(b.output_rate);
    j["input_tokens_per_second_needed"] = quantity(b.input_rate);
    j["reachable"] = std::string{to_string(b.reachable)};
    if (b.capacity)
        j["capacity"] = {{"at", b.capacity->at},
                         {"output_tokens_per_second", quantity(b.capacity->output.value)},
                         {"output_tokens_per_second_low", quantity(b.capacity->output.low)},
                         {"output_tokens_per_second_high", quantity(b.capacity->output.high)},
                         {"ttft_ms", b.capacity->ttft ? number(in_ms(*b.capacity->ttft)) : OrderedJson(nullptr)},
                         {"tpot_ms", b.capacity->tpot ? number(in_ms(*b.capacity->tpot)) : OrderedJson(nullptr)}};
    j["utilization_needed"] = maybe(b.utilization_needed);
    j["reason"] = text_or_null(b.reason);
    j["notes"] = b.notes;
    return j;
}

/// The whole plan.
inline nlohmann::ordered_json plan_to_json(Plan const& p) {
    using namespace detail;
    OrderedJson j;
    j["schema"] = std::string{kPlanSchema};
    j["model"] = p.model->id;
    j["gpu"] = {{"name", p.gpus.gpu.id}, {"count", p.gpus.count}, {"nodes", p.gpus.nodes}};
    // The flags of the command line, as one would paste them.
    OrderedJson flags = OrderedJson::array();
    for (std::size_t at = p.command.find(" --"); at != std::string::npos;) {
        std::size_t const next = p.command.find(" --", at + 3);
        flags.push_back(p.command.substr(at + 1, next == std::string::npos ? std::string::npos : next - at - 1));
        at = next;
    }
    j["engine"] = {{"name", std::string{to_string(p.planned.engine)}},
                   {"version", text_or_null(p.planned.version.empty() ? p.fit.rules_version : p.planned.version)},
                   {"flags", flags}};
    j["layout"] = {{"name", layout_name(p.layout)}, {"tp", p.layout.tp},   {"pp", p.layout.pp},
                   {"dp", p.layout.dp},             {"ep", p.layout.ep_size()}, {"dcp", p.layout.dcp},
                   {"replicas", p.layout.replicas}, {"reason", text_or_null(p.layout_reason)}, {"source", text_or_null(p.layout_source)}};
    j["command"] = text_or_null(p.command);
    OrderedJson mended = OrderedJson::array();
    for (Mend const& m : p.mended)
        mended.push_back({{"flag", m.flag}, {"value", m.value}, {"avoids", m.avoids}, {"basis", std::string{to_string(m.basis)}}});
    j["mended"] = mended;
    j["for_fix"] = p.for_fix;
    j["fit"] = fit_to_json(p.fit);
    if (p.blind) {
        OrderedJson blind = fit_to_json(*p.blind);
        j["fit"]["blind"] = blind;
    }
    if (!p.mended.empty() || p.for_fix) j["as_asked"] = fit_to_json(p.as_asked);
    OrderedJson speed = OrderedJson::array();
    for (SpeedPoint const& s : p.speed) speed.push_back(speed_to_json(s));
    j["speed"] = speed;
    j["cost"] = cost_to_json(p.cost);
    OrderedJson be = OrderedJson::array();
    for (BreakEven const& b : p.break_even) be.push_back(break_even_to_json(b));
    j["break_even"] = be;
    if (!p.break_even_missing.empty()) j["break_even_missing"] = p.break_even_missing;
    j["as_of"] = text_or_null(p.as_of);
    j["inferred"] = p.model->inferred;
    j["warnings"] = p.warnings;
    OrderedJson sources = OrderedJson::array();
    for (PlanSource const& s : p.sources)
        sources.push_back({{"what", s.what}, {"source", text_or_null(s.source)}, {"url", text_or_null(s.url)}, {"date", text_or_null(s.date)}});
    j["sources"] = sources;
    return j;
}

} // namespace servecap
