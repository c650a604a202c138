"""Documents: rare words weigh more, as scikit-learn has it; whole samples are counted at once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from mercer import SVC, Text, parse
from mercer.arrays import Rows
from mercer.errors import InputTypeError, OpenParameterError, ParameterError

r = np.random.default_rng(8)
WORDS = [f"w{i}" for i in range(60)] + ["naïve", "a", "it's", "2nd"]
DOCUMENTS = [" ".join(r.choice(WORDS, size=int(n))) for n in r.integers(0, 25, size=50)]
NEW = [*(" ".join(r.choice([*WORDS, "unseen", "Other"], size=12)) for _ in range(9)), "", "unseen"]


@pytest.mark.parametrize("longest", [1, 2])
@pytest.mark.parametrize("counting", ["counts", "presence", "logarithms"])
@pytest.mark.parametrize("tokens", ["words", "characters"])
def test_weights_of_rare_words_are_those_of_scikit_learn(tokens, counting, longest):
    k = Text(tokens, 1, longest, counting=counting, weighting="idf").resolved(DOCUMENTS)
    peer = TfidfVectorizer(
        analyzer={"words": "word", "characters": "char_wb"}[tokens],
        ngram_range=(1, longest),
        **({"token_pattern": r"(?u)\b\w+\b"} if tokens == "words" else {}),
        binary=counting == "presence",
        sublinear_tf=counting == "logarithms",
    ).fit(DOCUMENTS)
    A, B = peer.transform(DOCUMENTS), peer.transform(NEW)
    np.testing.assert_allclose(k(DOCUMENTS), (A @ A.T).toarray(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(k(NEW, DOCUMENTS), (B @ A.T).toarray(), rtol=1e-12, atol=1e-13)
    assert parse(str(k)) == k and (len(repr(k)) < 300 or len(k.vocabulary) <= 40)
    assert list(k.vocabulary) == peer.get_feature_names_out().tolist()


def test_it_is_open_until_it_has_seen_documents():
    k = Text(weighting="idf")
    assert k.is_open and k.validity().status == "proved" and parse(str(k)) == k
    with pytest.raises(OpenParameterError, match="how rare a word is"):
        k(DOCUMENTS)
    model = SVC(k, C=1.0).fit(DOCUMENTS, np.arange(50) % 2)
    assert not model.kernel_.is_open
    np.testing.assert_array_equal(model.decision_function(["unseen"]), model.decision_function([""]))


def test_a_document_of_weight_two_is_that_document_twice():
    twice = Text(weighting="idf").resolved([*DOCUMENTS, DOCUMENTS[3]])
    weight = np.ones(50)
    weight[3] = 2.0
    assert Text(weighting="idf").resolved(DOCUMENTS, sample_weight=weight) == twice
    weight[3] = 0.0
    without = Text(weighting="idf").resolved(DOCUMENTS[:3] + DOCUMENTS[4:])
    assert Text(weighting="idf").resolved(DOCUMENTS, sample_weight=weight) == without


@pytest.mark.parametrize("k", [Text(), Text(weighting="idf")], ids=str)
def test_documents_without_any_word_have_nothing_in_common(k):
    closed = k.resolved(["", "--", None])
    np.testing.assert_array_equal(closed(["", "--", None]), np.zeros((3, 3)))
    assert parse(str(closed)) == closed


def test_where_a_word_ends_is_seen_in_the_names_of_groups_of_characters():
    assert list(Text("characters", 2, 2).features_of(["ab"]).names) == ["␣a", "ab", "b␣"]
    assert list(Text("words", 1, 2).features_of(["a b"]).names) == ["a", "a b", "b"]


def test_one_text_is_counted_like_all_of_them():
    k = Text("characters", 2, 3)
    words, A = k._first(Rows(DOCUMENTS))
    for i in (0, 7, 31):
        one = k.count(DOCUMENTS[i])
        row = {
            word: value for word, value in zip(words.features(), A[[i]].toarray()[0], strict=True) if value
        }
        assert one == pytest.approx(row)


@pytest.mark.parametrize(
    "given",
    [
        {"weighting": "tf"},
        {"tokens": "letters"},
        {"vocabulary": ["a"]},
        {"weighting": "idf", "vocabulary": ["a", "a"], "weights": [1.0, 1.0]},
        {"weighting": "idf", "vocabulary": ["a"], "weights": [1.0, 2.0]},
        {"vocabulary": ["a"], "weights": [1.0]},
    ],
    ids=str,
)
def test_bad_settings_are_refused(given):
    with pytest.raises(ParameterError, match="Text: "):
        Text(**given)


def test_a_number_among_texts_is_named_by_its_row():
    with pytest.raises(InputTypeError, match=r"row 1 of X is a int \(text was expected\)"):
        Text()(["a", 3])
