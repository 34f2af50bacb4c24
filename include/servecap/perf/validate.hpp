// servecap: speed predictions scored on measured rows that they have not seen
// SPDX-License-Identifier: Apache-2.0
//
// A row of the catalogue is predicted by the whole of perf/ as a user would get it, with coefficients fitted
// without its group (model x GPU x engine) and with rows of other groups as evidence; `leave_rows` keeps the
// group's other rows as evidence and leaves out the row and its twins alone (coefficients still without the
// group). Rows from outside are predicted with everything; those that the catalogue knows are marked.
// Percentages are of the measured value; bias is the median of signed errors.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/engine/engine.hpp>
#include <servecap/engine/validate_startups.hpp>
#include <servecap/perf/calibration.hpp>
#include <servecap/perf/evaluate.hpp>

namespace servecap {

/// What rows state and predictions are compared with.
enum class SpeedQuantity : std::uint8_t { tpot_ms, ttft_ms, output_tok_s };
inline constexpr std::size_t kSpeedQuantities = 3;
constexpr std::string_view to_string(SpeedQuantity q) noexcept {
    constexpr std::array<std::string_view, kSpeedQuantities> names{"tpot_ms", "ttft_ms", "output_tok_s"};
    return names[static_cast<std::size_t>(q)];
}

/// One row and its prediction.
struct SpeedResult {
    CalibrationRow const* row = nullptr;
    std::array<std::optional<Compared>, kSpeedQuantities> compared;
    Basis basis = Basis::roofline;
    bool in_sample = false; ///< a row from outside that the catalogue knows
};

/// How rows are predicted.
struct SpeedScoring {
    /// Coefficients learned without a group. For rows from outside: of all (group is -1).
    std::function<std::vector<Coefficient>(std::int32_t group)> coefficients;
    ModelLookup model;
    std::span<Gpu const> gpus;
    bool leave_rows = false;   ///< leave the row and its twins out of the evidence, not its whole group
    bool all_evidence = false; ///< rows from outside: nothing is left out
    bool with_room = true;     ///< the engine's KV room bounds the running requests (plan_start)
};

struct SpeedGroupScore {
    std::array<QuantityScore, kSpeedQuantities> quantity;
    std::int64_t rows = 0;
};

struct SpeedScores {
    std::vector<SpeedResult> results;
    SpeedGroupScore all;
    std::map<std::string, std::int64_t> refused; ///< reason: rows
};

namespace detail {

inline EngineKind engine_kind_of(std::string_view name) noexcept {
    if (name == "sglang") return EngineKind::sglang;
    if (name == "trtllm") return EngineKind::trtllm;
    if (name == "llama.cpp") return EngineKind::llama_cpp;
    return EngineKind::vllm;
}

/// KV room and state slots of a row's deployment, as far as the engine's rules tell; its sequence cap is not known.
inline StartPlan room_of_row(CalibrationRow const& c, Model const& loaded, GpuSet const& gpus, EngineSettings const& settings,
                             Layout const& layout) {
    StartRequest q{.model = loaded, .gpus = gpus, .layout = layout, .settings = settings};
    q.isl = Tokens{static_cast<std::int64_t>(c.speed.isl)};
    q.osl = Tokens{static_cast<std::int64_t>(c.speed.osl)};
    q.date = c.speed.row->date;
    q.settings.max_num_seqs.reset();
    if (loaded.quant.label != "bf16") q.settings.kv_cache_dtype = "fp8"; // as the rows are taken to have run
    q.settings.speculative_tokens = 0; // drafters are small; their caches are not worth a wrong bound
    StartPlan p = plan_start(q);
    if (!p.fits || p.kv_tokens.value() <= 0) return {}; // it was measured, so it ran: no bound known
    p.max_num_seqs = Requests{0};
    return p;
}

} // namespace detail

/// Scores one quantity over the results that `keep` picks.
template <class Keep>
QuantityScore score_speed(std::span<SpeedResult const> results, SpeedQuantity quantity, Keep keep) {
    QuantityScore s;
    std::vector<double> signed_errors, absolute;
    std::int64_t covered = 0;
    for (SpeedResult const& r : results) {
        auto const& c = r.compared[static_cast<std::size_t>(quantity)];
        if (!c || !keep(r)) continue;
        signed_errors.push_back(c->error_pct());
        absolute.push_back(std::fabs(c->error_pct()));
        covered += c->covered() ? 1 : 0;
    }
    s.n = static_cast<std::int64_t>(absolute.size());
    if (s.n == 0) return s;
    auto const share = [&](double limit) {
        return 100.0 *
               static_cast<double>(std::count_if(absolute.begin(), absolute.end(), [&](double e) { return e <= limit; })) /
               static_cast<double>(s.n);
    };
    s.median_abs_pct_error = detail::quantile(absolute, 0.5);
    s.p90_abs_pct_error = detail::quantile(absolute, 0.9);
    s.bias_pct = detail::quantile(signed_errors, 0.5);
    s.within_1pct = share(1);
    s.within_3pct = share(3);
    s.within_5pct = share(5);
    s.within_10pct = share(10);
    s.within_15pct = share(15);
    s.within_20pct = share(20);
    s.interval_coverage = 100.0 * static_cast<double>(covered) / static_cast<double>(s.n);
    return s;
}

template <class Keep>
SpeedGroupScore score_speed(std::span<SpeedResult const> results, Keep keep) {
    SpeedGroupScore g;
    for (SpeedResult const& r : results) g.rows += keep(r) ? 1 : 0;
    for (std::size_t q = 0; q < kSpeedQuantities; ++q) g.quantity[q] = score_speed(results, static_cast<SpeedQuantity>(q), keep);
    return g;
}

/// Predicts `scored` with `evidence` (the catalogue's rows; often the same object) and scores it.
/// `pick` chooses the rows to score.
template <class Pick>
SpeedScores validate_speed(CalibrationRows const& scored, CalibrationRows const& evidence, SpeedScoring const& how, Pick pick) {
    SpeedScores out;
    for (RefusedRow const& r : scored.refused) ++out.refused[r.reason.substr(0, r.reason.find(':'))];
    bool const same = &scored == &evidence;
    std::map<std::int32_t, std::vector<std::size_t>> by_group;
    for (std::size_t i = 0; i < scored.rows.size(); ++i)
        if (pick(scored.rows[i])) by_group[scored.rows[i].group].push_back(i);
    for (auto const& [group, members] : by_group) {
        std::vector<Coefficient> const coefficients = how.coefficients(how.all_evidence || !same ? -1 : group);
        std::map<std::uint64_t, std::vector<BenchmarkRow>> others; // rows of a shape that belong to other groups
        for (std::size_t const i : members) {
            CalibrationRow const& c = scored.rows[i];
            SpeedRow const& s = c.speed;
            BenchmarkRow const& row = *s.row;
            SpeedResult result;
            result.row = &c;
            std::vector<BenchmarkRow> own;
            std::span<BenchmarkRow const> rows;
            if (how.leave_rows || how.all_evidence || !same) {
                for (CalibrationRow const& e : evidence.rows) {
                    if (e.site.shape != c.site.shape) continue;
                    bool const twin = same ? e.twin == c.twin
                                           : e.site.deployment == c.site.deployment && e.speed.concurrency == s.concurrency &&
                                                 std::fabs(e.speed.isl - s.isl) < 1 && std::fabs(e.speed.osl - s.osl) < 1;
                    if (twin && !same) result.in_sample = true;
                    if (twin && same && !how.all_evidence) continue;
                    own.push_back(*e.speed.row);
                }
                rows = own;
            } else {
                auto const at = others.try_emplace(c.site.shape);
                if (at.second)
                    for (CalibrationRow const& e : evidence.rows)
                        if (e.site.shape == c.site.shape && e.group != group) at.first->second.push_back(*e.speed.row);
                rows = at.first->second;
            }
            Model const* model = how.model(row.model);
            Gpu const* gpu = nullptr;
            for (Gpu const& g : how.gpus)
                if (g.id == row.gpu) gpu = &g;
            if (model == nullptr || gpu == nullptr) continue;
            Layout layout = s.layout;
            layout.replicas = s.replicas;
            GpuSet const set{
                *gpu, layout.gpus(),
                std::max(1, layout.gpus() / std::max(1, gpu->scaleup_domain > 1 ? gpu->scaleup_domain : layout.gpus()))};
            EngineSettings settings;
            settings.engine = detail::engine_kind_of(row.engine);
            settings.weights_dtype = s.id.precision;
            settings.version = row.engine_version;
            if (s.capture > 0) settings.max_cudagraph_capture_size = Tokens{static_cast<std::int64_t>(s.capture)};
            if (!s.id.speculation.empty())
                settings.speculative_method = s.id.speculation,
                settings.speculative_tokens = static_cast<std::int32_t>(drafts_of(s));
            Model const loaded = model_as(*model, s.id.precision);
            StartPlan room = how.with_room ? detail::room_of_row(c, loaded, set, settings, layout) : StartPlan{};
            if (s.sequences_a_rank > 0) room.max_num_seqs = Requests{static_cast<std::int64_t>(s.sequences_a_rank)};
            std::string const name{row.model};
            Workload w;
            w.isl = Tokens{static_cast<std::int64_t>(std::llround(s.isl))};
            w.osl = Tokens{static_cast<std::int64_t>(std::llround(s.osl))};
            SpeedRequest const request{.model = *model,
                                       .gpus = set,
                                       .layout = layout,
                                       .settings = settings,
                                       .fit = room,
                                       .workload = w,
                                       .rows = rows,
                                       .coefficients = coefficients,
                                       .known_gpus = how.gpus,
                                       .engine_name = row.engine,
                                       .row_models = {&name, 1},
                                       .date = row.date.empty() ? std::string_view{"unknown"} : row.date};
            PreparedDeployment const d{request};
            SpeedPoint const p =
                speed_at(d, request, Requests{static_cast<std::int64_t>(std::llround(row.concurrency.value_or(1)))});
            result.basis = p.basis;
            auto const compare = [&](SpeedQuantity q, double actual, double value, double low, double high) {
                result.compared[static_cast<std::size_t>(q)] = Compared{actual, value, low, high};
            };
            if (row.tpot)
                compare(SpeedQuantity::tpot_ms, in_ms(*row.tpot), in_ms(p.tpot.value), in_ms(p.tpot.low), in_ms(p.tpot.high));
            if (row.ttft)
                compare(SpeedQuantity::ttft_ms, in_ms(*row.ttft), in_ms(p.ttft.value), in_ms(p.ttft.low), in_ms(p.ttft.high));
            if (row.output)
                compare(SpeedQuantity::output_tok_s, row.output->value(), p.output.value.value(), p.output.low.value(),
                        p.output.high.value());
            out.results.push_back(std::move(result));
        }
    }
    out.all = score_speed(std::span<SpeedResult const>{out.results}, [](SpeedResult const&) { return true; });
    return out;
}

/// The rows that the published accuracy is of: no speculation, precision known, closed loop without a queue.
inline bool is_plain_row(CalibrationRow const& c) noexcept {
    return c.speed.id.speculation.empty() && !c.speed.queued && may_calibrate(*c.speed.row) && c.speed.osl >= 16;
}

/// The value of a key by which scores are split: model, gpu, engine, precision, class, concurrency, group, lengths.
inline std::string speed_key(SpeedResult const& r, std::string_view key) {
    SpeedRow const& s = r.row->speed;
    if (key == "gpu") return s.row->gpu;
    if (key == "engine") return s.row->engine;
    if (key == "precision") return s.id.precision;
    if (key == "class") return s.id.layer_class;
    if (key == "concurrency") {
        double const c = s.row->concurrency.value_or(0);
        return c <= 4 ? "1-4" : c <= 16 ? "5-16" : c <= 64 ? "17-64" : c <= 128 ? "65-128" : "over 128";
    }
    if (key == "group") return s.row->model + " | " + s.row->gpu + " | " + s.row->engine;
    if (key == "lengths") return std::to_string(std::llround(s.isl)) + "/" + std::to_string(std::llround(s.osl));
    return s.row->model;
}

/// Scores by a key, sorted by it.
inline std::vector<std::pair<std::string, SpeedGroupScore>> scores_by(SpeedScores const& scores, std::string_view key) {
    std::vector<std::string> keys;
    for (SpeedResult const& r : scores.results) keys.push_back(speed_key(r, key));
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<std::pair<std::string, SpeedGroupScore>> out;
    for (std::string const& k : keys)
        out.emplace_back(k, score_speed(std::span<SpeedResult const>{scores.results},
                                        [&](SpeedResult const& r) { return speed_key(r, key) == k; }));
    return out;
}

/// The groups with the largest median TPOT error, worst first; groups of fewer than `least` rows are left out.
inline std::vector<std::pair<std::string, SpeedGroupScore>> worst_groups(SpeedScores const& scores, std::size_t most = 10,
                                                                         std::int64_t least = 1) {
    auto all = scores_by(scores, "group");
    std::erase_if(all, [&](auto const& g) { return g.second.quantity[0].n < least; });
    std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) {
        return a.second.quantity[0].median_abs_pct_error > b.second.quantity[0].median_abs_pct_error;
    });
    if (all.size() > most) all.resize(most);
    return all;
}

} // namespace servecap
