"""Indices without a value where a block does not run: divisions by 0, shifts by too many bits, numbers beyond the type."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing import assert_same_result

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), O: T.Buffer((8,), "int32")):
    for g in range(8):
        for s in range(40):
            with T.block("O"):
                vg = T.axis.spatial(8, g)
                vs = T.axis.opaque(40, s)
                T.where({condition})
                O[vg] = A[{index}]
"""
INDICES = {
    "division": ("1 <= s", "40 // vs"),
    "remainder": ("1 <= s", "40 % vs"),
    "truncated division": ("1 <= s", "T.truncdiv(40, vs)"),
    "shift": ("s < 3", "T.shift_left(vg, vs)"),
    "shift to the right": ("s < 3", "T.shift_right(vg, vs - 1 + T.min(1, 3 - vs))"),
    "shift that overflows": ("s < 3 and g < 2", "T.shift_left(2, vs * 5 // 4) * vg"),
}
STEPS = {
    "reindex": lambda sch: sch.reindex("O", "A"),
    "reindex_cache_read": lambda sch: sch.reindex_cache_read("O", "A", "local", lambda g, s: (s, g)),
    "read_at": lambda sch: sch.read_at("s", "O", "A", "local"),
    "read_at outside": lambda sch: sch.read_at("g", "O", "A", "local"),
    "cache_index": lambda sch: sch.cache_index("O", "global"),
    "stage": lambda sch: sch.stage("O", "A", "s"),
    "cache_write": lambda sch: (sch.cache_write("O", 0, "local"), sch.reverse_compute_at("O_local", "g")),
    "split": lambda sch: sch.split("s", [16, None]),
    "blockize": lambda sch: sch.blockize("s"),
    "prefetch": lambda sch: sch.prefetch("s", "O", "A"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", INDICES)
def test_nothing_is_computed_that_has_no_value(name, step):
    """A step that computes an index for all of a block's iterators is refused, or gives it a value everywhere."""
    condition, index = INDICES[name]
    func = parse(PROGRAM.format(condition=condition, index=index))
    sch = tir.Schedule(func)
    try:
        STEPS[step](sch)
    except tir.ScheduleError as refusal:
        assert "fault inside" not in str(refusal)
    assert_same_result(func, sch.mod, [np.arange(64, dtype="int32"), np.zeros(8, "int32")])


@pytest.mark.parametrize("step", STEPS)
def test_nothing_divides_by_the_extent_of_a_loop_that_is_empty(step):
    func = parse("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), o: T.handle, n: T.int32):
    O = T.match_buffer(o, (n, 20), "int32")
    for g in range(n):
        for s in range(20):
            with T.block("O"):
                vg, vs = T.axis.remap("SS", [g, s])
                O[vg, vs] = A[(vs + 3) % n]
""")
    sch = tir.Schedule(func)
    try:
        STEPS[step](sch)
    except tir.ScheduleError as refusal:
        assert "fault inside" not in str(refusal)
    for n in (0, 3):
        assert_same_result(func, sch.mod, [np.arange(64, dtype="int32"), np.zeros((n, 20), "int32"), n])


def test_refusals_name_the_condition():
    func = parse(PROGRAM.format(condition="s < 3", index="T.shift_left(vg, vs)"))
    with pytest.raises(tir.ScheduleError, match="has no value unless `vs >= 0 and vs < 32`"):
        tir.Schedule(func).reindex("O", "A")


def test_tail_of_a_loop_whose_extent_it_shifts():
    """FFT: iterations of the tail that do not run have extents beyond int32."""
    func = parse("""
@T.prim_func
def main(X: T.Buffer((8,), "int32"), Y: T.Buffer((4, 8), "int32")):
    B = T.alloc_buffer((4, 8), "int32")
    for i in range(8):
        with T.block("in"):
            vi = T.axis.spatial(8, i)
            B[0, vi] = X[vi]
    for s in range(3):
        for g in range(T.shift_right(4, s)):
            for p in range(T.shift_left(1, s)):
                with T.block("step"):
                    vs = T.axis.opaque(3, s)
                    vg = T.axis.opaque(4, g)
                    vp = T.axis.opaque(4, p)
                    lo: T.int32 = vg * T.shift_left(2, vs) + vp
                    hi: T.int32 = lo + T.shift_left(1, vs)
                    B[vs + 1, lo] = B[vs, lo] + B[vs, hi]
                    B[vs + 1, hi] = B[vs, lo] - B[vs, hi]
    for s, i in T.grid(4, 8):
        with T.block("out"):
            vs, vi = T.axis.remap("SS", [s, i])
            Y[vs, vi] = B[vs, vi]
""")
    sch = tir.Schedule(func)
    sch.split("step.s", [32, None])
    assert_same_result(func, sch.mod)


def test_indices_beyond_their_type():
    """Iterations that do not run have indices of more than 31 bits; a layout of so many elements is refused."""
    func = parse(PROGRAM.format(condition="g < 1 and s < 1", index="vg * 600000000 + vs * 3"))
    sch = tir.Schedule(func)
    sch.read_at("g", "O", "A", "local")
    tir.build(sch.mod, "llvm")
    with pytest.raises(tir.ScheduleError):
        tir.Schedule(func).transform_layout("O", "A", lambda i: (i * 70000000,))
