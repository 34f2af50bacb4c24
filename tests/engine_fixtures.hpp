// Models and GPUs for the tests of the engines: cards of the catalogue, and GPUs with figures that their vendors and
// runtimes print.
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <catch.hpp>

#include <servecap/catalog/gpu.hpp>
#include <servecap/io/hf_config.hpp>

namespace fixtures {

/// The model of a card of the catalogue, by its file name without ".json".
inline servecap::Model model(std::string const& card) {
    std::ifstream in{std::string{SERVECAP_DATA} + "/models/" + card + ".json", std::ios::binary};
    REQUIRE(in.good());
    std::string const text{std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
    auto m = servecap::model_from_config(text, card);
    INFO((m ? std::string{} : servecap::to_line(m.error())));
    REQUIRE(m.has_value());
    return *m;
}

/// `count` GPUs with what nvidia-smi reports (MiB) and what the runtime sees (GiB).
inline servecap::GpuSet gpus(std::string id, servecap::GpuVendor vendor, std::string cc, std::int64_t reported_mib,
                             double visible_gib, std::int32_t count = 1) {
    servecap::GpuSet s;
    s.gpu.id = std::move(id);
    s.gpu.name = s.gpu.id;
    s.gpu.vendor = vendor;
    s.gpu.compute_capability = std::move(cc);
    s.gpu.memory_reported = servecap::mib(reported_mib);
    s.gpu.memory_visible = servecap::gib(visible_gib);
    s.gpu.visible = servecap::gib(visible_gib);
    s.gpu.native_fp8 =
        servecap::GpuVendor::nvidia != vendor || s.gpu.compute_capability >= "8.9" || s.gpu.compute_capability.size() > 3;
    s.count = count;
    s.nodes = count > 8 ? count / 8 : 1;
    return s;
}

inline servecap::GpuSet h100(std::int32_t n = 1) { return gpus("h100-sxm", servecap::GpuVendor::nvidia, "9.0", 81559, 79.18, n); }
inline servecap::GpuSet h200(std::int32_t n = 1) {
    return gpus("h200-sxm", servecap::GpuVendor::nvidia, "9.0", 143771, 139.81, n);
}
inline servecap::GpuSet b200(std::int32_t n = 1) {
    return gpus("b200-sxm", servecap::GpuVendor::nvidia, "10.0", 183359, 178.35, n);
}
inline servecap::GpuSet b300(std::int32_t n = 1) {
    return gpus("b300-sxm", servecap::GpuVendor::nvidia, "10.3", 275040, 267.68, n);
}
inline servecap::GpuSet a100(std::int32_t n = 1) {
    return gpus("a100-80-sxm", servecap::GpuVendor::nvidia, "8.0", 81920, 79.25, n);
}
inline servecap::GpuSet rtx4090(std::int32_t n = 1) {
    return gpus("rtx-4090", servecap::GpuVendor::nvidia, "8.9", 24564, 23.55, n);
}
inline servecap::GpuSet rtx3090(std::int32_t n = 1) {
    return gpus("rtx-3090", servecap::GpuVendor::nvidia, "8.6", 24576, 23.57, n);
}
inline servecap::GpuSet rtxpro6000(std::int32_t n = 1) {
    return gpus("rtx-pro-6000", servecap::GpuVendor::nvidia, "12.0", 97887, 94.97, n);
}
inline servecap::GpuSet v100(std::int32_t n = 1) { return gpus("v100", servecap::GpuVendor::nvidia, "7.0", 32768, 31.73, n); }
inline servecap::GpuSet mi355x(std::int32_t n = 1) {
    return gpus("mi355x", servecap::GpuVendor::amd, "gfx950", 294896, 287.98, n);
}

} // namespace fixtures
