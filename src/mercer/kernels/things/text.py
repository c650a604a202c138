"""Documents as text: the cosine of the words, or of the groups of characters, that two have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mercer.errors import ParameterError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.categories import category
from mercer.kernels.things.counted import Counted
from mercer.params import given, whole

TOKENS = {"words": "word", "characters": "char_wb"}
COUNTING = ("counts", "presence", "logarithms")


@leaf
class Text(Counted):
    """The cosine of two documents, each a bag of words.

        k(x, z) = Σ_w c_w(x) c_w(z) / √(Σ_w c_w(x)² Σ_w c_w(z)²)

    `tokens` are "words", or "characters": groups of characters inside words, which forgive spelling and
    endings. `shortest` to `longest` of them that follow one another are one feature. `counting` takes c_w as
    how often w occurs ("counts"), whether it does ("presence"), or 1 + log of how often ("logarithms"). Case
    does not matter. Tokens are found by scikit-learn's `CountVectorizer`. A text without tokens, and a
    missing one, has nothing in common with any other.

    >>> Text()(["to be or not to be", "To be", "or"]).round(3)            # 2·1 + 2·1 over √10 √2
    array([[1.   , 0.894, 0.316],
           [0.894, 1.   , 0.   ],
           [0.316, 0.   , 1.   ]])
    """

    tokens: str = given("words")
    shortest: int = whole(1, at_least=1)
    longest: int = whole(1, at_least=1)
    counting: str = given("counts")

    formula: ClassVar = r"\frac{\sum_w c_w(x)\,c_w(z)}{\sqrt{\sum_w c_w(x)^2\,\sum_w c_w(z)^2}}"
    things_are: ClassVar = "texts"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokens not in TOKENS:
            raise ParameterError(f"Text: tokens must be 'words' or 'characters'; got {self.tokens!r}.")
        if self.counting not in COUNTING:
            raise ParameterError(
                f"Text: counting must be one of {', '.join(map(repr, COUNTING))}; got {self.counting!r}."
            )
        if self.longest < self.shortest:
            raise ParameterError(
                f"Text: longest must be at least shortest; got {self.longest} and {self.shortest}."
            )

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        if category(thing) is None:
            return {}
        if not isinstance(thing, str):
            raise TypeError("text was expected")
        found = Counter(_analyzer(self.tokens, self.shortest, self.longest)(thing))
        values = np.array(list(found.values()), dtype=float)
        if self.counting == "presence":
            values = np.ones(len(values))
        elif self.counting == "logarithms":
            values = 1 + np.log(values)
        norm = np.sqrt(values @ values)
        return dict(zip(found, (values / norm).tolist(), strict=True))


@lru_cache(maxsize=64)
def _analyzer(tokens: str, shortest: int, longest: int) -> Callable[[str], list[str]]:
    """What takes a text apart."""
    from sklearn.feature_extraction.text import CountVectorizer

    made: Callable[[str], list[str]] = CountVectorizer(
        analyzer=TOKENS[tokens], ngram_range=(shortest, longest), token_pattern=r"(?u)\b\w+\b"
    ).build_analyzer()
    return made
