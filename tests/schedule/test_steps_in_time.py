"""Blocks in a loop over time: it decides an iterator of theirs, and no data that they exchange does."""

import pytest
from prim_checks import refused, same, schedule

RNN = """
@T.prim_func
def main(X: T.Buffer((6, 2, 8), "float32"), H: T.Buffer((7, 2, 8), "float32")):
    G = T.alloc_buffer((2, 8), "float32")
    for t in range(6):
        for b, h in T.grid(2, 8):
            with T.block("G"):
                s = T.axis.{kind}(6, t)
                v, w = T.axis.remap("SS", [b, h])
                G[v, w] = X[s, v, w] + H[s, v, w]
        for b, h in T.grid(2, 8):
            with T.block("H"):
                s = T.axis.{kind}(6, t)
                v, w = T.axis.remap("SS", [b, h])
                H[s + 1, v, w] = T.tanh(G[v, w])
"""


@pytest.mark.parametrize("kind", ["opaque", "spatial", "scan"])
@pytest.mark.parametrize("move", [
    lambda s: s.reverse_compute_at("H", "G.b"),
    lambda s: s.reverse_compute_at("H", "G.h"),
    lambda s: s.compute_at("G", "H.b"),
    lambda s: s.compute_at("G", "H.h"),
])  # fmt: skip
def test_blocks_move_within_a_step(kind, move):
    sch = schedule(RNN.format(kind=kind))
    move(sch)
    same(sch)


def test_no_advice_to_bind_the_loop_over_time():
    sch = schedule(RNN.format(kind="opaque"))
    sch.bind("G.b", "threadIdx.x")
    sch.bind("H.b", "threadIdx.x")
    error = refused(lambda: sch.set_scope("G", 0, "local"), "would be used by two kernels")
    assert "blockIdx" not in str(error)
