"""Pictures. Each function returns a matplotlib Figure and touches no global state; needs `mercer[plot]`."""

from mercer.plot.decision import decision
from mercer.plot.kernel import kernel

__all__ = ["decision", "kernel"]
