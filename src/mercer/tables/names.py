"""Names of columns, as people write them: one that a table does not have gets a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from mercer.errors import InputError

# Names of columns that a message lists.
SHOWN = 20


def require_columns(names: Sequence[str], wanted: Iterable[str], whose: str = "the table") -> None:
    """Refuse a name that no column has, with the one that was perhaps meant; `whose` columns they are.

    >>> require_columns(["size", "rent"], ["rents"], "flats.csv")
    Traceback (most recent call last):
    mercer.errors.InputError: flats.csv has no column 'rents'. Did you mean 'rent'? It has 'size', 'rent'.
    """
    for name in wanted:
        if name in names:
            continue
        near = get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(map(repr, names[:SHOWN]))
        if len(names) > SHOWN:
            listed += f" and {len(names) - SHOWN} more"
        raise InputError(f"{whose} has no column {name!r}.{hint} It has {listed}.")
