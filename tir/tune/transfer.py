"""Schedules of other sizes of a program, and of other machines, as candidates for this one."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

from ..canonical import Canonical
from ..errors import TirError
from ..schedule import Schedule, Trace
from ..target import Target
from .drawing import Source
from .naming import Naming
from .record import Record
from .records import NO_RUN, Records

SIZES = 3  # other sizes whose best schedules are tried


def nearest_sizes(records: Records, program: Canonical, before: int = NO_RUN) -> list[Record]:
    """The best records of the program's family of runs ``before`` one, of the sizes nearest to its own: the best of each,
    then the second."""
    here = _sizes(program.mod.script())

    def distance(record: Record) -> float:
        return sum(abs(math.log2((1 + a) / (1 + b))) for a, b in zip(here, _sizes(record.script)))

    found = records.family(program, before=before)
    apart = {record.key: distance(record) for record in found}
    nearest = sorted(apart, key=apart.__getitem__)[:SIZES]
    places: dict[str, int] = {}
    ordered: list[tuple[int, int, Record]] = []
    for record in found:
        if record.key in nearest:
            places[record.key] = places.get(record.key, -1) + 1
            ordered.append((places[record.key], nearest.index(record.key), record))
    return [record for _, _, record in sorted(ordered, key=lambda item: item[:2])]


def _sizes(script: str) -> list[int]:
    """The numbers in the text of a program; those of one family stand at the same places."""
    return [int(text) for text in re.findall(r"(?<![\w.])\d{1,18}(?![\w.])", script)]


def transferred(
    record: Record, naming: Naming, source: Source, target: Target, generator: random.Random
) -> Schedule | None:
    """The schedule of a record made for the program of ``naming``; None where it does not fit.

    One of this size is replayed. Of one of another size, ``source`` gives what is most like it: the steps are those for
    this size, with the nearest values. Where it has nothing alike, the steps are those of the record.
    """
    if record.key == naming.program.key:
        return naming.schedule(record.trace, target)
    try:
        trace = Trace.from_json(record.trace)
        return source.nearest(trace, generator) or _replayed(trace, naming, target, generator.getrandbits(31))
    except Exception as error:  # whatever a damaged record raises
        naming.log_unusable(error)
        return None


def _replayed(trace: Trace, naming: Naming, target: Target, seed: int) -> Schedule | None:
    """The trace of another size on this one: decisions that do not fit are drawn anew."""
    sch = Schedule(naming.program.mod, seed=seed, target=target, error_render_level="none")
    try:
        trace.apply_to_schedule(sch, decision_provider=_fitting(sch))
    except TirError:
        return None
    return naming.schedule(sch.trace.as_json(), target)


def _fitting(sch: Schedule) -> Callable[[Any, Any, Any], Any]:
    """A provider of decisions for another size: a tiling keeps its inner factors where they divide."""

    def provide(step: Any, args: dict[str, Any], decision: Any) -> Any:
        if not isinstance(decision, list) or "loop" not in args:
            return decision
        loop = sch.get(args["loop"])
        extent = getattr(getattr(loop, "extent", None), "value", None)
        if not isinstance(extent, int):
            return None
        inner = [f for f in decision[1:] if isinstance(f, int)]
        fits = len(inner) == len(decision) - 1 and extent % math.prod(inner) == 0
        return [extent // math.prod(inner), *inner] if fits else None

    return provide
