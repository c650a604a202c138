"""The models of `mercer.fit` in files: a machine, what was done, and how good it is."""

from __future__ import annotations

from mercer.files.registry import REGISTRY, Fields, Form, MachineForm
from mercer.recipe.estimate import Estimate, Predicted
from mercer.recipe.estimators import TableClassifier, TableRegressor
from mercer.recipe.tournament import Place
from mercer.scales import Scale
from mercer.tables.roles import Role

KINDS = ("number", "category", "date", "text", "left out")


def _role(fields: Fields) -> Role:
    if fields["kind"] not in KINDS:
        raise ValueError(f"a column is no {fields['kind']!r:.40}")
    return Role(**fields)


REGISTRY.add_form(
    Form(
        "Role",
        Role,
        {
            "column": "text",
            "kind": "text",
            "why": "text",
            "gaps": "count",
            "distinct": "count",
            "format": "text | none",
        },
        make=_role,
    )
)
REGISTRY.add_form(Form("Scale", Scale, {"power": "number", "shift": "number"}))
REGISTRY.add_form(
    Form("Predicted", Predicted, {"scale": "Scale", "centre": "floats[judged]", "width": "floats[judged]"})
)
REGISTRY.add_form(
    Form(
        "Estimate",
        Estimate,
        {
            "how": "text",
            "measures": "measures",
            "nothing_learned": "measures",
            "rows": "wholes[judged]",
            "truth": "targets[judged]",
            "predicted": "targets[judged]",
            "spread": "floats[judged] | floats[judged, c]",
            "said": "Predicted | none",
        },
        own=True,
        later={"said": None},
    )
)
REGISTRY.add_form(
    Form(
        "Place",
        Place,
        {"round": "count", "words": "text", "evidence": "number", "rows": "count", "status": "text"},
    )
)


def _check_sharpness(model: TableClassifier) -> None:
    if not model.sharpness_ > 0:
        raise ValueError(f"probabilities have no power {model.sharpness_!r}")


TABLE = {
    "n_features_in_": "size[d]",
    "feature_names_in_": "names[d]",
    "machine_": "machine",
    "estimate_": "Estimate",
    "steps_": "text*",
    "rounds_": "Place*",
    "roles_": "Role*",
    "seconds_": "number",
    "target_": "text",
    "n_rows_fit_": "size[n]",
}
REGISTRY.add_machine(
    MachineForm(
        "TableRegressor",
        TableRegressor,
        {**TABLE, "y_mean_": "number", "y_scale_": "number", "scale_": "Scale"},
        TableRegressor.check_parameters,
    )
)
REGISTRY.add_machine(
    MachineForm(
        "TableClassifier",
        TableClassifier,
        {**TABLE, "classes_": "labels[c]", "sharpness_": "number"},
        TableClassifier.check_parameters,
        _check_sharpness,
    )
)
