"""Boxes of detectors: what is refused, and what schedules know of the suppression."""

from __future__ import annotations

import pytest

import tir
from tir import ops, te
from tir.errors import TensorExpressionError

data = te.placeholder((2, 5, 6), name="data")
count = te.placeholder((2,), "int32", name="count")
numbers = te.placeholder((2, 5), "int32", name="numbers")
boxes = te.placeholder((1, 6, 4), name="boxes")

REFUSED = {
    "corners": (lambda: ops.vision.box_iou(te.placeholder((3, 5)), te.placeholder((2, 4))), r"has extent 5, not 4"),
    "batch": (lambda: ops.vision.non_max_suppression(data, numbers, numbers), r"has 1 dimension"),
    "counts": (
        lambda: ops.vision.non_max_suppression(data, te.placeholder((3,), "int32"), numbers),
        r"valid_count \(3,\) is not \(b\): axis 0 is 3, and b is 2 by data \(2, 5, 6\)",
    ),
    "fields": (
        lambda: ops.vision.non_max_suppression(data, count, numbers, coord_start=3),
        r"boxes of 6 fields have no corners from 3",
    ),
    "format": (
        lambda: ops.vision.all_class_non_max_suppression(boxes, boxes, 1, 0.5, 0.0, "tensorflow"),
        r"legal: 'onnx'",
    ),
    "scores": (
        lambda: ops.vision.all_class_non_max_suppression(boxes, te.placeholder((1, 3, 7)), 1, 0.5, 0.0),
        r"axis 2 is 7, and n is 6 by boxes",
    ),
    "anchors": (
        lambda: ops.vision.ssd.multibox_transform_loc(te.placeholder((1, 3, 4)), te.placeholder((1, 12)), boxes),
        r"loc_pred \(1, 12\) is not \(b, 4n\): axis 1 is 12, and 4n is 16",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_say_what_is_wrong(what):
    call, text = REFUSED[what]
    with pytest.raises(TensorExpressionError, match=text):
        call()


def test_images_of_a_batch_are_suppressed_in_parallel():
    kept, number = ops.vision.non_max_suppression(data, count, numbers)
    sch = tir.Schedule(te.create_prim_func([data, count, numbers, kept, number]))
    assert sch.can.parallel(sch["image"])
