"""The operators on AMX tile registers. A buffer of tiles is memory of 16 rows of 64 bytes per tile."""

from __future__ import annotations

import numpy as np

from ..dtype import DType
from ..errors import RunError
from .numbers import decode_table

ROWS, ROW = 16, 64  # of a tile: rows, bytes of each


def tile(memory: np.ndarray, number: int) -> np.ndarray:
    """Tile ``number`` as a matrix of bytes."""
    held = memory.view(np.uint8)[number * ROWS * ROW : (number + 1) * ROWS * ROW]
    if number < 0 or held.size != ROWS * ROW:
        raise RunError(f"tile {number} of a buffer of {memory.nbytes // (ROWS * ROW)} tiles")
    return held.reshape(ROWS, ROW)


def rows(memory: np.ndarray, stride: int) -> np.ndarray:
    """The rows of memory that a tile is loaded from or stored to, ``stride`` bytes apart."""
    held = memory.view(np.uint8)
    if held.size < (ROWS - 1) * stride + ROW:
        raise RunError(f"a tile of rows {stride} bytes apart ends beyond the {held.size} bytes that are there")
    return np.lib.stride_tricks.as_strided(held, (ROWS, ROW), (stride, 1))


def amx_tile_zero(memory: np.ndarray, number: int) -> None:
    tile(memory, number)[:] = 0


def amx_tile_load(memory: np.ndarray, number: int, source: np.ndarray, stride: int) -> None:
    tile(memory, number)[:] = rows(source, stride)


def amx_tile_stream(memory: np.ndarray, number: int, source: np.ndarray, stride: int) -> None:
    """As ``amx_tile_load``; CPUs may keep the data out of the L1 cache."""
    amx_tile_load(memory, number, source, stride)


def amx_tile_store(memory: np.ndarray, number: int, target: np.ndarray, stride: int) -> None:
    rows(target, stride)[:] = tile(memory, number)


def amx_tile_dot(kind: str, c: np.ndarray, nc: int, a: np.ndarray, na: int, b: np.ndarray, nb: int) -> None:
    """c[i, j] += the sum over k of a[i, k] * b[k, j]; each row of b holds groups of elements consecutive in k.

    ``kind``: "bf16" (groups of two, sums in float32), or the signedness of a's and b's bytes, "ss", "su", "us", "uu"
    (groups of four, sums in int32).
    """
    if kind == "bf16":
        table = decode_table(DType("bfloat16"))
        total = tile(c, nc).view(np.float32)
        left, right = (table[tile(m, n).view(np.uint16)] for m, n in ((a, na), (b, nb)))
        group = 2
    else:
        total = tile(c, nc).view(np.int32)
        signs = (np.int8 if s == "s" else np.uint8 for s in kind)
        left, right = (tile(m, n).view(s).astype(np.int32) for (m, n), s in zip(((a, na), (b, nb)), signs))
        group = 4
    for k in range(left.shape[1]):
        total += np.outer(left[:, k], right[k // group, k % group :: group])


MEANING = {f.__name__: f for f in (amx_tile_zero, amx_tile_load, amx_tile_stream, amx_tile_store, amx_tile_dot)}
