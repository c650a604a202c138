"""How kernels are combined: each class is one construction rule, with its value, its text and its proof.

arithmetic   Scaled   c·k              Sum   k₁ + k₂ + …       Product        k₁ · k₂ · …
functions    Power    k^p              Exp   e^k               PolynomialOf   Σ c_n k^n
views        Of       k(ψ(x), ψ(z))    LinearMap  k(Ax, Az)    On             k on columns
readings     Read     k of what a named map makes of the rows
missing      k on columns that have gaps
spaces       InSpace  k in the feature space of another kernel
factors      Times    f(x) k f(z)      Normalized   k / √(k(x,x) k(z,z))
bags         Bags     the mean of k over two bags of points
"""

from mercer.kernels import doors
from mercer.kernels.rules.arithmetic import Product, Scaled, Sum, add, multiply
from mercer.kernels.rules.bags import Bags
from mercer.kernels.rules.combined import DEEPEST, Combined, Nary, Unary
from mercer.kernels.rules.factors import Normalized, Times, normalized
from mercer.kernels.rules.functions import Exp, PolynomialOf, Power
from mercer.kernels.rules.missing import on_columns
from mercer.kernels.rules.readings import Read
from mercer.kernels.rules.spaces import InSpace
from mercer.kernels.rules.views import LinearMap, Of, On, after

__all__ = [
    "DEEPEST",
    "Bags",
    "Combined",
    "Exp",
    "InSpace",
    "LinearMap",
    "Nary",
    "Normalized",
    "Of",
    "On",
    "PolynomialOf",
    "Power",
    "Product",
    "Read",
    "Scaled",
    "Sum",
    "Times",
    "Unary",
    "add",
    "multiply",
]

doors.combining.open(
    doors.Combining(
        add=add,
        multiply=multiply,
        power=Power,
        exponential=Exp,
        polynomial=PolynomialOf,
        times=Times,
        of=after,
        on=on_columns,
        normalized=normalized,
        bags=Bags,
    )
)
