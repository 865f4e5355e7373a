"""Steps of programs with buffers and constants that statements declare: what uses them stays inside."""

import pytest

import tir
from tests.prim_checks import refused, same
from tir.script import parse

TABLE = """
@T.prim_func
def main(A: T.Buffer((8, 4), "int32"), O: T.Buffer((8, 4), "int32")):
    B = T.alloc_buffer((8, 4), "int32")
    data = T.allocate_const([3, -1, 2, -2], "int32", [4])
    K = T.decl_buffer((4,), "int32", data=data)
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * K[vj]
    for i, j in T.grid(8, 4):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = B[vi, vj] + K[vi % 4]
"""
STEPS = {
    "compute_at": lambda sch: sch.compute_at("B", sch.get_loops("O")[0]),
    "reverse_compute_at": lambda sch: sch.reverse_compute_at("O", sch.get_loops("B")[0]),
    "compute_inline": lambda sch: sch.compute_inline("B"),
    "reverse_compute_inline": lambda sch: sch.reverse_compute_inline("O"),
    "compute_root": lambda sch: (STEPS["compute_at"](sch), sch.compute_root("B")),
    "merge": lambda sch: sch.merge(sch.get_loops("B")[0], sch.get_loops("O")[0]),
    "cache_read": lambda sch: sch.cache_read("O", "B", "local"),
    "cache_read of the table": lambda sch: sch.cache_read("O", "K", "local"),
    "cache_write": lambda sch: sch.cache_write("B", "B", "local"),
}


@pytest.mark.parametrize("step", STEPS)
def test_blocks_move_inside_of_the_constants_that_they_read(step):
    sch = tir.Schedule(parse(TABLE))
    STEPS[step](sch)
    same(sch)


def test_a_block_that_would_leave_the_memory_that_it_uses_is_refused():
    memory = 'data = T.allocate([4], "int32", "global")'
    text = TABLE.replace('data = T.allocate_const([3, -1, 2, -2], "int32", [4])', memory)
    sch = tir.Schedule(parse(text.replace("    for i, j", "    for k in range(4):\n        K[k] = k\n    for i, j", 1)))
    STEPS["compute_at"](sch)
    same(sch)
    refused(lambda: sch.compute_root("B"), f"`K` would be used outside of `{memory}`, which defines it")


LAYOUTS = {
    "storage_align": lambda sch: sch.storage_align("K", 0, 0, 4, 1),
    "unsafe_set_dtype": lambda sch: sch.unsafe_set_dtype("K", 0, "int64"),
    "transform_layout": lambda sch: sch.transform_layout("K", "K", lambda i, j: (i, j * 2)),
}


@pytest.mark.parametrize("step", LAYOUTS)
def test_a_buffer_over_memory_of_a_fixed_size_keeps_its_layout(step):
    text = """
@T.prim_func
def main(O: T.Buffer((4, 2), "int32")):
    data = T.allocate([8], "int32", "global")
    K = T.decl_buffer((4, 2), "int32", data=data)
    for i, j in T.grid(4, 2):
        with T.block("K"):
            vi, vj = T.axis.remap("SS", [i, j])
            K[vi, vj] = vi * 3 - vj
    for i, j in T.grid(4, 2):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = K[vi, vj]
"""
    sch = tir.Schedule(parse(text))
    memory = 'data = T.allocate([8], "int32", "global")'
    refused(
        lambda: LAYOUTS[step](sch), f"declared over the memory of `{memory}`, which would not follow", "T.alloc_buffer"
    )
