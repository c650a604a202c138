"""Which atoms of a molecule make a machine call it active?
========================================================

Rings of carbon with the same atoms beside them: one nitrogen and two oxygens. In half of them both oxygens
hang on the nitrogen, in the others on the ring, so that only the neighbours tell them apart. The weight of
what is seen from an atom belongs to that atom, and f(x) is a sum over atoms that can be drawn.
"""

import numpy as np
from gallery import save

from mercer import SVC, Graph, WeisfeilerLehman, plot
from mercer.theory import contributions


def molecule(active, rng):
    """A ring of 6 to 9 carbons, two of them with a tail, and N, O, O: together, or apart."""
    ring = int(rng.integers(6, 10))
    edges = [(i, (i + 1) % ring) for i in range(ring)]
    nitrogen, first, second, tail = ring, ring + 1, ring + 2, ring + 3
    places = rng.choice(ring, size=5, replace=False)
    edges += [(places[0], nitrogen), (places[1], tail), (places[2], tail + 1)]
    if active:
        edges += [(nitrogen, first), (nitrogen, second)]
    else:
        edges += [(places[3], first), (places[4], second)]
    labels = ["C"] * ring + ["N", "O", "O", "C", "C"]
    return Graph(len(labels), edges, labels).permuted(rng.permutation(len(labels)))


def main():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    graphs = [molecule(active, rng) for active in y]
    model = SVC(WeisfeilerLehman(2).normalized(), C=10.0).fit(graphs[:60], y[:60])
    new, truth = graphs[60:], y[60:]
    print(f"{100 * model.score(new, truth):.0f} % of 60 new molecules are told apart")
    found = contributions(model, new)
    print(found[1])
    total = [each.total[0] for each in found]
    assert np.allclose(total, model.decision_function(new)), "the atoms and the intercept are f"
    assert model.score(new, truth) > 0.95
    for each, active in zip(found, truth, strict=True):
        best = [name for _, name, value in each.top(3) if value > 0]
        assert not active or sorted(best) == ["N", "O", "O"], "the group is what makes a molecule active"
    return plot.contributions(model, new[:8])


if __name__ == "__main__":
    save(main(), __file__)
