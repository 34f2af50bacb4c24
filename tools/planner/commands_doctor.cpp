// planner: doctor
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <servecap/engine/doctor.hpp>
#include <servecap/engine/engine.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/startup_csv.hpp>
#include <servecap/io/startup_log.hpp>
#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>

#include "context.hpp"
#include "output.hpp"

namespace planner {

using namespace servecap;
using OJson = nlohmann::ordered_json;

namespace {

/// The row as CSV text with its header.
Result<std::string> as_csv(StartupRow const& row) { return startup_row_csv(row, {}, "standard output"); }

/// The terms that a log states, where there is no prediction to hold them against.
std::vector<DoctorTerm> stated_terms(ObservedStart const& seen) {
    std::vector<DoctorTerm> terms = diagnose(seen, StartPlan{}).terms;
    std::erase_if(terms, [](DoctorTerm const& t) { return term_text(t, true) == "-"; });
    return terms;
}

} // namespace

Result<int> run_doctor(Args const& a) {
    if (a.positional.empty()) return fail(ErrorCode::bad_usage, "no log named", "planner doctor", "a file with the engine's start-up log, or - for standard input");
    auto seen = read_startup_log(a.positional[0]);
    if (!seen) return tl::unexpected<Error>{seen.error()};
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};

    std::string const model_name = !a.model.empty() ? a.model : model_hint(*seen);
    std::optional<Model> model;
    std::string why;
    if (model_name.empty()) {
        why = "the log names no model; give --model";
    } else {
        auto m = context->model(model_name);
        if (m)
            model = std::move(*m);
        else if (!a.model.empty())
            return tl::unexpected<Error>{m.error()};
        else
            why = "the log's model '" + model_name + "' is not in the catalogue; give --model";
    }
    Layout layout = layout_of(*seen);
    std::optional<GpuSet> gpus;
    if (!a.gpu.empty()) {
        auto set = context->gpu_set(a.gpu);
        if (!set) return tl::unexpected<Error>{set.error()};
        gpus = std::move(*set);
    } else {
        std::string name = seen->gpu;
        Gpu const* gpu = name.empty() ? nullptr : find_gpu(name, context->gpus());
        if (gpu == nullptr) {
            auto const candidates = gpu_candidates(*seen, context->gpus());
            if (!candidates.empty()) gpu = find_gpu(candidates.front(), context->gpus());
        }
        if (gpu != nullptr) {
            GpuSet set;
            set.gpu = *gpu;
            set.count = layout.gpus_per_replica();
            set.nodes = static_cast<std::int32_t>(ceil_div(set.count, std::max(1, gpu->node_gpus)));
            gpus = set;
        } else {
            why += std::string{why.empty() ? "" : "; "} + "the GPU cannot be told from the log; give --gpu";
        }
    }
    std::optional<Diagnosis> diagnosis;
    std::optional<StartPlan> plan;
    if (model && gpus) {
        StartRequest request{.model = *model, .gpus = *gpus, .layout = layout, .settings = settings_of(*seen)};
        request.date = seen->date.size() == 10 ? std::string_view{seen->date} : std::string_view{};
        plan = plan_start(request);
        diagnosis = diagnose(*seen, *plan);
    }
    StartupRow const row = startup_row(*seen, model ? model->id : model_name, gpus ? gpus->gpu.id : seen->gpu, gpus ? gpus->count : 0);
    if (!a.learn.empty())
        if (auto done = learn_startup(a.learn, row); !done) return tl::unexpected<Error>{done.error()};

    std::string text;
    if (a.format == OutputFormat::json) {
        OJson j;
        j["engine"] = row.engine.empty() ? OJson(nullptr) : OJson(row.engine);
        j["engine_version"] = row.engine_version.empty() ? OJson(nullptr) : OJson(row.engine_version);
        j["model"] = row.model;
        j["gpu"] = row.gpu;
        j["layout"] = layout_name(layout);
        j["stage"] = std::string{to_string(seen->stage)};
        j["starts"] = seen->starts ? OJson(*seen->starts) : OJson(nullptr);
        j["error"] = seen->error.empty() ? OJson(nullptr) : OJson(seen->error);
        j["lines"] = seen->lines;
        j["notes"] = seen->notes;
        if (!why.empty()) j["not_compared"] = why;
        if (!diagnosis) {
            OJson terms = OJson::array();
            for (DoctorTerm const& t : stated_terms(*seen)) terms.push_back({{"term", std::string{t.name}}, {"observed", term_text(t, true)}, {"predicted", nullptr}});
            j["terms"] = terms;
        }
        if (diagnosis) {
            OJson terms = OJson::array();
            for (DoctorTerm const& t : diagnosis->terms)
                terms.push_back({{"term", std::string{t.name}}, {"observed", term_text(t, true)}, {"predicted", term_text(t, false)}, {"differs", t.differs}});
            j["terms"] = terms;
            j["culprit"] = diagnosis->culprit ? OJson(std::string{diagnosis->terms[*diagnosis->culprit].name}) : OJson(nullptr);
            j["explanation"] = diagnosis->explanation;
            j["findings"] = diagnosis->findings;
            j["agrees"] = diagnosis->agrees;
        }
        auto csv = as_csv(row);
        if (!csv) return tl::unexpected<Error>{csv.error()};
        auto table = read_csv_table(*csv, "row");
        OJson r;
        if (table && !table->rows.empty())
            for (std::size_t i = 0; i < table->header.size(); ++i)
                if (!table->rows[0][i].empty()) r[table->header[i]] = table->rows[0][i];
        j["row"] = r;
        text = j.dump(2) + "\n";
    } else if (a.format == OutputFormat::csv) {
        auto csv = as_csv(row);
        if (!csv) return tl::unexpected<Error>{csv.error()};
        text = *csv;
    } else {
        text = fmt::format("{} {} · {} on {} · {} · {} lines read, stage: {}\n", row.engine.empty() ? "unknown engine" : row.engine, row.engine_version,
                           row.model.empty() ? "unknown model" : row.model, row.gpu.empty() ? "unknown GPU" : fmt::format("{} x {}", row.n_gpus.value_or(1), row.gpu),
                           layout_name(layout), grouped(seen->lines), to_string(seen->stage));
        if (!seen->error.empty()) text += "The engine said: " + seen->error + "\n";
        for (std::string const& n : seen->notes) text += "Note: " + n + "\n";
        if (diagnosis) {
            TextTable t;
            t.column("term", TextTable::Align::left).column("log").column("predicted").column("off").column("", TextTable::Align::left);
            for (DoctorTerm const& x : diagnosis->terms)
                t.row({std::string{x.name}, term_text(x, true), term_text(x, false), x.observed && x.predicted && *x.observed != 0 ? fmt::format("{:+.1f} %", x.relative() * 100) : "",
                       x.differs ? "differs" : ""});
            text += "\n" + (a.format == OutputFormat::md ? t.markdown() : t.text());
            if (diagnosis->culprit) text += "\nDiffers most: " + std::string{diagnosis->terms[*diagnosis->culprit].name} + ". ";
            if (!diagnosis->explanation.empty()) text += diagnosis->explanation;
            text += "\n";
            for (std::string const& f : diagnosis->findings) text += "- " + f + "\n";
            if (plan)
                for (Fix const& f : plan->fixes)
                    if (seen->starts && !*seen->starts) text += "Way out: " + f.flag + " " + f.value + ": " + f.effect + "\n";
        } else {
            TextTable t;
            t.column("term", TextTable::Align::left).column("log");
            for (DoctorTerm const& x : stated_terms(*seen)) t.row({std::string{x.name}, term_text(x, true)});
            if (!t.empty()) text += "\n" + (a.format == OutputFormat::md ? t.markdown() : t.text()) + "\n";
            text += "Not compared: " + why + "\n";
        }
        if (!a.learn.empty()) text += "Appended to " + a.learn + "\n";
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return diagnosis && !diagnosis->agrees ? kNo : kAnswered;
}

} // namespace planner
