// servecap: JSON read without exceptions, with a place for every mistake
// SPDX-License-Identifier: Apache-2.0
//
// Thin layer over nlohmann::json. parse_json refuses what a config file never needs: deep nesting,
// repeated keys (the last would win silently), text after the value, very long input. FieldReader takes
// typed fields out of one object and remembers the first mistake, so that a reader can be written as a
// straight list of fields and ask once at the end.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <servecap/core/result.hpp>

namespace servecap {

using Json = nlohmann::json;

/// What parse_json accepts.
struct JsonLimits {
    std::size_t bytes = 64u << 20; ///< longest text
    int depth = 64;                ///< deepest nesting
};

namespace detail {

/// "line:column" of a byte of the text, both from 1.
inline std::string line_column(std::string_view text, std::size_t byte) {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < byte && i < text.size(); ++i) {
        if (text[i] == '\n') {
            ++line;
            column = 1;
        } else {
            ++column;
        }
    }
    return std::to_string(line) + ":" + std::to_string(column);
}

/// The text with Python's NaN and Infinity, which its json module writes and JSON has not, as nulls; nothing
/// where there are none.
inline std::optional<std::string> without_python_numbers(std::string_view text) {
    if (text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos) return std::nullopt;
    std::string out;
    out.reserve(text.size());
    bool quoted = false, found = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (quoted && text[i] == '\\' && i + 1 < text.size()) {
            out += text[i++];
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            std::size_t word = 0;
            for (std::string_view const w : {"-Infinity", "Infinity", "NaN"})
                if (text.substr(i, w.size()) == w) word = w.size();
            if (word > 0) {
                out += "null";
                i += word - 1;
                found = true;
                continue;
            }
        }
        out += text[i];
    }
    if (!found) return std::nullopt;
    return out;
}

/// Builds the value; stops at the first repeated key, bad token or number, or too deep nesting.
class StrictJsonSax {
public:
    StrictJsonSax(Json& root, int depth_limit) : root_{&root}, depth_limit_{depth_limit} {}

    bool null() { return put(Json(nullptr)) != nullptr; }
    bool boolean(bool v) { return put(Json(v)) != nullptr; }
    bool number_integer(Json::number_integer_t v) { return put(Json(v)) != nullptr; }
    bool number_unsigned(Json::number_unsigned_t v) { return put(Json(v)) != nullptr; }
    bool number_float(Json::number_float_t v, std::string const&) { return put(Json(v)) != nullptr; }
    bool string(std::string& v) { return put(Json(std::move(v))) != nullptr; }
    bool binary(Json::binary_t&) { return false; }
    bool start_object(std::size_t) { return open(Json::value_t::object); }
    bool start_array(std::size_t) { return open(Json::value_t::array); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(std::string& k) {
        auto& members = *stack_.back()->get_ptr<Json::object_t*>();
        auto const [at, fresh] = members.emplace(std::move(k), nullptr);
        if (!fresh) {
            why_ = "the key '" + at->first.substr(0, 80) + "' occurs twice in one object";
            return false;
        }
        member_ = &at->second;
        return true;
    }
    bool parse_error(std::size_t position, std::string const&, nlohmann::detail::exception const&) {
        position_ = position;
        return false;
    }

    std::string const& why() const { return why_; }
    std::size_t position() const { return position_; }

private:
    Json* put(Json&& v) {
        if (stack_.empty()) {
            *root_ = std::move(v);
            return root_;
        }
        if (stack_.back()->is_object()) {
            *member_ = std::move(v);
            return member_;
        }
        auto& items = *stack_.back()->get_ptr<Json::array_t*>();
        items.push_back(std::move(v));
        return &items.back();
    }
    bool open(Json::value_t kind) {
        if (stack_.size() >= static_cast<std::size_t>(depth_limit_)) {
            why_ = "nested deeper than " + std::to_string(depth_limit_) + " levels";
            return false;
        }
        stack_.push_back(put(Json(kind)));
        return true;
    }
    bool close() {
        stack_.pop_back();
        return true;
    }

    Json* root_;
    Json* member_ = nullptr;
    int depth_limit_;
    std::vector<Json*> stack_; // parents of the value that comes next; a parent does not move while it is open
    std::string why_;
    std::size_t position_ = 0;
};

} // namespace detail

/// Parses one JSON value. Errors: bad_format with line and column where known. `where` names the file.
inline Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits const& limits = {}) {
    if (text.size() > limits.bytes)
        return fail(ErrorCode::bad_format, "JSON text of " + std::to_string(text.size()) + " bytes", std::string{where},
                    "at most " + std::to_string(limits.bytes) + " bytes are read");
    Json root;
    detail::StrictJsonSax sax{root, limits.depth};
    if (Json::sax_parse(text.begin(), text.end(), &sax)) return root;
    if (sax.why().empty())
        if (auto const plain = detail::without_python_numbers(text)) return parse_json(*plain, where, limits);
    if (!sax.why().empty()) return fail(ErrorCode::bad_format, "not usable JSON: " + sax.why(), std::string{where});
    std::size_t const at = sax.position() == 0 ? 0 : sax.position() - 1;
    std::string place{where};
    place += ":" + detail::line_column(text, at);
    std::string_view const rest = text.substr(at < text.size() ? at : text.size());
    std::string near;
    for (char const c : rest.substr(0, 20)) near += (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) ? '?' : c;
    return fail(ErrorCode::bad_format, near.empty() ? "JSON ends too early" : "not JSON at '" + near + "'", std::move(place),
                "expected a JSON object as in a Hugging Face config.json");
}

/// A value as people may read it in a message: at most 60 characters.
inline std::string show_json(Json const& v) {
    std::string s = v.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (s.size() > 60) s = s.substr(0, 57) + "...";
    return s;
}

/// `v` as a whole number, if it is one (4096, also 4096.0).
inline std::optional<std::int64_t> json_integer(Json const& v) {
    if (v.is_number_unsigned()) {
        auto const u = *v.get_ptr<Json::number_unsigned_t const*>();
        if (u > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
        return static_cast<std::int64_t>(u);
    }
    if (v.is_number_integer()) return *v.get_ptr<Json::number_integer_t const*>();
    if (v.is_number_float()) {
        double const d = *v.get_ptr<Json::number_float_t const*>();
        if (d == std::floor(d) && std::fabs(d) < 9.0e15) return static_cast<std::int64_t>(d);
    }
    return std::nullopt;
}

/// `v` as a number.
inline std::optional<double> json_number(Json const& v) {
    if (v.is_number_unsigned()) return static_cast<double>(*v.get_ptr<Json::number_unsigned_t const*>());
    if (v.is_number_integer()) return static_cast<double>(*v.get_ptr<Json::number_integer_t const*>());
    if (v.is_number_float()) return *v.get_ptr<Json::number_float_t const*>();
    return std::nullopt;
}

/// `v` as text.
inline std::optional<std::string> json_text(Json const& v) {
    if (!v.is_string()) return std::nullopt;
    return *v.get_ptr<Json::string_t const*>();
}

/// The member `key` of an object, or nothing: also for null and for what is not an object.
inline Json const* find_member(Json const& object, std::string_view key) {
    if (!object.is_object()) return nullptr;
    auto const& map = *object.get_ptr<Json::object_t const*>();
    auto const it = map.find(std::string{key});
    return it == map.end() || it->second.is_null() ? nullptr : &it->second;
}

/// Takes typed fields from one object; the first mistake stays in the shared slot.
class FieldReader {
public:
    using Names = std::initializer_list<std::string_view>;

    /// `file` names the source in messages, `path` the object within it ("text_config").
    FieldReader(Json const& object, std::string file, std::string path, std::optional<Error>& error)
        : object_{&object}, file_{std::move(file)}, path_{std::move(path)}, error_{&error} {}

    [[nodiscard]] Json const& object() const { return *object_; }
    [[nodiscard]] bool failed() const { return error_->has_value(); }
    [[nodiscard]] std::string const& file() const { return file_; }

    /// The first of `names` that is there and not null.
    [[nodiscard]] Json const* find(Names names, std::string_view* which = nullptr) const {
        for (std::string_view const name : names)
            if (Json const* v = find_member(*object_, name)) {
                if (which != nullptr) *which = name;
                return v;
            }
        return nullptr;
    }
    [[nodiscard]] bool has(std::string_view name) const { return find({name}) != nullptr; }

    /// A whole number in [low, high]; without a fallback the field must be there.
    std::int64_t integer(Names names, std::int64_t low, std::int64_t high, std::optional<std::int64_t> fallback = std::nullopt) const {
        std::string_view which = *names.begin();
        Json const* v = find(names, &which);
        if (v == nullptr) {
            if (fallback) return *fallback;
            mistake(ErrorCode::missing, which, "the field is missing", "expected a whole number");
            return low;
        }
        auto const n = json_integer(*v);
        if (!n || *n < low || *n > high) {
            mistake(ErrorCode::bad_value, which, show_json(*v) + " is not usable",
                    "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high));
            return low;
        }
        return *n;
    }
    std::int32_t size(Names names, std::int32_t high, std::optional<std::int32_t> fallback = std::nullopt, std::int32_t low = 1) const {
        return static_cast<std::int32_t>(
            integer(names, low, high, fallback ? std::optional<std::int64_t>{*fallback} : std::nullopt));
    }
    bool flag(Names names, bool fallback) const {
        std::string_view which = *names.begin();
        Json const* v = find(names, &which);
        if (v == nullptr) return fallback;
        if (!v->is_boolean()) {
            mistake(ErrorCode::bad_value, which, show_json(*v) + " is not usable", "expected true or false");
            return fallback;
        }
        return *v->get_ptr<Json::boolean_t const*>();
    }
    std::string text(Names names, std::string fallback) const {
        std::string_view which = *names.begin();
        Json const* v = find(names, &which);
        if (v == nullptr) return fallback;
        auto t = json_text(*v);
        if (!t) mistake(ErrorCode::bad_value, which, show_json(*v) + " is not usable", "expected text");
        return t ? *t : std::move(fallback);
    }
    /// A list of whole numbers in [low, high]; empty when the field is not there.
    std::vector<std::int64_t> integers(Names names, std::int64_t low, std::int64_t high, std::size_t most = 4096) const {
        std::string_view which = *names.begin();
        Json const* v = find(names, &which);
        std::vector<std::int64_t> out;
        if (v == nullptr) return out;
        if (!v->is_array() || v->size() > most) {
            mistake(ErrorCode::bad_value, which, show_json(*v) + " is not usable", "expected a list of whole numbers");
            return out;
        }
        for (Json const& item : *v) {
            auto const n = json_integer(item);
            if (!n || *n < low || *n > high) {
                mistake(ErrorCode::bad_value, which, "the entry " + show_json(item) + " is not usable",
                        "expected whole numbers from " + std::to_string(low) + " to " + std::to_string(high));
                return {};
            }
            out.push_back(*n);
        }
        return out;
    }
    /// A list of texts; empty when the field is not there.
    std::vector<std::string> texts(Names names, std::size_t most = 100000) const {
        std::string_view which = *names.begin();
        Json const* v = find(names, &which);
        std::vector<std::string> out;
        if (v == nullptr) return out;
        if (!v->is_array() || v->size() > most) {
            mistake(ErrorCode::bad_value, which, show_json(*v) + " is not usable", "expected a list of texts");
            return out;
        }
        for (Json const& item : *v) {
            auto t = json_text(item);
            if (!t) {
                mistake(ErrorCode::bad_value, which, "the entry " + show_json(item) + " is not usable", "expected text");
                return {};
            }
            out.push_back(*std::move(t));
        }
        return out;
    }

    /// Notes a mistake at a field, unless an earlier one is there.
    void mistake(ErrorCode code, std::string_view field, std::string message, std::string hint = {}) const {
        if (error_->has_value()) return;
        std::string at = path_.empty() ? std::string{field} : path_ + "." + std::string{field};
        *error_ = Error{code, at + ": " + std::move(message), file_, std::move(hint)};
    }

private:
    Json const* object_;
    std::string file_;
    std::string path_;
    std::optional<Error>* error_;
};

} // namespace servecap
