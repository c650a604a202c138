"""The look at a few rows before a system is solved, and the preconditioner and
operator that follow from it.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import NotFiniteError, NotPositiveDefiniteError, ParameterError
from mercer.solve import as_operator, cg
from mercer.solve import plan as planning
from mercer.solve.operator import ArrayOperator, TwoPrecisions, multiply_exactly
from mercer.solve.plan import Costs, Spectrum, cholesky_cost, choose, iterations, look, plan, spectrum
from mercer.solve.precondition import column_inverse
from solve.laboratory import CountingOperator, rbf, relative_residual, with_spectrum


@pytest.mark.parametrize("d", [1, 3, 6])
def test_a_part_of_the_rows_tells_the_leading_eigenvalues(d):
    K = rbf(1500, d)
    found, true = spectrum(as_operator(K)), np.linalg.eigvalsh(K)[::-1]
    for i in (0, 5, 20, 60):
        assert true[i] / 3 - 1e-9 <= found.beyond(i) <= 3 * true[i] + 1e-9
    assert found.beyond(1500) == 0.0 and found.largest == found.beyond(0)


def test_a_diagonal_inside_the_matrix_is_not_blown_up():
    found = spectrum(as_operator(np.eye(1200)))
    assert found.beyond(0) == found.beyond(1000) == 1.0


def test_small_matrices_are_looked_at_whole():
    values = np.linspace(0.5, 3.0, 40)
    found = spectrum(as_operator(with_spectrum(values)))
    np.testing.assert_allclose(found.values, values[::-1], rtol=1e-10)


def test_only_a_few_rows_are_looked_at():
    op = CountingOperator(rbf(1500))
    spectrum(op)
    assert op.products == 0 and op.entries == 400**2


def test_an_indefinite_or_infinite_matrix_is_refused():
    with pytest.raises(NotPositiveDefiniteError, match="not positive semi-definite"):
        spectrum(as_operator(with_spectrum(np.linspace(-1, 1, 60))))
    with pytest.raises(NotFiniteError):
        spectrum(CountingOperator(np.full((5, 5), np.nan)))


def test_the_rank_is_the_cheapest_of_all():
    n, decay = 20_000, Spectrum(20_000, 2e4 / np.arange(1.0, 501) ** 2, -2.0)
    chosen = plan(decay, 0.1, 1e-8, entry=1.0, most=5000)
    for most in (16, chosen.rank // 2):
        assert plan(decay, 0.1, 1e-8, entry=1.0, most=most).cost > chosen.cost
    dear = plan(decay, 0.1, 1e-8, entry=50.0, most=5000)  # dear products are worth a higher rank
    assert dear.rank > chosen.rank and dear.iterations < chosen.iterations
    assert plan(decay, 0.1, 1e-8, entry=50.0, most=5000, storable=5000).store
    beside = plan(decay, 0.1, 1e-8, entry=50.0, most=5000, storable=50)  # stored only beside a rank that fits
    assert not beside.store or beside.rank <= 50
    assert plan(decay, 0.1, 1e-8, entry=1.0, most=77).rank == 77
    assert chosen.cost < cholesky_cost(n, 1.0, single=True) < cholesky_cost(n, 1.0, single=False)
    # at a hundred thousand rows the products are the expensive thing
    large = Spectrum(100_000, 1e5 / np.arange(1.0, 1001) ** 2, -2.0)
    assert plan(large, 0.1, 1e-6, entry=1.4, most=2000).rank >= 1000


def test_the_iterations_promised_are_those_needed():
    K, y = rbf(900, 4), np.random.default_rng(0).normal(size=900)
    for shift in (1.0, 1e-2):
        known = spectrum(as_operator(K))
        for rank in (30, 150):
            need = cg(K, y, shift, preconditioner=column_inverse(K, shift, rank)).certificate
            assert need.converged
            assert need.iterations <= 2 * iterations(known.beyond(rank), shift, 1e-10) + 10


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.2, 3.0)])
def test_the_column_inverse_is_the_inverse_of_its_formula(weights):
    rng = np.random.default_rng(0)
    s = rng.uniform(*weights, size=70)
    K = rbf(70) * np.outer(s, s)
    P = column_inverse(K, 0.3, 20, random_state=4)
    chosen = np.random.default_rng(4).permutation(70)[:20]
    C = K[:, chosen]
    low = C @ np.linalg.solve(K[np.ix_(chosen, chosen)], C.T)
    V = rng.normal(size=(70, 3))
    np.testing.assert_allclose(P @ V, np.linalg.solve(low + 0.3 * np.eye(70), V), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(P @ V[:, 0], (P @ V)[:, 0], rtol=1e-12, atol=1e-12)
    assert P.rank == 20 and "rank 20" in str(P)


def test_the_column_inverse_bears_duplicates_and_refuses_what_it_must():
    K = np.ones((30, 30))
    np.testing.assert_allclose(column_inverse(K, 1.0, 10) @ np.ones(30), np.full(30, 1 / 31), rtol=1e-6)
    np.testing.assert_allclose(column_inverse(np.zeros((5, 5)), 2.0, 3) @ np.ones(5), np.full(5, 0.5))
    with pytest.raises(ParameterError, match="shift"):
        column_inverse(K, 0.0, 3)
    with pytest.raises(NotPositiveDefiniteError):
        column_inverse(with_spectrum(np.linspace(-1, 1, 60)), 0.1, 40)
    with pytest.raises(NotPositiveDefiniteError, match="NaN"):
        column_inverse(CountingOperator(np.full((5, 5), np.nan)), 1.0, 3)


def test_float32_products_end_at_the_answer_in_float64():
    K, y = rbf(500), np.random.default_rng(0).normal(size=500)
    pair = TwoPrecisions(ArrayOperator(K.astype(np.float32)), ArrayOperator(K))
    assert pair.shape == (500, 500) and pair.block(slice(0, 2), slice(None)).dtype == np.float64
    np.testing.assert_array_equal(multiply_exactly(pair, y), K @ y)
    np.testing.assert_array_equal(pair.shifted(1.0).diag(), K.diagonal() + 1.0)
    found = cg(pair, y, 0.1, preconditioner=column_inverse(K, 0.1, 50))
    assert found.certificate.converged and relative_residual(K, found.value, y, 0.1) <= 1.01e-10
    np.testing.assert_allclose(found.value, np.linalg.solve(K + 0.1 * np.eye(500), y), rtol=1e-6, atol=1e-7)


# ── the choice ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_look_stays_within_the_memory():
    op = CountingOperator(rbf(300))
    spectrum(op, memory=100_000)
    assert 0 < 4 * 8 * op.entries <= 100_000


@pytest.mark.parametrize("shift", [10.0, 0.3, 1e-3, 1e-12, 0.0])
@pytest.mark.parametrize("limit", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("memory", [10**5, 10**9])
def test_the_cheaper_method_is_chosen_and_a_broken_promise_ends(monkeypatch, shift, limit, memory):
    monkeypatch.setattr(planning, "DIRECT_ROWS", 100)
    monkeypatch.setattr(planning, "cholesky_cost", lambda n, entry, single: limit)
    op = CountingOperator(rbf(300))
    costs = Costs(1.0)
    chosen = choose(op, shift, 1e-8, memory=memory, costs=costs)
    promised = look(op, shift, 1e-8, memory=memory, costs=costs).plan
    if memory < 8 * 300 * 300:
        assert chosen.method == "cg" and chosen.allowed is None and "does not fit" in chosen.note
    elif shift == 0:
        assert chosen.method == "cg" and chosen.allowed == max(int(limit / 300**2), 1)
    elif promised is None or promised.cost > limit:
        assert chosen.method == "cholesky" and "Cholesky is cheaper" in chosen.note
    else:
        assert chosen.method == "cg" and chosen.plan == promised
        assert chosen.allowed >= 2 * promised.iterations
    for asked in ("cholesky", "cg"):
        assert choose(op, shift, 1e-8, asked=asked, memory=memory, costs=costs).method == asked


def test_a_matrix_that_is_indefinite_is_left_to_cholesky_where_the_factor_fits(monkeypatch):
    monkeypatch.setattr(planning, "DIRECT_ROWS", 10)
    op = as_operator(with_spectrum(np.linspace(-1, 1, 60)))
    chosen = choose(op, 2.0, 1e-8, memory=10**9, costs=Costs())
    assert chosen.method == "cholesky" and "indefinite" in chosen.note
    for asked, memory in (("cg", 10**9), (None, 100)):
        with pytest.raises(NotPositiveDefiniteError):
            choose(op, 2.0, 1e-8, asked=asked, memory=memory, costs=Costs())


def test_products_in_float64_are_dearer_than_in_float32():
    known = Spectrum(20_000, 2e4 / np.arange(1.0, 501) ** 2, -2.0)
    single = plan(known, 0.1, 1e-8, entry=1.0, most=5000)
    double = plan(known, 0.1, 1e-8, entry=1.0, most=5000, products=1.0)
    assert double.cost > single.cost and double.rank >= single.rank
