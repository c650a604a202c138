"""Parameters of estimators are declared once: every one has a domain,
and what lies outside it is refused by name.
"""

import inspect
import math
import pydoc

import numpy as np
import pytest
from tests.estimators_under_test import SUBJECTS, Subject

import mercer
from mercer.errors import ParameterError
from mercer.machines.shared.base import KernelEstimator
from mercer.machines.shared.parameters import (
    PLACEHOLDER,
    TABLE,
    CheckedBy,
    Choice,
    ChoiceOrArray,
    Number,
    Seed,
    Special,
    Switch,
    Whole,
    constructor,
    declared,
    described,
)

ESTIMATORS = [
    kind
    for name in sorted(mercer.__all__)
    if inspect.isclass(kind := getattr(mercer, name)) and issubclass(kind, KernelEstimator)
]
every = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
BAD = {
    "NaN": math.nan,
    "text": "nonsense",
    "negative": -7.5,
    "minus infinity": -math.inf,
    "infinity": math.inf,
    "truth": True,
    "object": object(),
    "list of nothing": [None],
}


def subject_of(kind: type) -> Subject:
    return next(s for s in SUBJECTS if s.build is kind)


def allowed(kind: type, name: str, value: object) -> bool:
    """Whether the words of the declaration allow this bad value: read here from its fields,
    not by its `check`.
    """
    p = declared(kind)[name]
    if isinstance(p, Switch) or (
        isinstance(p, Choice | Whole) and True in (*getattr(p, "values", ()), *p.also)
    ):
        return value is True
    if isinstance(p, Number):
        return value == math.inf and ((p.closed_high and p.high == math.inf) or math.inf in p.also)
    return False


@every
def test_each_parameter_of_a_constructor_is_declared_or_special_with_a_reason(kind):
    for name in constructor(kind):
        assert name in declared(kind), f"{kind.__name__}.{name} is not declared"
        p = declared(kind)[name]
        if isinstance(p, Special):
            assert p.reason, f"{kind.__name__}.{name} is special for no reason"


@every
def test_each_declaration_is_of_a_parameter_that_some_machine_has(kind):
    for name in vars(kind).get("parameters", {}):
        assert any(name in constructor(k) for k in ESTIMATORS if issubclass(k, kind)), f"{name} is nobody's"


def test_each_entry_of_the_table_is_a_parameter_of_several_machines():
    for name in TABLE:
        assert sum(name in constructor(kind) for kind in ESTIMATORS) >= 2, name


@every
def test_each_default_lies_in_its_domain(kind):
    for name, p in constructor(kind).items():
        declared(kind)[name].check(p.default, kind.__name__, name)


@every
@pytest.mark.parametrize("bad", BAD)
def test_what_lies_outside_the_domain_is_refused_with_the_parameter_and_the_class(kind, bad):
    s, value = subject_of(kind), BAD[bad]
    for name, p in declared(kind).items():
        if isinstance(p, Special) or allowed(kind, name, value):
            continue
        with pytest.raises(ParameterError) as caught:
            s.fit(**{name: value})
        assert str(caught.value).startswith(f"{kind.__name__}: "), caught.value
        assert name in str(caught.value) or isinstance(p, CheckedBy), caught.value


@pytest.mark.parametrize(
    ("p", "good", "bad"),
    [
        (
            Number(),
            [1e-300, 1, np.float32(2), np.int64(3), 1e300],
            [0, -1.0, math.nan, math.inf, True, "1", None, 1j],
        ),
        (Number(closed_low=True), [0, 0.0, 5], [-1e-300, math.inf, math.nan]),
        (Number(0.0, 1.0, closed_high=True), [1.0, 0.5, np.float64(1)], [0.0, 1.0000001, math.nan]),
        (Number(none=True, also=("auto",)), [None, "auto", 2.0], ["Auto", 0.0, []]),
        (Whole(1, 9), [1, 9, np.int8(4)], [0, 10, 1.0, True, "1", math.nan]),
        (Whole(0, none=True), [None, 0], [-1, 0.5]),
        (
            Choice(("a", True), none=True),
            ["a", True, np.True_, None],
            ["b", 1, [], np.array(["a", "a"]), False],
        ),
        (
            ChoiceOrArray(("a",), dimensions=(1,)),
            ["a", [1, 2], np.arange(3)],
            ["b", 1, [[1]], [[1], [1, 2]], [None], None],
        ),
        (Switch(), [True, False, np.False_], [0, 1, "no", None]),
        (
            Seed(none=True),
            [None, 0, 2**32 - 1, np.random.RandomState(0), np.random.default_rng(0)],
            [-1, 1.5, 2**32],
        ),
    ],
)
def test_a_domain_holds_what_its_words_say(p, good, bad):
    for value in good:
        p.check(value, "Machine", "x")
    for value in bad:
        with pytest.raises(ParameterError, match=r"^Machine: x must be .*; got "):
            p.check(value, "Machine", "x")


def test_a_class_speaks_before_those_it_inherits_from_and_those_before_the_table():
    class Base(KernelEstimator):
        parameters = {"tol": Number(0.0, 5.0), "extra": Whole(1)}  # noqa: RUF012

        def __init__(self, kernel="RBF()", tol=1.0, extra=1, strict=False): ...

    class Derived(Base):
        parameters = {"tol": Number(0.0, 2.0)}  # noqa: RUF012

    assert declared(Derived) == {
        "kernel": TABLE["kernel"],
        "tol": Number(0.0, 2.0),
        "extra": Whole(1),
        "strict": TABLE["strict"],
    }


@every
def test_the_docstring_describes_every_parameter_and_no_other(kind):
    assert described(kind.__doc__) == set(constructor(kind))
    assert PLACEHOLDER not in kind.__doc__


@every
def test_what_help_says_of_a_parameter_is_what_is_declared(kind):
    def words(text):
        """Without the bars that `help` draws at the left."""
        return " ".join(text.replace("|", " ").split())

    text = words(pydoc.render_doc(kind, renderer=pydoc.plaintext))
    for name, p in declared(kind).items():
        assert p.about, f"{kind.__name__}.{name} has no text"
        own = name in described(inspect.getsource(kind))
        assert own or words(p.about) in text, name


@pytest.mark.parametrize("kind", [mercer.NuSVC, mercer.NuSVR, mercer.OneClassSVM, mercer.SVDD])
def test_machines_with_an_equality_constraint_refuse_projected_gradients(kind):
    with pytest.raises(ParameterError, match=f"{kind.__name__}: solver must be 'working-set'.*equality"):
        subject_of(kind).fit(solver="projected-gradient")


@every
def test_the_kernel_comes_first(kind):
    assert next(iter(constructor(kind))) in ("kernel", "kernels")


@every
def test_one_thing_has_one_name(kind):
    other_names = {
        "bias",
        "intercept",
        "n_iter",
        "seed",
        "rng",
        "threads",
        "lengthscale",
        "max_time",
        "features",
    }
    assert not other_names & set(constructor(kind))
    for name, value in {
        "max_seconds": None,
        "n_jobs": None,
        "strict": False,
        "verbose": 0,
        "approximation": None,
    }.items():
        if name in constructor(kind):
            assert constructor(kind)[name].default is value, name
