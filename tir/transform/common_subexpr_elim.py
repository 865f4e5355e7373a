"""Common subexpression elimination within a statement."""

from __future__ import annotations

from typing import Any

from ..arith.linear import key
from ..expr import And, BufferLoad, Call, Expr, FloorDiv, FloorMod, Let, Mod, Or, Var
from ..function import PrimFunc
from ..op import OPS
from ..stmt import BufferStore, Evaluate, LetStmt, Stmt
from ..visit import rewrite
from .passes import func_pass

_DEAR = (FloorDiv, FloorMod, Mod)


def _dear(e: Any) -> bool:
    """Worth eliminating: divisions, and named functions; scalars only, without loads."""
    if not isinstance(e, Expr) or e.dtype.lanes > 1 or e.dtype.is_bool or e.dtype.is_handle:
        return False
    if isinstance(e, _DEAR):
        return e.dtype.is_int
    return isinstance(e, Call) and e.op != "if_then_else" and e.op in OPS and OPS[e.op].numpy is not None


def _candidates(s: Stmt) -> dict[Any, list[Expr]]:
    """Expensive expressions that occur several times and are certain to be evaluated, by structural key."""
    found: dict[Any, list[Expr]] = {}
    certain: set[Any] = set()

    def visit(e: Any, sure: bool) -> bool:
        """Whether ``e``, which is certain to be evaluated if ``sure``, is free of loads and of names bound inside the
        statement."""
        if isinstance(e, Var):
            return True
        if not isinstance(e, Expr) or isinstance(e, Let):
            return False
        children = [c for c in e.children() if isinstance(c, Expr)]
        lazy = isinstance(e, (And, Or)) or (isinstance(e, Call) and e.op == "if_then_else")
        parts = [visit(c, sure and not (lazy and n)) for n, c in enumerate(children)]
        free = all(parts) and not isinstance(e, BufferLoad)
        if free and _dear(e):
            found.setdefault(key(e), []).append(e)
            if sure:
                certain.add(key(e))
        return free

    parts = (s.value, *s.indices) if isinstance(s, BufferStore) else (s.value,)  # type: ignore[attr-defined]
    for part in parts:
        visit(part, True)
    return {k: es for k, es in found.items() if len(es) > 1 and k in certain}


class _Namer:
    def __init__(self) -> None:
        self.count = 0

    def visit(self, item: Any) -> Any:
        if not isinstance(item, (BufferStore, Evaluate)):
            return None
        statement: Stmt = item
        names: list[tuple[Var, Expr]] = []
        while True:
            repeated = _candidates(statement)
            if not repeated:
                break
            # the largest first: what is inside it then occurs less often
            occurrences = max(repeated.values(), key=lambda es: _size(es[0]))
            self.count += 1
            var = Var(f"cse_v{self.count}", occurrences[0].dtype)
            again = {id(e) for e in occurrences}
            statement = _replace(statement, again, var)
            names.append((var, occurrences[0]))
        for var, value in names:
            statement = LetStmt(var, value, statement)
        return statement if names else None


def _replace(s: Any, again: set[int], var: Var) -> Any:
    def visit(item: Any) -> Any:
        if id(item) in again:
            return var
        return item if isinstance(item, Var) or not isinstance(item, (Expr, Stmt)) else item.map_children(visit)

    return visit(s)


def _size(e: Any) -> int:
    return 1 + sum(_size(c) for c in e.children() if isinstance(c, Expr))


@func_pass
def common_subexpr_elim(func: PrimFunc) -> PrimFunc:
    """``B[f(i)] = A[f(i)]`` becomes ``cse_v1 = f(i); B[cse_v1] = A[cse_v1]``.

    Within one statement, for divisions, remainders and pure functions of scalars that are certain to be evaluated.
    """
    return func.with_body(rewrite(func.body, _Namer().visit))
