"""Integer divisions by run-time values: what of them is hoisted out of loops.

LLVM does not hoist a conditional division by itself: it would trap if its divisor is zero. A division that varies in a
loop, by a divisor that does not, becomes a multiplication by the divisor's reciprocal, which is computed before the loop:
it is faster, and the loop has no division left that would keep LLVM from making vectors of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tir.expr import Broadcast, BufferLoad, Call, Div, Expr, FloorDiv, FloorMod, IntImm, Let, Mod, Var
from tir.stmt import For, LetStmt, Stmt
from tir.visit import free_vars, kinds, nodes_of, walk

if TYPE_CHECKING:
    from .generator import Generator


_DIVISIONS = {Div, Mod, FloorDiv, FloorMod}


def is_runtime_division(node: Any) -> bool:
    """Whether ``node`` is an integer division whose divisor is known at run time only."""
    if type(node) not in _DIVISIONS or not node.dtype.is_int:
        return False
    return not isinstance(divisor_of(node), IntImm)


@dataclass
class Hoisted:
    """What is computed before each loop: whole divisions, and of other divisions what depends on the divisor alone."""

    divisions: dict[For, list[Expr]] = field(default_factory=dict)
    divisors: dict[For, list[Expr]] = field(default_factory=dict)

    @staticmethod
    def of(body: Stmt) -> Hoisted:
        """The scalar run-time divisions of ``body``, each before the outermost loop in which it is invariant, inner
        divisions before those that use them; and the divisors of the others likewise. Divisions of loaded values stay
        where they are."""
        made = Hoisted()
        if not _DIVISIONS.isdisjoint(kinds(body)) and any(map(is_runtime_division, nodes_of(body))):
            _Collector(made).visit(body, [])
        return made


class _Collector:
    def __init__(self, found: Hoisted):
        self.found = found
        self.depth: dict[Var, int] = {}  # the number of loops around the definition of each variable

    def visit(self, node: Any, loops: list[For]) -> None:
        if isinstance(node, For):
            for part in (node.min, node.extent):
                self.visit(part, loops)
            self.depth[node.loop_var] = len(loops) + 1
            self.visit(node.body, [*loops, node])
            return
        if isinstance(node, (Let, LetStmt)):
            self.visit(node.value, loops)
            self.depth[node.var] = len(loops)
            self.visit(node.body, loops)
            return
        for child in node.children():
            if isinstance(child, (Expr, Stmt)) and not isinstance(child, (Var, IntImm)):
                self.visit(child, loops)
        if is_runtime_division(node):
            self.division(node, loops)

    def division(self, node: Any, loops: list[For]) -> None:
        at = self.place(node, loops) if node.dtype.lanes == 1 else None
        if at is not None:
            self.found.divisions.setdefault(loops[at], []).append(node)
            return
        divisor = divisor_of(node)
        at = self.place(divisor, loops)
        if at is not None and divisor.dtype == "int32":
            parallel = [k for k, loop in enumerate(loops) if loop.kind == "parallel"]  # functions of their own
            kept = self.found.divisors.setdefault(loops[max([at, *parallel])], [])
            if not any(divisor is other for other in kept):
                kept.append(divisor)

    def place(self, e: Expr, loops: list[For]) -> int | None:
        """Which of ``loops`` is the outermost in which ``e`` is invariant; None if there is none."""
        outer = max((self.depth.get(v, 0) for v in free_vars(e)), default=0)
        loaded = any(isinstance(n, (BufferLoad, Call, Let)) for n in walk(e))
        return outer if outer < len(loops) and not loaded else None


def divisor_of(node: Any) -> Expr:
    """The divisor of a division; of a vector whose lanes all have it, the scalar."""
    return node.b.value if isinstance(node.b, Broadcast) else node.b


def reciprocal(g: Generator, divisor: Expr) -> tuple[str, str]:
    """``(multiplier, shift)``, both i64, with which ``x // divisor`` is ``x * multiplier >> shift`` for 0 <= x < 2**31 and
    a divisor from 1 on: with ``k = ceil(log2(divisor))``, the multiplier ``2**(31 + k) // divisor + 1`` is less than
    2**32 (Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994, theorem 4.2)."""
    out = g.out
    least_one = out.intrinsic("umax", "i32", 1, [g.ahead(divisor), "1"])
    below = out.value(f"sub i32 {least_one}, 1")
    zeros = out.call("llvm.ctlz.i32", "i32", [("i32", below), ("i1", "false")])
    shift = out.value(f"zext i32 {out.value(f'sub i32 63, {zeros}')} to i64")
    power = out.value(f"shl i64 1, {shift}")
    quotient = out.value(f"udiv i64 {power}, {out.value(f'zext i32 {least_one} to i64')}")
    return out.value(f"add i64 {quotient}, 1"), shift
