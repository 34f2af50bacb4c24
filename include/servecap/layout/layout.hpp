// servecap: how a model is spread over GPUs
// SPDX-License-Identifier: Apache-2.0
//
// A replica is tp * pp * dp GPUs. `tp` cuts tensors, `pp` cuts layers into stages, `dp` copies attention
// (data-parallel attention). With `ep` whole experts are spread over tp * dp ranks. `dcp` spreads the
// KV cache of one sequence over ranks of a TP group (decode context parallel). Names: tp8, pp2, tep8
// (attention TP, experts EP), dep8 (attention DP, experts EP), tp4x2 (two replicas), tp8dcp8, tp8pp3.

#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include <servecap/core/result.hpp>

namespace servecap {

struct Layout {
    std::int32_t tp = 1;
    std::int32_t pp = 1;
    std::int32_t dp = 1;
    std::int32_t dcp = 1;
    std::int32_t replicas = 1;
    bool ep = false;

    /// GPUs of one replica.
    [[nodiscard]] constexpr std::int32_t gpus_per_replica() const noexcept { return tp * pp * dp; }
    [[nodiscard]] constexpr std::int32_t gpus() const noexcept { return gpus_per_replica() * replicas; }
    /// Ranks over which whole experts are spread; 1 without expert parallelism.
    [[nodiscard]] constexpr std::int32_t ep_size() const noexcept { return ep ? tp * dp : 1; }

    friend constexpr bool operator==(Layout const&, Layout const&) = default;
};

/// The name of a layout: "tp8", "tep8", "dep8", "tp4x2", "tp2dp4", "tp8pp3", "tp8dcp8".
inline std::string layout_name(Layout const& l) {
    std::string s;
    if (l.ep && l.dp > 1 && l.tp == 1) {
        s = "dep" + std::to_string(l.dp);
    } else if (l.ep) {
        s = "tep" + std::to_string(l.tp);
        if (l.dp > 1) s += "dp" + std::to_string(l.dp);
    } else {
        if (l.tp > 1 || (l.pp == 1 && l.dp == 1)) s = "tp" + std::to_string(l.tp);
        if (l.dp > 1) s += "dp" + std::to_string(l.dp);
    }
    if (l.pp > 1) s += "pp" + std::to_string(l.pp);
    if (l.dcp > 1) s += "dcp" + std::to_string(l.dcp);
    if (l.replicas > 1) s += "x" + std::to_string(l.replicas);
    return s;
}

/// Reads a layout name. Errors: bad_value with the place of the first part that is not understood.
inline Result<Layout> parse_layout(std::string_view text) {
    constexpr std::string_view expected = "expected tp8, pp2, tep8, dep8, tp4x2, tp2dp4, tp8pp3 or tp8dcp8";
    auto const bad = [&](std::string_view why) {
        return fail(ErrorCode::bad_value, "layout '" + std::string{text} + "': " + std::string{why}, "--layout", std::string{expected});
    };
    Layout l;
    std::string_view rest = text;
    bool any = false;
    while (!rest.empty()) {
        std::string_view key;
        for (std::string_view k : {"tep", "dep", "dcp", "tp", "pp", "dp", "ep", "x"})
            if (rest.starts_with(k)) {
                key = k;
                break;
            }
        if (key.empty()) return bad("'" + std::string{rest} + "' is not understood");
        rest.remove_prefix(key.size());
        std::int32_t n = 0;
        auto const [end, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
        if (ec != std::errc{} || n < 1 || n > 100000) return bad("'" + std::string{key} + "' needs a number from 1 to 100,000");
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
        any = true;
        if (key == "tep") {
            l.tp = n;
            l.ep = true;
        } else if (key == "dep") {
            l.dp = n;
            l.ep = true;
        } else if (key == "dcp") {
            l.dcp = n;
        } else if (key == "tp") {
            l.tp = n;
        } else if (key == "pp") {
            l.pp = n;
        } else if (key == "dp") {
            l.dp = n;
        } else if (key == "ep") {
            l.ep = n > 1;
        } else {
            l.replicas = n;
        }
    }
    if (!any) return bad("empty");
    if (static_cast<std::int64_t>(l.tp) * l.pp * l.dp > 1000000 ||
        static_cast<std::int64_t>(l.gpus_per_replica()) * l.replicas > 1000000)
        return bad("more than a million GPUs");
    return l;
}

} // namespace servecap
