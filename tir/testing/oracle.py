"""Oracles: properties of a transformed program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import TirError
from ..function import IRModule, PrimFunc
from ..interp.same_results import assert_same_call, random_inputs, reference
from ..stmt import THREAD_BINDING, For
from ..visit import walk


def usual_engine(program: IRModule) -> str:
    """What runs a program if nobody says it: the simulator where loops are bound to threads."""
    loops = (loop for func in program.functions.values() for loop in walk(func.body) if isinstance(loop, For))
    return "cuda-sim" if any(loop.kind == THREAD_BINDING for loop in loops) else "llvm"


def assert_same_result(
    f: PrimFunc | IRModule,
    g: PrimFunc | IRModule,
    inputs: Sequence[Any] | None = None,
    engines: Sequence[str] = ("interpreter", "llvm"),
    rtol: float | None = None,
    atol: float | Mapping[str, Any] = 0.0,
    seed: int = 0,
    func: str | None = None,
) -> None:
    """Run ``f`` with the reference executor and ``g`` with each engine on the same arguments; compare every array.

    The default ``rtol`` depends on the dtype; integers are compared exactly. ``atol`` is a number, or an array for each
    float buffer by name, as :func:`error_bounds` gives them (with ``rtol=0``: by how much sums in other orders may differ).
    Raises ``AssertionError`` with the engine, the argument and the first element that differs; errors of a run propagate.

    >>> import tir
    >>> from tir.testing import assert_same_result
    >>> sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
    >>> loops = sch.split("j", [2, 4])
    >>> assert_same_result(tir.library.rows.row_sum(4, 8), sch.mod, engines=["interpreter"])
    """
    from ..interp import run

    first, second = IRModule.of(f), IRModule.of(g)
    name = func or ("main" if "main" in first else next(iter(first)))
    base = list(inputs) if inputs is not None else random_inputs(first[name], seed)

    def call(engine: str) -> Callable[..., Any]:
        if engine == "interpreter":
            return lambda *args: run(second, *args, func=name)
        from codegen.build import build

        return build(second, engine)[name].on_copies

    expected = reference(first, base, name)
    for engine in engines:
        assert_same_call(first, call(engine), base, engine, rtol, atol, name, expected)


def assert_roundtrip(program: PrimFunc | IRModule) -> None:
    """The program's text parses back to the same program, and prints as the same text.

    >>> import tir
    >>> from tir.testing import assert_roundtrip
    >>> assert_roundtrip(tir.library.rows.row_sum(4, 8))
    """
    from ..equal import assert_structural_equal
    from ..script import parse

    text = program.script()
    again = parse(text)
    assert_structural_equal(again, program)
    second = again.script()
    if second != text:
        raise AssertionError(f"the text changed when parsed and printed again:\n{text}\n---- became ----\n{second}")


def check_schedule(
    before: PrimFunc | IRModule,
    steps: Callable[[Any], Any],
    after: PrimFunc | IRModule | None = None,
    *,
    inputs: Sequence[Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    engines: Sequence[str] = ("interpreter",),
) -> Any:
    """Apply ``steps(sch)`` to ``before`` and check the result by five oracles; returns the schedule.

    The program is well-formed; it equals ``after`` if that is given; it prints and parses back; replaying the trace
    on ``before`` reproduces it; and it computes what ``before`` computes, on ``inputs`` or on random ones (symbolic
    ``sizes`` by name). Otherwise the error names the first step that changed the result, and what it changed.

    >>> import tir
    >>> from tir.testing import check_schedule
    >>> sch = check_schedule(tir.library.rows.row_sum(4, 8), lambda sch: sch.split("j", [2, 4]))
    >>> len(sch.history)
    2
    """
    from ..analysis.wellformed import verify
    from ..equal import assert_structural_equal
    from ..schedule import Schedule

    sch = Schedule(before)
    steps(sch)
    for func in sch.mod.functions.values():
        verify(func)
    if after is not None:
        wanted = IRModule.of(after)
        name = next(iter(sch.mod)) if len(sch.mod) == 1 else None
        if name is not None and len(wanted) == 1:
            assert_structural_equal(_unnamed(sch.mod[name]), _unnamed(next(iter(wanted.functions.values()))))
        else:
            assert_structural_equal(sch.mod, wanted)
    assert_roundtrip(sch.mod)
    again = sch.trace.replay(before)
    assert_structural_equal(again.mod, sch.mod)
    origin = IRModule.of(before)
    chosen = {n: list(inputs) if inputs is not None else random_inputs(f, 0, sizes) for n, f in origin.items()}
    try:
        for name, values in chosen.items():
            assert_same_result(origin, sch.mod, values, engines, func=name)
    except (AssertionError, TirError) as error:
        from .first_wrong import first_wrong_step

        raise first_wrong_step(sch, chosen, engines) or error from error
    return sch


def _unnamed(func: PrimFunc) -> PrimFunc:
    return func.without_attr("global_symbol")


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """``numpy.testing.assert_allclose`` on anything that is an array or has ``numpy()``.

    >>> from tir.testing import assert_allclose
    >>> assert_allclose([1.0, 2.0], [1.0, 2.0000001])
    """

    actual, desired = (x.numpy() if hasattr(x, "numpy") else x for x in (actual, desired))
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)
