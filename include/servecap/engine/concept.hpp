// servecap: what every engine's allocator is
// SPDX-License-Identifier: Apache-2.0
//
// An engine is a kind and a pure function from a request to a start plan. The laws that all of them keep (more
// memory never means fewer tokens, a longer context never makes a refused start possible, parts add up...) are
// tests of this concept, run on each.

#pragma once

#include <concepts>

#include <servecap/engine/llama_cpp.hpp>
#include <servecap/engine/request.hpp>
#include <servecap/engine/sglang.hpp>
#include <servecap/engine/tensorrt_llm.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/engine/vllm.hpp>

namespace servecap {

/// An engine: `kind` names it, `start(request)` says what it would make of a deployment.
template <class E>
concept EngineModel = requires(StartRequest const& r) {
    { E::kind } -> std::convertible_to<EngineKind>;
    { E::start(r) } -> std::same_as<StartPlan>;
};

/// vLLM as one of the engines that share the concept EngineModel.
struct VllmEngine {
    static constexpr EngineKind kind = EngineKind::vllm;
    static StartPlan start(StartRequest const& r) { return plan_vllm(r); }
};

static_assert(EngineModel<VllmEngine> && EngineModel<SglangEngine> && EngineModel<TrtllmEngine> && EngineModel<LlamaCppEngine>);

} // namespace servecap
