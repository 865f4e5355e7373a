"""A reduction across threads is lowered wherever its thread loop is: around blocks, or inside of them."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.transform import lower_cross_thread_reduction

HEAD = """
@T.prim_func
def main(A: T.Buffer((4, 32), "int32"), B: T.Buffer((4,), "int32")):
"""
SUM = """with T.block("B"):
    vi = T.axis.spatial(4, {i})
    vk = T.axis.reduce(32, {k})
    with T.init():
        B[vi] = 0
    B[vi] += A[vi, vk]
"""
NESTS = {
    "no scope": [
        "for i in T.thread_binding(4, thread='blockIdx.x'):",
        "for k in T.thread_binding(32, thread='threadIdx.x'):",
    ],
    "a scope between the thread loop and the reduction": [
        "for i in T.thread_binding(4, thread='blockIdx.x'):",
        "for k in T.thread_binding(32, thread='threadIdx.x'):",
        "with T.block('scope'):",
    ],
    "a scope around the thread loop": [
        "for i in T.thread_binding(4, thread='blockIdx.x'):",
        "with T.block('scope'):",
        "for k in T.thread_binding(32, thread='threadIdx.x'):",
    ],
    "two scopes": [
        "for i in T.thread_binding(4, thread='blockIdx.x'):",
        "with T.block('scope'):",
        "for k in T.thread_binding(32, thread='threadIdx.x'):",
        "with T.block('inner'):",
    ],
    "a block with an iterator around the thread loop": [
        "for i in T.thread_binding(4, thread='blockIdx.x'):",
        "with T.block('tile'):",
        ":vt = T.axis.spatial(4, i)",
        "for k in T.thread_binding(32, thread='threadIdx.x'):",
    ],
    "a serial part": [
        "for i in T.thread_binding(4, thread='blockIdx.x'):",
        "for k0 in range(4):",
        "for k in T.thread_binding(8, thread='threadIdx.x'):",
        "with T.block('scope'):",
    ],
}


def program(nest: list[str]) -> tir.PrimFunc:
    lines, depth = [], 1
    for line in nest:
        lines.append("    " * depth + line.lstrip(":"))
        depth += not line.startswith(":")
    body = SUM.format(
        i="vt" if any("vt =" in n for n in nest) else "i", k="k0 * 8 + k" if "k0" in " ".join(nest) else "k"
    )
    return parse(HEAD + "\n".join([*lines, *("    " * depth + line for line in body.splitlines())]))


@pytest.mark.parametrize("name", NESTS)
def test_a_sum_across_threads(name):
    func = program(NESTS[name])
    assert "tvm_thread_allreduce" in lower_cross_thread_reduction(func).script()
    a = np.random.default_rng(0).integers(-9, 9, (4, 32)).astype("int32")
    b = np.zeros(4, "int32")
    tir.build(func, target="cuda-sim")(a, b)
    np.testing.assert_array_equal(b, a.sum(1))


SOME_ROWS = """
@T.prim_func
def main(A: T.Buffer((8, {n}), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8, thread="threadIdx.y"):
        if {rows}:
            for k in T.thread_binding({n}, thread="threadIdx.x"):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 0
                    B[vi] += A[vi, vk]
"""


@pytest.mark.parametrize("n", [1, 2, 8, 16, 32])
@pytest.mark.parametrize("rows", ["i % 2 == 1", "i % 3 == 0", "i < 3"])
def test_only_the_threads_of_some_rows_combine_their_parts(n, rows):
    """Rows share a warp; a shuffle waits for no lane of a row that is left out."""
    a = np.random.default_rng(0).integers(-9, 9, (8, n)).astype("int32")
    b = np.full(8, 77, "int32")
    tir.build(parse(SOME_ROWS.format(n=n, rows=rows)), target="cuda-sim")(a, b)
    runs = np.array([eval(rows, {"i": i}) for i in range(8)])
    np.testing.assert_array_equal(b, np.where(runs, a.sum(1), 77))


@pytest.mark.parametrize("use", ["B[vi] = 5", "C[vi] = B[vi]", "B[vi] = B[vi] + 1"])
def test_nothing_uses_the_result_before_all_parts_are_combined(use):
    other = f"with T.block('other'):\n    vi = T.axis.spatial(4, i)\n    {use}\n"
    body = SUM.format(i="i", k="k0 * 8 + k") + other
    nest = [
        "for i in T.thread_binding(4, thread='blockIdx.x'):",
        "for k0 in range(4):",
        "for k in T.thread_binding(8, thread='threadIdx.x'):",
    ]
    lines = ["    " * n + line for n, line in enumerate(nest, 1)]
    text = HEAD.replace("main(", "main(C: T.Buffer((4,), 'int32'), ") + "\n".join(
        [*lines, *("    " * 4 + line for line in body.splitlines())]
    )
    with pytest.raises(tir.BuildError, match="before all threads' parts are combined"):
        lower_cross_thread_reduction(parse(text))


TWO_RESULTS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), S: T.Buffer((4, 2), "int32"), Q: T.Buffer((4, 2), "int32")):
    S_1 = T.alloc_buffer((4,), "int32", scope="{s}")
    Q_1 = T.alloc_buffer((4,), "int32", scope="{q}")
    for i in T.thread_binding(4, thread="threadIdx.x"):
        {starts}
        for k0 in range(4):
            for k1 in T.thread_binding(2, thread="threadIdx.z"):
                with T.block("both"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(8, k0 * 2 + k1)
                    {init}
                    {update}
        for j in T.thread_binding(2, thread="threadIdx.z"):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = S_1[vi] + vj
            with T.block("Q"):
                vi, vj = T.axis.remap("SS", [i, j])
                Q[vi, vj] = Q_1[vi] + vj
"""
START = "S_1[vi] = {s}\n{pad}Q_1[vi] = {q}"
SUMS = """S_1[vi] = S_1[vi] + A[vi, vk]
                    Q_1[vi] = Q_1[vi] + A[vi, vk] * A[vi, vk]"""


@pytest.mark.parametrize("q", ["global", "shared", "local"])
@pytest.mark.parametrize("s", ["global", "shared", "local"])
@pytest.mark.parametrize("starts", ["in the block", "in a block before"])
def test_each_result_is_where_its_scope_says(s, q, starts):
    """One reduction's results: in registers of every thread that reduces, or in memory that one of them writes."""
    init, before, old = "", "", (0, 0)
    if starts == "in the block":
        init = "with T.init():\n" + " " * 24 + START.format(s=0, q=0, pad=" " * 24)
    else:
        old = 5, 7
        before = f'with T.block("before"):\n{" " * 12}vi = T.axis.spatial(4, i)\n{" " * 12}'
        before += START.format(s=5, q=7, pad=" " * 12)
    func = parse(TWO_RESULTS.format(s=s, q=q, init=init, update=SUMS, starts=before))
    a = np.random.default_rng(0).integers(-9, 9, (4, 8)).astype("int32")
    got = [np.zeros((4, 2), "int32") for _ in range(2)]
    tir.build(func, target="cuda-sim")(a, *got)
    want = [old[0] + a.sum(1), old[1] + (a * a).sum(1)]
    for actual, expected in zip(got, want):
        np.testing.assert_array_equal(actual, expected[:, None] + np.arange(2))
