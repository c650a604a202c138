"""A damaged file is refused, or is a model that works: never a crash, a hang or a huge allocation.

    MERCER_FUZZ=10000 MERCER_SEED=1 python -m pytest tests/files/test_damaged_files.py     (make fuzz)

tries so many files; without it some hundreds are tried.
"""

from __future__ import annotations

import os
import random
import resource
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import mercer
from estimators_under_test import NEW, SUBJECTS, X
from files.damage import damaged
from files.sameness import same
from mercer.errors import MercerError, ModelFileError
from mercer.files.load import loads
from mercer.files.trial import METHODS

TRIES = int(os.environ.get("MERCER_FUZZ", "440"))
SEED = int(os.environ.get("MERCER_SEED", "1"))
# More address space than this process has, for each load.
ROOM = 1 << 30

THINGS = ["kernel", "nerve", "karma", "ferret", "marker", "letter"] * 4


def quietly(act, *args, **options):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return act(*args, **options)


def sound_models():
    """The machines of the table, and some with rows that are no dense vectors."""
    out = {s.name: (quietly(s.fit), NEW) for s in SUBJECTS}
    y = np.arange(24) % 2
    out["of strings"] = mercer.SVC("Spectrum(2)").fit(THINGS, y), THINGS[:2]
    out["in features of strings"] = (
        mercer.KernelRidge("Spectrum(2)", solver="primal").fit(THINGS, X[:, 0]),
        THINGS[:2],
    )
    from scipy import sparse

    out["of sparse rows"] = mercer.SVR("RBF(1.5)").fit(sparse.csr_array(X), X[:, 0]), sparse.csr_array(NEW)
    out["compact"] = out["GaussianProcessRegressor"]
    out["compact classes"] = out["GaussianProcessClassifier"]
    table = pd.DataFrame({"size": X[:, 0], "kind": ["oak", "ash", None] * (len(X) // 3)})
    kernel = '1.0*RBF().of(Filled()).on("size") + 1.0*Categorical().on("kind")'
    for machine in ("gp", "landmarks"):
        options = {"kernel": kernel, "machine": machine, "verbose": 0}
        out[f"compact numbers of a table, {machine}"] = (
            quietly(mercer.fit, table, X[:, 1], **options),
            table[:3],
        )
        labels = np.where(np.arange(len(X)) % 2, "yes", "no")
        out[f"classes of a table, {machine}"] = quietly(mercer.fit, table, labels, **options), table[:3]
    out["twin"] = quietly(mercer.sklearn.SVC().fit, X, y), NEW
    out["twin of a process"] = quietly(mercer.sklearn.GaussianProcessClassifier().fit, X, y), NEW
    return out


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The bytes of sound files by name, with rows to ask their models about."""
    folder = tmp_path_factory.mktemp("sound")
    out = {}
    for name, (model, rows) in sound_models().items():
        saved = mercer.save(model, folder / "model.mercer", force=True, compact=name.startswith("compact"))
        out[name] = saved.path.read_bytes(), rows
    return out


@pytest.fixture(autouse=True)
def little_room():
    """A limit on the memory of this process: what is more is a MemoryError, which no damage may lead to."""
    with open("/proc/self/statm", encoding="ascii") as about:
        used = int(about.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def outcome(data: bytes, rows) -> str:
    """What becomes of a damaged file; any other exception than ours is one that the test shows."""
    try:
        model = quietly(loads, data)
    except ModelFileError:
        return "refused"
    for name in METHODS:
        try:
            quietly(getattr(model, name, lambda rows: None), rows)
        except MercerError:
            return "loaded, and refuses rows"
    return "loaded"


@pytest.mark.parametrize("part", range(8))
def test_a_damaged_file_is_refused_or_is_a_model_that_works(files, part):
    counts: Counter[str] = Counter()
    names = sorted(files)
    for i in range(part, TRIES, 8):
        rng = random.Random(SEED * 1_000_003 + i)
        name = rng.choice(names)
        data, rows = files[name]
        what, broken = damaged(rng, data)
        try:
            counts[outcome(broken, rows)] += 1
        except BaseException as error:
            raise AssertionError(f"try {i} with seed {SEED}: {what} of {name}") from error
    print(dict(counts))
    assert counts["refused"] > 0


def test_a_flipped_bit_is_noticed(files):
    """Wherever it is: what loads at all is the model that was saved."""
    data, _ = files["KernelRidge"]
    wanted = loads(data)
    rng = random.Random(SEED)
    for _ in range(200):
        broken = bytearray(data)
        broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            found = loads(bytes(broken))
        except ModelFileError:
            continue
        same(found, wanted)


def test_an_untouched_file_loads(files):
    for data, rows in files.values():
        assert outcome(data, rows) == "loaded"
