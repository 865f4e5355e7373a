"""Loads packages outside this one that add primitives, invariants, passes, tensor intrinsics, targets, operators
and rules of the tuner.

A package lists modules as entry points of a group; importing such a module registers its contents. A group is loaded
when a name is looked up that this package does not know, so packages cost nothing until they are used; invariants,
which are not looked up by name, are loaded at the first step of a schedule.
"""

from __future__ import annotations

from .errors import TirError

PRIMITIVES = "tir.primitives"
INVARIANTS = "tir.invariants"
PASSES = "tir.passes"
INTRINSICS = "tir.intrinsics"
TARGETS = "tir.targets"
OPERATORS = "tir.operators"
TUNE_RULES = "tir.tune_rules"
GROUPS = (PRIMITIVES, INVARIANTS, PASSES, INTRINSICS, TARGETS, OPERATORS, TUNE_RULES)

_loaded: set[str] = set()


def load(group: str) -> bool:
    """Import the modules that installed packages name in ``group``; true when this call did it.

    Raises ``TirError`` naming the package whose module does not import.
    """
    if group in _loaded:
        return False
    _loaded.add(group)
    from importlib.metadata import entry_points

    for entry in entry_points(group=group):
        try:
            entry.load()
        except ImportError as error:
            what = group.partition(".")[2]
            raise TirError(f"the package that provides {what} {entry.name!r} ({entry.value}) fails: {error}") from error
    return True
