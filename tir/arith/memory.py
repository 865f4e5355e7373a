"""Whether what is known of memory stays true while a statement runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ..expr import BufferLoad, Call, Var
from ..op import effect_of
from ..stmt import Block, BufferStore, LetStmt
from ..visit import LEAVES, nodes_of, walk


def may_change(e: Any, within: Any, aliased: Collection[Var] = ()) -> bool:
    """Whether ``e`` may get another value while the statement ``within`` runs: it reads memory that is written there.

    ``aliased`` has the pointers of memory that goes by several names around ``within``: a store to one of them may
    change what is read through another. A call with effects may change all memory.
    """
    if type(e) in LEAVES:
        return False
    nodes = nodes_of(e)
    if any(effect_of(n) != "pure" for n in nodes if type(n) is Call):
        return True
    read = {n.buffer.data for n in nodes if type(n) is BufferLoad}
    if not read:
        return False
    several = set(aliased)
    written: set[Var] = set()
    for n in walk(within):
        if isinstance(n, Call) and effect_of(n) not in ("pure", "read"):
            return True
        several.update(other_names(n))
        if isinstance(n, BufferStore):
            written.add(n.buffer.data)
    return bool(read & written) or bool(read & several and written & several)


def other_names(node: Any) -> Iterator[Var]:
    """Pointers of memory that ``node`` gives another name: views of a block, and what a pointer variable is made from."""
    if isinstance(node, Block):
        for view in node.match_buffers:
            yield from (view.buffer.data, view.source.buffer.data)
    elif isinstance(node, LetStmt) and node.var.dtype.is_handle:
        yield node.var
        for n in walk(node.value):
            if isinstance(n, BufferLoad):
                yield n.buffer.data
            elif isinstance(n, Var) and n.dtype.is_handle:
                yield n
