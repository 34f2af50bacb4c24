// An autoscaler's admission check: how many more requests of n tokens has a running engine room for?
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <servecap/engine/vllm.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>

using namespace servecap;

/// Requests of `tokens` that fit beside those that run (each with the length that it may grow to).
std::int64_t room_beside(StartPlan const& plan, std::vector<Tokens> const& running, Tokens tokens) {
    double free = static_cast<double>(plan.num_blocks);
    for (Tokens t : running) free -= blocks_of_request(plan, t);
    auto const room = static_cast<std::int64_t>(std::max(0.0, free) / blocks_of_request(plan, tokens));
    return std::clamp<std::int64_t>(room, 0, plan.max_num_seqs.value() - static_cast<std::int64_t>(running.size()));
}

int main() {
    auto const model = load_model("qwen3-32b");
    auto const gpus = read_gpus(*find_embedded("gpus.csv"), "gpus.csv");
    if (!model || !gpus) return 2;
    auto const set = parse_gpus("h100x2", *gpus);
    if (!set) return 2;
    Layout layout;
    layout.tp = 2;
    StartPlan const plan = plan_vllm({.model = *model, .gpus = *set, .layout = layout, .settings = {}});
    fmt::print("{}: {} blocks of {} tokens\n", to_string(plan.verdict), plan.num_blocks, plan.block_tokens.value());
    std::vector<Tokens> running;
    for (int users : {0, 20, 60}) {
        running.assign(static_cast<std::size_t>(users), Tokens{4000});
        for (std::int64_t n : {1000, 8000, 32000})
            fmt::print("{:>3} requests of 4,000 run: {:>4} more of {:>6} tokens\n", users, room_beside(plan, running, Tokens{n}), n);
    }
}
