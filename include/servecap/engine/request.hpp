// servecap: what an engine's allocator is asked
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string_view>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/layout/layout.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// A deployment of which the start is judged. Holds references: keep the model and GPUs alive.
struct StartRequest {
    Model const& model;
    GpuSet const& gpus;
    Layout layout;
    EngineSettings settings;
    Tokens isl{1000}; ///< with osl: the request that must have room for `fits`
    Tokens osl{1000};
    std::string_view date{}; ///< ISO date that decides defaults where the version is unknown; empty = newest rules
    std::optional<Bytes> logged_pool{}; ///< cache memory that a log prints; then the allocator alone is asked
};

} // namespace servecap
