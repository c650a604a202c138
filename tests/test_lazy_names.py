"""`import mercer` is light, and yet every public name is there when asked for."""

import re
import subprocess
import sys

import pytest

import mercer
from mercer.names import KERNELS, MACHINES


def test_importing_mercer_loads_no_numpy():
    code = "import sys, mercer; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_name_of_the_language_is_public_at_the_top():
    assert set(mercer.kernels.__all__) <= set(mercer.__all__)


@pytest.mark.parametrize("name", mercer.kernels.__all__)
def test_a_name_at_the_top_is_the_one_of_the_language(name):
    assert getattr(mercer, name) is getattr(mercer.kernels, name)


def test_dir_lists_the_public_names_and_others_do_not_exist():
    assert dir(mercer) == sorted(mercer.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = mercer.nonsense


def test_a_machine_brings_no_more_of_scikit_learn_than_a_base_class_does():
    machines = [
        name for name in mercer.__all__ if getattr(mercer, name).__class__ is type and name[0].isupper()
    ]
    heavy = ("metrics", "model_selection", "preprocessing", "linear_model", "svm", "gaussian_process")
    code = (
        "import sys, mercer\n"
        f"machines = [getattr(mercer, name) for name in {machines}]\n"
        "assert any(kind.__module__.startswith('mercer.machines') for kind in machines)\n"
        f"print([name for name in {heavy} if 'sklearn.' + name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("theirs", KERNELS)
def test_a_kernel_known_by_another_name_leads_to_ours(theirs):
    ours = KERNELS[theirs]
    assert ours.split("(")[0] in mercer.kernels.__all__
    with pytest.raises(mercer.errors.ParseError, match=re.escape(f"did you mean {ours}?")):
        mercer.parse(f"{theirs.title()}(1.0)")
    with pytest.raises(AttributeError, match=re.escape(f"mercer.{ours}.")):
        getattr(mercer, theirs)


@pytest.mark.parametrize("theirs", MACHINES)
def test_a_machine_known_by_another_name_leads_to_ours(theirs):
    assert hasattr(getattr(mercer, MACHINES[theirs]), "fit")
    with pytest.raises(AttributeError, match=re.escape(f"mercer.{MACHINES[theirs]}.")):
        getattr(mercer, theirs)


def test_no_name_of_ours_is_listed_as_a_name_of_others():
    ours = {name.lower() for name in mercer.__all__}
    assert not ours & (KERNELS | MACHINES).keys()
    assert not KERNELS.keys() & MACHINES.keys()
