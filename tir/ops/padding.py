"""Operators that put elements around a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import Expr, is_const, simplify
from .. import max as max_
from .. import min as min_
from ..te import Tensor, all, compute, error, if_then_else
from .contract import BY_PADS
from .element_places import MOVED_DTYPES, chosen, constant_of, listed, sized
from .registry import arg, case, operator

_PADS = [((1, 2), (0, 3)), ((2, 0), (0, 0))]


def _numpy_pad(x: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Any:
    return np.pad(x, pad_width, mode, **({"constant_values": constant_values} if mode == "constant" else {}))


@operator(
    gives=(6, 5), unstated=BY_PADS, section="transform", reference=_numpy_pad,
    cases=[
        *(case(arg((3, 2)), widths, mode) for widths in _PADS for mode in ("edge", "reflect", "symmetric", "wrap")),
        *(case(arg((2, 1), "int8"), 5, mode) for mode in ("edge", "reflect", "symmetric", "wrap")),
        case(arg((3, 2)), (1, 2)), case(arg((3, 2)), ((1,), (2,)), constant_values=7), case(arg((0, 2)), 1),
        case(arg(()), 1), case(arg(("n", 2)), ((1, 0), (0, 1)), "reflect"),
        *(case(arg((3,), dtype), 2, constant_values=1) for dtype in MOVED_DTYPES),
    ],
)  # fmt: skip
def pad(x: Tensor, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """``x`` with elements around it: ``pad_width`` is ``((before, after), …)`` for each axis, one pair, or one number.

    ``mode`` is ``"constant"`` (of ``constant_values``, one number), ``"edge"`` (the outermost element), ``"reflect"`` (mirrored at the
    outermost element), ``"symmetric"`` (with the outermost element twice), or ``"wrap"`` (from the other end), with the
    meaning that they have in ``numpy.pad``.

    Raises ``TensorExpressionError`` for negative widths, for those that are not of all axes, and for a mode that takes
    elements of an axis that has none.
    """
    chosen(mode, ("constant", *_PERIODS), "the mode of padding")
    widths = _widths(pad_width, x.ndim)
    before, after = [b for b, _ in widths], [a for _, a in widths]
    if mode == "constant":
        return _constant(x, before, after, constant_values, "pad")
    return _mirrored(x, before, after, mode, "pad")


def _widths(pad_width: Any, ndim: int) -> list[tuple[Expr, Expr]]:
    given = listed(pad_width)
    pairs = list(given) if any(isinstance(w, (list, tuple)) for w in given) else [given]
    if len(pairs) == 1:
        pairs *= ndim
    made = [sized(p, "the width of padding") for p in pairs]
    if len(made) != ndim or any(len(p) not in (1, 2) for p in made):
        raise error(f"{pad_width!r} does not say how wide {ndim} axes are padded", "((before, after), …), one an axis")
    return [(p[0], p[-1]) for p in made]


def _constant(x: Tensor, before: Sequence[Expr], after: Sequence[Expr], value: Any, name: str) -> Tensor:
    outside = constant_of(value, x.dtype)

    def element(*indices: Any) -> Expr:
        places = [i - b for i, b in zip(indices, before)]
        inside = [p >= 0 for p, b in zip(places, before) if not is_const(b, 0)]
        inside += [p < s for p, s, a in zip(places, x.shape, after) if not is_const(a, 0)]
        return if_then_else(all(*inside), x(*places), outside) if inside else x(*places)

    return compute(_padded_shape(x, before, after), element, name=name)


def _padded_shape(x: Tensor, before: Sequence[Expr], after: Sequence[Expr]) -> list[Expr]:
    return [simplify(b + s + a) for b, s, a in zip(before, x.shape, after)]


def _mirrored(x: Tensor, before: Sequence[Expr], after: Sequence[Expr], mode: str, name: str) -> Tensor:
    for n, (b, s, a) in enumerate(zip(before, x.shape, after)):
        if is_const(s, 0) and not (is_const(b, 0) and is_const(a, 0)):
            raise error(f"axis {n} of shape {x.shape} has no elements to be padded with", 'mode="constant"')

    def place(index: Any, b: Expr, s: Expr, a: Expr) -> Expr:
        return index if is_const(b, 0) and is_const(a, 0) else _PERIODS[mode](index - b, s)

    return compute(
        _padded_shape(x, before, after),
        lambda *indices: x(*(place(*each) for each in zip(indices, before, x.shape, after))),
        name=name,
    )


def _reflected(place: Any, extent: Any) -> Expr:
    """The place below ``extent`` that ``place`` is mirrored to, at the outermost elements."""
    if is_const(extent, 1):
        return place * 0
    period = max_((extent - 1) * 2, 1)
    inside = place % period
    return min_(inside, period - inside) if is_const(extent) else min_(min_(inside, period - inside), extent - 1)


def _symmetric(place: Any, extent: Any) -> Expr:
    inside = place % (extent * 2)
    return min_(inside, extent * 2 - 1 - inside)


_PERIODS: dict[str, Callable[[Any, Any], Expr]] = {
    "edge": lambda place, extent: min_(max_(place, 0), extent - 1),
    "reflect": _reflected,
    "symmetric": _symmetric,
    "wrap": lambda place, extent: place % extent,
}


# ---------------------------------------------------------------- as in old scripts


def _numpy_nn_pad(x: Any, pad_before: Any, pad_after: Any = None, pad_value: Any = 0, name: str = "") -> Any:
    after = pad_before if pad_after is None else pad_after
    return np.pad(x, list(zip(pad_before, after)), constant_values=pad_value)


@operator(
    gives=(4, 3), section="transform", namespace="nn", name="pad", unstated=BY_PADS, reference=_numpy_nn_pad,
    cases=[
        case(arg((2, 3)), (1, 0)), case(arg((2, 3), "int8"), (1, 0), (0, 2), 5),
        case(arg((2, 3), "bfloat16"), (0, 0), (0, 1), pad_value=0.5),
        case(arg(("n", 3)), (1, 1), (2, 2), name="padded"),
    ],
)  # fmt: skip
def nn_pad(
    x: Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
) -> Tensor:
    """``x`` with ``pad_value`` around it: ``pad_before[n]`` and ``pad_after[n]`` (as many, for None) along axis ``n``."""
    return _constant(x, *_before_and_after(x, pad_before, pad_after), pad_value, name)


def _before_and_after(x: Tensor, pad_before: Any, pad_after: Any) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    before = sized(pad_before, "the width of padding")
    after = before if pad_after is None else sized(pad_after, "the width of padding")
    if not len(before) == len(after) == x.ndim:
        raise error(f"padding of {before} before and {after} after is not that of {x.ndim} axes", "one number an axis")
    return before, after


_MIRRORS = {"SYMMETRIC": "symmetric", "REFLECT": "reflect"}


def _numpy_mirror_pad(x: Any, pad_before: Any, pad_after: Any = None, mode: str = "SYMMETRIC", name: str = "") -> Any:
    after = pad_before if pad_after is None else pad_after
    return np.pad(x, list(zip(pad_before, after)), mode=mode.lower())  # type: ignore[call-overload]


@operator(
    gives=(3, 5), unstated=BY_PADS, section="transform", namespace="nn", reference=_numpy_mirror_pad,
    cases=[case(arg((2, 3)), (1, 0), (0, 2)), case(arg((2, 3), "int8"), (1, 2), mode="REFLECT")],
)  # fmt: skip
def mirror_pad(
    x: Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Tensor:
    """``x`` with its own elements around it, mirrored with the outermost twice (``"SYMMETRIC"``) or once (``"REFLECT"``)."""
    chosen(mode, tuple(_MIRRORS), "the mode of padding")
    return _mirrored(x, *_before_and_after(x, pad_before, pad_after), _MIRRORS[mode], name)


def _numpy_padded(mode: Any) -> Any:
    def reference(data: Any, pad_before: Any, pad_after: Any = None, name: str = "") -> Any:
        return np.pad(data, list(zip(pad_before, pad_before if pad_after is None else pad_after)), mode)

    return reference


_PADDED = (
    case(arg((4, 3)), (1, 0), (0, 2)),
    case(arg((4, 3), "int8"), (2, 1)),
    case(arg((5,), "bfloat16"), (9,), (7,), name="padded"),
    case(arg(("n", 3)), (1, 1), (2, 0)),
)


@operator(
    gives=(5, 5), unstated=BY_PADS, section="transform", namespace="nn", reference=_numpy_padded("wrap"), cases=_PADDED
)
def circular_pad(
    data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, name: str = "CircularPadInput"
) -> Tensor:
    """``data`` with the elements of its other end around it: :func:`pad` of mode ``"wrap"``."""
    return _mirrored(data, *_before_and_after(data, pad_before, pad_after), "wrap", name)


@operator(
    gives=(5, 5),
    unstated=BY_PADS,
    section="transform",
    namespace="nn",
    reference=_numpy_padded("reflect"),
    cases=_PADDED,
)
def reflect_pad(
    data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, name: str = "ReflectPadInput"
) -> Tensor:
    """``data`` with its own elements around it, mirrored at the outermost: :func:`pad` of mode ``"reflect"``."""
    return _mirrored(data, *_before_and_after(data, pad_before, pad_after), "reflect", name)


@operator(
    gives=(5, 5), unstated=BY_PADS, section="transform", namespace="nn", reference=_numpy_padded("edge"), cases=_PADDED
)
def replicate_pad(
    data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, name: str = "ReplicatePadInput"
) -> Tensor:
    """``data`` with its outermost elements around it: :func:`pad` of mode ``"edge"``."""
    return _mirrored(data, *_before_and_after(data, pad_before, pad_after), "edge", name)
