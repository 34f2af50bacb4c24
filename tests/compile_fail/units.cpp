// Units that must not mix. CASE=0 is the control.
// case 1: no match for .*operator\+|invalid operands to binary expression
// case 2: deleted
// case 3: no match for .*operator\*|invalid operands to binary expression
// case 4: no match for .*operator\+|invalid operands to binary expression
// case 5: conver
// case 6: conver
// case 7: no match for .*operator<|invalid operands to binary expression
// case 8: no match for .*operator/|invalid operands to binary expression
// case 9: out of range|too large|not a constant expression|call to consteval|overflow
#include <servecap/units/quantity.hpp>

using namespace servecap;

constexpr Bytes sum = 1_GiB + 1_GB;
constexpr UsdPerMillionTokens price = UsdPerHour{49.61} / TokensPerSecond{92.0};

#if CASE == 1
auto x = 1_GiB + Tokens{1}; // bytes and tokens do not add
#elif CASE == 2
Bytes x{1.5}; // a count is never made from floating point
#elif CASE == 3
auto x = Tokens{3} * 0.5; // nor scaled by it
#elif CASE == 4
auto x = UsdPerHour{1.0} + UsdPerMillionTokens{1.0}; // two kinds of price
#elif CASE == 5
Bytes x = 5; // a bare number has no unit
#elif CASE == 6
double x = Seconds{1.0}; // and a unit is not dropped in passing
#elif CASE == 7
bool x = Bytes{1} < Tokens{2};
#elif CASE == 8
auto x = Usd{1.0} / Bytes{1}; // a product without a meaning does not exist
#elif CASE == 9
constexpr Bytes x = 9000000000_GiB; // more than 63 bits
#endif

int main() { return sum.value() > 0 && price.value() > 0 ? 0 : 1; }
