"""One enum says how a solver ended: a word wherever words are wanted, in one order,
and nowhere spelled out again.
"""

from __future__ import annotations

import ast
import json
import pickle
from copy import deepcopy
from itertools import combinations_with_replacement, permutations
from pathlib import Path

import pytest

import mercer
from mercer.solve.solution import Certificate, Status

WORDS = ("converged", "stagnated", "limit", "stopped", "failed", "interrupted")
SOURCE = Path(mercer.__file__).parent


def test_a_status_is_its_word():
    assert tuple(Status) == WORDS
    for word in WORDS:
        status = Status(word)
        assert status == word and hash(status) == hash(word)
        assert f"{status}" == str(status) == word and repr(status) == repr(word)
        assert json.loads(json.dumps({"status": status})) == {"status": word}
        assert pickle.loads(pickle.dumps(status)) is status and deepcopy(status) is status
        assert status.meaning


def test_the_worst_of_several_is_the_last_of_the_order_whatever_their_order():
    for some in combinations_with_replacement(WORDS, 3):
        expected = WORDS[max(WORDS.index(word) for word in some)]
        assert {Status.worst(each) for each in permutations(some)} == {expected}


def test_what_needs_no_warning():
    assert [s for s in Status if s.as_asked] == ["converged", "stopped", "interrupted"]
    assert [s for s in Status if s.on_request] == ["stopped", "interrupted"]


def test_a_certificate_takes_words_keeps_a_status_and_refuses_others():
    c = Certificate("limit", "pairs")
    assert c.status is Status.LIMIT
    assert type(c.to_dict()["status"]) is str
    assert pickle.loads(pickle.dumps(c)) == c
    with pytest.raises(ValueError, match="gave up"):
        Certificate("gave up", "pairs")


def test_no_code_spells_a_status_out_again():
    spelled = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path == SOURCE / "solve" / "solution.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in ("converged", "stagnated", "interrupted"):
                spelled.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    # what the core calls its endings is translated in the one file that calls it
    assert {where.split(":")[0] for where in spelled} <= {"solve/qp.py"}, spelled
