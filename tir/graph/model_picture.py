"""Graphs and plans as pictures: kernels one below the other with what they pass on, and the workspace over time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from ..display import FAINT, YES, svg_box, svg_figure, svg_text
from ..errors import ModelError
from ..tune.nest import USUAL
from .fusion import Group, groups
from .graph import Graph, Value
from .memory_plan import Plan
from .sizes import Extent, Size

if TYPE_CHECKING:
    from .profile import Profile

ROW, BOX, LANE, BAR = 24, 260, 9, 160  # the height of a row; the widths of a kernel, of a lane, and of the longest bar
MOST = 36  # characters of a name
_LINE = "#4c8dd6"  # mid-tone, legible on white and on black


def shortened(name: str, most: int) -> str:
    """A name of at most so many characters, without what is in its middle.

    >>> shortened("matmul_add", 10), shortened("matmul_add_relu", 9)
    ('matmul_add', 'matm…relu')
    """
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def size(nbytes: Extent) -> str:
    """Bytes in the unit in which they are read best.

    >>> size(12), size(4 << 10), size(2_500_000)
    ('12 B', '4.1 kB', '2.50 MB')
    """
    if isinstance(nbytes, Size) or nbytes < 1000:
        return f"{nbytes} B"
    return f"{nbytes / 1e3:.1f} kB" if nbytes < 10**6 else f"{nbytes / 1e6:.2f} MB"


def picture(graph: Graph, profile: Profile | None) -> str:
    """A row for each input and each kernel, in the order of running: nodes, weights, results; lines from what makes a tensor to what reads it; and
    a bar for the time. Raises ``ModelError`` for the profile of another graph."""
    order = groups(graph)
    kernels = [g for g in order if g.view is None]
    if profile is not None and len(profile.seconds_of_calls) != len(kernels):
        raise ModelError(
            f"the profile has {len(profile.seconds_of_calls)} calls of kernels, the graph {len(kernels)}: take model.graph of the model that was profiled"
        )
    seconds = {} if profile is None else dict(zip(kernels, profile.seconds_of_calls))
    rows: list[Value | Group] = [*graph.inputs, *order]
    made_at = {v: n for n, row in enumerate(rows) for v in (row.outputs if isinstance(row, Group) else (row,))}
    edges = {v: [n for n, row in enumerate(rows) if isinstance(row, Group) and v in row.inputs] for v in made_at}
    lanes = _lanes({v: (made_at[v], max(readers)) for v, readers in edges.items() if readers})
    left = 14 + LANE * (1 + max(lanes.values(), default=0))
    parts = [_line(left, lanes[v], made_at[v], edges[v]) for v in lanes]
    results = {v: name for name, v in graph.outputs.items()}
    longest = max(seconds.values(), default=0.0) or 1.0
    for n, row in enumerate(rows):
        parts += _input(left, n, row) if isinstance(row, Value) else _kernel(left, n, row, made_at, results)
        if row in seconds:
            at, width = left + BOX + 250, BAR * seconds[row] / longest
            parts.append(svg_box(at, n * ROW + 7, width, ROW - 12, YES))
            parts.append(svg_text(at + width + 6, n * ROW + 17, f"{seconds[row] * 1e3:.3f} ms"))
    return svg_figure(left + BOX + 250 + (BAR + 80 if seconds else 0), len(rows) * ROW + 4, *parts)


def _lanes(spans: Mapping[Value, tuple[int, int]]) -> dict[Value, int]:
    """A lane for each tensor, the lowest that no other one has in the rows from its first to its last."""
    free: list[int] = []  # the row from which on each lane is free
    found: dict[Value, int] = {}
    for value, (first, last) in sorted(spans.items(), key=lambda item: item[1]):
        lane = next((n for n, row in enumerate(free) if row <= first), len(free))
        free[lane : lane + 1] = [last]
        found[value] = lane
    return found


def _line(left: float, lane: int, first: int, readers: Sequence[int]) -> str:
    x, y = left - LANE * (lane + 1), first * ROW + 17
    path = f"M{left} {y}H{x}V{max(readers) * ROW + 9}" + "".join(f"M{x} {n * ROW + 9}H{left}" for n in readers)
    return f'<path d="{path}" fill="none" stroke="{_LINE}" stroke-opacity="0.7"/>'


def _input(left: float, n: int, value: Value) -> list[str]:
    box = svg_box(left, n * ROW + 3, BOX, ROW - 6, "none", str(value), stroke=_LINE, rx="8")
    words = f"{shortened(value.name, MOST)}: {value.dtype}{list(value.shape)}"
    return [box, svg_text(left + 8, n * ROW + 17, words), svg_text(left + BOX + 8, n * ROW + 17, size(value.nbytes))]


def _kernel(left: float, n: int, group: Group, made: Container[Value], results: Mapping[Value, str]) -> list[str]:
    """A box with the operators, pale for a view; beside it what it makes, and the bytes of the constants that it reads."""
    weights = sum(v.nbytes for v in group.inputs if v not in made)
    title = "\n".join(map(str, group.nodes)) + ("\na view: no kernel" if group.view is not None else "")
    box = svg_box(
        left, n * ROW + 3, BOX, ROW - 6, FAINT, title, rx="3", fill_opacity="0.25" if group.view is None else "0.08"
    )
    outputs = ", ".join(f"{list(v.shape)} {size(v.nbytes)}" for v in group.outputs[:2])
    named = "".join(f" = {results[v]}" for v in group.outputs[:1] if v in results)
    words = f"{outputs}{named}{f', weights {size(weights)}' if weights else ''}"
    return [
        box,
        svg_text(left + 8, n * ROW + 17, shortened(group.name, MOST), pointer_events="none"),
        svg_text(left + BOX + 8, n * ROW + 17, shortened(words, 40)),
    ]


def plan_picture(plan: Plan) -> str:
    """The workspace: a box for each tensor, as wide as the groups for which it is kept, as high as its bytes; of symbols, for a usual value."""
    plan = plan.at(dict.fromkeys(plan.symbols, USUAL))
    steps = 1 + max((last for _, last in plan.lives.values()), default=0)
    across, high, left, top = 640 / steps, 240 / max(int(plan.nbytes), 1), 70, 8
    parts = [svg_text(left - 6, top + 244, "0", "end"), svg_text(left - 6, top + 10, size(plan.nbytes), "end")]
    for value, offset in plan.offsets.items():
        first, last = plan.lives[value]
        over = [new.name for new, place in plan.views.items() if place.root is value]
        title = f"{value}\nbytes {offset} to {offset + value.nbytes}, groups {first} to {last}"
        title += f"\nshared by {', '.join(over)}" if over else ""
        y, x = top + 240 - (offset + value.nbytes) * high, left + first * across
        parts.append(
            svg_box(
                x,
                y,
                (last - first + 1) * across,
                value.nbytes * high,
                _LINE,
                title,
                stroke="currentColor",
                fill_opacity="0.45",
            )
        )
    parts.append(svg_text(left, top + 262, "first group"))
    parts.append(svg_text(left + 640, top + 262, f"group {steps - 1}", "end"))
    return svg_figure(left + 650, top + 272, *parts)
