"""Operators that read and store at indices from tensors: what they refuse, and what schedules know of them."""

from __future__ import annotations

import pytest

import tir
from tir import ops, te
from tir.errors import TensorExpressionError

x = te.placeholder((3, 4), name="x")
at = te.placeholder((5, 4), "int64", name="at")
updates = te.placeholder((5, 4), name="updates")
wide = te.placeholder((3, 9), "int64", name="wide")
floats = te.placeholder((3, 4), name="floats")

REFUSED = {
    "floats": (lambda: ops.take(x, floats), r"has integers, not float32"),
    "mode": (lambda: ops.take(x, at, 0, mode="raise"), r"'clip', 'wrap', 'fast'"),
    "batch": (lambda: ops.take(x, at, 0, 1), r"1 dimensions of a batch stand before axis 0"),
    "wide": (lambda: ops.gather(x, 0, wide), r"do not go with \(3, 4\) beside axis 0"),
    "along": (lambda: ops.take_along_axis(x, at, 1), r"do not broadcast"),
    "too many": (lambda: ops.gather_nd(x, te.placeholder((3, 2), "int64")), r"too many for shape \(3, 4\)"),
    "reduction": (lambda: ops.scatter_elements(x, at, updates, 0, "sub"), r"'update', 'add'"),
    "types": (lambda: ops.scatter_elements(x, at, te.placeholder((5, 4), "int8")), r"int8, but the data are float32"),
    "shapes": (
        lambda: ops.scatter_elements(x, at, te.placeholder((5, 3))),
        r"`…i` is \(5, 3\) in updates \(5, 3\), and \(5, 4\) in indices",
    ),
    "nd": (lambda: ops.scatter_nd(x, te.placeholder((1, 5), "int64"), updates, "div"), r"'update', 'add'"),
    "put": (lambda: ops.index_put(x, [at], te.placeholder((7, 5, 4, 4))), r"does not broadcast to \(5, 4, 4\)"),
    "dense": (lambda: ops.sparse_to_dense(at, (5,), updates), r"not those of 1 dimensions"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_say_what_is_wrong(what):
    call, text = REFUSED[what]
    with pytest.raises(TensorExpressionError, match=text):
        call()


def test_loops_of_a_scatter_are_parallel_where_no_two_updates_meet():
    """Along other axes than that of the indices an update has an element of its own."""
    func = te.create_prim_func([x, at, updates, ops.scatter_elements(x, at, updates, 0, "add")])
    sch = tir.Schedule(func)
    assert [bool(sch.can.parallel(sch[name])) for name in ("c2", "c1", "u2", "u1")] == [True, True, False, True]


def test_take_is_inlined_into_its_consumer():
    rows = te.placeholder((6,), "int64", name="rows")
    taken = ops.take(x, rows, 0)
    doubled = te.compute(taken.shape, lambda *i: taken(*i) * 2.0, name="doubled")
    sch = tir.Schedule(te.create_prim_func([x, rows, doubled]))
    sch.compute_inline("take")
    assert "take" not in sch.mod["main"].script()
