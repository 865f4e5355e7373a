"""Resizing of one axis by a table of what each old element counts for."""

from __future__ import annotations

import math

import numpy as np

from ..graph import Value
from ..ops.promotion import wide
from ..ops.resizing import numpy_cubic
from .making import Making


def weights_of(at: np.ndarray, old: int, radius: int, narrow: float, alpha: float, only_inside: bool) -> np.ndarray:
    """What each of ``old`` elements counts for, ``(new, old)``, in new ones that lie ``at`` places among them: linearly (``radius`` 1) or by cubic
    polynomials (2) of the distance times ``narrow``. Places outside count for the elements at the ends, or not at all."""
    first = math.floor(-radius / narrow) + 1
    places = np.floor(at)[:, None] + np.arange(first, 2 - first)
    distance = np.abs((places - at[:, None]) * narrow)
    weights = np.clip(1 - distance, 0, 1) if radius == 1 else numpy_cubic(distance, alpha)
    if only_inside:
        weights = np.where((places >= 0) & (places < old), weights, 0)
    table = np.zeros((len(at), old))
    rows, columns = np.arange(len(at))[:, None], np.clip(places, 0, old - 1).astype("int64")
    np.add.at(table, (rows, columns), weights / weights.sum(1, keepdims=True))
    return table


def resized(c: Making, x: Value, axis: int, table: np.ndarray) -> Value:
    """A tensor resized along one axis; floats of 16 bits and integers become float32."""
    kind = str(wide(x.dtype) if x.dtype.is_float else "float32")
    x = c.of_type(x, kind)
    if axis == len(x.shape) - 2:
        return c.op("matmul", c.array(table.astype(kind)), x)
    turned = c.array(np.ascontiguousarray(table.T).astype(kind))
    if axis == len(x.shape) - 1:
        return c.op("matmul", x, turned)
    return c.op("moveaxis", c.op("matmul", c.op("moveaxis", x, axis, -1), turned), -1, axis)
