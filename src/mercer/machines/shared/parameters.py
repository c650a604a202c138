"""Parameters of estimators, declared once: what each may be, in words, and its lines of the docstrings.

`TABLE` holds the parameters that mean the same in all machines. A machine adds its own, or says where it
differs:

    parameters: ClassVar[Declarations] = {"nu": Number(0.0, 1.0, closed_high=True, about="…")}

The constructor's signature says which of them a machine has; `check_parameters` walks it in `fit`, and
`filled` writes into the docstring of the class what that does not say itself.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from mercer.errors import ParameterError
from mercer.memory import memory_limit
from mercer.params import is_real, is_whole
from mercer.sparse import Matrix
from mercer.threads import threads
from mercer.typing import Setting

PLACEHOLDER = "{shared parameters}"
WIDTH = 110
LARGEST_C = 1e100


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter: `about` is its text in docstrings, `none` and `also` are allowed beside its domain.

    `words` say the domain in place of the words made from it.
    """

    about: str = ""
    none: bool = False
    also: tuple[object, ...] = ()
    words: str = ""
    kind: ClassVar[str] = ""

    def accepts(self, value: object) -> bool:
        """Whether a value that is neither None nor one of `also` lies in the domain."""
        raise NotImplementedError

    def domain(self, name: str) -> str:
        """The domain in words, without None and `also`."""
        raise NotImplementedError

    def needed(self, name: str) -> str:
        """What the parameter must be, in words."""
        if self.words:
            return self.words
        others = ["None"] if self.none else []
        others += [repr(value) for value in self.also]
        return " or ".join([*others, self.domain(name)])

    def check(self, value: object, owner: str, name: str) -> None:
        """Refuse a value outside the domain."""
        if value is None:
            if self.none:
                return
        elif self.accepts(value) or _among(value, self.also):
            return
        raise ParameterError(f"{owner}: {name} must be {self.needed(name)}; got {_shown(value)}.")

    def but(self, **changes: Setting) -> Self:
        """The same parameter with some fields changed, where a machine differs."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Number(Parameter):
    """A real number between `low` and `high`, without the ends unless they are closed.

    >>> Number(0.0).check(1.5, "SVC", "tol")
    >>> Number(0.0).needed("tol"), Number(0.0, 1.0, closed_high=True, none=True).needed("nu")
    ('a finite number > 0', 'None or a number with 0 < nu <= 1')
    """

    low: float = 0.0
    high: float = math.inf
    closed_low: bool = False
    closed_high: bool = False
    kind: ClassVar[str] = "float"

    def accepts(self, value: object) -> bool:
        if type(value) is not float and not is_real(value):
            return False
        above = value >= self.low if self.closed_low else value > self.low
        below = value <= self.high if self.closed_high else value < self.high
        return bool(above and below)

    def domain(self, name: str) -> str:
        left = ">=" if self.closed_low else ">"
        if self.high == math.inf:
            finite = "" if self.closed_high else "finite "
            return f"a {finite}number {left} {self.low:g}"
        lower = "<=" if self.closed_low else "<"
        upper = "<=" if self.closed_high else "<"
        return f"a number with {self.low:g} {lower} {name} {upper} {self.high:g}"


@dataclass(frozen=True)
class Whole(Parameter):
    """A whole number from `least` to `most`.

    >>> Whole(1, none=True).needed("max_iter"), Whole(1, 9).needed("n_starts")
    ('None or a whole number >= 1', 'a whole number from 1 to 9')
    """

    least: int = 0
    most: float = math.inf
    kind: ClassVar[str] = "int"

    def accepts(self, value: object) -> bool:
        return is_whole(value) and self.least <= int(value) <= self.most

    def domain(self, name: str) -> str:
        if self.most == math.inf:
            return f"a whole number >= {self.least}"
        return f"a whole number from {self.least} to {self.most:g}"


@dataclass(frozen=True)
class Choice(Parameter):
    """One of a few values.

    >>> Choice(("ovo", "ovr")).needed("multiclass")
    "one of 'ovo', 'ovr'"
    """

    values: tuple[object, ...] = ()
    kind: ClassVar[str] = ""

    def accepts(self, value: object) -> bool:
        return _among(value, self.values)

    def needed(self, name: str) -> str:
        if self.words:
            return self.words
        values = [*self.values, *self.also]
        if self.none:
            values.append(None)
        return "one of " + ", ".join(map(repr, values))


@dataclass(frozen=True)
class ChoiceOrArray(Choice):
    """One of a few names, or an array of numbers with so many dimensions, which `array` says in words.

    >>> ChoiceOrArray(("learn", "uniform"), array="numbers, one for each kernel").needed("weights")
    "one of 'learn', 'uniform', or numbers, one for each kernel"
    """

    array: str = "an array"
    dimensions: tuple[int, ...] = (1,)

    def accepts(self, value: object) -> bool:
        if isinstance(value, str):
            return value in self.values
        try:
            array: Matrix = value if sparse.issparse(value) else np.asarray(value)
        except ValueError:
            return False
        return array.ndim in self.dimensions and array.dtype.kind in "fiub"

    def needed(self, name: str) -> str:
        return f"{super().needed(name)}, or {self.array}"


@dataclass(frozen=True)
class Switch(Parameter):
    """True or False; "no" would count as yes."""

    kind: ClassVar[str] = "bool"

    def accepts(self, value: object) -> bool:
        return isinstance(value, bool | np.bool_)

    def domain(self, name: str) -> str:
        return "True or False"


@dataclass(frozen=True)
class Seed(Parameter):
    """What random numbers begin with."""

    kind: ClassVar[str] = "int, RandomState or Generator"

    def accepts(self, value: object) -> bool:
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return True
        return Whole(0, 2**32 - 1).accepts(value)

    def domain(self, name: str) -> str:
        return "a whole number from 0 to 2**32 - 1, or a RandomState or Generator of numpy"


@dataclass(frozen=True)
class Function(Parameter):
    """Something that can be called."""

    kind: ClassVar[str] = "function"

    def accepts(self, value: object) -> bool:
        return callable(value)

    def domain(self, name: str) -> str:
        return "a function"


@dataclass(frozen=True)
class CheckedBy(Parameter):
    """A parameter with a check of its own: a function of the value that raises a ParameterError."""

    by: Callable[[Setting], object] = print
    type: str = ""

    def check(self, value: object, owner: str, name: str) -> None:
        if value is None and self.none:
            return
        try:
            self.by(value)
        except ParameterError as error:
            raise ParameterError(f"{owner}: {error}") from None


@dataclass(frozen=True)
class Special(Parameter):
    """A parameter that cannot be checked alone; `reason` says why, and where it is."""

    reason: str = ""
    type: str = ""

    def check(self, value: object, owner: str, name: str) -> None:
        """Nothing to check here."""


def _among(value: object, values: tuple[object, ...]) -> bool:
    if isinstance(value, np.bool_):
        value = bool(value)
    return any(type(value) is type(v) and value == v for v in values)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


Declarations = Mapping[str, Parameter]
"""What a class declares of its parameters, by name."""


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def constructor(kind: type) -> Mapping[str, inspect.Parameter]:
    """The constructor's parameters by name, without self."""
    found = dict(inspect.signature(kind.__init__).parameters)  # type: ignore[misc]
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {name: p for name, p in list(found.items())[1:] if p.kind not in several}


@cache
def declared(kind: type) -> Declarations:
    """What is declared for each parameter of the constructor.

    The class says it, else those it inherits from, else `TABLE`.
    """
    known = dict(TABLE)
    for base in reversed(kind.__mro__):
        known |= vars(base).get("parameters", {})
    return {name: known[name] for name in constructor(kind) if name in known}


@cache
def _to_check(kind: type) -> tuple[tuple[str, object, Parameter], ...]:
    given = constructor(kind)
    return tuple((name, given[name].default, p) for name, p in declared(kind).items())


def check_parameters(estimator: object) -> None:
    """Refuse the first parameter outside its domain. Defaults are known to be inside."""
    kind: type = type(estimator)
    for name, default, parameter in _to_check(kind):
        value = getattr(estimator, name)
        if value is not default:
            parameter.check(value, kind.__name__, name)


def steps_allowed(max_iter: int | None) -> int:
    """`max_iter` as a number; None is the largest that every solver can count to.

    >>> steps_allowed(7), steps_allowed(None)
    (7, 2147483647)
    """
    return 2**31 - 1 if max_iter is None else int(max_iter)


# ── docstrings ──────────────────────────────────────────────────────────────────────────────────────────────

_ENTRY = re.compile(r"^    ([A-Za-z_]\w*(?:, ?[A-Za-z_]\w*)*) ?:", re.MULTILINE)


def described(doc: str) -> set[str]:
    """The parameters that have an entry in the section "Parameters" of a class docstring."""
    section = doc.partition("Parameters\n    ----------\n")[2].partition("\n\n")[0]
    return {name.strip() for names in _ENTRY.findall(section) for name in names.split(",")}


def filled(kind: type) -> str | None:
    """The docstring of a class, `PLACEHOLDER` replaced by the parameters that it does not describe."""
    doc: str | None = vars(kind).get("__doc__")
    if not doc or PLACEHOLDER not in doc:
        return doc
    done = described(doc)
    entries = [_entry(name, p) for name, p in declared(kind).items() if name not in done]
    return doc.replace(f"    {PLACEHOLDER}", "\n".join(entries))


def _entry(name: str, parameter: Parameter) -> str:
    text = textwrap.fill(parameter.about, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return f"    {name} : {_type(parameter)}\n{text}"


def _type(parameter: Parameter) -> str:
    if isinstance(parameter, CheckedBy | Special):
        return parameter.type
    values = list(parameter.also)
    if isinstance(parameter, Choice):
        values = [*parameter.values, *values]
    names = [f'"{v}"' if isinstance(v, str) else str(v) for v in values]
    if isinstance(parameter, ChoiceOrArray):
        names.append("array")
    if parameter.kind:
        names.insert(0, parameter.kind)
    if parameter.none:
        names.append("None")
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + f" or {names[-1]}"


# ── what means the same everywhere ──────────────────────────────────────────────────────────────────────────

KERNEL_TEXT = (
    'A kernel, its text, or "precomputed" (then `fit` takes the Gram matrix, and later calls take rows = '
    'new, columns = training). An open lengthscale, as of "RBF()", is closed column by column from the '
    "spread of X; `kernel_` says what was used."
)

HARD_OR_SOFT = Number(
    high=LARGEST_C,
    closed_high=True,
    also=(math.inf,),
    words=f"a number with 0 < C <= {LARGEST_C:g}, so that its square is still a number, or inf for the hard "
    "margin",
    about="The price of a row inside the margin, times its weight. `inf` is the hard margin: "
    "`NotSeparableError` where no hyperplane separates the classes.",
)

TABLE: dict[str, Parameter] = {
    "kernel": Special(
        about=KERNEL_TEXT,
        type="Kernel or str",
        reason="it is read together with the rows, by `resolve`",
    ),
    "alpha": Number(about="The price of ‖f‖²."),
    "C": Number(
        high=LARGEST_C,
        closed_high=True,
        words=f"a finite number with 0 < C <= {LARGEST_C:g}, so that its square is still a number (the hard "
        "margin is SVC with C=inf)",
        about="The price of a row inside the margin, times its weight.",
    ),
    "nu": Number(high=1.0, closed_high=True, about="A share of the rows, 0 < ν ≤ 1."),
    "epsilon": Number(
        closed_low=True, about="Half the width of the tube in which errors cost nothing, in units of y."
    ),
    "tolerance": Number(
        0.0,
        1.0,
        closed_low=True,
        none=True,
        words="None or a share of the trace, 0 <= tolerance < 1",
        about="The share of the trace that may be left out.",
    ),
    "n_restarts": Whole(0, about="So many further searches from random starts, in parallel."),
    "fit_intercept": Switch(about="Learn a constant b that is not penalised."),
    "tol": Number(about="How exact the answer has to be."),
    "max_iter": Whole(
        1,
        none=True,
        about="Steps allowed; None for no limit. What was reached is kept, and its certificate says so.",
    ),
    "max_seconds": Number(
        none=True,
        about="Seconds allowed; None for no limit. What was reached is kept, and its certificate says so.",
    ),
    "strict": Switch(about="Refuse a kernel that is not positive semi-definite instead of warning."),
    "memory": CheckedBy(
        by=memory_limit,
        type="int or str",
        about='Bytes that kernel matrices and factors may take, or text such as "2GiB"; beyond it, tiles are '
        "computed anew.",
    ),
    "n_jobs": CheckedBy(
        by=threads,
        none=True,
        type="int or None",
        about="Threads; None for those available, -1 for all of them.",
    ),
    "random_state": Seed(
        none=True, about="What random numbers begin with; None for another beginning each time."
    ),
    "verbose": Whole(
        0, also=(False, True), words="True, False or a whole number >= 0", about="Print progress if not 0."
    ),
    "callback": Function(none=True, about="Called with the progress of the fit."),
    "warm_start": Switch(about="Go on from the last solution."),
    "probability": Switch(about="Also calibrate `predict_proba`, on decision values of held-out rows."),
    "multiclass": Choice(
        ("ovo", "ovr"),
        about="One problem for each pair of classes or for each class; all share one Gram operator.",
    ),
    "class_weight": Special(
        type='dict, "balanced" or None',
        about="Factors of the weights of rows, by class.",
        reason="its keys are labels of y, with which it is checked",
    ),
    "n_landmarks": Whole(1, about="How many landmarks, at most."),
    "landmarks": ChoiceOrArray(
        ("uniform", "kmeans", "leverage", "pivoted"),
        array="points, or whole numbers that name rows",
        dimensions=(1, 2),
        about="Rows drawn by weight; centres of clusters; rows drawn by approximate ridge leverage scores; "
        "rows chosen greedily where most is left (pivoted Cholesky); or one's own, as points or as whole "
        "numbers that name rows.",
    ),
    "approximation": Special(
        type="Nystroem(...), RandomFeatures(...) or None",
        about="Features in place of the kernel, which takes the kernel of the machine; the certificate says "
        "what that leaves out.",
        reason="it is an estimator, which checks its own parameters when it is fitted",
    ),
}
