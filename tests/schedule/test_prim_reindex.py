"""reindex, reindex_cache_read and reindex_cache_write, cache_inplace."""

from __future__ import annotations

import pytest
from layout_programs import BLUR, MATMUL, TWO
from prim_checks import refused, same, schedule


def test_reindex_read() -> None:
    sch = schedule(MATMUL)
    block = sch.reindex("C", ("read", 1))
    assert block.name == "B_reindex"
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 16), "float32"), C: T.Buffer((16, 8), "float32")):
    B_reindex = T.alloc_buffer((16, 12), "float32")
    for ax0, ax1 in T.grid(16, 12):
        with T.block("B_reindex"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            B_reindex[v0, v1] = B[v1, v0]
    for i, j, k in T.grid(8, 16, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vj, vi] = T.float32(0)
            C[vj, vi] = C[vj, vi] + A[vi, vk] * B_reindex[vj, vk]
""",
    )


def test_reindex_write() -> None:
    sch = schedule(MATMUL)
    assert sch.reindex("C", "C").name == "C_reindex"
    same(sch)
    assert "C_reindex = T.alloc_buffer((8, 16)" in sch.script()


def test_reindex_convolution() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((1, 8, 8, 3), "float32"), W: T.Buffer((3, 3, 3, 4), "float32"),
         C: T.Buffer((1, 6, 6, 4), "float32")):
    for n, h, w, o, r, s, c in T.grid(1, 6, 6, 4, 3, 3, 3):
        with T.block("C"):
            vn, vh, vw, vo, vr, vs, vc = T.axis.remap("SSSSRRR", [n, h, w, o, r, s, c])
            with T.init():
                C[vn, vh, vw, vo] = T.float32(0)
            C[vn, vh, vw, vo] = C[vn, vh, vw, vo] + A[vn, vh + vr, vw + vs, vc] * W[vr, vs, vc, vo]
""")
    sch.reindex("C", ("read", 0))
    sch.reindex("C", ("read", 1))
    sch.reindex("C", ("write", 0))
    sch.transform_layout("C", ("read", 0), lambda n, h, w, r, s, c: (n * 36 + h * 6 + w, r * 9 + s * 3 + c))
    sch.transform_block_layout("C", lambda n, h, w, o, r, s, c: (n * 36 + h * 6 + w, o, r * 9 + s * 3 + c))
    same(sch)


def test_reindex_keeps_a_batch_of_one_for_the_layout_that_follows() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((1, 8, 4), "float32"), B: T.Buffer((4, 8), "float32"), C: T.Buffer((1, 8, 8), "float32")):
    for b, i, j, k in T.grid(1, 8, 8, 4):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] += A[vb, vi, vk] * B[vk, vj]
""")
    sch.reindex("C", ("read", 0))
    sch.reindex("C", ("read", 1))
    sch.reindex("C", ("write", 0))
    sch.transform_layout("C", ("read", 0), lambda b, i, k: (b, i, k))
    sch.transform_layout("C", ("read", 1), lambda j, k: (0, j, k))
    sch.transform_block_layout("C", lambda b, i, j, k: (b, i, j, k))
    same(sch)


def test_reindex_cache_read_of_windows_that_share_elements() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((17, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    for i, j, r in T.grid(8, 4, 3):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi * 2 + vr, vj]
""")
    shared = sch.copy()
    shared.reindex_cache_read("C", 0, "global", lambda i, j, r: (j, i * 2 + r))
    same(shared)
    refused(
        lambda: sch.reindex_cache_read("C", 0, "global", lambda i, j, r: (j, i + r)),
        "two elements would go to one place",
    )


def test_reindex_outside_the_buffer_is_guarded() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.if_then_else(vi >= 1, A[vi - 1], T.float32(0))
""")
    sch.reindex("C", "A")
    same(sch)
    assert "T.where(" in sch.script()


def test_reindex_indirect() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), idx: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[idx[vi]]
""")
    sch.reindex("C", "A")
    same(sch)


def test_reindex_of_a_place_that_a_size_of_zero_has_not() -> None:
    text = """
@T.prim_func
def main(n: T.int32, a: T.handle, C: T.Buffer((8,), "int32")):
    A = T.match_buffer(a, (n,), "int32")
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = VALUE
"""
    sch = schedule(text.replace("VALUE", "T.if_then_else(n > 0, A[vi % n], 0)"))
    refused(lambda: sch.reindex("C", "A"), "only where a condition holds", "has no value unless `n != 0`")
    sch = schedule(text.replace("VALUE", "A[vi % n]"))
    sch.reindex("C", "A")
    same(sch, n=3)
    sch = schedule(text.replace("VALUE", "T.if_then_else(n > 0, A[vi % T.max(n, 1)], 0)"))
    sch.reindex("C", "A")
    same(sch, n=0)
    same(sch, n=3)


def test_reindex_many_places() -> None:
    sch = schedule(BLUR)
    refused(lambda: sch.reindex("C", ("read", 0)), "more than one place", "[vi] and [vi + 1]")


def test_reindex_of_a_block_with_blocks() -> None:
    sch = schedule(TWO)
    sch.blockize(sch.get_loops("C")[1])
    refused(lambda: sch.reindex("C_o", ("read", 0)), "has blocks inside")


def test_reindex_in_place_update() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + T.float32(1)
""")
    refused(lambda: sch.reindex("A", ("read", 0)), "writes buffer A as well", "cache_inplace")
    refused(lambda: sch.reindex("A", ("write", 0)), "before anything here has written it")


def test_reindex_write_of_part() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.where(i < 5)
            C[vi] = A[vi]
""")
    refused(lambda: sch.reindex("C", ("write", 0)), "does not store at every value")


def test_reindex_write_same_place_twice() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((7,), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + vj] = A[vi, vj]
""")
    refused(lambda: sch.reindex("C", ("write", 0)), "more than once at one place")


def test_reindex_cache_read() -> None:
    sch = schedule(MATMUL)
    block = sch.reindex_cache_read("C", 0, "shared", lambda i, j, k: (k // 4, i, k % 4))
    assert block.name == "A_shared"
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 16), "float32"), C: T.Buffer((16, 8), "float32")):
    A_shared = T.alloc_buffer((3, 8, 4), "float32", scope="shared")
    for ax0, ax1 in T.grid(8, 12):
        with T.block("A_shared"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            A_shared[v1 // 4, v0, v1 % 4] = A[v0, v1]
    for i, j, k in T.grid(8, 16, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vj, vi] = T.float32(0)
            C[vj, vi] = C[vj, vi] + A_shared[vk // 4, vi, vk % 4] * B[vk, vj]
""",
    )


def test_reindex_cache_write() -> None:
    sch = schedule(MATMUL)
    block = sch.reindex_cache_write("C", 0, "local", lambda i, j, k: (i // 2, j, i % 2))
    assert block.name == "C_local"
    same(sch)
    refused(
        lambda: schedule(MATMUL).reindex_cache_write("C", 0, "local", lambda i, j, k: (i + j,)),
        "two elements would go to one place",
    )


def test_cache_inplace() -> None:
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + T.float32(1)
""")
    blocks = sch.cache_inplace("A", 0, "local")
    assert [b.name for b in blocks] == ["A_local", "A_local_1"]
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    A_local = T.alloc_buffer((8,), "float32", scope="local")
    for ax0 in range(8):
        with T.block("A_local"):
            v0 = T.axis.spatial(8, ax0)
            A_local[v0] = A[v0]
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A_local[vi] = A_local[vi] + T.float32(1)
    for ax0 in range(8):
        with T.block("A_local_1"):
            v0 = T.axis.spatial(8, ax0)
            A[v0] = A_local[v0]
""",
    )


def test_cache_inplace_needs_both() -> None:
    sch = schedule(TWO)
    refused(lambda: sch.cache_inplace("B", 0, "local"), "does not write buffer A", "cache_read")


def test_a_copy_does_not_read_where_the_block_does_not_run():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((2, 2), "float32"), D: T.Buffer((2, 2), "float32")):
    for i, j, k in T.grid(2, 2, 2):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk]
""")
    sch.stage("D", buffer=0, loop="k")
    sch.skew("i", inner="j", factor=1)
    sch.reindex("D", ("read", 0))
    same(sch)


def test_a_copy_in_the_loops_of_a_split_runs_where_the_block_does():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((5,), "int32"), Y: T.Buffer((3, 5), "int32")):
    X = T.alloc_buffer((1,), "int32")
    for i in range(5):
        with T.block("X"):
            vi = T.axis.spatial(5, i)
            X[0] = A[vi] * 2
        for j in range(3):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vj, vi] = X[0] + vj
""")
    sch.split("i", [None, 4])
    sch.vectorize("i_1")
    sch.reindex_cache_read("Y", 0, "global", lambda *at: at)
    assert sch.func.script().count("T.where(i_0 * 4 + i_1 < 5)") == 3
    same(sch)


def test_a_continued_reduction_of_one_update_starts_from_what_is_there():
    """``vk`` is 1 in the only update: the init, at 0, never runs, and the copy would begin without a value."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((1, 2), "int32"), S: T.Buffer((1,), "int32")):
    for i in range(1):
        with T.block("S"):
            vi = T.axis.spatial(1, i)
            vk = T.axis.reduce(2, 1)
            with T.init():
                S[vi] = 0
            S[vi] = S[vi] + A[vi, vk]
""")
    refused(lambda: sch.reindex("S", ("write", 0)))


def test_a_copy_for_a_reader_that_may_not_run():
    """Where ``n`` is 0 nothing writes ``P`` and nothing reads it; the copy, which has no loop over ``n``, would."""
    text = """
@T.prim_func
def main(c: T.handle, n: T.int32):
    C = T.match_buffer(c, (n,), "int32")
    P = T.alloc_buffer((1,), "int32")
    for k in range(n):
        with T.block("P"):
            vk = T.axis.reduce(n, k)
            with T.init():
                P[0] = 0
            P[0] = P[0] + 1
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = P[0]
"""
    refused(lambda: schedule(text).reindex("C", ("read", 0)))
    sch = schedule(
        text.replace('range(n):\n        with T.block("P")', 'range(4):\n        with T.block("P")').replace(
            "reduce(n", "reduce(4"
        )
    )
    sch.reindex("C", ("read", 0))
    same(sch, n=3)


OF_N = """
@T.prim_func
def f(a: T.handle, b: T.handle, n: T.int32):
    A, B = T.match_buffer(a, ({extent},), "int32"), T.match_buffer(b, ({extent},), "int32")
    for i in range({extent}):
        with T.block("B"):
            vi = T.axis.spatial({extent}, i)
            B[vi] = A[vi] + vi
"""


@pytest.mark.parametrize("step", ["reindex_cache_write", "reindex_cache_read"])
def test_a_layout_divides_by_no_size_that_may_be_zero(step: str) -> None:
    """The program divides by nothing, the copy would. A factor of the extent divides only what is there."""

    def tiled(extent: str):
        sch = schedule(OF_N.format(extent=extent))
        n = sch.func.params[2]
        getattr(sch, step)("B", 0, "global", lambda i: (i // n, i % n))
        return sch

    refused(lambda: tiled("4"), "divides by `n`")
    for n in (0, 3):
        same(tiled("n * 4"), n=n)
