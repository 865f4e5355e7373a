"""Running a function by the reference semantics, and the functions it may call."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import DType
from ..errors import RunError
from ..function import IRModule, PrimFunc
from ..node import Memo
from ..visit import with_recursion_limit
from . import numbers, x86_dot_products
from .arguments import bind_arguments
from .compiler import Compiler
from .host_functions import PACKED
from .memory import Races

_EXTERNS: dict[str, Callable[..., Any]] = {}
_COMPILED: Memo[dict[tuple[bool, bool], Any]] = Memo()
_MAX_CALLS = 100


class _Running:
    """The module being run and the active calls, for calls between its functions."""

    def __init__(self, module: IRModule, check: bool, regions: bool, calls: tuple[str, ...] = ()):
        self.module = module
        self.check = check
        self.regions = regions
        self.calls = calls


_current: contextvars.ContextVar[_Running] = contextvars.ContextVar("tir_running")


class _Return(BaseException):
    """Raised to return a value from any nesting depth of a function."""

    def __init__(self, value: Any):
        self.value = value


def returned(value: Any = None) -> None:
    raise _Return(value)


@with_recursion_limit
def run(
    func_or_mod: PrimFunc | IRModule, *args: Any, func: str | None = None, check: bool = True, regions: bool = False
) -> Any:
    """Run a function on NumPy arrays (changed in place) and numbers; returns what ``T.ret`` returns, else None.

    Programs of any stage of lowering run, one scalar at a time in program order: this defines what the program means. Of
    a module the function ``func`` is run (default: the only one, or ``main``). ``check`` reports, as ``RunError`` with
    the place: accesses out of bounds, uninitialised reads, iterators out of their domain, races between iterations of
    parallel, vectorized and thread-bound loops, division by zero, failed assertions. ``regions`` also reports accesses
    outside a block's declared regions. Arguments are always checked.

    >>> import numpy as np, tir
    >>> A, out = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    ...     for i in range(4):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(4, i)
    ...             B[vi] = A[vi] + T.float32(1)
    ... ''')
    >>> run(f, A, out)
    >>> out.tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    module = IRModule.of(func_or_mod)
    if func is None:
        if len(module) != 1 and "main" not in module:
            raise RunError(f"the module has the functions {', '.join(module)}: say which with func=")
        func = next(iter(module)) if len(module) == 1 else "main"
    if func not in module:
        raise RunError(f"no function {func!r} in the module; it has {', '.join(module) or 'none'}")
    token = _current.set(_Running(module, check, regions, (func,)))
    try:
        return _run_function(module[func], args, check, regions)
    finally:
        _current.reset(token)


def _run_function(func: PrimFunc, args: tuple[Any, ...], check: bool, regions: bool) -> Any:
    scalars, arrays = bind_arguments(func, args)
    with np.errstate(all="ignore"):
        compiled = compile_function(func, check, regions)
        try:
            return compiled(scalars, arrays, Races())
        except _Return as result:
            return result.value
        except ZeroDivisionError:
            raise RunError(f"division by zero in {func.name}") from None
        except IndexError as error:
            raise RunError(f"access out of bounds in {func.name} ({error}); check=True gives the place") from None
        except RecursionError:
            raise RunError(f"{func.name} nests or calls too deeply") from None


def compile_function(func: PrimFunc, check: bool = True, regions: bool = False) -> Callable[..., Any]:
    """The Python function that runs ``func`` on bound arguments; cached as long as ``func`` lives."""
    kinds = _COMPILED.setdefault(func, {})
    found = kinds.get((check, regions))
    if found is None:
        compiler = Compiler(func, check, regions)
        source = compiler.compile()
        scope = compiler.constants
        exec(compile(source, f"<tir {func.name}>", "exec"), scope)
        found = kinds[check, regions] = scope["run"]
    return found


def register_extern(name: str, fn: Callable[..., Any]) -> None:
    """Let programs call ``fn`` by ``name`` (T.call_extern, T.call_packed, T.call_pure_extern, T.call_llvm_intrin).

    Pointers are passed as one-dimensional NumPy arrays that start at the element pointed to; numbers as numbers, vectors
    as arrays of their lanes.

    >>> register_extern("half_of", lambda x: x / 2)
    """
    _EXTERNS[name] = fn


def call_extern(name: str, dtype: DType, args: tuple[Any, ...]) -> Any:
    fn = _EXTERNS.get(name) or PACKED.get(name) or x86_dot_products.MEANING.get(name)
    if fn is None:
        known = ", ".join(sorted({*_EXTERNS, *PACKED})) or "none"
        raise RunError(
            f"the program calls the external function {name!r}, which is not registered: use "
            f"tir.interp.register_extern({name!r}, fn) (registered: {known})"
        )
    result = fn(*args)
    return None if result is None else numbers.from_numpy(result, dtype)


def call_in_module(name: str, dtype: DType, args: tuple[Any, ...]) -> Any:
    """Call another function of the running module."""
    here = _current.get()
    if name not in here.module:
        raise RunError(f"the program calls {name!r}, which is not in the module ({', '.join(here.module)})")
    if len(here.calls) >= _MAX_CALLS:
        raise RunError(f"calls nest more than {_MAX_CALLS} deep: {' -> '.join(here.calls[-4:])} -> {name}")
    func = here.module[name]
    if len(args) != len(func.params):
        raise RunError(f"{name} takes {len(func.params)} arguments, called with {len(args)}")
    token = _current.set(_Running(here.module, here.check, here.regions, (*here.calls, name)))
    try:
        given = {p: a for p, a in zip(func.params, args) if not isinstance(a, np.ndarray)}
        shaped = tuple(_shaped(func, p, a, given) for p, a in zip(func.params, args))
        return _run_function(func, shaped, here.check, here.regions)
    finally:
        _current.reset(token)


def _shaped(func: PrimFunc, param: Any, arg: Any, given: dict[Any, Any]) -> Any:
    """A pointer argument as an array of its parameter's shape, whose sizes are constants or ``given``."""
    from .arguments import evaluate
    from .memory import view

    buffer = func.buffer_map.get(param)
    if buffer is None or not isinstance(arg, np.ndarray):
        return arg
    shape = tuple(evaluate(s, given) for s in buffer.shape)
    if any(n is None for n in shape):
        if buffer.ndim == 1:
            return arg
        raise RunError(f"call of {func.name}: the shape of `{buffer.name}` is symbolic, and a pointer has no shape")
    return view(arg, buffer.dtype, shape, None, 0, buffer.name)
