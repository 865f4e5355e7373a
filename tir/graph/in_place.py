"""Functions that write their result over an input: where each element is read before, and by the statement that, replaces it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from ..aliases import other_names, sharing
from ..analysis.contents import path_to
from ..analysis.dependence.domains import Injective
from ..buffer import Buffer
from ..equal import structural_equal
from ..expr import BufferLoad, Call, Expr, Var
from ..function import PrimFunc
from ..node import frozendict, once
from ..stmt import BlockRealize, BufferStore, DeclBuffer, For, IfThenElse, SeqStmt, Stmt, While, seq
from ..visit import accesses, rewrite_statements, substitute, walk


def in_place(func: PrimFunc, source: Buffer, result: Buffer) -> PrimFunc | None:
    """``func`` with one parameter in the place of ``source`` and ``result``: it holds the one before a call, and the other after. None if
    an element of ``source`` may be read after it was overwritten; or if nothing would be left to do.

    The first statement of the function, or of each of its versions, that writes ``result`` may read ``source`` where it stores each element once, and reads the one that
    it replaces; those before may read it as they like, and those after not at all.

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
    if not isinstance(func.body, BlockRealize) or not _otherwise_used(func).isdisjoint(
        b for each in (source, result) for b in (each, each.data)
    ):
        return None
    left = _left(func.body.block.body, source, result)
    if left is None:
        return None
    body = func.body.replace(block=func.body.block.replace(body=left))
    return _with_one(func, body, {source: result}, source)


def _with_one(func: PrimFunc, body: Stmt, instead: Mapping[Buffer, Buffer], source: Buffer) -> PrimFunc:
    """``func`` with a body in which buffers are replaced, without the parameter ``source``."""
    return PrimFunc(
        tuple(p for p in func.params if func.buffer_map.get(p) is not source),
        substitute(body, {}, instead),
        buffer_map={p: b for p, b in func.buffer_map.items() if b is not source},
        attrs=frozendict(func.attrs),
    )


def lowered_in_place(func: PrimFunc, source: Buffer, result: Buffer) -> PrimFunc | None:
    """As :func:`in_place` of a function of which that made something: of ``func``, which is that function with flat buffers. None where statements would
    be left out, and where the two buffers do not have one view each, of one shape."""
    found = accesses(func.body)
    ones, others = ({a.buffer for a in sharing(found, memory)} for memory in (source, result))
    if len(ones) != 1 or len(others) != 1:
        return None
    (one,), (other,) = ones, others
    if one.dtype != other.dtype or not structural_equal(one.shape, other.shape):
        return None
    if any(a.buffer is other and isinstance(a, BufferStore) and _reads(a.value, one) for a in found):
        return None
    left = rewrite_statements(func.body, lambda s: s.body if isinstance(s, DeclBuffer) and s.buffer is one else None)
    return _with_one(func, left, {one: other}, source)


def _left(body: Stmt, source: Buffer, result: Buffer) -> Stmt | None:
    """What there is to do of a body, or of each of its versions, if ``result`` lies over ``source``; None as for :func:`in_place`."""
    if isinstance(body, IfThenElse) and body.else_case is not None and not _loads(body.condition, source):
        then, other = (_left(part, source, result) for part in (body.then_case, body.else_case))
        return None if then is None or other is None else body.replace(then_case=then, else_case=other)
    kept = [s for s in _in_stages(body, source, result) if not _copies(s, source, result)]
    return seq(kept) if kept else None


def _in_stages(body: Stmt, source: Buffer, result: Buffer) -> list[Stmt]:
    """The statements of a body one after another; none where an element may be read too late."""
    stages = list(body.stmts) if isinstance(body, SeqStmt) else [body]
    first = next((n for n, s in enumerate(stages) if _stores(s, result)), None)
    if first is None or any(_loads(s, source) for s in stages[first + 1 :]):
        return []
    if _loads(stages[first], source) and not _replaces(stages[first], source, result):
        return []
    return stages


def _stores(stmt: Stmt, buffer: Buffer) -> list[BufferStore]:
    return [n for n in walk(stmt) if isinstance(n, BufferStore) and n.buffer is buffer]


def _loads(where: Stmt | Expr, buffer: Buffer) -> list[BufferLoad]:
    return [n for n in walk(where) if _reads(n, buffer)]


def _reads(node: Any, buffer: Buffer) -> TypeGuard[BufferLoad]:
    return isinstance(node, BufferLoad) and node.buffer is buffer


@once
def _otherwise_used(func: PrimFunc) -> frozenset[Buffer | Var]:
    """The buffers, or pointers of these, that are used other than by loads and stores: by their address, or a view of them."""
    found = set[Buffer | Var]()
    for n in walk(func.body):
        if isinstance(n, Call) and n.op == "address_of":
            found.update(a.buffer for a in n.args if isinstance(a, BufferLoad))
        elif isinstance(n, Var):
            found.add(n)
        else:
            found.update(other_names(n))
    return frozenset(found)


def _replaces(stage: Stmt, source: Buffer, result: Buffer) -> bool:
    """Whether the only store to ``result`` is of each element once, and ``source`` is read at that element alone, and not after it."""
    (store, *others) = _stores(stage, result)
    if others or not all(_same(load.indices, store.indices) for load in _loads(stage, source)):
        return False
    nodes = list(walk(stage))
    after = nodes[next(n for n, each in enumerate(nodes) if each is store) :]
    is_last = sum(_reads(n, source) for n in after) == len(_loads(store, source))
    return is_last and _stores_each_once(stage, store)


def _stores_each_once(stage: Stmt, store: BufferStore) -> bool:
    """Whether no two runs of ``store`` are of one element: its indices, in terms of the loops around it, are injective."""
    loops, bound = {}, {}
    for node in path_to(stage, store):
        if isinstance(node, While):
            return False
        if isinstance(node, For):
            loops[node.loop_var] = node.domain
        if isinstance(node, BlockRealize):
            bound |= {v: substitute(e, bound) for v, e in node.bindings.items()}
    return Injective(tuple(substitute(i, bound) for i in store.indices), loops).answer().is_proved


def _same(one: Iterable[Expr], other: Iterable[Any]) -> bool:
    return all(a is b or structural_equal(a, b) for a, b in zip(one, other))


def _copies(stage: Stmt, source: Buffer, result: Buffer) -> bool:
    """Whether all that a stage does is to store elements of ``source`` in ``result``."""
    stores = [n for n in walk(stage) if isinstance(n, BufferStore)]
    return bool(stores) and all(
        s.buffer is result and isinstance(s.value, BufferLoad) and s.value.buffer is source for s in stores
    )
