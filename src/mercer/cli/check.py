"""`mercer check`: the facts of one kernel, gathered once and shown as text, LaTeX or JSON.

The JSON has these keys, always all of them; new ones may come, and a change of meaning raises the number:

    schema              "mercer.check/1"
    expression, latex   the kernel as text and as a formula
    status              "proved", "declared" (proved from what a user declared), "refuted" or "undecided"
    proof               {kernel, rule, reason, conditions, assumptions, premises: [proof, …]} or null
    witness             {points, K, q, value, asymmetric} or null
    search              {tried, lowest, missing} or null
    parameters          [{name, value, free, fixed, bounds: [low, high] or null, domain}, …]
    feature_dimension   [{columns, dimension}, …]; a whole number, "infinite", or null if unknown
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mercer.cli.codes import FAILURE, USAGE
from mercer.cli.talk import complain, complain_of_parse, json_text, results
from mercer.errors import MercerError, ParseError
from mercer.kernels import Kernel, Proof, Proved, ProvedAsDeclared, Refuted, Undecided, Validity, parse
from mercer.params import Open

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

CODES = {"proved": 0, "refuted": 1, "undecided": 2, "declared": 3}
LOOKS = {
    "proved": ("✓ a kernel, proved", "bold green"),
    "declared": ("✓ a kernel, given what was declared", "bold yellow"),
    "refuted": ("✗ not a kernel, refuted", "bold red"),
    "undecided": ("? undecided", "bold yellow"),
}
# of a feature dimension written out; Python itself refuses more than 4300
MOST_DIGITS = 4000

Dimensions = list[tuple[int, int | float | None]]
Facts = dict[str, object]


def run_check(expression: str, dimension: int | None, seconds: float, *, latex: bool, as_json: bool) -> int:
    """Judge the kernel, print what was found, and return the exit code."""
    try:
        k = parse(expression)
    except ParseError as error:
        complain_of_parse(error)
        return USAGE
    try:
        judged = k.validity(seconds=seconds)
        # an open lengthscale that no rule covers was taken as 1, and the answer is about that kernel
        k = judged.kernel
        sizes = [] if judged.status == "refuted" else feature_dimensions(k, dimension)
    except MercerError as error:
        complain(str(error))
        return FAILURE
    if as_json:
        print(json_text(facts(k, judged, sizes)))
    elif latex:
        print(f"k(x, z) = {k.latex()}\n\n{latex_of(judged)}")
    else:
        show(results(), k, judged, sizes)
    return CODES[judged.status]


def feature_dimensions(k: Kernel, asked: int | None) -> Dimensions:
    """How many features there are for the columns asked for, or for a few counts that the kernel takes."""
    exact, least = k.columns_needed()
    if asked is not None:
        return [(asked, k.feature_dimension(asked))]
    counts = sorted({max(d, least) for d in (1, 2, 3, 10)}) if exact is None else [exact]
    out: Dimensions = []
    for d in counts:
        try:
            out.append((d, k.feature_dimension(d)))
        except MercerError:
            # no answer for so many columns
            out.append((d, None))
    return out


# ── JSON and LaTeX ──────────────────────────────────────────────────────────────────────────────────────────


def facts(k: Kernel, judged: Validity, sizes: Dimensions) -> Facts:
    return {
        "schema": "mercer.check/1",
        "expression": str(k),
        "latex": k.latex(),
        "status": judged.status,
        "proof": _proof_facts(judged.proof) if isinstance(judged, Proved | ProvedAsDeclared) else None,
        "witness": _witness_facts(judged) if isinstance(judged, Refuted) else None,
        "search": _search_facts(judged) if isinstance(judged, Undecided) else None,
        "parameters": [
            {
                "name": p.name,
                "value": None if isinstance(p.value, Open) else p.value,
                "free": p.free,
                "fixed": p.fixed,
                "bounds": None if p.bounds is None else list(p.bounds),
                "domain": p.domain.words.split(",")[0],
            }
            for p in k.parameters
        ],
        "feature_dimension": [{"columns": d, "dimension": _json_size(size)} for d, size in sizes],
    }


def _proof_facts(proof: Proof) -> Facts:
    return {
        "kernel": str(proof.kernel),
        "rule": proof.rule,
        "reason": proof.fact.reason,
        "conditions": list(proof.conditions),
        "assumptions": list(proof.taken()),
        "premises": [_proof_facts(p) for p in proof.premises],
    }


def _witness_facts(judged: Refuted) -> Facts:
    return {
        "points": [np.ravel(x).tolist() if isinstance(x, np.ndarray) else x for x in judged.X],
        "K": judged.gram().tolist(),
        "q": np.asarray(judged.q).tolist(),
        "value": float(judged.value),
        "asymmetric": judged.asymmetric,
    }


def _search_facts(judged: Undecided) -> Facts:
    lowest = float(judged.lowest) if math.isfinite(judged.lowest) else None
    return {"tried": list(judged.tried), "lowest": lowest, "missing": judged.missing}


def _json_size(size: int | float | None) -> int | str | None:
    if size is None:
        return None
    if size == math.inf:
        return "infinite"
    return int(size) if size < 10**MOST_DIGITS else None


def latex_of(judged: Validity) -> str:
    if isinstance(judged, Proved | ProvedAsDeclared | Refuted):
        return judged.latex()
    return "\n".join(f"% {line}" for line in str(judged).splitlines())


# ── text ────────────────────────────────────────────────────────────────────────────────────────────────────


def show(console: Console, k: Kernel, judged: Validity, sizes: Dimensions) -> None:
    """The expression, the verdict, its reasons, the parameters, the feature dimension."""
    from rich.padding import Padding
    from rich.text import Text

    word, style = LOOKS[judged.status]
    console.print(Text(str(k), style="bold"))
    console.print(Text(word, style=style))
    console.print()
    for indent, line in _reasons(judged):
        console.print(Padding(line, (0, 0, 0, indent), expand=False))
    console.print()
    _show_parameters(console, k)
    _show_dimensions(console, judged, sizes)


def _reasons(judged: Validity) -> Iterator[tuple[int, Text]]:
    """The lines of the proof, the witness or the search, with their indentation."""
    from rich.text import Text

    for raw in str(judged).splitlines()[1:]:
        line = raw.lstrip()
        indent = len(raw) - len(line) + (0 if line == "Proof." else 2)
        step = re.fullmatch(r"([\d.]+\.) (.*)  \[(.*)\]", line)
        if isinstance(judged, Proved | ProvedAsDeclared) and step:
            number, kernel, rule = step.groups()
            yield indent, Text.assemble((f"{number} ", "dim"), (kernel, "bold"), "  ", (f"[{rule}]", "cyan"))
        elif line.startswith(("qᵀKq =", "k(x₁, x")):
            yield indent, Text(line, style="bold")
        else:
            yield indent, Text(line)


def _show_parameters(console: Console, k: Kernel) -> None:
    from rich.table import Table
    from rich.text import Text

    if not k.parameters:
        console.print("Parameters: none to tune.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", show_edge=False)
    table.add_column("  parameter")
    table.add_column("value", justify="right")
    table.add_column("may be")
    table.add_column("tuned")
    for p in k.parameters:
        domain = p.domain.words.split(",")[0]
        if p.bounds is not None:
            domain = f"{p.bounds[0]:g} to {p.bounds[1]:g}"
        if p.free:
            tuned = "free"
        elif p.fixed:
            tuned = "fixed"
        else:
            tuned = "no (zero)"
        table.add_row(*(Text(cell) for cell in (f"  {p.name}", f"{p.value:g}", domain, tuned)))
    console.print(Text("Parameters"))
    console.print(table)


def _show_dimensions(console: Console, judged: Validity, sizes: Dimensions) -> None:
    if judged.status == "refuted":
        console.print("Feature dimension: there is no feature map, since this is not a kernel.")
    elif sizes and all(size == math.inf for _, size in sizes):
        console.print("Feature dimension: infinite")
    elif sizes and any(size is not None for _, size in sizes):
        shown = ", ".join(f"{size_words(s)} for {d} column{'s' * (d > 1)}" for d, s in sizes)
        console.print(f"Feature dimension: {shown}")
    else:
        console.print("Feature dimension: not known")


def size_words(size: int | float | None) -> str:
    """A dimension for people: exact up to 15 digits, then rounded."""
    if size is None:
        return "not known"
    if size == math.inf:
        return "infinite"
    if size < 10**15:
        return f"{int(size):,}".replace(",", " ")
    exponent = math.floor(math.log10(int(size)))
    mantissa = 10 ** (math.log10(int(size)) - exponent)
    return f"about {mantissa:.2f}e{exponent}"
