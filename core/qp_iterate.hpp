// The iterate of the working-set solver: the variables, f, the violation, and which variables to work on.
// Nothing here asks for a row of K; qp.hpp states the problem and the notation.
#pragma once
#include <limits>

#include "qp.hpp"

namespace mercer {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Invariants: lo <= x <= hi and the sums of the equality constraint hold, up to rounding, at every moment;
// f_known_ = K beta_known_ in float64; f_active_ is f over columns_ (exactly so if fresh_).
class QpIterate {
  protected:
    QpIterate(const QpProblem& p, int64_t n, const std::vector<double>& diag,
              const std::vector<double>& norm);

    int group(int64_t i) const { return p_.equality == 2 && p_.signs[i] < 0; }
    void update_beta();
    // The working copy of f, as far as it is known, back into f_.
    void spread_f();
    double value_of_objective() const;
    void everything_active();
    // v of the active variables, the extremes, the violation.
    void scan();
    // sum (x - lo) max(0, b - v) + (hi - x) max(0, v - b): the duality gap for the multiplier b that the
    // machines use, the mean of v over the free variables, or else the middle of what the others allow.
    double gap() const;
    // Whether the gap is a small part of the objective, or no more than the rounding of the sums that it is
    // made of.  A small violation alone does not say so: multiplied with a large C, or beside a tiny
    // objective, it may be everything.
    bool near_optimum() const;
    // Variables at a bound that no violating pair could move, twice in a row, rest until the end.  If columns
    // rest too: the positions of those that stay.
    std::vector<int64_t> shrink();
    // The free variables of the last set (up to half), the worst violators of both sides in turn, and others
    // spread evenly over the violators of the outer half: the worst alone tend to be neighbours that say the
    // same thing.
    std::vector<int64_t> choose(int64_t q);
    // The different rows of some variables; row_number_[r] is the number of row r among them.
    std::vector<int64_t> rows_of(const std::vector<int64_t>& set);
    // No float64 evaluation of f can tell a smaller violation from rounding.
    double rounding() const;
    // With C = inf: the best multiple of the whole of x, and whether the problem has no bottom.  Along x the
    // objective is t L + t^2 q / 2, so its bottom is at most -L^2 / 2q, however long x is.
    bool rescale();

    const QpProblem& p_;
    const int64_t n_, N_;
    const std::vector<double>& norm_;  // sqrt |K_ii|
    // The largest |p|, |K_ii|, and |K_ii| of the rows in use.
    double scale_ = 0, top_diag_ = 0, top_diag_active_ = 0;
    double objective_ = 0;
    bool unlimited_ = false, nonfinite_ = false, fresh_ = false, columns_changed_ = true;
    std::vector<double> x_, lo_, hi_, linear_, v_;         // per variable
    std::vector<double> beta_, beta_known_, f_, f_known_;  // per row
    // Variables; rows; of a row its position among the columns, or -1.
    std::vector<int64_t> active_, columns_, column_of_row_;
    std::vector<double> f_active_;                // f over columns_: the working copy
    std::vector<int64_t> last_set_, row_number_;  // the last working set; numbers given by rows_of
    // The extremes of v over what may rise and what may fall, for each group.
    double top_[2], bottom_[2], kkt_ = 0;
    int64_t at_top_[2], at_bottom_[2], worst_ = -1;

  private:
    std::vector<char> resting_;
    std::vector<int64_t> mark_, seen_;
    int64_t stamp_ = 0, row_stamp_ = 0;
};

}  // namespace mercer
