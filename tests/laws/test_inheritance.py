"""What is known of a class is known of its formula: no kernel with another formula inherits it."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.errors import ParameterError
from mercer.kernels import Counted, DotProduct, Kernel, PerColumn, Radial, algebra, leaf
from mercer.kernels.leaves.inheritance import is_ours
from mercer.kernels.leaves.leaf import LEAVES, Leaf
from mercer.kernels.leaves.recording import OfOneNumber
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.things.on_things import OnThings
from mercer.kernels.things.sets import Overlap
from mercer.kernels.things.strings import Substrings
from mercer.params import positive

X = np.random.default_rng(0).normal(size=(6, 2))
FAMILIES = {Kernel, Leaf, OfOneNumber, Radial, DotProduct, PerColumn, Counted, OnThings, Overlap, Substrings}


# no formula that could be read
SAME = np.vectorize(float)


def every_class(cls=Kernel):
    """All kernels of mercer, leaves and rules, by walking the tree of classes."""
    found = {cls} if is_ours(cls) else set()
    for each in cls.__subclasses__():
        found |= every_class(each)
    return found


FINAL = sorted(every_class() - FAMILIES, key=lambda cls: cls.__name__)


@pytest.fixture(autouse=True)
def _forget():
    """Leaves of these tests are not known to the others."""
    before = dict(LEAVES)
    yield
    LEAVES.clear()
    LEAVES.update(before)


def another(self, *args):
    return -np.ones((len(X), len(X)))


METHODS = (
    "value",
    "term",
    "block",
    "diagonal",
    "_evaluate",
    "squares",
    "mapped",
    "__call__",
    "proof",
    "gram",
)
FIELDS = {"because": Fact("a fact", "of nothing"), "power": positive(2.0), "reduction": "product"}


def test_the_walk_sees_every_leaf_and_every_rule():
    assert {cls for cls in LEAVES.values() if is_ours(cls)} <= set(FINAL)
    assert {algebra.Sum, algebra.Normalized} <= set(FINAL)


@pytest.mark.parametrize("cls", FINAL, ids=lambda cls: cls.__name__)
def test_a_kernel_of_mercer_with_another_formula_is_refused_when_its_class_is_made(cls):
    for name, value in {**dict.fromkeys(METHODS, another), **FIELDS}.items():
        with pytest.raises(ParameterError, match=f"Mine changes {name} of {cls.__name__}"):
            type("Mine", (cls,), {"__module__": "mine", name: value})


@pytest.mark.parametrize("cls", [c for c in FINAL if issubclass(c, Leaf)], ids=lambda cls: cls.__name__)
def test_another_name_and_another_text_are_not_another_function(cls):
    made = type("Mine", (cls,), {"__module__": "mine", "__doc__": "Mine.", "formula": "mine"})
    assert issubclass(made, cls)


@pytest.mark.parametrize("cls", [mercer.RBF, mercer.Linear], ids=lambda cls: cls.__name__)
def test_another_name_has_the_same_matrix_and_the_same_proof(cls):
    made = type("Mine", (cls,), {"__module__": "mine"})
    given = (1.0,) if cls is mercer.RBF else ()
    np.testing.assert_array_equal(made(*given)(X), cls(*given)(X))
    assert made(*given).validity().status == "proved"


@pytest.mark.parametrize(
    ("family", "method"), [(Radial, "value"), (DotProduct, "value"), (PerColumn, "term")], ids=str
)
def test_a_leaf_of_ones_own_passes_its_fact_on_to_no_other_formula(family, method):
    fact = {"because": Fact("a fact", "its author says so"), "divisible": "its author says so"}
    first = leaf(
        type("First", (family,), {"__module__": "mine", **fact, method: lambda self, *a: SAME(a[0])})
    )
    second = leaf(type("Second", (first,), {"__module__": "mine", method: lambda self, *a: -SAME(a[0])}))
    renamed = leaf(type("Renamed", (first,), {"__module__": "mine"}))
    assert first().proof().declared() and renamed().proof().declared()
    assert second().proof() is None and second().root_proof() is None
    k = second()
    for expression in (k, k + 1.0, 2.0 * k, k * k, k.exp(), k**0.5):
        assert expression.proof() is None


def test_the_proof_that_a_class_brings_of_itself_is_its_authors_word():
    @leaf
    class Boast(Radial):
        def value(self, s):
            return -s

        def slope(self, s):
            return -np.ones_like(s)

        def proof(self):
            return Proof(self, Fact("a theorem", "of its author"))

    for k in (Boast(), 2.0 * Boast() + mercer.RBF(1.0)):
        answer = k.validity()
        assert answer.status == "declared"
        assert answer.assumptions == ("the class Boast brings its own proof",)
        assert "Taken from you" in str(answer)
