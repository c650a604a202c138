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
        CHOOSE + "ledger.py",
        "(self.best is None or self.rank(trial) > self.rank(self.best))",
        "True",
        "tests/choose",
    ),
    Fault(
        "trials by evidence return the end of the search instead of its best point",
        CHOOSE + "ascent.py",
        "        if found.value > self.score:\n",
        "        if True:\n",
        "tests/choose",
    ),
    Fault(
        "the box of a lengthscale is too narrow",
        CHOOSE + "ascent.py",
        "                high[j] = max(high[j], np.log(2 * known.widest) - theta[j])\n",
        "                high[j] = min(high[j], np.log(2 * known.widest) - theta[j])\n",
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
        "noise * found.noise, found.height)",
        "found.noise, found.height)",
        "tests/choose/test_choose.py -k gradients",
    ),
    Fault(
        "a start is ended near another one that is lower",
        CHOOSE + "ascent.py",
        "            if other.note or score > other.score + TRIFLE * self.unit:\n",
        "            if other.note or score < other.score:\n",
        "tests/choose/test_choose.py -k comes_to_where",
    ),
    Fault(
        "a trial that was given up on few folds can be the best",
        CHOOSE + "validation.py",
        "        return bool(lost.min() > 0 and lost.mean() > BEHIND * error)\n",
        "        return bool(lost.max() < 0)\n",
        "tests/choose/test_choose.py -k given_up",
    ),
    Fault(
        "the transformers of a Pipeline are fitted before the folds are cut",
        CHOOSE + "sample.py",
        "            some = _picked(X, part)\n",
        "            some = clone(before).fit_transform(_picked(X, part), t)\n",
        "tests/choose/test_pipelines.py",
    ),
    Fault(
        "the first tube is in units of the noise squared",
        CHOOSE + "machines.py",
        "BEST_TUBE * float(np.sqrt(height * noise))",
        "BEST_TUBE * float(height * noise)",
        "tests/choose/test_choose.py -k tube",
    ),
)
