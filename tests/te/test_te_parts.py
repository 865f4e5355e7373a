"""Tensor expressions part by part: each derivative of the table against differences, and refusals word for word."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir import te

# ---------------------------------------------------------------- derivatives

PLACES = {"asin": [-0.6, 0.3, 0.7], "acos": [-0.6, 0.3, 0.7], "abs": [-1.5, 0.5, 2.0], "fabs": [-1.5, 0.5, 2.0]}
EXACT = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: 10**x, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "abs": np.abs, "fabs": np.abs,
}  # fmt: skip


def evaluated(inputs, output, *arrays):
    out = np.zeros([int(s) for s in output.shape], str(output.dtype))
    tir.build(te.create_prim_func([*inputs, output]), "interpreter")(*arrays, out)
    return out


@pytest.mark.parametrize("name", EXACT)
def test_a_function_has_the_slope_that_differences_give(name):
    places = np.array(PLACES.get(name, [0.3, 0.75, 1.25]))
    x = te.placeholder((3,), "float64", name="x")
    y = te.compute((3,), lambda i: tir.op.call(name, x[i]), name="y")
    (made,) = te.gradient(y, [x], te.placeholder((3,), "float64", name="head"))
    head = made.op.input_tensors[0] if made.op.input_tensors[0].name == "head" else made.op.input_tensors[1]
    weights = np.array([1.0, -2.0, 0.5])
    slope = (EXACT[name](places + 1e-6) - EXACT[name](places - 1e-6)) / 2e-6
    np.testing.assert_allclose(evaluated([x, head], made, places, weights), slope * weights, rtol=1e-7)


@pytest.mark.parametrize(("name", "sign"), [("erf", 1.0), ("erfc", -1.0)])
def test_the_slope_of_error_functions(name, sign):
    x = te.placeholder((3,), "float64", name="x")
    (made,) = te.gradient(te.compute((3,), lambda i: tir.op.call(name, x[i]), name="y"), [x])
    places = np.array([-0.5, 0.0, 1.5])
    got = evaluated([x], made, places)
    np.testing.assert_allclose(got, np.diag(sign * 2 / np.sqrt(np.pi) * np.exp(-(places**2))), rtol=1e-12)


TWO = {
    "sum": (lambda a, b: a + b, lambda a, b: (1 + 0 * a, 1 + 0 * b)),
    "difference": (lambda a, b: a - b, lambda a, b: (1 + 0 * a, -1 + 0 * b)),
    "product": (lambda a, b: a * b, lambda a, b: (b, a)),
    "quotient": (lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2)),
    "greater": (te.max, lambda a, b: (1.0 * (a >= b), 1.0 * (a < b))),
    "less": (te.min, lambda a, b: (1.0 * (a <= b), 1.0 * (a > b))),
    "choice": (lambda a, b: tir.Select(a > 1.0, a * 2.0, b * 3.0), lambda a, b: (2.0 * (a > 1), 3.0 * (a <= 1))),
    "guard": (lambda a, b: te.if_then_else(a > 1.0, a * 2.0, b * 3.0), lambda a, b: (2.0 * (a > 1), 3.0 * (a <= 1))),
    "power": (te.power, lambda a, b: (b * a ** (b - 1), a**b * np.log(a))),
    "square": (lambda a, b: te.power(a, 2.0) + b * 0.0, lambda a, b: (2 * a, 0 * b)),
    "rounded": (lambda a, b: te.floor(a) * b + te.ceil(b) + te.trunc(a), lambda a, b: (0 * a, np.floor(a))),
    "cast": (lambda a, b: (a.astype("float32") * b.astype("float32")).astype("float64"), lambda a, b: (b, a)),
    "integer": (lambda a, b: a.astype("int32").astype("float64") * b, lambda a, b: (0 * a, np.trunc(a))),
    "same": (lambda a, b: a * a * b, lambda a, b: (2 * a * b, a * a)),
}  # fmt: skip


@pytest.mark.parametrize("name", TWO)
def test_the_slopes_of_two_operands(name):
    value, slopes = TWO[name]
    a, b = (te.placeholder((4,), "float64", name=n) for n in "ab")
    y = te.compute((4,), lambda i: value(a[i], b[i]), name="y")
    given = [np.array([0.5, 1.5, 1.0, 2.0]), np.array([1.5, 0.5, 1.0, 0.25])]
    for made, want in zip(te.gradient(y, [a, b]), slopes(*given)):
        inputs = [t for t in (a, b) if t in tensors_of(made)]
        got = evaluated(inputs, made, *(g for g, t in zip(given, (a, b)) if t in inputs))
        np.testing.assert_allclose(np.diag(got), want, rtol=1e-6, atol=1e-12)
        assert not (got - np.diag(np.diag(got))).any()


def tensors_of(made):
    found, todo = set(), [made]
    while todo:
        tensor = todo.pop()
        if tensor not in found:
            found.add(tensor)
            todo += tensor.op.input_tensors
    return found


# ---------------------------------------------------------------- refusals

A = te.placeholder((4, 8), name="A")
B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
k = te.reduce_axis((0, 8), "k")
S = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S")


def schedule(*ops):
    return te.create_schedule([op.op for op in ops or (B,)])


REFUSED = {
    "a schedule is of operations": lambda: te.create_schedule([3]),
    "`S` is not in this schedule|is not in this schedule": lambda: schedule(B)[S],
    "`B` does not read `S`; it reads A": lambda: schedule(B, S).cache_read(S, "local", [B]),
    "derivatives are of a tensor of floats by tensors of floats, not of 3": lambda: te.gradient(B, [3]),
    "the head of a derivative is a tensor, not 3": lambda: te.gradient(B, [A], 3),
    "the head of a derivative of .* is of float32, and its shape ends with that; not": lambda: te.gradient(B, [A], S),
    "`S` has a shape, not a length: S.shape\\[0\\] is its first extent": lambda: len(S),
    "tensor `S` cannot be iterated over: index it, as in S\\[i\\]": lambda: list(S),
    "tensors are immutable": lambda: setattr(S, "name", "x"),
    "`A` is twice among the arguments": lambda: te.create_prim_func([A, A, B]),
    "an argument of a function is a tensor or a te.var, not a slice of a tensor": lambda: te.create_prim_func(
        [A[0], B]
    ),
    "an argument of a function is a tensor or a te.var, not 'x'": lambda: te.create_prim_func(["x", B]),
    "the function has no tensors among its arguments": lambda: te.create_prim_func([]),
    "the inputs of a scan are a list of tensors, not 3": lambda: te.scan(B, B, B, inputs=3),
    "extent 1 of `.*` is -1; an extent is at least 0|extent .* is -1; an extent is at least 0": lambda: te.placeholder(
        (2, -1)
    ),
    "the attributes of an operation are a dict, not 3": lambda: te.compute((2,), lambda i: 1.0, attrs=3),
    "module 'tir.te' has no attribute 'computee'; did you mean compute\\?|module 'tir.te' has no attribute": lambda: (
        te.computee
    ),
    "a thread axis has a tag": lambda: te.thread_axis((0, 4)),
    "what combines values takes two of them": lambda: te.comm_reducer(lambda a: a, lambda t: 0),
    "an axis is named twice in one reduction": lambda: te.sum(A[0, k], axis=[k, k]),
    "over an axis takes one expression": lambda: te.sum(A[0, k], A[1, k], axis=k),
    "the name of a pragma is a string, not 3": lambda: (s := schedule())[B].pragma(s[B].op.axis[0], 3),
    "3 is no tensor": lambda: (s := schedule())[B].prefetch(3, s[B].op.axis[0], 1),
    "is no thread axis": lambda: (s := schedule())[B].bind(s[B].op.axis[0], s[B].op.axis[1]),
    "is marked already": lambda: ((s := schedule())[B].parallel(s[B].op.axis[0]), s[B].vectorize(s[B].op.axis[0])),
    "scalar_params are not supported": lambda: te.decl_tensor_intrin(S.op, lambda *a: None, scalar_params=[1]),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_refused_is_said_word_for_word(said):
    with pytest.raises((tir.TirError, AttributeError, TypeError, ValueError)) as caught:
        REFUSED[said]()
    assert re.search(said, str(caught.value)), str(caught.value)


def test_parts_that_are_printed_and_found():
    s = schedule(B, S)
    assert repr(s) == "te.Schedule(A, B, S)" and repr(s[B]) == "Stage(B: i, j)" and repr(te.sum) == "te.sum"
    assert B in s and B.op in s and te.placeholder((1,)) not in s and s.normalize() is s
