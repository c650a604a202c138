"""The exceptions and warnings of mercer, as one tree.

    MercerError
    ├── InputError (ValueError)          the data cannot be used
    │   ├── ShapeError                   wrong number of rows, columns or dimensions
    │   ├── NotFiniteError               NaN or infinity
    │   ├── MagnitudeError               numbers so large that squared distances overflow
    │   ├── DomainError                  outside the set on which the kernel is defined
    │   └── TargetError                  what is to be predicted: no value, one value, text for numbers
    ├── InputTypeError (TypeError)       the wrong kind of thing: dates, masks, text where numbers belong
    ├── ParameterError (ValueError)      a parameter outside its declared domain
    │   └── UnknownParameterError (TypeError)  a name that is no parameter, with what it is called here
    ├── ParseError (ValueError)          a kernel expression that cannot be read; knows the column
    ├── InvalidKernelError (ValueError)  a kernel refused because it is not positive semi-definite
    ├── NotSeparableError (ValueError)   a hard margin was asked for and no hyperplane separates the classes
    ├── NoFiniteMapError (ValueError)    the explicit feature map is infinite
    ├── ModelFileError (ValueError)      a model that cannot be saved, or a file that holds no sound model
    ├── OutputError (ValueError)         a table or report that cannot be written to the place asked for
    ├── ClusterError (RuntimeError)      a cluster that is missing, not to be trusted, or not for this machine
    ├── NotPositiveDefiniteError (LinAlgError)  a matrix with a pivot, or a direction, that is not positive
    └── MemoryBudgetError (MemoryError)  the answer would not fit in the memory allowed

    Interrupted (KeyboardInterrupt)      Ctrl-C ended a fit; `model` is what was reached, fitted

    MercerWarning (UserWarning)
    ├── InvalidKernelWarning             used all the same, with what is lost
    └── PrecisionWarning                 the answer is right to fewer digits than usual, or degenerate

Every message says what came, what was needed, and what to do.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np


class MercerError(Exception):
    """The root: `except MercerError` catches everything mercer raises on purpose."""


class InputError(MercerError, ValueError):
    """The data cannot be used."""


class ShapeError(InputError):
    """Wrong number of rows, columns or dimensions."""


class NotFiniteError(InputError):
    """NaN or infinity in the data."""


class MagnitudeError(InputError):
    """Numbers so large that squared distances or dot products overflow."""


class DomainError(InputError):
    """Data outside the set on which the kernel is defined (a negative histogram, say)."""


class TargetError(InputError):
    """The target cannot be learned: it has no value, only one, or none that the machine can take."""


class InputTypeError(MercerError, TypeError):
    """The wrong kind of thing: dates, masked entries, text where numbers belong."""


class ParameterError(MercerError, ValueError):
    """A parameter outside its declared domain."""


class OpenParameterError(ParameterError):
    """A kernel was evaluated whose lengthscale is left to the data."""


class UnknownParameterError(ParameterError, TypeError):
    """A name that is no parameter of the estimator; the message says what it is called here."""


class InvalidKernelError(MercerError, ValueError):
    """A kernel refused because it is not positive semi-definite."""


class NotSeparableError(MercerError, ValueError):
    """A hard margin was asked for, and no hyperplane separates the classes."""


class NoFiniteMapError(MercerError, ValueError):
    """The explicit feature map is infinite, so it cannot be built."""


class ModelFileError(MercerError, ValueError):
    """A model that cannot be saved, or a file that holds no sound model."""


class OutputError(MercerError, ValueError):
    """A table or a report that cannot be written, or not to the place that was asked for."""


class ClusterError(MercerError, RuntimeError):
    """A cluster that is missing, lost or open to strangers, or a machine that does not run on one."""


class NotPositiveDefiniteError(MercerError, np.linalg.LinAlgError):
    """A matrix that had to be positive definite is not; nothing was added to it behind your back.

    `pivot` is the row at which the factorisation stopped, `duplicates` pairs of rows that the matrix can
    hardly tell apart, `smallest_eigenvalue` what it says, `sufficient_diagonal` the smallest diagonal found
    to be enough. What was not found out is None.
    """

    def __init__(
        self,
        message: str,
        pivot: int | None = None,
        duplicates: Sequence[tuple[int, int]] = (),
        smallest_eigenvalue: float | None = None,
        sufficient_diagonal: float | None = None,
    ) -> None:
        super().__init__(message)
        self.pivot = pivot
        self.duplicates = tuple(duplicates)
        self.smallest_eigenvalue = smallest_eigenvalue
        self.sufficient_diagonal = sufficient_diagonal

    def __reduce__(self) -> tuple[type[NotPositiveDefiniteError], tuple[object, ...]]:
        known = (self.pivot, self.duplicates, self.smallest_eigenvalue, self.sufficient_diagonal)
        return type(self), (str(self), *known)


class MemoryBudgetError(MercerError, MemoryError):
    """The answer would not fit in the memory allowed."""


class ParseError(MercerError, ValueError):
    """A kernel expression that cannot be read.

    `text` is the expression, `column` the place of the trouble counted from 1, `pointer` two lines with a
    caret under it.
    """

    def __init__(self, problem: str, text: str, column: int) -> None:
        self.problem = problem
        self.text = text
        self.column = column
        super().__init__(f"{problem.rstrip('.')} at column {column}\n{self.pointer}")

    @property
    def pointer(self) -> str:
        line = self.text.replace("\n", " ").replace("\t", " ")
        return f"  {line}\n  {' ' * (self.column - 1)}^"

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int]]:
        return type(self), (self.problem, self.text, self.column)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a fit that had something to keep: `model`, fitted, with "interrupted" in its certificate.

    It is a `KeyboardInterrupt`, so a program that does not ask for it ends as programs do. Where a fit has
    nothing to keep yet, a plain `KeyboardInterrupt` leaves it and the estimator stays as it was.
    """

    def __init__(self, model: object, message: str = "") -> None:
        super().__init__(message or f"{type(model).__name__}: Ctrl-C ended the fit; the best so far is kept.")
        self.model = model

    def __reduce__(self) -> tuple[type[Interrupted], tuple[object, str]]:
        return type(self), (self.model, str(self))


class MercerWarning(UserWarning):
    """The root of mercer's warnings."""


class InvalidKernelWarning(MercerWarning):
    """An indefinite kernel is used all the same; the message says what is lost."""


class PrecisionWarning(MercerWarning):
    """The answer is degenerate, or right to fewer digits than usual; the message says how many."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside mercer that led here, however deep the fit was."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "mercer":
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
