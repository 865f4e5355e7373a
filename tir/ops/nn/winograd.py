"""Convolutions by kernels of 3 x 3 in fewer products: Winograd's F(m x m, 3 x 3), of Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks" (CVPR 2016).

The result is made in tiles of m x m, each of m + 2 by m + 2 elements of the image. These and the kernel are transformed by small matrices;
then a product over the channels for each of the (m + 2)² places is all that is left, where a plain convolution takes 9 m².
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ... import DType, Expr, Select, const, simplify, te
from ...te import Tensor, equate, error
from ..element_places import constant, integer
from ..products import ProductType, product_type
from ..registry import complete
from . import _references as references
from ._operator import arg, case, nn_operator, of_products
from .checks import numbers, require_float
from .layouts import Arranged, arranged
from .window_shapes import padded, pads_of, window_count

TAPS = 3  # of a kernel in each dimension
TILES = (2, 3, 4)  # sides of tiles
POINTS = (Fraction(0), Fraction(-1), Fraction(1), Fraction(1, 2), Fraction(-2))  # at which polynomials are evaluated

Matrix = tuple[tuple[Fraction, ...], ...]  # rows


class Transforms(NamedTuple):
    """``out ((kernel g) * (image d))`` is the convolution of m + 2 elements d by a kernel g of 3 (``*`` multiplies elements)."""

    image: Matrix
    kernel: Matrix
    out: Matrix


@cache
def transforms(m: int) -> Transforms:
    """The matrices of F(m, 3), by Toom and Cook: as polynomials at m + 1 of ``POINTS`` and at infinity, multiplied there.

    >>> [[str(n) for n in row] for row in transforms(2).kernel]
    [['1', '0', '0'], ['1/2', '-1/2', '1/2'], ['1/2', '1/2', '1/2'], ['0', '0', '1']]
    """
    points = POINTS[: m + 1]
    scales = [_product(p - other for other in points if other != p) for p in points]
    signs = [Fraction(-1 if n == 0 and scale < 0 else 1) for n, scale in enumerate(scales)]
    kernel = [[sign * p**n / scale for n in range(TAPS)] for p, scale, sign in zip(points, scales, signs)]
    image = [[sign * n for n in (*_with_roots([o for o in points if o != p]), 0)] for p, sign in zip(points, signs)]
    out = [[*(p**n for p in points), Fraction(n == m - 1)] for n in range(m)]
    kernel.append([Fraction(n == TAPS - 1) for n in range(TAPS)])
    return Transforms(*map(_matrix, ([*image, _with_roots(points)], kernel, out)))


def _matrix(rows: Iterable[Iterable[Fraction]]) -> Matrix:
    return tuple(map(tuple, rows))


def _product(factors: Iterable[Fraction]) -> Fraction:
    made = Fraction(1)
    for factor in factors:
        made *= factor
    return made


def _with_roots(roots: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients, the constant one first, of the monic polynomial with these roots."""
    made = [Fraction(1)]
    for root in roots:
        made = [above - root * own for above, own in zip([Fraction(0), *made], [*made, Fraction(0)])]
    return tuple(made)


# ---------------------------------------------------------------- as tensor expressions


def _summed(factors: Sequence[Fraction], terms: Callable[[int], Expr]) -> Expr:
    """The sum of terms by number, each times its factor: without those of 0, and one that is added first."""
    used = sorted((n for n, factor in enumerate(factors) if factor), key=lambda n: factors[n] < 0)
    total: Expr | None = None
    for n in used:
        term, size = terms(n), abs(factors[n])
        term = term if size == 1 else term * const(float(size), term.dtype)
        is_less = factors[n] < 0
        total = (-term if is_less else term) if total is None else total - term if is_less else total + term
    assert total is not None
    return total


def _combined(matrix: Matrix, at: Any, element: Callable[[int], Expr]) -> Expr:
    """Element ``at`` of ``matrix x``, where x has ``element``."""
    return _selected(at, [_summed(row, element) for row in matrix])


def _selected(index: Any, values: Sequence[Expr]) -> Expr:
    *others, made = values
    for n, value in reversed(list(enumerate(others))):
        made = Select(index == n, value, made)
    return made


def _transformed(weight: Arranged, m: int, dtype: DType, order: str = "IO") -> Tensor:
    """The kernel as (m + 2, m + 2, I, O), or (m + 2, m + 2, O, I)."""
    matrix, whole = transforms(m).kernel, [weight.extent(axis) for axis in order]

    def of_rows(y: Any, s: Any, *channels: Any) -> Expr:
        place = {**dict(zip(order, channels)), "W": s}
        return _combined(matrix, y, lambda r: weight.at({**place, "H": r}).astype(dtype))

    rows = te.compute((m + 2, TAPS, *whole), of_rows, name="kernel_rows")
    return te.compute(
        (m + 2, m + 2, *whole),
        lambda y, x, *channels: _combined(matrix, x, lambda s: rows[(y, s, *channels)]),
        name="kernel_pack",
    )


def _convolved(data: Tensor, kernel: Arranged, m: int, padding: Any, types: ProductType) -> Tensor:
    """The convolution of (N, H, W, C) by a transformed kernel."""
    of, inputs, outputs = transforms(m), kernel.extent("I"), kernel.extent("O")
    image = arranged(data, "NHWC", "NHWC", "the data")
    batch, *extents, channels = data.shape
    if not equate(channels, inputs):
        raise error(f"data `{data.name}` {data.shape} has {channels!r} channels, but the kernel {inputs!r}")
    pads = pads_of(padding, (TAPS, TAPS), (1, 1), extents)
    out = [window_count(n, TAPS, 1, pad, "the kernel") for n, pad in zip(extents, pads)]
    rows, columns = (simplify((n + m - 1) // m) for n in out)
    ends = [simplify(t * m + 2 - n - pad[0]) for t, n, pad in zip((rows, columns), extents, pads)]
    wide = padded(image, {a: (pad[0], end) for a, pad, end in zip("HW", pads, ends)}).tensor

    across = te.compute(
        (m + 2, batch, rows, wide.shape[2], channels),
        lambda y, n, row, x, c: _combined(of.image, y, lambda r: wide[n, row * m + r, x, c].astype(types.inner)),
        name="data_rows",
    )
    tiles = te.compute(
        (m + 2, m + 2, batch, rows, columns, channels),
        lambda y, x, n, row, column, c: _combined(of.image, x, lambda s: across[y, n, row, column * m + s, c]),
        name="data_pack",
    )
    k = te.reduce_axis((0, channels), "rc")
    products = te.compute(
        (m + 2, m + 2, batch, rows, columns, outputs),
        lambda y, x, n, row, column, o: te.sum(
            tiles[y, x, n, row, column, k] * kernel.at({"H": y, "W": x, "O": o, "I": k}).astype(types.inner), axis=k
        ),
        name="bgemm",
    )

    def of_products_at(n: Any, y: Any, x: Any, o: Any) -> Expr:
        def of_row(row: Sequence[Fraction]) -> Expr:
            return _combined(of.out, x % m, lambda s: _summed(row, lambda r: products[r, s, n, y // m, x // m, o]))

        return _selected(y % m, list(map(of_row, of.out))).astype(types.result)

    return te.compute((batch, *out, outputs), of_products_at, name="conv2d_winograd")


def _require_unit(strides: Any, dilation: Any) -> None:
    for what, given in (("strides", strides), ("dilation", dilation)):
        if set(numbers(given, 2, what, 1)) != {1}:
            raise error(f"{what} is {given!r}", "1: only then do windows of neighbours share what is transformed")


def _side(tile_size: int) -> int:
    if tile_size not in TILES:
        raise error(f"tile_size is {tile_size!r}", f"one of {TILES}")
    return tile_size


def _require_kernel(weight: Arranged) -> None:
    if any(constant(weight.extent(a)) != TAPS for a in "HW"):
        raise error(
            f"kernel `{weight.tensor.name}` {weight.tensor.shape} is {weight.extent('H')!r} x {weight.extent('W')!r}",
            "3 x 3",
        )


# ---------------------------------------------------------------- operators


@complete
def _reference(
    data: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, out_dtype: Any, tile_size: int
) -> Any:
    image, weight = references.plain(data, "NHWC", "NCHW"), references.plain(kernel, "HWIO", "OIHW")
    made = references.convolved(image, weight, strides, padding, dilation, 1)
    return references.laid_out(made, "NCHW", "NHWC")


@nn_operator(
    gives=(1, 6, 6, 4), shapes="(n, _, _, c), (3, 3, c, o) -> (n, _, _, o)", reference=_reference, tolerance=of_products(120),
    cases=[
        case(arg((1, 6, 6, 3)), arg((3, 3, 3, 4)), 1, 1),
        case(arg((2, 5, 7, 2)), arg((3, 3, 2, 3)), padding=(1, 0, 2, 1)),
        case(arg((1, 5, 6, 3)), arg((3, 3, 3, 2)), padding="SAME", tile_size=4),
        case(arg((1, 8, 9, 2), "float64"), arg((3, 3, 2, 2), "float64"), tile_size=3),
        case(arg((1, 4, 4, 2), "float16", "small"), arg((3, 3, 2, 2), "float16", "small"), 1, 1, 1, "float32"),
        case(arg(("n", 4, 5, 2)), arg((3, 3, 2, 3)), 1, 1), case(arg(("n", "h", "w", 2)), arg((3, 3, 2, 2)), 1, 1),
    ],
)  # fmt: skip
def conv2d_winograd_nhwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: Any = None,
    tile_size: int = 2,
) -> Tensor:
    """:func:`conv2d_nhwc` by a kernel of 3 x 3, in fewer products: by Winograd's algorithm, in tiles of ``tile_size`` (2, 3 or 4).

    Tiles of 2 take 4/9 of the products, and are as exact as plain sums; those of 4 take a quarter, and err some ten times as much.
    Strides and dilation are 1, and ``padding`` is as of :func:`conv2d`. Raises ``TensorExpressionError`` for others, and for integers.
    """
    _require_unit(strides, dilation)
    weight = arranged(require_float(kernel, "the kernel"), "HWIO", "OIHW", "the kernel")
    types = product_type(out_dtype, require_float(data, "the data"), kernel)
    _require_kernel(weight)
    packed = arranged(_transformed(weight, _side(tile_size), types.inner), "HWIO", "HWIO", "the kernel")
    return _convolved(data, packed, tile_size, padding, types)


def _array(rows: Matrix) -> np.ndarray:
    return np.array([[float(n) for n in row] for row in rows])


def _weight_reference(kernel: Any, tile_size: int) -> Any:
    by = _array(transforms(tile_size).kernel)
    return np.einsum("yr,xs,oirs->yxoi", by, by, kernel)


@nn_operator(
    gives=(4, 4, 3, 2), shapes="(o, i, 3, 3) float -> (_, _, o, i)", reference=_weight_reference, tolerance=of_products(9),
    cases=[case(arg((3, 2, 3, 3)), 2), case(arg((1, 2, 3, 3), "float64"), 4)],
)  # fmt: skip
def conv2d_winograd_weight_transform(kernel: Tensor, tile_size: int) -> Tensor:
    """The kernel ``(O, C, 3, 3)`` as :func:`conv2d_winograd_nhwc_without_weight_transform` takes it, for tiles of ``tile_size``.

    The result is ``(tile_size + 2, tile_size + 2, O, C)``.
    """
    weight = arranged(kernel, "OIHW", "OIHW", "the kernel")
    return _transformed(weight, _side(tile_size), kernel.dtype, "OI")


@complete
def _transformed_reference(data: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, out_dtype: Any) -> Any:
    m = len(kernel) - TAPS + 1
    of_image, by_rows = _array(transforms(m).image), _array(transforms(m).out)
    extents = data.shape[1:3]
    (top, bottom), (left, right) = references.pads(padding, (TAPS, TAPS), (1, 1), extents)
    out = [n + a + b - 2 for n, (a, b) in zip(extents, ((top, bottom), (left, right)))]
    more = [-n % m for n in out]
    wide = np.pad(data, [(0, 0), (top, bottom + more[0]), (left, right + more[1]), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (m + 2, m + 2), (1, 2))[:, ::m, ::m]
    tiles = np.einsum("yr,xs,nijcrs->yxnijc", of_image, of_image, windows)
    products = np.einsum("yxnijc,yxoc->yxnijo", tiles, kernel)
    made = np.einsum("py,qx,yxnijo->nipjqo", by_rows, by_rows, products)
    n, i, _, j, _, o = made.shape
    return made.reshape(n, i * m, j * m, o)[:, : out[0], : out[1]]


@nn_operator(
    gives=(1, 4, 5, 2), shapes="(n, _, _, c), (t, t, o, c) -> (n, _, _, o)", reference=_transformed_reference, tolerance=of_products(120),
    cases=[
        case(arg((1, 4, 5, 3)), arg((4, 4, 2, 3)), 1, 1),
        case(arg((2, 7, 6, 2), "float64"), arg((6, 6, 3, 2), "float64"), 1, "SAME"),
    ],
)  # fmt: skip
def conv2d_winograd_nhwc_without_weight_transform(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """:func:`conv2d_winograd_nhwc` by a kernel that :func:`conv2d_winograd_weight_transform` has made, ``(t, t, O, C)``.

    Tiles are of ``t - 2``. Raises ``TensorExpressionError`` for strides and dilation that are not 1, for integers, and for
    another t than 4, 5 or 6.
    """
    _require_unit(strides, dilation)
    weight = arranged(require_float(kernel, "the kernel"), "HWOI", "HWOI", "the kernel")
    m = _side(integer(weight.extent("H"), "the extent of a transformed kernel") - TAPS + 1)
    return _convolved(data, weight, m, padding, product_type(out_dtype, require_float(data, "the data"), kernel))


__test__ = {
    f.__name__: f
    for f in (conv2d_winograd_nhwc, conv2d_winograd_weight_transform, conv2d_winograd_nhwc_without_weight_transform)
}
