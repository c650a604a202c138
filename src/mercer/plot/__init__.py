"""Pictures. Each function returns a matplotlib Figure and touches no global state; needs `mercer[plot]`."""

from mercer.plot.decision import decision
from mercer.plot.kernel import kernel
from mercer.plot.lifting import lifting
from mercer.plot.structure import clusters, embedding, gram_matrix, spectrum

__all__ = ["clusters", "decision", "embedding", "gram_matrix", "kernel", "lifting", "spectrum"]
