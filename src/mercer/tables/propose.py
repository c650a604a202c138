"""`table_kernel(table)`: a kernel for a table, proposed from its columns, with the reasons in words.

    k = Σ_j c_j k_j  +  c Π_j k_j

The sum lets every column have an effect of its own, the product lets columns act together; every part has a
lengthscale of its own, open until a machine closes it, and a factor. A machine that tunes (a Gaussian
process, or `choose`) finds out which columns matter. The result is an ordinary kernel, whose text can be
edited.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.kernels import RBF, Categorical, Filled, Kernel, Known, Text
from mercer.tables.roles import Role, date_reading, role_of
from mercer.typing import Table


@dataclass(frozen=True)
class Proposal:
    """A kernel for a table, and what each of its columns was taken for."""

    kernel: Kernel
    roles: tuple[Role, ...]

    def __str__(self) -> str:
        """The reasons, a line for each column."""
        width = max(len(role.column) for role in self.roles)
        lines = [f"{role.column:{width}}  {role.kind}: {_reason(role)}" for role in self.roles]
        return "\n".join([*lines, f"kernel = {self.kernel}"])


def table_kernel(table: Table, *, leave_out: Iterable[str] = ()) -> Kernel:
    """A kernel for a table, from the types and values of its columns; `describe_table` gives the reasons.

    >>> import pandas as pd
    >>> table_kernel(pd.DataFrame({"age": [31.0, 55.0, 24.0], "sex": ["f", "m", "f"]}))
    1.0*RBF().on("age") + 1.0*Categorical().on("sex") + 1.0*RBF().on("age")*Categorical().on("sex")
    """
    return describe_table(table, leave_out=leave_out).kernel


def describe_table(table: Table, *, leave_out: Iterable[str] = ()) -> Proposal:
    """What each column of a table was taken for, and the kernel that follows."""
    rows = Rows.of(table, "the table")
    if rows.names is None:
        raise InputError(
            "a table kernel needs the names of columns: pass a data frame of pandas, polars or Arrow. For an "
            "array of numbers, RBF(ard=True) is the usual start."
        )
    without = set(leave_out)
    unknown = sorted(without - set(rows.names))
    if unknown:
        raise InputError(
            f"leave_out names the columns {unknown}, which the table does not have: {rows.names}."
        )
    roles = [role_of(name, rows.take((name,)).things) for name in rows.names if name not in without]
    _refuse_gaps_in_dates(roles)
    used = [role for role in roles if role.kind != "left out"]
    if not used:
        raise InputError(
            "no column of the table has anything to learn from: every one has a single value or is a key."
        )
    parts = [_part(role) for role in used]
    if len(parts) == 1:
        return Proposal(1.0 * parts[0], tuple(roles))
    terms = [1.0 * part for part in (*parts, prod(parts[1:], start=parts[0]))]
    return Proposal(sum(terms[1:], start=terms[0]), tuple(roles))


def _part(role: Role) -> Kernel:
    """The kernel of one column."""
    name = role.column
    if role.kind == "number":
        if not role.gaps:
            return RBF().on(name)
        return RBF().of(Filled()).on(name) * Categorical().of(Known()).on(name)
    if role.kind == "date":
        return RBF().of(date_reading(role)).on(name)
    if role.kind == "text":
        return RBF().of(Text("characters", 2, 4)).on(name)
    return Categorical().on(name)


def _refuse_gaps_in_dates(roles: Iterable[Role]) -> None:
    for role in roles:
        if role.kind == "date" and role.gaps:
            raise InputError(
                f"the column {role.column!r} holds dates, of which {role.gaps} are missing, and a missing "
                f"date has no place in time. Fill them, or leave the column out: leave_out=[{role.column!r}]."
            )


def _reason(role: Role) -> str:
    if not role.gaps or role.kind == "left out":
        return role.why
    rules = {
        "number": "filled with the median, and marked",
        "category": "a category of their own",
        "text": "empty text",
    }
    rule = rules[role.kind]
    return f"{role.why}; {role.gaps} missing: {rule}"
