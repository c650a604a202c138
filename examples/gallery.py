"""What the examples share: `-o FILE` on the command line, and a picture saved there."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def save(figure: Any, script: str) -> None:
    """Write the figure to the file named by `-o`, or to NAME.png here, and say where."""
    name = Path(script).stem
    parser = argparse.ArgumentParser(prog=f"python examples/{name}.py")
    parser.add_argument(
        "-o", "--output", default=f"{name}.png", help="the picture: .png, .svg or .pdf (%(default)s)"
    )
    place = parser.parse_args().output
    try:
        figure.savefig(place, dpi=130)
    except (OSError, ValueError) as error:
        parser.error(f"cannot write {place}: {error}")
    print(place)
