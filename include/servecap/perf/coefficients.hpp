// servecap: the fitted coefficients of the speed model, by name
// SPDX-License-Identifier: Apache-2.0
//
// Every physical coefficient is a logarithm: prior mean + deviations of engine, GPU family, GPU, layer class,
// precision and layout, each with a normal prior around zero (partial pooling: a deviation without rows
// stays at zero with its prior's width). `planner calibrate` writes the posterior means and standard
// deviations to data/coefficients.csv under the names made here; without that file the prior means are the
// stated efficiencies of a roofline. Prior means come from kernel measurements: 1.4-1.6 us a kernel and 0.95
// of peak bandwidth beyond it (one H200, CUDA graphs), all-reduce floors of 5-9 us, GEMM at 45-95 % of peak.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/catalog/rows.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/perf/deployment.hpp>

namespace servecap {

/// One physical coefficient of the speed model.
enum class Coef : std::uint8_t {
    overhead,          ///< factor on every launch time
    launch_gqa,        ///< seconds a layer: grouped-query attention
    launch_mla,        ///< latent attention
    launch_recurrent,  ///< KDA, gated delta, Mamba...
    launch_compressed, ///< compressed attention of DeepSeek V4 with its hyper-connections
    launch_indexer,    ///< the indexer of sparse attention, besides the attention itself
    launch_dense,      ///< dense feed-forward part
    launch_moe,        ///< routing, permutation and grouped matrix products
    allreduce_floor,   ///< seconds a collective of 8 ranks
    allreduce_bytes,   ///< time over bytes / link rate
    bandwidth,         ///< time over bytes / memory bandwidth
    expert_bytes,      ///< the same for routed experts, relative to `bandwidth`
    expert_imbalance,  ///< fullest rank with expert parallelism: 1 + this * sqrt(ranks / distinct experts)
    kv_bytes,          ///< the same for KV rows, absolute
    kv_flops,          ///< time of attention products over bf16 peak
    state_bytes,       ///< recurrent state, read and written
    index_bytes,       ///< index keys, read whole
    flops,             ///< time over flops / peak in decode
    expert_flops,      ///< relative to `flops`
    prefill_flops,     ///< time over flops / peak in prefill
    prefill_experts,   ///< of routed experts in prefill, relative to `prefill_flops`
    prefill_attention, ///< attention products of prefill over bf16 peak
    prefill_launch,    ///< launches of a step that carries a prompt chunk, over those of a decode step
    host_step,         ///< seconds a step: scheduling, sampling
    host_sequence,     ///< seconds a step and sequence
    date,              ///< change of log time a year of progress (progress_years): software gets faster
    ttft_base,         ///< seconds before the first kernel: tokenising, scheduling, first token out
    ttft_launch,       ///< prefill launches in TTFT over those of prefill_launch
    ttft_flops,        ///< prefill time in TTFT over that of prefill_flops
    ttft_step,         ///< running steps that a new request waits for
    ttft_queue,        ///< share of the other users' prefills that a request waits for
    ttft_queue_launch, ///< the same for their launches
    draft_extra,       ///< tokens that a step yields besides its own, at the usual number of draft tokens
    draft_cost,        ///< time of one draft token in layers of the model (launches and dense weights)
};
inline constexpr std::size_t kCoefs = 34;
inline constexpr std::size_t kStepCoefs = static_cast<std::size_t>(Coef::ttft_base);    ///< those that TPOT depends on
inline constexpr std::size_t kDraftCoefs = static_cast<std::size_t>(Coef::draft_extra); ///< from here: speculation alone

/// What a deviation belongs to.
enum class CoefLevel : std::uint8_t {
    engine,
    family,
    engine_family,
    gpu,
    layer_class,
    precision,
    precision_family,
    dp_attention,
    ep,
    synchronous, ///< requests of fixed lengths that start together
    median,      ///< the row gives the median
    method,      ///< of speculation: mtp, eagle3, dspark...
};

/// A deviation with the standard deviation of its prior, in logarithm.
struct CoefDeviation {
    CoefLevel level;
    double sd;
};

/// Prior of one coefficient. `mean` is of the coefficient itself, not of its logarithm (date: the slope itself).
struct CoefPrior {
    std::string_view name;
    double mean;
    double sd;
    std::array<CoefDeviation, 7> deviations;
    std::size_t count;
};

namespace detail {

constexpr CoefPrior prior(std::string_view name, double mean, double sd) { return {name, mean, sd, {}, 0}; }
template <class... D>
constexpr CoefPrior prior(std::string_view name, double mean, double sd, D... d) {
    return {name, mean, sd, {d...}, sizeof...(D)};
}

} // namespace detail

/// The priors, in the order of Coef. Widths: from leave-one-group-out search over the measured rows.
inline constexpr std::array<CoefPrior, kCoefs> kCoefPriors = [] {
    using L = CoefLevel;
    using D = CoefDeviation;
    using detail::prior;
    return std::array<CoefPrior, kCoefs>{
        prior("overhead", 1.0, 0.001, D{L::engine, .15}, D{L::family, .6}, D{L::engine_family, .18}, D{L::gpu, .06},
              D{L::layer_class, .09}, D{L::dp_attention, .2}, D{L::ep, .1}),
        prior("launch.gqa", 25e-6, .5),
        prior("launch.mla", 45e-6, .5),
        prior("launch.recurrent", 40e-6, .5),
        prior("launch.compressed", 100e-6, .5),
        prior("launch.indexer", 30e-6, .5),
        prior("launch.dense", 12e-6, .5),
        prior("launch.moe", 35e-6, .5),
        prior("allreduce.floor", 8e-6, .4, D{L::engine_family, .2}),
        prior("allreduce.bytes", 1.6, .4),
        prior("bandwidth", 1.25, .15, D{L::engine, .15}, D{L::family, .15}, D{L::engine_family, .1}, D{L::gpu, .07}),
        prior("bandwidth.experts", 1.1, .3, D{L::engine_family, .18}, D{L::precision_family, .4}),
        prior("experts.imbalance", 0.8, .5),
        prior("kv.bytes", 1.3, .5, D{L::engine_family, .3}),
        prior("kv.flops", 2.5, .5),
        prior("state.bytes", 1.3, .3),
        prior("index.bytes", 3.0, 1.0),
        prior("flops", 2.0, .3, D{L::engine_family, .2}, D{L::precision, .3}),
        prior("flops.experts", 2.0, .5, D{L::engine_family, .2}),
        prior("prefill.flops", 2.0, .4, D{L::engine, .2}, D{L::family, .3}, D{L::engine_family, .12}, D{L::layer_class, .2},
              D{L::precision, .18}),
        prior("prefill.experts", 1.5, .5, D{L::engine_family, .3}, D{L::precision, .3}),
        prior("prefill.attention", 3.0, .5),
        prior("prefill.launch", 3.0, .5, D{L::engine, .3}),
        prior("host.step", 0.4e-3, .5, D{L::engine, .4}),
        prior("host.sequence", 10e-6, .7, D{L::engine, .5}),
        prior("date", 0.0, .106, D{L::engine, .062}),
        prior("ttft.base", 0.05, .7, D{L::engine, .5}, D{L::family, .3}, D{L::engine_family, .3}, D{L::median, .5}),
        prior("ttft.launch", 1.0, .5, D{L::engine, .3}),
        prior("ttft.flops", 1.0, .3, D{L::engine, .3}, D{L::family, .2}, D{L::layer_class, .2}),
        prior("ttft.step", 0.3, .7, D{L::engine, .5}),
        prior("ttft.queue", 0.055, .5, D{L::engine, .3}, D{L::synchronous, 1.0}, D{L::median, .7}),
        prior("ttft.queue.launch", 0.02, 1.0, D{L::engine, .3}, D{L::synchronous, 1.0}, D{L::median, .7}),
        prior("draft.extra", 0.9, .5, D{L::method, .3}, D{L::engine, .2}, D{L::synchronous, .3}),
        prior("draft.cost", 2.0, .5, D{L::method, .3}, D{L::engine, .3}),
    };
}();

/// What decides which deviations apply.
struct CoefContext {
    SpeedIdentity const& id;
    bool dp_attention = false;
    bool ep = false; ///< whole experts on ranks, attention by TP
    bool synchronous = false;
    bool median = false;
};

/// The name of a deviation ("overhead.engine:vllm"), or an empty string where the level does not apply.
inline std::string deviation_name(std::string_view coef, CoefLevel level, CoefContext const& c) {
    std::string s{coef};
    switch (level) {
    case CoefLevel::engine: return s + ".engine:" + c.id.engine;
    case CoefLevel::family: return s + ".family:" + c.id.family;
    case CoefLevel::engine_family: return s + ".engine+family:" + c.id.engine + "+" + c.id.family;
    case CoefLevel::gpu: return s + ".gpu:" + c.id.gpu;
    case CoefLevel::layer_class: return s + ".class:" + c.id.layer_class;
    case CoefLevel::precision: return s + ".precision:" + c.id.precision;
    case CoefLevel::precision_family: return s + ".precision+family:" + c.id.precision + "+" + c.id.family;
    case CoefLevel::dp_attention: return c.dp_attention ? s + ".dp-attention" : std::string{};
    case CoefLevel::ep: return c.ep && !c.dp_attention ? s + ".ep" : std::string{};
    case CoefLevel::synchronous: return c.synchronous ? s + ".synchronous" : std::string{};
    case CoefLevel::method: return c.id.speculation.empty() ? std::string{} : s + ".method:" + c.id.speculation;
    case CoefLevel::median: return c.median ? s + ".median" : std::string{};
    }
    return {};
}

/// Coefficients found by name. Keeps views into the rows given: keep them alive.
class CoefficientTable {
public:
    CoefficientTable() = default;
    explicit CoefficientTable(std::span<Coefficient const> rows) {
        index_.reserve(rows.size());
        for (Coefficient const& c : rows) index_.push_back(&c);
        std::sort(index_.begin(), index_.end(), [](Coefficient const* a, Coefficient const* b) { return a->name < b->name; });
    }
    [[nodiscard]] Coefficient const* find(std::string_view name) const noexcept {
        auto const at = std::lower_bound(index_.begin(), index_.end(), name,
                                         [](Coefficient const* c, std::string_view n) { return c->name < n; });
        return at != index_.end() && (*at)->name == name ? *at : nullptr;
    }
    [[nodiscard]] double value_or(std::string_view name, double otherwise) const noexcept {
        auto const* c = find(name);
        return c ? c->value : otherwise;
    }
    [[nodiscard]] bool empty() const noexcept { return index_.empty(); }
    /// All entries whose name starts with `prefix`, in order.
    template <class F>
    void for_each_with(std::string_view prefix, F&& f) const {
        auto at = std::lower_bound(index_.begin(), index_.end(), prefix,
                                   [](Coefficient const* c, std::string_view n) { return c->name < n; });
        for (; at != index_.end() && std::string_view{(*at)->name}.substr(0, prefix.size()) == prefix; ++at) f(**at);
    }

private:
    std::vector<Coefficient const*> index_;
};

/// Estimates of bases and deviations err against each other (a low base, high deviations), so the variance of
/// their sum is this share of the sum of variances: the median over groups left out, from the full covariance.
inline constexpr double kKnownShare = 0.18;

/// The coefficients of one deployment: logarithms (date: the slope), and the variance of each.
struct ResolvedCoefs {
    std::array<double, kCoefs> log{};
    std::array<double, kCoefs> variance{};
    bool fitted = false; ///< at least one coefficient comes from the fit

    [[nodiscard]] double operator[](Coef c) const noexcept { return log[static_cast<std::size_t>(c)]; }
};

/// Prior mean in the form of the fit: a logarithm, except the date's slope.
inline double prior_log_mean(std::size_t coef) noexcept {
    return coef == static_cast<std::size_t>(Coef::date) ? kCoefPriors[coef].mean : std::log(kCoefPriors[coef].mean);
}

/// Adds up base and deviations; what is not in the table has its prior's mean and width.
inline ResolvedCoefs resolve_coefs(CoefficientTable const& table, CoefContext const& context) {
    ResolvedCoefs r;
    for (std::size_t i = 0; i < kCoefs; ++i) {
        CoefPrior const& p = kCoefPriors[i];
        auto const add = [&](std::string_view name, double mean, double sd) {
            Coefficient const* c = table.find(name);
            if (c) r.fitted = true;
            r.log[i] += c ? c->value : mean;
            r.variance[i] += c ? kKnownShare * c->sd * c->sd : sd * sd;
        };
        add(p.name, prior_log_mean(i), p.sd);
        for (std::size_t k = 0; k < p.count; ++k)
            if (std::string const n = deviation_name(p.name, p.deviations[k].level, context); !n.empty())
                add(n, 0.0, p.deviations[k].sd);
    }
    return r;
}

} // namespace servecap
