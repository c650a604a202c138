"""What the axes of a picture are called: as the columns of the table are, and the target."""

from __future__ import annotations

from mercer.arrays import column_names

LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def column_name(model: object, X: object, column: int, columns: int) -> str:
    """The name of a column that the table has, or else the model; in an array x, or x₁, x₂ and so on.

    >>> column_name(None, [[1.0]], 0, 1), column_name(None, [[1.0, 2.0]], 1, 2)
    ('x', 'x₂')
    """
    names = column_names(X)
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) == columns:
        return str(names[column])
    if columns == 1:
        return "x"
    return "x" + str(column + 1).translate(LOWERED)


def names_of_two(model: object, X: object) -> tuple[str, str]:
    """The names of the two columns of a plane."""
    return column_name(model, X, 0, 2), column_name(model, X, 1, 2)


def target_name(y: object) -> str:
    """The name that a series of pandas or polars has; y for any other."""
    name = getattr(y, "name", None)
    if name is None or callable(name) or str(name) == "":
        return "y"
    return str(name)
