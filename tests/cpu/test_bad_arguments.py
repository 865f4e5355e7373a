"""Arguments of compiled modules that are no arrays or numbers of their type: refused by name, by every engine."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.errors import RunError
from tir.script import parse

KERNEL = """
@T.prim_func
def f(a: T.handle, x: T.float32, k: T.int32, m: T.int32, on: T.bool):
    n = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for j in range(m):
            if on:
                A[i, j] = A[i, j] + x + T.Cast("float32", k)
"""
ENGINES = ["llvm", "interpreter", "cuda-sim"]


class Item:
    def item(self):
        raise ZeroDivisionError


NOT_NUMBERS = [
    np.zeros(3, "int32"), np.zeros(0), np.ones((2, 3), "float32"), np.ma.array([1, 2]),
    np.zeros((2, 3), object), np.array("x"), [1], (1,), {}, {1}, None, "1", b"1", 1j, Item(), object(), np.datetime64("2020"),
]  # fmt: skip


def module(engine: str):
    text = KERNEL if engine == "cuda-sim" else KERNEL.replace('T.thread_binding(n, thread="blockIdx.x")', "range(n)")
    return tir.build(parse(text), engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("position", range(5))
def test_what_is_no_number_is_refused_by_name(engine, position):
    built = module(engine)
    name = ["A", "x", "k", "m", "on"][position]
    arrays = (np.ndarray,) if position == 0 else ()
    for bad in [b for b in NOT_NUMBERS if not isinstance(b, arrays)]:
        args: list = [np.zeros((2, 3), "float32"), 1.0, 2, 3, True]
        args[position] = bad
        for _ in range(2):
            with pytest.raises(RunError, match=f"`{name}`"):
                built(*args)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_matrix_is_an_array_of_two_axes(engine):
    a = np.zeros((2, 3), "float32").view(np.matrix)
    for _ in range(3):
        module(engine)(a, 1.0, 2, 3, True)
    assert np.asarray(a).tolist() == [[9.0] * 3] * 2


@pytest.mark.parametrize(
    "bad", [[1], 1j, float("nan"), float("inf"), -1, 1 << 64, np.float64(1e300), object(), b"x", Item()]
)
def test_what_is_no_address_is_refused(bad):
    built = tir.build(parse("@T.prim_func\ndef f(p: T.handle):\n    T.evaluate(0)\n"))
    for good in (0, None, np.uint64(8), np.zeros(3)):
        built(good)
    with pytest.raises(RunError, match="`p` of .* must be an address"):
        built(bad)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_numbers_of_small_floats(dtype):
    built = tir.build(parse(f"@T.prim_func\ndef f(x: T.{dtype}) -> T.{dtype}:\n    return x * T.{dtype}(0.5)\n"))
    for value in (0, -2, 1.5, np.float32(3), np.int64(16), True):  # an integer is a number, not bits
        assert built(value) == value * 0.5
    assert np.isnan(built(float("nan")))
    for bad in (1e300, [1], "1"):
        with pytest.raises(RunError, match="`x`"):
            built(bad)


def test_bfloat16_numbers():
    built = tir.build(parse("@T.prim_func\ndef f(x: T.bfloat16) -> T.bfloat16:\n    return x\n"))
    for good in (2, 2.0, np.float32(2), np.int64(2)):  # an integer is a number, not bits
        assert built(good) == 2.0
    assert built(float("inf")) == float("inf")
    for bad in (1e300, [1], "1"):
        with pytest.raises(RunError, match="`x`"):
            built(bad)


@pytest.mark.parametrize("engine", ENGINES)
def test_masked_elements_are_refused_and_a_mask_of_none_is_not_there(engine):
    run, ones = module(engine), np.ones((2, 3), "float32")
    for _ in range(3):  # also by the fast path of calls alike
        run(ones, 1.0, 2, 3, True)
        with pytest.raises(RunError, match=r"argument 1 `A` of f: .*masked elements.*x\.filled\(value\)"):
            run(np.ma.array(ones, mask=ones > 0), 1.0, 2, 3, True)
    run(np.ma.array(ones), 1.0, 2, 3, True)
    assert (ones == 13).all()


class Column:
    """As a column of a table of pandas."""

    def to_numpy(self):
        return np.ones((2, 3), "float32")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_of_a_table_is_refused_with_the_way_out(engine):
    with pytest.raises(RunError, match=r"argument 1 `A` of f.* Column; pass x\.to_numpy\(\) if it is only read"):
        module(engine)(Column(), 1.0, 2, 3, True)


@pytest.mark.parametrize("engine", ENGINES)
def test_sizes_of_int32_place_less_than_two_to_the_31_elements(engine):
    """Elements further away are placed by int64: where a size is one, or constants reach that far."""
    kernel = """
@T.prim_func
def f(a: T.handle):
    n, s = T.int32(), T.int32()
    A = T.match_buffer(a, (n, 2), "int8", strides=[s, 1])
    for i in T.thread_binding(n, thread="blockIdx.x"):
        A[i, 0] = T.int8(1)
"""
    text = kernel if engine == "cuda-sim" else kernel.replace('T.thread_binding(n, thread="blockIdx.x")', "range(n)")
    far = np.lib.stride_tricks.as_strided(np.zeros(2, "int8"), (3, 2), (2**30, 1))  # not what is behind it
    with pytest.raises(RunError, match=r"spans 2147483650 elements of shape \(3, 2\).*T.int64\(\)"):
        tir.build(parse(text), engine)(far)
