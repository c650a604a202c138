"""The small objects that fitted machines hold: certificates, factors, posteriors, losses, feature maps.

Each has its row in one table: its name in files, its class, and a fact for each of its fields. Reading makes
the class of the table with fields that passed their facts; a file cannot name any other class.
"""

from __future__ import annotations

from mercer.arrays import Rows
from mercer.files.registry import REGISTRY, Fields, Form
from mercer.gram.of_kernel import Tiles
from mercer.gram.operators import Precomputed, Shifted
from mercer.kernels.things.graphs.graph import Graph
from mercer.machines.gaussian_process import laplace
from mercer.machines.gaussian_process.inverses import Exact, InFeatures, Iterative, Later
from mercer.machines.landmarks.random_features import MeasuredError
from mercer.machines.landmarks.selection import Basis
from mercer.machines.loss import losses
from mercer.machines.margin.calibrate import Calibration
from mercer.machines.ridge.feature_search import FeaturePath
from mercer.machines.ridge.least_squares import DescentPath
from mercer.machines.structure.preimage import RidgeMap
from mercer.solve import precondition
from mercer.solve.direct import Cholesky
from mercer.solve.solution import Certificate, Note, NoteKind, Solution, Status

# Nodes of a graph that no edge and no label speaks of.
LONELY = 10_000


def _graph(fields: Fields) -> Graph:
    nodes, edges = fields["nodes"], fields["edges"]
    if nodes > 2 * len(edges) + len(fields["labels"] or ()) + LONELY:
        raise ValueError(f"{nodes} nodes for {len(edges)} edges")
    return Graph(**fields)


def _note_fields(note: Note) -> Fields:
    if note.kind is None:
        return {"text": str(note), "kind": None}
    return {"text": str(note), "kind": str(note.kind.value)}


def _note(fields: Fields) -> Note:
    if fields["kind"] is None:
        return Note(fields["text"])
    return Note(fields["text"], NoteKind(fields["kind"]))


MAYBE = "real | none"
LOSS = ("Loss",)
LATENT = {
    "K": "floats[m, m]",
    "evidence": "number",
    "residual": "number",
    "iterations": "count",
    "status": "Status",
}
FORMS = [
    # ── how a fit ended ─────────────────────────────────────────────────────────────────────────────────────
    Form(
        "Status",
        Status,
        {"word": "text"},
        take=lambda status: {"word": str(status.value)},
        make=lambda fields: Status(fields["word"]),
    ),
    Form(
        "Note",
        Note,
        {"text": "text", "kind": "text | none"},
        take=_note_fields,
        make=_note,
    ),
    Form(
        "Certificate",
        Certificate,
        {
            "status": "Status",
            "method": "text",
            "iterations": "count | none",
            "seconds": MAYBE,
            "primal": MAYBE,
            "dual": MAYBE,
            "gap": MAYBE,
            "kkt": MAYBE,
            "worst_row": "whole | none",
            "residual": MAYBE,
            "residuals": "real* | none",
            "added_diagonal": MAYBE,
            "notes": "text*",
        },
    ),
    Form("Solution", Solution, {"value": "floats[n, p]", "certificate": "Certificate"}),
    Form(
        "DescentPath",
        DescentPath,
        {
            "iterations": "wholes[path]",
            "train_errors": "reals[path] | reals[path, t]",
            "validation_errors": "reals[path] | reals[path, t] | none",
            "best": "count",
        },
    ),
    Form(
        "FeaturePath",
        FeaturePath,
        {
            "iterations": "wholes[rounds]",
            "after": "wholes[rounds] < rounds",
            "forms": "text*",
            "exponents": "floats[rounds]",
            "bandwidths": "floats[rounds]",
            "alphas": "floats[rounds]",
            "errors": "reals[rounds]",
            "expected": "reals[rounds]",
            "best": "count",
        },
    ),
    Form("Calibration", Calibration, {"slopes": "number*"}),
    Form(
        "MeasuredError",
        MeasuredError,
        {"max": "real", "rms": "real", "standard_error": "real", "kernel_rms": "real", "pairs": "count"},
    ),
    # ── losses ──────────────────────────────────────────────────────────────────────────────────────────────
    Form("loss squared", losses.Squared, {}, groups=LOSS),
    Form("loss poisson", losses.Poisson, {}, groups=LOSS),
    Form("loss hinge", losses.Hinge, {}, groups=LOSS),
    Form("loss squared_hinge", losses.SquaredHinge, {}, groups=LOSS),
    Form("loss logistic", losses.Logistic, {}, groups=LOSS),
    Form("loss softmax", losses.Softmax, {}, groups=LOSS),
    Form("loss huber", losses.Huber, {"delta": "number"}, groups=LOSS),
    Form("loss epsilon_insensitive", losses.EpsilonInsensitive, {"epsilon": "number"}, groups=LOSS),
    Form(
        "loss squared_epsilon_insensitive",
        losses.SquaredEpsilonInsensitive,
        {"epsilon": "number"},
        groups=LOSS,
    ),
    Form("loss quantile", losses.Quantile, {"level": "number"}, groups=LOSS),
    # ── factors, inverses and posteriors ────────────────────────────────────────────────────────────────────
    Form(
        "Basis",
        Basis,
        {"lower": "floats[m, m]", "kept": "wholes[m]", "dropped": "count", "threshold": "number"},
    ),
    Form("Cholesky", Cholesky, {"lower": "floats[n, n]", "shift": "number"}),
    Form("Exact", Exact, {"factor": "Cholesky | Later"}),
    Form("Later", Later, {"K": "Operator", "noise": "number | floats[n]"}),
    Form("InFeatures", InFeatures, {"phi": "floats[n, r]", "noise": "floats[n]", "lower": "floats[r, r]"}),
    Form(
        "Iterative",
        Iterative,
        {"op": "Operator", "shift": "number", "preconditioner": "Preconditioner", "tol": "number"},
    ),
    Form(
        "Preconditioner",
        precondition.LowRank,
        {
            "vectors": "floats[n, k]",
            "values": "floats[k]",
            "shift": "number",
            "tail": "number",
            "method": "text",
            "left_out": MAYBE,
        },
    ),
    Form(
        "Tiles",
        Tiles,
        {"kernel": "kernel", "x": "Rows", "n_jobs": "whole | none"},
        groups=("Operator",),
        make=lambda fields: Tiles(fields["kernel"], fields["x"], n_jobs=fields["n_jobs"]),
    ),
    Form(
        "Precomputed",
        Precomputed,
        {"array": "floats[n, n]"},
        groups=("Operator",),
        make=lambda fields: Precomputed(fields["array"]),
    ),
    Form(
        "Shifted",
        Shifted,
        {"inner": "Operator", "shift": "floats | floats[n]"},
        groups=("Operator",),
        make=lambda fields: Shifted(fields["inner"], fields["shift"]),
    ),
    Form(
        "Rows",
        Rows,
        {"data": "rows[n]", "name": "text", "names": "text* | none"},
        make=lambda fields: Rows(**fields),
    ),
    Form(
        "TwoClasses",
        laplace.TwoClasses,
        {**LATENT, **dict.fromkeys("afg", "floats[m]"), "root": "floats[m]", "lower": "floats[m, m]"},
    ),
    Form(
        "ManyClasses",
        laplace.ManyClasses,
        {**LATENT, **dict.fromkeys("afg", "floats[m, c]"), "w": "floats[m]", "blocks": "Blocks"},
    ),
    Form(
        "Blocks",
        laplace.Blocks,
        {
            "pi": "floats[m, c]",
            "E": "floats[c, m, m]",
            "inverse_diag": "floats[m, c]",
            "half_logdet": "number",
            "lower": "floats[m, m]",
        },
    ),
    Form(
        "Mode",
        laplace.PosteriorMode,
        {
            **dict.fromkeys("afg", "floats[m] | floats[m, c]"),
            "evidence": "number",
            "residual": "number",
            "iterations": "count",
            "status": "Status",
        },
        groups=("TwoClasses", "ManyClasses"),
    ),
    Form("LatentLogistic", laplace.Logistic, {"signs": "floats[m]", "w": "floats[m]"}),
    Form(
        "LatentSoftmax",
        laplace.Softmax,
        {"w": "floats[m]", "codes": "wholes[m] < c", "Y": "floats[m, c]"},
    ),
    Form(
        "RidgeMap",
        RidgeMap,
        {"kernel": "kernel", "Y": "floats[n, q]", "mean": "floats[p]", "solution": "Solution"},
        own=True,
    ),
    # ── things ──────────────────────────────────────────────────────────────────────────────────────────────
    Form(
        "Graph",
        Graph,
        {
            "nodes": "count",
            "edges": "wholes[edges, 2]",
            "labels": "any* | none",
            "edge_labels": "any* | none",
        },
        own=True,
        make=_graph,
    ),
]

for _form in FORMS:
    REGISTRY.add_form(_form)
