"""ONNX models: imported, compiled, and judged by the reference of the package ``onnx``."""

import importlib
import inspect
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import tir
from tir.graph import PASSES, ModelError, compile_graph, groups, optimized
from tir.importers.onnx import from_onnx

onnx = pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

RNG = np.random.default_rng(0)


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, constants=(), opset=21, **more):
    """A model of nodes ``(operator, inputs, outputs, attributes)``; texts of names are split, two spaces leave one out."""
    made = [
        helper.make_node(op, i.replace("  ", " . ").split(), o.split(), **(a[0] if a else {})) for op, i, o, *a in nodes
    ]
    for node in made:
        node.input[:] = ["" if name == "." else name for name in node.input]
    initializers = [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(constants).items()]
    graph = helper.make_graph(made, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)


def judge(model, *arrays, target="llvm", **options):
    expected = ReferenceEvaluator(model).run(None, dict(zip([i.name for i in model.graph.input], arrays)))
    compiled = compile_graph(from_onnx(model, **options), target)
    made = compiled(*arrays)
    for got, want in zip(made if isinstance(made, tuple) else (made,), expected):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return compiled


def weights(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def test_products_of_half_precision_are_rounded_once():
    x, w = (RNG.uniform(0, 1, shape).astype("float16") for shape in ((3, 1000), (1000, 4)))
    given, made = tensor("x", (3, 1000), TensorProto.FLOAT16), tensor("y", (3, 4), TensorProto.FLOAT16)
    model = from_onnx(model_of([("MatMul", "x w", "y")], [given], [made], {"w": w}))
    exact = x.astype("float64") @ w.astype("float64")
    for target in ("llvm", "interpreter"):
        np.testing.assert_allclose(compile_graph(model, target)(x).astype("float64"), exact, rtol=1.01 * 2.0**-11)


STEPS = {
    "RMSNormalization": ([(3, 40), (40,)], {}), "LayerNormalization": ([(3, 40), (40,), (40,)], {}), "LpNormalization": ([(3, 40)], {}),
    "MeanVarianceNormalization": ([(2, 3, 5, 5)], {}), "GlobalLpPool": ([(2, 3, 5, 5)], {"p": 3}), "Mean": ([(9,)] * 4, {}),
    "Attention": ([(1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)], {}), "RotaryEmbedding": ([(1, 2, 5, 8), (1, 5, 4), (1, 5, 4)], {}),
    "Gemm": ([(3, 40), (40, 5), (5,)], {"alpha": 0.7, "beta": 0.3}), "Conv": ([(1, 4, 6, 6), (3, 4, 3, 3), (3,)], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_operators_of_several_steps_are_rounded_once(name):
    shapes, attributes = STEPS[name]
    arrays = [(400 * weights(*shape)).astype("float16") for shape in shapes[:1]]
    arrays += [weights(*shape).astype("float16") for shape in shapes[1:]]
    names = [f"x{n}" for n in range(len(arrays))]

    def made(kind, arrays):
        inputs = [tensor(n, a.shape, kind) for n, a in zip(names, arrays)]
        model = model_of([(name, " ".join(names), "y", attributes)], inputs, [tensor("y", None, kind)], opset=23)
        return compile_graph(from_onnx(model), "interpreter")(*arrays).astype("float64")

    exact = made(TensorProto.DOUBLE, [a.astype("float64") for a in arrays])
    np.testing.assert_allclose(made(TensorProto.FLOAT16, arrays), exact, rtol=0.51 * 2.0**-10, atol=1e-6)


def test_padding_is_taken_away_beside_a_symbolic_size():
    x, given, made = weights(3, 5), [tensor("x", ["n", 5])], [tensor("y", None)]
    for first in (1, -1):
        model = from_onnx(model_of([("Pad", "x pads", "y")], given, made, {"pads": [first, -2, 0, 1]}))
        expected = np.pad(x[max(-first, 0) :, 2:], ((max(first, 0), 0), (0, 1)))
        np.testing.assert_array_equal(compile_graph(model, "interpreter")(x), expected)


def test_hardmax_along_a_symbolic_size():
    model = from_onnx(model_of([("Hardmax", "x", "y", {"axis": 0})], [tensor("x", ["n", 5])], [tensor("y", None)]))
    x = np.float32([[1, 2, 2, 0, 5], [1, 3, 2, -1, 4], [0, 3, 1, 7, 5]])
    expected = np.float32([[1, 0, 1, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(compile_graph(model, "interpreter")(x), expected)


def test_rows_behind_the_third_of_a_symbolic_number():
    nodes = [("Slice", "x first last", "a"), ("MatMul", "a w", "b"), ("MatMul", "b w", "c"), ("MatMul", "c w", "y")]
    w, given = weights(16, 16), [tensor("x", ["n", 16])]
    constants = {"first": np.array([3]), "last": np.array([5]), "w": w}
    model = compile_graph(from_onnx(model_of(nodes, given, [tensor("y", None)], constants)), "interpreter")
    for rows in (4, 5, 9):
        x = weights(rows, 16)
        np.testing.assert_allclose(model(x), x[3:5] @ w @ w @ w, rtol=1e-4, atol=1e-4)


def network():
    constants = {
        "w": weights(4, 3, 3, 3), "bias": weights(4), "gamma": weights(4), "beta": weights(4), "mean": weights(4),
        "var": np.abs(weights(4)) + 0.5, "dense": weights(10, 64), "c": weights(10),
    }  # fmt: skip
    nodes = [
        ("Conv", "x w bias", "conv", {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
        ("BatchNormalization", "conv gamma beta mean var", "norm", {"epsilon": 1e-3}),
        ("Relu", "norm", "relu"),
        ("MaxPool", "relu", "pool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Flatten", "pool", "flat"),
        ("Gemm", "flat dense c", "y", {"transB": 1, "alpha": 0.5}),
    ]
    return model_of(nodes, [tensor("x", [1, 3, 8, 8])], [tensor("y", [1, 10])], constants)


def attention():
    """Two heads with a mask; heads are split and joined by shapes that the model computes."""
    constants = {
        "wq": weights(8, 8), "wk": weights(8, 8), "wv": weights(8, 8), "two": np.array([2], "int64"), "minus": np.array([-1], "int64"),
        "scale": np.float32(2.0), "mask": np.triu(np.full((5, 5), -1e9, "float32"), 1), "at": np.array([0, 1], "int64"),
    }  # fmt: skip
    nodes = [("Shape", "x", "s"), ("Gather", "s at", "bt"), ("Concat", "bt two minus", "split", {"axis": 0})]
    for n in "qkv":
        turned = [0, 2, 3, 1] if n == "k" else [0, 2, 1, 3]
        nodes += [
            ("MatMul", f"x w{n}", f"{n}0"),
            ("Reshape", f"{n}0 split", f"{n}1"),
            ("Transpose", f"{n}1", n, {"perm": turned}),
        ]
    nodes += [
        ("MatMul", "q k", "scores"),
        ("Div", "scores scale", "scaled"),
        ("Add", "scaled mask", "masked"),
        ("Softmax", "masked", "p", {"axis": -1}),
        ("MatMul", "p v", "o"),
        ("Transpose", "o", "t", {"perm": [0, 2, 1, 3]}),
        ("Reshape", "t s", "y"),
    ]
    return model_of(nodes, [tensor("x", ["batch", 5, 8])], [tensor("y", None)], constants)


def test_a_convolutional_network_is_right_in_three_kernels():
    made = judge(network(), weights(1, 3, 8, 8))
    assert made.kernels == ("conv2d_add_relu", "pool2d_reshape", "matmul_multiply_add")


@pytest.mark.parametrize("left_out", PASSES, ids=lambda p: p.__name__)
def test_no_pass_changes_a_network(left_out):
    model, x = network(), weights(1, 3, 8, 8)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    old = list(PASSES)
    PASSES.remove(left_out)
    try:
        got = compile_graph(from_onnx(model), "llvm")(x)
    finally:
        PASSES[:] = old
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_attention_is_right_and_its_shapes_are_known_at_import(target):
    made = judge(attention(), weights(2, 5, 8), target=target, shapes={"x": (2, 5, 8)})
    assert not {node.operator for node in made.graph.nodes} & {"shape", "take", "concatenate"}
    # q, k and v as one product; and scores, softmax and the result with the heads joined in one kernel
    assert len(made.kernels) == 2


def test_ids_are_embedded_and_negative_ones_count_from_the_end():
    constants = {"table": weights(6, 4), "first": np.array(0, "int64")}
    nodes = [("Gather", "table ids", "e"), ("Gather", "e first", "y", {"axis": 1})]
    model = model_of(nodes, [tensor("ids", [2, 3], TensorProto.INT64)], [tensor("y", [2, 4])], constants)
    judge(model, np.array([[0, 5, 2], [-1, 3, -6]]))


def test_a_model_is_compiled_from_a_path_bytes_and_a_proto(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(network(), path)
    x = weights(1, 3, 8, 8)
    made = [tir.compile(m, "interpreter")(x) for m in (str(path), path, path.read_bytes(), onnx.load(path))]
    assert all(np.array_equal(made[0], each) for each in made)


def test_data_in_another_file_is_read_and_missed(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(network(), path, save_as_external_data=True, location="data", size_threshold=0)
    x = weights(1, 3, 8, 8)
    np.testing.assert_array_equal(compile_graph(from_onnx(path))(x), compile_graph(from_onnx(network_of(path)))(x))
    with pytest.raises(ModelError, match="data in another file"):
        from_onnx(path.read_bytes())
    os.remove(tmp_path / "data")
    with pytest.raises(ModelError, match="external data cannot be read"):
        from_onnx(path)


def network_of(path):
    return onnx.load(path)


def test_functions_of_a_model_are_inlined():
    body = [helper.make_node("Mul", ["a", "a"], ["b"]), helper.make_node("Add", ["b", "a"], ["c"])]
    function = helper.make_function("own", "F", ["a"], ["c"], body, [helper.make_opsetid("", 21)])
    graph = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="own")], "g", [tensor("x", [3])], [tensor("y", [3])]
    )
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    judge(helper.make_model(graph, functions=[function], opset_imports=sets), weights(3))


def test_an_operator_without_a_row_is_imported_by_its_definition():
    names = "qkv"
    model = model_of(
        [("Attention", "q k v", "y", {"is_causal": 1})],
        [tensor(n, [1, 2, 4, 8]) for n in names],
        [tensor("y", None)],
        opset=23,
    )
    judge(model, *(weights(1, 2, 4, 8) for _ in names))
    window = model_of([("HannWindow", "n", "y")], [], [tensor("y", None)], {"n": np.array(5, "int32")})
    np.testing.assert_allclose(compile_graph(from_onnx(window), "interpreter")(), np.hanning(6)[:5], atol=1e-6)


def test_the_branch_of_a_known_condition_is_imported():
    def branch(operator):
        return helper.make_graph([helper.make_node(operator, ["x"], ["z"])], operator, [], [tensor("z", None)])

    nodes = [
        ("Shape", "x", "s"),
        ("Equal", "s two", "c"),
        ("If", "c", "y", {"then_branch": branch("Exp"), "else_branch": branch("Neg")}),
    ]
    x = weights(2)
    for size, expected in ((2, np.exp(x)), (3, -x)):
        model = model_of(nodes, [tensor("x", [2])], [tensor("y", None)], {"two": np.array([size], "int64")})
        np.testing.assert_allclose(compile_graph(from_onnx(model), "interpreter")(x), expected, rtol=1e-6)


def test_both_branches_are_run_where_the_condition_is_known_only_then():
    def branch(*nodes):
        return helper.make_graph([helper.make_node(*n) for n in nodes], "b", [], [tensor("z", None)])

    def model(other):
        nodes = [("If", "c", "y", {"then_branch": branch(("Exp", ["x"], ["z"])), "else_branch": other})]
        inputs = [tensor("x", [2]), tensor("c", [1], TensorProto.BOOL)]
        return model_of(nodes, inputs, [tensor("y", None)], {"a": np.array([0], "int64")})

    x, made = weights(2), compile_graph(from_onnx(model(branch(("Neg", ["x"], ["z"])))), "interpreter")
    for condition, expected in ((True, np.exp(x)), (False, -x)):
        np.testing.assert_allclose(made(x, np.array([condition])), expected, rtol=1e-6)
    with pytest.raises(
        ModelError, match=r"its condition \(the branches make float32\[2\] and float32\[1\]\), `c`, is"
    ) as caught:
        from_onnx(model(branch(("Gather", ["x", "a"], ["z"]))))
    assert caught.value.needs == ("c",)


def loop(carried, *nodes, constants=()):
    """A body that counts: ``n`` is the step, ``go`` the condition; ``carried`` what it takes, its results end in ``_``."""
    held = [numpy_helper.from_array(np.asarray(a), name) for name, a in dict(constants).items()]
    inputs = [
        tensor("n", [], TensorProto.INT64),
        tensor("go", [], TensorProto.BOOL),
        *(tensor(c, None) for c in carried),
    ]
    made = [helper.make_node(*each) for each in nodes]
    return helper.make_graph(made, "body", inputs, [tensor(f"{name}_", None) for name in ("go", *carried, "row")], held)


def test_a_loop_whose_steps_are_known_is_written_step_by_step():
    body = loop("s", ("Mul", ["s", "x"], ["s_"]), ("Identity", ["s_"], ["row_"]), ("Less", ["n", "two"], ["go_"]),
                constants={"two": np.array(2, "int64")})  # fmt: skip
    inputs = [tensor("x", [2]), tensor("m", [1], TensorProto.INT64)]
    model = model_of(
        [("Loop", "m  x", "last rows", {"body": body})], inputs, [tensor("last", None), tensor("rows", None)]
    )
    x = weights(2)
    for most, steps in ((0, 0), (2, 2), (9, 3)):
        last, rows = compile_graph(from_onnx(model, values={"m": np.array([most])}), "interpreter")(x)
        np.testing.assert_allclose(last, x ** (steps + 1), rtol=1e-5)
        np.testing.assert_allclose(rows, np.reshape([x ** (n + 2) for n in range(steps)], (steps, 2)), rtol=1e-5)
    with pytest.raises(ModelError, match="its number of steps, `m`, is known only when it runs"):
        from_onnx(model)
    endless = loop("s", ("Mul", ["s", "x"], ["s_"]), ("Identity", ["s"], ["row_"]), ("Identity", ["go"], ["go_"]))
    model = model_of(
        [("Loop", "m t x", "last rows", {"body": endless})], inputs, [tensor("last", None)], {"t": np.array(True)}
    )
    with pytest.raises(ModelError, match="it takes 2000 steps; at most 1024"):
        from_onnx(model, values={"m": np.array([2000])})


def test_sequences_that_a_model_makes_are_followed_at_import():
    nodes = [
        ("SplitToSequence", "x", "parts", {"axis": 1, "keepdims": 0}),
        ("SequenceErase", "parts first", "fewer"),
        ("SequenceInsert", "fewer z", "more"),
        ("SequenceAt", "more first", "one"),
        ("ConcatFromSequence", "more", "all", {"axis": 0, "new_axis": 1}),
        ("SequenceLength", "more", "count"),
    ]
    held = {"first": np.array(0, "int64"), "z": weights(2)}
    outputs = [tensor(n, None) for n in ("one", "all", "count")]
    judge(model_of(nodes, [tensor("x", [2, 3])], outputs, held), weights(2, 3), target="interpreter")
    for last, why in ((("SequenceAt", "parts n", "one"), "position 7 of a sequence with 3 places"),
                      (("Relu", "parts", "one"), "input 0 is a sequence"), (("SequenceLength", "x", "one"), "input 0 is no sequence")):  # fmt: skip
        with pytest.raises(ModelError, match=why):
            from_onnx(model_of([nodes[0], last], [tensor("x", [2, 3])], outputs[:1], {"n": np.array(7, "int64")}))
    with pytest.raises(ModelError, match="output 'parts' is a sequence; results are tensors"):
        from_onnx(model_of(nodes[:1], [tensor("x", [2, 3])], [tensor("parts", None)]))


@pytest.mark.parametrize(("opset", "axis", "shape"), [(6, 1, (3,)), (6, None, (4,)), (6, 0, (2, 3)), (7, None, (3, 1))])
def test_before_version_7_an_axis_says_where_the_second_tensor_is(opset, axis, shape):
    given = {} if opset >= 7 else {"broadcast": 1, **({} if axis is None else {"axis": axis})}
    x, y = weights(2, 3, 4), weights(*shape)
    model = model_of([("Mul", "x y", "z", given)], [tensor("x", [2, 3, 4])], [tensor("z", None)], {"y": y}, opset)
    placed = y if axis is None else y.reshape(*shape, *[1] * (3 - axis - y.ndim))
    np.testing.assert_allclose(compile_graph(from_onnx(model), "interpreter")(x), x * placed)


def test_inputs_that_act_as_attributes_are_given_at_import():
    model = model_of(
        [("ReduceSum", "x axes", "y", {"keepdims": 0})],
        [tensor("x", [2, 3]), tensor("axes", [1], TensorProto.INT64)],
        [tensor("y", None)],
    )
    with pytest.raises(ModelError, match="its axes, `axes`, is known only when it runs") as caught:
        from_onnx(model)
    assert caught.value.needs == ("axes",)
    made = compile_graph(from_onnx(model, values={"axes": np.array([1])}), "interpreter")
    assert made(np.ones((2, 3), "float32")).tolist() == [3, 3]
    with pytest.raises(ModelError, match="values gives int32"):
        from_onnx(model, values={"axes": np.array([1], "int32")})


def sums(*more):
    """``x`` summed over ``axes``, which the caller gives."""
    nodes = [("ReduceSum", "x axes", "y", {"keepdims": 0}), *more]
    inputs = [tensor("x", [2, 3]), tensor("axes", [1], TensorProto.INT64), tensor("shape", [2], TensorProto.INT64)]
    return model_of(nodes, inputs, [tensor(nodes[-1][2], None)])


def test_a_model_is_compiled_for_the_values_of_attributes_when_a_call_gives_them():
    model = tir.compile(sums(("Expand", "y shape", "z")), "interpreter")
    x = weights(2, 3)
    assert (
        repr(model)
        == "SpecialisedModel(x: float32[2, 3], axes: int64[1], shape: int64[2]; compiled for each value of axes)"
    )
    for axis, shape in ((1, [2, 2]), (0, [4, 3]), (1, [2, 2])):
        made = model(x, np.array([axis]), shape=np.array(shape))
        np.testing.assert_allclose(made, np.broadcast_to(x.sum(axis), shape), rtol=1e-6)
    assert model.specialised == ({"axes": [0], "shape": [4, 3]}, {"axes": [1], "shape": [2, 2]})
    one = model.model(x, [1], [2, 2])
    assert one is model.model(x, [1], [2, 2]) and [p.name for p in one.inputs] == ["x"] and one.specialised == ()
    for n in range(2, 11):
        model(x, [1], [n, 2])
    assert [each["shape"] for each in model.specialised] == [[n, 2] for n in range(3, 11)]


@pytest.mark.parametrize(
    ("args", "error", "said"),
    [
        ((), tir.RunError, "no value was given for input 'x', 'axes', 'shape'"),
        (([[1.0] * 3] * 2, [1.5], [2, 2], 3), tir.RunError, "4 inputs were given"),
        (([[1.0] * 3] * 2, np.array([1.5]), [2, 2]), tir.RunError, "axes: int64.1.: the array is of float64"),
        (([[1.0] * 3] * 2, [1, 1], [2, 2]), tir.RunError, "size 0 is 2"),
        (([[1.0] * 3] * 2, [7], [2, 2]), ModelError, "axis 7 of a tensor of 2 dimensions"),
        (([[1.0] * 3] * 2, [1], [2, 5]), ModelError, "broadcast"),
    ],
)
def test_what_no_model_is_compiled_for_is_refused_at_the_call(args, error, said):
    model = tir.compile(sums(("Expand", "y shape", "z")), "interpreter")
    with pytest.raises(error, match=said):
        model(*args)
    assert model.specialised == ()


def test_a_model_with_other_faults_is_refused_at_once():
    for fault, why in ((("Conv3", "x", "z"), "no row"), (("NonZero", "x", "z"), "the size of its result depends on")):
        with pytest.raises(ModelError, match=why) as caught:
            tir.compile(sums(fault), "interpreter")
        assert caught.value.needs == () and len(caught.value.faults) == 2


def test_threads_share_what_was_compiled_for_a_value():
    model, made = tir.compile(sums(), "interpreter"), []
    threads = [
        threading.Thread(target=lambda: made.append(model.model([[1.0] * 3] * 2, [1], [1, 1]))) for _ in range(3)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, made))) == 1


def test_threads_compile_for_two_values_at_once(monkeypatch):
    both, made = threading.Barrier(2), []

    def together(*args):
        both.wait(timeout=60)
        return compile_graph(*args)

    monkeypatch.setattr("tir.importers.specialised.compile_graph", together)
    model = tir.compile(sums(), "interpreter")
    threads = [
        threading.Thread(target=lambda n=n: made.append(model([[1.0] * 3] * 2, [n], [1, 1]).size)) for n in (0, 1)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(made) == [2, 3]


# ---------------------------------------------------------------- versions


@pytest.mark.parametrize(
    ("opset", "nodes", "constants"),
    [
        (13, [("Softmax", "x", "y", {"axis": 1})], {}),
        (9, [("Slice", "x", "y", {"starts": [1], "ends": [9], "axes": [2]})], {}),
        (13, [("Slice", "x a b c d", "y")], {"a": [-1], "b": [-9], "c": [1], "d": [-2]}),
        (9, [("Clip", "x", "y", {"min": -0.5})], {}),
        (13, [("Clip", "x  low", "y")], {}),
        (11, [("ReduceSum", "x", "y", {"axes": [-1], "keepdims": 0})], {}),
        (13, [("ReduceSum", "x a", "y")], {"a": [0, 2]}),
        (11, [("Unsqueeze", "x", "u", {"axes": [0, -1]}), ("Squeeze", "u", "y", {"axes": [0]})], {}),
        (13, [("Unsqueeze", "x a", "u"), ("Squeeze", "u a", "y")], {"a": [0, -1]}),
        (11, [("Split", "x", "y z", {"axis": 1, "split": [1, 2]})], {}),
        (18, [("Split", "x", "y z", {"axis": 1, "num_outputs": 2})], {}),
        (10, [("Pad", "x", "y", {"pads": [0, 1, 0, 0, 0, 1], "value": 2.0})], {}),
        (21, [("Pad", "x a  c", "y", {"mode": "reflect"})], {"a": [1, 2], "c": [1]}),
    ],
)
def test_each_version_of_an_operator_is_read_as_it_was(opset, nodes, constants):
    held = {name: np.array(value, "int64") for name, value in constants.items()} | {"low": np.float32(0.25)}
    outputs = [tensor(n, None) for n in nodes[-1][2].split()]
    model = model_of(nodes, [tensor("x", [2, 3, 4])], outputs, held, opset)
    judge(model, weights(2, 3, 4), target="interpreter")


def test_softmax_before_version_13_takes_all_axes_from_its_own_on_as_one():
    x = weights(2, 3, 4)
    model = model_of([("Softmax", "x", "y")], [tensor("x", [2, 3, 4])], [tensor("y", None)], opset=11)
    flat = np.exp(x.reshape(2, 12))
    expected = (flat / flat.sum(1, keepdims=True)).reshape(x.shape)
    np.testing.assert_allclose(compile_graph(from_onnx(model), "interpreter")(x), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("opset", "node", "repeats"),
    [(10, ("Resize", "x s", "y"), (1, 1, 2)), (7, ("Upsample", "x", "y", {"scales": [1.0, 2.0, 3.0]}), (1, 2, 3))],
)
def test_images_are_repeated_as_before_version_11(opset, node, repeats):
    x, y = weights(2, 3, 4), tensor("y", None)
    model = model_of([node], [tensor("x", [2, 3, 4])], [y], {"s": np.float32([1, 1, 2])} if opset > 9 else {}, opset)
    expected = x
    for axis, count in enumerate(repeats):
        expected = expected.repeat(count, axis)
    np.testing.assert_array_equal(compile_graph(from_onnx(model), "interpreter")(x), expected)


def test_the_largest_of_all_axes_from_its_own_on_before_version_13():
    x = weights(2, 3, 4)
    model = model_of([("Hardmax", "x", "y")], [tensor("x", [2, 3, 4])], [tensor("y", None)], opset=12)
    expected = np.eye(12, dtype="float32")[x.reshape(2, 12).argmax(1)].reshape(x.shape)
    np.testing.assert_array_equal(compile_graph(from_onnx(model), "interpreter")(x), expected)


@pytest.mark.parametrize("places", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_tensors_have_their_zeros(places):
    values = numpy_helper.from_array(np.float32([3, 5]), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.int64(places), "p"), [2, 3])
    model = model_of([("Constant", "", "v", {"sparse_value": sparse}), ("Add", "w v", "y")], [], [tensor("y", None)])
    model.graph.node[0].ClearField("input")
    model.graph.sparse_initializer.append(sparse)
    np.testing.assert_array_equal(compile_graph(from_onnx(model), "interpreter")(), [[0, 6, 0], [0, 0, 10]])
    sparse.dims[1] = 2
    model.graph.sparse_initializer[0].CopyFrom(sparse)
    with pytest.raises(ModelError, match=r"sparse tensor 'w' of shape \[2, 2\]"):
        from_onnx(model)


def test_an_input_may_be_called_self():
    model = model_of([("Neg", "self", "y")], [tensor("self", [2])], [tensor("y", None)])
    np.testing.assert_array_equal(compile_graph(from_onnx(model), "interpreter")(self=np.float32([1, 2])), [-1, -2])


# ---------------------------------------------------------------- what cannot be imported


def test_everything_unsupported_is_listed_at_once():
    nodes = [
        ("Relu", "x", "a"),
        ("Conv3", "a", "b"),
        ("Conv3", "b", "c"),
        ("Conv3", "x", "d"),
        ("NonZero", "x", "e"),
        ("MatMul", "x x", "f"),
        ("Relu", "c", "g"),
    ]
    model = model_of(nodes, [tensor("x", [2, 3])], [tensor("g", None)])
    with pytest.raises(ModelError) as caught:
        from_onnx(model)
    rows = [(f[0], f[2], f[3]) for f in caught.value.faults]
    assert rows == [("Conv3", 3, "Conv3 of b"), ("MatMul", 1, "MatMul of f"), ("NonZero", 1, "NonZero of e")]
    text = str(caught.value)
    assert text.startswith("5 nodes of the model cannot be imported") and "did you mean Conv" in text
    assert "the size of its result depends on the elements of `x`" in text and "matmul" not in text.splitlines()[0]


RELU = [("Relu", "x", "y")]
SQUARE = [tensor("x", [2, 2])]


def changed(change, nodes=RELU, inputs=SQUARE, outputs=("y",), **options):
    model = model_of(nodes, inputs, [tensor(n, None) for n in outputs], **options)
    change(model)
    return model


def keep(model):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (changed(keep, [("Relu", "b", "a"), ("Relu", "a", "b"), *RELU]), "reads 'b', that a later node makes: there is a cycle"),
        (changed(keep, [("Relu", "z", "y")]), "Relu of y reads 'z', that nothing makes"),
        (changed(keep, [*RELU, ("Exp", "x", "y")]), "'y' has two definitions; the second is made by node Exp"),
        (changed(keep, [("Relu", "x", "x")]), "'x' has two definitions"),
        (changed(keep, outputs=("yy",)), "output 'yy' is made by no node; did you mean y"),
        (changed(keep, outputs=("y", "y")), "output 'y' is there twice"),
        (changed(keep, inputs=[tensor("x", [None, 2])]), "input 'x' has shape .'.', 2.: give its sizes, or names"),
        (changed(keep, inputs=[tensor("x", None)]), "input 'x' has no shape"),
        (changed(keep, inputs=[tensor("x", [2], TensorProto.STRING)]), "input 'x': type STRING"),
        (changed(lambda m: m.graph.ClearField("output")), "no outputs"),
        (changed(lambda m: m.ClearField("graph")), "no graph"),
        (changed(lambda m: m.ClearField("opset_import")), "no versions of operators"),
        (changed(keep, [("Add", "x c", "y")], constants={"c": weights(3)}), "broadcast"),
        (changed(keep, [("Reshape", "x c", "y")], constants={"c": np.array([3, -1])}), r"\[2, 2\] does not become \[3, -1\]"),
        (changed(keep, [("Relu", "x", "y")], opset=5), "there are rows from version|Relu"),
        (b"", "no graph"),
        (b"\x00\xffnot a model", "no ONNX model"),
        (network().SerializeToString()[:-9], "no ONNX model|cannot be read"),
        ("/nowhere/model.onnx", "No such file"),
        (3, "not int"),
    ],
)  # fmt: skip
def test_a_broken_model_is_refused(model, message):
    if getattr(model, "opset_import", None) and model.opset_import[0].version == 5:
        model.graph.node[0].op_type = "Clip"
    with pytest.raises(ModelError, match=message):
        from_onnx(model)


def test_shapes_that_contradict_the_model_are_refused():
    model = changed(keep, inputs=[tensor("x", ["n", 2])])
    for shapes, message in [
        ({"x": (2, 3)}, "which the model says is"),
        ({"x": (2,)}, "which the model says is"),
        ({"z": (2, 2)}, "shapes names 'z', which is no input"),
        ({"x": (-1, 2)}, "sizes are integers of at least 0"),
    ]:
        with pytest.raises(ModelError, match=message):
            from_onnx(model, shapes=shapes)


def test_two_threads_compile_one_model():
    model, x, made = network(), weights(1, 3, 8, 8), []
    threads = [threading.Thread(target=lambda: made.append(tir.compile(model)(x))) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    np.testing.assert_array_equal(*made)


def test_groups_of_an_imported_graph_run_in_order():
    order = groups(optimized(from_onnx(attention(), shapes={"x": (1, 5, 8)})))
    made = set()
    for group in order:
        assert not any(
            v in later.outputs for v in group.inputs for later in order if later not in made and later is not group
        )
        made.add(group)


# ---------------------------------------------------------------- node cases of the package


CASES = dict(line.split(": ") for line in Path(__file__).with_name("onnx_cases.txt").read_text("utf-8").splitlines())


@pytest.mark.parametrize("operator", CASES)
def test_node_cases_of_the_package_are_right(operator, monkeypatch):
    """Those that this version of the package has, of each operator some: all are run by ``tests.tools.onnx_cases``."""
    import warnings

    from tests.tools.onnx_cases import judged

    names = CASES[operator].split()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = cases_of(operator, names, monkeypatch)
        found = {name: judged(made[f"test_{name}"], "interpreter") for name in names if f"test_{name}" in made}
    assert {name: why for name, why in found.items() if not why.startswith("right")} == {}


def cases_of(operator: str, names: list[str], monkeypatch) -> dict[str, object]:
    """The cases ``names`` that a file of the package makes when it is imported, and those of files imported before. It makes
    each by a function, which computes in Python what is expected: those that name no case of ``names`` are left out."""
    node = pytest.importorskip("onnx.backend.test.case.node")

    def run_some(cls, name, bases, members):
        for key in filter(re.compile("export").match, members):
            named = re.findall('"test_([a-z_0-9]+)"', inspect.getsource(members[key]))
            if not named or any(wanted.startswith(stem) for wanted in names for stem in named):
                np.random.seed(0)
                getattr(cls, key)()

    monkeypatch.setattr("onnx.backend.test.case.base._Exporter.__init__", run_some)
    try:
        importlib.import_module(f"onnx.backend.test.case.node.{operator}")
    except ImportError:
        pytest.skip("this version of onnx has no such cases")
    made = {case.name: case for case in getattr(node, "_NodeTestCases", None) or node.collect_testcases(None)}
    assert made
    return made


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_networks_run_in_each_direction(operator, gates, direction):
    count = 1 + (direction == "bidirectional")
    constants = {"w": weights(count, gates * 4, 3), "r": weights(count, gates * 4, 4), "b": weights(count, gates * 8)}
    inputs = [tensor("x", [5, 2, 3]), tensor("h", [count, 2, 4])]
    outputs = [tensor("y", [5, count, 2, 4]), tensor("last", [count, 2, 4])]
    attributes = {"hidden_size": 4, "direction": direction}
    model = model_of([(operator, "x w r b", "y last", attributes)], inputs, outputs, constants)
    model.graph.node[0].input[:] = ["x", "w", "r", "b", "", "h"]
    judge(model, weights(5, 2, 3), weights(count, 2, 4))


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"clip": 1.0}, "it clips its sums"),
        ({"activations": ["Elu"]}, "its activations are Elu"),
        ({"direction": "up"}, "direction 'up' is none"),
    ],
)
def test_a_recurrent_network_that_is_not_known_is_refused_with_the_reason(attributes, why):
    constants = {"w": weights(1, 4, 3), "r": weights(1, 4, 4), "b": weights(1, 8)}
    nodes = [("RNN", "x w r b", "y", {"hidden_size": 4, **attributes})]
    with pytest.raises(ModelError, match=why):
        from_onnx(model_of(nodes, [tensor("x", [5, 2, 3])], [tensor("y", [5, 1, 2, 4])], constants))


def pooled(size, kernel, stride, pads):
    """The shape with ``ceil_mode``: of a window that begins in the padding behind, there is nothing."""
    counts = []
    for n, k, s, before, after in zip(size, kernel, stride, pads[:2], pads[2:]):
        count = -(-(n + before + after - k) // s) + 1
        counts.append(count - ((count - 1) * s >= n + before))
    return counts


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("size", "stride", "pads"),
    [
        ((6, 6), (2, 2), (0, 0, 0, 0)),  # a last window that is partly outside, along both axes
        ((6, 7), (2, 2), (0, 0, 0, 0)),  # or along one
        ((5, 5), (3, 3), (0, 0, 2, 2)),
        ((4, 4), (3, 3), (1, 1, 1, 1)),
        ((5, 5), (4, 4), (1, 1, 2, 2)),
        ((4, 4), (4, 4), (0, 0, 1, 1)),  # one that begins in the padding along both
        ((4, 5), (4, 4), (0, 0, 1, 1)),  # or along one alone
        ((5, 4), (4, 4), (0, 0, 1, 1)),
    ],
)
def test_windows_that_are_partly_outside(operator, size, stride, pads):
    attributes = {"kernel_shape": [3, 3], "strides": list(stride), "pads": list(pads), "ceil_mode": 1}
    model = model_of([(operator, "x", "y", attributes)], [tensor("x", [1, 2, *size])], [tensor("y", None)])
    x = weights(1, 2, *size)
    made = compile_graph(from_onnx(model), "llvm")(x)
    assert list(made.shape[2:]) == pooled(size, (3, 3), stride, pads)
    for at in np.ndindex(*made.shape[2:]):
        begins = [a * s - p for a, s, p in zip(at, stride, pads)]
        rows, columns = (slice(max(b, 0), b + 3) for b in begins)
        window = x[:, :, rows, columns]
        want = window.max(axis=(2, 3)) if operator == "MaxPool" else window.mean(axis=(2, 3))
        np.testing.assert_allclose(made[:, :, at[0], at[1]], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "shape", "constants"),
    [
        ([("Squeeze", "x", "y")], (1, 3, 1, 2), {}),  # without axes: all of size 1
        ([("Squeeze", "x a", "y")], (1, 3, 1, 2), {"a": [-2]}),
        ([("Unsqueeze", "x a", "y")], (3, 2), {"a": [0, -1]}),
        ([("Flatten", "x", "y", {"axis": -1})], (2, 3, 4), {}),
        ([("Flatten", "x", "y", {"axis": 0})], (2, 3, 4), {}),
        ([("Reshape", "x a", "y")], (2, 3, 4), {"a": [0, -1]}),
        ([("Gather", "x a", "y", {"axis": 1})], (2, 3, 4), {"a": -1}),
        ([("Gather", "x a", "y", {"axis": -1})], (2, 3, 1), {"a": 0}),
        ([("Gather", "x a", "y", {"axis": 1})], (2, 3, 4), {"a": [2]}),
        ([("Gather", "x a", "y", {"axis": 1})], (2, 3, 4), {"a": [2, -3]}),
    ],
)
def test_shapes_and_places_known_at_import(nodes, shape, constants):
    given = {name: np.array(values, "int64") for name, values in constants.items()}
    model = model_of(nodes, [tensor("x", shape)], [tensor("y", None)], given)
    x = weights(*shape)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(compile_graph(from_onnx(model), "llvm")(x), want)


@pytest.mark.parametrize(
    ("node", "shape", "axes", "why"),
    [
        ("Squeeze", (1, 3), [1], r"axes \[1\] of \[1, 3\] are not all of size 1"),
        ("Reshape", (2, 3), [-1, -1], r"\[2, 3\] does not become \[-1, -1\]"),
        ("Reshape", (2, 3), [4, -1], r"\[2, 3\] does not become \[4, -1\]"),
        ("Reshape", (2, 3), [4, 2], "has 6 elements, and .* has 8"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(node, shape, axes, why):
    given = {"a": np.array(axes, "int64")}
    with pytest.raises(ModelError, match=why):
        from_onnx(model_of([(node, "x a", "y")], [tensor("x", shape)], [tensor("y", None)], given))


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "why"),
    [
        ("Einsum", "x", {}, "its attribute equation is missing"),
        ("Einsum", "x", {"equation": [1]}, "its attribute equation is of INTS, not of STRING"),
        ("Cast", "x", {}, "its attribute to is missing"),
        ("LpPool", "x", {}, "its attribute kernel_shape is missing"),
        ("Softmax", "x", {"axis": [1]}, "its attribute axis is of INTS, not of INT"),
        ("Unsqueeze", "x axes", {}, r"axes \[0, -5\] of 5 dimensions name one of them twice"),
    ],
)
def test_attributes_that_are_missing_or_of_another_type_are_faults_of_the_node(operator, inputs, attributes, why):
    nodes = [(operator, inputs, "y", attributes)]
    model = model_of(nodes, [tensor("x", [1, 2, 3])], [tensor("y", None)], {"axes": np.array([0, -5])})
    with pytest.raises(ModelError, match=f"{operator}.* {why}"):
        from_onnx(model)


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "attributes", "why"),
    [
        ("Relu", "x x", "y", {}, "it has 2 inputs; the operator has 1 at most"),
        ("Relu", "x", "y z", {}, "it has 2 results; the operator has 1 at most"),
        ("Split", "x parts", "y z", {}, r"an axis of 8 elements is no 3 \+ 3"),
        (
            "Split",
            "x",
            "y z a b c",
            {"num_outputs": 5, "axis": 1},
            r"an axis of 3 elements is no 1 \+ 1 \+ 1 \+ 0 \+ -1",
        ),
        ("Gather", "x far", "y", {}, "index 8 is outside of an axis of 8 elements"),
        ("GatherElements", "x far_rows", "y", {}, "index -9 is outside of an axis of 8 elements"),
        ("ScatterElements", "x far_rows far_values", "y", {}, "index -9 is outside of an axis of 8 elements"),
    ],
)
def test_more_than_an_operator_takes_or_has_is_a_fault_of_the_node(operator, inputs, outputs, attributes, why):
    given = {"parts": np.array([3, 3]), "far": np.array([0, 8]), "far_rows": np.array([[1, -9, 7]])}
    nodes = [(operator, inputs, outputs, attributes)]
    held = {**given, "far_values": np.zeros((1, 3), "float32")}
    model = model_of(nodes, [tensor("x", [8, 3])], [tensor("y", None)], held)
    with pytest.raises(ModelError, match=f"{operator}.* {why}"):
        from_onnx(model)


@pytest.mark.parametrize("bounds", [{}, {"min": -0.25}, {"max": 0.5}, {"min": -0.25, "max": 0.5}])
@pytest.mark.parametrize("opset", [6, 11, 13])
def test_values_are_clipped_by_the_bounds_there_are(bounds, opset):
    names = (
        "x" if opset == 6 or not bounds else f"x {'min' if 'min' in bounds else ''} {'max' if 'max' in bounds else ''}"
    )
    node = helper.make_node("Clip", names.split(" "), ["y"], **(bounds if opset == 6 else {}))
    constants = [] if opset == 6 else [numpy_helper.from_array(np.float32(v), k) for k, v in bounds.items()]
    graph = helper.make_graph([node], "g", [tensor("x", (4, 5))], [tensor("y", None)], constants)
    x = weights(4, 5)
    made = compile_graph(from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])), "llvm")(x)
    np.testing.assert_array_equal(made, np.clip(x, bounds.get("min", -1), bounds.get("max", 1)))


@pytest.mark.parametrize(
    ("node", "constants", "why"),
    [
        (("ConstantOfShape", "n", "y"), {"n": np.array([1 << 40])}, "makes a constant of shape"),
        (("ConstantOfShape", "n", "y"), {"n": np.array([-1])}, "makes a constant of shape"),
        (("Range", "a n b", "y"), {"a": np.int64(0), "n": np.int64(1 << 40), "b": np.int64(1)}, "makes a constant of"),
        (("Range", "a n b", "y"), {"a": np.int64(0), "n": np.int64(8), "b": np.int64(0)}, "counts from 0 to 8 by 0"),
        (("OneHot", "x n v", "y"), {"n": np.int64(1 << 40), "v": np.float32([0, 1])}, "makes a constant of shape"),
    ],
)
def test_constants_that_no_memory_holds_are_faults_of_the_node(node, constants, why):
    model = model_of([node], [tensor("x", [1 << 40])], [tensor("y", None)], constants)
    with pytest.raises(ModelError, match=why):
        from_onnx(model)


def test_names_that_are_no_text_are_refused():
    data = model_of([("Relu", "x", "y")], [tensor("x", [1])], [tensor("y", [1])]).SerializeToString()
    assert data.count(b"Relu") == 1
    with pytest.raises(ModelError, match=r"the name b'R.*u', which is no text"):
        from_onnx(data.replace(b"Relu", b"R\xff\xfeu"))


@pytest.mark.parametrize("version", [0, -1, 1 << 31, 1 << 40])
def test_a_version_that_is_none_is_refused(version):
    model = model_of([("Relu", "x", "y")], [tensor("x", [1])], [tensor("y", [1])])
    model.opset_import[0].version = version
    with pytest.raises(ModelError, match=f"version {version} of the domain 'ai.onnx' is none"):
        from_onnx(model)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("bias", [True, False])
def test_convolutions_add_their_bias_if_there_is_one(operator, rank, bias):
    outputs, inputs = (4, 3) if operator == "Conv" else (3, 4)
    constants = {"w": weights(outputs, inputs, *(3,) * rank), **({"b": weights(4)} if bias else {})}
    attributes = {"kernel_shape": [3] * rank, "strides": [2] * rank}
    nodes = [(operator, "x w b" if bias else "x w", "y", attributes)]
    judge(
        model_of(nodes, [tensor("x", [1, 3, *(7,) * rank])], [tensor("y", None)], constants),
        weights(1, 3, *(7,) * rank),
    )


def test_a_map_over_a_sequence_whose_type_no_model_says():
    body = helper.make_graph(
        [helper.make_node("Add", ["e", "e"], ["o"])], "b", [tensor("e", None)], [tensor("o", None)]
    )
    nodes = [
        ("SequenceConstruct", "x w", "s"),
        ("SequenceMap", "s", "twice", {"body": body}),
        ("SequenceAt", "twice at", "y"),
    ]
    x, w = weights(3), weights(2, 3)
    model = model_of(nodes, [tensor("x", (3,)), tensor("w", (2, 3))], [tensor("y", (2, 3))], {"at": np.array(1)})
    np.testing.assert_allclose(compile_graph(from_onnx(model), "interpreter")(x, w), 2 * w, rtol=1e-6)
