"""What a conformal answer promises: how often, in which sense, and under which condition.

    split       1 - α          Vovk, Gammerman, Shafer (2005); Papadopoulos et al. (2002)
    full        1 - α          the same
    jackknife+  1 - 2α         Barber, Candès, Ramdas, Tibshirani (2021), theorem 1
    CV+         1 - 2α - min( 2(1 - 1/K) / (n/K + 1),  (1 - K/n) / (K + 1) )         the same, theorem 4
    jackknife+  1 - α          normalised, in closed form: it holds the full set

The last line: let r be errors in deviations of a ridge or of a Gaussian process, of row i and of the new row,
given the other rows, and given these and each other. The two ways to write the density of both say that
r_new² + r_{i|new}² = r_i² + r_{new|i}². So r_new ≤ r_i, which jackknife+ asks, is r_{new|i} ≤ r_{i|new}, what
full conformal prediction asks, and its intervals hold all targets that the latter keeps.

On data jackknife+ and CV+ come close to 1 - α; what is proved of all data is less.
"""

from __future__ import annotations

from dataclasses import dataclass

from mercer.quantiles import decimal, least_rows

EXCHANGEABLE = (
    "the rows of the fit and the new row are exchangeable (drawn from one source, independently or in random "
    "order), and the model does not depend on the order of its rows"
)
OVER_ALL = "over all rows"
TUNED = (
    "The hyperparameters were found from the same rows and are held fixed where a row is left out or added: "
    "strictly the promise is one for hyperparameters that were given. Methods 'cv+' and 'split' find them "
    "again."
)


@dataclass(frozen=True)
class Guarantee:
    """What is promised of intervals or sets of one level.

    `at_least` is the probability that is proved, `kind` over what it is taken, `condition` when it holds. It
    is `strict` unless something of the fit breaks the condition; `notes` say what.

    >>> print(Guarantee("split", 0.9, 0.9, "over all rows", "rows are exchangeable", 99))
    split, level 90 %: the truth is inside with probability 90 % at least (over all rows), if rows are
    exchangeable. Calibrated on 99 rows.
    """

    method: str
    level: float
    at_least: float
    kind: str
    condition: str
    rows: int
    strict: bool = True
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        proved = f"with probability {_percent(self.at_least)} at least"
        if self.at_least <= 0:
            proved = "with a probability of which nothing is proved"
        among = "" if self.kind == OVER_ALL else " in the smallest of them"
        words = (
            f"{self.method}, level {_percent(self.level)}: the truth is inside {proved} ({self.kind}), "
            f"if {self.condition}. Calibrated on {self.rows} rows{among}."
        )
        return " ".join([words, *self.notes])


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def promised(method: str, level: float, n: int, folds: int, *, holds_full: bool = False) -> float:
    """The probability that is proved for n rows, of which each fold leaves out some.

    >>> promised("split", 0.9, 50, 0), promised("jackknife+", 0.9, 50, 50), promised("cv+", 0.9, 100, 10)
    (0.9, 0.8, 0.71818...)
    """
    exact = decimal(level)
    if method in ("split", "prefit", "full") or holds_full:
        return float(exact)
    twice = float(2 * exact - 1)
    if method == "cv+" and 0 < folds < n:
        first = 2 * (1 - 1 / folds) / (n / folds + 1)
        second = (1 - folds / n) / (folds + 1)
        twice -= min(first, second)
    return max(twice, 0.0)


def guarantee(
    method: str,
    level: float,
    n: int,
    folds: int,
    *,
    kind: str,
    notes: tuple[str, ...],
    strict: bool,
    holds_full: bool = False,
) -> Guarantee:
    """The promise of a fitted wrapper at one level; rows that are too few are said."""
    condition = EXCHANGEABLE
    if method == "prefit":
        condition = f"{EXCHANGEABLE}; none of the rows given here was used to fit the model"
    needed = least_rows(level)
    if n < needed:
        notes = (*notes, too_few(n, level))
    proved = promised(method, level, n, folds, holds_full=holds_full)
    return Guarantee(method, level, proved, kind, condition, n, strict, notes)


def too_few(n: int, level: float, who: str = "") -> str:
    """Why intervals are infinite, or sets have every label; `who` are the groups that have so few rows."""
    return (
        f"{who}{n} rows cannot promise {_percent(level)}: at least {least_rows(level)} are needed, and until "
        "then intervals are infinite and sets have every label."
    )
