"""Convolutions under the names of their layouts, as TOPI has them: a row each."""

from __future__ import annotations

import math
from typing import Any

from ...te import Tensor
from ..cases import Case
from ..contract import BY_LAYOUT
from ..element_places import chosen, integer
from ..registry import complete
from ..variants import Definition
from . import _references as references
from ._operator import arg, case, nn_operator, of_products
from .checks import require_extent, require_tensor
from .convolution import CONVOLUTION, convolved, usual_kernel_layout
from .layouts import Arranged, Layout, arranged, shape_text

_PLAIN = "data kernel strides padding dilation out_dtype"
_GROUPED = "data kernel strides padding dilation groups out_dtype"


def _shapes(data: str, kernel: str, inputs: str) -> str:
    """The contract of images and a kernel of these layouts."""

    def of(layout: str, **names: str) -> str:
        return f"({', '.join(names.get(letter, '_') for letter in layout)})"

    return f"{of(data, N='n', C=inputs)}, {of(kernel, O='o', I=inputs)} -> {of(data, N='n', C='o')}"


def _row(name: str, gives: tuple[int, ...], *cases: Case, parameters: str = _PLAIN) -> Any:
    """A convolution of images of the layout in its ``name``, which says the dimensions, the layout of the kernel and the
    docstring."""
    layout = name.rpartition("_")[2].upper()
    spatial, kernel = layout.replace("N", "").replace("C", ""), usual_kernel_layout(layout)
    inputs = "C / groups" if parameters == _GROUPED else "C"
    of_one = [n for letter, n in zip(kernel, cases[0].args[1].shape) if letter != "O"]
    return CONVOLUTION.variant(
        name, parameters, f":func:`conv{len(spatial)}d` of ``{shape_text(layout)}`` by ``{shape_text(kernel, I=inputs)}``.",
        cases, gives, shapes=_shapes(layout, kernel, "_" if parameters == _GROUPED else "c"), tolerance=of_products(math.prod(of_one)), spatial=spatial, data_layout=layout, kernel_layout=kernel,
        padding="VALID" if spatial == "W" else 0,
    )  # fmt: skip


_ROWS = [
    _row("conv1d_ncw", (2, 4, 4), case(arg((2, 3, 7)), arg((4, 3, 3)), 2, 1)),
    _row("conv1d_nwc", (2, 4, 4), case(arg((2, 7, 3)), arg((3, 3, 4)), 2, 1)),
    _row("group_conv1d_ncw", (2, 6, 5), case(arg((2, 4, 7)), arg((6, 2, 3)), groups=2), parameters=_GROUPED),
    _row("group_conv1d_nwc", (2, 5, 6), case(arg((2, 7, 4)), arg((3, 2, 6)), groups=2), parameters=_GROUPED),
    _row(
        "conv2d_nchw",
        (1, 3, 5, 6),
        case(arg((1, 2, 5, 6)), arg((3, 2, 3, 3)), 1, 1, 1),
        case(arg((1, 2, 5, 6), "int8"), arg((3, 2, 3, 3), "int8"), 2, 0, 1, "int32"),
    ),
    _row("conv2d_nhwc", (1, 5, 6, 3), case(arg((1, 5, 6, 2)), arg((3, 3, 2, 3)), 1, 1, 1)),
    _row("conv2d_hwcn", (5, 6, 3, 1), case(arg((5, 6, 2, 1)), arg((3, 3, 2, 3)), 1, 1, 1)),
    _row(
        "group_conv2d_nchw",
        (1, 6, 5, 6),
        case(arg((1, 4, 5, 6)), arg((6, 2, 3, 3)), 1, 1, 1, 2),
        case(arg((1, 3, 4, 4)), arg((3, 1, 2, 2)), groups=3),
        parameters=_GROUPED,
    ),
    _row(
        "group_conv2d_nhwc", (1, 5, 6, 6), case(arg((1, 5, 6, 4)), arg((3, 3, 2, 6)), 1, 1, 1, 2), parameters=_GROUPED
    ),
    _row(
        "conv3d_ncdhw", (1, 3, 4, 4, 5), case(arg((1, 2, 3, 4, 4)), arg((3, 2, 2, 3, 2)), 1, 1, 1), parameters=_GROUPED
    ),
    _row(
        "conv3d_ndhwc", (1, 4, 4, 5, 3), case(arg((1, 3, 4, 4, 2)), arg((2, 3, 2, 2, 3)), 1, 1, 1), parameters=_GROUPED
    ),
]


# ---------------------------------------------------------------- channels in groups


@complete
def _packed_reference(
    x: Any, w: Any, strides: Any, padding: Any, dilation: Any, layout: str, out_layout: str, out_dtype: Any, groups: int
) -> Any:
    image, kernel = references.plain(x, "NCHWc", "NCHW"), references.plain(w, "OIHWio", "OIHW")
    made = references.convolved(image, kernel, strides, padding, dilation, groups)
    factor = int("".join(c for c in out_layout if c.isdigit()) or w.shape[-1])
    return references.laid_out(made, "NCHW", "NCHWc", factor)


@nn_operator(
    gives=(1, 1, 4, 5, 4), unstated=BY_LAYOUT, reference=_packed_reference, tolerance=of_products(36),
    cases=[
        case(arg((1, 2, 4, 5, 2)), arg((1, 2, 3, 3, 2, 4)), 1, 1, 1, "NCHW2c", "NCHW4c"),
        case(arg((1, 2, 4, 5, 2)), arg((2, 1, 1, 1, 2, 3)), 1, 0, 1, "NCHW2c", "NCHW6c", groups=2),
        case(arg((1, 1, 3, 3, 4), "uint8"), arg((2, 1, 2, 2, 4, 2), "int8"), 1, 0, 1, out_dtype="int32"),
    ],
)  # fmt: skip
def conv2d_NCHWc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: Any = None,
    groups: int = 1,
) -> Tensor:
    """:func:`conv2d` of channels in groups, ``(N, C // c, H, W, c)``, by ``(O // o, C // i, H, W, i, o)``.

    The groups of the result are as large as ``out_layout`` says (``NCHW8c``), else as those of the kernel's outputs.
    """
    image, weight = arranged(data, layout, "NCHW", "the data"), arranged(kernel, "OIHWio", "OIHW", "the kernel")
    return convolved("HW", image, weight, strides, padding, dilation, groups, out_dtype, out_layout)


# ---------------------------------------------------------------- each channel by kernels of its own

_CHANNELS_BY_KERNELS = {"NCHW": "OIHW", "NHWC": "HWOI"}  # the layout of the kernel: channels as O, kernels of one as I


def _depthwise(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    kernel_layout: str = "",
    out_dtype: Any = None,
    *,
    data_layout: str,
) -> Tensor:
    chosen(kernel_layout, (_CHANNELS_BY_KERNELS[data_layout],), "the layout of the kernel")
    image = arranged(data, data_layout, "NCHW", "the data")
    weight = require_tensor(kernel, "the kernel", 4)
    channels = integer(image.extent("C"), "the number of channels of a depthwise convolution")
    at = kernel_layout.index("O")
    require_extent(weight.shape[at], channels, f"axis {at} of kernel `{weight.name}` {weight.shape}")
    multiplier = integer(weight.shape[kernel_layout.index("I")], "the number of kernels of a channel")
    kernels = Arranged(weight, Layout(tuple(kernel_layout.replace("I", "o")), {"O": multiplier}))
    return convolved("HW", image, kernels, strides, padding, dilation, channels, out_dtype)


def _depthwise_reference(
    data: Any,
    kernel: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    kernel_layout: str,
    out_dtype: Any,
    data_layout: str,
) -> Any:
    kernels = references.plain(kernel, kernel_layout, "OIHW")
    image = references.plain(data, data_layout, "NCHW")
    flat = kernels.reshape(-1, 1, *kernels.shape[2:])
    made = references.convolved(image, flat, strides, padding, dilation, len(kernels))
    return references.laid_out(made, "NCHW", data_layout)


def _depthwise_row(layout: str, parameters: str, gives: tuple[int, ...], *cases: Case) -> Any:
    kernel = _CHANNELS_BY_KERNELS[layout]
    return Definition(_depthwise, _depthwise_reference, "nn", "nn").variant(
        f"depthwise_conv2d_{layout.lower()}",
        parameters,
        f"""
        Each channel of ``{shape_text(layout)}`` by ``M`` kernels of its own, ``{shape_text(kernel, O="C", I="M")}``.

        The result has ``C * M`` channels. Attributes are those of :func:`conv2d`. Raises ``TensorExpressionError`` for a
        kernel of another number of channels.
        """,
        cases,
        gives,
        unstated=BY_LAYOUT,
        tolerance=of_products(9),
        data_layout=layout,
        kernel_layout=kernel,
    )


_DEPTHWISE = [
    _depthwise_row(
        "NCHW",
        _PLAIN,
        (1, 6, 5, 6),
        case(arg((1, 3, 5, 6)), arg((3, 2, 3, 3)), 1, 1, 1),
        case(arg((2, 1, 4, 4)), arg((1, 3, 2, 2)), 2, 0, 1),
        case(arg((1, 3, 5, 5), "int8"), arg((3, 1, 2, 2), "int8"), 1, 0, 2, out_dtype="int32"),
    ),
    _depthwise_row(
        "NHWC",
        "data kernel strides padding dilation kernel_layout out_dtype",
        (1, 5, 6, 6),
        case(arg((1, 5, 6, 3)), arg((3, 3, 3, 2)), 1, 1, 1),
        case(arg((1, 4, 4, 2)), arg((2, 1, 2, 1)), 3),
    ),
]
__test__ = {f.__name__: f for f in (*_ROWS, *_DEPTHWISE)}  # their docstrings have examples
