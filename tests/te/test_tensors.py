"""Tensors, axes and operations: what they are, before they become programs."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from te_oracle import judge

import tir
from tir import te


def test_the_old_spelling_reaches_it():
    import tir as tvm

    A = tvm.te.placeholder((4,), name="A")
    C = tvm.te.compute(A.shape, lambda i: A[i] * 2, name="C")
    assert isinstance(tvm.te.create_prim_func([A, C]), tvm.PrimFunc)


def test_the_oldest_spelling_reaches_it():
    import tir as tvm

    A = tvm.placeholder((4, 8), name="A")
    k = tvm.reduce_axis((0, 8), "k")
    judge([A, tvm.compute((4,), lambda i: tvm.sum(A[i, k], axis=k), name="B")], target=None)


def test_importing_tir_does_not_import_it():
    code = "import sys, tir; print('tir.te' in sys.modules); tir.te; print('tir.te' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    "value, dtype",
    [
        (te.const(0, "int8"), "int8"),
        (te.const(0), "int32"),
        (te.const(0.0), "float32"),
        (te.const(1, "float16"), "float16"),
        (te.const(True), "bool"),
        (te.var("n"), "int32"),
        (te.size_var("n", "int64"), "int64"),
    ],
)
def test_types_are_kept(value, dtype):
    assert value.dtype == dtype


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "float32", "float64", "bfloat16"])
def test_reductions_keep_the_type(dtype):
    A, k = te.placeholder((4, 8), dtype, name="A"), te.reduce_axis((0, 8), "k")
    for reducer in (te.sum, te.prod, te.max, te.min):
        B = te.compute((4,), lambda i: reducer(A[i, k], axis=k), name="B")
        assert B.dtype == dtype and all(z.dtype == dtype for z in B.op.body[0].combiner.identity)


def test_operation_knows_its_graph():
    A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B", tag="row", attrs={"level": 2})
    assert [a.var.name for a in B.op.axis] == ["i"] and B.op.reduce_axis == (k,)
    assert B.op.input_tensors == (A,) and B.op.output(0) is B and B.op.num_outputs == 1
    assert B.op.tag == "row" and B.op.attrs["level"] == 2 and B.op.place.filename == __file__
    assert A.op.input_tensors == () and A.op.axis == ()


def test_operation_with_other_inputs():
    A, A2 = te.placeholder((4,), name="A"), te.placeholder((4,), name="A2")
    B = te.compute((4,), lambda i: A[i] + A[3 - i], name="B")
    C = B.op.with_inputs({A: A2}).output(0)
    assert C.op.input_tensors == (A2,) and B.op.input_tensors == (A,)
    assert [a.var for a in C.op.axis] == [a.var for a in B.op.axis]
    assert B.op.with_inputs({C: A}) is B.op
    judge([A2, C])


def test_indices_may_come_one_by_one():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i][j] + A[(i, j)] + A(i, j), name="B")
    judge([A, B])


def test_an_axis_is_an_expression():
    A, k = te.placeholder((8,), "int32", name="A"), te.reduce_axis((0, 8), "k")
    for formula in (
        lambda i: te.sum(te.if_then_else(k == 0, 1, k // 2), axis=k),
        lambda i: te.sum(A[7 - k] * k + (k % 3), axis=k),
        lambda i: te.sum(-k + A[k], axis=k, where=te.all(k != 3, k < 6, i >= k)),
        lambda i: te.sum(k, axis=k),
        lambda i: te.sum(k.astype("int32") * (2 + k) - (1 - k), axis=k),
    ):
        judge([A, te.compute((3,), formula, name="B")], target=None)


def test_functions_with_defaults_and_partial_ones():
    A = te.placeholder((4, 5), name="A")
    results = [te.compute((4,), lambda i, column=c: A[i, column], name=f"B{c}") for c in range(2)]
    judge([A, *results, te.compute((5,), partial(lambda r, j: A[r, j], 2), name="row")], target=None)


def test_methods_compute():
    class Scaled:
        def __init__(self, by):
            self.by = by

        def formula(self, i):
            return A[i] * self.by

    A = te.placeholder((4,), name="A")
    judge([A, te.compute((4,), Scaled(3.0).formula, name="B")], target=None)


def test_varargs_names():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda *i: A(*i), name="B", varargs_names=["row", "column"])
    assert [a.var.name for a in B.op.axis] == ["row", "column"]


def test_numpy_numbers_are_numbers():
    A = te.placeholder((np.int64(4),), name="A")
    judge([A, te.compute((np.int32(4),), lambda i: A[i] * np.float32(2), name="B")], target=None)


def test_nested_lists_of_arguments():
    A = te.placeholder((4,), name="A")
    pair = te.compute((4,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="T")
    func = te.create_prim_func([[A], pair])
    assert [b.name for b in func.buffers()] == ["A", "T_v0", "T_v1"]
    judge([A, *pair], func)


def test_name_of_the_function():
    A = te.placeholder((4,), name="A")
    assert te.create_prim_func([A, te.compute((4,), lambda i: A[i], name="B")], name="copy").name == "copy"


def test_a_graph_becomes_a_function_any_number_of_times():
    A = te.placeholder((4,), name="A")
    args = [A, te.compute((4,), lambda i: A[i] + 1.0, name="B")]
    tir.assert_structural_equal(te.create_prim_func(args), te.create_prim_func(args))


def test_reducers_combine_scalars():
    A = te.placeholder((4,), name="A")
    formula = lambda i: te.sum(te.max(A[i], 0.0), te.min(A[i], 1.0, A[0]), te.prod(A[i], 2.0))  # noqa: E731
    judge([A, te.compute((4,), formula, name="B")], target=None)


def test_a_loop_in_python_builds_an_expression():
    A = te.placeholder((4, 3), name="A")

    def polynomial(i):
        value = te.const(0.0)
        for power in range(A.shape[1]):
            value = value * 0.5 + A[i, power]
        return value

    judge([A, te.compute((4,), polynomial, name="B")])


def test_text_of_expressions():
    A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k] * 2.0, axis=k), name="B")
    assert repr(A) == "Tensor(A, (4, 8), float32)" and repr(A[0, 1] + 1.0) == "A[0, 1] + 1.0"
    assert "A[i, k] * 2.0" in repr(B.op.body[0]) and repr(A[0]) == "A[0]"


def test_long_expressions():
    X = te.placeholder((2000,), name="X")
    Y = te.compute((2,), lambda i: sum((X[n] for n in range(1500)), i.astype("float32")), name="Y")
    store = te.create_prim_func([X, Y]).root.body.body.block.body
    assert sum(isinstance(n, tir.expr.BufferLoad) for n in tir.visit.walk(store)) == 1500


def test_long_chains():
    X = te.placeholder((2,), name="X")
    Y = X
    for step in range(300):
        Y = te.compute((2,), lambda i, Y=Y: Y[i] + 1.0, name=f"Y{step}")
    func = te.create_prim_func([X, Y])
    out = np.zeros(2, "float32")
    from tir.interp import run

    run(func, np.zeros(2, "float32"), out)
    assert out.tolist() == [300.0, 300.0]


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (te.hybrid, "build", "tir.lower"),
        (te.hybrid, "decorate", "te.hybrid.script"),
        (te.hybrid, "source_to_op", "te.hybrid.script"),
    ],
)
def test_names_that_are_missing_say_what_to_use(module, name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(module, name)
