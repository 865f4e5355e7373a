"""Sums over windows, such as depthwise convolutions and pools: tiles of columns and vectors in registers, which share the weights of
the window and read each element of the image once. What is padded is read in place, its borders apart; what is computed before is made
for strips of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

from ...buffer import Buffer
from ...expr import BufferLoad, IntImm, choice_parts
from ...node import cached_property
from ...schedule import LoopRV, Schedule
from ...target import LINE
from ...visit import uses_var, walk
from ..contracted import Contraction
from ..core import CLOSE
from ..nest import Access, Axis, Nest, epilogue, least, volume
from ..space import Env, Fork, accepted, choose, rule
from ..tile_costs import CONFLICT, collide
from ..turning import inside
from .inline import padded_in_place
from .reductions import adds_bytes, is_close, lies_along
from .sliding import with_shared_sums
from .spatial import asked_of, without_borders
from .strips import in_strips, split_rows, stages_before

WIDEST = 7  # columns of a tile
VECTORS = 4  # of a row of a tile
HEIGHTS = (2, 4)  # rows of a tile that a search may draw
FEWER = 1.3  # times as many lines from the L2 cache, for which tiles are of the fewest rows of these from the start
FOLLOWED = 6  # places of an image that are read at a time and that prefetching follows
STRAIGHT = 256  # vector operations of a window in straight code
MASKED = 9  # places of a window of which registers hold all masks


@rule(targets=("llvm",), order=34)
def windows(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Sum windows for a tile of the result at a time, with what follows; what is padded is read in place, or made for a strip of rows.
    Long windows share sums."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduction is None or nest.block.init is None or not nest.spatial or _is_product(nest):
        return []
    shared = with_shared_sums(sch, nest, env)
    if shared is not None:
        return [shared]
    if adds_bytes(nest, env):
        return []
    made = sch.copy()
    nest = padded_in_place(made, block)
    if nest is None or nest.reduction is None:
        return []
    if not _is_window(nest):
        return []
    *outer, along = nest.spatial
    narrow, *wider = (env.lanes(nest.width) >> k for k in (2, 1, 0))
    lanes = min((narrow, *wider), key=lambda n: -(-along.size // max(1, n)))
    if not lies_along(nest, along, narrow, is_close):
        return []
    stages = stages_before(made, nest)
    row = next((a for a, b in zip(outer, stages[-1].axes) if a.size < b.size), None) if stages else None
    if stages and row is None:
        return []
    column, *above = [a for a in reversed(outer) if a is not row and nest.slides_along(a)] or [None]
    tile = _Tile(nest, column, along, lanes, env)
    heights = [n for n in HEIGHTS if n < above[0].size] if above and row is None else []
    tiles = [tile, *(replace(tile, above=above[0], high=n) for n in heights)]
    if heights and tile.reads_again(tiles[1]):
        tiles[:2] = tiles[1::-1]
    return [partial(each.apply, made, stages, row) for each in tiles]


def _is_product(nest: Nest) -> bool:
    """Whether a nest is a contraction whose panels are packed, or shared by rows."""
    found = Contraction.of(nest)
    return found is not None and (found.is_packable or bool(found.rows))


def _is_window(nest: Nest) -> bool:
    """Whether neighbouring results read the same elements, results are stored one after another, and the sizes of windows are numbers."""
    slides = any(nest.slides_along(a) for a in nest.spatial)
    return slides and nest.contiguous() is nest.spatial[-1] and all(a.extent for a in nest.reduce)


def _results(sch: Schedule, nest: Nest) -> Sequence[str]:
    """The blocks that store the sums, which are in registers: an elementwise one that follows, or copies."""
    after = epilogue(sch, nest) if len(nest.stores) == 1 else None
    if after is None:
        return [sch.cache_write(nest.name, n, "local").name for n in range(len(nest.block.writes))]
    sch.set_scope(nest.name, 0, "local")
    return [after]


@dataclass(frozen=True)
class _Walk:
    """How an axis walks along an operand, if it ``moves`` there: the ``terms`` that do so too, ``size`` places, and how many of these a ``step`` of it is."""

    terms: Sequence[Axis] = ()
    size: int = 1
    step: int = 1
    moves: bool = False

    @staticmethod
    def of(nest: Nest, load: Access, axis: Axis | None) -> _Walk:
        index = None if axis is None else next((i for i in load.indices if uses_var(i, axis.var)), None)
        if axis is None or index is None:
            return _Walk()
        terms = [a for a in nest.reduce if load.stride(a.var) != 0 and uses_var(index, a.var)]
        each = min((abs(load.stride(a.var) or 1) for a in terms), default=1)
        stride = abs(load.stride(axis.var) or 0)
        return _Walk(terms, volume(terms), max(1, stride // each), stride > 0)

    def places(self, count: int) -> int:
        """How many places ``count`` of the axis and their windows reach."""
        return min(self.size * count, (count - 1) * self.step + self.size) if self.moves else 1


@dataclass(frozen=True)
class _Tile:
    """What is summed at a time: vectors of ``lanes`` along the last axis, some ``column``s by ``high`` places of the axis ``above``."""

    nest: Nest
    column: Axis | None
    along: Axis
    lanes: int
    env: Env
    above: Axis | None = None
    high: int = 1

    def apply(self, sch: Schedule, stages: Sequence[Nest], row: Axis | None) -> Schedule:
        """The schedule, with its choices at their best values; ``stages`` are made for strips of ``row``."""
        made, nest, column, along, env = sch.copy(), self.nest, self.column, self.along, self.env
        results = _results(made, nest)
        wide, vectors = self._chosen(made)
        outer = [a for a in nest.spatial if a is not along]
        around, tile, strips = [a.loop for a in outer if a is not column], list[LoopRV](), list[LoopRV]()
        if row is not None:
            strips, around = around[: outer.index(row)], around[outer.index(row) + 1 :]
            strip, within = split_rows(made, nest, row, stages, env)
            strips, around = [*strips, strip], [within, *around]
        if self.above is not None:
            at = around.index(self.above.loop)
            around[at], each = made.split(self.above.loop, [None, self.high])
            tile = [each]
        if column is not None:
            columns, each = made.split(column.loop, [None, wide])
            around, tile = [*around, columns], [*tile, each]
        place, middle, lane = made.split(along.loop, [None, vectors, self.lanes])
        terms = self._terms()
        window = [a.loop for a in terms]
        made.reorder(*strips, *around, place, *window, *tile, middle, lane)
        for result in results:
            made.reverse_compute_at(result, place, preserve_unit_loops=True)
            *others, last = inside(made, result, place)
            for loop in others:
                made.unroll(loop)
            _, each, part = made.split(last, [None, vectors, self.lanes])
            made.vectorize(part)
            made.unroll(each)
        for loop in (*tile, middle):
            made.unroll(loop)
        made.vectorize(lane)
        without_borders(made, nest, [a for a in nest.spatial if a not in self._masked])
        init = made.decompose_reduction(nest.name, window[0])
        *others, last = inside(made, init.name, place)
        made.vectorize(last)
        for loop in others:
            made.unroll(loop)
        for n, loop in enumerate(window):
            if volume(terms[n:]) * self.high * wide * vectors <= STRAIGHT:
                made.unroll(loop)
        in_strips(made, nest, stages, strips or [*around, place], env)
        rows = column if wide > 1 else self.above
        stored = [(result, made.get(result).writes[0].buffer) for result in results]
        for result, buffer in stored:
            if rows is not None and self._waits(buffer, rows, wide if rows is column else self.high):
                accepted(made.prefetch, place, result, buffer.name)
        return made

    def _waits(self, result: Buffer, rows: Axis, count: int) -> bool:
        """Whether vectors of ``count`` of the ``rows`` of a result may be stored to two lines of the cache, of which a core asks for the second one only when it writes
        it, unless it is requested before. Nothing waits where L1 holds the result and what it is made of, and nothing is gained where rows of arguments, which
        often begin at the same place of a page, push each other out of it."""
        nest, pitch = self.nest, self.nest.stores[0].stride(rows.var) or 0
        size = sum(least(b.shape) * b.dtype.bytes for b in {result, *(a.buffer for a in nest.loads)})
        given = sum(nest.is_given(a.buffer) and a.stride(rows.var) != 0 for a in nest.accesses)
        reach = min(rows.size, count - 1 + max(self._walk(a, rows).size for a in nest.loads))
        is_held = not collide({row * pitch * result.dtype.bytes // LINE for row in range(given * reach)})
        return size > self.env.machine.sizes["L1"] and is_held and nest.crosses_lines(result, pitch)

    @property
    def _masked(self) -> Sequence[Axis | None]:
        """The axes of which masks leave out what lies beyond the ends, at no cost: the code has a tile once then, not three times for each axis. For
        large windows these are the columns, as masks of rows, of which those of columns are made, would take too many registers."""
        asked, parts = asked_of(self.nest), map(choice_parts, walk(self.nest.block.body))
        loads = [part[1] for part in parts if part is not None]
        is_known = len(asked) == len(loads) and not any(uses_var(c, self.along.var) for c in asked)
        if not is_known or not all(isinstance(e, BufferLoad) and self.env.vectors.masks(e.dtype.bits) for e in loads):
            return []
        terms = [a for a in self.nest.reduce if any(uses_var(c, a.var) for c in asked)]
        return self.nest.spatial if volume(terms) <= MASKED else [self.column]

    def reads_again(self, higher: _Tile) -> bool:
        """Whether the rows of a window do not stay in half of L1, so that they come from the L2 cache for each row of results, which takes longer than
        the sums, and tiles of several rows ask it for much less."""
        nest, machine, above = self.nest, self.env.machine, higher.above
        rows = [
            abs(load.stride(term.var) or 0) * load.buffer.dtype.bytes * self._walk(load, above).places(1)
            for load in nest.loads
            for term in self._walk(load, above).terms
        ]
        if 2 * max(rows, default=0) <= machine.sizes["L1"]:
            return False  # without the lines of tiles, which take long to count
        reading = self._lines * LINE / machine.bandwidth["L2"]
        sums = 2 * self.lanes * volume(nest.reduce) / machine.peak
        return reading > sums and self._lines >= FEWER * higher._lines

    @property
    def _lines(self) -> float:
        """The lines that are loaded and stored for a vector of results."""
        wide, vectors = min(self._costs, key=self._costs.__getitem__)
        each = self.lanes * self.nest.width // 8 / LINE
        return each * (1 + sum(self._loads(a, wide, vectors) for a in self.nest.loads) / (self.high * wide * vectors))

    @cached_property
    def _costs(self) -> dict[tuple[int, int], float]:
        """What tiles of so many columns and vectors cost, of those that fit the registers: the instructions for all tiles."""
        most = min((self._abreast(a) for a in self.nest.loads), default=VECTORS)
        size, registers = 1 if self.column is None else self.column.size, self.env.vectors.count
        return {
            (wide, vectors): self._cost(wide, vectors)
            for wide in range(1, min(WIDEST, size) + 1)
            for vectors in range(1, most + 1)
            if vectors * (self.high * (wide + self._waiting(wide)) + 1) + 1 < registers
            and (vectors - 1) * self.lanes < self.along.size
        }

    def _chosen(self, sch: Schedule) -> tuple[int, int]:
        """The columns and vectors of a tile, a choice: those that cost least."""
        costs = self._costs
        first = min(costs, key=costs.__getitem__)
        wides = {w: min(costs[s] for s in costs if s[0] == w) for w, _ in costs}
        wide = choose(sch, list(wides), list(wides.values()))
        others = {v: costs.get((first[0], v), max(costs.values())) for _, v in costs}
        return wide, choose(sch, list(others), list(others.values()))

    @property
    def _step_along(self) -> int:
        return max((a.stride(self.along.var) or 0 for a in self.nest.loads), default=0)

    def _terms(self) -> list[Axis]:
        """The terms of a window, those last that columns share, as what they share then waits in registers for one step of these alone;
        in order where what is loaded has more than one term for a vector."""
        walked = [a for load in self.nest.loads for a in self._walk(load, self.column).terms]
        return sorted(self.nest.reduce, key=lambda a: self._step_along <= 1 and a in walked)

    def _waiting(self, wide: int) -> int:
        """The vectors of a row in registers beside sums: those from which all terms are picked, or what a step along the columns leaves to its neighbours."""
        if self._step_along > 1:
            return wide * self._step_along
        walks = [self._walk(a, self.column) for a in self.nest.loads]
        return (wide - 1) * max((min(w.step, w.size - w.step) for w in walks), default=0)

    def _cost(self, wide: int, vectors: int) -> float:
        """The instructions of all tiles along a row, times how much longer they take that read more places than prefetching follows, or places whose
        lines push each other out of L1."""
        cost = float(self._of_all(wide, vectors))
        for load in self.nest.loads if self.column is not None else ():
            way = self._walk(load, self.column)
            places = way.places(wide)
            each = (load.stride(self.column.var) or 0) * load.buffer.dtype.bytes // way.step
            cost *= self._reading if wide > 1 and places > FOLLOWED else 1.0
            is_known = isinstance(load.step(self.column.var), IntImm)  # rows of any length begin in any set
            cost *= CONFLICT if is_known and collide({n * each // LINE for n in range(places)}) else 1.0
        return cost

    @cached_property
    def _reading(self) -> float:
        """How many times as long as the sums it takes to read and store what the L2 cache does not hold: 1 where sums take longer."""
        nest, machine = self.nest, self.env.machine
        size = sum(least(b.shape) * b.dtype.bytes for b in {a.buffer for a in (*nest.loads, *nest.stores)})
        if size <= machine.sizes["L2"]:
            return 1.0
        level = "L3" if 2 * size <= machine.sizes["L3"] else "memory"  # others use half of L3
        sums = 2 * prod(a.extent or 1 for a in nest.axes) / machine.peak
        return max(1.0, size / machine.bandwidth[level] / sums)

    def _of_all(self, wide: int, vectors: int) -> int:
        """The instructions of all tiles along a row. Neighbouring vectors of a row are stored to a line more than they fill, if rows begin anywhere;
        one at a time where each asks for the ends of the row."""
        size = 1 if self.column is None else self.column.size
        whole, rest = divmod(-(-self.along.size // self.lanes), vectors)
        if rest and self.along.extent is None:
            whole, rest = whole + 1, 0  # masks leave out what is beyond the end
        each = whole * self._instructions(wide, vectors) + (self._instructions(wide, rest) if rest else 0)
        return -(-size // wide) * each

    def _instructions(self, wide: int, vectors: int) -> int:
        loads = sum(self._loads(load, wide, vectors) for load in self.nest.loads)
        return loads + self.high * wide * ((volume(self.nest.reduce) + 1) * vectors + self._crosses)

    @cached_property
    def _crosses(self) -> bool:
        """Whether rows of results begin anywhere, and none asks for the ends of the row."""
        nest, along = self.nest, self.along
        begins = [nest.stores[0].stride(a.var) or 0 for a in nest.spatial if a is not along]
        return any(b % self.lanes for b in begins) and not any(uses_var(c, along.var) for c in asked_of(nest))

    def _loads(self, load: Access, wide: int, vectors: int) -> int:
        """The vectors that a tile loads of an operand: neighbours along the columns share those of their windows."""
        step = load.stride(self.along.var) or 0
        across, down = self._walk(load, self.column), self._walk(load, self.above)
        walked = [*across.terms, *down.terms]
        rest = [a for a in self.nest.reduce if load.stride(a.var) != 0 and a not in walked]
        places = across.places(wide) * down.places(self.high)
        return places * volume(rest) * max(1, step) * (vectors if step else 1)

    def _abreast(self, load: Access) -> int:
        """The vectors of a row that are summed at a time, at most: those picked from about four others, which take registers, where no two
        share what is picked."""
        step = load.stride(self.along.var) or 0
        is_apart = step > 1 and self.lanes * step >= self._walk(load, self.along).places(1)
        return -(-CLOSE // step) if is_apart else VECTORS

    def _walk(self, load: Access, axis: Axis | None) -> _Walk:
        at = load.indices, axis and axis.var
        if at not in self._walks:
            self._walks[at] = _Walk.of(self.nest, load, axis)
        return self._walks[at]

    @cached_property
    def _walks(self) -> dict[Any, _Walk]:
        return {}
