// servecap: reading and writing CSV, over libcsv
// SPDX-License-Identifier: Apache-2.0
//
// RFC 4180 with UTF-8 (a byte order mark is allowed), CRLF or LF, and `#` comment lines. Headers are matched by
// name in any order. Records are found by counting quotes (a record ends at a line feed after an even number of
// them); libcsv splits a record with quotes into fields in its strict mode, one without is split at its commas. A
// caller that wants few rows of a big file gives a predicate on one column: records without quotes before its end
// are then judged by their bytes alone and only the wanted ones are split.
//
// Mistakes are kept until asked for: a reader stops at the first one, and error() tells file:line:column, the
// value and what was expected. Columns count bytes from 1.

#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <csv.h>

#include <servecap/core/date.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>

namespace servecap {

/// What a CSV file may be at most; a guard against hostile or wrong files.
struct CsvLimits {
    std::size_t bytes = std::size_t{256} << 20;
    std::size_t record_bytes = std::size_t{1} << 20;
    std::size_t columns = 1024;
    std::size_t rows = 5'000'000;
};

/// A column of a reader; empty where an optional column is absent.
struct CsvColumn {
    std::int32_t index = -1;
    explicit constexpr operator bool() const noexcept { return index >= 0; }
};

/// Length of the longest prefix of `s` that is well-formed UTF-8; s.size() when all of it is.
inline std::size_t utf8_prefix(std::string_view s) noexcept {
    std::size_t i = 0;
    while (i < s.size()) {
        auto const byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
        unsigned char const c = byte(i);
        if (c < 0x80) {
            ++i;
            continue;
        }
        std::size_t const n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        if (c < 0xC2 || c > 0xF4 || i + n > s.size()) return i;
        for (std::size_t k = 1; k < n; ++k)
            if ((byte(i + k) & 0xC0) != 0x80) return i;
        unsigned char const d = byte(i + 1);
        if ((c == 0xE0 && d < 0xA0) || (c == 0xED && d > 0x9F) || (c == 0xF0 && d < 0x90) || (c == 0xF4 && d > 0x8F)) return i;
        i += n;
    }
    return i;
}

/// Reads the records of one CSV text. The text must outlive the reader.
class CsvReader {
public:
    /// Reads the header line. `file` is only for messages.
    static Result<CsvReader> open(std::string_view text, std::string_view file, CsvLimits const& limits = {}) {
        CsvReader r{text, file, limits};
        if (text.size() > limits.bytes)
            return fail(ErrorCode::bad_format, "file of " + std::to_string(text.size()) + " bytes", std::string{file},
                        "at most " + std::to_string(limits.bytes) + " bytes are read");
        if (text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF")
            return fail(ErrorCode::bad_format, "text is UTF-16", std::string{file} + ":1:1", "save it as UTF-8");
        if (text.substr(0, 3) == "\xEF\xBB\xBF") r.at_ = 3;
        if (!r.next()) {
            if (r.failed()) return tl::unexpected<Error>{r.error()};
            return fail(ErrorCode::bad_format, "no header line", std::string{file} + ":1:1", "the first line names the columns");
        }
        if (r.ends_.size() > limits.columns)
            return fail(ErrorCode::bad_format, std::to_string(r.ends_.size()) + " columns", r.place(0),
                        "at most " + std::to_string(limits.columns) + " are read");
        r.rows_ = 0;
        for (std::size_t i = 0; i < r.ends_.size(); ++i) {
            std::string name{r.raw(i)};
            if (!name.empty() && std::find(r.header_.begin(), r.header_.end(), name) != r.header_.end())
                return fail(ErrorCode::bad_format, "column \"" + name + "\" occurs twice", r.place(i));
            r.header_.push_back(std::move(name));
        }
        r.header_line_ = r.record_line_;
        return r;
    }

    [[nodiscard]] std::vector<std::string> const& header() const noexcept { return header_; }
    [[nodiscard]] std::string const& file() const noexcept { return file_; }
    /// Line of the file on which the present record begins, from 1.
    [[nodiscard]] std::int64_t line() const noexcept { return record_line_; }

    /// The column called `name`; an absent one is a mistake that stops the reader.
    CsvColumn required(std::string_view name) {
        CsvColumn const c = optional(name);
        if (!c && !failed())
            set_error({ErrorCode::missing, "column \"" + std::string{name} + "\" is missing",
                       file_ + ":" + std::to_string(header_line_) + ":1", did_you_mean(name, header_)});
        return c;
    }

    /// The column called `name`, if the file has it.
    [[nodiscard]] CsvColumn optional(std::string_view name) const noexcept {
        for (std::size_t i = 0; i < header_.size(); ++i)
            if (header_[i] == name) return {static_cast<std::int32_t>(i)};
        return {};
    }

    /// At least one of `names` must be there.
    void any_of(std::initializer_list<std::string_view> names) {
        std::string list;
        for (std::string_view name : names) {
            if (optional(name)) return;
            list += (list.empty() ? "" : ", ") + std::string{name};
        }
        if (!failed())
            set_error({ErrorCode::missing, "no column with a result", file_ + ":" + std::to_string(header_line_) + ":1",
                       "at least one of " + list});
    }

    /// Moves to the next record. False at the end and after a mistake.
    bool next() {
        return advance(CsvColumn{}, [](std::string_view) { return true; });
    }

    /// Moves to the next record whose field in `key` satisfies `wanted`; others are not checked for mistakes.
    template <class Predicate>
    bool next_where(CsvColumn key, Predicate&& wanted) {
        return advance(key, wanted);
    }

    /// Moves to the next record in whose bytes one of `words` occurs; others are not checked for mistakes.
    bool next_with(std::span<std::string const> words) {
        bool quoted = false;
        while (!failed() && find_record(quoted))
            if (std::any_of(words.begin(), words.end(), [&](std::string const& w) { return record_.find(w) != std::string_view::npos; }))
                return take();
        return false;
    }

    /// A field without blanks around it; empty where the column is absent.
    [[nodiscard]] std::string_view text(CsvColumn c) const noexcept {
        return c ? trim(raw(static_cast<std::size_t>(c.index))) : std::string_view{};
    }
    [[nodiscard]] std::string string(CsvColumn c) const { return std::string{text(c)}; }

    /// A number of [low, high]; nothing where the field is empty.
    std::optional<double> number(CsvColumn c, double low, double high) {
        std::string_view const s = text(c);
        if (s.empty() || failed()) return std::nullopt;
        double v = 0;
        auto const [end, bad] = std::from_chars(s.data(), s.data() + s.size(), v);
        if (bad != std::errc{} || end != s.data() + s.size() || !std::isfinite(v)) {
            refuse(c, "is not a number", "expected " + range(low, high) + ", or nothing where it is not known");
            return std::nullopt;
        }
        if (v < low || v > high) {
            refuse(c, "is out of range", "expected " + range(low, high));
            return std::nullopt;
        }
        return v;
    }

    /// A whole number of [low, high] ("8", also "8.0"); nothing where the field is empty.
    std::optional<std::int64_t> whole(CsvColumn c, std::int64_t low, std::int64_t high) {
        std::string_view const s = text(c);
        if (s.empty() || failed()) return std::nullopt;
        std::int64_t n = 0;
        auto const [end, bad] = std::from_chars(s.data(), s.data() + s.size(), n);
        if (bad == std::errc{} && end == s.data() + s.size() && n >= low && n <= high) return n;
        // Spreadsheets and data frames write whole numbers as 8.0.
        auto const v = number(c, static_cast<double>(low), static_cast<double>(high));
        if (!v) return std::nullopt;
        if (*v != std::floor(*v) || std::fabs(*v) > 9.0e15) {
            refuse(c, "is not a whole number", "expected " + range(static_cast<double>(low), static_cast<double>(high)));
            return std::nullopt;
        }
        return static_cast<std::int64_t>(*v);
    }

    /// An ISO date (year, month or day), or "unknown" where the field is empty.
    std::string date(CsvColumn c) {
        std::string_view const s = text(c);
        if (s.empty() || s == "unknown") return "unknown";
        if (!is_iso_date(s)) refuse(c, "is not a date", "expected YYYY, YYYY-MM or YYYY-MM-DD, or unknown");
        return std::string{s};
    }

    /// Reports the field in `c`: `"abc" is not a number`.
    void refuse(CsvColumn c, std::string_view what, std::string hint) {
        if (failed()) return;
        auto const i = static_cast<std::size_t>(c.index);
        set_error({ErrorCode::bad_value,
                   "column \"" + header_[i] + "\": \"" + std::string{shorten(text(c))} + "\" " + std::string{what}, place(i),
                   std::move(hint)});
    }

    [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }
    /// The first mistake; only after failed().
    [[nodiscard]] Error const& error() const noexcept { return *error_; }

    /// file:line:column of field `i` of the present record.
    [[nodiscard]] std::string place(std::size_t i) const { return place_of(field_offset(i)); }

private:
    struct FreeParser {
        void operator()(csv_parser* p) const noexcept {
            csv_free(p);
            delete p;
        }
    };
    struct Sink {
        std::string* bytes;
        std::vector<std::size_t>* ends;
        std::size_t records = 0;
        static void on_field(void* data, std::size_t n, void* self) {
            auto& s = *static_cast<Sink*>(self);
            if (n != 0) s.bytes->append(static_cast<char const*>(data), n);
            s.ends->push_back(s.bytes->size());
        }
        static void on_record(int, void* self) { ++static_cast<Sink*>(self)->records; }
    };

    CsvReader(std::string_view text, std::string_view file, CsvLimits const& limits)
        : text_{text}, file_{file}, limits_{limits}, parser_{new csv_parser} {
        csv_init(parser_.get(), CSV_STRICT | CSV_STRICT_FINI);
    }

    static std::string_view shorten(std::string_view s) noexcept {
        std::string_view const head = s.substr(0, 80);
        return head.substr(0, utf8_prefix(head));
    }

    static std::string range(double low, double high) {
        auto const text = [](double v) {
            char buffer[32];
            auto const r = std::to_chars(buffer, buffer + sizeof buffer, v);
            return std::string(buffer, r.ptr);
        };
        return "a number from " + text(low) + " to " + text(high);
    }

    [[nodiscard]] std::string_view raw(std::size_t i) const noexcept {
        if (i >= ends_.size()) return {};
        std::size_t const from = i == 0 ? 0 : ends_[i - 1];
        return std::string_view{fields_}.substr(from, ends_[i] - from);
    }

    void set_error(Error e) { error_ = std::move(e); }

    // Bytes of the present record before field i: the record is split once more, a byte at a time.
    [[nodiscard]] std::size_t field_offset(std::size_t i) const {
        if (i == 0) return 0;
        CsvReader again{{}, {}, limits_};
        std::string bytes;
        std::vector<std::size_t> ends;
        Sink sink{&bytes, &ends};
        for (std::size_t k = 0; k < record_.size(); ++k) {
            if (csv_parse(again.parser_.get(), record_.data() + k, 1, Sink::on_field, Sink::on_record, &sink) != 1) return k;
            if (ends.size() == i) return k + 1;
        }
        return record_.size();
    }

    [[nodiscard]] std::string place_of(std::size_t offset) const {
        std::string_view const before = record_.substr(0, offset);
        auto const lines = std::count(before.begin(), before.end(), '\n');
        auto const last = before.rfind('\n');
        std::size_t const column = last == std::string_view::npos ? offset : offset - last - 1;
        return file_ + ":" + std::to_string(record_line_ + lines) + ":" + std::to_string(column + 1);
    }

    // Finds the next record: bytes [at_, end of record), without its line end. False at the end of the text.
    bool find_record(bool& quoted) {
        for (;;) {
            if (at_ >= text_.size()) return false;
            std::size_t const from = at_;
            std::size_t end = from;
            std::int64_t lines = 0;
            bool open = false;
            quoted = false;
            for (;;) {
                std::size_t const start = end;
                void const* const lf = std::memchr(text_.data() + start, '\n', text_.size() - start);
                end = lf == nullptr ? text_.size() : static_cast<std::size_t>(static_cast<char const*>(lf) - text_.data());
                std::string_view const piece = text_.substr(start, end - start);
                if (std::memchr(piece.data(), '"', piece.size()) != nullptr) {
                    quoted = true;
                    if (std::count(piece.begin(), piece.end(), '"') % 2 != 0) open = !open;
                }
                ++lines;
                if (!open || end >= text_.size() || end - from > limits_.record_bytes) break;
                // A comment may hold one quote; it never goes on over a line end.
                if (lines == 1 && is_comment(piece)) break;
                ++end;
            }
            record_ = text_.substr(from, end - from);
            record_line_ = line_;
            line_ += lines;
            at_ = end + 1;
            if (is_comment(record_.substr(0, record_.find('\n'))) || trim(record_).empty()) continue;
            if (record_.size() > limits_.record_bytes) {
                set_error({ErrorCode::bad_format,
                           open ? "a quoted field does not end within " + std::to_string(limits_.record_bytes) + " bytes"
                                : "a record of " + std::to_string(record_.size()) + " bytes",
                           place_of(0), "is a closing quote missing?"});
                return false;
            }
            return true;
        }
    }

    static bool is_comment(std::string_view s) noexcept {
        auto const i = s.find_first_not_of(" \t");
        return i != std::string_view::npos && s[i] == '#';
    }

    // The field in `key` by its bytes alone; nothing where a quote may hide a comma before its end.
    [[nodiscard]] std::optional<std::string_view> bytes_of(CsvColumn key, bool quoted) const noexcept {
        std::size_t from = 0;
        for (std::int32_t skip = key.index; skip > 0; --skip) {
            from = record_.find(',', from);
            if (from == std::string_view::npos) return std::nullopt;
            ++from;
        }
        std::size_t const to = std::min(record_.find(',', from), record_.size());
        if (quoted && std::memchr(record_.data(), '"', to) != nullptr) return std::nullopt;
        return trim(record_.substr(from, to - from));
    }

    template <class Predicate>
    bool advance(CsvColumn key, Predicate&& wanted) {
        bool quoted = false;
        while (!failed() && find_record(quoted)) {
            std::optional<std::string_view> const seen = key ? bytes_of(key, quoted) : std::nullopt;
            if (seen && !wanted(*seen)) continue;
            if (!take()) return false;
            if (key && !seen && !wanted(text(key))) continue;
            return true;
        }
        return false;
    }

    // Splits the present record and counts it.
    bool take() {
        if (!split()) return false;
        if (++rows_ > limits_.rows)
            set_error({ErrorCode::bad_format, "more than " + std::to_string(limits_.rows) + " rows", place_of(0), {}});
        return !failed();
    }

    bool split() {
        fields_.clear();
        ends_.clear();
        if (std::string_view const r = record_.substr(0, record_.size() - (record_.ends_with('\r') ? 1 : 0)); is_plain(r)) {
            for (std::size_t from = 0; from <= r.size();) {
                std::size_t const to = std::min(r.find(',', from), r.size());
                fields_ += trim(r.substr(from, to - from)); // as libcsv does with fields that are not quoted
                ends_.push_back(fields_.size());
                from = to + 1;
            }
            return checked();
        }
        Sink sink{&fields_, &ends_};
        std::size_t const done = csv_parse(parser_.get(), record_.data(), record_.size(), Sink::on_field, Sink::on_record, &sink);
        bool const bad = done != record_.size();
        bool const open = csv_fini(parser_.get(), Sink::on_field, Sink::on_record, &sink) != 0;
        if (bad || open) {
            set_error({ErrorCode::bad_format, bad ? "a quote inside a field" : "a quoted field does not end",
                       place_of(bad ? done : 0), "quote the whole field and write \"\" for a quote in it"});
            return false;
        }
        if (sink.records > 1) {
            set_error({ErrorCode::bad_format, "a carriage return inside a line",
                       place_of(std::min(record_.find('\r'), record_.size())), "lines end in LF or CRLF"});
            return false;
        }
        return checked();
    }

    /// No quote and no stray carriage return: the record is what stands between its commas.
    static bool is_plain(std::string_view record) noexcept {
        return std::memchr(record.data(), '"', record.size()) == nullptr && std::memchr(record.data(), '\r', record.size()) == nullptr;
    }

    /// The fields of a record that was split are UTF-8, and as many as the header has.
    bool checked() {
        if (std::size_t const good = utf8_prefix(fields_); good != fields_.size()) {
            std::size_t i = 0;
            while (i < ends_.size() && ends_[i] <= good) ++i;
            set_error({ErrorCode::bad_format, "a byte that is not UTF-8", place(i), "save the file as UTF-8"});
            return false;
        }
        if (!header_.empty() && ends_.size() != header_.size()) {
            set_error({ErrorCode::bad_format, std::to_string(ends_.size()) + " fields", place_of(0),
                       "the header has " + std::to_string(header_.size()) + "; is a comma unquoted or a field missing?"});
            return false;
        }
        return true;
    }

    std::string_view text_;
    std::string file_;
    CsvLimits limits_;
    std::unique_ptr<csv_parser, FreeParser> parser_;
    std::vector<std::string> header_;
    std::string fields_;            // the fields of the present record, one after the other
    std::vector<std::size_t> ends_; // where each field ends in fields_
    std::string_view record_;
    std::size_t at_ = 0;
    std::int64_t line_ = 1, record_line_ = 1, header_line_ = 1;
    std::size_t rows_ = 0;
    std::optional<Error> error_;
};

/// A CSV kept as text: header, rows and the lines they stand on. For files that are changed and written again.
struct CsvTable {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> rows;
    std::vector<std::int64_t> lines;
};

/// Reads a whole CSV as text.
inline Result<CsvTable> read_csv_table(std::string_view text, std::string_view file, CsvLimits const& limits = {}) {
    auto csv = CsvReader::open(text, file, limits);
    if (!csv) return tl::unexpected<Error>{csv.error()};
    CsvTable t;
    t.header = csv->header();
    while (csv->next()) {
        std::vector<std::string> row;
        row.reserve(t.header.size());
        for (std::size_t i = 0; i < t.header.size(); ++i) row.push_back(csv->string({static_cast<std::int32_t>(i)}));
        t.rows.push_back(std::move(row));
        t.lines.push_back(csv->line());
    }
    if (csv->failed()) return tl::unexpected<Error>{csv->error()};
    return t;
}

/// Appends one field, quoted by libcsv where it must be.
inline void append_csv_field(std::string& out, std::string_view field, bool first) {
    bool const plain = field.find_first_of(",\"\r\n") == std::string_view::npos && field == trim(field) &&
                       !(first && (field.empty() || field.front() == '#' || field.starts_with("\xEF\xBB\xBF")));
    if (plain) {
        out.append(field);
        return;
    }
    std::size_t const from = out.size();
    std::size_t const room = 2 * field.size() + 2;
    out.resize(from + room);
    std::size_t const n = csv_write(out.data() + from, room, field.data(), field.size());
    out.resize(from + n);
}

/// Appends one record that ends in LF.
template <class Fields>
void append_csv_record(std::string& out, Fields const& fields) {
    bool first = true;
    for (auto const& field : fields) {
        if (!first) out.push_back(',');
        append_csv_field(out, field, first);
        first = false;
    }
    out.push_back('\n');
}

/// The table as CSV text.
inline std::string write_csv_table(CsvTable const& t) {
    std::string out;
    append_csv_record(out, t.header);
    for (auto const& row : t.rows) append_csv_record(out, row);
    return out;
}

} // namespace servecap
