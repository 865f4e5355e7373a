"""What a search would look at: the schedules of a program in the order of the model, before any is measured."""

from __future__ import annotations

import html
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..checked import checked
from ..display import duration
from ..function import HasProgram, IRModule, PrimFunc
from ..schedule import Schedule, Trace
from ..target import Target
from .default import likeliest
from .drawing import FunctionSource, RuleSource, Source
from .faults import Fault
from .ranking import diverse
from .records import Records
from .runner import Problem
from .search import Model, Search, Trial
from .session import Unmeasured, seconds_of, usual_model
from .space import space_of


class Explanation:
    """Candidates of a program, best prediction first: it prints as a table. ``refused`` counts by rule the schedules of
    which a step was refused, ``faults`` are other errors that were raised."""

    def __init__(
        self,
        candidates: Sequence[Trial],
        drawn: int,
        refused: dict[str, int],
        faults: Sequence[Fault],
        makers: Callable[[Trace], Sequence[tuple[int, str]]],
    ):
        self.candidates, self.drawn, self.refused, self.faults = list(candidates), drawn, refused, list(faults)
        self._makers = makers

    def __repr__(self) -> str:
        lines = [f"{self.drawn} candidates; the first {len(self.candidates)}:"]
        for number, one in enumerate(self.candidates):
            time = "no prediction" if one.predicted is None else f"predicted {duration(one.predicted)}"
            floor = f", at least {duration(one.floor)}" if one.floor > 0 else ""
            lines.append(f"{number}. {one.origin}, {len(one.schedule.trace)} steps: {time}{floor}")
            lines += [f"     {name}: {duration(value)}" for name, value in one.terms.items() if value > 0]
            lines += [f"     {line}" for line in _made_by(one.schedule.trace, self._makers(one.schedule.trace))]
        if self.refused:
            lines.append("refused: " + ", ".join(f"{name} {count}" for name, count in self.refused.items()))
        lines += [f"raised by {fault.where} ({fault.count} times): {fault.error}" for fault in self.faults]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


@checked
def explain(
    mod: PrimFunc | IRModule | HasProgram,
    target: Any = "llvm",
    *,
    space: Callable[[Schedule], Any] | None = None,
    model: Model | None = None,
    count: int = 8,
    draw: int = 64,
    seed: int = 0,
) -> Explanation:
    """The candidates with which :func:`tir.tune` would begin, with the model's terms and the choices that are open; nothing
    is built. ``mod`` has one function; ``draw`` candidates are made, the first ``count`` shown.

    >>> import tir
    >>> from tir.library import rows
    >>> print(tir.tune.explain(rows.softmax(64, 100), draw=2, count=1).candidates[0].origin)
    default
    """
    module, where = IRModule.of(mod), Target.of(target)
    rules = space_of(where)
    predict = model or usual_model(rules)
    source: Source = RuleSource(rules, module, seconds_of(predict))
    if space is not None:
        source = FunctionSource(space, module, where)
    with Records(None) as records:
        search = Search(
            Problem(module, where),
            source,
            lambda: likeliest(module, rules),
            predict,
            Unmeasured(predict),
            records,
            "",
            seed=seed,
            run=0,
            now=lambda: 0.0,
            tell=lambda *_: None,
        )
        found = [search.candidate(likeliest(module, rules), "default")]
        found += [search.candidate(sch, "model") for sch in source.draw(random.Random(seed), draw)]
    candidates = [one for one in found if one is not None]
    ordered = [*candidates[:1], *diverse(candidates[1:])]
    return Explanation(ordered[:count], len(candidates), dict(rules.dropped), list(source.faults), source.makers)


def _made_by(trace: Trace, makers: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Lines of the rules that took steps, and of what each left open: what it decides, and its value among the others."""
    names = dict(makers)
    for number, step in enumerate(trace.steps):
        if number in names:
            yield names[number]
        if "decision" not in step.args:
            continue
        user = next((s for s in trace.steps[number + 1 :] if _takes(s.args, step.result)), None)
        subject = "" if user is None else f" of {getattr(next(iter(user.args.values())), 'name', '')}"
        label = step.name if user is None else f"{user.name}{subject}"
        values = step.args.get("candidates")
        chosen = step.args["decision"] if values is None else values[step.args["decision"]]
        yield f"  {label}: {chosen} of {_choices(step.args)}"


def _takes(value: Any, one: Any) -> bool:
    """Whether an argument has a number that was sampled, or what was computed of it."""
    if isinstance(value, Mapping):
        return any(_takes(v, one) for v in value.values())
    if isinstance(value, (list, tuple)):
        return any(_takes(v, one) for v in value)
    return value is one or any(_takes(v, one) for v in getattr(value, "source", ()))


def _choices(args: Any) -> str:
    if "candidates" in args:
        return str(list(args["candidates"]))
    return f"tilings into {args['n']}" if "n" in args else "the legal ones"
