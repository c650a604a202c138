"""The plain kernel of a table, one Gaussian of all columns, tuned as a Gaussian process alone would tune it.

The tuning of the search is not meant for it: it ends where a number promises little, and of thirty
lengthscales, most of columns that mean nothing, each promises little while all of them together are worth
tens of nats; and its steps may lead to a lower peak. On 300 rows of pumadyn32nm it ended 7 nats below the
process, and from other lengthscales 41. So the process itself tunes it: lengthscales together from three
lengths, then each for itself to the end, and from random starts. Whatever the search prefers to this kernel
is preferred to what a user would have had without a search.
"""

from __future__ import annotations

import warnings

import numpy as np

from mercer.errors import MercerError
from mercer.gram.of_kernel import Tiles
from mercer.kernels.base import Kernel
from mercer.kernels.text import parse
from mercer.machines.gaussian_process.evidence import log_evidence
from mercer.machines.gaussian_process.refine import inverse_curvature
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.solve.solution import Status
from mercer.structure.scoring import Candidate, Sample
from mercer.typing import Array

PLAIN = "1.0*RBF(ard=True) + White(0.1)"
# Random starts, besides those that the process makes by itself.
RESTARTS = 2


def plain_of_table(sample: Sample) -> Kernel:
    """One Gaussian of all columns with a lengthscale for each, at the scales of the data, and noise."""
    return parse(PLAIN).resolved(sample.rows.data)


def tuned_plain(sample: Sample) -> Candidate | None:
    """The plain kernel, tuned on the rows of a search; None where it cannot be."""
    model = GaussianProcessRegressor(
        PLAIN,
        n_restarts=RESTARTS,
        normalize_y=False,
        random_state=len(sample),
        n_jobs=sample.n_jobs,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=UserWarning)
            model.fit(sample.rows.data, sample.y)
    except MercerError:
        return None
    if model.certificate_.status == Status.INTERRUPTED:
        # the search around it keeps what it has; a Gaussian that was cut is not the one that was meant
        raise KeyboardInterrupt
    kernel = model.kernel_
    assert isinstance(kernel, Kernel)
    return Candidate(kernel, model.log_evidence_, len(sample), inverse=_curvature(kernel, sample))


def _curvature(kernel: Kernel, sample: Sample) -> Array | None:
    """The inverse curvature of minus the log evidence per row, by differences; None where there is none."""
    theta = kernel.theta

    def slope(u: Array) -> Array:
        K = Tiles(kernel.with_theta(theta + u), sample.rows, n_jobs=sample.n_jobs)
        gradient = log_evidence(K, sample.y[:, None], diagnose=False).gradient
        assert gradient is not None
        return np.asarray(-gradient / len(sample))

    try:
        return inverse_curvature(slope, len(theta))
    except MercerError:
        return None
