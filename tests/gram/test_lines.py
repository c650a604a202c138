"""The lines through the blocks of the rows: every pair of rows meets on exactly one of them."""

import numpy as np
import pytest

from mercer.gram.lines import DIFFERENCES, ORDERS, Lines


@pytest.mark.parametrize("order", DIFFERENCES)
def test_any_two_blocks_are_on_one_line_and_on_one_only(order):
    lines = Lines(10_000, order)
    met = np.zeros((lines.blocks, lines.blocks), dtype=int)
    for line in range(lines.blocks):
        for a in lines.on(line):
            met[a, lines.on(line)] += 1
    assert np.all(met[~np.eye(lines.blocks, dtype=bool)] == 1)
    assert np.all(met.diagonal() == order + 1)


@pytest.mark.parametrize("n", [1, 2, 499, 500, 701, 6000, 20_000, 20_001])
def test_blocks_hold_every_row_once_and_tasks_every_line_once(n):
    lines = Lines.of(n)
    held = [np.arange(n)[lines.rows(b)] for b in range(lines.blocks)]
    assert np.array_equal(np.concatenate(held), np.arange(n))
    assert min(map(len, held)) > 0
    assert [line for task in lines.tasks for line in task] == list(range(lines.blocks))
    for line in range(lines.blocks):
        assert lines.on(line)[0] == line


def test_a_task_reads_the_blocks_of_its_lines():
    lines = Lines.of(20_000)
    task = lines.tasks[1]
    assert set(lines.read(task)) == {b for line in task for b in lines.on(line)}
    assert lines.rows_read(task) < lines.n / 2


def test_every_order_in_use_has_a_difference_set_and_many_rows_have_more_blocks():
    assert {order for _, order in ORDERS} == set(DIFFERENCES)
    blocks = [Lines.of(n).blocks for n in (10, 1000, 10_000, 100_000)]
    assert blocks == sorted(set(blocks))


def test_what_a_task_has_is_added_to_the_rows_that_it_reads():
    lines = Lines.of(700)
    total = np.zeros((700, 1))
    for task in lines.tasks:
        rows = np.concatenate([np.arange(700)[lines.rows(b)] for b in lines.read(task)])
        lines.add(rows[:, None] + 1.0, task, total)
    times = sum(len(lines.read(task)) for task in lines.tasks) / lines.blocks
    np.testing.assert_array_equal(total[:, 0], times * np.arange(1.0, 701.0))
