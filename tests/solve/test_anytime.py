"""One context ends all that goes round: by seconds, or by Ctrl-C with the best answer so far."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mercer
from mercer import clock
from mercer.solve.anytime import Anytime

SOURCE = Path(mercer.__file__).parent
# Tells its threads to stop and lets the key go on: it keeps nothing itself.
# The commands catch it last of all, for their exit code.
OWN_HANDLER = {"machines/gaussian_process/tune.py", "cli/serve.py", "cli/source.py"}


def test_ctrl_c_keeps_what_there_is_and_says_so():
    with Anytime[int]() as run:
        run.best = 7
        raise KeyboardInterrupt
    assert run.best == 7 and run.interrupted and run.status == "interrupted"


def test_ctrl_c_before_there_is_anything_goes_on_as_what_it_is():
    run = Anytime[int]()
    with pytest.raises(KeyboardInterrupt), run:
        raise KeyboardInterrupt
    assert not run.interrupted


def test_an_error_is_never_swallowed():
    run = Anytime(best=7)
    with pytest.raises(ValueError), run:
        raise ValueError
    assert run.status == "limit"


def test_a_run_that_ends_by_itself_has_the_status_it_was_given():
    with Anytime(best=7) as run:
        run.status = mercer.solve.solution.Status.CONVERGED
    assert run.status == "converged" and not run.interrupted


def test_what_runs_inside_sees_the_limit_and_the_shorter_of_two_counts():
    with Anytime(max_seconds=1000.0), Anytime(max_seconds=5.0):
        assert clock.left() <= 5.0
        with Anytime(max_seconds=100.0):
            assert clock.left() <= 5.0
        with Anytime():
            assert clock.left() <= 5.0
    assert clock.left() is None


def test_seconds_count_from_the_moment_that_the_run_is_made(monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: 100.0)
    run = Anytime(max_seconds=5.0, best=7)
    monkeypatch.setattr(clock, "now", lambda: 103.0)
    with run:
        assert clock.left() == 2.0 and run.seconds == 3.0


def test_the_limit_ends_with_the_run_also_after_ctrl_c_and_errors():
    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error), Anytime(max_seconds=5.0):
            raise error
        assert clock.left() is None


def test_nobody_else_catches_ctrl_c():
    """An `except KeyboardInterrupt` of one's own is a second way to keep the best so far."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            caught = node.type if isinstance(node, ast.ExceptHandler) else None
            if caught is not None and "KeyboardInterrupt" in ast.unparse(caught):
                found.add(path.relative_to(SOURCE).as_posix())
    assert found == OWN_HANDLER
