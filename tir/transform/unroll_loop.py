"""Unrolls loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from ..aliases import reads_memory
from ..annotations import UNROLL_EXPLICIT, UNROLL_STEPS
from ..arith.linear import inequality
from ..expr import IntImm, conjuncts, const, is_const
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import AttrStmt, For, IfThenElse, SeqStmt, Stmt, seq
from ..visit import substitute, uses_var
from .passes import func_pass

MAX_COPIES = 1024  # statements that a nest of unrolled loops may make: compilers take ever longer over more
REASON = "rolled_because"


class _Unroller:
    def __init__(self, max_copies: int, auto_max_step: int, explicit: bool):
        self.max_copies = max_copies
        self.auto_max_step = auto_max_step
        self.explicit = explicit

    def visit(self, s: Any) -> tuple[Any, int, float]:
        """``s`` unrolled, the number of its statements, and the number of steps to run it (infinite if it has a
        loop)."""
        if isinstance(s, For):
            return self.loop(s)
        if isinstance(s, AttrStmt) and s.attr_key in (UNROLL_STEPS, UNROLL_EXPLICIT):
            return self.pragma(s)
        if isinstance(s, SeqStmt):
            made = [self.visit(x) for x in s.stmts]
            same = all(a is b for (a, _, _), b in zip(made, s.stmts))
            return s if same else seq(a for a, _, _ in made), sum(n for _, n, _ in made), sum(n for _, _, n in made)
        size, steps = 0, 0.0

        def child(c: Any) -> Any:
            nonlocal size, steps
            if not isinstance(c, Stmt):
                return c
            new, inner_size, inner_steps = self.visit(c)
            size, steps = size + inner_size, steps + inner_steps
            return new

        made = s.map_children(child)
        return made, max(size, 1), max(steps, 1.0)

    @staticmethod
    def ends(s: For, body: Stmt) -> bool:
        """Whether the iterations of ``s`` are those for which a condition holds, up to one for which it does not."""
        if not isinstance(body, IfThenElse) or body.else_case is not None or body.condition.dtype.lanes > 1:
            return False
        parts = [part for part in conjuncts(body.condition) if uses_var(part, s.loop_var)]
        falls = all(found is not None and found[0] <= 0 for found in (inequality(part, s.loop_var) for part in parts))
        return falls and not reads_memory(body.condition)

    def pragma(self, s: AttrStmt) -> tuple[Stmt, int, float]:
        saved = self.auto_max_step, self.explicit
        value = s.value.value if isinstance(s.value, IntImm) else 0
        if s.attr_key == UNROLL_STEPS:
            self.auto_max_step = value
        else:
            self.explicit = bool(value)
        made = self.visit(s.body)
        self.auto_max_step, self.explicit = saved
        return made

    def loop(self, s: For) -> tuple[Stmt, int, float]:
        body, size, steps = self.visit(s.body)
        loop = s if body is s.body else s.replace(body=body)
        if not isinstance(s.extent, IntImm):
            return loop, size, math.inf
        extent = s.extent.value
        automatic = s.kind == "serial" and steps * extent <= self.auto_max_step
        if automatic and not self.explicit:
            return loop.replace(kind="unrolled"), size, steps * extent
        copies = max(size, 1) * extent
        if (s.kind == "unrolled" and copies <= self.max_copies) or automatic:
            each = [substitute(body, {s.loop_var: _at(s, k)}) for k in range(extent)]
            return (_while_they_hold(each) if each and self.ends(s, body) else seq(each)), copies, steps * extent
        if s.kind != "unrolled":
            return loop, size, math.inf
        if copies <= MAX_COPIES:
            return loop, copies, math.inf
        notes = frozendict({**s.annotations, REASON: f"{copies} copies of its statements, {MAX_COPIES} are the most"})
        return loop.replace(kind="serial", annotations=notes), size, math.inf


def _while_they_hold(copies: Sequence[Any]) -> Stmt:
    """Copies of what runs under a condition that holds for no copy after one for which it does not: each asks once those before have."""
    return reduce(lambda rest, s: s.replace(then_case=seq([s.then_case, rest])), copies[-2::-1], copies[-1])


def _at(loop: For, k: int) -> Any:
    return const(k, loop.loop_var.dtype) if is_const(loop.min, 0) else loop.min + k


@func_pass
def unroll_loop(
    func: PrimFunc, max_copies: int = MAX_COPIES, auto_max_step: int = 0, explicit: bool = True
) -> PrimFunc:
    """Loops of kind ``unrolled`` and constant extent become copies of their bodies.

    Under ``pragma_auto_unroll_max_step`` serial loops of no more steps are unrolled too; with
    ``pragma_unroll_explicit`` 0 they are only marked, for the code generator. A nest that would make more than
    ``max_copies`` statements stays a loop, marked for the code generator; one that would make more than ``MAX_COPIES``
    a serial loop, with the reason in its annotation ``rolled_because``. Copies under a condition that holds for none after one
    for which it does not, such as ``i < n``, ask it inside of the one before.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for j in T.unroll(2):
    ...         A[j] = 1.0
    ... ''')
    >>> tir.transform.unroll_loop(f).body
    A[0] = T.float32(1)
    A[1] = T.float32(1)
    """
    body, _, _ = _Unroller(max_copies, auto_max_step, explicit).visit(func.body)
    return func.with_body(body)
