"""Faults planted in generated CUDA C: the PTX executor finds each, by a fault or by a result that NumPy does not give.

A row: a golden case, a pattern, which of its matches is replaced (from 0), by what, and an order of threads that shows it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_cuda_promises import ARGMAX, STAGED, THROUGH_GLOBAL
from test_golden_cuda import ARCHS, NEWER, executed, lowered, scheduled

import tir
from codegen.cuda import nvrtc
from codegen.ptx.module import PTXModule
from tir.script import parse

BARRIER, WAIT, COMMIT, MASK = r"__syncthreads\(\);", r"wait_copies<\d>\(\);", r"commit_copies\(\);", "0xffffffff"
LEFT_OUT = [
    ("double_buffer", BARRIER, 0, "", "forward"),
    ("double_buffer", BARRIER, 1, "", "reverse"),
    ("pipeline", BARRIER, 0, "", "reverse"),
    ("pipeline", BARRIER, 1, "", "forward"),
    ("pipeline_async", BARRIER, 0, "", "forward"),
    ("pipeline_async", BARRIER, 2, "", "reverse"),
    ("pipeline_three_stages", BARRIER, 1, "", "forward"),
    ("shared_dynamic", BARRIER, 0, "", "forward"),
    ("shared_static", BARRIER, 0, "", "reverse"),
    ("softmax_shared", BARRIER, 2, "", "forward"),
    ("sum_of_a_block", BARRIER, 0, "", "forward"),
    ("transpose_padded", BARRIER, 0, "", "forward"),
    ("compute_at_shared_stencil", BARRIER, 0, "", "threads"),
    ("copy_async_16_bytes", BARRIER, 1, "", "threads"),
    ("sum_across_y", BARRIER, 3, "", "threads"),
    ("copy_async_16_bytes", WAIT, 0, "", "together"),
    ("copy_async_16_bytes", WAIT, 1, "", "together"),
    ("copy_async_16_bytes", r"(wait_copies)<0>", 1, r"\1<1>", "together"),
    ("pipeline_async", WAIT, 2, "", "forward"),
    ("pipeline_async", COMMIT, 1, "", "forward"),
    ("copy_async_16_bytes", COMMIT, 0, "", "together"),
    ("histogram_atomic", r"atomicAdd\(&([^,]+), ([^)]+)\)", 0, r"(\1 += \2)", "together"),
    ("predicate", r"if \([^;{}]*\) \{", 0, "if (true) {", "together"),
    ("symbolic", r"if \([^;{}]*\) \{", 0, "if (true) {", "together"),
    ("matmul_naive", r"if \([^;{}]*\) \{", 0, "if (true) {", "together"),
]
ALTERED = [
    ("argmax", MASK, 0, "0x0000ffff", "together"),
    ("sum_of_a_warp", MASK, 2, "0x0000ffff", "forward"),
    ("sum_of_a_warp", r"(__shfl\w+\([^;]*, )16", 0, r"\g<1>8", "together"),
    ("elementwise", r"\[([^\]]+)\] = ", 0, r"[\1 + 1] = ", "together"),
    ("float64", r"\[([^\]]+)\] = ", 0, r"[\1 + 1] = ", "reverse"),
    ("double_buffer", r"\[([^\]]+)\] = ", 0, r"[\1 + 1] = ", "together"),
    ("wmma_half", r"\[([^\]]+)\] = ", 0, r"[\1 + 1] = ", "together"),
    ("mma_half", r"\.trans", 0, "", "together"),
    ("mma_int8", "lane / 4", 0, "lane / 8", "together"),
    ("gather", r"\[([^\]]+)\] = ", 0, r"[\1 + 1] = ", "together"),
]  # fmt: skip


def replaced(code: str, pattern: str, number: int, new: str) -> str:
    found = list(re.finditer(pattern, code))[number]
    return code[: found.start()] + found.expand(new) + code[found.end() :]


@pytest.mark.parametrize("case, pattern, number, new, order", [*LEFT_OUT, *ALTERED])
def test_a_planted_fault_is_found(case: str, pattern: str, number: int, new: str, order: str):
    arch = NEWER.get(case, ARCHS)[0]
    right = PTXModule(scheduled(case).mod, tir.Target(f"cuda-ptx -arch={arch}"), lowered(case), ptx="")
    ptx = nvrtc.compile_ptx(replaced(right.code, pattern, number, new), arch)
    with pytest.raises((AssertionError, tir.RunError)) as found:
        executed(case, order, ptx)
    assert found.value


# ---------------------------------------------------------------- promises


def run_with(text: str, promise: str, arguments: list[np.ndarray], order: str) -> list[np.ndarray]:
    """The arguments after a call whose CUDA C has ``promise`` put into the declarations of all pointers."""
    program = parse(f"@T.prim_func\n{text.strip()}")
    made = tir.build(program, "cuda-ptx -arch=sm_80")
    code = re.sub(r"(?<=\w)\* (?:__restrict__ )?(\w+)(?=[,)])", rf"*{promise} \1", made.code)
    assert promise == "" or code != made.code
    ptx = nvrtc.compile_ptx(code, "sm_80") if promise else None
    mod = PTXModule(tir.IRModule.of(program), tir.Target(f"cuda-ptx -arch=sm_80 -order={order}"), made.lowered, ptx)
    given = [a.copy() for a in arguments]
    mod(*given)
    return given


def through_global() -> tuple[list[np.ndarray], np.ndarray]:
    a = np.arange(5, dtype="int32") + 10
    return [a, np.zeros((5, 2), "int32")], a[:, None] * 2 + np.arange(2)


@pytest.mark.parametrize("order", ["together", "forward", "reverse", "threads"])
def test_a_value_that_a_thread_leaves_in_global_memory_reaches_the_others(order: str):
    given, want = through_global()
    assert (run_with(THROUGH_GLOBAL, "", given, order)[1] == want).all()


def test_and_does_not_where_all_pointers_are_restrict():
    given, _ = through_global()
    with pytest.raises(tir.RunError, match="nothing has written"):
        run_with(THROUGH_GLOBAL, " __restrict__", given, "together")


def argmax() -> tuple[list[np.ndarray], list[int]]:
    val = np.array([1, 5, 3, 7, 2, 0, 1, 4, 9, 6, 8, 0, 2, 3], "float32")
    given = [np.arange(14, dtype="int32"), val, val.copy(), np.full(2, -1, "int32"), np.full(2, -9, "float32")]
    return given, [8, 8]


def test_a_choice_of_a_load_that_stands_before_it():
    given, _ = argmax()
    assert run_with(STAGED, "", given, "together")[3].tolist() == [3, 8]


@pytest.mark.parametrize("order", ["together", "forward", "reverse", "threads"])
def test_a_choice_between_written_and_only_read_memory(order: str):
    given, want = argmax()
    assert run_with(ARGMAX, "", given, order)[3].tolist() == want


def test_and_with_all_pointers_restrict_a_load_bypasses_the_stores():
    given, _ = argmax()
    with pytest.raises(tir.RunError, match="bypasses the stores"):
        run_with(ARGMAX, " __restrict__", given, "together")
