// Which rules of vLLM apply: by version, by the date of a development build, by the day of a report.
#include <catch.hpp>

#include <servecap/engine/vllm_version.hpp>

using namespace servecap;

TEST_CASE("vllm version: as people and logs write it") {
    auto const number = [](std::string_view v, std::string_view date = {}) { return parse_vllm_version(v, date).number(); };
    CHECK(number("0.19.0") == 1900);
    CHECK(number("v0.31.1") == 3101);
    CHECK(number("0.26.1rc0") == 2601);
    CHECK(number("~0.21.0 (2026-05-01)") == 2100);
    CHECK_FALSE(parse_vllm_version("0.19.0").guessed);
    CHECK(parse_vllm_version("").guessed);
    CHECK(parse_vllm_version("", "").number() >= 3300); // nothing known: the newest rules
    CHECK(parse_vllm_version("nonsense").guessed);
    CHECK(parse_vllm_version("NIM 1.12.2").v0_engine);
    CHECK_FALSE(parse_vllm_version("NIM 2.0.12").v0_engine);
}

TEST_CASE("vllm version: without one, the newest of that day; development builds are of their date") {
    CHECK(parse_vllm_version("", "2026-06-03").number() < parse_vllm_version("", "2026-09-18").number());
    VllmVersion const dev = parse_vllm_version("kimi-k3 rocm 0.1.dev19253+g5f76ae224");
    CHECK(dev.number() >= 2600);
    CHECK(dev.number() < 3000);
    CHECK(parse_vllm_version("0.1.dev18000").number() <= dev.number());
}

TEST_CASE("vllm rules: what changed when") {
    auto const rules = [](std::string_view v) { return vllm_rules(parse_vllm_version(v)); };
    CHECK(rules("0.19.0").default_utilization == Approx(0.9));
    CHECK(rules("0.31.1").default_utilization == Approx(0.92));
    CHECK_FALSE(rules("0.19.0").subtracts_graphs);
    CHECK(rules("0.21.0").subtracts_graphs);
    CHECK_FALSE(rules("0.19.0").tokens_by_concurrency);
    CHECK(rules("0.24.0").tokens_by_concurrency);
    CHECK_FALSE(rules("0.25.0").two_batches_in_flight);
    CHECK(rules("0.26.0").two_batches_in_flight);
    CHECK_FALSE(rules("0.26.0").packed_groups);
    CHECK(rules("0.31.1").packed_groups);
    CHECK(rules("0.28.0").slot_check == StateSlotCheck::refuses);
    CHECK(rules("0.25.0").mla_alignment == 128);
    CHECK(rules("0.24.0").mla_alignment == 64);
}
