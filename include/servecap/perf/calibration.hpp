// servecap: measured rows made ready to calibrate on or to score
// SPDX-License-Identifier: Apache-2.0
//
// Rows are brought to one form, given the physics of their deployment, and grouped: by model x GPU x engine
// (the groups that are left out when the speed model is scored) and by twins (rows of one deployment and
// load, under whatever flag or source). Rows that cannot be are refused by line: an output faster than the
// memory allows, a TTFT longer than the request, a layout that is not the row's number of GPUs.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/perf/deployment.hpp>
#include <servecap/perf/evaluate.hpp>
#include <servecap/perf/residual.hpp>
#include <servecap/perf/step.hpp>

namespace servecap {

/// A row with the physics of its deployment.
struct CalibrationRow {
    SpeedRow speed;
    PreparedSpeed physics; ///< without coefficients
    ResidualSite site;
    std::int32_t group = 0; ///< model x GPU x engine
    std::int32_t twin = 0;  ///< rows of one deployment and load, under whatever flag or source
};

/// A row that was not used, and why.
struct RefusedRow {
    RowOrigin origin;
    std::string reason;
};

/// The rows of a catalogue, ready to calibrate on or to score.
struct CalibrationRows {
    std::vector<CalibrationRow> rows;
    std::vector<RefusedRow> refused;
    std::vector<std::string> groups;                           ///< "model | gpu | engine"
    std::vector<std::pair<std::string, std::uint32_t>> shapes; ///< short model name -> signature
};

/// Finds a model by the name that rows use; null when it is not known.
using ModelLookup = std::function<Model const*(std::string_view)>;

/// What makes a row impossible; nothing when it is plausible. `weights` = bytes of one replica's active weights
/// over all ranks at batch 1, against the bandwidth of its GPUs.
inline std::optional<std::string> impossible(SpeedRow const& s, PreparedSpeed const& p) {
    BenchmarkRow const& r = *s.row;
    if (s.tpot > 0 && s.id.speculation.empty()) {
        double experts = 0;
        for (std::size_t i = 0; i < p.moe_count; ++i) experts += p.moe[i].bytes * p.moe[i].top_k;
        double const least = (p.weight_bytes + experts) / p.bandwidth;
        if (s.tpot < 0.85 * least)
            return "TPOT of " + std::to_string(s.tpot * 1e3) + " ms is below the " + std::to_string(least * 1e3) +
                   " ms that reading one token's weights takes";
    }
    if (r.output && r.concurrency && r.ttft && !has_flag(r.flags, "queue")) {
        double const request = *r.concurrency * s.osl / r.output->value();
        if (r.ttft->value() > 1.3 * request)
            return "TTFT of " + std::to_string(r.ttft->value()) + " s is longer than the whole request (" +
                   std::to_string(request) + " s)";
    }
    Layout const l = layout_of(r);
    std::int32_t const stated = r.tp.value_or(1) * r.pp.value_or(1) * r.replicas.value_or(1);
    if (r.n_gpus > 0 && l.gpus() != r.n_gpus && stated != r.n_gpus && r.tp)
        return "tp x pp x dp x replicas is " + std::to_string(l.gpus()) + ", the row has " + std::to_string(r.n_gpus) + " GPUs";
    return std::nullopt;
}

/// Prepares rows. `calibrate_only`: rows with flags that must not teach are refused too.
inline CalibrationRows prepare_rows(std::span<BenchmarkRow const> rows, ModelLookup const& find_model, std::span<Gpu const> gpus,
                                    bool calibrate_only) {
    CalibrationRows out;
    std::map<std::string, std::int32_t> groups;
    std::map<std::tuple<std::uint64_t, double, double, double>, std::int32_t> twins;
    std::map<std::string, std::uint32_t> shapes;
    std::map<std::pair<std::string, std::string>, Model> as_precision;
    std::map<std::tuple<std::string, std::string, std::string, std::int32_t, std::int32_t, std::int32_t, bool>, PreparedSpeed>
        prepared;
    for (BenchmarkRow const& r : rows) {
        auto const refuse = [&](std::string why) { out.refused.push_back({r.origin, std::move(why)}); };
        Model const* model = find_model(r.model);
        if (model == nullptr) {
            refuse("unknown model");
            continue;
        }
        Gpu const* gpu = nullptr;
        for (Gpu const& g : gpus)
            if (g.id == r.gpu) gpu = &g;
        if (gpu == nullptr || !gpu->bandwidth) {
            refuse("unknown gpu");
            continue;
        }
        shapes.emplace(short_model_name(r.model), shape_signature(*model));
        if (calibrate_only && !may_calibrate(r)) {
            refuse("flagged: speculation or precision not recorded, or a known bad run");
            continue;
        }
        auto s = speed_row(r);
        if (!s) {
            refuse("no lengths, concurrency or measure");
            continue;
        }
        s->id.shape = shape_signature(*model);
        s->id.layer_class = layer_class(*model);
        s->id.family = architecture_family(*gpu);
        if (s->id.precision.empty()) s->id.precision = model->quant.label;
        auto const loaded = as_precision.try_emplace({r.model, s->id.precision}, Model{});
        if (loaded.second) loaded.first->second = model_as(*model, s->id.precision);
        Model const& formats = loaded.first->second;
        auto const key = std::make_tuple(r.model, s->id.precision, r.gpu, s->layout.tp, s->layout.pp, s->layout.dp, s->layout.ep);
        auto const ready = prepared.try_emplace(key, PreparedSpeed{});
        if (ready.second) {
            PrepareOptions o;
            o.kv = formats.quant.label == "bf16" ? KvFormat::bf16 : KvFormat::fp8;
            ready.first->second = prepare_speed(formats, s->layout, GpuSet{*gpu, s->layout.gpus_per_replica(), 1}, o);
        }
        if (auto why = impossible(*s, ready.first->second)) {
            refuse("impossible: " + *why);
            continue;
        }
        CalibrationRow c;
        c.speed = *s;
        c.physics = ready.first->second;
        c.site = residual_site(*s);
        std::string const group = r.model + " | " + r.gpu + " | " + r.engine;
        auto const g = groups.try_emplace(group, static_cast<std::int32_t>(groups.size()));
        if (g.second) out.groups.push_back(group);
        c.group = g.first->second;
        SpeedIdentity plain = s->id;
        plain.speculation.clear(); // a row with stated and one with unstated speculation are twins
        std::uint64_t const deployment = detail::site_of(plain, s->layout, {}, {}).deployment;
        double const isl = r.isl.value_or(s->isl), osl = r.osl.value_or(s->osl);
        c.twin = twins.try_emplace({deployment, s->concurrency, isl, osl}, static_cast<std::int32_t>(twins.size())).first->second;
        out.rows.push_back(std::move(c));
    }
    out.shapes.assign(shapes.begin(), shapes.end());
    return out;
}

} // namespace servecap
