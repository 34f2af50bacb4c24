// planner: validate benchmarks, and calibrate
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"
#include "validation.hpp"

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include <servecap/io/csv.hpp>
#include <servecap/perf/fit.hpp>
#include <servecap/perf/validate.hpp>

#include "context.hpp"
#include "output.hpp"

namespace planner {

using namespace servecap;
using OJson = nlohmann::ordered_json;

namespace {

/// Models by the name that rows use, each parsed once; null where it is not known.
class ModelCache {
public:
    explicit ModelCache(Context const& context) : context_{&context} {}
    Model const* operator()(std::string_view name) {
        auto const at = models_.find(name);
        if (at != models_.end()) return at->second.get();
        auto m = context_->model(name);
        return models_.emplace(std::string{name}, m ? std::make_unique<Model>(std::move(*m)) : nullptr).first->second.get();
    }

private:
    Context const* context_;
    std::map<std::string, std::unique_ptr<Model>, std::less<>> models_;
};

OJson group_json(SpeedGroupScore const& g) {
    OJson j;
    for (std::size_t q = 0; q < kSpeedQuantities; ++q) j[std::string{to_string(static_cast<SpeedQuantity>(q))}] = score_json(g.quantity[q]);
    return j;
}

void score_rows(TextTable& t, std::string const& name, SpeedGroupScore const& g) {
    for (std::size_t q = 0; q < kSpeedQuantities; ++q)
        score_row(t, (name.empty() ? "" : name + " ") + std::string{to_string(static_cast<SpeedQuantity>(q))}, g.quantity[q]);
}

std::string results_csv(SpeedScores const& scores) {
    std::string out;
    append_csv_record(out, std::vector<std::string>{"file", "line", "model", "precision", "gpu", "n_gpus", "engine", "engine_version", "spec_method", "isl", "osl", "concurrency",
                                                    "quantity", "actual", "predicted", "low", "high", "basis", "in_sample"});
    auto const n = [](double x) { return fmt::format("{:.7g}", x); };
    for (SpeedResult const& r : scores.results) {
        BenchmarkRow const& row = *r.row->speed.row;
        for (std::size_t q = 0; q < kSpeedQuantities; ++q) {
            auto const& c = r.compared[q];
            if (!c) continue;
            append_csv_record(out, std::vector<std::string>{row.origin.file, std::to_string(row.origin.line), row.model, row.precision, row.gpu, std::to_string(row.n_gpus), row.engine,
                                                            row.engine_version, row.spec_method, row.isl ? n(*row.isl) : "", row.osl ? n(*row.osl) : "",
                                                            row.concurrency ? n(*row.concurrency) : "", std::string{to_string(static_cast<SpeedQuantity>(q))}, n(c->actual),
                                                            n(c->predicted), n(c->low), n(c->high), std::string{to_string(r.basis)}, r.in_sample ? "yes" : ""});
        }
    }
    return out;
}

} // namespace

Result<int> validate_benchmark_rows(Args const& a) {
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    ModelCache models{*context};
    ModelLookup const find = [&](std::string_view name) { return models(name); };
    auto catalogue = context->benchmarks({});
    if (!catalogue) return tl::unexpected<Error>{catalogue.error()};
    std::vector<BenchmarkRow> outside;
    for (std::size_t i = 1; i < a.positional.size(); ++i) {
        auto text = read_file(a.positional[i]);
        if (!text) return tl::unexpected<Error>{text.error()};
        auto more = read_benchmarks(*text, a.positional[i], {{}, &context->names(), false});
        if (!more) return tl::unexpected<Error>{more.error()};
        outside.insert(outside.end(), more->begin(), more->end());
    }
    CalibrationRows const known = prepare_rows(*catalogue, find, context->gpus(), false);
    SpeedScoring how;
    how.model = find;
    how.gpus = context->gpus();
    SpeedScores scores;
    CalibrationRows given; // the scores point into it
    if (a.positional.size() > 1) { // rows from outside are predicted with everything that the catalogue has
        auto coefficients = context->coefficients();
        if (!coefficients) return tl::unexpected<Error>{coefficients.error()};
        how.coefficients = [&](std::int32_t) { return *coefficients; };
        given = prepare_rows(outside, find, context->gpus(), false);
        scores = validate_speed(given, known, how, [](CalibrationRow const&) { return true; });
    } else { // the catalogue's own: coefficients and evidence of the other groups
        CalibrationRows const teaching = prepare_rows(*catalogue, find, context->gpus(), true);
        auto fit = SpeedFit::make(teaching);
        if (!fit) return tl::unexpected<Error>{fit.error()};
        std::map<std::string, std::int32_t> group_of;
        for (std::size_t i = 0; i < teaching.groups.size(); ++i) group_of[teaching.groups[i]] = static_cast<std::int32_t>(i);
        how.coefficients = [&](std::int32_t group) {
            auto const at = group < 0 ? group_of.end() : group_of.find(known.groups[static_cast<std::size_t>(group)]);
            return at == group_of.end() ? fit->coefficients() : fit->coefficients_without(at->second);
        };
        how.leave_rows = a.leave_rows;
        scores = validate_speed(known, known, how, [&](CalibrationRow const& c) { return a.all_rows || is_plain_row(c); });
    }
    if (!a.rows.empty()) {
        Args file = a;
        file.output = a.rows;
        if (auto done = emit(file, results_csv(scores)); !done) return tl::unexpected<Error>{done.error()};
    }
    std::int64_t in_sample = 0;
    for (SpeedResult const& r : scores.results) in_sample += r.in_sample ? 1 : 0;
    std::int64_t refused = 0;
    for (auto const& [reason, n] : scores.refused) refused += n;
    auto const scored = static_cast<std::int64_t>(scores.results.size());
    std::string text;
    if (a.format == OutputFormat::json) {
        OJson j;
        j["rows"] = scored + refused;
        j["scored"] = scored;
        j["refused"] = scores.refused;
        j["in_sample"] = in_sample;
        j.update(group_json(scores.all));
        if (!a.by.empty())
            for (auto const& [key, group] : scores_by(scores, a.by)) j["by"][key] = group_json(group);
        text = j.dump(2) + "\n";
    } else {
        bool const md = a.format == OutputFormat::md;
        TextTable t;
        score_columns(t, "quantity");
        score_rows(t, "", scores.all);
        text = fmt::format("{} rows scored{}{}\n\n", scored, in_sample > 0 ? fmt::format(", {} of them in the catalogue (in-sample)", in_sample) : "", refused_text(scores.refused));
        text += md ? t.markdown() : t.text();
        if (!a.by.empty()) {
            TextTable g;
            score_columns(g, a.by);
            for (auto const& [key, group] : scores_by(scores, a.by)) score_row(g, key, group.quantity[0]);
            text += "\nTPOT by " + a.by + "\n\n" + (md ? g.markdown() : g.text());
        }
        TextTable w;
        score_columns(w, "worst groups, TPOT");
        for (auto const& [key, group] : worst_groups(scores)) score_row(w, key, group.quantity[0]);
        if (!w.empty()) text += "\n" + (md ? w.markdown() : w.text());
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return scored > 0 ? kAnswered : kNo;
}

Result<int> run_calibrate(Args const& a) {
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    ModelCache models{*context};
    ModelLookup const find = [&](std::string_view name) { return models(name); };
    auto rows = context->benchmarks({});
    if (!rows) return tl::unexpected<Error>{rows.error()};
    CalibrationRows const teaching = prepare_rows(*rows, find, context->gpus(), true);
    auto fit = SpeedFit::make(teaching);
    if (!fit) return tl::unexpected<Error>{fit.error()};
    auto const coefficients = fit->coefficients();
    if (!a.out_file.empty()) {
        std::string csv = "name,value,sd\n";
        for (Coefficient const& c : coefficients) append_csv_record(csv, std::vector<std::string>{c.name, fmt::format("{:.12g}", c.value), fmt::format("{:.6g}", c.sd)});
        Args file = a;
        file.output = a.out_file;
        if (auto done = emit(file, csv); !done) return tl::unexpected<Error>{done.error()};
    }
    // Errors by leaving out one group (model x GPU x engine) at a time.
    CalibrationRows const known = prepare_rows(*rows, find, context->gpus(), false);
    std::map<std::string, std::int32_t> group_of;
    for (std::size_t i = 0; i < teaching.groups.size(); ++i) group_of[teaching.groups[i]] = static_cast<std::int32_t>(i);
    SpeedScoring how;
    how.model = find;
    how.gpus = context->gpus();
    how.coefficients = [&](std::int32_t group) {
        auto const at = group < 0 ? group_of.end() : group_of.find(known.groups[static_cast<std::size_t>(group)]);
        return at == group_of.end() ? coefficients : fit->coefficients_without(at->second);
    };
    SpeedScores const scores = validate_speed(known, known, how, [](CalibrationRow const& c) { return is_plain_row(c); });
    std::string text;
    if (a.format == OutputFormat::json) {
        OJson j;
        j["rows_used"] = teaching.rows.size();
        j["coefficients"] = coefficients.size();
        j["leave_one_group_out"] = group_json(scores.all);
        for (char const* key : {"model", "gpu", "engine", "precision", "class", "concurrency"})
            for (auto const& [name, group] : scores_by(scores, key)) j["by"][key][name] = group_json(group);
        for (auto const& [name, group] : worst_groups(scores)) j["worst_groups"][name] = group_json(group);
        text = j.dump(2) + "\n";
    } else {
        bool const md = a.format == OutputFormat::md;
        auto const put = [&](TextTable const& t) { text += (md ? t.markdown() : t.text()) + "\n"; };
        std::map<std::string, std::int64_t> refused;
        for (RefusedRow const& r : teaching.refused) ++refused[r.reason.substr(0, r.reason.find(':'))];
        text = fmt::format("{} rows teach {} coefficients{}\n\nLeave one group out (model x GPU x engine), rows without speculation:\n\n", teaching.rows.size(), coefficients.size(),
                           refused_text(refused));
        TextTable t;
        score_columns(t, "quantity");
        score_rows(t, "", scores.all);
        put(t);
        for (char const* key : {"model", "gpu", "engine", "precision", "class", "concurrency"}) {
            if (!a.by.empty() && a.by != key) continue;
            TextTable g;
            score_columns(g, std::string{"TPOT by "} + key);
            for (auto const& [name, group] : scores_by(scores, key)) score_row(g, name, group.quantity[0]);
            put(g);
        }
        TextTable w;
        score_columns(w, "ten worst groups, TPOT");
        for (auto const& [name, group] : worst_groups(scores)) score_row(w, name, group.quantity[0]);
        put(w);
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return kAnswered;
}

} // namespace planner
