"""Pictures. Each function returns a matplotlib Figure and touches no global state; needs `mercer[plot]`."""

from mercer.plot.kernel import kernel

__all__ = ["kernel"]
