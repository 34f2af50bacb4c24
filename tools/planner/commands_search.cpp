// planner: search
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/plan_json.hpp>
#include <servecap/plan/search.hpp>
#include <servecap/report/page.hpp>

#include "context.hpp"
#include "output.hpp"
#include "plan_context.hpp"

namespace planner {

using namespace servecap;

namespace {

using SearchJson = nlohmann::ordered_json;

// ---- columns ---------------------------------------------------------------------------------------

struct Column {
    char const* name;
    char const* header;
    bool left;
    std::string (*cell)(SearchPoint const&);
};

std::string changed_cell(SearchPoint const& p) { return p.mended; }

Column const kColumns[] = {
    {"gpus", "GPUs", true, [](SearchPoint const& p) { return detail::typed_gpus(p.gpus); }},
    {"layout", "layout", true, [](SearchPoint const& p) { return layout_name(p.layout); }},
    {"users", "users", false, [](SearchPoint const& p) { return grouped(p.speed.concurrency.value()); }},
    {"per-user", "tok/s a user", false, [](SearchPoint const& p) { return sig3(p.speed.per_user.value.value()); }},
    {"output", "output tok/s", false, [](SearchPoint const& p) { return detail::with_interval(p.speed.output, p.speed.basis != Basis::measured); }},
    {"per-gpu", "tok/s a GPU", false, [](SearchPoint const& p) { return sig3(p.speed.per_gpu.value.value()); }},
    {"ttft", "TTFT", false, [](SearchPoint const& p) { return duration_text(p.speed.ttft.value); }},
    {"tpot", "TPOT", false, [](SearchPoint const& p) { return duration_text(p.speed.tpot.value); }},
    {"requests", "requests/s", false, [](SearchPoint const& p) { return sig3(p.requests.value()); }},
    {"context", "context", false, [](SearchPoint const& p) { return grouped(p.context.value()); }},
    {"kv-tokens", "KV tokens", false, [](SearchPoint const& p) { return grouped(p.kv_tokens.value()); }},
    {"kv-dtype", "KV dtype", true, [](SearchPoint const& p) { return p.settings.kv_cache_dtype.value_or("auto"); }},
    {"per-hour", "$/h", false, [](SearchPoint const& p) { return p.per_hour ? grouped(p.per_hour->value(), 2) : "not known"; }},
    {"per-million", "$/M output", false, [](SearchPoint const& p) { return p.per_million_output ? grouped(p.per_million_output->value(), 2) : "not known"; }},
    {"basis", "basis", true, [](SearchPoint const& p) { return std::string{to_string(p.speed.basis)}; }},
    {"changed", "changed so that it starts", true, changed_cell},
};

Result<std::vector<Column const*>> asked_columns(std::string const& list, std::vector<std::string> const& standard) {
    auto const names = list.empty() ? standard : words_of(list);
    std::vector<Column const*> out;
    std::vector<std::string> known;
    for (Column const& c : kColumns) known.emplace_back(c.name);
    for (std::string const& n : names) {
        auto const at = std::find(known.begin(), known.end(), n);
        if (at == known.end()) {
            std::string hint = did_you_mean(n, known);
            if (hint.empty()) {
                hint = "known:";
                for (auto const& k : known) hint += " " + k;
            }
            return fail(ErrorCode::unknown_name, "unknown column '" + n + "'", "--columns", hint);
        }
        out.push_back(&kColumns[at - known.begin()]);
    }
    return out;
}

TextTable table_of(std::vector<SearchPoint const*> const& points, std::vector<Column const*> const& columns) {
    TextTable t;
    for (Column const* c : columns) t.column(c->header, c->left ? TextTable::Align::left : TextTable::Align::right);
    for (SearchPoint const* p : points) {
        std::vector<std::string> cells;
        for (Column const* c : columns) cells.push_back(c->cell(*p));
        t.row(std::move(cells));
    }
    return t;
}

SearchJson point_json(SearchPoint const& p) {
    SearchJson j;
    j["gpu"] = {{"name", p.gpus.gpu.id}, {"count", p.gpus.count}, {"nodes", p.gpus.nodes}};
    j["layout"] = layout_name(p.layout);
    j["mended"] = p.mended;
    j["kv_cache_dtype"] = p.settings.kv_cache_dtype.value_or("auto");
    j["kv_tokens"] = p.kv_tokens.value();
    j["context"] = p.context.value();
    j["fit_basis"] = std::string{to_string(p.fit_basis)};
    j["speed"] = speed_to_json(p.speed);
    j["requests_per_second"] = p.requests.value();
    j["usd_per_hour"] = detail::maybe(p.per_hour);
    j["usd_per_million_output_tokens"] = detail::maybe(p.per_million_output);
    j["meets"] = p.meets;
    return j;
}

std::string place_text(SearchPoint const& p) {
    std::string s = fmt::format("{} {} at {}", detail::typed_gpus(p.gpus), layout_name(p.layout), count_text(p.speed.concurrency.value(), "user", "users"));
    if (!p.mended.empty()) s += " with " + p.mended;
    return s;
}

std::string figures_text(SearchPoint const& p) {
    std::string s = fmt::format("TPOT {}, TTFT {}, {} output tok/s", duration_text(p.speed.tpot.value), duration_text(p.speed.ttft.value),
                                detail::with_interval(p.speed.output, p.speed.basis != Basis::measured));
    if (p.per_hour) s += fmt::format(", {}/h", usd_text(p.per_hour->value()));
    if (p.per_million_output) s += fmt::format(", {} per M output tokens", usd_text(p.per_million_output->value()));
    return s;
}

// ---- what is asked ---------------------------------------------------------------------------------

struct GoalName {
    char const* name;
    SearchGoal goal;
    char const* text;
};
constexpr GoalName kGoals[] = {
    {"cheapest", SearchGoal::cheapest, "Cheapest"},
    {"fastest", SearchGoal::fastest, "Fastest for one user"},
    {"fewest-gpus", SearchGoal::fewest_gpus, "Fewest GPUs"},
    {"context", SearchGoal::context, "Longest context"},
    {"users", SearchGoal::users, "Most users at once"},
    {"smallest-gpu", SearchGoal::smallest_gpu, "Smallest GPU"},
    {"largest-model", SearchGoal::cheapest, "Cheapest"},
};

Result<GoalName> asked_goal(std::string const& name) {
    if (name.empty()) return kGoals[0];
    std::vector<std::string> known;
    for (GoalName const& g : kGoals) {
        if (fold_name(name) == g.name) return g;
        known.emplace_back(g.name);
    }
    std::string all;
    for (auto const& k : known) all += (all.empty() ? "expected " : ", ") + k;
    return fail(ErrorCode::bad_value, "'" + name + "' is not known", "--objective", all);
}

/// The sets of GPUs that a search looks at: those named, or counts of every GPU that is on sale.
Result<std::vector<GpuSet>> asked_sets(Args const& args, Context const& context) {
    std::vector<GpuSet> sets;
    auto const names = words_of(args.gpus.empty() ? args.gpu : args.gpus);
    if (names.empty()) return fail(ErrorCode::bad_usage, "no GPUs named", "--gpu", "for example --gpu b300x8, --gpu any; planner list gpus shows all");
    std::string const include = to_lower(args.include);
    for (std::string const& w : words_of(include))
        if (w != "announced" && w != "legacy" && w != "restricted" && w != "available")
            return fail(ErrorCode::bad_value, "'" + w + "' is not known", "--include", "expected announced, legacy or restricted");
    for (std::string const& name : names) {
        if (fold_name(name) != "any") {
            auto set = context.gpu_set(name);
            if (!set) return tl::unexpected<Error>{set.error()};
            sets.push_back(std::move(*set));
            continue;
        }
        for (Gpu const& g : context.gpus()) {
            bool const wanted = g.status == Availability::available || (g.status == Availability::legacy && include.find("legacy") != std::string::npos) ||
                                (g.status == Availability::announced && include.find("announced") != std::string::npos) ||
                                (g.status == Availability::restricted && include.find("restricted") != std::string::npos);
            if (!wanted || g.visible.value() <= 0) continue;
            for (std::int64_t n : {1, 2, 4, 8, 16, 32})
                if (auto set = make_gpu_set(g, n)) sets.push_back(std::move(*set));
        }
    }
    return sets;
}

/// Settings to try: --kv-cache-dtype takes a list, or any.
std::vector<EngineSettings> asked_variants(Args const& args) {
    std::vector<EngineSettings> out;
    std::string const kv = args.settings.kv_cache_dtype.value_or("");
    auto const list = fold_name(kv) == "any" ? std::vector<std::string>{"auto", "fp8"} : words_of(kv);
    if (list.size() < 2) return {args.settings};
    for (std::string const& k : list) {
        EngineSettings s = args.settings;
        s.kv_cache_dtype = k;
        if (k == "auto") s.kv_cache_dtype.reset();
        out.push_back(std::move(s));
    }
    return out;
}

/// One line on a terminal's standard error for anything over a second.
class Progress {
public:
    explicit Progress(bool on) : on_{on && isatty(fileno(stderr)) != 0} {}
    ~Progress() {
        if (shown_) std::fputs("\r\x1b[K", stderr);
    }
    Progress(Progress const&) = delete;
    Progress& operator=(Progress const&) = delete;

    void operator()(std::string const& what, std::size_t done, std::size_t all) {
        auto const now = std::chrono::steady_clock::now();
        if (!on_ || now - start_ < std::chrono::seconds{1} || (shown_ && now - last_ < std::chrono::milliseconds{200})) return;
        last_ = now;
        shown_ = true;
        std::fprintf(stderr, "\r\x1b[K%s %zu of %zu", what.c_str(), done, all);
        std::fflush(stderr);
    }

private:
    bool on_, shown_ = false;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_{};
};

/// Prices of sets: the rows are sorted by GPU once.
class Prices {
public:
    Prices(PlanRequest const& base, std::vector<GpuPrice> const& rows) : query_{base.price}, as_of_{base.as_of} {
        for (GpuPrice const& r : rows) by_gpu_[r.gpu].push_back(r);
    }
    Result<std::optional<UsdPerHour>> operator()(GpuSet const& set) const {
        PriceQuery q = query_;
        q.gpu = set.gpu.id;
        q.gpus = set.count;
        q.as_of = as_of_;
        auto const at = by_gpu_.find(set.gpu.id);
        auto found = choose_price(q, at == by_gpu_.end() ? std::span<GpuPrice const>{} : std::span<GpuPrice const>{at->second});
        if (!found) return tl::unexpected<Error>{found.error()};
        return found->price ? std::optional<UsdPerHour>{found->price->per_hour} : std::nullopt;
    }

private:
    PriceQuery query_;
    std::string as_of_;
    std::map<std::string, std::vector<GpuPrice>> by_gpu_;
};

/// What a target is set to, with its option.
std::string target_text(Target t, SearchTargets const& x) {
    switch (t) {
    case Target::ttft: return x.slo_ttft ? "TTFT of at most " + duration_text(*x.slo_ttft) : "TTFT";
    case Target::tpot: return x.slo_tpot ? "TPOT of at most " + duration_text(*x.slo_tpot) : "TPOT";
    case Target::budget: return x.budget ? "budget of " + usd_text(x.budget->value()) + "/h" : "budget";
    case Target::request_rate: return x.request_rate ? sig3(x.request_rate->value()) + " requests/s" : "request rate";
    case Target::gpus: return "limit of " + count_text(x.max_gpus, "GPU", "GPUs");
    }
    return {};
}

std::string relaxed_to(Relaxation const& r) {
    switch (r.target) {
    case Target::ttft: return "TTFT of " + duration_text(r.better.speed.ttft.value);
    case Target::tpot: return "TPOT of " + duration_text(r.better.speed.tpot.value);
    case Target::budget: return r.better.per_hour ? usd_text(r.better.per_hour->value()) + "/h" : "no budget";
    case Target::request_rate: return sig3(r.better.requests.value()) + " requests/s";
    case Target::gpus: return count_text(r.better.gpus.count, "GPU", "GPUs");
    }
    return {};
}

/// What holds the best plan where no target does.
std::string physical_bound(SearchGoal goal, SearchPoint const& best, Model const& model) {
    if (goal == SearchGoal::context)
        return best.context >= model.max_context ? "the model's own context of " + grouped(model.max_context.value()) + " tokens"
                                                 : "memory: one request fills the KV cache";
    switch (best.speed.bound_by) {
    case BoundBy::memory: return "memory bandwidth";
    case BoundBy::compute: return "compute";
    case BoundBy::communication: return "communication between GPUs";
    case BoundBy::overhead: return "launches and host work of a step";
    case BoundBy::kv_room: return "room in the KV cache";
    case BoundBy::state_slots: return "state slots";
    case BoundBy::max_num_seqs: return "max-num-seqs";
    }
    return {};
}

/// The layouts of one set side by side.
TextTable judged_table(SearchAnswer const& answer) {
    TextTable t;
    using Align = TextTable::Align;
    t.column("layout", Align::left).column("starts", Align::left).column("weights a GPU").column("KV tokens").column("tok/s, 1 user").column("tok/s, most users").column("$/M then")
        .column("why not, or what was changed", Align::left);
    for (JudgedLayout const& j : answer.judged) {
        std::string why = j.mended;
        if (!j.fit.starts) {
            why = j.fit.engine_message;
            if (j.larger) why += fmt::format("; {} on {} GPUs starts", layout_name(*j.larger), j.larger->gpus_per_replica());
        }
        SearchPoint const* const one = j.speeds.empty() ? nullptr : &j.speeds.front();
        auto const fewer = [](SearchPoint const& a, SearchPoint const& b) { return a.speed.concurrency < b.speed.concurrency; };
        SearchPoint const* const most = j.speeds.empty() ? nullptr : &*std::max_element(j.speeds.begin(), j.speeds.end(), fewer);
        t.row({layout_name(j.layout), j.fit.starts ? "yes" : "no", gib_text(j.fit.weights), j.fit.starts ? grouped(j.fit.kv_tokens.value()) : "",
               one ? detail::with_interval(one->speed.output, one->speed.basis != Basis::measured) : "",
               most ? fmt::format("{} at {}", detail::with_interval(most->speed.output, most->speed.basis != Basis::measured), most->speed.concurrency.value()) : "",
               most && most->per_million_output ? grouped(most->per_million_output->value(), 2) : "", why});
    }
    return t;
}

SearchJson judged_json(JudgedLayout const& j) {
    SearchJson out;
    out["layout"] = layout_name(j.layout);
    out["mended"] = j.mended;
    out["fit"] = fit_to_json(j.fit);
    out["starts_as"] = j.larger ? SearchJson(layout_name(*j.larger)) : SearchJson(nullptr);
    out["starts_on_gpus"] = j.larger ? SearchJson(j.larger->gpus_per_replica()) : SearchJson(nullptr);
    SearchJson speeds = SearchJson::array();
    for (SearchPoint const& p : j.speeds) {
        SearchJson s = speed_to_json(p.speed);
        s["usd_per_million_output_tokens"] = detail::maybe(p.per_million_output);
        speeds.push_back(std::move(s));
    }
    out["speed"] = std::move(speeds);
    return out;
}

/// Plans of the front that a table for people shows: nothing is both faster for a user and cheaper.
std::vector<SearchPoint const*> staircase(std::vector<SearchPoint> const& front) {
    std::vector<SearchPoint const*> out;
    auto const worth = [](SearchPoint const& p) { return p.per_million_output ? -p.per_million_output->value() : p.speed.per_gpu.value.value(); };
    for (bool const priced : {true, false}) {
        double best = -1e300;
        for (SearchPoint const& p : front) { // by falling speed of one user
            if (p.per_million_output.has_value() != priced || worth(p) <= best) continue;
            best = worth(p);
            out.push_back(&p);
        }
        if (!out.empty()) break; // plans without a price are shown where none has one
    }
    return out;
}

std::string csv_of(TextTable const& t) {
    std::string text;
    append_csv_record(text, t.headers());
    for (auto const& r : t.rows()) append_csv_record(text, r);
    return text;
}

struct Asked {
    std::vector<GpuSet> sets;
    SearchTargets targets;
    GoalName goal;
    std::vector<EngineSettings> variants;
    std::vector<Column const*> columns;
    std::optional<Layout> layout;
};

Result<Asked> read_question(Args const& args, Context const& context) {
    Asked q;
    auto goal = asked_goal(args.objective);
    if (!goal) return tl::unexpected<Error>{goal.error()};
    q.goal = *goal;
    auto sets = asked_sets(args, context);
    if (!sets) return tl::unexpected<Error>{sets.error()};
    q.sets = std::move(*sets);
    if (q.sets.empty()) return fail(ErrorCode::bad_usage, "no GPU is left to search", "--gpu", "--include announced,legacy adds those that are not on sale");
    if (args.price && q.sets.size() > 1)
        return fail(ErrorCode::bad_usage, "--price is of one deployment, the search looks at " + std::to_string(q.sets.size()), "--price", "give --price-gpu-hour");
    auto columns = asked_columns(args.columns, {"gpus", "layout", "users", "per-user", "output", "per-gpu", "ttft", "tpot", "per-hour", "per-million", "basis", "changed"});
    if (!columns) return tl::unexpected<Error>{columns.error()};
    q.columns = std::move(*columns);
    auto layout = asked_layout(args);
    if (!layout) return tl::unexpected<Error>{layout.error()};
    q.layout = *layout;
    q.variants = asked_variants(args);
    q.targets.slo_ttft = args.workload.slo_ttft;
    q.targets.slo_tpot = args.workload.slo_tpot;
    q.targets.request_rate = args.workload.request_rate;
    q.targets.goal = q.goal.goal;
    if (args.budget_per_hour) q.targets.budget = UsdPerHour{*args.budget_per_hour};
    if (args.max_gpus) q.targets.max_gpus = static_cast<std::int32_t>(*args.max_gpus);
    auto const fewest = std::min_element(q.sets.begin(), q.sets.end(), [](GpuSet const& a, GpuSet const& b) { return a.count < b.count; });
    if (fewest->count > q.targets.max_gpus)
        return fail(ErrorCode::bad_usage, fmt::format("--max-gpus {} contradicts --gpu: the smallest set named has {}", q.targets.max_gpus, fewest->count), "--max-gpus",
                    "raise it, or name fewer GPUs");
    if (q.targets.slo_tpot && q.targets.slo_tpot->value() <= 0) return fail(ErrorCode::bad_value, "no token takes no time", "--slo-tpot", "expected more than 0");
    if (q.targets.slo_ttft && q.targets.slo_ttft->value() <= 0) return fail(ErrorCode::bad_value, "no first token takes no time", "--slo-ttft", "expected more than 0");
    if (q.targets.budget && q.targets.budget->value() <= 0) return fail(ErrorCode::bad_value, "nothing is to be had for nothing", "--budget", "expected more than 0");
    return q;
}

/// One search of one model.
struct Searched {
    Inputs in;
    SearchAnswer answer;
};

std::optional<Error> search_model(Args const& args, Context const& context, Asked const& q, Progress* progress, Searched& out, bool judge_layouts) {
    Inputs& in = out.in;
    if (auto e = in.read(args, context, Scope::speed, {})) return e;
    std::vector<std::string> ids;
    for (GpuSet const& s : q.sets) ids.push_back(s.gpu.id);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    if (!args.price && !args.price_gpu_hour) {
        auto prices = context.gpu_prices(ids.size() == 1 ? ids : std::vector<std::string>{});
        if (!prices) return prices.error();
        in.gpu_prices = std::move(*prices);
    }
    if (!args.force)
        if (auto mistake = context_mistake(in.model, args.settings, args.workload)) return mistake;
    in.gpus = q.sets.front();
    PlanRequest base = in.request(args, context, false, false);
    base.layout = q.layout;
    Prices const prices{base, in.gpu_prices};
    std::optional<Error> price_error;
    PriceOf const price = [&](GpuSet const& set) -> std::optional<UsdPerHour> {
        auto found = prices(set);
        if (found) return *found;
        if (ids.size() == 1 || args.price || args.price_gpu_hour) price_error = found.error(); // of many GPUs a provider sells some
        return std::nullopt;
    };
    SearchOptions options;
    options.jobs = static_cast<std::int32_t>(args.jobs);
    options.variants = q.variants;
    options.judge_layouts = judge_layouts;
    if (progress != nullptr) options.progress = [&](std::size_t done, std::size_t all) { (*progress)("layouts prepared:", done, all); };
    if (args.json_lines) {
        detail::searching::Run const run{base, q.sets, q.targets, price, options};
        if (price_error) return price_error;
        std::string lines;
        std::optional<Error> failed;
        std::FILE* const file = args.output.empty() || args.output == "-" ? stdout : std::fopen(args.output.c_str(), "wb");
        if (file == nullptr) return Error{ErrorCode::bad_usage, "cannot be written", args.output, "--output wants a file in an existing folder"};
        auto const flush = [&] {
            if (!failed && std::fwrite(lines.data(), 1, lines.size(), file) != lines.size()) failed = Error{ErrorCode::bad_usage, "writing failed", args.output, {}};
            lines.clear();
        };
        run.each([&](detail::searching::Candidate const& c) {
            ++out.answer.plans;
            SweepReplica const& r = run.cell(c);
            Layout l = r.layout();
            l.replicas = c.replicas;
            lines += fmt::format("{{\"model\":{},\"gpu\":\"{}\",\"gpus\":{},\"layout\":\"{}\",\"kv_cache_dtype\":{},\"users\":{},\"ttft_ms\":{:.6g},\"tpot_ms\":{:.6g},"
                                 "\"output_tokens_per_second\":{:.6g},\"output_tokens_per_second_per_user\":{:.6g},\"output_tokens_per_second_per_gpu\":{:.6g},"
                                 "\"requests_per_second\":{:.6g},\"kv_tokens\":{},\"context\":{},\"usd_per_hour\":{},\"usd_per_million_output_tokens\":{},\"basis\":\"{}\",\"meets\":{}}}\n",
                                 SearchJson(in.model.id).dump(), run.set(c).gpu.id, run.set(c).count, layout_name(l), SearchJson(r.settings().kv_cache_dtype.value_or("auto")).dump(),
                                 c.users, in_ms(c.plan.ttft), in_ms(c.plan.tpot), c.plan.output.value(), c.plan.per_user.value(), c.plan.per_gpu.value(),
                                 c.plan.requests.value(), r.fit().kv_tokens.value(), r.context().value(), c.per_hour > 0 ? fmt::format("{:.6g}", c.per_hour) : "null",
                                 c.axes.priced ? fmt::format("{:.6g}", c.axes.per_million) : "null", to_string(c.plan.basis), c.meets());
            if (lines.size() > (std::size_t{1} << 16)) flush();
        });
        flush();
        if (file != stdout) std::fclose(file);
        return failed;
    }
    out.answer = search_plans(base, q.sets, q.targets, price, options);
    return price_error;
}

std::string left_text(SearchAnswer const& a) {
    std::string left;
    for (auto const& [reason, n] : a.left_out) left += fmt::format("{}{} {}", left.empty() ? "" : ", ", grouped(n), reason);
    return left;
}

/// Why nothing starts: the refusal that most layouts met, with numbers where it is memory.
std::string empty_text(Searched const& s, Asked const& q) {
    SearchAnswer const& a = s.answer;
    if (a.layouts == 0) return q.layout ? "The layout " + layout_name(*q.layout) + " does not divide these GPUs.\n" : "These GPUs allow no layout.\n";
    std::string text = "No layout starts here";
    std::int64_t most = 0;
    std::string reason;
    for (auto const& [why, n] : a.left_out)
        if (n > most) most = n, reason = why;
    if (!reason.empty()) text += ": " + reason + " in " + grouped(most) + " of " + grouped(a.layouts);
    text += ".\n";
    Bytes largest{};
    for (GpuSet const& g : q.sets) largest = std::max(largest, g.gpu.visible * g.count);
    StoredBytes const held = stored_bytes(s.in.model);
    text += fmt::format("The checkpoint holds {} (without host tables {}); the largest set here has {} of GPU memory.\n", gb_text(held.total),
                        gb_text(held.total - held[TensorClass::lookup]), gb_text(largest));
    return text;
}

/// The largest model that meets the targets: models by falling size, the first that does.
Result<int> largest_model(Args const& args, Context const& context, Asked const& q) {
    StoreOptions store;
    if (!args.data_dir.empty()) store.data_dirs.push_back(args.data_dir);
    struct Sized {
        std::string name;
        std::int64_t params = 0;
    };
    std::vector<Sized> models;
    Progress progress{true};
    auto const names = words_of(args.models);
    for (auto const& card : detail::list_cards(store)) {
        if (!names.empty() && std::none_of(names.begin(), names.end(), [&](std::string const& n) { return fold_name(n) == fold_name(card.name); })) continue;
        auto m = load_model(card.name, store);
        if (m) models.push_back({card.name, total_params(*m).value()});
    }
    std::stable_sort(models.begin(), models.end(), [](Sized const& a, Sized const& b) { return a.params > b.params; });
    Args one = args;
    std::optional<Searched> larger, found;
    std::string larger_name;
    for (std::size_t i = 0; i < models.size() && !found; ++i) {
        one.model = models[i].name;
        Searched s;
        progress("models searched:", i + 1, models.size());
        if (auto e = search_model(one, context, q, nullptr, s, false)) {
            if (e->code == ErrorCode::bad_value && e->where == "--isl/--osl") continue; // a shorter context than asked
            return tl::unexpected<Error>{*e};
        }
        if (s.answer.best)
            found = std::move(s);
        else if (s.answer.nearest)
            larger = std::move(s);
    }
    std::string text;
    if (args.format == OutputFormat::json) {
        SearchJson j;
        j["schema"] = "servecap.search/1";
        j["objective"] = "largest-model";
        j["model"] = found ? SearchJson(found->in.model.id) : SearchJson(nullptr);
        j["parameters"] = found ? SearchJson(total_params(found->in.model).value()) : SearchJson(nullptr);
        j["best"] = found ? point_json(*found->answer.best) : SearchJson(nullptr);
        j["next_larger"] = SearchJson(nullptr);
        if (larger) {
            j["next_larger"] = {{"model", larger->in.model.id}, {"plan", point_json(*larger->answer.nearest)}, {"misses", SearchJson::array()}};
            for (Target t : larger->answer.missed) j["next_larger"]["misses"].push_back(std::string{to_string(t)});
        }
        text = j.dump(2) + "\n";
    } else {
        auto const size = [](Model const& m) { return large_text(static_cast<double>(total_params(m).value())) + " parameters"; };
        if (found)
            text += fmt::format("Largest model that meets the targets: {} ({})\n{}\n{}\n", found->in.model.display_name, size(found->in.model),
                                place_text(*found->answer.best), figures_text(*found->answer.best));
        else
            text += "No model of the catalogue meets the targets on these GPUs.\n";
        if (larger) {
            text += fmt::format("\nNext larger: {} ({}) misses", larger->in.model.display_name, size(larger->in.model));
            for (std::size_t i = 0; i < larger->answer.missed.size(); ++i) text += (i == 0 ? " the " : ", the ") + target_text(larger->answer.missed[i], q.targets);
            text += fmt::format(": {}, {}\n", place_text(*larger->answer.nearest), figures_text(*larger->answer.nearest));
        }
    }
    auto done = emit(args, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return found ? kAnswered : kNo;
}

} // namespace

Result<int> run_search(Args const& args) {
    auto context = Context::open(args);
    if (!context) return tl::unexpected<Error>{context.error()};
    bool const any_model = fold_name(args.model) == "any" || (args.model.empty() && fold_name(args.objective) == "largest-model");
    if (!any_model)
        if (auto e = model_missing(args)) return tl::unexpected<Error>{*e};
    auto asked = read_question(args, *context);
    if (!asked) return tl::unexpected<Error>{asked.error()};
    Asked const& q = *asked;
    if (any_model) {
        if (!args.objective.empty() && fold_name(args.objective) != "largest-model")
            return fail(ErrorCode::bad_usage, "--model any answers --objective largest-model alone", "--objective", "name a model");
        return largest_model(args, *context, q);
    }
    Searched s;
    {
        Progress progress{true};
        // The layouts of one set are shown side by side.
        if (auto e = search_model(args, *context, q, &progress, s, q.sets.size() == 1)) return tl::unexpected<Error>{*e};
    }
    if (args.json_lines) return s.answer.plans > 0 ? kAnswered : kNo;
    SearchAnswer const& answer = s.answer;
    Model const& model = s.in.model;
    std::string text;
    if (args.format == OutputFormat::json) {
        SearchJson j;
        j["schema"] = "servecap.search/1";
        j["model"] = model.id;
        j["objective"] = q.goal.name;
        j["layouts"] = answer.layouts;
        j["plans"] = answer.plans;
        j["best"] = answer.best ? point_json(*answer.best) : SearchJson(nullptr);
        j["nearest"] = answer.nearest && !answer.best ? point_json(*answer.nearest) : SearchJson(nullptr);
        j["missed"] = SearchJson::array();
        for (Target t : answer.missed) j["missed"].push_back(std::string{to_string(t)});
        j["binding"] = !answer.best              ? SearchJson(nullptr)
                       : answer.relaxations.empty() ? SearchJson(physical_bound(q.goal.goal, *answer.best, model))
                                                    : SearchJson(std::string{to_string(answer.relaxations.front().target)});
        j["relaxations"] = SearchJson::array();
        for (Relaxation const& r : answer.relaxations) j["relaxations"].push_back({{"target", std::string{to_string(r.target)}}, {"factor", r.by}, {"better", point_json(r.better)}});
        j["front"] = SearchJson::array();
        for (SearchPoint const& p : answer.front) j["front"].push_back(point_json(p));
        j["judged"] = SearchJson::array();
        for (JudgedLayout const& l : answer.judged) j["judged"].push_back(judged_json(l));
        j["left_out"] = answer.left_out;
        text = j.dump(2) + "\n";
    } else if (args.format == OutputFormat::csv) {
        std::vector<SearchPoint const*> all;
        for (SearchPoint const& p : answer.front) all.push_back(&p);
        text = csv_of(table_of(all, q.columns));
    } else if (args.format == OutputFormat::svg) {
        return fail(ErrorCode::bad_usage, "search has no chart", "--format", "text, json, jsonl, csv or md");
    } else {
        bool const md = args.format == OutputFormat::md;
        text = fmt::format("{} · {} in / {} out · {} layouts judged, {} plans predicted\n\n", model.display_name, grouped(args.workload.isl.value()),
                           grouped(args.workload.osl.value()), grouped(answer.layouts), grouped(answer.plans));
        if (answer.best) {
            SearchPoint const& b = *answer.best;
            bool const targets = q.targets.limits().any() || q.targets.budget || q.targets.request_rate || args.max_gpus;
            std::string const title = q.goal.goal == SearchGoal::cheapest && !b.per_million_output ? "Most tok/s a GPU (no price is known)" : q.goal.text;
            text += fmt::format("{}{}: {}\n  {}\n", title, targets ? " that meets the targets" : "", place_text(b), figures_text(b));
            if (q.goal.goal == SearchGoal::context) text += fmt::format("  longest request {} tokens\n", grouped(b.context.value()));
            if (q.targets.request_rate) text += fmt::format("  answers up to {} requests/s so\n", sig3(b.requests.value()));
            if (answer.relaxations.empty()) {
                text += fmt::format("  held by {}{}\n", physical_bound(q.goal.goal, b, model), targets ? "; no target alone holds it back" : "");
            } else {
                Relaxation const& r = answer.relaxations.front();
                text += fmt::format("  held by the {}; with {} next better: {}, {}\n", target_text(r.target, q.targets), relaxed_to(r), place_text(r.better), figures_text(r.better));
                for (std::size_t i = 1; i < answer.relaxations.size(); ++i) {
                    Relaxation const& o = answer.relaxations[i];
                    text += fmt::format("  without the {}: with {} {}, {}\n", target_text(o.target, q.targets), relaxed_to(o), place_text(o.better), figures_text(o.better));
                }
            }
            text += "\n";
        } else if (answer.nearest) {
            SearchPoint const& n = *answer.nearest;
            text += fmt::format("Nothing meets the targets. Nearest: {}\n  {}\n  misses", place_text(n), figures_text(n));
            for (std::size_t i = 0; i < answer.missed.size(); ++i) text += (i == 0 ? " the " : ", the ") + target_text(answer.missed[i], q.targets);
            text += "\n\n";
        } else {
            text += empty_text(s, q) + "\n";
        }
        if (!answer.judged.empty()) {
            TextTable const t = judged_table(answer);
            text += "Layouts of " + detail::typed_gpus(q.sets.front()) + "\n\n" + (md ? t.markdown() : t.text()) + "\n";
        }
        std::vector<SearchPoint const*> shown = staircase(answer.front);
        if (!shown.empty()) {
            TextTable const t = table_of(shown, q.columns);
            text += (shown.front()->per_million_output ? std::string{"Faster for a user, or cheaper\n\n"} : std::string{"Faster for a user, or more tok/s a GPU\n\n"}) +
                    (md ? t.markdown() : t.text());
            if (answer.front.size() > shown.size())
                text += fmt::format("\n{} more plans are best in a mix of speed, $/M, tok/s a GPU, context and number of GPUs; --format csv or json lists them.\n",
                                    grouped(static_cast<std::int64_t>(answer.front.size() - shown.size())));
        }
        if (std::string const left = left_text(answer); !left.empty()) text += "\nLeft out: " + left + "\n";
    }
    auto done = emit(args, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return answer.best ? kAnswered : kNo;
}

} // namespace planner
