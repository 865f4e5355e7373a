"""One trial as plain data: what a database row, or a line of JSON, has of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .runner import Measurement

FORMAT = 1  # of rows and of lines
STATES = ("claimed", "ok", "censored", "timeout", "crashed", "wrong", "refused", "build")


@dataclasses.dataclass(frozen=True)
class Record:
    """One trial. ``trace`` is the JSON of its schedule of the canonical program; ``script`` and ``key`` are that
    program's text and key, ``machine`` the key of the machine it was measured on."""

    key: str
    family: str
    script: str
    machine: str
    trace: list[Any]
    status: str
    seconds: float
    times: tuple[float, ...] = ()
    predicted: float | None = None
    error: str = ""
    rules: tuple[str, ...] = ()
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    number: int = 0
    made: str = ""
    load: float = 0.0
    build_seconds: float = 0.0

    @property
    def measurement(self) -> Measurement:
        return Measurement(
            self.number, self.status, self.seconds, self.times, self.error, self.build_seconds, self.load
        )

    def as_json(self) -> str:
        """One line of JSON, complete in itself."""
        found = dataclasses.asdict(self)
        found["seconds"] = self.seconds if math.isfinite(self.seconds) else None
        return json.dumps({"format": FORMAT, **found})

    @staticmethod
    def from_json(line: str) -> Record:
        """Raises ``ValueError`` for a line that is no record."""
        try:
            found = json.loads(line)
            if found.pop("format") != FORMAT:
                raise ValueError("another version of the format")
            found["seconds"] = math.inf if found["seconds"] is None else float(found["seconds"])
            made = Record(**{**found, "times": tuple(found["times"]), "rules": tuple(found["rules"])})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no record: {error!r}") from None
        if made.status not in STATES or not isinstance(made.trace, list):
            raise ValueError("no record: its status or its trace is damaged")
        return made


def split_decisions(trace: list[Any]) -> tuple[list[Any], list[Any]]:
    """The JSON of a trace without the decisions of its samplings, and these."""
    sketch: list[Any] = []
    decisions: list[Any] = []
    for step in trace:
        if "decision" in step["args"]:
            decisions.append(step["args"]["decision"])
            step = {**step, "args": {**step["args"], "decision": None}, "result": _without_values(step["result"])}
        else:
            step = {**step, "args": _without_values(step["args"]), "result": _without_values(step["result"])}
        sketch.append(step)
    return sketch, decisions


def with_decisions(sketch: list[Any], decisions: list[Any]) -> list[Any]:
    """The inverse of :func:`split_decisions`; a replay computes the values that follow from decisions."""
    rest = iter(decisions)
    return [
        {**step, "args": {**step["args"], "decision": next(rest)}} if "decision" in step["args"] else step
        for step in sketch
    ]


def _without_values(value: Any) -> Any:
    """Without the integers that were sampled, which differ from candidate to candidate of one sketch."""
    if isinstance(value, list):
        return [_without_values(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$expr" in value or "$op" in value:
        value = {**value, "value": 1}
    if "$loop" in value and value["$loop"] >= 0:
        value = {**value, "name": "loop"}
    return {key: _without_values(item) for key, item in value.items()}


def digest(data: Any) -> str:
    """The key of plain data: 32 hex digits."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]


def read_lines(lines: Iterable[str]) -> Iterator[tuple[int, Record | ValueError]]:
    """The records of a text, a line each, with the number of the line; an error for a line that is none."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, Record.from_json(line)
            except ValueError as error:
                yield number, error
