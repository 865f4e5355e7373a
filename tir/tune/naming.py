"""Traces between a program and its canonical one, whose names are those of the records."""

from __future__ import annotations

import logging
from typing import Any

from ..canonical import canonical
from ..function import IRModule
from ..schedule import Schedule, Trace
from ..schedule.renamed import replay_renamed
from ..target import Target
from .record import digest, split_decisions, with_decisions

_log = logging.getLogger(__name__)


class Naming:
    """Translates the JSON of traces; only the first of each sketch is replayed for that, as decisions have no names."""

    def __init__(self, mod: IRModule):
        self.mod, self.program = mod, canonical(mod)
        self._kept: dict[tuple[str, str], list[Any]] = {}

    def canonical(self, trace: list[Any]) -> list[Any]:
        """A trace of the program as one of the canonical program. Raises ``TirError`` where a step is refused."""
        return self._translated("canonical", trace, self.mod, self.program.mod)

    def own(self, trace: list[Any]) -> list[Any]:
        """A trace of the canonical program as one of this one. Raises ``TirError`` where a step is refused."""
        return self._translated("own", trace, self.program.mod, self.mod)

    def schedule(self, trace: list[Any], target: Target) -> Schedule | None:
        """What a trace of the canonical program makes of this one; None if it makes nothing.

        A record may be of another version, or damaged: whatever it raises says that it is of no use, and is logged.
        """
        try:
            return Trace.from_json(self.own(trace)).replay(self.mod, target=target, error_render_level="none")
        except Exception as error:
            self.log_unusable(error)
            return None

    def log_unusable(self, error: Exception) -> None:
        """Tell why a stored trace is of no use to the program."""
        _log.info("a stored trace is of no use to %s: %s: %s", ", ".join(self.mod), type(error).__name__, error)

    def _translated(self, way: str, trace: list[Any], old: IRModule, new: IRModule) -> list[Any]:
        sketch, decisions = split_decisions(trace)
        key = way, digest(sketch)
        if key not in self._kept:
            made = replay_renamed(Trace.from_json(trace), old, new).trace.as_json()
            self._kept[key] = split_decisions(made)[0]
        return with_decisions(self._kept[key], decisions)
