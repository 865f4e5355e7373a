"""Products of one tensor as one product, the slices of its columns that others read in place, and slices that are views."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_graphs import expected
from tir.graph import Builder, compile_graph, groups, optimized, plan
from tir.graph.joined_products import join_products
from tir.graph.model import compile_optimized

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape).astype("float32")


def products(b, x, widths, bias=True, name="w"):
    for width in widths:
        y = b.call("matmul", x, b.constant(numbers(x.shape[-1], width), name))
        yield b.call("add", y, b.constant(numbers(width), "bias")) if bias else y


def attention(rows, heads, size, bias=True):
    b = Builder()
    x = b.input("x", (1, rows, heads * size))
    made = list(products(b, x, [heads * size] * 3, bias))
    q, k, v = (b.call("transpose", b.call("reshape", y, (1, rows, heads, size)), (0, 2, 1, 3)) for y in made)
    scores = b.call("nn.softmax", b.call("matmul", q, b.call("transpose", k, (0, 1, 3, 2))))
    return b.graph({"y": b.call("transpose", b.call("matmul", scores, v), (0, 2, 1, 3))})


def same(graph, target):
    given = [numbers(*v.shape) for v in graph.inputs]
    made = compile_graph(graph, target)(*given)
    for array, want in zip(made if isinstance(made, tuple) else [made], expected(graph, given).values()):
        np.testing.assert_allclose(array, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_is_one_product_and_reads_q_k_and_v_where_they_are(bias, target):
    graph = attention(6, 2, 3, bias)
    first, last = (g.nodes for g in groups(optimized(graph)) if g.view is None)
    assert [n.operator for n in first] == ["matmul", "add"][: 1 + bias]
    assert [n.operator for n in last if n.operator in ("matmul", "nn.softmax")] == ["matmul", "nn.softmax", "matmul"]
    assert [n.arguments.get("transp_b", False) for n in last if n.operator == "matmul"] == [True, False]
    same(graph, target)


def test_products_of_several_widths_are_slices_of_one():
    b = Builder()
    x = b.input("x", (2, 5, 8))
    one, two, three = products(b, x, [3, 2, 6])
    graph = b.graph({"y": b.call("concatenate", (b.call("exp", one), two, three), 2)})
    made = optimized(graph)
    assert [n.operator for n in made.nodes].count("matmul") == 1
    (product,) = (n for n in made.nodes if n.operator == "matmul")
    assert product.outputs[0].shape == (2, 5, 11) and len(made.constants) == 2
    same(graph, "interpreter")


def test_products_stay_apart_where_one_would_need_more_kernels():
    b = Builder()
    x = b.input("x", (5, 8))
    one, two = products(b, x, [4, 4])
    computed = b.graph({"a": b.call("exp", one), "b": b.call("tanh", two)})  # in the kernels of the products
    results = b.graph({"a": one, "b": two})
    both = b.graph({"x": b.call("nn.softmax", one), "y": b.call("cumsum", two, 0), "z": b.call("cumsum", two, 1)})
    for graph in (computed, results):
        assert join_products(graph) is graph
    assert join_products(both) is not both  # one of two is read by two kernels
    same(both, "interpreter")


def test_products_that_are_no_products_of_one_tensor_by_constants_stay_apart():
    b = Builder()
    x, y = b.input("x", (4, 4)), b.input("y", (4, 4))
    w = b.constant(numbers(4, 4), "w")
    pairs = [(x, w, False, False), (y, w, False, False), (x, y, False, False), (x, w, False, True), (x, w, True, False)]
    made = [b.call("matmul", one, other, transp_a=ta, transp_b=tb) for one, other, ta, tb in pairs]
    total = made[0]
    for each in made[1:]:
        total = b.call("add", total, each)
    graph = b.graph({"y": total})
    assert join_products(graph) is graph


def test_only_biases_of_all_products_are_joined():
    b = Builder()
    x = b.input("x", (5, 8))
    (plain,) = products(b, x, [4], bias=False)
    (biased,) = products(b, x, [4])
    grown = b.call("add", b.call("matmul", x, b.constant(numbers(8, 1), "narrow")), b.constant(numbers(4), "bias"))
    (raised,) = products(b, x, [4], bias=False)
    raised = b.call("add", raised, b.constant(numbers(1, 1, 4), "higher"))
    graph = b.graph({"y": b.call("multiply", b.call("multiply", plain, biased), grown), "z": b.call("sum", raised, 0)})
    same(graph, "interpreter")


# ---------------------------------------------------------------- views at a byte


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_slices_of_whole_rows_are_views(target):
    b = Builder()
    x, w = b.input("x", (3, 4, 5)), b.constant(numbers(5, 2), "w")
    computed = b.call("cumsum", x, 0)
    rows = [b.call("strided_slice", v, (n, 1), (n + 1, 3), axes=(0, 1)) for v in (x, computed) for n in (0, 2)]
    rows = [b.call("reshape", v, (2, 5)) for v in rows]
    graph = b.graph({f"y{n}": b.call("matmul", v, w) for n, v in enumerate(rows)})
    final = optimized(graph)
    order = groups(final)
    made = plan(order, final.outputs.values())
    assert [g.view is not None for g in order].count(True) == 4
    assert sorted(p.begin for p in made.views.values()) == [20, 20, 180, 180]
    assert len(compile_optimized(final, target).kernels) == 5
    same(graph, target)


def test_a_slice_of_columns_or_of_every_other_row_is_no_view():
    b = Builder()
    x = b.input("x", (4, 6))
    apart = [
        b.call("strided_slice", x, (1,), (3,), axes=(1,)),
        b.call("strided_slice", x, (0,), (4,), (2,), (0,)),
        b.call("flip", x, 0),
    ]
    made = b.graph({f"y{n}": b.call("cumsum", v, 0) for n, v in enumerate(apart)})
    assert [g for g in groups(made) if g.view is not None] == []
    same(made, "llvm")


def test_profile_times_kernels_that_read_views_of_inputs():
    b = Builder()
    x = b.input("x", (2, 3, 4))
    row = b.call("reshape", b.call("strided_slice", x, (1,), (2,), axes=(0,)), (3, 4))
    model = compile_graph(b.graph(b.call("matmul", row, b.constant(numbers(4, 4), "w"))))
    assert [k.kernel for k in model.profile(numbers(2, 3, 4), repeat=1).kernels] == list(model.kernels)
