"""The passes on graphs, the plan of memory and the layout of images, each at the border of what it does."""

from __future__ import annotations

import copy
import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import tir
from tir.dtype import DType
from tir.graph import Builder, ModelError, compile_graph, fusion, graph_passes, groups, memory_plan, optimized
from tir.graph.arrays import input_array, mismatch
from tir.graph.arrays import memory as bytes_of
from tir.graph.graph import Value
from tir.graph.graph_passes import fold_batch_norm, fold_constants, inline_scalars, remove_copies
from tir.graph.image_layout import _first, _last
from tir.graph.memory_plan import Plan, _lowest_gap, _meet, aligned
from tir.graph.model_calls import Parameter

F32 = DType("float32")


def operators(graph):
    return [node.operator for node in graph.nodes]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


# ---------------------------------------------------------------- values and memory


def test_values_have_elements_and_bytes():
    for shape, kind, elements, nbytes in (
        ((2, 3), "float32", 6, 24), ((), "float64", 1, 8), ((0, 5), "int8", 0, 0), ((7,), "bfloat16", 7, 14), ((3,), "bool", 3, 3),
    ):  # fmt: skip
        value = Value("v", shape, DType(kind))
        assert (value.elements, value.nbytes) == (elements, nbytes)
        assert str(value) == f"%v: {kind}[{', '.join(map(str, shape))}]"
    assert [aligned(n) for n in (0, 1, 63, 64, 65, 128)] == [0, 64, 64, 64, 128, 128]
    for count in (0, 1, 100):
        made = bytes_of(count)
        assert len(made) == max(count, 1) and made.ctypes.data % 64 == 0


@pytest.mark.parametrize(("one", "other", "meet"), [((0, 2), (2, 3), True), ((0, 1), (2, 3), False), ((1, 4), (2, 3), True), ((3, 3), (0, 2), False)])  # fmt: skip
def test_lives_meet_where_a_group_needs_both(one, other, meet):
    assert _meet(one, other) is _meet(other, one) is meet


def test_a_tensor_takes_the_lowest_gap_that_is_free_while_it_lives():
    def value(name, count):
        return Value(name, (count,), F32)

    a, b, c, d = (value(name, count) for name, count in (("a", 16), ("b", 20), ("c", 16), ("d", 17)))
    lives = {a: (0, 3), b: (1, 2), c: (2, 3), d: (3, 4)}
    assert _lowest_gap(64, []) == 0
    assert _lowest_gap(128, [(0, 64)]) == 64 and _lowest_gap(64, [(64, 192), (0, 64)]) == 192
    assert _lowest_gap(64, [(64, 128), (128, 256)]) == 0 and _lowest_gap(128, [(64, 128), (192, 256)]) == 256
    assert _lowest_gap(64, [(64, 192), (128, 160), (192, 256)]) == 0 and _lowest_gap(65, [(64, 192), (128, 160)]) == 192
    made = Plan({a: 0}, lives, {b: memory_plan.Place(a)}, 64)
    assert made.place(b) == (a, 0) and made.place(c) == (c, 0)
    assert made.bound == 256 and Plan({}, {}, {}, 0).bound == 0


def test_a_workspace_has_no_more_bytes_than_are_in_use_at_once():
    """Graphs for which the largest first takes up to 1.17 times as many."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        starts, counts = rng.integers(0, 30, 30), rng.integers(1, 4000, 30)
        ends = starts + rng.choice([0, 1, 1, 2, 3, 10], 30)
        lives = {
            Value(f"v{n}", (int(c) * 16,), F32): (int(a), int(b))
            for n, (a, b, c) in enumerate(zip(starts, ends, counts))
        }
        offsets = memory_plan._offsets(lives, {v: memory_plan.aligned(v.nbytes) for v in lives})
        spans = {v: range(offsets[v], offsets[v] + v.nbytes) for v in lives}
        for one, other in itertools.combinations(lives, 2):
            apart = spans[one].stop <= spans[other].start or spans[other].stop <= spans[one].start
            assert apart or not _meet(lives[one], lives[other])
        assert max(s.stop for s in spans.values()) <= 1.02 * memory_plan.most_in_use(
            lives, {v: memory_plan.aligned(v.nbytes) for v in lives}
        )


def test_a_plan_of_a_chain_with_views():
    b = Builder()
    x = b.input("x", (4, 16))
    first = b.call("cumsum", x, 1)
    flat = b.call("reshape", first, (64,))
    last = b.call("cumsum", flat, 0)
    order = tir.graph.groups(b.graph({"y": last}))
    made = memory_plan.plan(order, [last])
    assert made.nbytes == 256 and made.offsets == {first: 0} and made.place(flat) == (first, 0)
    assert made.lives[first] == (0, 2)
    memory_plan.check_plan(made, order)
    assert memory_plan.plan(order, []).nbytes == 512 and memory_plan.plan([], []).nbytes == 0


# ---------------------------------------------------------------- arguments


def test_an_argument_is_a_compact_array_of_its_type_and_shape():
    parameter = Parameter("x", (2, 3), F32)
    assert str(parameter) == "x: float32[2, 3]"
    for given in (np.ones((2, 3), "float32"), np.ones((3, 2), "float32").T, [[1, 1, 1], [1, 1, 1]]):
        made = input_array(parameter, given)
        assert made.flags.c_contiguous and made.dtype == "float32" and made.tolist() == [[1.0] * 3] * 2
    assert (
        input_array(Parameter("s", (), F32), 3).shape == () and input_array(Parameter("s", (), F32), np.float32(3)) == 3
    )
    for given, said in (
        (np.ones((2, 3)), "input x: float32[2, 3]: the array is of float64; convert it, as by x.astype('float32')"),
        (np.ones((2, 3, 1), "float32"), "input x: float32[2, 3]: the array has 3 dimensions, [2, 3, 1]"),
        (np.ones((2, 4), "float32"), "input x: float32[2, 3]: the array has [2, 4]: size 1 is 4"),
        (np.ones((1, 4), "float32"), "input x: float32[2, 3]: the array has [1, 4]: size 0 is 1"),
        ("text", "input x: float32[2, 3]: str is no array"),
    ):
        with pytest.raises(tir.RunError) as caught:
            input_array(parameter, given)
        assert str(caught.value).startswith(said)
    assert not mismatch(Parameter("w", (1,), DType("bfloat16")), np.zeros(1, "uint16"))


def test_calls_that_are_wrong_are_told_word_for_word():
    b = Builder()
    x, y = b.input("x", (2,)), b.input("y", (2,))
    model = compile_graph(b.graph({"s": b.call("add", x, y)}), "interpreter")
    one = np.ones(2, "float32")
    takes = "x: float32[2], y: float32[2]"
    for args, named, said in (
        ((one, one, one), {}, f"3 inputs were given; the model takes 2: {takes}"),
        ((one,), {}, f"no value was given for input 'y'; the model takes {takes}"),
        ((), {}, f"no value was given for input 'x', 'y'; the model takes {takes}"),
        ((one,), {"x": one}, "input 'x' was given twice, by position and by name"),
        ((one,), {"z": one}, f"the model has no input 'z'; it takes {takes}"),
        ((one, one), {"out": [one, one]}, "out has 2 arrays; the model has 1 results"),
        (
            (one, one),
            {"out": one},
            "out for s: float32[2] shares memory with another argument; give it memory of its own",
        ),
        ((one, one), {"out": [1.0, 2.0]}, "out has 2 arrays; the model has 1 results"),
        ((one, one), {"out": 3}, "out for s: float32[2] is no contiguous NumPy array that may be written"),
    ):
        with pytest.raises(tir.RunError) as caught:
            model(*args, **named)
        assert str(caught.value) == said
    for key, said in ((2, "the model has 2 inputs, counted from 0; there is no input 2"), (-1, "the model has 2 inputs, counted from 0; there is no input -1")):  # fmt: skip
        with pytest.raises(tir.RunError, match=said):
            model.set_input(key, one)
    model.set_input(1, one)
    model.run(x=one * 3)
    assert model.get_output().tolist() == model.get_output("s").tolist() == [4, 4]
    for which in (1, -1, "t", 0.5):
        with pytest.raises(tir.RunError, match=f"the model has no result {which!r}; it has s, counted from 0"):
            model.get_output(which)
    assert repr(model) == f"CompiledModel({takes} -> s: float32[2]; 1 kernels, interpreter)"


# ---------------------------------------------------------------- passes


def test_constants_are_folded_up_to_a_size(monkeypatch):
    def graph(elements):
        b = Builder()
        w = b.constant(np.ones(elements, "float32"), "w")
        x = b.input("x", (elements,))
        moved = b.call("flip", w, 0)
        return b.graph({"y": b.call("add", b.call("cumsum", moved, 0), x)})

    monkeypatch.setattr(graph_passes, "LARGEST_FOLDED", 8)
    assert operators(fold_constants(graph(8))) == ["add"]
    assert operators(fold_constants(graph(9))) == ["cumsum", "add"]  # what moves elements is folded at any size
    b = Builder()
    assert operators(fold_constants(b.graph({"y": b.call("zeros", (9,))}))) == ["zeros"]
    assert operators(fold_constants(b.graph({"y": b.call("zeros", (8,))}))) == []
    with pytest.raises(ModelError, match=r"the reference of `.*` makes an array \[2\]"):
        node = SimpleNamespace(operator="exp", arguments={"x": 1}, outputs=(Value("y", (3,), F32),))
        with pytest.MonkeyPatch.context() as patch:
            known = graph_passes.registry.find("exp")
            patch.setattr(graph_passes.registry, "find", lambda name: SimpleNamespace(signature=known.signature, reference=lambda x: np.ones(2)))  # fmt: skip
            graph_passes.evaluate(node, {})


def test_copies_are_left_out():
    b = Builder()
    x = b.input("x", (2, 3))
    for made, kept in (
        (b.call("reshape", x, (2, 3)), []), (b.call("reshape", x, (3, 2)), ["reshape"]), (b.call("transpose", x, (0, 1)), []),
        (b.call("astype", x, "float32"), []), (b.call("astype", x, "float64"), ["astype"]), (b.call("exp", x), ["exp"]),
    ):  # fmt: skip
        assert operators(remove_copies(b.graph({"y": b.call("exp", made)}))) == [*kept, "exp"]


@pytest.mark.parametrize(
    ("constant", "inlined"),
    [([2.0], True), ([[2.0]], True), (2.0, True), ([2.0, 3.0], False), ([np.inf], False), ([np.nan], False)],
)
def test_constants_of_one_element_become_numbers(constant, inlined):
    b = Builder()
    x, c = (
        b.input("x", (2, 3 if np.ndim(constant) < 1 or len(constant) == 1 else 2)),
        b.constant(np.array(constant, "float32"), "c"),
    )
    made = inline_scalars(b.graph({"y": b.call("multiply", x, c)}))
    assert (made.nodes[0].arguments["y"] == 2.0) is inlined
    alone = b.graph({"y": b.call("exp", b.constant(np.array(1.0, "float32"), "d"))})
    assert inline_scalars(alone).nodes[0].inputs != ()
    small = b.graph({"y": b.call("add", b.input("s", ()), b.constant(np.ones((1, 1), "float32"), "e"))})
    assert inline_scalars(small).nodes[0].inputs[-1].name == "e", "the result would lose its dimensions"


def normalized(bias=None, groups=1, rank=2, **options):
    b = Builder()
    x = b.input("x", (1, 4, *[5] * rank))
    y = b.call(f"nn.conv{rank}d", x, b.constant(numbers(6, 4 // groups, *[3] * rank), "w"), groups=groups)
    if bias is not None:
        y = b.call("add", y, b.constant(numbers(*bias, seed=1), "bias"))
    moments = [b.constant(np.abs(numbers(6, seed=n)) + 0.5, name) for n, name in enumerate(("g", "b", "m", "v"))]
    y = b.call("nn.batch_norm", y, *moments, **options)
    return b.graph({"y": y[0] if isinstance(y, tuple) else y})


def evaluated(graph, given):
    """The result by the NumPy references of the operators."""
    values = {graph.inputs[0]: given, **graph.constants}
    for node in graph.nodes:
        values.update(zip(node.outputs, graph_passes.evaluate(node, values)))
    return values[graph.outputs["y"]]


@pytest.mark.parametrize(
    ("options", "folded"),
    [
        ({}, True), ({"rank": 1}, True), ({"rank": 3}, True), ({"groups": 2}, True), ({"bias": (6, 1, 1)}, True), ({"bias": (1, 6, 1, 1)}, False),
        ({"bias": (3, 3)}, False), ({"epsilon": 0.5}, True), ({"scale": False}, True), ({"center": False}, True),
        ({"scale": False, "center": False}, True), ({"rank": 1, "bias": (6, 1)}, True),
    ],
)  # fmt: skip
def test_a_normalization_goes_into_the_convolution_before_it(options, folded):
    graph = normalized(**options)
    made = fold_batch_norm(graph)
    assert ("nn.batch_norm" not in operators(made)) is folded
    (x,) = graph.inputs
    given = numbers(*x.shape, seed=5)
    want, got = (evaluated(g, given) for g in (graph, made))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_pass_that_changes_what_a_graph_is_is_named():
    b = Builder()
    x = b.input("x", (2, 3))
    graph = b.graph({"y": b.call("exp", x)})
    assert optimized(graph, []) is graph

    def renamed(graph):
        return b.graph({"z": b.call("exp", x)})

    def wider(graph):
        return b.graph({"y": b.call("exp", b.call("astype", x, "float64"))})

    for step in (renamed, wider):
        with pytest.raises(ModelError, match=f"^pass {step.__name__} changed the inputs or outputs: .* to "):
            optimized(graph, [step])


# ---------------------------------------------------------------- layout


def test_the_axes_of_images():
    assert [_last(rank) for rank in (3, 4, 5)] == [(0, 2, 1), (0, 2, 3, 1), (0, 2, 3, 4, 1)]
    for rank in (3, 4, 5):
        shape = tuple(range(10, 10 + rank))
        last = tuple(shape[axis] for axis in _last(rank))
        assert tuple(last[axis] for axis in _first(rank)) == shape


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_compiled_model_is_copied_with_its_weights_and_without_what_calls_left(again):
    b = Builder()
    x = b.input("x", (2, 4))
    model = compile_graph(b.graph({"y": b.call("matmul", x, b.constant(numbers(4, 3), "w"))}))
    given = numbers(2, 4, seed=1)
    model.set_input("x", given)
    model.run()
    for _ in range(8):  # arrays of another process begin anywhere
        made = again(model)
        np.testing.assert_array_equal(made(given), model(given))
        assert made.weights.ctypes.data % 64 == 0 and made.weights.nbytes == model.weights.nbytes
    with pytest.raises(tir.RunError, match="run"):
        again(model).get_output(0)


def test_what_a_node_is_is_found_once_however_many_nodes_join_it(monkeypatch):
    asked = []
    alone = fusion._alone
    monkeypatch.setattr(fusion, "_alone", lambda node: asked.append(node) or alone(node))
    b = Builder()
    x = b.input("x", (4, 3))
    parts = [b.call("add", b.call("multiply", x, float(n)), 1.0) for n in range(40)]
    graph = b.graph(b.call("concatenate", parts, 0))
    (group,) = groups(graph)
    assert group.nodes == graph.nodes and len(asked) == len(set(asked)) == len(graph.nodes)
