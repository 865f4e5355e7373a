"""Whether loops whose iterations run at once still may, checked after every step.

A step that places a block, a copy or a layout's padding changes what iterations of the loops around touch, whichever
primitive it is. So the answer is the same whether a loop was made parallel before or after. The loop of
the lanes inside an intrinsic is taken on trust: behind its pointers it does what the block did that it replaced.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ...analysis.dependence.verdict import Violation
from ...analysis.index import Index, LoopRef, index_of
from ...analysis.privatization import private_buffers
from ...analysis.simple_blocks import constant, distinguishes_iterations
from ...errors import ScheduleError
from ...function import PrimFunc
from ...stmt import THREAD_BINDING, BlockRealize, BufferStore, For, SeqStmt
from ...visit import walk
from ..blocks import clash
from .delta import BufferSet, may_clash, unchanged_buffers

CONCURRENT = ("parallel", "vectorized", "thread_binding")


def check_independence(before: PrimFunc | None, after: PrimFunc, only_marked: bool = False) -> None:
    """Raise ``ScheduleError``, with a witness, where iterations of a loop of ``after`` that runs them at once meet in an
    element, and the step from ``before`` brought that about.

    ``only_marked``: the step marked a loop and left what each iteration touches, so only that loop is asked.
    """
    known: Any = {} if before is None else index_of(before).places
    if only_marked and before is not None:
        kinds = {ref.var: ref.node.kind for ref in index_of(before).loops.values()}
        known = {ref.node for ref in index_of(after).loops.values() if kinds.get(ref.var) == ref.node.kind}
    found = _problem(after, known, before)
    if found is None or (before is not None and _problem(before, {}) is not None):
        return
    raise ScheduleError(found.rule, witness=found.witness, nodes=found.nodes, func=after, legal=found.legal)


def loses_private(before: PrimFunc | None, after: PrimFunc) -> bool:
    """Whether a buffer that each iteration of a marked loop could have for itself is no longer seen to be one.

    A step that leaves what iterations touch may still give the program a form from which it cannot be told, and lowering
    would let them share the buffer.
    """
    if before is None:
        return False
    known = {ref.var for ref in index_of(before).loops.values()}
    new = [ref for ref in index_of(after).loops.values() if ref.var not in known]
    if all(constant(ref.node.extent) is not None for ref in new):
        return False  # loops of known lengths leave to exact sets what they could tell
    old = {ref.var: ref.node for ref in index_of(before).loops.values() if ref.node.kind in CONCURRENT}
    for ref in index_of(after).loops.values():
        was = old.get(ref.var)
        if was is None or was is ref.node or ref.node.kind == THREAD_BINDING:
            continue
        if private_buffers(before, was) - private_buffers(after, ref.node):
            return True
    return False


def _problem(func: PrimFunc, known: Container[For], before: PrimFunc | None = None) -> Violation | None:
    """``before``: a program that is known to have none."""
    index = index_of(func)
    same: BufferSet | None = None
    for ref in index.loops.values():
        node = ref.node
        if node.kind not in CONCURRENT or node in known or constant(node.extent) in (0, 1):
            continue
        if same is None:
            same = unchanged_buffers(before, func)
        if may_clash(func, ref, same) and not _plain(index, ref) and not _of_an_intrinsic(index, ref):
            found = clash(func, node)
            if found is not None:
                return found
    return None


def _of_an_intrinsic(index: Index, ref: LoopRef) -> bool:
    """Whether ``ref`` is the loop of the lanes in what tensorize put in: calls, which work for a warp together."""
    calls = not index.blocks_below(ref) and not any(isinstance(n, BufferStore) for n in walk(ref.node))
    return calls and ref.node.kind == "thread_binding"


def _plain(index: Index, ref: LoopRef) -> bool:
    """Whether iterations plainly keep to elements of their own: told apart by each block's iterators, no block touching
    what another writes."""
    blocks = index.blocks_below(ref)
    inside = {b: [p.node for p in b.loops() if ref in p.ancestors()] for b in blocks}
    if not blocks or any(isinstance(p.node, For) and p.scope is not ref.scope for p in index.below(ref)):
        return False
    if any(p.scope is ref.scope and not isinstance(p.node, (For, BlockRealize, SeqStmt)) for p in index.below(ref)):
        return False  # conditions and values of lets may read memory
    if not all(distinguishes_iterations(b.node, ref.node, inside[b]) for b in blocks):
        return False
    touched = [{r.buffer.data for r in (*b.block.reads, *b.block.writes)} for b in blocks]
    return all(
        n == m or touched[n].isdisjoint(r.buffer.data for r in b.block.writes)
        for n in range(len(blocks))
        for m, b in enumerate(blocks)
    )
