"""Results whose contiguous axis is another one than that of what they load: square tiles, turned in registers."""

from __future__ import annotations

from functools import partial

from ...expr import BufferLoad, constant
from ...intrin import x86
from ...schedule import LoopRV, Schedule
from ...stmt import BufferStore
from ...target import LINE, streams
from ..nest import Access, Axis, Nest, continued, volume
from ..space import Env, Fork, accepted, block_names, rule
from ..tile_costs import collide
from ..turning import copied, written
from .flatten import join
from .spatial import share_out

SIDE = 16  # of a tile: a vector of float32 each way
LINES = 64  # rows of a strip whose groups are stored side by side
SHARED = 32 << 20  # bytes of L3: a larger one is one of many cores, and far: lines are requested before they are stored
# bytes of neighbouring tiles that are loaded and stored together, so that lines fetched in pairs are used while they are near; fewer are loaded where
# lines that are requested before they are stored push each other out of the L1 cache
LOADED, CROWDED, STORED = 256, 192, 128
PAGES = 64  # rows of a group that are loaded from, which may lie in as many pages: fewer than the first TLB has


@rule(targets=("llvm",), order=60)
def transposes(sch: Schedule, block: str, env: Env) -> list[Fork]:
    """Go through a block in square tiles if it loads along one axis and stores along another."""
    nest = Nest.of(sch, block)
    if nest is None or nest.reduce or len(nest.spatial) < len(nest.axes) or len(nest.stores) != 1:
        return []
    contiguous = nest.contiguous()
    if contiguous is None:
        return []
    ways: list[Fork] = []
    across = _along(nest, contiguous)
    if across and _is_copy(nest) and env.vectors.bits >= 256 and _fills(nest, contiguous) and _is_loaded(nest, across):
        ways.append(partial(_turned, sch.copy(), nest, contiguous, across, env))
    stored = _stored(nest, contiguous)
    along = _along(nest, stored)
    if along and all(a.size >= SIDE for a in (stored, along)):
        way = _tiled if stored is contiguous else _interleaved
        ways.append(partial(way, sch.copy(), nest, stored, along, env))
    return ways


def _fills(nest: Nest, axis: Axis) -> bool:
    """Whether a tile is no longer than an axis with those that continue it."""
    return volume(continued(axis, nest.spatial, nest.accesses)) >= SIDE


def _is_loaded(nest: Nest, axis: Axis) -> bool:
    """Whether tiles along an axis that is loaded take no longer than elements one by one: gathering takes longer than tiles in part."""
    return axis.extent is None or _fills(nest, axis)


def _stored(nest: Nest, contiguous: Axis) -> Axis:
    """The axis along which a block stores: the contiguous one, or the next where that is short, such as the parts of complex
    numbers."""
    if contiguous.extent is None or contiguous.size >= SIDE:
        return contiguous
    store = nest.stores[0]
    return next((a for a in nest.spatial if a.size > 1 and store.stride(a.var) == contiguous.size), contiguous)


def _along(nest: Nest, stored: Axis) -> Axis | None:
    """The axis other than ``stored`` along which a load lies in memory; None if all is along one."""
    for load in nest.loads:
        along = next((a for a in nest.spatial if load.stride(a.var) in (1, -1)), None)
        if along is not None and along is not stored and load.stride(stored.var) != 0:
            return along
    return None


def _is_copy(nest: Nest) -> bool:
    """Whether a block copies elements, one for each pair of indices, of a type with an intrinsic."""
    body = nest.block.body
    if not isinstance(body, BufferStore) or not isinstance(body.value, BufferLoad):
        return False
    loaded = Access(body.value.buffer, body.value.indices)
    moves = (a.stride(axis.var) is not None for a in (loaded, *nest.stores) for axis in nest.axes)
    return body.value.dtype in x86.TRANSPOSE and all(moves)


def _turned(sch: Schedule, nest: Nest, stored: Axis, along: Axis, env: Env) -> Schedule:
    """Whole tiles in registers, turned by an instruction sequence; what is beyond the last element is neither loaded nor
    stored."""
    target = nest.stores[0].buffer
    side, intrinsic = x86.TRANSPOSE[target.dtype]
    before = block_names(sch)
    *_, row, column = _as_matrices(sch, nest, stored, along)
    if not (row.fills(side) and column.fills(side)):
        sch.pad_einsum(nest.name, [*(1 for _ in sch.get(nest.name).iter_vars[2:]), side, side])
    load, store = copied(sch, nest.name, 0, "local", before), written(sch, nest.name, "local", before)
    sch.transform_layout(nest.name, ("write", 0), lambda *at: (*at[:-2], at[-1], at[-2]))
    *around, row, column = _in_order(sch, nest.name)
    large = streams(volume(nest.axes), target.dtype.bytes, env.target)
    size = side * target.dtype.bytes
    step = constant(nest.stores[0].step(along.var)) or 1  # of symbolic rows, too, most begin within lines
    pitch = step * target.dtype.bytes
    near = env.machine.sizes["L1" if pitch % LINE else "L2"] // 2  # what lies across lines waits for each beyond L1
    is_far = env.machine.sizes["L3"] > SHARED
    tile, group = ({n * pitch // LINE for n in range(rows)} for rows in (side, LOADED // target.dtype.bytes))
    is_alone = large or (not is_far and pitch % LINE == 0 and collide(group))
    loaded = CROWDED if collide(tile) else LOADED
    long, wide = (1, 1) if is_alone else (min(STORED // size, PAGES // side), loaded // size)
    io, im, ii = sch.split(row.loop, [None, _few(row, side, long), side])
    jo, jm, ji = sch.split(column.loop, [None, _few(column, side, wide), side])
    outer = [*(a.loop for a in around), *([io, jo] if large else [jo, io])]  # large: what is read is read in order
    sch.reorder(*outer, im, jm, ii, ji)
    sch.compute_at(load, jm, preserve_unit_loops=True)
    sch.reverse_compute_at(store, jm, preserve_unit_loops=True)
    i, j = sch.get_loops(store)[-2:]
    sch.reorder(j, i)
    for straight, lanes in (sch.get_loops(load)[-2:], (j, i)):
        sch.vectorize(lanes)
        sch.unroll(straight)
    if is_far and not large and 2 * volume(nest.axes) * target.dtype.bytes > near:
        accepted(sch.prefetch, outer[-1], store, target.name)
    share_out(sch, outer, nest.runs * nest.work, env)
    if large:
        sch.annotate(sch.get_loops(store)[0], "pragma_nontemporal_lines", target.name)
    sch.tensorize(ii, intrinsic)
    return sch


def _as_matrices(sch: Schedule, nest: Nest, stored: Axis, along: Axis) -> list[Axis]:
    """The axes of a block that turns matrices: ``stored`` and ``along``, each with the axes that continue it, are its last two."""
    groups = [continued(axis, nest.spatial, nest.accesses) for axis in (stored, along)]
    place = {i.var: n for n, i in enumerate(nest.block.iter_vars)}
    last = [place[a.var] for group in groups for a in group]
    order = [*(n for n in place.values() if n not in last), *last]
    if order != sorted(order):
        sch.reorder_block_iter_var(nest.name, order)
    gather, copy = (sch.reindex(nest.name, (kind, 0)) for kind in ("read", "write"))
    for count, after in ((len(groups[1]), 0), (len(groups[0]), 1)):
        axes = _in_order(sch, nest.name)
        if count > 1:
            join(sch, nest.name, gather.name, copy.name, axes[len(axes) - after - count : len(axes) - after])
    return _in_order(sch, nest.name)


def _in_order(sch: Schedule, name: str) -> list[Axis]:
    """The axes of a block in the order of its iterators."""
    nest = Nest.of(sch, name)
    assert nest is not None
    place = {i.var: n for n, i in enumerate(nest.block.iter_vars)}
    return sorted(nest.axes, key=lambda a: place[a.var])


def _few(axis: Axis, side: int, most: int) -> int:
    """Neighbouring tiles in a group: at most so many, of which the axis has a multiple."""
    return 1 if axis.extent is None else next(f for f in range(most, 0, -1) if axis.extent // side % f == 0)


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
