"""Models with named sizes, imported and compiled once for all values of these."""

from __future__ import annotations

import numpy as np
import pytest

from tir.dtype import DType
from tir.errors import ModelError, RunError
from tir.graph import compile_graph, parse
from tir.importers.torch_graph import imported
from tir.importers.torch_program import Program, Ref, Step
from tir.importers.torch_table import Result

onnx = pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from tir.importers.onnx import from_onnx  # noqa: E402
from tir.importers.specialised import compile_onnx  # noqa: E402

RNG = np.random.default_rng(0)


def model(nodes, inputs, outputs=("y",), **constants):
    """A model of ``(operator, inputs, output, attributes)``, and inputs by name as type and sizes."""
    made = [helper.make_node(op, ins.split(), [out], **attributes) for op, ins, out, attributes in nodes]
    infos = [helper.make_tensor_value_info(n, kind, sizes) for n, (kind, sizes) in inputs.items()]
    results = [helper.make_value_info(n, helper.TypeProto()) for n in outputs]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(made, "g", infos, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def ints(*values):
    return np.array(values, "int64")


def block():
    """Words with positions, and attention with two heads over a causal mask that is cut to the length."""
    table, places, mask = RNG.standard_normal((50, 8)), RNG.standard_normal((16, 8)), np.where(np.tri(16), 0, -1e9)
    nodes = [
        ("Shape", "ids", "shape", {}),
        ("Gather", "shape one", "length", {}),
        ("Gather", "shape zero", "batch", {}),
        ("Range", "zero length one", "at", {}),
        ("Gather", "places at", "position", {}),
        ("Gather", "table ids", "words", {}),
        ("Add", "words position", "x", {}),
        ("Unsqueeze", "batch axis", "b1", {}),
        ("Unsqueeze", "length axis", "l1", {}),
        ("Concat", "b1 l1 heads", "apart", {"axis": 0}),
        ("Reshape", "x apart", "r", {}),
        ("Transpose", "r", "q", {"perm": [0, 2, 1, 3]}),
        ("Transpose", "r", "k", {"perm": [0, 2, 3, 1]}),
        ("MatMul", "q k", "scores", {}),
        ("Slice", "mask axis l1 axis", "rows", {}),
        ("Slice", "rows axis l1 one1", "cut", {}),
        ("Add", "scores cut", "masked", {}),
        ("Softmax", "masked", "p", {"axis": -1}),
        ("MatMul", "p q", "mixed", {}),
        ("Transpose", "mixed", "t", {"perm": [0, 2, 1, 3]}),
        ("Mul", "length eight", "unused", {}),
        ("Concat", "b1 minus width", "whole", {"axis": 0}),
        ("Reshape", "t whole", "y", {}),
    ]
    constants = {
        "table": table.astype("float32"), "places": places.astype("float32"), "mask": mask.astype("float32"),
        "zero": np.int64(0), "one": np.int64(1), "eight": np.int64(8), "axis": ints(0), "one1": ints(1), "heads": ints(2, 4),
        "minus": ints(-1), "width": ints(8),
    }  # fmt: skip

    def expected(ids):
        n = ids.shape[1]
        q = (table[ids] + places[:n]).reshape(*ids.shape, 2, 4).transpose(0, 2, 1, 3)
        e = np.exp(q @ q.transpose(0, 1, 3, 2) + mask[:n, :n])
        return (e / e.sum(-1, keepdims=True) @ q).transpose(0, 2, 1, 3).reshape(*ids.shape, 8)

    return model(nodes, {"ids": (TensorProto.INT64, ["batch", "length"])}, **constants), expected


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_one_model_reads_texts_of_any_length(target):
    proto, expected = block()
    graph = from_onnx(proto)
    assert graph.symbols == ("batch", "length")
    made = compile_graph(graph, target)
    for shape in ((1, 1), (2, 7), (3, 16)):
        ids = RNG.integers(0, 50, shape)
        np.testing.assert_allclose(made(ids), expected(ids), rtol=2e-4, atol=1e-5)
    with pytest.raises(RunError, match="needs .*length.*; the arrays of the call have batch = 1, length = 17"):
        made(np.zeros((1, 17), "int64"))


def test_shapes_give_numbers_or_other_names():
    proto, _ = block()
    assert from_onnx(proto, shapes={"ids": (2, 5)}).symbols == ()
    graph = from_onnx(proto, shapes={"ids": (2, "n")})
    assert graph.symbols == ("n",) and [v.shape[0] for v in graph.outputs.values()] == [2]


def test_inputs_whose_names_differ_do_not_broadcast_until_they_are_given_one():
    inputs = {"a": (TensorProto.FLOAT, ["n", 2]), "b": (TensorProto.FLOAT, ["m", 2])}
    proto = model([("Add", "a b", "y", {})], inputs)
    with pytest.raises(ModelError, match="not known to be equal.*one name in `shapes`"):
        from_onnx(proto)
    made = compile_graph(from_onnx(proto, shapes={"b": ("n", 2)}), "interpreter")
    np.testing.assert_array_equal(made(np.ones((3, 2), "float32"), np.ones((3, 2), "float32")), np.full((3, 2), 2))
    with pytest.raises(RunError, match="n is 4 by .*not so with n = 3"):
        made(np.ones((3, 2), "float32"), np.ones((4, 2), "float32"))


@pytest.mark.parametrize(
    ("nodes", "constants", "expected"),
    [
        ([("Slice", "x s e", "y", {})], {"s": ints(1), "e": ints(2**31 - 1)}, lambda x: x[1:]),
        ([("Slice", "x s e", "y", {})], {"s": ints(0), "e": ints(-1)}, lambda x: x[:-1]),
        ([("Slice", "x s e", "y", {})], {"s": ints(-2), "e": ints(2**40)}, lambda x: x[-2:]),
        ([("Slice", "x s e a t", "y", {})], {"s": ints(0), "e": ints(2**40), "a": ints(0), "t": ints(2)}, lambda x: x[::2]),
        ([("Slice", "x s e a t", "y", {})], {"s": ints(1), "e": ints(-1), "a": ints(0), "t": ints(2)}, lambda x: x[1:-1:2]),
        ([("Slice", "x s e a t", "y", {})], {"s": ints(-1), "e": ints(-(2**40)), "a": ints(0), "t": ints(-1)}, lambda x: x[::-1]),
        ([("Gather", "x i", "y", {})], {"i": np.int64(-1)}, lambda x: x[-1]),
        ([("Gather", "x i", "y", {})], {"i": ints(1, -1)}, lambda x: x[[1, -1]]),
        ([("Flatten", "x", "y", {"axis": 2})], {}, lambda x: x.reshape(-1, 1)),
        ([("Concat", "x x", "y", {"axis": 0})], {}, lambda x: np.concatenate([x, x])),
        ([("Shape", "x", "n", {}), ("Cast", "n", "y", {"to": 1})], {}, lambda x: np.float32(x.shape)),
        ([("Size", "x", "n", {}), ("Div", "n two", "h", {}), ("Cast", "h", "y", {"to": 1})], {"two": np.int64(2)}, lambda x: np.float32(x.size // 2)),
        ([("Size", "x", "n", {}), ("Cast", "n", "short", {"to": 6}), ("Range", "zero short one", "r", {}), ("Cast", "r", "y", {"to": 1})],
         {"zero": np.int32(0), "one": np.int32(1)}, lambda x: np.arange(x.size)),
        ([("Shape", "x", "n", {}), ("Equal", "n free", "is", {}), ("Where", "is ones n", "to", {}), ("Expand", "w to", "y", {})],
         {"free": ints(-1, -1), "ones": ints(1, 1), "w": np.float32([7, 8, 9, 1])}, lambda x: np.broadcast_to(np.float32([7, 8, 9, 1]), x.shape)),
        ([("Shape", "x", "n", {}), ("Equal", "n three", "is", {}), ("Cast", "is", "y", {"to": 1})], {"three": ints(3, 4)}, lambda x: np.equal(x.shape, (3, 4))),
        ([("Shape", "x", "n", {}), ("ConstantOfShape", "n", "o", {}), ("Add", "x o", "y", {})], {}, lambda x: x),
        ([("Shape", "x", "n", {}), ("Expand", "w n", "y", {})], {"w": np.float32([7, 8, 9, 1])}, lambda x: np.broadcast_to(np.float32([7, 8, 9, 1]), x.shape)),
    ],
)  # fmt: skip
def test_rows_on_symbolic_sizes(nodes, constants, expected):
    proto = model(nodes, {"x": (TensorProto.FLOAT, ["n", 4])}, **constants)
    made = compile_graph(from_onnx(proto), "interpreter")
    for n in (2, 3, 6):
        x = RNG.standard_normal((n, 4)).astype("float32")
        np.testing.assert_allclose(made(x), expected(x), rtol=1e-6)


def test_an_axis_that_may_be_1_is_squeezed_by_name_alone():
    axes = [("Squeeze", "x a", "y", {})], {"a": ints(1)}
    proto = model(axes[0], {"x": (TensorProto.FLOAT, ["n", 1, 4])}, **axes[1])
    x = RNG.standard_normal((1, 1, 4)).astype("float32")
    np.testing.assert_array_equal(compile_graph(from_onnx(proto), "interpreter")(x), x[:, 0])
    proto = model([("Squeeze", "x", "y", {})], {"x": (TensorProto.FLOAT, ["n", 1, 4])})
    with pytest.raises(ModelError, match="Squeeze .*whether n is 1 is known only when it runs; give axes, or numbers"):
        from_onnx(proto)
    np.testing.assert_array_equal(compile_graph(from_onnx(proto, shapes={"x": (1, 1, 4)}), "interpreter")(x), x[0, 0])


def test_an_axis_that_is_never_1_is_kept_by_squeeze():
    nodes = [("Concat", "x x", "d", {"axis": 0}), ("Squeeze", "d", "y", {})]
    made = compile_graph(from_onnx(model(nodes, {"x": (TensorProto.FLOAT, ["n", 1])})), "interpreter")
    np.testing.assert_array_equal(made(np.float32([[3]])), [3, 3])


def image(sizes, mode, *scales):
    nodes = [("Resize", "x none s", "y", {"mode": mode})]
    return model(nodes, {"x": (TensorProto.FLOAT, sizes)}, none=np.float32([]), s=np.float32(scales))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("sizes", "scales"), [(["n", 2, 3, 4], (1, 1, 2, 1.5)), ([1, "n", "m", 4], (1, 1, 2, 3)), (["n", 2], (1, 2.5))]
)
def test_images_of_symbolic_size_are_resized_as_onnx_says(sizes, scales, mode):
    from onnx.reference import ReferenceEvaluator

    proto = image(sizes, mode, *scales)
    made = compile_graph(from_onnx(proto), "interpreter")
    for n, m in ((2, 5), (4, 3)):
        x = RNG.standard_normal([{"n": n, "m": m}.get(s, s) for s in sizes]).astype("float32")
        (want,) = ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_allclose(made(x), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("scales", "why"),
    [
        ((1, 1, 1.5, 1), "m elements become 1.5 times as many"),
        ((2, 1, 1, 1), "half_pixel along an axis of n elements that become n \\* 2"),
    ],
)
def test_images_whose_new_size_or_places_depend_on_values_are_refused(scales, why):
    with pytest.raises(ModelError, match=why):
        from_onnx(image(["n", 2, "m", 4], "linear", *scales))


@pytest.mark.parametrize(
    ("mode", "how"), [("linear", "half_pixel"), ("nearest", "asymmetric"), ("cubic", "align_corners")]
)
@pytest.mark.parametrize("sizes", [["n", 2, "h", "w"], [1, 2, 3, "w"], ["n", 2, 5, 4]])
def test_images_are_resized_to_the_size_of_another(sizes, mode, how):
    from onnx.reference import ReferenceEvaluator

    nodes = [
        ("Shape", "other", "s", {"start": 2}),
        ("Shape", "x", "t", {"end": 2}),
        ("Concat", "t s", "new", {"axis": 0}),
        ("Resize", "x none none new", "y", {"mode": mode, "coordinate_transformation_mode": how}),
    ]
    inputs = {"x": (TensorProto.FLOAT, sizes), "other": (TensorProto.FLOAT, ["n", 2, "k", "m"])}
    proto = model(nodes, inputs, none=np.float32([]))
    made = compile_graph(from_onnx(proto), "interpreter")
    for h, w, k, m in ((4, 3, 7, 3), (2, 5, 2, 2)):
        at = {"n": 1, "h": h, "w": w}
        x = RNG.standard_normal([at.get(s, s) for s in sizes]).astype("float32")
        other = np.zeros((1, 2, k, m), "float32")
        (want,) = ReferenceEvaluator(proto).run(None, {"x": x, "other": other})
        np.testing.assert_allclose(made(x, other), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool"])
def test_there_is_a_window_a_stride_of_images_of_any_size(operator, stride, mode):
    attributes = {"auto_pad": mode, "strides": [stride, stride], "kernel_shape": [3, 2]}
    weight = RNG.standard_normal((2, 2, 3, 2)).astype("float32")
    nodes = [(operator, "x weight" if operator == "Conv" else "x", "y", attributes)]
    proto = model(nodes, {"x": (TensorProto.FLOAT, [1, 2, "h", "w"])}, weight=weight)
    made = compile_graph(from_onnx(proto), "interpreter")
    for h, w in ((1, 2), (6, 5), (7, 9)):
        x = RNG.standard_normal((1, 2, h, w)).astype("float32")
        got, want = made(x), compile_graph(from_onnx(proto, shapes={"x": x.shape}), "interpreter")(x)
        assert got.shape == (1, 2, -(-h // stride), -(-w // stride))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "constants", "why"),
    [
        ([("Slice", "x s e a t", "y", {})], {"s": ints(5), "e": ints(0), "a": ints(0), "t": ints(-2)}, "steps of -2 along an axis of n"),
        ([("Reshape", "x s", "y", {})], {"s": ints(3, -1)}, "known only when the model runs"),
        ([("Expand", "x s", "y", {})], {"s": ints(3, 4)}, "do not broadcast"),
    ],
)  # fmt: skip
def test_what_depends_on_the_values_of_sizes_is_refused(nodes, constants, why):
    with pytest.raises(ModelError, match=why):
        from_onnx(model(nodes, {"x": (TensorProto.FLOAT, ["n", 4])}, **constants))


def test_a_slice_ends_where_an_open_size_does():
    made = compile_graph(
        from_onnx(model([("Slice", "x s e", "y", {})], {"x": (TensorProto.FLOAT, ["n", 4])}, s=ints(1), e=ints(3)))
    )
    for n in (2, 3, 5):
        x = RNG.random((n, 4), "float32")
        np.testing.assert_array_equal(made(x), x[1:3])


@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_networks_read_texts_of_any_length(kind, gates):
    weights = {n: RNG.standard_normal((2, gates * 3, k)).astype("float32") for n, k in (("w", 5), ("r", 3))}
    attributes = {"hidden_size": 3, "direction": "bidirectional"}
    for outputs in (["y"], ["", "y"]):  # all states, and the last ones
        node = helper.make_node(kind, ["x", "w", "r"], outputs, **attributes)
        made = model([], {"x": (TensorProto.FLOAT, ["length", "batch", 5])}, **weights)
        made.graph.node.append(node)
        compiled = compile_graph(from_onnx(made), "interpreter")
        for length in (1, 4):
            x = RNG.standard_normal((length, 2, 5)).astype("float32")
            fixed = compile_graph(from_onnx(made, shapes={"x": x.shape}), "interpreter")
            np.testing.assert_allclose(compiled(x), fixed(x), rtol=1e-5)


def test_a_specialised_model_keeps_its_symbols():
    inputs = {"x": (TensorProto.FLOAT, ["n", 4]), "axes": (TensorProto.INT64, [1])}
    made = compile_onnx(model([("ReduceSum", "x axes", "y", {"keepdims": 0})], inputs), "interpreter")
    assert str(made.inputs[0]) == "x: float32[n, 4]"
    for n in (2, 5):
        np.testing.assert_array_equal(made(np.ones((n, 4), "float32"), ints(0)), np.full(4, n, "float32"))
    assert made.specialised == ({"axes": [0]},)


def test_a_described_program_of_torch_keeps_its_symbols():
    steps = (
        Step("n", "aten.sym_size", {"x": Ref("x"), "dim": 0}),
        Step("m", "operator.mul", {"a": Ref("n"), "b": 2}),
        Step("v", "aten.view", {"x": Ref("x"), "size": [Ref("m"), 3]}, Result("float32", (None, 3))),
        Step("i", "aten.arange", {"end": Ref("n"), "dtype": DType("int64")}, Result("int64", (None,))),
        Step("t", "aten.slice", {"x": Ref("x"), "dim": 0, "start": 1, "end": 2**63 - 1}, Result("float32", (None, 6))),
        Step("s", "aten.mul", {"x": Ref("v"), "other": Ref("n")}, Result("float32", (None, 3))),
    )
    program = Program({"x": ("float32", ("s0", 6))}, steps, tuple(map(Ref, "vits")))
    made = compile_graph(imported(program), "interpreter")
    for n in (2, 4):
        x = RNG.standard_normal((n, 6)).astype("float32")
        wanted = x.reshape(-1, 3), np.arange(n), x[1:], x.reshape(-1, 3) * n
        for got, want in zip(made(x), wanted):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_limits_of_a_described_program_are_those_of_its_calls():
    step = Step("t", "aten.slice", {"x": Ref("x"), "dim": 0, "start": 0, "end": 3}, Result("float32", (3, 2)))
    program = Program({"x": ("float32", ("s0", 2))}, (step,), (Ref("t"),), limits={"s0": (3, 9)})
    graph = imported(program)
    assert str(parse(str(graph))) == str(graph) and "  where 3 <= s0 <= 9" in str(graph)
    made = compile_graph(graph, "interpreter")
    assert made(np.ones((9, 2), "float32")).shape == made.outputs[0].shape == (3, 2)
    with pytest.raises(
        RunError, match="s0 is more than 9, the most that the program was made for; the arrays of the call have s0 = 10"
    ):
        made(np.ones((10, 2), "float32"))
