"""Sums over windows, such as depthwise convolutions and pools: tiles of columns and vectors in registers, which share the weights of
the window and read each element of the image once. What is padded is read in place, its borders apart; what is computed before is made
for strips of rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...schedule import LoopRV, Schedule
from ...visit import uses_var
from ..model import CLOSE
from ..nest import Access, Axis, Nest, least, volume
from ..space import Env, rule
from .contraction import Contraction, epilogue
from .inline import padded_in_place
from .reductions import is_close, lies_along
from .sliding import with_shared_sums
from .spatial import asked_of, vectorize, without_borders
from .strips import in_strips, split_rows, stages_before

WIDEST = 7  # columns of a tile
VECTORS = 4  # of a row of a tile
ROWS = 6  # places of an image beyond the L2 cache that are read at a time: prefetching follows few
STRAIGHT = 256  # vector operations of a window in straight code


@rule(targets=("llvm",), order=34)
def windows(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Sum windows for a tile of the result at a time, with what follows; what is padded is read in place, or made for a strip of rows.
    Long windows share sums."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduction is None or nest.block.init is None or not nest.spatial or _is_product(nest):
        return []
    shared = with_shared_sums(sch, nest, env)
    if shared is not None:
        return [shared]
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
    column = next((a for a in reversed(outer) if a is not row and nest.slides_along(a)), None)
    results = _results(made, nest)
    wide, vectors = _tile(nest, column, along, lanes, env)
    around, tile = [a.loop for a in outer if a is not column], list[LoopRV]()
    strips = list[LoopRV]()
    if row is not None:
        strips, around = around[: outer.index(row)], around[outer.index(row) + 1 :]
        strip, within = split_rows(made, nest, row, stages, env)
        strips, around = [*strips, strip], [within, *around]
    if column is not None:
        columns, one = made.split(column.loop, [None, wide])
        around, tile = [*around, columns], [one]
    place, middle, lane = made.split(along.loop, [None, vectors, lanes])
    window = [a.loop for a in nest.reduce]
    made.reorder(*strips, *around, place, *window, *tile, middle, lane)
    for result in results:
        made.reverse_compute_at(result, place, preserve_unit_loops=True)
        *others, last = _inside(made, result, place)
        for loop in others:
            made.unroll(loop)
        vectorize(made, last, vectors * lanes, lanes, vectors)
    for loop in (*tile, middle):
        made.unroll(loop)
    made.vectorize(lane)
    without_borders(made, nest, nest.spatial)
    init = made.decompose_reduction(nest.name, window[0])
    *others, last = _inside(made, init.name, place)
    made.vectorize(last)
    for loop in others:
        made.unroll(loop)
    for n, loop in enumerate(window):
        if prod(a.size for a in nest.reduce[n:]) * wide * vectors <= STRAIGHT:
            made.unroll(loop)
    in_strips(made, nest, stages, strips or [*around, place], env)
    return [made]


def _is_product(nest: Nest) -> bool:
    """Whether a nest is a contraction whose panels are packed, or shared by rows."""
    found = Contraction.of(nest)
    return found is not None and (found.is_packable or bool(found.rows))


def _is_window(nest: Nest) -> bool:
    """Whether neighbouring results read the same elements, results are stored one after another, and all sizes but those of batches are numbers."""
    *outer, along = nest.spatial
    sliding = [a for a in nest.spatial if nest.slides_along(a)]
    is_known = all(a.extent for a in nest.axes if a not in outer or a in sliding)
    return bool(sliding) and nest.contiguous() is along and is_known


def _results(sch: Schedule, nest: Nest) -> Sequence[str]:
    """The blocks that store the sums, which are in registers: an elementwise one that follows, or copies."""
    after = epilogue(sch, nest) if len(nest.stores) == 1 else None
    if after is None:
        return [sch.cache_write(nest.name, n, "local").name for n in range(len(nest.block.writes))]
    sch.set_scope(nest.name, 0, "local")
    return [after]


def _inside(sch: Schedule, block: str, loop: LoopRV) -> list[LoopRV]:
    loops = sch.get_loops(block)
    return loops[loops.index(loop) + 1 :]


def _tile(nest: Nest, column: Axis | None, along: Axis, lanes: int, env: Env) -> tuple[int, int]:
    """The columns and vectors that are summed at a time: the fewest instructions for all tiles. Neighbouring vectors of a row are stored
    to a line more than they fill, if rows begin anywhere; one at a time where each asks for the ends of the row."""
    size = 1 if column is None else column.size
    far = [a for a in nest.loads if 2 * least(a.buffer.shape) * a.buffer.dtype.bytes > env.machine.sizes["L2"]]
    step = max((a.stride(along.var) or 0 for a in nest.loads), default=0)
    waiting = step if step > 1 else 0  # in registers, until all terms are picked from them
    most = min((_abreast(nest, a, along, lanes) for a in nest.loads), default=VECTORS)
    shapes = [(wide, vectors) for wide in range(1, min(WIDEST, size) + 1) for vectors in range(1, most + 1)]
    fitting = [
        (wide, vectors)
        for wide, vectors in shapes
        if wide * vectors * (1 + waiting) + vectors + 1 < env.vectors.count
        and (vectors - 1) * lanes < along.size
        and (wide == 1 or all(_places(nest, load, column, wide)[0] <= ROWS for load in far))
    ]

    begins = [nest.stores[0].stride(a.var) or 0 for a in nest.spatial if a is not along]
    crossing = any(b % lanes for b in begins) and not any(uses_var(c, along.var) for c in asked_of(nest))

    def instructions(wide: int, vectors: int) -> int:
        loads = sum(_loads(nest, load, column, along, wide, vectors) for load in nest.loads)
        return loads + (volume(nest.reduce) + 1) * wide * vectors + crossing * wide

    def of_all(shape: tuple[int, int]) -> int:
        wide, vectors = shape
        whole, rest = divmod(-(-along.size // lanes), vectors)
        return -(-size // wide) * (whole * instructions(wide, vectors) + (instructions(wide, rest) if rest else 0))

    return min(fitting, key=of_all)


def _abreast(nest: Nest, load: Access, along: Axis, lanes: int) -> int:
    """The vectors of a row that are summed at a time, at most: those picked from about four others, which take registers, where no two
    share what is picked."""
    step = load.stride(along.var) or 0
    return -(-CLOSE // step) if step > 1 and lanes * step >= _places(nest, load, along, 1)[0] else VECTORS


def _loads(nest: Nest, load: Access, column: Axis | None, along: Axis, wide: int, vectors: int) -> int:
    """The vectors that a tile loads of an operand: neighbours along the columns share those of their windows."""
    each = max(1, load.stride(along.var) or 0) * (vectors if load.stride(along.var) else 1)
    places, others = _places(nest, load, column, wide)
    return places * others * each


def _places(nest: Nest, load: Access, column: Axis | None, wide: int) -> tuple[int, int]:
    """How many places along the columns ``wide`` of them and their windows reach in an operand, and how many there are along other
    terms."""
    terms = [a for a in nest.reduce if load.stride(a.var) != 0]
    index = None if column is None else next((i for i in load.indices if uses_var(i, column.var)), None)
    if index is None or column is None:
        return 1, volume(terms)
    shared = [a for a in terms if uses_var(index, a.var)]
    step = abs(load.stride(column.var) or 0) // min((abs(load.stride(a.var) or 1) for a in shared), default=1)
    reach = min(volume(shared) * wide, (wide - 1) * max(1, step) + volume(shared))
    return reach, volume([a for a in terms if a not in shared])
