"""Threads that would write different values to one element of shared memory at once: no barrier orders them."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.errors import BuildError, ScheduleError
from tir.script import tir as T

RULE = "threads of loop i would write different values to one element of `S"


def nested(scope: str) -> tir.PrimFunc:
    """Each tile has memory of its own."""

    @T.prim_func
    def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("tile"):
                vi = T.axis.spatial(4, i)
                S = T.alloc_buffer((1,), "int32", scope=scope)
                for _j in range(1):
                    with T.block("row"):
                        S[0] = A[vi] + 1
                for _j in range(1):
                    with T.block("O"):
                        O[vi] = S[0]

    return main


def repeated(scope: str) -> tir.PrimFunc:
    """The same memory for each iteration, which is written before it is read."""

    @T.prim_func
    def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
        S = T.alloc_buffer((2,), "int32", scope=scope)
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                S[0] = vi
            with T.block("O"):
                vi = T.axis.spatial(4, i)
                O[vi] = S[0] + A[vi]

    return main


def scheduled(make, scope, *steps):
    sch = tir.Schedule(make(scope))
    for name, *args in steps:
        getattr(sch, name)(*args)
    return sch


BIND = ("bind", "i", "threadIdx.x")


@pytest.mark.parametrize(
    "make, scope, steps",
    [
        (nested, "shared", [BIND]),
        (repeated, "shared", [BIND]),
        (nested, "local", [BIND, ("set_scope", "row", 0, "shared")]),
        (nested, "local", [BIND, ("cache_write", "row", 0, "shared")]),
        (nested, "local", [BIND, ("cache_read", "O", 0, "shared")]),
        (nested, "shared", [("split", "i", [2, 2]), ("bind", "i_1", "threadIdx.x")]),
    ],
)
def test_memory_of_a_tile_is_not_shared_by_threads(make, scope, steps):
    *before, last = steps
    sch = scheduled(make, scope, *before)
    with pytest.raises(ScheduleError, match="would write different values to one element of `S") as refused:
        getattr(sch, last[0])(*last[1:])
    assert "=1" in refused.value.witness[0] and "writes S" in refused.value.witness[0]


def halves(scope: str, value: str, index: str = "v // 2") -> tir.PrimFunc:
    """Threads write `value` at `index`, which they share or do not."""
    return tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    for _b in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("kernel"):
            S = T.alloc_buffer((8,), "int32", scope="{scope}")
            for x in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("row"):
                    v = T.axis.spatial(4, x)
                    S[{index}] = {value}
            for x in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("O"):
                    v = T.axis.spatial(4, x)
                    O[v] = S[{index}]
""")


@pytest.mark.parametrize(
    "value, index",
    [("A[v]", "v // 2"), ("A[0] + v", "v // 2"), ("A[v // 2] + A[v // 2 + v % 2]", "v // 2"), ("A[v]", "v % 2")],
)
def test_threads_that_write_one_element_at_an_index_of_their_own_are_refused(value, index):
    sch = tir.Schedule(halves("global", value, index))
    with pytest.raises(ScheduleError, match=RULE.replace("loop i", "loop x")):
        sch.set_scope("row", 0, "shared")
    with pytest.raises(BuildError, match=RULE.replace("loop i", "loop x")):
        tir.build(halves("shared", value, index), target="cuda-sim")


@pytest.mark.parametrize(
    "value, index, expected",
    [
        ("A[v // 2]", "v // 2", [5, 5, 6, 6]),
        ("A[v // 2] * 2 + v // 2", "v // 2", [10, 10, 13, 13]),
        ("A[(v % 2) * 2]", "v % 2", [5, 7, 5, 7]),
        ("A[v]", "v * 2 % 7", [5, 6, 7, 9]),
        ("A[v]", "3 - v", [5, 6, 7, 9]),
    ],
)
def test_threads_may_write_the_same_value_at_an_index_of_their_own(value, index, expected):
    sch = tir.Schedule(halves("global", value, index))
    sch.set_scope("row", 0, "shared")
    assert _result(sch) == expected


def test_two_axes_that_share_an_element_are_refused():
    """Threads of either axis alone write different elements."""
    sch = tir.Schedule(
        tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), O: T.Buffer((7,), "int32")):
    for _b in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("kernel"):
            S = T.alloc_buffer((7,), "int32")
            for y in T.thread_binding(4, thread="threadIdx.y"):
                for x in T.thread_binding(4, thread="threadIdx.x"):
                    with T.block("row"):
                        vy, vx = T.axis.remap("SS", [y, x])
                        S[vy + vx] = A[vy, vx]
            for i in range(7):
                with T.block("O"):
                    v = T.axis.spatial(7, i)
                    O[v] = S[v]
""")
    )
    with pytest.raises(ScheduleError, match="would write different values"):
        sch.set_scope("row", 0, "shared")


def test_the_rule_is_about_shared_memory_only():
    """Beside it, each thread writes another value to the only element of its registers."""
    sch = tir.Schedule(
        tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((4,), "int32", scope="shared")
    L = T.alloc_buffer((1,), "int32", scope="local")
    for i in range(4):
        with T.block("row"):
            v = T.axis.spatial(4, i)
            L[0] = A[v] + v
        with T.block("copy"):
            v = T.axis.spatial(4, i)
            S[v] = L[0]
        with T.block("O"):
            v = T.axis.spatial(4, i)
            O[v] = S[v]
""")
    )
    sch.bind("i", "threadIdx.x")
    assert _result(sch) == [5, 7, 9, 12]


ORDER = "`S` .shared memory. would be read with another value than in the program"


def overwritten(scope: str) -> tir.PrimFunc:
    """Each iteration reads what it wrote; the next statement wrote the element of another iteration in between."""

    @T.prim_func
    def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
        S = T.alloc_buffer((4,), "int32", scope=scope)
        for i in range(4):
            with T.block("row"):
                v = T.axis.spatial(4, i)
                S[v] = A[v]
            with T.block("next"):
                v = T.axis.spatial(4, i)
                S[(v + 1) % 4] = A[v] * 100
            with T.block("O"):
                v = T.axis.spatial(4, i)
                O[v] = S[v]

    return main


def windows(scope: str) -> tir.PrimFunc:
    """Each iteration fills a window that overlaps the next one's."""

    @T.prim_func
    def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
        S = T.alloc_buffer((5,), "int32", scope=scope)
        for i in range(4):
            for j in range(2):
                with T.block("row"):
                    v, w = T.axis.remap("SS", [i, j])
                    S[v + w] = A[v] * 10 + w
            for j in range(2):
                with T.block("O"):
                    v, w = T.axis.remap("SR", [i, j])
                    with T.init():
                        O[v] = 0
                    O[v] = O[v] + S[v + w]

    return main


@pytest.mark.parametrize("make", [overwritten, windows])
def test_shared_memory_that_each_iteration_fills_again_is_refused(make):
    """Threads of a loop do not run one after the other: they wrote the element before it is read."""
    sch = tir.Schedule(make("shared"))
    with pytest.raises(ScheduleError, match=ORDER) as refused:
        sch.bind("i", "threadIdx.x")
    assert "reads S" in refused.value.witness[0] and "writes S" in refused.value.witness[1]
    sch = tir.Schedule(make("local"))
    sch.bind("i", "threadIdx.x")
    with pytest.raises(ScheduleError, match=ORDER):
        sch.set_scope("row", 0, "shared")


def test_a_copy_that_later_steps_place_between_threads_is_refused():
    sch = tir.Schedule(overwritten("local"))
    sch.bind("i", "threadIdx.x")
    with pytest.raises(ScheduleError, match=ORDER.replace("`S`", "`S_shared`")):
        sch.cache_write("next", 0, "shared")


def test_overlapping_windows_of_one_copy_are_accepted():
    """All threads that write an element write the value that it has in the program."""
    program = windows("shared").script().replace("A[v] * 10 + w", "A[T.min(v + w, 3)]")
    sch = tir.Schedule(tir.script.parse(program))
    sch.bind("i", "threadIdx.x")
    assert _result(sch) == [11, 13, 16, 18]


def test_overlapping_windows_of_a_padded_copy_are_accepted():
    """Where the condition is false nothing is read: instances of the padding agree as well."""
    value = "T.if_then_else(v + w >= 1, A[T.max(v + w - 1, 0)], 0)"
    sch = tir.Schedule(tir.script.parse(windows("shared").script().replace("A[v] * 10 + w", value)))
    sch.bind("i", "threadIdx.x")
    assert _result(sch) == [5, 11, 13, 16]


def test_lowering_refuses_it_too():
    program = nested("shared").script().replace("range(4)", 'T.thread_binding(4, thread="threadIdx.x")')
    with pytest.raises(BuildError, match=RULE):
        tir.build(tir.script.parse(program), target="cuda-sim")


@pytest.mark.parametrize("make, scope", [(nested, "local"), (repeated, "local")])
@pytest.mark.parametrize("thread", ["threadIdx.x", "blockIdx.x", "vthread.x"])
def test_memory_of_each_thread_is_accepted(make, scope, thread):
    assert _result(scheduled(make, scope, ("bind", "i", thread))) == _expected(make)


def test_memory_of_each_thread_block_is_accepted():
    assert _result(scheduled(nested, "shared", ("bind", "i", "blockIdx.x"))) == _expected(nested)


@T.prim_func
def same_value(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("tile"):
            vi = T.axis.spatial(4, i)
            S = T.alloc_buffer((4,), "int32", scope="shared")
            L = T.alloc_buffer((1,), "int32", scope="local")
            for j in range(4):
                with T.block("own"):
                    vj = T.axis.spatial(4, j)
                    L[0] = A[vj]
                with T.block("copy"):
                    vj = T.axis.spatial(4, j)
                    S[vj] = L[0]
            for _j in range(1):
                with T.block("O"):
                    O[vi] = S[3 - vi]


def test_threads_may_write_the_same_value():
    sch = tir.Schedule(same_value)
    sch.unroll("own.j")
    assert _result(sch) == [9, 7, 6, 5]


@T.prim_func
def other_elements(A: T.Buffer((2,), "int32"), O: T.Buffer((2,), "int32")):
    """Each thread has all elements in memory of its own, and takes another one of them."""
    L = T.alloc_buffer((2,), "int32", scope="local")
    for _b in T.thread_binding(1, thread="blockIdx.x"):
        for j in range(2):
            with T.block("own"):
                vj = T.axis.spatial(2, j)
                L[vj] = A[vj]
        for i in T.thread_binding(2, thread="threadIdx.x"):
            with T.block("tile"):
                vi = T.axis.spatial(2, i)
                S = T.alloc_buffer((1,), "int32", scope="global")
                for _j in range(1):
                    with T.block("copy"):
                        S[0] = L[vi]
                for _j in range(1):
                    with T.block("O"):
                        O[vi] = S[0]


def test_an_element_that_a_thread_chooses_of_its_own_memory_is_a_value_of_its_own():
    with pytest.raises(ScheduleError, match=RULE):
        tir.Schedule(other_elements).set_scope("copy", 0, "shared")


@T.prim_func
def one_writes(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    for _b in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("kernel"):
            S = T.alloc_buffer((1,), "int32", scope="shared")
            for i in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("first"):
                    vi = T.axis.spatial(4, i)
                    T.where(i == 2)
                    S[0] = A[vi]
            for i in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("O"):
                    vi = T.axis.spatial(4, i)
                    O[vi] = S[0]


def test_one_thread_may_write():
    assert _result(tir.Schedule(one_writes)) == [7, 7, 7, 7]
    with pytest.raises(BuildError, match="different values"):
        tir.lower(tir.script.parse(one_writes.script().replace("i == 2", "i >= 2")), target="cuda")


def _result(sch) -> list[int]:
    if "vthread" in sch.mod.script():
        sch.bind(sch.add_unit_loop("i"), "threadIdx.x")
    out = np.zeros(4, "int32")
    tir.build(sch.mod, target="cuda-sim")[next(iter(sch.mod))](np.array([5, 6, 7, 9], "int32"), out)
    return out.tolist()


def _expected(make) -> list[int]:
    return [6, 7, 8, 10] if make is nested else [5, 7, 9, 12]


def test_a_clause_gives_threads_no_memory_of_their_own():
    """Threads have memory of their own by its scope; global memory that a clause names would be shared."""
    sch = tir.Schedule(repeated("global"))
    sch.privatize("i", "S")
    with pytest.raises(ScheduleError, match="loop `i` cannot be bound to threads"):
        sch.bind("i", "threadIdx.x")
    sch.set_scope("row", 0, "local")
    sch.bind("i", "threadIdx.x")
    assert _result(sch) == _expected(repeated)


def test_registers_with_separated_axes_run_on_the_simulator():
    @T.prim_func
    def copy(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
        L = T.alloc_buffer((4, 2), "int32", scope="local", axis_separators=[1])
        for i in T.thread_binding(4, thread="threadIdx.x"):
            for j in range(2):
                with T.block("L"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    L[vi, vj] = A[vi] * 2 + vj
            with T.block("O"):
                vi = T.axis.spatial(4, i)
                O[vi] = L[vi, 1] - L[vi, 0]

    assert _result(tir.Schedule(copy)) == [1, 1, 1, 1]


def test_a_problem_that_is_looked_at_leaves_the_budget_of_exact_sets_to_others():
    """A generator that yields within ``bounded`` keeps the budget for as long as anyone holds it, as a traceback does."""
    from tir.poly import relation
    from tir.schedule.invariants.shared_writes import problems_when_complete

    sch = tir.Schedule(repeated("shared"))
    sch.bind("i", "threadIdx.x", unsafe=True)
    problems = problems_when_complete(sch.func)
    assert RULE in next(problems).rule
    assert relation._current.limit is None


def in_place(store: str) -> tir.PrimFunc:
    return tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((9,), "int32"), O: T.Buffer((8,), "int32")):
    for x in range(8):
        with T.block("O"):
            v = T.axis.spatial(8, x)
            S = T.alloc_buffer((9,), "int32", scope="shared")
            for i in range(9):
                S[i] = A[i]
            {store}
            O[v] = S[v]
""")


def thread_bound(func: tir.PrimFunc) -> tir.PrimFunc:
    """The program with its outermost loop written as a loop of threads."""
    return tir.script.parse(func.script().replace("range(8)", 'T.thread_binding(8, "threadIdx.x")'))


@pytest.mark.parametrize("store", ["S[v] = S[v + 1]", "S[v] = S[v // 2] + 1", "S[v + 1] = S[v + 1] + S[v]"])
def test_threads_read_nothing_that_another_writes_in_the_same_statement(store):
    sch = tir.Schedule(in_place(store), target="cuda")
    with pytest.raises(ScheduleError, match="would (read in one statement what others write|be read with)") as refused:
        sch.bind("x", "threadIdx.x")
    assert "writes S[" in str(refused.value) and "reads S[" in str(refused.value)
    with pytest.raises(BuildError, match="would read in one statement what others write in it, to `S`"):
        tir.build(thread_bound(in_place(store)), "cuda-sim")


@pytest.mark.parametrize(
    "store", ["S[v] = S[v] * 2", "S[v] = S[8]", "S[v] = S[8] + S[v]", "if v < 4:\n                S[v] = S[v + 4]"]
)
def test_threads_may_read_in_a_statement_what_no_other_writes_there(store):
    sch = tir.Schedule(in_place(store), target="cuda")
    sch.bind("x", "threadIdx.x")
    a, got, want = np.arange(9, dtype="int32"), np.zeros(8, "int32"), np.zeros(8, "int32")
    tir.interp.run(in_place(store), a, want)
    tir.build(sch.mod, "cuda-sim")(a, got)
    assert got.tolist() == want.tolist()


def test_what_is_undecided_of_one_memory_does_not_hide_a_race_in_another():
    sch = tir.Schedule(
        tir.script.parse("""
@T.prim_func
def main(a: T.handle, o: T.handle, m: T.int32, n: T.int32):
    A = T.match_buffer(a, (m, n), "float32")
    O = T.match_buffer(o, (m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = A[vi, vj] * T.float32(2)
""")
    )
    outer, thread = sch.split(sch.fuse(*sch.get_loops("O")), [None, 32])
    sch.bind(thread, "threadIdx.x")
    sch.split(outer, [4, None])  # from here on nobody can say that threads store to elements of their own
    copy = sch.cache_read("O", 0, "shared")
    sch.compute_at(copy, thread)
    spread, _ = sch.split(sch.get_loops(copy)[-1], [32, None])
    sch.bind(spread, "threadIdx.z")
    with pytest.raises(tir.ScheduleError):
        sch.set_scope(copy, 0, "global")


def warp_of_tiles(where: str = "True", value: str = "B[p, j]") -> tir.Schedule:
    """Each thread fills its warp memory at `j0 * ((m + 1) // 2) + j1`, which exact sets do not decide."""
    text = """
@T.prim_func
def main(a: T.handle, m: T.int32, c: T.handle):
    B = T.match_buffer(a, (2, m), "int32")
    C = T.match_buffer(c, (2, m), "int32")
    for o in T.thread_binding(2, thread="threadIdx.x"):
        with T.block("tile"):
            S = T.alloc_buffer((m,), "int32", scope="warp")
            for j0 in range(2):
                for j1 in range((m + 1) // 2):
                    with T.block("S"):
                        p = T.axis.spatial(2, o)
                        j = T.axis.spatial(m, j0 * ((m + 1) // 2) + j1)
                        T.where(j0 * ((m + 1) // 2) + j1 < m and WHERE)
                        S[j] = VALUE
                    with T.block("C"):
                        p = T.axis.spatial(2, o)
                        j = T.axis.spatial(m, j0 * ((m + 1) // 2) + j1)
                        T.where(j0 * ((m + 1) // 2) + j1 < m)
                        C[p, j] = S[j]
"""
    return tir.Schedule(tir.script.parse(text.replace("WHERE", where).replace("VALUE", value)))


def test_warp_memory_that_no_thread_indexes_for_itself_is_not_to_be_shared():
    with pytest.raises(
        ScheduleError, match="threads of loop o would write different values to one element of `S`"
    ) as error:
        warp_of_tiles().set_scope("S", 0, "shared")
    assert "each of them writes S[j]" in str(error.value)
    for sch in (warp_of_tiles(value="B[0, j]"), warp_of_tiles(where="o == 0")):
        sch.set_scope("S", 0, "shared")


def test_values_that_int64_does_not_hold():
    """Where no iteration comes, the copy is the greatest of uint64, the same for all threads."""

    @T.prim_func
    def f(A: T.Buffer((6, 1), "int16"), O: T.Buffer((6,), "uint64")):
        S = T.alloc_buffer((6,), "uint64")
        for i in range(6):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("S"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.reduce(1, j)
                    T.where(j < 1)
                    with T.init():
                        S[vi] = T.max_value("uint64")
                    S[vi] = T.min(S[vi], T.Cast("uint64", A[vi, vk]))
        for i in range(6):
            with T.block("O"):
                vi = T.axis.spatial(6, i)
                O[vi] = S[vi]

    sch = tir.Schedule(f)
    sch.cache_write("S", 0, "shared")
    assert sch.get("S").writes[0].buffer.scope == "shared"
