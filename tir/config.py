"""Typed knobs: read from the environment, settable for a ``with`` block."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Config:
    """``dump`` (TIR_DUMP): a directory that gets each lowering stage as text; empty for none.

    ``verify`` (TIR_VERIFY): check that each lowering stage is well formed.

    ``explain`` (TIR_EXPLAIN): print which tier of proof decided which question of legality, and how long it took.
    """

    dump: str = ""
    verify: bool = False
    explain: bool = False


def _from_environment() -> Config:
    return Config(os.environ.get("TIR_DUMP", ""), _flag("TIR_VERIFY"), _flag("TIR_EXPLAIN"))


def _flag(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


_overrides: list[dict[str, Any]] = []


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
