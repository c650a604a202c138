"""How few basis functions are enough for sin(x)/x?
================================================

A relevance vector machine gives every weight a prior of its own; the evidence switches most of them off.
"""

import numpy as np
from gallery import save

from mercer import SVR, RelevanceVectorRegressor
from mercer.plot.style import COLOURS, GREY, legend_below, new_figure, tidy


def main():
    rng = np.random.default_rng(0)
    X = np.linspace(-10, 10, 100)[:, None]
    truth = np.sinc(X[:, 0] / np.pi)
    y = truth + 0.1 * rng.normal(size=100)
    model = RelevanceVectorRegressor("RBF(2.0)").fit(X, y)
    peer = SVR("RBF(2.0)", C=1.0, epsilon=0.1).fit(X, y)
    error, other = (float(np.sqrt(np.mean((m.predict(X) - truth) ** 2))) for m in (model, peer))
    print(
        f"{len(model.relevance_)} relevance vectors, error {error:.3f}; "
        f"noise {np.sqrt(model.noise_):.3f} (true: 0.1)"
    )
    print(f"{len(peer.support_)} support vectors, error {other:.3f}, with C = 1 and ε = 0.1")
    print(
        f"{model.certificate_.status}: log evidence {model.log_evidence_path_[-1]:.2f}, never fell on the way"
    )
    assert np.diff(model.log_evidence_path_).min() > -1e-9

    mean, std = model.predict(X, return_std=True)
    figure = new_figure(8.0, 4.4)
    axes = figure.add_subplot()
    band = {"color": COLOURS[0], "alpha": 0.18, "lw": 0, "label": "95 % of observations"}
    axes.fill_between(X[:, 0], mean - 1.96 * std, mean + 1.96 * std, **band)
    axes.plot(X, truth, color=GREY, lw=1.2, ls="dashed", label="sin(x)/x")
    axes.plot(X, mean, color=COLOURS[0], lw=2, label="mean")
    axes.scatter(X[:, 0], y, s=12, color=GREY, linewidths=0, label="100 observations")
    few = model.relevance_
    ring = {"s": 90, "facecolors": "none", "edgecolors": COLOURS[1], "linewidths": 1.8, "zorder": 3}
    axes.scatter(X[few, 0], y[few], **ring, label=f"{len(few)} relevance vectors")
    tidy(axes, f"{len(few)} of 100 basis functions are left", "x", "y")
    legend_below(axes)
    return figure


if __name__ == "__main__":
    save(main(), __file__)
