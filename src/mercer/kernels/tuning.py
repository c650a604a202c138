"""The numbers of a kernel: which are tuned, held and bounded, and scikit-learn's names for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from mercer.errors import ParameterError, ShapeError
from mercer.kernels import doors
from mercer.kernels.tree import Tree
from mercer.params import Bounds, Domain, Open, Parameter, check_bounds
from mercer.typing import Array, Numbers, Setting

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

# What a kernel keeps of itself once it was asked; it follows from its fields.
REMEMBERED = ("_remembered_proof", "_remembered_parameters", "_remembered_hash", "_remembered_counting")

Mark = Callable[["Kernel", str], "Kernel"]


def fields_of(k: object) -> tuple[dataclasses.Field[Setting], ...]:
    """The fields of a kernel or of its class, in the order of its constructor."""
    return _fields_of_kind(k if isinstance(k, type) else type(k))


@cache
def _fields_of_kind(kind: type) -> tuple[dataclasses.Field[Setting], ...]:
    return dataclasses.fields(kind)


@cache
def domains_of(kind: type) -> tuple[tuple[str, Domain], ...]:
    """The fields of a class that hold numbers, with the numbers they may hold."""
    return tuple((f.name, f.metadata["domain"]) for f in fields_of(kind) if "domain" in f.metadata)


@cache
def _tuned_domains(kind: type) -> tuple[tuple[str, Domain], ...]:
    return tuple((name, domain) for name, domain in domains_of(kind) if domain.tuned)


class Tunable(Tree):
    """An expression whose numbers have names, domains, and a vector `theta` of free ones."""

    fixed_names: frozenset[str] = frozenset()
    stated_bounds: tuple[tuple[str, Bounds], ...] = ()
    is_family: ClassVar[bool] = True
    _tunable_copy: bool = False

    # ── parameters ──────────────────────────────────────────────────────────────────────────────────────────

    def own_domains(self) -> tuple[tuple[str, Domain], ...]:
        """The tuned fields of this part alone, with the numbers they may hold."""
        kind: type = type(self)
        return _tuned_domains(kind)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every tunable number of the expression, from left to right.

        >>> from mercer import RBF, Linear
        >>> [p.name for p in (2.0 * RBF([1.0, 3.0]) + Linear()).parameters]
        ['k1__scale', 'k1__kernel__lengthscale[0]', 'k1__kernel__lengthscale[1]']
        """
        known: tuple[Parameter, ...] | None = self.__dict__.get("_remembered_parameters")
        if known is None:
            known = self._listed_parameters()
            if self.stays():
                object.__setattr__(self, "_remembered_parameters", known)
        return known

    def stays(self) -> bool:
        """Whether no part may be changed in place, by `set_params` of a copy made by `clone`.

        What follows from a kernel that does not stay is asked each time.
        """
        return not any(part._tunable_copy for _, part in self.walk_named())

    def _listed_parameters(self) -> tuple[Parameter, ...]:
        out: list[Parameter] = []
        for prefix, part in self.walk_named():
            bounds = dict(part.stated_bounds)
            for name, domain in part.own_domains():
                fixed = name in part.fixed_names
                for path, value in flatten(prefix + name, getattr(part, name)):
                    out.append(Parameter(path, value, domain, fixed, bounds.get(name)))
        return tuple(out)

    @property
    def theta(self) -> Array:
        """The free parameters as real numbers: logarithms of positive ones, logits of bounded ones."""
        return np.array([p.theta for p in self.parameters if p.free])

    def with_theta(self, theta: Numbers) -> Self:
        """The kernel with its free parameters taken from `theta`: the way back.

        >>> from mercer import RBF
        >>> k = 2.0 * RBF(3.0)
        >>> round(k.with_theta(k.theta + 1.0).kernel.lengthscale / 3.0, 9)   # one step of the logarithm
        2.718281828
        """
        values = np.asarray(theta, dtype=float).ravel()
        free = sum(p.free for p in self.parameters)
        if len(values) != free:
            raise ShapeError(f"theta must have {free} numbers, one per free parameter; got {len(values)}.")
        if not np.all(np.isfinite(values)):
            raise ParameterError(f"theta must be finite; got {values}.")
        numbers = iter(values.tolist())
        return self.changed_everywhere(lambda _, part: part._moved(numbers))  # type: ignore[return-value]

    def _moved(self, theta: Iterator[float]) -> Self:
        """The kernel with its own free parameters taken from `theta`."""
        changes = {}
        bounds = dict(self.stated_bounds)
        for name, domain in self.own_domains():
            if name in self.fixed_names:
                continue
            box = bounds.get(name)

            def move(v: float, domain: Domain = domain, box: Bounds | None = box) -> float:
                if domain.is_free(v):
                    return domain.from_real(next(theta), box, v)
                return v

            changes[name] = _map_numbers(move, getattr(self, name))
        # `from_real` keeps to the bounds
        return self._with_fields(changes) if changes else self

    def fix(self, *names: str) -> Self:
        """The kernel with these parameters held: a full name, or a bare one for all of that name below.

        >>> from mercer import RBF
        >>> (2.0 * RBF(1.0)).fix("lengthscale")
        2.0*RBF(1.0).fix("lengthscale")
        """
        if not names:
            raise ParameterError(f"name at least one parameter to fix; this kernel has {self._names()}.")
        out = self
        for name in names:
            out = out._mark(name, lambda k, field_name: k.with_tuning(fixed=k.fixed_names | {field_name}))
        return out

    def bounded(self, **bounds: Bounds) -> Self:
        """The kernel with these parameters kept between two numbers.

        >>> from mercer import RBF
        >>> RBF(1.0).bounded(lengthscale=(0.1, 10))
        RBF(1.0).bounded(lengthscale=(0.1, 10.0))
        """
        if not bounds:
            raise ParameterError(f"name at least one parameter to bound; this kernel has {self._names()}.")
        out = self
        for name, box in bounds.items():

            def mark(k: Kernel, field_name: str, box: Bounds = box) -> Kernel:
                pair = check_bounds(
                    box, getattr(k, field_name), dict(k.own_domains())[field_name], field_name
                )
                return k.with_tuning(
                    bounds=tuple(sorted({**dict(k.stated_bounds), field_name: pair}.items()))
                )

            out = out._mark(name, mark)
        return out

    def _mark(self, name: str, mark: Mark) -> Self:
        """Apply `mark` where `name` points: exactly there if it is a full name, else to all below."""
        if not isinstance(name, str):
            raise ParameterError(
                f"parameters are named by text; got {name!r}. This kernel has {self._names()}."
            )
        owners = {p.name.split("[")[0] for p in self.parameters}
        exact = name in owners
        if not exact and name not in {o.split("__")[-1] for o in owners}:
            raise ParameterError(f"{self} has no tunable parameter {name!r}; it has {self._names()}.")

        def change(prefix: str, part: Kernel) -> Kernel:
            for own, _ in part.own_domains():
                if name == (prefix + own if exact else own):
                    return mark(part, own)
            return part

        return self.changed_everywhere(change)  # type: ignore[return-value]

    def _names(self) -> list[str]:
        return sorted({p.name.split("[")[0] for p in self.parameters})

    def with_tuning(
        self, fixed: frozenset[str] | None = None, bounds: tuple[tuple[str, Bounds], ...] | None = None
    ) -> Self:
        """A copy with other fixed names or bounds."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        for name in ("_tunable_copy", *REMEMBERED):
            out.__dict__.pop(name, None)
        object.__setattr__(out, "fixed_names", self.fixed_names if fixed is None else fixed)
        object.__setattr__(out, "stated_bounds", self.stated_bounds if bounds is None else bounds)
        return out

    def changed(self, **changes: Setting) -> Self:
        """A copy with other field values, checked like new ones; fixed names and bounds stay."""
        new = self._with_fields(changes)
        for name, box in self.stated_bounds:
            check_bounds(box, getattr(new, name), dict(self.own_domains())[name], name)
        return new

    def _with_fields(self, changes: dict[str, Setting]) -> Self:
        """The same, where the bounds are kept."""
        values = {f.name: getattr(self, f.name) for f in fields_of(self)}
        new = type(self)(**{**values, **changes})
        if not self.fixed_names and not self.stated_bounds:
            return new
        return new.with_tuning(self.fixed_names, self.stated_bounds)

    # ── the scikit-learn protocol ───────────────────────────────────────────────────────────────────────────

    def get_params(self, deep: bool = True) -> dict[str, Setting]:
        """The fields by name; with `deep`, those of the parts too, as `k1__lengthscale`."""
        kids = dict(self.children())
        out: dict[str, Setting] = {
            f.name: getattr(self, f.name) for f in fields_of(self) if not f.metadata.get("children")
        }
        out.update({k: v for k, v in kids.items() if k not in out})
        if deep:
            for prefix, child in kids.items():
                out.update({f"{prefix}__{k}": v for k, v in child.get_params().items()})
        return out

    def set_params(self, **params: Setting) -> Self:
        """The kernel with other values, by the names of `get_params`.

        Kernels are values, so this returns a new kernel. Only a copy made by `sklearn.base.clone` is changed
        in place, which is what lets `GridSearchCV` tune `kernel__lengthscale` inside any estimator.

        >>> from mercer import RBF
        >>> (2.0 * RBF(1.0)).set_params(kernel__lengthscale=3.0)
        2.0*RBF(3.0)
        """
        new = self.with_params(params)
        if self._tunable_copy and params:
            object.__setattr__(self, "__class__", type(new))
            self.__dict__.clear()
            self.__dict__.update(new.__dict__, _tunable_copy=True)
            return self
        return new

    def with_params(self, params: dict[str, Setting]) -> Self:
        """A new kernel with other values, by the names of `get_params`; this one stays as it is."""
        kids = dict(self.children())
        known = self.get_params(deep=False)
        changes: dict[str, Setting] = {}
        nested: dict[str, dict[str, Setting]] = {}
        for key, value in params.items():
            head, _, rest = key.partition("__")
            if head not in known or (rest and head not in kids):
                raise ParameterError(
                    f"Invalid parameter {key!r} for kernel {self}. Valid parameters are: "
                    f"{sorted(self.get_params())}."
                )
            if rest:
                nested.setdefault(head, {})[rest] = value
            elif head in kids:
                kids[head] = doors.reading()(value)
            else:
                changes[head] = value
        out = self.changed(**changes) if changes else self
        for head, inner in nested.items():
            kids[head] = kids[head].with_params(inner)
        if kids and list(kids.values()) != [child for _, child in out.children()]:
            out = out.with_children(list(kids.values()))  # type: ignore[assignment]
        return out

    def __sklearn_clone__(self) -> Self:
        out = self.with_tuning()
        object.__setattr__(out, "_tunable_copy", True)
        return out

    # ── open lengthscales ───────────────────────────────────────────────────────────────────────────────────

    @property
    def is_open(self) -> bool:
        """Whether a part leaves a lengthscale to the data, as `RBF()` does."""
        return any(part.leaves_open() for part in self.walk())

    def leaves_open(self) -> bool:
        """Whether the kernel itself, and not a part of it, leaves something to the data."""
        return bool(self._open_names())

    def _open_names(self) -> list[str]:
        return [name for name, _ in self.own_domains() if isinstance(getattr(self, name), Open)]

    def closed(self, lengthscale: float) -> Self:
        """The kernel with one number in place of every open lengthscale.

        >>> from mercer import RBF
        >>> (2.0 * RBF()).closed(3.0)
        2.0*RBF(3.0)
        """

        def close(_: str, part: Kernel) -> Kernel:
            names = part._open_names()
            if names:
                return part.changed(**dict.fromkeys(names, lengthscale))
            return part

        return self.changed_everywhere(close)  # type: ignore[return-value]


# ── helpers ─────────────────────────────────────────────────────────────────────────────────────────────────


def flatten(name: str, value: Setting) -> Iterator[tuple[str, float]]:
    """Every number inside a parameter, with the name it has there."""
    if isinstance(value, tuple):
        for i, v in enumerate(value):
            yield from flatten(f"{name}[{i}]", v)
    else:
        yield name, value


def _map_numbers(function: Callable[[float], float], value: Setting) -> Setting:
    if isinstance(value, tuple):
        return tuple(_map_numbers(function, v) for v in value)
    return function(value)


def hashable(value: Setting) -> Hashable:
    """A parameter as something that equality and hashes can compare."""
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    if isinstance(value, tuple):
        return tuple(hashable(v) for v in value)
    found: Hashable = value
    return found
