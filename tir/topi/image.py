"""``topi.image``: the operators of ``tir.ops.image``, but for those here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ops
from ..ops.element_places import integer
from ..ops.nn.checks import numbers
from ..ops.nn.window_shapes import dilated, pads_of
from ..ops.registry import namespace, reshown
from ..te import Tensor

_own = reshown("image")


@_own
def dilation2d_nchw(
    input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: Any = None
) -> Tensor:
    """``ops.image.dilation2d_nchw``, in which padding is 0.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 2, 5, 5), name="x"), te.placeholder((2, 3, 3), name="w")
    >>> topi.image.dilation2d_nchw(x, w, 1, 1, 1).shape
    (1, 2, 5, 5)
    """
    return _of_zeros(ops.image.dilation2d_nchw, "NCHW", input, filter, stride, padding, dilations, out_dtype)


@_own
def dilation2d_nhwc(
    input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: Any = None
) -> Tensor:
    """``ops.image.dilation2d_nhwc``, in which padding is 0.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 5, 5, 2), name="x"), te.placeholder((3, 3, 2), name="w")
    >>> topi.image.dilation2d_nhwc(x, w, 1, 1, 1).shape
    (1, 5, 5, 2)
    """
    return _of_zeros(ops.image.dilation2d_nhwc, "NHWC", input, filter, stride, padding, dilations, out_dtype)


def _of_zeros(
    operator: Callable[..., Tensor], layout: str, image: Tensor, kernel: Tensor, stride: Any, padding: Any,
    dilations: Any, out_dtype: Any,
) -> Tensor:  # fmt: skip
    """``operator`` of an image with zeros around it."""
    places = [layout.index(a) for a in "HW"]
    first = kernel.ndim - image.ndim  # the filter has no batch
    steps, apart = numbers(stride, 2, "the stride", 1), numbers(dilations, 2, "the dilations", 1)
    spans = [dilated(integer(kernel.shape[n + first], "the extent of a filter"), d) for n, d in zip(places, apart)]
    pads = pads_of(padding, spans, steps, [image.shape[n] for n in places])
    around: list[tuple[Any, Any]] = [(0, 0)] * image.ndim
    for n, pair in zip(places, pads):
        around[n] = pair
    return operator(ops.pad(image, around), kernel, stride, 0, dilations, out_dtype)


__getattr__, __dir__ = namespace(ops.image, globals())
