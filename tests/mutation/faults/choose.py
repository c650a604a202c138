"""Faults in the choice of kernels."""

from __future__ import annotations

from mutation.fault import Fault

CHOOSE = "src/mercer/choose/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "the gradient of leave-one-out forgets the number of rows",
        CHOOSE + "criteria.py",
        "-K.contract(W=W) / size, -noise",
        "-K.contract(W=W), -noise",
        "tests/choose",
    ),
    Fault(
        "the search keeps its last trial instead of its best",
        CHOOSE + "search.py",
        "(self.best is None or trial.score > self.best.score)",
        "True",
        "tests/choose",
    ),
    Fault(
        "trials by evidence return the end of the search instead of its best point",
        CHOOSE + "search.py",
        "        if found.value > self.best_score:\n",
        "        if True:\n",
        "tests/choose",
    ),
    Fault(
        "the box of a lengthscale is too narrow",
        CHOOSE + "search.py",
        "            high[j] = max(high[j], np.log(2 * known.widest))\n",
        "            high[j] = min(high[j], np.log(2 * known.widest))\n",
        "tests/choose/test_choose.py",
    ),
    Fault(
        "duplicates pull the median to zero",
        CHOOSE + "lengthscales.py",
        "    A = np.unique(np.asarray(dense(A), dtype=np.float64), axis=0)\n",
        "    A = np.asarray(dense(A), dtype=np.float64)\n",
        "tests/choose/test_choose.py -k scales",
    ),
    Fault(
        "evidence and its slope in the noise differ by the noise",
        CHOOSE + "criteria.py",
        "noise * found.noise)",
        "found.noise)",
        "tests/choose/test_choose.py -k gradients",
    ),
)
