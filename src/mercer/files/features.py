"""Feature maps and random features as data.

An explicit map is its kernel and its columns, from which it is made again. A sketch is its numbers. The few
functions that sketches hold are named by what they are made of.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mercer.arrays import Rows
from mercer.files.registry import REGISTRY, Fields, Form
from mercer.kernels.leaves import angles
from mercer.kernels.maps.explicit import FeatureMap
from mercer.machines.landmarks import sketches

# Bytes of one row of an explicit map that a file may ask for.
LARGEST_MAP = 2**30


def _map_fields(phi: FeatureMap) -> Fields:
    names = phi.space.names if phi.space.given else None
    return {
        "kernel": phi.kernel,
        "columns": phi.space.d,
        "names": names,
        "dimension": phi.dimension,
        "memory": phi.memory,
    }


def _made_map(fields: Fields) -> FeatureMap:
    columns = fields["columns"] if fields["names"] is None else list(fields["names"])
    kernel = fields["kernel"]
    if kernel.feature_dimension(columns) != fields["dimension"] or 8 * fields["dimension"] > LARGEST_MAP:
        raise ValueError(f"a map with {fields['dimension']} features")
    found: FeatureMap = kernel.features(columns, memory=LARGEST_MAP)
    return FeatureMap(found.kernel, found.space, found.node, fields["memory"])


SKETCH = {"dimension": "count", "how": "text", "exact": "flag"}


def _sketch(name: str, kind: type, **facts: str) -> Form:
    return Form(name, kind, {**SKETCH, **facts}, own=True, groups=("Sketch",))


def _named_by(what: str, key: str) -> Form:
    """A method of a kernel, such as the map of `k.of(map)`."""

    def take(method: Any) -> Fields:
        return {"kernel": method.__self__}

    def make(fields: Fields) -> Any:
        return getattr(fields["kernel"], key)

    return Form(what, type(None), {"kernel": "kernel"}, own=True, groups=("Function",), take=take, make=make)


def _part_of(what: str, function: Any, **facts: str) -> Form:
    """A function of ours with some arguments given."""

    def take(part: Any) -> Fields:
        return {name: part.keywords[name] for name in facts}

    def make(fields: Fields) -> Any:
        return partial(function, **fields)

    return Form(what, type(None), facts, own=True, groups=("Function",), take=take, make=make)


FORMS = [
    Form(
        "FeatureMap",
        FeatureMap,
        {
            "kernel": "kernel",
            "columns": "count",
            "names": "text* | none",
            "dimension": "count",
            "memory": "count",
        },
        own=True,
        take=_map_fields,
        make=_made_map,
    ),
    _sketch("Explicit", sketches.Explicit, map="FeatureMap"),
    _sketch("Fourier", sketches.Fourier, omega="floats[w, d]", weight="floats[w]"),
    _sketch("OneCosine", sketches.OneCosine, omega="floats[w, d]", shift="floats[w]", size="number"),
    _sketch("TensorSketch", sketches.TensorSketch, tables="matrix*", scale="number", offset="number"),
    _sketch("Maclaurin", sketches.Maclaurin, degrees="wholes[w]", weight="floats[w]", signs="matrix*"),
    _sketch("Layer", sketches.Layer, weights="floats[w, d]", activation="Function"),
    _sketch("Inside", sketches.Inside, inner="Sketch", map="Function"),
    _sketch("Times", sketches.Times, inner="Sketch", factor="number | Function"),
    _sketch("SideBySide", sketches.SideBySide, parts="Sketch*"),
    _sketch("Tensor", sketches.Tensor, parts="Sketch*"),
    _sketch("SketchedProduct", sketches.SketchedProduct, parts="Sketch*", tables="matrix*"),
]
FUNCTIONS = {
    Rows.take: _part_of("columns taken", Rows.take, columns="any"),
    sketches.half_exponential: _part_of("half exponential", sketches.half_exponential, scale="number"),
    angles.unit: _part_of("unit", angles.unit, order="count"),
    "mapped": _named_by("map of kernel", "mapped"),
    "inverse_norms": _named_by("inverse norms of kernel", "inverse_norms"),
}

for _form in FORMS:
    REGISTRY.add_form(_form)
for _key, _form in FUNCTIONS.items():
    REGISTRY.add_form(_form, _key)
