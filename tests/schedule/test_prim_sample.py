"""Sampling: seeds, decisions kept and replaced, distributions, refusals."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest
from prim_checks import refused, same, schedule

import tir
from tir.schedule.trace import Trace
from tir.script import parse

COPY = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi]
"""

SYMBOLIC = """
@T.prim_func
def main(n: T.int32, a: T.handle):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
"""


def tile(sch: tir.Schedule, n: int = 3, most: int = 16, decision: list[int] | None = None) -> list[int]:
    return [int(v) for v in sch.sample_perfect_tile("i", n, most, decision)]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("most", [1, 4, 16, 64])
def test_tiles_multiply_to_the_extent(n: int, most: int) -> None:
    sch = schedule(COPY, seed=7)
    for _ in range(20):
        factors = tile(sch, n, most)
        assert len(factors) == n and prod(factors) == 64
        assert n == 1 or factors[-1] <= most


def test_one_seed_one_sequence() -> None:
    runs = []
    for _ in range(2):
        sch = schedule(COPY, seed=42)
        runs.append([tile(sch) for _ in range(8)])
    assert runs[0] == runs[1]
    assert len({tuple(r) for r in runs[0]}) > 1
    other = schedule(COPY, seed=43)
    assert [tile(other) for _ in range(8)] != runs[0]


def test_undo_draws_the_same_again() -> None:
    sch = schedule(COPY, seed=3)
    first = tile(sch)
    sch.undo()
    assert tile(sch) == first


def test_copies_draw_their_own() -> None:
    sch = schedule(COPY, seed=5)
    other = sch.copy()
    assert [tile(sch) for _ in range(8)] != [tile(other) for _ in range(8)]


def test_every_tiling_is_equally_likely() -> None:
    sch = schedule(COPY.replace("64", "16"), seed=1)
    seen = Counter(tuple(tile(sch, 2, 16)) for _ in range(2000))
    assert set(seen) == {(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)}
    assert all(300 < count < 500 for count in seen.values()), seen


def test_categorical_distribution() -> None:
    sch = schedule(COPY, seed=1)
    seen = Counter(int(sch.sample_categorical([4, 8, 16], [0.5, 0.25, 0.25])) for _ in range(2000))
    assert set(seen) == {4, 8, 16}
    assert 900 < seen[4] < 1100 and 400 < seen[8] < 600, seen


def test_decisions_are_replayed() -> None:
    sch = schedule(COPY, seed=11)
    factors = sch.sample_perfect_tile("i", 3)
    sch.split("i", factors)
    same(sch)
    again = sch.trace.replay(parse(COPY), seed=99)
    tir.assert_structural_equal(again.mod, sch.mod)
    assert f"decision={[int(f) for f in factors]}" in str(sch.trace)


def test_another_decision() -> None:
    sch = schedule(COPY, seed=11)
    sch.split("i", sch.sample_perfect_tile("i", 3))
    other = sch.trace.with_decision(0, [2, 16, 2]).replay(parse(COPY))
    assert [int(other.get(x).extent) for x in other.get_loops("B")] == [2, 16, 2]
    same(other)


def test_a_provider_of_decisions() -> None:
    sch = schedule(COPY, seed=11)
    sch.split("i", sch.sample_perfect_tile("i", 2))
    fresh = schedule(COPY)
    sch.trace.apply_to_schedule(fresh, decision_provider=lambda entry, args, decision: [32, 2])
    assert [int(fresh.get(x).extent) for x in fresh.get_loops("B")] == [32, 2]


def test_arithmetic_on_a_sample() -> None:
    sch = schedule(COPY, seed=11)
    width = sch.sample_categorical([2, 4], [0.5, 0.5])
    sch.split("i", [None, width * 2])
    replayed = sch.trace.with_decision(0, 1).replay(parse(COPY))
    assert [int(replayed.get(x).extent) for x in replayed.get_loops("B")] == [8, 8]


def test_json() -> None:
    sch = schedule(COPY, seed=11)
    sch.split("i", sch.sample_perfect_tile("i", 3))
    again = schedule(COPY)
    Trace.from_json(sch.trace.as_json()).apply_to_schedule(again)
    tir.assert_structural_equal(again.mod, sch.mod)


def test_a_symbolic_loop() -> None:
    sch = schedule(SYMBOLIC)
    factors = sch.sample_perfect_tile("i", 4)
    assert factors == [None, 1, 1, 1]
    sch.split("i", factors)
    again = Trace.from_json(sch.trace.as_json()).replay(parse(SYMBOLIC))
    tir.assert_structural_equal(again.mod, sch.mod)
    scope: dict = {"tir": tir}
    exec(sch.trace.as_python(), scope)
    replayed = schedule(SYMBOLIC)
    scope["apply_trace"](replayed)
    tir.assert_structural_equal(replayed.mod, sch.mod)


def test_given_decision() -> None:
    sch = schedule(COPY)
    assert tile(sch, 3, 16, [4, 4, 4]) == [4, 4, 4]
    assert int(sch.sample_categorical([4, 8], [0.5, 0.5], 1)) == 8


def test_a_prime_above_the_limit() -> None:
    sch = schedule(COPY.replace("64", "61"), seed=2)
    assert tile(sch, 2, 16) == [61, 1]


def test_refusals() -> None:
    sch = schedule(COPY)
    refused(lambda: tile(sch, 3, 16, [4, 4, 5]), "is not 3 factors of the extent 64")
    refused(lambda: tile(sch, 3, 16, [8, 8]), "is not 3 factors")
    refused(lambda: tile(sch, 0), "1 to 64 factors, not 0")
    refused(lambda: tile(sch, 2**31), "1 to 64 factors, not 2147483648")
    refused(lambda: schedule(SYMBOLIC).sample_perfect_tile("i", 2, 16, [4, 4]), "is not [None, 1]", "symbolic")
    refused(lambda: tile(sch, 2, 16, [None, 1]), "is not 2 factors")
    refused(lambda: sch.sample_categorical([1, 2], [1.0]), "2 candidates but 1 probabilities")
    refused(lambda: sch.sample_categorical([], []), "0 candidates")
    refused(lambda: sch.sample_categorical([1, 2], [-1.0, 2.0]), "at least 0")
    refused(lambda: sch.sample_categorical([1, 2], [0.0, 0.0]), "not all 0")
    refused(lambda: sch.sample_categorical([1, 2], [0.5, 0.5], 2), "decision 2 is not an index")
