"""Scans along memory, such as prefix sums: vectors that are scanned in steps, to which what is before them is added."""

from __future__ import annotations

from ...analysis.index import index_of
from ...annotations import PARTITION_HINT
from ...expr import constant
from ...schedule import BlockRV, Schedule
from ...stmt import BufferStore
from ..space import Env, rule
from .spatial import share_out, vectorize

PARTS = 8  # vectors, at most, that are scanned in registers before what is before them is added


@rule(targets=("llvm",), order=36)
def scans(sch: Schedule, block: str, env: Env) -> list[Schedule]:
    """Scan each vector of a result in steps, some vectors at a time, and add what is before."""
    ref = index_of(sch.func).blocks.get(block)
    store = None if ref is None else ref.block.body
    if ref is None or not isinstance(store, BufferStore) or not store.indices or not ref.loops():
        return []
    along = next((i for i in ref.block.iter_vars if i.var is store.indices[-1]), None)
    if along is None or along.iter_type != "opaque":
        return []
    lanes, size = env.lanes(store.buffer.dtype.bits), constant(along.dom.extent) or 0
    if size < 2 * lanes or size % lanes or ref.node.bindings[along.var] is not ref.loops()[-1].var:
        return []
    made = sch.copy()
    *rows, loop = made.get_loops(block)
    _, inner = made.split(loop, [None, lanes])
    if not made.can.factor_scan(inner):
        return []
    made = sch.copy()
    strip = PARTS * lanes
    if size % strip == 0 and size > strip:
        _in_strips(made, block, strip, lanes)
    else:
        _in_vectors(made, block, lanes, size // lanes)
    share_out(made, rows, size * (len(rows) + 1), env)
    return [made]


def _in_strips(sch: Schedule, block: str, strip: int, lanes: int) -> None:
    """The scan of a long line: strips are scanned each by itself, so that none waits for the one before but by one addition."""
    outer, inner = sch.split(sch.get_loops(block)[-1], [None, strip])
    alone = sch.factor_scan(inner)
    part, steps = _steps(sch, alone.name, lanes)
    for step in (alone, part, *reversed(steps)):
        sch.compute_at(step, outer, preserve_unit_loops=True)
    _straight(sch, [*steps, part])
    *_, each, lane = sch.get_loops(alone)
    sch.vectorize(lane)
    sch.unroll(each)
    vectorize(sch, inner, strip, lanes, PARTS)
    sch.annotate(outer, PARTITION_HINT, 1)  # before the first strip is none


def _in_vectors(sch: Schedule, block: str, lanes: int, count: int) -> None:
    """The scan of ``count`` vectors, the innermost loop of ``block``."""
    part, steps = _steps(sch, block, lanes)
    *_, outer, inner = sch.get_loops(block)
    parts = next(n for n in range(min(PARTS, count), 0, -1) if count % n == 0)
    strip, each = sch.split(outer, [None, parts])
    for step in (part, *reversed(steps)):
        sch.compute_at(step, strip, preserve_unit_loops=True)
    _straight(sch, [*steps, part])
    sch.vectorize(inner)
    sch.unroll(each)
    sch.annotate(strip, PARTITION_HINT, 1)  # before the first vector is none


def _steps(sch: Schedule, block: str, lanes: int) -> tuple[BlockRV, list[BlockRV]]:
    """Scan the vectors of the innermost loop of ``block`` each by itself: the last step, and those before it."""
    _, inner = sch.split(sch.get_loops(block)[-1], [None, lanes])
    part = sch.factor_scan(inner)
    return part, sch.double_scan(sch.get_loops(part)[-1])


def _straight(sch: Schedule, steps: list[BlockRV]) -> None:
    """Steps as vectors, in straight code: each is picked from the registers of the one before."""
    for step in steps:
        *_, vectors, lane = sch.get_loops(step)
        sch.vectorize(lane)
        sch.unroll(vectors)
