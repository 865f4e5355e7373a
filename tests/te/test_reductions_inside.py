"""Reductions inside of expressions, beside each other and inside of each other: what TVM's create_prim_func refuses."""

from __future__ import annotations

import numpy as np
import pytest
from te_oracle import Oracle, judge, values_for

import tir
from tir import te
from tir.interp import run


def judged(inputs, shape, formula, names: str):
    """The formula gives what NumPy gives; ``names`` are those of the operations made, in order."""
    made = te.compute(shape, formula, name="C")
    outputs = list(made) if isinstance(made, tuple) else [made]
    results = judge([*inputs, *outputs])
    rng = np.random.default_rng(0)
    given = {t: values_for(t, {}, rng) for t in inputs}
    for got, wanted in zip(results, Oracle(given).formula(shape, formula)):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    blocks = [b.name for b in _blocks(te.create_prim_func([*inputs, *outputs]))]
    assert " ".join(blocks) == names
    return made


def _blocks(func):
    from tir.visit import walk

    return [n for n in walk(func.body) if isinstance(n, tir.Block) and n.name != "root"]


A = te.placeholder((6, 4), name="A")
B = te.placeholder((6,), name="B")
k = te.reduce_axis((0, 4), "k")
l = te.reduce_axis((0, 6), "l")


def test_sum_plus_a_bias():
    C = judged([A, B], (6,), lambda i: te.sum(A[i, k], axis=k) + B[i], "C_sum C")
    assert [t.name for t in C.op.input_tensors] == ["C_sum", "B"]
    assert C.op.input_tensors[0].op.reduce_axis[0].var is k.var


def test_helper_has_only_the_axes_it_depends_on():
    C = judged([A], (6, 4), lambda i, j: te.exp(A[i, j]) / te.sum(te.exp(A[i, k]), axis=k), "C_sum C")
    assert C.op.input_tensors[1].shape[0].value == 6 and C.op.input_tensors[1].ndim == 1


def test_total_is_a_scalar():
    C = judged([A], (6, 4), lambda i, j: A[i, j] / te.sum(A[l, k] * A[l, k] + 1.0, axis=[l, k]), "C_sum C")
    assert C.op.input_tensors[1].ndim == 0


def test_equal_reductions_are_made_once():
    judged([A], (6,), lambda i: te.sum(A[i, k], axis=k) * te.sum(A[i, k], axis=k), "C_sum C")


def test_different_reductions_in_one_expression():
    judged([A], (6,), lambda i: te.max(A[i, k], axis=k) - te.min(A[i, k], axis=k), "C_max C_min C")
    judged([A, B], (6,), lambda i: te.sum(A[i, k], axis=k) + te.sum(B[l], axis=l), "C_sum C_sum_1 C")


def test_reduction_inside_of_a_reduction():
    judged([A], (), lambda: te.max(te.sum(A[l, k], axis=k), axis=l), "C_sum C")
    judged([A], (6,), lambda i: te.sum(A[i, k] * te.max(A[l, k], axis=l), axis=k), "C_max C")


def test_reduction_inside_of_a_triangular_one():
    def formula(i):
        j = te.reduce_axis((0, i + 1), "j")
        return te.sum(B[j] * te.max(A[j, k] + B[i], axis=k), axis=j)

    judged([A, B], (6,), formula, "C_max C")


def test_reduction_inside_of_one_with_a_begin():
    j = te.reduce_axis((2, 5), "j")
    judged([A], (), lambda: te.sum(te.max(A[j, k], axis=k), axis=j), "C_max C")


def test_reduction_in_a_condition_that_guards_its_reads():
    shifted = lambda i: te.if_then_else(i > 0, te.sum(A[i - 1, k], axis=k), 0.0)  # noqa: E731
    judged([A], (6,), shifted, "C_sum C")


def test_reduction_under_a_condition_about_other_axes():
    judged([A], (6, 3), lambda i, j: te.if_then_else(j < 2, te.sum(A[i, k], axis=k), B_(j)), "C_sum C")


def B_(j):
    return te.const(0.5) * j.astype("float32")


def test_one_result_of_a_pair():
    pair = te.comm_reducer(
        lambda x, y: (x[0] + y[0], te.max(x[1], y[1])), lambda s, t: (te.const(0, s), te.min_value(t))
    )

    def both(i):
        total, most = pair((A[i, k], A[i, k]), axis=k)
        return total / most

    judged([A], (6,), both, "C_reduce C")
    judged([A], (6,), lambda i: pair((A[i, k], A[i, k]), axis=k)[1], "C_reduce C")


def test_tuple_of_two_sums_is_one_block():
    made = judged([A], (6,), lambda i: (te.sum(A[i, k], axis=k), te.sum(A[i, k] * 2.0, axis=k)), "C")
    assert len(made) == 2 and made[0].op is made[1].op


def test_tuple_of_two_kinds_of_reduction():
    judged([A], (6,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[i, k], axis=k)), "C")


def test_tuple_of_reductions_over_different_axes():
    judged([A], (4,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[l, i], axis=l)), "C_sum C_max C_v0 C_v1")


def test_tuple_of_a_reduction_and_an_element():
    judged([A], (6,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0] * 2.0), "C_sum C_v0 C_v1")


def test_condition_of_a_sum():
    judged([A], (6,), lambda i: te.sum(A[i, k], axis=k, where=k < i), "C")
    judged([A], (6,), lambda i: te.max(A[i, k], axis=k, where=te.all(k > 0, A[i, k] < 1.0)), "C")


def test_condition_guards_the_reads():
    judged([A], (8,), lambda i: te.sum(A[i - 1, k], axis=k, where=te.all(i > 0, i < 7)), "C")


def test_initial_value_that_depends_on_an_axis():
    judged([A, B], (6,), lambda i: te.sum(A[i, k], axis=k, init=B[i]), "C")
    judged([A], (6,), lambda i: te.max(A[i, k], axis=k, init=0.5), "C")


def test_initial_value_that_is_a_reduction():
    judged([A, B], (6,), lambda i: te.sum(A[i, k], axis=k, init=te.max(B[l], axis=l)), "C_max C")


@pytest.mark.parametrize(
    "begin, extent, blocks",
    [
        ("0", "i + 1", "C"),
        ("0", "i", "C_init C"),
        ("i", "4", "C_init C"),
        ("i // 2", "i // 2 + 1", "C"),
    ],
)
def test_domain_that_depends_on_an_outer_axis(begin, extent, blocks):
    def formula(i):
        j = te.reduce_axis((eval(begin, {"i": i}), eval(extent, {"i": i})), "j")
        return te.sum(B[j], axis=j)

    judged([B], (6,) if begin == "0" else (5,), formula, blocks)


def test_domain_of_an_inner_axis_depends_on_the_outer_one():
    outer = te.reduce_axis((0, 4), "outer")
    inner = te.reduce_axis((0, outer + 1), "inner")
    judged([B], (2,), lambda i: te.sum(B[inner] * B[outer + i], axis=[outer, inner]), "C")


def test_domain_that_depends_on_data():
    lengths = te.placeholder((6,), "int32", name="lengths")

    def formula(i):
        j = te.reduce_axis((0, lengths[i]), "j")
        return te.sum(A[i, j], axis=j)

    judged([A, lengths], (6,), formula, "C_init C")


def test_ragged_rows():
    begins = te.placeholder((7,), "int32", name="begins")
    values = te.placeholder((12,), name="values")

    def formula(i):
        j = te.reduce_axis((begins[i], begins[i + 1]), "j")
        return te.sum(values[j], axis=j)

    func = te.create_prim_func([begins, values, te.compute((6,), formula, name="C")])
    rows = np.array([0, 2, 2, 5, 9, 9, 12], "int32")
    data, out = np.arange(12, dtype="float32"), np.zeros(6, "float32")
    tir.build(func, "llvm")(rows, data, out)
    np.testing.assert_array_equal(out, [data[a:b].sum() for a, b in zip(rows, rows[1:])])


def test_adaptive_pool_extents():
    def pooled(i):
        begin, end = i * 6 // 4, ((i + 1) * 6 + 3) // 4
        j = te.reduce_axis((begin, end), "j")
        return te.sum(B[j], axis=j) / (end - begin).astype("float32")

    judged([B], (4,), pooled, "C_sum C")


@pytest.mark.parametrize(("reducer", "identity"), [(te.sum, 0.0), (te.prod, 1.0)])
def test_a_reduction_over_no_elements_is_its_identity(reducer, identity):
    A, k = te.placeholder((3, 0), name="A"), te.reduce_axis((0, 0), "k")
    B = te.compute((3,), lambda i: reducer(A[i, k], axis=k), name="B")
    out = np.full(3, 7, "float32")
    tir.build(te.create_prim_func([A, B]), "llvm")(np.zeros((3, 0), "float32"), out)
    np.testing.assert_array_equal(out, np.full(3, identity, "float32"))


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_a_helper_over_no_elements_has_no_negative_extent(rows):
    n = te.var("n")

    def formula(i):
        k = te.reduce_axis((0, te.min(i, 4)), "k")
        inner = te.reduce_axis((0, 3), "inner")
        return te.sum(te.sum(k + i, axis=inner), axis=k)

    C = te.compute((n,), formula, name="C")
    out = np.full(rows, -1, "int32")
    run(te.create_prim_func([C]), out, regions=True)
    np.testing.assert_array_equal(out, [sum(3 * (k + i) for k in range(min(i, 4))) for i in range(rows)])
