// planner: validate startups
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"
#include "validation.hpp"

#include <map>
#include <memory>
#include <string>

#include <servecap/engine/validate_startups.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/report/table.hpp>

#include "context.hpp"
#include "output.hpp"

namespace planner {

using namespace servecap;
using OJson = nlohmann::ordered_json;

namespace {

OJson starts_json(StartsScore const& s) {
    OJson j;
    j["n"] = s.n;
    j["accuracy"] = rounded(s.accuracy);
    j["missed_failures"] = s.missed_failures;
    j["false_alarms"] = s.false_alarms;
    j["missed_by_kind"] = s.missed_by_kind;
    j["other_kinds"] = {{"n", s.other_n}, {"right", s.other_right}};
    return j;
}

OJson group_json(StartupGroupScore const& g) {
    OJson j;
    for (std::size_t q = 0; q < kStartupQuantities; ++q) j[std::string{to_string(static_cast<StartupQuantity>(q))}] = score_json(g.quantity[q]);
    j["starts"] = starts_json(g.starts);
    return j;
}

std::string results_csv(StartupScores const& scores) {
    std::string out;
    append_csv_record(out, std::vector<std::string>{"id", "engine", "engine_version", "model", "gpu", "tp", "max_model_len", "max_num_seqs", "date", "refused", "verdict_actual",
                                                    "verdict_predicted", "kv_tokens_actual", "kv_tokens_predicted", "kv_tokens_low", "kv_tokens_high", "block_size_actual",
                                                    "block_size_predicted", "weights_gib_actual", "weights_gib_predicted", "pool_gib_actual", "pool_gib_predicted", "message"});
    for (StartupResult const& r : scores.results) {
        StartupRow const& row = *r.row;
        auto const actual = [&](StartupQuantity q) { auto const& c = r.compared[static_cast<std::size_t>(q)]; return c ? fmt::format("{:.7g}", c->actual) : std::string{}; };
        auto const ours = [&](StartupQuantity q) { auto const& c = r.compared[static_cast<std::size_t>(q)]; return c ? fmt::format("{:.7g}", c->predicted) : std::string{}; };
        auto const& kv = r.compared[0];
        append_csv_record(out, std::vector<std::string>{
                                   row.id, row.engine, row.engine_version, row.model, row.gpu, row.tp ? std::to_string(*row.tp) : "",
                                   row.max_model_len ? std::to_string(row.max_model_len->value()) : "", row.max_num_seqs ? std::to_string(row.max_num_seqs->value()) : "", row.date,
                                   r.refused, row.verdict, r.refused.empty() ? std::string{to_string(r.plan.verdict)} : "", actual(StartupQuantity::kv_tokens),
                                   ours(StartupQuantity::kv_tokens), kv ? fmt::format("{:.7g}", kv->low) : "", kv ? fmt::format("{:.7g}", kv->high) : "",
                                   actual(StartupQuantity::block_size), ours(StartupQuantity::block_size), actual(StartupQuantity::weights), ours(StartupQuantity::weights),
                                   row.available_kv_per_gpu ? fmt::format("{:.4g}", in_gib(*row.available_kv_per_gpu)) : "",
                                   r.refused.empty() ? fmt::format("{:.4g}", in_gib(r.plan.pool)) : "", r.plan.engine_message});
    }
    return out;
}

} // namespace

Result<int> validate_startup_rows(Args const& a) {
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    std::vector<StartupRow> rows;
    if (a.positional.size() > 1) {
        for (std::size_t i = 1; i < a.positional.size(); ++i) {
            auto text = read_file(a.positional[i]);
            if (!text) return tl::unexpected<Error>{text.error()};
            auto more = read_startups(*text, a.positional[i], {{}, &context->names(), false});
            if (!more) return tl::unexpected<Error>{more.error()};
            rows.insert(rows.end(), more->begin(), more->end());
        }
    } else {
        auto all = context->startups({});
        if (!all) return tl::unexpected<Error>{all.error()};
        rows = std::move(*all);
    }
    // Models are parsed once each; a name that is not known stays null.
    std::map<std::string, std::unique_ptr<Model>, std::less<>> models;
    StartupCatalogue catalogue;
    catalogue.model = [&](std::string_view name) -> Model const* {
        auto const at = models.find(name);
        if (at != models.end()) return at->second.get();
        auto m = context->model(name);
        return models.emplace(std::string{name}, m ? std::make_unique<Model>(std::move(*m)) : nullptr).first->second.get();
    };
    catalogue.gpu = [&](std::string_view name) { return find_gpu(name, context->gpus()); };
    StartupScores const scores = validate_startups(rows, catalogue, {.given_pool = a.given_pool});
    if (!a.rows.empty()) {
        Args file = a;
        file.output = a.rows;
        if (auto done = emit(file, results_csv(scores)); !done) return tl::unexpected<Error>{done.error()};
    }
    // The others start from a guess of the version or of the flag, so they say more about the row than about the rules.
    StartupGroupScore const stated = score_startups(std::span<StartupResult const>{scores.results}, [](StartupResult const& r) {
        return r.version_known && r.utilization_known;
    });
    std::string text;
    if (a.format == OutputFormat::json) {
        OJson j = group_json(scores.all);
        j["kv_tokens_settings_stated"] = score_json(stated.quantity[0]);
        OJson head;
        head["rows"] = scores.all.rows;
        head["scored"] = scores.all.scored;
        head["refused"] = scores.refused;
        head["given_pool"] = a.given_pool;
        head.update(j);
        if (!a.by.empty())
            for (auto const& [key, group] : scores_by(scores, a.by)) head["by"][key] = group_json(group);
        text = head.dump(2) + "\n";
    } else {
        TextTable t;
        score_columns(t, "quantity");
        for (std::size_t q = 0; q < kStartupQuantities; ++q) score_row(t, std::string{to_string(static_cast<StartupQuantity>(q))}, scores.all.quantity[q]);
        score_row(t, "kv_tokens, version and utilization stated", stated.quantity[0]);
        StartsScore const& s = scores.all.starts;
        text = fmt::format("{} rows, {} scored{}{}\n\n", scores.all.rows, scores.all.scored, a.given_pool ? ", pool as given" : "", refused_text(scores.refused));
        text += a.format == OutputFormat::md ? t.markdown() : t.text();
        text += fmt::format("\nStarts or not: {:.1f} % right of {}, {} missed failures, {} false alarms; {} of {} refusals of unnamed kinds right.\n", s.accuracy, s.n,
                            s.missed_failures, s.false_alarms, s.other_right, s.other_n);
        if (!a.by.empty()) {
            TextTable g;
            score_columns(g, a.by);
            for (auto const& [key, group] : scores_by(scores, a.by)) score_row(g, key + " kv_tokens", group.quantity[0]);
            text += "\n" + (a.format == OutputFormat::md ? g.markdown() : g.text());
        }
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return scores.all.scored > 0 ? kAnswered : kNo;
}

Result<int> run_validate(Args const& a) {
    if (a.positional.empty()) return fail(ErrorCode::bad_usage, "validate what?", "planner validate", "startups or benchmarks, and a CSV (none: the catalogue's own rows)");
    if (a.positional[0] == "startups") return validate_startup_rows(a);
    if (a.positional[0] == "benchmarks") return validate_benchmark_rows(a);
    return fail(ErrorCode::unknown_name, "unknown rows '" + a.positional[0] + "'", "planner validate", "expected startups or benchmarks");
}

} // namespace planner
