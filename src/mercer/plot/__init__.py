"""Pictures. Each function returns a matplotlib Figure and touches no global state; needs `mercer[plot]`."""

from mercer.plot.decision import decision
from mercer.plot.kernel import kernel
from mercer.plot.panels import panels, ridge_panels
from mercer.plot.path import path
from mercer.plot.regression import regression

__all__ = ["decision", "kernel", "panels", "path", "regression", "ridge_panels"]
