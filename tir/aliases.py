"""Memory as alias classes: which names are of one memory, and what a store to one of them may change.

Buffers with one pointer (``data``) are of one memory. Pointers tell memory apart, but for those that :func:`other_names` and
:func:`overlapping` give: views, pointer variables, and parameters that may overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .expr import BufferLoad, Call, Expr, Var
from .function import PrimFunc
from .op import effect_of
from .stmt import Block, BufferStore, LetStmt
from .visit import LEAVES, nodes_of, walk


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
    return not read.isdisjoint(with_names(written, several))


def with_names(pointers: Collection[Var], aliased: Collection[Var]) -> frozenset[Var]:
    """The memory of ``pointers`` by all its names: with ``aliased``, the pointers of memory that goes by several names, if
    one of them is among it."""
    found = frozenset(pointers)
    return found if found.isdisjoint(aliased) else found.union(aliased)


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


def overlapping(func: PrimFunc) -> frozenset[Var]:
    """The pointers of the parameters of ``func`` that may be of one memory: of all of them, if ``tir.noalias`` is false.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     B[0] = A[0]
    ... ''')
    >>> overlapping(f), sorted(v.name for v in overlapping(f.with_attr("tir.noalias", False)))
    (frozenset(), ['A', 'B'])
    """
    if func.attrs.get("tir.noalias", True):
        return frozenset()
    pointers = (func.buffer_map[p].data if p in func.buffer_map else p for p in func.params)
    found = frozenset(p for p in pointers if p.dtype.is_handle)
    return found if len(found) > 1 else frozenset()


def may_alias(func: PrimFunc) -> bool:
    """Whether two names may be of one memory: parameters may overlap, buffers share a pointer, or a let names one.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     B[0] = A[0]
    ... ''')
    >>> may_alias(f), may_alias(f.with_attr("tir.noalias", False))
    (False, True)
    """
    data = [b.data for b in func.buffers()]
    if len(set(data)) != len(data) or overlapping(func):
        return True
    statements = walk(func.body, lambda n: not isinstance(n, Expr))
    return any(isinstance(n, LetStmt) and n.var.dtype.is_handle for n in statements)
