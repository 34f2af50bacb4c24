// Models written by hand for allocator tests: only what caches and states depend on, plus widths for budgets.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <servecap/catalog/model.hpp>

namespace handmade {

using namespace servecap;

inline Layer layer(Mixer m, Ffn f = Dense{}) {
    Layer l;
    l.mixers.push_back(std::move(m));
    l.ffn = std::move(f);
    return l;
}

/// moonshotai/Kimi-K3 (public config): 69 KDA + 24 gated MLA layers.
inline Model kimi_k3() {
    Model m;
    m.id = "moonshotai/Kimi-K3";
    m.model_type = "kimi_k3";
    m.architecture = "KimiK3ForConditionalGeneration";
    m.hidden = 7168;
    m.vocab = 163840;
    m.max_context = Tokens{1048576};
    Moe moe{.experts = 896, .top_k = 16, .intermediate = 3072, .shared_experts = 2, .shared_intermediate = 6144, .latent = 3584};
    for (int i = 1; i <= 93; ++i) {
        Mixer mixer = (i % 4 == 0 || i == 93) ? Mixer{Mla{.heads = 96, .q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope = 128,
                                                          .qk_rope = 64, .v_head_dim = 128, .output_gate = true}}
                                              : Mixer{Kda{.heads = 96, .head_dim = 128, .conv_kernel = 4, .full_rank_gate = true}};
        m.layers.push_back(i == 1 ? layer(mixer, Dense{.intermediate = 33792}) : layer(mixer, moe));
    }
    m.quant.label = "mxfp4";
    m.quant[TensorClass::routed_expert].format = Format::mxfp4;
    return m;
}

/// Qwen/Qwen3.6-27B: 48 gated-delta + 16 full layers of 4 x 256.
inline Model qwen36_27b() {
    Model m;
    m.id = "Qwen/Qwen3.6-27B";
    m.model_type = "qwen3_5";
    m.architecture = "Qwen3_5ForConditionalGeneration";
    m.hidden = 5120;
    m.vocab = 248320;
    m.max_context = Tokens{262144};
    m.state_dtype = Format::fp32;
    for (int i = 0; i < 64; ++i) {
        Mixer mixer = i % 4 == 3 ? Mixer{Gqa{.q_heads = 24, .kv_heads = 4, .head_dim = 256, .v_head_dim = 256, .output_gate = true}}
                                 : Mixer{GatedDelta{.k_heads = 16, .v_heads = 48, .k_dim = 128, .v_dim = 128, .conv_kernel = 4}};
        m.layers.push_back(layer(mixer, Dense{.intermediate = 17408}));
    }
    return m;
}

/// meta-llama/Llama-3.1-8B.
inline Model llama31_8b() {
    Model m;
    m.id = "meta-llama/Llama-3.1-8B";
    m.model_type = "llama";
    m.architecture = "LlamaForCausalLM";
    m.hidden = 4096;
    m.vocab = 128256;
    m.max_context = Tokens{131072};
    for (int i = 0; i < 32; ++i)
        m.layers.push_back(layer(Gqa{.q_heads = 32, .kv_heads = 8, .head_dim = 128, .v_head_dim = 128}, Dense{.intermediate = 14336}));
    return m;
}

/// zai-org/GLM-5.3-Flash: 34 KDA + 11 MLA (no rope) with pooled index keys.
inline Model glm53_flash() {
    Model m;
    m.id = "zai-org/GLM-5.3-Flash";
    m.model_type = "glm5_next";
    m.architecture = "Glm5NextForConditionalGeneration";
    m.hidden = 4096;
    m.vocab = 154880;
    m.max_context = Tokens{1048576};
    Moe moe{.experts = 288, .top_k = 8, .intermediate = 2048, .shared_experts = 1, .shared_intermediate = 2048};
    for (int i = 0; i < 45; ++i) {
        Mixer mixer = (i % 4 == 3) ? Mixer{SparseIndexed{Mla{.heads = 64, .q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope = 256,
                                                             .qk_rope = 0, .v_head_dim = 256},
                                                         Indexer{.heads = 32, .head_dim = 128, .top_k = 2048, .key_pool = 4}}}
                                   : Mixer{Kda{.heads = 64, .head_dim = 128, .conv_kernel = 4}};
        m.layers.push_back(i < 3 ? layer(mixer, Dense{.intermediate = 12288}) : layer(mixer, moe));
    }
    m.quant.label = "fp8";
    return m;
}

/// deepseek-ai/DeepSeek-V4-Flash: 2 window-only, 21 ratio-4, 20 ratio-128 layers.
inline Model v4_flash() {
    Model m;
    m.id = "deepseek-ai/DeepSeek-V4-Flash";
    m.model_type = "deepseek_v4";
    m.architecture = "DeepseekV4ForCausalLM";
    m.hidden = 4096;
    m.vocab = 129280;
    m.max_context = Tokens{1048576};
    Moe moe{.experts = 256, .top_k = 6, .intermediate = 2048, .shared_experts = 1, .shared_intermediate = 2048};
    for (int i = 0; i < 43; ++i) {
        Compressed c{.heads = 64, .head_dim = 512, .qk_rope = 64, .q_lora_rank = 1024, .o_lora_rank = 1024, .o_groups = 8, .indexer = std::nullopt};
        c.window = 128;
        c.ratio = i < 2 ? 0 : (i % 2 == 0 ? 4 : 128);
        if (c.ratio == 4) {
            c.index_source = true;
            c.indexer = Indexer{.heads = 64, .head_dim = 128, .top_k = 512};
        }
        m.layers.push_back(layer(c, moe));
    }
    m.quant.label = "fp8+mxfp4";
    return m;
}

/// deepseek-ai/DeepSeek-V4.1-Flash: KV sources 2, 8, 14 (ratio 2) and 20 (ratio 1), a window in each of 40 layers.
inline Model v41_flash() {
    Model m;
    m.id = "deepseek-ai/DeepSeek-V4.1-Flash-1017";
    m.model_type = "deepseek_v41";
    m.architecture = "DeepseekV41ForCausalLM";
    m.hidden = 5120;
    m.vocab = 129280;
    m.max_context = Tokens{1048576};
    Moe moe{.experts = 384, .top_k = 6, .intermediate = 2304, .shared_experts = 1, .shared_intermediate = 2304};
    for (int i = 0; i < 40; ++i) {
        Compressed c{.heads = 64, .head_dim = 512, .qk_rope = 64, .q_lora_rank = 1280, .o_lora_rank = 1024, .o_groups = 8, .indexer = std::nullopt};
        c.window = 128;
        c.ratio = i < 2 ? 0 : (i < 20 ? 2 : 1);
        c.kv_source = i == 2 || i == 8 || i == 14 || i == 20;
        c.index_source = c.kv_source || i == 24 || i == 28 || i == 32 || i == 36;
        if (c.index_source) c.indexer = Indexer{.heads = 32, .head_dim = 128, .top_k = 512, .key_pool = 1, .owns_keys = c.kv_source};
        m.layers.push_back(layer(c, moe));
    }
    m.quant.label = "fp8+mxfp4";
    return m;
}

/// openai/gpt-oss-20b: 24 layers, windows of 128 in every other one.
inline Model gpt_oss_20b() {
    Model m;
    m.id = "openai/gpt-oss-20b";
    m.model_type = "gpt_oss";
    m.architecture = "GptOssForCausalLM";
    m.hidden = 2880;
    m.vocab = 201088;
    m.max_context = Tokens{131072};
    Gqa const a{.q_heads = 64, .kv_heads = 8, .head_dim = 64, .v_head_dim = 64};
    for (int i = 0; i < 24; ++i)
        m.layers.push_back(layer(i % 2 == 0 ? Mixer{SlidingWindow{a, 128}} : Mixer{a}, Moe{.experts = 32, .top_k = 4, .intermediate = 2880}));
    m.quant.label = "mxfp4";
    return m;
}

/// google/gemma-3-12b-it: 8 full + 40 windows of 1024.
inline Model gemma3_12b() {
    Model m;
    m.id = "google/gemma-3-12b-it";
    m.model_type = "gemma3";
    m.architecture = "Gemma3ForConditionalGeneration";
    m.hidden = 3840;
    m.vocab = 262208;
    m.max_context = Tokens{131072};
    Gqa const a{.q_heads = 16, .kv_heads = 8, .head_dim = 256, .v_head_dim = 256};
    for (int i = 0; i < 48; ++i)
        m.layers.push_back(layer(i % 6 == 5 ? Mixer{a} : Mixer{SlidingWindow{a, 1024}}, Dense{.intermediate = 15360}));
    return m;
}

} // namespace handmade
