// servecap: the flags of an engine that change memory or speed
// SPDX-License-Identifier: Apache-2.0
//
// Empty = not given: the engine's default of that version applies. Names follow vLLM's flags; other
// engines read the fields that they have (mem_fraction_static is SGLang's, n_gpu_layers llama.cpp's).

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/catalog/format.hpp>
#include <servecap/core/result.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

enum class EngineKind : std::uint8_t { vllm, sglang, trtllm, llama_cpp };

constexpr std::string_view to_string(EngineKind e) noexcept {
    constexpr std::array<std::string_view, 4> names{"vllm", "sglang", "trtllm", "llama.cpp"};
    return names[static_cast<std::size_t>(e)];
}

/// Which CUDA graphs vLLM captures.
enum class GraphMode : std::uint8_t { full_and_piecewise, full_decode_only, piecewise, none };
/// How vLLM keeps recurrent state beside a prefix cache.
enum class MambaCacheMode : std::uint8_t { none, align, all };

struct EngineSettings {
    EngineKind engine = EngineKind::vllm;
    std::string version;                          ///< empty = newest modelled
    std::optional<double> gpu_memory_utilization; ///< share of visible memory, 0..1
    std::optional<Tokens> max_model_len;          ///< -1 = as long as fits
    std::optional<Requests> max_num_seqs;
    std::optional<Tokens> max_num_batched_tokens;
    std::optional<Tokens> block_size;
    std::optional<std::string> kv_cache_dtype; ///< auto, bf16, fp8, fp8_ds_mla...
    std::optional<std::string> weights_dtype;  ///< auto, or what to load as
    std::optional<std::string> state_dtype;    ///< mamba-ssm-cache-dtype
    std::optional<bool> prefix_caching;
    std::optional<MambaCacheMode> mamba_cache_mode;
    std::optional<Bytes> kv_cache_memory; ///< --kv-cache-memory-bytes: the pool a GPU
    std::optional<std::int64_t> num_gpu_blocks_override;
    std::optional<Tokens> max_cudagraph_capture_size;
    std::optional<GraphMode> graph_mode;
    bool enforce_eager = false;
    bool hybrid_manager_off = false; ///< --disable-hybrid-kv-cache-manager
    bool async_scheduling = true;
    std::optional<bool> estimate_cuda_graphs;    ///< VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS; empty = by version
    bool language_model_only = false;            ///< --language-model-only: towers are not loaded
    std::int32_t speculative_tokens = 0;         ///< draft tokens a step
    std::string speculative_method;              ///< mtp, eagle3, dspark, dflash...
    std::optional<bool> lookup_tables_on_host;   ///< --engram-config cpu_offload; empty = the engine's default
    std::optional<std::string> indexer_kv_dtype; ///< --attention-config indexer_kv_dtype: fp8, mxfp4
    std::optional<std::string> attention_backend;
    std::optional<bool> mm_encoder_data_parallel;        ///< --mm-encoder-tp-mode data
    std::optional<double> mem_fraction_static;           ///< SGLang
    std::optional<Requests> max_running_requests;        ///< SGLang
    std::optional<double> mamba_full_memory_ratio;       ///< SGLang
    std::optional<double> free_gpu_memory_fraction;      ///< TensorRT-LLM
    std::optional<Requests> max_batch_size;              ///< TensorRT-LLM
    std::optional<std::int32_t> n_gpu_layers;            ///< llama.cpp -ngl
    std::optional<std::int32_t> n_parallel;              ///< llama.cpp -np
    std::optional<Tokens> ubatch;                        ///< llama.cpp -ub
    std::optional<Tokens> max_total_tokens;              ///< SGLang --max-total-tokens; TensorRT-LLM kv_cache_config.max_tokens
    std::optional<std::int64_t> max_mamba_cache_size;    ///< SGLang: state slots
    std::optional<std::string> mamba_scheduler_strategy; ///< SGLang: no_buffer, extra_buffer, extra_buffer_lazy
    std::optional<double> swa_full_tokens_ratio;         ///< SGLang: window tokens for each full token
    std::optional<std::string> cache_type_v;             ///< llama.cpp -ctv; the type of K is kv_cache_dtype
    std::int32_t n_cpu_moe = 0;                          ///< llama.cpp --n-cpu-moe: first layers whose experts stay on the host
    std::optional<bool> kv_unified;                      ///< llama.cpp --kv-unified
    bool swa_full = false;                               ///< llama.cpp --swa-full
    bool kv_on_host = false;                             ///< llama.cpp --no-kv-offload
    std::optional<bool> flash_attention;                 ///< llama.cpp -fa
    std::optional<bool> fit_params;                      ///< llama.cpp -fit; on by default since December 2025
    std::vector<double> tensor_split;                    ///< llama.cpp -ts: shares of the devices; empty = by free memory
    std::optional<Bytes> compute_buffer;                 ///< llama.cpp: a measured compute buffer of one device
    std::vector<std::pair<std::string, std::string>> other; ///< flags that change nothing modelled; kept for the command line
};

} // namespace servecap
