"""ν-classification: a share instead of a price."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import ParameterError, warn
from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.margin.classify import ClassWeight, MarginClassifier
from mercer.machines.margin.problems import ONLY_WORKING_SETS, Solved, fixed_unit
from mercer.machines.margin.svr import filled
from mercer.machines.shared.parameters import TABLE, Declarations
from mercer.progress import Tell
from mercer.solve.box import BoxProblem
from mercer.theory.claims import EXACT
from mercer.typing import Array, Integers, Memory, Seed

# A margin that is more than this is divided by, in whatever units the kernel has.
LEAST_MARGIN = 1e-100
# Of ‖w‖² beside the square of what it could be, Σ|β| √k(x, x): less is called 0 where nothing was divided by.
NO_LENGTH = 1e-12


class NuSVC(MarginClassifier):
    """The large-margin classifier with ν in place of C: at most a share ν of the rows lie inside the margin.

        min ½‖w‖² - ν ρ Σw_i + Σ w_i max(0, ρ - y_i(w·φ(x_i) + b))      then divided by ρ

    The attributes are those of `SVC`. The certificate is of the problem above, before the
    division; ν must not exceed twice the share of the smaller class.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import NuSVC
    >>> model = NuSVC("Linear()", nu=0.5).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> model.predict([[-3.0], [0.5]]).tolist()
    [0, 1]
    """

    parameters: ClassVar[Declarations] = {
        "nu": TABLE["nu"].but(
            about="0 < ν ≤ 1: at most this share of the rows lie inside the margin, at least this share are "
            "support vectors."
        ),
        "solver": ONLY_WORKING_SETS,
    }

    fit_intercept = True

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        nu: float = 0.5,
        *,
        multiclass: str = "ovo",
        class_weight: ClassWeight = None,
        probability: bool = False,
        tol: float = 1e-3,
        gap_tol: float | None = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        strict: bool = False,
        solver: str = "working-set",
        warm_start: bool = False,
        verbose: int = 0,
        callback: Tell | None = None,
        approximation: Approximation | None = None,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.solver = solver
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.approximation = approximation
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _problem(self, rows: Integers, signs: Array, w: Array) -> BoxProblem:
        plus, minus = float(w[signs > 0].sum()), float(w[signs < 0].sum())
        most = 2 * min(plus, minus) / (plus + minus) if plus + minus else 0.0
        if self.nu > most * (1 + 1e-12):
            raise ParameterError(
                f"specified nu is infeasible: nu={self.nu:g} needs that share of both classes as support "
                f"vectors, and the smaller one allows at most nu={most:.6g}."
            )
        start = np.zeros(len(rows))
        for side in (signs > 0, signs < 0):
            start[side] = filled(w[side], 0.5 * self.nu * (plus + minus))
        return BoxProblem(rows, signs, np.zeros(len(rows)), w, equality=2, start=start)

    def _unit(self, K: GramOperator, problems: list[BoxProblem]) -> float:
        return min(fixed_unit(K, q) for q in problems)

    def _meet_failure(self, K: GramOperator, problems: list[BoxProblem], solved: list[Solved]) -> None:
        """A margin of 0: w is 0 too, and what is left to divide by it is rounding. Say so."""
        for duel, q, s in zip(self._duels, problems, solved, strict=True):
            rho = -0.5 * (s.m[0] + s.m[1])
            size = float(s.alpha.sum()) * float(np.abs(K.diag()[q.rows]).max(initial=0.0))
            if rho > max(1e-12 * size, s.certificate.kkt or 0.0):
                continue
            plus, minus = (self.classes_[d].item() if d is not None else "the rest" for d in duel)
            note = f"the margin between classes {plus!r} and {minus!r} is 0 at nu={self.nu:g}"
            self._notes = (*self._notes, note)
            warn(
                f"{note} (ρ = {rho:.2g}, which is rounding): the classes overlap so much that two averages "
                "of this share of their rows coincide, and no direction is better than another. What is "
                "predicted between them means nothing. Lower nu, or use a richer kernel.",
                ConvergenceWarning,
            )

    def _scale(self, problem: BoxProblem, m: tuple[float, float]) -> float:
        rho = -0.5 * (m[0] + m[1])
        return rho if rho > LEAST_MARGIN else 1.0

    def _bias(self, m: tuple[float, float]) -> float:
        return 0.5 * (m[0] - m[1])

    def _scale_of(self, k: int, problem: BoxProblem) -> float:
        total = float(np.abs(self.dual_coef_[k]).sum())
        return float(problem.start.sum()) / total if total else 1.0

    def _multipliers(self, k: int, scale: float, K: GramOperator) -> tuple[float, float]:
        b = float(self.intercept_[k]) * scale
        rho = 0.0 if self._has_no_margin(k, scale, K) else scale
        return b - rho, -b - rho

    def _has_no_margin(self, k: int, scale: float, K: GramOperator) -> bool:
        """Whether ρ was 0, and nothing was divided by it: then the scale is 1, and ‖w‖² = ρ Σα - Σ αξ is 0.

        A ρ that is nothing but rounding was divided by, and there ‖w‖ may be 0 after rounding, too.
        """
        if abs(scale - 1) > EXACT:
            return False
        lengths = np.sqrt(np.abs(K.diag()[self.support_]))
        reach = float(np.abs(self.dual_coef_[k]) @ lengths)
        return bool(self.norms_[k] ** 2 <= NO_LENGTH * reach**2)
