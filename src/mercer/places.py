"""Files that appear whole or not at all.

A file is written under another name in the same folder, brought to the disk, and then takes its name in one
step: whoever looks sees the old file or the new one, whenever the process ends. What stands in the way is
said before the work, in the exception of whoever writes: of models, or of tables.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mercer.errors import MercerError


def check_place(path: Path, *, force: bool, example: str, error: type[MercerError]) -> None:
    """Refuse a place where no file can or should be written, before anything is done."""
    if path.is_dir():
        raise error(f"{path} is a directory. Name a file, for example {path / example}.")
    if not path.parent.is_dir():
        raise error(f"{path.parent} is no directory. Make it first, or name another place.")
    if path.exists() and not path.is_file():
        raise error(f"{path} is a device or a pipe, not a plain file. Name a file.")
    if path.exists() and not force:
        raise error(_exists(path))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise error(f"{path.parent} may not be written to. Name another place, or ask who owns it.")


@contextmanager
def whole_file(path: Path, *, force: bool, error: type[MercerError]) -> Iterator[Path]:
    """A draft to write to. It takes the name when the block ends well, and is gone if it does not.

    >>> import tempfile
    >>> from mercer.errors import InputError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "answer.txt"
    ...     with whole_file(place, force=False, error=InputError) as draft:
    ...         _ = draft.write_text("42")
    ...         before = place.exists()
    ...     before, place.read_text(), len(list(Path(folder).iterdir()))
    (False, '42', 1)
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        # who writes may give the draft to its owner alone; it shall have the rights of any other file
        draft.touch()
        rights = path.stat().st_mode if path.exists() else draft.stat().st_mode
        yield draft
        draft.chmod(rights)
        _to_disk(draft)
        _take_name(draft, path, force=force, error=error)
        _to_disk(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _exists(path: Path) -> str:
    return f"{path} exists. Pass force=True (--force) to replace it, or name another file."


def _take_name(draft: Path, path: Path, *, force: bool, error: type[MercerError]) -> None:
    """The name for the draft; without `force` a file that came meanwhile keeps it."""
    if force:
        os.replace(draft, path)
        return
    try:
        os.link(draft, path)
    except FileExistsError:
        raise error(_exists(path)) from None
    except OSError:
        # A file system without links.
        os.replace(draft, path)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
