// planner: the plan itself, fit, predict and explain
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include <servecap/io/csv.hpp>
#include <servecap/io/plan_json.hpp>
#include <servecap/report/deploy.hpp>
#include <servecap/report/explain.hpp>
#include <servecap/report/page.hpp>
#include <servecap/report/plan_charts.hpp>
#include <servecap/report/prometheus.hpp>

#include "context.hpp"
#include "output.hpp"
#include "plan_context.hpp"

namespace planner {

using namespace servecap;

namespace {

/// The speed table of a plan, one record a concurrency.
std::string speed_csv(Plan const& p) {
    std::string out;
    append_csv_record(out, std::vector<std::string>{"model", "gpu", "n_gpus", "engine", "layout", "isl", "osl", "concurrency", "resident_concurrency", "ttft_ms",
                                                    "ttft_ms_low", "ttft_ms_high", "tpot_ms", "tpot_ms_low", "tpot_ms_high", "output_tokens_per_second",
                                                    "output_tokens_per_second_low", "output_tokens_per_second_high", "output_tokens_per_second_per_user",
                                                    "usd_per_million_output_tokens", "bound_by", "basis"});
    auto const n = [](double x) { return fmt::format("{:.7g}", x); };
    for (std::size_t i = 0; i < p.speed.size(); ++i) {
        SpeedPoint const& s = p.speed[i];
        append_csv_record(out, std::vector<std::string>{
                                   p.model->id, p.gpus.gpu.id, std::to_string(p.gpus.count), std::string{to_string(p.planned.engine)}, layout_name(p.layout),
                                   std::to_string(s.isl.value()), std::to_string(s.osl.value()), std::to_string(s.concurrency.value()),
                                   std::to_string(s.resident.value()), n(in_ms(s.ttft.value)), n(in_ms(s.ttft.low)), n(in_ms(s.ttft.high)), n(in_ms(s.tpot.value)),
                                   n(in_ms(s.tpot.low)), n(in_ms(s.tpot.high)), n(s.output.value.value()), n(s.output.low.value()), n(s.output.high.value()),
                                   n(s.per_user.value.value()), i < p.cost.by_concurrency.size() ? n(p.cost.by_concurrency[i].output_alone.value.value()) : "",
                                   std::string{to_string(s.bound_by)}, std::string{to_string(s.basis)}});
    }
    return out;
}

std::string fit_csv(StartPlan const& f) {
    std::string out = "verdict,starts,fits,weights_bytes_per_gpu,pool_bytes_per_gpu,block_tokens,num_blocks,kv_tokens,kv_tokens_low,kv_tokens_high,state_slots,"
                      "max_model_len,max_requests_at_max_model_len,basis,engine_message\n";
    append_csv_record(out, std::vector<std::string>{
                               std::string{to_string(f.verdict)}, f.starts ? "yes" : "no", f.fits ? "yes" : "no", std::to_string(f.weights.value()),
                               std::to_string(f.pool.value()), std::to_string(f.block_tokens.value()), std::to_string(f.num_blocks), std::to_string(f.kv_tokens.value()),
                               std::to_string(f.kv_tokens_low.value()), std::to_string(f.kv_tokens_high.value()), f.state_slots ? std::to_string(*f.state_slots) : "",
                               std::to_string(f.max_model_len.value()), fmt::format("{:.6g}", f.max_requests_at_max_model_len), std::string{to_string(f.basis)},
                               f.engine_message});
    return out;
}

Result<int> show(Args const& a, std::string const& text, int status) {
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return status;
}

/// The plan that the command line asks for.
Result<int> with_plan(Args const& a, bool money, int (*status)(Plan const&), std::string (*text)(Args const&, Plan const&)) {
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    auto owned = plan_for(a, *context, money ? Scope::whole : Scope::speed);
    if (!owned) return tl::unexpected<Error>{owned.error()};
    return show(a, text(a, owned->plan), status(owned->plan));
}

bool misses_target(Plan const& p) {
    if (!p.workload.slo_ttft && !p.workload.slo_tpot) return false;
    for (SpeedPoint const& s : p.speed)
        if ((!p.workload.slo_ttft || s.ttft.value <= *p.workload.slo_ttft) && (!p.workload.slo_tpot || s.tpot.value <= *p.workload.slo_tpot)) return false;
    return true;
}

int plan_status(Plan const& p) { return p.fit.starts && !p.for_fix && !misses_target(p) ? kAnswered : kNo; }

} // namespace

Result<int> run_plan(Args const& a) {
    if (!a.emit.empty()) {
        auto context = Context::open(a);
        if (!context) return tl::unexpected<Error>{context.error()};
        auto owned = plan_for(a, *context, Scope::whole);
        if (!owned) return tl::unexpected<Error>{owned.error()};
        DeployOptions const options{a.image};
        auto file = a.emit == "compose" ? compose_file(owned->plan, options) : kubernetes_manifests(owned->plan, options);
        if (!file) {
            complain(file.error());
            return kNo;
        }
        return show(a, *file, plan_status(owned->plan));
    }
    return with_plan(a, true, plan_status, [](Args const& args, Plan const& p) -> std::string {
        switch (args.format) {
        case OutputFormat::json: return plan_to_json(p).dump(2) + "\n";
        case OutputFormat::csv: return speed_csv(p);
        case OutputFormat::md: return markdown_page(p);
        case OutputFormat::svg: return svg_chart(speed_chart(p));
        case OutputFormat::prometheus: return prometheus_text(p);
        case OutputFormat::text: break;
        }
        return terminal_page(p, page_style(args));
    });
}

Result<int> run_predict(Args const& a) {
    return with_plan(a, false, plan_status, [](Args const& args, Plan const& p) -> std::string {
        switch (args.format) {
        case OutputFormat::json: {
            detail::OrderedJson j;
            j["schema"] = std::string{kPlanSchema};
            auto const whole = plan_to_json(p);
            for (char const* key : {"model", "gpu", "engine", "layout", "mended", "for_fix", "fit", "speed", "as_of", "inferred", "warnings", "sources"})
                j[key] = whole[key];
            return j.dump(2) + "\n";
        }
        case OutputFormat::csv: return speed_csv(p);
        case OutputFormat::md: return markdown_speed(p);
        case OutputFormat::svg: return svg_chart(speed_chart(p));
        case OutputFormat::prometheus: return prometheus_text(p);
        case OutputFormat::text: break;
        }
        return speed_page(p, page_style(args));
    });
}

Result<int> run_explain(Args const& a) {
    return with_plan(a, true, plan_status, [](Args const& args, Plan const& p) -> std::string {
        auto const lines = explain_plan(p);
        if (args.format == OutputFormat::json) {
            detail::OrderedJson j = detail::OrderedJson::array();
            for (Explanation const& e : lines)
                j.push_back({{"stage", e.stage}, {"name", e.name}, {"value", e.value}, {"formula", e.formula}, {"basis", std::string{to_string(e.basis)}}, {"source", e.source}});
            return j.dump(2) + "\n";
        }
        TextTable t;
        t.column("what", TextTable::Align::left).column("value").column("basis", TextTable::Align::left).column("formula and inputs", TextTable::Align::left)
            .column("source", TextTable::Align::left);
        if (args.format == OutputFormat::csv) {
            std::string out;
            append_csv_record(out, std::vector<std::string>{"stage", "name", "value", "basis", "formula", "source"});
            for (Explanation const& e : lines)
                append_csv_record(out, std::vector<std::string>{e.stage, e.name, e.value, std::string{to_string(e.basis)}, e.formula, e.source});
            return out;
        }
        std::string stage, out = plan_headline(p) + "\n";
        auto const flush = [&] {
            if (!t.empty()) out += args.format == OutputFormat::md ? t.markdown() : t.text("  ");
        };
        for (Explanation const& e : lines) {
            if (e.stage != stage) {
                flush();
                t = TextTable{};
                t.column("what", TextTable::Align::left).column("value").column("basis", TextTable::Align::left).column("formula and inputs", TextTable::Align::left)
                    .column("source", TextTable::Align::left);
                stage = e.stage;
                out += (args.format == OutputFormat::md ? "\n## " : "\n") + stage + "\n\n";
            }
            t.row({e.name, e.value, std::string{to_string(e.basis)}, e.formula, e.source});
        }
        flush();
        return out;
    });
}

Result<int> run_fit(Args const& a) {
    auto context = Context::open(a);
    if (!context) return tl::unexpected<Error>{context.error()};
    auto owned = plan_for(a, *context, Scope::fit);
    if (!owned) return tl::unexpected<Error>{owned.error()};
    Plan const& p = owned->plan;
    std::string text;
    switch (a.format) {
    case OutputFormat::json: {
        auto const whole = plan_to_json(p);
        detail::OrderedJson j;
        for (char const* key : {"schema", "model", "gpu", "engine", "layout", "command", "fit", "inferred", "warnings", "sources"}) j[key] = whole[key];
        text = j.dump(2) + "\n";
        break;
    }
    case OutputFormat::csv: text = fit_csv(p.fit); break;
    case OutputFormat::md: text = markdown_page(p); break;
    case OutputFormat::svg: return fail(ErrorCode::bad_usage, "fit has no chart", "--format", "text, json, csv, md or prometheus");
    case OutputFormat::prometheus: text = prometheus_text(p); break;
    case OutputFormat::text: text = fit_page(p, page_style(a)); break;
    }
    return show(a, text, p.fit.starts ? kAnswered : kNo);
}

} // namespace planner
