// servecap: what an engine's start-up log says
// SPDX-License-Identifier: Apache-2.0
//
// Terms as the engine printed them, before any interpretation. Engines that write "GB" in these lines
// mean GiB (SGLang, older vLLM), and that is how they are read. Where several workers print a term the
// poorest rank decides the pool and the fullest rank the weights; the other end is kept beside it.
// Empty optionals are terms that the log does not state.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/engine/settings.hpp>
#include <servecap/engine/verdict.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// How far a start came, as far as the log goes.
enum class StartStage : std::uint8_t {
    nothing,    ///< no line of an engine was recognised
    configured, ///< arguments or version
    weights_loaded,
    profiled,       ///< the memory for the cache is known
    pool_allocated, ///< tokens or blocks are known
    graphs_captured,
    ready, ///< serves requests
};

constexpr std::string_view to_string(StartStage s) noexcept {
    constexpr std::array<std::string_view, 7> names{"nothing",        "configured",      "weights loaded", "profiled",
                                                    "pool allocated", "graphs captured", "ready"};
    return names[static_cast<std::size_t>(s)];
}

/// One start of an engine, as its log tells it.
struct ObservedStart {
    std::optional<EngineKind> engine;
    std::string engine_version; ///< "0.20.0", "b9849"; empty if not printed
    std::string model;          ///< as logged: a name or a path
    std::string architecture;   ///< "Qwen3_5ForConditionalGeneration", "qwen35"
    std::string gpu;            ///< as logged; empty if no line names it
    std::string date;           ///< "2026-02-26", "05-03" (vLLM prints no year); empty if no line is dated

    std::optional<std::int32_t> tp, pp, dp, dcp;
    bool expert_parallel = false;
    std::int32_t ranks_seen = 0;              ///< workers that printed memory lines
    EngineSettings settings;                  ///< flags that the log or a pasted command line gives
    std::string dtype;                        ///< of activations: "torch.bfloat16"
    std::string quantization;                 ///< as logged: "compressed-tensors", "fp8"; GGUF file type for llama.cpp
    std::optional<std::int64_t> capture_size; ///< largest CUDA-graph batch, where printed

    // The budget of one GPU
    std::optional<Bytes> total;        ///< memory that the runtime sees
    std::optional<Bytes> free_before;  ///< free before the weights
    std::optional<double> utilization; ///< share in force (utilization, static fraction, free fraction)
    std::optional<Bytes> requested;    ///< what the engine allows itself
    std::optional<Bytes> weights;      ///< fullest rank
    std::optional<Bytes> weights_least;
    std::optional<Bytes> draft_weights;
    std::optional<Bytes> consumed; ///< weights and non-torch together, where the engine prints only their sum
    std::optional<Bytes> activation;
    std::optional<Bytes> non_torch;
    std::optional<Bytes> cuda_graph;          ///< taken by capture
    std::optional<Bytes> cuda_graph_estimate; ///< subtracted before the pool
    std::optional<Bytes> pool;                ///< memory for the cache, poorest rank
    std::optional<Bytes> pool_most;           ///< richest rank
    std::optional<Bytes> kv_allocated;        ///< KV buffers as allocated (SGLang, llama.cpp)
    std::optional<Bytes> state_bytes;         ///< recurrent state as allocated
    std::optional<Bytes> compute_buffer;      ///< llama.cpp
    std::optional<Bytes> host_weights;        ///< llama.cpp: model buffers in host memory
    std::optional<double> kv_bytes_per_token; ///< where the engine prints it

    // The pool
    std::optional<Tokens> kv_tokens;
    std::optional<Tokens> swa_tokens;
    std::optional<double> max_concurrency;
    std::optional<Tokens> concurrency_at; ///< the length that max_concurrency is for
    std::optional<std::int64_t> blocks;
    std::optional<std::int64_t> block_size;
    std::optional<std::int64_t> state_slots;
    std::optional<Requests> max_requests; ///< in force
    std::optional<Tokens> max_model_len;  ///< in force
    std::optional<Tokens> max_batched_tokens;
    std::optional<std::int32_t> gpu_layers, all_layers; ///< llama.cpp: offloaded n/m

    // The outcome
    StartStage stage = StartStage::nothing;
    std::optional<bool> starts;     ///< empty: the log stops before it is decided
    std::optional<Verdict> verdict; ///< kind of the refusal, or starts
    std::string error;              ///< the engine's message that names the refusal
    std::optional<Bytes> needed;    ///< cache memory that one request of max_model_len needs
    std::optional<Tokens> estimated_max_len;
    std::optional<std::int64_t> asked_seqs; ///< max_num_seqs of a state-slot refusal
    std::int32_t starts_in_log = 0;         ///< starts that the log holds; the last one is described
    std::vector<std::string> notes;         ///< contradictions, restarts, lines that were cut

    std::int64_t lines = 0;      ///< lines read
    std::int64_t lines_used = 0; ///< lines that said something
};

} // namespace servecap
