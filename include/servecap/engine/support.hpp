// servecap: which engine serves which model, on which GPU, with which weights
// SPDX-License-Identifier: Apache-2.0
//
// Facts from the engines' public documentation and sources, each with its address. A refusal needs a
// rule that says so; what no rule mentions is taken as supported. TensorRT-LLM and llama.cpp publish
// complete lists of architectures, so for them a model that is not listed is refused. The lists are of
// the dates beside them; an engine that learned a model later needs a newer list, and the reason says so.

#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/engine/settings.hpp>
#include <servecap/layout/layout.hpp>

namespace servecap {

/// Whether an engine serves a model on a GPU.
struct Support {
    bool supported = true;
    std::string reason;           ///< why not; or a caution where it is supported
    std::string_view source = ""; ///< the page or file that says so
};

/// What a rule looks for in a model.
enum class ModelTrait : std::uint8_t {
    any,
    sparse_latent, ///< MLA whose rows an indexer picks (DeepSeek V3.2, GLM-5)
    compressed,    ///< the DeepSeek V4 line
    zamba2,        ///< Mamba 2 with shared attention blocks
    fp8_weights,
    fp4_weights, ///< MXFP4 or NVFP4
    int4_groups, ///< AWQ or GPTQ
};

/// What a rule looks for in a GPU.
enum class GpuTrait : std::uint8_t {
    any,
    not_nvidia,
    amd,
    nvidia_below_7_0,
    nvidia_below_7_5,
    nvidia_below_8_0,
    nvidia_below_9_0,
    nvidia_below_10_0,
};

/// One row of the table: where both traits hold, the engine does not serve (or serves with a caution).
struct SupportRule {
    EngineKind engine;
    ModelTrait model;
    GpuTrait gpu;
    bool refuses;
    std::string_view reason;
    std::string_view source;
};

inline constexpr std::array<SupportRule, 16> kSupportRules{{
    {EngineKind::vllm, ModelTrait::any, GpuTrait::nvidia_below_7_0, true, "vLLM needs NVIDIA compute capability 7.0 or newer",
     "https://docs.vllm.ai/en/latest/getting_started/installation/gpu/"},
    {EngineKind::vllm, ModelTrait::sparse_latent, GpuTrait::nvidia_below_9_0, true,
     "sparse MLA kernels need compute capability 9.0 or newer", "https://docs.vllm.ai/en/latest/design/attention_backends/"},
    {EngineKind::vllm, ModelTrait::compressed, GpuTrait::nvidia_below_9_0, true,
     "compressed sparse attention needs compute capability 9.0 or newer",
     "https://docs.vllm.ai/en/latest/design/attention_backends/"},
    {EngineKind::vllm, ModelTrait::fp8_weights, GpuTrait::nvidia_below_7_5, true,
     "FP8 weights need compute capability 7.5 (weight-only Marlin) or newer",
     "https://docs.vllm.ai/en/v0.32.0/features/quantization/llm_compressor/fp8/"},
    {EngineKind::vllm, ModelTrait::fp4_weights, GpuTrait::nvidia_below_7_5, true,
     "4-bit float weights need the Marlin kernels, which need compute capability 7.5 or newer",
     "https://docs.vllm.ai/en/v0.14.0/features/quantization/"},
    {EngineKind::vllm, ModelTrait::int4_groups, GpuTrait::amd, false,
     "the published table lists AWQ and GPTQ as unsupported on AMD GPUs",
     "https://docs.vllm.ai/en/v0.14.0/features/quantization/"},
    {EngineKind::sglang, ModelTrait::zamba2, GpuTrait::any, true, "SGLang has no Zamba 2 model (python/sglang/srt/models)",
     "https://github.com/sgl-project/sglang/tree/main/python/sglang/srt/models"},
    {EngineKind::sglang, ModelTrait::any, GpuTrait::nvidia_below_7_5, true,
     "SGLang's FlashInfer kernels need compute capability 7.5 or newer", "https://docs.sglang.io/get_started/install.html"},
    {EngineKind::sglang, ModelTrait::sparse_latent, GpuTrait::nvidia_below_9_0, true,
     "DeepSeek sparse attention is served on Hopper, Blackwell and MI350-class GPUs",
     "https://docs.sglang.io/basic_usage/deepseek_v32.html"},
    {EngineKind::sglang, ModelTrait::compressed, GpuTrait::nvidia_below_9_0, true,
     "DeepSeek sparse attention is served on Hopper, Blackwell and MI350-class GPUs",
     "https://docs.sglang.io/basic_usage/deepseek_v32.html"},
    {EngineKind::trtllm, ModelTrait::any, GpuTrait::not_nvidia, true, "TensorRT-LLM runs on NVIDIA GPUs alone",
     "https://nvidia.github.io/TensorRT-LLM/supported-hardware.html"},
    {EngineKind::trtllm, ModelTrait::any, GpuTrait::nvidia_below_8_0, true,
     "TensorRT-LLM lists Ampere, Ada, Hopper and Blackwell", "https://nvidia.github.io/TensorRT-LLM/supported-hardware.html"},
    {EngineKind::trtllm, ModelTrait::compressed, GpuTrait::nvidia_below_10_0, true,
     "DeepSeek V4 is supported on Blackwell (SM100) alone",
     "https://nvidia.github.io/TensorRT-LLM/1.3.0rc29/models/supported-models.html"},
    {EngineKind::trtllm, ModelTrait::sparse_latent, GpuTrait::nvidia_below_9_0, true, "sparse MLA runs on Hopper and Blackwell",
     "https://nvidia.github.io/TensorRT-LLM/1.3.0rc27/features/sparse-attention.html"},
    {EngineKind::llama_cpp, ModelTrait::fp8_weights, GpuTrait::any, false,
     "GGUF has no FP8 type: the checkpoint is converted, usually to Q8_0 or a K-quant", "https://github.com/ggml-org/llama.cpp"},
    {EngineKind::llama_cpp, ModelTrait::int4_groups, GpuTrait::any, false,
     "GGUF has no AWQ or GPTQ type: the checkpoint is converted to a K-quant", "https://github.com/ggml-org/llama.cpp"},
}};

/// Architectures of TensorRT-LLM's PyTorch and AutoDeploy backends, October 2026, and two that its sources hold.
inline constexpr std::string_view kTrtllmModelsSource =
    "https://nvidia.github.io/TensorRT-LLM/1.3.0rc29/models/supported-models.html";
inline constexpr std::array<std::string_view, 56> kTrtllmArchitectures{
    "AfmoeForCausalLM",
    "Cohere2ForCausalLM",
    "DeciLMForCausalLM",
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV32ForCausalLM",
    "DeepseekV4ForCausalLM",
    "ExaoneForCausalLM",
    "Exaone4ForCausalLM",
    "ExaoneMoEForCausalLM",
    "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "Gemma3nForConditionalGeneration",
    "Gemma4ForConditionalGeneration",
    "Gemma4UnifiedForConditionalGeneration",
    "Glm4MoeForCausalLM",
    "Glm4MoeLiteForCausalLM",
    "GlmMoeDsaForCausalLM",
    "GraniteForCausalLM",
    "GraniteMoeHybridForCausalLM",
    "GptOssForCausalLM",
    "HunYuanDenseForCausalLM",
    "HunYuanMoEForCausalLM",
    "HunYuanMoEV1ForCausalLM",
    "InternLM3ForCausalLM",
    "KimiK25ForConditionalGeneration",
    "LlamaForCausalLM",
    "Llama4ForConditionalGeneration",
    "LlavaNextForConditionalGeneration",
    "MiniMaxM2ForCausalLM",
    "MiniMaxM3ForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration",
    "MistralForCausalLM",
    "Mistral3ForConditionalGeneration",
    "MistralLarge3ForCausalLM",
    "MixtralForCausalLM",
    "NemotronForCausalLM",
    "NemotronHForCausalLM",
    "NemotronNASForCausalLM",
    "Olmo3ForCausalLM",
    "Phi3ForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen2MoeForCausalLM",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen3NextForCausalLM",
    "Qwen3VLForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForCausalLM",
    "Qwen3_5MoeForConditionalGeneration",
    "SeedOssForCausalLM",
    "SmolLM3ForCausalLM",
    "Step3p7FlashForCausalLM",
    "KimiLinearForCausalLM",          // tensorrt_llm/_torch/models/modeling_kimi_linear.py
    "KimiK3ForConditionalGeneration", // named by tensorrt_llm/_torch/pyexecutor/mamba_cache_manager
};

/// A Hugging Face architecture and the name of its GGUF architecture.
struct GgufArchitecture {
    std::string_view hf;
    std::string_view gguf;
};

/// GGUF architectures of llama.cpp (src/llama-arch.cpp, mid 2026) of the families in the catalogue.
inline constexpr std::string_view kLlamaCppModelsSource =
    "https://github.com/ggml-org/llama.cpp/blob/00395eb285c7c6821ff372e3ca41dae9da33c2c7/src/llama-arch.cpp";
inline constexpr std::array<GgufArchitecture, 54> kLlamaCppArchitectures{{
    {"BailingMoeForCausalLM", "bailingmoe"},
    {"BailingMoeV2ForCausalLM", "bailingmoe2"},
    {"CohereForCausalLM", "command-r"},
    {"Cohere2ForCausalLM", "cohere2"},
    {"DeciLMForCausalLM", "deci"},
    {"DeepseekV2ForCausalLM", "deepseek2"},
    {"DeepseekV3ForCausalLM", "deepseek2"},
    {"DeepseekV32ForCausalLM", "deepseek32"},
    {"DeepseekV4ForCausalLM", "deepseek4"},
    {"Ernie4_5_MoeForCausalLM", "ernie4_5-moe"},
    {"FalconH1ForCausalLM", "falcon-h1"},
    {"GemmaForCausalLM", "gemma"},
    {"Gemma2ForCausalLM", "gemma2"},
    {"Gemma3ForCausalLM", "gemma3"},
    {"Gemma3ForConditionalGeneration", "gemma3"},
    {"Gemma3nForConditionalGeneration", "gemma3n"},
    {"Gemma4ForConditionalGeneration", "gemma4"},
    {"Gemma4UnifiedForConditionalGeneration", "gemma4"},
    {"Glm4MoeForCausalLM", "glm4moe"},
    {"GlmMoeDsaForCausalLM", "glm-dsa"},
    {"GptOssForCausalLM", "gpt-oss"},
    {"GraniteForCausalLM", "granite"},
    {"GraniteMoeHybridForCausalLM", "granitehybrid"},
    {"HunYuanMoEV1ForCausalLM", "hunyuan-moe"},
    {"JambaForCausalLM", "jamba"},
    {"KimiK25ForConditionalGeneration", "deepseek2"},
    {"KimiLinearForCausalLM", "kimi-linear"},
    {"KimiVLForConditionalGeneration", "deepseek2"},
    {"Lfm2ForCausalLM", "lfm2"},
    {"Llama4ForConditionalGeneration", "llama4"},
    {"LlamaForCausalLM", "llama"},
    {"LlavaNextForConditionalGeneration", "granite"},
    {"MiMoV2FlashForCausalLM", "mimo2"},
    {"MiMoV2ForCausalLM", "mimo2"},
    {"MiniMaxM2ForCausalLM", "minimax-m2"},
    {"Mistral3ForConditionalGeneration", "mistral3"},
    {"MistralForCausalLM", "llama"},
    {"MistralLarge3ForCausalLM", "deepseek2"},
    {"MixtralForCausalLM", "llama"},
    {"NemotronHForCausalLM", "nemotron_h"},
    {"Olmo3ForCausalLM", "olmo2"},
    {"Phi3ForCausalLM", "phi3"},
    {"PhiForCausalLM", "phi2"},
    {"Qwen2ForCausalLM", "qwen2"},
    {"Qwen2MoeForCausalLM", "qwen2moe"},
    {"Qwen2_5_VLForConditionalGeneration", "qwen2vl"},
    {"Qwen3ForCausalLM", "qwen3"},
    {"Qwen3MoeForCausalLM", "qwen3moe"},
    {"Qwen3NextForCausalLM", "qwen3next"},
    {"Qwen3VLForConditionalGeneration", "qwen3vl"},
    {"Qwen3_5ForConditionalGeneration", "qwen35"},
    {"Qwen3_5MoeForConditionalGeneration", "qwen35moe"},
    {"SeedOssForCausalLM", "seed_oss"},
    {"SmolLM3ForCausalLM", "smollm3"},
}};

/// The GGUF architecture of a model, if llama.cpp has one for its family.
constexpr std::optional<std::string_view> gguf_architecture(std::string_view hf) noexcept {
    for (GgufArchitecture const& a : kLlamaCppArchitectures)
        if (a.hf == hf) return a.gguf;
    return std::nullopt;
}

/// NVIDIA compute capability times ten ("9.0" = 90, "12.1" = 121); 0 where it is unknown or the GPU is another maker's.
constexpr std::int32_t compute_capability(Gpu const& g) noexcept {
    if (g.vendor != GpuVendor::nvidia) return 0;
    std::int32_t major = 0, minor = 0;
    std::size_t i = 0;
    for (; i < g.compute_capability.size() && g.compute_capability[i] >= '0' && g.compute_capability[i] <= '9'; ++i)
        major = major * 10 + (g.compute_capability[i] - '0');
    if (i == 0 || major > 99) return 0;
    if (i + 1 < g.compute_capability.size() && g.compute_capability[i] == '.' && g.compute_capability[i + 1] >= '0' &&
        g.compute_capability[i + 1] <= '9')
        minor = g.compute_capability[i + 1] - '0';
    return major * 10 + minor;
}

namespace support_detail {

inline bool has(Model const& m, ModelTrait t) {
    auto const any_mixer = [&](auto&& test) {
        for (Layer const& l : m.layers)
            for (Mixer const& x : l.mixers)
                if (test(x)) return true;
        return false;
    };
    auto const any_format = [&](auto&& test) {
        for (TensorClass c : {TensorClass::attention, TensorClass::linear_attention, TensorClass::dense_ffn,
                              TensorClass::shared_expert, TensorClass::routed_expert})
            if (test(m.quant[c].format)) return true;
        return false;
    };
    switch (t) {
    case ModelTrait::any: return true;
    case ModelTrait::sparse_latent:
        return any_mixer([](Mixer const& x) {
            auto const* s = std::get_if<SparseIndexed>(&x);
            return s != nullptr && std::holds_alternative<Mla>(s->base);
        });
    case ModelTrait::compressed: return any_mixer([](Mixer const& x) { return std::holds_alternative<Compressed>(x); });
    case ModelTrait::zamba2: return m.architecture == "Zamba2ForCausalLM";
    case ModelTrait::fp8_weights:
        return any_format(
            [](Format f) { return f == Format::fp8 || f == Format::fp8_row || f == Format::fp8_block || f == Format::mxfp8; });
    case ModelTrait::fp4_weights: return any_format([](Format f) { return f == Format::mxfp4 || f == Format::nvfp4; });
    case ModelTrait::int4_groups: return any_format([](Format f) { return f == Format::int4_group; });
    }
    return false;
}

inline bool has(Gpu const& g, GpuTrait t) {
    std::int32_t const cc = compute_capability(g);
    auto const below = [&](std::int32_t limit) { return cc != 0 && cc < limit; };
    switch (t) {
    case GpuTrait::any: return true;
    case GpuTrait::not_nvidia: return g.vendor != GpuVendor::nvidia;
    case GpuTrait::amd: return g.vendor == GpuVendor::amd;
    case GpuTrait::nvidia_below_7_0: return below(70);
    case GpuTrait::nvidia_below_7_5: return below(75);
    case GpuTrait::nvidia_below_8_0: return below(80);
    case GpuTrait::nvidia_below_9_0: return below(90);
    case GpuTrait::nvidia_below_10_0: return below(100);
    }
    return false;
}

} // namespace support_detail

/// Whether `engine` serves the model on this GPU, by the table above.
inline Support engine_support(EngineKind engine, Model const& model, Gpu const& gpu) {
    Support caution;
    for (SupportRule const& r : kSupportRules) {
        if (r.engine != engine || !support_detail::has(gpu, r.gpu) || !support_detail::has(model, r.model)) continue;
        if (r.refuses) return {false, std::string{r.reason}, r.source};
        if (caution.reason.empty()) caution = {true, std::string{r.reason}, r.source};
    }
    if (engine == EngineKind::trtllm) {
        bool listed = false;
        for (std::string_view a : kTrtllmArchitectures) listed = listed || a == model.architecture;
        if (!listed)
            return {false, "TensorRT-LLM's list of models (October 2026) has no " + model.architecture, kTrtllmModelsSource};
    }
    if (engine == EngineKind::llama_cpp && !gguf_architecture(model.architecture))
        return {false, "llama.cpp (mid 2026) has no architecture for " + model.architecture, kLlamaCppModelsSource};
    return caution;
}

/// The first head count that `tp` ranks cannot share: "64 attention heads"; nothing when all divide. Key-value heads may
/// be copied, so that they only need to divide one way or the other.
inline std::optional<std::string> heads_that_do_not_divide(Model const& model, std::int32_t tp) {
    if (tp <= 1) return std::nullopt;
    auto const bad = [&](std::int32_t n, std::string_view what) -> std::optional<std::string> {
        if (n <= 0 || n % tp == 0) return std::nullopt;
        return std::to_string(n) + " " + std::string{what};
    };
    auto const bad_kv = [&](std::int32_t n) -> std::optional<std::string> {
        if (n <= 0 || n % tp == 0 || tp % n == 0) return std::nullopt;
        return std::to_string(n) + " key-value heads";
    };
    auto const of_gqa = [&](Gqa const& a) {
        auto r = bad(a.q_heads, "attention heads");
        return r ? r : bad_kv(a.kv_heads);
    };
    for (Layer const& l : model.layers)
        for (Mixer const& m : l.mixers) {
            std::optional<std::string> r;
            if (auto const* a = std::get_if<Gqa>(&m)) r = of_gqa(*a);
            if (auto const* a = std::get_if<SlidingWindow>(&m)) r = of_gqa(a->attn);
            if (auto const* a = std::get_if<ChunkedLocal>(&m)) r = of_gqa(a->attn);
            if (auto const* a = std::get_if<Mla>(&m)) r = bad(a->heads, "attention heads");
            if (auto const* a = std::get_if<SparseIndexed>(&m))
                r = std::holds_alternative<Mla>(a->base) ? bad(std::get<Mla>(a->base).heads, "attention heads")
                                                         : of_gqa(std::get<Gqa>(a->base));
            if (auto const* a = std::get_if<Compressed>(&m)) r = bad(a->heads, "attention heads");
            if (auto const* a = std::get_if<Kda>(&m)) r = bad(a->heads, "KDA heads");
            if (auto const* a = std::get_if<GatedDelta>(&m)) r = bad(a->v_heads, "value heads of the gated delta net");
            if (auto const* a = std::get_if<Mamba2>(&m)) r = bad(a->heads, "Mamba heads");
            if (auto const* a = std::get_if<Lightning>(&m)) r = bad(a->heads, "linear-attention heads");
            if (r) return r;
        }
    return std::nullopt;
}

} // namespace servecap
