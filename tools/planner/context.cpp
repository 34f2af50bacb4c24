// planner: the catalogue as one command needs it
// SPDX-License-Identifier: Apache-2.0

#include "context.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>

namespace planner {

using namespace servecap;

Result<std::string> read_file(std::string const& path) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rb"), &std::fclose};
    std::error_code ec;
    if (!file || std::filesystem::is_directory(path, ec)) return fail(ErrorCode::missing, "cannot be read", path, "expected a readable file");
    std::string text;
    char buffer[65536];
    while (std::size_t const n = std::fread(buffer, 1, sizeof buffer, file.get())) {
        text.append(buffer, n);
        if (text.size() > (std::size_t{1} << 30)) return fail(ErrorCode::bad_format, "larger than 1 GiB", path);
    }
    if (std::ferror(file.get()) != 0) return fail(ErrorCode::missing, "reading failed", path);
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3); // a byte order mark says nothing in UTF-8
    return text;
}

namespace {

/// Built-in rows, then rows of --data/NAME, then the files named by the option.
template <class Row, class Read>
Result<std::vector<Row>> gather(Args const& args, NameMap const& names, char const* builtin, std::vector<std::string> const& files,
                                std::vector<std::string> const& only, Read read) {
    RowOptions options{only, &names, false};
    std::vector<Row> rows;
    auto const add = [&](std::string_view text, std::string_view file, bool user) -> std::optional<Error> {
        options.user = user;
        auto more = read(text, file, options);
        if (!more) return more.error();
        rows.insert(rows.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
        return std::nullopt;
    };
    if (auto const text = find_embedded(builtin))
        if (auto e = add(*text, builtin, false)) return tl::unexpected<Error>{*e};
    std::vector<std::string> paths;
    std::error_code ec;
    if (!args.data_dir.empty() && std::filesystem::exists(args.data_dir + "/" + builtin, ec)) paths.push_back(args.data_dir + "/" + builtin);
    paths.insert(paths.end(), files.begin(), files.end());
    for (auto const& path : paths) {
        auto text = read_file(path);
        if (!text) return tl::unexpected<Error>{text.error()};
        if (auto e = add(*text, path, true)) return tl::unexpected<Error>{*e};
    }
    return rows;
}

} // namespace

Result<Context> Context::open(Args const& args) {
    Context c;
    c.args_ = &args;
    auto names = NameMap::read(find_embedded("names.csv").value_or(""), "names.csv");
    if (!names) return tl::unexpected<Error>{names.error()};
    c.names_ = std::move(*names);
    auto gpus = read_gpus(find_embedded("gpus.csv").value_or(""), "gpus.csv");
    if (!gpus) return tl::unexpected<Error>{gpus.error()};
    c.gpus_ = std::move(*gpus);
    std::error_code ec;
    if (!args.data_dir.empty()) {
        if (!std::filesystem::is_directory(args.data_dir, ec))
            return fail(ErrorCode::missing, "'" + args.data_dir + "' is no folder", "--data", "expected a folder with models/*.json and CSVs");
        if (std::filesystem::exists(args.data_dir + "/gpus.csv", ec)) {
            auto text = read_file(args.data_dir + "/gpus.csv");
            if (!text) return tl::unexpected<Error>{text.error()};
            auto more = read_gpus(*text, args.data_dir + "/gpus.csv");
            if (!more) return tl::unexpected<Error>{more.error()};
            for (Gpu& g : *more) {
                auto const same = std::find_if(c.gpus_.begin(), c.gpus_.end(), [&](Gpu const& x) { return x.id == g.id; });
                if (same != c.gpus_.end())
                    *same = std::move(g);
                else
                    c.gpus_.push_back(std::move(g));
            }
        }
    }
    if (!args.as_of.empty()) {
        if (!is_iso_date(args.as_of) || args.as_of.size() != 10)
            return fail(ErrorCode::bad_value, "'" + args.as_of + "' is no date", "--as-of", "expected YYYY-MM-DD");
        c.as_of_ = args.as_of;
    } else {
        auto as_of = read_as_of(find_embedded("as_of.csv").value_or(""), "as_of.csv");
        if (!as_of) return tl::unexpected<Error>{as_of.error()};
        c.as_of_ = std::move(*as_of);
    }
    return c;
}

Result<Model> Context::model(std::string_view name) const {
    if (name.empty()) return fail(ErrorCode::bad_usage, "no model named", "--model", "for example kimi-k3.1; planner list models shows all");
    StoreOptions options;
    if (!args_->data_dir.empty()) options.data_dirs.push_back(args_->data_dir);
    options.assume = args_->assume;
    // llama.cpp takes labels of GGUF mixes (q4_k_m), which its own rules turn into bytes.
    if (args_->settings.weights_dtype && args_->settings.engine != EngineKind::llama_cpp) options.weights_dtype = *args_->settings.weights_dtype;
    return load_model(name, options);
}

Result<GpuSet> Context::gpu_set(std::string_view text) const { return parse_gpus(text, gpus_); }

std::vector<std::string> Context::spellings(Model const& model) const {
    std::vector<std::string> out{model.id};
    for (std::string& s : names_.spellings("model", names_.canonical("model", model.id)))
        if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(std::move(s));
    return out;
}

Result<std::vector<BenchmarkRow>> Context::benchmarks(std::vector<std::string> const& models) const {
    return gather<BenchmarkRow>(*args_, names_, "benchmarks.csv", args_->benchmarks, models,
                                [](auto t, auto f, auto const& o) { return read_benchmarks(t, f, o); });
}
Result<std::vector<StartupRow>> Context::startups(std::vector<std::string> const& models) const {
    return gather<StartupRow>(*args_, names_, "startups.csv", args_->startups, models,
                              [](auto t, auto f, auto const& o) { return read_startups(t, f, o); });
}
Result<std::vector<SetupRow>> Context::setups(std::vector<std::string> const& models) const {
    return gather<SetupRow>(*args_, names_, "setups.csv", args_->setups, models,
                            [](auto t, auto f, auto const& o) { return read_setups(t, f, o); });
}
Result<std::vector<GpuPrice>> Context::gpu_prices(std::vector<std::string> const& gpus) const {
    return gather<GpuPrice>(*args_, names_, "gpu_prices.csv", args_->prices, gpus,
                            [](auto t, auto f, auto const& o) { return read_gpu_prices(t, f, o); });
}
Result<std::vector<ApiPrice>> Context::api_prices(std::vector<std::string> const& mention) const {
    return gather<ApiPrice>(*args_, names_, "api_prices.csv", args_->apis, {}, [&](auto t, auto f, RowOptions o) {
        if (!o.user) o.mention = mention; // a file of the user's own is read and checked whole
        return read_api_prices(t, f, o);
    });
}
Result<std::vector<Coefficient>> Context::coefficients() const {
    auto const text = find_embedded("coefficients.csv");
    if (!text) return std::vector<Coefficient>{};
    return read_coefficients(*text, "coefficients.csv");
}

} // namespace planner
