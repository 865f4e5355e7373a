"""Functions of modules in programs of JAX: under ``jit``, ``vmap`` and ``grad``, by callbacks.

JAX is imported when a function is made; nothing else needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen.calls import Function
from codegen.module import Module

from .errors import BuildError, RunError
from .extension import optional
from .functional import Functional, Gradient
from .interp.named_arguments import in_order, zeros
from .interp.numbers import array_dtype


def call(module: Module | Function, backward: Module | Function | None = None) -> Callable[..., Any]:
    """A function of a module as one of arrays of JAX, which runs on the host (``jax.pure_callback``).

    It takes the parameters that the function does not write, in order, and returns new arrays for the others, which are
    zeros before the call. Numbers that a shape depends on are numbers of Python. ``vmap`` calls it once for each element.

    ``backward``: as for :func:`tir.torch.op`; it makes the function differentiable in reverse.

    Raises ``BuildError`` for a function that is no operator, and without JAX; the call raises ``RunError`` for arguments that
    do not fit, and for results of 64 bits where JAX computes in 32.

    >>> import tir
    >>> fill = tir.script.parse('''
    ... @T.prim_func
    ... def fill(A: T.Buffer((3,), "float32")) -> T.int32:
    ...     A[0] = 1.0
    ...     return 1
    ... ''')
    >>> try:
    ...     tir.jax.call(tir.build(fill, "interpreter"))
    ... except tir.BuildError as error:
    ...     print(error)
    fill returns a number; an operator makes arrays: write it into one of no dimensions
    """
    made = Functional.of(module)
    jax = optional("jax", "calls from JAX need JAX, which is not installed", "jax", BuildError)
    if backward is None:
        return lambda *given: _call(jax, made, given)
    gradient = Gradient.between(made, backward)
    numbers = [k for k, name in enumerate(made.takes) if made.buffer(name) is None]

    def forward(*given: Any) -> Any:
        results = _call(jax, made, given)
        values = dict(zip((*made.takes, *made.makes), (*given, *(results if len(made.makes) > 1 else (results,)))))
        return results, tuple(
            values[name] for name in gradient.keeps if name in made.makes or made.buffer(name) is not None
        )

    def back(*given: Any) -> Any:
        *fixed, kept, gradients = given
        values = dict(zip((made.takes[k] for k in numbers), fixed))
        arrays = [n for n in gradient.keeps if n not in values]
        values.update(zip(arrays, kept))
        found = _call(jax, gradient.of, gradient.arguments(values, gradients if len(made.makes) > 1 else (gradients,)))
        ordered = gradient.in_order(found if len(gradient.of.makes) > 1 else (found,))
        return tuple(g for k, g in enumerate(ordered) if k not in numbers)

    run = jax.custom_vjp(lambda *given: _call(jax, made, given), nondiff_argnums=tuple(numbers))
    run.defvjp(forward, back)
    return run


def _call(jax: Any, made: Functional, given: Sequence[Any]) -> Any:
    name = made.function.func.name
    if len(given) != len(made.takes):
        raise RunError(f"{name} takes {', '.join(made.takes)}, got {len(given)} arguments")
    known = {}
    for n, value in zip(made.takes, given):
        buffer = made.buffer(n)
        if buffer is None:
            known[n] = value
            continue
        rank = buffer.ndim + (buffer.dtype.lanes > 1)
        if np.ndim(value) != rank or np.dtype(jax.numpy.result_type(value)) != array_dtype(buffer.dtype):
            got = f"{jax.numpy.result_type(value)} of {np.ndim(value)}"
            raise RunError(f"{name}: `{n}` is {buffer.dtype} of {rank} dimensions, got {got}")
        known[n] = np.shape(value)
    try:
        shapes = [tuple(map(int, shape)) for shape in made.shapes(known)]
    except (TypeError, jax.errors.ConcretizationTypeError) as error:
        raise RunError(
            f"{name}: the shape of a result depends on a number that JAX traces; pass a number of Python"
        ) from error
    results = [jax.ShapeDtypeStruct(s, array_dtype(made.made(n).dtype)) for s, n in zip(shapes, made.makes)]
    for n, result in zip(made.makes, results):
        if jax.dtypes.canonicalize_dtype(result.dtype) != result.dtype:
            raise RunError(
                f"{name} makes {result.dtype} (`{n}`), and JAX computes in 32 bits: jax.config.update('jax_enable_x64', True)"
            )

    def run(*values: Any) -> Any:
        passed = {n: v if made.buffer(n) is None else np.asarray(v) for n, v in zip(made.takes, values)}
        new = [zeros(result.shape, made.made(n)) for n, result in zip(made.makes, results)]
        made.function(*in_order(made.function.func, (), {**passed, **dict(zip(made.makes, new))}))
        return new[0] if len(new) == 1 else tuple(new)

    return jax.pure_callback(run, results[0] if len(results) == 1 else tuple(results), *given, vmap_method="sequential")
