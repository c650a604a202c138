"""A kernel in the feature space of another: `RBF(1.0).of(k)` sees the distance ‖φ(x) - φ(z)‖ of k.

    s = (k(x, x) + k(z, z) - 2 k(x, z)) / ℓ²

So a Gaussian stands on any kernel of strings or graphs. The distance of two things that are nearly the same
is a difference of nearly equal numbers: it is right to about 1e-16 k(x, x), not to its own last digit.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.distances import squared_norms
from mercer.kernels.leaves.families import Radial
from mercer.kernels.leaves.leaf import expression
from mercer.kernels.programs.program import NotLowered, Place
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.rules.combined import Combined, all_of, remembered
from mercer.kernels.sweep import Sweep
from mercer.kernels.things.sparse_map import SparseMap
from mercer.params import Open, given
from mercer.samples import second
from mercer.sparse import Matrix
from mercer.typing import Array

# Rows from which an open lengthscale is closed: enough for a mean of distances.
ROWS_TO_CLOSE = 500


@expression
class InSpace(Combined):
    """A radial leaf on the distances of another kernel's features."""

    kernel: Kernel = given()
    space: Kernel = given()

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Radial):
            raise ParameterError(
                f"k.of(space) needs a function of distances for k, such as RBF(); got {self.kernel}. A "
                "function of inner products is written with space itself: (space + 1)**2, space.exp()."
            )
        if isinstance(self.kernel.lengthscale, tuple):
            raise ParameterError(
                f"{self.kernel}: a feature space has no columns of yours, so it takes one lengthscale."
            )
        super().__post_init__()

    def children(self) -> list[tuple[str, Kernel]]:
        return [("kernel", self.kernel), ("space", self.space)]

    def with_children(self, children: list[Kernel]) -> Kernel:
        return self.changed(kernel=children[0], space=children[1])

    def takes_things(self) -> bool:
        return self.space.takes_things()

    def reads_numbers(self) -> bool:
        return self.space.reads_numbers()

    def columns_needed(self) -> tuple[int | None, int]:
        return self.space.columns_needed()

    def needs_nonnegative(self) -> bool:
        return self.space.needs_nonnegative()

    def compare_columns(self, x: Rows, z: Rows) -> None:
        self.space.compare_columns(x, z)

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        space = self.space.resolved_on(rows, weight) if self.space.is_open else self.space
        outer = self.radial
        if isinstance(outer.lengthscale, Open):
            outer = outer.changed(lengthscale=_typical_length(space, rows))
        return InSpace(outer, space)

    @property
    def radial(self) -> Radial:
        """The function of distances."""
        assert isinstance(self.kernel, Radial)
        return self.kernel

    def length(self) -> float:
        """The one lengthscale."""
        return float(self.radial.closed_value("lengthscale"))

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = self.space.diagonal(x)
        b = a if z is None else self.space.diagonal(z)
        s = np.maximum(a[:, None] + b[None, :] - 2 * self.space.block(x, z), 0.0) / self.length() ** 2
        if z is None:
            np.fill_diagonal(s, 0.0)
        return np.asarray(self.radial.value(s))

    def diagonal(self, x: Rows) -> Array:
        return np.asarray(self.radial.value(np.zeros(len(x))))

    def program(self, at: Place) -> None:
        """Distances of sparse features; what only the first sample has is one more column of it."""
        if any(p.free for p in self.space.parameters):
            raise NotLowered("the space of a kernel has numbers to tune")
        # of two samples the second is the one that machines keep, so that it is counted once
        phi, z = self._counted(second(at.x, at.z))
        if phi is None or z is None:
            raise NotLowered(f"{self.space} has no sparse features, so its distances are not those of rows")
        if at.z is None:
            self.kernel.program(at.child("kernel").showing(phi.matrix, None))
            return
        A = phi(at.x)
        unseen = np.sqrt(np.maximum(self.space.diagonal(at.x) - squared_norms(A), 0.0))
        x = sparse.hstack([A, sparse.csr_array(unseen[:, None])])
        self.kernel.program(at.child("kernel").showing(sparse.csr_array(x), z))

    def _counted(self, x: Rows) -> tuple[SparseMap | None, Matrix | None]:
        """The features of a sample, and these with one more column of zeros; found once for each sample."""

        def make() -> tuple[SparseMap | None, Matrix | None]:
            phi = self.space.sparse_map(x)
            if phi is None:
                return None, None
            return phi, sparse.csr_array(sparse.hstack([phi.matrix, sparse.csr_array((len(x), 1))]))

        return x.remembered(("features", self.space), make)

    def contract(self, W: Array, at: Sweep) -> None:
        a = self.space.diagonal(at.x)
        b = self.space.diagonal(at.z)
        length = self.length()
        s = np.maximum(a[:, None] + b[None, :] - 2 * at.value(self.space), 0.0) / length**2
        if at.start is not None:
            i = np.arange(len(at.x))
            s[i, i + at.start] = 0.0
        G = W * self.radial.slope(s)
        # at distance 0 the slope may be infinite, and the distance does not move
        G[s == 0] = 0.0
        at.add("kernel__lengthscale", float(-2 / length * (G * s).sum()))
        self.radial.contract_value(W, at.child("kernel"), s, but=("lengthscale",))
        G /= length**2
        self.space.contract(-2 * G, at.child("space"))
        at.contract_diagonal(self.space, G.sum(axis=1), at.x, "space")
        at.contract_diagonal(self.space, G.sum(axis=0), at.z, "space")

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.of({self.space.text()})"

    def latex(self) -> str:
        inner = rf"\varphi(x)^\top\varphi(z)={self.space.latex()}"
        return rf"\left[{self.kernel.latex()}\right]_{{x\to\varphi(x),\ {inner}}}"

    @remembered
    def proof(self) -> Proof | None:
        premises = all_of((self.kernel.proof(), self.space.proof()))
        if premises is None:
            return None
        reason = (
            "the Gram matrix is that of the outer kernel at the points φ(x_i), in the dimensions they span"
        )
        return Proof(self, Fact("composition with a map", reason), premises)

    def root_proof(self) -> Proof | None:
        premises = all_of((self.kernel.root_proof(), self.space.proof()))
        if premises is None:
            return None
        return Proof(
            self, Fact("infinitely divisible", "the outer kernel is, at the points φ(x_i)"), premises
        )


def _typical_length(space: Kernel, rows: Rows) -> float:
    """Half the root of the mean squared distance of two rows: for vectors, what `closing` gives.

    Of many rows, as many as `ROWS_TO_CLOSE` evenly spaced ones are asked.
    """
    n = len(rows)
    some = rows.rows(np.unique(np.linspace(0, n - 1, min(n, ROWS_TO_CLOSE)).astype(int)))
    K = space.block(some, some)
    a = space.diagonal(some)
    m = len(a)
    # White noise of the space is on both diagonals alike, and K between two samples has none of it.
    squares = a[:, None] + a[None, :] - 2 * K
    np.fill_diagonal(squares, 0.0)
    mean = float(squares.sum()) / max(m * m, 1)
    if not mean > 0:
        return 1.0
    return float(f"{0.5 * np.sqrt(mean):.12g}")
