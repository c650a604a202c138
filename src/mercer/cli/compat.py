"""`mercer compat svm-train …`: LIBSVM's programs under their own names and flags.

The object that --json prints in place of their words, schema "mercer.compat/1":

    program       svm-train, svm-predict or svm-scale
    svm-train     rows, model, machine, kernel, status, iterations, objective, gap, rho, vectors;
                  with -v rows, folds, and accuracy or mean_squared_error and squared_correlation
    svm-predict   rows, model, file, and accuracy or mean_squared_error and squared_correlation
    svm-scale     rows, ranges (the file that -s names, or null), lines: the data, scaled, as LIBSVM writes it
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from mercer.cli.codes import FAILED
from mercer.cli.talk import complain, json_text
from mercer.errors import MercerError

PROGRAMS = ("svm-train", "svm-predict", "svm-scale")


def run_compat(program: str, arguments: Sequence[str], *, as_json: bool = False) -> int:
    """Run one of the programs; return its exit code, which is 0 or 1 as theirs."""
    from mercer.compat import programs

    run = {"svm-train": programs.train, "svm-predict": programs.predict, "svm-scale": programs.scale}[program]
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            facts = run(arguments, _silent if as_json else print)
    except (MercerError, ValueError, OSError) as error:
        complain(str(error))
        return FAILED
    finally:
        for warning in said:
            complain(str(warning.message))
    if as_json:
        print(json_text({"schema": "mercer.compat/1", "program": program, **facts}))
    return 0


def _silent(line: str) -> None:
    """Where words go that the object has as numbers."""
