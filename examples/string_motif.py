"""Which letters tell two kinds of strings apart?
==============================================

Half of 300 random strings over ACGT hold the word TATAAT somewhere, with one letter wrong. A support vector
machine on words that may differ in one letter finds it: the weights of its features can be read.
"""

import numpy as np
from gallery import save

from mercer import SVC, Mismatch, plot
from mercer.theory import feature_weights

WORD = "TATAAT"


def strings(n, rng):
    """Random strings, every other one with the word in it, spelt with one mistake."""
    out = []
    for i in range(n):
        letters = rng.choice(list("ACGT"), size=30)
        if i % 2:
            place = int(rng.integers(0, 30 - len(WORD)))
            letters[place : place + len(WORD)] = list(WORD)
            letters[place + int(rng.integers(0, len(WORD)))] = rng.choice(list("ACGT"))
        out.append("".join(letters))
    return out, np.arange(n) % 2


def main():
    rng = np.random.default_rng(0)
    X, y = strings(300, rng)
    Z, truth = strings(400, rng)
    model = SVC(Mismatch(5, 1).normalized(), C=1.0).fit(X, y)
    weights = feature_weights(model)
    share = model.score(Z, truth)
    print(f"{100 * share:.1f} % of 400 new strings are told apart")
    print(weights)
    said = weights.values(Z)[:, 0]
    assert np.allclose(said, model.decision_function(Z)), "the weights are the machine"
    assert share > 0.75
    best = {name for name, weight in weights.top(10) if weight > 0}
    assert best & {WORD[:5], WORD[1:]}, "parts of the word are among the heaviest features"
    return plot.feature_weights(weights)


if __name__ == "__main__":
    save(main(), __file__)
