"""Vectors of elements that are not neighbours: at constant steps, and by indices of other types."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tests.page_ends import at_page_ends
from tir.script import parse
from tir.script import tir as T
from tir.testing import assert_same_result

STEPS = """
@T.prim_func
def main(A: T.Buffer((SIZE,), "TYPE"), B: T.Buffer((LANES,), "TYPE")):
    for i in T.vectorized(LANES):
        B[i] = A[FIRST + i * STEP]
"""


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, -1, -2])
@pytest.mark.parametrize("lanes", [2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool"])
def test_lanes_at_a_constant_step(lanes: int, step: int, dtype: str):
    """The buffer ends with the last lane: nothing beyond it may be read."""
    size, first = (lanes - 1) * abs(step) + 1, 0 if step > 0 else (lanes - 1) * -step
    text = STEPS
    for name, value in {"SIZE": size, "LANES": lanes, "TYPE": dtype, "FIRST": first, "STEP": step}.items():
        text = text.replace(name, str(value))
    module = tir.build(parse(text))
    code = module.source("llvm")
    whole = lanes >= 4 and size <= 4 * lanes
    assert "gather" not in code
    if whole and abs(step) > 1:
        assert 1 <= code.count("= load <") <= -(-size // lanes)
    a = (np.arange(size) * 7 % 120).astype(dtype) if dtype != "bool" else np.arange(size) % 3 == 0
    b = np.zeros(lanes, dtype)
    at_page_ends(module.entry, starts=step < 0)(a, b)
    np.testing.assert_array_equal(b, a[first::step][:lanes])


@pytest.mark.parametrize(("size", "step", "lanes", "whole"), [
    (16, 2, 8, True), (17, 2, 8, True), (24, 3, 8, True), (64, -4, 8, True), (16, 4, 4, True), (20, 5, 4, False),
])  # fmt: skip
def test_lanes_of_one_multiple_of_a_step_are_loaded_as_the_same_whole_vectors(
    size: int, step: int, lanes: int, whole: bool
):
    """A window of neighbours loads each vector once; nothing beyond the buffer is read."""
    places: set[frozenset[int]] = set()
    for behind in range(abs(step)):
        first, text = behind + (0 if step > 0 else (lanes - 1) * -step), STEPS
        for name, value in {"SIZE": size, "LANES": lanes, "TYPE": "float32", "FIRST": first, "STEP": step}.items():
            text = text.replace(name, str(value))
        module = tir.build(parse(text))
        loads = re.findall(r"load <\d+ x float>, ptr (%\S+),", module.source("llvm"))
        at = dict(re.findall(r"(%\S+) = getelementptr inbounds float, ptr \S+, i64 (\d+)", module.source("llvm")))
        places.add(frozenset(int(at.get(name, 0)) for name in loads))
        a, b = np.arange(size, dtype="float32"), np.zeros(lanes, "float32")
        module(a, b)
        np.testing.assert_array_equal(b, a[first::step][:lanes])
    assert (len(places) == 1) == whole
    assert max(map(max, places)) + lanes <= size


@pytest.mark.parametrize(("planes", "lanes", "apart", "loads"), [
    (2, 16, 200, 2), (3, 16, 100, 3), (4, 16, 17, 4), (5, 16, 100, 16), (2, 8, 13, 2), (2, 4, 50, 2),
])  # fmt: skip
def test_lanes_in_a_few_places_are_selected_from_a_vector_of_each(planes: int, lanes: int, apart: int, loads: int):
    """As in a pixel shuffle; nothing beyond the last lane is read."""
    size = (planes - 1) * apart + -(-lanes // planes)
    text = f"""
@T.prim_func
def main(A: T.Buffer(({size},), "float32"), B: T.Buffer(({lanes},), "float32")):
    for i in T.vectorized({lanes}):
        B[i] = A[i % {planes} * {apart} + i // {planes}]
"""
    module = tir.build(parse(text))
    assert len(re.findall(r"= load <?(?:\d+ x )?float", module.source("llvm"))) == loads
    a, b, i = np.arange(size, dtype="float32"), np.zeros(lanes, "float32"), np.arange(lanes)
    module(a, b)
    np.testing.assert_array_equal(b, a[i % planes * apart + i // planes])


@pytest.mark.parametrize(("shape", "index", "whole"), [
    ("(6, 48), 'float32'", "i, j * 16 + k * 2", True),  # of one load, from an element before it on
    ("(6, 49), 'float32'", "i, j * 16 + k * 2", True),  # even rows begin at even places, odd ones at odd places
    ("(6, 48), 'float32'", "i, j * 15 + k * 2", True),
    ("(6, 48), 'float32', strides=(50, 1)", "i, j * 16 + k * 2", True),
    ("(6, 47), 'float32', strides=(50, 1)", "i, k * 2", True),  # which ends at an odd place, beyond all that is read
    ("(6, 48), 'float32', elem_offset=1", "i, j * 16 + k * 2", False),
    ("(n, 48), 'float32'", "i, j * 16 + k * 2", False),
])  # fmt: skip
def test_a_window_at_a_step_shares_its_vectors_where_all_its_multiples_are_known_to_be_in_the_buffer(
    shape: str, index: str, whole: bool
):
    text = f"""
@T.prim_func
def main(a: T.handle, B: T.Buffer((6, 24), "float32")):
    n = T.int64()
    A = T.match_buffer(a, {shape})
    for i, j in T.grid(6, 3):
        for k in T.vectorized(8):
            B[i, j * 8 + k] = A[{index}] + A[{index} + 1]
"""
    loads = re.findall(r"load <8 x float>, ptr (\S+),", tir.build(parse(text)).source("llvm"))
    assert len(loads) == (2 if whole else 4)


PATTERN = """
@T.prim_func
def main(A: T.Buffer((SIZE,), "TYPE"), B: T.Buffer((4, 8), "TYPE")):
    for i in range(4):
        for j in T.vectorized(8):
            B[i, j] = A[i * 2 + INDEX]
"""


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize(
    "index",
    ["j // 3", "j % 3", "(j + 5) // 2 * 4", "7 - j // 2", "j % 4 * 3 + j // 4", "(j * 2 + 1) % 7", "3 - j % 2 * 3"],
)
def test_lanes_in_a_constant_pattern(index: str, dtype: str):
    size = 7 + max(eval(index, {"j": j}) for j in range(8))  # noqa: S307
    text = PATTERN.replace("SIZE", str(size)).replace("TYPE", dtype).replace("INDEX", index)
    func = parse(text)
    assert "gather" not in tir.build(func).source("llvm")
    assert_same_result(func, func, engines=["interpreter", "llvm"])


def test_a_row_whose_number_is_data_is_read_by_whole_vectors():
    @T.prim_func
    def rows(A: T.Buffer((9, 32), "float32"), I: T.Buffer((5,), "int64"), B: T.Buffer((5, 32), "float32")):
        for i in range(5):
            for j in T.vectorized(32):
                B[i, j] = A[T.min(I[i], T.int64(8)), j]

    module = tir.build(rows)
    assert "gather" not in module.source("llvm")
    a, b = np.random.default_rng(0).random((9, 32)).astype("float32"), np.zeros((5, 32), "float32")
    places = np.array([3, 8, 0, 0, 11])
    module(a, places, b)
    np.testing.assert_array_equal(b, a[np.minimum(places, 8)])


PIECES = """
@T.prim_func
def main(A: T.Buffer((37,), "float32"), B: T.Buffer((96,), "float32")):
    for i in range(12):
        for j in T.vectorized(8):
            B[i * 8 + j] = A[INDEX]
"""


@pytest.mark.parametrize(
    ("index", "branches"),
    [
        ("(i * 8 + j + 30) % 37", True),
        ("T.cast(i * 8 + j + 30, 'int64') % T.int64(37)", True),
        ("T.min(i * 8 + j, 36)", True),
        ("T.max(T.min(i * 8 + j - 20, 36), 0)", True),
        ("T.min((i * 8 + j + 3) % 74, 73 - (i * 8 + j + 3) % 74)", True),
        ("T.Select(i * 8 + j < 30, i + j, 36 - (i + j))", True),
        ("36 - T.min(i * 8 + j, 36)", True),
        ("(i * 8 + j) * 5 % 37", True),
        ("T.min((i * 8 + j) * 3, 36)", True),
        ("(i * 8 + j) // 3", False),
        ("T.min(i * 2 + j * 2, 36 - j)", False),
    ],
)
def test_pieces_of_neighbours_are_loaded_whole(index: str, branches: bool):
    """What mostly runs along memory is tested: a plain load where a vector is of neighbours, a gather where it is not."""
    func = parse(PIECES.replace("INDEX", index))
    code = tir.build(func).source("llvm")
    assert "gather" in code and ("vector.reduce.and" in code) == branches
    assert_same_result(func, func, engines=["interpreter", "llvm"])


RUN_TIME_STEP = """
@T.prim_func
def main(A: T.Buffer((100,), "TYPE"), S: T.Buffer((2,), "int64"), B: T.Buffer((2, 8), "TYPE")):
    for i in range(2):
        for j in T.vectorized(8):
            B[i, j] = A[INDEX]
"""


@pytest.mark.parametrize("step", [0, 1, 2, 11, -1, -4])
@pytest.mark.parametrize(
    ("index", "gathers"),
    [
        ("T.cast(S[0], 'int32') + j * T.cast(S[1], 'int32')", False),
        ("T.cast(S[0] + S[1] * T.cast(j, 'int64'), 'int32') + i", False),
        ("T.max(T.min(i * 4 + T.cast(S[0], 'int32') + j * T.cast(S[1], 'int32'), 70), 45)", True),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_a_step_that_is_known_at_run_time(index: str, gathers: bool, step: int, dtype: str):
    """One element after the other, or a whole vector where the step is 1."""
    func = parse(RUN_TIME_STEP.replace("INDEX", index).replace("TYPE", dtype))
    module = tir.build(func)
    assert ("gather" in module.source("llvm")) == gathers
    a = (np.arange(100) * 7 % 11 > 4) if dtype == "bool" else np.arange(100, dtype=dtype)
    first = 50 if step < 0 else 11
    b = [np.zeros((2, 8), dtype) for _ in range(2)]
    module(a, np.array([first, step]), b[0])
    tir.build(func, "interpreter")(a, np.array([first, step]), b[1])
    np.testing.assert_array_equal(*b)


@pytest.mark.parametrize("step", [0, 2, 5, -3])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_lanes_are_stored_at_a_constant_step(step: int, dtype: str):
    """In the order of the lanes: where two store to one element, the last stays."""
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "TYPE"), B: T.Buffer((40,), "TYPE")):
    for i in T.vectorized(8):
        B[FIRST + i * STEP] = A[i]
"""
    first = 30 if step < 0 else 2
    for name, value in {"TYPE": dtype, "FIRST": first, "STEP": step}.items():
        text = text.replace(name, str(value))
    module = tir.build(parse(text))
    assert "scatter" not in module.source("llvm")
    a = (np.arange(8) * 3 % 5).astype(dtype)
    b, expected = np.zeros(40, dtype), np.zeros(40, dtype)
    module(a, b)
    for lane in range(8):
        expected[first + lane * step] = a[lane]
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize(("n", "step", "taps", "batch"), [(32, 3, 5, 1), (64, 3, 4, 2), (48, 4, 6, 3), (40, 2, 3, 1)])
def test_whole_multiples_of_a_window_end_where_the_buffer_does(n: int, step: int, taps: int, batch: int):
    """Its last terms share vectors with the first ones; nothing beyond the buffer is read, nor before it."""
    size = step * (n - 1) + taps
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer(({batch}, {size}), "float32"), B: T.Buffer(({batch}, {n}), "float32")):
    for b, i in T.grid({batch}, {n // 8}):
        for j in T.vectorized(8):
            B[b, i * 8 + j] = {" + ".join(f"A[b, (i * 8 + j) * {step} + {k}]" for k in range(taps))}
""")
    a = np.arange(batch * size, dtype="float32").reshape(batch, size) % 7
    for starts in (0, 1):
        b = np.zeros((batch, n), "float32")
        at_page_ends(tir.build(func).entry, starts)(a, b)
        np.testing.assert_array_equal(b, sum(a[:, k::step][:, :n] for k in range(taps)))


def test_a_term_that_a_condition_leaves_out_is_not_read():
    """Where a mask leaves it out, too: pages before and after the buffer are not to be read."""
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for i in range(8):
        with T.allocate([16], "float32", "local") as total:
            C = T.decl_buffer((16,), "float32", data=total)
            C[0:16] = T.Broadcast(T.float32(1), 16)
            for k in T.unroll(3):
                C[0:16] = C[0:16] + T.if_then_else(i + k > 0 and i + k < 9, A[i + k - 1, 0:16], T.Broadcast(T.float32(-1), 16)) * T.Broadcast(T.float32(2), 16)
            B[i, 0:16] = C[0:16]
""")
    a = np.arange(8 * 16, dtype="float32").reshape(8, 16) % 7
    rows = np.pad(a, ((1, 1), (0, 0)), constant_values=-1)
    for starts in (0, 1):
        b = np.zeros((8, 16), "float32")
        at_page_ends(tir.build(func).entry, starts)(a, b)
        np.testing.assert_array_equal(b, 1 + 2 * (rows[:-2] + rows[1:-1] + rows[2:]))


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
def test_lanes_at_a_constant_step_under_a_mask_are_loaded_whole(dtype: str, step: int, lanes: int):
    """As at the end of a row of any length; nothing beyond its last element is read."""
    func = parse(f"""
@T.prim_func
def main(p: T.handle, q: T.handle):
    n = T.int32()
    A = T.match_buffer(p, ((n - 1) * {step} + 1,), "{dtype}")
    B = T.match_buffer(q, (n,), "{dtype}")
    for i in range((n + {lanes - 1}) // {lanes}):
        for j in T.vectorized({lanes}):
            if i * {lanes} + j < n:
                B[i * {lanes} + j] = A[(i * {lanes} + j) * {step}]
""")
    module = tir.build(func)
    is_whole = step <= 4 and dtype != "int8" and "+avx512vl" in module.source("llvm")
    assert ("masked.gather" in module.source("llvm")) != is_whole
    for n in (1, 2, lanes - 1, lanes, lanes + 1, 2 * lanes + 3):
        a, b = (np.arange(n * step) % 97).astype(dtype)[: (n - 1) * step + 1], np.zeros(n, dtype)
        at_page_ends(module.entry, 0)(a, b)
        np.testing.assert_array_equal(b, a[::step])
