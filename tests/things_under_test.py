"""Kernels on things that are not vectors, beside samples of such things and a slow reference.

`every_thing_kernel()` holds every leaf on things; a law checks that none is missing. To put a new leaf under
all laws, add one case: a kernel, a sample on which it is defined, and its value for two things, written from
the formula.
"""

import math
import re
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs_under_test import graph_cases, node_cases
from mercer.kernels import Categorical, Hamming, Kernel, Spectrum, Text
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


def _cosine_of_words(weight: Callable[[int], float], longest: int = 1) -> Callable[[Any, Any], float]:
    def bag(text: Any) -> dict[str, float]:
        words = re.findall(r"[^\W_]+", (text or "").lower())
        groups = [
            " ".join(words[i : i + m]) for m in range(1, longest + 1) for i in range(len(words) - m + 1)
        ]
        return {group: weight(groups.count(group)) for group in groups}

    def value(a: Any, b: Any) -> float:
        x, z = bag(a), bag(b)
        dot = sum(x[w] * z.get(w, 0.0) for w in x)
        return (
            dot / math.sqrt(sum(v * v for v in x.values()) * sum(v * v for v in z.values()))
            if x and z
            else 0.0
        )

    return value


def every_thing_kernel() -> list[ThingCase]:
    return [
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
        ThingCase("spectrum-1", Spectrum(1), LETTERS, _shared_substrings(1)),
        ThingCase("spectrum-3", Spectrum(3), DNA, _shared_substrings(3)),
        ThingCase("spectrum-symbols", Spectrum(2), [list(s) for s in DNA], _shared_substrings(2)),
        *(ThingCase(name, *rest) for name, *rest in [*graph_cases(), *node_cases()]),
    ]
