"""Rows of ONNX operators that change the size of images: as the operators of ``tir.ops`` do, and else, along each axis, as a
product with what each old element counts for, or by the places of the nearest ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph import Value
from ..graph.sizes import Extent, is_fixed
from .making import LAYOUTS, Unsupported, axis_of
from .onnx_table import Call, row
from .resize_tables import resized, weights_of

_EXACT = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")  # coordinates that tir.ops has exactly


@dataclass(frozen=True)
class _Axis:
    """How one axis is resized: ``scale`` is new over old size (None: it is known only when it runs), ``begin`` and ``end`` the part that is read, in
    parts of it."""

    old: Any  # an Extent, as the new size is; a number where places are computed
    new: Any
    scale: Any
    begin: float = 0.0
    end: float = 1.0

    @property
    def is_whole(self) -> bool:
        """Whether the scale is the quotient of the sizes."""
        return self.scale is None or (self.scale if is_fixed(self.old) else int(self.scale)) * self.old == self.new

    def places(self, mode: str) -> np.ndarray:
        """Where each new element stands among the old ones."""
        k, wide = np.arange(self.new), self.scale * self.old
        if mode == "align_corners":
            return k * ((self.old - 1) / (wide - 1) if wide != 1 else 0.0)
        if mode == "asymmetric":
            return k / self.scale
        if mode == "tf_crop_and_resize":
            part = (self.end - self.begin) * (self.old - 1)
            first = self.begin * (self.old - 1)
            return first + (k * (part / (self.new - 1)) if self.new > 1 else np.array([part / 2]))
        if mode == "pytorch_half_pixel" and self.new == 1:
            return np.zeros(1)
        if mode not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
            raise Unsupported(f"coordinates {mode!r}")
        shift = (self.old - self.new / self.scale) / 2 if mode == "half_pixel_symmetric" else 0.0
        return shift + (k + 0.5) / self.scale - 0.5


@row("Resize", 10)
@row("Upsample", 7)
def _resize(c: Call) -> Any:
    x, is_resize = c[0], _is_resize(c)
    mode = c.attribute("mode", "nearest")
    how = c.attribute("coordinate_transformation_mode", "half_pixel") if is_resize else "asymmetric"
    axes = _axes(c, how)
    is_spatial = len(x.shape) in (3, 4, 5) and all(a.old == a.new for a in axes[:2])
    if is_spatial and how in _EXACT and not c.attribute("antialias", 0) and all(a.is_whole for a in axes):
        return _by_operator(c, [a.new for a in axes[2:]], mode, how)
    made = x
    for number, axis in enumerate(axes):
        if axis != _Axis(axis.old, axis.old, 1.0):
            if not is_fixed(axis.old, axis.new):
                raise Unsupported(
                    f"{how} along an axis of {axis.old} elements that become {axis.new}, which is known only when it runs"
                )
            made = _along(c, made, number, mode, how, axis)
    made = made if made.dtype == x.dtype else c.op("astype", made, x.dtype)
    return _outside(c, made, axes) if how == "tf_crop_and_resize" else made


def _is_resize(c: Call) -> bool:
    """Whether a node says how it computes places: in version 10, ``Resize`` is ``Upsample``, which has scales alone."""
    return c.operator == "Resize" and c.version > 10


def _axes(c: Call, how: str) -> list[_Axis]:
    """How each axis is resized."""
    old, rank, is_resize = c[0].shape, len(c[0].shape), _is_resize(c)
    chosen = [axis_of(a, rank) for a in c.attribute("axes") or range(rank)]
    sizes = c.integers(3, "sizes") if is_resize else None
    if sizes:
        ratios = [_ratio(new, old[a]) for new, a in zip(sizes, chosen)]
        policy = c.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            known = [r for r in ratios if r is not None]
            if len(known) < len(ratios):
                raise Unsupported(f"{list(old)} becomes {sizes} in one ratio, which is known only when it runs")
            ratio = min(known) if policy == "not_larger" else max(known)
            ratios, sizes = [ratio] * len(chosen), [_scaled(old[a], ratio, 0.5) for a in chosen]
    else:
        given = c.attribute("scales")  # of Upsample before version 9
        found = c.constant(2 if is_resize else 1, "scales") if given is None else np.asarray(given)
        if found is None or not found.size:
            raise Unsupported("it has neither scales nor sizes")
        ratios = [float(s) for s in found.reshape(-1)]
        sizes = [_scaled(old[a], s) for s, a in zip(ratios, chosen)]
    if len(sizes) != len(chosen) or any(size < 1 for size in sizes):
        raise Unsupported(f"{list(old)} becomes {sizes} along axes {chosen}")
    c.room(*(size for size in sizes if isinstance(size, int)))
    made = [_Axis(n, n, 1.0) for n in old]
    region = c.constant(1, "region") if how == "tf_crop_and_resize" else None
    for n, (a, new, ratio) in enumerate(zip(chosen, sizes, ratios)):
        part = (0.0, 1.0) if region is None else (float(region[n]), float(region[n + len(chosen)]))
        made[a] = _Axis(old[a], new, ratio, *part)
    return made


def _ratio(new: Extent, old: Extent) -> float | None:
    """New over old size; None where that is known only when it runs."""
    if isinstance(new, int) and isinstance(old, int):
        return new / old
    found = new // old
    return float(found) if isinstance(found, int) and found * old == new else None


def _scaled(old: Extent, ratio: float, more: float = 0.0) -> Extent:
    """The size that an axis gets. Raises :class:`Unsupported` for parts of a size that is no number."""
    if isinstance(old, int):
        return math.floor(ratio * old + more)
    if ratio != int(ratio):
        raise Unsupported(f"{old} elements become {ratio} times as many: how many is known only when it runs")
    return int(ratio) * old


def _by_operator(c: Call, sizes: Sequence[Extent], mode: str, how: str) -> Any:
    usual = "round_prefer_floor" if _is_resize(c) else "floor"
    rounding = c.attribute("nearest_mode", usual)
    rest = {} if mode != "cubic" else {"bicubic_alpha": float(c.attribute("cubic_coeff_a", -0.75)),
                                      "bicubic_exclude": c.attribute("exclude_outside", 0)}  # fmt: skip
    method, rank = {"nearest": "nearest_neighbor"}.get(mode, mode), len(sizes)
    return c.op(f"image.resize{rank}d", c[0], None, sizes, LAYOUTS[rank], method, how, rounding, **rest)


def _along(c: Call, x: Value, number: int, mode: str, how: str, axis: _Axis) -> Value:
    """A tensor resized along one axis; with antialiasing the kernel is wider by the scale where the axis gets smaller."""
    at = axis.places(how)
    if mode == "nearest":
        usual = "round_prefer_floor" if _is_resize(c) else "floor"
        rounded = {"floor": np.floor(at), "ceil": np.ceil(at), "round_prefer_floor": np.ceil(at - 0.5)}
        nearest = rounded.get(c.attribute("nearest_mode", usual), np.floor(at + 0.5))
        return c.op("take", x, c.array(np.clip(nearest, 0, axis.old - 1).astype("int64")), number)
    radius = {"linear": 1, "cubic": 2}.get(mode)
    if radius is None:
        raise Unsupported(f"mode {mode!r}")
    c.room(len(at), axis.old)
    narrow = min(axis.scale, 1.0) if c.attribute("antialias", 0) else 1.0
    alpha, only_inside = float(c.attribute("cubic_coeff_a", -0.75)), bool(c.attribute("exclude_outside", 0))
    return resized(c, x, number, weights_of(at, axis.old, radius, narrow, alpha, only_inside))


def _outside(c: Call, made: Value, axes: Sequence[_Axis]) -> Value:
    """The value of extrapolation where a place is before the first or behind the last old element."""
    beyond = np.zeros((1,) * len(axes), bool)
    for number, axis in enumerate(axes):
        at = axis.places("tf_crop_and_resize")
        shape = [1] * len(axes)
        shape[number] = axis.new
        beyond = beyond | ((at < 0) | (at > axis.old - 1)).reshape(shape)
    if not beyond.any():
        return made
    value = float(c.attribute("extrapolation_value", 0.0))
    return c.op("where", c.array(beyond), value if made.dtype.is_float else int(value), made)
