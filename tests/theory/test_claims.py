"""The one comparison under `verify`: what agrees is accepted,
and any number that does not is named with its place.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.theory.claims import EXACT, SOLVED, Examination

WRONG = {
    "not a number": lambda v: np.nan,
    "infinite": lambda v: np.inf,
    "negatively infinite": lambda v: -np.inf,
    "of the other sign": lambda v: -v,
    "0": lambda v: 0.0,
    "one per cent more": lambda v: 1.01 * v,
}


def findings(claimed, found, **options):
    exam = Examination()
    exam.same("it", claimed, found, **options)
    assert exam.asked >= 1
    return exam.findings


def numbers(seed):
    """Some of any size and shape, none near 0 beside the largest."""
    rng = np.random.default_rng(seed)
    shape = [(), (5,), (3, 4), (2, 3, 2)][seed % 4]
    size = 10.0 ** rng.integers(-200, 200)
    return size * rng.choice([-1.0, 1.0], shape) * rng.uniform(0.2, 1.0, shape), rng


@pytest.mark.parametrize("within", [EXACT, SOLVED, 1e-3])
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("seed", range(8))
def test_a_number_that_is_not_the_one_found_is_named(seed, change, within):
    found, rng = numbers(seed)
    claimed = np.array(found)
    at = tuple(int(rng.integers(k)) for k in found.shape)
    claimed[at] = change(found[at])
    (sentence,) = findings(claimed, found, within=within)
    place = f"[{', '.join(map(str, at))}]" if at else ""
    assert sentence.startswith(f"it{place} is ")


@pytest.mark.parametrize("seed", range(8))
def test_what_was_found_to_be_no_number_cannot_be_claimed_as_one(seed):
    found, rng = numbers(seed)
    found = np.array(found)
    at = tuple(int(rng.integers(k)) for k in found.shape)
    for special in (np.nan, np.inf, -np.inf):
        claimed = np.array(found)
        claimed[at] = 1.0
        other = np.array(found)
        other[at] = special
        assert findings(claimed, other)
        assert not findings(other.copy(), other)


@pytest.mark.parametrize("within", [EXACT, SOLVED, 1e-3])
@pytest.mark.parametrize("seed", range(8))
def test_the_tolerance_is_a_share_of_the_largest_number(seed, within):
    found, _ = numbers(seed)
    step = within * float(np.abs(found).max())
    assert not findings(found + 0.9 * step, found, within=within)
    assert findings(found + 1.1 * step, found, within=within)


def test_counts_names_and_shapes_are_compared_exactly():
    assert findings(4, 5) and not findings(5, 5)
    assert findings(np.arange(3), np.array([0, 1, 3])) and not findings(np.arange(3), np.arange(3))
    assert findings("converged", "limit") and not findings("limit", "limit")
    assert findings(None, 1.0) and findings(1.0, None)
    assert findings(np.ones(3), np.ones((3, 1)))
    assert findings({"a": 1.0}, {"b": 1.0}) and findings({"a": 1.0}, {"a": 2.0})
    assert findings([np.ones(2)], [np.ones(2), np.ones(3)])
