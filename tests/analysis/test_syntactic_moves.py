"""Moves that are legal by the program's form keep its results, and need no sets."""

import pytest

from tests.fuzz.steps import EVERY, run
from tests.prim_checks import refused, same, schedule
from tests.tier_checks import recorded, tiers
from tir.analysis.dependence.equivalence import SameMeaning
from tir.analysis.dependence.tiers import Tier

STEPS = [
    "split",
    "reorder",
    "fuse",
    "cache_read",
    "cache_write",
    "compute_at",
    "reverse_compute_at",
    "compute_at.index",
    "reverse_compute_at.index",
    "loop_partition",
    "decompose_reduction",
]


def test_moves_that_are_legal_by_form_keep_results():
    """The executor judges each of them: see the fuzzer."""
    with recorded() as questions:
        report = run(40, seed=4000, steps=10, llvm_every=0, families=EVERY, primitives=STEPS, log=False)
    assert not report.failures, report.failures
    moves = [q for q in questions if isinstance(q, SameMeaning)]
    assert sum(q.answer_by(Tier.SIMPLE_BLOCK).is_proved for q in moves) > 5


SUM_WITH_A_UNIT_LOOP = """
@T.prim_func
def main(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 4), "float32")):
    S = T.alloc_buffer((3,), "float32")
    for i, k, u in T.grid(3, 4, 1):
        with T.block("S"):
            v, w = T.axis.remap("SR", [i, k])
            with T.init():
                S[v] = 0.0
            S[v] += A[v, w]
    for i, j in T.grid(3, 4):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] / S[v]
"""


def test_sets_see_a_sum_made_anew_through_unit_loops():
    sch = schedule(SUM_WITH_A_UNIT_LOOP)
    with tiers(without=[Tier.SIMPLE_BLOCK]):
        sch.compute_at("S", sch.get_loops("B")[1])
    same(sch)


BIG = """
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    B = T.alloc_buffer((64, 64), "float32")
    D = T.alloc_buffer((64, 64), "float32")
    for i, j in T.grid(64, 64):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * 2.0
    for i, j, k in T.grid(64, 64, 4):
        with T.block("D"):
            v, w, r = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[v, w] = 0.0
            D[v, w] += B[v, r] * A[r, w]
    for i, j in T.grid(64, 64):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = T.max(D[v, w], 0.0)
"""


def test_tiles_of_a_matrix_product_need_no_sets():
    sch = schedule(BIG)
    i, j, k = sch.get_loops("D")
    (i0, i1), (j0, j1), (k0, k1) = sch.split(i, [None, 8]), sch.split(j, [None, 8]), sch.split(k, [None, 2])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    with tiers(without=[Tier.SETS]):
        sch.compute_at("B", k0)
        sch.reverse_compute_at("C", j0)
    assert [str(x.name) for x in sch.get_loops("C")[:2]] == ["i_0", "j_0"]
    same(sch)


TILED = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32")
    for i, j in T.grid(16, 16):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * 2.0
    for io, jo in T.grid(4, 4):
        with T.block("tile"):
            vo, wo = T.axis.remap("SS", [io, jo])
            T.reads(B[vo * 4 : vo * 4 + 4, wo * 4 : wo * 4 + 4])
            T.writes(C[vo * 4 : vo * 4 + 4, wo * 4 : wo * 4 + 4])
            for i, j in T.grid(4, 4):
                with T.block("C"):
                    v, w = T.axis.remap("SS", [i, j])
                    C[vo * 4 + v, wo * 4 + w] = B[vo * 4 + v, wo * 4 + w] + 1.0
"""


def test_what_a_tile_reads_in_its_loops_needs_no_sets():
    sch = schedule(TILED)
    with tiers(only=[Tier.SIMPLE_BLOCK, Tier.ITERATOR_MAP]):
        sch.compute_at("B", "io")
    same(sch)


STAGED = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    for i in range(8):
        for j in range(8):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = {made}
        for j, k in T.grid(8, 2):
            with T.block("C"):
                v, w, r = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[v, w] = 0.0
                C[v, w] += B[{read}]
"""


def test_a_copy_in_a_loop_around_both_needs_no_sets():
    sch = schedule(STAGED.format(made="A[v, w] * 2.0", read="v, w"))
    with tiers(only=[Tier.SIMPLE_BLOCK, Tier.ITERATOR_MAP]):
        sch.compute_at("B", "C.j")
    same(sch)


@pytest.mark.parametrize(
    "made, read", [("A[v, w] * 2.0", "T.max(v - r, 0), w"), ("T.if_then_else(v > 0, B[v, w], 0.0) + A[v, w]", "v, w")]
)
def test_values_of_other_iterations_are_not_plain(made, read):
    """C reads what an earlier iteration made; B adds to what is there, as often as it runs."""
    with tiers(only=[Tier.SIMPLE_BLOCK, Tier.ITERATOR_MAP]):
        refused(lambda: schedule(STAGED.format(made=made, read=read)).compute_at("B", "C.j"), "no tier of proof")


PART = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0
    for i in range(5):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v] + 1.0
"""


def test_a_consumer_of_a_part_is_not_plain():
    """Five of eight elements of the output are written: a move to where eight are made would write more."""
    sch = schedule(PART)
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "would run where it did not before", "(v=7)")


PREFIX = """
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), C: T.Buffer((4, 5), "float32")):
    B = T.alloc_buffer((4,), "float32")
    for i in range(4):
        with T.block("Z"):
            v = T.axis.spatial(4, i)
            B[v] = 0.0
    for i, k in T.grid(4, 5):
        with T.block("U"):
            v, w = T.axis.remap("SR", [i, k])
            B[v] = B[v] + A[v, w]
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, k])
            C[v, w] = B[v]
"""


def test_a_start_that_a_consumer_adds_to_is_not_plain():
    """Prefix sums: the start, made anew in each iteration of `k`, would undo what was added before."""
    sch = schedule(PREFIX)
    refused(lambda: sch.compute_at("Z", sch.get_loops("U")[1]), "two writes of one element would change their order")
    sch.compute_at("Z", sch.get_loops("U")[0])
    same(sch)


TILES = """
@T.prim_func
def main(A: T.Buffer((7, 3), "float32"), C: T.Buffer((7,), "float32")):
    B = T.alloc_buffer((4, 2), "float32")
    for i, j, k in T.grid(4, 2, 3):
        with T.block("B"):
            v, w, r = T.axis.remap("SSR", [i, j, k])
            T.where(i * 2 + j < 7)
            with T.init():
                B[v, w] = 0.0
            B[v, w] += A[v * 2 + w, r]
    for i, j in T.grid(4, 2):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            if v * 2 + w < 7:
                C[v * 2 + w] = B[v, w]
"""


def test_what_is_stored_of_padded_tiles_needs_no_sets():
    sch = schedule(TILES)
    with tiers(without=[Tier.SETS]):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])
    same(sch)


def test_a_condition_about_the_sum_is_not_about_its_elements():
    """Steps of the sum that do not run leave an element as it was, not unmade: here the last one makes it what it is."""
    sch = schedule(TILES.replace("i * 2 + j < 7", "i * 2 + j + k < 9"))
    i, j, k = sch.get_loops("B")
    sch.reorder(k, i, j)
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "would")


@pytest.mark.parametrize("condition", ["i * 2 + j < 7", "i * 2 + j < n", "k < n", "A[0, k] < 1.0"])
def test_conditions_of_the_producer_need_no_sets(condition):
    text = TILES.replace("i * 2 + j < 7", condition).replace("main(", "main(n: T.int32, ")
    sch = schedule(text)
    with tiers(without=[Tier.SETS]):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])


TWICE = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, 7 - i)
            B[v] = A[v] * 2.0
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v // 2] = B[v]
"""


def test_a_consumer_that_stores_an_element_twice_is_not_plain():
    sch = schedule(TWICE)
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "two writes of one element would change")
    sch = schedule(TWICE.replace("v // 2", "v").replace("(4,)", "(8,)"))
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    same(sch)


EACH = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = VALUE
"""


@pytest.mark.parametrize(
    ("value", "by_form"),
    [
        ("B[v]", True),
        ("B[v] * B[v]", True),
        ("B[7 - v]", False),
        ("B[v // 2]", True),
        ("B[v // 2] + B[T.max(v // 2, 0)]", False),  # the same element, in other words
        ("B[v] + B[7 - v]", False),
    ],
)
def test_which_consumers_read_an_element_each(value, by_form):
    sch = schedule(EACH.replace("VALUE", value))
    with tiers(without=[Tier.SETS]):
        answer = sch.can.reverse_compute_at("C", sch.get_loops("B")[0])
    assert bool(answer) == by_form and (by_form or "no tier of proof" in answer.reason), answer.reason


def test_a_consumer_of_two_elements_is_not_plain_whatever_regions_it_declares():
    declared = "T.reads(B[v], B[7 - v])\n            T.writes(C[v])\n            C[v] = "
    sch = schedule(EACH.replace("C[v] = VALUE", declared + "B[v] + B[7 - v]"))
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "would read an element not yet written")


FEWER = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(5):
        with T.block("B"):
            v = T.axis.spatial(5, i)
            B[v] = A[v] * 2.0
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.if_then_else(v < 5, B[v], 7.0)
"""


def test_a_consumer_of_more_than_is_made_stays_for_the_rest():
    sch = schedule(FEWER)
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "would no longer run for every iterator value")


PACKED = """
@T.prim_func
def main(A: T.Buffer((5, {n}), "float32"), C: T.Buffer((3, {n}), "float32")):
    for i, j, k in T.grid(3, {n}, 5):
        with T.block("C"):
            v, w, r = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[v, w] = 0.0
            C[v, w] += A[r, w] * T.cast(v + 1, "float32")
"""


@pytest.mark.parametrize("n", [7, 12, 15])
@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("together", [1, 2, 3])
@pytest.mark.parametrize("lanes", [1, 2])
def test_panels_are_packed_and_results_stored_without_sets(n, width, together, lanes):
    """The moves of the tuner's rule for products, at sizes that the tiles divide and that they do not."""
    sch = schedule(PACKED.format(n=n))
    if n % width:
        sch.pad_einsum("C", [1, width, 1])
        pack, store = "A_pad", "C_pad"
    else:
        pack, store = sch.cache_read("C", 0, "global").name, sch.cache_write("C", 0, "global").name
    sch.transform_layout(pack, ("write", 0), lambda r, w: (w // width, r, w % width))
    i, j, k = sch.get_loops("C")
    outer, tile, inner, lane = sch.split(j, [None, together, width // lanes, lanes])
    sch.reorder(outer, i, tile, k, inner, lane)
    tail = (n, width, together) == (
        12,
        4,
        2,
    )  # a condition on two loops leaves out a panel, which no iterator map shows
    with recorded() as questions, tiers(without=[] if tail else [Tier.SETS]):
        sch.compute_at(pack, outer)
        sch.reverse_compute_at(store, tile)
    assert all(q.answer_by(Tier.PAIRS).is_proved for q in questions if isinstance(q, SameMeaning))
    same(sch)


WINDOW = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), P: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((12,), "float32")
    for i in range(12):
        with T.block("B"):
            v = T.axis.spatial(12, i)
            B[v] = A[v] * 2.0
    for j in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, j)
            T.reads(B[REGION], P[v])
            T.writes(C[v])
            C[v] = VALUE
"""


@pytest.mark.parametrize(
    ("region", "value", "by_form"),
    [
        ("v : v + 3", "B[v] + B[v + 1] + B[v + 2]", True),
        ("v : v + 3", "B[v + 2 - v // 8]", True),
        ("v : v + 2", "B[v] + B[v + 2]", False),  # past the region
        ("v + 1 : v + 3", "B[v] + B[v + 1]", False),  # before it
        ("0:12", "B[P[v]]", False),  # a place that data decides
        ("0:12", "B[v % 5 + 6]", True),
    ],
)
def test_a_consumer_of_a_window_needs_no_sets_where_its_region_has_it(region, value, by_form):
    sch = schedule(WINDOW.replace("REGION", region).replace("VALUE", value))
    with tiers(only=[Tier.SIMPLE_BLOCK, Tier.ITERATOR_MAP]):
        answer = sch.can.compute_at("B", sch.get_loops("C")[0])
    assert bool(answer) == by_form, answer.reason
    if by_form:
        sch.compute_at("B", sch.get_loops("C")[0])
        same(sch)


NAMED_TWICE = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    again = T.Buffer((8,), "float32", data=B.data)
    for h in range(2):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] * 2.0
        for j in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, j)
                C[v] = B[v] + again[7 - v]
"""


def test_a_consumer_that_reads_by_another_name_is_not_plain():
    """It reads B[7 - v], which is not made yet, or not any more."""
    refused(lambda: schedule(NAMED_TWICE).compute_at("B", "j"), "would read an element not yet written")
    refused(lambda: schedule(NAMED_TWICE).reverse_compute_at("C", "i"), "would read an element not yet written")
    alone = NAMED_TWICE.replace("range(2)", "range(1)")
    refused(lambda: schedule(alone).compute_at("B", "j"), "would read an element not yet written")


SHIFTED = """
@T.prim_func
def main(B: T.Buffer((9,), "float32")):
    next = T.Buffer((8,), "float32", data=B.data, elem_offset=1)
    for i, j in T.grid(4, 2):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            next[v * 2 + w] = B[v * 2 + w] * 2.0
"""


def test_a_block_that_reads_by_another_name_is_not_simple():
    """`next[i]` is `B[i + 1]`: each iteration reads what the one before wrote."""
    refused(lambda: schedule(SHIFTED).parallel("i"), "two of its iterations touch the same element")
    refused(lambda: schedule(SHIFTED).reorder("j", "i"), "would read an element not yet written")
