// servecap: other people's price lists -> our rows, with their traps reported
// SPDX-License-Identifier: Apache-2.0
//
// Read are: SkyPilot's catalogue (catalogs/v8/CLOUD/vms.csv, one file a cloud), gpuhunt's CSV (a file a provider),
// pydantic/genai-prices (prices/new_data/v2/data.json), models.dev (api.json, or a model's TOML), LiteLLM
// (model_prices_and_context_window.json). What goes wrong with them is known and looked for:
//   - prices of an instance, not of a GPU (SkyPilot, gpuhunt): divided by the GPUs;
//   - prices a token, not a million (LiteLLM);
//   - spot equal to on-demand: a placeholder (Azure's API for H200 and GB200);
//   - memory that is not the GPU's: multiplied by the count, or plainly wrong (gpuhunt's MI325X and B300);
//   - a GPU priced without its host, two rows for one machine (SkyPilot's GCP file);
//   - figures that somebody typed in once (gpuhunt's Crusoe B200) and files that nobody refreshes;
//   - prices converted from another currency at a stale rate; clock windows without weekdays; $0 for "free" or "plan".
// Every drop and every doubt is a finding with its place; nothing is corrected silently but the unit.

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/date.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/cost/price.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/import_finding.hpp>
#include <servecap/io/json.hpp>

namespace servecap {

enum class PriceFormat : std::uint8_t { skypilot, gpuhunt, genai_prices, models_dev, litellm };

constexpr std::string_view to_string(PriceFormat f) noexcept {
    constexpr std::array<std::string_view, 5> names{"skypilot", "gpuhunt", "genai-prices", "models.dev", "litellm"};
    return names[static_cast<std::size_t>(f)];
}

/// Rows that came out, in the order of the list, and what was noticed.
struct PriceImport {
    std::vector<GpuPrice> gpu_prices;
    std::vector<ApiPrice> api_prices;
    std::vector<ImportFinding> findings;
    std::int64_t read = 0; ///< rows or models of the list that name a GPU or a chat model
};

struct PriceImportOptions {
    std::string provider{}; ///< of lists that do not say it (SkyPilot's folder, gpuhunt's file): "nebius"
    std::string date{};     ///< day of the list (its commit): ISO; empty = unknown
    std::string as_of{};    ///< ISO day from which staleness counts
    std::string url{};
    std::span<Gpu const> gpus{};       ///< the catalogue
    std::span<GpuPrice const> known{}; ///< prices to compare with: a newer row far off is a finding
};

/// Which list a text is, by its shape.
inline Result<PriceFormat> guess_price_format(std::string_view text) {
    std::string_view const head = trim(text.substr(0, 200'000));
    if (head.empty()) return fail(ErrorCode::bad_format, "the price list is empty");
    std::string_view line = head;
    while (line.starts_with('#') && line.find('\n') != std::string_view::npos) line = trim(line.substr(line.find('\n')));
    line = line.substr(0, line.find('\n'));
    if (line.find("InstanceType") != std::string_view::npos && line.find("AcceleratorName") != std::string_view::npos)
        return PriceFormat::skypilot;
    if (line.find("instance_name") != std::string_view::npos && line.find("gpu_name") != std::string_view::npos)
        return PriceFormat::gpuhunt;
    if (head.front() == '[' && head.find("input_mtok") != std::string_view::npos) return PriceFormat::genai_prices;
    if (head.front() == '{' && head.find("input_cost_per_token") != std::string_view::npos) return PriceFormat::litellm;
    if (head.front() == '{' && head.find("input_mtok") != std::string_view::npos) return PriceFormat::genai_prices;
    if (head.front() == '{' && head.find("\"cost\"") != std::string_view::npos) return PriceFormat::models_dev;
    if (head.find("[cost]") != std::string_view::npos) return PriceFormat::models_dev;
    return fail(ErrorCode::bad_format, "no price list that is known by its shape", {},
                "skypilot, gpuhunt, genai-prices, models.dev or litellm");
}

namespace detail {

/// `v` with the binary noise of a product of decimals taken off: 12 digits.
inline double tidy(double v) {
    std::string const s = fmt::format("{:.12g}", v);
    double r = v;
    std::from_chars(s.data(), s.data() + s.size(), r);
    return r;
}

/// The number after `key` in a loose text ("'SizeInMiB': 81920"), if there is one.
inline std::optional<double> toml_number_after(std::string_view text, std::string_view key) {
    auto at = text.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    at += key.size();
    while (at < text.size() && (text[at] == '\'' || text[at] == '"' || text[at] == ':' || text[at] == ' ')) ++at;
    double v = 0;
    auto const r = std::from_chars(text.data() + at, text.data() + text.size(), v);
    if (r.ec != std::errc{}) return std::nullopt;
    return v;
}

inline bool memory_fits(Gpu const& g, double mib_of_gpu) {
    double const have =
        g.memory_reported ? static_cast<double>(g.memory_reported->value()) / 1048576.0 : in_gib(g.visible) * 1024.0;
    return std::fabs(mib_of_gpu / have - 1) < 0.09; // lists print GB as GiB and round up
}

/// The GPU of a list's row. Names without a size ("V100", "A100") are told apart by the memory, where given.
inline Gpu const* gpu_of_row(std::string_view name, std::string_view instance, std::optional<double> mib_of_gpu,
                             std::span<Gpu const> gpus) {
    Gpu const* g = find_gpu(name, gpus);
    if (g == nullptr) return nullptr;
    std::string const in = to_lower(instance);
    auto const variant = [&](std::string_view word) -> Gpu const* {
        std::string const family = g->id.substr(0, g->id.find('-'));
        for (Gpu const& other : gpus)
            if (other.id.starts_with(family + "-") && other.id.find(word) != std::string::npos &&
                (!mib_of_gpu || memory_fits(other, *mib_of_gpu)))
                return &other;
        return nullptr;
    };
    if (in.find("pcie") != std::string::npos)
        if (Gpu const* v = variant("pcie")) return v;
    if (in.find("nvl") != std::string::npos && in.find("nvl72") == std::string::npos)
        if (Gpu const* v = variant("nvl")) return v;
    if (mib_of_gpu && !memory_fits(*g, *mib_of_gpu)) {
        std::string const family = g->id.substr(0, g->id.find('-'));
        for (Gpu const& other : gpus)
            if (other.id.starts_with(family + "-") && other.scaleup_link == g->scaleup_link && memory_fits(other, *mib_of_gpu))
                return &other;
    }
    return g;
}

/// One offer of a list, before it is a row.
struct Offer {
    std::string provider, instance, region, type;
    Gpu const* gpu = nullptr;
    double gpus = 0, unit_price = 0;
    std::int64_t line = 0;
    Confidence confidence = Confidence::medium;
    std::string notes;
};

/// Offers -> rows: regions of one price become one row, implausible prices are dropped, known ones compared.
inline void take_offers(std::vector<Offer> offers, PriceImportOptions const& o, std::string_view file, PriceImport& out,
                        Findings& findings) {
    // A spot price that equals the on-demand price of the same machine and place is a placeholder.
    std::map<std::string, double> on_demand;
    auto const machine = [](Offer const& x) { return x.provider + "\n" + x.instance + "\n" + x.region + "\n" + x.gpu->id; };
    for (Offer const& x : offers)
        if (x.type == "on-demand") on_demand[machine(x)] = x.unit_price;
    std::erase_if(offers, [&](Offer const& x) {
        if (x.type != "spot") return false;
        auto const same = on_demand.find(machine(x));
        if (same == on_demand.end() || same->second != x.unit_price) return false;
        findings.add(fmt::format("{}:{}", file, x.line), fmt::format("{}: spot equals on-demand, a placeholder", x.instance),
                     true);
        return true;
    });
    struct Group {
        Offer first;
        std::vector<std::string> regions;
    };
    std::vector<Group> groups;
    std::map<std::string, std::size_t> index;
    for (Offer& x : offers) {
        std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", x.provider, x.instance, x.gpu->id, x.type, x.unit_price);
        auto const [at, fresh] = index.try_emplace(std::move(key), groups.size());
        if (fresh) groups.push_back({x, {}});
        auto& regions = groups[at->second].regions;
        if (!x.region.empty() && std::find(regions.begin(), regions.end(), x.region) == regions.end())
            regions.push_back(x.region);
    }
    for (Group const& g : groups) {
        Offer const& x = g.first;
        std::string const where = fmt::format("{}:{}", file, x.line);
        double const each = tidy(x.unit_price / x.gpus);
        if (auto const mistake = price_mistake(UsdPerHour{each}, where, false)) {
            findings.add(where, fmt::format("{}: {}", x.instance, mistake->message), true);
            continue;
        }
        GpuPrice r;
        r.provider = x.provider;
        r.gpu = x.gpu->id;
        r.gpu_name = x.gpu->short_name;
        r.sku = x.instance;
        r.gpus_per_unit = static_cast<std::int32_t>(x.gpus);
        r.price_type = x.type;
        r.per_gpu = UsdPerHour{each};
        r.per_unit = UsdPerHour{x.unit_price};
        r.region = g.regions.empty()       ? ""
                   : g.regions.size() == 1 ? g.regions[0]
                                           : fmt::format("{} and {} more", g.regions[0], g.regions.size() - 1);
        r.date = o.date.empty() ? "unknown" : o.date;
        r.date_kind = o.date.empty() ? "undated file" : "catalog commit date (price undated)";
        r.confidence = x.confidence;
        r.url = o.url;
        r.notes = x.notes;
        r.origin = {std::string{file}, x.line, true};
        for (GpuPrice const& k : o.known) {
            if (fold_name(k.provider) != fold_name(r.provider) || k.gpu != r.gpu || k.price_type != r.price_type || !k.per_gpu)
                continue;
            if (days_between(r.date, k.date).value_or(is_iso_date(k.date) && !is_iso_date(r.date) ? 1 : 0) <= 0) continue;
            double const off = r.per_gpu->value() / k.per_gpu->value() - 1;
            if (std::fabs(off) > 0.15) {
                findings.add(where, fmt::format("{} {} {}: {:.4g} $ a GPU-hour is {:+.0f} % off the {:.4g} of {} ({}): stale?",
                                                r.provider, r.gpu, r.price_type, r.per_gpu->value(), 100 * off,
                                                k.per_gpu->value(), k.date, k.url));
                r.confidence = std::min(r.confidence, Confidence::low);
            }
        }
        out.gpu_prices.push_back(std::move(r));
    }
    if (!o.as_of.empty()) {
        auto const age = days_between(o.date, o.as_of);
        if (!age)
            findings.add(std::string{file}, "the list has no date: its age is not known");
        else if (*age > kStaleDays)
            findings.add(std::string{file}, fmt::format("the list is {} days old", *age));
    }
}

inline Result<PriceImport> import_skypilot(std::string_view text, std::string_view file, PriceImportOptions const& o) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const instance = csv.required("InstanceType"), name = csv.required("AcceleratorName"),
               count = csv.required("AcceleratorCount"), price = csv.required("Price"), region = csv.required("Region");
    auto const spot = csv.optional("SpotPrice"), info = csv.optional("GpuInfo"), zone = csv.optional("AvailabilityZone");
    PriceImport out;
    Findings findings{out.findings};
    std::vector<Offer> offers;
    while (!csv.failed() && csv.next()) {
        auto const n = csv.number(count, 0, 1e6);
        std::string_view const what = csv.text(name);
        if (what.empty() || n.value_or(0) == 0) continue; // machines without accelerators
        ++out.read;
        std::string const where = fmt::format("{}:{}", file, csv.line());
        if (*n != std::floor(*n)) {
            findings.add(where, fmt::format("{}: {} of a GPU is no whole one", csv.text(instance), *n), true);
            continue;
        }
        auto mib_of_gpu = toml_number_after(csv.text(info), "SizeInMiB");
        auto const total = toml_number_after(csv.text(info), "TotalGpuMemoryInMiB");
        if (mib_of_gpu && *n > 1) {
            Gpu const* const g = find_gpu(what, o.gpus);
            if (g != nullptr && !memory_fits(*g, *mib_of_gpu) && memory_fits(*g, *mib_of_gpu / *n)) {
                findings.add(where, fmt::format("{}: the memory of a GPU is multiplied by their number", what));
                mib_of_gpu = *mib_of_gpu / *n;
            } else if (total && *total == *mib_of_gpu) {
                findings.add(where, fmt::format("{}: the total memory is that of one GPU", what));
            }
        }
        Gpu const* const gpu = gpu_of_row(what, csv.text(instance), mib_of_gpu, o.gpus);
        if (gpu == nullptr) {
            findings.add(where, fmt::format("\"{}\" is no GPU of the catalogue", what), true);
            continue;
        }
        if (mib_of_gpu && !memory_fits(*gpu, *mib_of_gpu))
            findings.add(where, fmt::format("{}: {:.0f} MiB is not the memory of {}", what, *mib_of_gpu, gpu->short_name));
        Offer x;
        x.provider = o.provider.empty() ? "SkyPilot catalogue" : o.provider;
        x.instance = csv.string(instance);
        x.region = csv.text(zone).empty() ? csv.string(region) : csv.string(zone);
        x.gpu = gpu;
        x.gpus = *n;
        x.line = csv.line();
        if (x.instance.empty()) {
            findings.add(where, fmt::format("{}: the GPU is priced without its host, which is another row", what));
            x.confidence = Confidence::low;
            x.notes = "GPU alone: the host is priced apart";
            x.instance = csv.string(name);
        }
        if (auto const p = csv.number(price, 0, 1e7); p && *p > 0) {
            x.type = "on-demand";
            x.unit_price = *p;
            offers.push_back(x);
        } else if (!csv.failed()) {
            findings.add(where, p ? "a price of 0 is no price" : "no on-demand price", true);
        }
        if (auto const p = csv.number(spot, 0, 1e7); p && *p > 0) {
            x.type = "spot";
            x.unit_price = *p;
            offers.push_back(x);
        }
    }
    if (csv.failed()) return tl::unexpected<Error>{csv.error()};
    take_offers(std::move(offers), o, file, out, findings);
    findings.close();
    return out;
}

inline Result<PriceImport> import_gpuhunt(std::string_view text, std::string_view file, PriceImportOptions const& o) {
    auto opened = CsvReader::open(text, file);
    if (!opened) return tl::unexpected<Error>{opened.error()};
    CsvReader& csv = *opened;
    auto const instance = csv.required("instance_name"), location = csv.required("location"), price = csv.required("price"),
               count = csv.required("gpu_count"), name = csv.required("gpu_name"), memory = csv.required("gpu_memory"),
               spot = csv.required("spot");
    auto const provider = csv.optional("provider"), flags = csv.optional("flags");
    PriceImport out;
    Findings findings{out.findings};
    std::vector<Offer> offers;
    while (!csv.failed() && csv.next()) {
        auto const n = csv.whole(count, 0, 1'000'000);
        std::string_view const what = csv.text(name);
        if (what.empty() || n.value_or(0) == 0) continue;
        ++out.read;
        std::string const where = fmt::format("{}:{}", file, csv.line());
        auto const gb = csv.number(memory, 0, 1e6);
        auto const mib_of_gpu = gb ? std::optional<double>{*gb * 1024} : std::nullopt; // their GB are GiB
        Gpu const* const gpu = gpu_of_row(what, csv.text(instance), mib_of_gpu, o.gpus);
        if (gpu == nullptr) {
            findings.add(where, fmt::format("\"{}\" is no GPU of the catalogue", what), true);
            continue;
        }
        if (mib_of_gpu && !memory_fits(*gpu, *mib_of_gpu))
            findings.add(where, fmt::format("{}: {} GB is not the memory of {} ({:.1f} GiB)", what, *gb, gpu->short_name,
                                            in_gib(gpu->visible)));
        Offer x;
        x.provider = csv.text(provider).empty() ? (o.provider.empty() ? "gpuhunt" : o.provider) : csv.string(provider);
        x.instance = csv.string(instance);
        x.region = csv.string(location);
        x.gpu = gpu;
        x.gpus = static_cast<double>(*n);
        x.line = csv.line();
        x.type = to_lower(csv.text(spot)) == "true" ? "spot" : "on-demand";
        if (fold_name(x.provider) == "crusoe" && gpu->id == "b200-sxm") {
            findings.add(where, "Crusoe's B200 is an estimate written into gpuhunt, not a price of theirs");
            x.confidence = Confidence::low;
            x.notes = "estimate in gpuhunt's code";
        }
        if (!csv.text(flags).empty()) x.notes += fmt::format("{}gpuhunt flags: {}", x.notes.empty() ? "" : "; ", csv.text(flags));
        auto const p = csv.number(price, 0, 1e7);
        if (!p || *p == 0) {
            if (!csv.failed()) findings.add(where, p ? "a price of 0 is no price" : "no price", true);
            continue;
        }
        x.unit_price = *p;
        offers.push_back(std::move(x));
    }
    if (csv.failed()) return tl::unexpected<Error>{csv.error()};
    take_offers(std::move(offers), o, file, out, findings);
    findings.close();
    return out;
}

/// Providers that sell their own models, as the lists call them.
inline bool is_first_party(std::string_view provider) {
    constexpr std::array<std::string_view, 18> own{"anthropic", "openai",  "google", "deepseek", "moonshotai", "moonshot",
                                                   "mistral",   "x-ai",    "xai",    "cohere",   "zai",        "z-ai",
                                                   "zhipuai",   "minimax", "gemini", "alibaba",  "xiaomi",     "stepfun"};
    std::string const p = fold_name(provider);
    return std::find(own.begin(), own.end(), p) != own.end();
}

/// A price of a list in $/M, looked at before it is taken.
inline std::optional<UsdPerMillionTokens> usd_per_million(std::optional<double> v, std::string_view where, std::string_view what,
                                                          Findings& findings) {
    if (!v) return std::nullopt;
    double const usd = tidy(*v);
    if (!(usd >= 0)) {
        findings.add(std::string{where}, fmt::format("{}: {} is no price", what, usd), true);
        return std::nullopt;
    }
    if (usd > 5000 || (usd > 0 && usd < 1e-4)) {
        findings.add(
            std::string{where},
            fmt::format(
                "{}: {:.4g} $ a million tokens is implausible: a price a token taken for one a million, or the other way round",
                what, usd),
            true);
        return std::nullopt;
    }
    return UsdPerMillionTokens{usd};
}

/// Takes a row unless it lacks a price or has only zeros.
inline void take_tariff(ApiPrice r, std::string_view where, PriceImport& out, Findings& findings) {
    if (!r.input || !r.output) {
        findings.add(std::string{where}, !r.input ? "no input price" : "no output price: no tariff of a chat model", true);
        return;
    }
    if (r.input->value() == 0 && r.output->value() == 0) {
        findings.add(std::string{where}, "0 $ for input and output: free, part of a plan, or a placeholder", true);
        return;
    }
    if (r.cached_input && *r.cached_input > *r.input) findings.add(std::string{where}, "cached input is dearer than input");
    out.api_prices.push_back(std::move(r));
}

inline std::optional<double> json_price(Json const& v) {
    if (v.is_number()) return v.get<double>();
    if (v.is_string()) { // router lists write prices as text
        auto const& s = v.get_ref<std::string const&>();
        double d = 0;
        auto const [end, bad] = std::from_chars(s.data(), s.data() + s.size(), d);
        if (bad == std::errc{} && end == s.data() + s.size()) return d;
    }
    return std::nullopt;
}

inline std::string member_text(Json const& o, char const* key) {
    auto const at = o.find(key);
    return at != o.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

inline ApiPrice tariff_row(PriceImportOptions const& o, std::string_view file, std::string provider, std::string model) {
    ApiPrice r;
    r.provider = std::move(provider);
    r.provider_kind = is_first_party(r.provider) ? "first-party" : "host";
    auto const slash = model.rfind('/');
    r.provider_model = model;
    r.model = to_lower(slash == std::string::npos ? model : model.substr(slash + 1));
    r.family = r.model.substr(0, r.model.find('-'));
    r.date = o.date.empty() ? "unknown" : o.date;
    r.confidence = o.date.empty() ? Confidence::low : Confidence::medium;
    r.url = o.url;
    r.origin = {std::string{file}, 0, true};
    return r;
}

/// The day before an ISO day; the text itself where it is none.
inline std::string day_before(std::string const& date) {
    auto const n = day_number(date);
    return n && date.size() == 10 ? iso_day(*n - 1) : date;
}

inline Result<PriceImport> import_genai(std::string_view text, std::string_view file, PriceImportOptions const& o) {
    auto const parsed = parse_json(text, file);
    if (!parsed) return tl::unexpected<Error>{parsed.error()};
    Json const* providers = &*parsed;
    if (parsed->is_object() && parsed->contains("providers")) providers = &(*parsed)["providers"];
    if (!providers->is_array())
        return fail(ErrorCode::bad_format, "no list of providers", std::string{file},
                    "prices/new_data/v2/data.json of genai-prices");
    PriceImport out;
    Findings findings{out.findings};
    for (Json const& p : *providers) {
        if (!p.is_object()) continue;
        std::string const id = member_text(p, "id"), provider = member_text(p, "name").empty() ? id : member_text(p, "name");
        std::string const comment = member_text(p, "price_comments");
        bool const converted = comment.find("CNY") != std::string::npos || comment.find("converted") != std::string::npos;
        if (converted) findings.add(id, "prices are converted from another currency by the list: " + comment.substr(0, 160));
        std::string url = o.url;
        if (auto const urls = p.find("pricing_urls");
            urls != p.end() && urls->is_array() && !urls->empty() && (*urls)[0].is_string())
            url = (*urls)[0].get<std::string>();
        auto const models = p.find("models");
        if (models == p.end() || !models->is_array()) continue;
        for (Json const& m : *models) {
            if (!m.is_object() || !m.contains("prices")) continue;
            ++out.read;
            std::string const model = member_text(m, "id");
            std::string const where = fmt::format("{}: {}/{}", file, id, model);
            if (auto const d = m.find("deprecated"); d != m.end() && d->is_boolean() && d->get<bool>())
                findings.add(where, "marked as no longer sold", true);
            else {
                // One price, or a list of which the last that applies counts: a base, later starts, windows of the day.
                Json const& prices = m["prices"];
                std::vector<std::pair<Json const*, Json const*>> entries; // constraint, prices
                if (prices.is_object())
                    entries.emplace_back(nullptr, &prices);
                else if (prices.is_array())
                    for (Json const& e : prices)
                        if (e.is_object() && e.contains("prices"))
                            entries.emplace_back(e.contains("constraint") ? &e["constraint"] : nullptr, &e["prices"]);
                std::vector<std::string> starts;
                for (auto const& [constraint, price] : entries)
                    if (constraint != nullptr && constraint->contains("start_date"))
                        starts.push_back(member_text(*constraint, "start_date"));
                std::sort(starts.begin(), starts.end());
                std::string from;
                for (auto const& [constraint, price] : entries) {
                    std::string when;
                    if (constraint != nullptr) {
                        if (constraint->contains("start_date")) from = member_text(*constraint, "start_date");
                        std::string const a = member_text(*constraint, "start_time"), b = member_text(*constraint, "end_time");
                        if (!a.empty() && !b.empty()) {
                            when = fmt::format("daily {}-{}", a, b);
                            findings.add(where, "a window of the clock without weekdays or holidays");
                        } else if (!constraint->contains("start_date")) {
                            findings.add(where, "a condition that is not understood: " + show_json(*constraint), true);
                            continue;
                        }
                    }
                    struct Side {
                        std::optional<double> base;
                        std::map<std::int64_t, double> tiers;
                    };
                    auto const side = [price = price](char const* key) { // a copy: clang 14 captures no structured binding
                        Side s;
                        auto const at = price->find(key);
                        if (at == price->end()) return s;
                        if (at->is_object()) {
                            if (at->contains("base")) s.base = json_price((*at)["base"]);
                            if (at->contains("tiers") && (*at)["tiers"].is_array())
                                for (Json const& t : (*at)["tiers"])
                                    if (t.is_object() && t.contains("start") && t.contains("price"))
                                        if (auto const start = json_price(t["start"]), v = json_price(t["price"]); start && v)
                                            s.tiers[static_cast<std::int64_t>(*start)] = *v;
                        } else {
                            s.base = json_price(*at);
                        }
                        return s;
                    };
                    Side const in = side("input_mtok"), cached = side("cache_read_mtok"), w5 = side("cache_write_mtok"),
                               w1 = side("cache_write_1h_mtok"), output = side("output_mtok");
                    std::vector<std::int64_t> tiers{0};
                    for (auto const& [start, v] : in.tiers) tiers.push_back(start);
                    for (std::int64_t const tier : tiers) {
                        auto const pick = [&](Side const& s, char const* what) {
                            std::optional<double> v = s.base;
                            if (tier > 0)
                                if (auto const at = s.tiers.find(tier); at != s.tiers.end()) v = at->second;
                            return usd_per_million(v, where, what, findings);
                        };
                        ApiPrice r = tariff_row(o, file, provider, model);
                        r.provider_kind = is_first_party(id) ? "first-party" : "host";
                        if (std::string const checked = member_text(m, "prices_checked"); is_iso_date(checked)) r.date = checked;
                        r.url = url;
                        r.input = pick(in, "input");
                        r.cached_input = pick(cached, "cached input");
                        r.cache_write_5m = pick(w5, "cache write");
                        r.cache_write_1h = pick(w1, "cache write, 1 h");
                        r.output = pick(output, "output");
                        if (tier > 0) r.tier_min_input = Tokens{tier};
                        r.applies_when = when;
                        r.valid_from = from;
                        auto const next = std::upper_bound(starts.begin(), starts.end(), from);
                        if (next != starts.end()) r.valid_to = day_before(*next);
                        if (converted) r.notes = "converted by the list";
                        take_tariff(std::move(r), where, out, findings);
                    }
                }
            }
        }
    }
    findings.close();
    return out;
}

/// The numbers of the [cost] table of one of models.dev's TOML files: `key = number` lines, nothing else of TOML.
inline std::map<std::string, double> toml_cost(std::string_view text) {
    std::map<std::string, double> cost;
    bool inside = false;
    std::string prefix;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t const end = std::min(text.find('\n', at), text.size());
        std::string_view line = trim(text.substr(at, end - at));
        at = end + 1;
        if (line.starts_with('[')) {
            inside = line == "[cost]" || line == "[cost.context_over_200k]";
            prefix = line == "[cost]" ? "" : "over_200k.";
            continue;
        }
        auto const eq = line.find('=');
        if (!inside || eq == std::string_view::npos || line.starts_with('#')) continue;
        std::string digits;
        for (char c : trim(line.substr(eq + 1).substr(0, line.substr(eq + 1).find('#'))))
            if (c != '_') digits.push_back(c);
        double v = 0;
        auto const [stop, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
        if (bad == std::errc{} && stop == digits.data() + digits.size()) cost[prefix + std::string{trim(line.substr(0, eq))}] = v;
    }
    return cost;
}

inline void take_models_dev(std::map<std::string, double> const& cost, std::string const& provider, std::string const& model,
                            std::string_view where, std::string_view file, PriceImportOptions const& o, PriceImport& out,
                            Findings& findings) {
    for (char const* prefix : {"", "over_200k."}) {
        auto const get = [&](char const* key) -> std::optional<double> {
            auto const at = cost.find(std::string{prefix} + key);
            return at == cost.end() ? std::nullopt : std::optional<double>{at->second};
        };
        if (*prefix != '\0' && !get("input")) continue;
        ApiPrice r = tariff_row(o, file, provider, model);
        r.input = usd_per_million(get("input"), where, "input", findings);
        r.output = usd_per_million(get("output"), where, "output", findings);
        r.cached_input = usd_per_million(get("cache_read"), where, "cached input", findings);
        r.cache_write_5m = usd_per_million(get("cache_write"), where, "cache write", findings);
        if (*prefix != '\0') r.tier_min_input = Tokens{200'000};
        take_tariff(std::move(r), where, out, findings);
    }
}

inline Result<PriceImport> import_models_dev(std::string_view text, std::string_view file, PriceImportOptions const& o) {
    PriceImport out;
    Findings findings{out.findings};
    if (!trim(text).starts_with('{')) {
        auto const cost = toml_cost(text);
        if (cost.empty())
            return fail(ErrorCode::bad_format, "no [cost] table", std::string{file}, "a model of models.dev, or its api.json");
        if (o.provider.empty())
            return fail(ErrorCode::bad_usage, "the provider of the model is not named", std::string{file},
                        "it is the folder in models.dev");
        std::string model{file.substr(file.rfind('/') == std::string_view::npos ? 0 : file.rfind('/') + 1)};
        if (model.ends_with(".toml")) model.resize(model.size() - 5);
        out.read = 1;
        take_models_dev(cost, o.provider, model, file, file, o, out, findings);
        findings.close();
        return out;
    }
    auto const parsed = parse_json(text, file);
    if (!parsed) return tl::unexpected<Error>{parsed.error()};
    for (auto const& [id, provider] : parsed->items()) {
        if (!provider.is_object() || !provider.contains("models") || !provider["models"].is_object()) continue;
        for (auto const& [model, m] : provider["models"].items()) {
            if (!m.is_object() || !m.contains("cost") || !m["cost"].is_object()) continue;
            ++out.read;
            std::map<std::string, double> cost;
            for (auto const& [key, v] : m["cost"].items()) {
                if (auto const d = json_price(v)) cost[key] = *d;
                if (key == "context_over_200k" && v.is_object())
                    for (auto const& [k, x] : v.items())
                        if (auto const d = json_price(x)) cost["over_200k." + k] = *d;
            }
            take_models_dev(cost, id, model, fmt::format("{}: {}/{}", file, id, model), file, o, out, findings);
        }
    }
    if (out.read == 0) return fail(ErrorCode::bad_format, "no model with a cost", std::string{file}, "api.json of models.dev");
    findings.close();
    return out;
}

/// "_above_200k_tokens", "_above_199999_tokens" -> tokens.
inline std::optional<std::int64_t> tokens_above(std::string_view suffix) {
    constexpr std::string_view head = "_above_", tail = "_tokens";
    if (!suffix.starts_with(head) || !suffix.ends_with(tail)) return std::nullopt;
    suffix = suffix.substr(head.size(), suffix.size() - head.size() - tail.size());
    bool const thousands = suffix.ends_with('k');
    if (thousands) suffix.remove_suffix(1);
    std::int64_t n = 0;
    auto const [end, bad] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), n);
    if (bad != std::errc{} || end != suffix.data() + suffix.size() || n <= 0 || n > 100'000'000) return std::nullopt;
    return thousands ? n * 1000 : n;
}

inline Result<PriceImport> import_litellm(std::string_view text, std::string_view file, PriceImportOptions const& o) {
    auto const parsed = parse_json(text, file);
    if (!parsed) return tl::unexpected<Error>{parsed.error()};
    if (!parsed->is_object())
        return fail(ErrorCode::bad_format, "no object of models", std::string{file},
                    "model_prices_and_context_window.json of LiteLLM");
    PriceImport out;
    Findings findings{out.findings};
    for (auto const& [key, m] : parsed->items()) {
        if (key == "sample_spec" || !m.is_object()) continue;
        std::string const mode = member_text(m, "mode");
        if (mode != "chat" && mode != "completion" && mode != "responses") continue;
        ++out.read;
        std::string const where = fmt::format("{}: {}", file, key);
        std::string const end = member_text(m, "deprecation_date");
        if (!o.as_of.empty() && days_between(end, o.as_of).value_or(-1) >= 0) {
            findings.add(where, "no longer sold at the day of the plan", true);
            continue;
        }
        constexpr std::string_view stem = "input_cost_per_token";
        std::vector<std::pair<std::int64_t, std::string>> tiers{{0, ""}};
        for (auto const& [field, v] : m.items())
            if (field.starts_with(stem) && field.size() > stem.size())
                if (auto const n = tokens_above(std::string_view{field}.substr(stem.size())))
                    tiers.emplace_back(*n, field.substr(stem.size()));
        std::sort(tiers.begin(), tiers.end());
        // "above 199999" and "above 200k" are one boundary written twice.
        for (std::size_t i = 1; i < tiers.size();)
            if (tiers[i].first - tiers[i - 1].first <= 1 && tiers[i - 1].first > 0)
                tiers.erase(tiers.begin() + static_cast<std::ptrdiff_t>(i));
            else
                ++i;
        for (auto const& [tier, suffix] : tiers) {
            auto const get = [&, &m = m, &suffix = suffix](std::string const& name, char const* what) {
                auto at = m.find(name + suffix);
                if (at == m.end()) at = m.find(name);
                auto const v = at == m.end() ? std::nullopt : json_price(*at);
                return usd_per_million(v ? std::optional<double>{*v * 1e6} : std::nullopt, where, what,
                                       findings); // a token -> a million
            };
            ApiPrice r = tariff_row(o, file, member_text(m, "litellm_provider"), key);
            r.input = get("input_cost_per_token", "input");
            r.output = get("output_cost_per_token", "output");
            r.cached_input = get("cache_read_input_token_cost", "cached input");
            r.cache_write_5m = get("cache_creation_input_token_cost", "cache write");
            r.cache_write_1h = get("cache_creation_input_token_cost_above_1hr", "cache write, 1 h");
            if (tier > 0) r.tier_min_input = Tokens{tier};
            r.valid_to = is_iso_date(end) ? end : "";
            if (std::string const source = member_text(m, "source"); !source.empty()) r.url = source;
            take_tariff(std::move(r), where, out, findings);
        }
    }
    if (out.read == 0)
        return fail(ErrorCode::bad_format, "no chat model with a price", std::string{file},
                    "model_prices_and_context_window.json of LiteLLM");
    findings.close();
    return out;
}

} // namespace detail

/// Reads a price list of the given format.
inline Result<PriceImport> import_prices(std::string_view text, std::string_view file, PriceFormat format,
                                         PriceImportOptions const& o) {
    switch (format) {
    case PriceFormat::skypilot: return detail::import_skypilot(text, file, o);
    case PriceFormat::gpuhunt: return detail::import_gpuhunt(text, file, o);
    case PriceFormat::genai_prices: return detail::import_genai(text, file, o);
    case PriceFormat::models_dev: return detail::import_models_dev(text, file, o);
    case PriceFormat::litellm: return detail::import_litellm(text, file, o);
    }
    return fail(ErrorCode::unsupported, "unknown price list", std::string{file});
}

namespace detail {

inline std::string number_text(double v) {
    char buffer[32];
    auto const r = std::to_chars(buffer, buffer + sizeof buffer, v);
    return std::string(buffer, r.ptr);
}
template <class Measure>
std::string optional_text(std::optional<Measure> const& v) {
    return v ? number_text(v->value()) : std::string{};
}

} // namespace detail

/// GPU prices as a CSV with the columns of data/gpu_prices.csv.
inline std::string write_gpu_prices(std::span<GpuPrice const> rows) {
    std::string out;
    append_csv_record(out, std::array<std::string_view, 16>{"provider", "provider_class", "gpu_id", "gpu_name", "instance_or_sku",
                                                            "gpus_per_unit", "price_type", "usd_per_gpu_hour",
                                                            "usd_per_unit_hour", "price_original", "region", "price_date",
                                                            "date_kind", "confidence", "source_url", "notes"});
    for (GpuPrice const& r : rows)
        append_csv_record(out, std::array<std::string, 16>{r.provider, r.provider_class, r.gpu, r.gpu_name, r.sku,
                                                           r.gpus_per_unit ? std::to_string(*r.gpus_per_unit) : "", r.price_type,
                                                           detail::optional_text(r.per_gpu), detail::optional_text(r.per_unit),
                                                           r.price_original, r.region, r.date, r.date_kind,
                                                           std::string{to_string(r.confidence)}, r.url, r.notes});
    return out;
}

/// API prices as a CSV with the columns of data/api_prices.csv.
inline std::string write_api_prices(std::span<ApiPrice const> rows) {
    std::string out;
    append_csv_record(out, std::array<std::string_view, 18>{
                               "family", "model_id", "provider", "provider_model_id", "provider_kind", "input_usd_per_m",
                               "cached_input_usd_per_m", "cache_write_5m_usd_per_m", "cache_write_1h_usd_per_m",
                               "output_usd_per_m", "applies_when", "tier_min_input_tokens", "valid_from", "valid_to",
                               "price_date", "confidence", "source_url", "notes"});
    for (ApiPrice const& r : rows)
        append_csv_record(
            out, std::array<std::string, 18>{r.family, r.model, r.provider, r.provider_model, r.provider_kind,
                                             detail::optional_text(r.input), detail::optional_text(r.cached_input),
                                             detail::optional_text(r.cache_write_5m), detail::optional_text(r.cache_write_1h),
                                             detail::optional_text(r.output), r.applies_when,
                                             r.tier_min_input ? std::to_string(r.tier_min_input->value()) : "", r.valid_from,
                                             r.valid_to, r.date, std::string{to_string(r.confidence)}, r.url, r.notes});
    return out;
}

} // namespace servecap
