"""What schedules cost, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def tile_cost(rows: Sequence[tuple[int, int]], columns: int, vectors: int, lanes: int) -> float:
    """The cost of a register tile: multiply-adds with padding, times what loads, latency and streaming add to each.

    ``rows`` has the size and the tile of each axis of rows; the tile is ``vectors`` vectors of ``lanes`` wide.

    >>> tile_cost([(1024, 6)], 1024, 4, 16) < tile_cost([(1024, 6)], 1024, 1, 16)
    True
    """
    high = prod(tile for _, tile in rows)
    padded = prod(-(-size // tile) * tile for size, tile in rows) * -(-columns // (vectors * lanes)) * vectors * lanes
    loads = (high + vectors) / (high * vectors)  # for each multiply-add; one is what a core sustains
    stream = max(0.0, 6 / high - 1)  # of panels from L2
    latency = max(0.0, 8 / (high * vectors) - 1)  # two a cycle, and a sum takes four cycles
    tails = sum(size % tile > 0 for size, tile in rows) + (columns % (vectors * lanes) > 0)
    return padded * (1 + 0.1 * max(0.0, loads - 0.4) + 0.03 * stream + latency + 0.01 * tails)
