"""What the perceptrons and the Adatron share: two classes, and the rows one by one, in passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InputError, ParameterError
from mercer.gram import GramOperator
from mercer.gram.on_rows import KernelOnRows
from mercer.machines.shared.base import KernelEstimator, duels_of
from mercer.machines.shared.machine import Invalid
from mercer.machines.shared.parameters import (
    Choice,
    Declarations,
    Switch,
    Whole,
    steps_allowed,
)
from mercer.machines.shared.support import SupportMachine
from mercer.machines.shared.targets import as_labels
from mercer.solve.anytime import Anytime
from mercer.solve.multipliers import Multipliers
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Labels, Table, Targets, Weights

if TYPE_CHECKING:
    from sklearn.utils import Tags

Row = Callable[[int], Array]
AVERAGES = ("last", "averaged", "voted")
STATE = (
    *("alpha_", "b_", "_f", "_sum", "_sum_b", "_lives"),
    *("_w", "_b", "_w_sum", "_b_sum"),
    *("_steps", "_made", "_reach", "n_iter_"),
)
"""What a pass changes, in either space."""


class MistakeDriven(ClassifierMixin, KernelEstimator):
    """What the two perceptrons share: two classes as -1 and +1, passes, and the record of mistakes."""

    max_iter: int | None
    average: str
    fit_intercept: bool
    n_iter_: int
    n_mistakes_: int
    _made: list[int]
    _reach: float
    converged_: bool
    mistakes_: Integers
    _notes: tuple[str, ...] = ()

    parameters: ClassVar[Declarations] = {
        "average": Choice(
            AVERAGES,
            about='"last" keeps the last coefficients, "averaged" their average over all steps, "voted" lets '
            "every version that survived vote with its lifetime.",
        ),
        "fit_intercept": Switch(
            about="Learn b; without it the boundary passes through the origin of the feature space."
        ),
        "shuffle": Switch(about="See the rows in a random order (`random_state`) instead of as given."),
        "max_iter": Whole(
            1,
            none=True,
            about="Passes over the data, None for no limit; it stops after the first one without a mistake.",
        ),
    }

    def _signs(self, y: Targets, n: int, classes: Labels | None = None) -> Array:
        y = as_labels(y, n, type(self).__name__)
        self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
        if len(self.classes_) != 2:
            many = "Only binary classification is supported. " if len(self.classes_) > 2 else ""
            raise InputError(
                f"{many}y has {len(self.classes_)} class{'es' if many else ''}, {self.classes_.tolist()}; a "
                "perceptron learns exactly two. For more use sklearn.multiclass.OneVsOneClassifier."
            )
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InputError(
                f"y has labels {unknown.tolist()} that are not in classes {self.classes_.tolist()}."
            )
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def _signs_again(self, y: Targets, n: int) -> Array:
        """Labels of a fitted model as -1 and +1."""
        y = as_labels(y, n, type(self).__name__)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InputError(f"y has labels other than those of fit: {self.classes_.tolist()}.")
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def named_multipliers(self, X: Table, y: Targets, sample_weight: Weights) -> list[Multipliers]:
        raise ParameterError(
            f"{type(self).__name__} minimises nothing: it stops at the first plane that separates. Its "
            "coefficients count mistakes and are no multipliers; there are no slacks and no bound C. Use SVC "
            "or Adatron for those, theory.margins for the distances of this plane."
        )

    def named_rows(self) -> dict[str, Integers]:
        return {"rows with a mistake": np.unique(self.mistakes_)}

    def _mistaken(self, score: float, sign: float, norm: float) -> bool:
        """Whether a score is on the wrong side, or within the rounding of a sum of so many products.

        `norm` is ‖φ(x)‖, and `_reach` the sum of these norms over the mistakes so far, so that norm · reach
        bounds the size of Σ |α_m k(x_m, x)| in either space.
        """
        made = len(self._made)
        rounding = 2 * np.finfo(float).eps * (made + 32) * (norm * self._reach + made)
        return bool(sign * score <= rounding)

    def _passes(self, once: Callable[[], None]) -> tuple[int, Status]:
        """Passes until one has no mistake: the mistakes in the last one, and why it was the last.

        Ctrl-C in the middle of a pass goes back to the end of the one before.
        """
        self.n_iter_ = 0
        self.converged_ = False
        last = 0
        most = steps_allowed(self.max_iter)
        with Anytime[dict[str, object]]() as run:
            while self.n_iter_ < most and run.status == Status.LIMIT:
                before = len(self._made)
                once()
                last = len(self._made) - before
                self.n_iter_ += 1
                run.best = {name: copy(value) for name, value in vars(self).items() if name in STATE}
                if last == 0:
                    run.status = Status.CONVERGED
        if run.interrupted and run.best is not None:
            self.__dict__.update(run.best)
        self.converged_ = run.status == Status.CONVERGED
        return last, run.status

    def _certify(self, start: float, *, last: int, status: Status | None = None) -> None:
        """What the passes came to; `last` is the number of mistakes in the last one."""
        note = f"{self.n_mistakes_} mistakes in all, {last} in the last pass"
        if not self.converged_:
            note += "; the classes may not be separable in the space of this kernel, or need more passes"
        self.certificate_ = Certificate(
            status or (Status.CONVERGED if self.converged_ else Status.LIMIT),
            "perceptron",
            iterations=self.n_iter_,
            seconds=time.perf_counter() - start,
            notes=(*self._notes, note),
        )

    def predict(self, X: Table) -> Labels:
        """The class of the side on which x lies."""
        positive = self.decision_function(X) > 0
        labels: Labels = self.classes_[positive.astype(int)]
        return labels

    def decision_function(self, X: Table) -> Array:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


class Expansion(SupportMachine, MistakeDriven):
    """A decision function Σ β_n k(x_n, x) + b over the support vectors."""

    invalid: ClassVar[Invalid] = Invalid(
        "There is then no space in which a plane separates the classes: no bound holds, and the steps need "
        "not end.",
        "the kernel is not positive semi-definite: no margin, and no bound on the mistakes",
    )
    _notes: tuple[str, ...] = ()

    def _learn_from(self, A: Matrix) -> tuple[KernelOnRows, GramOperator]:
        """The kernel on these rows and its Gram operator; an invalid kernel is announced or refused."""
        on = self._kernel_on(A)
        K = on.gram()
        self._notes = self._judged(on, K)
        return on, K

    def _function_facts(self) -> dict[str, object]:
        return {"classes": self.classes_, "duels": duels_of(self.classes_)}

    def decision_function(self, X: Table) -> Array:
        """Σ β_n k(x_n, x) + b over the support vectors."""
        check_is_fitted(self, "dual_coef_")
        return self._values(X)[:, 0]


def row_of(K: GramOperator) -> Row:
    """How to get a row of K: from where it is stored, or computed for itself."""
    if K.kind in ("dense", "precomputed"):
        return K.dense().__getitem__
    return lambda n: K.block(slice(n, n + 1), slice(None))[0]
