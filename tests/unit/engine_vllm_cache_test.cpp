// The layout of vLLM's pool against figures that logs print.
#include <catch.hpp>

#include <servecap/engine/vllm_cache.hpp>

#include "handmade_models.hpp"

using namespace servecap;

namespace {

VllmRules rules_of(std::string_view version) { return vllm_rules(parse_vllm_version(version)); }

std::int64_t blocks(CacheLayout const& c, double pool_gib, std::size_t stage = 0) {
    return gib(pool_gib).value() / c.bytes_per_block[stage].value();
}

std::int64_t tokens(std::int64_t blocks, std::int64_t pages, std::int64_t len) {
    return static_cast<std::int64_t>(static_cast<double>(blocks) / static_cast<double>(pages) * static_cast<double>(len));
}

} // namespace

TEST_CASE("vllm pool: Qwen 27B hybrid, bf16 KV: block 784, 803 blocks in 38.45 GiB, 622,785 tokens (start-up log)") {
    CacheOptions o;
    CacheLayout const c = cache_layout(handmade::qwen36_27b(), o, rules_of("0.28.0"));
    CHECK(c.block == Tokens{784});
    CHECK(c.bytes_per_block[0] == Bytes{51380224});
    CHECK(c.group_count == 4);
    CHECK(blocks(c, 38.45) == 803);
    CHECK(c.pages(262144, 0) == 338);
    CHECK(tokens(803, 338, 262144) == 622785);
    CHECK(c.recurrent_padding == Approx(0.00128).epsilon(0.01));

    o.kv.format = KvFormat::fp8;
    CacheLayout const f = cache_layout(handmade::qwen36_27b(), o, rules_of("0.28.0"));
    CHECK(f.block == Tokens{1568});
    CHECK(blocks(f, 9.8) == 204);
    CHECK(tokens(204, f.pages(262144, 0), 262144) == 312733);
    o.state.draft_tokens = 3; // speculation lengthens the convolution (27B fp8: K=3 1600, K=7 1648)
    CHECK(cache_layout(handmade::qwen36_27b(), o, rules_of("0.28.0")).block == Tokens{1600});
    o.state.draft_tokens = 7;
    CHECK(cache_layout(handmade::qwen36_27b(), o, rules_of("0.28.0")).block == Tokens{1648});
}

TEST_CASE("vllm pool: Kimi K3 at TP16 on H200: block 384, 82 blocks of 0.82 GiB, page padded 8.68 % (start-up log)") {
    CacheOptions o;
    o.layout.tp = 16;
    o.kv.tp = o.state.tp = 16;
    o.kernel_block = 64;
    Model const k3 = handmade::kimi_k3();
    CacheLayout const c = cache_layout(k3, o, rules_of("0.26.0"));
    CHECK(c.block == Tokens{384});
    CHECK(c.bytes_per_block[0] == Bytes{10616832});
    CHECK(c.recurrent_padding == Approx(0.0868).epsilon(0.001));
    CHECK(blocks(c, 0.82) == 82);
    CHECK(c.pages(29696, 0) == 81);
    CHECK(tokens(82, 81, 29696) == 30062);
    CHECK(c.longest(82, 0, 1048576) == 30336);

    // TP8: block 768; align with prefix caching: 3047 blocks, 2,295,266 tokens (MI355X log)
    o.layout.tp = o.kv.tp = o.state.tp = 8;
    o.mode = MambaCacheMode::align;
    CacheLayout const a = cache_layout(k3, o, rules_of("0.26.0"));
    CHECK(a.block == Tokens{768});
    CHECK(a.pages(262144, 0) == 348);
    CHECK(tokens(3047, 348, 262144) == 2295266);
    o.internal_checkpoint = true; // FlashKDA keeps a state inside a block
    CHECK(cache_layout(k3, o, rules_of("0.30.0")).pages(262144, 0) == 351);
    // newer builds floor MLA blocks at 128: fp8 KV takes 1536
    o.kv.format = KvFormat::fp8;
    o.kernel_block = 128;
    CHECK(cache_layout(k3, o, rules_of("0.30.0")).block == Tokens{1536});
}

TEST_CASE("vllm pool: Kimi K3 TP16 with DCP8 and fp8 KV: 175 blocks of 1.732 GiB, 1,054,602 tokens (start-up log)") {
    CacheOptions o;
    o.layout.tp = o.kv.tp = o.state.tp = 16;
    o.layout.dcp = 8;
    o.kv.format = KvFormat::fp8;
    o.kernel_block = 128;
    CacheLayout const c = cache_layout(handmade::kimi_k3(), o, rules_of("0.26.0"));
    CHECK(c.block == Tokens{768});
    CHECK(blocks(c, 1.732) == 175);
    CHECK(c.pages(1048576, 0) == 174);
    CHECK(tokens(175, 174, 1048576) == 1054602);
}

TEST_CASE("vllm pool: Kimi K3 TP8 PP3: the stage with most MLA layers decides (start-up log)") {
    CacheOptions o;
    o.layout.tp = o.kv.tp = o.state.tp = 8;
    o.layout.pp = 3;
    o.kernel_block = 64;
    CacheLayout const c = cache_layout(handmade::kimi_k3(), o, rules_of("0.26.0"));
    REQUIRE(c.bytes_per_block.size() == 3);
    std::vector<std::int64_t> layers;
    for (Bytes b : c.bytes_per_block) layers.push_back(b.value() / 884736);
    CHECK(*std::max_element(layers.begin(), layers.end()) == 9);
    CHECK(c.pages(1048576, 0) == 1369);
    CHECK(tokens(8305, 1369, 1048576) == 6361156);
}

TEST_CASE("vllm pool: Llama 3.1 8B on one L4: 4.91 GiB hold 2,513 blocks, 40,208 tokens, longest 40,192 (published log)") {
    CacheLayout const c = cache_layout(handmade::llama31_8b(), {}, rules_of("0.28.0"));
    CHECK(c.block == Tokens{16});
    CHECK(c.bytes_per_block[0] == Bytes{2097152});
    std::int64_t const n = blocks(c, 4.91);
    CHECK(n == 2513);
    CHECK(n * 16 == 40208);
    CHECK(c.longest(n - 1, 0, 131072) == 40192); // one block is kept back
}

TEST_CASE("vllm pool: GLM-5.3-Flash at TP8: block 640, 7,441,280 bytes a block, 7,228,559 tokens (start-up log)") {
    CacheOptions o;
    o.layout.tp = o.kv.tp = o.state.tp = 8;
    o.kernel_block = 128;
    o.mode = MambaCacheMode::align;
    Model const glm = handmade::glm53_flash();
    CacheLayout c = cache_layout(glm, o, rules_of("0.30.0"));
    CHECK(c.block == Tokens{640});
    CHECK(c.bytes_per_block[0] == Bytes{7441280});
    CHECK(c.recurrent_padding == Approx(0.2075).epsilon(0.001));
    CHECK(blocks(c, 81.80) == 11803); // the log prints 81.79 GiB; 11,802 blocks reproduce its tokens
    CHECK(c.pages(131072, 0) == 205 + 1 + 8);
    CHECK(tokens(11802, 214, 131072) == 7228559);
    o.mode = MambaCacheMode::none;
    c = cache_layout(glm, o, rules_of("0.30.0"));
    CHECK(c.pages(131072, 0) == 205 + 1 + 4);
}

TEST_CASE("vllm pool: DeepSeek V4 Flash, packed groups: 1,002,240 bytes a block, blocks 64, 64, 256, 4, 8 (start-up log)") {
    CacheOptions o;
    o.kernel_block = 256;
    CacheLayout const c = cache_layout(handmade::v4_flash(), o, rules_of("0.31.0"));
    CHECK(c.bytes_per_block[0] == Bytes{1002240});
    CHECK(c.group_count == 5);
    std::vector<std::int64_t> sizes;
    for (CacheGroup const& g : c.groups)
        for (std::int64_t i = 0; i < g.copies; ++i) sizes.push_back(g.block.value());
    std::sort(sizes.begin(), sizes.end());
    CHECK(sizes == std::vector<std::int64_t>{4, 8, 64, 64, 256});
    // groups as instrumented in vllm-project/vllm#54703
    std::vector<std::int64_t> bytes;
    for (CacheGroup const& g : c.groups) bytes.push_back(g.widest.value());
    std::sort(bytes.begin(), bytes.end());
    CHECK(bytes == std::vector<std::int64_t>{656640, 786240, 823680, 870912, 1002240});
}

TEST_CASE("vllm pool: DeepSeek V4 Flash before packed groups: slots by page size, 32.08 GiB on H200 (two start-up logs)") {
    CacheOptions o;
    o.kernel_block = 256;
    CacheLayout const c = cache_layout(handmade::v4_flash(), o, rules_of("0.25.0"));
    CHECK(c.bytes_per_block[0] == Bytes{1039680});
    CHECK(c.weighted);
    CHECK(c.pages(262144, 8192) == 3993);
    CHECK(c.pages(4096, 8192) == 1494);
    // one pool of 33,134 blocks gives both logged figures; 32.08 GiB is 33,131 to two decimals
    CHECK(tokens(33134, 3993, 262144) == 2175276);
    CHECK(tokens(33134, 1494, 4096) == 90841);
    CHECK(blocks(c, 32.085) >= 33134);
}

TEST_CASE("vllm pool: DeepSeek V4.1 Flash: 116,928 bytes a block on Hopper, 186,368 on Blackwell (start-up logs)") {
    CacheOptions o;
    o.kernel_block = 64;
    Model const m = handmade::v41_flash();
    CacheLayout const h = cache_layout(m, o, rules_of("0.31.1"));
    CHECK(h.bytes_per_block[0] == Bytes{116928});
    CHECK(h.group_count == 1 + 7 + 1);

    o.kernel_block = 128;
    o.kv.record = CompressedRecord::fp8;
    o.kv.index = IndexFormat::mxfp4;
    CacheLayout const b = cache_layout(m, o, rules_of("0.33.0"));
    CHECK(b.bytes_per_block[0] == Bytes{186368});
    CHECK(b.pages(1048576, 2 * 8192) == 10261);
    // the log prints the pool to two decimals; 833,463 blocks (144.6631 GiB) is what gives its tokens
    CHECK(blocks(b, 144.655) <= 833463);
    CHECK(blocks(b, 144.665) >= 833463);
    CHECK(tokens(833463, 10261, 1048576) == 85171942);
}

TEST_CASE("vllm pool: windows: gemma 3 12B, 47.72 GiB: 130,304 tokens by the older line (vLLM 0.19 log)") {
    CacheLayout const c = cache_layout(handmade::gemma3_12b(), {}, rules_of("0.19.0"));
    CHECK(c.group_count == 6);
    CHECK(c.bytes_per_block[0] == Bytes{8 * 131072});
    CHECK(blocks(c, 47.72) / c.group_count * c.smallest_block.value() == 130304);
    // 8192 tokens with one batch of 8192 in flight: 15.88 requests
    CHECK(static_cast<double>(blocks(c, 47.72)) / static_cast<double>(c.pages(8192, 8192)) == Approx(15.88).epsilon(0.001));

    CacheOptions two;
    two.layout.tp = two.kv.tp = 2;
    CacheLayout const g = cache_layout(handmade::gpt_oss_20b(), two, rules_of("0.19.0"));
    CHECK(blocks(g, 59.32) / g.group_count * g.smallest_block.value() == Approx(2591776).epsilon(0.0002));
    // the hybrid manager off: every layer as long as the full ones
    CacheOptions off;
    off.hybrid_manager = false;
    CacheLayout const f = cache_layout(handmade::gemma3_12b(), off, rules_of("0.19.0"));
    CHECK(f.group_count == 1);
    CHECK(f.bytes_per_block[0] == Bytes{48 * 131072});
}

TEST_CASE("vllm pool: pages never fall with length, and the longest request is the inverse of its pages") {
    for (Model const& m : {handmade::qwen36_27b(), handmade::gemma3_12b(), handmade::v4_flash(), handmade::v41_flash(), handmade::glm53_flash()})
        for (std::string_view v : {"0.19.0", "0.25.0", "0.33.0"}) {
            CacheOptions o;
            o.kernel_block = m.model_type == "deepseek_v4" ? 256 : m.model_type == "glm5_next" ? 128 : 64;
            CacheLayout const c = cache_layout(m, o, rules_of(v));
            std::int64_t before = 0;
            for (std::int64_t n = 1; n < 2000000; n = n * 5 / 4 + 1) {
                std::int64_t const p = c.pages(n, 8192);
                CHECK(p >= before);
                before = p;
                // the engine's length check counts pages in its own way; the longest length inverts that
                std::int64_t const q = c.checked_pages(n, 8192);
                std::int64_t const l = c.longest(q, 8192, 1 << 22);
                CHECK(l >= std::min<std::int64_t>(n, 1 << 22));
                CHECK(c.checked_pages(l, 8192) <= q);
            }
        }
}
