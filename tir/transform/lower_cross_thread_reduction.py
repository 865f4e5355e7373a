"""Reductions over thread-bound loops: partial results of each thread, then an all-reduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..aliases import memory_of, same_nodes, shares_memory, with_one_memory
from ..analysis.block_regions import with_regions
from ..analysis.reduction_forms import NotAReduction, Reduction, shared_results, threads_can_share
from ..analysis.reduction_init import result_guards
from ..buffer import Buffer, decl_buffer
from ..errors import BuildError, ScheduleError, attempt
from ..expr import EQ, TRUE, BufferLoad, Expr, IntImm, Var, all_of, cast, const, is_const
from ..function import PrimFunc
from ..levels import is_private, is_thread_axis
from ..node import Node
from ..op import call
from ..script.printer import short_text
from ..stmt import (
    THREAD_BINDING,
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    in_loops,
    seq,
)
from ..visit import in_copies_of, rewrite, substitute, uses_var, walk
from .passes import func_pass
from .thread_axes import REDUCE_SCOPE, flat, is_thread_loop


class _Reduction:
    """One block shared among threads; ``nest`` are the loops from its outermost serial reduction loop inwards."""

    def __init__(self, name: str, realize: BlockRealize, loops: list[For], nest: list[For], threads: list[For]):
        block = realize.block
        self.name, self.realize, self.block, self.loops = name, realize, block, loops
        self.threads = threads
        found = Reduction.of(block)
        if isinstance(found, NotAReduction):
            raise BuildError(f"{found.reason}: threads cannot share its reduction; bind another loop")
        if not threads_can_share(block):
            raise BuildError(
                f"{name}: block `{block.name}` reduces in loops of its own, through views of buffers, or to places or from "
                "values that its reduction iterators choose: threads cannot share its reduction; bind another loop"
            )
        self.reducer = found
        guards = attempt(lambda: result_guards(realize, loops))
        if isinstance(guards, ScheduleError):
            raise BuildError(f"{name}: {guards}; bind another loop")
        self.guards = guards
        self.serial = [f for f in nest if not f.thread]
        self.bound = [f for f in nest if f.thread]
        values = {v.var: cast(v.var.dtype, e) for v, e in zip(block.iter_vars, realize.iter_values)}
        self.values = values
        around = {f.loop_var for f in loops}
        self.reducing = {n for e in _reduced(realize) for n in walk(e) if isinstance(n, Var) and n in around}
        for v, e in zip(block.iter_vars, realize.iter_values):
            mixed = [f for f in loops if v.iter_type != "reduce" and uses_var(e, f.loop_var)]
            for f in mixed:
                if f.loop_var in self.reducing and any(f is t for t in threads):
                    raise BuildError(
                        f"{name}: loop `{f.loop_var.name}` ({f.thread}) moves both the reduction of block "
                        f"`{block.name}` and its result `{v.var.name}`; split it first"
                    )
        # results that differ within the nest each have a partial value of their own
        self.spread = [f for f in self.serial if f.loop_var not in self.reducing]
        shape = [f.extent for f in self.spread] or [const(1)]
        if not all(isinstance(s, IntImm) for s in shape):
            raise BuildError(f"{name}: block `{block.name}` reduces across threads inside a loop of unknown extent")
        self.index: tuple[Expr, ...] = tuple(f.loop_var - f.min for f in self.spread) or (const(0),)
        self.partial = [self._local(b, shape, "partial") for b in self.reducer.targets]
        self.result = [self._local(b, shape, "reduced") for b in self.reducer.targets]

    @staticmethod
    def _local(b: Buffer, shape: Any, what: str) -> Buffer:
        return decl_buffer(shape, b.dtype, f"{b.name}_{what}", scope="local")

    def lowered(self) -> Stmt:
        """The lowering of a reduction that is alone in its loops."""
        update = in_loops(self.serial, self.update())
        return in_loops(self.bound, _scope([self], seq([self.start(), update, self.finish()])))

    def start(self, loops: Sequence[For] = ()) -> Stmt:
        """The initialisation of each thread's partial result, in the threads of ``loops``."""
        stores = [BufferStore(p, i, self.index) for p, i in zip(self.partial, self.reducer.identity)]
        return in_copies_of([*loops, *self.spread], seq(stores))

    def finish(self, loops: Sequence[For] = ()) -> Stmt:
        """The all-reduce of the partial results, and the store of the result."""
        parts = (in_copies_of(self.spread, part) for part in (self._all_reduce(), self._write()))
        return in_copies_of(loops, seq(parts))  # one loop of threads around both

    def update(self) -> Stmt:
        """One iteration: the thread accumulates a value into its partial result."""
        part = dict(zip(self.reducer.targets, self.partial))

        def redirect(item: Any) -> Any:
            if isinstance(item, (BufferLoad, BufferStore)) and item.buffer in part:
                return item.replace(buffer=part[item.buffer], indices=self.index)
            return None

        # let-bound new values are read before any of the results is stored
        body = substitute(rewrite(self.block.body, redirect), self.values)
        if not is_const(self.realize.predicate, 1):
            body = IfThenElse(self.realize.predicate, body)
        return body

    def _all_reduce(self) -> Stmt:
        sources = [BufferLoad(p, self.index) for p in self.partial]
        results = [BufferLoad(r, self.index) for r in self.result]
        threads = [f.loop_var for f in self.threads]
        value = call("tvm_thread_allreduce", IntImm(len(sources), _UINT32), *sources, TRUE, *results, *threads)
        return AttrStmt(self.reducer.comm, REDUCE_SCOPE, const(0, "handle"), Evaluate(value))

    def _write(self) -> Stmt:
        values: list[Any] = [BufferLoad(r, self.index) for r in self.result]
        indices = [tuple(substitute(i, self.values) for i in s.indices) for s in self.reducer.stores]
        if self.reducer.init is None:
            old = [BufferLoad(b, i) for b, i in zip(self.reducer.targets, indices)]
            values = self.reducer.combine(old, values)
        elif not self.reducer.starts_at_identity():
            starts = [substitute(e, self.values) for e in self.reducer.init]
            values = self.reducer.combine(starts, values)
        stores = [BufferStore(b, v, i) for b, v, i in zip(self.reducer.targets, values, indices)]
        first = [EQ(f.loop_var, f.min) for f in self.threads]
        parts: list[Stmt] = []
        for private, who in ((True, []), (False, first)):
            mine = [s for s in stores if is_private(s.buffer.scope) == private]
            ones = [*self.guards, *who]
            if mine:
                parts.append(IfThenElse(all_of(ones), seq(mine)) if ones else seq(mine))
        return seq(parts)


_UINT32 = const(0, "uint32").dtype


def _scope(reductions: list[_Reduction], body: Stmt) -> Stmt:
    """``body`` in a block with what those of ``reductions`` allocate, their partial results and their results."""
    own = tuple(b for r in reductions for b in (*r.block.alloc_buffers, *r.partial, *r.result))
    block = with_regions(Block((), (), (), f"{reductions[0].block.name}_cross_thread", body, None, own))
    return BlockRealize((), TRUE, block)


def _reduced(realize: BlockRealize) -> list[Expr]:
    return [e for v, e in zip(realize.block.iter_vars, realize.iter_values) if v.iter_type == "reduce"]


def _serial(realize: BlockRealize, loops: list[For]) -> list[For]:
    """The serial loops of each thread's partial reduction."""
    return [f for f in _steps(realize, loops) if not f.thread]


def _steps(realize: BlockRealize, loops: list[For]) -> list[For]:
    """The loops that step a reduction; one of a single iteration does not."""
    reduced = _reduced(realize)
    return [f for f in loops if not is_const(f.extent, 1) and any(uses_var(e, f.loop_var) for e in reduced)]


class _Lowering:
    def __init__(self, func: PrimFunc):
        self.func, self.name = func, func.name
        self.updates: dict[BlockRealize, Stmt] = {}  # of reductions whose loops hold other statements too

    def visit(self, s: Any, loops: list[For]) -> Any:
        if isinstance(s, For):
            made = self.nest(s, loops)
            if made is not None:
                return made
            body = self.visit(s.body, [*loops, s])
            return s.updated(body=body)
        if isinstance(s, BlockRealize):
            if s in self.updates:
                return self.updates[s]
            threads = self.crossing(s, loops)
            if threads and not _serial(s, loops):
                self.refuse_readers(s, threads[0])
                return _Reduction(self.name, s, loops, [], threads).lowered()
            block = s.block
            inner = self.visit(block.body, loops if not block.iter_vars else [])
            if inner is block.body:
                return s
            made = block.replace(body=inner)
            return s.replace(block=made if block.iter_vars or not (block.reads or block.writes) else with_regions(made))
        if isinstance(s, Stmt):
            return s.map_statements(lambda c: self.visit(c, loops))
        return s

    def nest(self, s: For, loops: list[For]) -> Stmt | None:
        """``s`` with the cross-thread reductions lowered whose outermost serial reduction loop it is; None if there are
        none."""
        found: list[tuple[_Reduction, list[For], bool]] = []
        for realize, path, above in _blocks(s, [*loops], []):
            threads = self.crossing(realize, path)
            serial = _serial(realize, path)
            if not threads or not serial or serial[0] is not s:
                continue
            self.refuse_mixed(realize, serial)
            self.refuse_readers(realize, next(f for f in path if f is s or f in threads))
            nest = path[len(loops) :]
            alone = all(outer.body is inner for outer, inner in zip(nest, [*nest[1:], realize]))
            if not alone:
                self.refuse_place(realize, nest, loops, above)
            found.append((_Reduction(self.name, realize, path, nest, threads), nest, alone))
        if not found:
            return None
        if found[0][2]:
            return found[0][0].lowered()
        for r, _, _ in found:
            self.updates[r.realize] = r.update()
        reductions = [r for r, _, _ in found]
        inner = s.replace(body=self.visit(s.body, [*loops, s]))
        starts = [r.start(r.bound) for r in reductions]
        return _scope(reductions, seq([*starts, inner, *(r.finish(r.bound) for r in reductions)]))

    def crossing(self, realize: BlockRealize, loops: list[For]) -> list[For]:
        """Thread loops around a block over which it reduces. Threads that cannot share its reduction each run their own
        iterations, if these are independent."""
        found = [f for f in _steps(realize, loops) if is_thread_axis(f.thread)]
        if not found or threads_can_share(realize.block):
            return found
        from ..analysis.dependence.loop_questions import check_parallel

        one = with_one_memory(self.func)
        return [
            f
            for f, g in zip(found, same_nodes(self.func, one, found))
            if not check_parallel(one, g, THREAD_BINDING).is_proved
        ]

    # ------------------------------------------------------------ what cannot be shared

    def refuse_mixed(self, realize: BlockRealize, serial: list[For]) -> None:
        elements = [e for v, e in zip(realize.block.iter_vars, realize.iter_values) if v.iter_type != "reduce"]
        for f in serial:
            if any(uses_var(e, f.loop_var) for e in elements):
                raise BuildError(
                    f"{self.name}: block `{realize.block.name}` reduces across threads, but loop `{f.loop_var.name}` "
                    "indexes both the result and the reduction; split it so that each loop does one"
                )

    def refuse_place(self, realize: BlockRealize, nest: list[For], loops: list[For], above: list[Any]) -> None:
        """Refuse a reduction that shares its loops with other statements and is conditional, or whose loops contain all
        of the kernel's threads."""
        asked = f"{self.name}: block `{realize.block.name}` reduces across threads, but "
        for s in above:
            if not isinstance(s, (For, SeqStmt)) and not (isinstance(s, BlockRealize) and is_const(s.predicate, 1)):
                raise BuildError(
                    f"{asked}`{short_text(s)}` inside its loop `{nest[0].loop_var.name}` decides whether it does; make "
                    "that the block's predicate, or fission the loop"
                )
        if any(f.thread for f in nest) and not any(is_thread_loop(f) for f in loops):
            raise BuildError(
                f"{asked}loop `{nest[0].loop_var.name}`, which holds other statements too, is not in a kernel: all "
                "thread loops are inside it; bind a loop around it to blockIdx.x (of one block, if it has to be), or "
                "fission it"
            )

    def refuse_readers(self, realize: BlockRealize, outermost: For) -> None:
        """Refuse another use of the result before the all-reduce, which is after ``outermost``."""
        results = memory_of(shared_results(realize.block))
        stack: list[Any] = [outermost.body]
        while stack:
            item = stack.pop()
            if item is realize:
                continue
            if isinstance(item, (BufferLoad, BufferStore)) and shares_memory(item, results):
                raise BuildError(
                    f"{self.name}: block `{realize.block.name}` reduces across threads in loop "
                    f"`{outermost.loop_var.name}`, but `{short_text(item)}` in that loop uses "
                    f"`{item.buffer.name}` before all threads' parts are combined, which is after the loop; fission "
                    "the loop, or move that statement out of it"
                )
            if isinstance(item, Node):
                stack.extend(item.children())


def _blocks(s: Any, loops: list[For], above: list[Any]) -> Any:
    """Blocks with iterators under ``s``, the loops around each, and all statements around it from ``s`` on."""
    if isinstance(s, BlockRealize) and s.block.iter_vars:
        yield s, loops, above
    elif isinstance(s, BlockRealize):
        yield from _blocks(s.block.body, loops, [*above, s])
    elif isinstance(s, For):
        yield from _blocks(s.body, [*loops, s], [*above, s])
    elif isinstance(s, Stmt):
        for child in s.children():
            if isinstance(child, Stmt):
                yield from _blocks(child, loops, [*above, s])


@func_pass
def lower_cross_thread_reduction(func: PrimFunc) -> PrimFunc:
    """A block that reduces over a loop bound to ``threadIdx`` becomes partial results and an all-reduce.

    Each thread reduces its own iterations into a local buffer, ``tvm_thread_allreduce`` combines them after the
    outermost serial reduction loop, and each result is stored: by all threads if its memory is local, otherwise by the
    first participating one. Other statements in these loops, such as loads of a shared tile, and other reductions, keep
    their places. Works for any reducer of one or several values; a guard masks iterations only. Raises ``BuildError``
    if the block does not combine an old with a new value, if the result is used before it is complete, and if a
    condition decides whether the block runs.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((32,), "float32"), B: T.Buffer((1,), "float32")):
    ...     for k in T.thread_binding(32, thread="threadIdx.x"):
    ...         with T.block("B"):
    ...             vk = T.axis.reduce(32, k)
    ...             with T.init():
    ...                 B[0] = 0.0
    ...             B[0] = B[0] + A[vk]
    ... ''')
    >>> tir.transform.lower_cross_thread_reduction(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        for k in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B_cross_thread"):
                T.reads(A[k])
                T.writes(B[0])
                B_partial = T.alloc_buffer((1,), "float32", scope="local")
                B_reduced = T.alloc_buffer((1,), "float32", scope="local")
                B_partial[0] = T.float32(0)
                B_partial[0] = B_partial[0] + A[k]
                with T.attr(T.comm_reducer(lambda x0, y0: x0 + y0, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
                    T.tvm_thread_allreduce(T.uint32(1), B_partial[0], True, B_reduced[0], k)
                if k == 0:
                    B[0] = B_reduced[0]
    """
    return func.with_body(flat(_Lowering(func).visit(func.body, [])))
