"""The loop tree of a schedule: loops and blocks with their extents, kinds, regions and the bytes they touch, as text and
as a figure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import log2

from ..analysis.index import BlockRef, LoopRef
from ..cost.footprint import footprint
from ..cost.footprint_table import COLOURS, Level, number
from ..display import FAINT, YES, svg_box, svg_figure, svg_text, text_table
from ..expr import IntImm, Var
from ..render import short_text
from ..schedule.state import State, label
from ..stmt import SERIAL, BlockRealize, For

HEAD = ("loop or block", "extent", "kind", "touches", "held by", "regions")
# of loops by kind; loops bound to threads have the last one
KIND_COLOURS = {
    "serial": FAINT,
    "parallel": "#4c78a8",
    "vectorized": "#54a24b",
    "unrolled": "#b7791f",
    "threads": "#9d7bb5",
}


@dataclass(frozen=True)
class Row:
    """A loop or a block. ``label`` finds it again; ``depth`` counts the loops and blocks around it. ``kind`` of a loop is
    serial, parallel …, or the thread axis it is bound to; of a block, ``block``. ``touched`` has the bytes by buffer of
    all iterations of a loop, ``holds`` the cache that holds them; empty if sizes are not known."""

    label: str
    name: str
    depth: int
    kind: str
    extent: str = ""
    touched: Mapping[str, int] = field(default_factory=dict)
    holds: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    iterators: tuple[str, ...] = ()

    @property
    def is_block(self) -> bool:
        return self.kind == "block"

    @property
    def bytes(self) -> int:
        return sum(self.touched.values())

    @property
    def colour(self) -> str:
        return KIND_COLOURS.get(self.kind, KIND_COLOURS["threads"])

    @property
    def regions(self) -> str:
        """``C[vi, vj] = A[vi, vk], B[vk, vj]``: what a block writes and reads."""
        return " = ".join(", ".join(side) for side in (self.writes, self.reads) if side)


@dataclass(frozen=True, repr=False)
class LoopTree:
    """The rows of a loop tree in program order; prints as a table, in a notebook as a figure. ``svg()`` is the figure."""

    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        return text_table(HEAD, map(_cells, self.rows), right=(1, 3))

    def _repr_html_(self) -> str:
        return self.svg()

    def drawing(self, known: Collection[str] | None = None) -> str:
        """The nest alone as a figure, without bytes: what has a name that is not in ``known`` is framed as new."""
        wide = max([16 * row.depth + 8 * len(row.name) + 7 * len(_words(row)) for row in self.rows], default=0)
        parts = []
        for n, row in enumerate(self.rows):
            x, y = 12 + 16 * row.depth, 22 + 22 * n
            parts.append(svg_box(x, y - 11, 4, 14, "currentColor" if row.is_block else row.colour, row.kind))
            if known is not None and row.name not in known:
                frame = {"stroke": YES, "stroke_width": "1.5", "rx": "3"}
                parts.append(svg_box(x - 3, y - 14, 16 + 7.5 * len(row.name), 20, "none", "new", **frame))
            parts.append(svg_text(x + 10, y, row.name, font_weight="bold" if row.is_block else "normal"))
            more = {"font_family": "monospace", "font_size": "11"} if row.is_block else {"fill": row.colour}
            parts.append(svg_text(x + 18 + 7.5 * len(row.name), y, _words(row), **more))
        return svg_figure(40 + wide, 16 + 22 * len(self.rows), *parts)

    def svg(self) -> str:
        """A line for each loop and block: a bar as long as the logarithm of the bytes that a loop touches, in the colour of
        what holds them; a block's regions."""
        left, middle, step, span = 12, 300, 22, 240
        longest = max([row.bytes for row in self.rows], default=0)
        parts = []
        for n, row in enumerate(self.rows):
            x, y = left + 16 * row.depth, 26 + step * n
            parts.append(svg_box(x, y - 11, 4, 14, "currentColor" if row.is_block else row.colour, row.kind))
            parts.append(svg_text(x + 10, y, row.name, font_weight="bold" if row.is_block else "normal"))
            if row.is_block:
                parts.append(svg_text(middle, y, row.regions, font_family="monospace", font_size="11"))
                continue
            parts.append(svg_text(x + 18 + 7.5 * len(row.name), y, _extent_and_kind(row), fill=row.colour))
            if row.bytes:
                length = span * log2(row.bytes + 1) / log2(longest + 1)
                title = ", ".join(f"{name} {number(size, 'B')}" for name, size in row.touched.items())
                parts.append(svg_box(middle, y - 10, length, 12, COLOURS[row.holds], title))
                parts.append(svg_text(middle + length + 6, y, f"{number(row.bytes, 'B')}, {row.holds}", font_size="11"))
        text = max([6.7 * len(row.regions) for row in self.rows], default=0)
        return svg_figure(max(760, middle + text), 26 + step * len(self.rows), *parts)


def before_and_after(before: LoopTree, after: LoopTree) -> str:
    """Two loop nests next to each other as HTML; what is new is framed."""
    names = {row.name for row in before.rows}
    drawings = (before.drawing(), '<span style="align-self:center">→</span>', after.drawing(names))
    return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{"".join(drawings)}</div>'


def loop_tree(state: State) -> LoopTree:
    """The loop tree of the function worked on."""
    return LoopTree(tuple(rows(state, levels(state))))


def rows(state: State, known: Mapping[Var, Level]) -> Iterator[Row]:
    """Its rows, with the bytes of the loops whose footprint is known."""
    return (_row(state, state.index.place(n), known) for n in nodes_of(state))


def nodes_of(state: State) -> list[For | BlockRealize]:
    """The loops, and the realizes of blocks but the root, that the rows of a loop tree are about."""
    return [n for n in state.index.nodes if type(n) is For or state.index.place(n).scope is not None]


def levels(state: State) -> dict[Var, Level]:
    """The footprint of each loop; none where sizes are not known."""
    try:
        return {level.var: level for level in footprint(state.func, target=state.target).rows}
    except ValueError:
        return {}


def _row(state: State, place: LoopRef | BlockRef, levels: Mapping[Var, Level]) -> Row:
    depth = sum(isinstance(p, (LoopRef, BlockRef)) and p.scope is not None for p in place.ancestors())
    if isinstance(place, BlockRef):
        block = place.block
        iterators = tuple(
            f"{i.var.name} = {short_text(value)}" for i, value in zip(block.iter_vars, place.node.iter_values)
        )
        reads, writes = (tuple(short_text(r) for r in regions) for regions in (block.reads, block.writes))
        return Row(place.name, place.name, depth, "block", reads=reads, writes=writes, iterators=iterators)
    loop, level = place.node, levels.get(place.var)
    extent = str(loop.extent.value) if isinstance(loop.extent, IntImm) else short_text(loop.extent)
    touched = level.touched if level is not None else {}
    return Row(
        label(state, place), place.name, depth, loop.thread or loop.kind, extent, touched, level.holds if level else ""
    )


def _cells(row: Row) -> tuple[str, ...]:
    name = "  " * row.depth + row.name
    if row.is_block:
        return name, "", "block", "", "", row.regions
    size = number(row.bytes, "B") if row.bytes else ""
    return name, row.extent, "" if row.kind == SERIAL else row.kind, size, row.holds, ""


def _words(row: Row) -> str:
    """What a figure says of a row after its name."""
    return row.regions if row.is_block else _extent_and_kind(row)


def _extent_and_kind(row: Row) -> str:
    return row.extent if row.kind == SERIAL else f"{row.extent}  {row.kind}"
