"""Each variable is defined at one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..buffer import Buffer, IterVar
from ..expr import Let, Reduce, Var
from ..function import PrimFunc
from ..names import claimed
from ..node import Node
from ..stmt import Allocate, AllocateConst, AttrStmt, Block, DeclBuffer, For, LetStmt
from ..visit import substitute, walk
from .passes import func_pass

# what of a definition is evaluated outside of it
_OUTSIDE: dict[type, tuple[str, ...]] = {
    For: ("min", "extent"), LetStmt: ("value",), Let: ("value",), Allocate: ("extents", "condition"),
    AllocateConst: ("extents",), AttrStmt: ("value",),
}  # fmt: skip


def _defined(item: Any) -> Iterator[Var]:
    """The variables that ``item`` always defines, whatever is around it."""
    if isinstance(item, For):
        yield item.loop_var
    elif isinstance(item, (LetStmt, Let)):
        yield item.var
    elif isinstance(item, (Allocate, AllocateConst)):
        yield item.buffer_var
    elif isinstance(item, Block):
        yield from (iterator.var for iterator in item.iter_vars)
        yield from (buffer.data for buffer in item.alloc_buffers)
    elif isinstance(item, Reduce):
        yield from (iterator.var for iterator in item.axis)


def _declared(item: Any) -> Iterator[Var]:
    """The variables that ``item`` defines where they are not in scope: pointers of views, their strides and offsets, and
    thread axes, which a kernel may launch again inside itself."""
    if isinstance(item, AttrStmt) and isinstance(item.node, IterVar):
        yield item.node.var
    buffers = [item.buffer] if isinstance(item, DeclBuffer) else []
    if isinstance(item, Block):
        buffers += [view.buffer for view in item.match_buffers]
    for buffer in buffers:
        yield from (n for n in _parts(buffer) if isinstance(n, Var))


def _parts(buffer: Buffer) -> tuple[Any, ...]:
    offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
    return (buffer.data, *buffer.strides, *offset)


def _buffers(item: Any) -> Iterator[Buffer]:
    """The buffers that ``item`` declares."""
    if isinstance(item, Block):
        yield from item.alloc_buffers
        yield from (view.buffer for view in item.match_buffers)
    elif isinstance(item, DeclBuffer):
        yield item.buffer


class _Renamer:
    def __init__(self, func: PrimFunc):
        parts = (x for b in func.buffer_map.values() for x in (b, *b.children()))
        self.active = {*func.params, *(n for x in parts for n in walk(x) if isinstance(n, (Var, Buffer)))}
        self.seen = set(self.active)
        self.blocks: set[Block] = set()
        self.names = {n.name for n in walk(func.body) if isinstance(n, Block)}

    def visit(self, item: Any) -> Any:
        if not isinstance(item, Node) or isinstance(item, (Var, Buffer)):
            return item
        if isinstance(item, Block):
            item = self.named(item)
        always = dict.fromkeys(_defined(item))
        where_new = [v for v in _declared(item) if v not in self.active and v not in always]
        new = [*always, *where_new, *_buffers(item)]
        if not new:
            return item.map_children(self.visit)
        item = self.renamed(item, [d for d in new if d in self.seen])
        here = {*_defined(item), *_buffers(item), *(v for v in _declared(item) if v not in self.active)}
        self.seen |= here
        outside = {name: self.value(getattr(item, name)) for name in _OUTSIDE.get(type(item), ())}
        before = self.active
        self.active = before | here
        made = item.map_children(self.visit)
        self.active = before
        changed = {k: v for k, v in outside.items() if v is not getattr(made, k)}
        return made.replace(**changed) if changed else made

    def named(self, block: Block) -> Block:
        """``block``, under a name of its own where it has stood before."""
        if block not in self.blocks or not block.name:
            self.blocks.add(block)
            return block
        return block.replace(name=claimed(block.name, self.names))

    def renamed(self, item: Any, again: list[Any]) -> Any:
        """``item`` with the definitions ``again`` as new ones; what is evaluated outside of them stays."""
        variables = {v: v.replace() for v in again if isinstance(v, Var)}
        if not again:
            return item
        buffers = {b: substitute(b.replace(), variables) for b in again if isinstance(b, Buffer)}
        made = substitute(item, variables, buffers)
        return made.replace(**{name: getattr(item, name) for name in _OUTSIDE.get(type(item), ())})

    def value(self, part: Any) -> Any:
        if isinstance(part, tuple):
            made = tuple(map(self.value, part))
            return part if all(a is b for a, b in zip(made, part)) else made
        return self.visit(part)


@func_pass
def convert_ssa(func: PrimFunc) -> PrimFunc:
    """Each variable and buffer is defined at one place, and each block stands at one, under a name of its own: what is defined
    again gets a new variable, or buffer, there.

    Loops, lets, allocations, iterators, views and thread axes one after the other may share a variable, as programs made
    by hand from one statement used twice do: a schedule takes them after this pass. A thread axis that a kernel launches
    again inside itself stays the one.

    In no pipeline: it is given by ``insert=``, or by a pass context.

    >>> import tir
    >>> i = tir.Var("i", "int32")
    >>> loop = tir.For(i, tir.IntImm(0), tir.IntImm(4), "serial", tir.Evaluate(i))
    >>> f = tir.PrimFunc((), tir.SeqStmt((loop, loop)))
    >>> first, second = tir.transform.convert_ssa(f).body.stmts
    >>> first.loop_var is second.loop_var
    False
    """
    return func.with_body(_Renamer(func).visit(func.body))
