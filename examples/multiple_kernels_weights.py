"""Which of many kernels does a problem need?
==========================================

One kernel for each column; only columns 0 and 1 matter. With p = 1 most of the other weights become exactly
0; larger p spread the weight.
"""

import numpy as np
from gallery import save

from mercer import MultipleKernelClassifier
from mercer.plot.style import COLOURS, new_figure, tidy


def main():
    rng = np.random.default_rng(0)
    X, new_X = rng.normal(size=(200, 6)), rng.normal(size=(1000, 6))
    y, new_y = (A[:, 0] ** 2 + A[:, 1] > 0.8 for A in (X, new_X))
    kernels = [f"RBF(1.0).on({j})" for j in range(6)]
    models = {p: MultipleKernelClassifier(kernels, C=1.0, p=p).fit(X, y) for p in (1.0, 1.5, 4.0)}
    for p, model in models.items():
        found = model.certificate_
        right = model.score(new_X, new_y)
        print(f"p = {p:g}: {found.status}, gap {found.gap:.1e}, {right:.1%} of 1000 new rows right")
    weights = models[1.0].weights_
    print(
        f"p = 1: {np.sum(weights == 0)} of 6 weights are exactly 0, "
        f"columns 0 and 1 have {weights[:2].sum():.1%} of the sum"
    )
    assert min(weights[:2]) > 0.2 and weights[2:].sum() < 0.1

    figure = new_figure(7.6, 4.2)
    axes = figure.add_subplot()
    place = np.arange(6)
    for i, ((p, model), colour) in enumerate(zip(models.items(), COLOURS, strict=False)):
        axes.bar(place + 0.27 * (i - 1), model.weights_, 0.25, color=colour, label=f"p = {p:g}")
    axes.set_xticks(place, [f"column {j}" for j in place])
    tidy(axes, "Learned weights of six kernels; columns 0 and 1 matter", "", "weight d")
    axes.legend(frameon=False, fontsize=9)
    return figure


if __name__ == "__main__":
    save(main(), __file__)
