"""Rows of ATen operators: each against torch itself."""

from __future__ import annotations

import numpy as np
import pytest

from tir.graph import compile_graph
from tir.importers import torch_program
from tir.importers.torch import imported
from tir.importers.torch_program import Program, Ref, Step, array_of
from tir.importers.torch_table import promoted

torch = pytest.importorskip("torch", reason="torch is not installed: programs of another library")

F16, BF16, F64, I8, U8, I32, I64, B = (
    torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool,
)  # fmt: skip


def f(*shape, dtype=torch.float32, low=-2.0, high=2.0):
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)


def i(*shape, low=-4, high=5, dtype=I64):
    generator = torch.Generator().manual_seed(sum(shape) + len(shape) + 1)
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def b(*shape):
    return i(*shape) > 0


def ids(*values):
    return torch.tensor(values)


# operator and overload, arguments, named arguments
CASES = []


def case(name, *args, **kwargs):
    CASES.append((name, args, kwargs))


# an operator, and the limits of its argument
UNARY = """
abs acosh.default:1,3 asin.default:-1,1 acos.default:-1,1 asinh atan atanh.default:-0.9,0.9 cos cosh erf erfc exp exp2 expm1
hardswish log.default:0.1,4 log10.default:0.1,4 log1p.default:0,4 log2.default:0.1,4 log_sigmoid mish neg reciprocal relu rsqrt.default:0.1,4 sigmoid sign silu sin sinh
sqrt.default:0,4 square tan tanh ceil floor trunc round isnan isinf isfinite relu6 hardsigmoid hardtanh elu celu selu leaky_relu softplus gelu hardshrink softshrink logical_not alias clone detach
"""
for name in UNARY.split():
    operator, _, limits = name.partition(":")
    low, high = map(float, limits.split(",")) if limits else (-2.0, 2.0)
    case(operator, f(3, 5, low=low, high=high))
for name in [
    "abs",
    "neg",
    "relu",
    "sign",
    "square",
    "ceil",
    "floor",
    "round",
    "exp",
    "sqrt",
    "sin",
    "sigmoid",
    "bitwise_not",
    "logical_not",
]:
    case(name, i(3, 5, low=0))
for name in ["isnan", "isinf", "isfinite"]:
    case(name, torch.tensor([0.0, float("inf"), float("-inf"), float("nan")]))
    case(name, i(4, low=0))
NAN, INF = float("nan"), float("inf")
HOLES = torch.tensor([[1.0, NAN, -INF, 2.0], [NAN, 3.0, NAN, -1.0], [-INF] * 4, [5.0, 4.0, INF, 0.5]])
for name in ["median.dim", "nanmedian.dim"]:
    case(name, HOLES, 1)
    case(name, i(3, 4), 0, True)
SPECIAL = torch.tensor(
    [-9.7, -3.0, -1.0, -0.3, -1e-30, 0.0, 1e-30, 0.2, 0.5, 1.0, 1.5, 2.0, 6.0, 19.0, 25.0, -80.5, INF, NAN]
)
for name in [
    "lgamma",
    "digamma",
    "erfinv",
    "i0",
    "special_i0",
    "special_i0e",
    "special_i1",
    "special_i1e",
    "special_erfcx",
]:
    case(name, SPECIAL)
    case(name, f(3, 40, low=-1.0, high=1.0))
case("lgamma", i(5, low=1))
for name in ["special_i0e", "special_i1", "special_i1e", "special_erfcx"]:
    case(
        name,
        f(3, 40, dtype=F64, low=-30.0, high=30.0) if name != "special_erfcx" else f(3, 40, dtype=F64, low=-5, high=30),
    )
for n in (0, 1):
    case("polygamma", n, f(3, 40, low=-5.0, high=5.0))
    case("polygamma", n, torch.tensor([0.0, 0.5, 1.0, 30.0, 1e9, INF, NAN], dtype=F64))
POWERS = [0.0, -0.0, 1.0, -0.75, 1e-45, -1e-39, 3e38, INF, -INF, NAN]
for dtype in (torch.float32, F64, F16):
    case("frexp.Tensor", torch.tensor(POWERS, dtype=dtype))
case("frexp.Tensor", torch.tensor([5e-324, -1e-310, 2.3e-308, 1.7e308], dtype=F64))
case("_adaptive_avg_pool3d", f(0, 2, 5, 4, 3), [2, 2, 2])
case("erfinv", f(3, 40, dtype=F64, low=-1.0, high=1.0))
for name in ["median", "nanmedian"]:
    case(name, HOLES)
    case(name, HOLES[3])
case("max_pool2d_with_indices", HOLES[None], 2)
case("max_pool2d_with_indices", HOLES[None], 2, 1, 1)
case("max_pool2d_with_indices", torch.full((1, 1, 3, 3), -INF), 3, 2, 1, 2)
case("max_pool2d_with_indices", f(1, 2, 9, 11), 7, 2, 3)
case("max_pool2d_with_indices", HOLES[None], 3, 1, 1, 2)
case("max_pool2d_with_indices", i(1, 2, 6, 5, low=-2), 3, 2, 1)
case("adaptive_max_pool2d", f(1, 2, 14, 15), (2, 2))
case("adaptive_max_pool2d", f(2, 5, 7), (2, 3))
case("adaptive_max_pool2d", HOLES[None, None], (3, 2))
for rank in 2, 3:
    case(f"avg_pool{rank}d", f(2, 2, *(5, 7, 6)[:rank]), [3], [2], [1], True, True, 5)
    case(f"avg_pool{rank}d", f(2, *(5, 7, 6)[:rank]), [2], [3], [0], False, False, -3)
    case(f"avg_pool{rank}d", i(2, *(5, 7, 6)[:rank], low=-9), [2], [1], [1])
for name in ["__lshift__", "__rshift__"]:
    case(f"{name}.Scalar", i(5, dtype=I8), 2)
    case(f"{name}.Tensor", i(5), i(5, low=0))
LARGE = f(3, 40, dtype=F16) * 150
case("linalg_vector_norm", LARGE)
case("linalg_vector_norm", LARGE, 3.0, [1])
case("rms_norm", LARGE, [40], f(40, dtype=F16))
case("rms_norm", f(3, 4, dtype=BF16) * 1e-3, [4])
case("addcmul", LARGE, LARGE, LARGE, value=1e-3)
case("add.Tensor", LARGE, LARGE, alpha=250)
for name in ["sign", "sgn"]:
    case(name, torch.tensor([0.0, -0.0, float("inf"), float("nan"), -2.5]))
for name in ["eq", "ge", "gt", "le", "lt", "ne"]:
    case(f"{name}.Tensor", i(3, 4), i(4))
    case(f"{name}.Tensor", f(3, 4), i(3, 4))
    case(f"{name}.Scalar", i(3, 4), 1.5)
case("eq.Tensor", b(3, 4), b(3, 4))
case("lt.Tensor", b(3, 4), b(3, 4))
for name in ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor"]:
    case(name, f(3, 4), f(4))
    case(name, f(3, 4), i(3, 4, low=1))
    case(name, i(3, 4), i(3, 4, low=1))
    case(name, f(3, 4), 3)
    case(name, i(3, 4), 2.5)
    case(name, f(3, 4, dtype=F16), f(dtype=F64, low=1))
    case(name, i(3, 4, dtype=U8, low=0), i(3, 4, dtype=I8, low=1))
    case(name, f(3, 4, dtype=BF16), f(4, dtype=BF16, low=1))
case("add.Tensor", f(3, 4), f(4), alpha=2)
case("add.Tensor", i(3, 4), i(4), alpha=3)
case("add.Tensor", b(3, 4), b(4))
case("mul.Tensor", b(3, 4), b(4))
case("sub.Tensor", f(3, 4), f(4), alpha=0.5)
case("rsub.Scalar", f(3, 4), 1.0, 2)
for mode in ("floor", "trunc"):
    case("div.Tensor_mode", f(3, 4), f(4, low=0.5), rounding_mode=mode)
    case("div.Tensor_mode", i(3, 4), i(4, low=1), rounding_mode=mode)
case("floor_divide.default", i(3, 4), i(4, low=1))
case("remainder.Tensor", i(3, 4), i(4, low=1))
case("remainder.Scalar", f(3, 4), 0.75)
case("fmod.Tensor", f(3, 4), f(4, low=0.5))
case("atan2", f(3, 4), f(4))
case("maximum", f(3, 4), f(4))
case("minimum", i(3, 4), i(4))
case("bitwise_and.Tensor", i(3, 4), i(4))
case("bitwise_or.Tensor", b(3, 4), b(4))
case("bitwise_xor.Scalar", i(3, 4), 5)
case("bitwise_left_shift.Tensor", i(3, 4, low=0), i(4, low=0, high=3))
for name in ["logical_and", "logical_or", "logical_xor"]:
    case(name, b(3, 4), f(3, 4).round())
for exponent in (2, 3, 0.5, -1, -0.5, 1, 1.7):
    case("pow.Tensor_Scalar", f(3, 4, low=0.2), exponent)
case("pow.Tensor_Tensor", f(3, 4, low=0.2), f(4))
case("pow.Scalar", 2.0, f(3, 4))
case("pow.Tensor_Scalar", i(3, 4), 2)
case("where.self", b(3, 4), f(3, 4), f(4))
case("where.ScalarSelf", b(3, 4), 1.5, f(3, 4))
case("where.self", b(3, 4), i(3, 4), f(3, 4))
case("masked_fill.Scalar", f(3, 4), b(3, 4), -1e9)
case("clamp", f(3, 4), -0.5, 0.5)
case("clamp", f(3, 4), None, 0.5)
case("clamp.Tensor", f(3, 4), f(4, high=0.0), f(4, low=0.0))
case("clamp_min", i(3, 4), 0)
case("hardtanh", f(3, 4), 0.0, 6.0)
case("addcmul", f(3, 4), f(3, 4), f(4), value=0.5)
case("addcdiv", f(3, 4), f(3, 4), f(4, low=1))
case("lerp.Scalar", f(3, 4), f(3, 4), 0.25)
case("lerp.Scalar", torch.tensor([1e8, -3.0]), f(2), 1.0)
case("lerp.Tensor", torch.tensor([1e8, 1e8, -3.0]), f(3), torch.tensor([1.0, 0.25, 0.75]))
case("gelu", f(3, 4), approximate="tanh")
case("prelu", f(2, 3, 4), f(3))
case("threshold", f(3, 4), 0.5, -1.0)
case("softplus", f(3, 4), 2.0, 1.0)
case("_to_copy", f(3, 4), dtype=I32)
case("_to_copy", i(3, 4), dtype=F16)
case("_to_copy", b(3, 4), dtype=torch.float32)
case("_to_copy", f(3, 4), dtype=B)
case("dropout", f(3, 4), 0.5, False)
case("copy", f(3, 4), i(4))
for x in f(40) * 10, torch.tensor([0.05, 0.15, 0.25, 1.35, -0.05, 1e5]), f(40, dtype=BF16) * 10:
    case("fake_quantize_per_tensor_affine", x, 0.1, 3, -20, 127)
    case("fake_quantize_per_tensor_affine_cachemask", x, 0.1, 2, 0, 15)
SCALES = f(3, low=0.1), i(3, dtype=I32)
case("fake_quantize_per_channel_affine", f(4, 3) * 10, *SCALES, 1, -20, 127)
case("fake_quantize_per_channel_affine_cachemask", f(4, 3) * 10, *SCALES, 1, -20, 127)
case("round.decimals", f(40) * 300, decimals=2)
case("round.decimals", f(40) * 300, decimals=-2)
case("round.decimals", f(40, dtype=F16) * 3000, decimals=2)
case("threshold", i(3, 4), 0.5, 7)
case("threshold", torch.tensor([float("nan"), float("inf"), 0.5, -1.0]), 0.5, 7.0)
case("pow.Tensor_Scalar", i(3, 4), 5)
case("pow.Tensor_Tensor", i(3, 4), i(3, 4))
case("pow.Scalar", 2, i(5, low=0, high=9))
for name in ["fmax", "fmin"]:
    case(name, HOLES, f(4, 1))
    case(name, i(3, 4), i(4))
for name in ["fmax", "fmin", "maximum", "minimum", "max.other", "min.other", "clamp_min.Tensor", "clamp_max.Tensor"]:
    case(name, b(3, 4), b(4))
case("square", b(3))
case("signbit", torch.tensor([0.0, -0.0, 2.0, -INF]))
case("signbit", i(5))
case("signbit", b(3))
NUMBER = torch.tensor(-3.0)
for name in ["sum.dim_IntList", "mean.dim", "amax", "amin", "logsumexp", "linalg_vector_norm"]:
    case(name, NUMBER, *[3.0] * name.startswith("linalg"), [0])
for name in ["var.correction", "std.correction", "var_mean.correction"]:
    case(name, NUMBER)
    case(name, NUMBER, [-1], correction=0, keepdim=True)
for name in [
    "all.dim",
    "any.dim",
    "max.dim",
    "min.dim",
    "argmax",
    "cumsum",
    "softmax.int",
    "sort",
    "logcumsumexp",
    "median.dim",
]:
    case(name, NUMBER, 0)
case("flip", NUMBER, [0])
case("gather", NUMBER, 0, ids(0)[0])
case("gather", NUMBER, 0, ids(0, 0))
case("index_select", NUMBER, 0, ids(0)[0])
case("index_add", NUMBER, 0, ids(0), f())
case("mean.dim", f(0, 3, 4), [1, 2])
case("amax", f(2, 0, 4), [2])
case("scatter.src", NUMBER, 0, ids(0)[0], f(1)[0])
case("unsqueeze", NUMBER, -1)
case("unfold", NUMBER, 0, 1, 1)
case("stack", [f(0, 3), f(0, 3)], 1)
case("cat", [f(0, 3), f(0, 2)], 1)
case("masked_scatter", f(2, 3, 4), b(3, 1), f(30))
case("masked_scatter", i(5), b(5), i(9))
case("tril_indices", 4, 5, 1)
case("triu_indices", 4, 5, -1, dtype=I32)

for name in ["sum", "prod", "mean", "amax", "amin"]:
    overload = {"sum": ".dim_IntList", "prod": ".dim_int", "mean": ".dim"}.get(name, "")
    case(name + overload, f(2, 3, 4), -1 if name == "prod" else [1, -1], True)
    case(name + overload, f(2, 3, 4), 0 if name == "prod" else [0])
case("sum", i(2, 3, dtype=I32))
case("sum", b(2, 3))
case("sum.dim_IntList", f(2, 3), [0], dtype=F64)
case("mean", f(2, 3))
case("mean.dim", i(2, 3), [1], dtype=torch.float32)
case("sum.dim_IntList", f(2, 3), None)
case("max.dim", f(2, 3, 4), 1)
case("min.dim", i(2, 3, 4), -1, True)
case("max", f(2, 3))
case("max.other", f(2, 3), f(3))
case("amax", b(2, 3), [1])
case("argmax", f(2, 3), 1)
case("argmin", f(2, 3))
case("any.dim", b(2, 3), 1)
case("all", f(2, 3))
case("any.dim", i(2, 3), 0, True)
case("var.correction", f(2, 3, 4), [1], correction=0, keepdim=True)
case("var.correction", f(2, 3, 4), [0, 2])
case("var.dim", f(2, 3), [1], False)
case("std.correction", f(2, 3, 4), None)
case("var_mean.correction", f(2, 3, 4), [2], correction=1)
case("logsumexp", f(2, 3), [1])
for order in (2, 1, 0, 3, float("inf"), float("-inf")):
    case("linalg_vector_norm", f(2, 3), order, [1])
for order in (2.0, 1.0, 3.0, float("inf")):
    case("_cdist_forward", f(2, 3, 4), f(2, 5, 4), order, None)
case("_cdist_forward", f(3, 4), f(5, 4), 2.0, None)
case("dist", f(3, 4), f(4))
case("dist", f(3, 4), f(4), float("inf"))
case("_cdist_forward", f(2, 1, 3, 4), f(6, 5, 4), 2.0, None)
case("_pdist_forward", f(5, 4), 2.0)
case("_pdist_forward", f(5, 4), 3.0)
case("_pdist_forward", f(1, 4), 1.0)
case("cumsum", f(2, 5), 1)
case("cumsum", i(2, 5, dtype=I32), 0)
for name in ["cummax", "cummin"]:
    case(name, i(3, 7), 1)
    case(name, torch.tensor([[1.0, 3.0, 3.0], [2.0, float("nan"), 5.0], [float("nan"), 0.0, 4.0]]), 0)
    case(name, torch.tensor(2.0), 0)
case("logcumsumexp", f(3, 5), -1)
case("logcumsumexp", torch.tensor([float("-inf"), float("-inf"), 90.0, -90.0, 100.0]), 0)
case("median", f(3, 4))
for mode in range(3):
    case("_embedding_bag", f(6, 4), i(7, low=0), ids(0, 3, 3), False, mode)
    case("_embedding_bag", f(6, 4), i(7, low=0), ids(0, 3, 7), False, mode, False, None, True, 2)
case("_embedding_bag", f(6, 4), i(7, low=0), ids(0, 3, 3), per_sample_weights=f(7))
case("bucketize.Tensor", f(3, 4), ids(-1, 0, 1).float(), out_int32=True)
case("bucketize.Tensor", i(3, 4), ids(-1, 0, 1, 3), right=True)
case("searchsorted.Tensor", f(2, 6).sort()[0], f(2, 3))
case("searchsorted.Tensor", ids(3, -1, 2), f(2, 3), side="right", sorter=ids(1, 2, 0))
case("histc", f(20, low=-3, high=3), 4, -2, 2)
case("histc", torch.tensor([1.0, 2.0, 2.0, 5.0]), 4)
case("histc", torch.ones(3), 3)
case("cumprod", f(2, 5), -1)
case("sort", f(2, 5))
case("sort", f(2, 5), 0, True)
case("argsort", f(2, 5), -1)
case("topk", f(2, 9), 3)
case("topk", f(5, 2), 2, 0, False)
case("median.dim", f(3, 5), 1)
case("kthvalue", f(3, 5), 2, 1, True)
case("mode", i(4, 9), 1)
case("mode", i(9, 2, low=0, high=3, dtype=I32), 0, True)
case("softmax.int", f(2, 5), -1)
case("_softmax", f(2, 5), 0, False)
case("_log_softmax", f(2, 5), 1, False)
case("softmax.int", f(2, 5, dtype=BF16), -1, dtype=torch.float32)
case("_safe_softmax", torch.tensor([[0.0, 1.0], [float("-inf")] * 2]), -1)

case("view", f(2, 6), [3, -1])
case("reshape", f(2, 6), [4, 3])
case("flatten.using_ints", f(2, 3, 4), 1)
case("flatten.using_ints", f(2, 3, 4), 0, 1)
case("unflatten.int", f(2, 6), 1, [2, -1])
case("squeeze", f(1, 3, 1))
case("squeeze.dim", f(1, 3, 1), 1)
case("squeeze.dims", f(1, 3, 1), [0, -1])
case("unsqueeze", f(3, 4), -1)
case("permute", f(2, 3, 4), [2, 0, -2])
case("transpose.int", f(2, 3, 4), 0, -1)
case("t", f(3, 4))
case("mT", f(2, 3, 4))
case("movedim.int", f(2, 3, 4), 0, 2)
case("expand", f(3, 1), [2, -1, 4])
case("repeat", f(3, 2), [2, 1, 3])
case("repeat_interleave.self_int", f(2, 3), 2, 1)
case("cat", [f(2, 3), f(1, 3)])
case("cat", [f(2, 3), i(2, 2)], -1)
case("cat", [torch.empty(0), f(2, 3)], 0)
case("stack", [f(2, 3), f(2, 3)], 1)
case("split.Tensor", f(5, 3), 2)
case("split_with_sizes", f(5, 3), [1, 4])
case("chunk", f(3, 7), 3, 1)
case("tensor_split.sections", f(7, 2), 3)
case("tensor_split.indices", f(7, 2), [2, 5])
case("unbind.int", f(3, 2), 1)
case("slice.Tensor", f(5, 6), 1, 1, 9223372036854775807, 2)
case("slice.Tensor", f(5, 6), 0, -3, -1)
case("slice.Tensor", f(5, 6))
case("narrow", f(5, 6), 1, 2, 3)
case("select.int", f(5, 6), 1, -2)
case("slice_scatter", f(5, 6), f(5, 2), 1, 1, 5, 2)
case("select_scatter", f(5, 6), f(6), 0, -1)
case("flip", f(2, 3, 4), [0, -1])
case("roll", f(4, 5), [1, -2], [0, 1])
case("roll", f(4, 5), [3])
case("tril", f(4, 5), -1)
case("triu", f(2, 4, 5), 1)
case("diagonal", f(3, 4), 1)
case("permute_copy", f(3, 4), (1, 0))
case("addbmm", i(2, 3, dtype=I32), i(4, 2, 5, dtype=I32), i(4, 5, 3, dtype=I32))
case("ldexp.Tensor", f(3, 4), i(3, 4))
case("diagonal_scatter", f(2, 4, 3), f(2, 3), -1, 1, 2)
case("as_strided", f(6, 6), (2, 3, 4), (6, 2, 1), 1)
case("as_strided", f(5), (3, 3), (1, 1))
case("as_strided_scatter", f(5, 4), f(3), (3,), (5,), 2)
case("diagonal", f(2, 4, 3), -1, 1, 2)
case("constant_pad_nd", f(2, 3, 4), [1, 2, 0, -1], 1.5)
case("constant_pad_nd", i(2, 3), [1, 0])
case("pad", f(1, 2, 5), [2, 1], "reflect")
case("pad", f(1, 2, 5), [2, 1], "circular")
case("reflection_pad2d", f(1, 2, 4, 5), [1, 2, 0, 1])
case("replication_pad2d", f(1, 2, 4, 5), [1, 2, 0, 1])
case("pixel_shuffle", f(1, 8, 2, 3), 2)
case("pixel_unshuffle", f(1, 2, 4, 6), 2)
case("channel_shuffle", f(1, 6, 2, 3), 3)
case("unfold", f(3, 7), 1, 3, 2)
case("as_strided", f(2, 6), [3, 4], [4, 1])
case("embedding", f(7, 3), i(2, 4, low=0, high=7))
case("index_select", f(5, 6), 1, ids(0, 3, 3))
case("gather", f(4, 5), 1, i(4, 2, low=0, high=5))
case("index.Tensor", f(5, 6), [ids(0, -1)])
case("index.Tensor", f(5, 6, 2), [ids(0, 4), ids(-1, 2)])
case("index.Tensor", f(5, 6, 2), [None, ids(0, 4), ids(1, 0)])
case("index.Tensor", f(5, 6, 2), [ids([0], [4]), ids(1, -2)])
case("index.Tensor", f(5, 6, 4), [ids(0, 4), None, ids(1, 0)])
case("index_put", f(5, 6), [ids(0, -1), ids(1, 2)], f(2))
case("index_put", f(5, 6), [ids(0, 0)], f(2, 6), True)
case("index_put", f(5, 6), [b(5, 6)], torch.tensor(3.0))
MASK = torch.tensor([[True, False, True], [False, True, True]])
case("index_put", f(2, 3), [MASK], f(4))
case("index_put", f(3, 2, 5), [MASK[1]], f(2, 2, 5), True)
case("index_put", f(4, 2, 3, 5), [None, MASK], f(4, 4, 1))
case("index_put", i(3, 4), [MASK[1]], i(4))
case("index_put", f(2, 6, 3), [None, ids(0, -1, 2)], f(2, 3, 3))
case("index_put", f(2, 3, 4), [None, None, ids(1, 0)], f(2), True)
case("index_put", f(2, 5, 4), [None, i(3, 1, low=0), ids(1, 0)], f(2, 3, 2), True)
case("index_put", f(2, 5, 4), [ids(1, 0), None, ids(1, 3)], f(2, 5))
case("index_put", f(2, 5, 4, 3), [None, ids(1, -1), None, ids(1, 2)], f(2, 2, 4))
case("scatter.src", f(4, 5), 1, ids([0, 2], [1, 3]), f(2, 2))
case("scatter.value", f(4, 5), 0, ids([0, 2, 1]), 7.0)
case("scatter_add", f(4, 5), 1, ids([0, 0], [1, 3]), f(3, 4))
case("scatter_reduce.two", f(4, 5), 1, ids([0, 0], [1, 3]), f(2, 2), "amax")
for reduce in ("sum", "prod", "amin", "amax"):
    case("scatter_reduce.two", f(4, 5), 1, ids([0, 0], [1, 3]), f(2, 2), reduce, include_self=False)
    case("scatter_reduce.two", i(4, 5), 1, ids([0, 0], [1, 3]), i(2, 2), reduce, include_self=False)
for include_self in (False, True):
    case("scatter_reduce.two", f(4, 5), 1, ids([0, 0], [1, 3]), f(2, 2), "mean", include_self=include_self)
case("scatter_reduce.two", i(4, 5), 1, ids([0, 0], [1, 3]), i(2, 2), "mean")
case("index_add", f(4, 5), 1, ids(0, 0, 3), f(4, 3), alpha=2)
case("index_add", i(5, low=0, dtype=U8), 0, ids(0, 0, 3), i(3, low=0, dtype=U8), alpha=-1)
for name in ["gcd", "lcm"]:
    case(name, i(6, 1, low=-12, high=12), i(7, low=-12, high=12))
    case(name, i(40, low=-128, high=128, dtype=I8), i(40, low=-90, high=9, dtype=I8))
    case(name, i(40, low=0, high=256, dtype=U8), i(40, low=-128, high=9, dtype=I8))
case("eq.Scalar", i(40, low=250, high=256, dtype=U8), -1)
case("meshgrid", [f(3)])
case("meshgrid", [torch.tensor(3.0), f(2)])
for how in ("prod", "mean", "amax", "amin"):
    for counts in (True, False):
        case("index_reduce", f(5, 3), 0, ids(0, 2, 2, 4), f(4, 3), how, include_self=counts)
case("put", f(5, 3), ids(0, -1, 7), f(3))
case("put", f(5, 3), ids(0, 7, 7), f(3), accumulate=True)
case("_int_mm", i(20, 16).to(torch.int8), i(16, 8).to(torch.int8))
case("angle", torch.tensor([-2.0, -0.0, 0.0, 3.0, float("-inf"), float("nan")]))
case("angle", i(3, 4, low=-3))
for rows in (1, 2, 4):
    case("_linalg_det", f(2, rows, rows))
    case("_linalg_slogdet", f(rows, rows))
for rows in (1, 5):
    for operator in ("inverse", "linalg_inv", "linalg_inv_ex"):
        case(operator, f(2, rows, rows))
    for operator in ("linalg_solve", "_linalg_solve_ex"):
        case(operator, f(rows, rows), f(3, rows, 2))
        case(operator, f(3, rows, rows), f(3, rows))
        case(operator, f(3, rows, rows), f(rows))
        case(operator, f(2, 1, rows, rows), f(3, 4, rows), left=False)
case("arange.start_step", 1, 9, 3)
case("arange", 5, dtype=torch.float32)
case("full", [2, 3], 1.5)
case("full_like", i(2, 3), 7)
case("ones", [2, 3], dtype=I64)
case("zeros_like", f(2, 3))
case("new_zeros", f(2), [3, 2])
case("fill.Scalar", f(2, 3), 2.5)
case("scalar_tensor", 2.5)
case("eye.m", 2, 3)
case("one_hot", i(5, low=0, high=3), 3)
case("linspace", 0.0, 1.0, 5)
case("linspace", 4.3, 0, 50, dtype=I64)
case("linspace", 3.0, 7.0, 1)

case("mm", f(3, 4), f(4, 5))
case("bmm", f(2, 3, 4), f(2, 4, 5))
case("matmul", f(2, 1, 3, 4), f(5, 4, 2))
case("matmul", f(4), f(4, 2))
case("mv", f(3, 4), f(4))
case("dot", f(4), f(4))
case("linear", f(2, 3, 4), f(5, 4), f(5))
case("linear", f(4), f(5, 4))
for dtype in (F16, BF16):  # 4000 products, whose sums in the type itself are off by a fifth
    case("linear", f(2, 4000, dtype=dtype, low=0.0, high=0.1), f(5, 4000, dtype=dtype, low=0.0, high=0.1))
case("_trilinear", f(4, 3), f(7, 3, 5), f(4, 5), [1, 3], [0], [1, 2], [2, 3])
case("addmm", f(5), f(3, 4), f(4, 5))
case("addmm", f(3, 5), f(3, 4), f(4, 5), beta=0.5, alpha=2)
case("baddbmm", f(2, 3, 5), f(2, 3, 4), f(2, 4, 5), alpha=0.5)
case("einsum", "bij,bjk->bik", [f(2, 3, 4), f(2, 4, 5)])
case("einsum", "ij->j", [i(5, 3, low=90, high=250, dtype=U8)])
IMAGE = f(2, 4, 7, 6)
for options in (
    {},
    {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]},
    {"bias": f(6)},
):
    case("conv2d", IMAGE, f(6, 4, 3, 3), **options)
case("conv2d", IMAGE, f(6, 2, 3, 3), groups=2)
case("conv2d.padding", IMAGE, f(6, 4, 3, 2), padding="same")
case("conv2d", f(4, 7, 6), f(6, 4, 3, 3), f(6))
case("conv1d", f(2, 4, 9), f(6, 4, 3), f(6), [2], [1])
case("conv3d", f(1, 2, 4, 5, 4), f(3, 2, 2, 3, 2))
case("convolution", IMAGE, f(4, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 4)
case("convolution", IMAGE, f(4, 3, 3, 3), f(3), [2, 2], [1, 1], [1, 1], True, [1, 0], 1)
case("conv_transpose2d.input", IMAGE, f(4, 3, 2, 2), f(3), [2, 2])
case("max_pool2d", IMAGE, [3, 3], [2, 2], [1, 1])
case("max_pool2d", IMAGE, [2, 2], [], 0, 1, True)
case("max_pool2d_with_indices", IMAGE, [3, 2], [2, 2])
case("max_pool2d_with_indices", IMAGE, [3, 3], [2, 2], [1, 1], 1, True)
case("max_pool2d_with_indices", f(2, 6, 7), [2, 2], [1, 2], 0, 2)
case("max_pool3d_with_indices", f(1, 2, 4, 5, 6), [2, 2, 2])
case("avg_pool2d", IMAGE, [3, 3], [2, 2], [1, 1])
case("avg_pool2d", IMAGE, [3, 3], [2, 2], [1, 1], True, False)
case("avg_pool1d", f(2, 3, 8), [2])
case("max_pool1d", f(2, 3, 8), [3], [2])
case("adaptive_avg_pool2d", IMAGE, [1, 1])
case("adaptive_avg_pool2d", IMAGE, [3, 4])
case("_adaptive_avg_pool2d", IMAGE, [7, 3])
case("adaptive_max_pool2d", IMAGE, [3, 2])
case("adaptive_avg_pool1d", f(2, 3, 8), [3])
case("upsample_nearest2d.vec", IMAGE, None, [2.0, 3.0])
case("upsample_nearest2d.vec", IMAGE, [5, 11], None)
for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
    case(f"{name}.vec", IMAGE, None, [1.7, 0.6])
for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
    case(f"{name}.vec", IMAGE, None, False, [1.7, 0.6])
case("upsample_bilinear2d.vec", IMAGE, [14, 9], False, None)
case("upsample_bilinear2d.vec", IMAGE, None, True, [2.0, 2.0])
case("upsample_bicubic2d.vec", IMAGE, [14, 12], False, None)
case("upsample_bicubic2d.vec", IMAGE, None, True, [0.7, 0.7])
case("_upsample_nearest_exact2d.vec", IMAGE, [5, 11], None)
for name in ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"]:
    case(f"{name}.vec", f(1, 2, 13, 11), [5, 16], False, None)
    case(f"{name}.vec", f(1, 2, 13, 11), None, False, [0.4, 1.7])
    case(f"{name}.default", f(1, 2, 13, 11, dtype=F64), [5, 4], False)
case("grid_sampler_2d", IMAGE, f(2, 3, 4, 2, low=-1, high=1), 0, 0, False)
case("grid_sampler_2d", IMAGE, f(2, 3, 4, 2, low=-1, high=1), 1, 1, True)
MOMENTS = (f(4), f(4), f(4), f(4, low=0.5))
case("batch_norm", IMAGE, *MOMENTS, False, 0.1, 1e-3, False)
case("_native_batch_norm_legit_no_training", IMAGE, None, None, *MOMENTS[2:], 0.1, 1e-5)
case("instance_norm", IMAGE, *MOMENTS, False, 0.1, 1e-3, False)
case("_native_batch_norm_legit.no_stats", IMAGE, *MOMENTS[:2], True, 0.1, 1e-5)
case("_native_batch_norm_legit.no_stats", IMAGE, None, None, True, 0.1, 1e-5)
case("swapaxes", f(2, 3, 4), 0, -1)
case("swapdims", f(2, 3, 4), 1, 2)
case("layer_norm", f(2, 3, 4), [3, 4], f(3, 4), f(3, 4))
case("native_layer_norm", f(2, 3, 4), [4], None, None, 1e-3)
case("rms_norm", f(2, 3, 4), [4], f(4))
case("group_norm", IMAGE, 2, f(4), f(4))
case("native_group_norm", IMAGE, None, None, 2, 4, 42, 2, 1e-5)
case("instance_norm", IMAGE, f(4), f(4), None, None, True, 0.1, 1e-5, False)
Q, K, V = f(2, 4, 3, 8), f(2, 4, 5, 8), f(2, 4, 5, 8)
case("scaled_dot_product_attention", Q, K, V)
case("scaled_dot_product_attention", Q, K, V, b(3, 5) | torch.eye(3, 5, dtype=B), scale=0.5)
case("scaled_dot_product_attention", Q, K, V, f(2, 1, 3, 5))
SEEN = torch.eye(3, 5, dtype=B) & (torch.arange(3) > 0)[:, None]  # nothing of the first row
case("scaled_dot_product_attention", Q, K, V, SEEN)
case("scaled_dot_product_attention", Q, K, V, torch.zeros(3, 5).masked_fill(~SEEN, -torch.inf))
case("scaled_dot_product_attention", Q, K, V, is_causal=True)
case("scaled_dot_product_attention", Q, f(2, 2, 5, 8), f(2, 2, 5, 8), enable_gqa=True)
ENCODER = 8, 2, f(24, 8), f(24), f(8, 8), f(8), True, False, 1e-5, *(f(8), f(8)) * 2, f(12, 8), f(12), f(8, 12), f(8)
case("_transformer_encoder_layer_fwd", f(2, 3, 8), *ENCODER)
case(
    "_transformer_encoder_layer_fwd",
    f(2, 3, 8),
    *ENCODER[:6],
    False,
    True,
    *ENCODER[8:],
    torch.ones(3, 3, dtype=B).triu(1),
    0,
)
case(
    "_transformer_encoder_layer_fwd", f(2, 3, 8), *ENCODER, torch.tensor([[False, False, True], [False, True, True]]), 1
)


def program_of(name, args, kwargs):
    """One call as a program whose tensors are inputs, and what torch makes."""
    packet, _, overload = name.partition(".")
    target = getattr(getattr(torch.ops.aten, packet), overload or "default")
    inputs, values = {}, []

    def described(argument):
        if isinstance(argument, torch.Tensor):
            inputs[f"x{len(inputs)}"] = torch_program.described(argument)
            values.append(argument)
            return Ref(f"x{len(inputs) - 1}")
        if isinstance(argument, (list, tuple)):
            return [described(each) for each in argument]
        return torch_program.plain(argument, described)

    operator, overload, given = torch_program.named(target, args, kwargs)
    arguments = {k: described(a) for k, a in given.items()}
    made = target(*args, **kwargs)
    step = Step("y", operator, arguments, torch_program.makes(made), overload)
    several = made if isinstance(made, (list, tuple)) else [made]
    parts = [Step(f"y{n}", "operator.getitem", {"x": Ref("y"), "n": n}) for n in range(len(several))]
    return step, parts if isinstance(made, (list, tuple)) else [], inputs, values, several


def count_of_made(name):
    """How many of its results a row makes; None for all."""
    return (
        2
        if name == "_linalg_slogdet"
        else 1
        if name.startswith(("native_", "_native", "_embedding", "_linalg", "linalg_inv_ex"))
        else None
    )


ULPS = {"float16": 2e-3, "bfloat16": 2e-2}


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES, ids=[f"{n}-{c[0]}" for n, c in enumerate(CASES)])
def test_a_row_makes_what_torch_makes(name, args, kwargs):
    step, parts, inputs, values, expected = program_of(name, args, kwargs)
    outputs = [Ref(p.name) for p in parts[: count_of_made(name)]] or [Ref("y")]
    model = compile_graph(imported(Program(inputs, (step, *parts), tuple(outputs))), "interpreter")
    made = model(*values)
    for got, want in zip(made if isinstance(made, tuple) else (made,), expected):
        reference = array_of(want)
        assert got.dtype == reference.dtype and got.shape == reference.shape
        close = ULPS.get(str(reference.dtype), 1e-4)
        np.testing.assert_allclose(got.astype("float64"), reference.astype("float64"), rtol=close, atol=close)


TYPES = [B, U8, I8, I32, I64, F16, BF16, torch.float32, F64]


@pytest.mark.parametrize("kind", [F16, BF16])
@pytest.mark.parametrize("kwargs", [{}, {"rounding_mode": "trunc"}, {"rounding_mode": "floor"}])
def test_a_number_beside_short_floats_is_not_rounded(kind, kwargs):
    x = f(64, high=20.0).to(kind)
    for name in ("mul.Scalar",)[: not kwargs] + (f"div.Scalar{'_mode' * bool(kwargs)}",):
        step, _, inputs, values, (want,) = program_of(name, (x, 0.3), kwargs)
        made = compile_graph(imported(Program(inputs, (step,), (Ref("y"),))), "interpreter")(*values)
        np.testing.assert_array_equal(made, array_of(want))


def _attention(*shape):
    return [f(*shape, low=-3.0, high=3.0) for _ in range(3)]


@pytest.mark.parametrize("kind", [F16, BF16])
@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("linear", [f(3, 40, high=6.0), f(5, 40), -80 * torch.ones(5)], {}),
        ("addmm", [-80 * torch.ones(5), f(3, 40, high=6.0), f(40, 5)], {"alpha": 0.7, "beta": 0.6}),
        ("addbmm", [f(3, 5), f(4, 3, 6), f(4, 6, 5)], {}),
        ("conv2d", [f(1, 4, 6, 6, high=6.0), f(3, 4, 3, 3), -40 * torch.ones(3)], {}),
        ("conv_transpose2d.input", [f(1, 4, 6, 6, high=6.0), f(4, 3, 3, 3), -40 * torch.ones(3)], {}),
        ("scatter_add", [f(3, 40), 0, torch.zeros(20, 40, dtype=I64), f(20, 40)], {}),
        ("index_add", [f(3, 40), 0, ids(1, 2, *[0] * 18), f(20, 40)], {}),
        ("index_put", [f(3, 40), [ids(1, 2, *[0] * 18)], f(20, 40)], {"accumulate": True}),
        ("_embedding_bag", [f(20, 5), ids(*range(20)), ids(0, 18)], {"mode": 1}),
        ("scaled_dot_product_attention", _attention(1, 2, 7, 16), {"is_causal": True}),
        ("grid_sampler_2d", [f(1, 3, 5, 20), f(1, 13, 10, 2, low=-1.0, high=1.0), 2, 0, False], {}),
        ("dist", [f(40, 3), f(1, 3), 3], {}),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_is_made_of_products_of_short_floats_is_rounded_once(kind, name, args, kwargs):
    def of_kind(several, kind):
        return [x.to(kind) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in several]

    args = of_kind(args, kind)
    step, parts, inputs, values, _ = program_of(name, args, kwargs)
    output = Ref(parts[0].name if parts else "y")
    made = compile_graph(imported(Program(inputs, (step, *parts), (output,))), "interpreter")(*values)
    exact = program_of(name, of_kind(args, F64), kwargs)[-1][0].numpy()
    np.testing.assert_allclose(made.astype("float64"), exact, rtol=0.52 * torch.finfo(kind).eps, atol=2e-6)


@pytest.mark.parametrize("a", TYPES, ids=str)
def test_types_are_promoted_as_torch_promotes_them(a):
    from tir.dtype import DType
    from tir.graph import Value

    def value(tensor):
        return (
            Value("x", tuple(tensor.shape), DType(str(tensor.dtype)[6:]))
            if isinstance(tensor, torch.Tensor)
            else tensor
        )

    for other in TYPES:
        for x, y in ((torch.ones(2), torch.ones(2)), (torch.ones(2), torch.ones(())), (torch.ones(()), torch.ones(()))):
            pair = x.to(a), y.to(other)
            assert str(promoted(*map(value, pair))) == str(torch.result_type(*pair))[6:]
    for number in (True, 2, 2.5):
        for x in (torch.ones(2), torch.ones(())):
            pair = x.to(a), number
            assert str(promoted(*map(value, pair))) == str(torch.result_type(*pair))[6:]


def test_rows_are_recorded_for_where_torch_is_not(request):
    """Their operands are rounded to sixteenths, of which few digits say all."""
    import json
    import re

    from test_torch_recorded import FILE, encoded

    if not request.config.getoption("--update-golden"):
        pytest.skip("nothing is to be recorded")
    arrays, rows = [], []

    def rounded(argument):
        if isinstance(argument, torch.Tensor):
            return (argument * 16).round() / 16 if argument.is_floating_point() else argument
        return [rounded(each) for each in argument] if isinstance(argument, (list, tuple)) else argument

    def place(tensor):
        about = json.dumps([str(tensor.dtype)[6:], list(tensor.shape), tensor.double().reshape(-1).tolist()])
        if about not in arrays:
            arrays.append(about)
        return arrays.index(about)

    for name, args, kwargs in CASES:
        step, parts, _, values, expected = program_of(name, rounded(args), {k: rounded(a) for k, a in kwargs.items()})
        kept = [array_of(e) for e in expected[: count_of_made(name)]]
        shown = [[str(t.dtype)[6:], list(a.shape), [f"{v:.7g}" for v in a.reshape(-1).astype("float64")[:: max(1, a.size // 12)]]] for a, t in zip(kept, expected)]  # fmt: skip
        rows.append(
            {
                "operator": step.operator,
                "overload": step.overload,
                "arguments": {k: encoded(a) for k, a in step.arguments.items()},
                "makes": encoded(step.makes),
                "parts": min(len(parts), len(kept)),
                "values": [place(v) for v in values],
                "expected": shown,
            }
        )
    lines = ",\n".join(json.dumps(each) for each in rows)
    text = '{"arrays": [\n' + ",\n".join(arrays) + '\n],\n"rows": [\n' + lines + "\n]}\n"
    FILE.write_text(re.sub(r"(?<!-0)\.0(?=[,\]])", "", text), encoding="utf-8")
