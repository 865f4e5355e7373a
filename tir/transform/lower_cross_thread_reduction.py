"""A reduction whose loop is bound to threads: each thread's part, then one value from all of them."""

from __future__ import annotations

from typing import Any

from ..analysis.access import block_access_region
from ..analysis.reducers import BlockReducer, NotAReducer
from ..arith import Analyzer
from ..buffer import Buffer, Range, decl_buffer
from ..errors import BuildError
from ..expr import EQ, TRUE, BufferLoad, Expr, IntImm, Var, all_of, cast, const, is_const
from ..function import PrimFunc
from ..op import call
from ..stmt import AttrStmt, Block, BlockRealize, BufferStore, Evaluate, For, IfThenElse, Stmt, seq
from ..visit import rewrite, substitute, uses_var, walk
from .passes import func_pass
from .threads import flat, is_private


def _crossing(realize: BlockRealize, loops: list[For]) -> list[For]:
    """Thread loops around a block over which it reduces."""
    reduced = [e for v, e in zip(realize.block.iter_vars, realize.iter_values) if v.iter_type == "reduce"]
    return [f for f in loops if f.thread.startswith("threadIdx") and any(uses_var(e, f.loop_var) for e in reduced)]


class _Reduction:
    """One block shared among threads; ``nest`` are the loops from its outermost serial reduction loop inwards."""

    def __init__(self, name: str, realize: BlockRealize, loops: list[For], nest: list[For], threads: list[For]):
        block = realize.block
        self.name, self.realize, self.block, self.loops = name, realize, block, loops
        self.threads = threads
        try:
            self.reducer = BlockReducer(block)
        except NotAReducer as error:
            raise BuildError(f"{error}: threads cannot share its reduction; bind another loop") from None
        self.serial = [f for f in nest if not f.thread]
        self.bound = [f for f in nest if f.thread]
        values = {v.var: cast(v.var.dtype, e) for v, e in zip(block.iter_vars, realize.iter_values)}
        reduced = [e for v, e in zip(block.iter_vars, realize.iter_values) if v.iter_type == "reduce"]
        self.values = values
        around = {f.loop_var for f in loops}
        self.reducing = {n for e in reduced for n in walk(e) if isinstance(n, Var) and n in around}
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

    def _over(self, loops: list[For], body: Stmt) -> Stmt:
        """``body`` in fresh copies of ``loops``."""
        for f in reversed(loops):
            var = Var(f.loop_var.name, f.loop_var.dtype)
            body = f.replace(loop_var=var, body=substitute(body, {f.loop_var: var}))
        return body

    def lowered(self) -> Stmt:
        start = [BufferStore(p, i, self.index) for p, i in zip(self.partial, self.reducer.comm.identity)]
        body = seq(
            [
                self._over(self.spread, seq(start)),
                self._update(),
                self._over(self.spread, self._all_reduce()),
                self._over(self.spread, self._write()),
            ]
        )
        block = Block((), (), (), f"{self.block.name}_cross_thread", body, None, (*self.partial, *self.result))
        reads, writes = block_access_region(block)
        made: Stmt = BlockRealize((), TRUE, block.replace(reads=tuple(reads), writes=tuple(writes)))
        for f in reversed(self.bound):
            made = f.replace(body=made)
        return made

    def _update(self) -> Stmt:
        """Each thread reduces its own iterations."""
        part = dict(zip(self.reducer.targets, self.partial))

        def redirect(item: Any) -> Any:
            if isinstance(item, (BufferLoad, BufferStore)) and item.buffer in part:
                return item.replace(buffer=part[item.buffer], indices=self.index)
            return None

        # let-bound new values are read before any of the results is stored
        body = substitute(rewrite(self.block.body, redirect), self.values)
        if not is_const(self.realize.predicate, 1):
            body = IfThenElse(self.realize.predicate, body)
        for f in reversed(self.serial):
            body = f.replace(body=body)
        return body

    def _all_reduce(self) -> Stmt:
        sources = [BufferLoad(p, self.index) for p in self.partial]
        results = [BufferLoad(r, self.index) for r in self.result]
        threads = [f.loop_var for f in self.threads]
        value = call("tvm_thread_allreduce", IntImm(len(sources), _UINT32), *sources, TRUE, *results, *threads)
        return AttrStmt(self.reducer.comm, "reduce_scope", const(0, "handle"), Evaluate(value))

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
        # the init, and so the result, is there where the guard holds at the first step of the reduction
        first = {f.loop_var: f.min for f in self.loops if f.loop_var in self.reducing}
        analyzer = Analyzer({f.loop_var: Range(f.min, f.extent) for f in self.loops})
        guard = analyzer.simplify(substitute(self.realize.predicate, first))
        ones = [] if is_const(guard, 1) else [guard]
        if not all(is_private(b.scope) for b in self.reducer.targets):
            ones += [EQ(f.loop_var, f.min) for f in self.threads]
        body = seq(stores)
        return IfThenElse(all_of(ones), body) if ones else body


_UINT32 = const(0, "uint32").dtype


class _Lowering:
    def __init__(self, name: str):
        self.name = name

    def visit(self, s: Any, loops: list[For]) -> Any:
        if isinstance(s, For):
            made = self.nest(s, loops)
            if made is not None:
                return made
            body = self.visit(s.body, [*loops, s])
            return s if body is s.body else s.replace(body=body)
        if isinstance(s, BlockRealize):
            threads = _crossing(s, loops)
            if threads and not self._serial(s, loops):
                return _Reduction(self.name, s, loops, [], threads).lowered()
            inner = self.visit(s.block.body, loops if not s.block.iter_vars else [])
            return s if inner is s.block.body else s.replace(block=s.block.replace(body=inner))
        if isinstance(s, Stmt):
            return s.map_children(lambda c: self.visit(c, loops) if isinstance(c, Stmt) else c)
        return s

    @staticmethod
    def _serial(realize: BlockRealize, loops: list[For]) -> list[For]:
        reduced = [e for v, e in zip(realize.block.iter_vars, realize.iter_values) if v.iter_type == "reduce"]
        return [f for f in loops if not f.thread and any(uses_var(e, f.loop_var) for e in reduced)]

    def nest(self, s: For, loops: list[For]) -> Stmt | None:
        """The reduction across threads whose outermost serial reduction loop is ``s``, lowered."""
        for realize, path in _blocks(s, [*loops]):
            threads = _crossing(realize, path)
            serial = self._serial(realize, path)
            if not threads or not serial or serial[0] is not s:
                continue
            nest = path[len(loops) :]
            for f in serial:
                if any(uses_var(e, f.loop_var) for v, e in zip(realize.block.iter_vars, realize.iter_values)
                       if v.iter_type != "reduce"):  # fmt: skip
                    raise BuildError(
                        f"{self.name}: block `{realize.block.name}` reduces across threads, but loop `{f.loop_var.name}` "
                        "moves both which element it reduces to and what it reduces; make it a loop for each"
                    )
            for outer, inner in zip(nest, [*nest[1:], realize]):
                if outer.body is not inner:
                    raise BuildError(
                        f"{self.name}: block `{realize.block.name}` reduces across threads, but loop "
                        f"`{outer.loop_var.name}` around its reduction holds other statements too; fission that loop, "
                        "or bind the reduction loop further in"
                    )
            return _Reduction(self.name, realize, path, nest, threads).lowered()
        return None


def _blocks(s: Any, loops: list[For]) -> Any:
    """Blocks with iterators under ``s``, and the loops around each."""
    if isinstance(s, For):
        yield from _blocks(s.body, [*loops, s])
    elif isinstance(s, BlockRealize):
        if s.block.iter_vars:
            yield s, loops
        else:
            yield from _blocks(s.block.body, loops)
    elif isinstance(s, Stmt):
        for child in s.children():
            if isinstance(child, Stmt):
                yield from _blocks(child, loops)


@func_pass
def lower_cross_thread_reduction(func: PrimFunc) -> PrimFunc:
    """A block that reduces over a loop bound to ``threadIdx`` becomes partial results and an all-reduce.

    Each thread reduces its own iterations into a local buffer, ``tvm_thread_allreduce`` combines them, and the result
    is stored: by all threads where its memory is local, else by the first of those that took part. Any reducer of one
    or several values; a guard only leaves iterations out. Raises ``BuildError`` where the block's statements are no
    combination of an old and a new value.
    """
    return func.with_body(flat(_Lowering(func.name).visit(func.body, [])))
