// Models, GPUs and rows of the built-in catalogue for tests of starts.
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include <catch.hpp>

#include <servecap/engine/engine.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/rows.hpp>

namespace starts {

inline std::vector<servecap::Gpu> const& gpus() {
    static auto const all = servecap::read_gpus(*servecap::find_embedded("gpus.csv"), "gpus.csv");
    REQUIRE(all.has_value());
    return *all;
}

inline std::vector<servecap::StartupRow> const& rows() {
    static auto const all = servecap::read_startups(*servecap::find_embedded("startups.csv"), "startups.csv");
    REQUIRE(all.has_value());
    return *all;
}

/// The card of this name; null when there is none.
inline servecap::Model const* find(std::string const& name) {
    static std::map<std::string, std::optional<servecap::Model>> known;
    auto it = known.find(name);
    if (it == known.end()) {
        auto m = servecap::load_model(name);
        it = known.emplace(name, m ? std::optional{std::move(*m)} : std::nullopt).first;
    }
    return it->second ? &*it->second : nullptr;
}

inline servecap::Model const& model(std::string const& name) {
    servecap::Model const* m = find(name);
    INFO(name);
    REQUIRE(m != nullptr);
    return *m;
}

/// "b300x8".
inline servecap::GpuSet set(std::string_view text) {
    auto const g = servecap::parse_gpus(text, gpus());
    REQUIRE(g.has_value());
    return *g;
}

/// A question with everything that it refers to.
struct Asked {
    servecap::Model model;
    servecap::GpuSet gpus;
    servecap::Layout layout;
    servecap::EngineSettings settings;
    std::optional<servecap::Bytes> pool;

    [[nodiscard]] servecap::StartRequest request() const {
        servecap::StartRequest r{.model = model, .gpus = gpus, .layout = layout, .settings = settings};
        r.logged_pool = pool;
        return r;
    }
    [[nodiscard]] servecap::StartPlan plan() const { return servecap::plan_start(request()); }
};

inline Asked ask(std::string const& name, std::string_view gpu, std::int32_t tp = 1) {
    Asked a{model(name), set(gpu), {}, {}, {}};
    a.layout.tp = tp;
    return a;
}

} // namespace starts
