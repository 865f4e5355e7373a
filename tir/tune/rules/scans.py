"""Scans along memory, such as prefix sums: vectors that are scanned in steps, to which what is before them is added."""

from __future__ import annotations

from ...analysis.annotations import PARTITION_HINT
from ...analysis.index import index_of
from ...expr import constant
from ...schedule import Schedule
from ...stmt import BufferStore
from ..space import Env, rule
from .spatial import share_out

PARTS = 16  # vectors, at most, that are scanned before what is before them is added
TOGETHER = 4  # of these at a time


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
    _in_vectors(made, block, lanes, size // lanes)
    share_out(made, rows, size * (len(rows) + 1), env)
    return [made]


def _in_vectors(sch: Schedule, block: str, lanes: int, count: int) -> None:
    """The scan of ``count`` vectors, the innermost loop of ``block``."""
    outer, inner = sch.split(sch.get_loops(block)[-1], [None, lanes])
    part = sch.factor_scan(inner)
    steps = sch.double_scan(sch.get_loops(part)[-1])
    parts = next(n for n in range(min(PARTS, count), 0, -1) if count % n == 0)
    strip, each = sch.split(outer, [None, parts])
    for step in (part, *reversed(steps)):
        sch.compute_at(step, strip, preserve_unit_loops=True)
    for step in (*steps, part):
        *_, vectors, lane = sch.get_loops(step)
        sch.vectorize(lane)
        if parts % TOGETHER == 0:
            _, together = sch.split(vectors, [None, TOGETHER])
            sch.unroll(together)
    sch.vectorize(inner)
    sch.unroll(each)
    sch.annotate(strip, PARTITION_HINT, 1)  # before the first vector is none
