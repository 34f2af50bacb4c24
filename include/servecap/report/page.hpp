// servecap: a plan as one page for a terminal, and as Markdown
// SPDX-License-Identifier: Apache-2.0
//
// In the order of the questions: does it start, what fills the memory, how many requests fit, how fast,
// what it costs, when it beats the API, what to do next. Every number has its unit and, where it is not
// exact arithmetic, the basis in brackets. Bars and colour are for terminals only.

#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/core/text.hpp>
#include <servecap/plan/plan.hpp>
#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>

namespace servecap {

/// How a page is drawn.
struct PageStyle {
    bool colour = false;
    bool bars = false;
    bool explain = false; ///< show the terms of each step
    std::size_t width = 100;
};

namespace detail {

/// Wraps words to `width` columns; lines after the first begin with `indent`.
inline std::string wrapped(std::string_view text, std::size_t width, std::string_view indent) {
    std::string out;
    std::size_t column = indent.size();
    std::size_t at = 0;
    bool first = true;
    while (at < text.size()) {
        std::size_t const end = std::min(text.find(' ', at), text.size());
        std::string_view const word = text.substr(at, end - at);
        std::size_t const w = display_width(word);
        if (!first && column + 1 + w > width) {
            out += "\n";
            out += indent;
            column = indent.size();
        } else if (!first) {
            out += " ";
            ++column;
        }
        out += word;
        column += w;
        first = false;
        at = end + 1;
    }
    return out;
}

class Paint {
public:
    explicit Paint(bool on) : on_{on} {}
    [[nodiscard]] std::string bold(std::string_view s) const { return code("1", s); }
    [[nodiscard]] std::string good(std::string_view s) const { return code("32;1", s); }
    [[nodiscard]] std::string bad(std::string_view s) const { return code("31;1", s); }
    [[nodiscard]] std::string dim(std::string_view s) const { return code("2", s); }

private:
    [[nodiscard]] std::string code(std::string_view c, std::string_view s) const {
        if (!on_) return std::string{s};
        return "\x1b[" + std::string{c} + "m" + std::string{s} + "\x1b[0m";
    }
    bool on_;
};

/// A bar of eighth blocks, `share` of `cells` long.
inline std::string bar(double share, int cells) {
    static constexpr std::string_view eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int const n = std::clamp(static_cast<int>(std::lround(share * cells * 8)), 0, cells * 8);
    std::string s;
    for (int i = 0; i < n / 8; ++i) s += "█";
    return s + std::string{eighths[n % 8]};
}

/// "A line", then padding so that `tag` ends at `width`.
inline std::string tagged(std::string line, std::string_view tag, std::size_t width) {
    if (tag.empty()) return line;
    std::size_t const used = display_width(line) + display_width(tag);
    line += used + 2 < width ? std::string(width - used, ' ') : "  ";
    return line + std::string{tag};
}

inline std::string basis_tag(Basis b) { return "[" + std::string{to_string(b)} + "]"; }

/// "2,073" or "540 (470-610)".
inline std::string with_interval(Interval<TokensPerSecond> const& i, bool show) {
    if (!show || i.low == i.high) return sig3(i.value.value());
    return sig3(i.value.value()) + " (" + sig3(i.low.value()) + "-" + sig3(i.high.value()) + ")";
}

inline std::string gpus_text(GpuSet const& s) {
    return grouped(static_cast<std::int64_t>(s.count)) + " x " + s.gpu.short_name + " (" + count_text(s.nodes, "node", "nodes") + ")";
}

/// The model as somebody would type it: without the organisation.
inline std::string typed_model(Model const& m) {
    auto const slash = m.id.rfind('/');
    return to_lower(slash == std::string::npos ? m.id : m.id.substr(slash + 1));
}

/// "b300x8": the common form of an id goes without its suffix.
inline std::string typed_gpus(GpuSet const& s) {
    std::string id = s.gpu.id;
    if (id.ends_with("-sxm")) id.resize(id.size() - 4);
    if (s.count == 1) return id;
    return id.ends_with('x') ? fmt::format("{}x{}", s.count, id) : fmt::format("{}x{}", id, s.count);
}

/// The engine as its makers write it.
inline std::string_view engine_text(EngineKind e) noexcept {
    constexpr std::string_view names[] = {"vLLM", "SGLang", "TensorRT-LLM", "llama.cpp"};
    return names[static_cast<std::size_t>(e)];
}

/// "kv_room" -> "KV room".
inline std::string bound_text(BoundBy b) {
    switch (b) {
    case BoundBy::kv_room: return "KV room";
    case BoundBy::state_slots: return "state slots";
    case BoundBy::max_num_seqs: return "max-num-seqs";
    default: return std::string{to_string(b)};
    }
}

inline std::string api_text(ApiTariff const& t) {
    // Cents, and more digits only where cents would hide the price: 0.20, 10.00, 0.0028.
    auto const price = [](UsdPerMillionTokens x) {
        double const v = x.value();
        return std::fabs(v * 100 - std::round(v * 100)) < 1e-6 || v >= 1 ? fmt::format("{:.2f}", v) : fmt::format("{:.3g}", v);
    };
    return fmt::format("{} API{} ({} in, {} cached, {} out{})", t.model, t.provider.empty() ? "" : " of " + t.provider, price(t.input),
                       t.cached_input_known ? price(t.cached_input) : std::string{"as input"}, price(t.output),
                       t.date.empty() ? "" : ", " + t.date);
}

/// "given", or "median of 6 providers (Nebius, RunPod), on-demand, 2026-09-19".
inline std::string price_text(PriceChoice const& p) {
    if (p.basis == Basis::assumed) return "given";
    return fmt::format("{}, {}, {}", p.source, p.kind, p.date.empty() ? "undated" : p.date);
}

} // namespace detail

/// Lines of the head of a page, shared by the terminal page and Markdown: what is planned.
inline std::string plan_headline(Plan const& p) {
    return fmt::format("{} on {} · {}{}, {} · {} in / {} out", p.model->display_name, detail::gpus_text(p.gpus), detail::engine_text(p.planned.engine),
                       p.fit.rules_version.empty() ? "" : " " + p.fit.rules_version, layout_name(p.layout), grouped(p.workload.isl.value()),
                       grouped(p.workload.osl.value()));
}

/// The verdict in words: first the engine's own, then the way out.
inline std::vector<std::string> verdict_lines(Plan const& p) {
    std::vector<std::string> out;
    auto const how = [](StartPlan const& f) {
        switch (f.verdict) {
        case Verdict::weights_do_not_fit:
            return fmt::format("no: the weights do not fit, short by {} a GPU", gib_text(f.shortfall));
        case Verdict::no_kv_memory: return std::string{"no: no memory is left for the KV cache"};
        case Verdict::max_model_len_too_long: return std::string{"no: one request of max-model-len does not fit the KV cache"};
        case Verdict::state_slots_too_few: return std::string{"no: more sequences than state slots"};
        case Verdict::free_memory_below_request: return std::string{"no: less memory is free than the engine is asked to take"};
        case Verdict::layout_invalid: return std::string{"no: the layout does not divide the model"};
        case Verdict::unsupported: return std::string{"no: this engine does not serve this model here"};
        case Verdict::starts: break;
        }
        return std::string{"yes"};
    };
    if (p.as_asked.starts) {
        out.emplace_back("yes, as asked");
        return out;
    }
    if (!p.mended.empty() && p.fit.starts) {
        std::string flags;
        for (Mend const& m : p.mended) flags += (flags.empty() ? "" : " ") + m.flag + (m.value.empty() ? "" : " " + m.value);
        if (p.for_fix) {
            out.push_back(how(p.as_asked));
            if (!p.as_asked.engine_message.empty()) out.push_back(p.as_asked.engine_message);
            out.push_back("It would start with " + flags + ". What follows is for that.");
        } else {
            out.push_back("with " + flags + ". With the engine's defaults it would stop:");
            out.push_back(p.mended.front().avoids);
        }
        return out;
    }
    out.push_back(how(p.as_asked));
    if (!p.as_asked.engine_message.empty()) out.push_back(p.as_asked.engine_message);
    for (Fix const& f : p.as_asked.fixes) {
        out.push_back("Way out: " + f.flag + (f.value.empty() ? "" : " " + f.value) + (f.effect.empty() ? "" : ": " + f.effect));
        if (out.size() > 4) break;
    }
    return out;
}

namespace detail {

/// Writes the sections of a page one after another.
class PageWriter {
public:
    PageWriter(Plan const& plan, PageStyle const& style) : p_{plan}, style_{style}, paint_{style.colour} {}

    void headline() { out_ += paint_.bold(plan_headline(p_)) + "\n\n"; }

    /// Does it start: the engine's words, then the way out.
    void verdict() {
        auto const lines = verdict_lines(p_);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            std::string tag;
            if (!p_.mended.empty() && i + 1 == lines.size() && !p_.for_fix) tag = basis_tag(p_.mended.front().basis);
            if (i == 0 && p_.as_asked.starts) tag = basis_tag(p_.fit.basis);
            field(i == 0 ? "Starts" : "", lines[i], tag);
        }
        for (std::string const& r : p_.fit.risks) field("", "Risk: " + r);
        out_ += "\n";
    }

    /// What fills the memory of one GPU, and what it holds.
    void memory() {
        StartPlan const& f = p_.fit;
        Bytes const card = p_.gpus.gpu.memory_reported.value_or(p_.gpus.gpu.visible);
        field("Memory", f.budget.utilization > 0
                            ? fmt::format("{} a GPU, {} may use {:.2f} of the {} that it sees", gib_text(card), engine_text(p_.planned.engine), f.budget.utilization,
                                          gib_text(p_.gpus.gpu.visible))
                            : fmt::format("{} a GPU, of which the runtime sees {}", gib_text(card), gib_text(p_.gpus.gpu.visible)));
        double const whole = static_cast<double>(std::max<std::int64_t>(1, card.value()));
        auto const part = [&](std::string_view name, Bytes b, std::string_view note) {
            std::string line = fmt::format("  {:<11}{:>10}", name, gib_text(b));
            if (style_.bars) line += "  " + bar(static_cast<double>(b.value()) / whole, 52);
            if (!note.empty()) line += "  " + std::string{note};
            out_ += line + "\n";
        };
        bool const has_pool = f.pool.value() > 0;
        part("weights", f.weights, f.host_bytes.value() > 0 ? gib_text(f.host_bytes) + " more in host memory" : std::string{});
        Bytes const working = f.budget.activation + f.budget.non_torch + f.budget.cuda_graph;
        if (has_pool) {
            part(f.state_slots ? "KV + state" : "KV cache", f.pool, "");
            part("working", working, "activations, NCCL, CUDA graphs");
            Bytes const left = card - f.weights - f.pool - working;
            if (left.value() > 0) part("kept free", left, "");
        } else if (f.shortfall.value() > 0) {
            part("short by", f.shortfall, "before any KV cache");
        }
        if (has_pool && f.kv_tokens.value() > 0) holds();
    }

    /// The table of speeds, with $/M where a price is known.
    void speed() {
        if (p_.speed.empty()) return;
        bool const priced = p_.cost.price.has_value();
        TextTable t;
        t.column("Users").column("output tok/s").column("tok/s a user").column("TTFT").column("TPOT");
        if (priced) t.column("$/M output");
        t.column("bound by", TextTable::Align::left).column("", TextTable::Align::left);
        for (std::size_t i = 0; i < p_.speed.size(); ++i) {
            SpeedPoint const& s = p_.speed[i];
            bool const wide = s.output.low < s.output.high && s.basis != Basis::measured;
            std::string users = grouped(s.concurrency.value());
            if (s.resident < s.concurrency) users += " (" + grouped(s.resident.value()) + " at once)";
            std::vector<std::string> cells{users, with_interval(s.output, wide), with_interval(s.per_user, wide), duration_text(s.ttft.value),
                                           duration_text(s.tpot.value)};
            if (priced) cells.push_back(i < p_.cost.by_concurrency.size() ? grouped(p_.cost.by_concurrency[i].output_alone.value.value(), 2) : "");
            cells.push_back(bound_text(s.bound_by));
            cells.push_back(basis_tag(s.basis) + (s.extrapolated ? " extrapolated" : "") + (s.saturated.value_or(false) ? " saturated" : ""));
            t.row(std::move(cells));
        }
        out_ += "\n" + t.text();
        if (p_.speed.front().ttft_p90)
            for (SpeedPoint const& s : p_.speed)
                out_ += fmt::format("{}: TTFT p90 {}, p99 {}\n", count_text(s.concurrency.value(), "user", "users"), duration_text(*s.ttft_p90),
                                    s.ttft_p99 ? duration_text(*s.ttft_p99) : "not known");
        if (p_.for_fix) out_ += "These speeds and costs are for the fix, not for what was asked.\n";
        if (style_.explain) terms();
    }

    void money() {
        out_ += "\n";
        if (p_.cost.price) {
            PriceChoice const& price = *p_.cost.price;
            std::string line = fmt::format("{} an hour ({})", usd_text(price.per_hour.value()), price_text(price));
            if (price.low < price.high)
                line += fmt::format(", {} providers from {} to {}", price.rows.size(), usd_text(price.low.value()), usd_text(price.high.value()));
            if (p_.cost.setup_usd)
                line += fmt::format(" · setup {}: {} download, {} start [{}]", usd_text(p_.cost.setup_usd->value.value()),
                                    duration_text(p_.cost.setup.download.value), duration_text(p_.cost.setup.start.value), to_string(p_.cost.setup.basis));
            field("Cost", line);
        } else {
            field("Cost", "not known: " + (p_.cost.missing.empty() ? std::string{"no price; give --price or --price-gpu-hour"} : p_.cost.missing));
        }
        bool first = true;
        for (BreakEven const& b : p_.break_even) {
            std::string line = "against " + api_text(b.against) + ": ";
            if (!b.crossings.empty())
                line += fmt::format("{} output + {} input tokens a month; ", large_text(b.million_output * 1e6), large_text(b.million_input * 1e6));
            line += b.reason;
            constexpr std::string_view reach[] = {"[reachable]", "[not reachable]", "[not known]"};
            field(first ? "Break-even" : "", line, reach[static_cast<std::size_t>(b.reachable)]);
            first = false;
        }
        if (p_.break_even.empty() && !p_.break_even_missing.empty()) field("Break-even", "not known: " + p_.break_even_missing);
    }

    void next(bool whole_plan) {
        out_ += "\n";
        if (!p_.command.empty() && p_.fit.starts) command();
        std::string const what = fmt::format("--model {} --gpu {}", typed_model(*p_.model), typed_gpus(p_.gpus));
        if (whole_plan) {
            field("Next", fmt::format("planner search --model {} --gpu any --slo-tpot 30   cheaper or faster ways", typed_model(*p_.model)));
            field("", "planner explain " + what + "   every number and its source");
        } else {
            field("Next", "planner " + what + "   speed, cost and break-even too");
        }
        bool first = true;
        for (std::string const& w : p_.warnings) {
            field(first ? "Notes" : "", w);
            first = false;
        }
    }

    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    /// A labelled paragraph; `tag` ends at the right margin.
    void field(std::string_view name, std::string const& text, std::string_view tag = {}) {
        std::string const label = std::string{name} + std::string(name.size() < kLabel ? kLabel - name.size() : 1, ' ');
        auto const lines = wrapped(text, style_.width - (tag.empty() ? 0 : tag.size() + 2), std::string(kLabel, ' '));
        auto const cut = lines.rfind('\n');
        std::string line = lines;
        if (!tag.empty()) {
            std::size_t const used = (cut == std::string::npos ? label.size() : 0) +
                                     display_width(cut == std::string::npos ? std::string_view{lines} : std::string_view{lines}.substr(cut + 1)) +
                                     display_width(tag);
            line += (used + 2 < style_.width ? std::string(style_.width - used, ' ') : std::string{"  "}) + paint_.dim(tag);
        }
        out_ += paint_.bold(label) + line + "\n";
    }

    void holds() {
        StartPlan const& f = p_.fit;
        std::string tokens = grouped(f.kv_tokens.value()) + " tokens of KV cache" + (p_.layout.dp > 1 ? " a DP rank" : p_.layout.replicas > 1 ? " a replica" : "");
        if (f.basis == Basis::measured && p_.blind && p_.blind->kv_tokens.value() > 0) {
            double const gap = static_cast<double>(p_.blind->kv_tokens.value()) / static_cast<double>(f.kv_tokens.value()) - 1;
            tokens += fmt::format(" (the model alone says {}, {:+.1f} %)", grouped(p_.blind->kv_tokens.value()), gap * 100);
        } else if (f.kv_tokens_low < f.kv_tokens_high) {
            tokens += fmt::format(" (80 %: {} to {})", grouped(f.kv_tokens_low.value()), grouped(f.kv_tokens_high.value()));
        }
        field("Holds", tokens, basis_tag(f.basis));
        double const full = f.max_requests_at_max_model_len;
        std::string requests = fmt::format("{} of {} tokens", full >= 10 ? grouped(std::floor(full), 0) + " requests" : fmt::format("{:.2f} requests", full),
                                           grouped(f.max_model_len.value()));
        if (f.state_slots) requests += fmt::format(" · {} state slots", grouped(*f.state_slots));
        field("", requests + fmt::format(" · {} sequences at most{}", grouped(f.max_num_seqs.value()), p_.layout.dp > 1 ? " a rank" : ""));
        std::string each = fmt::format("{} a token", bytes_text(f.kv_per_token));
        if (f.fixed_per_sequence.value() > 0) each += fmt::format(", {} a sequence for windows", bytes_text(f.fixed_per_sequence));
        if (f.state_per_sequence.value() > 0) each += fmt::format(", {} a sequence for recurrent state", bytes_text(f.state_per_sequence));
        field("", each + " on each GPU, KV " + f.kv_cache_dtype);
        if (!p_.measured_note.empty()) field("", p_.measured_note);
    }

    void terms() {
        for (SpeedPoint const& s : p_.speed) {
            if (s.decode_terms.empty() && s.prefill_terms.empty()) continue;
            out_ += fmt::format("\nTerms at {}:\n", count_text(s.concurrency.value(), "user", "users"));
            TextTable e;
            e.column("step", TextTable::Align::left).column("term", TextTable::Align::left).column("ms").column("formula", TextTable::Align::left);
            for (SpeedTerm const& x : s.decode_terms) e.row({"decode", std::string{x.name}, fmt::format("{:.3f}", in_ms(x.time)), x.formula});
            for (SpeedTerm const& x : s.prefill_terms) e.row({"prefill", std::string{x.name}, fmt::format("{:.3f}", in_ms(x.time)), x.formula});
            out_ += e.text("  ");
        }
    }

    /// The line to paste, broken at blanks with backslashes.
    void command() {
        std::string broken, line;
        for (std::size_t at = 0; at < p_.command.size();) {
            std::size_t const end = std::min(p_.command.find(' ', at), p_.command.size());
            std::string const word = p_.command.substr(at, end - at);
            if (!line.empty() && kLabel + line.size() + 1 + word.size() > style_.width - 2) {
                broken += line + " \\\n" + std::string(kLabel + 2, ' ');
                line = word;
            } else {
                line += (line.empty() ? "" : " ") + word;
            }
            at = end + 1;
        }
        out_ += paint_.bold("Start it     ") + broken + line + "\n";
    }

    static constexpr std::size_t kLabel = 13;
    Plan const& p_;
    PageStyle const& style_;
    Paint paint_;
    std::string out_;
};

} // namespace detail

/// The whole plan for a terminal.
inline std::string terminal_page(Plan const& p, PageStyle const& style = {}) {
    detail::PageWriter w{p, style};
    w.headline();
    w.verdict();
    w.memory();
    w.speed();
    w.money();
    w.next(true);
    return w.take();
}

/// Memory and the start-up verdict alone.
inline std::string fit_page(Plan const& p, PageStyle const& style = {}) {
    detail::PageWriter w{p, style};
    w.headline();
    w.verdict();
    w.memory();
    w.next(false);
    return w.take();
}

/// Speed alone.
inline std::string speed_page(Plan const& p, PageStyle const& style = {}) {
    detail::PageWriter w{p, style};
    w.headline();
    if (!p.as_asked.starts || p.speed.empty()) w.verdict();
    w.speed();
    w.next(false);
    return w.take();
}

/// The table of speeds in Markdown.
inline std::string markdown_speed(Plan const& p) {
    TextTable t;
    t.column("Users").column("output tok/s").column("80 % interval").column("tok/s a user").column("TTFT ms").column("TPOT ms");
    if (p.cost.price) t.column("$/M output").column("$/M total");
    t.column("bound by", TextTable::Align::left).column("basis", TextTable::Align::left);
    for (std::size_t i = 0; i < p.speed.size(); ++i) {
        SpeedPoint const& s = p.speed[i];
        std::vector<std::string> c{grouped(s.concurrency.value()),
                                   grouped(s.output.value.value(), 1),
                                   grouped(s.output.low.value(), 1) + " to " + grouped(s.output.high.value(), 1),
                                   grouped(s.per_user.value.value(), 1),
                                   grouped(in_ms(s.ttft.value), 1),
                                   grouped(in_ms(s.tpot.value), 2)};
        if (p.cost.price) {
            bool const have = i < p.cost.by_concurrency.size();
            c.push_back(have ? grouped(p.cost.by_concurrency[i].output_alone.value.value(), 2) : "");
            c.push_back(have ? grouped(p.cost.by_concurrency[i].total.value.value(), 2) : "");
        }
        c.push_back(detail::bound_text(s.bound_by));
        c.emplace_back(to_string(s.basis));
        t.row(std::move(c));
    }
    return t.markdown();
}

/// The plan in Markdown, for documents: the same figures, sources as a list.
inline std::string markdown_page(Plan const& p) {
    using namespace detail;
    std::string out = "# " + plan_headline(p) + "\n\n";
    auto const verdict = verdict_lines(p);
    out += "**Starts:** ";
    for (std::size_t i = 0; i < verdict.size(); ++i) out += (i > 0 ? " " : "") + verdict[i];
    out += "\n\n";
    StartPlan const& f = p.fit;
    TextTable m;
    m.column("Memory a GPU", TextTable::Align::left).column("GiB").column("basis", TextTable::Align::left);
    m.row({"visible", grouped(in_gib(f.budget.visible), 2), p.gpus.gpu.visible_is_estimate ? "calibrated" : "measured"});
    m.row({"weights", grouped(in_gib(f.weights), 2), std::string{to_string(f.basis)}});
    if (f.pool.value() > 0) {
        m.row({"KV cache and state", grouped(in_gib(f.pool), 2), std::string{to_string(f.basis)}});
        m.row({"activations, NCCL, CUDA graphs", grouped(in_gib(f.budget.activation + f.budget.non_torch + f.budget.cuda_graph), 2), "calibrated"});
    }
    out += m.markdown() + "\n";
    if (f.kv_tokens.value() > 0) {
        out += fmt::format("{} tokens of KV cache in blocks of {} ({} blocks)", grouped(f.kv_tokens.value()), grouped(f.block_tokens.value()), grouped(f.num_blocks));
        if (f.state_slots) out += fmt::format(", {} state slots", grouped(*f.state_slots));
        out += fmt::format("; {:.2f} requests of {} tokens.\n\n", f.max_requests_at_max_model_len, grouped(f.max_model_len.value()));
    }
    if (!p.speed.empty()) out += markdown_speed(p) + "\n";
    if (p.cost.price)
        out += fmt::format("Price: {} an hour ({}).\n\n", usd_text(p.cost.price->per_hour.value()), price_text(*p.cost.price));
    else
        out += "Price: not known.\n\n";
    for (BreakEven const& b : p.break_even) {
        constexpr std::string_view reach[] = {"reachable", "not reachable", "not known whether reachable"};
        out += "Break-even against " + api_text(b.against) + ": ";
        if (!b.crossings.empty())
            out += fmt::format("{} output + {} input tokens a month; ", large_text(b.million_output * 1e6), large_text(b.million_input * 1e6));
        out += fmt::format("{} ({}).\n\n", b.reason, reach[static_cast<std::size_t>(b.reachable)]);
    }
    if (!p.command.empty() && p.fit.starts) out += "```sh\n" + p.command + "\n```\n\n";
    if (!p.warnings.empty()) {
        out += "Notes\n\n";
        for (std::string const& w : p.warnings) out += "- " + w + "\n";
        out += "\n";
    }
    if (!p.sources.empty()) {
        out += "Sources\n\n";
        for (PlanSource const& s : p.sources)
            out += fmt::format("- {}: {}{}{}\n", s.what, s.source, s.date.empty() ? "" : ", " + s.date, s.url.empty() ? "" : ", <" + s.url + ">");
    }
    return out;
}

} // namespace servecap
