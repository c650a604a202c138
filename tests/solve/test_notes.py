"""A note is its sentence, with a kind by which code finds it; no code searches sentences."""

from __future__ import annotations

import ast
import json
import pickle
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import SVC, KernelMachine
from mercer.errors import InvalidKernelWarning
from mercer.solve.solution import Certificate, Note, NoteKind, has_note

SOURCE = Path(mercer.__file__).parent


@pytest.mark.parametrize("kind", [None, *NoteKind])
def test_a_note_is_its_sentence_and_keeps_its_kind_on_every_way(kind):
    note = Note("two of five", kind)
    c = Certificate("limit", "pairs", notes=("another", note))
    for again in (note, pickle.loads(pickle.dumps(note)), deepcopy(note), deepcopy(c).notes[1]):
        assert again == "two of five" and hash(again) == hash("two of five") and again.kind is kind
    assert pickle.loads(pickle.dumps(c)) == c
    assert str(c).endswith("\n  another\n  two of five")
    shown = json.loads(json.dumps(c.to_dict()))
    assert shown["notes"] == ["another", "two of five"]
    assert all(type(text) is str for text in c.to_dict()["notes"])
    assert [k for k in NoteKind if c.says(k)] == [k for k in NoteKind if k is kind]
    assert not has_note(["two of five"], NoteKind.SECONDS)


@pytest.mark.parametrize("machine", [SVC, KernelMachine])
def test_a_kernel_that_is_none_is_known_by_the_kind_of_its_note(machine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = np.sign(X[:, 0])
    with pytest.warns(InvalidKernelWarning):
        model = machine("RBF(1.0) - 0.2*RBF(0.3)").fit(X, y)
    assert model.certificate_.says(NoteKind.STATIONARY_POINT)
    assert not machine("RBF(1.0)").fit(X, y).certificate_.says(NoteKind.STATIONARY_POINT)


def is_a_note(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.strip("_") in ("note", "notes")


def test_no_code_searches_the_words_of_notes():
    searched = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            words = isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant | ast.JoinedStr)
            if words and isinstance(node.ops[0], ast.In | ast.NotIn) and is_a_note(node.comparators[0]):
                searched.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
            method = isinstance(node, ast.Attribute) and is_a_note(node.value)
            if method and node.attr in ("startswith", "endswith", "find", "split", "partition", "lower"):
                searched.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not searched
