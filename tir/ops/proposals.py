"""Regions that a network proposes: anchors on a grid, moved and scaled by it, without those that overlap better ones (Ren et
al., Faster R-CNN, 2015)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import DType, Expr, cast, const
from .. import max as max_
from .. import min as min_
from ..ir_builder import BufferVar, IRBuilder
from ..te import Tensor, compute, equate, error, exp, floor, if_then_else
from ..te import any as any_
from ..te.hybrid import statements
from .boxes import Suppression, numpy_iou, overlap
from .element_places import integer, one_of
from .registry import arg, case, complete, operator
from .sorting import order_of

INT32 = DType("int32")


def _anchors(scales: Sequence[float], ratios: Sequence[float], stride: int) -> list[tuple[float, float, float, float]]:
    """The corners x, y, x, y (pixels, inclusive) of the anchors of the first place: of each ratio (height by width) one of each
    scale, all about a square of ``stride`` pixels."""
    made, middle = [], (stride - 1) / 2
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in scales:
            x, y = (width * scale - 1) / 2, (height * scale - 1) / 2
            made.append((middle - x, middle - y, middle + x, middle + y))
    return made


def _numpy_boxes(moves: Any, info: Any, anchors: Any, stride: int, iou_loss: bool) -> Any:
    """(height, width, anchors, 4) corners in the image of ``moves`` (4 anchors, height, width)."""
    _, height, width = moves.shape
    made = np.zeros((height, width, len(anchors), 4))
    for y, x, k in np.ndindex(height, width, len(anchors)):
        box = np.array(anchors[k]) + np.array([x, y, x, y]) * stride
        move = moves[4 * k : 4 * k + 4, y, x]
        if iou_loss:
            box = box + move
        else:
            size = box[2:] - box[:2] + 1
            middle, half = move[:2] * size + box[:2] + (size - 1) / 2, (np.exp(move[2:]) * size - 1) / 2
            box = np.concatenate([middle - half, middle + half])
        made[y, x, k] = np.clip(box, 0, np.array([info[1], info[0], info[1], info[0]]) - 1)
    return made


@complete
def _numpy_proposal(
    cls_prob: Any, bbox_pred: Any, im_info: Any, scales: Any, ratios: Any, feature_stride: int, threshold: float,
    rpn_pre_nms_top_n: int, rpn_post_nms_top_n: int, rpn_min_size: int, iou_loss: bool,
) -> Any:  # fmt: skip
    anchors, made = _anchors(scales, ratios, feature_stride), []
    for b, info in enumerate(im_info):
        boxes = _numpy_boxes(bbox_pred[b], info, anchors, feature_stride, iou_loss)
        scores = cls_prob[b, len(anchors) :].transpose(1, 2, 0).copy()
        scores[int(info[0] // feature_stride) :] = -1
        scores[:, int(info[1] // feature_stride) :] = -1
        least = info[2] * rpn_min_size
        small = (boxes[..., 2:] - boxes[..., :2] + 1 < least).any(-1)
        boxes[small] += np.array([-1, -1, 1, 1]) * least / 2
        scores[small] = -1
        flat, ranks = boxes.reshape(-1, 4), np.argsort(-scores.ravel(), kind="stable")
        kept: list[Any] = []
        for n in ranks[: rpn_pre_nms_top_n if rpn_pre_nms_top_n > 0 else None]:
            wide = flat[n] + [0, 0, 1, 1]
            if all(numpy_iou(wide, k + [0, 0, 1, 1]) <= threshold for k in kept):
                kept.append(flat[n])
        made += [[b, *kept[n % len(kept)]] for n in range(rpn_post_nms_top_n)]
    return np.array(made).reshape(-1, 5)


_INFO = np.array([[32, 40, 1], [24, 33, 1.5]])


@operator(gives=(10, 5), shapes="(b, 2a, h, w) T, (b, 4a, h, w) T, (b, 3) T -> (_, 5)",
    section="vision",
    namespace="vision",
    reference=_numpy_proposal,
    cases=[
        case(arg((2, 4, 2, 3), values="distinct"), arg((2, 8, 2, 3), values="small"), arg((2, 3), values=_INFO), (1.0, 0.5), (1.0,), 16, 0.3, 9, 5, 4),
        case(arg((2, 2, 3, 2), values="distinct"), arg((2, 4, 3, 2)), arg((2, 3), values=_INFO), (1.5,), (0.5,), 8, 0.7, 0, 4, 9, True),
    ],
    tolerance=64,
)  # fmt: skip
def proposal(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    scales: Sequence[float] = (8, 16, 32),
    ratios: Sequence[float] = (0.5, 1, 2),
    feature_stride: int = 16,
    threshold: Any = 0.7,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    rpn_min_size: int = 16,
    iou_loss: bool = False,
) -> Tensor:
    """The regions (batch · ``rpn_post_nms_top_n``, 5) that a network proposes: image and corners x, y, x, y (pixels, inclusive).

    For a grid of places ``feature_stride`` pixels apart, each with anchors of all ``scales`` and ``ratios`` (height by width),
    ``cls_prob`` (batch, 2 · anchors, height, width) has the probabilities of background and then of objects, and ``bbox_pred`` (batch,
    4 · anchors, height, width) how middles are moved and sizes scaled (or corners moved, with ``iou_loss``). ``im_info`` (batch, 3) are
    the height, width and scale of the images. Of the ``rpn_pre_nms_top_n`` best (all, where it is not positive), those are kept that
    overlap no better one by more than ``threshold``; where these are too few, they are repeated. Anchors below ``rpn_min_size``
    times the scale, and outside of the image, come last.
    """
    batch, _, height, width = _shape_of(cls_prob, len(scales) * len(ratios))
    anchors, kind = _anchors(scales, ratios, integer(feature_stride, "the stride")), cls_prob.dtype
    count, first, total = len(anchors), integer(rpn_pre_nms_top_n, "a number"), integer(rpn_post_nms_top_n, "a number")
    half, one = const(0.5, kind), const(1, kind)

    def corner(b: Any, y: Any, x: Any, k: Any, n: Any) -> Expr:
        """Corner ``n`` of an anchor, moved, in the image."""
        axis, grid = n % 2, cast(kind, if_then_else(n % 2 == 0, x, y) * feature_stride)
        low, high = (
            grid + one_of([one_of([const(a[s + d], kind) for d in (0, 1)], axis) for a in anchors], k) for s in (0, 2)
        )
        move = bbox_pred[b, 4 * k + n, y, x]
        if iou_loss:
            made = if_then_else(n < 2, low, high) + move
        else:
            size = high - low + one
            middle = bbox_pred[b, 4 * k + axis, y, x] * size + low + (size - one) * half
            reach = (exp(bbox_pred[b, 4 * k + axis + 2, y, x]) * size - one) * half
            made = middle + if_then_else(n < 2, -reach, reach)
        return max_(min_(made, im_info[b, if_then_else(axis == 0, 1, 0)] - one), const(0, kind))

    corners = compute((batch, height, width, count, 4), corner, name="corners")

    def is_small(b: Any, *at: Any) -> Expr:
        least = im_info[b, 2] * const(rpn_min_size, kind)
        return any_(*(corners[(b, *at, n + 2)] - corners[(b, *at, n)] + one < least for n in (0, 1)))

    def score(b: Any, y: Any, x: Any, k: Any) -> Expr:
        sizes = [floor(im_info[b, n] / const(feature_stride, kind)) for n in (0, 1)]
        is_outside = any_(cast(kind, y) >= sizes[0], cast(kind, x) >= sizes[1])
        return if_then_else(any_(is_outside, is_small(b, y, x, k)), const(-1, kind), cls_prob[b, count + k, y, x])

    def grown(b: Any, y: Any, x: Any, k: Any, n: Any) -> Expr:
        more = im_info[b, 2] * const(rpn_min_size / 2, kind)
        moved = corners[b, y, x, k, n] + if_then_else(n < 2, -more, more)
        return if_then_else(is_small(b, y, x, k), moved, corners[b, y, x, k, n])

    def flat(n: Any) -> tuple[Any, Any, Any]:
        return n // count // width, n // count % width, n % count

    whole = height * width * count
    scores = compute((batch, whole), lambda b, n: score(b, *flat(n)), name="scores")
    boxes = compute((batch, whole, 4), lambda b, n, side: grown(b, *flat(n), side), name="boxes")
    return _kept(boxes, order_of(scores, 1, False), const(threshold, kind), first, total)


def _shape_of(cls_prob: Tensor, anchors: int) -> tuple[Expr, ...]:
    if not equate(cls_prob.shape[1], 2 * anchors):
        raise error(
            f"cls_prob {cls_prob.shape} is not of {anchors} anchors, 2 channels each", f"{2 * anchors} channels"
        )
    return cls_prob.shape


def _kept(boxes: Tensor, order: Tensor, threshold: Expr, first: int, total: int) -> Tensor:
    """``total`` rows for each image: of its ``first`` best boxes those that overlap no better one, and these again."""
    batch, extent = order.shape
    best = min_(extent, first) if first > 0 else extent
    kind = boxes.dtype

    def body(ib: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar], memory: Sequence[BufferVar]) -> None:
        (given, ranks), (made,), (flags, kept, number) = ins, outs, memory
        with ib.for_range(0, batch, "image") as b:

            def pixels(j: Any) -> tuple[Expr, Expr, Expr, Expr]:
                x1, y1, x2, y2 = (given[b, ranks[b, j], n] for n in range(4))
                return x1, y1, x2 + const(1, kind), y2 + const(1, kind)

            def keep(j: Any, n: Any) -> None:
                kept[b, n] = ranks[b, j]

            run = Suppression(ib, lambda j: (flags, (b, j)), (number, (b,)))
            run.run(best, extent, lambda _: const(True), lambda j, k: overlap(pixels(j), pixels(k)) > threshold, keep)
            with ib.for_range(0, total, "n") as n:
                made[b * total + n, 0] = cast(kind, b)
                with ib.for_range(0, 4, "side") as side:
                    made[b * total + n, side + 1] = given[b, kept[b, n % number[b]], side]

    own = [((batch, extent), INT32), ((batch, extent), INT32), ((batch,), INT32)]
    return statements("proposal", [boxes, order], [((batch * total, 5), kind)], body, own)[0]
