"""Settings of the tests: hypothesis is derandomised in CI, so that a red run can be repeated."""

import os

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=12, suppress_health_check=_QUIET
)
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("MERCER_HYPOTHESIS", "ci"))
