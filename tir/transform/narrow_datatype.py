"""int64 loops and index arithmetic become int32 where their values provably fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..arith import Analyzer
from ..buffer import Buffer, IterVar, Range
from ..dtype import DType
from ..expr import (
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Comparison,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Ramp,
    Select,
    Sub,
    Var,
    const,
)
from ..function import PrimFunc
from ..stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
)
from ..visit import walk
from .passes import func_pass

WIDE, NARROW = DType("int64"), DType("int32")
ARITHMETIC = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)
LEAST, MOST = -(2**31), 2**31 - 1


def _is_wide(e: Any) -> bool:
    return e.dtype.code == "int" and e.dtype.bits == 64


class _Narrower:
    """Rewrites statements: an int64 variable that fits is bound as int32, and so are its uses."""

    def __init__(self, pinned: set[Var]):
        self.analyzer = Analyzer()
        self.pinned = pinned  # variables used in declarations of buffers
        self.vars: dict[Var, Var] = {}
        self.memo: dict[Expr, Expr | None] = {}

    @contextmanager
    def knowing(self) -> Iterator[Analyzer]:
        """A scope of facts: answers found inside do not hold outside."""
        outer, self.memo = self.memo, {}
        with self.analyzer.scope() as analyzer:
            yield analyzer
        self.memo = outer

    def fits(self, e: Expr) -> bool:
        low, high = self.analyzer.bound(e)
        return low is not None and high is not None and low >= LEAST and high <= MOST

    # ------------------------------------------------------------ expressions

    def narrow(self, e: Expr) -> Expr | None:
        """``e`` (int64) computed entirely in int32, or None if a part does not fit."""
        if e in self.memo:
            return self.memo[e]
        made = self.memo[e] = self._narrow(e)
        return made

    def _narrow(self, e: Any) -> Expr | None:
        if isinstance(e, IntImm):
            return const(e.value, NARROW) if LEAST <= e.value <= MOST else None
        if isinstance(e, Var):
            return self.vars.get(e)
        if isinstance(e, Cast):
            source = e.value.dtype
            if source.code == "int" and source.bits == 32:
                return self.expr(e.value)
            if source.is_bool or (source.code in ("int", "uint") and source.bits < 32):
                return Cast(NARROW.with_lanes(source.lanes), self.expr(e.value))
            return None
        if isinstance(e, Broadcast):
            value = self.narrow(e.value)
            return None if value is None else Broadcast(value, e.lanes)
        if isinstance(e, Ramp):
            base, stride = self.narrow(e.base), self.narrow(e.stride)
            return None if base is None or stride is None or not self.fits(e) else Ramp(base, stride, e.lanes)
        if isinstance(e, Select):
            a, b = self.narrow(e.true_value), self.narrow(e.false_value)
            return None if a is None or b is None else Select(self.expr(e.condition), a, b)
        if isinstance(e, ARITHMETIC):
            a, b = self.narrow(e.a), self.narrow(e.b)
            made: Any = type(e)
            return None if a is None or b is None or not self.fits(e) else made(a, b)
        return None

    def index(self, e: Any) -> Any:
        """An index expression, which may be of any integer type."""
        narrow = self.narrow(e) if _is_wide(e) else None
        return self.expr(e) if narrow is None else narrow

    def expr(self, e: Any) -> Any:
        """``e`` with the same type and value, its parts in int32 where possible."""
        if isinstance(e, (BufferLoad, BufferStore)):
            return self.access(e)
        if not isinstance(e, Expr) or isinstance(e, (IntImm, Buffer)):
            return e if isinstance(e, (Expr, Buffer)) else e.map_children(self.expr)
        if _is_wide(e):
            narrow = self.narrow(e)
            if narrow is not None:
                return e if isinstance(e, Cast) and e.value is narrow else Cast(e.dtype, narrow)
        if isinstance(e, Cast) and _is_wide(e.value):
            value = self.narrow(e.value)
            if value is not None:
                return Cast(e.dtype, value)
        if isinstance(e, Comparison) and _is_wide(e.a):
            a, b = self.narrow(e.a), self.narrow(e.b)
            if a is not None and b is not None:
                made: Any = type(e)
                return made(a, b)
        if isinstance(e, Call) and e.op == "tvm_thread_allreduce":  # it names threads, not values
            return e.replace(args=tuple(self.vars.get(a, a) if isinstance(a, Var) else self.expr(a) for a in e.args))
        return e.map_children(self.expr)

    def access(self, e: Any) -> Any:
        indices = tuple(self.index(i) for i in e.indices)
        changes: dict[str, Any] = {}
        if any(a is not b for a, b in zip(indices, e.indices)):
            changes["indices"] = indices
        if isinstance(e, BufferStore):
            value = self.expr(e.value)
            if value is not e.value:
                changes["value"] = value
        return e.replace(**changes) if changes else e

    def cut(self, e: Expr) -> Expr:
        """``e``, which fits, as an int32: computed so, or truncated."""
        narrow = self.narrow(e)
        return Cast(NARROW, self.expr(e)) if narrow is None else narrow

    def bound_anew(self, var: Var) -> Var:
        found = self.vars.get(var)
        if found is None:
            found = self.vars[var] = var.replace(dtype=NARROW)
        return found

    # ------------------------------------------------------------ statements

    def visit(self, item: Any) -> Any:
        if not isinstance(item, Stmt):
            return self.expr(item)
        method = getattr(self, "visit_" + type(item).__name__, None)
        return item.map_children(self.visit) if method is None else method(item)

    def loop_fits(self, var: Var, low: Expr, extent: Expr) -> bool:
        return (
            _is_wide(var)
            and var not in self.pinned
            and self.fits(low)
            and self.fits(extent)
            and self.fits(low + extent)
        )

    def visit_For(self, loop: For) -> Stmt:
        var, low, extent = loop.loop_var, loop.min, loop.extent
        if self.loop_fits(var, low, extent):
            var, low, extent = self.bound_anew(var), self.cut(low), self.cut(extent)
        else:
            low, extent = self.expr(low), self.expr(extent)
        with self.knowing() as known:
            known.bind(loop.loop_var, loop.domain, loop.body)
            body = self.visit(loop.body)
        return loop.updated(loop_var=var, min=low, extent=extent, body=body)

    def visit_AttrStmt(self, s: AttrStmt) -> Stmt:
        node, value = s.node, s.value
        with self.knowing() as known:
            if s.attr_key in ("thread_extent", "virtual_thread") and isinstance(node, IterVar):
                if self.loop_fits(node.var, const(0, WIDE), value):
                    value = self.cut(value)
                    dom = None if node.dom is None else Range(const(0, NARROW), value)
                    node = node.replace(var=self.bound_anew(node.var), dom=dom)
                known.bind(s.node.var, Range(const(0, s.value.dtype), s.value))
            else:
                value = self.expr(value)
            body = self.visit(s.body)
        return s.updated(node=node, value=value, body=body)

    def visit_LetStmt(self, s: LetStmt) -> Stmt:
        var, value = s.var, None
        if _is_wide(var) and var not in self.pinned:
            value = self.narrow(s.value)
        if value is not None:
            var = self.bound_anew(var)
        else:
            value = self.expr(s.value)
        with self.knowing() as known:
            if s.var.dtype.is_int:
                known.bind(s.var, s.value, s.body)
            body = self.visit(s.body)
        return s.updated(var=var, value=value, body=body)

    def visit_IfThenElse(self, s: IfThenElse) -> Stmt:
        condition = self.expr(s.condition)
        steady = s.condition.dtype.lanes == 1 and _steady(s.condition)
        branches = []
        for branch, fact in ((s.then_case, s.condition), (s.else_case, Not(s.condition))):
            with self.knowing() as known:
                if steady:
                    known.assume(fact)
                branches.append(None if branch is None else self.visit(branch))
        then_case, else_case = branches
        return s.updated(condition=condition, then_case=then_case, else_case=else_case)

    def visit_SeqStmt(self, s: SeqStmt) -> Stmt:
        made = []
        with self.knowing() as known:
            for child in s.stmts:
                made.append(self.visit(child))
                if isinstance(child, AssertStmt) and _steady(child.condition):
                    known.assume(child.condition)  # what follows runs only where it held
                    self.memo = {}
        return s.updated(stmts=tuple(made))

    def declaration(self, s: Any) -> Stmt:
        body = self.visit(s.body)
        return s.updated(body=body)

    visit_BufferStore = access
    visit_Allocate = visit_AllocateConst = visit_DeclBuffer = declaration


def _steady(condition: Expr) -> bool:
    """Whether the condition stays true: it reads no memory."""
    return not any(isinstance(n, BufferLoad) or (isinstance(n, Call) and n.op != "likely") for n in walk(condition))


def _pinned(func: PrimFunc) -> set[Var]:
    """Variables in shapes, strides and offsets of buffers, and in the sizes of allocations."""
    found: set[Var] = set()
    buffers: dict[Buffer, None] = dict.fromkeys(func.buffers())
    for n in walk(func.body):
        if isinstance(n, Buffer):
            buffers.setdefault(n)
        elif isinstance(n, (Allocate, AllocateConst)):
            found.update(v for e in n.extents for v in walk(e) if isinstance(v, Var))
        elif isinstance(n, DeclBuffer):
            buffers.setdefault(n.buffer)
    for buffer in buffers:
        found.update(v for part in buffer.children() for v in walk(part) if isinstance(v, Var))
    return found


@func_pass
def narrow_datatype(func: PrimFunc) -> PrimFunc:
    """Loops, lets and thread axes of int64 become int32 where their values provably fit, and index arithmetic with them.

    A sum or product is computed in int32 if its operands are and its own bounds fit; anything else, such as expressions
    of a size that is known only at run time, stays int64. Values that are stored, passed or returned keep their type.
    Expects flattened buffers.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in range(T.int64(8)):
    ...         A[i] = 1.0
    ... ''')
    >>> tir.transform.narrow_datatype(f).body
    for i in range(8):
        A[i] = T.float32(1)
    """
    statements = walk(func.body, lambda n: not isinstance(n, Expr))
    if not any(
        (isinstance(n, For) and _is_wide(n.loop_var))
        or (isinstance(n, LetStmt) and _is_wide(n.var))
        or (isinstance(n, AttrStmt) and isinstance(n.node, IterVar) and _is_wide(n.node.var))
        for n in statements
    ):
        return func
    return func.with_body(_Narrower(_pinned(func)).visit(func.body))
