// From a price an hour and a measured rate to dollars a million tokens: which tokens are counted decides.
#include <fmt/format.h>

#include <servecap/cost/tokens.hpp>

using namespace servecap;

int main() {
    UsdPerHour const price{49.61}; // 8 x B300
    struct Run {
        char const* what;
        double output, input; // tok/s of the whole deployment
    };
    for (Run const& r : {Run{"1 user", 101.1, 101.1}, Run{"64 users", 2073.2, 2073.2}, Run{"64 users, 8:1", 1500.0, 12000.0}}) {
        TokenCost const all = token_cost(price, TokensPerSecond{r.output}, TokensPerSecond{r.input}, 5.0);
        TokenCost const half = token_cost(price, TokensPerSecond{r.output}, TokensPerSecond{r.input}, 5.0, 0.5);
        fmt::print("{:<14} output alone {:7.2f} $/M, split 5:1 {:6.2f} in + {:6.2f} out, total {:6.2f}; busy half the time {:7.2f}\n", r.what,
                   all.output_alone.value(), all.input.value(), all.output.value(), all.total.value(), half.output_alone.value());
    }
}
