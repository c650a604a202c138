"""What a user's leaf says of itself is used wherever the same is known of mercer's leaves."""

from functools import partial
from pathlib import Path

import numpy as np

from kernels_under_test import cloud
from mercer import RBF, ArcCosine, Constant, RandomFeatures, White
from mercer.arrays import Rows
from mercer.gram import Tiles, blocks
from mercer.kernels import Kernel, Leaf, leaf
from mercer.kernels.leaves.leaf import LEAVES
from mercer.kernels.terms import has_noise, split_noise
from mercer.params import positive


@leaf
class Level(Leaf):
    """A constant that writes its own step and its own gradient."""

    height: float = positive(2.0)

    def block(self, x, z):
        return np.full((len(x), len(x if z is None else z)), self.height)

    def diagonal(self, x):
        return np.full(len(x), self.height)

    def program(self, at):
        at.step("CONST", at.param(self.height, "height"))

    def contract(self, W, at):
        at.add("height", float(W.sum()))


@leaf
class Jitter(Leaf):
    """Noise on an observation, by another name."""

    size: float = positive(0.5)

    def block(self, x, z):
        return self.size * np.eye(len(x)) if z is None else np.zeros((len(x), len(z)))

    def diagonal(self, x):
        return np.full(len(x), self.size)

    def noise_variance(self):
        return self.size


@leaf
class Ramps(Leaf):
    """A wide layer of ramps: the arc-cosine kernel of order 1, by another name."""

    def block(self, x, z):
        return ArcCosine(1).block(x, z)

    def diagonal(self, x):
        return ArcCosine(1).diagonal(x)

    def activation(self):
        return partial(np.maximum, 0.0)


for own in (Level, Jitter, Ramps):
    del LEAVES[own.__name__]


def test_what_leaves_and_rules_answer_is_in_the_table_of_the_protocol():
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
    table = page[page.index("## The protocol of a kernel") :]
    missing = set()
    waiting = [Kernel]
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if cls.__module__.startswith(("mercer.kernels.leaves", "mercer.kernels.rules")):
            shared = {name for name in vars(cls) if hasattr(Kernel, name) and not name.startswith("_")}
            missing |= {name for name in shared if f"`{name}" not in table}
    assert missing <= {"is_family", "precedence"}


def test_a_leaf_may_write_its_own_program_and_its_own_gradient():
    X = cloud(9, 2, 0)
    U = cloud(9, 2, 1)
    own = 3.0 * RBF(1.0) * Level(0.7) + Level(2.0)
    known = 3.0 * RBF(1.0) * Constant(0.7) + Constant(2.0)
    assert Tiles(own, X).notes == ()
    np.testing.assert_array_equal(own(X), known(X))
    np.testing.assert_array_equal(own.gram(X).contract(U), known.gram(X).contract(U))
    spelled = blocks.contract(own, Rows(X), None, U=U, V=U)
    np.testing.assert_array_equal(spelled, blocks.contract(known, Rows(X), None, U=U, V=U))


def test_a_leaf_that_says_it_is_noise_is_split_off_as_noise():
    assert split_noise(RBF(1.0) + 0.5 * Jitter(0.1) + White(0.2)) == (RBF(1.0), 0.25)
    assert split_noise(2.0 * (RBF(1.0) + Jitter(0.1))) == (2.0 * RBF(1.0), 0.2)
    assert has_noise(RBF(1.0) * Jitter(0.1)) and not has_noise(RBF(1.0))


def test_a_leaf_that_says_its_activation_has_random_features():
    X = cloud(9, 3, 0)
    own, known = (RandomFeatures(k, 50, random_state=0).fit(X).transform(X) for k in (Ramps(), ArcCosine(1)))
    np.testing.assert_array_equal(own, known)
