"""Parameters that may overlap ("tir.noalias" is False): a store by one name changes what another reads."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from codegen.cuda.kernel import emit_kernel
from codegen.cuda.module import is_kernel
from tir.interp import run
from tir.interp.gpu import simulate
from tir.script import parse
from tir.transform import thread_storage_sync

HEAD = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": False})
"""

BODIES = {
    "a condition that was true": """
    if A[0] > 0:
        B[0] = -5
        if A[0] > 0:
            C[1] = 7
""",
    "a choice by a condition that was true": """
    if A[0] > 0:
        B[0] = -5
        C[1] = T.if_then_else(A[0] > 0, 3, 4)
""",
    "the extent of a loop": """
    for i in range(A[0]):
        B[0] = 2
        if i < A[0]:
            C[i] = i + 1
""",
    "a condition that cuts a loop": """
    for i in range(8):
        if T.likely(i < A[0]):
            B[0] = B[0] - 1
            C[i] = 3
""",
    "a condition in a loop": """
    for i in range(8):
        if A[0] > 3:
            B[0] = i
        else:
            C[i] = 5
""",
    "a value read again": """
    x = A[0]
    B[0] = 9
    C[1] = x + A[0]
""",
    "a greatest value": """
    for i in range(8):
        C[0] = T.max(C[0], A[i])
        B[0] = T.Select(A[i] > C[0], A[i], B[0])
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("starts", [(0, 0, 0), (2, 1, 0), (3, 0, 3), (1, 0, 0)])
def test_what_is_known_of_memory_ends_at_a_store_by_another_name(body: str, starts: tuple[int, ...]) -> None:
    func = parse(HEAD + body)
    compiled = tir.build(func, "llvm")
    simplified, lowered = tir.transform.simplify(func), tir.lower(func)["main"]
    for seed in range(4):
        results = []
        for engine in (lambda *a: run(func, *a), lambda *a: run(simplified, *a), lambda *a: run(lowered, *a), compiled):
            memory = np.random.default_rng(seed).integers(1, 6, 16).astype("int32")
            engine(*(memory[s : s + 8] for s in starts))
            results.append(memory)
        for found in results[1:]:
            np.testing.assert_array_equal(found, results[0])


LOOP = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": False})
    with T.launch_thread("threadIdx.x", 1) as tx:
        for i in range(A[0]):
            B[i] = 1
"""


def test_a_kernel_reads_the_bounds_of_a_loop_once() -> None:
    (kernel,) = (f for f in tir.lower(parse(LOOP), target="cuda").functions.values() if is_kernel(f))
    assert "i_end" in emit_kernel(kernel, "main").text


KERNEL = """
@T.prim_func
def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):
    T.func_attr({{"tir.noalias": {noalias}}})
    with T.launch_thread("threadIdx.x", 32) as tx:
        B[tx] = tx
        {condition}
            C[tx] = A[31 - tx]
"""


@pytest.mark.parametrize("condition", ["if True:", "if A[3] > 2:", "if A[tx] > 2:"])
def test_threads_wait_before_they_read_what_others_wrote_by_another_name(condition: str) -> None:
    for noalias in (True, False):
        func = thread_storage_sync(parse(KERNEL.format(noalias=noalias, condition=condition)))
        assert ("tvm_storage_sync" in func.script()) == (not noalias)
    b, c = np.zeros((2, 32), "int32")
    simulate(func, (b, b, c))
    written = np.arange(32)
    asked = {"if True:": written >= 0, "if A[3] > 2:": written[3] > 2, "if A[tx] > 2:": written > 2}[condition]
    np.testing.assert_array_equal(c, np.where(asked, written[::-1], 0))


def test_a_condition_on_what_threads_write_by_another_name_is_not_the_same_for_all() -> None:
    text = KERNEL.format(noalias=False, condition="while A[0] > 2:")
    with pytest.raises(tir.BuildError, match='its parameters may overlap: "tir.noalias" is False'):
        thread_storage_sync(parse(text))
    assert "storage_sync" not in thread_storage_sync(parse(text.replace("False", "True"))).script()
