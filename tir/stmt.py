"""Statement nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from .buffer import Buffer, BufferRegion, IterVar, MatchBufferRegion, Range
from .dtype import DType
from .expr import TRUE, Expr, IntImm, Var
from .node import EMPTY, Node, Span, node

SERIAL, PARALLEL, VECTORIZED, UNROLLED, THREAD_BINDING = (
    "serial",
    "parallel",
    "vectorized",
    "unrolled",
    "thread_binding",
)
THREAD_AXES = (
    *(f"{kind}.{d}" for kind in ("blockIdx", "threadIdx") for d in "xyz"),
    "vthread",
    *(f"vthread.{d}" for d in "xyz"),
)


@node
class Stmt(Node):
    """Base of statements; ``span`` is the place in the user's source, where there is one."""

    span: Span | None = dataclasses.field(default=None, kw_only=True, compare=False)


@node
class BufferStore(Stmt):
    """buffer[indices] = value; a Ramp as last index makes it a vector store."""

    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]


@node
class For(Stmt):
    """A counted loop over [min, min + extent). ``kind`` is one of serial, parallel, vectorized, unrolled,
    thread_binding; ``thread`` is the thread axis (``"blockIdx.x"``, ``"vthread"`` …) of the last kind, else empty.

    The annotation ``private`` lists buffers, allocated around the loop and used in it only, of which each iteration has
    a copy of its own: uninitialised when it starts, and gone when it ends."""

    loop_var: Var
    min: Expr
    extent: Expr
    kind: str
    body: Stmt
    thread: str = ""
    annotations: Any = EMPTY

    @property
    def domain(self) -> Range:
        """The values of the loop variable."""
        return Range(self.min, self.extent)

    @property
    def private(self) -> tuple[Buffer, ...]:
        """The buffers of which each iteration has a copy of its own (the annotation ``private``)."""
        return self.annotations.get("private", ())


@node
class While(Stmt):
    condition: Expr
    body: Stmt


@node
class IfThenElse(Stmt):
    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None


@node
class SeqStmt(Stmt):
    """Two or more statements in order, never nested: build it with :func:`seq`."""

    stmts: tuple[Stmt, ...]


@node
class LetStmt(Stmt):
    """``body`` with ``var`` bound to ``value``."""

    var: Var
    value: Expr
    body: Stmt


@node
class AssertStmt(Stmt):
    """Stop with ``message`` unless ``condition`` holds. A leaf: what follows it is the next statement."""

    condition: Expr
    message: Expr


@node
class Evaluate(Stmt):
    """An expression for its effect."""

    value: Expr


@node
class AttrStmt(Stmt):
    """``body`` under the fact ``attr_key`` = ``value`` about ``node`` (an IterVar, Buffer, Var, number or string).

    ``thread_extent`` on an IterVar launches a thread axis.
    """

    node: Any
    attr_key: str
    value: Expr
    body: Stmt


@node
class Allocate(Stmt):
    """``body`` with ``buffer_var`` pointing to ``extents`` elements of ``dtype`` (storage scope: ``buffer_var.scope``)."""

    buffer_var: Var
    dtype: DType
    extents: tuple[Expr, ...]
    condition: Expr
    body: Stmt
    annotations: Any = EMPTY


@node
class AllocateConst(Stmt):
    """``body`` with ``buffer_var`` pointing to constant ``data`` (a NumPy array, row-major)."""

    buffer_var: Var
    dtype: DType
    extents: tuple[Expr, ...]
    data: Any
    body: Stmt
    annotations: Any = EMPTY


@node
class DeclBuffer(Stmt):
    """``body`` in which ``buffer`` is a view of memory that its ``data`` pointer already names."""

    buffer: Buffer
    body: Stmt


@node
class BufferRealize(Stmt):
    """``body`` with the box ``bounds`` of ``buffer`` in memory, where ``condition``."""

    buffer: Buffer
    bounds: tuple[Any, ...]
    condition: Expr
    body: Stmt


@node
class Block(Stmt):
    """A unit of computation: iterators, the regions it reads and writes, ``init`` run at the first reduction step.

    Names are unique in a function.
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
    """``block`` run with its iterators bound to ``iter_values``, where ``predicate`` holds."""

    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: Block

    @property
    def bindings(self) -> dict[Var, Expr]:
        """The value of each iterator."""
        return {i.var: value for i, value in zip(self.block.iter_vars, self.iter_values)}


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


def is_nop(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm)


def root_block(body: Stmt, alloc_buffers: tuple[Buffer, ...] = ()) -> BlockRealize:
    """``body`` wrapped as the ``root`` block of a function."""
    return BlockRealize((), TRUE, Block((), (), (), "root", body, None, alloc_buffers))
