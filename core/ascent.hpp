// Coordinate ascent for the quadratic programs of large margins where K = F F' with explicit features F.
//
// The problem is that of qp.hpp.  With x_i = s_i a_i in [lo_i, hi_i] and w = sum_i x_i F[r_i], the entry f_i
// of K beta is the product F[r_i] w: one variable is moved to its optimum for the price of reading its row
// twice, and no entry of K is computed.  Sums that must be kept are kept by multipliers b (one for each
// group) and a quadratic term (the augmented Lagrangian): the term acts as one more feature, b moves after
// each sweep, and what is left of a sum is put right, exactly, before anything is claimed.
#pragma once
#include "ascent_sweep.hpp"
#include "qp.hpp"

namespace mercer {

struct AscentOptions : QpOptions {
    int64_t max_numbers =
        -1;  // numbers of F that may be read before "slow" is the answer; negative: no limit
};

// As solve_qps, with these statuses more: "slow" where max_numbers were read, which is no fault of the start.
// Steps are moves of one variable, `outer` counts sweeps and looks at everything, `kernel_rows` is 0.
//   memory  the columns of F and O(n + N) for each problem at work
//   order   one thread for each problem: the same bits for any number of threads
template <class T>
std::vector<QpResult> ascend(const QpProblems& problems, const AscentOptions& options,
                             const FeatureRows<T>& rows);

}  // namespace mercer
