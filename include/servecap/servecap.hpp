// servecap: everything but readers and writers (io.hpp) and fitting (perf/fit.hpp)
// SPDX-License-Identifier: Apache-2.0
//
// Made by tests/checks/umbrella.cmake; refresh with
//   cmake -D SOURCE=. -D UPDATE=1 -P tests/checks/umbrella.cmake

#pragma once

// IWYU pragma: begin_exports
#include <servecap/version.hpp>
#include <servecap/units/quantity.hpp>
#include <servecap/core/basis.hpp>
#include <servecap/core/checked.hpp>
#include <servecap/core/date.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/catalog/format.hpp>
#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/memory/kv.hpp>
#include <servecap/memory/published.hpp>
#include <servecap/memory/state.hpp>
#include <servecap/memory/weights.hpp>
#include <servecap/engine/concept.hpp>
#include <servecap/engine/doctor.hpp>
#include <servecap/engine/engine.hpp>
#include <servecap/engine/gguf_types.hpp>
#include <servecap/engine/llama_cpp.hpp>
#include <servecap/engine/observed.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/engine/sglang.hpp>
#include <servecap/engine/support.hpp>
#include <servecap/engine/tensorrt_llm.hpp>
#include <servecap/engine/validate_startups.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/engine/vllm.hpp>
#include <servecap/engine/vllm_budget.hpp>
#include <servecap/engine/vllm_cache.hpp>
#include <servecap/engine/vllm_fixes.hpp>
#include <servecap/engine/vllm_version.hpp>
#include <servecap/perf/calibration.hpp>
#include <servecap/perf/coefficients.hpp>
#include <servecap/perf/deployment.hpp>
#include <servecap/perf/evaluate.hpp>
#include <servecap/perf/precision.hpp>
#include <servecap/perf/predict.hpp>
#include <servecap/perf/queue.hpp>
#include <servecap/perf/residual.hpp>
#include <servecap/perf/step.hpp>
#include <servecap/perf/types.hpp>
#include <servecap/perf/validate.hpp>
#include <servecap/cost/api.hpp>
#include <servecap/cost/break_even.hpp>
#include <servecap/cost/money.hpp>
#include <servecap/cost/own.hpp>
#include <servecap/cost/price.hpp>
#include <servecap/cost/rent.hpp>
#include <servecap/cost/setup.hpp>
#include <servecap/cost/tokens.hpp>
#include <servecap/plan/goal.hpp>
#include <servecap/plan/layouts.hpp>
#include <servecap/plan/make.hpp>
#include <servecap/plan/mend.hpp>
#include <servecap/plan/pareto.hpp>
#include <servecap/plan/plan.hpp>
#include <servecap/plan/search.hpp>
#include <servecap/plan/sweep.hpp>
#include <servecap/report/deploy.hpp>
#include <servecap/report/explain.hpp>
#include <servecap/report/page.hpp>
#include <servecap/report/plan_charts.hpp>
#include <servecap/report/prometheus.hpp>
#include <servecap/report/svg.hpp>
#include <servecap/report/table.hpp>
#include <servecap/report/text.hpp>
// IWYU pragma: end_exports
