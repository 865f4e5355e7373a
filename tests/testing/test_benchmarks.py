"""The benchmarks' machinery on the smallest of work: what it measures is not tested, that it measures is."""

from __future__ import annotations

import random
import sys
import xml.etree.ElementTree as ET

import pytest

import tir
from benchmarks import report
from benchmarks.arrays import inputs
from benchmarks.peers import Peer, available
from benchmarks.random_plain import KINDS, plain_program, square_program
from benchmarks.rules import judged
from benchmarks.run import measure, scratch
from benchmarks.work import Work, by_default, works
from tests.hand_schedules import gemm, rows


@pytest.fixture(scope="module")
def results():
    small = Work("gemm", (8, 8, 8), lambda t: gemm.scheduled_gemm(8, 8, 8, t), 1024.0)
    sums = by_default("row_sum", (4, 30), 480.0, "bytes")
    peer = Peer("NumPy", sys.executable, 1)
    measured = [measure(work, 1, [peer], 1, {}) for work in (small, sums)]
    peer.close()
    return measured


def test_a_row(results):
    first, second = results
    assert first["work"] == "gemm 8x8x8" and first["steps"] > 5
    assert first["ratio"]["NumPy"] == pytest.approx(first["seconds"]["NumPy"] / first["seconds"]["ours"])
    assert first["share"] == pytest.approx(first["rate"] / first["limit"])
    assert second["unit"] == "bytes" and second["limit"] > 0


def test_the_table_and_the_picture(results):
    assert "gemm 8x8x8" in report.as_text(results)
    assert report.as_markdown(results).count("\n") == 3
    assert [m[:2] for m in report.means(results)][:2] == [("gemm, 1 thread", "limit"), ("gemm, 1 thread", "NumPy")]
    circles = ET.fromstring(report.as_svg(results)).findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 2 + 2 * 2  # the legend, and a peer and the limit for each


def test_every_work_has_arrays_and_a_name_of_its_own():
    chosen = list(works(quick=True))
    assert len({work.name for work in chosen}) == len(chosen)
    assert {w.kind for w in chosen} == {w.kind for w in works()}
    for work in chosen:
        if work.amount < 1e7:
            assert len(work.arrays()) >= 2


def test_arrays_begin_with_a_cache_line():
    for array in inputs("layer_norm", (3, 5)):
        assert array.ctypes.data % 64 == 0


def test_peers_that_are_not_there_are_left_out():
    assert available(None)["NumPy"] == sys.executable
    peer = Peer("NumPy", sys.executable, 1)
    assert peer.seconds("conv2d_nhwc", (1, 4, 4, 4, 3, 1), 1) is None
    peer.close()


def test_scratch_counts_what_is_allocated():
    sch = rows.schedule_row_sum(tir.Schedule(rows.row_sum(2, 640)))
    assert scratch(tir.build(sch.mod)) > 0


def test_the_schedule_timed_beside_tvm_is_proved_without_sets(monkeypatch):
    from benchmarks import primitives, sgemm_schedule
    from tir.poly import Formula

    def unused(*_):
        raise AssertionError("sets were asked")

    monkeypatch.setattr(Formula, "map", unused)
    steps = list(sgemm_schedule.schedule(*primitives._fresh()))
    assert len(steps) == 16 and {"compute_at", "reverse_compute_at", "decompose_reduction", "parallel"} <= set(steps)
    rows = sgemm_schedule.measure(primitives._fresh, repeat=1)
    assert rows[0]["what"] == "schedule of sgemm, 16 steps" and len(rows) == 17


def test_random_programs_are_the_same_for_a_seed_and_of_every_kind():
    assert all(plain_program(n).script() == plain_program(n).script() for n in range(3))
    made = [square_program(n).script() for n in range(4)]
    assert len(set(made)) == len(made)
    assert all(isinstance(make(random.Random(5)), tir.PrimFunc) for make in KINDS.values())


def test_a_default_is_judged_beside_the_plain_program():
    row = judged(KINDS["flip"](random.Random(1)), 7)
    assert row.seed == 7 and row.schedules >= 1 and row.ratio == row.default / row.plain > 0
    assert min(row.expected) > 0 and f"{row.ratio:.2f} x" in str(row)
