"""Do the tests notice a small bug? Puts one deliberate fault at a time into a copy of the project and runs
the tests beside it.

    make mutation                               every fault, those in the C++ core too (each is compiled)
    PYTHONPATH=tests python -m mutation.run     those in Python
    PYTHONPATH=tests python -m mutation.run shift perceptron
                                                faults whose room, file or description has one of the words

A fault is *caught* when a test fails, crashes or takes more than ten minutes, and passes again without the
fault; it *survives* when all of them pass. The tests of a fault are those of its room, named beside it in
`faults/`, so the score is a lower bound of what the whole suite would catch.

Verdicts are kept in build/mutation.json. The next run asks again only where the fault, its file or its tests
have changed, and begins with the test that noticed last time; `--again` asks everything. Exit code 1 if fewer
than 90 of 100 are caught.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from mutation.fault import Fault
from mutation.faults import FAULTS, ROOM_OF
from mutation.results import Results
from mutation.trial import CAUGHT, HERE, INVALID, SURVIVED, Trial, Verdict

WANTED = 0.9


def asked() -> argparse.Namespace:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("words", nargs="*", help="only faults whose room, file or description has one of these")
    ask.add_argument("--core", action="store_true", help="also faults in the C++ core")
    ask.add_argument("--again", action="store_true", help="ask again what has a verdict")
    ask.add_argument(
        "--results", type=Path, default=HERE / "build" / "mutation.json", help="where verdicts are"
    )
    return ask.parse_args()


def chosen_by(given: argparse.Namespace) -> list[Fault]:
    def fits(fault: Fault) -> bool:
        words = f"{ROOM_OF[fault]} {fault.file} {fault.what}"
        return not given.words or any(word in words for word in given.words)

    return [f for f in FAULTS if fits(f) and (given.core or not f.in_core)]


def score(verdicts: dict[Fault, Verdict]) -> str:
    """A line for each room, and one for all."""
    counts = Counter((ROOM_OF[fault], verdict.result) for fault, verdict in verdicts.items())
    rooms = dict.fromkeys(ROOM_OF[fault] for fault in verdicts)

    def line(title: str, names: list[str]) -> str:
        caught, survived, invalid = (
            sum(counts[name, result] for name in names) for result in (CAUGHT, SURVIVED, INVALID)
        )
        total = caught + survived + invalid
        share = f"{100 * caught / max(total, 1):.0f} %"
        return (
            f"{title:9} {total:4} faults, {caught:4} caught ({share}), {survived} survived, {invalid} invalid"
        )

    return "\n".join([*(line(room, [room]) for room in rooms), line("all", list(rooms))])


def confirm(trial: Trial, results: Results, verdicts: dict[Fault, Verdict]) -> None:
    """Run the tests that noticed once more, all without a fault: one that still fails has noticed nothing."""
    unsure = {f: v for f, v in verdicts.items() if v.result == CAUGHT and not v.sure}
    failing = trial.failing({v.by for v in unsure.values()})
    for fault, verdict in unsure.items():
        settled = replace(verdict, sure=True)
        if verdict.by in failing:
            settled = Verdict(INVALID, f"{verdict.by} fails without the fault")
            print(f"{INVALID}: {fault.file}: {fault.what} | {settled.by}", flush=True)
        verdicts[fault] = settled
        results.keep(fault, settled)


def main() -> int:
    given = asked()
    verdicts: dict[Fault, Verdict] = {}
    with tempfile.TemporaryDirectory(prefix="mercer-mutation-") as name:
        trial = Trial(Path(name))
        results = Results(trial.folder, given.results)
        for fault in chosen_by(given):
            start = time.monotonic()
            verdict = None if given.again else results.known(fault)
            if verdict is None:
                verdict = trial.judge(fault, results.likely(fault))
                results.keep(fault, verdict)
            verdicts[fault] = verdict
            took = time.monotonic() - start
            print(f"{verdict.result:8} {took:5.0f} s  {fault.file}: {fault.what} | {verdict.by}", flush=True)
        confirm(trial, results, verdicts)
    print(score(verdicts))
    caught = sum(v.result == CAUGHT for v in verdicts.values())
    return int(caught < WANTED * len(verdicts))


if __name__ == "__main__":
    raise SystemExit(main())
