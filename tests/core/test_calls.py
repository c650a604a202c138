"""What the core promises its callers: refusals, threads, forks, interrupts, untouched inputs."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.programs import Problem, encode
from mercer import _core

pytestmark = pytest.mark.usefixtures("threads_for_all")

X = np.random.default_rng(0).normal(size=(6, 3))
K = np.empty((6, 6))
RBF = encode("SQDIST", "RBF")


def program(code=RBF, params=()):
    return _core.Program(code, np.array(params, float))


@pytest.mark.parametrize(
    "steps, params",
    [
        ([], []),
        (["ADD"], []),
        (["RBF"], []),
        (["DOT", "DOT"], []),
        (["DOT", "ADD"], []),
        ([("CONST", 0)], []),
        ([("CONST", -1)], [1.0]),
        ([("CONST", 1)], [1.0]),
        (["DOT", ("AFFINE", 0, 1)], [1.0]),
        (["DOT", ("HORNER", 0, 0)], [1.0]),
        (["DOT", ("HORNER", 1, 2)], [1.0, 2.0]),
        (["DOT", ("HORNER", 2**31 - 1, 2**31 - 1)], [1.0]),
        (["DOT", ("ARCCOS", 0, 3)], []),
        (["DOT", ("POWI", 0, -1)], []),
        ([("DOT", -1)], []),
    ],
)
def test_an_invalid_program_is_refused(steps, params):
    code = encode(*steps) if steps else np.zeros((0, 3), np.int32)
    with pytest.raises(ValueError):
        program(code, params)


@pytest.mark.parametrize("number", [-1, len(_core.OPCODES), 2**31 - 1, -(2**31)])
def test_an_unknown_opcode_is_refused(number):
    with pytest.raises(ValueError, match="opcode"):
        program(np.array([[number, 0, 0]], np.int32))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 33), st.integers(-2, 4), st.integers(-2, 4)), max_size=6))
def test_random_programs_are_refused_or_run(rows):
    code = np.array(rows, np.int32).reshape(-1, 3)
    views, vectors, columns = [(X, None)], [(np.ones(6), None)], [np.ones(3)]
    try:
        p = program(code, [0.5, 1.5])
        with np.errstate(all="ignore"):
            _core.gram(p, views, vectors, columns, K.copy(), 1)
            _core.contract(p, views, vectors, columns, W=np.ones((6, 6)), inputs=True)
            _core.diag(p, views, vectors, columns, np.empty(6), 1)
    except ValueError:
        pass


def refuse(match, views=None, rows=(), columns=(), out=None, threads=1, code=RBF, params=(1.0,)):
    out = np.empty((6, 6)) if out is None else out
    views = [(X, None)] if views is None else views
    kernel = program(code, params)
    with pytest.raises(ValueError, match=match):
        _core.gram(kernel, views, list(rows), list(columns), out, threads)


def test_data_that_does_not_fit_is_refused():
    refuse("C-contiguous", views=[(X.T, None)])
    refuse("C-contiguous", views=[(np.asfortranarray(X), None)])
    refuse("C-contiguous", views=[(X[:, 0], None)])
    refuse("float64", views=[(X.astype(int), None)])
    refuse("float64", views=[(X, X.astype(np.float32))])
    refuse("columns", views=[(X, np.ones((4, 2)))], out=np.empty((6, 4)))
    refuse("rows", views=[(X, None), (X[:5], None)])
    refuse("second part", views=[(X, None), (X, X)])
    refuse("at least one view", views=[])
    refuse("tuple of two", views=[X])
    refuse("list", views=X)
    refuse("view 1", code=encode(("SQDIST", 1)))
    refuse("view", code=encode(("SQDIST", 2**31 - 1)))
    refuse("rows 0", code=encode("DOT", ("ROWSCALE", 0)))
    refuse("columns 0", code=encode(("PERIODIC", 0, 0)))
    refuse("length", code=encode(("PERIODIC", 0, 0)), columns=[np.ones(2)])
    refuse("shape", out=np.empty((6, 5)))
    refuse("writable", out=np.empty((6, 6), np.float32))
    refuse("writable", out=np.empty((6, 12))[:, ::2])
    refuse("threads", threads=0)
    frozen = np.empty((6, 6))
    frozen.setflags(write=False)
    refuse("writable", out=frozen)
    square = np.ones((6, 6))
    refuse("overlaps", views=[(square, None)], out=square)
    with pytest.raises(ValueError, match="either W"):
        _core.contract(program(), [(X, None)], [], [])
    with pytest.raises(ValueError, match="either W"):
        _core.contract(program(), [(X, None)], [], [], U=X)
    with pytest.raises(ValueError, match="same observations"):
        _core.diag(program(), [(X, X.copy())], [], [], np.empty(6), 1)


@pytest.mark.parametrize(
    "indices, indptr, ncols",
    [
        ([0, 9], [0, 1, 2], 3),
        ([0, -1], [0, 1, 2], 3),
        ([1, 1], [0, 2, 2], 3),
        ([2, 1], [0, 2, 2], 3),
        ([0, 1], [0, 2, 1], 3),
        ([0, 1], [0, 3, 2], 3),
        ([0, 1], [1, 1, 2], 3),
        ([0, 1], [0, 1, 5], 3),
        ([0, 1], [-1, 1, 2], 3),
        ([0, 1, 2], [0, 1, 2], 3),
        ([0, 1], [], 3),
        ([0, 1], [0, 1, 2], -3),
        ([0, 1], [0, 1, 2], 2**61),
        ([0, 1], [0, 1, 2], 2**80),
    ],
)
def test_malformed_sparse_rows_are_refused(indices, indptr, ncols):
    rows = (np.ones(2), np.array(indices, np.int32), np.array(indptr, np.int64), ncols)
    refuse(".", views=[(rows, None)], out=np.empty((2, 2)))


def test_sparse_rows_are_refused_where_a_primitive_cannot_read_them():
    rows = (np.ones(2), np.array([0, 1]), np.array([0, 1, 2]), 3)
    refuse("dense", views=[(rows, None)], out=np.empty((2, 2)), code=encode("L1"))
    refuse("mixes", views=[(rows, X)], out=np.empty((2, 6)))


def test_read_only_inputs_are_accepted_and_left_alone():
    A = X.copy()
    A.setflags(write=False)
    before = A.tobytes()
    prob = Problem(RBF, [], [(X, None)])
    prob.views = [(A, None)]
    V = np.ones((6, 2))
    V.setflags(write=False)
    prob.gram(), prob.apply(V), prob.diag(), prob.contract(U=V, V=V, inputs=True)
    assert A.tobytes() == before


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("same", [False, True])
def test_results_are_bitwise_equal_for_any_number_of_threads(same, dtype):
    rng = np.random.default_rng(4)
    A, B = rng.normal(size=(700, 5)), rng.normal(size=(650, 5))
    code = encode("SQDIST", "RBF", ("AFFINE", 0, 1), ("PERIODIC", 0, 0), "EXPNEG", "ADD")
    prob = Problem(code, [1.2, 0.1], [(A, None if same else B)], [], [np.ones(5)], dtype)
    V = rng.normal(size=(prob.shape[1], 3)).astype(dtype)
    W = rng.normal(size=prob.shape).astype(dtype)
    for f in (
        lambda t: prob.gram(t).tobytes(),
        lambda t: prob.apply(V, t).tobytes(),
        lambda t: prob.apply(np.ascontiguousarray(V[:, :1]), t).tobytes(),
        lambda t: b"".join(a.tobytes() for a in _flat(prob.contract(W=W, inputs=True, threads=t))),
    ):
        assert len({f(t) for t in (1, 2, 3, 8)}) == 1


def _flat(answer):
    yield answer["params"]
    yield from answer["views"]
    for pair in answer["inputs"]:
        yield from pair


def test_little_work_starts_no_thread_unless_told_to():
    """What one thread has done before another has begun."""
    little, much = 40 * 30**2, 40 * 2000**2
    assert [_core.crew_size(t, little) for t in (1, 2, 8)] == [1, 2, 8]
    _core.force_threads(False)
    try:
        assert [_core.crew_size(t, little) for t in (1, 2, 8)] == [1, 1, 1]
        assert [_core.crew_size(t, much) for t in (1, 2, 8)] == [1, 2, 8]
    finally:
        _core.force_threads(True)


def test_a_child_forked_after_threads_ran_can_compute():
    prob = Problem(RBF, [], [(np.random.default_rng(0).normal(size=(600, 3)), None)])
    want = prob.gram(threads=2)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(prob.gram(threads=2), want) else 1)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the child hangs")


@pytest.mark.parametrize("verb", ["gram", "apply", "contract"])
def test_ctrl_c_interrupts_a_long_call(verb):
    script = f"""
        import numpy as np, threading, time, os, signal
        from core.programs import Problem, encode
        X = np.random.default_rng(0).normal(size=(30000, 30))
        prob = Problem(encode("SQDIST", *["RBF"] * 40), [], [(X[:6000] if "{verb}" == "gram" else X, None)])
        sent = []
        def interrupt():
            time.sleep(0.4)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        V = np.ones((prob.shape[1], 1))
        try:
            if "{verb}" == "gram":
                prob.gram(2)
            elif "{verb}" == "apply":
                prob.apply(V, 2)
            else:
                prob.contract(U=V, V=V, threads=2)
        except KeyboardInterrupt:
            print("interrupted", time.perf_counter() - sent[0])
    """
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(["tests", *filter(None, [os.environ.get("PYTHONPATH")])])
    }
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, env=env
    )
    assert run.stdout.startswith("interrupted"), run.stderr
    assert float(run.stdout.split()[1]) < 5  # a sanity bound, not a timing test: machines may be busy


def test_forcing_an_unknown_instruction_set_changes_nothing():
    before = _core.instruction_set()
    assert _core.force_isa("z80") is False
    assert _core.instruction_set() == before
