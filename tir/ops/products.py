"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import DType, Expr, te
from ..te import Tensor, data_type, equate, error
from .contract import BY_RANK
from .element_places import replaced
from .operands import require_kind
from .promotion import result_type, wide
from .registry import arg, case, operator
from .shapes import axis_of, broadcast, read_index

_NUMBERS = ("integer", "float")


class ProductType(NamedTuple):
    """The type of the results of sums of products, and ``inner``, that in which they are made and added."""

    result: DType
    inner: DType

    def sum(self, product: Expr, axis: Any) -> Expr:
        """The sum of products of type ``inner`` over axes, as a result."""
        return te.sum(product, axis=axis).astype(self.result)

    @property
    def unrounded(self) -> ProductType:
        """These products without the conversion to the type of the result, where more is added before it."""
        return ProductType(self.inner, self.inner)


def product_type(out_dtype: Any, *tensors: Tensor) -> ProductType:
    """The types of sums of products of ``tensors``: ``out_dtype``, where it is given, else the type that they are promoted to,
    added up as :func:`tir.ops.sum` does: narrow floats in ``float32``, and rounded once.

    Raises ``TensorExpressionError`` where there is none.

    >>> product_type(None, te.placeholder((2,), "float16"))
    ProductType(result='float16', inner='float32')
    """
    if out_dtype not in (None, ""):
        return ProductType(data_type(out_dtype), data_type(out_dtype))
    result = result_type(t.dtype for t in tensors)
    return ProductType(result, wide(result))


def product_of_matrices(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of two matrices, row by column."""
    kind = np.float64 if x.dtype.kind == "f" else np.int64
    made = np.zeros((len(x), y.shape[1]), kind)
    for m, n in np.ndindex(*made.shape):
        made[m, n] = (x[m].astype(kind) * y[:, n].astype(kind)).sum()
    return made


def _matrices(x: Any, transpose: bool) -> np.ndarray:
    return np.swapaxes(x, -1, -2) if transpose else x


def matmul_reference(
    a: Any, b: Any, bias: Any = None, out_dtype: Any = None, transpose_a: bool = False, transpose_b: bool = False
) -> np.ndarray:
    x = a[None] if a.ndim == 1 else _matrices(a, transpose_a)
    y = b[:, None] if b.ndim == 1 else _matrices(b, transpose_b)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    xs, ys = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (x, y))
    made = np.empty((*batch, x.shape[-2], y.shape[-1]), np.result_type(x, y, np.int64))
    for at in np.ndindex(*batch):
        made[at] = product_of_matrices(xs[at], ys[at])
    made = made.reshape((*batch, *x.shape[-2:-1][: a.ndim > 1], *y.shape[-1:][: b.ndim > 1]))
    return made if bias is None else made + bias


@operator(
    gives=(3, 4), unstated=BY_RANK, section="linear algebra",
    reference=lambda a, b, transp_a=False, transp_b=False, out_dtype=None: matmul_reference(
        a, b, None, out_dtype, transp_a, transp_b
    ),
    cases=[
        case(arg((3, 5)), arg((5, 4))), case(arg((7, 3), "float64"), arg((4, 7), "float32"), True, True),
        case(arg((5,), "float64"), arg((5,), "float64")), case(arg((2, 3, 5)), arg((5,)), transp_b=True),
        case(arg((1,), "float16"), arg((2, 1, 3), "float16")), case(arg((2, 1, 3, 5)), arg((4, 2, 5)), transp_b=True),
        case(arg((3, 5), "int8"), arg((5, 1), "uint8")),
        case(arg((2, 7), "float16"), arg((7, 3), "float16"), out_dtype="float32"),
        case(arg((1, 4), "int64"), arg((4, 3), "int32")), case(arg((3, 0)), arg((0, 4))),
        case(arg((0, 3, 2)), arg((1, 2, 5))), case(arg(("n", "m")), arg(("m", 2))),
        case(arg((3, 4), "float32", "nonfinite"), arg((4, 3), "float32", "nonfinite")),
    ],
)  # fmt: skip
def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False, out_dtype: Any = None) -> Tensor:
    """The product as in NumPy: ``(…, M, K)`` by ``(…, K, N)``, batches broadcast; one dimension is a row or a column.

    ``transp_a`` and ``transp_b`` say that the last two dimensions of an operand are exchanged. Products are made and
    added in ``out_dtype``, by default the type that the operands are promoted to; then narrow floats are added up in ``float32``. With a bias it is
    ``nn.matmul``. Raises ``TensorExpressionError`` where shapes do not agree, for tensors of no dimensions, and for bools.
    """
    return matrix_product(a, b, _numeric_type(a, b, out_dtype), transp_a, transp_b)


def _numeric_type(a: Tensor, b: Tensor, out_dtype: Any = None) -> ProductType:
    types = product_type(out_dtype, a, b)
    require_kind(types.result, _NUMBERS, "an operand")
    return types


def matrix_product(
    first: Tensor, second: Tensor, types: ProductType, transpose_first: bool, transpose_second: bool
) -> Tensor:
    """The product of vectors, matrices or batches of them."""
    a = _Operand(first, "the first operand of matmul", transpose_first, is_row=True)
    b = _Operand(second, "the second operand of matmul", transpose_second, is_row=False)
    if not equate(a.columns, b.rows):
        raise error(
            f"matmul of {a} and {b} adds over {a.columns!r} elements of one and {b.rows!r} of the other",
            "(…, M, K) by (…, K, N)",
        )
    batch = broadcast(a.batch, b.batch)
    shape = (*batch, *([] if a.is_vector else [a.rows]), *([] if b.is_vector else [b.columns]))
    k = te.reduce_axis((0, a.columns), "k")

    def element(*i: Any) -> Expr:
        row, column = (None if a.is_vector else i[len(batch)]), (None if b.is_vector else i[-1])
        x, y = (m.at(batch, i[: len(batch)], *at) for m, at in ((a, (row, k)), (b, (k, column))))
        return types.sum(x.astype(types.inner) * y.astype(types.inner), axis=k)

    return te.compute(shape, element, name="matmul")


class _Operand:
    """An operand of a product, as matrices."""

    def __init__(self, tensor: Tensor, what: str, transpose: bool, is_row: bool):
        if not tensor.ndim:
            raise error(f"{what} has a dimension at least, but `{tensor.name}` is a scalar")
        self.tensor = tensor
        self.is_vector = tensor.ndim == 1
        self.transpose = transpose and not self.is_vector
        shape = tensor.shape
        self.batch = shape[:-2]
        pair = ((1, shape[0]) if is_row else (shape[0], 1)) if self.is_vector else shape[-2:]
        self.rows, self.columns = pair[::-1] if self.transpose else pair

    def at(self, shape: Any, batch: Sequence[Any], row: Any, column: Any) -> Expr:
        if self.is_vector:
            return self.tensor(row if column is None else column)
        own = read_index(self.batch, shape, batch)
        return self.tensor(*own, *((column, row) if self.transpose else (row, column)))

    def __str__(self) -> str:
        return f"`{self.tensor.name}` {self.tensor.shape}{' transposed' * self.transpose}"


def _numpy_vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    return (np.moveaxis(x1, axis, -1) * np.moveaxis(x2, axis, -1).astype(np.result_type(x2, np.int64))).sum(-1)


@operator(
    gives=(3,), unstated="the axis may be another one of each, and the others broadcast", section="linear algebra",
    reference=_numpy_vecdot,
    cases=[
        case(arg((3, 5)), arg((3, 5))), case(arg((5,), "float64"), arg((5,), "float32")),
        case(arg((2, 1, 7)), arg((3, 7))), case(arg((3, 1), "float16"), arg((3, 4), "float16"), -2),
        case(arg((4, 2, 3)), arg((4, 1, 3)), axis=0), case(arg((5, 2), "int8"), arg((5, 1), "uint8"), axis=0),
        case(arg((2, 0)), arg((1, 0))), case(arg((0, 3), "int64"), arg((3,), "int64")),
        case(arg((2, "n")), arg(("n",))), case(arg((3, 9), "bfloat16"), arg((9,), "bfloat16")),
        case(arg((3, 4), "float32", "nonfinite"), arg((4,), "float32", "nonfinite")),
    ],
)  # fmt: skip
def vecdot(x1: Tensor, x2: Tensor, axis: int = -1) -> Tensor:
    """The sums of the products along ``axis`` of both tensors; the other axes broadcast.

    ``axis`` is counted in each tensor. Types are promoted. Raises ``TensorExpressionError`` where the extents along it
    differ or the others do not broadcast, and for bools.
    """
    axes = [axis_of(axis, x.ndim) for x in (x1, x2)]
    extents = [x.shape[at] for x, at in zip((x1, x2), axes)]
    if not equate(*extents):
        raise error(f"`{x1.name}` has {extents[0]!r} elements along axis {axis}, and `{x2.name}` {extents[1]!r}")
    types = _numeric_type(x1, x2)
    rest = [replaced(x.shape, at) for x, at in zip((x1, x2), axes)]
    shape = broadcast(*rest)
    k = te.reduce_axis((0, extents[0]), "k")

    def element(*i: Any) -> Expr:
        own = [read_index(left, shape, i) for left in rest]
        x, y = (t(*at[:n], k, *at[n:]).astype(types.inner) for t, at, n in zip((x1, x2), own, axes))
        return types.sum(x * y, axis=k)

    return te.compute(shape, element, name="vecdot")
