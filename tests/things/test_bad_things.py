"""Things that a kernel cannot read get a sentence with their row; what is empty has a stated answer."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    SVC,
    Categorical,
    Graph,
    Hamming,
    Jaccard,
    MinMax,
    Mismatch,
    Signature,
    Spectrum,
    Text,
    WeightedDegree,
)
from mercer.errors import MercerError
from things_under_test import every_thing_kernel

CASES = [case for case in every_thing_kernel() if case.valid]
LABELLED = Graph(2, [(0, 1)], ["C", "O"])
SUBSTRINGS = [Spectrum(2), Mismatch(2, 1, alphabet="ab"), WeightedDegree(2)]
# what all rows are but the third, what the third is, and words of the answer
BAD = [
    *((k, "abab", b"ab", "bytes are no text: decode them") for k in SUBSTRINGS),
    *((k, "abab", ["a", "b"], "a list of symbols and row 0 is text") for k in SUBSTRINGS),
    *((k, ["a", "b"], "ab", "is text and row 0 is a list of symbols") for k in SUBSTRINGS),
    *((k, ["a", "b"], ["a", None], "its symbol 1 is None") for k in SUBSTRINGS),
    *((k, "abab", 3.5, "neither text nor a list") for k in SUBSTRINGS),
    (Text(), "to be", ["to", "be"], "texts, but row 2 of X is a list"),
    (Text(weighting="idf"), "to be", 3.5, "texts, but row 2 of X is a float"),
    (Hamming(), ["a", "b"], ["a"], "1 categories and row 0 has 2"),
    (Hamming(), ["a", "b"], [], "0 categories and row 0 has 2"),
    (Categorical(1.0), ["a"], ["a", "b"], "2 categories and row 0 has 1"),
    (Categorical(1.0), "a", {"a": 1}, "compares single values"),
    (Jaccard(), {"a"}, "text", "taken apart first"),
    (MinMax(), {"a": 1.0}, {"a": -1.0}, "-1.0 of 'a'"),
    (Signature(2), np.ones(3), np.array([1.0, np.nan]), "not finite"),
    (Signature(2), np.ones((3, 2)), np.ones(3), "1 channels"),
]


@pytest.mark.parametrize(("k", "good", "bad", "words"), BAD, ids=lambda v: repr(v)[:24])
def test_a_bad_thing_is_named_by_its_row(k, good, bad, words):
    with pytest.raises(MercerError, match="row 2") as refused:
        k.resolved([good, good, bad])([good, good, bad])
    assert words in str(refused.value)
    with pytest.raises(MercerError, match="row 2"):
        SVC(k).fit([good, good, bad], [0, 1, 1])


@pytest.mark.parametrize("case", CASES, ids=repr)
@pytest.mark.parametrize("bad", [object(), 2.5 + 1j], ids=["object", "complex"])
def test_what_is_no_such_thing_at_all_is_named_by_its_row(case, bad):
    if type(case.kernel).__name__ in ("Categorical", "Hamming"):
        pytest.skip("any value is a category")
    with pytest.raises(MercerError, match=r"row 2 of X"):
        case.kernel([*case.things[:2], bad])


def test_two_samples_in_two_forms_are_refused():
    with pytest.raises(MercerError, match="X has text and Z a list of symbols"):
        Spectrum(2)(["abab"], [["a", "b"]])
    with pytest.raises(MercerError, match="Z has 1 columns of categories and X 2"):
        Hamming()([["a", "b"]], [["a"]])
    model = SVC(Spectrum(1)).fit(["ab", "cd"], [0, 1])
    with pytest.raises(MercerError, match="never equal"):
        model.predict([["a", "b"]])


@pytest.mark.parametrize(
    ("k", "good", "empty", "own"),
    [
        *((k, "abab", "", 0.0) for k in SUBSTRINGS),
        *((k, ["a", "b"], [], 0.0) for k in SUBSTRINGS),
        (Text(), "to be", "", 0.0),
        (Jaccard(), {"a"}, set(), 1.0),
        (MinMax(), {"a": 1.0}, {}, 1.0),
    ],
    ids=lambda v: repr(v)[:24],
)
def test_what_is_empty_has_nothing_in_common_with_what_is_not(k, good, empty, own):
    K = k([good, empty])
    assert K[0, 1] == K[1, 0] == 0.0 and K[1, 1] == own
