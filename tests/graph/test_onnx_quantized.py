"""Operators on integers with scales, of onnxruntime: each against the same on floats, from and to integers."""

import numpy as np
import pytest

from tir.graph import compile_graph
from tir.importers.onnx import from_onnx

onnx = pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

RNG = np.random.default_rng(0)


def integers(*shape, kind="uint8"):
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(kind)


def model_of(nodes, constants, results):
    outputs = [helper.make_tensor_value_info(n, kind, None) for n, kind in results.items()]
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", [], outputs, held)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    )


def made_by(operator, inputs, constants, result=TensorProto.UINT8, **attributes):
    node = helper.make_node(operator, inputs, ["y"], domain="com.microsoft", **attributes)
    return compile_graph(from_onnx(model_of([node], constants, {"y": result})), "interpreter")()


CASES = {
    "QLinearAdd": (2, (3, 4), {}), "QLinearMul": (2, (3, 4), {}), "QLinearConcat": (2, (3, 4), {"axis": 1}),
    "QLinearSigmoid": (1, (3, 4), {}), "QLinearLeakyRelu": (1, (3, 4), {"alpha": 0.1}), "QLinearSoftmax": (1, (3, 4), {"axis": 1, "opset": 13}),
    "QLinearAveragePool": (1, (1, 2, 5, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 0, 0]}), "QLinearGlobalAveragePool": (1, (1, 2, 5, 5), {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("operator", CASES)
def test_an_operator_between_integers_is_that_of_their_floats(operator, kind):
    count, shape, attributes = CASES[operator]
    constants, names, nodes = {"ys": np.float32(0.031), "yz": np.asarray(5, kind)}, [], []
    for n in range(count):
        own = [f"x{n}", f"s{n}", f"z{n}"]
        values = integers(*shape, kind=kind), np.float32(0.02 + n / 100), np.asarray(7 + n, kind)
        constants.update(zip(own, values))
        names += own
        nodes.append(helper.make_node("DequantizeLinear", own, [f"f{n}"]))
    rest = {k: v for k, v in attributes.items() if k != "opset"}
    nodes.append(helper.make_node(operator.removeprefix("QLinear"), [f"f{n}" for n in range(count)], ["f"], **rest))
    nodes.append(helper.make_node("QuantizeLinear", ["f", "ys", "yz"], ["y"]))
    result = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    (expected,) = ReferenceEvaluator(model_of(nodes, constants, {"y": result})).run(None, {})
    order = ["ys", "yz", *names] if operator == "QLinearConcat" else [*names, "ys", "yz"]
    np.testing.assert_array_equal(made_by(operator, order, constants, result, **attributes), expected)


A, B, BIAS = integers(3, 20), integers(20, 7, kind="int8"), RNG.integers(-500, 500, 7).astype("int32")
SCALED = {"a": A, "as": np.float32(0.02), "az": np.uint8(7), "b": B, "bs": RNG.uniform(0.01, 0.02, 7).astype("float32"), "bz": np.int8(4)}  # fmt: skip


def product():
    return (A.astype("int64") - 7) @ (B.astype("int64") - 4)


@pytest.mark.parametrize("is_rounded", [False, True])
def test_a_gemm_of_integers(is_rounded):
    constants = {**SCALED, "b": np.ascontiguousarray(B.T), "c": BIAS, "ys": np.float32(0.3), "yz": np.uint8(30)}
    names = ["a", "as", "az", "b", "bs", "bz", "c", *["ys", "yz"] * is_rounded]
    kind = TensorProto.UINT8 if is_rounded else TensorProto.FLOAT
    made = made_by("QGemm", names, constants, kind, transB=1, alpha=0.5)
    expected = 0.5 * 0.02 * SCALED["bs"] * (product() + BIAS)
    if is_rounded:
        expected = np.clip(np.round(expected / 0.3) + 30, 0, 255)
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_products_of_integers_that_become_floats():
    bias = RNG.uniform(-1, 1, 7).astype("float32")
    made = made_by(
        "MatMulIntegerToFloat", ["a", "b", "as", "bs", "az", "bz", "c"], {**SCALED, "c": bias}, TensorProto.FLOAT
    )
    np.testing.assert_allclose(made, 0.02 * SCALED["bs"] * product() + bias, rtol=1e-5)


def test_products_of_floats_that_become_integers():
    x = RNG.uniform(-2, 3, (3, 20)).astype("float32")
    made = made_by("DynamicQuantizeMatMul", ["x", "b", "bs", "bz"], {**SCALED, "x": x}, TensorProto.FLOAT)
    step = (x.max() - x.min()) / 255
    zero = np.round(-x.min() / step)
    rounded = np.clip(np.round(x / step) + zero, 0, 255) - zero
    np.testing.assert_allclose(made, step * SCALED["bs"] * (rounded @ (B.astype("int64") - 4)), rtol=1e-4, atol=1e-4)


def test_a_step_of_zeros_alone_is_one():
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    results = {"y": TensorProto.UINT8, "s": TensorProto.FLOAT, "z": TensorProto.UINT8}
    made = compile_graph(from_onnx(model_of([node], {"x": np.zeros(3, "float32")}, results)), "interpreter")()
    assert [a.tolist() for a in made] == [[0, 0, 0], 1.0, 0]
