"""stage, sample_partitioned_tile, enter_postproc: what each gives, and what it refuses with which words."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

import tir

SCALE = """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""

BLUR = """
@T.prim_func
def main(A: T.Buffer((18,), "float32"), B: T.Buffer((16,), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(16, i * 4 + j)
            B[vi] = A[vi] + A[vi + 1] + A[vi + 2]
"""

MATMUL = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def test_stage_read():
    sch = schedule(SCALE)
    assert sch.stage("B", "A", "i").name == "A_local"
    same(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    A_local = T.alloc_buffer((8, 16), scope="local")
    for i in range(8):
        for ax1 in range(16):
            with T.block("A_local"):
                v0, v1 = T.axis.remap("SS", [i, ax1])
                A_local[v0, v1] = A[v0, v1]
        for j in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_local[vi, vj] * T.float32(2)
""",
    )


def test_stage_halo():
    sch = schedule(BLUR)
    copy = sch.stage("B", 0, "i", "shared")
    assert int(sch.get(sch.get_loops(copy)[-1]).extent) == 6
    same(sch)


def test_stage_write():
    sch = schedule(MATMUL)
    assert sch.stage("C", "C", "j").name == "C_local"
    assert [loop.name for loop in sch.get_loops("C_local")][:2] == ["i", "j"]
    same(sch)


def test_stage_all_of_a_tiled_matmul():
    sch = schedule(MATMUL)
    sch.tile(["i", "j"], [4, 4])
    sch.stage("C", "C", "j_0", "local")
    sch.stage("C", "A", "j_0", "local")
    sch.stage("C", "B", "j_0", "local")
    same(sch)


def test_stage_refusals():
    sch = schedule(MATMUL)
    refused(lambda: sch.stage("C", "D", "i"), "neither reads nor writes a buffer `D`", "A, B, C")
    error = refused(lambda: sch.stage("C", "C", "k"))
    assert error.witness
    other = schedule(SCALE)
    refused(lambda: other.stage("B", 3, "i"), "no number 3")


def test_stage_refuses_a_buffer_written_meanwhile():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((9,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi + 1] = A[vi] * T.float32(2)
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi + 1]
"""
    )
    refused(lambda: sch.stage("B", "A", "i"), "A")


def test_partitioned_tile():
    seen = set()
    for seed in range(60):
        sch = schedule(BLUR.replace("4, 4", "16, 1").replace("i * 4 + j", "i + j"), seed=seed)
        tile = sch.sample_partitioned_tile("i", 3, 1, 4)
        assert tile[0] * tile[1] * tile[2] == 16 and (tile[1] * tile[2]) % 4 == 0
        seen.add(tuple(int(f) for f in tile))
    assert len(seen) == 3 + 4 + 5  # inner parts of 4, 8 and 16
    sch.split("i", tile)
    same(sch)
    refused(lambda: sch.sample_partitioned_tile("i_0", 2, 1, 7), "not a multiple of 7")
    fresh = schedule(BLUR.replace("4, 4", "16, 1").replace("i * 4 + j", "i + j"))
    refused(lambda: fresh.sample_partitioned_tile("i", 2, 1, 7), "not a multiple of 7", "legal: 1, 2, 4, 8, 16")
    refused(lambda: sch.sample_partitioned_tile("j", 2, 2, 1), "partition_pos 2")
    refused(lambda: sch.sample_partitioned_tile("j", 2, 1, 1, decision=[3, 1]), "decision [3, 1]")


def test_partitioned_tile_replays_with_another_decision():
    sch = schedule(MATMUL, seed=1)
    sch.split("i", sch.sample_partitioned_tile("i", 2, 1, 2))
    other = sch.trace.with_decision(0, [1, 8]).replay(sch.history[0].mod)
    assert [int(other.get(loop).extent) for loop in other.get_loops("C")[:2]] == [1, 8]


def test_enter_postproc():
    sch = schedule(SCALE)
    sch.split("i", [2, 4])
    sch.enter_postproc()
    sch.parallel("i_0")
    same(sch)
    again = tir.Schedule(sch.history[0].mod)
    sch.trace.apply_to_schedule(again, remove_postproc=True)
    assert again.get(again.get_loops("B")[0]).kind == "serial"


@pytest.mark.parametrize("seed", [1, 2])
def test_seeds_decide(seed):
    first, second = (schedule(MATMUL, seed=seed).sample_partitioned_tile("k", 3, 1, 2) for _ in range(2))
    assert list(first) == list(second)
