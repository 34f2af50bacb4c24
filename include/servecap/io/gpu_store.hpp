// servecap: finding GPUs by the names people type
// SPDX-License-Identifier: Apache-2.0
//
// "b300x8", "8xb300", "8 x B300", "h200x16" (two nodes of 8), "gb300x8" (two trays of 4 in one NVLink domain).
// A bare family name means its common part: h100 is h100-sxm, a100 is a100-80-sxm. A count must lie within one node
// or scale-up domain, or be a multiple of one of them; that holds for PCIe cards too (a chassis of 8 unless the
// catalogue says otherwise).

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <servecap/catalog/gpu.hpp>
#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/io/rows.hpp>

namespace servecap {

namespace detail {

/// The form in which GPU names are compared: lower case, no separators, no vendor words.
inline std::string gpu_key(std::string_view name) {
    std::string key;
    for (char c : to_lower(name))
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) key.push_back(c);
    for (std::string_view word : {"nvidia", "geforce", "amd", "instinct", "intel"})
        if (key.starts_with(word) && key.size() > word.size()) key.erase(0, word.size());
    return key;
}

/// What people call a part besides its id.
struct GpuAlias {
    std::string_view key, id;
};
inline constexpr GpuAlias kGpuAliases[]{
    GpuAlias{"h100", "h100-sxm"},
    GpuAlias{"h100sxm5", "h100-sxm"},
    GpuAlias{"h10080", "h100-sxm"},
    GpuAlias{"h10080gb", "h100-sxm"},
    GpuAlias{"h10080gbhbm3", "h100-sxm"}, // as nvidia-smi prints it
    GpuAlias{"h100pcie80gb", "h100-pcie"},
    GpuAlias{"h100sxm80gb", "h100-sxm"},
    GpuAlias{"h200", "h200-sxm"},
    GpuAlias{"h200sxm5", "h200-sxm"},
    GpuAlias{"h200141gb", "h200-sxm"},
    GpuAlias{"a100", "a100-80-sxm"},
    GpuAlias{"a10080", "a100-80-sxm"},
    GpuAlias{"a10080gb", "a100-80-sxm"},
    GpuAlias{"a100sxm", "a100-80-sxm"},
    GpuAlias{"a10040", "a100-40-sxm"},
    GpuAlias{"a10040gb", "a100-40-sxm"},
    GpuAlias{"a100pcie", "a100-80-pcie"},
    GpuAlias{"b200", "b200-sxm"},
    GpuAlias{"b200sxm6", "b200-sxm"},
    GpuAlias{"b300", "b300-sxm"},
    GpuAlias{"b300sxm6", "b300-sxm"},
    GpuAlias{"gb200nvl72", "gb200"},
    GpuAlias{"gb300nvl72", "gb300"},
    GpuAlias{"h20", "h20-96"},
    GpuAlias{"h2096gb", "h20-96"},
    GpuAlias{"h203e", "h20-141"},
    GpuAlias{"h20141gb", "h20-141"},
    GpuAlias{"gh200", "gh200-96"},
    GpuAlias{"gh200144gb", "gh200-144"},
    GpuAlias{"v100", "v100-sxm2-32"},
    GpuAlias{"v10016gb", "v100-sxm2-16"},
    GpuAlias{"v10032gb", "v100-sxm2-32"},
    GpuAlias{"v100sxm2", "v100-sxm2-32"},
    GpuAlias{"mi250", "mi250x"},
    GpuAlias{"mi300", "mi300x"},
    GpuAlias{"mi325", "mi325x"},
    GpuAlias{"mi350", "mi350x"},
    GpuAlias{"mi355", "mi355x"},
    GpuAlias{"mi455", "mi455x"},
    GpuAlias{"a6000", "rtx-a6000"},
    GpuAlias{"3090", "rtx-3090"},
    GpuAlias{"4090", "rtx-4090"},
    GpuAlias{"5090", "rtx-5090"},
    GpuAlias{"rtx6000ada", "rtx-6000-ada"},
    GpuAlias{"6000ada", "rtx-6000-ada"},
    GpuAlias{"rtxpro6000", "rtx-pro-6000-bw-ws"},
    GpuAlias{"pro6000", "rtx-pro-6000-bw-ws"},
    GpuAlias{"rtxpro6000blackwell", "rtx-pro-6000-bw-ws"},
    GpuAlias{"rtxpro6000ws", "rtx-pro-6000-bw-ws"},
    GpuAlias{"rtxpro6000server", "rtx-pro-6000-bw-server"},
    GpuAlias{"rtxpro6000se", "rtx-pro-6000-bw-server"},
    GpuAlias{"gb10", "gb10-dgx-spark"},
    GpuAlias{"dgxspark", "gb10-dgx-spark"},
    GpuAlias{"spark", "gb10-dgx-spark"},
    GpuAlias{"rubin", "rubin-vr200"},
    GpuAlias{"vr200", "rubin-vr200"},
    GpuAlias{"m3ultra", "m3-ultra-512"},
    GpuAlias{"910c", "ascend-910c"},
    GpuAlias{"ascend910c", "ascend-910c"},
};

} // namespace detail

/// The GPU called `name`: its id, short name, a family name or a usual spelling. Null when none is.
inline Gpu const* find_gpu(std::string_view name, std::span<Gpu const> gpus) {
    std::string const key = detail::gpu_key(name);
    if (key.empty()) return nullptr;
    auto const with_id = [&](std::string_view id) -> Gpu const* {
        for (Gpu const& g : gpus)
            if (g.id == id) return &g;
        return nullptr;
    };
    for (Gpu const& g : gpus)
        if (detail::gpu_key(g.id) == key) return &g;
    for (auto const& a : detail::kGpuAliases)
        if (a.key == key) return with_id(a.id);
    for (Gpu const& g : gpus)
        if (detail::gpu_key(g.short_name) == key || detail::gpu_key(g.name) == key) return &g;
    return nullptr;
}

/// `count` GPUs of one kind over whole nodes, or why that is no set one can build.
inline Result<GpuSet> make_gpu_set(Gpu const& gpu, std::int64_t count) {
    std::int64_t const node = std::max(1, gpu.node_gpus);
    std::int64_t const domain = std::max(node, static_cast<std::int64_t>(gpu.scaleup ? gpu.scaleup_domain : 1));
    if (count < 1 || count > 100'000)
        return fail(ErrorCode::bad_value, std::to_string(count) + " GPUs", "--gpu", "expected 1 to 100,000");
    if (count > domain && count % node != 0 && count % domain != 0) {
        std::int64_t const less = count / node * node;
        return fail(ErrorCode::bad_value,
                    std::to_string(count) + " x " + gpu.short_name + " is neither within one node of " + std::to_string(node) +
                        (domain > node ? " or one scale-up domain of " + std::to_string(domain) : std::string{}) +
                        " nor a multiple of it",
                    "--gpu", "use " + std::to_string(less) + " or " + std::to_string(less + node));
    }
    GpuSet set;
    set.gpu = gpu;
    set.count = static_cast<std::int32_t>(count);
    set.nodes = static_cast<std::int32_t>(ceil_div(count, node));
    return set;
}

/// Reads "b300x8", "8xb300", "gb300 x 8" or a bare name (one GPU).
inline Result<GpuSet> parse_gpus(std::string_view text, std::span<Gpu const> gpus) {
    std::string const s = to_lower(trim(text));
    if (s.empty()) return fail(ErrorCode::bad_usage, "no GPU named", "--gpu", "for example b300x8");
    if (Gpu const* g = find_gpu(s, gpus)) return make_gpu_set(*g, 1);

    std::string_view name = s;
    std::string_view digits;
    auto const first = s.find_first_of("x*:");
    auto const last = s.find_last_of("x*:");
    if (first != std::string::npos) {
        std::string_view const before = trim(std::string_view{s}.substr(0, first));
        std::string_view const after = trim(std::string_view{s}.substr(last + 1));
        if (!before.empty() && before.find_first_not_of("0123456789") == std::string_view::npos) { // "8xb300"
            digits = before;
            name = trim(std::string_view{s}.substr(first + 1));
        } else if (!after.empty() && after.find_first_not_of("0123456789.+-") == std::string_view::npos) { // "b300x8"
            digits = after;
            name = trim(std::string_view{s}.substr(0, last));
        }
    }
    Gpu const* gpu = find_gpu(name, gpus);
    if (gpu == nullptr) {
        std::vector<std::string> known;
        for (Gpu const& g : gpus) known.push_back(g.id);
        for (auto const& a : detail::kGpuAliases) known.emplace_back(a.key);
        std::string hint = did_you_mean(name, known);
        if (hint.empty()) hint = "planner list gpus shows all of them";
        return fail(ErrorCode::unknown_name, "unknown GPU \"" + std::string{name.substr(0, 60)} + "\"", "--gpu", std::move(hint));
    }
    std::int64_t count = 1;
    if (!digits.empty()) {
        auto const [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
        if (bad != std::errc{} || end != digits.data() + digits.size())
            return fail(ErrorCode::bad_value, "\"" + std::string{digits.substr(0, 30)} + "\" is no number of GPUs", "--gpu",
                        "expected a whole number, as in " + gpu->id + "x8");
    }
    return make_gpu_set(*gpu, count);
}

} // namespace servecap
