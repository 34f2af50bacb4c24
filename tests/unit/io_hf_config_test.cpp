// Models from Hugging Face configs: every card, the layer patterns, quantization blocks, refusals, bad input.
#include <catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/io/hf_config.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/memory/weights.hpp>

using namespace servecap;

namespace {

std::string card_text(std::string const& name) {
    auto text = detail::read_text_file(std::string{SERVECAP_DATA} + "/models/" + name + ".json", 16u << 20);
    REQUIRE(text);
    return *text;
}
Model card(std::string const& name) {
    auto m = model_from_config(card_text(name), name);
    if (!m) FAIL(to_line(m.error()));
    return *m;
}
std::vector<std::string> card_names() {
    std::vector<std::string> names;
    for (auto const& e : std::filesystem::directory_iterator(std::string{SERVECAP_DATA} + "/models")) names.push_back(e.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}
std::size_t count_of(Model const& m, std::string_view kind) {
    std::size_t n = 0;
    for (Layer const& l : m.layers)
        for (Mixer const& x : l.mixers) n += kind_name(x) == kind ? 1 : 0;
    return n;
}
std::string line_of(Result<Model> const& m) { return m ? std::string{"accepted"} : to_line(m.error()); }

/// A small valid config; `more` adds or replaces fields (the last comma is the caller's).
std::string small(std::string const& more, std::string const& arch = "LlamaForCausalLM") {
    return "{" + more + R"("architectures":[")" + arch +
           R"("],"model_type":"x","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":256,"max_position_embeddings":128})";
}

/// Where a card's own figure and the sum of the architecture's tensors differ, by how much (ours minus the
/// card's) and why.
struct KnownGap {
    double gap;
    char const* why;
};
std::map<std::string, std::map<std::string, KnownGap>> const kKnownGaps{
    {"ERNIE-4.5-300B-A47B-PT",
     {{"params_total_computed", {3264, "the card leaves out the correction bias of the routers (64 in 51 layers)"}},
      {"params_active_computed", {3264, "the same"}}}},
    {"GLM-4.5-Air",
     {{"params_total_computed", {-3616573568.0, "the card's total holds one MTP block"}},
      {"mtp_params_computed", {-1241513984.0, "the card's MTP block holds copies of embedding and head; engines share them"}}}},
    {"GLM-4.5",
     {{"params_total_computed", {-5539962272.0, "the card's total holds one MTP block"}},
      {"mtp_params_computed", {-1551892480.0, "the card's MTP block holds copies of embedding and head"}}}},
    {"GLM-4.7",
     {{"params_total_computed", {-5539962272.0, "the card's total holds one MTP block"}},
      {"mtp_params_computed", {-1551892480.0, "the card's MTP block holds copies of embedding and head"}}}},
    {"GLM-5.3-Flash", {{"mtp_params_computed", {7432067616.0, "the config names one MTP layer; the card counts none"}}}},
    {"Ling-3.0-flash", {{"mtp_params_computed", {3072112128.0, "the config names one MTP layer (3.1B published); the card counts none"}}}},
    {"Ling-3.0-flash-base", {{"mtp_params_computed", {3072112128.0, "the same"}}}},
    {"Ling-3.0-flash-Fin", {{"mtp_params_computed", {3072112128.0, "the same"}}}},
    {"Ling-3.0-tiny",
     {{"params_total_computed", {-34272, "the card's KDA count is an estimate: 1,904 values a layer, a norm over all heads and no A_log"}},
      {"mtp_params_computed", {1536, "the card counts two norms of the MTP block, the block has three"}}}},
    {"MiMo-V2-Flash", {{"mtp_params_computed", {987820224.0, "three MTP layers are in the checkpoint (byte inventory); the card counts none"}}}},
    {"MiMo-V2.5", {{"mtp_params_computed", {987820224.0, "the same"}}}},
    {"MiMo-V2.6-Flash-MOPD", {{"mtp_params_computed", {987820224.0, "the same"}}}},
    {"MiMo-V2.6-Flash-RL", {{"mtp_params_computed", {987820224.0, "the same"}}}},
    {"MiMo-V2.6-Pro-RL", {{"mtp_params_computed", {1934715264.0, "the same: equals the inventory's draft_dense"}}}},
    {"Ring-2.6-1T", {{"mtp_params_computed", {13183265024.0, "the config names one MTP layer; the card counts none"}}}},
    {"Step-3.7-Flash", {{"mtp_params_computed", {844296960.0, "the config names three MTP layers; the card counts none"}}}},
    {"Zamba2-2.7B",
     {{"params_total_computed", {-10240, "the norm before the FFN is hidden-wide (Zamba2AttentionDecoderLayer); the card has 5,120 more a block"}}}},
    {"Qwen2.5-VL-7B-Instruct", {{"params_total_computed", {-676550144.0, "the card's total holds the tower"}}}},
    {"Qwen2.5-VL-32B-Instruct", {{"params_total_computed", {-688841984.0, "the card's total holds the tower"}}}},
    {"Qwen3-VL-2B-Instruct", {{"params_total_computed", {-406957056.0, "the card's total holds the tower"}}}},
    {"gemma-3-4b-it", {{"params_total_computed", {-419816304.0, "the card's total holds the tower"}}}},
    {"gemma-3-12b-it", {{"params_total_computed", {-421290864.0, "the card's total holds the tower"}}}},
    {"granite-vision-3.3-2b", {{"params_total_computed", {-426622832.0, "the card's total holds the tower"}}}},
    {"Qwen3.8-Flash-Next",
     {{"params_total_computed", {-51157893120.0, "the card's total holds the n-gram table (51,200,245,760) and estimates the gated residuals"}},
      {"params_body_computed", {42352640.0, "the card estimates the gated residuals (under 0.1 %)"}}}},
};

} // namespace

TEST_CASE("every card is read, and its figures are the sums of its tensors", "[io][cards]") {
    auto const names = card_names();
    REQUIRE(names.size() >= 200);
    for (std::string const& name : names) {
        INFO(name);
        auto const m = model_from_config(card_text(name), name);
        if (!m) {
            FAIL_CHECK(to_line(m.error()));
            continue;
        }
        CHECK(!m->id.empty());
        CHECK(!m->source.empty());
        CHECK(!m->confidence.empty());
        CHECK(m->max_context.value() >= 2048);
        for (Layer const& l : m->layers) CHECK((!l.mixers.empty() || l.ffn));
        auto const gaps = kKnownGaps.find(name);
        std::map<std::string, std::int64_t> const ours{
            {"params_total_computed", total_params(*m).value()},
            {"params_text", total_params(*m).value()},
            {"params_body_computed", total_params(*m).value()},
            {"params_active_computed", active_params(*m).value()},
            {"params_active_with_embedding", active_params(*m).value()},
            {"params_active_without_input_embedding", active_params(*m, false).value()},
            {"params_routed", class_params(*m, TensorClass::routed_expert).value()},
            {"params_ngram_table", class_params(*m, TensorClass::lookup).value()},
            {"params_engram", class_params(*m, TensorClass::lookup).value()},
            {"mtp_params_computed", class_params(*m, TensorClass::mtp).value()},
            {"safetensors_payload_bytes", stored_bytes(*m).total.value()},
            {"bytes_routed", stored_bytes(*m)[TensorClass::routed_expert].value()},
            {"bytes_routed_experts", stored_bytes(*m)[TensorClass::routed_expert].value()},
            {"bytes_embed", stored_bytes(*m)[TensorClass::embedding].value()},
            {"bytes_lm_head", stored_bytes(*m)[TensorClass::lm_head].value()},
            {"bytes_engram_tables", stored_bytes(*m)[TensorClass::lookup].value()},
        };
        for (CardCheck const& c : m->checks) {
            auto const have = ours.find(c.name);
            if (have == ours.end()) continue;
            double expected = 0;
            if (gaps != kKnownGaps.end())
                if (auto const g = gaps->second.find(c.name); g != gaps->second.end()) expected = g->second.gap;
            INFO(c.name << ": card " << static_cast<std::int64_t>(c.value) << ", sum of tensors " << have->second);
            CHECK(static_cast<double>(have->second) - c.value == expected);
        }
    }
}

TEST_CASE("a card's total that holds its tower equals trunk and tower", "[io][cards]") {
    for (char const* name : {"Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-32B-Instruct", "Qwen3-VL-2B-Instruct", "gemma-3-4b-it", "gemma-3-12b-it",
                             "granite-vision-3.3-2b"}) {
        INFO(name);
        Model const m = card(name);
        double total = 0;
        for (CardCheck const& c : m.checks)
            if (c.name == "params_total_computed") total = c.value;
        CHECK(static_cast<double>((total_params(m) + class_params(m, TensorClass::vision)).value()) == total);
    }
    // Mistral Small 3.1: 24,011,361,280 published with the tower (model page).
    Model const m = card("Mistral-Small-3.1-24B-Instruct-2503");
    CHECK((total_params(m) + class_params(m, TensorClass::vision)).value() == 24011361280);
    // Qwen3.5-0.8B: 873.4M published, with the tower and the MTP layer.
    Model const q = card("Qwen3.5-0.8B");
    double const all = static_cast<double>((total_params(q) + class_params(q, TensorClass::vision) + class_params(q, TensorClass::mtp)).value());
    CHECK(std::fabs(all / 873.4e6 - 1) < 1e-4);
    // Kimi K2 Thinking: 594 GB published.
    CHECK(std::fabs(in_gb(stored_bytes(card("Kimi-K2-Thinking")).total) - 594.0) < 0.5);
    // GLM-5.3-Flash: 305.79 GiB of files in a start-up log.
    CHECK(std::fabs(in_gib(stored_bytes(card("GLM-5.3-Flash")).total) / 305.79 - 1) < 0.001);
}

TEST_CASE("parts of the cards: experts, embeddings, dense layers", "[io][cards]") {
    for (std::string const& name : card_names()) {
        auto const json = parse_json(card_text(name), name);
        REQUIRE(json);
        Json const* checks = find_member(*json, "_checks");
        Json const* parts = checks == nullptr ? nullptr : find_member(*checks, "param_parts");
        if (parts == nullptr) continue;
        INFO(name);
        Model const m = card(name);
        auto const part = [&](char const* key) -> std::optional<std::int64_t> {
            Json const* v = find_member(*parts, key);
            return v == nullptr ? std::nullopt : json_integer(*v);
        };
        if (auto const n = part("routed")) {
            INFO("routed");
            std::int64_t matrices = 0; // the cards count no biases of experts (gpt-oss)
            for (WeightTensor const& t : weight_tensors(m))
                if (t.cls == TensorClass::routed_expert && t.cols > 1) matrices += params_of(t).value();
            CHECK(matrices == *n);
        }
        if (auto const n = part("embed")) {
            INFO("embed");
            auto const both = class_params(m, TensorClass::embedding) + class_params(m, TensorClass::lm_head);
            CHECK(both.value() == *n);
        }
        if (auto const n = part("dense_ffn"); n && name != "LongCat-Flash-Chat") {
            INFO("dense_ffn");
            CHECK(class_params(m, TensorClass::dense_ffn).value() == *n);
        }
    }
}

TEST_CASE("layer patterns of hybrids and windows", "[io][config]") {
    Model const k3 = card("Kimi-K3");
    CHECK(count_of(k3, "kda") == 69);
    CHECK(count_of(k3, "mla") == 24);
    CHECK(kind_name(k3.layers[3].mixers[0]) == "mla"); // listed as layer 4, counted from 1
    CHECK(kind_name(k3.layers[91].mixers[0]) == "mla");
    CHECK(kind_name(k3.layers[92].mixers[0]) == "mla");
    CHECK(std::holds_alternative<Dense>(*k3.layers[0].ffn));
    CHECK(std::get<Moe>(*k3.layers[1].ffn).latent == 3584);

    Model const glm = card("GLM-5.3-Flash"); // counted from 0
    CHECK(count_of(glm, "kda") == 34);
    CHECK(count_of(glm, "sparse-indexed") == 11);
    CHECK(kind_name(glm.layers[0].mixers[0]) == "kda");
    CHECK(std::get<SparseIndexed>(glm.layers[3].mixers[0]).indexer.key_pool == 4);

    Model const gemma = card("gemma-2-9b-it"); // even layers slide
    CHECK(count_of(gemma, "sliding-window") == 21);
    CHECK(kind_name(gemma.layers[0].mixers[0]) == "sliding-window");
    CHECK(kind_name(gemma.layers[1].mixers[0]) == "gqa");
    CHECK(count_of(card("gemma-3-12b-it"), "gqa") == 8);

    Model const llama = card("Llama-4-Scout-17B-16E"); // every fourth layer is global
    CHECK(count_of(llama, "chunked-local") == 36);
    CHECK(kind_name(llama.layers[3].mixers[0]) == "gqa");

    Model const jamba = card("Jamba-1.5-Large");
    CHECK(count_of(jamba, "gqa") == 9);
    CHECK(kind_name(jamba.layers[4].mixers[0]) == "gqa");
    CHECK(std::holds_alternative<Moe>(*jamba.layers[1].ffn));

    Model const v4 = card("DeepSeek-V4-Flash");
    int window_only = 0, indexed = 0, heavy = 0;
    for (Layer const& l : v4.layers) {
        auto const& a = std::get<Compressed>(l.mixers[0]);
        (a.ratio == 0 ? window_only : a.ratio == 4 ? indexed : heavy)++;
        CHECK(a.indexer.has_value() == (a.ratio == 4));
    }
    CHECK(window_only == 2);
    CHECK(indexed == 21);
    CHECK(heavy == 20);

    Model const v41 = card("DeepSeek-V4.1-Flash");
    std::set<std::size_t> sources;
    for (std::size_t i = 0; i < v41.layers.size(); ++i)
        if (std::get<Compressed>(v41.layers[i].mixers[0]).kv_source) sources.insert(i);
    CHECK(sources == std::set<std::size_t>{2, 8, 14, 20});

    Model const glm52 = card("GLM-5.2");
    int own = 0;
    for (Layer const& l : glm52.layers) own += std::get<SparseIndexed>(l.mixers[0]).indexer.owns_keys ? 1 : 0;
    CHECK(own == 21);

    Model const e2b = card("gemma-4-E2B-it");
    int with_kv = 0;
    for (Layer const& l : e2b.layers) {
        if (auto const* w = std::get_if<SlidingWindow>(&l.mixers[0])) with_kv += w->attn.reuses_kv ? 0 : 1;
        if (auto const* g = std::get_if<Gqa>(&l.mixers[0])) with_kv += g->reuses_kv ? 0 : 1;
    }
    CHECK(with_kv == 15);

    Model const ring = card("Ring-2.5-1T");
    CHECK(count_of(ring, "lightning") == 70);
    CHECK(count_of(ring, "mla") == 10);
    CHECK(count_of(card("Ling-3.0-flash"), "kda") == 35);
    CHECK(count_of(card("MiniMax-Text-01"), "lightning") == 70);
    CHECK(count_of(card("MiniMax-M3"), "sparse-indexed") == 57);
    CHECK(count_of(card("Falcon-H1-34B-Instruct"), "mamba2") == 72);
    CHECK(count_of(card("Falcon-H1-34B-Instruct"), "gqa") == 72);
    CHECK(count_of(card("Nemotron-3-Super-120B-A12B"), "mamba2") == 40);
    CHECK(count_of(card("Zamba2-2.7B"), "gqa") == 9);
    CHECK(count_of(card("LongCat-Flash-Chat"), "mla") == 56);
    CHECK(count_of(card("Qwen3.8-27B"), "gated-delta") == 48);
    CHECK(count_of(card("MiMo-V2-Flash"), "sliding-window") == 39);
    CHECK(count_of(card("gpt-oss-120b"), "sliding-window") == 18);
}

TEST_CASE("quantization blocks", "[io][config]") {
    auto const of = [](Model const& m, TensorClass c) { return m.quant[c].format; };
    Model const k3 = card("Kimi-K3");
    CHECK(k3.quant.label == "mxfp4");
    CHECK(of(k3, TensorClass::routed_expert) == Format::mxfp4);
    CHECK(of(k3, TensorClass::shared_expert) == Format::bf16);
    CHECK(of(k3, TensorClass::dense_ffn) == Format::bf16);
    CHECK(of(k3, TensorClass::linear_attention) == Format::bf16);

    Model const k25 = card("Kimi-K2.5");
    CHECK(k25.quant.label == "int4");
    CHECK(k25.quant[TensorClass::routed_expert] == WeightFormat{.format = Format::int4_sym, .group = 32});
    CHECK(of(k25, TensorClass::attention) == Format::bf16);

    Model const k26 = card("Kimi-K2.6-NVFP4");
    CHECK(k26.quant.label == "nvfp4");
    CHECK(of(k26, TensorClass::shared_expert) == Format::bf16);
    CHECK(k26.kv_dtype_hint == "fp8");

    Model const r1 = card("DeepSeek-R1");
    CHECK(r1.quant[TensorClass::attention] == WeightFormat{.format = Format::fp8_block});
    CHECK(of(r1, TensorClass::lm_head) == Format::bf16);
    CHECK(r1.quant.mtp_as_trunk);

    Model const v41 = card("DeepSeek-V4.1-Flash");
    CHECK(v41.quant.label == "fp8+mxfp4");
    CHECK(v41.quant[TensorClass::shared_expert] ==
          WeightFormat{.format = Format::fp8_block, .block_rows = 32, .block_cols = 32, .scale_bytes = 1});

    Model const mixed = card("Qwen3.6-27B-NVFP4");
    CHECK(of(mixed, TensorClass::linear_attention) == Format::fp8);
    CHECK(of(mixed, TensorClass::dense_ffn) == Format::nvfp4);
    CHECK(of(mixed, TensorClass::lm_head) == Format::nvfp4);
    CHECK(mixed.kv_dtype_hint == "fp8");

    Model const gemma = card("Gemma-4-31B-IT-NVFP4");
    CHECK(of(gemma, TensorClass::attention) == Format::bf16);
    CHECK(of(gemma, TensorClass::dense_ffn) == Format::nvfp4);

    Model const oss = card("gpt-oss-120b");
    CHECK(of(oss, TensorClass::routed_expert) == Format::mxfp4);
    CHECK(of(oss, TensorClass::attention) == Format::bf16);
    CHECK(of(card("MiniMax-M2.5"), TensorClass::routed_expert) == Format::fp8_block); // the ignored "gate" is the router alone
    CHECK(of(card("Ring-2.5-1T"), TensorClass::attention) == Format::fp8_row);

    // The KDA layers of GLM-5.3-Flash stay in bf16, its latent attention does not.
    Model const glm = card("GLM-5.3-Flash");
    CHECK(of(glm, TensorClass::linear_attention) == Format::bf16);
    CHECK(of(glm, TensorClass::attention) == Format::fp8_block);
}

TEST_CASE("quantization: one layer kept out, groups by name, methods by name", "[io][config]") {
    auto const m = model_from_config(small(R"("quantization_config":{"quant_method":"compressed-tensors","ignore":["model.layers.1.self_attn.o_proj"],
        "config_groups":{"g":{"targets":["Linear"],"weights":{"num_bits":8,"type":"float","strategy":"channel"}}}},)"),
                                     "x");
    REQUIRE(m);
    REQUIRE(m->quant.exceptions.size() == 1);
    CHECK(m->quant.exceptions[0].layer + 0 <= 1);
    CHECK(m->quant.label == "fp8");

    auto const quant = [](std::string const& block) { return model_from_config(small("\"quantization_config\":{" + block + "},"), "x"); };
    auto const format = [&](std::string const& block) {
        auto const made = quant(block);
        return made ? std::string{to_string(made->quant[TensorClass::dense_ffn].format)} : to_line(made.error());
    };
    CHECK(format(R"("quant_method":"awq","bits":4,"group_size":128)") == "int4");
    CHECK(format(R"("quant_method":"gptq","bits":4,"group_size":64,"desc_act":false)") == "int4");
    CHECK(quant(R"("quant_method":"gptq","bits":4,"group_size":64)")->quant[TensorClass::dense_ffn].group == 64);
    CHECK(format(R"("quant_method":"gptq","bits":8)") == "int8");
    CHECK(format(R"("quant_method":"bitsandbytes","load_in_4bit":true)") == "nf4");
    CHECK(format(R"("quant_method":"fp8")") == "fp8");
    CHECK(format(R"("quant_method":"modelopt","quant_algo":"NVFP4","kv_cache_quant_algo":"FP8")") == "nvfp4");
    CHECK(format(R"("quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp4","group_size":32}})") == "mxfp4");
    CHECK(format(R"("quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{"model.layers.*.mlp.down_proj":{"quant_algo":"FP8"}})") ==
          "fp8");
    CHECK(format(R"("quant_method":"compressed-tensors","format":"mxfp4-pack-quantized","config_groups":{"g":{"targets":["Linear"],"weights":{"num_bits":4,"type":"float","group_size":32}}})") ==
          "mxfp4");
    CHECK(format(R"("quant_method":"hqq")").find("'hqq' is not modelled") != std::string::npos);
    CHECK(format(R"("quant_method":"gptq","bits":3)").find("3-bit gptq is not modelled") != std::string::npos);
    CHECK(format(R"("quant_method":7)").find("quant_method: 7 is not usable") != std::string::npos);
    CHECK(format(R"x("quant_method":"fp8","ignored_layers":["re:(?<x>a)"])x").find("the expression") != std::string::npos);
    CHECK(format(R"("quant_method":"fp8","ignored_layers":"lm_head")").find("expected a list of module names") != std::string::npos);
}

TEST_CASE("the small regular expressions of ignore lists", "[io][config]") {
    struct Row {
        char const* pattern;
        char const* text;
        bool match;
    };
    for (Row const& r : {Row{".*self_attn.*", "model.layers.3.self_attn.q_proj", true},
                         {".*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.3.mlp.up_proj", true},
                         {".*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.3.mlp.experts.0.up_proj", false},
                         {"model\\.layers\\.\\d+\\.mlp\\.gate$", "model.layers.33.mlp.gate", true},
                         {"model\\.layers\\.\\d+\\.mlp\\.gate$", "model.layers.33.mlp.gate_proj", false},
                         {"a|b|cd", "cd", true},
                         {"(a|b)+c$", "abac", true},
                         {"^a?b*[c-e]", "abbe", true},
                         {"^b*[^a-e]", "bbbe", false},
                         {"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false}}) { // no explosion
        INFO(r.pattern << " on " << r.text);
        auto const made = detail::MiniRegex::parse(r.pattern);
        REQUIRE(made);
        CHECK(made->match(r.text) == r.match);
    }
    for (char const* bad : {"(", "a)", "[a", "*a", "(?<x>a)", "\\", "\\b"}) CHECK(!detail::MiniRegex::parse(bad));
    CHECK(detail::glob_match("model.layers.*.mlp.gate", "model.layers.12.mlp.gate"));
    CHECK(!detail::glob_match("model.layers.*.mlp.gate", "model.layers.12.mlp.gate_proj"));
}

TEST_CASE("an architecture that is not known is refused by name", "[io][config][errors]") {
    auto const m = model_from_config(small("", "Lama5ForCausalLM"), "their/config.json");
    REQUIRE(!m);
    CHECK(m.error().code == ErrorCode::unsupported);
    CHECK(m.error().message.find("'Lama5ForCausalLM'") != std::string::npos);
    CHECK(m.error().hint.find("LlamaForCausalLM") != std::string::npos);
    CHECK(m.error().hint.find("--assume gqa") != std::string::npos);
    CHECK(m.error().where == "their/config.json");

    auto const assumed = model_from_config(small("", "Lama5ForCausalLM"), "x", {.assume_gqa = true});
    REQUIRE(assumed);
    CHECK(assumed->is_inferred());
    CHECK(assumed->inferred.back().find("assumed") != std::string::npos);

    // A layer kind that is not known, in a known architecture.
    auto const kind = model_from_config(small(R"("layer_types":["full_attention","hyena"],)"), "x");
    REQUIRE(!kind);
    CHECK(kind.error().code == ErrorCode::unsupported);
    CHECK(kind.error().message.find("'hyena'") != std::string::npos);
}

TEST_CASE("configs without an architecture are read by model_type; wrappers by their text part", "[io][config]") {
    auto const m = model_from_config(R"({"model_type":"qwen3","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,
        "num_attention_heads":4,"head_dim":16,"vocab_size":256,"max_position_embeddings":128})",
                                     "x");
    REQUIRE(m);
    CHECK(m->architecture == "Qwen3ForCausalLM");
    auto const w = model_from_config(R"({"architectures":["LlavaForConditionalGeneration"],"text_config":{"model_type":"mistral","hidden_size":64,
        "intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":256,"max_position_embeddings":128}})",
                                     "x");
    REQUIRE(w);
    CHECK(w->layers.size() == 2);
    // YaRN stretches the original length.
    auto const yarn = model_from_config(small(R"("rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768},)"), "x");
    REQUIRE(yarn);
    CHECK(yarn->max_context == Tokens{131072});
}

TEST_CASE("bad configs give one clear line and never a model", "[io][config][errors]") {
    struct Row {
        std::string text;
        char const* says;
    };
    std::string deep = "{\"a\":";
    for (int i = 0; i < 5000; ++i) deep += "[";
    std::vector<Row> const rows{
        {"", "ends too early"},
        {"[1,2]", "the file holds array"},
        {"{\"architectures\":", "ends too early"},
        {"{\"a\":1} trailing", "not JSON at"},
        {deep, "nested deeper than 48"},
        {R"({"hidden_size":1,"hidden_size":2})", "occurs twice"},
        {R"({"hidden_size":64})", "architectures: the field is missing"},
        {small(R"("num_key_value_heads":-2,)"), "num_key_value_heads: -2 is not usable"},
        {small(R"("num_key_value_heads":8,)"), "more than the query heads"},
        {small(R"("head_dim":"big",)"), "head_dim: \"big\" is not usable"},
        {small(R"("head_dim":1e300,)"), "head_dim: 1e+300 is not usable"},
        {small(R"("head_dim":99999999999999999999,)"), "is not usable"},
        {small(R"("head_dim":16.5,)"), "head_dim: 16.5 is not usable"},
        {small(R"("tie_word_embeddings":"yes",)"), "expected true or false"},
        {small(R"("layer_types":["full_attention"],)"), "layer_types: 1 entries"},
        {small(R"("layer_types":["sliding_attention","full_attention"],)"), "sliding_window: the field is missing"},
        {small(R"("layer_types":[1,2],)"), "expected text"},
        {small(R"("quantization_config":{"quant_method":"fp8","weight_block_size":[0,128]},)"), "weight_block_size"},
        {R"({"architectures":["MixtralForCausalLM"],"hidden_size":4194304,"intermediate_size":4194304,"num_hidden_layers":2048,"num_attention_heads":4,
            "num_local_experts":131072,"num_experts_per_tok":1,"vocab_size":268435456,"max_position_embeddings":8})",
         "63 bits"},
        {R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,"intermediate_size":1,"num_hidden_layers":1000000,"num_attention_heads":4,
            "vocab_size":8,"max_position_embeddings":8})",
         "num_hidden_layers: 1000000 is not usable"},
        {R"({"architectures":["LlamaForCausalLM"],"hidden_size":65,"intermediate_size":1,"num_hidden_layers":1,"num_attention_heads":4,
            "vocab_size":8,"max_position_embeddings":8})",
         "do not divide"},
        {R"({"architectures":["NemotronHForCausalLM"],"hybrid_override_pattern":"M*Q","hidden_size":64,"intermediate_size":8,"num_attention_heads":4,
            "vocab_size":8,"max_position_embeddings":8,"mamba_num_heads":4,"mamba_head_dim":16})",
         "the letter 'Q'"},
        {R"({"architectures":["DeepseekV4ForCausalLM"],"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"head_dim":16,"qk_rope_head_dim":4,
            "q_lora_rank":8,"o_lora_rank":8,"o_groups":2,"compress_ratios":[0,7],"n_routed_experts":4,"num_experts_per_tok":1,
            "moe_intermediate_size":8,"index_n_heads":2,"index_head_dim":8,"index_topk":2,"vocab_size":8,"max_position_embeddings":8})",
         "the ratio 7"},
        {R"({"architectures":["MixtralForCausalLM"],"hidden_size":64,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":4,
            "num_local_experts":4,"num_experts_per_tok":9,"vocab_size":8,"max_position_embeddings":8})",
         "9 of 4 experts"},
    };
    for (Row const& r : rows) {
        auto const m = model_from_config(r.text, "bad.json");
        INFO(r.text.substr(0, 200));
        INFO(line_of(m));
        REQUIRE(!m);
        CHECK(to_line(m.error()).find(r.says) != std::string::npos);
        CHECK(to_line(m.error()).find('\n') == std::string::npos);
    }
}

TEST_CASE("a card cut anywhere, or with a byte changed, gives a model or an error", "[io][config][errors]") {
    for (char const* name : {"Kimi-K3", "DeepSeek-V4.1-Flash", "Qwen3.6-35B-A3B-NVFP4", "gemma-4-E2B-it"}) {
        std::string const text = card_text(name);
        for (std::size_t n = 0; n < text.size(); n += 97) {
            auto const m = model_from_config(std::string_view{text}.substr(0, n), "cut");
            CHECK(!m);
        }
        std::string changed = text;
        int models = 0;
        for (std::size_t n = 5; n < text.size(); n += 131) {
            char const was = changed[n];
            for (char const c : {'9', '-', '"', '}', '\0'}) {
                changed[n] = c;
                auto const m = model_from_config(changed, "changed");
                if (m) {
                    ++models;
                    CHECK(total_params(*m).value() >= 0);
                } else {
                    CHECK(!m.error().message.empty());
                }
            }
            changed[n] = was;
        }
        CHECK(models > 0);
    }
}

TEST_CASE("models by name: aliases, short names, ids, refusals", "[io][store]") {
    struct Row {
        char const* asked;
        char const* name;
    };
    for (Row const& r : {Row{"kimi-k3.1", "Kimi-K3.1-Pro"}, {"k3", "Kimi-K3"}, {"k3.1", "Kimi-K3.1-Pro"}, {"Kimi_K3.1", "Kimi-K3.1-Pro"},
                         {"moonshotai/Kimi-K3", "Kimi-K3"}, {"deepseek-v4.1-flash", "DeepSeek-V4.1-Flash"}, {"v4.1-1017", "DeepSeek-V4.1-Flash-1017"},
                         {"llama-3.3-70b", "Llama-3.3-70B-Instruct"}, {"llama3.1-8b", "Llama-3.1-8B"}, {"qwen3.6-27b", "Qwen3.6-27B"},
                         {"glm-5.3-flash", "GLM-5.3-Flash"}, {"glm5", "GLM-5"}, {"gpt-oss-120b", "gpt-oss-120b"}, {"r1", "DeepSeek-R1"},
                         {"DeepSeek R1", "DeepSeek-R1"}, {"kimi-k2.5", "Kimi-K2.5"}, {"v3.2", "DeepSeek-V3.2"},
                         {"qwen3-coder-480b", "Qwen3-Coder-480B-A35B-Instruct"}, {"nvidia/NVIDIA-Nemotron-Nano-9B-v2", "Nemotron-Nano-9B-v2"}}) {
        INFO(r.asked);
        auto const found = find_model_name(r.asked);
        REQUIRE(found);
        CHECK(*found == r.name);
        auto const m = load_model(r.asked);
        REQUIRE(m);
        CHECK(m->name == r.name);
        CHECK(m->id.find('/') != std::string::npos);
    }
    auto const unknown = load_model("kimi-k33");
    REQUIRE(!unknown);
    CHECK(unknown.error().code == ErrorCode::unknown_name);
    CHECK(unknown.error().hint.find("Kimi-K3") != std::string::npos);
    auto const several = load_model("gemma-4");
    REQUIRE(!several);
    CHECK(several.error().message.find("may be several models") != std::string::npos);
    CHECK(!load_model(""));
    CHECK(!load_model("no/such/config.json"));
    CHECK(load_model("no/such/config.json").error().code == ErrorCode::missing);
    CHECK(load_model("k3", {.assume = "mla"}).error().code == ErrorCode::bad_value);
    auto const names = list_models();
    CHECK(names.size() >= 166);
    CHECK(std::is_sorted(names.begin(), names.end(), [](auto const& a, auto const& b) { return to_lower(a) < to_lower(b); }));

    // A path to a config, and a data folder of one's own.
    auto const by_path = load_model(std::string{SERVECAP_DATA} + "/models/Qwen3-8B.json");
    REQUIRE(by_path);
    CHECK(by_path->name.empty());
    auto const own = load_model("qwen3-8b", {.data_dirs = {SERVECAP_DATA}});
    REQUIRE(own);
    CHECK(own->name == "Qwen3-8B");
    CHECK(list_models({.data_dirs = {SERVECAP_DATA}}).size() == names.size());
}

TEST_CASE("every alias of names.csv leads to a card", "[io][store]") {
    auto const text = find_embedded("names.csv");
    REQUIRE(text);
    std::string_view rest = *text;
    int seen = 0;
    while (!rest.empty()) {
        auto const end = std::min(rest.find('\n'), rest.size());
        std::string_view const line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        std::string_view cell[3];
        if (!line.starts_with("model,") || !detail::three_cells(line, cell)) continue;
        INFO(std::string{line});
        auto const found = find_model_name(cell[1]);
        CHECK(found);
        if (found) CHECK(*found == cell[2]);
        ++seen;
    }
    CHECK(seen > 300);
}

TEST_CASE("a quantized card is its base with other formats", "[io][cards]") {
    for (auto const& [made, base] : std::vector<std::pair<char const*, char const*>>{{"Qwen3-32B-FP8", "Qwen3-32B"},
                                                                                     {"Qwen3-30B-A3B-FP8", "Qwen3-30B-A3B"},
                                                                                     {"Qwen3-235B-A22B-FP8", "Qwen3-235B-A22B"},
                                                                                     {"Qwen3-235B-A22B-NVFP4", "Qwen3-235B-A22B"},
                                                                                     {"Qwen3-VL-32B-Thinking", "Qwen3-VL-32B-Instruct"},
                                                                                     {"Llama-3.1-70B-Instruct-FP8", "Llama-3.1-70B"},
                                                                                     {"DeepSeek-V3.1-NVFP4", "DeepSeek-V3"},
                                                                                     {"DeepSeek-V3.2-NVFP4", "DeepSeek-V3.2"},
                                                                                     {"DeepSeek-V4-Flash-NVFP4", "DeepSeek-V4-Flash"},
                                                                                     {"DeepSeek-V4-Pro-NVFP4", "DeepSeek-V4-Pro"},
                                                                                     {"DeepSeek-V4.1-Flash-NVFP4", "DeepSeek-V4.1-Flash"},
                                                                                     {"GLM-5-FP8", "GLM-5"},
                                                                                     {"GLM-5-NVFP4", "GLM-5"},
                                                                                     {"GLM-5.1-FP8", "GLM-5.1"},
                                                                                     {"GLM-5.1-NVFP4", "GLM-5.1"},
                                                                                     {"GLM-5.2-NVFP4", "GLM-5.2"},
                                                                                     {"Kimi-K2.5-NVFP4", "Kimi-K2.5"},
                                                                                     {"MiniMax-M2.5-NVFP4", "MiniMax-M2.5"},
                                                                                     {"MiniMax-M2.7-NVFP4", "MiniMax-M2.7"},
                                                                                     {"MiniMax-M3-NVFP4", "MiniMax-M3"},
                                                                                     {"Gemma-4-26B-A4B-NVFP4", "Gemma-4-26B-A4B"},
                                                                                     {"Qwen3.5-122B-A10B-NVFP4", "Qwen3.5-122B-A10B"},
                                                                                     {"Qwen3.5-397B-A17B-NVFP4", "Qwen3.5-397B-A17B"},
                                                                                     {"Step-3.7-Flash-FP8", "Step-3.7-Flash"},
                                                                                     {"Nemotron-3-Super-120B-A12B-NVFP4", "Nemotron-3-Super-120B-A12B"},
                                                                                     {"Nemotron-3-Super-120B-A12B-FP8", "Nemotron-3-Super-120B-A12B"},
                                                                                     {"Nemotron-3-Ultra-550B-A55B-NVFP4", "Nemotron-3-Ultra-550B-A55B-BF16"},
                                                                                     {"Nemotron-3-Ultra-550B-A55B-FP8", "Nemotron-3-Ultra-550B-A55B-BF16"},
                                                                                     {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "Nemotron-3-Nano-30B-A3B-BF16"}}) {
        INFO(made);
        Model const q = card(made), b = card(base);
        CHECK(total_params(q) == total_params(b));
        CHECK(active_params(q) == active_params(b));
        CHECK(q.layers.size() == b.layers.size());
        CHECK(q.max_context.value() > 0);
        if (std::string_view{made}.ends_with("FP8")) CHECK(q.quant.label == "fp8");
        if (std::string_view{made}.ends_with("NVFP4")) CHECK(q.quant[TensorClass::routed_expert].format == Format::nvfp4);
    }
}

TEST_CASE("published sizes of quantized checkpoints", "[io][cards]") {
    // On disk, so with headers and tokenizer: a little more than the tensors.
    auto const within = [](char const* name, double bytes, double tolerance) {
        INFO(name);
        double const have = static_cast<double>(stored_bytes(card(name)).total.value());
        CHECK(have <= bytes * (1 + 1e-9));
        CHECK(have >= bytes * (1 - tolerance));
    };
    within("NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", 19342796720.0, 0.001);
    within("Nemotron-3-Ultra-550B-A55B-NVFP4", 352.35e9, 0.0015); // "352.3 GB"
    within("Nemotron-3.5-Lightning-30B-A3B-NVFP4", 22.5e9, 0.05);  // "22 GB"
}

TEST_CASE("quantization: projections of latent attention that the list names apart", "[io][quant]") {
    Model const m = card("DeepSeek-V3.1-NVFP4"); // q_a, q_b, kv_a, kv_b stay; o_proj is quantized
    CHECK(m.quant[TensorClass::attention].format == Format::bf16);
    REQUIRE(m.quant.mla_out);
    CHECK(m.quant.mla_out->format == Format::nvfp4);
    CHECK_FALSE(m.quant.mla_kv_b);
    int seen = 0;
    for (WeightTensor const& t : weight_tensors(m))
        if (t.layer == 5 && t.name == "o_proj") seen += t.format.format == Format::nvfp4 ? 1 : 100;
    CHECK(seen == 1);
    CHECK_FALSE(card("DeepSeek-V3").quant.mla_out);
    auto const plain = load_as(m, "bf16");
    REQUIRE(plain);
    CHECK_FALSE(plain->quant.mla_out);
}

TEST_CASE("Nemotron NAS: layers with their own heads and widths, or without a part", "[io]") {
    Model const m = card("Llama-3.3-Nemotron-Super-49B-v1");
    CHECK(m.layers.size() == 80);
    std::size_t attention = 0;
    for (Layer const& l : m.layers) {
        attention += l.mixers.size();
        CHECK(l.norms == static_cast<std::int32_t>(l.mixers.size() + (l.ffn ? 1 : 0)));
    }
    CHECK(attention == 49);
    CHECK(total_params(m) == Params{49867145216}); // the checkpoint's own count
    auto const block = [](std::string const& attention_part, std::string const& ffn) {
        std::string const one = R"({"attention":{)" + attention_part + R"(},"ffn":{)" + ffn + "}}";
        return line_of(model_from_config(small(R"("block_configs":[)" + one + "," + one + "],", "DeciLMForCausalLM"), "x"));
    };
    CHECK(block(R"("n_heads_in_group":2)", R"("ffn_mult":1.5)") == "accepted");
    CHECK(block(R"("no_op":true)", R"("no_op":true)") != "accepted");
    CHECK(block(R"("n_heads_in_group":2)", R"("ffn_mult":-1)").find("ffn_mult") != std::string::npos);
    CHECK(block(R"("replace_with_linear":true)", R"("ffn_mult":1)").find("linear") != std::string::npos);
    CHECK(block(R"("n_heads_in_group":0)", R"("ffn_mult":1)").find("n_heads_in_group") != std::string::npos);
    CHECK(line_of(model_from_config(small(R"("block_configs":[],)", "DeciLMForCausalLM"), "x")).find("2 layers") != std::string::npos);
    CHECK(line_of(model_from_config(small("", "DeciLMForCausalLM"), "x")).find("block_configs") != std::string::npos);
}

TEST_CASE("json: NaN and Infinity as Python writes them are nulls", "[io][json]") {
    auto const v = parse_json(R"({"a": [0.0, Infinity, -Infinity, NaN], "NaN": "Infinity \" NaN", "b": 1})", "f");
    REQUIRE(v);
    CHECK((*v)["a"].size() == 4);
    CHECK((*v)["a"][1].is_null());
    CHECK((*v)["a"][3].is_null());
    CHECK((*v)["NaN"] == "Infinity \" NaN");
    CHECK((*v)["b"] == 1);
    CHECK_FALSE(parse_json(R"({"a": Infinit})", "f"));
    CHECK_FALSE(parse_json(R"({"a": NaNInfinity)", "f"));
    CHECK(parse_json(R"({"a": "NaN"})", "f"));
}
