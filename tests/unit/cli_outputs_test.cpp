// What other programs read from the program: JSON by its schema file, deployment files, Prometheus text, completions, imports.

#include <catch.hpp>

#ifdef SERVECAP_PLANNER

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

namespace {

namespace cli_outputs {

using Json = nlohmann::json;

struct Output {
    int status = -1;
    std::string text;
};

/// Standard output of a shell command in which {} stands for the program.
Output shell(std::string command) {
    for (auto at = command.find("{}"); at != std::string::npos; at = command.find("{}")) command.replace(at, 2, SERVECAP_PLANNER);
    Output o;
    std::FILE* const pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::array<char, 4096> buffer{};
    while (std::size_t const n = std::fread(buffer.data(), 1, buffer.size(), pipe)) o.text.append(buffer.data(), n);
    int const raw = pclose(pipe);
    o.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 100;
    return o;
}

bool holds(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string type_of(Json const& v) {
    if (v.is_null()) return "null";
    if (v.is_boolean()) return "boolean";
    if (v.is_number_integer()) return "integer";
    if (v.is_number()) return "number";
    if (v.is_string()) return "string";
    return v.is_array() ? "array" : "object";
}

/// The part of JSON Schema that docs/plan.schema.json uses: $ref, const, enum, type, properties, required, items.
/// Returns the first place that breaks it, or nothing.
std::string breaks(Json const& root, Json schema, Json const& v, std::string const& path) {
    if (schema.contains("$ref")) {
        std::string const ref = schema["$ref"].get<std::string>();
        schema = root.at(Json::json_pointer(ref.substr(1)));
    }
    if (schema.contains("const") && v != schema["const"]) return path + " is not " + schema["const"].dump();
    if (schema.contains("enum")) {
        bool found = false;
        for (Json const& e : schema["enum"]) found = found || e == v;
        if (!found) return path + " = " + v.dump() + " is none of " + schema["enum"].dump();
    }
    if (schema.contains("type")) {
        Json const types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
        std::string const is = type_of(v);
        bool found = false;
        for (Json const& t : types) found = found || t == is || (t == "number" && is == "integer");
        if (!found) return path + " is " + is + ", not " + types.dump();
    }
    if (v.is_object()) {
        for (Json const& key : schema.value("required", Json::array()))
            if (!v.contains(key.get<std::string>())) return path + " has no " + key.dump();
        if (schema.contains("properties"))
            for (auto const& [key, sub] : schema["properties"].items())
                if (v.contains(key))
                    if (auto why = breaks(root, sub, v[key], path + "/" + key); !why.empty()) return why;
    }
    if (v.is_array() && schema.contains("items"))
        for (std::size_t i = 0; i < v.size(); ++i)
            if (auto why = breaks(root, schema["items"], v[i], path + "/" + std::to_string(i)); !why.empty()) return why;
    return {};
}

} // namespace cli_outputs

} // namespace

TEST_CASE("plans are as docs/plan.schema.json says", "[cli]") {
    using namespace cli_outputs;
    std::ifstream file{std::string{SERVECAP_SOURCE} + "/docs/plan.schema.json"};
    Json const schema = Json::parse(file);
    for (char const* words : {"--model kimi-k3.1 --gpu b300x8", "--model llama-3.1-8b --gpu l4", "fit --model kimi-k3 --gpu b300x8 --layout dep8",
                              "predict --model qwen3-32b --gpu h200 --request-rate 2", "--model gpt-oss-120b --gpu h100x2 --engine sglang --explain",
                              "--model qwen3-32b --gpu mi300x --concurrency 4"}) {
        INFO(words);
        Output const o = shell(std::string{"{} "} + words + " --format json 2>/dev/null");
        CHECK(o.status <= 1);
        Json const plan = Json::parse(o.text, nullptr, false);
        REQUIRE(!plan.is_discarded());
        CHECK(breaks(schema, schema, plan, "plan") == "");
    }
    // The check itself finds what is wrong.
    CHECK(breaks(schema, schema, Json::parse(R"({"schema":"servecap.plan/2"})"), "plan") != "");
}

TEST_CASE("deployment files have the plan's numbers; a plan that does not start has none", "[cli]") {
    using namespace cli_outputs;
    Output const k8s = shell("{} --model gpt-oss-120b --gpu h100x2 --tp 2 --emit k8s 2>&1");
    CHECK(k8s.status == 0);
    for (char const* part : {"kind: Deployment", "kind: PersistentVolumeClaim", "kind: Service", "nvidia.com/gpu: 2", "sizeLimit: 4Gi", "memory: 20Gi",
                             "path: /health", "failureThreshold: ", "- \"--tensor-parallel-size\"", "image: \"vllm/vllm-openai:v"})
        CHECK(holds(k8s.text, part));
    Output const compose = shell("{} --model kimi-k3.1 --gpu b300x8 --emit compose --image my/vllm:1 2>&1");
    CHECK(compose.status == 0);
    for (char const* part : {"image: \"my/vllm:1\"", "device_ids: [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\"]", "shm_size: \"16gb\"", "start_period: ",
                             "- \"--max-num-seqs\"\n      - \"256\""})
        CHECK(holds(compose.text, part));
    CHECK(holds(shell("{} --model qwen3-32b --gpu mi300x --emit k8s 2>&1").text, "amd.com/gpu: 1"));
    CHECK(holds(shell("{} --model qwen3-32b --gpu h100x2 --engine sglang --emit compose 2>&1").text, "image: \"lmsysorg/sglang:v0."));
    CHECK(holds(shell("{} --model qwen3.5-9b --gpu rtx-4090 --engine llama.cpp --emit compose 2>&1").text, "\"/app/llama-server\""));
    // Two copies: two services, each with its own GPU and port.
    Output const two = shell("{} --model llama-3.1-8b --gpu h100x2 --layout tp1x2 --emit compose 2>&1");
    CHECK(holds(two.text, "8001:8000"));
    CHECK(holds(two.text, "device_ids: [\"1\"]"));
    // Over nodes: LeaderWorkerSet, and no Compose.
    Output const nodes = shell("{} --model kimi-k2.5 --gpu h200x16 --layout tp8pp2 --emit k8s 2>&1");
    CHECK(nodes.status == 0);
    CHECK(holds(nodes.text, "kind: LeaderWorkerSet"));
    CHECK(holds(nodes.text, "--node-rank \\\"$LWS_WORKER_INDEX\\\""));
    Output const one_host = shell("{} --model kimi-k2.5 --gpu h200x16 --layout tp8pp2 --emit compose 2>&1 >/dev/null");
    CHECK(one_host.status == 1);
    CHECK(holds(one_host.text, "spans 2 nodes"));
    Output const refused = shell("{} --model llama-3.1-8b --gpu l4 --max-model-len 131072 --emit k8s 2>&1 >/dev/null");
    CHECK(refused.status == 1);
    CHECK(holds(refused.text, "would not start"));
}

TEST_CASE("prometheus: every line is a comment or a sample, every sample of a declared metric", "[cli]") {
    using namespace cli_outputs;
    Output const o = shell("{} --model kimi-k3.1 --gpu b300x8 --format prometheus 2>/dev/null");
    CHECK(o.status == 0);
    std::string declared;
    std::size_t samples = 0;
    for (std::size_t at = 0; at < o.text.size();) {
        auto const end = o.text.find('\n', at);
        REQUIRE(end != std::string::npos); // the last line ends too
        std::string const line = o.text.substr(at, end - at);
        at = end + 1;
        if (line.starts_with("# TYPE ")) declared += " " + line.substr(7, line.find(' ', 7) - 7) + " ";
        if (line.starts_with("#")) continue;
        auto const brace = line.find('{');
        REQUIRE(brace != std::string::npos);
        CHECK(holds(declared, " " + line.substr(0, brace) + " "));
        auto const close = line.rfind("} ");
        REQUIRE(close != std::string::npos);
        char* stop = nullptr;
        std::strtod(line.c_str() + close + 2, &stop);
        CHECK(*stop == '\0');
        ++samples;
    }
    CHECK(samples > 50);
    CHECK(holds(o.text, "servecap_starts{model=\"moonshotai/Kimi-K3.1-Pro\""));
    CHECK(shell("{} list gpus --format prometheus 2>/dev/null").status == 2);
}

TEST_CASE("completions and the manual page name every command and option", "[cli]") {
    using namespace cli_outputs;
    for (char const* shell_name : {"bash", "zsh", "fish", "man"}) {
        Output const o = shell(std::string{"{} completion "} + shell_name);
        CHECK(o.status == 0);
        INFO(shell_name);
        for (char const* word : {"breakeven", "import", "kv-cache-dtype", "max-num-seqs"}) {
            std::string expected = word;
            if (std::string_view{shell_name} == "man") // troff's hyphens
                for (auto at = expected.find('-'); at != std::string::npos; at = expected.find('-', at + 2)) expected.replace(at, 1, "\\-");
            CHECK(holds(o.text, expected));
        }
    }
    CHECK(shell("{} completion bash | bash -n").status == 0);
    CHECK(shell("{} completion tcsh 2>/dev/null").status == 2);
    CHECK(holds(shell("{} import --help").text, "Examples:"));
}

TEST_CASE("import on the command line: rows that validate, wrong kinds that say what they look like", "[cli]") {
    using namespace cli_outputs;
    std::string const data = std::string{SERVECAP_TEST_DATA} + "/import/";
    Output const two = shell("{} import " + data + "gptoss_fp4_h200_tp4_conc64_isl1024_osl1024.json " + data +
                             "H100_tp4_dp2_in1024_out128_p100_c100.jsonl --speculative-method none 2>/dev/null");
    CHECK(two.status == 0);
    CHECK(std::count(two.text.begin(), two.text.end(), '\n') == 3); // header and two rows
    CHECK(holds(two.text, "openai/gpt-oss-120b,mxfp4,h200-sxm,4,4"));
    Output const json = shell("{} import " + data + "agg_kimik2.5_8k1k_int4_vllm_mi355x.json --format json 2>/dev/null");
    Json const j = Json::parse(json.text);
    CHECK(j.at("kind") == "inferencex");
    CHECK(j.at("rows").at(0).at("output_tok_s") == "208.103");
    Output const wrong = shell("{} import --kind guidellm " + data + "llama_3_3_70b_online_output.jsonl 2>&1 >/dev/null");
    CHECK(wrong.status == 2);
    CHECK(holds(wrong.text, "looks like sglang"));
    Output const mixed = shell("{} import " + data + "vllm_sweep_summary.csv " + SERVECAP_TEST_DATA + "/logs/vllm_tp2_h200_summary.log 2>&1 >/dev/null");
    CHECK(mixed.status == 2);
    CHECK(holds(mixed.text, "two sorts"));
    CHECK(holds(shell("{} import " + std::string{SERVECAP_TEST_DATA} + "/logs/vllm_tp2_h200_summary.log 2>/dev/null").text, "74.28"));
    CHECK(shell("{} import " + data + "README.md 2>/dev/null").status == 2);
    CHECK(holds(shell("cat " + data + "aiperf_qwen3.6_nvfp4_5090_agent_c16.json | {} import - --gpu rtx-5090 --tp 1 2>/dev/null").text, "rtx-5090,1,1"));
}

TEST_CASE("published parameter counts agree within 1.5 %, each with what it counts", "[cli]") {
    using namespace cli_outputs;
    Output const o = shell("{} list models --check 2>&1");
    CHECK(o.status == 0);
    CHECK(holds(o.text, " 0 more than 1.5 % off"));
    CHECK(holds(o.text, "trunk + MTP")); // GLM-4.5's 358,337,791,296
}

TEST_CASE("validate: rows of a file, down to the groups that are worst", "[cli]") {
    using namespace cli_outputs;
    std::string const rows = std::string{SERVECAP_PLANNER} + ".rows.csv";
    CHECK(shell("{} import " + std::string{SERVECAP_TEST_DATA} + "/import/gptoss_fp4_h200_tp4_conc64_isl1024_osl1024.json --speculative-method none -o " + rows +
                " 2>/dev/null")
              .status == 0);
    Output const o = shell("{} validate benchmarks " + rows + " 2>&1");
    CHECK(o.status == 0);
    CHECK(holds(o.text, "1 rows scored"));
    CHECK(holds(o.text, "h200-sxm"));
    std::remove(rows.c_str());
}

TEST_CASE("output that is cut short, and no colour where it is not wanted", "[cli]") {
    using namespace cli_outputs;
    Output const cut = shell("{} list models 2>&1 | head -1");
    CHECK(std::count(cut.text.begin(), cut.text.end(), '\n') == 1);
    CHECK(!holds(shell("NO_COLOR=1 {} --model llama-3.1-8b --gpu l4 2>&1").text, "\x1b["));
    CHECK(holds(shell("{} --model llama-3.1-8b --gpu l4 --color always 2>&1").text, "\x1b["));
    CHECK(shell("{} list gpus > /dev/full 2>/dev/null").status == 2);
}

#endif
