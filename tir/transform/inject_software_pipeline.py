"""Software pipelining: operands of an iteration are fetched while earlier iterations compute."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ..aliases import shares_memory, with_one_memory, with_own_memory
from ..annotations import ASYNC, ORDER, STAGE
from ..arith import Analyzer
from ..arith.linear import key, linear
from ..buffer import Buffer, BufferRegion, Range
from ..errors import BuildError
from ..expr import TRUE, BufferLoad, Expr, IntImm, Var, all_of, const, is_const
from ..function import PrimFunc
from ..levels import ends_with_launch, is_shared
from ..names import claimed, unique_name
from ..node import frozendict
from ..op import call
from ..stmt import AttrStmt, Block, BlockRealize, BufferStore, Evaluate, For, IfThenElse, SeqStmt, Stmt, seq
from ..visit import accesses, rewrite, statements, substitute, walk
from .passes import func_pass
from .thread_axes import flat


def _numbers(value: Any) -> list[int]:
    return [int(v) for v in (value if isinstance(value, (list, tuple)) else [value])]


class _Part:
    """A statement of the loop's body, its stage, its position in a step, and its accesses."""

    def __init__(self, number: int, stmt: Stmt, stage: int, order: int):
        self.number, self.stmt, self.stage, self.order = number, stmt, stage, order
        self.reads: dict[Buffer, list[Any]] = {}
        self.writes: dict[Buffer, list[Any]] = {}
        for n in walk(stmt):
            if isinstance(n, BufferLoad):
                self.reads.setdefault(n.buffer, []).append(n.indices)
            elif isinstance(n, BufferStore):
                self.writes.setdefault(n.buffer, []).append(n.indices)
            elif isinstance(n, Block):
                named = {a.buffer for a in accesses(n.body)}
                for regions, into in ((n.reads, self.reads), (n.writes, self.writes)):
                    for r in regions:
                        places = into.setdefault(r.buffer, [])
                        if (
                            r.buffer not in named
                        ):  # through a view or a pointer: distinct only if it is one element wide
                            places.append(tuple(x.min if is_const(x.extent, 1) else const(0) for x in r.region))
        self.name = next((n.name for n in walk(stmt) if isinstance(n, Block)), f"statement {number}")


class _Pipeline:
    def __init__(
        self,
        name: str,
        loop: For,
        names: set[str],
        outside: set[Buffer],
        cpu: bool,
        params: set[Buffer],
        inner: Callable[[Stmt], tuple[list[Stmt], list[Buffer]] | None],
    ):
        self.name, self.loop, self.names = name, loop, names
        self.cpu, self.params = cpu, params
        if loop.kind not in ("serial", "unrolled"):
            raise BuildError(
                f"{name}: loop `{loop.loop_var.name}` is {loop.kind} and has a software pipeline; its iterations run at "
                "once, so there is no next one to run ahead: pipeline a serial loop"
            )
        self.allocs: list[Buffer] = []
        stages = _numbers(loop.annotations[STAGE])
        if ORDER not in loop.annotations:
            raise BuildError(
                f"{name}: loop `{loop.loop_var.name}` has {STAGE} without {ORDER}; say in which order the statements of "
                f"a step run: {list(range(len(stages)))} is that of the text"
            )
        orders = _numbers(loop.annotations[ORDER])
        # a CPU copies synchronously: an asynchronous stage runs in place
        self.asynchronous = set() if cpu else set(_numbers(loop.annotations.get(ASYNC, [])))
        body: Any = loop.body
        while isinstance(body, BlockRealize) and not body.block.iter_vars and is_const(body.predicate, 1):
            if body.block.match_buffers:
                raise BuildError(
                    f"{name}: the software pipeline of loop `{loop.loop_var.name}` would take the statements of block "
                    f"`{body.block.name}` out of it, which has the view `{body.block.match_buffers[0].buffer.name}`; use the "
                    "buffer itself, or give each statement views of its own"
                )
            self.allocs += body.block.alloc_buffers
            body = body.block.body
        children: list[Stmt] = list(body.stmts) if isinstance(body, SeqStmt) else [body]
        if len(stages) != len(children):  # a pipeline inside counts as what is before, in and after its loop
            found = [inner(c) or ([c], []) for c in children]
            self.allocs += [b for _, own in found for b in own]
            children = [part for parts, _ in found for part in parts]
        if len(stages) != len(children) or sorted(orders) != list(range(len(children))):
            raise BuildError(
                f"{name}: loop `{loop.loop_var.name}` holds {len(children)} statements, but its software pipeline has "
                f"stages {stages} and orders {orders}; give each statement a stage, and a place 0 … in the order"
            )
        if min(stages) < 0:
            raise BuildError(f"{name}: loop `{loop.loop_var.name}` has the pipeline stages {stages}; the first is 0")
        self.parts = [_Part(n, s, stages[n], orders[n]) for n, s in enumerate(children)]
        self.steps = sorted(self.parts, key=lambda p: p.order)
        self.depth = max(stages)
        self.outside = outside
        self.passed_on: set[Buffer] = set()  # maybe, from one iteration to the next
        self.versions = self._versions()
        self._check_order()
        self.new = {b: self._expanded(b, v) for b, v in self.versions.items()}

    # ------------------------------------------------------------ what is legal

    def _versions(self) -> dict[Buffer, int]:
        """The number of live versions of each buffer; buffers of one version are omitted."""
        from ..analysis.dependence.initialization import is_privatizable

        found: dict[Buffer, int] = {}
        written = dict.fromkeys(b for p in self.parts for b in p.writes)
        for b in written:
            if b in self.params or not (ends_with_launch(b.scope) or self.cpu):
                continue
            writers = [p for p in self.parts if b in p.writes]
            readers = [p for p in self.parts if b in p.reads]
            distance = max((r.stage - w.stage for w in writers for r in readers), default=0)
            if distance <= 0 or any(r.number < w.number for r in readers for w in writers if r is not w):
                continue
            if b not in self.allocs and (not ends_with_launch(b.scope) or not is_privatizable(b, [self.loop])):
                self.passed_on.add(b)  # one version, and the order of the loop
                continue
            if b in self.outside:
                raise BuildError(
                    f"{self.name}: buffer `{b.name}` passes data between stages of the pipelined loop "
                    f"`{self.loop.loop_var.name}`, and is used outside the loop as well"
                )
            reused = all(w.order > r.order for w in writers for r in readers)
            count = distance if reused else distance + 1
            if count > 1:
                found[b] = count
        return found

    def _check_order(self) -> None:
        """Check that statements with conflicting accesses still run in the order of the loop."""
        for x in self.parts:
            for y in self.parts:
                for b, c in itertools.product({**x.reads, **x.writes}, {**y.reads, **y.writes}):
                    if not shares_memory(b, c) or not (b in x.writes or c in y.writes):
                        continue
                    same = x.number < y.number and (x.stage, x.order) > (y.stage, y.order)
                    later = (x.stage, x.order) >= (y.stage + 1, y.order)
                    if later and b is c:  # of two names it is not known where they meet
                        later = b not in self.versions and not self._apart(x, y, b)
                    if (same or later) and x is not y:
                        when = "the same iteration" if same else "the next iteration"
                        own = (
                            "; it is allocated outside of the loop, and may pass data on from one iteration to the next: for a "
                            "version in each, allocate it in a block around what the loop holds (`T.alloc_buffer`)"
                        )  # fmt: skip
                        raise BuildError(
                            f"{self.name}: in the pipeline of loop `{self.loop.loop_var.name}` `{y.name}` (stage "
                            f"{y.stage}, order {y.order}) of {when} would run before `{x.name}` (stage {x.stage}, order "
                            f"{x.order}), with which it shares `{b.name}`{'' if b is c else f', by the name `{c.name}`'}"
                            f"{own if b in self.passed_on and not same else ''}"
                        )

    def _apart(self, x: _Part, y: _Part, b: Buffer) -> bool:
        """Whether different iterations access different elements: one axis moves with the loop, equally in all
        accesses."""
        touched = [*x.reads.get(b, []), *x.writes.get(b, []), *y.reads.get(b, []), *y.writes.get(b, [])]
        if not touched:
            return False
        for axis in range(len(touched[0])):
            forms = [linear(indices[axis]) for indices in touched]
            moves = [f.terms.get(id(self.loop.loop_var)) for f in forms]
            if (
                all(m is not None for m in moves)
                and len({key(t[axis]) for t in touched}) == 1
                and len(forms[0].terms) == 1
            ):
                return True
        return self._shifted(x, y, b)

    def _shifted(self, x: _Part, y: _Part, b: Buffer) -> bool:
        """Whether ``y`` of the iterations that overtake ``x`` accesses other elements: a constant distance on one
        axis."""
        mine, theirs = ([*p.reads.get(b, []), *p.writes.get(b, [])] for p in (x, y))
        if not mine or not theirs:
            return False
        var = self.loop.loop_var

        def apart(p: Any, q: Any, ahead: int) -> bool:
            later = (substitute(i, {var: var + ahead}) for i in q)
            gaps = (linear(i).minus(linear(j)) for i, j in zip(p, later) if i.dtype.lanes == 1 and j.dtype.lanes == 1)
            return any(gap.is_const and gap.const != 0 for gap in gaps)

        steps = range(1, x.stage - y.stage + 1)
        return all(apart(p, q, ahead) for ahead in steps for p in mine for q in theirs)

    # ------------------------------------------------------------ buffers

    @staticmethod
    def _expanded(b: Buffer, count: int) -> Buffer:
        strides = b.strides
        if strides:
            size = strides[0] * b.shape[0]
            strides = (size, *strides)
        index = b.shape[0].dtype if b.shape else const(0).dtype
        return b.replace(shape=(const(count, index), *b.shape), strides=strides)

    def copy(self, part: _Part, iteration: Expr, guard: Expr = TRUE) -> Stmt:
        """``part`` of one iteration (counted from 0), on that iteration's buffer versions."""
        analyzer = Analyzer()
        loop = self.loop
        iteration = analyzer.simplify(iteration)

        def slot(b: Buffer) -> Expr:
            return analyzer.simplify(iteration % self.versions[b])

        def change(item: Any) -> Any:
            if isinstance(item, (BufferLoad, BufferStore)) and item.buffer in self.new:
                return item.replace(buffer=self.new[item.buffer], indices=(slot(item.buffer), *item.indices))
            if isinstance(item, BufferRegion) and item.buffer in self.new:
                first = slot(item.buffer)
                return BufferRegion(self.new[item.buffer], (Range(first, const(1, first.dtype)), *item.region))
            return None

        value = iteration if is_const(loop.min, 0) else loop.min + iteration
        made: Stmt = substitute(rewrite(part.stmt, change), {loop.loop_var: value})
        made = self._renamed(made)
        own = any(b in part.writes and is_shared(b.scope) for b in part.reads)  # which it cannot wait for
        if part.stage in self.asynchronous and not own:
            made = AttrStmt(const(0), "async_scope", const(1), made)
        return made if is_const(guard, 1) else IfThenElse(guard, made)

    def _renamed(self, s: Stmt) -> Stmt:
        def change(item: Any) -> Any:
            return item.replace(name=claimed(item.name, self.names)) if isinstance(item, Block) else None

        return rewrite(s, change)

    # ------------------------------------------------------------ steps

    def step(
        self, active: Sequence[tuple[_Part, Expr, Expr]], waits: dict[int, int], late: dict[int, int]
    ) -> list[Stmt]:
        """One time step: (part, its iteration, its guard); waits at the start, and just before some parts."""
        made: list[Stmt] = []
        if waits:
            made.append(_wait(min(waits.values())))
        for part, iteration, guard in active:
            if part.number in late:  # what its own stage has copied so far is a group of its own
                made += [_commit(), _wait(late[part.number])]
            made.append(self.copy(part, iteration, guard))
            if part.stage in self.asynchronous and self._last(part):
                made.append(_commit())
        return made

    def _last(self, part: _Part) -> bool:
        return all(p.order <= part.order for p in self.parts if p.stage == part.stage)

    def waits(self, active: Any, commits: Any) -> tuple[dict[int, int], dict[int, int]]:
        """For each active part: how many groups may still be in flight when it starts.

        ``commits(stage, back)`` says whether that stage committed a group ``back`` steps ago.
        """
        early: dict[int, int] = {}
        late: dict[int, int] = {}
        for part, _, _ in active:
            for producer in self.parts:
                if not self._waits_for(part, producer):
                    continue
                distance = part.stage - producer.stage
                if distance == 0:
                    late[part.number] = 0
                    continue
                place = self._place(producer.stage)
                count = 0
                for stage in self.asynchronous:
                    for back in range(1, distance + 1):
                        after = back < distance or self._place(stage) > place
                        count += after and commits(stage, back)
                early[part.number] = min(early.get(part.number, count), count)
        return early, late

    def _waits_for(self, part: _Part, producer: _Part) -> bool:
        """Whether ``part`` uses what ``producer`` copies asynchronously, in an iteration that is not later."""
        copied = producer.stage in self.asynchronous and producer.stage <= part.stage and producer is not part
        return copied and any(b in part.reads or b in part.writes for b in producer.writes)

    def _arrives(self, part: _Part) -> bool:
        """Whether a statement of the loop waits for what ``part`` copies, if it copies asynchronously."""
        return part.stage not in self.asynchronous or any(self._waits_for(other, part) for other in self.parts)

    def _place(self, stage: int) -> int:
        return max((p.order for p in self.parts if p.stage == stage), default=-1)

    def lowered(self) -> list[Stmt]:
        """The prologue, the loop, and the epilogue."""
        loop, depth = self.loop, self.depth
        total = loop.extent
        known = total.value if isinstance(total, IntImm) else None
        dtype = total.dtype
        before: list[Stmt] = []
        steady: list[Stmt] = []
        after: list[Stmt] = []
        for t in range(depth):
            active = []
            for p in self.steps:
                k = t - p.stage
                if k < 0 or (known is not None and k >= known):
                    continue
                guard = TRUE if known is not None else const(k, dtype) < total
                active.append((p, const(k, dtype), guard))
            before += self.step(active, *self.waits(active, lambda stage, back, t=t: t - back - stage >= 0))
        if known is None or known > depth:
            var = Var(loop.loop_var.name, loop.loop_var.dtype)
            active = [(p, var + (depth - p.stage), TRUE) for p in self.steps]
            parts = self.step(active, *self.waits(active, lambda stage, back: depth - back - stage >= 0))
            notes = {k: v for k, v in loop.annotations.items() if k not in (STAGE, ORDER, ASYNC)}
            left = total - depth
            steady.append(
                loop.replace(
                    loop_var=var, min=const(0, dtype), extent=left, body=seq(parts), annotations=frozendict(notes)
                )
            )
        for e in range(depth):
            active = []
            for p in self.steps:
                if p.stage <= e or (known is not None and (known + e - p.stage < 0 or known + e < depth)):
                    continue
                guard = all_of([total + e >= depth]) if known is None else TRUE
                active.append((p, total + (e - p.stage), guard))

            def committed(stage: int, back: int, e: int = e) -> bool:
                # e - back steps into the epilogue, or before it
                return stage > e - back and (known is None or known + e - back - stage >= 0)

            after += self.step(active, *self.waits(active, committed))
        if not all(map(self._arrives, self.parts)):  # what follows uses it, or other values in its place
            after.append(_wait(0))
        return [seq(part) for part in (before, steady, after) if part]


def _commit() -> Stmt:
    return Evaluate(call("ptx_commit_group"))


def _wait(groups: int) -> Stmt:
    return Evaluate(call("ptx_wait_group", groups))


class _Injector:
    def __init__(self, func: PrimFunc, cpu: bool):
        self.func, self.cpu = func, cpu
        self.names = {n.name for n in walk(func.body) if isinstance(n, Block)}
        self.new: dict[Buffer, Buffer] = {}
        self.made: dict[Any, tuple[list[Stmt], list[Buffer]]] = {}  # pipelines: their parts, and their own buffers

    def visit(self, s: Any) -> Any:
        if isinstance(s, Stmt):
            s = s.map_children(lambda c: self.visit(c) if isinstance(c, Stmt) else c)
        if isinstance(s, For) and STAGE in s.annotations:
            used: dict[Buffer, None] = {}
            for n in walk(self.func.body, enter=lambda n: not (isinstance(n, For) and n.loop_var is s.loop_var)):
                if isinstance(n, (BufferLoad, BufferStore)):
                    used.setdefault(n.buffer)
            own = {n.name for n in walk(s) if isinstance(n, Block)}
            params = set(self.func.buffers())
            pipeline = _Pipeline(self.func.name, s, self.names - own, set(used), self.cpu, params, self.parts_of)
            parts = pipeline.lowered()
            made = seq(parts)
            self.names |= pipeline.names
            inside = [pipeline.new.get(b, b) for b in pipeline.allocs]
            self.new.update({b: n for b, n in pipeline.new.items() if b not in pipeline.allocs})
            if inside:
                self.names.add(name := unique_name(f"{s.loop_var.name}_pipeline", self.names))
                made = BlockRealize((), TRUE, Block((), (), (), name, made, None, tuple(inside)))
            self.made[made] = (parts, inside)
            return made
        return s

    def parts_of(self, s: Any) -> tuple[list[Stmt], list[Buffer]] | None:
        """The parts of a nested pipeline, and the buffers private to it."""
        own: list[Buffer] = []
        while s not in self.made and isinstance(s, BlockRealize) and not s.block.iter_vars:
            own += [self.new.get(b, b) for b in s.block.alloc_buffers]
            s = s.block.body
        if s not in self.made:
            return None
        parts, more = self.made[s]
        return parts, [*own, *more]


@func_pass
def inject_software_pipeline(func: PrimFunc, cpu: bool = False) -> PrimFunc:
    """A loop annotated with ``software_pipeline_stage`` runs the stages of different iterations together.

    A statement of stage s runs s steps after the iteration began; ``software_pipeline_order``, which must be there too, is
    the order within a step. The prologue and the epilogue hold the steps in which not all stages are active. A buffer that
    passes data from one stage to a later one gets one version for each iteration in flight. Statements of
    ``software_pipeline_async_stages`` are put under ``async_scope``, committed as a group in each step, and waited for
    at the start of the step that uses what they wrote, or after the loop. With ``cpu`` memory of any scope that is local to the loop is
    versioned, and asynchronous stages run synchronously, as does a statement that reads the shared memory it copies to.
    Expects opaque blocks. Raises ``BuildError`` if the stages would reorder statements with conflicting accesses.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     H = T.alloc_buffer((8,), "float32")
    ...     for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
    ...         with T.block(""):
    ...             T.reads(A[i])
    ...             T.writes(H[i])
    ...             H[i] = A[i] * 2.0
    ...         with T.block(""):
    ...             T.reads(H[i])
    ...             T.writes(B[i])
    ...             B[i] = H[i] + 1.0
    ... ''')
    >>> print(tir.transform.simplify(tir.transform.inject_software_pipeline(f)))
    # from tir.script import tir as T
    <BLANKLINE>
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        # with T.block("root"):
        H = T.alloc_buffer((8,), "float32")
        with T.block("block"):
            T.reads(A[0])
            T.writes(H[0])
            H[0] = A[0] * 2.0
        for i in range(7):
            with T.block("block_1"):
                T.reads(A[i + 1])
                T.writes(H[i + 1])
                H[i + 1] = A[i + 1] * 2.0
            with T.block("block_1_1"):
                T.reads(H[i])
                T.writes(B[i])
                B[i] = H[i] + 1.0
        with T.block("block_1_2"):
            T.reads(H[7])
            T.writes(B[7])
            B[7] = H[7] + 1.0
    """
    if not any(isinstance(n, For) and STAGE in n.annotations for n in statements(func.body)):
        return func
    func = with_one_memory(func)
    injector = _Injector(func, cpu)
    body = injector.visit(func.body)
    if injector.new:  # versions of buffers that are allocated further out

        def grown(item: Any) -> Any:
            if isinstance(item, Block) and any(b in injector.new for b in item.alloc_buffers):
                return item.replace(alloc_buffers=tuple(injector.new.get(b, b) for b in item.alloc_buffers))
            return None

        body = rewrite(body, grown)
    return with_own_memory(func.with_body(flat(body)))
