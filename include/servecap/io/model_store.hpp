// servecap: a model by its name, alias or path
// SPDX-License-Identifier: Apache-2.0
//
// load_model finds one card and parses that one alone: names are compared without case and separators,
// first with the cards, then with names.csv, then as the beginning of one card's name. Cards of extra data
// folders win over the built-in ones. A path to a config.json, a checkpoint folder or a GGUF file works too.
// Names that could be several models, or none, are Errors with the nearest names.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <servecap/catalog/model.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/io/checkpoint.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/hf_config.hpp>
#include <servecap/memory/weights.hpp>

namespace servecap {

struct StoreOptions {
    std::vector<std::string> data_dirs{}; ///< folders with models/*.json and names.csv; the first that has a name wins
    std::string assume{};               ///< "gqa": read an unknown architecture as grouped attention
    std::string weights_dtype{};        ///< load the weights in another type (load_as); empty or "auto": as stored
};

namespace detail {

/// The whole text of a file of at most `most` bytes.
inline Result<std::string> read_text_file(std::string const& path, std::size_t most) {
    struct Close {
        void operator()(std::FILE* f) const { std::fclose(f); }
    };
    std::error_code ec;
    if (std::filesystem::is_directory(path, ec)) return fail(ErrorCode::missing, "is a folder", path, "expected a file");
    std::unique_ptr<std::FILE, Close> const file{std::fopen(path.c_str(), "rb")};
    if (!file) return fail(ErrorCode::missing, "cannot be read", path, "expected a readable file");
    std::string text;
    char buffer[65536];
    while (std::size_t const n = std::fread(buffer, 1, sizeof buffer, file.get())) {
        text.append(buffer, n);
        if (text.size() > most) return fail(ErrorCode::bad_format, "larger than " + std::to_string(most) + " bytes", path);
    }
    if (std::ferror(file.get()) != 0) return fail(ErrorCode::missing, "reading failed", path);
    return text;
}

inline constexpr std::string_view kCardFolder = "models/";
inline constexpr std::string_view kCardSuffix = ".json";

/// The part of an id after its organisation: "moonshotai/Kimi-K3" -> "Kimi-K3".
inline std::string_view without_organisation(std::string_view id) {
    auto const slash = id.rfind('/');
    return slash == std::string_view::npos ? id : id.substr(slash + 1);
}

/// A card of a data folder or of the built-in catalogue.
struct CardPlace {
    std::string name;                      ///< "Kimi-K3"
    std::optional<std::string_view> text;  ///< built in
    std::string path;                      ///< else a file
};

/// Every card, data folders first; sorted within its source; a name once.
inline std::vector<CardPlace> list_cards(StoreOptions const& options) {
    std::vector<CardPlace> cards;
    for (std::string const& dir : options.data_dirs) {
        std::error_code ec;
        std::vector<CardPlace> here;
        for (auto it = std::filesystem::directory_iterator(dir + "/models", ec); !ec && it != std::filesystem::directory_iterator{};
             it.increment(ec))
            if (it->path().extension() == kCardSuffix) here.push_back({it->path().stem().string(), std::nullopt, it->path().string()});
        std::sort(here.begin(), here.end(), [](CardPlace const& a, CardPlace const& b) { return a.name < b.name; });
        cards.insert(cards.end(), here.begin(), here.end());
    }
    std::size_t const own = cards.size();
    for (std::size_t i = 0; i < embedded_file_count(); ++i) {
        EmbeddedFile const f = embedded_file(i);
        if (!f.name.starts_with(kCardFolder) || !f.name.ends_with(kCardSuffix)) continue;
        std::string name{f.name.substr(kCardFolder.size(), f.name.size() - kCardFolder.size() - kCardSuffix.size())};
        bool const hidden = std::any_of(cards.begin(), cards.begin() + static_cast<std::ptrdiff_t>(own),
                                        [&](CardPlace const& c) { return fold_name(c.name) == fold_name(name); });
        if (!hidden) cards.push_back({std::move(name), f.text, {}});
    }
    return cards;
}

/// Cuts one CSV line's first three cells; quotes are taken off. False: fewer cells.
inline bool three_cells(std::string_view line, std::string_view (&cell)[3]) {
    std::size_t at = 0;
    for (std::string_view& c : cell) {
        if (at > line.size()) return false;
        if (at < line.size() && line[at] == '"') {
            auto const end = line.find('"', at + 1);
            if (end == std::string_view::npos) return false;
            c = line.substr(at + 1, end - at - 1);
            at = end + 2;
        } else {
            auto const end = std::min(line.find(',', at), line.size());
            c = line.substr(at, end - at);
            at = end + 1;
        }
        while (!c.empty() && (c.back() == '\r' || c.back() == ' ')) c.remove_suffix(1);
    }
    return true;
}

/// The canonical model name of a spelling (already folded) in the text of a names.csv.
inline std::optional<std::string> find_alias(std::string_view text, std::string const& folded) {
    while (!text.empty()) {
        auto const end = std::min(text.find('\n'), text.size());
        std::string_view const line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!line.starts_with("model,")) continue;
        std::string_view cell[3];
        if (!three_cells(line, cell)) continue;
        // Same length and last letter first: most lines go without a copy.
        if (cell[1].size() != folded.size()) continue;
        if (fold_name(cell[1]) == folded) return std::string{cell[2]};
    }
    return std::nullopt;
}

/// Text of names.csv of each source, data folders first.
inline std::optional<std::string> find_alias(StoreOptions const& options, std::string const& folded) {
    for (std::string const& dir : options.data_dirs)
        if (auto const text = read_text_file(dir + "/names.csv", 64u << 20))
            if (auto found = find_alias(*text, folded)) return found;
    if (auto const text = find_embedded("names.csv")) return find_alias(*text, folded);
    return std::nullopt;
}

/// Lower case without any separator.
inline std::string squeeze_name(std::string_view s) {
    std::string r = fold_name(s);
    r.erase(std::remove(r.begin(), r.end(), '-'), r.end());
    return r;
}

/// Position of the card that a name means. Errors: unknown_name.
inline Result<std::size_t> find_card(std::vector<CardPlace> const& cards, StoreOptions const& options, std::string_view asked) {
    auto const exact = [&](std::string_view name) -> std::optional<std::size_t> {
        std::string const want = fold_name(name);
        for (std::size_t i = 0; i < cards.size(); ++i)
            if (cards[i].name.size() == want.size() && fold_name(cards[i].name) == want) return i;
        return std::nullopt;
    };
    std::string_view const bare = without_organisation(asked);
    if (auto const i = exact(bare)) return *i;
    for (std::string_view const name : {asked, bare})
        if (auto const canonical = find_alias(options, fold_name(name)))
            if (auto const i = exact(*canonical)) return *i;

    // Without any separator: "glm5" for GLM-5, "llama3.1-8b" for Llama-3.1-8B.
    std::string const tight = squeeze_name(bare);
    std::optional<std::size_t> only;
    bool several = false;
    for (std::size_t i = 0; i < cards.size(); ++i)
        if (cards[i].name.size() >= tight.size() && squeeze_name(cards[i].name) == tight) {
            several = only.has_value();
            only = i;
        }
    if (only && !several) return *only;

    // The beginning of a name up to a separator: "qwen3-coder-480b" for Qwen3-Coder-480B-A35B-Instruct.
    std::string const want = fold_name(bare);
    std::vector<std::size_t> begins;
    if (want.size() >= 3)
        for (std::size_t i = 0; i < cards.size(); ++i) {
            std::string const have = fold_name(cards[i].name);
            if (have.size() > want.size() && have.starts_with(want) && have[want.size()] == '-') begins.push_back(i);
        }
    // Several: the one whose name all others go on from ("Gemma-4-26B-A4B", not "Gemma-4-26B-A4B-NVFP4").
    for (std::size_t const i : begins) {
        std::string const stem = fold_name(cards[i].name) + '-';
        if (std::all_of(begins.begin(), begins.end(), [&](std::size_t k) { return k == i || fold_name(cards[k].name).starts_with(stem); })) return i;
    }
    std::string const shown{asked.substr(0, 100)};
    if (begins.size() > 1) {
        std::string list;
        for (std::size_t k = 0; k < begins.size() && k < 8; ++k) list += (k == 0 ? "" : ", ") + cards[begins[k]].name;
        if (begins.size() > 8) list += " and " + std::to_string(begins.size() - 8) + " more";
        return fail(ErrorCode::unknown_name, "'" + shown + "' may be several models", "--model", "one of " + list);
    }
    std::vector<std::string> names;
    names.reserve(cards.size());
    for (CardPlace const& c : cards) names.push_back(c.name);
    std::string const near = did_you_mean(bare, names);
    return fail(ErrorCode::unknown_name, "no model is called '" + shown + "'", "--model",
                near.empty() ? "planner list models shows the names; a path to a config.json works too" : near);
}

/// The text was meant as a path.
inline bool looks_like_path(std::string_view s) {
    return s.starts_with('/') || s.starts_with("./") || s.starts_with("../") || s.starts_with("~/") || s == "." || s == ".." ||
           s.ends_with(".json") || s.ends_with(".gguf") || s.ends_with(".safetensors") || s.ends_with('/');
}

} // namespace detail

/// The catalogue name of a model as people write it ("k3.1" -> "Kimi-K3.1-Pro"). Errors: unknown_name.
inline Result<std::string> find_model_name(std::string_view written, StoreOptions const& options = {}) {
    auto const cards = detail::list_cards(options);
    auto const i = detail::find_card(cards, options, trim(written));
    if (!i) return tl::unexpected<Error>{i.error()};
    return cards[*i].name;
}

/// The names of all models, sorted.
inline std::vector<std::string> list_models(StoreOptions const& options = {}) {
    std::vector<std::string> names;
    for (auto& c : detail::list_cards(options)) names.push_back(std::move(c.name));
    std::sort(names.begin(), names.end(), [](std::string const& a, std::string const& b) { return to_lower(a) < to_lower(b); });
    return names;
}

namespace detail {

inline Result<Model> find_and_load(std::string_view name_or_path, StoreOptions const& options) {
    std::string_view const asked = trim(name_or_path);
    ConfigOptions config;
    if (!options.assume.empty()) {
        if (fold_name(options.assume) != "gqa")
            return fail(ErrorCode::bad_value, "'" + options.assume + "' cannot be assumed", "--assume", "expected gqa");
        config.assume_gqa = true;
    }
    if (asked.empty()) return fail(ErrorCode::bad_usage, "no model named", "--model", "for example kimi-k3.1; planner list models shows all");
    if (looks_like_path(asked)) return load_checkpoint(std::filesystem::path{asked}, config);
    auto const cards = list_cards(options);
    auto const i = find_card(cards, options, asked);
    if (!i) {
        std::error_code ec;
        if (std::filesystem::exists(std::filesystem::path{asked}, ec)) return load_checkpoint(std::filesystem::path{asked}, config);
        return tl::unexpected<Error>{i.error()};
    }
    auto const& card = cards[*i];
    auto const build = [&](std::string_view text) {
        auto model = model_from_config(text, card.name, config);
        if (model) model->name = card.name;
        return model;
    };
    if (card.text) return build(*card.text);
    auto const text = read_text_file(card.path, 16u << 20);
    if (!text) return tl::unexpected<Error>{text.error()};
    return build(*text);
}

} // namespace detail

/// The model called `name_or_path`: catalogue name, Hugging Face id, alias, path to a config.json or a
/// checkpoint folder. Errors: unknown_name (with the nearest names), missing file, and those of the reader.
inline Result<Model> load_model(std::string_view name_or_path, StoreOptions const& options = {}) {
    auto model = detail::find_and_load(name_or_path, options);
    if (!model || options.weights_dtype.empty()) return model;
    return load_as(*std::move(model), options.weights_dtype);
}

} // namespace servecap
