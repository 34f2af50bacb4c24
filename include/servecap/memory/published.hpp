// servecap: a model's parameters beside the published count
// SPDX-License-Identifier: Apache-2.0
//
// A published count does not say what it counts: the files of GLM-4.5 hold an MTP block that "355B" leaves out and
// 358,337,791,296 counts; vision models are counted with their tower; lookup tables may be in or out. So the count is held
// against the trunk and against the trunk with each of the parts that the model has, and the nearest sum is named.

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <servecap/catalog/model.hpp>
#include <servecap/memory/weights.hpp>

namespace servecap {

/// The sum of a model's parts that a published count comes nearest to.
struct PublishedCount {
    Params computed{};
    double deviation = 0; ///< computed / published - 1
    std::string parts;    ///< "trunk", "trunk + MTP", "trunk + vision"
};

/// Compares with the card's published count; nothing where the card has none.
inline std::optional<PublishedCount> published_count(Model const& m) {
    if (!m.published_params || m.published_params->value() <= 0) return std::nullopt;
    struct Part {
        TensorClass cls;
        std::string_view name;
    };
    constexpr std::array<Part, 3> parts{Part{TensorClass::mtp, "MTP"}, Part{TensorClass::vision, "vision"}, Part{TensorClass::lookup, "lookup tables"}};
    std::array<Params, 3> extra{};
    for (std::size_t i = 0; i < parts.size(); ++i) extra[i] = class_params(m, parts[i].cls);
    Params const trunk = total_params(m);
    std::optional<PublishedCount> best;
    for (unsigned choice = 0; choice < 8; ++choice) {
        PublishedCount c{trunk, 0, "trunk"};
        bool real = true;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if ((choice >> i & 1u) == 0) continue;
            real = real && extra[i].value() > 0;
            c.computed += extra[i];
            c.parts += " + " + std::string{parts[i].name};
        }
        if (!real) continue;
        c.deviation = static_cast<double>(c.computed.value()) / static_cast<double>(m.published_params->value()) - 1;
        if (!best || std::fabs(c.deviation) < std::fabs(best->deviation)) best = c;
    }
    return best;
}

} // namespace servecap
