"""Where candidates come from: drawing, neighbours and crossover of schedules that have sampling steps."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import log
from typing import Any

from ..equal import structural_digest
from ..errors import TirError
from ..function import IRModule
from ..schedule import Schedule, Trace
from ..schedule.trace import Entry, replay_steps
from ..target import Target
from .faults import Faults
from .ranking import Ranked, ranked, samplings, sketch_of
from .space import Space as RuleSpace
from .space import as_schedule, likeliest_offer

SKETCHES = 6  # attempts at different results of the rules
ALIKE = 0.6  # share of the steps of two traces that are the same where one is made from the other
POINTS = 256  # schedules on the way that are kept
SURPRISE = 4  # one of so many schedules is not the next best one, but any


class Source(ABC):
    """The schedules of a program that a search chooses from.

    ``enough`` are drawn before the first is measured; ``ordered`` says that they are measured in the order in which they
    are drawn. What is raised while they are made is noted in ``faults``.
    """

    enough = 300
    ordered = False
    faults: Faults

    @abstractmethod
    def draw(self, generator: random.Random, count: int) -> Iterator[Schedule]:
        """Up to ``count`` schedules at random, each kind of them early on."""

    def neighbours(self, sch: Schedule) -> Iterator[Schedule] | None:
        """The schedules next to one; None where they are its trace with one decision changed."""
        return None

    def describe(self, sch: Schedule) -> list[Any] | None:
        """What a learner sees of a schedule; None for the decisions of its trace."""
        return None

    def nearest(self, trace: Trace, generator: random.Random) -> Schedule | None:
        """The schedule that is most like a trace for another size of the program; None if there is none alike."""
        return None

    def makers(self, trace: Trace) -> list[tuple[int, str]]:
        """Who took the steps of a trace: from which step on, and the rule with its block."""
        return []


class FunctionSource(Source):
    """The schedules that a function makes: ``function(sch)`` applies steps, and samples where it leaves a choice.

    What it returns, if anything, are schedules to take in place of ``sch``. A draw that a step refuses is left out;
    ``refused`` counts these, ``error`` is the last one.
    """

    def __init__(self, function: Callable[[Schedule], Any], mod: IRModule, target: Target):
        self.function, self.mod, self.target = function, mod, target
        self.refused = 0
        self.error: TirError | None = None
        self.faults = Faults()

    def draw(self, generator: random.Random, count: int) -> Iterator[Schedule]:
        for _ in range(count):
            yield from self._made(
                Schedule(self.mod, seed=generator.getrandbits(31), target=self.target, error_render_level="none")
            )

    def _made(self, sch: Schedule) -> list[Schedule]:
        """What the function makes of a new schedule; nothing if it raises."""
        try:
            made = self.function(sch)
            found = sch if made is None else made
            return [as_schedule(one) for one in (found if isinstance(found, (list, tuple)) else [found])]
        except TirError as error:
            self.refused += 1
            self.error = error
        except Exception as error:
            self.faults.add("the space", error)
        return []


class RuleSource(Source):
    """The schedules that the rules of ``space`` make of the function of ``mod``: sketches, and other values of what these
    leave open.

    Thousands of values are ranked by what the rules said of them (:mod:`tir.tune.ranking`); those that come first are
    scheduled. ``model`` gives the seconds of a sketch, None where it has no answer.
    """

    enough = 24  # schedules of which a model can choose the first to measure

    def __init__(self, space: RuleSpace, mod: IRModule, model: Callable[[Schedule], float | None] = lambda sch: None):
        self.space, self.mod, self.target, self.model = space, mod, space.env.target, model
        self.faults = space.faults
        self.considered = 0  # schedules to draw from, once there are any
        self._found: list[Schedule] = []
        self._makers: dict[str, list[tuple[int, str]]] = {}
        self._replays: list[Replays] = []
        self._waiting: list[Ranked] = []

    def draw(self, generator: random.Random, count: int) -> Iterator[Schedule]:
        given = 0
        if not self.considered:
            sketches = self._sketches(generator)
            seconds = [self.model(sch) or 1.0 for sch in sketches]
            self._waiting = ranked([sch.trace for sch in sketches], seconds, generator)
            self.considered = len(self._waiting) + len(sketches)
            given = len(sketches)
            yield from sketches
        while given < count and self._waiting:
            given += 1
            at = generator.randrange(len(self._waiting)) if given % SURPRISE == 0 else 0
            chosen = self._waiting.pop(at)
            made = self._replays[chosen.sketch].decided(chosen.decisions, generator.getrandbits(31))
            if made is not None:
                yield made

    def nearest(self, trace: Trace, generator: random.Random) -> Schedule | None:
        wanted = [step.name for step in trace.steps]
        alike = [
            (SequenceMatcher(None, wanted, [step.name for step in sch.trace.steps]).ratio(), -number)
            for number, sch in enumerate(self._sketches(generator))
            if [s.name for s in samplings(sch.trace)] == [s.name for s in samplings(trace)]
        ]
        if not alike or max(alike)[0] < ALIKE:
            return None
        replays = self._replays[-max(alike)[1]]
        pairs = zip(samplings(replays.trace), samplings(trace))
        return replays.decided([nearest_decision(here, there) for here, there in pairs], generator.getrandbits(31))

    def makers(self, trace: Trace) -> list[tuple[int, str]]:
        return self._makers.get(sketch_of(trace), [])

    def _sketches(self, generator: random.Random) -> list[Schedule]:
        """What the rules make of the program, drawn once."""
        if not self._found:
            self._found = self._made(generator, SKETCHES)
            self._replays = [Replays(sch.trace, self.mod, self.target, self.faults) for sch in self._found]
        return self._found

    def _made(self, generator: random.Random, tries: int) -> list[Schedule]:
        """Results of the rules: the likeliest, and another one of what each rule offers at every further try."""
        found: dict[str, Schedule] = {}
        for number in range(tries):
            sch = Schedule(self.mod, seed=generator.getrandbits(31), target=self.target, error_render_level="none")
            made = self.space.made(sch, generator.randrange if number else likeliest_offer)
            sch = made.schedule
            self._makers[sketch_of(sch.trace)] = [
                (len(d.before.trace), f"rule {d.rule} on {d.block}") for d in made.decisions
            ]
            found.setdefault(structural_digest(sch.mod), sch)
        return list(found.values())


class Replays:
    """Schedules of ``mod`` by a trace with other decisions. What several of them have in common, up to the first decision
    that differs, is replayed once. What steps raise, other than that they are refused, is noted in ``faults``."""

    def __init__(self, trace: Trace, mod: IRModule, target: Target, faults: Faults | None = None):
        self.trace = trace
        at = [n for n, step in enumerate(trace.steps) if "decision" in step.args]
        self._parts = [trace.steps[begin:end] for begin, end in zip([0, *at], [*at, len(trace)])]
        self._mod, self._target = mod, target
        self._faults = Faults() if faults is None else faults
        self._made: dict[tuple[str, ...], _Point | None] = {}  # by decisions; None where a step is refused

    def decided(self, decisions: Sequence[Any], seed: int = 0) -> Schedule | None:
        """With these decisions, of which None is drawn anew; None where a step is refused."""
        drawn = next((n for n, d in enumerate(decisions) if d is None), len(decisions))
        point = self._point(tuple(decisions[:drawn]))
        for number in range(drawn, len(decisions)):
            point = point and self._next(point, number + 1, decisions[number], seed if number == drawn else None)
        return point and point.sch.copy()

    def _point(self, decisions: tuple[Any, ...]) -> _Point | None:
        """The schedule with the first decisions, before the one after them."""
        key = tuple(map(str, decisions))
        if key not in self._made:
            if decisions:
                before = self._point(decisions[:-1])
                made = before and self._next(before, len(decisions), decisions[-1])
            else:
                begin = Schedule(self._mod, seed=0, target=self._target, error_render_level="none")
                made = self._next(_Point(begin, {}), 0, None)
            if len(self._made) >= POINTS:
                self._made.pop(next(iter(self._made)))
            self._made[key] = made
        return self._made[key]

    def _next(self, point: _Point, part: int, decision: Any, seed: int | None = None) -> _Point | None:
        """``point`` with the steps from a decision to the next one."""
        sch, handles = point.sch.copy(), dict(point.handles)
        if seed is not None:
            sch.seed(seed)
        try:
            replay_steps(self._parts[part], sch, handles, lambda *_: decision)
        except TirError:
            return None
        except Exception as error:
            self._faults.add("a schedule with other decisions", error)
            return None
        return _Point(sch, handles)


@dataclass(frozen=True)
class _Point:
    """A schedule on the way, and its handles for those of the trace."""

    sch: Schedule
    handles: dict[Any, Any]


def neighbouring_decisions(trace: Trace) -> Iterator[list[Any]]:
    """The decisions of a trace with one of them changed by one step, in an order without chance."""
    found = samplings(trace)
    now = [step.args["decision"] for step in found]
    for number, step in enumerate(found):
        for other in steps_from(step):
            yield [*now[:number], other, *now[number + 1 :]]


def nearest_decision(here: Entry, there: Entry) -> Any:
    """The decision of a sampling that gives the value nearest to that of another one; None if it is not of values.

    >>> def entry(values, decision):
    ...     return Entry("sample_categorical", {"candidates": values, "decision": decision}, None)
    >>> nearest_decision(entry([1, 2, 4, 8], 0), entry([3, 6, 9], 2))
    3
    """
    if "candidates" not in here.args or "candidates" not in there.args:
        return None
    wanted = there.args["candidates"][there.args["decision"]]
    values = here.args["candidates"]
    return min(range(len(values)), key=lambda n: (abs(log((1 + abs(values[n])) / (1 + abs(wanted)))), n))


def steps_from(step: Entry) -> list[Any]:
    """The decisions of a sampling next to the one taken: an index up and down, a prime factor moved between two tiles.

    >>> steps_from(Entry("sample_categorical", {"candidates": [1, 2, 4], "decision": 1}, None))
    [0, 2]
    >>> steps_from(Entry("sample_perfect_tile", {"n": 2, "max_innermost_factor": 16, "decision": [6, 4]}, None))
    [[3, 8], [2, 12], [12, 2]]
    """
    decision = step.args["decision"]
    if isinstance(decision, (list, tuple)):
        return _moved_factors(list(decision), int(step.args.get("max_innermost_factor", 1 << 62)))
    if step.name == "sample_categorical":
        return [k for k in (decision - 1, decision + 1) if 0 <= k < len(step.args["candidates"])]
    return [k for k in (decision - 1, decision + 1) if k >= -2]


def _moved_factors(tiles: list[Any], most: int) -> list[list[int]]:
    """``tiles`` with a prime factor of one moved to another, nearest ones first."""
    if any(not isinstance(tile, int) for tile in tiles):
        return []
    found: list[list[int]] = []
    pairs = [(a, b) for a in range(len(tiles)) for b in range(len(tiles)) if a != b]
    for a, b in sorted(pairs, key=lambda pair: abs(pair[0] - pair[1])):
        for prime in _primes(int(tiles[a])):
            made = [int(t) for t in tiles]
            made[a] //= prime
            made[b] *= prime
            if made[-1] <= most:
                found.append(made)
    return found


def _primes(value: int) -> list[int]:
    """The prime factors of ``value``, each once."""
    found, at = [], 2
    while at * at <= value:
        if value % at == 0:
            found.append(at)
            while value % at == 0:
                value //= at
        at += 1
    return [*found, value] if value > 1 else found


def crossed(a: Sequence[Any], b: Sequence[Any], generator: random.Random) -> list[Any]:
    """Each decision from one of two schedules of the same sketch."""
    return [generator.choice(pair) for pair in zip(a, b)]


def numbers(decisions: Iterable[Any]) -> list[int]:
    """All integers of decisions, in order; what a symbolic size leaves open counts as 0."""
    found: list[int] = []
    for item in decisions:
        found += [0 if x is None else int(x) for x in (item if isinstance(item, (list, tuple)) else (item,))]
    return found
