// servecap: the plans that no other plan beats
// SPDX-License-Identifier: Apache-2.0
//
// A plan stays on the front when no other is at least as good in all of: tok/s of one user, $/M output,
// output tok/s a GPU, context, number of GPUs, and better in one. A plan without a price is compared with
// others without one alone: what is not known is neither cheap nor dear. Equal plans stay together.
// Dominance is transitive, so a plan that was dropped can never be missed, and fronts of parts can be merged.
// The dominator that was met last is asked first, which makes most refusals one comparison.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace servecap {

/// What plans are compared by.
struct PlanAxes {
    double per_user = 0;       ///< tok/s of one user; more is better
    double per_million = 0;    ///< $/M output; less is better
    double per_gpu = 0;        ///< output tok/s a GPU; more is better
    std::int64_t context = 0;  ///< longest request, tokens; more is better
    std::int64_t gpus = 0;     ///< less is better
    bool priced = false;       ///< per_million is known

    friend constexpr bool operator==(PlanAxes const&, PlanAxes const&) = default;
};

/// `a` is at least as good as `b` in every axis and better in one.
constexpr bool dominates(PlanAxes const& a, PlanAxes const& b) noexcept {
    if (a.priced != b.priced) return false;
    if (a.per_user < b.per_user || a.per_gpu < b.per_gpu || a.context < b.context || a.gpus > b.gpus) return false;
    if (a.priced && a.per_million > b.per_million) return false;
    return a.per_user > b.per_user || a.per_gpu > b.per_gpu || a.context > b.context || a.gpus < b.gpus ||
           (a.priced && a.per_million < b.per_million);
}

/// The front of what was added so far; memory grows with the front alone. `Item` has a member `axes`.
template <class Item>
class ParetoFront {
public:
    /// Adds an item, unless another beats it; drops those that it beats. True when it was added.
    bool add(Item item) {
        for (std::size_t i = 0; i < items_.size(); ++i)
            if (dominates(items_[i].axes, item.axes)) {
                if (i > 0) std::swap(items_[i], items_[i / 2]);
                return false;
            }
        std::erase_if(items_, [&](Item const& have) { return dominates(item.axes, have.axes); });
        items_.push_back(std::move(item));
        return true;
    }
    void merge(ParetoFront const& other) {
        for (Item const& i : other.items_) add(i);
    }
    [[nodiscard]] std::vector<Item> const& items() const noexcept { return items_; }

private:
    std::vector<Item> items_;
};

} // namespace servecap
