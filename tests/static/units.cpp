// Laws of the unit types, checked by compiling.
#include <type_traits>
#include <utility>

#include <servecap/units/quantity.hpp>

using namespace servecap;

static_assert(sizeof(Bytes) == 8 && sizeof(Seconds) == 8);
static_assert(std::is_trivially_copyable_v<Bytes> && std::is_trivially_copyable_v<UsdPerHour>);
static_assert(std::is_standard_layout_v<Tokens>);
static_assert(std::is_nothrow_default_constructible_v<Bytes> && Bytes{}.value() == 0);

// Two families of prefixes, one type.
static_assert(1_KiB == 1024_B && 1_MiB == 1024_KiB && 1_GiB == 1024_MiB && 1_TiB == 1024_GiB);
static_assert(1_GB == 1000_MB && 1_TB == 1000_GB);
static_assert(141_GB < 132_GiB && 141_GB > 131_GiB);
static_assert(0.5_GiB == 512_MiB && gib(-0.5) == -512_MiB && mib(275040) == 275040_MiB);

// A count is made from integers alone, without a conversion in passing, and is no number by itself.
template <class T, class From>
inline constexpr bool made_from = std::is_constructible_v<T, From>;
static_assert(made_from<Bytes, int> && made_from<Bytes, unsigned> && !made_from<Bytes, double> && !made_from<Bytes, float>);
static_assert(made_from<Seconds, double> && made_from<Seconds, int>);
static_assert(!std::is_convertible_v<int, Bytes> && !std::is_convertible_v<Bytes, std::int64_t> && !made_from<Bytes, Tokens>);

// Only sums and products with a meaning exist.
template <class A, class B>
concept adds = requires(A a, B b) { a + b; };
template <class A, class B>
concept multiplies = requires(A a, B b) { a * b; };
template <class A, class B>
concept divides = requires(A a, B b) { a / b; };
template <class A, class B>
concept compares = requires(A a, B b) { a < b; };
static_assert(adds<Bytes, Bytes> && !adds<Bytes, Tokens> && !adds<Usd, UsdPerHour> && !adds<Bytes, int>);
static_assert(multiplies<Bytes, int> && multiplies<int, Bytes> && !multiplies<Bytes, double> && !multiplies<Bytes, Bytes>);
static_assert(multiplies<Seconds, double> && multiplies<UsdPerHour, Seconds> && !multiplies<Usd, Seconds>);
static_assert(divides<Bytes, Bytes> && divides<Bytes, BytesPerSecond> && divides<UsdPerHour, TokensPerSecond>);
static_assert(!divides<Usd, Bytes> && !divides<Tokens, Bytes> && !divides<Bytes, double>);
static_assert(compares<Bytes, Bytes> && !compares<Bytes, Tokens> && !compares<Bytes, int>);

static_assert(std::is_same_v<decltype(std::declval<UsdPerHour>() / std::declval<TokensPerSecond>()), UsdPerMillionTokens>);
static_assert(std::is_same_v<decltype(std::declval<Bytes>() / std::declval<Bytes>()), double>);

// Ceilings.
static_assert(ceil_div(0, 16) == 0 && ceil_div(1, 16) == 1 && ceil_div(16, 16) == 1 && ceil_div(17, 16) == 2);
static_assert(round_up(1, 128) == 128 && round_up(128, 128) == 128 && round_up(0, 128) == 0);
