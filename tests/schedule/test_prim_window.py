"""read_at, write_at, cache_index, sample_compute_location: what each gives, and what it refuses with which words."""

from __future__ import annotations

from collections import Counter

import pytest
from prim_checks import refused, same, schedule

import tir
from tir.schedule.trace import Trace
from tir.script import parse

BLUR = """
@T.prim_func
def main(A: T.Buffer((9, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + A[vi + 1, vj]
"""

MATMUL = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

CARRIED = """
@T.prim_func
def main(A: T.Buffer((9, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i in range(8):
        for j in range(16):
            with T.block("U"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj] + T.float32(1)
        for j in range(16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + A[vi + 1, vj]
"""

CHAIN = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((12, 16), "float32")):
    B = T.alloc_buffer((12, 16))
    for i, j in T.grid(12, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj]
    for i, j in T.grid(12, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def test_read_at_a_tile_of_a_matmul():
    sch = schedule(MATMUL)
    sch.tile("C", [4, 4, 2])
    assert sch.read_at("k_0", "C", "A", "shared").name == "A_shared"
    sch.read_at("k_0", "C", "B", "shared")
    sch.write_at("j_0", "C", 0, "local")
    assert sch.get(sch.get_block("A_shared")).annotations["auto_copy"]
    same(sch)


@pytest.mark.parametrize("size", [3, 5, 8, 16])
def test_read_and_write_at_tails(size):
    sch = schedule(BLUR)
    sch.split("i", [None, size])
    sch.read_at("i_0", "C", 0, "shared")
    sch.write_at("i_0", "C", "C", "local")
    same(sch)


def test_windows_in_parallel_iterations():
    sch = schedule(BLUR)
    sch.parallel("i")
    sch.read_at("i", "C", "A", "shared")
    sch.write_at("i", "C", 0, "local")
    same(sch)


def test_read_at_after_the_producer_in_the_same_loop():
    sch = schedule(CHAIN)
    sch.compute_at("B", "C.i")
    sch.read_at("C.i", "C", "B", "local")
    same(sch)


def test_write_at_a_producer_whose_consumer_is_in_the_same_loop():
    sch = schedule(CHAIN)
    sch.compute_at("B", "C.i")
    sch.write_at("B.i", "B", 0, "local")
    same(sch)


def test_write_at_inside_a_reduction_keeps_the_sum():
    sch = schedule(MATMUL)
    sch.reorder("k", "i", "j")
    sch.write_at("k", "C", 0, "local")
    same(sch)


def test_read_at_an_update_of_its_own_element():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + T.float32(1)
"""
    )
    sch.read_at("i", "A", 0, "local")
    same(sch)


def test_read_at_symbolic():
    sch = schedule(
        """
@T.prim_func
def main(n: T.int32, a: T.handle, c: T.handle):
    A = T.match_buffer(a, (n + 1, 4), "float32")
    C = T.match_buffer(c, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            vj = T.axis.spatial(4, j)
            C[vi, vj] = A[vi, vj] + A[vi + 1, vj]
"""
    )
    sch.split("i", [None, 4])
    sch.read_at("i_0", "C", 0, "shared")
    sch.write_at("i_0", "C", 0, "local")
    from tir.analysis import wellformed

    assert not wellformed.check(sch.mod["main"])


def test_read_at_refusals():
    error = refused(
        lambda: schedule(CARRIED).read_at("C.i", "C", "A", "shared"),
        "an element of `A` is written between the copy and a read of it",
    )
    assert (
        error.witness[0].startswith("C at (vi=")
        and "U at (vi=" in error.witness[1]
        and "in between" in error.witness[1]
    )
    forced = schedule(CARRIED)
    forced.read_at("C.i", "C", "A", "shared", unsafe=True)
    with pytest.raises(AssertionError):
        same(forced)
    later = schedule(CARRIED)
    later.read_at("C.j", "C", "A", "shared")
    same(later)
    sch = schedule(CHAIN)
    refused(lambda: sch.read_at("B.i", "C", "B", "shared"), "loop `i` belongs to `B`, not to", "are i, j")
    refused(lambda: sch.read_at("C.i", "C", "A", "shared"), "does not read a buffer `A`")
    refused(lambda: sch.read_at("C.i", "C", 2, "shared"), "no number 2")


def test_write_at_refusals():
    refused(
        lambda: schedule(CARRIED).write_at("U.i", "U", 0, "shared"),
        "an element of `A_shared` would be read without having been written",
        "reads A_shared[0, 0]",
    )
    sch = schedule(CHAIN)
    refused(lambda: sch.write_at("B.i", "C", "C", "shared"), "loop `i` belongs to `B`, not to")
    refused(lambda: sch.write_at("C.i", "C", "B", "shared"), "does not write a buffer `B`")
    error = refused(
        lambda: schedule(
            """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for t in range(4):
        for i in range(8):
            with T.block("C"):
                vt = T.axis.opaque(4, t)
                vi = T.axis.spatial(8, i)
                if vt == 0:
                    C[vi] = A[vi]
                else:
                    C[vi] = C[vi] + T.float32(1)
        for i in range(8):
            with T.block("D"):
                vt = T.axis.opaque(4, t)
                vi = T.axis.spatial(8, i)
                C[vi] = C[vi] * T.float32(2)
"""
        ).write_at("C.i", "C", 0, "local"),
        "written elsewhere while its copy is in use",
    )
    assert len(error.witness) == 2


def test_pointers_are_refused():
    text = BLUR.replace("A[vi, vj] + A[vi + 1, vj]", 'A[vi, vj] + T.call_extern("float32", "f", A.data)')
    refused(
        lambda: schedule(text).read_at("i", "C", "A", "shared"), "its pointer is used directly or through another view"
    )


INDEX = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((12, 16), "float32")):
    for i, j in T.grid(12, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[(vi * 3 + vj) % 16 // 2] + A[(vi * 3 + vj) % 16 // 4]
"""


@pytest.mark.parametrize("thresh, count", [(0, 2), (1, 2), (2, 1), (3, 0)])
def test_cache_index(thresh, count):
    sch = schedule(INDEX)
    made = sch.cache_index("C", "global", thresh)
    assert [b.name for b in made] == [f"index_{n}" for n in range(count)]
    last = sch.mod["main"].script().splitlines()[-1]
    assert last.count("index_var") == 2 * (count > 0) and last.count("% 16") == 2 * (count == 0)
    same(sch)


PLACE = '(T.Cast("float32", AXIS) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5)'
FLOOR = f'T.Cast("int32", T.floor({PLACE}))'
LEFT, RIGHT = f"T.max(T.min({FLOOR}, 3), 0)", f"T.max(T.min({FLOOR} + 1, 3), 0)"
ROW = LEFT.replace("AXIS", "vh")
BILINEAR = f"""
@T.prim_func
def main(A: T.Buffer((2, 4, 4), "float32"), R: T.Buffer((2, 8, 8), "float32")):
    for c, h, w in T.grid(2, 8, 8):
        with T.block("R"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            R[vc, vh, vw] = T.if_then_else(vw * 2 < 16, A[vc, {ROW}, {LEFT}] + (A[vc, {ROW}, {RIGHT}] - A[vc, {ROW}, {LEFT}]) * (
                {PLACE} - T.Cast("float32", {FLOOR})), T.float32(0))
""".replace("AXIS", "vw")


@pytest.mark.parametrize("thresh, dtypes", [(0, "fiii"), (1, "fiii"), (2, "iii"), (9, "")])
def test_cache_index_of_an_interpolation_has_its_weights_too(thresh, dtypes):
    sch = schedule(BILINEAR)
    made = sch.cache_index("R", "global", thresh)
    tables = [sch.get(block).writes[0].buffer.dtype for block in made]
    assert "".join(sorted(t[0] for t in tables)) == dtypes and "vw * 2 < 16" in sch.script()  # conditions stay
    same(sch)


def test_cache_index_leaves_what_reads_memory():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), I: T.Buffer((32,), "int32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[I[vi * 2] + 1]
"""
    )
    assert [b.name for b in sch.cache_index("C", "global")] == ["index_0"]
    assert "[index_var_0[vi]] + 1]" in sch.mod["main"].script()
    same(sch)


def test_cache_index_leaves_a_reduction_one():
    sch = schedule(
        MATMUL.replace("C[vi, vj]", "C[vi // 2, vj]")
        .replace('(8, 8), "float32")):', '(4, 8), "float32")):')
        .replace("A[vi, vk]", "A[vi, 7 - vk]")
    )
    sch.cache_index("C", "local")
    assert "C[vi // 2, vj] = C[vi // 2, vj] + A[vi, index_var_0[vk]]" in sch.mod["main"].script()


def test_cache_index_refusals():
    refused(lambda: schedule(INDEX).cache_index("C", "global", -1), "-1", "legal: 0 or more")
    refused(lambda: schedule(INDEX).cache_index("root", "global"), "root block")
    with pytest.raises(TypeError, match="`cse_thresh` is an int"):
        schedule(INDEX).cache_index("C", "global", "two")


def test_sample_compute_location_draws_every_legal_place():
    seen: Counter[str] = Counter()
    for seed in range(32):
        sch = schedule(CHAIN, seed=seed)
        place = sch.sample_compute_location("B")
        sch.compute_at("B", place)
        same(sch)
        saved = Trace.from_json(sch.trace.as_json())
        again = tir.Schedule(parse(CHAIN))
        saved.apply_to_schedule(again)
        tir.assert_structural_equal(again.mod, sch.mod)
        seen[place.name] += 1
    assert set(seen) == {"inline", "root", "i", "j"} and min(seen.values()) > 2


@pytest.mark.parametrize("decision", [-2, -1, 0, 1])
@pytest.mark.parametrize("block, move", [("B", "compute_at"), ("C", "reverse_compute_at")])
def test_sample_compute_location_takes_and_replaces_a_decision(block, move, decision):
    sch = schedule(CHAIN)
    getattr(sch, move)(block, sch.sample_compute_location(block, decision))
    same(sch)
    other = sch.trace.with_decision(0, -1).replay(parse(CHAIN))
    tir.assert_structural_equal(other.mod["main"], parse(CHAIN))


def test_sample_compute_location_offers_what_is_legal_only():
    sch = schedule(
        MATMUL.replace("main(", 'main(D: T.Buffer((8, 8), "float32"), ')
        + """    for i, j in T.grid(8, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + C[0, 0]
"""
    )
    error = refused(lambda: sch.sample_compute_location("D", 2), "by reverse_compute_at")
    assert error.legal == "-1 (root)"
    refused(lambda: sch.split(sch.sample_compute_location("D"), [2, None]), "`root` is a place to compute a block at")
    refused(lambda: sch.sample_compute_location("root"), "the root block cannot be moved")
    with pytest.raises(TypeError, match="`decision` is an int"):
        sch.sample_compute_location("D", "i")


def test_sampled_root_takes_a_block_out_again():
    sch = schedule(CHAIN)
    sch.compute_at("B", "C.i")
    sch.compute_at("B", sch.sample_compute_location("B", -1))
    assert len(sch.get_loops("B")) == 2 and sch.get_loops("B")[0] != sch.get_loops("C")[0]
    same(sch)


def test_a_place_that_is_not_legal():
    sch = schedule(
        CARRIED.replace("A[vi + 1, vj] = A[vi, vj]", "A[0, vj] = A[0, vj]").replace(
            "+ A[vi + 1, vj]", "+ A[0, 15 - vj]"
        )
    )
    error = refused(lambda: sch.sample_compute_location("U"), "can be computed nowhere but where it is")
    assert error.nodes


def test_a_copy_of_a_copy_is_not_shared_by_parallel_iterations():
    """Each parallel iteration has its own window, which is copied back in the loop."""
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4, 3), "float32")):
    for i, j in T.grid(4, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi] + T.float32(1)
"""
    )
    sch.parallel("j")
    sch.read_at("j", "C", "A", "local")
    same(sch)
    sch.cache_write("A_local", 0, "global")
    same(sch)


def test_an_iterator_that_starts_late_is_looked_up_once():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(6):
        with T.block("C"):
            v = T.axis.spatial((2, 8), i + 2)
            C[v] = A[v * 3 + 1] + A[v * 3 + 2]
""")
    assert len(sch.cache_index("C", "global", 1)) == 2
    same(sch)


def test_a_buffer_that_a_call_updates_is_not_copied_for_its_reads():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj], B[vi])
            T.writes(B[vi])
            T.evaluate(T.atomic_add(T.address_of(B[vi]), A[vi, vj], dtype="int32"))
""")
    refused(lambda: sch.read_at("i", "B", "B", "global"), "stores to B and then reads it")
