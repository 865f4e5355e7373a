"""Convolutions under the names of their layouts, as TOPI has them; all are :func:`tir.ops.nn.convolution.conv2d`."""

from __future__ import annotations

from typing import Any

from ...te.tensor import Tensor
from ..places import chosen, integer
from . import _references as references
from ._operator import arg, case, nn_operator, of_products
from .checks import require_extent, require_tensor
from .convolution import convolution, convolved
from .layouts import Arranged, Layout, arranged


def _reference(data_layout: str, kernel_layout: str) -> Any:
    order = data_layout.replace("N", "").replace("C", "")

    def reference(
        x: Any, w: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, out_dtype: Any = None
    ) -> Any:
        images, kernels = (
            references.plain(x, data_layout, "NC" + order),
            references.plain(w, kernel_layout, "OI" + order),
        )
        made = references.convolved(images, kernels, strides, padding, dilation, groups)
        return references.laid_out(made, "NC" + order, data_layout)

    return reference


def _ungrouped(data_layout: str, kernel_layout: str) -> Any:
    grouped = _reference(data_layout, kernel_layout)
    return lambda x, w, strides=1, padding=0, dilation=1, out_dtype=None: grouped(x, w, strides, padding, dilation)


@nn_operator(
    reference=_ungrouped("NCW", "OIW"),
    tolerance=of_products(10),
    cases=[case(arg((2, 3, 7)), arg((4, 3, 3)), 2, 1)],
)
def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """:func:`conv1d` of ``(N, C, W)`` by ``(O, C, W)``.

    >>> from tir import te, topi
    >>> topi.nn.conv1d_ncw(te.placeholder((2, 3, 7)), te.placeholder((4, 3, 3)), 2, 1)
    Tensor(conv1d, (2, 4, 4), float32)
    """
    return convolution("W", data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype)


@nn_operator(
    reference=_ungrouped("NWC", "WIO"),
    tolerance=of_products(10),
    cases=[case(arg((2, 7, 3)), arg((3, 3, 4)), 2, 1)],
)
def conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """:func:`conv1d` of ``(N, W, C)`` by ``(W, C, O)``.

    >>> from tir import te, topi
    >>> topi.nn.conv1d_nwc(te.placeholder((2, 7, 3)), te.placeholder((3, 3, 4)), 2, 1)
    Tensor(conv1d, (2, 4, 4), float32)
    """
    return convolution("W", data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype)


@nn_operator(
    reference=_reference("NCW", "OIW"), tolerance=of_products(6), cases=[case(arg((2, 4, 7)), arg((6, 2, 3)), groups=2)]
)
def group_conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: Any = None,
) -> Tensor:
    """:func:`conv1d` of ``(N, C, W)`` by ``(O, C / groups, W)``.

    >>> from tir import te, topi
    >>> topi.nn.group_conv1d_ncw(te.placeholder((2, 4, 7)), te.placeholder((6, 2, 3)), groups=2)
    Tensor(conv1d, (2, 6, 5), float32)
    """
    return convolution("W", data, kernel, strides, padding, dilation, groups, "NCW", "OIW", out_dtype)


@nn_operator(
    reference=_reference("NWC", "WIO"), tolerance=of_products(6), cases=[case(arg((2, 7, 4)), arg((3, 2, 6)), groups=2)]
)
def group_conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: Any = None,
) -> Tensor:
    """:func:`conv1d` of ``(N, W, C)`` by ``(W, C / groups, O)``.

    >>> from tir import te, topi
    >>> topi.nn.group_conv1d_nwc(te.placeholder((2, 7, 4)), te.placeholder((3, 2, 6)), groups=2)
    Tensor(conv1d, (2, 5, 6), float32)
    """
    return convolution("W", data, kernel, strides, padding, dilation, groups, "NWC", "WIO", out_dtype)


@nn_operator(
    reference=_ungrouped("NCHW", "OIHW"),
    tolerance=of_products(18),
    cases=[
        case(arg((1, 2, 5, 6)), arg((3, 2, 3, 3)), 1, 1, 1),
        case(arg((1, 2, 5, 6), "int8"), arg((3, 2, 3, 3), "int8"), 2, 0, 1, "int32"),
    ],
)
def conv2d_nchw(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """:func:`conv2d` of ``(N, C, H, W)`` by ``(O, C, H, W)``.

    >>> from tir import te, topi
    >>> topi.nn.conv2d_nchw(te.placeholder((1, 2, 5, 6)), te.placeholder((3, 2, 3, 3)), 1, 1, 1)
    Tensor(conv2d, (1, 3, 5, 6), float32)
    """
    return convolution("HW", data, kernel, strides, padding, dilation, 1, "NCHW", "OIHW", out_dtype)


@nn_operator(
    reference=_ungrouped("NHWC", "HWIO"),
    tolerance=of_products(18),
    cases=[case(arg((1, 5, 6, 2)), arg((3, 3, 2, 3)), 1, 1, 1)],
)
def conv2d_nhwc(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """:func:`conv2d` of ``(N, H, W, C)`` by ``(H, W, C, O)``.

    >>> from tir import te, topi
    >>> topi.nn.conv2d_nhwc(te.placeholder((1, 5, 6, 2)), te.placeholder((3, 3, 2, 3)), 1, 1, 1)
    Tensor(conv2d, (1, 5, 6, 3), float32)
    """
    return convolution("HW", data, kernel, strides, padding, dilation, 1, "NHWC", "HWIO", out_dtype)


@nn_operator(
    reference=_ungrouped("HWCN", "HWIO"),
    tolerance=of_products(18),
    cases=[case(arg((5, 6, 2, 1)), arg((3, 3, 2, 3)), 1, 1, 1)],
)
def conv2d_hwcn(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """:func:`conv2d` of ``(H, W, C, N)`` by ``(H, W, C, O)``.

    >>> from tir import te, topi
    >>> topi.nn.conv2d_hwcn(te.placeholder((5, 6, 2, 1)), te.placeholder((3, 3, 2, 3)), 1, 1, 1)
    Tensor(conv2d, (5, 6, 3, 1), float32)
    """
    return convolution("HW", data, kernel, strides, padding, dilation, 1, "HWCN", "HWIO", out_dtype)


def _packed_reference(
    x: Any,
    w: Any,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "",
    out_layout: str = "",
    out_dtype: Any = None,
    groups: int = 1,
) -> Any:
    made = references.convolved(
        references.plain(x, "NCHWc", "NCHW"), references.plain(w, "OIHWio", "OIHW"), strides, padding, dilation, groups
    )
    factor = int("".join(c for c in out_layout if c.isdigit()) or w.shape[-1])
    return references.laid_out(made, "NCHW", "NCHWc", factor)


@nn_operator(
    reference=_packed_reference,
    tolerance=of_products(36),
    cases=[
        case(arg((1, 2, 4, 5, 2)), arg((1, 2, 3, 3, 2, 4)), 1, 1, 1, "NCHW2c", "NCHW4c"),
        case(arg((1, 2, 4, 5, 2)), arg((2, 1, 1, 1, 2, 3)), 1, 0, 1, "NCHW2c", "NCHW6c", groups=2),
        case(arg((1, 1, 3, 3, 4), "uint8"), arg((2, 1, 2, 2, 4, 2), "int8"), 1, 0, 1, out_dtype="int32"),
    ],
)
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

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 2, 8, 8, 4), name="x"), te.placeholder((1, 2, 3, 3, 4, 8), name="w")
    >>> topi.nn.conv2d_NCHWc(x, w, padding=1)
    Tensor(conv2d, (1, 1, 8, 8, 8), float32)
    """
    image, weight = arranged(data, layout, "NCHW", "the data"), arranged(kernel, "OIHWio", "OIHW", "the kernel")
    return convolved("HW", image, weight, strides, padding, dilation, groups, out_dtype, out_layout)


@nn_operator(
    reference=_reference("NCHW", "OIHW"),
    tolerance=of_products(18),
    cases=[
        case(arg((1, 4, 5, 6)), arg((6, 2, 3, 3)), 1, 1, 1, 2),
        case(arg((1, 3, 4, 4)), arg((3, 1, 2, 2)), groups=3),
    ],
)
def group_conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: Any = None,
) -> Tensor:
    """:func:`conv2d` of ``(N, C, H, W)`` by ``(O, C / groups, H, W)``.

    >>> from tir import te, topi
    >>> topi.nn.group_conv2d_nchw(te.placeholder((1, 4, 5, 6)), te.placeholder((6, 2, 3, 3)), 1, 1, 1, 2)
    Tensor(conv2d, (1, 6, 5, 6), float32)
    """
    return convolution("HW", data, kernel, strides, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


@nn_operator(
    reference=_reference("NHWC", "HWIO"),
    tolerance=of_products(18),
    cases=[case(arg((1, 5, 6, 4)), arg((3, 3, 2, 6)), 1, 1, 1, 2)],
)
def group_conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: Any = None,
) -> Tensor:
    """:func:`conv2d` of ``(N, H, W, C)`` by ``(H, W, C / groups, O)``.

    >>> from tir import te, topi
    >>> topi.nn.group_conv2d_nhwc(te.placeholder((1, 5, 6, 4)), te.placeholder((3, 3, 2, 6)), 1, 1, 1, 2)
    Tensor(conv2d, (1, 5, 6, 6), float32)
    """
    return convolution("HW", data, kernel, strides, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


@nn_operator(
    reference=_reference("NCDHW", "OIDHW"),
    tolerance=of_products(24),
    cases=[case(arg((1, 2, 3, 4, 4)), arg((3, 2, 2, 3, 2)), 1, 1, 1)],
)
def conv3d_ncdhw(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: Any = None,
) -> Tensor:
    """:func:`conv3d` of ``(N, C, D, H, W)`` by ``(O, C / groups, D, H, W)``.

    >>> from tir import te, topi
    >>> topi.nn.conv3d_ncdhw(te.placeholder((1, 2, 3, 4, 4)), te.placeholder((3, 2, 2, 3, 2)), 1, 1, 1)
    Tensor(conv3d, (1, 3, 4, 4, 5), float32)
    """
    return convolution("DHW", data, kernel, strides, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


@nn_operator(
    reference=_reference("NDHWC", "DHWIO"),
    tolerance=of_products(24),
    cases=[case(arg((1, 3, 4, 4, 2)), arg((2, 3, 2, 2, 3)), 1, 1, 1)],
)
def conv3d_ndhwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: Any = None,
) -> Tensor:
    """:func:`conv3d` of ``(N, D, H, W, C)`` by ``(D, H, W, C / groups, O)``.

    >>> from tir import te, topi
    >>> topi.nn.conv3d_ndhwc(te.placeholder((1, 3, 4, 4, 2)), te.placeholder((2, 3, 2, 2, 3)), 1, 1, 1)
    Tensor(conv3d, (1, 4, 4, 5, 3), float32)
    """
    return convolution("DHW", data, kernel, strides, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype)


# ---------------------------------------------------------------- each channel by kernels of its own


def _depthwise(
    data: Tensor,
    kernel: Tensor,
    parts: str,
    data_layout: str,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: Any,
) -> Tensor:
    """``parts`` has the dimensions of the kernel: channels as O, and kernels of a channel as o."""
    image = arranged(data, data_layout, "NCHW", "the data")
    weight = require_tensor(kernel, "the kernel", 4)
    channels = integer(image.extent("C"), "the number of channels of a depthwise convolution")
    require_extent(
        weight.shape[parts.index("O")], channels, f"axis {parts.index('O')} of kernel `{weight.name}` {weight.shape}"
    )
    multiplier = integer(weight.shape[parts.index("o")], "the number of kernels of a channel")
    kernels = Arranged(weight, Layout(tuple(parts), {"O": multiplier}))
    return convolved("HW", image, kernels, strides, padding, dilation, channels, out_dtype)


def _depthwise_reference(kernel_order: Any, data_layout: str) -> Any:
    def reference(x: Any, w: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1, **_: Any) -> Any:
        kernels = w.transpose(kernel_order)
        flat = kernels.reshape(-1, 1, *kernels.shape[2:])
        image = references.plain(x, data_layout, "NCHW")
        made = references.convolved(image, flat, strides, padding, dilation, len(kernels))
        return references.laid_out(made, "NCHW", data_layout)

    return reference


@nn_operator(
    reference=_depthwise_reference((0, 1, 2, 3), "NCHW"),
    tolerance=of_products(9),
    cases=[
        case(arg((1, 3, 5, 6)), arg((3, 2, 3, 3)), 1, 1, 1),
        case(arg((2, 1, 4, 4)), arg((1, 3, 2, 2)), 2, 0, 1),
        case(arg((1, 3, 5, 5), "int8"), arg((3, 1, 2, 2), "int8"), 1, 0, 2, out_dtype="int32"),
    ],
)
def depthwise_conv2d_nchw(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """Each channel of ``(N, C, H, W)`` by ``M`` kernels of its own, ``(C, M, H, W)``: ``(N, C * M, …)``.

    Attributes are those of :func:`conv2d`. Raises ``TensorExpressionError`` for a kernel of another number of channels.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 8, 6, 6), name="x"), te.placeholder((8, 2, 3, 3), name="w")
    >>> topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)
    Tensor(conv2d, (1, 16, 6, 6), float32)
    """
    return _depthwise(data, kernel, "OoHW", "NCHW", strides, padding, dilation, out_dtype)


@nn_operator(
    reference=_depthwise_reference((2, 3, 0, 1), "NHWC"),
    tolerance=of_products(9),
    cases=[case(arg((1, 5, 6, 3)), arg((3, 3, 3, 2)), 1, 1, 1), case(arg((1, 4, 4, 2)), arg((2, 1, 2, 1)), 3)],
)
def depthwise_conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    kernel_layout: str = "HWOI",
    out_dtype: Any = None,
) -> Tensor:
    """Each channel of ``(N, H, W, C)`` by ``M`` kernels of its own, ``(H, W, C, M)``: ``(N, …, C * M)``.

    Raises as :func:`depthwise_conv2d_nchw`.

    >>> from tir import te, topi
    >>> topi.nn.depthwise_conv2d_nhwc(te.placeholder((1, 5, 6, 3)), te.placeholder((3, 3, 3, 2)), 1, 1, 1)
    Tensor(conv2d, (1, 5, 6, 6), float32)
    """
    chosen(kernel_layout, ("HWOI",), "the layout of the kernel")
    return _depthwise(data, kernel, "HWOo", "NHWC", strides, padding, dilation, out_dtype)
