"""`mercer inspect`: what a table holds, what each column is taken for, and the kernel proposed for it.

A model is told by its suffix, and shown by `cli.models`.

The object that --json prints, schema "mercer.inspect/1":

    file, format, rows, columns    what was read
    notes                          what was assumed in reading it
    roles                          for each column: column, kind, why, missing, distinct
    kernel                         the text of the proposed kernel, or null
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mercer.cli.codes import FAILED, USAGE
from mercer.cli.talk import complain, json_text
from mercer.errors import InputError, MercerError, ParameterError

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout
    from mercer.tables.intake import TableFile
    from mercer.tables.propose import Proposal


MODEL = ".mercer"


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    table: str
    layout: Layout
    leave_out: tuple[str, ...]
    as_json: bool


def run_inspect(asked: Request) -> int:
    """Read, describe, print; return the exit code."""
    from mercer.tables.intake import read_table
    from mercer.tables.names import require_columns
    from mercer.tables.propose import describe_table

    if asked.table.endswith(MODEL):
        from mercer.cli.models import run_inspect_model

        return run_inspect_model(asked.table, as_json=asked.as_json)
    try:
        found = read_table(asked.table, asked.layout)
        proposal = None
        if found.frame is not None:
            require_columns(found.frame.columns, asked.leave_out, found.path)
            try:
                proposal = describe_table(found.frame, leave_out=asked.leave_out)
            except InputError as error:
                raise InputError(f"{found.path}: {error}") from error
    except ParameterError as error:
        complain(str(error))
        return USAGE
    except MercerError as error:
        complain(str(error))
        return FAILED
    if asked.as_json:
        print(json_text(_as_json(found, proposal)))
    else:
        print(found)
        print()
        print(_described(found, proposal))
    return 0


def _described(found: TableFile, proposal: Proposal | None) -> str:
    if proposal is not None:
        return str(proposal)
    assert found.matrix is not None and found.target is not None
    rows, columns = found.matrix.shape
    share = found.matrix.nnz / max(rows * columns, 1)
    kinds = len(set(found.target.tolist()))
    return f"sparse rows: {share:.2%} of the entries are not 0\ntarget: {kinds} different values"


def _as_json(found: TableFile, proposal: Proposal | None) -> dict[str, object]:
    rows, columns = found.shape
    roles = [] if proposal is None else proposal.roles
    return {
        "schema": "mercer.inspect/1",
        "file": found.path,
        "format": found.format,
        "rows": rows,
        "columns": columns,
        "notes": list(found.notes),
        "roles": [
            {
                "column": role.column,
                "kind": role.kind,
                "why": role.why,
                "missing": role.gaps,
                "distinct": role.distinct,
            }
            for role in roles
        ],
        "kernel": None if proposal is None else str(proposal.kernel),
    }
