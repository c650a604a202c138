"""How much a page may ask for. Everything that comes in is held against these before it is looked at."""

from __future__ import annotations

# Of one message, and of a file that is dropped on the page.
MOST_BYTES = 8_000_000
MOST_TABLE_BYTES = 5_000_000
# Of the data of a page. Longer tables are drawn from, and the page says so.
MOST_ROWS = 2_000
MOST_COLUMNS = 256
MOST_CLASSES = 9
MOST_CHARACTERS = 400
MOST_NODES = 60
# Of the text of a kernel.
MOST_KERNEL = 2_000
# Sides of the grid of a decision field, and points of a curve.
MOST_GRID = 200
MOST_CURVE = 400
# Rows that the slower views draw.
MOST_GRAM = 200
MOST_STEPS_ROWS = 300
MOST_CHOICE_ROWS = 200
# Seconds for a witness to be looked for.
WITNESS_SECONDS = 2.0
# Answers that may be under way for one page, and pages that may be open.
MOST_WAITING = 8
MOST_PAGES = 32
