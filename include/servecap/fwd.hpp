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

// memory/published.hpp
struct PublishedCount;

// memory/state.hpp
struct StateElements;
struct StateOptions;

// memory/weights.hpp
struct StoredBytes;
struct WeightOptions;
struct RankWeights;

// engine/doctor.hpp
enum class TermUnit : std::uint8_t;
struct DoctorTerm;
struct Diagnosis;

// engine/engine.hpp
struct StartOptions;
enum class RowMatch : std::uint8_t;
struct StartJudgement;

// engine/gguf_types.hpp
enum class GgufType : std::uint8_t;
struct GgufTypeInfo;
struct GgufMix;

// engine/llama_cpp.hpp
struct LlamaCppBuild;
struct LlamaCppRules;
struct LlamaCppContext;
struct LlamaCppEngine;

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

// engine/sglang.hpp
struct SglangVersion;
struct SglangRelease;
struct SglangRules;
struct SglangDefaults;
struct SglangFractionInput;
struct SglangCosts;
struct SglangPools;
struct SglangPoolRequest;
struct SglangEngine;

// engine/support.hpp
struct Support;
enum class ModelTrait : std::uint8_t;
enum class GpuTrait : std::uint8_t;
struct SupportRule;
struct GgufArchitecture;

// engine/tensorrt_llm.hpp
struct TrtllmCosts;
struct TrtllmEngine;

// engine/validate_startups.hpp
struct StartupCatalogue;
struct StartupScoring;
enum class StartupQuantity : std::uint8_t;
struct Compared;
struct StartupResult;
struct QuantityScore;
struct StartsScore;
struct StartupGroupScore;
struct StartupScores;

// engine/verdict.hpp
enum class Verdict : std::uint8_t;
struct Fix;
struct MemoryBudget;
struct PageRule;
struct StartPlan;
struct PagesOfRequest;

// engine/vllm.hpp
struct VllmPoint;
struct VllmOutcome;
struct PreparedVllm;

// engine/vllm_budget.hpp
struct CaptureSizes;
struct VllmMemoryModel;
struct VllmMemory;

// engine/vllm_cache.hpp
enum class CacheKind : std::uint8_t;
struct CacheSpec;
struct CacheOptions;
struct CacheGroup;
struct CacheLayout;

// engine/vllm_version.hpp
struct VllmVersion;
struct VllmRelease;
enum class StateSlotCheck : std::uint8_t;
struct VllmRules;

// perf/calibration.hpp
struct CalibrationRow;
struct RefusedRow;
struct CalibrationRows;

// perf/coefficients.hpp
enum class Coef : std::uint8_t;
enum class CoefLevel : std::uint8_t;
struct CoefDeviation;
struct CoefPrior;
struct CoefContext;
class CoefficientTable;
struct ResolvedCoefs;

// perf/deployment.hpp
struct SpeedIdentity;
struct SpeedRow;

// perf/evaluate.hpp
struct SpeedRequest;
struct ReplicaSpeed;
class SpeedEvidence;
class PreparedDeployment;
struct LoadSpeed;

// perf/queue.hpp
struct OpenLoop;

// perf/residual.hpp
struct ResidualSite;
struct ResidualKernel;
struct ResidualRow;
struct ResidualGuess;
class LocalResidual;

// perf/step.hpp
enum class StepTerm : std::uint8_t;
struct KvGroup;
struct MoeGroup;
struct PreparedSpeed;
struct StepLoad;
struct StepTimes;
struct PrepareOptions;
struct PrefillTimes;

// perf/types.hpp
struct Workload;
enum class BoundBy : std::uint8_t;
struct Evidence;
struct SpeedTerm;
struct SpeedPoint;

// perf/validate.hpp
enum class SpeedQuantity : std::uint8_t;
struct SpeedResult;
struct SpeedScoring;
struct SpeedGroupScore;
struct SpeedScores;

// cost/api.hpp
struct TariffPart;
struct ApiTariff;
struct ApiQuery;
struct Traffic;
struct ApiBill;

// cost/break_even.hpp
struct Supply;
struct Crossing;
struct Crossings;
enum class Reachable : std::uint8_t;
struct Capacity;
struct CapacityFinding;
struct BreakEvenRequest;
struct BreakEven;
struct DeploymentBreakEven;
struct Sensitivity;

// cost/money.hpp
struct CurrencyRate;
struct Money;
struct InDollars;

// cost/own.hpp
struct OwnTerms;
struct OwnCost;

// cost/price.hpp
struct PriceQuery;
struct PriceChoice;
struct PriceFinding;

// cost/rent.hpp
struct DutyRental;
struct DutyCost;
struct SpotTerms;
struct SpotCost;
struct Commitment;
struct CommitmentCost;

// cost/setup.hpp
struct SetupRequest;
struct SetupTime;
struct SessionCost;

// cost/tokens.hpp
struct TokenCost;
struct CostPoint;

// plan/goal.hpp
struct LatencyLimits;

// plan/layouts.hpp
struct ChosenLayout;

// plan/make.hpp
struct PlanRequest;

// plan/mend.hpp
enum class MendChoice : std::uint8_t;
struct MendedStart;

// plan/pareto.hpp
struct PlanAxes;

// plan/plan.hpp
struct Mend;
struct PlanCost;
struct PlanSource;
struct Plan;

// plan/search.hpp
enum class SearchGoal : std::uint8_t;
enum class Target : std::uint8_t;
struct SearchTargets;
struct SearchOptions;
struct SearchPoint;
struct Relaxation;
struct JudgedLayout;
struct SearchAnswer;

// plan/sweep.hpp
struct SweepPoint;
struct SweepVerdict;
struct SweepPlan;
struct SweepShared;
class SweepReplica;

// report/deploy.hpp
struct DeployOptions;
struct DeployNumbers;

// report/explain.hpp
struct Explanation;

// report/page.hpp
struct PageStyle;

// report/plan_charts.hpp
struct CostLine;

// report/svg.hpp
struct ChartPoint;
struct ChartSeries;
struct ChartMark;
struct Chart;

// report/table.hpp
class TextTable;

} // namespace servecap
