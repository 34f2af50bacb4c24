// servecap: coefficients of the speed model from measured rows
// SPDX-License-Identifier: Apache-2.0
//
// log(measured) = log f(row, theta) + g(row) + noise. theta are the coefficients of coefficients.hpp with
// their normal priors (bases, and deviations of engine, family, class... that are drawn to zero: partial
// pooling); g is the residual process of residual.hpp, which lives within one shape of model; the noise has
// heavy tails (Student's t by reweighting), so that a bad run does not bend the fit. Gauss-Newton:
//   H = V^-1 + sum over shapes J' (K + R)^-1 J,   step = H^-1 (J' (K + R)^-1 (y - f) + V^-1 (m - theta))
// with g integrated out, so that a shape with 400 rows does not count as 400 shapes. Leaving a group out
// takes its rows from one block: H and the gradient are downdated and solved again, at the same linearisation.
// The only header that includes Eigen: include it in few files.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <fmt/format.h>

#include <servecap/catalog/rows.hpp>
#include <servecap/core/result.hpp>
#include <servecap/perf/calibration.hpp>
#include <servecap/perf/coefficients.hpp>
#include <servecap/perf/deployment.hpp>
#include <servecap/perf/residual.hpp>
#include <servecap/perf/step.hpp>

namespace servecap {

/// Which of the two measures a fit explains.
enum class SpeedMeasure : std::uint8_t { tpot, ttft, speculative_tpot };

/// One fit: parameters, linearisation, weights. Rows are kept by reference: keep the CalibrationRows alive.
class LogFit {
public:
    struct Parameter {
        std::string name;
        double mean = 0, sd = 1;
    };

    /// Fits. `fixed`: coefficients of the other measure (prefill, for TTFT). Deterministic.
    LogFit(SpeedMeasure measure, CalibrationRows const& all, std::vector<std::size_t> use, CoefficientTable const& fixed)
        : measure_{measure}, kernel_{measure == SpeedMeasure::ttft ? kTtftResidual : kTpotResidual}, all_{&all}, use_{std::move(
                                                                                                                     use)} {
        first_ = measure == SpeedMeasure::tpot ? 0 : kStepCoefs;
        last_ = measure == SpeedMeasure::tpot ? kStepCoefs : kDraftCoefs;
        if (measure == SpeedMeasure::speculative_tpot) {
            first_ = kDraftCoefs;
            last_ = kCoefs;
        }
        parameters(fixed);
        blocks();
        solve();
    }

    [[nodiscard]] std::size_t rows() const noexcept { return use_.size(); }
    [[nodiscard]] std::vector<std::size_t> const& used() const noexcept { return use_; }
    [[nodiscard]] std::vector<Parameter> const& parameter_list() const noexcept { return parameters_; }
    [[nodiscard]] Eigen::VectorXd const& theta() const noexcept { return theta_; }
    [[nodiscard]] int iterations() const noexcept { return iterations_; }
    /// Log of prediction without the residual, and the measured log, by position in used().
    [[nodiscard]] Eigen::VectorXd const& fitted() const noexcept { return f_; }
    [[nodiscard]] Eigen::VectorXd const& measured() const noexcept { return y_; }

    /// Means and standard deviations of the parameters.
    void append_coefficients(std::vector<Coefficient>& out) const { append(out, theta_, h_); }

    /// The same, learned without the rows of one group.
    void append_coefficients_without(std::int32_t group, std::vector<Coefficient>& out) const {
        auto const [theta, h] = without(group);
        append(out, theta, h);
    }

    /// Parameters and Hessian without the rows of one group.
    [[nodiscard]] std::pair<Eigen::VectorXd, Eigen::MatrixXd> without(std::int32_t group) const {
        Eigen::MatrixXd h = h_;
        Eigen::VectorXd g = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(parameters_.size()));
        bool touched = false;
        for (Block const& b : blocks_) {
            std::vector<Eigen::Index> keep;
            for (std::size_t i = 0; i < b.rows.size(); ++i)
                if (row(b.rows[i]).group != group) keep.push_back(static_cast<Eigen::Index>(i));
            if (keep.size() == b.rows.size()) continue;
            touched = true;
            Contribution const whole = contribution(b, {});
            h -= whole.h;
            g -= whole.g; // at the optimum the gradient of all rows is zero
            if (keep.empty()) continue;
            Contribution const part = contribution(b, keep);
            h += part.h;
            g += part.g;
        }
        if (!touched) return {theta_, h_};
        Eigen::VectorXd theta = theta_ + Eigen::LLT<Eigen::MatrixXd>{h}.solve(g);
        return {std::move(theta), std::move(h)};
    }

    /// How far a group lies from what the others say of it, in standard deviations.
    struct LeftOut {
        std::int32_t group = 0;
        double z = 0;      ///< median over its rows, signed
        double weight = 1; ///< less for groups of few rows
        std::string family, layer_class;
    };

    /// Every group, predicted without its rows.
    [[nodiscard]] std::vector<LeftOut> left_out() const {
        std::vector<LeftOut> out;
        auto const p = static_cast<Eigen::Index>(parameters_.size());
        for (Block const& b : blocks_) {
            std::map<std::int32_t, std::vector<Eigen::Index>> groups;
            for (std::size_t i = 0; i < b.rows.size(); ++i) groups[row(b.rows[i]).group].push_back(static_cast<Eigen::Index>(i));
            for (auto const& [group, mine] : groups) {
                std::vector<Eigen::Index> keep;
                for (std::size_t i = 0; i < b.rows.size(); ++i)
                    if (row(b.rows[i]).group != group) keep.push_back(static_cast<Eigen::Index>(i));
                auto const [theta, h] = without(group);
                Eigen::MatrixXd const spread = Eigen::LLT<Eigen::MatrixXd>{h}.solve(Eigen::MatrixXd::Identity(p, p));
                Eigen::VectorXd const shift = theta - theta_;
                auto const at = [&](Eigen::Index i) { return static_cast<Eigen::Index>(b.rows[static_cast<std::size_t>(i)]); };
                Eigen::LLT<Eigen::MatrixXd> factor;
                Eigen::VectorXd weights;
                if (!keep.empty()) {
                    factor.compute(block_covariance(b, keep));
                    Eigen::VectorXd e(static_cast<Eigen::Index>(keep.size()));
                    for (std::size_t i = 0; i < keep.size(); ++i) {
                        Eigen::Index const r = at(keep[i]);
                        e[static_cast<Eigen::Index>(i)] = y_[r] - f_[r] - j_.row(r).dot(shift);
                    }
                    weights = factor.solve(e);
                }
                std::vector<double> z;
                for (Eigen::Index const i : mine) {
                    Eigen::Index const r = at(i);
                    double mean = f_[r] + j_.row(r).dot(shift),
                           variance = prior_variance(kernel_, row(b.rows[static_cast<std::size_t>(i)]).site.speculation != 0) +
                                      noise_[r] * noise_[r];
                    variance += j_.row(r).dot(spread * j_.row(r).transpose());
                    if (!keep.empty()) {
                        Eigen::VectorXd c(static_cast<Eigen::Index>(keep.size()));
                        for (std::size_t k = 0; k < keep.size(); ++k)
                            c[static_cast<Eigen::Index>(k)] = covariance(kernel_, row(b.rows[static_cast<std::size_t>(i)]).site,
                                                                         row(b.rows[static_cast<std::size_t>(keep[k])]).site);
                        mean += c.dot(weights);
                        variance -= factor.matrixL().solve(c).squaredNorm();
                    }
                    z.push_back((y_[r] - mean) / std::sqrt(std::max(1e-6, variance)));
                }
                std::sort(z.begin(), z.end());
                SpeedIdentity const& id = row(b.rows[static_cast<std::size_t>(mine.front())]).speed.id;
                out.push_back(
                    {group, z[z.size() / 2], std::min(1.0, static_cast<double>(z.size()) / 4), id.family, id.layer_class});
            }
        }
        return out;
    }

private:
    struct Block {
        std::vector<std::size_t> rows;      ///< positions in use_
        Eigen::LLT<Eigen::MatrixXd> factor; ///< of the covariance of all its rows, with the weights in force
    };
    struct Contribution {
        Eigen::MatrixXd h;
        Eigen::VectorXd g;
    };

    [[nodiscard]] CalibrationRow const& row(std::size_t position) const noexcept { return all_->rows[use_[position]]; }

    void parameters(CoefficientTable const& fixed) {
        std::map<std::string, std::size_t> index;
        auto const id = [&](std::string const& name, double mean, double sd) {
            auto const at = index.try_emplace(name, parameters_.size());
            if (at.second) parameters_.push_back({name, mean, sd});
            return at.first->second;
        };
        std::size_t const n = use_.size();
        parents_.resize(n * (last_ - first_));
        base_.resize(n);
        y_.resize(static_cast<Eigen::Index>(n));
        noise_.resize(static_cast<Eigen::Index>(n));
        for (std::size_t i = 0; i < n; ++i) {
            SpeedRow const& s = row(i).speed;
            CoefContext const context{s.id, s.layout.dp > 1, s.layout.ep, s.synchronous, s.median_ttft};
            base_[i] = resolve_coefs(fixed, context).log;
            for (std::size_t c = first_; c < last_; ++c) {
                CoefPrior const& p = kCoefPriors[c];
                auto& list = parents_[i * (last_ - first_) + (c - first_)];
                list.push_back(id(std::string{p.name}, prior_log_mean(c), p.sd));
                for (std::size_t k = 0; k < p.count; ++k)
                    if (std::string const name = deviation_name(p.name, p.deviations[k].level, context); !name.empty())
                        list.push_back(id(name, 0.0, p.deviations[k].sd));
            }
            auto const at = static_cast<Eigen::Index>(i);
            y_[at] = std::log(measure_ == SpeedMeasure::ttft ? s.ttft : s.tpot);
            noise_[at] = std::max(kernel_.noise, measure_ != SpeedMeasure::ttft && s.tpot_derived ? 0.09 : 0.0);
        }
        prior_mean_.resize(static_cast<Eigen::Index>(parameters_.size()));
        prior_precision_.resize(static_cast<Eigen::Index>(parameters_.size()));
        for (std::size_t j = 0; j < parameters_.size(); ++j) {
            prior_mean_[static_cast<Eigen::Index>(j)] = parameters_[j].mean;
            prior_precision_[static_cast<Eigen::Index>(j)] = 1 / (parameters_[j].sd * parameters_[j].sd);
        }
    }

    void blocks() {
        std::map<std::uint64_t, std::size_t> of_shape;
        for (std::size_t i = 0; i < use_.size(); ++i) {
            auto const at = of_shape.try_emplace(row(i).site.shape, blocks_.size());
            if (at.second) blocks_.emplace_back();
            blocks_[at.first->second].rows.push_back(i);
        }
        r_ = noise_.cwiseAbs2();
        for (Block& b : blocks_) b.factor.compute(block_covariance(b, {}));
    }

    /// Log of the prediction of one row with coefficients `log`.
    [[nodiscard]] double predict(std::size_t position, std::array<double, kCoefs> const& log) const noexcept {
        CalibrationRow const& r = row(position);
        std::array<double, kCoefs> f{};
        for (std::size_t c = 0; c < kCoefs; ++c) f[c] = c == static_cast<std::size_t>(Coef::date) ? log[c] : std::exp(log[c]);
        StepLoad l;
        l.batch = r.speed.batch;
        l.isl = r.speed.isl;
        l.osl = r.speed.osl;
        l.context = r.speed.isl + r.speed.osl / 2;
        l.years = r.speed.years;
        l.capture = r.speed.capture;
        add_speculation(l, r.speed.id.speculation, drafts_of(r.speed), f);
        if (measure_ != SpeedMeasure::ttft) return std::log(token_time(r.physics, l, step_times(r.physics, l, f), f));
        double const step = r.speed.tpot > 0 ? r.speed.tpot : step_times(r.physics, l, f).total;
        return std::log(first_token_time(r.physics, l, r.speed.concurrency, step, f));
    }

    /// The coefficients of one row at theta_.
    [[nodiscard]] std::array<double, kCoefs> logs_of(std::size_t i) const {
        std::array<double, kCoefs> log = base_[i];
        for (std::size_t c = first_; c < last_; ++c) {
            double v = 0;
            for (std::size_t q : parents(i, c)) v += theta_[static_cast<Eigen::Index>(q)];
            log[c] = v;
        }
        return log;
    }
    /// Predictions at theta_.
    void evaluate() {
        for (std::size_t i = 0; i < use_.size(); ++i) f_[static_cast<Eigen::Index>(i)] = predict(i, logs_of(i));
    }
    /// Predictions and derivatives at theta_.
    void linearise() {
        auto const n = static_cast<Eigen::Index>(use_.size());
        auto const p = static_cast<Eigen::Index>(parameters_.size());
        f_.resize(n);
        j_.setZero(n, p);
        for (std::size_t i = 0; i < use_.size(); ++i) {
            std::array<double, kCoefs> log = logs_of(i);
            auto const at = static_cast<Eigen::Index>(i);
            f_[at] = predict(i, log);
            for (std::size_t c = first_; c < last_; ++c) {
                double const h = 1e-4, keep = log[c];
                log[c] = keep + h;
                double const up = predict(i, log);
                log[c] = keep - h;
                double const slope = (up - predict(i, log)) / (2 * h);
                log[c] = keep;
                for (std::size_t q : parents(i, c)) j_(at, static_cast<Eigen::Index>(q)) += slope;
            }
        }
    }
    [[nodiscard]] std::vector<std::size_t> const& parents(std::size_t i, std::size_t c) const noexcept {
        return parents_[i * (last_ - first_) + (c - first_)];
    }

    /// Covariance of rows of a block, with the weighted noise; `keep` = positions within the block, empty = all.
    [[nodiscard]] Eigen::MatrixXd block_covariance(Block const& b, std::vector<Eigen::Index> const& keep) const {
        auto const n = static_cast<Eigen::Index>(keep.empty() ? b.rows.size() : keep.size());
        auto const at = [&](Eigen::Index i) {
            return b.rows[static_cast<std::size_t>(keep.empty() ? i : keep[static_cast<std::size_t>(i)])];
        };
        Eigen::MatrixXd k(n, n);
        for (Eigen::Index i = 0; i < n; ++i) {
            for (Eigen::Index j = 0; j <= i; ++j) k(i, j) = k(j, i) = covariance(kernel_, row(at(i)).site, row(at(j)).site);
            k(i, i) += r_[static_cast<Eigen::Index>(at(i))];
        }
        return k;
    }

    /// J' K^-1 J and J' K^-1 (y - f) of a block. An empty `keep` means every row.
    [[nodiscard]] Contribution contribution(Block const& b, std::vector<Eigen::Index> const& keep) const {
        auto const p = static_cast<Eigen::Index>(parameters_.size());
        auto const n = static_cast<Eigen::Index>(keep.empty() ? b.rows.size() : keep.size());
        Eigen::MatrixXd j(n, p);
        Eigen::VectorXd e(n);
        for (Eigen::Index i = 0; i < n; ++i) {
            auto const at =
                static_cast<Eigen::Index>(b.rows[static_cast<std::size_t>(keep.empty() ? i : keep[static_cast<std::size_t>(i)])]);
            j.row(i) = j_.row(at);
            e[i] = y_[at] - f_[at];
        }
        Eigen::LLT<Eigen::MatrixXd> part;
        if (!keep.empty()) part.compute(block_covariance(b, keep));
        Eigen::LLT<Eigen::MatrixXd> const& factor = keep.empty() ? b.factor : part;
        Eigen::MatrixXd const lj = factor.matrixL().solve(j);
        Eigen::VectorXd const le = factor.matrixL().solve(e);
        return {lj.transpose() * lj, lj.transpose() * le};
    }

    void solve() {
        theta_ = prior_mean_;
        r_ = noise_.cwiseAbs2();
        linearise();
        Eigen::VectorXd last;
        for (iterations_ = 0; iterations_ < 200; ++iterations_) {
            h_ = prior_precision_.asDiagonal();
            Eigen::VectorXd g = prior_precision_.cwiseProduct(prior_mean_ - theta_);
            for (Block const& b : blocks_) {
                Contribution const c = contribution(b, {});
                h_ += c.h;
                g += c.g;
            }
            Eigen::VectorXd const step = Eigen::LLT<Eigen::MatrixXd>{h_}.solve(g);
            double const largest = step.cwiseAbs().maxCoeff();
            // Backtracking: a full Gauss-Newton step may overshoot where a sum of terms hides one of them.
            Eigen::VectorXd const from = theta_;
            double const before = objective();
            double scale = std::min(1.0, 0.6 / largest);
            if (last.size() == step.size() && last.dot(step) < 0) scale *= 0.5; // it swings about the optimum: meet in the middle
            last = step;
            for (int half = 0; half < 12; ++half, scale *= 0.5) {
                theta_ = from + scale * step;
                evaluate();
                if (objective() <= before + 1e-12 * std::fabs(before)) break;
            }
            linearise();
            if (iterations_ >= 3 && largest < 1e-8) break;
            if (iterations_ < kReweighted) reweight(); // then the weights stay, so that the end is a plain optimum
        }
        h_ = prior_precision_.asDiagonal();
        for (Block const& b : blocks_) h_ += contribution(b, {}).h;
    }
    static constexpr int kReweighted = 20;

    /// Minus the log posterior at theta_, up to a constant, with the weights in force.
    [[nodiscard]] double objective() const {
        double sum = (theta_ - prior_mean_).cwiseAbs2().dot(prior_precision_);
        for (Block const& b : blocks_) {
            Eigen::VectorXd e(static_cast<Eigen::Index>(b.rows.size()));
            for (Eigen::Index i = 0; i < e.size(); ++i) {
                auto const at = static_cast<Eigen::Index>(b.rows[static_cast<std::size_t>(i)]);
                e[i] = y_[at] - f_[at];
            }
            sum += b.factor.matrixL().solve(e).squaredNorm();
        }
        return 0.5 * sum;
    }

    /// Student's t: noise of a row grows with what the smooth parts leave of it.
    void reweight() {
        Eigen::VectorXd const left = y_ - f_;
        for (Block& b : blocks_) {
            auto const n = static_cast<Eigen::Index>(b.rows.size());
            Eigen::VectorXd e(n);
            for (Eigen::Index i = 0; i < n; ++i) e[i] = left[static_cast<Eigen::Index>(b.rows[static_cast<std::size_t>(i)])];
            Eigen::VectorXd const a = b.factor.solve(e);
            for (Eigen::Index i = 0; i < n; ++i) {
                auto const at = static_cast<Eigen::Index>(b.rows[static_cast<std::size_t>(i)]);
                double const base = noise_[at] * noise_[at], z = std::pow(r_[at] * a[i], 2) / base;
                r_[at] = base * std::max(0.7, (kernel_.tail + z) / (kernel_.tail + 1));
            }
            b.factor.compute(block_covariance(b, {}));
        }
    }

    void append(std::vector<Coefficient>& out, Eigen::VectorXd const& theta, Eigen::MatrixXd const& h) const {
        auto const p = static_cast<Eigen::Index>(parameters_.size());
        Eigen::MatrixXd const covariance = Eigen::LLT<Eigen::MatrixXd>{h}.solve(Eigen::MatrixXd::Identity(p, p));
        for (Eigen::Index j = 0; j < p; ++j)
            out.push_back({parameters_[static_cast<std::size_t>(j)].name, theta[j], std::sqrt(std::max(0.0, covariance(j, j)))});
    }

    SpeedMeasure measure_;
    ResidualKernel kernel_;
    CalibrationRows const* all_;
    std::vector<std::size_t> use_;
    std::size_t first_ = 0, last_ = kCoefs;
    std::vector<Parameter> parameters_;
    std::vector<std::vector<std::size_t>> parents_;
    std::vector<std::array<double, kCoefs>> base_;
    std::vector<Block> blocks_;
    Eigen::VectorXd prior_mean_, prior_precision_, y_, f_, noise_, r_, theta_;
    Eigen::MatrixXd j_, h_;
    int iterations_ = 0;
};

/// TPOT first, then TTFT with the prefill of the first, then what speculation gains on the steps of the first.
class SpeedFit {
public:
    /// Fits on `rows` (prepared with calibrate_only). Errors: bad_value when there are too few rows.
    static Result<SpeedFit> make(CalibrationRows const& rows) {
        std::vector<std::size_t> tpot, ttft, drafted;
        for (std::size_t i = 0; i < rows.rows.size(); ++i) {
            SpeedRow const& s = rows.rows[i].speed;
            if (s.queued || s.osl < 16) continue;
            if (!s.id.speculation.empty()) {
                if (s.tpot > 0) drafted.push_back(i);
                continue;
            }
            if (s.tpot > 0) tpot.push_back(i);
            if (s.ttft > 0 && !s.ttft_derived) ttft.push_back(i);
        }
        if (tpot.size() < 20)
            return fail(ErrorCode::bad_value, "too few rows to fit: " + std::to_string(tpot.size()) + " with TPOT",
                        "--benchmarks", "at least 20 without speculation, with lengths, concurrency and precision");
        return SpeedFit{rows, std::move(tpot), std::move(ttft), std::move(drafted)};
    }

    [[nodiscard]] LogFit const& tpot() const noexcept { return tpot_; }
    [[nodiscard]] LogFit const& ttft() const noexcept { return ttft_; }
    [[nodiscard]] LogFit const& drafted() const noexcept { return drafted_; }

    /// All coefficients, by name, and the shapes of the models of the rows.
    [[nodiscard]] std::vector<Coefficient> coefficients() const {
        std::vector<Coefficient> out;
        tpot_.append_coefficients(out);
        ttft_.append_coefficients(out);
        drafted_.append_coefficients(out);
        append_widths(out, -1);
        return finish(std::move(out));
    }
    /// The same, learned without one group.
    [[nodiscard]] std::vector<Coefficient> coefficients_without(std::int32_t group) const {
        std::vector<Coefficient> out;
        tpot_.append_coefficients_without(group, out);
        ttft_.append_coefficients_without(group, out);
        drafted_.append_coefficients_without(group, out);
        append_widths(out, group);
        return finish(std::move(out));
    }

private:
    SpeedFit(CalibrationRows const& rows, std::vector<std::size_t> tpot, std::vector<std::size_t> ttft,
             std::vector<std::size_t> drafted)
        : rows_{&rows}, tpot_{SpeedMeasure::tpot, rows, std::move(tpot), {}}, ttft_{after(SpeedMeasure::ttft, rows,
                                                                                          std::move(ttft), tpot_)},
          drafted_{after(SpeedMeasure::speculative_tpot, rows, std::move(drafted), tpot_)}, tpot_left_{tpot_.left_out()},
          ttft_left_{ttft_.left_out()} {}

    static LogFit after(SpeedMeasure measure, CalibrationRows const& rows, std::vector<std::size_t> use, LogFit const& tpot) {
        std::vector<Coefficient> fixed;
        tpot.append_coefficients(fixed);
        return LogFit{measure, rows, std::move(use), CoefficientTable{fixed}};
    }
    /// How much wider (or narrower) the intervals of GPU families and layer classes must be, from groups left out:
    /// w^2 = (n0 + sum z^2) / (n0 + n), first by family, then by class of what the family leaves. `without` is not counted.
    void append_widths(std::vector<Coefficient>& out, std::int32_t without) const {
        constexpr double n0 = 3;
        for (auto const& [name, all] : {std::pair<char const*, std::vector<LogFit::LeftOut> const*>{"width.tpot", &tpot_left_},
                                        {"width.ttft", &ttft_left_}}) {
            std::map<std::string, std::pair<double, double>> family, layers;
            auto const width = [](std::pair<double, double> const& s) { return std::sqrt((n0 + s.first) / (n0 + s.second)); };
            for (LogFit::LeftOut const& g : *all) {
                if (g.group == without) continue;
                family[g.family].first += g.weight * g.z * g.z;
                family[g.family].second += g.weight;
            }
            for (LogFit::LeftOut const& g : *all) {
                if (g.group == without) continue;
                double const z = g.z / width(family[g.family]);
                layers[g.layer_class].first += g.weight * z * z;
                layers[g.layer_class].second += g.weight;
            }
            for (auto const& [key, s] : family) out.push_back({std::string{name} + ".family:" + key, std::log(width(s)), 0.0});
            for (auto const& [key, s] : layers) out.push_back({std::string{name} + ".class:" + key, std::log(width(s)), 0.0});
        }
    }
    [[nodiscard]] std::vector<Coefficient> finish(std::vector<Coefficient> out) const {
        for (auto const& [name, shape] : rows_->shapes) out.push_back({"shape." + name, static_cast<double>(shape), 0.0});
        std::sort(out.begin(), out.end(), [](Coefficient const& a, Coefficient const& b) { return a.name < b.name; });
        return out;
    }

    CalibrationRows const* rows_;
    LogFit tpot_, ttft_, drafted_;
    std::vector<LogFit::LeftOut> tpot_left_, ttft_left_;
};

/// The text of data/coefficients.csv.
inline std::string coefficients_csv(std::span<Coefficient const> coefficients) {
    std::string s = "name,value,sd\n";
    for (Coefficient const& c : coefficients) s += fmt::format("{},{:.12g},{:.6g}\n", c.name, c.value, c.sd);
    return s;
}

} // namespace servecap
