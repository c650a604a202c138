"""Laplace's approximation of a latent Gaussian process: the posterior mode, the evidence and its gradient.

    ψ(f) = -½ fᵀK⁻¹f + Σ w_i log p(y_i | f_i),     mode f = K g(f),   g = ∇ log p(y | f)
    log Z ≈ ψ(f) - ½ log |I + KW|,                 W = -∇∇ log p(y | f)

`Logistic` is two classes with one latent function, `Softmax` any number with one latent function for each
class, all with the same prior K (Rasmussen and Williams, algorithms 3.1, 3.3 and 5.1). K is never inverted,
so it may be singular: only matrices of the form I + √D K √D are factored, with eigenvalues ≥ 1. A row of
weight 2 counts like two equal rows.

The gradient is one matrix G with ∂ log Z/∂θ = Σ G_ij ∂K_ij/∂θ for every θ, so that the engine's contraction
does the rest. It has three parts: ½ aaᵀ of the fit, -½ (K + W⁻¹)⁻¹ of the volume, and what the mode moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrmm
from scipy.special import expit, log_expit, log_softmax, softmax

from mercer import clock, lapack
from mercer.errors import NotPositiveDefiniteError
from mercer.machines.gaussian_process.inverses import nonnegative
from mercer.machines.gaussian_process.whitened import whitened_mode
from mercer.panels import whole_from_lower
from mercer.solve.solution import Status
from mercer.typing import Array, Floats, Integers

SHORTEST = 2.0**-30  # of a Newton step; shorter ones gain nothing but rounding
REFINEMENTS = 4  # of one Newton step
POLISHES = 5  # whole steps at the end, each of which must lower the residual
ROWS = 64  # of a matrix that are scaled at a time
IDLE = 12  # steps in a row that do not halve the residual, after which nothing but rounding is left


@dataclass(frozen=True, eq=False)
class PosteriorMode:
    """The mode without the matrices around it: f = K a, a = g to `residual` (of the largest weight)."""

    a: Array
    f: Array
    g: Array
    evidence: float
    residual: float
    iterations: int
    status: Status


@dataclass(frozen=True, eq=False)
class Posterior(PosteriorMode, ABC):
    """The Gaussian at the mode."""

    K: Array

    @abstractmethod
    def weights(self) -> Array:
        """G with ∂ evidence / ∂θ = Σ G_ij ∂K_ij/∂θ; symmetric."""

    @abstractmethod
    def latent(self, Ks: Array, diag: Array) -> tuple[Array, Array]:
        """Mean and (co)variance of the latent f at new points, from k(new, training) and k(new, new)."""


class Likelihood(ABC):
    """log p(y | f) and what Newton's method asks of it."""

    w: Array

    @abstractmethod
    def start(self) -> Array:
        """a = 0, in the right shape."""

    @abstractmethod
    def each(self, f: Array) -> Array:
        """w_i log p(y_i | f_i) of every row."""

    def value(self, f: Array) -> float:
        return float(self.each(f).sum())

    @abstractmethod
    def seen(self, F: Array, f: Array) -> Array:
        """I + FᵀWF for W at f; for several classes as one matrix, the class running fastest."""

    @abstractmethod
    def gradient(self, f: Array) -> Array: ...

    @abstractmethod
    def curve(self, K: Array, f: Array, old: Any = None) -> Any:
        """What is factored at f, in the memory of an old factor that is given up."""

    @abstractmethod
    def bend(self, v: Array, curve: Any) -> Array:
        """W v."""

    @abstractmethod
    def solve(self, K: Array, r: Array, curve: Any) -> Array:
        """(I + WK)⁻¹ r = r - (K + W⁻¹)⁻¹ K r, to the precision of the factors."""

    def step(self, K: Array, r: Array, curve: Any) -> Array:
        """Newton's change of a, (I + WK)⁻¹ r with r = g - a, refined.

        A high prior cancels most digits of one solve.
        """
        out = self.solve(K, r, curve)
        size = last = float(np.linalg.norm(r))
        for _ in range(REFINEMENTS):
            left = r - out - self.bend(K @ out, curve)
            now = float(np.linalg.norm(left))
            if not 1e-12 * size < now < 0.5 * last:
                break
            out, last = out + self.solve(K, left, curve), now
        return out

    @abstractmethod
    def close(self, curve: Any, **found: Any) -> Posterior:
        """The posterior, with its evidence, from the factors at the mode."""

    def mode(
        self, K: Array, start: Array | None = None, *, tol: float = 1e-9, max_iter: int = 100
    ) -> Posterior:
        """The posterior for the Gram matrix K, by Newton's method with halved steps, from a = `start`.

        >>> found = Logistic(np.array([1.0, -1.0])).mode(np.eye(2))
        >>> bool(np.allclose(found.f, found.g)), found.status        # f = K g, and K = I
        (True, 'converged')
        """
        a = self.start()
        f = a
        value = self.value(f)
        if start is not None:
            there = K @ start
            begun = -0.5 * float(np.vdot(start, there)) + self.value(there)
            if begun > value:
                a, f, value = start, there, begun
        scale, status, steps = float(self.w.max()), Status.LIMIT, 0
        grain, last, idle = np.finfo(float).eps * float(K.diagonal().max()), np.inf, 0
        curve = None
        while True:
            g = self.gradient(f)
            residual = float(np.abs(a - g).max()) / scale
            curve = self.curve(K, f, curve)
            idle = idle + 1 if residual > 0.5 * last else 0
            last = min(last, residual)
            if residual <= max(tol, grain * float(np.abs(a).sum())):  # f = Ka is known to no more than this
                status = Status.CONVERGED
            elif idle >= IDLE:
                status = Status.STAGNATED
            if status != Status.LIMIT or steps >= max_iter or (steps and clock.late()):
                break
            moved = self._walk(K, a, f, value, a + self.step(K, g - a, curve))
            if moved is None:
                status = Status.STAGNATED
                break
            a, f, value = moved
            steps += 1
        found = {"K": K, "a": a, "f": f, "g": g, "residual": residual, "iterations": steps, "status": status}
        if status == Status.STAGNATED:
            better = self._mode_of_a_high_prior(found, tol, max_iter)
            if better is not None:
                return better
        return self.close(curve, value=value, **found)

    def _mode_of_a_high_prior(self, found: dict[str, Any], tol: float, max_iter: int) -> Posterior | None:
        """The mode by `whitened`, where K loses too many digits for the steps above.

        None if that is no nearer.
        """
        K = found["K"]
        white = whitened_mode(K, self, self.start().shape, max(max_iter, 100))
        if white is None:
            return None
        a, f, g, residual = self._polish(K, self.gradient(white.f), tol)
        if residual >= found["residual"]:
            return None
        grain = np.finfo(float).eps * float(K.diagonal().max()) * float(np.abs(a).sum())
        reached: Status = Status.CONVERGED if residual <= max(tol, grain) else Status.STAGNATED
        steps = found["iterations"] + white.iterations
        here = {"K": K, "a": a, "f": f, "g": g, "residual": residual, "iterations": steps, "status": reached}
        closed = self.close(self.curve(K, f), value=white.value, **here)
        return replace(closed, evidence=white.value - white.half_logdet)

    def _polish(self, K: Array, a: Array, tol: float) -> tuple[Array, Array, Array, float]:
        """a, f = Ka, g and their residual after whole Newton steps, as long as each lowers the residual."""
        scale = float(self.w.max())
        f = K @ a
        g = self.gradient(f)
        residual = float(np.abs(a - g).max()) / scale
        for _ in range(POLISHES):
            if residual <= tol:
                break
            new = a + self.step(K, g - a, self.curve(K, f))
            new_f = K @ new
            new_g = self.gradient(new_f)
            now = float(np.abs(new - new_g).max()) / scale
            if not now < residual:
                break
            a, f, g, residual = new, new_f, new_g, now
        return a, f, g, residual

    def _walk(
        self, K: Array, a: Array, f: Array, value: float, goal: Array
    ) -> tuple[Array, Array, float] | None:
        """The way to Newton's `goal` as far as ψ does not fall.

        None where it falls at once. f is linear in a.
        """
        there = K @ goal
        share, slack = 1.0, 1e-13 * (1.0 + abs(value))
        while share >= SHORTEST:
            new_a, new_f = a + share * (goal - a), f + share * (there - f)
            if share == 1.0:
                new_a, new_f = goal, there
            new = -0.5 * float(np.vdot(new_a, new_f)) + self.value(new_f)
            if new >= value - slack:
                return new_a, new_f, new
            share *= 0.5
        return None


# ── two classes ─────────────────────────────────────────────────────────────────────────────────────────────


class Logistic(Likelihood):
    """p(y | f) = σ(y f) for y = ±1, each row to the power of its weight."""

    def __init__(self, signs: Floats, w: Array | None = None) -> None:
        self.signs = np.asarray(signs, dtype=float)
        self.w = np.ones(len(self.signs)) if w is None else w

    def start(self) -> Array:
        return np.zeros(len(self.signs))

    def each(self, f: Array) -> Array:
        return np.asarray(self.w * log_expit(self.signs * f))

    def seen(self, F: Array, f: Array) -> Array:
        scaled = F * np.sqrt(self.w * expit(f) * expit(-f))[:, None]
        H = scaled.T @ scaled
        H[np.diag_indices_from(H)] += 1.0
        return np.asarray(H)

    def gradient(self, f: Array) -> Array:
        return np.asarray(self.w * self.signs * expit(-self.signs * f))

    def curve(self, K: Array, f: Array, old: Any = None) -> tuple[Array, Array]:
        root = np.sqrt(self.w * expit(f) * expit(-f))
        return root, _factor(K, root, None if old is None else old[1].T)

    def bend(self, v: Array, curve: Any) -> Array:
        return np.asarray(curve[0] ** 2 * v)

    def solve(self, K: Array, r: Array, curve: Any) -> Array:
        root, L = curve
        return np.asarray(r - root * _solve(L, root * (K @ r)))

    def close(self, curve: Any, **found: Any) -> TwoClasses:
        root, L = curve
        evidence = found.pop("value") - float(np.log(L.diagonal()).sum())
        return TwoClasses(**found, evidence=evidence, root=root, lower=L)


@dataclass(frozen=True, eq=False)
class TwoClasses(Posterior):
    """`root` = √W, `lower` = L with LLᵀ = I + √W K √W."""

    root: Array
    lower: Array

    def weights(self) -> Array:
        inverse = _inverse(self.lower)  # of I + √W K √W
        # ∂(-½ log|B|)/∂f_i = -½ Σ_ii W'_i; with Σ = W^-½ (I - B⁻¹) W^-½ and W' = -W tanh(f/2) nothing is
        # divided by W
        pull = 0.5 * (1.0 - inverse.diagonal()) * np.tanh(0.5 * self.f)
        inverse *= self.root[:, None]
        inverse *= self.root[None, :]
        moved = pull - inverse @ (self.K @ pull)
        # ½ aaᵀ + ½ (moved gᵀ + g movedᵀ) - ½ inverse
        left = np.column_stack([self.a, moved, self.g])
        right = np.stack([self.a, self.g, moved])
        G = lapack.matmul(left, right)
        G -= inverse
        G *= 0.5
        return G

    def latent(self, Ks: Array, diag: Array) -> tuple[Array, Array]:
        V = _triangular(self.lower, self.root[:, None] * Ks.T)
        return Ks @ self.g, nonnegative(diag - np.einsum("ij,ij->j", V, V), diag, len(self.g))


# ── any number of classes ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Blocks:
    """At some f: π, E_c = (K + D_c⁻¹)⁻¹, the diagonal of B_c⁻¹, Σ log|B_c| / 2, and the factor of Σ E_c."""

    pi: Array
    E: Array
    inverse_diag: Array
    half_logdet: float
    lower: Array

    def apply(self, V: Array) -> Array:
        """(K + W⁻¹)⁻¹ V, a column of V for each class: E V - E R (Σ E_c)⁻¹ Rᵀ E V."""
        EV = np.stack([E @ v for E, v in zip(self.E, V.T, strict=True)], axis=1)
        shared = _solve(self.lower, EV.sum(axis=1))
        return np.asarray(EV - np.stack([E @ shared for E in self.E], axis=1))


class Softmax(Likelihood):
    """p(y = c | f) = e^(f_c) / Σ e^(f_j), each row to the power of its weight."""

    def __init__(self, codes: Integers, classes: int, w: Array | None = None) -> None:
        self.w = np.ones(len(codes)) if w is None else w
        self.codes = codes
        self.Y = np.zeros((len(codes), classes))
        self.Y[np.arange(len(codes)), codes] = 1.0

    def start(self) -> Array:
        return np.zeros(self.Y.shape)

    def each(self, f: Array) -> Array:
        return np.asarray(self.w * log_softmax(f, axis=1)[np.arange(len(f)), self.codes])

    def seen(self, F: Array, f: Array) -> Array:
        pi = softmax(f, axis=1)
        rank, classes = F.shape[1], f.shape[1]
        H = np.empty((rank, classes, rank, classes))
        for c in range(classes):
            for d in range(c, classes):
                weight = self.w * pi[:, c] * (_rest(pi, c) if c == d else -pi[:, d])
                H[:, c, :, d] = F.T @ (weight[:, None] * F)
                H[:, d, :, c] = H[:, c, :, d].T
        whole = H.reshape(rank * classes, rank * classes)
        whole[np.diag_indices_from(whole)] += 1.0
        return whole

    def gradient(self, f: Array) -> Array:
        return np.asarray(self.w[:, None] * (self.Y - softmax(f, axis=1)))

    def curve(self, K: Array, f: Array, old: Any = None) -> Blocks:
        pi = softmax(f, axis=1)
        n, classes = pi.shape
        E, diagonals, half = np.empty((classes, n, n)), np.empty((n, classes)), 0.0
        for c in range(classes):
            root = np.sqrt(self.w * pi[:, c])
            L = _factor(K, root, None)
            half += float(np.log(L.diagonal()).sum())
            inverse = _inverse(L)
            diagonals[:, c] = inverse.diagonal()
            np.multiply(inverse, root[:, None], out=E[c])
            E[c] *= root[None, :]
        return Blocks(pi, E, diagonals, half, _cholesky(E.sum(axis=0)))

    def bend(self, v: Array, curve: Any) -> Array:
        return np.asarray(self.w[:, None] * curve.pi * (v - (curve.pi * v).sum(axis=1, keepdims=True)))

    def solve(self, K: Array, r: Array, curve: Any) -> Array:
        return np.asarray(r - curve.apply(K @ r))

    def close(self, curve: Any, **found: Any) -> ManyClasses:
        volume = curve.half_logdet + float(np.log(curve.lower.diagonal()).sum())
        evidence = found.pop("value") - volume + 0.5 * float(np.log(self.w).sum())
        return ManyClasses(**found, evidence=evidence, w=self.w, blocks=curve)


@dataclass(frozen=True, eq=False)
class ManyClasses(Posterior):
    """One column of a, f and g for each class."""

    w: Array
    blocks: Blocks

    def weights(self) -> Array:
        pi, E, lower = self.blocks.pi, self.blocks.E, self.blocks.lower
        D = self.w[:, None] * pi
        root = _triangular(lower, np.eye(len(lower)))  # L⁻¹, LLᵀ = Σ E_c
        total = root * self.w - np.tril(lower).T  # Σ T_c
        near = 1.0 - self.blocks.inverse_diag  # D_c (K - K E_c K)_ii
        own, shared = np.empty_like(pi), np.empty_like(pi)
        S = np.asfortranarray(E.sum(axis=0))
        for c in range(pi.shape[1]):
            Q = dtrmm(1.0, root, E[c].T, lower=1)  # L⁻¹ E_c, as E_c is symmetric
            S = lapack.syrk(-1.0, Q, beta=1.0, C=S, trans=True)
            T = root * D[:, c] - Q  # T_cᵀT_j is D_c Σ_cj D_j beyond its diagonal part
            squares = np.einsum("ij,ij->j", T, T)
            own[:, c] = near[:, c] + np.divide(squares, D[:, c], out=np.zeros(len(T)), where=D[:, c] > 0)
            shared[:, c] = (D[:, c] * near[:, c] + np.einsum("ij,ij->j", T, total)) / self.w
        pull = own - pi * own.sum(axis=1, keepdims=True)
        pull -= 2 * (shared - pi * shared.sum(axis=1, keepdims=True))
        pull *= -0.5  # ∂(-½ log|I + KW|)/∂f
        moved = pull - self.blocks.apply(self.K @ pull)
        cross = 0.5 * (moved @ self.g.T)
        cross += 0.25 * (self.a @ self.a.T)
        cross += cross.T
        cross -= 0.5 * whole_from_lower(S)
        return np.asarray(cross)

    def latent(self, Ks: Array, diag: Array) -> tuple[Array, Array]:
        E, classes = self.blocks.E, self.g.shape[1]
        V = np.empty((classes, *Ks.T.shape))
        covariance = np.zeros((len(Ks), classes, classes))
        for c in range(classes):
            EK = E[c] @ Ks.T
            V[c] = _triangular(self.blocks.lower, EK)
            covariance[:, c, c] = nonnegative(diag - np.einsum("ij,ji->i", Ks, EK), diag, len(self.g))
        covariance += np.einsum("cik,dik->kcd", V, V, optimize=True)
        return Ks @ self.g, covariance


def _rest(pi: Array, c: int) -> Array:
    """1 - π_c as the sum of the others: where π_c is nearly 1 the difference would have no digits."""
    return np.asarray(np.delete(pi, c, axis=1).sum(axis=1))


# ── LAPACK, in place and in its own order ───────────────────────────────────────────────────────────────────


def _factor(K: Array, root: Array, room: Array | None) -> Array:
    """L with LLᵀ = I + √D K √D, in `room`, C order, if that is given."""
    # The half that is never written is zero, so that a factor holds no bits of other memory.
    B = np.zeros(K.shape) if room is None else room
    # The half that is read, some rows at a time, so that they stay in cache.
    for start in range(0, len(K), ROWS):
        rows = slice(start, start + ROWS)
        np.multiply(K[rows, start:], root[start:], out=B[rows, start:])
        B[rows, start:] *= root[rows, None]
    B[np.diag_indices_from(B)] += 1.0
    return _cholesky(B)


def _cholesky(B: Array) -> Array:
    """The lower factor of a symmetric C-order array, of which the upper half is read; it is given up.

    Above the diagonal is rubbish.
    """
    lower, info = lapack.potrf(B.T, overwrite_a=True)
    if info or not np.isfinite(lower[-1, -1]):
        raise NotPositiveDefiniteError(
            "the Gram matrix is not positive semi-definite, or too large for float64: a factor of I + √D K "
            f"√D stopped at row {info - 1}. Use a kernel whose validity() is proved, or a smaller scale.",
            pivot=info - 1,
        )
    return lower


def _inverse(lower: Array) -> Array:
    """(LLᵀ)⁻¹, whole."""
    return whole_from_lower(lapack.potri(lower)[0])


def _solve(lower: Array, b: Array) -> Array:
    return lapack.potrs(lower, b)


def _triangular(lower: Array, B: Array) -> Array:
    """L⁻¹ B."""
    return lapack.solve_triangular(lower, B)
