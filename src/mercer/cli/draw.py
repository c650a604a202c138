"""`mercer draw`: from an expression to a file with its picture."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mercer.cli.codes import FAILED, USAGE
from mercer.cli.talk import complain, complain_of_parse, failure_code, json_text, reason_of
from mercer.errors import MercerError, ParameterError, ParseError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    expression: str
    output: Path
    force: bool
    seed: int
    samples: int
    span: str | None
    dpi: int
    seconds: float
    as_json: bool


def run_draw(asked: Request) -> int:
    """Draw, write, say where; return the exit code."""
    from mercer.kernels import parse

    try:
        k = parse(asked.expression)
    except ParseError as error:
        complain_of_parse(error)
        return USAGE
    try:
        span = read_span(asked.span)
    except ParameterError as error:
        complain(str(error))
        return USAGE
    try:
        kind = checked_kind(asked.output, asked.force)
        from mercer import plot
        from mercer.plot.style import new_figure

        # a missing matplotlib is told before the search for a witness, not after
        new_figure(1, 1)
        judged = k.validity(seconds=asked.seconds)
        figure = plot.kernel(k, span=span, samples=asked.samples, seed=asked.seed, validity=judged)
        save(figure, asked.output, kind, asked.dpi)
    except (MercerError, OSError) as error:
        complain(reason_of(error))
        return failure_code(error, FAILED)
    if asked.as_json:
        about = {"schema": "mercer.draw/1", "expression": str(k), "status": judged.status}
        print(json_text({**about, "file": str(asked.output)}))
    else:
        print(asked.output)
    return 0


def checked_kind(output: Path, force: bool) -> str:
    """The format by the suffix, before any work is done; an existing file is only replaced by force."""
    if output.is_dir():
        raise ParameterError(f"{output} is a directory; name a file in it.")
    kind = output.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        came = f"{output.suffix!r}" if output.suffix else "no suffix"
        raise ParameterError(
            f"the suffix of {output} decides the format: one of .png, .svg, .pdf; got {came}."
        )
    if output.exists() and not force:
        raise ParameterError(f"{output} exists already. Give --force to replace it, or another name.")
    if not output.absolute().parent.is_dir():
        raise ParameterError(f"there is no directory {output.parent}; make it first.")
    check_writable(output.absolute().parent)
    return kind


def read_span(text: str | None) -> tuple[float, float] | None:
    """LOW:HIGH as two numbers."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise ParameterError(f"--range is LOW:HIGH, such as -3:3; got {text!r}.") from None
    return low, high


def check_writable(directory: Path) -> None:
    """What may not be written to is told before the work, not after."""
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ParameterError(f"{directory} may not be written to. Choose another directory.")


def save(figure: Figure, output: Path, kind: str, dpi: int) -> None:
    """Write beside the place and rename, so that a half-written picture is never seen."""
    place = output.absolute()
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.stem}-", suffix=f".{kind}")
    except OSError as error:
        # its own message names the temporary file, which nobody asked for
        raise ParameterError(f"cannot write {output}: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            figure.savefig(file, format=kind, dpi=dpi)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
