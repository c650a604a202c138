// Newton's steps on the free variables of a small box problem (see qp.hpp for the problem): all of them move
// at once, as far as the first bound; one that reaches a bound rests there, and the resting variable that
// violates its condition most is freed.  Every step lowers the objective.
//
// This is the everyday part of `mercer.solve.active`, which says the same in Python and goes on where a
// system is singular, nearly so, or large: there LAPACK and least squares are worth their price.
#pragma once
#include "qp.hpp"

namespace mercer {

// The most free variables whose system is solved here.
constexpr int64_t kNewtonMost = 400;

enum class NewtonEnd {
    kDone,    // optimal to rounding, or nothing here can lower the objective
    kRounds,  // the rounds allowed were used up
    kHard,    // a system that is not for here; alpha, f and free say where it stands
};

// The state of a descent, in memory of the caller; f is (K beta)[r_i] of every variable.
struct NewtonState {
    double* alpha;
    double* f;
    bool* free;
    int64_t rounds;  // allowed on entry, left on return
};

// Goes on from `state` with at most `limit` free variables.
//   cost    each round k^3/1.5 + k n multiply-adds for k free variables
//   memory  (k + 2)^2 + O(n + N) numbers
//   order   one thread
// Requires K symmetric, n x n; rows within n; alpha in the box.
NewtonEnd newton_descent(const QpProblem& problem, const double* K, int64_t n, int64_t limit,
                         NewtonState& state);

}  // namespace mercer
