"""Can noise be taken off a picture that was never seen clean?
===========================================================

Kernel principal components are learned from noisy digits. A digit is projected on them, and the picture whose
image lies nearest to that projection is its cleaned form.
"""

import numpy as np
from gallery import save
from sklearn.datasets import load_digits

from mercer import KernelPCA
from mercer.plot.style import new_figure


def main():
    rng = np.random.default_rng(0)
    digits = load_digits().data / 16
    noisy = digits + 0.3 * rng.normal(size=digits.shape)
    learn, new = slice(0, 600), slice(600, 610)
    model = KernelPCA("RBF(4.0)", 30).fit(noisy[learn])
    clean = model.denoise(noisy[new])
    before, after = (float(np.mean((A - digits[new]) ** 2)) for A in (noisy[new], clean))
    print(
        f"30 components explain {model.explained_variance_ratio_.sum():.0%} of the variance in feature space"
    )
    print(f"largest residual of an eigenpair {max(model.certificate_.residuals):.1e}")
    print(f"mean squared error on ten new digits: {before:.3f} noisy, {after:.3f} cleaned")
    assert after < 0.5 * before

    figure = new_figure(9.0, 3.1)
    rows = (("true", digits[new]), ("noisy", noisy[new]), ("cleaned", clean))
    grid = figure.subplots(3, 10)
    for places, (name, pictures) in zip(grid, rows, strict=True):
        for axes, picture in zip(places, pictures, strict=True):
            axes.imshow(picture.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_color("#999999")
        places[0].set_ylabel(name, fontsize=10)
    figure.suptitle("Ten digits that the components were not learned from", fontsize=11, x=0.01, ha="left")
    return figure


if __name__ == "__main__":
    save(main(), __file__)
