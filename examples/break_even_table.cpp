// A break-even table for a document: one deployment against an API, by how many input tokens come with each output token.
#include <fmt/format.h>

#include <servecap/cost/break_even.hpp>

using namespace servecap;

int main() {
    ApiTariff api;
    api.model = "an API";
    api.input = UsdPerMillionTokens{2};
    api.cached_input = UsdPerMillionTokens{0.2};
    api.cached_input_known = true;
    api.output = UsdPerMillionTokens{10};
    fmt::print("| input : output | cached | M output tokens a month | M input | at the API $/M output |\n|---|---|---|---|---|\n");
    for (double ratio : {0.2, 1.0, 5.0, 20.0})
        for (double cached : {0.0, 0.85}) {
            BreakEvenRequest q;
            q.deployment = UsdPerMonth{41457};
            q.input_per_output = ratio;
            q.cache_hit = cached;
            BreakEven const b = break_even(q, api);
            fmt::print("| {} : 1 | {:.0f} % | {:.0f} | {:.0f} | {:.2f} |\n", ratio, 100 * cached, b.million_output, b.million_input,
                       b.api_per_million_output.value());
        }
}
