"""Settings of the tests: hypothesis is derandomised in CI, so that a red run can be repeated;
every instruction set.
"""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from mercer import _core

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=12, suppress_health_check=_QUIET
)
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("MERCER_HYPOTHESIS", "ci"))

# A run in the background of a shell ignores Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# One instruction set for a whole run (`make processors`); without it the core takes the best there is.
if "MERCER_TEST_ISA" in os.environ and not _core.force_isa(os.environ["MERCER_TEST_ISA"]):
    raise pytest.UsageError(
        f"this CPU has no {os.environ['MERCER_TEST_ISA']}, which MERCER_TEST_ISA asks for."
    )


@pytest.fixture(autouse=True)
def signals():
    """A test that leaves signals changed kills a later one: a closed socket is no end of the process."""
    yield
    if hasattr(signal, "SIGPIPE"):
        left = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        assert left is signal.SIG_IGN, "the test has changed what SIGPIPE does, and must put it back"


@pytest.fixture(params=["avx512", "avx2", "baseline"])
def isa(request):
    """Every instruction set of this CPU in turn."""
    before = _core.instruction_set()
    if not _core.force_isa(request.param):
        pytest.skip(f"no {request.param} here")
    yield request.param
    _core.force_isa(before)


@pytest.fixture(scope="module")
def threads_for_all():
    """Small work has the threads that it is asked to have, which it would lose time by."""
    _core.force_threads(True)
    yield
    _core.force_threads(False)


def pytest_collection_modifyitems(items):
    """The name of a test is the same in every process: parallel runs compare the names,
    and a red one can be repeated.
    """
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"the name of a test holds the address of an object: {item.nodeid}")
