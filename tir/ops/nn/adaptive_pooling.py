"""Pooling to a number of windows that is given: all of the image, or as many as are asked for."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import numpy as np

from ... import Expr, simplify, te
from ...te import Tensor
from ..cases import Case
from ..contract import BY_LAYOUT
from ..element_places import constant, integer
from ..reduction import maximum_reducer
from ..variants import Definition
from . import _references as references
from ._operator import arg, case, nn_operator
from .checks import numbers
from .layouts import arranged
from .pooling import mean_of, sum_type


class _Parts:
    """An axis in ``count`` parts, which begin at ``floor(i * extent / count)`` and end at ``ceil((i + 1) * extent / count)``."""

    def __init__(self, name: str, extent: Any, count: int):
        self.name, self.extent, self.count = name, extent, count
        known = constant(extent)
        self.is_even = count == 1 or (known is not None and known % count == 0)

    def first(self, at: Any) -> Any:
        return simplify(at * (self.extent // self.count) if self.is_even else at * self.extent // self.count)

    def size(self, at: Any) -> Any:
        if self.is_even:
            return simplify(self.extent // self.count)
        end = ((at + 1) * self.extent + self.count - 1) // self.count
        return simplify(end - self.first(at))


def _adaptive(
    data: Tensor, output_size: Any, pool_type: Literal["max", "avg"], layout: str = "", *, spatial: str
) -> Tensor:
    counts = _counts(output_size, len(spatial))
    image = arranged(data, layout, f"NC{spatial}", "the data")
    parts = [
        _Parts(a, image.extent(a), integer(image.extent(a) if n is None else n, "the number of windows"))
        for a, n in zip(spatial, counts)
    ]
    dtype = image.tensor.dtype
    extents = {a: image.extent(a) for a in image.layout.parts if a.isupper()}
    shape = image.layout.shape({**extents, **{p.name: p.count for p in parts}})
    name = f"adaptive_{pool_type}_pool"

    def element(*indices: Any) -> Expr:
        place = image.layout.coordinates(indices)
        window = [te.reduce_axis((0, p.size(place[p.name])), f"r{p.name.lower()}") for p in parts]
        value = image.at({**place, **{p.name: p.first(place[p.name]) + k for p, k in zip(parts, window)}})
        return (
            maximum_reducer(value, axis=window)
            if pool_type == "max"
            else te.sum(value.astype(sum_type(dtype)), axis=window)
        )

    if pool_type == "max":
        return te.compute(shape, element, name=name)
    sums = te.compute(shape, element, name=f"{name}_sum")

    def elements(place: Any) -> Any:
        made: Any = 1
        for p in parts:
            made = made * p.size(place[p.name])
        return made

    return mean_of(sums, image.layout, elements, dtype, name)


def _reference(data: Any, output_size: Any, pool_type: str, layout: str, spatial: str) -> np.ndarray:
    image = references.plain(data, layout, f"NC{spatial}")
    given = references.each(output_size, len(spatial))
    counts = [n if c is None else c for c, n in zip(given, image.shape[2:])]
    found = {}
    for at in itertools.product(*map(range, counts)):
        ends = [
            (int(np.floor(a * n / c)), int(np.ceil((a + 1) * n / c))) for a, n, c in zip(at, image.shape[2:], counts)
        ]
        window = image[(..., *(slice(*e) for e in ends))]
        window = window.reshape(*image.shape[:2], math.prod(window.shape[2:]))
        mean = window.max(axis=-1) if pool_type == "max" else window.mean(axis=-1)
        found[at] = mean if data.dtype.kind == "f" else np.trunc(mean).astype(np.int64)
    return references.laid_out(references.gathered(found), f"NC{spatial}", layout, data.shape[-1])


def _operator(name: str, doc: str, spatial: str, gives: tuple[int, ...], *cases: Case, aliases: Any = ()) -> Any:
    return Definition(_adaptive, _reference, "nn", "nn").variant(
        name,
        "data output_size pool_type layout",
        doc,
        cases,
        gives,
        unstated=BY_LAYOUT,
        aliases=aliases,
        spatial=spatial,
        layout=f"NC{spatial}",
    )


_OPERATORS = [
    _operator(
        "adaptive_pool1d",
        "As :func:`adaptive_pool`, of one dimension.",
        "W",
        (2, 3, 3),
        case(arg((2, 3, 7)), 3, "avg"),
        case(arg((2, 3, 6)), 2, "max"),
        case(arg((1, 2, 3)), 5, "avg"),
        case(arg((0, 2, 7)), 3, "avg"),
    ),
    _operator(
        "adaptive_pool",
        """
        The largest element (``"max"``) or the mean (``"avg"``) of each of ``output_size`` parts of an image.

        ``output_size`` is one integer, or one each of rows and columns (None: as many as there are). Part ``i`` of ``n`` has
        the elements from ``floor(i * extent / n)`` to ``ceil((i + 1) * extent / n)``; parts may overlap. Raises
        ``TensorExpressionError`` for another ``pool_type``, a size below 1, and a layout that is none.
        """,
        "HW",
        (1, 2, 3, 2),
        case(arg((1, 2, 7, 5)), (3, 2), "avg"),
        case(arg((1, 2, 7, 5)), (3, 2), "max"),
        case(arg((1, 6, 4, 3)), (3, None), "avg", "NHWC"),
        case(arg((1, 2, 4, 4, 3)), 1, "avg", "NCHWc"),
        case(arg((1, 2, 5, 5), "int8"), 2, "avg"),
        case(arg(("n", 2, "h", "w")), 1, "avg"),
        case(arg((1, 2, 3, 5), "float16"), 2, "avg"),
        aliases=("adaptive_pool2d",),
    ),
    _operator(
        "adaptive_pool3d",
        "As :func:`adaptive_pool`, of three dimensions.",
        "DHW",
        (1, 2, 2, 2, 3),
        case(arg((1, 2, 3, 4, 5)), (2, 2, 3), "avg"),
    ),
]
__test__ = {f.__name__: f for f in _OPERATORS}  # their docstrings have examples


def _counts(output_size: Any, rank: int) -> list[Any]:
    given = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
    numbers([1 if n is None else n for n in given], rank, "the number of windows", 1)
    return given * (rank // len(given))


@nn_operator(
    gives=(2, 3, 1, 1), unstated=BY_LAYOUT,
    reference=lambda x, pool_type, layout="NCHW": _reference(x, 1, pool_type, layout, _spatial(layout)),
    cases=(
        case(arg((2, 3, 4, 5)), "avg"), case(arg((2, 4, 5, 3)), "max", "NHWC"), case(arg((2, 3, 4)), "avg", "NCW"),
        case(arg((1, 2, 2, 3, 2)), "max", "NCDHW"), case(arg(("n", 3, "h", "w")), "max"),
    ),
)  # fmt: skip
def global_pool(data: Tensor, pool_type: Literal["max", "avg"], layout: str = "NCHW") -> Tensor:
    """The largest element (``"max"``) or the mean (``"avg"``) of each channel; its other axes have extent 1 then."""
    return _adaptive(data, 1, pool_type, layout, spatial=_spatial(layout))


def _spatial(layout: str) -> str:
    """The axes of a layout that are pooled."""
    return "".join(c for c in layout if c.isupper() and c not in "NC")
