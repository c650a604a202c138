"""Which kernel, which machine, which solver: tables to begin with.

>>> print(guide("kernel").rows[0])
numbers, and nothing known of them: RBF() (smooth functions)
"""

from __future__ import annotations

from dataclasses import dataclass

from mercer.errors import ParameterError
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.landmarks.falkon import FalkonRegressor
from mercer.machines.margin.svc import SVC
from mercer.machines.ridge.ridge import KernelRidge
from mercer.machines.shared.parameters import Choice, declared
from mercer.machines.structure.pca import KernelPCA
from mercer.notebook import table


@dataclass(frozen=True)
class Advice:
    """One row: what is known or wanted, what to use, and what that means."""

    when: str
    use: str
    means: str

    def __str__(self) -> str:
        return f"{self.when}: {self.use} ({self.means})"


@dataclass(frozen=True)
class Guide:
    """A table of `Advice`. `markdown()` writes it, and `str` is for a terminal."""

    titles: tuple[str, str, str]
    rows: tuple[Advice, ...]

    def __str__(self) -> str:
        when = max(len(row.when) for row in self.rows)
        use = max(len(row.use) for row in self.rows)
        return "\n".join(f"{row.when:{when}}  {row.use:{use}}  {row.means}" for row in self.rows)

    def _repr_html_(self) -> str:
        return table(self.titles, ((row.when, row.use, row.means) for row in self.rows))

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = ["| " + " | ".join(self.titles) + " |", "|---|---|---|"]
        for row in self.rows:
            lines.append(f"| {_cell(row.when)} | `{row.use}` | {_cell(row.means)} |")
        return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_KERNELS = (
    Advice("numbers, and nothing known of them", "RBF()", "smooth functions"),
    Advice(
        "numbers of different kinds in the columns", "RBF(ard=True)", "smooth; a lengthscale for each column"
    ),
    Advice("functions with bends", "Matern(nu=1.5)", "differentiable once"),
    Advice("jagged paths", "Exponential()", "continuous, nowhere differentiable"),
    Advice("slow and quick changes together", "RationalQuadratic()", "Gaussians of every width, averaged"),
    Advice("straight lines or planes", "Linear()", "each column adds its share"),
    Advice("columns that act together, two at a time", "Polynomial(2)", "all products of up to two columns"),
    Advice("yes-and-no columns that act together", "AllSubsets()", "all products of different columns"),
    Advice("a season that stays as it is", "Periodic(1.0)", "repeats with the given period"),
    Advice("a season that slowly changes", "RBF(5.0)*Periodic(1.0)", "alike in near years only"),
    Advice(
        "a trend, and something smooth about it", "Linear() + RBF()", "a sum: each term may explain a part"
    ),
    Advice("noise of the measurement", "RBF() + White(0.1)", "σ² on the same observation alone"),
    Advice("counts or histograms", "Chi2()", "numbers that are not negative"),
    Advice("categories", "Categorical()", "equal or not"),
    Advice("texts", "Text()", "bags of words, by the cosine"),
    Advice("strings of letters", "Spectrum(3)", "common substrings of three letters"),
    Advice("sets", "Jaccard()", "the share of the elements in common"),
    Advice("series of different lengths", "GlobalAlignment()", "all alignments, near in time and value"),
    Advice("graphs", "WeisfeilerLehman()", "neighbourhoods in common"),
)
_MACHINES = (
    Advice("a table, and no plan", "fit", "kernels compete; the error is of rows not seen"),
    Advice("a series, and what follows it", "forecast", "bands that were tested on the past"),
    Advice("numbers with a band", "GaussianProcessRegressor", "hyperparameters by the evidence; n³"),
    Advice("numbers, quickly", "KernelRidgeCV", "the penalty by leave-one-out in closed form"),
    Advice("numbers, few rows far off", "SVR", "errors count by their size, not its square"),
    Advice("quantiles, counts, a loss of your own", "KernelMachine", "any convex loss, with the duality gap"),
    Advice("classes", "SVC", "the widest margin, with the duality gap"),
    Advice("classes with probabilities", "GaussianProcessClassifier", "Laplace's approximation"),
    Advice("numbers, a hundred thousand rows or more", "FalkonRegressor", "landmarks; rows in batches"),
    Advice("classes, a hundred thousand rows or more", "FalkonClassifier", "landmarks; rows in batches"),
    Advice("which directions of the columns matter", "FeatureMachineRegressor", "the metric is learned"),
    Advice("a model of few terms", "RelevanceVectorRegressor", "few basis functions, chosen by the evidence"),
    Advice("which of several kernels matter", "MultipleKernelClassifier", "weights of a sum of kernels"),
    Advice("what is unlike the rest", "OneClassSVM", "nu bounds the share called unlike"),
    Advice("groups", "KernelKMeans", "K-means in feature space, with a lower bound"),
    Advice("few coordinates, or noise taken off", "KernelPCA", "principal components in feature space"),
    Advice("what two views of the rows share", "KernelCCA", "canonical correlation in feature space"),
    Advice("bands or sets that hold as often as they say", "conformal", "around any machine"),
)
_SOLVED = (SVC, KernelRidge, GaussianProcessRegressor, FalkonRegressor, KernelPCA)


def guide(about: str = "kernel") -> Guide:
    """A table of what to choose: about="kernel", "machine" or "solver".

    The kernels are written as `mercer.parse` reads them, the machines are names of `mercer`, and the solvers
    are the values that the parameter `solver` of each machine declares, with the words of its docstring.

    >>> [row.when for row in guide("machine").rows if row.use == "KernelKMeans"]
    ['groups']
    """
    if about == "kernel":
        return Guide(("what is known", "kernel", "what it says"), _KERNELS)
    if about == "machine":
        return Guide(("what is wanted", "machine", "how"), _MACHINES)
    if about == "solver":
        return Guide(("machine", "solver=", "which to take"), tuple(_solvers(kind) for kind in _SOLVED))
    raise ParameterError(f"guide has tables about 'kernel', 'machine' and 'solver', not about {about!r}.")


def _solvers(kind: type) -> Advice:
    parameter = declared(kind)["solver"]
    assert isinstance(parameter, Choice)
    return Advice(kind.__name__, " ".join(map(repr, parameter.values)), parameter.about)
