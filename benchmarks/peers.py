"""The peers, each a function that returns None where its library is not installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

Call = Callable[[], Any]


def have(*modules: str) -> bool:
    return all(find_spec(m) is not None for m in modules)


def gram_peers(X: np.ndarray) -> dict[str, Call]:
    """Dense RBF Grams with lengthscale √d, in fresh memory."""
    from sklearn.metrics.pairwise import rbf_kernel

    gamma = 0.5 / X.shape[1]
    peers: dict[str, Call] = {"sklearn": lambda: rbf_kernel(X, gamma=gamma), **reusing_gram_peers(X, None)}
    if have("gpytorch"):
        import gpytorch
        import torch

        A = torch.from_numpy(X)
        kernel = gpytorch.kernels.RBFKernel().to(A.dtype)
        kernel.lengthscale = float(np.sqrt(X.shape[1]))

        def gpytorch_gram() -> Any:
            with torch.no_grad():
                return kernel(A).to_dense().numpy()

        peers["gpytorch"] = gpytorch_gram
    return peers


def reusing_gram_peers(X: np.ndarray, out: np.ndarray | None) -> dict[str, Call]:
    """Those that can write a Gram into memory that is given; each takes fresh memory without it."""
    from scipy.spatial.distance import cdist

    d = X.shape[1]
    gamma = X.dtype.type(0.5 / d)

    def numpy_expansion() -> np.ndarray:
        norms = np.einsum("ij,ij->i", X, X)
        K = np.matmul(X, X.T, out=out)
        K *= 2
        K -= norms[:, None]
        K -= norms[None, :]
        K *= gamma
        return np.exp(K, out=K)

    def scipy_cdist() -> np.ndarray:
        K = cdist(X, X, "sqeuclidean", out=out)
        K *= -gamma
        return np.exp(K, out=K)

    peers: dict[str, Call] = {"numpy": numpy_expansion}
    if d <= 20 and X.dtype == np.float64:
        peers["scipy"] = scipy_cdist
    if have("torch"):
        import torch

        A = torch.from_numpy(X)
        K0 = None if out is None else torch.from_numpy(out)

        def torch_expansion() -> Any:
            norms = (A * A).sum(dim=1)
            K = torch.mm(A, A.T, out=K0)
            return K.mul_(2).sub_(norms[:, None]).sub_(norms[None, :]).mul_(float(gamma)).exp_().numpy()

        def torch_cdist() -> Any:
            return torch.cdist(A, A).square_().mul_(-float(gamma)).exp_().numpy()

        peers["torch"] = torch_expansion
        if out is None:
            peers["torch cdist"] = torch_cdist
    return peers


def sklearn_co2(d: int) -> Any:
    """The CO₂-type kernel of the composite cells in scikit-learn's GP language, ten parameters."""
    from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel
    from sklearn.gaussian_process.kernels import ConstantKernel as C

    del d
    trend, season = C(4356.0) * RBF(67.0), C(5.76) * RBF(90.0) * ExpSineSquared(1.3, 1.0)
    return trend + season + C(0.4356) * RationalQuadratic(1.2, 0.78) + WhiteKernel(0.0361)


def tinygp_co2(X: np.ndarray) -> tuple[Call, Callable[[np.ndarray], Call]] | None:
    """(value, gradient maker) by tinygp on jax in float64, compiled before timing."""
    if not have("tinygp", "jax"):
        return None
    import jax
    import jax.numpy as jnp
    from tinygp import kernels

    jax.config.update("jax_enable_x64", True)
    A = jnp.asarray(X)

    def build(p: Any) -> Any:
        square = kernels.distance.L2Distance()
        trend = p[0] * kernels.ExpSquared(p[1], distance=square)
        season = p[2] * kernels.ExpSquared(p[3], distance=square)
        season = season * kernels.ExpSineSquared(scale=p[4], gamma=2 / p[5] ** 2)
        rough = p[6] * kernels.RationalQuadratic(scale=p[7], alpha=p[8], distance=square)
        return trend + season + rough

    p0 = jnp.array([4356.0, 67.0, 5.76, 90.0, 1.0, 1.3, 0.4356, 1.2, 0.78, 0.0361])

    def matrix(p: Any) -> Any:
        return build(p)(A, A) + p[9] * jnp.eye(len(A))

    value = jax.jit(matrix)
    gradient = jax.jit(jax.grad(lambda p, W: (matrix(p) * W).sum()))

    def grad(W: np.ndarray) -> Call:
        weights = jnp.asarray(W)
        gradient(p0, weights).block_until_ready()
        return lambda: np.asarray(gradient(p0, weights).block_until_ready())

    value(p0).block_until_ready()
    return lambda: np.asarray(value(p0).block_until_ready()), grad


def product_peers(X: np.ndarray, v: np.ndarray) -> dict[str, Call]:
    """K v without K, lengthscale √d, in blocks."""
    d = X.shape[1]
    gamma = 0.5 / d
    norms = np.einsum("ij,ij->i", X, X)
    block = max(1, 20_000_000 // len(X))

    def numpy_blocked() -> np.ndarray:
        out = np.empty_like(v)
        for start in range(0, len(X), block):
            rows = slice(start, start + block)
            K = X[rows] @ X.T
            K *= 2
            K -= norms[rows, None]
            K -= norms[None, :]
            K *= gamma
            out[rows] = np.exp(K, out=K) @ v
        return out

    peers: dict[str, Call] = {"numpy": numpy_blocked}
    if have("torch"):
        import torch

        A, w = torch.from_numpy(X), torch.from_numpy(v)

        def torch_blocked() -> Any:
            with torch.no_grad():
                parts = [
                    torch.exp(torch.cdist(A[s : s + block], A).square_().mul_(-gamma)) @ w
                    for s in range(0, len(A), block)
                ]
                return torch.cat(parts).numpy()

        peers["torch"] = torch_blocked
    if have("pykeops") and len(X) <= 20_000 and d <= 10:
        from pykeops.torch import LazyTensor

        column = torch.from_numpy(v)[:, None]

        def keops() -> Any:
            D = ((LazyTensor(A[:, None, :]) - LazyTensor(A[None, :, :])) ** 2).sum(-1)
            return ((-gamma * D).exp() @ column).numpy()[:, 0]

        try:
            keops()  # its compiler runs at the first call
            peers["keops"] = keops
        except Exception as error:
            print(f"    (keops left out: {str(error)[:90]})")
    return peers
