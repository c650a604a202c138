"""Which features mattered to a machine: bars of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.plot.style import COLOURS, GREY, PlotError, panel, shortened, tidy, whole
from mercer.theory.feature_weights import FeatureWeights
from mercer.theory.feature_weights import feature_weights as weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Characters of a name that fit beside a bar.
LONGEST_NAME = 30


def feature_weights(model: object, *, count: int = 15, function: int = 0, ax: Axes | None = None) -> Figure:
    """The features with the largest weights of a fitted machine, those for and those against apart.

    `model` is a fitted machine whose kernel has sparse features, or a `theory.FeatureWeights`.
    `ax` are axes to draw into; without them there is a new figure.

    >>> import mercer
    >>> model = mercer.SVC(mercer.Spectrum(2)).fit(["TATA", "GCGC", "TTAT"], [1, 0, 1])
    >>> mercer.plot.feature_weights(model).savefig("weights.png")                # doctest: +SKIP
    """
    found = model if isinstance(model, FeatureWeights) else weights_of(model)
    if count < 1:
        raise PlotError(f"count is the number of bars, at least 1; got {count}.")
    bars = sorted(found.top(count, function), key=lambda bar: bar[1])
    names = [name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…" for name, _ in bars]
    values = [value for _, value in bars]
    axes = panel(ax, 7.2, 1.4 + 0.28 * len(bars))
    colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in values]
    axes.barh(range(len(bars)), values, color=colours, height=0.72)
    axes.set_yticks(range(len(bars)), names)
    axes.axvline(0.0, color=GREY, lw=0.8)
    tidy(axes, f"{found.titles[function]} by {shortened(found.kernel)}", "weight", "feature")
    return whole(axes)
