"""What did each term of a sum of kernels find, and how sure is it?
================================================================

A slow change, a wave and noise are seen only in their sum. The Gaussian process learns all scales from the
evidence and splits its forecast into the terms, each with its own band.
"""

import numpy as np
from gallery import save

from mercer import GaussianProcessRegressor, plot


def main():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 10, 120))
    y = 0.8 * np.sin(0.7 * t) + 0.6 * np.sin(2 * np.pi * t / 1.3) + 0.15 * rng.normal(size=120)
    known = t < 8
    X, later = t[known, None], t[~known, None]
    model = GaussianProcessRegressor(
        "1.0*RBF(5.0) + 0.5*Cosine(1.2) + White(0.1)", normalize_y="mean", n_restarts=2
    )
    model.fit(X, y[known])
    mean, std = model.predict(later, return_std=True, noise=True)
    inside = np.abs(y[~known] - mean) <= 1.96 * std
    parts = model.decompose(later, names=("slow change", "wave"))
    print(model.kernel_)
    print(f"{model.certificate_.status}: log evidence {model.log_evidence_:.2f}")
    print(f"{inside.sum()} of {len(later)} later observations lie in the 95 % band")
    assert np.allclose(parts.total_mean, mean), "the terms add up to the forecast"
    return plot.regression(
        model, X, y[known], later=(later, y[~known]), terms=True, names=("slow change", "wave")
    )


if __name__ == "__main__":
    save(main(), __file__)
