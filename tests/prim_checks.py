"""Checks shared by the tests of primitives: results, golden programs, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.visit import free_vars


def schedule(text: str, **options) -> tir.Schedule:
    return tir.Schedule(parse(text), **options)


def results(func: tir.PrimFunc, scalars: dict[str, int]) -> list[np.ndarray]:
    """The buffers of ``func`` after a run on fixed random inputs, every access checked."""
    from tir.interp import run
    from tir.interp.arguments import evaluate

    rng = np.random.default_rng(0)
    args: list = []
    for p in func.params:
        buffer = func.buffer_map.get(p)
        if buffer is None:
            args.append(scalars[p.name])
            continue
        sizes = {s: scalars[s.name] for dim in buffer.shape for s in free_vars(dim)}
        shape = [int(evaluate(dim, sizes)) for dim in buffer.shape]
        if buffer.dtype.is_float:
            args.append(rng.standard_normal(shape).astype(buffer.dtype))
        else:
            args.append(rng.integers(0, 4, shape).astype(buffer.dtype))
    run(func, *args, regions=True)
    return [a for a in args if isinstance(a, np.ndarray)]


def same(sch: tir.Schedule, expected: str | None = None, **scalars: int) -> None:
    """The program is well-formed, prints and parses back, replays from its trace, undoes, and gives the same results.

    ``expected`` is the program in the dialect that the steps should have made.
    """
    from tir.analysis import wellformed

    original, func = sch.history[0].mod, sch.mod["main"]
    assert not wellformed.check(func)
    tir.assert_structural_equal(parse(func.script()), func)
    tir.assert_structural_equal(sch.trace.replay(original).mod, sch.mod)
    undone = sch.copy()
    undone.reset()
    assert undone.mod is original
    for a, b in zip(results(original["main"], scalars), results(func, scalars)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    if expected is not None:
        tir.assert_structural_equal(parse(expected), func)


def refused(call, *words: str) -> tir.ScheduleError:
    """``call`` is refused, and the message has all ``words``."""
    with pytest.raises(tir.ScheduleError) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text, text
    assert "fault inside" not in text, text
    return caught.value


def on_simulator(sch: tir.Schedule, orders=("forward", "random"), rtol=1e-4) -> None:
    """The lowered kernel gives the executor's results in every order of threads, and the simulator finds nothing."""
    func = sch.mod["main"]
    want = results(sch.history[0].mod["main"], {})
    module = tir.build(sch.mod, target="cuda-sim")
    for order in orders:
        rng = np.random.default_rng(0)
        args = []
        for p in func.params:
            buffer = func.buffer_map[p]
            shape = [int(s) for s in buffer.shape]
            if buffer.dtype.is_float:
                args.append(rng.standard_normal(shape).astype(buffer.dtype))
            else:
                args.append(rng.integers(0, 4, shape).astype(buffer.dtype))
        module.order = order
        module(*args)
        assert module.report().ok, str(module.report())
        for a, b in zip(want, args):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)
