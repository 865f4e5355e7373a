"""Transposed convolutions: each element of the image adds the kernel, times itself, to a window of the result.

Computed from the result's side, a convolution for each phase of the strides: elements of the result that are ``stride`` apart
are of the same elements of the kernel, mirrored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import EQ, Expr, const, simplify, te
from ...te import Tensor, equate, error, is_multiple
from ..cases import Case
from ..contract import BY_LAYOUT
from ..element_places import constant, integer
from ..products import ProductType, product_type
from ..variants import Definition
from . import _references as references
from ._operator import arg, case, of_products
from .checks import numbers
from .layouts import Arranged, arranged
from .window_shapes import dilated, padded, pads_of


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
    counted = zip(spatial, spans, steps, more, cut)
    out = {a: simplify((image.extent(a) - 1) * s + n + m - c[0] - c[1]) for a, n, s, m, c in counted}
    if any((constant(n) or 1) < 1 for n in out.values()):
        raise error(f"the padding {padding!r} leaves nothing of the result: its extents would be {tuple(out.values())}")
    types = product_type(out_dtype, image.tensor, weight.tensor)
    each = zip(spatial, sizes, steps, gaps, cut)
    if math.prod(steps) > MOST_PHASES:
        along = {a: _Along(c[0], size, s, gap) for a, size, s, gap, c in each}
        return _conditional(image, weight, out, along, groups, types)
    phases = {a: [_Phase.of(r + c[0], size, s, gap) for r in range(s)] for a, size, s, gap, c in each}
    return _interleaved(spatial, image, weight, out, phases, groups, types)


MOST_PHASES = 16  # each a convolution of its own, which takes its time to build


@dataclass(frozen=True)
class _Phase:
    """The elements of the result at ``step * q + phase`` along an axis: the sum over ``m < taps`` of element ``q + start + m *
    apart`` of the image by element ``last - m * every`` of the kernel."""

    taps: int
    start: int
    apart: int
    last: int
    every: int

    @staticmethod
    def of(at: int, size: int, step: int, gap: int) -> _Phase:
        """The phase of ``at``, a place in the whole result, by a kernel of ``size`` elements that are ``gap`` apart."""
        common = math.gcd(step, gap)
        taps = [k for k in range(size) if (at - k * gap) % step == 0]
        last = taps[-1] if taps else 0
        return _Phase(len(taps), (at - last * gap) // step, gap // common, last, step // common)


def _interleaved(
    spatial: str,
    image: Arranged,
    weight: Arranged,
    out: Mapping[str, Any],
    phases: Mapping[str, list[_Phase]],
    groups: int,
    types: ProductType,
) -> Tensor:
    """The convolutions of all phases, in turn along each axis of ``out``."""
    name = f"conv{len(spatial)}d_transpose"
    outputs = _output_channels(image, weight, groups)
    whole = {"N": image.extent("N"), "C": outputs}
    counts = {a: simplify((out[a] + len(phases[a]) - 1) // len(phases[a])) for a in spatial}
    starts = {a: max(0, -min(p.start for p in phases[a])) for a in spatial}
    ends = {a: max(p.start + max(p.taps - 1, 0) * p.apart for p in phases[a]) for a in spatial}
    pads = {a: (starts[a], _or_none(simplify(counts[a] + ends[a] - image.extent(a)))) for a in spatial}
    wide_image = padded(image, pads)

    def one(chosen_phases: tuple[_Phase, ...], name: str) -> Tensor | None:
        if not all(p.taps for p in chosen_phases):
            return None
        of = {a: replace(p, start=p.start + starts[a]) for a, p in zip(spatial, chosen_phases)}
        return _summed(name, wide_image, weight, {**whole, **counts}, of, groups, types)

    every = list(itertools.product(*(phases[a] for a in spatial)))
    if len(every) == 1 and (made := one(every[0], name)) is not None:
        return made
    numbers_of = itertools.product(*(range(len(phases[a])) for a in spatial))
    parts = {at: one(each, f"{name}_phase") for at, each in zip(numbers_of, every)}

    def element(*indices: Any) -> Expr:
        place = image.layout.coordinates(indices)
        inner = {**place, **{a: place[a] // len(phases[a]) for a in spatial}}

        def chosen_from(at: tuple[int, ...]) -> Expr:
            if len(at) == len(spatial):
                part = parts[at]
                return te.const(0, types.result) if part is None else Arranged(part, image.layout).at(inner)
            axis = spatial[len(at)]
            *others, value = (chosen_from((*at, r)) for r in range(len(phases[axis])))
            for r, other in reversed(list(enumerate(others))):
                value = te.if_then_else(place[axis] % len(phases[axis]) == r, other, value)
            return value

        return chosen_from(())

    return te.compute(image.layout.shape({**whole, **out}), element, name=name)


@dataclass(frozen=True)
class _Along:
    """An axis whose result begins ``cut`` into the whole, by a kernel of ``size`` elements that are ``gap`` apart."""

    cut: int
    size: int
    step: int
    gap: int

    @property
    def taps(self) -> int:
        """The elements of the kernel that may add to one of the result: at ``gap`` 1 every ``step``-th."""
        return -(-self.size // self.step) if self.gap == 1 else self.size

    def tap(self, place: Any, number: Any, extent: Any) -> tuple[Any, Any, list[Any]]:
        """The elements of the image and of the kernel, and the conditions under which they are there."""
        whole = place + self.cut
        if self.gap == 1:
            at, element = whole // self.step - number, whole % self.step + number * self.step
            found = [element < self.size] if self.size % self.step else []
        else:
            offset, element = whole - number * self.gap, number
            at, found = offset // self.step, [EQ(offset % self.step, const(0, offset.dtype))]
        return at, element, [*found, at >= 0, at < extent]


def _conditional(
    image: Arranged,
    weight: Arranged,
    out: Mapping[str, Any],
    along: Mapping[str, _Along],
    groups: int,
    types: ProductType,
) -> Tensor:
    """One convolution whose elements of the image and the kernel follow from the place in the result."""
    window: dict[str, Any] = {a: te.reduce_axis((0, axis.taps), f"r{a.lower()}") for a, axis in along.items()}

    def pair(place: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
        taps = {a: axis.tap(place[a], window[a].var, image.extent(a)) for a, axis in along.items()}
        found = [c for _, _, conditions in taps.values() for c in conditions]
        return {a: t[0] for a, t in taps.items()}, {a: t[1] for a, t in taps.items()}, found

    extents = {"N": image.extent("N"), "C": _output_channels(image, weight, groups), **out}
    return _products(f"conv{len(along)}d_transpose", image, weight, extents, window, pair, groups, types)


def _or_none(end: Any) -> Any:
    """What is added at an end: nothing where that is known to be less."""
    known = constant(end)
    return end if known is None else max(known, 0)


def _cut(padding: Any, spans: Any, steps: Any, more: Any) -> Any:
    """What the padding takes away at the ends of the whole result. SAME_UPPER and SAME_LOWER leave ``extent * stride``."""
    word = padding.upper() if isinstance(padding, str) else ""
    if word not in ("SAME_UPPER", "SAME_LOWER"):
        return pads_of(padding, spans, steps, spans)
    totals = [n - s + m for n, s, m in zip(spans, steps, more)]
    ends = [(total // 2, total - total // 2) for total in totals]
    return [end[::-1] for end in ends] if word == "SAME_LOWER" else ends


def _output_channels(image: Arranged, weight: Arranged, groups: int) -> Any:
    """The channels of the result. Raises ``TensorExpressionError`` where those of the image and the kernel do not agree."""
    channels, inputs = image.extent("C"), weight.extent("I")
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or not is_multiple(inputs, groups):
        raise error(
            f"groups is {groups!r}, for {inputs!r} input channels of the kernel", "a divisor of the input channels"
        )
    if not equate(channels, inputs):
        raise error(
            f"data `{image.tensor.name}` has {channels!r} channels, but kernel `{weight.tensor.name}` {weight.tensor.shape} "
            f"in layout {weight.layout} has {inputs!r} inputs"
        )
    return simplify(weight.extent("O") * groups)


def _summed(
    name: str,
    image: Arranged,
    weight: Arranged,
    extents: Mapping[str, Any],
    phases: Mapping[str, _Phase],
    groups: int,
    types: ProductType,
) -> Tensor:
    """The convolution of one phase along each axis."""
    window: dict[str, Any] = {a: te.reduce_axis((0, p.taps), f"r{a.lower()}") for a, p in phases.items()}

    def pair(place: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
        at = {a: place[a] + p.start + window[a] * p.apart for a, p in phases.items()}
        return at, {a: p.last - window[a] * p.every for a, p in phases.items()}, []

    return _products(name, image, weight, extents, window, pair, groups, types)


def _products(
    name: str,
    image: Arranged,
    weight: Arranged,
    extents: Mapping[str, Any],
    window: Mapping[str, Any],
    pair: Callable[[Mapping[str, Any]], tuple[dict[str, Any], dict[str, Any], list[Any]]],
    groups: int,
    types: ProductType,
) -> Tensor:
    """Sums over the channels and the ``window`` of products of elements of the image and of the kernel: a ``pair`` of places at
    each place of the result, with the conditions under which it counts."""
    outputs, per_group = weight.extent("O"), simplify(weight.extent("I") // groups)
    channel = te.reduce_axis((0, per_group), "rc")

    def element(*indices: Any) -> Expr:
        place = image.layout.coordinates(indices)
        output = place["C"]
        input_channel = channel if groups == 1 else output // outputs * per_group + channel
        at, mirrored, conditions = pair(place)
        x = image.at({"N": place["N"], "C": input_channel, **at})
        w = weight.at({"I": input_channel, "O": output if groups == 1 else output % outputs, **mirrored})
        value = x.astype(types.inner) * w.astype(types.inner)
        if conditions:
            value = te.if_then_else(te.all(*conditions), value, te.const(0, types.inner))
        return types.sum(value, axis=[channel, *window.values()])

    return te.compute(image.layout.shape(extents), element, name=name)


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
    if padding == "SAME_UPPER":
        totals = [n - extent * s for n, extent, s in zip(whole, x.shape[2:], strides)]
        ends = [(t // 2, t - t // 2) for t in totals]
    else:
        ends = [] if padding == "VALID" else references.pads(padding, spans, strides, x.shape[2:])
        ends = ends or [(0, 0)] * count
    made = np.pad(made, [(0, 0), (0, 0), *((max(-a, 0), max(-b, 0)) for a, b in ends)])
    return made[(..., *(slice(max(a, 0), n - max(b, 0)) for (a, b), n in zip(ends, made.shape[2:])))]


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
        unstated=BY_LAYOUT,
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
        case(arg((1, 2, 4)), arg((2, 2, 3)), 2, "SAME_UPPER"),
        case(arg((1, 2, 3)), arg((2, 2, 1)), 2, "SAME_UPPER"),
        case(arg((1, 2, 4)), arg((2, 2, 3)), 4, 1, None, 1, dilation=2),
        case(arg((1, 2, 4)), arg((2, 2, 4)), 3, 2, None, 2, dilation=2),
        case(arg((1, 2, 3)), arg((2, 2, 5)), 17, 1, None, 3),
        case(arg((1, 2, 3)), arg((2, 1, 40)), 17, 4, None, 1, 2),
        case(arg((1, 2, 3)), arg((2, 2, 4)), 18, 2, None, 2, dilation=4),
    ),
    _operator(
        """
        The transposed convolution: the gradient of :func:`conv2d` by its data.

        ``data`` is ``(N, C, H, W)``, the kernel ``(C, O / groups, H, W)``; the result has ``O`` channels and
        ``(H - 1) * stride - pads + (size - 1) * dilation + 1 + output_padding`` rows. ``padding`` (as of :func:`conv2d`) is
        taken away at the ends, ``output_padding`` added at the last one; ``"SAME_UPPER"`` leaves ``H * stride`` rows.

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
        case(arg((1, 2, 2, 3), "int8"), arg((2, 2, 7, 8), "int8"), (5, 4), 2, "int32"),
        case(arg((1, 3, 2, 2)), arg((3, 2, 3, 5)), (6, 5), 1, dilation=(1, 2), data_layout="NCHW"),
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
