"""The referee of proofs: any expression again in many digits, its eigenvalues, and its quadratic forms.

The kernel's text and structure are read, its values never: every leaf and every rule is the slow loop of
`reference.kernels`. Functions of a user come with a twin in mpmath.
"""

import mpmath
import numpy as np
from mpmath import mpf

from mercer import kernels as m
from mercer.kernels import algebra
from reference import kernels as ref

DIGITS = 50

# numpy functions used by random expressions, as mpmath functions of one number
TWINS = {
    np.sinh: mpmath.sinh,
    np.cosh: mpmath.cosh,
    np.expm1: mpmath.expm1,
    np.sin: mpmath.sin,
    np.cos: mpmath.cos,
    np.tanh: mpmath.tanh,
}


def _listed(value):
    return [_listed(v) for v in value] if isinstance(value, tuple) else value


_LEAVES = {
    m.Linear: lambda k: ref.linear(),
    m.Polynomial: lambda k: ref.polynomial(k.degree, k.offset, k.scale),
    m.ExpDot: lambda k: ref.exp_dot(k.scale),
    m.Sigmoid: lambda k: ref.sigmoid(k.scale, k.offset),
    m.Logistic: lambda k: ref.logistic(k.scale, k.offset),
    m.RBF: lambda k: ref.rbf(_listed(k.lengthscale)),
    m.Exponential: lambda k: ref.exponential(_listed(k.lengthscale)),
    m.Matern: lambda k: ref.matern(_listed(k.lengthscale), k.nu),
    m.RationalQuadratic: lambda k: ref.rational_quadratic(_listed(k.lengthscale), k.alpha),
    m.Laplacian: lambda k: ref.laplacian(_listed(k.lengthscale)),
    m.Periodic: lambda k: ref.periodic(_listed(k.period), _listed(k.lengthscale)),
    m.ZeroMeanPeriodic: lambda k: ref.zero_mean_periodic(_listed(k.period), _listed(k.lengthscale)),
    m.Cosine: lambda k: ref.cosine(_listed(k.period)),
    m.AllSubsets: lambda k: ref.all_subsets(),
    m.Brownian: lambda k: ref.brownian(),
    m.Intersection: lambda k: ref.intersection(),
    m.Chi2: lambda k: ref.chi2(k.gamma),
    m.Constant: lambda k: ref.constant(k.value),
    m.White: lambda k: ref.white(k.noise),
    m.Bilinear: lambda k: ref.bilinear(k.A),
    m.CosineSimilarity: lambda k: ref.cosine_similarity(),
    m.ArcCosine: lambda k: ref.arc_cosine(k.order),
    m.SpectralMixture: lambda k: ref.spectral_mixture(
        _listed(k.weights), _listed(k.means), _listed(k.scales)
    ),
}


def reference(k):
    """The slow function of an expression."""
    if type(k) in _LEAVES:
        return _LEAVES[type(k)](k)
    if isinstance(k, m.Dot):
        return ref.dot(_function(k))
    inner = [reference(child) for _, child in k.children()]
    match k:
        case algebra.Sum():
            return ref.plus(*inner)
        case algebra.Product():
            return ref.product(*inner)
        case algebra.Scaled():
            return ref.scaled(k.scale, inner[0])
        case algebra.Power():
            if k.exponent == int(k.exponent):
                return ref.power(inner[0], int(k.exponent))
            return ref.power(_not_below_zero(inner[0]), mpf(k.exponent))
        case algebra.Exp():
            return ref.exp(inner[0])
        case algebra.PolynomialOf():
            return ref.polynomial_of(inner[0], k.coefs)
        case algebra.LinearMap():
            return ref.linear_map(inner[0], k.A)
        case algebra.On():
            return ref.on(inner[0], k.columns)
        case algebra.Normalized():
            return ref.normalized(inner[0])
    raise NotImplementedError(type(k))


def _not_below_zero(k):
    """What is negative by the rounding of these digits alone is 0, as at opposite points of an arc cosine."""

    def value(x, z, same):
        v = k(x, z, same)
        return mpf(0) if -(mpf(10) ** (10 - DIGITS)) < v < 0 else v

    return value


def _function(k):
    if isinstance(k.taylor, tuple):
        coefs = [mpf(c) for c in k.taylor]
        return lambda t: mpmath.fsum(c * t**n for n, c in enumerate(coefs))
    return TWINS[k.f]


def gram(k, X):
    """The Gram matrix in DIGITS digits."""
    with mpmath.workdps(DIGITS):
        return mpmath.matrix(ref.block(reference(k), X))


def lowest_eigenvalue(K):
    """The smallest eigenvalue relative to the largest in size."""
    with mpmath.workdps(DIGITS):
        values = mpmath.eigsy((K + K.T) / 2, eigvals_only=True)
        size = max(abs(v) for v in values)
        return min(values) / size if size else mpf(0)


def form(K, q):
    """qᵀKq."""
    with mpmath.workdps(DIGITS):
        q = [mpf(float(v)) for v in q]
        n = len(q)
        return mpmath.fsum(q[i] * K[i, j] * q[j] for i in range(n) for j in range(n))
