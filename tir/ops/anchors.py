"""The boxes of single-shot detectors: anchors, and the boxes that a network makes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import DType, Expr, cast, const
from .. import max as max_
from .. import min as min_
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor, at_most, compute, error, exp
from ..te.hybrid import statements
from .boxes import non_max_suppression, numpy_non_max_suppression
from .element_places import one_of
from .imperative import loops
from .registry import arg, case, complete, operator


@complete
def _numpy_multibox_prior(data: Any, sizes: Any, ratios: Any, steps: Any, offsets: Any, clip: bool) -> Any:
    height, width = data.shape[2:]
    step_y, step_x = (s if s > 0 else 1 / n for s, n in zip(steps, (height, width)))
    made = []
    for i, j in np.ndindex(height, width):
        y, x = (i + offsets[0]) * step_y, (j + offsets[1]) * step_x
        shapes = [(s, 1.0) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
        for size, ratio in shapes:
            w, h = size * height / width * np.sqrt(ratio) / 2, size / np.sqrt(ratio) / 2
            made.append([x - w, y - h, x + w, y + h])
    whole = np.array(made)[None]
    return np.clip(whole, 0, 1) if clip else whole


@operator(
    gives=(1, 6, 4), shapes="(n, c, h, w) -> (1, _, 4)", section="vision", namespace="vision.ssd", reference=_numpy_multibox_prior,
    cases=[case(arg((1, 2, 2, 3))), case(arg((1, 2, 3, 2)), (0.5, 0.25), (1, 2, 0.5), (0.3, 0.4), (0.2, 0.6), True)],
)  # fmt: skip
def multibox_prior(
    data: Tensor,
    sizes: Sequence[float] = (1,),
    ratios: Sequence[float] = (1,),
    steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Tensor:
    """Anchors (1, height · width · kinds, 4), corners x, y, x, y as parts of the image, of features ``data`` (NCHW).

    There is one of each of ``sizes`` with the first ratio 1, and one of the first size for each further one of ``ratios`` (width by
    height). ``steps`` (y, x) are the distances of features, and ``offsets`` where in them the middles are.
    """
    if not sizes or not ratios:
        raise error(f"anchors of sizes {tuple(sizes)} and ratios {tuple(ratios)}", "one or more of each")
    if len(steps) != 2 or len(offsets) != 2:
        raise error(f"steps {tuple(steps)} and offsets {tuple(offsets)}", "two of each, y and x")
    height, width = data.shape[2:]
    shapes = [(s, 1.0) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    kind, count = data.dtype, len(shapes)
    extents = [cast(kind, s) for s in (height, width)]
    widths = [const(s * math.sqrt(r) / 2, kind) for s, r in shapes]
    heights = [const(s / math.sqrt(r) / 2, kind) for s, r in shapes]

    def middle(place: Any, n: int) -> Expr:
        step = const(float(steps[n]), kind) if steps[n] > 0 else const(1, kind) / extents[n]
        return (cast(kind, place) + const(float(offsets[n]), kind)) * step

    def element(_: Any, number: Any, corner: Any) -> Expr:
        cell, which = number // count, number % count
        y, x = middle(cell // width, 0), middle(cell % width, 1)
        w, h = one_of(widths, which) * extents[0] / extents[1], one_of(heights, which)
        made = one_of([x - w, y - h, x + w, y + h], corner)
        return max_(min_(made, const(1, kind)), const(0, kind)) if clip else made

    return compute((1, height * width * count, 4), element, name="multibox_prior")


def _numpy_transform(cls_prob: Any, loc_pred: Any, anchor: Any, clip: bool, threshold: float, variances: Any) -> Any:
    batch, _, count = cls_prob.shape
    made, counts = np.full((batch, count, 6), -1.0), np.zeros(batch)
    for b in range(batch):
        found = []
        for n in range(count):
            best = int(np.argmax(cls_prob[b, 1:, n]))
            if cls_prob[b, 1 + best, n] > threshold:
                low, high = anchor[0, n, :2], anchor[0, n, 2:]
                size, middle, moved = high - low, (low + high) / 2, loc_pred[b].reshape(-1, 4)[n] * variances
                center, half = moved[:2] * size + middle, np.exp(moved[2:]) * size / 2
                corners = np.concatenate([center - half, center + half])
                found.append([best, cls_prob[b, 1 + best, n], *(np.clip(corners, 0, 1) if clip else corners)])
        counts[b] = len(found)
        made[b, : len(found)] = np.array(found).reshape(-1, 6)
    return [made, counts]


def moved_corners(moves: Any, anchors: Any, b: Any, n: Any, variances: Sequence[float], clip: bool) -> list[Expr]:
    """The corners x, y, x, y that ``moves`` (batch, anchors · 4) make of anchor ``n``, in 0 … 1 with ``clip``."""
    kind = anchors.dtype
    made: list[list[Expr]] = [[], []]
    for axis in (0, 1):
        low, high = anchors[0, n, axis], anchors[0, n, axis + 2]
        moved, scaled = (moves[b, n * 4 + k] * const(float(variances[k]), kind) for k in (axis, axis + 2))
        middle = moved * (high - low) + (low + high) * const(0.5, kind)
        half = exp(scaled) * (high - low) * const(0.5, kind)
        made[0].append(middle - half)
        made[1].append(middle + half)
    found = [*made[0], *made[1]]
    return [max_(min_(v, const(1, kind)), const(0, kind)) for v in found] if clip else found


@operator(
    shapes="(b, c, n) T, (b, 4n) T, (1, n, 4) T -> (b, n, 6), (b)", section="vision", namespace="vision.ssd",
    reference=complete(_numpy_transform),
    cases=[
        case(arg((2, 3, 4), values="distinct"), arg((2, 16)), arg((1, 4, 4), values="positive"), False, -1.0),
        case(
            arg((1, 3, 4), values="distinct"), arg((1, 16)), arg((1, 4, 4), values="small"), True, 1.5, (1, 1, 0.5, 0.5)
        ),
    ],
)  # fmt: skip
def multibox_transform_loc(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: Any = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> list[Tensor]:
    """Boxes (batch, anchors, 6): class, score and corners x, y, x, y, of those whose best class is more probable than
    ``threshold``; -1 after them, and (batch,) how many they are.

    ``cls_prob`` (batch, classes, anchors) has the background as class 0, which is not counted; ``loc_pred`` (batch, anchors · 4) moves the
    middles and scales the sizes of ``anchor`` (1, anchors, 4).
    """
    batch, classes, count = cls_prob.shape
    if not at_most(2, classes):
        raise error(f"probabilities {cls_prob.shape} are of the background alone", "2 classes at least")
    if len(variances) != 4:
        raise error(f"there are {len(variances)} variances", "4")
    kind = cls_prob.dtype

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        (scores, moves, anchors), (boxes, counts), (chosen,) = ins, outs, memory
        with ib.for_range(0, batch, "b") as b:
            with loops(ib, (count, const(6)), "z") as (n, field):
                boxes[b, n, field] = const(-1, kind)
            counts[b] = 0
            with ib.for_range(0, count, "n") as n:
                chosen[b] = 1
                with ib.for_range(2, classes, "c") as c, ib.if_scope(scores[b, c, n] > scores[b, chosen[b], n]):
                    chosen[b] = c
                with ib.if_scope(scores[b, chosen[b], n] > const(threshold, kind)):
                    values = [
                        cast(kind, chosen[b] - 1),
                        scores[b, chosen[b], n],
                        *moved_corners(moves, anchors, b, n, variances, clip),
                    ]
                    for field, value in enumerate(values):
                        boxes[b, counts[b], field] = value
                    counts[b] = counts[b] + 1

    int32 = DType("int32")
    specs = [((batch, count, 6), kind), ((batch,), int32)]
    return statements("multibox_transform_loc", [cls_prob, loc_pred, anchor], specs, body, [((batch,), int32)])


@complete
def _numpy_detection(
    cls_prob: Any, loc_pred: Any, anchor: Any, clip: bool, threshold: float, nms_threshold: float, force_suppress: bool,
    variances: Any, nms_topk: int,
) -> Any:  # fmt: skip
    boxes, counts = _numpy_transform(cls_prob, loc_pred, anchor, clip, threshold, variances)
    positions = np.tile(np.arange(boxes.shape[1]), (len(boxes), 1))
    return numpy_non_max_suppression(
        boxes, counts.astype(int), positions, -1, nms_threshold, force_suppress, nms_topk, 2, 1, 0, False, False
    )


@operator(
    shapes="(b, c, n) T, (b, 4n) T, (1, n, 4) T -> (b, n, 6)", section="vision", namespace="vision.ssd",
    reference=_numpy_detection,
    cases=[
        case(arg((2, 3, 6), values="distinct"), arg((2, 24)), arg((1, 6, 4), values="positive"), False, -1.0, 0.2),
        case(
            arg((1, 4, 6), values="distinct"),
            arg((1, 24), values="small"),
            arg((1, 6, 4), values="small"),
            True,
            -9.0,
            0.3,
            True,
            (1, 1, 0.5, 0.5),
            4,
        ),
    ],
)  # fmt: skip
def multibox_detection(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: Any = 0.01,
    nms_threshold: Any = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> Tensor:
    """What a single-shot detector finds: the boxes of :func:`multibox_transform_loc`, of which
    :func:`non_max_suppression` leaves those that none with a better score overlaps by ``nms_threshold`` or more.

    The result (batch, anchors, 6) has class, score and corners by score, with -1 in the place of other boxes. Raises as they do.
    """
    boxes, counts = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    positions = compute(boxes.shape[:2], lambda _, n: cast("int32", n), name="positions")
    return non_max_suppression(
        boxes, counts, positions, -1, nms_threshold, force_suppress, nms_topk, return_indices=False
    )
