"""The part of ``T`` that declares, allocates and views buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..buffer import SCOPES as _SCOPES
from ..buffer import Buffer as _Buffer
from ..dtype import DType as _DType
from ..names import resembling as _resembling
from . import frames as _f
from .tir_types import DataType
from .values import dtype_of

__all__ = [
    "Buffer", "alloc_buffer", "alloc_local", "alloc_shared", "allocate", "allocate_const", "buffer", "buffer_decl",
    "buffer_store", "decl_buffer", "match_buffer", "realize", "sblock_alloc_buffer",
]  # fmt: skip


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _check_scope(scope: Any) -> None:
    """Refuse a storage scope that is nearly one; others may be those of hardware that this package does not know."""
    near = _resembling(scope, _SCOPES, likeness=0.75) if isinstance(scope, str) else []
    if near and scope not in _SCOPES and scope.partition(".")[0] not in _SCOPES:
        raise TypeError(f"there is no storage scope {scope!r}; did you mean {', '.join(near)}?")


class _BufferType:
    """A buffer as the type of a parameter: ``T.Buffer((128, 128), "float32")``, also ``T.Buffer[(128,), "float32"]``; sizes
    are integers or variables. As a value it is a view of the memory behind ``data``.

    ``strides`` and ``elem_offset`` are in elements, ``align`` in bytes; ``scope`` is where the memory is (``"global"``,
    ``"shared"``, ``"local"`` …). Raises ``TypeError`` for a scope that is nearly one.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         B[i] = A[i] * 2.0
    >>> double.buffer_map[double.params[0]].shape
    (8,)
    """

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
        if isinstance(elem_offset, int) and (elem_offset, align, offset_factor) == (0, 64, 1):
            elem_offset, align, offset_factor = None, 0, 0  # as older scripts of TVM write all defaults out
        options = {
            "data": data, "strides": strides, "elem_offset": elem_offset, "scope": scope, "data_alignment": align,
            "offset_factor": offset_factor, "buffer_type": buffer_type, "axis_separators": axis_separators,
        }  # fmt: skip
        return _f.BufferSpec("Buffer", _shape(shape), dtype_of(dtype), options)

    def __getitem__(self, item: Any) -> _f.BufferSpec:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], (str, DataType)):
            return self(*item)
        return self(item)


Buffer = buffer = _BufferType()


def buffer_decl(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
    """Another name of ``T.Buffer``, in older scripts.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(A: T.buffer_decl((8,), "float32")):
    ...     A[0] = 0.0
    >>> clear.body
    A[0] = T.float32(0)
    """
    return Buffer(shape, dtype, **options)


def alloc_buffer(
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
    annotations: Any = None,
) -> _f.BufferSpec:
    """A buffer that lives in the enclosing block (at the top of a function: in its root block).

    Without a ``scope`` its memory is global, or, with ``data``, where that is.
    Of ``annotations``, which newer scripts have, the alignment is kept: ``{"buffer_data_alignment": 64}``. For the other
    parameters and errors see ``T.Buffer``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     C = T.alloc_buffer((8,), "float32")
    ...     for i in range(8):
    ...         C[i] = A[i]
    ...         B[i] = C[i]
    >>> copy.body
    with T.block("root"):
        T.reads()
        T.writes()
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i]
            B[i] = C[i]
    """
    align = align or (annotations or {}).get("buffer_data_alignment", 0)
    spec = Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    spec.how = "alloc_buffer"
    return spec


sblock_alloc_buffer = alloc_buffer


def _alloc_in(scope: str, memory: str) -> Callable[..., _f.BufferSpec]:
    def alloc(shape: Any, dtype: Any = "float32", **options: Any) -> _f.BufferSpec:
        return alloc_buffer(shape, dtype, scope=scope, **options)

    alloc.__name__ = alloc.__qualname__ = f"alloc_{scope}"
    alloc.__doc__ = f"""``T.alloc_buffer`` in {memory}.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     C = T.alloc_{scope}((8,), "float32")
    ...     for i in range(8):
    ...         C[i] = A[i]
    ...         B[i] = C[i]
    >>> copy.body
    with T.block("root"):
        T.reads()
        T.writes()
        C = T.alloc_buffer((8,), "float32", scope="{scope}")
        for i in range(8):
            C[i] = A[i]
            B[i] = C[i]
    """
    return alloc


alloc_shared = _alloc_in("shared", "the memory that the threads of a block share")
alloc_local = _alloc_in("local", "each thread's own memory")


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
    """A name for a handle parameter's memory or, in a block, for a region: ``T.match_buffer(A[0:16, j], (16,))``.

    The sizes of a parameter may be variables, solved from the array of each call. For the rest see ``T.Buffer``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def double(a: T.handle, n: T.int32):
    ...     A = T.match_buffer(a, (n,), "float32")
    ...     for i in range(n):
    ...         A[i] = A[i] * 2.0
    >>> double.body
    for i in range(n):
        A[i] = A[i] * 2.0
    """
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
    """A view of the memory behind ``data`` over what follows; without ``data`` the memory is allocated too.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(A: T.Buffer((4, 4), "float32")):
    ...     flat = T.decl_buffer((16,), "float32", data=A.data)
    ...     for i in range(16):
    ...         flat[i] = 0.0
    >>> clear.body
    A = T.handle("float32")
    flat = T.decl_buffer((16,), "float32", data=A)
    for i in range(16):
        flat[i] = T.float32(0)
    """
    spec = Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    spec.how = "decl_buffer"
    return spec


def allocate(
    extents: Any, dtype: Any, scope: str = "global", condition: Any = True, annotations: Any = None
) -> _f.AllocateFrame:
    """Memory of ``extents`` elements for what follows, or for the body of ``with``; its value is the pointer.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f():
    ...     p = T.allocate([8], "float32", "global")
    ...     T.evaluate(T.call_extern("int32", "fill", p))
    >>> f.body
    p = T.allocate([8], "float32", "global")
    T.call_extern("int32", "fill", p)
    """
    return _f.AllocateFrame(
        _shape(extents), _DType(dtype_of(dtype)), scope, True if condition is None else condition, annotations or {}
    )


def allocate_const(data: Any, dtype: Any, extents: Any, annotations: Any = None) -> _f.AllocateFrame:
    """Constant memory holding ``data`` (row-major, ``extents`` elements) for what follows; its value is the pointer.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f():
    ...     p = T.allocate_const([1, 2, 3, 4], "int32", [4])
    ...     T.evaluate(T.call_extern("int32", "use", p))
    >>> f.body
    p = T.allocate_const([1, 2, 3, 4], "int32", [4])
    T.call_extern("int32", "use", p)
    """
    return _f.AllocateFrame(_shape(extents), _DType(dtype_of(dtype)), "global", True, annotations or {}, data)


def realize(region: Any, scope: str = "", condition: Any = True) -> _f.RealizeFrame:
    """A box of a buffer in memory over the body, as older lowered programs have it.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((16,), "float32")):
    ...     with T.realize(A[0:8], "global"):
    ...         A[0] = 0.0
    >>> f.body
    T.realize(A[0:8], "global")
    A[0] = T.float32(0)
    """
    return _f.RealizeFrame(region, scope, condition)


def buffer_store(buffer: _Buffer, value: Any, indices: Any) -> _f.StoreFrame:
    """Store ``value`` in a buffer at ``indices``, as ``buffer[indices] = value``.

    >>> from tir.script import tir as T
    >>> @T.prim_func
    ... def clear(A: T.Buffer((8,), "float32")):
    ...     T.buffer_store(A, T.float32(0), [3])
    >>> clear.body
    A[3] = T.float32(0)
    """
    return _f.StoreFrame(buffer, value, _shape(indices))
