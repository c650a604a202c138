"""A user's leaf that lacks a formula or a declaration is answered by a sentence that says what to add."""

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.errors import ParameterError
from mercer.kernels import DotProduct, PerColumn, Radial, leaf
from mercer.kernels.leaves.leaf import LEAVES
from mercer.params import positive

X = np.random.default_rng(0).normal(size=(9, 2))


@pytest.fixture(autouse=True)
def _forget():
    """Leaves of these tests are not known to the others."""
    before = dict(LEAVES)
    yield
    LEAVES.clear()
    LEAVES.update(before)


def radial(methods):
    return leaf(type("Mine", (Radial,), {"__module__": __name__, "__annotations__": {}, **methods}))(1.0)


def dot_product(methods):
    return leaf(type("Mine", (DotProduct,), {"__module__": __name__, "__annotations__": {}, **methods}))()


@pytest.mark.parametrize("family", [radial, dot_product], ids=lambda f: f.__name__)
def test_a_leaf_without_a_value_says_so(family):
    with pytest.raises(ParameterError, match=r"Mine has no value.*def value\(self, "):
        family({})(X)


def test_a_leaf_that_is_no_formula_is_evaluated_and_asks_for_a_slope_when_it_is_differentiated():
    k = radial({"value": lambda self, s: np.where(s < 0, 1.0, 1 / (1 + s))})
    assert k(X).shape == (9, 9)
    KernelRidge(k).fit(X, X[:, 0])
    with pytest.raises(ParameterError, match=r"no formula: it looks at the value.*def slope\(self, s\)"):
        k.gram(X).contract(np.ones(9))


def test_a_leaf_per_column_without_a_term_says_so():
    k = leaf(type("Mine", (PerColumn,), {"__module__": __name__, "__annotations__": {}}))()
    with pytest.raises(ParameterError, match=r"Mine has no term.*def term\(self, x, z"):
        k(X)


@pytest.mark.parametrize("family", [Radial, DotProduct, PerColumn])
def test_an_undeclared_field_is_refused_when_the_class_is_made(family):
    body = {"__module__": __name__, "__annotations__": {"power": float}, "power": 2.0}
    with pytest.raises(ParameterError, match=r"'power' is not declared.*power: float = positive"):
        leaf(type("Mine", (family,), body))


@pytest.mark.parametrize("name", ["block", "text", "proof", "nesting", "gram"])
def test_a_field_that_would_hide_a_method_of_kernels_is_refused(name):
    body = {"__module__": __name__, "__annotations__": {name: float}, name: positive(2.0)}
    with pytest.raises(ParameterError, match=f"every kernel has a '{name}' of its own"):
        leaf(type("Mine", (DotProduct,), body))


def test_a_class_that_is_not_decorated_says_so_at_birth():
    class Forgotten(DotProduct):
        power: float = positive(2.0)

        def value(self, t):
            return t

    class Plain(DotProduct):
        def value(self, t):
            return t

    for cls in (Forgotten, Plain):
        with pytest.raises(ParameterError, match=f"@leaf in the line above class {cls.__name__}"):
            cls()
