"""Reductions inside expressions become operations of their own.

``te.sum(A[i, k], axis=k) / n`` reads a helper tensor that has just the axes the reduction depends on. Equal reductions of
one computation share a helper. A reduction under a condition is computed only where the condition holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..analysis.block_regions import hulls_without_data
from ..arith import Analyzer, simplify
from ..buffer import Range
from ..equal import structural_equal
from ..expr import Add, Call, Expr, IntImm, Let, Max, Min, Mul, Reduce, Var, all_of, const, logical_not, max_
from ..names import unique_name
from ..visit import rewrite, substitute, uses_var
from .computation import ComputeOp, free_variables, has_reduction
from .tag import notes
from .tensor import Axis, TensorLoad
from .user_lines import error

_WORDS = {Add: "sum", Mul: "prod", Max: "max", Min: "min"}


def split_off(body: tuple[Expr, ...], axes: tuple[Axis, ...], name: str) -> tuple[Expr, ...]:
    """``body`` without reductions, or made of reductions over the same axes, none inside of another."""
    if not any(has_reduction(e) for e in body):
        return body
    splitter = _Splitter(name, axes)
    body = tuple(_without_lets(e) for e in body)
    if are_one_reduction(body):
        return tuple(splitter.inside(e, _Context(axes)) for e in body)  # type: ignore[arg-type]
    return tuple(splitter.expr(e, _Context(axes)) for e in body)


def are_one_reduction(body: Sequence[Expr]) -> bool:
    """Whether all of ``body`` are reductions over the same axes under the same condition, each with all its results."""
    if not all(isinstance(e, Reduce) for e in body):
        return False
    first = body[0]
    expected: list[int] = []
    for group in reduction_groups(body):
        expected += range(len(group[0].source))
        if [id(a.var) for a in group[0].axis] != [id(a.var) for a in first.axis]:
            return False
        if not structural_equal(group[0].condition, first.condition):
            return False
    return [e.value_index for e in body] == expected


def reduction_groups(body: Sequence[Any]) -> Iterator[list[Any]]:
    """The results of ``body`` in runs that one reduction gives."""
    at = 0
    while at < len(body):
        size = 1
        while at + size < len(body) and size < len(body[at].source) and _same(body[at], body[at + size]):
            size += 1
        yield list(body[at : at + size])
        at += size


def _same(a: Reduce, b: Reduce) -> bool:
    """Whether two reductions are results of one."""
    same = a.source is b.source and a.combiner is b.combiner and a.axis is b.axis
    return same or structural_equal(a.replace(value_index=0), b.replace(value_index=0))


def _without_lets(e: Expr) -> Expr:
    return rewrite(e, lambda n: substitute(n.body, {n.var: n.value}) if isinstance(n, Let) else None)


@dataclass(frozen=True)
class _Context:
    """Where an expression stands: the axes that are known there, and the conditions under which it is evaluated."""

    axes: tuple[Any, ...]
    guards: tuple[Expr, ...] = ()

    def under(self, guard: Expr) -> _Context:
        return _Context(self.axes, self.guards if isinstance(guard, IntImm) else (*self.guards, guard))

    def over(self, axes: tuple[Any, ...]) -> _Context:
        return _Context((*self.axes, *axes), self.guards)

    def of(self, *items: Any) -> list[Any]:
        """The axes that ``items`` depend on, through the domains of other axes too."""
        used = {v for item in items for v in free_variables(item)}
        found: list[Any] = []
        for axis in reversed(self.axes):
            if axis.var in used:
                used |= set(free_variables(axis.dom))
                found.append(axis)
        return found[::-1]


@dataclass
class _Splitter:
    """Makes the helpers of one computation."""

    name: str
    axes: tuple[Axis, ...]
    helpers: list[tuple[Reduce, tuple[Any, ...], ComputeOp, tuple[Expr, ...]]] = field(default_factory=list)

    def expr(self, e: Any, context: _Context) -> Any:
        """``e`` with every reduction in it replaced by a read of its helper."""
        if not has_reduction(e):
            return e
        if isinstance(e, Reduce):
            return self.helper(self.inside(e, context), context)
        if isinstance(e, Call) and e.op == "if_then_else":
            condition, yes, no = e.args
            condition = self.expr(condition, context)
            yes = self.expr(yes, context.under(condition))
            return e.replace(args=(condition, yes, self.expr(no, context.under(logical_not(condition)))))
        return e.map_children(lambda child: self.expr(child, context))

    def inside(self, e: Reduce, context: _Context) -> Reduce:
        """``e`` without reductions in its parts."""
        if any(has_reduction(a.dom) for a in e.axis):
            raise error(
                f"an extent of an axis of `{self.name}` is a reduction", "compute the extents as a tensor first"
            )
        inner = context.over(e.axis)
        condition = self.expr(e.condition, inner)
        source = tuple(self.expr(s, inner.under(condition)) for s in e.source)
        init = tuple(self.expr(s, context) for s in e.init)
        return e.replace(source=source, init=init, condition=condition)

    def helper(self, e: Reduce, context: _Context) -> TensorLoad:
        """The read of the tensor that ``e`` gives, at the axes of its place."""
        guards = [g for g in context.guards if _concerns(g, e, context)]
        for known, known_guards, op, indices in self.helpers:
            if _same(known, e) and structural_equal(known_guards, tuple(guards)):
                return TensorLoad(op.output(e.value_index), indices)
        op, indices = self.make(e, context, guards)
        self.helpers.append((e, tuple(guards), op, indices))
        return TensorLoad(op.output(e.value_index), indices)

    def make(self, e: Reduce, context: _Context, guards: list[Expr]) -> tuple[ComputeOp, tuple[Expr, ...]]:
        used = context.of(e, *guards)
        axes, indices, values, limits = [], [], {}, []
        for axis in used:
            domain, limit = _box(axis, used, self.name)
            own = Var(axis.var.name, axis.var.dtype)
            axes.append(Axis(Range(const(0, own.dtype), domain.extent), own, "spatial"))
            indices.append(simplify(axis.var - domain.min))
            values[axis.var] = simplify(own + domain.min)
            limits += limit
        condition = all_of([*limits, *guards, e.condition])
        moved = substitute(e.replace(condition=condition), values)
        body = tuple(moved.replace(value_index=n) for n in range(len(e.source)))
        word = _WORDS.get(type(e.combiner.result[0])) if len(e.source) == 1 else None
        name = unique_name(f"{self.name}_{word or 'reduce'}", {op.name for _, _, op, _ in self.helpers})
        return ComputeOp(name, tuple(axes), body, **notes()), tuple(indices)


def _concerns(guard: Expr, e: Reduce, context: _Context) -> bool:
    """Whether ``guard`` may say at which of its instances ``e`` is evaluated."""
    axes = context.of(guard)
    own = context.of(e)
    return not axes or any(a.var is b.var for a in axes for b in own)


def _box(axis: Any, used: Sequence[Any], name: str) -> tuple[Range, list[Expr]]:
    """A domain for ``axis`` that depends on no other axis, and the conditions under which its values are those."""
    others = [a.var for a in used]
    if not any(uses_var(part, others) for part in axis.dom.children()):
        return axis.dom, []
    loops = [(a.var, a.dom.min, a.dom.extent) for a in used]
    (hull,) = hulls_without_data([Range(axis.var, const(1, axis.var.dtype))], loops)
    if hull is None:
        raise error(
            f"a reduction inside an expression of `{name}` runs over `{axis.var.name}`, whose extent depends on data",
            "compute the inner reduction as a tensor of its own",
        )
    limits = [axis.var >= axis.dom.min, axis.var < axis.dom.min + axis.dom.extent]
    extent = simplify(hull.extent)
    if not Analyzer().can_prove(extent >= 0):  # the hull of nothing
        extent = simplify(max_(extent, 0))
    return Range(simplify(hull.min), extent), limits
