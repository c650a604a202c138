"""Faults in the command line and in the twins of scikit-learn."""

from __future__ import annotations

from mutation.fault import Fault

OUTSIDE = "src/mercer/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "undecided leaves with the code of refuted",
        OUTSIDE + "cli/check.py",
        '"undecided": 2, "declared": 3}',
        '"undecided": 1, "declared": 3}',
        "tests/cli/test_check.py",
    ),
    Fault(
        "what was declared leaves with the code of a proof",
        OUTSIDE + "cli/check.py",
        '"undecided": 2, "declared": 3}',
        '"undecided": 2, "declared": 0}',
        "tests/cli/test_check.py",
    ),
    Fault(
        "wrong options leave with the code of undecided",
        OUTSIDE + "cli/main.py",
        "            error.exit_code = USAGE  # type: ignore[attr-defined]\n",
        "            pass\n",
        "tests/cli/test_check.py",
    ),
    Fault(
        "a crash leaves with the code of refuted",
        OUTSIDE + "cli/main.py",
        "        sys.exit(FAILURE)",
        "        sys.exit(1)",
        "tests/cli",
    ),
    Fault(
        "a closed pipe leaves with the code of refuted",
        OUTSIDE + "cli/main.py",
        "        signal.signal(signal.SIGPIPE, signal.SIG_DFL)",
        "        pass",
        "tests/cli/test_outside.py",
    ),
    Fault(
        "unpatching leaves one twin in place",
        OUTSIDE + "sklearn/patching.py",
        "    _rebind({twin: original for original, twin in TWINS.items()})",
        "    _rebind({twin: original for original, twin in list(TWINS.items())[1:]})",
        "tests/compare/test_sklearn_twins.py -k patch",
    ),
    Fault(
        "models of patched classes are pickled as their twins",
        OUTSIDE + "sklearn/patching.py",
        "            return object.__new__(original)",
        "            return object.__new__(TWINS[original])",
        "tests/cli/test_outside.py -k pickled",
    ),
    Fault(
        "a twin drops a mask in silence",
        OUTSIDE + "sklearn/careful.py",
        "        unmasked(values, name)\n",
        "",
        "tests/compare/test_careful_twins.py",
    ),
    Fault(
        "a twin averages an asymmetric matrix in silence",
        OUTSIDE + "sklearn/careful.py",
        "    if gap[i, j] > 1e-8 * float(np.abs(K).max()):",
        "    if gap[i, j] > 1e8 * float(np.abs(K).max()):",
        "tests/compare/test_careful_twins.py",
    ),
    Fault(
        "a twin does not warn of a kernel that is none",
        OUTSIDE + "sklearn/careful.py",
        '    if found is not None:\n        warn(f"{found} The',
        '    if found is None:\n        warn(f"{found} The',
        "tests/compare/test_careful_twins.py",
    ),
)
