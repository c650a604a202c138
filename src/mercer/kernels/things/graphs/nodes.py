"""Kernels of the nodes of one graph: rows are numbers of nodes.

Both are functions of its Laplacian L = D - A, the matrix of degrees less that of neighbours.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.proofs.proof import Fact
from mercer.kernels.sweep import Sweep
from mercer.kernels.things.graphs.forms import as_graph
from mercer.kernels.things.graphs.graph import Graph
from mercer.kernels.things.on_things import unreadable
from mercer.params import given, positive
from mercer.typing import Array, Integers, Setting

Edges = tuple[tuple[int, int], ...]


class NodeKernel(Leaf):
    """A function of the Laplacian of one graph, at the rows and columns of some of its nodes."""

    graph: Edges
    beta: float
    nodes: int | None

    def __post_init__(self) -> None:
        """Keep the graph, in whatever form it came, as its edges and the number of its nodes."""
        super().__post_init__()
        owner = type(self).__name__
        try:
            found = as_graph(_as_tuples(self.graph))
            count = found.nodes if self.nodes is None else self.nodes
            found = Graph(count, found.edges)
        except (InputError, TypeError) as error:
            raise ParameterError(f"{owner}: this is no graph: {str(error).rstrip('.')}.") from error
        if found.nodes == 0:
            raise ParameterError(f"{owner}: the graph has no nodes. Name edges, or give nodes=.")
        object.__setattr__(self, "graph", tuple((int(a), int(b)) for a, b in found.edges))
        object.__setattr__(self, "nodes", found.nodes)

    @abstractmethod
    def transformed(self, eigenvalues: Array) -> tuple[Array, Array]:
        """The function at eigenvalues of L, and its derivative by β."""

    def takes_things(self) -> bool:
        return True

    def block(self, x: Rows, z: Rows | None) -> Array:
        eigenvalues, vectors = self._spectrum()
        # the square root on both sides, so that the matrix is symmetric to the last bit
        half = vectors * np.sqrt(self.transformed(eigenvalues)[0])
        left = half[self._places(x)]
        right = left if z is None else half[self._places(z)]
        return np.asarray(left @ right.T)

    def diagonal(self, x: Rows) -> Array:
        eigenvalues, vectors = self._spectrum()
        rows = vectors[self._places(x)]
        return np.asarray((rows**2) @ self.transformed(eigenvalues)[0])

    def contract(self, W: Array, at: Sweep) -> None:
        eigenvalues, vectors = self._spectrum()
        slope = self.transformed(eigenvalues)[1]
        left = vectors[self._places(at.x)]
        right = vectors[self._places(at.z)]
        at.add("beta", float((W * ((left * slope) @ right.T)).sum()))

    def _spectrum(self) -> tuple[Array, Array]:
        assert self.nodes is not None
        return _eigenpairs(self.graph, self.nodes)

    def _places(self, x: Rows) -> Integers:
        """The rows as numbers of nodes."""
        assert self.nodes is not None
        out = np.empty(len(x), dtype=np.intp)
        for i, thing in enumerate(x.things):
            place = _whole(thing)
            if place is None or not 0 <= place < self.nodes:
                what = f"the nodes 0 to {self.nodes - 1} of its graph"
                why = "" if thing is None else f"{np.asarray(thing).ravel().tolist()!r:.40}"
                raise unreadable(type(self).__name__, what, thing, i, x.name, why)
            out[i] = place
        return out


@leaf
class Diffusion(NodeKernel):
    """Heat that starts at one node and is found at another after a time β (Kondor and Lafferty).

        k(i, j) = [e^(-β L)]_ij

    `graph` comes in any form; its nodes are numbered from 0 (those of networkx in the order of `graph.nodes`)
    and its labels are not read. `nodes` says how many there are, where edges alone do not.

    >>> Diffusion([(0, 1), (1, 2)], 1.0)([0, 1, 2]).round(3)
    array([[0.526, 0.317, 0.158],
           [0.317, 0.367, 0.317],
           [0.158, 0.317, 0.526]])
    """

    graph: Edges = given()
    beta: float = positive(1.0)
    nodes: int | None = given(None)

    because: ClassVar = Fact(
        "positive function of a symmetric matrix", "e^(-βL) has the eigenvectors of L, with e^(-βλ) > 0"
    )
    formula: ClassVar = r"\bigl[e^{-<beta> L}\bigr]_{xz}"

    def transformed(self, eigenvalues: Array) -> tuple[Array, Array]:
        value = np.exp(-self.beta * eigenvalues)
        return value, -eigenvalues * value


@leaf
class RegularizedLaplacian(NodeKernel):
    """Paths between two nodes, each step dampened (Smola and Kondor).

        k(i, j) = [(I + β L)⁻¹]_ij

    `graph` and `nodes` are those of `Diffusion`.

    >>> RegularizedLaplacian([(0, 1)], 1.0)([0, 1])           # the inverse of [[2, -1], [-1, 2]]
    array([[0.66666667, 0.33333333],
           [0.33333333, 0.66666667]])
    """

    graph: Edges = given()
    beta: float = positive(1.0)
    nodes: int | None = given(None)

    because: ClassVar = Fact(
        "positive function of a symmetric matrix",
        "(I + βL)⁻¹ has the eigenvectors of L, with 1/(1 + βλ) > 0, since λ ≥ 0",
    )
    formula: ClassVar = r"\bigl[(I + <beta> L)^{-1}\bigr]_{xz}"

    def transformed(self, eigenvalues: Array) -> tuple[Array, Array]:
        value = 1 / (1 + self.beta * eigenvalues)
        return value, -eigenvalues * value**2


@lru_cache(maxsize=8)
def _eigenpairs(edges: Edges, nodes: int) -> tuple[Array, Array]:
    """Those of the Laplacian; an edge from a node to itself adds nothing to it."""
    L = np.zeros((nodes, nodes))
    for a, b in edges:
        if a != b:
            L[a, b] = L[b, a] = -1.0
            L[a, a] += 1.0
            L[b, b] += 1.0
    eigenvalues, vectors = np.linalg.eigh(L)
    return np.maximum(eigenvalues, 0.0), vectors


def _as_tuples(graph: Setting) -> Setting:
    """A list of edges as it comes from text: tuples of two numbers."""
    if isinstance(graph, tuple) and all(isinstance(edge, list | tuple) and len(edge) == 2 for edge in graph):
        return list(graph)
    return graph


def _whole(thing: Thing) -> int | None:
    """A number of a node, alone or as a row of one; None for anything else."""
    if isinstance(thing, np.ndarray | list | tuple) and len(thing) == 1:
        thing = thing[0]
    if isinstance(thing, bool | np.bool_) or not isinstance(thing, int | float | np.integer | np.floating):
        return None
    return int(thing) if thing == np.floor(thing) else None
