"""Columns scaled to a range, as `svm-scale` does, with its file of ranges.

    x' = lower + (upper - lower) (x - min) / (max - min)

A column with one value only is left out, as there. Zero entries are scaled like all others, so what comes out
may be less sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from mercer.errors import InputError
from mercer.typing import Array


@dataclass(frozen=True)
class Ranges:
    """The least and the largest value of every column, and where they go; `target` likewise."""

    lower: float
    upper: float
    least: Array
    largest: Array
    target: tuple[float, float, float, float] | None = None

    def scaled(self, X: sparse.csr_array) -> sparse.csr_array:
        """The rows in the range; columns that were not seen are left out."""
        width = len(self.least)
        dense = np.zeros((X.shape[0], width))
        seen = min(width, X.shape[1])
        dense[:, :seen] = X[:, :seen].toarray()
        spread = self.largest - self.least
        varies = spread > 0
        out = np.zeros_like(dense)
        share = (dense[:, varies] - self.least[varies]) / spread[varies]
        out[:, varies] = self.lower + (self.upper - self.lower) * share
        # exactly the ends at the ends, as LIBSVM has it
        out[:, varies] = np.where(dense[:, varies] == self.least[varies], self.lower, out[:, varies])
        out[:, varies] = np.where(dense[:, varies] == self.largest[varies], self.upper, out[:, varies])
        return sparse.csr_array(out)

    def scaled_target(self, y: Array) -> Array:
        if self.target is None:
            return y
        lower, upper, least, largest = self.target
        return np.asarray(lower + (upper - lower) * (y - least) / (largest - least))

    def text(self) -> str:
        """The file that `svm-scale -s` writes."""
        lines: list[str] = []
        if self.target is not None:
            lower, upper, least, largest = self.target
            lines += ["y", f"{lower:.17g} {upper:.17g}", f"{least:.17g} {largest:.17g}"]
        lines += ["x", f"{self.lower:.17g} {self.upper:.17g}"]
        for j, (low, high) in enumerate(zip(self.least, self.largest, strict=True), 1):
            if high > low:
                lines.append(f"{j} {low:.17g} {high:.17g}")
        return "\n".join(lines) + "\n"


def ranges_of(
    X: sparse.csr_array, y: Array, lower: float, upper: float, target: tuple[float, float] | None
) -> Ranges:
    """The ranges of a sample."""
    least = np.asarray(X.min(axis=0).toarray(), dtype=float).ravel()
    largest = np.asarray(X.max(axis=0).toarray(), dtype=float).ravel()
    scaled = None if target is None else (*target, float(y.min()), float(y.max()))
    if scaled is not None and scaled[2] == scaled[3]:
        raise InputError("the target has one value only, and cannot be scaled. Leave out -y.")
    return Ranges(lower, upper, least, largest, scaled)


def read_ranges(path: str | Path) -> Ranges:
    """The ranges of a file that `svm-scale -s` wrote."""
    lines = Path(path).read_text(encoding="ascii").split("\n")
    words = [line.split() for line in lines if line.strip()]
    target = None
    try:
        if words[0] == ["y"]:
            numbers = [float(v) for v in (*words[1], *words[2])]
            target = (numbers[0], numbers[1], numbers[2], numbers[3])
            words = words[3:]
        if words[0] != ["x"]:
            raise ValueError("no line x")
        lower, upper = (float(v) for v in words[1])
        columns = [(int(j), float(low), float(high)) for j, low, high in words[2:]]
    except (ValueError, IndexError) as error:
        raise InputError(f"{path} is no file of ranges that svm-scale -s wrote: {error}.") from error
    width = max((j for j, _, _ in columns), default=0)
    if any(j < 1 for j, _, _ in columns) or width >= 2**31:
        raise InputError(f"{path}: columns are counted from 1.")
    least = np.zeros(width)
    largest = np.zeros(width)
    for j, low, high in columns:
        least[j - 1], largest[j - 1] = low, high
    return Ranges(lower, upper, least, largest, target)
