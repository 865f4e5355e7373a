"""Loops that are partitioned because a user asked for it: by conditions of values, equalities, and branches with an else."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.expr import Call, FloorMod, Max, Min, Select
from tir.script import parse
from tir.stmt import BufferStore, For, IfThenElse
from tir.testing import assert_same_result
from tir.visit import statements, uses_var, walk

LOOP = """
@T.prim_func
def f(A: T.Buffer((40,), "int32"), B: T.Buffer((40,), "int32"), k: T.int32):
    for i in T.serial(2, 20{hint}):
        {body}
"""
HINT = ', annotations={"pragma_loop_partition_hint": 1}'
BODIES = {
    "padding": ("B[i] = T.if_then_else(i >= 5 and i < 15, A[i - 5], 0)", 3),
    "a selection": ("B[i] = T.Select(i < 9, A[i], A[i + 1]) + T.Select(i < 9, 1, 2)", 2),
    "one in another": ("B[i] = T.if_then_else(i < 9, T.if_then_else(i < 4, A[i], 7), A[i + 1])", 3),
    "in an index": ("B[T.Select(i < 9, i, i + 20)] = A[i]", 2),
    "an equality": ("B[i] = T.Select(i == 7, A[0], A[i])", 2),
    "an inequality": ("B[i] = T.Select(i != 2, A[0], A[i])", 1),
    "an if of an equality": ("if i == 7:\n            B[i] = A[0]\n        else:\n            B[i] = A[i]", 2),
    "an else": ("if i < 9:\n            B[i] = A[0]\n        else:\n            B[i] = A[i]", 2),
    "in an inner loop": ("for j in range(2):\n            B[i + j * 20] = T.Select(i + j < 9, A[i], j)", 2),
    "one turned round": ("B[i] = T.Select(9 > i, 1, 2)", 2),
    "one that starts": ("B[i] = T.Select(i > 8, 1, 2)", 2),
    "one that is equal at last": ("B[i] = T.Select(i <= 8, 1, 2)", 2),
    "a multiple": ("B[i] = T.Select(i * 3 < 20, 1, 2)", 2),
    "a multiple that starts": ("B[i] = T.Select(20 < i * 3, 1, 2)", 2),
    "a multiple of the other sign": ("B[i] = T.Select(k * 0 - i * 4 + 33 > 0, 1, 2)", 2),
    "in a value": ("x: T.int32 = T.Select(i < 9, 1, k)\n        B[i] = A[i] * x", 2),
}


def conditions(program) -> list:
    return [
        n for n in walk(program["main"].body) if isinstance(n, (Select, IfThenElse)) or "if_then_else" in repr(type(n))
    ]


@pytest.mark.parametrize("inner, iterations", [("range", 2), ("T.vectorized", 0)])
def test_a_parallel_loop_is_cut_only_where_no_serial_loop_inside_can_be(inner: str, iterations: int):
    """Of an iteration for each of two threads each would be a part, which run one after the other."""
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((11,), "int32")):
    for i in T.parallel(2):
        for j in {inner}(8):
            if i * 8 + j < 11:
                A[i * 8 + j] = i + j
""")
    made = tir.transform.loop_partition.configured(everything=True)(tir.IRModule.of(func))
    loops = [n for n in walk(made["main"].body) if isinstance(n, For) and n.kind == "parallel"]
    assert sum(n.extent.value for n in loops) == iterations
    assert_same_result(func, made, engines=["interpreter", "llvm"])


def test_a_loop_is_cut_at_a_number_that_is_rounded():
    """Rows of every second pixel end at ``(n + 1) // 2``, in vectors of which the last one alone asks for it."""
    func = parse("""
@T.prim_func
def f(a: T.handle, n: T.int32):
    A = T.match_buffer(a, ((n + 1) // 2,), "int32")
    for io in range((n + 31) // 32):
        for ii in T.vectorized(16):
            if io * 16 + ii < (n + 1) // 2:
                A[io * 16 + ii] = n
""")
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    first = next(n for n in walk(made["main"].body) if isinstance(n, For))
    assert not any(isinstance(n, IfThenElse) for n in walk(first)), made
    for n in (0, 1, 2, 31, 32, 33, 95):
        for program in (made, func):
            values = np.zeros((n + 1) // 2, "int32")
            tir.build(program)(values, n)
            assert (values == n).all()


@pytest.mark.parametrize("by", ["hint", "option"])
def test_a_loop_is_partitioned_at_each_of_many_conditions(by):
    value = "B[2]"
    for n in reversed(range(17)):
        value = f"T.if_then_else(i < {n + 3}, A[i + {n}], {value})"
    func = parse(LOOP.format(hint=HINT if by == "hint" else "", body=f"B[i] = {value}").replace("40,", "60,"))
    made = tir.transform.loop_partition.configured(everything=by == "option")(tir.IRModule.of(func))
    assert not conditions(made)
    stores = [n for n in walk(made["main"].body) if isinstance(n, BufferStore)]
    assert len(stores) == 18, made
    assert_same_result(func, made, engines=["interpreter", "llvm"])


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("by", ["hint", "option"])
def test_a_loop_is_partitioned_where_values_of_conditions_change(body, by):
    text, loops = BODIES[body]
    func = parse(LOOP.format(hint=HINT if by == "hint" else "", body=text))
    made = tir.transform.loop_partition.configured(everything=by == "option")(tir.IRModule.of(func))
    remaining = conditions(made)
    assert len(remaining) == (1 if body == "in an inner loop" and by == "hint" else 0), made
    kept = [n for n in walk(made["main"].body) if isinstance(n, For) and n.loop_var.name == "i"]
    assert len(kept) == loops, made
    assert_same_result(func, made, engines=["interpreter", "llvm"])


def test_values_are_left_alone_unless_asked():
    func = tir.IRModule.of(parse(LOOP.format(hint="", body=BODIES["padding"][0])))
    assert tir.structural_equal(tir.transform.loop_partition(func), func)


def test_a_condition_on_memory_that_the_loop_writes_is_no_place_to_cut():
    func = tir.IRModule.of(parse(LOOP.format(hint=HINT, body="B[i] = T.Select(i < A[3], 1, 2)\n        A[i] = k")))
    made = tir.transform.loop_partition(func)
    assert len(conditions(made)) == 1
    assert_same_result(func, made, engines=["interpreter"])


@pytest.mark.parametrize(
    "condition", ["i < 5", "T.likely(i < 5)", "T.likely(i < 5) and i < 7", "T.likely(T.likely(i < 5))"]
)
def test_a_condition_said_to_be_likely_is_partitioned_as_it_is(condition):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((20,), "int32")):
    for i in T.serial(20, annotations={{"pragma_loop_partition_hint": 1}}):
        if {condition}:
            A[i] = i
""")
    done = tir.transform.loop_partition(func)
    assert "range(5)" in done.script() and "if " not in done.script()
    a = np.full(20, 9, "int32")
    tir.interp.run(done, a)
    assert a.tolist() == [0, 1, 2, 3, 4, *[9] * 15]


@pytest.mark.parametrize(
    ("condition", "loops", "inner"),
    [
        ("i < k", 2, ""),
        ("k > i", 2, ""),
        ("i <= k", 2, ""),
        ("i * 3 < k", 2, ""),
        ("i > k", 1, ""),
        ("i * 2 > k", 1, ""),
        ("k * i > 9", 1, ""),
        ("T.cast(i, 'float32') < T.float32(9.5)", 1, ""),
        ("i + j < k", 2, "for j in range(2):"),
        ("i + j < k", 2, "for j in range(1, 2):"),
        ("i - j < k", 2, "for j in range(2):"),
        ("i + j < k", 1, "for j in range(A[3]):"),
    ],
)
def test_a_loop_is_cut_where_an_index_stops_to_be_below_a_symbol(condition, loops, inner):
    body = f"B[i] = B[i] * 3 + T.Select({condition}, 1, 2)"
    func = parse(LOOP.format(hint=HINT, body=f"{inner}\n            {body}" if inner else body))
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    kept = [n for n in walk(made["main"].body) if isinstance(n, For) and n.loop_var.name == "i"]
    assert len(kept) == loops, made
    # up to where the first part is asked, nothing is left to ask
    assert not [n for n in walk(kept[0]) if isinstance(n, Select)] or loops == 1, made
    for k in (-1, 0, 2, 3, 7, 19, 20, 60):
        a = np.full(40, 2, "int32")
        found, wanted = np.zeros(40, "int32"), np.zeros(40, "int32")
        tir.interp.run(func, a, wanted, k)
        tir.interp.run(made["main"], a, found, k)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("extent", "cut", "is_known_to_be_less"),
    [
        ("(n + 3) // 4", "n // 4", True),  # rounding down keeps the order
        ("(n + 1) // 2", "n // 2", True),
        ("n // 4", "(n + 3) // 4", False),
        ("n // 4", "n // 2", False),
        ("n // 2", "n // 4", False),
    ],
)
def test_a_loop_is_cut_at_a_quotient_that_may_be_behind_its_end(extent, cut, is_known_to_be_less):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((40,), "int32"), n: T.int32):
    for i in T.serial(0, {extent}{HINT}):
        A[i] = T.Select(i < {cut}, 1, 2)
""")
    made = tir.transform.loop_partition(func)
    assert ("T.min" not in made.script()) is is_known_to_be_less
    for n in (-5, 0, 1, 4, 6, 7, 39):
        found, wanted = np.zeros(40, "int32"), np.zeros(40, "int32")
        tir.interp.run(func, wanted, n)
        tir.interp.run(made, found, n)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("extent", "cut", "loops"),
    [("(n + 4) // 4", "n // 4", 1), ("(n + 5) // 4", "n // 4", 2), ("(n + 3) // 4", "n // 3", 2), ("n + 1", "n", 1)]
    + [("n + 2", "n", 2), ("n + 1", "n // 2", 2), ("T.min(n, 1)", "n // 2", 0)],
)
def test_what_is_left_after_a_cut_is_a_loop_if_it_may_be_more_than_one(extent, cut, loops):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((40,), "int32"), b: T.handle):
    n = T.int32()
    B = T.match_buffer(b, (n,), "int32")
    for i in T.serial(0, {extent}{HINT}):
        A[i] = A[i] + T.Select(i < {cut}, 1, 2)
""")
    made = tir.transform.loop_partition(func)
    assert sum(isinstance(n, For) for n in walk(made.body)) == loops, made.script()
    for n in (0, 1, 2, 4, 6, 7, 38):
        found, wanted, size = np.zeros(40, "int32"), np.zeros(40, "int32"), np.zeros(n, "int32")
        tir.interp.run(func, wanted, size)
        tir.interp.run(made, found, size)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("rest", ["", " and i + j < 12"])
def test_a_loop_is_not_cut_at_a_name_that_its_iterations_bind(rest):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32")):
    for i in range(8):
        p: T.int32 = A[i]
        for j in T.vectorized(8):
            if i + j < p{rest}:
                B[i, j] = A[i]
""")
    assert_same_result(func, tir.IRModule.of(func), engines=["llvm"])
    made = tir.transform.loop_partition.configured(everything=True)(tir.IRModule.of(func))
    assert_same_result(func, made, engines=["interpreter"])
    assert len([n for n in walk(made["main"].body) if isinstance(n, For)]) == (4 if rest else 2)


@pytest.mark.parametrize("condition", ["M[i]", "not M[i]", "T.isnan(X[i])", "X[i] < T.float32(2)", "M[i] and i < 9"])
def test_conditions_that_are_no_comparisons_of_indices_stay(condition):
    func = parse(f"""
@T.prim_func
def f(M: T.Buffer((20,), "bool"), X: T.Buffer((20,), "float32"), B: T.Buffer((20,), "int32")):
    for i in T.serial(0, 20{HINT}):
        B[i] = T.Select({condition}, 1, 2)
""")
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    assert len(conditions(made)) == 1
    assert_same_result(func, made, engines=["interpreter", "llvm"])


@pytest.mark.parametrize("choose", ["T.if_then_else", "T.Select"])
def test_what_holds_inside_of_an_outer_loop_is_not_asked_in_an_inner_one(choose):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((80,), "int32"), B: T.Buffer((10, 8), "int32")):
    for i in T.serial(10, annotations={{"pragma_loop_partition_hint": 1}}):
        for j in T.serial(8, annotations={{"pragma_loop_partition_hint": 1}}):
            B[i, j] = {choose}(i >= 3 and j < 5, A[T.max(i * 8 + j - 24, 0)], T.Select(j >= 5, 1, 2))
""")
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    assert not conditions(made), made
    assert_same_result(func, made, engines=["interpreter", "llvm"])


def test_a_part_that_no_loop_decides_is_asked_alone():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
    for i in T.serial(10, annotations={"pragma_loop_partition_hint": 1}):
        B[i] = T.if_then_else(i >= 3 and A[i] > 4, A[i - 3], 1)
""")
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    (left,) = [n.args[0] for n in walk(made["main"].body) if isinstance(n, Call) and n.op == "if_then_else"]
    assert repr(left) == "A[i] > 4"
    assert_same_result(func, made, engines=["interpreter", "llvm"])


@pytest.mark.parametrize(
    "index, loops",
    [("T.max(i - 5, 0)", 2), ("T.min(i, 9)", 2), ("T.max(T.min(i, 9), 4)", 3), ("T.min(k, 9)", 1)],
)
def test_an_index_that_is_clamped_at_a_border_is_not_inside_of_it(index, loops):
    func = parse(LOOP.format(hint=HINT, body=f"B[i] = A[T.max({index}, 0)]"))
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    kept = [n for n in walk(made["main"].body) if isinstance(n, For)]
    assert len(kept) == loops, made
    assert ("k" in index) == any(isinstance(n, (Max, Min)) for n in walk(made["main"].body)), made
    assert_same_result(func, made, engines=["interpreter", "llvm"])


def test_the_greater_of_two_numbers_that_are_no_indices_is_no_place_to_cut():
    func = tir.IRModule.of(
        parse(LOOP.format(hint=HINT, body='B[i] = T.Cast("int32", T.max(T.Cast("float32", i), 4.0))'))
    )
    assert tir.structural_equal(tir.transform.loop_partition(func), func)


@pytest.mark.parametrize(
    "index, loops",
    [("(i + 12) % 30", 2), ("(i * 2 + 25) % 40", 2), ("(i - 7) % 30", 2), ("(i + 8) % 40", 1), ("(i + 12) % 5", 1)],
)
def test_a_loop_is_cut_where_a_remainder_begins_again_once(index, loops):
    func = parse(LOOP.format(hint=HINT, body=f"B[i] = A[{index}]"))
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    assert sum(isinstance(n, For) for n in walk(made["main"].body)) == loops, made
    assert (loops == 1) == any(isinstance(n, FloorMod) for n in walk(made["main"].body)), made
    assert_same_result(func, made, engines=["interpreter", "llvm"])


def test_a_loop_is_cut_on_both_sides_of_windows_that_begin_again():
    body = "for w in range(3):\n            B[i] = B[i] + A[(i + w + 10) % 13]"
    made = tir.transform.loop_partition(tir.IRModule.of(func := parse(LOOP.format(hint=HINT, body=body))))
    loops = [n for n in walk(made["main"].body) if isinstance(n, For) and n.loop_var.name == "i"]
    begins_again = {n.extent.value: any(isinstance(m, FloorMod) for m in walk(n)) for n in loops}
    assert begins_again == {11: False, 2: True, 4: False}, made  # from 2 to 3, 14, 16 and 20
    assert_same_result(func, made, engines=["interpreter", "llvm"])


@pytest.mark.parametrize(
    ("tile", "condition", "asked"),
    [(4, "i * 4 + j < n", 0), (4, "i * 4 + j < n and k < m", 0), (2, "i * 2 + j < n", 1), (5, "i * 5 + j < n", 1)]
    + [(4, "i * 4 + j < n and j < k % 3", 0)],
)
def test_how_many_rows_are_left_of_a_tile_is_not_asked_in_a_loop_inside(tile, condition, asked):
    func = parse(f"""
@T.prim_func
def f(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (m,), "int32")
    for i in range((n + {tile - 1}) // {tile}):
        for k in range(7):
            for j in T.unroll({tile}):
                if T.likely({condition}):
                    A[i * {tile} + j] = A[i * {tile} + j] * 3 + B[k] + j
""")
    made = tir.transform.loop_partition(func)
    size = made.buffer_map[made.params[0]].shape[0]
    inner = (n for loop in walk(made.body) if isinstance(loop, For) and loop.loop_var.name == "k" for n in walk(loop))
    assert any(isinstance(n, IfThenElse) and uses_var(n.condition, size) for n in inner) == asked, made.script()
    for n in range(10):
        found, wanted, other = np.arange(n, dtype="int32"), np.arange(n, dtype="int32"), np.arange(7, dtype="int32")
        tir.interp.run(func, wanted, other)
        tir.interp.run(made, found, other)
        np.testing.assert_array_equal(found, wanted)


def test_groups_of_panels_end_with_the_last_panel():
    """Behind the point at which a guard stops to hold, it holds nowhere: nothing runs there, and nothing asks."""
    func = parse("""
@T.prim_func
def f(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i in range((n + 15) // 16):
        for j in range(4):
            for k in range(3):
                if T.likely(i * 4 + j < (n + 3) // 4):
                    for l in T.vectorized(4):
                        if i * 16 + j * 4 + l < n:
                            A[i * 16 + j * 4 + l] = A[i * 16 + j * 4 + l] * 3 + k
""")
    made = tir.transform.loop_partition(func)
    panels = [n for n in walk(made.body) if isinstance(n, For) and n.loop_var.name == "j"]
    assert len(panels) == 1 and "(n + 3) // 4:" not in made.script(), made.script()
    for n in (0, 1, 4, 15, 16, 17, 38, 64):
        found, wanted = np.arange(n, dtype="int32"), np.arange(n, dtype="int32")
        tir.interp.run(func, wanted)
        tir.interp.run(made, found)
        np.testing.assert_array_equal(found, wanted)


VECTORS_LEFT = """
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, ((n + 3) // 4 * 4,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    C = T.alloc_buffer((12,), "int32")
    for i, p in T.grid((n + 23) // 24, 2):
        for k in range(3):
            for v in T.unroll(3):
                if i * 6 + p * 3 + v < (n + 3) // 4:
                    for lane in T.vectorized(4):
                        C[v * 4 + lane] = T.if_then_else(k == 0, 0, C[v * 4 + lane]) + A[i * 24 + p * 12 + v * 4 + lane] * k
        for v in T.unroll(3):
            for lane in T.vectorized(4):
                if i * 24 + p * 12 + v * 4 + lane < n:
                    B[i * 24 + p * 12 + v * 4 + lane] = C[v * 4 + lane]
"""


def test_what_is_left_of_a_panel_is_asked_before_a_loop_inside():
    """How many of three vectors there are, not in each iteration for each; lanes are asked for in the last of these alone."""
    func = parse(VECTORS_LEFT)
    made = tir.transform.loop_partition(func)
    inner = [n for n in walk(made.body) if isinstance(n, For) and n.loop_var.name == "k"]
    assert len(inner) == 3 and not any(isinstance(m, IfThenElse) for n in inner for m in walk(n))
    stored = [n for n in walk(made.body) if isinstance(n, BufferStore) and n.buffer.name == "B"]
    asked = [
        n
        for n in walk(made.body)
        if isinstance(n, IfThenElse) and any(getattr(m, "name", "") == "lane" for m in walk(n.condition))
    ]
    assert len(stored) == 5 and len(asked) == 3
    for n in range(31):
        padded, wanted = np.arange(-(-n // 4) * 4, dtype="int32"), np.zeros(n, "int32")
        found = wanted.copy()
        tir.interp.run(func, padded, wanted)
        tir.interp.run(made, padded, found)
        np.testing.assert_array_equal(found, wanted)
        assert n < 2 or wanted[1] == 3


def test_a_vector_of_which_any_number_of_lanes_is_there_stays_one():
    """Its first lane always is, but what is left of it would be a vector under a mask, too."""
    func = parse("""
@T.prim_func
def main(p: T.handle, q: T.handle):
    n = T.int32()
    A = T.match_buffer(p, (n, n), "float32")
    B = T.match_buffer(q, (n, n), "float32")
    for i in range(n):
        for j in T.vectorized(8):
            if j < n:
                B[i, j] = A[i, j]
""")
    made = tir.transform.loop_partition(tir.IRModule.of(func))
    extents = [n.extent for n in walk(made["main"].body) if isinstance(n, For) and n.kind == "vectorized"]
    assert [str(e) for e in extents] == ["8"]


def test_a_vector_is_cut_only_where_some_of_its_lanes_never_run():
    """Of two workers, one has a column less: its last vector runs under a mask, rather than as a shorter one and a scalar."""
    func = parse("""
@T.prim_func
def f(A: T.Buffer((63,), "float32"), B: T.Buffer((63,), "float32")):
    for i in T.parallel(2):
        for r in range(2):
            for j in T.vectorized(20):
                if i * 32 + r * 16 + j < 63 and j < 16:
                    B[i * 32 + r * 16 + j] = A[i * 32 + r * 16 + j]
""")
    made = tir.lower(func)["main"]
    stores = [s for s in statements(made.body) if isinstance(s, BufferStore)]
    assert [s.indices[0].dtype.lanes for s in stores] == [16, 16]
    assert_same_result(func, made, engines=["interpreter", "llvm"])


def test_empty_vectors_of_a_last_strip_are_left_out():
    """How many are there is asked before a loop inside: the last of them is under a mask, and others are none."""
    func = parse("""
@T.prim_func
def f(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (m,), "int32")
    for i in range((n + 11) // 12):
        for k in range(7):
            for j in T.unroll(3):
                for l in T.vectorized(4):
                    if T.likely(i * 12 + j * 4 + l < n):
                        A[i * 12 + j * 4 + l] = A[i * 12 + j * 4 + l] * 3 + B[k] + j
""")
    made = tir.transform.loop_partition(func)
    inner = [n for n in walk(made.body) if isinstance(n, For) and n.loop_var.name == "k"]
    asked = [sum(isinstance(n, IfThenElse) for n in walk(loop)) for loop in inner]
    assert asked == [0, 1, 1, 1], made.script()  # full strips, and those of three vectors, of two and of one
    for n in range(26):
        found, wanted, other = np.arange(n, dtype="int32"), np.arange(n, dtype="int32"), np.arange(7, dtype="int32")
        tir.interp.run(func, wanted, other)
        tir.interp.run(made, found, other)
        np.testing.assert_array_equal(found, wanted)
