"""Do two samples come from one distribution, and if not, where do they differ?
============================================================================

Both have mean 0 and variance 1, so a t-test sees nothing. The maximum mean discrepancy does, and its witness
function is positive where the first sample has more mass and negative where the second has.
"""

import numpy as np
from gallery import save
from scipy.stats import ttest_ind

from mercer.plot.style import COLOURS, new_figure, tidy
from mercer.theory import mmd_test


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1))
    Z = (rng.choice([-1.0, 1.0], 150) * 0.9 + np.sqrt(1 - 0.81) * rng.normal(size=150))[:, None]
    t_test = float(ttest_ind(X[:, 0], Z[:, 0]).pvalue)
    found = mmd_test(X, Z, "RBF(0.4)", random_state=0)
    print(found)
    print(f"t-test: p = {t_test:.2f}")
    assert found.rejects(0.01)
    assert t_test > 0.05

    grid = np.linspace(-3.5, 3.5, 300)
    witness = found.witness(grid[:, None])
    figure = new_figure(8.0, 5.0)
    above, below = figure.subplots(2, 1, sharex=True)
    bins = np.linspace(-3.5, 3.5, 36)
    above.hist(X[:, 0], bins, color=COLOURS[0], alpha=0.55, label="X: one normal")
    above.hist(Z[:, 0], bins, color=COLOURS[1], alpha=0.55, label="Z: two normals")
    tidy(above, "Two samples of 150 rows", "", "rows")
    above.legend(frameon=False, fontsize=9, loc="upper left")
    below.axhline(0, color="#BBBBBB", lw=0.8)
    below.plot(grid, witness, color="#111111", lw=1.6)
    below.fill_between(grid, witness, where=witness > 0, color=COLOURS[0], alpha=0.3, lw=0, label="more of X")
    below.fill_between(grid, witness, where=witness < 0, color=COLOURS[1], alpha=0.3, lw=0, label="more of Z")
    tidy(below, f"Witness: p = {found.p_value:.3f} by permutations", "x", "mean k(x, X) − k(x, Z)")
    below.set_xlim(-3.5, 3.5)
    below.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


if __name__ == "__main__":
    save(main(), __file__)
