"""Nodes of ONNX as graphs of operators: many operators with other attributes, types and versions, and wrong ones."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import tir
from tir.importers.onnx import from_onnx

from .stages import Texts

F = (2, 3, 8, 8)
# of each operator: the shapes of its inputs (a number, a list: a constant of integers), its attributes
NODES: dict[str, list[tuple[Sequence[Any], dict[str, Any]]]] = {
    **{op: [([F], {}), ([(4,)], {})] for op in (
        "Abs", "Acos", "Asinh", "Atan", "Ceil", "Cos", "Erf", "Exp", "Floor", "Identity", "IsNaN", "Log", "Neg", "Reciprocal", "Round",
        "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "Relu", "Size", "Shape", "Mish", "HardSwish",
    )},
    **{op: [([F, F], {}), ([F, (8,)], {}), ([(3, 1), (4,)], {})] for op in (
        "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "Equal", "Less", "GreaterOrEqual", "PRelu", "Mod",
    )},
    **{op: [([F], {}), ([F], {"alpha": 0.3})] for op in ("Elu", "LeakyRelu", "Celu", "ThresholdedRelu")},
    **{op: [([F], {}), ([F, [1]], {}), ([F, [-1, 2]], {"keepdims": 0})] for op in (
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
    )},
    **{op: [([F], {}), ([F], {"axis": 1}), ([F], {"axis": -2, "keepdims": 0}), ([F], {"axis": 9})] for op in ("ArgMax", "ArgMin")},
    **{op: [([F], {}), ([F], {"axis": 1}), ([F], {"axis": 0})] for op in ("Softmax", "LogSoftmax", "Hardmax")},
    "Selu": [([F], {}), ([F], {"alpha": 1.5, "gamma": 2.0})],
    "HardSigmoid": [([F], {}), ([F], {"alpha": 0.1, "beta": 0.6})],
    "Gelu": [([F], {}), ([F], {"approximate": "tanh"}), ([F], {"approximate": "other"})],
    "Clip": [([F], {}), ([F, 0.0], {}), ([F, -1.0, 6.0], {})],
    "Conv": [
        ([F, (4, 3, 3, 3)], {}), ([F, (4, 3, 3, 3), (4,)], {"pads": [1, 1, 1, 1]}), ([F, (6, 1, 3, 3)], {"group": 3}),
        ([F, (4, 3, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}), ([F, (4, 3, 3, 3)], {"dilations": [2, 2], "pads": [1, 0, 2, 1]}),
        ([F, (4, 3, 3, 3)], {"auto_pad": "SAME_LOWER"}), ([(1, 2, 9), (3, 2, 3)], {"auto_pad": "VALID"}), ([F, (4, 2, 3, 3)], {}),
    ],
    "ConvTranspose": [([F, (3, 4, 3, 3)], {}), ([F, (3, 4, 3, 3)], {"strides": [2, 2], "output_padding": [1, 1]}), ([F, (3, 2, 2, 2)], {"group": 3})],
    "MaxPool": [([F], {"kernel_shape": [2, 2]}), ([F], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}), ([F], {"kernel_shape": [3, 3], "pads": [1] * 4})],
    "AveragePool": [([F], {"kernel_shape": [2, 2]}), ([F], {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}), ([F], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"})],
    "GlobalAveragePool": [([F], {})],
    "GlobalMaxPool": [([F], {})],
    "LpNormalization": [([F], {}), ([F], {"p": 1, "axis": 1})],
    "LRN": [([F], {"size": 3}), ([F], {"size": 5, "alpha": 0.01, "beta": 0.5, "bias": 2.0})],
    "BatchNormalization": [([F, (3,), (3,), (3,), (3,)], {}), ([F, (3,), (3,), (3,), (3,)], {"epsilon": 0.01})],
    "InstanceNormalization": [([F, (3,), (3,)], {}), ([F, (3,), (3,)], {"epsilon": 0.01})],
    "LayerNormalization": [([F, (8,), (8,)], {}), ([F, (8, 8), (8, 8)], {"axis": -2}), ([F, (8,)], {"epsilon": 0.01})],
    "GroupNormalization": [([(2, 4, 5), (4,), (4,)], {"num_groups": 2})],
    "MatMul": [([(3, 4), (4, 5)], {}), ([(2, 3, 4), (4, 5)], {}), ([(4,), (4, 5)], {}), ([(3, 4), (5, 4)], {})],
    "Gemm": [([(3, 4), (4, 5)], {}), ([(3, 4), (4, 5), (5,)], {"alpha": 0.5, "beta": 2.0}), ([(4, 3), (5, 4), (3, 5)], {"transA": 1, "transB": 1})],
    "Einsum": [([(3, 4), (4, 5)], {"equation": "ij,jk->ik"})],
    "Transpose": [([F], {}), ([F], {"perm": [0, 2, 3, 1]}), ([F], {"perm": [0, 1]})],
    "Reshape": [([F, [2, -1]], {}), ([F, [0, 3, -1]], {}), ([F, [0, 3, 64]], {"allowzero": 0}), ([F, [7, -1]], {})],
    "Flatten": [([F], {}), ([F], {"axis": 2}), ([F], {"axis": 0}), ([F], {"axis": -1})],
    "Squeeze": [([(1, 3, 1)], {}), ([(1, 3, 1), [0]], {}), ([(1, 3, 1), [1]], {})],
    "Unsqueeze": [([(3, 4), [0]], {}), ([(3, 4), [0, -1]], {}), ([(3, 4), [7]], {})],
    "Concat": [([(2, 3), (2, 4)], {"axis": 1}), ([(2, 3), (1, 3)], {"axis": 0}), ([(2, 3), (2, 4)], {"axis": 0})],
    "Slice": [([F, [0, 1], [1, 3]], {}), ([F, [1], [-1], [2]], {}), ([F, [-1], [-9], [3], [-2]], {})],
    "Gather": [([F, [0, 1]], {}), ([F, [2, 0]], {"axis": 1}), ([F, [0]], {"axis": -1})],
    "Expand": [([(3, 1), [3, 4]], {}), ([(3, 1), [2, 3, 4]], {})],
    "Tile": [([(3, 2), [2, 1]], {})],
    "Pad": [([(3, 4), [0, 1, 2, 0]], {}), ([(3, 4), [0, 1, 2, 0], 1.5], {"mode": "constant"}), ([(3, 4), [1, 1, 1, 1]], {"mode": "reflect"}), ([(3, 4), [0, 1, 1, 0]], {"mode": "edge"})],
    "DepthToSpace": [([(1, 8, 2, 3)], {"blocksize": 2}), ([(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"})],
    "SpaceToDepth": [([(1, 2, 4, 6)], {"blocksize": 2})],
    "CumSum": [([(3, 4), 1], {}), ([(3, 4), 0], {"exclusive": 1, "reverse": 1})],
    "Trilu": [([(4, 4)], {}), ([(4, 4), 1], {"upper": 0})],
    "Split": [([(4, 6)], {"axis": 1, "num_outputs": 2})],
    "Cast": [([(3,)], {"to": 7}), ([(3,)], {"to": 10}), ([(3,)], {"to": 9})],
    "TopK": [([(3, 8), [2]], {}), ([(3, 8), [3]], {"axis": 0, "largest": 0})],
    "NoSuchOperator": [([F], {})],
    "Dropout": [([F], {})],
}  # fmt: skip


def model(operator: str, inputs: Sequence[Any], attributes: dict[str, Any], opset: int) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    given, tensors, names = [], [], []
    for number, item in enumerate(inputs):
        names.append(name := f"x{number}")
        if isinstance(item, tuple):
            given.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, item))
        else:
            value = np.asarray(item, "float32" if isinstance(item, float) else "int64")
            tensors.append(numpy_helper.from_array(value, name))
    outputs = ["y", "z"] if operator in ("TopK", "Split") else ["y"]
    node = helper.make_node(operator, names, outputs, **attributes)
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", given, made, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def imported(operator: str) -> Texts:
    for number, (inputs, attributes) in enumerate(NODES[operator]):
        for opset in (13, 20):
            try:
                text = str(from_onnx(model(operator, inputs, attributes, opset)))
            except tir.ModelError as error:
                text = str(error)
            yield f"{number}.{opset}", text


CASES = {name: partial(imported, name) for name in NODES} if importlib.util.find_spec("onnx") else {}
