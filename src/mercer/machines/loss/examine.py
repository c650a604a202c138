"""The claims of `KernelMachine`: its gap is that of its coefficients, whatever the loss."""

from __future__ import annotations

import numpy as np

from mercer.machines.loss.kernel_machine import KernelMachine
from mercer.machines.margin.examine import NEARLY, same_shape
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import same_approximation, same_coef, same_feature_coef, same_kernel
from mercer.machines.shared.targets import class_weights
from mercer.solve.solution import Certificate, joined_certificate
from mercer.theory.claims import EXACT, SOLVED, Examination, Reached, at_most
from mercer.typing import Array, Labels, Table, Targets, Weights


@examine.register
def _(model: KernelMachine, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A, targets, w = model.check_again(X, y, sample_weight)
    given = check_weights(sample_weight, A.shape[0])
    same_kernel(exam, model, A, given)
    same_shape(exam, model, A)
    same_approximation(exam, model, A, given)
    same_loss(exam, model)
    if model._kind() == "classification":
        exam.same("classes_", model.classes_, np.unique(np.asarray(y)))
        weights = class_weights(model.class_weight, model.classes_, targets, given)
        exam.same("class_weight_", model.class_weight_, weights)
    K = model.again_on(A).gram()
    beta = model.coefficients()
    same_feature_coef(exam, model, A, beta)
    same_coef(exam, model)
    exam.true(not np.any(beta[w == 0]), "a row without weight has a coefficient")
    many = len(model.certificates_) > 1
    f = np.asarray(K @ beta)
    energy = float(np.abs(beta * f).sum())
    for k, (found, claimed) in enumerate(
        zip(model.recertify(K, targets, w), model.certificates_, strict=True)
    ):
        unit = max(float(np.abs(f + model.intercept_).max(initial=0.0)), 1.0)
        exam.certificate(
            claimed,
            found,
            reached=_small_gap(model, found, targets, w),
            of=f"problem {k}: " if many else "",
            scale=model.alpha * energy,
            unit=unit,
        )
    if not model.fit_intercept:
        exam.same("intercept_ without a bias", model.intercept_, np.zeros(len(model.intercept_)))
    exam.copies("certificate_", model.certificate_, joined_certificate(list(model.certificates_)))


def _small_gap(model: KernelMachine, found: Certificate, targets: Labels, w: Array) -> Reached:
    """A gap of at most `tol` times the objective; none is known where the kernel has negative eigenvalues."""
    if found.gap is None:
        return Reached(None, "there is no duality gap")
    least = 1e-12 * float(w.sum()) * max(float(np.abs(targets).max(initial=0.0)), 1.0)
    goal = float(model.tol) * max(abs(found.primal or 0.0), least)
    return at_most("the gap", found.gap, (1 + NEARLY) * goal + EXACT * abs(found.primal or 0.0))


def same_loss(exam: Examination, model: KernelMachine) -> None:
    """`loss_` is what `loss=` stands for, with the same numbers."""
    asked = model._stated_loss()
    exam.true(type(model.loss_) is type(asked), f"loss_ is {model.loss_!r}, not {asked!r}")
    for name, value in vars(asked).items():
        if isinstance(value, int | float):
            exam.same(f"loss_.{name}", getattr(model.loss_, name), value, within=SOLVED)
