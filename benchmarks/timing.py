"""Medians of repeated calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def median_us(setup: Callable[[], Any], call: Callable[[Any], Any], repeat: int = 30) -> float:
    """Median microseconds of ``call(setup())``, without the set-up."""
    samples = []
    for _ in range(repeat):
        subject = setup()
        start = time.perf_counter()
        call(subject)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e6
