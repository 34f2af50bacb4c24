// planner: table and compare
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <servecap/io/csv.hpp>
#include <servecap/plan/plan.hpp>
#include <servecap/report/page.hpp>
#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>

#include "context.hpp"
#include "output.hpp"
#include "plan_context.hpp"

namespace planner {

using namespace servecap;
using OJson = nlohmann::ordered_json;

namespace {

std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> out;
    while (!list.empty()) {
        auto const comma = std::min(list.find(','), list.size());
        auto const word = trim(list.substr(0, comma));
        if (!word.empty()) out.emplace_back(word);
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return out;
}

} // namespace

Result<int> run_table(Args const& args) {
    auto const models = split(!args.models.empty() ? args.models : args.model);
    auto const gpus = split(!args.gpus.empty() ? args.gpus : args.gpu);
    if (models.empty()) return fail(ErrorCode::bad_usage, "no models named", "--models", "for example --models kimi-k3.1,deepseek-v4.1-flash-1017");
    if (gpus.empty()) return fail(ErrorCode::bad_usage, "no GPUs named", "--gpus", "for example --gpus b300x8,h200x8");
    auto context = Context::open(args);
    if (!context) return tl::unexpected<Error>{context.error()};
    Args one = args;
    if (one.workload.concurrency.empty()) one.workload.concurrency = {Requests{1}, Requests{16}, Requests{64}};
    TextTable t;
    t.column("model", TextTable::Align::left).column("GPUs", TextTable::Align::left).column("layout", TextTable::Align::left).column("starts", TextTable::Align::left)
        .column("KV tokens").column("users").column("output tok/s").column("80 % interval").column("tok/s a user").column("TTFT ms").column("TPOT ms").column("USD an hour")
        .column("USD/M output").column("USD/M total").column("basis", TextTable::Align::left);
    std::vector<std::string> notes;
    auto const note = [&](std::string s) {
        for (std::size_t i = 0; i < notes.size(); ++i)
            if (notes[i] == s) return;
        notes.push_back(std::move(s));
    };
    bool any = false;
    for (std::string const& m : models)
        for (std::string const& g : gpus) {
            one.model = m;
            one.gpu = g;
            auto owned = plan_for(one, *context, Scope::whole, false);
            if (!owned) return tl::unexpected<Error>{owned.error()};
            Plan const& p = owned->plan;
            std::string starts = p.fit.starts ? "yes" : "no";
            for (Mend const& x : p.mended) starts += (starts == "yes" ? ", with " : " ") + x.flag + " " + x.value;
            if (!p.fit.starts) {
                t.row({p.model->display_name, g, layout_name(p.layout), "no: " + std::string{to_string(p.fit.verdict)}});
                note(p.model->display_name + " on " + g + ": " + p.fit.engine_message);
                continue;
            }
            any = true;
            for (std::size_t i = 0; i < p.speed.size(); ++i) {
                SpeedPoint const& s = p.speed[i];
                bool const priced = i < p.cost.by_concurrency.size();
                t.row({p.model->display_name, g, layout_name(p.layout), starts, grouped(p.fit.kv_tokens.value()), grouped(s.concurrency.value()),
                       grouped(s.output.value.value(), 1), grouped(s.output.low.value(), 0) + "-" + grouped(s.output.high.value(), 0), grouped(s.per_user.value.value(), 1),
                       grouped(in_ms(s.ttft.value), 0), grouped(in_ms(s.tpot.value), 2), p.cost.price ? grouped(p.cost.price->per_hour.value(), 2) : "not known",
                       priced ? grouped(p.cost.by_concurrency[i].output_alone.value.value(), 2) : "not known",
                       priced ? grouped(p.cost.by_concurrency[i].total.value.value(), 2) : "not known", std::string{to_string(s.basis)}});
            }
            for (PlanSource const& s : p.sources) note(s.what + ": " + s.source + (s.date.empty() ? "" : ", " + s.date) + (s.url.empty() ? "" : ", " + s.url));
        }
    std::string text;
    if (args.format == OutputFormat::csv) {
        append_csv_record(text, t.headers());
        for (auto const& r : t.rows()) append_csv_record(text, r);
    } else if (args.format == OutputFormat::json) {
        OJson rows = OJson::array();
        for (auto const& r : t.rows()) {
            OJson row;
            for (std::size_t i = 0; i < r.size(); ++i) row[t.headers()[i]] = r[i].empty() ? OJson(nullptr) : OJson(r[i]);
            rows.push_back(row);
        }
        text = OJson{{"schema", "servecap.table/1"}, {"rows", rows}, {"notes", notes}}.dump(2) + "\n";
    } else {
        bool const md = args.format == OutputFormat::md;
        text = md ? t.markdown() : t.text();
        text += fmt::format("\n{} in / {} out tokens, prices as of {}.\n", grouped(args.workload.isl.value()), grouped(args.workload.osl.value()), context->as_of());
        for (std::size_t i = 0; i < notes.size(); ++i) text += fmt::format("{}{}. {}\n", md && i == 0 ? "\n" : "", i + 1, notes[i]);
    }
    auto done = emit(args, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return any ? kAnswered : kNo;
}

Result<int> run_compare(Args const& args) {
    if (args.positional.size() != 2)
        return fail(ErrorCode::bad_usage, "compare takes two plans", "planner compare", "two JSON files written by planner --format json");
    OJson plan[2];
    for (int i = 0; i < 2; ++i) {
        std::string const& path = args.positional[static_cast<std::size_t>(i)];
        auto text = read_file(path);
        if (!text) return tl::unexpected<Error>{text.error()};
        plan[i] = OJson::parse(*text, nullptr, false);
        if (plan[i].is_discarded() || !plan[i].is_object() || plan[i].value("schema", std::string{}) != "servecap.plan/1")
            return fail(ErrorCode::bad_format, "is no plan", path, "expected JSON of schema servecap.plan/1");
    }
    TextTable t;
    t.column("what", TextTable::Align::left).column("A").column("B").column("B / A");
    OJson rows = OJson::array();
    auto const add = [&](std::string const& name, OJson const& a, OJson const& b) {
        if (a == b) return;
        auto const show = [](OJson const& v) {
            if (v.is_null()) return std::string{"not known"};
            if (v.is_string()) return v.get<std::string>();
            if (v.is_number()) return v.is_number_integer() ? grouped(v.get<std::int64_t>()) : sig3(v.get<double>());
            return v.dump();
        };
        std::string ratio;
        OJson r = nullptr;
        if (a.is_number() && b.is_number() && a.get<double>() != 0) {
            r = b.get<double>() / a.get<double>();
            ratio = fmt::format("{:.3f}", r.get<double>());
        }
        t.row({name, show(a), show(b), ratio});
        rows.push_back({{"what", name}, {"a", a}, {"b", b}, {"ratio", r}});
    };
    auto const at = [](OJson const& j, std::string const& pointer) {
        OJson::json_pointer const p{pointer};
        return j.contains(p) ? j.at(p) : OJson(nullptr);
    };
    for (char const* pointer : {"/model", "/gpu/name", "/gpu/count", "/gpu/nodes", "/engine/name", "/engine/version", "/layout/name", "/fit/verdict", "/fit/engine_message",
                                "/fit/weights_bytes_per_gpu", "/fit/kv_cache_dtype", "/fit/kv_bytes_per_token_per_gpu", "/fit/state_bytes_per_sequence_per_gpu",
                                "/fit/pool_bytes_per_gpu", "/fit/block_tokens", "/fit/num_blocks", "/fit/kv_tokens", "/fit/state_slots", "/fit/max_model_len",
                                "/fit/max_requests_at_max_model_len", "/cost/usd_per_hour", "/cost/setup/usd"})
        add(std::string{pointer}.substr(1), at(plan[0], pointer), at(plan[1], pointer));
    std::vector<std::int64_t> users;
    for (OJson const& s : plan[0].value("speed", OJson::array())) users.push_back(s.value("concurrency", std::int64_t{0}));
    auto const entry = [](OJson const& list, std::int64_t c) -> OJson {
        for (OJson const& s : list)
            if (s.value("concurrency", std::int64_t{-1}) == c) return s;
        return OJson(nullptr);
    };
    for (std::int64_t c : users) {
        OJson const a = entry(plan[0].value("speed", OJson::array()), c), b = entry(plan[1].value("speed", OJson::array()), c);
        if (b.is_null()) continue;
        for (char const* key : {"resident_concurrency", "output_tokens_per_second", "tpot_ms", "ttft_ms", "bound_by", "basis"})
            add(fmt::format("{} at {} users", key, c), a.value(key, OJson(nullptr)), b.value(key, OJson(nullptr)));
        OJson const ca = entry(at(plan[0], "/cost/by_concurrency"), c), cb = entry(at(plan[1], "/cost/by_concurrency"), c);
        if (!ca.is_null() && !cb.is_null())
            add(fmt::format("usd_per_million_output_tokens at {} users", c), ca.value("usd_per_million_output_tokens", OJson(nullptr)),
                cb.value("usd_per_million_output_tokens", OJson(nullptr)));
    }
    std::string text;
    if (args.format == OutputFormat::json)
        text = OJson{{"schema", "servecap.compare/1"}, {"differences", rows}}.dump(2) + "\n";
    else if (args.format == OutputFormat::csv) {
        append_csv_record(text, t.headers());
        for (auto const& r : t.rows()) append_csv_record(text, r);
    } else
        text = t.empty() ? "The plans are the same.\n" : args.format == OutputFormat::md ? t.markdown() : t.text();
    auto done = emit(args, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return kAnswered;
}

} // namespace planner
