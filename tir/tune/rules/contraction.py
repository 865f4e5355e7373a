"""Products summed over an axis (matrix products, einsums, convolutions): a tile of the result in registers.

The loops are those of every fast matrix product: panels of one operand, packed as they will be read, stay in half of the
L2 cache; a tile of the result is summed in registers over the whole reduction, and stored once, with what follows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any

from ...arith.index_map import IndexMap
from ...buffer import Buffer
from ...expr import BufferLoad, Expr
from ...intrin import x86
from ...node import cached_property
from ...schedule import BlockRV, LoopRV, Schedule
from ...stmt import BufferStore
from ...target import LINE, streams
from ...visit import walk
from ..contracted import THIN, Contraction
from ..core import parts_of
from ..machine import measured
from ..nest import Axis, Nest, epilogue, extent_of, is_padding, is_view, usual, volume
from ..space import Env, Fork, accepted, block_names, choose, rule
from ..tile_costs import CONFLICT, any_columns, any_rows_cost, collide, straight_steps, tile_cost, uneven
from ..turning import in_tiles, turn_tiles
from ..versions import LONG
from .reductions import AHEAD, adds_bytes
from .spatial import padded_by_rows, share_out

NARROWER = 1.03  # times as long as its columns take where the last panel is narrower, and has loops of its own
CHUNKS = 4  # times as many chunks of terms as are needed, at most, to find as many terms for each
STREAMED = 4  # panels at a time where the result is stored past the caches


@rule(targets=("llvm",), order=40)
def contraction(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Tile a contraction for registers and caches; one fork for each width of the panels, the cheapest first."""
    nest = Nest.in_steps(sch, block)
    found = nest and Contraction.of_pairs(nest)
    if not nest or not found or not found.rows or found.is_of_few_rows or adds_bytes(nest, env):
        return []
    if found.is_of_few_terms and epilogue(sch, found.nest) is None:
        return []
    found = replace(found, gather=gathered(sch, found))
    lanes = env.lanes(found.nest.stores[0].buffer.dtype.bits)
    if found.lane.size * 2 < lanes:
        return []
    if found.lane.size * 2 <= lanes or not found.is_packable:  # half of a padded vector would be empty, or none can be
        lanes = min(lanes, found.lane.size)
    counts = [n for n in (1, 2, 3, 4) if (n - 1) * lanes < found.lane.size]
    if found.is_of_digits and found.lane.size % lanes:
        lanes = gcd(lanes, found.lane.size)
        counts = [n for n in counts if found.lane.size % (n * lanes) == 0]
    made = [Tiling.of(found, vectors, lanes, env) for vectors in counts]
    ordered = sorted((t for t in made if t is not None), key=lambda t: t.cost)
    return [fork for t in ordered for fork in t.forks(sch)]


@dataclass(frozen=True)
class Tiling:
    """How a contraction is tiled: panels of ``vectors`` vectors, and ``tiles`` of rows (high * 64 + wide) to choose from."""

    found: Contraction
    env: Env
    lanes: int
    vectors: int
    tiles: tuple[int, ...]
    costs: tuple[float, ...]

    @staticmethod
    def of(found: Contraction, vectors: int, lanes: int, env: Env, unit: int = 1) -> Tiling | None:
        """The tilings with panels of ``vectors`` vectors; None if there are none. Columns are padded to multiples of ``unit`` vectors."""
        registers = env.vectors.count
        above, row = ([1, 1, *(a.size for a in found.rows)])[-2:]
        heights = (1, 2) if above > 1 and row < 14 else (1,)
        tiles = [
            high * 64 + wide
            for high in heights
            for wide in range(1, 15)
            if high * wide * vectors + vectors + 1 < registers and wide <= row and high <= above
        ]
        size, width, parts, least = found.lane.size, vectors * lanes, 1, 1
        panels: list[tuple[float, int]]
        if found.lane.extent is None and size >= LONG:
            # fewer columns, or fewer rows beside them, have a version of their own, unless there are constants
            least = 1 if found.nest.constants else LONG
            panels, parts = [(any_columns(size, least, width), vectors)], parts_of(measured(env.target), env)
        else:  # the last panel has as many vectors as are left
            full, rest = divmod(-(-size // (unit * lanes)) * unit, vectors)
            panels = [(n * lanes, each) for n, each in ((full * vectors, vectors), (rest, rest)) if n]
        padded = sum(columns for columns, _ in panels)
        lines = 1 + Tiling(found, env, lanes, vectors, (), ()).loads_across
        reading = tuple(padded * n for n in found.reading(env))

        def strip(wide: int, high: int, size: int) -> float:
            rows = [(size, wide), (above, high)]
            total = sum(tile_cost(rows, n, each, padded > found.lane.size, parts, lines) for n, each in panels)
            conflict = CONFLICT if found.has_conflicts(wide, high) else 1.0
            return total * conflict * (NARROWER if len(panels) > 1 else 1.0)

        def cost(wide: int, high: int) -> float:
            """Of a symbolic number of rows, the last ask in each step whether they are there, which takes as long as a multiply-add."""
            if all(a.extent is not None for a in found.rows[-1:]):
                return strip(wide, high, row)
            asked = padded * -(-above // high) * high / vectors
            return any_rows_cost(
                row, [strip(n, high, n) for n in range(1, wide + 1)], asked, reading, least if row >= LONG else 1
            )

        costs = [cost(t % 64, t // 64) for t in tiles]
        return Tiling(found, env, lanes, vectors, tuple(tiles), tuple(costs)) if tiles else None

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def panels(self) -> int:
        return -(-self.found.lane.size // self.width)

    @cached_property
    def is_packed(self) -> bool:
        """Whether panels are copied before use: if enough rows use each, and they would not stay in L1 anyway."""
        found = self.found
        if not found.is_packable or found.is_constant:
            return found.is_packable
        if found.gather or found.panel.stride(found.lane.var) != 1:
            return True
        return volume(found.rows) > THIN and not self.stays_near

    @property
    def loads_across(self) -> bool:
        """Whether the vectors of panels may lie in two lines each: they are read in place."""
        panel, step = self.found.panel, self.found.panel.stride(self.found.terms[-1].var) or 0
        return not self.is_packed and self.found.nest.crosses_lines(panel.buffer, step)

    @property
    def stays_near(self) -> bool:
        """Whether the whole panels would stay in L1, for the most part, without being packed."""
        size = self.found.element * volume(self.found.terms) * self.found.lane.size
        return 2 * size <= 3 * self.env.machine.sizes["L1"]

    @property
    def strides_across(self) -> bool:
        """Whether ``other`` lies across its terms (a transposed left operand): each would be on a page of its own, so
        that it is transposed before use."""
        found = self.found
        (row, i), (term, p) = ((found.other.stride(a.var), a.var) for a in (found.rows[-1], found.terms[-1]))
        far = row == 1 and (term or 0) * found.other.buffer.dtype.bytes >= LINE
        return self.is_packed and far and {i, p} <= found.other.places.keys()

    @cached_property
    def shared(self) -> str:
        """The loops that run in parallel: "batch", "rows", "panels" or "" (one core): the first that give threads equal shares, to a tenth."""
        if self.env.threads < 2 or self.found.operations < self.env.parallel_from:
            return ""
        return min(self._shares, key=lambda name: round(self._shares[name], 1))

    @cached_property
    def _shares(self) -> dict[str, float]:
        """How many times the work of the average thread the busiest has, by the loops that may run in parallel. So many rows that each
        thread may read all panels go before panels: kernels before and after share rows out, too, and a core reads what another has
        written more slowly than panels, which are read ahead."""
        found, cores = self.found, self.env.threads
        shares = {
            "batch": uneven(volume([*found.batch, *found.columns]), cores),
            "rows": min(uneven(n, cores) for n in self._strips),
            "panels": uneven(self.panels, cores),
        }
        if self.panels >= cores and (volume(found.rows) < cores * THIN or any(a.extent is None for a in found.rows)):
            del shares["rows"]
        return shares

    @property
    def _strips(self) -> list[int]:
        """The tiles of rows along each of their axes, with the tile that costs least."""
        tile = self.tiles[self.costs.index(min(self.costs))]
        tiles = [*(1 for _ in self.found.rows), tile // 64, tile % 64][-len(self.found.rows) :]
        return [-(-a.size // n) for a, n in zip(self.found.rows, tiles)]

    @property
    def cost(self) -> float:
        """The cost of the best tile, for the busiest thread."""
        return min(self.costs) * (self._shares[self.shared] if self.shared else 1.0)

    @property
    def streams(self) -> bool:
        """Whether the result is stored past the caches: it is large, and there is little work for each element."""
        found = self.found
        is_thin = volume(found.terms) <= THIN and found.lane.size % self.lanes == 0
        least = prod(a.extent or 1 for a in found.nest.spatial)
        return is_thin and streams(least, found.nest.stores[0].buffer.dtype.bytes, self.env.target)

    def together(self) -> list[int]:
        """How many panels may be used at a time, best first: those in half of the L2 cache, in groups of equal size; where they are
        read in place and stay near, all of them, so that a tile of rows is read once and whole rows of the result are stored."""
        if not self.is_packed:
            is_whole = self.stays_near and self.shared != "panels" and self.found.lane.fills(self.panels * self.width)
            return [self.panels, 1] if is_whole and self.panels > 1 else [1]
        one = self.found.element * volume(self.found.terms) * self.width
        cores = self.env.threads if self.shared == "panels" else 1
        fitting = max(1, min(self.env.machine.sizes["L2"] // 2 // one, self.panels // cores))
        sizes = [f for f in range(1, min(fitting, self.panels) + 1) if self.panels % f == 0 or f * 2 > fitting]
        full = [f for f in sizes if f * 2 > fitting and self.panels % f == 0]  # no group asks which panels it has
        best = max(sizes, key=lambda f: (-uneven(-(-self.panels // f), cores), f in full, f))
        best = min(best, STREAMED) if self.streams else best
        if self._stays_beside_panel:
            best = 1
        return [best, *(f for f in (2 * best, best // 2) if 0 < f <= self.panels)]

    @property
    def _stays_beside_panel(self) -> bool:
        """Whether what is used with each panel stays in the L2 cache, and so does a panel from when it is packed, alone: of a matrix that is not
        much larger than that cache, as lines of a panel are short to read from beyond it."""
        found, cache = self.found, self.env.machine.sizes["L2"]
        other = found.other.buffer.dtype.bytes * volume([*found.rows, *found.terms])
        panel = found.element * volume([*found.columns, found.lane, *found.terms])
        return (
            other * 2 <= cache if found.gather else not found.is_constant and other * 4 <= cache and panel <= cache * 2
        )

    @property
    def _chunk(self) -> tuple[Axis, int] | None:
        """The terms to sum in chunks of which a panel stays in half of the L2 cache, and how many there are in a chunk; None if whole
        panels stay there, or would be used by few rows."""
        found, half = self.found, self.env.machine.sizes["L2"] // 2
        one = found.element * volume(found.terms) * self.width
        longest = max(found.terms, key=lambda a: a.size)
        if one <= half or not self.is_packed or found.nest.in_time or volume(found.rows) <= THIN:
            return None
        least = -(-one // half)
        count = next((n for n in range(least, CHUNKS * least + 1) if longest.fills(n)), 0)
        return (longest, longest.size // count) if count and longest.var in found.panel.places else None

    def forks(self, sch: Schedule) -> list[Fork]:
        """The schedule in chunks, if panels are too large otherwise, and in one."""
        whole, chunk = (lambda: self.apply(sch.copy())), self._chunk
        return [whole] if chunk is None else [lambda: self._in_chunks(sch.copy(), *chunk), whole]

    def _in_chunks(self, sch: Schedule, axis: Axis, size: int) -> Schedule:
        """The schedule with partial sums of ``size`` terms along ``axis`` in registers, which are added to the result."""
        found, name = self.found, self.found.nest.name
        if self.strides_across:
            self._transpose(sch)
        copy = sch.cache_read(name, found.panel.buffer.name, "global", consumer_blocks=[name])
        place = found.panel.places[axis.var]
        if found.gather:
            sch.compute_inline(found.gather)
        outer, _ = sch.split(axis.loop, [None, size])
        sums = sch.rfactor(outer, 0)

        def split(*at: Expr) -> tuple[Expr, ...]:
            return (*at[:place], at[place] // size, at[place] % size, *at[place + 1 :])

        sch.transform_layout(copy, ("write", 0), split)
        nest = Nest.of(sch, sums.name)
        made = nest and Contraction.of_pairs(nest)
        assert made is not None
        chunks = tuple(a for a in made.batch if made.nest.stores[0].places[a.var] == 0)
        return replace(self, found=replace(made, gather=copy.name, chunks=chunks)).apply(sch)

    def apply(self, sch: Schedule) -> Schedule:
        """The schedule, with its choices at their best values."""
        found = self.found
        name = found.nest.name
        pack, store = self._stages(sch)
        if self.strides_across:
            self._transpose(sch)
        groups = self.together()
        together = choose(sch, groups, [1 + 0.1 * n for n in range(len(groups))])
        *outer_rows, row = found.rows
        jc, jr, jv, lane = sch.split(found.lane.loop, [None, together, self.vectors, self.lanes])
        *outer_terms, term = (a.loop for a in found.terms)
        batch = [a.loop for a in (*found.batch, *found.columns)]
        rows = [a.loop for a in found.rows]
        around = [*(a.loop for a in found.chunks), jc]
        sch.reorder(*batch, *around, *rows, jr, *outer_terms, term, jv, lane)
        if found.nest.stores[0].buffer.scope != "local":
            sch.set_scope(name, 0, "local")
        sch.vectorize(lane)
        tile = choose(sch, self.tiles, self.costs)
        strips, inner_rows = self._tile(sch, rows, tile)
        own = [self._own_rows(sch, strips)] if self.shared == "rows" else []
        sch.reorder(*own, *(around if own else []), *strips, jr, *outer_terms, term, *inner_rows, jv)
        sch.reverse_compute_at(store, jr, preserve_unit_loops=True)
        if not self.shared and prod(extent_of(sch, loop) for loop in (*around, *batch)) == 1:
            sch = padded_by_rows(sch, found.nest, found.other, strips, self.env)
        init = sch.decompose_reduction(name, [*outer_terms, term][0])
        inner_init = sch.get_loops(init)
        for loop in (*inner_rows, jv, *inner_init[inner_init.index(jr) + 1 : -1]):
            sch.unroll(loop)
        self._store(sch, store, jr)
        if pack is not None:
            at_once = self.shared == "rows" or found.nest.in_time or found.is_constant
            self.pack(sch, pack, None if at_once else jc)
        shared = {"batch": batch, "panels": [jc], "rows": own, "": []}[self.shared]
        share_out(sch, shared, found.operations, self.env)
        far = self._far_panels(sch, pack)  # lines of several steps requested at once would wait for each other
        each = (tile // 64) * (tile % 64) * self.vectors
        steps = [1] if far or found.terms[-1].extent is None else straight_steps(found.terms[-1].size, each)
        around, inner = sch.split(term, [None, choose(sch, steps, [1 + 0.1 * n for n in range(len(steps))])])
        sch.unroll(inner)  # chosen last: schedules that differ in nothing else have all other steps in common
        if far:
            self._read_ahead(sch, far, around)
        return sch

    def _tile(self, sch: Schedule, rows: list[LoopRV], tile: Any) -> tuple[list[LoopRV], list[LoopRV]]:
        """Split rows into the loops around a tile of registers and those in it."""
        *outer, row = rows
        io, ii = sch.split(row, [None, tile % 64])
        if not outer or self.tiles[-1] < 128:
            return [*outer, io], [ii]
        yo, yi = sch.split(outer[-1], [None, tile // 64])
        return [*outer[:-1], yo, io], [yi, ii]

    def _own_rows(self, sch: Schedule, strips: list[LoopRV]) -> LoopRV:
        """Split one of the loops over tiles of rows into what each thread has; returns the loop over threads."""
        cores = self.env.threads
        at = min(range(len(strips)), key=lambda n: uneven(extent_of(sch, strips[n]), cores))
        own, strips[at] = sch.split(strips[at], [None, -(-extent_of(sch, strips[at]) // cores)])
        return own

    def _far_panels(self, sch: Schedule, pack: BlockRV | None) -> Buffer | None:
        """Panels that were packed before the call, and come from beyond the L2 cache."""
        if pack is None or not self.found.is_constant:
            return None
        panels = sch.get(pack).writes[0].buffer
        return panels if prod(map(usual, panels.shape)) * self.found.element > self.env.machine.sizes["L2"] else None

    def _read_ahead(self, sch: Schedule, panels: Buffer, loop: LoopRV) -> None:
        """Request ``panels`` :data:`AHEAD` bytes before the iterations of ``loop`` take them."""
        name = sch.get(sch.get_child_blocks(loop)[0]).name
        taken = self.width * self.found.element * self.found.terms[-1].size // extent_of(sch, loop)
        request = (loop, name, panels.name, max(1, AHEAD // taken))
        accepted(sch.prefetch, *request)

    def _stages(self, sch: Schedule) -> tuple[BlockRV | None, BlockRV]:
        """The block that packs panels, if they are packed, and the block that stores a tile of the result."""
        found, name = self.found, self.found.nest.name
        after = sch.get_consumers(name)[0].name if found.chunks else epilogue(sch, found.nest)
        pack = store = None
        is_any = found.lane.extent is None  # of any number of columns, the last panel has as many vectors as are left
        if not found.lane.fills(self.lanes) and found.is_packable and (self.is_packed or is_any):
            pack, store = padded(sch, found, self.lanes)
            if after is not None:
                sch.compute_inline(store)
            if not self.is_packed:
                sch.compute_inline(pack)
                pack = None
        elif self.is_packed:
            pack = sch.cache_read(name, found.panel.buffer.name, "global", consumer_blocks=[name])
        if pack is not None and found.gather:
            sch.compute_inline(found.gather)
        if after is not None:
            store = sch.get_block(after)
        elif store is None:
            store = sch.cache_write(name, 0, "local")
        return pack and self.laid_out(sch, pack), store

    def _transpose(self, sch: Schedule) -> None:
        """Copy ``other`` with its terms side by side; how is left to the rule of transposes."""
        found = self.found
        places = found.other.places
        row, term = places[found.rows[-1].var], places[found.terms[-1].var]
        order = list(range(len(found.other.indices)))
        order[row], order[term] = term, row
        copy = sch.cache_read(found.nest.name, found.other.buffer.name, "global", consumer_blocks=[found.nest.name])
        swapped = IndexMap.from_func(lambda *point: tuple(point[n] for n in order), ndim=len(order))
        sch.transform_layout(copy, ("write", 0), swapped)

    def layout(self) -> IndexMap:
        """Where an element of the panel operand is packed: panels outside of the terms, the lanes of a panel inside."""
        found, width, places = self.found, self.width, self.found.panel.places
        outer = [places[a.var] for a in (*found.chunks, *found.batch, *found.columns) if a.var in places]
        terms = [places[a.var] for a in found.terms if a.var in places]
        lane = places[found.lane.var]

        def packed(*point: Expr) -> tuple[Expr, ...]:
            return (*(point[n] for n in outer), point[lane] // width, *(point[n] for n in terms), point[lane] % width)

        return IndexMap.from_func(packed, ndim=len(found.panel.indices))

    def laid_out(self, sch: Schedule, pack: BlockRV) -> BlockRV:
        """Let what ``pack`` copies be laid out in panels. Returns the block that stores these."""
        if self._turns:
            found = self.found
            return in_tiles(sch, pack, found.nest.name, self.layout(), found.terms[-1].fills(self.lanes))
        sch.transform_layout(pack, ("write", 0), self.layout())
        return pack

    def pack(self, sch: Schedule, pack: BlockRV, at: LoopRV | None) -> None:
        """Pack the panels of a group under ``at``, or all of them at once, in parallel."""
        if self._turns:
            outer = turn_tiles(sch, pack, at, self.found.panel.places[self.found.lane.var])
        else:
            outer = self._pack_vectors(sch, pack, at)
        if at is None:
            share_out(sch, outer, self.found.operations, self.env)

    def _pack_vectors(self, sch: Schedule, pack: BlockRV, at: LoopRV | None) -> list[LoopRV]:
        """Pack vectors of columns, or of terms that lie across columns, one element of each at a time. Returns the outer loops."""
        if at is not None:
            sch.compute_at(pack, at, preserve_unit_loops=True)
        loops = sch.get_loops(pack)[-len(self.found.panel.indices) :]
        lane = loops[self.found.panel.places[self.found.lane.var]]
        others = [loop for loop in loops if loop is not lane]
        if lane is loops[-1] or self.found.gather:
            panel, middle, inner = sch.split(lane, [None, self.vectors, self.lanes])
            if lane is not loops[-1]:
                sch.reorder(panel, *others, middle, inner)
            sch.vectorize(inner)
            sch.unroll(middle)
            return [panel, *others] if lane is not loops[-1] else [*others, panel]
        lo, li = sch.split(lane, [None, self.lanes])
        po, pi = sch.split(others[-1], [None, self.lanes])
        others = [lo, *others[:-1], po]
        sch.reorder(*others, pi, li)
        return others

    @property
    def _turns(self) -> bool:
        """Whether panels lie along the last terms, of which square tiles are turned in registers at each call."""
        found = self.found
        if found.is_constant or found.gather or found.panel.buffer.dtype not in x86.TRANSPOSE:
            return False
        along = found.panel.places.get(found.terms[-1].var) == len(found.panel.indices) - 1
        side, step = x86.TRANSPOSE[found.panel.buffer.dtype][0], usual(found.panel.step(found.lane.var))
        fits = side == self.lanes == self.env.lanes(found.nest.stores[0].buffer.dtype.bits)
        return along and fits and not collide({i * step * found.element // LINE for i in range(side)})

    def _store(self, sch: Schedule, store: BlockRV, at: LoopRV) -> None:
        """Store a tile of the result as vectors, in straight code."""
        loops = sch.get_loops(store)
        inner = loops[loops.index(at) + 1 :]
        for loop in inner[:-1]:
            sch.unroll(loop)
        _, middle, lane = sch.split(inner[-1], [None, self.vectors, self.lanes])
        sch.vectorize(lane)
        sch.unroll(middle)
        if self.streams:
            sch.annotate(loops[0], "pragma_nontemporal", sch.get(store).writes[0].buffer.name)


def padded(sch: Schedule, found: Contraction, width: int) -> tuple[BlockRV, BlockRV]:
    """Pad the lanes to multiples of ``width``. Returns the block that copies the panels and that which stores the result; what else has
    lanes, as what sums begin with, is padded where it is read."""
    before = block_names(sch)
    sch.pad_einsum(found.nest.name, [width if i.var is found.lane.var else 1 for i in found.nest.block.iter_vars])
    *copies, store = (n for n in block_names(sch) if n not in before)
    summed = {e.buffer for e in walk(sch.get(found.nest.name).body) if isinstance(e, BufferLoad)}
    made = ((n, sch.get(n)) for n in copies)
    (pack,) = (n for n, b in made if b.reads[0].buffer is found.panel.buffer and b.writes[0].buffer in summed)
    for copy in copies:
        if copy != pack:
            sch.compute_inline(copy)
    return sch.get_block(pack), sch.get_block(store)


def gathered(sch: Schedule, found: Contraction) -> str:
    """The block that copies the panels from somewhere else, if nothing else reads what it makes, and padded only if each element is
    read in one place."""
    producers = [p for p in sch.get_producers(found.nest.name) if sch.get(p).writes[0].buffer is found.panel.buffer]
    nest = Nest.of(sch, producers[0].name) if len(producers) == 1 else None
    if nest is None or not isinstance(nest.block.body, BufferStore):
        return ""
    axes = [a for a in found.nest.axes if found.panel.stride(a.var) != 0]
    if not is_view(nest.block.body.value) and not (is_padding(nest) and found.panel.is_injective(axes)):
        return ""
    return nest.name if len(sch.get_consumers(nest.name)) == 1 else ""
