"""Stores outside of blocks, in programs with blocks: steps that keep a copy of the memory do not miss them."""

from __future__ import annotations

import pytest

import tir
from tir.script import parse
from tir.testing import assert_same_result

HEAD = """
@T.prim_func
def main(A: T.Buffer((6,), "int32"), O: T.Buffer((6,), "int32"), Q: T.Buffer((6,), "int32")):
"""
BETWEEN = (
    HEAD
    + """
    for i in range(6):
        with T.block("W"):
            vi = T.axis.spatial(6, i)
            O[vi] = A[vi] + 1
    for i in range(6):
        O[i] = O[i] * 2
    for i in range(6):
        with T.block("X"):
            vi = T.axis.spatial(6, i)
            Q[vi] = O[vi]
"""
)
ABOVE = (
    HEAD
    + """
    for i in range(6):
        O[i] = A[i]
        with T.block("X"):
            vi = T.axis.spatial(6, i)
            Q[vi] = O[vi] + A[vi]
"""
)
BELOW = (
    HEAD
    + """
    for i in range(6):
        with T.block("W"):
            vi = T.axis.spatial(6, i)
            O[vi] = A[vi] * 3
        if A[i] > 0:
            O[i] = 5
    for i in range(6):
        with T.block("X"):
            vi = T.axis.spatial(6, i)
            Q[vi] = O[vi]
"""
)
ONLY = (
    HEAD
    + """
    B = T.alloc_buffer((6,), "int32")
    for i in range(6):
        B[i] = A[i]
    for i in range(6):
        with T.block("X"):
            vi = T.axis.spatial(6, i)
            Q[vi] = B[vi] + B[5 - vi]
"""
)
LEGAL = {
    "cache_read after it": (BETWEEN, lambda s: s.cache_read("X", 0, "local")),
    "cache_read in the loop": (ABOVE, lambda s: s.cache_read("X", 0, "local")),
    "cache_read of its result": (ONLY, lambda s: s.cache_read("X", 0, "local")),
    "reindex of a read in the loop": (ABOVE, lambda s: s.reindex("X", ("read", 0))),
    "reindex_cache_read after it": (BETWEEN, lambda s: s.reindex_cache_read("X", 0, "local", lambda i: (5 - i,))),
    "cache_write before it": (BETWEEN, lambda s: s.cache_write("W", 0, "local")),
    "write_at before it": (BELOW, lambda s: s.write_at("W.i", "W", 0, "local")),
}


@pytest.mark.parametrize("name", LEGAL)
def test_a_copy_follows_a_store_outside_of_blocks(name):
    text, step = LEGAL[name]
    sch = tir.Schedule(parse(text))
    step(sch)
    assert_same_result(parse(text), sch.mod)


REFUSED = {
    "cache_write": (BELOW, lambda s: s.cache_write("W", 0, "local")),
    "cache_write for a later reader": (BETWEEN, lambda s: s.cache_write("W", 0, "local", consumer_blocks=["X"])),
    "reindex of a write": (BELOW, lambda s: s.reindex("W", ("write", 0))),
    "reindex_cache_write": (BELOW, lambda s: s.reindex_cache_write("W", 0, "local", lambda i: (5 - i,))),
    "cache_inplace": (
        BELOW.replace("O[vi] = A[vi] * 3", "O[vi] = O[vi] * 3"),
        lambda s: s.cache_inplace("W", "O", "local"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_copy_that_is_written_back_does_not_hide_a_store_outside_of_blocks(name):
    text, step = REFUSED[name]
    with pytest.raises(tir.ScheduleError, match="writes buffer O outside of a block"):
        step(tir.Schedule(parse(text)))


def test_the_domain_of_an_iterator_keeps_to_the_memory_that_its_loop_reads():
    func = parse("""
@T.prim_func
def main(R: T.Buffer((6,), "int32"), A: T.Buffer((20,), "int32"), O: T.Buffer((5,), "int32")):
    for i in range(5):
        with T.block("row"):
            vi = T.axis.spatial(5, i)
            for k in range(R[vi + 1] - R[vi]):
                with T.block("O"):
                    vk = T.axis.reduce(R[vi + 1] - R[vi], k)
                    with T.init():
                        O[vi] = 0
                    O[vi] += A[R[vi] + vk]
""")
    sch = tir.Schedule(func)
    sch.cache_read("O", "R", "local")
    rows = tir.testing.random_inputs(func)
    rows[0][:] = [0, 2, 5, 6, 9, 12]
    assert_same_result(func, sch.mod, rows)


INLINED = (
    HEAD
    + """
    B = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("W"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[5 - vi]
        {bare}
    for i in range(6):
        with T.block("X"):
            vi = T.axis.spatial(6, i)
            O[vi] = B[vi] + 1
"""
)


@pytest.mark.parametrize("bare", ["A[i] = 7", "B[i] = 3"])
def test_a_block_whose_memory_is_stored_to_outside_of_blocks_is_not_inlined(bare):
    with pytest.raises(tir.ScheduleError) as error:
        tir.Schedule(parse(INLINED.format(bare=bare))).compute_inline("W")
    assert not isinstance(error.value, tir.errors.InternalError)


def test_partial_results_are_not_combined_after_a_use_outside_of_blocks():
    func = parse(
        HEAD
        + """
    for i in range(6):
        for k in range(3):
            with T.block("W"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    O[vi] = 0
                O[vi] = O[vi] + A[(vi + vk) % 6]
        Q[i] = O[i]
"""
    )
    with pytest.raises(tir.ScheduleError, match="uses the result of block `W` in the same loops, outside of a block"):
        tir.Schedule(func).rfactor("k", 0)


@pytest.mark.parametrize(
    "step", [("parallel",), ("vectorize",), ("bind", "threadIdx.x"), ("bind", "blockIdx.x"), ("bind", "vthread")]
)
@pytest.mark.parametrize(
    ("store", "apart"), [("O[0] = A[i]", False), ("O[i] = O[i - 1]", False), ("O[i] = A[i]", True)]
)
def test_iterations_of_stores_alone_run_at_once_if_they_are_independent(step, store, apart):
    sch = tir.Schedule(parse(f"{HEAD}    for i in range(1, 6):\n        {store}\n"))
    name, *given = step
    if apart:
        getattr(sch, name)("i", *given)
    else:
        with pytest.raises(
            tir.ScheduleError, match="not independent|may be read by other iterations|same element|other iteration"
        ):
            getattr(sch, name)("i", *given)
