"""Moves that are plain from a program's form keep its results, and need no sets."""

from tests.prim_checks import refused, same, schedule
from tir.errors import ScheduleError
from tir.function import PrimFunc
from tir.library.gemm import gemm
from tir.schedule.primitives import compute_at as location
from tir.testing import assert_same_result
from tir.testing.decisions import SeededChoice
from tir.testing.fuzz import run
from tir.testing.kernel_programs import family_program
from tir.testing.schedules import random_schedule

STEPS = ["split", "reorder", "fuse", "cache_read", "cache_write", "compute_at", "reverse_compute_at",
         "compute_at.index", "reverse_compute_at.index", "loop_partition", "decompose_reduction"]  # fmt: skip


def check(monkeypatch, examples: int, seed: int) -> int:
    """How many of the moves of a short run were plain; the executor judges each of them."""
    plain: list[str] = []

    def counted(answer):
        def ask(*args):
            found = answer(*args)
            plain.extend([args[0].name] if found else [])
            return found

        return ask

    monkeypatch.setattr(location, "producer_move_is_legal", counted(location.producer_move_is_legal))
    monkeypatch.setattr(location, "consumer_move_is_legal", counted(location.consumer_move_is_legal))
    report = run(examples, seed=seed, steps=10, llvm_every=0, families=True, primitives=STEPS, log=False)
    assert not report.failures, report.failures
    return len(plain)


def test_plain_moves_are_legal(monkeypatch):
    assert check(monkeypatch, 40, 4000) > 5


MOVES = ["split", "fuse", "cache_read", "cache_write", "compute_at", "compute_at.index", "reverse_compute_at",
         "reverse_compute_at.index", "compute_at", "parallel"]  # fmt: skip
KERNELS = ("matmul", "conv2d", "stencil", "softmax", "padded")


def program(seed: int) -> PrimFunc:
    """One of the families, or a product in padded tiles: its tiles and what is stored are under conditions."""
    if seed % 6 == 5:
        return gemm(*((7, 9, 3), (8, 8, 2), (5, 4, 4))[seed % 3], 2, 4)
    return family_program(KERNELS[seed % 6], SeededChoice(seed))


def test_sets_agree_with_plain_moves(monkeypatch):
    """What is plain is proved by sets too; where they cannot, a run of the programs before and after decides."""
    exact, apart = location.require_same_meaning, location.require_independent
    moves = []

    def ask(before, after):
        apart(before, after)
        moves.append((before, after))

    monkeypatch.setattr(location, "require_independent", ask)
    for seed in range(120):
        random_schedule(program(seed), seed, 8, MOVES)
    unproved = []
    for before, after in moves:
        try:
            exact(before, after)
        except ScheduleError:
            unproved.append((before, after))
            assert_same_result(before.mod, after.mod, engines=["interpreter"])
    assert len(moves) > 25
    assert len(unproved) <= len(moves) // 20  # more would make sets over-cautious: see what they say


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


def test_sets_see_a_sum_made_anew_through_unit_loops(monkeypatch):
    monkeypatch.setattr(location, "producer_move_is_legal", lambda *_: False)
    sch = schedule(SUM_WITH_A_UNIT_LOOP)
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


def test_tiles_of_a_matrix_product_need_no_sets(monkeypatch):
    def unused(*_):
        raise AssertionError("sets were asked")

    sch = schedule(BIG)
    i, j, k = sch.get_loops("D")
    (i0, i1), (j0, j1), (k0, k1) = sch.split(i, [None, 8]), sch.split(j, [None, 8]), sch.split(k, [None, 2])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    with monkeypatch.context() as patched:
        patched.setattr(location, "require_same_meaning", unused)
        sch.compute_at("B", k0)
        sch.reverse_compute_at("C", j0)
    assert [str(x.name) for x in sch.get_loops("C")[:2]] == ["i_0", "j_0"]
    same(sch)


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


def test_what_is_stored_of_padded_tiles_needs_no_sets(monkeypatch):
    def unused(*_):
        raise AssertionError("sets were asked")

    sch = schedule(TILES)
    with monkeypatch.context() as patched:
        patched.setattr(location, "require_same_meaning", unused)
        sch.reverse_compute_at("C", sch.get_loops("B")[0])
    same(sch)


def test_a_condition_about_the_sum_is_not_about_its_elements():
    """Steps of the sum that do not run leave an element as it was, not unmade: here the last one makes it what it is."""
    sch = schedule(TILES.replace("i * 2 + j < 7", "i * 2 + j + k < 9"))
    i, j, k = sch.get_loops("B")
    sch.reorder(k, i, j)
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "would")


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
