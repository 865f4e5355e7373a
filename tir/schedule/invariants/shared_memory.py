"""Resource limits of a kernel, checked after every step: bytes of shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...aliases import shares_memory
from ...analysis.block_regions import accessed_box
from ...analysis.index import BlockRef, LoopRef, index_of
from ...analysis.users import regions_of
from ...annotations import DIM_ALIGN, DOUBLE_BUFFER
from ...arith import Analyzer
from ...buffer import Buffer
from ...display import size_text
from ...expr import IntImm, Var
from ...function import PrimFunc
from ...levels import is_launch_axis, is_shared, shared_axes
from ...node import Memo
from ...stmt import SERIAL, THREAD_BINDING
from ...target import DYNAMIC, Target
from . import Delta, Keeps, Problem, invariant


@dataclass(frozen=True)
class SharedBuffer:
    """A buffer in shared memory: its kernel, its bytes after compaction, the blocks of its scope that use it
    (first and last, by number), and the innermost loop that allocates it."""

    buffer: Buffer
    kernel: LoopRef
    bytes: int
    first: int
    last: int
    loop: LoopRef


def shared_buffers(func: PrimFunc, delta: Delta | None = None) -> list[SharedBuffer]:
    """The shared-memory buffers of the kernels of ``func`` with a size that is known now. Those whose accesses
    ``delta`` shows to be unchanged, or to be made by the same threads, keep their extents."""
    extents = _EXTENTS.setdefault(func, {})
    known = _EXTENTS.get(delta.before) if delta is not None and delta.before is not None else None
    if delta is not None and known:
        all_same = delta.keeps >= Keeps.THREADS
        same = {b: found for b, found in known.items() if all_same or shares_memory(b, delta.unchanged_accesses)}
        extents.update({b: found for b, found in same.items() if b not in extents})
    found: list[SharedBuffer] = []
    index = index_of(func)
    for realize, buffer in index.allocations(is_shared):
        found += _measured(index.place(realize), buffer, extents)
    return found


Extents = tuple[int, ...]
Known = tuple[frozenset[Var], Extents | None]  # loops around all users that all threads run at once; the extents then
_EXTENTS: Memo[dict[Buffer, Known]] = Memo()  # after compaction


def _measured(scope: BlockRef, buffer: Buffer, known: dict[Buffer, Known]) -> list[SharedBuffer]:
    users = [
        (n, ref) for n, ref in enumerate(scope.children) if regions_of((*ref.block.reads, *ref.block.writes), buffer)
    ]
    if not users:
        return []
    common: list[LoopRef] = []
    for level in zip(*(ref.loops() for _, ref in users)):
        if any(loop is not level[0] for loop in level):
            break
        common.append(level[0])
    around = [*scope.all_loops(), *common]
    kernel = next((loop for loop in around if is_launch_axis(loop.node.thread)), None)
    if kernel is None:
        return []
    at_once = frozenset(loop.var for loop in common if loop.node.thread in shared_axes(buffer.scope))
    if buffer not in known or known[buffer][0] != at_once or known[buffer][1] is None:
        known[buffer] = at_once, _extents(buffer, [ref for _, ref in users], common, scope)
    extents = known[buffer][1]
    if extents is None:
        return []
    size = _bytes(extents, [ref for _, ref in users], buffer)
    return [SharedBuffer(buffer, kernel, size, users[0][0], users[-1][0], around[-1])]


def _extents(buffer: Buffer, users: Sequence[BlockRef], common: Sequence[LoopRef], scope: BlockRef) -> Extents | None:
    """The extents of ``buffer`` once it holds only what ``users`` access in one iteration of the ``common`` loops."""
    host = common[-1] if common else scope
    box = accessed_box(users, buffer, host, "reads", "writes", shared_by=shared_axes(buffer.scope))
    assert box is not None
    analyzer = Analyzer()
    extents: list[int] = []
    for touched, whole in zip(box, buffer.shape):
        sizes = [e.value for e in (analyzer.simplify(touched.extent), whole) if isinstance(e, IntImm)]
        if not sizes:
            return None
        extents.append(min(sizes))
    return tuple(extents)


def _bytes(extents: Extents, users: Sequence[BlockRef], buffer: Buffer) -> int:
    """The bytes of a buffer of these extents, with what the annotations of its ``users`` add."""
    doubled = any(
        ref.block.writes[int(ref.block.annotations[DOUBLE_BUFFER])].buffer is buffer
        for ref in users
        if DOUBLE_BUFFER in ref.block.annotations
    )
    return _padded(extents, users, buffer) * buffer.dtype.bytes * (2 if doubled else 1)


def _padded(extents: Sequence[int], users: Sequence[BlockRef], buffer: Buffer) -> int:
    """Elements of a buffer of these extents, with the strides that ``storage_align`` asked for."""
    aligned: dict[int, tuple[int, int]] = {}
    for ref in users:
        for number, axis, factor, offset in ref.block.annotations.get(DIM_ALIGN, ()):
            if ref.block.writes[int(number)].buffer is buffer:
                aligned[int(axis)] = (int(factor), int(offset))
    stride = 1
    for axis in reversed(range(len(extents))):
        if axis in aligned:
            factor, offset = aligned[axis]
            stride += (offset - stride) % factor
        stride *= extents[axis]
    return stride


@invariant(loops=(THREAD_BINDING,), proof=False)
def shared_memory(after: PrimFunc, delta: Delta) -> Iterator[Problem]:
    """A kernel needs no more shared memory than the GPU provides for a block.

    Without a GPU target, of the schedule or of the function, this is checked when lowering.
    """
    own = after.attrs.get("target")
    target = delta.target or (Target.of(own) if own is not None else None)
    static = target.limit("max_shared_memory_per_block") if target is not None else None
    if target is None or static is None:
        return
    found = shared_buffers(after, delta)
    limits = {"shared": static, "shared.dyn": target.limit("max_dynamic_shared_memory_per_block") or DYNAMIC}
    for scope, limit in limits.items():
        live = _most_at_once([b for b in found if b.buffer.scope == scope])
        total = sum(b.bytes for b in live)
        if total > limit:
            yield _too_much(live, scope, total, limit, limits["shared.dyn"], target)


def _most_at_once(buffers: Sequence[SharedBuffer]) -> list[SharedBuffer]:
    """The buffers of one kernel that are live at the same time, where their total size is largest."""
    best: list[SharedBuffer] = []
    for one in buffers:
        live = [
            b
            for b in buffers
            if b.kernel is one.kernel and b.first <= one.first <= b.last and b.loop.scope is one.loop.scope
        ]
        if sum(b.bytes for b in live) > sum(b.bytes for b in best):
            best = live
    return best


def _too_much(
    live: Sequence[SharedBuffer], scope: str, total: int, limit: int, dynamic: int, target: Target
) -> Problem:
    each = ", ".join(f"{b.buffer.name} {size_text(b.bytes)}" for b in sorted(live, key=lambda b: -b.bytes))
    tiles = dict.fromkeys(b.loop.name for b in live if b.loop.node.kind == SERIAL)
    ways = [f"shrink the tile of {', '.join(tiles)}" if tiles else "use smaller tiles"]
    if scope == "shared" and total <= dynamic:
        where = str(target.attrs["arch"]) if "arch" in target.attrs else "the newest GPUs"
        ways.append(f"use `shared.dyn` ({dynamic} B on {where})")
    return Problem(
        scope,
        f"shared memory of a block would be {total} B > {limit} B (`{scope}`): {each}",
        nodes=[b.loop.node for b in live[:1]],
        legal=", or ".join(ways),
        excess=total,
    )
