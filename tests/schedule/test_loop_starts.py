"""Loops that start late, run backwards or repeat values, bound to threads, virtual threads and vector lanes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing.oracle import assert_roundtrip

# how a block names its elements: (start of the loop, extent, iterator's value, its domain)
WALKS = {
    "from zero": ("0", "i", "8"),
    "late": ("3", "i - 3", "8"),
    "early": ("-3", "i + 3", "8"),
    "late, domain too": ("2", "i", "(2, 10)"),
    "backwards": ("0", "7 - i", "8"),
    "late and backwards": ("1", "8 - i", "8"),
    "by two": ("1", "i * 2 - 2", "16"),
}
MAP = """
@T.prim_func
def main(A: T.Buffer((3, 20), "int32"), B: T.Buffer((3, 20), "int32")):
    for j in range(1, 4):
        for i in range({start}, {start} + 8):
            with T.block("B"):
                vj = T.axis.spatial(3, j - 1)
                vi = T.axis.spatial({domain}, {value})
                B[vj, vi] = A[vj, vi] * 3 + 1
"""
SUM = """
@T.prim_func
def main(A: T.Buffer((3, 40), "int32"), B: T.Buffer((3,), "int32")):
    for j in range(1, 4):
        for i in range({start}, {start} + 8):
            with T.block("B"):
                vj = T.axis.spatial(3, j - 1)
                vi = T.axis.reduce({domain}, {value})
{where}{init}                B[vj] = B[vj] + A[vj, vi]
"""
INIT = "                with T.init():\n                    B[vj] = 0\n"


def arguments(func):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 100, [int(n) for n in func.buffer_map[p].shape]).astype("int32") for p in func.params]


def run(func, target, args):
    got = [a.copy() for a in args]
    tir.build(func, target=target)(*got)
    return got


def same(func, made, target):
    args = arguments(func)
    want = [a.copy() for a in args]
    tir.interp.run(func, *want)
    for a, b in zip(want, run(made, target, args)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(
    "axes",
    [
        ("blockIdx.x", "threadIdx.x"),
        ("threadIdx.x", "blockIdx.y"),
        ("vthread.x", "threadIdx.x"),
        ("threadIdx.y", "vthread"),
        ("vthread.x", "vthread.y"),
        (None, "vthread.x"),
        (None, "blockIdx.x"),
    ],
)
def test_elements_of_threads(walk, axes):
    start, value, domain = WALKS[walk]
    func = parse(MAP.format(start=start, value=value, domain=domain))
    sch = tir.Schedule(func, target="cuda")
    for loop, axis in zip(("j", "i"), axes):
        if axis is not None:
            sch.bind(loop, axis)
    same(func, sch.mod, "cuda-sim")


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
@pytest.mark.parametrize("loop", ["j", "i"])
def test_elements_on_a_cpu(walk, kind, loop):
    start, value, domain = WALKS[walk]
    func = parse(MAP.format(start=start, value=value, domain=domain))
    sch = tir.Schedule(func)
    getattr(sch, kind)(loop)
    same(func, sch.mod, "llvm")


def sum_of(walk, where="", init=True):
    start, value, domain = WALKS.get(walk, walk)
    where = f"                T.where({where})\n" if where else ""
    return parse(SUM.format(start=start, value=value, domain=domain, where=where, init=INIT if init else ""))


def threads_of(func, part):
    """``func`` reduced across threads: over all of the loop, its outer or its inner part."""
    sch = tir.Schedule(func, target="cuda")
    sch.bind("j", "blockIdx.x")
    loop = "i" if part is None else sch.split("i", [None, 4])[part]
    sch.bind(loop, "threadIdx.x")
    return sch.mod


@pytest.mark.parametrize(
    "walk", ["from zero", "late", "early", "late, domain too", "by two", ("0", "T.min(i, 5)", "6")]
)
@pytest.mark.parametrize("where", ["", "i < 6", "i - j < 5", "j > 1"])
@pytest.mark.parametrize("part", [None, 0, 1])
def test_sums_across_threads(walk, where, part):
    func = sum_of(walk, where)
    same(func, threads_of(func, part), "cuda-sim")


@pytest.mark.parametrize("walk", [*WALKS, ("0", "i // 2", "4")])
@pytest.mark.parametrize("where", ["", "i >= 2", "i >= j", "A[j - 1, i + 5] > 40"])
@pytest.mark.parametrize("part", [None, 0, 1])
def test_sums_that_go_on_from_what_was_there(walk, where, part):
    """Without an init any order of the updates will do, and any of them may be left out."""
    func = sum_of(walk, where, init=False)
    same(func, threads_of(func, part), "cuda-sim")


REFUSED = {
    "backwards": (("0", "7 - i", "8"), "", "the init of block `B` runs after other updates of the same result"),
    "late": (("0", "i + 1", "9"), "", "is a continuation of a partitioned reduction|does not run for every result"),
    "rotated": (("0", "(i + 3) % 8", "8"), "", "runs after other updates of the same result"),
    "repeated": (("0", "i // 2", "4"), "", "runs after other updates of the same result"),
    "no init": (("0", "i", "8"), "i >= 1", "may leave out the first update of a result"),
    "no init for some": (("0", "i", "8"), "i >= j", "may leave out the first update of a result"),
    "memory says": (("0", "i", "8"), "A[0, i] > 3", "may leave out the first update of a result"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("part", [None, 0, 1])
def test_sums_whose_init_is_no_start(name, part):
    walk, where, reason = REFUSED[name]
    with pytest.raises(tir.ScheduleError, match=reason):
        threads_of(sum_of(walk, where), part)


@pytest.mark.parametrize("name", REFUSED)
def test_text_whose_init_is_no_start(name):
    walk, where, reason = REFUSED[name]
    text = (
        sum_of(walk, where).script().replace("for i in range(8)", 'for i in T.thread_binding(8, thread="threadIdx.x")')
    )
    with pytest.raises(tir.BuildError, match=reason):
        tir.lower(parse(text), target="cuda-sim")


@pytest.mark.parametrize("extent", [0, 1, 3])
def test_a_sum_that_may_be_empty_leaves_its_result_as_it_was(extent):
    func = parse("""
@T.prim_func
def main(a: T.handle, B: T.Buffer((3,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n, 4), "int32")
    for j in range(3):
        for k in range(n):
            for i in range(4):
                with T.block("B"):
                    vj, vk, vi = T.axis.remap("SRR", [j, k, i])
                    with T.init():
                        B[vj] = 0
                    B[vj] = B[vj] + A[vj, vk, vi]
""")
    sch = tir.Schedule(func, target="cuda")
    sch.bind("j", "blockIdx.x")
    sch.bind("i", "threadIdx.x")
    args = [np.arange(12 * extent, dtype="int32").reshape(3, extent, 4), np.full(3, 77, "int32")]
    want = [a.copy() for a in args]
    tir.interp.run(func, *want)
    np.testing.assert_array_equal(run(sch.mod, "cuda-sim", args)[1], want[1])


@pytest.mark.parametrize("kinds", [("serial",), ("serial", "parallel", "vectorized", "unrolled")])
def test_canonicalize_loop(kinds):
    for (start, value, domain), kind in itertools.product(WALKS.values(), ("parallel", "unroll", "vectorize")):
        sch = tir.Schedule(parse(MAP.format(start=start, value=value, domain=domain)))
        getattr(sch, kind)("i")
        func = sch.mod["main"]
        made = tir.transform.canonicalize_loop(func, kinds=kinds)
        loops = [n for n in tir.visit.walk(made.body) if isinstance(n, tir.stmt.For)]
        assert all(repr(f.min) == "0" for f in loops if f.kind in kinds)
        assert_roundtrip(made)
        same(func, made, "interpreter")


def test_an_all_reduce_over_no_thread_is_refused():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    k = T.launch_thread("threadIdx.x", 8)
    R = T.decl_buffer((1,), "int32", scope="local")
    with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), A[k], True, R[0], k + 1)
    B[0] = R[0]
""")
    with pytest.raises(tir.BuildError, match=r"`k \+ 1`, which is no thread index"):
        tir.transform.lower_thread_allreduce(func)
