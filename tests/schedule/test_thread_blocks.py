"""What thread blocks, and threads of one axis bound twice, may share: refused, or the same as the program alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tir
from tir.script import parse

PAIR = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    S = T.alloc_buffer((4, 8), "int32")
    for i in range(4):
        for k in range(8):
            with T.block("S"):
                vi, vk = T.axis.remap("SS", [i, k])
                S[vi, vk] = A[vi, vk] + 1
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] - S[vi, {index}]
"""
ROW = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    S = T.alloc_buffer((4,), "int32")
    for i in range(4):
        for k in range(8):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi, vk]
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] - S[vi]
"""
DEPEND = "whose blocks are not ordered: no other work may be beside it there"


def bound(func, axes):
    sch = tir.Schedule(func, target="cuda")
    for loop, axis in axes.items():
        if axis is not None:
            sch.bind(loop, axis)
    return sch.mod


def is_clean(func, mod):
    """Whether the simulator finds no fault in the kernel, and the results are those of ``func``."""
    built = tir.build(mod, target="cuda-sim")
    built.strict = False
    a = np.arange(32, dtype="int32").reshape(4, 8) * 7 % 31
    got, want = np.zeros_like(a), np.zeros_like(a)
    sizes = [4, 8][: len(func.params) - 2]
    built(a, got, *sizes)
    tir.interp.run(func, a, want, *sizes)
    return (got == want).all() and not any(r.findings for r in built.last_report)


@pytest.mark.parametrize("outer", ["blockIdx.x", "threadIdx.x"])
@pytest.mark.parametrize("index", ["vj", "7 - vj", "0"])
def test_loops_of_blocks_side_by_side(outer, index):
    func = parse(PAIR.format(index=index))
    built = 0
    for k, j in itertools.product([None, "blockIdx.y", "threadIdx.y", "blockIdx.x"], repeat=2):
        try:
            mod = bound(func, {"i": outer, "k": k, "j": j})
            assert is_clean(func, mod), (k, j)
            built += 1
        except (tir.ScheduleError, tir.BuildError):
            continue
    assert built >= 4  # neither bound, or both alike


def test_the_step_that_lets_blocks_depend_on_each_other_is_refused():
    sch = tir.Schedule(parse(ROW), target="cuda")
    sch.bind("i", "blockIdx.x")
    with pytest.raises(tir.ScheduleError, match=DEPEND):
        sch.bind("j", "blockIdx.y")
    sch.bind("j", "threadIdx.x")
    assert is_clean(parse(ROW), sch.mod)


STEPS = """
@T.prim_func
def main(A: T.Buffer((9, 8), "int32")):
    for o in range(1):
        for s in range(8):
            for b in range(8):
                with T.block("S"):
                    vs, vb = T.axis.remap("SS", [s, b])
                    A[{write}] = A[{read}] * 2 + vb
"""


@pytest.mark.parametrize("outer", ["blockIdx.y", "threadIdx.x"])
def test_blocks_in_a_serial_loop_of_their_kernel(outer):
    """Nothing orders blocks there, as launches in each iteration would."""
    func = parse(STEPS.format(write="vs + 1, vb", read="vs, vb"))
    for axes in ({"o": outer, "b": "blockIdx.x"}, {"b": "blockIdx.x", "o": outer}):
        with pytest.raises(tir.ScheduleError, match="loop s, which is not bound, may not be around it there"):
            bound(func, axes)
    sch = tir.Schedule(func, target="cuda")
    sch.reorder("b", "s")
    mod = bound(sch.func, {"o": outer, "b": "blockIdx.x"})
    built = tir.build(mod, target="cuda-sim")
    a, want = (np.arange(72, dtype="int32").reshape(9, 8) for _ in range(2))
    built(a)
    tir.interp.run(func, want)
    assert (a == want).all() and not any(r.findings for r in built.last_report)


def test_text_in_which_blocks_depend_on_each_other():
    text = parse(ROW).script()
    for loop, axis in (("i in range(4)", "blockIdx.x"), ("j in range(8)", "blockIdx.y")):
        extent = loop[-2]
        text = text.replace(f"for {loop}:", f'for {loop[0]} in T.thread_binding({extent}, thread="{axis}"):')
    with pytest.raises(tir.BuildError, match=DEPEND):
        tir.lower(parse(text), target="cuda")


VIEW = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for o in range(2):
        with T.block("outer"):
            vo = T.axis.spatial(2, o)
            M = T.match_buffer(B[{region}], (2,), "int32", offset_factor=1)
            for i in range(2):
                with T.block("in"):
                    vi = T.axis.spatial(2, i)
                    M[vi] = A[{read}] + 1
"""


@pytest.mark.parametrize("region", ["vo * 2:vo * 2 + 2", "0:2", "vo:vo + 2"])
@pytest.mark.parametrize("read", ["1 - vi", "vi + vo", "vi"])
def test_an_axis_bound_again_below_a_view(region, read):
    """Only what each iteration of `o` does alike may be shared among its threads."""
    func = parse(VIEW.format(region=region, read=read))
    sch = tir.Schedule(func, target="cuda")
    sch.bind("o", "threadIdx.x", unsafe=True)
    try:
        sch.bind("i", "threadIdx.x", unsafe=True)
    except tir.ScheduleError:
        assert "vo" in region + read
        return
    a, got, want = np.arange(4, dtype="int32"), np.zeros(4, "int32"), np.zeros(4, "int32")
    tir.interp.run(func, a, want)
    tir.build(sch.mod, target="cuda-sim")(a, got)
    np.testing.assert_array_equal(got, want)


def test_a_block_that_reads_what_it_writes_through_a_view_does_not_repeat_itself():
    func = parse("""
@T.prim_func
def main(B: T.Buffer((4,), "int32"), C: T.Buffer((2,), "int32")):
    with T.block("around"):
        M = T.match_buffer(B[0:2], (2,), "int32", offset_factor=1)
        for o in range(2):
            with T.block("outer"):
                vo = T.axis.spatial(2, o)
                for i in range(2):
                    with T.block("in"):
                        vi = T.axis.spatial(2, i)
                        M[vi] = M[vi] + 1
""")
    sch = tir.Schedule(func, target="cuda")
    sch.bind("o", "threadIdx.x", unsafe=True)
    with pytest.raises(tir.ScheduleError, match="would not write the same again"):
        sch.bind("i", "threadIdx.x", unsafe=True)


FUSED = """
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, m), "int32")
    B = T.match_buffer(b, (n, m), "int32")
    S = T.alloc_buffer((n, m), "int32")
    for t in T.thread_binding(1, thread="threadIdx.x"):
        for x in {first}:
            with T.block("S"):
                vi = T.axis.spatial(n, x // m)
                vj = T.axis.spatial(m, x % m)
                S[vi, vj] = A[vi, vj] + 1
        for y in {second}:
            with T.block("B"):
                vi = T.axis.spatial(n, y // m)
                vj = T.axis.spatial(m, y % m)
                B[vi, vj] = A[vi, vj] - S[vi, m - 1 - vj]
"""
LOOPS = {
    "blockIdx.x": "T.thread_binding(n * m, thread='blockIdx.x')",
    "blockIdx.y": "T.thread_binding(n * m, thread='blockIdx.y')",
    "all": "range(n * m)",
}


@pytest.mark.parametrize("first", LOOPS)
@pytest.mark.parametrize("second", LOOPS)
def test_thread_blocks_beside_other_work(first, second):
    func = parse(FUSED.format(first=LOOPS[first], second=LOOPS[second]))
    if first == second == "all":
        assert is_clean(func, func)
    else:
        with pytest.raises(tir.BuildError, match=DEPEND):
            tir.build(func, target="cuda-sim")
