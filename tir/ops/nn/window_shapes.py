"""Windows that slide over an image: how much is added at its ends, and how many of them there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import Expr, all_of, const, simplify, te
from ... import max as max_
from ...te import error
from ..element_places import chosen, constant
from .checks import numbers
from .layouts import Arranged

Pads = tuple[tuple[Any, Any], ...]  # before and after, for each dimension


def pads_of(padding: Any, sizes: Sequence[int], strides: Sequence[int], extents: Sequence[Any]) -> Pads:
    """How much is added before and after each dimension of an image of ``extents``.

    ``padding``: a number for all; a number for each dimension; numbers for all beginnings and then for all ends;
    ``"VALID"``: nothing; ``"SAME"``: ``size - 1``, with the odd one at the beginning, as topi has it; ``"SAME_UPPER"``: as much as makes
    ``ceil(extent / stride)`` windows, with the odd one at the end (``"SAME_LOWER"``: at the beginning), as ONNX has it. Raises ``TensorExpressionError`` for anything else.
    """
    count = len(sizes)
    if isinstance(padding, str):
        word = chosen(padding.upper(), ("VALID", "SAME", "SAME_UPPER", "SAME_LOWER"), "the padding")
        if word == "VALID":
            return ((0, 0),) * count
        return tuple(_same(word, *each) for each in zip(sizes, strides, extents))
    ends = 2 if isinstance(padding, (list, tuple)) and len(padding) == 2 * count else 1
    made = numbers(padding, ends * count, "the padding")
    return tuple(zip(made[:count], made[-count:]))


def _same(word: str, size: int, stride: int, extent: Any) -> tuple[Any, Any]:
    if stride == 1 or word == "SAME":
        total: Any = size - 1
    else:
        beyond = (
            size - 1 - (extent - 1) % stride
        )  # what the last window has behind its first element, less what the image has
        total = max(beyond, 0) if isinstance(beyond, int) else simplify(max_(beyond, 0))
    less = total // 2
    return (less, total - less) if word == "SAME_UPPER" else (total - less, less)


def dilated(size: int, dilation: int) -> int:
    """The extent of a window of ``size`` elements that are ``dilation`` apart."""
    return (size - 1) * dilation + 1


def window_count(extent: Any, size: int, stride: int, pads: tuple[Any, Any], what: str) -> Any:
    """How many windows of ``size`` fit into an extent with ``pads``.

    Raises ``TensorExpressionError`` where not one does.
    """
    room = simplify(extent + pads[0] + pads[1] - size)
    known = constant(room)
    if known is not None and known < 0:
        raise error(
            f"{what} of {size} elements is larger than the {extent!r} elements that it slides over, with {pads[0]} before and "
            f"{pads[1]} after them"
        )
    return simplify(room // stride + 1)


def padded(image: Arranged, pads: Mapping[str, tuple[Any, Any]], value: Any = 0) -> Arranged:
    """``image`` with ``value`` before and after the elements of some axes. Where nothing is added it is ``image``."""
    pads = {axis: pair for axis, pair in pads.items() if any(constant(p) != 0 for p in pair)}
    if not pads:
        return image
    whole = {a: image.extent(a) for a in image.layout.parts if a.isupper()}
    extents = {a: simplify(whole[a] + sum(pads.get(a, (0, 0)))) for a in whole}
    dtype = image.tensor.dtype

    def element(*indices: Any) -> Expr:
        place, conditions = image.layout.coordinates(indices), []
        for axis, (before, after) in pads.items():
            place[axis] = place[axis] - before
            conditions += [place[axis] >= 0] if constant(before) != 0 else []
            conditions += [place[axis] < whole[axis]] if constant(after) != 0 else []
        return te.if_then_else(all_of(conditions), image.at(place), const(value, dtype))

    made = te.compute(image.layout.shape(extents), element, name="pad_temp")
    return Arranged(made, image.layout)
