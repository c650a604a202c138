"""Faults in Gram operators."""

from __future__ import annotations

from mutation.fault import Fault

GRAM = "src/mercer/gram/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "a block of a shifted operator takes the shift of the wrong row",
        GRAM + "operators.py",
        "out[a, b] += np.broadcast_to(self.shift, n)[i[a]]",
        "out[a, b] += np.broadcast_to(self.shift, n)[a]",
        "tests/gram/test_parts.py tests/gram/test_operators.py",
    ),
    Fault(
        "a shifted operator forgets its shift in the diagonal",
        GRAM + "operators.py",
        "return self.inner.diag() + self.shift",
        "return self.inner.diag()",
        "tests/gram/test_parts.py tests/gram/test_operators.py",
    ),
    Fault(
        "the gradients of a sum of operators come in reverse order",
        GRAM + "operators.py",
        "return np.concatenate([p.contract(U, V, W=W) for p in self.parts])",
        "return np.concatenate([p.contract(U, V, W=W) for p in self.parts[::-1]])",
        "tests/gram/test_parts.py tests/gram/test_operators.py",
    ),
    Fault(
        "a block of one sample puts the noise on the wrong places",
        GRAM + "operators.py",
        "out[a, b] = kernel._diag(x.rows(i[a])) if len(a) else 0.0",
        "out[a, b] = kernel._diag(x.rows(j[a])) if len(a) else 0.0",
        "tests/gram/test_parts.py tests/gram/test_operators.py",
    ),
    Fault(
        "a weighted operator weighs only its rows",
        GRAM + "weighted.py",
        "        out *= self.scale[cols]\n",
        "",
        "tests/gram/test_parts.py tests/machines/test_ridge.py",
    ),
    Fault(
        "the gradient of a weighted operator forgets the weights of one side",
        GRAM + "weighted.py",
        "return self.inner.contract(s * U, s * V)",
        "return self.inner.contract(s * U, V)",
        "tests/gram/test_parts.py tests/machines/test_ridge.py",
    ),
)
