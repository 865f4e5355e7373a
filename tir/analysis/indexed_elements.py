"""The elements that indices with vectors and boxes refer to: in rows of a buffer, and in the source of a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..buffer import Buffer, MatchBufferRegion
from ..expr import Expr, IntImm, Ramp, const, is_const


def rows(buffer: Buffer, indices: list[Any]) -> list[Any] | None:
    """``indices``, with a vector that continues from the end of a row into the next as a box of complete rows; None
    (any element) if it is not of that form."""
    last = indices[-1] if indices else None
    if not isinstance(last, Ramp) or len(indices) < 2 or len(indices) != buffer.ndim:
        return indices
    row = buffer.shape[-1]
    if not isinstance(row, IntImm) or not is_const(last.stride, 1) or last.lanes <= row.value:
        return indices
    above = indices[-2]
    if last.lanes % row.value or not is_const(last.base, 0) or isinstance(above, tuple) or above.dtype.lanes > 1:
        return None
    return [*indices[:-2], (above, const(last.lanes // row.value, above.dtype)), (last.base, row)]


def in_source(
    match: MatchBufferRegion, view: Buffer, indices: Sequence[Any] | None, known: Any = lambda e: e
) -> list[Any]:
    """The elements of the source that ``indices`` of the ``view`` refer to: the entire region if the view's axes are
    not the region's last ones. ``known`` gives the region's expressions in the effect's terms."""
    region = [(known(r.min), known(r.extent)) for r in match.source.region]
    lead = len(region) - view.ndim
    if indices is None or lead < 0 or len(indices) != view.ndim:
        return region
    if not all(_same_size(size, extent) for size, (_, extent) in zip(view.shape, region[lead:])):
        return region
    if not all(is_const(extent, 1) for _, extent in region[:lead]):
        return region
    moved = [_moved(index, low) for index, (low, _) in zip(indices, region[lead:])]
    return [*(low for low, _ in region[:lead]), *moved]


def _same_size(a: Expr, b: Expr) -> bool:
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)


def _moved(index: Any, by: Expr) -> Any:
    if is_const(by, 0):
        return index
    if isinstance(index, tuple):
        low, extent = index
        return (by + low, extent)
    if isinstance(index, Ramp):
        return index.replace(base=by + index.base)
    return by + index
