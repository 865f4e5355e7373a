"""Results whose contiguous axis is another one than that of what they load: square tiles, turned in registers."""

from __future__ import annotations

from functools import partial

from ...expr import BufferLoad
from ...intrin import x86
from ...schedule import LoopRV, Schedule
from ...stmt import BufferStore
from ...target import streams
from ..nest import Access, Axis, Nest, extent_of, volume
from ..space import Env, Fork, block_names, rule
from .spatial import share_out, vectorize

SIDE = 16  # of a tile: a vector of float32 each way
LINES = 64  # rows of a strip whose groups are stored side by side
GROUP = (4, 3, 2, 1)  # neighbouring tiles along both axes, best first: their rows share pages and cache lines


@rule(targets=("llvm",), order=60)
def transposes(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Go through a block in square tiles if it loads along one axis and stores along another."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or len(nest.spatial) < len(nest.axes) or len(nest.stores) != 1:
        return []
    contiguous = nest.contiguous()
    stored = contiguous and _stored(nest, contiguous)
    along = stored and _along(nest, stored)
    if stored is None or along is None or any(a.extent is None or a.size < SIDE for a in (stored, along)):
        return []
    if stored is not contiguous:
        return [partial(_interleaved, sch.copy(), nest, stored, along, env)]
    ways = (_turned, _tiled) if _is_copy(nest) and env.vectors.bits >= 256 else (_tiled,)
    return [partial(way, sch.copy(), nest, stored, along, env) for way in ways]


def _stored(nest: Nest, contiguous: Axis) -> Axis | None:
    """The axis along which a block stores: the contiguous one, or the next where that is short, such as the parts of complex
    numbers."""
    if contiguous.extent is None or contiguous.size >= SIDE:
        return contiguous
    store = nest.stores[0]
    return next((a for a in nest.spatial if a.size > 1 and store.stride(a.var) == contiguous.size), contiguous)


def _along(nest: Nest, stored: Axis) -> Axis | None:
    """The axis other than ``stored`` along which a load lies in memory; None if all is along one."""
    for load in nest.loads:
        along = next((a for a in nest.spatial if load.stride(a.var) == 1), None)
        if along is not None and along is not stored and load.stride(stored.var) != 0:
            return along
    return None


def _is_copy(nest: Nest) -> bool:
    """Whether a block copies elements, one for each pair of indices, of a type with an intrinsic."""
    body = nest.block.body
    if not isinstance(body, BufferStore) or not isinstance(body.value, BufferLoad):
        return False
    loaded = Access(body.value.buffer, body.value.indices)
    return body.value.dtype in x86.TRANSPOSE and all(len(a.places) == len(a.indices) for a in (loaded, *nest.stores))


def _turned(sch: Schedule, nest: Nest, stored: Axis, along: Axis, env: Env) -> Schedule:
    """Whole tiles by an instruction sequence; what is left over by vectors along the result."""
    side, intrinsic = x86.TRANSPOSE[nest.stores[0].buffer.dtype]
    around = [a.loop for a in nest.axes if a not in (stored, along)]
    sch.reorder(*around, stored.loop, along.loop)
    place = {i.var: n for n, i in enumerate(nest.block.iter_vars)}
    last = [place[a.var] for a in (stored, along)]
    order = [*(n for n in place.values() if n not in last), *last]  # as in the instruction sequence
    if order != sorted(order):
        sch.reorder_block_iter_var(nest.name, order)
    whole = [a.size // side * side for a in (stored, along)]
    before, left = block_names(sch), stored.loop
    if whole[0] < stored.size:
        left, _ = sch.loop_partition(stored.loop, [whole[0], None])
    if whole[1] < along.size:
        sch.loop_partition(sch.get_loops(nest.name)[-1], [whole[1], None])
        sch.fission(left)
    for name in (n for n in block_names(sch) if n not in before):
        *_, i, j = sch.get_loops(name)
        sch.reorder(j, i)
        sch.reorder(vectorize(sch, i, max(side, extent_of(sch, i)), side), j)  # lines are loaded once for all of j
    *around, i, j = sch.get_loops(nest.name)
    large = streams(volume(nest.axes), nest.width // 8)
    io, im, ii = sch.split(i, [None, _few(whole[0] // side, large), side])
    jo, jm, ji = sch.split(j, [None, _few(whole[1] // side, large), side])
    outer = (
        [io, jo] if large else [jo, io]
    )  # rows are read in order where lines of the result are stored past the caches
    sch.reorder(*outer, jm, im, ii, ji)
    if large:
        sch.annotate(outer[0], "pragma_nontemporal_lines", nest.stores[0].buffer.name)
    share_out(sch, [*around, *outer], nest.runs * nest.work, env)
    sch.tensorize(ii, intrinsic)
    return sch


def _few(tiles: int, large: bool) -> int:
    """Neighbouring tiles in a group."""
    return 1 if large else next(f for f in GROUP if tiles % f == 0)


def _tiled(sch: Schedule, nest: Nest, stored: Axis, along: Axis, env: Env) -> Schedule:
    """Vectors along the result, in tiles of which the loaded lines stay in the L1 cache."""
    outer: list[LoopRV] = [a.loop for a in nest.by_stride(nest.axes) if a not in (stored, along)]
    lanes = min(SIDE, env.lanes(nest.width))
    io, ii = sch.split(along.loop, [None, SIDE])
    jo, ji = sch.split(stored.loop, [None, lanes])
    sch.reorder(*outer, io, jo, ii, ji)
    sch.vectorize(ji)
    share_out(sch, [*outer, io, jo], nest.runs * nest.work, env)
    return sch


def _interleaved(sch: Schedule, nest: Nest, stored: Axis, along: Axis, env: Env) -> Schedule:
    """Groups of few elements that are stored side by side, in tiles of which the loaded lines stay in the L1 cache."""
    inner = [a for a in nest.by_stride(nest.axes) if a not in (stored, along)]
    group = inner.pop()
    outer = [a.loop for a in inner]
    strip, row = sch.split(stored.loop, [None, LINES])
    sch.reorder(*outer, strip, along.loop, row, group.loop)
    sch.unroll(group.loop)
    share_out(sch, [*outer, strip], nest.runs * nest.work, env)
    return sch
