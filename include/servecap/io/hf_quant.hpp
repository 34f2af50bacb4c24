// servecap: what a checkpoint's quantization block says about each group of tensors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the `quantization_config` of a Hugging Face config: fp8 (per tensor or in blocks, also with fp4
// experts), mxfp4, compressed-tensors, ModelOpt (FP8, NVFP4, mixed), Quark, AWQ, GPTQ, bitsandbytes. Lists
// of names that stay unquantised come as plain names, globs ("model.layers.*.self_attn") or regular
// expressions ("re:.*self_attn.*"); they are tried on the names that tensors of a class have in
// checkpoints, layer by layer, so that a few layers kept in bf16 are seen. Embeddings, routers, norms and
// towers stay in the model's dtype, as engines load them. A method that is not known is an error.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <servecap/catalog/model.hpp>
#include <servecap/core/text.hpp>
#include <servecap/io/json.hpp>

namespace servecap::detail {

/// A small regular expression: literals, ., classes, groups with |, * + ?, anchors, \d \w. Matches at the
/// start of the text (as Python's re.match does); nothing when the expression is not understood. Runs in
/// time proportional to pattern times text (a set of states, no backtracking).
class MiniRegex {
public:
    static std::optional<MiniRegex> parse(std::string_view pattern) {
        MiniRegex r;
        Parser p{pattern, r};
        p.alternatives(0);
        r.code_.push_back({Op::match, 0, 0, 0});
        if (p.bad || p.at != pattern.size() || r.code_.size() > 4000) return std::nullopt;
        return r;
    }
    [[nodiscard]] bool match(std::string_view text) const {
        std::vector<std::int32_t> now, next, todo;
        std::vector<std::size_t> mark(code_.size(), std::string_view::npos);
        now.push_back(0);
        for (std::size_t at = 0;; ++at) {
            // Follow the steps that take no character.
            next.clear();
            todo.assign(now.rbegin(), now.rend());
            while (!todo.empty()) {
                std::int32_t const pc = todo.back();
                todo.pop_back();
                auto const k = static_cast<std::size_t>(pc);
                if (mark[k] == at) continue;
                mark[k] = at;
                Step const& s = code_[k];
                switch (s.op) {
                case Op::match: return true;
                case Op::jump: todo.push_back(pc + s.a); break;
                case Op::split:
                    todo.push_back(pc + s.b);
                    todo.push_back(pc + s.a);
                    break;
                case Op::begin:
                    if (at == 0) todo.push_back(pc + 1);
                    break;
                case Op::end:
                    if (at == text.size()) todo.push_back(pc + 1);
                    break;
                case Op::character:
                    if (at < text.size() && text[at] == s.c) next.push_back(pc + 1);
                    break;
                case Op::any:
                    if (at < text.size()) next.push_back(pc + 1);
                    break;
                case Op::set:
                    if (at < text.size() && (sets_[static_cast<std::size_t>(s.a)].find(text[at]) != std::string::npos) != (s.b != 0))
                        next.push_back(pc + 1);
                    break;
                }
            }
            if (next.empty() || at == text.size()) return false;
            now.swap(next);
        }
    }

private:
    enum class Op : std::uint8_t { character, any, set, begin, end, split, jump, match };
    struct Step {
        Op op{};
        char c = 0;
        std::int32_t a = 0, b = 0; // jump and split: distances; set: index and "negated"
    };
    struct Parser {
        std::string_view pattern;
        MiniRegex& out;
        std::size_t at = 0;
        bool bad = false;

        void alternatives(int depth) {
            if (depth > 16 || out.code_.size() > 4000) bad = true;
            std::size_t const start = out.code_.size();
            std::vector<std::size_t> exits;
            std::size_t branch = start;
            while (!bad && at < pattern.size() && pattern[at] != ')') {
                if (pattern[at] != '|') {
                    atom(depth);
                    continue;
                }
                ++at;
                out.code_.push_back({Op::jump, 0, 0, 0});
                exits.push_back(out.code_.size() - 1);
                out.code_.insert(out.code_.begin() + static_cast<std::ptrdiff_t>(branch), {Op::split, 0, 1, 0});
                for (std::size_t& e : exits)
                    if (e >= branch) ++e;
                out.code_[branch].b = static_cast<std::int32_t>(out.code_.size() - branch);
                branch = out.code_.size();
            }
            for (std::size_t const e : exits) out.code_[e].a = static_cast<std::int32_t>(out.code_.size() - e);
        }
        void atom(int depth) {
            std::size_t const start = out.code_.size();
            Step s;
            char const c = pattern[at++];
            if (c == '(') {
                if (pattern.substr(at).starts_with("?:"))
                    at += 2;
                else if (pattern.substr(at).starts_with("?"))
                    bad = true;
                alternatives(depth + 1);
                if (at < pattern.size() && pattern[at] == ')')
                    ++at;
                else
                    bad = true;
            } else if (c == '[') {
                s.op = Op::set;
                s.a = static_cast<std::int32_t>(out.sets_.size());
                std::string set;
                if (at < pattern.size() && pattern[at] == '^') {
                    s.b = 1;
                    ++at;
                }
                while (at < pattern.size() && pattern[at] != ']') {
                    char a = pattern[at++];
                    if (a == '\\' && at < pattern.size()) a = pattern[at++];
                    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
                        char const b = pattern[at + 1];
                        at += 2;
                        for (int k = a; k <= b; ++k) set += static_cast<char>(k);
                    } else {
                        set += a;
                    }
                }
                if (at < pattern.size())
                    ++at;
                else
                    bad = true;
                out.sets_.push_back(std::move(set));
                out.code_.push_back(s);
            } else if (c == '\\') {
                char const e = at < pattern.size() ? pattern[at++] : 'x';
                if (e == 'd' || e == 'w') {
                    s.op = Op::set;
                    s.a = static_cast<std::int32_t>(out.sets_.size());
                    out.sets_.emplace_back(e == 'd' ? "0123456789" : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
                } else if ((e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z')) {
                    bad = true;
                } else {
                    s.c = e;
                }
                out.code_.push_back(s);
            } else if (c == '*' || c == '+' || c == '?' || c == '{') {
                bad = true;
            } else {
                s.op = c == '.' ? Op::any : c == '^' ? Op::begin : c == '$' ? Op::end : Op::character;
                s.c = c;
                out.code_.push_back(s);
            }
            if (bad || at == pattern.size()) return;
            char const q = pattern[at];
            if (q != '*' && q != '+' && q != '?') return;
            ++at;
            if (at < pattern.size() && pattern[at] == '?') ++at; // lazy: the same answer to "does it match"
            auto const length = static_cast<std::int32_t>(out.code_.size() - start);
            if (q == '+') {
                out.code_.push_back({Op::split, 0, -length, 1});
                return;
            }
            out.code_.insert(out.code_.begin() + static_cast<std::ptrdiff_t>(start), {Op::split, 0, 1, length + (q == '*' ? 2 : 1)});
            if (q == '*') out.code_.push_back({Op::jump, 0, -(length + 1), 0});
        }
    };

    std::vector<Step> code_;
    std::vector<std::string> sets_;
};

/// `pattern` with * (any characters) and ? against the whole of `text`.
constexpr bool glob_match(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// What checkpoints call the place where the layers are.
inline constexpr std::array<std::string_view, 5> kLayerPrefixes{"model.layers.", "model.language_model.layers.",
                                                                "language_model.model.layers.", "backbone.layers.", "layers."};

/// A module name without what stands before "layers.".
inline std::string_view bare_name(std::string_view name) {
    for (std::string_view const prefix : kLayerPrefixes)
        if (name.starts_with(prefix)) return name.substr(prefix.size() - std::string_view{"layers."}.size());
    if (name.starts_with("language_model.")) return name.substr(15);
    return name;
}

/// A list of module names, globs and regular expressions. Keeps views: the texts must outlive it.
class NameRules {
public:
    /// False: a regular expression is not understood.
    bool add(std::string_view text) {
        if (text.starts_with("re:")) {
            auto r = MiniRegex::parse(text.substr(3));
            if (!r) return false;
            (text.starts_with("re:.*") ? floating_ : regexes_).push_back(*std::move(r));
            if (counts_layers(text)) counts_ = true;
        } else if (text.find_first_of("*?") != std::string_view::npos) {
            globs_.push_back(bare_name(text));
            if (counts_layers(text)) counts_ = true;
        } else {
            exact_.insert(bare_name(text));
        }
        return true;
    }
    /// The answer may differ from layer to layer.
    [[nodiscard]] bool by_layer() const { return counts_ || !exact_.empty(); }
    [[nodiscard]] bool empty() const { return exact_.empty() && globs_.empty() && regexes_.empty() && floating_.empty(); }

    /// Some rule names the module `bare` ("layers.3.mlp.down_proj") or one that holds it.
    [[nodiscard]] bool names(std::string_view bare) const {
        // Names that hold it: "layers.3.mlp.down_proj", "layers.3.mlp", ..., and its last part alone.
        if (!exact_.empty()) {
            for (std::size_t end = bare.size(); end != std::string_view::npos && end > 0; end = bare.rfind('.', end - 1)) {
                if (exact_.contains(bare.substr(0, end))) return true;
                if (end == 0) break;
            }
            auto const dot = bare.rfind('.');
            if (dot != std::string_view::npos && exact_.contains(bare.substr(dot + 1))) return true;
        }
        for (MiniRegex const& r : floating_)
            if (r.match(bare)) return true;
        for (std::string_view const g : globs_)
            for (std::size_t end = bare.size(); end != std::string_view::npos && end > 0; end = bare.rfind('.', end - 1)) {
                if (glob_match(g, bare.substr(0, end))) return true;
                if (g.back() == '*') break; // a trailing star has tried the modules that hold it
            }
        if (regexes_.empty()) return false;
        bool const in_layer = bare.starts_with("layers.");
        std::string full;
        for (std::string_view const prefix : kLayerPrefixes) {
            if (in_layer) {
                full.assign(prefix).append(bare.substr(7));
            } else {
                if (prefix != "model.layers." && prefix != "language_model.model.layers.") continue;
                full.assign(prefix.starts_with("language") ? "language_model." : "").append(bare);
            }
            for (MiniRegex const& r : regexes_)
                if (r.match(full)) return true;
        }
        return false;
    }

private:
    /// A digit, or something that stands for digits, may name a layer.
    static bool counts_layers(std::string_view text) {
        return text.find_first_of("0123456789[") != std::string_view::npos || text.find("\\d") != std::string_view::npos;
    }

    std::unordered_set<std::string_view> exact_;
    std::vector<std::string_view> globs_;
    std::vector<MiniRegex> regexes_;
    std::vector<MiniRegex> floating_; ///< begin with .*: what stands before the layers does not matter
    bool counts_ = false;
};

/// A format and the modules that have it; `all`: every linear layer.
struct QuantGroup {
    WeightFormat format{};
    bool all = false;
    NameRules targets;
};

struct QuantRules {
    std::string method;
    std::vector<QuantGroup> groups;
    NameRules ignore;
    std::optional<WeightFormat> experts; ///< routed experts, where the block names them apart
    bool experts_only = false;           ///< nothing but the routed experts is quantised
    bool mtp_as_trunk = false;
    std::optional<std::string> kv;       ///< KV format that the block names
};

/// The latent attention of a mixer, if it is one.
inline Mla const* latent_attention(Mixer const* mixer) {
    if (mixer == nullptr) return nullptr;
    auto const* sparse = std::get_if<SparseIndexed>(mixer);
    return sparse != nullptr ? std::get_if<Mla>(&sparse->base) : std::get_if<Mla>(mixer);
}

/// Names that modules of a class have in checkpoints, after "layers.N.".
inline std::span<std::string_view const> module_names(TensorClass cls, Mixer const* mixer) {
    static constexpr std::string_view attention[] = {"self_attn.o_proj", "self_attn.q_proj", "self_attn.qkv_proj", "self_attn.q_b_proj",
                                                     "mixer.o_proj",     "mixer.q_proj",     "attn.wq_b",          "attention.dense"};
    static constexpr std::string_view shared_attention[] = {"self_attn.kv_a_proj_with_mqa", "self_attn.q_a_proj", "attn.wq_a",
                                                            "attention.kv_a_proj_with_mqa"};
    static constexpr std::string_view delta[] = {"linear_attn.out_proj", "linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz"};
    static constexpr std::string_view kda[] = {"self_attn.o_proj", "self_attn.q_proj", "attention.dense", "attention.query_key_value"};
    static constexpr std::string_view mamba[] = {"mixer.in_proj", "mixer.out_proj", "mamba.in_proj", "mamba.out_proj", "conv.in_proj"};
    static constexpr std::string_view dense[] = {"mlp.down_proj", "mlp.gate_proj", "mlp.gate_up_proj", "feed_forward.down_proj",
                                                 "mixer.down_proj"};
    static constexpr std::string_view shared[] = {"mlp.shared_experts.down_proj",  "mlp.shared_expert.down_proj",
                                                  "mixer.shared_experts.down_proj", "block_sparse_moe.shared_experts.down_proj",
                                                  "feed_forward.shared_expert.down_proj", "ffn.shared_experts.w2"};
    static constexpr std::string_view routed[] = {"mlp.experts.0.down_proj", "mlp.experts.0.gate_proj", "mlp.experts",
                                                  "mixer.experts.0.down_proj", "block_sparse_moe.experts.0.w2",
                                                  "feed_forward.experts.down_proj", "ffn.experts.0.w2"};
    static constexpr std::string_view head[] = {"lm_head"};
    static constexpr std::string_view latent[] = {"self_attn.q_b_proj", "self_attn.q_proj", "attention.q_b_proj", "attention.q_proj"};
    switch (cls) {
    case TensorClass::attention: return latent_attention(mixer) != nullptr ? std::span<std::string_view const>{latent} : attention;
    case TensorClass::attention_shared: return shared_attention;
    case TensorClass::linear_attention:
        if (mixer != nullptr && std::holds_alternative<GatedDelta>(*mixer)) return delta;
        if (mixer != nullptr && (std::holds_alternative<Kda>(*mixer) || std::holds_alternative<Lightning>(*mixer))) return kda;
        return mamba;
    case TensorClass::dense_ffn: return dense;
    case TensorClass::shared_expert: return shared;
    case TensorClass::routed_expert: return routed;
    case TensorClass::lm_head: return head;
    default: return {};
    }
}

/// The format of modules of a class in one layer (`layer` < 0: outside the layers), by the names they may have.
inline WeightFormat resolve_format(QuantRules const& rules, Format plain, TensorClass cls, std::int32_t layer,
                                   std::span<std::string_view const> candidates) {
    WeightFormat const keep{plain};
    if (cls == TensorClass::routed_expert && rules.experts) return *rules.experts;
    if (rules.experts_only && cls != TensorClass::routed_expert) return keep;
    std::string name;
    bool named = false;
    auto const matches = [&](NameRules const& r) {
        for (std::string_view const c : candidates) {
            name.clear();
            if (layer >= 0) name = "layers." + std::to_string(layer) + ".";
            name += c;
            if (r.names(name)) return true;
        }
        return false;
    };
    if (!rules.ignore.empty() && matches(rules.ignore)) return keep;
    WeightFormat found = keep;
    for (QuantGroup const& g : rules.groups) {
        if (!g.targets.empty() && matches(g.targets)) return g.format;
        if (g.all && !named) {
            found = g.format;
            named = true;
        }
    }
    // "Linear" means the layers' projections; a head is quantised only where it is named.
    return cls == TensorClass::lm_head ? keep : found;
}

inline WeightFormat resolve_format(QuantRules const& rules, Format plain, TensorClass cls, std::int32_t layer, Mixer const* mixer) {
    return resolve_format(rules, plain, cls, layer, module_names(cls, mixer));
}

/// The format of one group of compressed-tensors or ModelOpt: bits, type, strategy.
inline std::optional<WeightFormat> group_format(FieldReader const& w, std::string const& format) {
    auto const bits = w.integer({"num_bits"}, 1, 16, 8);
    std::string const type = w.text({"type"}, "float");
    std::string const strategy = w.text({"strategy"}, "");
    auto const group = w.size({"group_size"}, 1 << 20, 0, -1);
    if (type == "float" && bits == 4) {
        if (format.starts_with("mxfp4") || group == 32) return WeightFormat{Format::mxfp4};
        return WeightFormat{Format::nvfp4};
    }
    if (type == "float" && bits == 6) return WeightFormat{Format::mxfp6};
    if (type == "float" && bits == 8) {
        if (group == 32 || format.starts_with("mxfp8")) return WeightFormat{Format::mxfp8};
        if (strategy == "channel") return WeightFormat{Format::fp8_row};
        if (strategy == "block") {
            auto const block = w.integers({"block_structure"}, 1, 1 << 16, 2);
            WeightFormat f{Format::fp8_block};
            if (block.size() == 2) {
                f.block_rows = static_cast<std::int32_t>(block[0]);
                f.block_cols = static_cast<std::int32_t>(block[1]);
            }
            return f;
        }
        return WeightFormat{Format::fp8};
    }
    if (type == "int" && bits == 8) return WeightFormat{Format::int8};
    if (type == "int" && bits == 4) {
        WeightFormat f{w.flag({"symmetric"}, true) ? Format::int4_sym : Format::int4_group};
        if (group > 0) f.group = group;
        return f;
    }
    return std::nullopt;
}

/// ModelOpt's names of algorithms.
inline std::optional<WeightFormat> modelopt_format(std::string_view algo) {
    if (algo == "FP8") return WeightFormat{Format::fp8};
    if (algo == "FP8_PB_WO" || algo == "FP8_BLOCK_SCALES") return WeightFormat{Format::fp8_block};
    if (algo == "FP8_PER_CHANNEL_PER_TOKEN") return WeightFormat{Format::fp8_row};
    if (algo == "NVFP4" || algo == "NVFP4_AWQ" || algo == "W4A16_NVFP4" || algo == "NVFP4_FP8_MHA") return WeightFormat{Format::nvfp4};
    if (algo == "MXFP4") return WeightFormat{Format::mxfp4};
    if (algo == "MXFP8") return WeightFormat{Format::mxfp8};
    if (algo == "W4A16_AWQ" || algo == "W4A8_AWQ") return WeightFormat{Format::int4_group};
    return std::nullopt;
}

/// Reads a quantization block. The strings it names must outlive the rules.
inline QuantRules read_quant_rules(FieldReader const& q, std::optional<Error>& error) {
    QuantRules rules;
    auto const refuse = [&](std::string_view field, std::string const& what) {
        q.mistake(ErrorCode::unsupported, field, what + " is not modelled",
                  "known: fp8, mxfp4, compressed-tensors, modelopt, quark, awq, gptq, bitsandbytes, fbgemm_fp8");
    };
    auto const add_all = [&](WeightFormat f) {
        rules.groups.emplace_back();
        rules.groups.back().format = f;
        rules.groups.back().all = true;
    };
    auto const add_names = [&](NameRules& to, std::string_view key) {
        Json const* list = q.find({key});
        if (list == nullptr) return;
        if (!list->is_array()) {
            q.mistake(ErrorCode::bad_value, key, show_json(*list) + " is not usable", "expected a list of module names");
            return;
        }
        for (Json const& item : *list) {
            auto const* text = item.get_ptr<Json::string_t const*>();
            if (text == nullptr) {
                q.mistake(ErrorCode::bad_value, key, "the entry " + show_json(item) + " is not usable", "expected a module name");
                return;
            }
            if (!to.add(*text)) refuse(key, "the expression '" + *text + "'");
        }
    };
    rules.method = to_lower(q.text({"quant_method"}, ""));
    std::string const algo = q.text({"quant_algo"}, "");
    if (rules.method.empty() && (!algo.empty() || q.has("quantized_layers"))) rules.method = "modelopt";
    for (std::string_view const key : {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules", "exclude"}) {
        if (key == "modules_to_not_convert" && rules.method == "mxfp4") continue; // everything but the experts, anyway
        add_names(rules.ignore, key);
    }
    if (rules.method == "fp8" || rules.method == "deepseek_v4_fp8") {
        auto const block = q.integers({"weight_block_size"}, 1, 1 << 16, 2);
        WeightFormat f{Format::fp8};
        if (block.size() == 2) {
            f.format = Format::fp8_block;
            f.block_rows = static_cast<std::int32_t>(block[0]);
            f.block_cols = static_cast<std::int32_t>(block[1]);
        }
        add_all(f);
        rules.mtp_as_trunk = true;
        std::string const experts = q.text({"moe_quant_algo"}, "");
        if (!experts.empty()) { // experts converted by ModelOpt; its list names what it left as it was
            rules.experts = modelopt_format(experts);
            if (!rules.experts) refuse("moe_quant_algo", "'" + experts + "'");
            rules.ignore = NameRules{};
        } else if (q.text({"expert_dtype"}, "") == "fp4" || q.text({"store_dtype"}, "") == "mxfp4") rules.experts = WeightFormat{Format::mxfp4};
    } else if (rules.method == "fbgemm_fp8" || rules.method == "ptpc_fp8") {
        add_all(WeightFormat{Format::fp8_row});
    } else if (rules.method == "mxfp4") {
        rules.experts = WeightFormat{Format::mxfp4};
        rules.experts_only = true;
    } else if (rules.method == "awq" || rules.method == "gptq" || rules.method == "awq_marlin" || rules.method == "gptq_marlin" ||
               rules.method == "auto-round" || rules.method == "auto_round") {
        auto const bits = q.integer({"bits", "w_bit"}, 1, 16, 4);
        WeightFormat f{Format::int4_group};
        auto const group = q.size({"group_size", "q_group_size"}, 1 << 20, 128, -1);
        if (group > 0) f.group = group;
        if (bits == 8) f.format = Format::int8;
        if (bits != 4 && bits != 8) refuse("bits", std::to_string(bits) + "-bit " + rules.method);
        add_all(f);
    } else if (rules.method == "bitsandbytes") {
        bool const eight = q.flag({"load_in_8bit", "_load_in_8bit"}, false);
        add_all(WeightFormat{eight ? Format::int8 : Format::nf4});
    } else if (rules.method == "quark") {
        if (Json const* global = q.find({"global_quant_config"})) {
            if (Json const* weight = find_member(*global, "weight")) {
                FieldReader const w{*weight, q.file(), "quantization_config.global_quant_config.weight", error};
                std::string const dtype = w.text({"dtype"}, "");
                if (dtype == "fp4") {
                    add_all(WeightFormat{Format::mxfp4});
                } else if (dtype == "fp8_e4m3") {
                    add_all(WeightFormat{w.text({"qscheme"}, "") == "per_channel" ? Format::fp8_row : Format::fp8});
                } else if (dtype == "int8") {
                    add_all(WeightFormat{Format::int8});
                } else {
                    refuse("global_quant_config.weight.dtype", "'" + dtype + "'");
                }
            }
        }
    } else if (rules.method == "compressed-tensors" || rules.method == "modelopt" || rules.method == "modelopt_fp4" ||
               rules.method == "modelopt_mixed") {
        std::string const format = q.text({"format"}, "");
        Json const* groups = q.find({"config_groups"});
        if (groups != nullptr && groups->is_object()) {
            for (auto const& [name, group] : *groups->get_ptr<Json::object_t const*>()) {
                Json const* weights = find_member(group, "weights");
                if (weights == nullptr) continue;
                std::string const path = "quantization_config.config_groups." + name;
                FieldReader const g{group, q.file(), path, error};
                FieldReader const w{*weights, q.file(), path + ".weights", error};
                auto const f = group_format(w, g.text({"format"}, format));
                if (!f) {
                    refuse("config_groups." + name, "a group of " + show_json(*weights));
                    continue;
                }
                QuantGroup made;
                made.format = *f;
                if (Json const* targets = find_member(group, "targets"); targets != nullptr && targets->is_array()) {
                    for (Json const& t : *targets) {
                        auto const* text = t.get_ptr<Json::string_t const*>();
                        if (text == nullptr) continue;
                        if (*text == "Linear" || *text == "FusedMoE" || *text == "RowParallelLinear" || *text == "ColumnParallelLinear")
                            made.all = true;
                        else if (!made.targets.add(*text))
                            refuse("config_groups." + name + ".targets", "the expression '" + *text + "'");
                    }
                } else {
                    made.all = true;
                }
                rules.groups.push_back(std::move(made));
            }
        }
        if (Json const* each = q.find({"quantized_layers"}); each != nullptr && each->is_object()) {
            for (auto const& [name, what] : *each->get_ptr<Json::object_t const*>()) {
                auto const* one = find_member(what, "quant_algo");
                auto const f = one == nullptr || !one->is_string() ? std::nullopt : modelopt_format(*one->get_ptr<Json::string_t const*>());
                if (!f) continue;
                auto at = std::find_if(rules.groups.begin(), rules.groups.end(),
                                       [&](QuantGroup const& g) { return g.format == *f && !g.all; });
                if (at == rules.groups.end()) {
                    rules.groups.emplace_back();
                    rules.groups.back().format = *f;
                    at = rules.groups.end() - 1;
                }
                at->targets.add(name);
            }
        } else if (rules.groups.empty() && !algo.empty() && algo != "MIXED_PRECISION") {
            if (auto const f = modelopt_format(algo))
                add_all(*f);
            else
                refuse("quant_algo", "'" + algo + "'");
        }
        if (rules.groups.empty() && !error) refuse("quantization_config", rules.method + " without a group of weights");
        std::string const kv_algo = q.text({"kv_cache_quant_algo"}, "");
        if (kv_algo == "FP8") rules.kv = "fp8";
        if (kv_algo == "NVFP4") rules.kv = "nvfp4";
        if (Json const* scheme = q.find({"kv_cache_scheme"}); scheme != nullptr && scheme->is_object()) {
            auto const* bits = find_member(*scheme, "num_bits");
            auto const n = bits == nullptr ? std::optional<std::int64_t>{8} : json_integer(*bits);
            rules.kv = n && *n == 4 ? "nvfp4" : "fp8";
        }
        rules.mtp_as_trunk = rules.method == "compressed-tensors";
    } else {
        refuse("quant_method", "'" + rules.method + "'");
    }
    return rules;
}

/// Names the formats as people do: "fp8", "fp8+mxfp4", "int4".
inline std::string quant_label(std::vector<Format> const& used, Format plain) {
    std::vector<std::string> names;
    for (Format const f : used) {
        std::string n;
        switch (f) {
        case Format::fp8:
        case Format::fp8_row:
        case Format::fp8_block: n = "fp8"; break;
        case Format::int4_group:
        case Format::int4_sym: n = "int4"; break;
        case Format::fp32:
        case Format::bf16:
        case Format::fp16: continue;
        default: n = std::string{to_string(f)};
        }
        if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
    }
    if (names.empty()) return std::string{to_string(plain)};
    std::sort(names.begin(), names.end());
    std::string s;
    for (std::string const& n : names) s += (s.empty() ? "" : "+") + n;
    return s;
}

/// Classes that quantization may touch.
inline constexpr std::array<TensorClass, 7> kQuantClasses{TensorClass::attention,     TensorClass::attention_shared,
                                                          TensorClass::linear_attention, TensorClass::dense_ffn,
                                                          TensorClass::shared_expert,  TensorClass::routed_expert,
                                                          TensorClass::lm_head};

/// Whether a layer has tensors of a class.
inline bool layer_has(Layer const& l, TensorClass cls, Mixer const** mixer) {
    *mixer = nullptr;
    for (Mixer const& m : l.mixers) {
        bool const recurrent = is_recurrent(m);
        if (cls == TensorClass::linear_attention ? recurrent : !recurrent) *mixer = &m;
    }
    Moe const* moe = l.ffn ? std::get_if<Moe>(&*l.ffn) : nullptr;
    switch (cls) {
    case TensorClass::attention: return *mixer != nullptr;
    case TensorClass::attention_shared:
        return *mixer != nullptr && (std::holds_alternative<Mla>(**mixer) || std::holds_alternative<SparseIndexed>(**mixer) ||
                                     std::holds_alternative<Compressed>(**mixer));
    case TensorClass::linear_attention: return *mixer != nullptr;
    case TensorClass::dense_ffn: return l.ffn && (moe == nullptr || moe->dense_intermediate > 0);
    case TensorClass::shared_expert: return moe != nullptr && moe->shared_intermediate > 0;
    case TensorClass::routed_expert: return moe != nullptr;
    default: return false;
    }
}

/// Fills the model's plan of formats from the rules, layer by layer.
inline void apply_quant_rules(QuantRules const& rules, Model& m) {
    QuantPlan& plan = m.quant;
    plan.method = rules.method;
    plan.mtp_as_trunk = rules.mtp_as_trunk;
    if (rules.kv) m.kv_dtype_hint = rules.kv;
    // Gemma 4 has its experts beside the dense part, not in it.
    static constexpr std::string_view beside[] = {"experts.gate_up_proj", "experts.down_proj", "moe.gate_up_proj", "experts.0.down_proj"};
    bool const experts_beside = m.architecture.starts_with("Gemma4");
    std::vector<Format> used;
    bool by_layer = rules.ignore.by_layer();
    for (QuantGroup const& g : rules.groups) by_layer = by_layer || g.targets.by_layer();
    for (TensorClass const cls : kQuantClasses) {
        if (cls == TensorClass::lm_head) {
            plan[cls] = m.tied_embeddings ? WeightFormat{m.dtype} : resolve_format(rules, m.dtype, cls, -1, nullptr);
            if (!m.tied_embeddings) used.push_back(plan[cls].format);
            continue;
        }
        std::vector<std::pair<WeightFormat, int>> seen;
        std::vector<std::pair<std::int32_t, WeightFormat>> each;
        std::array<std::optional<WeightFormat>, std::variant_size_v<Mixer> + 1> known; // by kind of mixer
        for (std::size_t i = 0; i < m.layers.size(); ++i) {
            Mixer const* mixer = nullptr;
            if (!layer_has(m.layers[i], cls, &mixer)) continue;
            auto& same = known[mixer == nullptr ? std::variant_size_v<Mixer> : mixer->index()];
            if (!same || by_layer)
                same = resolve_format(rules, m.dtype, cls, static_cast<std::int32_t>(i),
                                      cls == TensorClass::routed_expert && experts_beside ? beside : module_names(cls, mixer));
            WeightFormat const f = *same;
            each.push_back({static_cast<std::int32_t>(i), f});
            auto at = std::find_if(seen.begin(), seen.end(), [&](auto const& s) { return s.first == f; });
            if (at == seen.end())
                seen.push_back({f, 1});
            else
                ++at->second;
        }
        if (seen.empty()) continue;
        auto const usual = std::max_element(seen.begin(), seen.end(), [](auto const& a, auto const& b) { return a.second < b.second; });
        plan[cls] = usual->first;
        used.push_back(usual->first.format);
        for (auto const& [layer, f] : each)
            if (!(f == usual->first)) plan.exceptions.push_back({layer, cls, f});
    }
    for (std::size_t i = 0; i < m.layers.size(); ++i) {
        Mixer const* mixer = nullptr;
        if (!layer_has(m.layers[i], TensorClass::attention, &mixer) || latent_attention(mixer) == nullptr) continue;
        auto const layer = static_cast<std::int32_t>(i);
        WeightFormat const usual = plan[TensorClass::attention];
        if (resolve_format(rules, m.dtype, TensorClass::attention, layer, mixer) != usual) continue; // a layer apart says little
        static constexpr std::string_view out[] = {"self_attn.o_proj", "attention.dense", "attention.o_proj"};
        static constexpr std::string_view kv_b[] = {"self_attn.kv_b_proj", "attention.kv_b_proj"};
        WeightFormat const o = resolve_format(rules, m.dtype, TensorClass::attention, layer, out);
        WeightFormat const b = resolve_format(rules, m.dtype, TensorClass::attention, layer, kv_b);
        if (o != usual) plan.mla_out = o;
        if (b != usual) plan.mla_kv_b = b;
        used.push_back(o.format);
        break;
    }
    std::stable_sort(plan.exceptions.begin(), plan.exceptions.end(),
                     [](LayerFormat const& a, LayerFormat const& b) { return a.layer < b.layer; });
    plan.label = quant_label(used, m.dtype);
}

} // namespace servecap::detail
