"""The cluster of two workers that most tests of this folder share."""

import pytest

pytest.importorskip("distributed", reason="the extra mercer[dask] is not installed")

from clusters import client  # noqa: F401
