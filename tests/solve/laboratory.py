"""Matrices with known properties, and an operator that counts what is asked of it."""

from __future__ import annotations

import numpy as np

from mercer.solve import Operator


class CountingOperator(Operator):
    """A dense symmetric matrix behind the operator protocol; counts products,
    columns and entries handed out.
    """

    def __init__(self, A, interrupt_after=None):
        self.A, self.products, self.columns, self.entries = np.asarray(A), 0, 0, 0
        self.interrupt_after = interrupt_after

    shape = property(lambda self: self.A.shape)
    dtype = property(lambda self: self.A.dtype)

    def __matmul__(self, V):
        assert V.dtype == self.dtype
        self.products += 1
        self.columns += 1 if V.ndim == 1 else V.shape[1]
        if self.products == self.interrupt_after:
            raise KeyboardInterrupt
        return self.A @ V

    def diag(self):
        return self.A.diagonal()

    def block(self, rows, cols):
        part = self.A[rows][:, cols]
        self.entries += part.size
        return part

    def dense(self):
        self.entries += self.A.size
        return self.A

    def shifted(self, lam):
        return CountingOperator(self.A + lam * np.eye(len(self.A), dtype=self.dtype))


def rbf(n, d=3, lengthscale=1.0, seed=0):
    """The Gram matrix of a Gaussian kernel on a normal cloud, by the difference form."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    s = sum(np.subtract.outer(X[:, j], X[:, j]) ** 2 for j in range(d))
    return np.exp(-s / (2 * lengthscale**2))


def with_spectrum(values, seed=0):
    """A symmetric matrix with these eigenvalues."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    A = (Q * np.asarray(values)) @ Q.T
    return (A + A.T) / 2


def relative_residual(A, x, b, shift=0.0):
    """Measured in extended precision, without the library."""
    A, x, b = (np.asarray(v, dtype=np.longdouble) for v in (A, x, b))
    return float(np.linalg.norm((b - A @ x - shift * x).astype(float)) / np.linalg.norm(b.astype(float)))
