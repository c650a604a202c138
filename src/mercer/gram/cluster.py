"""Other machines: the context under which Gram operators are computed by the workers of a Dask cluster.

    with mercer.cluster(client):
        KernelRidge("RBF(1.0)", solver="cg").fit(X, y)

Rows are sent to the workers once, cut by their number alone (`lines`); after that only vectors travel. A task
is a pure function of what it is sent, so that it may run twice, or again on another worker; what tasks
return is added in the order of their numbers, never of their arrival. So the bits of an answer depend neither
on the number of workers nor on which of them were lost on the way.

The context belongs to the running code (a context variable), as the clock does. When it ends, nothing of it
is left on the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import ClusterError, ParameterError
from mercer.gram.lines import Lines
from mercer.hosts import is_loopback
from mercer.typing import Integers

# Those of Dask, which has few types.
Client: TypeAlias = Any
Future: TypeAlias = Any
T = TypeVar("T")

# Ways to talk to a scheduler of which it asks for certificates.
ENCRYPTED = ("tls", "wss")
# Settings of Dask for workers of our own. By default each samples what it is doing every 10 ms, for a
# dashboard, looks at its event loop every 20 ms, and gives memory back to the system after every array.
QUIET_WORKERS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 30,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 28,
}
# How often rows are sent again after the only copy of some was lost with its worker.
ATTEMPTS = 4
# Sets of rows that are kept on the workers at one time: those of fit, and a part of them.
MOST_SPREAD = 3

# Tasks of Dask for each thread of a worker in one question: more of them cost, fewer leave idle who is quick.
BUNDLES = 3
# How many sums are added by one task, and blocks that are sent at one time.
FAN = 8
# Rows from which what each task gets goes to the workers by itself, and not through the scheduler's graph.
MANY_ROWS = 20_000

_active: ContextVar[Cluster | None] = ContextVar("the cluster that computes", default=None)


def active() -> Cluster | None:
    """The cluster that computes Gram matrices here; None where this process does."""
    return _active.get()


@contextmanager
def here() -> Iterator[None]:
    """Let this process compute what runs inside, also within `mercer.cluster`: searches on a few rows."""
    token = _active.set(None)
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def cluster(client: Client | str, *, insecure: bool = False) -> Iterator[Cluster]:
    """Let the workers of a Dask cluster compute the Gram operators of every machine that is fitted inside.

    `client` is a `distributed.Client`, the address of a scheduler, or "local:2" for two workers on this
    machine, which end with the block. Whoever can reach a Dask scheduler without TLS can run any code on its
    workers, so one that does not listen on the loopback interface alone is refused; `insecure=True` insists.

    >>> from mercer import KernelRidge, cluster
    >>> X = np.linspace(0, 1, 1200)[:, None]
    >>> with cluster("local:1"):                                           # doctest: +SKIP
    ...     KernelRidge("RBF(0.3)", solver="cg").fit(X, np.sin(6 * X[:, 0]))
    """
    with ExitStack() as stack:
        opened = _opened(client, stack) if isinstance(client, str) else client
        if not insecure:
            refuse_strangers(_addresses(opened))
        found = Cluster(opened)
        token = _active.set(found)
        try:
            yield found
        finally:
            _active.reset(token)
            found.close()


def _opened(place: str, stack: ExitStack) -> Client:
    """A client of the scheduler at an address, or of workers that are started here."""
    distributed = needed()
    kind, _, count = place.partition(":")
    if kind != "local":
        try:
            return stack.enter_context(distributed.Client(place, timeout=10))
        except OSError as error:
            raise ClusterError(
                f"no Dask scheduler answers at {place!r}: {error}. Give the address that the scheduler "
                'printed, such as tcp://127.0.0.1:8786, or "local:2" for two workers here.'
            ) from error
        except TypeError as error:
            if urlsplit(place).scheme not in ENCRYPTED:
                raise
            raise ClusterError(
                f"{place} asks for certificates, and none were given. Pass a client that has them, "
                "mercer.cluster(distributed.Client(address, security=Security(...))), or name them in the "
                "configuration of Dask (distributed.comm.tls)."
            ) from error
    if not count.isdigit() or int(count) < 1:
        raise ParameterError(f'a local cluster is written "local:2" for two workers; got {place!r}.')
    return stack.enter_context(distributed.Client(stack.enter_context(local_workers(int(count)))))


def local_workers(count: int) -> Any:
    """A `LocalCluster` of so many workers with one thread each, on the loopback interface.

    They share their cores with the work, so Dask looks at itself less often than it does by default.
    """
    distributed = needed()
    import dask

    with dask.config.set(QUIET_WORKERS):
        return distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        )


def needed() -> Any:
    """The library `distributed`, or what to install."""
    try:
        import distributed
    except ImportError as error:
        raise ClusterError("a cluster needs Dask: pip install 'mercer[dask]'.") from error
    return distributed


def _addresses(client: Client) -> list[str]:
    known = client.scheduler_info(n_workers=-1)
    return [str(known["address"]), *map(str, known["workers"])]


def refuse_strangers(addresses: Sequence[str]) -> None:
    """Refuse schedulers and workers that others on the network can talk to without a certificate.

    >>> refuse_strangers(["tls://10.0.0.1:8786", "tcp://127.0.0.1:8786", "inproc://10.0.0.1/7/1"])
    >>> refuse_strangers(["ucx://10.0.0.1:8786"])
    Traceback (most recent call last):
        ...
    mercer.errors.ClusterError: ucx://10.0.0.1:8786 is open to whoever can reach it: ...
    """
    for address in addresses:
        parts = urlsplit(address)
        # UCX is fast and not encrypted: it is as open as TCP
        if parts.scheme in (*ENCRYPTED, "inproc") or is_loopback(parts.hostname or ""):
            continue
        raise ClusterError(
            f"{address} is open to whoever can reach it: a Dask scheduler without TLS runs any code that it "
            "is sent. Start it with certificates (tls://, distributed.security.Security), or on the "
            "loopback interface, host='127.0.0.1'; or insist with mercer.cluster(client, insecure=True)."
        )


class Part:
    """The rows of some blocks, as a task finds them; `blocks` are their numbers, in order.

    What was read of the rows for the last kernels is kept beside them.
    """

    KEPT = 2

    def __init__(self, rows: Rows, lines: Lines, blocks: Sequence[int]) -> None:
        self.rows = rows
        self.lines = lines
        self.blocks = list(blocks)
        self.known: dict[object, Any] = {}

    def __sizeof__(self) -> int:
        """By this Dask knows what it would cost to move a part, and lets the work come to it."""
        data = self.rows.data
        return int(data.data.nbytes if sparse.issparse(data) else getattr(data, "nbytes", 64 * len(data)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "known": {}}

    def slices(self, blocks: Sequence[int]) -> list[slice]:
        """Where some blocks are in this part."""
        ends = np.cumsum([0, *np.diff(self.lines.ends)[self.blocks]]).tolist()
        known = dict(zip(self.blocks, pairwise(ends), strict=True))
        return [slice(*known[b]) for b in blocks]

    def places(self, blocks: Sequence[int]) -> Integers:
        """Where the rows of some blocks are in this part."""
        return np.concatenate([np.arange(each.start, each.stop) for each in self.slices(blocks)])

    def remembered(self, key: object, make: Callable[[], T]) -> T:
        """What was made of this part under this key; the last few are kept."""
        known = self.known.get(key)
        if known is None:
            known = make()
            self.known[key] = known
            for oldest in list(self.known)[: -self.KEPT]:
                self.known.pop(oldest, None)
        found: T = known
        return found


def joined(lines: Lines, blocks: Sequence[int], parts: Sequence[Rows]) -> Part:
    """One part of the rows of several blocks: a task."""
    first = parts[0]
    data: Any
    if sparse.issparse(first.data):
        data = sparse.vstack([part.data for part in parts], format="csr")
    elif isinstance(first.data, np.ndarray):
        data = np.concatenate([part.data for part in parts])
    else:
        data = [thing for part in parts for thing in part.data]
    return Part(Rows(data, first.name, first.names), lines, blocks)


def added(sums: Sequence[list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Several tuples of sums added up from left to right, each and the answer as a list of one: a task."""
    (total,) = sums[0]
    for (more,) in sums[1:]:
        total = tuple(a + b for a, b in zip(total, more, strict=True))
    return [total]


def shares(threads: dict[str, int], count: int) -> list[tuple[str, slice]]:
    """So many tasks in runs, one for each worker, by the number of its threads.

    >>> shares({"a": 1, "b": 3}, 8)
    [('a', slice(0, 2, None)), ('b', slice(2, 8, None))]
    """
    ends = np.cumsum([0, *threads.values()]) * count // max(sum(threads.values()), 1)
    runs = zip(threads, pairwise(ends.tolist()), strict=True)
    return [(worker, slice(start, stop)) for worker, (start, stop) in runs if stop > start]


def near(worker: str) -> dict[str, Any]:
    """Where a task is to run if that worker is still there; anywhere if none is named."""
    return {"workers": [worker], "allow_other_workers": True} if worker else {}


def bundled(
    function: Callable[..., T], pieces: Sequence[Any], tasks: Sequence[Any], each: Sequence[Any], *given: Any
) -> list[T]:
    """Several tasks as one, each with its own answer: what Dask does for a task is done once for all."""
    if not each:
        return [function(piece, task, *given) for piece, task in zip(pieces, tasks, strict=True)]
    return [function(p, t, *given, own) for p, t, own in zip(pieces, tasks, each, strict=True)]


class Spread:
    """n rows on the workers, in the blocks of `lines`; and for each task the part of them that it reads.

    `make` puts the blocks there, again if they were lost. `whose` is what they are found by.
    """

    def __init__(self, client: Client, n: int, whose: object, make: Callable[[Lines], list[Future]]) -> None:
        self.client = client
        self.whose = whose
        self.lines = Lines.of(n)
        self.make = make
        self.send()

    def send(self) -> None:
        """Put the blocks on the workers."""
        self.blocks = self.make(self.lines)
        self.threads: dict[str, int] = self.client.nthreads()
        self._parts: list[Future] | None = None
        self._places: dict[bool, dict[str, list[int]]] = {}

    @property
    def parts(self) -> list[Future]:
        """What each task of the lines reads, put together by the workers when it is first asked for."""
        if self._parts is None:
            read = [self.lines.read(task) for task in self.lines.tasks]
            chosen = [[self.blocks[b] for b in numbers] for numbers in read]
            self._parts = []
            # Where there are no workers, as after the last one was lost, Dask waits for the next.
            for worker, mine in shares(self.threads, len(read)) or [("", slice(None))]:
                count = len(read[mine])
                self._parts += self.client.map(
                    joined, [self.lines] * count, read[mine], chosen[mine], pure=False, **near(worker)
                )
        return self._parts

    def places(self, blocks: bool) -> dict[str, list[int]]:
        """Which worker has which blocks, or parts: the work comes to them, and they stay where they are.

        Left to itself Dask moves rows to whoever is idle for a moment. A worker that is lost meanwhile is no
        harm: then any other will do.
        """
        if blocks not in self._places:
            pieces = self.blocks if blocks else self.parts
            needed().wait(pieces)
            owners = self.client.who_has(pieces)
            found: dict[str, list[int]] = {}
            for i, piece in enumerate(pieces):
                owner = sorted(owners.get(piece.key) or owners.get(str(piece.key)) or [""])[0]
                found.setdefault(owner, []).append(i)
            self._places[blocks] = found
        return self._places[blocks]

    def drop(self) -> None:
        """Let the workers forget these rows."""
        for future in [*(self._parts or []), *self.blocks]:
            future.release()
        self._parts = None
        self.blocks = []


class Cluster:
    """The workers of a Dask cluster, as Gram operators and sums over rows use them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.is_open = True
        # Workers of this machine answer us directly; others may be out of reach for all but the scheduler.
        mine = all(is_loopback(urlsplit(address).hostname or "") for address in _addresses(client))
        self.direct = True if mine else None
        self.spreads: list[Spread] = []

    @property
    def workers(self) -> int:
        """How many workers there are now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def spread(self, rows: Rows) -> Spread:
        """These rows on the workers: sent once, and found again as long as they are among the last few."""

        def scattered(lines: Lines) -> list[Future]:
            every = np.arange(len(rows))
            found: list[Future] = []
            # Some blocks at a time, so that a memory-mapped file is never here as a whole.
            for start in range(0, lines.blocks, FAN):
                some = range(start, min(start + FAN, lines.blocks))
                found += self.client.scatter([rows.rows(every[lines.rows(b)]) for b in some], hash=False)
            return found

        return self.known(rows.data) or self.keep(Spread(self.client, len(rows), rows.data, scattered))

    def known(self, whose: object) -> Spread | None:
        """Rows that are on the workers already."""
        return next((spread for spread in self.spreads if spread.whose is whose), None)

    def keep(self, spread: Spread) -> Spread:
        self.spreads = [*self.spreads, spread][-MOST_SPREAD:]
        return spread

    def run(
        self,
        spread: Spread,
        function: Callable[..., T],
        asked: object,
        *arrays: object,
        each: Sequence[object] | None = None,
        blocks: bool = False,
        total: bool = False,
    ) -> list[T]:
        """function(part, task, asked, *arrays) for every task of the lines, in their order.

        With `blocks` it is function(rows, number, asked, *arrays) for every block. `asked` is small and goes
        with the tasks; `arrays` go to every worker once. `each`, if given, has one more argument for each
        task. With `total` the workers add up what the tasks return, in their order, and the list has the sum
        alone. What was lost with a worker and cannot be made again there is sent again.
        """
        lost: BaseException | None = None
        for _ in range(ATTEMPTS):
            try:
                return self._run(spread, function, (asked, *arrays), each, blocks, total)
            except self._losses as error:
                lost = error
                spread.send()
        raise ClusterError(
            f"workers were lost {ATTEMPTS} times in a row ({type(lost).__name__}: {lost}). Look at their "
            "logs: most often they have too little memory for their share of the rows."
        ) from lost

    def _run(
        self,
        spread: Spread,
        function: Callable[..., T],
        given: tuple[object, ...],
        each: Sequence[object] | None,
        blocks: bool,
        total: bool,
    ) -> list[T]:
        asked, *arrays = given
        pieces: list[Future] = spread.blocks if blocks else spread.parts
        tasks: Sequence[object] = range(len(pieces)) if blocks else spread.lines.tasks
        sent = self.client.scatter(arrays, hash=False, broadcast=True) if arrays else []
        if each is not None and spread.lines.n >= MANY_ROWS:
            each = self.client.scatter(list(each), hash=False)
        numbers: list[list[int]] = []
        futures: list[Future] = []
        for worker, mine in spread.places(blocks).items():
            # what is added up by the workers has to be found one by one
            size = 1 if total else -(-len(mine) // (BUNDLES * spread.threads.get(worker, 1)))
            runs = [mine[k : k + size] for k in range(0, len(mine), size)]
            own = [[each[i] for i in run] if each is not None else [] for run in runs]
            columns = [[[column[i] for i in run] for run in runs] for column in (pieces, tasks)]
            shared = [[value] * len(runs) for value in (asked, *sent)]
            futures += self.client.map(
                bundled, [function] * len(runs), *columns, own, *shared, pure=False, **near(worker)
            )
            numbers += runs
        return self._collected(futures, numbers, total)

    def _collected(self, futures: list[Future], numbers: list[list[int]], total: bool) -> list[Any]:
        """What the tasks with these numbers found, in their order; or the sum of it."""
        found: list[Any] | None = None
        try:
            if total:
                futures = [futures[k] for k in np.argsort([run[0] for run in numbers])]
            while total and len(futures) > 1:
                groups = [futures[i : i + FAN] for i in range(0, len(futures), FAN)]
                futures = self.client.map(added, groups, pure=False)
            found = self.client.gather(futures, direct=self.direct)
        finally:
            if found is None:
                # by Ctrl-C, or because some of it was lost: the rest is not wanted any more
                self.client.cancel(futures, force=True)
        if total:
            (whole,) = found
            return list(whole)
        out: list[Any] = [None] * sum(map(len, numbers))
        for run, answers in zip(numbers, found, strict=True):
            for i, answer in zip(run, answers, strict=True):
                out[i] = answer
        return out

    @property
    def _losses(self) -> tuple[type[BaseException], ...]:
        """What is raised where data were lost with the worker that had them."""
        from concurrent.futures import CancelledError

        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker, NoValidWorkerError

        return (CancelledError, FutureCancelledError, KilledWorker, NoValidWorkerError)

    def close(self) -> None:
        """Forget all that was sent; operators that are kept compute here from now on."""
        self.is_open = False
        for spread in self.spreads:
            spread.drop()
        self.spreads = []
