"""The opcodes of the core as slow, obvious loops: one pair at a time, from the formulas."""

import math

import numpy as np

from mercer._core import OPCODES

NAMES = {number: name for name, number in OPCODES.items()}


def _arccos(t, u, v, order, own):
    p = u * v
    c = 0.0 if p == 0 else 1.0 if own else max(-1.0, min(1.0, t / p))
    theta = math.acos(c)
    J = (
        math.pi - theta,
        math.sin(theta) + (math.pi - theta) * c,
        3 * math.sin(theta) * c + (math.pi - theta) * (1 + 2 * c * c),
    )[order]
    return p**order * J / math.pi


def primitive(name, x, z, w):
    d = x - z
    match name:
        case "SQDIST":
            return float(np.sum(d * d))
        case "DOT":
            return float(np.sum(x * z))
        case "L1":
            return float(np.sum(np.abs(d)))
        case "PERIODIC":
            return float(np.sum(w * np.sin(d) ** 2))
        case "COSPROD":
            return float(np.prod(np.cos(d)))
        case "ALLSUBSETS":
            return float(np.prod(1 + x * z))
        case "MINSUM":
            return float(np.sum(np.minimum(x, z)))
        case "MINPROD":
            return float(
                np.prod([min(abs(a), abs(b)) if a * b > 0 else 0.0 for a, b in zip(x, z, strict=True)])
            )
        case "CHI2":
            return float(
                sum(
                    (a - b) ** 2 / (a + b) if (a - b, a + b) != (0, 0) else 0.0
                    for a, b in zip(x, z, strict=True)
                )
            )
    raise KeyError(name)


def unary(name, t, a, b, p):
    match name:
        case "AFFINE":
            return p[a] * t + p[b]
        case "EXP":
            return math.exp(t)
        case "LOG":
            return math.log(t)
        case "LOG1P":
            return math.log1p(t)
        case "SQRT":
            return math.sqrt(t)
        case "RECIPROCAL":
            return 1 / t
        case "ABS":
            return abs(t)
        case "SIN":
            return math.sin(t)
        case "COS":
            return math.cos(t)
        case "TANH":
            return math.tanh(t)
        case "LOGISTIC":
            return 1 / (1 + math.exp(-t))
        case "POWI":
            return t**b
        case "POW":
            return t ** p[a]
        case "RBF":
            return math.exp(-t / 2)
        case "EXPNEG":
            return math.exp(-math.sqrt(t))
        case "MATERN32":
            r = math.sqrt(3 * t)
            return (1 + r) * math.exp(-r)
        case "MATERN52":
            r = math.sqrt(5 * t)
            return (1 + r + r * r / 3) * math.exp(-r)
        case "RQ":
            return (1 + t / (2 * p[a])) ** -p[a]
        case "HORNER":
            return sum(p[a + k] * t**k for k in range(b))
    raise KeyError(name)


def value(code, params, views, rows, columns, i, j, same):
    """k(x_i, z_j); `views` and `rows` hold pairs of arrays, the second one never None here."""
    stack = []
    for opcode, a, b in code:
        name = NAMES[int(opcode)]
        match name:
            case "CONST":
                stack.append(params[a])
            case "DELTA":
                stack.append(params[a] if same and i == j else 0.0)
            case "ADD":
                stack[-2:] = [stack[-2] + stack[-1]]
            case "MUL":
                stack[-2:] = [stack[-2] * stack[-1]]
            case "MAX":
                stack[-2:] = [max(stack[-2], stack[-1])]
            case "MIN":
                stack[-2:] = [min(stack[-2], stack[-1])]
            case "ROWSCALE":
                stack[-1] *= rows[a][0][i] * rows[a][1][j]
            case "ARCCOS":
                stack[-1] = _arccos(stack[-1], rows[a][0][i], rows[a][1][j], b, same and i == j)
            case (
                "SQDIST"
                | "DOT"
                | "L1"
                | "PERIODIC"
                | "COSPROD"
                | "ALLSUBSETS"
                | "MINSUM"
                | "MINPROD"
                | "CHI2"
            ):
                w = columns[b] if name == "PERIODIC" else None
                stack.append(primitive(name, views[a][0][i], views[a][1][j], w))
            case _:
                stack[-1] = unary(name, stack[-1], a, b, params)
    (answer,) = stack
    return answer


def gram(code, params, views, rows=(), columns=()):
    """K by a double loop; a None second part means the same observations."""
    same = all(z is None for _, z in views) and all(v is None for _, v in rows)
    full = lambda pairs: [(x.astype(float), (x if z is None else z).astype(float)) for x, z in pairs]
    views, rows = full(views), full(rows)
    n, m = (len(part) for part in (views or rows)[0])
    with np.errstate(all="ignore"):
        return np.array(
            [[value(code, params, views, rows, columns, i, j, same) for j in range(m)] for i in range(n)]
        ).reshape(n, m)
