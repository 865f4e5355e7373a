"""Arguments that overlap: refused as compiled code refuses them, or, where they may, one memory for the judges of races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tir
from tir.errors import RunError
from tir.script import parse

SHIFT = """
@T.prim_func
def main(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "{dtype}"), C: T.Buffer((17,), "int32")):
    T.func_attr({{"tir.noalias": {noalias}}})
    for i in {loop}:
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi + 1] = T.Cast("{dtype}", A[vi] + 1 + C[0])
"""
SERIAL, PARALLEL, VECTOR = "range(16)", "T.parallel(16)", "T.vectorized(16)"
THREADS = 'T.thread_binding(16, thread="threadIdx.x")'
BLOCKS = 'T.thread_binding(16, thread="blockIdx.x")'


def built(target: str, loop: str = SERIAL, noalias: bool = True, dtype: str = "int32") -> Any:
    return tir.build(parse(SHIFT.format(loop=loop, noalias=noalias, dtype=dtype)), target)


def memory(n: int = 64) -> np.ndarray:
    return np.zeros(n, "int32")


TARGETS = [("interpreter", SERIAL), ("llvm", SERIAL), ("cuda-sim", THREADS)]


@pytest.mark.parametrize(("target", "loop"), TARGETS)
@pytest.mark.parametrize("start", [0, 1, 16])
def test_a_written_array_that_overlaps_another(target: str, loop: str, start: int) -> None:
    x = memory()
    with pytest.raises(RunError, match=r"argument 2 `B` of main is written and overlaps argument 1 \(`A`\)") as caught:
        built(target, loop)(x[:17], x[start : start + 17], memory(17))
    assert '"tir.noalias": False' in str(caught.value)
    built(target, loop)(x[:17], x[17:34], memory(17))


@pytest.mark.parametrize(("target", "loop"), TARGETS)
def test_arrays_that_are_only_read_may_overlap(target: str, loop: str) -> None:
    x, out = memory(17), memory(17)
    x.flags.writeable = False
    built(target, loop)(x, out, x)
    assert out.tolist() == [0] + [1] * 16


def test_by_bytes_and_between_types() -> None:
    x = memory()
    for target in ("interpreter", "llvm"):
        with pytest.raises(RunError, match="overlaps"):
            built(target, dtype="int16")(x[:17], x.view("int16")[2:19], memory(17))
        built(target, dtype="int16")(x[:17], x.view("int16")[34:51], memory(17))


@pytest.mark.parametrize("loop", [PARALLEL, VECTOR, THREADS, BLOCKS])
@pytest.mark.parametrize("dtype", ["int32", "int16"])
def test_the_executor_finds_races_of_two_names(loop: str, dtype: str) -> None:
    x = memory()
    run = built("interpreter", loop, False, dtype)
    with pytest.raises(RunError, match=r"race on [AB]"):
        run(x[:17], x.view(dtype)[:17], memory(17))
    run(x[:17], memory().view(dtype)[:17], memory(17))


@pytest.mark.parametrize("loop", [THREADS, BLOCKS])
@pytest.mark.parametrize("dtype", ["int32", "int16"])
def test_the_simulator_finds_races_of_two_names(loop: str, dtype: str) -> None:
    x = memory()
    run = built("cuda-sim", loop, False, dtype)
    with pytest.raises(RunError, match="race: B"):
        run(x[:17], x.view(dtype)[:17], memory(17))
    run(x[:17], memory().view(dtype)[:17], memory(17))


def test_serial_loops_run_over_two_names() -> None:
    for target in ("interpreter", "llvm"):
        x = memory(17)
        built(target, noalias=False)(x, x, memory(17))
        assert x.tolist() == list(range(17))


def test_names_that_do_not_meet_are_no_race() -> None:
    x = memory()
    built("interpreter", PARALLEL, False)(x[17:34], x[:17], memory(17))
    x = memory()
    built("cuda-sim", THREADS, False)(x[17:34], x[:17], memory(17))
