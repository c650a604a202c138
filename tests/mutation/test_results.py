"""Verdicts of the run of deliberate faults: kept while what they are about stays, told by room."""

from __future__ import annotations

from mutation.fault import Fault
from mutation.faults import FAULTS, ROOM_OF
from mutation.results import Results
from mutation.run import confirm, score
from mutation.trial import CAUGHT, INVALID, SURVIVED, Verdict

FAULT = Fault("a sign", "code.py", "+", "-", "tests/test_code.py -k sum")
BY = "tests/test_code.py::test_sum"


def project(folder):
    (folder / "tests").mkdir()
    (folder / "code.py").write_text("1 + 1\n")
    (folder / "tests" / "test_code.py").write_text("def test_sum(): ...\n")
    return folder


def test_a_verdict_outlives_an_interrupted_run(tmp_path):
    root, file = project(tmp_path), tmp_path / "build" / "verdicts.json"
    assert Results(root, file).known(FAULT) is None
    Results(root, file).keep(FAULT, Verdict(CAUGHT, BY))
    assert Results(root, file).known(FAULT) == Verdict(CAUGHT, BY)


def test_a_verdict_ends_with_a_change_of_the_fault_its_file_or_its_tests(tmp_path):
    root, file = project(tmp_path), tmp_path / "verdicts.json"
    Results(root, file).keep(FAULT, Verdict(CAUGHT, BY))
    other = Fault("a sign", "code.py", "+", "*", "tests/test_code.py -k sum")
    assert Results(root, file).known(other) is None
    for changed in (root / "code.py", root / "tests" / "test_code.py"):
        before = changed.read_text()
        changed.write_text(before + "# more\n")
        assert Results(root, file).known(FAULT) is None
        # what noticed last time is still the first to be asked
        assert Results(root, file).likely(FAULT) == BY
        changed.write_text(before)
    assert Results(root, file).known(FAULT) == Verdict(CAUGHT, BY)


def test_two_runs_at_once_lose_no_verdict(tmp_path):
    root, file = project(tmp_path), tmp_path / "verdicts.json"
    one, two = Results(root, file), Results(root, file)
    second = Fault("a loop", "code.py", "+", "*", "tests/test_code.py")
    one.keep(FAULT, Verdict(CAUGHT, BY))
    two.keep(second, Verdict(SURVIVED))
    again = Results(root, file)
    assert again.known(FAULT) == Verdict(CAUGHT, BY) and again.known(second) == Verdict(SURVIVED)
    assert again.likely(second) == ""


def test_the_score_counts_every_fault_once_and_by_room():
    wanted = {CAUGHT: 5, SURVIVED: 2, INVALID: 1}
    results = [result for result, count in wanted.items() for _ in range(count)]
    chosen = FAULTS[:4] + FAULTS[-4:]
    verdicts = {fault: Verdict(result) for fault, result in zip(chosen, results, strict=True)}
    lines = score(verdicts).splitlines()
    assert [line.split()[0] for line in lines] == [ROOM_OF[chosen[0]], ROOM_OF[chosen[-1]], "all"]
    assert "8 faults" in lines[-1] and "5 caught (62 %)" in lines[-1]
    assert "2 survived, 1 invalid" in lines[-1]


def test_a_test_that_fails_without_the_fault_has_noticed_nothing(tmp_path):
    class Trial:
        def failing(self, tests):
            assert tests == {BY, "tests/test_code.py::test_loop"}
            return {"tests/test_code.py::test_loop"}

    results = Results(project(tmp_path), tmp_path / "verdicts.json")
    second = Fault("a loop", "code.py", "+", "*", "tests/test_code.py")
    third = Fault("a name", "code.py", "1", "2", "tests/test_code.py")
    verdicts = {
        FAULT: Verdict(CAUGHT, BY),
        second: Verdict(CAUGHT, "tests/test_code.py::test_loop"),
        third: Verdict(CAUGHT, "tests/test_code.py::test_name", sure=True),
    }
    confirm(Trial(), results, verdicts)
    assert [v.result for v in verdicts.values()] == [CAUGHT, INVALID, CAUGHT]
    assert results.known(FAULT) == Verdict(CAUGHT, BY, sure=True)
    # which is no verdict: it is asked again
    assert results.known(second) is None
