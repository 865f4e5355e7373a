"""Buffer, Range and BufferRegion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dtype import HANDLE, DType
from .expr import BufferLoad, Expr, IntImm, Ramp, Var, as_expr, const
from .node import Node, node


@node
class Range(Node):
    """The integers min, min + 1, …, min + extent - 1."""

    min: Expr
    extent: Expr

    @staticmethod
    def of(begin: Any, end: Any) -> Range:
        """The range from ``begin`` up to, not including, ``end``."""
        first, last = as_expr(begin), as_expr(end)
        return Range(first, last - first)


@node
class Buffer(Node):
    """A typed, shaped piece of memory. Identity is meaning: two buffers called ``A`` are two buffers.

    ``data`` is the pointer it lives behind (two buffers with one ``data`` alias). ``strides`` empty means compact
    row-major. ``elem_offset`` counts elements from ``data``; ``data_alignment`` is in bytes (0: the type's own),
    ``offset_factor`` the divisor of ``elem_offset``. ``axis_separators`` split the axes into the groups that
    flattening makes one physical axis each.
    """

    name: str
    shape: tuple[Expr, ...]
    dtype: DType
    data: Var
    strides: tuple[Expr, ...]
    elem_offset: Expr | None
    scope: str
    data_alignment: int
    offset_factor: int
    axis_separators: tuple[int, ...]
    buffer_type: str

    def __getitem__(self, indices: Any) -> Any:
        """A load, or a BufferRegion when an index is a slice without a constant vector meaning."""
        items = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(item, slice) for item in items):
            return region_or_ramp(self, items)
        return BufferLoad(self, tuple(index_expr(item) for item in items))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def with_dtype(self, dtype: str) -> Buffer:
        return self.replace(dtype=DType(dtype), data=self.data.replace(pointer_dtype=DType(dtype)))

    def full_region(self) -> BufferRegion:
        return BufferRegion(self, tuple(Range(const(0, s.dtype), s) for s in self.shape))


def decl_buffer(
    shape: Sequence[Any] | Any,
    dtype: str = "float32",
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """A new buffer; every part but the shape has the usual default (compact, global, own pointer).

    Raises ``ValueError`` for a negative extent, ``TypeError`` for one that is no integer.

    >>> decl_buffer((128, 128), "float16", name="A").scope
    'global'
    """
    if isinstance(shape, (Expr, int)):
        shape = (shape,)
    element = DType(dtype)
    if data is not None:
        scope = scope or data.scope or "global"
    scope = scope or "global"
    if data is None:
        data = Var(name, HANDLE, element, scope)
    extents = tuple(index_expr(s) for s in shape)
    for axis, extent in enumerate(extents):
        if isinstance(extent, IntImm) and extent.value < 0:
            raise ValueError(f"axis {axis} of buffer `{name}` has extent {extent.value}; an extent is at least 0")
    return Buffer(
        name,
        extents,
        element,
        data,
        tuple(index_expr(s) for s in strides or ()),
        None if elem_offset is None else index_expr(elem_offset),
        scope,
        int(data_alignment if data_alignment and data_alignment > 0 else 0),
        int(offset_factor or 0),
        tuple(int(a) for a in axis_separators or ()),
        "" if buffer_type in ("", "default") else buffer_type,
    )


def index_expr(value: Any) -> Expr:
    """An index or a size as an expression: ints become int32 (int64 where they do not fit)."""
    e = as_expr(value)
    if not (e.dtype.is_int or e.dtype.is_bool or e.dtype.is_handle):
        raise TypeError(f"an index or size must be an integer, not {e.dtype}: `{e!r}`")
    return e


@node
class BufferRegion(Node):
    """A box of a buffer: one Range per axis."""

    buffer: Buffer
    region: tuple[Range, ...]

    def __getitem__(self, indices: Any) -> Any:
        raise TypeError("a buffer region cannot be indexed; name the buffer, or use T.match_buffer")


def region_or_ramp(buffer: Buffer, items: tuple[Any, ...]) -> Any:
    """``A[i, a:b]`` is a region; with a step (``A[i, a:b:s]``) it is a vector load."""
    if any(isinstance(item, slice) and item.step is not None for item in items):
        return BufferLoad(buffer, tuple(_ramp(buffer, axis, item) for axis, item in enumerate(items)))
    ranges = []
    for axis, item in enumerate(items):
        if isinstance(item, slice):
            begin = as_expr(0 if item.start is None else item.start)
            end = buffer.shape[axis] if item.stop is None else as_expr(item.stop)
            ranges.append(Range(begin, slice_extent(begin, end)))
        else:
            ranges.append(Range(index_expr(item), const(1, index_expr(item).dtype)))
    return BufferRegion(buffer, tuple(ranges))


def slice_extent(begin: Expr, end: Expr) -> Expr:
    """end - begin, with ``x + c`` minus ``x`` folded to ``c`` so that ``A[i : i + 4]`` has a constant extent."""
    from .arith import simplify

    return simplify(end - begin)


def _ramp(buffer: Buffer, axis: int, item: Any) -> Expr:
    if not isinstance(item, slice):
        return index_expr(item)
    begin = as_expr(0 if item.start is None else item.start)
    end = buffer.shape[axis] if item.stop is None else as_expr(item.stop)
    step = 1 if item.step is None else item.step
    extent = slice_extent(begin, end)
    if not isinstance(extent, IntImm) or not isinstance(step, (int, IntImm)):
        raise TypeError("a strided slice needs a constant length and step")
    lanes = -(-extent.value // int(step))
    return begin if lanes == 1 else Ramp(begin, const(int(step), begin.dtype), lanes)


@node
class MatchBufferRegion(Node):
    """Inside a block, ``buffer`` names the region ``source`` of another buffer."""

    buffer: Buffer
    source: BufferRegion


ITER_TYPES = ("spatial", "reduce", "scan", "opaque", "thread")


@node
class IterVar(Node):
    """An iterator of a block (or a thread axis): its variable, domain and kind (one of ``ITER_TYPES``)."""

    dom: Range | None
    var: Var
    iter_type: str = "spatial"
    thread_tag: str = ""

    @property
    def dtype(self) -> DType:
        return self.var.dtype
