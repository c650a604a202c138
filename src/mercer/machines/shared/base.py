"""What all machines share: a kernel as a parameter, by object or by text, tunable as `kernel__…`.

`resolve` says what `kernel=` means on given rows: open lengthscales are closed by their spread.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.arrays import Rows, column_names, read_rows
from mercer.errors import ClusterError, InputError, MercerError, NotFiniteError, ParameterError, ShapeError
from mercer.gram.cluster import active
from mercer.gram.elsewhere import gathered, is_collection, on_workers
from mercer.gram.functions import Duels, Functions
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels.base import Kernel
from mercer.kernels.text import parse
from mercer.machines.shared.hints import hinting, refuse_unknown
from mercer.machines.shared.kept import READ, ReadRows
from mercer.machines.shared.parameters import Declarations, check_parameters, constructor, filled
from mercer.machines.shared.publish import Published
from mercer.params import Open
from mercer.solve.multipliers import Multipliers
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Seed, Setting, Table, Targets, Weights
from mercer.vectors import unmasked

if TYPE_CHECKING:
    from mercer.theory.claims import Examination


class KernelEstimator(Published, BaseEstimator):
    """An estimator with a `kernel`: an object, its text, or "precomputed".

    `get_params` and `set_params` reach into the kernel also when it is text; since kernels are values,
    setting `kernel__lengthscale` replaces the whole kernel.
    """

    kernel: Setting
    kernel_: Kernel | str
    on_cluster: ClassVar[bool] = False
    """Whether it learns under `mercer.cluster`, by operators that the workers compute."""
    sums_features: ClassVar[bool] = False
    """Whether it learns from the features of `approximation=` by sums over rows, which the workers make."""
    parameters: ClassVar[Declarations] = {}
    """What this class declares of its parameters beside, or other than, `shared.parameters.TABLE`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = filled(cls)
        if "__init__" in vars(cls):
            cls.__init__ = hinting(cls.__init__)  # type: ignore[method-assign]

    def _check_parameters(self) -> None:
        """Refuse parameters outside their domains; a machine adds what several of them say together."""
        check_parameters(self)
        if active() is not None:
            self._require_cluster_support()

    def _require_cluster_support(self) -> None:
        """Refuse to learn under `mercer.cluster` what only this process could learn."""
        name = type(self).__name__
        if not self.on_cluster:
            raise ClusterError(
                f"{name} does not learn on a cluster: it needs more of K than products, and would do all of "
                "the work here. Fit it outside mercer.cluster, or use one of the machines of docs/cluster.md."
            )
        if getattr(self, "approximation", None) is not None and not self.sums_features:
            raise ClusterError(
                f"{name}(approximation=...) would make the features of all rows here. On a cluster "
                "KernelRidge(approximation=...), FalkonRegressor and FalkonClassifier learn from features "
                "and landmarks, with sums that the workers make."
            )

    def get_params(self, deep: bool = True) -> dict[str, Setting]:
        """The parameters by name; with `deep`, those of the kernel too, as `kernel__lengthscale`."""
        out: dict[str, Setting] = super().get_params(deep=False)
        if deep:
            try:
                kernel = as_machine_kernel(self.kernel)
            except MercerError:
                return out
            if kernel is not None:
                out.update({f"kernel__{name}": value for name, value in kernel.get_params().items()})
            inner = getattr(self, "approximation", None)
            if isinstance(inner, BaseEstimator):
                out.update({f"approximation__{name}": value for name, value in inner.get_params().items()})
        return out

    def set_params(self, **params: Setting) -> Self:
        """Set parameters by the names of `get_params`; `kernel` itself goes first."""
        nested = {name: params.pop(name) for name in list(params) if name.startswith("kernel__")}
        kind: type = type(self)
        refuse_unknown(kind.__name__, params, constructor(kind))
        super().set_params(**params)
        if nested:
            kernel = as_machine_kernel(self.kernel)
            if kernel is None:
                raise ParameterError(
                    f"Invalid parameter {next(iter(nested))!r}: a precomputed kernel has no parameters."
                )
            self.kernel = kernel.with_params({name.removeprefix("kernel__"): v for name, v in nested.items()})
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == PRECOMPUTED
        return tags

    def require_fit(self, attribute: str) -> None:
        """Refuse a machine that is not fitted, in scikit-learn's words, which take long to be asked for."""
        if attribute not in self.__dict__:
            check_is_fitted(self, attribute)

    def check_rows(self, X: Table, *, reset: bool) -> Matrix:
        """X as float64 numbers, dense or CSR; its columns are remembered (`reset`) or must be those of fit.

        Where the kernel takes things that are no numbers, they stay what they are, as an array of objects.
        Things without columns have no `n_features_in_`, as text has none in scikit-learn's own estimators.
        """
        given = X
        X = gathered(X)
        A = read_rows(X, self._takes_things())
        cluster = active()
        if is_collection(given) and cluster is not None and A.dtype == np.float64:
            # A machine that is made of its rows keeps them here; the workers have theirs already.
            on_workers(cluster, given, A)
        if reset and A.ndim == 1:
            # What a fit before this one remembered of its columns.
            self.__dict__.pop("n_features_in_", None)
        names = column_names(X)
        if not reset and names is not None and self._reads_by_name():
            return self._in_order_of_fit(A, names)
        if not self._known_width(X, A, reset):
            validate_data(self, X if column_names(X) is not None else A, reset=reset, skip_check_array=True)
        return A

    def _reads_by_name(self) -> bool:
        """Whether the fitted kernel looks at columns by their names alone, so that their order is free."""
        kernel = self.__dict__.get("kernel_")
        if "feature_names_in_" not in self.__dict__ or not isinstance(kernel, Kernel):
            return False
        read = kernel.columns_read()
        return read is not None and all(isinstance(column, str) for column in read)

    def _in_order_of_fit(self, A: Matrix, names: list[str]) -> Matrix:
        """The columns of a table in the order of fit; those that the kernel does not read may be missing."""
        wanted = [str(name) for name in self.feature_names_in_]
        if names == wanted:
            return A
        assert isinstance(self.kernel_, Kernel)
        missing = sorted(str(c) for c in (self.kernel_.columns_read() or ()) if c not in names)
        if missing:
            raise InputError(
                f"X lacks the columns {missing}, which the kernel reads; it has {names}. Columns may stand "
                "in any order, by the names that they had in fit."
            )
        out = np.full((A.shape[0], len(wanted)), None, dtype=object)
        for j, name in enumerate(wanted):
            if name in names:
                out[:, j] = A[:, names.index(name)]
        return out

    def _known_width(self, X: Any, A: Any, reset: bool) -> bool:
        """Whether a plain array has the columns it should have, none of them named; `reset` remembers them.

        This is what `validate_data` comes to for it, which asks first whether it is some kind of data frame.
        """
        plain = type(X) is np.ndarray and A.ndim == 2 and "feature_names_in_" not in self.__dict__
        if plain and reset:
            self.n_features_in_ = A.shape[1]
        return plain and self.__dict__.get("n_features_in_") == A.shape[1]

    def _takes_things(self) -> bool:
        """Whether the kernel can be asked of things that are no vectors: strings, graphs, mixed tables."""
        kernel = as_machine_kernel(self.kernel)
        return kernel is not None and not kernel.reads_numbers()

    def _functions(self) -> Functions:
        """The functions f = Σ c_j k(x_j, ·) + b that the fitted machine comes to; here: it has none."""
        raise ParameterError(
            f"{type(self).__name__} has no function f = Σ c_j k(x_j, ·) + b to speak of: it maps rows to "
            "features. Ask the machine that is fitted on those features."
        )

    def named_multipliers(self, X: Table, y: Targets, sample_weight: Weights) -> list[Multipliers]:
        """Multipliers and slacks of each problem that was solved, from the training data; here: none was."""
        raise ParameterError(
            f"{type(self).__name__} minimises no convex loss of labelled rows under a norm, so there are no "
            "multipliers α, slacks ξ or bounds C to measure. What it has is in theory.function_of(model)."
        )

    def bounded_support(self) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
        """Rows of fit with 0 < α < C and with α = C, for each function; nothing without such multipliers."""
        return (), ()

    def named_rows(self) -> dict[str, Integers]:
        """Rows of fit that stand out, by what they are called; nothing where f is made of all rows alike."""
        return {}

    def _examine(self, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
        """Hold what was published against the training data: for `mercer.verify`."""
        from mercer.machines.shared.examine import examine_machine

        check_is_fitted(self)
        examine_machine(self, exam, X, y, sample_weight)

    def as_rows(self, A: Matrix, name: str = "X") -> Rows:
        """Checked numbers as the rows that kernels take, with the column names of fit."""
        names = getattr(self, "feature_names_in_", None)
        return Rows(A, name, None if names is None else [str(n) for n in names])

    def kept(self, A: Matrix, name: str = "rows of fit") -> Rows:
        """Rows that the machine keeps as an attribute, with what was read since the fit; or others."""
        read: ReadRows = self.__dict__.setdefault(READ, ReadRows())
        rows = read.known(A)
        if rows is None:
            rows = self.as_rows(A, name)
            if any(value is A for value in list(self.__dict__.values())):
                read.keep(rows)
        return rows


def duels_of(classes: Sized) -> Duels:
    """Two classes are told apart by one function, positive for the second; more by one function each."""
    if len(classes) == 2:
        return ((1, 0),)
    return tuple((c, None) for c in range(len(classes)))


def as_machine_kernel(value: Kernel | str, name: str = "kernel") -> Kernel | None:
    """The kernel that the parameter `name` stands for; None for "precomputed"."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        return None if value == PRECOMPUTED else parse(value)
    raise ParameterError(
        f"{name} must be a kernel, its text such as 'RBF(2.0)', or 'precomputed'; got {value!r} "
        f"({type(value).__name__}). Any function of two points becomes a kernel by mercer.Custom(function)."
    )


def resolve(
    kernel: Kernel | str, rows: Rows | Matrix, weight: Array | None = None, *, name: str = "kernel"
) -> Kernel | None:
    """The kernel for these rows, with open lengthscales closed by their spread; None for "precomputed".

    Errors call the parameter `name`.

    >>> resolve("RBF()", np.array([[0.5, 0.0], [2.5, 2000.0]]))
    RBF([1.0, 1000.0])
    """
    found = as_machine_kernel(kernel, name)
    if found is None:
        return None
    return found.resolved(rows, sample_weight=weight)


def is_open(kernel: Kernel | str) -> bool:
    """Whether a kernel or its text leaves a lengthscale to the data."""
    found = as_machine_kernel(kernel)
    return found is not None and found.is_open


def wants_each(kernel: Kernel | str) -> bool:
    """Whether a lengthscale is left open for each column of its own, as by `RBF(ard=True)`."""
    found = as_machine_kernel(kernel)
    return found is not None and any(v is Open.EACH for v in found.get_params().values())


def require_rows_of_fit(n: int, fitted: int) -> None:
    """Refuse data that are not those of the fit, as far as their number shows it."""
    if n != fitted:
        raise ShapeError(f"X has {n} rows; the model was fitted on {fitted}. Pass the training data.")


def check_weights(sample_weight: Weights, n: int) -> Array:
    """One weight ≥ 0 for each row; ones where none are given."""
    if sample_weight is None:
        return np.ones(n)
    try:
        w = np.asarray(unmasked(sample_weight, "sample_weight"))
        if w.dtype.kind in "cmM":
            raise TypeError(
                f"{w.dtype} given{' (Complex data not supported)' if w.dtype.kind == 'c' else ''}"
            )
        w = w.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must hold numbers, one for each row: {error}.") from error
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ShapeError(
            f"sample_weight.shape == {w.shape}, expected {(n,)}: one weight for each row, with one dimension."
        )
    for bad, word in ((np.isnan(w), "NaN"), (np.isinf(w), "infinity"), (w < 0, "a negative weight")):
        if bad.any():
            raise NotFiniteError(
                f"sample_weight has {word} at index {int(np.argmax(bad))}; weights must be finite and >= 0 "
                "(0 removes a row, 2 counts it twice)."
            )
    if not np.any(w > 0):
        raise InputError(
            "sample_weight: all weights are zero, so no rows are left. Give some row a positive weight."
        )
    return w


def generator(random_state: Seed) -> np.random.Generator:
    """A generator from what scikit-learn calls random_state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)
