#include "commands.hpp"
namespace planner {
using namespace servecap;
static Result<int> later(char const* n) { return fail(ErrorCode::unsupported, std::string{n} + " is not built yet"); }
Result<int> run_validate(Args const&) { return later("validate"); }
Result<int> run_calibrate(Args const&) { return later("calibrate"); }
Result<int> run_doctor(Args const&) { return later("doctor"); }
Result<int> run_import(Args const&) { return later("import"); }
Result<int> run_search(Args const&) { return later("search"); }
Result<int> run_table(Args const&) { return later("table"); }
Result<int> run_compare(Args const&) { return later("compare"); }
}
