// servecap: GPUs and the nodes they come in
// SPDX-License-Identifier: Apache-2.0
//
// Memory has three figures: what the vendor prints (GB or GiB, it varies), what nvidia-smi or rocm-smi
// reports, and what the runtime can allocate from (cudaMemGetInfo total), which engines budget with.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <servecap/catalog/format.hpp>
#include <servecap/units/quantity.hpp>

namespace servecap {

enum class GpuVendor : std::uint8_t { nvidia, amd, intel, other };
/// Whether one can rent or buy it; `restricted`: sold in one market only (H20, Ascend).
enum class Availability : std::uint8_t { available, legacy, announced, restricted };

/// One accelerator; empty optionals are figures that are not known.
struct Gpu {
    std::string id;           ///< "b300-sxm"
    std::string name;         ///< "NVIDIA B300 SXM6 ..."
    std::string short_name;   ///< "B300 SXM"
    GpuVendor vendor = GpuVendor::other;
    std::string architecture; ///< "Hopper", "Blackwell Ultra", "CDNA4"
    std::string compute_capability; ///< "9.0", "10.3", "gfx950"
    Availability status = Availability::available;
    std::string status_text;        ///< as the catalogue words it
    std::string memory_printed;     ///< as the vendor prints it: "288"
    std::optional<Bytes> memory_reported;        ///< nvidia-smi / rocm-smi total
    std::optional<Bytes> memory_visible;         ///< runtime total, where measured
    Bytes visible{};                             ///< what engines budget with: memory_visible, else an estimate from memory_reported
    bool visible_is_estimate = false;
    std::optional<BytesPerSecond> bandwidth;     ///< HBM or GDDR, nominal
    std::optional<FlopsPerSecond> bf16, fp16, fp8, fp6, fp4, int8; ///< dense
    bool native_fp8 = false;
    bool native_mxfp4 = false;
    bool native_nvfp4 = false;
    std::string scaleup_link;                    ///< "NVLink5/NVSwitch"
    std::optional<BytesPerSecond> scaleup;       ///< one direction, per GPU; none: PCIe only
    std::int32_t scaleup_domain = 1;             ///< GPUs in one NVLink / xGMI domain
    std::optional<BytesPerSecond> pcie;
    std::optional<Watts> tdp;
    std::int32_t sm_count = 0;
    std::int32_t node_gpus = 8;                  ///< GPUs of a usual node
    std::optional<Bytes> node_ram;
    std::optional<BytesPerSecond> node_nic;      ///< one direction, per GPU
    std::optional<Watts> node_power;
    std::string source_url;
    std::string notes;
    std::string unverified;                      ///< columns filled from general knowledge
};

/// GPUs that are asked for: `count` of one kind over whole nodes.
struct GpuSet {
    Gpu gpu;
    std::int32_t count = 1;
    std::int32_t nodes = 1;

    [[nodiscard]] std::int32_t per_node() const noexcept { return static_cast<std::int32_t>(ceil_div(count, nodes)); }
    /// GPUs that reach each other over the scale-up link.
    [[nodiscard]] std::int32_t domain() const noexcept {
        return gpu.scaleup ? (gpu.scaleup_domain < count ? gpu.scaleup_domain : count) : 1;
    }
};

} // namespace servecap
