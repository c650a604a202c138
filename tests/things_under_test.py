"""Kernels on things that are not vectors, beside samples of such things and a slow reference.

`every_thing_kernel()` holds every leaf on things; a law checks that none is missing. To put a new leaf under
all laws, add one case: a kernel, a sample on which it is defined, and its value for two things, written from
the formula.
"""

import functools
import itertools
import math
import re
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs_under_test import graph_cases, node_cases
from mercer.kernels import (
    Categorical,
    EditDistance,
    GlobalAlignment,
    Hamming,
    Jaccard,
    Kernel,
    MinMax,
    Mismatch,
    Signature,
    Spectrum,
    Subsequence,
    Text,
    WeightedDegree,
)
from mercer.kernels.leaves.leaf import LEAVES


@dataclass(frozen=True)
class ThingCase:
    """A kernel, things it takes, and k(a, b) by a loop."""

    name: str
    kernel: Kernel
    things: list[Any]
    reference: Callable[[Any, Any], float]
    valid: bool = True
    """Whether it is positive semi-definite."""
    takes_missing: bool = False
    """Whether None is a thing like others."""
    features: Callable[[Any], dict[Hashable, float]] | None = None
    """φ of one thing, where the kernel has a sparse map."""

    def __repr__(self) -> str:
        return self.name


def registered_things() -> dict[str, type]:
    """The leaves on things that mercer itself registers, those of its doctests left out."""
    ours = {n: cls for n, cls in LEAVES.items() if cls.__module__.startswith("mercer.kernels.things")}
    return {n: cls for n, cls in ours.items() if getattr(sys.modules[cls.__module__], n, None) is cls}


def _strings(n: int, alphabet: str, longest: int, seed: int) -> list[str]:
    """Random strings: of no symbol, of one, of many, some of them equal."""
    r = np.random.default_rng(seed)
    out = ["", alphabet[0], alphabet[0] * longest]
    for _ in range(n - 4):
        out.append("".join(r.choice(list(alphabet), size=int(r.integers(0, longest + 1)))))
    return [*out, out[3]]


DNA = _strings(14, "ACGT", 12, 0)
LETTERS = _strings(12, "abc é", 9, 1)


def _shared_substrings(length: int) -> Callable[[str, str], float]:
    def value(a: str, b: str) -> float:
        pairs = 0
        for i in range(len(a) - length + 1):
            for j in range(len(b) - length + 1):
                pairs += a[i : i + length] == b[j : j + length]
        return float(pairs)

    return value


COLOURS = ["red", "blue", "red", "", None, "1", float("nan")]
CELLS = [["red", 1, True], ["blue", 1, None], ["red", 2.5, float("nan")], ["", 1, False], ["red", 1, True]]


def _same(a: Any, b: Any) -> bool:
    """Whether two cells are the same category; what is missing is one."""
    gone = [v is None or v != v for v in (a, b)]
    return all(gone) if any(gone) else a == b


def _categories(*lengths: float) -> Callable[[Any, Any], float]:
    def value(a: Any, b: Any) -> float:
        a, b = (v if isinstance(v, list) else [v] for v in (a, b))
        return float(np.exp(-sum((not _same(p, q)) / s for p, q, s in zip(a, b, lengths, strict=True))))

    return value


def _agreement(a: Any, b: Any) -> float:
    return float(np.mean([_same(p, q) for p, q in zip(a, b, strict=True)]))


DOCUMENTS = ["to be or not to be", "To BE", "or", "", None, "a a a b", "b, a; (b) a!", "naïve café"]


def _cosine_of_words(
    weight: Callable[[int], float], longest: int = 1, weights: dict[str, float] | None = None
) -> Callable[[Any, Any], float]:
    def bag(text: Any) -> dict[str, float]:
        words = re.findall(r"[^\W_]+", (text or "").lower())
        groups = [
            " ".join(words[i : i + m]) for m in range(1, longest + 1) for i in range(len(words) - m + 1)
        ]
        found = {group: weight(groups.count(group)) for group in groups}
        if weights is None:
            return found
        return {group: value * weights[group] for group, value in found.items() if group in weights}

    def value(a: Any, b: Any) -> float:
        x, z = bag(a), bag(b)
        dot = sum(x[w] * z.get(w, 0.0) for w in x)
        return (
            dot / math.sqrt(sum(v * v for v in x.values()) * sum(v * v for v in z.values()))
            if x and z
            else 0.0
        )

    return value


def _near_words(length: int, mismatches: int, alphabet: str) -> Callable[[str, str], float]:
    """Every word of the alphabet, one by one."""

    def found(a: str, word: tuple[str, ...]) -> int:
        pieces = [a[i : i + length] for i in range(len(a) - length + 1)]
        return sum(sum(p != q for p, q in zip(piece, word, strict=True)) <= mismatches for piece in pieces)

    def value(a: str, b: str) -> float:
        words = itertools.product(alphabet, repeat=length)
        return float(sum(found(a, word) * found(b, word) for word in words))

    return value


def _gapped(length: int, decay: float) -> Callable[[str, str], float]:
    """Every subsequence, one by one."""

    def bag(a: str) -> dict[tuple[str, ...], float]:
        out: dict[tuple[str, ...], float] = {}
        for places in itertools.combinations(range(len(a)), length):
            word = tuple(a[i] for i in places)
            out[word] = out.get(word, 0.0) + decay ** (places[-1] - places[0] + 1)
        return out

    def value(a: str, b: str) -> float:
        x, z = bag(a), bag(b)
        return math.fsum(x[u] * z.get(u, 0.0) for u in x)

    return value


def _weighted_degree(degree: int, shift: int) -> Callable[[str, str], float]:
    """The sum over degrees and both places, as it is written."""

    def value(a: str, b: str) -> float:
        total = 0.0
        for d in range(1, degree + 1):
            beta = 2 * (degree - d + 1) / (degree * (degree + 1))
            for i in range(len(a) - d + 1):
                for j in range(max(0, i - shift), min(len(b) - d, i + shift) + 1):
                    weight = 1.0 if i == j else 1 / (2 * (abs(i - j) + 1))
                    total += beta * weight * (a[i : i + d] == b[j : j + d])
        return total

    return value


def _edits(lengthscale: float) -> Callable[[str, str], float]:
    """Levenshtein's recursion, as it is written."""

    @functools.cache
    def distance(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        replaced = distance(a[1:], b[1:]) + (a[0] != b[0])
        return min(replaced, distance(a[1:], b) + 1, distance(a, b[1:]) + 1)

    return lambda a, b: math.exp(-distance(a, b) / lengthscale)


def _string_kernels() -> list[ThingCase]:
    lists = [list(s) for s in DNA]
    return [
        ThingCase("mismatch", Mismatch(3, 1, alphabet="ACGT"), DNA, _near_words(3, 1, "ACGT")),
        ThingCase("mismatch-outside", Mismatch(2, 1, alphabet="ab"), LETTERS, _near_words(2, 1, "ab")),
        ThingCase("mismatch-symbols", Mismatch(2, 1, alphabet="ACGT"), lists, _near_words(2, 1, "ACGT")),
        ThingCase("subsequence-1", Subsequence(1, 0.7), LETTERS, _gapped(1, 0.7)),
        ThingCase("subsequence-3", Subsequence(3, 0.6), DNA, _gapped(3, 0.6)),
        ThingCase("subsequence-symbols", Subsequence(2, 0.6), lists, _gapped(2, 0.6)),
        ThingCase("weighted-degree", WeightedDegree(3), DNA, _weighted_degree(3, 0)),
        ThingCase("weighted-degree-shift", WeightedDegree(2, shift=3), LETTERS, _weighted_degree(2, 3)),
        ThingCase("edit-distance", EditDistance(3.0), LETTERS, _edits(3.0), valid=False),
    ]


SETS = [{"a", "b"}, {"b"}, set(), frozenset("abc"), {"a", "b"}, {1, 2, "a"}, set(), ["b", "a", "b"]]
BASKETS = [{"a": 2, "b": 1.5}, {"b": 0.5, "c": 0}, {}, ["a", "b", "a"], {"a": 2, "b": 1.5}, {"a"}]
AMOUNTS = [[1.0, 0.0, 2.0], [0.5, 3.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [0.0, 1e-3, 7.0]]


def _amounts(thing: Any) -> dict[Any, float]:
    if isinstance(thing, dict):
        return thing
    elements = list(thing)
    return {element: elements.count(element) for element in elements}


def _jaccard(a: Any, b: Any) -> float:
    either = set(a) | set(b)
    return len(set(a) & set(b)) / len(either) if either else 1.0


def _min_max(a: Any, b: Any) -> float:
    if not isinstance(a, list) or isinstance(next(iter(a), 0.0), str) or isinstance(b, dict | set):
        x, z = _amounts(a), _amounts(b)
    else:
        x, z = dict(enumerate(a)), dict(enumerate(b))
    most = math.fsum(max(x.get(f, 0.0), z.get(f, 0.0)) for f in {*x, *z})
    least = math.fsum(min(x.get(f, 0.0), z.get(f, 0.0)) for f in {*x, *z})
    return least / most if most else 1.0


def _set_kernels() -> list[ThingCase]:
    return [
        ThingCase("jaccard", Jaccard(), SETS, _jaccard),
        ThingCase("min-max", MinMax(), BASKETS, _min_max),
        ThingCase("min-max-rows", MinMax(), AMOUNTS, _min_max),
    ]


def _series(n: int, channels: int, longest: int, seed: int) -> list[np.ndarray]:
    """Random walks of different lengths, one of them a single point, two of them equal."""
    r = np.random.default_rng(seed)
    out = [0.5 * r.normal(size=(1 + i % longest, channels)).cumsum(axis=0) for i in range(n - 1)]
    return [*out, out[2]]


WALKS = _series(9, 2, 5, 3)
LINES = [walk[:, 0] for walk in _series(8, 1, 6, 4)]


def _signature(depth: int, scale: float) -> Callable[[np.ndarray, np.ndarray], float]:
    """Sums over places i_1 ≤ … ≤ i_m of the lines, over the factorials of how often each is taken."""

    def features(path: np.ndarray) -> dict[tuple[int, ...], float]:
        path = np.reshape(path, (len(path), -1))
        steps = scale * np.diff(path, axis=0)
        out = {}
        for m in range(depth + 1):
            for word in itertools.product(range(path.shape[1]), repeat=m):
                terms = []
                for places in itertools.combinations_with_replacement(range(len(steps)), m):
                    repeats = math.prod(math.factorial(places.count(i)) for i in set(places))
                    terms.append(math.prod(steps[i, c] for i, c in zip(places, word, strict=True)) / repeats)
                out[word] = math.fsum(terms)
        return out

    def value(a: np.ndarray, b: np.ndarray) -> float:
        x, z = features(a), features(b)
        return math.fsum(x[w] * z[w] for w in x)

    return value


def _alignments(length: float, band: int) -> Callable[[np.ndarray, np.ndarray], float]:
    """The recursion over the last pair of every alignment."""

    def total(a: np.ndarray, b: np.ndarray) -> float:
        def local(i: int, j: int) -> float:
            w = max(0.0, 1 - abs(i - j) / band) if band else 1.0
            g = w * math.exp(-float(np.sum(np.square(a[i] - b[j]))) / (2 * length**2))
            return g / (2 - g)

        @functools.cache
        def up_to(i: int, j: int) -> float:
            if i < 0 or j < 0:
                return 0.0
            if i == j == 0:
                return local(0, 0)
            return local(i, j) * (up_to(i - 1, j) + up_to(i, j - 1) + up_to(i - 1, j - 1))

        return up_to(len(a) - 1, len(b) - 1)

    return lambda a, b: total(a, b) / math.sqrt(total(a, a) * total(b, b))


def _series_kernels() -> list[ThingCase]:
    return [
        ThingCase("signature", Signature(3), WALKS, _signature(3, 1.0)),
        ThingCase("signature-line", Signature(2, scale=0.7), LINES, _signature(2, 0.7)),
        ThingCase("alignment", GlobalAlignment(0.8), WALKS, _alignments(0.8, 0)),
        ThingCase("alignment-band", GlobalAlignment(1.5, triangular=3), LINES, _alignments(1.5, 3)),
    ]


def every_thing_kernel() -> list[ThingCase]:
    return [
        *_string_kernels(),
        *_set_kernels(),
        *_series_kernels(),
        ThingCase("categories", Categorical(0.7), COLOURS, _categories(0.7), takes_missing=True),
        ThingCase(
            "categories-each",
            Categorical([0.7, 2.0, 1.0]),
            CELLS,
            _categories(0.7, 2.0, 1.0),
            takes_missing=True,
        ),
        ThingCase("hamming", Hamming(), CELLS, _agreement),
        ThingCase("text", Text(), DOCUMENTS, _cosine_of_words(lambda c: c), takes_missing=True),
        ThingCase(
            "text-pairs",
            Text("words", 1, 2, counting="logarithms"),
            DOCUMENTS,
            _cosine_of_words(lambda c: 1 + math.log(c), longest=2),
            takes_missing=True,
        ),
        ThingCase(
            "text-weights",
            Text(weighting="idf", vocabulary=["a", "b", "be", "to"], weights=[1.0, 1.5, 2.0, 0.5]),
            DOCUMENTS,
            _cosine_of_words(float, weights={"a": 1.0, "b": 1.5, "be": 2.0, "to": 0.5}),
            takes_missing=True,
        ),
        ThingCase("spectrum-1", Spectrum(1), LETTERS, _shared_substrings(1)),
        ThingCase("spectrum-3", Spectrum(3), DNA, _shared_substrings(3)),
        ThingCase("spectrum-symbols", Spectrum(2), [list(s) for s in DNA], _shared_substrings(2)),
        *(ThingCase(name, *rest) for name, *rest in [*graph_cases(), *node_cases()]),
    ]
