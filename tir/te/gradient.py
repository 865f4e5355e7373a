"""``te.gradient``: derivatives of a tensor by the tensors it is computed from, in reverse mode, as tensor expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..arith import Analyzer, simplify
from ..arith.linear import linear
from ..buffer import Range
from ..expr import (
    Add,
    Call,
    Cast,
    Div,
    Expr,
    Let,
    Max,
    Min,
    Mul,
    Reduce,
    Select,
    Sub,
    Var,
    all_of,
    const,
    is_const,
    logical_not,
)
from ..op import call
from ..render import short_text
from ..visit import substitute, uses_var
from .computation import ComputeOp, compute
from .reducers import sum as te_sum
from .rewrite_graph import fresh_axes
from .symbolic_sizes import requirements
from .tensor import Axis, PlaceholderOp, Tensor, TensorLoad, loads_in, operations_of, read, reduce_axis
from .user_lines import error

_UNARY: dict[str, Callable[[Any, Any], Any]] = {  # the derivative at x, where the value is y
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2),
    "exp10": lambda x, y: y * math.log(10),
    "expm1": lambda x, y: y + 1.0,
    "log": lambda x, y: 1.0 / x,
    "log2": lambda x, y: 1.0 / (x * math.log(2)),
    "log10": lambda x, y: 1.0 / (x * math.log(10)),
    "log1p": lambda x, y: 1.0 / (x + 1.0),
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: y * y * y * -0.5,
    "sigmoid": lambda x, y: y * (1.0 - y),
    "tanh": lambda x, y: 1.0 - y * y,
    "erf": lambda x, y: call("exp", x * x * -1.0) * (2 / math.sqrt(math.pi)),
    "erfc": lambda x, y: call("exp", x * x * -1.0) * (-2 / math.sqrt(math.pi)),
    "sin": lambda x, y: call("cos", x),
    "cos": lambda x, y: call("sin", x) * -1.0,
    "tan": lambda x, y: y * y + 1.0,
    "asin": lambda x, y: call("rsqrt", 1.0 - x * x),
    "acos": lambda x, y: call("rsqrt", 1.0 - x * x) * -1.0,
    "atan": lambda x, y: 1.0 / (x * x + 1.0),
    "sinh": lambda x, y: call("cosh", x),
    "cosh": lambda x, y: call("sinh", x),
    "fabs": lambda x, y: Select(x >= 0.0, const(1, x.dtype), const(-1, x.dtype)),
    "abs": lambda x, y: Select(x >= 0.0, const(1, x.dtype), const(-1, x.dtype)),
}  # fmt: skip
_FLAT = frozenset({"floor", "ceil", "trunc", "round", "nearbyint"})  # the derivative is 0 where there is one


def gradient(output: Tensor, inputs: Any, head: Tensor | None = None) -> list[Tensor]:
    """The derivatives of ``output`` by each of ``inputs``, times ``head``: one tensor for each input.

    ``head`` has a shape that ends with that of ``output``, and each result that beginning and then the shape of its input;
    without ``head`` the results are Jacobians, of the shape of ``output`` and then of the input. Floats have derivatives,
    also through sums, products, maxima and minima (of equal elements each), choices and gathers; integers and conditions count as
    constant, and so do rounding functions. An axis that an index determines is solved for, so that the derivative of
    a product is a product again.

    Raises ``TensorExpressionError`` for what is not made by ``te.compute``, for other reductions and functions, and for a
    ``head`` of another shape or type.

    >>> from tir import te
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.compute((4,), lambda i: A[i] * A[i], name="B")
    >>> (dA,) = te.gradient(B, [A], head=te.placeholder((4,), name="dB"))
    >>> dA.shape, dA.dtype
    ((4,), 'float32')
    """
    wanted = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for t in (output, *wanted):
        if not isinstance(t, Tensor) or not t.dtype.is_float:
            raise error(f"derivatives are of a tensor of floats by tensors of floats, not of {t!r}")
    if head is not None and not isinstance(head, Tensor):
        raise error(f"the head of a derivative is a tensor, not {head!r}")
    head = _identity(output) if head is None else head
    before = head.ndim - output.ndim
    ends = zip(head.shape[max(before, 0) :], output.shape)
    if before < 0 or head.dtype is not output.dtype or not all(Analyzer().can_prove_equal(a, b) for a, b in ends):
        raise error(
            f"the head of a derivative of {output!r} is of {output.dtype}, and its shape ends with that; not {head!r}"
        )
    adjoints: dict[Tensor, list[Tensor]] = {output: [head]}
    operations = operations_of([output])
    needed = _between(operations, wanted)
    with requirements(c for op in operations for c in op.requires):
        for op in reversed(operations):
            for tensor in op.outputs:
                if tensor in adjoints and tensor in needed and not isinstance(op, PlaceholderOp):
                    _propagate(tensor, _sum(adjoints[tensor]), before, needed, adjoints)
        return [_sum(adjoints[t]) if t in adjoints else _zeros(head.shape[:before], t) for t in wanted]


def _identity(tensor: Tensor) -> Tensor:
    def element(*i: Any) -> Expr:
        same = all_of([a == b for a, b in zip(i[: tensor.ndim], i[tensor.ndim :])])
        return Select(same, const(1, tensor.dtype), const(0, tensor.dtype))

    return compute((*tensor.shape, *tensor.shape), element, name=f"{tensor.name}_identity")


def _zeros(prefix: Sequence[Expr], tensor: Tensor) -> Tensor:
    return compute((*prefix, *tensor.shape), lambda *i: const(0, tensor.dtype), name=f"{tensor.name}_grad")


def _sum(parts: list[Tensor]) -> Tensor:
    """All contributions added; the list is that one sum afterwards."""
    while len(parts) > 1:
        a, b = parts.pop(0), parts.pop(0)
        parts.insert(0, compute(a.shape, lambda *i, a=a, b=b: read(a, i) + read(b, i), name=a.name))
    return parts[0]


def _between(operations: Iterable[Any], inputs: Sequence[Tensor]) -> set[Tensor]:
    """The tensors through which a derivative reaches one of ``inputs``."""
    found = set(inputs)
    for op in operations:
        if any(t in found for t in op.input_tensors):
            found.update(op.outputs)
    return found


def _propagate(
    tensor: Tensor, adjoint: Tensor, before: int, needed: set[Tensor], adjoints: dict[Tensor, list[Tensor]]
) -> None:
    """Add what ``adjoint``, that of ``tensor``, gives for the tensors that its operation reads."""
    op = tensor.op
    if not any(t in needed for t in op.input_tensors):
        return
    if not isinstance(op, ComputeOp):
        raise error(f"`{tensor.name}` has no derivative: it is no te.compute", place=op.place)
    body = op.body[tensor.value_index]
    point = _Point(tensor, adjoint, before, list(op.axis))
    if isinstance(body, Reduce):
        point.axes += body.axis
        point.condition = body.condition
        body, weight = _reduced(body, tensor)
    else:
        weight = const(1, tensor.dtype)
    for load, factor in _derivatives(body, weight, needed):
        adjoints.setdefault(load.tensor, []).append(point.contribution(load, factor))


def _reduced(e: Reduce, tensor: Tensor) -> tuple[Expr, Expr]:
    """What a reduction reduces, and the derivative of the result by it."""
    one, zero = const(1, tensor.dtype), const(0, tensor.dtype)
    kind = type(e.combiner.result[0])
    plain = len(e.source) == 1 and not any(True for i in e.init for _ in loads_in(i))
    if plain and kind is Add:
        return e.source[0], one
    if plain and kind in (Max, Min):
        axes = tensor.op.axis
        result = TensorLoad(tensor, tuple(a.var for a in axes))  # type: ignore[attr-defined]
        return e.source[0], Select(e.source[0] == result, one, zero)
    if plain and kind is Mul and is_const(e.combiner.identity[0], 1):
        axes, values = fresh_axes(e.axis, "_other")
        here = all_of([a.var == own.var for a, own in zip(axes, e.axis)])
        condition = all_of([logical_not(here), substitute(e.condition, values)])
        return e.source[0], e.replace(source=(substitute(e.source[0], values),), axis=axes, condition=condition)
    raise error(
        f"the reduction of `{tensor.name}` has no derivative here", "te.sum, te.max, te.min, te.prod", tensor.op.place
    )


@dataclass
class _Point:
    """Where a derivative is taken: an element of ``tensor``, at ``axes`` of it and of its reduction, where ``condition`` holds."""

    tensor: Tensor
    adjoint: Tensor
    before: int
    axes: list[Axis]
    condition: Expr = field(default_factory=lambda: const(1, "bool"))

    def contribution(self, load: TensorLoad, factor: Expr) -> Tensor:
        """The sum over all elements that read ``load.tensor`` at an element of it, by this ``load``."""
        source = load.tensor
        shape = (*self.adjoint.shape[: self.before], *source.shape)

        def element(*i: Any) -> Expr:
            prefix, at = i[: self.before], i[self.before :]
            known = Analyzer({v: Range(const(0, v.dtype), extent) for v, extent in zip(i, shape)})
            values, conditions = _solved(self.axes, load.indices, at)
            inside = [self._inside(a) for a in self.axes if a.var in values]
            fresh: list[Axis] = []
            for a in [a for a in self.axes if a.var not in values]:
                dom = Range(*(substitute(part, values) for part in a.dom.children()))  # type: ignore[union-attr]
                fresh.append(reduce_axis(dom, a.var.name))
                values = {v: substitute(e, {a.var: fresh[-1].var}) for v, e in values.items()}
                values[a.var] = fresh[-1].var
                known.bind(fresh[-1].var, dom)
            where = known.simplify(substitute(all_of([*conditions, *inside, self.condition]), values))
            place = (*prefix, *(a.var for a in self.tensor.op.axis))  # type: ignore[attr-defined]
            value = _times(read(self.adjoint, place), factor)
            return _total(substitute(value, values), fresh, where)

        return compute(shape, element, name=f"{source.name}_grad")

    def _inside(self, axis: Axis) -> Expr:
        assert axis.dom is not None
        return all_of([axis.var >= axis.dom.min, axis.var < axis.dom.min + axis.dom.extent])


def _total(value: Expr, axes: list[Axis], where: Expr) -> Expr:
    if axes:
        return te_sum(value, axis=axes, where=where)
    return value if is_const(where, 1) else _where(where, value, const(0, value.dtype))


def _where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return call("if_then_else", condition, yes, no, dtype=str(yes.dtype))


def _solved(axes: Sequence[Axis], indices: Sequence[Expr], at: Sequence[Expr]) -> tuple[dict[Var, Expr], list[Expr]]:
    """The values of axes for which ``indices`` are ``at``, and the conditions under which these are the indices."""
    values: dict[Var, Expr] = {}
    conditions: list[Expr] = []
    for index, wanted in zip(indices, at):
        index = simplify(substitute(index, values))
        found = next(_solutions(index, wanted, [a.var for a in axes if a.var not in values]), None)
        if found is None:
            conditions.append(index == wanted)
            continue
        var, value, condition = found
        values = {v: simplify(substitute(e, {var: value})) for v, e in values.items()} | {var: value}
        conditions = [substitute(c, {var: value}) for c in conditions] + condition
    return values, conditions


def _solutions(index: Expr, wanted: Expr, variables: Sequence[Var]) -> Iterator[tuple[Var, Expr, list[Expr]]]:
    """A variable of which ``index`` is a multiple and something else, its value where that is ``wanted``, and when."""
    form = linear(index)
    for var in variables:
        step = form.coefficient(var)
        if step == 0:
            continue
        rest = simplify(index - var * step)
        if uses_var(rest, var):
            continue
        over = simplify(wanted - rest if step > 0 else rest - wanted)
        if abs(step) == 1:
            yield var, over, []
        else:
            yield var, simplify(over // abs(step)), [over % abs(step) == 0]


# ---------------------------------------------------------------- scalars


def _derivatives(e: Expr, weight: Expr, needed: set[Tensor]) -> Iterator[tuple[TensorLoad, Expr]]:
    """Every read in ``e`` of a tensor that is ``needed``, with the derivative of ``e`` by it, times ``weight``."""
    if not e.dtype.is_float or not any(load.tensor in needed for load in loads_in(e)):
        return
    if isinstance(e, TensorLoad):
        yield e, weight
        return
    for part, factor in _parts(e, weight):
        yield from _derivatives(part, factor, needed)


def _times(a: Expr, b: Expr) -> Expr:
    """The product, without factors of one."""
    return b if is_const(a, 1) else a if is_const(b, 1) else a * b


def _parts(e: Any, w: Expr) -> list[tuple[Expr, Expr]]:
    """The operands of ``e``, with its derivative by each, times ``w``."""
    zero = const(0, e.dtype)
    if isinstance(e, Add):
        return [(e.a, w), (e.b, w)]
    if isinstance(e, Sub):
        return [(e.a, w), (e.b, w * -1.0)]
    if isinstance(e, Mul):
        return [(e.a, _times(w, e.b)), (e.b, _times(w, e.a))]
    if isinstance(e, Div):
        return [(e.a, w / e.b), (e.b, w * e.a / (e.b * e.b) * -1.0)]
    if isinstance(e, (Max, Min)):
        first = e.a >= e.b if isinstance(e, Max) else e.a <= e.b
        return [(e.a, Select(first, w, zero)), (e.b, Select(first, zero, w))]
    if isinstance(e, Select):
        return [(e.true_value, Select(e.condition, w, zero)), (e.false_value, Select(e.condition, zero, w))]
    if isinstance(e, Cast):
        return [(e.value, w.astype(e.value.dtype))] if e.value.dtype.is_float else []
    if isinstance(e, Let):
        return [(substitute(e.body, {e.var: e.value}), w)]
    if isinstance(e, Call):
        return _called(e, w)
    raise error(f"`{short_text(e)}` has no derivative here")


def _called(e: Call, w: Expr) -> list[tuple[Expr, Expr]]:
    if e.op in _UNARY:
        return [(e.args[0], _times(w, _UNARY[e.op](e.args[0], e)))]
    if e.op in _FLAT:
        return []
    if e.op == "likely":
        return [(e.args[0], w)]
    if e.op == "if_then_else":
        condition, yes, no = e.args
        zero = const(0, e.dtype)
        return [(yes, _where(condition, w, zero)), (no, _where(condition, zero, w))]
    if e.op == "pow":
        x, y = e.args
        by_power = [] if is_const(y, float(getattr(y, "value", math.nan))) else [(y, w * e * call("log", x))]
        return [(x, w * y * call("pow", x, y - 1.0)), *by_power]
    raise error(f"`{short_text(e)}` has no derivative here", f"functions that have one: {', '.join(sorted(_UNARY))}")
