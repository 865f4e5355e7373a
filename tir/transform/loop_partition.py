"""Loops whose guard holds for most iterations are cut, so that the bulk runs without the guard."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..arith.linear import is_index, linear
from ..buffer import Range
from ..expr import EQ, GE, GT, LE, LT, And, Call, Expr, IntImm, Var, const
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import NOP, For, IfThenElse, SeqStmt, Stmt, is_nop, seq
from ..visit import rewrite, substitute, uses_var, walk
from .passes import func_pass

HINT = "pragma_loop_partition_hint"
_SPEED_KINDS = ("vectorized", "unrolled")


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, And):
        return _conjuncts(condition.a) + _conjuncts(condition.b)
    if isinstance(condition, Call) and condition.op == "likely":
        return _conjuncts(condition.args[0])
    return [condition]


class _Cutter:
    """Decides, loop by loop from outside, where the guards inside stop being certain."""

    def __init__(self, everything: bool):
        self.everything = everything
        self.analyzer = Analyzer()

    def visit(self, s: Any) -> Any:
        if isinstance(s, For):
            return self.loop(s)
        if isinstance(s, SeqStmt):
            made = [self.visit(x) for x in s.stmts]
            return s if all(a is b for a, b in zip(made, s.stmts)) else seq(x for x in made if not is_nop(x))
        if isinstance(s, Stmt):
            return s.map_children(lambda c: self.visit(c) if isinstance(c, Stmt) else c)
        return s

    def loop(self, s: For) -> Stmt:
        if s.kind in ("serial", *_SPEED_KINDS) and isinstance(s.min, IntImm) and isinstance(s.extent, IntImm):
            cut = self.cut(s)
            if cut is not None:
                return self.partitioned(s, cut)
        with self.analyzer.scope():
            self.analyzer.bind(s.loop_var, Range(s.min, s.extent))
            body = self.visit(s.body)
        return s if body is s.body else s.replace(body=body)

    def partitioned(self, s: For, cut: int) -> Stmt:
        """[min, cut) and [cut, end), each looked at again with what is then known of the guards."""
        first, end = s.min.value, s.min.value + s.extent.value  # type: ignore[attr-defined]
        notes = frozendict({k: v for k, v in s.annotations.items() if k != HINT})
        parts = []
        for low, high in ((first, cut), (cut, end)):
            var = s.loop_var if low == first else s.loop_var.replace()
            body = s.body if var is s.loop_var else substitute(s.body, {s.loop_var: var})
            if high - low == 1:
                body = substitute(body, {var: const(low, var.dtype)})
            with self.analyzer.scope():
                self.analyzer.bind(var, Range(const(low, var.dtype), const(high - low, var.dtype)))
                body = self.visit(self.decided(body))
            if is_nop(body):
                continue
            if high - low > 1:
                body = For(
                    var, const(low, var.dtype), const(high - low, var.dtype), s.kind, body, s.thread, notes, span=s.span
                )
            parts.append(body)
        return seq(parts)

    def decided(self, body: Stmt) -> Stmt:
        """``body`` without the guards that now surely hold, or surely fail."""
        return _Decider(self.analyzer).visit(body)

    def cut(self, s: For) -> int | None:
        """The first iteration in which some guard below is not certain, when that splits the loop in two."""
        first, end = s.min.value, s.min.value + s.extent.value  # type: ignore[attr-defined]
        best: int | None = None
        for condition, inner in self.guards(s):
            for part in _conjuncts(condition):
                if not uses_var(part, s.loop_var):
                    continue
                for at in _thresholds(part, s.loop_var, inner, self.analyzer):
                    if first < at < end and (best is None or at < best):
                        best = at
        return best

    def guards(self, s: For) -> list[tuple[Expr, dict[Var, Range]]]:
        """Conditions under ``s`` that are worth deciding, with the loops between."""
        found: list[tuple[Expr, dict[Var, Range]]] = []
        wanted = self.everything or HINT in s.annotations or s.kind in _SPEED_KINDS

        def visit(item: Any, inner: dict[Var, Range], speed: bool) -> None:
            if isinstance(item, For):
                below = {**inner, item.loop_var: Range(item.min, item.extent)}
                visit(item.body, below, speed or item.kind in _SPEED_KINDS)
                return
            if isinstance(item, IfThenElse):
                likely = any(isinstance(n, Call) and n.op == "likely" for n in walk(item.condition))
                # a guard around fast loops counts as well as one inside them
                fast = speed or any(isinstance(n, For) and n.kind in _SPEED_KINDS for n in walk(item.then_case))
                if (wanted or likely or fast) and item.else_case is None and not _is_start(item.condition):
                    found.append((item.condition, inner))
            for child in item.children():
                if isinstance(child, Stmt):
                    visit(child, inner, speed)

        visit(s.body, {}, s.kind in _SPEED_KINDS)
        return found


def _is_start(condition: Expr) -> bool:
    """An equality singles out one iteration (a reduction's init): that is for the code generator to peel."""
    return any(isinstance(c, EQ) for c in _conjuncts(condition))


def _thresholds(part: Expr, var: Var, inner: dict[Var, Range], outer: Analyzer) -> list[int]:
    """Where, as ``var`` grows, the inequality ``part`` stops (or starts) being certain for all inner iterations."""
    if not isinstance(part, (LT, LE, GT, GE)) or not is_index(part.a.dtype):
        return []
    low, high = (part.a, part.b) if isinstance(part, (LT, LE)) else (part.b, part.a)
    form = linear(high).minus(linear(low))  # >= 0, or > 0 for the strict ones
    form.const -= isinstance(part, (LT, GT))
    coefficient = 0
    rest = linear(const(form.const, var.dtype))
    for factors, c in form.items():
        if len(factors) == 1 and factors[0] is var:
            coefficient = c
        elif any(uses_var(f, var) for f in factors):
            return []
        else:
            rest.add_term(factors, c)
    if coefficient == 0:
        return []
    with outer.scope():
        for v, rng in inner.items():
            outer.bind(v, rng)
        worst, best = outer.bound_linear(rest)
    if coefficient > 0:  # certain once coefficient * var + worst >= 0; impossible while even the best fails
        found = [] if worst is None else [-(worst // coefficient)]
        return found + ([] if best is None else [-(best // coefficient)])
    size = -coefficient
    found = [] if worst is None else [worst // size + 1]
    return found + ([] if best is None else [best // size + 1])


class _Decider:
    """Removes decided guards; knows the loops on the way down."""

    def __init__(self, analyzer: Analyzer):
        self.analyzer = analyzer

    def visit(self, s: Any) -> Any:
        if isinstance(s, For):
            with self.analyzer.scope():
                self.analyzer.bind(s.loop_var, Range(s.min, s.extent))
                body = self.visit(s.body)
            return NOP if is_nop(body) else s if body is s.body else s.replace(body=body)
        if isinstance(s, IfThenElse):
            return self.guard(s)
        if isinstance(s, SeqStmt):
            return seq(x for x in map(self.visit, s.stmts) if not is_nop(x))
        if isinstance(s, Stmt):
            return s.map_children(lambda c: self.visit(c) if isinstance(c, Stmt) else c)
        return s

    def guard(self, s: IfThenElse) -> Stmt:
        condition = rewrite(s.condition, lambda n: n.args[0] if isinstance(n, Call) and n.op == "likely" else None)
        simple = self.analyzer.simplify(condition)
        if isinstance(simple, IntImm):
            taken = s.then_case if simple.value else s.else_case
            return NOP if taken is None else self.visit(taken)
        then_case = self.visit(s.then_case)
        other = None if s.else_case is None else self.visit(s.else_case)
        return s.replace(then_case=then_case, else_case=other)


@func_pass
def loop_partition(func: PrimFunc, everything: bool = False) -> PrimFunc:
    """A loop with a guard such as ``io * 16 + ii < n`` runs unguarded up to the last full iteration, then guarded.

    Done where the guard is ``T.likely``, where vectorized or unrolled loops suffer from it, and for loops annotated
    ``pragma_loop_partition_hint``; with ``everything`` for every guard. Bounds have to be constant.
    """
    return func.with_body(_Cutter(everything).visit(func.body))
