// Break-even over whole replicas, tariffs, set-up estimates and renting: laws and edge cases.

#include <catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <vector>

#include <servecap/cost/api.hpp>
#include <servecap/cost/break_even.hpp>
#include <servecap/cost/own.hpp>
#include <servecap/cost/rent.hpp>
#include <servecap/cost/setup.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/rows.hpp>

using namespace servecap;

namespace {

Supply deployment(double month, double capacity, int spare = 0, double peak = 1) {
    return {"d", UsdPerMonth{month}, capacity, spare, peak, {}};
}
Supply service(double per_million) { return {"api", {}, std::nullopt, 0, 1, UsdPerMillionTokens{per_million}}; }

ApiTariff tariff(double in, double cached, double out) {
    ApiTariff t;
    t.model = "m";
    t.input = t.cache_write = UsdPerMillionTokens{in};
    t.cached_input = UsdPerMillionTokens{cached};
    t.cached_input_known = true;
    t.output = UsdPerMillionTokens{out};
    return t;
}

std::vector<ApiPrice> const& api_rows() {
    static std::vector<ApiPrice> const rows = *read_api_prices(*find_embedded("api_prices.csv"), "api_prices.csv");
    return rows;
}

std::vector<ApiTariff> tariffs(std::string const& model, std::string const& as_of = "2026-12-01", bool named = true,
                               std::int64_t isl = 1000) {
    ApiQuery q;
    q.models = {model};
    q.as_of = as_of;
    q.named = named;
    q.isl = Tokens{isl};
    auto t = choose_tariffs(q, api_rows());
    if (!t) FAIL(to_line(t.error()));
    return *t;
}

/// Changes of sign of a - b on a fine grid: the slow, plain way to count crossings.
std::vector<double> by_grid(Supply const& a, Supply const& b, double to, int steps) {
    std::vector<double> out;
    bool before = monthly_cost(a, to / steps / 2) < monthly_cost(b, to / steps / 2);
    for (int i = 1; i < steps; ++i) {
        double const x = to * (i + 0.5) / steps;
        bool const now = monthly_cost(a, x) < monthly_cost(b, x);
        if (now != before) out.push_back(x);
        before = now;
    }
    return out;
}

} // namespace

TEST_CASE("break-even: crossings found piece by piece are those of a fine grid") {
    struct Case {
        Supply a, b;
    };
    double const top = 2000;
    for (Case const& c : {Case{deployment(100, 50), service(3)}, Case{deployment(100, 50), service(2.05)},
                          Case{deployment(100, 50), service(1.9)}, Case{deployment(100, 50, 1), service(3)},
                          Case{deployment(100, 50, 2, 1.7), service(4.5)}, Case{deployment(100, 50), deployment(70, 30)},
                          Case{deployment(100, 50), deployment(350, 190)}, Case{deployment(100, 50), deployment(100, 60)},
                          Case{deployment(90, 47, 1), deployment(260, 151, 0, 1.3)}}) {
        auto const fast = crossings(c.a, c.b, 2.0, 1000);
        auto const slow = by_grid(c.a, c.b, top, 400'000);
        std::vector<double> seen;
        for (Crossing const& x : fast.list)
            if (x.million_output < top) seen.push_back(x.million_output);
        INFO(c.a.per_replica.value() << " " << c.b.per_replica.value() << " " << c.b.per_million_output.value());
        REQUIRE(seen.size() == slow.size());
        for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == Approx(slow[i]).margin(0.02));
        bool cheaper = fast.first_cheaper_at_start;
        for (Crossing const& x : fast.list) {
            CHECK(x.cheaper_above != cheaper);
            cheaper = x.cheaper_above;
            CHECK(x.million_input == Approx(2 * x.million_output));
        }
        if (!fast.more) CHECK(fast.first_cheaper_at_end == cheaper);
    }
}

TEST_CASE("break-even: never, when even full load costs more than the API") {
    auto const none = crossings(deployment(100, 50), service(1.99), 1);
    CHECK(none.list.empty());
    CHECK_FALSE(none.first_cheaper_at_end);
}

TEST_CASE("break-even: at every crossing the two ways cost the same, or a replica is added there") {
    auto const a = deployment(100, 50, 1);
    auto const b = service(2.2);
    auto const all = crossings(a, b, 1);
    REQUIRE(all.list.size() > 2);
    for (Crossing const& x : all.list) {
        double const below = monthly_cost(a, x.million_output * (1 - 1e-7)).value(),
                     api = monthly_cost(b, x.million_output).value();
        bool const step = std::fabs(x.million_output / 50 - std::round(x.million_output / 50)) < 1e-9;
        CHECK((step || below == Approx(api)));
        if (!x.cheaper_above) CHECK(step);
    }
    CHECK(all.first_cheaper_at_end);
}

TEST_CASE("break-even: many crossings are cut, and said to be") {
    auto const many = crossings(deployment(100, 50, 1), service(2.001), 1, 8);
    CHECK(many.list.size() == 8);
    CHECK(many.more);
}

TEST_CASE("break-even: replicas are whole, spares are paid, peaks count") {
    auto const d = deployment(100, 50, 1, 2.0);
    CHECK(replicas_for(d, 0) == 2);
    CHECK(replicas_for(d, 25) == 2);
    CHECK(replicas_for(d, 25.001) == 3);
    CHECK(monthly_cost(d, 100).value() == 500);
    CHECK(replicas_for(service(1), 1e9) == 0);
}

TEST_CASE("break-even: more cached input, a peakier load or a spare node only make it harder") {
    BreakEvenRequest q;
    q.deployment = UsdPerMonth{36000};
    q.input_per_output = 5;
    q.capacity = Capacity{Interval<TokensPerSecond>::point(TokensPerSecond{2000}), "here"};
    auto const api = tariff(2, 0.2, 10);
    double last = 0;
    for (double h : {0.0, 0.25, 0.5, 0.85, 0.99}) {
        q.cache_hit = h;
        auto const b = break_even(q, api);
        CHECK(b.million_output > last);
        last = b.million_output;
    }
    auto const calm = break_even(q, api);
    q.spare = 1;
    CHECK(break_even(q, api).million_output > calm.million_output);
    q.spare = 0;
    q.peak_to_mean = 3;
    CHECK(break_even(q, api).reachable == Reachable::no);
    CHECK(calm.reachable == Reachable::yes);
}

TEST_CASE("break-even: not reached and not known are different answers") {
    BreakEvenRequest q;
    q.deployment = UsdPerMonth{36000};
    q.input_per_output = 1;
    q.no_capacity_reason = "no row at 64 K context";
    auto const unknown = break_even(q, tariff(2, 0.2, 10));
    CHECK(unknown.reachable == Reachable::unknown);
    CHECK(unknown.reason.find("no row at 64 K context") != std::string::npos);
    CHECK(unknown.million_output == Approx(3000));
    CHECK_FALSE(unknown.utilization_needed);
    q.capacity = Capacity{Interval<TokensPerSecond>::point(TokensPerSecond{100}), "one user"};
    auto const no = break_even(q, tariff(2, 0.2, 10));
    CHECK(no.reachable == Reachable::no);
    CHECK(no.reason.find("even at full load") != std::string::npos);
    CHECK(*no.utilization_needed > 1);
    auto const free = break_even(q, tariff(0, 0, 0));
    CHECK(free.reachable == Reachable::no);
}

TEST_CASE("sensitivity: elasticities of a product are what the formula says") {
    BreakEvenRequest q;
    q.deployment = UsdPerMonth{36000};
    q.input_per_output = 5;
    q.cache_hit = 0.5;
    q.capacity = Capacity{Interval<TokensPerSecond>::point(TokensPerSecond{2000}), "here"};
    auto const api = tariff(2, 0.2, 10);
    auto const all = break_even_sensitivity(q, api);
    auto const of = [&](std::string_view name) {
        for (auto const& s : all)
            if (s.name == name) return s.elasticity;
        FAIL(name);
        return 0.0;
    };
    CHECK(of("price of the deployment") == Approx(1).epsilon(1e-6));
    CHECK(of("speed of the deployment") == Approx(-1).epsilon(0.02));
    // a = 5 (0.5 * 2 + 0.5 * 0.2) + 10 = 15.5: the output price is 10 / 15.5 of it.
    CHECK(of("output price of the API") == Approx(-10 / 15.5).epsilon(0.01));
    CHECK(of("input price of the API") == Approx(-5 / 15.5).epsilon(0.01));
    CHECK(of("cached price of the API") == Approx(-0.5 / 15.5).epsilon(0.01));
    CHECK(of("cache hit rate") > 0);
    CHECK(std::is_sorted(all.begin(), all.end(),
                         [](auto const& a, auto const& b) { return std::fabs(a.elasticity) > std::fabs(b.elasticity); }));
}

TEST_CASE("capacity: the fastest speed that meets the limits") {
    std::vector<SpeedPoint> speeds(3);
    double const out[] = {100, 1000, 2000}, ttft[] = {0.3, 0.8, 3.0}, tpot[] = {0.01, 0.02, 0.05};
    for (std::size_t i = 0; i < 3; ++i) {
        speeds[i].concurrency = Requests{i == 0 ? 1 : i == 1 ? 16 : 64};
        speeds[i].output = Interval<TokensPerSecond>::point(TokensPerSecond{out[i]});
        speeds[i].ttft = Interval<Seconds>::point(Seconds{ttft[i]});
        speeds[i].tpot = Interval<Seconds>::point(Seconds{tpot[i]});
    }
    CHECK(capacity_of(speeds)->output.value == TokensPerSecond{2000});
    CHECK(capacity_of(speeds, Seconds{1})->output.value == TokensPerSecond{1000});
    CHECK(capacity_of(speeds, {}, Seconds{0.01})->output.value == TokensPerSecond{100});
    CHECK_FALSE(capacity_of(speeds, Seconds{0.1}).has_value());
}

TEST_CASE("$/M: the interval of a speed turns round; input and output split add up to the cost") {
    SpeedPoint s;
    s.isl = Tokens{8192};
    s.osl = Tokens{1024};
    s.output = {TokensPerSecond{1000}, TokensPerSecond{800}, TokensPerSecond{1250}};
    auto const p = cost_at(s, UsdPerHour{36}, 5);
    CHECK(p.output_alone.value.value() == Approx(10));
    CHECK(p.output_alone.low.value() == Approx(8));
    CHECK(p.output_alone.high.value() == Approx(12.5));
    CHECK(p.output.value / p.input.value == Approx(5));
    CHECK(8 * p.input.value.value() + p.output.value.value() == Approx(10));
    CHECK(p.total.value.value() == Approx(10.0 / 9));
    CHECK(token_cost(UsdPerHour{36}, TokensPerSecond{1000}, TokensPerSecond{0}, 4, 0.5).output_alone.value() == Approx(20));
}

TEST_CASE("tariffs: the first party's newest valid price, weighted over the week") {
    // DeepSeek V4.1 Flash: 0.15 / 0.003 / 0.60 off-peak, double on 35 of 168 hours.
    auto const ds = tariffs("deepseek-v4.1-flash-1017", "2026-12-01", false);
    REQUIRE(ds.size() == 1);
    CHECK(ds[0].input.value() == Approx(0.15 * (1 + 35.0 / 168)));
    CHECK(ds[0].cached_input.value() == Approx(0.003 * (1 + 35.0 / 168)));
    CHECK(ds[0].output.value() == Approx(0.6 * (1 + 35.0 / 168)));
    CHECK(ds[0].parts.size() == 2);
    // Dated entries: V4 Flash was 0.14 / 0.28 up to 2026-08-16, then a base with peak windows.
    CHECK(tariffs("deepseek-v4-flash", "2026-08-01")[0].output.value() == Approx(0.28));
    CHECK(tariffs("deepseek-v4-flash", "2026-12-01")[0].output.value() == Approx(0.66 * (1 + 49.0 / 168)));
    // GPT-5.6 Sol: 5/30, promotion 4/20 from 2026-08-21, 5/30 again from 2026-12-01.
    CHECK(tariffs("gpt-5.6-sol", "2026-08-20")[0].input.value() == 5);
    CHECK(tariffs("gpt-5.6-sol", "2026-11-30")[0].input.value() == 4);
    CHECK(tariffs("gpt-5.6-sol", "2026-12-01")[0].input.value() == 5);
    // A price that begins in 2027 is not used in 2026.
    CHECK(tariffs("gemini-3.8-flash", "2026-12-01")[0].input.value() != 1.5);
}

TEST_CASE("tariffs: tiers by the length of the input") {
    CHECK(tariffs("gpt-5.5", "2026-12-01", true, 1000)[0].input.value() == 5);
    CHECK(tariffs("gpt-5.5", "2026-12-01", true, 271999)[0].input.value() == 5);
    CHECK(tariffs("gpt-5.5", "2026-12-01", true, 272001)[0].input.value() == 10);
    CHECK(tariffs("gpt-5.5", "2026-12-01", true, 272001)[0].tier_min_input == Tokens{271999});
}

TEST_CASE("tariffs: hosts by name, effective prices never") {
    auto const first = tariffs("kimi-k3", "2026-12-01", false);
    REQUIRE(first.size() == 1);
    CHECK(first[0].provider == "MoonshotAi");
    CHECK(first[0].output.value() == 15);
    auto const all = tariffs("kimi-k3");
    CHECK(all.size() > 5);
    CHECK(all[0].first_party);
    for (auto const& t : all) {
        CHECK(t.output.value() > 0);
        CHECK(t.provider.find("via OpenRouter") == std::string::npos);
    }
    auto const arcee = tariffs("Arcee/kimi-k3");
    REQUIRE(arcee.size() == 1);
    CHECK(arcee[0].provider == "Arcee");
}

TEST_CASE("tariffs: a missing cached price is billed as input and said") {
    auto const t = tariffs("gpt-6.2-sol");
    REQUIRE(t.size() == 1);
    CHECK_FALSE(t[0].cached_input_known);
    CHECK(t[0].cached_input == t[0].input);
    BreakEvenRequest q;
    q.deployment = UsdPerMonth{1000};
    q.cache_hit = 0.5;
    auto const b = break_even(q, t[0]);
    CHECK(std::any_of(b.notes.begin(), b.notes.end(),
                      [](std::string const& n) { return n.find("billed as input") != std::string::npos; }));
}

TEST_CASE("tariffs: unknown names and rows that are no tariffs") {
    ApiQuery q;
    q.models = {"kimi-k33"};
    q.named = true;
    q.as_of = "2026-12-01";
    auto const bad = choose_tariffs(q, api_rows());
    REQUIRE_FALSE(bad);
    CHECK(bad.error().hint.find("kimi-k3") != std::string::npos);
    q.models = {"only-effective"};
    auto const rows = *read_api_prices("model_id,provider,provider_kind,input_usd_per_m,output_usd_per_m\n"
                                       "only-effective,X,measured-effective,0.5,\nblended,X,host,0.3,\n",
                                       "a.csv");
    CHECK(choose_tariffs(q, rows).error().message.find("effective price") != std::string::npos);
    q.models = {"blended"};
    CHECK(choose_tariffs(q, rows).error().message.find("blended") != std::string::npos);
    q.named = false;
    CHECK(choose_tariffs(q, rows)->empty());
}

TEST_CASE("tariffs: bills") {
    auto const t = tariff(3, 0.3, 15);
    CHECK(api_bill(t, {1, 0.5, 0, 0}).total.value() == Approx(10.5)); // llmtco.com's example
    auto const b = api_bill(t, {10, 1, 0.8, 0.1});
    CHECK(b.input.value() == Approx(3));
    CHECK(b.cached_input.value() == Approx(2.4));
    CHECK(b.cache_write.value() == Approx(3));
    CHECK(b.total.value() == Approx(23.4));
    ApiQuery q;
    q.models = {"kimi-k3"};
    q.as_of = "2026-12-01";
    q.batch_share = 0.5;
    q.batch_discount = 0.5;
    CHECK((*choose_tariffs(q, api_rows()))[0].output.value() == Approx(11.25));
}

TEST_CASE("tariffs: time windows") {
    CHECK(window_hours_per_week("daily 01:00:00Z-04:00:00Z") == 21.0);
    CHECK(window_hours_per_week("peak: 01-04 and 06-10 UTC, Mon-Fri, not Chinese holidays") == 35.0);
    CHECK(window_hours_per_week("22:30-06:00") == 52.5);
    CHECK_FALSE(window_hours_per_week("off-peak").has_value());
    CHECK_FALSE(window_hours_per_week("fast").has_value());
    CHECK_FALSE(window_hours_per_week("effective input price at the observed cache hit rate 89.3%").has_value());
    CHECK_FALSE(window_hours_per_week("from 2026-10-07 on").has_value());
}

TEST_CASE("set-up: estimated where nothing was measured, with the spread of the rates") {
    auto const rows = *read_setups(*find_embedded("setups.csv"), "setups.csv");
    std::vector<std::string> const names{"x"};
    SetupRequest q;
    q.model_names = names;
    q.gpu = "h100-sxm";
    q.gpus = q.gpus_per_replica = 8;
    CHECK_FALSE(setup_time(q, rows).known); // size not known: no time, no $
    q.checkpoint = Bytes{500'000'000'000};
    auto const t = setup_time(q, rows);
    REQUIRE(t.known);
    CHECK(t.basis == Basis::calibrated);
    CHECK(t.total.low <= t.total.value);
    CHECK(t.total.value <= t.total.high);
    CHECK(t.total.value.value() > 1000);
    q.loader = "fastsafetensors";
    CHECK(setup_time(q, rows).start.value < t.start.value);
    q.downloaded = true;
    CHECK(setup_time(q, rows).download.value.value() == 0);
    q.failed_starts = 1;
    CHECK(setup_time(q, rows).total.value.value() == Approx(2 * setup_time(q, rows).start.value.value()));
    // Given rates: 500 GB at 1 GB/s and at 2 GB/s, 600 s of compiling.
    q = SetupRequest{};
    q.model_names = names;
    q.checkpoint = Bytes{500'000'000'000};
    q.download_rate = BytesPerSecond{1e9};
    q.read_rate = BytesPerSecond{2e9};
    q.compile = Seconds{600};
    std::vector<SetupRow> const nothing;
    auto const given = setup_time(q, nothing);
    REQUIRE(given.known);
    CHECK(given.total.value.value() == Approx(500 + 250 + 600));
    CHECK(given.basis == Basis::assumed);
    CHECK(setup_cost(given, UsdPerHour{36}).value.value() == Approx(13.5));
}

TEST_CASE("set-up: several measured starts of one deployment give their median and range") {
    auto const rows = *read_setups(*find_embedded("setups.csv"), "setups.csv");
    std::vector<std::string> const names{"moonshotai/Kimi-K3"};
    SetupRequest q;
    q.model_names = names;
    q.gpu = "b300-sxm";
    q.gpus = q.gpus_per_replica = 8;
    auto const t = setup_time(q, rows); // 27 minutes on a hosted node, 88.8 in a public log
    REQUIRE(t.known);
    CHECK(t.start.low == Seconds{1620});
    CHECK(t.start.high == Seconds{5328});
    CHECK(t.basis == Basis::calibrated); // the download was not measured
}

TEST_CASE("renting: spot, commitments, duty") {
    SpotTerms s;
    s.rate = UsdPerHour{50};
    s.interruptions_per_hour = 0.1;
    s.restart = Seconds{2400};
    s.lost_work = Seconds{1200};
    s.wait = Seconds{3600};
    CHECK(spot_cost(s).per_useful_hour.value() == Approx(55));
    CHECK(spot_cost(s).availability == Approx(1 / 1.2));
    CHECK(*spot_break_even_interruptions(s, UsdPerHour{60}) == Approx(0.2));
    s.interruptions_per_hour = 0;
    CHECK(spot_cost(s).per_useful_hour == s.rate);
    Commitment c;
    c.rate = UsdPerHour{40};
    c.months = 12;
    c.upfront = Usd{7300};
    c.least_gpus = 256;
    auto const r = commitment_cost(c, UsdPerHour{60}, 8);
    CHECK(r.total.value() == Approx(40 * 730 * 12 + 7300));
    CHECK(r.duty_break_even == Approx((40 * 730 + 7300 / 12.0) / (60 * 730)));
    CHECK(r.order_too_small);
    DutyRental d;
    d.hours_per_day = 4;
    d.days_per_month = 30;
    d.setup = Seconds{1620};
    auto const duty = duty_cost(UsdPerHour{56.79}, d);
    CHECK(duty.paid_hours == Approx(133.5));
    CHECK(duty.per_useful_hour.value() == Approx(56.79 * 133.5 / 120));
}

TEST_CASE("owning: limits and impossible terms") {
    OwnTerms t;
    t.purchase = Usd{360000};
    CHECK(own_cost(t).capital.value() == Approx(10000)); // no interest: a straight line
    t.annual_interest = 1e-9;
    CHECK(own_cost(t).capital.value() == Approx(10000).epsilon(1e-4)); // and its limit
    t.annual_interest = 0.1;
    t.residual_share = 1; // nothing is lost but the interest on the price
    CHECK(own_cost(t).capital.value() == Approx(360000 * 0.1 / 12));
    t.network_share = 0.15;
    CHECK(own_cost(t).capital.value() == Approx(1.15 * 3000));
    CHECK_FALSE(own_mistake(t).has_value());
    for (auto const& break_it :
         std::vector<void (*)(OwnTerms&)>{[](OwnTerms& o) { o.purchase = Usd{0}; }, [](OwnTerms& o) { o.months = 0; },
                                          [](OwnTerms& o) { o.pue = 0.9; }, [](OwnTerms& o) { o.residual_share = 1.1; },
                                          [](OwnTerms& o) { o.posts = -1; }, [](OwnTerms& o) { o.annual_interest = 10; }}) {
        OwnTerms bad = t;
        break_it(bad);
        CHECK(own_mistake(bad).has_value());
    }
}

// ---- can it do that rate, at that latency? ----------------------------------------------------------

namespace {

SpeedPoint speed(std::int64_t users, double output, double ttft_ms, double tpot_ms, double spread = 0) {
    SpeedPoint s;
    s.concurrency = Requests{users};
    s.isl = s.osl = Tokens{1000};
    auto const ms = [&](double v) { return Interval<Seconds>{milliseconds(v), milliseconds(v * (1 - spread)), milliseconds(v * (1 + spread))}; };
    s.ttft = ms(ttft_ms);
    s.tpot = ms(tpot_ms);
    s.output = {TokensPerSecond{output}, TokensPerSecond{output * (1 - spread)}, TokensPerSecond{output * (1 + spread)}};
    return s;
}

BreakEvenRequest deployment_of(double month, double rate, double spread = 0) {
    BreakEvenRequest q;
    q.deployment = UsdPerMonth{month};
    q.capacity = Capacity{{TokensPerSecond{rate}, TokensPerSecond{rate * (1 - spread)}, TokensPerSecond{rate * (1 + spread)}}, "here"};
    return q;
}

} // namespace

TEST_CASE("capacity: the fastest speed within the latency bounds, with its load and latency") {
    std::vector<SpeedPoint> const speeds{speed(1, 100, 300, 10), speed(64, 2000, 1600, 29), speed(256, 4000, 6000, 60)};
    auto const all = find_capacity(speeds, true);
    REQUIRE(all.capacity);
    CHECK(all.capacity->output.value == TokensPerSecond{4000});
    CHECK(all.capacity->at == "1000 in / 1000 out, 256 users");
    auto const bound = find_capacity(speeds, true, milliseconds(2000), milliseconds(30));
    REQUIRE(bound.capacity);
    CHECK(bound.capacity->output.value == TokensPerSecond{2000});
    CHECK(bound.capacity->at.find("64 users, TTFT 1600 of at most 2000 ms, TPOT 29.0 of at most 30 ms") != std::string::npos);
    CHECK(bound.capacity->tpot == milliseconds(29));
}

TEST_CASE("capacity: not reached and not known are different answers") {
    std::vector<SpeedPoint> const speeds{speed(1, 100, 300, 10, 0.2), speed(64, 2000, 1600, 29, 0.2)};
    auto const never = find_capacity(speeds, true, {}, milliseconds(5));
    CHECK_FALSE(never.capacity);
    CHECK(never.cannot_serve);
    auto const perhaps = find_capacity(speeds, true, {}, milliseconds(9)); // 10 ms, 8 at the near end
    CHECK_FALSE(perhaps.capacity);
    CHECK_FALSE(perhaps.cannot_serve);
    CHECK(find_capacity(speeds, false).cannot_serve);
    CHECK_FALSE(find_capacity({}, true).cannot_serve);

    BreakEvenRequest q;
    q.deployment = UsdPerMonth{1000};
    q.no_capacity_reason = never.reason;
    q.cannot_serve = true;
    CHECK(break_even(q, tariff(2, 0.2, 10)).reachable == Reachable::no);
    q.cannot_serve = false;
    CHECK(break_even(q, tariff(2, 0.2, 10)).reachable == Reachable::unknown);
}

TEST_CASE("two deployments: one is always cheaper, or they turn; the answer is that of the cost curves") {
    // Twice the speed at the same price: cheaper at every volume once more than one of the slower ones is needed, equal below.
    auto const big = deployment_of(3000, 1000), small = deployment_of(1000, 250);
    auto const d = break_even_between(big, "big", small, "small");
    CHECK(d.reachable == Reachable::yes);
    CHECK_FALSE(d.crossings.first_cheaper_at_start);
    CHECK(d.crossings.first_cheaper_at_end);
    double const month = million_tokens_per_month(TokensPerSecond{250});
    // Up to three small ones cost no more than a big one; the fourth makes the big one cheaper.
    REQUIRE_FALSE(d.crossings.list.empty());
    CHECK(d.crossings.list.front().million_output == Approx(3 * month));
    CHECK(d.first_full_load.value() == Approx(3000 / million_tokens_per_month(TokensPerSecond{1000})));
    CHECK(d.reason.find("small is the cheaper one at the smallest volumes, big beyond the last crossing") != std::string::npos);

    auto const dear = break_even_between(deployment_of(2000, 250), "dear", small, "small");
    CHECK(dear.reachable == Reachable::no);
    CHECK(dear.crossings.list.empty());
    CHECK(dear.reason.find("small is the cheaper one at every volume") != std::string::npos);

    // Within their intervals the speeds allow either: not known.
    auto const close = break_even_between(deployment_of(1010, 250, 0.3), "a", deployment_of(1000, 250, 0.3), "b");
    CHECK(close.reachable == Reachable::unknown);
    CHECK(close.reason.find("allow another answer") != std::string::npos);

    BreakEvenRequest blank;
    blank.deployment = UsdPerMonth{1000};
    CHECK(break_even_between(big, "big", blank, "blank").reachable == Reachable::unknown);
    blank.cannot_serve = true;
    CHECK(break_even_between(big, "big", blank, "blank").reachable == Reachable::no);
}

TEST_CASE("two deployments: every crossing is a change of sign of the cost curves") {
    auto const a = deployment_of(3100, 1100), b = deployment_of(900, 260);
    auto const d = break_even_between(a, "a", b, "b");
    auto const supply = [](BreakEvenRequest const& q) { return Supply{"", q.deployment, million_tokens_per_month(q.capacity->output.value), 0, 1, {}}; };
    REQUIRE_FALSE(d.crossings.list.empty());
    for (Crossing const& x : d.crossings.list) {
        bool const below = monthly_cost(supply(a), x.million_output * (1 - 1e-6)) < monthly_cost(supply(b), x.million_output * (1 - 1e-6));
        bool const above = monthly_cost(supply(a), x.million_output * (1 + 1e-6)) < monthly_cost(supply(b), x.million_output * (1 + 1e-6));
        CHECK(below != above);
        CHECK(above == x.cheaper_above);
    }
}

// ---- the program ------------------------------------------------------------------------------------

#ifdef SERVECAP_PLANNER

namespace {

struct CliAnswer {
    int status = -1;
    std::string out;

    [[nodiscard]] bool says(std::string_view words) const {
        // Lines are wrapped: words are looked for whatever is between them.
        std::string flat;
        for (char c : out)
            if (c != '\n' && c != ' ')
                flat += c;
            else if (!flat.empty() && flat.back() != ' ')
                flat += ' ';
        return flat.find(words) != std::string::npos;
    }
};

CliAnswer run_planner(std::string const& words) {
    CliAnswer a;
    std::FILE* const pipe = popen((std::string{SERVECAP_PLANNER} + " " + words + " 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::array<char, 4096> buffer{};
    while (std::size_t const n = std::fread(buffer.data(), 1, buffer.size(), pipe)) a.out.append(buffer.data(), n);
    int const raw = pclose(pipe);
    a.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 100;
    return a;
}

} // namespace

TEST_CASE("planner: bad money is refused with one message that says what was expected") {
    std::string const k31 = "--model kimi-k3.1 --gpu b300x8 --api-input 2 --api-output 10 ";
    struct Case {
        std::string words;
        char const* message;
    };
    for (Case const& c : std::vector<Case>{
             {"breakeven " + k31 + "--price 49.61 --volume 0", "--volume: a volume of 0 tokens"},
             {"breakeven " + k31 + "--price -3", "--price: '-3' is out of range"},
             {"breakeven " + k31 + "--price 0", "--price: 0 $/h is no price"},
             {"breakeven " + k31 + "--price 0.2", "0.025 $ a GPU-hour is implausible"},
             {"breakeven " + k31 + "--price-gpu-hour 101", "101 $ a GPU-hour is implausible (expected 0.05 to 100 $ a GPU-hour; --force accepts it)"},
             {"breakeven --price 0.01 --api-input 2 --api-output 10", "0.01 $ a GPU-hour is implausible"},
             {"breakeven " + k31 + "--usd-per-month 5", "--usd-per-month: 0.0008562 $ a GPU-hour is implausible"},
             {"breakeven " + k31 + "--price 49.61 --usd-per-month 4000", "say the same thing twice"},
             {"breakeven " + k31 + "--buy 'CNY 6800000' --tariff 0.7", "--tariff: the amount has no currency, while --buy is in CNY"},
             {"breakeven " + k31 + "--price 'JPY 7000'", "--price: no dated rate of JPY is known (give --currency-rate"},
             {"breakeven " + k31 + "--price '\xC2\xA5""7000'", "is ambiguous (write CNY or JPY)"},
             {"breakeven " + k31 + "--price abc", "--price: \"abc\" is no amount of money"},
             {"breakeven " + k31 + "--price nan", "is no amount of money"},
             {"breakeven " + k31 + "--price 49.61 --currency-rate 7", "--currency-rate: a rate, but every amount is in US dollars"},
             {"breakeven " + k31 + "--price 49.61 --currency-rate 7 --currency CNY --currency-date soon", "--currency-date: 'soon' is no date"},
             {"breakeven " + k31 + "--price 49.61 --hours-per-day 0", "0 hours a day serve nothing"},
             {"breakeven " + k31 + "--price 49.61 --cache-hit 0.8 --cache-write 0.4", "more than the whole input"},
             {"breakeven " + k31 + "--spot --commit-months 12", "spot capacity has no commitment"},
             {"breakeven " + k31 + "--buy 550000 --tariff 0.1 --colo 180", "both pay for the power"},
             {"breakeven --price 49.61 --api-input 2", "--api-output: an API price needs both sides"},
             {"breakeven --price 49.61 --api-input 0 --api-output 0", "an API that charges nothing"},
             {"breakeven --model kimi-k3.1 --gpu b300x8 --price-source Nebiu", "no price of b300-sxm by \"Nebiu\" (did you mean Nebius?)"},
             {"breakeven --model kimi-k3.1 --gpu b300x8 --price 49.61 --as-of 2025-06-01", "no tariff of kimi-k3.1-pro is known to hold on 2025-06-01"},
             {"breakeven --model llama-3.1-8b --gpu gb300x4 --api-input 2 --api-output 10 --as-of 2025-06-01", "rows are later than 2025-06-01"},
             {"breakeven --model kimi-k3.1 --gpu b300x8 --price 49.61 --against nonsense", "--against takes MODEL@GPU"},
             {"breakeven --model kimi-k3.1 --gpu b300x8 --price 49.61 --against nonsense@b300x8", "--against, "},
             {"table --models kimi-k3.1 --gpus b300x8 --columns users,colour", "--columns: no column 'colour'"}}) {
        auto const a = run_planner(c.words);
        INFO(c.words << "\n" << a.out);
        CHECK(a.status == 2);
        CHECK(a.says(c.message));
    }
    CHECK(run_planner("breakeven " + k31 + "--price-gpu-hour 101 --force").status == 1); // answered: never at that price
}

TEST_CASE("planner: what is taken and marked, not refused") {
    auto const cached = run_planner("breakeven --price 56.79 --api-input 2 --api-output 10 --ratio 5 --cache-hit 0.85");
    CHECK(cached.status == 0);
    CHECK(cached.says("85 % of the input is cached, but the tariff names no cached price: billed as input"));
    CHECK(cached.says("2,072.8"));
    auto const priced = run_planner("breakeven --price 56.79 --api-input 2 --api-cached 0.2 --api-output 10 --ratio 5 --cache-hit 0.85 --format csv");
    CHECK(priced.out.find(",3356.81781,") != std::string::npos); // 16.8 B + 3.36 B tokens
    CHECK(priced.out.find(",16784.0891,") != std::string::npos);

    auto const old = run_planner("breakeven --model kimi-k3.1 --gpu b300x8 --as-of 2027-06-01");
    CHECK(old.says("planner: the price of b300-sxm is 261 days old (median of 6 providers (Nebius, RunPod), 2026-09-13)"));
    CHECK(old.says("the price of kimi-k3.1-pro is 182 days old"));

    auto const yuan = run_planner("breakeven --price 'CNY 411.7' --api-input 2 --api-output 10 --ratio 5 --currency-rate 7.25 --currency-date 2026-10-24");
    CHECK(yuan.says("--price CNY 411.70 = $56.79 at 7.25 CNY a dollar (2026-10-24, given)"));
    CHECK(yuan.says("2,072.7"));
    auto const stale = run_planner("breakeven --price 411.7 --currency cny --api-input 2 --api-output 10");
    CHECK(stale.says("the rate of CNY is 119 days old (6.7917 a dollar, 2026-08-04)"));
    CHECK(stale.says("$60.62"));
}

TEST_CASE("planner: the main figures of cost and break-even by the command line") {
    // 8 x B300 at 3.48 $ a GPU-hour, 1,395 total tok/s a GPU of 8,192 in / 1,024 out: 1,240 output tok/s.
    auto const k3 = run_planner("cost --tok-s 1240 --ratio 8 --gpu b300x8 --price-gpu-hour 3.48");
    CHECK(k3.says(" 0.693 "));
    // K3.1 at 64 users against its own API: 55 % load; at one user 11 times the API: never.
    auto const full = run_planner("breakeven --model kimi-k3.1 --gpu b300x8 --price 49.61");
    CHECK(full.status == 0);
    CHECK(full.says("55 % yes"));
    CHECK(full.says("1148 of 2073 output tok/s at 1000 in / 1000 out, 64 users"));
    CHECK(full.says("20 M $ of revenue in a month must display \"Kimi K3.1-Pro\""));
    CHECK(full.says("20 M $ in any 12 consecutive months"));
    auto const one = run_planner("breakeven --model kimi-k3.1 --gpu b300x8 --price 49.61 --concurrency 1");
    CHECK(one.status == 1);
    CHECK(one.says("even at full load 136.31 $/M output against 12.00 at the API with its input")); // 11.4 times
    auto const bound = run_planner("breakeven --model kimi-k3.1 --gpu b300x8 --price 49.61 --slo-tpot 1");
    CHECK(bound.status == 1);
    CHECK(bound.says("no number of users at once meets the latency bounds"));
    // The session of the article: set-ups of 41 min 12 s before 1.3 h of serving.
    auto const session = run_planner("cost --model kimi-k3.1 --gpu b300x8 --price 49.61 --concurrency 64 --session-hours 1.3");
    CHECK(session.says("set-up $34.07 (41 min 12 s, 34.6 % of the bill)"));
    CHECK(session.says("10.16 $/M output instead of 6.65"));
    // The same with one failed start, as measured: 41.99 $.
    CHECK(run_planner("cost --model kimi-k3.1 --gpu b300x8 --price 49.61 --concurrency 64 --session-hours 1.3 --failed-starts 1").says("set-up $41.99"));
}

TEST_CASE("planner: spot, commitments, duty, owning, replicas") {
    std::string const k31 = "breakeven --model kimi-k3.1 --gpu b300x8 --api-input 2 --api-output 10 ";
    auto const spot = run_planner(k31 + "--price 49.61 --on-demand 62.96 --interruptions-per-day 2 --restart-minutes 41.2 --wait-minutes 15");
    // 49.61 x (1 + 2 / 24 x 41.2 / 60) = 52.45; serving 1 / (1 + 2 / 24 x 56.2 / 60) = 92.8 %.
    CHECK(spot.says("serves 92.8 % of the time at $52.45 a served hour"));
    CHECK(spot.says("spot costs as much as on-demand ($62.96, given) at 9.4 interruptions a day"));
    auto const bound = run_planner(k31 + "--price 40 --on-demand 62.96 --commit-months 12 --upfront 87600 --min-gpus 256");
    // (40 x 730 x 12 + 87,600) / 12 = 36,500 a month = 50 $/h: 79 % of 62.96.
    CHECK(bound.says("$36,500.00 a month (committed for 12 months at $40.00 an hour and $87,600.00 upfront)"));
    CHECK(bound.says("$438,000.00 over 12 months, used or not"));
    CHECK(bound.says("it beats on-demand at $62.96 an hour (given) above 79 % of the hours"));
    CHECK(bound.says("the smallest order is 256 GPUs, 8 are planned"));
    auto const rows = run_planner("breakeven --model kimi-k3.1 --gpu h200x8 --tok-s 1000 --price-kind reserved-3y --api kimi-k3.1-pro");
    CHECK(rows.says("committed for 36 months at"));
    auto const duty = run_planner("cost --tok-s 2073.2 --price 'CNY 342' --currency-rate 7.25 --hours-per-day 4 --days-per-month 30 --setup-minutes 27 --format json");
    CHECK(duty.out.find("\"usd_per_month\": 6297.51724") != std::string::npos); // 342 x (120 + 13.5) h / 7.25
    // 550 k$, 36 months, 10 %, 30 % residual, 14.5 kW x 180, 5 %, 1,500 a month of staff: 20,200 $, 49 % of 56.79 $/h.
    auto const own = run_planner(k31 + "--buy 550000 --months 36 --interest 0.1 --residual 0.3 --power-kw 14.5 --colo 180 --maintenance 0.05 --staff 1500 --price 56.79");
    CHECK(own.says("$20,199.53 a month"));
    CHECK(own.says("$3.46 a GPU-hour around the clock, $6.92 at half the hours"));
    CHECK(own.says("Buying beats renting at $56.79 an hour (given) above 49 % of the hours of a month."));
    // Without an API renting against buying is an answer all the same.
    auto const small = run_planner("breakeven --model qwen3-8b --gpu rtx-4090 --buy 1800 --power-kw 0.5 --tariff 0.3 --on-demand 0.74");
    CHECK(small.status == 0);
    CHECK(small.says("no API is compared"));
    CHECK(small.says("Buying beats renting at $0.74 an hour (given) above 36 % of the hours of a month."));
    CHECK(run_planner("breakeven --model qwen3-8b --gpu rtx-4090").status == 2);
    auto const spare = run_planner(k31 + "--price 49.61 --reserve 1 --peak-to-mean 2 --volume 4000");
    CHECK(spare.says("1 deployment is kept for failure"));
    // 4,000 M output a month at twice the mean need two nodes of 5,448 M, and one to spare: 108,645.90 $.
    CHECK(spare.says("3 108,645.90"));
    auto const both = run_planner("breakeven --model kimi-k3.1 --gpu b300x8 --price 49.61 --against deepseek-v4.1-flash-1017@b300x8 --against-price 49.61");
    CHECK(both.status == 0);
    CHECK(both.says("DeepSeek V4.1 Flash 1017 on b300x8 is the cheaper one at every volume"));
}

TEST_CASE("planner: list prices shows the spread, and takes --as-of, --price-kind and --price-source") {
    auto const all = run_planner("list prices --gpu b300");
    CHECK(all.status == 0);
    CHECK(all.says("Spread, rows of the last year"));
    CHECK(all.says("b300-sxm on-demand 7.40 7.89 17.80 2.4 5"));
    auto const spot = run_planner("list prices --gpu b300 --price-kind spot --as-of 2026-06-01");
    CHECK(spot.says("3.184 AWS"));
    CHECK_FALSE(spot.says("on-demand"));
    CHECK(spot.says("later rows left out"));
    CHECK(run_planner("list prices --gpu b300 --price-source nobody").status == 2);
}

TEST_CASE("planner table: one order of columns, numbers for programs in CSV, notes by number") {
    auto const csv = run_planner("table --models kimi-k3.1 --gpus b300x8,h200x8 --concurrency 64 --price 49.61 --format csv");
    CHECK(csv.status == 0);
    CHECK(csv.out.starts_with("model,gpus,layout,starts,kv_tokens,users,output_tokens_per_second,output_tokens_per_second_low,"));
    CHECK(csv.out.find(",2151492,64,2073.2,") != std::string::npos);
    auto const md = run_planner("table --models kimi-k3.1 --gpus b300x8,h200x8 --concurrency 64 --price 49.61 --format md");
    CHECK(md.says("| 2,151,492 | 64 | 2,073.2 |"));
    CHECK(md.says("no: weights_do_not_fit"));
    CHECK(md.out.find("\n1. ") != std::string::npos);
    CHECK(md.says("must display \"Kimi K3.1-Pro\""));
    auto const picked = run_planner("table --models llama-3.1-8b --gpus l4,h100 --concurrency 1,16 --columns users,gpus,usd_per_million_output_tokens --sort usd_per_million_output_tokens --format csv");
    CHECK(picked.out.starts_with("users,gpus,usd_per_million_output_tokens\n16,"));
}

#endif
