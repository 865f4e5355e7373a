"""The stage schedule: ``te.create_schedule``, ``s[C].split(…)``, ``s.cache_read`` … in the classic spelling.

A schedule records. ``tir.lower(s, args)``, ``tir.build(s, args)`` and ``s.to_schedule()`` carry the record out on a
:class:`tir.Schedule`, in an order that does not depend on the order of the calls, and check every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..arith import Analyzer, simplify
from ..arith.selections import associativity_counterexample
from ..buffer import Buffer, Range
from ..equal import structural_equal
from ..expr import Expr, Reduce, Var, const
from ..function import IRModule, require_name
from ..names import identifier, unique_name
from ..target import Target
from ..visit import substitute, uses_var, walk
from .computation import ComputeOp, loads_in
from .group import Group, operations_between
from .recurrence import ScanOp
from .replay import Replay
from .rewrite_graph import (
    ReductionLoops,
    ages_of_rows,
    copy_of,
    copy_of_rows,
    factored,
    reading_own_row,
    written_through,
)
from .stage import Call, Fuse, Split, Stage, _shown, axis_name, refusal, require_scope
from .tensor import Axis, Operation, PlaceholderOp, Tensor
from .to_primfunc import operations_of
from .user_lines import error, user_place

if TYPE_CHECKING:
    from ..schedule import Schedule as BlockSchedule

__all__ = ["AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "Schedule", "Stage", "create_schedule"]


def create_schedule(ops: Any) -> Schedule:
    """A schedule of the operations that ``ops``, an operation, a tensor, or a list of them, need.

    Raises ``TensorExpressionError`` for what is none.

    >>> import tir
    >>> from tir import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> s = te.create_schedule(B.op)
    >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
    >>> s[B].vectorize(inner)
    >>> print(tir.lower(s, [A, B], simple_mode=True)["main"].body)
    for i_outer in range(2):
        for i_inner in T.vectorized(4):
            B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner] * 2.0
    """
    given = ops if isinstance(ops, (list, tuple)) else [ops]
    made = [o.op if isinstance(o, Tensor) else o for o in given]
    if not made or not all(isinstance(o, Operation) for o in made):
        raise error(f"a schedule is of operations, not of {ops!r}", "te.create_schedule(C.op)")
    return Schedule(made)


class Schedule:
    """The stages of a graph of operations: ``s[C]`` is that of the tensor, or operation, ``C``."""

    def __init__(self, outputs: Sequence[Operation]):
        self.outputs = list(dict.fromkeys(outputs))
        self.stages: list[Stage] = []
        self.groups: list[Group] = []
        self._of: dict[Operation, Stage] = {}
        self._replay = Replay(self)
        for op in operations_of([t for o in self.outputs for t in o.outputs]):
            self._add(op)

    def __getitem__(self, tensor: Any) -> Stage:
        op = tensor.op if isinstance(tensor, Tensor) else tensor
        stage = self._of.get(op) if isinstance(op, Operation) else None
        if stage is None:
            names = ", ".join(s.name for s in self.stages)
            raise error(f"{_shown(tensor)} is not in this schedule", f"its stages are {names}")
        return stage

    def __contains__(self, tensor: Any) -> bool:
        return (tensor.op if isinstance(tensor, Tensor) else tensor) in self._of

    def __repr__(self) -> str:
        return f"te.Schedule({', '.join(s.name for s in self.stages)})"

    # ------------------------------------------------------------ the graph

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """Let ``readers``, tensors or operations, read a copy of ``tensor`` in the memory ``scope``. Returns the copy.

        Row ``t`` of the copy of a scan's state is the row that step ``t`` reads. Raises ``ScheduleError`` for a reader that
        does not read ``tensor``, and where the steps read several rows of a state.
        """
        call = self._call("cache_read", tensor, scope, readers)
        require_scope(call, scope)
        stages = [self[r] for r in (readers if isinstance(readers, (list, tuple)) else [readers])]
        source = self._now(_tensor(tensor, call))
        if not stages:
            raise refusal(
                call,
                "nothing is to read the copy",
                f"s.cache_read({tensor.name}, {scope!r}, [C]) for a C that reads it",
            )
        for stage in stages:
            if source not in stage.op.input_tensors:
                reads = ", ".join(t.name for t in stage.op.input_tensors)
                raise refusal(call, f"`{stage.name}` does not read `{tensor.name}`; it reads {reads or 'nothing'}")
        name = self._name(f"{tensor.name}_{scope}")
        if any(isinstance(s.op, ScanOp) and source in s.op.states for s in self.stages):
            return self._copy_of_state(source, name, scope, stages, call)
        copy = copy_of(source, name)
        chosen = {stage.op for stage in stages}
        self._add(copy, scope, call)
        self._rewrite({}, lambda op: {source: copy.output(0)} if op in chosen else {})
        return copy.output(0)

    def _copy_of_state(self, state: Tensor, name: str, scope: str, steps: Sequence[Stage], call: Call) -> Tensor:
        """A step of the scan before ``steps``, which copies the row that they read."""
        ops = [self._computation(stage, call) for stage in steps]
        ages = [age for op in ops for age in ages_of_rows(op, state)]
        if not all(structural_equal(age, ages[0]) for age in ages):
            rows = ", ".join(dict.fromkeys(map(repr, ages)))
            raise refusal(
                call,
                f"the steps read several rows of the state `{state.name}`, {rows} before their own, and a copy has one for each "
                "step",
                "a copy of what else the steps read, or of the result",
            )
        copy = copy_of_rows(state, name, ages[0])
        self._add(copy, scope, call)
        for stage, op in zip(steps, ops):
            self._change(stage, reading_own_row(op, state, copy.output(0)))
        return copy.output(0)

    def cache_write(self, tensor: Any, scope: str) -> Any:
        """Compute ``tensor`` in the memory ``scope`` and copy it out. Returns the tensor that is computed there.

        The stage of ``tensor`` is the copy from now on, with the axes it had; reduction axes are those of the result:
        ``s[CC].op.reduce_axis``. For several outputs of one operation give all of them, and get as many. Raises
        ``ScheduleError`` for an operation that is scheduled already, or is no ``te.compute``.
        """
        call = self._call("cache_write", tensor, scope)
        require_scope(call, scope)
        tensors = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
        if not tensors:
            raise refusal(call, "there is nothing to cache", f"s.cache_write(C, {scope!r})")
        stage = self[tensors[0]]
        op = self._computation(stage, call)
        if any(self[t] is not stage for t in tensors) or len(tensors) != op.num_outputs:
            raise refusal(call, f"all outputs of `{stage.name}` are cached together; it has {op.num_outputs}")
        if stage.relations:
            raise refusal(
                call,
                f"`{stage.name}` has been scheduled: {stage.relations[0].call}",
                "cache_write before that: the copy and the computation have loops of their own",
            )
        computed, copy = written_through(op, self._name(f"{stage.name}_{scope}"))
        self._add(computed, scope, call)
        self._change(stage, copy)
        stage.leaf_iter_vars = [a for a in stage.leaf_iter_vars if any(a is b for b in copy.axis)]
        return list(computed.outputs) if isinstance(tensor, (list, tuple)) else computed.output(0)

    def rfactor(self, tensor: Tensor, axis: Any, factor_axis: int | None = None) -> Any:
        """Reduce in two parts: partial results for each value of ``axis``, a loop over a part of the reduction, first.

        Returns the tensor of partial results (a list, for several outputs), whose dimension ``factor_axis`` (default: the
        first; in a scan the one after time) is ``axis``; ``s[tensor].op.reduce_axis[0]`` is the axis over which they are
        combined. Raises ``ScheduleError`` for an axis that is no loop of the reduction, or whose extent depends on other
        axes, for ``factor_axis=0`` in a scan, whose steps have time first, and for a reducer of which a sequence of values
        shows that their order matters.
        """
        call = self._call("rfactor", tensor, axis, *([] if factor_axis is None else [factor_axis]))
        stage = self[tensor]
        op = self._computation(stage, call)
        chosen = stage._free_leaf(axis, call)
        reduced = [a for a in stage.leaf_iter_vars if a.iter_type == "reduce"]
        if chosen.iter_type != "reduce":
            names = ", ".join(f"`{axis_name(a)}`" for a in reduced)
            raise refusal(
                call, f"`{axis_name(chosen)}` is no part of a reduction", f"the loops of the reduction are {names}"
            )
        scan = next((s.op for s in self.stages if isinstance(s.op, ScanOp) and op in s.op.steps), None)
        first = 0 if scan is None else 1
        wanted = first if factor_axis is None else factor_axis
        place = wanted + len(op.axis) + 1 if wanted < 0 else wanted
        if not first <= place <= len(op.axis):
            why = "" if scan is None else f", of which the first is time in a step of scan `{scan.name}`"
            raise refusal(call, f"factor_axis is a dimension of the partial results{why}", f"{first} to {len(op.axis)}")
        for a in reduced:
            stage._free_leaf(a, call)
        _require_any_order(stage, op, call)
        _require_unmixed(stage, call)
        loops = _reduction_loops(stage)
        extent = loops.domains[chosen].extent
        others = [a.var for a in (*op.axis, *op.reduce_axis)]
        if uses_var(extent, others) or next(loads_in(extent), None) is not None:
            raise refusal(
                call,
                f"`{axis_name(chosen)}` would be a dimension of the partial results, and its extent, `{extent!r}`, varies",
                f"split it by a factor first: rfactor(…, s[{stage.name}].split({axis_name(chosen)}, factor=4)[1])",
            )
        parts, combined = factored(op, self._name(f"{stage.name}_rf"), loops, chosen, place)
        self._add(parts, "", call)
        at = next(n for n, a in enumerate(stage.leaf_iter_vars) if a.iter_type == "reduce")
        self._change(stage, combined)
        spatial = [a for a in stage.leaf_iter_vars if a.iter_type != "reduce"]
        stage.leaf_iter_vars = [*spatial[:at], *combined.reduce_axis, *spatial[at:]]
        stage.relations = [r for r in stage.relations if all(p.iter_type != "reduce" for p in r.parents)]
        return list(parts.outputs) if len(parts.outputs) > 1 else parts.output(0)

    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> Group:
        """The stages that make ``outputs`` from ``inputs``, tensors or lists of them, to be placed together.

        The operations of ``inputs`` belong to it with ``include_inputs``. Raises ``ScheduleError`` where there are none.

        >>> from tir import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
        >>> D = te.compute((8,), lambda i: C[i] * C[i], name="D")
        >>> s = te.create_schedule(D.op)
        >>> s.create_group(outputs=C, inputs=A)
        Group(C, B)
        """
        call = self._call("create_group", outputs, inputs)
        groups = [g if isinstance(g, (list, tuple)) else [g] for g in (outputs, inputs)]
        last, first = ([self._now(_tensor(t, call)) for t in g] for g in groups)
        edge = [t for i in first for t in i.op.input_tensors] if include_inputs else first
        stages = tuple(self._of[op] for op in operations_between(last, edge))
        if not stages:
            raise refusal(call, "no operation is between the inputs and the outputs")
        made = Group(stages)
        self.groups.append(made)
        for stage in stages:
            stage.group = made
        return made

    def normalize(self) -> Schedule:
        """This schedule; the record needs no normal form."""
        return self

    # ------------------------------------------------------------ the program

    def to_schedule(
        self, args: Any = None, name: str = "main", binds: Mapping[Tensor, Buffer] | None = None
    ) -> BlockSchedule:
        """The block schedule that this schedule is: a new :class:`tir.Schedule`, whose trace has every step.

        ``args`` are the arguments of the function (default: the inputs, then the outputs). ``binds`` has buffers for tensors
        among them, with strides, an offset or an alignment; a buffer in ``args`` stands for its tensor. Raises ``ScheduleError``, with
        the user's line, for a step that is not legal.

        >>> from tir import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B.op)
        >>> _ = s[B].split(B.op.axis[0], factor=4)
        >>> [loop.name for loop in s.to_schedule().get_loops("B")]
        ['i_outer', 'i_inner']
        """
        try:
            require_name(name, "the name of a function")
        except (TypeError, ValueError) as fault:
            raise error(str(fault)) from fault
        declared = {self._now(t): buffer for t, buffer in _buffers(binds).items()}
        stands_for = {buffer: t for t, buffer in declared.items()}
        arguments = [stands_for.get(a, a) if isinstance(a, Buffer) else a for a in self.arguments(args)]
        return self._replay.schedule(arguments, name, declared)

    def lower(
        self,
        args: Any,
        name: str = "main",
        simple_mode: bool = False,
        target: Any = None,
        binds: Mapping[Tensor, Buffer] | None = None,
        **options: Any,
    ) -> Any:
        """What ``tir.lower(s, args)`` gives: the module, lowered for ``target``.

        The default target is that of a ``with`` around the call, else a GPU where loops are bound to threads, and this machine's CPU otherwise. ``binds`` are those of
        :meth:`to_schedule`, ``simple_mode`` and ``options`` those of ``tir.lower``.
        """
        from ..transform.pipeline import lower

        module = self.to_schedule(args, name, binds).mod
        return lower(
            module, target=target or Target.current() or _usual_target(module), simple_mode=simple_mode, **options
        )

    def build(
        self,
        args: Any,
        target: Any = None,
        target_host: Any = None,
        name: str = "main",
        binds: Mapping[Tensor, Buffer] | None = None,
    ) -> Any:
        """What ``tir.build(s, args, target, name=…)`` gives: a module with the function ``name``. ``binds`` are those of
        :meth:`to_schedule`."""
        from codegen.build import build

        module = self.to_schedule(args, name, binds).mod
        return build(IRModule.from_expr(module["main"]), target or Target.current() or _usual_target(module))

    def arguments(self, args: Any = None) -> list[Any]:
        """``args`` as they are in the graph now: lists flattened, tensors those of the stages."""
        if args is None:
            states = {t for s in self.stages if isinstance(s.op, ScanOp) for t in s.op.states}
            inputs = [s.op.output(0) for s in self.stages if isinstance(s.op, PlaceholderOp)]
            inputs = [t for t in inputs if t not in states]
            return [*inputs, *(t for o in self.outputs for t in self[o].op.outputs)]
        flat: list[Any] = []
        for item in args if isinstance(args, (list, tuple)) else [args]:
            if isinstance(item, (list, tuple)):
                flat += self.arguments(item)
            else:
                flat.append(self._now(item) if isinstance(item, Tensor) else item)
        return flat

    # ------------------------------------------------------------ what stages ask

    def is_output(self, op: Operation) -> bool:
        """Whether ``op`` is one of the operations that the schedule was made for."""
        return any(self._of[o].op is op for o in self.outputs)

    def owner_of(self, axis: Axis) -> str:
        """The name of the stage that ``axis`` belongs to; empty if there is none."""
        return next((s.name for s in self.stages if s.has_axis(axis)), "")

    # ------------------------------------------------------------ changes of the graph

    def _call(self, name: str, *args: Any) -> Call:
        return Call(f"s.{name}({', '.join(map(_shown, args))})", user_place())

    def _name(self, wanted: str) -> str:
        return unique_name(identifier(wanted), {s.op.name for s in self.stages})

    def _now(self, tensor: Tensor) -> Tensor:
        """What ``tensor`` is in the graph as it is now; an input that nothing here reads is itself."""
        if isinstance(tensor.op, PlaceholderOp) and tensor.op not in self._of:
            return tensor
        return self[tensor].op.output(tensor.value_index)

    def _computation(self, stage: Stage, call: Call) -> ComputeOp:
        if not isinstance(stage.op, ComputeOp):
            raise refusal(call, f"`{stage.name}` is no te.compute, but a {type(stage.op).__name__}")
        return stage.op

    def _add(self, op: Operation, scope: str = "", call: Call | None = None) -> Stage:
        stage = Stage(self, op, op.name, scope=scope, scope_call=call)
        self.stages.append(stage)
        self._of[op] = stage
        return stage

    def _change(self, stage: Stage, op: Operation) -> None:
        """``stage`` makes its tensors by ``op`` from now on."""
        old = stage.op
        stage.op = op
        self._of[op] = stage
        self._rewrite(dict(zip(old.outputs, op.outputs)), lambda _: {})

    def _rewrite(self, tensors: Mapping[Tensor, Tensor], more: Any) -> None:
        """Let operations read ``tensors``, and ``more(op)``, in the place of others; and so on for those that read them."""
        changed = dict(tensors)
        for stage in self._in_order():
            op = stage.op.with_inputs({**changed, **more(stage.op)})
            if op is not stage.op:
                changed |= dict(zip(stage.op.outputs, op.outputs))
                stage.op = op
                self._of[op] = stage

    def _in_order(self) -> list[Stage]:
        """The stages, each after those whose tensors it reads."""
        done: dict[int, Stage] = {}

        def visit(stage: Stage) -> None:
            if id(stage) not in done:
                for tensor in stage.op.input_tensors:
                    visit(self._of[tensor.op])
                done[id(stage)] = stage

        for stage in self.stages:
            visit(stage)
        return list(done.values())


# ---------------------------------------------------------------- loops of a reduction


def _usual_target(module: IRModule) -> str:
    from ..transform.thread_axes import starts_kernel

    return "cuda" if any(starts_kernel(n) for n in walk(module["main"].body)) else "llvm"


def _tensor(value: Any, call: Call) -> Tensor:
    if not isinstance(value, Tensor):
        raise refusal(call, f"{_shown(value)} is no tensor", "C, or C.op.output(0) of an operation")
    return value


def _buffers(binds: Any) -> Mapping[Tensor, Buffer]:
    if binds is None:
        return {}
    if not isinstance(binds, Mapping) or not all(isinstance(t, Tensor) for t in binds):
        raise error(
            f"`binds` has a buffer for each of its tensors; it is not {binds!r}", "{A: tir.decl_buffer(A.shape)}"
        )
    return binds


def _require_any_order(stage: Stage, op: ComputeOp, call: Call) -> None:
    for e in op.body:
        fault = associativity_counterexample(e.combiner) if isinstance(e, Reduce) else None
        if fault is not None:
            raise refusal(call, f"what `{stage.name}` is reduced by is no reduction: {fault}")


def _require_unmixed(stage: Stage, call: Call) -> None:
    """Require that no part of the reduction is fused with an axis of the results."""
    for r in stage.relations:
        if isinstance(r, Fuse) and len({p.iter_type == "reduce" for p in r.parents}) > 1:
            parts = " and ".join(f"`{axis_name(p)}`" for p in r.parents)
            raise refusal(
                call,
                f"`{axis_name(r.fused)}` is fused of {parts}, of which some are reduced and others not",
                "fuse axes of one kind",
            )


def _reduction_loops(stage: Stage) -> ReductionLoops:
    """The loops over parts of the reduction, and what they give for its axes."""
    domains = {a: a.dom for a in stage.op.reduce_axis if a.dom is not None}
    relations = [r for r in stage.relations if r.parents[0].iter_type == "reduce"]
    for relation in relations:
        domains |= _derived_domains(relation, domains)
    values: dict[Var, Expr] = {}
    guards: list[Expr] = []
    for relation in reversed(relations):
        made, guard = _parent_values(relation, domains)
        values |= {v: substitute(e, values) for v, e in made.items()}
        guards += [substitute(g, values) for g in guard]
    leaves = [a for a in stage.leaf_iter_vars if a.iter_type == "reduce"]
    return ReductionLoops({a: domains[a] for a in leaves}, values, guards)


def _derived_domains(relation: Split | Fuse, domains: Mapping[Axis, Range]) -> dict[Axis, Range]:
    extents = [domains[p].extent for p in relation.parents]
    if isinstance(relation, Fuse):
        total = extents[0]
        for extent in extents[1:]:
            total = total * extent
        return {relation.fused: _from_zero(total)}
    if relation.factor is not None:
        inner = _extent(relation.factor, extents[0])
        return {relation.outer: _from_zero((extents[0] + inner - 1) // inner), relation.inner: _from_zero(inner)}
    outer = _extent(relation.nparts, extents[0])
    return {relation.outer: _from_zero(outer), relation.inner: _from_zero((extents[0] + outer - 1) // outer)}


def _extent(size: int | Expr | None, like: Expr) -> Expr:
    """A factor, in the type of an extent."""
    assert size is not None
    return size if isinstance(size, Expr) else const(size, like.dtype)


def _from_zero(extent: Expr) -> Range:
    return Range(const(0, extent.dtype), simplify(extent))


def _parent_values(relation: Split | Fuse, domains: Mapping[Axis, Range]) -> tuple[dict[Var, Expr], list[Expr]]:
    """What the parents are in the children's values, and the condition for it to be in the parent's domain."""
    if isinstance(relation, Split):
        domain = domains[relation.parent]
        step = domains[relation.inner].extent
        value = relation.outer.var * step + relation.inner.var
        whole = Analyzer().can_prove(domains[relation.outer].extent * step <= domain.extent)
        return {relation.parent.var: domain.min + value}, [] if whole else [value < domain.extent]
    rest: Expr = relation.fused.var
    values: dict[Var, Expr] = {}
    for axis in reversed(relation.parents[1:]):
        domain = domains[axis]
        values[axis.var] = domain.min + rest % domain.extent
        rest = rest // domain.extent
    values[relation.parents[0].var] = domains[relation.parents[0]].min + rest
    return values, []


# ---------------------------------------------------------------- inlining by class


def _inline(schedule: Schedule, chosen: Iterable[Stage]) -> None:
    for stage in chosen:
        if stage.attach is None and not schedule.is_output(stage.op):
            stage.compute_inline()


def _maps(schedule: Schedule) -> list[Stage]:
    """The stages that compute each element by an expression without reductions."""
    return [s for s in schedule.stages if isinstance(s.op, ComputeOp) and not s.op.reduce_axis and len(s.op.body) == 1]


def AutoInlineInjective(schedule: Schedule) -> None:
    """Inline every stage, but for outputs, that is an expression without reductions."""
    _inline(schedule, _maps(schedule))


def AutoInlineElemWise(schedule: Schedule) -> None:
    """Inline every stage, but for outputs, that reads its inputs at its own indices."""
    _inline(schedule, (s for s in _maps(schedule) if _reads_at(s.op, lambda index, own: list(index) == own)))


def AutoInlineBroadcast(schedule: Schedule) -> None:
    """Inline every stage, but for outputs, that reads its inputs at some of its own indices, in order."""
    _inline(schedule, (s for s in _maps(schedule) if _reads_at(s.op, _is_subsequence)))


def _reads_at(op: Any, is_wanted: Any) -> bool:
    own = [id(a.var) for a in op.axis]
    return all(is_wanted([id(i) for i in load.indices], own) for e in op.body for load in loads_in(e))


def _is_subsequence(index: list[int], own: list[int]) -> bool:
    left = iter(own)
    return all(any(i == o for o in left) for i in index)
