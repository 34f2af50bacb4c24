// The same model on several GPUs: does it start, and how many requests have room?
#include <fmt/format.h>

#include <servecap/engine/vllm.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>

using namespace servecap;

int main() {
    auto const model = load_model("gpt-oss-120b");
    auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    if (!model || !gpus) return 2;
    fmt::print("{:<12} {:<6} {:<24} {:>14} {:>18}\n", "GPUs", "layout", "verdict", "KV GiB a GPU", "requests of 8,000");
    for (char const* name : {"h100", "h100x2", "h200", "b200", "l40sx4", "mi300x"}) {
        auto const set = parse_gpus(name, *gpus);
        if (!set) {
            fmt::print("{}\n", to_line(set.error()));
            continue;
        }
        Layout layout;
        layout.tp = set->count;
        StartRequest request{.model = *model, .gpus = *set, .layout = layout, .settings = {}};
        request.settings.max_model_len = Tokens{32768};
        StartPlan const plan = plan_vllm(request);
        fmt::print("{:<12} {:<6} {:<24} {:>14.1f} {:>18}\n", name, layout_name(layout), to_string(plan.verdict), plan.starts ? in_gib(plan.pool) : 0.0,
                   plan.starts ? requests_with_room(plan, Tokens{8000}) : 0);
    }
}
