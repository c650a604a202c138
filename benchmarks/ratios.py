"""The picture of the performance page: one dot for each cell at its ratio, one line for each suite.

Written as SVG text, so that the same numbers give the same bytes, and a dot says its cell under the mouse.
"""

from __future__ import annotations

import math
from html import escape

WIDTH = 760
LEFT = 130
RIGHT = 20
TOP = 34
ROW = 30
# Okabe and Ito's colours, told apart with every common kind of colour blindness.
FASTER = "#0072B2"
TIE = "#888888"
SLOWER = "#D55E00"


def svg(suites: dict[str, list[tuple[str, float]]], tie: float = 1.25) -> str:
    """The dots of every suite on one logarithmic scale of ratios."""
    values = [ratio for cells in suites.values() for _, ratio in cells] or [1.0]
    low = min(0.5, *values) / 1.15
    high = max(2.0, *values) * 1.15
    height = TOP + ROW * len(suites) + 44

    def x(ratio: float) -> float:
        share = (math.log(ratio) - math.log(low)) / (math.log(high) - math.log(low))
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    bottom = TOP + ROW * len(suites)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<rect x="{x(1 / tie):.1f}" y="{TOP}" width="{x(tie) - x(1 / tie):.1f}" height="{bottom - TOP}" '
        'fill="#EEEEEE"/>',
    ]
    parts += [_tick(tick, x(tick), bottom) for tick in _ticks(low, high)]
    for row, (suite, cells) in enumerate(suites.items()):
        y = TOP + ROW * (row + 0.5)
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(suite)}</text>')
        parts += [_dot(name, ratio, x(ratio), y, tie) for name, ratio in cells]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{bottom + 36}" text-anchor="middle">'
        "times as fast as the strongest peer (grey: a tie)</text>"
    )
    parts.append(f'<text x="{x(1) + 6:.1f}" y="{TOP - 12}" fill="{FASTER}">mercer is faster →</text>')
    parts.append(
        f'<text x="{x(1) - 6:.1f}" y="{TOP - 12}" fill="{SLOWER}" text-anchor="end">'
        "← the peer is faster</text>"
    )
    return "\n".join([*parts, "</svg>", ""])


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every decade between two ratios."""
    first = math.floor(math.log10(low))
    last = math.ceil(math.log10(high))
    every = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    return [tick for tick in every if low <= tick <= high]


def _tick(tick: float, at: float, bottom: float) -> str:
    colour, width = ("#333333", 1.5) if tick == 1 else ("#DDDDDD", 1)
    return (
        f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}" '
        f'stroke="{colour}" stroke-width="{width}"/>'
        f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
    )


def _dot(name: str, ratio: float, at: float, y: float, tie: float) -> str:
    colour = TIE
    if ratio >= tie:
        colour = FASTER
    elif ratio <= 1 / tie:
        colour = SLOWER
    return (
        f'<circle cx="{at:.1f}" cy="{y:.1f}" r="5" fill="{colour}" fill-opacity="0.55">'
        f"<title>{escape(name)}: {ratio:.2f}</title></circle>"
    )
