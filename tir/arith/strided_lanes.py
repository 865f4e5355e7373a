"""Vectors of indices whose lanes are at constant distances."""

from __future__ import annotations

from ..expr import Add, Broadcast, Cast, Expr, FloorDiv, FloorMod, IntImm, Mul, Ramp, Sub, cast
from ..node import once
from .linear import is_index


@once
def lane_offsets(e: Expr) -> tuple[Expr, tuple[int, ...]] | None:
    """(the first lane of a vector index, how far each lane is from it); None if that is not constant.

    >>> from tir.expr import Var
    >>> lane_offsets(Broadcast(Var("i"), 4) + Ramp(IntImm(1), IntImm(1), 4) // Broadcast(IntImm(2), 4))
    (T.Add(i, 0), (0, 1, 1, 2))
    """
    if not is_index(e.dtype.element):  # lanes of narrow and unsigned integers wrap around
        return None
    if isinstance(e, Ramp) and isinstance(e.stride, IntImm) and e.base.dtype.lanes == 1:
        step = e.stride.value
        return e.base, tuple(range(0, e.lanes * step, step)) if step else (0,) * e.lanes
    if isinstance(e, Broadcast) and e.value.dtype.lanes == 1:
        return e.value, (0,) * e.lanes
    if isinstance(e, Cast):
        inner = lane_offsets(e.value)
        return inner and (cast(e.dtype.element, inner[0]), inner[1])
    if not isinstance(e, (Add, Sub, Mul, FloorDiv, FloorMod)):
        return None
    a, b = lane_offsets(e.a), lane_offsets(e.b)
    if a is None or b is None:
        return None
    if isinstance(e, (Add, Sub)):
        kind, sign = (Add, 1) if isinstance(e, Add) else (Sub, -1)
        return kind(a[0], b[0]), tuple(x + sign * y for x, y in zip(a[1], b[1]))
    if isinstance(e, Mul):
        (base, offsets), (factor, flat) = (a, b) if isinstance(b[0], IntImm) and not any(b[1]) else (b, a)
        scales = isinstance(factor, IntImm) and not any(flat)
        return (Mul(base, factor), tuple(x * factor.value for x in offsets)) if scales else None  # type: ignore[attr-defined]
    if not isinstance(a[0], IntImm) or not isinstance(b[0], IntImm) or any(b[1]) or b[0].value <= 0:
        return None
    parts = [divmod(a[0].value + x, b[0].value)[isinstance(e, FloorMod)] for x in a[1]]
    return IntImm(parts[0], a[0].dtype), tuple(part - parts[0] for part in parts)


def first_lane(e: Expr) -> Expr:
    """The first lane of a sum, a product or the like of ramps and broadcasts; a scalar is its own.

    >>> from tir.expr import Var
    >>> first_lane(Broadcast(Var("i"), 4) + Ramp(IntImm(1), Var("s"), 4))
    i + 1
    """
    if e.dtype.lanes == 1:
        return e
    if isinstance(e, Ramp):
        return e.base
    if isinstance(e, Broadcast):
        return e.value
    if isinstance(e, Cast):
        return cast(e.dtype.element, first_lane(e.value))
    return type(e)(first_lane(e.a), first_lane(e.b))  # type: ignore[attr-defined, call-arg]
