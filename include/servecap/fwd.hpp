// servecap: the names of all structs and enums, without their headers
// SPDX-License-Identifier: Apache-2.0
//
// Made by tests/checks/umbrella.cmake; refresh with
//   cmake -D SOURCE=. -D UPDATE=1 -P tests/checks/umbrella.cmake

#pragma once

#include <cstdint>

#include <servecap/units/quantity.hpp>

namespace servecap {

// core/basis.hpp
enum class Basis : std::uint8_t;

// core/result.hpp
enum class ErrorCode : std::uint8_t;
struct Error;

// catalog/format.hpp
enum class Format : std::uint8_t;
struct WeightFormat;
enum class KvFormat : std::uint8_t;

// catalog/gpu.hpp
enum class GpuVendor : std::uint8_t;
enum class Availability : std::uint8_t;
struct Gpu;
struct GpuSet;

// catalog/model.hpp
struct Gqa;
struct SlidingWindow;
struct ChunkedLocal;
struct Mla;
struct Indexer;
struct SparseIndexed;
struct Compressed;
struct Kda;
struct GatedDelta;
struct Mamba1;
struct Mamba2;
struct Lightning;
struct ShortConv;
struct Dense;
struct Moe;
struct Layer;
enum class TensorClass : std::uint8_t;
enum class Shard : std::uint8_t;
struct WeightTensor;
struct LayerFormat;
struct QuantPlan;
struct CardCheck;
struct RecommendedLayout;
struct LicenceFact;
struct Model;

// catalog/rows.hpp
struct RowOrigin;
enum class Confidence : std::uint8_t;
struct GpuPrice;
struct ApiPrice;
struct BenchmarkRow;
struct StartupRow;
struct SetupRow;
struct Coefficient;
struct Catalog;

// layout/layout.hpp
struct Layout;

// memory/kv.hpp
enum class IndexFormat : std::uint8_t;
enum class CompressedRecord : std::uint8_t;
struct KvOptions;

// memory/state.hpp
struct StateElements;
struct StateOptions;

// engine/observed.hpp
enum class StartStage : std::uint8_t;
struct ObservedStart;

// engine/request.hpp
struct StartRequest;

// engine/settings.hpp
enum class EngineKind : std::uint8_t;
enum class GraphMode : std::uint8_t;
enum class MambaCacheMode : std::uint8_t;
struct EngineSettings;

// engine/verdict.hpp
enum class Verdict : std::uint8_t;
struct Fix;
struct MemoryBudget;
struct StartPlan;

// perf/types.hpp
struct Workload;
enum class BoundBy : std::uint8_t;
struct Evidence;
struct SpeedTerm;
struct SpeedPoint;

// plan/layouts.hpp
struct ChosenLayout;

// report/svg.hpp
struct ChartPoint;
struct ChartSeries;
struct ChartMark;
struct Chart;

// report/table.hpp
class TextTable;

} // namespace servecap
