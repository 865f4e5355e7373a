"""The budget of exact sets: it ends every question, also inside one operation of isl, and loses no proof that we keep."""

from __future__ import annotations

import itertools

import islpy
import pytest
from tools import replay

from tests.set_points import points as points_of
from tir.poly import IntegerSet, Relation, Together, TooLong, decide, relation

# what isl's steps become slower and slower on, as numbers grow: the instances of an im2col product's epilogue, of which
# nothing says that i0 // 2 and i3 // 64 are digits
DIGITS = """
{ [i0, i1, i2, i3] : exists (e0, e1: 0 <= i2 <= 55 and 0 <= i3 <= 255 and -7 + 12532i0 + 2014i1 - 8020i2 - 10e0 <=
25063e1 <= 12532i0 + 2014i1 - 8020i2 - 10e0 and 58898i0 + 9464i1 - 37694i2 - 47e0 <= 117796e1 <= 97 + 58898i0 + 9464i1 -
37694i2 - 47e0 and -31 + 1884736i0 + 302904i1 - 1206207i2 - 1504e0 <= 3769472e1 <= 1884736i0 + 302904i1 - 1206207i2 -
1504e0 and 2515072i0 + 404208i1 - 1609614i2 - 2007e0 <= 5030144e1 <= 195 + 2515072i0 + 404208i1 - 1609614i2 - 2007e0) }
"""
BOX = "{ [i0, i1, i2, i3] : 0 <= i0 <= 15 and 0 <= i1 <= 55 and 0 <= i2 <= 55 and 0 <= i3 <= 255 }"
# what the threads of an im2col kernel wrote last: with isl's limit of steps alone, this difference takes half a minute
WRITES = """
{ [i0] -> [o0] : exists (e0, e1, e2, e3, e4: 0 <= i0 <= 127 and o0 > i0 and 0 <= o0 <= 127 and -e1 + 4e3 < e4 <= 4 - e1
+ 4e3 and 8e4 >= 2 - o0 + 2e0 - 4e1 + 2e3 and 8e4 >= -o0 - 4e1 and -o0 - 8e1 <= 8e4 <= 7 - o0 - 8e1 and 8e4 <= 3 - o0 -
4e1 and 8e4 <= 3 - o0 + 2e0 - 4e1 + 2e3 and 56e4 >= -16 + 7i0 - 8o0 + 16e0 - 20e1 + 16e2 - 16e3 and -16 + 7i0 - 8o0 +
16e0 - 24e1 + 16e2 - 16e3 <= 56e4 <= -9 + 7i0 - 8o0 + 16e0 - 24e1 + 16e2 - 16e3 and 56e4 <= -13 + 7i0 - 8o0 + 16e0 -
20e1 + 16e2 - 16e3 and -28 + 13i0 - 14o0 + 32e0 - 34e1 + 30e2 - 28e3 <= 98e4 <= -27 + 13i0 - 14o0 + 32e0 - 34e1 + 30e2 -
28e3 and -223 + 97i0 - 96o0 + 224e0 - 224e1 + 224e2 - 192e3 <= 672e4 <= -192 + 97i0 - 96o0 + 224e0 - 224e1 + 224e2 -
192e3); [i0] -> [i0] : exists (e0, e1, e2, e3, e4: 0 <= i0 <= 127 and -e1 + 4e3 < e4 <= 4 - e1 + 4e3 and 8e4 >= 2 - i0 +
2e0 - 4e1 + 2e3 and 8e4 >= -i0 - 4e1 and -i0 - 8e1 <= 8e4 <= 7 - i0 - 8e1 and 8e4 <= 3 - i0 - 4e1 and 8e4 <= 3 - i0 +
2e0 - 4e1 + 2e3 and 56e4 >= -16 - i0 + 16e0 - 20e1 + 16e2 - 16e3 and -16 - i0 + 16e0 - 24e1 + 16e2 - 16e3 <= 56e4 <= -9
- i0 + 16e0 - 24e1 + 16e2 - 16e3 and 56e4 <= -13 - i0 + 16e0 - 20e1 + 16e2 - 16e3 and -28 - i0 + 32e0 - 34e1 + 30e2 -
28e3 <= 98e4 <= -27 - i0 + 32e0 - 34e1 + 30e2 - 28e3 and -223 + i0 + 224e0 - 224e1 + 224e2 - 192e3 <= 672e4 <= -192 + i0
+ 224e0 - 224e1 + 224e2 - 192e3) }
"""
LATER = """
{ [i0] -> [o0] : i0 >= 0 and o0 <= 127 and ((exists (e1, e2, e3, e4, e5, e6, e7, e8, e9, e10: -1 - i0 + 4*floor((i0)/32)
+ 2e2 <= 2e3 <= -i0 + 4*floor((i0)/32) + 2e2 and 16e3 >= -7 - 7i0 + 8e2 and 16e3 >= -3 - 7i0 - 4e1 + 8e2 and -e6 + 4e8 <
e9 <= 4 - e6 + 4e8 and 8e9 >= 2 - o0 + 2e5 - 4e6 + 2e8 and 8e9 >= -o0 - 4e6 and -o0 - 8e6 <= 8e9 <= 3 - o0 + 2e5 - 4e6 +
2e8 and i0 < e10 < o0 and 7e10 >= 9 + 8o0 - 16e5 + 24e6 - 16e7 + 16e8 + 56e9 and 13 + 8o0 - 16e5 + 20e6 - 16e7 + 16e8 +
56e9 <= 7e10 <= -4e1 + 8e2 - 16e4 and 7e10 <= 8e2 - 16e4 and 13e10 >= -1 + 12i0 + 4*floor((i0)/32) + 2e2 + 28e3 - 30e4
and 27 + 14o0 - 32e5 + 34e6 - 30e7 + 28e8 + 98e9 <= 13e10 <= 28 + 14o0 - 32e5 + 34e6 - 30e7 + 28e8 + 98e9 and 13e10 <=
12i0 + 4*floor((i0)/32) + 2e2 + 28e3 - 30e4 and 97e10 >= 96i0 + 32*floor((i0)/32) + 224e3 - 224e4 and 192 + 96o0 - 224e5
+ 224e6 - 224e7 + 192e8 + 672e9 <= 97e10 <= 223 + 96o0 - 224e5 + 224e6 - 224e7 + 192e8 + 672e9 and 97e10 <= 31 + 96i0 +
32*floor((i0)/32) + 224e3 - 224e4)) or (exists (e1, e2, e3, e4, e5, e6, e7, e8, e9: o0 > i0 and -1 - i0 +
4*floor((i0)/32) + 2e2 <= 2e3 <= -i0 + 4*floor((i0)/32) + 2e2 and 16e3 >= -7 - 7i0 + 8e2 and 16e3 >= -3 - 7i0 - 4e1 +
8e2 and 16e4 <= -7o0 - 4e1 + 8e2 and 16e4 <= -7o0 + 8e2 and -1 + 12i0 - 13o0 + 4*floor((i0)/32) + 2e2 + 28e3 <= 30e4 <=
12i0 - 13o0 + 4*floor((i0)/32) + 2e2 + 28e3 and 96i0 - 97o0 + 32*floor((i0)/32) + 224e3 <= 224e4 <= 31 + 96i0 - 97o0 +
32*floor((i0)/32) + 224e3 and -e6 + 4e8 < e9 <= 4 - e6 + 4e8 and 8e9 >= 2 - o0 + 2e5 - 4e6 + 2e8 and 8e9 >= -o0 - 4e6
and -o0 - 8e6 <= 8e9 <= 7 - o0 - 8e6 and 8e9 <= 3 - o0 - 4e6 and 8e9 <= 3 - o0 + 2e5 - 4e6 + 2e8 and -28 - o0 + 32e5 -
34e6 + 30e7 - 28e8 <= 98e9 <= -27 - o0 + 32e5 - 34e6 + 30e7 - 28e8 and -223 + o0 + 224e5 - 224e6 + 224e7 - 192e8 <=
672e9 <= -192 + o0 + 224e5 - 224e6 + 224e7 - 192e8))) }
"""


# schedules whose proofs take the most steps of isl in one operation, in thousands: a power of two that is enough
STEPS = {
    "classic/three_pools-split-reorder-compute_at-compute_at-rolling_buffer-rolling_buffer": 256,
    "classic/two_pools-split-reorder-compute_at-rolling_buffer": 16,
    "classic/im2col_epilogue-reverse_compute_inline": 8,
    "classic/im2col_epilogue-split-reverse_compute_inline": 8,
    "classic/im2col_epilogue-fuse-split-reverse_compute_inline": 16,
    "classic/im2col_epilogue-split-reverse_compute_inline~2": 64,
    "examples/gpu/sgemm-small": 8,
    "examples/gpu/tensor_core_gemm-small": 16,
    "primitives/rolling_buffer/an_accumulator": 8,
    "primitives/rolling_buffer/a_window_of_rows_and_columns": 16,
    "primitives/rolling_buffer/symbolic_rows": 4,
    "primitives/rolling_buffer/under_a_split_with_a_tail": 4,
    "primitives/reorder/tiles_with_a_halo": 4,
    "primitives/split/a_window_that_each_lane_has_for_itself": 4,
}


def test_large_sets_end_in_the_time_of_a_question(monkeypatch):
    monkeypatch.setattr(relation, "MOST_SECONDS", 0.02)
    monkeypatch.setattr(relation, "FIRST_STEPS", 2_000)
    for points, others in (
        (Relation(islpy.Map(WRITES)), Relation(islpy.Map(LATER))),
        (IntegerSet(islpy.Set(DIGITS)), IntegerSet(islpy.Set(BOX))),
    ):
        with pytest.raises(TooLong):
            points.subtract(others)
    assert islpy.DEFAULT_CONTEXT.get_max_operations() == 0


class Slow:
    """An operation that succeeds with so many steps of isl. Each attempt takes the time that its steps do."""

    def __init__(self, monkeypatch, needed: int, cost: float):
        self.needed, self.cost, self.now, self.attempts = needed, cost, 0.0, 0
        monkeypatch.setattr(relation, "thread_time", lambda: self.now)

    def __call__(self) -> str:
        steps = islpy.DEFAULT_CONTEXT.get_max_operations()
        self.attempts += 1
        self.now += 1e-6 * min(steps, self.needed) ** self.cost
        if steps < self.needed:
            raise islpy.Error("maximal number of operations exceeded")
        return "done"


@pytest.mark.parametrize("cost", [1.0, 1.2, 1.3, 1.4])
@pytest.mark.parametrize("needed", [10**3, 10**5, 10**6, 10**7])
def test_attempts_of_more_steps_follow_while_they_fit_into_the_time(needed, cost, monkeypatch):
    slow = Slow(monkeypatch, needed, cost)
    alone = 1e-6 * needed**cost
    try:
        relation._run(slow)
    except TooLong:
        assert alone > relation.MOST_SECONDS / 20
    assert slow.now <= relation.MOST_SECONDS


def test_questions_that_run_out_of_time_share_it(monkeypatch):
    slow = Slow(monkeypatch, 10**9, 1.2)

    def ask() -> float:
        start = slow.now
        assert isinstance(decide(relation._run, slow), TooLong)
        return slow.now - start

    alone = ask()
    with Together():
        together = [ask() for _ in range(10)]
    assert together[0] == pytest.approx(alone) and sum(together) < 2 * relation.MOST_SECONDS
    assert ask() == pytest.approx(alone)


def test_a_second_attempt_repeats_nothing(monkeypatch):
    monkeypatch.setattr(relation, "FIRST_STEPS", 20)
    box = IntegerSet(islpy.Set("{ [i, j] : 0 <= i < 7 and i <= j < 9 }"))
    assert sorted(points_of(box)) == [(i, j) for i in range(7) for j in range(i, 9)]


@pytest.mark.parametrize("name", STEPS)
def test_a_proof_takes_as_few_steps_as_before(name, monkeypatch):
    monkeypatch.setattr(relation, "FIRST_STEPS", 1000 * STEPS[name])
    monkeypatch.setattr(relation, "COST", 1e9)  # no other attempts
    monkeypatch.setattr(relation, "thread_time", map((1e-9).__mul__, itertools.count()).__next__)
    assert "== refused" not in replay.cases()[name]()


def test_a_question_is_answered_or_has_a_reason(monkeypatch):
    slow = Slow(monkeypatch, 10**9, 1.2)
    assert decide(lambda: 3) == 3
    assert str(decide(relation._run, slow)) == "exact sets do not decide it in bounded time"


def test_a_question_that_another_asks_shares_its_limit(monkeypatch):
    slow = Slow(monkeypatch, 10**9, 1.2)

    def asks_twice() -> object:
        return [decide(relation._run, slow) for _ in range(2)]

    first, second = decide(asks_twice)
    assert isinstance(first, TooLong) and isinstance(second, TooLong)
    assert slow.now <= relation.MOST_SECONDS
    assert relation._current.limit is None


def test_threads_ask_questions_of_their_own():
    """One that is asked while another thread's is answered, and is answered after it, leaves no limit behind."""
    from threading import Barrier, Thread

    inside, after, left = Barrier(2), Barrier(2), []

    def first() -> None:
        decide(inside.wait)
        after.wait()
        left.append(relation._current.limit)

    def second() -> None:
        decide(lambda: (inside.wait(), after.wait()))
        left.append(relation._current.limit)

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*left, relation._current.limit] == [None] * 3
