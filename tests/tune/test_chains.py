"""Chains of products with row reductions between them: all stages are computed for some rows at a time."""

from __future__ import annotations

import pytest

import tir
from tir import te
from tir.testing import assert_same_result

# vectors of two numbers: few columns make panels and tails
SMALL = "llvm -vector_width=64 -num-cores={} -l2_bytes={}"


def attention(shape: tuple[int, ...], keys: int, depth: int, shared: bool = False, late: bool = True) -> tir.PrimFunc:
    """softmax(Q K) V for queries of ``shape``, the last axis the rows; ``shared``: all heads have the same keys; ``late``: the
    product is divided by the sum, not the weights."""
    *heads, _ = shape
    own = [] if shared else heads
    Q, K, V = (
        te.placeholder(s, name=n)
        for n, s in (("Q", (*shape, depth)), ("K", (*own, keys, depth)), ("V", (*own, keys, depth)))
    )

    def of(*at: tir.Var) -> tuple[tir.Var, ...]:
        return () if shared else at[: len(heads)]

    d, j, most_j, total_j = (
        te.reduce_axis((0, n), x) for n, x in ((depth, "d"), (keys, "j"), (keys, "mj"), (keys, "tj"))
    )
    score = te.compute(
        (*shape, keys), lambda *a: te.sum(Q[(*a[:-1], d)] * K[(*of(*a), a[-1], d)], axis=d), name="score"
    )
    most = te.compute(shape, lambda *a: te.max(score[(*a, most_j)], axis=most_j), name="most")
    power = te.compute((*shape, keys), lambda *a: tir.exp(score[a] - most[a[:-1]]), name="power")
    total = te.compute(shape, lambda *a: te.sum(power[(*a, total_j)], axis=total_j), name="total")
    weight = power if late else te.compute(power.shape, lambda *a: power[a] / total[a[:-1]], name="weight")
    mixed = te.compute(
        (*shape, depth), lambda *a: te.sum(weight[(*a[:-1], j)] * V[(*of(*a), j, a[-1])], axis=j), name="mixed"
    )
    last = te.compute(mixed.shape, lambda *a: mixed[a] / total[a[:-1]], name="B") if late else mixed
    return te.create_prim_func([Q, K, V, last])


def perceptron(rows: int, size: int, hidden: int) -> tir.PrimFunc:
    X, W, U = (
        te.placeholder(s, name=n) for n, s in (("X", (rows, size)), ("W", (size, hidden)), ("U", (hidden, size)))
    )
    k, h = te.reduce_axis((0, size), "k"), te.reduce_axis((0, hidden), "h")
    one = te.compute((rows, hidden), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="one")
    kept = te.compute(one.shape, lambda i, j: tir.max(one[i, j], 0.0), name="kept")
    return te.create_prim_func(
        [X, W, U, te.compute((rows, size), lambda i, j: te.sum(kept[i, h] * U[h, j], axis=h), name="B")]
    )


def normalized(func: tir.PrimFunc) -> tir.PrimFunc:
    """``func`` with the weights divided inside of the product."""
    sch = tir.Schedule(func)
    sch.compute_inline("weight")
    return sch.func


CHAINS = {
    "attention": lambda: (attention((12,), 16, 4), "score"),
    "odd keys": lambda: (attention((13,), 11, 4), "score"),
    "heads": lambda: (attention((2, 3, 8), 10, 4), "score"),
    "shared keys": lambda: (attention((3, 8), 10, 4, shared=True), "score"),
    "weights": lambda: (attention((12,), 10, 4, late=False), "score"),
    "weights in the product": lambda: (normalized(attention((12,), 10, 4, late=False)), "score"),
    "perceptron": lambda: (perceptron(14, 8, 8), "one"),
}


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("name", CHAINS)
def test_all_stages_are_computed_for_a_strip(name: str, cores: int):
    func, first = CHAINS[name]()
    sch = tir.tune.default(func, SMALL.format(cores, 768))
    outermost = sch.get_loops(f"{first}_update")[0]
    last = next(b for b in sch.get_child_blocks("root") if sch.get(b).writes[0].buffer.name == func.buffers()[-1].name)
    assert sch.get_loops(last)[0] == outermost, "the product is computed whole"
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize(
    ("keys", "cache"),
    [
        pytest.param(16, 256, id="columns that overflow the cache"),
        pytest.param(16, 2 * 12 * 16 * 4, id="scores that stay in the cache"),
        pytest.param(9, 768, id="a last tile that is nearly empty"),
    ],
)
def test_products_are_computed_whole(keys: int, cache: int):
    func = attention((12,), keys, 4)
    sch = tir.tune.default(func, SMALL.format(1, cache))
    last = next(b for b in sch.get_child_blocks("root") if sch.get(b).writes[0].buffer.name == func.buffers()[-1].name)
    assert sch.get_loops("score_update")[0] != sch.get_loops(last)[0]
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_rows_after_a_product_that_is_computed_whole_are_computed_one_by_one():
    sch = tir.tune.default(attention((12,), 16, 4, late=False), SMALL.format(1, 1 << 14))
    assert sch.get_loops("power")[0] == sch.get_loops("total")[0] == sch.get_loops("most")[0]


def test_a_sum_whose_loop_stands_outside_of_the_rows_is_left_to_other_rules():
    func, _ = CHAINS["perceptron"]()
    sch = tir.Schedule(func)
    i, j, h = sch.get_loops("B")
    sch.reorder(h, i, j)
    assert_same_result(func, tir.tune.default(sch.mod["main"], SMALL.format(1, 4096)).mod, engines=("llvm",))
