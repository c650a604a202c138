"""Small builders shared by the tests of the core: programs by opcode name, calls that allocate."""

import numpy as np

from mercer import _core

PRIMITIVES = ["SQDIST", "DOT", "L1", "PERIODIC", "COSPROD", "ALLSUBSETS", "MINSUM", "MINPROD", "CHI2"]
UNARIES = [
    *(
        "AFFINE",
        "EXP",
        "LOG",
        "LOG1P",
        "SQRT",
        "RECIPROCAL",
        "ABS",
        "SIN",
        "COS",
        "TANH",
        "LOGISTIC",
        "POWI",
        "POW",
    ),
    *("RBF", "EXPNEG", "MATERN32", "MATERN52", "RQ", "HORNER"),
]


def encode(*steps):
    """Steps are names or (name, a, b); missing arguments are 0."""
    rows = [(s,) if isinstance(s, str) else s for s in steps]
    return np.array([(_core.OPCODES[r[0]], *r[1:], *(0,) * (3 - len(r))) for r in rows], np.int32)


class Problem:
    """A program with its data; `same` data has None as second parts."""

    def __init__(self, code, params, views=(), rows=(), columns=(), dtype=np.float64):
        cast = lambda pairs: [
            tuple(None if p is None else np.ascontiguousarray(p, dtype) for p in q) for q in pairs
        ]
        self.code, self.params, self.dtype = code, np.array(params, float), dtype
        self.views, self.rows, self.columns = cast(views), cast(rows), list(columns)
        a, b = (self.views or self.rows)[0]
        self.shape = len(a), len(a if b is None else b)

    @property
    def args(self):
        return _core.Program(self.code, self.params), self.views, self.rows, self.columns

    def gram(self, threads=1):
        K = np.full(self.shape, np.nan, self.dtype)
        _core.gram(*self.args, K, threads)
        return K

    def apply(self, V, threads=1):
        out = np.full((self.shape[0], V.shape[1]), np.nan, self.dtype)
        _core.apply(*self.args, V, out, threads)
        return out

    def diag(self, threads=1):
        out = np.full(self.shape[0], np.nan, self.dtype)
        _core.diag(*self.args, out, threads)
        return out

    def contract(self, **weights):
        return _core.contract(*self.args, **weights)
