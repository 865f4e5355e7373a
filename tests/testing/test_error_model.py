"""The model of rounding errors bounds them, for any order of sums, and not by much too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tir
from tir import testing

HEAD = "@T.prim_func\ndef f("


def program(text: str) -> tir.PrimFunc:
    return tir.script.parse(text)


ROWS = program("""
@T.prim_func
def f(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 64):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] += A[vi, vk]
""")
NORM = program("""
@T.prim_func
def f(A: T.Buffer((4, 16), "float32"), w: T.float32, O: T.Buffer((4, 16), "float32")):
    S, M = T.alloc_buffer((4,)), T.alloc_buffer((4,))
    for i, k in T.grid(4, 16):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk] * w)
    for i, k in T.grid(4, 16):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] += T.exp(A[vi, vk] * w - M[vi])
    for i, k in T.grid(4, 16):
        with T.block("O"):
            vi, vk = T.axis.remap("SS", [i, k])
            O[vi, vk] = T.exp(A[vi, vk] * w - M[vi]) / S[vi]
""")
MATMUL = program("""
@T.prim_func
def f(A: T.Buffer((8, 32), "float16"), B: T.Buffer((32, 8), "float16"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += T.cast(A[vi, vk], "float32") * T.cast(B[vk, vj], "float32")
""")
GELU = program("""
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i in range(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            x: T.float32 = A[vi] * A[vi] - T.float32(1)
            B[vi] = T.if_then_else(x > T.float32(0), T.sqrt(x), x * T.erf(A[vi])) + T.fabs(T.sin(x))
""")


def arguments(func: tir.PrimFunc, seed: int) -> list:
    rng = np.random.default_rng(seed)
    made = []
    for value in testing.random_inputs(func, seed):
        drawn = rng.standard_normal(value.shape) * 10.0 ** rng.integers(-3, 3) if hasattr(value, "shape") else 0.75
        made.append(drawn.astype(value.dtype) if hasattr(value, "shape") else drawn)
    return made


def exactly(func: tir.PrimFunc, inputs: list) -> list[np.ndarray]:
    """The results in float64."""
    wide = program(func.script().replace("float32", "float64").replace("float16", "float64"))
    args = [x.astype("float64") if hasattr(x, "dtype") else x for x in inputs]
    tir.interp.run(wide, *args)
    return args


@pytest.mark.parametrize("func", [ROWS, NORM, MATMUL, GELU], ids=["rows", "norm", "matmul", "gelu"])
@settings(max_examples=5)
@given(seed=st.integers(0, 10_000))
def test_errors_of_the_executor_and_of_llvm_are_within_the_bound(func, seed):
    inputs = arguments(func, seed)
    bounds = testing.error_bounds(func, inputs)
    exact = exactly(func, inputs)
    for run in (lambda *a: tir.interp.run(func, *a), tir.build(func)):
        args = [x.copy() if hasattr(x, "copy") else x for x in inputs]
        run(*args)
        out = func.buffers()[-1].name
        error = np.abs(args[-1].astype("float64") - exact[-1])
        assert np.all(2 * error <= bounds[out] + 1e-300)
        large = np.abs(exact[-1]) * 1e-2 + np.max(np.abs(exact[-1])) * 1e-3
        assert np.mean(bounds[out] <= large) > 0.9, "the bound says nothing"


@settings(max_examples=20)
@given(order=st.permutations(range(64)), seed=st.integers(0, 10_000))
def test_sums_in_any_order_are_within_the_bound(order, seed):
    rng = np.random.default_rng(seed)
    a = (rng.standard_normal((4, 64)) * 10.0 ** rng.integers(-6, 6, (4, 64))).astype("float32")
    bounds = testing.error_bounds(ROWS, [a, np.zeros(4, "float32")])
    one, other = np.zeros(4, "float32"), np.zeros(4, "float32")
    for k in range(64):
        one += a[:, k]
        other += a[:, order[k]]
    assert np.all(np.abs(one.astype("float64") - other) <= bounds["B"])


def test_a_reassociated_schedule_is_compared_by_its_bounds():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 64)).astype("float32")
    a[:, 0], a[:, 40] = 1e6, -1e6  # the sum of the rest is lost in these
    inputs = [a, np.zeros(4, "float32")]
    sch = tir.Schedule(ROWS)
    _, k = sch.get_loops("B")
    _, inner = sch.split(k, [None, 8])
    sch.rfactor(inner, 0)
    with pytest.raises(AssertionError, match="expected"):
        testing.assert_same_result(ROWS, sch.mod, inputs)
    bounds = testing.error_bounds(ROWS, inputs)
    testing.assert_same_result(ROWS, sch.mod, inputs, rtol=0, atol=bounds)
    wrong = program(ROWS.script().replace("B[vi] + A[vi, vk]", "B[vi] + A[vi, vk] + T.float32(2)"))
    with pytest.raises(AssertionError, match="expected"):
        testing.assert_same_result(ROWS, wrong, inputs, rtol=0, atol=bounds)


def test_a_division_by_what_may_be_zero_is_not_bounded():
    func = program(
        HEAD
        + """A: T.Buffer((3,), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = T.float32(1) / (A[0] + A[1] + A[2])
"""
    )
    inputs = [np.array([1e8, 1, -1e8], "float32"), np.zeros(1, "float32")]
    assert testing.error_bounds(func, inputs)["B"][0] == np.inf


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('B[0] = A[T.cast(A[1], "int32")]', "indices"),
        ('B[0] = T.cast(T.cast(A[0], "int32"), "float32")', "integers, indices, branches"),
        ("if A[0] > T.float32(0):\n        B[0] = A[0]", "branches"),
        ("B[0] = T.tan(A[0])", "`tan`"),
        ("B[0:2] = A[0:2]", "vectors"),
    ],
)
def test_what_the_model_does_not_follow_is_refused(body, why):
    func = program(HEAD + f'A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n    {body}\n')
    with pytest.raises(tir.RunError, match="does not follow") as refused:
        testing.error_bounds(func, [np.ones(4, "float32"), np.zeros(4, "float32")])
    assert why in str(refused.value)
