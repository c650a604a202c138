"""`mercer co2`: fit, forecast, two pictures and a report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mercer.cli.codes import FAILED
from mercer.cli.draw import check_writable, save
from mercer.cli.talk import complain, failure_code, json_text, reason_of
from mercer.errors import MercerError, ParameterError

PICTURES = ("forecast", "terms")


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    output: Path
    train_to: int
    years: int
    force: bool
    dpi: int
    as_json: bool
    quiet: bool


def run_co2(asked: Request) -> int:
    """Fit, draw, write, say what came of it; return the exit code."""
    try:
        places = checked_places(asked.output, asked.force)
        from mercer.plot.style import new_figure

        # a missing matplotlib is told before the fit, not after
        new_figure(1, 1)
        from mercer.applications.co2 import study
        from mercer.applications.co2_report import forecast_picture, report
        from mercer.report.page import svg

        found = study(asked.train_to, asked.years, verbose=0 if asked.quiet else 1)
        figures = [forecast_picture(found), found.found.plot_terms()]
        _make(asked.output)
        for figure, name in zip(figures, PICTURES, strict=True):
            save(figure, places[name], "png", asked.dpi)
        page = report(found, *(svg(figure) for figure in figures))
        _write(places["report"], page)
    except (MercerError, OSError) as error:
        complain(reason_of(error))
        return failure_code(error, FAILED)
    if asked.as_json:
        print(json_text({**found.summary(), "files": {k: str(v) for k, v in places.items()}}))
        return 0
    print(f"{len(found.train)} months to the end of {found.train_to} in {found.found.seconds:.1f} s")
    for line in (*found.found.about_terms(), *found.found.about_backtest()):
        print(line)
    if found.coverage is not None:
        print(
            f"{int(found.inside.sum())} of the {len(found.later)} months that followed "
            f"({found.coverage:.1%}) lie in the 95 % band; root mean square error {found.error:.2f} ppm"
        )
    last = found.by_year()[-1]
    print(f"forecast for {last['year']}: {last['forecast']:.1f} ± {last['band']:.1f} ppm")
    for place in places.values():
        print(place)
    return 0


def checked_places(output: Path, force: bool) -> dict[str, Path]:
    """The files to write, refused before any work where one exists and may not be replaced."""
    if output.exists() and not output.is_dir():
        raise ParameterError(f"{output} is a file; --output names a directory.")
    there = next(place for place in (output.absolute(), *output.absolute().parents) if place.exists())
    if not there.is_dir():
        raise ParameterError(f"{there} is a file, so that {output} cannot be made.")
    check_writable(there)
    places = {name: output / f"co2_{name}.png" for name in PICTURES}
    places["report"] = output / "co2.html"
    for place in places.values():
        if place.exists() and not force:
            raise ParameterError(f"{place} exists already. Give --force to replace it, or another directory.")
    return places


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"cannot make the directory {directory}: {error.strerror}.") from error


def _write(place: Path, text: str) -> None:
    """Beside the place, then renamed, so that half a page is never seen."""
    part = place.with_name(f".{place.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
