"""What is evaluated when: lazy operators, conditions and loops that may be empty, for every step that evaluates elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused, same, schedule

import tir
from tir.analysis.evaluation import Certain, evaluated_parts, is_lazy
from tir.expr import BufferLoad
from tir.interp import run
from tir.op import call
from tir.script import parse

HEAD = """
@T.prim_func
def main(P: T.Buffer((8,), "int32"), A: T.Buffer((8,), "int32"), n: T.int32, C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
"""


def program(*lines: str) -> str:
    return HEAD + "".join(f"            {line}\n" for line in lines)


# what reads A[P[vi]], or A[8 // P[vi]], only sometimes
GUARDED_READS = {
    "and": ["C[vi] = T.Cast('int32', P[vi] > 0 and A[P[vi]] > 0)"],
    "or": ["C[vi] = T.Cast('int32', P[vi] <= 0 or A[P[vi]] > 0)"],
    "not or": ["C[vi] = T.Cast('int32', not (P[vi] <= 0 or A[P[vi]] > 0))"],
    "nested and": ["C[vi] = T.Cast('int32', n > 0 and (P[vi] > 0 and A[P[vi]] > 0))"],
    "select of and": ["C[vi] = T.Select(P[vi] > 0 and A[P[vi]] > 0, 1, 2)"],
    "if_then_else": ["C[vi] = T.if_then_else(P[vi] > 0, A[P[vi]], 0)"],
    "if": ["C[vi] = 0", "if P[vi] > 0:", "    C[vi] = A[P[vi]]"],
    "let of and": ["x: T.bool = P[vi] > 0 and A[P[vi]] > 0", "C[vi] = T.Cast('int32', x)"],
    "loop": ["C[vi] = 0", "for k in range(T.max(P[vi], 0)):", "    C[vi] = C[vi] + A[P[vi]]"],
    "loop of n": ["C[vi] = 0", "for k in range(n):", "    C[vi] = C[vi] + A[P[vi]]"],
    "while": ["C[vi] = 0", "while C[vi] < P[vi]:", "    C[vi] = C[vi] + A[P[vi]] + 1"],
    "assert": ["assert P[vi] > 0, 'P'", "C[vi] = A[P[vi]]"],
    "divisor": ["C[vi] = T.Cast('int32', P[vi] > 1 and A[8 // P[vi]] > 0)"],
}


@pytest.mark.parametrize("lines", GUARDED_READS.values(), ids=GUARDED_READS)
def test_a_copy_that_would_read_what_the_block_may_not(lines: list[str]) -> None:
    refused(lambda: schedule(program(*lines)).reindex("C", "A"), "reads buffer A only where a condition holds")
    cache = lambda: schedule(program(*lines)).reindex_cache_read("C", "A", "global", lambda i: i)  # noqa: E731
    refused(cache, "reads buffer A only where a condition holds")


# what stores C[vi] only sometimes
GUARDED_STORES = {
    "loop": ["for k in range(T.max(A[vi], 0)):", "    C[vi] = A[vi] + k"],
    "loop of n": ["for k in range(n):", "    C[vi] = A[vi] + k"],
    "loop of vi": ["for k in range(vi):", "    C[vi] = A[vi] + k"],
    "while": ["while C[vi] < A[vi]:", "    C[vi] = A[vi]"],
    "if": ["if P[vi] > 0:", "    C[vi] = A[vi]"],
    "else": ["if P[vi] > 0:", "    T.evaluate(0)", "else:", "    C[vi] = A[vi]"],
}


@pytest.mark.parametrize("lines", GUARDED_STORES.values(), ids=GUARDED_STORES)
def test_a_copy_back_of_what_the_block_may_not_store(lines: list[str]) -> None:
    refused(lambda: schedule(program(*lines)).reindex("C", ("write", 0)), "does not store at every value")
    cache = lambda: schedule(program(*lines)).reindex_cache_write("C", 0, "global", lambda i: i)  # noqa: E731
    refused(cache, "does not store at every value")


CERTAIN_STORES = {
    "a constant loop": ["for k in range(3):", "    C[vi] = A[vi] + k"],
    "a loop that runs": ["for k in range(vi + 1):", "    C[vi] = A[vi] + k"],
    "a loop in a loop that runs": ["for k in range(1, vi + 2):", "    for l in range(k):", "        C[vi] = k + l"],
    "both branches": ["if P[vi] > 0:", "    C[vi] = A[vi]", "else:", "    C[vi] = 0"],
    "before a condition": ["C[vi] = 0", "for k in range(n):", "    C[vi] = k"],
    "under a let": ["x: T.int32 = A[vi]", "C[vi] = x"],
}


@pytest.mark.parametrize("lines", CERTAIN_STORES.values(), ids=CERTAIN_STORES)
def test_a_copy_back_of_what_is_surely_stored(lines: list[str]) -> None:
    sch = schedule(program(*lines))
    sch.reindex("C", ("write", 0))
    same(sch, n=3)


CERTAIN_READS = {
    "the first operand": ["C[vi] = T.Cast('int32', A[P[vi]] > 0 and P[vi] > 0)"],
    "select": ["C[vi] = T.Select(P[vi] > 0, A[P[vi]], 0)"],
    "both branches": ["C[vi] = T.if_then_else(P[vi] > 0, A[P[vi]], A[P[vi]] + 1)"],
    "another condition": ["C[vi] = A[P[vi]] + T.if_then_else(P[vi] > 0, 1, 0)"],
    "the condition": ["C[vi] = T.if_then_else(A[P[vi]] > 0, 1, 0)"],
    "a bound": ["C[vi] = 0", "for k in range(A[P[vi]]):", "    C[vi] = k"],
}


@pytest.mark.parametrize("lines", CERTAIN_READS.values(), ids=CERTAIN_READS)
def test_a_copy_that_reads_what_the_block_reads(lines: list[str]) -> None:
    sch = schedule(program(*lines))
    sch.reindex("C", "A")
    same(sch, n=3)


def test_an_init_stores_every_result() -> None:
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            if A[vi, vk] > 1:
                C[vi] = C[vi] + A[vi, vk]
"""
    )
    sch.reindex("C", ("write", 0))
    same(sch)


LAZY = {
    "and": "T.Cast('int32', m + 100000000 < 8 and O[m + 100000000] > 0)",
    "or": "T.Cast('int32', m + 100000000 >= 8 or O[m + 100000000] > 0)",
    "not or": "T.Cast('int32', not (m + 100000000 >= 8 or O[m + 100000000] > 0))",
    "nested and": "T.Cast('int32', m > 0 and (m + 100000000 < 8 and O[m + 100000000] > 0))",
    "select of and": "T.Select(m + 100000000 < 8 and O[m + 100000000] > 0, 1, 0)",
    "if_then_else": "T.if_then_else(m + 100000000 < 8, O[m + 100000000], 0)",
}


@pytest.mark.parametrize("value", LAZY.values(), ids=LAZY)
def test_an_element_that_a_loop_may_not_touch_is_not_held_in_a_register(value: str) -> None:
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), m: T.int32, O: T.Buffer((8,), "int32")):
    for i in range(8):
        O[m] = O[m] + A[i] + {value}
""")
    results = []
    for target in ("interpreter", "llvm"):
        out = np.zeros(8, "int32")
        tir.build(func, target)(np.arange(8, dtype="int32"), 7, out)
        results.append(out.tolist())
    assert results[0] == results[1]


def test_what_both_branches_load_is_certain() -> None:
    func = parse(program("C[vi] = T.if_then_else(P[vi] > 0, A[vi], A[vi] + A[0])"))
    loads = Certain(lambda node: [repr(node)] if isinstance(node, BufferLoad) else []).of(func.body)
    assert loads == {"P[vi]", "A[vi]"}


def test_an_address_loads_nothing() -> None:
    func = parse(program("T.evaluate(T.call_extern('f', T.address_of(A[P[vi]]), dtype='int32'))", "C[vi] = 0"))
    loads = Certain(lambda node: [repr(node)] if isinstance(node, BufferLoad) else []).of(func.body)
    assert loads == {"P[vi]"}


def test_the_parts_of_a_choice_have_opposite_conditions() -> None:
    x = tir.Var("x")
    choice = call("if_then_else", x > 0, x, x + 1, dtype="int32")
    assert [repr(condition) for _, condition in evaluated_parts(choice)] == ["None", "x > 0", "not x > 0"]
    assert is_lazy(choice) and not is_lazy(x + 1)


def hostile(func: tir.PrimFunc) -> np.ndarray:
    """What ``func`` computes where every condition is false, and what it guards is out of bounds or has no value."""
    out = np.full(8, 9, "int32")
    run(func, np.array([0, -2000000000, 0, -1, 0, 0, -8, 0], "int32"), np.zeros(8, "int32"), 0, out)
    return out


@pytest.mark.parametrize("step", ["cache_read", "cache_write", "cache_inplace"])
@pytest.mark.parametrize("lines", [v for k, v in {**GUARDED_READS, **GUARDED_STORES}.items() if k != "assert"])
def test_other_copies_guard_what_they_read(lines: list[str], step: str) -> None:
    func = parse(program(*lines))
    sch = tir.Schedule(func)
    try:
        getattr(sch, step)("C", "A" if step == "cache_read" else "C", "local")
    except tir.ScheduleError:
        return
    np.testing.assert_array_equal(hostile(sch.mod["main"]), hostile(func))
