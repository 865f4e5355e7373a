"""Functions that write their result over an input: where each element is read before, and by the statement that, replaces it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..buffer import Buffer
from ..equal import structural_equal
from ..expr import BufferLoad, Expr, IntImm, Var, is_const
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import Block, BlockRealize, BufferStore, For, SeqStmt, Stmt, While, seq
from ..visit import substitute, walk


def in_place(func: PrimFunc, source: Buffer, result: Buffer) -> PrimFunc | None:
    """``func`` with one parameter in the place of ``source`` and ``result``: it holds the one before a call, and the other after. None if
    an element of ``source`` may be read after it was overwritten; or if nothing would be left to do.

    That is so where one block alone reads ``source`` and writes ``result``, once each element, and reads the element that it replaces: blocks keep
    their instances in any schedule. Otherwise the first statement of the function that writes ``result`` may read ``source`` so; those
    before may read it as they like, and those after not at all.

    >>> from tir import te
    >>> x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
    >>> total = te.compute((4,), lambda i: x[i] + y[i], name="total")
    >>> turned = te.compute((4,), lambda i: x[3 - i] + y[i], name="total")
    >>> for f in (te.create_prim_func([x, y, t]) for t in (total, turned)):
    ...     made = in_place(f, f.buffers()[0], f.buffers()[2])
    ...     print(made and [b.name for b in made.buffers()])
    ['y', 'total']
    None
    """
    if source.dtype != result.dtype or not structural_equal(source.shape, result.shape):
        return None
    if not isinstance(func.body, BlockRealize) or any(_has_pointer(func, b) for b in (source, result)):
        return None
    body = func.body.block.body
    kept = [body] if _is_in_one_block(body, source, result) else _in_stages(body, source, result)
    kept = [s for s in kept if not _copies(s, source, result)]
    if not kept:
        return None
    body = func.body.replace(block=func.body.block.replace(body=seq(kept)))
    return PrimFunc(
        tuple(p for p in func.params if func.buffer_map.get(p) is not source),
        substitute(body, {}, {source: result}),
        buffer_map={p: b for p, b in func.buffer_map.items() if b is not source},
        attrs=frozendict(func.attrs),
    )


def _is_in_one_block(body: Stmt, source: Buffer, result: Buffer) -> bool:
    """Whether one block has all accesses to both, and the loops around it run each instance of it once."""
    using = [n for n in walk(body) if isinstance(n, Block) and (_loads(n, source) or _stores(n, result))]
    if len(using) != 1 or _loads(body, result) or not _replaces(using[0], source, result):
        return False
    around = [n.extent for n in walk(body) if isinstance(n, For) and any(b is using[0] for b in walk(n.body))]
    inside = [n for n in walk(using[0]) if isinstance(n, (For, While))]
    instances, runs = _product(i.dom.extent for i in using[0].iter_vars), _product(around)
    counts = [(len(_loads(n, source)), len(_stores(n, result))) for n in (body, using[0])]
    return counts[0] == counts[1] and not inside and instances is not None and instances == runs


def _product(extents: Iterable[Any]) -> int | None:
    """How many instances there are; None if that is not constant."""
    sizes = [e.value if isinstance(e, IntImm) else None for e in extents]
    return None if None in sizes else math.prod(s for s in sizes if s is not None)


def _in_stages(body: Stmt, source: Buffer, result: Buffer) -> list[Stmt]:
    """The statements of a function one after another; none where an element may be read too late."""
    stages = list(body.stmts) if isinstance(body, SeqStmt) else [body]
    first = next((n for n, s in enumerate(stages) if _stores(s, result)), None)
    if first is None or any(_loads(s, source) for s in stages[first + 1 :]):
        return []
    if _loads(stages[first], source) and not _replaces(stages[first], source, result):
        return []
    return stages


def _stores(stmt: Stmt, buffer: Buffer) -> list[BufferStore]:
    return [n for n in walk(stmt) if isinstance(n, BufferStore) and n.buffer is buffer]


def _loads(stmt: Stmt, buffer: Buffer) -> list[BufferLoad]:
    return [n for n in walk(stmt) if isinstance(n, BufferLoad) and n.buffer is buffer]


def _has_pointer(func: PrimFunc, buffer: Buffer) -> bool:
    """Whether the address of a buffer is used other than by loads of it."""
    return any(n is buffer.data for n in walk(func.body) if isinstance(n, Var))


def _replaces(stage: Stmt, source: Buffer, result: Buffer) -> bool:
    """Whether each instance of the only store to ``result`` is of an element of its own, and reads that of ``source`` alone."""
    (store, *others) = _stores(stage, result)
    if others or not all(_same(load.indices, store.indices) for load in _loads(stage, source)):
        return False
    blocks = [n for n in walk(stage) if isinstance(n, Block)]
    iterators = [(i.var, i.dom.extent) for b in blocks for i in b.iter_vars]
    iterators = iterators or [(n.loop_var, n.extent) for n in walk(stage) if isinstance(n, For)]
    at = {id(i) for i in store.indices}
    return all(b.init is None for b in blocks) and all(id(v) in at or is_const(extent, 1) for v, extent in iterators)


def _same(one: Iterable[Expr], other: Iterable[Any]) -> bool:
    return all(a is b or structural_equal(a, b) for a, b in zip(one, other))


def _copies(stage: Stmt, source: Buffer, result: Buffer) -> bool:
    """Whether all that a stage does is to store elements of ``source`` in ``result``."""
    stores = [n for n in walk(stage) if isinstance(n, BufferStore)]
    return bool(stores) and all(
        s.buffer is result and isinstance(s.value, BufferLoad) and s.value.buffer is source for s in stores
    )
