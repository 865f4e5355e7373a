"""Boxes that detectors find: overlaps, and the suppression of those that overlap better ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from .. import DType, Expr, as_expr, cast, const
from .. import max as max_
from .. import min as min_
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor, compute, error, if_then_else
from ..te import all as all_
from ..te.hybrid import statements
from .element_places import as_index, constant_of, integer
from .imperative import loops
from .registry import arg, case, complete, operator
from .sorting import order_of

INT32, INT64 = DType("int32"), DType("int64")
Corners = tuple[Any, Any, Any, Any]

# ---------------------------------------------------------------- overlaps


def overlap(a: Corners, b: Corners) -> Expr:
    """The area that two boxes share by the area that they cover; corners may come in any order."""
    (x1, y1, x2, y2), (u1, v1, u2, v2) = _sorted(a), _sorted(b)
    zero = const(0, x1.dtype)
    shared = max_(min_(x2, u2) - max_(x1, u1), zero) * max_(min_(y2, v2) - max_(y1, v1), zero)
    covered = (x2 - x1) * (y2 - y1) + (u2 - u1) * (v2 - v1) - shared
    return if_then_else(covered <= zero, zero, shared / covered)


def _sorted(corners: Corners) -> Corners:
    x1, y1, x2, y2 = corners
    return min_(x1, x2), min_(y1, y2), max_(x1, x2), max_(y1, y2)


def numpy_iou(a: Any, b: Any) -> float:
    (ax1, ax2), (ay1, ay2) = sorted((a[0], a[2])), sorted((a[1], a[3]))
    (bx1, bx2), (by1, by2) = sorted((b[0], b[2])), sorted((b[1], b[3]))
    shared = max(0, min(ax2, bx2) - max(ax1, bx1)) * max(0, min(ay2, by2) - max(ay1, by1))
    total = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - shared
    return shared / total if total > 0 else 0.0


@operator(
    shapes="(n, 4) T, (m, 4) T -> (n, m)", section="vision", namespace="vision",
    reference=lambda a, b: np.array([[numpy_iou(p, q) for q in b] for p in a]).reshape(len(a), len(b)),
    cases=[
        case(arg((4, 4)), arg((3, 4))), case(arg((0, 4)), arg((2, 4))),
        case(arg((2, 4), "float64"), arg((1, 4), "float64")),
    ],
)  # fmt: skip
def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """How much each box of one list overlaps each of another: what they share by what they cover, from 0 to 1.

    Boxes (number, 4) are opposite corners x, y, x, y.
    """
    shape = (boxes1.shape[0], boxes2.shape[0])
    return compute(shape, lambda i, j: overlap(_corners(boxes1, i), _corners(boxes2, j)), name="box_iou")


def _corners(boxes: Any, *at: Any, start: int = 0) -> Corners:
    read = [boxes[(*at, start + n)] for n in range(4)]
    return read[0], read[1], read[2], read[3]


# ---------------------------------------------------------------- suppression


class Suppression:
    """Which of ranked boxes are kept: one that no kept box of a better rank overlaps.

    ``flags(j)`` is memory of one integer for rank ``j``, and ``number`` that of how many are kept.
    """

    def __init__(self, ib: IRBuilder, flags: Callable[[Any], tuple[BufferVar, Any]], number: tuple[BufferVar, Any]):
        self.ib = ib
        self.flags = flags
        self.number, self.cell = number

    def run(
        self,
        count: Any,
        limit: Any,
        is_candidate: Callable[[Any], Expr],
        overlaps: Callable[[Any, Any], Expr],
        keep: Callable[[Any, Any], None],
    ) -> None:
        """Of the first ``count`` ranks keep at most ``limit``: ``keep(rank, number)`` stores one."""
        ib = self.ib
        self.number[self.cell] = 0
        with ib.for_range(0, count, "j") as j:
            flag, at = self.flags(j)
            flag[at] = 0
            with ib.if_scope(self.number[self.cell] < limit), ib.if_scope(is_candidate(j)):
                flag[at] = 1
                with ib.for_range(0, j, "k") as k:
                    other, place = self.flags(k)
                    with ib.if_scope(all_(flag[at] == 1, other[place] == 1)), ib.if_scope(overlaps(j, k)):
                        flag[at] = 0
                with ib.if_scope(flag[at] == 1):
                    keep(j, self.number[self.cell])
                    self.number[self.cell] = self.number[self.cell] + 1


def numpy_non_max_suppression(
    data: Any, valid_count: Any, indices: Any, max_output_size: int, iou_threshold: float, force_suppress: bool, top_k: int,
    coord_start: int, score_index: int, id_index: int, return_indices: bool, invalid_to_bottom: bool,
) -> Any:  # fmt: skip
    made, places = np.full(data.shape, -1.0), np.full(data.shape[:2], -1)
    counts = np.zeros((len(data), 1))
    for b, boxes in enumerate(data):
        ranks = np.argsort(-boxes[: valid_count[b], score_index], kind="stable")
        kept: list[Any] = []
        for rank, n in enumerate(ranks[: top_k if top_k > 0 else None]):
            rivals = [k for k in kept if force_suppress or id_index < 0 or boxes[k][id_index] == boxes[n][id_index]]
            box = boxes[n][coord_start : coord_start + 4]
            is_good = all(numpy_iou(box, boxes[k][coord_start : coord_start + 4]) < iou_threshold for k in rivals)
            if (
                (max_output_size < 0 or len(kept) < max_output_size)
                and is_good
                and (id_index < 0 or boxes[n][id_index] >= 0)
            ):
                made[b, len(kept) if invalid_to_bottom else rank] = boxes[n]
                places[b, len(kept)] = indices[b, n]
                kept.append(n)
        counts[b] = len(kept)
    return [places, counts] if return_indices else made


_DETECTED = np.array(
    [
        [[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40], [2, 0.9, 35, 61, 52, 79], [1, 0.5, 31, 62, 51, 80]],
        [[0, 0.3, 0, 0, 9, 9], [0, 0.6, 0, 0, 9, 8], [-1, 0.9, 0, 0, 9, 9], [1, 0.6, 0, 1, 9, 9], [0, 0.2, 50, 50, 60, 60]],
    ]
)  # fmt: skip
_VALID, _NUMBERS = np.array([5, 4]), np.array([[0, 1, 3, 4, 6], [9, 8, 7, 6, 5]])


def _detections() -> list[Any]:
    return [arg((2, 5, 6), values=_DETECTED), arg((2,), "int32", _VALID), arg((2, 5), "int32", _NUMBERS)]


@operator(
    gives=[(2, 5), (2, 1)], shapes="(b, n, f), (b) integer, (b, n) integer -> (…r), (…s)", section="vision", namespace="vision",
    reference=complete(numpy_non_max_suppression),
    cases=[
        case(*_detections(), 2, 0.4, id_index=-1), case(*_detections(), -1, 0.7, True, return_indices=False),
        case(*_detections(), iou_threshold=0.4, top_k=3, return_indices=False, invalid_to_bottom=True),
    ],
)  # fmt: skip
def non_max_suppression(
    data: Tensor,
    valid_count: Tensor,
    indices: Tensor,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:
    """Of the boxes ``data`` (batch, number, fields) those that none with a better score overlaps by ``iou_threshold`` or more.

    Only boxes of one class (field ``id_index``, negative: none) suppress each other, or all with ``force_suppress`` or a negative
    ``id_index``. Taken are the first ``valid_count[b]`` boxes, of these the ``top_k`` best, and ``max_output_size`` are kept (all, where
    negative). Opposite corners stand from ``coord_start`` on, scores at ``score_index``.

    Gives ``indices`` (batch, number) of those that are kept by score, -1 after them, and (batch, 1) how many they are; or, without
    ``return_indices``, the boxes by score with -1 in the place of others, which ``invalid_to_bottom`` puts last.
    """
    fields = integer(data.shape[2], "the number of fields of a box")
    if not (0 <= coord_start <= fields - 4 and 0 <= score_index < fields and id_index < fields):
        raise error(
            f"boxes of {fields} fields have no corners from {coord_start}, score {score_index} or class {id_index}"
        )
    batch, extent = data.shape[:2]
    scores = compute((batch, extent), lambda b, n: data[b, n, score_index], name="scores")
    order = order_of(scores, 1, False, valid_count)
    threshold = constant_of(iou_threshold, data.dtype)
    limit = if_then_else(as_expr(max_output_size) < 0, extent, max_output_size)

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        boxes, counts, numbers, ranks = ins
        (kept_boxes, kept_numbers, total), (flags,) = outs, memory
        with ib.for_range(0, batch, "image") as b:
            with loops(ib, (extent, data.shape[2]), "z") as (n, field):
                kept_boxes[b, n, field] = const(-1, data.dtype)
            with ib.for_range(0, extent, "z") as n:
                kept_numbers[b, n] = -1

            def overlaps(j: Any, k: Any) -> Expr:
                ours, theirs = ((b, ranks[b, n]) for n in (j, k))
                met = overlap(*(_corners(boxes, *at, start=coord_start) for at in (ours, theirs))) >= threshold
                if force_suppress or id_index < 0:
                    return met
                return all_(boxes[(*ours, id_index)] == boxes[(*theirs, id_index)], met)

            def keep(j: Any, number: Any) -> None:
                with ib.for_range(0, data.shape[2], "f") as field:
                    kept_boxes[b, number if invalid_to_bottom else j, field] = boxes[b, ranks[b, j], field]
                kept_numbers[b, number] = numbers[b, ranks[b, j]]

            def is_candidate(j: Any) -> Expr:
                return boxes[b, ranks[b, j], id_index] >= const(0, data.dtype) if id_index >= 0 else const(True)

            count = cast(INT32, min_(as_index(counts[b]), extent))
            count = min_(count, top_k) if top_k > 0 else count
            run = Suppression(ib, lambda j: (flags, (b, j)), (total, (b, 0)))
            run.run(ib.let("count", count), limit, is_candidate, overlaps, keep)

    specs = [(data.shape, data.dtype), ((batch, extent), INT32), ((batch, 1), INT32)]
    made = statements(
        "non_max_suppression", [data, valid_count, indices, order], specs, body, [((batch, extent), INT32)]
    )
    return made[1:] if return_indices else made[0]


def _numpy_all_class(
    boxes: Any, scores: Any, max_output: Any, iou_threshold: Any, score_threshold: Any, output_format: str = "onnx"
) -> Any:
    found = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept: list[int] = []
        for n in np.argsort(-scores[b, c], kind="stable"):
            good = scores[b, c, n] > score_threshold and len(kept) < max_output
            if good and all(numpy_iou(boxes[b, n], boxes[b, k]) <= iou_threshold for k in kept):
                kept.append(int(n))
        found += [[b, c, n] for n in kept]
    made = np.zeros((scores.size, 3))
    made[: len(found)] = np.array(found).reshape(-1, 3)
    return [made, np.array([len(found)])]


@operator(
    gives=[(36, 3), (1,)], shapes="(b, n, 4) T, (b, c, n) T -> (_, 3), (1)", section="vision", namespace="vision", reference=_numpy_all_class,
    cases=[
        case(arg((2, 6, 4), values="positive"), arg((2, 3, 6), values="distinct"), 2, 0.1, -10.0),
        case(arg((1, 5, 4), values="positive"), arg((1, 1, 5), values="positive"), 9, 0.3, 1.0),
    ],
)  # fmt: skip
def all_class_non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    output_format: Literal["onnx"] = "onnx",
) -> list[Tensor]:
    """As ONNX's NonMaxSuppression: for each class of each image, at most so many boxes with a score above ``score_threshold`` that no
    better one of the class overlaps by more than ``iou_threshold``.

    ``boxes`` (batch, number, 4) are opposite corners; ``scores`` are (batch, classes, number). Gives (batch · classes · number, 3)
    int64: batch, class and box of those that are kept, zeros after them, and (1,) how many they are.
    """
    batch, classes, extent = scores.shape
    order = order_of(scores, 2, False)
    most, least = constant_of(iou_threshold, boxes.dtype), constant_of(score_threshold, boxes.dtype)

    def suppress(
        ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]
    ) -> None:
        (corners, values, ranks), (kept, count), (flags,) = ins, outs, memory
        with loops(ib, (batch, classes), "r") as row:
            b = row[0]

            def keep(j: Any, number: Any) -> None:
                kept[(*row, number)] = ranks[(*row, j)]

            run = Suppression(ib, lambda j: (flags, (*row, j)), (count, row))
            run.run(
                extent,
                cast(INT32, as_expr(max_output_boxes_per_class)),
                lambda j: values[(*row, ranks[(*row, j)])] > least,
                lambda j, k: overlap(*(_corners(corners, b, ranks[(*row, n)]) for n in (j, k))) > most,
                keep,
            )

    whole, rows = (scores.shape, INT32), ((batch, classes), INT32)
    kept, count = statements("suppressed", [boxes, scores, order], [whole, rows], suppress, [whole])
    return _packed(kept, count)


def _packed(kept: Tensor, count: Tensor) -> list[Tensor]:
    """The boxes that are kept of all rows, one after another."""
    batch, classes, extent = kept.shape

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        (places, counts), (made, total) = ins, outs
        with loops(ib, made.buffer.shape, "z") as at:
            made[at] = const(0, INT64)
        total[0] = const(0, INT64)
        with loops(ib, (batch, classes), "r") as row, ib.for_range(0, counts[row], "n") as n:
            for field, value in enumerate((*row, places[(*row, n)])):
                made[total[0], field] = value
            total[0] = total[0] + 1

    specs = [((batch * classes * extent, 3), INT64), ((1,), INT64)]
    return statements("all_class_non_max_suppression", [kept, count], specs, body)


def _numpy_valid(data: Any, score_threshold: float = 0, id_index: int = 0, score_index: int = 1) -> Any:
    counts, made, places = np.zeros(len(data)), np.full(data.shape, -1.0), np.full(data.shape[:2], -1)
    for b, boxes in enumerate(data):
        good = np.flatnonzero((boxes[:, score_index] > score_threshold) & ((id_index < 0) | (boxes[:, id_index] >= 0)))
        counts[b], made[b, : len(good)], places[b, : len(good)] = len(good), boxes[good], good
    return [counts, made, places]


@operator(
    shapes="(b, n, f) -> (b), (b, n, f), (b, n)", section="vision", namespace="vision", reference=_numpy_valid,
    cases=[case(arg((2, 5, 6), values=_DETECTED), 0.45), case(arg((2, 4, 5)), 0.0, -1, 0)],
)  # fmt: skip
def get_valid_counts(data: Tensor, score_threshold: Any = 0, id_index: int = 0, score_index: int = 1) -> list[Tensor]:
    """The boxes of ``data`` (batch, number, fields) with a score above the threshold, and a class that is not negative.

    Gives (batch,) how many they are, the boxes with these first and -1 after them, and (batch, number) where each was.
    """
    fields = integer(data.shape[2], "the number of fields of a box")
    if not (0 <= score_index < fields and id_index < fields):
        raise error(f"boxes of {fields} fields have no score {score_index} or class {id_index}")
    least, batch, extent = constant_of(score_threshold, data.dtype), *data.shape[:2]

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], _: Any) -> None:
        boxes, (counts, made, places) = ins[0], outs
        with ib.for_range(0, batch, "b") as b:
            counts[b] = 0
            with ib.for_range(0, extent, "n") as n:
                is_known = boxes[b, n, id_index] >= const(0, data.dtype) if id_index >= 0 else const(True)
                with ib.if_scope(all_(boxes[b, n, score_index] > least, is_known)):
                    with ib.for_range(0, fields, "f") as f:
                        made[b, counts[b], f] = boxes[b, n, f]
                    places[b, counts[b]] = n
                    counts[b] = counts[b] + 1
            with ib.for_range(counts[b], extent, "r") as r:
                with ib.for_range(0, fields, "f") as f:
                    made[b, r, f] = const(-1, data.dtype)
                places[b, r] = -1

    specs = [((batch,), INT32), (data.shape, data.dtype), ((batch, extent), INT32)]
    return statements("get_valid_counts", [data], specs, body)
