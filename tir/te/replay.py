"""Carries out what stages recorded, on a block schedule, in one canonical order.

Inlining first; then the stages, consumers before producers: each moves to its place in the memory that it has, its axes
are split, fused and put in order, and its loops are bound to threads, since shared memory is filled for all threads
around. Then the other kinds of loops, the start of reductions (its loops are of the same kinds), and tensor intrinsics.

The steps of the last replay are kept: those that two replays begin with are not taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..analysis.index import index_of
from ..annotations import DOUBLE_BUFFER
from ..arith import Analyzer
from ..buffer import Buffer
from ..errors import ScheduleError, attempt
from ..expr import NE, IntImm, Var
from ..levels import is_block_axis, is_thread_axis
from ..visit import free_vars
from .declared_intrin import TensorIntrinDecl
from .hybrid import HybridOp
from .recurrence import ScanOp
from .stage import Attach, Call, Fuse, Mark, Split, Stage, axis_name, refusal
from .store_predicate import LEGAL, require_duplicates
from .tensor import Axis, Operation, Tensor
from .to_primfunc import LoweredGraph, lower_graph

if TYPE_CHECKING:
    from ..schedule import Schedule as BlockSchedule
    from ..schedule.handles import LoopRV
    from .schedule import Schedule


@dataclass(frozen=True)
class Loop:
    """The loop around ``block`` that an axis is, whichever that is when a step is taken."""

    axis: Axis
    block: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loop) and other.axis is self.axis and other.block == self.block

    def __hash__(self) -> int:
        return hash((self.axis, self.block))


@dataclass(frozen=True)
class Step:
    """A primitive, or a question about the schedule, and its arguments; ``gives`` are the axes that the loops it returns
    are, or that of a block's own."""

    primitive: str | Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...] = ()
    gives: tuple[Loop, ...] = ()
    call: Call | None = None

    def is_same(self, other: Step) -> bool:
        """Whether taking this one is taking ``other``."""
        return (self.primitive, self.args, self.kwargs, self.gives) == (
            other.primitive,
            other.args,
            other.kwargs,
            other.gives,
        )


class Replay:
    """The block schedule that a stage schedule is, made again as far as what was recorded has changed."""

    def __init__(self, recorded: Schedule):
        self.recorded = recorded
        self._base: tuple[Any, ...] = ()
        self._graph: LoweredGraph | None = None
        self._start: BlockSchedule | None = None
        self._taken: list[tuple[Step, BlockSchedule]] = []
        self._loops: dict[Loop, Any] = {}

    def schedule(self, args: list[Any], name: str, binds: Mapping[Tensor, Buffer]) -> BlockSchedule:
        """The schedule of the function of ``args``, in the buffers of ``binds``; the caller's to change."""
        graph, sch = self._begin(args, name, binds)
        steps = list(Plan(self.recorded, graph).steps())
        same = 0
        while same < min(len(steps), len(self._taken)) and steps[same].is_same(self._taken[same][0]):
            same += 1
        del self._taken[same:]
        sch = self._taken[-1][1] if self._taken else sch
        for step in steps[same:]:
            sch = sch.copy()
            self._take(sch, step)
            self._taken.append((step, sch))
        return sch.copy()

    def _begin(self, args: list[Any], name: str, binds: Mapping[Tensor, Buffer]) -> tuple[LoweredGraph, BlockSchedule]:
        """The graph as a function, and its schedule before any step."""
        from ..schedule import Schedule as BlockSchedule

        base = (name, *args, *binds, *binds.values(), *(s.op for s in self.recorded.stages))
        if self._graph is None or self._start is None or not _are_same(base, self._base):
            self._graph = lower_graph(args, name, binds)
            self._start = BlockSchedule(self._graph.func)
            self._base, self._taken, self._loops = base, [], {}
        return self._graph, self._start

    def _take(self, sch: BlockSchedule, step: Step) -> None:
        args = [self._loops[a] if isinstance(a, Loop) else a for a in step.args]
        take = getattr(sch, step.primitive) if isinstance(step.primitive, str) else partial(step.primitive, sch)
        made = attempt(lambda: take(*args, **dict(step.kwargs)))
        if isinstance(made, ScheduleError):
            if step.call is None:
                raise made
            raise refused(step.call, made) from made
        if step.primitive == "get_loops":
            made = made[len(made) - len(step.gives) :]
        self._loops |= zip(step.gives, made if isinstance(made, (list, tuple)) else [made])


def _are_same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(a is b or (isinstance(a, str) and a == b) for a, b in zip(first, second))


def refused(call: Call, exc: ScheduleError) -> ScheduleError:
    """What the block schedule says of a step, as the refusal of the user's call."""
    made = refusal(call, exc.rule, witness=[f"as {exc.request}", *exc.witness] if exc.request else exc.witness)
    made.func, made.nodes = exc.func, exc.nodes
    made.legal = lambda: exc.legal
    return made


class Plan:
    """The steps for what was recorded."""

    def __init__(self, recorded: Schedule, graph: LoweredGraph):
        self.recorded = recorded
        self.graph = graph
        computed = [s for s in recorded._in_order() if s.op in graph.blocks or isinstance(s.op, HybridOp)]
        self.stages = [s for s in reversed(computed) if s.inlined is None]
        self.inlined = [s for s in computed if s.inlined is not None]
        self.threads = _VirtualThreads()
        self.gone: set[Loop] = set()  # merged into the loops of other blocks
        self.moved_by: dict[Loop, Call] = {}  # around the loop over time of a scan

    def steps(self) -> Iterator[Step]:
        """All of them, in order."""
        for stage in self.stages:
            if stage.attach is not None:
                self._check_attachment(stage, stage.attach)
        for stage in self.inlined:
            self._require_inside(stage)
            _require_unscheduled(stage)
            for block in self.graph.blocks[stage.op]:
                yield Step("compute_inline", (block,), call=stage.inlined)
        for together in self._placed_together():
            for stage in together:
                yield from self._memory(stage)
                yield from self._place(stage)
                yield from self._loops(stage)
            yield from self._around_time(together)
            for stage in together:
                yield from self._marked(stage, ("bind",))
        for stage in self.stages:
            yield from self._notes(stage)
            yield from self._marked(stage, ("unroll", "pragma", "vectorize", "parallel"))
        for stage in self.stages:
            yield from self._start(stage)
            yield from self._marked(stage, ("prefetch", "tensorize"))
            yield from self._resets(stage)

    # ------------------------------------------------------------ one stage

    def _require_inside(self, stage: Stage) -> None:
        """Raise ``ScheduleError`` for a stage that is inlined, and whose tensor is an argument: nothing would write it."""
        if any(self.graph.buffers.get(t) in self.graph.func.buffers() for t in stage.op.outputs):
            assert stage.inlined is not None
            raise refusal(
                stage.inlined,
                f"`{stage.name}` is among the arguments, and inlined it would not be written",
                f"arguments without it, as in tir.lower(s, [{', '.join(t.name for t in self.recorded.outputs[0].outputs)}])",
            )

    def _block(self, stage: Stage) -> str:
        """The block of a stage; its own name, for loops and stores that are none."""
        return stage.name if isinstance(stage.op, HybridOp) else self.graph.blocks[stage.op][-1]

    def _loop(self, stage: Stage, axis: Axis) -> Loop:
        return Loop(axis, self._block(stage))

    def _memory(self, stage: Stage) -> Iterator[Step]:
        scope = stage.scope or self._inferred_scope(stage)
        if scope not in ("", "global"):
            for block in self.graph.blocks[stage.op]:
                for output in range(len(index_of(self.graph.func).blocks[block].block.writes)):
                    yield Step("set_scope", (block, output, scope), call=stage.scope_call)

    def _inferred_scope(self, stage: Stage) -> str:
        """Inside threads a tensor is kept in registers, inside a grid of blocks in shared memory."""
        tags = [m.value.thread_tag for m in self._binds_around(stage)]
        if any(is_thread_axis(t) for t in tags):
            return "local"
        return "shared" if any(is_block_axis(t) for t in tags) else ""

    def _binds_around(self, stage: Stage) -> Iterator[Mark]:
        seen: set[int] = set()
        while stage.attach is not None and id(stage) not in seen:
            seen.add(id(stage))
            parent, inner = stage.attach.stage, self._attach_axis(stage)
            for axis in parent.leaf_iter_vars:
                yield from (m for m in parent.marks.get(axis, ()) if m.kind == "bind")
                if axis is inner:
                    break
            stage = parent

    def _attach_axis(self, stage: Stage) -> Axis:
        assert stage.attach is not None
        return stage.attach.stage.leaves_of(stage.attach.axis)[-1]

    def _place(self, stage: Stage) -> Iterator[Step]:
        if stage.attach is not None:
            yield from self._moves(stage, stage.attach)
        yield from self._own_loops(stage, self._block(stage))

    def _moves(self, stage: Stage, attach: Attach) -> Iterator[Step]:
        """All blocks of the stage to its place; they share their loops there as they did before."""
        call = attach.call
        blocks = self.graph.blocks[stage.op]
        if len(blocks) > 1 and stage.op.reduce_axis:
            raise refusal(
                call,
                f"`{stage.name}` is several blocks, {', '.join(blocks)}, since there may be nothing to reduce: they do not "
                "move together",
            )
        # several next to each other: the last one first, each as early as what it reads allows
        where = (("preserve_unit_loops", True), *([("index", -2)] if len(blocks) > 1 else []))
        target = self._loop(attach.stage, self._attach_axis(stage))
        for block in reversed(blocks):
            yield Step("compute_at", (block, target), where, call=call)
        if len(blocks) > 1 and stage.op.axis:
            for block in blocks:
                yield from self._own_loops(stage, block)
            inner = stage.op.axis[-1]
            yield Step("merge", tuple(Loop(inner, block) for block in blocks), call=call)

    def _own_loops(self, stage: Stage, block: str) -> Iterator[Step]:
        axes = (*stage.op.axis, *stage.op.reduce_axis)
        if axes:
            gives = tuple(Loop(a, block) for a in axes)
            own = isinstance(stage.op, HybridOp)
            yield Step(loops_of, (stage.op,), gives=gives) if own else Step("get_loops", (block,), gives=gives)

    def _check_attachment(self, stage: Stage, attach: Attach) -> None:
        call, parent = attach.call, attach.stage
        if parent.inlined is not None:
            raise refusal(call, f"`{parent.name}`, which it is to run in, is inlined: {parent.inlined}")
        place = {id(s): n for n, s in enumerate(self.stages)}
        if place.get(id(parent), len(place)) >= place[id(stage)]:
            users = [s.name for s in self.stages if any(t.op is stage.op for t in s.op.input_tensors)]
            raise refusal(
                call, f"`{parent.name}` does not come after `{stage.name}`", f"its consumers: {', '.join(users)}"
            )
        if not parent.leaves_of(attach.axis):
            loops = ", ".join(f"`{axis_name(a)}`" for a in parent.leaf_iter_vars)
            raise refusal(
                call,
                f"`{axis_name(attach.axis)}` is no loop of `{parent.name}` any more, since rfactor",
                f"its loops are {loops}",
            )

    # ------------------------------------------------------------ scans in threads

    def _placed_together(self) -> Iterator[list[Stage]]:
        """The stages, consumers first; the steps of a scan in threads at once."""
        done: set[int] = set()
        for stage in self.stages:
            if id(stage) in done:
                continue
            scan = self._scan_of(stage)
            together = [stage] if scan is None else [s for s in self.stages if self._scan_of(s) is scan]
            done.update(map(id, together))
            yield together

    def _scan_of(self, stage: Stage) -> Stage | None:
        """The scan in threads that ``stage`` is a step of."""
        scans = (s for s in self.recorded.stages if s.environment is not None)
        return next((s for s in scans if isinstance(s.op, ScanOp) and stage.op in s.op.steps), None)

    def _around_time(self, steps: list[Stage]) -> Iterator[Step]:
        """Moves the loops that the steps of a scan bind to its threads around that over time, one for all of them."""
        scan = self._scan_of(steps[0])
        if scan is None or scan.environment is None:
            return
        call, around = scan.environment.call, list[Loop]()
        steps = steps[::-1]  # in program order
        for thread in scan.environment.value:
            first, *others = (self._loop(s, self._bound_to(s, thread, call)) for s in steps)
            if others:
                yield Step("merge", (first, *others), gives=(first,), call=call)
            self.gone.update(others)
            around.append(first)
        self.moved_by |= dict.fromkeys(around, call)
        time = steps[0].leaves_of(next(iter(steps[0].op.axis)))
        yield Step("reorder", (*around, *(self._loop(steps[0], a) for a in time)), call=call)

    def _bound_to(self, stage: Stage, thread: Axis, call: Call) -> Axis:
        for axis in stage.leaf_iter_vars:
            if any(m.kind == "bind" and m.value is thread for m in stage.marks.get(axis, ())):
                return axis
        raise refusal(
            call,
            f"`{stage.name}`, a step of the scan, has no axis bound to {axis_name(thread)}",
            f"s[{stage.name}].bind(axis, {axis_name(thread)})",
        )

    def _loops(self, stage: Stage) -> Iterator[Step]:
        order = [*stage.op.axis, *stage.op.reduce_axis]
        for relation in stage.relations:
            if not relation.parents:  # those of a 0-d tensor
                outermost = self._loop(stage, order[0]) if order else self._block(stage)
                order[:0] = relation.children
                unit = self._loop(stage, order[0])
                yield Step("add_unit_loop", (outermost,), gives=(unit,), call=relation.call)
                continue
            if isinstance(relation, Fuse):
                yield from self._sorted(stage, order, relation.call)
            at = next(n for n, a in enumerate(order) if a is relation.parents[0])
            order[at : at + len(relation.parents)] = relation.children
            yield self._relation(stage, relation)
        yield from self._sorted(stage, order, self._reordering(stage))

    def _sorted(self, stage: Stage, order: list[Axis], call: Call | None) -> Iterator[Step]:
        """Puts the loops into the order that the loops they become have in the end."""
        wanted = sorted(order, key=stage.rank)
        if any(a is not b for a, b in zip(order, wanted)):
            order[:] = wanted
            yield Step("reorder", tuple(self._loop(stage, a) for a in wanted), call=call)

    def _reordering(self, stage: Stage) -> Call:
        names = ", ".join(map(axis_name, stage.leaf_iter_vars))
        return stage.reordered or Call(f"s[{stage.name}].reorder({names})", None)

    def _relation(self, stage: Stage, relation: Split | Fuse) -> Step:
        parents, gives = (tuple(self._loop(stage, a) for a in axes) for axes in (relation.parents, relation.children))
        names = [axis_name(a) for a in relation.children]
        if isinstance(relation, Fuse):
            kwargs: tuple[tuple[str, Any], ...] = (("name", names[0]),)
            return Step("fuse", parents, kwargs, gives, relation.call)
        size = ("factor", relation.factor) if relation.factor is not None else ("nparts", relation.nparts)
        return Step("split", parents, (size, ("names", tuple(names))), gives, relation.call)

    # ------------------------------------------------------------ kinds of loops

    def _marked(self, stage: Stage, kinds: tuple[str, ...]) -> Iterator[Step]:
        for axis in stage.leaf_iter_vars:
            for mark in stage.marks.get(axis, ()):
                if mark.kind in kinds and self._loop(stage, axis) not in self.gone:
                    if mark.kind == "bind" and mark.value.dom is not None:
                        yield Step(require_extent, (self._loop(stage, axis), mark.value), call=mark.call)
                    if mark.kind == "bind" and axis.iter_type == "reduce":
                        yield Step(require_constant_extent, (self._loop(stage, axis),), call=mark.call)
                    yield self._mark(stage, axis, mark)

    def _mark(self, stage: Stage, axis: Axis, mark: Mark) -> Step:
        loop = self._loop(stage, axis)
        if mark.kind == "bind":
            return Step("bind", (loop, self.threads.tag(mark)), call=self.moved_by.get(loop, mark.call))
        if mark.kind == "pragma":
            key, value = mark.value
            return Step("annotate", (loop, f"pragma_{key}", value), call=mark.call)
        if mark.kind == "prefetch":
            tensor, offset = mark.value
            block, buffer = self._read_below(stage, tensor, mark.call)
            return Step("prefetch", (loop, block, buffer, offset), call=mark.call)
        if mark.kind == "tensorize":
            return Step("tensorize", (loop, self._intrinsic(stage, axis, mark.value)[0]), call=mark.call)
        return Step(mark.kind, (loop,), call=mark.call)

    def _read_below(self, stage: Stage, tensor: Tensor, call: Call) -> tuple[str, str]:
        """The block of ``stage``, or of a stage that runs inside of it, that reads ``tensor``, and the name of its buffer."""
        wanted = self.recorded._now(tensor)
        for reader in self.stages:
            if self._is_inside(reader, stage) and wanted in self._read_by(reader.op):
                return self._block(reader), self.graph.buffers[wanted].name
        raise refusal(call, f"`{tensor.name}` is not read in the loops of `{stage.name}`")

    def _is_inside(self, stage: Stage | None, around: Stage) -> bool:
        while stage is not None and stage is not around:
            stage = None if stage.attach is None else stage.attach.stage
        return stage is around

    def _read_by(self, op: Operation) -> Iterator[Tensor]:
        """What ``op`` reads, with what the stages inlined into it read."""
        inlined = {s.op for s in self.inlined}
        for tensor in op.input_tensors:
            yield tensor
            if tensor.op in inlined:
                yield from self._read_by(tensor.op)

    def _start(self, stage: Stage) -> Iterator[Step]:
        """The start of a reduction before its outermost loop, as far as one thread runs that loop."""
        reduced = [a for a in stage.leaf_iter_vars if a.iter_type == "reduce"]
        across = any(m.kind == "bind" for a in reduced for m in stage.marks.get(a, ()))
        if reduced and not across and len(self.graph.blocks[stage.op]) == 1:
            yield Step("decompose_reduction", (self._block(stage), self._loop(stage, self._started(stage)[0])))

    # ------------------------------------------------------------ tensor intrinsics

    def _started(self, stage: Stage) -> list[Axis]:
        """The loops outside of which ``decompose_reduction`` places the init: all loops of the reduction, or those around a
        tensor intrinsic."""
        leaves = list(stage.leaf_iter_vars)
        begins = (a.iter_type == "reduce" or self._tensorized(stage, a) is not None for a in leaves)
        return leaves[next(n for n, begin in enumerate(begins) if begin) :]

    def _tensorized(self, stage: Stage, axis: Axis) -> Mark | None:
        return next((m for m in stage.marks.get(axis, ()) if m.kind == "tensorize"), None)

    def _intrinsic(self, stage: Stage, axis: Axis, value: Any) -> tuple[Any, Any]:
        """The intrinsic for an axis, and the one for the initial values of its reduction, if any."""
        if not isinstance(value, TensorIntrinDecl):
            return value, None
        leaves = list(stage.leaf_iter_vars)
        outside = leaves[: next(n for n, a in enumerate(leaves) if a is axis)]
        return value.at(has_steps_outside=any(a.iter_type == "reduce" for a in outside))

    def _resets(self, stage: Stage) -> Iterator[Step]:
        """The intrinsics that store initial values, in the loops of the block that does."""
        for axis in stage.leaf_iter_vars:
            mark = self._tensorized(stage, axis)
            reset = None if mark is None else self._intrinsic(stage, axis, mark.value)[1]
            if mark is None or reset is None:
                continue
            block = f"{self._block(stage)}_init"
            loops = tuple(Loop(a, block) for a in self._started(stage) if a.iter_type != "reduce")
            yield Step("get_loops", (block,), gives=loops)
            rank = stage.rank(axis)
            inside = [loop for loop in loops if stage.rank(loop.axis) >= rank]
            if not inside:  # one element, and loops of the reduction alone
                inside = [Loop(axis, block)]
                yield Step("add_unit_loop", (block,), gives=tuple(inside))
            yield Step("tensorize", (inside[0], reset), call=mark.call)

    # ------------------------------------------------------------ what blocks are told

    def _notes(self, stage: Stage) -> Iterator[Step]:
        for note in stage.notes:
            if note.kind == "storage_align":
                yield Step("storage_align", (self._block(stage), 0, *note.value), call=note.call)
            elif note.kind == "double_buffer":
                if stage.attach is None:
                    raise refusal(
                        note.call,
                        f"`{stage.name}` is computed once: there is no next iteration to compute it for",
                        f"s[{stage.name}].compute_at(s[consumer], axis)",
                    )
                yield Step("annotate", (self._block(stage), DOUBLE_BUFFER, 0), call=note.call)
            else:
                places = tuple(self._place_of(stage, v, note.call) for v in note.value.variables)
                yield Step(require_duplicates, (self._block(stage), note.value, *places), call=note.call)

    def _place_of(self, stage: Stage, var: Var, call: Call) -> Loop | str | int | None:
        """What a variable of a predicate is: a loop of the stage, a thread axis, the number of an axis, or a size."""
        for axis in stage.leaf_iter_vars:
            if axis.var is var:
                return self._loop(stage, axis)
        own = [a.var for a in (*stage.op.axis, *stage.op.reduce_axis)]
        if any(v is var for v in own):
            return next(n for n, v in enumerate(own) if v is var)
        binds = (m for s in self.recorded.stages for marks in s.marks.values() for m in marks if m.kind == "bind")
        thread = next((m for m in binds if m.value.var is var), None)
        if thread is not None:
            return self.threads.tag(thread)
        if any(v is var for b in self.graph.buffers.values() for e in b.shape for v in free_vars(e)):
            return None
        raise refusal(call, f"`{var.name}` is no axis of `{stage.name}`, and no axis is bound to it", LEGAL)


def _require_unscheduled(stage: Stage) -> None:
    """Raise ``ScheduleError`` for a stage whose loops are scheduled, and which has none: it is inlined."""
    assert stage.inlined is not None
    calls = [r.call for r in stage.relations] + [m.call for marks in stage.marks.values() for m in marks]
    calls += [stage.reordered] if stage.reordered is not None else []
    if calls:
        raise refusal(
            calls[0],
            f"`{stage.name}` has no loops: it is inlined by {stage.inlined}",
            f"s[{stage.name}].compute_root(), or no calls of its loops",
        )


def loops_of(sch: BlockSchedule, op: HybridOp) -> list[LoopRV]:
    """The loops of an operation that is no block."""
    return [sch.state.loop_rv(a.var) for a in op.axis]


def require_extent(sch: BlockSchedule, loop: LoopRV, thread: Axis) -> None:
    """Raise ``ScheduleError`` where ``loop`` has another number of iterations than the user gave ``thread``."""
    given, extent = thread.dom, sch.get(loop).extent
    if given is not None and Analyzer().can_prove(NE(given.extent, extent)):
        raise ScheduleError(
            f"`{axis_name(thread)}` is declared with {given.extent!r} threads, and the loop has {extent!r}",
            legal=f"a loop of {given.extent!r} iterations, or te.thread_axis({thread.thread_tag!r})",
        )


def require_constant_extent(sch: BlockSchedule, loop: LoopRV) -> None:
    """Raise ``ScheduleError`` where it is not known how many threads share a reduction: there may be none, to store the
    initial values."""
    extent = sch.get(loop).extent
    if not isinstance(extent, IntImm):
        raise ScheduleError(
            f"threads that share a reduction combine their values, and how depends on their number: `{extent!r}` is no constant",
            legal="split the axis by a constant, and bind the inner part",
        )


class _VirtualThreads:
    """The axis of each virtual thread: one dimension of ``vthread`` for every ``te.thread_axis`` of that kind."""

    def __init__(self) -> None:
        self._known: dict[Axis, str] = {}

    def tag(self, mark: Mark) -> str:
        axis = mark.value
        if axis.thread_tag != "vthread":
            return axis.thread_tag
        if axis not in self._known:
            if len(self._known) == 3:
                raise refusal(mark.call, "there are at most three virtual thread axes")
            self._known[axis] = f"vthread.{'xyz'[len(self._known)]}"
        return self._known[axis]
