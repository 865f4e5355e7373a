"""Schedules for GPUs: threads that load together, reductions across threads, limits; judged by the executor and the
simulator."""

from __future__ import annotations

import re

import numpy as np
import pytest
from prim_checks import refused, same, schedule

import tir
from tir.schedule.invariants.shared_memory import shared_buffers


def matmul(n: int) -> str:
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32"), C: T.Buffer(({n}, {n}), "float32")):
    for i, j, k in T.grid({n}, {n}, {n}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


MATMUL = matmul(16)
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
COPIES = """
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), B: T.Buffer(({n},), "float32")):
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] * 2.0
"""


def on_simulator(sch: tir.Schedule, orders=("forward", "random"), rtol=1e-4) -> None:
    """The lowered kernel gives the executor's results in every order of threads, and the simulator finds nothing."""
    from prim_checks import results

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


def tiled(sch: tir.Schedule):
    """The loops of C in tiles of 16 x 16, in steps of 8."""
    i, j, k = sch.get_loops("C")
    by, ty, yi = sch.split(i, [None, 4, 4])
    bx, tx, xi = sch.split(j, [None, 4, 4])
    ko, ki = sch.split(k, [None, 8])
    sch.reorder(by, bx, ty, tx, ko, ki, yi, xi)
    return by, bx, ty, tx, ko


def bind_tiles(sch, by, bx, ty, tx):
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        sch.bind(loop, axis)


def load_together(sch, copy):
    fused = sch.fuse(*sch.get_loops(copy)[-2:])
    _, fy, fx = sch.split(fused, [None, 4, 4])
    sch.bind(fy, "threadIdx.y")
    sch.bind(fx, "threadIdx.x")


# ---------------------------------------------------------------- loading together


def test_a_shared_tile_is_for_all_threads_and_a_local_one_for_each():
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    bind_tiles(sch, by, bx, ty, tx)
    shared, local = sch.cache_read("C", 0, "shared"), sch.cache_read("C", 1, "local")
    sch.compute_at(shared, ko)
    sch.compute_at(local, ko)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(shared)[-2:]] == [16, 8]
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(local)[-2:]] == [8, 4]
    load_together(sch, shared)
    same(sch)
    on_simulator(sch)


def test_a_warp_tile_is_for_the_lanes():
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    bind_tiles(sch, by, bx, ty, tx)
    copy = sch.cache_read("C", 1, "warp")
    sch.compute_at(copy, ko)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(copy)[-2:]] == [8, 16]


def test_axes_bound_after_the_copy_is_placed():
    """B's tile does not depend on threadIdx.y: binding that late gives the same program as binding it first."""
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (tx, "threadIdx.x")):
        sch.bind(loop, axis)
    copy = sch.cache_read("C", 1, "shared")
    sch.compute_at(copy, ko)
    load_together(sch, copy)
    sch.bind(ty, "threadIdx.y")
    same(sch)
    on_simulator(sch)


def test_a_tile_of_one_thread_is_not_loaded_by_all():
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    copy = sch.cache_read("C", 0, "shared")
    sch.compute_at(copy, ko)  # before the threads are bound: the rows of one thread
    bind_tiles(sch, by, bx, ty, tx)
    rows = sch.get_loops(copy)[-2]
    refused(
        lambda: sch.bind(rows, "threadIdx.y"),
        "threadIdx.y is already bound to loop `i_1` on the same path",
        "A_shared",
        "uses `i_1`",
        "compute_at after i_1 is bound",
    )
    on_simulator(sch)  # each thread has rows of its own


def test_a_local_tile_is_not_loaded_by_all():
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    bind_tiles(sch, by, bx, ty, tx)
    copy = sch.cache_read("C", 1, "local")
    sch.compute_at(copy, ko)
    _, row = sch.split(sch.get_loops(copy)[-2], [None, 4])
    refused(
        lambda: sch.bind(row, "threadIdx.y"),
        "is already bound to loop `i_1`",
        "uses B_local, which is each thread's own (local)",
        "shared and global memory",
    )


def test_tiles_that_do_not_divide():
    """The last loads of a tile of 9 x 16 elements by 4 x 4 threads are guarded."""
    sch = schedule(matmul(18))
    i, j, k = sch.get_loops("C")
    ty, yi = sch.split(i, [4, 5])
    tx, xi = sch.split(j, [4, 5])
    ko, ki = sch.split(k, [2, 9])
    sch.reorder(ty, tx, ko, ki, yi, xi)
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    for n in range(2):
        copy = sch.cache_read("C", n, "shared")
        sch.compute_at(copy, ko)
        load_together(sch, copy)
    same(sch)
    on_simulator(sch)


def test_sums_in_registers():
    """Each thread sums in registers of its own and stores its own part."""
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    bind_tiles(sch, by, bx, ty, tx)
    local = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(local, tx)
    same(sch)
    on_simulator(sch)
    refused(
        lambda: sch.bind(sch.get_loops(local)[-1], "threadIdx.x"),
        "already bound to loop `j_1`",
        "`C_local` below loop `ax1` uses `j_1`",
    )


# ---------------------------------------------------------------- limits


def test_an_axis_has_one_extent_in_a_kernel():
    two = """
@T.prim_func
def main(A: T.Buffer((1024, 4), "float32"), B: T.Buffer((1024, 4), "float32")):
    for b in range(1):
        for i0 in range(1024):
            with T.block("X"):
                vi = T.axis.spatial(1024, i0)
                A[vi, 0] = T.float32(1)
        for j in range(4):
            with T.block("Y"):
                vj = T.axis.spatial(4, j)
                B[0, vj] = T.float32(1)
"""
    sch = schedule(two)
    sch.bind("b", "blockIdx.x")
    sch.bind("i0", "blockIdx.y")
    refused(
        lambda: sch.bind("j", "blockIdx.y"),
        "blockIdx.y already has extent 1024 (loop `i0` of block X) in this kernel; loop `j` of block Y has 4",
        "split to match, or bind another axis",
    )


def test_threads_of_a_block():
    sch = schedule(COPIES.format(n=4096))
    outer, inner = sch.split("i", [2, 2048])
    refused(lambda: sch.bind(inner, "threadIdx.x"), "threadIdx product 2048 > 1024", "split loop i_1 by at most 1024")
    sch.bind(outer, "threadIdx.y")
    _, fewer = sch.split(inner, [None, 1024])
    refused(lambda: sch.bind(fewer, "threadIdx.x"), "threadIdx product 2048 > 1024: 1024 (threadIdx.x) x 2")
    little = schedule(COPIES.format(n=4096), target=tir.Target("cuda", max_threads_per_block=512))
    _, inner = little.split("i", [None, 1024])
    refused(lambda: little.bind(inner, "threadIdx.x"), "threadIdx product 1024 > 512")
    grid = schedule(COPIES.format(n=70000))
    refused(lambda: grid.bind("i", "blockIdx.y"), "blockIdx.y is at most 65535", "bind it to blockIdx.x")
    grid.bind("i", "blockIdx.x")


def test_shared_memory_of_a_block():
    """64 KB at the step that exceeds 48 KB, each buffer with its bytes; `shared.dyn` where the GPU has it."""
    text = matmul(1024)

    def loaded(scope: str, **options) -> tir.Schedule:
        sch = schedule(text, **options)
        by, bx, ty, tx, ko = sch.split("i", [None, 32, 4])[0], *[None] * 4
        i = sch.get_loops("C")
        bx, tx, xi = sch.split(i[3], [None, 32, 4])
        ko, ki = sch.split("k", [None, 64])
        sch.reorder(by, bx, i[1], tx, ko, ki, i[2], xi)
        for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (i[1], "threadIdx.y"), (tx, "threadIdx.x")):
            sch.bind(loop, axis)
        copies = [sch.cache_read("C", n, scope) for n in range(2)]
        sch.compute_at(copies[0], ko)
        sch.compute_at(copies[1], ko)
        return sch

    refused(
        lambda: loaded("shared", target="cuda -arch=sm_80"),
        'compute_at("B_shared", "k_0")',
        "65536 B > 49152 B",
        "A_shared 32 KB, B_shared 32 KB",
        "shrink the tile of k_0, or use `shared.dyn` (166912 B on sm_80)",
    )
    refused(lambda: loaded("shared", target="cuda"), "65536 B > 49152 B")
    whole = loaded("shared")  # for no GPU yet: the tile may still shrink
    with pytest.raises(
        tir.BuildError, match="shared memory of a block would be 65536 B > 49152 B .`shared`.: A_shared 32 KB"
    ):
        tir.lower(whole.mod, target="cuda")
    sch = loaded("shared", target="llvm")
    func = sch.mod["main"].with_attr("target", tir.Target("cuda"))
    refused(lambda: tir.Schedule(func).annotate("A_shared", "double_buffer_scope", 0), "98304 B > 49152 B")
    sch = loaded("shared.dyn", target="cuda -arch=sm_75")
    assert [(b.buffer.name, b.bytes) for b in shared_buffers(sch.mod["main"])] == [
        ("A_shared_dyn", 32768),
        ("B_shared_dyn", 32768),
    ]
    sch.annotate("A_shared_dyn", "note", 1)
    refused(lambda: sch.annotate("A_shared_dyn", "double_buffer_scope", 0), "98304 B > 65536 B")


def test_a_buffer_outside_kernels_is_not_counted():
    sch = schedule(matmul(1024))
    sch.cache_read("C", 0, "shared")  # 4 MB, until it is computed where it is used


def test_padding_counts():
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    bind_tiles(sch, by, bx, ty, tx)
    copy = sch.cache_read("C", 0, "shared")
    sch.compute_at(copy, ko)
    assert [b.bytes for b in shared_buffers(sch.mod["main"])] == [16 * 8 * 4]
    sch.storage_align(copy, 0, axis=0, factor=32, offset=1)
    assert [b.bytes for b in shared_buffers(sch.mod["main"])] == [16 * 33 * 4]


@pytest.mark.parametrize(
    ("arch", "size"), [("sm_75", 65536), ("sm_80", 166912), ("sm_86", 101376), ("sm_90a", 232448), ("sm_120", 101376)]
)
def test_targets_know_their_shared_memory(arch, size):
    target = tir.Target("cuda", arch=arch)
    assert target.limit("max_dynamic_shared_memory_per_block") == size
    assert target.limit("max_shared_memory_per_block") == 49152
    assert tir.Target.of(str(target)).limit("max_dynamic_shared_memory_per_block") == size


# ---------------------------------------------------------------- reductions across threads


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


# ---------------------------------------------------------------- reductions across threads beside other work


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
    with pytest.raises(tir.BuildError, match=r"`k < 3` decides whether they get there(.|\n)*predicate of the block"):
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


def test_threads_of_no_kernel_reduce_beside_a_tile():
    sch = schedule(GEMV)
    _, inner = sch.split("k", [None, 16])
    sch.bind(inner, "threadIdx.x")
    sch.compute_at(sch.cache_read("Y", 1, "global"), "k_0")
    with pytest.raises(tir.BuildError, match=r"all thread loops are inside it; bind a loop around it to blockIdx\.x"):
        tir.lower(sch.mod, target="cuda")


# ---------------------------------------------------------------- notes that lowering obeys


def pipelined() -> tir.Schedule:
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    bind_tiles(sch, by, bx, ty, tx)
    for n in range(2):
        copy = sch.cache_read("C", n, "shared")
        sch.compute_at(copy, ko)
        load_together(sch, copy)
    return sch


def test_a_software_pipeline():
    sch = pipelined()
    sch.annotate("k_0", "software_pipeline_stage", [0, 0, 1])
    sch.annotate("k_0", "software_pipeline_order", [0, 1, 2])
    sch.annotate("k_0", "software_pipeline_async_stages", [0])
    on_simulator(sch, orders=("forward", "random"))


def test_a_pipeline_of_ones_own_buffers_what_its_stages_need():
    """A double buffer asked for inside a pipeline is what the pipeline gives."""
    sch = pipelined()
    for copy in ("A_shared", "B_shared"):
        sch.annotate(copy, "double_buffer_scope", 0)
    sch.annotate("k_0", "software_pipeline_stage", [0, 0, 1])
    sch.annotate("k_0", "software_pipeline_order", [0, 1, 2])
    assert [b.bytes for b in tir.transform.shared_memory_plan(sch.mod)] == [2 * 16 * 8 * 4] * 2
    on_simulator(sch, orders=("random",))


@pytest.mark.parametrize("early", [False, True], ids=["", "told before the copies are placed"])
def test_a_pipeline_in_a_pipeline_with_copies_through_registers(early):
    """As TVM's schedules for tensor cores say it: each copy is two statements, the inner pipeline is three."""
    sch = schedule(MATMUL)
    by, bx, ty, tx, ko = tiled(sch)
    bind_tiles(sch, by, bx, ty, tx)

    def outer():
        sch.annotate(ko, "software_pipeline_stage", [0, 0, 0, 0, 0, 1, 1])
        sch.annotate(ko, "software_pipeline_order", [0, 3, 1, 4, 5, 2, 6])

    if early:
        outer()
    for n in range(2):
        copy = sch.cache_read("C", n, "shared")
        sch.compute_at(copy, ko)
        load_together(sch, copy)
        sch.annotate(copy, "tirx.manifest_shared_memory_local_stage", 1)
        sch.annotate(copy, "double_buffer_scope", 0)
    sch.compute_at(sch.cache_read("C", 0, "local"), "k_1")
    sch.annotate("k_1", "software_pipeline_stage", [0, 1])
    sch.annotate("k_1", "software_pipeline_order", [0, 1])
    if not early:
        outer()
    assert "A_shared_local" in tir.lower(sch.mod, target="cuda", upto="manifest_shared_memory_local_stage").script()
    on_simulator(sch, orders=("reverse", "warp_interleaved"))


def test_a_pipeline_that_counts_more_than_there_is():
    sch = pipelined()
    sch.annotate("k_0", "software_pipeline_stage", [0, 0, 0, 1])
    with pytest.raises(tir.BuildError, match=r"loop `k_0` holds 3 statements, but its software pipeline has stages"):
        tir.lower(sch.mod, target="cuda")


def test_pipelines_that_cannot_be():
    sch = pipelined()
    note = sch.annotate
    refused(
        lambda: note("k_0", "software_pipeline_stage", [0, 1]),
        "has 2 numbers, one for each statement, but the body of loop `k_0` has 3",
        "A_shared, B_shared, C",
    )
    refused(lambda: note("k_0", "software_pipeline_stage", [0, 0, -1]), "list of non-negative numbers")
    refused(lambda: note("k_0", "software_pipeline_stage", [1, 0, 0]), "`C` (stage 0", "before `A_shared` (stage 1")
    refused(lambda: note("k_0", "software_pipeline_order", [0, 0, 1]), "legal: a permutation of [0, 1, 2]")
    refused(lambda: note("C", "software_pipeline_stage", [0]), "annotates a loop")
    refused(lambda: note("i_1", "software_pipeline_stage", [0]), "loop `i_1` is bound to threadIdx.y")
    note("k_0", "software_pipeline_stage", [0, 0, 0])
    refused(
        lambda: note("k_0", "software_pipeline_order", [0, 2, 1]),
        "before `B_shared` (stage 0, order 2)",
        "writes the `B_shared` that it reads",
    )
    refused(lambda: note("k_0", "software_pipeline_async_stages", [2]), "there is no stage 2")
    refused(lambda: note("A_shared", "double_buffer_scope", 1), "number of a buffer", "0 (A_shared)")
    refused(lambda: note("k_0", "double_buffer_scope", 0), "annotates a block")


def test_double_buffers_and_virtual_threads():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops("C")
    vy, ty, yi = sch.split(i, [2, 4, 2])
    vx, tx, xi = sch.split(j, [2, 4, 2])
    ko, ki = sch.split(k, [None, 8])
    sch.reorder(vy, vx, ty, tx, ko, ki, yi, xi)
    for loop, axis in ((vy, "vthread.y"), (vx, "vthread.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        sch.bind(loop, axis)
    for n in range(2):
        copy = sch.cache_read("C", n, "shared")
        sch.compute_at(copy, ko)
        load_together(sch, copy)
        sch.annotate(copy, "double_buffer_scope", 0)
    same(sch)
    on_simulator(sch)


@pytest.mark.parametrize("factors", [[None, 2, 1], [None, 2, 4], [None, 3, 2]])
def test_registers_of_virtual_threads_are_their_own(factors):
    """Where the place in the registers names the virtual thread, and comes out the same for all of them."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((3, 7), "int32"), B: T.Buffer((3, 7), "int32")):
    for i, j in T.grid(3, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
""")
    blocks, virtual, threads = sch.split(sch.fuse(*sch.get_loops("B")), factors)
    sch.bind(blocks, "blockIdx.x")
    sch.bind(virtual, "vthread.x")
    sch.bind(threads, "threadIdx.x")
    sch.reverse_compute_at(sch.cache_write("B", 0, "local"), threads)
    same(sch)
    on_simulator(sch)


@pytest.mark.parametrize("threads", [4, 1])
def test_registers_that_one_thread_fills_for_all(threads):
    """Indices that sets cannot say (a division by a size) do not hide that the reader is in no loop of that axis."""
    sch = schedule("""
@T.prim_func
def main(a: T.handle, S: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    for i, k in T.grid(3, n):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 0
            S[vi] = T.max(S[vi], A[vi, vk])
""")
    outer, _ = sch.split(sch.fuse(*sch.get_loops("S")), [None, 4])
    (_, unit) = sch.split(outer, [None, 1])
    sch.bind(unit, "threadIdx.z")
    copy = sch.cache_read("S", "A", "local")
    sch.compute_at(copy, unit)
    sch.bind(sch.split(sch.get_loops(copy)[-1], [None, threads])[1], "threadIdx.x")
    if threads == 1:
        a, s = np.arange(12, dtype="int32").reshape(3, 4), np.zeros(3, "int32")
        tir.build(sch.mod, target="cuda-sim")(a, s)
        np.testing.assert_array_equal(s, a.max(1))
    else:
        with pytest.raises(tir.BuildError, match="cannot prove that `A_local`.* is read by the thread that wrote it"):
            tir.build(sch.mod, target="cuda-sim")


def test_registers_filled_and_read_by_threads_inside_of_one_block():
    """Blocks of one block stand in different thread loops of one axis: the loops around the outer block are not all."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), S: T.Buffer((1,), "float32")):
    B = T.alloc_buffer((4,), "float32", scope="local")
    for io in range(1):
        with T.block("tile"):
            vo = T.axis.spatial(1, io)
            T.reads(A[0:4])
            T.writes(B[0:4], S[vo])
            for ii in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, ii)
                    B[vi] = A[vi] * 2.0
            for k in range(4):
                with T.block("S"):
                    vk = T.axis.reduce(4, k)
                    with T.init():
                        S[vo] = T.float32(0)
                    S[vo] = S[vo] + B[vk]
""")
    sch.bind(sch.split(sch.get_loops("tile")[0], [None, 8])[1], "threadIdx.z")
    sch.bind("ii", "threadIdx.x")
    with pytest.raises(tir.BuildError, match="`B` .local memory. would be read by another thread"):
        tir.build(sch.mod, target="cuda-sim")


# ---------------------------------------------------------------- scopes


@pytest.mark.parametrize("scope", ["share.dyn", "sharde", "wmma.matrix_c", "registers"])
def test_scopes_that_do_not_exist(scope):
    sch = schedule(MATMUL)
    refused(lambda: sch.cache_read("C", 0, scope), f"there is no storage scope `{scope}`", "shared.dyn")
    refused(lambda: sch.cache_write("C", 0, scope), "there is no storage scope", "wmma.accumulator")
    copy = sch.cache_read("C", 0, "wmma.matrix_a")
    refused(lambda: sch.set_scope(copy, 0, scope), "there is no storage scope")
