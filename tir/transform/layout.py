"""The memory layout of a buffer: strides and flat offsets as expressions, including vector indices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import mul

from ..arith.linear import is_index
from ..buffer import Buffer
from ..dtype import DType
from ..expr import Broadcast, Expr, IntImm, Ramp, cast, const
from ..stmt import Allocate


def as_size(extent: Expr) -> Expr:
    """``extent`` in a type in which its products with others do not wrap around."""
    return extent if is_index(extent.dtype) else cast("int64" if extent.dtype.bits >= 32 else "int32", extent)


def row_major_strides(shape: Sequence[Expr]) -> list[Expr]:
    """The stride of each axis of a compact buffer, in elements."""
    strides: list[Expr] = []
    step: Expr | None = None
    for size in map(as_size, reversed(shape)):
        strides.append(const(1, size.dtype) if step is None else step)
        step = size if step is None else size * step
    return strides[::-1]


def strides_of(buffer: Buffer) -> list[Expr]:
    return list(buffer.strides) if buffer.strides else row_major_strides(buffer.shape)


def plus(a: Expr, b: Expr) -> Expr:
    """a + b for indices: a ramp moved by a scalar stays a ramp."""
    if isinstance(b, Broadcast) and a.dtype.lanes > 1:
        b = b.value
    if isinstance(a, Broadcast) and b.dtype.lanes > 1:
        a = a.value
    if a.dtype.lanes == 1 and b.dtype.lanes == 1:
        return a + b
    if isinstance(b, Ramp) and a.dtype.lanes == 1:
        a, b = b, a
    if isinstance(a, Ramp) and b.dtype.lanes == 1:
        return _ramp(a.base + b, a.stride, a.lanes)
    if isinstance(a, Ramp) and isinstance(b, Ramp) and a.lanes == b.lanes:
        return _ramp(a.base + b.base, a.stride + b.stride, a.lanes)
    return a + b


def minus(a: Expr, b: Expr) -> Expr:
    """a - b for an index and a scalar."""
    return _ramp(a.base - b, a.stride, a.lanes) if isinstance(a, Ramp) else a - b


def times(a: Expr, factor: Expr) -> Expr:
    """a * factor for an index and a scalar."""
    if isinstance(a, Ramp) and factor.dtype.lanes == 1:
        return _ramp(a.base * factor, a.stride * factor, a.lanes)
    if isinstance(a, Broadcast):
        return Broadcast(a.value * factor, a.lanes)
    return a * factor


def _ramp(base: Expr, stride: Expr, lanes: int) -> Expr:
    """A ramp whose base and stride have one dtype."""
    if base.dtype.bits > stride.dtype.bits:
        stride = cast(base.dtype, stride)
    elif stride.dtype.bits > base.dtype.bits:
        base = cast(stride.dtype, base)
    return Ramp(base, stride, lanes)


def dot(indices: Sequence[Expr], strides: Sequence[Expr], wide: bool = False) -> Expr:
    """The sum of index * stride; in int64 when ``wide``."""
    total: Expr | None = None
    for index, stride in zip(indices, strides):
        if wide and index.dtype.bits < 64:
            index = cast(DType("int64").with_lanes(index.dtype.lanes), index)
        term = times(index, stride)
        total = term if total is None else plus(total, term)
    return const(0) if total is None else total


def product(extents: Iterable[Expr]) -> Expr:
    """The product of ``extents``, in a type in which it does not wrap around; 1 of none."""
    sizes = [as_size(e) for e in extents]
    return reduce(mul, sizes) if sizes else const(1)


def element_count(shape: Sequence[Expr]) -> int | None:
    """The number of elements, where it is a constant."""
    count = 1
    for size in shape:
        if not isinstance(size, IntImm):
            return None
        count *= size.value
    return count


def allocated_bytes(a: Allocate) -> int | None:
    """The bytes of an allocation, where its size is a constant."""
    count = element_count(a.extents)
    return None if count is None else count * a.dtype.bytes
