// servecap: a deployment made ready, and its speed at a number of users, with interval and evidence
// SPDX-License-Identifier: Apache-2.0
//
// From the best evidence down:
//   measured      a row of the same deployment, lengths and concurrency: used as it is
//   interpolated  rows of the same deployment around the load: physics times the residual they show
//   calibrated    physics with fitted coefficients, times the residual of sibling rows
//   roofline      physics with stated efficiencies alone
// Users of one replica and the engine's room (KV cache, state slots, max-num-seqs) give the resident
// requests; the rest queue. A closed loop in balance fixes the running batch B:
//   B = U * decode / (decode + ttft),  decode = osl * tpot,  output = 0.978 * U / (tpot + ttft / osl)
// Interval: 80 %, log-normal; variance = residual not explained by rows + coefficients + noise of one run.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/perf/coefficients.hpp>
#include <servecap/perf/deployment.hpp>
#include <servecap/perf/residual.hpp>
#include <servecap/perf/step.hpp>
#include <servecap/perf/types.hpp>

namespace servecap {

/// A deployment and a load of which the speed is asked. Holds references: keep them alive.
struct SpeedRequest {
    Model const& model;
    GpuSet const& gpus;
    Layout layout;
    EngineSettings settings;
    StartPlan const& fit;
    Workload workload;
    std::span<BenchmarkRow const> rows;
    std::span<Coefficient const> coefficients;
    std::span<Gpu const> known_gpus{};         ///< specifications of the GPUs of rows; rows on others are left out
    std::string_view engine_name{};            ///< of rows; empty = the settings' engine
    std::span<std::string const> row_models{}; ///< names under which rows know the model; empty = its id
    std::string_view date{};                   ///< ISO date of the software; empty = that of the newest rows
};

/// 80 % of a normal distribution lie within this many standard deviations.
inline constexpr double kZ80 = 1.2815515655446004;
/// Standard deviation of the log of one repeated run (0.4 % at the median within three days, 3.4 % at the 90th percentile).
inline constexpr double kRunNoise = 0.02;
/// The date, in years from 2026-03-01, that predictions are for: the middle of the newest rows.
inline constexpr double kPredictionYears = 0.25;

/// Speed of one replica at one load, with standard deviations of the logs.
struct ReplicaSpeed {
    double users = 0, resident = 0, batch = 0;
    double tpot = 0, ttft = 0, output = 0;
    double tpot_sd = 0, ttft_sd = 0, output_sd = 0;
    StepTimes step;
    bool queued = false; ///< more users than the engine runs at once
};

namespace detail {

inline std::uint64_t hash_text(std::string_view s, std::uint64_t h = 1469598103934665603ull) noexcept {
    for (char c : s) {
        h ^= static_cast<unsigned char>(c);
        h *= 1099511628211ull;
    }
    return h;
}

inline std::uint64_t hash_number(std::uint64_t v, std::uint64_t h) noexcept {
    for (int i = 0; i < 8; ++i) {
        h ^= (v >> (8 * i)) & 0xff;
        h *= 1099511628211ull;
    }
    return h;
}

/// The levels of a deployment as keys.
inline ResidualSite site_of(SpeedIdentity const& id, Layout const& l, std::string_view version, std::string_view month) {
    ResidualSite s;
    s.shape = hash_number(id.shape, 7);
    s.shape_engine = hash_text(id.engine, s.shape);
    s.shape_family = hash_text(id.family, s.shape + 1);
    s.name = hash_text(id.model, s.shape + 2);
    s.group = hash_text(id.gpu, hash_text(id.engine, s.shape + 3)); // siblings of one shape run alike
    std::uint64_t d = hash_text(id.precision, s.group + 4);
    for (std::int32_t v : {l.tp, l.pp, l.dp, l.ep ? 1 : 0}) d = hash_number(static_cast<std::uint64_t>(v), d);
    s.deployment = hash_text(id.speculation, d);
    if (!id.speculation.empty()) s.speculation = hash_text(id.speculation, s.shape_engine + 6);
    s.version = hash_text(month, hash_text(version, s.deployment + 5));
    return s;
}

inline std::string_view month_of(std::string_view date) noexcept { return date.substr(0, std::min<std::size_t>(7, date.size())); }

} // namespace detail

/// Where a row stands among others.
inline ResidualSite residual_site(SpeedRow const& s) {
    ResidualSite site = detail::site_of(s.id, s.layout, s.row->engine_version, detail::month_of(s.row->date));
    site.log_users = std::log(std::max(1.0, s.concurrency));
    site.log_isl = std::log(std::max(1.0, s.isl));
    site.log_osl = std::log(s.osl);
    return site;
}

/// Draft tokens a step of a row: rows do not say, so the usual number of the method.
inline double drafts_of(SpeedRow const& s) noexcept { return s.id.speculation.empty() ? 0.0 : usual_drafts(s.id.speculation); }

/// The name under which rows know an engine.
inline std::string row_engine_name(SpeedRequest const& r) {
    return std::string{r.engine_name.empty() ? to_string(r.settings.engine) : r.engine_name};
}

/// The precision label of the weights as loaded.
inline std::string weights_label(Model const& m, EngineSettings const& s) {
    if (s.weights_dtype && *s.weights_dtype != "auto") return fold_name(*s.weights_dtype);
    return m.quant.label;
}

/// Labels of rows name a mixed checkpoint by its experts ("mxfp4", "fp4"), cards by all of it ("fp8+mxfp4").
inline bool same_precision(std::string_view row, std::string_view asked) noexcept {
    if (row == asked) return true;
    auto const experts = [](std::string_view s) {
        auto const plus = s.rfind('+');
        std::string_view const last = plus == std::string_view::npos ? s : s.substr(plus + 1);
        return last == "fp4" ? std::string_view{"mxfp4"} : last; // "fp4" stands for the DeepSeek V4 line's own format
    };
    bool const mixed =
        row.find('+') != std::string_view::npos || asked.find('+') != std::string_view::npos || row == "fp4" || asked == "fp4";
    return mixed && experts(row) == experts(asked);
}

/// How the KV cache of a deployment is taken: as named, else what measured rows of such checkpoints run with.
inline PrepareOptions kv_options(EngineSettings const& s, Model const& loaded) {
    PrepareOptions o;
    bool const quantised = loaded.quant.label != "bf16" && loaded.quant.label != "fp16";
    o.kv = quantised ? KvFormat::fp8 : KvFormat::bf16;
    if (s.kv_cache_dtype) {
        std::string const k = fold_name(*s.kv_cache_dtype);
        if (k == "bf16" || k == "bfloat16")
            o.kv = KvFormat::bf16;
        else if (k == "fp16" || k == "float16")
            o.kv = KvFormat::fp16;
        else if (k.find("nvfp4") != std::string::npos)
            o.kv = KvFormat::nvfp4;
        else if (k.find("fp8") != std::string::npos)
            o.kv = KvFormat::fp8;
    }
    return o;
}

/// What rows teach about a model with one engine, weights dtype and speculation, whatever the GPU and the layout: a sweep
/// makes it once and shares it between its deployments (teach_all() first where threads share it).
class SpeedEvidence {
public:
    /// The residuals of one row.
    struct Taught {
        bool known = false, tpot = false, ttft = false;
        ResidualRow of_tpot, of_ttft;
    };

    explicit SpeedEvidence(SpeedRequest const& r)
        : model_{&r.model}, known_gpus_{r.known_gpus}, own_gpu_{r.gpus.gpu}, table_{r.coefficients},
          loaded_{model_as(r.model, weights_label(r.model, r.settings))}, tensors_{weight_tensors(loaded_)} {
        id_.shape = shape_signature(r.model);
        id_.model =
            short_model_name(r.row_models.empty() ? std::string_view{r.model.id} : std::string_view{r.row_models.front()});
        id_.layer_class = layer_class(r.model);
        id_.engine = row_engine_name(r);
        id_.precision = loaded_.quant.label;
        if (r.settings.speculative_tokens > 0)
            id_.speculation = r.settings.speculative_method.empty() ? "mtp" : fold_name(r.settings.speculative_method);
        collect_rows(r);
        if (matching_label_) id_.precision = *matching_label_;
        taught_.resize(rows_.size());
        sites_.reserve(rows_.size());
        for (SpeedRow const& s : rows_) sites_.push_back(residual_site(s));
    }

    /// The identity of a deployment on no GPU in particular.
    [[nodiscard]] SpeedIdentity const& identity() const noexcept { return id_; }
    [[nodiscard]] Model const& loaded() const noexcept { return loaded_; }
    [[nodiscard]] std::vector<WeightTensor> const& tensors() const noexcept { return tensors_; }
    [[nodiscard]] CoefficientTable const& table() const noexcept { return table_; }
    [[nodiscard]] std::vector<SpeedRow> const& rows() const noexcept { return rows_; }
    [[nodiscard]] ResidualSite const& site(std::size_t i) const noexcept { return sites_[i]; }

    /// Works every row out; after that the object is only read.
    void teach_all() {
        for (std::size_t i = 0; i < rows_.size(); ++i) teach(i);
    }
    [[nodiscard]] Taught const& taught(std::size_t i) const noexcept { return taught_[i]; }

    /// The residuals of row `i`, worked out on the first call.
    Taught const& teach(std::size_t i) {
        Taught& t = taught_[i];
        if (t.known) return t;
        t.known = true;
        SpeedRow const& s = rows_[i];
        PreparedSpeed const* p = nullptr;
        Made const* alike = nullptr;
        for (Made const& m : made_) {
            if (m.gpu != s.id.gpu || m.precision != s.id.precision || m.layout != s.layout) continue;
            alike = &m;
            if (m.engine == s.id.engine && m.method == s.id.speculation && m.synchronous == s.synchronous &&
                m.median == s.median_ttft) {
                p = &m.speed;
                break;
            }
        }
        if (p == nullptr) {
            PreparedSpeed fresh;
            if (alike != nullptr) {
                fresh = alike->speed;
            } else {
                Gpu const* g = gpu_of(s.id.gpu);
                if (g == nullptr) return t;
                GpuSet set{*g, s.layout.gpus_per_replica(), 1};
                if (same_precision(s.id.precision, id_.precision)) {
                    fresh = prepare_speed(loaded_, tensors_, s.layout, set, kv_options({}, loaded_));
                } else {
                    Model const other = model_as(*model_, s.id.precision);
                    fresh = prepare_speed(other, s.layout, set, kv_options({}, other));
                }
            }
            CoefContext const context{s.id, s.layout.dp > 1, s.layout.ep, s.synchronous, s.median_ttft};
            set_coefs(fresh, resolve_coefs(table_, context));
            made_.push_back({s.id.gpu, s.id.precision, s.id.engine, s.id.speculation, s.layout, s.synchronous, s.median_ttft,
                             std::move(fresh)});
            p = &made_.back().speed;
        }
        PreparedSpeed const& q = *p;
        StepLoad l;
        l.batch = s.batch;
        l.isl = s.isl;
        l.osl = s.osl;
        l.context = s.isl + s.osl / 2;
        l.years = s.years;
        l.capture = s.capture;
        if (!s.id.speculation.empty()) add_speculation(l, s.id.speculation, drafts_of(s), q.factor);
        double const token = token_time(q, l, step_times(q, l), q.factor);
        double const extra = s.queued ? 0.15 : 0.0;
        if (s.tpot > 0) {
            t.tpot = true;
            t.of_tpot = {sites_[i], std::log(s.tpot / token), std::max(extra, s.tpot_derived ? 0.07 : 0.0)};
        }
        if (s.ttft > 0 && !s.ttft_derived && !s.queued) {
            double const first = first_token_time(q, l, s.concurrency, (s.tpot > 0 ? s.tpot : token) * l.tokens_a_step, q.factor);
            t.ttft = true;
            t.of_ttft = {sites_[i], std::log(s.ttft / first), 0.0};
        }
        return t;
    }

private:
    struct Made { // rows of one deployment share physics and coefficients
        std::string gpu, precision, engine, method;
        Layout layout;
        bool synchronous = false, median = false;
        PreparedSpeed speed;
    };

    /// Rows of this model, and of models of the same shape, that may teach.
    void collect_rows(SpeedRequest const& r) {
        for (BenchmarkRow const& b : r.rows) {
            if (!b.origin.user && !may_calibrate(b)) continue;
            std::string const name = short_model_name(b.model);
            bool own = name == id_.model;
            for (std::string const& known : r.row_models) own = own || name == short_model_name(known);
            if (!own) {
                auto const* shape = table_.find("shape." + name);
                if (shape == nullptr || static_cast<std::uint32_t>(shape->value) != id_.shape) continue;
            }
            auto s = speed_row(b);
            if (!s) continue;
            if (own) s->id.model = id_.model;
            s->id.shape = id_.shape;
            s->id.layer_class = id_.layer_class;
            Gpu const* g = gpu_of(b.gpu);
            if (g == nullptr) continue;
            s->id.family = architecture_family(*g);
            if (s->id.precision.empty()) s->id.precision = id_.precision;
            if (own && !matching_label_ && same_precision(s->id.precision, id_.precision)) matching_label_ = s->id.precision;
            rows_.push_back(*std::move(s));
        }
    }
    [[nodiscard]] Gpu const* gpu_of(std::string_view id) const noexcept {
        if (own_gpu_.id == id) return &own_gpu_;
        for (Gpu const& g : known_gpus_)
            if (g.id == id) return &g;
        return nullptr;
    }

    Model const* model_;
    std::span<Gpu const> known_gpus_;
    Gpu own_gpu_;
    CoefficientTable table_;
    Model loaded_;
    std::vector<WeightTensor> tensors_;
    SpeedIdentity id_;
    std::optional<std::string> matching_label_;
    std::vector<SpeedRow> rows_;
    std::vector<ResidualSite> sites_;
    std::vector<Taught> taught_;
    std::deque<Made> made_; // its elements stay where they are
};

/// A deployment made ready: one prediction costs about a microsecond and allocates nothing.
class PreparedDeployment {
public:
    explicit PreparedDeployment(SpeedRequest const& r) : PreparedDeployment{r, std::make_shared<SpeedEvidence>(r)} {}

    /// With evidence of the same model, engine, weights dtype and speculation. Rows are worked out as they are needed.
    PreparedDeployment(SpeedRequest const& r, std::shared_ptr<SpeedEvidence> const& evidence)
        : PreparedDeployment{r, evidence, [&](std::size_t i) -> SpeedEvidence::Taught const& { return evidence->teach(i); }} {}

    /// With evidence that has worked every row out: it is only read, so that threads may share it.
    PreparedDeployment(SpeedRequest const& r, std::shared_ptr<SpeedEvidence const> evidence)
        : PreparedDeployment{r, evidence, [&e = *evidence](std::size_t i) -> SpeedEvidence::Taught const& { return e.taught(i); }} {}

private:
    template <class Teach>
    PreparedDeployment(SpeedRequest const& r, std::shared_ptr<SpeedEvidence const> evidence, Teach&& teach)
        : isl_{static_cast<double>(r.workload.isl.value())}, osl_{std::max(1.0, static_cast<double>(r.workload.osl.value()))},
          cache_hit_{std::clamp(r.workload.cache_hit, 0.0, 1.0)}, evidence_{std::move(evidence)} {
        CoefficientTable const& table = evidence_->table();
        layout_ = r.layout;
        replicas_ = std::max<std::int32_t>(1, layout_.replicas);
        layout_.replicas = 1;
        Model const& loaded = evidence_->loaded();
        id_ = evidence_->identity();
        id_.gpu = r.gpus.gpu.id;
        id_.family = architecture_family(r.gpus.gpu);
        drafts_ = r.settings.speculative_tokens;
        if (r.settings.max_cudagraph_capture_size) capture_ = static_cast<double>(r.settings.max_cudagraph_capture_size->value());
        physics_ = prepare_speed(loaded, evidence_->tensors(), layout_, r.gpus, kv_options(r.settings, loaded));
        CoefContext const context{id_, layout_.dp > 1, layout_.ep, false, false};
        set_coefs(physics_, resolve_coefs(table, context));
        years_ = r.date.empty() ? kPredictionYears : years_since_reference(r.date).value_or(0.0);
        room(r);
        site_ = detail::site_of(id_, layout_, r.settings.version, detail::month_of(r.date));
        site_.log_users = std::log(16.0);
        site_.log_isl = std::log(std::max(1.0, isl_));
        site_.log_osl = std::log(osl_);
        survey();
        learn(teach);
        coefficient_widths();
        auto const scale = [&](std::string const& name) {
            // Only wider: few groups of a kind that happen to fit well are no reason for more trust.
            double const family = std::max(0.0, table.value_or(name + ".family:" + id_.family, 0.0));
            double const layers = std::max(0.0, table.value_or(name + ".class:" + id_.layer_class, 0.0));
            return std::exp(2 * std::min(family + layers, 1.1));
        };
        tpot_prior_ = prior_variance(kTpotResidual, drafts_ > 0);
        ttft_prior_ = prior_variance(kTtftResidual, drafts_ > 0);
        tpot_scale_ = scale("width.tpot");
        ttft_scale_ = scale("width.ttft");
        if (drafts_ > 0) ttft_scale_ *= 2; // TTFT is learned without speculation; drafts' prefill and graphs are not modelled
        for (std::size_t i = 0; i < kGrid; ++i) {
            double const log_users = kGridStep * static_cast<double>(i);
            tpot_grid_[i] = tpot_.at(log_users, site_.log_isl, site_.log_osl);
            ttft_grid_[i] = ttft_.at(log_users, site_.log_isl, site_.log_osl);
        }
    }

public:

    [[nodiscard]] PreparedSpeed const& physics() const noexcept { return physics_; }
    [[nodiscard]] SpeedIdentity const& identity() const noexcept { return id_; }
    [[nodiscard]] std::int32_t replicas() const noexcept { return replicas_; }
    [[nodiscard]] double slots() const noexcept { return slots_; } ///< requests that one replica runs at once
    [[nodiscard]] BoundBy slots_bound() const noexcept { return slots_bound_; }
    [[nodiscard]] std::vector<SpeedRow> const& rows() const noexcept { return evidence_->rows(); }
    [[nodiscard]] std::vector<SpeedRow const*> const& own_rows() const noexcept { return own_; } ///< of the same deployment
    [[nodiscard]] LocalResidual const& tpot_residual() const noexcept { return tpot_; }
    [[nodiscard]] LocalResidual const& ttft_residual() const noexcept { return ttft_; }
    [[nodiscard]] bool fitted() const noexcept { return physics_.coefs.fitted; }
    [[nodiscard]] double isl() const noexcept { return isl_; } ///< tokens of a request's prompt
    [[nodiscard]] double osl() const noexcept { return osl_; } ///< tokens of its answer, at least 1

    /// The load that `batch` running requests are.
    [[nodiscard]] StepLoad load(double batch) const noexcept {
        StepLoad l;
        l.batch = batch;
        l.isl = std::max(1.0, isl_ * (1 - cache_hit_));
        l.osl = osl_;
        l.context = isl_ + osl_ / 2;
        l.years = years_;
        l.capture = capture_;
        add_speculation(l, id_.speculation, drafts_, physics_.factor);
        return l;
    }

    /// Speed of one replica with `users` users of its own.
    [[nodiscard]] ReplicaSpeed at(double users) const noexcept { return at(users, slots_); }

    /// The same where the replica runs `slots` requests at once (a sweep over max-num-seqs or lengths of the context).
    [[nodiscard]] ReplicaSpeed at(double users, double slots) const noexcept {
        ReplicaSpeed s;
        s.users = std::max(1.0, users);
        s.resident = std::min(s.users, slots);
        s.queued = s.users > slots;
        double const log_users = std::log(s.resident);
        ResidualGuess const gt = guess(tpot_grid_, log_users), gf = guess(ttft_grid_, log_users);
        double const up_t = std::exp(gt.mean), up_f = std::exp(gf.mean);
        s.batch = s.resident;
        double first = 0;
        bool const prompts_alone = osl_ < 2; // prefill is always busy: its rate is what counts, waits follow from it
        for (int i = 0; i < 3; ++i) {
            StepLoad const l = load(s.batch);
            s.step = step_times(physics_, l);
            s.tpot = token_time(physics_, l, s.step, physics_.factor) * up_t;
            first =
                first_token_time(physics_, l, prompts_alone ? 1.0 : s.resident, s.tpot * l.tokens_a_step, physics_.factor) * up_f;
            double const decode = osl_ < 2 ? 0.0 : s.tpot * osl_;
            double const b = std::max(1.0, s.resident * decode / (decode + first));
            bool const settled = std::fabs(b - s.batch) < 0.01 * s.batch;
            s.batch = b;
            if (settled) break;
        }
        double const decode = osl_ < 2 ? 0.0 : s.tpot * osl_;
        // Requests a second that leave; never more than prefill can admit.
        StepLoad const l = load(s.batch);
        double const prompt = l.isl * prefill_times(physics_, l.isl, physics_.factor).a_token();
        double const rate = std::min(s.resident / (decode + first), 1 / std::max(1e-9, prompt));
        s.ttft = std::max(first, s.users / rate - decode);
        s.output = closed_loop_share(s.users) * rate * osl_;
        double const vt = tpot_scale_ * (gt.variance + width(tpot_width_, log_users) * shrink(gt.variance, tpot_prior_)) +
                          kRunNoise * kRunNoise;
        double const vf = ttft_scale_ * (gf.variance + width(ttft_width_, log_users) * shrink(gf.variance, ttft_prior_)) +
                          4 * kRunNoise * kRunNoise;
        double const share = first / (decode + first);
        s.tpot_sd = std::sqrt(vt);
        double const own = std::sqrt(vf);
        // A slow prefill slows both, so their errors go together (correlation 0.5); the identity itself holds to 3 %.
        double const both = share * (1 - share) * std::sqrt(vt * vf);
        s.output_sd = std::sqrt((1 - share) * (1 - share) * vt + share * share * vf + both + 0.03 * 0.03);
        // A queue's wait follows the rate of the whole, so its error is that of the rate.
        s.ttft_sd = s.queued ? std::max(own * first / s.ttft, s.output_sd * (s.users / rate) / s.ttft) : own;
        return s;
    }

    /// The nearest row of the same deployment at this load, if one was measured there.
    [[nodiscard]] SpeedRow const* measured(double users) const noexcept {
        SpeedRow const* best = nullptr;
        if (cache_hit_ > 0) return nullptr;
        for (SpeedRow const* s : own_) {
            if (std::fabs(s->concurrency - users) > 0.02 * users || !same_lengths(*s)) continue;
            if (best == nullptr || prefer(*s, *best)) best = s;
        }
        return best;
    }

    /// Rows of the same deployment enclose the load (or touch it within a third) at lengths within a factor of 1.5.
    [[nodiscard]] bool enclosed(double users) const noexcept { return near_least_ <= users * 1.34 && near_most_ >= users / 1.34; }

    /// The load lies beyond ten times what rows of this model (or any row, without them) cover.
    [[nodiscard]] bool extrapolated(double users) const noexcept {
        return users > 10 * most_users_ || isl_ > 10 * most_isl_ || osl_ > 10 * most_osl_;
    }

    [[nodiscard]] bool same_deployment(SpeedRow const& s) const noexcept {
        return s.id.model == id_.model && s.id.gpu == id_.gpu && s.id.engine == id_.engine && s.layout == layout_ &&
               s.id.speculation == id_.speculation && same_precision(s.id.precision, id_.precision);
    }

private:
    [[nodiscard]] bool same_lengths(SpeedRow const& s) const noexcept {
        auto const close = [](double a, double b) { return std::fabs(a - b) <= 0.03 * std::max(a, b); };
        double const isl = s.row->isl.value_or(s.isl), osl = s.row->osl.value_or(s.osl);
        return (close(isl, isl_) && close(osl, osl_)) || (close(s.isl, isl_) && close(s.osl, osl_));
    }
    [[nodiscard]] bool near_lengths(SpeedRow const& s) const noexcept {
        auto const close = [](double a, double b) { return a <= 1.5 * b && b <= 1.5 * a; };
        return close(s.isl, isl_) && close(s.osl, osl_);
    }
    static bool prefer(SpeedRow const& a, SpeedRow const& b) noexcept {
        if (a.row->origin.user != b.row->origin.user) return a.row->origin.user;
        if (a.median_ttft != b.median_ttft) return !a.median_ttft;
        if ((a.output > 0) != (b.output > 0)) return a.output > 0;
        return a.row->date > b.row->date;
    }
    /// What does not depend on the load: rows of the same deployment, and how far rows reach.
    void survey() {
        for (SpeedRow const& s : rows()) {
            most_users_ = std::max(most_users_, s.concurrency);
            most_isl_ = std::max(most_isl_, s.isl);
            most_osl_ = std::max(most_osl_, s.osl);
            if (!same_deployment(s)) continue;
            own_.push_back(&s);
            if (!near_lengths(s)) continue;
            near_least_ = std::min(near_least_, s.concurrency);
            near_most_ = std::max(near_most_, s.concurrency);
        }
        if (rows().empty()) {
            most_users_ = 512;
            most_isl_ = most_osl_ = 8192;
        }
    }

    /// Requests that one replica runs at once.
    void room(SpeedRequest const& r) {
        slots_ = 1e9;
        StartPlan const& f = r.fit;
        double const dp = layout_.dp;
        auto const bound = [&](double n, BoundBy by) {
            if (n < slots_) {
                slots_ = n;
                slots_bound_ = by;
            }
        };
        if (f.max_num_seqs.value() > 0) bound(static_cast<double>(f.max_num_seqs.value()) * dp, BoundBy::max_num_seqs);
        if (f.state_slots && *f.state_slots > 0) bound(static_cast<double>(*f.state_slots) * dp, BoundBy::state_slots);
        Tokens const request{static_cast<std::int64_t>(isl_ + osl_ / 2)}; // what a running request holds on average
        if (!f.pages_of_request.empty() || f.pool.value() > 0)
            bound(std::max(1.0, static_cast<double>(requests_with_room(f, request))) * dp, BoundBy::kv_room);
        else if (f.kv_tokens.value() > 0)
            bound(std::max(1.0, std::floor(f.kv_tokens / request)) * dp, BoundBy::kv_room);
    }

    /// Residuals of the rows most alike.
    template <class Teach>
    void learn(Teach&& teach) {
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t i = 0; i < rows().size(); ++i) {
            SpeedRow const& s = rows()[i];
            if (!s.id.speculation.empty() && s.id.speculation != id_.speculation) continue;
            order.emplace_back(-covariance(kTpotResidual, evidence_->site(i), site_), i);
        }
        std::stable_sort(order.begin(), order.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
        if (order.size() > 2 * kResidualRows) order.resize(2 * kResidualRows);
        std::vector<ResidualRow> tpot, ttft;
        for (auto const& [c, i] : order) {
            SpeedEvidence::Taught const& t = teach(i);
            if (t.tpot) tpot.push_back(t.of_tpot);
            if (t.ttft) ttft.push_back(t.of_ttft);
        }
        tpot_ = LocalResidual{kTpotResidual, tpot, site_};
        ttft_ = LocalResidual{kTtftResidual, ttft, site_};
    }
    /// Variance that the coefficients leave, at users of 1, 4, 16... 4096, by numeric derivatives.
    void coefficient_widths() noexcept {
        for (std::size_t i = 0; i < kWidths; ++i) {
            double const users = std::pow(4.0, static_cast<double>(i));
            StepLoad const l = load(users);
            auto const log_token = [&](std::array<double, kCoefs> const& f) {
                StepLoad m = l;
                add_speculation(m, id_.speculation, drafts_, f);
                return std::log(token_time(physics_, m, step_times(physics_, m, f), f));
            };
            double const t0 = log_token(physics_.factor);
            double const f0 = std::log(first_token_time(physics_, l, users, std::exp(t0), physics_.factor));
            double vt = 0, vf = 0;
            for (std::size_t c = 0; c < kCoefs; ++c) {
                std::array<double, kCoefs> f = physics_.factor;
                bool const date = c == static_cast<std::size_t>(Coef::date);
                double const h = 1e-3;
                f[c] = date ? f[c] + h : f[c] * (1 + h);
                double const dt = (log_token(f) - t0) / h;
                double const df = (std::log(first_token_time(physics_, l, users, std::exp(t0 + dt * h), f)) - f0) / h;
                vt += dt * dt * physics_.coefs.variance[c];
                vf += df * df * physics_.coefs.variance[c];
            }
            tpot_width_[i] = vt;
            ttft_width_[i] = vf;
        }
    }
    static constexpr std::size_t kWidths = 7;
    static double width(std::array<double, kWidths> const& w, double log_users) noexcept {
        double const x = std::clamp(log_users / std::log(4.0), 0.0, static_cast<double>(kWidths - 1) - 1e-9);
        auto const i = static_cast<std::size_t>(x);
        double const f = x - static_cast<double>(i);
        return w[i] * (1 - f) + w[i + 1] * f;
    }
    /// The residual between points of the grid: it is smooth over 1.5 in log users, the grid's step is 0.25.
    static constexpr std::size_t kGrid = 41;
    static constexpr double kGridStep = 0.25;
    static ResidualGuess guess(std::array<ResidualGuess, kGrid> const& g, double log_users) noexcept {
        double const x = std::clamp(log_users / kGridStep, 0.0, static_cast<double>(kGrid - 1) - 1e-9);
        auto const i = static_cast<std::size_t>(x);
        double const f = x - static_cast<double>(i);
        return {g[i].mean * (1 - f) + g[i + 1].mean * f, g[i].variance * (1 - f) + g[i + 1].variance * f};
    }
    /// Rows that pin the residual pin physics and residual together.
    static double shrink(double variance, double prior) noexcept { return variance / prior; }

    double isl_, osl_, cache_hit_;
    double years_ = kPredictionYears;
    double tpot_scale_ = 1, ttft_scale_ = 1; ///< of variances: families and classes that predictions fit worse or better
    double tpot_prior_ = 1, ttft_prior_ = 1; ///< variance of the residual without rows
    double drafts_ = 0;                      ///< draft tokens a step
    double capture_ = 0;                     ///< capture size of CUDA graphs, where it is given
    double slots_ = 1e9;
    BoundBy slots_bound_ = BoundBy::max_num_seqs;
    Layout layout_;
    std::int32_t replicas_ = 1;
    SpeedIdentity id_;
    std::shared_ptr<SpeedEvidence const> evidence_;
    PreparedSpeed physics_;
    ResidualSite site_;
    std::vector<SpeedRow const*> own_; ///< rows of the same deployment
    double near_least_ = 1e300, near_most_ = -1; ///< users of own rows at such lengths
    double most_users_ = 0, most_isl_ = 0, most_osl_ = 0; ///< of all rows
    LocalResidual tpot_, ttft_;
    std::array<double, kWidths> tpot_width_{}, ttft_width_{};
    std::array<ResidualGuess, kGrid> tpot_grid_{}, ttft_grid_{};
};

namespace detail {

template <class Q>
Interval<Q> log_interval(double value, double sd) noexcept {
    double const f = std::exp(kZ80 * sd);
    return {Q{value}, Q{value / f}, Q{value * f}};
}

/// What takes most of a step.
inline BoundBy bound_of(StepTimes const& s) noexcept {
    double memory = s[StepTerm::index_keys] + s[StepTerm::state], compute = s[StepTerm::prefill];
    (s.dense_by_flops ? compute : memory) += s[StepTerm::dense];
    (s.experts_by_flops ? compute : memory) += s[StepTerm::experts];
    (s.kv_by_flops ? compute : memory) += s[StepTerm::kv_cache];
    double const links = s[StepTerm::allreduce_floor] + s[StepTerm::allreduce_bytes];
    double const overhead = s[StepTerm::launches] + s[StepTerm::prefill_launches] + s[StepTerm::host];
    double const most = std::max({memory, compute, links, overhead});
    return most == memory    ? BoundBy::memory
           : most == compute ? BoundBy::compute
           : most == links   ? BoundBy::communication
                             : BoundBy::overhead;
}

inline void add_evidence(std::vector<Evidence>& all, SpeedRow const& s) {
    for (Evidence& e : all)
        if (e.source == s.row->source && e.url == s.row->url) {
            ++e.rows;
            if (s.row->date > e.date) e.date = s.row->date;
            return;
        }
    all.push_back({s.row->source, s.row->url, s.row->date, 1});
}

} // namespace detail

namespace detail {

/// The terms of one token of a running request and of the first token, with what each is made of. They add up to the
/// prediction of the model (a measured point is beside them, not their sum).
inline void explain(PreparedDeployment const& d, ReplicaSpeed const& s, SpeedPoint& p) {
    PreparedSpeed const& q = d.physics();
    StepLoad const load = d.load(s.batch);
    auto const f = [&](Coef c) { return q.factor[static_cast<std::size_t>(c)]; };
    double const share = 1 / load.tokens_a_step;
    double distinct = 0;
    for (std::size_t i = 0; i < q.moe_count; ++i)
        distinct =
            std::max(distinct, distinct_experts(q.moe[i].experts, q.moe[i].top_k, std::max(1.0, s.batch / q.pp) * load.verify));
    auto const formula = [&](StepTerm t) -> std::string {
        switch (t) {
        case StepTerm::launches:
            return fmt::format("{:.0f} layers, {:.0f} us a layer in CUDA graphs", q.depth, 1e6 * s.step[t] / q.depth);
        case StepTerm::allreduce_floor:
            return fmt::format("2 a layer, {:.1f} us each over {:.0f} ranks", 1e6 * s.step[t] / (2 * q.depth), q.ranks);
        case StepTerm::allreduce_bytes:
            return fmt::format("{:.0f} sequences x hidden {:.0f} x 2 B over {:.0f} GB/s", s.batch, q.hidden, q.link / 1e9);
        case StepTerm::dense:
            return fmt::format("{:.2f} GB a rank at {:.0f} % of {:.1f} TB/s, and its flops", q.weight_bytes / 1e9,
                               100 / f(Coef::bandwidth), q.bandwidth / 1e12);
        case StepTerm::experts:
            return fmt::format("{:.0f} distinct experts a layer for {:.0f} tokens", distinct, s.batch * load.verify);
        case StepTerm::kv_cache: return fmt::format("{:.0f} sequences of {:.0f} tokens", s.batch, load.context);
        case StepTerm::index_keys: return fmt::format("index keys of {:.0f} tokens, read whole", load.context);
        case StepTerm::state: return fmt::format("{:.1f} MB a sequence, read and written", q.state_bytes / 2e6);
        case StepTerm::prefill:
            return fmt::format("{:.1f} prompt tokens a step at {:.2f} us", s.batch * load.tokens_a_step / load.osl * load.isl,
                               1e6 * prefill_times(q, load.isl, q.factor).a_token());
        case StepTerm::prefill_launches: return "steps that carry a prompt chunk";
        case StepTerm::host:
            return fmt::format("{:.2f} ms a step and {:.1f} us a sequence", 1e3 * f(Coef::host_step),
                               1e6 * f(Coef::host_sequence));
        }
        return {};
    };
    double sum = 0;
    for (std::size_t i = 0; i < kStepTerms; ++i) {
        auto const t = static_cast<StepTerm>(i);
        double const time = s.step[t] * share;
        sum += time;
        if (time > 0) p.decode_terms.push_back({to_string(t), Seconds{time}, formula(t)});
    }
    double const step_alone = token_time(q, load, s.step, q.factor);
    if (load.verify > 1)
        p.decode_terms.push_back({"draft tokens", Seconds{step_alone - sum},
                                  fmt::format("{:.0f} drafts, {:.2f} tokens a step", load.verify - 1, load.tokens_a_step)});
    p.decode_terms.push_back(
        {"measured siblings", Seconds{s.tpot - step_alone},
         fmt::format("rows of alike deployments run {:.2f} x the sum of the terms", s.tpot / std::max(1e-12, step_alone))});
    PrefillTimes const prefill = prefill_times(q, load.isl, q.factor);
    double const own = load.isl * prefill.a_token() * q.pp * f(Coef::ttft_flops);
    double const launches = f(Coef::ttft_launch) * prefill.launch * std::max(1.0, load.isl / kPromptChunk);
    double const steps = f(Coef::ttft_step) * s.tpot * load.tokens_a_step;
    p.prefill_terms.push_back({"request in, first token out", Seconds{f(Coef::ttft_base)}, "tokenising, scheduling, streaming"});
    p.prefill_terms.push_back(
        {"prompt", Seconds{own}, fmt::format("{:.0f} tokens at {:.2f} us", load.isl, 1e6 * own / load.isl)});
    p.prefill_terms.push_back({"prefill launches", Seconds{launches}, fmt::format("{:.0f} layers, not in graphs", q.depth)});
    p.prefill_terms.push_back({"running step", Seconds{steps}, "waited for before the prompt starts"});
    p.prefill_terms.push_back({"others and siblings", Seconds{s.ttft - f(Coef::ttft_base) - own - launches - steps},
                               "prompts ahead in line, requests without a place, and what alike deployments show"});
}

} // namespace detail

/// Speed of a whole deployment at one load, in plain numbers.
struct LoadSpeed {
    double tpot = 0, ttft = 0, output = 0; ///< seconds, seconds, output tok/s of all replicas
    double tpot_sd = 0, ttft_sd = 0, output_sd = 0; ///< of the logs
    Basis basis = Basis::roofline;
    bool extrapolated = false;
    SpeedRow const* measured = nullptr; ///< the row that was taken
    ReplicaSpeed replica;               ///< the model's own
};

/// Speed at `users` users over `replicas` copies that run `slots` requests each. No allocation.
inline LoadSpeed load_speed(PreparedDeployment const& d, double users, double replicas, double slots) noexcept {
    LoadSpeed p;
    double const all = std::max(1.0, users);
    double const active = std::min(replicas, all);
    double const each = all / active;
    p.replica = d.at(each, slots);
    ReplicaSpeed const& s = p.replica;
    p.tpot = s.tpot;
    p.ttft = s.ttft;
    p.output = s.output * active;
    p.tpot_sd = s.tpot_sd;
    p.ttft_sd = s.ttft_sd;
    p.output_sd = s.output_sd;
    SpeedRow const* const m = d.measured(each);
    if (m != nullptr && !s.queued) {
        p.basis = Basis::measured;
        p.measured = m;
        if (m->tpot > 0) {
            p.tpot = m->tpot;
            p.tpot_sd = kRunNoise;
        }
        if (m->ttft > 0) {
            p.ttft = m->ttft;
            p.ttft_sd = 2 * kRunNoise;
        }
        p.output = m->output > 0 ? m->output * active : closed_loop_share(each) * all / (p.tpot + p.ttft / std::max(1.0, d.osl()));
        p.output_sd = kRunNoise;
    } else if (d.enclosed(each)) {
        p.basis = Basis::interpolated;
    } else {
        p.basis = d.fitted() || d.tpot_residual().size() > 0 ? Basis::calibrated : Basis::roofline;
    }
    p.extrapolated = p.basis != Basis::measured && d.extrapolated(each);
    if (p.extrapolated) {
        p.tpot_sd *= 1.5;
        p.ttft_sd *= 1.5;
        p.output_sd *= 1.5;
    }
    return p;
}

/// Speed at `users` users of the whole deployment of `copies` replicas (the layout of `r` says the same).
inline SpeedPoint speed_at(PreparedDeployment const& d, SpeedRequest const& r, Requests users, std::int32_t copies) {
    SpeedPoint p;
    double const all = std::max(1.0, static_cast<double>(users.value()));
    double const replicas = copies;
    double const isl = static_cast<double>(r.workload.isl.value()), osl = static_cast<double>(r.workload.osl.value());
    LoadSpeed const s = load_speed(d, all, replicas, d.slots());
    p.concurrency = users;
    p.resident = Requests{static_cast<std::int64_t>(std::llround(std::min(all, d.slots() * replicas)))};
    p.isl = r.workload.isl;
    p.osl = r.workload.osl;
    p.bound_by = s.replica.queued ? d.slots_bound() : detail::bound_of(s.replica.step);
    detail::explain(d, s.replica, p);
    p.basis = s.basis;
    p.extrapolated = s.extrapolated;
    if (s.measured != nullptr) detail::add_evidence(p.evidence, *s.measured);
    if (p.evidence.empty())
        for (SpeedRow const& row : d.rows())
            if (p.basis == Basis::interpolated ? d.same_deployment(row) : true) detail::add_evidence(p.evidence, row);
    p.tpot = detail::log_interval<Seconds>(s.tpot, s.tpot_sd);
    p.ttft = detail::log_interval<Seconds>(s.ttft, s.ttft_sd);
    p.output = detail::log_interval<TokensPerSecond>(s.output, s.output_sd);
    double const ratio = isl / std::max(1.0, osl);
    p.input = detail::log_interval<TokensPerSecond>(s.output * ratio, s.output_sd);
    p.total = detail::log_interval<TokensPerSecond>(s.output * (1 + ratio), s.output_sd);
    p.per_user = detail::log_interval<TokensPerSecond>(1 / s.tpot, s.tpot_sd);
    p.per_gpu = detail::log_interval<TokensPerSecond>(s.output / std::max(1, r.layout.gpus()), s.output_sd);
    return p;
}

/// Speed at `users` users of the whole deployment.
inline SpeedPoint speed_at(PreparedDeployment const& d, SpeedRequest const& r, Requests users) { return speed_at(d, r, users, d.replicas()); }

/// The concurrencies asked for, or powers of two up to what is resident (256 at most).
inline std::vector<Requests> concurrencies_of(Workload const& w, double resident) {
    if (!w.concurrency.empty()) return w.concurrency;
    std::vector<Requests> list;
    std::int64_t const top = static_cast<std::int64_t>(std::clamp(std::floor(resident), 1.0, 256.0));
    for (std::int64_t c = 1; c <= top; c *= 2) list.push_back(Requests{c});
    return list;
}

} // namespace servecap
