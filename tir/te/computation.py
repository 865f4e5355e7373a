"""``te.compute``: tensors by a formula for their elements."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..arith.index_map import IndexFunction
from ..buffer import Range
from ..dtype import DType
from ..expr import Expr, Let, Reduce, Var, const
from ..visit import walk, with_recursion_limit
from .sharing import bound_once
from .tag import notes
from .tensor import (
    Axis,
    Operation,
    Tensor,
    extents,
    is_reduction_variable,
    loads_in,
    redirected,
    require_name,
    value_of,
)
from .user_lines import error, users_errors


@dataclass(frozen=True, eq=False, repr=False)
class ComputeOp(Operation):
    """Element ``axis`` of output ``n`` is ``body[n]``: an expression without reductions, or one reduction.

    Reductions inside expressions are operations of their own (:mod:`tir.te.split_reductions`).

    >>> from tir import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), "k")
    >>> B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), "B")
    >>> type(B.op).__name__, [a.var.name for a in B.op.axis], [a.var.name for a in B.op.reduce_axis], B.op.body[0]
    ('ComputeOp', ['i'], ['k'], T.Reduce(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), [A[i, k]], [], [k], True, 0))
    """

    axes: tuple[Axis, ...]
    body: tuple[Expr, ...]

    @property
    def num_outputs(self) -> int:
        return len(self.body)

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return tuple(a.dom.extent for a in self.axes)  # type: ignore[union-attr]

    def output_dtype(self, index: int) -> DType:
        return self.body[index].dtype

    @property
    def axis(self) -> tuple[Axis, ...]:
        return self.axes

    @functools.cached_property
    def reduce_axis(self) -> tuple[Axis, ...]:  # type: ignore[override]
        first = self.body[0]
        return first.axis if isinstance(first, Reduce) else ()

    @functools.cached_property
    def input_tensors(self) -> tuple[Tensor, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(load.tensor for e in self.body for load in loads_in(e)))

    def with_inputs(self, tensors: Mapping[Tensor, Tensor]) -> Operation:
        if not any(t in tensors for t in self.input_tensors):
            return self
        body = tuple(redirected(e, tensors) for e in self.body)
        return replace(self, body=body)


@with_recursion_limit
def compute(
    shape: Any,
    fcompute: IndexFunction,
    name: str = "compute",
    tag: str = "",
    attrs: Any = None,
    varargs_names: Any = None,
) -> Any:
    """A tensor of ``shape`` whose element at ``i, j, …`` is ``fcompute(i, j, …)``; a tuple of them, where it gives a tuple.

    ``fcompute`` is any Python function of as many integer expressions as ``shape`` has dimensions (``*i`` takes all that
    are left); the names of its parameters become those of loops. What it gives has the type of the tensor.

    Raises ``TensorExpressionError``, with the line, for a number of parameters that is not the shape's, for an axis of a
    reduction used outside of one, and for what is no scalar expression.

    >>> from tir import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), "k")
    >>> te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    Tensor(B, (4,), float32)
    """
    from .split_reductions import split_off

    require_name(name, "a computation")
    sizes = extents(shape, f"`{name}`")
    axes = axes_of(sizes, parameter_names(fcompute, len(sizes), name, varargs_names))
    noted = notes(tag, attrs)
    with users_errors(f"te.compute of `{name}`"):
        given = fcompute(*(a.var for a in axes))
        several = isinstance(given, (list, tuple))
        body = tuple(bound_once(_element(e, name)) for e in (given if several else (given,)))
    if not body:
        raise error(f"te.compute of `{name}` gives no value")
    check_variables(body, axes, name)
    op = ComputeOp(name, axes, split_off(body, axes, name), **noted)
    return op.outputs if several else op.output(0)


def _element(value: Any, name: str) -> Expr:
    if value is None:
        raise error(f"the function of `{name}` returns nothing", "return the value of the element")
    made = value_of(value)
    if made.dtype.lanes != 1 or made.dtype.is_handle:
        raise error(f"an element of `{name}` is a scalar, not {made.dtype}: `{made!r}`")
    return made


def axes_of(sizes: Iterable[Expr], names: Iterable[str]) -> tuple[Axis, ...]:
    """The axes of a tensor."""
    return tuple(
        Axis(Range(const(0, extent.dtype), extent), Var(n, extent.dtype), "spatial") for n, extent in zip(names, sizes)
    )


def parameter_names(function: Callable[..., Any], count: int, name: str, rest: Any = None) -> list[str]:
    """The names of ``count`` parameters of ``function``. Raises ``TensorExpressionError`` if it does not take so many."""
    if not callable(function):
        raise error(f"`{name}` is computed by a function of its indices, not {function!r}")
    kinds = inspect.Parameter
    parameters = list(inspect.signature(function).parameters.values())
    named = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is kinds.empty for p in named)
    takes_more = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    if not needed <= count or (count > len(named) and not takes_more):
        takes = (
            f"{needed} and more" if takes_more else str(needed) if needed == len(named) else f"{needed} to {len(named)}"
        )
        raise error(
            f"`{name}` has {count} dimension{'s' * (count != 1)}, but its function takes {takes} "
            f"({', '.join(str(p) for p in parameters)})",
            "one parameter a dimension, or *i for those that are left",
        )
    left = max(0, count - len(named))
    if not isinstance(rest, (list, tuple, type(None))) or not all(isinstance(n, str) for n in rest or ()):
        raise error(f"varargs_names of `{name}` is a list of names, not {rest!r}")
    extra = list(rest or [f"i{n}" for n in range(left)])
    if len(extra) != left:
        raise error(f"varargs_names has {len(extra)} names for {left} dimensions of `{name}`")
    return [*(p.name for p in named[:count]), *extra]


# ---------------------------------------------------------------- checks


def check_variables(body: tuple[Expr, ...], axes: tuple[Axis, ...], name: str) -> None:
    """Raise ``TensorExpressionError`` where an axis of a reduction is used outside of one."""
    own = {a.var for a in axes}
    for e in body:
        for v in free_variables(e):
            if v not in own and is_reduction_variable(v):
                raise error(
                    f"`{name}` uses the reduction axis `{v.name}` outside of a reduction: `{e!r}`",
                    f"te.sum(…, axis={v.name}), or an axis of its own for each dimension",
                )


def free_variables(root: Any) -> Iterator[Var]:
    """Variables of ``root`` that no reduction or let in it binds, in order of use; some more than once."""
    nothing: frozenset[Var] = frozenset()
    stack: list[tuple[Any, frozenset[Var]]] = [(root, nothing)]
    while stack:
        item, bound = stack.pop()
        if isinstance(item, Var):
            if item not in bound:
                yield item
        elif isinstance(item, Reduce):
            inner = bound | {a.var for a in item.axis}
            parts = [*item.source, item.condition, *(a.dom for a in item.axis)]
            stack += [(part, inner) for part in reversed(parts)]
            stack += [(part, bound) for part in reversed(item.init)]
        else:
            inner = bound | {item.var} if isinstance(item, Let) else bound
            stack += [(part, inner) for part in reversed(item.children())]


def has_reduction(root: Any) -> bool:
    """Whether there is a reduction in ``root``."""
    return any(isinstance(item, Reduce) for item in walk(root))
