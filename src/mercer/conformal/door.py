"""`mercer.conformal`: a model with intervals or sets of labels that hold as often as they say."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from mercer.conformal.classifier import ConformalClassifier
from mercer.conformal.regressor import ConformalRegressor
from mercer.errors import ParameterError
from mercer.typing import Setting, Table, Targets, Weights


def conformal(
    model: Any,
    X: Table,
    y: Targets,
    method: str = "auto",
    *,
    level: float = 0.9,
    sample_weight: Weights = None,
    groups: object = None,
    **options: Setting,
) -> ConformalRegressor | ConformalClassifier:
    """A model around this one, fitted to X and y, whose intervals or sets of labels keep their level.

    A regressor gets a `ConformalRegressor`, a classifier a `ConformalClassifier`; `options` are theirs. The
    model itself is not changed: a copy of it is fitted, but for `method="prefit"`, which takes it as it is
    and calibrates by X and y. What is promised, and under which condition, is `guarantee_`.

    >>> import mercer
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> ridge = mercer.KernelRidge("Linear()", alpha=1.0)
    >>> model = mercer.conformal(ridge, X, [0.0, 1.1, 1.9, 3.0], level=0.5)
    >>> low, high = model.predict_interval([[1.5]])
    >>> low.round(2), high.round(2)
    (array([1.19]), array([1.56]))
    """
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise ParameterError(
            f"model must be a regressor or a classifier, such as mercer.KernelRidge(); got {model!r}."
        )
    kind = ConformalClassifier if is_classifier(model) else ConformalRegressor
    return kind(model, method=method, level=level, **options).fit(X, y, sample_weight, groups)
