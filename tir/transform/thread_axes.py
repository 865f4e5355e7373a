"""Queries of GPU passes about thread axes and memory scopes."""

from __future__ import annotations

from typing import Any

from ..expr import LT, BufferLoad, Call, Expr, Var, const
from ..launches import is_launch
from ..levels import LAUNCH_AXES, is_launch_axis, is_private
from ..op import call
from ..stmt import NOP, AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, While, seq
from ..visit import Somewhere, has_load, is_pure, rewrite, statements, walk

REDUCE_SCOPE = "reduce_scope"  # the attribute of a ``tvm_thread_allreduce``: its combiner


def is_thread_loop(item: Any) -> bool:
    """Whether ``item`` is a loop bound to an axis that is launched: any but virtual threads."""
    return isinstance(item, For) and is_launch_axis(item.thread)


def starts_kernel(item: Any) -> bool:
    """Whether ``item`` makes what is inside of it run in threads of a GPU."""
    return is_thread_loop(item) or is_launch(item)


_has_kernel = Somewhere(starts_kernel, For, AttrStmt)


def launch_reads_memory(s: Stmt) -> bool:
    """Whether a load decides if, or with how many threads, a kernel in ``s`` runs: the host that launches it knows scalars only."""
    if starts_kernel(s):
        return any(isinstance(n, For) and bool(n.thread) and has_load(n.extent) for n in statements(s))
    return _has_kernel(s) and any(
        launch_reads_memory(c) if isinstance(c, Stmt) else isinstance(c, Expr) and has_load(c) for c in s.children()
    )


def axis_order(tag: str) -> int:
    return LAUNCH_AXES.index(tag)


def flat(root: Any) -> Any:
    """``root`` with nested sequences flattened."""

    def change(item: Any) -> Any:
        nested = isinstance(item, SeqStmt) and any(isinstance(s, SeqStmt) or s is NOP for s in item.stmts)
        return seq(item.stmts) if nested else None

    return rewrite(root, change)


WARP = 32


def warp_mask(place: Expr, count: int) -> Expr:
    """The existing lanes in the warp of thread ``place``, its number in a block of ``count`` threads."""
    full, last = const(2**WARP - 1, "uint32"), count % WARP
    if not last:
        return full
    rest = const(2**last - 1, "uint32")
    if count < WARP:
        return rest
    return call("if_then_else", LT(place, const(count - last)), full, rest, dtype="uint32")


class Deciders:
    """The control dependences of the current place: the conditions and the loops around it. ``enter`` and ``leave``
    each statement on the way."""

    def __init__(self) -> None:
        self.lets: dict[Var, Any] = {}
        self.around: list[For | IfThenElse | While] = []

    def enter(self, s: Stmt) -> None:
        if isinstance(s, LetStmt):
            self.lets[s.var] = s.value
        if isinstance(s, (IfThenElse, While, For)):
            self.around.append(s)

    def leave(self, s: Stmt) -> None:
        if isinstance(s, (IfThenElse, While, For)):
            self.around.pop()

    def differs(self, e: Any, threads: set[Var]) -> bool:
        """Whether ``e`` may differ between ``threads``: it uses one of them, or memory private to each."""
        for n in walk(e):
            if isinstance(n, Var) and (n in threads or (n in self.lets and self.differs(self.lets[n], threads))):
                return True
            if (isinstance(n, BufferLoad) and is_private(n.buffer.scope)) or (isinstance(n, Call) and not is_pure(n)):
                return True
        return False

    def varies(self, threads: set[Var]) -> Any:
        """A condition, or a loop bound, around this place that may diverge between ``threads``; None if none."""
        for s in self.around:
            for e in (s.min, s.extent) if isinstance(s, For) else (s.condition,):
                if self.differs(e, threads):
                    return e
        return None
