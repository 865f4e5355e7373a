"""What is shown of tiles without exact sets agrees with exact sets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

import tir
from tests.gpu_examples import load
from tests.prim_checks import refused, schedule
from tir.analysis.dependence.relations import without_swizzles
from tir.analysis.index import index_of
from tir.levels import is_shared
from tir.schedule.invariants.shared_writes import Stores, _is_filled_first, _Orders
from tir.script import parse

TILES = """
@T.prim_func
def f(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    S = T.alloc_buffer((16,), "float32", scope="shared")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(4):
            {first}
            {second}
"""
FILL = """for i in range({count}):
                with T.block("fill"):
                    vi = T.axis.spatial(16, i + {start})
                    vk, vt = T.axis.remap("SS", [k, t])
                    S[vi] = {value}"""
READ = """for j in range(2):
                with T.block("read"):
                    vk, vj = T.axis.remap("SS", [k, j])
                    vt = T.axis.spatial(8, t)
                    B[vk, vt * 2 + vj] = S[vt * 2 + vj]"""


def answers(func: tir.PrimFunc) -> Iterator[tuple[bool, bool]]:
    """Of each shared buffer: whether a tile is shown to be filled first, and whether exact sets find no problem."""
    stores, index = Stores(func), index_of(func)
    for realize, buffer in index.allocations(is_shared):
        units = [u for u in without_swizzles(stores.units) if any(a.buffer.data is buffer.data for a in u.accesses)]
        users = [replace(u, accesses=[a for a in u.accesses if a.buffer.data is buffer.data]) for u in units]
        around = {ref.var for ref in index.place(realize).loops()}
        yield _is_filled_first(stores, users), _Orders(stores, users, around).problem(buffer) is None


@pytest.mark.parametrize("name", ["sgemm", "transpose"])
def test_tiles_of_kernels_are_filled_first(name):
    found = list(answers(load(name).small()[1].mod["main"]))
    assert found and all(shown and right for shown, right in found)


def program(swapped=False, count=16, start=0, value="A[vk, vi]"):
    parts = [FILL.format(count=count, start=start, value=value), READ]
    first, second = parts[::-1] if swapped else parts
    return parse(TILES.format(first=first, second=second))


@pytest.mark.parametrize(
    ("change", "shown", "right"),
    [
        ({}, True, True),
        ({"value": "A[vk, vi] * T.float32(2)"}, True, True),
        ({"value": "A[vk, vi] + T.cast(vt, 'float32')"}, False, False),  # the last thread's value stays
        ({"value": "A[vk, vi] + B[vk, vi]"}, False, None),  # changes while threads run
        ({"count": 15}, False, None),  # one element is never written
        ({"count": 15, "start": 1}, False, None),
        ({"swapped": True}, False, False),  # reads the iteration before, or the thread before
    ],
)
def test_what_is_shown_is_right(change, shown, right):
    [(found, exact)] = answers(program(**change))
    assert found is shown and (right is None or exact is right)
    assert exact or not found


BEFORE = """
@T.prim_func
def f(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    W = T.alloc_buffer((4, 16), "float32")
    S = T.alloc_buffer((16,), "float32", scope="shared")
    for k0, i0 in T.grid(4, 16):
        with T.block("W"):
            vk, vi = T.axis.remap("SS", [k0, i0])
            W[vk, vi] = A[vk, vi] * T.float32(2)
"""


def test_what_another_nest_wrote_does_not_change_while_threads_run():
    tiles = TILES.format(first=FILL.format(count=16, start=0, value="W[vk, vi]"), second=READ)
    loops = tiles[tiles.index("    for t in") :]
    assert list(answers(parse(BEFORE + loops))) == [(True, True)]
    changed = READ.replace("B[vk, vt * 2 + vj] =", "W[vk, vt * 2 + vj] =")  # what the next thread copies
    [(shown, _)] = answers(parse(BEFORE + loops.replace(READ, changed)))
    assert not shown


def test_invariants_are_asked_in_one_order_whatever_was_imported_first():
    code = (
        "import tir.schedule.invariants.shared_writes, tir; from tir.schedule import invariants; "
        "invariants._load(); print(*(i.problems.__module__.rpartition('.')[2] for i in invariants.INVARIANTS.values()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert modules[0] == "invariants" and modules[1:] == sorted(modules[1:])


def test_a_reorder_below_the_threads_is_asked_for_the_order_in_which_they_run():
    program = """
@T.prim_func
def main(A: T.Buffer((4, 2, 2), "float32"), B: T.Buffer((4, 2, 2), "float32")):
    S = T.alloc_buffer((4, 2, 2), scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for i, j in T.grid(2, 2):
                with T.block("P"):
                    vt, vi, vj = T.axis.remap("SSS", [t, i, j])
                    S[vt, vi, vj] = A[vt, vi, vj]
                with T.block("Q"):
                    vt, vi, vj = T.axis.remap("SSS", [t, i, j])
                    T.where(0 < t and 0 < i and j < 1)
                    B[vt, vi, vj] = S[vt - 1, vi - 1, vj + 1]
"""
    sch = schedule(program)
    refused(lambda: sch.reorder("j", "i"), "another value than in the program", "P at (b=0, t=0, j=1, i=0)")


ROUND = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    {outside}
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for k in range(4):
            with T.block("tile"):
                vk = T.axis.spatial(4, k)
                {inside}
                for t in T.thread_binding(8, thread="threadIdx.x"):
                    with T.block("P"):
                        vt = T.axis.spatial(8, t)
                        S[vt] = A[vk, vt]
                    with T.block("Q"):
                        vt = T.axis.spatial(8, t)
                        B[vk, vt] = T.Select(0 < vt, S[(vt + 7) % 8], T.float32(0))
"""
ALLOCATION = 'S = T.alloc_buffer((8,), scope="global")'


def test_memory_of_each_iteration_has_no_value_of_the_one_before() -> None:
    # the first thread reads what the last has not written: anything in memory of this iteration, else its value before
    schedule(ROUND.format(outside="", inside=ALLOCATION)).set_scope("P", 0, "shared")
    once = schedule(ROUND.format(outside=ALLOCATION, inside=""))
    refused(lambda: once.set_scope("P", 0, "shared"), "another value than in the program", "P at (b=0, k=1, t=7)")
