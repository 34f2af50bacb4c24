// planner: the catalogue as one command needs it
// SPDX-License-Identifier: Apache-2.0
//
// Only what a command asks for is read: GPUs and names always, rows of one model or one GPU by a filter
// on the text, so that the main job stays within a few milliseconds. --data and the row options add
// rows on top of the built-in ones; the user's rows win.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/catalog/gpu.hpp>
#include <servecap/catalog/model.hpp>
#include <servecap/catalog/rows.hpp>
#include <servecap/core/result.hpp>
#include <servecap/io/rows.hpp>

#include "args.hpp"

namespace planner {

/// The catalogue behind one command line.
class Context {
public:
    /// Reads GPUs, names and dates.
    static servecap::Result<Context> open(Args const& args);

    [[nodiscard]] std::vector<servecap::Gpu> const& gpus() const noexcept { return gpus_; }
    [[nodiscard]] servecap::NameMap const& names() const noexcept { return names_; }
    /// The date from which ages count: --as-of, else the newest of the catalogue.
    [[nodiscard]] std::string const& as_of() const noexcept { return as_of_; }

    /// The model called `name`: catalogue name, alias, config.json or checkpoint folder.
    [[nodiscard]] servecap::Result<servecap::Model> model(std::string_view name) const;
    [[nodiscard]] servecap::Result<servecap::GpuSet> gpu_set(std::string_view text) const;

    /// Every spelling under which rows may know a model, its id first.
    [[nodiscard]] std::vector<std::string> spellings(servecap::Model const& model) const;

    /// Rows of these models (canonical ids); of all when empty. API prices: catalogue rows that mention one of these.
    [[nodiscard]] servecap::Result<std::vector<servecap::BenchmarkRow>> benchmarks(std::vector<std::string> const& models) const;
    [[nodiscard]] servecap::Result<std::vector<servecap::StartupRow>> startups(std::vector<std::string> const& models) const;
    [[nodiscard]] servecap::Result<std::vector<servecap::SetupRow>> setups(std::vector<std::string> const& models) const;
    [[nodiscard]] servecap::Result<std::vector<servecap::GpuPrice>> gpu_prices(std::vector<std::string> const& gpus) const;
    [[nodiscard]] servecap::Result<std::vector<servecap::ApiPrice>> api_prices(std::vector<std::string> const& mention) const;
    [[nodiscard]] servecap::Result<std::vector<servecap::Coefficient>> coefficients() const;

private:
    Args const* args_ = nullptr;
    std::vector<servecap::Gpu> gpus_;
    servecap::NameMap names_;
    std::string as_of_;
};

/// The whole text of a file; an Error names it where it cannot be read.
servecap::Result<std::string> read_file(std::string const& path);

} // namespace planner
