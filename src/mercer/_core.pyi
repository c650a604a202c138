"""Types of the compiled core. Arrays are C-contiguous and of one dtype per call; nothing is converted.

A view is `(X, Z)` with `Z = None` for the same observations on both sides; X and Z are matrices of equal
dtype or, for DOT and SQDIST, sparse rows `(data, indices, indptr, ncols)`. Rows are `(u, v)` likewise.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

_Real: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
_Sparse: TypeAlias = tuple[_Real, NDArray[Any], NDArray[Any], int]
_Views: TypeAlias = Sequence[tuple[_Real | _Sparse, _Real | _Sparse | None]]
_Rows: TypeAlias = Sequence[tuple[_Real, _Real | None]]
_Flags: TypeAlias = NDArray[np.bool_]
_Columns: TypeAlias = Sequence[NDArray[np.float64]]

class _Gradients(TypedDict, total=False):
    params: NDArray[np.float64]
    views: list[NDArray[np.float64]]
    rows: list[tuple[NDArray[np.float64], NDArray[np.float64]]]
    inputs: list[tuple[NDArray[np.float64], NDArray[np.float64]]]

OPCODES: dict[str, int]
PART: int

class Program:
    def __init__(self, code: NDArray[np.int32], params: NDArray[np.float64]) -> None: ...
    @property
    def steps(self) -> int: ...

def gram(
    program: Program, views: _Views, rows: _Rows, columns: _Columns, out: _Real, threads: int = 1
) -> bool: ...
def waves(x: _Real, frequencies: _Real | None, weight: _Real, out: _Real, threads: int = 1) -> None: ...
def apply(
    program: Program,
    views: _Views,
    rows: _Rows,
    columns: _Columns,
    V: _Real,
    out: _Real,
    threads: int = 1,
    ends: Sequence[int] = (),
    kept: int = 0,
) -> None: ...
def diag(
    program: Program, views: _Views, rows: _Rows, columns: _Columns, out: _Real, threads: int = 1
) -> None: ...
def contract(
    program: Program,
    views: _Views,
    rows: _Rows,
    columns: _Columns,
    U: _Real | None = None,
    V: _Real | None = None,
    W: _Real | None = None,
    threads: int = 1,
    inputs: bool = False,
    wanted: Sequence[bool] = (),
    ends: Sequence[int] = (),
    kept: int = 0,
) -> _Gradients: ...
def contract_diag(
    program: Program,
    views: _Views,
    rows: _Rows,
    columns: _Columns,
    w: _Real,
    threads: int = 1,
    inputs: bool = False,
    wanted: Sequence[bool] = (),
) -> _Gradients: ...
def instruction_set() -> str: ...
def force_isa(name: str) -> bool: ...
def crew_size(threads: int, steps: int) -> int: ...
def force_threads(all: bool) -> None: ...
def vexp(x: _Real, out: _Real) -> None: ...
def vlog(x: _Real, out: _Real) -> None: ...
def vlog1p(x: _Real, out: _Real) -> None: ...
def vpow(x: _Real, p: float, out: _Real) -> None: ...
def vsin(x: _Real, out: _Real) -> None: ...
def vcos(x: _Real, out: _Real) -> None: ...
def vtanh(x: _Real, out: _Real) -> None: ...
def vacos(x: _Real, out: _Real) -> None: ...
def solve_qps(K: _Real, problems: list[Any], **options: Any) -> list[dict[str, Any]]: ...
def solve_qps_tiles(program: Program, *arguments: Any, **options: Any) -> list[dict[str, Any]]: ...
def newton_descent(
    K: _Real, problem: tuple[Any, ...], f: _Real, free: _Flags, limit: int, rounds: int
) -> tuple[str, int]: ...
def ascend(features: _Real | _Sparse, problems: list[Any], **options: Any) -> list[dict[str, Any]]: ...
def lanczos(
    K: _Real,
    centred: bool,
    Q: _Real,
    T: _Real,
    rest: _Real,
    start: int,
    stop: int,
    threads: int = 1,
) -> int: ...
