"""Statement nodes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from .buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion, Range
from .dtype import DType
from .expr import TRUE, BufferLoad, Expr, IntImm, Var, const
from .node import EMPTY, Node, Span, made_from, node, once

S = TypeVar("S", bound="Stmt")
SERIAL, PARALLEL, VECTORIZED, UNROLLED, THREAD_BINDING = (
    "serial",
    "parallel",
    "vectorized",
    "unrolled",
    "thread_binding",
)
PLAIN_KINDS = (SERIAL, PARALLEL, VECTORIZED, UNROLLED)  # without a thread axis
LOOP_KINDS = (*PLAIN_KINDS, THREAD_BINDING)


@node
class Stmt(Node):
    """Base of statements; ``span`` is the place in the user's source, where there is one.

    >>> import tir
    >>> isinstance(tir.Evaluate(tir.IntImm(0)), tir.Stmt), tir.Evaluate(tir.IntImm(0)).span
    (True, None)
    """

    span: Span | None = dataclasses.field(default=None, kw_only=True, compare=False)

    def map_statements(self: S, fn: Callable[[Stmt], Any]) -> S:
        """:meth:`map_children` of the statements directly in it alone."""
        return self.map_children(lambda child: fn(child) if isinstance(child, Stmt) else child)

    def faults(self) -> Iterator[str]:
        """What is wrong with the statement, whatever is around it and in it."""
        return iter(())


@node
class BufferStore(Stmt):
    """``buffer[indices] = value``; a Ramp as last index makes it a vector store.

    >>> import tir
    >>> A = tir.decl_buffer((8,), "float32", "A")
    >>> tir.BufferStore(A, tir.FloatImm(1.0, "float32"), (tir.Var("i"),))
    A[i] = T.float32(1)
    """

    from_numbers = {"value": "as_expr(value, buffer.dtype)"}
    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]

    def faults(self) -> Iterator[str]:
        yield from self.buffer.index_faults(self.indices)
        want = self.buffer.dtype
        if self.indices and self.indices[-1].dtype.lanes > 1:
            want = BufferLoad(self.buffer, self.indices).dtype
        if self.value.dtype is not want:
            yield f"a store of {self.value.dtype} into `{self.buffer.name}`, which holds {want}"


@node
class For(Stmt):
    """A counted loop over [min, min + extent). ``kind`` is one of serial, parallel, vectorized, unrolled,
    thread_binding; ``thread`` is the thread axis (``"blockIdx.x"``, ``"vthread"`` …) of the last kind, else empty.

    The annotation ``private`` lists buffers, allocated around the loop and used in it only, of which each iteration has
    a copy of its own: uninitialised when it starts, and gone when it ends.

    >>> import tir
    >>> A, i = tir.decl_buffer((8,), "float32", "A"), tir.Var("i")
    >>> tir.For(i, tir.IntImm(0), tir.IntImm(8), "parallel", tir.BufferStore(A, tir.FloatImm(1.0, "float32"), (i,)))
    for i in T.parallel(8):
        A[i] = T.float32(1)
    """

    from_numbers = {"min": "as_expr(min, loop_var.dtype)", "extent": "as_expr(extent, loop_var.dtype)"}
    loop_var: Var
    min: Expr
    extent: Expr
    kind: str
    body: Stmt
    thread: str = ""
    annotations: Any = EMPTY

    @property
    @once
    def domain(self) -> Range:
        """The values of the loop variable."""
        return Range(self.min, self.extent)

    @property
    def private(self) -> tuple[Buffer, ...]:
        """The buffers of which each iteration has a copy of its own (the annotation ``private``)."""
        return self.annotations.get("private", ())

    def faults(self) -> Iterator[str]:
        var, thread = self.loop_var, self.thread
        if self.kind not in LOOP_KINDS:
            yield f"loop `{var.name}` has the unknown kind {self.kind!r}"
        if (self.kind == THREAD_BINDING) is not (thread != ""):
            yield f"loop `{var.name}` of kind {self.kind} has the thread axis {thread!r}"
        for part, e in (("minimum", self.min), ("extent", self.extent)):
            if e.dtype is not var.dtype:
                yield f"loop `{var.name}` is {var.dtype}, but its {part} {e.dtype}"
                break


@node
class While(Stmt):
    """``body`` run again and again, as long as ``condition`` holds before it.

    >>> import tir
    >>> n = tir.decl_buffer((1,), "int32", "n")
    >>> zero = tir.IntImm(0)
    >>> tir.While(n[0] > 0, tir.BufferStore(n, n[0] - 1, (zero,)))
    while n[0] > 0:
        n[0] = n[0] - 1
    """

    from_numbers = {"condition": "as_bool(condition)"}
    condition: Expr
    body: Stmt


@node
class IfThenElse(Stmt):
    """``then_case`` where ``condition`` holds, otherwise ``else_case``, if there is one.

    >>> import tir
    >>> A, i = tir.decl_buffer((8,), "float32", "A"), tir.Var("i")
    >>> tir.IfThenElse(i < 4, tir.BufferStore(A, tir.FloatImm(1.0, "float32"), (i,)))
    if i < 4:
        A[i] = T.float32(1)
    """

    from_numbers = {"condition": "as_bool(condition)"}
    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None

    def faults(self) -> Iterator[str]:
        if not self.condition.dtype.is_bool:
            yield f"an `if` on a condition of dtype {self.condition.dtype}"


@node
class SeqStmt(Stmt):
    """Two or more statements in order, never nested: build it with :func:`seq`.

    >>> import tir
    >>> A, zero, one = tir.decl_buffer((2,), "int32", "A"), tir.IntImm(0), tir.IntImm(1)
    >>> tir.SeqStmt((tir.BufferStore(A, zero, (zero,)), tir.BufferStore(A, one, (one,))))
    A[0] = 0
    A[1] = 1
    """

    stmts: tuple[Stmt, ...]

    def faults(self) -> Iterator[str]:
        if len(self.stmts) < 2 or SeqStmt in map(type, self.stmts):
            yield "a sequence holds two or more statements, none of them a sequence"


@node
class LetStmt(Stmt):
    """``body`` with ``var`` bound to ``value``.

    >>> import tir
    >>> A, x = tir.decl_buffer((8,), "int32", "A"), tir.Var("x")
    >>> tir.LetStmt(x, tir.Var("i") * 2, tir.BufferStore(A, x, (x,)))
    x: T.int32 = i * 2
    A[x] = x
    """

    from_numbers = {"value": "as_expr(value, var.dtype)"}
    var: Var
    value: Expr
    body: Stmt

    def faults(self) -> Iterator[str]:
        if self.value.dtype is not self.var.dtype and not self.var.dtype.is_handle:
            yield f"`{self.var.name}` is {self.var.dtype}, but its value {self.value.dtype}"


@node
class AssertStmt(Stmt):
    """Stop with ``message`` unless ``condition`` holds. A leaf: what follows it is the next statement.

    >>> import tir
    >>> tir.AssertStmt(tir.Var("n") > 0, tir.StringImm("n is positive"))
    assert n > 0, "n is positive"
    """

    from_numbers = {"condition": "as_bool(condition)"}
    condition: Expr
    message: Expr


@node
class Evaluate(Stmt):
    """An expression for its effect.

    >>> import tir
    >>> tir.Evaluate(tir.call_packed("notify", tir.IntImm(1)))
    T.call_packed("notify", 1)
    """

    value: Expr


@node
class AttrStmt(Stmt):
    """``body`` under the fact ``attr_key`` = ``value`` about ``node`` (an IterVar, Buffer, Var, number or string).

    ``thread_extent`` on an IterVar launches a thread axis.

    >>> import tir
    >>> tir.AttrStmt(tir.IntImm(0), "pragma_note", tir.IntImm(1), tir.Evaluate(tir.call_packed("notify")))
    T.attr(T.int32(0), "pragma_note", 1)
    T.call_packed("notify")
    """

    node: Any
    attr_key: str
    value: Expr
    body: Stmt


@node
class Allocate(Stmt):
    """``body`` with ``buffer_var`` pointing to ``extents`` elements of ``dtype`` (storage scope: ``buffer_var.scope``).

    >>> import tir
    >>> pointer = tir.Var("H", "handle", "float32", "global")
    >>> nothing = tir.Evaluate(tir.call_packed("notify"))
    >>> tir.Allocate(pointer, "float32", (tir.IntImm(8),), tir.IntImm(1, "bool"), nothing)
    H = T.allocate([8], "float32", "global")
    T.call_packed("notify")
    """

    from_numbers = {"condition": "as_bool(condition)"}
    buffer_var: Var
    dtype: DType
    extents: tuple[Expr, ...]
    condition: Expr
    body: Stmt
    annotations: Any = EMPTY


@node
class AllocateConst(Stmt):
    """``body`` with ``buffer_var`` pointing to constant ``data`` (a NumPy array, row-major).

    >>> import numpy as np
    >>> import tir
    >>> pointer = tir.Var("H", "handle", "float32", "global")
    >>> nothing = tir.Evaluate(tir.call_packed("notify"))
    >>> tir.AllocateConst(pointer, "float32", (tir.IntImm(2),), np.array([1, 2], "float32"), nothing)
    H = T.allocate_const([1.0, 2.0], "float32", [2])
    T.call_packed("notify")
    """

    buffer_var: Var
    dtype: DType
    extents: tuple[Expr, ...]
    data: Any
    body: Stmt
    annotations: Any = EMPTY

    def faults(self) -> Iterator[str]:
        from .visit import statements

        name, sizes = self.buffer_var.name, [e.value for e in self.extents if isinstance(e, IntImm)]
        if len(sizes) < len(self.extents) or math.prod(sizes) != self.data.size:
            yield f"`{name}` has {self.data.size} constants for extents {self.extents}"
        for s in statements(self.body):
            written = (
                [r.buffer for r in s.writes]
                if isinstance(s, Block)
                else [s.buffer]
                if isinstance(s, BufferStore)
                else []
            )
            if any(buffer.data is self.buffer_var for buffer in written):
                yield f"`{name}` is of constants (T.allocate_const), which nothing may write"
                return


@node
class DeclBuffer(Stmt):
    """``body`` in which ``buffer`` is a view of memory that its ``data`` pointer already names.

    >>> import tir
    >>> pointer = tir.Var("A", "handle", "float32", "global")
    >>> view = tir.decl_buffer((2, 4), "float32", "view", data=pointer)
    >>> zero = tir.IntImm(0)
    >>> tir.DeclBuffer(view, tir.BufferStore(view, tir.FloatImm(1.0, "float32"), (zero, zero)))
    A = T.handle("float32")
    view = T.decl_buffer((2, 4), "float32", data=A)
    view[0, 0] = T.float32(1)
    """

    buffer: Buffer
    body: Stmt


DECLARING = (DeclBuffer, AllocateConst)  # what they make, their body uses; in two copies of them it is the same


@node
class BufferRealize(Stmt):
    """``body`` with the box ``bounds`` of ``buffer`` in memory, where ``condition``.

    >>> import tir
    >>> A, zero = tir.decl_buffer((8,), "float32", "A"), tir.IntImm(0)
    >>> store = tir.BufferStore(A, tir.FloatImm(1.0, "float32"), (zero,))
    >>> tir.BufferRealize(A, (tir.Range.of(0, 8),), tir.IntImm(1, "bool"), store)
    T.realize(A[0:8], "global")
    A[0] = T.float32(1)
    """

    from_numbers = {"condition": "as_bool(condition)"}
    buffer: Buffer
    bounds: tuple[Any, ...]
    condition: Expr
    body: Stmt


@node
class Block(Stmt):
    """A unit of computation: iterators, the regions it reads and writes, ``init`` run at the first reduction step.

    Names are unique in a function.

    >>> import tir
    >>> block = tir.Schedule(tir.library.rows.row_sum(4, 8)).get("total")
    >>> block.name, [i.iter_type for i in block.iter_vars], block.reads[0], block.init
    ('total', ['spatial', 'reduce'], A[vi, vj], B[vi] = T.float32(0))
    """

    iter_vars: tuple[IterVar, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name: str
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBufferRegion, ...] = ()
    annotations: Any = EMPTY

    @property
    def name_hint(self) -> str:
        return self.name


@node
class BlockRealize(Stmt):
    """``block`` run with its iterators bound to ``iter_values``, where ``predicate`` holds.

    The predicate is of the loop variables. Where it does not hold, the bindings are not evaluated.

    >>> import tir
    >>> realize = tir.library.rows.row_sum(4, 8).body.block.body.body.body
    >>> type(realize).__name__, realize.block.name, list(realize.iter_values), realize.predicate
    ('BlockRealize', 'total', [i, j], True)
    """

    from_numbers = {"predicate": "as_bool(predicate)"}
    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: Block

    @property
    def bindings(self) -> dict[Var, Expr]:
        """The value of each iterator."""
        return {i.var: value for i, value in zip(self.block.iter_vars, self.iter_values)}

    def faults(self) -> Iterator[str]:
        block, predicate = self.block, self.predicate
        if len(self.iter_values) != len(block.iter_vars):
            yield f"block `{block.name}` has {len(block.iter_vars)} iterators and {len(self.iter_values)} bindings"
        if not predicate.dtype.is_bool:
            yield f"the predicate of block `{block.name}` has dtype {predicate.dtype}, not bool"
        for iv, value in zip(block.iter_vars, self.iter_values):
            if iv.var.dtype is not value.dtype:
                yield f"iterator `{iv.var.name}` of block `{block.name}` is {iv.var.dtype}, its binding {value.dtype}"


def defined_by(s: Stmt) -> Var | Buffer | None:
    """The value, the memory or the buffer that a statement makes for its body; None if it makes none.

    >>> import tir
    >>> pointer = tir.Var("H", "handle", "float32", "global")
    >>> defined_by(tir.Allocate(pointer, "float32", (tir.IntImm(8),), tir.IntImm(1, "bool"), NOP))
    H
    """
    if isinstance(s, (Allocate, AllocateConst)):
        return s.buffer_var
    return s.var if isinstance(s, LetStmt) else s.buffer if isinstance(s, DeclBuffer) else None


NOP = Evaluate(IntImm(0))


def seq(stmts: Iterable[Stmt]) -> Stmt:
    """The statements in order as one statement: nested sequences flattened, one alone unwrapped, none is a no-op."""
    flat = list(stmts)
    if SeqStmt in map(type, flat):
        flat = [part for stmt in flat for part in (stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,))]
    if NOP in flat:
        flat = [stmt for stmt in flat if stmt is not NOP]
    if not flat:
        return NOP
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))


def nest(loops: Sequence[tuple[Var, Expr]], body: Stmt) -> Stmt:
    """Serial loops from zero, outermost first, around ``body``."""
    for var, extent in reversed(loops):
        body = For(var, const(0, var.dtype), extent, SERIAL, body)
    return body


def in_loops(loops: Iterable[Any], body: Stmt) -> Stmt:
    """``body`` in copies of ``loops``, outermost first."""
    for loop in reversed(list(loops)):
        body = loop.replace(body=body)
    return body


def in_lets(named: Sequence[tuple[Var, Expr]], body: Stmt) -> Stmt:
    """``body`` where each variable has its value, the first outermost."""
    for var, value in reversed(named):
        body = LetStmt(var, value, body)
    return body


def at_once(stores: Sequence[BufferStore], names: Sequence[str]) -> Stmt:
    """Stores whose values are all computed before the first of them, under these names."""
    if len(stores) == 1:
        return stores[0]
    lets = [(Var(name, s.value.dtype), s.value) for name, s in zip(names, stores)]
    return in_lets(lets, seq(s.replace(value=var) for s, (var, _) in zip(stores, lets)))


def allocated(buffer: Buffer, body: Stmt, extents: Sequence[Expr] | None = None) -> Stmt:
    """``body`` with memory for ``buffer``: of its shape, if no ``extents`` are given."""
    held = buffer.shape if extents is None else tuple(extents)
    return Allocate(buffer.data, buffer.dtype, held, TRUE, DeclBuffer(buffer, body))


def is_long(stmts: Sequence[Any]) -> bool:
    """Whether finding what changed among statements is faster than finding everything."""
    return len(stmts) > FEW


FEW = 16


def in_short_parts(stmts: Sequence[Stmt]) -> tuple[SeqStmt, ...]:
    """Statements in sequences that are not long, of about one length."""
    count, number = len(stmts), -(-len(stmts) // FEW)
    return tuple(SeqStmt(tuple(stmts[n * count // number : (n + 1) * count // number])) for n in range(number))


def edited_seq(old: Stmt, new: Stmt) -> Stmt:
    """``new``, which was made by editing ``old``: of a long sequence, it is noted (:func:`~tir.node.made_from`)."""
    return made_from(old, new) if type(new) is SeqStmt and is_long(new.stmts) else new


def is_nop(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm)


def root_block(body: Stmt, alloc_buffers: tuple[Buffer, ...] = ()) -> BlockRealize:
    """``body`` wrapped as the ``root`` block of a function."""
    return BlockRealize((), TRUE, Block((), (), (), "root", body, None, alloc_buffers))


def first_line(stmt: Stmt | None) -> str:
    """The first line of a statement as printed."""
    return "" if stmt is None else repr(stmt).split("\n")[0].rstrip(":")
