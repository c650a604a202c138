"""What notebooks show: well-formed HTML, whatever the names are, with every number that the object has."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import mercer
from mercer.solve import Certificate

NASTY = "<script>alert('x')</script>&\"b"


class Checker(HTMLParser):
    """Tags that open are closed in order; none is a script; the text without tags is kept."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag != "script"
        assert all(name == "open" for name, _ in attrs)
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def kernel():
    return mercer.RBF(2.0).on(NASTY) * mercer.Periodic(1.0).on("b") + 0.1 * mercer.White(1.0)


def test_a_proof_is_a_tree_with_one_fold_for_each_step_and_the_first_is_open():
    found = kernel().validity()
    page = Checker(found._repr_html_())
    steps = list(found.proof.walk())
    assert page.tags.count("details") == len(steps) >= 4
    assert found._repr_html_().count("<details open>") == 1
    for step in steps:
        assert str(step.kernel) in page.text
        assert f"[{step.rule}]" in page.text


def test_a_proof_says_in_a_notebook_every_sentence_that_it_prints():
    found = kernel().validity()
    text = Checker(found._repr_html_()).text
    for line in found.proof.lines():
        words = re.sub(r"^\s*[\d.]*\d\. ", "", line).strip()
        assert re.sub(r"\s+", "", words) in re.sub(r"\s+", "", text), words


@pytest.mark.parametrize(
    "k", [mercer.Sigmoid(1.0), mercer.Custom(lambda a, b: float(np.minimum(a, b).sum()))]
)
def test_what_is_not_proved_is_shown_as_it_is_printed(k):
    found = k.validity()
    assert found.status in ("refuted", "undecided")
    assert Checker(found._repr_html_()).text == str(found)


def test_a_certificate_shows_every_number_that_it_has_and_no_other():
    found = Certificate("limit", NASTY, iterations=3, gap=0.25, worst_row=7, notes=(NASTY,))
    page = Checker(found._repr_html_())
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td></tr>", found._repr_html_())
    shown = {unescape(name): unescape(value) for name, value in rows}
    assert shown == {
        "method": NASTY,
        "status": "limit: the iterations or seconds allowed were used up",
        "iterations": "3",
        "gap": "0.25",
        "worst row": "7",
    }
    assert page.tags.count("li") == 1 and page.text.endswith(NASTY)


def test_a_choice_shows_every_trial():
    X = np.linspace(0, 5, 20)[:, None]
    found = mercer.choose(mercer.KernelRidge("RBF()"), X, np.sin(X[:, 0]), kernels=["RBF()", "Linear()"])
    page = Checker(found._repr_html_())
    trials = found._repr_html_().split("<details>")[1]
    assert trials.count("<tr>") == len(found.trials) + 1
    for trial in found.trials:
        assert str(trial.kernel) in page.text and f"{trial.score:.6g}" in page.text
    assert found.why in page.text


def test_a_verification_and_a_guide_are_well_formed():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = mercer.KernelRidge("RBF(1.0)").fit(X, X[:, 0])
    found = mercer.verify(model, X, X[:, 0])
    assert Checker(found._repr_html_()).text == str(found)
    guide = mercer.choose.guide("kernel")
    assert Checker(guide._repr_html_()).tags.count("tr") == len(guide.rows) + 1
