#include "commands.hpp"
#include "validation.hpp"
namespace planner {
using namespace servecap;
static Result<int> later(char const* n) { return fail(ErrorCode::unsupported, std::string{n} + " is not built yet"); }
Result<int> validate_benchmark_rows(Args const&) { return later("validate benchmarks"); }
Result<int> run_calibrate(Args const&) { return later("calibrate"); }
}
