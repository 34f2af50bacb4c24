// Checkpoints: bytes by class from headers alone, and refusals of files that contradict themselves.
#include <catch.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <servecap/io/checkpoint.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/memory/weights.hpp>

using namespace servecap;
namespace fs = std::filesystem;

namespace {

template <class T>
std::string le(T v) {
    std::string s;
    for (std::size_t i = 0; i < sizeof(T); ++i) s += static_cast<char>((static_cast<std::uint64_t>(v) >> (8 * i)) & 255);
    return s;
}

/// A safetensors file of a header and a size of data.
std::string safetensors(std::string const& json, std::size_t data) { return le<std::uint64_t>(json.size()) + json + std::string(data, '\0'); }

Result<CheckpointBytes> parse(std::string const& file) {
    CheckpointBytes out;
    auto const r = parse_safetensors(file, static_cast<std::int64_t>(file.size()), "t.safetensors", out);
    if (!r) return tl::unexpected<Error>{r.error()};
    return out;
}
std::string why(std::string const& json, std::size_t data) {
    auto const r = parse(safetensors(json, data));
    if (r) return "accepted";
    CHECK(r.error().code == ErrorCode::bad_format);
    CHECK(r.error().where == "t.safetensors");
    return r.error().message;
}
bool says(std::string const& text, std::string_view part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

/// Writes GGUF headers.
struct Gguf {
    std::string fields, tensors;
    std::uint64_t n_fields = 0, n_tensors = 0, at = 0;
    static std::string text(std::string_view s) { return le<std::uint64_t>(s.size()) + std::string{s}; }
    Gguf& put(std::string_view key, std::uint32_t v) {
        fields += text(key) + le<std::uint32_t>(4) + le(v);
        ++n_fields;
        return *this;
    }
    Gguf& put(std::string_view key, std::string_view v) {
        fields += text(key) + le<std::uint32_t>(8) + text(v);
        ++n_fields;
        return *this;
    }
    Gguf& words(std::string_view key, std::uint64_t n) {
        fields += text(key) + le<std::uint32_t>(9) + le<std::uint32_t>(8) + le(n);
        for (std::uint64_t i = 0; i < n; ++i) fields += text("w");
        ++n_fields;
        return *this;
    }
    Gguf& tensor(std::string_view name, std::vector<std::uint64_t> const& dims, std::uint32_t type) {
        auto const t = ggml_type(type);
        std::uint64_t n = 1;
        for (auto const d : dims) n *= d;
        return tensor_at(name, dims, type, at, t ? n / static_cast<std::uint64_t>(t->block) * static_cast<std::uint64_t>(t->bytes) : n);
    }
    Gguf& tensor_at(std::string_view name, std::vector<std::uint64_t> const& dims, std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
        tensors += text(name) + le(static_cast<std::uint32_t>(dims.size()));
        for (auto const d : dims) tensors += le(d);
        tensors += le(type) + le(offset);
        at = offset + (size + 31) / 32 * 32;
        ++n_tensors;
        return *this;
    }
    Gguf& data(std::uint64_t n) {
        at = n;
        return *this;
    }
    std::string header(std::uint32_t version = 3) const { return "GGUF" + le(version) + le(n_tensors) + le(n_fields) + fields + tensors; }
    std::string file() const {
        std::string h = header();
        h.resize((h.size() + 31) / 32 * 32 + at, '\0');
        return h;
    }
};
Result<GgufHeader> parse(Gguf const& g) {
    std::string const f = g.file();
    return parse_gguf(f, static_cast<std::int64_t>(f.size()), "t.gguf");
}

/// A folder of this test that goes away with it.
struct Folder {
    fs::path path;
    Folder() : path{fs::temp_directory_path() / ("servecap_checkpoint_" + std::to_string(::getpid()) + "_" + std::to_string(std::random_device{}()))} {
        fs::create_directories(path);
    }
    Folder(Folder const&) = delete;
    Folder& operator=(Folder const&) = delete;
    ~Folder() {
        std::error_code ec;
        fs::remove_all(path, ec);
    }
    void write(std::string const& name, std::string const& text) const { std::ofstream{path / name, std::ios::binary} << text; }
};

constexpr char const* kTinyLlama = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "vocab_size": 256, "max_position_embeddings": 2048, "rope_theta": 10000.0, "rms_norm_eps": 1e-5})";

struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
};
/// The tensors of kTinyLlama as its checkpoint names them.
std::vector<Entry> tiny_llama() {
    std::vector<Entry> t{{"model.embed_tokens.weight", {256, 64}}, {"model.norm.weight", {64}}, {"lm_head.weight", {256, 64}}};
    for (int i = 0; i < 2; ++i) {
        std::string const p = "model.layers." + std::to_string(i) + ".";
        for (Entry const& e : std::vector<Entry>{{"self_attn.q_proj.weight", {64, 64}},
                                                 {"self_attn.k_proj.weight", {32, 64}},
                                                 {"self_attn.v_proj.weight", {32, 64}},
                                                 {"self_attn.o_proj.weight", {64, 64}},
                                                 {"mlp.gate_proj.weight", {128, 64}},
                                                 {"mlp.up_proj.weight", {128, 64}},
                                                 {"mlp.down_proj.weight", {64, 128}},
                                                 {"input_layernorm.weight", {64}},
                                                 {"post_attention_layernorm.weight", {64}}})
            t.push_back({p + e.name, e.shape});
    }
    return t;
}
std::string file_of(std::vector<Entry> const& entries, std::string const& type = "BF16", std::int64_t width = 2) {
    std::string json = R"({"__metadata__":{"format":"pt"})";
    std::int64_t at = 0;
    for (Entry const& e : entries) {
        std::int64_t n = width;
        std::string shape;
        for (auto const d : e.shape) {
            n *= d;
            shape += (shape.empty() ? "" : ",") + std::to_string(d);
        }
        json += ",\"" + e.name + R"(":{"dtype":")" + type + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(at) + "," + std::to_string(at + n) + "]}";
        at += n;
    }
    return safetensors(json + "}", static_cast<std::size_t>(at));
}

} // namespace

TEST_CASE("checkpoint: bytes of a safetensors header, by class and by type", "[checkpoint]") {
    auto const r = parse(safetensors(R"({"__metadata__":{"format":"pt"},
        "model.layers.0.mlp.experts.3.up_proj.weight":{"dtype":"F8_E4M3","shape":[4,8],"data_offsets":[0,32]},
        "model.layers.0.mlp.experts.3.up_proj.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[32,36]},
        "model.layers.0.self_attn.q_proj.weight":{"dtype":"BF16","shape":[2,4],"data_offsets":[36,52]},
        "model.embed_tokens.weight":{"dtype":"BF16","shape":[4,4],"data_offsets":[52,84]},
        "model.layers.0.nothing":{"dtype":"F16","shape":[0,7],"data_offsets":[84,84]}})", 84));
    REQUIRE(r);
    CHECK(r->payload == Bytes{84});
    CHECK(r->tensors == 5);
    CHECK(r->files == 1);
    CHECK(r->by_class[static_cast<std::size_t>(TensorClass::routed_expert)] == Bytes{36});
    CHECK(r->by_class[static_cast<std::size_t>(TensorClass::attention)] == Bytes{16});
    CHECK(r->by_class[static_cast<std::size_t>(TensorClass::embedding)] == Bytes{32});
    REQUIRE(r->by_type.size() == 4);
    CHECK(r->by_type[0] == std::pair<std::string, Bytes>{"BF16", Bytes{48}});
    CHECK(r->by_type[3] == std::pair<std::string, Bytes>{"F8_E4M3", Bytes{32}});
    // Four-bit types are packed.
    CHECK(parse(safetensors(R"({"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}})", 3)));
}

TEST_CASE("checkpoint: safetensors files that contradict themselves are refused with the tensor", "[checkpoint]") {
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12), "overlap at byte 4"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16), "from 8 to 12"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12), "from 0 to 4"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7), "tensor 'a': it ends at byte 8, the file has 7"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9), "1 bytes after the last tensor"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "8 bytes where its shape and type take 12"));
    CHECK(says(why(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8), "'F31' is not known"));
    CHECK(says(why(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "dtype is missing"));
    CHECK(says(why(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "shape or data_offsets is missing"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "backwards"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "negative"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8), "fraction"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})", 8), "occurs twice"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", 8), "beyond 63 bits"));
    CHECK(says(why(R"({"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,8]}})", 8), "more than 63 bits hold"));
    CHECK(says(why(R"({"a":{"dtype":"U8","shape":[576460752303423488],"data_offsets":[0,576460752303423488]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 8), "the file has 8"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8), "18446744073709551615"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4), "16 dimensions"));
    CHECK(says(why(R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8), "a list where none"));
    CHECK(says(why(R"({"a":{"dtype":{"x":1},"shape":[2],"data_offsets":[0,8]}})", 8), "nested deeper"));
    CHECK(says(why(R"({"a":7})", 0), "a number where none"));
    CHECK(says(why(R"([1])", 0), "a list where none"));
    CHECK(says(why(R"({"a":)", 0), "no JSON at byte"));
    CHECK(says(why("", 0), "no JSON"));

    auto const code = [](std::string const& file) {
        auto const r = parse(file);
        return r ? std::string{"accepted"} : r.error().message;
    };
    CHECK(says(code(""), "0 bytes"));
    CHECK(says(code("1234567"), "7 bytes"));
    CHECK(says(code(le<std::uint64_t>(100) + "{}"), "100 bytes, the file has 10"));
    CHECK(says(code(le(~std::uint64_t{0}) + "{}"), "18446744073709551615 bytes"));
    CheckpointBytes out;
    auto const cut = parse_safetensors(le<std::uint64_t>(100) + "{}", 1000, "f", out);
    REQUIRE_FALSE(cut);
    CHECK(says(cut.error().message, "cut after 2 of 100"));
    auto const long_header = parse_safetensors(le<std::uint64_t>(kMaxHeaderBytes + 1) + "{}", std::int64_t{1} << 40, "f", out);
    REQUIRE_FALSE(long_header);
    CHECK(says(long_header.error().message, "a header of"));
    CHECK(out.tensors == 0);
}

TEST_CASE("checkpoint: an index names plain files only", "[checkpoint]") {
    auto const good = parse_safetensors_index(R"({"metadata":{"total_size":123},"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors","c":"x-1.safetensors"}})", "i");
    REQUIRE(good);
    CHECK(good->total_size == Bytes{123});
    CHECK(good->files.at("x-1.safetensors") == 2);
    auto const what = [](std::string const& text) {
        auto const r = parse_safetensors_index(text, "i");
        if (r) return std::string{"accepted"};
        CHECK(r.error().code == ErrorCode::bad_format);
        return r.error().message;
    };
    for (char const* file : {"../x", "/etc/passwd", "a/b", "..", ".", "", "c:x", "a\\\\b", "a\\u0000b"})
        CHECK(says(what(std::string{R"({"weight_map":{"a":")"} + file + "\"}}"), "no plain file name"));
    CHECK(says(what(R"({"weight_map":{"a":"x","a":"y"}})"), "occurs twice"));
    CHECK(says(what(R"({"weight_map":{}})"), "names no file"));
    CHECK(says(what("{}"), "names no file"));
    CHECK(says(what("{"), "no JSON"));
    CHECK(says(what(std::string(100, '[')), "too deep"));
    CHECK(says(what(R"({"weight_map":{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i":1}}}}}}}}}})"), "too deep"));
}

TEST_CASE("checkpoint: folders", "[checkpoint]") {
    Folder const f;
    auto const all = tiny_llama();
    f.write("config.json", kTinyLlama);
    SECTION("a config alone") {
        auto const m = load_model(f.path.string());
        REQUIRE(m);
        CHECK(m->exact_bytes.empty());
        auto const same = load_model((f.path / "config.json").string());
        REQUIRE(same);
        CHECK(total_params(*same) == total_params(*m));
    }
    SECTION("one file: the headers agree with the architecture, class by class") {
        f.write("model.safetensors", file_of(all));
        auto const m = load_model(f.path.string());
        REQUIRE(m);
        auto const b = read_safetensors(f.path, &*m);
        REQUIRE(b);
        CHECK(b->payload == stored_bytes(*m).total);
        for (auto const& [cls, bytes] : m->exact_bytes) CHECK(stored_bytes(*m)[cls] == bytes);
        CHECK(m->checkpoint_bytes == b->on_disk);
        CHECK(static_cast<std::uintmax_t>(b->on_disk.value()) == fs::file_size(f.path / "model.safetensors"));
        Layout const one{};
        CHECK(rank_weights(*m, one).total == b->payload);
    }
    SECTION("headers win over the config: an fp32 checkpoint") {
        f.write("model.safetensors", file_of(all, "F32", 4));
        auto const m = load_model(f.path.string());
        REQUIRE(m);
        Layout const one{};
        CHECK(rank_weights(*m, one).total == 2 * stored_bytes(*m).total);
    }
    SECTION("two files and an index") {
        std::vector<Entry> const first(all.begin(), all.begin() + 7), second(all.begin() + 7, all.end());
        f.write("a.safetensors", file_of(first));
        f.write("b.safetensors", file_of(second));
        std::string map;
        for (std::size_t i = 0; i < all.size(); ++i) map += (i == 0 ? "\"" : ",\"") + all[i].name + (i < 7 ? "\":\"a.safetensors\"" : "\":\"b.safetensors\"");
        f.write("model.safetensors.index.json", R"({"metadata":{},"weight_map":{)" + map + "}}");
        auto const m = load_model(f.path.string());
        REQUIRE(m);
        Bytes sum{};
        for (auto const& [cls, bytes] : m->exact_bytes) sum += bytes;
        CHECK(sum == stored_bytes(*m).total);
        SECTION("a shard is missing") {
            fs::remove(f.path / "b.safetensors");
            auto const r = load_model(f.path.string());
            REQUIRE_FALSE(r);
            CHECK(r.error().code == ErrorCode::missing);
            CHECK(says(r.error().where, "b.safetensors"));
        }
        SECTION("a shard lacks a tensor") {
            f.write("b.safetensors", file_of({second.begin() + 1, second.end()}));
            auto const r = load_model(f.path.string());
            REQUIRE_FALSE(r);
            CHECK(says(r.error().message, "the index names"));
        }
        SECTION("a shard is cut") {
            fs::resize_file(f.path / "a.safetensors", fs::file_size(f.path / "a.safetensors") - 1);
            auto const r = load_model(f.path.string());
            REQUIRE_FALSE(r);
            CHECK(r.error().code == ErrorCode::bad_format);
        }
        SECTION("an index of 2 GB is not read") {
            fs::resize_file(f.path / "model.safetensors.index.json", std::uintmax_t{2} << 30); // sparse
            auto const r = load_model(f.path.string());
            REQUIRE_FALSE(r);
            CHECK(says(r.error().message, "an index of 2147483648 bytes"));
        }
    }
    SECTION("nothing there") {
        fs::remove(f.path / "config.json");
        auto const r = load_model(f.path.string());
        REQUIRE_FALSE(r);
        CHECK(r.error().code == ErrorCode::missing);
        CHECK_FALSE(load_model((f.path / "none.json").string()));
        CHECK_FALSE(read_safetensors(f.path));
    }
}

TEST_CASE("checkpoint: Mistral's params.json", "[checkpoint]") {
    Folder const f;
    f.write("params.json", R"({"dim": 5120, "n_layers": 40, "head_dim": 128, "hidden_dim": 32768, "n_heads": 32, "n_kv_heads": 8,
        "rope_theta": 1000000000.0, "norm_eps": 1e-05, "vocab_size": 131072, "max_position_embeddings": 131072})");
    auto const m = load_model(f.path.string());
    if (!m) FAIL(to_line(m.error()));
    auto const card = load_model("mistral-small-3.1-24b");
    REQUIRE(card);
    CHECK(total_params(*m) == total_params(*card));
    f.write("params.json", R"({"dim": 7168, "n_layers": 61, "head_dim": 128, "hidden_dim": 16384, "n_heads": 128, "n_kv_heads": 128, "vocab_size": 131072,
        "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512, "v_head_dim": 128, "max_position_embeddings": 294912,
        "quantization": {"qformat_weight": "fp8_e4m3"},
        "moe": {"expert_parallel": 1, "expert_model_parallel": 1, "route_every_n": 1, "first_k_dense_replace": 3, "num_experts": 128,
                "num_experts_per_tok": 4, "num_shared_experts": 1, "expert_hidden_dim": 4096}})");
    auto const large = load_model(f.path.string());
    if (!large) FAIL(to_line(large.error()));
    auto const large_card = load_model("mistral-large-3");
    REQUIRE(large_card);
    CHECK(total_params(*large) == total_params(*large_card));
    f.write("params.json", R"({"layers": 3})");
    auto const bad = load_model(f.path.string());
    REQUIRE_FALSE(bad);
    CHECK(says(bad.error().message, "dim and n_layers"));
    f.write("params.json", "{");
    CHECK_FALSE(load_model(f.path.string()));
}

TEST_CASE("checkpoint: GGUF headers", "[checkpoint]") {
    auto const h = parse(Gguf{}.put("general.architecture", "llama").put("llama.block_count", 1).words("tokenizer.ggml.tokens", 5).tensor("token_embd.weight", {256, 5}, 12).tensor("blk.0.attn_q.weight", {256, 4}, 14).tensor("blk.0.ffn_down_exps.weight", {256, 2, 3}, 12).tensor("blk.0.attn_norm.weight", {256}, 0));
    REQUIRE(h);
    CHECK(h->bytes.tensors == 4);
    CHECK(h->bytes.by_class[static_cast<std::size_t>(TensorClass::embedding)] == Bytes{5 * 144});
    CHECK(h->bytes.by_class[static_cast<std::size_t>(TensorClass::attention)] == Bytes{4 * 210});
    CHECK(h->bytes.by_class[static_cast<std::size_t>(TensorClass::routed_expert)] == Bytes{6 * 144});
    CHECK(h->bytes.by_class[static_cast<std::size_t>(TensorClass::norm)] == Bytes{1024});
    CHECK(h->bytes.payload == Bytes{5 * 144 + 4 * 210 + 6 * 144 + 1024});
    CHECK(h->meta["llama.block_count"] == 1);
    CHECK(h->meta["tokenizer.ggml.tokens"]["length"] == 5);

    auto const what = [](Result<GgufHeader> const& r) { return r ? std::string{"accepted"} : r.error().message; };
    CHECK(says(what(parse(Gguf{}.tensor("a", {256}, 0).tensor("a", {256}, 0))), "occurs twice"));
    CHECK(says(what(parse(Gguf{}.put("k", 1).put("k", 2))), "occurs twice"));
    CHECK(says(what(parse(Gguf{}.tensor("a", {256}, 5))), "type 5"));
    CHECK(says(what(parse(Gguf{}.tensor("a", {256}, 4000))), "type 4000"));
    CHECK(says(what(parse(Gguf{}.tensor("a", {100}, 12))), "rows of 100"));
    CHECK(says(what(parse(Gguf{}.tensor("a", {1, 1, 1, 1, 1}, 0))), "5 dimensions"));
    CHECK(says(what(parse(Gguf{}.tensor("a", {256}, 0).tensor_at("b", {256}, 0, 512, 1024))), "overlap"));
    CHECK(says(what(parse(Gguf{}.tensor_at("a", {std::uint64_t{1} << 61, 8}, 0, 0, 0))), "63 bits"));
    CHECK(says(what(parse(Gguf{}.tensor_at("a", {256}, 0, ~std::uint64_t{0} - 31, 0).data(32))), "ends at byte"));
    CHECK(says(what(parse(Gguf{}.tensor_at("a", {std::uint64_t{1} << 40}, 0, 0, 32))), "ends at byte"));
    std::string const good = Gguf{}.put("general.architecture", "llama").tensor("a", {256}, 0).file();
    auto const read = [&](std::string const& s) { return what(parse_gguf(s, static_cast<std::int64_t>(s.size()), "t.gguf")); };
    CHECK(read(good) == "accepted");
    CHECK(says(read("GGUX" + good.substr(4)), "does not begin with GGUF"));
    CHECK(says(read(std::string{"GGUF"} + le<std::uint32_t>(1) + good.substr(8)), "version 1"));
    CHECK(says(read("GGUF"), "4 bytes"));
    CHECK(says(read(good.substr(0, good.size() - 1)), "the file has"));
    CHECK(says(read("GGUF" + le<std::uint32_t>(3) + le(~std::uint64_t{0}) + le<std::uint64_t>(0)), "18446744073709551615 tensors"));
    // Every cut and every changed byte ends in an answer or an error.
    for (std::size_t n = 0; n < good.size(); ++n) {
        CHECK(read(good.substr(0, n)) != "accepted");
        for (unsigned const x : {1u, 0x80u, 0xffu}) {
            std::string s = good;
            s[n] = static_cast<char>(static_cast<unsigned char>(s[n]) ^ x);
            (void)read(s);
        }
    }
}

TEST_CASE("checkpoint: a GGUF file in parts is a model", "[checkpoint]") {
    Folder const f;
    auto const describe = [](Gguf& g) -> Gguf& {
        return g.put("general.architecture", "llama").put("llama.block_count", 1).put("llama.embedding_length", 256).put("llama.feed_forward_length", 512).put("llama.attention.head_count", 4).put("llama.attention.head_count_kv", 2).put("llama.context_length", 4096).words("tokenizer.ggml.tokens", 64);
    };
    Gguf first, second;
    describe(first).put("split.count", 2).tensor("token_embd.weight", {256, 64}, 12).tensor("output_norm.weight", {256}, 0);
    second.put("split.count", 2).tensor("blk.0.attn_q.weight", {256, 256}, 12).tensor("blk.0.attn_k.weight", {256, 128}, 12).tensor("blk.0.attn_v.weight", {256, 128}, 14).tensor("blk.0.attn_output.weight", {256, 256}, 12).tensor("blk.0.ffn_gate.weight", {256, 512}, 12).tensor("blk.0.ffn_up.weight", {256, 512}, 12).tensor("blk.0.ffn_down.weight", {512, 256}, 14).tensor("blk.0.attn_norm.weight", {256}, 0).tensor("blk.0.ffn_norm.weight", {256}, 0);
    f.write("m-00001-of-00002.gguf", first.file());
    f.write("m-00002-of-00002.gguf", second.file());
    auto const whole = read_gguf(f.path / "m-00001-of-00002.gguf");
    REQUIRE(whole);
    CHECK(whole->bytes.files == 2);
    CHECK(whole->bytes.tensors == 11);
    auto const m = load_model((f.path / "m-00001-of-00002.gguf").string());
    if (!m) FAIL(to_line(m.error()));
    CHECK(m->vocab == 64);
    CHECK(m->tied_embeddings);
    CHECK(m->quant.label == "gguf:q4_k");
    Bytes sum{};
    for (auto const& [cls, bytes] : m->exact_bytes) sum += bytes;
    CHECK(sum == whole->bytes.payload);
    auto const folder = load_model(f.path.string());
    REQUIRE(folder);
    CHECK(total_params(*folder) == total_params(*m));
    fs::remove(f.path / "m-00002-of-00002.gguf");
    CHECK_FALSE(read_gguf(f.path / "m-00001-of-00002.gguf"));
    Gguf other;
    other.put("general.architecture", "gemma9");
    f.write("g.gguf", other.file());
    auto const unknown = load_model((f.path / "g.gguf").string());
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().code == ErrorCode::unsupported);
    CHECK(says(unknown.error().message, "gemma9"));
}

TEST_CASE("checkpoint: names of tensors, as real checkpoints write them", "[checkpoint]") {
    struct Row {
        char const* name;
        TensorClass cls;
    };
    for (Row const& r : std::vector<Row>{
             {"model.embed_tokens.weight", TensorClass::embedding},
             {"embed.weight", TensorClass::embedding},
             {"transformer.wte.weight", TensorClass::embedding},
             {"token_embd.weight", TensorClass::embedding},
             {"lm_head.weight", TensorClass::lm_head},
             {"head.weight", TensorClass::lm_head},
             {"output.weight", TensorClass::lm_head},
             {"model.layers.3.self_attn.kv_b_proj.weight", TensorClass::attention},
             {"model.layers.3.self_attn.kv_a_proj_with_mqa.weight_scale_inv", TensorClass::attention_shared},
             {"model.layers.3.self_attn.indexer.wq_b.weight", TensorClass::attention_shared},
             {"model.layers.3.mlp.gate.weight", TensorClass::router},
             {"model.layers.3.mlp.gate.e_score_correction_bias", TensorClass::router},
             {"model.layers.3.mlp.gate_proj.weight", TensorClass::dense_ffn},
             {"model.layers.3.mlp.experts.200.down_proj.weight", TensorClass::routed_expert},
             {"model.layers.3.mlp.experts.gate_up_proj_blocks", TensorClass::routed_expert},
             {"model.layers.3.mlp.shared_experts.up_proj.weight", TensorClass::shared_expert},
             {"model.layers.3.mlp.shared_expert_gate.weight", TensorClass::router},
             {"model.layers.3.input_layernorm.weight", TensorClass::norm},
             {"model.layers.3.linear_attn.in_proj_qkvz.weight", TensorClass::linear_attention},
             {"backbone.layers.3.mixer.conv1d.weight", TensorClass::linear_attention},
             {"mtp.layers.0.mlp.experts.3.up_proj.weight", TensorClass::mtp},
             {"vision_tower.encoder.blocks.0.wqkv.weight", TensorClass::vision},
             {"mm_projector.proj.0.weight", TensorClass::vision},
             {"blk.3.ffn_down_exps.weight", TensorClass::routed_expert},
             {"blk.3.ffn_gate_inp.weight", TensorClass::router},
             {"blk.3.ffn_up_shexp.weight", TensorClass::shared_expert},
             {"blk.3.attn_output.weight", TensorClass::attention},
             {"blk.3.ssm_in.weight", TensorClass::linear_attention}}) {
        INFO(r.name);
        CHECK(classify_tensor(r.name) == r.cls);
    }
    // With the model, layers after the last are prediction.
    auto const v3 = load_model("deepseek-v3");
    REQUIRE(v3);
    CHECK(classify_tensor("model.layers.61.self_attn.q_a_proj.weight", &*v3) == TensorClass::mtp);
    CHECK(classify_tensor("model.layers.60.self_attn.o_proj.weight", &*v3) == TensorClass::attention);
}
