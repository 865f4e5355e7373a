"""Vectorized loops become vector expressions."""

from __future__ import annotations

from typing import Any

from ..aliases import shares_memory
from ..analysis.evaluation import evaluated_parts
from ..buffer import Buffer
from ..dtype import DType
from ..expr import (
    Add,
    BinaryOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Mul,
    Not,
    Ramp,
    Select,
    StringImm,
    Sub,
    Var,
    const,
)
from ..function import PrimFunc
from ..node import frozendict
from ..op import OPS
from ..stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    seq,
)
from ..visit import rewrite_statements, substitute, uses_var, walk
from .layout import plus, times
from .passes import func_pass

MAX_LANES = 256
REASON = "scalar_because"
GUARDED = "a condition that guards a load differs between lanes"


class NotVector(Exception):
    """The statement or expression has no vector form; the argument says why."""


class _Vectorizer:
    """Rewrites statements of one loop; lanes of the vectors are its iterations."""

    def __init__(self, loop: For, lanes: int, masks: bool = False):
        self.loop = loop
        self.lanes = lanes
        self.masks = masks
        self.vectors: dict[Var, Expr] = {loop.loop_var: Ramp(loop.min, const(1, loop.min.dtype), lanes)}
        self.memo: dict[Expr, Expr] = {}
        self.own: dict[Var, DType] = {}  # memory allocated in the loop, of which each lane has its own
        self.wider: dict[Buffer, Buffer] = {}

    def varies(self, item: Any) -> bool:
        """Whether lanes differ in ``item``."""
        if uses_var(item, self.vectors):
            return True
        return bool(self.own) and any(
            shares_memory(n, self.own) for n in walk(item) if isinstance(n, (BufferLoad, BufferStore))
        )

    # ------------------------------------------------------------ statements

    def stmt(self, s: Stmt, strict: bool = False) -> Stmt:
        """``s`` for all lanes. Parts without a vector form become scalar loops, unless ``strict``."""
        if not self.varies(s) and not isinstance(s, SeqStmt) and not _writes(s):
            return s
        try:
            return self._stmt(s, strict)
        except NotVector as why:
            if strict:
                raise
            return self.scalar(s, str(why))

    def _stmt(self, s: Stmt, strict: bool) -> Stmt:
        if isinstance(s, SeqStmt):
            return seq([self.stmt(x, strict) for x in s.stmts])
        if isinstance(s, BufferStore):
            return self.store(s)
        if isinstance(s, For):
            if self.varies(s.min) or self.varies(s.extent):
                raise NotVector(f"the range of the inner loop {s.loop_var.name} differs between lanes")
            return s.replace(body=self.stmt(s.body, strict))
        if isinstance(s, IfThenElse):
            return self.condition(s, strict)
        if isinstance(s, LetStmt):
            return self.let(s, strict)
        if isinstance(s, DeclBuffer):
            return s.replace(buffer=self.buffer(s.buffer), body=self.stmt(s.body, strict))
        if isinstance(s, Allocate):
            return self.allocate(s)
        if isinstance(s, AttrStmt):
            if self.varies(s.value):
                raise NotVector(f"the attribute {s.attr_key} differs between lanes")
            return s.replace(body=self.stmt(s.body, strict))
        if isinstance(s, AssertStmt) and not self.varies(s):
            return s
        if isinstance(s, Evaluate):
            raise NotVector("a call made for its effect has no vector form")
        raise NotVector(f"a {type(s).__name__} has no vector form")

    def store(self, s: BufferStore) -> Stmt:
        if s.buffer.dtype.lanes > 1:
            raise NotVector(f"the elements of {s.buffer.name} are vectors")
        indices = self.indices(s.buffer, s.indices)
        if all(i.dtype.lanes == 1 for i in indices):
            raise NotVector(f"all lanes write one element of {s.buffer.name}")
        return s.replace(buffer=self.buffer(s.buffer), value=self.wide(self.expr(s.value)), indices=indices)

    def allocate(self, s: Allocate) -> Stmt:
        """Memory of one iteration becomes that of all lanes. A part left scalar could not see its lane's: all of the body, or none."""
        if len(s.extents) != 1 or self.varies(s.extents[0]) or self.varies(s.condition):
            raise NotVector(f"the memory {s.buffer_var.name} has several axes, or differs between lanes")
        self.own[s.buffer_var] = s.dtype
        return s.replace(extents=(s.extents[0] * self.lanes,), body=self.stmt(s.body, strict=True))

    def buffer(self, buffer: Buffer) -> Buffer:
        """The buffer of all lanes."""
        dtype = self.own.get(buffer.data)
        if dtype is None:
            return buffer
        found = self.wider.get(buffer)
        if found is None:
            if (
                buffer.ndim != 1
                or buffer.strides
                or buffer.elem_offset is not None
                or buffer.dtype.bytes != dtype.bytes
            ):
                raise NotVector(f"{buffer.name} is a view of what each lane has of its own")
            found = self.wider[buffer] = buffer.replace(shape=(buffer.shape[0] * self.lanes,))
        return found

    def condition(self, s: IfThenElse, strict: bool) -> Stmt:
        if self.varies(s.condition):
            if not self.masks:
                raise NotVector("the condition differs between lanes")
            if not (_lanewise_stores(s.then_case) and (s.else_case is None or _lanewise_stores(s.else_case))):
                raise NotVector("the condition differs between lanes, and guards more than stores")
            # a part left scalar could not see its lane's flag: all of it, or none
            return IfThenElse(
                self.wide(self.expr(s.condition)),
                self.stmt(s.then_case, strict=True),
                None if s.else_case is None else self.stmt(s.else_case, strict=True),
            )
        other = None if s.else_case is None else self.stmt(s.else_case, strict)
        return s.replace(then_case=self.stmt(s.then_case, strict), else_case=other)

    def let(self, s: LetStmt, strict: bool) -> Stmt:
        vectors = self.varies(s.value)
        value = self.wide(self.expr(s.value)) if vectors else s.value
        self.forget(s.var)
        if not vectors:
            return s.replace(body=self.stmt(s.body, strict))
        var = s.var.replace(dtype=value.dtype)
        self.vectors[s.var] = var
        # a part left scalar could not see one lane of the value: all of the body, or none
        return s.replace(var=var, value=value, body=self.stmt(s.body, strict=True))

    def forget(self, var: Var) -> None:
        """Before a let of ``var``: copies of a statement, as unrolling makes them, may share it, and what is known of it is
        of the let before."""
        self.memo = {e: made for e, made in self.memo.items() if not uses_var(e, var)}
        self.vectors.pop(var, None)

    def scalar(self, s: Stmt, why: str) -> Stmt:
        var = self.loop.loop_var.replace()
        body = substitute(s, {self.loop.loop_var: var})
        notes = frozendict({**self.loop.annotations, REASON: why})
        return For(var, self.loop.min, self.loop.extent, "serial", body, annotations=notes, span=self.loop.span)

    # ------------------------------------------------------------ expressions

    def wide(self, e: Expr) -> Expr:
        """``e`` in every lane."""
        return Broadcast(e, self.lanes) if e.dtype.lanes == 1 else e

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        made = [self.expr(i) for i in indices]
        if buffer.data in self.own:
            kind = made[0].dtype.element
            lane = Ramp(const(0, kind), const(1, kind), self.lanes)
            return (plus(times(made[0], const(self.lanes, kind)), lane),)
        if any(i.dtype.lanes > 1 for i in made):
            made[-1] = self.wide(made[-1])
        return tuple(made)

    def expr(self, e: Expr) -> Expr:
        found = self.memo.get(e)
        if found is None:
            if e.dtype.lanes > 1:
                raise NotVector("it holds vectors already")  # of a loop inside: its lanes are not those of this one
            found = self.memo[e] = self._expr(e) if self.varies(e) else e
        return found

    def _expr(self, e: Any) -> Expr:
        if isinstance(e, Var):
            return self.vectors[e]
        if isinstance(e, BinaryOp):
            return self.binary(e)
        if isinstance(e, BufferLoad):
            return BufferLoad(self.buffer(e.buffer), self.indices(e.buffer, e.indices))
        if isinstance(e, Cast):
            return Cast(e.dtype.with_lanes(self.lanes), self.wide(self.expr(e.value)))
        if isinstance(e, Not):
            return Not(self.expr(e.a))
        if isinstance(e, Select):
            parts = (e.condition, e.true_value, e.false_value)
            return Select(*(self.wide(self.expr(p)) for p in parts))
        if isinstance(e, Call):
            return self.call(e)
        if isinstance(e, Let):
            value = self.expr(e.value)
            self.forget(e.var)
            var = e.var.replace(dtype=value.dtype)
            self.vectors[e.var] = var
            return Let(var, value, self.wide(self.expr(e.body)))
        raise NotVector(f"a {type(e).__name__} has no vector form")

    def binary(self, e: Any) -> Expr:
        if not self.masks and not all(_always_safe(part) for part, when in evaluated_parts(e) if when is not None):
            raise NotVector(GUARDED)
        a, b = self.expr(e.a), self.expr(e.b)
        if e.dtype.element.is_int:
            if isinstance(e, Add):
                total = self._ramp_sum(a, b)
                return Add(self.wide(a), self.wide(b)) if total is None else total
            if isinstance(e, Sub) and isinstance(a, Ramp) and b.dtype.lanes == 1:
                return Ramp(a.base - b, a.stride, a.lanes)
            if isinstance(e, Mul):
                if isinstance(a, Ramp) and b.dtype.lanes == 1:
                    return times(a, b)
                if isinstance(b, Ramp) and a.dtype.lanes == 1:
                    return times(b, a)
        return type(e)(self.wide(a), self.wide(b))

    @staticmethod
    def _ramp_sum(a: Expr, b: Expr) -> Expr | None:
        if isinstance(a, Ramp) and (b.dtype.lanes == 1 or isinstance(b, Ramp)):
            return plus(a, b)
        if isinstance(b, Ramp) and a.dtype.lanes == 1:
            return Ramp(a + b.base, b.stride, b.lanes)
        return None

    def call(self, e: Call) -> Expr:
        op = OPS.get(e.op)
        dtype = e.dtype.with_lanes(self.lanes)
        if e.op == "if_then_else":
            condition, then, other = e.args
            if not self.varies(condition):
                return Call(e.op, (condition, self.wide(self.expr(then)), self.wide(self.expr(other))), dtype)
            wide = tuple(self.wide(self.expr(a)) for a in e.args)
            if _always_safe(then) and _always_safe(other):
                return Select(*wide)
            if not self.masks:
                raise NotVector(GUARDED)
            return Call(e.op, wide, dtype)
        if op is None or op.effect != "pure" or (op.numpy is None and e.op not in _LANEWISE):
            raise NotVector(f"{e.op} has no vector form")
        if not all(isinstance(a, Expr) and not isinstance(a, StringImm) for a in e.args):
            raise NotVector(f"{e.op} has no vector form")
        return Call(e.op, tuple(self.wide(self.expr(a)) for a in e.args), dtype, e.annotations)


_LANEWISE = ("reinterpret",)


def _writes(s: Stmt) -> bool:
    """Whether ``s`` must run once per lane even if it is uniform."""
    return any(isinstance(n, BufferStore) or (isinstance(n, Call) and _effect(n)) for n in walk(s))


def _lanewise_stores(s: Stmt) -> bool:
    """Whether ``s`` consists of stores only, and of lets, memory and loops around them, which can be masked lane by lane."""
    if isinstance(s, (LetStmt, Allocate, DeclBuffer, For)):
        return _lanewise_stores(s.body)
    if isinstance(s, SeqStmt):
        return all(_lanewise_stores(x) for x in s.stmts)
    if isinstance(s, IfThenElse):
        return _lanewise_stores(s.then_case) and (s.else_case is None or _lanewise_stores(s.else_case))
    return isinstance(s, BufferStore)


def _effect(call: Call) -> bool:
    op = OPS.get(call.op)
    return op is None or op.effect in ("write", "opaque")


def _always_safe(e: Expr) -> bool:
    """Whether evaluating ``e`` under a false guard is harmless."""
    from ..expr import Div, FloorDiv, FloorMod, Mod

    for n in walk(e):
        if isinstance(n, (BufferLoad, Call)) and not (isinstance(n, Call) and _harmless(n)):
            return False
        if isinstance(n, (Div, FloorDiv, FloorMod, Mod)) and n.dtype.element.is_int and not _nonzero(n.b):
            return False
    return True


def _harmless(call: Call) -> bool:
    op = OPS.get(call.op)
    return op is not None and op.effect == "pure"


def _nonzero(e: Expr) -> bool:
    return isinstance(e, (IntImm, FloatImm)) and e.value != 0


def _vectorize(item: Any, masks: bool = False) -> Any:
    if isinstance(item, SeqStmt) and any(isinstance(s, SeqStmt) for s in item.stmts):
        return seq(item.stmts)
    if not isinstance(item, For) or item.kind != "vectorized" or not isinstance(item.extent, IntImm):
        return None
    lanes = item.extent.value
    if lanes == 1:
        return substitute(item.body, {item.loop_var: item.min})
    if lanes > MAX_LANES:
        chunk = next((c for c in (64, 32, 16, 8, 4) if lanes % c == 0), None)
        if chunk is None:
            return item.replace(kind="serial", annotations=frozendict({**item.annotations, REASON: f"{lanes} lanes"}))
        outer, inner = item.loop_var.replace(name=f"{item.loop_var.name}_0"), item.loop_var.replace()
        body = substitute(item.body, {item.loop_var: plus(item.min, outer * chunk + inner)})
        dtype: DType = item.min.dtype
        notes = item.annotations
        vector = For(inner, const(0, dtype), const(chunk, dtype), "vectorized", body, annotations=notes, span=item.span)
        made = _vectorize(vector, masks)
        return For(outer, const(0, dtype), const(lanes // chunk, dtype), "serial", made, span=item.span)
    return _Vectorizer(item, lanes, masks).stmt(item.body)


@func_pass
def vectorize_loop(func: PrimFunc, masks: bool = False) -> PrimFunc:
    """Each vectorized loop of constant extent becomes vector loads, stores and arithmetic. Memory allocated in it becomes that of all
    lanes, each element of one lane beside those of the others.

    Anything without a vector form stays a scalar loop, with the reason in its annotation ``scalar_because``. A
    vectorized loop whose extent is not constant is unchanged. With ``masks`` a condition that differs between lanes
    becomes a vector condition, which masks loads and stores.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in T.vectorized(8):
    ...         B[i] = A[i] * 2.0
    ... ''')
    >>> tir.transform.vectorize_loop(f).body
    B[0:8] = A[0:8] * T.Broadcast(T.float32(2), 8)
    """
    return func.with_body(rewrite_statements(func.body, lambda item: _vectorize(item, masks)))
