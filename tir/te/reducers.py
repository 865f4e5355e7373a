"""Reductions as expressions: ``te.sum``, ``te.max`` …, and reducers of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..buffer import IterVar
from ..checked import checked
from ..dtype import DType
from ..expr import TRUE, Add, CommReducer, Expr, Max, Min, Mul, Reduce, Var, arithmetic, as_bool, const
from .tensor import value_of
from .user_lines import error, users_errors


class Reducer:
    """A commutative reducer: ``combine(x, y)`` of two values (two tuples, for several results), and their identity.

    Called with an expression, or a tuple of them, and ``axis=``, it makes the reduction; called with values alone it
    combines them: ``te.max(x, 0.0)``. ``where`` says which elements take part; ``init`` is what it starts from in the
    place of the identity, and may read tensors at outer axes. A tuple of expressions gives a tuple of results.

    >>> from tir import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), "k")
    >>> te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 0.0), "total").shape
    (4,)
    >>> te.compute((4, 8), lambda i, j: te.max(A[i, j], 0.0), "relu").op.body[0]
    T.max(A[i, j], 0.0)
    """

    def __init__(self, combine: Callable[..., Any], identity: Callable[..., Any], name: str, doc: str = ""):
        self.combine = combine
        self.identity = identity
        self.__name__ = name
        if doc:
            self.__doc__ = doc

    def __repr__(self) -> str:
        return f"te.{self.__name__}"

    def __call__(self, expr: Any, *values: Any, axis: Any = None, where: Any = None, init: Any = None) -> Any:
        over = {"axis": axis, "where": where, "init": init}
        if axis is None and values and isinstance(values[0], (IterVar, list, tuple)):
            over, values = _placed(over, values), ()
        if over["axis"] is not None:
            if values:
                raise error(f"te.{self.__name__} over an axis takes one expression, or a tuple of them")
            _check_axes(over["axis"])
            return self._reduction(expr, **over)
        if where is not None or init is not None or not values:
            raise error(
                f"te.{self.__name__} of one expression needs the axes it reduces over",
                f"te.{self.__name__}(A[i, k], axis=k), with k = te.reduce_axis((0, n))",
            )
        return self._combined([expr, *values])

    def _combined(self, values: list[Any]) -> Any:
        made = values[0]
        for value in values[1:]:
            made = self.combine(value_of(made), value_of(value))
        return made

    def _reduction(self, expr: Any, axis: Any, where: Any, init: Any) -> Any:
        axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
        several = isinstance(expr, (list, tuple))
        with users_errors(f"te.{self.__name__}"):
            source = tuple(value_of(e) for e in (expr if several else (expr,)))
            combiner = self.combiner(tuple(s.dtype for s in source))
            condition = TRUE if where is None else as_bool(value_of(where))
            start = self._start(init, source)
        results = tuple(Reduce(combiner, source, start, axes, condition, n) for n in range(len(source)))
        return results if several else results[0]

    def _start(self, init: Any, source: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if init is None:
            return ()
        given = tuple(init) if isinstance(init, (list, tuple)) else (init,)
        if len(given) != len(source):
            raise error(f"te.{self.__name__} of {len(source)} expressions has {len(given)} initial values")
        made = tuple(value_of(v, s.dtype) for v, s in zip(given, source))
        for v, s in zip(made, source):
            if v.dtype is not s.dtype:
                raise error(
                    f"te.{self.__name__} of {s.dtype} starts from {v.dtype}: `{v!r}`",
                    "cast one of them, as .astype does",
                )
        return made

    def combiner(self, dtypes: tuple[DType, ...]) -> CommReducer:
        """The reducer of values of ``dtypes`` as an IR node.

        Raises ``TensorExpressionError`` where what it combines two values to has another type than they.
        """
        lhs = tuple(Var(_numbered("x", n, dtypes), d) for n, d in enumerate(dtypes))
        rhs = tuple(Var(_numbered("y", n, dtypes), d) for n, d in enumerate(dtypes))
        one = len(dtypes) == 1
        out = self.combine(lhs[0], rhs[0]) if one else self.combine(lhs, rhs)
        zero = self.identity(*dtypes)
        results = _as_tuple(out, dtypes, f"te.{self.__name__} combines two values to")
        identity = _as_tuple(zero, dtypes, f"the identity of te.{self.__name__} is")
        return CommReducer(lhs, rhs, results, identity)


def _numbered(name: str, number: int, of: Sequence[Any]) -> str:
    return name if len(of) == 1 else f"{name}{number}"


def _as_tuple(value: Any, dtypes: tuple[DType, ...], what: str) -> tuple[Expr, ...]:
    """What the user's function gave, one value for each dtype."""
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(given) != len(dtypes):
        raise error(f"{what} {len(given)} value{'s' * (len(given) != 1)}, but {len(dtypes)} are reduced")
    made = tuple(value_of(v, d) for v, d in zip(given, dtypes))
    for v, d in zip(made, dtypes):
        if v.dtype is not d:
            raise error(f"{what} {v.dtype} where {d} is reduced: `{v!r}`", "cast what is reduced, as .astype does")
    return made


def _placed(over: dict[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """The arguments of a reduction with those that are given by place. Raises for one that is given twice."""
    given = dict(zip(over, values))
    twice = [name for name in given if over[name] is not None]
    if twice or len(values) > len(over):
        what = f"`{twice[0]}` is given twice" if twice else f"{len(values) + 1} arguments are given"
        raise error(f"{what}; a reduction has an expression, axis, where and init")
    return {**over, **given}


def _check_axes(axis: Any) -> None:
    """Raise for what is no axis to reduce over."""
    items = axis if isinstance(axis, (list, tuple)) else [axis]
    if not items or not all(isinstance(a, IterVar) for a in items):
        raise error(
            f"a reduction is over axes that te.reduce_axis makes, not over {axis!r}",
            "k = te.reduce_axis((0, n)) and axis=k; tir.ops.sum reduces a tensor along dimensions given by number",
        )
    for a in items:
        if a.iter_type != "reduce":
            raise error(f"axis `{a.var.name}` is of kind {a.iter_type}", "reduce over an axis from te.reduce_axis")
    if len({a.var for a in items}) < len(items):
        raise error("an axis is named twice in one reduction")


@checked
def comm_reducer(fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce") -> Reducer:
    """A reducer of the user's own. ``fcombine(x, y)`` combines two values, or two tuples of them; ``fidentity`` takes
    the data types of the values and gives as many constants.

    Raises ``TensorExpressionError``, when it is used, for a number or a type of results other than the values'.

    >>> from tir import te
    >>> product = te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, t), name="product")
    >>> A, k = te.placeholder((4,), name="A"), te.reduce_axis((0, 4), "k")
    >>> product(A[k], axis=k).dtype
    'float32'
    """
    if len(inspect.signature(fcombine).parameters) != 2:
        raise error("what combines values takes two of them (for several results, two tuples)")
    return Reducer(fcombine, fidentity, name)


def _built_in(kind: Any, identity: Callable[[DType], Expr], name: str, what: str, empty: str) -> Reducer:
    doc = f"""The {what} of an expression over ``axis``, one that ``te.reduce_axis`` makes or several; {empty} over nothing.

    Without an axis, of the values given: ``te.{name}(x, y)``. ``where`` is the condition under which an element takes part,
    ``init`` what the reduction starts from in the place of {empty}. A tuple of expressions gives a tuple of results.
    Raises ``TensorExpressionError`` for an axis that is none to reduce over.

    >>> from tir import te
    >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), "k")
    >>> B = te.compute((4,), lambda i: te.{name}(A[i, k], axis=k), "B")
    >>> B.shape, B.dtype
    ((4,), 'float32')
    """
    return Reducer(lambda x, y: arithmetic(kind, x, y), identity, name, doc)


sum = _built_in(Add, lambda dtype: const(0, dtype), "sum", "sum", "0")
prod = _built_in(Mul, lambda dtype: const(1, dtype), "prod", "product", "1")
max = _built_in(Max, lambda dtype: const(dtype.min_value, dtype), "max", "largest value", "the least value of the type")
min = _built_in(
    Min, lambda dtype: const(dtype.max_value, dtype), "min", "smallest value", "the greatest value of the type"
)
