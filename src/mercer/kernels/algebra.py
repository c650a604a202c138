"""How kernels are combined: each class is one construction rule, with its value, its text and its proof.

    Scaled        c·k             Sum       k₁ + k₂ + …        Product    k₁ · k₂ · …
    Power         k^p             Exp       e^k                PolynomialOf   Σ c_n k^n
    Times         f(x) k f(z)     Of        k(ψ(x), ψ(z))      LinearMap  k(Ax, Az)
    On            k on columns    Normalized   k / √(k(x,x) k(z,z))

Sums of sums and products of products flatten; they never mix.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Column, Rows, real_numbers
from mercer.errors import DomainError, MagnitudeError, ParameterError, ShapeError
from mercer.kernels.base import Kernel, as_kernel, is_number
from mercer.kernels.latex import join_signs, times
from mercer.kernels.leaves.families import expression, latex_value, write_value
from mercer.kernels.leaves.special import Constant
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.params import children as several_kernels
from mercer.params import coefficients, given, shape_number, signed

DEEPEST = 100  # nested rules; every method follows the nesting by calling itself


class Combined(Kernel):
    """A kernel made of others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        depth = 1 + max(child.nesting for _, child in self.children())
        if depth > DEEPEST:
            raise ParameterError(
                f"this kernel would be nested {depth} deep; at most {DEEPEST} are allowed. Sums of many terms are not "
                "nested: build them as k1 + k2 + …, and write repeated products as powers."
            )
        object.__setattr__(self, "nesting", depth)


def remembered(prove: Callable[[Any], Proof | None]) -> Callable[[Any], Proof | None]:
    """A proof that is looked for once: proofs of parts are asked for again and again on the way up."""

    @functools.wraps(prove)
    def proof(self: Any) -> Proof | None:
        if "_remembered_proof" not in self.__dict__:
            object.__setattr__(self, "_remembered_proof", prove(self))
        return self.__dict__["_remembered_proof"]

    return proof


class Unary(Combined):
    """A kernel made of one kernel."""

    kernel: Kernel

    def children(self) -> list[tuple[str, Kernel]]:
        return [("kernel", self.kernel)]

    def with_children(self, children: list[Kernel]) -> Kernel:
        return self.changed(kernel=children[0])

    def _passed_on(self, fact: Fact, conditions: tuple[str, ...] = (), *, root: bool = False) -> Proof | None:
        """The proof by one rule whose only premise is the part's own proof."""
        inner = self.kernel.root_proof() if root else self.kernel.proof()
        return None if inner is None else Proof(self, fact, (inner,), conditions)


class Nary(Combined):
    """A kernel made of several."""

    parts: tuple[Kernel, ...]

    def children(self) -> list[tuple[str, Kernel]]:
        return [(f"k{i}", part) for i, part in enumerate(self.parts, 1)]

    def _premises(self) -> tuple[Proof, ...] | None:
        proofs = tuple(part.proof() for part in self.parts)
        return None if any(p is None for p in proofs) else proofs  # type: ignore[return-value]


# ── building ────────────────────────────────────────────────────────────────────────────────────────────────


def add(a: Any, b: Any) -> Kernel:
    """a + b, flattened."""
    if not all(isinstance(v, Kernel) or is_number(v) for v in (a, b)):
        return NotImplemented
    parts: list[Kernel] = []
    for v in map(as_kernel, (a, b)):
        parts += v.parts if isinstance(v, Sum) else (v,)
    return Sum(tuple(parts))


def multiply(a: Kernel, b: Any) -> Kernel:
    """a · b, flattened; numbers are gathered in front."""
    if is_number(b):
        if isinstance(a, Scaled) and _plain(a):
            return Scaled(a.kernel, a.scale * float(b))
        return Scaled(a, b)
    if not isinstance(b, Kernel):
        return NotImplemented
    scale = 1.0
    parts: list[Kernel] = []
    scaled = False
    for v in (a, b):
        if isinstance(v, Scaled) and _plain(v):
            scale, v, scaled = scale * v.scale, v.kernel, True
        parts += v.parts if isinstance(v, Product) else (v,)
    product = Product(tuple(parts))
    return Scaled(product, scale) if scaled else product


def _plain(k: Kernel) -> bool:
    return not (k.fixed_names or k.stated_bounds)


# ── the rules ───────────────────────────────────────────────────────────────────────────────────────────────


@expression
class Scaled(Unary):
    """c · k."""

    kernel: Kernel = given()
    scale: float = signed()

    precedence = 2

    def with_children(self, children: list[Kernel]) -> Kernel:
        """Numbers stay gathered in front, as `multiply` puts them: 3·(2·k) is 6·k."""
        inner = children[0]
        if isinstance(inner, Scaled) and _plain(inner):
            return self.changed(kernel=inner.kernel, scale=self.scale * inner.scale)
        return self.changed(kernel=inner)

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self.scale * self.kernel.block(x, z)

    def diagonal(self, x: Rows) -> np.ndarray:
        return self.scale * self.kernel.diagonal(x)

    def text(self) -> str:
        inside = self.kernel.text_inside(2)
        return f"-{inside}" if self.scale == -1 else f"{self.scale!r}*{inside}"

    def latex(self) -> str:
        inside = self.kernel.latex_inside(2)
        return f"-{inside}" if self.scale == -1 else times(latex_value(self.scale), inside)

    @remembered
    def proof(self) -> Proof | None:
        if self.scale >= 0:
            fact = Fact("positive multiple", "qᵀ(cK)q = c · qᵀKq ≥ 0 for c ≥ 0")
            found = self._passed_on(fact, (f"c = {self.scale!r} ≥ 0",))
            if found is not None:
                return found
        from mercer.kernels.proofs.expansion import proof_by_expansion

        return proof_by_expansion(self)

    def root_proof(self) -> Proof | None:
        if self.scale < 0:
            return None
        return self._passed_on(Fact("infinitely divisible", "(ck)^r = c^r k^r with c ≥ 0"), root=True)


@expression
class Sum(Nary):
    """k₁ + k₂ + …"""

    parts: tuple[Kernel, ...] = several_kernels()

    precedence = 1

    def with_children(self, children: list[Kernel]) -> Kernel:
        out = children[0]
        for child in children[1:]:
            out = out + child
        return out

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        out = self.parts[0].block(x, z).copy()
        for part in self.parts[1:]:
            out += part.block(x, z)
        return out

    def diagonal(self, x: Rows) -> np.ndarray:
        return sum((part.diagonal(x) for part in self.parts[1:]), self.parts[0].diagonal(x))

    def text(self) -> str:
        return join_signs([part.text_inside(2) for part in self.parts])

    def latex(self) -> str:
        return join_signs([part.latex_inside(1) for part in self.parts])

    @remembered
    def proof(self) -> Proof | None:
        premises = self._premises()
        if premises is None:
            from mercer.kernels.proofs.expansion import proof_by_expansion

            return proof_by_expansion(self)
        return Proof(self, Fact("sum of kernels", "qᵀ(K₁ + K₂)q = qᵀK₁q + qᵀK₂q ≥ 0"), premises)


@expression
class Product(Nary):
    """k₁ · k₂ · …, over the same columns or, with `on`, over different ones (the tensor product)."""

    parts: tuple[Kernel, ...] = several_kernels()

    precedence = 2

    def with_children(self, children: list[Kernel]) -> Kernel:
        out = children[0]
        for child in children[1:]:
            out = out * child
        return out

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        out = self.parts[0].block(x, z).copy()
        for part in self.parts[1:]:
            out *= part.block(x, z)
        return out

    def diagonal(self, x: Rows) -> np.ndarray:
        out = self.parts[0].diagonal(x).copy()
        for part in self.parts[1:]:
            out *= part.diagonal(x)
        return out

    def text(self) -> str:
        return "*".join(part.text_inside(3) for part in self.parts)

    def latex(self) -> str:
        return r"\cdot ".join(part.latex_inside(2) for part in self.parts)

    @remembered
    def proof(self) -> Proof | None:
        premises = self._premises()
        if premises is None:
            from mercer.kernels.proofs.expansion import proof_by_expansion

            return proof_by_expansion(self)
        reason = "Schur: the entrywise product of the Gram matrices is a principal block of their Kronecker product"
        return Proof(self, Fact("product of kernels", reason), premises)

    def root_proof(self) -> Proof | None:
        proofs = tuple(part.root_proof() for part in self.parts)
        if any(p is None for p in proofs):
            return None
        reason = "(k₁k₂)^r = k₁^r k₂^r, a product of kernels"
        return Proof(self, Fact("infinitely divisible", reason), proofs)  # type: ignore[arg-type]


SMALL_POWER = 0.07  # above it, what float64 takes for 0 stays below 10⁻²¹


@expression
class Power(Unary):
    """k^p: a kernel for whole p ≥ 0, and for every p > 0 when k is infinitely divisible."""

    kernel: Kernel = given()
    exponent: float = shape_number(words="a number >= 0", low=0, open_low=False)

    precedence = 3

    def applied(self, K: np.ndarray) -> np.ndarray:
        p = self.exponent
        if p != int(p) and K.size and K.min() < 0:
            where = tuple(int(i) for i in np.unravel_index(int(np.argmin(K)), K.shape))
            raise DomainError(
                f"{self}: the kernel inside is {K.min():.3g} at {where}, and a negative number has no real power {p:g}."
            )
        return K**p

    @property
    def revives(self) -> bool:
        """Whether the power is so small that numbers below the range of float64 become ordinary ones."""
        return 0 < self.exponent < SMALL_POWER

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self._careful(self.kernel.block(x, z), x, z, diagonal=False)

    def diagonal(self, x: Rows) -> np.ndarray:
        return self._careful(self.kernel.diagonal(x), x, None, diagonal=True)

    def _careful(self, K: np.ndarray, x: Rows, z: Rows | None, *, diagonal: bool) -> np.ndarray:
        """The power of K, by logarithms where a small power revives what has vanished."""
        out = self.applied(K)
        if not self.revives or np.all(K > 1e-290):
            return out
        from mercer.kernels.logarithms import Pairs, power

        return power(self, Pairs(x, z, diagonal))

    def text(self) -> str:
        p = int(self.exponent) if self.exponent == int(self.exponent) else self.exponent
        return f"{self.kernel.text_inside(4)}**{p!r}"

    def latex(self) -> str:
        return rf"{{{self.kernel.latex_inside(4)}}}^{{{self.exponent:g}}}"

    @remembered
    def proof(self) -> Proof | None:
        p = self.exponent
        if p == int(p):
            if p == 0:
                return Proof(self, Fact("constant", "k⁰ = 1"))
            found = self._passed_on(
                Fact("whole power", "a product of p copies of the kernel"), (f"p = {int(p)} ∈ ℕ",)
            )
            if found is not None:
                return found
            from mercer.kernels.proofs.expansion import proof_by_expansion

            return proof_by_expansion(self)
        fact = Fact(
            "infinite divisibility", "every power k^r, r > 0, of an infinitely divisible kernel is a kernel"
        )
        return self._passed_on(fact, (f"p = {p:g} > 0",), root=True)

    def root_proof(self) -> Proof | None:
        if self.exponent == 0:
            return Proof(self, Fact("infinitely divisible", "1^r = 1"))
        return self._passed_on(Fact("infinitely divisible", "(k^p)^r = k^(pr)"), root=True)


@expression
class Exp(Unary):
    """e^k."""

    kernel: Kernel = given()

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return np.exp(self.kernel.block(x, z))

    def diagonal(self, x: Rows) -> np.ndarray:
        return np.exp(self.kernel.diagonal(x))

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.exp()"

    def latex(self) -> str:
        return rf"\exp\left({self.kernel.latex()}\right)"

    @remembered
    def proof(self) -> Proof | None:
        fact = Fact("exponential", "e^k = Σ k^n / n!, a limit of positive sums of powers of the kernel")
        found = self._passed_on(fact) or self._shifted()
        if found is not None:
            return found
        from mercer.kernels.proofs.expansion import proof_by_expansion

        return proof_by_expansion(self)

    def root_proof(self) -> Proof | None:
        inner = self.kernel.proof()
        if inner is not None:
            return Proof(self, Fact("infinitely divisible", "(e^k)^r = e^(rk) and rk is a kernel"), (inner,))
        shifted = self._shifted()
        if shifted is None:
            return None
        reason = "(e^(k + c))^r = e^(rc) · e^(rk), where e^(rc) > 0 and rk is a kernel"
        return Proof(self, Fact("infinitely divisible", reason), shifted.premises)

    def _shifted(self) -> Proof | None:
        """e^(k + c) = e^c e^k: a negative constant inside an exponential does no harm."""
        parts = self.kernel.parts if isinstance(self.kernel, Sum) else (self.kernel,)
        rest = [part for part in parts if type(part) is not Constant]
        if len(rest) == len(parts):
            return None
        if not rest:
            return Proof(self, Fact("constant", "e^c is a constant > 0, and qᵀKq = e^c (Σ q_i)² ≥ 0"))
        core = rest[0] if len(rest) == 1 else Sum(tuple(rest))
        premise = core.proof()
        if premise is None:
            return None
        fact = Fact("exponential", "e^(k + c) = e^c · e^k with e^c > 0, and e^k is a kernel")
        return Proof(self, fact, (premise,))


@expression
class PolynomialOf(Unary):
    """c₀ + c₁k + c₂k² + …"""

    kernel: Kernel = given()
    coefs: tuple[float, ...] = coefficients(words="a list of finite numbers, the constant first")

    def applied(self, K: np.ndarray) -> np.ndarray:
        return np.polynomial.polynomial.polyval(K, self.coefs)

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self.applied(self.kernel.block(x, z))

    def diagonal(self, x: Rows) -> np.ndarray:
        return self.applied(self.kernel.diagonal(x))

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.polynomial({write_value(self.coefs)})"

    def latex(self) -> str:
        inside = self.kernel.latex_inside(4)
        product = self.kernel.latex_inside(2)
        terms = []
        for n, c in enumerate(self.coefs):
            power = product if n == 1 else f"{{{inside}}}^{{{n}}}"
            if c:
                terms.append(times(latex_value(c), power) if n else latex_value(c))
        return join_signs(terms) if terms else "0"

    @remembered
    def proof(self) -> Proof | None:
        if min(self.coefs) >= 0:
            fact = Fact(
                "polynomial",
                "a polynomial with non-negative coefficients: positive sums of powers of the kernel",
            )
            found = self._passed_on(fact, (f"coefficients {write_value(self.coefs)} are all ≥ 0",))
            if found is not None:
                return found
        from mercer.kernels.proofs.expansion import proof_by_expansion

        return proof_by_expansion(self)


@expression
class Times(Unary):
    """f(x) k(x, z) f(z) for any function f."""

    kernel: Kernel = given()
    f: Callable[[Any], Any] = given()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.f):
            raise ParameterError(
                f"times(f) needs a function of the points; got {self.f!r}. For a number write c * k."
            )

    def factor(self, x: Rows) -> np.ndarray:
        out = real_numbers(self.f(x.points), "times(f)")
        if out.shape == (len(x), 1):
            out = out[:, 0]
        if out.shape != (len(x),):
            raise ShapeError(
                f"times(f): f returned shape {out.shape} for {len(x)} points; it must return one number per point. "
                "A function of a single point becomes one of all points by lambda X: np.array([f(x) for x in X])."
            )
        return out

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        a = self.factor(x)
        b = a if z is None else self.factor(z)
        return (a[:, None] * b[None, :]) * self.kernel.block(
            x, z
        )  # in this order it is symmetric to the last bit

    def diagonal(self, x: Rows) -> np.ndarray:
        return self.factor(x) ** 2 * self.kernel.diagonal(x)

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.times({write_value(self.f)})"

    def latex(self) -> str:
        name = latex_value(self.f)
        return rf"\mathrm{{{name}}}(x)\,{self.kernel.latex_inside(2)}\,\mathrm{{{name}}}(z)"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(
            Fact("rule f(x) k(x, z) f(z)", "qᵀKq is the form of k at the vector with entries q_i f(x_i)")
        )


@expression
class Of(Unary):
    """k(ψ(x), ψ(z)) for any map ψ."""

    kernel: Kernel = given()
    map: Callable[[Any], Any] = given()

    def resolved_on(self, rows: Rows, weight: np.ndarray | None) -> Kernel:
        return self.with_children([self.kernel.resolved_on(self.mapped(rows), weight)])

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        a = self.mapped(x)
        if z is None:
            return self.kernel.block(a, None)
        b = self.mapped(z)
        self.kernel.compare_columns(a, b)
        return self.kernel.block(a, b)

    def diagonal(self, x: Rows) -> np.ndarray:
        return self.kernel.diagonal(self.mapped(x))

    def mapped(self, x: Rows) -> Rows:
        return x.mapped(self.map, write_value(self.map))

    def compare_columns(self, x: Rows, z: Rows) -> None:
        """The map decides what it takes; its results are compared in `block`."""

    def columns_needed(self) -> tuple[int | None, int]:
        return None, 1

    def takes_things(self) -> bool:
        return True

    def needs_nonnegative(self) -> bool:
        return False

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.of({write_value(self.map)})"

    def latex(self) -> str:
        return rf"\left[{self.kernel.latex()}\right]_{{x\to\mathrm{{{latex_value(self.map)}}}(x),\,z\to\mathrm{{{latex_value(self.map)}}}(z)}}"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(
            Fact("composition with a map", "the Gram matrix is that of k at the points ψ(x_i)")
        )

    def root_proof(self) -> Proof | None:
        return self._passed_on(
            Fact("infinitely divisible", "the Gram matrix is that of k at the points ψ(x_i)"), root=True
        )


@expression
class LinearMap(Unary):
    """k(Ax, Az) for a matrix A."""

    kernel: Kernel = given()
    A: tuple[tuple[float, ...], ...] = coefficients(
        ndim=2, words="a matrix of finite numbers, one row per new column"
    )

    def resolved_on(self, rows: Rows, weight: np.ndarray | None) -> Kernel:
        return self.with_children([self.kernel.resolved_on(self.mapped(rows), weight)])

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self.kernel.block(self.mapped(x), None if z is None else self.mapped(z))

    def diagonal(self, x: Rows) -> np.ndarray:
        return self.kernel.diagonal(self.mapped(x))

    def mapped(self, x: Rows) -> Rows:
        X, d = x.vectors, len(self.A[0])
        if X.shape[1] != d:
            raise ShapeError(f"of(A): A has {d} columns, but {x.name} has {X.shape[1]}.")
        return Rows(np.asarray(X.astype(np.float64, copy=False) @ np.array(self.A).T), f"A{x.name}")

    def columns_needed(self) -> tuple[int | None, int]:
        return len(self.A[0]), len(self.A[0])

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.of({write_value(self.A)})"

    def latex(self) -> str:
        return rf"\left[{self.kernel.latex()}\right]_{{x\to Ax,\,z\to Az}}"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(
            Fact("composition with a map", "the Gram matrix is that of k at the points Ax_i")
        )

    def root_proof(self) -> Proof | None:
        return self._passed_on(
            Fact("infinitely divisible", "the Gram matrix is that of k at the points Ax_i"), root=True
        )


@expression
class On(Unary):
    """k on some of the columns."""

    kernel: Kernel = given()
    columns: tuple[Column, ...] = given()

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = self.columns if isinstance(self.columns, tuple) else (self.columns,)
        if not columns:
            raise ParameterError(
                'on() needs at least one column: a name, a number or a slice, as in k.on("age", 3).'
            )
        for c in columns:
            if isinstance(c, bool) or not isinstance(c, str | int | slice | np.integer):
                raise ParameterError(f"on(): a column is a name, a number or a slice; got {c!r}.")
            if isinstance(c, slice):
                _check_slice(c)
        made = tuple(int(c) if isinstance(c, np.integer) else c for c in columns)
        object.__setattr__(self, "columns", made)

    def compare_columns(self, x: Rows, z: Rows) -> None:
        self.kernel.compare_columns(x.take(self.columns), z.take(self.columns))

    def resolved_on(self, rows: Rows, weight: np.ndarray | None) -> Kernel:
        return self.with_children([self.kernel.resolved_on(rows.take(self.columns), weight)])

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self.kernel.block(x.take(self.columns), None if z is None else z.take(self.columns))

    def diagonal(self, x: Rows) -> np.ndarray:
        return self.kernel.diagonal(x.take(self.columns))

    def columns_needed(self) -> tuple[int | None, int]:
        ends = [1]
        for c in self.columns:
            if isinstance(c, slice):
                stop = c.stop if c.stop is not None else (c.start or 0) + 1
                ends.append(abs(stop))
            elif isinstance(c, int):
                ends.append(c + 1 if c >= 0 else -c)
        return None, max(ends)

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.on({', '.join(_write_column(c) for c in self.columns)})"

    def latex(self) -> str:
        shown = ", ".join(latex_value(c).replace("_", r"\_") for c in self.columns)
        return rf"\left[{self.kernel.latex()}\right]_{{\mathrm{{{shown}}}}}"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(Fact("composition with a map", "choosing columns is a map ψ"))

    def root_proof(self) -> Proof | None:
        return self._passed_on(Fact("infinitely divisible", "choosing columns is a map ψ"), root=True)


def _check_slice(c: slice) -> None:
    try:
        c.indices(1)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"on(): a slice of columns is made of whole numbers; got {c}. ({error})"
        ) from error


def _write_column(c: Column) -> str:
    if isinstance(c, slice):
        parts = (c.start, c.stop) if c.step is None else (c.start, c.stop, c.step)
        return f"slice({', '.join(map(repr, parts))})"
    return '"' + c.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(c, str) else repr(c)


@expression
class Normalized(Unary):
    """k(x, z) / √(k(x, x) k(z, z)); 0 where k(x, x) is 0."""

    kernel: Kernel = given()

    def __post_init__(self) -> None:
        super().__post_init__()
        deep = _normalizations(self)
        if deep > MOST_NORMALIZATIONS:
            raise ParameterError(
                f"normalized() is nested {deep} deep, and at most {MOST_NORMALIZATIONS} are allowed: each doubles the work "
                "of a gradient. Normalise once, on the outside; what is inside is divided out."
            )

    def norms(self, x: Rows, dtype: Any = np.float64) -> np.ndarray | None:
        """1/√k(x, x) for every row, 0 where k(x, x) is 0; None where one leaves the range of `dtype`."""
        with np.errstate(over="ignore"):
            s = self.kernel.diagonal(x)
        room = np.finfo(dtype)
        low, high = float(room.tiny) / float(room.eps), float(room.max) * float(room.eps)
        if not np.all((s == 0) | ((s > low) & (s < high))):
            return None
        refuse_vanished(self.kernel, x, s == 0)
        return 1 / np.sqrt(np.where(s == 0, np.inf, s))

    def inverse_norms(self, x: Rows) -> np.ndarray:
        """1/√k(x, x) for every row, or a sentence where that is no ordinary number."""
        norms = self.norms(x)
        if norms is None:
            raise MagnitudeError(
                f"{self}: k(x, x) leaves the range of float64, so its values are known by their logarithms, and its "
                "gradient is not. Rescale the columns, or take a smaller scale, degree or power."
            )
        return norms

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        a = self.norms(x)
        b = a if z is None else self.norms(z)
        if a is None or b is None:
            from mercer.kernels.logarithms import cosines

            K = cosines(self.kernel, x, z)
        else:
            # In this order it is symmetric to the last bit.
            K = (a[:, None] * b[None, :]) * self.kernel.block(x, z)
        if z is None:
            np.fill_diagonal(K, self._ones(x, a))
        return K

    def diagonal(self, x: Rows) -> np.ndarray:
        return self._ones(x, self.norms(x))

    def _ones(self, x: Rows, norms: np.ndarray | None) -> np.ndarray:
        """1 for every row whose norm is not 0."""
        if norms is None:
            from mercer.kernels.logarithms import log_norms

            return (log_norms(self.kernel, x) > -np.inf).astype(float)
        return (norms > 0).astype(float)

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.normalized()"

    def latex(self) -> str:
        return rf"\overline{{{self.kernel.latex()}}}"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(Fact("normalisation", "the rule f(x) k(x, z) f(z) with f(x) = 1/√k(x, x)"))

    def root_proof(self) -> Proof | None:
        return self._passed_on(
            Fact("infinitely divisible", "the power of a normalised kernel is the normalised power"),
            root=True,
        )


MOST_NORMALIZATIONS = 6


def _normalizations(k: Kernel) -> int:
    """How many normalized() lie inside one another."""
    inside = max((_normalizations(child) for _, child in k.children()), default=0)
    return inside + isinstance(k, Normalized)


def refuse_vanished(k: Kernel, x: Rows, zero: np.ndarray) -> None:
    """Refuse a row with k(x, x) = 0 that is not zero itself, but so small that its squares are."""
    vanished = np.intersect1d(np.flatnonzero(zero), x.vanishing())
    if len(vanished):
        raise MagnitudeError(
            f"{k}: row {vanished[0]} of {x.name} is so small that its squares vanish, and its norm with them. "
            "Rescale the columns."
        )
