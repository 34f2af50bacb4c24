// servecap: reads the start-up log of vLLM, SGLang, TensorRT-LLM or llama.cpp
// SPDX-License-Identifier: Apache-2.0
//
// The reader takes bytes in pieces of any size and keeps constant memory: a line is looked at once, for
// all phrases of all engines at the same time, and cut at 64 KiB. It bears what logs are like: several
// workers interleaved, colours, progress bars, CRLF, UTF-16 of a Windows redirection, time stamps of
// journals and containers in front, sentences broken over lines by a paste, and a start that is missing
// its beginning or its end. When a log holds several starts, the last one is described.
//
// The phrases are those of the engines' public sources and logs: vLLM 0.6 to 0.33 (gpu_worker.py,
// kv_cache_utils.py, gpu_model_runner.py), SGLang 0.4 to 0.5.19 (model_runner.py, memory_pool.py),
// TensorRT-LLM 0.12 to 1.3 (_util.py, kvCacheManager), llama.cpp to b11195 (llama-kv-cache.cpp,
// llama-memory-recurrent.cpp, common/fit.cpp).

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/engine/observed.hpp>
#include <servecap/io/line_matcher.hpp>

namespace servecap {

namespace log_detail {

/// The decimal number at the start of `s` (blanks skipped): "-1,234.5". A comma counts only between groups of three.
inline std::optional<double> number(std::string_view s) {
    std::size_t i = 0;
    while (i < s.size() && (s[i] == ' ' || s[i] == '\t')) ++i;
    std::string digits;
    if (i < s.size() && s[i] == '-') digits += s[i++];
    auto const is_digit = [&](std::size_t k) { return k < s.size() && s[k] >= '0' && s[k] <= '9'; };
    bool point = false;
    for (; i < s.size() && digits.size() < 40; ++i) {
        if (is_digit(i)) {
            digits += s[i];
        } else if (s[i] == ',' && !point && !digits.empty() && is_digit(i + 1) && is_digit(i + 2) && is_digit(i + 3) &&
                   !is_digit(i + 4)) {
            continue;
        } else if (s[i] == '.' && !point && is_digit(i + 1)) {
            point = true;
            digits += '.';
        } else {
            break;
        }
    }
    double value = 0;
    auto const [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (ec != std::errc{} || end == digits.data() || !std::isfinite(value)) return std::nullopt;
    return value;
}

/// The whole number at the start of `s`, if it fits 62 bits.
inline std::optional<std::int64_t> whole(std::string_view s) {
    auto const v = number(s);
    if (!v || std::abs(*v) > 4e18) return std::nullopt;
    return static_cast<std::int64_t>(*v);
}

/// The text behind `anchor`, or nothing.
inline std::optional<std::string_view> after(std::string_view s, std::string_view anchor) {
    auto const at = s.find(anchor);
    if (at == std::string_view::npos) return std::nullopt;
    return s.substr(at + anchor.size());
}

/// The number behind `anchor`.
inline std::optional<double> number_after(std::string_view s, std::string_view anchor) {
    auto const rest = after(s, anchor);
    return rest ? number(*rest) : std::nullopt;
}

/// The last number in front of `anchor`: "14.96 GiB for weight" with " GiB for weight".
inline std::optional<double> number_before(std::string_view s, std::string_view anchor) {
    auto const at = s.find(anchor);
    if (at == std::string_view::npos) return std::nullopt;
    std::size_t first = at;
    while (first > 0 && (((s[first - 1] >= '0' && s[first - 1] <= '9') || s[first - 1] == '.' || s[first - 1] == '-'))) --first;
    return number(s.substr(first, at - first));
}

/// The value of `key` in a Python repr or call: key='x', key=1, 'key': 1, "key": "x". Quotes are taken off.
inline std::optional<std::string_view> python_value(std::string_view s, std::string_view key) {
    auto const part_of_name = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c >= 'A' && c <= 'Z');
    };
    for (std::size_t at = s.find(key); at != std::string_view::npos; at = s.find(key, at + 1)) {
        if (at > 0 && part_of_name(s[at - 1])) continue;
        std::string_view rest = s.substr(at + key.size());
        if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"')) rest.remove_prefix(1);
        if (rest.empty() || (rest[0] != '=' && rest[0] != ':')) continue;
        rest.remove_prefix(1);
        while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
        if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"')) {
            auto const end = rest.find(rest[0], 1);
            return rest.substr(1, end == std::string_view::npos ? end : end - 1);
        }
        std::size_t depth = 0, end = 0;
        for (; end < rest.size(); ++end) {
            char const c = rest[end];
            if (c == '(' || c == '[' || c == '{') ++depth;
            if (c == ')' || c == ']' || c == '}') {
                if (depth == 0) break;
                --depth;
            }
            if (c == ',' && depth == 0) break;
        }
        return rest.substr(0, end);
    }
    return std::nullopt;
}

/// A count as flags write it: 131072, 128k (1000), 128K (1024), 1M.
inline std::optional<std::int64_t> human_count(std::string_view s) {
    auto const v = number(s);
    if (!v) return std::nullopt;
    double scale = 1;
    s = trim(s);
    switch (s.empty() ? ' ' : s.back()) {
    case 'k': scale = 1e3; break;
    case 'K': scale = 1024; break;
    case 'm': scale = 1e6; break;
    case 'M': scale = 1048576; break;
    case 'g': scale = 1e9; break;
    case 'G': scale = 1073741824; break;
    default: break;
    }
    if (std::abs(*v * scale) > 4e18) return std::nullopt;
    return static_cast<std::int64_t>(*v * scale);
}

/// Printable text of at most `most` bytes: control characters become blanks, bytes that are no UTF-8 become '?'.
inline std::string printable(std::string_view s, std::size_t most = 400) {
    std::string out;
    std::size_t i = 0;
    while (i < s.size() && out.size() < most) {
        auto const c = static_cast<unsigned char>(s[i]);
        std::size_t const n = c < 0x80 ? 1 : (c >> 5) == 6 ? 2 : (c >> 4) == 14 ? 3 : (c >> 3) == 30 ? 4 : 0;
        bool good = n != 0 && i + n <= s.size();
        for (std::size_t k = 1; good && k < n; ++k) good = (static_cast<unsigned char>(s[i + k]) >> 6) == 2;
        if (!good) {
            out += '?';
            ++i;
        } else if (n == 1) {
            out += c < 0x20 || c == 0x7f ? ' ' : s[i];
            ++i;
        } else {
            out += s.substr(i, n);
            i += n;
        }
    }
    return std::string{trim(out)};
}

/// `s` without terminal colours: ESC [ ... letter, and what is left of them where a paste has lost the ESC.
inline void strip_colours(std::string& s) {
    std::size_t to = 0;
    for (std::size_t i = 0; i < s.size();) {
        std::size_t skip = 0;
        if (s[i] == '\x1b') {
            skip = 1;
            if (i + 1 < s.size() && s[i + 1] == '[') {
                std::size_t k = i + 2;
                while (k < s.size() && (s[k] < '@' || s[k] > '~')) ++k;
                skip = std::min(k + 1, s.size()) - i;
            }
        } else if (s[i] == '[' && i + 2 < s.size() && s[i + 1] >= '0' && s[i + 1] <= '9') {
            std::size_t k = i + 1;
            while (k < s.size() && ((s[k] >= '0' && s[k] <= '9') || s[k] == ';')) ++k;
            if (k < s.size() && s[k] == 'm' && k - i <= 12) skip = k + 1 - i;
        }
        if (skip != 0) {
            i += skip;
        } else {
            s[to++] = s[i++];
        }
    }
    s.resize(to);
}

/// Memory terms of one worker, GiB.
struct RankTerms {
    std::optional<double> before, weights, draft, after_weights, pool, kv, state, graph, graph_estimate, activation, non_torch,
        consumed, total, swa;
    std::optional<std::int64_t> tokens;
    int loads = 0;    ///< SGLang: models loaded
    int kv_pools = 0; ///< SGLang: pools announced
};

} // namespace log_detail

/// Reads a log piece by piece. Feed it any number of times, then call finish() once.
class StartupLogReader {
public:
    StartupLogReader() : rules_{make_rules()}, matcher_{phrases_of(rules_)} {}

    /// Takes the next bytes of the log.
    void feed(std::string_view bytes) {
        while (!bytes.empty()) {
            auto const end = bytes.find_first_of(std::string_view{"\n\r", 2});
            std::string_view const piece = bytes.substr(0, end);
            if (line_.size() < kLongestLine) {
                line_ += piece.substr(0, kLongestLine - line_.size());
            }
            if (line_.size() >= kLongestLine && !piece.empty() && !cut_) {
                cut_ = true;
                note("a line of more than 64 KiB was cut");
            }
            if (end == std::string_view::npos) return;
            end_of_line();
            bytes.remove_prefix(end + 1);
        }
    }

    /// The description of the last start in the log.
    [[nodiscard]] ObservedStart finish() {
        if (!line_.empty()) end_of_line();
        conclude();
        return std::move(seen_);
    }

private:
    static constexpr std::size_t kLongestLine = 65536;
    static constexpr std::size_t kMostRanks = 4096;
    static constexpr std::size_t kMostNotes = 12;

    struct Context {
        std::string_view line; ///< whole line without colours
        std::string_view tail; ///< text behind the phrase
        log_detail::RankTerms& rank;
    };
    using Handler = void (*)(StartupLogReader&, Context const&);
    struct Rule {
        std::string_view phrase;
        Handler handle;
    };

    // ---- lines ----------------------------------------------------------------------------------

    void end_of_line() {
        ++seen_.lines;
        cut_ = false;
        if (line_.find('\0') != std::string::npos) std::erase(line_, '\0'); // UTF-16 of ASCII text
        if (line_.find('\x1b') != std::string::npos) log_detail::strip_colours(line_);
        matches_.clear();
        matcher_.find(line_, matches_);
        bool const wanted = !matches_.empty() || continued_command_ || wait_component_ || !pending_.empty();
        if (wanted) {
            if (line_.find('[') != std::string::npos) {
                std::string const as_read = line_;
                log_detail::strip_colours(line_);
                if (line_.size() != as_read.size()) {
                    matches_.clear();
                    matcher_.find(line_, matches_);
                }
            }
            use_line();
        }
        line_.clear();
    }

    void use_line() {
        std::string_view const text = line_;
        if (!matches_.empty()) ++seen_.lines_used;
        if (continued_command_ && matches_.empty()) command_line(text);
        if (wait_component_) component(text);
        if (!pending_.empty()) collect(text);
        if (matches_.empty()) return;
        date_of(text);
        std::string const key = rank_key(text);
        std::vector<LineMatcher::Match> const found = matches_; // a handler may begin a new description
        for (auto const& m : found) rules_[m.phrase].handle(*this, Context{text, text.substr(m.end), terms_of(key)});
    }

    /// The terms of one worker; beyond the most workers that are kept apart, those of the first.
    log_detail::RankTerms& terms_of(std::string const& key) {
        auto const it = ranks_.find(key);
        if (it != ranks_.end()) return it->second;
        return ranks_.size() < kMostRanks ? ranks_[key] : ranks_.begin()->second;
    }

    /// Which worker printed the line: "Worker_TP0_EP0", "DP0 TP3", "RANK 2"; empty for the only one.
    static std::string rank_key(std::string_view line) {
        if (auto const at = line.find(" pid="); at != std::string_view::npos) {
            auto const open = line.rfind('(', at);
            if (open != std::string_view::npos && at - open < 48) {
                std::string_view const name = line.substr(open + 1, at - open - 1);
                bool const shared_name = name == "VllmWorkerProcess" || name == "RayWorkerWrapper" || name == "Worker";
                if (!shared_name) return std::string{name};
                auto const close = line.find_first_of(",) ", at + 5);
                return std::string{line.substr(open + 1, close == std::string_view::npos ? 32 : close - open - 1)};
            }
        }
        if (auto const open = line.find("[20");
            open != std::string_view::npos && open < 64) { // SGLang: [2026-02-26 16:41:06 DP0 TP5]
            auto const close = line.find(']', open);
            if (close != std::string_view::npos && close - open > 20 && close - open < 60)
                return std::string{trim(line.substr(open + 20, close - open - 20))};
        }
        for (std::string_view mark : {"[RANK ", "[Rank ", "[rank"})
            if (auto const at = line.find(mark); at != std::string_view::npos && at < 80) {
                auto const n = log_detail::whole(line.substr(at + mark.size()));
                if (n) return "RANK " + std::to_string(*n);
            }
        return {};
    }

    void date_of(std::string_view line) {
        if (seen_.date.size() >= 10) return;
        auto const digit = [&](std::size_t i) { return i < line.size() && line[i] >= '0' && line[i] <= '9'; };
        std::size_t const most = std::min<std::size_t>(line.size(), 120);
        for (std::size_t i = 0; i + 10 <= most; ++i) {
            if (digit(i) && digit(i + 1) && digit(i + 2) && digit(i + 3) && line[i] == '2' && line[i + 4] == '-' &&
                digit(i + 5) && digit(i + 6) && line[i + 7] == '-' && digit(i + 8) && digit(i + 9) && !digit(i + 10) &&
                (i == 0 || !digit(i - 1))) {
                seen_.date = line.substr(i, 10);
                return;
            }
            if (digit(i) && digit(i + 1) && line[i + 2] == '/' && digit(i + 3) && digit(i + 4) && line[i + 5] == '/' &&
                digit(i + 6) && digit(i + 7) && digit(i + 8) && digit(i + 9)) { // TensorRT-LLM: 01/16/2026
                seen_.date = std::string{line.substr(i + 6, 4)} + "-" + std::string{line.substr(i, 2)} + "-" +
                             std::string{line.substr(i + 3, 2)};
                return;
            }
        }
        if (!seen_.date.empty()) return;
        for (std::string_view level : {"INFO ", "WARNING ", "ERROR "}) { // vLLM: no year
            auto const at = line.find(level);
            if (at == std::string_view::npos) continue;
            std::size_t const i = at + level.size();
            if (digit(i) && digit(i + 1) && i + 5 < line.size() && line[i + 2] == '-' && digit(i + 3) && digit(i + 4)) {
                seen_.date = line.substr(i, 5);
                return;
            }
        }
    }

    void note(std::string text) {
        if (seen_.notes.size() < kMostNotes && std::find(seen_.notes.begin(), seen_.notes.end(), text) == seen_.notes.end())
            seen_.notes.push_back(std::move(text));
    }

    void reach(StartStage s) { seen_.stage = std::max(seen_.stage, s); }

    void is(EngineKind e) {
        if (!seen_.engine) seen_.engine = e;
        if (seen_.starts_in_log == 0) seen_.starts_in_log = 1;
    }

    /// A new start begins: what an earlier one left behind is dropped.
    void begin(EngineKind e) {
        bool const over = seen_.starts.has_value();
        bool const other = seen_.engine && *seen_.engine != e;
        if (!over && !other) {
            is(e);
            return;
        }
        auto const kept_lines = seen_.lines;
        auto const kept_used = seen_.lines_used;
        auto const count = seen_.starts_in_log;
        auto notes = std::move(seen_.notes);
        seen_ = ObservedStart{};
        seen_.lines = kept_lines;
        seen_.lines_used = kept_used;
        seen_.notes = std::move(notes);
        seen_.starts_in_log = count + 1;
        seen_.engine = e;
        ranks_.clear();
        devices_.clear();
        configs_read_ = 0;
        failed_ = draft_ = false;
        engine_tp_.reset();
        engine_dp_.reset();
        dp_attention_ = false;
    }

    // ---- flags ----------------------------------------------------------------------------------

    /// One flag of a command line, a Python call or a dict; `key` with underscores.
    void flag(EngineKind e, std::string_view key, std::string_view value) {
        EngineSettings& s = seen_.settings;
        value = trim(value);
        if (value == "None" || value == "none" || value == "null") return;
        auto const count = log_detail::human_count(value);
        auto const share = log_detail::number(value);
        bool const yes =
            value.empty() || value == "True" || value == "true" || value == "1" || value == "on" || value == "enabled";
        auto const text = [&] { return log_detail::printable(value, 200); };
        auto const small = [&](std::optional<std::int32_t>& to) {
            if (count && *count > 0 && *count <= 1000000) to = static_cast<std::int32_t>(*count);
        };
        auto const tokens = [&](std::optional<Tokens>& to) {
            if (count) to = Tokens{*count};
        };
        auto const requests = [&](std::optional<Requests>& to) {
            if (count && *count > 0) to = Requests{*count};
        };
        auto const fraction = [&](std::optional<double>& to) {
            if (share && *share > 0 && *share <= 1) to = *share;
        };

        if (key == "model" || key == "model_tag" || key == "model_path" || key == "m" || key == "hf_repo" || key == "hf" ||
            key == "hfr") {
            if (seen_.model.empty() && !value.empty()) seen_.model = text();
        } else if (key == "tensor_parallel_size" || key == "tp_size" || key == "tp") {
            small(engine_tp_);
        } else if (key == "pipeline_parallel_size" || key == "pp_size" || key == "pp") {
            small(seen_.pp);
        } else if (key == "data_parallel_size" || key == "dp_size" || key == "dp") {
            small(engine_dp_);
        } else if (key == "decode_context_parallel_size" || key == "dcp") {
            small(seen_.dcp);
        } else if (key == "enable_dp_attention" || key == "enable_attention_dp") {
            dp_attention_ = yes;
        } else if (key == "enable_expert_parallel" || key == "enable_ep_moe") {
            seen_.expert_parallel = yes;
        } else if (key == "ep_size" || key == "moe_expert_parallel_size") {
            seen_.expert_parallel = count.value_or(1) > 1;
        } else if (key == "gpu_memory_utilization") {
            fraction(s.gpu_memory_utilization);
        } else if (key == "mem_fraction_static") {
            fraction(s.mem_fraction_static);
        } else if (key == "free_gpu_memory_fraction" || key == "kv_cache_free_gpu_memory_fraction" ||
                   key == "kv_cache_free_gpu_mem_fraction") {
            fraction(s.free_gpu_memory_fraction);
        } else if (key == "max_model_len" || key == "context_length" || key == "max_seq_len" || key == "ctx_size" || key == "c") {
            tokens(s.max_model_len);
        } else if (key == "max_num_seqs") {
            requests(s.max_num_seqs);
        } else if (key == "max_running_requests") {
            requests(s.max_running_requests);
        } else if (key == "max_batch_size") {
            requests(s.max_batch_size);
        } else if (key == "max_num_batched_tokens" || key == "chunked_prefill_size" || key == "max_num_tokens") {
            tokens(s.max_num_batched_tokens);
        } else if (key == "max_total_tokens") {
            tokens(s.max_total_tokens);
        } else if (key == "block_size" || key == "page_size" || key == "tokens_per_block") {
            if (count && *count > 0) s.block_size = Tokens{*count};
        } else if (key == "kv_cache_dtype" || key == "cache_type_k" || key == "ctk") {
            if (!value.empty()) s.kv_cache_dtype = text();
        } else if (key == "cache_type_v" || key == "ctv") {
            if (!value.empty()) s.cache_type_v = text();
        } else if (key == "quantization") {
            if (!value.empty()) seen_.quantization = text();
        } else if (key == "mamba_ssm_cache_dtype" || key == "mamba_ssm_dtype") {
            if (!value.empty()) s.state_dtype = text();
        } else if (key == "mamba_cache_mode") {
            s.mamba_cache_mode = value == "align" ? MambaCacheMode::align
                                 : value == "all" ? MambaCacheMode::all
                                                  : MambaCacheMode::none;
        } else if (key == "enable_prefix_caching") {
            s.prefix_caching = yes;
        } else if (key == "no_enable_prefix_caching" || key == "disable_radix_cache") {
            if (yes) s.prefix_caching = false;
            if (key == "disable_radix_cache" && !yes) s.prefix_caching = true;
        } else if (key == "kv_cache_memory_bytes" || key == "kv_cache_memory") {
            if (count && *count > 0) s.kv_cache_memory = Bytes{*count};
        } else if (key == "num_gpu_blocks_override") {
            if (count && *count > 0) s.num_gpu_blocks_override = *count;
        } else if (key == "max_cudagraph_capture_size" || key == "cuda_graph_max_bs") {
            tokens(s.max_cudagraph_capture_size);
        } else if (key == "enforce_eager" || key == "disable_cuda_graph") {
            s.enforce_eager = yes;
        } else if (key == "disable_hybrid_kv_cache_manager") {
            s.hybrid_manager_off = yes;
        } else if (key == "attention_backend") {
            if (!value.empty()) s.attention_backend = text();
        } else if (key == "mm_encoder_tp_mode") {
            s.mm_encoder_data_parallel = value == "data";
        } else if (key == "speculative_algorithm") {
            s.speculative_method = to_lower(text());
        } else if (key == "speculative_num_draft_tokens" || key == "num_speculative_tokens" || key == "num_spec_tokens") {
            if (count && *count > 0 && *count < 1000) s.speculative_tokens = static_cast<std::int32_t>(*count);
        } else if (key == "speculative_config") {
            if (auto const n = log_detail::python_value(value, "num_speculative_tokens")) flag(e, "num_speculative_tokens", *n);
            if (auto const n = log_detail::python_value(value, "num_spec_tokens")) flag(e, "num_speculative_tokens", *n);
            if (auto const m = log_detail::python_value(value, "method")) s.speculative_method = log_detail::printable(*m, 40);
        } else if (key == "mamba_full_memory_ratio") {
            if (share && *share > 0) s.mamba_full_memory_ratio = *share;
        } else if (key == "max_mamba_cache_size") {
            if (count && *count > 0) s.max_mamba_cache_size = *count;
        } else if (key == "mamba_scheduler_strategy") {
            if (value != "auto") s.mamba_scheduler_strategy = text();
        } else if (key == "swa_full_tokens_ratio") {
            if (share && *share > 0) s.swa_full_tokens_ratio = *share;
        } else if (key == "n_gpu_layers" || key == "ngl" || key == "gpu_layers") {
            if (count && *count >= 0 && *count < 100000) s.n_gpu_layers = static_cast<std::int32_t>(*count);
        } else if (key == "parallel" || key == "np") {
            if (count && *count > 0 && *count < 100000) s.n_parallel = static_cast<std::int32_t>(*count);
        } else if (key == "ubatch_size" || key == "ub") {
            tokens(s.ubatch);
        } else if (key == "n_cpu_moe" || key == "ncmoe") {
            if (count && *count >= 0 && *count < 100000) s.n_cpu_moe = static_cast<std::int32_t>(*count);
        } else if (key == "cpu_moe" || key == "cmoe") {
            s.n_cpu_moe = 100000;
        } else if (key == "swa_full") {
            s.swa_full = yes;
        } else if (key == "no_kv_offload" || key == "nkvo") {
            s.kv_on_host = yes;
        } else if (key == "kv_unified" || key == "kvu") {
            s.kv_unified = yes;
        } else if (key == "flash_attn" || key == "fa") {
            if (value != "auto") s.flash_attention = yes;
        } else if (key == "fit") {
            s.fit_params = yes;
        } else if (key == "tensor_split" || key == "ts") {
            s.tensor_split.clear();
            std::string_view rest = value;
            while (!rest.empty() && s.tensor_split.size() < 64) {
                auto const v = log_detail::number(rest.substr(0, rest.find_first_of(",/")));
                if (!v || *v < 0) break;
                s.tensor_split.push_back(*v);
                auto const comma = rest.find_first_of(",/");
                rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
            }
        }
    }

    /// Every key that flag() knows, in a Python call or dict.
    void python_flags(EngineKind e, std::string_view call) {
        if (++configs_read_ > 16) return; // a log that repeats its configuration without end costs no more than this
        constexpr std::array<std::string_view, 48> keys{"model",
                                                        "model_tag",
                                                        "model_path",
                                                        "tensor_parallel_size",
                                                        "tp_size",
                                                        "pipeline_parallel_size",
                                                        "pp_size",
                                                        "data_parallel_size",
                                                        "dp_size",
                                                        "decode_context_parallel_size",
                                                        "enable_dp_attention",
                                                        "enable_attention_dp",
                                                        "enable_expert_parallel",
                                                        "ep_size",
                                                        "moe_expert_parallel_size",
                                                        "gpu_memory_utilization",
                                                        "mem_fraction_static",
                                                        "free_gpu_memory_fraction",
                                                        "max_model_len",
                                                        "context_length",
                                                        "max_seq_len",
                                                        "max_num_seqs",
                                                        "max_running_requests",
                                                        "max_batch_size",
                                                        "max_num_batched_tokens",
                                                        "chunked_prefill_size",
                                                        "max_num_tokens",
                                                        "max_total_tokens",
                                                        "block_size",
                                                        "page_size",
                                                        "tokens_per_block",
                                                        "kv_cache_dtype",
                                                        "quantization",
                                                        "mamba_ssm_cache_dtype",
                                                        "mamba_ssm_dtype",
                                                        "mamba_cache_mode",
                                                        "enable_prefix_caching",
                                                        "disable_radix_cache",
                                                        "kv_cache_memory_bytes",
                                                        "num_gpu_blocks_override",
                                                        "max_cudagraph_capture_size",
                                                        "cuda_graph_max_bs",
                                                        "enforce_eager",
                                                        "disable_cuda_graph",
                                                        "attention_backend",
                                                        "mamba_full_memory_ratio",
                                                        "max_mamba_cache_size",
                                                        "swa_full_tokens_ratio"};
        for (std::string_view k : keys)
            if (auto const v = log_detail::python_value(call, k)) flag(e, k, *v);
        for (std::string_view k : {"mamba_scheduler_strategy", "speculative_algorithm", "speculative_num_draft_tokens",
                                   "speculative_config", "disable_hybrid_kv_cache_manager", "mm_encoder_tp_mode"})
            if (auto const v = log_detail::python_value(call, k)) flag(e, k, *v);
    }

    /// The flags of a shell line; a backslash at the end continues on the next line.
    void command_line(std::string_view text) {
        continued_command_ = false;
        std::vector<std::string_view> words;
        for (std::size_t i = 0; i < text.size() && words.size() < 512;) {
            while (i < text.size() && (text[i] == ' ' || text[i] == '\t')) ++i;
            if (i >= text.size()) break;
            std::size_t const first = i;
            if (text[i] == '\'' || text[i] == '"') {
                auto const close = text.find(text[i], i + 1);
                i = close == std::string_view::npos ? text.size() : close + 1;
                words.push_back(text.substr(first + 1, i - first - 2));
            } else {
                while (i < text.size() && text[i] != ' ' && text[i] != '\t') {
                    if (text[i] == '\'' || text[i] == '"') {
                        auto const close = text.find(text[i], i + 1);
                        i = close == std::string_view::npos ? text.size() - 1 : close;
                    }
                    ++i;
                }
                words.push_back(text.substr(first, i - first));
            }
        }
        if (!words.empty() && words.back() == "\\") {
            continued_command_ = true;
            words.pop_back();
        }
        auto const is_flag = [](std::string_view w) {
            return w.size() > 1 && w[0] == '-' && !(w[1] >= '0' && w[1] <= '9') && w[1] != '.';
        };
        for (std::size_t i = 0; i < words.size(); ++i) {
            std::string_view w = words[i];
            if (!is_flag(w)) {
                bool const head = i > 0 && (words[i - 1] == "serve" || words[i - 1].ends_with("trtllm-serve"));
                if (head && w != "serve" && command_ == EngineKind::vllm) flag(command_, "model", w);
                if (head && w != "serve" && command_ == EngineKind::trtllm) flag(command_, "model", w);
                continue;
            }
            while (!w.empty() && w[0] == '-') w.remove_prefix(1);
            std::string_view value;
            if (auto const eq = w.find('='); eq != std::string_view::npos) {
                value = w.substr(eq + 1);
                w = w.substr(0, eq);
                if (value.size() >= 2 && (value[0] == '\'' || value[0] == '"')) value = value.substr(1, value.size() - 2);
            } else if (i + 1 < words.size() && !is_flag(words[i + 1])) {
                value = words[i + 1];
            }
            std::string key{w};
            for (char& c : key)
                if (c == '-') c = '_';
            flag(command_, key, value);
        }
    }

    // ---- refusals -------------------------------------------------------------------------------

    /// The sentence of an exception in a line: from its class name, else from `phrase`.
    static std::string sentence(std::string_view line, std::string_view phrase) {
        auto at = line.find(phrase);
        if (at == std::string_view::npos) at = 0;
        for (std::string_view name : {"ValueError: ", "RuntimeError: ", "AssertionError: ", "OutOfMemoryError: ", "Exception: "})
            if (auto const e = line.rfind(name, at); e != std::string_view::npos)
                return log_detail::printable(line.substr(e + name.size()));
        return log_detail::printable(line.substr(at));
    }

    void refuse(std::optional<Verdict> v, std::string message) {
        failed_ = true;
        if (v && (!seen_.verdict || seen_.verdict == Verdict::starts)) {
            seen_.verdict = v;
            seen_.error = std::move(message);
        } else if (seen_.error.empty()) {
            seen_.error = std::move(message);
        }
        seen_.starts = false;
    }

    void serve() {
        if (failed_) {
            failed_ = false;
            note("an error was followed by a working server: " + seen_.error);
            seen_.error.clear();
        }
        seen_.starts = true;
        seen_.verdict = Verdict::starts;
        reach(StartStage::ready);
    }

    /// A sentence that pastes break over lines is gathered until it is whole.
    void collect(std::string_view text) {
        pending_ += ' ';
        pending_ += trim(text);
        if (++pending_lines_ > 8 || pending_.size() > 2048) {
            length_refusal(pending_);
            pending_.clear();
            return;
        }
        if (pending_.find("maximum model length is") != std::string::npos &&
            log_detail::number_after(pending_, "maximum model length is")) {
            length_refusal(pending_);
            pending_.clear();
        }
    }

    /// vLLM: "To serve at least one request with the model's max seq len (N), (X GiB KV cache is needed, ...".
    void length_refusal(std::string_view text) {
        refuse(Verdict::max_model_len_too_long, sentence(text, "To serve at least one request"));
        if (auto const n = log_detail::number_after(text, "max seq len ("))
            seen_.max_model_len = Tokens{static_cast<std::int64_t>(*n)};
        if (auto const g = log_detail::number_before(text, " GiB KV cache is needed")) seen_.needed = gib(*g);
        if (auto const rest = log_detail::after(text, "available KV cache"))
            if (auto const open = rest->find('('); open != std::string_view::npos && open < 12)
                if (auto const g = log_detail::number(rest->substr(open + 1)); g && !seen_.pool) seen_.pool = gib(*g);
        if (auto const n = log_detail::number_after(text, "maximum model length is"))
            seen_.estimated_max_len = Tokens{static_cast<std::int64_t>(*n)};
    }

    /// TensorRT-LLM names the component that had no memory on the next line.
    void component(std::string_view text) {
        if (trim(text).empty() || text.find("following component") != std::string_view::npos) return;
        wait_component_ = false;
        bool const model = text.find("Model") != std::string_view::npos;
        bool const cache = text.find("KV cache") != std::string_view::npos;
        if (model) seen_.verdict = Verdict::weights_do_not_fit;
        if (cache) seen_.verdict = Verdict::no_kv_memory;
        seen_.error += ": " + log_detail::printable(text, 120);
    }

    /// An out-of-memory error means what the stage says.
    void out_of_memory(Context const& c) {
        if (!seen_.engine) return;
        std::string message = sentence(c.line, "out of memory");
        if (c.line.find("warming up sampler") != std::string_view::npos) {
            refuse(std::nullopt, std::move(message));
            return;
        }
        if (seen_.stage < StartStage::weights_loaded) {
            refuse(Verdict::weights_do_not_fit, std::move(message));
        } else if (seen_.stage == StartStage::ready) {
            note("out of memory after the server was ready: " + message);
        } else {
            refuse(std::nullopt, std::move(message));
        }
    }

    // ---- GPU names ------------------------------------------------------------------------------

    void gpu_name(std::string_view name) {
        if (!seen_.gpu.empty()) return;
        std::string text = log_detail::printable(name, 80);
        for (char& ch : text)
            if (ch == '_') ch = ' ';
        if (!text.empty()) seen_.gpu = std::move(text);
    }

    // ---- llama.cpp devices ----------------------------------------------------------------------

    struct Device {
        double model = 0, kv = 0, state = 0, compute = 0;
        bool host = false;
    };

    /// "load_tensors:        CUDA0 model buffer size =  4854.94 MiB": adds to the device named in front of `what`.
    void device_buffer(Context const& c, std::string_view what, double Device::*term, bool latest) {
        auto const mib_size = log_detail::number_after(c.tail, "=");
        auto const end = c.line.find(what);
        if (!mib_size || end == std::string_view::npos) return;
        std::string_view head = trim(c.line.substr(0, end));
        auto const blank = head.find_last_of(" :|");
        std::string const name{blank == std::string_view::npos ? head : head.substr(blank + 1)};
        if (name.empty() || devices_.size() > 256) return;
        is(EngineKind::llama_cpp);
        if (draft_) return; // the draft context has caches of its own; they are not the target's
        Device& d = devices_[name];
        d.host = name.starts_with("CPU") || name.ends_with("_Host") || name == "Host" || name == "REPACK" || name == "AMX";
        if (latest)
            d.*term = *mib_size;
        else
            d.*term += *mib_size;
    }

    // ---- the phrases ----------------------------------------------------------------------------

    static std::vector<std::string_view> phrases_of(std::vector<Rule> const& rules) {
        std::vector<std::string_view> out;
        for (Rule const& r : rules) out.push_back(r.phrase);
        return out;
    }

    static std::vector<Rule> make_rules();

    void conclude();

    std::vector<Rule> rules_;
    LineMatcher matcher_;
    std::vector<LineMatcher::Match> matches_;
    std::string line_;
    bool cut_ = false;
    ObservedStart seen_;
    std::map<std::string, log_detail::RankTerms> ranks_;
    std::map<std::string, Device> devices_;
    std::string pending_;
    int pending_lines_ = 0;
    int configs_read_ = 0;
    bool failed_ = false;
    bool draft_ = false; ///< lines are about the draft model
    bool continued_command_ = false;
    bool wait_component_ = false;
    bool dp_attention_ = false;
    EngineKind command_ = EngineKind::vllm;
    std::optional<std::int32_t> engine_tp_, engine_dp_; ///< as the engine counts them
};

inline std::vector<StartupLogReader::Rule> StartupLogReader::make_rules() {
    using log_detail::number;
    using log_detail::number_after;
    using log_detail::number_before;
    using log_detail::printable;
    using log_detail::python_value;
    using log_detail::whole;
    using R = StartupLogReader;
    using C = Context;

    std::vector<Rule> t;
    auto const add = [&t](std::string_view phrase, Handler h) { t.push_back({phrase, h}); };

    // ---- vLLM: version and configuration
    add("\xe2\x96\x88  version ", [](R& r, C const& c) {
        r.begin(EngineKind::vllm);
        r.seen_.engine_version = printable(trim(c.tail).substr(0, trim(c.tail).find(' ')), 60);
        r.reach(StartStage::configured);
    });
    add("\xe2\x96\x88  model   ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (r.seen_.model.empty()) r.seen_.model = printable(c.tail, 200);
    });
    add("vLLM API server version ", [](R& r, C const& c) {
        r.begin(EngineKind::vllm);
        r.seen_.engine_version = printable(trim(c.tail).substr(0, trim(c.tail).find(' ')), 60);
        r.reach(StartStage::configured);
    });
    add("non-default args: ", [](R& r, C const& c) {
        r.begin(EngineKind::vllm);
        r.python_flags(EngineKind::vllm, c.tail);
        r.reach(StartStage::configured);
    });
    add("] args: Namespace(", [](R& r, C const& c) {
        r.begin(EngineKind::vllm);
        r.python_flags(EngineKind::vllm, c.tail);
        r.reach(StartStage::configured);
    });
    add("LLM engine (v", [](R& r, C const& c) { // "Initializing a V1 LLM engine (v0.20.0) with config: model='...', ..."
        r.begin(EngineKind::vllm);
        r.seen_.engine_version = printable(c.tail.substr(0, c.tail.find(')')), 60);
        auto const asked = r.seen_.settings; // what the user typed stays as typed
        r.python_flags(EngineKind::vllm, c.tail);
        if (auto const n = python_value(c.tail, "max_seq_len"))
            if (auto const v = whole(*n)) r.seen_.max_model_len = Tokens{*v};
        if (auto const d = python_value(c.tail, "dtype")) r.seen_.dtype = printable(*d, 40);
        if (auto const m = c.tail.find("CUDAGraphMode."); m != std::string_view::npos) {
            std::string_view const mode = c.tail.substr(m + 14);
            r.seen_.settings.graph_mode = mode.starts_with("FULL_AND_PIECEWISE") ? GraphMode::full_and_piecewise
                                          : mode.starts_with("FULL")             ? GraphMode::full_decode_only
                                          : mode.starts_with("PIECEWISE")        ? GraphMode::piecewise
                                                                                 : GraphMode::none;
        }
        if (auto const n = python_value(c.tail, "max_cudagraph_capture_size")) r.seen_.capture_size = whole(*n);
        r.seen_.settings.max_model_len = asked.max_model_len; // max_seq_len is what is in force, typed or not
        if (asked.max_cudagraph_capture_size != r.seen_.settings.max_cudagraph_capture_size)
            r.seen_.settings.max_cudagraph_capture_size = asked.max_cudagraph_capture_size;
        r.reach(StartStage::configured);
    });
    add("Resolved architecture: ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        r.seen_.architecture = printable(c.tail, 80);
    });
    add("Using max model len ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = whole(c.tail)) r.seen_.max_model_len = Tokens{*v};
    });
    add("Chunked prefill is enabled with max_num_batched_tokens=", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = whole(c.tail)) r.seen_.max_batched_tokens = Tokens{*v};
    });
    add("Starting to load model ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        std::string_view name = trim(c.tail);
        while (name.ends_with('.')) name.remove_suffix(1);
        if (r.seen_.model.empty()) r.seen_.model = printable(name, 200);
    });
    add("Mamba cache mode is set to '",
        [](R& r, C const& c) { r.flag(EngineKind::vllm, "mamba_cache_mode", c.tail.substr(0, c.tail.find('\''))); });
    add("Setting attention block size to ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = whole(c.tail)) r.seen_.block_size = *v;
    });
    add("Setting kv cache block size to ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = whole(c.tail)) r.seen_.block_size = *v;
    });
    add("device_name=", [](R& r, C const& c) { r.gpu_name(c.tail.substr(0, c.tail.find_first_of(",.;"))); });

    // ---- vLLM: memory
    add("Model loading took ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number(c.tail)) c.rank.weights = *v;
        r.reach(StartStage::weights_loaded);
    });
    add("Loading model weights took ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (c.tail.find(" GB") == std::string_view::npos && c.tail.find(" GiB") == std::string_view::npos) return; // seconds
        if (auto const v = number(c.tail)) c.rank.weights = *v;
        r.reach(StartStage::weights_loaded);
    });
    add("model weights take ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number(c.tail)) c.rank.weights = *v;
        if (auto const v = number_after(c.tail, "non_torch_memory takes ")) c.rank.non_torch = *v;
        if (auto const v = number_after(c.tail, "activation peak memory takes ")) c.rank.activation = *v;
        if (auto const v = number_after(c.tail, "reserved for KV Cache is ")) c.rank.pool = *v;
        r.reach(StartStage::profiled);
    });
    add("can use total_gpu_memory (", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number(c.tail)) c.rank.total = *v;
        if (auto const v = number_after(c.tail, "gpu_memory_utilization (")) r.seen_.utilization = *v;
        if (auto const v = number_after(c.tail, ") = ")) r.seen_.requested = gib(*v);
    });
    add("Available KV cache memory: ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number(c.tail)) c.rank.pool = *v;
        r.reach(StartStage::profiled);
    });
    add("The current --gpu-memory-utilization=", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number(c.tail)) r.seen_.utilization = *v;
    });
    add("Estimated CUDA graph memory: ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number(c.tail)) c.rank.graph_estimate = *v;
    });
    add("Graph capturing finished in ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number_after(c.tail, "took ")) c.rank.graph = *v;
        r.reach(StartStage::graphs_captured);
    });
    add("CUDA graph pool memory: ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number(c.tail)) c.rank.graph = *v;
        if (auto const v = number_after(c.tail, "(actual), ")) c.rank.graph_estimate = *v;
    });
    add("Free memory on device ", [](R& r, C const& c) { // (a/b GiB) or cuda:0 (a/b GiB)
        r.is(EngineKind::vllm);
        auto const open = c.tail.find('(');
        if (open != std::string_view::npos && open < 16) {
            if (auto const v = number(c.tail.substr(open + 1))) c.rank.before = *v;
            if (auto const v = number_after(c.tail.substr(open), "/")) c.rank.total = *v;
        }
        if (auto const rest = log_detail::after(c.tail, "GPU memory utilization")) {
            if (auto const p = rest->find('('); p != std::string_view::npos && p < 8) {
                if (auto const v = number(rest->substr(p + 1))) r.seen_.utilization = *v;
                if (auto const v = number_after(rest->substr(p), ", ")) r.seen_.requested = gib(*v);
            }
        }
        if (c.tail.find("less than desired") != std::string_view::npos)
            r.refuse(Verdict::free_memory_below_request, sentence(c.line, "Free memory on device"));
    });
    add("Actual usage is ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = number_before(c.tail, " GiB for weight")) c.rank.weights = *v;
        if (auto const v = number_before(c.tail, " GiB for consumed memory")) c.rank.consumed = *v;
        if (auto const v = number_before(c.tail, " GiB for peak activation")) c.rank.activation = *v;
        if (auto const v = number_before(c.tail, " GiB for non-torch memory")) c.rank.non_torch = *v;
        if (auto const v = number_before(c.tail, " GiB for CUDAGraph memory")) c.rank.graph = *v;
        r.reach(StartStage::profiled);
    });
    add("Current kv cache memory in use is ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        auto const v = number(c.tail);
        if (!v) return;
        double const g = c.tail.find(" bytes") != std::string_view::npos ? *v / 1073741824.0 : *v;
        c.rank.kv = g;
    });

    // ---- vLLM: the pool
    add("GPU KV cache size: ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        auto const v = whole(c.tail);
        if (!v || *v < 0) return;
        if (r.seen_.kv_tokens && r.seen_.kv_tokens->value() != *v &&
            std::abs(static_cast<double>(r.seen_.kv_tokens->value() - *v)) > 0.01 * static_cast<double>(*v))
            r.note("engines of this start have different pools; the smallest is given");
        if (!r.seen_.kv_tokens || *v < r.seen_.kv_tokens->value()) r.seen_.kv_tokens = Tokens{*v};
        r.reach(StartStage::pool_allocated);
    });
    add("Maximum concurrency for ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const n = whole(c.tail)) {
            r.seen_.concurrency_at = Tokens{*n};
            if (!r.seen_.max_model_len) r.seen_.max_model_len = Tokens{*n};
        }
        if (auto const v = number_after(c.tail, "per request: "))
            if (!r.seen_.max_concurrency || *v < *r.seen_.max_concurrency) r.seen_.max_concurrency = *v;
    });
    add("# GPU blocks: ", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const v = whole(c.tail); v && (!r.seen_.blocks || *v < *r.seen_.blocks)) r.seen_.blocks = *v;
        r.reach(StartStage::pool_allocated);
    });

    // ---- vLLM: refusals
    add("exceeds available Mamba cache blocks (", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        if (auto const m = whole(c.tail)) {
            r.seen_.state_slots = *m;
            if (!r.seen_.blocks) r.seen_.blocks = *m;
        }
        if (auto const n = number_after(c.line, "max_num_seqs (")) r.seen_.asked_seqs = static_cast<std::int64_t>(*n);
        r.refuse(Verdict::state_slots_too_few, sentence(c.line, "max_num_seqs ("));
    });
    add("To serve at least one request with the model", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        auto const at = c.line.find("To serve at least one request");
        r.pending_ = std::string{c.line.substr(at)};
        r.pending_lines_ = 0;
        if (number_after(r.pending_, "maximum model length is")) {
            r.length_refusal(r.pending_);
            r.pending_.clear();
        }
    });
    add("No available memory for the cache blocks", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        r.refuse(Verdict::no_kv_memory, sentence(c.line, "No available memory"));
    });
    add("must be divisible by tensor parallel size", [](R& r, C const& c) {
        r.is(EngineKind::vllm);
        r.refuse(Verdict::layout_invalid, sentence(c.line, "Total number of attention heads"));
    });
    add(" is not divisible by ", [](R& r, C const& c) {
        if (c.line.find("Error: ") == std::string_view::npos) return;
        r.refuse(Verdict::layout_invalid, sentence(c.line, " is not divisible by "));
    });
    add("are not supported for now", [](R& r, C const& c) {
        if (c.line.find("rchitectures") == std::string_view::npos) return;
        r.refuse(Verdict::unsupported, sentence(c.line, "Model architectures"));
    });
    add("EngineCore failed to start", [](R& r, C const&) {
        r.is(EngineKind::vllm);
        r.refuse(std::nullopt, "EngineCore failed to start");
    });
    add("Engine core initialization failed", [](R& r, C const&) {
        r.is(EngineKind::vllm);
        r.refuse(std::nullopt, "Engine core initialization failed");
    });
    add("Failed to load model - not enough GPU memory",
        [](R& r, C const& c) { r.refuse(Verdict::weights_do_not_fit, sentence(c.line, "Failed to load model")); });
    add("out of memory", [](R& r, C const& c) {
        bool const gpu_error = c.line.find("CUDA out of memory") != std::string_view::npos ||
                               c.line.find("HIP out of memory") != std::string_view::npos ||
                               c.line.find("OutOfMemoryError") != std::string_view::npos;
        if (gpu_error) r.out_of_memory(c);
    });

    // ---- all servers of the Python engines
    add("Application startup complete", [](R& r, C const&) {
        if (r.seen_.engine) r.serve();
    });
    add("vllm/vllm-openai:v", [](R& r, C const& c) {
        if (r.seen_.engine_version.empty())
            r.seen_.engine_version = printable(c.tail.substr(0, c.tail.find_first_of(" -\"'`\\")), 40);
    });
    add("vllm serve ", [](R& r, C const& c) {
        r.begin(EngineKind::vllm);
        r.command_ = EngineKind::vllm;
        r.command_line(c.line.substr(c.line.size() - c.tail.size() - 6));
        r.reach(StartStage::configured);
    });
    add("vllm.entrypoints.openai.api_server ", [](R& r, C const& c) {
        r.begin(EngineKind::vllm);
        r.command_ = EngineKind::vllm;
        r.command_line(c.tail);
        r.reach(StartStage::configured);
    });

    // ---- SGLang: configuration
    add("server_args=ServerArgs(", [](R& r, C const& c) {
        r.begin(EngineKind::sglang);
        r.python_flags(EngineKind::sglang, c.tail);
        if (r.seen_.settings.mem_fraction_static) r.seen_.utilization = r.seen_.settings.mem_fraction_static;
        r.reach(StartStage::configured);
    });
    add("sglang.launch_server", [](R& r, C const& c) {
        if (c.tail.find("--") == std::string_view::npos && !c.tail.ends_with('\\')) return;
        r.begin(EngineKind::sglang);
        r.command_ = EngineKind::sglang;
        r.command_line(c.tail);
        r.reach(StartStage::configured);
    });
    add("sglang serve ", [](R& r, C const& c) {
        r.begin(EngineKind::sglang);
        r.command_ = EngineKind::sglang;
        r.command_line(c.tail);
        r.reach(StartStage::configured);
    });
    add("lmsysorg/sglang:v", [](R& r, C const& c) {
        if (r.seen_.engine_version.empty())
            r.seen_.engine_version = printable(c.tail.substr(0, c.tail.find_first_of(" -\"'`\\")), 40);
    });
    add("sglang version ", [](R& r, C const& c) {
        if (r.seen_.engine_version.empty())
            r.seen_.engine_version = printable(trim(c.tail).substr(0, trim(c.tail).find(' ')), 40);
    });

    // ---- SGLang: memory ("GB" is GiB)
    add("Load weight begin. avail mem=", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = number(c.tail); v && !c.rank.before) c.rank.before = *v;
    });
    add("Load weight end.", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        auto const avail = number_after(c.tail, "avail mem=");
        auto const usage = number_after(c.tail, "mem usage=");
        if (c.rank.loads++ == 0) {
            if (usage)
                c.rank.weights = *usage;
            else if (avail && c.rank.before)
                c.rank.weights = *c.rank.before - *avail;
            if (auto const a = python_value(c.tail, "type")) r.seen_.architecture = printable(*a, 80);
            if (auto const d = python_value(c.tail, "dtype")) r.seen_.dtype = printable(*d, 40);
            if (auto const q = python_value(c.tail, "quant")) r.seen_.quantization = printable(*q, 40);
        } else if (usage) {
            c.rank.draft = c.rank.draft.value_or(0) + *usage;
        }
        if (avail) c.rank.after_weights = *avail;
        r.reach(StartStage::weights_loaded);
    });
    add("Using KV cache dtype: ", [](R& r, C const& c) {
        std::string_view d = trim(c.tail);
        if (d.starts_with("torch.")) d.remove_prefix(6);
        r.seen_.settings.kv_cache_dtype = d.starts_with("float8_e4m3")   ? "fp8_e4m3"
                                          : d.starts_with("float8_e5m2") ? "fp8_e5m2"
                                                                         : printable(d, 40);
    });
    add("Memory profiling: available_gpu_memory=", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = number(c.tail)) c.rank.after_weights = *v;
        if (auto const v = number_after(c.tail, "total_gpu_memory=")) c.rank.before = *v;
        if (auto const v = number_after(c.tail, "mem_fraction_static=")) r.seen_.utilization = *v;
        if (auto const v = number_after(c.tail, "rest_memory=")) c.rank.pool = *v;
        r.reach(StartStage::profiled);
    });
    add("KV Cache is allocated.", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        double size = 0;
        if (auto const v = number_after(c.tail, "KV size: ")) {
            size = *v;
        } else {
            auto const k = number_after(c.tail, "K size: ");
            auto const v2 = number_after(c.tail, "V size: ");
            if (k && v2) size = *k + *v2;
        }
        if (c.rank.kv_pools++ == 0) { // later pools belong to windows or to the draft
            if (size > 0) c.rank.kv = size;
            if (auto const n = number_after(c.tail, "#tokens: ")) c.rank.tokens = static_cast<std::int64_t>(*n);
        }
        r.reach(StartStage::pool_allocated);
    });
    add("SWAKVPool mem usage: ", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = number(c.tail)) c.rank.kv = *v;
        if (auto const v = number_after(c.tail, "swa size: ")) r.seen_.swa_tokens = Tokens{static_cast<std::int64_t>(*v)};
        if (auto const v = number_after(c.tail, "full size: ")) c.rank.tokens = static_cast<std::int64_t>(*v);
        r.reach(StartStage::pool_allocated);
    });
    add("Mamba Cache is allocated. max_mamba_cache_size: ", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = whole(c.tail)) r.seen_.state_slots = r.seen_.state_slots ? std::min(*r.seen_.state_slots, *v) : *v;
        auto const conv = number_after(c.tail, "conv_state size: ");
        auto const ssm = number_after(c.tail, "ssm_state size: ");
        if (conv && ssm) {
            double size = *conv + *ssm;
            for (std::string_view extra : {"intermediate_ssm_state_cache size: ", "intermediate_conv_window_cache size: "})
                if (auto const v = number_after(c.tail, extra)) size += *v;
            c.rank.state = size;
        }
        r.reach(StartStage::pool_allocated);
    });
    auto const dsv4 = [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = number_after(c.tail, "bytes_per_full_token=")) r.seen_.kv_bytes_per_token = *v;
        if (auto const v = number_after(c.tail, "available_bytes=")) c.rank.pool = *v;
        if (auto const v = number_after(c.tail, "full_token=")) c.rank.tokens = static_cast<std::int64_t>(*v);
        r.reach(StartStage::profiled);
    };
    add("DSV4 memory calculation: ", dsv4);
    add("DSv4 memory calculation: ", dsv4);
    add("DSV4 pool sizes: ", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = number_after(c.tail, "full=")) c.rank.tokens = static_cast<std::int64_t>(*v);
        if (auto const v = number_after(c.tail, "swa=")) r.seen_.swa_tokens = Tokens{static_cast<std::int64_t>(*v)};
        r.reach(StartStage::pool_allocated);
    });
    auto const capture_end = [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = number_after(c.tail, "mem usage=")) c.rank.graph = c.rank.graph.value_or(0) + *v;
        r.reach(StartStage::graphs_captured);
    };
    add("Capture cuda graph end.", capture_end);
    add("CUDA graph end. elapsed=", capture_end);
    add("max_total_num_tokens=", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        auto const v = whole(c.tail);
        if (!v || *v < 0) return;
        if (!r.seen_.kv_tokens || *v < r.seen_.kv_tokens->value()) r.seen_.kv_tokens = Tokens{*v};
        if (auto const n = number_after(c.tail, "max_running_requests="))
            r.seen_.max_requests = Requests{static_cast<std::int64_t>(*n)};
        if (auto const n = number_after(c.tail, "context_len=")) r.seen_.max_model_len = Tokens{static_cast<std::int64_t>(*n)};
        if (auto const n = number_after(c.tail, "chunked_prefill_size="))
            r.seen_.max_batched_tokens = Tokens{static_cast<std::int64_t>(*n)};
        r.reach(StartStage::pool_allocated);
    });
    add("max_running_requests is capped to ", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (auto const v = whole(c.tail)) r.seen_.max_requests = Requests{*v};
    });
    add("The server is fired up and ready to roll", [](R& r, C const&) {
        r.is(EngineKind::sglang);
        r.serve();
    });

    // ---- SGLang: refusals
    add("Not enough memory. Please try to increase --mem-fraction-static", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        r.refuse(Verdict::no_kv_memory, sentence(c.line, "Not enough memory."));
    });
    add("Loaded weights leave no GPU memory for the KV cache", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        r.refuse(Verdict::no_kv_memory, sentence(c.line, "Loaded weights leave"));
    });
    add("Not enough GPU memory for hybrid (mamba", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        r.refuse(Verdict::state_slots_too_few, sentence(c.line, "Not enough GPU memory for hybrid"));
    });
    add("state cache is too small to serve any requests", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        r.refuse(Verdict::state_slots_too_few, sentence(c.line, "Hybrid (mamba"));
    });
    add("The memory capacity is unbalanced", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        if (c.line.find("Error: ") != std::string_view::npos)
            r.refuse(Verdict::free_memory_below_request, sentence(c.line, "The memory capacity is unbalanced"));
        else
            r.note("memory is unbalanced over the GPUs");
    });
    add("SWA pool (", [](R& r, C const& c) {
        if (c.tail.find("cannot hold even one request") != std::string_view::npos)
            r.refuse(Verdict::no_kv_memory, sentence(c.line, "SWA pool ("));
    });
    add("uda graph failed", [](R& r, C const& c) {
        r.is(EngineKind::sglang);
        r.refuse(std::nullopt, sentence(c.line, "Capture cuda graph failed"));
    });
    add("Received sigquit from a child process", [](R& r, C const&) {
        r.is(EngineKind::sglang);
        r.refuse(std::nullopt, "a scheduler process died");
    });

    // ---- TensorRT-LLM
    add("TensorRT-LLM version: ", [](R& r, C const& c) {
        r.begin(EngineKind::trtllm);
        r.seen_.engine_version = printable(trim(c.tail).substr(0, trim(c.tail).find(' ')), 40);
        r.reach(StartStage::configured);
    });
    add("TensorRT-LLM Version: ", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        r.seen_.engine_version = printable(trim(c.tail), 40);
    });
    add("trtllm-serve ", [](R& r, C const& c) {
        r.begin(EngineKind::trtllm);
        r.command_ = EngineKind::trtllm;
        r.command_line(c.line.substr(c.line.size() - c.tail.size() - 13));
        r.reach(StartStage::configured);
    });
    add("TensorRT-LLM engine args: ", [](R& r, C const& c) {
        r.begin(EngineKind::trtllm);
        r.python_flags(EngineKind::trtllm, c.tail);
        r.reach(StartStage::configured);
    });
    add("Memory used after loading model weights (inside torch)", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = number_after(c.tail, ": ")) c.rank.weights = *v;
        r.reach(StartStage::weights_loaded);
    });
    add("Memory used outside torch", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = number_after(c.tail, ": ")) c.rank.non_torch = *v;
    });
    add("available KV cache memory when calculating max tokens: ", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = number(c.tail)) c.rank.pool = *v;
        if (auto const v = number_after(c.line, "(torch + non-torch): ")) c.rank.consumed = *v;
        if (auto const v = number_after(c.tail, "fraction is set ")) r.seen_.utilization = *v;
        for (std::string_view key : {"kv size per token is ", "kv size is "})
            if (auto const v = number_after(c.tail, key)) r.seen_.kv_bytes_per_token = *v;
        if (auto const v = number_after(c.tail, "device total memory ")) c.rank.total = *v;
        r.reach(StartStage::profiled);
    });
    add("Memory usage when calculating max tokens in paged kv cache: total: ", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = number(c.tail)) c.rank.total = *v;
        if (auto const v = number_after(c.tail, "available: ")) c.rank.after_weights = *v;
    });
    add("Number of blocks in KV cache primary pool: ", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = whole(c.tail)) r.seen_.blocks = *v;
        r.reach(StartStage::pool_allocated);
    });
    add("Number of tokens per block: ", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = whole(c.tail)) r.seen_.block_size = *v;
    });
    add("Max KV cache blocks per sequence: ", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = number_after(c.tail, "tokens per block=")) r.seen_.block_size = static_cast<std::int64_t>(*v);
        if (auto const v = number_after(c.tail, "primary blocks=")) r.seen_.blocks = static_cast<std::int64_t>(*v);
        if (auto const v = number_after(c.tail, "max sequence length="))
            r.seen_.max_model_len = Tokens{static_cast<std::int64_t>(*v)};
        r.reach(StartStage::pool_allocated);
    });
    add("[MemUsageChange] Allocated ", [](R& r, C const& c) {
        if (c.tail.find("for max tokens") == std::string_view::npos) return;
        r.is(EngineKind::trtllm);
        if (auto const v = number(c.tail)) c.rank.kv = *v;
        auto const open = c.tail.rfind('(');
        if (open != std::string_view::npos)
            if (auto const n = whole(c.tail.substr(open + 1)))
                r.seen_.kv_tokens = Tokens{*n}; // the first is of the profiling cache
        r.reach(StartStage::pool_allocated);
    });
    add("max_seq_len=", [](R& r, C const& c) {
        if (c.tail.find("max_num_requests=") == std::string_view::npos) return;
        r.is(EngineKind::trtllm);
        if (auto const v = whole(c.tail)) r.seen_.max_model_len = Tokens{*v};
        if (auto const v = number_after(c.tail, "max_num_requests="))
            r.seen_.max_requests = Requests{static_cast<std::int64_t>(*v)};
        if (auto const v = number_after(c.tail, "max_num_tokens="))
            r.seen_.max_batched_tokens = Tokens{static_cast<std::int64_t>(*v)};
    });
    add("Executor creation failed due to insufficient GPU memory", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        r.refuse(Verdict::no_kv_memory, "Executor creation failed due to insufficient GPU memory");
        if (auto const rest = log_detail::after(c.tail, "could not be created: "))
            r.component(*rest);
        else
            r.wait_component_ = true;
    });
    add("Impossible to fit in any sequence in kvCache", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        r.refuse(Verdict::no_kv_memory, sentence(c.line, "Impossible to fit"));
    });
    add("V2 Mamba state pool has only ", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        if (auto const v = whole(c.tail)) r.seen_.state_slots = *v;
        r.refuse(Verdict::state_slots_too_few, sentence(c.line, "The V2 Mamba state pool"));
    });
    add("Unknown architecture for AutoModel", [](R& r, C const& c) {
        r.is(EngineKind::trtllm);
        r.refuse(Verdict::unsupported, sentence(c.line, "Unknown architecture"));
    });
    add("Executor worker returned error", [](R& r, C const&) {
        r.is(EngineKind::trtllm);
        r.refuse(std::nullopt, "Executor worker returned error");
    });
    add("Engine loaded and ready to serve", [](R& r, C const&) {
        r.is(EngineKind::trtllm);
        r.serve();
    });

    // ---- llama.cpp: configuration
    add("llama-server", [](R& r, C const& c) {
        if (c.tail.find(" -") == std::string_view::npos && !c.tail.ends_with('\\')) return;
        r.begin(EngineKind::llama_cpp);
        r.command_ = EngineKind::llama_cpp;
        r.command_line(c.tail);
        r.reach(StartStage::configured);
    });
    add("build: ", [](R& r, C const& c) {
        if (c.tail.find(" with ") == std::string_view::npos) return;
        auto const n = whole(c.tail);
        if (!n) return;
        r.begin(EngineKind::llama_cpp);
        r.seen_.engine_version = "b" + std::to_string(*n);
        r.reach(StartStage::configured);
    });
    add("loaded meta data with ", [](R& r, C const& c) {
        if (r.draft_) return;
        r.begin(EngineKind::llama_cpp);
        auto const from = log_detail::after(c.tail, " from ");
        if (from && r.seen_.model.empty()) {
            auto const end = from->rfind(" (version");
            r.seen_.model = printable(from->substr(0, end), 200);
        }
        r.reach(StartStage::configured);
    });
    add("print_info: arch ", [](R& r, C const& c) {
        r.is(EngineKind::llama_cpp);
        if (auto const v = log_detail::after(c.tail, "="); v && r.seen_.architecture.empty())
            r.seen_.architecture = printable(*v, 60);
    });
    add("print_info: file type ", [](R& r, C const& c) {
        r.is(EngineKind::llama_cpp);
        if (auto const v = log_detail::after(c.tail, "="); v && r.seen_.quantization.empty())
            r.seen_.quantization = printable(*v, 60);
    });
    auto const device_name = [](R& r,
                                C const& c) { // "using device CUDA0 (NVIDIA GeForce RTX 3090) (0000:01:00.0) - 23257 MiB free"
        r.is(EngineKind::llama_cpp);
        auto const open = c.tail.find('(');
        auto const close = c.tail.find(") (", open == std::string_view::npos ? 0 : open);
        if (open != std::string_view::npos && close != std::string_view::npos)
            r.gpu_name(c.tail.substr(open + 1, close - open - 1));
        else if (open != std::string_view::npos)
            r.gpu_name(c.tail.substr(open + 1, c.tail.find(')', open) - open - 1));
        if (auto const v = number_before(c.tail, " MiB free"); v && !r.draft_) {
            double const g = *v / 1024.0;
            c.rank.before = c.rank.before ? std::min(*c.rank.before, g) : g;
        }
    };
    add("using device ", device_name);
    add("picking default device: ", [](R& r, C const& c) { r.gpu_name(c.tail); });
    add(", compute capability ", [](R& r, C const& c) { // "  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes"
        auto const at = c.line.find("Device ");
        auto const colon = at == std::string_view::npos ? at : c.line.find(": ", at);
        auto const end = c.line.find(", compute capability ");
        if (colon != std::string_view::npos && colon < end) r.gpu_name(c.line.substr(colon + 2, end - colon - 2));
    });
    add("projected to use ", [](R& r, C const& c) {
        if (c.tail.find("MiB of device memory vs.") == std::string_view::npos) return;
        r.is(EngineKind::llama_cpp);
        if (auto const v = number(c.tail)) r.seen_.requested = Bytes{static_cast<std::int64_t>(*v) * 1048576};
        if (auto const v = number_after(c.tail, "memory vs. ")) c.rank.total = *v / 1024.0;
    });
    add("context size reduced from ", [](R& r, C const& c) {
        if (auto const v = number_after(c.tail, " to ")) r.seen_.max_model_len = Tokens{static_cast<std::int64_t>(*v)};
    });
    add("creating MTP draft context", [](R& r, C const&) { r.draft_ = true; });
    add("loading draft model", [](R& r, C const&) { r.draft_ = true; });

    // ---- llama.cpp: buffers
    add("offloaded ", [](R& r, C const& c) {
        if (c.tail.find("layers to GPU") == std::string_view::npos || r.draft_) return;
        r.is(EngineKind::llama_cpp);
        auto const a = whole(c.tail);
        auto const b = number_after(c.tail, "/");
        if (a && b) {
            r.seen_.gpu_layers = static_cast<std::int32_t>(*a);
            r.seen_.all_layers = static_cast<std::int32_t>(*b);
        }
        r.devices_.clear(); // a dry run of the fit may have come before
        r.seen_.kv_tokens.reset();
        r.seen_.kv_allocated.reset();
        r.seen_.state_bytes.reset();
        r.seen_.swa_tokens.reset();
        r.reach(StartStage::weights_loaded);
    });
    add(" model buffer size", [](R& r, C const& c) { r.device_buffer(c, " model buffer size", &Device::model, false); });
    add(" KV buffer size", [](R& r, C const& c) { r.device_buffer(c, " KV buffer size", &Device::kv, false); });
    add(" RS buffer size", [](R& r, C const& c) { r.device_buffer(c, " RS buffer size", &Device::state, false); });
    add(" compute buffer size", [](R& r, C const& c) {
        r.device_buffer(c, " compute buffer size", &Device::compute, true);
        r.reach(StartStage::graphs_captured);
    });
    auto const kv_size = [](R& r,
                            C const& c) { // size = 544.00 MiB ( 65536 cells, 4 layers, 1/1 seqs), K (q8_0): ..., V (q8_0): ...
        if (r.draft_) return;
        r.is(EngineKind::llama_cpp);
        auto const size = number(c.tail);
        auto const cells = number_before(c.tail, " cells");
        if (!size || !cells) return;
        auto const bytes = Bytes{static_cast<std::int64_t>(*size * 1048576.0)};
        auto const n = Tokens{static_cast<std::int64_t>(*cells)};
        r.seen_.kv_allocated = r.seen_.kv_allocated.value_or(Bytes{}) + bytes;
        if (!r.seen_.kv_tokens) { // the base cache comes first, the window cache after it
            r.seen_.kv_tokens = n;
        } else if (n < *r.seen_.kv_tokens) {
            r.seen_.swa_tokens = n;
        } else if (*r.seen_.kv_tokens < n) {
            r.seen_.swa_tokens = r.seen_.kv_tokens;
            r.seen_.kv_tokens = n;
        }
        if (auto const k = log_detail::after(c.tail, "K ("))
            r.seen_.settings.kv_cache_dtype = printable(k->substr(0, k->find(')')), 20);
        if (auto const v = log_detail::after(c.tail, "V ("))
            r.seen_.settings.cache_type_v = printable(v->substr(0, v->find(')')), 20);
        r.reach(StartStage::pool_allocated);
    };
    add("llama_kv_cache: size = ", kv_size);
    add("llama_kv_cache_unified: size = ", kv_size);
    add("llama_memory_recurrent: size = ", [](R& r, C const& c) {
        if (r.draft_) return;
        r.is(EngineKind::llama_cpp);
        if (auto const v = number(c.tail)) r.seen_.state_bytes = Bytes{static_cast<std::int64_t>(*v * 1048576.0)};
        if (auto const n = number_before(c.tail, " seqs")) r.seen_.state_slots = static_cast<std::int64_t>(*n);
        r.reach(StartStage::pool_allocated);
    });
    add("KV self size  = ", [](R& r, C const& c) {
        r.is(EngineKind::llama_cpp);
        if (auto const v = number(c.tail)) r.seen_.kv_allocated = Bytes{static_cast<std::int64_t>(*v * 1048576.0)};
        r.reach(StartStage::pool_allocated);
    });
    auto const n_ctx = [](R& r, C const& c) {
        if (r.draft_) return;
        auto const v = log_detail::after(c.tail, "=");
        if (auto const n = v ? whole(*v) : std::nullopt) r.seen_.max_model_len = Tokens{*n};
    };
    add(": n_ctx ", n_ctx);
    add(": n_ubatch ", [](R& r, C const& c) {
        auto const v = log_detail::after(c.tail, "=");
        if (auto const n = v ? whole(*v) : std::nullopt; n && !r.draft_) r.seen_.settings.ubatch = Tokens{*n};
    });
    add(": n_seq_max ", [](R& r, C const& c) {
        auto const v = log_detail::after(c.tail, "=");
        if (auto const n = v ? whole(*v) : std::nullopt; n && !r.draft_ && *n < 100000) {
            r.seen_.max_requests = Requests{*n};
            r.seen_.settings.n_parallel = static_cast<std::int32_t>(*n);
        }
    });
    add("n_slots = ", [](R& r, C const& c) {
        if (auto const n = whole(c.tail); n && *n < 100000) {
            r.seen_.max_requests = Requests{*n};
            r.seen_.settings.n_parallel = static_cast<std::int32_t>(*n);
        }
    });
    add("kv_unified ", [](R& r, C const& c) {
        auto const v = log_detail::after(c.tail, "=");
        if (v && !r.draft_) r.seen_.settings.kv_unified = v->find("true") != std::string_view::npos || trim(*v) == "1";
    });

    // ---- llama.cpp: the outcome
    add("server is listening on", [](R& r, C const&) {
        r.is(EngineKind::llama_cpp);
        if (r.seen_.engine == EngineKind::llama_cpp) r.serve();
    });
    add("all slots are idle", [](R& r, C const&) {
        r.is(EngineKind::llama_cpp);
        r.serve();
    });
    add("failed to allocate buffer for ", [](R& r, C const& c) {
        r.is(EngineKind::llama_cpp);
        r.refuse(Verdict::no_kv_memory, sentence(c.line, "failed to allocate buffer for "));
    });
    add("failed to allocate compute ", [](R& r, C const& c) {
        r.is(EngineKind::llama_cpp);
        r.refuse(Verdict::no_kv_memory, sentence(c.line, "failed to allocate compute "));
    });
    add("unable to allocate ", [](R& r, C const& c) {
        if (c.tail.find(" buffer") == std::string_view::npos) return;
        r.is(EngineKind::llama_cpp);
        r.refuse(Verdict::weights_do_not_fit, sentence(c.line, "unable to allocate "));
    });
    add("unknown model architecture: ", [](R& r, C const& c) {
        r.is(EngineKind::llama_cpp);
        r.refuse(Verdict::unsupported, sentence(c.line, "unknown model architecture"));
    });
    add("exiting due to model loading error", [](R& r, C const&) {
        r.is(EngineKind::llama_cpp);
        r.refuse(std::nullopt, "exiting due to model loading error");
    });

    // ---- GPU names that tools print around a log
    add("GPU 0: NVIDIA ",
        [](R& r, C const& c) { r.gpu_name("NVIDIA " + std::string{c.tail.substr(0, c.tail.find_first_of("(\n"))}); });
    return t;
}

/// Turns the terms of the workers into one description.
inline void StartupLogReader::conclude() {
    if (!pending_.empty()) {
        length_refusal(pending_);
        pending_.clear();
    }
    ObservedStart& s = seen_;
    auto const most = [this](std::optional<double> log_detail::RankTerms::*term) {
        std::optional<double> v;
        for (auto const& [key, r] : ranks_)
            if (r.*term && (!v || *(r.*term) > *v)) v = r.*term;
        return v;
    };
    auto const least = [this](std::optional<double> log_detail::RankTerms::*term) {
        std::optional<double> v;
        for (auto const& [key, r] : ranks_)
            if (r.*term && (!v || *(r.*term) < *v)) v = r.*term;
        return v;
    };
    auto const bytes = [](std::optional<double> g) { return g && std::abs(*g) < 1e9 ? std::optional{gib(*g)} : std::nullopt; };
    using T = log_detail::RankTerms;
    s.weights = bytes(most(&T::weights));
    s.weights_least = bytes(least(&T::weights));
    s.draft_weights = bytes(most(&T::draft));
    s.consumed = bytes(most(&T::consumed));
    s.activation = bytes(most(&T::activation));
    s.non_torch = bytes(most(&T::non_torch));
    s.cuda_graph = bytes(most(&T::graph));
    s.cuda_graph_estimate = bytes(most(&T::graph_estimate));
    s.total = bytes(least(&T::total));
    s.free_before = bytes(least(&T::before));
    if (auto const p = bytes(least(&T::pool))) s.pool = p;
    if (auto const p = bytes(most(&T::pool))) s.pool_most = p;
    if (auto const k = bytes(least(&T::kv)); k && !s.kv_allocated) s.kv_allocated = k;
    if (auto const k = bytes(least(&T::state)); k && !s.state_bytes) s.state_bytes = k;
    for (auto const& [key, r] : ranks_) {
        if (r.weights || r.pool || r.kv) ++s.ranks_seen;
        if (r.tokens && !s.kv_tokens) s.kv_tokens = Tokens{*r.tokens};
    }
    if (!s.pool && s.engine == EngineKind::vllm && s.kv_allocated) s.pool = s.kv_allocated;
    if (!s.pool && s.engine == EngineKind::sglang && s.kv_allocated)
        s.pool = *s.kv_allocated + s.state_bytes.value_or(Bytes{}); // what the profile gave, to within a page
    if (!s.pool && s.engine == EngineKind::trtllm && s.kv_allocated) s.pool = s.kv_allocated;

    if (s.engine == EngineKind::llama_cpp && !devices_.empty()) {
        double model = 0, host = 0, kv = 0, state = 0, compute = 0;
        std::int32_t n = 0;
        for (auto const& [name, d] : devices_) {
            if (d.host) {
                host += d.model;
                continue;
            }
            if (d.model > 0 || d.kv > 0) ++n;
            model = std::max(model, d.model);
            kv += d.kv;
            state += d.state;
            compute = std::max(compute, d.compute);
        }
        s.ranks_seen = n;
        if (model > 0) s.weights = gib(model / 1024.0);
        if (host > 0) s.host_weights = gib(host / 1024.0);
        if (compute > 0) s.compute_buffer = gib(compute / 1024.0);
        if (kv > 0 && !s.kv_allocated) s.kv_allocated = gib(kv / 1024.0);
        if (state > 0 && !s.state_bytes) s.state_bytes = gib(state / 1024.0);
        s.weights_least = s.weights;
    }

    s.tp = engine_tp_;
    s.dp = engine_dp_;
    if (dp_attention_ && engine_tp_ &&
        s.engine == EngineKind::sglang) { // SGLang: --tp counts all GPUs, --dp the copies of attention
        std::int32_t const copies = engine_dp_.value_or(1);
        if (copies > 1 && *engine_tp_ % copies == 0) s.tp = *engine_tp_ / copies;
    }
    if (dp_attention_ && engine_tp_ && s.engine == EngineKind::trtllm) {
        s.dp = engine_tp_;
        s.tp = 1;
    }
    if (s.starts_in_log > 1) note("the log holds " + std::to_string(s.starts_in_log) + " starts; the last one is described");
    if (s.lines > 0 && s.engine && !s.starts && s.stage < StartStage::ready)
        note("the log ends before the start is decided (stage: " + std::string{to_string(s.stage)} + ")");
}

/// Reads a whole log that is in memory.
inline ObservedStart parse_startup_log(std::string_view text) {
    StartupLogReader reader;
    reader.feed(text);
    return reader.finish();
}

/// Reads the log in the file at `path`, or standard input for "-", in pieces. Errors: missing, bad_format when no
/// line of an engine is in it.
inline Result<ObservedStart> read_startup_log(std::string const& path) {
    struct Closer {
        void operator()(std::FILE* f) const noexcept {
            if (f != stdin) std::fclose(f);
        }
    };
    std::unique_ptr<std::FILE, Closer> file{path == "-" ? stdin : std::fopen(path.c_str(), "rb")};
    if (!file) return fail(ErrorCode::missing, "cannot open the log", path, "a file, or - for standard input");
    StartupLogReader reader;
    std::vector<char> buffer(1 << 18);
    for (;;) {
        std::size_t const n = std::fread(buffer.data(), 1, buffer.size(), file.get());
        if (n == 0) break;
        reader.feed({buffer.data(), n});
    }
    if (std::ferror(file.get()) != 0)
        return fail(ErrorCode::missing, "cannot read the log", path, "a file, or - for standard input");
    ObservedStart seen = reader.finish();
    if (!seen.engine)
        return fail(ErrorCode::bad_format,
                    "no line of a vLLM, SGLang, TensorRT-LLM or llama.cpp start-up in " + std::to_string(seen.lines) + " lines",
                    path, "give the server's log from its first line to the error or the ready line");
    return seen;
}

} // namespace servecap
