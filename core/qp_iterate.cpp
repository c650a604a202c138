// The iterate: violation, gap, shrinking, the choice of a working set.
#include "qp_iterate.hpp"

#include <algorithm>
#include <cmath>

namespace mercer {
namespace {

// Checks in a row before a variable rests.
constexpr int kPatience = 2;
// Columns are dropped when no more than this share is left: each time moves the cache.
constexpr double kFewer = 0.6;
// A gap above this share of the objective is not an optimum, however small the violation.
constexpr double kNear = 0.01;
// The share of the new variables that are the very worst; the others are spread.
constexpr double kHead = 0.3;

[[noreturn]] void bad(const std::string& what) { throw std::invalid_argument(what); }

}  // namespace

QpIterate::QpIterate(const QpProblem& p, int64_t n, const std::vector<double>& diag,
                     const std::vector<double>& norm)
    : p_(p), n_(n), N_(p.variables), norm_(norm) {
    const size_t N = size_t(N_);
    for (auto* values : {&x_, &lo_, &hi_, &linear_, &v_}) values->resize(N);
    resting_.assign(N, 0);
    mark_.assign(N, 0);
    for (size_t i = 0; i < N; ++i) {
        const double sign = p.signs[i];
        x_[i] = sign * p.alpha[i];
        lo_[i] = sign > 0 ? 0 : -p.C[i];
        hi_[i] = sign > 0 ? p.C[i] : 0;
        linear_[i] = sign * p.p[i];
        scale_ = std::max(scale_, std::abs(p.p[i]));
        unlimited_ |= p.C[i] == kInf;
    }
    for (double d : diag)
        top_diag_active_ = std::max(top_diag_active_, std::abs(d)), nonfinite_ |= !std::isfinite(d);
    for (double d : norm) top_diag_ = std::max(top_diag_, d * d);
    beta_.assign(size_t(n), 0.0), beta_known_ = f_known_ = f_ = beta_;
}

void QpIterate::update_beta() {
    std::fill(beta_.begin(), beta_.end(), 0.0);
    for (int64_t i = 0; i < N_; ++i) beta_[size_t(p_.rows[i])] += x_[size_t(i)];
}

void QpIterate::spread_f() {
    for (size_t c = 0; c < columns_.size() && c < f_active_.size(); ++c)
        f_[size_t(columns_[c])] = f_active_[c];
}

double QpIterate::value_of_objective() const {
    double total = 0;
    for (int64_t r = 0; r < n_; ++r) total += 0.5 * beta_[size_t(r)] * f_[size_t(r)];
    for (int64_t i = 0; i < N_; ++i) total += linear_[size_t(i)] * x_[size_t(i)];
    return total;
}

void QpIterate::everything_active() {
    if (int64_t(active_.size()) != N_) {
        active_.resize(size_t(N_));
        for (int64_t i = 0; i < N_; ++i) active_[size_t(i)] = i;
        columns_changed_ = true;
    }
    if (int64_t(columns_.size()) != n_) {
        columns_.resize(size_t(n_));
        column_of_row_.resize(size_t(n_));
        for (int64_t r = 0; r < n_; ++r) columns_[size_t(r)] = column_of_row_[size_t(r)] = r;
        columns_changed_ = true;
    }
    f_active_ = f_;
}

void QpIterate::scan() {
    for (int g = 0; g < 2; ++g) top_[g] = -kInf, bottom_[g] = kInf, at_top_[g] = at_bottom_[g] = -1;
    for (int64_t i : active_) {
        const double v = -(f_active_[size_t(column_of_row_[size_t(p_.rows[i])])] + linear_[size_t(i)]);
        v_[size_t(i)] = v;
        const int g = group(i);
        if (x_[size_t(i)] < hi_[size_t(i)] && v > top_[g]) top_[g] = v, at_top_[g] = i;
        if (x_[size_t(i)] > lo_[size_t(i)] && v < bottom_[g]) bottom_[g] = v, at_bottom_[g] = i;
        if (!(v - v == 0)) nonfinite_ = true;
    }
    kkt_ = 0, worst_ = -1;
    for (int g = 0; g < 2; ++g) {
        double here = top_[g] - bottom_[g];
        if (p_.equality == 0) here = std::max(top_[g], -bottom_[g]);
        if (here > kkt_) {
            kkt_ = here;
            worst_ = p_.equality == 0 && !(top_[g] >= -bottom_[g]) ? at_bottom_[g] : at_top_[g];
        }
    }
}

double QpIterate::gap() const {
    double total = 0;
    for (int g = 0; g < (p_.equality == 2 ? 2 : 1); ++g) {
        double free = 0, sum = 0;
        for (int64_t i : active_) {
            const size_t k = size_t(i);
            if (group(i) == g && x_[k] > lo_[k] && x_[k] < hi_[k]) free += 1, sum += v_[k];
        }
        double b = free > 0 ? sum / free : 0.5 * (top_[g] + bottom_[g]);
        if (p_.equality == 0) b = 0;
        if (!(b - b == 0)) continue;  // nothing of this group can move
        for (int64_t i : active_) {
            const size_t k = size_t(i);
            if (group(i) != g) continue;
            if (v_[k] < b && x_[k] > lo_[k]) total += (x_[k] - lo_[k]) * (b - v_[k]);
            if (v_[k] > b && x_[k] < hi_[k]) total += (hi_[k] - x_[k]) * (v_[k] - b);
        }
    }
    return total;
}

bool QpIterate::near_optimum() const {
    if (unlimited_) return true;  // the gap of a hard margin is infinite until the very end
    double size = 0, linear = 0;
    for (int64_t i = 0; i < N_; ++i) {
        size += norm_[size_t(p_.rows[i])] * std::abs(x_[size_t(i)]);
        linear += std::abs(linear_[size_t(i)] * x_[size_t(i)]);
    }
    const double rounding = 64 * std::numeric_limits<double>::epsilon() * (size * size + linear);
    return gap() <= std::max(kNear * std::abs(objective_), rounding);
}

std::vector<int64_t> QpIterate::shrink() {
    std::vector<int64_t> stay;
    for (int64_t i : active_) {
        const size_t k = size_t(i);
        const int g = group(i);
        const double low = p_.equality == 0 ? 0 : bottom_[g], high = p_.equality == 0 ? 0 : top_[g];
        const bool rests = (x_[k] <= lo_[k] && v_[k] < low) || (x_[k] >= hi_[k] && v_[k] > high);
        resting_[k] = rests ? char(std::min(resting_[k] + 1, 100)) : 0;
        if (resting_[k] < kPatience) stay.push_back(i);
    }
    if (double(stay.size()) > 0.9 * double(active_.size())) return {};
    std::vector<char> wanted(size_t(n_), 0);
    for (int64_t i : stay) wanted[size_t(p_.rows[i])] = 1;
    std::vector<int64_t> positions, columns;
    for (size_t c = 0; c < columns_.size(); ++c)
        if (wanted[size_t(columns_[c])]) positions.push_back(int64_t(c)), columns.push_back(columns_[c]);
    active_ = std::move(stay);
    if (double(columns.size()) > kFewer * double(columns_.size())) return {};
    spread_f();
    columns_ = std::move(columns);
    f_active_.resize(columns_.size());
    std::fill(column_of_row_.begin(), column_of_row_.end(), -1);
    for (size_t c = 0; c < columns_.size(); ++c) {
        column_of_row_[size_t(columns_[c])] = int64_t(c);
        f_active_[c] = f_[size_t(columns_[c])];
    }
    fresh_ = false;
    return positions;
}

std::vector<int64_t> QpIterate::choose(int64_t q) {
    ++stamp_;
    std::vector<int64_t> set;
    auto add = [&](int64_t i) {
        if (mark_[size_t(i)] == stamp_ || int64_t(set.size()) >= q) return;
        mark_[size_t(i)] = stamp_;
        set.push_back(i);
    };
    std::vector<std::pair<double, int64_t>> side[2];
    for (int64_t i : active_) {
        const size_t k = size_t(i);
        const int g = group(i);
        const double low = p_.equality == 0 ? 0 : bottom_[g], high = p_.equality == 0 ? 0 : top_[g];
        if (x_[k] < hi_[k] && v_[k] > low) side[0].emplace_back(low - v_[k], i);
        if (x_[k] > lo_[k] && v_[k] < high) side[1].emplace_back(v_[k] - high, i);
    }
    const size_t room = size_t(q) / 2, head = std::max<size_t>(1, size_t(kHead * double(room)));
    for (auto& s : side) {
        const double floor = -0.5 * kkt_;
        if (s.size() > size_t(q))
            s.erase(std::remove_if(s.begin(), s.end(), [&](auto& e) { return e.first > floor; }), s.end());
        const size_t want = std::min(s.size(), head);
        std::nth_element(s.begin(), s.begin() + int64_t(want), s.end());
        std::sort(s.begin(), s.begin() + int64_t(want));
        if (!s.empty()) add(s[0].second);
    }
    const int64_t keep = q / 2;
    for (size_t k = last_set_.size(); k-- > 0 && int64_t(set.size()) < keep;) {
        const int64_t i = last_set_[k];
        const size_t j = size_t(i);
        if (column_of_row_[size_t(p_.rows[i])] >= 0 && x_[j] > lo_[j] && x_[j] < hi_[j]) add(i);
    }
    std::reverse(set.begin(), set.end());
    for (size_t k = 0; k < head; ++k)
        for (auto& s : side)
            if (k < s.size()) add(s[k].second);
    const size_t left = size_t(q - int64_t(set.size()) + 1) / 2;
    for (size_t k = 0; k < left; ++k)
        for (auto& s : side)
            if (s.size() > head) {
                const size_t tail = s.size() - head, stride = std::max<size_t>(1, tail / left);
                add(s[head + k * stride % tail].second);
            }
    return set;
}

std::vector<int64_t> QpIterate::rows_of(const std::vector<int64_t>& set) {
    std::vector<int64_t> rows;
    ++row_stamp_;
    seen_.resize(size_t(n_), 0), row_number_.resize(size_t(n_), 0);
    for (int64_t i : set) {
        const size_t r = size_t(p_.rows[i]);
        if (seen_[r] != row_stamp_) {
            seen_[r] = row_stamp_;
            row_number_[r] = int64_t(rows.size());
            rows.push_back(int64_t(r));
        }
    }
    return rows;
}

double QpIterate::rounding() const {
    double size = 0;  // |K_ij| <= norm_i norm_j
    for (int64_t i = 0; i < N_; ++i) size += norm_[size_t(p_.rows[i])] * std::abs(x_[size_t(i)]);
    return std::numeric_limits<double>::epsilon() * (std::sqrt(top_diag_) * size + scale_);
}

bool QpIterate::rescale() {
    double linear = 0, quad = 0, most = kInf, sums[2] = {0, 0}, size = 0;
    for (int64_t i = 0; i < N_; ++i) {
        const size_t k = size_t(i);
        const int64_t c = column_of_row_[size_t(p_.rows[i])];
        if (x_[k] == 0) continue;
        linear += linear_[k] * x_[k];
        if (c >= 0) quad += x_[k] * f_active_[size_t(c)];
        else return false;
        most = std::min(most, p_.C[i] / std::abs(x_[k]));
        sums[group(i)] += x_[k];
        size += std::abs(x_[k]);
    }
    if (!(linear < 0)) return false;
    if (p_.equality && std::max(std::abs(sums[0]), std::abs(sums[1])) > 1e-9 * size) return false;
    const bool endless = linear * linear * top_diag_ > 1e14 * quad * scale_ * scale_;
    if (most == kInf && (endless || top_diag_ * size > 1e14 * scale_)) return true;
    const double t = std::min(most, quad > 0 ? -linear / quad : 1.0);
    if (!(t > 1.5)) return false;
    for (auto* a : {&x_, &f_active_, &f_, &f_known_, &beta_known_})
        for (double& value : *a) value *= t;
    for (int64_t i = 0; i < N_; ++i)
        x_[size_t(i)] = std::clamp(x_[size_t(i)], lo_[size_t(i)], hi_[size_t(i)]);
    objective_ += linear * (t - 1) + 0.5 * quad * (t * t - 1);
    fresh_ = false;
    return false;
}

void check_qp(const QpProblem& p, int64_t n) {
    auto at = [](const char* name, int64_t i) { return std::string(name) + "[" + std::to_string(i) + "]"; };
    if (p.equality < 0 || p.equality > 2)
        bad("equality must be 0, 1 or 2; got " + std::to_string(p.equality));
    for (int64_t i = 0; i < p.variables; ++i) {
        if (p.rows[i] < 0 || p.rows[i] >= n)
            bad(at("rows", i) + " is " + std::to_string(p.rows[i]) + "; K has " + std::to_string(n) +
                " rows");
        if (p.signs[i] != 1 && p.signs[i] != -1) bad(at("signs", i) + " must be -1 or 1");
        if (!std::isfinite(p.p[i])) bad(at("p", i) + " is not finite");
        if (!(p.C[i] >= 0)) bad(at("C", i) + " must be at least 0 (infinity is allowed)");
        if (!std::isfinite(p.alpha[i]) || p.alpha[i] < 0 || p.alpha[i] > p.C[i])
            bad(at("alpha", i) + " is " + std::to_string(p.alpha[i]) +
                "; it must lie between 0 and C = " + std::to_string(p.C[i]));
    }
}

}  // namespace mercer
