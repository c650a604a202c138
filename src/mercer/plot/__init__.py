"""Pictures. Each function returns a matplotlib Figure and touches no global state; needs `mercer[plot]`."""

from mercer.plot.decision import decision
from mercer.plot.kernel import kernel
from mercer.plot.regression import regression

__all__ = ["decision", "kernel", "regression"]
