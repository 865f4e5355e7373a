"""Blocks without a reduction: vectors along contiguous memory, chunks of the outer loops on all cores."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, lcm
from typing import Any

from ...analysis.index import index_of
from ...annotations import PARTITION_HINT
from ...arith.linear import linear
from ...expr import Add, BufferLoad, Call, Cast, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, choice_parts, constant
from ...schedule import LoopRV, Schedule
from ...stmt import SERIAL, UNROLLED, For, While
from ...target import streams
from ...visit import has_load, uses_var, walk
from ..autovector import GROUP
from ..nest import Access, Axis, Nest, computed, continued, extent_of, is_padding, least, volume
from ..space import Env, accepted, rule

UNROLL = 4  # vectors at a time
BITS = ("shift_right", "shift_left", "bitwise_and", "bitwise_or", "bitwise_xor")
MASKED = 8  # lanes, at least, of vectors of which a part is loaded at a time
COPIED = 1 << 16  # bytes that the C library copies rather than a loop of vectors


@rule(targets=("llvm",), order=80)
def spatial(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Order the loops as the result lies in memory, vectorize the last, run the first in parallel."""
    nest = Nest.in_steps(sch, block)
    if nest is None or not nest.axes or nest.reduce or len(nest.spatial) < len(nest.axes) or not nest.stores:
        return []
    made, lanes = sch.copy(), env.lanes(nest.width)
    axes = nest.by_stride(nest.axes)
    order = [a.loop for a in axes]
    if order == [a.loop for a in nest.axes] or not accepted(made.reorder, *order):
        axes = list(nest.axes)
    outer, last, size = _fused(made, nest, axes, lanes)
    part = _part(nest, axes[-1], lanes) if size == axes[-1].size else 0
    if part:
        around, last = made.split(last, [None, part])
        outer, size = [*outer, around], part
        lanes = lanes // 2 if part % lanes and part % (lanes // 2) == 0 else lanes
    is_whole = size == nest.runs and _is_copy(nest, axes[-1], env)
    is_left = is_whole or _differs_in_length(nest) or _is_cut(nest, axes[-1]) or _is_turned(nest, axes[-1])
    is_left = is_left or (size % lanes > 0 and _reads_step_before(nest)) or _has_straight_memory(nest)
    if nest.contiguous() is axes[-1] and not is_left:
        unroll = UNROLL if size < axes[-1].size else _at_a_time(nest, axes[-1], lanes)
        is_row = size < nest.runs and all(a.stride(axes[-1].var) is not None for a in nest.loads)
        last = vectorize(made, last, size, lanes, unroll, size if is_row and is_part(size, lanes) else 0)
    if size < lanes and len(axes) > 1 and outer[-1:] == [axes[-2].loop] and (shared := _sharing(nest, *axes[-2:])):
        outer[-1], each = made.split(outer[-1], [None, shared])
        for loop in (each, *made.get_loops(block)[-1:]):
            made.unroll(loop)
    share_out(made, [*outer, last], nest.runs * nest.work, env)
    stream(made, nest, env)
    without_borders(made, nest, axes)
    _rows_in_order(made, nest, len([a for a in axes if a.loop in outer]))
    return [made]


def _rows_in_order(sch: Schedule, nest: Nest, rows: int) -> None:
    """Compute a row, of so many loops around it, with one of the block after, if all that both read is of one array, as of one that is split: its
    rows are read in order."""
    blocks = index_of(sch.func).blocks
    after = list(blocks)[list(blocks).index(nest.name) + 1 :][:1]
    reads = [r.buffer for name in (nest.name, *after) for r in blocks[name].block.reads]
    if not after or len(reads) != 2 or reads[0] is not reads[1] or blocks[after[0]].block.init:
        return
    for one, other in zip(sch.get_loops(nest.name)[:rows][::-1], sch.get_loops(after[0])[:rows][::-1]):
        if extent_of(sch, one) > 1 and accepted(sch.merge, one, other):
            return


def row_by_row(sch: Schedule, row: LoopRV, stages: Sequence[Nest]) -> None:
    """Compute what ``stages`` make in the iteration of ``row`` that is the first to read it, and keep what the next ones read again. Raises as the
    steps do."""
    for stage in reversed(stages):
        sch.compute_at(stage.name, row, preserve_unit_loops=True)
    for stage in stages:
        sch.rolling_buffer(stage.name, 0)


def padded_by_rows(sch: Schedule, nest: Nest, image: Access, strips: Sequence[LoopRV], env: Env) -> Schedule:
    """The schedule with the ``image`` that ``nest`` reads padded by rows, each before the first tiles that read it, where it is padded for that nest
    alone: it stays near, and rows that are read again are kept. ``strips``: the loops over tiles, those along a row last."""
    made = sch.copy()
    if len(strips) < 2 or len(image.places) == len(image.indices):
        return sch
    stages = [n for p in sch.get_producers(nest.name) if (n := Nest.of(sch, p.name)) and is_padding(n)]
    stages = [n for n in stages if n.stores[0].buffer is image.buffer and n.contiguous() is n.axes[-1]]
    if not stages or len(sch.get_consumers(stages[0].name)) > 1 or not accepted(row_by_row, made, strips[-2], stages):
        return sch
    name, columns = stages[0].name, stages[0].axes[-1]
    along = made.get_loops(name)[-2]
    vectorize(made, made.get_loops(name)[-1], columns.size, env.lanes(stages[0].width), UNROLL)
    made.annotate(along, PARTITION_HINT, 1)
    return made


def without_borders(sch: Schedule, nest: Nest, axes: Sequence[Axis]) -> None:
    """Run what is within the borders of an array without asking for them, in the serial loops of ``axes``, where a block reads zeros, or
    others, beyond these."""
    asked = asked_of(nest)
    if not asked:
        return
    iterators = index_of(sch.func).blocks[nest.name].node.bindings
    moving = [iterators[a.var] for a in [a for a in axes if any(uses_var(c, a.var) for c in asked)][-2:]]
    for loop in sch.get_loops(nest.name):
        if sch.get(loop).kind in (SERIAL, UNROLLED) and any(uses_var(value, loop.var) for value in moving):
            sch.annotate(loop, PARTITION_HINT, 1)


def asked_of(nest: Nest) -> list[Any]:
    """What a block asks of its iterators to stay within an array, or to select what is computed: conditions, indices that are clamped, and
    those that begin again once."""
    chosen = [parts[0] for n in walk(nest.block.body) if (parts := choice_parts(n))]
    indices = [n for a in nest.accesses for i in a.indices for n in walk(i)]
    asked: list[Any] = [c for c in chosen if not any(isinstance(n, (FloorDiv, FloorMod)) for n in walk(c))]
    asked += [n for n in indices if isinstance(n, (Max, Min)) or (isinstance(n, FloorMod) and _begins_again(nest, n))]
    return [c for c in asked if not has_load(c)]


def _begins_again(nest: Nest, index: Any) -> bool:
    """Whether ``index`` begins again somewhere on the way along an axis, as of an array that is rolled."""
    form = linear(index.a)
    return any(
        form.coefficient(a.var) == 1 and constant(index.b) == a.extent and index.a is not a.var for a in nest.axes
    )


def _fused(sch: Schedule, nest: Nest, axes: list[Axis], lanes: int) -> tuple[list[LoopRV], LoopRV, int]:
    """The loops of ``axes`` with the last ones fused that all accesses walk through as through one; its size. Long axes that the
    block computes with stay apart: that would take divisions."""
    last, short = axes[-1], axes[-1].size < lanes
    free = [a for a in axes if short or a.var not in nest.computed]
    together = continued(last, free, nest.accesses) if last in free else [last]
    while together != axes[-len(together) :]:
        together.pop(0)
    outer = [a.loop for a in axes[: -len(together)]]
    loop = sch.fuse(*(a.loop for a in together)) if len(together) > 1 else together[0].loop
    return outer, loop, volume(together)


def _sharing(nest: Nest, group: Axis, member: Axis) -> int:
    """How many neighbouring groups of results read the same ``group // n``, where each of their members is another value: these are
    straight code, of which LLVM makes vectors; 0 if no groups do."""
    if member.extent is None or member.var not in nest.computed:
        return 0
    nodes = [n for a in nest.loads for i in a.indices for n in walk(i) if isinstance(n, FloorDiv) and n.a is group.var]
    sizes = {n.b.value for n in nodes if isinstance(n.b, IntImm)}
    return next((n for n in sizes if len(sizes) == 1 and group.fills(n) and n * member.size <= GROUP), 0)


def _part(nest: Nest, last: Axis, lanes: int) -> int:
    """Into parts of how many iterations the loop of ``last`` falls by what it reads, ``v // n`` and ``v % n``, where vectors would
    lie across their borders, which takes gathers; 0 if they do not, or parts are shorter than half a vector."""
    sizes = _divisors(nest, last)
    if len(sizes) != 1 or last.extent is None:
        return 0
    (size,) = sizes
    return size if size % lanes and size >= max(2, lanes // 2) and last.extent % size == 0 else 0


def _at_a_time(nest: Nest, last: Axis, lanes: int) -> int:
    """How many vectors are straight code: so many that ``v // n`` and ``v % n`` of what is read go on in the same way after these, and lanes are
    selected from whole vectors."""
    sizes = _divisors(nest, last)
    period = lcm(*(n // gcd(n, lanes) for n in sizes)) if sizes else 1
    return period * max(1, UNROLL // period) if period <= 2 * UNROLL else UNROLL


def _divisors(nest: Nest, last: Axis) -> set[int]:
    """The ``n`` of all ``v // n`` and ``v % n`` by which the block reads along ``last``."""
    loads = [a for a in nest.loads if a.stride(last.var) is None]
    nodes = [n for a in loads for i in a.indices for n in walk(i) if isinstance(n, (FloorDiv, FloorMod))]
    return {n.b.value for n in nodes if n.a is last.var and isinstance(n.b, IntImm) and n.b.value > 0}


def _reads_step_before(nest: Nest) -> bool:
    """Whether a step of a scan reads what steps before it store: it would wait for a part of a vector, stored under a mask, until that is in
    the cache. LLVM makes shorter vectors of what is left of a row."""
    return nest.in_time and any(load.buffer is store.buffer for load in nest.loads for store in nest.stores)


def _is_turned(nest: Nest, last: Axis) -> bool:
    """Whether what is read begins again somewhere on the way, as of an array that is rolled: of whole vectors LLVM makes gathers, of the loop
    vectors before and after that place."""
    nodes = [n for a in nest.loads for i in a.indices for n in walk(i) if isinstance(n, FloorMod)]
    return any(uses_var(n.a, last.var) and _begins_again(nest, n) for n in nodes)


def _differs_in_length(nest: Nest) -> bool:
    """Whether data decides how often a loop in the block runs, as of rows of a sparse matrix: vectors have nothing to share."""
    return any(isinstance(n, While) or (isinstance(n, For) and has_load(n.extent)) for n in walk(nest.block.body))


def _has_straight_memory(nest: Nest) -> bool:
    """Whether the block has memory of its own and no loop: to LLVM this is straight code, of which it makes vectors without masks."""
    return bool(nest.block.alloc_buffers) and not any(isinstance(n, For) for n in walk(nest.block.body))


def _is_cut(nest: Nest, last: Axis) -> bool:
    """Whether integers are computed by sums, products and shifts, and cut to fewer bits: LLVM computes these in as few bits as they need where
    it makes vectors itself."""
    value = getattr(nest.block.body, "value", None)
    if not isinstance(value, Cast) or value.dtype.is_float or value.dtype.bits >= value.value.dtype.bits:
        return False
    return all(a.stride(last.var) is not None for a in nest.accesses) and all(
        isinstance(n, (Add, Sub, Mul, Cast, IntImm, BufferLoad)) or (isinstance(n, Call) and n.op in BITS)
        for n in computed(value)
    )


def _is_copy(nest: Nest, last: Axis, env: Env) -> bool:
    """Whether elements are copied from neighbours to neighbours, in a result that the caches keep: as one serial loop that
    is the C library's ``memcpy``, which does not read the lines that it overwrites."""
    value = getattr(nest.block.body, "value", None)
    value = value.args[0] if isinstance(value, Call) and value.op == "reinterpret" else value
    width = nest.width // 8
    return (
        isinstance(value, BufferLoad)
        and nest.runs * width >= COPIED
        and not streams(nest.runs, width, env.target)
        and all(a.stride(last.var) == 1 for a in nest.accesses)
    )


def vector_of(size: int, lanes: int) -> int:
    """The lanes of vectors along what counts as ``size`` and is symbolic: a short one is less work than a whole one."""
    return min(lanes, 1 << (size - 1).bit_length())


def is_part(size: int, lanes: int) -> bool:
    """Whether ``size`` elements are worth a vector that is shorter, or of which the last lanes are empty."""
    return lanes >= MASKED and lanes < 4 * size < 4 * lanes


def vectorize(sch: Schedule, loop: LoopRV, size: int, lanes: int, unroll: int = 1, least: int = 0) -> LoopRV:
    """Split ``loop`` of ``size`` iterations into vectors, ``unroll`` at a time; returns the loop of vectors. Where there are fewer than ``lanes``, they
    are left to LLVM, or part of a vector if there are at least so many."""
    # The last vector asks what is beyond the end: no others do so with it.
    if constant(sch.get(loop).extent) is None or 0 < least <= size < lanes:
        outer, lane = sch.split(loop, [None, vector_of(size, lanes)])
        sch.vectorize(lane)
        return outer
    unroll = max(1, min(unroll, size // lanes))
    if size < lanes:
        return loop
    if size == lanes:
        around = sch.add_unit_loop(loop)
        sch.vectorize(loop)
        return around
    outer, middle, lane = sch.split(loop, [None, unroll, lanes])
    sch.vectorize(lane)
    if unroll > 1:
        sch.unroll(middle)
    return outer


def stream(sch: Schedule, nest: Nest, env: Env) -> None:
    """Store a result past the caches if it would not stay in them and nothing in the function reads it."""
    buffer = nest.stores[0].buffer
    if (
        streams(least(buffer.shape), buffer.dtype.bytes, env.target)
        and not sch.get_consumers(nest.name)
        and len(nest.stores) == 1
        and not nest.in_time
    ):
        sch.annotate(sch.get_loops(nest.name)[0], "pragma_nontemporal", buffer.name)


def share_out(sch: Schedule, loops: list[LoopRV], operations: int, env: Env) -> None:
    """Run the outermost of ``loops`` in parallel, as one, in chunks; not if the work is too little."""
    if env.threads < 2 or operations < env.parallel_from:
        return
    sizes = [extent_of(sch, loop) for loop in loops]
    count, total = 0, 1
    while count < len(loops) and total < 8 * env.threads:
        total *= sizes[count]
        count += 1
    while count and not sch.can.parallel(loops[count - 1]):
        count -= 1
    if count > 1 and not sch.can.fuse(*loops[:count]):  # their borders are apart: one of them
        loops = [loop for loop, size in zip(loops, sizes) if size > 1 and sch.can.parallel(loop)]
        count, total = min(1, len(loops)), 0
    if not count:
        return
    loop = sch.fuse(*loops[:count]) if count > 1 else loops[0]
    if total > 64 * env.threads:
        loop, _ = sch.split(loop, [None, -(-total // (16 * env.threads))])
    sch.parallel(loop)
