"""Privatization: whether each iteration of a loop could have its own copy of a buffer."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from ..aliases import Views, memory_of, shares_memory, sharing, source_of, views_in
from ..buffer import Buffer, IterVar
from ..expr import BufferLoad, Var
from ..function import PrimFunc
from ..levels import AXES, ends_with_launch, is_private, shared_axes
from ..node import EMPTY
from ..stmt import Block, BlockRealize, BufferStore, For
from ..visit import free_vars, nodes_of, uses_var, walk
from .contents import path_to
from .dependence.initialization import InitializedInIteration
from .users import used_memory


def is_privatizable(buffer: Buffer, loops: Sequence[For]) -> bool:
    """Whether each iteration of the innermost of nested ``loops`` initializes what it reads of ``buffer``. False means "not
    shown"."""
    return InitializedInIteration(tuple(loops), buffer).holds()


def could_be_private(func: PrimFunc, loop: For, memory: Var) -> bool:
    """Whether the buffer with the pointer ``memory`` is allocated around ``loop`` and privatizable for it.

    All its uses are in the loop, and an iteration reads only what it has written. Memory that threads have in common is
    private to none of them.
    """
    crossed: list[For] = [loop]
    around = path_to(func.body, loop)[:-1]
    for item in reversed(around):
        if isinstance(item, For):
            crossed.insert(0, item)
        elif isinstance(item, BlockRealize):
            buffer = next(iter(sharing(item.block.alloc_buffers, {memory})), None)
            if buffer is not None:
                common = shared_axes(buffer.scope) if ends_with_launch(buffer.scope) else AXES
                if any(n.thread in common for n in crossed):
                    return False
                return memory not in used_memory(func.body, {loop}, around) and is_privatizable(buffer, crossed)
    return False


def views_under(root: Any) -> Views:
    """The views that the blocks under ``root`` make, outermost first."""
    return views_in(n for n in nodes_of(root) if type(n) is Block)


def is_uniform(block: Block, loop: For, views: Views = EMPTY) -> bool:
    """Whether what ``block`` stores is a function of its iterators, each element stored by one instance: running it
    again in another iteration of ``loop`` stores the same values. ``views``: those of the program, see
    :func:`views_under`."""
    stores = [n for n in walk(block) if isinstance(n, BufferStore)]
    spatial = {v.var for v in block.iter_vars}
    if block.init is not None or any(v.iter_type != "spatial" for v in block.iter_vars):
        return False
    if not all(spatial <= {i for i in s.indices if isinstance(i, Var)} for s in stores):
        return False
    made = memory_of(source_of(s.buffer, views) for s in stores)
    loads = [n.buffer for n in walk(block) if isinstance(n, BufferLoad)]
    if any(shares_memory(source_of(b, views), made) or is_private(b.scope) for b in loads):
        return False
    return _moved_in(loop, spatial).isdisjoint(free_vars(block))


def _moved_in(loop: For, known: Set[Var]) -> set[Var]:
    """The variables, but for those ``known``, that have another value in another iteration of ``loop``, and the views of other
    elements."""
    inside = {n.loop_var for n in nodes_of(loop) if isinstance(n, For)}
    inside |= {n.var for n in nodes_of(loop) if isinstance(n, IterVar)} - known
    for pointer, view in views_under(loop).items():  # they show what iterators around the block say
        if uses_var(view.source, inside) or shares_memory(view.source, inside):
            inside.add(pointer)
    return inside
