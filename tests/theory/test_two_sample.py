"""MMD: loops from the formula as referee, the level under the null measured, power, witness, kernel choice,
blocks.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binom

import mercer
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.theory import mmd, mmd_test


def by_loops(X, Z, k, biased):
    m, n = len(X), len(Z)
    xx = [k(X[[i]], X[[j]])[0, 0] for i in range(m) for j in range(m) if biased or i != j]
    zz = [k(Z[[i]], Z[[j]])[0, 0] for i in range(n) for j in range(n) if biased or i != j]
    xz = [k(X[[i]], Z[[j]])[0, 0] for i in range(m) for j in range(n)]
    return np.mean(xx) + np.mean(zz) - 2 * np.mean(xz)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(14, 2)), rng.normal(0.5, 1.5, size=(9, 2))


@pytest.mark.parametrize("statistic", ["biased", "unbiased"])
@pytest.mark.parametrize("text", ["RBF(1.0)", "Laplacian(2.0)", "Linear()", "Polynomial(2)"])
def test_the_statistic_is_that_of_the_loops(samples, text, statistic):
    X, Z = samples
    slow = by_loops(X, Z, mercer.parse(text), statistic == "biased")
    assert mmd(X, Z, text, statistic=statistic) == pytest.approx(slow, abs=1e-12)
    found = mmd_test(X, Z, text, statistic=statistic, n_permutations=5, random_state=0)
    assert found.statistic == pytest.approx(slow, abs=1e-12)
    assert mmd(X, Z, text, statistic=statistic) == pytest.approx(mmd(Z, X, text, statistic=statistic))


def test_the_biased_one_of_the_linear_kernel_is_the_distance_of_the_means(samples):
    X, Z = samples
    between = ((X.mean(axis=0) - Z.mean(axis=0)) ** 2).sum()
    assert mmd(X, Z, "Linear()", statistic="biased") == pytest.approx(between)
    far = 1e7
    assert mmd(X + far, Z + far, "Linear()", statistic="biased") == pytest.approx(between, rel=0.1)
    assert mmd(X, X, "RBF(1.0)", statistic="biased") == pytest.approx(0, abs=1e-14)


def test_every_permutation_is_the_statistic_of_relabelled_rows(samples):
    X, Z = samples
    both, rng = np.vstack([X, Z]), np.random.default_rng(7)
    found = mmd_test(X, Z, "RBF(1.0)", n_permutations=4, random_state=7)
    first = rng.random((23, 4)).argsort(axis=0)[:14]
    for j in range(4):
        mine = np.isin(np.arange(23), first[:, j])
        assert found.null[j] == pytest.approx(
            by_loops(both[mine], both[~mine], mercer.RBF(1.0), False), abs=1e-12
        )
    assert found.p_value == (1 + (found.null >= found.statistic).sum()) / 5


@pytest.mark.parametrize("kernel", ["RBF()", ["RBF(0.5)", "RBF(2.0)", "Linear()"]])
def test_the_level_holds_under_the_null(kernel):
    """200 pairs of samples of one distribution, of unequal sizes; at level 0.1,
    0.999 bounds of the binomial.
    """
    rng = np.random.default_rng(11)
    rejected = 0
    for i in range(200):
        X, Z = rng.exponential(size=(12, 2)), rng.exponential(size=(17, 2))
        rejected += mmd_test(X, Z, kernel, n_permutations=39, random_state=i).rejects(0.1)
    low, high = binom.ppf([0.0005, 0.9995], 200, 0.1)
    assert low <= rejected <= high, rejected


def test_power_grows_where_the_distributions_differ():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(80, 1)), rng.normal(0, 3.0, size=(80, 1))
    assert mmd_test(X, Z, random_state=0).p_value == 0.001
    # means alone are the same: the linear kernel cannot see the difference
    assert mmd_test(X - X.mean(), Z - Z.mean(), "Linear()", random_state=0, n_permutations=99).p_value > 0.5


def test_tiles_give_what_arrays_give(samples):
    X, Z = samples
    a = mmd_test(X, Z, n_permutations=300, random_state=3)
    b = mmd_test(X, Z, n_permutations=300, random_state=3, memory=0)
    np.testing.assert_allclose(a.null, b.null, atol=1e-12)
    assert a.p_value == b.p_value


def test_the_witness_is_the_difference_of_the_means(samples):
    X, Z = samples
    found = mmd_test(X, Z, "RBF(1.0)", n_permutations=9, random_state=0)
    points = np.array([[0.0, 0.0], [3.0, 1.0]])
    k = mercer.RBF(1.0)
    np.testing.assert_allclose(found.witness(points), k(points, X).mean(axis=1) - k(points, Z).mean(axis=1))
    biased = found.witness(X).mean() - found.witness(Z).mean()
    assert biased == pytest.approx(mmd(X, Z, "RBF(1.0)", statistic="biased"))


def test_the_kernel_of_most_power_is_chosen_on_other_rows():
    rng = np.random.default_rng(4)
    fine = np.sign(rng.normal(size=(200, 1))) * 0.5
    X = rng.uniform(-10, 10, size=(200, 1))
    Z = np.round(X) + 0.05 * fine  # the same from afar, a comb when seen closely
    kernels = ["RBF(0.2)", "RBF(5.0)", "RBF(50.0)"]
    found = mmd_test(rng.uniform(-10, 10, size=(200, 1)), Z, kernels, random_state=0)
    assert str(found.kernels[0]) == "RBF(0.2)" and set(found.power) == set(kernels)
    assert found.sizes == (100, 100) and found.p_value < 0.01
    assert max(found.power, key=found.power.get) == "RBF(0.2)"
    assert any("other half" in note for note in found.notes)


def test_blocks_average_the_statistic_and_see_the_difference():
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(400, 2)), rng.normal(0.7, 1.0, size=(403, 2))
    found = mmd_test(X, Z, "RBF(1.0)", block_size=20, random_state=0)
    assert found.p_value < 1e-3 and found.statistic == pytest.approx(found.null.mean())
    assert len(found.null) == 20 and any("3 rows" in note for note in found.notes)
    assert found.statistic == pytest.approx(mmd(X, Z, "RBF(1.0)"), rel=0.5)
    same = [
        mmd_test(
            rng.normal(size=(80, 1)), rng.normal(size=(80, 1)), "RBF(1.0)", block_size=4, random_state=i
        ).p_value
        for i in range(60)
    ]
    assert np.mean(np.array(same) < 0.2) < binom.ppf(0.9995, 60, 0.2) / 60
    with pytest.raises(InputError, match="at least 8"):
        mmd_test(X, Z, block_size=100)


def test_the_open_lengthscale_is_the_median_distance_and_forgets_the_order():
    rng = np.random.default_rng(5)
    X, Z = rng.normal(size=(30, 3)), rng.normal(size=(20, 3))
    both = np.vstack([X, Z])
    apart = [np.linalg.norm(both[i] - both[j]) for i in range(50) for j in range(i)]
    k = mmd_test(X, Z, n_permutations=1).kernels[0]
    assert k.lengthscale == pytest.approx(np.median(apart))
    long = rng.normal(size=(2500, 2))
    a = mmd_test(long[:1200], long[1200:], block_size=100).kernels[0]
    mixed = rng.permutation(long)
    assert mmd_test(mixed[:1200], mixed[1200:], block_size=100).kernels[0].lengthscale == pytest.approx(
        a.lengthscale
    )


def test_rows_of_every_kind(samples):
    X, Z = samples
    want = mmd(X, Z, "RBF(1.0)")
    assert mmd(X.tolist(), np.asfortranarray(Z), "RBF(1.0)") == pytest.approx(want)
    assert mmd(sparse.csr_array(X), sparse.csr_array(Z), "RBF(1.0)") == pytest.approx(want)
    assert mmd(sparse.csr_array(X), Z, "RBF(1.0)") == pytest.approx(want)
    table, other = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(Z, columns=["a", "b"])
    assert mmd(table, other, 'RBF(1.0).on("a", "b")') == pytest.approx(want)
    words = mercer.Custom(lambda a, b: float(len(set(a) & set(b))))
    found = mmd_test(["aab", "abb", "ab", "ba"], ["xy", "yx", "xxy", "yyy"], words, random_state=0)
    assert found.p_value < 0.1


def test_duplicates_and_constant_samples_do_no_harm():
    X = np.zeros((6, 2))
    assert mmd_test(X, X, random_state=0, n_permutations=19).p_value == 1.0
    assert mmd(X, np.ones((6, 2)), "RBF(1.0)") == pytest.approx(2 - 2 * np.exp(-1))


def test_bad_input_is_refused(samples):
    X, Z = samples
    with pytest.raises(ShapeError, match="2 columns and Z 1"):
        mmd_test(X, Z[:, :1])
    with pytest.raises(InputError, match="at least 2 rows"):
        mmd_test(X[:1], Z)
    with pytest.raises(NotFiniteError):
        mmd_test(np.where(X > 1, np.nan, X), Z)
    with pytest.raises(ShapeError, match="two dimensions"):
        mmd_test(X[:, 0], Z[:, 0])
    for change, words in (
        ({"n_permutations": 0}, "n_permutations"),
        ({"statistic": "best"}, "statistic"),
        ({"kernel": []}, "empty"),
        ({"block_size": 1}, "block_size"),
    ):
        with pytest.raises(ParameterError, match=words):
            mmd_test(X, Z, **change)
    with pytest.raises(ParameterError, match="level"):
        mmd_test(X, Z, n_permutations=1).rejects(5)


@pytest.mark.parametrize("block", [1, 5, 22, 23, 24])
@pytest.mark.parametrize("statistic", ["biased", "unbiased"])
def test_blocks_of_a_stored_matrix_count_every_pair_once(monkeypatch, samples, block, statistic):
    monkeypatch.setattr("mercer.theory.two_sample.BLOCK", block)
    X, Z = samples
    kept = mmd_test(X, Z, "RBF(1.0)", statistic=statistic, n_permutations=6, random_state=7)
    tiles = mmd_test(X, Z, "RBF(1.0)", statistic=statistic, n_permutations=6, random_state=7, memory=1000)
    np.testing.assert_allclose(kept.null, tiles.null, atol=1e-14)
    slow = by_loops(X, Z, mercer.RBF(1.0), statistic == "biased")
    assert kept.statistic == pytest.approx(slow, abs=1e-12)
