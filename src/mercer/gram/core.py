"""The one file of this room that calls the compiled core: programs in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.errors import InputError
from mercer.gram.program import Lowered, Pull

instruction_set = _core.instruction_set


def gram(low: Lowered, threads: int, out: np.ndarray | None = None) -> np.ndarray:
    """K, dense, in memory that is given or taken."""
    if out is None:
        out = np.empty((low.n, low.m), dtype=low.dtype)
    _core.gram(*arguments(low), out, threads)
    return out


def apply(low: Lowered, V: np.ndarray, threads: int) -> np.ndarray:
    """K @ V without K."""
    V = np.ascontiguousarray(V, dtype=low.dtype)
    out = np.empty((low.n, V.shape[1]), dtype=low.dtype)
    _core.apply(*arguments(low), V, out, threads)
    return out


def diag(low: Lowered, threads: int) -> np.ndarray:
    """k(x_i, x_i)."""
    out = np.empty(low.n, dtype=low.dtype)
    _core.diag(*arguments(low), out, threads)
    return out


def contract(low: Lowered, threads: int, *, U: Any = None, V: Any = None, W: Any = None) -> np.ndarray:
    """Σ W_ij ∂K_ij/∂p for every parameter p of the kernel, W = UVᵀ or given."""
    return _gradient(low, _contract(low, threads, U, V, W, inputs=False), threads)


def contract_inputs(low: Lowered, threads: int, *, U: Any = None, V: Any = None, W: Any = None) -> tuple:
    """∂(Σ W_ij K_ij)/∂X and /∂Z; in same mode the single gradient with respect to X, and None."""
    if any(sparse.issparse(view.x) for view in low.views):
        raise InputError(
            f"{low.kernel}: the gradient with respect to sparse rows is dense, one number for every column. Pass the "
            "rows as an array, X.toarray(), with the columns that matter."
        )
    return _input_gradient(low, _contract(low, threads, U, V, W, inputs=True), threads)


def arguments(low: Lowered) -> tuple[_core.Program, list, list, list]:
    """Program, views, row vectors and column weights, as every verb of the core takes them."""
    program = getattr(low, "_program", None)
    if program is None:
        code = np.array([(_core.OPCODES[op], a, b) for op, a, b in low.code], dtype=np.int32).reshape(-1, 3)
        program = _core.Program(code, np.array(low.params, dtype=np.float64))
        low._program = program  # type: ignore[attr-defined]
    views = [(_matrix(v.x), None if v.z is None else _matrix(v.z)) for v in low.views]
    rows = [(r.u, r.v) for r in low.rows]
    if not views and not rows:  # constants and noise alone: the core learns n and m from row vectors
        ones = np.ones(low.n, dtype=low.dtype)
        rows = [(ones, None if low.same else np.ones(low.m, dtype=low.dtype))]
    return program, views, rows, low.columns


def _matrix(A: Any) -> Any:
    return (A.data, A.indices, A.indptr, A.shape[1]) if sparse.issparse(A) else A


def _contract(low: Lowered, threads: int, U: Any, V: Any, W: Any, *, inputs: bool) -> Any:
    options: dict[str, Any] = {"inputs": inputs, "threads": threads, "wanted": _wanted(low)}
    if W is not None:
        W = np.ascontiguousarray(W, dtype=low.dtype)
        return _core.contract(*arguments(low), W=W, **options)
    U, V = (np.ascontiguousarray(A, dtype=low.dtype).reshape(len(A), -1) for A in (U, V))
    return _core.contract(*arguments(low), U=U, V=V, **options)


def _wanted(low: Lowered) -> list[bool]:
    """Per view: whether a hyperparameter asks for the gradients of its columns."""
    asked = {link.index[0] for link in low.links if not isinstance(link.index, int)}
    return [k in asked for k in range(len(low.views))]


def _gradient(low: Lowered, found: Any, threads: int) -> np.ndarray:
    out = np.zeros(len(low.kernel.parameters))
    for link in low.links:
        if isinstance(link.index, int):
            value = found["params"][link.index]
        else:
            view, row, column = link.index
            value = found["views"][view][row].sum() if column is None else found["views"][view][row][column]
        out[link.slot] += link.factor * value
    for (u_bar, v_bar), rows in zip(found["rows"], low.rows, strict=False):
        for part, adjoint, norm in _sides(rows, u_bar, v_bar):
            w = np.ascontiguousarray(-0.5 * norm.astype(np.float64) ** 3 * adjoint, dtype=low.dtype)
            inner = _core.contract_diag(
                *arguments(part), w, inputs=False, threads=threads, wanted=_wanted(part)
            )
            out += _gradient(part, inner, threads)
    return out


def _sides(
    rows: Any, u_bar: np.ndarray, v_bar: np.ndarray | None
) -> list[tuple[Lowered, np.ndarray, np.ndarray]]:
    """The diagonal programs behind row vectors, each with its adjoint and its values; none for plain vectors."""
    if rows.inner is None:
        return []
    if rows.inner_z is None:
        return [(rows.inner, u_bar if v_bar is None else u_bar + v_bar, rows.u)]
    assert v_bar is not None
    return [(rows.inner, u_bar, rows.u), (rows.inner_z, v_bar, rows.v)]


def _input_gradient(low: Lowered, found: Any, threads: int) -> tuple[Any, Any]:
    x_total: Any = 0.0
    z_total: Any = 0.0
    for (x_bar, z_bar), view in zip(found["inputs"], low.views, strict=True):
        x_total = x_total + _pulled(low, view.pull, x_bar)
        if z_bar is not None:
            z_total = z_total + _pulled(low, view.pull_z, z_bar)
    for (u_bar, v_bar), rows in zip(found["rows"], low.rows, strict=False):
        if rows.back_x is None and rows.inner is None:
            raise InputError(
                f"{low.kernel}: no input gradient, because a function's derivative is not known."
            )
        if rows.back_x is not None:
            x_total = x_total + rows.back_x(u_bar)
        if rows.back_z is not None and v_bar is not None:
            z_total = z_total + rows.back_z(v_bar)
        for part, adjoint, norm in _sides(rows, u_bar, v_bar):
            w = np.ascontiguousarray(-0.5 * norm.astype(np.float64) ** 3 * adjoint, dtype=low.dtype)
            inner = _core.contract_diag(*arguments(part), w, inputs=True, threads=threads)
            total = _input_gradient(part, inner, threads)[0]
            if part is rows.inner:
                x_total = x_total + total
            else:
                z_total = z_total + total
    return (x_total + z_total, None) if low.same else (x_total, z_total)


def _pulled(low: Lowered, pull: Pull | None, adjoint: np.ndarray) -> np.ndarray:
    if pull is None:
        raise InputError(
            f"{low.kernel}: of(map) has no input gradient, because the map's derivative is not known."
        )
    return pull(np.asarray(adjoint, dtype=np.float64))
