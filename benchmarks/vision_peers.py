"""Operators on boxes and regions as they are written with NumPy and torch, which have none of their own."""

from __future__ import annotations

from typing import Any

import numpy as np


def sampled_regions(torch: Any, images: Any, corners: Any, places: Any) -> Any:
    """(regions, channels, n, n) of one image at ``places`` (n, from 0 to 1) of each region, x, y, x, y in parts of the image."""
    low, size = corners[:, :2], corners[:, 2:] - corners[:, :2]
    x, y = (low[:, n, None] + size[:, n, None] * places for n in (0, 1))
    shape = (len(corners), len(places), len(places))
    grid = torch.stack([x[:, None, :].expand(shape), y[:, :, None].expand(shape)], -1) * 2 - 1
    many = images.expand(len(corners), -1, -1, -1)
    return torch.nn.functional.grid_sample(many, grid, align_corners=True)


def roi_align(torch: Any, images: Any, rois: Any, side: int) -> Any:
    """Means of 2 by 2 samples of each part of the regions of one image."""
    places = (torch.arange(2 * side) + 0.5) / (2 * side)
    corners = rois[:, 1:] / (images.shape[-1] - 1)
    return torch.nn.functional.avg_pool2d(sampled_regions(torch, images, corners, places), 2)


def roi_pool(torch: Any, images: Any, rois: Any, side: int) -> Any:
    """The maxima of the parts of the regions, whose corners are pixels."""
    pool = torch.nn.functional.adaptive_max_pool2d
    corners = rois[:, 1:].int().tolist()
    return torch.cat([pool(images[:, :, y : v + 1, x : u + 1], side) for x, y, u, v in corners])


def deformable_conv2d(torch: Any, images: Any, offsets: Any, weights: Any) -> Any:
    """3 by 3 with a padding of 1, for one image."""
    _, _, height, width = images.shape
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    taps = []
    for n in range(9):
        rows, columns = (offsets[0, 2 * n + d] + p + t - 1 for d, p, t in ((0, y, n // 3), (1, x, n % 3)))
        grid = torch.stack([columns * (2 / (width - 1)) - 1, rows * (2 / (height - 1)) - 1], -1)[None]
        taps.append(torch.nn.functional.grid_sample(images, grid, align_corners=True)[0])
    return torch.einsum("kchw,ock->ohw", torch.stack(taps), weights.flatten(2))[None]


def box_iou(torch: Any, a: Any, b: Any) -> Any:
    shared = (torch.minimum(a[:, None, 2:], b[:, 2:]) - torch.maximum(a[:, None, :2], b[:, :2])).clamp(min=0).prod(-1)
    areas = [(c[:, 2:] - c[:, :2]).prod(-1) for c in (a, b)]
    return shared / (areas[0][:, None] + areas[1] - shared)


def non_max_suppression(boxes: np.ndarray, threshold: float) -> list[int]:
    """The numbers of the boxes (score, x, y, x, y) that no better one overlaps by ``threshold`` or more."""
    left, kept = np.argsort(-boxes[:, 0], kind="stable"), []
    corners, areas = boxes[:, 1:], np.prod(boxes[:, 3:] - boxes[:, 1:3], -1)
    while left.size:
        best, left = left[0], left[1:]
        kept.append(int(best))
        low, high = (
            f(corners[left, s], corners[best, s]) for f, s in ((np.maximum, slice(2)), (np.minimum, slice(2, 4)))
        )
        shared = np.prod(np.maximum(high - low, 0), -1)
        left = left[shared < threshold * (areas[left] + areas[best] - shared)]
    return kept
