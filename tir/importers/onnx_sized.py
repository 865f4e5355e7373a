"""Rows of ONNX operators whose results have a size that depends on elements: computed at import, where these are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from .making import axis_of
from .onnx_table import Call, row


@row("NonZero", 9)
def _nonzero(c: Call) -> Any:
    found = c.sizing(0)
    return c.array(
        np.stack(np.nonzero(found)).astype("int64") if found.ndim else np.zeros((0, int(bool(found))), "int64")
    )


@row("Compress", 9)
def _compress(c: Call) -> Any:
    places = np.flatnonzero(c.sizing(1))
    axis = c.attribute("axis")
    x = c.op("reshape", c[0], (c[0].elements,)) if axis is None else c[0]
    return c.op("take", x, c.array(places), axis_of(axis or 0, len(x.shape)))


@row("Unique", 11)
def _unique(c: Call) -> Any:
    """The values, where each was first, for each element the number of its value, and how many there are of each."""
    found, axis = c.sizing(0), c.attribute("axis")
    values, first, inverse, counts = np.unique(found, True, True, True, axis=axis)
    order = np.arange(len(first)) if c.attribute("sorted", 1) else np.argsort(first)
    places = np.argsort(order)[inverse.reshape(-1)]
    made = (np.take(values, order, axis or 0), first[order], places, counts[order])
    return [c.array(made[0]), *(c.array(a.astype("int64")) for a in made[1:])][: len(c.outputs)]


@row("NonMaxSuppression", 10)
def _suppression(c: Call) -> Any:
    """The boxes that are kept, ``(batch, class, box)``: of each class the best first, none that overlaps one before it too much."""
    boxes, scores = c.sizing(0), c.sizing(1)
    most, overlap, least = (
        None if c.get(n) is None else float(c.sizing(n).reshape(-1)[0]) for n in (2, 3, 4)
    )  # the number of boxes of a class, and limits
    c.room(scores.size * boxes.shape[1])
    corners = _corners(boxes, bool(c.attribute("center_point_box", 0)))
    kept = []
    for batch, kind in np.ndindex(*scores.shape[:2]):
        chosen: list[int] = []
        for box in np.argsort(-scores[batch, kind], kind="stable"):
            if len(chosen) >= (most or 0) or (least is not None and scores[batch, kind, box] <= least):
                break
            if (_shared(corners[batch, box], corners[batch, chosen]) <= (overlap or 0.0)).all():
                chosen.append(int(box))
        kept += [(batch, kind, box) for box in chosen]
    return c.array(np.array(kept, "int64").reshape(-1, 3))


def _corners(boxes: np.ndarray, is_centered: bool) -> np.ndarray:
    """Boxes as the least and the largest corner."""
    if is_centered:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return np.concatenate([middle - half, middle + half], -1)
    one, other = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(one, other), np.maximum(one, other)], -1)


def _shared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The area that a box shares with each of others, over the area of both together."""
    inside = np.clip(np.minimum(a[2:], b[:, 2:]) - np.maximum(a[:2], b[:, :2]), 0, None).prod(1)
    both = (a[2:] - a[:2]).prod() + (b[:, 2:] - b[:, :2]).prod(1) - inside
    return np.divide(inside, both, out=np.zeros(len(b)), where=both > 0)
