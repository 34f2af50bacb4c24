// planner: table and compare
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <servecap/io/csv.hpp>
#include <servecap/plan/plan.hpp>
#include <servecap/report/page.hpp>
#include <servecap/report/plan_charts.hpp>
#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>

#include "context.hpp"
#include "output.hpp"
#include "plan_context.hpp"

namespace planner {

using namespace servecap;
using OJson = nlohmann::ordered_json;

namespace {

/// A column of the table. `in_text`: for people; `in_data`: in CSV and JSON, without thousands and with the interval in two.
struct TableColumn {
    char const* id;
    char const* header;
    TextTable::Align align;
    bool in_text, in_data;
};
constexpr auto kLeft = TextTable::Align::left;
constexpr auto kRight = TextTable::Align::right;
/// In this order, whatever is asked; --columns picks and orders.
constexpr std::array kColumns{TableColumn{"model", "model", kLeft, true, true},
                              TableColumn{"gpus", "GPUs", kLeft, true, true},
                              TableColumn{"layout", "layout", kLeft, true, true},
                              TableColumn{"starts", "starts", kLeft, true, true},
                              TableColumn{"kv_tokens", "KV cache, tokens", kRight, true, true},
                              TableColumn{"users", "users", kRight, true, true},
                              TableColumn{"output_tokens_per_second", "output tok/s", kRight, true, true},
                              TableColumn{"interval", "output tok/s, 80 %", kRight, true, false},
                              TableColumn{"output_tokens_per_second_low", "", kRight, false, true},
                              TableColumn{"output_tokens_per_second_high", "", kRight, false, true},
                              TableColumn{"output_tokens_per_second_per_user", "output tok/s a user", kRight, true, true},
                              TableColumn{"ttft_ms", "TTFT, ms", kRight, true, true},
                              TableColumn{"tpot_ms", "TPOT, ms", kRight, true, true},
                              TableColumn{"usd_per_hour", "USD/h", kRight, true, true},
                              TableColumn{"usd_per_million_output_tokens", "USD/M output", kRight, true, true},
                              TableColumn{"usd_interval", "USD/M output, 80 %", kRight, true, false},
                              TableColumn{"usd_per_million_output_tokens_low", "", kRight, false, true},
                              TableColumn{"usd_per_million_output_tokens_high", "", kRight, false, true},
                              TableColumn{"usd_per_million_total_tokens", "USD/M total", kRight, true, true},
                              TableColumn{"basis", "basis", kLeft, true, true},
                              TableColumn{"notes", "notes", kLeft, true, true}};

std::size_t column_at(std::string_view id) {
    for (std::size_t i = 0; i < kColumns.size(); ++i)
        if (id == kColumns[i].id) return i;
    return 0;
}

/// A row by columns: as people read it and as a value.
struct TableRow {
    std::array<std::string, kColumns.size()> text;
    std::array<OJson, kColumns.size()> raw;

    TableRow& set(std::string_view id, std::string s) {
        std::size_t const c = column_at(id);
        raw[c] = s;
        text[c] = std::move(s);
        return *this;
    }
    TableRow& set(std::string_view id, double v, int decimals) {
        std::size_t const c = column_at(id);
        raw[c] = v;
        text[c] = grouped(v, decimals);
        return *this;
    }
    TableRow& set_text(std::string_view id, std::string s) {
        text[column_at(id)] = std::move(s);
        return *this;
    }
};

/// The columns of --columns in the order asked; all of them without it. "interval" goes with its rate.
Result<std::vector<std::size_t>> shown_columns(std::string_view asked) {
    std::vector<std::size_t> out;
    auto const words = words_of(asked);
    if (words.empty())
        for (std::size_t i = 0; i < kColumns.size(); ++i) out.push_back(i);
    std::vector<std::string> ids;
    for (TableColumn const& c : kColumns)
        if (c.in_data) ids.emplace_back(c.id);
    for (std::string const& w : words) {
        std::string const want = fold_name(w);
        std::size_t const before = out.size();
        for (std::size_t i = 0; i < kColumns.size(); ++i)
            if (fold_name(kColumns[i].id) == want || (kColumns[i].in_text && fold_name(kColumns[i].header) == want)) out.push_back(i);
        if (out.size() == before) {
            std::string hint = did_you_mean(w, ids);
            if (hint.empty()) {
                hint = "known: ";
                for (std::size_t i = 0; i < ids.size(); ++i) hint += (i > 0 ? ", " : "") + ids[i];
            }
            return fail(ErrorCode::unknown_name, "no column '" + w + "'", "--columns", hint);
        }
    }
    return out;
}

/// The sources of a plan, one line each: of the speed, the rows of one publisher together.
std::vector<std::string> source_notes(Plan const& p) {
    std::vector<std::string> out;
    struct Group {
        std::string source, first, last, url;
        int n = 0;
    };
    std::vector<Group> speeds;
    for (PlanSource const& s : p.sources) {
        if (s.what != "speed") {
            out.push_back(s.what + ": " + s.source + (s.date.empty() ? "" : ", " + s.date) + (s.url.empty() ? "" : ", " + s.url));
            continue;
        }
        auto g = std::find_if(speeds.begin(), speeds.end(), [&](Group const& x) { return x.source == s.source; });
        if (g == speeds.end()) g = speeds.insert(g, {s.source, s.date, s.date, s.url, 0});
        g->first = std::min(g->first, s.date);
        g->last = std::max(g->last, s.date);
        ++g->n;
    }
    for (Group const& g : speeds)
        out.push_back(fmt::format("speed: {}{}{}{}", g.source, g.first.empty() ? "" : g.first == g.last ? ", " + g.first : ", " + g.first + " to " + g.last,
                                  g.url.empty() ? "" : ", " + g.url, g.n > 1 ? fmt::format(" and {} more pages", g.n - 1) : ""));
    return out;
}

/// One node of every GPU that is on sale (with --include also others).
std::vector<std::string> every_node(Args const& args, Context const& context) {
    std::vector<std::string> out;
    std::string const include = to_lower(args.include);
    for (Gpu const& g : context.gpus()) {
        bool const wanted = g.status == Availability::available || (g.status == Availability::legacy && include.find("legacy") != std::string::npos) ||
                            (g.status == Availability::announced && include.find("announced") != std::string::npos);
        if (wanted) out.push_back(fmt::format("{}x{}", g.id, g.node_gpus));
    }
    return out;
}

} // namespace

Result<int> run_table(Args const& args) {
    auto const models = words_of(!args.models.empty() ? args.models : args.model);
    auto gpus = words_of(!args.gpus.empty() ? args.gpus : args.gpu);
    if (models.empty()) return fail(ErrorCode::bad_usage, "no models named", "--models", "for example --models kimi-k3.1,deepseek-v4.1-flash-1017");
    if (gpus.empty()) return fail(ErrorCode::bad_usage, "no GPUs named", "--gpus", "for example --gpus b300x8,h200x8");
    auto context = Context::open(args);
    if (!context) return tl::unexpected<Error>{context.error()};
    if (std::any_of(gpus.begin(), gpus.end(), [](std::string const& g) { return fold_name(g) == "any"; })) gpus = every_node(args, *context);
    // A name that is wrong is wrong for the whole table; what one pair cannot do is said in its row.
    for (std::string const& m : models)
        if (auto model = context->model(m); !model) return tl::unexpected<Error>{model.error()};
    for (std::string const& g : gpus)
        if (auto set = context->gpu_set(g); !set) return tl::unexpected<Error>{set.error()};
    auto const shown = shown_columns(args.columns);
    if (!shown) return tl::unexpected<Error>{shown.error()};
    std::optional<std::size_t> sort_by;
    if (!args.sort.empty()) {
        auto const one = shown_columns(args.sort);
        if (!one) {
            Error e = one.error();
            e.where = "--sort";
            return tl::unexpected<Error>{std::move(e)};
        }
        sort_by = one->front();
    }
    Args one = args;
    if (one.workload.concurrency.empty()) one.workload.concurrency = {Requests{1}, Requests{16}, Requests{64}};
    std::vector<TableRow> rows;
    std::vector<std::string> notes;
    std::vector<CostLine> lines;
    auto const note = [&](std::string s) {
        auto const at = static_cast<std::size_t>(std::find(notes.begin(), notes.end(), s) - notes.begin());
        if (at == notes.size()) notes.push_back(std::move(s));
        return std::to_string(at + 1);
    };
    bool any = false;
    for (std::string const& m : models)
        for (std::string const& g : gpus) {
            one.model = m;
            one.gpu = g;
            auto owned = plan_for(one, *context, Scope::whole, false);
            if (!owned) {
                if (models.size() * gpus.size() == 1) return tl::unexpected<Error>{owned.error()};
                TableRow r;
                r.set("model", m).set("gpus", g).set("starts", "not planned");
                r.set("notes", note(m + " on " + g + ": " + to_line(owned.error())));
                rows.push_back(std::move(r));
                continue;
            }
            Plan const& p = owned->plan;
            std::string refs;
            auto const refer = [&](std::string s) {
                std::string const n = note(std::move(s));
                refs += (refs.empty() ? "" : " ") + n;
            };
            std::string starts = p.fit.starts && !p.for_fix ? "yes" : "no";
            for (Mend const& x : p.mended) starts += (starts == "yes" ? ", with " : " ") + x.flag + " " + x.value;
            if (p.for_fix) starts += ": " + std::string{to_string(p.as_asked.verdict)} + "; the rest is for the fix";
            TableRow base;
            base.set("model", p.model->display_name).set("gpus", g).set("layout", layout_name(p.layout));
            if (!p.fit.starts) {
                refer(p.model->display_name + " on " + g + ": " + p.fit.engine_message);
                base.set("starts", "no: " + std::string{to_string(p.fit.verdict)}).set("notes", refs);
                rows.push_back(std::move(base));
                continue;
            }
            any = true;
            for (std::string const& x : source_notes(p)) refer(x);
            for (std::string const& w : p.warnings) refer(w.starts_with("Licence: ") ? p.model->display_name + ": " + w.substr(9) : w);
            if (!p.cost.price) refer("no price of " + g + ": " + p.cost.missing);
            base.set("starts", starts).set("kv_tokens", static_cast<double>(p.fit.kv_tokens.value()), 0);
            base.set("notes", refs);
            if (p.cost.price) {
                base.set("usd_per_hour", p.cost.price->per_hour.value(), 2);
                lines.push_back({p.model->display_name + ", " + g, p.cost.by_concurrency});
            } else {
                for (char const* c : {"usd_per_hour", "usd_per_million_output_tokens", "usd_interval", "usd_per_million_total_tokens"}) base.set_text(c, "not known");
            }
            for (std::size_t i = 0; i < p.speed.size(); ++i) {
                SpeedPoint const& s = p.speed[i];
                TableRow r = base;
                r.set("users", static_cast<double>(s.concurrency.value()), 0).set("output_tokens_per_second", s.output.value.value(), 1);
                r.set("output_tokens_per_second_low", s.output.low.value(), 0).set("output_tokens_per_second_high", s.output.high.value(), 0);
                r.set_text("interval", grouped(s.output.low.value(), 0) + "-" + grouped(s.output.high.value(), 0));
                r.set("output_tokens_per_second_per_user", s.per_user.value.value(), 1).set("ttft_ms", in_ms(s.ttft.value), 0).set("tpot_ms", in_ms(s.tpot.value), 2);
                if (i < p.cost.by_concurrency.size()) {
                    CostPoint const& c = p.cost.by_concurrency[i];
                    r.set("usd_per_million_output_tokens", c.output_alone.value.value(), 2).set("usd_per_million_total_tokens", c.total.value.value(), 2);
                    r.set("usd_per_million_output_tokens_low", c.output_alone.low.value(), 2).set("usd_per_million_output_tokens_high", c.output_alone.high.value(), 2);
                    r.set_text("usd_interval", grouped(c.output_alone.low.value(), 2) + "-" + grouped(c.output_alone.high.value(), 2));
                }
                r.set("basis", std::string{to_string(s.basis)});
                rows.push_back(std::move(r));
            }
        }
    if (sort_by)
        std::stable_sort(rows.begin(), rows.end(), [&](TableRow const& x, TableRow const& y) {
            OJson const &a = x.raw[*sort_by], &b = y.raw[*sort_by];
            if (a.is_null() || b.is_null()) return !a.is_null() && b.is_null(); // what is not known comes last
            return a < b;
        });
    std::string text;
    std::string const workload = fmt::format("{} in / {} out tokens, prices as of {}", grouped(args.workload.isl.value()), grouped(args.workload.osl.value()), context->as_of());
    if (args.format == OutputFormat::csv) {
        std::vector<std::string> record;
        for (std::size_t c : *shown)
            if (kColumns[c].in_data) record.emplace_back(kColumns[c].id);
        append_csv_record(text, record);
        for (TableRow const& r : rows) {
            record.clear();
            for (std::size_t c : *shown)
                if (kColumns[c].in_data)
                    record.push_back(r.raw[c].is_null() ? std::string{} : r.raw[c].is_string() ? r.raw[c].get<std::string>() : fmt::format("{:.7g}", r.raw[c].get<double>()));
            append_csv_record(text, record);
        }
    } else if (args.format == OutputFormat::json) {
        OJson list = OJson::array();
        for (TableRow const& r : rows) {
            OJson row;
            for (std::size_t c : *shown)
                if (kColumns[c].in_data) row[kColumns[c].id] = r.raw[c];
            list.push_back(row);
        }
        text = OJson{{"schema", "servecap.table/1"}, {"isl", args.workload.isl.value()}, {"osl", args.workload.osl.value()}, {"as_of", context->as_of()}, {"rows", list}, {"notes", notes}}
                   .dump(2) + "\n";
    } else if (args.format == OutputFormat::svg) {
        std::string prices;
        for (std::string const& n : notes)
            if (n.starts_with("price: ")) prices += (prices.empty() ? "Prices: " : "; ") + n.substr(7);
        text = svg_chart(cost_chart("Cost of a million output tokens by users at once", lines, workload + ". " + prices));
    } else {
        bool const md = args.format == OutputFormat::md;
        TextTable t;
        for (std::size_t c : *shown)
            if (kColumns[c].in_text) t.column(kColumns[c].header, kColumns[c].align);
        for (TableRow const& r : rows) {
            std::vector<std::string> cells;
            for (std::size_t c : *shown)
                if (kColumns[c].in_text) cells.push_back(r.text[c]);
            t.row(std::move(cells));
        }
        text = (md ? t.markdown() : t.text()) + "\n" + workload + "; 80 %: the interval that holds that share.\n";
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
