"""Can K-means find a ring around a disc?
======================================

Not with straight boundaries; in the feature space of a Gaussian kernel it can. Ten starts are compared, and a
bound from the eigenvalues says how far the best of them can be from the optimum.
"""

import numpy as np
from gallery import save
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from mercer import KernelKMeans, plot


def main():
    X, ring = make_circles(300, factor=0.3, noise=0.06, random_state=0)
    straight = KernelKMeans("Linear()", 2, random_state=0).fit(X)
    model = KernelKMeans("RBF(0.5)", 2, n_init=10, random_state=0).fit(X)
    bound = KernelKMeans("RBF(0.5)", 2, init="spectral").fit(X).certificate_.dual
    found = model.certificate_
    agree = [abs(adjusted_rand_score(ring, m.labels_)) for m in (straight, model)]
    print(f"agreement with the rings (1 is all): {agree[0]:.2f} with x·z, {agree[1]:.2f} with RBF(0.5)")
    print(f"{found.status}: inertia {found.primal:.2f}, no clustering of these rows is below {bound:.2f}")
    assert agree[1] == 1 and bound <= found.primal
    assert np.all(np.diff(model.objective_) <= 1e-9), "the inertia never rises"
    return plot.clusters(model, X)


if __name__ == "__main__":
    save(main(), __file__)
