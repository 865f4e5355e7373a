"""Results that kernels write over an input: what is legal, the plan that says so, and its checker."""

from __future__ import annotations

import gc
import textwrap
import weakref
from dataclasses import replace

import numpy as np
import pytest

import tir
from tests.random_graphs import expected
from tir import te
from tir.graph import Builder, ModelError, check_plan, compile_graph, groups, optimized
from tir.graph import plan as plan_of
from tir.graph.in_place import in_place, lowered_in_place
from tir.graph.kernels import Kernels
from tir.transform.pipeline import lowered_before

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape).astype("float32")


def changed(compute, *shapes):
    """The function of a tensor ``x`` of 4 x 4, and others, over ``x``."""
    x = te.placeholder((4, 4), name="x")
    others = [te.placeholder(shape, name=f"y{n}") for n, shape in enumerate(shapes)]
    func = te.create_prim_func([x, *others, compute(x, *others)])
    return in_place(func, func.buffers()[0], func.buffers()[-1])


K = te.reduce_axis((0, 4), "k")
LEGAL = {
    "elementwise": lambda x: te.compute((4, 4), lambda i, j: x[i, j] * 2.0),
    "read before": lambda x: (lambda s: te.compute((4, 4), lambda i, j: x[i, j] - s[i]))(
        te.compute((4,), lambda i: te.sum(x[i, K], axis=K))
    ),
}
ILLEGAL = {
    "transposed": lambda x: te.compute((4, 4), lambda i, j: x[j, i]),
    "neighbour": lambda x: te.compute((4, 4), lambda i, j: x[i, j] + x[(i + 1) % 4, j]),
    "reduction": lambda x: te.compute((4, 4), lambda i, j: te.sum(x[i, j] * 1.0, axis=te.reduce_axis((0, 2), "r"))),
    "other shape": lambda x: te.compute((16,), lambda i: x[i // 4, i % 4]),
    "other type": lambda x: te.compute((4, 4), lambda i, j: x[i, j].astype("int32")),
    "nothing to do": lambda x: te.compute((4, 4), lambda i, j: x[i, j]),
}


@pytest.mark.parametrize("name", LEGAL)
def test_a_result_may_be_written_where_each_element_is_read_last(name):
    assert changed(LEGAL[name]) is not None


@pytest.mark.parametrize("name", LEGAL)
def test_what_is_lowered_already_is_written_in_place_as_what_is_lowered_after(name):
    x = te.placeholder((4, 4), name="x")
    func = te.create_prim_func([x, LEGAL[name](x)])
    before, after = (lowered_before("use_workspace", f, "llvm").func for f in (func, in_place(func, *func.buffers())))
    made = lowered_in_place(before, *func.buffers())
    assert made is not None and made.script() == after.script()


@pytest.mark.parametrize("name", ILLEGAL)
def test_elements_that_are_read_after_others_were_written_stay(name):
    assert changed(ILLEGAL[name]) is None


def scheduled(body):
    """Whether the result ``y`` of a body may be written over ``x``, and then whether it is the same."""
    func = tir.script.parse(f"""
@T.prim_func
def f(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
{textwrap.indent(textwrap.dedent(body), "    ")}""")
    made = in_place(func, *func.buffers())
    given, want = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tir.build(func, "interpreter")(given, want)
    if made is not None:
        tir.build(made, "interpreter")(given)
        lowered = lowered_in_place(lowered_before("use_workspace", func, "llvm").func, *func.buffers())
        assert lowered is None or lowered.script() == lowered_before("use_workspace", made, "llvm").func.script()
    return made is not None, made is None or given.tolist() == want.tolist()


VERSIONS = """
@T.prim_func
def f(n: T.int32, x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    if {condition}:
        for i in range(8):
            with T.block("few"):
                v = T.axis.spatial(8, i)
                y[v] = x[v] * 2.0
    else:
        for i in range(8):
            with T.block("many"):
                v = T.axis.spatial(8, i)
                y[v] = x[{read}] * 3.0
"""


@pytest.mark.parametrize(
    ("condition", "read", "is_legal"), [("n < 4", "v", True), ("n < 4", "7 - v", False), ("x[0] < 4.0", "v", False)]
)
def test_each_version_for_a_size_reads_the_element_that_it_replaces(condition, read, is_legal):
    func = tir.script.parse(VERSIONS.format(condition=condition, read=read))
    made = in_place(func, *func.buffers())
    assert (made is not None) is is_legal
    for n, factor in [(3, 2), (4, 3)] if made else ():
        kept = np.arange(8, dtype="float32")
        tir.build(made)(n, kept)
        assert kept.tolist() == [factor * k for k in range(8)]


@pytest.mark.parametrize(
    ("is_legal", "body"),
    [
        (False, """
        for i, j in T.grid(8, 2):
            with T.block("again"):
                v = T.axis.spatial(8, i)
                y[v] = x[v] * 2.0"""),
        (False, """
        for i, j in T.grid(2, 5):
            with T.block("overlapping"):
                v = T.axis.spatial(8, i * 3 + j)
                y[v] = x[v] * 2.0"""),
        (False, """
        for i in range(8):
            for j in range(2):
                y[i] = x[i] * 2.0"""),
        (False, """
        for i in range(8):
            with T.block("inside"):
                v = T.axis.spatial(8, i)
                for j in range(2):
                    y[v] = x[v] * 2.0"""),
        (False, """
        for i in range(8):
            n = T.alloc_buffer((1,), "int32")
            n[0] = 0
            while n[0] < 2:
                y[i] = x[i] * 2.0
                n[0] = n[0] + 1"""),
        (False, """
        for i in range(8):
            with T.block("two"):
                v = T.axis.spatial(8, i)
                z = T.alloc_buffer((8,), "float32")
                y[v] = x[v] * 2.0
                z[v] = x[v]
                T.evaluate(z[v])"""),
        (False, """
        for i in range(8):
            with T.block("view"):
                v = T.axis.spatial(8, i)
                row = T.match_buffer(x[7 - v : 8 - v], (1,))
                y[v] = row[0]"""),
        (False, """
        for i in range(8):
            with T.block("address"):
                v = T.axis.spatial(8, i)
                T.evaluate(T.address_of(x[7 - v]))
                y[v] = x[v]"""),
        (True, """
        for i, j in T.grid(3, 3):
            with T.block("padded"):
                v = T.axis.spatial(8, i * 3 + j)
                T.where(i * 3 + j < 8)
                y[v] = x[v] * 2.0"""),
        (True, """
        for i, j in T.grid(2, 4):
            with T.block("folded"):
                v, w = T.axis.remap("SS", [i, j])
                y[v * 4 + w] = x[v * 4 + w] * 2.0"""),
        (True, """
        for i in range(2):
            with T.block("outer"):
                v = T.axis.spatial(2, i)
                for j in range(4):
                    with T.block("inner"):
                        w = T.axis.spatial(8, v * 4 + j)
                        y[w] = x[w] * 2.0"""),
    ],
)  # fmt: skip
def test_an_element_is_replaced_once(is_legal, body):
    assert scheduled(body) == (is_legal, True)


def plan(graph):
    order = groups(graph)
    kernels = Kernels(order, graph.constants, "interpreter")
    made = plan_of(order, graph.outputs.values(), kernels.over)
    check_plan(made, order, kernels.over)
    return made, order, kernels.over


def blocks(b, x, count, width):
    """Residual blocks: a product, its nonlinearity, a product back, and the addition."""
    for _ in range(count):
        y = b.call("nn.relu", b.call("matmul", x, b.constant(numbers(x.shape[-1], width), "w")))
        x = b.call("add", b.call("matmul", y, b.constant(numbers(width, x.shape[-1]), "w")), x)
    return x


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_residual_is_added_in_place(target):
    b = Builder()
    x = b.call("cumsum", b.input("x", (4, 16)), 0)
    graph = b.graph({"y": b.call("nn.softmax", blocks(b, x, 2, 8))})
    made, _, _ = plan(optimized(graph))
    assert len(made.replaced) == 2 and made.nbytes == 4 * (4 * 16 + 4 * 8)
    x = numbers(4, 16)
    np.testing.assert_allclose(compile_graph(graph, target)(x), expected(graph, [x])["y"], rtol=1e-4, atol=1e-5)


def test_inputs_constants_results_and_what_is_read_later_are_not_overwritten():
    b = Builder()
    x, c = b.input("x", (4, 4)), b.constant(numbers(4, 4), "c")
    kept = b.call("cumsum", x, 0)
    result = b.call("cumsum", b.call("add", x, c), 1)
    graph = b.graph({"r": result, "s": b.call("cumsum", b.call("cumsum", kept, 1), 0), "t": b.call("cumsum", kept, 1)})
    made, _, _ = plan(graph)
    assert {old.name for old in made.replaced.values()}.isdisjoint({"x", "c", result.name, kept.name})


def test_the_checker_finds_a_value_that_is_read_after_it_was_replaced():
    b = Builder()
    first = b.call("cumsum", b.input("x", (4, 4)), 0)
    second = b.call("cumsum", first, 1)
    third = b.call("cumsum", second, 0)
    graph = b.graph({"y": b.call("matmul", third, first)})
    made, order, over = plan(graph)
    (new, old), *_ = made.replaced.items()
    assert (new, old) == (third, second)
    wrong = replace(made, replaced={**made.replaced, second: first}, views={**made.views, second: made.place(first)})
    with pytest.raises(ModelError, match="overwritten|cannot write"):
        check_plan(wrong, order, over)
    turned = replace(made, replaced={third: first})
    with pytest.raises(ModelError, match="cannot write %cumsum_2"):
        check_plan(turned, order, over)


def test_the_programs_of_a_model_are_freed_with_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIR_CACHE", "0")
    b = Builder()
    v, w = (b.constant(np.ones((16, 16), "float32"), name) for name in "vw")
    y = b.call("matmul", b.input("x", (8, 16)), w)
    z = b.call("add", b.call("matmul", b.call("matmul", y, v), w), y)
    model = compile_graph(b.graph(b.call("matmul", z, v)))
    assert any("over" in name for name in model.kernels)
    programs = [weakref.ref(func) for func in model.module.ir.functions.values()]
    assert len(programs) > 3
    del model
    gc.collect()
    assert not any(program() for program in programs)
