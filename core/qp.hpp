// One solver for the quadratic programs of large margins.
//
//     min  1/2 a'Qa + p'a,   0 <= a_i <= C_i,   Q_ij = s_i s_j K[r_i, r_j],   s_i = -1 or +1
//
//   equality 0   nothing more (no bias)
//   equality 1   sum s_i a_i keeps its initial value            (SVC, SVR, one-class)
//   equality 2   sum a_i is kept over s = +1 and over s = -1    (the nu forms)
//
// Signs disappear once the variables are x_i = s_i a_i in [lo_i, hi_i] (= [0, C_i] or [-C_i, 0]): with
// beta = sum_i x_i e_{r_i} and f = K beta, the steepest descent direction is v_i = -(f[r_i] + s_i p_i), the
// same formula for every problem, and the constraints keep plain sums of x.  A point is optimal iff no
// variable that may rise (x < hi) has a larger v than one that may fall (x > lo); the violation is
//     kkt = max{v_i : x_i < hi_i} - min{v_j : x_j > lo_j}       (LIBSVM's m - M; per group in equality 2;
//                                                                 largest |v| of a free move in equality 0)
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "prepare.hpp"
#include "qp_kernels.hpp"
#include "verbs.hpp"

namespace mercer {

struct QpProblem {
    int64_t variables = 0;
    const int64_t* rows = nullptr;
    const int8_t* signs = nullptr;
    const double *p = nullptr, *C = nullptr;
    double* alpha = nullptr;  // start on entry, answer on return; always feasible
    int equality = 1;
};

struct QpOptions {
    double tol = 1e-3;
    double gap_tol = -1;      // relative duality gap that also suffices; negative: not asked
    int64_t max_iter = -1;    // steps of two variables; negative: a generous bound
    double max_seconds = -1;  // negative: none
    int64_t cache_bytes = int64_t(1) << 28;
    int sharing = 1;  // problems at work that share these bytes
    int threads = 1;
    Poll poll;  // true: stop and keep what there is
    // Called with (steps, kkt, objective) now and then; true: stop.
    std::function<bool(int64_t, double, double)> report;
};

struct QpResult {
    std::vector<double> f;  // (K beta)[r_i] of every variable, float64
    double kkt = 0, gap = 0, objective = 0, seconds = 0;
    int64_t worst = -1;  // a variable of the most violating pair
    int64_t iterations = 0, outer = 0, kernel_rows = 0;
    const char* status = "converged";
};

// Rows of K, as the solver asks for them.
template <class T> class RowSource {
  public:
    virtual ~RowSource() = default;
    int64_t n = 0;
    std::vector<double> diag;  // of the matrix that rows() and square() give
    std::vector<double> norm;  // sqrt |K_ii|, as apply() knows K
    bool exact = false;        // rows() tells K as apply() knows it
    bool stored = false;       // a row is a copy, so that there is no reason to ask for many at once
    bool cheap = false;        // a row costs less than the first touch of the memory that would keep it
    // From now on rows() gives these columns only, in this order.
    virtual void focus(const std::vector<int64_t>& columns) = 0;
    // From now on rows() and square() may give k(x, z) - k(x, c) - k(c, z) + k(c, c) for some c, where that
    // is smaller: the same products seen from another origin.  With sum(x) = 0 this adds one constant to all
    // of f, and nothing else.
    virtual void recentre() {}
    // out[k][c] = K[which[k], columns[c]].
    virtual void rows(const std::vector<int64_t>& which, T* const* out, int threads, const Poll&) = 0;
    // out[k * |which| + l] = K[which[k], which[l]].
    virtual void square(const std::vector<int64_t>& which, T* out, int threads, const Poll&) = 0;
    // f += K[:, which] d over all n rows, in float64.
    virtual void apply(const std::vector<int64_t>& which, const std::vector<double>& d, double* f,
                       int threads, const Poll&) = 0;
};

// Some rows (increasing) of K in memory, n x n, symmetric, and the same columns; and K as a program on data.
// T is the precision of the rows; apply() is float64.
template <class T, class S>
std::unique_ptr<RowSource<T>> dense_rows(const S* K, int64_t n, const std::vector<int64_t>& which);
template <class T, class S>
std::unique_ptr<RowSource<T>> tile_rows(const Program& program, const Inputs<S>& data,
                                        const std::vector<int64_t>& which, int threads, const Poll&);
// K of a program as a whole, n x n in float32; its diagonal with and without noise, in float64.
struct WholeGram {
    Buffer<float> entries;
    std::vector<double> diag, plain;
};
template <class S>
void compute_whole(const Program& program, const Inputs<S>& data, WholeGram& out, int threads, const Poll&);
// Rows from there; apply() is that of the program, in float64.
template <class S>
std::unique_ptr<RowSource<float>> kept_rows(const WholeGram& K, const Program& program, const Inputs<S>& data,
                                            const std::vector<int64_t>& which);

// Solves every problem from its problem.alpha; rows of K that a problem does not name are not touched for
// it.  Several problems are solved side by side, unless they report.  Seconds and interrupts count for all of
// them together.  Throws std::invalid_argument where a problem makes no sense.
//   memory  cache_bytes of rows in all, and for each problem at work a q x q block (q <= 1536), O(n + N) and,
//           of a program, a few copies of the observations that it names; with `whole` also K, once, in
//           float32
//   order   the same bits for any number of threads
void check_qp(const QpProblem& problem, int64_t n);
using QpProblems = std::vector<QpProblem>;
template <class S>
std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const S* K, int64_t n);
template <class S>
std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const Program&, const Inputs<S>&,
                                bool whole = false);

}  // namespace mercer
