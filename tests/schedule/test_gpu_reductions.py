"""Reductions across the threads of a GPU, judged by the executor and the simulator."""

from __future__ import annotations

import re

import numpy as np
import pytest
from prim_checks import on_simulator, refused, same, schedule

import tir

ROWS = """
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "float32"), B: T.Buffer(({m},), "float32")):
    for i, k in T.grid({m}, {n}):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = {start}
            B[vi] = {update}
"""

SUM = {"start": "T.float32(0)", "update": "B[vi] + A[vi, vk]"}

REDUCERS = [
    SUM,
    {"start": "T.float32(1)", "update": "B[vi] * A[vi, vk]"},
    {"start": "T.min_value('float32')", "update": "T.max(B[vi], A[vi, vk])"},
    {"start": "T.max_value('float32')", "update": "T.min(A[vi, vk], B[vi])"},
    {"start": "T.float32(3)", "update": "B[vi] + A[vi, vk] * A[vi, vk]"},
]


@pytest.mark.parametrize("reducer", REDUCERS, ids=["sum", "product", "max", "min", "from three"])
@pytest.mark.parametrize("threads", [8, 32, 96], ids=["part of a warp", "one warp", "three warps"])
def test_a_bound_reduction(reducer, threads):
    sch = schedule(ROWS.format(m=4, n=96, **reducer))
    sch.bind("i", "blockIdx.x")
    _, tx = sch.split("k", [None, threads])
    sch.bind(tx, "threadIdx.x")
    same(sch)
    on_simulator(sch, orders=("forward", "random"))


def test_a_bound_reduction_beside_other_threads_and_guarded():
    """Two rows on threadIdx.y, a row that the threads do not divide, the outer part of k on threads and the inner not."""
    for factors in ([None, 16], [16, None]):
        sch = schedule(ROWS.format(m=6, n=50, **SUM))
        bx, ty = sch.split("i", [None, 2])
        loops = sch.split("k", factors)
        sch.bind(bx, "blockIdx.x")
        sch.bind(ty, "threadIdx.y")
        sch.bind(loops[factors.index(16)], "threadIdx.x")
        same(sch)
        on_simulator(sch, orders=("forward", "reverse"))


def test_a_reduction_on_two_axes():
    sch = schedule(ROWS.format(m=3, n=64, **SUM))
    sch.bind("i", "blockIdx.x")
    ty, tx = sch.split("k", [4, 16])
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    same(sch)
    on_simulator(sch, orders=("forward", "random"))


def test_an_argmax_across_threads():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), P: T.Buffer((4,), "int32"), V: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 64):
        with T.block("best"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                P[vi] = -1
                V[vi] = T.min_value("float32")
            p: T.int32 = T.Select(V[vi] >= A[vi, vk], P[vi], vk)
            v: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            P[vi] = p
            V[vi] = v
""")
    sch.bind("i", "blockIdx.x")
    sch.bind("k", "threadIdx.x")
    same(sch)
    on_simulator(sch, orders=("forward", "reverse"))


def test_a_loop_of_elements_and_of_their_reductions():
    """Threads that share B[0] would not be done with it when the loop goes on to B[1]."""
    sch = schedule(ROWS.format(m=2, n=8, **SUM))
    outer, inner = sch.split(sch.fuse(*sch.get_loops("B")), [None, 4])
    refused(lambda: sch.bind(inner, "threadIdx.x"), "reduce across the threads of loop", "indexes both the result")
    late = schedule(ROWS.format(m=2, n=8, **SUM))
    i, k = late.get_loops("B")
    outer, inner = late.split(k, [None, 4])
    late.bind(inner, "threadIdx.x")
    late.fuse(i, outer)
    with pytest.raises(tir.BuildError, match="block `B` reduces across threads, but loop .* indexes both"):
        tir.lower(late.mod, target="cuda")


def test_factored_and_bound():
    sch = schedule(ROWS.format(m=4, n=128, **SUM))
    _, ki = sch.split("k", [None, 32])
    part = sch.rfactor(ki, factor_axis=1)
    sch.set_scope(part, 0, "local")
    i, kf = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.bind(kf, "threadIdx.x")
    sch.compute_at(part, kf)
    same(sch)
    on_simulator(sch)


def test_what_threads_cannot_reduce():
    order = {"start": "T.float32(0)", "update": "B[vi] * T.float32(0.5) + A[vi, vk]"}
    sch = schedule(ROWS.format(m=4, n=32, **order))
    refused(lambda: sch.bind("k", "threadIdx.x"), "bound to threads", "B[")
    plain = schedule(ROWS.format(m=4, n=32, **SUM))
    refused(lambda: plain.bind("k", "blockIdx.x"), "same element", "rfactor")
    refused(lambda: plain.bind("k", "vthread"), "same element")


GEMV = """
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), X: T.Buffer((64,), "float32"), Y: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 64):
        with T.block("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + A[vi, vk] * X[vk]
"""


def gemv(order: str, inner: int = 16) -> tir.Schedule:
    """Two rows on threadIdx.y (``r``, or serial where that is not in ``order``), a tile of X in shared memory for each
    step of k."""
    sch = schedule(GEMV)
    i, k = sch.get_loops("Y")
    loops = dict(zip("br", sch.split(i, [None, 2])))
    loops.update(zip("ot", sch.split(k, [None, inner])))
    sch.reorder(*(loops[c] for c in order.lower()))
    sch.bind(loops["b"], "blockIdx.x")
    if "r" in order:
        sch.bind(loops["r"], "threadIdx.y")
    sch.bind(loops["t"], "threadIdx.x")
    copy = sch.cache_read("Y", 1, "shared")
    sch.compute_at(copy, loops["o"])
    sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")
    return sch


@pytest.mark.parametrize("order", ["brot", "bort", "boRt", "brto"])
@pytest.mark.parametrize("note", [False, True], ids=["", "pipelined"])
def test_threads_reduce_beside_a_tile_they_load(order, note):
    """Threads inside and outside the serial loop of the reduction; R: two sums for each thread."""
    sch = gemv(order)
    if note:
        serial = next(ref for ref in sch.get_loops("Y") if ref.name == "k_0")
        sch.annotate(serial, "software_pipeline_stage", [0, 1])
        sch.annotate(serial, "software_pipeline_order", [0, 1])
    same(sch)
    on_simulator(sch, orders=("reverse", "warp_interleaved"))


def test_threads_reduce_several_warps_beside_a_tile_and_with_the_init_apart():
    sch = gemv("brot", inner=64)
    on_simulator(sch, orders=("reverse", "random"))
    sch = gemv("brot", inner=48)
    sch.decompose_reduction("Y", "k_0")
    same(sch)
    on_simulator(sch, orders=("reverse", "random"))


MOMENTS = """
@T.prim_func
def main(A: T.Buffer((2, 96), "float32"), B: T.Buffer((2, 96), "float32")):
    S = T.alloc_buffer((2,), "float32", scope="{scope}")
    Q = T.alloc_buffer((2,), "float32", scope="{scope}")
    for i in range(2):
        for k in range(96):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
            with T.block("Q"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Q[vi] = T.float32(0)
                Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]
        for k in range(96):
            with T.block("B"):
                vi, vk = T.axis.remap("SS", [i, k])
                B[vi, vk] = (A[vi, vk] - S[vi] / 96.0) * T.rsqrt(Q[vi] / 96.0 - S[vi] / 96.0 * (S[vi] / 96.0) + 1e-5)
"""


@pytest.mark.parametrize("scope", ["local", "shared"])
@pytest.mark.parametrize("threads", [8, 64])
def test_two_reductions_in_one_loop(scope, threads):
    """A layer norm that reads its row once: both sums in one loop, and all threads use both."""
    sch = schedule(MOMENTS.format(scope=scope))
    sch.bind("i", "blockIdx.x")
    for name in "SB":
        sch.bind(sch.split(sch.get_loops(name)[1], [None, threads])[1], "threadIdx.x")
    same(sch)
    on_simulator(sch, orders=("reverse", "random"), rtol=1e-3)


CONDITIONAL = """
@T.prim_func
def main(A: T.Buffer((8, {n}), "float32"), Y: T.Buffer((8,), "float32")):
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for r in T.thread_binding(4, thread="threadIdx.y"):
            for k in T.thread_binding({n}, thread="threadIdx.x"):
                if {condition}:
                    with T.block("Y"):
                        vi = T.axis.spatial(8, i * 4 + r)
                        vk = T.axis.reduce({n}, k)
                        with T.init():
                            Y[vi] = T.float32(0)
                        Y[vi] = Y[vi] + A[vi, vk]
"""


@pytest.mark.parametrize("n", [8, 20, 32, 64])
@pytest.mark.parametrize("condition", ["r < 3", "A[i, 0] > 0.0"])
def test_groups_of_threads_that_do_not_all_reduce(condition, n):
    """Shuffles name only lanes that get there: three groups of eight, of the four in a warp."""
    on_simulator(schedule(CONDITIONAL.format(n=n, condition=condition)), orders=("reverse", "warp_interleaved"))


def test_threads_that_do_not_all_get_to_their_reduction():
    sch = schedule(CONDITIONAL.format(n=8, condition="k < 3"))
    with pytest.raises(tir.BuildError, match=r"divergent condition `k < 3`(.|\n)*predicate of the block"):
        tir.lower(sch.mod, target="cuda")


@pytest.mark.parametrize("threads, masks", [(8, {"255"}), (32, {"4294967295"}), (40, {"255", "4294967295"})])
def test_shuffles_name_the_lanes_that_are_there(threads, masks):
    sch = schedule(ROWS.format(m=2, n=threads * 2, **SUM))
    sch.bind("i", "blockIdx.x")
    sch.bind(sch.split("k", [None, threads])[1], "threadIdx.x")
    text = tir.lower(sch.mod, target="cuda").script()
    assert "activemask" not in text and set(re.findall(r"uint32\((\d+)\)", text)) == masks
    on_simulator(sch, orders=("forward", "warp_interleaved"))


def test_a_result_that_is_used_before_it_is_complete():
    running = schedule("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32"), C: T.Buffer((64,), "float32")):
    for k in range(64):
        with T.block("B"):
            vk = T.axis.reduce(64, k)
            with T.init():
                B[0] = T.float32(0)
            B[0] = B[0] + A[vk]
        with T.block("C"):
            vk = T.axis.spatial(64, k)
            C[vk] = B[0]
""")
    outer, inner = running.split("k", [2, 32])
    refused(
        lambda: running.bind(inner, "threadIdx.x"),
        "block `B` would reduce across the threads of loop `k_1`",
        "`C` uses B inside loop `k_0`, before all threads' parts are combined",
    )
    running.bind(inner, "threadIdx.x", unsafe=True)
    with pytest.raises(tir.BuildError, match=r"uses `B` before all threads' parts are combined"):
        tir.lower(running.mod, target="cuda")


def test_the_init_of_what_threads_share_is_before_their_loops():
    sch = schedule(ROWS.format(m=2, n=32, **SUM))
    sch.bind("i", "blockIdx.x")
    outer, inner = sch.split("k", [None, 8])
    sch.bind(inner, "threadIdx.x")
    refused(
        lambda: sch.decompose_reduction("B", inner),
        "reduces across the threads of loop `k_1` (threadIdx.x)",
        "its init, before loop `k_1`, would run between them",
        "legal: the loop k_0, or one around it",
    )
    sch.decompose_reduction("B", outer)
    on_simulator(sch)


def test_threads_of_no_kernel_reduce_beside_a_tile():
    sch = schedule(GEMV)
    _, inner = sch.split("k", [None, 16])
    sch.bind(inner, "threadIdx.x")
    sch.compute_at(sch.cache_read("Y", 1, "global"), "k_0")
    with pytest.raises(tir.BuildError, match=r"all thread loops are inside it; bind a loop around it to blockIdx\.x"):
        tir.lower(sch.mod, target="cuda")


SOME = """
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer(({size},), "int32")):
    for i, k in T.grid(4, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("{kinds}", [i, k])
            {where}
            if {condition}:
                C[{element}] = C[{element}] + A[vi, vk]
"""


@pytest.mark.parametrize("axis", ["blockIdx.x", "threadIdx.y", "vthread"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("condition", ["vi == 2", "vi == 2 and vk > 0"])
def test_a_result_that_one_iteration_updates_is_stored_by_that_one(axis, reverse, condition):
    """The result of an update under a condition is stored under it; the other blocks would store it as it was."""
    sch = schedule(SOME.format(size=1, kinds="SR", where="T.where(True)", condition=condition, element="0"))
    for loop, thread in [("i", axis), ("k", "threadIdx.x")][:: -1 if reverse else 1]:
        sch.bind(loop, thread)
    on_simulator(sch)


@pytest.mark.parametrize("axis", ["blockIdx.x", "threadIdx.y", "vthread"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_result_that_every_block_would_store(axis, reverse):
    """One of the iterations on ``axis`` updates; which one it is depends on the loop that threads reduce."""
    sch = schedule(SOME.format(size=1, kinds="SR", where="T.where(i * 4 + k == 5)", condition="vi >= 0", element="0"))
    steps = [("i", axis), ("k", "threadIdx.x")][:: -1 if reverse else 1]
    sch.bind(*steps[0])
    if axis == "vthread":  # the iterations of one thread store in turn
        sch.bind(*steps[1])
        on_simulator(sch)
        return
    refused(lambda: sch.bind(*steps[1]), f"every iteration of loop `i` ({axis}) would store the result of the one")
    own = schedule(SOME.format(size=4, kinds="SR", where="T.where(i * 4 + k == 5)", condition="vi >= 0", element="vi"))
    own.bind("i", axis)
    own.bind("k", "threadIdx.x")
    on_simulator(own)


@pytest.mark.parametrize("init", ["", "with T.init():\n                C[0] = 0"])
@pytest.mark.parametrize("axis", ["blockIdx.x", "vthread"])
def test_a_reduction_that_one_block_makes(axis, init):
    """The reduction loop on ``axis`` has one iteration that does anything; the others would store a result, too."""
    text = SOME.format(
        size=1, kinds="RR", where=f"T.where(i == 0)\n            {init}", condition="vi >= 0", element="0"
    )
    sch = schedule(text)
    sch.bind("i", axis)
    refused(lambda: sch.bind("k", "threadIdx.x"), f"every iteration of loop `i` ({axis}) would store the result")
    sch = schedule(text)
    sch.bind("k", "threadIdx.x")
    refused(lambda: sch.bind("i", axis), f"every iteration of loop `i` ({axis}) would store the result")
    sch.bind("i", "threadIdx.y")
    on_simulator(sch)


@pytest.mark.parametrize("threads", [4, 40, 96])
def test_virtual_threads_around_a_reduction_across_threads(threads):
    """Each virtual thread has a result of its own; the all-reduce is made once for each."""
    sch = schedule(ROWS.format(m=6, n=2 * threads, **SUM))
    outer, inner = sch.split("i", [None, 3])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "vthread.x")
    sch.bind(sch.split("k", [None, threads])[1], "threadIdx.x")
    on_simulator(sch)


PLACED = """
@T.prim_func
def main(at: T.Buffer((2,), "int32"), O: T.Buffer((4,), "int32")):
    for i, k in T.grid(2, 2):
        with T.block("scatter"):
            vi = T.axis.reduce(2, i)
            T.where(k < 1)
            O[{place}] = O[{place}] + 1
"""


@pytest.mark.parametrize("place", ["at[vi] % 4", "vi * 2"])
def test_places_that_a_reduction_iterator_chooses(place):
    """One thread does anything: it stores each result where its iteration says, and nothing is combined."""
    sch = schedule(PLACED.format(place=place).replace("reduce(2, i)", "reduce(2, i + k * 2)"))
    sch.bind("k", "threadIdx.x")
    same(sch)
    on_simulator(sch)


def test_threads_that_would_store_to_places_of_their_own_are_refused():
    """Bound by text: two threads may update one place, and nothing combines what they make."""
    text = PLACED.format(place="at[vi] % 4")
    text = text.replace("for i, k in T.grid(2, 2):", 'for i in T.thread_binding(2, thread="threadIdx.x"):')
    func = tir.script.parse(text.replace("            T.where(k < 1)\n", ""))
    with pytest.raises(tir.BuildError, match="to places or from values that its reduction iterators choose"):
        tir.build(func, "cuda-sim")
    with pytest.raises(tir.RunError, match="race"):
        tir.interp.run(func, np.zeros(2, "int32"), np.zeros(4, "int32"))


def test_an_epilogue_would_read_the_result_before_threads_combine_it():
    """The copy of the result, done by the thread of the last iteration, is one of the reduction's statements."""
    sch = schedule(ROWS.format(m=1, n=3, **SUM))
    sch.bind("k", "threadIdx.x")
    copy = sch.cache_write("B", 0, "global")
    refused(lambda: sch.reverse_compute_inline(copy), "loop `k` cannot be bound to threads")


def test_a_reduction_in_registers_under_a_single_block():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((2,), "int32"), B: T.Buffer((1,), "int32")):
    S = T.alloc_buffer((1,), "int32")
    for k in range(1):
        with T.block("S"):
            vk = T.axis.reduce(1, k)
            T.reads(A[0:2])
            T.writes(S[0], B[0])
            with T.init():
                S[0] = 2147483647
                B[0] = -2147483648
            s: T.int32 = T.Select(B[0] > A[vk] or B[0] == A[vk] and S[0] < vk, S[0], vk)
            b: T.int32 = T.Select(B[0] > A[vk] or B[0] == A[vk] and S[0] < vk, B[0], A[vk])
            S[0] = s
            B[0] = b
""")
    sch.set_scope("S", 0, "local")
    outer, inner = sch.split("k", [None, 8])
    sch.bind(outer, "blockIdx.y")
    sch.bind(inner, "threadIdx.x")
    on_simulator(sch)


def test_results_of_a_shared_reduction_stay_at_one_place():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((1, 8), "int32"), B: T.Buffer((1,), "int32")):
    least = T.alloc_buffer((1,), "int32")
    for i, k in T.grid(1, 8):
        with T.block("argmin"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi], least[vi])
            with T.init():
                B[vi] = -1
                least[vi] = 2147483647
            at: T.int32 = T.Select(least[vi] <= A[vi, vk], B[vi], vk)
            value: T.int32 = T.Select(least[vi] <= A[vi, vk], least[vi], A[vi, vk])
            B[vi] = at
            least[vi] = value
""")
    sch.bind("k", "threadIdx.y")
    refused(lambda: sch.transform_layout("argmin", "least", lambda i: (i // 4, i % 4)), "touch the same element")


def test_blocks_of_a_grid_inside_of_a_block_have_their_init():
    sch = schedule(ROWS.format(m=5, n=2, **SUM))
    sch.reorder("k", "i")
    sch.bind("i", "blockIdx.x")
    sch.blockize("i", preserve_unit_iters=True)
    same(sch)


def test_an_init_beside_a_grid_is_no_block_of_it():
    sch = schedule(ROWS.format(m=4, n=3, **SUM))
    sch.blockize("i", preserve_unit_iters=True)
    around = sch.add_unit_loop("B_o")
    sch.bind(around, "threadIdx.x")
    refused(lambda: sch.bind("B.i", "blockIdx.y"), "whose blocks are not ordered")


def test_an_init_stores_results_that_no_iteration_updates():
    """A condition inside of a block is about its updates alone."""
    sch = schedule(
        SOME.format(
            size=4, kinds="SR", where="with T.init():\n                C[vi] = 7", condition="vi < 2", element="vi"
        )
    )
    sch.bind("i", "blockIdx.x")
    sch.bind("k", "threadIdx.x")
    on_simulator(sch)


INIT_BY_STEP = """
@T.prim_func
def f(A: T.Buffer((5, 8), "int32"), W: T.Buffer((5, 8), "int32"), S: T.Buffer((5,), "int32")):
    for i in T.thread_binding(5, thread="blockIdx.x"):
        for k in {loop}:
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = W[vi, {place}]
                S[vi] = S[vi] - A[vi, vk]
"""


def test_threads_share_no_reduction_whose_start_its_steps_choose():
    """Each thread would start its part elsewhere, and the start is added after the loop over the steps."""
    sch = schedule(INIT_BY_STEP.format(loop="range(8)", place="vk"))
    refused(lambda: sch.bind("k", "threadIdx.x"), "loop `k` cannot be bound to threads")
    bound = INIT_BY_STEP.format(loop='T.thread_binding(8, thread="threadIdx.x")', place="vk")
    with pytest.raises(tir.BuildError, match="from values that its reduction iterators choose"):
        tir.build(schedule(bound).mod, "cuda-sim")


def test_a_copy_that_the_steps_choose_from_for_the_start_is_refused():
    """Each step of the reduction has a copy of its own of what the init reads, in the threads that share the steps."""
    sch = schedule(INIT_BY_STEP.format(loop="range(8)", place="0"))
    sch.bind("k", "threadIdx.x")
    on_simulator(sch)
    refused(lambda: sch.reindex_cache_read("S", 0, "global", lambda vi, vk: (vk, vi)), "S[")


def test_a_refusal_offers_no_step_on_a_block_that_it_did_not_make():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32", scope="local")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(64):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi] * 2.0
""")
    refusal = refused(lambda: sch.rfactor("k", 0), "`C_rf` (local memory) would be used by two kernels")
    assert refusal.legal == "rfactor before the loops are bound, or with global memory"
