"""A compiled function seen from Python: arguments checked and packed, the call, its errors.

The work done once for a set of argument shapes (binding sizes, checking layouts) is remembered by shape, so that a call
with shapes seen before costs a few microseconds.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tir.dtype import DType
from tir.errors import RunError
from tir.function import PrimFunc
from tir.interp.dlpack import host_array, is_array, way_out
from tir.interp.named_arguments import in_order
from tir.interp.numbers import encode, from_storage, is_small_float
from tir.small_floats import SMALL_FLOATS
from tir.visit import uses_var

from .calls import Function, span_of
from .llvm.signature import buffer_alignment, layout_of, size_vars
from .llvm.text import TILES_MARK, own_name
from .runtime.fast_call import MISMATCH, fast_call
from .runtime.openmp import Team
from .runtime.packed_functions import PackedCalls

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_FORMATS = {
    "int8": "b7x", "int16": "h6x", "int32": "i4x", "int64": "q", "uint8": "B7x", "uint16": "H6x", "uint32": "I4x",
    "uint64": "Q", "int2": "b7x", "uint2": "B7x", "int4": "b7x", "uint4": "B7x", "bool": "?7x", "float16": "e6x", "float32": "f4x", "float64": "d",
    "handle": "Q",
}  # fmt: skip
_FORMATS |= {name: "H6x" if small.storage.itemsize == 2 else "B7x" for name, small in SMALL_FLOATS.items()}


class Runtime:
    """Loaded code, its error messages, and its connections to the team of threads and to Python functions.

    ``program``: a :class:`codegen.compiled.Compiled`, or the metadata of a saved library.
    """

    def __init__(self, code: Any, program: Any, cores: int | None):
        self.code, self.messages, self.parallel = code, program.messages, program.parallel
        self.packed, self._team = None, None
        self.refusal = program.needs.refusal()
        if self.refusal is None:
            self._connect(program.packed, cores)

    def _connect(self, packed: list[Any], cores: int | None) -> None:
        if self.code.variable(TILES_MARK):
            from .llvm.amx_tiles import request_tiles

            request_tiles()
        if packed:
            self.packed = PackedCalls(packed)
            ctypes.c_void_p.from_address(self.code.variable("__tir_packed")).value = self.packed.pointer
        if self.parallel:
            self._team = Team(self.code, cores)

    def before_call(self) -> None:
        """Make the team of threads ready, if there is one."""
        if self._team is not None:
            self._team.before_call()

    def raise_error(self, code: int) -> None:
        if self.packed is not None and self.packed.error is not None:
            error, self.packed.error = self.packed.error, None
            raise error
        raise RunError(self.messages[code - 1] if 0 < code <= len(self.messages) else f"run-time error {code}")


@dataclass(frozen=True, eq=False)
class Plan:
    """What depends only on the arguments' shapes: the sizes passed after the parameters, and the bytes of each array."""

    sizes: tuple[Any, ...]
    spans: tuple[tuple[int, int, int], ...]  # (position, bytes before the pointer, bytes after it) of each array


class NativeFunction(Function):
    """A compiled function. Calling it runs it; see :class:`codegen.module.Module` for the arguments.

    >>> import numpy as np
    >>> import tir
    >>> function = tir.build(tir.library.elementwise.scale_add(2), "llvm")["main"]
    >>> type(function).__name__, function.new(np.array([1, 2], "float32"))
    ('NativeFunction', array([4., 7.], dtype=float32))
    """

    def __init__(self, name: str, about: tuple[PrimFunc, frozenset[int]], runtime: Runtime):
        self.name = name
        self.func, self.written = about
        self._runtime = runtime
        self._entry = _ENTRY(runtime.code.function(own_name(name)))
        func = self.func
        buffers = self._buffers = [func.buffer_map.get(p) for p in func.params]
        self._count = len(func.params)
        self._alignments = [0 if b is None else buffer_alignment(b) for b in buffers]
        self._is_array = [b is not None for b in buffers]
        self._arrays = [k for k, b in enumerate(buffers) if b is not None]
        self._sizes = size_vars(func)
        self._dtypes = [p.dtype for p in func.params]
        self._in_layouts = [
            b is None and any(uses_var(part, p) for o in func.buffers() for part in layout_of(o))
            for p, b in zip(func.params, buffers)
        ]
        # not packed directly: sizes are hashed, a bool's packing takes any object, a small float's takes integers as bits
        self._checked = [
            sized or (not array and (dtype.is_bool or is_small_float(dtype)))
            for sized, array, dtype in zip(self._in_layouts, self._is_array, self._dtypes)
        ]
        slots = [DType("handle") if a else d for a, d in zip(self._is_array, self._dtypes)]
        slots += [v.dtype for v in self._sizes]
        self._returns = func.ret_type.code != "void"
        self._pack = struct.Struct("<" + "".join(_FORMATS[d] for d in slots) + "Q").pack
        self._disjoint = bool(func.attrs.get("tir.noalias", True))
        self._plans: dict[Any, Plan] = {}
        self._fast: Callable[..., int] | None = None  # the fast path for arrays like those of an earlier call
        self._fast_calls: WeakKeyDictionary[Plan, Callable[..., int] | None] = WeakKeyDictionary()
        self._last: Plan | None = None
        self._can_be_fast = not (self._returns or runtime.parallel) and all(self._is_array)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            args = in_order(self.func, args, named)
        if self._fast is not None:
            code = self._fast(*args)
            if code == 0:
                return None
            if code != MISMATCH:
                self._runtime.raise_error(code)
        if self._returns:
            return self._call_returning(args)
        packed, plan = self._prepare(args)
        if self._can_be_fast:  # the second call in a row with such arrays: more will come
            if plan is self._last:
                self._fast = self._fast_call(args, plan)
            self._last = plan
        runtime = self._runtime
        if runtime.parallel:
            runtime.before_call()
        code = self._entry(packed)
        if code:
            runtime.raise_error(code)
        return None

    def outputs(self) -> frozenset[int]:
        return self.written

    def prepared(self, *args: Any, **named: Any) -> Callable[[], None]:
        """A call whose arguments are already checked and packed; the caller keeps them alive."""
        if named:
            args = in_order(self.func, args, named)
        if self._returns:
            return lambda: self(*args)
        (packed, _), runtime, entry = self._prepare(args), self._runtime, self._entry
        runtime.before_call()

        def run(keep: Any = args) -> None:
            code = entry(packed)
            if code:
                runtime.raise_error(code)

        return run

    def _call_returning(self, args: tuple[Any, ...]) -> Any:
        packed, _ = self._prepare(args)
        place = ctypes.create_string_buffer(packed, len(packed))
        self._runtime.before_call()
        code = self._entry(ctypes.addressof(place))
        if code:
            self._runtime.raise_error(code)
        dtype = self.func.ret_type
        value = struct.unpack_from("<" + _FORMATS[dtype], place, len(packed) - 8)[0]
        return float(from_storage(value, dtype)) if is_small_float(dtype) else value

    def _prepare(self, args: tuple[Any, ...]) -> tuple[bytes, Plan]:
        """The argument array, and the plan for such arrays. What depends only on shapes is looked up; addresses and values are checked each time."""
        is_array, in_layouts, checked = self._is_array, self._in_layouts, self._checked
        key: list[Any] = []
        values: list[Any] = []
        pointers: list[tuple[int, bool]] = []
        try:
            for k, arg in enumerate(args):
                if is_array[k]:
                    if type(arg) is not np.ndarray:
                        arg = self._array(k, arg)
                    key.append((arg.shape, arg.strides, arg.dtype))
                    at = arg.__array_interface__["data"]
                    pointers.append(at)
                    values.append(at[0])
                else:
                    if checked[k]:
                        arg = self._scalar(k, arg)
                    values.append(arg)
                    key.append(arg if in_layouts[k] else None)
            plan = self._plans.get(tuple(key)) if len(args) == self._count else None
        except IndexError:
            plan = None
        if plan is None:
            plan = self._plan(args, tuple(key))
        self._check_pointers(args, pointers, plan)
        try:
            return self._pack(*values, *plan.sizes, 0), plan
        except (struct.error, TypeError, ValueError, OverflowError):
            return self._pack(*self._scalars(args, values), *plan.sizes, 0), plan

    def _fast_call(self, args: tuple[Any, ...], plan: Plan) -> Callable[..., int] | None:
        """The fast path for arrays like ``args``, which have been checked; made once for each plan."""
        if plan in self._fast_calls:
            return self._fast_calls[plan]
        sizes = self._pack(*[0] * self._count, *plan.sizes, 0)[8 * self._count : -8]
        written = [k in self.written for k in range(self._count)]
        entry = self._runtime.code.function(own_name(self.name))
        spans = [(below, above) for _, below, above in plan.spans]
        made = fast_call(entry, args, written, self._alignments, spans, sizes, self._disjoint)
        self._fast_calls[plan] = made
        return made

    def _array(self, k: int, arg: Any) -> np.ndarray:
        """An array argument from another library, seen in place."""
        if is_array(arg):
            try:
                return host_array(arg, self._buffers[k].dtype)
            except RunError as error:
                raise RunError(f"{self._named(k)}: {error}") from error
        shown = way_out(arg) or f": {arg!r:.60}"
        raise RunError(f"{self._named(k)} must be an array, not {type(arg).__name__}{shown}")

    def _named(self, k: int) -> str:
        param = self.func.params[k]
        buffer = self.func.buffer_map.get(param)
        return f"argument {k + 1} `{buffer.name if buffer is not None else param.name}` of {self.func.name}"

    def _plan(self, args: tuple[Any, ...], key: tuple[Any, ...]) -> Plan:
        """Bind sizes and check layouts in full. Raises ``RunError`` naming what does not fit."""
        from tir.interp.arguments import bind_arguments

        if self._runtime.refusal is not None:
            raise RunError(f"{self.func.name}: {self._runtime.refusal}")
        if len(args) != self._count:
            names = ", ".join(self._named(k).split("`")[1] for k in range(self._count))
            raise RunError(f"{self.func.name} takes {self._count} arguments ({names}), got {len(args)}")
        arrays = tuple(
            self._array(k, a) if self._is_array[k] and not isinstance(a, np.ndarray) else a for k, a in enumerate(args)
        )
        values, _ = bind_arguments(self.func, arrays)
        spans = tuple((k, *span_of(arrays[k])) for k in self._arrays)
        plan = Plan(tuple(int(values[v]) for v in self._sizes), spans)
        if len(self._plans) > 256:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def _check_pointers(self, args: tuple[Any, ...], pointers: list[tuple[int, bool]], plan: Plan) -> None:
        """Check alignment and writability, and that no written array overlaps another."""
        written, alignments = self.written, self._alignments
        for (address, read_only), (k, below, above) in zip(pointers, plan.spans):
            if address % alignments[k] and above:
                raise RunError(
                    f"{self._named(k)} starts at an address that is not a multiple of {alignments[k]} bytes, "
                    "as the buffer's alignment requires; copy the array"
                )
            if k not in written:
                continue
            if read_only:
                raise RunError(f"{self._named(k)} is written, but the array is read-only")
            if not self._disjoint:
                continue
            first, last = address + below, address + above
            for (other, _), (j, low, high) in zip(pointers, plan.spans):
                if j != k and first < other + high and other + low < last:
                    self._require_disjoint(args, k, j)

    def _require_disjoint(self, args: tuple[Any, ...], k: int, j: int) -> None:
        from tir.interp.arguments import require_disjoint

        a, b = (x if isinstance(x, np.ndarray) else self._array(at, x) for at, x in ((k, args[k]), (j, args[j])))
        require_disjoint(self.func, k, a, j, b)

    def _scalars(self, args: tuple[Any, ...], values: list[Any]) -> list[Any]:
        """Convert the scalar arguments that could not be packed directly. Raises ``RunError`` naming one that is wrong."""
        return [v if self._is_array[k] else self._scalar(k, args[k]) for k, v in enumerate(values)]

    def _scalar(self, k: int, value: Any) -> Any:
        """A scalar argument as it is packed. Raises ``RunError`` if it is not a number of the parameter's type."""
        dtype = self._dtypes[k]
        if dtype.is_handle:
            return self._address(k, value)
        if not (isinstance(value, np.ndarray) and value.ndim) and hasattr(value, "item"):
            try:
                value = value.item()
            except Exception as error:
                raise RunError(f"{self._named(k)} must be a number ({dtype}): {error}") from error
        if not isinstance(value, (bool, int, float)):
            raise RunError(f"{self._named(k)} must be a number ({dtype}), not {_described(value)}")
        if dtype.is_float:
            if abs(value) > dtype.max_value and abs(value) != float("inf"):
                raise RunError(f"{self._named(k)}: {value!r} does not fit {dtype}")
            return int(encode(float(value), dtype)) if is_small_float(dtype) else value
        if isinstance(value, float):
            raise RunError(f"{self._named(k)} must be an integer ({dtype}), not {value!r}")
        if not dtype.min_value <= value <= dtype.max_value:
            raise RunError(f"{self._named(k)}: {value} does not fit {dtype} ({dtype.min_value} to {dtype.max_value})")
        return value

    def _address(self, k: int, value: Any) -> int:
        """A pointer argument: an address, an array, a ctypes pointer, or None for the null pointer."""
        if isinstance(value, np.ndarray):
            return value.ctypes.data
        value = getattr(value, "value", value)
        value = 0 if value is None else value.item() if isinstance(value, np.integer) else value
        if not isinstance(value, int) or not 0 <= value < 1 << 64:
            raise RunError(f"{self._named(k)} must be an address (an integer or an array), not {_described(value)}")
        return value


def _described(value: Any) -> str:
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else f": {value!r:.60}"
    return f"{type(value).__name__}{shape}"
