"""How much of a Gram matrix is lost with m landmarks, and how are they best chosen?
=================================================================================

The trace that Nyström's method leaves out is known exactly. No matrix of rank m can leave out less than the
eigenvalues after the first m, so their sum is the limit of every choice. One draw of each is shown.
"""

import numpy as np
from gallery import save

from mercer import RBF, Nystroem
from mercer.plot.style import COLOURS, GREY, new_figure, tidy

SIZES = (5, 10, 20, 40, 80)
CHOICES = ("uniform", "leverage", "pivoted", "kmeans")


def main():
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(450, 2)), rng.normal(0, 4, size=(50, 2))
    X, k = np.vstack([near, far]), RBF(1.0)
    eigenvalues = np.linalg.eigvalsh(k(X))[::-1]
    limit = [max(float(1 - eigenvalues[:m].sum() / eigenvalues.sum()), 0.0) for m in SIZES]
    shares = {
        how: [Nystroem(k, m, landmarks=how, random_state=0).fit(X).residual_share_ for m in SIZES]
        for how in CHOICES
    }
    for how, share in shares.items():
        print(f"{how}: {share[2]:.2%} of the trace left out by 20 landmarks, {share[-1]:.3%} by 80")
    print(f"no choice can do better than {limit[2]:.2%} and {limit[-1]:.3%}")
    assert all(np.all(np.array(share) >= np.array(limit) - 1e-12) for share in shares.values())

    figure = new_figure(7.6, 4.6)
    axes = figure.add_subplot()
    for (how, share), colour, marker in zip(shares.items(), COLOURS, "os^D", strict=False):
        axes.plot(SIZES, share, marker + "-", color=colour, lw=1.8, ms=5, label=how)
    axes.plot(SIZES, limit, color=GREY, lw=1.4, ls="dashed", label="limit: eigenvalues")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(SIZES, [str(m) for m in SIZES])
    axes.minorticks_off()
    tidy(
        axes,
        "Landmarks of RBF(1.0) on 500 rows, 50 of them far out",
        "landmarks",
        "share of the trace left out",
    )
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    return figure


if __name__ == "__main__":
    save(main(), __file__)
