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
            "refitted": "flag",
        },
        own=True,
        later={"said": None, "refitted": False},
    )
)
REGISTRY.add_form(
    Form(
        "Place",
        Place,
        {"round": "count", "words": "text", "evidence": "number", "rows": "count", "status": "text"},
    )
)


def _complete(model: TableRegressor | TableClassifier) -> None:
    """Refuse a model that lacks a part, but for those that files of an earlier version do not have."""
    for name in REGISTRY.machines[type(model).__name__].facts:
        if name != "feature_names_in_" and not hasattr(model, name):
            raise ValueError(f"there is no {name}")
    if isinstance(model, TableClassifier) and not model.sharpness_ > 0:
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
        _complete,
    )
)
REGISTRY.add_machine(
    MachineForm(
        "TableClassifier",
        TableClassifier,
        {**TABLE, "classes_": "labels[c]", "sharpness_": "number"},
        TableClassifier.check_parameters,
        _complete,
    )
)
