"""Two meanings of "kernel": does a window of weights follow a curve as well as a Gaussian process does?
=====================================================================================================

The smoother takes a mean of targets, the process a combination of kernels; both choose their lengthscale from
the same data.
"""

import numpy as np
from gallery import save

from mercer import GaussianProcessRegressor, NadarayaWatson
from mercer.plot.style import COLOURS, GREY, legend_below, new_figure, tidy


def main():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 60))[:, None]
    truth = np.sin(X[:, 0])
    y = truth + 0.1 * rng.normal(size=60)
    window = NadarayaWatson("RBF(1.0)", bandwidth="loo").fit(X, y)
    process = GaussianProcessRegressor("RBF(1.0) + White(0.01)").fit(X, y)
    error, other = (float(np.sqrt(np.mean((m.predict(X) - truth) ** 2))) for m in (window, process))
    print(f"root mean squared error: window {error:.3f}, process {other:.3f}")
    print(
        f"lengthscale by leaving one out {window.kernel_.lengthscale:.3f}, "
        f"by evidence {process.kernel_.parts[0].lengthscale:.3f}"
    )
    assert other < error < 0.1

    grid = np.linspace(-1.0, 7.0, 200)[:, None]
    mean, std = process.predict(grid, return_std=True)
    smooth = window.predict(grid)
    assert smooth.max() <= y.max()
    assert smooth.min() >= y.min()
    figure = new_figure(8.0, 4.4)
    axes = figure.add_subplot()
    axes.fill_between(
        grid[:, 0], mean - 2 * std, mean + 2 * std, color=COLOURS[0], alpha=0.15, lw=0, label="± 2 deviations"
    )
    axes.plot(grid, np.sin(grid), color=GREY, lw=1.2, ls="dashed", label="sin x")
    axes.plot(grid, mean, color=COLOURS[0], lw=2, label=f"Gaussian process, error {other:.3f}")
    axes.plot(grid, smooth, color=COLOURS[1], lw=2, label=f"Nadaraya–Watson, error {error:.3f}")
    axes.scatter(X[:, 0], y, s=12, color=GREY, linewidths=0, label="60 observations")
    tidy(axes, "A mean of targets in a window, and a combination of kernels", "x", "y")
    legend_below(axes)
    return figure


if __name__ == "__main__":
    save(main(), __file__)
