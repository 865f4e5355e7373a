"""Programs of many blocks, and loops unrolled many times: what lowering makes of them stays bounded."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.stmt import Allocate, For
from tir.visit import walk


def chain(count, size):
    """``count`` nests, each of which adds one to what the nest before it made."""
    names = ["A", *(f"X{k}" for k in range(count - 1)), "B"]
    lines = [
        "@T.prim_func",
        f'def main(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32")):',
        *(f'    {name} = T.alloc_buffer(({size},), "float32")' for name in names[1:-1]),
    ]
    for k, (source, made) in enumerate(zip(names, names[1:])):
        lines += [
            f"    for i in range({size}):",
            f'        with T.block("b{k}"):',
            f"            vi = T.axis.spatial({size}, i)",
            f"            {made}[vi] = {source}[vi] + T.float32(1)",
        ]
    return parse("\n".join(lines) + "\n")


def test_a_thousand_blocks():
    """Every second buffer takes the place of one that is used no more."""
    made = tir.lower(chain(1000, 300))["main"]
    assert sum(isinstance(n, Allocate) for n in walk(made.body)) == 2
    assert sum(isinstance(n, For) for n in walk(made.body)) == 1000


@pytest.mark.parametrize("count", [1, 2, 3, 40])
@pytest.mark.parametrize("size", [3, 257])
@pytest.mark.parametrize("target", ["llvm", "cuda-sim"])
def test_chains_are_computed(count, size, target):
    func = chain(count, size)
    a, b = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    tir.build(func, target=target)(a, b)
    np.testing.assert_array_equal(b, a + count)


def test_each_nest_is_a_kernel_of_its_own():
    made = tir.lower(chain(200, 300), target="cuda-sim")
    assert len(made.functions) == 201


UNROLLED = """
@T.prim_func
def main(B: T.Buffer((64,), "int32")):
    for i in T.unroll({outer}):
        for j in T.{kind}({inner}):
            with T.block("B"):
                vi = T.axis.opaque({outer}, i)
                vj = T.axis.opaque({inner}, j)
                T.reads(B[0:64])
                T.writes(B[0:64])
                B[(vi * 7 + vj) % 64] = B[(vi * 7 + vj) % 64] * 3 + vi - vj
"""


@pytest.mark.parametrize("outer, inner", [(10**6, 1), (33, 32), (32, 32), (2, 10**6), (1, 1025), (10**9, 0), (0, 5)])
@pytest.mark.parametrize("kind", ["unroll", "serial"])
@pytest.mark.parametrize("target", ["llvm", "cuda-sim"])
def test_unrolling_is_bounded(outer, inner, kind, target):
    """More copies than a compiler takes are left a loop, which says why."""
    func = parse(UNROLLED.format(outer=outer, inner=inner, kind=kind))
    made = tir.transform.unroll_loop(tir.lower(func, target=target, upto="simplify"))
    loops = [n for f in made.functions.values() for n in walk(f.body) if isinstance(n, For)]
    marked = [n for n in loops if n.kind == "unrolled"]
    copies = outer * (inner if kind == "unroll" else 1)
    assert not marked
    if inner:
        assert any("rolled_because" in n.annotations for n in loops) == (copies > 1024)
    tir.transform.unroll_loop(func)  # an empty loop, which no pass has removed, is not copied either
    if max(outer, inner) <= 2000:
        got, want = np.arange(64, dtype="int32"), np.arange(64, dtype="int32")
        tir.build(func, target=target)(got)
        tir.interp.run(func, want)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("most", [64, 1 << 20, 1 << 40])
@pytest.mark.parametrize("inner, copied", [("range(n)", False), ("range(2)", True), ("T.vectorized(2)", False)])
def test_a_loop_around_one_that_stays_is_not_unrolled_by_itself(most, inner, copied):
    """However many steps are allowed: a loop that stays has no number of them."""
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), n: T.int32):
    with T.attr(0, "pragma_auto_unroll_max_step", {most}):
        for i in range(4):
            for j in {inner}:
                A[i * 2 + j] = 1.0
""")
    outer = [n for n in walk(tir.transform.unroll_loop(func).body) if isinstance(n, For) and n.loop_var.name == "i"]
    assert bool(outer) != copied
