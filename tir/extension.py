"""Loads what registers itself: the files of packages of ours, and packages outside this one that add primitives, invariants, passes, tensor intrinsics, targets, operators
and rules of the tuner.

A package lists modules as entry points of a group; importing such a module registers its contents. A group is loaded
when a name is looked up that this package does not know, so packages cost nothing until they are used; invariants,
which are not looked up by name, are loaded at the first step of a schedule.

A module that fails leaves out its own contents, and is told about every time: by an error where it may not be left out
(invariants, or a name that it may define), by a warning elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pkgutil
import sys
import threading
import warnings
from collections.abc import Iterable
from typing import Any

from .checked import checked
from .errors import TirError
from .names import did_you_mean

__all__ = [
    "GROUPS", "INTRINSICS", "INVARIANTS", "OPERATORS", "PASSES", "PRIMITIVES", "TARGETS", "TUNE_RULES", "checked",
    "load", "load_files", "missing", "require", "unknown",
]  # fmt: skip

PRIMITIVES = "tir.primitives"
INVARIANTS = "tir.invariants"
PASSES = "tir.passes"
INTRINSICS = "tir.intrinsics"
TARGETS = "tir.targets"
OPERATORS = "tir.operators"
TUNE_RULES = "tir.tune_rules"
GROUPS = (PRIMITIVES, INVARIANTS, PASSES, INTRINSICS, TARGETS, OPERATORS, TUNE_RULES)

_lock = threading.RLock()  # other threads wait for the modules; a module may look up names while it is imported
_loading: set[str] = set()


def installed() -> str:
    """What differs whenever other packages, or other versions of them, are installed, or what they list as entry points changes: the names of their
    descriptions, and the times of those files. (Reading them takes ten times as long.)"""
    found: list[str] = []
    for folder in dict.fromkeys(sys.path):
        with contextlib.suppress(OSError):
            found += [p.path for p in os.scandir(folder or ".") if p.name.endswith((".dist-info", ".egg-info"))]
    for number, path in enumerate(found):
        with contextlib.suppress(OSError):
            found[number] += f" {os.stat(os.path.join(path, 'entry_points.txt')).st_mtime_ns}"
    return "\n".join(sorted(found))


def optional(module: str, needed: str, extra: str, kind: type[Exception] = ImportError) -> Any:
    """A module of a package that is installed with ``extra``. Raises ``kind`` where it is not, with what it is ``needed`` for."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise kind(f"{needed}: pip install 'tensorir[{extra}]' [{error}]") from error


@functools.cache
def load_files(package: str, prefix: str = "") -> None:
    """Import the files of a package of ours, which register what they have; those with an underscore before their names are
    left to the others."""
    for file in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if file.name.startswith(prefix) and not file.name.startswith("_"):
            importlib.import_module(f"{package}.{file.name}")


def load(group: str) -> None:
    """Import the modules that installed packages name in ``group``, with a ``RuntimeWarning`` for each that fails."""
    for why in failures(group):
        warnings.warn(why, RuntimeWarning, stacklevel=3)


def require(group: str) -> None:
    """Import the modules of a group of which none may be left out. Raises ``TirError`` if one fails, at every call."""
    found = failures(group)
    if found:
        raise TirError("\n".join(found))


def missing(group: str) -> str:
    """What to add to an error about a name that is unknown: the packages of ``group`` that fail, and may define it."""
    return "".join(f"; {why}" for why in failures(group))


def unknown(group: str, name: str, known: Iterable[str]) -> str:
    """The end of an error about a ``name`` that is not ``known``: names like it, and what :func:`missing` adds."""
    return f"{did_you_mean(name, known)}{missing(group)}"


def failures(group: str) -> tuple[str, ...]:
    """Import the modules that installed packages name in ``group``; a sentence for each that fails, the same at every
    call."""
    with _lock:
        if group in _loading:
            return ()
        _loading.add(group)
        try:
            return _import(group)
        finally:
            _loading.remove(group)


@functools.cache
def _import(group: str) -> tuple[str, ...]:
    from importlib.metadata import entry_points

    found: list[str] = []
    for entry in entry_points(group=group):
        try:
            entry.load()
        except (Exception, SystemExit) as error:  # whatever the module's own code raises
            what = group.partition(".")[2]
            why = f"{type(error).__name__}: {error}"
            found.append(f"the package that provides {what} {entry.name!r} ({entry.value}) fails: {why}")
    return tuple(found)
