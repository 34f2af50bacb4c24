// Weights: byte inventories of checkpoints, laws of splitting, and what start-up logs say a rank holds.
#include <catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/engine/vllm.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/memory/weights.hpp>

using namespace servecap;

namespace {

Model model(char const* name) {
    auto m = load_model(name);
    if (!m) FAIL(to_line(m.error()));
    return *m;
}

/// Bytes of one trunk layer, routed experts and lookup tables apart.
std::int64_t layer_rest(Model const& m, std::int32_t layer) {
    std::int64_t n = 0;
    for (WeightTensor const& t : weight_tensors(m))
        if (t.layer == layer && t.cls != TensorClass::routed_expert && t.cls != TensorClass::lookup) n += bytes_of(t).value();
    return n;
}
std::int64_t class_bytes(Model const& m, TensorClass c) { return stored_bytes(m)[c].value(); }
/// Bytes outside the layers of tensors in the model's trunk that are no embedding and no head.
std::int64_t global_rest(Model const& m) {
    std::int64_t n = 0;
    for (WeightTensor const& t : weight_tensors(m))
        if (t.layer < 0 && in_trunk(t.cls) && t.cls != TensorClass::embedding && t.cls != TensorClass::lm_head) n += bytes_of(t).value();
    return n;
}
std::int64_t routed_draft(Model const& m) {
    std::int64_t n = 0;
    for (WeightTensor const& t : weight_tensors(m))
        if (t.cls == TensorClass::draft && t.shard == Shard::expert) n += bytes_of(t).value();
    return n;
}

} // namespace

TEST_CASE("Kimi K3: payload 1,560,860,324,864 B and its parts (safetensors headers, public inventory)", "[weights]") {
    Model const m = model("kimi-k3");
    CHECK(stored_bytes(m).total == Bytes{1560860324864});
    CHECK(class_bytes(m, TensorClass::routed_expert) == 1446456066048);
    CHECK(class_bytes(m, TensorClass::routed_expert) / 92 == 15722348544);
    CHECK(15722348544 / 896 == 17547264); // one expert
    CHECK(layer_rest(m, 0) == 2341213184);
    CHECK(layer_rest(m, 1) == 1267744256); // KDA
    CHECK(layer_rest(m, 3) == 844335616);  // latent attention
    std::int64_t trunk = 0;
    for (std::int32_t i = 0; i < 93; ++i) trunk += layer_rest(m, i);
    CHECK(trunk == 108811877376);
    CHECK(class_bytes(m, TensorClass::embedding) == 2348810240);
    CHECK(class_bytes(m, TensorClass::lm_head) == 2348810240);
    CHECK(global_rest(m) == 43008);
    CHECK(class_bytes(m, TensorClass::vision) == 802428928 + 92289024); // tower and projector
    std::int64_t f32 = 0, bf16 = 0;
    for (WeightTensor const& t : weight_tensors(m)) {
        if (t.format.format == Format::fp32) f32 += bytes_of(t).value();
        if (t.format.format == Format::bf16) bf16 += bytes_of(t).value();
    }
    CHECK(f32 == 44489728);
    CHECK(bf16 == 114359769088);
    CHECK(total_params(m) == Params{2779484478208});
    CHECK((total_params(m) + class_params(m, TensorClass::vision)) == Params{2779931837184});
    CHECK(active_params(m) == Params{105364019968});
    CHECK(active_params(m, false) == Params{104189614848});
}

TEST_CASE("DeepSeek V4.1 Flash: the byte inventory of its checkpoint, layer by layer", "[weights]") {
    Model const m = model("deepseek-v4.1-flash");
    CHECK(stored_bytes(m).total == Bytes{510286023000});
    CHECK(class_bytes(m, TensorClass::routed_expert) == 288777830400);
    CHECK(class_bytes(m, TensorClass::routed_expert) / 40 == 7219445760);
    CHECK(7219445760 / 384 == 18800640);
    CHECK(class_bytes(m, TensorClass::lookup) == 202758032400);
    CHECK(class_params(m, TensorClass::lookup) == Params{196613849600});
    std::int64_t layers = 0;
    for (std::int32_t i = 0; i < 40; ++i) {
        std::int64_t const have = layer_rest(m, i);
        layers += have;
        INFO("layer " << i);
        std::int64_t want = 170055128;
        if (i == 1) want = 327577048;
        if (i == 14) want = 343770840;
        if (i == 2 || i == 8) want = 186248920;
        if (i == 20) want = 181006040;
        if (i == 24 || i == 28 || i == 32 || i == 36) want = 175630808;
        CHECK(have == want);
    }
    CHECK(layers == 7199083968);
    CHECK(layers + class_bytes(m, TensorClass::lm_head) + global_rest(m) == 8522921408);
    CHECK(class_bytes(m, TensorClass::embedding) == 1323827200);
    CHECK(class_bytes(m, TensorClass::vision) == 970536960);
    CHECK(routed_draft(m) == 7219445760);
    CHECK(class_bytes(m, TensorClass::draft) - routed_draft(m) == 713428872);
    std::int64_t f32 = 0, bf16 = 0;
    for (WeightTensor const& t : weight_tensors(m)) {
        if (t.format.format == Format::fp32) f32 += bytes_of(t).value();
        if (t.format.format == Format::bf16) bf16 += bytes_of(t).value();
    }
    CHECK(f32 == 169229128);
    CHECK(bf16 == 3952883712);
}

TEST_CASE("DeepSeek V4: layers by compression ratio, hash tables, DSpark stages", "[weights]") {
    Model const m = model("deepseek-v4-flash-0731");
    CHECK(stored_bytes(m).total == Bytes{166878536440});
    CHECK(layer_rest(m, 0) == 143596888); // with its hash table, 6,205,440
    CHECK(layer_rest(m, 2) == 173503576);
    CHECK(layer_rest(m, 3) == 146044248);
    CHECK(layer_rest(m, 4) == 167299160);
    CHECK(routed_draft(m) == 10267656192);
    CHECK(class_bytes(m, TensorClass::draft) - routed_draft(m) == 595182108);
    std::int64_t tables = 0, dense = class_bytes(m, TensorClass::lm_head) + global_rest(m);
    for (std::int32_t i = 0; i < 43; ++i) dense += layer_rest(m, i);
    for (WeightTensor const& t : weight_tensors(m))
        if (t.name == "tid2eid") tables += bytes_of(t).value();
    CHECK(tables == 18616320);
    CHECK(dense - tables == 7768281308);
    CHECK(dense + class_bytes(m, TensorClass::routed_expert) + class_bytes(m, TensorClass::embedding) == 156015698140); // without MTP

    Model const pro = model("deepseek-v4-pro");
    std::int64_t all = 0;
    for (WeightTensor const& t : weight_tensors(pro))
        if (in_trunk(t.cls)) all += bytes_of(t).value();
    CHECK(all == 850748205004);
}

TEST_CASE("MiMo V2.6: fused projections, bf16 output projections, three MTP layers", "[weights]") {
    Model const m = model("mimo-v2.6-flash");
    CHECK(stored_bytes(m).total == Bytes{172923364096});
    CHECK(layer_rest(m, 0) == 324089344);
    CHECK(layer_rest(m, 1) == 130055808);  // window
    CHECK(layer_rest(m, 5) == 124811776);  // full
    CHECK(class_bytes(m, TensorClass::mtp) == 1189400448);
    Model const pro = model("mimo-v2.6-pro");
    CHECK(layer_rest(pro, 0) == 670179840);
    CHECK(layer_rest(pro, 1) == 372836608);
    CHECK(layer_rest(pro, 7) == 372836352);
    CHECK(class_bytes(pro, TensorClass::mtp) == 2463635712);
}

TEST_CASE("Qwen3.8 27B: two kinds of layers, tower, MTP", "[weights]") {
    Model const m = model("qwen3.8-27b");
    CHECK(stored_bytes(m).total == Bytes{55562855904});
    CHECK(layer_rest(m, 0) == 766546368);
    CHECK(layer_rest(m, 3) == 744510464);
    CHECK(class_bytes(m, TensorClass::mtp) == 849398784);
    CHECK(class_bytes(m, TensorClass::vision) == 921460192);
}

TEST_CASE("splitting: TP 1 is the model, ranks cover it, stages add up, EP spreads whole experts", "[weights][laws]") {
    WeightOptions all;
    all.mtp = all.draft = true;
    for (std::string const& name : list_models()) {
        INFO(name);
        auto const loaded = load_model(name);
        REQUIRE(loaded);
        Model const& m = *loaded;
        Bytes const whole = stored_bytes(m).total;
        RankWeights const one = rank_weights(m, {}, all);
        // One rank alone: all of it, and the rows that pad the vocabulary to a multiple of 64.
        CHECK(one.total >= whole);
        CHECK((one.total - whole).value() <= 4 * 64 * std::int64_t{m.hidden} * 8);
        Bytes sum{};
        for (Bytes const b : one.by_class) sum += b;
        CHECK(sum == one.total);
        Bytes before = one.total;
        for (std::int32_t tp : {2, 4, 8}) {
            RankWeights const w = rank_weights(m, {.tp = tp}, all);
            CHECK(w.total <= before);
            CHECK(w.total * tp >= whole);
            before = w.total;
        }
        // Pipeline stages: everything once, a tied embedding twice.
        auto const layers = static_cast<std::int32_t>(m.layers.size());
        if (layers >= 3) {
            Layout const pp{.pp = 3};
            Bytes staged{};
            for (int s = 0; s < 3; ++s) staged += rank_weights(m, pp, all, s).total;
            Bytes const twice = m.tied_embeddings ? rank_weights(m, {}, all)[TensorClass::embedding] : Bytes{};
            bool const shares = std::any_of(m.layers.begin(), m.layers.end(), [](Layer const& l) { return l.shared_block >= 0; });
            if (!shares) {
                CHECK(staged >= one.total);
                CHECK(staged <= one.total + twice);
            }
            CHECK(rank_weights(m, pp, all).total <= one.total);
        }
        // Experts: without EP each is cut, with EP whole ones are spread; the bytes agree where both divide.
        RankWeights const cut = rank_weights(m, {.tp = 4}, all), spread = rank_weights(m, {.tp = 4, .ep = true}, all);
        CHECK(std::abs(cut[TensorClass::routed_expert] / std::max(spread[TensorClass::routed_expert], Bytes{1}) - 1) <
              (one[TensorClass::routed_expert].value() > 0 ? 0.05 : 1.5));
        // Attention data parallelism copies everything but the experts.
        RankWeights const dep = rank_weights(m, {.dp = 4, .ep = true}, all);
        CHECK(dep[TensorClass::attention] == one[TensorClass::attention]);
        CHECK(dep[TensorClass::routed_expert] == spread[TensorClass::routed_expert]);
    }
}

TEST_CASE("pipeline stages get the remainder from the last but one backwards", "[weights]") {
    using P = std::vector<std::pair<std::int32_t, std::int32_t>>;
    CHECK(pipeline_stages(93, 3) == P{{0, 31}, {31, 31}, {62, 31}});
    CHECK(pipeline_stages(61, 4) == P{{0, 15}, {15, 15}, {30, 16}, {46, 15}});
    CHECK(pipeline_stages(62, 4) == P{{0, 15}, {15, 16}, {31, 16}, {47, 15}});
}

TEST_CASE("shards: kv heads are copied, the vocabulary is padded, latents stay whole", "[weights]") {
    Model const llama = model("llama-3.1-8b"); // 8 kv heads
    auto const kv = [&](std::int32_t tp) {
        std::int64_t n = 0;
        for (WeightTensor const& t : weight_tensors(llama))
            if (t.name == "k_proj") n += detail::rank_bytes(t, {.tp = tp}, {}, 0).value();
        return n;
    };
    CHECK(kv(8) * 8 == kv(1));
    CHECK(kv(16) == kv(8));
    Model const k2 = model("kimi-k2.5");
    CHECK(rank_weights(k2, {.tp = 8})[TensorClass::attention_shared] == rank_weights(k2, {})[TensorClass::attention_shared]);
    Model const granite = model("granite-3.1-2b-instruct"); // 49,155 rows -> 49,216
    CHECK(rank_weights(granite, {.tp = 2})[TensorClass::embedding] == Bytes{49216 / 2 * 2048 * 2});
    // K3 in data parallel attention over 8 and 16 ranks: 274.9 GiB a GPU does not fit a B300, half the experts do.
    Model const k3 = model("k3");
    CHECK(in_gib(rank_weights(k3, {.dp = 8, .ep = true}).total) == Approx(274.94).epsilon(1e-4));
    CHECK(in_gib(rank_weights(k3, {.dp = 16, .ep = true}).total) < 200);
    CHECK(rank_weights(k3, {.dp = 8, .ep = true}).experts == 112);
    CHECK(rank_weights(model("v4.1-1017"), {.dp = 8, .ep = true}).experts == 48);
}

TEST_CASE("Engram tables on the host: 11.80 GiB a rank and table in a start-up log of V4.1 Flash on 8 x H100", "[weights]") {
    WeightOptions o;
    o.lookup_on_host = true;
    RankWeights const w = rank_weights(model("deepseek-v4.1-flash"), {.tp = 8, .ep = true}, o);
    CHECK(in_gib(w.host) == Approx(2 * 11.80).epsilon(0.001));
    CHECK(w[TensorClass::lookup] == Bytes{0});
    o.lookup_on_host = false;
    RankWeights const on = rank_weights(model("deepseek-v4.1-flash"), {.tp = 8, .ep = true}, o);
    CHECK(on.total - w.total == w.host);
}

TEST_CASE("Kimi K3 on 16 x H200: 129.75 GiB is the padding of 192-wide expert parts to 256, not unpacking", "[weights]") {
    Model const m = model("k3");
    WeightOptions o;
    o.absorbed_mla = true;
    double const plain = in_gib(rank_weights(m, {.tp = 16}, o).total);
    CHECK(plain == Approx(101.7).epsilon(0.001));
    o.expert_width_multiple = 128; // the Marlin kernel's tile: 3072 / 16 = 192 -> 256
    double const padded = in_gib(rank_weights(m, {.tp = 16}, o).total);
    CHECK(padded == Approx(129.75).epsilon(0.0005));
    CHECK(in_gib(rank_weights(m, {.tp = 8}, o).total) == Approx(192.29).epsilon(0.003)); // 384 = 3 tiles: nothing to pad
}

TEST_CASE("DeepSeek V4.1 Flash 1017, TP4, tables on the host: 576-wide expert parts are padded to 640", "[weights]") {
    Model const m = model("v4.1-1017");
    WeightOptions o;
    o.lookup_on_host = o.rope_tables = true;
    CHECK(in_gib(rank_weights(m, {.tp = 4}, o).total) == Approx(71.69).epsilon(0.001));
    o.expert_width_multiple = 128;
    CHECK(in_gib(rank_weights(m, {.tp = 4}, o).total) == Approx(79.25).epsilon(0.003));
}

TEST_CASE("weights in another type", "[weights]") {
    Model const llama = model("llama-3.3-70b");
    // compressed-tensors FP8: 67.72 GiB in a vLLM log, cosines and sines (32 MiB) included.
    auto const fp8 = load_as(llama, "fp8");
    REQUIRE(fp8);
    CHECK(fp8->quant.label == "fp8");
    CHECK(fp8->is_inferred());
    CHECK(in_gib(rank_weights(*fp8, {}).total + *fp8->rope_tables) == Approx(67.72).epsilon(0.0002));
    CHECK(stored_bytes(*load_as(llama, "fp32")).total == 2 * stored_bytes(llama).total);
    CHECK(load_as(llama, "auto")->quant.label == "bf16");
    CHECK(load_as(llama, "bf16")->inferred.empty());
    CHECK(stored_bytes(*load_as(llama, "int4")).total < stored_bytes(*fp8).total);
    // Experts alone in 4 bits, attention as it was.
    auto const nv = load_as(model("glm-5.3"), "nvfp4");
    REQUIRE(nv);
    CHECK(nv->quant[TensorClass::routed_expert].format == Format::nvfp4);
    CHECK(nv->quant[TensorClass::attention].format == Format::bf16);
    // Unpacked.
    CHECK(stored_bytes(*load_as(model("gpt-oss-120b"), "bf16")).total / stored_bytes(model("gpt-oss-120b")).total > 3);
    auto const bad = load_as(llama, "fp3");
    REQUIRE(!bad);
    CHECK(bad.error().code == ErrorCode::bad_value);
    CHECK(load_model("llama-3.3-70b", {.weights_dtype = "fp8"})->quant.label == "fp8");
}

TEST_CASE("weights a GPU of real vLLM starts: median within 1 %, nine of ten within 3 %", "[weights][rows]") {
    auto const names = NameMap::read(*find_embedded("names.csv"), "names.csv");
    auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    REQUIRE(names);
    REQUIRE(gpus);
    auto const rows = read_startups(*find_embedded("startups.csv"), "startups.csv", RowOptions{{}, &*names, false});
    REQUIRE(rows);
    // Rows that the arithmetic does not explain, and what is known of the cause.
    std::map<std::string, char const*> const misses{
        {"S4", "the author's round figure (46)"},
        {"L124", "the column is weights and non-torch memory (note of the row)"},
        {"L119", "the column is weights and non-torch memory (note of the row)"},
        {"L166", "the column is weights and non-torch memory of 24 GPUs (note of the row)"},
        {"L279", "weights of an exl3 / NVFP4 mixture that the row does not describe; with non-torch memory"},
        {"L120", "with a DFlash2 drafter of unknown size"},
        {"L231", "NVFP4 recipe unknown, probably with MTP"},
        {"L054", "a fork that cuts every dense matrix over 16 ranks and pads no expert"},
    };
    // Logs whose figure holds the draft stages of the checkpoint: it is above the whole trunk.
    std::vector<std::string> const with_draft{"L112", "L151", "L257"};
    std::vector<double> errors;
    for (StartupRow const& r : *rows) {
        if (r.engine != "vllm" || !r.weights_per_gpu || r.usable != "yes" || !r.tp) continue;
        auto const loaded = load_model(r.model);
        INFO(r.id << " " << r.model);
        REQUIRE(loaded);
        std::string const& p = r.weights_precision;
        auto m = load_as(*loaded, p == "fp8+mxfp4" || p == "fp4" ? "auto" : p);
        REQUIRE(m);
        bool const drafted = std::find(with_draft.begin(), with_draft.end(), r.id) != with_draft.end();
        if (drafted) m = *load_model("deepseek-v4-flash-0731");
        Layout l;
        l.tp = *r.tp;
        l.pp = r.pp.value_or(1);
        l.dp = r.dp.value_or(1);
        l.ep = !r.ep.empty() && r.ep != "no";
        auto const gpu = std::find_if(gpus->begin(), gpus->end(), [&](Gpu const& g) { return g.id == r.gpu; });
        REQUIRE(gpu != gpus->end());
        EngineSettings s;
        s.language_model_only = r.other_flags.find("language-model-only") != std::string::npos;
        WeightOptions o = detail::vllm_weight_options(*m, *gpu, s);
        o.draft = drafted;
        o.rope_tables = true;
        double const error = std::fabs(rank_weights(*m, l, o).total / *r.weights_per_gpu - 1);
        errors.push_back(error);
        INFO("error " << 100 * error << " %");
        CHECK((error <= 0.03) == !misses.contains(r.id));
    }
    REQUIRE(errors.size() >= 85);
    std::sort(errors.begin(), errors.end());
    CHECK(errors[errors.size() / 2] <= 0.01);
    CHECK(errors[errors.size() * 9 / 10] <= 0.03);
}
