"""Checks whether refusals are necessary: a refused step is forced with ``unsafe=True``, and the program is run.

A refusal with a witness is *confirmed* if the forced program gives another result than the one before, or the executor
reports an error in it (an uninitialised read, a race, an access out of bounds). A refusal that no input confirms may be
over-conservative.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tir.errors import RunError, ScheduleError
from tir.interp.same_results import symbolic_sizes
from tir.testing.oracle import assert_same_result, random_inputs
from tir.testing.schedules import Attempt

SEEDS = range(12)


@dataclass
class Confirmations:
    """Counts of forced refusals, by primitive, and the rules and seeds of those that were not confirmed."""

    confirmed: Counter[str] = field(default_factory=Counter)
    unconfirmed: Counter[str] = field(default_factory=Counter)
    unforced: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    """By primitive and rule, in which what is quoted and numbers are left out."""

    def add(self, name: str, outcome: bool | None, example: str, rule: str = "") -> None:
        """Count a refusal; ``outcome`` is None if the step could not be forced."""
        if outcome is None:
            self.unforced[name] += 1
        elif outcome:
            self.confirmed[name] += 1
        else:
            self.unconfirmed[name] += 1
            self.examples.setdefault(f"{name}: {without_names(rule)}", []).append(example)

    def rate(self, name: str | None = None) -> float:
        """The fraction of forced refusals that were confirmed; 1 if there were none."""
        yes = self.confirmed.total() if name is None else self.confirmed[name]
        no = self.unconfirmed.total() if name is None else self.unconfirmed[name]
        return yes / (yes + no) if yes + no else 1.0

    def __str__(self) -> str:
        names = sorted({*self.confirmed, *self.unconfirmed, *self.unforced})
        lines = [f"refusals with a witness, forced: {self.rate():.1%} confirmed"]
        for name in names:
            lines.append(
                f"  {name:24} confirmed {self.confirmed[name]:5}  not {self.unconfirmed[name]:5}  "
                f"cannot be forced {self.unforced[name]:5}"
            )
        for rule, found in sorted(self.examples.items(), key=lambda item: -len(item[1])):
            lines.append(f"  not confirmed: {len(found):5}  {rule}, e.g. {'; '.join(found[:3])}")
        return "\n".join(lines)


def without_names(text: str) -> str:
    """The first line of a refusal, without what is quoted, elements of buffers, and numbers."""
    return re.sub(r"`[^`]*`|\d+|[^ ]*\[[^]]*\][^ ]*", "…", text.splitlines()[0]) if text else ""


def is_confirmed(sch: Any, attempt: Attempt, seeds: Sequence[int] = SEEDS) -> bool | None:
    """Whether forcing a refused step changes the program's result on some input; None if it cannot be forced.

    ``sch`` is the schedule that refused; it is not changed. Sizes are drawn with the other inputs.
    """
    method = getattr(type(sch), attempt.name, None) or getattr(sch, attempt.name)
    if "unsafe" not in inspect.signature(method).parameters:
        return None
    before = sch.mod
    forced = sch.copy()
    try:
        getattr(forced, attempt.name)(*attempt.args, **attempt.kwargs, unsafe=True)
    except ScheduleError:
        return None  # refused for a reason that ``unsafe`` does not override
    name = "main" if "main" in before else next(iter(before))
    drawn = [random_inputs(before[name], seed, low=-9, high=9) for seed in seeds]
    # some refusals concern loops that do not run because a size is zero
    drawn += [random_inputs(before[name], 0, {size: 0}) for size in symbolic_sizes(before[name])]
    for inputs in drawn:
        try:
            assert_same_result(before, before, inputs, ["interpreter"], func=name)
        except RunError:
            continue  # not a valid input for this program
        try:
            assert_same_result(before, forced.mod, inputs, ["interpreter"], func=name)
        except (AssertionError, RunError):
            return True
    return False
