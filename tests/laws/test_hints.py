"""Names that a machine does not have are refused with what they are called here."""

import inspect
import pickle

import pytest
from sklearn.base import clone
from tests.laws.test_machine_parameters import ESTIMATORS, every

import mercer
from mercer.errors import ParameterError, UnknownParameterError
from mercer.kernels.text import parse
from mercer.machines.shared.base import KernelEstimator
from mercer.machines.shared.hints import OF_THE_KERNEL, OTHER_NAMES
from mercer.machines.shared.parameters import constructor

GUESSES = [
    (mercer.SVC, "gamma", "kernel=RBF(gamma=0.5)"),
    (mercer.SVC, "alpha", "called C here"),
    (mercer.SVC, "bias", "called fit_intercept here"),
    (mercer.SVC, "cache_size", "called memory here"),
    (mercer.KernelRidge, "C", "called alpha here"),
    (mercer.KernelMachine, "C", "called alpha here"),
    (mercer.GaussianProcessRegressor, "length_scale", "kernel=RBF(2.0)"),
    (mercer.GaussianProcessRegressor, "alpha", "called noise here"),
    (mercer.GaussianProcessRegressor, "n_restarts_optimizer", "called n_restarts here"),
    (mercer.KernelPerceptron, "bias", "called fit_intercept here"),
    (mercer.Perceptron, "features", "called kernel here"),
    (mercer.FalkonRegressor, "n_components", "called n_landmarks here"),
    (mercer.MultipleKernelClassifier, "kernel", "called kernels here"),
    (mercer.MultipleKernelClassifier, "gamma", "one of kernels"),
    (mercer.KernelPCA, "n_component", "Did you mean n_components?"),
    (mercer.SVC, "sample_weight", "go to fit"),
    (mercer.NadarayaWatson, "zzz", "kernel, bandwidth, strict, memory, n_jobs"),
]


@pytest.mark.parametrize(("kind", "name", "words"), GUESSES, ids=lambda v: getattr(v, "__name__", str(v)))
def test_a_wrong_guess_is_answered_with_the_name_here(kind, name, words):
    for error in (TypeError, ParameterError):
        with pytest.raises(error) as caught:
            kind(**{name: 1.0})
        assert f"{kind.__name__} has no parameter {name!r}" in str(caught.value)
        assert words in str(caught.value)
    with pytest.raises(ValueError) as caught:
        kind().set_params(**{name: 1.0})
    assert words in str(caught.value)


@every
def test_no_hint_leads_to_a_name_that_is_not_there(kind):
    for name in {*OTHER_NAMES, *OF_THE_KERNEL, "C", "alpha", "nonsense"} - set(constructor(kind)):
        with pytest.raises(UnknownParameterError) as caught:
            kind(**{name: 1.0})
        _, called, rest = str(caught.value).partition("called ")
        if called:
            assert rest.split()[0] in constructor(kind)


def test_the_kernels_that_hints_name_can_be_read():
    for text in OF_THE_KERNEL.values():
        parse(text)


@every
def test_the_constructor_keeps_its_signature_and_its_copies(kind):
    assert kind.__init__.__wrapped__ is not None
    assert list(constructor(kind)) == list(inspect.signature(kind).parameters) == [*_stored(kind)]
    model = kind()
    assert repr(clone(pickle.loads(pickle.dumps(model))).get_params()) == repr(model.get_params())


def _stored(kind):
    """What the constructor stores, in its order."""
    return vars(kind())


def test_a_subclass_that_takes_any_keyword_is_left_alone():
    class Open(KernelEstimator):
        def __init__(self, kernel="RBF()", **more):
            self.kernel = kernel
            self.more = more

    assert Open(gamma=1.0).more == {"gamma": 1.0}
    assert len(ESTIMATORS) > 20
