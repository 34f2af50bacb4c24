// servecap: rows of the catalogue: prices, APIs, benchmarks, start-ups, set-ups
// SPDX-License-Identifier: Apache-2.0
//
// One struct a CSV. Empty cells are empty optionals, never zero. Dates are ISO text or "unknown".
// `line` is the line of the file, so that a message can point at it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <servecap/units/quantity.hpp>

namespace servecap {

/// Where a row stands.
struct RowOrigin {
    std::string file;
    std::int64_t line = 0;
    bool user = false; ///< given on the command line: wins over the catalogue's own rows
};

/// How much a quoted figure can be trusted.
enum class Confidence : std::uint8_t { unverified, low, medium, high };

/// One price of one GPU.
struct GpuPrice {
    std::string provider, provider_class, gpu, gpu_name, sku;
    std::optional<std::int32_t> gpus_per_unit;
    std::string price_type; ///< on-demand, spot, reserved-1y, capacity-block, market-index...
    std::optional<UsdPerHour> per_gpu;
    std::optional<UsdPerHour> per_unit;
    std::string price_original, region, date, date_kind;
    Confidence confidence = Confidence::unverified;
    std::string url, notes;
    RowOrigin origin;
};

/// One tariff of one API model.
struct ApiPrice {
    std::string family, model, provider, provider_model, provider_kind; ///< first-party, host, measured-effective...
    std::optional<UsdPerMillionTokens> input, cached_input, cache_write_5m, cache_write_1h, output;
    std::string applies_when; ///< "fast", "peak hours"...
    std::optional<Tokens> tier_min_input;
    std::string valid_from, valid_to, date;
    Confidence confidence = Confidence::unverified;
    std::string url, notes;
    RowOrigin origin;
};

/// One measured serving run.
struct BenchmarkRow {
    std::string model, precision, gpu;
    std::int32_t n_gpus = 0;
    std::optional<std::int32_t> tp, pp, dp, replicas;
    std::string ep, dp_attention; ///< "yes", "8", ... as written
    std::string engine, engine_version, spec_method;
    std::optional<double> isl, osl;           ///< nominal tokens
    std::optional<double> isl_mean, osl_mean; ///< real mean tokens where known
    std::optional<double> concurrency;
    std::optional<TokensPerSecond> output;    ///< output tokens a second of all GPUs of the row
    std::optional<Seconds> ttft, tpot;
    std::string date, source, url, grade, dataset, out_basis, lat_basis, flags, note;
    RowOrigin origin;
};

/// One real start, or refusal, of an engine.
struct StartupRow {
    std::string id, engine, engine_version, model, gpu;
    std::optional<std::int32_t> n_gpus, tp, pp, dp;
    std::string ep, weights_precision, kv_cache_dtype; ///< canonical spellings where the file has them
    std::string kv_cache_dtype_as_written;             ///< what the flag said: "auto"
    std::string model_as_written;                      ///< as people wrote it; may name a drafter or a checkpoint
    std::optional<double> gpu_memory_utilization;
    std::optional<Tokens> max_model_len, max_num_batched_tokens;
    std::optional<Requests> max_num_seqs;
    std::string other_flags;
    std::optional<Bytes> weights_per_gpu, available_kv_per_gpu;
    std::optional<Tokens> kv_tokens;
    std::optional<double> max_concurrency;
    std::optional<std::int64_t> gpu_blocks, block_size, state_slots;
    std::optional<Bytes> cuda_graph, peak_activation, non_torch;
    std::string starts;  ///< "yes", "no" or empty
    std::string verdict, error_text, date, source, url, note, usable, why_not;
    RowOrigin origin;
};

/// One measured download and start.
struct SetupRow {
    std::string model, gpu;
    std::int32_t n_gpus = 0;
    std::string engine, engine_version;
    std::optional<Bytes> bytes_on_disk;
    std::optional<Seconds> download, start, weights, engine_init;
    std::optional<Seconds> first_launch_to_ready; ///< where a first start failed: from its launch to the ready second one
    std::string loader, state, failed_first_start, date, source, url, note;
    RowOrigin origin;
};

/// One fitted number of the speed or start-up model: exp or value, see its owner.
struct Coefficient {
    std::string name;
    double value = 0;
    double sd = 0; ///< standard deviation of the estimate
};

/// Everything that is known, apart from models (which are read one by one).
struct Catalog {
    std::vector<GpuPrice> gpu_prices;
    std::vector<ApiPrice> api_prices;
    std::vector<BenchmarkRow> benchmarks;
    std::vector<StartupRow> startups;
    std::vector<SetupRow> setups;
    std::vector<Coefficient> coefficients;
    std::string newest_date; ///< newest date of any row: the default of --as-of
};

} // namespace servecap
