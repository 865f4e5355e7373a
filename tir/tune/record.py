"""One trial as plain data: what a database row, or a line of JSON, has of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .runner import FAILED, Measurement

FORMAT = 1  # of rows and of lines
STATES = ("claimed", "ok", "censored", *FAILED)


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

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a part that cannot be stored, or is none that a trial has."""
        for name, (what, holds) in _PARTS.items():
            if not holds(getattr(self, name)):
                raise ValueError(f"no record: `{name}` is {_shown(getattr(self, name))}, not {what}")

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
            seconds = math.inf if found["seconds"] is None else found["seconds"]
            rows = {name: tuple(found[name]) for name in ("times", "rules")}
            return Record(**{**found, **rows, "seconds": seconds})
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"no record: {error!r}") from None


def _is_number(value: Any) -> bool:
    return math.isfinite(value) if isinstance(value, float) else _is_integer(value)


def _is_integer(value: Any) -> bool:
    """Whether it is an integer of 64 bits, as a database stores."""
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _is_time(value: Any) -> bool:
    return (_is_number(value) or value == math.inf) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


MOST_NESTED = 200  # lists and calls in each other, in a trace


def _is_trace(value: Any) -> bool:
    """Whether it is a list of calls as ``Trace.as_json`` gives them; what they are is known when they are replayed."""
    level = list(value) if isinstance(value, list) else [None]
    if not all(isinstance(s, dict) and isinstance(s.get("args"), dict) and "result" in s for s in level):
        return False
    for _ in range(MOST_NESTED):
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (list, dict))]
        level = [item for part in inner for item in part]
    return not level


# What each part of a record is, in words, and whether a value is that.
_PARTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("key", "family", "script", "machine", "error", "made"), ("a text", _is_text)),
    "status": (f"one of {', '.join(STATES)}", STATES.__contains__),
    "trace": ("the JSON of a schedule", _is_trace),
    "seconds": ("a time", _is_time),
    "times": ("times", lambda value: isinstance(value, tuple) and all(map(_is_time, value))),
    "predicted": ("a number", lambda value: value is None or _is_number(value)),
    "rules": ("names of rules", lambda value: isinstance(value, tuple) and all(map(_is_text, value))),
    "sizes": (
        "integers by name",
        lambda value: isinstance(value, Mapping) and all(_is_text(k) and _is_integer(v) for k, v in value.items()),
    ),
    "number": ("an integer of 64 bits", _is_integer),
    **dict.fromkeys(("load", "build_seconds"), ("a number", _is_number)),
}


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # too deep, or too long an integer
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}…"


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
