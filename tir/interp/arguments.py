"""Checks the arguments of a call against a function's parameters; shared by all targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..aliases import shares_memory, sharing
from ..buffer import Buffer
from ..errors import DoesNotFit, RunError
from ..expr import BinaryOp, Cast, FloatImm, IntImm, Var, const
from ..function import PrimFunc
from .dlpack import host_array, is_array, way_out
from .numbers import array_dtype, constant, storage_dtype, wrap


def written_positions(func: PrimFunc) -> frozenset[int]:
    """The positions of the parameters that a function may write."""
    from ..analysis.effects import effects

    written = effects(func.body).writes
    return frozenset(
        k
        for k, p in enumerate(func.params)
        if p in written or (p in func.buffer_map and shares_memory(func.buffer_map[p], written))
    )


def bind_arguments(
    func: PrimFunc, args: Sequence[Any], written: frozenset[int] | None = None
) -> tuple[dict[Var, Any], dict[Buffer, np.ndarray]]:
    """Values of the scalar and symbolic variables, and the array behind each parameter buffer.

    Arrays are used in place, never copied. Anything with DLPack is accepted as an array. Symbolic sizes are solved from
    the shapes and checked against each other and against scalars of the same name. ``written``: the positions of what
    the function writes, by default those of its body. Raises ``RunError`` with the argument, the expected and the actual
    value, and where a written array overlaps another.
    """
    if len(args) != len(func.params):
        wanted = ", ".join(_param_text(func, p) for p in func.params)
        raise RunError(f"{func.name} takes {_count(len(func.params))} ({wanted}), got {len(args)}")
    scalars: dict[Var, Any] = {}
    known: dict[str, tuple[Any, str]] = {}
    arrays: dict[Buffer, np.ndarray] = {}
    written = written_positions(func) if written is None else written
    for number, (param, arg) in enumerate(zip(func.params, args), 1):
        if param not in func.buffer_map:
            where = f"argument {number} `{param.name}` of {func.name}"
            scalars[param] = _scalar(param, arg, where)
            if param.dtype.is_int:
                known[param.name] = (scalars[param], where)
    for number, (param, arg) in enumerate(zip(func.params, args), 1):
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            where = f"argument {number} `{buffer.name}` of {func.name}"
            array = _array(buffer, arg, where, number - 1 in written)
            _solve_shape(buffer, array, where, scalars, known)
            arrays[buffer] = array
    for number, param in enumerate(func.params, 1):
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            where = f"argument {number} `{buffer.name}` of {func.name}"
            _check_shape(buffer, arrays[buffer], where, scalars)
            _check_layout(buffer, arrays[buffer], where, scalars)
            _check_offset(buffer, where, scalars)
            _check_pointer(buffer, arrays, where)
    if func.attrs.get("tir.noalias", True):
        _check_overlaps(func, arrays, written)
    return scalars, arrays


def bind_one(func: PrimFunc, param: Var, arg: Any, values: dict[Var, Any]) -> None:
    """Add to ``values`` what one argument tells: the number, or the sizes in the shape of an array."""
    number = next(n for n, p in enumerate(func.params, 1) if p is param)
    buffer = func.buffer_map.get(param)
    if buffer is None:
        values[param] = _scalar(param, arg, f"argument {number} `{param.name}` of {func.name}")
    else:
        where = f"argument {number} `{buffer.name}` of {func.name}"
        _solve_shape(buffer, _array(buffer, arg, where, False), where, values, {})


def evaluate(e: Any, values: dict[Var, Any]) -> Any:
    """The value of an integer expression under ``values``; None if a variable in it is unknown."""
    from .. import expr as E

    if isinstance(e, (IntImm, FloatImm)):
        return e.value
    if isinstance(e, Var):
        return values.get(e)
    if isinstance(e, Cast):
        return _wrapped(evaluate(e.value, values), e)
    if isinstance(e, BinaryOp):
        a, b = evaluate(e.a, values), evaluate(e.b, values)
        if a is None or b is None:
            return None
        if isinstance(e, (E.FloorDiv, E.FloorMod, E.Div, E.Mod)) and b == 0:
            raise RunError(f"division by zero in the size `{e!r}`")
        table: dict[Any, Any] = {
            E.Add: lambda: a + b, E.Sub: lambda: a - b, E.Mul: lambda: a * b, E.FloorDiv: lambda: a // b,
            E.FloorMod: lambda: a % b, E.Div: lambda: E.trunc_div(a, b), E.Mod: lambda: a - b * E.trunc_div(a, b),
            E.Min: lambda: min(a, b), E.Max: lambda: max(a, b),
        }  # fmt: skip
        found = table.get(type(e))
        return None if found is None else _wrapped(found(), e)
    from ..arith import simplify
    from ..visit import substitute

    known = {v: const(x, v.dtype) for v, x in values.items() if isinstance(x, (int, float)) and not v.dtype.is_handle}
    whole = simplify(substitute(e, known))
    return whole.value if isinstance(whole, (IntImm, FloatImm)) else None


def _wrapped(value: Any, e: Any) -> Any:
    """The value of ``e`` as its type holds it: what is computed from data wraps around, index arithmetic does not."""
    from ..arith.linear import is_data

    return wrap(value, e.dtype) if isinstance(value, int) and e.dtype.is_int and is_data(e) else value


def _count(n: int) -> str:
    return f"{n} argument" + "s" * (n != 1)


def _param_text(func: PrimFunc, param: Var) -> str:
    buffer = func.buffer_map.get(param)
    return f"{param.name}: {param.dtype}" if buffer is None else f"{buffer.name}: {_buffer_text(buffer)}"


def _buffer_text(buffer: Buffer) -> str:
    return f"{buffer.dtype} array of shape ({', '.join(_size(s) for s in buffer.shape)}{',' * (buffer.ndim == 1)})"


def _size(e: Any) -> str:
    return str(e.value) if isinstance(e, IntImm) else e.name if isinstance(e, Var) else repr(e)


def _scalar(param: Var, arg: Any, where: str) -> Any:
    dtype = param.dtype
    if dtype.is_handle:
        return arg.reshape(-1) if isinstance(arg, np.ndarray) and arg.flags.c_contiguous else arg
    if getattr(arg, "shape", None) == () and hasattr(arg, "item"):  # also of ml_dtypes, torch and JAX
        arg = arg.item()
    got = f"expected {'a number' if dtype.is_float else 'an integer'} ({dtype}), got {_describe(arg)}"
    if isinstance(arg, bool) and not dtype.is_float:
        arg = int(arg)
    if not isinstance(arg, (int, float)):
        raise RunError(f"{where}: {got}")
    if dtype.is_float:
        try:
            return constant(const(arg, dtype).value, dtype)  # type: ignore[attr-defined]
        except DoesNotFit as error:
            raise RunError(f"{where}: {error}") from None
    if not isinstance(arg, int):
        raise RunError(f"{where}: {got}")
    if not dtype.min_value <= arg <= dtype.max_value:
        raise RunError(f"{where}: {arg} does not fit {dtype} ({dtype.min_value} to {dtype.max_value})")
    return bool(arg) if dtype.is_bool else arg


def _describe(arg: Any) -> str:
    if isinstance(arg, np.ndarray):
        return f"a {arg.dtype} array of shape {arg.shape}"
    return f"{type(arg).__name__}" + (f" {arg!r}" if isinstance(arg, (int, float, str, bool, type(None))) else "")


def _array(buffer: Buffer, arg: Any, where: str, written: bool) -> np.ndarray:
    if not is_array(arg):
        raise RunError(f"{where}: expected a {_buffer_text(buffer)}, got {_describe(arg)}{way_out(arg)}")
    try:
        array = host_array(arg, buffer.dtype)
    except RunError as error:
        raise RunError(f"{where}: {error}") from error
    want = storage_dtype(buffer.dtype)
    if array.dtype == array_dtype(buffer.dtype) or (want == np.bool_ and array.dtype in (np.uint8, np.int8)):
        array = array.view(want)
    if array.dtype != want:
        held = "" if want.name == str(buffer.dtype.element) else f" (held as {want.name})"
        raise RunError(
            f"{where}: expected dtype {buffer.dtype}{held}, got {array.dtype}; pass x.astype({want.name!r}) if it is only read"
        )
    ndim = buffer.ndim + (buffer.dtype.lanes > 1)
    if array.ndim != ndim:
        raise RunError(
            f"{where}: expected {ndim} dimension{'s' * (ndim != 1)} ({_buffer_text(buffer)}), "
            f"got {array.ndim} (shape {array.shape})"
        )
    if written and not array.flags.writeable and array.size:
        raise RunError(f"{where}: the function writes it, but the array is read-only")
    return array


def _solve_shape(
    buffer: Buffer, array: np.ndarray, where: str, values: dict[Var, Any], known: dict[str, tuple[Any, str]]
) -> None:
    item = array.dtype.itemsize * buffer.dtype.lanes
    strides = [s // item for s in array.strides[: buffer.ndim]]
    for axis, (size, actual) in enumerate((*zip(buffer.shape, array.shape), *zip(buffer.strides, strides))):
        if not isinstance(size, Var):
            continue
        what = f"size {axis}" if axis < buffer.ndim else f"stride {axis - buffer.ndim}"
        old = values.get(size)
        if old is None:
            named = known.get(size.name)
            if named is not None and named[0] != actual:
                raise RunError(f"{where}: {what} is {actual}, but `{size.name}` is {named[0]} by {named[1]}")
            values[size] = int(actual)
            known.setdefault(size.name, (int(actual), where))
        elif old != actual:
            by = known.get(size.name)
            source = f" by {by[1]}" if by and by[1] != where else ""
            raise RunError(f"{where}: {what} is {actual}, but `{size.name}` is {old}{source} (shape {array.shape})")
    if isinstance(buffer.elem_offset, Var):
        values.setdefault(buffer.elem_offset, 0)


def _check_shape(buffer: Buffer, array: np.ndarray, where: str, values: dict[Var, Any]) -> None:
    want = [evaluate(s, values) for s in buffer.shape]
    for axis, (size, actual, e) in enumerate(zip(want, array.shape, buffer.shape)):
        if size is None:
            unknown = ", ".join(f"`{v.name}`" for v in _unknown(e, values))
            raise RunError(f"{where}: size {axis} is `{_size(e)}`, and no shape or scalar gives {unknown}")
        if size != actual:
            by = "" if isinstance(e, IntImm) else f" (size {axis} is `{_size(e)}` = {size})"
            raise RunError(f"{where}: expected shape {tuple(want)}{by}, got {tuple(array.shape)}")
    if buffer.dtype.lanes > 1 and array.shape[-1] != buffer.dtype.lanes:
        raise RunError(f"{where}: expected the {buffer.dtype.lanes} lanes as last dimension, got shape {array.shape}")


def layout_variables(buffer: Buffer) -> Iterator[Var]:
    """The variables in a buffer's shape, strides and offset, in order."""
    from ..visit import walk

    offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
    yield from (n for part in (*buffer.shape, *buffer.strides, *offset) for n in walk(part) if isinstance(n, Var))


def _unknown(e: Any, values: dict[Var, Any]) -> list[Var]:
    from ..visit import walk

    return [v for v in walk(e) if isinstance(v, Var) and v not in values]


def _check_layout(buffer: Buffer, array: np.ndarray, where: str, values: dict[Var, Any]) -> None:
    if array.size == 0:
        return
    item = array.dtype.itemsize * buffer.dtype.lanes
    if any(s % item for s in array.strides[: buffer.ndim]):
        raise RunError(f"{where}: strides of {array.strides} bytes are not whole elements of {item} bytes")
    actual = [s // item for s in array.strides[: buffer.ndim]]
    if buffer.strides:
        want = [evaluate(s, values) for s in buffer.strides]
    else:
        want = [math.prod(array.shape[axis + 1 : buffer.ndim]) for axis in range(buffer.ndim)]
    for axis, (a, b) in enumerate(zip(actual, want)):
        if array.shape[axis] > 1 and b is not None and a != b:
            hint = (
                ""
                if buffer.strides
                else "; pass np.ascontiguousarray(x) if it is only read, or give the parameter `strides=`"
            )
            kind = "strides" if buffer.strides else "a compact row-major array, strides"
            raise RunError(f"{where}: expected {kind} {tuple(want)}, got {tuple(actual)} elements{hint}")
        if a < 0 and array.shape[axis] > 1:
            raise RunError(f"{where}: stride {axis} is negative ({a} elements); pass a copy")
    last = sum((n - 1) * s for n, s in zip(array.shape, actual))
    if last >= 2**31 - 1 and not buffer.is_wide:
        raise RunError(
            f"{where}: it spans {last + 1} elements of shape {array.shape}, and sizes of int32 place less than 2147483648; declare "
            "its sizes as T.int64()"
        )
    alignment = max(buffer.data_alignment, array.dtype.itemsize)
    if array.ctypes.data % alignment:
        raise RunError(f"{where}: the data is not aligned to {alignment} bytes; pass a copy")


def _check_offset(buffer: Buffer, where: str, values: dict[Var, Any]) -> None:
    """An array is passed by the address of its first element, which is ``elem_offset`` elements from itself."""
    offset = None if buffer.elem_offset is None else evaluate(buffer.elem_offset, values)
    if offset:
        written = "" if isinstance(buffer.elem_offset, IntImm) else f"`{buffer.elem_offset!r}` = "
        raise RunError(
            f"{where}: its elem_offset is declared as {written}{offset}, but an array starts at its first element, which "
            "is 0; leave elem_offset out, and pass the part that starts there"
        )


def _check_overlaps(func: PrimFunc, arrays: dict[Buffer, np.ndarray], written: frozenset[int]) -> None:
    """Refuse an array that the function writes and that shares memory with another; two parameters that are declared with
    one pointer do."""
    numbered = [(k, b) for k, p in enumerate(func.params) if (b := func.buffer_map.get(p)) is not None]
    for k, one in numbered:
        for j, other in numbered if k in written else ():
            if not shares_memory(one, other) and np.may_share_memory(arrays[one], arrays[other]):
                require_disjoint(func, k, arrays[one], j, arrays[other])


def require_disjoint(func: PrimFunc, k: int, one: np.ndarray, j: int, other: np.ndarray) -> None:
    """Raise ``RunError`` if the arrays of two arguments, by their positions, share an element; ``func`` writes the first."""
    try:
        overlap = np.shares_memory(one, other, max_work=100_000)  # type: ignore[arg-type]  (the stub knows two of the values)
    except np.exceptions.TooHardError:
        overlap = True
    if overlap:
        raise overlap_error(func, k, j)


def overlap_error(func: PrimFunc, k: int, j: int) -> RunError:
    """The refusal of a call whose argument number ``k``, from 0, is written and overlaps number ``j``."""
    first, second = (func.buffer_map[func.params[at]].name for at in (k, j))
    return RunError(
        f"argument {k + 1} `{first}` of {func.name} is written and overlaps argument {j + 1} (`{second}`) in memory: "
        'copy one, or give the function the attribute "tir.noalias": False'
    )


def _check_pointer(buffer: Buffer, arrays: dict[Buffer, np.ndarray], where: str) -> None:
    """Two parameters declared with the same pointer must be given the same memory."""
    for other in sharing(arrays, buffer):
        if other is not buffer and arrays[other].ctypes.data != arrays[buffer].ctypes.data:
            raise RunError(f"{where}: it is declared with the pointer of `{other.name}`, but is another array")
