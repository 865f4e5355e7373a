"""The figure of a plan of shared memory: where it draws which buffer."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

import tir
from tir.transform.shared_memory_table import PlannedBuffer, SharedMemoryPlan

SVG = "{http://www.w3.org/2000/svg}"


def planned(*places: tuple[int, int, int, int], kernel: int = 0, scope: str = "shared") -> list[PlannedBuffer]:
    """Buffers with (bytes, first, last, offset)."""
    return [PlannedBuffer(kernel, f"b{n}", scope, *place) for n, place in enumerate(places)]


PLANS = {
    "one": planned((64, 0, 0, 0)),
    "beside each other": planned((512, 0, 2, 0), (512, 3, 5, 0)),
    "below each other": planned((512, 0, 2, 0), (256, 0, 5, 512)),
    "both": planned((512, 0, 2, 0), (256, 2, 5, 512), (300, 3, 7, 0), (200, 4, 5, 304)),
    "many statements": planned((512, 0, 10, 0), (256, 11, 40, 0)),
    "no bytes": planned((0, 0, 1, 0)),
    "several kernels": [
        *planned((512, 0, 2, 0)),
        *planned((256, 0, 1, 0), scope="shared.dyn"),
        *planned((64, 0, 3, 0), kernel=1),
    ],
}


@pytest.mark.parametrize("name", PLANS)
def test_boxes_are_apart_where_lifetimes_or_bytes_are(name):
    plan = SharedMemoryPlan(PLANS[name])
    drawn = ElementTree.fromstring(plan.svg())
    across, down = (float(n) for n in drawn.attrib["viewBox"].split()[2:])
    boxes = [[float(r.attrib[k]) for k in ("x", "y", "width", "height")] for r in drawn.iter(f"{SVG}rect")]
    titles = [t.text or "" for t in drawn.iter(f"{SVG}title")]
    assert len(boxes) == len(plan)
    for b, (x, y, width, height), title in zip(plan, boxes, titles):
        assert 0 <= x < x + width <= across and 0 <= y < y + height <= down
        assert title == f"{b.name}: {b.bytes} B at {b.offset}, statements {b.first} to {b.last}"
    for (a, (ax, ay, aw, ah)), (b, (bx, by, bw, bh)) in combinations(list(zip(plan, boxes)), 2):
        if (a.kernel, a.scope) != (b.kernel, b.scope):
            assert ay + ah < by
            continue
        assert (ax + aw > bx and bx + bw > ax) == (a.first <= b.last and b.first <= a.last)
        assert (ay + ah > by and by + bh > ay) == (a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes)
        # both with their margins of 2 and 1 pixels, one scale for all
        assert (aw + 2) * (b.last - b.first + 1) == pytest.approx((bw + 2) * (a.last - a.first + 1), abs=2)
        assert (ah + 1) * b.bytes == pytest.approx((bh + 1) * a.bytes, rel=0.01)


def test_all_bytes_of_a_scope_are_one_height_whatever_their_number():
    heights = set()
    for size in (1, 2, 512):
        drawn = ElementTree.fromstring(SharedMemoryPlan(planned((size, 0, 0, 0))).svg())
        heights |= {rect.attrib["height"] for rect in drawn.iter(f"{SVG}rect")}
    assert len(heights) == 1


def test_the_offset_of_a_buffer_stands_on_the_left_of_its_box():
    plan = SharedMemoryPlan(PLANS["both"])
    drawn = ElementTree.fromstring(plan.svg())
    boxes = [[float(r.attrib[k]) for k in ("x", "y", "height")] for r in drawn.iter(f"{SVG}rect")]
    labels = [t for t in drawn.iter(f"{SVG}text") if t.attrib["text-anchor"] == "end"]
    assert [t.text for t in labels] == [str(b.offset) for b in plan]
    for label, (x, y, height) in zip(labels, boxes):
        assert float(label.attrib["x"]) < x and y < float(label.attrib["y"]) < y + height


def test_bytes_of_a_kernel_are_up_to_the_last_of_its_scope():
    plan = SharedMemoryPlan(PLANS["several kernels"] + planned((16, 0, 1, 1000), kernel=1, scope="shared.dyn"))
    assert [plan.total(), plan.total(0, "shared"), plan.total(0, "shared.dyn")] == [512, 512, 256]
    assert [plan.total(1), plan.total(1, "shared"), plan.total(2)] == [1016, 64, 0]
    assert "kernel 1, shared.dyn: 1016 B (16 B without reuse)" in plan.svg()


@pytest.mark.parametrize("target", [None, "llvm", "cuda"])
def test_a_schedule_has_the_plan_of_a_gpu_whatever_its_target(target):
    sch = tir.Schedule(tir.library.elementwise.transpose(8, 16), target=target)
    copy = sch.cache_read("out", "A", "shared")
    sch.bind("out.i", "blockIdx.x")
    sch.compute_at(copy, "out.i")
    assert [b.name for b in sch.shared_memory_plan()] == ["A_shared"]
