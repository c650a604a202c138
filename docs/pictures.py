"""The pictures of the README, drawn again from the examples: `make pictures` writes them to docs/pictures."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
# The first is the large one.
SHOWN = (
    "gp_terms",
    "svm_margins",
    "gp_classification_probabilities",
    "kernel_kmeans_circles",
    "quantile_bands",
    "string_motif",
)


def draw(name: str, folder: Path) -> Path:
    """Run an example and save the figure of its `main()`, small enough for a page that is read on a phone."""
    sys.path.insert(0, str(EXAMPLES))
    figure = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()
    place = folder / f"{name}.png"
    # Without the version of matplotlib in the file, the same figure gives the same bytes.
    figure.savefig(place, dpi=80, metadata={"Software": None})
    return place


if __name__ == "__main__":
    (HERE / "pictures").mkdir(exist_ok=True)
    for shown in SHOWN:
        made = draw(shown, HERE / "pictures")
        print(f"{made}: {made.stat().st_size} bytes")
