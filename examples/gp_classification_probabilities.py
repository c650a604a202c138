"""How sure is a classifier, near the data and far from it?
========================================================

A Gaussian process classifier learns its scales from the evidence. Its probabilities are sharp where there are
rows to learn from and go back to ½ where there are none; a support vector machine's boundary knows no such
thing.
"""

import numpy as np
from gallery import save
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss

from mercer import GaussianProcessClassifier
from mercer.plot.style import DIVERGING, legend_below, new_figure, tidy


def main():
    X, y = make_moons(120, noise=0.2, random_state=0)
    new_X, new_y = make_moons(1000, noise=0.2, random_state=1)
    model = GaussianProcessClassifier("1.0*RBF()").fit(X, y)
    p = model.predict_proba(new_X)
    far = float(model.predict_proba([[20.0, 20.0]])[0, 1])
    print(f"{model.certificate_.status}: residual {model.certificate_.residual:.1e}, kernel {model.kernel_}")
    right, loss = model.score(new_X, new_y), log_loss(new_y, p)
    print(f"1000 new rows: {right:.1%} right, log loss {loss:.3f} (0.693 is a guess)")
    print(f"probability of class 1 far away: {far:.3f}")
    assert abs(far - 0.5) < 0.01 and loss < 0.3

    ticks = np.linspace(-3, 4, 120), np.linspace(-2.5, 3, 120)
    grid = np.column_stack([m.ravel() for m in np.meshgrid(*ticks)])
    P = model.predict_proba(grid)[:, 1].reshape(120, 120)
    figure = new_figure(7.6, 5.2)
    axes = figure.add_subplot()
    shown = axes.contourf(*ticks, P, levels=np.linspace(0, 1, 21), cmap=DIVERGING, alpha=0.6)
    for level, width, name in ((0.5, 2.0, "½"), ([0.1, 0.9], 1.0, "0.1 and 0.9")):
        axes.contour(*ticks, P, levels=np.atleast_1d(level), colors="#111111", linewidths=width)
        axes.plot([], [], color="#111111", lw=width, label=name)
    for c, (marker, colour) in enumerate(zip("os", ("#5E3C99", "#B35806"), strict=True)):
        look = {"s": 26, "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
        axes.scatter(*X[y == c].T, marker=marker, color=colour, label=f"class {c}", **look)
    bar = figure.colorbar(shown, ax=axes, shrink=0.85, ticks=np.linspace(0, 1, 5))
    bar.ax.tick_params(labelsize=9)
    bar.outline.set_visible(False)
    tidy(axes, "Probability of class 1", "x₁", "x₂")
    legend_below(axes)
    return figure


if __name__ == "__main__":
    save(main(), __file__)
