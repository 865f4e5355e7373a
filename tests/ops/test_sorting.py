"""Sorting: what is refused, and what schedules know of it."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.errors import TensorExpressionError

x = te.placeholder((4, 9), name="x")

REFUSED = {
    "axis": (lambda: ops.sort(x, 2), r"from -2 to 1"),
    "count": (lambda: ops.topk(x, 10), r"there are 9 elements along axis 1, not 10"),
    "what": (lambda: ops.topk(x, 1, ret_type="mask"), r"'both', 'values', 'indices'"),
    "counts": (lambda: ops.argsort(x, te.placeholder((9,), "int32")), r"not one for each row of \(4, 9\) along axis 1"),
    "types": (lambda: ops.searchsorted(x, te.placeholder((4, 2), "int8")), r"int8, but the data are float32"),
    "rows": (lambda: ops.searchsorted(x, te.placeholder((3, 2))), r"no row for each one"),
    "side": (lambda: ops.searchsorted(x, x, side="middle"), r"'left', 'right'"),
    "matrix": (lambda: ops.unique(x), r"data has shape \(4, 9\), which is not \(n\)"),
    "columns": (lambda: ops.argwhere((5, 3), x), r"not those of 2 dimensions"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_say_what_is_wrong(what):
    call, text = REFUSED[what]
    with pytest.raises(TensorExpressionError, match=text):
        call()


def test_rows_are_sorted_in_parallel():
    sch = tir.Schedule(te.create_prim_func([x, ops.sort(x)]))
    sch.parallel(sch["r1"])
    data = np.random.default_rng(0).standard_normal((4, 9)).astype("float32")
    out = np.zeros_like(data)
    tir.build(sch.mod, "llvm")(data, out)
    assert (out == np.sort(data)).all()


def test_a_row_of_any_length_is_sorted():
    """One program of a symbolic length: up to and beyond each power of two, where the number of passes changes."""
    n = te.var("n")
    row = te.placeholder((n,), "int32", name="row")
    sort = tir.build(te.create_prim_func([row, ops.argsort(row)]), "llvm")
    rng = np.random.default_rng(0)
    for length in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 257):
        data, order = rng.integers(0, 9, length, dtype="int32"), np.zeros(length, "int64")
        sort(data, order)
        assert (order == np.argsort(data, kind="stable")).all()


@pytest.mark.parametrize(
    "shape, axis, dtype", [((17, 33), -1, "float32"), ((9, 40, 4), 1, "int16"), ((8, 700), 1, "float64")]
)
def test_short_rows_are_sorted_by_a_network(shape, axis, dtype):
    """Rows that are no multiple of the lanes, of no power of two, longer and shorter than a part that is sorted first."""
    given = te.placeholder(shape, dtype, name="given")
    made = ops.sort(given, axis)
    assert "tile" in te.create_prim_func([given, made]).script()
    data = np.random.default_rng(1).integers(-99, 99, shape).astype(dtype)
    data.reshape(-1)[::7] = np.inf if made.dtype.is_float else 32767
    out = np.zeros_like(data)
    tir.build(te.create_prim_func([given, made]), "llvm")(data, out)
    assert (out == np.sort(data, axis)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint16", "bool"])
@pytest.mark.parametrize("is_ascending", [True, False])
@pytest.mark.parametrize("shape, axis", [((7, 2), 0), ((2, 40), 1), ((1, 100), -1)])
def test_values_are_sorted_by_keys_alone(shape, axis, is_ascending, dtype):
    """Rows too few for the network; each width of a digit."""
    given = te.placeholder(shape, dtype, name="given")
    made = ops.sort(given, axis, is_ascending)
    func = te.create_prim_func([given, made])
    assert "order" not in func.script()
    data = np.random.default_rng(1).integers(-90, 90, shape).astype(dtype)
    if made.dtype.is_float:
        data.reshape(-1)[:6] = [np.nan, -np.inf, np.inf, -0.0, 0.0, -np.nan]
    expected = np.sort(data.astype("float64"), axis)
    out = np.zeros_like(data)
    tir.build(func, "interpreter")(data, out)
    np.testing.assert_array_equal(out.astype("float64"), expected if is_ascending else np.flip(expected, axis))


def test_values_of_a_row_that_is_too_long_for_the_stack_are_sorted():
    data = np.random.default_rng(1).standard_normal(5000).astype("float32")
    given = te.placeholder(data.shape, name="given")
    out = np.zeros_like(data)
    tir.build(te.create_prim_func([given, ops.sort(given)]), "llvm")(data, out)
    assert (out == np.sort(data)).all()


def test_positions_in_order_come_without_the_values():
    func = te.create_prim_func([x, ops.argsort(x)])
    assert "order" in func.script() and "sorted" not in func.script()


def test_few_of_many_are_found_without_sorting():
    def is_sorted(count, few):
        given = te.placeholder((count,), name="given")
        return "counts" in te.create_prim_func([given, *ops.topk(given, few)]).script()

    assert not is_sorted(1 << 20, 100) and not is_sorted(1000, 64)
    assert is_sorted(1000, 100) and is_sorted(
        1 << 20, 1000
    )  # the last: an ascending row would take eight times as long


def test_groups_of_rows_are_sorted_in_parallel():
    given = te.placeholder((40, 9), name="given")
    sch = tir.Schedule(te.create_prim_func([given, ops.sort(given)]))
    sch.parallel(sch["rows"])
    data = np.random.default_rng(0).standard_normal((40, 9)).astype("float32")
    out = np.zeros_like(data)
    tir.build(sch.mod, "llvm")(data, out)
    assert (out == np.sort(data)).all()


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool"])
@pytest.mark.parametrize("length, few", [(1, 1), (33, 1), (40, 10), (64, 32), (65, 1), (150, 7), (331, 32), (700, 5)])
def test_the_first_few_of_rows_of_any_length(length, few, dtype):
    """Rows shorter and longer than what is looked at together, with many equal elements; of these the first are found."""
    rng = np.random.default_rng(length)
    data = np.stack([np.arange(length), -np.arange(length), *rng.integers(0, 3 + length // 4, (2, length))]).astype(
        dtype
    )
    if dtype.startswith("float"):
        data[2, rng.random(length) < 0.3] = np.nan
        data[3, rng.random(length) < 0.9] = np.nan
    given = te.placeholder(data.shape, dtype, name="given")
    func = te.create_prim_func([given, ops.topk(given, few, ret_type="indices", is_ascend=True)])
    for target in ("llvm", "interpreter"):
        found = np.full((4, few), -1)
        tir.build(func, target)(data, found)
        np.testing.assert_array_equal(found, np.argsort(data, -1, kind="stable")[:, :few])


NARROW = {
    "argsort": lambda: ops.argsort(te.placeholder((129,)), dtype="int8"),
    "topk": lambda: ops.topk(te.placeholder((300, 2)), 3, axis=0, dtype="uint8"),
    "argmax": lambda: ops.argmax(te.placeholder((13, 10)), dtype="int8"),
    "searchsorted": lambda: ops.searchsorted(te.placeholder((128,)), te.placeholder((2,)), out_dtype="int8"),
}


@pytest.mark.parametrize("what", NARROW)
def test_positions_that_a_type_does_not_hold_are_refused(what):
    with pytest.raises(TensorExpressionError, match=r"positions up to \d+ are no u?int8, which ends at"):
        NARROW[what]()


def test_positions_that_a_type_just_holds():
    for made in (
        ops.argsort(te.placeholder((128,)), dtype="int8"),
        ops.searchsorted(te.placeholder((127,)), te.placeholder(()), out_dtype="int8"),
    ):
        assert made.dtype == "int8"


def test_counts_that_are_no_tensor_are_refused():
    with pytest.raises(tir.TirError, match="valid_count is a tensor, not 3"):
        ops.argsort(te.placeholder((4,), name="x"), 3)
