"""The cost of requests of memory: 32-byte sectors of global memory, passes over the 32 banks of shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SECTOR = 32
BANKS = 32
WORD = 4


@dataclass
class Cost:
    """What requests of memory in a ``scope`` cost, of ``width`` bytes by each thread.

    In global memory ``sectors`` of 32 bytes are moved, of which ``useful`` bytes were requested; in shared memory
    ``passes`` over the banks are made, of which ``ideal`` are necessary.
    """

    scope: str
    width: int
    requests: int = 0
    sectors: int = 0
    useful: int = 0
    passes: int = 0
    ideal: int = 0

    def add(self, other: Cost) -> None:
        for name in ("requests", "sectors", "useful", "passes", "ideal"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def conflicts(self) -> int:
        """Extra passes over shared memory's banks."""
        return self.passes - self.ideal

    @property
    def efficiency(self) -> float:
        """The useful fraction of the bytes moved (global) or of the passes made (shared), 0 to 1."""
        if self.scope == "global":
            return self.useful / (SECTOR * self.sectors) if self.sectors else 1.0
        return self.ideal / self.passes if self.passes else 1.0

    def cells(self) -> tuple[str, ...]:
        """The cells of a table with the columns ``HEAD``."""
        far = self.scope == "global"
        moved = (str(self.sectors), "", "") if far else ("", str(self.passes), str(self.conflicts))
        return (self.scope, str(self.width), str(self.requests), *moved, f"{100 * self.efficiency:.0f}%")


HEAD = ("memory", "bytes", "requests", "sectors", "passes", "conflicts", "efficiency")


def sectors(addresses: np.ndarray, width: int) -> tuple[int, int]:
    """Sectors accessed, and distinct bytes requested, by requests of ``width`` bytes per lane.

    ``addresses``: a row of 32 byte addresses per warp, -1 for an inactive lane.

    >>> sectors(np.arange(32).reshape(1, 32) * 4, 4)
    (4, 128)
    """
    ordered = np.sort(addresses, axis=1)
    moved, wanted = (int(np.count_nonzero(_distinct(numbers))) for numbers in (ordered // SECTOR, ordered))
    return moved, wanted * width


def _distinct(ordered: np.ndarray) -> np.ndarray:
    """Where the distinct non-negative numbers of each sorted row first stand."""
    first = ordered >= 0
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return first


def bank_passes(addresses: np.ndarray, width: int) -> tuple[int, int]:
    """Passes over the banks, and the fewest possible, of requests of ``width`` bytes per lane.

    Lanes that request the same 4-byte word share a pass. Requests of 8 bytes are served by half warps, those of 16
    bytes by quarter warps.

    >>> bank_passes(np.arange(32).reshape(1, 32) * 8, 4)
    (2, 1)
    >>> bank_passes(np.arange(32).reshape(1, 32) * 12, 12)
    (4, 4)
    """
    words = max(1, width // WORD)
    together = 1 << (min(words, 4) - 1).bit_length()  # 12 bytes are served as 16
    rows = addresses.reshape(-1, BANKS // together)
    wanted = np.where(rows >= 0, rows // WORD, -1)
    if words > 1:
        wide = wanted[:, :, None] + np.arange(words)
        wide[wanted < 0] = -1
        wanted = wide.reshape(len(rows), -1)
    ordered = np.sort(wanted, axis=1)
    first = _distinct(ordered)
    row, _ = np.nonzero(first)
    load = np.bincount(row * BANKS + ordered[first] % BANKS, minlength=len(rows) * BANKS)
    worst = load.reshape(len(rows), BANKS).max(axis=1)
    least = -(-words // 4)
    return int(worst.sum()), int(np.count_nonzero(worst)) * least
