// servecap: exact bytes of a checkpoint, from its headers alone
// SPDX-License-Identifier: Apache-2.0
//
// A safetensors file begins with the length of a JSON header (8 bytes, little endian) that names every
// tensor with its type, shape and place; model.safetensors.index.json says which file holds which tensor. A
// GGUF file begins with typed metadata and a list of tensors. Both are read without loading weights, added
// up by class of tensor, and refused when they contradict themselves: headers longer than the file, tensors
// that overlap, overrun or leave holes, sizes that are not shape times type, names twice, files outside the
// folder. Formats: github.com/huggingface/safetensors (README), github.com/ggml-org/ggml docs/gguf.md.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include <servecap/catalog/model.hpp>
#include <servecap/core/checked.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/io/hf_config.hpp>
#include <servecap/io/json.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

/// Longest header or index that is read. Kimi K3 with 497,220 tensors needs 76 MB of headers in 96 files.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{512} << 20;

/// What the tensors of a checkpoint take, by class and by stored type.
struct CheckpointBytes {
    Bytes payload{};                                    ///< of all tensors
    std::array<Bytes, kTensorClasses> by_class{};
    std::vector<std::pair<std::string, Bytes>> by_type; ///< "BF16", "F8_E4M3", "Q4_K"...; sorted
    std::int64_t tensors = 0;
    std::int64_t files = 0;
    Bytes on_disk{};                                    ///< the files themselves

    void add(TensorClass cls, std::string_view type, Bytes n) {
        payload += n;
        by_class[static_cast<std::size_t>(cls)] += n;
        auto const at = std::lower_bound(by_type.begin(), by_type.end(), type, [](auto const& p, std::string_view t) { return p.first < t; });
        if (at != by_type.end() && at->first == type)
            at->second += n;
        else
            by_type.insert(at, {std::string{type}, n});
        ++tensors;
    }
};

/// The class of a tensor by its name in a checkpoint (safetensors or GGUF). `m`, where known, tells layers with
/// recurrent mixers, and layers after the last one (prediction), by number.
inline TensorClass classify_tensor(std::string_view name, Model const* m = nullptr) {
    auto const has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    auto const ends = [&](std::string_view part) { return name.ends_with(part); };
    if (has("vision") || has("visual") || has("mm_projector") || has("multi_modal") || has("aligner.") || has("image_") || has("audio") ||
        has("patch_merger") || name.starts_with("v.") || name.starts_with("mm."))
        return TensorClass::vision;
    if (has("engram.embed") || has("ngram_embedding")) return TensorClass::lookup;
    std::int64_t layer = -1;
    for (std::string_view const mark : {"layers.", "blk.", ".h."}) {
        auto const at = name.find(mark);
        if (at == std::string_view::npos) continue;
        std::size_t i = at + mark.size();
        std::int64_t n = 0;
        std::size_t const from = i;
        for (; i < name.size() && i < from + 6 && name[i] >= '0' && name[i] <= '9'; ++i) n = 10 * n + (name[i] - '0');
        if (i > from) layer = n;
        break;
    }
    auto const layers = m == nullptr ? std::int64_t{-1} : static_cast<std::int64_t>(m->layers.size());
    if (name.starts_with("mtp.") || has(".mtp.") || has("nextn") || (layers > 0 && layer >= layers)) {
        bool draft = false;
        if (m != nullptr)
            for (WeightTensor const& t : m->extra_tensors) draft = draft || t.cls == TensorClass::draft;
        return draft ? TensorClass::draft : TensorClass::mtp;
    }
    if (has("dspark") || has("eagle")) return TensorClass::draft;
    if (has("embed_tokens") || has("token_embd") || has("word_embeddings") || has("tok_embeddings") || has("wte") || name == "embed.weight" ||
        has("backbone.embeddings") || has("embed_in"))
        return TensorClass::embedding;
    if (has("lm_head") || name == "head.weight" || name == "output.weight" || name == "output.scale" || has("embed_out")) return TensorClass::lm_head;
    if (has("shared_expert_gate") || has("ffn_gate_inp")) return TensorClass::router;
    if (has("shared_expert") || has("_shexp") || has("share_expert")) return TensorClass::shared_expert;
    if (has("experts") || has("_exps")) return TensorClass::routed_expert;
    if (has("e_score_correction_bias") || has("router") || has("exp_probs_b") || ends(".gate.weight") || ends(".gate.bias") || has(".gate.tid2eid") ||
        has(".gate.bias_vl") || has("expert_down_proj") || has("expert_up_proj") || has("latent_proj"))
        return TensorClass::router;
    if (has("norm") || has("layernorm") || has("A_log") || has("dt_bias") || has("attn_sink") || has("sinks") || ends(".bias") || has("_res_proj") ||
        ends("ssm_a") || ends("ssm_d") || ends("ssm_dt"))
        return TensorClass::norm;
    bool recurrent = has("linear_attn") || has("mamba") || has("ssm_") || has("conv1d") || has("shortconv");
    if (m != nullptr && layer >= 0 && layer < layers)
        for (Mixer const& x : m->layers[static_cast<std::size_t>(layer)].mixers) recurrent = recurrent || is_recurrent(x);
    bool const ffn = has("mlp") || has("ffn") || has("feed_forward");
    if (recurrent && !ffn && (has("attn") || has("mixer") || has("mamba") || has("conv") || has("ssm") || has("attention"))) return TensorClass::linear_attention;
    if (has("kv_a_proj") || has("q_a_proj") || has("indexer") || has("compressor") || ends("wkv.weight") || ends("wkv.scale") || has("wq_a") ||
        has("attn_kv_a") || has("attn_q_a"))
        return TensorClass::attention_shared;
    if (has("attn") || has("attention") || has("mixer.q_proj") || has("mixer.k_proj") || has("mixer.v_proj") || has("mixer.o_proj")) return TensorClass::attention;
    if (ffn || has("mixer.up_proj") || has("mixer.down_proj")) return TensorClass::dense_ffn;
    return TensorClass::other;
}

namespace detail {

/// Tensors that take more are refused before they are added up: sums stay within 63 bits.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 61;

/// Bits of one value of a safetensors type.
inline std::optional<int> safetensors_bits(std::string_view t) {
    struct Row {
        std::string_view name;
        int bits;
    };
    static constexpr Row rows[] = {{"F64", 64},     {"F32", 32},     {"F16", 16},         {"BF16", 16}, {"I64", 64}, {"U64", 64},  {"I32", 32},
                                   {"U32", 32},     {"I16", 16},     {"U16", 16},         {"I8", 8},    {"U8", 8},   {"BOOL", 8},  {"F8_E4M3", 8},
                                   {"F8_E5M2", 8},  {"F8_E8M0", 8},  {"F8_E4M3FNUZ", 8},  {"F8_E5M2FNUZ", 8},        {"F4", 4},    {"F6_E2M3", 6},
                                   {"F6_E3M2", 6},  {"C64", 64}};
    for (Row const& r : rows)
        if (r.name == t) return r.bits;
    return std::nullopt;
}

/// Reads the JSON of a safetensors header tensor by tensor, without building it.
class SafetensorsSax {
public:
    struct Place {
        std::int64_t begin, end;
    };
    SafetensorsSax(CheckpointBytes& out, std::int64_t data, Model const* model) : out_{&out}, model_{model}, data_{data} {}

    bool null() { return fail_with("null where a tensor is expected"); }
    bool boolean(bool) { return fail_with("true or false where a tensor is expected"); }
    bool number_integer(Json::number_integer_t) { return fail_with("a negative number"); }
    bool number_unsigned(Json::number_unsigned_t v) {
        if (v > (std::uint64_t{1} << 62)) return fail_with("the number " + std::to_string(v));
        auto const n = static_cast<std::int64_t>(v);
        if (list_ == List::shape) {
            if (++shape_count_ > 16) return fail_with("more than 16 dimensions");
            auto const p = checked_mul(product_, n);
            if (!p) return fail_with("a shape beyond 63 bits");
            product_ = *p;
            return true;
        }
        if (list_ == List::offsets && offset_count_ < 2) {
            offsets_[offset_count_++] = n;
            return true;
        }
        return fail_with("a number where none is expected");
    }
    bool number_float(Json::number_float_t, std::string const&) { return fail_with("a fraction"); }
    bool string(std::string& v) {
        if (in_metadata_) return true;
        if (depth_ == 2 && field_ == "dtype") {
            type_ = v;
            return true;
        }
        return fail_with("text where none is expected");
    }
    bool binary(Json::binary_t&) { return false; }
    bool start_object(std::size_t) {
        if (++depth_ > 2) return fail_with("nested deeper than a tensor");
        if (depth_ == 2) {
            in_metadata_ = name_ == "__metadata__";
            type_.clear();
            shape_count_ = 0;
            offset_count_ = 0;
            product_ = 1;
            seen_shape_ = false;
        }
        return true;
    }
    bool key(std::string& k) {
        if (depth_ == 1) {
            name_ = k;
            if (!names_.insert(std::hash<std::string>{}(k)).second) return fail_with("the tensor '" + k.substr(0, 80) + "' occurs twice");
            return true;
        }
        field_ = k;
        return true;
    }
    bool end_object() {
        if (depth_-- == 1) return true;
        if (std::exchange(in_metadata_, false)) return true;
        auto const bits = safetensors_bits(type_);
        if (type_.empty()) return fail_with("dtype is missing");
        if (!bits) return fail_with("the type '" + type_.substr(0, 20) + "' is not known");
        if (offset_count_ != 2 || !seen_shape_) return fail_with("shape or data_offsets is missing");
        auto const [begin, end] = Place{offsets_[0], offsets_[1]};
        if (end < begin) return fail_with("data_offsets run backwards");
        auto const all_bits = checked_mul(product_, *bits);
        if (!all_bits || ceil_div(*all_bits, 8) != end - begin)
            return fail_with(std::to_string(end - begin) + " bytes where its shape and type take " + (all_bits ? std::to_string(ceil_div(*all_bits, 8)) : "more than 63 bits hold"));
        if (end > data_ || end > kMostBytes) return fail_with("it ends at byte " + std::to_string(end) + ", the file has " + std::to_string(data_) + " after its header");
        places_.push_back({begin, end});
        if (out_->payload.value() > kMostBytes) return fail_with("with the ones before it beyond 2 EiB");
        out_->add(classify_tensor(name_, model_), type_, Bytes{end - begin});
        return true;
    }
    bool start_array(std::size_t) {
        if (list_ != List::none || depth_ != 2) return fail_with("a list where none is expected");
        list_ = field_ == "shape" ? List::shape : field_ == "data_offsets" ? List::offsets : List::none;
        if (list_ == List::none) return fail_with("a list where none is expected");
        seen_shape_ = seen_shape_ || list_ == List::shape;
        return true;
    }
    bool end_array() {
        list_ = List::none;
        return true;
    }
    bool parse_error(std::size_t position, std::string const&, nlohmann::detail::exception const&) {
        if (why_.empty()) why_ = "no JSON at byte " + std::to_string(position);
        return false;
    }

    std::vector<Place>& places() { return places_; }
    std::string const& why() const { return why_; }

private:
    enum class List : std::uint8_t { none, shape, offsets };
    bool fail_with(std::string what) {
        why_ = name_.empty() ? std::move(what) : "tensor '" + name_.substr(0, 120) + "': " + std::move(what);
        return false;
    }

    CheckpointBytes* out_;
    Model const* model_;
    std::int64_t data_;   // bytes after the header
    std::vector<Place> places_;
    std::unordered_set<std::size_t> names_;
    std::string name_, field_, type_, why_;
    int depth_ = 0;
    bool in_metadata_ = false, seen_shape_ = false;
    List list_ = List::none;
    int shape_count_ = 0;
    std::size_t offset_count_ = 0;
    std::int64_t product_ = 1;
    std::array<std::int64_t, 2> offsets_{};
};

/// Reads an index: which files there are, and how many tensors.
class IndexSax {
public:
    bool null() { return true; }
    bool boolean(bool) { return true; }
    bool number_integer(Json::number_integer_t) { return true; }
    bool number_unsigned(Json::number_unsigned_t v) {
        if (depth_ == 2 && section_ == "metadata" && field_ == "total_size") total_ = v;
        return true;
    }
    bool number_float(Json::number_float_t v, std::string const&) {
        if (depth_ == 2 && section_ == "metadata" && field_ == "total_size" && v > 0 && v < 9e15) total_ = static_cast<std::uint64_t>(v);
        return true;
    }
    bool string(std::string& v) {
        if (depth_ != 2 || section_ != "weight_map") return true;
        if (v.empty() || v.size() > 255 || v.find_first_of("/\\:") != std::string::npos || v.find('\0') != std::string::npos || v == "." || v == "..") {
            why_ = "the tensor '" + field_.substr(0, 80) + "' is said to be in '" + v.substr(0, 80) + "', which is no plain file name";
            return false;
        }
        files_[v]++;
        return true;
    }
    bool binary(Json::binary_t&) { return false; }
    bool start_object(std::size_t) { return ++depth_ <= 8; }
    bool key(std::string& k) {
        if (depth_ == 1) section_ = k;
        field_ = k;
        if (depth_ == 2 && section_ == "weight_map" && !names_.insert(std::hash<std::string>{}(k)).second) {
            why_ = "the tensor '" + k.substr(0, 80) + "' occurs twice";
            return false;
        }
        return true;
    }
    bool end_object() {
        --depth_;
        return true;
    }
    bool start_array(std::size_t) { return ++arrays_ <= 8; }
    bool end_array() {
        --arrays_;
        return true;
    }
    bool parse_error(std::size_t position, std::string const&, nlohmann::detail::exception const&) {
        if (why_.empty()) why_ = "no JSON at byte " + std::to_string(position);
        return false;
    }

    std::map<std::string, std::int64_t> files_;
    std::optional<std::uint64_t> total_;
    std::string why_;

private:
    std::unordered_set<std::size_t> names_;
    std::string section_, field_;
    int depth_ = 0, arrays_ = 0;
};

/// A little-endian number of the start of `s`.
template <class T>
T little_endian(std::string_view s) {
    T v{};
    std::uint64_t u = 0;
    for (std::size_t i = 0; i < sizeof(T) && i < s.size(); ++i) u |= static_cast<std::uint64_t>(static_cast<unsigned char>(s[i])) << (8 * i);
    std::memcpy(&v, &u, sizeof(T));
    return v;
}

} // namespace detail

/// Adds the tensors of one safetensors file. `head` is the start of the file: at least 8 bytes and the whole
/// header. Errors: bad_format, with the tensor.
inline Result<void> parse_safetensors(std::string_view head, std::int64_t file_size, std::string_view where, CheckpointBytes& out,
                                      Model const* model = nullptr) {
    auto const bad = [&](std::string what, std::string hint = {}) { return fail(ErrorCode::bad_format, std::move(what), std::string{where}, std::move(hint)); };
    if (file_size < 8 || head.size() < 8) return bad("the file has " + std::to_string(file_size) + " bytes", "a safetensors file has at least 8");
    auto const length = detail::little_endian<std::uint64_t>(head);
    if (length > static_cast<std::uint64_t>(file_size) - 8)
        return bad("its header is said to have " + std::to_string(length) + " bytes, the file has " + std::to_string(file_size), "the file is cut, or no safetensors file");
    if (length > kMaxHeaderBytes) return bad("a header of " + std::to_string(length) + " bytes", "at most 512 MiB are read");
    if (head.size() - 8 < length) return bad("the header is cut after " + std::to_string(head.size() - 8) + " of " + std::to_string(length) + " bytes");
    std::string_view const json = head.substr(8, static_cast<std::size_t>(length));
    std::int64_t const data = file_size - 8 - static_cast<std::int64_t>(length);
    CheckpointBytes here;
    detail::SafetensorsSax sax{here, data, model};
    if (!Json::sax_parse(json.begin(), json.end(), &sax)) return bad(sax.why().empty() ? "the header is no JSON object" : sax.why());
    auto& places = sax.places();
    std::sort(places.begin(), places.end(), [](auto const& a, auto const& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
    std::int64_t at = 0;
    for (auto const& p : places) {
        if (p.begin < at) return bad("tensors overlap at byte " + std::to_string(p.begin) + " of the data");
        if (p.begin > at) return bad("no tensor has the bytes from " + std::to_string(at) + " to " + std::to_string(p.begin) + " of the data");
        at = p.end;
    }
    if (at < data) return bad(std::to_string(data - at) + " bytes after the last tensor");
    out.payload += here.payload;
    for (std::size_t k = 0; k < out.by_class.size(); ++k) out.by_class[k] += here.by_class[k];
    std::int64_t const tensors = out.tensors + here.tensors;
    for (auto const& [type, bytes] : here.by_type) {
        auto const slot = std::lower_bound(out.by_type.begin(), out.by_type.end(), type, [](auto const& p, std::string const& t) { return p.first < t; });
        if (slot != out.by_type.end() && slot->first == type)
            slot->second += bytes;
        else
            out.by_type.insert(slot, {type, bytes});
    }
    out.tensors = tensors;
    ++out.files;
    out.on_disk += Bytes{file_size};
    return {};
}

/// The files that an index names, with their numbers of tensors. Errors: bad_format.
struct SafetensorsIndex {
    std::map<std::string, std::int64_t> files;
    std::optional<Bytes> total_size;
};
inline Result<SafetensorsIndex> parse_safetensors_index(std::string_view text, std::string_view where) {
    if (text.size() > kMaxHeaderBytes)
        return fail(ErrorCode::bad_format, "an index of " + std::to_string(text.size()) + " bytes", std::string{where}, "at most 512 MiB are read");
    detail::IndexSax sax;
    if (!Json::sax_parse(text.begin(), text.end(), &sax))
        return fail(ErrorCode::bad_format, sax.why_.empty() ? "the index is nested too deep" : sax.why_, std::string{where});
    if (sax.files_.empty()) return fail(ErrorCode::bad_format, "the index names no file", std::string{where}, "expected weight_map with names of tensors");
    SafetensorsIndex index;
    index.files = std::move(sax.files_);
    if (sax.total_ && *sax.total_ < (std::uint64_t{1} << 62)) index.total_size = Bytes{static_cast<std::int64_t>(*sax.total_)};
    return index;
}

// ---- GGUF -------------------------------------------------------------------------------------------

/// Types of GGUF tensors: values a block, bytes a block.
struct GgmlType {
    std::string_view name;
    std::int64_t block = 0;
    std::int64_t bytes = 0;
};
inline std::optional<GgmlType> ggml_type(std::uint32_t id) {
    // ggml.h, enum ggml_type; gaps are retired types.
    static constexpr GgmlType table[] = {
        {"F32", 1, 4},      {"F16", 1, 2},      {"Q4_0", 32, 18},   {"Q4_1", 32, 20},   {},                 {},                 {"Q5_0", 32, 22},
        {"Q5_1", 32, 24},   {"Q8_0", 32, 34},   {"Q8_1", 32, 36},   {"Q2_K", 256, 84},  {"Q3_K", 256, 110}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176},
        {"Q6_K", 256, 210}, {"Q8_K", 256, 292}, {"IQ2_XXS", 256, 66}, {"IQ2_XS", 256, 74}, {"IQ3_XXS", 256, 98}, {"IQ1_S", 256, 50}, {"IQ4_NL", 32, 18},
        {"IQ3_S", 256, 110}, {"IQ2_S", 256, 82}, {"IQ4_XS", 256, 136}, {"I8", 1, 1},     {"I16", 1, 2},      {"I32", 1, 4},      {"I64", 1, 8},
        {"F64", 1, 8},      {"IQ1_M", 256, 56}, {"BF16", 1, 2},     {},                 {},                 {},                 {"TQ1_0", 256, 54},
        {"TQ2_0", 256, 66}, {},                 {},                 {},                 {"MXFP4", 32, 17}};
    if (id >= std::size(table) || table[id].block == 0) return std::nullopt;
    return table[id];
}

/// What a GGUF header says: metadata that describes the model, and its tensors.
struct GgufHeader {
    Json meta = Json::object();      ///< numbers, texts and flags by key; arrays as {"length": n}, short number arrays whole
    CheckpointBytes bytes;
    std::int64_t header_bytes = 0;   ///< where the data begin
    std::int64_t split_count = 1;
};

/// Reads a GGUF header. `head` is the start of the file; an Error of code missing says that more is needed.
inline Result<GgufHeader> parse_gguf(std::string_view head, std::int64_t file_size, std::string_view where, Model const* model = nullptr) {
    std::size_t at = 0;
    bool cut = false;
    auto const bad = [&](std::string what) { return fail(ErrorCode::bad_format, std::move(what), std::string{where}, "expected a GGUF file of version 2 or 3"); };
    auto const take = [&](std::size_t n) -> std::string_view {
        if (n > head.size() - at) {
            cut = true;
            return {};
        }
        std::string_view const s = head.substr(at, n);
        at += n;
        return s;
    };
    auto const u32 = [&] { return detail::little_endian<std::uint32_t>(take(4)); };
    auto const u64 = [&] { return detail::little_endian<std::uint64_t>(take(8)); };
    auto const text = [&]() -> std::string_view {
        std::uint64_t const n = u64();
        if (cut) return {};
        if (n > (std::uint64_t{1} << 24)) {
            cut = true;
            at = head.size();
            return {};
        }
        return take(static_cast<std::size_t>(n));
    };
    auto const more = [&] { return fail(ErrorCode::missing, "the header is longer than what was read, or the file is cut", std::string{where}); };
    if (head.size() < 24) return bad("the file has " + std::to_string(file_size) + " bytes");
    if (take(4) != "GGUF") return bad("the file does not begin with GGUF");
    std::uint32_t const version = u32();
    if (version != 2 && version != 3) return bad("version " + std::to_string(version));
    std::uint64_t const tensors = u64(), pairs = u64();
    if (tensors > 1000000 || pairs > 100000) return bad(std::to_string(tensors) + " tensors and " + std::to_string(pairs) + " fields");
    GgufHeader h;
    static constexpr std::array<std::size_t, 13> width{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    auto const number = [&](std::uint32_t type) -> Json {
        std::string_view const s = take(width[type]);
        switch (type) {
        case 0: return Json(detail::little_endian<std::uint8_t>(s));
        case 1: return Json(detail::little_endian<std::int8_t>(s));
        case 2: return Json(detail::little_endian<std::uint16_t>(s));
        case 3: return Json(detail::little_endian<std::int16_t>(s));
        case 4: return Json(detail::little_endian<std::uint32_t>(s));
        case 5: return Json(detail::little_endian<std::int32_t>(s));
        case 6: return Json(static_cast<double>(detail::little_endian<float>(s)));
        case 7: return Json(!s.empty() && s[0] != 0);
        case 10: return Json(detail::little_endian<std::uint64_t>(s));
        case 11: return Json(detail::little_endian<std::int64_t>(s));
        default: return Json(detail::little_endian<double>(s));
        }
    };
    for (std::uint64_t i = 0; i < pairs; ++i) {
        std::string const key{text()};
        std::uint32_t const type = u32();
        if (cut) return more();
        if (key.empty() || key.size() > 65535) return bad("a field without a name");
        if (h.meta.contains(key)) return bad("the field '" + key.substr(0, 80) + "' occurs twice");
        if (type == 8) {
            h.meta[key] = Json(std::string{text()});
        } else if (type == 9) {
            std::uint32_t const of = u32();
            std::uint64_t const n = u64();
            if (cut) return more();
            if (of > 12 || of == 9 || n > (std::uint64_t{1} << 28)) return bad("the list '" + key.substr(0, 80) + "' of " + std::to_string(n) + " entries of type " + std::to_string(of));
            if (of == 8) {
                for (std::uint64_t k = 0; k < n && !cut; ++k) (void)text();
                h.meta[key] = Json{{"length", n}};
            } else if (n <= 4096) {
                Json list = Json::array();
                for (std::uint64_t k = 0; k < n && !cut; ++k) list.push_back(number(of));
                h.meta[key] = std::move(list);
            } else {
                (void)take(static_cast<std::size_t>(n) * width[of]);
                h.meta[key] = Json{{"length", n}};
            }
        } else if (type <= 12) {
            h.meta[key] = number(type);
        } else {
            return bad("the field '" + key.substr(0, 80) + "' of type " + std::to_string(type));
        }
        if (cut) return more();
    }
    std::int64_t alignment = 32;
    if (Json const* a = find_member(h.meta, "general.alignment")) alignment = std::clamp<std::int64_t>(json_integer(*a).value_or(32), 1, 1 << 20);
    if (Json const* s = find_member(h.meta, "split.count")) h.split_count = std::clamp<std::int64_t>(json_integer(*s).value_or(1), 1, 10000);
    struct Place {
        std::int64_t begin, end;
    };
    std::vector<Place> places;
    std::unordered_set<std::string> names;
    for (std::uint64_t i = 0; i < tensors; ++i) {
        std::string const name{text()};
        std::uint32_t const dims = u32();
        if (cut) return more();
        if (name.empty() || dims > 4) return bad("tensor " + std::to_string(i) + " with " + std::to_string(dims) + " dimensions");
        if (!names.insert(name).second) return bad("the tensor '" + name.substr(0, 80) + "' occurs twice");
        std::int64_t n = 1, first = 1;
        for (std::uint32_t k = 0; k < dims; ++k) {
            std::uint64_t const d = u64();
            auto const p = d < (std::uint64_t{1} << 62) ? checked_mul(n, static_cast<std::int64_t>(d)) : std::nullopt;
            if (!cut && !p) return bad("the tensor '" + name.substr(0, 80) + "' is beyond 63 bits");
            n = p.value_or(1);
            if (k == 0) first = static_cast<std::int64_t>(d & 0x3fffffffffffffff);
        }
        std::uint32_t const type = u32();
        std::uint64_t const offset = u64();
        if (cut) return more();
        auto const kind = ggml_type(type);
        if (!kind) return fail(ErrorCode::unsupported, "the tensor '" + name.substr(0, 80) + "' has type " + std::to_string(type) + ", which is not known", std::string{where});
        if (first % kind->block != 0) return bad("the tensor '" + name.substr(0, 80) + "' has rows of " + std::to_string(first) + " values, " + std::string{kind->name} + " packs " + std::to_string(kind->block));
        auto const size = checked_mul(n / kind->block, kind->bytes);
        auto const end = size && offset < (std::uint64_t{1} << 62) ? checked_add(static_cast<std::int64_t>(offset), *size) : std::nullopt;
        if (!end || *end > file_size || *end > detail::kMostBytes)
            return bad("the tensor '" + name.substr(0, 80) + "' ends at byte " + (end ? std::to_string(*end) : "2^62 or later") + " of the data, the file has " + std::to_string(file_size));
        places.push_back({static_cast<std::int64_t>(offset), *end});
        if (h.bytes.payload.value() > detail::kMostBytes) return bad("tensors of more than 2 EiB");
        h.bytes.add(classify_tensor(name, model), kind->name, Bytes{*size});
    }
    h.header_bytes = round_up(static_cast<std::int64_t>(at), alignment);
    std::sort(places.begin(), places.end(), [](Place const& a, Place const& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
    std::int64_t end = 0;
    for (Place const& p : places) {
        if (p.begin < end) return bad("tensors overlap at byte " + std::to_string(p.begin) + " of the data");
        end = p.end;
    }
    if (!places.empty() && end > file_size - h.header_bytes)
        return bad("tensors need " + std::to_string(end) + " bytes after a header of " + std::to_string(h.header_bytes) + ", the file has " + std::to_string(file_size));
    h.bytes.files = 1;
    h.bytes.on_disk = Bytes{file_size};
    return h;
}

/// A GGUF's metadata in the words of a Hugging Face config. Errors: unsupported architecture.
inline Result<Json> config_from_gguf(Json const& meta, std::string_view where) {
    Json const* name = find_member(meta, "general.architecture");
    std::string const arch = name == nullptr ? std::string{} : json_text(*name).value_or(std::string{});
    struct Row {
        std::string_view gguf, hf;
    };
    static constexpr Row known[] = {{"llama", "LlamaForCausalLM"},     {"qwen2", "Qwen2ForCausalLM"},     {"qwen3", "Qwen3ForCausalLM"},
                                    {"qwen2moe", "Qwen2MoeForCausalLM"}, {"qwen3moe", "Qwen3MoeForCausalLM"}, {"gemma", "GemmaForCausalLM"},
                                    {"gemma2", "Gemma2ForCausalLM"},   {"gemma3", "Gemma3ForCausalLM"},   {"phi3", "Phi3ForCausalLM"},
                                    {"granite", "GraniteForCausalLM"}, {"olmo2", "Olmo2ForCausalLM"},     {"starcoder2", "Starcoder2ForCausalLM"},
                                    {"glm4moe", "Glm4MoeForCausalLM"}, {"gpt-oss", "GptOssForCausalLM"},  {"deepseek2", "DeepseekV3ForCausalLM"},
                                    {"seed_oss", "SeedOssForCausalLM"}, {"smollm3", "SmolLM3ForCausalLM"}, {"qwen3next", "Qwen3NextForCausalLM"}};
    auto const row = std::find_if(std::begin(known), std::end(known), [&](Row const& r) { return r.gguf == arch; });
    if (row == std::end(known)) {
        std::vector<std::string> names;
        for (Row const& r : known) names.emplace_back(r.gguf);
        std::string const near = did_you_mean(arch, names);
        return fail(ErrorCode::unsupported, arch.empty() ? "general.architecture is missing" : "the GGUF architecture '" + arch.substr(0, 60) + "' is not known",
                    std::string{where}, near.empty() ? "give the config.json of the same model" : near);
    }
    Json c = Json::object();
    c["architectures"] = Json::array({std::string{row->hf}});
    c["model_type"] = arch;
    auto const get = [&](std::string_view key) -> Json const* { return find_member(meta, arch + "." + std::string{key}); };
    auto const copy = [&](std::string_view from, char const* to) {
        if (Json const* v = get(from); v != nullptr && !v->is_array()) c[to] = *v;
    };
    copy("block_count", "num_hidden_layers");
    copy("embedding_length", "hidden_size");
    copy("feed_forward_length", "intermediate_size");
    copy("attention.head_count", "num_attention_heads");
    copy("attention.head_count_kv", "num_key_value_heads");
    copy("attention.key_length", "head_dim");
    copy("context_length", "max_position_embeddings");
    copy("vocab_size", "vocab_size");
    copy("attention.sliding_window", "sliding_window");
    copy("expert_count", "num_experts");
    copy("expert_used_count", "num_experts_per_tok");
    copy("expert_feed_forward_length", "moe_intermediate_size");
    copy("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
    copy("expert_shared_count", "n_shared_experts");
    copy("leading_dense_block_count", "first_k_dense_replace");
    if (arch == "llama" && get("expert_count") != nullptr && json_integer(*get("expert_count")).value_or(0) > 0) c["architectures"] = Json::array({"MixtralForCausalLM"});
    if (arch == "deepseek2") {
        copy("attention.q_lora_rank", "q_lora_rank");
        copy("attention.kv_lora_rank", "kv_lora_rank");
        copy("rope.dimension_count", "qk_rope_head_dim");
        auto const key = get("attention.key_length_mla") != nullptr ? get("attention.key_length_mla") : get("attention.key_length");
        auto const value = get("attention.value_length_mla") != nullptr ? get("attention.value_length_mla") : get("attention.value_length");
        auto const rope = get("rope.dimension_count");
        if (key != nullptr && rope != nullptr) c["qk_nope_head_dim"] = json_integer(*key).value_or(0) - json_integer(*rope).value_or(0);
        if (value != nullptr) c["v_head_dim"] = *value;
        c.erase("head_dim");
        c["num_key_value_heads"] = c.contains("num_attention_heads") ? c["num_attention_heads"] : Json(1);
        c["n_routed_experts"] = c.contains("num_experts") ? c["num_experts"] : Json(0);
    }
    if (!c.contains("vocab_size"))
        if (Json const* tokens = find_member(meta, "tokenizer.ggml.tokens"))
            if (Json const* n = find_member(*tokens, "length")) c["vocab_size"] = *n;
    return c;
}

// ---- Mistral's params.json ----------------------------------------------------------------------------

/// params.json in the words of a Hugging Face config. Errors: bad_format when it is not one.
inline Result<Json> config_from_params(Json const& p, std::string_view where) {
    if (find_member(p, "dim") == nullptr || find_member(p, "n_layers") == nullptr)
        return fail(ErrorCode::bad_format, "dim and n_layers are missing", std::string{where}, "expected Mistral's params.json");
    Json c = Json::object();
    auto const copy = [&](Json const& from, char const* key, char const* to) {
        if (Json const* v = find_member(from, key)) c[to] = *v;
    };
    copy(p, "dim", "hidden_size");
    copy(p, "n_layers", "num_hidden_layers");
    copy(p, "hidden_dim", "intermediate_size");
    copy(p, "n_heads", "num_attention_heads");
    copy(p, "n_kv_heads", "num_key_value_heads");
    copy(p, "head_dim", "head_dim");
    copy(p, "v_head_dim", "v_head_dim");
    copy(p, "vocab_size", "vocab_size");
    copy(p, "tied_embeddings", "tie_word_embeddings");
    copy(p, "sliding_window", "sliding_window");
    for (char const* key : {"max_position_embeddings", "max_seq_len", "model_max_length"})
        if (!c.contains("max_position_embeddings")) copy(p, key, "max_position_embeddings");
    if (!c.contains("max_position_embeddings")) c["max_position_embeddings"] = 131072;
    for (char const* key : {"q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim"}) copy(p, key, key);
    bool const latent = c.contains("kv_lora_rank");
    Json const* moe = find_member(p, "moe");
    c["architectures"] = Json::array({latent ? "MistralLarge3ForCausalLM" : moe != nullptr ? "MixtralForCausalLM" : "MistralForCausalLM"});
    if (moe != nullptr) {
        copy(*moe, "num_experts", latent ? "n_routed_experts" : "num_local_experts");
        copy(*moe, "num_experts_per_tok", "num_experts_per_tok");
        copy(*moe, "expert_hidden_dim", "moe_intermediate_size");
        copy(*moe, "num_shared_experts", "n_shared_experts");
        copy(*moe, "first_k_dense_replace", "first_k_dense_replace");
    }
    if (latent) c.erase("head_dim");
    if (Json const* q = find_member(p, "quantization"); q != nullptr && q->is_object()) {
        Json const* weight = find_member(*q, "qformat_weight");
        if (weight != nullptr && json_text(*weight).value_or("").starts_with("fp8")) c["quantization_config"] = Json{{"quant_method", "fp8"}};
    }
    if (Json const* v = find_member(p, "vision_encoder"); v != nullptr && v->is_object() && find_member(*v, "hidden_size") != nullptr) c["vision_config"] = *v;
    return c;
}

// ---- files ----------------------------------------------------------------------------------------------

namespace detail {

/// The first `want` bytes of a file (fewer where it ends), and its size.
inline Result<std::pair<std::string, std::int64_t>> read_head(std::filesystem::path const& path, std::size_t want) {
    struct Close {
        void operator()(std::FILE* f) const { std::fclose(f); }
    };
    std::error_code ec;
    auto const size = std::filesystem::file_size(path, ec);
    std::unique_ptr<std::FILE, Close> const file{ec ? nullptr : std::fopen(path.string().c_str(), "rb")};
    if (!file) return fail(ErrorCode::missing, "cannot be read", path.string(), "expected a readable file");
    std::string text(static_cast<std::size_t>(std::min<std::uintmax_t>(size, want)), '\0');
    if (std::fread(text.data(), 1, text.size(), file.get()) != text.size()) return fail(ErrorCode::missing, "reading failed", path.string());
    return std::pair{std::move(text), static_cast<std::int64_t>(size)};
}

/// Adds one safetensors file of a folder.
inline Result<void> add_safetensors_file(std::filesystem::path const& path, CheckpointBytes& out, Model const* model) {
    auto start = read_head(path, 8);
    if (!start) return tl::unexpected<Error>{start.error()};
    std::size_t want = 8;
    if (start->first.size() == 8) {
        auto const length = little_endian<std::uint64_t>(start->first);
        if (length <= kMaxHeaderBytes && length <= static_cast<std::uint64_t>(start->second)) want += static_cast<std::size_t>(length);
    }
    auto head = read_head(path, want);
    if (!head) return tl::unexpected<Error>{head.error()};
    return parse_safetensors(head->first, head->second, path.string(), out, model);
}

} // namespace detail

/// Exact bytes of the safetensors files of a folder, or of one file. Errors: missing, bad_format.
inline Result<CheckpointBytes> read_safetensors(std::filesystem::path const& path, Model const* model = nullptr) {
    std::error_code ec;
    CheckpointBytes out;
    if (!std::filesystem::is_directory(path, ec)) {
        if (auto const r = detail::add_safetensors_file(path, out, model); !r) return tl::unexpected<Error>{r.error()};
        return out;
    }
    auto const index_path = path / "model.safetensors.index.json";
    if (!std::filesystem::exists(index_path, ec)) {
        auto const single = path / "model.safetensors";
        if (!std::filesystem::exists(single, ec))
            return fail(ErrorCode::missing, "no model.safetensors and no model.safetensors.index.json", path.string(), "expected a checkpoint folder");
        if (auto const r = detail::add_safetensors_file(single, out, model); !r) return tl::unexpected<Error>{r.error()};
        return out;
    }
    auto const size = std::filesystem::file_size(index_path, ec);
    if (ec || size > kMaxHeaderBytes)
        return fail(ErrorCode::bad_format, "an index of " + std::to_string(size) + " bytes", index_path.string(), "at most 512 MiB are read");
    auto const text = detail::read_head(index_path, kMaxHeaderBytes);
    if (!text) return tl::unexpected<Error>{text.error()};
    auto const index = parse_safetensors_index(text->first, index_path.string());
    if (!index) return tl::unexpected<Error>{index.error()};
    for (auto const& [file, tensors] : index->files) {
        std::int64_t const before = out.tensors;
        if (auto const r = detail::add_safetensors_file(path / file, out, model); !r) return tl::unexpected<Error>{r.error()};
        if (out.tensors - before < tensors)
            return fail(ErrorCode::bad_format, "the index names " + std::to_string(tensors) + " tensors, the file has " + std::to_string(out.tensors - before),
                        (path / file).string());
    }
    return out;
}

/// A GGUF file with its parts ("-00001-of-00003.gguf"): the header of the first, the bytes of all.
inline Result<GgufHeader> read_gguf(std::filesystem::path const& path, Model const* model = nullptr) {
    auto const one = [&](std::filesystem::path const& file) -> Result<GgufHeader> {
        for (std::size_t want = std::size_t{4} << 20;; want *= 4) {
            auto const head = detail::read_head(file, want);
            if (!head) return tl::unexpected<Error>{head.error()};
            auto parsed = parse_gguf(head->first, head->second, file.string(), model);
            if (parsed || parsed.error().code != ErrorCode::missing) return parsed;
            if (static_cast<std::int64_t>(want) >= head->second || want >= kMaxHeaderBytes)
                return fail(ErrorCode::bad_format, "the file is cut within its header", file.string());
        }
    };
    auto first = one(path);
    if (!first || first->split_count == 1) return first;
    std::string const name = path.filename().string();
    auto const mark = name.rfind("-of-");
    if (mark == std::string::npos || mark < 6) return fail(ErrorCode::bad_format, "a part of " + std::to_string(first->split_count) + " whose name has no number", path.string());
    for (std::int64_t k = 1; k <= first->split_count; ++k) {
        std::string digits = std::to_string(k);
        digits.insert(0, 5 - std::min<std::size_t>(5, digits.size()), '0');
        std::string const other = name.substr(0, mark - 5) + digits + name.substr(mark);
        if (other == name) continue;
        auto const part = one(path.parent_path() / other);
        if (!part) return tl::unexpected<Error>{part.error()};
        for (auto const& [type, bytes] : part->bytes.by_type) {
            auto const slot = std::lower_bound(first->bytes.by_type.begin(), first->bytes.by_type.end(), type, [](auto const& p, std::string const& t) { return p.first < t; });
            if (slot != first->bytes.by_type.end() && slot->first == type)
                slot->second += bytes;
            else
                first->bytes.by_type.insert(slot, {type, bytes});
        }
        first->bytes.payload += part->bytes.payload;
        for (std::size_t c = 0; c < first->bytes.by_class.size(); ++c) first->bytes.by_class[c] += part->bytes.by_class[c];
        first->bytes.tensors += part->bytes.tensors;
        first->bytes.files += 1;
        first->bytes.on_disk += part->bytes.on_disk;
    }
    return first;
}

namespace detail {

inline void take_exact_bytes(Model& m, CheckpointBytes const& b) {
    for (int c = 0; c < kTensorClasses; ++c)
        if (b.by_class[static_cast<std::size_t>(c)].value() > 0) m.exact_bytes.push_back({static_cast<TensorClass>(c), b.by_class[static_cast<std::size_t>(c)]});
    m.checkpoint_bytes = b.on_disk;
}

} // namespace detail

/// A model from a checkpoint: a folder with config.json (or params.json) and safetensors files, a folder or
/// file of GGUF, or a config.json alone. The bytes by class are those of the headers, where there are any.
inline Result<Model> load_checkpoint(std::filesystem::path const& path, ConfigOptions const& options = {}) {
    std::error_code ec;
    auto const small_file = [&](std::filesystem::path const& file) -> Result<Json> {
        auto const head = detail::read_head(file, (std::size_t{16} << 20) + 1);
        if (!head) return tl::unexpected<Error>{head.error()};
        return parse_json(head->first, file.string(), {.bytes = 16u << 20, .depth = 48});
    };
    auto const named = [&](Result<Model> m, std::filesystem::path const& of) {
        if (m) {
            m->id = path.string();
            m->display_name = detail::display_name(of.filename().string());
            m->source = "the checkpoint's own files";
        }
        return m;
    };
    if (!std::filesystem::exists(path, ec)) return fail(ErrorCode::missing, "there is no such file or folder", path.string(), "expected a config.json or a checkpoint folder");
    std::filesystem::path gguf;
    if (std::filesystem::is_directory(path, ec)) {
        bool const config = std::filesystem::exists(path / "config.json", ec), params = std::filesystem::exists(path / "params.json", ec);
        if (config || params) {
            auto const file = path / (config ? "config.json" : "params.json");
            auto root = small_file(file);
            if (!root) return tl::unexpected<Error>{root.error()};
            if (!config) {
                root = config_from_params(*root, file.string());
                if (!root) return tl::unexpected<Error>{root.error()};
            }
            auto m = named(model_from_json(*root, file.string(), options), std::filesystem::absolute(path, ec));
            if (!m) return m;
            if (std::filesystem::exists(path / "model.safetensors.index.json", ec) || std::filesystem::exists(path / "model.safetensors", ec)) {
                auto const bytes = read_safetensors(path, &*m);
                if (!bytes) return tl::unexpected<Error>{bytes.error()};
                detail::take_exact_bytes(*m, *bytes);
            }
            return m;
        }
        std::vector<std::filesystem::path> found;
        for (auto it = std::filesystem::directory_iterator(path, ec); !ec && it != std::filesystem::directory_iterator{}; it.increment(ec))
            if (it->path().extension() == ".gguf") found.push_back(it->path());
        std::sort(found.begin(), found.end());
        if (found.empty()) return fail(ErrorCode::missing, "no config.json, params.json or GGUF file", path.string(), "expected a checkpoint folder");
        gguf = found.front();
    } else if (path.extension() == ".gguf") {
        gguf = path;
    }
    if (!gguf.empty()) {
        auto first = read_gguf(gguf);
        if (!first) return tl::unexpected<Error>{first.error()};
        auto const config = config_from_gguf(first->meta, gguf.string());
        if (!config) return tl::unexpected<Error>{config.error()};
        auto m = named(model_from_json(*config, gguf.string(), options), gguf.stem());
        if (!m) return m;
        // A head of its own, or the embedding once more.
        m->tied_embeddings = first->bytes.by_class[static_cast<std::size_t>(TensorClass::lm_head)].value() == 0;
        std::string label;
        Bytes most{};
        for (auto const& [type, bytes] : first->bytes.by_type)
            if (bytes > most) {
                most = bytes;
                label = to_lower(type);
            }
        m->quant.label = "gguf:" + label;
        detail::take_exact_bytes(*m, first->bytes);
        return m;
    }
    auto const root = small_file(path);
    if (!root) return tl::unexpected<Error>{root.error()};
    auto m = model_from_json(*root, path.string(), options);
    if (m && m->id == path.string()) {
        auto const folder = std::filesystem::absolute(path, ec).parent_path().filename().string();
        std::string const stem = path.stem().string();
        m->display_name = detail::display_name(stem == "config" && !folder.empty() ? folder : stem);
    }
    return m;
}

} // namespace servecap
