// Sizes of weight formats and checked arithmetic, by compiling.
#include <cstdint>
#include <limits>

#include <servecap/catalog/format.hpp>
#include <servecap/core/checked.hpp>

using namespace servecap;

constexpr WeightFormat of(Format f) { return WeightFormat{.format = f}; }

// One e8m0 byte for 32 values (OCP MX), one e4m3 byte for 16 and two fp32 scales a tensor (NVFP4).
static_assert(matrix_bytes(of(Format::bf16), 128, 64) == Bytes{16384});
static_assert(matrix_bytes(of(Format::mxfp4), 128, 64) == Bytes{4096 + 256});
static_assert(matrix_bytes(of(Format::mxfp8), 128, 64) == Bytes{8192 + 256});
static_assert(matrix_bytes(of(Format::nvfp4), 128, 64) == Bytes{4096 + 512 + 8});
static_assert(matrix_bytes(of(Format::fp8_block), 129, 128) == Bytes{129 * 128 + 2 * 4});

// Overflow is a value, not a wrap.
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
static_assert(checked_mul(3, 4) == 12 && !checked_mul(kMost, 2) && !checked_mul(kMost, kMost));
static_assert(checked_add(kMost - 1, 1) == kMost && !checked_add(kMost, 1));
static_assert(checked_product(2, 3, 4) == 24 && !checked_product(kMost, 1, 2) && !checked_product(1 << 20, 1 << 22, 1 << 22));
