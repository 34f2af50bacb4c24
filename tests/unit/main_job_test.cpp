// The main job as a user meets it: the program is run, its JSON is read, and every figure of the published deployments
// is compared. Sources: the start-ups, rates and bills of "Kimi K3.1 vs DeepSeek V4.1 on One B300 Node" (Spheron,
// 2026-11-08), "The Real Cost of Deploying Kimi K3.1 Pro Locally" (APIYI, 2026-10-26), and the start-up rows of
// data/startups.csv by their ids.

#include <catch.hpp>

#ifdef SERVECAP_PLANNER

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

struct Answer {
    int status = -1;
    std::string out;
    Json json;
};

/// Runs `planner` with these words; JSON is parsed where it was asked for.
Answer ask(std::string const& words) {
    Answer a;
    std::string const command = std::string{SERVECAP_PLANNER} + " " + words + " 2>&1";
    std::FILE* const pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::array<char, 4096> buffer{};
    while (std::size_t const n = std::fread(buffer.data(), 1, buffer.size(), pipe)) a.out.append(buffer.data(), n);
    int const raw = pclose(pipe);
    a.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 100;
    if (words.find("json") != std::string::npos) {
        auto const at = a.out.find('{');
        if (at != std::string::npos) a.json = Json::parse(a.out.substr(at), nullptr, false);
    }
    return a;
}

Json const& speed_at(Json const& plan, int concurrency) {
    for (Json const& s : plan.at("speed"))
        if (s.at("concurrency") == concurrency) return s;
    throw std::runtime_error("no speed at that concurrency");
}

Json const& cost_at(Json const& plan, int concurrency) {
    for (Json const& c : plan.at("cost").at("by_concurrency"))
        if (c.at("concurrency") == concurrency) return c;
    throw std::runtime_error("no cost at that concurrency");
}

double gib(Json const& bytes) { return bytes.get<double>() / 1073741824.0; }

} // namespace

TEST_CASE("Kimi K3.1 Pro on 8 x B300: the default does not start, the plan goes on with a fix", "[main]") {
    auto const a = ask("--model kimi-k3.1 --gpu b300x8 --price 49.61 --format json");
    REQUIRE(a.status == 0);
    Json const& p = a.json;
    CHECK(p.at("schema") == "servecap.plan/1");
    REQUIRE(p.at("mended").size() == 1);
    CHECK(p.at("mended")[0].at("flag") == "--max-num-seqs");
    CHECK(p.at("mended")[0].at("avoids") == "max_num_seqs (1024) exceeds available Mamba cache blocks (603)");
    // Rows S1 and S2.
    Json const& fit = p.at("fit");
    CHECK(fit.at("basis") == "measured");
    CHECK(fit.at("kv_tokens") == 2151492);
    CHECK(gib(fit.at("weights_bytes_per_gpu")) == Approx(193.66).margin(0.005));
    CHECK(gib(fit.at("pool_bytes_per_gpu")) == Approx(34.74).margin(0.005));
    // The model alone, beside it.
    Json const& blind = fit.at("blind");
    CHECK(gib(blind.at("weights_bytes_per_gpu")) == Approx(193.66).epsilon(0.015));
    CHECK(blind.at("kv_tokens").get<double>() == Approx(2151492).epsilon(0.05));
    CHECK(blind.at("kv_tokens_low").get<double>() <= 2151492);
    CHECK(blind.at("kv_tokens_high").get<double>() >= 2151492);
    // Rates and bills.
    CHECK(speed_at(p, 1).at("basis") == "measured");
    CHECK(speed_at(p, 1).at("output_tokens_per_second").get<double>() == Approx(101.1));
    CHECK(speed_at(p, 64).at("output_tokens_per_second").get<double>() == Approx(2073.2));
    CHECK(cost_at(p, 1).at("usd_per_million_output_tokens").get<double>() == Approx(136.31).margin(0.005));
    CHECK(cost_at(p, 64).at("usd_per_million_output_tokens").get<double>() == Approx(6.65).margin(0.005));
    CHECK(p.at("cost").at("setup").at("usd").get<double>() == Approx(34.07).margin(0.005));
    CHECK(p.at("cost").at("setup").at("basis") == "measured");
    REQUIRE(p.at("break_even").size() >= 1);
    CHECK(p.at("break_even")[0].at("reachable") == "yes");
    CHECK_FALSE(p.at("inferred").empty());
}

TEST_CASE("a flag that the user gave is kept: the refusal is the answer and the fix is named", "[main]") {
    auto const a = ask("--model kimi-k3.1 --gpu b300x8 --max-num-seqs 1024 --price 49.61 --format json");
    CHECK(a.status == 1);
    CHECK(a.json.at("for_fix") == true);
    CHECK(a.json.at("as_asked").at("verdict") == "state_slots_too_few");
    CHECK(a.json.at("as_asked").at("engine_message") == "max_num_seqs (1024) exceeds available Mamba cache blocks (603)");
    CHECK_FALSE(a.json.at("as_asked").at("fixes").empty());
    CHECK_FALSE(a.json.at("speed").empty());
    auto const fit = ask("fit --model kimi-k3.1 --gpu b300x8 --format json");
    CHECK(fit.status == 1);
    CHECK(fit.json.at("fit").at("starts") == false);
    CHECK(fit.json.at("fit").at("engine_message") == "max_num_seqs (1024) exceeds available Mamba cache blocks (603)");
}

TEST_CASE("DeepSeek V4.1 Flash 1017 as two copies of four B300", "[main]") {
    auto const a = ask("--model deepseek-v4.1-flash-1017 --gpu b300x8 --layout tp4x2 --max-num-seqs 256 --max-num-batched-tokens 8192 --kv-cache-dtype fp8 "
                       "--engram-config '{\"cpu_offload\":true}' --max-cudagraph-capture-size 8190 "
                       "--attention-config '{\"indexer_kv_dtype\":\"mxfp4\"}' --price 49.61 --concurrency 1,64 --format json");
    REQUIRE(a.status == 0);
    Json const& p = a.json;
    // Row S3: the figures of one copy.
    CHECK(p.at("fit").at("kv_tokens") == 85171942);
    CHECK(gib(p.at("fit").at("pool_bytes_per_gpu")) == Approx(144.66).margin(0.005));
    CHECK(gib(p.at("fit").at("weights_bytes_per_gpu")) == Approx(79.25).epsilon(0.03));
    // One user runs on one copy; the price stays the node's.
    CHECK(speed_at(p, 1).at("output_tokens_per_second").get<double>() == Approx(268.6));
    CHECK(speed_at(p, 64).at("output_tokens_per_second").get<double>() == Approx(6851.2));
    CHECK(cost_at(p, 1).at("usd_per_million_output_tokens").get<double>() == Approx(51.31).margin(0.005));
    CHECK(cost_at(p, 64).at("usd_per_million_output_tokens").get<double>() == Approx(2.01).margin(0.005));
    CHECK(p.at("cost").at("setup").at("usd").get<double>() == Approx(40.60).margin(0.005));
}

TEST_CASE("DeepSeek V4.1 Flash NVFP4 as two copies of four B300", "[main]") {
    auto const a = ask("--model nvidia/DeepSeek-V4.1-Flash-NVFP4 --gpu b300x8 --layout tp4x2 --price 49.61 --concurrency 1,64 --format json");
    REQUIRE(a.status == 0);
    CHECK(speed_at(a.json, 1).at("output_tokens_per_second").get<double>() == Approx(273.8));
    CHECK(speed_at(a.json, 64).at("output_tokens_per_second").get<double>() == Approx(7070.1));
    CHECK(cost_at(a.json, 1).at("usd_per_million_output_tokens").get<double>() == Approx(50.33).margin(0.005));
    CHECK(cost_at(a.json, 64).at("usd_per_million_output_tokens").get<double>() == Approx(1.95).margin(0.005));
}

TEST_CASE("DeepSeek V4.1 Flash on 8 ranks of data-parallel attention", "[main]") {
    auto const a = ask("fit --model deepseek-v4.1-flash-1017 --gpu b300x8 --layout dep8 --max-num-seqs 256 --format json");
    CHECK(a.status == 0);
    // Row S4: the author's round figures.
    CHECK(gib(a.json.at("fit").at("weights_bytes_per_gpu")) == Approx(46).epsilon(0.05));
    CHECK(a.json.at("layout").at("ep") == 8);
}

TEST_CASE("Kimi K3: where it fits and where it does not", "[main]") {
    struct Case {
        char const* words;
        bool fits;
        bool starts;
        char const* verdict;
    };
    auto const c = GENERATE(values<Case>({
        {"--gpu h100x8", false, false, "weights_do_not_fit"},
        {"--gpu h200x8", false, false, "weights_do_not_fit"},
        {"--gpu b200x8", false, false, "weights_do_not_fit"},
        {"--gpu h200x16 --tp 16 --gpu-memory-utilization 0.97 --max-model-len 32768", true, false, "max_model_len_too_long"},
        {"--gpu h200x16 --tp 16 --gpu-memory-utilization 0.97 --max-model-len 29696", true, true, "starts"},
        {"--gpu b300x8 --layout dep8", false, false, "weights_do_not_fit"},
        {"--gpu b300x16 --layout dep16 --max-num-seqs 32 --max-model-len 131072", true, true, "starts"},
        {"--gpu gb300x8 --max-num-seqs 256", true, true, "starts"},
        {"--gpu mi355x8 --max-num-seqs 256", true, true, "starts"},
        {"--gpu b200x16 --tp 16 --max-num-seqs 256 --max-model-len 262144", true, true, "starts"},
    }));
    INFO(c.words);
    auto const a = ask(std::string{"fit --model kimi-k3 --format json "} + c.words);
    Json const& fit = a.json.at("fit");
    CHECK(fit.at("fits") == c.fits);
    CHECK(fit.at("starts") == c.starts);
    CHECK(fit.at("verdict") == c.verdict);
    CHECK(a.status == (c.starts ? 0 : 1));
}

TEST_CASE("32 H100 hold Kimi K3's weights", "[main]") {
    auto const a = ask("fit --model kimi-k3 --gpu h100x32 --tp 32 --format json");
    CHECK(gib(a.json.at("fit").at("weights_bytes_per_gpu")) < 79.19);
    CHECK(a.json.at("fit").at("shortfall_bytes_per_gpu") == 0);
}

TEST_CASE("75 RTX 4090 are no layout of Kimi K3, and it is said why", "[main]") {
    auto const a = ask("fit --model kimi-k3 --gpu rtx-4090x75");
    CHECK(a.status != 0);
    CHECK(a.status != 3);
    CHECK(a.out.find("75") != std::string::npos);
}

TEST_CASE("published bills at a typed rate", "[main]") {
    struct Case {
        double rate;
        double usd;
    };
    auto const c = GENERATE(values<Case>({{92, 171.47}, {500, 31.55}, {1000, 15.78}, {1500, 10.52}, {3000, 5.26}, {4634, 3.40}}));
    auto const a = ask("cost --tok-s " + std::to_string(c.rate) + " --price 56.79 --format json");
    REQUIRE(a.status == 0);
    CHECK(a.json.at("by_concurrency")[0].at("usd_per_million_output_tokens").get<double>() == Approx(c.usd).margin(0.005));
    CHECK(a.json.at("usd_per_month").get<double>() == Approx(41456.7).margin(0.05));
}

TEST_CASE("published break-even of 41,457 $ a month against 2 / 10 $ at 5:1", "[main]") {
    auto const a = ask("breakeven --usd-per-month 41457 --api-input 2 --api-output 10 --ratio 5 --format json");
    REQUIRE(a.status == 0);
    Json const& b = a.json.at("break_even")[0];
    CHECK(b.at("million_output_tokens_per_month").get<double>() == Approx(2072.85).margin(0.01));
    CHECK(b.at("million_input_tokens_per_month").get<double>() == Approx(10364.25).margin(0.01));
    CHECK(b.at("output_tokens_per_second_needed").get<double>() == Approx(789).margin(0.5));
    CHECK(b.at("input_tokens_per_second_needed").get<double>() == Approx(3944).margin(0.5));
    CHECK(b.at("reachable") == "unknown");
    // With the deployment named, at 5,000 in / 1,000 out, the answer says yes, no or not known, with the reason.
    auto const node = ask("breakeven --model kimi-k3.1 --gpu b300x8 --isl 5000 --osl 1000 --price 56.79 --api-input 2 --api-output 10 --format json");
    CHECK_FALSE(node.json.at("break_even")[0].at("reason").get<std::string>().empty());
    CHECK(node.json.at("break_even")[0].at("million_output_tokens_per_month").get<double>() == Approx(2072.8).margin(0.5));
}

TEST_CASE("wrong input gets one clear line and exit status 2", "[main]") {
    struct Case {
        char const* words;
        char const* says;
    };
    auto const c = GENERATE(values<Case>({
        {"--model kimi-k3.2 --gpu b300x8", "kimi-k3"},
        {"--model kimi-k3.1 --gpu b301x8", "b300"},
        {"--model kimi-k3.1 --gpu b300x9", "neither"},
        {"--model kimi-k3.1", "--gpu"},
        {"--gpu b300x8", "--model"},
        {"--model kimi-k3.1 --gpu b300x8 --layout tp16", "16 GPUs"},
        {"--model kimi-k3.1 --gpu b300x8 --layout tq8", "layout"},
        {"--model kimi-k3.1 --gpu b300x8 --max-model-len 2000000", "context"},
        {"--model kimi-k3.1 --gpu b300x8 --isl 2000000", "context"},
        {"--model kimi-k3.1 --gpu b300x8 --price -1", "--price"},
        {"--model kimi-k3.1 --gpu b300x8 --price 0", "--price"},
        {"--model kimi-k3.1 --gpu b300x8 --price abc", "number"},
        {"--model kimi-k3.1 --gpu b300x8 --price-source nobody", "nobody"},
        {"--model kimi-k3.1 --gpu b300x8 --api nobody", "nobody"},
        {"--model kimi-k3.1 --gpu b300x8 --modle x", "--model"},
        {"--model kimi-k3.1 --gpu b300x8 --concurrency 0", "--concurrency"},
        {"--model kimi-k3.1 --gpu b300x8 --as-of yesterday", "--as-of"},
        {"--model /nonexistent/config.json --gpu b300x8", "nonexistent"},
        {"plam --model kimi-k3.1", "plan"},
        {"cost --tok-s 92", "--price"},
        {"list modles", "models"},
    }));
    INFO(c.words);
    auto const a = ask(c.words);
    CHECK(a.status == 2);
    INFO(a.out);
    CHECK(a.out.find(c.says) != std::string::npos);
    CHECK(a.out.find('\n') == a.out.size() - 1);
}

TEST_CASE("a layout that does not divide the model is refused in the engine's words", "[main]") {
    auto const heads = ask("fit --model kimi-k3 --gpu h200x16 --layout tp5 --format json");
    CHECK(heads.status == 2); // 5 does not divide 16 GPUs
    auto const vocabulary = ask("fit --model kimi-k3 --gpu h200x24 --layout tp24 --format json");
    CHECK(vocabulary.status == 1);
    CHECK(vocabulary.json.at("fit").at("verdict") == "layout_invalid"); // row L165
    CHECK_FALSE(vocabulary.json.at("fit").at("engine_message").get<std::string>().empty());
}

TEST_CASE("every form of the plan is given", "[main]") {
    auto const csv = ask("--model kimi-k3.1 --gpu b300x8 --format csv");
    CHECK(csv.status == 0);
    CHECK(csv.out.find("output_tokens_per_second") != std::string::npos);
    auto const md = ask("--model kimi-k3.1 --gpu b300x8 --format md");
    CHECK(md.out.find("| Users |") != std::string::npos);
    auto const svg = ask("--model kimi-k3.1 --gpu b300x8 --format svg");
    CHECK(svg.out.find("<svg") == 0);
    auto const page = ask("--model kimi-k3.1 --gpu b300x8");
    for (char const* word : {"Starts", "Memory", "Holds", "Users", "Cost", "Break-even", "Start it", "vllm serve"}) {
        INFO(word);
        CHECK(page.out.find(word) != std::string::npos);
    }
    auto const explain = ask("explain --model kimi-k3.1 --gpu b300x8");
    CHECK(explain.status == 0);
    CHECK(explain.out.find("2,151,492") != std::string::npos);
}

#endif
