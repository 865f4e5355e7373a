"""Typed knobs: read from the environment, settable for a ``with`` block."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs

# Every variable of the environment that the packages read, and what it does; docs/environment.md shows them.
VARIABLES = {
    "TIR_DUMP": "a directory that gets the program after each lowering pass as text; unset: none",
    "TIR_VERIFY": "`1`: check that the program is well formed after each lowering pass",
    "TIR_EXPLAIN": "`1`: print which proof decided each question of legality, and how long it took",
    "TIR_PROGRESS": "`0`: no progress of long runs on standard error; `1`: also where that is no terminal",
    "TIR_CACHE": "`0`: neither read nor write the cache of compiled programs",
    "TIR_CACHE_DIR": "the directory of the cache; unset: `tensorir` where this system keeps caches",
    "OMP_NUM_THREADS": "threads of parallel loops, read at each call; unset: every core that the process may use",
    "NO_COLOR": "set: programs are printed on a terminal without colours",
}


@dataclass(frozen=True)
class Config:
    """``dump`` (TIR_DUMP): a directory that gets each lowering stage as text; empty for none.

    ``verify`` (TIR_VERIFY): check that each lowering stage is well formed.

    ``explain`` (TIR_EXPLAIN): print which tier of proof decided which question of legality, and how long it took.

    ``progress`` (TIR_PROGRESS): ``"0"`` shows no progress of long runs, ``"1"`` always; empty: on terminals and in notebooks.
    """

    dump: str = ""
    verify: bool = False
    explain: bool = False
    progress: str = ""


def _from_environment() -> Config:
    return Config(
        os.environ.get("TIR_DUMP", ""), _flag("TIR_VERIFY"), _flag("TIR_EXPLAIN"), os.environ.get("TIR_PROGRESS", "")
    )


def _flag(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def cache_folder() -> Path | None:
    """Where everything is that the packages write without being given a path: TIR_CACHE_DIR, else ``tensorir`` where the
    system keeps caches of programs. None if neither is known, as for a user without a home directory.

    >>> isinstance(cache_folder(), Path)
    True
    """
    given = os.environ.get("TIR_CACHE_DIR")
    if given:
        return Path(given)
    try:
        folder = platformdirs.user_cache_path("tensorir", appauthor=False)
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None  # older platformdirs: "~" stays where there is no home


_overrides: list[dict[str, Any]] = []


def explains() -> bool:
    """The knob ``explain`` alone, which is asked for in every step."""
    for changes in reversed(_overrides):
        if "explain" in changes:
            return changes["explain"]
    return _flag("TIR_EXPLAIN")


def current() -> Config:
    """The knobs in force: the environment's, with the overrides of enclosing ``with`` blocks."""
    config = _from_environment()
    for changes in _overrides:
        config = replace(config, **changes)
    return config


@contextmanager
def override(**changes: Any) -> Generator[Config, None, None]:
    """Set knobs inside the ``with``. Raises ``TypeError`` for a knob that does not exist.

    >>> with override(verify=True) as config:
    ...     config.verify
    True
    """
    replace(_from_environment(), **changes)
    _overrides.append(changes)
    try:
        yield current()
    finally:
        _overrides.remove(changes)
