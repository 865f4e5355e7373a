"""Statements built by calls, in the classic spelling: ``ib = tir.ir_builder.create()``, ``with ib.for_range(0, n) as i:``.

For bodies of ``te.extern`` and of tensor intrinsics. New programs are written in the dialect (:mod:`tir.script`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .buffer import Buffer, IterVar, decl_buffer, index_expr
from .dtype import HANDLE, VOID, DType
from .expr import (
    BufferLoad,
    Call,
    Expr,
    IntImm,
    StringImm,
    Var,
    as_bool,
    as_expr,
    cast,
    digits_of,
)
from .node import Node
from .op import call
from .stmt import (
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTORIZED,
    AssertStmt,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    allocated,
    seq,
)

__all__ = ["BufferVar", "IRBuilder", "create"]

_KINDS = {
    "serial": SERIAL, "parallel": PARALLEL, "vectorize": VECTORIZED, "vectorized": VECTORIZED, "unroll": UNROLLED,
    "unrolled": UNROLLED,
}  # fmt: skip


class BufferVar:
    """Memory that a builder reads and writes: ``A[i, j]``, ``A[i] = value``.

    One index of several dimensions is flat: it counts elements, not what lies between them, so a buffer with strides takes
    an index for each dimension. Raises ``TypeError`` for another number of indices.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer):
        self._builder = builder
        self.buffer = buffer

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def asobject(self) -> Buffer:
        return self.buffer

    def _place(self, indices: Any) -> tuple[Expr, ...]:
        items = indices if isinstance(indices, (tuple, list)) else (indices,)
        places = tuple(index_expr(i) for i in items)
        shape = self.buffer.shape
        if len(places) == 1 and len(shape) != 1:
            if self.buffer.strides:
                wanted = ", ".join(f"i{n}" for n in range(len(shape)))
                raise TypeError(
                    f"`{self.buffer.name}` has the strides {self.buffer.strides}: one index of its {len(shape)} dimensions "
                    f"would not say which element is meant; write {self.buffer.name}[{wanted}], without strides"
                )
            return tuple(digits_of(places[0], shape))
        if len(places) != len(shape):
            raise TypeError(f"`{self.buffer.name}` has {len(shape)} dimensions, but is indexed with {len(places)}")
        return places

    def __getitem__(self, indices: Any) -> Expr:
        return BufferLoad(self.buffer, self._place(indices))

    __iter__ = None  # Python would take elements without end

    def __setitem__(self, indices: Any, value: Any) -> None:
        stored = cast(self.buffer.dtype, as_expr(value, None if isinstance(value, Node) else self.buffer.dtype))
        self._builder.emit(BufferStore(self.buffer, stored, self._place(indices)))


def effect(e: Expr) -> Evaluate:
    """An expression as a statement: what a function of the host returns is not used."""
    return Evaluate(e.replace(dtype=VOID) if isinstance(e, Call) and e.op == "call_packed" else e)


_Wrapper = Callable[[Stmt], Stmt]


class IRBuilder:
    """Builds one statement from calls; ``get`` gives it.

    >>> from tir import decl_buffer, ir_builder
    >>> ib, A = ir_builder.create(), decl_buffer((4,), name="A")
    >>> a = ib.buffer_ptr(A)
    >>> with ib.for_range(0, 4, "i") as i:
    ...     a[i] = a[i] * 2.0
    >>> ib.get()
    for i in range(4):
        A[i] = A[i] * 2.0
    """

    def __init__(self) -> None:
        self._open: list[list[Any]] = [[]]

    def emit(self, what: Any) -> None:
        """Add a statement, an expression for its effect, or a function from what follows to a statement."""
        item: Any = effect(what) if isinstance(what, Expr) else what
        is_one = isinstance(item, Stmt) or callable(item)
        if not is_one:
            raise TypeError(f"a builder takes statements and expressions, not {what!r}")
        self._open[-1].append(item)

    def get(self) -> Stmt:
        """The statement built. Raises ``ValueError`` inside of an open scope."""
        if len(self._open) != 1:
            raise ValueError("ib.get() inside of a scope that is open: leave its `with` first")
        return _closed(self._open[0])

    @contextmanager
    def _scope(self, wrap: _Wrapper) -> Iterator[None]:
        self._open.append([])
        try:
            yield
        finally:
            body = self._open.pop()
        self.emit(wrap(_closed(body)))

    @contextmanager
    def for_range(
        self, begin: Any, end: Any, name: str = "i", dtype: str | None = None, kind: str = "serial", for_type: str = ""
    ) -> Iterator[Var]:
        """A loop over ``begin`` up to ``end``, of kind serial, parallel, vectorize or unroll."""
        kind = for_type or kind
        if kind not in _KINDS:
            raise ValueError(f"no loop of kind {kind!r}; there are {', '.join(_KINDS)}")
        low, high = index_expr(begin), index_expr(end)
        extent = high if isinstance(low, IntImm) and low.value == 0 else high - low
        variable = Var(name, DType(dtype) if dtype else extent.dtype)
        low, extent = (cast(variable.dtype, e) for e in (low, extent))
        with self._scope(lambda body: For(variable, low, extent, _KINDS[kind], body)):
            yield variable

    @contextmanager
    def while_loop(self, condition: Any) -> Iterator[None]:
        """A loop as long as ``condition`` holds."""
        with self._scope(lambda body: While(as_bool(condition), body)):
            yield

    @contextmanager
    def if_scope(self, condition: Any) -> Iterator[None]:
        """What runs where ``condition`` holds."""
        with self._scope(lambda body: IfThenElse(as_bool(condition), body)):
            yield

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """What runs where the condition before does not hold. Raises ``ValueError`` without one just before."""
        before = self._open[-1].pop() if self._open[-1] else None
        if not isinstance(before, IfThenElse) or before.else_case is not None:
            raise ValueError("ib.else_scope() follows an ib.if_scope")
        with self._scope(lambda body: before.replace(else_case=body)):
            yield

    @contextmanager
    def new_scope(self) -> Iterator[None]:
        """A scope of its own for allocations and attributes."""
        with self._scope(lambda body: body):
            yield

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """A fact over what follows: ``ib.scope_attr(tx, "thread_extent", 64)``."""
        of = node.buffer.data if isinstance(node, BufferVar) else node
        if isinstance(of, IterVar):  # an axis of te is one, with more
            of = IterVar(of.dom, of.var, of.iter_type, of.thread_tag)
        said = as_expr(value)
        self.emit(lambda body: AttrStmt(of, attr_key, said, body))

    def let(self, name: str, value: Any) -> Var:
        """A variable with ``value`` over what follows."""
        said = as_expr(value)
        variable = Var(name, said.dtype)
        self.emit(lambda body: LetStmt(variable, said, body))
        return variable

    def assert_(self, condition: Any, message: str) -> None:
        """Stop with ``message`` unless ``condition`` holds."""
        self.emit(AssertStmt(as_bool(condition), StringImm(message)))

    def allocate(self, dtype: str, shape: Any, name: str = "buf", scope: str = "global") -> BufferVar:
        """Memory over what follows."""
        made = decl_buffer(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), dtype, name, scope=scope)
        self.emit(lambda body: allocated(made, body))
        return BufferVar(self, made)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """Memory behind a pointer that is given from outside, as one dimension."""
        data = Var(name, HANDLE, DType(content_type), scope or "global")
        return BufferVar(self, decl_buffer((1,), content_type, name, data=data))

    def buffer_ptr(self, buffer: Buffer, shape: Any = None) -> BufferVar:
        """A buffer to be read and written by index."""
        return BufferVar(self, buffer)

    def likely(self, condition: Any) -> Expr:
        """A condition that mostly holds."""
        return call("likely", as_bool(condition))


def _closed(items: Sequence[Stmt | _Wrapper]) -> Stmt:
    """One statement of what was emitted; a wrapper takes all that follows it."""
    body: list[Stmt] = []
    for item in reversed(items):
        body = [item, *body] if isinstance(item, Stmt) else [item(seq(body))]
    return seq(body)


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()
