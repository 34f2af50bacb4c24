// servecap: charts as SVG
// SPDX-License-Identifier: Apache-2.0
//
// A small writer for the three charts that plans need: lines with interval bands, measured points, and
// marked crossings, on linear or logarithmic axes. Colours come from CSS classes with a
// prefers-color-scheme rule, so one file is legible on a light and on a dark page. Numbers are printed
// with two decimals: the same chart gives the same bytes on every machine.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>

namespace servecap {

/// A point of a chart with the ends of its interval (equal to y where there is none).
struct ChartPoint {
    double x = 0;
    double y = 0;
    double low = 0;
    double high = 0;
    std::string label; ///< printed beside the point; empty for none
};

/// A line with its band, or points alone.
struct ChartSeries {
    std::string name;
    std::vector<ChartPoint> points;
    bool line = true;
    bool band = true;
    bool markers = true;
    int colour = 0; ///< 0..5
};

/// A point that the chart calls out, such as a break-even.
struct ChartMark {
    double x = 0;
    double y = 0;
    std::string text;
};

/// A chart with two axes.
struct Chart {
    std::string title, subtitle;
    std::string x_label, y_label;
    bool x_log = false;
    bool y_log = false;
    std::vector<ChartSeries> series;
    std::vector<ChartMark> marks;
    std::string footnote;
};

namespace detail {

inline std::string xml_text(std::string_view s) {
    std::string r;
    for (char const c : s) {
        switch (c) {
        case '&': r += "&amp;"; break;
        case '<': r += "&lt;"; break;
        case '>': r += "&gt;"; break;
        case '"': r += "&quot;"; break;
        default: r += c;
        }
    }
    return r;
}

/// Round values between `low` and `high`: 1, 2, 5 times powers of ten; powers of two or ten when logarithmic.
inline std::vector<double> axis_ticks(double low, double high, bool log) {
    std::vector<double> ticks;
    if (log) {
        bool const wide = high / low > 2000;
        for (double decade = std::pow(10.0, std::floor(std::log10(low))); decade <= high * 1.0001; decade *= 10)
            for (double const m : {1.0, 2.0, 5.0}) {
                if (wide && m != 1.0) continue;
                double const t = decade * m;
                if (t >= low * 0.9999 && t <= high * 1.0001) ticks.push_back(t);
            }
        return ticks;
    }
    double const span = high - low;
    double step = std::pow(10.0, std::floor(std::log10(span / 5)));
    for (double const m : {1.0, 2.0, 5.0, 10.0})
        if (span / (step * m) <= 6) {
            step *= m;
            break;
        }
    for (double t = std::ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) ticks.push_back(std::fabs(t) < step * 1e-9 ? 0.0 : t);
    return ticks;
}

inline std::string tick_text(double v) {
    double const a = std::fabs(v);
    if (a >= 1e9) return fmt::format("{:g} B", v / 1e9);
    if (a >= 1e6) return fmt::format("{:g} M", v / 1e6);
    if (a >= 1000) return grouped(v, 0);
    return fmt::format("{:g}", v);
}

/// `text` in lines of at most `most` characters, broken at blanks; one empty line of none.
inline std::vector<std::string> svg_lines(std::string_view text, std::size_t most) {
    std::vector<std::string> lines(1);
    while (!text.empty()) {
        auto const blank = std::min(text.find(' '), text.size());
        auto const word = text.substr(0, blank);
        if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > most) lines.emplace_back();
        if (!lines.back().empty()) lines.back() += ' ';
        lines.back() += word;
        text.remove_prefix(std::min(blank + 1, text.size()));
    }
    return lines;
}

} // namespace detail

/// The chart as an SVG document, 860 wide and 520 high, higher where the legend or the footnote takes more lines. Points with a
/// non-positive coordinate on a logarithmic axis, or that are not finite, are left out.
inline std::string svg_chart(Chart const& chart) {
    constexpr double width = 860, left = 84, right = 24, top = 66;
    // Where each name of the legend stands: a line of names, then the next. About 7.2 a letter at this size.
    struct Place {
        double x, row;
    };
    std::vector<Place> legend;
    double legend_x = left, legend_rows = 0;
    for (auto const& s : chart.series) {
        double const wide = 34 + 7.2 * static_cast<double>(display_width(s.name));
        if (legend_x > left && legend_x + wide > width - right) legend_x = left, legend_rows += 1;
        legend.push_back({legend_x, legend_rows});
        legend_x += wide;
    }
    auto const footnotes = detail::svg_lines(chart.footnote, 138);
    double const extra = 18 * legend_rows + (footnotes.size() > 1 ? 14 * static_cast<double>(footnotes.size() - 1) : 0.0);
    double const height = 520 + extra + (footnotes.size() > 1 ? 6 : 0), bottom = height - 428;
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    auto const usable = [&](double x, double y) {
        return std::isfinite(x) && std::isfinite(y) && (!chart.x_log || x > 0) && (!chart.y_log || y > 0);
    };
    auto const grow = [&](double x, double y) {
        if (!usable(x, y)) return;
        x0 = std::min(x0, x), x1 = std::max(x1, x), y0 = std::min(y0, y), y1 = std::max(y1, y);
    };
    for (auto const& s : chart.series)
        for (auto const& p : s.points) {
            grow(p.x, p.y);
            if (s.band) grow(p.x, p.low), grow(p.x, p.high);
        }
    for (auto const& m : chart.marks) grow(m.x, m.y);
    if (!std::isfinite(x0)) x0 = 0, x1 = 1, y0 = 0, y1 = 1;
    if (!chart.y_log) y0 = std::min(y0, 0.0), y1 += (y1 - y0) * 0.06;
    if (!chart.x_log) x0 = std::min(x0, 0.0);
    if (chart.y_log) y0 /= 1.15, y1 *= 1.15;
    if (chart.x_log) x0 /= 1.1, x1 *= 1.1;
    if (x1 <= x0) x1 = x0 + 1;
    if (y1 <= y0) y1 = y0 + 1;
    auto const scale = [](double v, double a, double b, bool log) { return log ? std::log(v / a) / std::log(b / a) : (v - a) / (b - a); };
    auto const px = [&](double x) { return left + scale(x, x0, x1, chart.x_log) * (width - left - right); };
    auto const py = [&](double y) { return height - bottom - scale(y, y0, y1, chart.y_log) * (height - top - bottom); };

    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n"
        "<title>{}</title>\n"
        "<style>\n"
        ".bg{{fill:#ffffff}} .ink{{fill:#1c2430}} .dim{{fill:#5a6675}} .grid{{stroke:#dfe4ea}} .axis{{stroke:#5a6675}} .mark{{stroke:#1c2430}}\n"
        ".halo{{paint-order:stroke;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round}} .l{{fill:none;stroke-width:2.2}} .b{{fill-opacity:.16;stroke:none}}\n"
        ".s0{{stroke:#0b6bcb}} .f0{{fill:#0b6bcb}} .s1{{stroke:#c2410c}} .f1{{fill:#c2410c}} .s2{{stroke:#15803d}} .f2{{fill:#15803d}}\n"
        ".s3{{stroke:#7c3aed}} .f3{{fill:#7c3aed}} .s4{{stroke:#0f766e}} .f4{{fill:#0f766e}} .s5{{stroke:#be185d}} .f5{{fill:#be185d}}\n"
        "@media (prefers-color-scheme: dark){{.bg{{fill:#11161d}} .halo{{stroke:#11161d}} .ink{{fill:#e6ebf1}} .dim{{fill:#a3afbd}} .grid{{stroke:#2a333e}} .axis{{stroke:#a3afbd}} "
        ".mark{{stroke:#e6ebf1}}\n"
        ".s0{{stroke:#66b2ff}} .f0{{fill:#66b2ff}} .s1{{stroke:#fb923c}} .f1{{fill:#fb923c}} .s2{{stroke:#4ade80}} .f2{{fill:#4ade80}}\n"
        ".s3{{stroke:#b794f6}} .f3{{fill:#b794f6}} .s4{{stroke:#5eead4}} .f4{{fill:#5eead4}} .s5{{stroke:#f472b6}} .f5{{fill:#f472b6}}}}\n"
        "</style>\n<rect class=\"bg\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n",
        width, height, detail::xml_text(chart.title), width, height);
    out += fmt::format("<text class=\"ink\" x=\"{:.0f}\" y=\"26\" font-size=\"17\" font-weight=\"600\">{}</text>\n", left - 60, detail::xml_text(chart.title));
    out += fmt::format("<text class=\"dim\" x=\"{:.0f}\" y=\"46\">{}</text>\n", left - 60, detail::xml_text(chart.subtitle));
    for (double const t : detail::axis_ticks(y0, y1, chart.y_log))
        out += fmt::format("<line class=\"grid\" x1=\"{:.2f}\" x2=\"{:.2f}\" y1=\"{:.2f}\" y2=\"{:.2f}\"/>"
                           "<text class=\"dim\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>\n",
                           left, width - right, py(t), py(t), left - 8, py(t) + 4, detail::tick_text(t));
    for (double const t : detail::axis_ticks(x0, x1, chart.x_log))
        out += fmt::format("<line class=\"grid\" x1=\"{:.2f}\" x2=\"{:.2f}\" y1=\"{:.2f}\" y2=\"{:.2f}\"/>"
                           "<text class=\"dim\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>\n",
                           px(t), px(t), top, height - bottom, px(t), height - bottom + 18, detail::tick_text(t));
    out += fmt::format("<line class=\"axis\" x1=\"{0:.2f}\" x2=\"{1:.2f}\" y1=\"{2:.2f}\" y2=\"{2:.2f}\"/><line class=\"axis\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" "
                       "y1=\"{3:.2f}\" y2=\"{2:.2f}\"/>\n",
                       left, width - right, height - bottom, top);
    out += fmt::format("<text class=\"ink\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>\n", (left + width - right) / 2, height - bottom + 40,
                       detail::xml_text(chart.x_label));
    out += fmt::format("<text class=\"ink\" transform=\"translate(18 {:.2f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", (top + height - bottom) / 2,
                       detail::xml_text(chart.y_label));
    for (std::size_t index = 0; index < chart.series.size(); ++index) {
        ChartSeries const& s = chart.series[index];
        int const colour = ((s.colour % 6) + 6) % 6;
        std::vector<ChartPoint const*> points;
        for (auto const& p : s.points)
            if (usable(p.x, p.y)) points.push_back(&p);
        if (s.band && points.size() > 1) {
            std::string d;
            for (auto const* p : points)
                d += fmt::format("{}{:.2f} {:.2f}", d.empty() ? "M" : "L", px(p->x), py(usable(p->x, p->high) ? p->high : p->y));
            for (auto p = points.rbegin(); p != points.rend(); ++p)
                d += fmt::format("L{:.2f} {:.2f}", px((*p)->x), py(usable((*p)->x, (*p)->low) ? (*p)->low : (*p)->y));
            out += fmt::format("<path class=\"b f{}\" d=\"{}Z\"/>\n", colour, d);
        }
        if (s.line && points.size() > 1) {
            std::string d;
            for (auto const* p : points) d += fmt::format("{}{:.2f} {:.2f}", d.empty() ? "M" : "L", px(p->x), py(p->y));
            out += fmt::format("<path class=\"l s{}\" d=\"{}\"/>\n", colour, d);
        }
        for (auto const* p : points) {
            if (s.markers) out += fmt::format("<circle class=\"f{}\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{}\"/>\n", colour, px(p->x), py(p->y), s.line ? 3 : 4.5);
            if (!p->label.empty())
                out += fmt::format("<text class=\"dim\" font-size=\"11\" x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", px(p->x) + 6, py(p->y) - 6,
                                   detail::xml_text(p->label));
        }
        if (!s.name.empty()) {
            out += fmt::format("<rect class=\"f{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"12\" height=\"12\" rx=\"2\"/>"
                               "<text class=\"ink\" x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n",
                               colour, legend[index].x, height - bottom + 58 + 18 * legend[index].row, legend[index].x + 17,
                               height - bottom + 68 + 18 * legend[index].row, detail::xml_text(s.name));
        }
    }
    std::size_t lifted = 0; // labels of neighbours stand at three heights
    for (auto const& m : chart.marks) {
        if (!usable(m.x, m.y)) continue;
        double const lift = 10 + 17 * static_cast<double>(lifted++ % 3);
        bool const left_of = px(m.x) + 8 + 7.2 * static_cast<double>(display_width(m.text)) > width - 8;
        out += fmt::format("<line class=\"mark\" stroke-dasharray=\"4 3\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1:.2f}\" y2=\"{2:.2f}\"/>"
                           "<circle class=\"ink\" cx=\"{0:.2f}\" cy=\"{1:.2f}\" r=\"4\"/>"
                           "<text class=\"ink halo\" x=\"{3:.2f}\" y=\"{4:.2f}\" text-anchor=\"{5}\">{6}</text>\n",
                           px(m.x), py(m.y), height - bottom, px(m.x) + (left_of ? -8 : 8), std::max(top + 12, py(m.y) - lift),
                           left_of ? "end" : "start", detail::xml_text(m.text));
    }
    for (std::size_t i = 0; i < footnotes.size(); ++i)
        out += fmt::format("<text class=\"dim\" font-size=\"11\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", left - 60,
                           height - 8 - 14 * static_cast<double>(footnotes.size() - 1 - i), detail::xml_text(footnotes[i]));
    return out + "</svg>\n";
}

} // namespace servecap
