"""Turning what a user wrote into expressions, ranges and regions."""

from __future__ import annotations

from typing import Any

from ..arith import simplify
from ..buffer import Buffer, BufferRegion, IterVar, Range, decl_buffer, index_expr
from ..dtype import DType
from ..equal import structural_equal
from ..expr import Add, BufferLoad, Expr, IntImm, Ramp, Var, as_expr, const, matched
from ..node import Node, frozendict
from .frames import BufferSpec


def dtype_of(value: Any) -> str:
    """The data type that ``"float32"``, ``T.float32`` or ``A.dtype`` names."""
    if isinstance(value, str):
        return DType(value)
    found = getattr(value, "dtype", None)
    if isinstance(found, str) and not isinstance(value, Expr):
        return DType(found)
    name = getattr(value, "name", None) or getattr(value, "__name__", None)  # numpy.dtype, numpy.float32
    if isinstance(name, str) and not isinstance(value, Node):
        return DType(name)
    raise TypeError(f'a data type is expected, such as "float32" or T.float32, not {value!r}')


def attributes(given: Any, what: str) -> Any:
    """Attributes or annotations, frozen: a dict of what a text can say. Raises ``TypeError`` for anything else."""
    if not isinstance(given, dict):
        raise TypeError(f"{what} takes a dict, not {given!r}")
    return frozendict((_attribute_key(key, what), _attribute(value, f"{what} `{key}`")) for key, value in given.items())


def _attribute_key(key: Any, what: str) -> Any:
    if not isinstance(key, (str, int)):
        raise TypeError(f"a key of {what} is a string, not {key!r}")
    return key


def _attribute(value: Any, what: str) -> Any:
    if isinstance(value, dict):
        return attributes(value, what)
    if isinstance(value, (list, tuple)):
        return tuple(_attribute(item, what) for item in value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()  # a NumPy number
    if value is None or isinstance(value, (str, int, float, Node)) or callable(getattr(value, "as_script", None)):
        return value
    if isinstance(dtype := getattr(value, "dtype", None), DType):
        return str(dtype)
    raise TypeError(
        f"{what} cannot hold {value!r}: attributes are numbers, strings, lists, dicts and parts of programs"
    )


def to_expr(value: Any) -> Expr:
    """``value`` as an expression: numbers, iterators and slices of buffers (a vector load) included."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, BufferRegion):
        return vector_load(value)
    if isinstance(value, Buffer):
        raise TypeError(
            f"buffer `{value.name}` is not a value; index it, as in {value.name}[...], or take {value.name}.data"
        )
    return as_expr(value)


def as_buffer_load(value: Any) -> Any:
    """Operands that may be places: a region of one element becomes the element, all else stays."""
    if isinstance(value, BufferRegion) and all(
        isinstance(r.extent, IntImm) and r.extent.value == 1 for r in value.region
    ):
        return BufferLoad(value.buffer, tuple(r.min for r in value.region))
    return value


def vector_load(region: BufferRegion) -> BufferLoad:
    """The load of a region that is one row of constant length."""
    return BufferLoad(region.buffer, row_indices(region))


def row_indices(region: BufferRegion) -> tuple[Expr, ...]:
    """Indices of a region that is one element, or one row of constant length along the last axis (a Ramp)."""
    *outer, last = region.region
    name = region.buffer.name
    for axis, r in enumerate(outer):
        if not (isinstance(r.extent, IntImm) and r.extent.value == 1):
            raise TypeError(
                f"a slice of `{name}` used as a value may span the last axis only; axis {axis} is sliced too"
            )
    if not isinstance(last.extent, IntImm):
        raise TypeError(f"a slice of `{name}` used as a value needs a constant length, not `{last.extent!r}`")
    lanes = last.extent.value
    if lanes < 1:
        raise TypeError(f"a slice of `{name}` used as a value is empty")
    end = last.min if lanes == 1 else Ramp(last.min, const(1, last.min.dtype), lanes)
    return (*(r.min for r in outer), end)


def extent_between(begin: Expr, end: Expr) -> Expr:
    """end - begin; ``begin + e`` less ``begin`` is exactly ``e``, so that printed ranges read back unchanged."""
    if isinstance(end, Add):
        if structural_equal(end.a, begin):
            return end.b
        if structural_equal(end.b, begin):
            return end.a
    if isinstance(begin, IntImm) and begin.value == 0:
        return end
    if isinstance(begin, IntImm) and isinstance(end, IntImm):
        return end - begin
    return simplify(end - begin)


def range_of(begin: Any, end: Any) -> Range:
    """The range from ``begin`` up to ``end``, both in one dtype."""
    first, last = matched(begin, end, "a range")
    return Range(index_expr(first), extent_between(index_expr(first), index_expr(last)))


def index_tuple(buffer: Buffer, items: tuple[Any, ...]) -> Any:
    """``buffer[items]``: a load, a region where an index is a slice, a strided vector load where it has a step.

    Raises ``TypeError`` for a wrong number of indices.
    """
    if len(items) != len(buffer.shape):
        dims = ", ".join(repr(s) for s in buffer.shape)
        raise TypeError(
            f"buffer `{buffer.name}` has {len(buffer.shape)} dimension{'s' * (len(buffer.shape) != 1)} ({dims}), "
            f"but is indexed with {len(items)}"
        )
    items = tuple(vector_load(i) if isinstance(i, BufferRegion) else i for i in items)  # a gather: A[P[0:16]]
    for axis, item in enumerate(items):
        kind = item.dtype if isinstance(item, Expr) else None
        if isinstance(item, (float, str)) or (kind is not None and (kind.is_float or kind.is_handle)):
            what = kind or {float: "float", str: "string"}[type(item)]
            raise TypeError(f"index {axis} of `{buffer.name}` is a {what}, not an integer: `{item!r}`")
    items = tuple(i.var if isinstance(i, IterVar) else i for i in items)
    if not any(isinstance(item, slice) for item in items):
        return BufferLoad(buffer, tuple(index_expr(i) for i in items))
    ranges = tuple(_index_range(item, size) for item, size in zip(items, buffer.shape))
    if not any(isinstance(item, slice) and item.step is not None for item in items):
        return BufferRegion(buffer, ranges)
    return BufferLoad(
        buffer, tuple(_ramp(r, item) if isinstance(item, slice) else r.min for r, item in zip(ranges, items))
    )


def _index_range(item: Any, size: Expr) -> Range:
    """The range of one index along an axis of ``size`` elements: one element, or a slice with its usual defaults."""
    if not isinstance(item, slice):
        at = index_expr(item)
        return Range(at, const(1, at.dtype))
    begin = const(0, size.dtype) if item.start is None else item.start
    return range_of(begin, size if item.stop is None else item.stop)


def _ramp(r: Range, item: slice) -> Expr:
    """The vector index of a slice with a step. Raises ``TypeError`` where its length or step is not a constant."""
    step = 1 if item.step is None else item.step
    if not isinstance(r.extent, IntImm) or not isinstance(step, (int, IntImm)) or int(step) == 0:
        raise TypeError("a strided slice needs a constant length and a constant step that is not 0")
    lanes = -(-r.extent.value // int(step))
    if lanes < 1:
        raise TypeError("a strided slice is empty")
    return r.min if lanes == 1 else Ramp(r.min, const(int(step), r.min.dtype), lanes)


def as_region(value: Any) -> BufferRegion:
    """A region from ``A[i, 0:4]``, ``A[i, j]`` or a whole buffer. Raises ``TypeError`` for anything else."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Buffer):
        return value.full_region()
    if isinstance(value, BufferLoad):
        ranges = []
        for i in value.indices:
            if isinstance(i, Ramp) and isinstance(i.stride, IntImm) and i.stride.value == 1:
                ranges.append(Range(i.base, const(i.lanes, i.base.dtype)))
            else:
                ranges.append(Range(i, const(1, i.dtype.element)))
        return BufferRegion(value.buffer, tuple(ranges))
    raise TypeError(f"a buffer region is expected, such as A[0:16, j], not {value!r}")


def make_buffer(spec: BufferSpec, name: str, shape: tuple[Any, ...] | None = None) -> Buffer:
    """The buffer that a spec describes, named."""
    options = {k: v for k, v in spec.options.items() if k != "shape_of_source" and v is not None}
    data = options.get("data")
    if data is not None and not (isinstance(data, Var) and data.dtype.is_handle):
        raise TypeError(f"the data of buffer `{name}` is a pointer, such as A.data or a T.handle, not {data!r}")
    matched = spec.how in ("match_buffer", "Buffer") and "data" not in options
    if matched and options.get("offset_factor") and "elem_offset" not in options:
        # what says what divides its offset has one, whatever it is
        options["elem_offset"] = Var(f"{name}_offset")
    return decl_buffer(spec.shape if shape is None else shape, spec.dtype, name=name, **options)
