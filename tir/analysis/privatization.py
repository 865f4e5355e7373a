"""Privatization: whether each iteration of a loop could have its own copy of a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from ..aliases import sharing
from ..buffer import Buffer
from ..expr import Var
from ..function import PrimFunc
from ..levels import ends_with_launch, shared_axes
from ..stmt import BlockRealize, For
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
                if ends_with_launch(buffer.scope):
                    is_common = loop.thread in shared_axes(buffer.scope)
                else:
                    is_common = any(n.thread for n in crossed)
                if is_common:
                    return False
                return memory not in used_memory(func.body, {loop}, around) and is_privatizable(buffer, crossed)
    return False
