"""Every stage of lowering, for many programs: it prints and parses back, is well formed, and means the same."""

from __future__ import annotations

import importlib

import pytest

import tir
from tir import PrimFunc
from tir.analysis.wellformed import verify
from tir.function import IRModule
from tir.interp import run
from tir.interp.same_results import compare, copied
from tir.testing import random_inputs
from tir.testing.oracle import assert_roundtrip, assert_same_result
from tir.testing.programs import random_program
from tir.testing.schedules import BLOCK_PRIMITIVES, LOOP_PRIMITIVES, random_schedule
from tir.transform.pipeline import cpu_pipeline, name_of


def _programs() -> list[tuple[str, PrimFunc]]:
    """Programs of the corpus that run on a CPU with any small integers as inputs."""
    found = []
    for room in ("blocks", "buffers", "loops", "vectors", "real_kernels", "arithmetic"):
        for name, value in vars(importlib.import_module(f"corpus.{room}")).items():
            if isinstance(value, PrimFunc) and f"{room}.{name}" not in _NOT_RUN:
                found.append((f"{room}.{name}", value))
    return found


# programs that need inputs of a special kind, or a GPU
_NOT_RUN = {
    "arithmetic.indirect",
    "buffers.offset",
    "buffers.shared_pointer",
    "buffers.typed_pointer",
    "buffers.symbolic_from",
    "loops.thread_loops",
    "loops.thread_from",
    "real_kernels.gather",
    "real_kernels.scatter_add",
    "real_kernels.embedding_sum",
    "real_kernels.layernorm",
    "real_kernels.attention_scores",
}


def _check_stages(func: PrimFunc) -> None:
    mod = IRModule.of(func)
    inputs = random_inputs(func, 0)

    def results(program: IRModule) -> list[object]:
        arrays = [copied(a) for a in inputs]
        run(program, *arrays, func="main")
        return arrays

    expected = results(mod)
    for step in cpu_pipeline():
        before, mod = mod, step(mod)
        if mod is not before:
            verify(mod["main"])
            assert_roundtrip(mod)
            for param, x, y in zip(func.params, expected, results(mod)):
                buffer = func.buffer_map.get(param)
                if buffer is not None:
                    compare(buffer.name, buffer.dtype, x, y, None, 0.0, name_of(step))


@pytest.mark.parametrize("name,func", [pytest.param(n, f, id=n) for n, f in _programs()])
def test_each_stage_of_the_corpus(name, func):
    _check_stages(func)


@pytest.mark.parametrize("seed", range(24))
def test_each_stage_of_random_schedules(seed):
    func = random_program(seed)
    names = [p for p in (*LOOP_PRIMITIVES, *(BLOCK_PRIMITIVES if seed % 2 else ())) if p != "bind"]
    sch, _ = random_schedule(func, seed, 8, names)
    _check_stages(sch.mod["main"])


def test_lowering_twice_changes_nothing_of_the_meaning():
    func = random_program(3)
    once = tir.lower(func)
    assert_same_result(func, tir.lower(once)["main"], engines=("interpreter",))


def test_names_are_distinct_in_the_pipeline():
    names = [name_of(p) for p in cpu_pipeline()]
    assert names[0] == "reject_thread_axes" and "flatten_buffer" in names
