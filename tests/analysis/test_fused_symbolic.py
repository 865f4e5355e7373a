"""Fused loops over products of symbolic sizes: what may run at once, and what may not."""

import numpy as np
import pytest

import tir
from tests.prim_checks import refused, results, same, schedule
from tir.analysis.dependence.delinearize import split_sizes, undivided
from tir.buffer import decl_buffer
from tir.errors import Unproved
from tir.interp import run
from tir.script import parse
from tir.visit import free_vars, nodes_of

F, I, N, M, K, L = (tir.Var(name) for name in "finmkl")

TEXT = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = A[v, w] + 1.0
"""

THREE = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    p = T.int32()
    A = T.match_buffer(a, (n, m, p), "float32")
    C = T.match_buffer(c, (n, m, p), "float32")
    for i, j, k in T.grid(n, m, p):
        with T.block("C"):
            v, w, u = T.axis.remap("SSS", [i, j, k])
            C[v, w, u] = A[v, w, u] + 1.0
"""


@pytest.mark.parametrize("text", [TEXT, THREE])
@pytest.mark.parametrize("split", [False, True])
def test_elements_of_their_own(text, split):
    sch = schedule(text)
    fused = sch.fuse(*sch.get_loops("C"))
    if split:
        fused, inner = sch.split(fused, [None, 4])
        sch.vectorize(inner)
    sch.parallel(fused)
    same(sch, n=3, m=5, p=2)


def test_tiles():
    sch = schedule(TEXT)
    i, j = sch.get_loops("C")
    (i0, i1), (j0, j1) = sch.split(i, [None, 4]), sch.split(j, [None, 4])
    sch.reorder(i0, j0, i1, j1)
    sch.parallel(sch.fuse(i0, j0))
    same(sch, n=6, m=9)


@pytest.mark.parametrize(
    "store",
    [
        "C[v, 0] = A[v, w]",  # every w writes one element
        "C[0, w] = A[v, w]",
        "C[v, w] = C[v, T.max(w - 1, 0)] + A[v, w]",  # its neighbour's result
        "C[v, w] = C[T.max(v - 1, 0), w] + A[v, w]",
        "C[v, w // 2] = A[v, w]",
    ],
)
def test_shared_elements_are_refused(store):
    sch = schedule(TEXT.replace("C[v, w] = A[v, w] + 1.0", store))
    fused = sch.fuse(*sch.get_loops("C"))
    refused(lambda: sch.parallel(fused), "cannot")
    outer, inner = sch.split(fused, [None, 4])
    refused(lambda: sch.parallel(outer), "cannot")
    refused(lambda: sch.vectorize(inner), "cannot")


@pytest.mark.parametrize("indices", ["f % m, f // m", "f // m, f // m", "f // (m + 1), f % m", "f % m, f % m"])
def test_digits_are_digits_of_one_number(indices):
    text = """
@T.prim_func
def main(C: T.Buffer((16, 16), "float32"), n: T.int32, m: T.int32):
    for f in range(n * m):
        C[INDICES] = T.float32(f)
"""
    sch = schedule(text.replace("INDICES", indices))
    if indices == "f % m, f // m":
        sch.parallel("f")
        same(sch, n=3, m=4)
    else:
        refused(lambda: sch.parallel("f"), "cannot prove")


@pytest.mark.parametrize(
    ("indices", "known"),
    [
        ((F // M, F % M), "f"),
        ((2 - F // M, M - 3 * (F % M)), "f"),
        ((F // (N * M), F % M, F // M % N), "f"),
        ((F // (N * M), F // M % N), "f // m"),
        (((F + I) % M, (F + I) // M, I), "f + i, i"),
        ((F // 48, F % 48), "f"),
        ((F // (3 * M), F % 3, F // 3 % M), "f"),
        ((F // M, F % N), None),
        ((F // 48, F % 32), None),
        ((F // M, I % M), None),
        ((F // (F + 1), F % (F + 1)), None),  # by another number each time
        ((F // M + F % M, F % M), None),
        ((F // (K * L), F % K, F // K % L), None),  # sizes that may be negative
    ],
)
def test_digits_determine_their_number(indices, known):
    found = undivided(indices, [F, I], [decl_buffer((N, M))])
    assert (None if found is None else ", ".join(map(repr, found))) == known


SUMS = """
@T.prim_func
def main(a: T.handle, s: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n, 64), "float32")
    S = T.match_buffer(s, (4, n), "float32")
    for i, j, k in T.grid(4, n, 64):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = 0.0
            S[vi, vj] += A[vi, vj, vk]
"""


def test_a_sum_moves_under_a_fused_loop():
    """`i_j_fused // n` and `i_j_fused % n` are loops of their own to the proof."""
    sch = schedule(SUMS)
    i, j, k = sch.get_loops("S")
    sch.fuse(i, j)
    partial = sch.rfactor(sch.split(k, [None, 32])[1], 0)
    sch.reverse_compute_at("S", sch.get_loops(partial)[0])
    same(sch, n=3)


def test_a_block_runs_over_fused_elements():
    sch = schedule(TEXT)
    m = sch.func.buffer_map[sch.func.params[0]].shape[1]
    sch.transform_block_layout("C", lambda i, j: [i * m + j])
    same(sch, n=3, m=5)


SHIFTED = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "float32")
    C = T.match_buffer(c, (4, n), "float32")
    B = T.alloc_buffer((4, n), "float32")
    for i, j in T.grid(4, n):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * 2.0
    for i, j in T.grid(4, n):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v, w] + B[3 - v, w]
"""


def test_a_consumer_of_what_comes_later_stays_outside_of_a_fused_loop():
    sch = schedule(SHIFTED)
    sch.fuse(*sch.get_loops("B"))
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]))


FUSED = """
@T.prim_func
def main(A: T.Buffer((1,), "int64"), n: T.int32, m: T.int32):
    for f in range(LOOP):
        A[0] = A[0] * T.int64(3) + T.Cast("int64", VALUE)
"""


@pytest.mark.parametrize(
    ("loop", "value", "loops"),
    [
        ("4 * n", "f // n * 7 + f % n", 2),
        ("n * 4", "f % n - f // n", 2),
        ("n * m * 4", "f // (n * m) * 5 + f // m % n - f % m", 3),
        ("4 * n * m", "f // (n * m) * 5 + f % m", 3),
        ("4 * n", "f // n * 7 + f % n + f", 2),
        ("4 * n", "f // n * 7 + f % n + f % 2", 2),
        ("4 * n", "f // n", 2),
        ("4 * n", "f % n", 2),
        ("4 * n", "f // n * 7 + f % m", 2),
        ("4 * (n + 1)", "f // (n + 1) * 7 + f % (n + 1)", 2),
        ("4 * n", "(f + 1) // n * 7 + (f + 1) % n", 2),
        ("1, 4 * n", "f // n * 7 + f % n", 1),  # from the middle of a row
        ("4 * m", "f // n * 7 + f % n", 1),
        ("n", "f // n * 7 + f % n", 1),
        ("4 * n", "f * 3 + f % 2", 1),
    ],
)
def test_a_fused_loop_is_split_into_the_same_iterations(loop, value, loops):
    func = parse(FUSED.replace("LOOP", loop).replace("VALUE", value))
    (made,) = split_sizes(func) or (func,)
    assert sum(isinstance(node, tir.For) for node in nodes_of(made.body)) == loops
    assert set(free_vars(made.body)) == set(free_vars(func.body))
    results = [np.ones(1, "int64") for _ in range(2)]
    for f, array in zip((func, made), results):
        run(f, array, 3, 2)
    assert results[0] == results[1]


FLAT = """
@T.prim_func
def main(a: T.handle, c: T.handle, m: T.int32, n: T.int32):
    A = T.match_buffer(a, (m * n,), "float32")
    C = T.match_buffer(c, (m * n,), "float32")
    B = T.alloc_buffer((m * n,), "float32")
    for i in range(m * n):
        with T.block("B"):
            v = T.axis.spatial(m * n, i)
            B[v] = A[v] * 2.0
    for i in range(m * n):
        with T.block("C"):
            v = T.axis.spatial(m * n, i)
            C[v] = B[v] + 1.0
"""

READ_FLAT = """
@T.prim_func
def main(a: T.handle, c: T.handle, m: T.int32, n: T.int32):
    A = T.match_buffer(a, (m, n), "float32")
    C = T.match_buffer(c, (m * n,), "float32")
    B = T.alloc_buffer((m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * 2.0
    for i in range(m * n):
        with T.block("C"):
            v = T.axis.spatial(m * n, i)
            C[v] = B[v // n, v % n] + 1.0
"""

MADE_FLAT = """
@T.prim_func
def main(a: T.handle, c: T.handle, m: T.int32, n: T.int32):
    A = T.match_buffer(a, (m * n,), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    B = T.alloc_buffer((m * n,), "float32")
    for i in range(m * n):
        with T.block("B"):
            v = T.axis.spatial(m * n, i)
            B[v] = A[v] * 2.0
    for i, j in T.grid(m, n):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v * n + w] + 1.0
"""


def _rows(sch: tir.Schedule):
    n = sch.func.params[-1]
    return lambda i: (i // n, i % n)


def _fused_rows(sch: tir.Schedule) -> None:
    sch.compute_at("B", sch.fuse(*sch.get_loops("C")))


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (FLAT, lambda s: s.transform_layout("B", ("write", 0), _rows(s))),
        (FLAT, lambda s: s.transform_block_layout("B", _rows(s))),
        (FLAT, lambda s: s.split("B.i", [None, s.func.params[-1]])),
        (READ_FLAT, lambda s: s.reverse_compute_at("C", "B.j")),
        (READ_FLAT, lambda s: s.reverse_compute_at("C", "B.i")),
        (READ_FLAT, lambda s: s.reverse_compute_at("C", s.fuse(*s.get_loops("B")))),
        (READ_FLAT, lambda s: (s.fuse(*s.get_loops("B")), s.compute_at("B", "C.i"))),
        (READ_FLAT, lambda s: s.reverse_compute_inline("C")),
        (READ_FLAT, lambda s: (s.fuse(*s.get_loops("B")), s.reverse_compute_inline("C"))),
        (MADE_FLAT, lambda s: s.transform_layout("B", ("write", 0), _rows(s))),
        (MADE_FLAT, lambda s: s.reverse_compute_inline("C")),
        (MADE_FLAT, lambda s: s.reverse_compute_at("C", "B.i")),
        (MADE_FLAT, _fused_rows),
    ],
)
def test_flat_elements_are_rows(text, steps):
    sch = schedule(text)
    steps(sch)
    same(sch, m=3, n=5)
    for m, n in ((0, 0), (0, 3), (3, 0), (1, 4), (4, 1)):
        expected, found = (results(s.mod["main"], {"m": m, "n": n}) for s in (schedule(text), sch))
        for a, b in zip(expected, found):
            np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("index", ["(v // n + 1) % m, v % n", "v % n, v // n"])
def test_other_flat_elements_are_no_rows(index):
    text = READ_FLAT.replace("v // n, v % n", index)
    refused(lambda: schedule(text).reverse_compute_at("C", "B.j"), "cannot prove")


def test_another_size_makes_no_rows():
    sch = schedule(FLAT.replace("(m * n,)", "(m * m,)").replace("m * n", "m * m"))
    refused(lambda: sch.transform_layout("B", ("write", 0), _rows(sch)), "not known to be positive")


def test_a_layout_by_a_variable_is_saved():
    sch = schedule(FLAT)
    sch.transform_layout("B", ("write", 0), _rows(sch))
    again = schedule(FLAT)
    sch.trace.apply_json_to_schedule(sch.trace.as_json(), again)
    tir.assert_structural_equal(again.mod, sch.mod)


MIRRORED = """
@T.prim_func
def main(a: T.handle, o: T.handle, s: T.handle, n: T.int64, m: T.int64):
    A = T.match_buffer(a, (n, m), "float32")
    O = T.match_buffer(o, (n, m), "float32")
    S = T.match_buffer(s, (n,), "float32")
    B = T.alloc_buffer((n, m), "float32")
    with T.block("B_o"):
        vi_o = T.axis.spatial(1, 0)
        vj_o = T.axis.spatial(1, 0)
        T.reads(A[vi_o * n : vi_o * n + n, m - vj_o * m - m : m - vj_o * m])
        T.writes(B[vi_o * n : vi_o * n + n, vj_o * m : vj_o * m + m])
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi_o * n + vi, vj_o * m + vj] = A[vi_o * n + vi, m - 1 - (vj_o * m + vj)] * 2.0
    for i, k in T.grid(n, m):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + B[vi, vk]
    for i, j in T.grid(n, m):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = B[vi, vj] - S[vi]
"""


def test_a_mirrored_axis_is_no_product_of_negative_sizes():
    """``m - 1 - (vo * m + vi)`` multiplies by ``-m``: loops over ``-1`` and ``-m`` have no iterations, whose order is right."""
    sch = schedule(MIRRORED)
    refused(lambda: sch.compute_at("B_o", sch.get_loops("O")[0]), "may read an element not yet written")


@pytest.mark.parametrize("extent, splits", [("n * m", True), ("(0 - n) * (0 - m)", True), ("(n - 1) * (m - 1)", False)])
def test_a_product_is_split_into_sizes_that_are_not_negative(extent, splits):
    """``(n - 1) * (m - 1)`` is 1 for empty sizes."""
    func = parse(f"""
@T.prim_func
def main(a: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (2, 64), "float32")
    for i in range({extent}):
        A[i // (m - 1) // 64 % 2, i % m % 64] = 1.0
    for i in range({extent}):
        A[i // (m - 1) // 64 % 2, i // m % 64] = 1.0
""")
    made = split_sizes(func)
    extents = [n.extent for n in nodes_of(func.body if made is None else made[0].body) if isinstance(n, tir.For)]
    assert len(extents) == (4 if splits else 2)


TURNED = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (3, m), "float32")
    C = T.match_buffer(c, (3, m), "float32")
    for i, j in T.grid(3, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[{place}] = {value} * 2.0
"""
STEPS = {
    "parallel": lambda sch: sch.parallel("i_j_fused_0"),
    "bind": lambda sch: sch.bind("i_j_fused_0", "blockIdx.x"),
    "vectorize": lambda sch: sch.vectorize("i_j_fused_1"),
}


def _fused(**parts):
    sch = schedule(TURNED.format(**parts))
    sch.split(sch.fuse("i", "j"), [None, 2])
    return sch


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("place", ["vi, vj", "2 - vi, vj", "vi, m - 1 - vj"])
def test_parts_of_a_fused_loop_that_no_set_takes(place, step):
    sch = _fused(place=place, value="A[vi, vj]")
    step(sch)
    same(sch, m=5)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_what_no_set_takes_is_unknown_not_refuted(step):
    error = refused(lambda: step(_fused(place="vi, m - 1 - vj", value="C[vi, vj]")), "cannot prove")
    assert isinstance(error, Unproved)
