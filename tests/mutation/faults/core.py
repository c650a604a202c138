"""Faults in the C++ core; each is compiled."""

from __future__ import annotations

from mutation.fault import Fault

CORE = "core/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "squared distances of a tile's padding are not done again where they cancelled",
        CORE + "primitives.hpp",
        "for (int64_t j = j0; j < j0 + W; ++j) {\n                if (!bad[j - j0]) continue;",
        "for (int64_t j = j0; j < least(j0 + W, tile.cols); ++j) {\n"
        "                if (!bad[j - j0]) continue;",
        "tests/core/test_contract.py tests/laws/test_gradients.py",
    ),
    Fault(
        "the slope of a fractional power is infinite at zero",
        CORE + "reverse.hpp",
        "if (singular) slope = ((x == T(0)) | (vabs(slope) == infinity)) ? V{} : slope;",
        "",
        "tests/core/test_contract.py tests/laws/test_gradients.py",
    ),
    Fault(
        "the slope of the logistic function forgets its other half",
        CORE + "reverse.hpp",
        "return a * v * (T(1) - v); });",
        "return a * v; });",
        "tests/core/test_contract.py tests/laws/test_gradients.py",
    ),
    Fault(
        "the slope of a square root at zero is not a number",
        CORE + "reverse.hpp",
        "return v == T(0) ? V{} : T(0.5) * a / v; });",
        "return T(0.5) * a / v; });",
        "tests/core/test_contract.py tests/laws/test_gradients.py",
    ),
    Fault(
        "the gap of the core forgets variables that may grow",
        CORE + "qp_iterate.cpp",
        "            if (v_[k] > b && x_[k] < hi_[k]) total += (hi_[k] - x_[k]) * (v_[k] - b);\n",
        "",
        "tests/core/test_qp.py",
    ),
    Fault(
        "a small violation is enough however large the gap",
        CORE + "qp_solver.hpp",
        "        if (near_optimum()) return true;\n        tol_ = 0.1 * kkt_;\n        return false;",
        "        return true;",
        "tests/laws/test_margin_optima.py",
    ),
    Fault(
        "an end at the floor is called converged",
        CORE + "qp_solver.hpp",
        "kkt_ <= options_.tol && near_optimum())",
        "true)",
        "tests/core/test_qp.py tests/laws/test_margin_optima.py",
    ),
    Fault(
        "an interrupt keeps x and forgets f",
        CORE + "qp_solver.hpp",
        "            for (size_t k = 0; k < set.size(); ++k) x_[size_t(set[k])] = before[k];\n"
        "            throw;",
        "            throw;",
        "tests/core/test_qp.py",
    ),
    Fault(
        "a variable that rests at its upper bound is shrunk too early",
        CORE + "qp_iterate.cpp",
        "(x_[k] >= hi_[k] && v_[k] > high)",
        "x_[k] >= hi_[k]",
        "tests/core/test_qp.py",
    ),
    Fault(
        "steps of the float32 run are not counted",
        CORE + "qp.cpp",
        "    second.iterations += first.iterations;\n",
        "",
        "tests/core/test_qp.py",
    ),
    Fault(
        "a diagonal of sparse rows is that of another row",
        CORE + "primitives.hpp",
        "        const int64_t row = tile.j0 + least(j, tile.cols - 1);\n        T total = 0;",
        "        const int64_t row = least(j, tile.cols - 1);\n        T total = 0;",
        "tests/core/test_values.py -k sparse",
    ),
    Fault(
        "the gradient of a period forgets a two",
        CORE + "slopes.hpp",
        "            grad.rate[k] += 2 * weight * hsum(rate[0] + rate[1]);",
        "            grad.rate[k] += weight * hsum(rate[0] + rate[1]);",
        "tests/core/test_contract.py tests/laws/test_gradients.py",
    ),
    Fault(
        "Newton's steps of the core keep a step that raises the objective",
        CORE + "qp_newton.cpp",
        "if (moved && rises(before, after, new_.data(), new_f_.data())) return Next::kDone;",
        "",
        "tests/solve/test_newton_rounds.py tests/laws/test_margin_parts.py",
    ),
    Fault(
        "Newton's steps of the core free no variable that wants to move",
        CORE + "qp_newton.cpp",
        "state_.free[at] = true;\n        return Next::kAnother;",
        "return Next::kDone;",
        "tests/solve/test_newton_rounds.py",
    ),
    Fault(
        "the small system of the core is solved without the largest pivots",
        CORE + "qp_inner.hpp",
        "if (pivot != k) {",
        "if (false) {",
        "tests/solve/test_newton_rounds.py",
    ),
)
