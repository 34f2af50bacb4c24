// servecap: one replica prepared, and every point of a sweep over it
// SPDX-License-Identifier: Apache-2.0
//
// What a sweep asks millions of times is what it changes least: the model, the GPU, the layout of a replica,
// the dtypes. All of that is worked out once (SweepReplica); a point then costs an allocator's verdict
// (integers), a step of the speed model and a division for the price, and allocates nothing. Replicas are
// copies, so one prepared replica serves every number of GPUs that it fills:
//   output(users, n) = n * output(users / n);  $/M = $/h / (3600 * output) * 1e6
// At the settings in force the point says what the explained plan says, measured starts and rows included; at
// other batch sizes and lengths it is the engine model's own answer.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <servecap/engine/engine.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/perf/evaluate.hpp>
#include <servecap/plan/make.hpp>
#include <servecap/plan/mend.hpp>

namespace servecap {

/// What a sweep varies over one prepared replica; zero = as in force.
struct SweepPoint {
    Requests users{1};          ///< of the whole deployment
    std::int32_t replicas = 1;
    Requests max_num_seqs{};    ///< of one engine (a DP rank)
    Tokens max_model_len{};
    double utilization = 0;     ///< share of visible memory
    UsdPerHour per_hour{};      ///< of the whole deployment; not positive: not known
};

/// The engine's answer at a point.
struct SweepVerdict {
    Verdict verdict = Verdict::unsupported;
    Tokens kv_tokens{};         ///< as the engine logs it
    double slots = 0;           ///< requests that one replica runs at once
    BoundBy slots_bound = BoundBy::max_num_seqs;

    [[nodiscard]] constexpr bool starts() const noexcept { return verdict == Verdict::starts; }
};

/// Fit, speed and cost at a point.
struct SweepPlan {
    SweepVerdict fit;
    Seconds tpot{}, ttft{};
    TokensPerSecond per_user{}, output{}, per_gpu{}; ///< output: of the whole deployment
    RequestsPerSecond requests{};                    ///< answered a second, whole deployment
    UsdPerMillionTokens per_million_output{};        ///< 0: no price is known
    Basis basis = Basis::roofline;
    bool queued = false;       ///< more users than run at once
    bool extrapolated = false;
};

/// What all replicas of one model, engine and weights dtype share.
struct SweepShared {
    std::vector<WeightTensor> tensors;               ///< of the model as the engine loads it
    std::shared_ptr<SpeedEvidence const> evidence;

    /// Works rows and tensors out once. `base` and what it refers to must live as long as this.
    explicit SweepShared(PlanRequest const& base) : tensors{weight_tensors(base.model)} {
        StartPlan const none;
        auto made = std::make_shared<SpeedEvidence>(SpeedRequest{.model = base.model,
                                                                 .gpus = base.gpus,
                                                                 .layout = {},
                                                                 .settings = base.settings,
                                                                 .fit = none,
                                                                 .workload = base.workload,
                                                                 .rows = base.benchmarks,
                                                                 .coefficients = base.coefficients,
                                                                 .known_gpus = base.known_gpus,
                                                                 .row_models = base.model_names});
        made->teach_all();
        evidence = std::move(made);
    }
};

namespace detail {

/// Refusals that need no prepared engine; nothing where it has to be asked. A replica of which a start is on record is
/// always asked.
inline std::optional<Verdict> early_refusal(PlanRequest const& base, SweepShared const& shared, StartRequest const& r) {
    if (r.settings.engine != EngineKind::vllm) return std::nullopt;
    Gpu const& gpu = r.gpus.gpu;
    if (!engine_support(r.settings.engine, r.model, gpu).supported) return Verdict::unsupported;
    for (StartupRow const& row : base.startups)
        if (row.tp.value_or(1) == r.layout.tp && row.pp.value_or(1) == r.layout.pp && row.dp.value_or(1) == r.layout.dp &&
            fold_name(row.gpu) == fold_name(gpu.id))
            return std::nullopt;
    if (!layout_refusal(r.model, r.layout).empty()) return Verdict::layout_invalid;
    EngineSettings const& s = r.settings;
    if (s.kv_cache_memory || r.model.model_type == "glm5_next") return std::nullopt; // ask: other rules of memory or of layouts
    // In the engine's order: its share of the memory, then the weights.
    double const share = s.gpu_memory_utilization.value_or(vllm_rules(parse_vllm_version(s.version, r.date)).default_utilization);
    Bytes const free = vllm_free_memory(gpu, r.layout);
    if (std::ceil(static_cast<double>(gpu.visible.value()) * share) > static_cast<double>(free.value())) return std::nullopt;
    WeightOptions const options = vllm_weight_options(r.model, gpu, s);
    for (int stage = 0; stage < std::max(1, r.layout.pp); ++stage)
        if (rank_weights(r.model, shared.tensors, r.layout, options, stage).total > free) return Verdict::weights_do_not_fit;
    return std::nullopt;
}

} // namespace detail

/// One replica on one kind of GPU, prepared.
class SweepReplica {
public:
    /// Judges and prepares `layout` (its replicas are not read) on GPUs like those of `set`, with `settings`. `base` gives
    /// the model, the workload and rows.
    SweepReplica(PlanRequest const& base, SweepShared const& shared, GpuSet const& set, Layout layout, EngineSettings const& settings)
        : layout_{layout}, gpus_{static_cast<double>(layout.gpus_per_replica())} {
        layout_.replicas = 1;
        StartRequest start{.model = base.model, .gpus = set, .layout = layout_, .settings = settings, .isl = base.workload.isl, .osl = base.workload.osl};
        if (auto const refused = detail::early_refusal(base, shared, start)) {
            fit_.verdict = *refused;
            return;
        }
        std::optional<PreparedVllm> prepared;
        MendedStart mended = mend_start(start, base.startups, base.given, MendChoice::keep_given,
                                        {.tensors = shared.tensors, .layout_fixes = false, .prepared = &prepared});
        judged_ = std::move(mended.judged);
        settings_ = std::move(mended.settings);
        mends_ = std::move(mended.mends);
        fit_.verdict = judged_.plan.verdict;
        if (!judged_.plan.starts) return;
        fit_.kv_tokens = judged_.plan.kv_tokens;
        SpeedRequest const speed{.model = base.model,
                                 .gpus = set,
                                 .layout = layout_,
                                 .settings = settings_,
                                 .fit = judged_.plan,
                                 .workload = base.workload,
                                 .rows = base.benchmarks,
                                 .coefficients = base.coefficients,
                                 .known_gpus = base.known_gpus,
                                 .row_models = base.model_names};
        speed_.emplace(speed, shared.evidence);
        fit_.slots = speed_->slots();
        fit_.slots_bound = speed_->slots_bound();
        context_ = std::max(judged_.plan.longest, judged_.plan.max_model_len);
        vllm_ = std::move(prepared);
        draft_ = settings_.speculative_tokens;
        capture_given_ = settings_.max_cudagraph_capture_size.has_value();
        blackwell_capture_ = vllm_ ? vllm_capture_default(std::int64_t{1} << 40, 0, set.gpu, vllm_->rules) : 512;
        request_ = static_cast<std::int64_t>(speed_->isl() + speed_->osl() / 2);
    }

    [[nodiscard]] bool starts() const noexcept { return fit_.starts(); }
    [[nodiscard]] SweepVerdict const& fit() const noexcept { return fit_; }          ///< at the settings in force
    [[nodiscard]] Layout const& layout() const noexcept { return layout_; }          ///< of one replica
    [[nodiscard]] EngineSettings const& settings() const noexcept { return settings_; } ///< in force
    [[nodiscard]] std::vector<Mend> const& mends() const noexcept { return mends_; }
    [[nodiscard]] StartJudgement const& judged() const noexcept { return judged_; }
    [[nodiscard]] Tokens context() const noexcept { return context_; }               ///< longest request with which it would start
    [[nodiscard]] PreparedDeployment const& speed() const { return *speed_; }         ///< of a replica that starts
    [[nodiscard]] std::optional<PreparedVllm> const& vllm() const noexcept { return vllm_; }
    [[nodiscard]] Tokens max_context() const noexcept { return Tokens{vllm_ ? vllm_->max_context : context_.value()}; }

    /// The verdict at a point. No allocation. Engines but vLLM answer at their settings in force.
    [[nodiscard]] SweepVerdict verdict(SweepPoint const& at) const noexcept {
        bool const in_force = at.max_num_seqs.value() <= 0 && at.max_model_len.value() <= 0 && at.utilization <= 0;
        if (in_force || !vllm_) return fit_;
        PreparedVllm const& d = *vllm_;
        VllmPoint p = d.point;
        if (at.utilization > 0) p.utilization = at.utilization;
        if (at.max_model_len.value() > 0) {
            p.max_len = at.max_model_len.value();
            p.extra = d.memory.constant_per_len * static_cast<double>(p.max_len - d.memory_len);
        }
        if (at.max_num_seqs.value() > 0) {
            p.seqs = std::min(at.max_num_seqs.value(), p.batched);
            if (!capture_given_ && p.graphs != GraphMode::none) p.capture = std::min(2 * p.seqs * (1 + draft_), blackwell_capture_);
        }
        VllmOutcome const o = evaluate_vllm(d, p);
        SweepVerdict v;
        v.verdict = o.verdict;
        if (o.verdict != Verdict::starts) return v;
        v.kv_tokens = Tokens{o.tokens};
        double const dp = layout_.dp;
        v.slots = static_cast<double>(p.seqs) * dp;
        auto const bound = [&](double n, BoundBy by) {
            if (n < v.slots) {
                v.slots = n;
                v.slots_bound = by;
            }
        };
        if (d.cache.recurrent && o.blocks > 0) bound(static_cast<double>(o.blocks) * dp, BoundBy::state_slots);
        bound(std::max(1.0, static_cast<double>(vllm_room(d, p, o, request_))) * dp, BoundBy::kv_room);
        return v;
    }

    /// Fit, speed and cost at a point. No allocation; of a replica that starts.
    [[nodiscard]] SweepPlan plan(SweepPoint const& at) const noexcept {
        SweepPlan out;
        out.fit = verdict(at);
        if (out.fit.starts()) speed_of(at, out);
        return out;
    }

private:
    void speed_of(SweepPoint const& at, SweepPlan& out) const noexcept {
        double const replicas = std::max(1, at.replicas);
        LoadSpeed const s = load_speed(*speed_, static_cast<double>(at.users.value()), replicas, out.fit.slots);
        out.tpot = Seconds{s.tpot};
        out.ttft = Seconds{s.ttft};
        out.per_user = TokensPerSecond{1 / s.tpot};
        out.output = TokensPerSecond{s.output};
        out.per_gpu = TokensPerSecond{s.output / (replicas * gpus_)};
        out.requests = RequestsPerSecond{s.output / speed_->osl()};
        out.basis = s.basis;
        out.queued = s.replica.queued;
        out.extrapolated = s.extrapolated;
        if (at.per_hour.value() > 0 && s.output > 0) out.per_million_output = at.per_hour / out.output;
    }

    Layout layout_;
    double gpus_ = 1;
    EngineSettings settings_;
    std::vector<Mend> mends_;
    StartJudgement judged_;
    SweepVerdict fit_;
    Tokens context_{};
    std::optional<PreparedVllm> vllm_;
    std::optional<PreparedDeployment> speed_;
    std::int64_t request_ = 0; ///< tokens that a running request holds on average
    std::int64_t draft_ = 0, blackwell_capture_ = 512;
    bool capture_given_ = false;
};

} // namespace servecap
