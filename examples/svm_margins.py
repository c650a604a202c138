"""Which rows carry a support vector machine, and how far is its answer from the best one?
=======================================================================================

The boundary f = 0 is full, the margins f = ±1 are dashed. Only the ringed rows, the support vectors, matter
to f. The certificate has the value of the model (primal) and a bound that none can beat (dual).
"""

from gallery import save
from sklearn.datasets import make_moons

from mercer import SVC, plot, verify


def main():
    X, y = make_moons(160, noise=0.2, random_state=0)
    new_X, new_y = make_moons(1000, noise=0.2, random_state=1)
    model = SVC("RBF(0.7)", C=5.0).fit(X, y)
    found = model.certificate_
    print(f"primal {found.primal:.6f}, dual {found.dual:.6f}, worst violation {found.kkt:.1e}")
    print(f"{len(model.support_)} of {len(X)} rows are support vectors")
    print(f"right on {model.score(new_X, new_y):.1%} of 1000 new rows")
    assert verify(model, X, y), "the certificate must hold when it is recomputed from the model and the data"
    return plot.decision(model, X, y)


if __name__ == "__main__":
    save(main(), __file__)
