"""`TableRegressor` and `TableClassifier`: everything from a raw table to a judged model, in `fit`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer import clock
from mercer.conformal.bands import split_interval
from mercer.conformal.guarantee import Guarantee
from mercer.conformal.regressor import ConformalRegressor
from mercer.errors import InputError, Interrupted, MercerWarning, ParameterError, TargetError, warn
from mercer.frames import is_frame
from mercer.gram.cluster import active, here
from mercer.kernels import Kernel, as_kernel
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.memory import memory_limit
from mercer.progress import Talk
from mercer.recipe import estimate, features, ladder, tournament
from mercer.recipe.calibration import calibrated, sharpened
from mercer.recipe.estimate import LEVEL, Estimate, Predicted
from mercer.recipe.given import Given, Source, as_target, rows_in
from mercer.recipe.leaks import suspicions
from mercer.scales import IDENTITY, Scale
from mercer.solve.solution import Certificate
from mercer.tables.propose import roles_of
from mercer.tables.roles import Role
from mercer.typing import Array, Labels, Memory, Table, Targets

if TYPE_CHECKING:
    from mercer.files.save import Saved
    from mercer.recipe.explain import Explanation


@dataclass(frozen=True)
class _Chosen:
    """A machine that is not fitted yet, the seconds left for it, and how it was chosen."""

    rung: ladder.Rung
    seconds: float | None
    steps: list[str] = field(default_factory=list)
    places: list[tournament.Place] = field(default_factory=list)
    interrupted: bool = False


class TableMachine(BaseEstimator):
    """What both share: kernel by evidence, machine by size, error estimated, all of it said in words.

    Parameters
    ----------
    kernel : Kernel, str or None
        The kernel to tune and use; None lets kernels proposed from the columns compete by their evidence.
    machine : "auto", "gp", "landmarks" or "features"
        An exact Gaussian process, a machine on landmarks, or what memory and time allow; or ridge whose
        kernel learns its features (`FeatureMachineRegressor`, `FeatureMachineClassifier`).
    leave_out : names of columns that are not used.
    max_seconds : seconds for everything; None takes what is usually enough.
    memory : bytes that large matrices may take, as in "2GiB".
    random_state : seed of the rows drawn and of the landmarks.
    verbose : 0 says nothing; 1 says on standard error what is done, if it takes longer than a second.

    Attributes
    ----------
    machine_ : the fitted machine. kernel_ : its kernel.
    estimate_ : `Estimate` of the error on rows not seen.
    steps_ : what was done and why, a sentence each.
    sharpness_ : the power of the machine's probabilities that rows not seen ask for (classes).
    scale_ : the `Scale` of the target on which the machine is fitted; what is predicted is of y itself.
    rounds_ : a `Place` for each kernel of each round: its words, evidence, rows and how its search ended.
    roles_ : what each column was taken for. feature_names_in_ : the columns.
    certificate_ : that of the machine. seconds_ : what the fit took.
    """

    task = ""

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        machine: str = "auto",
        *,
        leave_out: Iterable[str] = (),
        max_seconds: float | None = None,
        memory: Memory = "2GiB",
        random_state: int = 0,
        verbose: int = 1,
    ) -> None:
        self.kernel = kernel
        self.machine = machine
        self.leave_out = leave_out
        self.max_seconds = max_seconds
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    machine_: ladder.Regressor | ladder.Classifier
    estimate_: Estimate
    steps_: list[str]
    rounds_: list[tournament.Place]
    roles_: list[Role]
    seconds_: float
    target_: str
    # a file of an earlier version has none
    scale_: Scale = IDENTITY

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets) -> Self:
        """Find the kernel, fit the machine to all rows, and estimate its error."""
        began = time.monotonic()
        self.check_parameters()
        given = Given.of(X)
        values, known = as_target(y, len(given))
        steps: list[str] = []
        if len(known) < len(given):
            steps.append(f"{len(given) - len(known)} rows have no target and were left out.")
            given = Given(given.rows(known), given.names)
        target = self._target(values)
        talk = Talk(self.verbose)
        roles = () if given.names is None else roles_of(given.table, leave_out=self._left_out(given))
        warned = suspicions(given, [role for role in roles if role.kind != "left out"], target, self.task)
        for text in warned:
            steps.append(text)
            warn(text, MercerWarning)
        chosen = self._chosen(given, roles, target, began, talk)
        steps += [*chosen.steps, chosen.rung.words]
        talk(chosen.rung.words)
        with clock.within(chosen.seconds):
            steps += self._fit_machine(chosen.rung.machine, given, target, talk)
        self.roles_ = list(roles)
        self.n_features_in_ = given.width
        if given.names is not None:
            self.feature_names_in_ = np.array(given.names, dtype=object)
        self.steps_ = steps
        self.rounds_ = chosen.places
        self.n_rows_fit_ = len(given)
        self.seconds_ = time.monotonic() - began
        if chosen.interrupted:
            raise Interrupted(self, "Ctrl-C ended the search for a kernel; the model has the best so far.")
        return self

    def _chosen(
        self, given: Given, roles: tuple[Role, ...], target: Labels, began: float, talk: Talk
    ) -> _Chosen:
        """The machine and its kernel: by evidence and size, or the feature machine that was asked for."""
        if self.machine == "features":
            if self.task == "numbers":
                self.scale_ = IDENTITY
            means = ladder.Means(memory_limit(self.memory), self._left(began), int(self.random_state))
            asked = features.kernels(given, roles, self.kernel)
            rung = features.rung(self.task, asked, roles, len(target), means)
            return _Chosen(rung, means.seconds)
        talk(f"{len(given)} rows: looking for a kernel")
        with here():
            # Kernels compete on some of the rows: that is no work for a cluster.
            starting = self._field(given, roles, talk, self._left(began))
            learned = self._learned(given, roles, target, began, talk)
            outcome = tournament.compete(
                starting.contenders + learned,
                given,
                target,
                task=self.task,
                max_seconds=self._left(began),
                seed=int(self.random_state),
                talk=talk,
            )
        if self.max_seconds is not None or outcome.interrupted:
            outcome = replace(outcome, wanted=starting.wanted + len(learned))
        means = self._means(outcome.winner, given, began)
        rung = self._rung(outcome.winner, target, means)
        steps = outcome.words(self._target_name())
        return _Chosen(rung, means.seconds, steps, outcome.places(), outcome.interrupted)

    def check_parameters(self) -> None:
        """Refuse parameters that cannot be used."""
        ladder.check_machine(self.machine)
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ParameterError(f"max_seconds must be a positive number or None; got {self.max_seconds!r}.")

    def _left_out(self, given: Given) -> tuple[str, ...]:
        if isinstance(self.leave_out, str):
            raise ParameterError(f"leave_out is a list of names; got the text {self.leave_out!r}.")
        return tuple(self.leave_out)

    def _left(self, began: float) -> float | None:
        """What is left of the seconds, and a little where nothing is: there must be some machine."""
        if self.max_seconds is None:
            return None
        return max(self.max_seconds - (time.monotonic() - began), 0.1 * self.max_seconds)

    def _means(self, winner: tournament.Contender, given: Given, began: float) -> ladder.Means:
        """What is left for the machine; the pace of its kernel matters where there are seconds to keep."""
        memory = memory_limit(self.memory)
        seed = int(self.random_state)
        if self.max_seconds is None:
            return ladder.Means(memory, None, seed, on_cluster=active() is not None)
        pace = ladder.pace_of(winner.kernel, given, seed)
        return ladder.Means(memory, self._left(began), seed, pace, active() is not None)

    def _field(
        self, given: Given, roles: tuple[Role, ...], talk: Talk, seconds: float | None
    ) -> tournament.Field:
        if self.kernel is not None:
            return tournament.Field([tournament.own_kernel(as_kernel(self.kernel), given)], 1)
        return tournament.field_of(given, roles, talk, int(self.random_state), seconds)

    def _learned(
        self, given: Given, roles: tuple[Role, ...], y: Labels, began: float, talk: Talk
    ) -> list[tournament.Contender]:
        """Kernels of directions that are learned from some rows; none beside a kernel that was asked for."""
        if self.kernel is not None:
            return []
        seed = int(self.random_state)
        return features.contenders(given, roles, y, self.task, self._left(began), seed, talk)

    def _target_name(self) -> str:
        return str(getattr(self, "target_", "the target"))

    def _target(self, values: Labels) -> Labels:
        raise NotImplementedError

    def _rung(self, winner: tournament.Contender, y: Labels, means: ladder.Means) -> ladder.Rung:
        raise NotImplementedError

    def _fit_machine(
        self, machine: ladder.Regressor | ladder.Classifier, given: Given, y: Labels, talk: Talk
    ) -> list[str]:
        raise NotImplementedError

    # ── what was found ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the machine, with the numbers found."""
        check_is_fitted(self, "machine_")
        return ladder.kernel_of_machine(self.machine_)

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the machine."""
        check_is_fitted(self, "machine_")
        return self.machine_.certificate_

    def _rows(self, X: Source) -> Any:
        """Rows to predict, as the machine reads them: columns by name, or in order where they have none."""
        check_is_fitted(self, "machine_")
        X = rows_in(X, self.n_features_in_)
        given = Given.of(X)
        known = getattr(self, "feature_names_in_", None)
        if not is_frame(X) and given.width != self.n_features_in_:
            raise InputError(f"the model was fitted to {self.n_features_in_} columns; got {given.width}.")
        if known is None:
            return given.table
        if not is_frame(X):
            return given.called([str(name) for name in known]).table
        used = [role.column for role in self.roles_ if role.kind != "left out"]
        lacking = [name for name in used if name not in (given.names or ())]
        if lacking:
            raise InputError(
                f"the table has no column {lacking[0]!r}, which the model uses. It needs {', '.join(used)}."
            )
        return given.table

    def save(self, path: str | os.PathLike[str], *, force: bool = False, compact: bool = False) -> Saved:
        """Write the model to a file of data, from which `mercer.load` has it again."""
        from mercer.files.save import save

        return save(self, path, force=force, compact=compact)

    def explain(self, row: Table) -> Explanation:
        """What the prediction for one row rests on: columns, terms of the kernel, and rows of the fit."""
        from mercer.recipe.explain import explain

        return explain(self, row)

    def report(
        self, path: str | os.PathLike[str] | None = None, *, table: Source | None = None, force: bool = False
    ) -> Path:
        """Write what was done and how good it is, with pictures, as one HTML file; return its path.

        `path` is "report.html" if none is given; a file that exists is replaced only with `force`. `table`
        has rows with the target, for machines that keep none; they are used for the importance of columns.
        """
        from mercer.report.fit import write_report

        return write_report(self, path, table=table, force=force)

    def summary(self) -> str:
        """The steps, the estimate and the certificate, in words."""
        check_is_fitted(self, "machine_")
        lines = [*self.steps_, f"On rows not seen: {self.estimate_}", f"Certificate: {self.certificate_}"]
        return "\n".join(lines)


class TableRegressor(RegressorMixin, TableMachine):
    __doc__ = (TableMachine.__doc__ or "").replace(
        "What both share: kernel by evidence, machine by size, error estimated, all of it said in words.",
        "Numbers from a raw table: kernel by evidence, machine by size, bands, and an estimate of the error.",
    )

    task = "numbers"
    machine_: ladder.Regressor

    def _target(self, values: Labels) -> Labels:
        if values.dtype.kind not in "biuf":
            raise TargetError(f"the target must be numbers; got {values.flat[0]!r}. Use TableClassifier.")
        numbers = values.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise TargetError("the target has an infinite value; correct it or leave the row out.")
        return numbers

    def _rung(self, winner: tournament.Contender, y: Labels, means: ladder.Means) -> ladder.Rung:
        self.scale_ = winner.scale
        return ladder.rung_for_numbers(winner, len(y), means, self.machine)

    def _fit_machine(
        self, machine: ladder.Regressor | ladder.Classifier, given: Given, y: Labels, talk: Talk
    ) -> list[str]:
        assert isinstance(machine, ladder.Regressor)
        scale = self.scale_
        if isinstance(machine, GaussianProcessRegressor):
            self.y_mean_, self.y_scale_ = 0.0, 1.0
            self.machine_ = machine.fit(given.table, scale.forward(y))
            talk("error estimate by leave-one-out")
            self.estimate_ = estimate.by_leaving_one_out(machine, y, scale)
            return []
        seed = int(self.random_state)
        found, self.estimate_ = estimate.by_rows_kept_out(machine, given, y, seed, talk, scale)
        assert isinstance(found.machine, ladder.Regressor)
        self.machine_ = found.machine
        self.y_mean_, self.y_scale_ = found.mean, found.scale
        return estimate.said_of_rows(found, self.estimate_, len(y))

    def predict(self, X: Source, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The mean at rows X; with `return_std` also the standard deviation of a new observation there.

        X may be the path of a table. Both are of the target itself, whatever the scale of the fit.
        """
        if not return_std and self.scale_.is_identity:
            return self.y_mean_ + self.y_scale_ * np.asarray(self.machine_.predict(self._rows(X)))
        said = self.predicted(X)
        return (said.mean, said.std) if return_std else said.mean

    def predicted(self, X: Source) -> Predicted:
        """What is said of new observations at rows X: normal distributions on the scale of the target."""
        rows = self._rows(X)
        if isinstance(self.machine_, GaussianProcessRegressor):
            mean, std = self.machine_.predict(rows, return_std=True, noise=True)
            return Predicted(self.scale_, mean, std)
        mean = self.y_mean_ + self.y_scale_ * np.asarray(self.machine_.predict(rows))
        return Predicted(self.scale_, mean, np.full(len(mean), self.estimate_.numbers.width[0]))

    def predict_interval(
        self, X: Source, level: float = LEVEL, *, conformal: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of a band that is meant to hold a new observation with this probability.

        A Gaussian process has bands of its own; with Falkon the band is as wide everywhere as the errors on
        rows kept out. On another scale than y as it is, they are the ends there, carried back. What share of
        rows fell inside is `estimate_.measures["coverage"]`.

        `conformal` asks rows that were left out instead of the deviation that the model expects: jackknife+
        in closed form of a Gaussian process, counted in its own deviations, else the quantile of the errors
        on rows kept out. What that promises is `guarantee(level)`.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level must be between 0 and 1; got {level!r}.")
        if not conformal:
            return self.predicted(X).interval(level)
        rows = self._rows(X)
        if isinstance(self.machine_, GaussianProcessRegressor):
            around = ConformalRegressor.around(self.machine_, level=level, normalize=True)
            low, high = around.predict_interval(rows)
        else:
            centre = self.y_mean_ + self.y_scale_ * np.asarray(self.machine_.predict(rows))
            low, high = split_interval(centre, 1.0, np.abs(self._errors_kept_out()), level)
        return self._back(low), self._back(high)

    def _errors_kept_out(self) -> Array:
        """The errors of rows kept out, on the scale of the target; unknown where it has no place there."""
        truth = np.asarray(self.estimate_.truth, dtype=np.float64)
        held = self.scale_.holds(truth)
        errors = np.full(len(truth), np.nan)
        errors[held] = self.scale_.forward(truth[held]) - self.estimate_.numbers.centre[held]
        return errors

    def _back(self, ends: Array) -> Array:
        """Ends of intervals from the scale of the target to its own units; infinite ones stay."""
        out = np.array(ends)
        known = np.isfinite(ends)
        out[known] = self.scale_.inverse(ends[known])
        return out

    def guarantee(self, level: float = LEVEL) -> Guarantee:
        """What conformal intervals of this level promise, and under which condition."""
        check_is_fitted(self, "machine_")
        return estimate.promise_of_numbers(self.machine_, self.estimate_, level)


class TableClassifier(ClassifierMixin, TableMachine):
    __doc__ = (TableMachine.__doc__ or "").replace(
        "What both share: kernel by evidence, machine by size, error estimated, all of it said in words.",
        "Classes from a raw table: kernel by evidence, machine by size, probabilities, and their error.",
    )

    task = "classes"
    machine_: ladder.Classifier
    # a file of an earlier version has none
    sharpness_: float = 1.0

    def _target(self, values: Labels) -> Labels:
        if len(np.unique(values)) < 2:
            raise TargetError(f"the target has one class only, {values.flat[0]!s}: nothing to tell apart.")
        return values

    def _rung(self, winner: tournament.Contender, y: Labels, means: ladder.Means) -> ladder.Rung:
        return ladder.rung_for_classes(winner, len(y), len(np.unique(y)), means, self.machine)

    def _fit_machine(
        self, machine: ladder.Regressor | ladder.Classifier, given: Given, y: Labels, talk: Talk
    ) -> list[str]:
        assert isinstance(machine, ladder.Classifier)
        steps: list[str] = []
        if isinstance(machine, GaussianProcessClassifier):
            # cut short it would be no model at all, and what it takes is little: the ladder sees to that
            with clock.ending(math.inf):
                self.machine_ = machine.fit(given.table, y)
            self.estimate_ = estimate.by_folds(machine, given, y, int(self.random_state), talk)
        else:
            found, self.estimate_ = estimate.by_rows_kept_out(machine, given, y, int(self.random_state), talk)
            assert isinstance(found.machine, ladder.Classifier)
            self.machine_ = found.machine
            steps = estimate.said_of_rows(found, self.estimate_, len(y))
        self.classes_ = np.asarray(self.machine_.classes_)
        self.estimate_, self.sharpness_ = calibrated(self.estimate_, self.classes_)
        return steps

    def predict(self, X: Source) -> Labels:
        """The most probable class of each row of X, or of the file X."""
        return np.asarray(self.machine_.predict(self._rows(X)))

    def predict_proba(self, X: Source) -> Array:
        """The probability of each class, in the order of `classes_`, as sharp as rows not seen allow."""
        return sharpened(np.asarray(self.machine_.predict_proba(self._rows(X))), self.sharpness_)

    def predict_set(self, X: Source, level: float = LEVEL) -> list[list[object]]:
        """For each row the classes among which the true one is meant to be with this probability.

        Those whose probability is at least as high as that of the true class was in this share of the rows
        not seen of `estimate_` (a conformal set): one class where the model is sure, several where not.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level must be between 0 and 1; got {level!r}.")
        probabilities = self.predict_proba(X)
        least = estimate.least_probability(self.estimate_, self.classes_, level)
        chosen = probabilities >= least
        # the most probable class is always among them
        chosen[np.arange(len(chosen)), np.argmax(probabilities, axis=1)] = True
        return [self.classes_[row].tolist() for row in chosen]

    def guarantee(self, level: float = LEVEL) -> Guarantee:
        """What sets of this level promise, and under which condition."""
        check_is_fitted(self, "machine_")
        return estimate.promise_of_classes(self.machine_, self.estimate_, level)
