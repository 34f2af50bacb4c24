// servecap: start-up rows as CSV, for --learn
// SPDX-License-Identifier: Apache-2.0
//
// A file that exists keeps its own columns: the row is written in their order, columns that it does not know stay
// empty. A new file gets the header of data/startups.csv.

#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/catalog/rows.hpp>
#include <servecap/core/result.hpp>
#include <servecap/io/csv.hpp>

namespace servecap {

/// Columns of a start-up file, in the order of data/startups.csv.
inline constexpr std::array<std::string_view, 40> kStartupColumns{"id",
                                                                  "engine",
                                                                  "engine_version",
                                                                  "model",
                                                                  "gpu",
                                                                  "n_gpus",
                                                                  "tp",
                                                                  "pp",
                                                                  "dp",
                                                                  "ep",
                                                                  "weights_precision",
                                                                  "kv_cache_dtype",
                                                                  "gpu_memory_utilization",
                                                                  "max_model_len",
                                                                  "max_num_seqs",
                                                                  "max_num_batched_tokens",
                                                                  "other_flags",
                                                                  "weights_gib_per_gpu",
                                                                  "available_kv_gib_per_gpu",
                                                                  "kv_tokens",
                                                                  "max_concurrency_x",
                                                                  "gpu_blocks",
                                                                  "block_size",
                                                                  "state_slots",
                                                                  "cuda_graph_gib",
                                                                  "peak_activation_gib",
                                                                  "non_torch_gib",
                                                                  "starts",
                                                                  "verdict",
                                                                  "error_text_short",
                                                                  "date",
                                                                  "source",
                                                                  "url",
                                                                  "note",
                                                                  "model_as_written",
                                                                  "gpu_as_written",
                                                                  "weights_precision_canonical",
                                                                  "kv_dtype_canonical",
                                                                  "usable",
                                                                  "why_not"};

/// The text of one column of a row; empty for what the row does not hold.
inline std::string startup_field(StartupRow const& r, std::string_view column) {
    auto const whole = [](auto const& v) { return v ? std::to_string(static_cast<std::int64_t>(*v)) : std::string{}; };
    auto const counted = [](auto const& v) { return v ? std::to_string(v->value()) : std::string{}; };
    auto const gib_text = [](std::optional<Bytes> const& b) { return b ? fmt::format("{:.4g}", in_gib(*b)) : std::string{}; };
    if (column == "id") return r.id;
    if (column == "engine") return r.engine;
    if (column == "engine_version") return r.engine_version;
    if (column == "model") return r.model;
    if (column == "gpu") return r.gpu;
    if (column == "n_gpus") return whole(r.n_gpus);
    if (column == "tp") return whole(r.tp);
    if (column == "pp") return whole(r.pp);
    if (column == "dp") return whole(r.dp);
    if (column == "ep") return r.ep;
    if (column == "weights_precision" || column == "weights_precision_canonical") return r.weights_precision;
    if (column == "kv_cache_dtype") return r.kv_cache_dtype_as_written.empty() ? r.kv_cache_dtype : r.kv_cache_dtype_as_written;
    if (column == "kv_dtype_canonical") return r.kv_cache_dtype;
    if (column == "gpu_memory_utilization")
        return r.gpu_memory_utilization ? fmt::format("{:.6g}", *r.gpu_memory_utilization) : std::string{};
    if (column == "max_model_len") return counted(r.max_model_len);
    if (column == "max_num_seqs") return counted(r.max_num_seqs);
    if (column == "max_num_batched_tokens") return counted(r.max_num_batched_tokens);
    if (column == "other_flags") return r.other_flags;
    if (column == "weights_gib_per_gpu") return gib_text(r.weights_per_gpu);
    if (column == "available_kv_gib_per_gpu") return gib_text(r.available_kv_per_gpu);
    if (column == "kv_tokens") return counted(r.kv_tokens);
    if (column == "max_concurrency_x") return r.max_concurrency ? fmt::format("{:.6g}", *r.max_concurrency) : std::string{};
    if (column == "gpu_blocks") return whole(r.gpu_blocks);
    if (column == "block_size") return whole(r.block_size);
    if (column == "state_slots") return whole(r.state_slots);
    if (column == "cuda_graph_gib") return gib_text(r.cuda_graph);
    if (column == "peak_activation_gib") return gib_text(r.peak_activation);
    if (column == "non_torch_gib") return gib_text(r.non_torch);
    if (column == "starts") return r.starts;
    if (column == "verdict") return r.verdict;
    if (column == "error_text_short" || column == "error_text") return r.error_text;
    if (column == "date") return r.date;
    if (column == "source") return r.source;
    if (column == "url") return r.url;
    if (column == "note") return r.note;
    if (column == "model_as_written") return r.model_as_written;
    if (column == "usable") return r.usable;
    if (column == "why_not") return r.why_not;
    return {};
}

/// What to append to a file whose text is `existing` (empty: a new file, header included). Errors: bad_format when the
/// file is no start-up CSV.
inline Result<std::string> startup_row_csv(StartupRow const& row, std::string_view existing, std::string_view file) {
    std::vector<std::string> header;
    std::string out;
    if (trim(existing).empty()) {
        header.assign(kStartupColumns.begin(), kStartupColumns.end());
        append_csv_record(out, header);
    } else {
        auto csv = CsvReader::open(existing, file);
        if (!csv) return tl::unexpected<Error>{csv.error()};
        header = csv->header();
        for (std::string_view needed : {"engine", "model", "gpu"})
            if (std::find(header.begin(), header.end(), needed) == header.end())
                return fail(ErrorCode::bad_format, "no column '" + std::string{needed} + "'", std::string{file},
                            "a start-up CSV, or a file that does not exist yet");
        if (existing.back() != '\n') out += '\n';
    }
    std::vector<std::string> fields;
    fields.reserve(header.size());
    for (std::string const& h : header) fields.push_back(startup_field(row, h));
    append_csv_record(out, fields);
    return out;
}

/// Appends the row to the CSV at `path`, which is made when it is not there. Errors: missing (cannot be read or written),
/// bad_format.
inline Result<void> learn_startup(std::string const& path, StartupRow const& row) {
    struct Closer {
        void operator()(std::FILE* f) const noexcept { std::fclose(f); }
    };
    std::string existing;
    if (std::unique_ptr<std::FILE, Closer> in{std::fopen(path.c_str(), "rb")}; in) {
        std::array<char, 65536> buffer{};
        std::size_t n = 0;
        while ((n = std::fread(buffer.data(), 1, buffer.size(), in.get())) > 0) existing.append(buffer.data(), n);
        if (std::ferror(in.get()) != 0) return fail(ErrorCode::missing, "cannot read the file", path);
    }
    auto const text = startup_row_csv(row, existing, path);
    if (!text) return tl::unexpected<Error>{text.error()};
    std::unique_ptr<std::FILE, Closer> out{std::fopen(path.c_str(), "ab")};
    if (!out || std::fwrite(text->data(), 1, text->size(), out.get()) != text->size() || std::fflush(out.get()) != 0)
        return fail(ErrorCode::missing, "cannot write the file", path, "a folder that exists and may be written to");
    return {};
}

} // namespace servecap
