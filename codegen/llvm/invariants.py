"""Loop-invariant integer divisions, to be hoisted out of loops.

LLVM does not hoist a conditional division by itself: it would trap if its divisor is zero.
"""

from __future__ import annotations

from typing import Any

from tir.expr import Broadcast, BufferLoad, Call, Div, Expr, FloorDiv, FloorMod, IntImm, Let, Mod, Var
from tir.stmt import For, LetStmt, Stmt
from tir.visit import free_vars, walk


def is_runtime_division(node: Any) -> bool:
    """Whether ``node`` is an integer division whose divisor is known at run time only."""
    if not isinstance(node, (Div, Mod, FloorDiv, FloorMod)) or not node.dtype.is_int:
        return False
    divisor = node.b.value if isinstance(node.b, Broadcast) else node.b
    return not isinstance(divisor, IntImm)


def invariant_divisions(body: Stmt) -> dict[For, list[Expr]]:
    """The scalar run-time divisions to hoist before each loop, the outermost in which they are invariant.

    Inner divisions come before those that use them. Divisions of loaded values stay where they are.
    """
    found: dict[For, list[Expr]] = {}
    if any(is_runtime_division(node) for node in walk(body)):
        _collect(body, [], {}, found)
    return found


def _collect(node: Any, loops: list[For], depth: dict[Var, int], found: dict[For, list[Expr]]) -> None:
    """``depth``: the number of loops around the definition of each variable."""
    if isinstance(node, For):
        for part in (node.min, node.extent):
            _collect(part, loops, depth, found)
        depth[node.loop_var] = len(loops) + 1
        _collect(node.body, [*loops, node], depth, found)
        return
    if isinstance(node, (Let, LetStmt)):
        _collect(node.value, loops, depth, found)
        depth[node.var] = len(loops)
        _collect(node.body, loops, depth, found)
        return
    for child in node.children():
        if isinstance(child, (Expr, Stmt)) and not isinstance(child, (Var, IntImm)):
            _collect(child, loops, depth, found)
    if is_runtime_division(node) and node.dtype.lanes == 1:
        outer = max((depth.get(v, 0) for v in free_vars(node)), default=0)
        if outer < len(loops) and not any(isinstance(n, (BufferLoad, Call, Let)) for n in walk(node)):
            found.setdefault(loops[outer], []).append(node)
