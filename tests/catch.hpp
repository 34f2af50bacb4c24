// Catch2 v2 and v3 behind one include: TEST_CASE, SECTION, REQUIRE, CHECK, GENERATE and Approx.
// SPDX-License-Identifier: Apache-2.0

#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
