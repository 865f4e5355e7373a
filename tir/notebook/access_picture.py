"""Which elements of a buffer each iteration of a loop touches, as text and as a figure; of shared memory, in which banks.

The elements are those of the program's own indices, evaluated at every iteration. Banks are those of the lowered
program, whose shared buffers have their final shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING, Any

from ..analysis.effects import Effect, effects
from ..analysis.index import LoopRef
from ..buffer import Buffer
from ..display import svg_box, svg_figure, svg_text
from ..errors import ScheduleError
from ..expr import IntImm
from ..schedule.state import State, label
from ..target import LINE
from .bank_accesses import BankAccess, bank_accesses, banks_figure, banks_text
from .element_accesses import points_of

if TYPE_CHECKING:
    import numpy as np

_COLUMNS = 64  # of a figure or a text
_ROWS, _TEXT_ROWS = 64, 16
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, repr=False)
class AccessPicture:
    """The elements of ``buffer`` that each iteration of ``loop`` touches, the loops around it held at the iterations of
    ``at``. ``touched`` has an array of element numbers, in row-major order and sorted, for each iteration; ``lines`` the
    cache lines of 64 bytes that it takes. ``banks``: the accesses of one thread block to shared memory.

    Prints as text, in a notebook as a figure (``svg()``). ``beside`` puts two next to each other: before and after.
    """

    buffer: str
    shape: tuple[int, ...]
    loop: str
    at: Mapping[str, int]
    touched: tuple[np.ndarray, ...]
    lines: tuple[int, ...]
    banks: tuple[BankAccess, ...] = ()

    def elements(self, iteration: int) -> list[tuple[int, ...]]:
        """The indices of the elements that one iteration touches, in row-major order.

        Raises ``IndexError`` for an iteration that the loop does not have."""
        import numpy as np

        return [tuple(map(int, e)) for e in np.stack(np.unravel_index(self.touched[iteration], self.shape), axis=-1)]

    @property
    def summary(self) -> str:
        """The figures, in a sentence."""
        each = [len(elements) for elements in self.touched]
        together = len(self._first()[0])
        fixed = "".join(f", {name} = {value}" for name, value in self.at.items())
        lines = f"{_range(self.lines)} cache line{'s' * (set(self.lines) != {1})}"
        return (
            f"{self.buffer}{list(self.shape)}, loop {self.loop} ({len(self.touched)} iterations{fixed}): {together} of "
            f"{prod(self.shape)} elements; an iteration touches {_range(each)} in {lines}"
        )

    def __repr__(self) -> str:
        grid = self._grid(_TEXT_ROWS)
        parts = [self.summary, *("".join(_letter(n) for n in row) for row in grid.cells), grid.note]
        return "\n".join([part for part in parts if part] + banks_text(self.banks))

    def _repr_html_(self) -> str:
        return self.svg() + banks_figure(self.buffer, self.banks)

    def beside(self, other: AccessPicture) -> SideBySide:
        """Both pictures, this one first."""
        return SideBySide((self, other))

    def svg(self) -> str:
        """The elements as a grid, in the colour of the first iteration that touches them, those of one iteration as a box; point
        at it for its indices."""
        grid, size = self._grid(_ROWS), 9
        parts = [svg_text(8, 16, f"{self.buffer} by {self.loop}", font_weight="bold"), svg_text(8, 32, self.summary)]
        top = 44
        edge = {"stroke": "currentColor", "stroke_opacity": "0.15"}
        for y, x, down, across, iteration in grid.boxes():
            last = f" to {self.buffer}{grid.index(y + down - 1, x + across - 1)}" if down * across > 1 else ""
            title = f"{self.buffer}{grid.index(y, x)}{last}" + (
                f": {self.loop} = {iteration}" if iteration >= 0 else ""
            )
            fill = _colour(iteration, len(self.touched)) if iteration >= 0 else "none"
            parts.append(svg_box(8 + x * size, top + y * size, across * size - 1, down * size - 1, fill, title, **edge))
        below = top + size * len(grid.cells) + 16
        shown = sorted({i for row in grid.cells for i in row if i >= 0})
        for n, iteration in enumerate(shown[:: max(1, -(-len(shown) // 12))]):
            parts.append(svg_box(8 + 44 * n, below - 9, 9, 9, _colour(iteration, len(self.touched))))
            parts.append(svg_text(21 + 44 * n, below, str(iteration), font_size="11"))
        parts.append(svg_text(8, below + 16, grid.note, font_size="11"))
        return svg_figure(max(640, 7 * len(self.summary)), below + 24, *parts)

    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """Every element that is touched, and the first iteration that touches it."""
        import numpy as np

        iterations = np.repeat(np.arange(len(self.touched)), [len(elements) for elements in self.touched])
        elements, at = np.unique(np.concatenate([*self.touched, np.zeros(0, int)]), return_index=True)
        return elements, iterations[at]

    def _grid(self, most_rows: int) -> _Grid:
        """The smallest box of what is touched, as rows of cells: the last axis runs to the right, the others down."""
        import numpy as np

        elements, first = self._first()
        if not len(elements):
            return _Grid([], (0,) * len(self.shape), (1,) * len(self.shape), 1, 1)
        places = np.stack(np.unravel_index(elements, self.shape), axis=-1)
        low, high = places.min(axis=0), places.max(axis=0) + 1
        box = tuple(int(n) for n in high - low)
        flat = np.ravel_multi_index(tuple((places - low).T), box)
        wide = _wide(box)
        high_rows = -(-prod(box) // wide)
        across, down = -(-wide // _COLUMNS), -(-high_rows // most_rows)
        cells = np.full((-(-high_rows // down), -(-wide // across)), len(self.touched))
        np.minimum.at(cells, (flat // wide // down, flat % wide // across), first)
        cells[cells == len(self.touched)] = -1
        return _Grid(cells.tolist(), tuple(int(n) for n in low), box, across, down)


@dataclass(frozen=True)
class _Grid:
    """``cells`` has the first iteration of each, -1 for none; a cell stands for ``across`` by ``down`` elements of a
    ``box`` that begins at ``low``."""

    cells: list[list[int]]
    low: tuple[int, ...]
    box: tuple[int, ...]
    across: int
    down: int

    def boxes(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Boxes of cells that have the same iteration: the first row and column, the numbers of them, the iteration. Runs in
        a row, and the same run in rows below each other."""
        begun: dict[tuple[int, int, int], int] = {}  # column, number of columns and iteration, by the row it begins in
        for y, row in enumerate([*self.cells, []]):
            runs: list[tuple[int, int, int]] = []
            for iteration, same in groupby(row):
                runs.append((sum(run[1] for run in runs), len([*same]), iteration))
            for run in [run for run in begun if run not in runs]:
                first = begun.pop(run)
                yield first, run[0], y - first, run[1], run[2]
            for run in runs:
                begun.setdefault(run, y)

    @property
    def note(self) -> str:
        if not self.cells:
            return "nothing of it is touched"
        box = ", ".join(f"{a}:{a + n}" for a, n in zip(self.low, self.box))
        merged = f"; a cell is {self.down} x {self.across} elements" if self.across * self.down > 1 else ""
        return f"shown: [{box}]{merged}"

    def index(self, y: int, x: int) -> list[int]:
        """The first element of a cell."""
        wide = _wide(self.box)
        number = y * self.down * wide + x * self.across
        found: list[int] = []
        for low, size in zip(reversed(self.low), reversed(self.box)):
            found.insert(0, low + number % size)
            number //= size
        return found


class SideBySide(tuple["AccessPicture", ...]):
    """Pictures next to each other: one layout and another, or before and after a step."""

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        parts = "".join(f"<div>{picture._repr_html_()}</div>" for picture in self)
        return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{parts}</div>'


def _wide(box: Sequence[int]) -> int:
    """The elements in a row of the grid; a vector is wrapped."""
    return box[-1] if len(box) > 1 else min(*box, _COLUMNS)


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"


def _letter(iteration: int) -> str:
    return "." if iteration < 0 else _LETTERS[iteration % len(_LETTERS)]


def _colour(iteration: int, count: int) -> str:
    """Mid-tones around the wheel, legible on white and on black."""
    return f"hsl({(210 + 300 * iteration / max(count, 1)) % 360:.0f},55%,52%)"


def access_picture(state: State, buffer: str, loop: Any = None, at: Mapping[str, int] | None = None) -> AccessPicture:
    """The picture of ``buffer`` by ``loop``, see ``Schedule.access_picture``."""
    mine = [e for e in effects(state.func.body).located() if e.buffer.name == buffer]
    if not mine:
        names = sorted({e.buffer.name for e in effects(state.func.body)})
        raise ScheduleError(f"no access to a buffer `{buffer}`; there are {', '.join(names)}")
    ref = _loop(state, mine[0], loop)
    inside = [e for e in mine if any(var is ref.var for var, _, _ in e.loops)]
    if not inside:
        raise ScheduleError(f"loop `{label(state, ref)}` does not touch `{buffer}`")
    count = _constant(ref.node.extent, f"loop `{label(state, ref)}`")
    fixed = _fixed(state, ref, at or {})
    found = inside[0].buffer
    touched = _touched(inside, ref, count, fixed)
    shape = tuple(_constant(n, f"`{buffer}`") for n in found.shape)
    return AccessPicture(
        buffer,
        shape,
        label(state, ref),
        {v.name: n for v, n in fixed.items()},
        touched,
        tuple(_cache_lines(elements, found, shape) for elements in touched),
        bank_accesses(state, buffer),
    )


def _loop(state: State, effect: Effect, loop: Any) -> LoopRef:
    """The loop asked for; else the outermost around the first access."""
    if loop is not None:
        return state.find_loop(loop)
    refs = {ref.var: ref for ref in state.index.loops.values()}
    around = [refs[var] for var, _, _ in effect.loops if var in refs]
    if not around:
        raise ScheduleError(f"`{effect.buffer.name}` is accessed outside of all loops")
    return around[0]


def _fixed(state: State, ref: LoopRef, at: Mapping[str, int]) -> dict[Any, int]:
    """The iteration at which each loop around ``ref`` is held: the one asked for, else its first."""
    around = [p for p in reversed(list(ref.ancestors())) if isinstance(p, LoopRef) and p is not ref]
    unknown = set(at) - {p.name for p in around}
    if unknown:
        names = ", ".join(p.name for p in around) or "none"
        raise ScheduleError(f"no loop {', '.join(sorted(unknown))} around `{label(state, ref)}`; around it are {names}")
    made = {}
    for p in around:
        low = p.node.min.value if isinstance(p.node.min, IntImm) else 0
        made[p.var] = at.get(p.name, low)
    return made


def _touched(found: Sequence[Effect], ref: LoopRef, count: int, fixed: Mapping[Any, int]) -> tuple[np.ndarray, ...]:
    import numpy as np

    first = ref.node.min.value if isinstance(ref.node.min, IntImm) else 0
    pairs: list[Any] = []
    for effect in found:
        shape = tuple(_constant(n, f"`{effect.buffer.name}`") for n in effect.buffer.shape)
        points = points_of(effect, fixed, (ref.var,))
        flat = sum((i * prod(shape[k + 1 :]) for k, i in enumerate(points.indices)), start=np.zeros(points.count, int))
        pairs.append(np.stack([points.values[ref.var] - first, flat], axis=-1))
    every = np.unique(np.concatenate(pairs), axis=0)
    ends = np.searchsorted(every[:, 0], np.arange(count + 1))
    return tuple(every[a:b, 1] for a, b in zip(ends, ends[1:]))


def _cache_lines(elements: Any, buffer: Buffer, shape: tuple[int, ...]) -> int:
    import numpy as np

    strides = [_constant(s, f"`{buffer.name}`") for s in buffer.strides] or [
        prod(shape[k + 1 :]) for k in range(len(shape))
    ]
    places = sum(
        (i * s for i, s in zip(np.unravel_index(elements, shape), strides)), start=np.zeros(len(elements), int)
    )
    return len(np.unique(places * buffer.dtype.bytes // LINE))


def _constant(size: Any, what: str) -> int:
    if not isinstance(size, IntImm):
        raise ValueError(f"{what} has the size `{size!r}`: a picture needs constant sizes")
    return size.value
