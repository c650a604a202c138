// The sequential heart of the working-set solver, compiled once per instruction set
// (see qp.hpp for the problem).
//
// Plain structures first, shared with the code that is compiled once.
#pragma once
#include <cstdint>

namespace mercer {

// The problem restricted to q variables, K[k] being row k of the q x q matrix they meet each other with:
//   min 1/2 x'Kx - v'x  over the moves x,   lo <= value + x <= hi,   sums of x as `equality` says.
// v_k = -(gradient of variable k), up to a constant, is kept up to date for the q variables; nothing else is.
// Arrays are padded to a multiple of kQpPad: padded entries may neither rise nor fall and are never chosen.
// T is the precision of K, R that of the arrays the passes run over; values and bounds are always float64.
template <class T, class R> struct Inner {
    int equality;      // 0 none, 1 the sum of all is kept, 2 the sums of [0, split) and of [split, q) are
    int64_t q, split;  // split is a multiple of kQpPad, or q for one group
    const T** K;       // null: not asked for yet; K[0] is there from the start
    const T* (*fetch_row)(void* source, int64_t k);
    void* source;
    const R* diag;  // K[k][k]
    R* v;
    R *rise, *fall;  // 0 where the variable may rise (fall), else kQpNever
    double* value;
    const double *lo, *hi;
    double tau;     // curvature used where there is none
    double target;  // stop when the violation is at most this
    int64_t most;   // or after so many steps
    // results
    int64_t steps;
    double violation;  // of the q variables, at the end
    double decrease;   // of the objective
    bool unbounded;    // a step without end: no curvature and no bound
    bool stuck;        // the best step is below rounding
};

constexpr int64_t kQpPad = 32;
constexpr double kQpNever = __builtin_nan("");  // its bits beside those of any number are no number
constexpr double kQpTau = 1e-12;                // LIBSVM's tau, here relative to the largest diagonal entry

template <class T> struct QpKernels {
    void (*inner)(Inner<T, double>& problem);
    void (*fast)(Inner<T, float>& problem);  // where a relative error of 1e-6 in v does no harm
    // f[j] += sum_w d[w] rows[w][j] for j0 <= j < j1, w in order, in float64.
    void (*accumulate)(const T* const* rows, const double* d, int64_t count, int64_t j0, int64_t j1,
                       double* f);
};
struct QpIsa {
    QpKernels<double> f64;
    QpKernels<float> f32;
    bool (*solve)(double* M, double* x, int64_t size);
};

template <class T> const QpKernels<T>& qp_kernels();  // of the instruction set in use

// x = M^-1 x for a small M, size x size by rows, which becomes its triangular factors; rows are exchanged for
// the largest pivot.  False where a pivot is 0 or no number.
//   cost  size^3 / 1.5 multiplications and additions
bool qp_solve_system(double* M, double* x, int64_t size);

}  // namespace mercer
