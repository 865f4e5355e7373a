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


# further ones, of which an input may be "int64 2,3" (another type) or None (left out), and ``outputs`` their number
FURTHER: dict[str, list[tuple[Sequence[Any], dict[str, Any]]]] = {
    **{op: [([F], {}), (["int32 2,3"], {})] for op in ("Acosh", "Asin", "Atanh", "Cosh", "Sinh", "BitwiseNot", "Sqrt", "Elu", "Softsign")},
    **{op: [(["bool 3", "bool 3"], {}), (["int32 3", "int32 1"], {}), ([F, F], {})] for op in ("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Greater", "LessOrEqual")},
    **{op: [([F, F, F], {}), ([F], {}), (["int32 3", "int32 3"], {})] for op in ("Max", "Min", "Mean", "Sum")},
    "Not": [(["bool 3"], {})], "Mod": [([F, F], {"fmod": 1}), (["int32 3", "int32 3"], {}), (["int32 3", "int32 3"], {"fmod": 1})],
    "Div": [(["int32 3", "int32 3"], {})], "Shrink": [([F], {}), ([F], {"lambd": 1.0, "bias": 0.25})],
    "Pow": [([F, 2.0], {}), ([F, 3.0], {}), ([F, [2]], {}), (["int32 3", 2.0], {}), (["int32 3", F], {}), ([F, "int32 8"], {}), ([(2,), [2.0, 2.0]], {})],
    "BitShift": [(["uint8 3", "uint8 3"], {"direction": "LEFT"}), (["uint8 3", "uint8 3"], {"direction": "RIGHT"}), (["int32 3", "int32 3"], {"direction": "RIGHT"})],
    "Dropout": [([F], {"outputs": 2}), ([F, 0.5], {}), ([F, 0.5, "bool"], {}), ([F, 0.5, False], {"outputs": 2}), ([F, 0.5, True], {})],
    "Identity": [([F], {"outputs": 2}), ([None], {})],
    "PRelu": [(["int32 3", "int32 3"], {})], "Where": [(["bool 3", (3,), (3,)], {}), (["bool 3,1", (4,), (1,)], {})],
    "IsInf": [([F], {}), ([F], {"detect_negative": 0}), ([F], {"detect_positive": 0}), ([F], {"detect_positive": 0, "detect_negative": 0})],
    "Clip": [([F], {"min": 0.0, "opsets": (6, 13)}), ([F], {"min": 0.0, "max": 6.0, "opsets": (6,)}), ([F, None, 6.0], {}), ([F, [1.0], 6.0], {}), ([F, (1,), ()], {})],
    "Cast": [([(3,)], {"to": n}) for n in (0, 1, 2, 6, 8, 11, 14, 16, 17, 18, 19, 20, 24)] + [(["int32 3"], {"to": 17}), ([(3,)], {"to": 17, "saturate": 0}), ([(3,)], {"to": 19, "saturate": 0}), (["bool 3"], {"to": 1})],
    "CastLike": [([(3,), "int32 2"], {}), ([(3,), "float16 2"], {})],
    "Swish": [([F], {"opsets": (23, 24)}), ([F], {"alpha": 0.5, "opsets": (24,)})],
    "QuantizeLinear": [([F, 0.5], {}), ([F, (3,), "uint8 3"], {}), ([F, (8,), "int8 8"], {"axis": 3}), ([F, 0.5, "int8"], {}), ([F, (2, 3, 2, 8)], {"axis": 2, "block_size": 4, "opsets": (21,)}), ([F, 0.5], {"output_dtype": 3, "opsets": (21,)}), ([(), 0.5], {})],
    "DequantizeLinear": [(["uint8 2,3", 0.5], {}), (["uint8 2,3", (3,), "uint8 3"], {}), (["int8 2,3", (2,), "int8 2"], {"axis": 0}), (["int32 2", 0.5], {}), (["int8", 0.5], {})],
    "Constant": [([], {"value_float": 1.5}), ([], {"value_floats": [1.5, 2.5]}), ([], {"value_int": 3}), ([], {"value_ints": [3, 4]}), ([], {"value_string": b"x"})],
    "Shape": [([F], {"start": 1, "opsets": (15, 20)}), ([F], {"start": -3, "end": -1, "opsets": (15,)}), ([F], {"end": 2, "opsets": (20,)})],
    "Reshape": [([F, [-1, -1]], {}), ([F, [5, 5]], {}), ([F, [2, 3, 8, 8, 0]], {}), ([F, [0, 3, 64]], {"allowzero": 1, "opsets": (14,)}), ([(0, 3), [0, 3]], {"allowzero": 1, "opsets": (14,)}), ([(0, 3), [0, -1]], {}), ([F, (4,)], {}), ([F, [384]], {})],
    "Squeeze": [([(1, 3, 1)], {"axes": [0], "opsets": (11, 13)}), ([(1, 3, 1), [-1]], {}), ([(1, 3, 1), [0, 2]], {}), ([(1, 3, 1)], {"axes": [1], "opsets": (11,)}), ([(1, 3, 1), [5]], {}), ([(2, 3)], {})],
    "Unsqueeze": [([(3, 4)], {"axes": [1], "opsets": (11, 12, 13)}), ([(3, 4), [0, 0]], {}), ([(3, 4), [1, -3]], {}), ([(3,), [0, 1, 2]], {})],
    "Transpose": [([(3,)], {}), ([()], {}), ([(3,)], {"perm": [0]}), ([(2, 3)], {"perm": [1, 0]})],
    "Flatten": [([F], {"axis": 4}), ([F], {"axis": -4}), ([(3,)], {}), ([F], {"axis": 1, "opsets": (9,)})],
    "Concat": [([(2, 3)], {"axis": 0}), ([(2, 3), (2, 3), (2, 3)], {"axis": -1}), ([(2, 3), (2, 3)], {}), ([(2, 3), (2, 3)], {"axis": 2}), ([(0, 3), (2, 3)], {"axis": 0}), ([[1, 2], [3]], {"axis": 0})],
    "Split": [([(4, 6)], {"axis": 1, "split": [2, 4], "opsets": (11,), "outputs": 2}), ([(4, 6), [1, 3]], {"outputs": 2}), ([(5, 6)], {"num_outputs": 2, "outputs": 2, "opsets": (18, 20)}), ([(4, 6)], {"outputs": 1}), ([(4, 6)], {"outputs": 4, "axis": -2}), ([(4, 6), [4]], {"outputs": 1}), ([(7, 2)], {"num_outputs": 3, "outputs": 3, "opsets": (18,)})],
    "Slice": [([F], {"starts": [0, 1], "ends": [1, 3], "opsets": (9,)}), ([F], {"starts": [1], "ends": [3], "axes": [2], "opsets": (1, 9)}), ([F, [0], [9], [-1], [3]], {}), ([F, [7], [0], [3], [-1]], {}), ([F, [7], [-99], [3], [-3]], {}), ([F, [0, 0], [1, 1], [1, 3], [1, 1]], {}), ([F, (1,), [3]], {}), ([F, [3], [3], [2]], {}), ([F, [0], [8], [9]], {}), ([[1, 2, 3], [1], [3]], {})],
    "Gather": [([F, 1], {}), ([F, -1], {"axis": 2}), ([F, "int64 2,2"], {"axis": 1}), ([F, [-1, 0]], {"axis": 1}), ([F, "int32"], {}), ([[4, 5, 6], 1], {}), ([F, [0]], {"axis": 9})],
    "GatherElements": [([(3, 4), "int64 2,4"], {}), ([(3, 4), "int64 3,2"], {"axis": 1}), ([(2,), [-1, 0]], {})],
    "GatherND": [([(3, 4), "int64 2,2"], {}), ([(3, 4), "int64 3,1"], {"batch_dims": 1}), ([(3,), [-1]], {}), ([(3,), [1]], {})],
    "Expand": [([(3, 4), [3, 4]], {}), ([(3, 4), [4]], {}), ([(3, 4), [2, 1, 1]], {}), ([(3, 4), (2,)], {})],
    "Tile": [([(3, 2), [1, 1]], {}), ([(3, 2), [2, 2]], {}), ([(3,), (1,)], {})],
    "Pad": [([(3, 4)], {"pads": [0, 1, 2, 0], "opsets": (2, 10)}), ([(3, 4)], {"pads": [0, 1, 2, 0], "value": 1.5, "mode": "constant", "opsets": (2,)}), ([(3, 4), [1, 2], None, [1]], {"opsets": (18,)}), ([(3, 4), [1, 2], 0.5, [-2]], {"opsets": (18,)}), ([(3, 4), [0, -1, 0, -1]], {}), ([(3, 4), [1, 1, 1, 1]], {"mode": "wrap", "opsets": (19,)}), (["int32 3", [1, 1], 7], {}), ([(3, 4), [9, 0, 0, 0]], {"mode": "reflect"}), ([(3, 4), [0, 0, 0, 0]], {})],
    "ConstantOfShape": [([[2, 3]], {}), ([[]], {}), ([[0, 2]], {}), ([(2,)], {})],
    "Range": [([0, 5, 1], {}), ([5, 0, -2], {}), ([0.0, 1.0, 0.25], {}), ([0, 5, 0], {}), ([5, 0, 1], {}), ([(), 5, 1], {})],
    "EyeLike": [([(3, 4)], {}), ([(3, 4)], {"k": 1}), ([(3, 4)], {"k": -1, "dtype": 7})],
    "OneHot": [(["int64 3", 4, [0.0, 1.0]], {}), (["int64 3", [4], (2,)], {"axis": 0}), ([(3,), 4, (2,)], {"axis": 1}), (["int32 2,3", 4, (2,)], {"axis": -2}), (["int64 3", "int64", (2,)], {})],
    "Trilu": [([(4, 5), -1], {"upper": 1}), ([(2, 4, 5)], {"upper": 0})],
    "DepthToSpace": [([(1, 8, 2, 3)], {"blocksize": 2, "mode": "DCR"}), ([(1, 6, 2, 3)], {"blocksize": 2})],
    "SpaceToDepth": [([(1, 2, 4, 6)], {"blocksize": 2, "mode": "CRD"}), ([(1, 2, 6, 9)], {"blocksize": 3, "mode": "CRD"})],
    **{op: [([(3, 4), "int64 2,4", (2, 4)], {"opsets": v}), ([(3, 4), "int64 3,2", (3, 2)], {"axis": 1, "opsets": v}), ([(3, 4), "int64 3,2", (3, 2)], {"axis": -1, "reduction": "add", "opsets": v[-1:]})]
       for op, v in (("Scatter", (9, 10)), ("ScatterElements", (11, 18)))},
    "ScatterND": [([(3, 4), "int64 2,1", (2, 4)], {}), ([(3, 4), "int64 2,2", (2,)], {"reduction": "mul", "opsets": (16,)}), ([(3,), [[0], [1]], (2,)], {}), ([(3,), [[-1], [1]], (2,)], {}), ([(3, 4), "int64 2,1", (2, 4)], {"reduction": "min", "opsets": (18,)})],
    "ReverseSequence": [([(4, 3), "int64 3"], {}), ([(3, 4), "int64 3"], {"time_axis": 1, "batch_axis": 0})],
    "NonZero": [([[1, 0, 2]], {}), ([3], {}), ([0], {}), ([(3,)], {})],
    "BitCast": [([(3,)], {"to": 6, "opsets": (26,)})],
    "Gemm": [([(3, 4), (4, 5)], {"alpha": 2.0}), ([(4, 3), (4, 5)], {"transA": 1}), ([(3, 4), (5, 4), (5,)], {"transB": 1}), (["int32 3,4", "int32 4,5", "int32 5"], {"alpha": 2.0, "beta": 3.0})],
    "MatMulInteger": [(["uint8 3,4", "int8 4,5"], {}), (["uint8 3,4", "int8 4,5", "uint8", "int8"], {}), (["uint8 3,4", "int8 4,5", "uint8 3", "int8 5"], {}), (["uint8 3,4", "int8 4,5", "uint8 1", "int8 1"], {})],
    "QLinearMatMul": [(["uint8 3,4", (), "uint8", "uint8 4,5", (), "uint8", (), "uint8"], {}), (["uint8 3,4", (3,), "uint8 3", "int8 4,5", (5,), "int8 5", (), "int8"], {}), (["uint8 3,4", (1,), "uint8 1", "int8 4,5", (1,), "int8 1", (), "int8"], {})],
    "ConvInteger": [(["uint8 1,2,5,5", "int8 3,2,2,2"], {}), (["uint8 1,2,5,5", "int8 3,2,2,2", "uint8", "int8"], {"pads": [1, 1, 1, 1]}), (["uint8 1,2,5,5", "int8 3,2,2,2", "uint8", "int8 3"], {"strides": [2, 2]}), (["uint8 1,2,5", "int8 2,1,2"], {"group": 2, "dilations": [2]})],
    "QLinearConv": [(["uint8 1,2,5,5", (), "uint8", "int8 3,2,2,2", (), "int8", (), "uint8"], {}), (["uint8 1,2,5,5", (), "uint8", "int8 3,2,2,2", (3,), "int8 3", (), "uint8", "int32 3"], {}), (["uint8 1,2,5,5", (1,), "uint8", "int8 3,2,2,2", (1,), "int8", (), "uint8"], {})],
    "Einsum": [([(2, 3, 4), (2, 4, 5)], {"equation": "b i j, b j k -> b i k"}), ([(3, 4)], {"equation": "ij->ji"}), ([(3, 4)], {"equation": "ii"})],
    "Conv": [([(2, 3), (4, 3)], {}), ([(1, 2, 4, 4, 4), (3, 2, 2, 2, 2), (3,)], {}), ([(1, 1, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1)], {}), ([(1, 2, 9), (3, 2, 3)], {"strides": [2], "auto_pad": "SAME_LOWER"})],
    "ConvTranspose": [([F, (3, 4, 3, 3), (4,)], {"pads": [1, 0, 1, 0]}), ([F, (3, 4, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}), ([F, (3, 4, 3, 3)], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}), ([F, (3, 4, 3, 3)], {"output_shape": [9, 10]}), ([F, (3, 4, 3, 3)], {"output_shape": [2, 4, 9, 9], "auto_pad": "SAME_UPPER"}), ([F, (3, 4, 3, 3)], {"output_shape": [99, 99]}), ([F, (3, 4, 3, 3)], {"output_shape": [10, 11]}), ([F, (3, 4, 2, 2)], {"dilations": [2, 3]}), ([(1, 2, 5), (2, 3, 2)], {}), ([F, (3, 4, 3, 3)], {"auto_pad": "VALID"})],
    "MaxPool": [([F], {"kernel_shape": [2, 2], "outputs": 2}), ([(1, 2, 9)], {"kernel_shape": [3], "auto_pad": "SAME_LOWER", "strides": [2]}), ([F], {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 3]}), ([F], {"kernel_shape": [3, 3], "auto_pad": "VALID"}), ([F], {"kernel_shape": [2, 2], "dilations": [2, 3]}), ([(1, 1, 7)], {"kernel_shape": [3], "strides": [3], "ceil_mode": 1}), ([(1, 1, 7)], {"kernel_shape": [2], "strides": [2], "pads": [0, 1], "ceil_mode": 1}), ([F], {})],
    "AveragePool": [([F], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}), ([(1, 1, 4, 4, 4)], {"kernel_shape": [2, 2, 2]}), ([F], {"kernel_shape": [2, 2], "dilations": [2, 2], "opsets": (19,)})],
    "LpPool": [([F], {"kernel_shape": [2, 2]}), ([F], {"kernel_shape": [2, 2], "p": 1}), ([(1, 2, 9)], {"kernel_shape": [3], "pads": [1, 1]})],
    "GlobalAveragePool": [([(1, 2, 9)], {}), ([(1, 2, 3, 4, 5)], {})],
    "Resize": [([F, None, [1.0, 1.0, 2.0, 2.0]], {}), ([F, None, None, [2, 3, 4, 16]], {}), ([F, None, None, [2, 3, 4, 4]], {"mode": "linear"}), ([F, None, None, [2, 3, 4, 4]], {"mode": "cubic"}), ([F, None, None, [2, 3, 4, 4]], {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}),
               *(([F, None, None, [2, 3, 5, 6]], {"nearest_mode": m}) for m in ("floor", "ceil", "round_prefer_ceil", "round_prefer_floor")), *(([F, None, None, [2, 3, 5, 6]], {"coordinate_transformation_mode": m}) for m in ("asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize", "half_pixel_symmetric")),
               ([F, None, None, [1, 3, 4, 4]], {}), ([F, None, [1.0, 1.0, 1.3, 2.0]], {}), ([F, None, [1.0, 2.0, 1.0, 1.0]], {}), ([F], {}), ([F, None, None, [2, 3, 4, 4]], {"antialias": 1, "opsets": (18,)}), ([F, None, None, [4, 4]], {"axes": [2, 3], "opsets": (18,)}), ([F, None, None, [2, 3, 4, 4]], {"keep_aspect_ratio_policy": "not_larger", "opsets": (18,)}), ([(1, 2, 9), None, [1.0, 1.0, 3.0]], {}), ([(2, 3), None, [1.0, 1.0]], {})],
    "Upsample": [([F, [1.0, 1.0, 2.0, 3.0]], {"opsets": (9,)}), ([F, [1.0, 1.0, 2.0, 2.0]], {"mode": "linear", "opsets": (9,)})],
    "DeformConv": [([(1, 2, 5, 5), (3, 2, 2, 2), (1, 8, 4, 4)], {"opsets": (19,)}), ([(1, 2, 5, 5), (3, 2, 2, 2), (1, 8, 4, 4), (3,), (1, 4, 4, 4)], {"opsets": (19,)}), ([(1, 2, 5, 5), (3, 2, 2, 2), (1, 8, 6, 6)], {"pads": [1, 1, 1, 1], "opsets": (19,)})],
    "GridSample": [([(1, 2, 4, 4), (1, 3, 3, 2)], {}), *(([(1, 2, 4, 4), (1, 3, 3, 2)], {"mode": m, "opsets": (16, 20)}) for m in ("bilinear", "linear", "nearest", "bicubic", "cubic")), ([(1, 2, 4, 4, 4), (1, 3, 3, 3, 3)], {"align_corners": 1}), ([(1, 2, 4, 4), (1, 3, 3, 2)], {"padding_mode": "border"}), ([(1, 2, 4), (1, 3, 1)], {})],
    "BatchNormalization": [([F, (3,), (3,), (3,), (3,)], {"training_mode": 1, "opsets": (14,)}), ([F, (3,), (3,), (3,), (3,)], {"outputs": 2, "opsets": (14,)})],
    "LayerNormalization": [([F, (8,), (8,)], {"outputs": 3, "opsets": (17,)}), ([F, (8,)], {"opsets": (17,)}), ([F, (3, 1, 8), (8,)], {"axis": 1, "opsets": (17,)}), ([F, "float16 8"], {"opsets": (17,)}), ([F, (8,)], {"outputs": 2, "opsets": (17,)})],
    "RMSNormalization": [([F, (8,)], {"opsets": (23,)}), ([F, (8, 8)], {"axis": -2, "epsilon": 0.01, "opsets": (23,)})],
    "GroupNormalization": [([(2, 4, 5), (4,), (4,)], {"num_groups": 2, "epsilon": 0.01, "opsets": (21,)})],
    "LpNormalization": [([F], {"p": 2, "axis": 0}), ([F], {"axis": 4})],
    "MeanVarianceNormalization": [([F], {}), ([F], {"axes": [1]})],
    **{op: [([F], {"axes": [1], "opsets": (11, 13, 18)}), ([F, []], {"noop_with_empty_axes": 1, "opsets": (18,)}), ([F, []], {"opsets": (18,)}), (["int32 2,3"], {}), (["bool 2,3"], {}), ([(0, 3), [0]], {"opsets": (18,)}), ([(2, 0), [1]], {"opsets": (18,)}), ([F], {"axes": [-1], "keepdims": 0, "opsets": (11,)}), ([()], {}), ([F, [4]], {"opsets": (18,)})]
       for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare")},
    **{op: [([F], {"select_last_index": 1}), ([(3,)], {"keepdims": 0})] for op in ("ArgMax", "ArgMin")},
    "CumSum": [([(3, 4), -1], {}), ([(3, 4), 1], {"reverse": 1}), ([(3, 4), 0], {"exclusive": 1}), ([(3, 4), ()], {})],
    "CumProd": [([(3, 4), 1], {"opsets": (26,)})],
    "TopK": [([(3, 8), [2]], {"axis": -2}), ([(3, 8), [2]], {"largest": 1, "sorted": 0}), ([(3, 8), (1,)], {})],
    **{op: [([F], {"axis": -1, "opsets": (11, 13)}), ([F], {"opsets": (1, 11, 13)}), ([(3,)], {"axis": 0, "opsets": (11,)})] for op in ("Softmax", "LogSoftmax")},
    **{op: [
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"hidden_size": 4, "outputs": 2}),
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4), (1, 8 * g)], {"hidden_size": 4, "direction": "reverse", "outputs": 2}),
        ([(4, 2, 3), (2, 4 * g, 3), (2, 4 * g, 4), (2, 8 * g), None, (2, 2, 4)], {"hidden_size": 4, "direction": "bidirectional", "outputs": 2}),
        ([(2, 4, 3), (1, 4 * g, 3), (1, 4 * g, 4), None, [4, 4], (2, 1, 4)], {"hidden_size": 4, "layout": 1, "outputs": 2, "opsets": (14,)}),
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4), None, [4, 3]], {"hidden_size": 4}), ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"direction": "up"}),
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"clip": 1.0}), ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"activations": ["Relu"] * 3}),
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"activations": ["Sigmoid", "Tanh", "Relu"][: {1: 1, 3: 2, 4: 3}[g]]}), ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"activations": ["Elu"] * {1: 1, 3: 2, 4: 3}[g]}),
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"activation_alpha": [0.5]}), ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"activation_beta": [0.5]}),
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4)], {"linear_before_reset": 1, "input_forget": 1}),
        ([(4, 2, 3), (1, 4 * g, 3), (1, 4 * g, 4), None, None, None, None, (1, 12)], {}),
    ] for op, g in (("RNN", 1), ("GRU", 3), ("LSTM", 4))},
}  # fmt: skip


def model(operator: str, inputs: Sequence[Any], attributes: dict[str, Any], opset: int) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    given, tensors, names = [], [], []
    for number, item in enumerate(inputs):
        names.append(name := "" if item is None else f"x{number}")
        if isinstance(item, str):
            kind, _, sizes = item.partition(" ")
            shape = tuple(map(int, sizes.split(","))) if sizes else ()
            given.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape))
        elif isinstance(item, tuple):
            given.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, item))
        elif item is not None:
            value = np.asarray(item)
            value = (
                value
                if value.dtype == bool
                else value.astype("float32" if value.size and value.dtype.kind == "f" else "int64")
            )
            tensors.append(numpy_helper.from_array(value, name))
    outputs = [*"yzwv"][: attributes.get("outputs", 2 if operator in ("TopK", "Split") else 1)]
    rest = {k: v for k, v in attributes.items() if k not in ("outputs", "opsets")}
    node = helper.make_node(operator, names, outputs, **rest)
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", given, made, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def imported(operator: str, cases: Sequence[tuple[Sequence[Any], dict[str, Any]]]) -> Texts:
    for number, (inputs, attributes) in enumerate(cases):
        for opset in attributes.get("opsets", (13, 20)):
            try:
                text = str(from_onnx(model(operator, inputs, attributes, opset)))
            except tir.ModelError as error:
                text = str(error)
            yield f"{number}.{opset}", text


CASES = {
    **{name: partial(imported, name, cases) for name, cases in NODES.items()},
    **{f"{name}-further": partial(imported, name, cases) for name, cases in FURTHER.items()},
} if importlib.util.find_spec("onnx") else {}  # fmt: skip
