"""What a search found: the best schedule, as a schedule, a module and Python to paste, and every trial."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..display import duration, html_table, text_table
from ..errors import TirError
from ..function import IRModule
from ..node import cached_property
from ..schedule import Schedule
from ..target import Target
from .picture import picture
from .runner import FAILED
from .search import Search, Trial
from .tasks import Task


@dataclass(frozen=True)
class Tuned:
    """One task and the search for it."""

    task: Task
    search: Search

    @property
    def best(self) -> Trial:
        """The fastest trial. Raises ``TirError`` with the first error if no trial gave a result."""
        found = self.search.best
        if found is None:
            raise no_result([self.search])
        return found


class Trials(Sequence[Trial]):
    """The trials of a search as a table."""

    HEAD = ("trial", "from", "status", "time", "predicted", "at", "decisions")

    def __init__(self, trials: Sequence[Trial]):
        self._trials = list(trials)

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, which: Any) -> Any:
        return self._trials[which] if isinstance(which, int) else Trials(self._trials[which])

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells, as text."""
        return [
            (
                str(t.number) if t.number >= 0 else "-",
                t.origin,
                t.status,
                duration(t.seconds),
                "-" if t.predicted is None else duration(t.predicted),
                f"{t.after:.1f} s",
                _short(t.decisions),
            )
            for t in self._trials
        ]

    def __repr__(self) -> str:
        return text_table(self.HEAD, self.rows)

    def _repr_html_(self) -> str:
        best = min((t.seconds for t in self._trials), default=math.inf)
        fastest = [k for k, t in enumerate(self._trials) if t.seconds == best < math.inf]
        errors = ["" if t.result is None else t.result.error[:500] for t in self._trials]
        return html_table(self.HEAD, self.rows, bold=fastest, titles=errors)


class Result:
    """What :func:`tir.tune` returns.

    ``measured`` is false where nothing could be run (no GPU), and the order is the model's guess. ``interrupted``: it was
    ended from the keyboard; the same call with the same database goes on.

    >>> import tir
    >>> result = tir.tune(tir.library.elementwise.scale_add(64), "cuda", trials=2, verbose=False)
    >>> result.interrupted, len(result.trials) > 0, type(result.best).__name__
    (False, True, 'Schedule')
    """

    def __init__(
        self,
        mod: IRModule,
        target: Target,
        tuned: Sequence[Tuned],
        *,
        interrupted: bool,
        measured: bool,
        seconds: float,
        run: int = 0,
    ):
        self.mod, self.target, self.tuned = mod, target, list(tuned)
        self.interrupted, self.measured, self.seconds = interrupted, measured, seconds
        self.run = run  # its number in the database, for `replay`

    @cached_property
    def best(self) -> Schedule:
        """The fastest schedule, of the whole module. Raises ``TirError`` if no trial gave a result."""
        sch = Schedule(self.mod, seed=0, target=self.target, error_render_level="none")
        for one in self.tuned:
            for name in one.task.names:
                if len(self.mod) > 1:
                    sch.work_on(name)
                apply_trial(sch, one, name)
        return sch

    def module(self) -> Any:
        """The fastest schedule, built."""
        from codegen.build import build

        return build(self.best.mod, self.target)

    @property
    def script(self) -> str:
        """The fastest schedule as Python: a function that applies it to a schedule of the program. What the rules only asked
        is left out."""
        return self.best.trace.simplified().as_python("schedule")

    @property
    def trials(self) -> Trials:
        """Every trial, as a table; behind them a row, with its traceback, for each error that rules or a space raised."""
        searches = [one.search for one in self.tuned]
        return Trials([t for s in searches for t in s.trials] + [t for s in searches for t in s.raised])

    @property
    def best_seconds(self) -> float:
        """Seconds of one call of the fastest schedule; of several functions, their sum by weight."""
        return sum(one.task.weight * one.best.seconds for one in self.tuned)

    @property
    def reasons(self) -> list[str]:
        """Why the search of each task ended; empty where its budget was used up."""
        return [one.search.reason for one in self.tuned]

    def plot(self) -> Any:
        """The best time so far against trials, and how near to the machine's limits it is: a picture in SVG."""
        return picture(self)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        text = "<br/>".join(html.escape(line) for line in self._lines())
        return f"<div><p>{text}</p>{self.plot()._repr_html_()}{self.trials._repr_html_()}</div>"

    def _lines(self) -> list[str]:
        lines: list[str] = []
        for one in self.tuned:
            search = one.search
            failed = sum(t.status in FAILED for t in search.trials)
            what = "measured" if self.measured else "predicted, not measured"
            line = f"{', '.join(one.task.names)}: {duration(search.least)} ({what}; {len(search.trials)} trials"
            line += f", {failed} failed" if failed else ""
            line += f", {search.recorded} from the database" if search.recorded else ""
            lines.append(line + ")")
            default = search.default
            if default is not None and default.seconds < math.inf:
                lines.append(f"  {default.seconds / search.least:.2f} times as fast as the default schedule")
            if search.reason:
                lines.append(f"  ended: {search.reason}")
            for fault in search.source.faults:
                lines.append(f"  {fault.where} raised {fault.error}")
        if self.interrupted:
            lines.append("interrupted: the same call with the same database goes on")
        return lines


def apply_trial(sch: Schedule, one: Tuned, name: str) -> None:
    """Apply the best trial of a task to function ``name``, on which ``sch`` works."""
    from ..schedule.renamed import replay_renamed

    trial = one.best
    trace = trial.schedule.trace
    if name != one.task.names[0]:
        trace = replay_renamed(trace, one.task.mod, IRModule.of(sch.mod[name])).trace
    trace.apply_to_schedule(sch)


def no_result(searches: Sequence[Search]) -> TirError:
    """The error of a search in which no trial gave a result: it has the first failure in full."""
    failed = [t for search in searches for t in search.trials if t.result is not None and not t.result.ok]
    if not failed:
        return TirError(f"nothing was measured: {_why_nothing(searches)}")
    counts = {status: sum(t.status == status for t in failed) for status in FAILED}
    text = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    first = failed[0].result
    return TirError(f"no trial gave a result ({text}); the first failure: {first.error if first is not None else ''}")


def _why_nothing(searches: Sequence[Search]) -> str:
    if any(search.waits for search in searches):
        return (
            "other processes that share the records had claimed every schedule that was found, and none had a result before "
            "the budget was used up; with more seconds their results are waited for"
        )
    reasons = [search.reason for search in searches if search.best is None and search.reason]
    return (
        f"{reasons[0]}, and no record of one can be used here"
        if reasons
        else "the budget was used up before the first trial"
    )


def _short(decisions: Sequence[Any]) -> str:
    text = " ".join(str(d).replace(" ", "") for d in decisions)
    return text if len(text) <= 48 else text[:47] + "…"
