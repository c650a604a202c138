"""Whether two models are the same to the bit: every attribute, type by type, and every answer."""

from __future__ import annotations

import inspect
import warnings
from datetime import datetime
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Kernel as PeerKernel

from estimators_under_test import METHODS
from mercer.kernels.base import Kernel

# What is made again when it is asked for: no part of what a model knows.
REMEMBERED = {
    "triangle",
    "feature_rounding",
    "found",
    "_vectors",
    "_taken",
    "_remembered",
    "low",
    "node",
    "growth",
    "met",
    "_differentiable",
    "_read_rows",
    "_remembered_key",
    "_remembered_hash",
}


def same(found: Any, wanted: Any, where: str = "model") -> None:
    """Assert that two values are the same to the bit, with the place where they are not."""
    if isinstance(wanted, datetime):
        # Those of pandas come back as Python's.
        assert isinstance(found, datetime) and found == wanted, where
        return
    assert type(found) is type(wanted), f"{where}: {type(found)} is not {type(wanted)}"
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape, where
        if wanted.dtype == object:
            for i, (a, b) in enumerate(zip(found.ravel(), wanted.ravel(), strict=True)):
                same(a, b, f"{where}[{i}]")
        else:
            assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes(), where
            assert found.flags.f_contiguous == wanted.flags.f_contiguous or not wanted.flags.contiguous, where
    elif sparse.issparse(wanted):
        assert found.shape == wanted.shape, where
        for part in ("data", "indices", "indptr"):
            same(getattr(found, part), getattr(wanted, part), f"{where}.{part}")
    elif isinstance(wanted, float | np.floating):
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes(), f"{where}: {found} {wanted}"
    elif isinstance(wanted, Kernel):
        assert found == wanted and str(found) == str(wanted), where
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), where
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            same(a, b, f"{where}[{i}]")
        same_attributes(found, wanted, where)
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for key in wanted:
            same(found[key], wanted[key], f"{where}[{key!r}]")
    elif isinstance(wanted, np.random.RandomState):
        same(found.get_state(legacy=False), wanted.get_state(legacy=False), where)
    elif isinstance(wanted, np.random.Generator):
        same(found.bit_generator.state, wanted.bit_generator.state, where)
    elif isinstance(wanted, PeerKernel):
        assert repr(found) == repr(wanted) and found == wanted, where
    elif isinstance(wanted, partial):
        assert found.func is wanted.func, where
        same(found.keywords, wanted.keywords, where)
    elif isinstance(wanted, MethodType):
        assert found.__func__ is wanted.__func__, where
        same(found.__self__, wanted.__self__, where)
    elif getattr(wanted, "__dict__", None) is None or isinstance(wanted, type):
        assert found == wanted, f"{where}: {found} {wanted}"
    else:
        same_attributes(found, wanted, where)


def same_attributes(found: Any, wanted: Any, where: str) -> None:
    one = getattr(found, "__dict__", {})
    other = getattr(wanted, "__dict__", {})
    assert one.keys() - REMEMBERED == other.keys() - REMEMBERED, where
    for name in other.keys() - REMEMBERED:
        same(one[name], other[name], f"{where}.{name}")


def answers(model: Any, rows: Any) -> dict[str, np.ndarray]:
    """All that a model says of new rows, with its band if it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = {m: np.asarray(getattr(model, m)(rows)) for m in METHODS if hasattr(model, m)}
        predict = getattr(model, "predict", None)
        if predict is not None and "return_std" in inspect.signature(predict).parameters:
            out["std"] = np.asarray(predict(rows, return_std=True)[1])
    return out


def says_the_same(found: Any, wanted: Any, rows: Any) -> None:
    same(answers(found, rows), answers(wanted, rows), "answers")
