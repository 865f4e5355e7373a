"""Convolutions of one to three dimensions, in any layout: windows of the image, multiplied by the kernel and added up.

Products are made and added in ``out_dtype``, by default the type of the operands; narrow floats then in ``float32``.
"""

from __future__ import annotations

from typing import Any

from ... import Expr, te
from ...te import Tensor, equate, error, is_multiple
from ..cases import Case
from ..contract import BY_LAYOUT
from ..element_places import constant, integer
from ..products import product_type
from ..variants import Definition
from . import _references as references
from ._operator import arg, case, of_products
from .checks import numbers
from .layouts import Arranged, Layout, arranged
from .window_shapes import dilated, padded, pads_of, window_count

_KERNELS = {
    "NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO",
}  # fmt: skip


def convolution(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    data_layout: str = "",
    kernel_layout: str = "",
    out_dtype: Any = None,
    groups: int = 1,
    *,
    spatial: str,
) -> Tensor:
    """A convolution over the axes ``spatial``. Raises ``TensorExpressionError`` where shapes do not agree."""
    image = arranged(data, data_layout, f"NC{spatial}", "the data")
    weight = arranged(kernel, kernel_layout or usual_kernel_layout(data_layout), f"OI{spatial}", "the kernel")
    return convolved(spatial, image, weight, strides, padding, dilation, groups, out_dtype)


def usual_kernel_layout(data_layout: str) -> str:
    plain = "".join(letter for letter in data_layout if letter.isupper())
    if plain not in _KERNELS:
        raise error(f"there is no usual layout of a kernel for data in {data_layout}", "kernel_layout=…")
    return _KERNELS[plain] + ("io" if plain != "".join(c for c in data_layout if c.isalpha()) else "")


def convolved(
    spatial: str,
    image: Arranged,
    weight: Arranged,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    out_dtype: Any,
    out_layout: str = "",
) -> Tensor:
    """The convolution of an image by a kernel of the axes O, I and ``spatial``, where the sizes of the kernel are numbers."""
    count = len(spatial)
    steps, gaps = numbers(strides, count, "strides", 1), numbers(dilation, count, "dilation", 1)
    sizes = [integer(weight.extent(a), f"the extent {a} of the kernel") for a in spatial]
    spans = [dilated(k, d) for k, d in zip(sizes, gaps)]
    extents = [image.extent(a) for a in spatial]
    pads = pads_of(padding, spans, steps, extents)
    counted = zip(spatial, extents, spans, steps, pads)
    out = {a: window_count(n, span, step, pad, "the kernel") for a, n, span, step, pad in counted}
    return summed(
        spatial, padded(image, dict(zip(spatial, pads))), weight, out, steps, gaps, groups, out_dtype, out_layout
    )


def summed(
    spatial: str,
    image: Arranged,
    weight: Arranged,
    out: dict[str, Any],
    steps: Any,
    gaps: Any,
    groups: Any,
    out_dtype: Any,
    out_layout: str,
) -> Tensor:
    """The sums over windows of ``image``, ``out`` of them in each spatial axis, that begin where the image does."""
    per_group, inputs = channels_of_group(image, weight, groups)
    types = product_type(out_dtype, image.tensor, weight.tensor)
    layout = _out_layout(image, weight, out_layout)
    shape = layout.shape({"N": image.extent("N"), "C": weight.extent("O"), **out})
    is_depthwise = groups != 1 and constant(inputs) == 1
    channel: Any = te.reduce_axis((0, inputs), "rc")
    window = [te.reduce_axis((0, weight.extent(a)), f"r{a.lower()}") for a in spatial]

    def element(*indices: Any) -> Expr:
        place = layout.coordinates(indices)
        output = place["C"]
        first: Any = 0 if groups == 1 else output // per_group * inputs
        input_channel = first if is_depthwise else first + channel
        at = {a: place[a] * s + k * d for a, s, k, d in zip(spatial, steps, window, gaps)}
        x = image.at({"N": place["N"], "C": input_channel, **at})
        w = weight.at({"O": output, "I": 0 if is_depthwise else channel, **dict(zip(spatial, window))})
        product = x.astype(types.inner) * w.astype(types.inner)
        return types.sum(product, axis=window if is_depthwise else [channel, *window])

    return te.compute(shape, element, name=f"conv{len(spatial)}d")


def channels_of_group(image: Arranged, weight: Arranged, groups: Any) -> tuple[Any, Any]:
    """Output and input channels of a group. Raises ``TensorExpressionError`` where they do not agree."""
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
        raise error(f"groups is {groups!r}", "an integer, at least 1")
    channels, outputs, inputs = image.extent("C"), weight.extent("O"), weight.extent("I")
    if not equate(channels, inputs * groups):
        raise error(
            f"data `{image.tensor.name}` {image.tensor.shape} in layout {image.layout} has {channels!r} channels, but kernel "
            f"`{weight.tensor.name}` {weight.tensor.shape} in layout {weight.layout} has {inputs!r} in each of {groups} groups"
        )
    if not is_multiple(outputs, groups):
        raise error(
            f"the {outputs!r} output channels of kernel `{weight.tensor.name}` {weight.tensor.shape} are not {groups} groups"
        )
    return outputs // groups, inputs


def _out_layout(image: Arranged, weight: Arranged, word: str) -> Layout:
    """The layout of the result: that of the data; packed channels are in groups as the kernel's outputs are."""
    parts = tuple(c for c in (word or "".join(image.layout.parts)) if c.isalpha())
    if sorted(p for p in parts if p.isupper()) != sorted(p for p in image.layout.parts if p.isupper()):
        raise error(f"the layout of the result is {word!r}", f"an order of the axes of {image.layout}")
    if "c" not in parts:
        return Layout(parts, {})
    number = "".join(c for c in word if c.isdigit())
    size = int(number) if number else weight.layout.factors.get("O", image.layout.factors.get("C"))
    if size is None or not is_multiple(weight.extent("O"), size):
        raise error(f"the {weight.extent('O')!r} output channels are not in groups of {size}")
    return Layout(parts, {"C": size})


# ---------------------------------------------------------------- in the layout that the call says


def _reference(
    data: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, data_layout: str, kernel_layout: str, out_dtype: Any,
    groups: int, spatial: str,
) -> Any:  # fmt: skip
    images = references.plain(data, data_layout, f"NC{spatial}")
    kernels = references.plain(kernel, kernel_layout or usual_kernel_layout(data_layout), f"OI{spatial}")
    made = references.convolved(images, kernels, strides, padding, dilation, groups)
    return references.laid_out(made, f"NC{spatial}", data_layout, kernel.shape[-1])


CONVOLUTION = Definition(convolution, _reference, "nn", "nn")


def _convolution(doc: str, spatial: str, gives: tuple[int, ...], *cases: Case, **usual: Any) -> Any:
    return CONVOLUTION.variant(
        f"conv{len(spatial)}d", "data kernel strides padding dilation data_layout kernel_layout out_dtype groups", doc, cases,
        gives, unstated=BY_LAYOUT, tolerance=of_products(40), spatial=spatial, data_layout=f"NC{spatial}", **usual,
    )  # fmt: skip


_OPERATORS = [
    _convolution(
        """
    As :func:`conv2d`, of one dimension: ``data`` is ``(N, C, W)``, the kernel ``(O, C / groups, W)``.

    ``padding`` of two numbers is before and after. By default nothing is added.
    """,
        "W",
        (2, 4, 5),
        case(arg((2, 3, 7), "float32"), arg((4, 3, 3), "float32")),
        case(arg((2, 3, 7), "float32"), arg((4, 3, 4), "float32"), 2, "SAME"),
        case(arg((2, 3, 7), "float32"), arg((4, 3, 4), "float32"), 2, "SAME_UPPER"),
        case(arg((1, 4, 6), "float64"), arg((6, 2, 2), "float64"), 3, (2, 1), 2, groups=2),
        case(arg((1, 6, 3), "float32"), arg((3, 3, 2), "float32"), padding="SAME_LOWER", data_layout="NWC"),
        case(arg(("n", 2, "w"), "float32"), arg((3, 2, 3), "float32"), 2, 1),
        padding="VALID",
    ),
    _convolution(
        """
    The sums of products of a kernel with windows of an image: the convolution of neural networks.

    ``data`` is ``(N, C, H, W)`` or in another ``data_layout``: ``NHWC``, ``HWCN``, channels in groups as ``NCHW4c``; the
    kernel ``(O, C / groups, H, W)``, ``OIHW``, and for ``NHWC`` ``HWIO``, for ``NCHW4c`` ``OIHWio``, where no
    ``kernel_layout`` is given. The result, in the layout of the data, has ``O`` channels and
    ``(H + pads - (size - 1) * dilation - 1) // stride + 1`` rows. ``strides`` and ``dilation`` are one integer, or one each;
    ``padding`` also (top, left, bottom, right), ``"VALID"``, ``"SAME"`` (a kernel less 1, the odd one before), ``"SAME_UPPER"`` and ``"SAME_LOWER"`` (as ONNX).
    Each group of ``C / groups`` channels makes ``O / groups``.

    Raises ``TensorExpressionError`` where channels do not agree, for a kernel larger than the padded image, and for
    attributes that are none of these.
    """,
        "HW",
        (1, 4, 8, 8),
        case(arg((1, 3, 8, 8), "float32"), arg((4, 3, 3, 3), "float32"), 1, 1, 1),
        case(arg((2, 3, 5, 7), "float32"), arg((2, 3, 1, 2), "float32"), (2, 3)),
        case(arg((1, 2, 3, 3), "float64"), arg((1, 2, 5, 4), "float64"), 1, (1, 2, 3, 0)),
        case(arg((1, 4, 6, 6), "float32"), arg((4, 2, 2, 2), "float32"), padding="SAME", dilation=2, groups=2),
        case(arg((1, 3, 5, 5), "float32"), arg((6, 1, 3, 3), "float32"), 2, "SAME", groups=3),
        case(arg((1, 5, 4, 3), "float32"), arg((3, 2, 3, 4), "float32"), 1, 1, data_layout="NHWC"),
        case(arg((1, 2, 4, 4, 2), "float32"), arg((3, 2, 2, 2, 2, 4), "float32"), data_layout="NCHW2c"),
        case(arg((1, 4, 4, 4), "int8"), arg((3, 4, 3, 3), "int8"), 1, 1, out_dtype="int32"),
        case(arg((1, 2, 4, 4), "float16"), arg((2, 2, 3, 3), "float16"), out_dtype="float32"),
        case(arg((0, 2, 4, 4), "float32"), arg((2, 2, 3, 3), "float32")),
        case(arg((1, 2, 9, 2), "float32"), arg((2, 2, 2, 1), "float32"), (4, 3)),
        case(arg(("n", 2, "h", "w"), "float32"), arg((2, 2, 3, 3), "float32"), 2, 1),
    ),
    _convolution(
        "As :func:`conv2d`, of three dimensions: ``data`` is ``(N, C, D, H, W)``, the kernel ``(O, C / groups, D, H, W)``.",
        "DHW",
        (1, 3, 4, 4, 5),
        case(arg((1, 2, 4, 3, 5), "float32"), arg((3, 2, 3, 2, 3), "float32"), 1, 1),
        case(arg((1, 3, 4, 3, 2), "float32"), arg((2, 2, 2, 1, 4), "float32"), 2, data_layout="NDHWC", groups=2),
        case(arg((1, 2, 3, 3, 3), "float64"), arg((1, 2, 2, 2, 2), "float64"), 1, (1, 0, 1, 0, 1, 0), (1, 2, 1)),
    ),
]
__test__ = {f.__name__: f for f in _OPERATORS}  # their docstrings have examples
