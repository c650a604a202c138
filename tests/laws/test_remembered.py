"""What a kernel remembers of itself follows from its fields, and from nothing that may change."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from kernels_under_test import every_kernel
from mercer import RBF, Linear, Periodic
from mercer.gram import Tiles
from mercer.kernels.leaves.inheritance import own_proof
from mercer.kernels.tuning import REMEMBERED, fields_of

X = np.random.default_rng(0).normal(size=(6, 3))


@pytest.mark.parametrize("case", every_kernel(), ids=lambda case: case.name)
def test_what_is_remembered_is_what_is_asked_anew(case):
    k = case.kernel
    fresh = copy.deepcopy(k)
    assert not set(REMEMBERED) & set(fresh.__dict__)
    known = k.known_proof()
    again = k.proof()
    assert (known is None) == (again is None)
    if known is not None:
        assert known.rules() == again.rules() and known.declared() == again.declared()
    assert k.known_proof() is known
    assert k.parameters == fresh.parameters == k.parameters
    assert not set(REMEMBERED) & set(pickle.loads(pickle.dumps(k)).__dict__)


def test_fixed_and_bounded_kernels_have_parameters_of_their_own():
    k = 2.0 * RBF(3.0)
    before = k.parameters
    assert k.known_proof() is not None
    held = k.fix("lengthscale")
    assert [p.free for p in held.parameters] == [True, False]
    assert held.bounded(scale=(1.0, 4.0)).parameters[0].bounds == (1.0, 4.0)
    assert k.parameters == before and all(p.free for p in k.parameters)


def test_a_copy_that_is_changed_in_place_is_asked_each_time():
    part = clone(RBF(1.0))
    whole = part + Linear()
    assert part.parameters[0].value == whole.parameters[0].value == 1.0
    part.set_params(lengthscale=5.0)
    assert part.parameters[0].value == 5.0
    assert whole.parameters[0].value == 5.0


def test_a_program_is_differentiated_as_it_is_unless_it_forgot_whole_periods():
    plain = Tiles(2.0 * RBF([1.0, 2.0, 3.0]) + Linear(), X)
    assert plain._differentiable is plain.low
    waves = Tiles(Periodic(0.5) * RBF(1.0), X)
    assert waves._differentiable is not waves.low
    assert waves.low.folded and not waves._differentiable.folded


def test_a_proof_that_someone_puts_in_place_of_ours_is_his_word_at_once(monkeypatch):
    k = RBF(1.0)
    stated = k.proof()
    assert stated.declared() == ()

    class Somebody(type(k)):
        """A class from elsewhere that states nothing new."""

    monkeypatch.setattr(Somebody, "proof", lambda self: stated, raising=False)
    assert own_proof(object.__new__(Somebody)) == ("the class Somebody brings its own proof",)
    monkeypatch.undo()
    assert own_proof(object.__new__(Somebody)) == ()


def test_fields_of_a_kernel_are_those_of_its_class():
    for case in every_kernel():
        kind = type(case.kernel)
        assert fields_of(case.kernel) == fields_of(kind) == dataclasses.fields(kind)
