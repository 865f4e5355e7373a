"""Calls in a deep stack take as long at each depth."""

from __future__ import annotations

import resource

from tir.visit import with_room


def _faults(depth: int) -> int:
    """Page faults of a hundred calls to and fro over twenty frames at a depth."""
    if depth:
        return _faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        _nested(20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _nested(depth: int) -> int:
    return _nested(depth - 1) if depth else 0


def test_no_depth_maps_memory_at_each_call():
    found = with_room(lambda: {depth: _faults(depth) for depth in range(0, 200, 5)})()
    assert max(found.values()) < 50, found
