"""Can noise be taken off a picture that was never seen clean?
===========================================================

Kernel principal components are learned from noisy digits. A digit is projected on them, and the picture whose
image lies nearest to that projection is its cleaned form. The digits are drawn on 24 by 24 points.
"""

import numpy as np
from gallery import save
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from mercer import KernelPCA
from mercer.plot.style import new_figure

SIDE = 24


def larger(pictures):
    """The digits of 8 by 8 points on a finer grid, by cubic splines."""
    return np.clip([zoom(p.reshape(8, 8), SIDE / 8).ravel() for p in pictures], 0, 1)


def main():
    rng = np.random.default_rng(0)
    found = load_digits()
    digits = larger(found.data[:900] / 16)
    noisy = digits + 0.5 * rng.normal(size=digits.shape)
    learn = slice(0, 800)
    # one of each digit that the components were not learned from
    new = [800 + int(np.flatnonzero(found.target[800:900] == d)[0]) for d in (0, 2, 3, 5, 6, 8)]
    model = KernelPCA("RBF(20.0)", 40).fit(noisy[learn])
    clean = model.denoise(noisy[new])
    before, after = (float(np.mean((A - digits[new]) ** 2)) for A in (noisy[new], clean))
    print(
        f"40 components explain {model.explained_variance_ratio_.sum():.0%} of the variance in feature space"
    )
    print(f"largest residual of an eigenpair {max(model.certificate_.residuals):.1e}")
    print(f"mean squared error on six new digits: {before:.3f} noisy, {after:.3f} cleaned")
    assert after < 0.15 * before

    figure = new_figure(9.0, 5.0)
    rows = (("drawn", digits[new]), ("noisy", noisy[new]), ("cleaned", clean))
    grid = figure.subplots(3, len(new))
    for places, (name, pictures) in zip(grid, rows, strict=True):
        for axes, picture in zip(places, pictures, strict=True):
            axes.imshow(picture.reshape(SIDE, SIDE), cmap="Greys", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_color("#999999")
        places[0].set_ylabel(name, fontsize=11)
    title = "Six digits that the components were not learned from"
    figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    return figure


if __name__ == "__main__":
    save(main(), __file__)
