// servecap: what the speed model calls a deployment, and the row that measured one
// SPDX-License-Identifier: Apache-2.0
//
// Rows are brought to one form: everything per replica, lengths as measured, the running batch taken from
// Little's law. Layouts are written in several ways ("tp 8, dp 8, ep 8 on 8 GPUs" is data-parallel attention
// over 8 ranks), so they are repaired from the GPU count. The closed-loop identity that ties the columns
// together, measured over the rows of data/benchmarks.csv (2.3 % at the median):
//   output = 0.978 * C / (tpot + ttft / osl)     (1.0 for a single user: no ramp)

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/text.hpp>
#include <servecap/layout/layout.hpp>

namespace servecap {

/// Share of a finite closed-loop run that ramp and drain leave; 1 for one user.
constexpr double closed_loop_share(double concurrency) noexcept { return concurrency > 1.5 ? 0.978 : 1.0; }

/// Families of GPUs that share kernels: a coefficient learned on one member is evidence for the others.
inline std::string architecture_family(Gpu const& g) {
    std::string a = fold_name(g.architecture);
    if (a == "blackwell-ultra") return "blackwell";
    if (a.empty()) return fold_name(g.id);
    return a;
}

/// Class of a model by its layers: mla, gqa, recurrent or compressed mixers (+ "-sparse"), "-moe" or "-dense".
inline std::string layer_class(Model const& m) {
    bool mla = false, recurrent = false, compressed = false, sparse = false, moe = false;
    for (Layer const& l : m.layers) {
        for (Mixer const& x : l.mixers) {
            if (std::holds_alternative<Mla>(x)) mla = true;
            if (is_recurrent(x)) recurrent = true;
            if (std::holds_alternative<Compressed>(x)) compressed = true;
            if (auto const* s = std::get_if<SparseIndexed>(&x)) {
                sparse = true;
                if (std::holds_alternative<Mla>(s->base)) mla = true;
            }
        }
        if (l.ffn && std::holds_alternative<Moe>(*l.ffn)) moe = true;
    }
    std::string c = recurrent ? "recurrent" : compressed ? "compressed" : mla ? "mla" : "gqa";
    if (sparse) c += "-sparse";
    return c + (moe ? "-moe" : "-dense");
}

/// A number that equal shapes share (R1 and V3, K3 and K3.1): rows of a model say much about its siblings.
inline std::uint32_t shape_signature(Model const& m) noexcept {
    std::uint32_t h = 2166136261u;
    auto const mix = [&](std::int64_t v) {
        for (int i = 0; i < 8; ++i) {
            h ^= static_cast<std::uint32_t>((v >> (8 * i)) & 0xff);
            h *= 16777619u;
        }
    };
    mix(m.hidden);
    mix(m.vocab / 4096);
    mix(static_cast<std::int64_t>(m.layers.size()));
    for (Layer const& l : m.layers) {
        for (Mixer const& x : l.mixers) { // sparse attention counts as its base: the same model before and after
            auto const* sparse = std::get_if<SparseIndexed>(&x);
            std::size_t const kind = sparse == nullptr                           ? x.index()
                                     : std::holds_alternative<Mla>(sparse->base) ? Mixer{Mla{}}.index()
                                                                                 : Mixer{Gqa{}}.index();
            mix(static_cast<std::int64_t>(kind));
        }
        if (!l.ffn) continue;
        if (auto const* e = std::get_if<Moe>(&*l.ffn)) {
            mix(e->experts);
            mix(e->top_k);
            mix(e->intermediate);
        } else {
            mix(std::get<Dense>(*l.ffn).intermediate);
        }
    }
    return h;
}

/// Who a speed belongs to; the levels over which knowledge is shared.
struct SpeedIdentity {
    std::uint32_t shape = 0; ///< shape_signature of the model
    std::string model;       ///< folded last part of the name
    std::string layer_class;
    std::string gpu;         ///< gpu id
    std::string family;      ///< architecture_family
    std::string engine;      ///< vllm, sglang, trtllm...
    std::string precision;   ///< label of the weights: fp8, nvfp4...
    std::string speculation; ///< empty = none
};

/// Days from 2026-03-01 in years; nothing for a date that is not known. Format: YYYY-MM or YYYY-MM-DD.
inline std::optional<double> years_since_reference(std::string_view date) noexcept {
    auto const digits = [&](std::size_t at, std::size_t n) -> std::optional<int> {
        if (date.size() < at + n) return std::nullopt;
        int v = 0;
        for (std::size_t i = at; i < at + n; ++i) {
            if (date[i] < '0' || date[i] > '9') return std::nullopt;
            v = v * 10 + (date[i] - '0');
        }
        return v;
    };
    auto const y = digits(0, 4), m = digits(5, 2), d = digits(8, 2);
    if (!y || !m || *m < 1 || *m > 12) return std::nullopt;
    return (*y - 2026) + (*m - 3 + ((d ? *d : 15) - 1) / 30.4) / 12.0;
}

/// A row of benchmarks in the form that the speed model works with. Rates and counts are of one replica.
struct SpeedRow {
    BenchmarkRow const* row = nullptr;
    SpeedIdentity id;
    Layout layout; ///< of one replica; replicas = 1
    std::int32_t replicas = 1;
    double concurrency = 0; ///< users of one replica
    double isl = 0, osl = 0;
    double batch = 0;          ///< running requests of one replica
    double tpot = 0;           ///< seconds; 0 = not known
    double ttft = 0;           ///< seconds; 0 = not known
    double output = 0;         ///< output tok/s of one replica; 0 = not known
    double years = 0;          ///< since 2026-03-01; 0 where the date is not known
    bool tpot_derived = false; ///< from output and TTFT by the identity
    bool ttft_derived = false; ///< from output and TPOT by the identity
    bool queued = false;       ///< the engine's batch cap bound: TTFT over 30 % of the request
    bool median_ttft = false;
    double capture = 0;          ///< tokens that CUDA graphs were captured for, where the row says so
    double sequences_a_rank = 0; ///< the engine's cap, where the row says so
    bool synchronous = false;    ///< fixed lengths: requests start and end together
};

/// The layout of a row, repaired from the GPU count; replicas apart.
inline Layout layout_of(BenchmarkRow const& r) {
    Layout l;
    std::int32_t const n = std::max<std::int32_t>(1, r.n_gpus);
    l.pp = std::max<std::int32_t>(1, r.pp.value_or(1));
    l.dp = std::max<std::int32_t>(1, r.dp.value_or(1));
    l.tp = r.tp.value_or(0);
    if (l.tp < 1) l.tp = std::max<std::int32_t>(1, n / (l.pp * l.dp));
    if (l.tp * l.pp * l.dp > n) l.tp = std::max<std::int32_t>(1, n / (l.pp * l.dp));
    bool const dp_attention = r.dp_attention == "yes";
    if (dp_attention && l.dp == 1) {
        l.dp = l.tp;
        l.tp = 1;
    }
    l.ep = !(r.ep.empty() || r.ep == "1" || r.ep == "no" || r.ep == "0");
    l.replicas = r.replicas.value_or(0);
    if (l.replicas < 1) l.replicas = std::max<std::int32_t>(1, n / l.gpus_per_replica());
    return l;
}

/// The last part of a model's name, folded: "deepseek-ai/DeepSeek-R1" -> "deepseek-r1".
inline std::string short_model_name(std::string_view id) {
    auto const slash = id.rfind('/');
    return fold_name(slash == std::string_view::npos ? id : id.substr(slash + 1));
}

/// `flags` holds the word `w`.
inline bool has_flag(std::string_view flags, std::string_view w) noexcept {
    std::size_t at = 0;
    while ((at = flags.find(w, at)) != std::string_view::npos) {
        bool const starts = at == 0 || flags[at - 1] == ' ';
        std::size_t const end = at + w.size();
        if (starts && (end == flags.size() || flags[end] == ' ')) return true;
        at = end;
    }
    return false;
}

/// The number that follows `key` in `text` ("captured to 8,192"); 0 if there is none.
inline double number_in(std::string_view text, std::string_view key) noexcept {
    auto const at = text.find(key);
    if (at == std::string_view::npos) return 0;
    double v = 0;
    for (std::size_t i = at + key.size(); i < text.size(); ++i) {
        if (text[i] == ',' && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9') continue;
        if (text[i] < '0' || text[i] > '9') break;
        v = v * 10 + (text[i] - '0');
    }
    return v;
}

/// The number that stands before `key` in `text` ("256 sequences a rank"); 0 if there is none.
inline double number_before(std::string_view text, std::string_view key) noexcept {
    auto const at = text.find(key);
    if (at == std::string_view::npos) return 0;
    std::size_t first = at;
    while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
    return first == at ? 0 : number_in(text.substr(first), {});
}

/// The row may teach: speculation and precision are recorded, the run is not known to be bad, and it was a run, of one
/// deployment (imports mark predicted figures, and prefill apart from decode).
inline bool may_calibrate(BenchmarkRow const& r) noexcept {
    for (std::string_view flag : {"spec?", "prec?", "seedbad", "predicted", "disagg"})
        if (has_flag(r.flags, flag)) return false;
    return !r.precision.empty();
}

/// A row in the speed model's form; nothing where lengths, concurrency or every measure is missing.
/// Missing TTFT or TPOT is taken from the identity where the output rate allows it.
inline std::optional<SpeedRow> speed_row(BenchmarkRow const& r) {
    auto const isl = r.isl_mean ? r.isl_mean : r.isl;
    auto const osl = r.osl_mean ? r.osl_mean : r.osl;
    if (!isl || !osl || !r.concurrency || *isl < 1 || *osl < 1) return std::nullopt;
    SpeedRow s;
    s.row = &r;
    s.layout = layout_of(r);
    s.replicas = s.layout.replicas;
    s.layout.replicas = 1;
    s.isl = *isl;
    s.osl = *osl;
    double const copies = std::min<double>(s.replicas, std::max(1.0, *r.concurrency));
    s.concurrency = *r.concurrency / copies;
    if (r.output) s.output = r.output->value() / copies;
    if (r.tpot) s.tpot = r.tpot->value();
    if (r.ttft) s.ttft = r.ttft->value();
    double const share = closed_loop_share(s.concurrency);
    if (s.tpot <= 0 && s.output > 0 && s.ttft > 0) {
        double const t = share * s.concurrency / s.output - s.ttft / s.osl;
        if (t > 0.05 * s.concurrency / s.output) {
            s.tpot = t;
            s.tpot_derived = true;
        }
    }
    if (s.ttft <= 0 && s.output > 0 && s.tpot > 0) {
        s.ttft = std::max(0.02, s.osl * (share * s.concurrency / s.output - s.tpot));
        s.ttft_derived = true;
    }
    s.batch = s.concurrency;
    if (s.tpot > 0 && s.ttft > 0) {
        double const decode = s.tpot * s.osl;
        s.batch = s.concurrency * decode / (decode + s.ttft);
        s.queued = s.ttft > 0.3 * (decode + s.ttft);
    }
    if (has_flag(r.flags, "queue")) s.queued = true;
    s.batch = std::max(1.0, s.batch);
    s.years = years_since_reference(r.date).value_or(0.0);
    s.median_ttft = r.lat_basis == "median" || r.lat_basis.find("/median") != std::string::npos;
    s.synchronous = r.dataset == "fixed" || r.dataset == "random"; // all requests of a wave begin and end together
    s.capture = number_in(r.note, "captured to ");
    s.sequences_a_rank = number_before(r.note, " sequences a rank");
    s.id.model = short_model_name(r.model);
    s.id.gpu = r.gpu;
    s.id.engine = r.engine;
    s.id.precision = r.precision;
    s.id.speculation = r.spec_method == "none" ? std::string{} : r.spec_method;
    if (s.tpot <= 0 && s.output <= 0 && s.ttft <= 0) return std::nullopt;
    return s;
}

} // namespace servecap
