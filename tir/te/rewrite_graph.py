"""Steps on the graph of operations: copies of a tensor's inputs and outputs, and reductions in two parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..arith import simplify
from ..buffer import Range
from ..expr import TRUE, Expr, Reduce, Var, all_of, const, is_const
from ..visit import rewrite, substitute, uses_var
from .computation import ComputeOp, axes_of
from .split_reductions import reduction_groups
from .tensor import Axis, Tensor, TensorLoad, loads_in


def fresh_axes(axes: Iterable[Axis], suffix: str = "") -> tuple[tuple[Axis, ...], dict[Var, Expr]]:
    """New axes like ``axes``, and the variables that take the places of the old ones."""
    made: list[Axis] = []
    values: dict[Var, Expr] = {}
    for axis in axes:
        assert axis.dom is not None
        own = Var(axis.var.name + suffix, axis.var.dtype)
        made.append(Axis(substitute(axis.dom, values), own, axis.iter_type))
        values[axis.var] = own
    return tuple(made), values


def copy_of(tensor: Tensor, name: str) -> ComputeOp:
    """The operation that copies ``tensor``."""
    axes = axes_of(tensor.shape, (f"ax{n}" for n in range(tensor.ndim)))
    return ComputeOp(name, axes, (TensorLoad(tensor, tuple(a.var for a in axes)),))


def ages_of_rows(step: ComputeOp, state: Tensor) -> list[Expr]:
    """How many rows before its own are those that a step of a scan reads of ``state``."""
    time = step.axes[0].var
    return [simplify(time - load.indices[0]) for e in step.body for load in loads_in(e) if load.tensor is state]


def copy_of_rows(state: Tensor, name: str, age: Expr) -> ComputeOp:
    """The operation whose row ``t`` is row ``t - age`` of ``state``."""
    copy = copy_of(state, name)
    time, *others = (a.var for a in copy.axes)
    return ComputeOp(name, copy.axes, (TensorLoad(state, (time - age, *others)),))


def reading_own_row(step: ComputeOp, state: Tensor, copy: Tensor) -> ComputeOp:
    """A step of a scan that reads its own row of ``copy`` in the place of a row of ``state``."""
    time = step.axes[0].var

    def visit(item: Any) -> Any:
        if isinstance(item, TensorLoad) and item.tensor is state:
            return TensorLoad(copy, (time, *item.indices[1:]))
        return None

    body = tuple(rewrite(e, visit) for e in step.body)
    return replace(step, body=body)


def written_through(op: ComputeOp, name: str) -> tuple[ComputeOp, ComputeOp]:
    """``op`` as the operation ``name`` that computes its tensors, and the one that copies them to their old places.

    The copy has the axes of ``op``; the computation has axes of its own, and reduces over those of ``op``.
    """
    axes, values = fresh_axes(op.axis, "_c")
    body = renewed(op.body, values)
    computed = replace(op, name=name, axes=axes, body=body)
    indices = tuple(a.var for a in op.axis)
    copied = tuple(TensorLoad(computed.output(n), indices) for n in range(len(body)))
    return computed, ComputeOp(op.name, op.axes, copied, place=op.place)


def renewed(body: Sequence[Expr], values: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    """``body`` with variables replaced; it reduces over the same axes, unless their domains depend on those variables.

    Results of one reduction stay results of one: they have the same new axes.
    """
    made: dict[tuple[Var, ...], tuple[tuple[Axis, ...], dict[Var, Expr]]] = {}

    def one(e: Expr) -> Expr:
        if not isinstance(e, Reduce):
            return substitute(e, dict(values))
        own = tuple(a.var for a in e.axis)
        if own not in made:
            depend = any(uses_var(part, list(values)) for a in e.axis for part in a.dom.children())
            placed = (a.replace(dom=substitute(a.dom, dict(values))) for a in e.axis)
            made[own] = fresh_axes(placed) if depend else (e.axis, {})
        axes, inner = made[own]
        return substitute(e.replace(axis=()), {**values, **inner}).replace(axis=axes)

    return tuple(map(one, body))


@dataclass(frozen=True)
class ReductionLoops:
    """The loops that a reduction runs over: ``domains`` by their axes, and the ``values`` of its reduction axes there.

    ``guards`` hold where those values are in their domains.
    """

    domains: Mapping[Axis, Range]
    values: Mapping[Var, Expr]
    guards: Sequence[Expr]


def factored(op: ComputeOp, name: str, loops: ReductionLoops, chosen: Axis, place: int) -> tuple[ComputeOp, ComputeOp]:
    """A reduction as partial results (the operation ``name``), one for each value of ``chosen``, and their combination.

    ``chosen``, one of ``loops``, becomes dimension ``place`` of the partial results.
    """
    own = Var(chosen.var.name, chosen.var.dtype)
    extent = loops.domains[chosen].extent
    axes, moved = fresh_axes(op.axis)
    reduced: list[Axis] = []
    for a, dom in loops.domains.items():  # of which the later ones may depend on those before
        if a is chosen:
            start = substitute(dom.min, moved)
            moved[a.var] = own if is_const(start, 0) else own + start
        else:
            (axis,), values = fresh_axes([a.replace(dom=substitute(dom, moved), iter_type="reduce")])
            reduced.append(axis)
            moved |= values

    def partial(e: Any) -> Expr:
        bare = substitute(
            e.replace(axis=(), init=(), condition=all_of([*loops.guards, e.condition])), dict(loops.values)
        )
        return substitute(bare, moved).replace(axis=tuple(reduced))

    first = Axis(Range(const(0, own.dtype), extent), own, "spatial")
    parts = ComputeOp(name, (*axes[:place], first, *axes[place:]), tuple(map(partial, op.body)), place=op.place)
    again = Axis(first.dom, Var(f"{own.name}_v", own.dtype), "reduce")
    indices: list[Any] = [a.var for a in op.axis]
    indices.insert(place, again.var)
    combined: list[Expr] = []
    for group in reduction_groups(op.body):
        reads = tuple(TensorLoad(t, tuple(indices)) for t in parts.outputs[len(combined) :][: len(group)])
        combined += [e.replace(source=reads, axis=(again,), condition=TRUE) for e in group]
    return parts, replace(op, body=tuple(combined))
