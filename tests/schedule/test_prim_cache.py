"""cache_read, cache_write: which part is copied, when, and what a copy would miss."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

from tir.errors import ScheduleError

MATMUL = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

WAR = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            A[vi] = T.float32(1)
"""

INP = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            A[vi] = A[vi] * T.float32(2) + B[vi]
"""

SEQ = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[15 - vi]
"""

SUB = """
@T.prim_func
def main(
    A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((8,), "float32"),
    D: T.Buffer((16,), "float32"),
):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi + 4] + A[vi + 3] + A[vi]
    for i in range(16):
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = B[vi]
"""

PART = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((32,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi * 2] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi * 2]
"""

GATHER = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[I[vi]]
"""

MULTI = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("CD"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)
            D[vi, vj] = A[vi, vj] * T.float32(3)
"""

NESTED = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for o in range(16):
        with T.block("outer"):
            vo = T.axis.spatial(16, o)
            T.reads(A[vo, 0:16])
            T.writes(C[vo, 0:16])
            B = T.alloc_buffer((16,), "float32")
            for i in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vo, vi] * T.float32(2)
            for j in range(16):
                with T.block("C"):
                    vj = T.axis.spatial(16, j)
                    C[vo, vj] = B[vj] + T.float32(1)
"""

I64 = """
@T.prim_func
def main(A: T.Buffer((T.int64(8), T.int64(8)), "float32"), C: T.Buffer((T.int64(8), T.int64(8)), "float32")):
    for i, j in T.grid(T.int64(8), T.int64(8)):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)
"""


WAR_AFTER = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    A_local = T.alloc_buffer((16,), "float32", scope="local")
    for ax0 in range(16):
        with T.block("A_local"):
            v0 = T.axis.spatial(16, ax0)
            A_local[v0] = A[v0]
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A_local[vi] * T.float32(2)
    for i in range(16):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            A[vi] = T.float32(1)
"""


def test_read_before_a_later_write():
    sch = schedule(WAR)
    sch.cache_read("B", "A", "local")
    same(sch, WAR_AFTER)


def test_a_block_that_makes_the_buffer_and_reads_it_keeps_reading_it():
    sch = schedule("""
@T.prim_func
def main(B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    A = T.alloc_buffer((16, 16), "float32")
    for i0, j0 in T.grid(4, 4):
        with T.block("scope"):
            i, j = T.axis.remap("SS", [i0, j0])
            for x, y in T.grid(4, 4):
                with T.block("A"):
                    vi = T.axis.spatial(16, i * 4 + x)
                    vj = T.axis.spatial(16, j * 4 + y)
                    A[vi, vj] = T.Cast("float32", vi * 16 + vj)
            for x, y in T.grid(4, 4):
                with T.block("B"):
                    vi = T.axis.spatial(16, i * 4 + x)
                    vj = T.axis.spatial(16, j * 4 + y)
                    B[vi, vj] = A[vi, vj] + 1.0
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * 2.0
""")
    sch.cache_read("B", 0, "local")
    sch.cache_read("C", 0, "global")
    same(sch)
    assert "C[vi, vj] = A_global[vi, vj] * 2.0" in sch.script() and "B[vi, vj] = A_local[vi, vj] + 1.0" in sch.script()


def test_in_place():
    sch = schedule(INP)
    sch.cache_read("B", "A", "local")
    same(sch)
    sch = schedule(INP)
    sch.cache_write("B", "A", "local")
    same(sch)


def test_producer_and_consumer_in_one_loop():
    """The copy goes between them, in their loop."""
    sch = schedule(SEQ)
    sch.cache_read("C", "B", "local")
    same(sch)
    assert sch.get(sch.get_loops("B_local")[0]) is sch.get(sch.get_loops("C")[0])
    sch = schedule(SEQ)
    sch.cache_write("B", "B", "local")
    same(sch)
    assert sch.get(sch.get_loops("B_local")[0]) is sch.get(sch.get_loops("C")[0])


def test_copies_between_levels_of_a_tile():
    """A copy in shared memory, made under a loop, is read through a second copy that is made there too."""
    sch = schedule(SUB)
    sch.split("B.i", [4, 4])
    sch.compute_at(sch.cache_read("B", "A", "shared", ["B"]), "i_0")
    inner = sch.cache_read("B", "A_shared", "local")
    same(sch)
    assert [sch.get(x).loop_var.name for x in sch.get_loops(inner)] == ["i_0", "ax0"]


def test_a_copy_answers_to_the_name_with_the_scope_as_it_is_written():
    sch = schedule(SUB)
    sch.cache_read("B", "A", "shared.dyn")
    assert sch.get(sch.get_block("A_shared.dyn")).name_hint == "A_shared_dyn"


def test_subsets_and_regions():
    sch = schedule(SUB)
    sch.cache_read("C", "B", "local", consumer_blocks=["C"])
    same(sch)
    assert sch.get(sch.get_loops("B_local")[0]).extent.value == 8
    assert "D[vi] = B[vi]" in sch.script()
    sch = schedule(SUB)
    sch.cache_read("C", "A", "local", ["C"])
    same(sch)
    assert sch.get(sch.get_loops("A_local")[0]).extent.value == 11
    sch = schedule(SUB)
    sch.cache_read("B", "A", "shared")
    sch.cache_read("B", "A_shared", "local")
    same(sch)
    sch = schedule(SUB)
    sch.cache_write("B", "B", "local", consumer_blocks=["C"])
    same(sch)
    assert "B_local[vi + 4]" in sch.script() and "D[vi] = B[vi]" in sch.script()


def test_what_nothing_wrote_is_not_copied():
    refused(lambda: schedule(PART).cache_read("C", "B", "local"), "B_local at (v0=1) reads B[1]")
    refused(lambda: schedule(PART).cache_write("B", "B", "local"), "B_local at (v0=1) reads B_local[1]")


def test_gather():
    sch = schedule(GATHER)
    sch.compute_at(sch.cache_read("C", "A", "local"), "i")
    same(sch)
    sch = schedule(GATHER)
    sch.compute_at(sch.cache_read("C", "I", "local"), "i")
    same(sch)


def test_several_outputs():
    sch = schedule(MULTI)
    c, d = sch.cache_write("CD", "C", "local"), sch.cache_write("CD", "D", "local")
    sch.reverse_compute_at(c, "CD.i")
    sch.reverse_compute_at(d, "CD.j")
    same(sch)


def test_int64():
    sch = schedule(I64)
    write, read = sch.cache_write("C", "C", "local"), sch.cache_read("C", "A", "local")
    outer, _ = sch.split("C.i", [None, 3])
    sch.reverse_compute_at(write, outer)
    sch.compute_at(read, outer)
    same(sch)


def test_after_decompose():
    for block in ("C_init", "C_update"):
        sch = schedule(MATMUL)
        sch.decompose_reduction("C", "k")
        sch.cache_write(block, 0, "local")
        same(sch)
        assert "C[" not in sch.script().split("C_update")[0].split("C_init")[1].split("C_local[")[0]


def test_inside_a_block_and_around_it():
    for block, buffer, read in [("B", "A", True), ("outer", "A", True), ("C", "C", False), ("outer", "C", False)]:
        sch = schedule(NESTED)
        (sch.cache_read if read else sch.cache_write)(block, buffer, "local")
        same(sch)


def test_no_such_buffer():
    refused(lambda: schedule(MATMUL).cache_read("C", "X", "local"), "does not read a buffer `X`", "A, B")
    refused(lambda: schedule(MATMUL).cache_read("C", 7, "local"), "no number 7")


IN_PLACE = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = B[v] + A[v]
"""


def test_an_update_in_place_is_written_through_a_copy():
    sch = schedule(IN_PLACE)
    copy = sch.cache_write("B", 0, "local")
    assert "B_local[v] = B[v] + A[v]" in sch.mod.script()
    sch.reverse_compute_at(copy, "i")
    same(sch)


def test_a_shift_that_reads_ahead_of_what_it_writes():
    sch = schedule(IN_PLACE.replace("B[v] + A[v]", "B[T.min(v + 1, 15)] + A[v]"))
    sch.cache_write("B", 0, "global")
    same(sch)


def test_an_update_that_reads_its_own_results_is_not_cached_without_them():
    for change in ("B[T.max(v - 1, 0)] + A[v]", "B[15 - v] + A[v]"):
        sch = schedule(IN_PLACE.replace("B[v] + A[v]", change))
        refused(lambda sch=sch: sch.cache_write("B", 0, "global"), "without having been written")
    sch = schedule(IN_PLACE.replace("for i in range(16)", "for t, i in T.grid(2, 16)"))
    refused(lambda: sch.cache_write("B", 0, "global"), "without having been written")


def test_what_is_copied_back_is_what_was_made():
    """The copy is where its maker runs: it had copied an element that only a later iteration makes."""
    sch = schedule(
        """
@T.prim_func
def main(P: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32")):
    L = T.alloc_buffer((4,), "float32")
    for i, j in T.grid(2, 4):
        with T.block("use"):
            vi = T.axis.spatial(4, i * 3 + j)
            T.where(i * 3 + j < 4 and j < 3)
            L[vi] = P[vi]
        with T.block("out"):
            vi = T.axis.spatial(4, i * 3 + j)
            T.where(i * 3 + j < 4 and j < 3)
            O[vi] = L[vi]
"""
    )
    sch.cache_write("use", 0, "local")
    same(sch)


OPAQUE = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.reads(A[v * 8:v * 8 + 8])
            T.writes(B[v * 8:v * 8 + 8])
            T.evaluate(T.call_extern("void", "g", B.access_ptr("w", offset=v * 8), A.access_ptr("r", offset=v * 8)))
"""


@pytest.mark.parametrize("step, buffer", [("cache_read", "A"), ("cache_write", "B")])
def test_the_regions_of_an_opaque_call_are_believed_where_unsafe(step: str, buffer: str) -> None:
    sch = schedule(OPAQUE)
    refused(lambda: getattr(sch, step)("B", 0, "global"), "its pointer is used directly", "unsafe=True")
    getattr(sch, step)("B", 0, "global", unsafe=True)
    assert f"{buffer}_global.data" in sch.mod["main"].script() and f"{buffer}.data" not in sch.mod["main"].script()


def test_a_view_is_not_redirected_to_a_copy() -> None:
    text = OPAQUE.replace(
        "T.evaluate(", "V = T.match_buffer(A[v * 8:v * 8 + 8], (8,), offset_factor=1)\n            T.evaluate("
    )
    sch = schedule(text.replace('A.access_ptr("r", offset=v * 8)', 'V.access_ptr("r")'))
    for unsafe in (False, True):  # which would not help, and is not offered
        with pytest.raises(ScheduleError, match="through another view") as caught:
            sch.cache_read("B", 0, "shared", unsafe=unsafe)
        assert "believes" not in str(caught.value)


BACKWARDS = """
@T.prim_func
def main(B: T.Buffer((8, 4), "int32"), S: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 4):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, 3 - k)
            with T.init():
                S[vi] = 1
            S[vi] = T.max(S[vi], B[vi, vk])
"""


@pytest.mark.parametrize("step", ["cache_write", "reindex"])
def test_a_copy_does_not_hold_what_updates_before_the_init_read(step):
    sch = schedule(BACKWARDS)
    args = (0, "local") if step == "cache_write" else (("write", 0),)
    refused(lambda: getattr(sch, step)("S", *args), "read without having been written")


BLOCKIZED = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    S = T.alloc_buffer((4,), "int32")
    for i in range(4):
        for k in range(8):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi, vk]
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] - S[vi]
"""


@pytest.mark.parametrize(
    "step,block,index,consumers",
    [
        ("cache_write", "S", 0, ["S_o"]),
        ("cache_write", "S_o", 0, ["root"]),
        ("cache_write", "S_o", 0, ["S"]),
        ("cache_read", "S", "A", ["S_o"]),
        ("cache_read", "S_o", "A", ["S"]),
        ("cache_read", "S_o", "A", ["B", "S"]),
    ],
)
def test_consumers_of_another_scope(step, block, index, consumers):
    sch = schedule(BLOCKIZED)
    sch.blockize("k")
    refused(
        lambda: getattr(sch, step)(block, index, "local", consumer_blocks=consumers), consumers[-1], "directly inside"
    )


EMPTY = """
@T.prim_func
def main(a: T.handle, C: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    S = T.alloc_buffer((3,), "int32")
    for i, k in T.grid(3, n):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 0
            S[vi] = S[vi] + A[vi, vk]
    for i in range(3):
        with T.block("C"):
            vi = T.axis.spatial(3, i)
            T.where(n > 0)
            C[vi] = S[vi]
"""


@pytest.mark.parametrize("step", ["cache_read", "reindex", "reindex_cache_read"])
def test_the_result_of_a_reduction_that_may_be_empty(step):
    sch = schedule(EMPTY)
    if step == "cache_read":
        sch.cache_read("C", "S", "local")
    elif step == "reindex":
        sch.reindex("C", "S")
    else:
        sch.reindex_cache_read("C", "S", "local", lambda i: (2 - i,))
    assert sch.func.script().count("T.where(n > 0)") == 2  # the copy, too, runs only then
    for n in (0, 1, 4):
        same(sch, n=n)


UNREAD = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A, C = T.match_buffer(a, (n,), "int32"), T.match_buffer(c, (n,), "int32")
    S = T.alloc_buffer((1,), "int32")
    for k in range(n):
        with T.block("S"):
            vk = T.axis.reduce(n, k)
            with T.init():
                S[0] = 0
            S[0] = S[0] + A[vk]
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = S[0]
"""


def test_a_reduction_that_may_be_empty_as_may_its_reader():
    sch = schedule(UNREAD)
    sch.cache_read("C", "S", "local")
    assert sch.func.script().count("T.where(n > 0)") == 1  # without terms there is no sum, and nothing reads it
    for n in (0, 1, 4):
        same(sch, n=n)
    with pytest.raises(ScheduleError, match="without having been written"):
        schedule(UNREAD).reindex("C", "S")


APART = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32"), E: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0
        with T.block("E"):
            v = T.axis.spatial(8, i)
            E[v] = A[v] + 1.0
    for j in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, j)
            D[v] = B[7 - v]
"""


@pytest.mark.parametrize("step", [lambda s: s.cache_read("D", 0, "local"), lambda s: s.cache_write("B", 0, "local")])
def test_a_copy_for_blocks_of_two_nests_stands_in_neither(step):
    sch = schedule(APART)
    step(sch)
    same(sch)


INIT = """
@T.prim_func
def main(A: T.Buffer((8, 16), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 4):
        with T.block("outer"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                for one in range(1):
                    with T.block("init"):
                        B[vi] = 0
            for j in range(4):
                with T.block("update"):
                    vj = T.axis.spatial(4, j)
                    B[vi] = B[vi] + A[vi, vk * 4 + vj]
            for one in range(1):
                with T.block("read"):
                    C[vi] = B[vi] * 2
"""


def test_a_copy_of_what_an_init_writes():
    sch = schedule(INIT)
    sch.cache_read("read", 0, "local", consumer_blocks=["read"])
    same(sch)
    refused(lambda: sch.cache_write("update", 0, "local"), "in the init of block")
    refused(lambda: sch.cache_write("init", 0, "local"), "in the init of block")


@pytest.mark.parametrize(
    ("shape", "region", "first"),
    [("(n * m,)", "v * m:v * m + m", "v * m"), ("(n, m)", "v, 0:m", "v, 0"), ("(n, 8)", "v, 0:8", "v, 0")],
)
def test_what_an_instruction_fills_is_cached_without_what_was_there(shape, region, first):
    sch = schedule(f"""
@T.prim_func
def main(b: T.handle, n: T.int32, m: T.int32):
    B = T.match_buffer(b, {shape}, "float32")
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            T.reads()
            T.writes(B[{region}])
            T.evaluate(T.call_extern("void", "fill", T.address_of(B[{first}]), m))
""")
    sch.cache_write("B", 0, "local")
    assert f"T.address_of(B_local[{first}])" in sch.script()
