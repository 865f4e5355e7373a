"""The search for one program: candidates ordered by the model, measured in batches, then neighbours of the best.

Every choice comes from the seed and from what was measured, so that the same times give the same list of trials.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..equal import structural_digest, structural_equal
from ..errors import TirError
from ..node import cached_property
from ..schedule import Schedule
from .cost_model import Roofline, roofline
from .drawing import Replays, Source, crossed, neighbouring_decisions, numbers
from .faults import Fault
from .learner import expected_improvement, learner
from .naming import Naming
from .ranking import decisions_of, diverse, sketch_of
from .record import Record, digest
from .records import NO_RUN, Records, workload_key
from .runner import Job, Measurement, Problem, Runner, require_measurements
from .space import Env
from .transfer import nearest_sizes, transferred

KEPT = 300  # candidates scheduled and not measured that later rounds choose from
POOL = 24  # candidates scheduled in each round after that
BATCH = 8
MEASURED_BEFORE_LEARNING = 6
ENOUGH = 1.05  # times the floor: what is that fast is as good as it gets
DESCRIBED = "described"  # in place of a sketch, where a source says itself what its decisions are
OUTLIER = 20.0  # times the best
LAST = -1  # the number of the batch in which the best are timed once more
WAITING_SECONDS = 0.2  # between looks at what other processes have measured
PATIENCE = 3  # rounds without an improvement of one per cent


class Predicted(Protocol):
    """What a model says of a schedule, in seconds: the time, its parts, and the least that the program can take."""

    @property
    def seconds(self) -> float: ...
    @property
    def terms(self) -> Any: ...
    @property
    def floor(self) -> float: ...


Model = Callable[[Schedule], "Predicted | None"]


@dataclass
class Trial:
    """A candidate and what is known of it. ``number`` counts from 0, the default schedule; ``origin`` says where it is
    from: default, record, family, model, neighbour, crossover or random."""

    number: int
    schedule: Schedule
    origin: str
    sketch: str
    decisions: list[Any]
    predicted: float | None = None
    terms: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0
    rules: tuple[str, ...] = ()
    claim: int | None = None  # its row in the database
    row: str = ""  # the digest of its trace of the canonical program, if it has one
    result: Measurement | None = None
    after: float = 0.0  # seconds since the search began

    @cached_property
    def trace(self) -> list[Any] | None:
        """The JSON of its steps; None if an argument has none: it can be measured, but not kept."""
        try:
            return self.schedule.trace.as_json()
        except TirError:
            return None

    @property
    def is_replayable(self) -> bool:
        """Whether its decisions are those of its trace."""
        return bool(self.decisions) and self.sketch != DESCRIBED

    @property
    def seconds(self) -> float:
        """Seconds of one call; infinite if it was not measured, or failed."""
        return self.result.seconds if self.result is not None and self.result.ok else math.inf

    @property
    def status(self) -> str:
        return "waiting" if self.result is None else self.result.status

    @property
    def features(self) -> list[float]:
        """Numbers for the learner: logarithms of the model's terms and of the decisions."""
        terms = [math.log(max(value, 1e-12)) for _, value in sorted(self.terms.items())]
        return terms + [math.log2(2.0 + abs(value)) for value in numbers(self.decisions)]


class Search:
    """The trials of one ``problem``: each call of ``step`` measures a batch.

    ``model`` predicts; ``default`` is trial 0. What ``records`` has of this program and ``machine`` counts as measured,
    unless ``fresh``. ``tell`` is called with each trial that has a result. With ``replay``, the number of a run, what its
    runner answered is taken in place of measuring, and of the records only those from before it.
    """

    def __init__(
        self, problem: Problem, source: Source, default: Callable[[], Schedule], model: Model, runner: Runner,
        records: Records, machine: str, *, seed: int, run: int, now: Callable[[], float],
        tell: Callable[[Search, Trial], None], fresh: bool = False, batch: int = BATCH, patience: int = PATIENCE,
        drawing_seconds: float = math.inf, replay: int = NO_RUN,
    ):  # fmt: skip
        self.problem, self.source, self.model, self.runner = problem, source, model, runner
        self.records, self.machine, self.run, self.now, self.tell = records, machine, run, now, tell
        self.naming = Naming(problem.mod)
        self.trials: list[Trial] = []
        self.reason = ""  # why it ended, once it has
        self.batch, self.patience, self.drawing_seconds = batch, patience, drawing_seconds
        self.recorded = 0  # trials that the database had
        self.waits = False  # whether all that is left is being measured by other processes
        self.floor = 0.0
        self._default = default
        self._generator = random.Random(seed)
        self._seed = seed
        self._fresh = fresh
        self._known: set[str] = set()  # digests of programs that have been candidates
        self._tried: set[str] = set()  # sketches with decisions
        self._rows: set[str] = set()  # digests of the records taken over, and of the own ones
        self._waiting: list[Trial] = []
        self._passed_over: list[Trial] = []  # scheduled, and not measured yet
        self._stale = 0
        self._until = math.inf  # when scheduling candidates has to end
        self._measuring = 0.0  # seconds that the last batch took
        self._began = now()
        self._before = replay
        self._batches = 0  # that were measured
        self._recorded = records.answers(replay, self.naming.program, machine, problem.sizes)
        self.refresh()

    # ------------------------------------------------------------ what is known

    @property
    def measured(self) -> list[Trial]:
        return [t for t in self.trials if t.result is not None and t.result.ok]

    @property
    def best(self) -> Trial | None:
        """The fastest trial; of equals the first."""
        return min(self.measured, key=lambda t: t.seconds, default=None)

    @cached_property
    def _of_default(self) -> Schedule:
        return self._default()

    @property
    def default(self) -> Trial | None:
        """The trial of the default schedule, also where its record was taken over; None where there is none."""
        own = next((t for t in self.trials if t.origin == "default"), None)
        if own is not None or not self.trials:
            return own
        return next((t for t in self.trials if structural_equal(t.schedule.mod, self._of_default.mod)), None)

    @property
    def least(self) -> float:
        return min((t.seconds for t in self.measured), default=math.inf)

    @property
    def at_floor(self) -> bool:
        return self.floor > 0 and self.least <= ENOUGH * self.floor

    @cached_property
    def limits(self) -> Roofline | None:
        """What limits the program on this machine; None where that is not known: symbolic sizes, and other machines."""
        if self.problem.target.kind != "llvm":
            return None
        try:
            return roofline(next(iter(self.problem.mod.functions.values())), Env.of(self.problem.target))
        except ValueError:
            return None

    @property
    def share_of_peak(self) -> float | None:
        """Operations of the best schedule a second, as a share of the machine's; None where either is not known."""
        if self.limits is None or self.least == math.inf or not self.limits.operations:
            return None
        return self.limits.operations / self.least / self.limits.peak

    def fresh_seed(self) -> int:
        return self._generator.getrandbits(31)

    def refresh(self) -> None:
        """Take over what the database has of this program on this machine, from earlier runs and other processes."""
        if self._fresh:
            return
        for record in self.records.of(self.naming.program, self.machine, self.problem.sizes, self._before):
            row = digest(record.trace)
            if row in self._rows:
                continue
            self._rows.add(row)
            sch = self.naming.schedule(record.trace, self.problem.target)
            made = None if sch is None else self.candidate(sch, "record", record.rules)
            if made is not None:
                made.predicted = made.predicted if made.predicted is not None else record.predicted
                made.result, made.row = record.measurement, row
                self._add(made)
                self.recorded += 1

    # ------------------------------------------------------------ candidates

    def candidate(self, sch: Schedule, origin: str, rules: Iterable[str] = ()) -> Trial | None:
        """A schedule as a candidate; None if the same program has been one before."""
        program = structural_digest(sch.mod)
        if program in self._known:
            return None
        self._known.add(program)
        found, trace = self._predicted(sch), sch.trace
        made = Trial(-1, sch, origin, sketch_of(trace), decisions_of(trace), rules=tuple(rules))
        self._tried.add(_point(made, made.decisions))
        described = self.source.describe(sch)
        if described is not None:
            made.sketch, made.decisions = DESCRIBED, described
        if found is not None:
            made.predicted, made.terms, made.floor = found.seconds, dict(found.terms), found.floor
            self.floor = max(self.floor, found.floor)
        return made

    def _predicted(self, sch: Schedule) -> Predicted | None:
        """What the model says of a schedule; nothing if it raises."""
        try:
            return self.model(sch)
        except Exception as error:
            self.source.faults.add("the model", error)
            return None

    @property
    def raised(self) -> list[Trial]:
        """A row for each kind of error that rules, the space or the model raised: none was measured, each has its traceback."""
        return [
            Trial(-1, Schedule(self.problem.mod), fault.where, "", [], result=_refused(fault))
            for fault in self.source.faults
        ]

    def _add(self, trial: Trial) -> None:
        trial.number = len(self.trials)
        trial.after = self.now() - self._began
        self.trials.append(trial)
        self.tell(self, trial)

    def _first(self) -> list[Trial]:
        """The default schedule, the best of other sizes, and then the best of the model, of each sketch some."""
        first = self._default_alone()
        own = workload_key(self.naming.program.key, self.problem.sizes), self.machine  # taken over, or not to be
        for record in nearest_sizes(self.records, self.naming.program, self._before):
            first += self._transferred(record) if (record.key, record.machine) != own else []
        return first[: max(1, self.batch // 2)] + diverse(self._drawn(not first or first[0].predicted is not None))

    def _default_alone(self) -> list[Trial]:
        """The default schedule, unless its record was taken over."""
        made = self.candidate(self._of_default, "default")
        return [] if made is None else [made]

    def _drawn(self, predicted: bool) -> list[Trial]:
        """Samples candidates; more if a model preselects."""
        found: list[Trial] = []
        for sch in self.source.draw(
            random.Random(self.fresh_seed()), self.source.enough if predicted else 2 * self.batch
        ):
            one = self.candidate(sch, "model" if predicted else "random")
            found += [] if one is None else [one]
            if self.now() > self._until:
                break
        return found

    def _transferred(self, record: Record) -> list[Trial]:
        """A schedule of another size, or of another machine, made for this program; none where it does not fit."""
        sch = transferred(record, self.naming, self.source, self.problem.target, random.Random(self.fresh_seed()))
        made = None if sch is None else self.candidate(sch, "family", record.rules)
        return [] if made is None else [made]

    def _later(self) -> list[Trial]:
        """Neighbours of the best three, crossings of the best within a sketch, some at random, and those that were not
        chosen before; best guess first."""
        best = sorted(self.measured, key=lambda t: t.seconds)[:8]
        pool = self._passed_over[:]
        for parent in best[:3]:
            pool += self._neighbours(parent, POOL // 4)
        pool += self._crossings(best, POOL // 8)
        for sch in self.source.draw(random.Random(self.fresh_seed()), max(4, POOL - len(pool))):
            one = self.candidate(sch, "random")
            pool += [] if one is None else [one]
            if pool and self.now() > self._until:
                break
        chosen = self._ranked(pool)
        taken = {id(t) for t in chosen}
        self._passed_over = [t for t in pool if id(t) not in taken][-KEPT:]
        return chosen

    def _neighbours(self, parent: Trial, count: int) -> list[Trial]:
        own = self.source.neighbours(parent.schedule)
        if own is not None:
            found = (self.candidate(sch, "neighbour") for sch in own)
            return [one for one in itertools.islice(found, count) if one is not None]
        trace = parent.schedule.trace
        options = list(neighbouring_decisions(trace))
        self._generator.shuffle(options)
        return self._replays(parent, options, "neighbour", count)

    def _crossings(self, best: Sequence[Trial], count: int) -> list[Trial]:
        found: list[Trial] = []
        for sketch in dict.fromkeys(t.sketch for t in best if t.is_replayable):
            own = [t for t in best if t.sketch == sketch]
            pairs = [(a, b) for a in own for b in own if a.number < b.number]
            options = [crossed(a.decisions, b.decisions, self._generator) for a, b in pairs for _ in range(2)]
            found += self._replays(own[0], options, "crossover", count - len(found)) if len(found) < count else []
        return found

    def _replays(self, parent: Trial, options: Iterable[Sequence[Any]], origin: str, count: int) -> list[Trial]:
        """New candidates by the trace of ``parent`` with other decisions."""
        found: list[Trial] = []
        replays = Replays(parent.schedule.trace, self.problem.mod, self.problem.target, self.source.faults)
        for decisions in options:
            key = _point(parent, decisions)
            if key in self._tried:
                continue
            self._tried.add(key)
            sch = replays.decided(decisions)
            one = None if sch is None else self.candidate(sch, origin)
            found += [] if one is None else [one]
            if len(found) >= count or self.now() > self._until:
                break
        return found

    def _ranked(self, pool: list[Trial]) -> list[Trial]:
        """The pool by expected improvement of what the learner makes of model and measurements, each kept apart from
        those chosen before it."""
        if self.source.ordered:
            return pool[: self.batch]
        if len(self.measured) < MEASURED_BEFORE_LEARNING:
            return sorted(pool, key=lambda t: t.predicted or 0.0)[: self.batch]
        usual = math.log(sorted(t.seconds for t in self.measured)[len(self.measured) // 2])
        guess, sure = self._guess(pool, usual)
        best = math.log(self.least)
        gains = {id(t): expected_improvement(g, s, best) for t, g, s in zip(pool, guess, sure)}
        chosen: list[Trial] = []
        rest = list(pool)
        while rest and len(chosen) < self.batch:
            chosen.append(max(rest, key=lambda t: gains[id(t)] * _novelty(t, chosen)))
            rest.remove(chosen[-1])
        return chosen

    def _guess(self, pool: list[Trial], usual: float) -> tuple[list[float], list[float]]:
        """Logarithms of the seconds expected of candidates, and how sure that is."""
        known = self.measured[-400:]
        sketches = sorted({t.sketch for t in (*known, *pool)})
        width = max((len(t.features) for t in (*known, *pool)), default=0)

        def row(trial: Trial) -> list[float]:
            features = trial.features
            kind = [1.0 if trial.sketch == s else 0.0 for s in sketches[:12]]
            return [*kind, *features, *[0.0] * (width - len(features))]

        def base(trial: Trial) -> float:
            return math.log(trial.predicted) if trial.predicted else usual

        made = learner(self._seed, len(known))
        slowest = self.least * OUTLIER  # how bad a bad one is teaches nothing
        made.fit([row(t) for t in known], [math.log(min(t.seconds, slowest)) - base(t) for t in known])
        if not pool:
            return [], []
        residual, deviation = made.guess([row(t) for t in pool])
        return [base(t) + float(r) for t, r in zip(pool, residual)], [float(d) for d in deviation]

    # ------------------------------------------------------------ measuring

    def step(self, most: int) -> int:
        """Measure the next batch, of at most ``most`` trials; the number of those measured. ``reason`` is set when
        there is nothing more to gain."""
        self.refresh()
        before = self.least
        usual = max(self.drawing_seconds if not self.trials else 2.0, 2.0 * self._measuring)
        self._until = math.inf if self._is_replayed else self.now() + usual
        chosen = self._next(min(most, self.batch))
        self.waits = not chosen and self._others_go_on()
        if not chosen:
            self.reason = self.reason or ("" if self.waits else "every schedule of the space has been measured")
            return 0
        start = self.now()
        self._measure(chosen)
        self._measuring = self.now() - start
        improved = self.least < 0.99 * before
        self._stale = 0 if improved else self._stale + 1
        if self.at_floor:
            self.reason = f"the best is within {ENOUGH - 1:.0%} of the least time that the model finds possible"
        elif self._stale >= self.patience:
            self.reason = f"{self._stale} rounds brought no improvement of 1 %"
        return len(chosen)

    def _others_go_on(self) -> bool:
        """Whether there may be more from other processes: one of them has a result by now, or is measuring."""
        had = self.recorded
        self.refresh()
        if self.recorded > had:
            return True
        if not self.records.claimed(self.naming.program, self.machine, self.problem.sizes):
            return False
        time.sleep(WAITING_SECONDS)
        return True

    def _next(self, count: int) -> list[Trial]:
        """Candidates that are this process's to measure."""
        chosen: list[Trial] = []
        try:
            self._claim_into(chosen, count)
        except BaseException:
            self._release(chosen)
            raise
        if len(self.measured) >= MEASURED_BEFORE_LEARNING:
            self._passed_over += self._waiting  # what is known now orders better
            self._waiting = []
        return chosen

    def _claim_into(self, chosen: list[Trial], count: int) -> None:
        refills = 0
        if not self._batches and not self._waiting:
            self._waiting = self._default_alone() if self.trials else self._first()
        while len(chosen) < count:
            if not self._waiting:
                if refills == 3 or chosen:
                    break
                refills += 1
                self._waiting = self._later()
                continue
            trial = self._waiting.pop(0)
            if self._claim(trial):
                chosen.append(trial)

    @property
    def _is_replayed(self) -> bool:
        """Whether answers of a runner to the next batch are recorded."""
        return any(batch == self._batches for batch, _ in self._recorded)

    def _claim(self, trial: Trial) -> bool:
        """Whether the trial is to be measured by this process; its row in the records, if it can be kept, is claimed."""
        if trial.trace is None:
            return True
        try:
            trace = self.naming.canonical(trial.trace)
        except TirError:
            return True
        trial.row = digest(trace)
        if (self._batches, trial.row) in self._recorded:
            self._rows.add(trial.row)
            return True
        trial.claim = self.records.claim(
            self.naming.program,
            self.machine,
            trace,
            run=self.run,
            number=len(self.trials),
            predicted=trial.predicted,
            rules=trial.rules,
            sizes=self.problem.sizes,
            again=self._fresh,
        )
        if trial.claim is not None:
            self._rows.add(trial.row)
            return True
        self._forget(trial)  # its row is read once it is done, also where it was done before and this candidate waited
        self._rows.discard(trial.row)
        return False

    def _measure(self, chosen: list[Trial]) -> None:
        """Run the candidates beside the best one so far, and write down what became of them."""
        incumbent = self.best
        trials = chosen if incumbent is None else [*chosen, incumbent]
        try:
            results = self._answered(
                self._batches, trials, lambda jobs: self.runner.measure(self.problem, jobs, self.least)
            )
        except BaseException:
            self._release(chosen)
            raise
        self._batches += 1
        for trial, made in zip(chosen, results):
            if made.status == "skipped":
                self._release([trial])
                continue
            trial.result = self._explained(trial, made)
            self._write(trial)
            self._add(trial)
        if incumbent is not None and results[-1].ok:
            incumbent.result = _better(incumbent.result, results[-1])

    def _answered(
        self, batch: int, trials: Sequence[Trial], ask: Callable[[Sequence[Job]], list[Measurement]]
    ) -> list[Measurement]:
        """What a runner answers to a batch, or answered in the run that is replayed; it is kept for another replay."""
        found = {n: self._recorded.get((batch, trial.row)) for n, trial in enumerate(trials)}
        asked = [Job(n, trials[n].schedule.mod) for n, made in found.items() if made is None]
        if asked:
            found.update((m.number, m) for m in require_measurements(self.runner, asked, ask(asked)))
        answers = [replace(made, number=n) for n, made in found.items() if made is not None]
        kept = [(trials[a.number].row, a) for a in answers if trials[a.number].row and a.status != "skipped"]
        self.records.note(self.run, self.naming.program, self.machine, self.problem.sizes, batch, kept)
        return answers

    def _write(self, trial: Trial) -> None:
        if trial.claim is not None and trial.result is not None:
            self.records.finish(trial.claim, trial.result)

    def _release(self, chosen: Sequence[Trial]) -> None:
        """Give back candidates that were not measured."""
        self.records.release([trial.claim for trial in chosen if trial.claim is not None])
        for trial in chosen:
            self._forget(trial)

    def _forget(self, trial: Trial) -> None:
        """Let the program of a trial be a candidate again."""
        self._known.discard(structural_digest(trial.schedule.mod))

    def _explained(self, trial: Trial, made: Measurement) -> Measurement:
        """A wrong result with what reproduces it: legality is proved, so it is a fault of the compiler."""
        if made.status != "wrong":
            return made
        text = f"{made.error}\nThis is a fault of tir: please report it with\n{self.problem.mod.script()}\n"
        return replace(made, error=text + trial.schedule.trace.as_python())

    def confirm(self) -> None:
        """Time the best three and the default once more, in turn, and go by that."""
        best = sorted((t for t in self.measured if t.status == "ok"), key=lambda t: t.seconds)[:3]
        default = self.default
        chosen = best if default is None or default.status != "ok" or default in best else [*best, default]
        again = getattr(self.runner, "confirm", None)
        if again is None or len(chosen) < 2:
            return
        for trial, made in zip(chosen, self._answered(LAST, chosen, lambda jobs: again(self.problem, jobs))):
            if made.ok and trial.result is not None:
                trial.result = replace(trial.result, seconds=made.seconds, times=(*trial.result.times, *made.times))
                self._write(trial)


def _point(trial: Trial, decisions: Iterable[Any]) -> str:
    """Decisions of the sketch of a trial, as a key."""
    return f"{trial.sketch} {list(decisions)}"


def _better(old: Measurement | None, new: Measurement) -> Measurement | None:
    """Both sets of times together."""
    if old is None:
        return new
    return replace(old, seconds=min(old.seconds, new.seconds), times=(*old.times, *new.times))


def _refused(fault: Fault) -> Measurement:
    """What a fault is as a row of trials."""
    return Measurement(-1, "refused", error=f"raised {fault.count} times: {fault.traceback}")


def _novelty(trial: Trial, chosen: Sequence[Trial]) -> float:
    """Less than one for a candidate near one that has been chosen."""
    here = numbers(trial.decisions)
    near = 1.0
    for other in chosen:
        if other.sketch == trial.sketch:
            differing = sum(a != b for a, b in zip(here, numbers(other.decisions)))
            near = min(near, 0.3 + 0.2 * differing)
    return near
