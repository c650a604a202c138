"""Arrays inside JSON: numbers of four bytes in base 64, with their shape. Half as long as digits."""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt

from mercer.typing import Array


def packed(values: npt.ArrayLike) -> dict[str, object]:
    """An array for the page; what is not finite is NaN.

    >>> packed([[1.0, 2.0]])
    {'f32': 'AACAPwAAAEA=', 'shape': [1, 2]}
    """
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(values, dtype="<f4")
    return {"f32": base64.b64encode(found.tobytes()).decode("ascii"), "shape": list(found.shape)}


def unpacked(value: dict[str, object]) -> Array:
    """The way back.

    >>> unpacked(packed([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """
    data = base64.b64decode(str(value["f32"]))
    shape = value["shape"]
    assert isinstance(shape, list)
    return np.frombuffer(data, dtype="<f4").astype(float).reshape(shape)
