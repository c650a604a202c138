"""Conformal wrappers in model files: the models inside, and the scores by which they are widened.

Sizes: n rows of fit, r rows of calibration, c classes, d columns.
"""

from __future__ import annotations

from mercer.conformal.classifier import ConformalClassifier
from mercer.conformal.regressor import ConformalRegressor
from mercer.files.machines import Facts
from mercer.files.registry import REGISTRY, MachineForm

WRAPPER: Facts = {
    "n_features_in_": "size[d]",
    "feature_names_in_": "names[d]",
    "n_rows_fit_": "size[n]",
    "estimator_": "machine",
    "estimators_": "machine*",
    "method_": "text",
    "rows_": "wholes[r] < n",
    "learned_": "wholes[learned] < n",
    "fold_": "wholes[r]",
    "scores_": "reals[r]",
    "groups_": "targets[r]",
}
REGISTRY.add_machine(
    MachineForm(
        "ConformalRegressor",
        ConformalRegressor,
        {**WRAPPER, "closed_form_": "flag", "left_out_": "reals[r]", "diagonal_": "floats[r]"},
        ConformalRegressor.check_parameters,
    )
)
REGISTRY.add_machine(
    MachineForm(
        "ConformalClassifier",
        ConformalClassifier,
        {**WRAPPER, "classes_": "labels[c]", "conformity_": "text", "codes_": "wholes[r] < c"},
        ConformalClassifier.check_parameters,
    )
)
