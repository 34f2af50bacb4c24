// Does a model start on one GPU, and what does it hold?
#include <cstdio>

#include <fmt/format.h>

#include <servecap/engine/vllm.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>

using namespace servecap;

int main() {
    auto const model = load_model("llama-3.1-8b");
    auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    if (!model || !gpus) return 2;
    auto const l4 = parse_gpus("l4", *gpus);
    if (!l4) {
        fmt::print(stderr, "{}\n", to_line(l4.error()));
        return 2;
    }
    for (std::int64_t length : {131072, 16384}) {
        StartRequest request{.model = *model, .gpus = *l4, .layout = {}, .settings = {}};
        request.settings.max_model_len = Tokens{length};
        StartPlan const plan = plan_vllm(request);
        fmt::print("--max-model-len {}: {}\n", length, to_string(plan.verdict));
        if (!plan.starts) {
            fmt::print("  {}\n", plan.engine_message);
            continue;
        }
        fmt::print("  weights {:.1f} GiB, {} tokens of KV cache, {} requests of 2,000 tokens\n", in_gib(plan.weights), plan.kv_tokens.value(),
                   requests_with_room(plan, Tokens{2000}));
    }
}
