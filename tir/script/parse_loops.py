"""Loops of the dialect, and how their iterations end early."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from .. import expr as _e
from ..arith import simplify
from ..buffer import Range, index_expr
from ..expr import Expr, Var, const
from ..node import freeze
from ..stmt import For, Stmt, While
from . import frames as f
from .diagnostics import Abort, type_name
from .jumps import (
    MisplacedJump,
    construct,
    flag,
    jumps_of_loop,
    read_flag,
    set_flag,
    without_loop_jumps,
    without_returns,
)
from .operators import plain
from .scope import Item
from .values import range_of

_AT_ONCE = ("parallel", "vectorized", "thread_binding")


class LoopParser:
    """The part of the statement parser that knows loops."""

    # what the statement parser provides
    source: Any
    fail: Callable[..., NoReturn]
    report: Callable[..., None]
    emit: Callable[[Item], None]
    ev: Callable[[ast.expr], Any]
    body: Callable[..., Stmt]
    nested: Callable[..., Any]
    poison: Callable[[ast.AST], None]
    statement: Callable[[ast.stmt], None]
    statements: Callable[[list[ast.stmt]], None]
    condition: Callable[[Any, ast.AST], Expr]
    domains: dict[Var, Any]
    known: set[Var]
    concurrent: list[str]
    depth: int

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            self.report(node.orelse[0], "`else` of a loop is not part of the dialect")
        body, goes_on = self.without_jumps(node)
        test = (
            node.test if goes_on is None else ast.copy_location(ast.BoolOp(ast.And(), [goes_on, node.test]), node.test)
        )
        condition = self.condition(self.ev(test), node.test)
        used = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        self.emit(While(condition, self.body(body, read=used), span=self.source.span(node)))

    def without_jumps(self, node: ast.For | ast.While) -> tuple[list[ast.stmt], ast.expr | None]:
        """The body of a loop without ``break`` and ``continue``; where there is a ``break``, also the flag that says whether
        the loop goes on, true before the loop."""
        jumps = jumps_of_loop(node.body)
        if not jumps:
            return node.body, None
        going = flag("going", node)
        body = self.structured(node.body, lambda body: without_loop_jumps(body, going))
        if not any(construct(jump) is ast.Break for jump in jumps):
            return body, None
        self.statement(set_flag(going, True, node))
        return body, read_flag(going, node)

    def structured(self, body: list[ast.stmt], without: Callable[[list[ast.stmt]], list[ast.stmt]]) -> list[ast.stmt]:
        """``without(body)``. Records an error for a jump that leaves more than loops and branches."""
        try:
            return without(body)
        except MisplacedJump as fault:
            word = {ast.Break: "break", ast.Continue: "continue"}.get(construct(fault.node), "return")
            around = "a loop" if isinstance(fault.around, (ast.For, ast.While)) else "a `with`"
            return self.fail(
                fault.node,
                f"`{word}` leaves {around} here, which is executed whole",
                "write what it skips under an `if`",
            )

    def function_body(self, body: list[ast.stmt]) -> None:
        """The statements of a function, of which a plain ``return`` skips the rest."""
        try:
            body = self.structured(body, without_returns)
        except Abort:
            return
        self.statements(body)

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            self.report(node.orelse[0], "`else` of a loop is not part of the dialect")
        try:
            frame = self.loops_of(self.ev(node.iter), node)
            names = self.loop_names(node.target, len(frame.loops))
            opened = [self.loop(name, loop, node) for name, loop in zip(_flat(names), frame.loops)]
            at_once = [var.name for var, _, _, loop in opened if loop.kind in _AT_ONCE]
            body, goes_on = self.without_jumps(node)
            if goes_on is not None and at_once:
                self.fail(
                    next(jump for jump in jumps_of_loop(node.body) if construct(jump) is ast.Break),
                    f"the iterations of loop `{at_once[0]}` run at once: none can end the others",
                    "`break` and `return` end serial loops; write what each iteration skips under an `if`",
                )
            if goes_on is not None:
                body = [ast.copy_location(ast.If(goes_on, body or [ast.Pass()], []), node)]
        except Abort:
            with self.nested():
                self.poison(node.target)
                self.statements(node.body)
            return
        bound: dict[str, Any] = {}
        variables = iter([_stepped(var, loop) for var, _, _, loop in opened])
        for name in names:
            bound.update(
                {name[0]: tuple(next(variables) for _ in name[1])}
                if isinstance(name, tuple)
                else {name: next(variables)}
            )
        for var, first, extent, _ in opened:
            self.known.add(var)
            self.domains[var] = Range(first, extent)
        self.depth += 1
        self.concurrent += at_once
        result = self.body(body, bound)
        del self.concurrent[len(self.concurrent) - len(at_once) :]
        self.depth -= 1
        span = self.source.span(node)
        for var, first, extent, loop in reversed(opened):
            result = For(var, first, extent, loop.kind, result, loop.thread, freeze(loop.annotations), span=span)
        self.emit(result)

    def loops_of(self, value: Any, node: ast.For) -> f.LoopFrame:
        if isinstance(value, f.LoopFrame):
            return value
        if isinstance(value, range):
            plain_loop = value.start == 0 and value.step == 1
            made = f.Loop(value.stop, None) if plain_loop else f.Loop(value.start, value.stop, step=value.step)
            return f.LoopFrame([made], "range")
        return self.fail(
            node.iter,
            f"a `for` loop runs over T.serial, T.grid, T.parallel, T.vectorized, T.unroll, T.thread_binding or range, "
            f"not a {type_name(value)}",
            "to repeat code for Python values, call a Python function or T.macro",
        )

    def loop_names(self, target: ast.expr, count: int) -> list[Any]:
        """A name for each loop; a starred or only name for several is a pair (name, names)."""
        items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        starred = [i for i, item in enumerate(items) if isinstance(item, ast.Starred)]
        if len(items) == 1 and isinstance(items[0], ast.Name) and count > 1 and not isinstance(target, ast.Tuple):
            return [(items[0].id, [f"{items[0].id}_{k}" for k in range(count)])]
        names: list[Any] = []
        for item in items:
            inner = item.value if isinstance(item, ast.Starred) else item
            if not isinstance(inner, ast.Name):
                self.fail(item, "a loop variable is a name")
            if isinstance(item, ast.Starred):
                names.append((inner.id, [f"{inner.id}_{k}" for k in range(count - len(items) + 1)]))
            else:
                names.append(inner.id)
        if len(starred) > 1 or len(_flat(names)) != count:
            self.fail(
                target,
                f"{count} loop{'s' * (count != 1)} cannot be unpacked into {len(items)} name{'s' * (len(items) != 1)}",
                f"write one name for each of the {count} extents",
            )
        return names

    def loop(self, name: str, loop: f.Loop, node: ast.For) -> tuple[Var, Expr, Expr, f.Loop]:
        try:
            if loop.stop is None:
                extent = index_expr(plain(loop.start))
                return Var(name, extent.dtype), const(0, extent.dtype), extent, loop
            if _step(loop) is not None:
                return self.stepped_loop(name, loop, node)
            bounds = range_of(plain(loop.start), plain(loop.stop))
            return Var(name, bounds.extent.dtype), bounds.min, bounds.extent, loop
        except (TypeError, ValueError) as exc:
            return self.fail(node.iter, str(exc))

    def stepped_loop(self, name: str, loop: f.Loop, node: ast.For) -> tuple[Var, Expr, Expr, f.Loop]:
        """A loop with a step counts its iterations; its name stands for ``start + count * step``."""
        step = _step(loop)
        if step is None or step <= 0:
            self.fail(
                node.iter,
                f"a loop's step is a positive constant, not {loop.step!r}",
                "count upwards, and compute the descending value from the variable",
            )
        start, stop = (0, loop.start) if loop.stop is None else (loop.start, loop.stop)
        bounds = range_of(plain(start), plain(stop))
        extent = simplify((bounds.extent + (step - 1)) // step)
        return Var(name, extent.dtype), const(0, extent.dtype), extent, replace(loop, start=bounds.min)


def _step(loop: f.Loop) -> int | None:
    """A loop's step where it is not 1; 0 for one that is not a constant."""
    step = plain(loop.step)
    number = step if isinstance(step, int) else step.value if isinstance(step, _e.IntImm) else 0
    return None if number == 1 else number


def _stepped(var: Var, loop: f.Loop) -> Expr:
    """What the name of a loop stands for."""
    step = _step(loop)
    return var if step is None else simplify(loop.start + var * step)


def _flat(names: list[Any]) -> list[str]:
    return [n for name in names for n in (name[1] if isinstance(name, tuple) else [name])]
