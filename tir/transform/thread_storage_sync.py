"""Inserts barriers between conflicting accesses of different threads."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..aliases import memory_of, overlapping, sharing, with_names
from ..analysis.effects import effects
from ..errors import BuildError
from ..expr import BufferLoad, Call, IntImm, StringImm, Var, as_bool, is_const, logical_not
from ..function import PrimFunc
from ..launches import is_launch, with_kernels
from ..levels import is_private, is_thread_axis
from ..op import call
from ..script.printer import short_text
from ..stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from ..visit import has_load, is_pure, uses_var, walk
from .engines import orders_itself
from .gpu_memory_effects import Access, Accesses, Conflicts, Loop, depends_on_threads
from .passes import func_pass
from .thread_axes import flat

_WRAPPERS = (LetStmt, Allocate, DeclBuffer, AttrStmt)
_TRIES = 6


class Effect(NamedTuple):
    """A statement with its barriers; its accesses before the first, and after the last one (``barrier``: all its runs have
    one)."""

    stmt: Stmt
    head: list[Access]
    tail: list[Access]
    barrier: bool


class Divergent(Exception):
    """A barrier is needed between two accesses, under divergent control flow."""

    def __init__(self, first: Any, second: Any):
        super().__init__()
        self.first = first
        self.second = second


def _apart(*nodes: Any) -> str:
    """What else would do: that no two threads meet, where what is loaded decides on the element, which may be any."""
    loaded = (i for n in nodes if isinstance(n, (BufferLoad, BufferStore)) for i in n.indices if has_load(i))
    index = next(loaded, None)
    if index is None:
        return ""
    load = next(n for n in walk(index) if isinstance(n, BufferLoad))
    return f", or bound `{short_text(load)}` in the index (`% n`, `T.min` and `T.max`) so that no two threads meet"


def barrier() -> Stmt:
    return Evaluate(call("tvm_storage_sync", StringImm("shared"), dtype="void"))


def is_barrier(s: Any) -> bool:
    return isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == "tvm_storage_sync"


def _has_barrier(s: Stmt) -> bool:
    """Whether there is a barrier in a statement, be it in a loop that may have no iterations."""
    return any(is_barrier(n) for n in walk(s))


def _is_wait(s: Any) -> bool:
    return isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == "ptx_wait_group"


class _Placer:
    """Places barriers in one kernel."""

    def __init__(self, func: PrimFunc, kernel: Stmt):
        self.name = func.name
        self.aliased = overlapping(func)
        axes: dict[Var, Any] = {}
        blocks: list[Loop] = []
        scopes: dict[Var, str] = {}
        launched: set[Var] = set()
        for n in walk(kernel):
            if isinstance(n, AttrStmt) and is_launch(n):
                launched.add(n.node.var)
                if is_thread_axis(n.node.thread_tag):
                    axes[n.node.var] = n.value
                elif isinstance(n.value, IntImm):
                    blocks.append((n.node.var, IntImm(0, n.value.dtype), n.value))
            elif isinstance(n, Allocate):
                scopes[n.buffer_var] = n.buffer_var.scope
        found = effects(kernel)
        written = with_names(found.writes, self.aliased)
        self.threads = {v for v, extent in axes.items() if not is_const(extent, 1)}
        self.conflicts = Conflicts([(v, e) for v, e in axes.items() if v in self.threads], blocks, self.aliased)
        self.varying: set[Var] = set(self.threads)
        self.constant = found.reads - written
        # memory of threads and warps is nobody else's; global memory matters where the kernel writes it
        self.accesses = Accesses(
            lambda v: not is_private(scopes.get(v, v.scope)) and (v in scopes or v in written),
            launched,
            self.constant,
            self.varying,
        )
        self.copies: list[Access] = []

    def run(self, kernel: Stmt) -> Stmt:
        if not self.threads or orders_itself(kernel):
            return kernel
        self.copies = [a.at_wait() for a in self.accesses.of(kernel) if a.asynchronous]
        try:
            return self.place(kernel, []).stmt
        except Divergent as e:
            overlap = ' (its parameters may overlap: "tir.noalias" is False)' if self.aliased else ""
            raise BuildError(
                f"{self.name}: threads need a barrier between `{short_text(e.first)}` and `{short_text(e.second)}`{overlap}, "
                "but not all threads of the block get there; make the condition, or the extent of the loop, around "
                f"them the same for all threads{_apart(e.first, e.second)}"
            ) from None

    def varies(self, e: Any) -> bool:
        """Whether ``e`` may differ between threads of a block (is not uniform)."""
        loads = [n for n in walk(e) if isinstance(n, BufferLoad)]
        if loads and memory_of(loads) <= self.constant:
            return uses_var(e, self.varying) or not is_pure(e)
        return depends_on_threads(e, self.varying)

    # ------------------------------------------------------------ placing

    def place(self, s: Any, pending: list[Access]) -> Effect:
        """``s`` after the accesses ``pending``, with barriers in it and, if needed, before it."""
        if isinstance(s, SeqStmt):
            return self.sequence(s.stmts, pending)
        if isinstance(s, _WRAPPERS):
            if isinstance(s, LetStmt):
                return self.let(s, pending)
            inner = self.place(s.body, pending)
            return inner._replace(stmt=s.updated(body=inner.stmt))
        made = self.alone(s)
        if made.head and self.conflicts.any(pending, made.head):
            made = self.before(made)
            return made._replace(stmt=seq([barrier(), made.stmt]))
        return made

    @staticmethod
    def before(e: Effect) -> Effect:
        """``e`` preceded by a barrier."""
        return Effect(e.stmt, [], e.tail, True)

    def sequence(self, stmts: Any, pending: list[Access]) -> Effect:
        head: list[Access] = []
        tail: list[Access] = []
        seen = False
        made: list[Stmt] = []
        todo = list(reversed(stmts))
        while todo:
            s = todo.pop()
            if is_barrier(s):
                made.append(s)
                pending, tail, seen = [], [], True
                continue
            if _is_wait(s):
                made.append(s)
                tail = [*tail, *self.copies]
                pending = [*pending, *self.copies]
                continue
            e = self.place(s, pending)
            made.append(e.stmt)
            if not seen:
                head = [*head, *e.head]
            if e.barrier:
                pending, tail, seen = list(e.tail), list(e.tail), True
            else:
                pending, tail = [*pending, *e.tail], [*tail, *e.tail]
        return Effect(seq(made), head, tail, seen)

    def let(self, s: LetStmt, pending: list[Access]) -> Effect:
        head = self.accesses.of(s.value)
        self.accesses.bind(s.var, s.value)
        if self.varies(s.value):
            self.varying.add(s.var)
        late = self.conflicts.any(pending, head) is not None
        inner = self.place(s.body, head if late else [*pending, *head])
        tail = inner.tail if inner.barrier else [*head, *inner.tail]
        made = Effect(s.replace(body=inner.stmt), [*head, *inner.head], tail, inner.barrier)
        return self.before(made)._replace(stmt=seq([barrier(), made.stmt])) if late else made

    def alone(self, s: Any) -> Effect:
        """``s`` with the barriers that it needs inside."""
        if is_barrier(s):
            return Effect(s, [], [], True)
        if _is_wait(s):
            return Effect(s, [], list(self.copies), False)
        if isinstance(s, For):
            return self.loop(s)
        if isinstance(s, IfThenElse):
            return self.branch(s)
        if isinstance(s, While):
            return self.repeat(s)
        found = self.accesses.of(s)
        return Effect(s, found, found, False)

    def loop(self, s: For) -> Effect:
        bounds = [*self.accesses.of(s.min), *self.accesses.of(s.extent)]
        self.accesses.loops.append(self.accesses.loop(s))
        made = self.rounds(s.body, s.loop_var)
        self.accesses.loops.pop()
        if bounds and self.conflicts.any(bounds, made.head):
            low, extent = (
                Var(f"{s.loop_var.name}_{name}", e.dtype) for name, e in (("min", s.min), ("extent", s.extent))
            )
            fixed = s.replace(min=low, extent=extent)
            return self.place(LetStmt(low, s.min, LetStmt(extent, s.extent, fixed)), [])
        if (self.varies(s.min) or self.varies(s.extent)) and _has_barrier(made.stmt):
            raise Divergent(*self.culprits(s))
        stmt = s if made.stmt is s.body else s.replace(body=made.stmt)
        runs = isinstance(s.extent, IntImm) and s.extent.value > 0
        head = [*bounds, *made.head]
        if made.barrier and not runs:
            return Effect(stmt, head, [*made.head, *made.tail], False)
        return Effect(stmt, head, made.tail if made.barrier else [*bounds, *made.tail], made.barrier)

    def rounds(self, body: Stmt, var: Var) -> Effect:
        """The body of a loop, each iteration after the accesses that earlier ones left without a barrier."""
        made = self.place(body, [])
        split = made.barrier
        for _ in range(_TRIES):
            tail = [a for a in made.tail if not a.waited]
            waited = [a for a in made.tail if a.waited]
            again = [*(a.from_before(var, split) for a in tail), *waited]
            next_made = self.place(body, again)
            is_same = {a.place() for a in next_made.tail} == {a.place() for a in made.tail}
            if is_same and (next_made.barrier or not split):
                return next_made
            made = next_made
            split = split and made.barrier
        made = self.before(self.place(body, []))
        return made._replace(stmt=seq([barrier(), made.stmt]))

    def branch(self, s: IfThenElse) -> Effect:
        tested = self.accesses.of(s.condition)
        then = self.conditional(as_bool(s.condition), s.then_case)
        other = None if s.else_case is None else self.conditional(logical_not(s.condition), s.else_case)
        parts = [then] if other is None else [then, other]
        if tested and self.conflicts.any(tested, [a for p in parts for a in p.head]):
            value = Var("condition", s.condition.dtype)  # all threads test it before one changes what it reads
            return self.place(LetStmt(value, s.condition, s.replace(condition=value)), [])
        if self.varies(s.condition) and any(_has_barrier(p.stmt) for p in parts):
            return self.inward(s, then, other)
        made = s
        if then.stmt is not s.then_case or (other is not None and other.stmt is not s.else_case):
            made = s.replace(then_case=then.stmt, else_case=None if other is None else other.stmt)
        head = [*tested, *(a for p in parts for a in p.head)]
        tail = [a for p in parts for a in p.tail]
        always = len(parts) == 2 and all(p.barrier for p in parts)
        if not always:
            tail = [*tested, *(a for p in parts if p.barrier for a in p.head), *tail]
        return Effect(made, head, tail, always)

    def conditional(self, condition: Any, s: Stmt) -> Effect:
        known = self.accesses.known(condition)
        self.accesses.conditions.append(known)
        made = self.place(s, [])
        self.accesses.conditions.pop()
        return made

    def inward(self, s: IfThenElse, then: Effect, other: Effect | None) -> Effect:
        """Sink a divergent condition into the parts between which a barrier is needed."""
        written = with_names(effects(s).writes, self.aliased)
        free = not sharing((n for n in walk(s.condition) if isinstance(n, BufferLoad)), written)
        pure = free and is_pure(s.condition)
        if pure and other is not None and s.else_case is not None:
            first = IfThenElse(s.condition, s.then_case, span=s.span)
            second = IfThenElse(logical_not(s.condition), s.else_case, span=s.span)
            return self.place(seq([first, second]), [])
        body = s.then_case
        if pure and isinstance(body, SeqStmt) and any(is_barrier(p) for p in body.stmts):
            raise Divergent(s.condition, next(p for p in body.stmts if is_barrier(p)))
        if pure and isinstance(body, SeqStmt):
            return self.place(seq([s.replace(then_case=part) for part in body.stmts]), [])
        if pure and isinstance(body, For) and not (self.varies(body.min) or self.varies(body.extent)):
            return self.place(body.replace(body=s.replace(then_case=body.body)), [])
        if pure and isinstance(body, (Allocate, DeclBuffer, AttrStmt)):
            return self.place(body.replace(body=s.replace(then_case=body.body)), [])
        if pure and isinstance(body, LetStmt) and not any(isinstance(n, BufferLoad) for n in walk(body.value)):
            if is_pure(body.value):
                return self.place(body.replace(body=s.replace(then_case=body.body)), [])
        raise Divergent(*self.culprits(s))

    def repeat(self, s: While) -> Effect:
        tested = self.accesses.of(s.condition)
        made = self.place(s.body, [])
        found = [*tested, *self.accesses.of(s.body)]
        pair = self.conflicts.any([a.from_before(Var("_"), False) for a in found], found) if self.threads else None
        if pair is None and not _has_barrier(made.stmt):
            return Effect(s, found, found, False)
        if self.varies(s.condition):
            raise Divergent(*self.culprits(s))
        body = seq([barrier(), made.stmt])
        return Effect(s.replace(body=body), tested, [*tested, *found], False)

    def culprits(self, s: Any) -> tuple[Any, Any]:
        """Two accesses under ``s`` that need a barrier between them, for the message."""
        if _has_barrier(s):
            return s, next(n for n in walk(s) if is_barrier(n))
        found = self.accesses.of(s)
        pair = self.conflicts.any(found, found)
        return (pair[0].node, pair[1].node) if pair else (s, s)


@func_pass
def thread_storage_sync(func: PrimFunc) -> PrimFunc:
    """``T.tvm_storage_sync("shared")`` where threads of a block must see what others wrote, or have read.

    A barrier is inserted only if different threads may access the same byte (decided exactly for quasi-affine indices),
    as late as possible; loops include the conflicts with their next iteration, buffers that share memory count as one.
    A divergent condition is moved into the parts that a barrier separates. Raises ``BuildError`` if a barrier is needed
    that not all threads would reach. A kernel with transaction barriers (``T.create_barriers``) orders itself, and stays as
    it is.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 32) as tx:
    ...         S = T.allocate([32], "float32", "shared")
    ...         S[tx] = A[tx]
    ...         B[tx] = S[31 - tx]
    ... ''')
    >>> tir.transform.thread_storage_sync(f).body
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.allocate([32], "float32", "shared")
    S[tx] = A[tx]
    T.tvm_storage_sync("shared", dtype="void")
    B[tx] = S[31 - tx]
    """
    return func.with_body(flat(with_kernels(func.body, lambda kernel: _Placer(func, kernel).run(kernel))))
