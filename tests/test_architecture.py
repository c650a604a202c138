"""The kernel and the machine that ARCHITECTURE.md shows are what they say they are."""

import doctest
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import RegressorMixin, clone

from mercer import RBF, Custom, Nystroem, parse
from mercer.errors import InvalidKernelError
from mercer.kernels import Radial, leaf
from mercer.kernels.leaves.leaf import LEAVES
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.targets import check_numbers
from mercer.solve.solution import Certificate, Status

PAGE = Path(__file__).parent.parent / "ARCHITECTURE.md"
X = np.random.default_rng(0).normal(size=(20, 2))
Y = X[:, 0] + 1.0


@pytest.fixture(scope="module")
def machine():
    """The class of the page, as it is written there."""
    (text,) = re.findall(r"```python\n(class KernelMean.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    names = {
        "RegressorMixin": RegressorMixin,
        "Machine": Machine,
        "Invalid": Invalid,
        "check_numbers": check_numbers,
        "Certificate": Certificate,
        "Status": Status,
        "__name__": "shown",
    }
    exec(compile(text, str(PAGE), "exec"), names)
    return names["KernelMean"]


@pytest.fixture(scope="module")
def kernel():
    """The kernel of the page, as it is written there; afterwards no other test knows its name."""
    (text,) = re.findall(
        r"```python\n(@leaf\nclass Cauchy.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S
    )
    names = {"leaf": leaf, "Radial": Radial, "__name__": "shown"}
    known = dict(LEAVES)
    exec(compile(text, str(PAGE), "exec"), names)
    yield names["Cauchy"]
    LEAVES.clear()
    LEAVES.update(known)


def test_the_kernel_of_the_page_is_its_formula_proved_and_run_by_the_core(kernel):
    k = kernel(2.0)
    Z = X[:5] + 0.5
    s = ((X[:, None] - Z[None]) ** 2).sum(-1) / 4.0
    np.testing.assert_allclose(k(X, Z), 1 / (1 + s), rtol=1e-13)
    assert k.validity().status == "proved"
    assert not k.gram(X).notes
    assert parse("Cauchy(2.0)") == k


def test_the_example_of_the_page_is_its_value(kernel):
    found = doctest.DocTestFinder().find(kernel, "Cauchy", module=False, globs={"Cauchy": kernel})
    (example,) = [test for test in found if test.examples]
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_it_predicts_what_its_docstring_says(machine):
    expected = RBF(1.0)(X[:3], X) @ Y / len(X)
    np.testing.assert_allclose(machine("RBF(1.0)").fit(X, Y).predict(X[:3]), expected)
    given = machine("precomputed").fit(RBF(1.0)(X), Y)
    np.testing.assert_allclose(given.predict(RBF(1.0)(X[:3], X)), expected)
    rows = machine("RBF(1.0)").fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(rows.predict(X[:3]), expected)
    landmarks = Nystroem(n_components=20, landmarks=np.arange(20))
    near = machine("RBF(1.0)", approximation=landmarks).fit(X, Y)
    np.testing.assert_allclose(near.predict(X[:3]), expected, atol=1e-7)
    assert "Nyström features" in str(near.certificate_)


def test_it_takes_strings_and_tables_and_is_an_estimator(machine):
    words = ["kernel", "nerve", "karma", "tern"]
    alike = Custom(lambda a, b: float(len(set(a) & set(b))))
    model = clone(machine(alike)).fit(words, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(model.predict(["kernel"]), [(5 * 1 + 3 * 2 + 2 * 3 + 3 * 4) / 4])
    frame = pd.DataFrame({"a": X[:, 0], "note": ["text"] * len(X)})
    assert machine(RBF(1.0).on("a")).fit(frame, Y).predict(frame).shape == (20,)


def test_it_refuses_what_is_no_kernel_if_strict(machine):
    with pytest.raises(InvalidKernelError):
        machine("Sigmoid(1.0)", strict=True).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loose = machine("Sigmoid(1.0)").fit(X, Y)
    assert "not positive semi-definite" in str(loose.certificate_)
