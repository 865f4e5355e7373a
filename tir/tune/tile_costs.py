"""What a tile of a product in registers costs, and how work falls to cores and lines to the sets of a cache: numbers alone, without a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from math import prod

import numpy as np

from ..target import LINE
from .autovector import LATENCY

WAY, WAYS = 4096, 8  # bytes between lines of one set of the L1 cache, and how many lines a set has at least
CONFLICT = 1.3  # times as long as a tile takes whose rows do not fit their sets
STEPS = (1, 2, 3, 4)  # of the reduction in straight code
ENOUGH = 24  # multiply-adds of vectors in a loop, which take 12 cycles or more: its counters, compare and branch issue beside them


def tile_cost(
    rows: Sequence[tuple[int, int]], columns: float, vectors: int, is_part: bool, parts: int = 1, lines: int = 1
) -> float:
    """The cost of a register tile: multiply-adds with padding, times what loads, latency and streaming add to each.

    ``rows`` has the size and the tile of each axis of rows; the tile is ``vectors`` vectors wide, each done in ``parts`` and loaded from as many ``lines``
    of a cache. ``columns`` are padded to these, and ``is_part`` says whether any had to be.

    >>> tile_cost([(1024, 6)], 1024, 4, False) < tile_cost([(1024, 6)], 1024, 1, False)
    True
    """
    high = prod(tile for _, tile in rows)
    padded = prod(-(-size // tile) * tile for size, tile in rows) * columns
    each = vectors * parts
    loads = (high + each * lines) / (high * each)  # for each multiply-add; one is what a core sustains
    stream = max(0.0, 6 / high - 1)  # of panels from L2
    latency = max(0.0, 2 * LATENCY / (high * vectors) - 1)
    tails = sum(size % tile > 0 for size, tile in rows) + is_part
    return padded * (1 + 0.25 * max(0.0, loads - 0.4) + 0.03 * stream + latency + 0.01 * tails)


def any_columns(usual: int, least: int, width: int) -> float:
    """The usual number of columns, and what is empty of the last of panels of ``width``: the geometric mean of that share for all numbers from
    ``least`` to four times the ``usual`` one, of which each order of magnitude is as likely as another.

    >>> any_columns(256, 32, 16) < any_columns(256, 32, 32) < any_columns(256, 32, 48)
    True
    """
    numbers = np.arange(least, 4 * usual)
    return usual * float(np.exp(np.average(np.log(-(-numbers // width) * width / numbers), weights=1 / numbers)))


def any_rows_cost(usual: int, strips: Sequence[float], asked: float, reading: Sequence[float], least: int = 1) -> float:
    """The cost of any number of rows in strips, of which one of n rows takes ``strips[n - 1]``, and ``asked`` more for each if it is not full:
    the geometric mean for all numbers from the ``least`` to four times the ``usual`` one, of which each order of magnitude is as likely as another.
    The first strip, and the others, take at least as long as ``reading`` the panels.

    >>> low, high = ([float(n) for n in range(1, 1 + most)] for most in (6, 8))
    >>> any_rows_cost(256, low, 0.3, (12.8, 2.7)) > any_rows_cost(256, high, 0.3, (12.8, 2.7))
    True
    """
    first, again = reading
    each = [0.0, *(max(again, t + n * asked) for n, t in enumerate(strips[:-1], 1)), max(again, strips[-1])]
    of, numbers = np.array(each), np.arange(least, 4 * usual)
    full, rest = np.divmod(numbers, len(strips))
    waits = np.maximum(0, first - of[np.minimum(numbers, len(strips))])
    return float(np.exp(np.average(np.log(full * of[-1] + of[rest] + waits), weights=1 / numbers)))


def collide(lines: Set[int]) -> bool:
    """Whether some set of the L1 cache has more lines than it can hold."""
    return max(Counter(line % (WAY // LINE) for line in lines).values(), default=0) > WAYS


def straight_steps(terms: int, each: int) -> list[int]:
    """How many steps of a sum of ``terms`` may be straight code, best first, where each has ``each`` multiply-adds of vectors: the fewest
    that are :data:`ENOUGH`, as more would only be more to compile; then the most."""
    return sorted((n for n in STEPS if terms % n == 0), key=lambda n: n if n * each >= ENOUGH else len(STEPS) * 2 - n)


def uneven(count: int, cores: int) -> float:
    """How many times the work of the average thread the busiest has, of ``count`` equal parts that are not shared."""
    return -(-count // cores) * cores / count
