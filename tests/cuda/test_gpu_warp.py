"""Memory of a warp: each lane keeps its part in registers, and gives it to others by shuffles."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_passes import run_everywhere

import tir
from tir.script import parse

# rows on an axis, lanes on threadIdx.x; an element is `place` of the lane and of the loop `s`
EXCHANGE = """
@T.prim_func
def main(A: T.Buffer(({rows}, {n}), "float32"), B: T.Buffer(({rows}, {n}), "float32")):
    S = T.alloc_buffer(({rows}, {n}), "float32", scope="warp")
    for i in T.thread_binding({rows}, thread="{axis}"):
        for s in range({n} // {lanes}):
            for t in T.thread_binding({lanes}, thread="threadIdx.x"):
                with T.block("S"):
                    u = T.axis.spatial({rows}, i)
                    v = T.axis.spatial({n}, {place})
                    S[u, v] = A[u, v] * 2.0
        for s in range({n} // {lanes}):
            for t in T.thread_binding({lanes}, thread="threadIdx.x"):
                with T.block("B"):
                    u = T.axis.spatial({rows}, i)
                    v = T.axis.spatial({n}, {place})
                    B[u, v] = {value}
"""


def exchange(value, n=32, lanes=32, rows=2, axis="blockIdx.x", place="t"):
    return parse(EXCHANGE.format(value=value, n=n, lanes=lanes, rows=rows, axis=axis, place=place))


GROUPS, PAIRS = "s * 32 + t", "t * 2 + s"  # how 64 elements lie in 32 lanes
CASES = {
    "reversed": {"value": "S[u, 31 - v]"},
    "from the first": {"value": "S[u, 0] + S[u, v]"},
    "any permutation": {"value": "S[u, (v * 5 + 3) % 32]"},
    "neighbours, guarded": {
        "value": "T.if_then_else(v > 0, S[u, v - 1], 0.0) + T.if_then_else(v < 31, S[u, v + 1], 0.0)",
        "rows": 3,
        "axis": "threadIdx.y",
    },
    "lanes of half a warp": {"value": "S[u, 15 - v]", "n": 16, "lanes": 16, "rows": 3, "axis": "threadIdx.y"},
    "lanes of a block of one": {"value": "S[u, 7 - v]", "n": 8, "lanes": 8, "rows": 1, "axis": "threadIdx.y"},
    "in groups": {"value": "S[u, v // 32 * 32 + (v + 5) % 32]", "n": 64, "place": GROUPS},
    "pairs from the right": {"value": "S[u, (v + 2) % 64]", "n": 64, "place": PAIRS},
    "pairs crossed": {"value": "S[u, (v + 1) % 64]", "n": 64, "place": PAIRS},
}


@pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
def test_lanes_give_each_other_elements(case):
    func = exchange(**case)
    a = np.random.default_rng(0).random([int(s) for s in func.buffer_map[func.params[0]].shape]).astype("float32")
    want, got = np.zeros_like(a), np.zeros_like(a)
    tir.interp.run(func, a, want)
    mod = run_everywhere(func, [a, got], ("reverse", "warp_interleaved"))
    np.testing.assert_array_equal(want, got)
    assert "tvm_warp_shuffle" in mod.kernel_source() and "tvm_storage_sync" not in mod.kernel_source()


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (
            {"value": "S[u, T.Cast('int32', A[u, v])]"},
            "may differ between lanes: a shuffle has all lanes give one element",
        ),
        ({"value": "S[u, (v + 31) % 64]", "n": 64, "place": GROUPS}, "may differ between lanes"),
        ({"value": "S[u, 0]", "n": 24, "lanes": 24}, "needs 32 threads in threadIdx.x, or a power of two below"),
    ],
)
def test_what_lanes_cannot_give(case, why):
    with pytest.raises(tir.BuildError, match=why):
        tir.lower(exchange(**case), target="cuda")


def test_a_shuffle_under_a_divergent_condition_is_refused():
    text = (
        exchange("S[u, 31 - v]")
        .script()
        .replace(
            "                    B[u, v] = S", "                    if v < 9:\n                        B[u, v] = S"
        )
    )
    with pytest.raises(tir.BuildError, match=r"under the divergent condition `t < 9`(.|\n)*T.if_then_else"):
        tir.lower(parse(text), target="cuda")


def test_a_lane_writes_its_own():
    text = exchange("S[u, 31 - v]").script().replace("S[u, v] = A", "S[u, 31 - v] = A")
    with pytest.raises(tir.BuildError, match=r"a lane writes its own|does not move evenly"):
        tir.lower(parse(text), target="cuda")


def test_warp_memory_has_one_axis():
    text = exchange("S[u, 31 - v]").script().replace('scope="warp"', 'scope="warp", axis_separators=[1]')
    with pytest.raises(tir.BuildError, match="`S` in warp memory has axis separators"):
        tir.lower(parse(text), target="cuda")


def test_lanes_that_a_guard_keeps_away_leave_the_others_their_registers():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((2, 2), "float32"), B: T.Buffer((2, 2), "float32")):
    for i, j in T.grid(2, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
""")
    sch = tir.Schedule(func)
    outer, lane = sch.split(sch.get_loops("B")[0], [None, 4])
    sch.bind(lane, "threadIdx.x")
    sch.reverse_compute_at(sch.cache_write("B", 0, "warp"), lane)
    a, b = np.ones((2, 2), "float32"), np.zeros((2, 2), "float32")
    tir.build(sch.mod, "cuda-sim")(a, b)
    np.testing.assert_array_equal(b, 2)


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_a_block_of_few_threads_or_none(threads):
    func = tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((4, {threads}), "int32"), P: T.Buffer((4, {threads}), "int32")):
    for i in T.thread_binding(4, "blockIdx.x"):
        for k in T.thread_binding({threads}, "threadIdx.x"):
            with T.block("P"):
                vi, vk = T.axis.remap("SS", [i, k])
                W = T.alloc_buffer((32,), "int32", scope="warp")
                W[vk] = A[vi, vk]
                P[vi, vk] = W[vk]
""")
    a = np.arange(4 * threads, dtype="int32").reshape(4, threads)
    p = np.zeros_like(a)
    tir.build(func, "cuda-sim")(a, p)
    np.testing.assert_array_equal(p, a)


FILL = """
@T.prim_func
def f(A: T.Buffer((256,), "float32")):
    ty = T.launch_thread("threadIdx.y", ROWS)
    tx = T.launch_thread("threadIdx.x", THREADS)
    c_data = T.allocate([256], "float32", "wmma.accumulator")
    WHERET.tvm_fill_fragment(c_data, 16, 16, 16, 0, T.float32(0), dtype="handle")
    WHERET.tvm_store_matrix_sync(c_data, 16, 16, 16, 0, T.address_of(A[0]), 16, "row_major", dtype="handle")
"""


@pytest.mark.parametrize("target", ["cuda", "cuda-sim"])
@pytest.mark.parametrize(("rows", "threads", "where", "last"), [
    (1, 1, "", 1), (1, 16, "", 16), (1, 16, "if tx < 4:\n        ", 16), (3, 16, "", 16), (1, 40, "", 8),
    (1, 32, "", 0), (2, 16, "", 0), (1, 64, "", 0), (1, 40, "if tx < 32:\n        ", 0),
])  # fmt: skip
def test_operators_of_whole_warps_are_refused_in_blocks_that_have_none(rows, threads, where, last, target):
    text = FILL.replace("ROWS", str(rows)).replace("THREADS", str(threads)).replace("WHERE", where)
    if last:
        what = f"tvm_fill_fragment takes all 32 threads of a warp, and the last warp of a block of {rows * threads} has {last}"
        with pytest.raises(tir.BuildError, match=what):
            tir.build(parse(text), target)
    else:
        tir.build(parse(text), target)
