"""Planted faults: each kernel is right but for one thing, and the simulator says which line it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tir
from tir.expr import Call
from tir.interp.gpu import ORDERS, SimulationError, simulate
from tir.script import tir as T
from tir.stmt import NOP, Evaluate
from tir.visit import rewrite, walk


@dataclass(frozen=True)
class Fault:
    """``good`` with ``right`` replaced by ``wrong``: a finding of ``kind`` at the line ``at`` (and ``other``)."""

    name: str
    good: str
    right: str
    wrong: str
    kind: str
    at: str
    other: str = ""
    args: Any = None


def parse(text: str) -> tir.PrimFunc:
    return tir.script.parse(f"@T.prim_func\n{text.strip()}\n")


def f32(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape) % 7


def f16(n: int) -> np.ndarray:
    return (np.arange(n) % 5).astype("float16")


REVERSE = """
def reverse(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    S[tx] = A[bx * 64 + tx]
    T.tvm_storage_sync("shared")
    B[bx * 64 + tx] = S[63 - tx]
"""

TILES = """
def tiles(A: T.Buffer((1024,), "float32"), B: T.Buffer((256,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    L_data = T.allocate([1], "float32", "local")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    L = T.decl_buffer((1,), "float32", data=L_data, scope="local")
    L[0] = T.float32(0)
    for k in range(4):
        S[tx] = A[k * 64 + tx]
        T.tvm_storage_sync("shared")
        L[0] = L[0] + S[63 - tx]
        T.tvm_storage_sync("shared")
    B[tx] = L[0]
"""

GUARDED = """
def guarded(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    if bx * 64 + tx < 100:
        B[bx * 64 + tx] = A[bx * 64 + tx] + T.float32(1)
"""

STENCIL = """
def stencil(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    tx = T.launch_thread("threadIdx.x", 128)
    B[tx] = T.if_then_else(0 < tx, A[tx - 1], T.float32(0)) + A[tx]
"""

VECTORS = """
def vectors(A: T.Buffer((260,), "float32"), B: T.Buffer((260,), "float32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx * 4:tx * 4 + 4] = A[tx * 4:tx * 4 + 4]
"""

SHARED_VECTORS = """
def shared_vectors(A: T.Buffer((256,), "float16"), B: T.Buffer((256,), "float16")):
    buf = T.allocate([1024], "uint8", "shared.dyn")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((264,), "float16", data=buf, scope="shared.dyn", elem_offset=0)
    S[tx * 8:tx * 8 + 8] = A[tx * 8:tx * 8 + 8]
    T.tvm_storage_sync("shared.dyn")
    B[tx * 8:tx * 8 + 8] = S[tx * 8:tx * 8 + 8]
"""

WARP_SUM = """
def warp_sum(A: T.Buffer((32,), "float32"), B: T.Buffer((1,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    R_data = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), "float32", data=R_data, scope="local")
    R[0] = A[tx]
    for i in range(5):
        R[0] = R[0] + T.tvm_warp_shuffle_down(T.uint32(4294967295), R[0], T.shift_right(16, i), 32, 32)
    if tx == 0:
        B[0] = R[0]
"""

BRANCH = """
def branch(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    S[tx] = A[tx]
    if 0 <= tx:
        T.tvm_storage_sync("shared")
        B[tx] = S[63 - tx]
"""

LOOPED = """
def looped(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S_data = T.allocate([64], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), "float32", data=S_data, scope="shared")
    for k in range(2 + tx // 64):
        S[tx] = A[tx]
        T.tvm_storage_sync("shared")
        B[tx] = S[tx]
"""

COUNTER = """
def counter(A: T.Buffer((128,), "float32"), B: T.Buffer((2,), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    if tx == 0:
        B[bx] = A[bx * 64]
"""

HISTOGRAM = """
def histogram(A: T.Buffer((128,), "int32"), B: T.Buffer((8,), "int32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    T.evaluate(T.atomic_add(T.address_of(B[A[bx * 64 + tx] % 8]), 1, dtype="int32"))
"""

TWO_STAGES = """
def two_stages(A: T.Buffer((512,), "float32"), B: T.Buffer((64,), "float32")):
    S_data = T.allocate([128], "float32", "shared")
    L_data = T.allocate([1], "float32", "local")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((128,), "float32", data=S_data, scope="shared")
    L = T.decl_buffer((1,), "float32", data=L_data, scope="local")
    L[0] = T.float32(0)
    T.ptx_cp_async(T.address_of(S[tx]), 0, T.address_of(A[tx]), 0, 4, dtype="float32")
    T.ptx_commit_group()
    for k in range(7):
        T.ptx_cp_async(T.address_of(S[(k + 1) % 2 * 64 + tx]), 0, T.address_of(A[(k + 1) * 64 + tx]), 0, 4, dtype="float32")
        T.ptx_commit_group()
        T.ptx_wait_group(1)
        T.tvm_storage_sync("shared")
        L[0] = L[0] + S[k % 2 * 64 + 63 - tx]
        T.tvm_storage_sync("shared")
    T.ptx_wait_group(0)
    T.tvm_storage_sync("shared")
    B[tx] = L[0] + S[64 + 63 - tx]
"""

COPY = """
def copy(A: T.Buffer((512,), "float16"), B: T.Buffer((512,), "float16")):
    S_data = T.allocate([512], "float16", "shared")
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((512,), "float16", data=S_data, scope="shared")
    T.ptx_cp_async(T.address_of(S[tx * 8]), 0, T.address_of(A[tx * 8]), 0, 16, dtype="float16")
    T.ptx_commit_group()
    T.ptx_wait_group(0)
    T.tvm_storage_sync("shared")
    B[tx * 8:tx * 8 + 8] = S[(63 - tx) * 8:(63 - tx) * 8 + 8]
"""

SWIZZLED = """
def swizzled(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    S_data = T.allocate([1024], "float32", "shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((1024,), "float32", data=S_data, scope="shared")
    for i in range(32):
        S[i * 32 + T.bitwise_xor(tx, i)] = A[i * 32 + tx]
    T.tvm_storage_sync("shared")
    for i in range(32):
        B[i * 32 + tx] = S[tx * 32 + T.bitwise_xor(i, tx)]
"""

LDMATRIX = """
def fragments(A: T.Buffer((256,), "float16"), B: T.Buffer((128,), "float16"), C: T.Buffer((128,), "float32")):
    As_data = T.allocate([256], "float16", "shared")
    Bs_data = T.allocate([128], "float16", "shared")
    a_data = T.allocate([8], "float16", "local")
    b_data = T.allocate([4], "float16", "local")
    c_data = T.allocate([4], "float32", "local")
    tx = T.launch_thread("threadIdx.x", 32)
    As = T.decl_buffer((256,), "float16", data=As_data, scope="shared")
    Bs = T.decl_buffer((128,), "float16", data=Bs_data, scope="shared")
    a = T.decl_buffer((8,), "float16", data=a_data, scope="local")
    b = T.decl_buffer((4,), "float16", data=b_data, scope="local")
    c = T.decl_buffer((4,), "float32", data=c_data, scope="local")
    As[tx * 8:tx * 8 + 8] = A[tx * 8:tx * 8 + 8]
    Bs[tx * 4:tx * 4 + 4] = B[tx * 4:tx * 4 + 4]
    T.tvm_storage_sync("shared")
    T.mma_fill(4, c_data, 0, dtype="float32")
    T.ptx_ldmatrix(False, 4, ".b16", a_data, 0, T.address_of(As[0]), tx % 16 * 16 + tx // 16 * 8, dtype="float16")
    T.ptx_ldmatrix(True, 2, ".b16", b_data, 0, T.address_of(Bs[0]), tx % 16 * 8, dtype="float16")
    T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a_data, 0, b_data, 0, c_data, 0, False, dtype="float32")
    C[tx // 4 * 8 + tx % 4 * 2:tx // 4 * 8 + tx % 4 * 2 + 2] = c[0:2]
    C[tx // 4 * 8 + tx % 4 * 2 + 64:tx // 4 * 8 + tx % 4 * 2 + 66] = c[2:4]
"""

WMMA = """
def tensor(A: T.Buffer((256,), "float16"), B: T.Buffer((256,), "float16"), C: T.Buffer((256,), "float32")):
    S_data = T.allocate([256], "float16", "shared")
    a_data = T.allocate([256], "float16", "wmma.matrix_a")
    b_data = T.allocate([256], "float16", "wmma.matrix_b")
    c_data = T.allocate([256], "float32", "wmma.accumulator")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((256,), "float16", data=S_data, scope="shared")
    S[tx * 8:tx * 8 + 8] = A[tx * 8:tx * 8 + 8]
    T.tvm_storage_sync("shared")
    T.tvm_fill_fragment(c_data, 16, 16, 16, 0, T.float32(0), dtype="handle")
    T.tvm_load_matrix_sync(a_data, 16, 16, 16, 0, T.address_of(S[0]), 16, "row_major", dtype="handle")
    T.tvm_load_matrix_sync(b_data, 16, 16, 16, 0, T.address_of(B[0]), 16, "row_major", dtype="handle")
    T.tvm_mma_sync(c_data, 0, a_data, 0, b_data, 0, c_data, 0, dtype="handle")
    T.tvm_store_matrix_sync(c_data, 16, 16, 16, 0, T.address_of(C[0]), 16, "row_major", dtype="handle")
"""

DIVIDED = """
def divided(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx] = A[tx] // (tx + 1)
"""

SYNC = '    T.tvm_storage_sync("shared")\n'
LAND = "    T.ptx_wait_group(0)\n"
Z64 = [f32(256), f32(256)]
TENSOR = [f16(256), f16(256), np.zeros(256, "float32")]

FAULTS = [
    Fault("barrier removed", REVERSE, SYNC, "", "race", "S[63 - tx]", "S[tx] =", Z64),
    Fault("barrier before the write", TILES, "        S[tx] = A[k * 64 + tx]\n        T.tvm_storage_sync(\"shared\")\n",
          "        T.tvm_storage_sync(\"shared\")\n        S[tx] = A[k * 64 + tx]\n", "race", "S[63 - tx]", "S[tx] =",
          [f32(1024), f32(256)]),
    Fault("second barrier removed", TILES, "S[63 - tx]\n        T.tvm_storage_sync(\"shared\")", "S[63 - tx]", "race",
          "S[tx] = A", "S[63 - tx]", [f32(1024), f32(256)]),
    Fault("barrier of the wrong kind", REVERSE, 'sync("shared")', 'sync("warp")', "race", "S[63 - tx]", "S[tx] =", Z64),
    Fault("write overlaps a neighbour's", REVERSE, "S[tx] = ", "S[tx // 2] = ", "race", "S[tx // 2]", "S[tx // 2]", Z64),
    Fault("guard off by one", GUARDED, "< 100", "<= 100", "bounds", "B[bx * 64 + tx] =", "", [f32(100), f32(100)]),
    Fault("guard gone", GUARDED, "    if bx * 64 + tx < 100:\n        B", "    if bx * 64 + tx < 128:\n        B", "bounds",
          "B[bx * 64 + tx] =", "", [f32(100), f32(100)]),
    Fault("halo guard off by one", STENCIL, "0 < tx", "0 <= tx", "bounds", "A[tx - 1]", "", [f32(128), f32(128)]),
    Fault("shared index too far", REVERSE, "S[63 - tx]", "S[64 - tx]", "bounds", "S[64 - tx]", "", Z64),
    Fault("tile overruns the array", REVERSE, "B[bx * 64 + tx]", "B[bx * 65 + tx]", "bounds", "B[bx * 65 + tx]", "", Z64),
    Fault("misaligned float4 load", VECTORS, "A[tx * 4:tx * 4 + 4]", "A[tx * 4 + 1:tx * 4 + 5]", "alignment",
          "A[tx * 4 + 1 :", "", [f32(260), f32(260)]),
    Fault("misaligned float4 store", VECTORS, "B[tx * 4:tx * 4 + 4]", "B[tx * 4 + 2:tx * 4 + 6]", "alignment",
          "B[tx * 4 + 2 :", "", [f32(260), f32(260)]),
    Fault("misaligned offset in dynamic shared memory", SHARED_VECTORS, "elem_offset=0", "elem_offset=4", "alignment",
          "S[tx * 8:tx * 8 + 8] = A", "", [f16(256), f16(256)]),
    Fault("padding that breaks alignment", SHARED_VECTORS, "S[tx * 8:tx * 8 + 8]", "S[tx * 8 + tx // 8:tx * 8 + tx // 8 + 8]",
          "alignment", "tx // 8 + 8] = A", "", [f16(256), f16(256)]),
    Fault("uninitialised shared read", REVERSE, "    S[tx] = A", "    if tx < 63:\n        S[tx] = A", "uninitialised",
          "S[63 - tx]", "", Z64),
    Fault("accumulator not cleared", TILES, "    L[0] = T.float32(0)\n", "", "uninitialised", "L[0] = L[0] +", "",
          [f32(1024), f32(256)]),
    Fault("shuffle under a condition", WARP_SUM, "    for i in range(5):\n        R",
          "    for i in range(5):\n        if tx < 16:\n            R", "shuffle", "tvm_warp_shuffle_down", "", [f32(32), f32(1)]),
    Fault("shuffle with a mask that forgets lanes", WARP_SUM, "T.uint32(4294967295)", "T.uint32(65535)", "shuffle",
          "tvm_warp_shuffle_down", "", [f32(32), f32(1)]),
    Fault("shuffle from an idle lane", WARP_SUM, "    for i in range(5):\n        R[0] = R[0] + T.tvm_warp_shuffle_down("
          "T.uint32(4294967295), R[0], T.shift_right(16, i), 32, 32)",
          "    if tx < 16:\n        R[0] = T.tvm_warp_shuffle(T.uint32(65535), R[0], tx + 16, 32, 32)", "shuffle",
          "tvm_warp_shuffle", "", [f32(32), f32(1)]),
    Fault("barrier in a divergent branch", BRANCH, "if 0 <= tx:", "if tx < 48:", "barrier", "T.tvm_storage_sync", "",
          [f32(64), f32(64)]),
    Fault("barrier that one warp misses", BRANCH, "if 0 <= tx:", "if tx < 32:", "barrier", "T.tvm_storage_sync", "",
          [f32(64), f32(64)]),
    Fault("barrier in a loop of differing length", LOOPED, "tx // 64", "tx // 32", "barrier", "T.tvm_storage_sync", "",
          [f32(64), f32(64)]),
    Fault("two blocks write one element", COUNTER, "B[bx]", "B[0]", "race", "B[0] =", "B[0] =", [f32(128), f32(2)]),
    Fault("every thread writes one element", COUNTER, "if tx == 0:", "if tx >= 0:", "race", "B[bx] =", "B[bx] =",
          [f32(128), f32(2)]),
    Fault("block reads what another block writes", COUNTER, "A[bx * 64]", "B[1 - bx]", "race", "B[bx] = B[1 - bx]",
          "B[bx] = B[1 - bx]", [f32(128), f32(2)]),
    Fault("addition that is not atomic", HISTOGRAM,
          "T.evaluate(T.atomic_add(T.address_of(B[A[bx * 64 + tx] % 8]), 1, dtype=\"int32\"))",
          "B[A[bx * 64 + tx] % 8] = B[A[bx * 64 + tx] % 8] + 1", "race", "B[A[", "B[A[",
          [np.arange(128, dtype="int32"), np.zeros(8, "int32")]),
    Fault("wait of a copy removed", COPY, LAND, "", "async", "B[tx * 8:tx * 8 + 8]", "T.ptx_cp_async", [f16(512), f16(512)]),
    Fault("wait for too few groups", TWO_STAGES, "T.ptx_wait_group(1)", "T.ptx_wait_group(2)", "async",
          "S[k % 2 * 64 + 63 - tx]", "T.ptx_cp_async", [f32(512), f32(64)]),
    Fault("commit forgotten", COPY, "    T.ptx_commit_group()\n", "", "async", "B[tx * 8:tx * 8 + 8]", "T.ptx_cp_async",
          [f16(512), f16(512)]),
    Fault("copy seen without a barrier", COPY, SYNC, "", "race", "B[tx * 8:tx * 8 + 8]", "T.ptx_cp_async",
          [f16(512), f16(512)]),
    Fault("stage reused before it is consumed", TWO_STAGES, "63 - tx]\n        T.tvm_storage_sync(\"shared\")", "63 - tx]",
          "race", "T.ptx_cp_async", "S[k % 2 * 64 + 63 - tx]", [f32(512), f32(64)]),
    Fault("pipeline one stage short", TWO_STAGES, "S[(k + 1) % 2 * 64 + tx]", "S[k % 2 * 64 + tx]", "async",
          "T.ptx_cp_async", "", [f32(512), f32(64)]),
    Fault("misaligned copy", COPY, "A[tx * 8]", "A[tx * 8 + 1]", "alignment", "T.ptx_cp_async", "", [f16(512), f16(512)]),
    Fault("swizzle that leaves holes", SWIZZLED, "S[i * 32 + T.bitwise_xor(tx, i)]", "S[i * 32 + T.bitwise_or(tx, i)]", "race",
          "(tx | i)]", "(tx | i)]", [f32(1024), f32(1024)]),
    Fault("swizzle past its row", SWIZZLED, "T.bitwise_xor(tx, i)]", "T.bitwise_xor(tx, i * 2)]", "bounds",
          "(tx ^ i * 2)", "", [f32(1024), f32(1024)]),
    Fault("ldmatrix row of the wrong half", LDMATRIX, "tx % 16 * 16 + tx // 16 * 8", "tx % 16 * 16 + tx // 8 * 8", "bounds",
          "T.ptx_ldmatrix(T.bool(False)", "", [f16(256), f16(128), np.zeros(128, "float32")]),
    Fault("ldmatrix of an address that is no row", LDMATRIX, "tx % 16 * 16 + tx // 16 * 8", "tx % 16 * 12 + tx // 16 * 8",
          "alignment", "T.ptx_ldmatrix(T.bool(False)", "", [f16(256), f16(128), np.zeros(128, "float32")]),
    Fault("ldmatrix without the barrier", LDMATRIX, SYNC, "", "race", "T.ptx_ldmatrix(T.bool(False)", "As[tx * 8",
          [f16(256), f16(128), np.zeros(128, "float32")]),
    Fault("mma of registers never loaded", LDMATRIX, "True, 2,", "True, 1,", "uninitialised", "T.ptx_mma", "",
          [f16(256), f16(128), np.zeros(128, "float32")]),
    Fault("mma by half a warp", LDMATRIX, "    T.ptx_mma", "    if tx < 16:\n        T.ptx_mma", "warp", "T.ptx_mma", "T.ptx_mma",
          [f16(256), f16(128), np.zeros(128, "float32")]),
    Fault("mma in a block of half a warp", LDMATRIX, '"threadIdx.x", 32', '"threadIdx.x", 16', "warp", "T.ptx_mma", "",
          [f16(256), f16(128), np.zeros(128, "float32")]),
    Fault("wmma in a block of half a warp", WMMA, '"threadIdx.x", 32', '"threadIdx.x", 16', "warp", "T.tvm_mma_sync", "", TENSOR),
    Fault("wmma of a fragment never filled", WMMA,
          "    T.tvm_fill_fragment(c_data, 16, 16, 16, 0, T.float32(0), dtype=\"handle\")\n", "", "uninitialised",
          "T.tvm_mma_sync", "", TENSOR),
    Fault("wmma load without the barrier", WMMA, SYNC, "", "race", "T.tvm_load_matrix_sync(a_data", "S[tx * 8", TENSOR),
    Fault("wmma stride that is no multiple of 16 bytes", WMMA, "T.address_of(S[0]), 16", "T.address_of(S[0]), 12", "alignment",
          "T.tvm_load_matrix_sync(a_data", "", TENSOR),
    Fault("wmma store past the end", WMMA, "T.address_of(C[0]), 16", "T.address_of(C[0]), 24", "bounds", "T.tvm_store_matrix_sync",
          "", TENSOR),
    Fault("fragment index past the end", WMMA, "c_data, 0, dtype", "c_data, 1, dtype", "bounds", "T.tvm_mma_sync", "", TENSOR),
    Fault("division by a thread's zero", DIVIDED, "(tx + 1)", "(tx + 0)", "division", "// tx", "",
          [np.arange(64, dtype="int32"), np.zeros(64, "int32")]),
]  # fmt: skip

GOOD = {f.good: f for f in FAULTS}


def plain(text: str) -> str:
    """Text without what printing may change: blanks and the spelling of operators and constants."""
    for long, short in (("T.bool(False)", "False"), (" ", "")):
        text = text.replace(long, short)
    return text


def copies(args: Any) -> list[np.ndarray]:
    return [a.copy() for a in args]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("good", list(GOOD), ids=lambda text: text.split("(")[0].split()[-1])
def test_the_kernels_without_fault_are_clean(good: str, order: str):
    args = copies(GOOD[good].args)
    report = simulate(parse(good), args, order=order, seed=3, strict=False)
    assert report.ok, str(report)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_fault_is_reported_at_its_line(fault: Fault):
    assert fault.good.count(fault.right) >= 1
    text = fault.good.replace(fault.right, fault.wrong, 1)
    assert text != fault.good
    kernel = parse(text)
    for order in ORDERS:
        with pytest.raises(SimulationError) as raised:
            simulate(kernel, copies(fault.args), order=order, seed=1)
        report = raised.value.report
        listing = [plain(line) for line in kernel.script().splitlines()]
        matching = [f for f in report.findings if f.kind == fault.kind and plain(fault.at) in listing[f.line - 1]]
        assert matching, f"{order}: no {fault.kind} at {fault.at!r} in\n{raised.value}"
        if fault.other:
            found = [f for f in matching if any(plain(fault.other) in listing[n - 1] for n in f.lines[1:])]
            assert found, f"{order}: no second access at {fault.other!r} in\n{raised.value}"
        assert matching[0].accesses[0].thread is not None
        for access in matching[0].accesses:  # both of them, each with its thread and its place
            assert f"thread {access.thread}" in str(raised.value)
            assert f"line {access.site.line}" in str(raised.value)


def test_there_are_enough_faults():
    assert len(FAULTS) >= 25 and len({f.name for f in FAULTS}) == len(FAULTS)


# ---------------------------------------------------------------- faults in what the passes make


@T.prim_func
def matmul(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def tiled(scope: str, stage: int, asynchronous: bool) -> tir.PrimFunc:
    """A tiled product with copies in shared memory, ``stage`` steps ahead of their use."""
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    i0, i1, i2 = sch.split(i, [None, 8, 2])
    j0, j1, j2 = sch.split(j, [None, 8, 2])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
        sch.bind(loop, axis)
    sch.reverse_compute_at(sch.cache_write("C", 0, "local"), j1)
    for read in (0, 1):
        copy = sch.cache_read("C", read, scope)
        sch.compute_at(copy, k0)
        _, ty, tx = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 8, 8])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
    sch.decompose_reduction("C", k0)
    if stage:
        sch.annotate(k0, "software_pipeline_stage", [0, 0, stage])
        sch.annotate(k0, "software_pipeline_order", [0, 1, 2])
        if asynchronous:
            sch.annotate(k0, "software_pipeline_async_stages", [0])
    return tir.build(sch.mod, target="cuda-sim").kernels["main_kernel"]


ORDERING = ("tvm_storage_sync", "ptx_wait_group", "ptx_commit_group")


@pytest.mark.parametrize(
    ("scope", "stage", "asynchronous"),
    [
        ("shared", 0, False),
        ("shared", 1, False),
        ("shared", 1, True),
        ("shared.dyn", 2, True),
    ],
)
def test_every_barrier_and_wait_that_lowering_puts_is_needed(scope: str, stage: int, asynchronous: bool):
    kernel = tiled(scope, stage, asynchronous)
    r = np.random.default_rng(0)
    a, b = (r.integers(-3, 4, (32, 32)).astype("float32") for _ in range(2))
    c = np.zeros((32, 32), "float32")
    assert simulate(kernel, [a, b, c]).ok
    np.testing.assert_array_equal(c, a @ b)
    found = [
        n for n in walk(kernel.body) if isinstance(n, Evaluate) and isinstance(n.value, Call) and n.value.op in ORDERING
    ]
    assert len(found) >= 2
    for one in found:
        without = kernel.with_body(rewrite(kernel.body, lambda n, one=one: NOP if n is one else None))
        report = simulate(without, [a, b, c], strict=False)
        assert {f.kind for f in report.findings} & {"race", "async"}, f"without `{one!r}`:\n{kernel}"


def test_memory_that_holds_no_whole_number_of_elements():
    module = tir.script.parse("""
@I.ir_module
class Module:
    @T.prim_func
    def set(A: T.Buffer((1,), "int64")):
        A[0] = T.int64(7)

    @T.prim_func
    def main(A: T.Buffer((3,), "int32")):
        Module.set(A.data)
""")
    with pytest.raises(tir.RunError, match="buffer `A` of int64 does not fit: its memory has 12 bytes"):
        tir.build(module, "cuda-sim")["main"](np.zeros(3, "int32"))
