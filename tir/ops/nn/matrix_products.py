"""Products of matrices: they are made and added in ``out_dtype``, by default the operands' type; narrow floats in ``float32``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import Expr, te
from ...te import Tensor
from ..contract import BY_RANK
from ..products import ProductType, matmul_reference, matrix_product, product_of_matrices, product_type
from ..promotion import result_type
from ..shapes import axis_of
from ._operator import arg, case, nn_operator
from .checks import require_shape, require_vector


def _with_bias(product: Callable[[ProductType], Tensor], types: ProductType, bias: Any, name: str) -> Tensor:
    """A product plus ``bias``, one element for each index of the last axis, where there is one."""
    if bias is None:
        return product(types)
    x = product(types.unrounded)
    added = require_vector(bias, x.shape[-1], f"the bias of {name}")
    return te.compute(
        x.shape, lambda *i: (x(*i) + added(i[-1]).astype(x.dtype)).astype(types.result), name=f"{name}_bias"
    )


def _dense_reference(x: Any, w: Any, bias: Any = None, out_dtype: Any = None) -> np.ndarray:
    made = product_of_matrices(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), w.T).reshape(*x.shape[:-1], len(w))
    return made if bias is None else made + bias


@nn_operator(
    shapes="(…, k), (n, k), (n) -> (…, n)", reference=_dense_reference,
    cases=(
        case(arg((3, 5), "float32"), arg((4, 5), "float32")),
        case(arg((3, 5), "float32"), arg((4, 5), "float32"), arg((4,), "float32")),
        case(arg((2, 3, 5), "float64"), arg((1, 5), "float64")),
        case(arg((2, 7), "int8"), arg((3, 7), "int8"), out_dtype="int32"),
        case(arg((2, 7), "uint8"), arg((3, 7), "int8"), out_dtype="int32"),
        case(arg((2, 7), "float16"), arg((3, 7), "float16"), out_dtype="float32"),
        case(arg((0, 5), "float32"), arg((4, 5), "float32")), case(arg((2, 0), "float32"), arg((3, 0), "float32")),
    ),
)  # fmt: skip
def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """``data @ weight.T + bias``: ``data`` is ``(…, K)``, ``weight`` ``(N, K)``, ``bias`` ``(N,)``; the result ``(…, N)``.

    Products are made and added in ``out_dtype``, by default the type that the operands are promoted to; then narrow floats
    are added up in ``float32``. Raises ``TensorExpressionError`` where shapes do not agree, and where there is no such type.
    """
    x, w = data, weight
    k = te.reduce_axis((0, x.shape[-1]), "k")

    def product(types: ProductType) -> Tensor:
        def element(*i: Any) -> Expr:
            return types.sum(x(*i[:-1], k).astype(types.inner) * w(i[-1], k).astype(types.inner), axis=k)

        return te.compute((*x.shape[:-1], w.shape[0]), element, name="dense")

    return _with_bias(product, product_type(out_dtype, data, weight), bias, "dense")


@nn_operator(
    gives=(3, 4), unstated=BY_RANK, reference=matmul_reference,
    cases=(
        case(arg((3, 5), "float32"), arg((5, 4), "float32")),
        case(arg((5, 3), "float32"), arg((4, 5), "float32"), transpose_a=True, transpose_b=True),
        case(arg((5,), "float32"), arg((5,), "float32")), case(arg((2, 3, 5), "float32"), arg((5,), "float32")),
        case(arg((5,), "float64"), arg((2, 5, 3), "float64")),
        case(arg((2, 1, 3, 5), "float32"), arg((4, 5, 2), "float32")),
        case(arg((3, 5), "float32"), arg((5, 4), "float32"), arg((4,), "float32")),
        case(arg((3, 5), "int8"), arg((5, 4), "int8"), out_dtype="int32"),
        case(arg((3, 0), "float32"), arg((0, 4), "float32")),
    ),
)  # fmt: skip
def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: Any = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Tensor:
    """The product as in NumPy: ``(…, M, K)`` by ``(…, K, N)``, batches broadcast; one dimension is a row or a column.

    ``transpose_a`` and ``transpose_b`` say that the last two dimensions of an operand are exchanged; ``bias`` is ``(N,)``.
    Products are made and added as in :func:`dense`. Raises ``TensorExpressionError`` where shapes do not agree, and where
    the operands have no common type and ``out_dtype`` is not given.
    """

    def product(types: ProductType) -> Tensor:
        return matrix_product(tensor_a, tensor_b, types, transpose_a, transpose_b)

    return _with_bias(product, product_type(out_dtype, tensor_a, tensor_b), bias, "matmul")


@nn_operator(
    gives=(2, 3, 4),
    shapes="(_, _, _), (_, _, _) -> (_, _, _)",
    reference=lambda a, b, oshape=None, out_dtype=None, transpose_a=False, transpose_b=True: matmul_reference(
        a, b, None, out_dtype, transpose_a, transpose_b
    ),
    cases=(
        case(arg((2, 3, 5), "float32"), arg((2, 4, 5), "float32")),
        case(arg((2, 3, 5), "float32"), arg((1, 5, 4), "float32"), transpose_b=False),
        case(arg((2, 5, 3), "float64"), arg((2, 4, 5), "float64"), transpose_a=True),
        case(arg((1, 3, 5), "int8"), arg((2, 4, 5), "int8"), out_dtype="int32"),
        case(arg((0, 3, 5), "float32"), arg((0, 4, 5), "float32")),
    ),
)
def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Any = None,
    out_dtype: Any = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """The products of two batches of matrices, ``(B, M, K)`` by ``(B, N, K)`` (the second one is transposed by default).

    A batch of 1 is taken for each of the other's. ``oshape``, where given, is the shape of the result. Raises as
    :func:`matmul`, and for tensors that have not three dimensions.
    """
    made = matmul(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)
    return made if oshape is None else require_shape(made, oshape, "the result of batch_matmul")


@nn_operator(
    shapes="(…, c@axis, …), (c) -> (…, c@axis, …)",
    reference=lambda x, bias, axis=1: np.moveaxis(np.moveaxis(x, axis, -1) + bias, -1, axis),
    cases=(
        case(arg((2, 3, 4), "float32"), arg((3,), "float32")),
        case(arg((2, 3, 4), "float64"), arg((4,), "float64"), axis=-1), case(arg((2, 3), "int32"), arg((3,), "int32")),
    ),
)  # fmt: skip
def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """``data`` plus ``bias``, which has one element for each index of ``axis``.

    Raises ``TensorExpressionError`` for a ``bias`` of another length.
    """
    channel, out = axis_of(axis, data.ndim), result_type((data.dtype, bias.dtype))
    return te.compute(data.shape, lambda *i: (data(*i) + bias(i[channel])).astype(out), name="bias_add")
