// Newton's method for the dual with a proximal term, where coordinates take long; see ascent.hpp.
//
// Around a point y of the box, with prox > 0,
//     min  1/2 |w(x)|^2 + linear'x + 1/(2 prox) |x - y|^2,   w(x) = sum_i x_i F[r_i],  sums of x kept,
// has the dual  max over w and b  of a concave, once differentiable function whose x is
//     x_i = y_i + prox * pull_i, within its bounds,   pull_i = -(F[r_i] w + linear_i) - b of its group.
// Its gradient is w(x) - w and what the sums exceed, its Hessian -(1 + prox sum F F') over the variables that
// are not cut off: as many equations as there are columns, whatever the number of rows.  The solution
// becomes the next y; bounds are met exactly, and the steps end where the problem is solved (the proximal
// point method, which for such problems is finite).
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ascent_sweep.hpp"

namespace mercer {

template <class T> class ProximalStep {
  public:
    // The problem, by reference; what is found replaces x, w and b.
    struct State {
        const FeatureRows<T>& rows;
        const int64_t* row;
        const std::vector<int8_t>& group;
        const std::vector<double>&lo, &hi, &linear;
        const double* target;
        int groups;  // sums that are kept: 0, 1 or 2
        std::vector<double>&x, &w, &f;
        double* b;
    };

    ProximalStep(State state, double prox, double longest)
        : s_(state), kernels_(ascent_kernels<T>()), prox_(prox), longest_(longest), N_(s_.x.size()),
          d_(s_.rows.d), size_(s_.rows.d + s_.groups), y_(s_.x), image_(s_.w), df_(N_),
          direction_(size_t(size_)) {}

    // Newton steps until the pulls are known to within `goal`, and whether they came to it; stop() may end it
    // between two of them.
    template <class Stop> bool solve(double goal, const Stop& stop) {
        for (int step = 0; step < kSteps; ++step) {
            follow();
            const double off = error();
            if (off <= goal) return true;
            if (stop()) return false;
            newton();
            const double t = length();
            if (!(t > 0)) return off <= 1e3 * goal;  // rounding allows no more
            advance(t);
        }
        return false;
    }
    int64_t numbers = 0, moves = 0;          // numbers of F that were read, variables that moved
    static constexpr int64_t kDirect = 256;  // equations up to which they are factored

  private:
    static constexpr int kSteps = 40;
    static constexpr int kProducts = 200;  // of conjugate gradients
    static constexpr double kForcing = 0.01;

    double pull(size_t i) const { return -(s_.f[i] + s_.linear[i]) - s_.b[s_.group[i]]; }
    double cut(size_t i, double z) const { return std::clamp(z, s_.lo[i], s_.hi[i]); }

    // x of the present w and b, and the gradient there.
    void follow() {
        free_.clear();
        for (int g = 0; g < 2; ++g) over_[g] = -s_.target[g];
        for (size_t i = 0; i < N_; ++i) {
            const double z = y_[i] + prox_ * pull(i);
            const double next = cut(i, z);
            if (z > s_.lo[i] && z < s_.hi[i]) free_.push_back(int64_t(i));
            if (next != s_.x[i]) {
                kernels_.add(s_.rows, s_.row[i], next - s_.x[i], image_.data());
                numbers += s_.rows.numbers(s_.row[i]);
                ++moves;
                s_.x[i] = next;
            }
            over_[s_.group[i]] += next;
        }
        gradient_.assign(size_t(size_), 0.0);
        for (int64_t j = 0; j < d_; ++j) gradient_[size_t(j)] = image_[size_t(j)] - s_.w[size_t(j)];
        for (int g = 0; g < s_.groups; ++g) gradient_[size_t(d_ + g)] = over_[g];
    }
    // By how much the pulls of x differ from those of w: the length of the difference times that of a row.
    double error() const {
        double sum = 0, over = 0;
        for (int64_t j = 0; j < d_; ++j) sum += gradient_[size_t(j)] * gradient_[size_t(j)];
        for (int g = 0; g < s_.groups; ++g) over = std::max(over, std::abs(over_[g]));
        return longest_ * (std::sqrt(sum) + longest_ * over);
    }

    // direction = (1/prox + sum over free F F')^-1 gradient / prox, with one column of ones for each sum.
    void newton() { size_ <= kDirect ? factor() : conjugate(); }

    // Sums without a free variable have no curvature; they are given that of one.
    double ridge(int g) const {
        int64_t count = 0;
        for (int64_t i : free_) count += s_.group[size_t(i)] == g;
        return count ? 1e-9 * double(count) : 1.0;
    }

    void factor() {
        const int64_t n = size_;
        H_.assign(size_t(n * n), 0.0);
        double* H = H_.data();
        for (int64_t i : free_) {
            const int64_t r = s_.row[i];
            kernels_.outer(s_.rows, r, 1.0, H, n);
            if (s_.groups) kernels_.add(s_.rows, r, 1.0, H + (d_ + s_.group[size_t(i)]) * n);
            numbers += s_.rows.numbers(r) * (1 + d_ / 8);
        }
        for (int64_t i : free_)
            if (s_.groups) H[(d_ + s_.group[size_t(i)]) * (n + 1)] += 1.0;
        for (int64_t j = 0; j < d_; ++j) H[j * (n + 1)] += 1.0 / prox_;
        for (int g = 0; g < s_.groups; ++g) H[(d_ + g) * (n + 1)] += ridge(g);
        for (int64_t j = 0; j < n; ++j) direction_[size_t(j)] = gradient_[size_t(j)] / prox_;
        cholesky(H, direction_.data(), n);
    }
    // Solves H u = right in place; a pivot lost to rounding takes its part out of the step.
    static void cholesky(double* H, double* right, int64_t n) {
        for (int64_t k = 0; k < n; ++k) {
            double* row = H + k * n;
            const double whole = row[k];
            for (int64_t j = 0; j <= k; ++j) {
                const double* other = H + j * n;
                double sum = row[j];
                for (int64_t l = 0; l < j; ++l) sum -= row[l] * other[l];
                row[j] = j < k ? sum * other[j] : sum;
            }
            // The diagonal holds the inverse of the factor's.
            row[k] = row[k] > 1e-15 * whole ? 1.0 / std::sqrt(row[k]) : 0.0;
        }
        for (int64_t k = 0; k < n; ++k) {
            double sum = right[k];
            for (int64_t l = 0; l < k; ++l) sum -= H[k * n + l] * right[l];
            right[k] = sum * H[k * n + k];
        }
        for (int64_t k = n - 1; k >= 0; --k) {
            right[k] *= H[k * n + k];
            for (int64_t l = 0; l < k; ++l) right[l] -= H[k * n + l] * right[k];
        }
    }

    // The same by conjugate gradients, preconditioned by the diagonal.
    void conjugate() {
        const size_t n = size_t(size_);
        std::vector<double> diag(n, 1.0 / prox_), r(n), z(n), p(n), q(n);
        for (int64_t i : free_) kernels_.squares(s_.rows, s_.row[i], diag.data());
        for (int g = 0; g < s_.groups; ++g) diag[size_t(d_ + g)] = ridge(g);
        for (int64_t i : free_)
            if (s_.groups) diag[size_t(d_ + s_.group[size_t(i)])] += 1.0;
        const double ridges[2] = {s_.groups > 0 ? ridge(0) : 0.0, s_.groups > 1 ? ridge(1) : 0.0};
        std::fill(direction_.begin(), direction_.end(), 0.0);
        for (size_t j = 0; j < n; ++j) r[j] = gradient_[j] / prox_, p[j] = z[j] = r[j] / diag[j];
        double rho = dot(r, z);
        const double enough = kForcing * kForcing * rho;
        for (int step = 0; step < kProducts && rho > enough; ++step) {
            product(p, q, ridges);
            const double curve = dot(p, q);
            if (!(curve > 0)) break;
            const double t = rho / curve;
            for (size_t j = 0; j < n; ++j) direction_[j] += t * p[j], r[j] -= t * q[j], z[j] = r[j] / diag[j];
            const double next = dot(r, z);
            const double keep = next / rho;
            rho = next;
            for (size_t j = 0; j < n; ++j) p[j] = z[j] + keep * p[j];
        }
    }
    void product(const std::vector<double>& p, std::vector<double>& q, const double* ridges) {
        for (int64_t j = 0; j < d_; ++j) q[size_t(j)] = p[size_t(j)] / prox_;
        for (int g = 0; g < s_.groups; ++g) q[size_t(d_ + g)] = ridges[g] * p[size_t(d_ + g)];
        for (int64_t i : free_) {
            const size_t one = size_t(d_ + s_.group[size_t(i)]);
            double t = kernels_.product(s_.rows, s_.row[i], p.data());
            if (s_.groups) t += p[one];
            kernels_.add(s_.rows, s_.row[i], t, q.data());
            if (s_.groups) q[one] += t;
            numbers += 2 * s_.rows.numbers(s_.row[i]);
        }
    }
    static double dot(const std::vector<double>& a, const std::vector<double>& b) {
        double sum = 0;
        for (size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
        return sum;
    }

    // How far along the direction: 1, or where the concave function is highest on the way there.
    double length() {
        straight_ = bend_ = 0;
        for (int64_t j = 0; j < d_; ++j) {
            straight_ += s_.w[size_t(j)] * direction_[size_t(j)];
            bend_ += direction_[size_t(j)] * direction_[size_t(j)];
        }
        for (int g = 0; g < s_.groups; ++g) straight_ += direction_[size_t(d_ + g)] * s_.target[g];
        for (size_t i = 0; i < N_; ++i) {
            df_[i] = kernels_.product(s_.rows, s_.row[i], direction_.data());
            if (s_.groups) df_[i] += direction_[size_t(d_ + s_.group[i])];
            numbers += s_.rows.numbers(s_.row[i]);
        }
        const double first = slope(0.0);
        if (!(first > 0)) return 0;
        double low = 0, high = 1, at_low = first, at_high = slope(1.0);
        if (at_high >= 0) return 1;
        for (int k = 0; k < 60; ++k) {
            // A straight line tells where; every other time the middle, should the slope be no straight line.
            const double share = k % 2 ? 0.5 : std::clamp(at_low / (at_low - at_high), 0.05, 0.95);
            const double guess = low + (high - low) * share;
            const double here = slope(guess);
            if (std::abs(here) <= 0.1 * first) return guess;
            if (here > 0) low = guess, at_low = here;
            else high = guess, at_high = here;
        }
        return 0.5 * (low + high);
    }
    double slope(double t) const {
        double sum = -straight_ - t * bend_;
        for (size_t i = 0; i < N_; ++i) sum += cut(i, y_[i] + prox_ * (pull(i) - t * df_[i])) * df_[i];
        return sum;
    }
    void advance(double t) {
        for (int64_t j = 0; j < d_; ++j) s_.w[size_t(j)] += t * direction_[size_t(j)];
        for (int g = 0; g < s_.groups; ++g) s_.b[g] += t * direction_[size_t(d_ + g)];
        for (size_t i = 0; i < N_; ++i) {
            double change = df_[i];
            if (s_.groups) change -= direction_[size_t(d_ + s_.group[i])];
            s_.f[i] += t * change;
        }
    }

    State s_;
    const AscentKernels<T>& kernels_;
    const double prox_, longest_;
    const size_t N_;
    const int64_t d_, size_;
    std::vector<double> y_, image_, df_, direction_, gradient_, H_;
    std::vector<int64_t> free_;
    double over_[2] = {0, 0}, straight_ = 0, bend_ = 0;
};

}  // namespace mercer
