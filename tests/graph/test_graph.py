"""Graphs: what is one, what passes and fusion make of it, and that the compiled module computes the same."""

import threading
from pathlib import Path

import numpy as np
import pytest

import tir
from tests.random_graphs import expected
from tir.dtype import DType
from tir.graph import (
    PASSES,
    Builder,
    Graph,
    ModelError,
    Node,
    Value,
    check_plan,
    compile_graph,
    groups,
    kernels,
    optimized,
    parse,
    plan,
    view_of,
)
from tir.graph.building import built
from tir.graph.graph_passes import evaluate
from tir.graph.memory_plan import Plan
from tir.graph.model_calls import give_back
from tir.graph.profile import KernelTime, Profile, calls_of


def network():
    """A convolution with batch normalization, ReLU, a pool, a product and softmax."""
    rng = np.random.default_rng(0)
    b = Builder()

    def weights(name, *shape):
        return b.constant(rng.uniform(0.5, 1, shape).astype("float32"), name)

    y = b.call("nn.conv2d", b.input("x", (1, 3, 8, 8)), weights("w", 4, 3, 3, 3), padding=1)
    y = b.call("nn.batch_norm", y, *(weights(n, 4) for n in ("gamma", "beta", "mean", "var")))[0]
    y = b.call("nn.pool2d", b.call("nn.relu", y), 2, 2, 1, 0, "max")
    y = b.call("matmul", b.call("reshape", y, (1, 64)), b.call("transpose", weights("w2", 10, 64)))
    return b.graph({"y": b.call("nn.softmax", b.call("multiply", y, b.constant(np.float32(0.01), "scale")))})


IMAGE = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype("float32")


def test_a_graph_prints_each_value_with_its_type():
    text = str(network())
    assert "%conv2d: float32[1, 4, 8, 8] = nn.conv2d(data=%x, kernel=%w, padding=1)" in text
    assert text.endswith("return y=%softmax")


def test_normalization_and_activation_go_into_the_convolution():
    made = optimized(network())
    assert not any(node.operator == "nn.batch_norm" for node in made.nodes)
    assert [g.name for g in groups(made)] == ["conv2d_add_relu", "pool2d_reshape", "matmul_multiply", "softmax"]


@pytest.mark.parametrize("left_out", [None, *PASSES], ids=lambda p: getattr(p, "__name__", "none"))
def test_no_pass_changes_the_result(left_out):
    passes = [p for p in PASSES if p is not left_out]
    expected = compile_graph(optimized(network(), []), "interpreter")(IMAGE)
    made = optimized(network(), passes)
    old, PASSES[:] = PASSES[:], passes
    try:
        got = compile_graph(made, "llvm")(IMAGE)
    finally:
        PASSES[:] = old
    np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_a_pass_that_breaks_the_graph_is_named():
    def lose_a_node(graph):
        return Graph(graph.inputs, graph.nodes[1:], graph.outputs, graph.constants)

    def rename_results(graph):
        return Graph(graph.inputs, graph.nodes, {"z": graph.outputs["y"]}, graph.constants)

    with pytest.raises(ModelError, match="pass lose_a_node made a graph that is none"):
        optimized(network(), [lose_a_node])
    with pytest.raises(ModelError, match="pass rename_results changed the inputs or outputs"):
        optimized(network(), [rename_results])


def test_equal_kernels_are_built_once():
    b = Builder()
    y = b.input("x", (4, 4))
    for n in range(3):
        y = b.call("matmul", y, b.constant(np.full((4, 4), n + 1, "float32"), "w"))
    model = compile_graph(b.graph(y), "interpreter")
    assert model.kernels == ("matmul",) * 3 and list(model.module.ir) == ["matmul", "main", "run"]
    np.testing.assert_allclose(model(np.eye(4, dtype="float32")), np.full((4, 4), 6 * 16), rtol=1e-6)


def test_a_value_with_two_readers_is_the_end_of_its_group():
    b = Builder()
    e = b.call("exp", b.input("x", (4, 4)))
    graph = b.graph(b.call("add", b.call("matmul", e, e), e))
    assert [g.name for g in groups(graph)] == ["exp", "matmul_add"]


def test_a_chain_round_a_reduction_that_reads_once_is_one_kernel():
    b = Builder()
    x = b.input("x", (4, 16))
    root = b.call("sqrt", b.call("mean", b.call("multiply", x, x), (1,), True))
    assert [g.name for g in groups(b.graph(b.call("divide", x, root)))] == ["multiply_mean_sqrt_divide"]


def rotary(b, x):
    """Half of the columns negated and exchanged, times one table, and x times another."""
    cos, sin = b.input("cos", (4, 8)), b.input("sin", (4, 8))
    first, last = (b.call("strided_slice", x, (at,), (at + 4,), axes=(1,)) for at in (0, 4))
    turned = b.call("concatenate", (b.call("negative", last), first), 1)
    return b.call("add", b.call("multiply", x, cos), b.call("multiply", turned, sin))


def gated(b, x):
    """silu of one product, times another."""
    g, u = (b.call("matmul", x, b.input(name, (8, 16))) for name in "gu")
    return b.call("multiply", b.call("multiply", g, b.call("sigmoid", g)), u)


def padded(b, x):
    image = b.call("transpose", b.call("exp", b.call("reshape", x, (1, 2, 4, 4))), (0, 2, 3, 1))
    return b.call("nn.conv2d", image, b.input("w", (3, 3, 2, 4)), padding=1, data_layout="NHWC")


def normalized_sum(b, x):
    ones = (b.constant(np.ones(8, "float32"), name) for name in "gb")
    return b.call("nn.layer_norm", b.call("add", x, b.input("y", (4, 8))), *ones, axis=-1)


FUSED = {
    rotary: ["strided_slice_strided_slice_negative_concatenate_multiply_multiply_add"],
    gated: ["matmul", "matmul_sigmoid_multiply_multiply"],
    padded: ["reshape_exp_transpose_conv2d"],
    normalized_sum: ["add_layer_norm"],
    lambda b, x: b.call("nn.softmax", b.call("add", x, b.call("multiply", x, x))): ["multiply_add_softmax"],
    lambda b, x: b.call("matmul", b.call("exp", x), b.input("w", (8, 16))): ["exp", "matmul"],
    lambda b, x: b.call("nn.softmax", b.call("matmul", x, b.input("w", (8, 8)))): ["matmul", "softmax"],
    lambda b, x: b.call("cumsum", b.call("exp", x), 1): ["exp", "cumsum"],
}


@pytest.mark.parametrize("make", FUSED, ids=lambda f: f.__name__)
def test_groups_are_joined_by_all_producers_that_they_alone_read_a_few_times(make):
    b = Builder()
    graph = b.graph({"y": make(b, b.input("x", (4, 8)))})
    assert sorted(g.name for g in groups(graph)) == sorted(FUSED[make])
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(v.shape).astype("float32") for v in graph.inputs]
    values = dict(zip(graph.inputs, given)) | dict(graph.constants)
    for node in graph.nodes:
        values.update(zip(node.outputs, evaluate(node, values)))
    for target in ("llvm", "interpreter"):
        np.testing.assert_allclose(
            compile_graph(graph, target)(*given), values[graph.outputs["y"]], rtol=1e-4, atol=1e-5
        )


def test_long_chains_and_nodes_that_double_them_are_compiled():
    b = Builder()
    x = b.input("x", (2, 3))
    long, twice = x, x
    for _ in range(250):
        long = b.call("add", b.call("multiply", long, 0.5), x)
    for _ in range(24):
        twice = b.call("multiply", twice, b.call("subtract", 1.5, twice))
    model = compile_graph(b.graph({"long": long, "twice": twice}))
    given = np.float32([[0.5, 1, 0.75], [0.25, 0, 1.25]])
    left, right = given.astype("float64"), given.astype("float64")
    for _ in range(250):
        left = left * 0.5 + given
    for _ in range(24):
        right = right * (1.5 - right)
    for made, want in zip(model(given), (left, right)):
        np.testing.assert_allclose(made, want, rtol=1e-4)


def test_the_rule_that_keeps_two_nodes_apart_is_named():
    b = Builder()
    x, w = b.input("x", (4, 8)), b.input("w", (8, 8))
    e = b.call("exp", x)
    p = b.call("matmul", e, w)
    s = b.call("nn.softmax", p)
    c = b.call("cumsum", s, 1)
    f = b.call("flip", p, 1)
    t = b.call("tanh", b.call("add", p, f))
    graph = b.graph({"c": c, "t": t, "s": s})
    for one, other, said in (
        (
            "exp",
            "matmul",
            "matmul reads each element of %exp 8 times, as p0[v_i0, v_k]; exp makes it as exp[v_i0, v_i1]",
        ),
        ("softmax", "matmul", "%matmul is read by flip (%flip) too"),
        ("softmax", "cumsum", "%softmax is a result of the graph"),
        ("exp", "tanh", "nothing that flip_add_tanh reads ends the kernel of exp"),
        ("flip", "tanh", ""),
    ):
        found = graph.why_not_fused(one, other)
        assert found.startswith(said) and bool(found) == bool(said), found
    moved = b.graph({"t": t}).why_not_fused("matmul", "tanh")
    assert moved.startswith("%matmul of matmul is read in 2 places, and not at one index: flip reads p0["), moved
    alone = b.graph({"c": b.call("cumsum", b.call("nn.softmax", p), 1)})
    assert alone.why_not_fused("softmax_1", "cumsum_1").startswith("cumsum is opaque")
    assert alone.why_not_fused("matmul", "softmax_1") == "both have a reduction: matmul and softmax"
    with pytest.raises(ModelError, match="no node makes %x"):
        graph.why_not_fused("x", "exp")


def test_an_order_dependent_node_stays_alone():
    b = Builder()
    y = b.call("exp", b.call("cumsum", b.call("negative", b.input("x", (4, 16))), 1))
    assert [g.name for g in groups(b.graph(y))] == ["negative", "cumsum", "exp"]


def test_a_view_is_found_by_its_indices():
    b = Builder()
    x = b.input("x", (2, 3, 4))
    made = [
        b.call("reshape", x, (6, 4)),
        b.call("transpose", x, (0, 2, 1)),
        b.call("strided_slice", x, [0], [1], axes=[0]),
        b.call("expand_dims", x, 1),
        b.call("astype", x, "int32"),
    ]
    nodes = b.graph({str(n): v for n, v in enumerate(made)}).nodes
    assert [view_of(node) is not None for node in nodes] == [True, False, True, True, False]


def test_views_share_memory_and_make_no_kernel():
    b = Builder()
    x = b.input("x", (4, 4))
    product = b.call("matmul", x, x)
    flat = b.call("reshape", product, (2, 8))
    graph = b.graph({"y": b.call("matmul", product, product), "z": b.call("cumsum", flat, 1)})
    model = compile_graph(graph, "interpreter")
    assert len(model.kernels) == 3 and model.workspace_bytes == 64
    a = np.arange(16, dtype="float32").reshape(4, 4)
    y, z = model(a)
    np.testing.assert_array_equal(y, a @ a @ a @ a)
    np.testing.assert_array_equal(z, np.cumsum((a @ a).reshape(2, 8), 1))


def test_results_that_are_inputs_constants_or_each_other_have_memory_of_their_own():
    b = Builder()
    x = b.input("x", (2,))
    y = b.call("exp", x)
    graph = b.graph({"a": x, "b": y, "c": y, "d": b.constant(np.ones(2, "float32"), "one")})
    made = compile_graph(graph)(np.zeros(2, "float32"))
    assert [a.tolist() for a in made] == [[0, 0], [1, 1], [1, 1], [1, 1]]
    assert not any(np.shares_memory(made[n], made[m]) for n in range(4) for m in range(n))


# ---------------------------------------------------------------- memory


def chain(length):
    b = Builder()
    y, w = b.input("x", (4, 16)), b.input("w", (16, 16))
    for _ in range(length):
        y = b.call("matmul", y, w)
    return b.graph(y)


def test_a_chain_needs_two_tensors_of_memory():
    graph = chain(6)
    made = plan(groups(graph), graph.outputs.values())
    assert made.nbytes == 2 * 256 and all(offset % 64 == 0 for offset in made.offsets.values())


def test_a_module_that_forgets_its_lowered_program_makes_it_again():
    graph = chain(2)
    module = compile_graph(graph, "llvm").module
    before = module.source("llvm"), module.lowered
    module.forget()
    assert module.source("llvm") == before[0] and module.lowered is not before[1]
    assert module.lowered is module.lowered, "and keeps it until it is told to forget"


def test_overlapping_live_values_are_refused_by_the_checker():
    graph = chain(4)
    order = groups(graph)
    made = plan(order, graph.outputs.values())
    check_plan(made, order)
    for value in made.offsets:
        wrong = Plan(dict.fromkeys(made.offsets, made.offsets[value]), made.lives, made.views, made.nbytes)
        with pytest.raises(ModelError, match="which it uses"):
            check_plan(wrong, order)


@pytest.mark.parametrize("apart", [0, 64])
def test_overlapping_live_values_are_found_by_the_executor(apart, monkeypatch):
    def overlapping(order, *rest):
        made = plan(order, *rest)
        first, second, *_ = made.offsets
        return Plan({**made.offsets, second: made.offsets[first] + apart}, made.lives, made.views, made.nbytes)

    monkeypatch.setattr("tir.graph.kernels.plan", overlapping)
    with pytest.raises(ModelError, match="which it uses"):
        compile_graph(chain(3), "interpreter")
    monkeypatch.setattr("tir.graph.kernels.check_plan", lambda *_: None)
    model = compile_graph(chain(3), "interpreter")
    with pytest.raises(tir.RunError, match="argument 3 `matmul` of main is written and overlaps argument 1"):
        model(*(np.ones(p.shape, "float32") for p in model.inputs))


def test_memory_overwritten_before_a_later_reader_is_refused():
    b = Builder()
    w = b.input("w", (16, 16))
    first = b.call("matmul", b.input("x", (4, 16)), w)
    second = b.call("matmul", first, w)
    third = b.call("matmul", second, w)
    graph = b.graph(b.call("matmul", b.call("cumsum", b.call("add", first, third), 0), w))
    order = groups(graph)
    made = plan(order, graph.outputs.values())
    wrong = Plan({**made.offsets, second: made.offsets[first]}, made.lives, made.views, made.nbytes)
    with pytest.raises(ModelError, match="writes %matmul_1: .* over %matmul: .* which it uses"):
        check_plan(wrong, order)


def test_offsets_that_are_not_aligned_or_outside_are_refused():
    graph = chain(3)
    order = groups(graph)
    made = plan(order, graph.outputs.values())
    value = next(iter(made.offsets))
    for offset in (4, made.nbytes, -64):
        with pytest.raises(ModelError, match="not aligned, or not inside"):
            check_plan(Plan({**made.offsets, value: offset}, made.lives, made.views, made.nbytes), order)


def padded():
    """A convolution that copies its padded image, which is too large for the stack, between two sums."""
    b, w = Builder(), np.random.default_rng(0).standard_normal((3, 3, 16, 16)).astype("float32")
    y = b.call("cumsum", b.input("x", (1, 40, 40, 16)), 1)
    y = b.call("nn.conv2d", y, b.constant(w, "w"), 1, 1, data_layout="NHWC", kernel_layout="HWIO")
    return b.graph({"y": b.call("cumsum", y, 1)})


def test_what_kernels_work_in_is_part_of_the_workspace():
    graph = padded()
    model = compile_graph(graph, "llvm -num-cores=2")  # on one thread rows are padded one by one
    (work,) = [v for v in model.plan.offsets if v.name.startswith("conv2d_1_")]
    assert model.plan.lives[work] == (1, 1) and work.nbytes > 40 * 40 * 16 * 4
    assert model.workspace_bytes == model.plan.bound == work.nbytes + 40 * 40 * 16 * 4, "and the image, in place"
    kernels, _, _ = model.module.source("llvm").partition("define i32 @tir.main")
    assert "@__tir_take(ptr @" not in kernels, "kernels take no memory"
    assert compile_graph(graph, "interpreter").workspace_bytes == 40 * 40 * 16 * 4, "the executor gives them memory"
    x = np.random.default_rng(1).standard_normal((1, 40, 40, 16)).astype("float32")
    np.testing.assert_allclose(model(x), expected(graph, [x])["y"], rtol=1e-3, atol=1e-3)


def test_the_checker_finds_a_temporary_over_what_its_kernel_reads():
    b = Builder()
    x = b.input("x", (4, 16))
    first = b.call("cumsum", x, 0)
    graph = b.graph({"y": b.call("cumsum", first, 1)})
    order, work = groups(graph), Value("work", (64,), DType("float32"))

    def temporaries(group):
        return (work,) if group is order[1] else ()

    made = plan(order, graph.outputs.values(), temporaries=temporaries)
    assert made.lives[work] == (1, 1) and made.nbytes == 512 == made.bound
    check_plan(made, order, temporaries=temporaries)
    wrong = Plan({first: 0, work: 64}, made.lives, made.views, made.nbytes)
    with pytest.raises(ModelError, match="writes %work: .* over %cumsum: .* which it uses"):
        check_plan(wrong, order, temporaries=temporaries)
    check_plan(wrong, order)


@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="the system does not say what memory a process has"
)
def test_freed_memory_goes_back_to_the_system():
    def used():
        lines = dict(
            line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if ":" in line
        )
        return 1024 * int(lines["Anonymous"].split()[0])

    held = [np.ones(100_000, "uint8") for _ in range(400)]
    del held[:-1]  # the last one is above the others in the heap
    before = used()
    give_back()
    assert before - used() > 30_000_000


# ---------------------------------------------------------------- what is no graph


X, Y = Value("x", (2,), tir.DType("float32")), Value("y", (2,), tir.DType("float32"))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph((X,), (), {"y": Y}), "output 'y' reads %y: float32\\[2\\], which is not defined"),
        (Graph((X, X), (), {"y": X}), "%x has two definitions"),
        (Graph((X,), (Node("exp", {"x": Y}, (Y,)),), {"y": Y}), "reads %y"),
        (Graph((X,), (Node("exp", {"x": X}, (X,)),), {"y": X}), "%x has two definitions"),
        (Graph((X,), (Node("exp", {"x": X}, (Value("y", (3,), X.dtype),)),), {}), "makes float32\\[2\\]"),
        (Graph((X,), (Node("matmul", {"a": X}, (Y,)),), {"y": Y}), "no call of its operator"),
        (Graph((X,), (), {"y": Y}, {Y: np.zeros(3, "float32")}), "is an array float32\\[3\\]"),
    ],
)
def test_what_is_no_graph_is_refused(graph, message):
    with pytest.raises(ModelError, match=message):
        graph.verify()


def test_the_builder_refuses_two_inputs_of_a_name_and_sizes_that_are_none():
    b = Builder()
    b.input("x", (2,))
    with pytest.raises(ModelError, match="two values named 'x'"):
        b.input("x", (2,))
    with pytest.raises(ModelError, match=r"shape \(-1,\)"):
        b.input("y", (-1,))
    with pytest.raises(ModelError, match="no type of tensors"):
        b.constant(np.array(["a"]))
    with pytest.raises(KeyError, match="matmul"):
        b.call("matmull", b.input("z", (2,)))


# ---------------------------------------------------------------- text


def odd_names():
    b = Builder()
    x = b.input('input "x" = %1:0, (a)', (2, 3))
    y = b.call("clip", b.call("strided_slice", x, (1, 0), (2, 3)), -float("inf"), 1.5)
    return b.graph({"a result, =%b": b.call("multiply", y, np.float32(-2)), "z": b.call("squeeze", y, 0)})


@pytest.mark.parametrize("make", [network, odd_names, lambda: products()[0], lambda: chain(3)])
def test_a_graph_parses_from_what_it_prints(make):
    graph = make()
    made = parse(str(graph), {v.name: a for v, a in graph.constants.items()})
    assert str(made) == str(graph)
    assert [n.arguments.keys() for n in made.nodes] == [n.arguments.keys() for n in graph.nodes]
    given = [np.random.default_rng(0).standard_normal(v.shape).astype("float32") for v in graph.inputs]
    for one, other in zip(expected(graph, given).values(), expected(made, given).values()):
        np.testing.assert_array_equal(one, other)


TEXT = """graph(%x: float32[2])
  %w: float32[2] = constant
  %y: float32[2] = add(x=%x, y=%w)
  return y=%y"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (TEXT, "", "a line `graph"),
        ("graph(", "grap(", r"line 1 of the graph: expected `graph\(…\)`"),
        ("float32[2])", "float33[2])", "line 1.*'float33' is no type"),
        ("float32[2])", "float32[-2])", "line 1.*expected values"),
        (" = constant", " constant", "line 2.*expected `%y"),
        ("%w: float32", "%x: float32", "line 2.*%x has two definitions"),
        ("%w: float32[2]", "%w: float32[3]", r"constant %w: float32\[3\] is an array"),
        ("%w: float32", "%v: float32", "line 2.*no array for the constant %v"),
        ("x=%x", "x=%z", "line 3.*%z is not defined"),
        ("x=%x", "x=%y", "line 3.*%y is not defined"),
        ("add(", "addd(", "is no call of its operator"),
        ("x=%x", "z=%x", "is no call of its operator"),
        ("x=%x", "%x", "line 3.*are no `name=value"),
        ("x=%x", "x=open('a')", r"line 3.*`open\('a'\)` is no value"),
        ("x=%x", "x=-'a'", "line 3.*is no value"),
        ("x=%x", "x=", "line 3.*are no `name=value"),
        ("y=%y", "y=%q", "line 4.*%q is not defined"),
        ("return y", "returned y", "line 4.*expected `return"),
    ],
)
def test_a_text_that_is_no_graph_is_refused_with_its_line(old, new, message):
    assert old in TEXT
    with pytest.raises(ModelError, match=message):
        parse(TEXT.replace(old, new, 1), {"w": np.ones(2, "float32")})


# ---------------------------------------------------------------- calls


@pytest.fixture(scope="module")
def model():
    b = Builder()
    x, y = b.input("x", (2, 3)), b.input("y", (3,))
    total = b.call("add", x, y)
    return compile_graph(b.graph({"total": total, "sum": b.call("sum", total, (0,))}))


ONES, ROW = np.ones((2, 3), "float32"), np.ones(3, "float32")


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((), {}, "no value was given for input 'x', 'y'"),
        ((ONES, ROW, ROW), {}, "3 inputs were given; the model takes 2"),
        ((ONES,), {"yy": ROW}, "no input 'yy'; did you mean y"),
        ((ONES,), {"x": ONES, "y": ROW}, "'x' was given twice"),
        ((ONES.astype("float64"), ROW), {}, "x: float32.* is of float64"),
        ((ROW, ROW), {}, "1 dimensions"),
        ((np.ones((2, 4), "float32"), ROW), {}, "size 1 is 4"),
        (("text", ROW), {}, "str is no array"),
        ((ONES, ROW), {"out": ONES}, "out has 1 arrays; the model has 2"),
        ((ONES, ROW), {"out": [np.zeros((2, 3)), np.zeros(3, "float32")]}, "out for total.* float64"),
        ((ONES, ROW), {"out": [ONES, np.zeros(3, "float32")]}, "shares memory"),
        ((ONES, ROW), {"out": [np.zeros((3, 2), "float32").T, np.zeros(3, "float32")]}, "no contiguous"),
    ],
)
def test_wrong_arguments_are_refused(model, args, named, message):
    with pytest.raises(tir.RunError, match=message):
        model(*args, **named)


def test_arguments_by_name_read_only_strided_and_the_same_twice(model):
    wide = np.ones((2, 6), "float32")[:, ::2]
    wide.flags.writeable = False
    out = [np.zeros((2, 3), "float32"), np.zeros(3, "float32")]
    assert model(y=ROW, x=wide, out=out) is out
    assert out[0].tolist() == [[2] * 3] * 2 and out[1].tolist() == [4] * 3
    b = Builder()
    x, y = b.input("x", (3,)), b.input("y", (3,))
    assert compile_graph(b.graph(b.call("add", x, y)))(ROW, ROW).tolist() == [2, 2, 2]


def test_inputs_are_set_one_after_another_then_it_runs(model):
    x, y = (np.full(p.shape, n, str(p.dtype)) for n, p in enumerate(model.inputs, 1))
    with pytest.raises(tir.RunError, match="has not run yet"):
        model.get_output(0)
    model.set_input(0, x)
    model.set_input(**{model.inputs[1].name: y})
    model.run()
    for n, wanted in enumerate(model(x, y)):
        np.testing.assert_array_equal(model.get_output(n), wanted)
        np.testing.assert_array_equal(model.get_output(model.outputs[n].name), wanted)
    for which in (3, "no"):
        with pytest.raises(tir.RunError, match="has no result"):
            model.get_output(which)
        with pytest.raises(tir.RunError, match=r"there is no input 3|has no input 'no'"):
            model.set_input(which, x)
    with pytest.raises(tir.RunError, match="dimensions"):
        model.set_input(0, x[0])


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_profile_has_the_time_bytes_and_operations_of_each_kernel(target):
    b = Builder()
    x, w = b.input("x", (4, 8)), b.constant(np.ones((8, 8), "float32"), "w")
    y = b.call("cumsum", b.call("matmul", b.call("matmul", x, w), w), 1)
    made = compile_graph(b.graph(b.call("reshape", y, (32,))), target)
    found = made.profile(np.ones((4, 8), "float32"), repeat=2).as_dict()
    rows = {k["kernel"]: k for k in found["kernels"]}
    assert sum(k["calls"] for k in found["kernels"]) == len(made.kernels) and set(rows) == set(made.kernels)
    product = next(k for k in found["kernels"] if k["calls"] == 2)
    assert product["operations"] == 2 * 2 * 4 * 8 * 8 and product["bytes"] == 2 * 4 * (32 + 64 + 32)
    assert sum(k["share"] for k in found["kernels"]) == pytest.approx(1) and found["seconds"] > 0
    with pytest.raises(tir.RunError, match="repeat must be at least 1"):
        made.profile(np.ones((4, 8), "float32"), repeat=0)


def test_a_profile_is_drawn_as_a_bar_for_each_kernel():
    import xml.etree.ElementTree as Tree

    long = KernelTime("reshape_" * 9, 1, 1e-3, 64, 0, None)
    picture = Tree.fromstring(Profile((KernelTime("matmul<1>", 2, 3e-3, 64, 64, 0.25), long)).svg())
    boxes = [float(e.attrib["width"]) for e in picture.iter() if e.tag.endswith("rect")]
    assert boxes == [320.0, 80.0, 106.7], "the time, what a core needs of it, and the time of the second"
    words = [e.text for e in picture.iter() if e.tag.endswith("text")]
    assert words[:2] == ["matmul<1>", "3.000 ms, 75%"] and "…" in words[2] and len(words[2]) <= 40
    assert Tree.fromstring(Profile(()).svg()) is not None


def test_a_profile_runs_each_kernel_on_what_it_has_in_a_call():
    made = compile_graph(network())
    x = np.random.default_rng(1).standard_normal(made.inputs[0].shape).astype("float32")
    result = np.empty(made.outputs[0].shape, "float32")
    with made.workspace(made.sized(()).nbytes) as work:
        names, calls = calls_of(made, [x, result, made.weights, work])
    for call in calls:
        call()
    assert names == list(made.kernels)
    np.testing.assert_array_equal(result, made(x))


def test_a_model_says_what_it_takes_and_needs(model):
    assert [str(p) for p in (*model.inputs, *model.outputs)] == [
        "x: float32[2, 3]", "y: float32[3]", "total: float32[2, 3]", "sum: float32[3]",
    ]  # fmt: skip
    net = compile_graph(network(), "interpreter")
    assert net.weights_bytes >= 4 * (4 * 27 + 4 + 640) and 0 < net.workspace_bytes <= 2048


def products():
    """Two products with one constant, one of which reads it as a view, and a third with another of the same shape."""
    rng = np.random.default_rng(0)
    b = Builder()
    x, y = b.input("x", (8, 40)), b.input("y", (8, 40))
    w, v = (b.constant(rng.standard_normal((40, 66)).astype("float32"), name) for name in "wv")
    flat = b.call("reshape", b.constant(rng.standard_normal((1, 40, 66)).astype("float32"), "u"), (40, 66))
    made = {"a": (x, w), "b": (y, w), "c": (x, v), "d": (y, flat)}
    graph = b.graph({name: b.call("matmul", *pair) for name, pair in made.items()})
    return graph, {name: (pair[0].name, pair[1].name) for name, pair in made.items()}


@pytest.mark.parametrize("passes", [None, []], ids=["as usual", "no passes"])
# of a machine that is described: whether panels are worth it is for rates to say, which a busy machine measures wrong
@pytest.mark.parametrize("target", ["llvm -l1_bytes=32768 -l2_bytes=1048576 -l3_bytes=16777216", "interpreter"])
def test_panels_of_weights_are_made_once_for_each_weight(target, passes, monkeypatch):
    if passes is not None:
        monkeypatch.setattr("tir.graph.graph_passes.PASSES", passes)
    graph, made = products()
    model = compile_graph(graph, target)
    assert model.kernels == ("matmul",) * 4
    assert bool(model.graph.constants) == (target == "interpreter"), "weights beside their panels, or no panels"
    assert 3 * 4 * 40 * 66 <= model.weights_bytes < 6 * 4 * 40 * 66
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal((8, 40)).astype("float32") for name in "xy"}
    weights = {v.name: array.reshape(40, 66) for v, array in graph.constants.items()}
    for got, (left, right) in zip(model(**inputs), made.values()):
        np.testing.assert_allclose(got, inputs[left] @ weights.get(right, weights["u"]), rtol=1e-4, atol=1e-4)


def test_threads_have_workspaces_of_their_own():
    model = compile_graph(network())
    inputs = [IMAGE * n for n in range(8)]
    expected = [model(a) for a in inputs]
    found = [None] * 8

    def work(n):
        for _ in range(50):
            found[n] = model(inputs[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for got, want in zip(found, expected):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("used", [0, 1, 2])
@pytest.mark.parametrize("as_result", [True, False])
def test_a_normalization_whose_moments_are_used_stays(used, as_result):
    b = Builder()
    w, *moments = (b.constant(np.ones(n, "float32"), f"c{k}") for k, n in enumerate([(4, 3, 1, 1), *[(4,)] * 4]))
    made = b.call("nn.batch_norm", b.call("nn.conv2d", b.input("x", (1, 3, 8, 8)), w), *moments)
    result = made[used] if as_result else b.call("exp", made[used])
    graph = optimized(b.graph({"y": made[0], "z": result}))
    assert any(node.operator == "nn.batch_norm" for node in graph.nodes) is (used > 0)


def test_what_is_made_of_constants_is_compiled_briefly_and_reads_constants_where_they_are(monkeypatch):
    monkeypatch.setenv("TIR_CACHE", "0")  # a model that was found would build none
    weights = np.random.default_rng(0).standard_normal((64, 48)).astype("float32")
    weights.flags.writeable = False
    b = Builder()
    graph = b.graph({"y": b.call("matmul", b.input("x", (32, 64)), b.constant(weights, "w"))})
    made = []
    monkeypatch.setattr(kernels, "built", lambda makers, *rest: made.extend(makers.values()) or built(makers, *rest))
    x = np.ones((32, 64), "float32")
    np.testing.assert_allclose(compile_graph(graph)(x), x @ weights, rtol=1e-5)
    (maker,) = made
    assert maker.attrs["tir.once"]
