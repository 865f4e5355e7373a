"""Two products and the operation on rows between them, as in attention, are one kernel, if the rows that both need fit a cache."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_graphs import expected
from tir.graph import Builder, compile_graph, groups
from tir.graph.joined_products import transposed_operands


def scores(b, keys=6, rows=4, batch=(2,)):
    return b.call("matmul", b.input("q", (*batch, rows, 8)), b.input("k", (*batch, 8, keys)))


def mixed(b, x, **attributes):
    terms = x.shape[-2] if attributes.get("transp_a") else x.shape[-1]
    return b.call("matmul", x, b.input("v", (*x.shape[:-2], terms, 3)), **attributes)


def masked(b):
    one = b.call("add", b.call("divide", scores(b), 8.0), b.input("mask", (4, 6)))
    return {"y": mixed(b, b.call("nn.softmax", one))}


def normalized(b):
    x = scores(b)
    total = b.call("mean", b.call("multiply", x, x), axis=2, keepdims=True)
    return {"y": mixed(b, b.call("divide", x, b.call("add", total, 1.0)))}


def one_row(b):
    return {"y": mixed(b, b.call("nn.softmax", scores(b, rows=1, batch=(1, 2))))}


def long_columns(b):
    return {"y": mixed(b, b.call("nn.softmax", scores(b, keys=1 << 14, batch=())))}


ONE = {
    "softmax": lambda b: {"y": mixed(b, b.call("nn.softmax", scores(b)))},
    "a mask": masked,
    "a norm by hand": normalized,
    "one row": one_row,
    "columns that just fit": long_columns,
}


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
@pytest.mark.parametrize("name", [n for n in ONE if n != "columns that just fit"])
def test_two_products_with_rows_between_them_are_one_kernel(name, target):
    b = Builder()
    graph = b.graph(ONE[name](b))
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(v.shape).astype("float32") for v in graph.inputs]
    model = compile_graph(graph, target)
    assert len(model.kernels) == 1
    np.testing.assert_allclose(model(*given), expected(graph, given)["y"], rtol=1e-4, atol=1e-5)


def test_columns_fit_half_a_megabyte():
    b = Builder()
    assert len(groups(b.graph(long_columns(b)))) == 1


def kept(b):
    x = scores(b)
    return {"x": x, "y": mixed(b, b.call("nn.softmax", x))}


def read_twice(b):
    x = scores(b)
    return {"x": b.call("nn.softmax", x, axis=1), "y": mixed(b, b.call("nn.softmax", x))}


def read_twice_after(b):
    x = b.call("nn.softmax", scores(b))
    return {"x": b.call("nn.softmax", x, axis=1), "y": mixed(b, x)}


def three_products(b):
    x = mixed(b, b.call("nn.softmax", scores(b)))
    return {"y": b.call("matmul", b.call("nn.softmax", x), b.input("w", (2, 3, 5)))}


def of_other_batches(b):
    x = b.call("nn.softmax", scores(b))
    return {"y": b.call("matmul", b.call("expand_dims", x, 0), b.input("v", (5, 2, 6, 3)))}


SEVERAL = {
    "columns": (3, lambda b: {"y": mixed(b, b.call("nn.softmax", scores(b), axis=1))}),
    "rows of a transposed one": (3, lambda b: {"y": mixed(b, b.call("nn.softmax", scores(b)), transp_a=True)}),
    "a running sum": (3, lambda b: {"y": mixed(b, b.call("cumsum", scores(b), 2))}),
    "a product": (3, lambda b: {"y": mixed(b, b.call("matmul", scores(b), b.input("w", (2, 6, 6))))}),
    "no product before": (2, lambda b: {"y": mixed(b, b.call("nn.softmax", b.input("x", (2, 4, 6))))}),
    "a sum of rows before": (
        3,
        lambda b: {"y": mixed(b, b.call("nn.softmax", b.call("nn.softmax", b.input("x", (2, 4, 6)))))},
    ),
    "scores that are a result": (3, kept),
    "scores that others read": (4, read_twice),
    "rows that others read": (4, read_twice_after),
    "columns of over half a megabyte": (
        3,
        lambda b: {"y": mixed(b, b.call("nn.softmax", scores(b, keys=(1 << 14) + 1, batch=())))},
    ),
    "an open size": (3, lambda b: {"y": mixed(b, b.call("nn.softmax", scores(b, rows="n")))}),
    "three products": (3, three_products),
    "rows of other batches": (3, of_other_batches),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_other_products_are_kernels_of_their_own(name):
    count, make = SEVERAL[name]
    b = Builder()
    graph = b.graph(make(b))
    made = [g for g in groups(graph) if g.view is None]
    assert len(made) == count, [g.name for g in made]


@pytest.mark.parametrize(
    ("axes", "left"), [((0, 2, 1), []), ((0, -1, 1), []), ((1, 2, 0), [(1, 0, 2)]), (None, [(2, 0, 1)])]
)
def test_a_copy_with_the_last_axes_exchanged_is_read_where_it_is(axes, left):
    b = Builder()
    graph = b.graph(
        {"y": b.call("matmul", b.input("q", (5, 9, 5)), b.call("transpose", b.input("k", (5, 5, 5)), axes))}
    )
    made = transposed_operands(graph)
    *moves, product = made.nodes
    assert product.arguments["transp_b"] is True and [tuple(n.arguments["axes"]) for n in moves] == left
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(v.shape).astype("float32") for v in graph.inputs]
    np.testing.assert_allclose(compile_graph(graph)(*given), expected(graph, given)["y"], rtol=1e-4, atol=1e-5)


def test_a_transposition_that_is_no_copy_stays():
    b = Builder()
    q, k = b.input("q", (5, 9, 4)), b.input("k", (4, 5, 4))
    turned = b.call("transpose", b.call("exp", k), (1, 2, 0))  # of what is computed
    stays = b.call("transpose", k, (1, 0, 2))  # the last axis is where it was
    graph = b.graph({"x": b.call("matmul", q, turned), "y": b.call("matmul", q, stays)})
    assert str(transposed_operands(graph)) == str(graph)
