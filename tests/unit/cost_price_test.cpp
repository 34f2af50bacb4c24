// Which price is taken, and what is refused or warned about.

#include <catch.hpp>

#include <string>
#include <vector>

#include <servecap/cost/money.hpp>
#include <servecap/cost/price.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/rows.hpp>

using namespace servecap;

namespace {

std::vector<GpuPrice> prices(std::string const& rows) {
    auto r = read_gpu_prices("provider,gpu_id,price_type,usd_per_gpu_hour,price_date,confidence,gpus_per_unit\n" + rows, "p.csv");
    if (!r) FAIL(to_line(r.error()));
    return *r;
}

PriceFinding choose(PriceQuery const& q, std::vector<GpuPrice> const& rows) {
    auto f = choose_price(q, rows);
    if (!f) FAIL(to_line(f.error()));
    return *f;
}

PriceQuery query(std::int32_t gpus = 8) {
    PriceQuery q;
    q.gpu = "x";
    q.gpus = gpus;
    q.as_of = "2026-12-01";
    return q;
}

} // namespace

TEST_CASE("price: the median over providers of their newest on-demand rows") {
    auto const rows = prices("A,x,on-demand,9,2026-01-01,high,\n"
                             "A,x,on-demand,4,2026-11-01,high,\n" // newer: counts
                             "B,x,on-demand,5,2026-11-01,medium,\n"
                             "C,x,on-demand,6,2026-11-02,medium,\n"
                             "D,x,on-demand,1,2026-11-01,low,\n" // doubtful: does not
                             "E,x,spot,2,2026-11-01,high,\n"
                             "F,x,on-demand-community,2,2026-11-01,high,\n"
                             "G,x,market-index,2,2026-11-01,high,\n"
                             "H,x,capacity-block,2,2026-11-01,high,\n"
                             "I,x,session-average,2,2026-11-01,high,\n"
                             "J,y,on-demand,2,2026-11-01,high,\n"
                             "K,x,on-demand,2,2026-12-24,high,\n"); // later than as-of
    auto const f = choose(query(), rows);
    REQUIRE(f.price);
    CHECK(f.price->per_gpu == UsdPerHour{5});
    CHECK(f.price->per_hour == UsdPerHour{40});
    CHECK(f.price->low == UsdPerHour{32});
    CHECK(f.price->high == UsdPerHour{48});
    CHECK(f.price->source == "median of 3 providers (B)");
    CHECK(f.price->rows.size() == 3);
    CHECK(f.price->age_days == 30);
    CHECK(f.warnings.empty());
    CHECK(f.price->basis == Basis::measured);
}

TEST_CASE("price: an even number of providers takes the middle of two, which are named") {
    auto const f = choose(query(1), prices("A,x,on-demand,4,2026-11-01,high,\nB,x,on-demand,5,2026-11-01,high,\n"));
    CHECK(f.price->per_hour == UsdPerHour{4.5});
    CHECK(f.price->source == "median of 2 providers (A, B)");
}

TEST_CASE("price: of one provider's offers of a day, the one of the asked size, then the cheaper") {
    auto const rows =
        prices("A,x,on-demand,4,2026-11-01,high,1\nA,x,on-demand,5,2026-11-01,high,8\nA,x,on-demand,6,2026-11-01,high,8\n");
    CHECK(choose(query(8), rows).price->per_gpu == UsdPerHour{5});
    CHECK(choose(query(1), rows).price->per_gpu == UsdPerHour{4});
}

TEST_CASE("price: doubtful rows are used and marked; none gives no price and says so") {
    auto const f = choose(query(), prices("A,x,on-demand,4,2026-11-01,low,\n"));
    REQUIRE(f.price);
    CHECK(f.price->confidence == Confidence::low);
    REQUIRE(f.warnings.size() == 1);
    CHECK(f.warnings[0].find("only prices of low confidence") == 0);

    auto const none = choose(query(), {});
    CHECK_FALSE(none.price);
    CHECK(none.reason.find("no price of x is known") == 0);
    auto const other = choose(query(), prices("A,x,spot,4,2026-11-01,high,\n"));
    CHECK_FALSE(other.price);
    CHECK(other.reason.find("only spot") != std::string::npos);
}

TEST_CASE("price: wishes") {
    auto const rows = prices(
        "A,x,on-demand,4,2026-11-01,high,\nB,x,on-demand,5,2026-05-01,low,\nB,x,spot,2,2026-11-01,high,\n"
        "B,x,reserved-3y,1.5,2026-11-01,high,\nB,x,reserved-1y,3,2026-11-01,high,\nC,x,committed-1y,3.5,2026-11-01,high,\n");
    auto q = query();
    q.provider = "b"; // without case; a doubtful row of the asked provider is used and marked
    CHECK(choose(q, rows).price->per_gpu == UsdPerHour{5});
    CHECK(choose(q, rows).warnings.size() == 2); // old, and doubtful
    CHECK(choose(q, rows).warnings[0].find("214 days old") != std::string::npos);
    q.kind = "spot";
    CHECK(choose(q, rows).price->source == "B");
    q = query();
    q.kind = "reserved"; // the shorter commitment of a provider, each at its own terms
    CHECK(choose(q, rows).price->per_gpu == UsdPerHour{3.25});
    q.kind = "reserved-3y";
    CHECK(choose(q, rows).price->per_gpu == UsdPerHour{1.5});
    q = query();
    q.provider = "Z";
    auto const bad = choose_price(q, rows);
    REQUIRE_FALSE(bad);
    CHECK(bad.error().code == ErrorCode::unknown_name);
    CHECK(bad.error().hint == "did you mean A, B or C?");
}

TEST_CASE("price: given on the command line") {
    auto q = query();
    q.deployment = UsdPerHour{49.61};
    auto const f = choose(q, {});
    CHECK(f.price->per_hour == UsdPerHour{49.61});
    CHECK(f.price->per_gpu.value() == Approx(6.20125));
    CHECK(f.price->basis == Basis::assumed);
    q.deployment.reset();
    q.per_gpu = UsdPerHour{3.48};
    CHECK(choose(q, {}).price->per_hour.value() == Approx(27.84));
    q.deployment = UsdPerHour{10};
    CHECK(choose_price(q, std::vector<GpuPrice>{}).error().code == ErrorCode::bad_usage);
}

TEST_CASE("price: absurd prices ask for force, impossible ones are refused") {
    auto q = query();
    for (double bad : {0.0, -1.0, std::nan("")}) {
        q.per_gpu = UsdPerHour{bad};
        q.force = true;
        CHECK_FALSE(choose_price(q, std::vector<GpuPrice>{}).has_value());
    }
    for (double odd : {0.0499, 100.01}) {
        q.per_gpu = UsdPerHour{odd};
        q.force = false;
        auto const r = choose_price(q, std::vector<GpuPrice>{});
        REQUIRE_FALSE(r);
        CHECK(r.error().hint.find("--force") != std::string::npos);
        q.force = true;
        CHECK(choose_price(q, std::vector<GpuPrice>{}).has_value());
    }
    q = query();
    auto const row = choose_price(q, prices("A,x,on-demand,142.4,2026-11-01,high,\n")); // an instance's price in a GPU's column
    REQUIRE_FALSE(row);
    CHECK(row.error().where == "p.csv:2");
}

TEST_CASE("price: a user's rows win") {
    auto rows = prices("A,x,on-demand,4,2026-11-01,high,\nB,x,on-demand,5,2026-11-01,high,\n");
    auto mine = prices("Mine,x,on-demand,3,2026-10-01,,\n");
    mine[0].origin.user = true;
    mine[0].confidence = Confidence::high;
    rows.push_back(mine[0]);
    CHECK(choose(query(), rows).price->source == "Mine");
}

TEST_CASE("price: the catalogue's B300 and H100 on 2026-12-01") {
    auto const rows = read_gpu_prices(*find_embedded("gpu_prices.csv"), "gpu_prices.csv");
    REQUIRE(rows);
    auto q = query();
    q.gpu = "b300-sxm";
    auto const b300 = choose(q, *rows);
    REQUIRE(b300.price);
    // AWS 17.802, OCI 15, RunPod 7.89, Nebius 7.85, Hyperstack 7.4, Verda 4.95 (undated)
    CHECK(b300.price->per_gpu.value() == Approx(7.87));
    CHECK(b300.price->rows.size() == 6);
    CHECK(b300.price->high.value() == Approx(142.416));
    CHECK(b300.price->age_days == 79);
    q.gpu = "h100-sxm";
    auto const h100 = choose(q, *rows);
    CHECK(h100.price->per_gpu.value() > 3);
    CHECK(h100.price->per_gpu.value() < 5);
    q.gpu = "gb300";
    CHECK(choose(q, *rows).price->source == "Oracle OCI");
    q.provider = "oracle";
    CHECK(choose(q, *rows).price->per_gpu == UsdPerHour{18});
    q.provider.clear();
    q.gpu = "mi350x";
    CHECK_FALSE(choose(q, *rows).price.has_value());
    // The mean of one session at 49.61 $/h is no on-demand price: only by name.
    q.gpu = "b300-sxm";
    q.kind = "session-average";
    CHECK(choose(q, *rows).price->per_hour.value() == Approx(49.61).epsilon(1e-4));
}

TEST_CASE("money: other currencies need a dated rate and never mix") {
    auto const rates = read_currency_rates(*find_embedded("currency.csv"), "currency.csv");
    REQUIRE(rates);
    auto const cny = parse_money("CNY 190000");
    REQUIRE(cny);
    CHECK(in_dollars(*cny, *rates, "2026-10-01")->usd == Approx(27975.3).epsilon(1e-5));
    CHECK(in_dollars(*cny, *rates, "2026-10-01")->warnings.empty());
    CHECK(in_dollars(*cny, *rates, "2026-12-01")->warnings.size() == 1); // 119 days old
    CHECK(in_dollars(*parse_money("EUR 0.79"), *rates, "2026-12-01").error().code == ErrorCode::missing);
    CHECK(in_dollars(*cny, *rates, "2026-01-01").error().code == ErrorCode::missing); // no rate of that time
    CHECK(parse_money("$49.61")->amount == 49.61);
    CHECK(parse_money("342 cny")->currency == "CNY");
    for (char const* bad : {"", "CNY", "\xC2\xA5 20", "12 34", "1,000", "USD x", "inf"}) {
        INFO(bad);
        CHECK_FALSE(parse_money(bad).has_value());
    }
    CHECK(add(*cny, Money{1, "USD"}).error().code == ErrorCode::bad_usage);
    CHECK(add(*cny, Money{1, "CNY"})->amount == 190001);
}

TEST_CASE("dates: days between") {
    CHECK(days_between("2026-09-19", "2026-12-01") == 73);
    CHECK(days_between("2024-02-28", "2024-03-01") == 2);
    CHECK(days_between("1970-01-01", "2000-03-01") == 11017);
    CHECK(days_between("2026-09", "2026-09-30") == 29);
    CHECK_FALSE(days_between("unknown", "2026-09-30").has_value());
    for (std::int64_t n : {-25567, -1, 0, 59, 60, 10956, 11016, 11017, 20697, 20698, 47541}) CHECK(day_number(iso_day(n)) == n);
    CHECK(iso_day(*day_number("2024-03-01") - 1) == "2024-02-29");
}
