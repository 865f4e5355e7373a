"""What a search says while it runs: a bar of tqdm where that is installed, else a line for each improvement."""

from __future__ import annotations

import math
import sys
from typing import Any

from ..display import duration
from ..progress import bar
from .runner import FAILED
from .search import Search, Trial


class Progress:
    """Told of every trial; ``verbose`` false is silent.

    Trials of a database are not shown. The line has the best time, its share of the machine's peak and of the floor (the
    least time that the model finds possible), how many failed, and how long it will take at most, which is never more than what is
    left of ``seconds`` (a bar of limited ``trials`` has an estimate of its own).
    """

    def __init__(self, trials: int | None, seconds: float, verbose: bool):
        self.trials = math.inf if trials is None else trials
        self.seconds, self.done, self.failed = seconds, 0, 0
        self._best: dict[int, float] = {}
        self._bar: Any = None
        self._verbose = verbose
        if verbose:
            self._bar = bar("tune", trials)

    def tell(self, search: Search, trial: Trial) -> None:
        """A trial has a result."""
        self.done += 1
        self.failed += trial.status in FAILED
        best = self._best.get(id(search), math.inf)
        self._best[id(search)] = min(best, trial.seconds)
        if not self._verbose or trial.origin == "record":
            return
        line = self._line(search, trial)
        if self._bar is not None:
            self._bar.update(1)
            self._bar.set_postfix_str(line)
        elif trial.seconds < best:
            print(f"trial {trial.number}: {line}", file=sys.stderr)

    def _line(self, search: Search, trial: Trial) -> str:
        parts = [f"best {duration(search.least)}"]
        if search.share_of_peak is not None:
            parts.append(f"{search.share_of_peak:.0%} of the peak")
        if search.floor > 0 and math.isfinite(search.least):
            parts.append(f"{search.floor / search.least:.0%} of the floor's speed")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if (self._bar is None or math.isinf(self.trials)) and trial.after > 0 and self.done:
            left = max(0, self.trials - self.done) * trial.after / self.done
            parts.append(f"{max(0.0, min(left, self.seconds - trial.after)):.0f} s left at most")
        return ", ".join(parts)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
