"""The canonical program: the same for programs that differ in names alone, another for any other difference."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

import tir
from tir.canonical import canonical
from tir.schedule.renamed import replay_renamed
from tir.script import parse

MATMUL = """
@T.prim_func
def matmul(A: T.Buffer((64, 48), "float32"), B: T.Buffer((48, 32), "float32"), C: T.Buffer((64, 32), "float32")):
    for i, j, k in T.grid(64, 32, 48):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
OTHER_NAMES = """
@T.prim_func
def product(X: T.Buffer((64, 48), "float32"), Y: T.Buffer((48, 32), "float32"), Z: T.Buffer((64, 32), "float32")):
    for y, x, r in T.grid(64, 32, 48):
        with T.block("sum"):
            vy, vx, vr = T.axis.remap("SSR", [y, x, r])
            with T.init():
                Z[vy, vx] = T.float32(0)
            Z[vy, vx] = Z[vy, vx] + X[vy, vr] * Y[vr, vx]
"""
CHAIN = """
@T.prim_func
def chain(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    B = T.alloc_buffer((64,), "float32")
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(64):
        with T.block("C"):
            vi = T.axis.spatial(64, i)
            C[vi] = B[vi] + T.float32(1)
"""


def test_names_do_not_matter():
    a, b = canonical(parse(MATMUL)), canonical(parse(OTHER_NAMES))
    assert a.key == b.key and a.family == b.family
    tir.assert_structural_equal(a.mod, b.mod)
    assert a.mod.script() == b.mod.script()


def test_the_canonical_program_is_its_own_and_prints_and_parses_to_it():
    for text in (MATMUL, CHAIN):
        made = canonical(parse(text))
        assert canonical(made.mod).key == canonical(parse(made.mod.script())).key == made.key


@pytest.mark.parametrize(
    "change",
    [
        ("float32", "float16"),
        ("A[vi, vk] * B", "B[vk, vj] * A[vi, vk] + B"),
        ("SSR", "SSS"),
        ("64", "65"),
        ("(0)", "(1)"),
    ],
)
def test_every_other_difference_is_another_key(change):
    assert canonical(parse(MATMUL)).key != canonical(parse(MATMUL.replace(*change))).key


def test_a_family_is_all_sizes_of_one_program():
    a, b = canonical(parse(MATMUL)), canonical(parse(MATMUL.replace("64", "100").replace("48", "37")))
    assert a.family == b.family and a.key != b.key
    assert canonical(parse(MATMUL.replace("+ A", "- A"))).family != a.family


def test_symbolic_sizes_and_scalars_have_names_by_position_too():
    text = """
@T.prim_func
def f(a: T.handle, n: T.int32, s: T.float32):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = s
"""
    other = re.sub(r"\bn\b", "rows", re.sub(r"\bs\b", "value", text))
    assert canonical(parse(text)).key == canonical(parse(other)).key


def test_the_key_is_the_same_in_every_process():
    code = f"from tir.canonical import canonical; from tir.script import parse; print(canonical(parse({MATMUL!r})).key)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == canonical(parse(MATMUL)).key


@pytest.mark.parametrize("room", ["arithmetic", "blocks", "buffers", "control_flow", "gpu", "loops", "real_kernels"])
def test_canonical_programs_of_the_corpus_parse_back(room):
    found = [v for v in vars(importlib.import_module(f"corpus.{room}")).values() if isinstance(v, tir.PrimFunc)]
    for func in found:
        made = canonical(func)
        assert canonical(parse(made.mod.script())).key == made.key, func.name
    assert len({canonical(f).key for f in found}) > len(found) // 2


def steps(sch: tir.Schedule) -> None:
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    tile = sch.sample_perfect_tile(j, 2, 16)
    sch.split("j", tile)
    sch.cache_read("C", "A", "global")
    sch.compute_at("A_global", "C.i")
    sch.vectorize("C.j_1")


def test_a_trace_replays_on_a_program_with_other_names():
    a, b = parse(MATMUL), parse(OTHER_NAMES)
    sch = tir.Schedule(a, seed=3)
    steps(sch)
    again = replay_renamed(sch.trace, a, b)
    assert canonical(again.mod).key == canonical(sch.mod).key
    assert "X_global" in again.script() and "sum" in again.script() and "A_global" not in again.script()
    tir.assert_structural_equal(again.trace.replay(b).mod, again.mod)
    back = replay_renamed(again.trace, b, a)
    tir.assert_structural_equal(back.mod, sch.mod)


def test_a_loop_whose_name_is_taken_twice_is_found_by_position():
    text = CHAIN.replace('"B"', '"first"')
    names = canonical(parse(text)).mod  # every loop has a name of its own
    sch = tir.Schedule(names)
    sch.split(sch.get(sch.get_loops("s1")[0]).loop_var.name, [None, 8])
    again = replay_renamed(sch.trace, names, parse(text))
    assert [loop.name for loop in again.get_loops("C")] == ["i_0", "i_1"]
    tir.assert_structural_equal(tir.Trace.from_json(again.trace.as_json()).replay(parse(text)).mod, again.mod)


def test_a_trace_of_another_program_is_refused():
    with pytest.raises(tir.TirError, match="more than names"):
        replay_renamed(tir.Schedule(parse(MATMUL)).trace, parse(MATMUL), parse(CHAIN))


def test_a_name_that_a_step_has_changed_is_followed():
    a, b = parse(MATMUL), parse(OTHER_NAMES)
    sch = tir.Schedule(a)
    sch.decompose_reduction("C", "k")  # the block is C_update from here on
    sch.parallel(sch.get_loops("C")[0])
    again = replay_renamed(sch.trace, a, b)
    assert canonical(again.mod).key == canonical(sch.mod).key


def test_a_loop_that_two_queries_return_has_one_number_in_json():
    sch = tir.Schedule(parse(MATMUL))
    sch.get_loops("C")
    i, j, k = sch.get_loops("C")
    sch.vectorize(j)
    sch.unroll(i)
    again = tir.Trace.from_json(sch.trace.as_json()).replay(parse(MATMUL))
    tir.assert_structural_equal(again.mod, sch.mod)
