#include <catch.hpp>

#include <servecap/units/quantity.hpp>

using namespace servecap;

TEST_CASE("GiB and GB are both bytes and never equal by accident", "[units]") {
    REQUIRE(80_GiB == Bytes{85899345920});
    REQUIRE(80_GB == Bytes{80000000000});
    REQUIRE(141_GB < 132_GiB);
    REQUIRE(8 * mib(275040) == Bytes{2307202744320});
}

TEST_CASE("an hourly rate over a token rate is dollars a million tokens", "[units]") {
    REQUIRE((UsdPerHour{49.61} / TokensPerSecond{2073.2}).value() == Approx(6.647).epsilon(1e-4));
    REQUIRE((UsdPerHour{56.79} / TokensPerSecond{92.0}).value() == Approx(171.467).epsilon(1e-5));
}
