"""What requests of memory cost: 32-byte sectors of global memory, passes over the 32 banks of shared memory.

Counted from the addresses of a warp's threads as they are executed, by the rules that NVIDIA documents: a request of global
memory moves each sector that it touches once; a pass over the banks serves one word of 4 bytes in each bank, to all threads
that want it; requests of 8 bytes a thread are served to half a warp at once, those of 16 bytes to a quarter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tir.interp.gpu.counts import BANKS, SECTOR, WORD, Cost

Array = np.ndarray
WARP = 32
_ROW = 40  # addresses in one space are below 2 ** 40


def global_cost(lanes: Array, address: Array, width: int) -> Cost:
    """Of one access of ``width`` bytes by each of ``lanes`` (numbers of threads; those of a warp begin at a multiple of 32).

    >>> global_cost(np.arange(32), np.arange(32) * 4, 4)
    Cost(scope='global', width=4, requests=1, sectors=4, useful=128, passes=0, ideal=0)
    """
    key = _sorted(((lanes // WARP) << _ROW) + address)
    return Cost("global", width, _distinct(key >> _ROW), _distinct(key // SECTOR), _distinct(key) * width)


def shared_cost(lanes: Array, address: Array, width: int) -> Cost:
    """As :func:`global_cost`, of shared memory.

    >>> shared_cost(np.arange(32), np.arange(32) * 8, 4)
    Cost(scope='shared', width=4, requests=1, sectors=0, useful=0, passes=2, ideal=1)
    """
    words = max(1, width // WORD)
    together = WARP // words
    first = ((lanes // together) << _ROW) + address // WORD
    key = first if words == 1 else (first[:, None] + np.arange(words)).ravel()
    key = _sorted(key)
    key = key[_starts(key)]
    group = np.cumsum(_starts(key >> _ROW)) - 1
    count = int(group[-1]) + 1
    load = np.bincount(group * BANKS + key % BANKS, minlength=count * BANKS).reshape(count, BANKS)
    ideal = -(-load.sum(1) // BANKS)
    return Cost("shared", width, _distinct(np.sort(lanes) // WARP), 0, 0, int(load.max(1).sum()), int(ideal.sum()))


def _sorted(key: Array) -> Array:
    return key if (key[1:] >= key[:-1]).all() else np.sort(key)


def _starts(ordered: Array) -> Array:
    made = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=made[1:])
    return made


def _distinct(ordered: Array) -> int:
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1


class Traffic:
    """Costs by (place of the instruction, space, begin of the allocation). An access whose addresses are those of the
    instruction's last one, moved by whole sectors or words, costs the same, as in most loops."""

    def __init__(self) -> None:
        self.costs: dict[tuple[int, str, int], Cost] = {}
        self.last: dict[tuple[int, str], tuple[Any, Array, Cost]] = {}

    def count(self, at: int, space: Any, lanes: Any, address: Array, width: int) -> None:
        """``lanes``: the threads that access ``address``, offsets in ``space``, which are inside of its allocations."""
        if space.what not in ("global", "shared") or not len(address):
            return
        one = self._cost(at, space.what, lanes, address, width)
        piece = 0 if space.what == "shared" else space.piece_of(int(address[0]))
        found = self.costs.get((at, space.what, piece))
        if found is None:
            found = self.costs[at, space.what, piece] = Cost(space.what, width)
        found.add(one)

    def _cost(self, at: int, what: str, lanes: Any, address: Array, width: int) -> Cost:
        last = self.last.get((at, what))
        if last is not None and _same(last[0], lanes) and len(last[1]) == len(address):
            moved = address - last[1]
            if moved[0] % (SECTOR if what == "global" else WORD) == 0 and (moved == moved[0]).all():
                return last[2]
        one = (global_cost if what == "global" else shared_cost)(lanes, address, width)
        self.last[at, what] = lanes, address, one
        return one


def _same(a: Array, b: Array) -> bool:
    return a is b or np.array_equal(a, b)
