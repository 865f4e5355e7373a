"""Systems of linear equations: factors of matrices by elimination with partial pivoting, a matrix after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import DType, const, te
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor, error
from ..te.hybrid import statements
from .imperative import loops
from .promotion import result_type
from .registry import arg, case, operator


def _numpy_solve(a: Any, b: Any) -> Any:
    singular = np.linalg.matrix_rank(a) < a.shape[-1]
    made = np.linalg.solve(np.where(singular[..., None, None], np.eye(a.shape[-1]), a), b)
    return np.where(singular[..., None, None], np.nan, made)


def _matrices(*shape: int) -> np.ndarray:
    """Of which elimination exchanges rows: small numbers, and large ones off the diagonal."""
    rng = np.random.default_rng(sum(shape))
    return rng.uniform(-1, 1, shape) + 4 * np.roll(np.eye(shape[-1]), 1, 0)


@operator(
    shapes="(…, n, n), (…, n, k) -> (…, n, k)", section="linear algebra", reference=_numpy_solve,
    cases=[
        case(arg((4, 4), values=_matrices(4, 4)), arg((4, 3))), case(arg((1, 1), values="positive"), arg((1, 2))),
        case(arg((2, 3, 5, 5), "float64", _matrices(2, 3, 5, 5)), arg((2, 3, 5, 1))),
        case(arg((3, 3), values=_matrices(3, 3)), arg((3, 2))), case(arg((0, 0)), arg((0, 2))),
        case(arg((2, 2), values=np.eye(2)), arg((2, 0))),
        case(arg((2, 2, 2), values=np.array([[[0.0, 0], [0, 0]], [[0, 2], [1, 0]]])), arg((2, 2, 1), values="positive")),
        case(arg(("b", "n", "n"), values=_matrices(5, 6, 6)), arg(("b", "n", "k"))),
    ],
)  # fmt: skip
def solve(a: Tensor, b: Tensor) -> Tensor:
    """The ``x`` of ``a @ x = b``: each matrix ``(n, n)`` is made triangular, the row of the largest element of a column first.
    Where ``a`` is singular (an element to divide by is 0), all of ``x`` is NaN.

    Raises ``TensorExpressionError`` for types other than ``float32`` and ``float64``.
    """
    kind = result_type([a.dtype, b.dtype])
    if str(kind) not in ("float32", "float64"):
        raise error(f"equations are solved in float32 or float64, not in {kind}", 'ops.astype(x, "float32")')
    *batch, n, k = b.shape

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        with loops(ib, batch, "b") as at:
            (rows, pivot), (made,) = memory, outs
            for source, target in zip(ins, (rows, made)):
                with loops(ib, source.buffer.shape[-2:], "c") as c:
                    target[(*at, *c)] = source[(*at, *c)].astype(kind)
            with ib.for_range(0, n, "j") as j:
                pivot[at] = j
                below = ib.for_range(j + 1, n, "i")
                with below as i, ib.if_scope(te.abs(rows[(*at, i, j)]) > te.abs(rows[(*at, pivot[at], j)])):
                    pivot[at] = i
                for each, first, last in ((rows, j, n), (made, 0, k)):
                    with ib.for_range(first, last, "c") as c:
                        held = ib.let("held", each[(*at, j, c)])
                        each[(*at, j, c)] = each[(*at, pivot[at], c)]
                        each[(*at, pivot[at], c)] = held
                with ib.if_scope(rows[(*at, j, j)] == const(0, kind)):
                    rows[(*at, j, j)] = const(float("nan"), kind)
                with ib.for_range(j + 1, n, "i") as i:
                    factor = ib.let("factor", rows[(*at, i, j)] / rows[(*at, j, j)])
                    for each, first, last in ((rows, j + 1, n), (made, 0, k)):
                        with ib.for_range(first, last, "c") as c:
                            each[(*at, i, c)] = each[(*at, i, c)] - factor * each[(*at, j, c)]
            with ib.for_range(0, n, "r") as r:
                j = n - 1 - r
                with ib.for_range(0, k, "c") as c:
                    made[(*at, j, c)] = made[(*at, j, c)] / rows[(*at, j, j)]
                with ib.for_range(0, j, "i") as i, ib.for_range(0, k, "c") as c:
                    made[(*at, i, c)] = made[(*at, i, c)] - rows[(*at, i, j)] * made[(*at, j, c)]

    own = [
        ((*batch, n, n), kind),
        (batch, DType("int32")),
    ]  # rows that are left, and the number of the one that is next
    return statements("solve", [a, b], [((*batch, n, k), kind)], body, own)[0]
