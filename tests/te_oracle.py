"""What tensor expressions mean, in NumPy and float64: the judge of what becomes of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tir
from tir import expr as E
from tir import te
from tir.op import OPS
from tir.te.tensor import TensorLoad, operations_of

_BINARY: dict[type, Callable[..., Any]] = {
    E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.FloorDiv: np.floor_divide, E.FloorMod: np.mod,
    E.Min: np.minimum, E.Max: np.maximum, E.EQ: np.equal, E.NE: np.not_equal, E.LT: np.less, E.LE: np.less_equal,
    E.GT: np.greater, E.GE: np.greater_equal, E.And: np.logical_and, E.Or: np.logical_or,
}  # fmt: skip


class Oracle:
    """The values of tensors, given those of inputs and of scalars."""

    def __init__(self, inputs: Mapping[te.Tensor, Any], scalars: Mapping[E.Var, int] | None = None):
        self.values = {t: wide(v) for t, v in inputs.items()}
        self.scalars = dict(scalars or {})

    def tensors(self, wanted: list[te.Tensor]) -> list[np.ndarray]:
        """The values of ``wanted``, in their types."""
        operations = operations_of(wanted)
        inside = {step for op in operations if isinstance(op, te.ScanOp) for step in op.steps}
        for op in operations:
            if isinstance(op, te.ScanOp):
                self.scan(op)
            elif isinstance(op, te.ComputeOp) and op not in inside:
                shape = self.shape(op.axis)
                self.values.update(zip(op.outputs, self.elements(shape, [a.var for a in op.axis], op.body)))
        return [self.values[t].astype(array_type(t.dtype)) for t in wanted]

    def formula(self, shape: tuple[int, ...], function: Callable[..., Any]) -> list[np.ndarray]:
        """What the elements of ``te.compute(shape, function)`` are, from the formula as it was written."""
        variables = [E.Var(f"x{n}") for n in range(len(shape))]
        made = function(*variables)
        body = [E.as_expr(e) for e in (made if isinstance(made, (list, tuple)) else (made,))]
        return [v.astype(e.dtype) for v, e in zip(self.elements(shape, variables, body), body)]

    def scan(self, op: te.ScanOp) -> None:
        """Row by row, in Python."""
        begin, rows = (int(self.at(e, self.scalars)) for e in (op.scan_axis.dom.min, op.states[0].shape[0]))
        for step in op.steps:
            for t in step.outputs:
                self.values[t] = np.zeros((rows, *self.shape(step.axis[1:])))
        for state, init, update, out in zip(op.states, op.init, op.update, op.outputs):
            self.values[update][:begin] = self.values[init]
            self.values[state] = self.values[out] = self.values[update]
        for row in range(begin, rows):
            for step in op.steps:
                grid = dict(zip((a.var for a in step.axis[1:]), np.indices(self.shape(step.axis[1:]))))
                for t, e in zip(step.outputs, step.body):
                    value = self.at(e, {**self.scalars, **grid, step.axis[0].var: row})
                    self.values[t][row] = wrapped(value, e.dtype)

    def shape(self, axes: Any) -> tuple[int, ...]:
        return tuple(int(self.at(a.dom.extent, self.scalars)) for a in axes)

    def elements(self, shape: tuple[int, ...], variables: Any, body: Any) -> list[np.ndarray]:
        grid = dict(zip(variables, np.indices(shape))) if shape else {}
        return [np.broadcast_to(wrapped(self.at(e, {**self.scalars, **grid}), e.dtype), shape).copy() for e in body]

    def at(self, e: Any, env: Mapping[E.Var, Any]) -> Any:
        """The value of ``e`` where variables have the values (arrays of one shape, or numbers) of ``env``."""
        if isinstance(e, E.Var):
            return env[e]
        if isinstance(e, (E.IntImm, E.FloatImm)):
            return np.bool_(e.value) if e.dtype.is_bool else wide(np.asarray(e.value))[()]
        if isinstance(e, TensorLoad):
            return self.load(e, env)
        if isinstance(e, E.Reduce):
            return self.reduced(e, env)[e.value_index]
        if isinstance(e, E.Let):
            return self.at(e.body, {**env, e.var: self.at(e.value, env)})
        if isinstance(e, E.Cast):
            value = self.at(e.value, env)
            return wrapped(np.trunc(value) if e.dtype.is_int else value, e.dtype)
        with np.errstate(all="ignore"):
            args = [self.at(c, env) for c in e.children()]
            if isinstance(e, E.Select) or (isinstance(e, E.Call) and e.op == "if_then_else"):
                return np.where(*args)
            if isinstance(e, E.Not):
                return np.logical_not(args[0])
            if isinstance(e, E.Div):
                return np.trunc(args[0] / args[1]).astype(np.int64) if e.dtype.is_int else args[0] / args[1]
            rule = _BINARY[type(e)] if isinstance(e, E.BinaryOp) else OPS[e.op].numpy
            return wrapped(rule(*args), e.dtype)

    def load(self, e: TensorLoad, env: Any) -> Any:
        """Indices are clipped: what is read under a condition that is false is not used."""
        array = self.values[e.tensor]
        indices = [np.clip(self.at(i, env), 0, max(n - 1, 0)) for i, n in zip(e.indices, array.shape)]
        return array[tuple(np.broadcast_arrays(*indices))] if indices else array[()]

    def reduced(self, e: E.Reduce, env: Any) -> list[Any]:
        state = [self.at(s, env) for s in (e.init or e.combiner.identity)]
        for inner, taken in self.points(e.axis, env):
            taken = np.logical_and(taken, self.at(e.condition, inner))
            values = dict(zip(e.combiner.rhs, (self.at(s, inner) for s in e.source)))
            values.update(zip(e.combiner.lhs, state))
            new = [self.at(r, {**inner, **values}) for r in e.combiner.result]
            state = [wrapped(np.where(taken, n, s), r.dtype) for n, s, r in zip(new, state, e.combiner.result)]
        return state

    def points(self, axes: Any, env: Any, taken: Any = True) -> Any:
        """The points of reduction axes, and where they are in the domain."""
        if not axes:
            yield env, taken
            return
        first, extent = (self.at(x, env) for x in (axes[0].dom.min, axes[0].dom.extent))
        for step in range(int(np.max(extent, initial=0))):
            inside = np.logical_and(taken, step < extent)
            yield from self.points(axes[1:], {**env, axes[0].var: first + step}, inside)


def array_type(dtype: Any) -> Any:
    """The type of NumPy's arrays of ``dtype``; skips a test of bfloat16 where no package has it."""
    if str(dtype) != "bfloat16":
        return dtype
    return pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: bfloat16 arrays").bfloat16


def wide(value: Any) -> np.ndarray:
    """As float64, int64 or bool."""
    array = np.asarray(value)
    return array if array.dtype == bool else array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def wrapped(value: Any, dtype: Any) -> Any:
    """Integers as ``dtype`` holds them; floats stay wide."""
    array = np.asarray(value)
    if dtype.is_float:
        return array.astype(np.float64)
    return array.astype(bool) if dtype.is_bool else array.astype(str(dtype)).astype(np.int64)


def scalars_of(args: list[Any], sizes: itertools.count | None = None) -> dict[E.Var, int]:
    """Values for the scalars among ``args``, and for the sizes of its tensors: 5, 6, 7 …"""
    sizes = sizes or itertools.count(5)
    shapes = [s for a in args if isinstance(a, te.Tensor) for s in a.shape]
    return {v: next(sizes) for v in dict.fromkeys(x for x in (*args, *shapes) if isinstance(x, E.Var))}


def values_for(tensor: te.Tensor, scalars: Mapping[E.Var, int], rng: np.random.Generator) -> np.ndarray:
    """Small random values for an input; integers are 0 to 3, which is within any dimension that has four elements."""
    shape = [int(Oracle({}, scalars).at(s, scalars)) for s in tensor.shape]
    if tensor.dtype.is_float:
        return rng.uniform(-2, 2, shape).astype(array_type(tensor.dtype))
    return rng.integers(0, 2 if tensor.dtype.is_bool else 4, shape).astype(tensor.dtype)


def judge(args: list[Any], func: tir.PrimFunc | None = None, target: str | None = "llvm", seed: int = 0) -> list[Any]:
    """The function of ``args`` gives what NumPy gives, on the executor (every access checked) and built for ``target``.

    What it returns are the results, in the order of the arguments.
    """
    from tir.analysis import wellformed
    from tir.interp import run

    func = func or te.create_prim_func(args)
    assert not wellformed.check(func), func
    rng = np.random.default_rng(seed)
    scalars = scalars_of(args)
    tensors = [a for a in args if isinstance(a, te.Tensor)]
    inputs = {t: values_for(t, scalars, rng) for t in tensors if isinstance(t.op, te.PlaceholderOp)}
    outputs = [t for t in tensors if t not in inputs]
    expected = Oracle(inputs, scalars).tensors(outputs)
    results = dict(zip(outputs, expected))

    def call(run_it: Callable[..., Any]) -> None:
        given = [
            scalars[a] if isinstance(a, E.Var) else inputs[a].copy() if a in inputs else np.zeros_like(results[a])
            for a in args
        ]
        run_it(*given)
        for argument, value in zip(args, given):
            if argument in results:
                tolerance = 2e-2 if str(argument.dtype) in ("float16", "bfloat16") else 1e-4
                np.testing.assert_allclose(
                    value.astype(np.float64), results[argument].astype(np.float64), rtol=tolerance, atol=tolerance
                )

    call(lambda *given: run(func, *given, regions=True))
    if target is not None:
        call(tir.build(func, target))
    return expected
