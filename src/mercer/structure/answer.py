"""What a search for a kernel found: the kernel, its proof, the fit, its terms in words, the runners-up."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mercer.kernels.proofs.answers import Validity
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.gaussian_process.views import Terms
from mercer.solve.solution import Status
from mercer.structure.averaging import MIXTURE, PRODUCT, mixed, multiplied
from mercer.structure.words import Said
from mercer.typing import Array, Table

_NUMBER = re.compile(r"\d+\.\d{4,}(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Alternative:
    """A kernel that was judged too, and how far it is behind.

    `nats` is what its log evidence lacks, numbers paid for, on all rows of the search together; `score` what
    it lacks of the score, in nats per row; a trace below 0 is a kernel that was given up for a simpler one.
    `weight` is its part in an averaged prediction, 0 where it has none.
    """

    kernel: str
    nats: float
    score: float
    weight: float = 0.0


@dataclass(frozen=True, eq=False)
class Structure:
    """The best kernel of a search.

    Attributes
    ----------
    kernel : its text. proof : why it is a kernel. model : the fitted `GaussianProcessRegressor`.
    terms : mean and band of each term at the rows of the fit. said : a sentence for each, with its numbers.
    alternatives : other kernels that were judged, the nearest first.
    evidence, held_out, score : nats per row, as `docs/structure.md` defines them.
    weight : the part of the best kernel in a prediction; less than 1 where averaging predicts better.
    others : the models of alternatives that take part in the average, with their weights.
    rule : how they are averaged, "mixture" or "product"; the powers in a product are `sharpness` × weight.
    status : "converged", "limit" (the seconds or the rounds ended it) or "interrupted".
    seconds, looked, rows : how long it took, kernels that were looked at, and rows of the search.
    """

    kernel: str
    proof: Validity
    model: GaussianProcessRegressor
    terms: Terms | None
    said: tuple[Said, ...]
    alternatives: tuple[Alternative, ...]
    evidence: float
    held_out: float
    score: float
    weight: float
    others: tuple[tuple[GaussianProcessRegressor, float], ...]
    status: Status
    seconds: float
    looked: int
    rows: int
    rule: str = MIXTURE
    sharpness: float = 1.0

    @property
    def words(self) -> list[str]:
        """One sentence for each term."""
        return [said.text for said in self.said]

    def predict(
        self, X: Table, return_std: bool = False, *, noise: bool = False
    ) -> Array | tuple[Array, Array]:
        """The mean at rows X, with standard deviations if asked: of f, or with `noise` of a new observation.

        Where kernels are averaged they are those of the mixture, or of the product of their densities.
        """
        rows = column_of(X)
        if self.rule == PRODUCT:
            mean, variance = self._product(rows, noise)
        else:
            mean, variance = mixed(*self._moments(rows, noise), self._weights())
        if not return_std:
            return mean
        return mean, np.sqrt(variance)

    def _moments(self, rows: Table, noise: bool) -> tuple[Array, Array]:
        """Means and variances of all models, models × rows."""
        models = [self.model, *(model for model, _ in self.others)]
        found = [model.predict(rows, return_std=True, noise=noise) for model in models]
        return np.array([mean for mean, _ in found]), np.array([std**2 for _, std in found])

    def _weights(self) -> Array:
        return np.array([self.weight, *(weight for _, weight in self.others)])

    def _product(self, rows: Table, noise: bool) -> tuple[Array, Array]:
        """Mean and variance by the product of densities of a new observation.

        What is left of that variance where every kernel knows f is the noise; the rest is the variance of f.
        """
        weights = self.sharpness * self._weights()
        means, variances = self._moments(rows, noise=True)
        mean, variance = multiplied(means, variances, weights)
        if noise:
            return mean, variance
        _, latent = self._moments(rows, noise=False)
        left = np.maximum(variances - latent, np.finfo(float).tiny)
        _, noises = multiplied(means, left, weights)
        return mean, np.maximum(variance - noises, 0.0)

    def to_dict(self) -> dict[str, object]:
        """All that is said, as plain values."""
        return {
            "kernel": self.kernel,
            "proof": str(self.proof.status),
            "words": self.words,
            "shares": [said.share for said in self.said],
            "bands": [said.band for said in self.said],
            "numbers": [[(n.of, n.value, n.shown) for n in said.numbers] for said in self.said],
            "evidence": self.evidence,
            "held_out": self.held_out,
            "score": self.score,
            "weight": self.weight,
            "rule": self.rule,
            "sharpness": self.sharpness,
            "alternatives": [vars(other).copy() for other in self.alternatives],
            "status": str(self.status),
            "seconds": self.seconds,
            "kernels_looked_at": self.looked,
            "rows_of_search": self.rows,
        }

    def __str__(self) -> str:
        lines = [short(self.kernel), f"is a kernel ({self.proof.status}). In words (± is half a 95 % band):"]
        lines += [f"  - {text}" for text in self.words]
        lines.append(
            f"Evidence {self.evidence:.4f} and held-out density {self.held_out:.4f} nats a row; "
            f"{self.looked} kernels looked at on {self.rows} rows, {self.status}."
        )
        if self.others:
            lines.append(
                f"Predictions average {1 + len(self.others)} kernels by a {self.rule}; "
                f"the first has {self.weight:.2f}."
            )
        if self.alternatives:
            lines.append("Alternatives, nats of evidence behind, score behind in nats a row:")
        for other in self.alternatives:
            lines.append(f"  {other.nats:8.1f}  {other.score:8.4f}  {short(other.kernel)}")
        return "\n".join(lines)


def column_of(X: Table) -> Table:
    """Rows; a plain list of numbers is one column."""
    if getattr(X, "ndim", None) == 1 or (isinstance(X, list | tuple) and np.ndim(X[:1]) == 1):
        values = np.asarray(X)
        if values.dtype.kind in "iuf":
            return values[:, None]
    return X


def short(kernel: str) -> str:
    """The text of a kernel with four digits of each number.

    >>> short("1.23456789*RBF(0.5)")
    '1.235*RBF(0.5)'
    """
    return _NUMBER.sub(lambda found: f"{float(found.group()):.4g}", kernel)
