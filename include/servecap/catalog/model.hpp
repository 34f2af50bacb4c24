// servecap: what a model is, as far as memory and speed care
// SPDX-License-Identifier: Apache-2.0
//
// A model is a list of layers, not a bag of integers: each layer names the kind of its token mixer
// (a closed variant) and of its feed-forward part. Adding a kind makes the compiler show every place
// that must know it. Shapes are those of the checkpoint, before any split over GPUs. Fields that rest
// on inference instead of a public config are listed in `inferred`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <servecap/catalog/format.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

// ---- token mixers -------------------------------------------------------------------------------

/// Full attention with grouped key-value heads (MHA and MQA are its ends).
struct Gqa {
    std::int32_t q_heads = 0;
    std::int32_t kv_heads = 0;
    std::int32_t head_dim = 0;      ///< of queries and keys
    std::int32_t v_head_dim = 0;    ///< of values
    bool output_gate = false;       ///< q_proj is twice as wide (Qwen3-Next and later)
    bool k_eq_v = false;            ///< one projection makes K and V (Gemma 4 global layers); both are cached
    bool reuses_kv = false;         ///< takes K and V of an earlier layer and caches none (Gemma 3n, 4 small)
    bool bias = false;              ///< q, k, v projections have a bias
    bool qk_norm = false;           ///< norms over head_dim on q and k
    bool sinks = false;             ///< one learned sink logit a query head (gpt-oss)
    bool qk_norm_full = false;      ///< norms over all heads at once (OLMo 2, 3; MiniMax M2)
    bool o_bias = false;            ///< the output projection has a bias
    bool head_gate = false;         ///< one gate value a query head (Step 3.7)
    bool o_plain = false;           ///< o_proj stays in the model's dtype when the rest is quantised (MiMo V2)
    std::int32_t stored_shards = 0; ///< q, k, v are stored as this many fused matrices (MiMo V2: 4); 0 = apart
    std::int32_t input = 0;         ///< input width of q, k, v; 0 = hidden (Zamba2: twice that)
};

/// Gqa that sees the last `window` tokens only.
struct SlidingWindow {
    Gqa attn;
    std::int32_t window = 0;
};

/// Gqa within chunks of `chunk` tokens (Llama 4).
struct ChunkedLocal {
    Gqa attn;
    std::int32_t chunk = 0;
};

/// Multi-head latent attention: the cache holds one latent row of kv_lora_rank + qk_rope a token.
struct Mla {
    std::int32_t heads = 0;
    std::int32_t q_lora_rank = 0;   ///< 0: full-rank q projection
    std::int32_t kv_lora_rank = 0;
    std::int32_t qk_nope = 0;
    std::int32_t qk_rope = 0;       ///< cached even where no rotary embedding is applied
    std::int32_t v_head_dim = 0;
    bool output_gate = false;       ///< a full-rank gate hidden -> heads * v_head_dim (Kimi K3)
    bool head_gate = false;         ///< one gate value a head (Ling 3 tiny)
};

/// Keys that pick which tokens are attended (DSA indexer).
struct Indexer {
    std::int32_t heads = 0;
    std::int32_t head_dim = 0;
    std::int32_t top_k = 0;         ///< tokens (or blocks) attended
    std::int32_t key_pool = 1;      ///< tokens that share one index key (GLM-5.3-Flash: 4)
    bool owns_keys = true;          ///< false: takes the choice of an earlier layer and caches none
    bool key_bias = true;           ///< the key norm is a LayerNorm with a bias
};

/// Sparse attention: a base (latent or grouped) of which an indexer picks the rows.
struct SparseIndexed {
    std::variant<Mla, Gqa> base;
    Indexer indexer;
};

/// Compressed attention of the DeepSeek V4 line: shared KV of one head; `ratio` tokens make one entry.
struct Compressed {
    std::int32_t heads = 0;
    std::int32_t head_dim = 0;      ///< width of the shared key-value row
    std::int32_t qk_rope = 0;
    std::int32_t q_lora_rank = 0;
    std::int32_t o_lora_rank = 0;
    std::int32_t o_groups = 0;
    std::int32_t ratio = 0;         ///< 0: sliding window only
    std::int32_t window = 0;        ///< every layer also keeps this many raw tokens
    bool kv_source = true;          ///< false: reads the compressed entries of an earlier layer
    bool index_source = false;      ///< computes its own choice of entries
    bool latent_keys = false;       ///< V4.1: index keys are projected from the latent, no position tables
    std::optional<Indexer> indexer; ///< present where entries are chosen
};

/// Kimi delta attention: state heads x dim x dim, convolution over q, k, v.
struct Kda {
    std::int32_t heads = 0;
    std::int32_t head_dim = 0;
    std::int32_t conv_kernel = 4;
    bool full_rank_gate = false;    ///< the output gate is one hidden -> heads * head_dim matrix
    bool full_rank_decay = false;   ///< so is the decay (Ling 3: no_kda_lora)
    std::int32_t stored_a_log = 0;  ///< stored entries of A_log where padded (Kimi K3: 128 for 96 heads); 0 = heads
};

/// Gated delta net (Qwen3-Next, Qwen3.5 to 3.8).
struct GatedDelta {
    std::int32_t k_heads = 0;
    std::int32_t v_heads = 0;
    std::int32_t k_dim = 0;
    std::int32_t v_dim = 0;
    std::int32_t conv_kernel = 4;
};

struct Mamba1 {
    std::int32_t inner = 0;
    std::int32_t d_state = 0;
    std::int32_t conv_kernel = 4;
    std::int32_t dt_rank = 0;
};

struct Mamba2 {
    std::int32_t heads = 0;
    std::int32_t head_dim = 0;
    std::int32_t groups = 1;
    std::int32_t d_state = 0;
    std::int32_t conv_kernel = 4;
    bool conv_bias = true;
    bool proj_bias = false;
    bool norm = true;               ///< a gated norm over the inner width
};

/// Lightning (linear) attention of MiniMax 01 / M1 and the Ling / Ring 2.5 line: state heads x dim x dim.
struct Lightning {
    std::int32_t heads = 0;
    std::int32_t head_dim = 0;
    bool qk_norm = false;
};

/// Gated short convolution (LFM2).
struct ShortConv {
    std::int32_t dim = 0;
    std::int32_t kernel = 3;
};

using Mixer = std::variant<Gqa, Mla, SlidingWindow, ChunkedLocal, SparseIndexed, Compressed, Kda, GatedDelta, Mamba1, Mamba2,
                           Lightning, ShortConv>;

/// The mixer keeps a fixed state a sequence instead of rows a token.
constexpr bool is_recurrent(Mixer const& m) noexcept {
    return std::holds_alternative<Kda>(m) || std::holds_alternative<GatedDelta>(m) || std::holds_alternative<Mamba1>(m) ||
           std::holds_alternative<Mamba2>(m) || std::holds_alternative<Lightning>(m) || std::holds_alternative<ShortConv>(m);
}

/// The kind as people write it: "gqa", "mla", "kda"...
constexpr std::string_view kind_name(Mixer const& m) noexcept {
    constexpr std::string_view names[] = {"gqa",    "mla",         "sliding-window", "chunked-local", "sparse-indexed", "compressed",
                                          "kda",    "gated-delta", "mamba1",         "mamba2",        "lightning",      "short-conv"};
    return names[m.index()];
}

// ---- feed-forward parts -------------------------------------------------------------------------

struct Dense {
    std::int32_t intermediate = 0;
    bool gated = true; ///< gate, up and down; else up and down
    bool bias = false;
};

struct Moe {
    std::int32_t experts = 0;
    std::int32_t top_k = 0;
    std::int32_t intermediate = 0;        ///< of one routed expert
    std::int32_t shared_experts = 0;
    std::int32_t shared_intermediate = 0; ///< of all shared experts together
    std::int32_t latent = 0;              ///< routed experts work on this width, 0 = hidden (Kimi K3, Nemotron 3)
    std::int32_t zero_experts = 0;        ///< experts without weights that the router may pick (LongCat)
    bool gated = true;                    ///< experts have gate, up and down; else up and down
    bool shared_gate = false;             ///< a learned sigmoid gate on the shared expert
    bool router_bias = false;
    bool bias = false;                    ///< experts carry biases (gpt-oss)
    bool latent_norm = false;             ///< a norm over the latent width (Kimi K3)
    std::int32_t dense_intermediate = 0;  ///< a dense FFN that runs beside the experts (LongCat, Gemma 4 26B)
};

using Ffn = std::variant<Dense, Moe>;

/// One layer: no mixer (Nemotron-H feed-forward layers), one, or two in parallel (Falcon-H1); and at most one FFN.
struct Layer {
    std::vector<Mixer> mixers;
    std::optional<Ffn> ffn;
    std::int32_t shared_block = -1; ///< index of the weights this layer shares with others (Zamba2); -1 = its own
    std::int32_t norms = 2;         ///< hidden-wide norm vectors: 2 usual, 4 sandwich (Gemma 2 to 4), 1 one-part layers
    bool norm_bias = false;         ///< LayerNorm with a bias
};

// ---- weights ------------------------------------------------------------------------------------

/// Groups of tensors that are stored, split and read alike.
enum class TensorClass : std::uint8_t {
    embedding,
    lm_head,
    attention,        ///< projections of attention that TP cuts (q, k, v, o, MLA up-projections)
    attention_shared, ///< parts whole on every rank: MLA down-projections, indexers, compressors
    linear_attention, ///< projections of recurrent mixers
    dense_ffn,
    shared_expert,
    routed_expert,
    router,
    norm,             ///< norms, biases, small vectors
    mtp,              ///< multi-token-prediction layers
    draft,            ///< separate draft model (DSpark, EAGLE)
    vision,           ///< towers and projectors
    lookup,           ///< Engram and other lookup tables
    other,
};
inline constexpr int kTensorClasses = 15;

constexpr std::string_view to_string(TensorClass c) noexcept {
    constexpr std::string_view names[] = {"embedding",     "lm_head", "attention", "attention_shared", "linear_attention",
                                          "dense_ffn",     "shared_expert", "routed_expert", "router", "norm",
                                          "mtp",           "draft",   "vision",    "lookup",           "other"};
    return names[static_cast<std::size_t>(c)];
}

/// How a tensor is spread over the ranks of one replica.
enum class Shard : std::uint8_t {
    replicated,   ///< whole on every rank
    tensor,       ///< cut evenly by tensor parallelism
    kv_heads,     ///< cut by kv heads; copied when there are more ranks than heads
    vocabulary,   ///< cut by the vocabulary padded to a multiple of 64
    expert,       ///< whole experts over TP x DP ranks with expert parallelism, else each expert cut by TP
    lookup_table, ///< cut by rows over ranks, or on the host
};

/// `count` equal matrices [rows, cols] of one layer.
struct WeightTensor {
    TensorClass cls{};
    Shard shard{};
    std::int32_t layer = -1;      ///< -1: not of the trunk (embedding, head, towers)
    std::int64_t rows = 0;        ///< output width
    std::int64_t cols = 0;        ///< input width; 1 for vectors
    std::int64_t count = 1;       ///< equal matrices (experts; q and k norms...)
    std::int32_t heads = 0;       ///< kv_heads: number of heads
    bool cut_cols = false;        ///< TP cuts the input side (o_proj, down_proj)
    WeightFormat format{};
    std::string_view name;        ///< static text: "q_proj", "experts.w13"...
};

/// One layer whose tensors of a class are stored otherwise than the rest.
struct LayerFormat {
    std::int32_t layer = 0;
    TensorClass cls{};
    WeightFormat format{};
};

/// Weight formats by tensor class; what the checkpoint's quantization block says.
struct QuantPlan {
    std::string label = "bf16"; ///< what people call it: bf16, fp8, mxfp4, nvfp4, int4, fp8+mxfp4
    std::string method;         ///< quant_method of the block; empty: none
    WeightFormat of[kTensorClasses]{};
    std::vector<LayerFormat> exceptions; ///< sorted by layer
    std::optional<WeightFormat> mla_out;  ///< o_proj of latent attention, where it differs from its class
    std::optional<WeightFormat> mla_kv_b; ///< kv_b_proj, the same
    bool mtp_as_trunk = false;  ///< MTP layers are quantised like the trunk; else they have the format of class mtp

    WeightFormat const& operator[](TensorClass c) const noexcept { return of[static_cast<std::size_t>(c)]; }
    WeightFormat& operator[](TensorClass c) noexcept { return of[static_cast<std::size_t>(c)]; }
};

/// A published figure that a card is checked against.
struct CardCheck {
    std::string name;
    double value = 0;
};

/// A layout that the card recommends for a GPU, with its source.
struct RecommendedLayout {
    std::string gpu;
    std::string layout;
    std::string source;
};

/// A fact about the licence, never advice.
struct LicenceFact {
    std::string text;
    std::string source;
};

struct Model {
    std::string id;           ///< Hugging Face id or file name: "moonshotai/Kimi-K3"
    std::string name;         ///< catalogue name, as rows are matched: "Kimi-K3"; empty: read from a path
    std::string display_name; ///< "Kimi K3"
    std::string architecture; ///< first entry of `architectures`
    std::string model_type;
    std::int32_t hidden = 0;
    std::int64_t vocab = 0;
    Tokens max_context{};
    bool tied_embeddings = false;
    Format dtype = Format::bf16; ///< of activations and of the auto KV cache
    std::vector<Layer> layers;
    std::vector<Layer> mtp_layers;           ///< multi-token prediction, run only with speculation
    std::int32_t final_norms = 1;            ///< hidden-wide norm vectors after the last layer
    std::vector<WeightTensor> extra_tensors; ///< towers, tables, hyper-connections: whatever layers do not imply
    QuantPlan quant;
    /// Cosine and sine tables that engines build beside the weights (one row a position, 16 bits); none: not known.
    std::optional<Bytes> rope_tables;
    /// Exact bytes by tensor class, from a checkpoint's own headers, where they were read; empty otherwise.
    std::vector<std::pair<TensorClass, Bytes>> exact_bytes;
    std::optional<Bytes> checkpoint_bytes;   ///< files on disk, where published
    std::optional<std::string> kv_dtype_hint;///< KV format that the checkpoint's quantization names
    std::optional<Format> state_dtype;       ///< recurrent state dtype that the config names; KDA is always fp32
    std::optional<Params> published_params;
    std::optional<Params> published_active_params;

    std::string source;                      ///< where the config was read
    std::string confidence;                  ///< "read", "secondary", "inferred"...
    std::vector<std::string> inferred;       ///< fields that are not public; "*" = all
    std::string notes;
    std::vector<CardCheck> checks;
    std::vector<RecommendedLayout> recommended;
    std::vector<LicenceFact> licence;
    std::vector<std::string> api_names;      ///< model ids of the first-party API rows

    [[nodiscard]] bool is_inferred() const noexcept { return !inferred.empty(); }
};

} // namespace servecap
