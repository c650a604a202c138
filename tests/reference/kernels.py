"""Every kernel again, slow and obvious: one pair of points at a time, in 30 digits,
from the formulas of the notes.

Nothing here looks at mercer's code. A leaf is a function of two points (lists of numbers); a rule is a
function of such functions; `block` is the double loop. `same` says whether both points are the same
observation, which only the noise term wants to know.
"""

import mpmath
from mpmath import mp, mpf

mp.dps = 30


def _number(v):
    return mpf(float(v)) if not isinstance(v, mpf) else v


def _per_column(value, d):
    if isinstance(value, (list, tuple)):
        assert len(value) == d
        return [mpf(float(v)) for v in value]
    return [mpf(float(value))] * d


def block(k, X, Z=None):
    """The matrix k(x_i, z_j), by two loops."""
    X = [[_number(v) for v in x] for x in X]
    if Z is None:
        return [[k(x, z, i == j) for j, z in enumerate(X)] for i, x in enumerate(X)]
    Z = [[_number(v) for v in z] for z in Z]
    return [[k(x, z, False) for z in Z] for x in X]


def diagonal(k, X):
    return [k(x, x, True) for x in ([_number(v) for v in x] for x in X)]


def _dot(x, z):
    return mpmath.fsum(a * b for a, b in zip(x, z, strict=True))


def _squared_distance(x, z, lengthscale):
    scales = _per_column(lengthscale, len(x))
    return mpmath.fsum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True))


# ── functions of the dot product ────────────────────────────────────────────────────────────────────────────


def linear():
    return lambda x, z, same: _dot(x, z)


def polynomial(degree, offset, scale):
    return lambda x, z, same: (mpf(offset) + mpf(scale) * _dot(x, z)) ** degree


def exp_dot(scale):
    return lambda x, z, same: mpmath.exp(mpf(scale) * _dot(x, z))


def sigmoid(scale, offset):
    return lambda x, z, same: mpmath.tanh(mpf(scale) * _dot(x, z) + mpf(offset))


def logistic(scale, offset):
    return lambda x, z, same: 1 / (1 + mpmath.exp(-(mpf(scale) * _dot(x, z) + mpf(offset))))


def dot(f):
    return lambda x, z, same: f(_dot(x, z))


# ── functions of the distance ───────────────────────────────────────────────────────────────────────────────


def rbf(lengthscale):
    return lambda x, z, same: mpmath.exp(-_squared_distance(x, z, lengthscale) / 2)


def exponential(lengthscale):
    return lambda x, z, same: mpmath.exp(-mpmath.sqrt(_squared_distance(x, z, lengthscale)))


def matern(lengthscale, nu):
    nu = mpf(nu)

    def k(x, z, same):
        a = mpmath.sqrt(2 * nu * _squared_distance(x, z, lengthscale))
        if a == 0:
            return mpf(1)
        return 2 ** (1 - nu) / mpmath.gamma(nu) * a**nu * mpmath.besselk(nu, a)

    return k


def rational_quadratic(lengthscale, alpha):
    alpha = mpf(alpha)
    return lambda x, z, same: (1 + _squared_distance(x, z, lengthscale) / (2 * alpha)) ** (-alpha)


def stationary(f):
    return lambda x, z, same: f([a - b for a, b in zip(x, z, strict=True)])


# ── column by column ────────────────────────────────────────────────────────────────────────────────────────


def laplacian(lengthscale):
    def k(x, z, same):
        scales = _per_column(lengthscale, len(x))
        return mpmath.exp(-mpmath.fsum(abs(a - b) / s for a, b, s in zip(x, z, scales, strict=True)))

    return k


def periodic(period, lengthscale):
    def k(x, z, same):
        d = len(x)
        columns = zip(x, z, _per_column(period, d), _per_column(lengthscale, d), strict=True)
        terms = (mpmath.sin(mpmath.pi * abs(a - b) / p) ** 2 / s**2 for a, b, p, s in columns)
        return mpmath.exp(-2 * mpmath.fsum(terms))

    return k


def zero_mean_periodic(period, lengthscale):
    def factor(a, b, p, s):
        height = 1 / mpmath.mpf(s) ** 2
        # the difference of two numbers that are nearly equal where the lengthscale is long
        with mpmath.workdps(60 + 2 * max(0, int(mpmath.log10(s)))):
            mean = mpmath.besseli(0, height)
            wave = mpmath.exp(height * mpmath.cos(2 * mpmath.pi * (a - b) / p))
            return (wave - mean) / (mpmath.exp(height) - mean)

    def k(x, z, same):
        d = len(x)
        columns = zip(x, z, _per_column(period, d), _per_column(lengthscale, d), strict=True)
        return mpmath.fprod(factor(*column) for column in columns)

    return k


def cosine(period):
    def k(x, z, same):
        columns = zip(x, z, _per_column(period, len(x)), strict=True)
        return mpmath.fprod(mpmath.cos(2 * mpmath.pi * (a - b) / p) for a, b, p in columns)

    return k


def all_subsets():
    return lambda x, z, same: mpmath.fprod(1 + a * b for a, b in zip(x, z, strict=True))


def brownian():
    def one(a, b):
        return min(abs(a), abs(b)) if a * b > 0 else mpf(0)

    return lambda x, z, same: mpmath.fprod(one(a, b) for a, b in zip(x, z, strict=True))


def intersection():
    return lambda x, z, same: mpmath.fsum(min(a, b) for a, b in zip(x, z, strict=True))


def chi2(gamma):
    def one(a, b):
        return (a - b) ** 2 / (a + b) if a + b > 0 else mpf(0)

    return lambda x, z, same: mpmath.exp(
        -mpf(gamma) * mpmath.fsum(one(a, b) for a, b in zip(x, z, strict=True))
    )


# ── the others ──────────────────────────────────────────────────────────────────────────────────────────────


def constant(value):
    return lambda x, z, same: mpf(value)


def white(noise):
    return lambda x, z, same: mpf(noise) if same else mpf(0)


def bilinear(A):
    def k(x, z, same):
        return mpmath.fsum(a * mpf(float(A[i][j])) * b for i, a in enumerate(x) for j, b in enumerate(z))

    return k


def cosine_similarity():
    def k(x, z, same):
        size = mpmath.sqrt(_dot(x, x)) * mpmath.sqrt(_dot(z, z))
        return _dot(x, z) / size if size else mpf(0)

    return k


def arc_cosine(order):
    def k(x, z, same):
        size = mpmath.sqrt(_dot(x, x) * _dot(z, z))
        cos = max(mpf(-1), min(mpf(1), _dot(x, z) / size)) if size else mpf(0)
        theta = mpmath.acos(cos)
        sin, rest = mpmath.sin(theta), mpmath.pi - theta
        J = [rest, sin + rest * cos, 3 * sin * cos + rest * (1 + 2 * cos**2)][order]
        return size**order * J / mpmath.pi

    return k


def spectral_mixture(weights, means, scales):
    def k(x, z, same):
        total = mpf(0)
        for w, mean, scale in zip(weights, means, scales, strict=True):
            mean = mean if isinstance(mean, (list, tuple)) else [mean]
            scale = scale if isinstance(scale, (list, tuple)) else [scale]
            part = mpf(w)
            for a, b, m, s in zip(x, z, mean, scale, strict=True):
                delta = a - b
                part *= mpmath.exp(-2 * mpmath.pi**2 * delta**2 * mpf(s) ** 2)
                part *= mpmath.cos(2 * mpmath.pi * delta * mpf(m))
            total += part
        return total

    return k


def custom(function):
    return lambda x, z, same: mpf(function(x, z))


# ── the rules ───────────────────────────────────────────────────────────────────────────────────────────────


def plus(*parts):
    return lambda x, z, same: mpmath.fsum(k(x, z, same) for k in parts)


def minus(a, b):
    return lambda x, z, same: a(x, z, same) - b(x, z, same)


def product(*parts):
    return lambda x, z, same: mpmath.fprod(k(x, z, same) for k in parts)


def scaled(c, k):
    return lambda x, z, same: mpf(c) * k(x, z, same)


def power(k, p):
    return lambda x, z, same: k(x, z, same) ** p if p else mpf(1)


def exp(k):
    return lambda x, z, same: mpmath.exp(k(x, z, same))


def polynomial_of(k, coefs):
    def value(x, z, same):
        v = k(x, z, same)
        return mpmath.fsum(mpf(c) * v**n for n, c in enumerate(coefs))

    return value


def times(k, f):
    return lambda x, z, same: f(x) * k(x, z, same) * f(z)


def of(k, psi):
    return lambda x, z, same: k(psi(x), psi(z), same)


def linear_map(k, A):
    def psi(x):
        return [mpmath.fsum(mpf(float(a)) * v for a, v in zip(row, x, strict=True)) for row in A]

    return of(k, psi)


def on(k, columns):
    return of(k, lambda x: [x[c] for c in columns])


def normalized(k):
    def value(x, z, same):
        size = mpmath.sqrt(k(x, x, True) * k(z, z, True))
        return k(x, z, same) / size if size else mpf(0)

    return value
