"""Reductions that no other rule knows: sums in vectors, along the result or as partial results of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ...analysis.reduction_forms import SUM
from ...arith.linear import key
from ...expr import Expr
from ...schedule import BlockRV, LoopRV, Schedule
from ..autovector import difference_of_bytes
from ..core import CLOSE
from ..nest import Access, Axis, Nest, continued, extent_of, kinds_under, loop_of, usual, volume
from ..space import Env, accepted, choose, rule
from ..straighten import straighten
from .spatial import MASKED, UNROLL, is_part, share_out, vector_of, vectorize, without_borders

WIDE = 4096  # elements of a result that stay in the L1 cache while all rows are added to them
TOGETHER = (8, 4, 2)  # rows that are added at a time
ROWS = (4, 3, 2, 1)  # results at a time that share an operand, best first
STRAIGHT = 64  # vector operations of a sum that are worth straight code instead of a loop
FEW = 16  # rows read side by side, whose sums stay in registers: of more, strips of the result are in L1
SUMS = 2  # vectors of partial sums of each of them
GROUPED = 16  # bytes that are summed at a time, at least
PARTS = 4  # of an element that are straight code
AHEAD = 4096  # bytes: how far ahead what comes from beyond the caches is requested, where too few loads are under way otherwise
FAR = 8192  # bytes: the same of what is read as fast as memory gives it (250 ns at 32 GB/s)
SECOND = 2  # the cache that receives it: a core waits for fewer lines in L1 than in L2


@rule(targets=("llvm",), order=70)
def reductions(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Vectorize a reduction along its result if that is contiguous, else along what it reduces."""
    nest = Nest.in_steps(sch, block)
    if nest is None or not nest.reduce or len(nest.spatial) + len(nest.reduce) < len(nest.axes):
        return []
    made = sch.copy()
    lanes = env.lanes(nest.width)
    along = nest.contiguous()
    row = row_of(nest, lanes)
    if row is None and not lies_along(nest, along, lanes) and nest.reduction is not None:
        nest = straighten(made, nest, lanes)
        along, row = nest.contiguous(), row_of(nest, lanes)
    near, groups = walks, groups_of(nest, lanes)
    across = next((a for a in nest.spatial if a is not along and a.size >= lanes and walks(nest, a)), None)
    few = volume(nest.reduce) <= CLOSE  # terms in straight code, of which LLVM makes vectors
    if row is None and groups is None and not lies_along(nest, along, lanes) and not few:
        near, row = is_close, row_of(nest, lanes, is_close)
    if nest.reduction is None or nest.block.init is None:
        share_out(made, _leading(made, nest), nest.runs * nest.work, env)
    elif not adds_bytes(nest, env) and along is not None and lies_along(nest, along, lanes, near):
        outer = [a.loop for a in nest.by_stride(nest.spatial) if a is not along]
        is_wide = volume(nest.reduce) > FEW if along.extent else along.size >= 2 * lanes
        streamed = near is walks and _streams(nest, env) and is_wide
        strip = (_along_streamed_result if streamed else along_result)(made, nest, along, outer, env)
        if not streamed:
            _read_panels_ahead(made, nest, along, env)
        share_out(made, [*outer, strip], nest.runs * nest.work, env)
    elif row is not None and nest.reduction.is_independent_of_order:
        _along_row(made, nest, row, env)
    elif groups is not None:
        outer = [a.loop for a in nest.by_stride(nest.spatial) if a not in groups]
        strip = _along_groups(made, nest, groups, outer, env)
        share_out(made, [*outer, strip], nest.runs * nest.work, env)
    elif across is not None:
        outer = [a.loop for a in nest.by_stride(nest.spatial) if a is not across]
        strip = along_result(made, nest, across, outer, env)
        share_out(made, [*outer, strip], nest.runs * nest.work, env)
    else:
        share_out(made, _leading(made, nest), nest.runs * nest.work, env)
        without_borders(made, nest, nest.by_stride(nest.spatial))
    return [made]


def walks(nest: Nest, axis: Axis) -> bool:
    """Whether every load is of the same or of the neighbouring element for the next value of ``axis``."""
    steps = [a.stride(axis.var) for a in nest.loads]
    return bool(steps) and all(s in (0, 1) for s in steps) and 1 in steps


def is_close(nest: Nest, axis: Axis) -> bool:
    """Whether every load is of the same element for the next value of ``axis``, or of one that is at most some elements further, such as
    one part of complex numbers: vectors of it are selected from whole ones."""
    steps = [a.stride(axis.var) for a in nest.loads]
    return any(steps) and all(s in range(CLOSE + 1) for s in steps)


Near = Callable[[Nest, Axis], bool]  # how what is loaded lies along an axis


def lies_along(nest: Nest, along: Axis | None, lanes: int, near: Near = walks) -> bool:
    """Whether results are vectors along the axis ``along``, of what is loaded as vectors; or part of one, but for few terms in straight code."""
    if along is None or not near(nest, along):
        return False
    is_short = is_part(along.size, lanes) and volume(nest.reduce) > CLOSE
    return is_short or along.size >= lanes


def slides_close(nest: Nest, along: Axis, lanes: int) -> bool:
    """Whether windows slide along the axis ``along`` of results that are vectors of at least ``lanes``: some elements at a time, or as many as
    are left to the end of a row."""
    steps = [a.stride(along.var) for a in nest.loads]
    return along.size >= lanes and nest.slides_along(along) and all(s is None or s in range(CLOSE + 1) for s in steps)


def groups_of(nest: Nest, lanes: int) -> tuple[Axis, Axis] | None:
    """Where results lie in groups that are shorter than half a vector, such as the parts of complex numbers or the coordinates of points:
    the axis from group to group, of whole vectors, and that of the members. What is loaded is then at most some elements apart."""
    member = nest.contiguous()
    if member is None or member.extent is None or not 1 < 2 * member.size <= lanes:
        return None
    *around, _ = continued(member, nest.spatial, nest.stores)
    group = around[-1] if around else None
    if group is None or group.size < lanes or any(_members_apart(s, group, member) is None for s in nest.stores):
        return None
    return (group, member) if is_close(nest, group) else None


def row_of(nest: Nest, lanes: int, near: Near = walks) -> Axis | None:
    """The axis along which terms are loaded as vectors: with those of axes around it, two vectors of partial sums."""
    terms = volume(nest.reduce)
    rows = [
        a
        for a in nest.reduce
        if fills(a, lanes) or (a.size == lanes and terms >= 2 * lanes) or _is_short_sum(nest, a, lanes)
    ]
    return next((a for a in reversed(rows) if near(nest, a)), None)


def _adds_neighbours(nest: Nest, row: Axis, env: Env) -> bool:
    """Whether LLVM adds up a row of integers by instructions that add neighbours (``psadbw``, ``pmaddwd``): whole vectors of what is loaded,
    which partial sums would first make as wide as themselves."""
    loaded = {a.buffer.dtype.element for a in nest.loads}
    widest = max(t.bits for t in loaded)
    update = nest.reduction and nest.reduction.of_one_value()
    is_sum = update and update.combination and update.combination.combiner is SUM
    return (
        bool(is_sum) and not any(t.is_float for t in loaded) and widest < nest.width and row.size >= env.lanes(widest)
    )


def adds_bytes(nest: Nest, env: Env) -> bool:
    """Whether LLVM sums absolute differences of bytes along a row by an instruction of its own (``psadbw``): more at a time than vectors of sums."""
    row = row_of(nest, env.lanes(nest.width))
    update = nest.reduction and nest.reduction.of_one_value()
    if row is None or not update or not update.combination or update.combination.combiner is not SUM:
        return False
    return row.size >= GROUPED and all(difference_of_bytes(term.value) is not None for term in update.combination.terms)


def fills(axis: Axis, lanes: int) -> bool:
    """Whether terms along ``axis`` are worth vectors of partial sums: where the length is symbolic, a short row is a part of one."""
    return axis.extent is None or axis.size >= 2 * lanes


def is_short(size: int, lanes: int) -> bool:
    """Whether a row of less than two vectors is worth partial results, in a vector or two of which the last one is a part: it has clearly more than
    half of one, and these are long ones, as of processors that load a part of one at a time."""
    return lanes >= MASKED and 5 * lanes < 8 * size < 16 * lanes


def _is_short_sum(nest: Nest, row: Axis, lanes: int) -> bool:
    """Whether a short row is a sum of floating-point numbers, which LLVM adds up one after the other, of operands of their own for each result."""
    update = nest.reduction and nest.reduction.of_one_value()
    is_sum = update and update.combination and update.combination.combiner is SUM
    shares = any(a.stride(v.var) == 0 for v in nest.spatial if v.size > 1 for a in nest.loads)
    is_alone = len(nest.reduce) == 1 and len(nest.stores) == 1 and not shares
    return bool(is_sum) and is_alone and nest.stores[0].buffer.dtype.is_float and is_short(row.size, lanes)


def _read_once(nest: Nest, env: Env) -> list[Access]:
    """The operands of which each result has its own, if the rate is that of reading them, from end to end: they are beyond the L2
    cache, and what all results share stays there. Then one row after the other is read, and not several at a time."""
    results = [a.var for a in nest.spatial if a.size > 1]
    shared = [a for a in nest.loads if all(a.stride(v) == 0 for v in results)]
    own = [a for a in nest.loads if all(a.stride(v) for v in results)]
    sizes = [sum(prod(usual(s) for s in a.buffer.shape) * a.buffer.dtype.bytes for a in kind) for kind in (shared, own)]
    half = env.machine.sizes["L2"] // 2
    return own if len(shared) + len(own) == len(nest.loads) and sizes[0] <= half and sizes[1] > 2 * half else []


def _streams(nest: Nest, env: Env) -> bool:
    """Whether the rate is that of memory: an operand has an element of its own for each term (no window, no reuse), and what
    is used again stays in L1."""
    small = env.machine.sizes["L1"] // 2
    again = [a for a in nest.loads if not a.is_injective(nest.axes)]
    return len(again) < len(nest.loads) and all(
        prod(usual(s) for s in a.buffer.shape) * a.buffer.dtype.bytes <= small for a in again
    )


def _read_panels_ahead(sch: Schedule, nest: Nest, along: Axis, env: Env) -> None:
    """Request panels that are narrower than the sums they go into and lie beyond the L2 cache, such as quantized weights,
    :data:`AHEAD` bytes before they are taken; and make the parts of an element, the halves of a byte, straight code, in which
    their shifts are constants."""
    for stream in nest.loads:
        size = prod(usual(s) for s in stream.buffer.shape) * stream.buffer.dtype.bytes
        walk = next((a for a in reversed(nest.reduce) if stream.stride(a.var) != 0), None)
        if stream.buffer.dtype.bits >= nest.width or size <= env.machine.sizes["L2"] or walk is None:
            continue
        step = stream.stride(walk.var)
        parts = nest.reduce[nest.reduce.index(walk) + 1 :]
        if not step or step < along.size or volume(parts) > PARTS:
            continue
        for part in parts:
            sch.unroll(part.loop)
        request = (walk.loop, nest.name, stream.buffer.name, max(1, AHEAD // (step * stream.buffer.dtype.bytes)))
        accepted(sch.prefetch, *request)


def _leading(sch: Schedule, nest: Nest) -> list[LoopRV]:
    """The spatial loops, moved outside of the others; those that are outside where results lie along the last loop."""
    loops = [a.loop for a in nest.spatial]
    inner = [a.loop for a in nest.axes if a.kind != "spatial"]
    lies_last = nest.axes[-1].kind == "spatial" and nest.axes[-1] is nest.contiguous()
    if loops and inner and not lies_last and accepted(sch.reorder, *loops, *inner):
        return loops
    kept = [a.kind == "spatial" for a in nest.axes]
    return loops[: (kept + [False]).index(False)]


def along_result(sch: Schedule, nest: Nest, along: Axis, outer: Sequence[LoopRV], env: Env) -> LoopRV:
    """Some vectors of the result in registers, over the whole reduction. Returns their loop, the innermost in ``outer``."""
    lanes = vector_of(along.size, env.lanes(nest.width))
    vectors = max(1, min(UNROLL, along.size // lanes if along.extent else -(-along.size // lanes)))
    outer, tile = _rows_of_tile(sch, nest, along, outer, vectors, env)
    return in_registers(sch, nest, along, outer, (vectors, lanes), tile)


def _rows_of_tile(
    sch: Schedule, nest: Nest, along: Axis, outer: Sequence[LoopRV], vectors: int, env: Env
) -> tuple[Sequence[LoopRV], list[LoopRV]]:
    """The last axis of ``outer``, as strips and as rows of a tile with ``vectors`` of each, if rows share vectors that they load, and
    sums of several are in registers."""
    shared = [a for a in nest.loads if a.stride(along.var)]
    rows = [a for a in nest.by_stride(nest.spatial) if a.loop in outer and a.size > 1]
    row = next((a for a in reversed(rows) if any(load.stride(a.var) == 0 for load in shared)), None)
    if row is None:
        return outer, []
    taken = vectors * len(shared) + 1
    count = next(
        n for n in ROWS if n == 1 or (row.fills(n) and n * vectors * len(nest.stores) + taken <= env.vectors.count)
    )
    if count == 1:
        return outer, []
    strips, each = sch.split(row.loop, [None, count])
    return [strips if loop is row.loop else loop for loop in outer], [each]


def _along_groups(sch: Schedule, nest: Nest, groups: tuple[Axis, Axis], outer: Sequence[LoopRV], env: Env) -> LoopRV:
    """As :func:`along_result`, of groups of results: a vector of each member, one at a time."""
    group, member = groups
    outer, tile = _rows_of_tile(sch, nest, group, outer, member.size, env)
    strip = in_registers(sch, nest, group, outer, (1, env.lanes(nest.width)), [*tile, member.loop])
    for number, result in enumerate(nest.stores):
        apart = _members_apart(result, group, member)
        assert apart is not None
        sch.transform_layout(nest.name, ("write", number), apart)
    return strip


def _members_apart(result: Access, group: Axis, member: Axis) -> Callable[..., tuple[Expr, ...]] | None:
    """The layout of a result that has all groups of one member, then those of the next: both are an index, or digits of one. None where
    they are anything else."""
    if {group.var, member.var} <= result.places.keys():
        place = result.places[member.var]
        return lambda *at: (at[place], *at[:place], *at[place + 1 :])
    joint, size = group.var * member.size + member.var, member.size
    found = next((n for n, i in enumerate(result.indices) if key(i) == key(joint)), None)
    return None if found is None else lambda *at: (at[found] % size, *at[:found], at[found] // size, *at[found + 1 :])


def in_registers(
    sch: Schedule, nest: Nest, along: Axis, outer: Sequence[LoopRV], shape: tuple[int, int], tile: Sequence[LoopRV] = ()
) -> LoopRV:
    """As :func:`along_result`, of ``shape``: vectors, and lanes of each; for all iterations of the loops ``tile`` at a time."""
    vectors, lanes = shape
    inner = [a.loop for a in nest.reduce]
    copies = [sch.cache_write(nest.name, n, "local") for n in range(len(nest.block.writes))]
    strip, middle, lane = sch.split(along.loop, [None, vectors, lanes])
    sch.reorder(*outer, strip, *inner, *tile, middle, lane)
    for copy in copies:
        sch.reverse_compute_at(copy, strip, preserve_unit_loops=True)
        loops = sch.get_loops(copy)
        longest = max(reversed(loops[loops.index(strip) + 1 :]), key=lambda loop: extent_of(sch, loop))
        others = [loop for loop in loops[loops.index(strip) + 1 :] if loop is not longest]
        sch.reorder(*others, longest)
        vectorize(sch, longest, vectors * lanes, lanes, vectors)
        for loop in others[len(others) - len(tile) :]:
            sch.unroll(loop)
    init = sch.decompose_reduction(nest.name, inner[0])
    for each in (nest.name, init):
        *straight, lane = sch.get_loops(each)[-2 - len(tile) :]
        sch.vectorize(lane)
        for loop in straight:
            sch.unroll(loop)
    if volume(nest.reduce) * vectors <= STRAIGHT and all(a.extent for a in nest.reduce) and is_close(nest, along):
        for loop in inner:
            sch.unroll(loop)
    return strip


def _along_streamed_result(sch: Schedule, nest: Nest, along: Axis, outer: Sequence[LoopRV], env: Env) -> LoopRV:
    """A strip of the result in the L1 cache; several rows of the operands are added to it at a time. Returns the loop of
    strips."""
    lanes = env.lanes(nest.width)
    *rows, row = nest.reduce
    together = next((t for t in TOGETHER if row.size % t == 0), 1)
    width = min(WIDE, -(-along.size // env.threads), along.size)
    if along.extent is None:  # one strip: each vector of a last one would ask whether it is beyond the end
        strip = sch.add_unit_loop(along.loop)
        middle, lane = sch.split(along.loop, [None, lanes])
    else:
        strip, middle, lane = sch.split(along.loop, [None, max(1, -(-width // lanes)), lanes])
    block_of_rows, step = sch.split(row.loop, [None, together])
    inner = [*(a.loop for a in rows), block_of_rows]
    sch.reorder(*outer, strip, *inner, middle, step, lane)
    init = sch.decompose_reduction(nest.name, inner[0])
    sch.vectorize(lane)
    sch.unroll(step)
    sch.vectorize(sch.get_loops(init)[-1])
    return strip


def _along_row(sch: Schedule, nest: Nest, row: Axis, env: Env) -> None:
    """Partial results in vectors, for each result at a time."""
    if not nest.spatial and nest.runs * nest.work >= env.parallel_from and env.threads > 1:
        _by_chunks(sch, nest, env)
        return
    leading = _leading(sch, nest)
    if _adds_neighbours(nest, row, env):
        share_out(sch, leading, nest.runs * nest.work, env)
        return
    shares = any(a.stride(v.var) == 0 for v in nest.spatial[-1:] for a in nest.loads)
    streams = _read_once(nest, env)
    if shares and row.size >= 4 * SUMS and not streams:
        _rows_together(sch, nest, row, env)
        return
    parts = in_parts(sch, nest.name, row, env.lanes(nest.width), [a for a in nest.reduce if a is not row])
    rows = sch.get_loops(nest.name)[nest.around :][: len(nest.spatial)]  # around the combination of the parts
    if rows:
        place_parts(sch, parts, rows[-1], env.lanes(nest.width))
        for stream in streams if parts else ():
            if stream.buffer.dtype.bits < nest.width:  # a vector of these is few bytes
                _request(sch, parts, nest, stream)
        share_out(sch, rows, nest.runs * nest.work, env)
    else:
        for part in parts:
            _vectorize_part(sch, part, sch.get_loops(part)[nest.around :], env.lanes(nest.width))


def _request(sch: Schedule, parts: list[BlockRV], nest: Nest, stream: Access) -> None:
    """Request lines of ``stream``, whose rows follow one another in memory, before the sums of ``parts`` take them: into the L2 cache, unless a byte is
    of several terms, so that arithmetic leaves time to wait for them in L1."""
    name = sch.get(parts[-1]).name
    terms = [loop for loop in sch.get_loops(name) if "reduce" in kinds_under(sch, name, loop)]
    walk = max(terms, key=lambda loop: extent_of(sch, loop))
    times = volume(nest.spatial) * prod(extent_of(sch, loop) for loop in terms[: terms.index(walk) + 1])
    size = prod(usual(s) for s in stream.buffer.shape) * stream.buffer.dtype.bytes
    ahead, locality = (FAR, SECOND) if size >= volume(nest.axes) else (AHEAD, 3)
    request = (walk, name, stream.buffer.name, max(1, ahead // max(1, size // times)), locality)
    accepted(sch.prefetch, *request)


def _rows_together(sch: Schedule, nest: Nest, row: Axis, env: Env) -> None:
    """A tile of results at a time, each in vectors of partial sums in registers: what they share is loaded once. The tile is along
    the last axis of results, and along the one before if the operands of a row of results are used for the next row, too."""
    lanes, registers = env.lanes(nest.width), env.vectors.count
    heights = [h for h in ROWS if nest.spatial[-1].size % h == 0]
    height = choose(sch, heights, [1 + 0.1 * n for n in range(len(heights))])
    above = nest.spatial[-2:-1] if any(a.stride(v.var) == 0 for v in nest.spatial[-2:-1] for a in nest.loads) else []
    most = max(1, (registers - 1) // ROWS[0] - 1)  # beside what a row of results takes, and an element of another
    high = max((-(-a.size // -(-a.size // most)) for a in above), default=1)  # equal strips, as few as there can be
    count = SUMS if SUMS * high * ROWS[0] + high < registers else 1
    size = min(count * lanes, row.size)
    _, part = sch.split(row.loop, [None, size])
    parts = sch.rfactor(part, -1)
    sums = _factored(sch, nest.name, sch.get_loops(nest.name)[-1], size, [lanes, quarter_of(lanes)], [parts])
    *outer, result = sch.get_loops(nest.name)[nest.around :][: len(nest.spatial)]  # around the sum of the partial sums
    strips = [sch.split(result, [None, height])]
    strips += [sch.split(outer.pop(), [None, high]) for _ in above]
    tile = [inner for _, inner in reversed(strips)]
    sch.reorder(*(strip for strip, _ in strips), *tile)
    around, strip = [*outer, *(strip for strip, _ in strips)], strips[-1][0]
    straight = [loop for block in sums[:-1] for loop in _place_tile(sch, block, tile[0] if above else strip, lanes)]
    _place_tile(sch, sums[-1], strip, lanes)
    own = sch.get_loops(nest.name)
    for loop in (*straight, *own[own.index(strip) + 1 :]):
        sch.unroll(loop)
    share_out(sch, around, nest.runs * nest.work, env)


def _place_tile(sch: Schedule, block: BlockRV, at: LoopRV, lanes: int) -> list[LoopRV]:
    """Compute partial sums of a tile of results in each iteration of ``at``, in registers; returns the loops over the terms."""
    sch.compute_at(block, at, preserve_unit_loops=True)
    sch.set_scope(block, 0, "local")
    loops = sch.get_loops(block)
    inner = loops[loops.index(at) + 1 :]
    terms = [loop for loop in inner if "reduce" in kinds_under(sch, block, loop)]
    part = loop_of(sch, block.name, sch.get(block).iter_vars[0].var, at)
    single = [loop for loop in inner if loop not in (*terms, part)]
    vector, lane = sch.split(part, [None, min(lanes, extent_of(sch, part))])
    sch.reorder(*terms, *single, vector, lane)
    sch.vectorize(lane)
    init = sch.decompose_reduction(block, (*terms, *single, vector)[0])  # no loop is left of one term at most
    started = sch.get_loops(init)
    sch.vectorize(started[-1])
    for loop in (*single, vector, *started[started.index(at) + 1 : -1]):
        sch.unroll(loop)
    return terms


def _by_chunks(sch: Schedule, nest: Nest, env: Env) -> None:
    """One result: partial results of chunks on all cores, each of them again in vectors."""
    longest = max(nest.reduce, key=lambda a: a.size)
    count = next((c for c in range(16 * env.threads, 1, -1) if longest.extent and longest.extent % c == 0), 0)
    if not count:
        for part in in_parts(sch, nest.name, nest.reduce[-1], env.lanes(nest.width)):
            _vectorize_part(sch, part, sch.get_loops(part)[nest.around :], env.lanes(nest.width))
        return
    chunk, _ = sch.split(longest.loop, [count, None])
    partial = sch.rfactor(chunk, 0)
    inner = Nest.in_steps(sch, partial.name)
    if inner is None:
        return
    row = next((a for a in reversed(inner.reduce) if walks(inner, a)), None)
    if row is not None:
        _along_row(sch, inner, row, env)


def in_parts(sch: Schedule, block: str, row: Axis, lanes: int, around: Sequence[Axis] = ()) -> list[BlockRV]:
    """Factor the reduction along ``row`` into partial results: four vectors, of these one, of this four numbers; of an
    arg-reduction, whose combinations take long, half as many each time, so that the fewest wait for one another. A row of fewer
    vectors is taken with some iterations of the axes ``around`` it, the last ones first. One of symbolic length may end in each
    of its vectors: these are two, or one as wide as what counts as short. So may a short one, which counts as two vectors or as one.

    Returns the blocks that compute partial results, the last one first.
    """
    made: list[BlockRV] = []
    along, size = row.loop, row.size
    if size < 4 * lanes and size % lanes == 0 and around:
        part, size = _with_neighbours(sch, row, 4 * lanes, around)
        made.insert(0, sch.rfactor(part, -1))
        *_, along = sch.get_loops(block)
    nest = Nest.in_steps(sch, block)
    selects = nest is not None and nest.reduction is not None and nest.reduction.selects
    most = (4 if row.extent else 2) * lanes
    if (is_ending := row.extent is not None and not made and is_short(size, lanes)) and size > lanes:
        size = 2 * lanes
    if is_part := (row.extent is None or is_ending) and size < 2 * lanes:
        most, size = vector_of(size, lanes), most
    halves = [1 << n for n in range((4 * lanes if selects and not is_part else most).bit_length() - 1, 0, -1)]
    counts = halves if selects or is_part else [most, lanes, quarter_of(lanes)]
    return _factored(sch, block, along, size, counts, made)


def quarter_of(lanes: int) -> int:
    """How many numbers the last vector of partial sums has, which are added up one by one."""
    return max(2, lanes // 4)


def _factored(
    sch: Schedule, block: str, along: LoopRV, size: int, counts: Sequence[int], made: Sequence[BlockRV] = ()
) -> list[BlockRV]:
    """Factor the reduction along a loop of ``size`` iterations into ``counts`` of partial results, each of those before, as far as these are
    fewer. Returns the blocks, the last one first, and those ``made`` before."""
    made = list(made)
    for count in counts:
        if size <= count or (size < 2 * count and not made):
            continue
        _, part = sch.split(along, [None, count])
        made.insert(0, sch.rfactor(part, -1))
        *_, along = sch.get_loops(block)
        size = count
    return made


def _with_neighbours(sch: Schedule, row: Axis, most: int, around: Sequence[Axis]) -> tuple[LoopRV, int]:
    """A loop of all iterations of ``row`` and of some of the axes ``around`` it, ``most`` together, and their number."""
    size, outer, inner = row.size, [a.loop for a in around], [row.loop]
    for number in reversed(range(len(around))):
        extent = around[number].extent or 1
        count = max(n for n in range(1, max(1, most // size) + 1) if extent % n == 0)
        if count > 1:
            outer[number], part = sch.split(outer[number], [None, count])
            inner.insert(0, part)
            size *= count
    sch.reorder(*outer, *inner)
    return sch.fuse(*inner) if len(inner) > 1 else row.loop, size


def parts_of(sch: Schedule, stage: Nest, lanes: int) -> list[BlockRV]:
    """The blocks of partial results of a sum along a row, as :func:`in_parts`; none where the row is short, or is no walk
    through memory."""
    along = stage.reduce[-1]
    is_row = fills(along, lanes) or is_short(along.size, lanes)
    fits = len(stage.reduce) == 1 and walks(stage, along) and is_row and len(stage.stores) == 1
    return in_parts(sch, stage.name, along, lanes) if fits else []


def place_parts(sch: Schedule, parts: list[BlockRV], row: LoopRV, lanes: int) -> None:
    """Compute partial results in each iteration of ``row``, as vectors."""
    for block in parts:
        sch.compute_at(block, row, preserve_unit_loops=True)
        loops = sch.get_loops(block)
        _vectorize_part(sch, block, loops[loops.index(row) + 1 :], lanes)


def _vectorize_part(sch: Schedule, block: BlockRV, loops: list[LoopRV], lanes: int) -> None:
    """Vectorize a block of partial results: one of ``loops`` numbers them, others run over the terms of each."""
    terms = [loop for loop in loops if "reduce" in kinds_under(sch, block, loop)]
    part = max((loop for loop in loops if loop not in terms), key=lambda loop: extent_of(sch, loop))
    single = [loop for loop in loops if loop not in terms and loop is not part]
    sch.reorder(*single, *terms, part)
    size = extent_of(sch, part)
    init = sch.decompose_reduction(block, (*terms, part)[0])  # no loop is left of one term at most
    for each in (block, init):
        vectorize(sch, sch.get_loops(each)[-1], size, min(lanes, size), UNROLL)
