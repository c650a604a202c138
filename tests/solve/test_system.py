"""The front door, the certificate, and the wall around the room."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import mercer.solve
from mercer.errors import NotPositiveDefiniteError, ParameterError
from mercer.solve import Certificate, as_operator, direct, plan, solve, top_eigenpairs
from solve.laboratory import CountingOperator, rbf, relative_residual, with_spectrum


def test_small_systems_go_to_cholesky():
    found = solve(rbf(100), np.ones(100), 0.1)
    assert found.certificate.method == "Cholesky (float64)" and found.certificate.converged


def test_a_factor_that_does_not_fit_goes_to_conjugate_gradients_and_says_why():
    K, y = rbf(300), np.random.default_rng(0).normal(size=300)
    op = CountingOperator(K)
    found = solve(op, y, 0.1, memory="100 kB")
    assert "conjugate gradients with a Nyström" in found.certificate.method
    assert "does not fit" in found.certificate.notes[0]
    assert op.entries <= 100 * 300  # the columns of the preconditioner, never the whole matrix
    assert relative_residual(K, found.value, y, 0.1) <= 1.01e-10
    np.testing.assert_allclose(found.value, solve(K, y, 0.1).value, rtol=1e-7, atol=1e-8)


def test_larger_systems_try_conjugate_gradients_first(monkeypatch):
    monkeypatch.setattr(plan, "DIRECT_ROWS", 100)
    monkeypatch.setattr(plan, "cholesky_cost", lambda n, entry, single: 1.2e6)  # between the two
    K, y = rbf(300), np.random.default_rng(0).normal(size=300)
    assert "conjugate gradients" in solve(K, y, 0.5).certificate.method
    hard = solve(K, y, 1e-7)
    assert (
        hard.certificate.method == "Cholesky (float64)" and "Cholesky is cheaper" in hard.certificate.notes[0]
    )
    hidden = solve(K + 1e-7 * np.eye(300), y)  # nothing known of the spectrum: tried, then handed over
    assert hidden.certificate.method == "Cholesky (float64)" and "took over" in hidden.certificate.notes[0]


def test_seconds_stop_the_iteration_with_an_answer():
    found = solve(CountingOperator(rbf(300)), np.ones(300), 1e-3, memory=0, max_seconds=0.0)
    assert found.certificate.status == "limit" and found.value.shape == (300,)


def test_an_indefinite_matrix_is_refused_by_both_ways():
    A = with_spectrum(np.linspace(-1, 1, 60))
    for memory in ("1GiB", 0):
        with pytest.raises(NotPositiveDefiniteError):
            solve(A, np.ones(60), memory=memory)


def test_memory_must_be_a_number_of_bytes():
    with pytest.raises(ParameterError, match="memory"):
        solve(np.eye(2), np.ones(2), memory="plenty")


def test_a_certificate_is_plain_data():
    found = direct(rbf(30), np.ones((30, 2)), 1e-12)
    again = json.loads(json.dumps(found.certificate.to_dict()))
    assert again["status"] == found.certificate.status and len(again["residuals"]) == 2
    assert again["gap"] is None and str(found) == str(found.certificate)
    with pytest.raises(AttributeError):
        found.certificate.status = "converged"


def test_a_certificate_reads_as_a_sentence():
    text = str(
        Certificate(
            "limit", "dual ascent", 3, 1.0, gap=0.5, worst_row=4, added_diagonal=1e-8, notes=("More.",)
        )
    )
    assert (
        text == "limit: dual ascent, 3 iterations, 1 s, gap 0.5, worst row 4, added diagonal 1e-08\n  More."
    )


def test_an_array_is_an_operator_that_keeps_the_protocol():
    A = with_spectrum(np.linspace(1, 2, 7))
    op, i, j = as_operator(A).shifted(0.5), np.array([4, 1]), np.array([1, 2, 4])
    full = A + 0.5 * np.eye(7)
    np.testing.assert_allclose(op.dense(), full)
    np.testing.assert_allclose(op.block(i, j), full[np.ix_(i, j)])
    np.testing.assert_allclose(op.block(slice(None), j), full[:, j])
    np.testing.assert_allclose(op.diag(), full.diagonal())
    np.testing.assert_allclose(op @ A, full @ A)


class OnlyThat:
    """What the protocol had before operators said what they can do: no factor and no program."""

    shape = (3, 3)
    dtype = np.dtype(float)

    def __matmul__(self, V):
        return V


@pytest.mark.parametrize("ask", [lambda A: solve(A, np.ones(3)), lambda A: top_eigenpairs(A, 1)])
def test_an_operator_that_lacks_members_is_refused_by_their_names(ask):
    with pytest.raises(
        ParameterError, match=r"diag, block, dense, shifted, low_rank_factor, program.*Operator"
    ):
        ask(OnlyThat())


def test_an_operator_that_inherits_the_protocol_states_what_it_cannot_do():
    A = CountingOperator(np.eye(3))
    assert A.low_rank_factor() is None and A.program() is None
    assert as_operator(np.eye(3)).low_rank_factor() is None


def test_no_solver_probes_an_operator_for_what_it_can_do():
    folder = Path(mercer.solve.__file__).parent
    probes = [
        f"{path.name}:{node.lineno}"
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and node.id == "hasattr"
    ]
    assert not probes
