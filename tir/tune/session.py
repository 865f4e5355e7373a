"""``tir.tune`` itself: the search of every function of a module within one budget, and looking up what it found."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ..checked import checked
from ..errors import TirError
from ..function import HasProgram, IRModule, PrimFunc
from ..schedule import Schedule, Trace
from ..target import GPUS, Target
from ..target import threads as usual_threads
from .cost_model import predict
from .default import likeliest, of_each, usual_schedule
from .drawing import FunctionSource, RuleSource, Source
from .gpu_model import Used, predict_kernels
from .machine import about_machine, machine_key
from .naming import Naming
from .records import NO_RUN, Records
from .result import Result, Tuned, no_result
from .runner import Job, LocalRunner, Measurement, Problem, Runner
from .search import BATCH, PATIENCE, Model, Predicted, Search, Trial
from .search_progress import Progress
from .space import Env, Space, space_of
from .tasks import Task, extract_tasks

_UNLIMITED = 1 << 30  # trials: the seconds end a search
DRAWING_SHARE = 0.2  # of the time, at most, for scheduling candidates before the first is measured


@checked
def tune(
    mod: PrimFunc | IRModule | HasProgram,
    target: Any = "llvm",
    trials: int | None = 64,
    seconds: float = 60.0,
    seed: int = 0,
    db: str | os.PathLike[str] | Records | None = None,
    space: Callable[[Schedule], Any] | None = None,
    runner: Runner | None = None,
    clock: Callable[[], float] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    weights: Mapping[str, float] | None = None,
    fresh: bool = False,
    replay: int | None = None,
    cold: bool = False,
    model: Model | None = None,
    batch: int = BATCH,
    patience: int = PATIENCE,
    verbose: bool = True,
) -> Result:
    """Search the fastest schedule of every function of ``mod`` on this machine, by building and timing candidates.

    It ends after ``trials`` measured candidates (each function has one at least; None: any number) or ``seconds``, whichever is first, or before
    that when a task is within 5 % of what the machine allows, when ``patience`` batches brought no improvement, or when there is
    nothing left to try. Trial 0 is the default schedule (:func:`tir.tune.default`), so the result is never slower than that.

    ``db`` is a file that keeps every trial: what it has of this program (whatever its names) and machine counts as
    measured, unless ``fresh``, and the same call after an interruption goes on. Several processes may share one.
    ``cold`` empties the caches of a CPU before each call that is timed: for a program that runs now and then between
    others. Its records are kept apart.
    ``space`` is a function that schedules and samples: ``def space(sch): …``; the default are the rules. ``sizes`` gives
    symbolic sizes by name; ``weights`` how often each function runs. ``runner`` measures, ``model`` predicts, ``clock``
    tells seconds: each has a default. Every choice follows from ``seed`` and the times: with ``replay``, the number of a run
    of ``db`` (``result.run``; ``python -m tir.tune show`` lists them), the search is the same as in that run, with its seed and
    the times that were measured then. What it did not come to, as it was killed, is measured.

    Raises ``TirError`` if no trial gave a result, with the first failure (of several functions, ``result.best`` raises it for one without a result); for a ``replay`` that ``db`` does not have; and for
    ``sizes`` that no function has.

    >>> import tir
    >>> from tir.library import elementwise
    >>> result = tir.tune(elementwise.scale_add(4096), trials=1, verbose=False)
    >>> result.trials[0].origin, result.best_seconds < 1
    ('default', True)
    """
    module, where = IRModule.of(mod), Target.of(target)
    if (trials is not None and trials < 1) or seconds <= 0:
        raise TirError(f"trials={trials}, seconds={seconds}: nothing could be measured; both are positive")
    if not -(1 << 63) <= seed < 1 << 63:
        raise TirError(f"seed={seed}: a seed is an integer of 64 bits, as the records keep it")
    if cold and where.kind != "llvm":
        raise TirError(f"cold=True empties the caches of a CPU before each call; the target is {where.kind}")
    _require_sizes(module, sizes or {})
    owned = runner is None
    chosen = runner if runner is not None else runner_for(where)
    now = clock or time.monotonic
    begin = now()
    with _records(db) as records, _closing(chosen, owned):
        if replay is not None:
            seed, fresh = records.begun(replay)
        run = records.begin_run(seed, {"trials": trials, "seconds": seconds, "target": str(where), "fresh": fresh})
        plan = _Plan(
            where, seed, run, space, chosen, records, model, now, fresh, cold, batch, patience, seconds * DRAWING_SHARE,
            NO_RUN if replay is None else replay,
        )  # fmt: skip
        progress = Progress(trials, seconds, verbose)
        tuned = [
            plan.tuned(task, dict(sizes or {}), n, progress) for n, task in enumerate(extract_tasks(module, weights))
        ]
        with _interruptible(chosen) as interrupted:
            _spend(tuned, _UNLIMITED if trials is None else trials, seconds, now, interrupted)
        progress.close()
        result = Result(
            module,
            where,
            tuned,
            interrupted=bool(interrupted),
            measured=not isinstance(chosen, Unmeasured),
            seconds=now() - begin,
            run=run,
        )
    if not interrupted and all(one.search.best is None for one in tuned):
        raise no_result([one.search for one in tuned])
    return result


def _require_sizes(module: IRModule, sizes: Mapping[str, int]) -> None:
    """Raise ``TirError`` for a name among ``sizes`` that is no symbolic size or scalar of a function."""
    if not sizes:
        return
    from ..interp.same_results import symbolic_sizes

    functions = list(module.functions.values())
    scalars = [p.name for f in functions for p in f.params if p not in f.buffer_map]
    known = dict.fromkeys([*(name for f in functions for name in symbolic_sizes(f)), *scalars])
    for name in sizes:
        if name not in known:
            have = ", ".join(known) or "none"
            raise TirError(
                f"sizes={dict(sizes)!r}: there is no symbolic size `{name}`\nlegal: of {', '.join(module)}: {have}"
            )


def tune_source(
    mod: IRModule,
    target: Target,
    source: Source,
    default: Callable[[], Schedule],
    runner: Runner,
    *,
    trials: int,
    seconds: float,
    seed: int,
    patience: int,
    tell: Callable[[Search, Trial], None],
) -> Result:
    """Search the schedules of a source, for a module of one function. Raises ``TirError`` if no trial gave a result."""
    problem = Problem(mod, target, threads=thread_count(target))
    begin = time.monotonic()
    with Records(None) as records, _interruptible(runner) as interrupted:
        search = Search(
            problem,
            source,
            default,
            lambda sch: None,
            runner,
            records,
            machine_key(target, problem.threads),
            seed=seed,
            run=0,
            now=time.monotonic,
            tell=tell,
            patience=patience,
        )
        tuned = [Tuned(extract_tasks(mod)[0], search)]
        _spend(tuned, trials, seconds, time.monotonic, interrupted)
    taken = time.monotonic() - begin
    if search.best is None:
        raise no_result([search])
    return Result(mod, target, tuned, interrupted=bool(interrupted), measured=True, seconds=taken)


@dataclass(frozen=True)
class _Plan:
    """What the searches of one call have in common."""

    target: Target
    seed: int
    run: int
    space: Callable[[Schedule], Any] | None
    runner: Runner
    records: Records
    model: Model | None
    now: Callable[[], float]
    fresh: bool
    cold: bool
    batch: int
    patience: int
    drawing_seconds: float
    replay: int

    def tuned(self, task: Task, sizes: dict[str, int], number: int, progress: Progress) -> Tuned:
        rules = space_of(self.target)
        problem = Problem(task.mod, self.target, sizes, threads=thread_count(self.target), cold=self.cold)
        key = machine_key(self.target, problem.threads, self.cold)
        self.records.add_machine(key, about_machine(self.target, problem.threads))
        model = self.model or usual_model(rules, sizes)
        source: Source = RuleSource(rules, task.mod, seconds_of(model))
        if self.space is not None:
            source = FunctionSource(self.space, task.mod, self.target)
        search = Search(
            problem, source, lambda: likeliest(task.mod, rules), model, self.runner,
            self.records, key, seed=self.seed + 7919 * number, run=self.run, now=self.now, tell=progress.tell,
            fresh=self.fresh, batch=self.batch, patience=self.patience, drawing_seconds=self.drawing_seconds,
            replay=self.replay,
        )  # fmt: skip
        return Tuned(task, search)


def usual_model(rules: Space, sizes: Mapping[str, int] | None = None) -> Model:
    """The model of a CPU or a GPU, at ``sizes`` where these are symbolic; where a schedule is beyond it, no prediction."""
    return lambda sch: predict(sch, rules.env, sizes)


def seconds_of(model: Model) -> Callable[[Schedule], float | None]:
    """The time alone that a model predicts."""

    def seconds(sch: Schedule) -> float | None:
        found = model(sch)
        return None if found is None else found.seconds

    return seconds


def thread_count(target: Target) -> int:
    """Threads that run a program: those of the target, or of parallel loops; a GPU is asked for by one."""
    if target.kind != "llvm":
        return 1
    return int(target.limit("num_cores") or 0) or usual_threads()


def _spend(tuned: list[Tuned], trials: int, seconds: float, now: Callable[[], float], interrupted: list[bool]) -> None:
    """Give batch after batch to the task that can gain most, until the budget is spent; each task has one trial at least."""
    begin = now()
    used = sum(len(one.search.trials) for one in tuned)
    with contextlib.suppress(_Stopped):
        while now() - begin < seconds and not interrupted:
            waiting = [one for one in tuned if not one.search.reason and (used < trials or not one.search.trials)]
            if not waiting:
                break
            one = max(waiting, key=lambda each: (not each.search.waits, _gain(each)))
            before = len(one.search.trials)
            one.search.step(max(1, trials - used))
            used += len(one.search.trials) - before
        for one in tuned:
            if len(one.search.measured) > 1 and not interrupted:
                one.search.confirm()


def _gain(one: Tuned) -> float:
    """Seconds that more trials of a task may save: those above its floor, by how often it runs and how many it had."""
    search = one.search
    if search.best is None:
        return math.inf if not search.trials else 0.0
    return one.task.weight * max(0.0, search.least - search.floor) / (1.0 + len(search.trials))


# ---------------------------------------------------------------- resources


@contextlib.contextmanager
def _records(db: str | os.PathLike[str] | Records | None) -> Generator[Records, None, None]:
    """The records of a call; those that the caller opened stay open."""
    if isinstance(db, Records):
        yield db
        return
    with Records(db) as made:
        yield made


@contextlib.contextmanager
def _closing(runner: Runner, owned: bool) -> Generator[None, None, None]:
    try:
        yield
    finally:
        if owned:
            runner.close()


class _Stopped(BaseException):
    """The second interrupt."""


@contextlib.contextmanager
def _interruptible(runner: Runner) -> Generator[list[bool], None, None]:
    """A list that the first interrupt from the keyboard makes true, once the running measurement is done; the second
    ends it at once."""
    interrupted: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupted:
            runner.close()
            raise _Stopped
        interrupted.append(True)
        getattr(runner, "interrupt", lambda: None)()

    old = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, old)


class Unmeasured:
    """A runner for a target that is not here: the time of a candidate is what the model predicts, and the result says
    so. What cannot be built has no time. Kernels for a GPU are compiled: the model is told their registers and spills."""

    def __init__(self, model: Model):
        self._model = model

    def measure(self, problem: Problem, jobs: Any, best: float = math.inf) -> list[Measurement]:
        return [self._one(problem, job) for job in jobs]

    def _one(self, problem: Problem, job: Job) -> Measurement:
        start = time.perf_counter()
        try:
            found = self._predicted(problem, job)
        except Exception as error:  # whatever building raises is a result
            return Measurement(job.number, "build", error=f"{type(error).__name__}: {error}")
        taken = time.perf_counter() - start
        if found is None:
            return Measurement(
                job.number,
                "refused",
                error="the model predicts nothing for this schedule, and there is no device to run it on",
            )
        return Measurement(job.number, "ok", found.seconds, (found.seconds,), build_seconds=taken)

    def _predicted(self, problem: Problem, job: Job) -> Predicted | None:
        from codegen.build import build

        if problem.target.kind not in GPUS:
            build(job.mod, problem.target)
            return self._model(Schedule(job.mod, seed=0, target=problem.target))
        target = Target("cuda", **{k: v for k, v in problem.target.attrs.items() if k != "host"})
        rows = build(job.mod, target).report()
        used = {row.kernel: Used(row.registers, row.spills, row.shared + row.dynamic) for row in rows}
        return predict_kernels(job.mod, Env.of(target), used)

    def close(self) -> None:
        """It started nothing."""


def runner_for(target: Target) -> Runner:
    """Children of this machine; for a GPU that is not here, and a simulated one, the model."""
    if target.kind in GPUS:
        from codegen.cuda.driver import has_device

        if target.kind != "cuda" or not has_device():
            return Unmeasured(usual_model(space_of(target)))
    made = LocalRunner()
    made.start()
    return made


# ---------------------------------------------------------------- looking up


@checked
def apply_best(
    mod: PrimFunc | IRModule | HasProgram,
    target: Any = "llvm",
    db: str | os.PathLike[str] | Records = "tune.db",
    *,
    sizes: Mapping[str, int] | None = None,
    cold: bool = False,
) -> Schedule:
    """The fastest schedule that ``db`` has of each function of ``mod`` on this machine; nothing is measured.

    A function of which it has none gets the default schedule, and a ``RuntimeWarning`` says so.

    >>> import tir, warnings
    >>> from tir.library import elementwise
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     sch = tir.tune.apply_best(elementwise.scale_add(4096), db=tir.tune.Records(None))
    >>> len(sch.mod)
    1
    """
    module, where = IRModule.of(mod), Target.of(target)
    _require_sizes(module, sizes or {})
    key = machine_key(where, thread_count(where), cold)
    with _records(db) as records:

        def made(begin: Schedule, space: Space) -> Schedule:
            trace = _recorded(IRModule.of(begin.func), where, records, key, dict(sizes or {}))
            if trace is not None:
                trace.apply_to_schedule(begin)
                return begin
            warnings.warn(
                f"no record of {begin.func_working_on} on this machine: it gets the default schedule; tir.tune(mod, db=…) makes one",
                RuntimeWarning,
                stacklevel=5,
            )
            return usual_schedule(begin, space)

        return of_each(module, space_of(where), made)


def _recorded(mod: IRModule, target: Target, records: Records, key: str, sizes: dict[str, int]) -> Trace | None:
    """The fastest recorded trace that can be applied to the function of ``mod``."""
    naming = Naming(mod)
    made = (naming.schedule(record.trace, target) for record in records.best(naming.program, key, sizes, count=3))
    return next((sch.trace for sch in made if sch is not None), None)  # one of another version may be of no use


__all__ = ["Trial", "apply_best", "tune"]
