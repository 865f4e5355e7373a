"""A small ONNX model as a file, for tests of what reads models from files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def small_model(batch: int | str | None = 1, last: str = "Softmax") -> Any:
    """A ``ModelProto``: a convolution, a mean, a product; ``data`` is float32[batch, 3, 16, 16], ``out`` [batch, 10]. Without a
    ``batch`` that size is open, and has no name."""
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    constants = {"w": rng.standard_normal((4, 3, 3, 3)), "d": rng.standard_normal((4, 10))}
    nodes = [
        helper.make_node("Conv", ["data", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["m", "d"], ["o"]),
        helper.make_node(last, ["o"], ["out"]),
    ]
    shapes = {"data": [batch, 3, 16, 16], "out": [batch, 10]}
    data, out = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items())
    tensors = [numpy_helper.from_array(a.astype("float32"), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", [data], [out], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
