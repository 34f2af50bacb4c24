// A Result is looked at before it is used, and an Error carries a code. CASE=0 is the control.
// case 1: conver
// case 2: conver|could not
// case 3: no member named .shortfall|has no member
// case 4: conver|no matching function
#include <servecap/core/result.hpp>
#include <servecap/units/quantity.hpp>

using namespace servecap;

inline Result<Bytes> parse(bool good) {
    if (!good) return fail(ErrorCode::bad_value, "bad");
    return 1_GiB;
}

#if CASE == 1
Bytes x = parse(true); // not without asking whether there is one
#elif CASE == 2
Result<Bytes> x = Error{}; // the failing side is made by fail()
#elif CASE == 3
auto x = Error{}.shortfall; // "does not fit" is no Error
#elif CASE == 4
auto x = fail(7, "a bare number is no ErrorCode");
#endif

int main() { return parse(true) ? 0 : 1; }
