"""What the solvers ask of the compiled core: the one file here that reaches it."""

from __future__ import annotations

from mercer._core import ascend, lanczos, newton_descent, solve_qps, solve_qps_tiles

__all__ = ["ascend", "lanczos", "newton_descent", "solve_qps", "solve_qps_tiles"]
