"""Buffers that each iteration can have for itself, by exact sets."""

import numpy as np
import pytest

import tir
from tests.prim_checks import refused, same, schedule
from tests.tier_checks import recorded
from tir.analysis.dependence.initialization import Initialized, is_privatizable
from tir.analysis.dependence.tiers import Refuted, Tier
from tir.script import parse
from tir.stmt import Block, For
from tir.visit import walk

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((14,), "float32"), N: T.Buffer((4,), "int32"), C: T.Buffer((14,), "float32")):
    P = T.alloc_buffer((16,), "float32")
    for t in range(4):
        for i in range(6):
            WRITE
        for i in range(4):
            if t * 4 + i < 14:
                C[t * 4 + i] = P[t * 4 + i] + P[t * 4 + i + 2]
"""
TAKEN = [
    "if t * 4 + i < 16:\n                P[t * 4 + i] = T.float32(1)",
    # every other element on its own
    "if i < 3:\n                P[T.min(t * 4 + i * 2, 15)] = T.float32(1)\n                P[T.min(t * 4 + i * 2 + 1, 15)] = T.float32(2)",
    # one half, then the other
    "if i < 5:\n                if t * 4 + i < 15:\n                    P[t * 4 + i] = T.float32(1)\n            P[T.min(t * 4 + 5, 15)] = T.float32(2)",
]
NOT_SHOWN = [
    "if t * 4 + i < 15:\n                P[t * 4 + i] = T.float32(1)",  # the last is missing
    "if t * 4 + i < 16 and i < N[t]:\n                P[t * 4 + i] = T.float32(1)",  # data decides which are written
    "if t * 4 + i < 16 and i > 0:\n                P[t * 4 + i] = T.float32(1)",  # the first is from the tile before
]


def private(write: str) -> bool:
    func = schedule(PROGRAM.replace("WRITE", write)).mod["main"]
    loop = next(n for n in walk(func) if isinstance(n, For) and n.loop_var.name == "t")
    buffer = func.body.block.alloc_buffers[0]
    return is_privatizable(buffer, [loop])


@pytest.mark.parametrize("write", TAKEN)
def test_written_before_it_is_read(write):
    assert private(write)


@pytest.mark.parametrize("write", NOT_SHOWN)
def test_not_shown(write):
    assert not private(write)


MAY_BE_EMPTY = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32"), m: T.int32):
    P = T.alloc_buffer((4,), "float32")
    for t in range(4):
        for i in range(4):
            for k in range(EXTENT):
                P[i] = A[t] + T.cast(k, "float32")
        for i in range(4):
            C[t] = C[t] + P[i]
"""


@pytest.mark.parametrize(
    ("extent", "shown"),
    [
        ("3 - t", False),  # the last iteration reads what the one before has written
        ("t", False),
        ("i", False),
        ("m - t", False),
        ("t + 1", True),
        ("i + 1", True),
        ("m", True),  # of no iterations in any other one either
    ],
)
def test_a_loop_that_may_be_empty_fills_nothing(extent, shown):
    func = schedule(MAY_BE_EMPTY.replace("EXTENT", extent)).mod["main"]
    loop = next(n for n in walk(func) if isinstance(n, For) and n.loop_var.name == "t")
    assert is_privatizable(func.body.block.alloc_buffers[0], [loop]) is shown


def test_an_iteration_that_writes_nothing_keeps_its_place():
    sch = schedule(MAY_BE_EMPTY.replace("EXTENT", "3 - t").replace(", m: T.int32", ""))
    refused(lambda: sch.parallel("t"))


def test_a_loop_that_is_always_empty_leaves_what_the_iteration_before_has_stored_later():
    sch = schedule("""
@T.prim_func
def main(n: T.int32, C: T.Buffer((4,), "int32")):
    P = T.alloc_buffer((1,), "int32")
    for t in range(4):
        for k in range(n):
            P[0] = 7
        if t > 0:
            C[t] = P[0]
        P[0] = t
""")
    refused(lambda: sch.parallel("t"))
    same(sch, n=0)


def test_tiles_with_a_halo_run_at_once():
    text = PROGRAM.replace("WRITE", TAKEN[0])
    sch = schedule(text)
    sch.parallel("t")
    same(sch)
    a, n, c = np.zeros(14, "float32"), np.zeros(4, "int32"), np.zeros(14, "float32")
    tir.build(sch.mod)["main"](a, n, c)
    np.testing.assert_array_equal(c, np.full(14, 2, "float32"))


def test_a_tile_that_needs_the_one_before():
    sch = schedule(PROGRAM.replace("WRITE", NOT_SHOWN[2]))
    refused(lambda: sch.parallel("t"), "P[5]", "t=0", "t=1")


COPIED = """
@T.prim_func
def main(A: T.Buffer((4, 14, 6), "float32"), C: T.Buffer((4, 13, 6), "float32")):
    P = T.alloc_buffer((4, 14, 6), "float32")
    for t in range(4):
        for o in range(4):
            for i in range(24):
                if GUARD:
                    P[t, (o * 24 + i) // 6, (o * 24 + i) % 6] = A[t, (o * 24 + i) // 6, (o * 24 + i) % 6]
        for i, j in T.grid(13, 6):
            C[t, i, j] = P[t, i, j] + P[t, i + 1, j]
"""


@pytest.mark.parametrize(
    ("guard", "shown"),
    [
        ("o * 24 + i < 84", True),  # as threads copy a tile together: a fused loop in steps, cut at its end
        ("o * 24 + i < 83", False),
        ("o * 24 + i < 84 and i < 23", False),
        ("o * 24 + i < 84 and o > 0", False),
        ("o * 24 + i < 84 and i % 2 == 0", False),
    ],
)
def test_a_copy_of_a_fused_loop_that_a_guard_ends(guard, shown):
    """Told from the form of the guard: sets of digits of fused loops take long."""
    func = schedule(COPIED.replace("GUARD", guard)).mod["main"]
    loop = next(n for n in walk(func) if isinstance(n, For) and n.loop_var.name == "t")
    assert is_privatizable(func.body.block.alloc_buffers[0], [loop]) is shown


VIEW = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    P = T.alloc_buffer((4,), "float32")
    for t in range(8):
        with T.block("fill"):
            vt = T.axis.spatial(8, t)
            T.reads(A[vt, 0:4])
            T.writes(P[0:4])
            V = T.match_buffer(P[0:4], (4,), "float32", offset_factor=1)
            STORE
        for i in range(4):
            with T.block("C"):
                vt, vi = T.axis.remap("SS", [t, i])
                C[vt, vi] = P[vi]
"""


@pytest.mark.parametrize(
    "store, shown",
    [
        ("V[T.ramp(0, 1, 4)] = A[vt, T.ramp(0, 1, 4)]", True),
        ("V[T.ramp(0, 1, 2)] = A[vt, T.ramp(0, 1, 2)]", False),  # the last two are of the iteration before
        ("V[T.ramp(0, 2, 2)] = A[vt, T.ramp(0, 2, 2)]", False),
        ("V[T.ramp(3, -1, 3)] = A[vt, T.ramp(3, -1, 3)]", False),
        ("V[1] = A[vt, 1]", False),
    ],
)
def test_a_part_of_a_view_is_not_all_of_it(store, shown):
    func = schedule(VIEW.replace("STORE", store)).mod["main"]
    loop = next(n for n in walk(func) if isinstance(n, For) and n.loop_var.name == "t")
    assert is_privatizable(func.body.block.alloc_buffers[0], [loop]) is shown
    sch = schedule(VIEW.replace("STORE", store))
    if shown:
        sch.parallel("t")
        same(sch)
    else:
        refused(lambda: sch.parallel("t"))


def test_an_index_named_by_let_is_known():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(C[vi * 2])
            x: T.int32 = vi * 2
            C[x] = A[vi]
""")
    sch.parallel("i")
    same(sch)


RECIPE = """
@T.prim_func
def main(a: T.handle, B: T.Buffer((64, 8), "float32"), c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    C = T.match_buffer(c, (n, 64), "float32")
    for i, j, k in T.grid(n, 64, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vk] * B[vj, vk]
"""


@pytest.mark.parametrize("staged", [False, True])
def test_tiles_of_a_symbolic_product_are_written_before_they_are_copied(staged):
    """The tensor-core recipe: by boxes, as exact sets of so many digits do not end in bounded time."""
    sch = schedule(RECIPE)
    if staged:
        sch.reindex("C", ("write", 0))
    sch.pad_einsum("C", [32, 32, 8])
    i, j, k = sch.get_loops("C")[-3:]
    (i, ii), (j, jj), (k, kk) = (sch.split(x, [None, 4]) for x in (i, j, k))
    sch.reorder(i, j, k, ii, jj, kk)
    block = sch.blockize(ii)
    i0, i2, i3 = sch.split(i, [None, 4, 2])
    j1, j2, j3 = sch.split(j, [None, 4, 2])
    sch.reorder(i0, j1, j2, i2, k, i3, j3)
    sch.fuse(j2, i2)
    with recorded() as questions:
        sch.cache_write(block, 0, "shared")
    assert any(isinstance(q, Initialized) and q.answer_by(Tier.ITERATOR_MAP).is_proved for q in questions)
    same(sch, n=5)


FILLED = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    P = T.alloc_buffer((4, 8), "float32")
    for i in range(4):
        for j in range(LOW, 8):
            with T.block("P"):
                v, w = T.axis.remap("SS", [i, j])
                T.where(GUARD)
                P[v, w] = A[v, w]
        for j in range(8):
            with T.block("C"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = P[ROW, w]
"""


@pytest.mark.parametrize(
    ("low", "guard", "row", "shown"),
    [
        ("0", "j < 8", "v", True),
        ("1", "j < 8", "v", False),
        ("0", "j < 7", "v", False),
        ("0", "i < 3", "v", False),
        ("0", "j < 8", "(v + 1) % 4", False),
        ("0", "j < 8", "0", True),
    ],
)
def test_boxes_agree_with_sets(low, guard, row, shown):
    text = FILLED.replace("LOW", low).replace("GUARD", guard).replace("ROW", row)
    func = schedule(text).mod["main"]
    question = Initialized(func, func.body.block.alloc_buffers[0])
    exact = question.answer_by(Tier.SETS)
    assert exact.is_proved == shown and isinstance(exact, Refuted) != shown
    assert not question.answer_by(Tier.ITERATOR_MAP).is_proved or shown
    assert row != "v" or question.answer_by(Tier.ITERATOR_MAP).is_proved == shown


IN_TILES = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    P = T.alloc_buffer((12,), "float32")
    for t in range(3):
        for i in range(4):
            with T.block("P"):
                v = T.axis.spatial(12, t * 4 + i)
                T.where(t < 2)
                P[v] = A[v]
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(12, t * 4 + i)
                T.where(t * 4 + i < BOUND)
                C[v] = P[v]
"""


@pytest.mark.parametrize(("bound", "shown"), [("8", True), ("9", False), ("12", False)])
def test_whole_tiles_are_written_under_a_condition_on_elements(bound, shown):
    func = schedule(IN_TILES.replace("BOUND", bound)).mod["main"]
    question = Initialized(func, func.body.block.alloc_buffers[0])
    assert question.answer_by(Tier.SETS).is_proved == shown == question.answer_by(Tier.ITERATOR_MAP).is_proved


INSIDE = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    P = T.alloc_buffer((4, 8), "float32")
    for i in range(4):
        with T.block("P"):
            v = T.axis.spatial(4, i)
            T.reads(A[v, 0:8])
            T.writes(P[v, 0:8])
            for q in range(LOW, HIGH):
                if GUARD:
                    P[v, INDEX] = A[v, q]
        for j in range(8):
            with T.block("C"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = P[v, w]
"""


@pytest.mark.parametrize(
    ("low", "high", "guard", "index", "shown"),
    [
        ("0", "8", "q < 8", "q", True),
        ("1", "8", "q < 8", "q", False),
        ("0", "7", "q < 8", "q", False),
        ("0", "v + 5", "q < 8", "q", False),
        ("0", "8", "q < 7", "q", False),
        ("0", "8", "q < 8", "7 - q", True),
        ("0", "4", "q < 8", "q * 2", False),
    ],
)
def test_loops_inside_a_block_fill_what_they_run_over(low, high, guard, index, shown):
    text = INSIDE.replace("LOW", low).replace("HIGH", high).replace("GUARD", guard).replace("INDEX", index)
    func = schedule(text).mod["main"]
    question = Initialized(func, func.body.block.alloc_buffers[0])
    assert question.answer_by(Tier.SETS).is_proved == shown
    assert question.answer_by(Tier.ITERATOR_MAP).is_proved == (shown and index == "q")  # sets alone turn an axis round


REDUCED = """
@T.prim_func
def main(W: T.Buffer((5,), "int32"), A: T.Buffer((5, 6), "int32"), O: T.Buffer((5,), "int32")):
    S = T.alloc_buffer((5,), "int32")
    for i in range(5):
        with T.block("F"):
            vi = T.axis.spatial(5, i)
            S[vi] = W[vi]
        for k in range(2):
            with T.block("S"):
                vi = T.axis.spatial(5, ELEMENT)
                vk = T.axis.reduce(4, TERM)
                WHERE
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi, vk]
        with T.block("O"):
            vi = T.axis.spatial(5, i)
            O[vi] = S[vi]
"""


@pytest.mark.parametrize(
    ("element", "term", "where", "own"),
    [
        ("i % 3", "k", "T.where(True)", True),
        ("i % 3", "k", "T.where(i + k < 5)", True),  # what runs at all begins with the init
        ("i % 3", "k + 2", "T.where(True)", False),  # the init never runs
        ("i % 3", "k", "T.where(i + k != 3)", False),  # where i is 3, the first update comes without it
    ],
)
def test_a_reduction_whose_init_does_not_run_first_reads_what_another_iteration_made(element, term, where, own):
    text = REDUCED.replace("ELEMENT", element).replace("TERM", term).replace("WHERE", where)
    sch = schedule(text)
    if own:
        sch.vectorize("i")
        assert "private=[S]" in sch.script()
        same(sch)
    else:
        refused(lambda: sch.vectorize("i"), "two of its iterations touch the same element")


NESTED = """
@T.prim_func
def main(A: T.Buffer((10,), "int32"), O: T.Buffer((10,), "int32")):
    for o in range(4):
        with T.block("tile"):
            vo = T.axis.spatial(4, o)
            buf = T.alloc_buffer((3,), "int32")
            for i in range(3):
                with T.block("load"):
                    vi = T.axis.spatial(3, i)
                    T.where(vo * 3 + i < 10)
                    buf[vi] = A[vo * 3 + vi]
            for i in range(3):
                with T.block("store"):
                    vi = T.axis.spatial(3, i)
                    T.where(vo * 3 + i < {reader})
                    O[T.min(vo * 3 + vi, 9)] = buf[vi]
"""


def test_each_instance_of_a_block_has_memory_of_its_own():
    """What an earlier instance of the block wrote is gone: only the last one lacks elements."""
    sch = tir.Schedule(parse(NESTED.format(reader=10)))
    with pytest.raises(tir.ScheduleError, match="would be read without having been written"):
        sch.cache_read("store", 0, "local")
    for limit in (10, 11):
        func = parse(NESTED.format(reader=limit))
        buffer = next(b for n in walk(func) if isinstance(n, Block) for b in n.alloc_buffers)
        verdict = Initialized(func, buffer).answer()
        assert isinstance(verdict, Refuted) == (limit == 11), verdict


@pytest.mark.parametrize(("end", "shown"), [("3 - T.max(i, 2)", False), ("4 - T.max(i, 3)", True)])
def test_a_loop_of_one_iteration_at_most_may_have_none(end, shown):
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    P = T.alloc_buffer((4,), "int32")
    for i in range(4):
        for j in range({end}):
            P[T.max(2 - i, 0) + j] = A[i]
        C[i] = P[T.max(2 - i, 0)]
""")
    (loop,) = (n for n in walk(func.body) if isinstance(n, For) and n.loop_var.name == "i")
    assert is_privatizable(func.body.block.alloc_buffers[0], [loop]) is shown


def test_what_a_while_writes_may_not_be_written():
    func = parse("""
@T.prim_func
def main(N: T.Buffer((1,), "int32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    while N[0] < 0:
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = 1.0
        with T.block("N"):
            N[0] = N[0] + 1
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v]
""")
    assert not Initialized(func, func.body.block.alloc_buffers[0]).holds()
