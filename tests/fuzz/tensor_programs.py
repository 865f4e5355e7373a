"""Random graphs of tensor expressions, and random stage schedules of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tir import te
from tir.dtype import DType
from tir.errors import ScheduleError
from tir.expr import Select
from tir.function import PrimFunc
from tir.testing.decisions import Choice, SeededChoice

EXACT = ("int32", "int32", "int8", "uint8", "int64", "float32")


class TensorDrawing:
    """Draws a graph of computations over the tensors made so far.

    With ``exact``, floats are neither multiplied nor given to functions, so that sums of small integers are exact in any
    order.
    """

    def __init__(self, choice: Choice, dtypes: Sequence[str], exact: bool):
        self.choice = choice
        self.dtypes = dtypes
        self.exact = exact
        self.tensors: list[te.Tensor] = []
        self.n = te.var("n")

    def flag(self, *options: bool) -> bool:
        return self.choice.pick(options or (True, False))

    def input(self) -> None:
        rank = self.choice.pick((0, 1, 2, 2))
        shape = tuple(self.choice.pick((1, 3, 4, self.n)) for _ in range(rank))
        self.tensors.append(te.placeholder(shape, self.choice.pick(self.dtypes), name=f"A{len(self.tensors)}"))

    def index(self, size: Any, axes: Sequence[Any]) -> Any:
        """An index within ``size``, made of axes."""
        e = self.choice.pick(axes) if axes else te.const(0)
        e = self.choice.pick((e, e + 1, e * 2 + 1, e // 2, 7 - e))
        data = [t for t in self.tensors if t.dtype == "int32" and t.ndim == 0]
        return te.floormod(e + data[0][()] if data and self.flag() else e, size)

    def read(self, axes: Sequence[Any]) -> Any:
        t = self.choice.pick(self.tensors)
        return t(*(self.index(s, axes) for s in t.shape))

    def guarded(self, axes: Sequence[Any], dtype: str) -> Any:
        """A read beyond the beginning, under the condition that it is not."""
        i = self.choice.pick(axes)
        t = self.choice.pick(self.tensors)
        if t.ndim == 0:
            return self.cast(t[()], dtype)
        rest = tuple(self.index(s, axes) for s in t.shape[1:])
        inside = te.all(i >= 1, i - 1 < t.shape[0])
        return te.if_then_else(inside, self.cast(t(i - 1, *rest), dtype), te.const(1, dtype))

    def cast(self, e: Any, dtype: str) -> Any:
        if e.dtype.is_float and DType(dtype).is_int:
            e = te.max(te.min(e, te.const(9, e.dtype)), te.const(0, e.dtype))  # what no integer holds has no meaning
        return e.astype(dtype)

    def expr(self, axes: Sequence[Any], dtype: str, depth: int = 2) -> Any:
        if depth == 0 or self.flag(False, False, True):
            kind = self.choice.pick(("read", "read", "guarded", "axis", "const"))
            if kind == "guarded" and axes:
                return self.guarded(axes, dtype)
            if kind == "axis" and axes:
                return (self.choice.pick(axes) + 0).astype(dtype)
            if kind == "const":
                return te.const(self.choice.pick((0, 1, 2, 3)), dtype)
            return self.cast(self.read(axes), dtype)
        return self.combined(axes, dtype, depth - 1)

    def combined(self, axes: Sequence[Any], dtype: str, depth: int) -> Any:
        """Two expressions under an operator, a choice or a reduction."""
        a, b = self.expr(axes, dtype, depth), self.expr(axes, dtype, depth)
        inexact = self.exact and DType(dtype).is_float
        kind = self.choice.pick(("add", "sub", "mul", "max", "min", "select", "lazy", "sum", "exp"))
        if kind == "exp" and a.dtype.is_float and not inexact:
            return te.exp(te.min(te.max(a, te.const(-3, dtype)), te.const(3, dtype))) + b
        if kind in ("select", "lazy"):
            choose = Select if kind == "select" else te.if_then_else
            return choose(a < b, a, self.expr(axes, dtype, depth))
        if kind == "sum":
            return self.reduction(axes, dtype, depth) + b
        if kind == "mul" and not inexact:
            return a * b
        return te.max(a, b) if kind == "max" else te.min(a, b) if kind == "min" else a - b if kind == "sub" else a + b

    def reduction(self, axes: Sequence[Any], dtype: str, depth: int) -> Any:
        k = self.domain(axes)
        inner = [*axes, k]
        where = (k % 2 == self.choice.pick((0, 1))) if self.flag() else None
        init = self.expr(axes, dtype, 0) if self.flag(True, False, False) else None
        reducer = self.choice.pick((te.sum, te.sum, te.max, te.min))
        return reducer(self.expr(inner, dtype, depth), axis=k, where=where, init=init)

    def domain(self, axes: Sequence[Any]) -> Any:
        kind = self.choice.pick(("plain", "plain", "begin", "symbolic", "triangular"))
        if kind == "triangular" and axes:
            return te.reduce_axis((0, te.min(axes[0] + self.choice.pick((0, 1)), 4)), "k")
        bounds: dict[str, tuple[Any, Any]] = {"begin": (1, 4), "symbolic": (0, self.n)}
        return te.reduce_axis(bounds.get(kind, (0, self.choice.pick((1, 3)))), "k")

    def computation(self) -> None:
        rank = self.choice.pick((0, 1, 1, 2))
        shape = tuple(self.choice.pick((1, 2, 4, self.n)) for _ in range(rank))
        dtypes = [self.choice.pick(self.dtypes) for _ in range(self.choice.pick((1, 1, 1, 2)))]
        kinds = [self.choice.pick((self.expr, self.reduction)) for _ in dtypes]

        def formula(*axes: Any) -> Any:
            made = [kind(list(axes), dtype, 2) for kind, dtype in zip(kinds, dtypes)]
            return tuple(made) if len(made) > 1 else made[0]

        made = te.compute(shape, formula, name=f"C{len(self.tensors)}")
        self.tensors += made if isinstance(made, tuple) else [made]

    def selection(self) -> None:
        """The greatest element of each row of an expression, and its first position."""
        dtype = self.choice.pick(self.dtypes)
        shape = tuple(self.choice.pick((1, 2, self.n)) for _ in range(self.choice.pick((0, 1))))

        def greater(x: Any, y: Any) -> tuple[Any, Any]:
            first = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
            return Select(first, x[0], y[0]), Select(first, x[1], y[1])

        best = te.comm_reducer(greater, lambda t0, t1: (te.max_value(t0), te.min_value(t1)), name="best")

        def formula(*axes: Any) -> Any:
            k = self.domain(axes)
            return best(((k + 0).astype("int32"), self.expr([*axes, k], dtype)), axis=k)

        self.tensors += te.compute(shape, formula, name=f"C{len(self.tensors)}")

    def recurrence(self) -> None:
        """A scan over rows: each of the row before, and perhaps of an input."""
        rows, width = self.choice.pick((2, 4)), self.choice.pick((1, 3))
        dtype = self.choice.pick(self.dtypes)
        state = te.placeholder((rows, width), dtype, name=f"state{len(self.tensors)}")
        first = te.compute((1, width), lambda t, i: self.expr([i], dtype, 1), name=f"first{len(self.tensors)}")
        at = self.choice.pick((lambda i: i, lambda i: width - 1 - i))
        step = te.compute(
            (rows, width),
            lambda t, i: te.max(state[t - 1, at(i)], self.expr([t, i], dtype, 1)),
            name=f"step{len(self.tensors)}",
        )
        self.tensors.append(te.scan(first, step, state, name=f"S{len(self.tensors)}"))

    def arguments(self) -> list[Any]:
        """The scalar, the inputs, and outputs, which include the last computation."""
        for _ in range(self.choice.number(1, 2)):
            self.input()
        inputs = list(self.tensors)
        for _ in range(self.choice.number(1, 3)):
            self.choice.pick((self.computation, self.computation, self.computation, self.recurrence, self.selection))()
        results = [t for t in self.tensors[len(inputs) : -1] if self.flag()]
        return [self.n, *inputs, *results, self.tensors[-1]]


def tensors(c: Choice) -> PrimFunc:
    """The function of a random graph: maps, reductions anywhere in expressions, and recurrences."""
    return te.create_prim_func(TensorDrawing(c, EXACT, exact=True).arguments())


def stages(c: Choice) -> tuple[PrimFunc, Any]:
    """The function of a random graph, and the block schedule that a random stage schedule of the graph is.

    The function is that of the schedule without calls, so that empty reductions have their identity in both. The block
    schedule begins at the function of the graph that ``cache_read``, ``cache_write`` and ``rfactor`` have rewritten.
    """
    args = TensorDrawing(c, EXACT, exact=True).arguments()
    plain = _staged(args, [])
    made, taken = plain, list[int]()
    for _ in range(c.number(1, 6)):
        seed = c.number(0, 10**6)
        try:
            made = _staged(args, [*taken, seed])
        except ScheduleError:
            continue
        taken.append(seed)
    return plain.mod["main"], made


def _staged(args: Sequence[Any], seeds: Sequence[int]) -> Any:
    """The block schedule after one call for each seed. Raises ``ScheduleError`` where one is refused."""
    s = te.create_schedule([a for a in args if isinstance(a, te.Tensor)])
    for seed in seeds:
        choice = SeededChoice(seed)
        stage = choice.pick([x for x in s.stages if not isinstance(x.op, te.PlaceholderOp)])
        choice.pick(CALLS)(s, stage, choice)
    return s.to_schedule(list(args))


def _leaf(stage: Any, c: Choice) -> Any:
    if not stage.leaf_iter_vars:
        raise ScheduleError("the stage has no loop to choose")
    return c.pick(stage.leaf_iter_vars)


def _split(s: Any, stage: Any, c: Choice) -> None:
    stage.split(_leaf(stage, c), **{c.pick(("factor", "nparts")): c.number(1, 4)})


def _fuse(s: Any, stage: Any, c: Choice) -> None:
    first = c.number(0, max(len(stage.leaf_iter_vars) - 2, 0))
    stage.fuse(*stage.leaf_iter_vars[first : first + 2])


def _reorder(s: Any, stage: Any, c: Choice) -> None:
    left = list(stage.leaf_iter_vars)
    stage.reorder(*(left.pop(c.number(0, len(left) - 1)) for _ in range(min(len(left), 3))))


def _mark(s: Any, stage: Any, c: Choice) -> None:
    c.pick((stage.parallel, stage.vectorize, stage.unroll))(_leaf(stage, c))


def _compute_at(s: Any, stage: Any, c: Choice) -> None:
    readers = [x for x in s.stages if set(stage.op.outputs) & set(x.op.input_tensors)]
    if not readers:
        raise ScheduleError("nothing reads the stage")
    consumer = c.pick(readers)
    stage.compute_at(consumer, _leaf(consumer, c))


def _cache_read(s: Any, stage: Any, c: Choice) -> None:
    if not stage.op.input_tensors:
        raise ScheduleError("the stage reads nothing")
    s.cache_read(c.pick(list(stage.op.input_tensors)), "global", [stage.op])


def _cache_write(s: Any, stage: Any, c: Choice) -> None:
    s.cache_write(list(stage.op.outputs), "global")


def _rfactor(s: Any, stage: Any, c: Choice) -> None:
    s.rfactor(stage.op.output(0), _leaf(stage, c), c.pick((0, 0, -1)))


def _bind(s: Any, stage: Any, c: Choice) -> None:
    thread = te.thread_axis(c.pick(("blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread")))
    stage.bind(_leaf(stage, c), thread)
    if c.pick((True, False)):
        stage.set_store_predicate(thread == c.number(0, 1))


def _prefetch(s: Any, stage: Any, c: Choice) -> None:
    if not stage.op.input_tensors:
        raise ScheduleError("the stage reads nothing")
    stage.prefetch(c.pick(list(stage.op.input_tensors)), _leaf(stage, c), c.number(1, 2))


def _group(s: Any, stage: Any, c: Choice) -> None:
    """What ``stage`` reads, computed in it together."""
    inputs = [x.op.output(0) for x in s.stages if isinstance(x.op, te.PlaceholderOp)]
    s.create_group(c.pick(list(stage.op.input_tensors) or [stage.op.output(0)]), inputs).compute_at(
        stage, _leaf(stage, c)
    )


CALLS: tuple[Callable[[Any, Any, Choice], None], ...] = (
    _split,
    _split,
    _fuse,
    _reorder,
    _mark,
    _compute_at,
    _cache_read,
    _cache_write,
    _rfactor,
    _bind,
    _prefetch,
    _group,
    lambda s, stage, c: stage.compute_inline(),
)
