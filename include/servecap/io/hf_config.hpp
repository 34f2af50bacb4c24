// servecap: a Hugging Face config.json as a Model
// SPDX-License-Identifier: Apache-2.0
//
// Reads what describes the shape of a model: nested text_config, quantization blocks, layer lists and
// patterns, towers. The catalogue's cards are such files with fields of their own that start with an
// underscore: _source, _confidence, _inferred, _notes, _checks, _id, _recommended, _licence, _api,
// _extra_weights. An architecture that is not known is refused by name, with the nearest known one;
// ConfigOptions::assume_gqa reads it as a plain decoder and marks the model as inferred. No exception
// leaves this header; malformed text and impossible sizes are Errors with the field and what was expected.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/catalog/model.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/io/hf_families.hpp>
#include <servecap/io/hf_quant.hpp>
#include <servecap/io/hf_vision.hpp>
#include <servecap/io/json.hpp>
#include <servecap/memory/weights.hpp>

namespace servecap {

struct ConfigOptions {
    bool assume_gqa = false; ///< read an unknown architecture as a plain decoder with grouped attention
};

namespace detail {

/// The part of the file that describes the language model.
inline Json const& text_part(Json const& root, std::string& path) {
    for (std::string_view const key : {"text_config", "llm_config", "language_config"})
        if (Json const* part = find_member(root, key); part != nullptr && part->is_object()) {
            path = key;
            return *part;
        }
    return root;
}

inline std::string first_architecture(Json const& part) {
    Json const* list = find_member(part, "architectures");
    if (list == nullptr || !list->is_array() || list->empty()) return {};
    return json_text(*list->begin()).value_or(std::string{});
}

inline Family const* family_of_architecture(std::string_view name) {
    for (Family const& f : kFamilies)
        if (f.architecture == name) return &f;
    return nullptr;
}
inline Family const* family_of_type(std::string_view type) {
    for (Family const& f : kFamilies)
        if (!type.empty() && f.model_type == type) return &f;
    return nullptr;
}

/// The family of a config, or the Error that names what is not known.
inline Result<Family const*> find_family(Json const& root, Json const& text, std::string const& where) {
    std::string const arch = first_architecture(root);
    std::string const inner = &text == &root ? std::string{} : first_architecture(text);
    auto const type_of = [](Json const& part) {
        Json const* t = find_member(part, "model_type");
        return t == nullptr ? std::string{} : json_text(*t).value_or(std::string{});
    };
    std::string const type = type_of(text);
    bool const wrapper = std::find(std::begin(kWrappers), std::end(kWrappers), arch) != std::end(kWrappers);
    if (!wrapper)
        if (Family const* f = family_of_architecture(arch)) return f;
    if (arch.empty() || wrapper) {
        if (Family const* f = family_of_architecture(inner)) return f;
        if (Family const* f = family_of_type(type)) return f;
        if (Family const* f = family_of_type(type_of(root))) return f;
    }
    std::vector<std::string> known;
    for (Family const& f : kFamilies) known.emplace_back(f.architecture);
    std::string const asked = !arch.empty() ? arch : type;
    if (asked.empty())
        return fail(ErrorCode::missing, "architectures: the field is missing, and so is model_type", where,
                    "expected the config.json of a language model");
    auto const near = nearest_names(asked, known, 1);
    std::string what = "the architecture '" + asked.substr(0, 80) + "'";
    if (!type.empty() && type != asked) what += " (model_type '" + type.substr(0, 80) + "')";
    return fail(ErrorCode::unsupported, what + " is not known, so its attention is not either", where,
                (near.empty() ? std::string{} : "nearest known: " + near[0] + "; ") +
                    "--assume gqa reads it as plain grouped attention and marks the result");
}

/// "moonshotai/Kimi-K3" -> "Kimi K3".
inline std::string display_name(std::string_view id) {
    auto const slash = id.rfind('/');
    std::string s{slash == std::string_view::npos ? id : id.substr(slash + 1)};
    std::replace(s.begin(), s.end(), '-', ' ');
    std::replace(s.begin(), s.end(), '_', ' ');
    return s;
}

inline Format read_dtype(Config& c) {
    std::string const t = c.t.text({"dtype", "torch_dtype"}, c.root.text({"dtype", "torch_dtype"}, "bfloat16"));
    if (t == "float16" || t == "half") return Format::fp16;
    // Engines load float32 checkpoints in 16 bits unless told otherwise.
    return Format::bf16;
}

/// Longest context: max_position_embeddings; YaRN stretches the original length by its factor.
inline Tokens read_context(Config& c) {
    auto const most = std::int64_t{1} << 40;
    auto n = c.t.integer({"max_position_embeddings", "model_max_length", "max_sequence_length", "seq_length", "n_positions"}, 1, most, 0);
    for (std::string_view const key : {"rope_scaling", "rope_parameters"}) {
        Json const* rope = c.t.find({key});
        if (rope == nullptr || !rope->is_object()) continue;
        auto const kind = [&](std::string_view k) {
            Json const* v = find_member(*rope, k);
            return v == nullptr ? std::string{} : json_text(*v).value_or(std::string{});
        };
        if (kind("type") != "yarn" && kind("rope_type") != "yarn") continue;
        Json const* factor = find_member(*rope, "factor");
        Json const* original = find_member(*rope, "original_max_position_embeddings");
        if (factor == nullptr || original == nullptr) continue;
        auto const f = json_number(*factor);
        auto const o = json_integer(*original);
        if (f && o && *f >= 1 && *f < 1e6 && *o > 0 && *o < (std::int64_t{1} << 32))
            n = std::max(n, static_cast<std::int64_t>(*f * static_cast<double>(*o)));
    }
    if (n == 0 && !c.failed()) c.t.mistake(ErrorCode::missing, "max_position_embeddings", "the field is missing", "expected the longest context");
    return Tokens{n};
}

/// num_hidden_layers, or the length of the pattern that names every layer (Nemotron-H).
inline std::int32_t read_layer_count(Config& c) {
    std::optional<std::int32_t> listed;
    if (Json const* pattern = c.t.find({"hybrid_override_pattern", "layers_block_type"})) {
        auto const letters = json_text(*pattern);
        std::size_t const n = letters ? letters->size() : pattern->is_array() ? pattern->size() : 0;
        if (n > 0 && n <= static_cast<std::size_t>(kMaxLayers)) listed = static_cast<std::int32_t>(n);
    }
    return c.t.size({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, kMaxLayers, listed);
}

/// Tables of cosines and sines: positions x rotary width x 2 bytes, one for each kind of rotation. vLLM makes
/// them for the longest context, times the factor of linear scaling, four times for mixed text and image
/// positions; the V4 line keeps two in fp32 (window and compressed entries).
inline Bytes rope_table_bytes(Config& c) {
    Model const& m = c.m;
    if (c.t.flag({"mla_use_nope"}, false) || c.t.text({"position_embedding_type"}, "") == "nope" || m.architecture == "JambaForCausalLM" ||
        m.architecture == "NemotronHForCausalLM" || (m.architecture == "Zamba2ForCausalLM" && !c.t.flag({"use_mem_rope"}, false)))
        return {};
    Json const* rope = c.t.find({"rope_parameters", "rope_scaling"});
    auto const of_rope = [&](std::string_view key) -> std::optional<double> {
        Json const* v = rope == nullptr ? nullptr : find_member(*rope, key);
        return v == nullptr ? std::nullopt : json_number(*v);
    };
    double part = of_rope("partial_rotary_factor").value_or(1.0);
    if (Json const* v = c.t.find({"partial_rotary_factor"})) part = json_number(*v).value_or(part);
    if (!(part > 0 && part <= 1)) part = 1.0;
    std::int64_t const given = c.t.integer({"rotary_dim"}, 0, kMaxHeadDim, 0);
    auto const width = [&](std::int64_t head) { return given > 0 && given <= head ? given : static_cast<std::int64_t>(part * static_cast<double>(head)); };
    std::int64_t full = 0, local = 0;
    bool fp32_pair = false;
    for (Layer const& l : m.layers)
        for (Mixer const& x : l.mixers) {
            if (auto const* a = std::get_if<Gqa>(&x)) full = width(a->head_dim);
            if (auto const* a = std::get_if<ChunkedLocal>(&x)) full = width(a->attn.head_dim);
            if (auto const* a = std::get_if<SlidingWindow>(&x)) local = width(a->attn.head_dim);
            if (auto const* a = std::get_if<Mla>(&x)) full = a->qk_rope;
            if (auto const* a = std::get_if<SparseIndexed>(&x)) {
                auto const* mla = std::get_if<Mla>(&a->base);
                auto const* gqa = std::get_if<Gqa>(&a->base);
                full = mla != nullptr ? mla->qk_rope : gqa != nullptr ? width(gqa->head_dim) : full;
            }
            if (auto const* a = std::get_if<Compressed>(&x)) {
                full = a->qk_rope;
                fp32_pair = true;
            }
        }
    std::int64_t const positions = m.max_context.value();
    if (fp32_pair) return Bytes{2 * 4 * full * positions};
    double const linear = rope != nullptr && (find_member(*rope, "rope_type") != nullptr || find_member(*rope, "type") != nullptr) &&
                                  (json_text(*(find_member(*rope, "rope_type") != nullptr ? find_member(*rope, "rope_type")
                                                                                        : find_member(*rope, "type"))) == "linear")
                              ? std::clamp(of_rope("factor").value_or(1.0), 1.0, 1024.0)
                              : 1.0;
    bool const mixed = m.architecture.starts_with("Qwen2VL") || m.architecture.starts_with("Qwen2_5_VL") || m.architecture.starts_with("Qwen3VL") ||
                       m.architecture.starts_with("Qwen3_5") || m.architecture.starts_with("Qwen4");
    bool const two = m.architecture.starts_with("Gemma3") || m.architecture.starts_with("Gemma4") || m.architecture.starts_with("MiMo");
    std::int64_t const rows = static_cast<std::int64_t>(linear * static_cast<double>(positions)) * (mixed ? 4 : 1);
    std::int64_t bytes = 2 * full * rows;
    if (local > 0 && (two || local != full)) bytes += 2 * local * positions;
    return Bytes{bytes};
}

inline std::optional<Format> format_of_name(std::string_view s) {
    if (s == "float32" || s == "fp32" || s == "f32") return Format::fp32;
    if (s == "bfloat16" || s == "bf16") return Format::bf16;
    if (s == "float16" || s == "fp16" || s == "f16") return Format::fp16;
    return std::nullopt;
}

inline std::optional<TensorClass> class_of_name(std::string_view s) {
    for (int i = 0; i < kTensorClasses; ++i)
        if (to_string(static_cast<TensorClass>(i)) == s) return static_cast<TensorClass>(i);
    return std::nullopt;
}

/// The card's own fields.
inline void read_annotations(Config& c) {
    FieldReader const& r = c.root;
    Model& m = c.m;
    m.source = r.text({"_source"}, "");
    m.confidence = r.text({"_confidence"}, m.source.empty() ? "read" : "");
    m.notes = r.text({"_notes"}, "");
    m.id = r.text({"_id"}, m.id);
    m.display_name = r.text({"_display_name"}, display_name(m.id));
    for (std::string& f : r.texts({"_inferred"})) m.inferred.push_back(f == "all" ? "*" : std::move(f));
    for (std::string& f : r.texts({"_api"})) m.api_names.push_back(std::move(f));
    auto const pairs = [&](std::string_view key, auto const& take) {
        Json const* list = r.find({key});
        if (list == nullptr) return;
        if (!list->is_array()) {
            r.mistake(ErrorCode::bad_value, key, show_json(*list) + " is not usable", "expected a list of objects");
            return;
        }
        for (Json const& item : *list) {
            FieldReader const one{item, r.file(), std::string{key}, c.error};
            take(one);
        }
    };
    pairs("_recommended", [&](FieldReader const& one) {
        m.recommended.push_back({one.text({"gpu"}, ""), one.text({"layout"}, ""), one.text({"source"}, "")});
    });
    pairs("_licence", [&](FieldReader const& one) { m.licence.push_back({one.text({"text"}, ""), one.text({"source"}, "")}); });
    pairs("_extra_weights", [&](FieldReader const& one) {
        std::string const name = one.text({"class"}, "");
        auto const cls = class_of_name(name);
        auto const f = format_of_name(one.text({"format"}, "bf16"));
        auto const n = one.integer({"params"}, 1, std::int64_t{1} << 44);
        if (!cls || !f) {
            one.mistake(ErrorCode::bad_value, cls ? "format" : "class", "'" + (cls ? one.text({"format"}, "") : name) + "' is not usable");
            return;
        }
        m.extra_tensors.push_back(extra(*cls, Shard::replicated, -1, "extra", n, 1, {*f}));
    });
    if (Json const* checks = r.find({"_checks"}); checks != nullptr && checks->is_object())
        for (auto const& [key, value] : *checks->template get_ptr<Json::object_t const*>()) {
            if (auto const n = json_number(value)) m.checks.push_back({key, *n});
        }
    for (CardCheck const& k : m.checks) {
        if (k.name == "params_published_number" && k.value > 0 && k.value < 9e15)
            m.published_params = Params{static_cast<std::int64_t>(k.value)};
        if ((k.name == "safetensors_files_bytes" || k.name == "repo_bytes" || (k.name == "safetensors_payload_bytes" && !m.checkpoint_bytes)) &&
            k.value > 0 && k.value < 9e15)
            m.checkpoint_bytes = Bytes{static_cast<std::int64_t>(k.value)};
    }
}

} // namespace detail

/// Makes a Model from a parsed config. Errors as model_from_config, but for those of the text.
inline Result<Model> model_from_json(Json const& root, std::string_view name, ConfigOptions const& options = {}) {
    using namespace detail;
    std::string const where{name};
    if (!root.is_object()) return fail(ErrorCode::bad_format, "the file holds " + std::string{root.type_name()}, where, "expected a JSON object");

    std::string path;
    Json const& text = text_part(root, path);
    std::optional<Error> error;
    Model m;
    Config c{FieldReader{text, where, path, error}, FieldReader{root, where, "", error}, m, error};

    auto family = find_family(root, text, where);
    if (!family && !(options.assume_gqa && family.error().code == ErrorCode::unsupported)) return tl::unexpected<Error>{family.error()};
    m.architecture = first_architecture(root);
    if (m.architecture.empty()) m.architecture = family ? std::string{(*family)->architecture} : first_architecture(text);
    m.model_type = c.root.text({"model_type"}, "");
    m.id = where;
    m.hidden = c.t.size({"hidden_size", "n_embd", "d_model", "dim"}, kMaxWidth);
    m.vocab = c.t.integer({"vocab_size", "padded_vocab_size"}, 1, 1 << 28, c.root.has("vocab_size") ? std::optional<std::int64_t>{c.root.integer({"vocab_size"}, 1, 1 << 28)} : std::nullopt);
    m.dtype = read_dtype(c);
    m.max_context = read_context(c);
    bool const ties_by_default = m.architecture.starts_with("Gemma") || m.architecture.starts_with("Cohere");
    m.tied_embeddings = c.t.flag({"tie_word_embeddings", "tie_embedding"}, c.root.flag({"tie_word_embeddings"}, ties_by_default));
    std::int32_t const layers = read_layer_count(c);
    if (error) return tl::unexpected<Error>{*std::move(error)};
    m.layers.resize(static_cast<std::size_t>(layers));
    for (WeightFormat& f : m.quant.of) f.format = m.dtype;

    if (family) {
        (*family)->build(c);
    } else {
        build_llama(c);
        m.inferred.emplace_back("attention (assumed to be plain grouped attention: the architecture is not known)");
    }
    if (!error && std::all_of(m.layers.begin(), m.layers.end(), [](Layer const& l) { return l.mixers.empty(); }))
        c.t.mistake(ErrorCode::unsupported, "num_hidden_layers", "no layer has attention or a state", "expected a model that generates text");
    for (Layer const& l : m.layers)
        if (auto const* e = l.ffn ? std::get_if<Moe>(&*l.ffn) : nullptr; e != nullptr && e->top_k > e->experts + e->zero_experts)
            c.t.mistake(ErrorCode::bad_value, "num_experts_per_tok", std::to_string(e->top_k) + " of " + std::to_string(e->experts) + " experts",
                        "expected no more than there are");
    if (error) return tl::unexpected<Error>{*std::move(error)};

    // Quantization stands at the root or in the text part.
    Json const* quant = find_member(root, "quantization_config");
    if (quant == nullptr) quant = find_member(text, "quantization_config");
    m.quant.label = std::string{to_string(m.dtype)};
    if (quant != nullptr && quant->is_object() && !quant->empty()) {
        FieldReader const q{*quant, where, "quantization_config", error};
        QuantRules rules = read_quant_rules(q, error);
        if (error) return tl::unexpected<Error>{*std::move(error)};
        bool const v4 = m.architecture == "DeepseekV4ForCausalLM" || m.architecture == "DeepseekV41ForCausalLM";
        if (v4)
            for (QuantGroup& g : rules.groups)
                if (g.format.format == Format::fp8_block) g.format.scale_bytes = 1;
        if (v4 && c.t.text({"expert_dtype"}, c.root.text({"expert_dtype"}, "")) == "fp4" && !rules.experts)
            rules.experts = WeightFormat{Format::mxfp4};
        apply_quant_rules(rules, m);
    }
    std::string const state = c.t.text({"mamba_ssm_cache_dtype", "mamba_ssm_dtype"}, "");
    if (!state.empty()) m.state_dtype = format_of_name(state);

    if (!add_vision(c)) m.inferred.emplace_back("vision_config (a tower of this kind is not modelled; its weights are left out)");
    m.rope_tables = rope_table_bytes(c);
    read_annotations(c);
    if (error) return tl::unexpected<Error>{*std::move(error)};
    if (!sizes_are_sane(weight_tensors(m)))
        return fail(ErrorCode::overflow, "the sizes multiply to more than 63 bits hold", where, "a real config is far below that");
    return m;
}

/// Makes a Model from the text of a config.json (or of a catalogue card). `name` is its catalogue name, HF
/// id or path. Errors: bad_format (not JSON, repeated keys, too deep), missing or bad_value (a field),
/// unsupported (architecture, attention kind, quantization), overflow (sizes beyond 63 bits).
inline Result<Model> model_from_config(std::string_view json_text, std::string_view name, ConfigOptions const& options = {}) {
    auto const root = parse_json(json_text, name, {.bytes = 16u << 20, .depth = 48});
    if (!root) return tl::unexpected<Error>{root.error()};
    return model_from_json(*root, name, options);
}

} // namespace servecap
