"""`mercer report`: the report of a model file as one HTML file.

The object that --json prints, schema "mercer.report/1":

    model, file    what was read, and what was written
    bytes          the size of the report
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mercer.cli.codes import FAILED
from mercer.cli.talk import complain, failure_code, json_text, reason_of
from mercer.errors import MercerError, ParameterError


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    model: Path
    output: Path
    table: str | None
    force: bool
    as_json: bool


def run_report(asked: Request) -> int:
    """Load, write, say where; return the exit code."""
    from mercer.cli.models import read_model
    from mercer.errors import OutputError
    from mercer.places import check_place
    from mercer.recipe.estimators import TableClassifier, TableRegressor
    from mercer.report.fit import NAME, write_report

    try:
        # what stands in the way is told before the work, not after
        check_place(asked.output, force=asked.force, example=NAME, error=OutputError)
        model = read_model(str(asked.model))
        if not isinstance(model, TableRegressor | TableClassifier):
            raise ParameterError(
                f"{asked.model} holds a {type(model).__name__}; reports are made of models of mercer.fit."
            )
        place = write_report(model, asked.output, table=asked.table, force=asked.force)
    except (MercerError, OSError) as error:
        complain(reason_of(error))
        return failure_code(error, FAILED)
    if asked.as_json:
        about = {"schema": "mercer.report/1", "model": str(asked.model), "file": str(place)}
        print(json_text({**about, "bytes": place.stat().st_size}))
    else:
        print(place)
    return 0
