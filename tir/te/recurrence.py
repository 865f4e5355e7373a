"""``te.scan``: recurrences, each step of which reads what steps before it made."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..arith import Analyzer, simplify
from ..buffer import Range
from ..dtype import DType
from ..equal import structural_equal
from ..expr import Expr, Var
from ..visit import substitute
from .computation import ComputeOp
from .tag import notes
from .tensor import Axis, Operation, PlaceholderOp, Tensor, loads_in, operations_of
from .user_lines import error


@dataclass(frozen=True, eq=False, repr=False)
class ScanOp(Operation):
    """States over time: output ``n`` is ``states[n]``, whose first rows ``init[n]`` makes, and the others ``update[n]``.

    ``scan_axis`` runs over the rows that updates make.

    >>> from tir import te
    >>> X = te.placeholder((8,), name="X")
    >>> state = te.placeholder((8,), name="state")
    >>> first = te.compute((1,), lambda i: X[i], "first")
    >>> next_ = te.compute((8,), lambda t: state[t - 1] + X[t], "next")
    >>> total = te.scan(first, next_, state, inputs=[X], name="total")
    >>> type(total.op).__name__, total.op.scan_axis.dom.extent, total.shape
    ('ScanOp', 7, (8,))
    """

    scan_axis: Axis
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    states: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...] = field(default=())

    @property
    def num_outputs(self) -> int:
        return len(self.states)

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return self.states[index].shape

    def output_dtype(self, index: int) -> DType:
        return self.states[index].dtype

    @property
    def axis(self) -> tuple[Axis, ...]:
        return (self.scan_axis,)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return (*self.init, *self.update)

    def with_inputs(self, tensors: Mapping[Tensor, Tensor]) -> Operation:
        if not any(t in tensors for t in self.input_tensors):
            return self
        init, update = (tuple(tensors.get(t, t) for t in group) for group in (self.init, self.update))
        return replace(self, init=init, update=update)

    @functools.cached_property
    def steps(self) -> tuple[Operation, ...]:
        """What is computed at every step: the operations between the states and the updates, in order."""
        carried = {t.op for t in self.states}
        order: list[Operation] = []
        for op in operations_of(self.update):
            if any(t.op in carried for t in op.input_tensors):
                carried.add(op)
                order.append(op)
        first = [t.op for t in self.update if t.op not in carried]
        return (*dict.fromkeys(first), *order)


def scan(
    init: Any,
    update: Any,
    state_placeholder: Any,
    inputs: Any = None,
    name: str = "scan",
    tag: str = "",
    attrs: Any = None,
) -> Any:
    """A recurrence over the first dimension of its state.

    ``state_placeholder`` is an input that stands for the state; ``init`` makes its first rows, and ``update``, of the
    shape of the state, the rows after these from rows before. Lists of the three make several states. An update may
    read other tensors that read the state, and the updates of other states. ``inputs`` names what else is read.

    The result is the state (a list of them, for several). Raises ``TensorExpressionError`` where shapes or types do not
    agree, and where a step reads a row of a state that is not made before.

    >>> from tir import te
    >>> X = te.placeholder((8, 4), name="X")
    >>> state = te.placeholder((8, 4), name="state")
    >>> init = te.compute((1, 4), lambda t, i: X[0, i], name="init")
    >>> update = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    >>> te.scan(init, update, state, inputs=[X], name="cumsum")
    Tensor(cumsum, (8, 4), float32)
    """
    several = isinstance(init, (list, tuple))
    groups = [tuple(g) if isinstance(g, (list, tuple)) else (g,) for g in (init, update, state_placeholder)]
    for group, what in zip(groups, ("init", "update", "state")):
        for t in group:
            if not isinstance(t, Tensor):
                raise error(f"the {what} of a scan is a tensor, not {t!r}")
    if len({len(g) for g in groups}) > 1 or not groups[0]:
        counts = ", ".join(f"{len(g)} {what}" for g, what in zip(groups, ("inits", "updates", "states")))
        raise error(f"a scan has as many inits as updates and states, not {counts}")
    for group, what in zip(groups[1:], ("update", "state")):
        if len({id(t) for t in group}) < len(group):
            raise error(f"a tensor is the {what} of two states of a scan")
    for first, step, state in zip(*groups):
        _check_shapes(first, step, state)
    inputs = [inputs] if isinstance(inputs, Tensor) else inputs
    if not isinstance(inputs, (list, tuple, type(None))):
        raise error(f"the inputs of a scan are a list of tensors, not {inputs!r}")
    made = ScanOp(name, _time(groups), groups[0], groups[1], groups[2], tuple(inputs or ()), **notes(tag, attrs))
    _check_steps(made)
    return list(made.outputs) if several else made.output(0)


def _time(groups: Sequence[tuple[Tensor, ...]]) -> Axis:
    """The axis of time, named as the first axis of the first update."""
    (first, *_), (step, *_), (state, *_) = groups
    axes = step.op.axis
    begin, end = first.shape[0], state.shape[0]
    return Axis(Range.of(begin, end), Var(axes[0].var.name if axes else "t", end.dtype), "scan")


def _check_shapes(init: Tensor, update: Tensor, state: Tensor) -> None:
    if not isinstance(state.op, PlaceholderOp):
        raise error(f"the state of a scan is a placeholder, not `{state.name}`", "te.placeholder(shape)")
    for t, what in ((init, "init"), (update, "update")):
        if t.dtype is not state.dtype:
            raise error(f"{what} `{t.name}` of a scan is {t.dtype}, its state `{state.name}` is {state.dtype}")
        first = 1 if what == "init" else 0
        if t.ndim != state.ndim or not state.ndim or not _same(t.shape[first:], state.shape[first:]):
            expected = f"(rows, {', '.join(map(repr, state.shape[1:]))})" if first else repr(state.shape)
            raise error(f"{what} `{t.name}` of a scan has shape {t.shape}; for state `{state.name}` it is {expected}")


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return all(structural_equal(simplify(x), simplify(y)) for x, y in zip(a, b))


def _check_steps(op: ScanOp) -> None:
    rows = op.states[0].shape[0]
    for group, what in ((op.states, "states"), (op.init, "inits")):
        if not all(_same(t.shape[:1], group[0].shape[:1]) for t in group):
            counts = ", ".join(f"`{t.name}` {t.shape[0]!r}" for t in group)
            raise error(f"the {what} of a scan have as many rows each, not {counts}")
    for step in op.steps:
        if not isinstance(step, ComputeOp):
            raise error(f"`{step.name}`, a step of scan `{op.name}`, is not made by te.compute")
        if not step.axis or not _same([step.axis[0].dom.extent], [rows]):  # type: ignore[union-attr]
            raise error(
                f"`{step.name}`, a step of scan `{op.name}`, has shape {step.output_shape(0)}; the first dimension of a "
                f"step is time: {rows!r}",
                place=step.place,
            )
        for load in (load for e in step.body for load in loads_in(e)):
            _check_row(op, step, load)


def _check_row(op: ScanOp, step: ComputeOp, load: Any) -> None:
    """Every row that a step reads of a state is made before, and of another step made at the same time."""
    time = step.axis[0].var
    row: Any = load.indices[0] if load.indices else None
    known = Analyzer()
    known.bind(time, op.scan_axis.dom)
    if load.tensor in op.states:
        if known.can_prove(row >= time):
            other = op.update[op.states.index(load.tensor)].name
            raise error(
                f"`{step.name}` reads `{load!r}`, a row of the state that is not made before time `{time.name}`",
                f"rows up to {time.name} - 1; `{other}` has the row of the same time",
                step.place,
            )
        first = simplify(substitute(row, {time: op.scan_axis.dom.min}))
        if Analyzer().can_prove(first < 0):
            raise error(
                f"`{step.name}` reads `{load!r}`, which the first step, {time.name} = {op.scan_axis.dom.min!r}, has not "
                f"made: an init of {op.scan_axis.dom.min!r} rows is too short",
                place=step.place,
            )
    elif load.tensor.op in op.steps and not known.can_prove_equal(row, time):
        raise error(
            f"`{step.name}` reads `{load!r}` of step `{load.tensor.name}` at another time than `{time.name}`",
            f"make `{load.tensor.name}` a state, to read what steps before made of it",
            step.place,
        )
