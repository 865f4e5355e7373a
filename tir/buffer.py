"""Buffer, Range and BufferRegion."""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from .checked import checked
from .dtype import HANDLE, VOID, DType
from .expr import NO_VALUE, BufferLoad, Expr, IntImm, Ramp, Var, as_expr, cast, const, is_const
from .node import Node, node, once, set_field

# where buffers live; what follows a dot may be the hardware's own (``global.vtcm``)
SCOPES = (
    "global", "shared", "shared.dyn", "local", "warp", "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator",
    "m16n8k8.matrixA", "m16n8k8.matrixB", "m16n8k8.matrixC", "texture", "texture.weight", "global.texture",
    "amx.tile",
)  # fmt: skip


@node
class Range(Node):
    """The integers min, min + 1, …, min + extent - 1; the narrower of the two takes the other's dtype.

    Raises ``TypeError`` for numbers, which may be meant as first and last: :meth:`of` takes these.

    >>> import tir
    >>> tir.Range(tir.IntImm(2), tir.IntImm(3)), tir.Range.of(2, 5).extent
    (T.Range(2, 5), 3)
    """

    from_numbers = {"min, extent": "min, extent"}  # refused below
    min: Expr
    extent: Expr

    def __post_init__(self) -> None:
        low: Any = self.min
        extent: Any = self.extent
        if type(extent) is IntImm and isinstance(low, Expr) and low.dtype is extent.dtype:
            return  # most are
        if not isinstance(low, Expr) or not isinstance(extent, Expr):
            raise TypeError(
                f"Range({self.min!r}, {self.extent!r}): a first element and an extent are expressions; "
                f"Range.of({self.min!r}, {self.extent!r}) makes the range between two numbers, without the second"
            )
        first, size = low.dtype, extent.dtype
        if first is not size and first.is_int and size.is_int and first.lanes == size.lanes:
            wide = max(first, size, key=lambda dtype: dtype.bits)
            set_field(self, "min", cast(wide, self.min))
            set_field(self, "extent", cast(wide, self.extent))

    @staticmethod
    def of(begin: Any, end: Any) -> Range:
        """The range from ``begin`` up to, not including, ``end``."""
        first, last = as_expr(begin), as_expr(end)
        return Range(first, last - first)

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any) -> Range:
        """The range of ``extent`` integers from ``min_value`` on; numbers are taken, as this says what they mean.

        >>> from tir import Range
        >>> Range.from_min_extent(2, 3)
        T.Range(2, 5)
        """
        return Range(as_expr(min_value), as_expr(extent))

    def ends(self) -> tuple[int, int] | None:
        """The first and the last of the integers; None if there is none, or one that is not known.

        >>> from tir import Range
        >>> Range.of(2, 10).ends()
        (2, 9)
        """
        return ends_of(self.min, self.extent)


def ends_of(low: Expr, extent: Expr) -> tuple[int, int] | None:
    """The ends of the range of so many integers from ``low`` on, as :meth:`Range.ends` has them."""
    if type(low) is not IntImm or type(extent) is not IntImm or extent.value <= 0:
        return None
    return low.value, low.value + extent.value - 1


@node
class Buffer(Node):
    """A typed, shaped piece of memory. Identity is meaning: two buffers called ``A`` are two buffers.

    ``data`` is the pointer it lives behind (two buffers with one ``data`` alias). ``strides`` empty means compact
    row-major. ``elem_offset`` counts elements from ``data``; ``data_alignment`` is in bytes (0: the type's own),
    ``offset_factor`` the divisor of ``elem_offset``. ``axis_separators`` split the axes into the groups that
    flattening makes one physical axis each.

    >>> import tir
    >>> A = tir.decl_buffer((4, 8), "float32", "A", scope="shared")
    >>> A.name, A.shape, A.dtype, A.scope, A[0, 1]
    ('A', (4, 8), 'float32', 'shared', A[0, 1])
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
        """A load; with slices, what they mean in the dialect: a region, or a vector load where one has a step."""
        items = typing.cast("tuple[Any, ...]", indices) if isinstance(indices, tuple) else (indices,)
        if any(isinstance(item, slice) for item in items):
            from .script.values import index_tuple

            return index_tuple(self, items)
        return BufferLoad(self, tuple(index_expr(item) for item in items))

    __iter__ = None  # Python would take elements without end

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    @once
    def sizes(self) -> tuple[Expr, ...]:
        """The extents and strides that are no constants, and the offset."""
        found = (*self.shape, *self.strides, self.elem_offset)
        return tuple(size for size in found if size is not None and type(size) is not IntImm)

    def index_faults(self, indices: tuple[Expr, ...]) -> Iterator[str]:
        """What is wrong with the indices of an access."""
        if len(indices) != self.ndim:
            yield f"buffer `{self.name}` has {self.ndim} dimensions, but {len(indices)} indices are given"
        for axis, index in enumerate(indices[:-1]):
            if index.dtype.lanes > 1:
                yield (
                    f"index {axis} of `{self.name}` is a vector of {index.dtype.lanes} lanes; only the last index may be "
                    "one: transform_layout puts that axis last, or let `vectorize` make the vectors"
                )
        for index in indices:
            if not index.dtype.is_int and not index.dtype.is_bool:
                yield f"an index of `{self.name}` has dtype {index.dtype}; indices are integers"

    @property
    def is_wide(self) -> bool:
        """Whether the place of an element is computed in int64: constant sizes and strides reach 2**31 elements, or one that is
        known at a call only has 64 bits.

        >>> decl_buffer((2**16, 2**15), "int8").is_wide, decl_buffer((2**16, 2**14), "int8").is_wide
        (True, False)
        """
        parts = (*self.shape, *self.strides)
        sizes = [p.value for p in parts if isinstance(p, IntImm)]
        if len(sizes) < len(parts):
            return any(p.dtype.bits > 32 for p in parts)
        shape, strides = sizes[: self.ndim], sizes[self.ndim :]
        return (sum((n - 1) * s for n, s in zip(shape, strides)) if strides else math.prod(shape) - 1) >= 2**31 - 1

    def access_ptr(self, access_mask: Any = "rw", **options: Any) -> Expr:
        """A pointer to the buffer's elements, as an argument of a call: see ``access_ptr`` of the dialect."""
        from .script.buffer_methods import access_ptr

        return access_ptr(self, access_mask, **options)

    def vload(self, begin: Any, dtype: str | None = None) -> Expr:
        """A load of the lanes of ``dtype`` from ``begin``."""
        from .script.buffer_methods import vload

        return vload(self, begin, dtype)

    def vstore(self, begin: Any, value: Any) -> Any:
        """The statement that stores all lanes of ``value`` from ``begin``."""
        from .script.buffer_methods import vstore
        from .stmt import BufferStore

        stored = vstore(self, begin, value)
        return BufferStore(self, stored.value, tuple(stored.indices))

    def with_dtype(self, dtype: str) -> Buffer:
        return self.replace(dtype=DType(dtype), data=self.data.replace(pointer_dtype=DType(dtype)))

    def full_region(self) -> BufferRegion:
        return BufferRegion(self, tuple(Range(const(0, s.dtype), s) for s in self.shape))


@checked
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
    if not hasattr(shape, "__iter__"):
        raise TypeError(f"the shape of buffer `{name}` is a tuple of extents, not {shape!r}")
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
    if e.dtype is VOID:
        raise TypeError(f"an index or size {NO_VALUE}: `{e!r}`")
    if not (e.dtype.is_int or e.dtype.is_bool):
        raise TypeError(f"an index or size must be an integer, not {e.dtype}: `{e!r}`")
    return e


@node
class BufferRegion(Node):
    """A box of a buffer: one Range per axis.

    >>> import tir
    >>> A = tir.decl_buffer((4, 8), "float32", "A")
    >>> tir.BufferRegion(A, (tir.Range.of(0, 4), tir.Range.of(2, 3)))
    A[0:4, 2]
    """

    buffer: Buffer
    region: tuple[Range, ...]

    def faults(self) -> Iterator[str]:
        """What is wrong with the region, wherever it stands."""
        if len(self.region) != self.buffer.ndim:
            yield f"buffer `{self.buffer.name}` has {self.buffer.ndim} dimensions, but its region {len(self.region)}"

    def __getitem__(self, indices: Any) -> Any:
        raise TypeError("a buffer region cannot be indexed; name the buffer, or use T.match_buffer")


@node
class MatchBufferRegion(Node):
    """Inside a block, ``buffer`` names the region ``source`` of another buffer.

    >>> import tir
    >>> A = tir.decl_buffer((4, 8), "float32", "A")
    >>> row = tir.decl_buffer((8,), "float32", "row")
    >>> view = tir.MatchBufferRegion(row, tir.BufferRegion(A, (tir.Range.of(2, 3), tir.Range.of(0, 8))))
    >>> view.buffer.name, view.source
    ('row', A[2, 0:8])
    """

    buffer: Buffer
    source: BufferRegion

    def faults(self) -> Iterator[str]:
        """What is wrong with the view, wherever it stands."""
        view, source = self.buffer, self.source.buffer
        if view.dtype is not source.dtype:
            yield f"view `{view.name}` holds {view.dtype}, but `{source.name}` holds {source.dtype}"
        if view.scope != source.scope:
            yield f'view `{view.name}` is in scope "{view.scope}", but `{source.name}` in "{source.scope}"'

    def made(self) -> list[Any]:
        """The variables that the view has a value for where they have none: its pointer, strides and offset."""
        return [p for p in (self.buffer.data, *self.buffer.strides, self.buffer.elem_offset) if isinstance(p, Var)]


ITER_TYPES = ("spatial", "reduce", "scan", "opaque", "thread")


@node
class IterVar(Node):
    """An iterator of a block (or a thread axis): its variable, domain and kind (one of ``ITER_TYPES``).

    >>> import tir
    >>> k = tir.IterVar(tir.Range.of(0, 8), tir.Var("vk"), "reduce")
    >>> k.var, k.dom.extent, k.iter_type
    (vk, 8, 'reduce')
    """

    dom: Range | None
    var: Var
    iter_type: str = "spatial"
    thread_tag: str = ""

    @property
    def dtype(self) -> DType:
        return self.var.dtype


def as_rows(buffer: Buffer, indices: list[Any]) -> list[Any] | None:
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
