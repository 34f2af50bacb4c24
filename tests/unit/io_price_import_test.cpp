// Price lists of other projects, small real excerpts (tests/data/prices, each with its commit): rows and traps.

#include <catch.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <servecap/io/embedded.hpp>
#include <servecap/io/price_import.hpp>
#include <servecap/io/rows.hpp>

using namespace servecap;

namespace {

std::string text_of(std::string const& name) {
    std::ifstream in{std::string{SERVECAP_TEST_DATA} + "/prices/" + name, std::ios::binary};
    REQUIRE(in.good());
    std::ostringstream s;
    s << in.rdbuf();
    return s.str();
}

struct Catalogue {
    std::vector<Gpu> gpus = *read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    std::vector<GpuPrice> prices = *read_gpu_prices(*find_embedded("gpu_prices.csv"), "gpu_prices.csv");
};

PriceImport import(Catalogue const& c, std::string const& name, std::string const& provider,
                   std::string const& date = "2026-08-20", bool compare = false) {
    std::string const text = text_of(name);
    auto const format = guess_price_format(text);
    if (!format) FAIL(to_line(format.error()));
    PriceImportOptions o;
    o.provider = provider;
    o.date = date;
    o.as_of = "2026-12-01";
    o.gpus = c.gpus;
    if (compare) o.known = c.prices;
    auto r = import_prices(text, name, *format, o);
    if (!r) FAIL(to_line(r.error()));
    return *r;
}

GpuPrice const& row(PriceImport const& i, std::string const& gpu, std::string const& type, std::string const& sku = "") {
    for (auto const& r : i.gpu_prices)
        if (r.gpu == gpu && r.price_type == type && (sku.empty() || r.sku == sku)) return r;
    FAIL("no row of " << gpu << " " << type);
    return i.gpu_prices.front();
}

ApiPrice const& tariff(PriceImport const& i, std::string const& model, std::int64_t tier = 0, std::string const& when = "") {
    for (auto const& r : i.api_prices)
        if (r.model == model && r.tier_min_input.value_or(Tokens{0}).value() == tier && r.applies_when == when) return r;
    FAIL("no tariff of " << model << " " << tier << " " << when);
    return i.api_prices.front();
}

bool found(PriceImport const& i, std::string const& words, bool dropped = false) {
    return std::any_of(i.findings.begin(), i.findings.end(),
                       [&](ImportFinding const& f) { return f.what.find(words) != std::string::npos && f.dropped == dropped; });
}

} // namespace

TEST_CASE("price import: SkyPilot's prices are of an instance") {
    Catalogue const c;
    auto const i = import(c, "skypilot_nebius_vms.csv", "Nebius");
    CHECK(i.read == 6);
    CHECK(row(i, "h100-sxm", "on-demand", "gpu-h100-sxm_8gpu-128vcpu-1600gb").per_gpu == UsdPerHour{2.95});
    CHECK(row(i, "h100-sxm", "on-demand", "gpu-h100-sxm_8gpu-128vcpu-1600gb").per_unit == UsdPerHour{23.6});
    CHECK(row(i, "h100-sxm", "spot", "gpu-h100-sxm_8gpu-128vcpu-1600gb").per_gpu == UsdPerHour{1.25});
    CHECK(row(i, "b200-sxm", "on-demand").per_gpu == UsdPerHour{5.5});
    CHECK(row(i, "l40s", "on-demand").gpus_per_unit == 1);
    // One row for the two regions of one price.
    CHECK(row(i, "h200-sxm", "on-demand").region == "eu-north1 and 1 more");
    CHECK(found(i, "the list is 103 days old"));
}

TEST_CASE("price import: stale files show against newer rows") {
    Catalogue const c;
    // Nebius listed 3.85 (H100) and 4.50 (H200) on 2026-09-19: the file's 2.95 and 3.50 are 22 to 23 % below.
    auto const i = import(c, "skypilot_nebius_vms.csv", "Nebius", "2026-05-01", true);
    CHECK(found(i, "2.95 $ a GPU-hour is -23 % off the 3.85 of 2026-09-19"));
    CHECK(row(i, "h100-sxm", "on-demand").confidence == Confidence::low);
    CHECK(row(i, "l40s", "on-demand").confidence == Confidence::medium);
}

TEST_CASE("price import: the stale RunPod H100 of skypilot issue 3794 shows") {
    // CST-14 of tests/data/cost_cases.csv: the catalogue said 4.49 $/h on a day when the page said 3.29.
    Catalogue const c;
    GpuPrice page;
    page.provider = "RunPod";
    page.gpu = "h100-sxm"; // what a bare "H100" means here
    page.price_type = "on-demand";
    page.per_gpu = UsdPerHour{3.29};
    page.date = "2024-07-29";
    std::vector<GpuPrice> const known{page};
    PriceImportOptions o;
    o.provider = "RunPod";
    o.gpus = c.gpus;
    o.known = known;
    auto const i = import_prices("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
                                 "1x_H100,H100,1,16,188,4.49,US,,\n",
                                 "vms.csv", PriceFormat::skypilot, o);
    REQUIRE(i);
    REQUIRE(i->gpu_prices.size() == 1);
    CHECK(found(*i, "4.49 $ a GPU-hour is +36 % off the 3.29"));
    CHECK(i->gpu_prices[0].confidence == Confidence::low);
}

TEST_CASE("price import: SkyPilot's other columns, missing prices, variants told by memory") {
    Catalogue const c;
    auto const i = import(c, "skypilot_verda_vms.csv", "Verda (DataCrunch)");
    CHECK(row(i, "b300-sxm", "on-demand", "4B300.120V").per_gpu == UsdPerHour{6.99});
    CHECK(row(i, "b300-sxm", "spot", "2B300.60V").per_gpu->value() == Approx(2.4465));
    CHECK(found(i, "no on-demand price", true));
    CHECK(row(i, "a100-80-sxm", "on-demand").per_gpu == UsdPerHour{1.29});
    CHECK(row(i, "v100-sxm2-16", "on-demand").per_gpu == UsdPerHour{0.1381});
    auto const l = import(c, "skypilot_lambda_vms.csv", "Lambda");
    CHECK(row(l, "v100-sxm2-16", "on-demand").per_gpu == UsdPerHour{0.79});
    CHECK(row(l, "v100-sxm2-16", "on-demand").region == "europe-central-1 and 2 more");
    CHECK(row(l, "rtx-a6000", "on-demand").per_gpu == UsdPerHour{1.09});
    CHECK(found(l, "the total memory is that of one GPU"));
}

TEST_CASE("price import: SkyPilot's known slips, made small") {
    Catalogue const c;
    PriceImportOptions o;
    o.gpus = c.gpus;
    auto const read = [&](std::string const& rows) {
        auto r =
            import_prices("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n" + rows,
                          "s.csv", PriceFormat::skypilot, o);
        if (!r) FAIL(to_line(r.error()));
        return *r;
    };
    CHECK(found(read("x,H100,8,1,1,20,r,{'SizeInMiB': 655360},\n"), "the memory of a GPU is multiplied by their number"));
    CHECK(found(read("x,H100,8,1,1,20,r,,20\n"), "spot equals on-demand, a placeholder", true));
    CHECK(read("x,H100,8,1,1,20,r,,20\n").gpu_prices.size() == 1);
    CHECK(found(read("x,H100,0.5,1,1,1,r,,\n"), "is no whole one", true));
    CHECK(found(read("x,Z1000,8,1,1,20,r,,\n"), "is no GPU of the catalogue", true));
    CHECK(found(read("x,H100,8,1,1,0.2,r,,\n"), "implausible", true)); // 0.025 $ a GPU-hour
    CHECK(found(read("x,H100,8,1,1,0,r,,\n"), "a price of 0 is no price", true));
    auto const gcp = read(",H100,8,,,70,us-central1,,\n"); // host and GPU in two rows (skypilot-catalog issue 31)
    CHECK(found(gcp, "the GPU is priced without its host"));
    CHECK(gcp.gpu_prices[0].confidence == Confidence::low);
    CHECK_FALSE(import_prices("InstanceType,Price\nx,1\n", "s.csv", PriceFormat::skypilot, o).has_value());
    CHECK_FALSE(import_prices("InstanceType,AcceleratorName,AcceleratorCount,Price,Region\nx,H100,8,-1,r\n", "s.csv",
                              PriceFormat::skypilot, o)
                    .has_value());
}

TEST_CASE("price import: gpuhunt") {
    Catalogue const c;
    auto const i = import(c, "gpuhunt.csv", "");
    CHECK(i.read == 7);
    CHECK(row(i, "b200-sxm", "on-demand").per_gpu == UsdPerHour{7.25});
    CHECK(row(i, "b200-sxm", "on-demand").confidence == Confidence::low);
    CHECK(found(i, "Crusoe's B200 is an estimate"));
    CHECK(row(i, "h200-sxm", "on-demand").per_gpu == UsdPerHour{10.6});
    CHECK(found(i, "spot equals on-demand, a placeholder", true));
    CHECK(found(i, "MI325X: 288 GB is not the memory of MI325X"));
    CHECK(row(i, "mi325x", "on-demand").notes == "gpuhunt flags: vultr-bm");
    CHECK(row(i, "a10g", "on-demand").per_gpu == UsdPerHour{1.212});
    CHECK(found(i, "\"Z900\" is no GPU of the catalogue", true));
}

TEST_CASE("price import: genai-prices, with tiers, dates and clock windows") {
    Catalogue const c;
    auto const i = import(c, "genai_prices.json", "");
    auto const& k3 = tariff(i, "kimi-k3");
    CHECK(k3.input == UsdPerMillionTokens{3});
    CHECK(k3.cached_input == UsdPerMillionTokens{0.3});
    CHECK(k3.output == UsdPerMillionTokens{15});
    CHECK(k3.provider_kind == "first-party");
    CHECK(k3.url == "https://platform.moonshot.ai/docs/pricing/chat#product-pricing");
    CHECK(tariff(i, "gemini-2.5-pro", 200000).output == UsdPerMillionTokens{15});
    CHECK(tariff(i, "claude-sonnet-4-5").cache_write_1h == UsdPerMillionTokens{6});
    // Dated entries: tiers up to 2026-03-12, one price from 2026-03-13.
    std::vector<ApiPrice> opus;
    for (auto const& r : i.api_prices)
        if (r.model == "claude-opus-4-6") opus.push_back(r);
    REQUIRE(opus.size() == 3);
    CHECK(opus[0].valid_to == "2026-03-12");
    CHECK(opus[1].tier_min_input == Tokens{200000});
    CHECK(opus[2].valid_from == "2026-03-13");
    CHECK(opus[2].valid_to.empty());
    // DeepSeek: the base is off-peak, the window is the standard price.
    CHECK(tariff(i, "deepseek-chat").input == UsdPerMillionTokens{0.135});
    CHECK(tariff(i, "deepseek-chat", 0, "daily 00:30:00Z-16:30:00Z").output == UsdPerMillionTokens{1.1});
    CHECK(found(i, "a window of the clock without weekdays or holidays"));
    CHECK(found(i, "converted from another currency"));
    CHECK(found(i, "no output price: no tariff of a chat model", true)); // embeddings
}

TEST_CASE("price import: models.dev, api.json and TOML") {
    Catalogue const c;
    auto const i = import(c, "models_dev_api.json", "");
    CHECK(tariff(i, "kimi-k3").output == UsdPerMillionTokens{15});
    CHECK(tariff(i, "gemini-2.5-pro", 200000).input == UsdPerMillionTokens{2.5});
    CHECK(found(i, "0 $ for input and output", true)); // a plan, not a price
    auto const t = import(c, "models_dev_kimi-k3.toml", "moonshotai");
    REQUIRE(t.api_prices.size() == 1);
    CHECK(t.api_prices[0].cached_input == UsdPerMillionTokens{0.3});
    CHECK(t.api_prices[0].output == UsdPerMillionTokens{15}); // not the 1,048,576 of [limit]
    PriceImportOptions o;
    CHECK_FALSE(
        import_prices("[cost]\ninput = 1\noutput = 2\n", "x.toml", PriceFormat::models_dev, o).has_value()); // provider not named
}

TEST_CASE("price import: LiteLLM's prices are of one token") {
    Catalogue const c;
    auto const i = import(c, "litellm.json", "");
    CHECK(tariff(i, "kimi-k2.6").input == UsdPerMillionTokens{0.95});
    CHECK(tariff(i, "kimi-k2.6").cached_input == UsdPerMillionTokens{0.16});
    CHECK(tariff(i, "kimi-k2.6").provider_kind == "first-party");
    CHECK(tariff(i, "moonshotai.kimi-k2.5").provider_kind == "host");
    CHECK(found(i, "no longer sold", true));
    // 199,999 and 200k are one boundary written twice.
    CHECK(tariff(i, "grok-4.5", 199999).output == UsdPerMillionTokens{12});
    CHECK(std::count_if(i.api_prices.begin(), i.api_prices.end(), [](ApiPrice const& r) { return r.model == "grok-4.5"; }) == 2);
    PriceImportOptions o;
    auto const slip = import_prices(R"({"x": {"mode": "chat", "input_cost_per_token": 3, "output_cost_per_token": 15}})",
                                    "l.json", PriceFormat::litellm, o);
    REQUIRE(slip);
    CHECK(slip->api_prices.empty());
    CHECK(found(*slip, "a price a token taken for one a million", true));
}

TEST_CASE("price import: what is written is read back as the same rows") {
    Catalogue const c;
    auto const i = import(c, "skypilot_nebius_vms.csv", "Nebius");
    auto const back = read_gpu_prices(write_gpu_prices(i.gpu_prices), "out.csv");
    REQUIRE(back);
    REQUIRE(back->size() == i.gpu_prices.size());
    for (std::size_t k = 0; k < back->size(); ++k) {
        CHECK((*back)[k].per_gpu == i.gpu_prices[k].per_gpu);
        CHECK((*back)[k].sku == i.gpu_prices[k].sku);
        CHECK((*back)[k].date == "2026-08-20");
    }
    auto const g = import(c, "genai_prices.json", "");
    auto const api = read_api_prices(write_api_prices(g.api_prices), "out.csv");
    REQUIRE(api);
    REQUIRE(api->size() == g.api_prices.size());
    for (std::size_t k = 0; k < api->size(); ++k) {
        CHECK((*api)[k].input == g.api_prices[k].input);
        CHECK((*api)[k].cache_write_5m == g.api_prices[k].cache_write_5m);
        CHECK((*api)[k].tier_min_input == g.api_prices[k].tier_min_input);
        CHECK((*api)[k].valid_to == g.api_prices[k].valid_to);
    }
}

TEST_CASE("price import: lists are known by their shape") {
    CHECK(guess_price_format(text_of("skypilot_verda_vms.csv")) == PriceFormat::skypilot);
    CHECK(guess_price_format(text_of("gpuhunt.csv")) == PriceFormat::gpuhunt);
    CHECK(guess_price_format(text_of("genai_prices.json")) == PriceFormat::genai_prices);
    CHECK(guess_price_format(text_of("litellm.json")) == PriceFormat::litellm);
    CHECK(guess_price_format(text_of("models_dev_api.json")) == PriceFormat::models_dev);
    CHECK(guess_price_format(text_of("models_dev_kimi-k3.toml")) == PriceFormat::models_dev);
    for (char const* bad : {"", "a,b\n1,2\n", "{}", "[1]", "hello"}) CHECK_FALSE(guess_price_format(bad).has_value());
}
