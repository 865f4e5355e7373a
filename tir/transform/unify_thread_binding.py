"""One variable for each thread axis of a kernel, launched around the whole kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..aliases import shares_memory
from ..analysis.effects import effects
from ..arith import Analyzer
from ..buffer import Buffer
from ..errors import BuildError
from ..expr import EQ, TRUE, BufferLoad, Call, Expr, Var, all_of, const, is_const, max_
from ..function import PrimFunc
from ..levels import GLOBAL, LOCAL, ends_with_launch, is_private, is_shared, is_thread_axis
from ..names import unique_name
from ..op import OPS
from ..stmt import THREAD_BINDING, Block, BlockRealize, BufferStore, Evaluate, For, IfThenElse, LetStmt, Stmt
from ..visit import free_vars, rewrite, substitute, walk
from .canonicalize_loop import starting_at_zero
from .passes import func_pass
from .thread_axes import axis_order, flat, is_thread_loop


class _Kernel:
    """The thread axes under one outermost thread loop: a loop and the new variable of each."""

    def __init__(self, name: str, outermost: For):
        self.name = name
        self.first: dict[str, For] = {}
        self.vars: dict[str, Var] = {}
        self.around_all = _outermost_axes(outermost)
        inner: set[Var] = set()
        for n in walk(outermost):
            if is_thread_loop(n):
                self._add(n)
            if isinstance(n, (For, LetStmt)):
                inner.add(n.loop_var if isinstance(n, For) else n.var)
        for axis, loop in self.first.items():
            for v in free_vars(loop.extent):
                if v in inner:
                    raise BuildError(
                        f"{name}: the extent `{loop.extent!r}` of {axis} (loop `{loop.loop_var.name}`) depends on "
                        f"`{v.name}` inside the kernel; a launch has one extent for each axis"
                    )

    def _add(self, loop: Any) -> None:
        axis = loop.thread
        old = self.first.get(axis)
        if old is None:
            self.first[axis] = loop
            self.vars[axis] = Var(loop.loop_var.name, loop.loop_var.dtype)
        elif not Analyzer().can_prove_equal(old.extent, loop.extent):
            raise BuildError(
                f"{self.name}: {axis} has extent {old.extent!r} in loop `{old.loop_var.name}` and {loop.extent!r} in "
                f"loop `{loop.loop_var.name}` of one kernel; split one of them so that both are equal"
            )

    def visit(self, s: Any, under: frozenset[str]) -> Any:
        """``s`` without its thread loops; what is for one thread is guarded: stores, and what reads memory to decide on them."""
        if is_thread_loop(s):
            s = starting_at_zero(s)
            var = self.vars[s.thread]
            value: Any = var if var.dtype is s.loop_var.dtype else var.astype(s.loop_var.dtype)
            body = self.visit(substitute(s.body, {s.loop_var: value}), under | {s.thread})
            return IfThenElse(s.extent > 0, body) if self._is_launched_if_empty(s) else body
        if type(s) is Block:
            return self._block(s, under)
        ones = self._idle(s, under) if _evaluates_shared_memory(s) else frozenset[str]()
        if ones:
            return IfThenElse(self._is_first(ones), self.visit(s, under | ones))
        if (scopes := _updated(s)) and (again := self._shared_by(scopes, under)):
            raise BuildError(
                f"{self.name}: `{s!r}` changes memory outside of the loops of {', '.join(sorted(again))}, of which one thread "
                "is to do that, but each thread would go on with the old value; keep that in shared or global memory, or "
                "put the statement into these loops"
            )
        return s.map_statements(partial(self.visit, under=under))

    def _block(self, s: Block, under: frozenset[str]) -> Block:
        """A block in the kernel. Where one thread is enough for all that it does, and it keeps what an update gives in memory of
        its own, all of it is for that thread."""
        own = frozenset(b.data for b in s.alloc_buffers if is_private(b.scope))
        ones = self._idle(s, under, own) if own and any(map(_is_update, walk(s))) else frozenset[str]()
        if ones:
            return s.replace(body=IfThenElse(self._is_first(ones), self.visit(s.body, under | ones)))
        return s.map_statements(partial(self.visit, under=under))

    def _is_launched_if_empty(self, loop: For) -> bool:
        """Whether the kernel has other statements, which run even if ``loop`` has no iterations."""
        return loop.thread not in self.around_all and not Analyzer().can_prove(loop.extent > 0)

    def _idle(self, s: Any, under: frozenset[str], own: frozenset[Var] = frozenset()) -> frozenset[str]:
        """The axes of which one thread is enough for all that ``s`` does: for its stores and updates, each to memory that
        threads share, or to ``own``."""
        if is_thread_loop(s):
            under |= {s.thread}
        stored = [s.buffer.scope] if isinstance(s, BufferStore) and s.buffer.data not in own else []
        idle = [self._idle(c, under, own) for c in s.children() if isinstance(c, Stmt)]
        if isinstance(s, BufferStore) or _updated(s):
            idle.append(self._shared_by([*stored, *_updated(s)], under))
        return idle[0].intersection(*idle[1:]) if idle else frozenset[str]()

    def _shared_by(self, scopes: Sequence[str], under: frozenset[str]) -> frozenset[str]:
        """The axes outside of whose loops all threads would change the same memory of ``scopes``."""
        return frozenset(
            axis
            for axis, loop in self.first.items()
            if not any(map(is_private, scopes))
            and axis not in under
            and not is_const(loop.extent, 1)
            and (is_thread_axis(axis) or not any(map(is_shared, scopes)))
        )

    def _is_first(self, axes: frozenset[str]) -> Expr:
        variables = [self.vars[axis] for axis in sorted(axes, key=axis_order)]
        return all_of([EQ(v, const(0, v.dtype)) for v in variables])

    def launched(self, body: Stmt) -> Stmt:
        for axis in sorted(self.first, key=axis_order, reverse=True):
            loop, var = self.first[axis], self.vars[axis]
            extent = loop.extent if loop.extent.dtype is var.dtype else loop.extent.astype(var.dtype)
            if self._is_launched_if_empty(loop):
                extent = Analyzer().simplify(max_(extent, const(1, extent.dtype)))
            body = For(var, const(0, var.dtype), extent, THREAD_BINDING, body, axis, loop.annotations, span=loop.span)
        return body


def _updated(s: Any) -> list[str]:
    """The scopes of the memory that expressions of ``s`` change in each thread that evaluates them, as ``T.atomic_add`` does."""
    expressions = [c for c in s.children() if isinstance(c, Expr) and any(map(_is_update, walk(c)))]
    return [e.buffer.scope for c in expressions for e in effects(Evaluate(c)) if e.write]


def _is_update(e: Any) -> bool:
    op = OPS.get(e.op) if isinstance(e, Call) else None
    return op is not None and any(p.mode == "rw" and p.each_thread for _, p in op.pointers)


def _evaluates_shared_memory(s: Any) -> bool:
    """Whether ``s`` is a store, or evaluates an expression that loads from memory that threads share, or updates memory."""
    loads = (n for c in s.children() if isinstance(c, Expr) for n in walk(c) if isinstance(n, BufferLoad))
    return isinstance(s, BufferStore) or any(not is_private(n.buffer.scope) for n in loads) or bool(_updated(s))


def _outermost_axes(s: Any) -> frozenset[str]:
    """The axes of the thread loops around all statements of ``s``."""
    found: set[str] = set()
    while is_thread_loop(s):
        found.add(s.thread)
        s = s.body
    return frozenset(found)


def _of_a_thread(s: Any) -> Any:
    """A block in a kernel, run by one thread, with the global memory that it allocates, which each instance has for itself, as
    the thread's; None for others."""
    own = (
        {b.data: b.data.replace(scope=LOCAL) for b in s.alloc_buffers if b.scope == GLOBAL} if type(s) is Block else {}
    )
    if not own or any(type(n) is For and n.kind == THREAD_BINDING for n in walk(s)):
        return None

    def renamed(node: Any) -> Any:
        if type(node) is Buffer and shares_memory(node, own):
            return node.replace(scope=LOCAL, data=own[node.data])
        return own.get(node) if type(node) is Var else None

    return rewrite(s, renamed)


class _Unifier:
    def __init__(self, func: PrimFunc):
        self.name = func.name
        self.names = {n.name for n in walk(func.body) if isinstance(n, Block)}

    def visit(self, s: Any, outside: tuple[Buffer, ...]) -> tuple[Any, set[Buffer]]:
        """``s``, outside kernels, and which of ``outside`` (memory used only by kernels) it moved into a kernel."""
        if is_thread_loop(s):
            s = rewrite(s, _of_a_thread)
            kernel = _Kernel(self.name, s)
            body = kernel.visit(s, frozenset())
            used = {n for n in walk(s) if isinstance(n, Buffer)}
            mine = tuple(b for b in outside if b in used)
            if mine:
                self.names.add(name := unique_name(f"{mine[0].name}_scope", self.names))
                block = Block((), (), (), name, body, None, mine)
                body = BlockRealize((), TRUE, block)
            return kernel.launched(body), set(mine)
        if isinstance(s, Block):
            device = tuple(b for b in s.alloc_buffers if ends_with_launch(b.scope))
            made, placed = self._children(s, (*outside, *device))
            stay = tuple(b for b in s.alloc_buffers if b not in placed)
            if len(stay) != len(s.alloc_buffers):
                made = made.replace(alloc_buffers=stay)
            return made, placed
        return self._children(s, outside)

    def _children(self, s: Any, outside: tuple[Buffer, ...]) -> tuple[Any, set[Buffer]]:
        placed: set[Buffer] = set()

        def child(c: Any) -> Any:
            if not isinstance(c, Stmt):
                return c
            made, more = self.visit(c, outside)
            twice = sorted(b.name for b in more & placed)
            if twice:
                b = next(b for b in more if b.name == twice[0])
                raise BuildError(
                    f"{self.name}: buffer `{b.name}` in {b.scope} memory is used by two kernels, which share global "
                    "memory only; give it the scope global, or make the kernels one"
                )
            placed.update(more)
            return made

        return s.map_children(child), placed


@func_pass
def unify_thread_binding(func: PrimFunc) -> PrimFunc:
    """Each kernel gets one variable for each thread axis, bound around the whole kernel in the order of launches.

    A kernel is everything under an outermost thread loop. Loops of one axis, nested (cooperative fetching) or in
    sequence, become one; a store to shared or global memory outside the loops of an axis, or an update of it, is done by the
    axis' first thread, which there is even if the loops have no iterations. Memory of kernels that is allocated outside moves in; global memory that a
    block of one thread allocates is local.
    Raises ``BuildError`` if loops of one axis have different extents, an extent depends on something inside the kernel, or
    each thread would go on with the old value of an update that one thread makes.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for b in T.thread_binding(1, thread="blockIdx.x"):
    ...         for i in T.thread_binding(8, thread="threadIdx.x"):
    ...             A[i] = 1.0
    ...         for j in T.thread_binding(8, thread="threadIdx.x"):
    ...             B[j] = 2.0
    ... ''')
    >>> tir.transform.unify_thread_binding(f).body
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            A[i] = T.float32(1)
            B[i] = T.float32(2)
    """
    return func.with_body(flat(_Unifier(func).visit(func.body, ())[0]))
