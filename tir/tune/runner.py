"""Measuring candidates: what a runner is, and the one that uses child processes of this machine."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import TirError
from ..function import IRModule
from ..target import Target
from .folder import Folder
from .process import CandidateFailed, Child, ChildFailed
from .reference import in_order

ATTEMPTS = 3  # at running the unscheduled program in a process that ends


@dataclass(frozen=True)
class Problem:
    """The unscheduled program (a module of one function), the target, symbolic sizes by name, and a seed for inputs.

    ``cold``: each call that is timed finds nothing of its arguments in the caches.
    """

    mod: IRModule
    target: Target
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    threads: int = 1
    cold: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The target as plain data."""
        return {"kind": self.target.kind, **self.target.attrs}


@dataclass(frozen=True)
class Job:
    """A candidate to be measured: its number, and the scheduled module."""

    number: int
    mod: IRModule


@dataclass(frozen=True)
class Measurement:
    """What became of a job. ``seconds`` is the least of ``times``; infinite if it never ran to its end.

    ``status``: ``ok``; ``censored`` (so much slower than the best that it was timed only once or twice);
    ``wrong`` (another result than the unscheduled program's), ``crashed``, ``timeout``, ``build`` (it could not be
    built) or ``refused`` (its schedule could not be made): ``error`` says more. ``load`` is the system's load average.

    >>> from tir.tune import Measurement
    >>> Measurement(0, "ok", 0.002, times=(0.002, 0.003)).ok, Measurement(1, "timeout").seconds
    (True, inf)
    """

    number: int
    status: str
    seconds: float = math.inf
    times: tuple[float, ...] = ()
    error: str = ""
    build_seconds: float = 0.0
    load: float = 0.0

    @property
    def ok(self) -> bool:
        return self.status in ("ok", "censored")


FAILED = ("timeout", "crashed", "wrong", "refused", "build")
STATUSES = ("ok", "censored", *FAILED, "skipped")


def require_measurements(runner: Any, jobs: Sequence[Job], made: Any) -> list[Measurement]:
    """``made`` if it is what a runner owes: a measurement for each job, in their order, with a known status and, where a
    candidate ran, a time. Raises ``TirError`` for anything else: no result of such a runner can be compared."""
    if not isinstance(made, (list, tuple)) or not all(isinstance(m, Measurement) for m in made):
        what = f"{made!r:.60}"
    elif [m.number for m in made] != [job.number for job in jobs]:
        what = f"{len(made)} measurements, of the jobs {', '.join(str(m.number) for m in made) or 'none'}"
    else:
        bad = next((m for m in made if m.status not in STATUSES or (m.ok and not 0 < m.seconds < math.inf)), None)
        if bad is None:
            return list(made)
        what = f"{bad.status!r} after {bad.seconds} s for job {bad.number}"
    raise TirError(
        f"{type(runner).__name__}.measure answered {what}\nlegal: a list of one Measurement for each of the jobs "
        f"{', '.join(str(job.number) for job in jobs)}, in this order, with a status of {', '.join(STATUSES)}; "
        "ok and censored ones with a finite time above 0"
    )


class Runner(Protocol):
    """Builds and times candidates."""

    def measure(self, problem: Problem, jobs: Sequence[Job], best: float = math.inf) -> list[Measurement]:
        """One measurement for each job, in their order (:func:`require_measurements`). ``best`` is the least time known of
        the problem."""
        ...

    def close(self) -> None:
        """End what it started."""
        ...


def available_memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


@dataclass
class _Race:
    """A candidate that is being timed."""

    job: Job
    times: list[float]
    build_seconds: float
    out: bool = False

    @property
    def best(self) -> float:
        return min(self.times)


def _margin(one: _Race, turn: int, rounds: int) -> float:
    """Times the best that a candidate may take to stay in the race; the fewer its times are, the more they say of what
    else the machine is doing."""
    if len(one.times) < 3:
        return 10.0 if one.best > 0.05 else math.inf
    return 3.0 if len(one.times) < 5 else 1.5 if turn < 6 else 1.10 if turn < rounds // 2 + 2 else 1.03


class LocalRunner:
    """Candidates in a child process, with another one ready to take its place.

    Both build; one runs, alone, once all are built. ``timeout`` and ``build_timeout`` are seconds: a run may take ten
    times the best known time, and at least ``timeout``. ``memory`` limits each process, in bytes (by default the
    machine's memory; a GPU's programs have none). ``rounds`` is the most times a candidate is timed, ``seconds`` about
    how long.

    >>> import tir
    >>> runner = tir.tune.LocalRunner(timeout=1.0, rounds=3)
    >>> runner.close()  # ends its child processes; tir.tune(…, runner=runner) uses it
    """

    def __init__(
        self,
        *,
        timeout: float = 2.0,
        build_timeout: float = 60.0,
        reference_timeout: float = 300.0,
        memory: int | None = None,
        rounds: int = 12,
        seconds: float = 0.25,
        prepare: Callable[[Child], None] | None = None,
    ):
        self.timeout, self.build_timeout, self.reference_timeout = timeout, build_timeout, reference_timeout
        self.memory, self.rounds, self.seconds = memory, rounds, seconds
        self._prepare = prepare
        self._children: list[Child] = []
        self._folder = Folder()
        self._problems: list[Problem] = []  # a folder for each, with its reference outputs
        self._problem: Problem | None = None
        self._reference_seconds = 0.0
        self._interrupted = False

    # ------------------------------------------------------------ measuring

    def measure(self, problem: Problem, jobs: Sequence[Job], best: float = math.inf) -> list[Measurement]:
        return self._measured(problem, jobs, best, self.rounds)

    def confirm(self, problem: Problem, jobs: Sequence[Job]) -> list[Measurement]:
        """Time candidates that have been measured before once more, for longer and without dropping any early."""
        return self._measured(problem, jobs, math.inf, 20)

    def interrupt(self) -> None:
        """Let ``measure`` return soon, from another thread or a signal: what has not begun has the status
        ``skipped``."""
        self._interrupted = True

    def _measured(self, problem: Problem, jobs: Sequence[Job], best: float, rounds: int) -> list[Measurement]:
        self._start(problem)
        found: dict[int, Measurement] = {}
        built = self._build(problem, jobs, found)
        racing: list[_Race] = []
        for job in jobs:
            if self._interrupted:
                found.setdefault(job.number, Measurement(job.number, "skipped"))
            if job.number not in found:
                known = min([best, *(r.best for r in racing)])
                one = self._first_run(job, built[job.number], known, found)
                racing += [] if one is None else [one]
        self._race(racing, best, rounds, found)
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        for one in racing:
            status = "censored" if len(one.times) < 3 and one.out else "ok"
            made = Measurement(one.job.number, status, one.best, tuple(one.times), "", one.build_seconds, load)
            found.setdefault(one.job.number, made)
        self._forget(jobs)
        return [found[job.number] for job in jobs]

    def close(self) -> None:
        for child in self._children:
            child.close()
        self._children.clear()
        self._folder.close()

    # ------------------------------------------------------------ children

    def _child(self) -> Child:
        cache = (
            {"TIR_CACHE": "1", "TIR_CACHE_DIR": str(self._folder.path)} if os.environ.get("TIR_CACHE") == "0" else {}
        )
        gpu = self._problem is not None and self._problem.target.kind == "cuda"
        memory = self.memory if self.memory is not None or gpu else available_memory()
        child = Child(memory, cache)
        if self._prepare is not None:
            self._prepare(child)
        return child

    def start(self) -> None:
        """Start the processes, which takes them a second; they need not be waited for."""
        self._folder.open()
        for ended in [child for child in self._children if not child.alive]:  # killed by somebody else
            self._children.remove(ended)
            ended.close()
        while len(self._children) < 2:
            self._children.append(self._child())

    def _start(self, problem: Problem) -> None:
        if problem is not self._problem:
            self._problem = problem
            self._reference_seconds = 0.0
            if all(known is not problem for known in self._problems):
                self._problems.append(problem)
        self._interrupted = False
        self.start()

    def _place(self, problem: Problem) -> str:
        """The folder of a problem."""
        number = next(n for n, known in enumerate(self._problems) if known is problem)
        folder = os.path.join(self._folder.path, str(number))
        os.makedirs(folder, exist_ok=True)
        return folder

    def _replace(self, number: int) -> None:
        """End a child, put the spare in its place, and start another one."""
        self._children.pop(number).close()
        self._children.append(self._child())

    def _ready(self) -> Child:
        """The child that runs candidates, with the task loaded. Raises ``ChildFailed`` or ``CandidateFailed`` if the
        unscheduled program cannot be run; a child that ends meanwhile may have been killed by somebody else, so that others
        try again."""
        failed = 0
        while True:
            try:
                return self._with_task(self._children[0])
            except ChildFailed as error:
                self._replace(0)
                failed += 1
                if error.status == "timeout" or failed == ATTEMPTS:
                    raise

    def _with_task(self, child: Child) -> Child:
        """``child`` with the task loaded."""
        problem = self._problem
        assert problem is not None
        if child.task is not problem:
            about = {
                "target": problem.spec, "sizes": dict(problem.sizes), "seed": problem.seed,
                "folder": self._place(problem), "serial": problem.threads == 1, "cold": problem.cold,
            }  # fmt: skip
            made = child.request("task", in_order(problem.mod, problem.target), self.reference_timeout, **about)
            self._reference_seconds = made["seconds"]
            child.task = problem
            child.loaded.clear()
        return child

    # ------------------------------------------------------------ building

    def _build(self, problem: Problem, jobs: Sequence[Job], found: dict[int, Measurement]) -> dict[int, float]:
        """Build all jobs, on both children; seconds by number. Those that fail are in ``found``."""
        waiting = deque(jobs)
        seconds: dict[int, float] = {}
        self._ready()  # the reference first: without it nothing can be compared
        used = 2 if problem.target.kind == "llvm" and len(jobs) > 1 else 1

        def work(number: int) -> None:
            while waiting and not self._interrupted:
                try:
                    job = waiting.popleft()
                except IndexError:
                    return
                try:
                    seconds[job.number] = self._built_on(number, job)
                except CandidateFailed as error:
                    found[job.number] = Measurement(job.number, "build", error=str(error))
                except ChildFailed as error:
                    self._children[number].close()
                    self._children[number] = self._child()
                    found[job.number] = Measurement(job.number, "build", error=f"while building: {error}")

        with ThreadPoolExecutor(used) as pool:
            for done in [pool.submit(work, number) for number in range(used)]:
                done.result()
        return seconds

    def _built_on(self, number: int, job: Job) -> float:
        """Build on a child. The one that runs keeps the result; what the other builds is in the cache of programs."""
        child, problem = self._children[number], self._problem
        assert problem is not None
        made = child.request("build", job.mod, self.build_timeout, id=job.number, keep=number == 0, target=problem.spec)
        if number == 0:
            child.loaded.add(job.number)
        return float(made["seconds"])

    def _on_ready(self, job: Job) -> Child:
        """The child that runs, with ``job`` built and checked there. Raises as ``Child.request``."""
        child = self._ready()
        if job.number not in child.loaded:
            self._built_on(0, job)
        return child

    # ------------------------------------------------------------ running

    def _first_run(self, job: Job, built: float, best: float, found: dict[int, Measurement]) -> _Race | None:
        """The result compared, and a first time; None for a candidate that failed, which is in ``found``."""
        try:
            child = self._on_ready(job)
            wrong = self._wrong(child, job, self._limit(best))
            if wrong:
                found[job.number] = Measurement(job.number, "wrong", error=wrong, build_seconds=built)
                return None
            return _Race(job, [self._time(job, 1, 1, self._limit(best))], built)
        except (CandidateFailed, ChildFailed) as error:
            found[job.number] = self._failed(job, built, error)
            return None

    def _wrong(self, child: Child, job: Job, limit: float) -> str:
        """What is wrong with the results of a run of at most ``limit`` seconds; empty if nothing. Comparing large results
        takes longer than to make them: that is no fault of the candidate's."""
        child.request("run", limit=limit, id=job.number)
        return str(child.request("compare", limit=self.reference_timeout, id=job.number)["wrong"])

    def _limit(self, best: float) -> float:
        """Seconds a run may take."""
        usual = best if best < math.inf else self._reference_seconds
        return max(self.timeout, 10.0 * usual) + 2.0 * self._reference_seconds

    def _failed(self, job: Job, built: float, error: CandidateFailed | ChildFailed) -> Measurement:
        if isinstance(error, ChildFailed):
            self._replace(0)
        status = error.status if isinstance(error, ChildFailed) else "crashed"
        return Measurement(job.number, status, error=str(error), build_seconds=built)

    def _time(self, job: Job, number: int, groups: int, limit: float) -> float:
        """Seconds of a call. A child that has taken the place of another checks the candidate again first."""
        child = self._children[0]
        if child.task is not self._problem or job.number not in child.loaded:
            child = self._on_ready(job)
            self._wrong(child, job, limit)
        made = child.request("time", limit=limit * number * groups, id=job.number, number=number, groups=groups)
        return float(made["seconds"])

    def _race(self, racing: list[_Race], best: float, rounds: int, found: dict[int, Measurement]) -> None:
        """Time all in turn, in rounds; those that are behind drop out."""
        for turn in range(rounds):
            least = min([best, *(one.best for one in racing)], default=best)
            for one in racing:
                one.out |= one.best > _margin(one, turn, rounds) * least
            number = max(1, math.ceil(2e-5 / max(least, 1e-9)))  # less is not told from the call itself
            groups = max(3 if least < 0.01 else 1, min(50, int(1e-3 / max(number * least, 1e-9))))
            running = [one for one in racing if not one.out]
            if not running or self._interrupted or turn > 3 and turn * groups * number * least > self.seconds:
                return
            for one in running:
                try:
                    one.times.append(self._time(one.job, number, groups, self._limit(least)))
                except (CandidateFailed, ChildFailed) as error:
                    one.out = True
                    found[one.job.number] = self._failed(one.job, one.build_seconds, error)

    def _forget(self, jobs: Sequence[Job]) -> None:
        child = self._children[0]
        for number in [job.number for job in jobs if job.number in child.loaded]:
            child.loaded.discard(number)
            child.post("drop", id=number)
