"""Random tensor programs: what they become gives what NumPy gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from te_oracle import judge

import tir
from tir import te

DTYPES = ("float32", "float64", "int32", "int8", "uint8")
SETTINGS = settings(max_examples=50, deadline=None, derandomize=True)


class Drawing:
    """Draws a graph of computations over the tensors made so far."""

    def __init__(self, draw):
        self.draw = draw
        self.tensors: list[te.Tensor] = []
        self.n = te.var("n")

    def pick(self, items):
        return self.draw(st.sampled_from(list(items)))

    def input(self) -> None:
        rank = self.pick((0, 1, 2, 2))
        shape = tuple(self.pick((1, 3, 4, self.n)) for _ in range(rank))
        self.tensors.append(te.placeholder(shape, self.pick(DTYPES), name=f"A{len(self.tensors)}"))

    def index(self, size, axes):
        """An index within ``size``, made of axes."""
        e = self.pick(axes) if axes else te.const(0)
        e = self.pick((lambda e: e, lambda e: e + 1, lambda e: e * 2 + 1, lambda e: e // 2, lambda e: 7 - e))(e)
        data = [t for t in self.tensors if t.dtype == "int32" and t.ndim == 0]
        return te.floormod(e + data[0][()] if data and self.pick((True, False)) else e, size)

    def read(self, axes):
        t = self.pick(self.tensors)
        return t(*(self.index(s, axes) for s in t.shape))

    def guarded(self, axes, dtype):
        """A read beyond the beginning, under the condition that it is not."""
        i = self.pick(axes)
        t = self.pick(self.tensors)
        if t.ndim == 0:
            return self.cast(t[()], dtype)
        rest = tuple(self.index(s, axes) for s in t.shape[1:])
        inside = te.all(i >= 1, i - 1 < t.shape[0])
        return te.if_then_else(inside, self.cast(t(i - 1, *rest), dtype), te.const(1, dtype))

    def cast(self, e, dtype):
        if e.dtype.is_float and tir.DType(dtype).is_int:
            e = te.max(te.min(e, te.const(9, e.dtype)), te.const(0, e.dtype))  # what no integer holds has no meaning
        return e.astype(dtype)

    def expr(self, axes, dtype, depth=2):
        if depth == 0 or self.pick((False, False, True)):
            kind = self.pick(("read", "read", "guarded", "axis", "const"))
            if kind == "guarded" and axes:
                return self.guarded(axes, dtype)
            if kind == "axis" and axes:
                return (self.pick(axes) + 0).astype(dtype)
            return te.const(self.pick((0, 1, 2, 3)), dtype) if kind == "const" else self.cast(self.read(axes), dtype)
        a, b = self.expr(axes, dtype, depth - 1), self.expr(axes, dtype, depth - 1)
        kind = self.pick(("add", "sub", "mul", "max", "min", "select", "lazy", "sum", "exp"))
        if kind == "exp" and a.dtype.is_float:
            return te.exp(te.min(te.max(a, te.const(-3, dtype)), te.const(3, dtype))) + b
        if kind in ("select", "lazy"):
            choose = tir.Select if kind == "select" else te.if_then_else
            return choose(a < b, a, self.expr(axes, dtype, depth - 1))
        if kind == "sum":
            return self.reduction(axes, dtype, depth - 1) + b
        return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b}.get(
            kind, lambda: te.max(a, b) if kind == "max" else te.min(a, b)
        )()

    def reduction(self, axes, dtype, depth):
        k = self.domain(axes)
        inner = [*axes, k]
        where = (k % 2 == self.pick((0, 1))) if self.pick((True, False)) else None
        init = self.expr(axes, dtype, 0) if self.pick((True, False, False)) else None
        reducer = self.pick((te.sum, te.sum, te.max, te.min))
        return reducer(self.expr(inner, dtype, depth), axis=k, where=where, init=init)

    def domain(self, axes):
        kind = self.pick(("plain", "plain", "begin", "symbolic", "triangular"))
        if kind == "triangular" and axes:
            return te.reduce_axis((0, te.min(axes[0] + self.pick((0, 1)), 4)), "k")
        bounds = {"begin": (1, 4), "symbolic": (0, self.n)}.get(kind, (0, self.pick((1, 3))))
        return te.reduce_axis(bounds, "k")

    def computation(self) -> None:
        rank = self.pick((0, 1, 1, 2))
        shape = tuple(self.pick((1, 2, 4, self.n)) for _ in range(rank))
        dtypes = [self.pick(DTYPES) for _ in range(self.pick((1, 1, 1, 2)))]
        kinds = [self.pick(("expr", "reduction")) for _ in dtypes]

        def formula(*axes):
            made = [getattr(self, kind)(list(axes), dtype, 2) for kind, dtype in zip(kinds, dtypes)]
            return tuple(made) if len(made) > 1 else made[0]

        made = te.compute(shape, formula, name=f"C{len(self.tensors)}")
        self.tensors += made if isinstance(made, tuple) else [made]


@st.composite
def programs(draw):
    """Arguments: the scalar, the inputs, and computations of which the last is among them."""
    drawing = Drawing(draw)
    for _ in range(draw(st.integers(1, 2))):
        drawing.input()
    inputs = list(drawing.tensors)
    for _ in range(draw(st.integers(1, 3))):
        drawing.computation()
    results = [t for t in drawing.tensors[len(inputs) : -1] if draw(st.booleans())]
    return [drawing.n, *inputs, *results, drawing.tensors[-1]]


@given(programs())
@SETTINGS
def test_random_program_parses_back_and_runs(args):
    func = te.create_prim_func(args)
    tir.assert_structural_equal(tir.script.parse(func.script()), func)
    with np.errstate(all="ignore"):
        judge(args, func, target=None)


@given(programs())
@settings(SETTINGS, max_examples=15)
def test_random_program_built(args):
    with np.errstate(all="ignore"):
        judge(args)
