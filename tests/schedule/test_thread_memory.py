"""Which write a thread's read of its own memory gets its value from, where statements write several elements."""

from __future__ import annotations

import pytest
from prim_checks import on_simulator, refused, schedule

import tir
from tir.errors import BuildError

TEXT = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4, 2), "float32")):
    L = T.alloc_buffer((12,), "float32", scope="local")
    for b in range(1):
        for t1 in range(4):
            with T.block("W"):
                v = T.axis.spatial(4, t1)
                for k in range(2):
                    L[3 * v + k] = A[v] + 1.0
        for t2 in range(4):
            with T.block("K"):
                v = T.axis.spatial(4, t2)
                for k in range(2):
                    L[{written}] = 7.0
        for t3 in range(4):
            with T.block("R"):
                v = T.axis.spatial(4, t3)
                for k in range(2):
                    C[v, k] = L[{read}]
"""
NEXT = "3 * ((v + 1 - k) % 4)"  # of the next thread for k = 0, of its own for k = 1


@pytest.mark.parametrize(
    ("written", "read", "right"),
    [
        (f"{NEXT} + 1 + k", f"{NEXT} + 2 * k", False),  # an element of the next thread, and not the one that is read
        ("3 * v + 1", f"{NEXT} + 1 - k", False),
        ("3 * v + k", "3 * v + k", True),
        ("3 * v + 1 + k", "3 * v + 1 + k", True),
    ],
)
def test_a_value_is_killed_by_a_write_of_its_own_element(written, read, right):
    sch = schedule(TEXT.format(written=written, read=read))
    for loop, axis in (("b", "blockIdx.x"), ("t1", "threadIdx.x"), ("t2", "threadIdx.x")):
        sch.bind(loop, axis)
    if right:
        sch.bind("t3", "threadIdx.x")
        on_simulator(sch)
    else:
        refused(lambda: sch.bind("t3", "threadIdx.x"), "by another thread than the one that wrote it")


def test_local_memory_ends_with_each_of_the_kernels_that_a_loop_launches():
    """Exact sets do not decide which element `k // n` is: what they leave open, the loops do not show."""
    sch = schedule("""
@T.prim_func
def main(a: T.handle, W: T.Buffer((3,), "int32"), S: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i, k in T.grid(3, n):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = W[vi]
            S[vi] = S[vi] + A[vi, vk]
""")
    sch.write_at(sch.get_loops("S")[1], "S", 0, "local")
    _, one = sch.split(sch.fuse(*sch.get_loops("S")), [None, 1])
    sch.bind(one, "threadIdx.x")
    with pytest.raises(BuildError, match="ends with the kernel, which loop i_k_fused_0 launches in each iteration"):
        tir.build(sch.mod, "cuda-sim")
