"""The part of ``T`` that declares, allocates and views buffers."""

from __future__ import annotations

from typing import Any

from ..buffer import SCOPES as _SCOPES
from ..buffer import Buffer as _Buffer
from ..dtype import DType as _DType
from ..names import resembling as _resembling
from . import frames as _f
from .tir_types import DataType
from .values import dtype_of

__all__ = [
    "Buffer",
    "alloc_buffer",
    "alloc_local",
    "alloc_shared",
    "allocate",
    "allocate_const",
    "buffer",
    "buffer_decl",
    "buffer_store",
    "decl_buffer",
    "match_buffer",
    "realize",
    "sblock_alloc_buffer",
]


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _check_scope(scope: Any) -> None:
    """Refuse a storage scope that is nearly one; others may be those of hardware that this package does not know."""
    near = _resembling(scope, _SCOPES, likeness=0.75) if isinstance(scope, str) else []
    if near and scope not in _SCOPES and scope.partition(".")[0] not in _SCOPES:
        raise TypeError(f"there is no storage scope {scope!r}; did you mean {', '.join(near)}?")


class _BufferType:
    """``T.Buffer((128, 128), "float32")``, also ``T.Buffer[(128,), "float32"]``: a parameter's type, or a view."""

    def __call__(
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = None,
        scope: str = "",
        align: int = 0,
        offset_factor: int = 0,
        buffer_type: str = "",
        axis_separators: Any = None,
    ) -> _f.BufferSpec:
        _check_scope(scope)
        options = {
            "data": data,
            "strides": strides,
            "elem_offset": elem_offset,
            "scope": scope,
            "data_alignment": align,
            "offset_factor": offset_factor,
            "buffer_type": buffer_type,
            "axis_separators": axis_separators,
        }
        return _f.BufferSpec("Buffer", _shape(shape), dtype_of(dtype), options)

    def __getitem__(self, item: Any) -> _f.BufferSpec:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], (str, DataType)):
            return self(*item)
        return self(item)


Buffer = buffer = _BufferType()


def buffer_decl(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
    return Buffer(shape, dtype, **options)


def alloc_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
    annotations: Any = None,
) -> _f.BufferSpec:
    """A buffer that lives in the enclosing block (at the top of a function: in its root block).

    Of ``annotations``, which newer scripts have, the alignment is kept: ``{"buffer_data_alignment": 64}``.
    """
    align = align or (annotations or {}).get("buffer_data_alignment", 0)
    spec = Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    spec.how = "alloc_buffer"
    return spec


sblock_alloc_buffer = alloc_buffer


def alloc_shared(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
    """``T.alloc_buffer`` in shared memory."""
    return alloc_buffer(shape, dtype, scope="shared", **options)


def alloc_local(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
    """``T.alloc_buffer`` in each thread's own memory."""
    return alloc_buffer(shape, dtype, scope="local", **options)


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> _f.BufferSpec:
    """A name for a handle parameter's memory or, in a block, for a region: ``T.match_buffer(A[0:16, j], (16,))``."""
    spec = Buffer(
        () if shape is None else shape,
        dtype,
        data,
        strides,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )
    spec.how, spec.source = "match_buffer", param
    if shape is None:
        spec.options["shape_of_source"] = True
    return spec


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> _f.BufferSpec:
    """A view of the memory behind ``data`` over what follows; without ``data`` the memory is allocated too."""
    spec = Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    spec.how = "decl_buffer"
    return spec


def allocate(
    extents: Any, dtype: Any, scope: str = "global", condition: Any = True, annotations: Any = None
) -> _f.AllocateFrame:
    """Memory for what follows, or for the body of ``with``; its value is the pointer."""
    return _f.AllocateFrame(
        _shape(extents), _DType(dtype_of(dtype)), scope, True if condition is None else condition, annotations or {}
    )


def allocate_const(data: Any, dtype: Any, extents: Any, annotations: Any = None) -> _f.AllocateFrame:
    """Constant memory holding ``data`` (row-major)."""
    return _f.AllocateFrame(_shape(extents), _DType(dtype_of(dtype)), "global", True, annotations or {}, data)


def realize(region: Any, scope: str = "", condition: Any = True) -> _f.RealizeFrame:
    """A box of a buffer in memory over the body: ``with T.realize(B[0:16], "global"):``."""
    return _f.RealizeFrame(region, scope, condition)


def buffer_store(buffer: _Buffer, value: Any, indices: Any) -> _f.StoreFrame:
    return _f.StoreFrame(buffer, value, _shape(indices))
