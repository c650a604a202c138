"""Operators in, solution out. This room knows no kernels: a matrix is what it does (`Operator`).

>>> import numpy as np
>>> print(solve(np.array([[4.0, 2.0], [2.0, 5.0]]), [8.0, 12.0]).value)
[1. 2.]
"""

from __future__ import annotations

from mercer.solve.box import BoxPoint
from mercer.solve.cg import Preconditioner, cg
from mercer.solve.direct import Cholesky, direct, factor
from mercer.solve.eigen import Eigenpairs, top_eigenpairs
from mercer.solve.estimate import Estimate, logdet, trace
from mercer.solve.operator import ArrayOperator, Operator, as_operator
from mercer.solve.precondition import LowRank, nystrom, pivoted_cholesky
from mercer.solve.qp import working_set
from mercer.solve.solution import Certificate, Note, NoteKind, Solution, Status
from mercer.solve.system import solve

__all__ = [
    "ArrayOperator",
    "BoxPoint",
    "Certificate",
    "Cholesky",
    "Eigenpairs",
    "Estimate",
    "LowRank",
    "Note",
    "NoteKind",
    "Operator",
    "Preconditioner",
    "Solution",
    "Status",
    "as_operator",
    "cg",
    "direct",
    "factor",
    "logdet",
    "nystrom",
    "pivoted_cholesky",
    "solve",
    "top_eigenpairs",
    "trace",
    "working_set",
]
