// servecap: which GPUs, which layout
// SPDX-License-Identifier: Apache-2.0
//
// Every valid layout on every set of GPUs that is named is judged by the engine's allocator, predicted over
// the concurrencies and priced. A replica is prepared once for each kind of GPU and each of its layouts, and
// serves every number of GPUs (sweep.hpp); only plans that are shown are explained. What stays is the Pareto
// front (pareto.hpp) of the plans that meet the targets, and the one that is best by the goal. Nothing is
// pruned that could be an optimum: a replica is left unprepared only where its weights alone exceed what the
// runtime sees, or the engine takes neither the model nor the layout. What was left out is counted by reason,
// so that an empty answer says which constraint emptied it; for each target the nearest better plan that
// breaks it alone is kept, so that an answer says what it costs.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <servecap/engine/engine.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/perf/precision.hpp>
#include <servecap/perf/predict.hpp>
#include <servecap/plan/goal.hpp>
#include <servecap/plan/make.hpp>
#include <servecap/plan/pareto.hpp>
#include <servecap/plan/sweep.hpp>

namespace servecap {

/// What makes one plan better than another.
enum class SearchGoal : std::uint8_t { cheapest, fastest, fewest_gpus, context, users, smallest_gpu };

/// What an answer must keep.
enum class Target : std::uint8_t { ttft, tpot, budget, request_rate, gpus };
inline constexpr std::size_t kTargets = 5;

constexpr std::string_view to_string(Target t) noexcept {
    constexpr std::array<std::string_view, kTargets> names{"TTFT", "TPOT", "budget", "request rate", "number of GPUs"};
    return names[static_cast<std::size_t>(t)];
}

/// What is searched and what an answer must meet.
struct SearchTargets {
    std::optional<Seconds> slo_ttft{}, slo_tpot{};
    std::optional<UsdPerHour> budget{};              ///< of the deployment; a plan without a price does not keep it
    std::optional<RequestsPerSecond> request_rate{}; ///< that the deployment must answer
    std::int32_t max_gpus = 100000;
    SearchGoal goal = SearchGoal::cheapest;

    [[nodiscard]] LatencyLimits limits() const noexcept { return {slo_ttft, slo_tpot}; }
};

/// How it is searched.
struct SearchOptions {
    std::int32_t jobs = 1;                                     ///< threads; the answer is the same for any number
    std::vector<EngineSettings> variants{};                    ///< settings to try (KV dtypes...); empty: those of the request
    std::function<void(std::size_t, std::size_t)> progress{};  ///< replicas prepared, of all; from the calling thread
    bool judge_layouts = false;                                ///< also explain every layout, refused ones too
};

/// One plan of a search, at one concurrency.
struct SearchPoint {
    GpuSet gpus;
    Layout layout;
    EngineSettings settings;
    std::string mended;                 ///< flags that were changed so that it starts
    Tokens kv_tokens{};
    Tokens context{};                   ///< longest request with which it would start
    Basis fit_basis = Basis::calibrated;
    SpeedPoint speed;
    RequestsPerSecond requests{};       ///< answered a second
    std::optional<UsdPerHour> per_hour; ///< none: no price is known
    std::optional<UsdPerMillionTokens> per_million_output;
    bool meets = true;                  ///< all targets
};

/// A target that the best plan keeps at a cost: the nearest better plan without it.
struct Relaxation {
    Target target = Target::tpot;
    double by = 1;     ///< factor by which the target would have to give
    SearchPoint better;
};

/// One layout of a set, judged: side by side with the others.
struct JudgedLayout {
    GpuSet gpus;
    Layout layout;
    std::string mended;                   ///< flags that were changed so that it starts
    StartPlan fit;                        ///< as mended, or the refusal
    std::vector<SearchPoint> speeds;      ///< at the concurrencies of the search
    std::optional<Layout> larger;         ///< refused: the same kind of layout over more GPUs that starts
};

struct SearchAnswer {
    std::vector<SearchPoint> front;      ///< by falling speed of one user
    std::optional<SearchPoint> best;     ///< by the goal, of those that meet the targets
    std::optional<SearchPoint> nearest;  ///< where none meets them: the nearest miss
    std::vector<Target> missed;          ///< what `nearest` misses
    std::vector<Relaxation> relaxations; ///< the one that gives least first
    std::int64_t layouts = 0, plans = 0, replicas = 0; ///< judged; predicted; prepared
    std::map<std::string, std::int64_t> left_out;      ///< reason: layouts or plans
    std::vector<JudgedLayout> judged;                  ///< every layout, where it was asked for
};

/// The price of an hour of a set of GPUs, if one is known.
using PriceOf = std::function<std::optional<UsdPerHour>(GpuSet const&)>;

/// Layouts that use all GPUs of a set: tensor parallel in the scale-up domain, expert and data-parallel attention for
/// mixtures of experts, pipelines over nodes, replicas for the rest.
inline std::vector<Layout> layouts_on(Model const& model, GpuSet const& set) {
    bool const moe = has_experts(model);
    std::int32_t const domain = std::max(1, std::min(set.domain() > 1 ? set.domain() : set.per_node(), set.count));
    std::vector<Layout> out;
    auto const add = [&](Layout l) {
        auto const filled = fill_replicas(l, set.count);
        if (filled && std::find(out.begin(), out.end(), *filled) == out.end()) out.push_back(*filled);
    };
    for (std::int32_t tp = 1; tp <= std::min(set.count, 72); ++tp) {
        if (set.count % tp != 0 || (tp > domain && tp % domain != 0)) continue;
        add({.tp = tp});
        if (moe && tp > 1) {
            add({.tp = tp, .ep = true});
            add({.dp = tp, .ep = true});
            if (tp > 2 && tp % 2 == 0) add({.tp = 2, .dp = tp / 2, .ep = true});
        }
        for (std::int32_t pp : {2, 3, 4, 8}) add({.tp = tp, .pp = pp});
    }
    return out;
}

namespace detail::searching {

/// One point of the sweep, in plain numbers.
struct Candidate {
    std::size_t set = 0, cell = 0;
    std::int32_t replicas = 1;
    std::int64_t users = 1;
    PlanAxes axes;
    SweepPlan plan;
    double per_hour = 0;   ///< 0: not known
    double visible = 0;    ///< bytes of one GPU
    std::array<double, kTargets> miss{}; ///< factor by which each target is missed; at most 1: kept

    /// How far off: the logs of the factors, added up.
    [[nodiscard]] double off() const noexcept {
        double sum = 0;
        for (double m : miss) sum += m > 1 ? std::log(m) : 0;
        return sum;
    }
    [[nodiscard]] int broken() const noexcept {
        return static_cast<int>(std::count_if(miss.begin(), miss.end(), [](double m) { return m > 1; }));
    }
    [[nodiscard]] bool meets() const noexcept { return broken() == 0; }
};

/// `a` is better than `b` by the goal. A strict order: what is left equal keeps its place.
inline bool better(Candidate const& a, Candidate const& b, SearchGoal goal) noexcept {
    auto const cheaper = [&] {
        if (a.axes.priced != b.axes.priced) return a.axes.priced;
        if (a.axes.priced && a.axes.per_million != b.axes.per_million) return a.axes.per_million < b.axes.per_million;
        if (a.axes.per_gpu != b.axes.per_gpu) return a.axes.per_gpu > b.axes.per_gpu;
        return a.axes.gpus < b.axes.gpus;
    };
    switch (goal) {
    case SearchGoal::cheapest: break;
    case SearchGoal::fastest:
        if (a.axes.per_user != b.axes.per_user) return a.axes.per_user > b.axes.per_user;
        break;
    case SearchGoal::fewest_gpus:
        if (a.axes.gpus != b.axes.gpus) return a.axes.gpus < b.axes.gpus;
        break;
    case SearchGoal::context:
        if (a.axes.context != b.axes.context) return a.axes.context > b.axes.context;
        break;
    case SearchGoal::users:
        if (a.plan.queued != b.plan.queued) return b.plan.queued;
        if (a.users != b.users) return a.users > b.users;
        break;
    case SearchGoal::smallest_gpu: // one GPU before two, then the one with less memory
        if (a.axes.gpus != b.axes.gpus) return a.axes.gpus < b.axes.gpus;
        if (a.visible != b.visible) return a.visible < b.visible;
        break;
    }
    return cheaper();
}

/// A whole search: replicas prepared, then two passes over their points.
class Run {
public:
    Run(PlanRequest const& base, std::span<GpuSet const> sets, SearchTargets const& targets, PriceOf const& price, SearchOptions const& options)
        : base_{base}, sets_{sets}, targets_{targets}, options_{options},
          variants_{options.variants.empty() ? std::vector<EngineSettings>{base.settings} : options.variants} {
        for (GpuSet const& set : sets_) prices_.push_back(price(set));
        enumerate();
        prepare();
    }

    [[nodiscard]] SearchAnswer answer() {
        Tally const all = pass<Tally>([&](Tally& t, Candidate const& c) { first_pass(t, c); });
        SearchAnswer out;
        out.layouts = static_cast<std::int64_t>(places_.size());
        out.replicas = static_cast<std::int64_t>(std::count_if(cells_.begin(), cells_.end(), [](auto const& c) { return c->starts(); }));
        out.plans = all.plans;
        for (std::size_t i = 0; i < sets_.size(); ++i) {
            if (miss_of_set(i, Target::gpus) > 1) ++out.left_out["more GPUs than allowed"];
            if (miss_of_set(i, Target::budget) > 1) ++out.left_out[prices_[i] ? "over the budget" : "without a price to hold against the budget"];
        }
        for (Place const& p : places_)
            if (!cells_[p.cell]->starts()) ++out.left_out[std::string{to_string(cells_[p.cell]->fit().verdict)}];
        for (std::size_t t = 0; t < 2; ++t)
            if (all.missed[t] > 0) out.left_out["plans over the " + std::string{to_string(static_cast<Target>(t))} + " limit"] += all.missed[t];
        if (all.missed[static_cast<std::size_t>(Target::request_rate)] > 0)
            out.left_out["plans that answer too few requests"] += all.missed[static_cast<std::size_t>(Target::request_rate)];
        std::vector<Candidate> front = all.front.items();
        std::sort(front.begin(), front.end(), [](Candidate const& a, Candidate const& b) {
            if (a.axes.per_user != b.axes.per_user) return a.axes.per_user > b.axes.per_user;
            if (a.set != b.set) return a.set < b.set;
            if (a.cell != b.cell) return a.cell < b.cell;
            if (a.replicas != b.replicas) return a.replicas < b.replicas;
            return a.users < b.users;
        });
        for (Candidate const& c : front) out.front.push_back(explain(c));
        if (all.best) {
            out.best = explain(*all.best);
            relax(out, *all.best);
        } else if (all.nearest) {
            out.nearest = explain(*all.nearest);
            for (std::size_t t = 0; t < kTargets; ++t)
                if (all.nearest->miss[t] > 1) out.missed.push_back(static_cast<Target>(t));
        }
        if (options_.judge_layouts)
            for (Place const& p : places_) out.judged.push_back(judge(p));
        return out;
    }

    /// Calls `visit` with every plan, in order.
    template <class Visit>
    void each(Visit&& visit) const {
        for (std::size_t i = 0; i < places_.size(); ++i) points(places_[i], [&](Candidate const& c) { visit(c); });
    }

    [[nodiscard]] SearchPoint explain(Candidate const& c) const {
        SweepReplica const& cell = *cells_[c.cell];
        Layout layout = cell.layout();
        layout.replicas = c.replicas;
        SearchPoint p{.gpus = sets_[c.set], .layout = layout, .settings = cell.settings(), .mended = {}, .kv_tokens = cell.fit().kv_tokens, .context = cell.context(),
                      .fit_basis = cell.judged().plan.basis, .speed = {}, .requests = c.plan.requests, .per_hour = prices_[c.set],
                      .per_million_output = {}, .meets = c.meets()};
        p.mended = mends_of(cell);
        SpeedRequest const r{.model = base_.model,
                             .gpus = sets_[c.set],
                             .layout = layout,
                             .settings = cell.settings(),
                             .fit = cell.judged().plan,
                             .workload = base_.workload,
                             .rows = base_.benchmarks,
                             .coefficients = base_.coefficients,
                             .known_gpus = base_.known_gpus,
                             .row_models = base_.model_names};
        p.speed = speed_at(cell.speed(), r, Requests{c.users}, c.replicas);
        if (c.axes.priced) p.per_million_output = UsdPerMillionTokens{c.axes.per_million};
        return p;
    }

    [[nodiscard]] GpuSet const& set(Candidate const& c) const { return sets_[c.set]; }
    [[nodiscard]] SweepReplica const& cell(Candidate const& c) const { return *cells_[c.cell]; }

private:
    struct Place { ///< a layout on a set
        std::size_t set, cell;
        std::int32_t replicas;
    };
    struct Key {
        std::size_t set; ///< the first that needs it
        std::size_t variant;
        Layout layout; ///< of one replica
    };
    struct Tally {
        ParetoFront<Candidate> front;
        std::optional<Candidate> best, nearest;
        std::int64_t plans = 0;
        std::array<std::int64_t, kTargets> missed{};

        void merge(Tally const& o, SearchGoal goal) {
            front.merge(o.front);
            if (o.best && (!best || better(*o.best, *best, goal))) best = o.best;
            if (o.nearest && (!nearest || o.nearest->off() < nearest->off())) nearest = o.nearest;
            plans += o.plans;
            for (std::size_t t = 0; t < kTargets; ++t) missed[t] += o.missed[t];
        }
    };
    struct Wishes { ///< for each target the nearest better plan that breaks it alone
        std::array<std::optional<Candidate>, kTargets> better_without;

        void merge(Wishes const& o, SearchGoal goal) {
            for (std::size_t t = 0; t < kTargets; ++t)
                if (o.better_without[t]) take(t, *o.better_without[t], goal);
        }
        void take(std::size_t t, Candidate const& c, SearchGoal goal) {
            auto& have = better_without[t];
            if (!have || c.miss[t] < have->miss[t] || (c.miss[t] == have->miss[t] && better(c, *have, goal))) have = c;
        }
    };

    void enumerate() {
        std::map<std::tuple<std::string, std::size_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, bool, std::int32_t>, std::size_t> known;
        for (std::size_t v = 0; v < variants_.size(); ++v)
            for (std::size_t s = 0; s < sets_.size(); ++s) {
                std::vector<Layout> const layouts = base_.layout ? given_layout(sets_[s]) : layouts_on(base_.model, sets_[s]);
                // llama.cpp counts the memory of the whole host, so its replicas differ with the number of GPUs.
                std::int32_t const count = variants_[v].engine == EngineKind::llama_cpp ? sets_[s].count : 0;
                for (Layout const& l : layouts) {
                    auto const [at, fresh] = known.try_emplace({sets_[s].gpu.id, v, l.tp, l.pp, l.dp, l.dcp, l.ep, count}, keys_.size());
                    if (fresh) keys_.push_back({s, v, l});
                    places_.push_back({s, at->second, l.replicas});
                }
            }
    }
    [[nodiscard]] std::vector<Layout> given_layout(GpuSet const& set) const {
        Layout one = *base_.layout;
        if (one.replicas > 1) return one.gpus() == set.count ? std::vector<Layout>{one} : std::vector<Layout>{};
        auto const filled = fill_replicas(one, set.count);
        return filled ? std::vector<Layout>{*filled} : std::vector<Layout>{};
    }

    /// Runs work(i) for i of 0..n over the threads; `tick` from the calling thread.
    template <class Work>
    void spread(std::size_t n, Work const& work, std::function<void(std::size_t, std::size_t)> const& tick = {}) const {
        std::atomic<std::size_t> next{0};
        auto const loop = [&] {
            for (std::size_t i = next++; i < n; i = next++) work(i);
        };
        std::vector<std::jthread> others;
        auto const jobs = static_cast<std::size_t>(std::clamp(options_.jobs, 1, 1024));
        for (std::size_t j = 1; j < std::min(jobs, n); ++j) others.emplace_back(loop);
        for (std::size_t i = next++; i < n; i = next++) {
            work(i);
            if (tick) tick(std::min(n, next.load()), n);
        }
    }

    void prepare() {
        std::vector<std::unique_ptr<SweepShared>> shared;
        std::vector<PlanRequest> requests;
        requests.reserve(variants_.size()); // SpeedEvidence refers to what is in them
        for (EngineSettings const& v : variants_) {
            requests.push_back(base_);
            requests.back().settings = v;
            shared.push_back(std::make_unique<SweepShared>(requests.back()));
        }
        cells_.resize(keys_.size());
        spread(
            keys_.size(),
            [&](std::size_t i) {
                Key const& k = keys_[i];
                cells_[i] = std::make_unique<SweepReplica>(base_, *shared[k.variant], sets_[k.set], k.layout, variants_[k.variant]);
            },
            options_.progress);
    }

    [[nodiscard]] double miss_of_set(std::size_t set, Target t) const {
        if (t == Target::gpus) return static_cast<double>(sets_[set].count) / static_cast<double>(std::max(1, targets_.max_gpus));
        if (t == Target::budget && targets_.budget) return prices_[set] ? *prices_[set] / *targets_.budget : 1e9;
        return 0;
    }

    /// Every plan of a layout on a set, in rising concurrency.
    template <class Visit>
    void points(Place const& place, Visit&& visit) const {
        SweepReplica const& cell = *cells_[place.cell];
        if (!cell.starts()) return;
        Candidate c;
        c.set = place.set;
        c.cell = place.cell;
        c.replicas = place.replicas;
        c.per_hour = prices_[place.set] ? prices_[place.set]->value() : 0;
        c.visible = static_cast<double>(sets_[place.set].gpu.visible.value());
        c.axes.context = cell.context().value();
        c.axes.gpus = sets_[place.set].count;
        double const gpus_miss = miss_of_set(place.set, Target::gpus), budget_miss = miss_of_set(place.set, Target::budget);
        SweepPoint at;
        at.replicas = place.replicas;
        at.per_hour = UsdPerHour{c.per_hour};
        auto const emit = [&](std::int64_t users) {
            at.users = Requests{users};
            c.users = users;
            c.plan = cell.plan(at);
            c.axes.per_user = c.plan.per_user.value();
            c.axes.per_gpu = c.plan.per_gpu.value();
            c.axes.per_million = c.plan.per_million_output.value();
            c.axes.priced = c.axes.per_million > 0;
            if (targets_.request_rate && c.axes.priced) { // what is asked is answered, no more: spare capacity costs too
                double const answered = std::min(c.plan.requests.value(), targets_.request_rate->value());
                c.axes.per_million *= c.plan.requests.value() / answered;
            }
            auto const miss = [&](Target t) -> double& { return c.miss[static_cast<std::size_t>(t)]; };
            miss(Target::ttft) = targets_.slo_ttft ? c.plan.ttft / *targets_.slo_ttft : 0;
            miss(Target::tpot) = targets_.slo_tpot ? c.plan.tpot / *targets_.slo_tpot : 0;
            miss(Target::budget) = budget_miss;
            miss(Target::gpus) = gpus_miss;
            miss(Target::request_rate) = targets_.request_rate ? *targets_.request_rate / c.plan.requests : 0;
            visit(c);
        };
        if (!base_.workload.concurrency.empty()) {
            for (Requests n : base_.workload.concurrency) emit(n.value());
            return;
        }
        auto const room = static_cast<std::int64_t>(std::clamp(std::floor(cell.fit().slots * place.replicas), 1.0, 1e9));
        bool const seek = targets_.limits().any() || targets_.request_rate || targets_.goal == SearchGoal::users;
        std::int64_t const found = seek ? most_users(cell, at, targets_.limits()).value() : 0;
        std::int64_t const top = std::min<std::int64_t>(room, targets_.request_rate ? room : 256);
        for (std::int64_t n = 1; n <= top; n *= 2) emit(n);
        if (found > 0 && (found > top || (found & (found - 1)) != 0)) emit(found);
    }

    /// Visits all plans in order, a part of the places a thread, and merges what the parts found in their order.
    template <class T, class Visit>
    [[nodiscard]] T pass(Visit const& visit) const {
        auto const jobs = static_cast<std::size_t>(std::clamp(options_.jobs, 1, 1024));
        std::size_t const parts = std::clamp<std::size_t>(jobs == 1 ? 1 : jobs * 4, 1, std::max<std::size_t>(1, places_.size()));
        std::vector<T> found(parts);
        spread(parts, [&](std::size_t k) {
            for (std::size_t i = places_.size() * k / parts; i < places_.size() * (k + 1) / parts; ++i)
                points(places_[i], [&](Candidate const& c) { visit(found[k], c); });
        });
        for (std::size_t k = 1; k < parts; ++k) found[0].merge(found[k], targets_.goal);
        return std::move(found[0]);
    }

    void first_pass(Tally& t, Candidate const& c) const {
        ++t.plans;
        for (std::size_t k = 0; k < kTargets; ++k) t.missed[k] += c.miss[k] > 1 ? 1 : 0;
        if (c.meets()) {
            if (!t.best || better(c, *t.best, targets_.goal)) t.best = c;
            t.front.add(c);
        } else if (!t.nearest || c.off() < t.nearest->off()) {
            t.nearest = c;
        }
    }

    /// The same kind of layout over 2, 3, 4, 6 or 8 times the GPUs.
    static Layout grown(Layout l, std::int32_t by) noexcept {
        l.replicas = 1;
        (l.pp > 1 ? l.pp : l.dp > 1 ? l.dp : l.tp) *= by;
        return l;
    }

    [[nodiscard]] JudgedLayout judge(Place const& p) const {
        SweepReplica const& cell = *cells_[p.cell];
        JudgedLayout j{.gpus = sets_[p.set], .layout = cell.layout(), .mended = mends_of(cell), .fit = cell.judged().plan, .speeds = {}, .larger = {}};
        j.layout.replicas = p.replicas;
        if (cell.starts()) {
            points(p, [&](Candidate const& c) { j.speeds.push_back(explain(c)); });
            return j;
        }
        Key const& k = keys_[p.cell];
        StartRequest const start{.model = base_.model, .gpus = sets_[p.set], .layout = cell.layout(), .settings = variants_[k.variant], .isl = base_.workload.isl,
                                 .osl = base_.workload.osl};
        j.fit = judge_start(start, base_.startups, {.tensors = {}, .layout_fixes = false, .prepared = nullptr}).plan;
        if (j.fit.verdict == Verdict::layout_invalid || j.fit.verdict == Verdict::unsupported) return j;
        for (std::int32_t by : {2, 3, 4, 6, 8}) {
            GpuSet more = sets_[p.set];
            Layout const l = grown(cell.layout(), by);
            more.count = std::max(more.count, l.gpus_per_replica());
            more.nodes = static_cast<std::int32_t>(ceil_div(more.count, std::max(1, more.gpu.node_gpus)));
            StartRequest const q{.model = base_.model, .gpus = more, .layout = l, .settings = start.settings, .isl = start.isl, .osl = start.osl};
            if (!mend_start(q, base_.startups, base_.given, MendChoice::keep_given, {.tensors = {}, .layout_fixes = false, .prepared = nullptr}).judged.plan.starts)
                continue;
            j.larger = l;
            break;
        }
        return j;
    }

    [[nodiscard]] static std::string mends_of(SweepReplica const& cell) {
        std::string s;
        for (Mend const& m : cell.mends()) s += (s.empty() ? "" : " ") + m.flag + (m.value.empty() ? "" : " " + m.value);
        return s;
    }

    void relax(SearchAnswer& out, Candidate const& best) const {
        Wishes const wishes = pass<Wishes>([&](Wishes& w, Candidate const& c) {
            if (c.broken() != 1 || !better(c, best, targets_.goal)) return;
            auto const t = static_cast<std::size_t>(std::max_element(c.miss.begin(), c.miss.end()) - c.miss.begin());
            if (c.miss[t] < 1e9) w.take(t, c, targets_.goal);
        });
        for (std::size_t t = 0; t < kTargets; ++t)
            if (auto const& c = wishes.better_without[t]) out.relaxations.push_back({static_cast<Target>(t), c->miss[t], explain(*c)});
        std::stable_sort(out.relaxations.begin(), out.relaxations.end(), [](Relaxation const& a, Relaxation const& b) { return a.by < b.by; });
    }

    PlanRequest const& base_;
    std::span<GpuSet const> sets_;
    SearchTargets targets_;
    SearchOptions const& options_;
    std::vector<EngineSettings> variants_;
    std::vector<std::optional<UsdPerHour>> prices_;
    std::vector<Key> keys_;
    std::vector<Place> places_;
    std::vector<std::unique_ptr<SweepReplica>> cells_;
};

} // namespace detail::searching

/// Searches all layouts (or the one of `base`) on all sets. `base` gives model, settings, workload, rows and coefficients; its
/// GPUs are not read. Concurrencies that are not given are powers of two up to what is resident (256 at most) and, where
/// there are limits, the most users within them.
inline SearchAnswer search_plans(PlanRequest const& base, std::span<GpuSet const> sets, SearchTargets const& targets, PriceOf const& price,
                                 SearchOptions const& options = {}) {
    return detail::searching::Run{base, sets, targets, price, options}.answer();
}

} // namespace servecap
