"""Faults in Gram operators."""

from __future__ import annotations

from mutation.fault import Fault

GRAM = "src/mercer/gram/"
KERNELS = "src/mercer/kernels/"

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
        "return np.asarray(self.inner.diag() + self.shift)",
        "return np.asarray(self.inner.diag())",
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
        GRAM + "blocks.py",
        "out[a, b] = kernel.diagonal(x.rows(i[a]))",
        "out[a, b] = kernel.diagonal(x.rows(j[a]))",
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
    Fault(
        "the gradient of a lengthscale in the core has the wrong power",
        KERNELS + "leaves/families.py",
        'at.param(value**-2.0, "lengthscale", -2 * value**-3.0)',
        'at.param(value**-2.0, "lengthscale", -2 * value**-2.0)',
        "tests/gram/test_spellings.py tests/laws/test_gradients.py",
    ),
    Fault(
        "each column's lengthscale is linked to the first column",
        KERNELS + "programs/program.py",
        'named.append(NamedLink((view, 0, j), f"{name}[{j}]", factor))',
        'named.append(NamedLink((view, 0, 0), f"{name}[{j}]", factor))',
        "tests/gram/test_spellings.py tests/laws/test_gradients.py",
    ),
    Fault(
        "a list of numbers in a term of a column is not linked to its parameters",
        KERNELS + "leaves/leaf.py",
        "if isinstance(getattr(self, name, None), tuple):",
        'if isinstance(getattr(self, name.split("[")[0]), tuple):',
        "tests/gram/test_terms.py",
    ),
    Fault(
        "a scaled view forgets its scale on the way back to the rows",
        KERNELS + "programs/program.py",
        "    return lambda adjoint: pull(adjoint * scale)",
        "    return pull",
        "tests/gram/test_operators.py",
    ),
    Fault(
        "whole periods are taken off where a gradient is wanted",
        KERNELS + "programs/program.py",
        "fold = None if self.out.gradient else period",
        "fold = period",
        "tests/gram/test_spellings.py tests/laws/test_gradients.py",
    ),
    Fault(
        "a factor that is drawn into a step before it leaves the derivatives behind",
        KERNELS + "programs/program.py",
        "link._replace(factor=factor * link.factor) if link.number == index",
        "link if link.number == index",
        "tests/gram/test_spellings.py tests/laws/test_gradients.py",
    ),
    Fault(
        "the NumPy gradient of a product weighs a part with its own value",
        KERNELS + "rules/arithmetic.py",
        "[v for j, v in enumerate(values) if j != i]",
        "[v for j, v in enumerate(values) if j != i or i == 0]",
        "tests/gram/test_spellings.py",
    ),
    Fault(
        "the NumPy gradient of noise starts at the first block",
        KERNELS + "leaves/special.py",
        "np.trace(W, offset=at.start)",
        "np.trace(W)",
        "tests/gram/test_spellings.py tests/gram/test_operators.py",
    ),
    Fault(
        "the gradient of a cosine forgets the norm of the other side",
        KERNELS + "rules/factors.py",
        "-0.5 * b**3 * (a @ T), at.z",
        "0.0 * b, at.z",
        "tests/gram/test_spellings.py",
    ),
    Fault(
        "an index below 0 in a sparse matrix is let through",
        "src/mercer/sparse.py",
        "    if low < 0 or high >= size:",
        "    if high >= size:",
        "tests/gram/test_sparse_rows.py",
    ),
    Fault(
        "the last entry of a sparse matrix may be missing",
        "src/mercer/sparse.py",
        "        if indptr[-1] > stored:",
        "        if indptr[-1] > stored + 1:",
        "tests/gram/test_sparse_rows.py",
    ),
)
