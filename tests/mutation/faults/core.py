"""Faults in the C++ core; each is compiled."""

from __future__ import annotations

from mutation.fault import Fault

CORE = "core/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "squared distances of a tile's padding are not done again where they cancelled",
        CORE + "primitives.hpp",
        "for (int64_t j = j0; j < j0 + W; ++j) {\n                if (!bad[j - j0]) continue;",
        "for (int64_t j = j0; j < least(j0 + W, tile.cols); ++j) {\n                if (!bad[j - j0]) continue;",
        "tests/laws/test_gradients.py tests/core",
    ),
    Fault(
        "the slope of a fractional power is infinite at zero",
        CORE + "reverse.hpp",
        "if (singular) slope = ((x == T(0)) | (vabs(slope) == infinity)) ? V{} : slope;",
        "",
        "tests/laws/test_gradients.py tests/core",
    ),
    Fault(
        "the slope of the logistic function forgets its other half",
        CORE + "reverse.hpp",
        "return a * v * (T(1) - v); });",
        "return a * v; });",
        "tests/laws/test_gradients.py tests/core",
    ),
    Fault(
        "the slope of a square root at zero is not a number",
        CORE + "reverse.hpp",
        "return v == T(0) ? V{} : T(0.5) * a / v; });",
        "return T(0.5) * a / v; });",
        "tests/laws/test_gradients.py tests/core",
    ),
)
