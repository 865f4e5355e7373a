"""All-reduce among threads: shuffles within a warp, shared memory between warps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.reduction_forms import combine
from ..buffer import Buffer, decl_buffer
from ..dtype import DType
from ..errors import BuildError
from ..expr import EQ, LT, BufferLoad, CommReducer, Expr, Select, Var, all_of, const, constant, is_const, min_
from ..function import PrimFunc
from ..launches import is_launch
from ..levels import is_thread_axis
from ..op import call
from ..script.printer import short_text
from ..stmt import AttrStmt, BufferStore, Evaluate, For, IfThenElse, LetStmt, Stmt, allocated, at_once, in_lets, seq
from ..visit import walk
from .passes import func_pass
from .thread_axes import REDUCE_SCOPE, WARP, Deciders, flat, warp_mask

_UINT32 = DType("uint32")


class _Group:
    """The threads that reduce together: ``rank`` among them, ``size``; ``group`` of ``groups`` such sets. ``alone``:
    threads of other groups may not reach this point."""

    def __init__(self, name: str, launches: dict[str, tuple[Var, Expr]], threads: Sequence[Any], alone: bool):
        axes = []
        for tag, (v, extent) in sorted(launches.items()):
            n = constant(extent)
            if n is None:
                raise BuildError(
                    f"{name}: an all-reduce in a block whose {tag} (`{v.name}`) has the extent `{extent!r}`: how threads "
                    "combine their values depends on their number; split the loop by a constant and bind the inner loop"
                )
            if n > 1:
                axes.append((v, n))
        wanted = {t for t in threads if not is_const(t)}  # a constant is the index of an axis of one thread
        unknown = [t for t in wanted if t not in {v for v, _ in launches.values()}]
        if unknown:
            raise BuildError(f"{name}: an all-reduce over `{short_text(unknown[0])}`, which is no thread index here")
        self.alone = alone
        self.rank, self.size = _linear([(v, n) for v, n in axes if v in wanted])
        self.group, self.groups = _linear([(v, n) for v, n in axes if v not in wanted])
        # neighbours in the block's order of threads, which is the order of lanes
        first = [v in wanted for v, _ in axes]
        self.contiguous = first == sorted(first, reverse=True)

    def mask(self) -> Expr:
        """The lanes of a thread's warp that reach this point with it."""
        count = self.size * self.groups
        if self.alone and WARP % self.size == 0 and self.size < count:
            one = const(2**self.size - 1, "uint32")
            lane = self.group * self.size % WARP
            return one if self.size == WARP else call("shift_left", one, lane.astype("uint32"), dtype="uint32")
        return warp_mask(self.rank + self.group * self.size if self.size < count else self.rank, count)


def _linear(axes: list[tuple[Var, int]]) -> tuple[Expr, int]:
    """The row-major number of a point, the first axis fastest, and the number of points."""
    total: Expr = const(0)
    step = 1
    for v, n in axes:
        term = v if step == 1 else v * step
        total = term if step == 1 else total + term
        step *= n
    return total, step


def _power(n: int) -> int:
    """The least power of two that is not below ``n``."""
    return 1 << (n - 1).bit_length()


class _AllReduce:
    def __init__(self, group: _Group, comm: CommReducer, sources: Any, results: Any):
        self.group, self.comm = group, comm
        self.sources: list[Expr] = list(sources)
        self.results: list[BufferLoad] = list(results)
        self.names = [f"v_{k}" for k in range(len(self.results))]
        self.staging: list[Buffer] = []

    def lowered(self) -> Stmt:
        g = self.group
        if g.size == 1:
            return self.assign(self.sources)
        single = g.size <= WARP and (g.groups == 1 or WARP % g.size == 0)
        whole_warps = g.size % WARP == 0 or g.groups == 1
        if g.contiguous and single:
            return self.masked(lambda mask: [self.assign(self.sources), *self.warp(mask, g.rank, g.size, g.size)])
        if g.contiguous and g.size > WARP and whole_warps:
            return self.staged(self.masked(self.warps))
        return self.staged(self.tree())

    # ------------------------------------------------------------ parts

    def assign(self, values: Sequence[Expr]) -> Stmt:
        """Assign ``values`` to the results; no value reads another result."""
        return seq([BufferStore(r.buffer, v, r.indices) for r, v in zip(self.results, values)])

    def update(self, values: Sequence[Expr]) -> Stmt:
        """Assign ``values`` to the results, after evaluating all of them."""
        return at_once([BufferStore(r.buffer, v, r.indices) for r, v in zip(self.results, values)], self.names)

    def masked(self, body: Any) -> Stmt:
        """``body(mask)`` for the participating lanes."""
        mask = self.group.mask()
        if is_const(mask):
            return seq(body(mask))
        name = Var("mask", _UINT32)
        return LetStmt(name, mask, seq(body(name)))

    def warp(self, mask: Expr, lane: Expr, count: int, present: int, spread: int = 0) -> list[Stmt]:
        """Reduces the values of ``count`` consecutive lanes in all of ``spread``; ``lane`` of ``present`` exist."""
        width = _power(min(count, WARP))
        parts: list[Stmt] = []
        offset = 1
        while offset < width:  # neighbours first: values are combined in the order of lanes
            if present % width == 0:
                op, by, condition = "tvm_warp_shuffle_down", const(offset), None
            else:  # the last lanes read one that is there, and leave it
                op, condition = "tvm_warp_shuffle", LT(lane + offset, const(present))
                by = min_(lane + offset, present - 1) % WARP
            parts.append(self.taken([self.shuffle(op, mask, r, by, width) for r in self.results], condition))
            offset *= 2
        first = [self.shuffle("tvm_warp_shuffle", mask, r, 0, spread or width) for r in self.results]
        return [*parts, self.assign(first)]

    @staticmethod
    def shuffle(op: str, mask: Expr, value: Expr, by: Any, width: int) -> Expr:
        return call(op, mask, value, by, width, WARP, dtype=value.dtype)

    def taken(self, others: list[Expr], condition: Expr | None) -> Stmt:
        """The results combined with values from other lanes (read by all of them), under ``condition``."""
        names = [Var(f"other_{k}" if k else "other", o.dtype) for k, o in enumerate(others)]
        body = self.update(combine(self.comm, self.results, names))
        if condition is not None:
            body = IfThenElse(condition, body)
        return in_lets(list(zip(names, others)), body)

    def warps(self, mask: Expr) -> list[Stmt]:
        """Each warp reduces by shuffles; then every warp reduces the warps' results."""
        g = self.group
        count = -(-g.size // WARP)
        lane, warp = g.rank % WARP, g.rank // WARP
        base = g.group * count
        parts = [self.assign(self.sources)]
        if g.size % WARP == 0:
            parts += self.warp(mask, lane, WARP, WARP)[:-1]
        else:
            parts += self.warp(mask, g.rank, WARP, g.size)[:-1]
        self.stage(count * g.groups)
        put = [BufferStore(b, r, (base + warp,)) for b, r in zip(self.staging, self.results)]
        parts.append(IfThenElse(EQ(lane, const(0)), seq(put)))
        if g.size % WARP == 0:
            got = [BufferLoad(b, (base + lane,)) for b in self.staging]
            parts.append(self.assign(self.comm.identity))
            if count == WARP:
                parts[-1] = self.assign(got)
            else:
                parts.append(IfThenElse(LT(lane, const(count)), self.assign(got)))
            return [*parts, *self.warp(mask, lane, count, _power(count), WARP)]
        parts.append(self.assign([BufferLoad(b, (base,)) for b in self.staging]))
        w = Var("w")
        more = [BufferLoad(b, (base + w + 1,)) for b in self.staging]
        parts.append(For(w, const(0), const(count - 1), "serial", self.update(combine(self.comm, self.results, more))))
        return parts

    def tree(self) -> Stmt:
        """A tree reduction in shared memory; consecutive threads use consecutive words."""
        g = self.group
        self.stage(g.size * g.groups)

        def at(rank: Any) -> tuple[Expr, ...]:
            return (g.group if is_const(rank, 0) else rank * g.groups + g.group if g.groups > 1 else rank,)

        parts: list[Stmt] = [seq([BufferStore(b, s, at(g.rank)) for b, s in zip(self.staging, self.sources)])]
        ordered = any(isinstance(n, Select) for r in self.comm.result for n in walk(r))
        halves = [1 << i for i in range((_power(g.size) - 1).bit_length())]
        for offset in halves if ordered else reversed(halves):
            mine = [BufferLoad(b, at(g.rank)) for b in self.staging]
            theirs = [BufferLoad(b, at(g.rank + offset)) for b in self.staging]
            values = combine(self.comm, mine, theirs)
            body = at_once([BufferStore(b, v, at(g.rank)) for b, v in zip(self.staging, values)], self.names)
            if ordered:  # what is chosen among equals depends on the order: neighbours first
                guard = [EQ(g.rank % (2 * offset), const(0)), LT(g.rank + offset, const(g.size))]
            else:
                guard = [LT(g.rank, const(min(offset, g.size - offset)))]
            parts.append(IfThenElse(all_of(guard), body))
        parts.append(self.assign([BufferLoad(b, at(const(0))) for b in self.staging]))
        return seq(parts)

    def stage(self, count: int) -> None:
        self.staging = [decl_buffer((count,), r.dtype, f"red_{r.buffer.name}", scope="shared") for r in self.results]

    def staged(self, body: Stmt) -> Stmt:
        for b in reversed(self.staging):
            body = allocated(b, body)
        return body


class _Lowering:
    def __init__(self, name: str):
        self.name = name
        self.launches: dict[str, tuple[Var, Expr]] = {}
        self.deciders = Deciders()

    def visit(self, s: Stmt) -> Stmt:
        if isinstance(s, AttrStmt) and s.attr_key == REDUCE_SCOPE:
            return self.reduce(s)
        tag = s.node.thread_tag if isinstance(s, AttrStmt) and is_launch(s, is_thread_axis) else ""
        if tag:
            self.launches[tag] = (s.node.var, s.value)  # type: ignore[attr-defined]
        self.deciders.enter(s)
        made = s.map_statements(self.visit)
        self.deciders.leave(s)
        self.launches.pop(tag, None)
        return made

    def reduce(self, s: AttrStmt) -> Stmt:
        body = s.body
        if not (isinstance(body, Evaluate) and getattr(body.value, "op", "") == "tvm_thread_allreduce"):
            raise BuildError(f"{self.name}: `reduce_scope` is around something that is not tvm_thread_allreduce")
        args: Any = body.value.args  # type: ignore[attr-defined]
        count = int(args[0])
        sources, condition = list(args[1 : count + 1]), args[count + 1]
        results, threads = args[count + 2 : 2 * count + 2], args[2 * count + 2 :]
        if not is_const(condition, 1):
            sources = [call("if_then_else", condition, x, i, dtype=x.dtype) for x, i in zip(sources, s.node.identity)]
        mine = {t for t in threads if isinstance(t, Var)}
        condition = self.deciders.varies(mine)
        if condition is not None:
            raise BuildError(
                f"{self.name}: all-reduce under the divergent condition `{condition!r}`; make it the predicate of the block, "
                "which leaves out values and not threads"
            )
        alone = self.deciders.varies({v for v, _ in self.launches.values()}) is not None
        group = _Group(self.name, self.launches, threads, alone)
        return _AllReduce(group, s.node, sources, results).lowered()


@func_pass
def lower_thread_allreduce(func: PrimFunc) -> PrimFunc:
    """``tvm_thread_allreduce`` becomes shuffles and shared memory; all participating threads get the result.

    Up to 32 consecutive threads shuffle. Several warps shuffle, and exchange one value each through shared memory.
    Non-consecutive threads (``threadIdx.y``) reduce in a tree in shared memory. The mask of a shuffle has the existing
    lanes: those of a block of constant size, or of the group if other groups may not participate. Barriers are inserted
    later (``thread_storage_sync``). Raises ``BuildError`` for an unknown number of threads, and for a condition that
    diverges between those that reduce together.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 4) as tx:
    ...         total = T.decl_buffer((1,), "float32", scope="local")
    ...         with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
    ...             T.tvm_thread_allreduce(T.uint32(1), A[tx], True, total[0], tx)
    ...         B[tx] = total[0]
    ... ''')
    >>> tir.transform.lower_thread_allreduce(f).body
    tx = T.launch_thread("threadIdx.x", 4)
    total = T.allocate([1], "float32", "local")
    total_1 = T.decl_buffer((1,), "float32", data=total)
    total_1[0] = A[tx]
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(15), total_1[0], 1, 4, 32, dtype="float32"), T.float32) as other:
        total_1[0] = total_1[0] + other
    with T.LetStmt(T.tvm_warp_shuffle_down(T.uint32(15), total_1[0], 2, 4, 32, dtype="float32"), T.float32) as other:
        total_1[0] = total_1[0] + other
    total_1[0] = T.tvm_warp_shuffle(T.uint32(15), total_1[0], 0, 4, 32, dtype="float32")
    B[tx] = total_1[0]
    """
    return func.with_body(flat(_Lowering(func.name).visit(func.body)))
