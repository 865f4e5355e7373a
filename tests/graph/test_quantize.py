"""Weights as small integers: what they take, how near results are, and models that come with them."""

import numpy as np
import pytest

from tir.graph import Builder, ModelError, compile_graph, optimized, quantize
from tir.graph.graph_passes import evaluate

RNG = np.random.default_rng(0)


def layers(rows: int):
    b = Builder()
    y = b.input("x", (rows, 128))
    for name in "uv":
        drawn = np.random.default_rng(ord(name)).standard_normal((128, 1024 if name == "u" else 128)) / 16
        w = b.constant(drawn.astype("float32"), name)
        y = b.call("tanh", b.call("matmul", b.call("strided_slice", y, (0,), (128,), axes=(1,)), w))
    return b.graph({"y": y})


def by_references(graph, *given):
    values = {**dict(zip(graph.inputs, given)), **graph.constants}
    for node in graph.nodes:
        values.update(zip(node.outputs, evaluate(node, values)))
    return [values[v] for v in graph.outputs.values()]


@pytest.mark.parametrize(("dtype", "error"), [("int8", 0.01), ("int4", 0.2)])
@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_products_of_a_row_read_integers(dtype, error, target):
    graph = layers(1)
    small = quantize(graph, dtype)
    x = RNG.standard_normal((1, 128)).astype("float32")
    want, near = by_references(graph, x)[0], by_references(small, x)[0]
    assert 0 < np.abs(want - near).max() < error
    model = compile_graph(small, target)
    np.testing.assert_allclose(model(x), near, rtol=1e-4, atol=1e-5)
    floats, scales, of_both = 4 * 128 * 1152, 4 * 4 * 1152, 128 * 1152 // (2 if dtype == "int4" else 1)
    assert target != "llvm" or model.weights_bytes < of_both + scales + (floats - 4 * 128 * 1024) + 128, (
        "the larger weight is in integers"
    )
    assert len(model.kernels) == len(compile_graph(graph, "interpreter").kernels)


@pytest.mark.parametrize("dtype", ["int8", "int4"])
@pytest.mark.parametrize(("columns", "shape"), [(128, (2, 64, 64)), (48, (3, 64, 16)), (20, (1, 64, 20))])
def test_integers_are_in_panels_of_columns(columns, shape, dtype):
    b = Builder()
    w = b.constant(RNG.standard_normal((64, columns)).astype("float32"), "w")
    small = quantize(b.graph(b.call("matmul", b.input("x", (1, 64)), w)), dtype, group=16)
    panels, rows, width = shape
    kept = {str(v.dtype): v.shape for v in small.constants}
    assert kept["float32"] == (panels, 4, 1, width)
    assert kept["int8" if dtype == "int8" else "uint8"] == (panels, rows // (1 if dtype == "int8" else 2), width)
    x = RNG.standard_normal((1, 64)).astype("float32")
    np.testing.assert_allclose(compile_graph(small, "interpreter")(x), *by_references(small, x), rtol=1e-4, atol=1e-4)


def test_products_of_many_rows_have_floats_that_are_made_once():
    made = optimized(quantize(layers(16), "int8"))
    assert sorted({n.operator for n in made.nodes}) == ["matmul", "strided_slice", "tanh"]
    assert all(str(v.dtype) == "float32" for v in made.constants)


def test_rows_that_are_no_whole_groups_and_other_operands_stay():
    b = Builder()
    x, w = b.input("x", (1, 40)), b.input("w", (64, 8))
    y = b.call("matmul", x, b.constant(np.ones((40, 64), "float32"), "u"))
    z = b.call("matmul", x, b.constant(np.ones((8, 40), "float32"), "v"), transp_b=True)
    graph = b.graph({"y": b.call("matmul", y, w), "z": z})
    assert str(quantize(graph, "int8")) == str(graph)


@pytest.mark.parametrize("how", ["transp_b", "transpose", "astype"])
def test_weights_that_are_turned_or_converted_are_quantized(how):
    b = Builder()
    x, w = b.input("x", ("n", 64)), RNG.standard_normal((64, 2048)).astype("float16")
    if how == "astype":
        y = b.call("matmul", x, b.call("astype", b.constant(w, "w"), "float32"))
    elif how == "transp_b":
        y = b.call("matmul", x, b.constant(w.T.astype("float32"), "w"), transp_b=True)
    else:
        y = b.call("matmul", x, b.call("transpose", b.constant(w.T.astype("float32"), "w")))
    plain = Builder()
    direct = plain.call("matmul", plain.input("x", ("n", 64)), plain.constant(w.astype("float32"), "w"))
    given = RNG.standard_normal((1, 64)).astype("float32")
    made, want = (compile_graph(quantize(g, "int8"), cases=[{"n": 1}]) for g in (b.graph(y), plain.graph(direct)))
    assert made.weights_bytes == want.weights_bytes == 64 * 2048 * (4 + 1 + 4 / 32)
    np.testing.assert_array_equal(made(given), want(given))


def test_integers_that_come_with_a_graph_are_not_quantized_again():
    graph = quantize(layers(1), "int4")
    assert str(quantize(graph, "int4")) == str(graph)


def test_a_weight_of_several_products_is_quantized_once_and_zeros_stay_zeros():
    b = Builder()
    x, w = b.input("x", (1, 64)), b.constant(np.zeros((64, 2048), "float32"), "w")
    graph = quantize(b.graph({"a": b.call("matmul", x, w), "b": b.call("matmul", b.call("exp", x), w)}), "int4")
    assert sum(str(v.dtype) == "uint8" and v.elements > 2 for v in graph.constants) == 1
    assert all((a == 0).all() for a in compile_graph(graph)(np.ones((1, 64), "float32")))


def test_what_is_no_way_to_quantize_is_refused():
    graph = layers(1)
    with pytest.raises(ModelError, match="to int8 or int4, not to 'int44'; did you mean int4"):
        quantize(graph, "int44")
    for group in (0, 3):
        with pytest.raises(ModelError, match="an even number of rows"):
            quantize(graph, "int8", group)
    for other in (2.0, "32"):
        with pytest.raises(TypeError, match="`group` of quantize is an integer"):
            quantize(graph, "int8", other)  # type: ignore[arg-type]


def packed(integers, bits):
    """Integers of ``bits`` along the last axis in bytes, the first in the lowest bits."""
    each = 8 // bits
    wide = np.pad(integers, ((0, 0), (0, -integers.shape[1] % each)))
    return sum(wide[:, n::each] << (bits * n) for n in range(each)).astype("uint8")


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "integers", "floats"])
@pytest.mark.parametrize("k", [96, 81], ids=["whole", "a part of the last block"])
def test_products_of_integer_weights_are_imported(bits, zeros, k):
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    from onnx import TensorProto, helper, numpy_helper

    from tir.importers.onnx import from_onnx

    n, group, groups = 5, 32, 3
    rng = np.random.default_rng(bits)
    integers = rng.integers(0, 1 << bits, (n, groups * group)).astype("uint8")
    scales = rng.uniform(0.5, 1, (n, groups)).astype("float32")
    zero = rng.integers(0, 1 << bits, (n, groups)).astype("uint8")
    tensors = {"w": packed(integers, bits).reshape(n, groups, -1), "s": scales.reshape(-1)}
    if zeros != "none":
        tensors["z"] = packed(zero, bits).reshape(-1) if zeros == "integers" else zero.astype("float32").reshape(-1)
    node = helper.make_node(
        "MatMulNBits", ["x", *tensors], ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=group
    )
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2, k]), ("y", [2, n]))
    )
    held = [numpy_helper.from_array(a, name) for name, a in tensors.items()]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    graph = from_onnx(helper.make_model(helper.make_graph([node], "g", [x], [y], held), opset_imports=opsets))
    given = rng.standard_normal((2, k)).astype("float32")
    less = zero.astype("float64") if zeros != "none" else np.full(zero.shape, float(1 << (bits - 1)))
    floats = ((integers - np.repeat(less, group, 1)) * np.repeat(scales, group, 1))[:, :k]
    for target in ("llvm", "interpreter"):
        np.testing.assert_allclose(compile_graph(graph, target)(given), given @ floats.T, rtol=1e-4, atol=1e-3)
