"""The boxes and scores that a detector's moves of anchors mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import Expr, const
from ..te import Tensor, compute, error, if_then_else
from .anchors import moved_corners
from .nn.softmaxes import softmax
from .registry import arg, case, operator


def _numpy_decoded(
    cls_pred: Any, loc_pred: Any, anchor: Any, variances: Any, clip: bool = False, threshold: float = 0.0,
    keep_background: bool = True, apply_softmax: bool = True,
) -> Any:  # fmt: skip
    moves = loc_pred.reshape(len(loc_pred), -1, 4) * variances
    low, high = anchor[..., :2], anchor[..., 2:]
    middle, half = (low + high) / 2 + moves[..., :2] * (high - low), np.exp(moves[..., 2:]) * (high - low) / 2
    boxes = np.concatenate([(middle - half)[..., ::-1], (middle + half)[..., ::-1]], -1)
    grown = np.exp(cls_pred - cls_pred.max(1, keepdims=True))
    scores = grown / grown.sum(1, keepdims=True) if apply_softmax else cls_pred
    scores = np.where(scores >= threshold, scores, 0)
    scores[:, 0] *= keep_background
    return [np.clip(boxes, 0, 1) if clip else boxes, scores]


_WEIGHTS = (0.1, 0.1, 0.2, 0.2)


@operator(shapes="(b, c, n) T, (b, 4n) T, (1, n, 4) T -> (b, n, 4), (b, c, n)",
    section="vision",
    namespace="vision",
    reference=_numpy_decoded,
    cases=[
        case(arg((2, 3, 5)), arg((2, 20)), arg((1, 5, 4)), _WEIGHTS),
        case(arg((1, 3, 4)), arg((1, 16)), arg((1, 4, 4), values="positive"), (1, 1, 0.5, 0.5), True, 0.3, False),
        case(arg((2, 2, 3), "float64"), arg((2, 12), "float64"), arg((1, 3, 4), "float64"), _WEIGHTS, apply_softmax=False),
        case(arg((1, 3, "n")), arg((1, 20)), arg((1, "n", 4)), _WEIGHTS),
    ],
    tolerance=64,
)  # fmt: skip
def multibox_transform_loc(
    cls_pred: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    variances: Sequence[float],
    clip: bool = False,
    threshold: float = 0.0,
    keep_background: bool = True,
    apply_softmax: bool = True,
) -> list[Tensor]:
    """Boxes (batch, anchors, 4), y, x, y, x, that ``loc_pred`` makes of ``anchor``, and scores (batch, classes, anchors).

    ``anchor`` (1, anchors, 4) are corners x, y, x, y; ``loc_pred`` (batch, anchors · 4), times ``variances``, moves their middles
    by parts of their size x, y, and changes the logarithms of the sizes. ``clip`` cuts boxes to 0 … 1. Scores are
    ``cls_pred``, by :func:`nn.softmax` over classes unless ``apply_softmax`` is false, and 0 below ``threshold``, and of class 0
    without ``keep_background``. As a list of what is found: :func:`vision.ssd.multibox_transform_loc`.
    """
    batch, _, count = cls_pred.shape
    if len(variances) != 4:
        raise error(f"there are {len(variances)} variances", "4")
    kind = cls_pred.dtype

    def box(b: Any, n: Any, side: Any) -> Expr:
        x1, y1, x2, y2 = moved_corners(loc_pred, anchor, b, n, variances, clip)
        return if_then_else(side < 2, if_then_else(side == 0, y1, x1), if_then_else(side == 2, y2, x2))

    scores = softmax(cls_pred, 1) if apply_softmax else cls_pred

    def score(b: Any, c: Any, n: Any) -> Expr:
        made = if_then_else(scores(b, c, n) >= const(float(threshold), kind), scores(b, c, n), const(0, kind))
        return made if keep_background else if_then_else(c == 0, const(0, kind), made)

    return [
        compute((batch, count, 4), box, name="multibox_boxes"),
        compute(cls_pred.shape, score, name="multibox_scores"),
    ]
