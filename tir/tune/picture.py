"""The picture of a result: the best time so far against trials and against seconds, the floor, and the roofline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ..display import FAINT, NO, duration, svg_figure, svg_text

if TYPE_CHECKING:
    from .result import Result, Tuned

WIDTH, HEIGHT, LEFT, TOP = 560, 240, 70, 28
COLOUR, LIMIT = "#4c8dd6", NO  # mid-tones, legible on white and on black


@dataclass(frozen=True)
class Picture:
    """SVG text, in the colours of a light or a dark page. It shows itself in a notebook; ``save`` writes it to a file."""

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
    """For each task, one below the other: times against trials, against seconds, and the roofline."""
    panels: list[str] = []
    for one in result.tuned:
        for draw in (_against_trials, _against_seconds, _roofline):
            made = draw(one, len(panels) * (HEIGHT + 40))
            panels += [made] if made else []
    return Picture(svg_figure(WIDTH, (HEIGHT + 40) * max(1, len(panels)), *panels))


def _against_trials(one: Tuned, top: int) -> str:
    trials = one.search.trials
    return _panel(one, top, [n + 0.5 for n in range(len(trials))], max(1, len(trials)), f"{len(trials)} trials")


def _against_seconds(one: Tuned, top: int) -> str:
    """Nothing for trials that all come from a database."""
    after = [t.after for t in one.search.trials]
    last = max(after, default=0.0)
    return _panel(one, top, after, last, f"{last:.3g} seconds of the search") if last > 0 else ""


def _panel(one: Tuned, top: int, places: list[float], most: float, note: str) -> str:
    """Times on a logarithmic axis: a dot for each trial, a line for the best so far, and the floor."""
    trials = one.search.trials
    times = [t.seconds for t in trials if t.seconds < math.inf]
    title = _title(one, top)
    if not times:
        return title
    lowest = min(times) if one.search.floor <= 0 else min(min(times), one.search.floor)
    low = 0.9 * lowest
    high = max(times) * 1.1
    right, bottom = WIDTH - 20, top + HEIGHT - 10

    def y(seconds: float) -> float:
        share = math.log(seconds / low) / math.log(high / low)
        return bottom - (bottom - top - TOP) * share

    parts = [title, _axes(top, low, high, note)]
    if one.search.floor > 0:
        parts.append(_line([(LEFT, y(one.search.floor)), (right, y(one.search.floor))], LIMIT, "4 3"))
        text = f"least the machine allows, by the model: {duration(one.search.floor)}"
        parts.append(svg_text(LEFT + 6, y(one.search.floor) - 4, text, fill=LIMIT))
    path: list[tuple[float, float]] = []
    best = math.inf
    for place, trial in zip(places, trials):
        x = LEFT + (right - LEFT) * place / most
        if trial.seconds < math.inf:
            parts.append(
                _dot(x, y(trial.seconds), f"{trial.number}: {duration(trial.seconds)} ({trial.origin})", FAINT)
            )
            best = min(best, trial.seconds)
        if best < math.inf:
            path += [(x, path[-1][1])] if path else []
            path.append((x, y(best)))
    return "".join([*parts, _line(path, COLOUR, "")])


def _roofline(one: Tuned, top: int) -> str:
    """Operations a second against operations for each byte of the arguments, both logarithmic: the machine's limits, the
    default schedule and the best one. Nothing where the limits are not known."""
    limits = one.search.limits
    if limits is None or not one.search.measured or not limits.operations:
        return ""
    right, bottom = WIDTH - 20, top + HEIGHT - 10
    ridge, here = limits.peak / limits.bandwidth, limits.operations / limits.bytes
    left_end, right_end = min(ridge, here) / 4, max(ridge, here) * 4
    shown = [t for t in (one.search.default,) if t in one.search.measured]
    rates = [limits.operations / t.seconds for t in (*shown, one.best)]
    low = min([*rates, left_end * limits.bandwidth]) / 2
    high = limits.peak * 2

    def at(intensity: float, rate: float) -> tuple[float, float]:
        x = math.log(intensity / left_end) / math.log(right_end / left_end)
        y = math.log(rate / low) / math.log(high / low)
        return LEFT + (right - LEFT) * x, bottom - (bottom - top - TOP) * y

    roof = [at(left_end, left_end * limits.bandwidth), at(ridge, limits.peak), at(right_end, limits.peak)]
    parts = [
        _title(one, top),
        _line([(LEFT, top + TOP), (LEFT, bottom), (right, bottom)], FAINT, ""),
        _line(roof, LIMIT, ""),
    ]
    parts.append(svg_text(roof[1][0], roof[1][1] - 5, f"{limits.peak * 1e-9:.4g} G operations a second", fill=LIMIT))
    parts.append(svg_text(LEFT + 6, roof[0][1] + 16, f"{limits.bandwidth * 1e-9:.3g} GB/s", fill=LIMIT))
    for name, colour, rate in zip(("best", "default"), (COLOUR, FAINT), reversed(rates)):
        parts.append(_dot(*at(here, rate), f"{name}: {rate * 1e-9:.4g} G operations a second", colour))
    x, y = at(here, rates[-1])
    share = rates[-1] * limits.seconds / limits.operations
    parts.append(svg_text(x + 8, y + 12, f"best: {share:.0%} of the roof", fill=COLOUR))
    parts.append(svg_text(right, bottom + 16, f"{here:.3g} operations for each byte", "end"))
    return "".join(parts)


def _title(one: Tuned, top: int) -> str:
    return svg_text(LEFT, top + 16, ", ".join(one.task.names), font_weight="bold")


def _dot(x: float, y: float, text: str, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"><title>{escape(text)}</title></circle>'


def _axes(top: int, low: float, high: float, note: str) -> str:
    bottom, right = top + HEIGHT - 10, WIDTH - 20
    parts = [_line([(LEFT, top + TOP), (LEFT, bottom), (right, bottom)], FAINT, "")]
    for share in (0.0, 0.5, 1.0):
        at = bottom - (bottom - top - TOP) * share
        parts.append(svg_text(LEFT - 6, at + 4, duration(low * (high / low) ** share), "end"))
    parts.append(svg_text(right, bottom + 16, note, "end"))
    return "".join(parts)


def _line(points: list[tuple[float, float]], colour: str, dashes: str) -> str:
    text = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>'
