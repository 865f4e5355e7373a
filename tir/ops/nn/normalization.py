"""Normalization: elements less the mean of a group of them, divided by its standard deviation.

Means and variances are made in float32 for types of 16 bits and less; the variance is the mean of squared differences,
not a difference of squares, which cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import Expr, te
from ...te import Tensor, error, is_multiple
from ..promotion import wide
from ..registry import complete
from ..shapes import axes_of, axis_of
from ._operator import arg, case, nn_operator
from .checks import require_shape


class Groups:
    """The elements of ``x`` in groups: those that differ in ``axes`` alone.

    ``count`` is the number of elements of a group, in the type that is computed in.
    """

    def __init__(self, x: Tensor, axes: Sequence[int], name: str):
        self.data = x
        self.name = name
        self.axes = tuple(axes)
        self.inner = wide(self.data.dtype)
        self.kept = tuple(a for a in range(self.data.ndim) if a not in self.axes)
        count: Any = te.const(1, "int32")
        for a in self.axes:
            count = count * self.data.shape[a]
        self.count = count.astype(self.inner)

    def at(self, indices: Sequence[Any]) -> Expr:
        return self.data(*indices).astype(self.inner)

    def of_group(self, value: Tensor, indices: Sequence[Any]) -> Expr:
        """The element of ``value``, one a group, for that of the group of the element at ``indices``."""
        return value(*(indices[a] for a in self.kept))

    def sum(self, element: Any, name: str) -> Tensor:
        """The sum of ``element(indices)`` over each group."""
        reduced = [te.reduce_axis((0, self.data.shape[a]), f"k{n}") for n, a in enumerate(self.axes)]

        def total(*outer: Any) -> Expr:
            own, inner = iter(outer), iter(reduced)
            indices = [next(inner) if a in self.axes else next(own) for a in range(self.data.ndim)]
            return te.sum(element(indices), axis=reduced) if reduced else element(indices)

        return te.compute([self.data.shape[a] for a in self.kept], total, name=f"{self.name}_{name}")

    def mean(self, element: Any, name: str) -> Tensor:
        """The mean of ``element(indices)`` over each group."""
        sums = self.sum(element, f"{name}_sum")
        return te.compute(sums.shape, lambda *i: sums(*i) / self.count, name=f"{self.name}_{name}")

    def squares(self, indices: Sequence[Any]) -> Expr:
        return self.at(indices) * self.at(indices)

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of each group."""
        mean = self.mean(self.at, "mean")

        def squared(indices: Any) -> Expr:
            difference = self.at(indices) - self.of_group(mean, indices)
            return difference * difference

        return mean, self.mean(squared, "variance")

    def scale(self, variance: Tensor, epsilon: float, indices: Sequence[Any]) -> Expr:
        """``1 / sqrt(variance + epsilon)`` of the group of the element at ``indices``: the same for all of the group, so that
        loops over its elements divide once."""
        return te.const(1, self.inner) / te.sqrt(self.of_group(variance, indices) + te.const(epsilon, self.inner))


def _scaled(groups: Groups, mean: Tensor | None, variance: Tensor, epsilon: float, scale: Any, shift: Any) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon)``, times ``scale`` and plus ``shift``: functions of indices, or None."""

    def element(*i: Any) -> Expr:
        value = groups.at(i) if mean is None else groups.at(i) - groups.of_group(mean, i)
        value = value * groups.scale(variance, epsilon, i)
        value = value if scale is None else value * scale(i).astype(groups.inner)
        value = value if shift is None else value + shift(i).astype(groups.inner)
        return value.astype(groups.data.dtype)

    return te.compute(groups.data.shape, element, name=groups.name)


def _along(parameter: Any, groups: Groups, axes: Sequence[int], what: str) -> Any:
    """How to read ``parameter``, whose dimensions are ``axes`` of the data; None for no parameter."""
    if parameter is None:
        return None
    shape = [groups.data.shape[a] for a in axes]
    made = require_shape(parameter, shape, f"the {what} of {groups.name}")
    return lambda indices: made(*(indices[a] for a in axes))


def _shaped(value: Any, x: np.ndarray, axes: Sequence[int]) -> Any:
    """A parameter of the dimensions ``axes``, for broadcasting; 1 and 0 stand for none."""
    if isinstance(value, (int, float)):
        return value
    return value.reshape([n if a in axes else 1 for a, n in enumerate(x.shape)])


# ---------------------------------------------------------------- over the batch


@complete
def _batch_norm_reference(
    x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, axis: int, epsilon: float, center: bool, scale: bool,
    training: bool, momentum: float,
) -> Any:  # fmt: skip
    others = tuple(a for a in range(x.ndim) if a != axis % x.ndim)
    kept = [axis % x.ndim]
    own = (x.mean(axis=others), x.var(axis=others)) if training else (mean, variance)
    made = (x - _shaped(own[0], x, kept)) / np.sqrt(_shaped(own[1], x, kept) + epsilon)
    made = made * _shaped(gamma if scale else 1, x, kept) + _shaped(beta if center else 0, x, kept)
    if not training:
        return made, mean, variance
    return made, (1 - momentum) * mean + momentum * own[0], (1 - momentum) * variance + momentum * own[1]


def _batch_norm_case(shape: Any, channels: int, dtype: str = "float32", **attributes: Any) -> Any:
    vectors = [arg((channels,), dtype, kind) for kind in ("any", "any", "any", "positive")]
    return case(arg(shape, dtype), *vectors, **attributes)


@nn_operator(
    shapes="(…, c@axis, …) float, (c), (c), (c), (c) -> (…, c@axis, …), (c), (c)", reference=_batch_norm_reference,
    tolerance=128,
    cases=(
        _batch_norm_case((2, 3, 4, 5), 3), _batch_norm_case((2, 3, 4, 5), 5, axis=-1, epsilon=0.1, center=False),
        _batch_norm_case((4, 3), 3, training=True, momentum=0.3),
        _batch_norm_case((3, 2, 4), 2, training=True, scale=False), _batch_norm_case((1, 2, 3, 3), 2, "float16"),
        _batch_norm_case(("n", 2, "h", "w"), 2, training=True),
    ),
)  # fmt: skip
def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    training: bool = False,
    momentum: float = 0.1,
) -> tuple[Tensor, Tensor, Tensor]:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta`` of each channel, which ``axis`` counts; and the moving moments.

    Mean and variance are ``moving_mean`` and ``moving_var``, which are also the second and third result; with ``training``
    they are those of the batch (the variance of all its elements, not the unbiased estimate), and the other results are
    ``(1 - momentum) * moving + momentum * of the batch``. The four parameters have one element a channel; ``gamma`` counts
    only with ``scale``, ``beta`` only with ``center``. Raises ``TensorExpressionError`` for another number of elements.
    """
    channel = axis_of(axis, data.ndim)
    groups = Groups(data, [a for a in range(data.ndim) if a != channel], "batch_norm")
    read = [_along(p, groups, [channel], "parameter") for p in (gamma if scale else None, beta if center else None)]
    if not training:
        copies = [_as_it_is(p) for p in (moving_mean, moving_var)]
        return (_scaled(groups, moving_mean, moving_var, epsilon, *read), copies[0], copies[1])
    mean, variance = groups.moments()
    made = _scaled(groups, mean, variance, epsilon, *read)
    return (made, _moved(moving_mean, mean, momentum), _moved(moving_var, variance, momentum))


def _as_it_is(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda *i: x(*i), name=f"{x.name}_out")


def _moved(old: Tensor, new: Tensor, momentum: float) -> Tensor:
    def element(c: Any) -> Expr:
        return (old(c).astype(new.dtype) * (1 - momentum) + new(c) * momentum).astype(old.dtype)

    return te.compute(old.shape, element, name=f"{old.name}_out")


# ---------------------------------------------------------------- over axes of each example


def _layer_norm_reference(x: Any, gamma: Any, beta: Any, axis: Any, epsilon: float = 1e-5) -> np.ndarray:
    axes = tuple(sorted(a % x.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis])))
    made = (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
    gamma, beta = (default if p is None else p for p, default in ((gamma, 1), (beta, 0)))
    return made * _shaped(gamma, x, axes) + _shaped(beta, x, axes)


@nn_operator(
    shapes="(…) float -> (…)", reference=_layer_norm_reference, tolerance=64,
    cases=(
        case(arg((3, 7)), arg((7,)), arg((7,)), -1), case(arg((2, 3, 4)), arg((3, 4)), arg((3, 4)), (1, 2), 1e-3),
        case(arg((2, 3, 4), "float16"), arg((4,), "float16"), arg((4,), "float16"), -1),
        case(arg((2, 5)), arg((5,)), None, 1),
        case(arg((2, 1), "float64"), arg((1,), "float64"), arg((1,), "float64"), 1),
        case(arg((0, 4)), arg((4,)), arg((4,)), 1), case(arg(("n", "d")), arg(("d",)), arg(("d",)), -1),
    ),
)  # fmt: skip
def layer_norm(data: Tensor, gamma: Any, beta: Any, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta``, with the moments over ``axis``, one or several.

    ``gamma`` and ``beta`` have the shape of these axes; None stands for 1 and 0. Raises ``TensorExpressionError`` for
    another shape.
    """
    axes = axes_of(axis, data.ndim)
    groups = Groups(data, axes, "layer_norm")
    scale, shift = _along(gamma, groups, axes, "gamma"), _along(beta, groups, axes, "beta")
    return _scaled(groups, *groups.moments(), epsilon, scale, shift)


def _rms_norm_reference(x: Any, weight: Any, axis: Any = -1, epsilon: float = 1e-5) -> np.ndarray:
    axes = tuple(sorted(a % x.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis])))
    return x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + epsilon) * _shaped(weight, x, axes)


@nn_operator(
    shapes="(…) float, (…w) -> (…)", reference=_rms_norm_reference, tolerance=64,
    cases=(
        case(arg((3, 7)), arg((7,))), case(arg((2, 3, 4)), arg((3, 4)), (1, 2), 1e-3),
        case(arg((2, 3, 4), "float16"), arg((4,), "float16"), -1),
    ),
)  # fmt: skip
def rms_norm(data: Tensor, weight: Tensor, axis: Any = -1, epsilon: float = 1e-5) -> Tensor:
    """``weight * data / sqrt(mean(data ** 2) + epsilon)``, with the mean over ``axis``, one or several.

    ``weight`` has the shape of these axes. Raises ``TensorExpressionError`` for another shape.
    """
    axes = axes_of(axis, data.ndim)
    groups = Groups(data, axes, "rms_norm")
    mean = groups.mean(groups.squares, "mean")
    return _scaled(groups, None, mean, epsilon, _along(weight, groups, axes, "weight"), None)


def _instance_norm_reference(
    x: Any, gamma: Any, beta: Any, channel_axis: int = 1, axis: Any = None, epsilon: float = 1e-5
) -> np.ndarray:
    axes = tuple(a for a in range(x.ndim) if a not in (0, channel_axis)) if axis is None else tuple(axis)
    made = (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
    return made * _shaped(gamma, x, [channel_axis]) + _shaped(beta, x, [channel_axis])


@nn_operator(
    shapes="(…, c@channel_axis, …) float, (c), (c) -> (…, c@channel_axis, …)", reference=_instance_norm_reference,
    tolerance=64,
    cases=(
        case(arg((2, 3, 4, 5)), arg((3,)), arg((3,))), case(arg((2, 4, 5, 3)), arg((3,)), arg((3,)), 3, (1, 2), 0.1),
        case(arg((2, 3, 4), "float16"), arg((3,), "float16"), arg((3,), "float16")),
    ),
)  # fmt: skip
def instance_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, channel_axis: int = 1, axis: Any = None, epsilon: float = 1e-5
) -> Tensor:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta``, with the moments of each channel of each example.

    ``axis`` are the axes of the moments, by default all but the first and ``channel_axis``; ``gamma`` and ``beta`` have one
    element a channel. Raises ``TensorExpressionError`` for another number of elements.
    """
    channel = axis_of(channel_axis, data.ndim)
    axes = [a for a in range(1, data.ndim) if a != channel] if axis is None else axes_of(axis, data.ndim)
    groups = Groups(data, axes, "instance_norm")
    scale, shift = _along(gamma, groups, [channel], "gamma"), _along(beta, groups, [channel], "beta")
    return _scaled(groups, *groups.moments(), epsilon, scale, shift)


def _group_norm_reference(
    x: Any, gamma: Any, beta: Any, num_groups: int, channel_axis: int = 1, axes: Any = None, epsilon: float = 1e-5
) -> np.ndarray:
    channel = channel_axis % x.ndim
    others = {a % x.ndim for a in (range(1, x.ndim) if axes is None else np.atleast_1d(axes))} - {channel}
    size = x.shape[channel] // num_groups
    parts = x.reshape(*x.shape[:channel], num_groups, size, *x.shape[channel + 1 :])
    over = (channel + 1, *(a + (a > channel) for a in others))
    made = (parts - parts.mean(axis=over, keepdims=True)) / np.sqrt(parts.var(axis=over, keepdims=True) + epsilon)
    made = made.reshape(x.shape)
    return made * _shaped(gamma, x, [channel_axis]) + _shaped(beta, x, [channel_axis])


@nn_operator(
    shapes="(…, c@channel_axis, …) float, (c), (c) -> (…, c@channel_axis, …)", reference=_group_norm_reference,
    tolerance=64,
    cases=(
        case(arg((2, 6, 3, 2)), arg((6,)), arg((6,)), 3), case(arg((2, 4, 6)), arg((6,)), arg((6,)), 2, 2, (1,), 0.1),
        case(arg((3, 4, 2)), arg((4,)), arg((4,)), 2, 1, (-3,)),
        case(arg((1, 4, 5), "float16"), arg((4,), "float16"), arg((4,), "float16"), 4),
    ),
)  # fmt: skip
def group_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    num_groups: int,
    channel_axis: int = 1,
    axes: Any = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta``, with the moments of each of ``num_groups`` groups of channels.

    The moments are also over ``axes``, by default all but the first. ``gamma`` and ``beta`` have one element a channel.
    Raises ``TensorExpressionError`` for channels that are not so many groups.
    """
    channel = axis_of(channel_axis, data.ndim)
    others = set(range(1, data.ndim) if axes is None else axes_of(axes, data.ndim)) - {channel}
    channels = data.shape[channel]
    if (
        isinstance(num_groups, bool)
        or not isinstance(num_groups, int)
        or num_groups < 1
        or not is_multiple(channels, num_groups)
    ):
        raise error(
            f"num_groups is {num_groups!r}, and `{data.name}` of shape {data.shape} has {channels!r} channels",
            "a divisor of the channels",
        )
    size = channels // num_groups

    def whole(indices: Sequence[Any]) -> list[Any]:
        """Indices of the data for those of its channels in groups."""
        *before, group, within = indices[: channel + 2]
        return [*before, group * size + within, *indices[channel + 2 :]]

    shape = (*data.shape[:channel], num_groups, size, *data.shape[channel + 1 :])
    parts = te.compute(shape, lambda *i: data(*whole(i)), name="group_norm_parts")
    reduced = sorted([channel + 1, *(a + (a > channel) for a in others)])
    groups = Groups(parts, reduced, "group_norm")
    mean, variance = groups.moments()

    def element(*i: Any) -> Expr:
        at = (*i[:channel], i[channel] // size, i[channel] % size, *i[channel + 1 :])
        value = data(*i).astype(groups.inner) - groups.of_group(mean, at)
        value = value * groups.scale(variance, epsilon, at)
        scale, shift = (p(i[channel]).astype(groups.inner) for p in (gamma, beta))
        return (value * scale + shift).astype(data.dtype)

    return te.compute(data.shape, element, name="group_norm")


# ---------------------------------------------------------------- by neighbours, by length, by constants


def _lrn_reference(
    x: Any, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2
) -> np.ndarray:
    rows = np.moveaxis(x, axis, 0)
    made = np.empty_like(rows)
    for c in range(len(rows)):
        low, high = max(0, c - (size - 1) // 2), min(len(rows), c + size // 2 + 1)
        made[c] = rows[c] / (bias + alpha / size * (rows[low:high] ** 2).sum(axis=0)) ** beta
    return np.moveaxis(made, 0, axis)


@nn_operator(
    shapes="(…) float -> (…)", reference=_lrn_reference, tolerance=64,
    cases=(
        case(arg((2, 5, 3, 2)), 3), case(arg((2, 3, 2, 6)), 5, 3, 0.5, 0.5, 1.0), case(arg((1, 4, 3)), 2, alpha=0.3),
        case(arg((1, 2, 3), "float16"), 7, alpha=0.3),
    ),
)  # fmt: skip
def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2) -> Tensor:
    """``data / (bias + alpha / size * sum(data ** 2)) ** beta``, with the sum over ``size`` neighbours along ``axis``.

    The neighbours of channel ``c`` are those from ``c - (size - 1) // 2`` to ``c + size // 2`` that there are. Raises
    ``TensorExpressionError`` for a size below 1.
    """
    x = data
    channel = axis_of(axis, x.ndim)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise error(f"the size of lrn is {size!r}", "an integer, at least 1")
    inner, before, channels = wide(x.dtype), (size - 1) // 2, x.shape[channel]
    k = te.reduce_axis((0, size), "k")

    def square(*i: Any) -> Expr:
        at = i[channel] + k - before
        value = x(*i[:channel], at, *i[channel + 1 :]).astype(inner)
        inside = te.all(at >= 0, at < channels)
        return te.sum(te.if_then_else(inside, value * value, te.const(0, inner)), axis=k)

    sums = te.compute(x.shape, square, name="lrn_sum")

    def element(*i: Any) -> Expr:
        divisor = te.pow(sums(*i) * (alpha / size) + bias, te.const(beta, inner))
        return (x(*i).astype(inner) / divisor).astype(x.dtype)

    return te.compute(x.shape, element, name="lrn")


def _l2_reference(x: Any, eps: float, axis: Any = None) -> np.ndarray:
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else axis
    return x / np.sqrt(np.maximum((x * x).sum(axis=axes, keepdims=True), eps))


@nn_operator(
    shapes="(…) float -> (…)", reference=_l2_reference, tolerance=64,
    cases=(
        case(arg((2, 3, 4)), 1e-3, (1, 2)), case(arg((2, 3)), 1e-3), case(arg((2, 3), "float64"), 1e3, -1),
        case(arg((1, 2, 3), "float16"), 1e-3, 1),
    ),
)  # fmt: skip
def l2_normalize(data: Tensor, eps: float, axis: Any = None) -> Tensor:
    """``data / sqrt(max(sum(data ** 2), eps))``, with the sum over ``axis``: one, several, or None for all."""
    axes = axes_of(axis, data.ndim)
    groups = Groups(data, axes, "l2_normalize")
    sums = groups.sum(groups.squares, "sum")

    def element(*i: Any) -> Expr:
        total = te.max(groups.of_group(sums, i), te.const(eps, groups.inner))
        return (groups.at(i) / te.sqrt(total)).astype(data.dtype)

    return te.compute(data.shape, element, name="l2_normalize")


def _scale_shift(data: Tensor, scale: Tensor, shift: Tensor, channel: int, name: str) -> Tensor:
    return te.compute(data.shape, lambda *i: data(*i) * scale(i[channel]) + shift(i[channel]), name=name)


@nn_operator(
    shapes="(n, c, h, w), (c), (c) -> (n, c, h, w)",
    reference=lambda x, scale, shift: x * _shaped(scale, x, [1]) + _shaped(shift, x, [1]),
    cases=(case(arg((2, 3, 4, 5)), arg((3,)), arg((3,))),),
)
def scale_shift_nchw(data: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """``data * scale + shift`` of each channel of ``(N, C, H, W)``; the parameters are ``(C,)``."""
    return _scale_shift(data, scale, shift, 1, "scale_shift_nchw")


@nn_operator(
    shapes="(n, h, w, c), (c), (c) -> (n, h, w, c)",
    reference=lambda x, scale, shift: x * scale + shift,
    cases=(case(arg((2, 4, 5, 3)), arg((3,)), arg((3,))),),
)
def scale_shift_nhwc(data: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """``data * scale + shift`` of each channel of ``(N, H, W, C)``; the parameters are ``(C,)``."""
    return _scale_shift(data, scale, shift, 3, "scale_shift_nhwc")
