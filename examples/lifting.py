"""How can a line separate what no line separates? By a map to a space of more dimensions.
=======================================================================================

Above x → (x, x²), below (x₁, x₂) → (x₁², √2 x₁x₂, x₂²), whose dot product is (x·z)²: the kernel needs no map
at all.
"""

import numpy as np
from gallery import save
from sklearn.datasets import make_circles

from mercer import SVC, Linear, plot


def main():
    X, y = make_circles(150, factor=0.5, noise=0.05, random_state=0)
    flat = SVC(Linear(), C=100.0).fit(X, y)
    lifted = SVC(Linear() ** 2, C=100.0).fit(X, y)
    phi = (Linear() ** 2).features(2)
    by_hand = SVC(Linear(), C=100.0).fit(phi(X), y)
    print(f"right with x·z: {flat.score(X, y):.0%}; with (x·z)²: {lifted.score(X, y):.0%}")
    apart = np.abs(lifted.decision_function(X) - by_hand.decision_function(phi(X))).max()
    print(f"kernel and explicit map differ by at most {apart:.1e} in f")
    print(f"{lifted.certificate_.status}: gap {lifted.certificate_.gap:.1e}")
    assert lifted.score(X, y) == 1 and apart < 1e-6
    return plot.lifting()


if __name__ == "__main__":
    save(main(), __file__)
