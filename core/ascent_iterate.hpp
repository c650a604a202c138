// The iterate of coordinate ascent: its violation, its gap, and sums that are kept; see ascent.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ascent.hpp"

namespace mercer {

template <class T> class AscentIterate {
  protected:
    static constexpr double kInf = std::numeric_limits<double>::infinity();
    static constexpr double kEps = std::numeric_limits<double>::epsilon();
    // The weight of the quadratic term, as a part of the mean square of a row: a smaller one lets the sums
    // come late, a larger one ties all variables to each other.
    static constexpr double kTerm = 0.05;
    // A gap above this share of the objective is not an optimum, however small the violation.
    static constexpr double kNear = 0.01;

    AscentIterate(const QpProblem& p, const FeatureRows<T>& rows)
        : p_(p), rows_(rows), kernels_(ascent_kernels<T>()), N_(p.variables) {
        const size_t N = size_t(N_);
        for (auto* values : {&x_, &lo_, &hi_, &linear_, &v_, &f_, &curve_, &length_}) values->resize(N);
        group_.assign(N, 0);
        std::vector<double> length2(size_t(rows.n), -1.0);
        double total = 0;
        for (size_t i = 0; i < N; ++i) {
            const double sign = p.signs[i];
            x_[i] = sign * p.alpha[i];
            lo_[i] = sign > 0 ? 0 : -p.C[i];
            hi_[i] = sign > 0 ? p.C[i] : 0;
            linear_[i] = sign * p.p[i];
            scale_ = std::max(scale_, std::abs(p.p[i]));
            group_[i] = p.equality == 2 && sign < 0;
            target_[group_[i]] += x_[i];
            double& known = length2[size_t(p.rows[i])];
            if (known < 0) known = kernels_.length2(rows, p.rows[i]);
            length_[i] = std::sqrt(known);
            total += known;
            longest_ = std::max(longest_, length_[i]);
            numbers_each_ += rows.numbers(p.rows[i]);
        }
        if (p.equality) c_ = kTerm * total / double(N_);
        for (size_t i = 0; i < N; ++i) curve_[i] = length2[size_t(p.rows[i])] + c_;
        w_.assign(size_t(rows.d), 0.0);
        numbers_each_ = std::max<int64_t>(1, numbers_each_ / N_);
    }

    // ---- a look at everything --------------------------------------------------------------------------

    // Sums put right; w and f from x, exactly; violation, gap and objective from them.
    void look() {
        find_excess();
        if (p_.equality && !fresh_) put_right();
        std::fill(w_.begin(), w_.end(), 0.0);
        // A product with w = 0 is not worth reading the row; but one with infinity is no number.
        bool rest = std::isfinite(longest_);
        for (int64_t i = 0; i < N_; ++i) {
            if (x_[size_t(i)] == 0) continue;
            kernels_.add(rows_, p_.rows[i], x_[size_t(i)], w_.data());
            rest = false;
        }
        top_[0] = top_[1] = -kInf, bottom_[0] = bottom_[1] = kInf;
        int64_t at_top[2] = {-1, -1}, at_bottom[2] = {-1, -1};
        double objective = 0;
        for (int64_t i = 0; i < N_; ++i) {
            const size_t k = size_t(i);
            f_[k] = rest ? 0.0 : kernels_.product(rows_, p_.rows[i], w_.data());
            v_[k] = -(f_[k] + linear_[k]);
            objective += x_[k] * (0.5 * f_[k] + linear_[k]);
            const int g = group_[k];
            if (x_[k] < hi_[k] && v_[k] > top_[g]) top_[g] = v_[k], at_top[g] = i;
            if (x_[k] > lo_[k] && v_[k] < bottom_[g]) bottom_[g] = v_[k], at_bottom[g] = i;
            nonfinite_ |= !std::isfinite(v_[k]);
        }
        objective_ = objective;
        numbers_ += 2 * N_ * numbers_each_;
        kkt_ = 0, worst_ = -1;
        for (int g = 0; g < 2; ++g) {
            const bool none = p_.equality == 0;
            const double here = none ? std::max(top_[g], -bottom_[g]) : top_[g] - bottom_[g];
            if (!(here > kkt_)) continue;
            kkt_ = here;
            worst_ = none && !(top_[g] >= -bottom_[g]) ? at_bottom[g] : at_top[g];
        }
        gap_ = gap();
        fresh_ = true;
    }

    void find_excess() {
        double sum[2] = {-target_[0], -target_[1]};
        for (size_t i = 0; i < x_.size(); ++i) sum[group_[i]] += x_[i];
        for (int g = 0; g < 2; ++g) excess_[g] = p_.equality ? sum[g] : 0.0;
    }

    // Every sum made what it must be, by moves of the variables that mind least.
    void put_right() {
        for (int g = 0; g < (p_.equality == 2 ? 2 : 1); ++g) {
            for (int round = 0; round < 20 && excess_[g] != 0; ++round) {
                if (!spread_excess(g)) break;
                find_excess();
            }
            if (excess_[g] != 0) push_excess(g);
        }
        find_excess();
    }

    // The same move for all free variables of a group, as far as their bounds allow.
    bool spread_excess(int g) {
        int64_t free = 0;
        for (size_t i = 0; i < x_.size(); ++i) free += group_[i] == g && x_[i] > lo_[i] && x_[i] < hi_[i];
        if (free == 0) return false;
        const double share = -excess_[g] / double(free);
        bool moved = false;
        for (size_t i = 0; i < x_.size(); ++i) {
            if (group_[i] != g || !(x_[i] > lo_[i] && x_[i] < hi_[i])) continue;
            const double next = std::clamp(x_[i] + share, lo_[i], hi_[i]);
            moved |= next != x_[i];
            x_[i] = next;
        }
        return moved;
    }

    // What free variables could not take: variables at a bound, in the order in which they would move.
    void push_excess(int g) {
        const double way = excess_[g] > 0 ? -1.0 : 1.0;
        std::vector<std::pair<double, int64_t>> order;
        for (int64_t i = 0; i < N_; ++i) {
            const size_t k = size_t(i);
            const double room = way > 0 ? hi_[k] - x_[k] : x_[k] - lo_[k];
            if (group_[k] != g || !(room > 0)) continue;
            const double pull = -(kernels_.product(rows_, p_.rows[i], w_.data()) + linear_[k]);
            order.emplace_back(-way * pull, i);
        }
        std::sort(order.begin(), order.end());
        for (auto& [pull, i] : order) {
            const size_t k = size_t(i);
            const double next = std::clamp(x_[k] - excess_[g], lo_[k], hi_[k]);
            excess_[g] += next - x_[k];
            x_[k] = next;
            if (excess_[g] == 0) return;
        }
    }

    // Where there are free variables their pulls tell the multiplier, else the middle of all does.
    void begin_multipliers() {
        for (int g = 0; g < 2 && p_.equality; ++g) {
            std::vector<double> all;
            double sum = 0;
            int64_t free = 0;
            for (size_t i = 0; i < x_.size(); ++i) {
                if (group_[i] != g) continue;
                all.push_back(v_[i]);
                if (x_[i] > lo_[i] && x_[i] < hi_[i]) sum += v_[i], ++free;
            }
            if (all.empty()) continue;
            auto middle = all.begin() + int64_t(all.size()) / 2;
            std::nth_element(all.begin(), middle, all.end());
            b_[g] = free ? sum / double(free) : *middle;
        }
    }

    // ---- how good it is --------------------------------------------------------------------------------

    double gap() const {
        double total = 0;
        for (int g = 0; g < (p_.equality == 2 ? 2 : 1); ++g) {
            double free = 0, sum = 0;
            for (size_t k = 0; k < x_.size(); ++k)
                if (group_[k] == g && x_[k] > lo_[k] && x_[k] < hi_[k]) free += 1, sum += v_[k];
            double b = free > 0 ? sum / free : 0.5 * (top_[g] + bottom_[g]);
            if (p_.equality == 0) b = 0;
            if (!std::isfinite(b)) continue;  // nothing of this group can move
            for (size_t k = 0; k < x_.size(); ++k) {
                if (group_[k] != g) continue;
                if (v_[k] < b) total += (x_[k] - lo_[k]) * (b - v_[k]);
                if (v_[k] > b) total += (hi_[k] - x_[k]) * (v_[k] - b);
            }
        }
        return total;
    }

    bool near_optimum() const {
        double size = 0, linear = 0;
        for (size_t i = 0; i < x_.size(); ++i)
            size += length_[i] * std::abs(x_[i]), linear += std::abs(linear_[i] * x_[i]);
        return gap_ <= std::max(kNear * std::abs(objective_), 64 * kEps * (size * size + linear));
    }

    // What rounding leaves of a violation.
    double rounding() const {
        double size = 0;
        for (size_t i = 0; i < x_.size(); ++i) size += length_[i] * std::abs(x_[i]);
        return kEps * (longest_ * size + scale_);
    }

    const QpProblem& p_;
    const FeatureRows<T>& rows_;
    const AscentKernels<T>& kernels_;
    const int64_t N_;
    std::vector<double> x_, lo_, hi_, linear_, curve_, length_, f_, v_, w_;
    std::vector<int8_t> group_;
    double target_[2] = {0, 0}, excess_[2] = {0, 0}, b_[2] = {0, 0};
    double top_[2] = {0, 0}, bottom_[2] = {0, 0};
    double c_ = 0;  // the weight of the quadratic term
    double scale_ = 0, longest_ = 0, kkt_ = 0, gap_ = 0, objective_ = 0;
    int64_t worst_ = -1, numbers_ = 0, numbers_each_ = 0;
    bool fresh_ = true, nonfinite_ = false;
};

}  // namespace mercer
