"""How do the degree of a polynomial and the width of a Gaussian change a ridge regression?
========================================================================================

The same rows and the same penalty in every panel, from too stiff to too loose. Each panel says the
leave-one-out error and the effective degrees of freedom, both in closed form.
"""

import numpy as np
from gallery import save

from mercer import KernelRidge, plot


def truth(x):
    return np.sin(2 * x) + 0.3 * x


def main():
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, size=(40, 1))
    y = truth(X[:, 0]) + 0.2 * rng.normal(size=40)
    widths = (0.1, 0.7, 4.0)
    errors = {}
    for width in widths:
        model = KernelRidge(f"RBF({width})", alpha=1e-2).fit(X, y)
        errors[width] = float(np.sqrt(np.mean(model.loo_error_)))
        print(f"RBF({width}): leave-one-out {errors[width]:.3f}, residual {model.certificate_.residual:.1e}")
    assert min(errors, key=errors.get) == 0.7, "neither the narrowest nor the widest predicts best"
    return plot.ridge_panels(X, y, degrees=(1, 5, 12), widths=widths, alpha=1e-2, truth=truth)


if __name__ == "__main__":
    save(main(), __file__)
