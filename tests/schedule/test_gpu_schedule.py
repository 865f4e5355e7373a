"""Schedules for GPUs: threads that load together, reductions across threads, limits; judged by the executor and the
simulator."""

from __future__ import annotations

import pytest
from prim_checks import on_simulator, refused, same, schedule

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
COPIES = """
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), B: T.Buffer(({n},), "float32")):
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] * 2.0
"""


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
    sch.bind("i0", "threadIdx.y")
    refused(
        lambda: sch.bind("j", "threadIdx.y"),
        "threadIdx.y already has extent 1024 (loop `i0` of block X) in this kernel; loop `j` of block Y has 4",
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
    # 64 KB is all that `shared.dyn` has there: it is no way out for more
    refused(lambda: loaded("shared", target="cuda -arch=sm_75"), "or use `shared.dyn` (65536 B on sm_75)")
    func = sch.mod["main"].with_attr("target", tir.Target("cuda -arch=sm_75"))
    too_much = refused(lambda: tir.Schedule(func).annotate("A_shared", "double_buffer_scope", 0), "98304 B > 49152 B")
    assert "shared.dyn" not in str(too_much)
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


def two_tiles(*stages: tuple[str, str]) -> tir.Schedule:
    """Tiles ``X`` and ``Z`` of 32 KiB each, in statements (what is written, which value)."""
    stage = """        for i in range(8192):
            with T.block("{}"):
                vb, vi = T.axis.remap("SS", [b, i])
                {}[vb, vi] = {}
"""
    return schedule(
        """
@T.prim_func
def main(A: T.Buffer((2, 8192), "float32"), Y: T.Buffer((2, 8192), "float32"), B: T.Buffer((2, 8192), "float32")):
    X = T.alloc_buffer((2, 8192), "float32", scope="shared")
    Z = T.alloc_buffer((2, 8192), "float32", scope="shared")
    for b in range(2):
"""
        + "".join(stage.format(name, name, value) for name, value in stages),
        target="cuda",
    )


def test_tiles_that_are_not_used_at_once_are_not_added_up():
    first, last = ("X", "A[vb, vi]"), ("B", "Z[vb, vi]")
    two_tiles(first, ("Y", "X[vb, vi]"), ("Z", "Y[vb, vi]"), last).bind("b", "blockIdx.x")
    both = two_tiles(first, ("Z", "A[vb, vi]"), ("Y", "X[vb, vi]"), last)
    refused(lambda: both.bind("b", "blockIdx.x"), "65536 B > 49152 B", "X 32 KB, Z 32 KB")


@pytest.mark.parametrize(
    ("arch", "size"), [("sm_75", 65536), ("sm_80", 166912), ("sm_86", 101376), ("sm_90a", 232448), ("sm_120", 101376)]
)
def test_targets_know_their_shared_memory(arch, size):
    target = tir.Target("cuda", arch=arch)
    assert target.limit("max_dynamic_shared_memory_per_block") == size
    assert target.limit("max_shared_memory_per_block") == 49152
    assert tir.Target.of(str(target)).limit("max_dynamic_shared_memory_per_block") == size


# ---------------------------------------------------------------- reductions across threads


# ---------------------------------------------------------------- reductions across threads beside other work


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
    with pytest.raises(tir.BuildError, match=r"without software_pipeline_order; .*\[0, 1, 2, 3\] is that of the text"):
        tir.lower(sch.mod, target="cuda")
    sch.annotate("k_0", "software_pipeline_order", [0, 1, 2, 3])
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
    why = {
        4: "cannot prove that `A_local`.* is read by the thread that wrote it",
        1: "cannot prove that none reads what an earlier one wrote",
    }
    with pytest.raises(tir.BuildError, match=why[threads]):
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


@pytest.mark.parametrize(
    "scope, near",
    [("share.dyn", "shared.dyn"), ("sharde", "shared"), ("wmma.matrix_c", "wmma.accumulator"), ("registers", "local")],
)
def test_scopes_that_do_not_exist(scope, near):
    sch = schedule(MATMUL)
    refused(lambda: sch.cache_read("C", 0, scope), f"there is no storage scope `{scope}`", near)
    refused(lambda: sch.cache_write("C", 0, scope), "there is no storage scope", near)
    copy = sch.cache_read("C", 0, "wmma.matrix_a")
    refused(lambda: sch.set_scope(copy, 0, scope), "there is no storage scope")


# ---------------------------------------------------------------- loops of one axis, nested

FETCH = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((4, 16), "float32")):
    for x in range(4):
        with T.block("outer"):
            vx = T.axis.spatial(4, x)
            T.where({guard})
            S = T.alloc_buffer((16,), scope="shared")
            for m in range({times}):
                for k in range(4):
                    with T.block("copy"):
                        v = T.axis.spatial(16, {start} + k)
                        S[v] = A[v]
            for j in range(4):
                with T.block("use"):
                    v = T.axis.spatial(16, {start} + j)
                    B[vx, v] = S[v]
"""


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"start": "vx * 4"}, "what it does differs from thread to thread"),
        ({"guard": "x < 3"}, "not every thread comes to its share of the work"),
        ({"times": "vx + 1"}, "not every thread comes to its share of the work"),
    ],
)
def test_shared_work_does_not_depend_on_the_thread_around_it(changed, words):
    """The iterators and conditions of blocks between two loops of an axis say what differs, as the loop itself does."""
    text = FETCH.format(**{"guard": "True", "times": 1, "start": "0", **changed})
    for order in (("x", "k"), ("k", "x")):
        sch = schedule(text)
        sch.bind(order[0], "threadIdx.x")
        refused(lambda: sch.bind(order[1], "threadIdx.x"), words)


def test_work_that_is_the_same_in_every_thread_is_shared():
    sch = schedule(FETCH.format(guard="True", times=1, start="0"))
    sch.bind("x", "threadIdx.x")
    sch.bind("k", "threadIdx.x")


def test_registers_of_a_symbolic_tile_are_refused_where_nothing_shows_who_wrote_them():
    sch = schedule("""
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    outer, inner = sch.split("i", [None, 32])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.y")
    copy = sch.cache_read("B", 0, "local")
    sch.compute_at(copy, outer)
    threads, _ = sch.split("ax1", [32, None])
    sch.bind(threads, "threadIdx.y")
    with pytest.raises(tir.BuildError, match="cannot prove that `A_local` .* is read by the thread that wrote it"):
        tir.build(sch.mod, target="cuda-sim")
