"""Sub-region views (``T.match_buffer(B[i0:i1, …])`` in a block) become accesses of the buffer they view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arith import Analyzer
from ..buffer import BufferRegion, MatchBufferRegion, Range
from ..errors import BuildError
from ..expr import BufferLoad, Expr, Var, cast, const
from ..function import PrimFunc
from ..stmt import Block, BufferStore
from ..visit import rewrite, substitute
from .layout import dot, plus, strides_of
from .passes import func_pass


def _agree(bound: dict[Var, Any], view: Expr, actual: Expr, what: str) -> None:
    """A variable the view leaves open takes the actual value; anything else has to equal it."""
    if isinstance(view, Var) and view not in bound:
        bound[view] = cast(view.dtype, actual)
    elif not Analyzer().can_prove_equal(substitute(view, bound), actual):
        raise BuildError(f"{what} is declared as `{view!r}`, but the region it views has `{actual!r}`")


def _variables(match: MatchBufferRegion) -> dict[Var, Any]:
    """What the view's open variables (pointer, shape, strides, offset) are, checked against the source."""
    view, source = match.buffer, match.source
    name = f"match_buffer `{view.name}`"
    if view.dtype != source.buffer.dtype:
        raise BuildError(f"{name} holds {view.dtype}, but `{source.buffer.name}` holds {source.buffer.dtype}")
    extra = len(source.region) - view.ndim
    if extra < 0:
        raise BuildError(f"{name} has {view.ndim} axes, but `{source.buffer.name}` has {len(source.region)}")
    bound: dict[Var, Any] = {view.data: source.buffer.data}
    for axis, rng in enumerate(source.region[:extra]):
        if not Analyzer().can_prove_equal(rng.extent, const(1, rng.extent.dtype)):
            raise BuildError(f"{name} drops axis {axis} of its region, so the extent must be 1, not `{rng.extent!r}`")
    for axis, (size, rng) in enumerate(zip(view.shape, source.region[extra:])):
        _agree(bound, size, rng.extent, f"{name}: shape[{axis}]")
    strides = strides_of(source.buffer)
    for axis, (stride, actual) in enumerate(zip(view.strides, strides[extra:])):
        _agree(bound, stride, actual, f"{name}: strides[{axis}]")
    if isinstance(view.elem_offset, Var):
        offset = dot([r.min for r in source.region], strides)
        if source.buffer.elem_offset is not None:
            offset = plus(source.buffer.elem_offset, offset)
        bound[view.elem_offset] = cast(view.elem_offset.dtype, offset)
    return bound


def _moved(source: BufferRegion, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """Indices of the view as indices of its source."""
    mins = [r.min for r in source.region]
    extra = len(mins) - len(indices)
    return (*mins[:extra], *(plus(low, index) for low, index in zip(mins[extra:], indices)))


def _lower(item: Any) -> Any:
    if not isinstance(item, Block) or not item.match_buffers:
        return None
    views = {m.buffer: m.source for m in item.match_buffers}
    bound: dict[Var, Any] = {}
    for match in item.match_buffers:
        bound.update(_variables(match))

    def redirect(node: Any) -> Any:
        if not isinstance(node, (BufferLoad, BufferStore, BufferRegion)):
            return None
        source = views.get(node.buffer)
        if source is None:
            return None
        if not isinstance(node, BufferRegion):
            return node.replace(buffer=source.buffer, indices=_moved(source, node.indices))
        mins = _moved(source, [r.min for r in node.region])
        dropped = source.region[: len(mins) - len(node.region)]
        extents = [*(r.extent for r in dropped), *(r.extent for r in node.region)]
        return BufferRegion(source.buffer, tuple(Range(m, e) for m, e in zip(mins, extents)))

    return substitute(rewrite(item.replace(match_buffers=()), redirect), bound)


@func_pass
def lower_match_buffer(func: PrimFunc) -> PrimFunc:
    """Accesses of a view become accesses of its source; its open strides and offset become their values.

    Raises ``BuildError`` where the view's type, shape or strides contradict the region it views.
    """
    return func.with_body(rewrite(func.body, _lower))
