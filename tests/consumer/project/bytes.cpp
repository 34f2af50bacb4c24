// What a token of one layer takes in the KV cache: bytes alone, without JSON, CSV, fmt or Eigen.
#include <servecap/memory/kv.hpp>

int main() {
    using namespace servecap;
    // One layer of Llama 3 70B: 8 key-value heads of 128, on one of 8 GPUs, in bf16: 2 * 128 * 2 bytes.
    Gqa const attention{.q_heads = 64, .kv_heads = 8, .head_dim = 128, .v_head_dim = 128};
    return kv_token_bytes(attention, KvOptions{.format = KvFormat::bf16, .tp = 8}) == 512_B ? 0 : 1;
}
