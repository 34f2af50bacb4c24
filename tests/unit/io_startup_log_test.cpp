// Start-up logs: every figure below is printed in the excerpt that it is read from (tests/data/logs/README.md
// names where each was published).

#include <catch.hpp>

#include <fstream>
#include <iterator>
#include <string>

#include <servecap/io/startup_log.hpp>

using namespace servecap;

namespace {

std::string log_text(std::string const& name) {
    std::ifstream in{std::string{SERVECAP_TEST_DATA} + "/logs/" + name, std::ios::binary};
    REQUIRE(in.good());
    return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

ObservedStart seen(std::string const& name) { return parse_startup_log(log_text(name)); }

double gib_of(std::optional<Bytes> const& b) { return b ? in_gib(*b) : -1e9; }

} // namespace

TEST_CASE("vLLM 0.20 log of a hybrid model: configuration, budget and pool", "[io][startup_log]") {
    auto const s = seen("vllm_0.20_hybrid_nvfp4_gb10.log");
    CHECK(s.engine == EngineKind::vllm);
    CHECK(s.engine_version == "0.20.0");
    CHECK(s.model == "RedHatAI/Qwen3.6-35B-A3B-NVFP4");
    CHECK(s.architecture == "Qwen3_5MoeForConditionalGeneration");
    CHECK(s.quantization == "compressed-tensors");
    CHECK(s.dtype == "torch.bfloat16");
    CHECK(s.date == "05-03");
    CHECK(s.tp == 1);
    CHECK(s.dcp == 1);
    CHECK(s.settings.gpu_memory_utilization == 0.9);
    CHECK(s.settings.max_model_len == Tokens{65536});
    CHECK(s.settings.max_num_seqs == Requests{1});
    CHECK(s.settings.max_num_batched_tokens == Tokens{8192});
    CHECK(s.settings.max_cudagraph_capture_size == Tokens{1});
    CHECK(s.settings.kv_cache_dtype == "fp8_e4m3");
    CHECK(s.settings.prefix_caching == true);
    CHECK(s.settings.mamba_cache_mode == MambaCacheMode::align);
    CHECK(s.settings.graph_mode == GraphMode::full_and_piecewise);
    CHECK_FALSE(s.settings.enforce_eager);
    CHECK(s.capture_size == 1);
    CHECK(gib_of(s.weights) == Approx(21.86));
    CHECK(gib_of(s.pool) == Approx(82.42));
    CHECK(gib_of(s.cuda_graph_estimate) == Approx(0.43));
    CHECK(s.utilization == Approx(0.9));
    CHECK(s.block_size == 2096);
    CHECK(s.kv_tokens == Tokens{2158880});
    CHECK(s.max_concurrency == Approx(108.5));
    CHECK(s.max_model_len == Tokens{65536});
    CHECK(s.max_batched_tokens == Tokens{8192});
    CHECK(s.stage == StartStage::pool_allocated);
    CHECK_FALSE(s.starts.has_value()); // the excerpt stops before the server is ready
    CHECK_FALSE(s.notes.empty());
}

TEST_CASE("vLLM log behind a container's time stamps, with CRLF", "[io][startup_log]") {
    auto const s = seen("vllm_0.20_docker_prefix_wsl.log");
    CHECK(s.model == "RedHatAI/Qwen3.6-35B-A3B-NVFP4");
    CHECK(s.date == "2026-05-01");
    CHECK(gib_of(s.pool) == Approx(2.95));
    CHECK(gib_of(s.cuda_graph) == Approx(0.73));
    CHECK(gib_of(s.cuda_graph_estimate) == Approx(0.36));
    CHECK(s.kv_tokens == Tokens{75456});
    CHECK(s.max_concurrency == Approx(3.87));
    CHECK(s.starts == true);
    CHECK(s.verdict == Verdict::starts);
    CHECK(s.stage == StartStage::ready);
}

TEST_CASE("vLLM 0.23 without memory for the cache", "[io][startup_log]") {
    auto const s = seen("vllm_0.23_no_kv_memory.log");
    CHECK(s.engine_version == "0.23.0");
    CHECK(s.model == "/models/Qwen2.5-VL-7B-Instruct");
    CHECK(s.settings.gpu_memory_utilization == 0.22);
    CHECK_FALSE(s.settings.max_model_len.has_value()); // not typed: 128000 is the model's
    CHECK_FALSE(s.settings.max_cudagraph_capture_size.has_value());
    CHECK(s.capture_size == 512);
    CHECK(s.max_model_len == Tokens{128000});
    CHECK(gib_of(s.weights) == Approx(15.67));
    CHECK(gib_of(s.pool) == Approx(-14.28));
    CHECK(s.starts == false);
    CHECK(s.verdict == Verdict::no_kv_memory);
    CHECK(s.error.starts_with("No available memory for the cache blocks. Try increasing"));
}

TEST_CASE("vLLM refusal of a length, its sentence broken over lines by a paste", "[io][startup_log]") {
    auto const s = seen("vllm_length_refusal_broken_over_lines.txt");
    CHECK(s.starts == false);
    CHECK(s.verdict == Verdict::max_model_len_too_long);
    CHECK(s.max_model_len == Tokens{40960});
    CHECK(gib_of(s.needed) == Approx(5.62));
    CHECK(gib_of(s.pool) == Approx(4.50));
    CHECK(s.estimated_max_len == Tokens{32768});
}

TEST_CASE("vLLM refusal of a length on one line, newer wording", "[io][startup_log]") {
    auto const s = parse_startup_log(
        "ValueError: To serve at least one request with the model's max seq len (131072), (2.15 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (1.5 GiB). Based on the available memory, "
        "the estimated maximum model length is 87808. Try increasing `gpu_memory_utilization`");
    CHECK(s.verdict == Verdict::max_model_len_too_long);
    CHECK(s.max_model_len == Tokens{131072});
    CHECK(gib_of(s.needed) == Approx(2.15));
    CHECK(gib_of(s.pool) == Approx(1.5));
    CHECK(s.estimated_max_len == Tokens{87808});
}

TEST_CASE("vLLM refusal for want of state slots", "[io][startup_log]") {
    auto const s = seen("vllm_state_slots_refusal.txt");
    CHECK(s.engine == EngineKind::vllm);
    CHECK(s.starts == false);
    CHECK(s.verdict == Verdict::state_slots_too_few);
    CHECK(s.asked_seqs == 1024);
    CHECK(s.state_slots == 784);
    CHECK(s.error.starts_with("max_num_seqs (1024) exceeds available Mamba cache blocks (784)"));
}

TEST_CASE("vLLM with two workers, interleaved", "[io][startup_log]") {
    auto const s = seen("vllm_kimi_linear_tp2_issue28228.log");
    CHECK(gib_of(s.pool) == Approx(2.30));
    CHECK(s.kv_tokens == Tokens{75840});
    CHECK(s.concurrency_at == Tokens{120000});
    CHECK(s.max_model_len == Tokens{120000});
    CHECK(s.max_concurrency == Approx(2.48));
    CHECK(s.date == "11-06");
}

TEST_CASE("vLLM summary lines of two workers: weights, activation, non-torch, graphs, pool", "[io][startup_log]") {
    auto const s = seen("vllm_tp2_h200_summary.log");
    CHECK(s.ranks_seen == 2);
    CHECK(gib_of(s.total) == Approx(139.81));
    CHECK(gib_of(s.free_before) == Approx(139.21));
    CHECK(s.utilization == Approx(0.9));
    CHECK(gib_of(s.requested) == Approx(125.83));
    CHECK(gib_of(s.weights) == Approx(74.28));
    CHECK(gib_of(s.activation) == Approx(5.58));
    CHECK(gib_of(s.non_torch) == Approx(1.38));
    CHECK(gib_of(s.cuda_graph) == Approx(2.37));
    REQUIRE(s.pool.has_value());
    CHECK(std::abs(s.pool->value() - 47878721024) <= 1); // printed in bytes
}

TEST_CASE("vLLM workers with unequal pools: the poorest decides", "[io][startup_log]") {
    auto const s = seen("vllm_unequal_ranks_rtxpro6000.log");
    CHECK(gib_of(s.consumed) == Approx(64.5));
    CHECK(gib_of(s.activation) == Approx(4.19));
    CHECK(s.kv_tokens == Tokens{2143243}); // the form that puts both figures on one line
    CHECK(s.max_concurrency == Approx(2.04));
    CHECK(s.concurrency_at == Tokens{1048576});
    CHECK(gib_of(s.free_before) == Approx(91.45));
    CHECK_FALSE(s.weights.has_value()); // only their sum with non-torch is printed
}

TEST_CASE("vLLM 0.8 profile lines of sixteen workers", "[io][startup_log]") {
    auto const s = seen("vllm_v0_profile_tp16_pr14447.log");
    CHECK(s.ranks_seen == 3); // workers whose terms are in the excerpt: 521, 507, 577
    CHECK(gib_of(s.weights) == Approx(21.21));
    CHECK(gib_of(s.non_torch) == Approx(0.20));
    CHECK(gib_of(s.activation) == Approx(0.37));
    CHECK(gib_of(s.pool) == Approx(1.57));
    CHECK(gib_of(s.total) == Approx(23.58));
    CHECK(s.utilization == Approx(0.99));
    CHECK(gib_of(s.requested) == Approx(23.35));
}

TEST_CASE("vLLM start that failed for a reason the log does not name", "[io][startup_log]") {
    auto const s = seen("vllm_rocm_worker_died_issue6055.log");
    CHECK(s.engine_version == "0.18.1rc1.dev27+g63f49b8bd");
    CHECK(s.settings.gpu_memory_utilization == 0.25);
    CHECK(s.settings.enforce_eager);
    CHECK(s.quantization == "awq");
    CHECK(s.block_size == 1056);
    CHECK(s.starts == false);
    CHECK_FALSE(s.verdict.has_value());
}

TEST_CASE("SGLang log with its arguments: weights from the two free-memory lines", "[io][startup_log]") {
    auto const s = seen("sglang_r1_distill_7b_rtx3090.log");
    CHECK(s.engine == EngineKind::sglang);
    CHECK(s.model == "/sgl-workspace/models/DeepSeek-R1-Distill-Qwen-7B");
    CHECK(s.architecture == "Qwen2ForCausalLM");
    CHECK(s.date == "2025-02-04");
    CHECK(s.tp == 1);
    CHECK(s.settings.mem_fraction_static == 0.88);
    CHECK(s.settings.max_num_batched_tokens == Tokens{2048});
    CHECK(s.settings.prefix_caching == true);
    CHECK(gib_of(s.free_before) == Approx(22.76));
    CHECK(gib_of(s.weights) == Approx(14.39));
    CHECK(gib_of(s.kv_allocated) == Approx(5.64));
    CHECK(s.kv_tokens == Tokens{105531});
    CHECK(s.max_requests == Requests{2049});
    CHECK(s.max_model_len == Tokens{131072});
    CHECK(s.starts == true);
}

TEST_CASE("SGLang log of a hybrid model: state slots beside KV", "[io][startup_log]") {
    auto const s = seen("sglang_granite_hybrid_16gb.log");
    CHECK(s.architecture == "GraniteMoeHybridForCausalLM");
    CHECK(gib_of(s.weights) == Approx(5.98));
    CHECK(s.state_slots == 38);
    CHECK(gib_of(s.state_bytes) == Approx(2.77));
    CHECK(gib_of(s.kv_allocated) == Approx(3.04));
    CHECK(gib_of(s.pool) == Approx(5.81));
    CHECK(s.kv_tokens == Tokens{399740});
    CHECK(gib_of(s.cuda_graph) == Approx(0.09));
    CHECK(s.settings.kv_cache_dtype == "bfloat16");
}

TEST_CASE("SGLang log of eight interleaved workers", "[io][startup_log]") {
    auto const s = seen("sglang_kimi_k25_tp8_mi355x.log");
    CHECK(s.ranks_seen == 8);
    CHECK(gib_of(s.weights) == Approx(73.58));
    CHECK(gib_of(s.kv_allocated) == Approx(160.63));
    CHECK(s.kv_tokens == Tokens{2454421});
    CHECK(gib_of(s.free_before) == Approx(283.53)); // the poorest
    CHECK(s.date == "2026-02-26");
}

TEST_CASE("SGLang log of DeepSeek V4: bytes per full token", "[io][startup_log]") {
    auto const s = seen("sglang_dsv4_flash_tp8_96gb.log");
    CHECK(s.tp == 8);
    CHECK(s.settings.mem_fraction_static == 0.88);
    CHECK(s.settings.block_size == Tokens{256});
    CHECK(s.settings.prefix_caching == false);
    CHECK(s.kv_bytes_per_token == Approx(15955.85));
    CHECK(gib_of(s.pool) == Approx(45.78));
    CHECK(s.kv_tokens == Tokens{3080960});
    CHECK(s.max_requests == Requests{256});
    CHECK(gib_of(s.cuda_graph) == Approx(1.93));
    CHECK(s.starts == true);
}

TEST_CASE("SGLang log of a sliding-window model, pasted without prefixes", "[io][startup_log]") {
    auto const s = seen("sglang_gemma4_e4b_swa_gb10.txt");
    CHECK(gib_of(s.kv_allocated) == Approx(79.94));
    CHECK(s.swa_tokens == Tokens{798276});
    CHECK(s.kv_tokens == Tokens{997846});
    CHECK(s.starts == true);
}

TEST_CASE("SGLang refusals by their own messages", "[io][startup_log]") {
    CHECK(parse_startup_log(
              "[2026-01-05 10:00:00 TP0] RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
              "Current value: mem_fraction_static=0.3")
              .verdict == Verdict::no_kv_memory);
    CHECK(parse_startup_log("RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
                            "max_mamba_cache_size=-3")
              .verdict == Verdict::state_slots_too_few);
    auto const s =
        parse_startup_log("ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.6. "
                          "Raise --mem-fraction-static above 0.71 to leave room");
    CHECK(s.verdict == Verdict::no_kv_memory);
    CHECK(s.starts == false);
    CHECK(s.error.starts_with("Loaded weights leave"));
}

TEST_CASE("TensorRT-LLM logs: profiling cache, budget line, block count", "[io][startup_log]") {
    auto const first = seen("trtllm_autodeploy_profile_cache.log");
    CHECK(first.engine == EngineKind::trtllm);
    CHECK(first.date == "2025-12-20");
    CHECK(first.kv_tokens == Tokens{8224});
    CHECK(first.block_size == 32);
    CHECK(first.max_model_len == Tokens{8224});
    CHECK(first.max_requests == Requests{64});

    auto const r1 = seen("trtllm_deepseek_r1_fp8_h200.log");
    CHECK(r1.tp == 8);
    CHECK(r1.settings.max_batch_size == Requests{256});
    CHECK(r1.settings.max_model_len == Tokens{131072});
    CHECK(gib_of(r1.consumed) == Approx(91.46));
    CHECK(gib_of(r1.pool) == Approx(41.11));
    CHECK(r1.utilization == Approx(0.85));
    CHECK(r1.kv_bytes_per_token == Approx(35136));
    CHECK(gib_of(r1.total) == Approx(139.81));
    CHECK(r1.kv_tokens == Tokens{524288});

    auto const llama = seen("trtllm_llama2_7b_fp8_h100.log");
    CHECK(gib_of(llama.total) == Approx(79.10));
    CHECK(llama.blocks == 4607);
    CHECK(llama.block_size == 64);
    CHECK(llama.kv_tokens == Tokens{294848}); // 4607 blocks of 64
    CHECK(*llama.blocks * *llama.block_size == llama.kv_tokens->value());
    CHECK(gib_of(llama.pool) == Approx(62.99));

    auto const no = parse_startup_log(
        "[TRT-LLM] [E] RuntimeError: Executor creation failed due to insufficient GPU memory.\n"
        "The following component could not be created: Initial KV cache (temporary for KV cache size estimation)\n"
        "Total GPU memory (GiB): 139.81\n");
    CHECK(no.starts == false);
    CHECK(no.verdict == Verdict::no_kv_memory);
}

TEST_CASE("llama.cpp log of a partial offload", "[io][startup_log]") {
    auto const s = seen("llamacpp_qwen35_9b_vulkan_partial.log");
    CHECK(s.engine == EngineKind::llama_cpp);
    CHECK(s.model == "<drive>\\models\\chat\\qwen3.5-9b-ud-q4kxl.gguf");
    CHECK(s.gpu == "NVIDIA GeForce GTX 1070 Ti");
    CHECK(s.gpu_layers == 31);
    CHECK(s.all_layers == 33);
    CHECK(s.settings.ubatch == Tokens{2048});
    CHECK(s.settings.n_parallel == 4);
    CHECK(s.settings.kv_unified == true);
    CHECK(gib_of(s.weights) == Approx(4854.94 / 1024));
    CHECK(gib_of(s.host_weights) == Approx(824.31 / 1024));
    CHECK(gib_of(s.kv_allocated) == Approx(256.0 / 1024));
    CHECK(gib_of(s.state_bytes) == Approx(201.0 / 1024));
    CHECK(gib_of(s.compute_buffer) == Approx(447.38 / 1024));
    CHECK(s.state_slots == 4);
    CHECK(s.max_model_len == Tokens{8192});
    CHECK(s.starts == true);
}

TEST_CASE("llama.cpp log with a draft context: the draft's cache is not the target's", "[io][startup_log]") {
    auto const s = seen("llamacpp_qwen38_27b_mtp_vulkan.log");
    CHECK(gib_of(s.kv_allocated) == Approx(512.0 / 1024));
    CHECK(gib_of(s.state_bytes) == Approx(1795.5 / 1024));
    CHECK(gib_of(s.weights) == Approx(17680.46 / 1024));
    CHECK(s.max_model_len == Tokens{8192});
}

TEST_CASE("llama.cpp logs of Metal, of window caches and of colours that lost their escape", "[io][startup_log]") {
    auto const metal = seen("llamacpp_qwen35_9b_metal.log");
    CHECK(metal.gpu == "Apple M4 Pro");
    CHECK(metal.kv_tokens == Tokens{262144});
    CHECK(gib_of(metal.kv_allocated) == Approx(4.25));
    CHECK(metal.settings.kv_cache_dtype == "q8_0");
    CHECK(metal.settings.cache_type_v == "q8_0");
    CHECK(metal.settings.ubatch == Tokens{512});
    CHECK(gib_of(metal.compute_buffer) == Approx(832.60 / 1024));

    auto const gemma = seen("llamacpp_gemma4_e4b_iswa_vulkan.log");
    CHECK(gemma.kv_tokens == Tokens{65536});
    CHECK(gemma.swa_tokens == Tokens{1024});
    CHECK(gib_of(gemma.kv_allocated) == Approx(565.25 / 1024));
    CHECK(gib_of(gemma.requested) == Approx(3635.0 / 1024));

    auto const v4 = seen("llamacpp_dsv4_lost_escapes_issue27680.txt");
    CHECK(v4.kv_tokens == Tokens{64000});
    CHECK(v4.swa_tokens == Tokens{4352});
    CHECK(gib_of(v4.kv_allocated) == Approx(182.75 / 1024));
    CHECK(v4.settings.kv_cache_dtype == "bf16");
}

TEST_CASE("llama.cpp without memory for the cache", "[io][startup_log]") {
    auto const s = seen("llamacpp_kv_out_of_memory_vulkan.txt");
    CHECK(s.starts == false);
    CHECK(s.verdict == Verdict::no_kv_memory);
    CHECK(s.error == "failed to allocate buffer for kv cache");
}

TEST_CASE("a pasted command line gives the flags", "[io][startup_log]") {
    auto const s =
        parse_startup_log("$ vllm serve moonshotai/Kimi-K3 --tensor-parallel-size 16 \\\n"
                          "    --max-model-len=29696 --gpu-memory-utilization 0.97 \\\n"
                          "    --speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": 3}' --max-num-seqs 128\n");
    CHECK(s.model == "moonshotai/Kimi-K3");
    CHECK(s.tp == 16);
    CHECK(s.settings.max_model_len == Tokens{29696});
    CHECK(s.settings.gpu_memory_utilization == 0.97);
    CHECK(s.settings.max_num_seqs == Requests{128});
    CHECK(s.settings.speculative_tokens == 3);
    CHECK(s.settings.speculative_method == "mtp");

    auto const g = parse_startup_log("python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --dp 8 "
                                     "--enable-dp-attention --mem-fraction-static 0.85 --context-length 64k");
    CHECK(g.engine == EngineKind::sglang);
    CHECK(g.tp == 1); // each copy of attention holds one GPU
    CHECK(g.dp == 8);
    CHECK(g.settings.mem_fraction_static == 0.85);
    CHECK(g.settings.max_model_len == Tokens{64000});

    auto const l = parse_startup_log(
        "./llama-server -m qwen3.gguf -ngl 99 -c 32768 -ctk q8_0 -ctv q8_0 -np 2 -ub 1024 --n-cpu-moe 12 -ts 3,1");
    CHECK(l.engine == EngineKind::llama_cpp);
    CHECK(l.settings.n_gpu_layers == 99);
    CHECK(l.settings.n_cpu_moe == 12);
    CHECK(l.settings.kv_cache_dtype == "q8_0");
    CHECK(l.settings.tensor_split == std::vector<double>{3, 1});
}

TEST_CASE("a log of several starts describes the last one", "[io][startup_log]") {
    auto const s = parse_startup_log(log_text("vllm_0.23_no_kv_memory.log") + log_text("vllm_0.20_hybrid_nvfp4_gb10.log"));
    CHECK(s.starts_in_log == 2);
    CHECK(s.engine_version == "0.20.0");
    CHECK(s.model == "RedHatAI/Qwen3.6-35B-A3B-NVFP4");
    CHECK(gib_of(s.pool) == Approx(82.42));
    CHECK_FALSE(s.verdict.has_value());
    CHECK_FALSE(s.settings.max_num_seqs == Requests{0});
}

TEST_CASE("the description does not depend on how the bytes are cut into pieces", "[io][startup_log]") {
    for (char const* name :
         {"vllm_0.20_docker_prefix_wsl.log", "sglang_kimi_k25_tp8_mi355x.log", "llamacpp_qwen38_27b_mtp_vulkan.log"}) {
        std::string const text = log_text(name);
        auto const whole = parse_startup_log(text);
        for (std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
            StartupLogReader reader;
            for (std::size_t i = 0; i < text.size(); i += piece) reader.feed(std::string_view{text}.substr(i, piece));
            auto const s = reader.finish();
            CHECK(s.kv_tokens == whole.kv_tokens);
            CHECK(s.pool == whole.pool);
            CHECK(s.weights == whole.weights);
            CHECK(s.lines == whole.lines);
            CHECK(s.stage == whole.stage);
        }
    }
}

TEST_CASE("colours, other line ends and UTF-16 change nothing", "[io][startup_log]") {
    std::string const text = log_text("vllm_0.20_docker_prefix_wsl.log");
    std::string coloured, wide = "\xff\xfe";
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.compare(i, 11, "(EngineCore") == 0) coloured += "\x1b[1;36m";
        coloured += text[i];
        if (text.compare(i, 1, ")") == 0) coloured += "\x1b[0;0m";
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            wide += text[i];
            wide += '\0';
        }
    }
    auto const plain = parse_startup_log(text);
    for (std::string const& other : {coloured, wide}) {
        auto const s = parse_startup_log(other);
        CHECK(s.kv_tokens == plain.kv_tokens);
        CHECK(s.pool == plain.pool);
        CHECK(s.cuda_graph == plain.cuda_graph);
        CHECK(s.starts == plain.starts);
    }
}

TEST_CASE("a log cut anywhere is read without a fault, and a prefix never knows more than the whole", "[io][startup_log]") {
    for (char const* name : {"vllm_0.23_no_kv_memory.log", "sglang_granite_hybrid_16gb.log", "trtllm_deepseek_r1_fp8_h200.log",
                             "llamacpp_qwen35_9b_vulkan_partial.log", "vllm_length_refusal_broken_over_lines.txt"}) {
        std::string const text = log_text(name);
        StartStage last = StartStage::nothing;
        for (std::size_t n = 0; n <= text.size(); n += 13) {
            auto const s = parse_startup_log(std::string_view{text}.substr(0, n));
            CHECK(s.stage >= last);
            last = s.stage;
        }
    }
}

TEST_CASE("bytes that are no text, and a line without end, do no harm", "[io][startup_log]") {
    std::string noise;
    std::uint32_t x = 2463534242u;
    for (int i = 0; i < 200000; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        noise += static_cast<char>(x & 0xff);
    }
    auto const s = parse_startup_log(noise + "\n" + log_text("vllm_state_slots_refusal.txt"));
    CHECK(s.verdict == Verdict::state_slots_too_few);
    CHECK(parse_startup_log(std::string(3000000, 'x')).lines == 1);
    CHECK_FALSE(parse_startup_log("").engine.has_value());
    auto const bad =
        parse_startup_log("INFO non-default args: {'model': 'a\xff\xfe\xc3(b', 'max_num_seqs': 99999999999999999999999}\n");
    CHECK(bad.model == "a" + std::string(3, '?') + "(b");
    CHECK_FALSE(bad.settings.max_num_seqs.has_value());
}

TEST_CASE("a later working server overrides an error before it", "[io][startup_log]") {
    auto const s = parse_startup_log("llama_init_from_model: failed to allocate compute pp buffers\n"
                                     "main: server is listening on http://127.0.0.1:8080\n");
    CHECK(s.starts == true);
    CHECK(s.verdict == Verdict::starts);
    CHECK_FALSE(s.notes.empty());
}

TEST_CASE("out of memory means what the stage says", "[io][startup_log]") {
    std::string const head = "INFO non-default args: {'model': 'm'}\n";
    std::string const oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB.\n";
    CHECK(parse_startup_log(head + oom).verdict == Verdict::weights_do_not_fit);
    auto const later =
        parse_startup_log(head + "Model loading took 15.67 GiB memory and 2.9 seconds\nGPU KV cache size: 1,000 tokens\n" + oom);
    CHECK(later.starts == false);
    CHECK_FALSE(later.verdict.has_value());
}

TEST_CASE("reading a file that is not there or no log at all is an error with a hint", "[io][startup_log]") {
    auto const none = read_startup_log("/nonexistent/servecap.log");
    REQUIRE_FALSE(none.has_value());
    CHECK(none.error().code == ErrorCode::missing);
    auto const other = read_startup_log(std::string{SERVECAP_TEST_DATA} + "/logs/README.md");
    REQUIRE_FALSE(other.has_value());
    CHECK(other.error().code == ErrorCode::bad_format);
    auto const good = read_startup_log(std::string{SERVECAP_TEST_DATA} + "/logs/vllm_tp2_h200_summary.log");
    CHECK(good.has_value());
}

TEST_CASE("the phrase matcher finds what a search of each phrase finds", "[io][line_matcher]") {
    std::array<std::string_view, 6> const phrases{"he", "she", "his", "hers", "e", "shers"};
    LineMatcher const m{phrases};
    for (std::string_view text : {"ushers", "hishershe", "", "eeee", "sshhe"}) {
        std::vector<LineMatcher::Match> found;
        m.find(text, found);
        std::size_t expected = 0;
        for (std::size_t p = 0; p < phrases.size(); ++p)
            for (std::size_t at = text.find(phrases[p]); at != std::string_view::npos; at = text.find(phrases[p], at + 1)) {
                ++expected;
                CHECK(std::count_if(found.begin(), found.end(),
                                    [&](auto const& f) { return f.phrase == p && f.end == at + phrases[p].size(); }) == 1);
            }
        CHECK(found.size() == expected);
    }
}
