"""The one file of this room that calls the compiled core: programs in, arrays out."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.errors import InputError
from mercer.kernels.programs.program import Lowered, Pull, RowVectors
from mercer.memory import room
from mercer.sparse import Matrix, dense
from mercer.typing import Array, Integers, Setting

instruction_set = _core.instruction_set

# Both sides of a view or of row vectors, the second None where they are the same observations.
Sides: TypeAlias = tuple[Any, Any]
# Program, views, row vectors and column weights; what the core returns of a contraction.
Arguments: TypeAlias = tuple[_core.Program, list[Sides], list[Sides], list[Array]]
Adjoints: TypeAlias = "_core._Gradients"
# Parts of rows end at multiples of this, but for the last.
PART_ROWS = _core.PART


class Parts(NamedTuple):
    """Where parts of the rows end. Pairs of rows of one part are left out, except for those of `kept`."""

    ends: list[int]
    kept: int


def gram(low: Lowered, threads: int, out: Array | None = None) -> tuple[Array, bool]:
    """K, dense, in memory that is given or taken, and whether all of it is finite."""
    if out is None:
        out = room((low.n, low.m), low.dtype)
    finite = _core.gram(*arguments(low), out, threads)
    return out, finite


def waves(A: Matrix, frequencies: Array, weight: Array, out: Array, threads: int) -> None:
    """Write (w cos t | w sin t) for t = A @ frequencies.T into `out`, n by 2m."""
    if sparse.issparse(A):
        phases = np.ascontiguousarray(dense(A @ frequencies.T), dtype=np.float64)
        _core.waves(phases, None, weight, out, threads)
    else:
        rows, frequencies = (np.ascontiguousarray(B, dtype=np.float64) for B in (A, frequencies))
        _core.waves(rows, frequencies, weight, out, threads)


def apply(low: Lowered, V: Array, threads: int, parts: Parts | None = None) -> Array:
    """K @ V without K."""
    V = np.ascontiguousarray(V, dtype=low.dtype)
    out = np.empty((low.n, V.shape[1]), dtype=low.dtype)
    left_out = {} if parts is None else parts._asdict()
    _core.apply(*arguments(low), V, out, threads, **left_out)
    return out


def diag(low: Lowered, threads: int) -> Array:
    """k(x_i, x_i)."""
    out = np.empty(low.n, dtype=low.dtype)
    _core.diag(*arguments(low), out, threads)
    return out


def contract(
    low: Lowered,
    threads: int,
    *,
    U: Array | None = None,
    V: Array | None = None,
    W: Array | None = None,
    parts: Parts | None = None,
) -> Array:
    """Σ W_ij ∂K_ij/∂p for every parameter p of the kernel, W = UVᵀ or given."""
    return _gradient(low, _contract(low, threads, U, V, W, inputs=False, parts=parts), threads)


def contract_inputs(
    low: Lowered, threads: int, *, U: Array | None = None, V: Array | None = None, W: Array | None = None
) -> tuple[Array, Array | None]:
    """∂(Σ W_ij K_ij)/∂X and /∂Z; in same mode the single gradient with respect to X, and None."""
    if any(sparse.issparse(view.x) for view in low.views):
        raise InputError(
            f"{low.kernel}: the gradient with respect to sparse rows is dense, one number for every column. "
            "Pass the "
            "rows as an array, X.toarray(), with the columns that matter."
        )
    return _input_gradient(low, _contract(low, threads, U, V, W, inputs=True), threads)


def arguments(low: Lowered) -> Arguments:
    """Program, views, row vectors and column weights, as every verb of the core takes them."""
    program = low.__dict__.get("_program")
    if program is None:
        code = np.array([(_core.OPCODES[op], a, b) for op, a, b in low.code], dtype=np.int32).reshape(-1, 3)
        program = _core.Program(code, np.array(low.params, dtype=np.float64))
        low.__dict__["_program"] = program
    views = [(_matrix(v.x), None if v.z is None else _matrix(v.z)) for v in low.views]
    rows = [(r.u, r.v) for r in low.rows]
    if not views and not rows:
        # constants and noise alone: the core learns n and m from row vectors
        ones = np.ones(low.n, dtype=low.dtype)
        rows = [(ones, None if low.same else np.ones(low.m, dtype=low.dtype))]
    return program, views, rows, low.columns


def _matrix(A: Matrix) -> Matrix | tuple[Array, Integers, Integers, int]:
    """A dense matrix as it is, a sparse one as its parts."""
    if sparse.issparse(A):
        return A.data, A.indices, A.indptr, A.shape[1]
    return A


def _contract(
    low: Lowered,
    threads: int,
    U: Array | None,
    V: Array | None,
    W: Array | None,
    *,
    inputs: bool,
    parts: Parts | None = None,
) -> Adjoints:
    options: dict[str, Setting] = {"inputs": inputs, "threads": threads, "wanted": _wanted(low)}
    if parts is not None:
        options.update(parts._asdict())
    if W is not None:
        W = np.ascontiguousarray(W, dtype=low.dtype)
        return _core.contract(*arguments(low), W=W, **options)
    assert U is not None and V is not None
    U, V = (np.ascontiguousarray(A, dtype=low.dtype).reshape(len(A), -1) for A in (U, V))
    return _core.contract(*arguments(low), U=U, V=V, **options)


def _wanted(low: Lowered) -> list[bool]:
    """Per view: whether a hyperparameter asks for the gradients of its columns."""
    asked = {link.number[0] for link in low.links if not isinstance(link.number, int)}
    return [k in asked for k in range(len(low.views))]


def _gradient(low: Lowered, found: Adjoints, threads: int) -> Array:
    out = np.zeros(len(low.kernel.parameters))
    for link in low.links:
        if isinstance(link.number, int):
            value = found["params"][link.number]
        else:
            view, row, column = link.number
            columns = found["views"][view][row]
            value = columns.sum() if column is None else columns[column]
        out[link.slot] += link.factor * value
    for (u_bar, v_bar), rows in zip(found["rows"], low.rows, strict=False):
        for part, adjoint, norm in _sides(rows, u_bar, v_bar):
            w = np.ascontiguousarray(-0.5 * norm.astype(np.float64) ** 3 * adjoint, dtype=low.dtype)
            inner = _core.contract_diag(
                *arguments(part), w, inputs=False, threads=threads, wanted=_wanted(part)
            )
            out += _gradient(part, inner, threads)
    return out


def _sides(rows: RowVectors, u_bar: Array, v_bar: Array | None) -> list[tuple[Lowered, Array, Array]]:
    """The diagonal programs behind row vectors, each with its adjoint and its values; none of plain ones."""
    if rows.inner is None:
        return []
    if rows.inner_z is None:
        return [(rows.inner, u_bar if v_bar is None else u_bar + v_bar, rows.u)]
    assert v_bar is not None and rows.v is not None
    return [(rows.inner, u_bar, rows.u), (rows.inner_z, v_bar, rows.v)]


def _input_gradient(low: Lowered, found: Adjoints, threads: int) -> tuple[Array, Array | None]:
    x_total: Array = np.zeros(())
    z_total: Array = np.zeros(())
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
    if low.same:
        return x_total + z_total, None
    return x_total, z_total


def _pulled(low: Lowered, pull: Pull | None, adjoint: Array) -> Array:
    if pull is None:
        raise InputError(
            f"{low.kernel}: of(map) has no input gradient, because the map's derivative is not known."
        )
    return pull(np.asarray(adjoint, dtype=np.float64))
