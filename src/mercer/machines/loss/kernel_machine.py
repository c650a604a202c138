"""Any convex loss under the representer theorem: one machine (M13)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import ClassVar, Self, TypeAlias

import numpy as np
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.errors import (
    InputError,
    ParameterError,
    warn,
)
from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.loss.losses import LOSSES, Hinge, Logistic, Loss, Quantile, Softmax
from mercer.machines.loss.minimise import Minimiser
from mercer.machines.loss.objective import (
    Objective,
    Problem,
    ProblemSolution,
    SoftmaxObjective,
    name_multipliers,
)
from mercer.machines.loss.penalty import as_penalty
from mercer.machines.loss.quantiles import (
    JointQuantiles,
    check_levels,
    crossing_rows,
)
from mercer.machines.loss.smooth import SmoothLoss, as_loss
from mercer.machines.shared.base import check_weights, duels_of
from mercer.machines.shared.machine import Invalid
from mercer.machines.shared.parameters import (
    CheckedBy,
    Declarations,
    Function,
    Number,
    Special,
    Switch,
    Whole,
)
from mercer.machines.shared.support import SupportMachine
from mercer.machines.shared.targets import as_labels, check_labels, check_numbers, class_weights
from mercer.params import is_real
from mercer.progress import Tell, teller
from mercer.solve.multipliers import Multipliers
from mercer.solve.solution import Certificate, Note, NoteKind, Status, joined_certificate
from mercer.typing import (
    Array,
    Flags,
    Integers,
    Labels,
    Memory,
    Numbers,
    Seed,
    Setting,
    Table,
    Targets,
    Weights,
)

ClassWeights: TypeAlias = Mapping[Hashable, float] | str | None

# what max_iter=None means for smooth losses
NEWTON_STEPS = 200


def _is_classifier(self: KernelMachine) -> bool:
    if self._kind() != "classification":
        raise AttributeError(f"loss={self.loss!r} predicts numbers, so it has no decision function.")
    return True


def _has_probabilities(self: KernelMachine) -> bool:
    if not isinstance(self.loss, Logistic) and self.loss != "logistic":
        raise AttributeError(f"predict_proba needs loss='logistic'; loss={self.loss!r} has no probabilities.")
    return True


class KernelMachine(SupportMachine):
    """Any convex loss, one theorem: the best f is a combination of kernel products with the training rows.

        min  Σ w_i ℓ(y_i, f(x_i) + b) + alpha Ω(‖f‖),      f = Σ β_i k(x_i, ·),      Ω(r) = r²/2 by default

    `loss` says whether it is a classifier or a regressor:

        of numbers    "squared"  "huber"  "quantile"  "poisson"
                      "epsilon_insensitive"  "squared_epsilon_insensitive"
        of labels     "logistic" (several classes: softmax)
                      "hinge"  "squared_hinge" (several classes: one against the rest)

    or is an object with methods `value(y, z)` and `slope(y, z)`, and perhaps `curvature` and `conjugate`
    (`mercer.machines.loss.smooth.SmoothLoss` makes one of functions); it is checked for convexity on samples.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_ : z = K(X, support_vectors_) @ dual_coef_.T +
        intercept_
    classes_, class_weight_ : of a classifier. kernel_, loss_, n_iter_
    equivalent_alpha_ : with a function as penalty, the alpha for which "l2" gives the same f, for each
        problem.
    crossings_ : training rows on which levels fitted one by one would cross (several quantiles only).
    certificate_ : primal, dual and gap; `certificates_` by problem. `mercer.verify` recomputes them.

    >>> from mercer import KernelMachine
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = KernelMachine("RBF(1.0)", "logistic", 0.1).fit(X, y)
    >>> model.predict_proba([[1.5]]).round(6).tolist(), bool(model.certificate_.gap < 1e-12)
    ([[0.5, 0.5]], True)
    """

    invalid: ClassVar[Invalid] = Invalid(
        "The problem is then not convex: the solution is a stationary point, not unique, and the gap is not "
        "a bound.",
        Note(
            "the kernel is not positive semi-definite: a stationary point, not a proven optimum",
            NoteKind.STATIONARY_POINT,
        ),
    )
    _notes: tuple[str, ...]
    parameters: ClassVar[Declarations] = {
        "loss": Special(
            type="str or object",
            about="One of those above.",
            reason="it is made a loss with `epsilon`, `delta` and `quantiles`",
        ),
        "alpha": Number(about="The price of ‖f‖²; C = 1/alpha in the language of support vector machines."),
        "penalty": Special(
            type='"l2" or function of the norm',
            about="Ω(r) = r²/2, or any non-decreasing function Ω of the number r = ‖f‖; of a convex one the "
            "optimum is found and its gap stated. What is no such function, as the lasso, is outside the "
            "theorem and refused with the reason.",
            reason="a function is tried together with `alpha`",
        ),
        "fit_intercept": Switch(about="Learn b, which costs nothing."),
        "quantiles": CheckedBy(
            by=check_levels,
            type="float or a list of them",
            about='Levels of loss="quantile". Several are fitted jointly, so that they do not cross on the '
            "training rows, and sorted in `predict`, so that they cross nowhere.",
        ),
        "epsilon": Number(closed_low=True, about="The tube of the ε-insensitive losses, in units of y."),
        "delta": Number(about="Where Huber's loss turns linear, in units of y."),
        "tol": Number(
            about="The relative duality gap to reach. Smooth losses then take one more Newton step."
        ),
        "max_iter": Whole(
            0,
            none=True,
            about="Steps allowed; None for 200 Newton steps, or for no limit of working sets. What was "
            "reached is kept, and the certificate says so.",
        ),
        "callback": Function(none=True, about="Called with (iteration, primal, gap)."),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        loss: Setting = "squared",
        alpha: float = 1.0,
        *,
        penalty: str | Callable[[float], float] = "l2",
        fit_intercept: bool = True,
        quantiles: Numbers = 0.5,
        epsilon: float = 0.1,
        delta: float = 1.0,
        class_weight: ClassWeights = None,
        tol: float = 1e-8,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        strict: bool = False,
        verbose: int = 0,
        callback: Tell | None = None,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.alpha = alpha
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.quantiles = quantiles
        self.epsilon = epsilon
        self.delta = delta
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.verbose = verbose
        self.callback = callback
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.approximation = approximation

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and targets y; a row of weight 2 counts twice, of weight 0 not at all."""
        self._check_parameters()
        self.loss_ = self._stated_loss()
        A = self.check_rows(X, reset=True)
        given = check_weights(sample_weight, A.shape[0])
        targets, w = self._check_targets(y, given)
        on = self._kernel_on(A, given)
        # Newton's method multiplies by K again and again: it is stored where memory allows, as its explicit
        # features where those are cheaper.
        K: GramOperator = self._in_features(on) or on.gram(finite=False)
        self._notes = self._judged(on, K, np.flatnonzero(given > 0))
        solved, self.equivalent_alpha_ = self._solve_all(K, targets, w)
        beta = np.hstack([each.beta for each in solved])
        used = np.flatnonzero(np.any(beta != 0, axis=1))
        self._keep_support(on, A, used, beta[used].T)
        self._keep_coef(on, K, beta.T)
        self.intercept_ = np.concatenate([each.b for each in solved])
        self.certificates_ = [each.certificate for each in solved]
        self.certificate_ = joined_certificate(self.certificates_)
        self.n_iter_ = max(int(self.certificate_.iterations or 0), 1)
        self._report()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if as_penalty(self.penalty, float(self.alpha)) is not None and len(self._levels) > 1:
            raise ParameterError(
                "several quantiles are fitted jointly with penalty='l2'. Fit one level at a time with "
                "another."
            )
        if self.class_weight is not None and self._kind() != "classification":
            raise ParameterError(
                f"class_weight is for losses of classification; loss={self.loss!r} has no classes. "
                "Use sample_weight."
            )

    def _kind(self) -> str:
        """ "classification" or "regression", before `fit` too; what cannot be told counts as regression."""
        if isinstance(self.loss, str):
            return LOSSES[self.loss].kind if self.loss in LOSSES else "regression"
        return getattr(self.loss, "kind", "regression")

    @property
    def _levels(self) -> tuple[float, ...]:
        """The levels of the quantiles; none with another loss."""
        if isinstance(self.loss, str) and self.loss == "quantile":
            return check_levels(self.quantiles)
        return ()

    def _stated_loss(self) -> Loss:
        """The loss that `loss=` stands for, with its parameters."""
        level = self._levels[0] if self._levels else 0.5
        return as_loss(self.loss, delta=self.delta, epsilon=self.epsilon, level=level)

    def _check_targets(self, y: Targets, w: Array) -> tuple[Labels, Array]:
        """Codes of labels, or numbers; and the weights, with those of the classes."""
        if self._kind() == "classification":
            codes = self._check_classes(y, w)
            w = w * self.class_weight_[codes]
            if (np.bincount(codes, w, minlength=len(self.classes_)) > 0).sum() < 2:
                raise InputError(
                    "all rows with positive weights belong to the same class, and a classifier needs at "
                    "least two. Give rows of another class a positive weight."
                )
            if isinstance(self.loss_, SmoothLoss):
                self.loss_.check(np.array([-1.0, 1.0]))
            return codes, w
        targets = check_numbers(y, len(w), type(self).__name__)
        self.loss_.check_targets(targets, w, bool(self.fit_intercept))
        if isinstance(self.loss_, SmoothLoss):
            self.loss_.check(targets[w > 0])
        return targets, w

    def _check_classes(self, y: Targets, w: Array) -> Integers:
        """The codes of the labels; the classes and their weights are kept."""
        self.classes_, codes = check_labels(y, len(w), type(self).__name__)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, w)
        return codes

    def _problems(self, y: Labels, w: Array) -> Sequence[Problem]:
        if self._kind() == "regression":
            if self._levels:
                return [Objective(Quantile(level), y, w) for level in self._levels]
            return [Objective(self.loss_, y, w)]
        k = len(self.classes_)
        if k == 2:
            return [Objective(self.loss_, np.where(y == 1, 1.0, -1.0), w)]
        if isinstance(self.loss_, Logistic):
            return [SoftmaxObjective(Softmax(), y.astype(np.intp), w, k)]
        return [Objective(self.loss_, np.where(y == c, 1.0, -1.0), w) for c in range(k)]

    def _solve_all(
        self, K: GramOperator, targets: Labels, w: Array
    ) -> tuple[list[ProblemSolution], list[float]]:
        """All problems solved, and for a penalty other than "l2" the price of ½‖f‖² in each."""
        minimiser = self._minimiser()
        prices: list[float] = []
        solved: list[ProblemSolution] = []
        for problem in self._problems(targets, w):
            found, price = minimiser.solve(K, problem)
            solved.append(found)
            prices.append(price)
        if len(self._levels) > 1:
            z = np.hstack([np.asarray(K @ each.beta) + each.b for each in solved])
            crossing = crossing_rows(z[w > 0])
            self.crossings_ = int(crossing.sum())
            joint = JointQuantiles(targets, w, self._levels, float(self.alpha))
            solved = minimiser.uncross(K, joint, crossing, solved)
        if minimiser.penalty is None:
            return solved, []
        return solved, prices

    def _minimiser(self) -> Minimiser:
        alpha = float(self.alpha)
        return Minimiser(
            alpha=alpha,
            penalty=as_penalty(self.penalty, alpha),
            intercept=bool(self.fit_intercept),
            tol=float(self.tol),
            max_iter=None if self.max_iter is None else int(self.max_iter),
            memory=self.memory,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            progress=self._progress(),
            notes=self._notes,
        )

    def _progress(self) -> Tell | None:
        def words(iteration: int, primal: float, gap: float) -> str:
            return f"iteration {iteration}, objective {primal:.9g}, gap {gap:.3g}"

        return teller(self.verbose, words, self.callback)

    def _report(self) -> None:
        c = self.certificate_
        advice = (
            "What is left is rounding; more iterations do not help. Scale the columns of X, or raise alpha."
        )
        if c.status == Status.LIMIT:
            advice = "Raise max_iter or max_seconds, scale the columns of X, or raise alpha."
        if not c.status.as_asked:
            warn(
                f"stopped before the relative gap was tol={self.tol:g} ({c}). {advice}",
                ConvergenceWarning,
            )

    # ── predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def predict(self, X: Table) -> Array:
        """Labels of a classifier; else numbers in units of y: means, rates, a column for each level."""
        z = self._values(X)
        if self._kind() == "classification":
            places = (z[:, 0] > 0).astype(np.intp) if z.shape[1] == 1 else z.argmax(axis=1)
            return np.asarray(self.classes_[places])
        if not self._levels:
            return self.loss_.predict(z[:, 0])
        if is_real(self.quantiles):
            return z[:, 0]
        return np.sort(z, axis=1)

    @available_if(_is_classifier)
    def decision_function(self, X: Table) -> Array:
        """Two classes: f + b, positive for `classes_[1]`. More: a column for each class, the largest wins."""
        z = self._values(X)
        return z[:, 0] if z.shape[1] == 1 else z

    @available_if(_has_probabilities)
    def predict_proba(self, X: Table) -> Array:
        """Probabilities, n × classes, of the logistic model."""
        z = self.decision_function(X)
        if z.ndim == 1:
            return np.column_stack([expit(-z), expit(z)])
        return np.asarray(softmax(z, axis=1))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Table) -> Array:
        """Their logarithms, without rounding small ones to 0."""
        z = np.asarray(self.decision_function(X))
        if z.ndim == 1:
            z = np.column_stack([-z, np.zeros_like(z)])
        return z - np.logaddexp.reduce(z, axis=1, keepdims=True)

    def rearranged(self, X: Table) -> Flags:
        """Which rows of X had levels that crossed before `predict` sorted them."""
        return crossing_rows(self._values(X))

    def score(self, X: Table, y: Targets, sample_weight: Weights = None) -> float:
        """Accuracy of labels; R² of numbers; for "poisson" and "quantile" how much better than a constant.

        That is 1 - Σ wℓ(y, prediction) / Σ wℓ(y, best constant), the mean over levels: the D² of
        scikit-learn.
        """
        from sklearn import metrics

        found = self.predict(X)
        if self._kind() == "classification":
            return float(metrics.accuracy_score(y, found, sample_weight=sample_weight))
        if self.loss == "poisson":
            return float(metrics.d2_tweedie_score(y, found, power=1, sample_weight=sample_weight))
        if self._levels:
            columns = found.reshape(len(found), -1).T
            each = [
                metrics.d2_pinball_score(y, column, alpha=level, sample_weight=sample_weight)
                for column, level in zip(columns, self._levels, strict=True)
            ]
            return float(np.mean(each))
        return float(metrics.r2_score(y, found, sample_weight=sample_weight))

    # ── theory ──────────────────────────────────────────────────────────────────────────────────────────────

    def named_rows(self) -> dict[str, Integers]:
        if len(self.support_) == self.n_rows_fit_:
            return {}
        return {"support vectors": self.support_}

    def _function_facts(self) -> dict[str, object]:
        if self._kind() == "regression":
            return {}
        hinge = isinstance(self.loss_, Hinge)
        return {"classes": self.classes_, "duels": duels_of(self.classes_), "canonical": hinge}

    def _targets_again(self, y: Targets, w: Array) -> tuple[Labels, Array]:
        if self._kind() == "regression":
            return check_numbers(y, len(w), type(self).__name__), w
        labels = as_labels(y, len(w), type(self).__name__)
        codes = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        if not np.array_equal(self.classes_[codes], labels):
            raise InputError(f"y has labels other than those of fit: {self.classes_.tolist()}.")
        return codes, w * self.class_weight_[codes]

    def named_multipliers(self, X: Table, y: Targets, sample_weight: Weights) -> list[Multipliers]:
        A, targets, w = self.check_again(X, y, sample_weight)
        if len(self._levels) > 1 and len(self.certificates_) == 1:
            raise ParameterError(
                "several quantiles were fitted jointly, with constraints between the levels. Fit one level "
                "to see its multipliers."
            )
        beta = self.coefficients()
        K = self.again_on(A).gram()
        f = np.asarray(K @ beta)
        out: list[Multipliers] = []
        for problem, price in zip(self._problems(targets, w), self._prices(), strict=True):
            here = slice(len(out), len(out) + problem.outputs)
            b = self.intercept_[here]
            out += name_multipliers(problem, price, beta[:, here], f[:, here], b, bool(self.fit_intercept), K)
        return out

    def coefficients(self) -> Array:
        """β of all rows of fit, n × functions."""
        beta = np.zeros((self.n_rows_fit_, len(self.intercept_)))
        beta[self.support_] = self.dual_coef_.T
        return beta

    def _prices(self) -> list[float]:
        """The weight of ½‖f‖² in each problem."""
        if self.penalty == "l2":
            return [float(self.alpha)] * len(self.certificates_)
        return self.equivalent_alpha_

    def recertify(self, K: GramOperator, y: Labels, w: Array) -> Iterator[Certificate]:
        """Each certificate again, from the coefficients and fresh kernel products: for `mercer.verify`."""
        check_is_fitted(self, "dual_coef_")
        problems: Sequence[Problem | JointQuantiles] = self._problems(y, w)
        if len(self._levels) > 1 and len(self.certificates_) == 1:
            problems = [JointQuantiles(y, w, self._levels, float(self.alpha))]
        return self._minimiser().recertify(
            K, problems, self._prices(), self.certificates_, self.coefficients(), self.intercept_
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self._kind() == "classification":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.positive_only = isinstance(self.loss, str) and self.loss == "poisson"
        return tags
