"""Lowers memory of a warp to registers of its lanes."""

from __future__ import annotations

from typing import Any

from ..aliases import shares_memory, sharing
from ..arith import Analyzer
from ..arith.linear import linear
from ..buffer import Buffer
from ..errors import BuildError
from ..expr import BufferLoad, Call, Expr, IntImm, Ramp, Var, const, constant, is_const, max_
from ..function import PrimFunc
from ..launches import is_launch, with_kernels
from ..levels import LANES, is_thread_axis
from ..op import call, offsets_of
from ..script.printer import short_text
from ..stmt import Allocate, BufferStore, DeclBuffer, Stmt, While, in_lets
from ..visit import rewrite, substitute, uses_var, walk
from .passes import func_pass
from .thread_axes import WARP, Deciders, warp_mask


class _Lowering:
    def __init__(self, name: str):
        self.name = name
        self.lane: Var | None = None
        self.lanes = WARP
        self.threads: list[tuple[Var, int]] = []  # in the order of lanes
        self.analyzer = Analyzer()
        self.deciders = Deciders()
        self.width: dict[Var, int] = {}  # neighbouring elements that one lane holds
        self.new: dict[Var, Var] = {}
        self.views: dict[Buffer, Buffer] = {}

    # ------------------------------------------------------------ what a lane holds

    def survey(self, root: Any) -> None:
        """The elements a lane holds, from the distance between the elements that consecutive lanes write."""
        nodes = list(walk(root))
        loads = [n for n in nodes if isinstance(n, BufferLoad)]
        for n in (n for n in nodes if not isinstance(n, BufferLoad)):
            for pointer, index in self._places(n):
                step = self._step(index)
                if step and self.width.setdefault(pointer, step) != step:
                    raise BuildError(
                        f"{self.name}: lanes of a warp are {self.width[pointer]} elements of `{pointer.name}` apart in "
                        f"one access and {step} in another"
                    )
        for n in loads:
            for pointer, index in self._places(n):
                if pointer not in self.width:
                    self.width[pointer] = self._step(index) or 1

    def _places(self, n: Any) -> list[tuple[Var, Expr]]:
        if isinstance(n, (BufferLoad, BufferStore)) and n.buffer.data.scope == "warp" and len(n.indices) == 1:
            index = n.indices[0].base if isinstance(n.indices[0], Ramp) else n.indices[0]
            return [(n.buffer.data, index)]
        if isinstance(n, Call):
            pairs = [(n.args[at], n.args[offset]) for at, offset in offsets_of(n)]
            return [(p, e) for p, e in pairs if isinstance(p, Var) and p.scope == "warp"]
        return []

    def _step(self, index: Expr) -> int:
        """The distance of the index from one lane to the next."""
        if self.lane is None or not uses_var(index, self.lane):
            return 0
        moved = linear(substitute(index, {self.lane: self.lane + 1})).minus(linear(index))
        step = self.analyzer.simplify(moved.build(index.dtype))
        if not isinstance(step, IntImm) or step.value <= 0:
            raise BuildError(f"{self.name}: `{index!r}` does not move evenly from lane to lane of a warp")
        return step.value

    def own(self, pointer: Var, index: Any, what: Any) -> Any:
        """The index into a lane's own registers."""
        if isinstance(index, Ramp):
            return index.replace(base=self.own(pointer, index.base, what))
        found = self._own(pointer, index, for_all=isinstance(what, Call))
        if found is None:
            raise BuildError(
                f"{self.name}: `{short_text(what)}` touches registers of another lane at `{index!r}` of "
                f"`{pointer.name}`; a lane writes its own, and loads single elements of others; go through shared memory"
            )
        return found

    def _own(self, pointer: Var, index: Expr, for_all: bool = False) -> Expr | None:
        """The index into a lane's own registers; None for another's. ``for_all``: the index of an access of the entire
        warp may be the first lane's."""
        width = self.width.get(pointer)
        if width is None or self.lane is None:
            raise BuildError(
                f"{self.name}: no access of `{pointer.name}` in warp memory tells which lane holds what; index it by "
                f"{LANES}"
            )
        start = substitute(index, {self.lane: const(0, self.lane.dtype)})
        inner = self.analyzer.simplify(start % (self.lanes * width))
        if not self.analyzer.can_prove(inner < width) or not (for_all or self._step_is(index, width)):
            return None
        return self.analyzer.simplify(start // (self.lanes * width) * width + inner)

    def _step_is(self, index: Expr, width: int) -> bool:
        assert self.lane is not None
        if not uses_var(index, self.lane):
            return self.lanes == 1
        moved = linear(substitute(index, {self.lane: self.lane + 1})).minus(linear(index))
        return is_const(self.analyzer.simplify(moved.build(index.dtype)), width)

    # ------------------------------------------------------------ what other lanes hold

    def of_another(self, load: BufferLoad) -> Expr:
        """A shuffle for an element that may belong to another lane."""
        index: Any = load.indices[0]
        pointer = load.buffer.data
        width = self.width[pointer]
        asked = f"{self.name}: `{short_text(load)}` loads what another lane of the warp holds, "
        if isinstance(index, Ramp) or load.dtype.lanes > 1:
            raise BuildError(f"{asked}several elements at once; load them one by one, or go through shared memory")
        size = load.buffer.shape[0]
        self._share(size, pointer)
        if not self.analyzer.can_prove(index < size) or not self.analyzer.can_prove(index >= 0):
            # a lane whose condition is false asks for anything; where there are no elements, every one does
            index = index % max_(size, const(1, size.dtype))
        local = self.analyzer.simplify(index // (self.lanes * width) * width + index % width)
        assert self.lane is not None
        if self.deciders.differs(local, {self.lane}):
            raise BuildError(
                f"{asked}and `{local!r}`, which of its elements that is, may differ between lanes: a shuffle has all "
                "lanes give one element; go through shared memory"
            )
        condition = self.deciders.varies({v for v, _ in self.threads} if self.lanes < WARP else {self.lane})
        if condition is not None:
            raise BuildError(
                f"{asked}under the divergent condition `{condition!r}`: every lane must reach a shuffle; make the condition "
                "part of the value (T.if_then_else, T.Select), or go through shared memory"
            )
        lane = self.analyzer.simplify(index // width % self.lanes)
        value = BufferLoad(self.view(load.buffer), (local,))
        return call("tvm_warp_shuffle", self._mask(), value, lane, self.lanes, WARP, dtype=load.dtype)

    def _mask(self) -> Expr:
        place: Expr = const(0)
        count = 1
        for v, n in self.threads:
            place, count = place + v * count, count * n
        return warp_mask(place, count)

    # ------------------------------------------------------------ the rewriting

    def view(self, b: Buffer) -> Buffer:
        found = self.views.get(b)
        if found is None:
            shape = (self._share(b.shape[0], b.data),)
            found = self.views[b] = b.replace(data=self.new[b.data], scope="local", shape=shape)
        return found

    def _share(self, size: Expr, pointer: Var) -> Expr:
        count = constant(size)
        if count is None or count % self.lanes:
            raise BuildError(
                f"{self.name}: `{pointer.name}` has `{size!r}` elements in warp memory, which {self.lanes} lanes cannot "
                "share evenly"
            )
        width = self.width.get(pointer, 1)
        return const(-(-count // (self.lanes * width)) * width, size.dtype)

    def statement(self, s: Stmt) -> Stmt:
        """``s`` on registers; values of other lanes are fetched before it, by all lanes."""
        fetched: list[tuple[Var, Expr]] = []

        def part(c: Any) -> Any:
            if not isinstance(c, Stmt):
                return rewrite(c, lambda item: self.expression(item, fetched))
            self.deciders.enter(s)
            made = self.statement(c)
            self.deciders.leave(s)
            return made

        made = self.change(s.map_children(part))
        if fetched and isinstance(s, While):
            raise BuildError(f"{self.name}: `{short_text(s)}`: the condition of a loop loads what other lanes hold")
        return in_lets(fetched, made)

    def expression(self, item: Any, fetched: list[tuple[Var, Expr]]) -> Any:
        if isinstance(item, BufferLoad) and shares_memory(item, self.new):
            (index,) = item.indices
            base = index.base if isinstance(index, Ramp) else index
            own = self._own(item.buffer.data, base)
            if own is not None:
                place = own if index is base else index.replace(base=own)
                return item.replace(buffer=self.view(item.buffer), indices=(place,))
            fetched.append((Var(f"{item.buffer.name}_of_lane", item.dtype), self.of_another(item)))
            self.deciders.lets[fetched[-1][0]] = fetched[-1][1]
            return fetched[-1][0]
        return self._call(item) if isinstance(item, Call) else None

    def change(self, s: Any) -> Any:
        if isinstance(s, BufferStore) and shares_memory(s, self.new):
            (index,) = s.indices
            return s.replace(buffer=self.view(s.buffer), indices=(self.own(s.buffer.data, index, s),))
        if isinstance(s, DeclBuffer) and shares_memory(s, self.new):
            return s.replace(buffer=self.view(s.buffer))
        if isinstance(s, Allocate) and s.buffer_var in self.new:
            extents = tuple(self._share(e, s.buffer_var) for e in s.extents)
            return s.replace(buffer_var=self.new[s.buffer_var], extents=extents)
        return s

    def _call(self, c: Call) -> Call | None:
        args = list(c.args)
        for pointer, index in self._places(c):
            at = next(i for i, a in enumerate(args) if a is pointer and args[i + 1] is index)
            args[at], args[at + 1] = self.new[pointer], self.own(pointer, index, c)
        for a in args:
            if isinstance(a, Var) and a in self.new:
                raise BuildError(
                    f"{self.name}: `{c.op}` takes a pointer to `{a.name}`, which is distributed over a warp"
                )
        return c.replace(args=tuple(args)) if any(x is not y for x, y in zip(args, c.args)) else None


def _lower(name: str, kernel: Stmt) -> Stmt:
    pointers = [n.buffer_var for n in walk(kernel) if isinstance(n, Allocate) and n.buffer_var.scope == "warp"]
    if not pointers:
        return kernel
    declared = sharing((n.buffer for n in walk(kernel) if isinstance(n, DeclBuffer)), set(pointers))
    apart = next((b for b in declared if b.ndim > 1), None)
    if apart is not None:
        raise BuildError(f"{name}: `{apart.name}` in warp memory has axis separators; lanes share memory of one axis")
    lowering = _Lowering(name)
    lowering.analyzer.bind_under(kernel)
    launches = [n for n in walk(kernel) if is_launch(n) and is_thread_axis(n.node.thread_tag)]
    launched: dict[str, tuple[Any, Any]] = {n.node.thread_tag: (n.node.var, constant(n.value)) for n in launches}
    lowering.lane, lanes = launched.get(LANES, (None, 1))
    if lanes == 0:  # the kernel never runs: as for one lane
        lanes = 1
    whole = any(isinstance(n, Call) and lowering._places(n) for n in walk(kernel))  # operators of a whole warp
    if lanes is None or lanes > WARP or WARP % lanes or (whole and lanes != WARP):
        raise BuildError(
            f"{name}: warp memory needs {WARP} threads in threadIdx.x{'' if whole else ', or a power of two below'}; "
            f"there are {lanes or 'an unknown number'}"
        )
    if any(n is None for _, n in launched.values()):
        raise BuildError(f"{name}: warp memory needs blocks with a number of threads known here")
    lowering.lanes = lanes
    lowering.threads = [launched[tag] for tag in sorted(launched)]
    lowering.new = {p: Var(p.name, p.dtype, p.pointer_dtype, "local") for p in pointers}
    lowering.survey(kernel)
    return lowering.statement(kernel)


@func_pass
def lower_warp_memory(func: PrimFunc) -> PrimFunc:
    """Buffers of the scope ``warp`` become ``local`` ones of a part of their size for each lane.

    An index of such a buffer is, per group of lanes times w elements, lane times w plus one of the w elements that the
    lane holds; w is derived from the stores. A load of another lane's element becomes a shuffle. Expects flat buffers
    and 32 threads in ``threadIdx.x``, or a smaller power of two. Raises ``BuildError`` for a store to another lane's
    element, and for a load of one under divergent control flow, or with a data-dependent choice among its elements.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 32) as tx:
    ...         W = T.allocate([32], "float32", "warp")
    ...         W[tx] = A[tx]
    ...         B[tx] = W[31 - tx]
    ... ''')
    >>> tir.transform.lower_warp_memory(f).body
    tx = T.launch_thread("threadIdx.x", 32)
    W = T.allocate([1], "float32", "local")
    W[0] = A[tx]
    W_of_lane: T.float32 = T.tvm_warp_shuffle(T.uint32(4294967295), W[0], 31 - tx, 32, 32, dtype="float32")
    B[tx] = W_of_lane
    """
    return func.with_body(with_kernels(func.body, lambda kernel: _lower(func.name, kernel)))
