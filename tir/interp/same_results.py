"""Arguments to run a program on, and whether two runs give the same results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..buffer import Buffer
from ..dtype import DType
from ..expr import BufferLoad, Cast, Expr, Var
from ..function import IRModule, PrimFunc
from ..stmt import BufferStore
from ..visit import walk
from . import numbers
from .arguments import evaluate

_RTOL = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2}


def symbolic_sizes(func: PrimFunc) -> list[str]:
    """Names of the symbolic sizes of the buffers of ``func``."""
    parts = [s for buffer in func.buffer_map.values() for s in buffer.shape]
    return list(dict.fromkeys(v.name for s in parts for v in walk(s) if isinstance(v, Var)))


def random_inputs(
    func: PrimFunc, seed: int = 0, sizes: Mapping[str, int] | None = None, low: int = -3, high: int = 3
) -> list[Any]:
    """One argument for each parameter: arrays of small integers of the parameter's dtype, and numbers.

    ``sizes`` gives symbolic sizes and integer scalars by name; others are drawn from 1 to 9. Elements lie between
    ``low`` (at least 0 for unsigned types) and ``high``: small integers keep sums exact in any order of summation, so
    that results can be compared for equality. Elements that are indices of another buffer are within its bounds. A pointer
    gets 64 elements.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(a: T.handle, n: T.int32):
    ...     A = T.match_buffer(a, (n, 4), "float32")
    ... ''')
    >>> [getattr(x, "shape", x) for x in random_inputs(f, sizes={"n": 5})]
    [(5, 4), 5]
    """
    rng = np.random.default_rng(seed)
    given = dict(sizes or {})
    named: dict[str, int] = {}
    values: dict[Var, int] = {}

    def bind(var: Var) -> None:
        if var not in values:
            named.setdefault(var.name, int(given.get(var.name, rng.integers(1, 10))))
            values[var] = named[var.name]

    for buffer in func.buffer_map.values():
        for part in (*buffer.shape, *(s for s in buffer.strides if not isinstance(s, Var))):
            for item in walk(part):
                if isinstance(item, Var):
                    bind(item)
    indexed = _sizes_indexed(func)
    args: list[Any] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            shape = tuple(int(evaluate(s, values)) for s in buffer.shape)
            lanes = (buffer.dtype.lanes,) if buffer.dtype.lanes > 1 else ()
            steps = [evaluate(s, values) for s in buffer.strides]
            bounds = low, high
            if buffer in indexed:
                bounds = 0, max(0, min(int(evaluate(size, values)) for size in indexed[buffer]) - 1)
            args.append(_array(rng, (*shape, *lanes), steps, buffer.dtype.element, *bounds))
        elif param.dtype.is_float:
            args.append(float(rng.integers(-3, 4)))
        elif param.dtype.is_bool:
            args.append(bool(rng.integers(0, 2)))
        elif param.dtype.is_handle:
            args.append(_array(rng, (64,), [], (param.pointer_dtype or DType("float32")).element, low, high))
        else:
            bind(param)
            args.append(values[param])
    return args


def _sizes_indexed(func: PrimFunc) -> dict[Buffer, list[Expr]]:
    """The extents of the axes that the elements of arguments are indices of, as in ``A[rows[i], j]``."""
    found: dict[Buffer, list[Expr]] = {}
    for access in walk(func.body):
        if isinstance(access, (BufferLoad, BufferStore)):
            for index, size in zip(access.indices, access.buffer.shape):
                place = index.value if isinstance(index, Cast) else index
                if isinstance(place, BufferLoad):
                    found.setdefault(place.buffer, []).append(size)
    return found


def _array(
    rng: np.random.Generator, shape: tuple[int, ...], strides: list[int | None], dtype: DType, low: int, high: int
) -> np.ndarray:
    """An array of ``shape``, laid out by ``strides`` (in elements); unknown ones (None) leave a gap between rows."""
    least = max(low, 0) if dtype.code in ("uint", "bool") else low
    if dtype.is_int:
        high = min(high, (1 << dtype.bits - 1) - 1)
    drawn = rng.integers(least, (1 if dtype.is_bool else high) + 1, shape)
    if numbers.is_small_float(dtype):
        values = np.asarray(numbers.encode(drawn.astype(np.float32), dtype))
    else:
        values = np.asarray(drawn, dtype=numbers.storage_dtype(dtype))
    if not strides or len(strides) < len(shape) or values.size == 0:
        return values
    steps = _with_gaps(shape, strides)
    memory = np.zeros(1 + sum((n - 1) * s for n, s in zip(shape, steps)), values.dtype)
    laid = np.lib.stride_tricks.as_strided(memory, shape, [s * memory.itemsize for s in steps])
    laid[...] = values
    return laid


def _with_gaps(shape: Sequence[int], strides: Sequence[int | None]) -> list[int]:
    """The strides, of which unknown ones are one more than what the dimensions behind them need."""
    steps: list[int] = []
    for size, step in zip([*shape[1:], 0][::-1], strides[::-1]):
        least = size * steps[0] + 1 if steps else 1
        steps.insert(0, least if step is None else step)
    return steps


def reference(module: IRModule, inputs: Sequence[Any], func: str) -> list[Any]:
    """Copies of the arguments, as a run of ``func`` by the reference executor leaves them."""
    from . import run

    copies = _copied_together(inputs)
    run(module, *copies, func=func)
    return copies


def assert_same_call(
    f: PrimFunc | IRModule,
    call: Callable[..., Any],
    inputs: Sequence[Any],
    engine: str,
    rtol: float | None = None,
    atol: float | Mapping[str, Any] = 0.0,
    func: str | None = None,
    expected: Sequence[Any] | None = None,
) -> None:
    """Run ``f`` by the reference executor and ``call`` on the same arguments; compare every array.

    The arguments are copied. ``engine`` names the callee in errors, ``expected`` is what :func:`reference` gives, where
    it is known; the rest is as for :func:`assert_same_result`.
    """
    module = IRModule.of(f)
    name = func or ("main" if "main" in module else next(iter(module)))
    expected = reference(module, inputs, name) if expected is None else expected
    actual = _copied_together(inputs)
    call(*actual)
    for param, x, y in zip(module[name].params, expected, actual):
        buffer = module[name].buffer_map.get(param)
        if buffer is not None and isinstance(x, np.ndarray):
            slack = atol.get(buffer.name, 0.0) if isinstance(atol, Mapping) else atol
            compare(buffer.name, buffer.dtype, x, y, rtol, slack, engine)


def _copied_together(inputs: Sequence[Any]) -> list[Any]:
    """Copies of the arguments, in which parts of one array are parts of one copy."""
    bases = [a.base if isinstance(a, np.ndarray) and isinstance(a.base, np.ndarray) else None for a in inputs]
    shared = {id(b): b.copy() for b in bases if b is not None and sum(other is b for other in bases) > 1}
    return [copied(a) if id(b) not in shared else _part(a, b, shared[id(b)]) for a, b in zip(inputs, bases)]


def _part(array: np.ndarray, base: Any, memory: np.ndarray) -> np.ndarray:
    """The part of ``memory``, a copy of ``base``, that ``array`` is of ``base``."""
    start = array.ctypes.data - base.ctypes.data
    return np.ndarray(array.shape, array.dtype, memory.data, start, array.strides)


def copied(value: Any) -> Any:
    """A copy of an argument with the same strides."""
    if not isinstance(value, np.ndarray):
        return value
    if value.flags.c_contiguous:
        return value.copy()
    turned = tuple(slice(None, None, -1 if s < 0 else 1) for s in value.strides)
    upwards = value[turned]  # which begins with the first element in memory
    span = 1 + sum((n - 1) * s // value.itemsize for n, s in zip(value.shape, upwards.strides))
    memory = np.lib.stride_tricks.as_strided(upwards, (span,), (value.itemsize,)).copy()
    return np.lib.stride_tricks.as_strided(memory, value.shape, upwards.strides)[turned]


def usual_tolerance(dtype: DType) -> float:
    """The relative error that results of ``dtype`` may have; 0 for integers."""
    return _RTOL.get(dtype.element, 2.0 ** (3 - dtype.digits)) if dtype.is_float else 0.0


def compare(name: str, dtype: DType, x: np.ndarray, y: np.ndarray, rtol: float | None, atol: Any, engine: str) -> None:
    if dtype.is_float:
        if numbers.is_small_float(dtype):
            table = numbers.decode_table(dtype.element)
            x, y = table[x], table[y]
        tolerance = usual_tolerance(dtype) if rtol is None else rtol
        same = np.isclose(y.astype(np.float64), x.astype(np.float64), tolerance, atol, equal_nan=True)
    else:
        same = x == y
    if not np.all(same):
        where = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
        raise AssertionError(
            f"{engine}: {name}{list(where)} is {y[where]}, expected {x[where]} "
            f"({int(np.sum(~np.asarray(same)))} of {x.size} elements differ)"
        )
