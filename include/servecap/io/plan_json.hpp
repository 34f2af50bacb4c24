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

using Json = nlohmann::ordered_json;

/// A measure without the noise of binary fractions: nine significant digits; null where not finite.
inline Json number(double x) {
    if (!std::isfinite(x)) return nullptr;
    if (x == 0) return 0.0;
    double const scale = std::pow(10.0, 9 - std::ceil(std::log10(std::fabs(x))));
    double const r = std::round(x * scale) / scale;
    return std::isfinite(r) ? r : x;
}

template <class Tag, class Rep>
Json quantity(Quantity<Tag, Rep> q) {
    if constexpr (std::is_integral_v<Rep>)
        return q.value();
    else
        return number(q.value());
}

template <class T>
Json maybe(std::optional<T> const& q) {
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

inline Json text_or_null(std::string_view s) { return s.empty() ? Json(nullptr) : Json(std::string{s}); }

template <class T, class F>
void put_interval(Json& j, std::string const& name, Interval<T> const& i, F convert) {
    j[name] = convert(i.value);
    j[name + "_low"] = convert(i.low);
    j[name + "_high"] = convert(i.high);
}

inline std::string confidence_text(Confidence c) {
    switch (c) {
    case Confidence::high: return "high";
    case Confidence::medium: return "medium";
    case Confidence::low: return "low";
    case Confidence::unverified: break;
    }
    return "unverified";
}

} // namespace detail

/// The `fit` object of a start plan.
inline nlohmann::ordered_json fit_to_json(StartPlan const& f) {
    using namespace detail;
    Json j;
    j["fits"] = f.fits;
    j["starts"] = f.starts;
    j["verdict"] = std::string{to_string(f.verdict)};
    j["engine_message"] = text_or_null(f.engine_message);
    j["risks"] = f.risks;
    Json fixes = Json::array();
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
    Json j;
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
    Json evidence = Json::array();
    for (Evidence const& e : p.evidence)
        evidence.push_back({{"source", text_or_null(e.source)}, {"url", text_or_null(e.url)}, {"date", text_or_null(e.date)}, {"rows", e.rows}});
    j["evidence"] = evidence;
    j["bound_by"] = std::string{to_string(p.bound_by)};
    if (p.ttft_p90) j["ttft_p90_ms"] = ms(*p.ttft_p90);
    if (p.ttft_p99) j["ttft_p99_ms"] = ms(*p.ttft_p99);
    if (p.saturated) j["saturated"] = *p.saturated;
    if (p.extrapolated) j["extrapolated"] = true;
    auto const terms = [&](std::vector<SpeedTerm> const& list) {
        Json a = Json::array();
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
    Json j;
    j["currency"] = "USD";
    j["usd_per_hour"] = c.price ? quantity(c.price->per_hour) : Json(nullptr);
    if (c.price)
        j["price"] = {{"source", text_or_null(c.price->source)},
                      {"url", text_or_null(c.price->url)},
                      {"date", text_or_null(c.price->date)},
                      {"kind", text_or_null(c.price->kind)},
                      {"confidence", c.price->given ? "given" : confidence_text(c.price->confidence)},
                      {"low", maybe(c.price->low)},
                      {"high", maybe(c.price->high)},
                      {"rows", c.price->rows}};
    else
        j["price"] = nullptr;
    if (!c.missing.empty()) j["missing"] = c.missing;
    j["output_input_price_ratio"] = number(c.output_input_price_ratio);
    j["setup"] = {{"download_s", maybe(c.setup.download)},
                  {"start_s", maybe(c.setup.start)},
                  {"usd", maybe(c.setup.usd)},
                  {"basis", std::string{to_string(c.setup.basis)}},
                  {"source", text_or_null(c.setup.source)}};
    Json rows = Json::array();
    for (PlanCostPoint const& p : c.by_concurrency) {
        Json r;
        r["concurrency"] = quantity(p.concurrency);
        put_interval(r, "usd_per_million_output_tokens", p.output, usd);
        put_interval(r, "usd_per_million_input_tokens", p.input, usd);
        put_interval(r, "usd_per_million_output_tokens_split", p.split_output, usd);
        put_interval(r, "usd_per_million_total_tokens", p.total, usd);
        rows.push_back(r);
    }
    j["by_concurrency"] = rows;
    return j;
}

inline nlohmann::ordered_json break_even_to_json(PlanBreakEven const& b) {
    using namespace detail;
    constexpr std::string_view reach[] = {"yes", "no", "unknown"};
    Json j;
    j["against"] = {{"name", b.name},     {"input", maybe(b.input)},         {"cached", maybe(b.cached)},
                    {"output", maybe(b.output)}, {"date", text_or_null(b.date)}, {"url", text_or_null(b.url)}};
    j["usd_per_month_self_hosted"] = quantity(b.self_hosted);
    Json crossings = Json::array();
    for (PlanCrossing const& c : b.crossings)
        crossings.push_back({{"million_output_tokens_per_month", number(c.million_output_tokens_per_month)},
                             {"million_input_tokens_per_month", number(c.million_input_tokens_per_month)},
                             {"replicas", c.replicas}});
    j["crossings"] = crossings;
    j["million_output_tokens_per_month"] = b.crossings.empty() ? Json(nullptr) : number(b.crossings.front().million_output_tokens_per_month);
    j["million_input_tokens_per_month"] = b.crossings.empty() ? Json(nullptr) : number(b.crossings.front().million_input_tokens_per_month);
    j["reachable"] = std::string{reach[static_cast<std::size_t>(b.reachable)]};
    j["utilization_needed"] = maybe(b.utilization_needed);
    j["output_tokens_per_second_needed"] = maybe(b.output_needed);
    j["output_tokens_per_second_possible"] = maybe(b.output_possible);
    j["basis"] = std::string{to_string(b.basis)};
    j["reason"] = text_or_null(b.reason);
    return j;
}

/// The whole plan.
inline nlohmann::ordered_json plan_to_json(Plan const& p) {
    using namespace detail;
    Json j;
    j["schema"] = std::string{kPlanSchema};
    j["model"] = p.model->id;
    j["gpu"] = {{"name", p.gpus.gpu.id}, {"count", p.gpus.count}, {"nodes", p.gpus.nodes}};
    Json flags = Json::array();
    j["engine"] = {{"name", std::string{to_string(p.planned.engine)}},
                   {"version", text_or_null(p.planned.version.empty() ? p.fit.rules_version : p.planned.version)},
                   {"flags", flags}};
    j["layout"] = {{"name", layout_name(p.layout)}, {"tp", p.layout.tp},   {"pp", p.layout.pp},
                   {"dp", p.layout.dp},             {"ep", p.layout.ep_size()}, {"dcp", p.layout.dcp},
                   {"replicas", p.layout.replicas}, {"reason", text_or_null(p.layout_reason)}, {"source", text_or_null(p.layout_source)}};
    j["command"] = text_or_null(p.command);
    Json mended = Json::array();
    for (Mend const& m : p.mended)
        mended.push_back({{"flag", m.flag}, {"value", m.value}, {"avoids", m.avoids}, {"basis", std::string{to_string(m.basis)}}});
    j["mended"] = mended;
    j["for_fix"] = p.for_fix;
    j["fit"] = fit_to_json(p.fit);
    if (p.blind) {
        Json blind = fit_to_json(*p.blind);
        j["fit"]["blind"] = blind;
    }
    if (!p.mended.empty() || p.for_fix) j["as_asked"] = fit_to_json(p.as_asked);
    Json speed = Json::array();
    for (SpeedPoint const& s : p.speed) speed.push_back(speed_to_json(s));
    j["speed"] = speed;
    j["cost"] = cost_to_json(p.cost);
    Json be = Json::array();
    for (PlanBreakEven const& b : p.break_even) be.push_back(break_even_to_json(b));
    j["break_even"] = be;
    j["as_of"] = text_or_null(p.as_of);
    j["inferred"] = p.model->inferred;
    j["warnings"] = p.warnings;
    Json sources = Json::array();
    for (PlanSource const& s : p.sources)
        sources.push_back({{"what", s.what}, {"source", text_or_null(s.source)}, {"url", text_or_null(s.url)}, {"date", text_or_null(s.date)}});
    j["sources"] = sources;
    return j;
}

} // namespace servecap
