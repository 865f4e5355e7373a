"""What threads of a kernel can see of each other's work: steps that would have one read what another has are refused,
with the two."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import on_simulator, refused, schedule

import tir
from tir.script import parse

CHAIN = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.if_then_else(vi > 0, B[vi - 1], T.float32(0)) + A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * T.float32(2)
"""


@pytest.mark.parametrize("private", [False, True])
def test_blocks_do_not_wait_for_each_other(private):
    """Whatever else the loop of the blocks holds: B[2] needs B[1], which another block makes."""
    sch = schedule(CHAIN)
    i0, i1 = sch.split(sch.get_loops("C")[0], [None, 2])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    if private:
        sch.reverse_compute_at(sch.cache_write("C", 0, "local"), i1)
    refused(lambda: sch.compute_at("B", i0), "touch the same element", "B[")


PAIR = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    B = T.alloc_buffer((64,), "float32", scope="{scope}")
    for i in range(2):
        for j in range(32):
            with T.block("B"):
                vi = T.axis.spatial(64, i * 32 + j)
                B[vi] = A[vi] * T.float32(2)
        for j in range(32):
            with T.block("C"):
                vi = T.axis.spatial(64, i * 32 + j)
                C[vi] = B[{index}] + T.float32(1)
"""
SAME, TURNED = "vi", "vi // 32 * 32 + 31 - vi % 32"


def pair(scope: str, index: str) -> tir.Schedule:
    sch = schedule(PAIR.format(scope=scope, index=index))
    sch.bind("i", "blockIdx.x")
    sch.bind(sch.get_loops("B")[1], "threadIdx.x")
    return sch


def runs(sch: tir.Schedule) -> None:
    module = tir.build(sch.mod, target="cuda-sim")
    rng = np.random.default_rng(0)
    func = sch.mod["main"]
    args = [rng.standard_normal([int(s) for s in func.buffer_map[p].shape]).astype("float32") for p in func.params]
    want = [a.copy() for a in args]
    tir.interp.run(sch.history[0].mod["main"], *want)
    for order in ("forward", "reverse", "random"):
        module.order = order
        module(*args)
        for a, b in zip(args, want):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("scope", "index"), [("shared", SAME), ("shared", TURNED), ("local", SAME)])
def test_sibling_thread_loops_may_share(scope, index):
    sch = pair(scope, index)
    sch.bind(sch.get_loops("C")[1], "threadIdx.x")
    runs(sch)


def test_a_thread_reads_only_its_own_registers():
    sch = pair("local", TURNED)
    refused(
        lambda: sch.bind(sch.get_loops("C")[1], "threadIdx.x"),
        "`B` (local memory) would be read by another thread",
        "C at (i=0, j=31) reads B[0]",
        "B at (i=0, j=0) writes B[0]",
        "the scope shared",
    )
    crossed = schedule(PAIR.format(scope="shared", index=TURNED))
    crossed.bind("i", "blockIdx.x")
    crossed.bind(crossed.get_loops("C")[1], "threadIdx.x")
    crossed.bind(crossed.get_loops("B")[1], "threadIdx.x")
    refused(lambda: crossed.set_scope("B", 0, "local"), "`B` (local memory) would be read by another thread")


def test_a_loop_that_stays_unbound_reads_for_all_threads():
    """Only the first thread's stores of C would count, and it has B[0] alone. A later step may still bind it."""
    sch = pair("local", SAME)
    with pytest.raises(tir.BuildError, match="main: `B`.*would be read by another thread(.|\n)*C at"):
        tir.lower(sch.mod, target="cuda")


def test_blocks_share_no_shared_memory():
    sch = schedule(PAIR.format(scope="shared", index="63 - vi"))
    refused(lambda: sch.bind("i", "blockIdx.x"), "C at")


@pytest.mark.parametrize("index", ["vi", "7 - vi"])
def test_two_loops_of_blocks_in_one_kernel(index):
    """The loop of threads around makes them one kernel, in which nothing orders blocks."""
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    for t in range(4):
        for i in range(8):
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vt, vi] = A[vt, vi] * T.float32(2)
        for i in range(8):
            with T.block("C"):
                vt, vi = T.axis.remap("SS", [t, i])
                C[vt, vi] = B[vt, {index}] + T.float32(1)
"""
    sch = schedule(text.format(index=index))
    sch.bind("t", "threadIdx.x")
    refused(lambda: sch.bind("B.i", "blockIdx.x"), "whose blocks are not ordered", "fission loop t")
    sch = schedule(text.format(index=index))
    sch.fission("t", 1)
    for block in "BC":
        sch.bind(sch.get_loops(block)[1], "blockIdx.x")
    runs(sch)


def test_kernels_share_global_memory_only():
    sch = schedule(PAIR.format(scope="global", index=SAME))
    sch.fission("i", 1)
    sch.bind(sch.get_loops("B")[0], "blockIdx.x")
    sch.bind(sch.get_loops("C")[0], "blockIdx.x")
    refused(
        lambda: sch.set_scope("B", 0, "shared"),
        "`B` (shared memory) would be used by two kernels",
        "B writes it in the kernel of loop",
        "compute_at",
    )


def test_unsafe_is_not_asked():
    sch = pair("local", TURNED)
    sch.bind(sch.get_loops("C")[1], "threadIdx.x", unsafe=True)
    sch.annotate("C", "note", 1)  # later steps are not refused for it


@pytest.mark.parametrize("n", [1, 5, 12])
def test_more_threads_than_elements(n):
    """The copy from registers is left out by the threads that made nothing, as what made it is."""
    sch = schedule(f"""
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), C: T.Buffer(({n},), "float32")):
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = A[vi] * T.float32(2)
""")
    outer, inner = sch.split("i", [None, 8])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    sch.reverse_compute_at(sch.cache_write("C", 0, "local"), inner)
    runs(sch)


def test_elements_of_fragments_are_left_to_intrinsics():
    sch = schedule(PAIR.format(scope="wmma.accumulator", index=SAME))
    sch.bind("i", "blockIdx.x")
    with pytest.raises(tir.BuildError, match="block `B` accesses an element of `B` in wmma.accumulator.*tensorize"):
        tir.lower(sch.mod, target="cuda")


SOFTMAX = """
@T.prim_func
def main(A: T.Buffer((3, 70), "float32"), C: T.Buffer((3, 70), "float32")):
    L = T.alloc_buffer((3, 70), "float32", scope="local")
    M = T.alloc_buffer((3,), "float32", scope="{scope}")
    S = T.alloc_buffer((3,), "float32", scope="{scope}")
    for i in range(3):
        for k in range(70):
            with T.block("L"):
                vi, vk = T.axis.remap("SS", [i, k])
                L[vi, vk] = A[vi, vk]
        for k in range(70):
            with T.block("M"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    M[vi] = T.min_value("float32")
                M[vi] = T.max(M[vi], L[vi, vk])
        for k in range(70):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + T.exp(L[vi, vk] - M[vi])
        for k in range(70):
            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi, vk] = T.exp(L[vi, vk] - M[vi]) / S[vi]
"""


@pytest.mark.parametrize("scope", ["local", "shared"])
def test_threads_keep_their_part_of_a_row_across_reductions(scope):
    """A reduction that threads share reads the registers of each; all threads get its result."""
    sch = schedule(SOFTMAX.format(scope=scope))
    sch.bind("i", "blockIdx.x")
    for name in "LMSC":
        _, tx = sch.split(sch.get_loops(name)[1], [None, 32])
        sch.bind(tx, "threadIdx.x")
    runs(sch)


def test_a_reduction_by_other_threads_than_have_the_values():
    sch = schedule(SOFTMAX.format(scope="shared"))
    threads = {name: sch.split(sch.get_loops(name)[1], [None, 32])[1] for name in "LSC"}
    sch.bind(threads["L"], "threadIdx.x")
    refused(lambda: sch.bind(threads["S"], "threadIdx.x"), "used by two kernels", 'bind("i", "blockIdx.x") before')
    sch.bind("i", "blockIdx.x")
    sch.bind(threads["S"], "threadIdx.x")
    sch.bind(threads["C"], "threadIdx.x")
    outer, _ = sch.split(sch.get_loops("M")[1], [32, None])
    refused(
        lambda: sch.bind(outer, "threadIdx.x"), "`L` (local memory) would be read by another thread", "M at", "L at"
    )


def test_memory_of_a_launch_goes_to_the_launch():
    """A kernel written with launches, whose shared memory is allocated in the dialect's way."""
    func = parse("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.alloc_buffer((32,), "float32", scope="shared")
    R = T.alloc_buffer((1,), "float32", scope="local")
    S[tx] = A[bx * 32 + tx]
    T.evaluate(T.tvm_storage_sync("shared"))
    R[0] = S[31 - tx]
    B[bx * 32 + tx] = R[0]
""")
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    tir.build(func, "cuda-sim")(a, b)
    assert b.reshape(2, 32).tolist() == a.reshape(2, 32)[:, ::-1].tolist()


def test_threads_of_a_tile_may_be_bound_before_its_blocks():
    """Until the loop of blocks is bound the threads are two kernels, which have no block that could lack the tile."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    S = T.alloc_buffer((4, 64), "float32", scope="shared")
    for b in range(4):
        for i in range(64):
            with T.block("S"):
                vb, vi = T.axis.remap("SS", [b, i])
                S[vb, vi] = A[vb, vi]
        for i in range(64):
            with T.block("B"):
                vb, vi = T.axis.remap("SS", [b, i])
                B[vb, vi] = S[vb, 63 - vi]
""")
    block, _ = sch.get_loops("S")
    for name in "SB":
        sch.bind(sch.get_loops(name)[1], "threadIdx.x")
    sch.bind(block, "blockIdx.x")
    on_simulator(sch)


NESTED_AXES = """
@T.prim_func
def main(A: T.Buffer((2, 8), "float32"), C: T.Buffer((2, 8), "float32")):
    B = T.alloc_buffer((2, 8), "float32")
    for o in range(2):
        with T.block("tile"):
            vo = T.axis.spatial(2, o)
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    vj = T.axis.spatial(8, j)
                    B[vo, vj] = A[vo, vj]
    for x in T.thread_binding(2, thread="threadIdx.x"):
        for y in range(8):
            with T.block("C"):
                vx, vy = T.axis.remap("SS", [x, y])
                C[vx, vy] = B[vx, vy] + T.float32(1)
"""


def test_a_block_that_has_threads_moves_into_no_others_of_their_axis():
    """A refusal that names both loops, not a fault of the step."""
    rule = "loop j would be in loop x, which is bound to threadIdx.x too"
    refused(lambda: schedule(NESTED_AXES).compute_at("tile", "x"), rule)


def test_two_kernels_that_only_read_are_no_evidence_until_the_writer_is_in_one():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), O: T.Buffer((8,), "int32"), P: T.Buffer((8,), "int32")):
    S = T.alloc_buffer((8,), "int32", scope="local")
    for k in range(8):
        with T.block("S"):
            vk = T.axis.spatial(8, k)
            S[vk] = A[vk]
    for i in range(8):
        with T.block("O"):
            vi = T.axis.spatial(8, i)
            O[vi] = S[vi]
    for j in range(8):
        with T.block("P"):
            vj = T.axis.spatial(8, j)
            P[vj] = S[vj]
"""
    )
    sch.bind("i", "threadIdx.x")
    sch.bind("j", "threadIdx.x")
    refused(
        lambda: sch.compute_at("S", "i"), "`S` (local memory) would be used by two kernels", "S writes it in the kernel"
    )
