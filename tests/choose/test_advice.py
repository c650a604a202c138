"""The tables of what to choose: what they advise exists, and is what they say."""

import inspect

import pytest

import mercer
from mercer.errors import ParameterError


def test_every_kernel_advised_can_be_read_and_is_proved():
    for row in mercer.choose.guide("kernel").rows:
        assert mercer.parse(row.use).validity().status == "proved", row


def test_every_machine_advised_is_a_public_name():
    assert {row.use for row in mercer.choose.guide("machine").rows} <= set(mercer.__all__)


def test_every_solver_advised_is_taken_by_its_machine_and_the_first_is_the_default():
    for row in mercer.choose.guide("solver").rows:
        machine = getattr(mercer, row.when)
        values = [value.strip("'") for value in row.use.split()]
        assert inspect.signature(machine).parameters["solver"].default == values[0] == "auto"
        assert all(f'"{value}"' in row.means or value in row.means.lower() for value in values), row


def test_a_table_is_printed_one_line_a_row():
    found = mercer.choose.guide("machine")
    assert len(str(found).splitlines()) == len(found.rows)
    assert found.markdown().count("\n") == len(found.rows) + 1


def test_a_table_about_something_else_is_refused():
    with pytest.raises(ParameterError, match="'kernel', 'machine' and 'solver'"):
        mercer.choose.guide("colour")
