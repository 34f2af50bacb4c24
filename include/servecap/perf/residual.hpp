// servecap: what the physics leaves over, learned from rows near the deployment
// SPDX-License-Identifier: Apache-2.0
//
// A Gaussian process on the logarithm of measured / predicted. Two rows are alike as far as they share the
// shape of the model, its engine, GPU family, the whole group, the deployment, the engine version; at every
// level a part is constant and a part varies smoothly with the logs of concurrency and lengths:
//   k(a, b) = sum over levels that a and b share of s^2 (f exp(-d^2 / 2 l^2) + 1 - f)
// Near rows of the same deployment the prediction follows them; far from every row the mean is zero and the
// width is that of groups left out. Rows whose residual is far out are given less weight (Student's t, as
// weights). At most kResidualRows rows are used, those most alike: a Cholesky of 48 x 48 takes 20 us.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace servecap {

/// Where an observation stands: keys of its levels (equal keys = shared), logs of the load.
struct ResidualSite {
    std::uint64_t shape = 0, shape_engine = 0, shape_family = 0, group = 0, deployment = 0, version = 0, name = 0;
    std::uint64_t speculation = 0; ///< 0 = none
    double log_users = 0, log_isl = 0, log_osl = 0;
};

/// Standard deviations of the levels, in log time; `smooth` = share that varies with the load, over `length`.
struct ResidualKernel {
    double shape, shape_engine, shape_family, group, deployment, version, name, speculation;
    double smooth = 0.5;
    double length = 1.5;
    double noise = 0.05; ///< of one row
    double tail = 5;     ///< degrees of freedom of the noise
};

/// Of log TPOT; found by leave-one-group-out search.
inline constexpr ResidualKernel kTpotResidual{.045, .05, .09, .065, .07, .03, .03, .35};
/// Of log TTFT.
inline constexpr ResidualKernel kTtftResidual{.18, .15, .10, .18, .18, .08, .05, .30, .5, 1.5, .12, 5};

inline constexpr std::size_t kResidualRows = 48;

/// Covariance of the residuals at two sites.
inline double covariance(ResidualKernel const& k, ResidualSite const& a, ResidualSite const& b) noexcept {
    if (a.shape != b.shape) return 0.0; // every level lies within one shape
    double const du = a.log_users - b.log_users, di = a.log_isl - b.log_isl, d_o = a.log_osl - b.log_osl;
    double const near = std::exp(-(du * du + di * di + d_o * d_o) / (2 * k.length * k.length));
    double const part = k.smooth * near + 1 - k.smooth;
    double v = k.shape * k.shape * part;
    if (a.name == b.name) v += k.name * k.name * part;
    if (a.shape_engine == b.shape_engine) v += k.shape_engine * k.shape_engine * part;
    if (a.shape_family == b.shape_family) v += k.shape_family * k.shape_family * part;
    if (a.group == b.group) v += k.group * k.group * part;
    if (a.speculation == b.speculation && a.speculation != 0) v += k.speculation * k.speculation * part;
    if (a.deployment == b.deployment) {
        v += k.deployment * k.deployment * (0.7 * near + 0.3);
        if (a.version == b.version) v += k.version * k.version * part;
    }
    return v;
}

/// Variance of the residual at a site without any row.
constexpr double prior_variance(ResidualKernel const& k, bool speculation) noexcept {
    return (speculation ? k.speculation * k.speculation : 0.0) + k.shape * k.shape + k.shape_engine * k.shape_engine +
           k.shape_family * k.shape_family + k.group * k.group + k.deployment * k.deployment + k.version * k.version +
           k.name * k.name;
}

/// One measured residual.
struct ResidualRow {
    ResidualSite site;
    double residual = 0; ///< log(measured / physics)
    double noise = 0;    ///< standard deviation on top of the kernel's; 0 = the kernel's alone
};

/// Mean and variance of the residual.
struct ResidualGuess {
    double mean = 0;
    double variance = 0; ///< of the residual itself, without the noise of one run
};

/// The residual near one target.
class LocalResidual {
public:
    LocalResidual() = default;

    /// Takes the rows most alike `target`. Deterministic: ties keep the order of `rows`.
    LocalResidual(ResidualKernel const& kernel, std::vector<ResidualRow> const& rows, ResidualSite const& target)
        : kernel_{kernel}, target_{target} {
        std::vector<std::pair<double, std::size_t>> order;
        order.reserve(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (double const c = covariance(kernel_, rows[i].site, target); c > 0) order.emplace_back(-c, i);
        std::stable_sort(order.begin(), order.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
        if (order.size() > kResidualRows) order.resize(kResidualRows);
        n_ = order.size();
        rows_.reserve(n_);
        for (auto const& [c, i] : order) rows_.push_back(rows[i]);
        if (n_ > 0) solve();
    }

    [[nodiscard]] std::size_t size() const noexcept { return n_; }
    [[nodiscard]] std::vector<ResidualRow> const& rows() const noexcept { return rows_; }

    /// The residual at the target with another load.
    [[nodiscard]] ResidualGuess at(double log_users, double log_isl, double log_osl) const noexcept {
        ResidualSite s = target_;
        s.log_users = log_users;
        s.log_isl = log_isl;
        s.log_osl = log_osl;
        ResidualGuess g;
        std::array<double, kResidualRows> c{}, v{};
        for (std::size_t i = 0; i < n_; ++i) {
            c[i] = covariance(kernel_, rows_[i].site, s);
            g.mean += c[i] * alpha_[i];
        }
        double explained = 0;
        for (std::size_t i = 0; i < n_; ++i) { // L v = c
            double x = c[i];
            double const* row = &chol_[i * n_];
            for (std::size_t j = 0; j < i; ++j) x -= row[j] * v[j];
            v[i] = x / row[i];
            explained += v[i] * v[i];
        }
        g.variance = std::max(1e-8, prior_variance(kernel_, target_.speculation != 0) - explained);
        return g;
    }

private:
    /// Cholesky and weights; two passes, the second with less weight on rows far out.
    void solve() {
        std::vector<double> noise(n_);
        for (std::size_t i = 0; i < n_; ++i) {
            double const s = std::max(kernel_.noise, rows_[i].noise);
            noise[i] = s * s;
        }
        std::vector<double> const base = noise;
        for (int pass = 0; pass < 2; ++pass) {
            chol_.assign(n_ * n_, 0.0);
            for (std::size_t i = 0; i < n_; ++i)
                for (std::size_t j = 0; j <= i; ++j)
                    chol_[i * n_ + j] = covariance(kernel_, rows_[i].site, rows_[j].site) + (i == j ? noise[i] : 0.0);
            for (std::size_t i = 0; i < n_; ++i) {
                for (std::size_t j = 0; j <= i; ++j) {
                    double x = chol_[i * n_ + j];
                    for (std::size_t k = 0; k < j; ++k) x -= chol_[i * n_ + k] * chol_[j * n_ + k];
                    chol_[i * n_ + j] = i == j ? std::sqrt(std::max(x, 1e-12)) : x / chol_[j * n_ + j];
                }
            }
            alpha_.assign(n_, 0.0);
            for (std::size_t i = 0; i < n_; ++i) {
                double x = rows_[i].residual;
                for (std::size_t k = 0; k < i; ++k) x -= chol_[i * n_ + k] * alpha_[k];
                alpha_[i] = x / chol_[i * n_ + i];
            }
            for (std::size_t i = n_; i-- > 0;) {
                double x = alpha_[i];
                for (std::size_t k = i + 1; k < n_; ++k) x -= chol_[k * n_ + i] * alpha_[k];
                alpha_[i] = x / chol_[i * n_ + i];
            }
            if (pass == 1) break;
            bool changed = false;
            for (std::size_t i = 0; i < n_; ++i) {
                double const left = noise[i] * alpha_[i]; // what the smooth part does not follow
                double const z = left * left / base[i];
                if (z > 4.0) {
                    noise[i] = base[i] * (kernel_.tail + z) / (kernel_.tail + 1);
                    changed = true;
                }
            }
            if (!changed) break;
        }
    }

    ResidualKernel kernel_{kTpotResidual};
    ResidualSite target_{};
    std::vector<ResidualRow> rows_;
    std::vector<double> chol_, alpha_;
    std::size_t n_ = 0;
};

} // namespace servecap
