"""Ranks candidate decisions by the costs that rules give their choices, without applying a step.

A rule that leaves a choice open says what each value costs (:func:`tir.tune.space.choose`): the arithmetic of a tile of
registers, the share of a cache. The trace has these costs as odds. The time of a sketch with other values is about its own time
times what the values cost more than the best ones; so only those that come first need be scheduled, and predicted exactly.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, prod
from typing import TYPE_CHECKING, Any

from ..expr import IntImm
from ..schedule import ExprRV, Trace
from ..schedule.trace import Entry
from .space import ODDS

if TYPE_CHECKING:
    from .search import Trial

MOST = 4096  # vectors of decisions of a sketch that are ranked; of more, as many at random

WITH_ODDS = "sample_categorical"


@dataclass(frozen=True)
class Ranked:
    """The decisions of a sketch (by number; None is drawn when it is scheduled), and the ``seconds`` they should take."""

    seconds: float
    sketch: int
    decisions: tuple[Any, ...]


def ranked(sketches: Sequence[Trace], seconds: Sequence[float], generator: random.Random) -> list[Ranked]:
    """The decisions that sketches leave open, likely fastest first, without those of the sketches themselves.

    ``seconds`` are those of the sketches as they are.
    """
    found: list[Ranked] = []
    for number, (trace, base) in enumerate(zip(sketches, seconds)):
        open_ = samplings(trace)
        own = tuple(step.args["decision"] if step.name == WITH_ODDS else ... for step in open_)
        extra = [_extra(step) for step in open_]
        least = sum(e.get(d, 0.0) for e, d in zip(extra, own))
        for decisions in _vectors(extra, generator):
            if decisions != own:
                cost = sum(e.get(d, 0.0) for e, d in zip(extra, decisions)) - least
                found.append(Ranked(base * (1.0 + cost), number, decisions))
    return sorted(found, key=lambda r: r.seconds)


def samplings(trace: Trace) -> list[Entry]:
    """The calls of a trace that take a decision."""
    return [step for step in trace.steps if "decision" in step.args]


def decisions_of(trace: Trace) -> list[Any]:
    """The decision of each sampling of a trace: numbers, or lists of them."""
    return [_plain(step.args["decision"]) for step in samplings(trace)]


def sketch_of(trace: Trace) -> str:
    """A key for the steps of a trace, whatever was sampled.

    >>> import tir
    >>> from tir.library import gemm
    >>> def tiled(size, decision):
    ...     sch = tir.Schedule(gemm.gemm(64, 64, 64))
    ...     loop = sch.get_loops(sch.get_child_blocks("root")[0])[0]
    ...     sch.split(loop, [None, sch.sample_categorical([2, 4], [0.5, 0.5], decision), size])
    ...     return sketch_of(sch.trace)
    >>> tiled(2, 0) == tiled(2, 1) != tiled(1, 1)
    True
    """
    taken = ((name, value) for step in trace.steps for name, value in (("", step.name), *step.args.items()))
    text = repr([(name, _plain(value)) for name, value in taken if name not in ("decision", "probs")])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    """The numbers and texts of an argument: what was sampled counts as one, a loop or a block as nothing."""
    if isinstance(value, ExprRV):
        return 1
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value if isinstance(value, (bool, int, float, str)) else None


def _extra(step: Entry) -> dict[Any, float]:
    """What each decision costs, as a share of the time, beyond the best; nothing of a choice without odds."""
    if step.name != WITH_ODDS:
        return {None: 0.0}
    odds = [float(p) for p in step.args["probs"]]
    return {n: log(max(odds) / max(p, 1e-300)) / ODDS for n, p in enumerate(odds)}


def _vectors(extra: Sequence[dict[Any, float]], generator: random.Random) -> Iterator[tuple[Any, ...]]:
    """All decisions together, or ``MOST`` of them."""
    if not extra:
        return iter(())
    if prod(map(len, extra)) <= MOST:
        return itertools.product(*extra)
    values = [list(e) for e in extra]
    return iter({tuple(generator.choice(v) for v in values): None for _ in range(MOST)})


def diverse(drawn: Sequence[Trial]) -> list[Trial]:
    """Candidates by predicted time, the best of each sketch before the second best of any, as long as it is within
    twice the best; where nothing is predicted, in the order in which they were drawn, sketch by sketch in turn."""
    ordered = sorted(drawn, key=lambda t: t.predicted or 0.0)
    places: dict[str, int] = {}
    ranks: list[tuple[float, int, Trial]] = []
    least = min((t.predicted for t in drawn if t.predicted), default=0.0)
    for at, trial in enumerate(ordered):
        place = places[trial.sketch] = places.get(trial.sketch, -1) + 1
        far = trial.predicted is not None and trial.predicted > 2.0 * least
        ranks.append((place + (1000 if far else 0), at, trial))
    return [trial for _, _, trial in sorted(ranks, key=lambda item: item[:2])]
