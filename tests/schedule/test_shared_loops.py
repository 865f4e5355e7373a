"""Copies by reindex and cache_inplace of a block that shares loops with those that make, or use, the buffer."""

from __future__ import annotations

import pytest

from tests.prim_checks import refused, same, schedule

SHARED = """
@T.prim_func
def main(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32"), Z: T.Buffer((64,), "float32")):
    W = T.alloc_buffer((64,), "float32")
    for o in range(8):
        for i in range(8):
            with T.block("W"):
                v = T.axis.spatial(64, o * 8 + i)
                W[v] = X[v] * T.float32(2)
        for i in range(8):
            with T.block("Y"):
                v = T.axis.spatial(64, o * 8 + i)
                Y[v] = W[v] + T.float32(1)
    for i in range(64):
        with T.block("Z"):
            v = T.axis.spatial(64, i)
            Z[v] = W[v] - T.float32(1)
"""
TAIL = SHARED.replace("64", "60").replace(
    "v = T.axis.spatial(60, o * 8 + i)", "v = T.axis.spatial(60, o * 8 + i)\n                T.where(o * 8 + i < 60)"
)
OVERLAPPING = """
@T.prim_func
def main(X: T.Buffer((10,), "int32"), Y: T.Buffer((8,), "int32")):
    W = T.alloc_buffer((3,), "int32")
    for o in range(8):
        for i in range(3):
            with T.block("W"):
                u, v = T.axis.remap("SS", [o, i])
                W[v] = X[u + v]
        for i in range(3):
            with T.block("Y"):
                u, v = T.axis.remap("SR", [o, i])
                with T.init():
                    Y[u] = 0
                Y[u] = Y[u] + W[2 - v]
"""
STEPS = {
    "reindex": lambda s, b: s.reindex(b, "W"),
    "cache_read": lambda s, b: s.reindex_cache_read(b, "W", "local", lambda i: (i // 16, i % 16)),
    "cache_write": lambda s, b: s.reindex_cache_write(b, "W", "local", lambda i: (i // 16, i % 16)),
    "reversed": lambda s, b: s.reindex_cache_read(b, "W", "global", lambda i: (63 - i,)),
}


@pytest.mark.parametrize(
    "program", [SHARED, TAIL, SHARED.replace("range(8):\n        for", "T.parallel(8):\n        for")]
)
@pytest.mark.parametrize("step,block", [("reindex", "Y"), ("cache_read", "Y"), ("reversed", "Y"), ("cache_write", "W")])
def test_the_copy_stands_in_the_shared_loop(program, step, block):
    sch = schedule(program)
    STEPS[step](sch, block)
    same(sch)


@pytest.mark.parametrize("step,block", [("reindex", "Y"), ("reversed", "Y"), ("cache_write", "W")])
def test_in_a_block_instead_of_a_loop(step, block):
    head, loop, rest = SHARED.partition("    for o in range(8):\n")
    body, last, end = rest.partition("    for i in range(64):")
    indented = "".join("    " + line + "\n" for line in body.replace("o * 8 + i", "vo * 8 + i").splitlines())
    outer = '        with T.block("outer"):\n            vo = T.axis.spatial(8, o)\n'
    shifted = indented.replace("axis.spatial(64, vo * 8 + i)", "axis.spatial(8, i)").replace("[v]", "[vo * 8 + v]")
    sch = schedule(head + loop + outer + shifted + last + end)
    maps = {"reversed": lambda i: (7 - i,), "cache_write": lambda i: (i // 4, i % 4)}
    if step == "reindex":
        sch.reindex(block, "W")
    else:
        getattr(sch, f"reindex_{step.replace('reversed', 'cache_read')}")(block, "W", "local", maps[step])
    same(sch)


def test_the_loops_around_overwrite_what_was_copied():
    sch = schedule(OVERLAPPING)
    sch.reindex("Y", "W")
    same(sch)
    sch.reindex("W", "W")
    same(sch)


def test_of_symbolic_size():
    sch = schedule("""
@T.prim_func
def main(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n, 8), "int32")
    Y = T.match_buffer(y, (n, 8), "int32")
    W = T.alloc_buffer((n, 8), "int32")
    for o in range(n):
        for i in range(T.int64(8)):
            with T.block("W"):
                u, v = T.axis.remap("SS", [o, i])
                W[u, v] = X[u, v]
        for i in range(T.int64(8)):
            with T.block("Y"):
                u, v = T.axis.remap("SS", [o, i])
                Y[u, v] = W[u, T.int64(7) - v]
""")
    sch.reindex("Y", "W")
    sch.reindex_cache_write("W", 0, "local", lambda u, v: (v, u))
    for n in (0, 1, 5):
        same(sch, n=n)


def test_a_reduction_that_goes_on_in_later_iterations():
    sch = schedule("""
@T.prim_func
def main(X: T.Buffer((8, 4), "int32"), Y: T.Buffer((8, 4), "int32")):
    W = T.alloc_buffer((4,), "int32")
    for k in range(8):
        for i in range(4):
            with T.block("W"):
                v, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    W[v] = 0
                W[v] = W[v] + X[vk, v]
        for i in range(4):
            with T.block("Y"):
                u, v = T.axis.remap("SS", [k, i])
                Y[u, v] = W[v]
""")
    refused(lambda: sch.reindex("W", ("write", 0)), "before the copy back")
    sch.reindex("Y", "W")
    same(sch)


def test_work_in_place_beside_a_reader():
    sch = schedule(
        SHARED.replace("Y[v] = W[v] + T.float32(1)", "W[v] = W[v] + T.float32(1)").replace('block("Y")', 'block("U")')
    )
    sch.cache_inplace("U", "W", "local")
    same(sch)
