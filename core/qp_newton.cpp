// Newton's steps on the free variables; `descend` of mercer/solve/active.py is the same in Python.
#include "qp_newton.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mercer {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-11;   // of the largest |f| + |p|: what is less is no violation
constexpr double kRise = 1e-12;       // of the terms of the objective: what is less is no rise
constexpr double kSolved = 1e-9;      // of the right side: the largest residual of a solution
constexpr double kLongest = 1e12;     // of |right| / |M|: a longer solution shows a singular M
constexpr double kLittleCurve = 1e6;  // a step longer than so many gradients has hardly any curvature

double largest(const std::vector<double>& x) {
    double out = 0;
    for (double v : x) out = std::max(out, std::abs(v));
    return out;
}

// The multiplier of some variables: the mean of the free ones, else the middle of what the others allow.
struct Middle {
    double sum = 0, low = -kInf, high = kInf;
    int64_t free = 0;

    void add(double value, bool may_rise, bool may_fall) {
        if (may_rise && may_fall) sum += value, ++free;
        if (may_rise) low = std::max(low, value);
        if (may_fall) high = std::min(high, value);
    }
    double value() const {
        if (free) return sum / double(free);
        if (low == -kInf) return high == kInf ? 0 : high;
        return high == kInf ? low : 0.5 * (low + high);
    }
};

class Descent {
  public:
    Descent(const QpProblem& problem, const double* K, int64_t n, int64_t limit, NewtonState& state)
        : p_(problem), K_(K), n_(n), N_(problem.variables), limit_(limit), state_(state), new_(size_t(N_)),
          new_f_(size_t(N_)), room_(size_t(N_)), step_(size_t(N_)), violation_(size_t(N_)),
          change_(size_t(n)), image_(size_t(n)) {}

    NewtonEnd run() {
        objective_ = objective(state_.alpha, state_.f);
        double most_f = 0, most_p = 0;
        for (int64_t i = 0; i < N_; ++i) {
            most_f = std::max(most_f, std::abs(state_.f[i]));
            most_p = std::max(most_p, std::abs(p_.p[i]));
        }
        scale_ = most_f + most_p;
        if (scale_ == 0) scale_ = 1;
        for (; state_.rounds > 0; --state_.rounds) {
            const Next next = round();
            if (next == Next::kDone) return NewtonEnd::kDone;
            if (next == Next::kHard) return NewtonEnd::kHard;
        }
        return NewtonEnd::kRounds;
    }

  private:
    enum class Next { kAnother, kDone, kHard };

    Next round() {
        free_.clear();
        for (int64_t i = 0; i < N_; ++i)
            if (state_.free[i]) free_.push_back(i);
        const int64_t k = int64_t(free_.size());
        if (k == 0 || k > limit_) return Next::kDone;
        if (k > kNewtonMost || !newton()) return Next::kHard;
        const double nearest = rooms();
        double t;
        if (!length(t)) return Next::kHard;
        t = std::min(t, nearest);
        if (!std::isfinite(t)) return Next::kDone;
        const bool reached = nearest <= t;
        const bool moved = walk(t, reached);
        const double before = objective_;
        if (moved) product();
        for (int64_t i = 0; i < N_; ++i) new_f_[size_t(i)] = state_.f[i] + (moved ? image_of(i) : 0.0);
        const double after = objective(new_.data(), new_f_.data());
        if (moved && rises(before, after, new_.data(), new_f_.data())) return Next::kDone;
        const bool fell = rises(after, before, state_.alpha, state_.f);
        std::copy(new_.begin(), new_.end(), state_.alpha);
        std::copy(new_f_.begin(), new_f_.end(), state_.f);
        objective_ = after;
        if (reached) {
            for (int64_t i : free_)
                if (room_[size_t(i)] <= t) state_.free[i] = false;
            return Next::kAnother;
        }
        return look(moved, fell);
    }

    // Whether the objective rises beyond its rounding, from one place to another that is at alpha and f.
    bool rises(double from, double to, const double* alpha, const double* f) const {
        const double rise = to - from;
        if (rise <= 0) return false;
        double terms = 0;
        for (int64_t i = 0; i < N_; ++i) terms += alpha[i] * (std::abs(p_.p[i]) + std::abs(f[i]));
        return rise > kRise * terms;
    }

    double objective(const double* alpha, const double* f) const {
        double quadratic = 0, linear = 0;
        for (int64_t i = 0; i < N_; ++i) {
            quadratic += p_.signs[i] * alpha[i] * f[i];
            linear += p_.p[i] * alpha[i];
        }
        return 0.5 * quadratic + linear;
    }

    double gradient(int64_t i) const { return p_.signs[i] * state_.f[i] + p_.p[i]; }

    // step_: d with Q_FF d + A'm = -G_F and A d = 0; false where the system is singular or nearly so.
    bool newton() {
        const int64_t k = int64_t(free_.size());
        sums(k);
        const int64_t c = int64_t(sides_.size()), size = k + c;
        M_.assign(size_t(size * size), 0.0);
        right_.assign(size_t(size), 0.0);
        shift_.assign(size_t(k), 0.0);
        if (c) {
            // Seen from one of the points: d is the same, since the sum of s d is 0, and less is lost to
            // rounding.
            const double* first = K_ + p_.rows[free_[0]] * n_;
            const double own = 0.5 * first[p_.rows[free_[0]]];
            for (int64_t j = 0; j < k; ++j) shift_[size_t(j)] = first[p_.rows[free_[size_t(j)]]] - own;
        }
        for (int64_t i = 0; i < k; ++i) {
            const int64_t a = free_[size_t(i)];
            const double* row = K_ + p_.rows[a] * n_;
            double* out = M_.data() + i * size;
            for (int64_t j = 0; j < k; ++j) {
                const int64_t b = free_[size_t(j)];
                const double product = row[p_.rows[b]] - shift_[size_t(i)] - shift_[size_t(j)];
                out[j] = p_.signs[a] * p_.signs[b] * product;
            }
            for (int64_t e = 0; e < c; ++e) {
                const double kept = coefficient(sides_[size_t(e)], a);
                out[k + e] = kept;
                M_[size_t((k + e) * size + i)] = kept;
            }
            right_[size_t(i)] = -gradient(a);
        }
        if (!solve(size)) return false;
        std::fill(step_.begin(), step_.end(), 0.0);
        for (int64_t i = 0; i < k; ++i) step_[size_t(free_[size_t(i)])] = x_[size_t(i)];
        return true;
    }

    // The sums that a step keeps: of s d (side 0), or of d where s = +1 and where s = -1, if there are such.
    void sums(int64_t k) {
        sides_.clear();
        if (p_.equality == 1) sides_.push_back(0);
        if (p_.equality != 2) return;
        for (int side : {1, -1}) {
            bool some = false;
            for (int64_t j = 0; j < k; ++j) some = some || p_.signs[free_[size_t(j)]] == side;
            if (some) sides_.push_back(side);
        }
    }
    double coefficient(int side, int64_t i) const {
        if (side == 0) return p_.signs[i];
        return p_.signs[i] == side ? 1.0 : 0.0;
    }

    // x_ = M^-1 right, if that can be trusted.
    bool solve(int64_t size) {
        x_ = right_;
        factors_ = M_;
        if (!qp_solve_system(factors_.data(), x_.data(), size)) return false;
        const double right = largest(right_);
        double residual = 0;
        for (int64_t i = 0; i < size; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < size; ++j) sum += M_[size_t(i * size + j)] * x_[size_t(j)];
            residual = std::max(residual, std::abs(sum - right_[size_t(i)]));
            if (!(sum - sum == 0)) return false;
        }
        const double longest = kLongest * right / std::max(largest(M_), 1e-300);
        return residual <= kSolved * right && largest(x_) <= longest;
    }

    // How far each variable may go until it reaches a bound; the least of them is returned.
    double rooms() {
        double nearest = kInf;
        std::fill(room_.begin(), room_.end(), kInf);
        for (int64_t i : free_) {
            const double d = step_[size_t(i)];
            if (d == 0) continue;
            const double room = d > 0 ? p_.C[i] - state_.alpha[i] : state_.alpha[i];
            room_[size_t(i)] = room / std::abs(d);
            nearest = std::min(nearest, room_[size_t(i)]);
        }
        return nearest;
    }

    // 1, Newton's length; false where there is hardly any curvature along the step.
    bool length(double& t) const {
        double most = 0;
        for (int64_t i = 0; i < N_; ++i) most = std::max(most, std::abs(gradient(i)));
        t = 1;
        return largest(step_) < kLittleCurve * most;
    }

    // new_: alpha after t times the step, within the box; whether anything moved.
    bool walk(double t, bool reached) {
        bool moved = false;
        std::copy(state_.alpha, state_.alpha + N_, new_.begin());
        for (int64_t i : free_) {
            double& here = new_[size_t(i)];
            const double d = step_[size_t(i)];
            here = std::min(std::max(here + t * d, 0.0), p_.C[i]);
            if (reached && room_[size_t(i)] <= t) here = d > 0 ? p_.C[i] : 0.0;
            moved = moved || here != state_.alpha[i];
        }
        return moved;
    }

    // image_: K times the change of beta.
    void product() {
        std::fill(change_.begin(), change_.end(), 0.0);
        for (int64_t i : free_)
            change_[size_t(p_.rows[i])] += p_.signs[i] * (new_[size_t(i)] - state_.alpha[i]);
        columns_.clear();
        weights_.clear();
        for (int64_t r = 0; r < n_; ++r) {
            if (change_[size_t(r)] == 0) continue;
            columns_.push_back(K_ + r * n_);
            weights_.push_back(change_[size_t(r)]);
        }
        std::fill(image_.begin(), image_.end(), 0.0);
        qp_kernels<double>().accumulate(columns_.data(), weights_.data(), int64_t(columns_.size()), 0, n_,
                                        image_.data());
    }
    double image_of(int64_t i) const { return image_[size_t(p_.rows[i])]; }

    // No bound was reached: is it optimal, and else, which variable is freed?
    Next look(bool moved, bool fell) {
        violations();
        double inside = 0, worst = 0;
        int64_t at = 0;
        for (int64_t i = 0; i < N_; ++i) {
            const double bad = violation_[size_t(i)];
            if (state_.free[i]) {
                inside = std::max(inside, bad);
            } else if (bad > worst) {
                worst = bad;
                at = i;
            }
        }
        // A long step came to no bound: there is more to go.
        if (inside > std::max(worst, kRounding * scale_) && fell) return Next::kAnother;
        if (worst <= kRounding * scale_ || !moved) return Next::kDone;
        state_.free[at] = true;
        return Next::kAnother;
    }

    void violations() {
        double m[2] = {0, 0};
        if (p_.equality == 1) {
            Middle b;
            for (int64_t i = 0; i < N_; ++i) {
                const bool below = state_.alpha[i] < p_.C[i], above = state_.alpha[i] > 0;
                const bool up = p_.signs[i] > 0;
                b.add(-p_.signs[i] * gradient(i), up ? below : above, up ? above : below);
            }
            m[0] = b.value();
            m[1] = -m[0];
        } else if (p_.equality == 2) {
            Middle each[2];
            for (int64_t i = 0; i < N_; ++i)
                each[p_.signs[i] > 0 ? 0 : 1].add(-gradient(i), state_.alpha[i] < p_.C[i],
                                                  state_.alpha[i] > 0);
            m[0] = each[0].value();
            m[1] = each[1].value();
        }
        for (int64_t i = 0; i < N_; ++i) {
            const double g = gradient(i) + m[p_.signs[i] > 0 ? 0 : 1];
            double bad = 0;
            if (g > 0 && state_.alpha[i] > 0) bad = g;
            if (!(g > 0) && state_.alpha[i] < p_.C[i]) bad = -g;
            violation_[size_t(i)] = bad;
        }
    }

    const QpProblem& p_;
    const double* K_;
    const int64_t n_, N_, limit_;
    NewtonState& state_;
    double objective_ = 0, scale_ = 1;
    std::vector<int64_t> free_;
    std::vector<int> sides_;
    std::vector<double> new_, new_f_, room_, step_, violation_, change_, image_;
    std::vector<double> M_, factors_, right_, x_, shift_, weights_;
    std::vector<const double*> columns_;
};

}  // namespace

NewtonEnd newton_descent(const QpProblem& problem, const double* K, int64_t n, int64_t limit,
                         NewtonState& state) {
    check_qp(problem, n);
    return Descent(problem, K, n, limit, state).run();
}

}  // namespace mercer
