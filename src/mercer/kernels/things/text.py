"""Documents as text: the cosine of the words, or of the groups of characters, that two have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import OpenParameterError, ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.categories import category
from mercer.kernels.things.counted import Counted
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.params import given, whole
from mercer.sparse import Matrix
from mercer.typing import Array, Integers

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

TOKENS = {"words": "word", "characters": "char_wb"}
# A word of one letter counts too.
WORD = r"(?u)\b\w+\b"
# How a space is shown in a group of characters.
SPACE = "␣"
COUNTING = ("counts", "presence", "logarithms")
WEIGHTING = ("equal", "idf")


@leaf
class Text(Counted):
    """The cosine of two documents, each a bag of words.

        k(x, z) = Σ_w c_w(x) c_w(z) / √(Σ_w c_w(x)² Σ_w c_w(z)²)

    `tokens` are "words", or "characters": groups of characters inside words, which forgive spelling and
    endings. `shortest` to `longest` of them that follow one another are one feature. `counting` takes c_w as
    how often w occurs ("counts"), whether it does ("presence"), or 1 + log of how often ("logarithms"). With
    `weighting` "idf", c_w is that times log((1 + n)/(1 + n_w)) + 1, where n_w of the n documents of fit have
    the word: rare words count more, and words that no document of fit had do not count at all. `vocabulary`
    and `weights` are those words and numbers; `fit` or `resolved(X)` find them. Case does not matter. Tokens
    are found by scikit-learn's `CountVectorizer`. A text without tokens, and a missing one, has nothing in
    common with any other.

    >>> Text()(["to be or not to be", "To be", "or"]).round(3)            # 2·1 + 2·1 over √10 √2
    array([[1.   , 0.894, 0.316],
           [0.894, 1.   , 0.   ],
           [0.316, 0.   , 1.   ]])
    >>> Text(weighting="idf").resolved(["a b", "a"])
    Text("words", weighting="idf", vocabulary=["a", "b"], weights=[1.0, 1.4054651081081644])
    """

    tokens: str = given("words")
    shortest: int = whole(1, at_least=1)
    longest: int = whole(1, at_least=1)
    counting: str = given("counts")
    weighting: str = given("equal")
    vocabulary: tuple[str, ...] | None = given(None)
    weights: tuple[float, ...] | None = given(None)

    formula: ClassVar = r"\frac{\sum_w c_w(x)\,c_w(z)}{\sqrt{\sum_w c_w(x)^2\,\sum_w c_w(z)^2}}"
    things_are: ClassVar = "texts"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require("tokens", self.tokens, tuple(TOKENS))
        _require("counting", self.counting, COUNTING)
        _require("weighting", self.weighting, WEIGHTING)
        if self.longest < self.shortest:
            raise ParameterError(
                f"Text: longest must be at least shortest; got {self.longest} and {self.shortest}."
            )
        self._keep_weights()

    def _keep_weights(self) -> None:
        if self.vocabulary is None and self.weights is None:
            return
        if self.vocabulary is None or self.weights is None or self.weighting != "idf":
            raise ParameterError('Text: vocabulary and weights belong together, and to weighting="idf".')
        words = tuple(str(word) for word in self.vocabulary)
        weights = tuple(float(weight) for weight in self.weights)
        if len(words) != len(weights) or len(set(words)) != len(words):
            raise ParameterError(
                f"Text: vocabulary has {len(set(words))} different words and weights {len(weights)} numbers. "
                "Give one number for each word."
            )
        object.__setattr__(self, "vocabulary", words)
        object.__setattr__(self, "weights", weights)

    # ── left to the data ────────────────────────────────────────────────────────────────────────────────────

    def leaves_open(self) -> bool:
        return self.weighting == "idf" and self.vocabulary is None

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        if not self.leaves_open():
            return self
        words, A = rows.remembered(self._way_of_reading(), lambda: self._tokens(rows.things, rows.name, None))
        w = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=float)
        having = np.asarray(A.astype(bool).T @ w).ravel()
        met = having > 0
        idf = np.log((1 + w.sum()) / (1 + having[met])) + 1
        return self.changed(
            vocabulary=tuple(word for word, there in zip(words, met, strict=True) if there),
            weights=tuple(idf.tolist()),
        )

    # ── counting ────────────────────────────────────────────────────────────────────────────────────────────

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        words = Vocabulary()
        row = self.counts([thing], words)
        return dict(zip(words.features(), row.toarray()[0].tolist(), strict=False))

    def feature_name(self, feature: Hashable) -> str:
        """The words; in groups of characters a space is shown, so that where a word ends can be seen."""
        name = str(feature)
        if self.tokens == "characters":
            return name.replace(" ", SPACE)
        return name

    def counts(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> Matrix:
        if self.leaves_open():
            raise OpenParameterError(
                f"{self} has to see documents before it has values: how rare a word is, is left to the data. "
                "Close it by your rows, k.resolved(X), or hand it to a machine, which closes it when it is "
                "fitted."
            )
        words, A = self._tokens(things, name, self.vocabulary)
        return self._weighed(words, A, vocabulary)

    def _first(self, x: Rows) -> tuple[Vocabulary, Matrix]:
        """As for every kernel that counts; what closed this kernel is not read again."""
        seen = x.recalled(self._way_of_reading())
        if seen is None or self.vocabulary != tuple(seen[0]):
            return super()._first(x)

        def make() -> tuple[Vocabulary, Matrix]:
            words = Vocabulary()
            return words, self._weighed(seen[0], seen[1].copy(), words)

        return x.remembered(self, make)

    def _way_of_reading(self) -> tuple[Hashable, ...]:
        """All that decides which tokens a text has."""
        return ("tokens", self.tokens, self.shortest, self.longest)

    def _weighed(self, words: Sequence[str], A: Matrix, vocabulary: Vocabulary) -> Matrix:
        """Rows of length 1 from how often each word is in each text; A is overwritten."""
        if self.counting == "presence":
            A.data[:] = 1.0
        elif self.counting == "logarithms":
            A.data = 1 + np.log(A.data)
        if self.weights is not None:
            A.data *= self._counting[1][A.indices]
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        squares = np.bincount(rows, weights=np.square(A.data), minlength=A.shape[0])
        A.data /= np.sqrt(squares)[rows]
        columns = _columns_in(vocabulary, words, A)
        return _in_columns(A, rows, columns, len(vocabulary))

    @property
    def _counting(self) -> tuple[CountVectorizer, Array]:
        """What finds the words of the vocabulary, and their weights: made once for a long list of words."""
        known: tuple[CountVectorizer, Array] | None = self.__dict__.get("_remembered_counting")
        if known is None:
            counter = self._counter(self.vocabulary)
            if self.vocabulary:
                # the list is looked through once here, and not for every text
                counter.transform([])
            known = counter, np.array(self.weights or ())
            object.__setattr__(self, "_remembered_counting", known)
        return known

    def _counter(self, known: tuple[str, ...] | None) -> CountVectorizer:
        from sklearn.feature_extraction.text import CountVectorizer

        return CountVectorizer(
            analyzer=TOKENS[self.tokens],
            ngram_range=(self.shortest, self.longest),
            vocabulary=list(known) if known else None,
            dtype=np.float64,
            **({"token_pattern": WORD} if self.tokens == "words" else {}),
        )

    def _tokens(
        self, things: Sequence[Thing], name: str, known: tuple[str, ...] | None
    ) -> tuple[Sequence[str], Matrix]:
        """The words, and how often each is in each text: those of these texts, or of a known list."""
        texts = list(self.each(_text, things, name))
        nothing = sparse.csr_array((len(texts), 0))
        if known is not None:
            return known, sparse.csr_array(self._counting[0].transform(texts)) if known else nothing
        counter = self._counter(None)
        analyze = counter.build_analyzer()
        if not any(analyze(text) for text in texts):
            return (), nothing
        A = sparse.csr_array(counter.fit_transform(texts))
        return counter.get_feature_names_out().tolist(), A


def _require(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParameterError(f"Text: {name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def _text(thing: Thing) -> str:
    """A text; a missing one is empty."""
    if category(thing) is None:
        return ""
    if not isinstance(thing, str):
        raise TypeError("text was expected")
    return thing


def _columns_in(vocabulary: Vocabulary, words: Sequence[str], A: Matrix) -> Integers:
    """The columns of the words; a vocabulary that has some already is asked for those in A alone."""
    if vocabulary.is_fresh:
        return vocabulary.columns_of_new(np.array(words, dtype=object))
    out = np.full(len(words), ABSENT, dtype=np.intp)
    used = np.unique(A.indices)
    out[used] = vocabulary.columns(words[j] for j in used.tolist())
    return out


def _in_columns(A: Matrix, rows: Integers, columns: Integers, width: int) -> Matrix:
    """The same entries with other columns; those without one are left out."""
    at = columns[A.indices]
    kept = at != ABSENT
    shape = (A.shape[0], max(width, 1))
    out = sparse.csr_array((A.data[kept], (rows[kept], at[kept])), shape=shape)
    out.sum_duplicates()
    return out
