"""Sinks allocations to their uses, into loops for which the buffer is privatizable."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..aliases import sharing
from ..analysis.block_regions import with_regions
from ..analysis.private_clause import with_private
from ..annotations import DIM_ALIGN
from ..buffer import Buffer
from ..errors import BuildError
from ..expr import TRUE, BufferLoad, Var
from ..function import PrimFunc
from ..levels import ends_with_launch
from ..names import unique_name
from ..node import frozendict
from ..stmt import AttrStmt, Block, BlockRealize, BufferStore, DeclBuffer, For, Stmt
from ..visit import statements
from .passes import func_pass

Path = tuple[Any, ...]


def _paths(func: PrimFunc, allocated: dict[Buffer, Path]) -> dict[Buffer, Path]:
    """For each allocated buffer the loops and blocks around all its uses; fills ``allocated`` with those around it."""
    common: dict[Buffer, Path] = {}
    by_pointer: dict[Var, Buffer] = {}

    def use(memory: Var, path: Path) -> None:
        buffer = by_pointer.get(memory)
        if buffer is None:
            return
        old = common.get(buffer)
        if old is None:
            common[buffer] = path
        elif old != path:
            same = 0
            while same < min(len(old), len(path)) and old[same] is path[same]:
                same += 1
            common[buffer] = old[:same]

    below: list[tuple[Any, Path]] = [(func.body, ())]
    while below:
        item, path = below.pop()
        if isinstance(item, Buffer):
            continue
        if isinstance(item, Var):
            use(item, path)
            continue
        children = item.children()
        if isinstance(item, (BufferLoad, BufferStore, DeclBuffer)):
            use(item.buffer.data, path)
        elif isinstance(item, Block):
            path = (*path, item)
            for buffer in item.alloc_buffers:
                allocated[buffer] = path
                by_pointer[buffer.data] = buffer
            for match in item.match_buffers:
                use(match.source.buffer.data, path)
            for region in (*item.reads, *item.writes):
                use(region.buffer.data, path)
            children = [child for child in (item.init, item.body) if child is not None]
        elif isinstance(item, For) or _launches(item):
            path = (*path, item)
        below += [(child, path) for child in reversed(children)]
    return common


def _launches(item: Any) -> bool:
    """Whether ``item`` launches an axis of threads for the statements in it."""
    return isinstance(item, AttrStmt) and item.attr_key == "thread_extent"


def _destination(buffer: Buffer, start: Path, uses: Path) -> Any:
    """The loop, launch or block that shall allocate ``buffer``: the deepest one that preserves the meaning."""
    from ..analysis.dependence.initialization import is_privatizable

    for depth in range(len(uses), len(start), -1):
        around = uses[len(start) : depth]
        crossed = [n for n in around if isinstance(n, For)]
        if not ends_with_launch(buffer.scope) and (any(n.thread for n in crossed) or any(map(_launches, around))):
            continue  # a kernel has no global memory of its own
        declared = bool(crossed) and bool(sharing(crossed[-1].private, buffer))
        if not crossed or declared or is_privatizable(buffer, crossed):
            _require_no_copies(buffer, uses[depth:])
            return uses[depth - 1]
    _require_no_copies(buffer, uses[len(start) :])
    return start[-1]


def _require_no_copies(buffer: Buffer, inside: Path) -> None:
    """Raise ``BuildError`` if a loop inside of the allocation of ``buffer`` gives each iteration a copy."""
    loop = next((n for n in inside if isinstance(n, For) and sharing(n.private, buffer)), None)
    if loop is not None:
        raise BuildError(
            f"each iteration of loop `{loop.loop_var.name}` has `{buffer.name}` for itself, which is global memory: a kernel "
            f'has none of its own\nlegal: set_scope(…, "{buffer.name}", "local")'
        )


def _renumbered(block: Block, old: Block) -> Block:
    """``block`` with its alignment annotations (rows that begin with the number of a written buffer) renumbered for the
    writes that ``old`` still has; a buffer that only the block itself uses needs none."""
    rows = block.annotations.get(DIM_ALIGN)
    if not rows:
        return block
    kept = {n: place for place, n in enumerate(n for n, w in enumerate(old.writes) if w in block.writes)}
    said = tuple((kept[int(row[0])], *row[1:]) for row in rows if int(row[0]) in kept)
    notes = {k: v for k, v in block.annotations.items() if k != DIM_ALIGN}
    return block.replace(annotations=frozendict({**notes, DIM_ALIGN: said} if said else notes))


@func_pass
def plan_and_update_buffer_allocation_location(func: PrimFunc) -> PrimFunc:
    """Each block-level allocation moves to the innermost loop or block that contains all its uses.

    A loop is entered where its ``private`` clause names the buffer, and, to make the buffer smaller, where every
    iteration writes what it reads of it. Global memory stays outside loops bound to threads; raises ``BuildError`` where a
    clause inside of them names it.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     H = T.alloc_buffer((8,), "float32")
    ...     for i in range(8):
    ...         with T.block("H"):
    ...             vi = T.axis.spatial(8, i)
    ...             H[vi] = A[vi] * 2.0
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             B[vi] = H[vi] + 1.0
    ... ''')
    >>> tir.transform.plan_and_update_buffer_allocation_location(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        for i in range(8):
            with T.block("H_scope"):
                T.reads(A[i])
                T.writes(B[i])
                H = T.alloc_buffer((8,), "float32")
                with T.block("H"):
                    vi = T.axis.spatial(8, i)
                    T.reads(A[vi])
                    T.writes(H[vi])
                    H[vi] = A[vi] * 2.0
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    T.reads(H[vi])
                    T.writes(B[vi])
                    B[vi] = H[vi] + 1.0
    """
    allocated: dict[Buffer, Path] = {}
    uses = _paths(func, allocated)
    arrivals: dict[Any, list[Buffer]] = {}
    moved: set[Buffer] = set()
    for buffer, start in allocated.items():
        if buffer not in uses:
            continue
        place = _destination(buffer, start, uses[buffer])
        if place is not start[-1]:
            arrivals.setdefault(place, []).append(buffer)
            moved.add(buffer)
    if not moved and not any(isinstance(n, For) and n.private for n in statements(func.body)):
        return func
    names = {n.name for n in statements(func.body) if isinstance(n, Block)}

    def place_in(item: Any, old: Any) -> Any:
        arrived = tuple(arrivals.get(old, ()))
        if isinstance(item, Block):
            stay = tuple(b for b in item.alloc_buffers if b not in moved)
            if arrived or len(stay) != len(item.alloc_buffers):
                # a block's own allocations are not part of its declared regions
                reads = tuple(r for r in item.reads if r.buffer not in arrived)
                writes = tuple(w for w in item.writes if w.buffer not in arrived)
                changed = item.replace(alloc_buffers=(*stay, *arrived), reads=reads, writes=writes)
                return changed if len(writes) == len(item.writes) else _renumbered(changed, item)
        if isinstance(item, For) and item.private:
            item = with_private(item, ())  # the allocation inside the loop says it now
        if isinstance(item, (For, AttrStmt)) and arrived:
            names.add(name := unique_name(f"{arrived[0].name}_scope", names))
            inner = Block((), (), (), name, item.body, None, arrived)
            return item.replace(body=BlockRealize((), TRUE, with_regions(inner)))
        return item

    return func.with_body(_mapped(func.body, place_in))


def _mapped(item: Any, make: Callable[[Any, Any], Any]) -> Any:
    """``item`` with each statement replaced by what ``make`` makes of it, with its children replaced, and of it as it was."""
    return make(item.map_children(partial(_mapped, make=make)), item) if isinstance(item, Stmt) else item
