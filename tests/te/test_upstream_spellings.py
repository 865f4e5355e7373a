"""What scripts written for TVM say of tensors, shapes and schedules."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.errors import ScheduleError
from tir.interp import run

A, A1 = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="A1")
k = te.var("k", "float32")


def test_an_output_that_nobody_reads_is_left_out():
    """The tutorial of tuple inputs computes one of two tensors at its consumer; both are made where both are wanted."""
    first, second = te.compute((8, 8), lambda i, j: (A[i, j] + 2, A1[i, j] * 3), name="B")
    last = te.compute((8, 8), lambda i, j: A[i, j] + first[i, j], name="C")
    s = te.create_schedule(last.op)
    s[first].compute_at(s[last], last.op.axis[0])
    a, out, other = np.arange(64, dtype="float32").reshape(8, 8), *np.zeros((2, 8, 8), "float32")
    tir.build(s, [A, A1, last], "llvm")(a, a, out)
    np.testing.assert_array_equal(out, 2 * a + 2)
    run(te.create_prim_func([A, A1, second, last]), a, a, other, out)
    np.testing.assert_array_equal(other, 3 * a)


def test_an_integral_float_is_a_size():
    assert te.compute((128 / 32, np.float64(8)), lambda i, j: A[i, j]).shape == (4, 8)
    with pytest.raises(tir.TirError, match="is an integer, not 4.5"):
        te.placeholder((4.5,))


def test_a_reducer_by_the_name_that_tir_has():
    product = tir.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t))
    axis = te.reduce_axis((0, 8), "r")
    made = te.compute((8,), lambda i: product(A[i, axis], axis=axis))
    out = np.zeros(8, "float32")
    run(te.create_prim_func([A, made]), np.full((8, 8), 2, "float32"), out)
    assert (out == 256).all()
    assert isinstance(tir.comm_reducer(lambda x, y: x + y, [0.0]), te.CommReducer)


def test_an_inlined_tensor_among_the_arguments_is_refused_with_the_way_out():
    middle = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, "B")
    last = te.compute((8, 8), lambda i, j: middle[i, j] * 2.0, "C")
    s = te.create_schedule(last.op)
    s[middle].compute_inline()
    with pytest.raises(
        ScheduleError, match="`B` is among the arguments, and inlined it would not be written"
    ) as refused:
        tir.lower(s, [A, middle, last])
    assert "arguments without it" in str(refused.value)
    tir.lower(s, [A, last])


WHOLE = {
    "scalar": (lambda: A + k, lambda a, b: a + 3),
    "scalar before": (lambda: k - A, lambda a, b: 3 - a),
    "constant": (lambda: tir.const(2.0) * A, lambda a, b: 2 * a),
    "number of NumPy": (lambda: np.float64(2) * A, lambda a, b: 2 * a),
    "product": (lambda: A @ A1, lambda a, b: a @ b),
    "type": (lambda: A.astype("int32"), lambda a, b: a.astype("int32")),
    "less": (lambda: A < A1, lambda a, b: a < b),
    "greater": (lambda: (k < A).astype("int8"), lambda a, b: a > 3),
    "scalar at most": (lambda: k <= A, lambda a, b: a >= 3),
}


@pytest.mark.parametrize("what", WHOLE)
def test_operators_of_python_take_whole_tensors_and_scalars(what):
    make, meaning = WHOLE[what]
    made = make()
    a, b = np.random.default_rng(0).integers(0, 6, (2, 8, 8)).astype("float32")
    out = np.zeros((8, 8), str(made.dtype))
    run(te.create_prim_func([k, A, A1, made]), 3.0, a, b, out)
    np.testing.assert_array_equal(out, meaning(a, b))


def test_an_element_is_no_operand_of_a_whole_tensor():
    for wrong in (lambda i, j: A + A1[i, j], lambda i, j: A1[i, j] + A):
        with pytest.raises(tir.TirError, match="tensor `A` of shape"):
            te.compute((8, 8), wrong)


def test_equality_of_one_expression_is_known():
    n, m = te.var("n"), te.var("m")
    x, y = te.placeholder((n,)), te.placeholder((n,))
    assert x.shape[0] == y.shape[0] and bool(x.shape[0] != y.shape[0]) is False
    with pytest.raises(TypeError, match="not known"):
        bool(n == m)
    with pytest.raises(TypeError, match="not known"):
        bool(k == k)  # nan differs from itself


def test_axes_are_among_the_loops_by_identity():
    s = te.create_schedule(te.compute((8, 8), lambda i, j: A[i, j], name="B").op)
    stage = s.stages[-1]
    assert all(a in stage.leaf_iter_vars for a in stage.op.axis) and te.reduce_axis((0, 8)) not in stage.leaf_iter_vars


def test_inputs_of_a_scan_may_be_one_tensor():
    x, state = te.placeholder((5, 4), name="x"), te.placeholder((5, 4), name="state")
    first = te.compute((1, 4), lambda _, i: x[0, i])
    assert te.scan(first, te.compute((5, 4), lambda t, i: state[t - 1, i] + x[t, i]), state, inputs=x).op.inputs == (x,)


def test_stages_and_schedules_know_their_groups():
    made = te.compute((8, 8), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(made.op)
    assert s[made].group is None
    group = s.create_group(outputs=made, inputs=A)
    assert s[made].group is group and s.groups == [group]


def test_other_names():
    assert tir.PrimExpr is tir.Expr and tir.DataType is tir.DType
    assert [type(x).__name__ for x in tir.runtime.convert((1, 2.0, "a"))] == ["IntImm", "FloatImm", "StringImm"]
    assert tir.convert(k) is k


@pytest.mark.parametrize("is_sum", [False, True])
def test_no_axes_are_fused_to_one_of_extent_1(is_sum):
    """Schedules that fuse all axes take tensors of 0 dimensions, too."""
    x, axis = te.placeholder((4,), name="x"), te.reduce_axis((0, 4), "r")
    made = te.compute((), (lambda: te.sum(x[axis], axis=axis)) if is_sum else (lambda: x[3] * 2.0), name="B")
    s = te.create_schedule(made.op)
    fused = s[made].fuse(*s[made].op.axis)
    s[made].parallel(fused)
    assert s[made].leaf_iter_vars == [fused, *([axis] if is_sum else [])]
    out = np.zeros((), "float32")
    tir.build(s, [x, made], "llvm")(np.arange(4, dtype="float32"), out)
    assert out == 6


def test_constants_and_calls_take_their_type_first_too():
    x = tir.Var("x")
    for classic, ours in [
        (tir.IntImm("int64", 8), tir.IntImm(8, "int64")),
        (tir.IntImm("bool", 1), tir.IntImm(1, "bool")),
        (tir.FloatImm("float32", 1.0), tir.FloatImm(1.0, "float32")),
        (tir.Call("int32", "tir.clz", [x]), tir.Call("clz", (x,), "int32")),
    ]:
        tir.assert_structural_equal(classic, ours)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tir.IntImm("8"), "IntImm is a number, not '8'"),
        (lambda: tir.IntImm("a", "int32"), "IntImm is a number, not 'a'"),
        (lambda: tir.IntImm("int32", tir.Var("x")), "IntImm is a number, not x"),
        (lambda: tir.FloatImm("float32", None), "a constant of float32 is a number, not None"),
    ],
)
def test_what_is_no_number_is_no_constant_in_either_order(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_classes_of_schedules_are_where_tvm_has_them():
    sch = tir.Schedule(tir.library.rows.softmax(8, 16))
    assert isinstance(sch.get_sref("most"), tir.schedule.StmtSRef)
    with pytest.raises(tir.schedule.ScheduleError):
        sch.get_sref("nothing")
