"""`table_kernel(table)`: a kernel for a table, proposed from its columns, with the reasons in words.

    k = Σ_j c_j k_j  +  c Π_j κ_j

The sum lets every column have an effect of its own, the product lets columns act together. The numbers of the
product are one factor with a lengthscale for each column, so are the categories, and each text is one more.
Numbers are read by their ranks, or standardised; then a term that is linear in them is added, since ranks
bend straight lines and standardised numbers do not. `Style` says which, and how smooth the factors are.
Lengthscales are open until a machine closes them, and every term has a factor: a machine that tunes (a
Gaussian process, or `choose`) finds out which columns matter. The result is an ordinary kernel, whose text
can be edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.kernels import (
    RBF,
    Categorical,
    Coded,
    Filled,
    Kernel,
    Known,
    Linear,
    Matern,
    Ranked,
    Reading,
    Standardized,
    Text,
)
from mercer.params import Open
from mercer.tables.names import require_columns
from mercer.tables.roles import Role, date_reading, role_of
from mercer.typing import Array, Table
from mercer.vectors import plain_numbers

READINGS = ("ranks", "standard", "plain")
SMOOTHNESS: dict[str, Kernel] = {"smooth": RBF(), "once": Matern(nu=1.5), "rough": Matern(nu=0.5)}


@dataclass(frozen=True)
class Style:
    """How the kernel of a table is built.

    `reading` is how numbers are read: by their "ranks" (as normal scores), "standard" (less the mean, over
    the deviation) with a linear term besides, or "plain", as they are. `smoothness` is that of functions of
    numbers: "smooth" (RBF), differentiable "once" (Matérn 3/2), or "rough" (Matérn 1/2). `alone` is whether
    each column has a term of its own besides the product of all.
    """

    reading: str = "ranks"
    smoothness: str = "smooth"
    alone: bool = True

    @property
    def shape(self) -> Kernel:
        """The kernel of one column of numbers."""
        return SMOOTHNESS[self.smoothness]

    @property
    def read(self) -> Reading:
        """The map from a column to the numbers that are compared."""
        return Ranked() if self.reading == "ranks" else Standardized()

    def words(self, roles: Sequence[Role]) -> str:
        """The style as these columns see it: how numbers are read is said where there are some."""
        used = [role for role in roles if role.kind != "left out"]
        if any(role.kind in ("number", "date") for role in used):
            return str(self)
        if len(used) == 1:
            return f"{self.functions} functions of {used[0].column}"
        return f"{self.functions} functions, {self._columns}"

    @property
    def functions(self) -> str:
        """How smooth, in words."""
        return {"smooth": "smooth", "once": "once differentiable", "rough": "rough"}[self.smoothness]

    @property
    def _columns(self) -> str:
        return "each column alone and all together" if self.alone else "all columns together"

    def __str__(self) -> str:
        numbers = {
            "ranks": "numbers by rank",
            "standard": "numbers standardised, with a linear term",
            "plain": "numbers as they are",
        }
        return f"{self.functions} functions, {numbers[self.reading]}, {self._columns}"


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


def table_kernel(table: Table, *, leave_out: Iterable[str] = (), ranks: bool = True) -> Kernel:
    """A kernel for a table, from the types and values of its columns; `describe_table` gives the reasons.

    Numbers and dates are read by their ranks, which no outlier moves far. `ranks=False` reads them as they
    are, for clusters: ranks close the gaps between them.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31.0, 55.0, 24.0], "sex": ["f", "m", "f"]})
    >>> for term in str(table_kernel(table)).split(" + "):
    ...     print(term)
    1.0*RBF().of(Ranked()).of(Filled()).on("age")
    1.0*Categorical().on("sex")
    1.0*RBF().of(Ranked()).of(Filled()).on("age")*Categorical().on("sex")
    """
    return describe_table(table, leave_out=leave_out, ranks=ranks).kernel


def describe_table(table: Table, *, leave_out: Iterable[str] = (), ranks: bool = True) -> Proposal:
    """What each column of a table was taken for, and the kernel that follows."""
    roles = roles_of(table, leave_out=leave_out)
    style = Style("ranks" if ranks else "plain")
    return Proposal(kernel_of(roles, style), roles)


def roles_of(table: Table, *, leave_out: Iterable[str] = ()) -> tuple[Role, ...]:
    """What each column of a table is; at least one of them must have something to learn from."""
    rows = Rows.of(table, "the table")
    if rows.names is None:
        raise InputError(
            "a table kernel needs the names of columns: pass a data frame of pandas, polars or Arrow. For an "
            "array of numbers, RBF(ard=True) is the usual start."
        )
    without = set(leave_out)
    require_columns(rows.names, sorted(without))
    roles = [role_of(name, _values(rows.take((name,)))) for name in rows.names if name not in without]
    if all(role.kind == "left out" for role in roles):
        raise InputError(
            "no column of the table has anything to learn from: every one has a single value or is a key."
        )
    return tuple(roles)


def _values(column: Rows) -> Sequence[object] | Array:
    """The values of one column."""
    numbers = plain_numbers(column.data)
    return column.things if numbers is None else numbers.ravel()


def kernel_of(roles: Sequence[Role], style: Style) -> Kernel:
    """The kernel of a table whose columns have these roles, its lengthscales open."""
    used = [role for role in roles if role.kind != "left out"]
    terms: list[Kernel] = []
    if style.alone or len(used) == 1:
        terms += [1.0 * term for role in used for term in _alone(role, style)]
    if len(used) > 1:
        terms.append(1.0 * _together(used, style))
    numbers = [role.column for role in used if role.kind == "number"]
    if style.reading == "standard" and numbers:
        terms.append(1.0 * Linear().of(Standardized()).of(Filled()).on(*numbers))
    return sum(terms[1:], start=terms[0])


def coded(roles: Sequence[Role]) -> tuple[Coded, tuple[str, ...]]:
    """How columns with these roles are read as numbers, and which they are; text is not."""
    used = [role for role in roles if role.kind in ("number", "category", "date")]
    kinds = [f"date {role.format}" if role.kind == "date" and role.format else role.kind for role in used]
    return Coded(tuple(kinds)), tuple(role.column for role in used)


# Rare words and groups of characters count more; a second time counts less than the first.
WORDS = Text("words", counting="logarithms", weighting="idf")
CHARACTERS = Text("characters", 2, 4, counting="logarithms", weighting="idf")


# Fewer gaps than this teach nothing: a mark would only make such rows unlike all others.
ENOUGH_GAPS = 5


def _is_marked(role: Role) -> bool:
    """Whether the kernel tells what is missing from what is known."""
    return role.gaps >= ENOUGH_GAPS


def _alone(role: Role, style: Style) -> list[Kernel]:
    """The terms of one column: its effect, whatever the others are."""
    name = role.column
    if role.kind == "text":
        return [WORDS.on(name), CHARACTERS.on(name)]
    if role.kind == "category":
        return [Categorical().on(name)]
    read = _reading(role, style.shape, style).on(name)
    if _is_marked(role):
        return [read * Categorical().of(Known()).on(name)]
    return [read]


def _together(roles: Sequence[Role], style: Style) -> Kernel:
    """One product of all columns, in which rows are alike that are alike in every column."""
    factors: list[Kernel] = []
    numbers = [role for role in roles if role.kind == "number"]
    if numbers:
        shared = _reading(numbers[0], _each(style.shape, numbers), style)
        factors.append(shared.on(*(role.column for role in numbers)))
    dates = [role for role in roles if role.kind == "date"]
    factors += [_reading(role, style.shape, style).on(role.column) for role in dates]
    gaps = [role.column for role in roles if _is_marked(role) and role.kind in ("number", "date")]
    if gaps:
        factors.append(Categorical().of(Known()).on(*gaps))
    categories = [role for role in roles if role.kind == "category"]
    if categories:
        factors.append(_each(Categorical(), categories).on(*(role.column for role in categories)))
    factors += [RBF().of(CHARACTERS).on(role.column) for role in roles if role.kind == "text"]
    return prod(factors[1:], start=factors[0])


def _each(kernel: Kernel, roles: Sequence[Role]) -> Kernel:
    """The kernel with an open lengthscale for each column."""
    if len(roles) == 1:
        return kernel
    return kernel.changed(lengthscale=Open.EACH)


def _reading(role: Role, kernel: Kernel, style: Style) -> Kernel:
    """The kernel on a column of numbers or dates as it is read; what is missing, now or later, is filled."""
    read = kernel if style.reading == "plain" else kernel.of(style.read)
    read = read.of(Filled())
    if role.kind == "date":
        return read.of(date_reading(role))
    return read


def _reason(role: Role) -> str:
    if not role.gaps or role.kind == "left out":
        return role.why
    filled = "filled with the median, and marked"
    if not _is_marked(role):
        filled = "filled with the median, too few to be marked"
    rules = {"number": filled, "date": filled, "category": "a category of their own", "text": "empty text"}
    rule = rules[role.kind]
    return f"{role.why}; {role.gaps} missing: {rule}"
