"""Large allocations in memory that the caller gives: which, where, and that they compute the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.stmt import Allocate, For
from tir.testing.oracle import assert_roundtrip
from tir.transform import use_workspace
from tir.transform.use_workspace import temporaries
from tir.visit import walk

SERIAL = """
@T.prim_func
def main(A: T.Buffer((8192,), "float32"), B: T.Buffer((8192,), "float32"), work: T.Buffer(({room},), "{dtype}")):
    T.func_attr({{"tir.workspace": ["work"]}})
    p = T.allocate([{count}], "float32", "global")
    C = T.decl_buffer(({count},), "float32", data=p)
    for i in range(4096):
        C[i] = A[i] + T.float32(1)
    for i in range(4096):
        B[i] = C[4095 - i]
"""
SHARED = """
@T.prim_func
def main(A: T.Buffer(({n}, 5000), "float32"), B: T.Buffer(({n}, 5000), "float32"), work: T.Buffer(({room},), "float32")):
    T.func_attr({{"tir.workspace": ["work"]}})
    a = T.decl_buffer(({n} * 5000,), "float32", data=A.data)
    b = T.decl_buffer(({n} * 5000,), "float32", data=B.data)
    for r in T.parallel({first}, {n} + {first}):
        p = T.allocate([5000], "float32", "global")
        C = T.decl_buffer((5000,), "float32", data=p)
        for i in range(5000):
            C[i] = a[(r - {first}) * 5000 + i] + T.float32(1)
        for i in range(5000):
            b[(r - {first}) * 5000 + i] = C[4999 - i]
"""
ONE = 5024  # elements of 5000 in whole lines, and a line more


def left(func):
    return [n.buffer_var.name for n in walk(func.body) if isinstance(n, Allocate)]


def run(func, *shapes):
    """What the executor and generated code make of a function, whose last array is its workspace."""
    found = []
    for target in ("interpreter", "llvm"):
        arrays = [np.random.default_rng(0).standard_normal(s).astype("float32") for s in shapes]
        tir.build(func, target)(*arrays)
        found.append(arrays)
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
    return found[0]


@pytest.mark.parametrize(
    ("room", "count", "dtype", "taken"),
    [(4112, 4097, "float32", False), (4128, 4097, "float32", True), (4127, 4097, "float32", False), (9000, 4097, "float32", True), (9000, 4096, "float32", False), (9000, 4097, "int32", False)],
)  # fmt: skip
def test_an_allocation_that_fits_is_in_the_parameter(room, count, dtype, taken):
    func = parse(SERIAL.format(room=room, count=count, dtype=dtype))
    made = use_workspace(func)
    assert (left(made) == []) is taken
    if dtype == "float32":
        a, b, work = run(made, (8192,), (8192,), (room,))
        np.testing.assert_array_equal(b[:4096], (a[:4096] + 1)[::-1])
        assert (work[:4096] == a[:4096] + 1).all() == taken
    if taken:
        assert_roundtrip(made)


def test_a_function_that_names_no_workspace_stays_as_it_is():
    func = parse(SERIAL.format(room=9000, count=5000, dtype="float32")).without_attr("tir.workspace")
    assert use_workspace(func) is func and left(func) == ["p"]
    named = func.with_attr("tir.workspace", ("nothing",))
    assert use_workspace(named) is named


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize(("n", "parts"), [(1, 1), (4, 4), (4, 9), (6, 3), (7, 3), (7, 1), (5, 4)])
def test_iterations_of_a_parallel_loop_have_parts_of_a_parameter(n, parts, first):
    func = parse(SHARED.format(n=n, room=parts * ONE, first=first))
    made = use_workspace(func)
    assert left(made) == []
    (loop,) = [s for s in walk(made.body) if isinstance(s, For) and s.kind == "parallel"]
    assert int(loop.extent) == min(n, parts) and int(loop.min) == (first if n <= parts else 0)
    a, b, work = run(made, (n, 5000), (n, 5000), (parts * ONE,))
    np.testing.assert_array_equal(b, (a + 1)[:, ::-1])
    ends = [(k + 1) * n // min(n, parts) - 1 for k in range(min(n, parts))]  # the last iteration of each share
    for k, row in enumerate(ends):
        np.testing.assert_array_equal(work[k * ONE : k * ONE + 5000], a[row] + 1)


def test_too_little_room_for_one_iteration_changes_nothing():
    func = parse(SHARED.format(n=4, room=ONE - 1, first=0))
    assert use_workspace(func) is func


def test_what_may_be_a_parameter():
    kinds = {
        "large": ('p = T.allocate([5000], "float32", "global")', ["p"]),
        "on the stack": ('p = T.allocate([4096], "float32", "global")', []),
        "of symbolic size": ('p = T.allocate([n], "float32", "global")', []),
        "of a scope of its own": ('p = T.allocate([5000], "float32", "shared")', []),
        "conditional": ('p = T.allocate([5000], "float32", "global", n > 3)', []),
    }
    for name, (line, expected) in kinds.items():
        func = parse(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32):
    {line}
    C = T.decl_buffer((5000,), "float32", data=p)
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        A[i] = C[7 - i]
""")
        assert [t.allocation.buffer_var.name for t in temporaries(func)] == expected, name


def test_a_parallel_loop_of_unknown_extent_keeps_its_allocations():
    text = re.sub(r"T.parallel\(0, 4 \+ 0\)", "T.parallel(m)", SHARED.format(n=4, room=4 * ONE, first=0)).replace(
        '"float32")):\n    T.func', '"float32"), m: T.int32):\n    T.func'
    )
    assert temporaries(parse(text)) == () and left(use_workspace(parse(text))) == ["p"]


def test_the_outer_of_two_parallel_loops_has_the_parts():
    text = SHARED.format(n=4, room=4 * ONE, first=0).replace(
        "        for i in range(5000):\n            b[", "        for i in T.parallel(5000):\n            b["
    )
    nested = parse(text)
    (t,) = temporaries(nested)
    assert t.loop is not None and (t.loop.loop_var.name, t.iterations, t.elements) == ("r", 4, ONE)
    a, b, _ = run(use_workspace(nested), (4, 5000), (4, 5000), (4 * ONE,))
    np.testing.assert_array_equal(b, (a + 1)[:, ::-1])
