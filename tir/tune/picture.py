"""The picture of a result: the best time so far against trials, and the floor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from .progress import duration

if TYPE_CHECKING:
    from .result import Result, Tuned

WIDTH, HEIGHT, LEFT, TOP = 560, 240, 70, 28
COLOUR, FAINT, LIMIT = "#4c78a8", "#9aa5b1", "#d1495b"


@dataclass(frozen=True)
class Picture:
    """SVG text. It shows itself in a notebook; ``save`` writes it to a file."""

    svg: str

    def _repr_html_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        """Write the picture to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def picture(result: Result) -> Picture:
    """One panel for each task, one below the other."""
    panels = [_panel(one, n * (HEIGHT + 40)) for n, one in enumerate(result.tuned)]
    size = f'width="{WIDTH}" height="{(HEIGHT + 40) * max(1, len(panels))}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
    return Picture(head + "".join(panels) + "</svg>")


def _panel(one: Tuned, top: int) -> str:
    """Times on a logarithmic axis: a dot for each trial, a line for the best so far, and the floor."""
    trials = one.search.trials
    times = [t.seconds for t in trials if t.seconds < math.inf]
    title = f'<text x="{LEFT}" y="{top + 16}" font-weight="bold">{escape(", ".join(one.task.names))}</text>'
    if not times:
        return title
    lowest = min(times) if one.search.floor <= 0 else min(min(times), one.search.floor)
    low = 0.9 * lowest
    high = max(times) * 1.1
    right, bottom = WIDTH - 20, top + HEIGHT - 10

    def x(number: int) -> float:
        return LEFT + (right - LEFT) * (number + 0.5) / max(1, len(trials))

    def y(seconds: float) -> float:
        share = math.log(seconds / low) / math.log(high / low)
        return bottom - (bottom - top - TOP) * share

    parts = [title, _axes(top, low, high, len(trials))]
    if one.search.floor > 0:
        parts.append(_line([(LEFT, y(one.search.floor)), (right, y(one.search.floor))], LIMIT, "4 3"))
        note = f"least the machine allows, by the model: {duration(one.search.floor)}"
        parts.append(f'<text x="{LEFT + 6}" y="{y(one.search.floor) - 4:.1f}" fill="{LIMIT}">{note}</text>')
    path: list[tuple[float, float]] = []
    best = math.inf
    for number, trial in enumerate(trials):
        if trial.seconds < math.inf:
            dot = f"{trial.number}: {duration(trial.seconds)} ({trial.origin})"
            place = f'cx="{x(number):.1f}" cy="{y(trial.seconds):.1f}"'
            parts.append(f'<circle {place} r="2.5" fill="{FAINT}"><title>{escape(dot)}</title></circle>')
            best = min(best, trial.seconds)
        if best < math.inf:
            path += [(x(number), path[-1][1])] if path else []
            path.append((x(number), y(best)))
    return "".join([*parts, _line(path, COLOUR, "")])


def _axes(top: int, low: float, high: float, count: int) -> str:
    bottom, right = top + HEIGHT - 10, WIDTH - 20
    parts = [_line([(LEFT, top + TOP), (LEFT, bottom), (right, bottom)], FAINT, "")]
    for share in (0.0, 0.5, 1.0):
        at = bottom - (bottom - top - TOP) * share
        text = duration(low * (high / low) ** share)
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="{right}" y="{bottom + 16}" text-anchor="end">{count} trials</text>')
    return "".join(parts)


def _line(points: list[tuple[float, float]], colour: str, dashes: str) -> str:
    text = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>'
