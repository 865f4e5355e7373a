"""Transposed convolutions: each element of the image adds the kernel, times itself, to a window of the result.

Computed from the result's side: the image with ``stride - 1`` zeros between its elements, by the mirrored kernel.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ... import te
from ...arith import simplify
from ...expr import Expr
from ...te.places import error
from ...te.tensor import Tensor
from ..cases import Case
from ..places import chosen, constant, integer, may_differ
from ..variants import Definition
from . import _references as references
from ._operator import arg, case, of_products
from .checks import numbers, out_type
from .layouts import Arranged, arranged
from .windows import dilated, padded, pads_of


def _transposed(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    out_dtype: Any = None,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    data_layout: str = "",
    kernel_layout: str = "",
    *,
    spatial: str,
) -> Tensor:
    count = len(spatial)
    image = arranged(data, data_layout or f"NC{spatial}", f"NC{spatial}", "the data")
    weight = arranged(kernel, kernel_layout or f"IO{spatial}", f"IO{spatial}", "the kernel")
    if image.layout.factors or weight.layout.factors:
        raise error(f"a transposed convolution takes no channels in groups, as in {data_layout} by {kernel_layout}")
    steps, gaps = numbers(strides, count, "strides", 1), numbers(dilation, count, "dilation", 1)
    more = numbers(output_padding, count, "output_padding")
    sizes = [integer(weight.extent(a), f"the extent {a} of the kernel") for a in spatial]
    spans = [dilated(k, d) for k, d in zip(sizes, gaps)]
    if any(m >= max(s, d) for m, s, d in zip(more, steps, gaps)):
        raise error(
            f"output_padding is {output_padding!r}, strides {strides!r} and dilation {dilation!r}",
            "less than the stride or the dilation in each dimension",
        )
    cut = _cut(padding, spans, steps, more)
    pads = {a: (n - 1 - c[0], n - 1 - c[1] + m) for a, n, c, m in zip(spatial, spans, cut, more)}
    wide_image = padded(image, pads, spread=dict(zip(spatial, steps)))
    out = {a: simplify((image.extent(a) - 1) * s + sum(pads[a]) + 2 - n) for a, s, n in zip(spatial, steps, spans)}
    if any((constant(n) or 1) < 1 for n in out.values()):
        raise error(f"the padding {padding!r} leaves nothing of the result: its extents would be {tuple(out.values())}")
    return _summed(spatial, wide_image, weight, out, sizes, gaps, groups, out_dtype)


def _cut(padding: Any, spans: Any, steps: Any, more: Any) -> Any:
    """What the padding takes away at the ends of the whole result. SAME leaves ``extent * stride``."""
    if not isinstance(padding, str):
        return pads_of(padding, spans, steps, spans)
    word = chosen(padding.upper(), ("VALID", "SAME", "SAME_UPPER", "SAME_LOWER"), "the padding")
    totals = [0 if word == "VALID" else n - s + m for n, s, m in zip(spans, steps, more)]
    ends = [(total // 2, total - total // 2) for total in totals]
    return [end[::-1] for end in ends] if word == "SAME_LOWER" else ends


def _summed(
    spatial: str, image: Arranged, weight: Arranged, out: Any, sizes: Any, gaps: Any, groups: int, out_dtype: Any
) -> Tensor:
    channels, inputs, outputs = image.extent("C"), weight.extent("I"), weight.extent("O")
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or (constant(inputs) or 0) % groups:
        raise error(
            f"groups is {groups!r}, for {inputs!r} input channels of the kernel", "a divisor of the input channels"
        )
    if may_differ(channels, inputs):
        raise error(
            f"data `{image.tensor.name}` has {channels!r} channels, but kernel `{weight.tensor.name}` {weight.tensor.shape} "
            f"in layout {weight.layout} has {inputs!r} inputs"
        )
    dtype, per_group = out_type(out_dtype, image.tensor, weight.tensor), simplify(inputs // groups)
    channel = te.reduce_axis((0, per_group), "rc")
    window = [te.reduce_axis((0, k), f"r{a.lower()}") for a, k in zip(spatial, sizes)]

    def element(*indices: Any) -> Expr:
        place = image.layout.coordinates(indices)
        output = place["C"]
        input_channel = channel if groups == 1 else output // outputs * per_group + channel
        at = {a: place[a] + k * d for a, k, d in zip(spatial, window, gaps)}
        mirrored = {a: n - 1 - k for a, k, n in zip(spatial, window, sizes)}
        x = image.at({"N": place["N"], "C": input_channel, **at})
        w = weight.at({"I": input_channel, "O": output if groups == 1 else output % outputs, **mirrored})
        return te.sum(x.astype(dtype) * w.astype(dtype), axis=[channel, *window])

    shape = image.layout.shape({"N": image.extent("N"), "C": simplify(outputs * groups), **out})
    return te.compute(shape, element, name=f"conv{len(spatial)}d_transpose")


def _reference(
    data: Any, kernel: Any, strides: Any, padding: Any, out_dtype: Any, output_padding: Any, groups: int, dilation: Any,
    data_layout: str, kernel_layout: str, spatial: str,
) -> Any:  # fmt: skip
    x = references.plain(data, data_layout or f"NC{spatial}", f"NC{spatial}")
    w = references.plain(kernel, kernel_layout or f"IO{spatial}", f"IO{spatial}")
    made = _scattered(x, w, strides, padding, output_padding, groups, dilation)
    return references.laid_out(made, f"NC{spatial}", data_layout or f"NC{spatial}")


def _scattered(
    x: np.ndarray, w: np.ndarray, strides: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> np.ndarray:
    """Every element of ``x`` (N, C, …) adds to a window of the result; ``w`` is (C, O / groups, …)."""
    kind = np.float64 if x.dtype.kind == "f" else np.int64
    x, w = x.astype(kind), w.astype(kind)
    sizes, count = w.shape[2:], w.ndim - 2
    strides, dilation, more = (references.each(v, count) for v in (strides, dilation, output_padding))
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, dilation)]
    whole = [(n - 1) * s + k + m for n, s, k, m in zip(x.shape[2:], strides, spans, more)]
    made = np.zeros((len(x), w.shape[1] * groups, *whole), kind)
    of_group, outputs = x.shape[1] // groups, w.shape[1]
    for at in itertools.product(*map(range, x.shape[2:])):
        cut = tuple(slice(a * s, a * s + n, d) for a, s, n, d in zip(at, strides, spans, dilation))
        for c in range(x.shape[1]):
            first = c // of_group * outputs
            value = x[(slice(None), c, *at)].reshape(-1, *[1] * (count + 1))
            made[(slice(None), slice(first, first + outputs), *cut)] += value * w[c]
    if padding == "SAME":
        totals = [n - extent * s for n, extent, s in zip(whole, x.shape[2:], strides)]
        ends = [(t // 2, t - t // 2) for t in totals]
    else:
        ends = [] if padding == "VALID" else references.pads(padding, spans, strides, x.shape[2:])
        ends = ends or [(0, 0)] * count
    return made[(..., *(slice(a, n - b) for (a, b), n in zip(ends, whole)))]


def _operator(doc: str, spatial: str, gives: tuple[int, ...], *cases: Case) -> Any:
    name, layout = f"conv{len(spatial)}d_transpose", f"NC{spatial}"
    by_layout = f"{name}_{layout.lower()}"
    return Definition(_transposed, _reference, "nn", "nn").variant(
        name,
        "data kernel strides padding out_dtype output_padding groups dilation data_layout kernel_layout",
        doc,
        cases,
        gives,
        aliases=(by_layout, f"group_{by_layout}"),
        tolerance=of_products(12 if spatial == "W" else 30),
        spatial=spatial,
        data_layout=layout,
        kernel_layout=f"IO{spatial}",
    )


_OPERATORS = [
    _operator(
        "As :func:`conv2d_transpose`, of one dimension: ``data`` is ``(N, C, W)``, the kernel ``(C, O / groups, W)``.",
        "W",
        (2, 2, 10),
        case(arg((2, 3, 5)), arg((3, 2, 3)), 2, 1, None, 1),
        case(arg((1, 4, 4)), arg((4, 1, 2)), 3, (0, 1), None, 0, 2),
        case(arg((1, 2, 4)), arg((2, 2, 3)), 2, 0, None, 1, 1, 2),
        case(arg((1, 2, 4)), arg((2, 2, 3)), 2, "SAME"),
    ),
    _operator(
        """
        The transposed convolution: the gradient of :func:`conv2d` by its data.

        ``data`` is ``(N, C, H, W)``, the kernel ``(C, O / groups, H, W)``; the result has ``O`` channels and
        ``(H - 1) * stride - pads + (size - 1) * dilation + 1 + output_padding`` rows. ``padding`` (as of :func:`conv2d`) is
        taken away at the ends, ``output_padding`` added at the last one; ``"SAME"`` leaves ``H * stride`` rows.

        Raises ``TensorExpressionError`` where channels do not agree, and for an ``output_padding`` that is as large as the
        stride and the dilation.
        """,
        "HW",
        (1, 2, 8, 6),
        case(arg((1, 3, 4, 3)), arg((3, 2, 3, 3)), 2, 1, None, 1),
        case(arg((2, 2, 3, 3)), arg((2, 3, 2, 4)), (1, 3), (0, 1, 1, 2)),
        case(arg((1, 4, 3, 3)), arg((4, 2, 3, 3)), 2, 1, None, (1, 0), 2),
        case(arg((1, 2, 3, 3)), arg((2, 1, 1, 2)), 3),
        case(arg((1, 3, 3, 2)), arg((3, 3, 2, 2)), 2, 0, data_layout="NHWC", kernel_layout="HWOI"),
        case(arg((1, 2, 3, 3), "int8"), arg((2, 2, 2, 2), "int8"), 2, 0, "int32"),
        case(arg((0, 2, 3, 3)), arg((2, 2, 2, 2))),
        case(arg(("n", 2, "h", 3)), arg((2, 2, 3, 3)), 2, 1),
    ),
    _operator(
        "As :func:`conv2d_transpose`, of three dimensions: ``data`` is ``(N, C, D, H, W)``.",
        "DHW",
        (1, 2, 1, 6, 2),
        case(arg((1, 2, 2, 3, 2)), arg((2, 2, 2, 3, 2)), (1, 2, 2), 1, None, (0, 1, 0)),
    ),
]
__test__ = {f.__name__: f for f in _OPERATORS}  # their docstrings have examples
