"""Attributes and methods of a buffer inside the dialect: ``A.data``, ``A.vload(...)``, ``A.access_ptr(...)``."""

from __future__ import annotations

from typing import Any

from .. import op as _op
from ..buffer import Buffer, Range
from ..dtype import DType
from ..expr import BufferLoad, Expr, Ramp, as_expr, const
from ..neighbours import written_here
from .diagnostics import did_you_mean
from .frames import BufferSpec, StoreFrame

_FIELDS = (
    "name", "shape", "dtype", "data", "strides", "elem_offset", "data_alignment", "offset_factor", "axis_separators",
    "buffer_type", "ndim",
)  # fmt: skip


class _Scope(str):
    """A storage scope that is a string and, as in classic scripts, also ``A.scope()``."""

    def __call__(self) -> str:
        return str(self)


def attribute(buffer: Buffer, name: str) -> Any:
    """``buffer.name``. Raises ``AttributeError`` with near names."""
    if name == "scope":
        return _Scope(buffer.scope)
    if name == "elem_offset":
        return const(0, "int32") if buffer.elem_offset is None else buffer.elem_offset
    if name == "strides" and not buffer.strides:
        return compact_strides(buffer)
    if name in _FIELDS:
        return getattr(buffer, name)
    method = _METHODS.get(name)
    if method is None:
        here = written_here(name)
        notes = [f"write {here}"] if here is not None else did_you_mean(name, [*_FIELDS, "scope", *_METHODS])
        raise AttributeError("; ".join([f"a buffer has no attribute `{name}`", *notes]))
    return lambda *args, **named: method(buffer, *args, **named)


def compact_strides(buffer: Buffer) -> tuple[Expr, ...]:
    """Row-major strides of a buffer that has none of its own."""
    strides: list[Expr] = []
    step: Expr = const(1, buffer.shape[-1].dtype if buffer.shape else "int32")
    for size in reversed(buffer.shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def flat_offset(buffer: Buffer, indices: tuple[Any, ...]) -> Expr:
    """Elements from the start of the buffer to an index."""
    strides = buffer.strides or compact_strides(buffer)
    total: Expr = const(0, "int32")
    for index, stride in zip(indices, strides):
        total = total + as_expr(index) * stride
    return total


def _indices(value: Any) -> tuple[Any, ...]:
    return tuple(as_expr(i) for i in (value if isinstance(value, (tuple, list)) else (value,)))


def _vector(buffer: Buffer, indices: tuple[Any, ...], lanes: int) -> tuple[Any, ...]:
    count = lanes // buffer.dtype.lanes
    if count <= 1 or indices[-1].dtype.lanes > 1:
        return indices
    return (*indices[:-1], Ramp(indices[-1], const(1, indices[-1].dtype), count))


def vload(buffer: Buffer, begin: Any, dtype: str | None = None) -> Expr:
    """A load of ``dtype`` lanes from ``begin``. Raises ``TypeError`` for lanes of another type than the buffer's."""
    wanted = DType(dtype) if dtype else buffer.dtype
    if wanted.element != buffer.dtype.element:
        raise TypeError(f"buffer `{buffer.name}` holds {buffer.dtype.element}, a load of it is no {wanted}")
    return BufferLoad(buffer, _vector(buffer, _indices(begin), wanted.lanes))


def vstore(buffer: Buffer, begin: Any, value: Any) -> StoreFrame:
    """A store of all lanes of ``value`` from ``begin``."""
    e = as_expr(value, buffer.dtype)
    return StoreFrame(buffer, e, _vector(buffer, _indices(begin), e.dtype.lanes))


def access_ptr(
    buffer: Buffer,
    access_mask: Any = "rw",
    ptr_type: str = "handle",
    content_lanes: int = 1,
    offset: Any = 0,
    extent: Any = None,
) -> Expr:
    """A pointer into the buffer for an intrinsic; ``access_mask`` is ``"r"``, ``"w"``, ``"rw"`` or 1, 2, 3."""
    if isinstance(access_mask, str):
        letters = access_mask
        access_mask = sum({"r": 1, "w": 2}.get(letter, 0) for letter in set(letters))
        if access_mask == 0 or set(letters) - {"r", "w"}:
            raise ValueError(f'access mask "r", "w" or "rw" is expected, not {letters!r}')
    start = as_expr(offset)
    size: Expr = const(1, "int32")
    for s in buffer.shape:
        size = size * s
    if buffer.strides and buffer.shape:
        size = buffer.strides[0] * buffer.shape[0]
    base = start if buffer.elem_offset is None else buffer.elem_offset + start
    count = size - start if extent is None else as_expr(extent)
    element = buffer.dtype.with_lanes(content_lanes) if content_lanes > 1 else buffer.dtype
    kind = _op.call("type_annotation", dtype=element)
    return _op.call("tvm_access_ptr", kind, buffer.data, base, count, access_mask, dtype=ptr_type)


def offset_of(buffer: Buffer, indices: Any) -> list[Expr]:
    return [flat_offset(buffer, _indices(indices))]


def region(buffer: Buffer, *bounds: Any) -> Any:
    from ..buffer import BufferRegion

    return BufferRegion(buffer, tuple(Range.of(*b) for b in bounds))


def view(buffer: Buffer, *shape: Any) -> BufferSpec:
    """The same memory by another shape, as ``T.decl_buffer(shape, data=buffer.data)``."""
    options = {"data": buffer.data, "scope": buffer.scope}
    return BufferSpec("decl_buffer", tuple(shape), buffer.dtype, options)


_METHODS = {
    "view": view, "vload": vload, "vstore": vstore, "access_ptr": access_ptr, "offset_of": offset_of, "region": region,
    "full_region": Buffer.full_region,
}  # fmt: skip
