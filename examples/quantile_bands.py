"""Where do 80 % of the observations lie, when the noise grows with x?
===================================================================

Five quantiles are fitted together under the condition that none crosses another, so the bands are bands
everywhere.
"""

import numpy as np
from gallery import save

from mercer import KernelMachine
from mercer.plot.regression import BAND, OUTER
from mercer.plot.style import COLOURS, GREY, legend_below, new_figure, tidy

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def observe(count, rng):
    x = rng.uniform(0, 6, count)
    return x[:, None], np.sin(x) + (0.05 + 0.12 * x) * rng.normal(size=count)


def main():
    rng = np.random.default_rng(0)
    X, y = observe(80, rng)
    new_X, new_y = observe(2000, rng)
    model = KernelMachine("RBF(1.0)", "quantile", alpha=0.1, quantiles=LEVELS).fit(X, y)
    grid = np.linspace(0, 6, 300)
    low, lower, middle, upper, high = model.predict(grid[:, None]).T
    below, *_, above = model.predict(new_X).T
    inside = np.mean((below <= new_y) & (new_y <= above))
    found = model.certificate_
    print(f"{found.status}: primal {found.primal:.4f}, gap {found.gap:.1e}")
    print(f"fitted one by one, the levels would cross on {model.crossings_} of {len(X)} rows")
    print(f"{inside:.1%} of 2000 new observations lie between the levels 10 % and 90 % (80 rows are few)")
    assert np.all(np.diff(model.predict(grid[:, None]), axis=1) >= 0)

    figure = new_figure(8.0, 4.6)
    axes = figure.add_subplot()
    axes.fill_between(grid, low, high, color=OUTER, lw=0, label="10 % to 90 %")
    axes.fill_between(grid, lower, upper, color=BAND, lw=0, label="25 % to 75 %")
    axes.plot(grid, middle, color=COLOURS[0], lw=2, label="median")
    axes.plot(grid, np.sin(grid), color=GREY, lw=1.2, ls="dashed", label="true median")
    axes.scatter(X[:, 0], y, s=14, color=GREY, linewidths=0, zorder=3, label="80 observations")
    tidy(axes, "Five quantiles that do not cross", "x", "y")
    axes.set_xlim(0, 6)
    legend_below(axes)
    return figure


if __name__ == "__main__":
    save(main(), __file__)
