"""`mercer compat svm-train …`: LIBSVM's programs under their own names and flags."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from mercer.cli.codes import FAILED
from mercer.cli.talk import complain
from mercer.errors import MercerError

PROGRAMS = ("svm-train", "svm-predict", "svm-scale")


def run_compat(program: str, arguments: Sequence[str]) -> int:
    """Run one of the programs; return its exit code, which is 0 or 1 as theirs."""
    from mercer.compat import programs

    run = {"svm-train": programs.train, "svm-predict": programs.predict, "svm-scale": programs.scale}[program]
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            run(arguments, print)
    except (MercerError, ValueError, OSError) as error:
        complain(str(error))
        return FAILED
    finally:
        for warning in said:
            complain(str(warning.message))
    return 0
