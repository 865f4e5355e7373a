"""Arg-reductions in the order of their positions: fewer comparisons, and the positions that the program means."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.expr import LT, BufferLoad
from tir.testing.oracle import assert_roundtrip
from tir.transform import order_arg_reductions
from tir.visit import walk

SHAPE = (3, 22)
SPECIAL = {
    "ties": lambda rng, dtype: rng.integers(0, 3, SHAPE).astype(dtype),
    "least": lambda rng, dtype: np.full(SHAPE, -np.inf if dtype == "float32" else np.iinfo(dtype).min, dtype),
    "most": lambda rng, dtype: np.full(SHAPE, np.inf if dtype == "float32" else np.iinfo(dtype).max, dtype),
    "nan": lambda rng, dtype: np.where(rng.random(SHAPE) < 0.2, np.nan, rng.integers(0, 3, SHAPE)).astype(dtype),
}


def program(find: str = "argmax", dtype: str = "float32", axis: int | None = 1, last: bool = False) -> tir.PrimFunc:
    x = te.placeholder(SHAPE, dtype, name="x")
    return te.create_prim_func([x, getattr(ops, find)(x, axis, select_last_index=last, dtype="int32")])


def block_of(func: tir.PrimFunc) -> str:
    return next(n.block.name for n in walk(func) if isinstance(n, tir.stmt.BlockRealize) and "arg" in n.block.name)


def comparisons_of_positions(func: tir.PrimFunc) -> int:
    return sum(
        isinstance(n, LT)
        and isinstance(n.a, BufferLoad)
        and n.a.dtype == n.b.dtype == "int32"
        and "_v0" in n.a.buffer.name
        for n in walk(func)
    )


def split(sch, name):
    sch.split(sch.get_loops(name)[-1], [None, 4])


def decomposed(sch, name):
    sch.decompose_reduction(name, sch.get_loops(name)[1])


def decomposed_outside(sch, name):
    sch.decompose_reduction(name, sch.get_loops(name)[0])


def in_lanes(sch, name):
    _, lane = sch.split(sch.get_loops(name)[-1], [None, 4])
    parts = sch.rfactor(lane, -1)
    i, k, lane = sch.get_loops(parts)
    sch.decompose_reduction(parts, k)


def in_vectors(sch, name):
    _, lane = sch.split(sch.get_loops(name)[-1], [None, 4])
    parts = sch.rfactor(lane, -1)
    _, k, lane = sch.get_loops(parts)
    init = sch.decompose_reduction(parts, k)
    for each in (parts, init):
        sch.vectorize(sch.get_loops(each)[-1])


def in_chunks(sch, name):
    chunk, _ = sch.split(sch.get_loops(name)[-1], [4, None])
    sch.rfactor(chunk, 0)


def columns_first(sch, name):
    i, k = sch.get_loops(name)
    sch.reorder(k, i)


def columns_first_decomposed(sch, name):
    i, k = sch.get_loops(name)
    sch.reorder(k, i)
    sch.decompose_reduction(name, k)


def steps_reversed_in_tiles(sch, name):
    outer, inner = sch.split(sch.get_loops(name)[-1], [None, 2])
    sch.reorder(inner, outer)


def unrolled(sch, name):
    sch.unroll(sch.get_loops(name)[-1])


IN_ORDER = [split, decomposed, decomposed_outside, columns_first, columns_first_decomposed, unrolled]
OTHERS = [in_lanes, in_vectors, in_chunks, steps_reversed_in_tiles]


@pytest.mark.parametrize("schedule", [*IN_ORDER, *OTHERS], ids=lambda f: f.__name__)
@pytest.mark.parametrize("find", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_positions_are_those_of_the_program(schedule, find, dtype):
    """Of equals the first or the last: each schedule has every pair of what is found, its type, and which; every second schedule the other half of
    the triples."""
    number = [*IN_ORDER, *OTHERS].index(schedule)
    last = bool((number + (find == "argmin") + (dtype == "int8")) % 2)
    func = program(find, dtype, 1, last)
    sch = tir.Schedule(func)
    schedule(sch, block_of(func))
    ordered = order_arg_reductions(sch.mod)
    assert_roundtrip(ordered["main"])
    made = {"the pass": ordered["main"], "all passes": tir.lower(sch.mod)["main"], "llvm": tir.build(sch.mod, "llvm")}
    for data in SPECIAL.keys() - ({"nan"} if dtype == "int8" else set()):
        x = SPECIAL[data](np.random.default_rng(len(data)), dtype)
        wanted = SHAPE[1] - 1 - getattr(np, find)(x[:, ::-1], 1) if last else getattr(np, find)(x, 1)
        for by, run in made.items():
            got = np.full(SHAPE[0], -7, "int32")
            tir.interp.run(run, x, got) if isinstance(run, tir.PrimFunc) else run(x, got)
            np.testing.assert_array_equal(got, wanted, err_msg=f"{by}, {data}")


@pytest.mark.parametrize("schedule", IN_ORDER, ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", [0, 1])
def test_positions_that_ascend_are_not_compared(schedule, axis):
    func = program(axis=axis)
    sch = tir.Schedule(func)
    schedule(sch, block_of(func))
    assert comparisons_of_positions(sch.mod["main"])
    assert not comparisons_of_positions(order_arg_reductions(sch.mod)["main"])


def test_flat_positions_ascend_over_two_loops():
    assert not comparisons_of_positions(order_arg_reductions(program(axis=None)))


@pytest.mark.parametrize("schedule", [in_lanes, in_vectors, in_chunks], ids=lambda f: f.__name__)
def test_partial_results_are_found_without_and_combined_with_comparisons(schedule):
    func = program()
    sch = tir.Schedule(func)
    schedule(sch, block_of(func))
    before, after = (comparisons_of_positions(m["main"]) for m in (sch.mod, order_arg_reductions(sch.mod)))
    assert 0 < after < before


def test_positions_in_another_order_are_compared():
    func = program()
    sch = tir.Schedule(func)
    steps_reversed_in_tiles(sch, block_of(func))
    assert order_arg_reductions(sch.mod)["main"] is sch.mod["main"]


TEXT = """
@T.prim_func
def main(x: T.Buffer((2, 8), "int32"), best: T.Buffer((2,), "int32"), at_v0: T.Buffer((2,), "int32")):
    {outer}
        {start}
        {loop}
            with T.block("best"):
                vi, vk = T.axis.remap("SR", [i, k])
                {where}
                v: T.int32 = T.Select(best[vi] > x[vi, vk] or (best[vi] == x[vi, vk] and at_v0[vi] < {position}), at_v0[vi], {position})
                w: T.int32 = T.Select(best[vi] > x[vi, vk] or (best[vi] == x[vi, vk] and at_v0[vi] < {position}), best[vi], x[vi, vk])
                at_v0[vi] = v
                best[vi] = w
"""
START = """with T.block("start"):
            vi = T.axis.spatial(2, i)
            at_v0[vi] = {}
            best[vi] = {}"""
PLAIN = {
    "outer": "for i in range(2):",
    "loop": "for k in range(8):",
    "where": "T.reads(x[vi, vk])",
    "position": "vk",
    "start": START.format(2**31 - 1, -(2**31)),
}
KEPT = {
    "descending": {"position": "(7 - vk)"},
    "positions that are the same twice": {"position": "(vk // 2)"},
    "positions from memory": {"position": "x[0, vk]"},
    "a start that is not the identity": {"start": START.format(3, 0)},
    "a start in the middle": {"start": START.format(2**31 - 1, 2)},
    "a start of another element": {"start": START.format(2**31 - 1, -(2**31)).replace("(2, i)", "(2, 1 - i)")},
    "results without a candidate": {"where": "T.where(i == 1)"},
    "a first candidate left out": {"where": "T.where(k + i > 0)"},
    "several passes": {"loop": "for r, k in T.grid(2, 8):"},
}


def run_of(func: tir.PrimFunc) -> list[np.ndarray]:
    x = np.random.default_rng(1).integers(0, 3, (2, 8)).astype("int32")
    x[0] = -(2**31)
    made = [x, np.zeros(2, "int32"), np.zeros(2, "int32")]
    tir.interp.run(func, *made)
    return made


def test_updates_after_a_start_of_their_own():
    func = tir.script.parse(TEXT.format(**PLAIN))
    made = order_arg_reductions(func)
    assert not comparisons_of_positions(made)
    for got, wanted in zip(run_of(made), run_of(func)):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("changed", KEPT.values(), ids=KEPT)
def test_what_is_not_known_to_ascend_from_the_first_stays(changed):
    func = tir.script.parse(TEXT.format(**PLAIN | changed))
    assert order_arg_reductions(func) is func


def test_reducers_of_the_users_own():
    x, k = te.placeholder((40,), "float32", name="x"), te.reduce_axis((0, 40), "k")

    def nearer(a, b):
        (at, far), (other, further) = a, b
        stays = (far < further) | ((far == further) & (at > other))
        return te.if_then_else(stays, at, other), te.if_then_else(stays, far, further)

    nearest = te.comm_reducer(nearer, lambda i, d: (te.const(-1, i), te.max_value(d)), name="nearest")
    found = te.compute((), lambda: nearest((k.var, te.abs(x[k] - 1.0)), axis=k), name="found_v0")
    func = te.create_prim_func([x, *found])
    values = np.random.default_rng(0).integers(-9, 9, 40).astype("float32")
    at, far = np.zeros((), "int32"), np.zeros((), "float32")
    tir.build(func, "llvm")(values, at, far)
    distance = np.abs(values - 1)
    assert at == 39 - distance[::-1].argmin() and far == distance.min()


def test_positions_that_say_which_result_they_are_of():
    """Where all values are the least, the position is the first of the row, as the init has it now."""
    func = tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((3, 8), "int32"), at: T.Buffer((3,), "int32"), best: T.Buffer((3,), "int32")):
    for i, k in T.grid(3, 8):
        with T.block("best"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                at[vi] = 2147483647
                best[vi] = -2147483648
            v_at: T.int32 = T.Select(best[vi] > A[vi, vk] or (best[vi] == A[vi, vk] and at[vi] < vi * 8 + vk), at[vi], vi * 8 + vk)
            v_best: T.int32 = T.Select(best[vi] > A[vi, vk] or (best[vi] == A[vi, vk] and at[vi] < vi * 8 + vk), best[vi], A[vi, vk])
            at[vi] = v_at
            best[vi] = v_best
""")
    done = order_arg_reductions(func)
    assert done is not func
    for program_ in (func, done):
        at, best = np.zeros(3, "int32"), np.zeros(3, "int32")
        tir.interp.run(program_, np.full((3, 8), -(2**31), "int32"), at, best)
        assert at.tolist() == [0, 8, 16]
