// Bytes of the KV cache by mixer; integers only. Published figures carry their source in the name.
#include <catch.hpp>

#include <servecap/memory/kv.hpp>

#include "handmade_models.hpp"

using namespace servecap;

TEST_CASE("memory: a Kimi K3 token takes 27,648 bytes a GPU in bf16 and 13,824 in fp8 (aiconfigurator kimi_k3.py)") {
    Model const k3 = handmade::kimi_k3();
    for (std::int32_t tp : {1, 8, 16}) {
        CHECK(kv_bytes_per_token(k3, {.format = KvFormat::bf16, .tp = tp}) == Bytes{27648}); // latents are whole on every rank
        CHECK(kv_bytes_per_token(k3, {.format = KvFormat::fp8, .tp = tp}) == Bytes{13824});
    }
    CHECK(kv_bytes_per_token(k3, {.format = KvFormat::fp8_ds_mla}) == Bytes{15744});
    CHECK(kv_window_bytes(k3, {}) == Bytes{0});
}

TEST_CASE("memory: grouped heads are cut by TP and copied where there are more ranks than heads") {
    Model const llama = handmade::llama31_8b();
    CHECK(kv_bytes_per_token(llama, {}) == Bytes{131072}); // 128 KiB a token
    CHECK(kv_bytes_per_token(llama, {.tp = 4}) == Bytes{32768});
    CHECK(kv_bytes_per_token(llama, {.tp = 8}) == Bytes{16384});
    CHECK(kv_bytes_per_token(llama, {.tp = 16}) == Bytes{16384}); // 16 ranks, 8 heads: one copied head each
    CHECK(kv_bytes_per_token(llama, {.format = KvFormat::fp8}) == Bytes{65536});
    CHECK(kv_bytes_per_token(llama, {.format = KvFormat::nvfp4}) == Bytes{32 * 8 * 2 * (64 + 8)});
}

TEST_CASE("memory: the DeepSeek V4 line stores shared records of 584, 528, 512 or 288 bytes") {
    Model const v4 = handmade::v4_flash();
    // 21 layers of one record and one index key per 4 tokens, 20 of one record per 128: 3,850.25 bytes a token
    CHECK(kv_growing_bytes(v4, {.record = CompressedRecord::ds_mla}, Tokens{128}) == Bytes{21 * 32 * (584 + 132) + 20 * 584});
    CHECK(kv_bytes_per_token(v4, {.record = CompressedRecord::ds_mla}) == Bytes{3851});
    CHECK(kv_bytes_per_token(v4, {.index = IndexFormat::mxfp4, .record = CompressedRecord::ds_mla}) == Bytes{3515});
    CHECK(kv_window_bytes(v4, {.record = CompressedRecord::ds_mla}) == Bytes{43 * 128 * 584});

    Model const v41 = handmade::v41_flash();
    // the publisher's 890 bytes a token: 2.5 entries of 288 + 68
    CHECK(kv_bytes_per_token(v41, {.index = IndexFormat::mxfp4, .record = CompressedRecord::nvfp4}) == Bytes{890});
    CHECK(kv_bytes_per_token(v41, {.index = IndexFormat::mxfp4, .record = CompressedRecord::mxfp8}) == Bytes{1490});
    CHECK(kv_bytes_per_token(v41, {.index = IndexFormat::fp8, .record = CompressedRecord::ds_mla}) == Bytes{1790});
    CHECK(kv_bytes_per_token(v41, {.index = IndexFormat::mxfp4, .record = CompressedRecord::fp8}) == Bytes{1450});
    CHECK(kv_window_bytes(v41, {.record = CompressedRecord::mxfp8}) == Bytes{2703360});
}

TEST_CASE("memory: pooled index keys count per pool, windows stop growing") {
    Model const glm = handmade::glm53_flash();
    CHECK(kv_growing_bytes(glm, {}, Tokens{4}) == Bytes{11 * (4 * 1024 + 132)});
    CHECK(kv_growing_bytes(glm, {}, Tokens{5}) == Bytes{11 * (5 * 1024 + 2 * 132)});
    Model const gemma = handmade::gemma3_12b();
    CHECK(kv_bytes_per_token(gemma, {}) == Bytes{8 * 8192});
    CHECK(kv_window_bytes(gemma, {}) == Bytes{40 * 8192 * 1024});
    CHECK(kv_window_bytes(gemma, {}, Tokens{100}) == Bytes{40 * 8192 * 100});
    // fp8_ds_mla of DeepSeek V3.2 and GLM-5: 656 bytes
    CHECK(kv_token_bytes(Mla{.kv_lora_rank = 512, .qk_rope = 64}, {.format = KvFormat::fp8_ds_mla}) == Bytes{656});
    CHECK(index_key_bytes(Indexer{.head_dim = 128, .owns_keys = false}, IndexFormat::fp8) == Bytes{0});
    // layers that reuse another layer's keys and values cache none (Gemma 3n and 4)
    CHECK(kv_token_bytes(Gqa{.kv_heads = 2, .head_dim = 256, .v_head_dim = 256, .reuses_kv = true}, {}) == Bytes{0});
}

TEST_CASE("memory: growing bytes never fall with more tokens, and TP 1 is the whole model") {
    for (Model const& m : {handmade::v4_flash(), handmade::v41_flash(), handmade::glm53_flash(), handmade::gpt_oss_20b()}) {
        Bytes before{0};
        for (std::int64_t n = 1; n <= 1 << 20; n = n * 3 + 1) {
            Bytes const now = kv_growing_bytes(m, {}, Tokens{n});
            CHECK(now >= before);
            before = now;
        }
        CHECK(kv_growing_bytes(m, {}, Tokens{1000}, 0, 10) + kv_growing_bytes(m, {}, Tokens{1000}, 10) ==
              kv_growing_bytes(m, {}, Tokens{1000}));
    }
}
