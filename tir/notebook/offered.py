"""What may be done to a loop or block, as a page shows it: by group, first what the tuner's model expects most of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any

from ..errors import ScheduleError, TirError
from ..function import PrimFunc
from ..node import Memo
from ..schedule import Schedule
from ..schedule.offers import Field, Offer
from ..schedule.primitive import GROUPS, PRIMITIVES
from ..schedule.state import State
from ..target import Target
from ..tune.cost_model import predict
from ..tune.space import Env

MOST_CHOICES = 64  # of a parameter, to complete what is typed
MOST_TRIED = 12  # of them, to be taken by a click
MOST_LINES = 12  # of a witness


class Estimates:
    """The seconds that programs should take on ``target``, by the tuner's model; each is computed once."""

    def __init__(self, target: Target | None):
        self._target = target or Target("llvm")
        self._known: Memo[tuple[float | None]] = Memo()
        self._env: Env | None = None

    def known(self, function: PrimFunc) -> tuple[float | None] | None:
        """The estimate, None in it where the model has none; None before it was computed."""
        return self._known.get(function)

    def compute(self, function: PrimFunc) -> None:
        if self.known(function) is None:
            self._known[function] = (self._predicted(function),)

    def _predicted(self, function: PrimFunc) -> float | None:
        self._env = self._env or Env.of(self._target)
        try:
            found = predict(function, self._env)
        except (TirError, ValueError, ArithmeticError, LookupError):  # a program that the model was not made for
            return None
        return None if found is None or not 0 < found.seconds < inf else float(f"{found.seconds:.3g}")


class Offered:
    """The offers for ``place`` in the last snapshot of ``schedule``. Values of the first parameter that a step needs are tried
    too: those with which it is accepted and changes the program are its ``variants``."""

    def __init__(self, schedule: Schedule, place: str, estimates: Estimates):
        self.state, self.place = schedule.state, place
        self._can = schedule.can
        self._offers = schedule.can(place)
        self._tried: dict[tuple[int, int], State | ScheduleError] = {}  # by the numbers of an offer and of a value
        self._estimates = estimates

    def is_for(self, state: State, place: str) -> bool:
        return self.state is state and self.place == place

    def jobs(self) -> Iterator[Callable[[], Any]]:
        """What is left to do: estimates to make, and values to try."""
        made = [self.state, *(o.after for o in self._offers if o.after is not None)]
        yield from (partial(self._estimates.compute, s.func) for s in made if self._estimates.known(s.func) is None)
        for n, offer in enumerate(self._offers):
            for m in range(len(_values(offer))):
                if (n, m) not in self._tried:
                    yield partial(self._try, n, m)

    def _try(self, n: int, m: int) -> None:
        offer = self._offers[n]
        field = _free(offer)
        assert field is not None
        given = {**offer.given, field.name: field.choices[m]}
        outcome = offer.after if given == offer.given else self._can._worth(PRIMITIVES[offer.name], given)
        assert outcome is not None
        self._tried[n, m] = outcome
        if isinstance(outcome, State):
            self._estimates.compute(outcome.func)

    def data(self) -> list[dict[str, Any]]:
        """The offers as data for JSON: what is legal first, by the least time that is expected of it, then by group."""
        made = [self._shown(n, offer) for n, offer in enumerate(self._offers)]
        return sorted(made, key=lambda o: (bool(o["reason"]), _least(o), GROUPS.index(o["group"])))

    def _shown(self, n: int, offer: Offer) -> dict[str, Any]:
        free, names = _free(offer), [f.name for f in offer.fields]
        outcomes = [(value, self._tried.get((n, m))) for m, value in enumerate(_values(offer))]
        return {
            "name": offer.name,
            "group": offer.group,
            "text": offer.text,
            "summary": offer.summary,
            "reason": offer.reason,
            "witness": list(offer.witness[:MOST_LINES]),
            "given": {k: v for k, v in offer.given.items() if k not in names},
            "fields": [_field(f, offer) for f in offer.fields],
            "free": free.name if free else "",
            "variants": [
                {"value": shown_value(value), **self._expected(state)}
                for value, state in outcomes
                if isinstance(state, State)
            ],
            **self._expected(offer.after),
        }

    def _expected(self, after: State | None) -> dict[str, Any]:
        known = None if after is None else self._estimates.known(after.func)
        return {"seconds": known[0] if known else None, "estimated": known is not None}


def _least(offer: dict[str, Any]) -> float:
    return min((o["seconds"] for o in (offer, *offer["variants"]) if o["seconds"]), default=inf)


def _free(offer: Offer) -> Field | None:
    """The first parameter that a step needs and that has several values; none of a step that is refused."""
    return next((f for f in offer.fields if offer and f.needed and len(f.choices) > 1), None)


def _values(offer: Offer) -> tuple[Any, ...]:
    field = _free(offer)
    return field.choices[:MOST_TRIED] if field else ()


def _field(field: Field, offer: Offer) -> dict[str, Any]:
    choices = field.choices[:MOST_CHOICES] if len(field.choices) > 1 else ()
    return {
        "name": field.name,
        "needed": field.needed,
        "value": shown_value(offer.given.get(field.name, "")),
        "choices": [shown_value(c) for c in choices],
    }


def shown_value(value: Any) -> str:
    """A value in a form: a string as it is, anything else as Python."""
    return value if isinstance(value, str) else repr(value)
