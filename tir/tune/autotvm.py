"""AutoTVM's names: notes of its time run with ``from tir.tune import autotvm`` in place of ``from tvm import autotvm``.

Tasks, tuners, callbacks and ``apply_history_best`` are a thin layer over :func:`tir.tune`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..target import Target
from .result import Result
from .session import runner_for, tune_source
from .template import HISTORY, Config, Template, TemplateSource, find, get_config, knobs_of, template

__all__ = [
    "Config", "GATuner", "GridSearchTuner", "LocalBuilder", "LocalRunner", "RandomTuner", "Task", "XGBTuner",
    "apply_history_best", "callback", "get_config", "measure_option", "record", "task", "template", "tuner",
]  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A template with arguments, and a target."""

    template: Template
    args: tuple[Any, ...]
    target: Target

    @property
    def name(self) -> str:
        return self.template.name

    @property
    def workload(self) -> tuple[Any, ...]:
        """What names it in a log: the template's name and the arguments."""
        return (self.name, *self.args)

    @property
    def config_space(self) -> Config:
        """Its knobs."""
        return knobs_of(self.template, self.args)

    @property
    def flop(self) -> float:
        """The operations that the template counted by ``cfg.add_flop``."""
        return self.config_space.flop


def _create(name: str | Template, args: Sequence[Any], target: Any = None, target_host: Any = None) -> Task:
    """The task of a template, by name or itself, for ``target`` (default: that of a ``with`` around the call, else this CPU)."""
    found = name if isinstance(name, Template) else find(name)
    return Task(found, tuple(args), Target.of(target or Target.current() or "llvm"))


@dataclass(frozen=True)
class MeasureInput:
    """What was measured: ``config`` has the number of each knob's value."""

    target: Target
    task: Task
    config: Config


@dataclass(frozen=True)
class MeasureResult:
    """``costs`` in seconds (infinite for a failure), ``error_no`` 0 for success, ``all_cost`` in seconds."""

    costs: tuple[float, ...]
    error_no: int
    all_cost: float
    timestamp: float


def LocalBuilder(**_options: Any) -> None:  # noqa: N802
    """Candidates are built in the processes that run them."""


def LocalRunner(**_options: Any) -> None:  # noqa: N802
    """Candidates run in a child process of this machine; how often follows from how long they take."""


def measure_option(builder: Any = None, runner: Any = None) -> dict[str, Any]:
    """How candidates are measured; a ``runner`` of :mod:`tir.tune` is used, anything else is this machine."""
    return {"runner": runner if hasattr(runner, "measure") else None}


class Tuner:
    """Searches the knobs of a task."""

    order = "random"

    def __init__(self, task: Task, *_: Any, **_options: Any):
        self.task = task
        self.result: Result | None = None
        self.best_config: Config | None = None

    def tune(
        self,
        n_trial: int,
        measure_option: dict[str, Any] | None = None,
        early_stopping: int | None = None,
        callbacks: Iterable[Callable[[Any, list[MeasureInput], list[MeasureResult]], None]] = (),
        si_prefix: str = "G",
        seconds: float = math.inf,
        seed: int = 0,
    ) -> Result:
        """Measure up to ``n_trial`` configurations; callbacks are told of each. ``early_stopping`` ends it after so many
        without an improvement."""
        source = TemplateSource(self.task.template, self.task.args, self.order)
        first = source.default()
        told = list(callbacks)

        def tell(search: Any, trial: Any) -> None:
            wanted = source.wanted.get(id(trial.schedule))
            if wanted is None:
                return
            config = source.space.chosen(wanted)
            made = MeasureResult((trial.seconds,), 0 if trial.seconds < math.inf else 4, trial.after, time.time())
            for one in told:
                one(self, [MeasureInput(self.task.target, self.task, config)], [made])

        runner = (measure_option or {}).get("runner")
        patience = math.ceil((early_stopping or n_trial) / 8)
        with contextlib.closing(runner or runner_for(self.task.target)) as chosen:
            self.result = tune_source(
                first.history[0].mod,
                self.task.target,
                source,
                lambda: first,
                chosen,
                trials=n_trial,
                seconds=seconds,
                seed=seed,
                patience=max(1, patience),
                tell=tell,
            )
        self.best_config = source.space.chosen(source.wanted[id(self.result.tuned[0].best.schedule)])
        return self.result


class RandomTuner(Tuner):
    """Configurations at random at first, then neighbours of the best."""


class GridSearchTuner(Tuner):
    """Configurations in order."""

    order = "grid"


class XGBTuner(Tuner):
    """Guided by what was learned of the configurations measured so far."""


class GATuner(XGBTuner):
    """As ``XGBTuner``."""


# ---------------------------------------------------------------- the log


def _key(name: str, args: Sequence[Any]) -> str:
    return json.dumps([name, [str(a) for a in args]])


def _log_to_file(path: str | os.PathLike[str]) -> Callable[[Any, list[MeasureInput], list[MeasureResult]], None]:
    """A callback that appends each configuration to a file, a line of JSON each."""

    def log(tuner: Any, inputs: list[MeasureInput], results: list[MeasureResult]) -> None:
        with open(path, "a", encoding="utf-8") as file:
            for one, made in zip(inputs, results):
                seconds = made.costs[0] if made.error_no == 0 else None
                row = {
                    "template": one.task.name, "args": [str(a) for a in one.task.args], "target": str(one.target),
                    "config": one.config.wanted, "seconds": seconds, "error": made.error_no,
                }  # fmt: skip
                file.write(json.dumps(row) + "\n")

    return log


def _progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callable[..., None]:
    """A callback that says every improvement."""
    best = [math.inf, 0]

    def show(tuner: Any, inputs: list[MeasureInput], results: list[MeasureResult]) -> None:
        for one, made in zip(inputs, results):
            best[1] += 1
            if made.costs[0] < best[0]:
                best[0] = made.costs[0]
                rate = f", {one.task.flop / best[0] * 1e-9:.2f} GFLOPS" if one.task.flop else ""
                print(f"{prefix}{best[1]}/{total}: {best[0] * 1e3:.4g} ms{rate}")

    return show


def _read_log(path: str | os.PathLike[str]) -> dict[str, tuple[float, dict[str, int], str]]:
    """The best configuration of each template and its arguments, and the line that has it, the first of equals; lines that are
    damaged are left out."""
    best: dict[str, tuple[float, dict[str, int], str]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
            key, seconds = json.dumps([row["template"], row["args"]]), row["seconds"]
            config = {str(name): int(at) for name, at in row["config"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if seconds is not None and (key not in best or seconds < best[key][0]):
            best[key] = float(seconds), config, line
    return best


class apply_history_best:  # noqa: N801
    """Inside of ``with``, templates use the best configuration that the file of ``callback.log_to_file`` has of them."""

    def __init__(self, path: str | os.PathLike[str]):
        self._best = _read_log(path)

    def query(self, target: Any, workload: Sequence[Any]) -> Config | None:
        """The best configuration of a task, by ``task.workload``; None if the file has none."""
        name, *args = workload
        wanted = self._look(name, tuple(args))
        return None if wanted is None else knobs_of(find(name), args).chosen(wanted)

    def _look(self, name: str, args: tuple[Any, ...]) -> dict[str, int] | None:
        found = self._best.get(_key(name, args))
        return None if found is None else found[1]

    def __enter__(self) -> apply_history_best:
        HISTORY.append(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        HISTORY.remove(self._look)


def _pick_best(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy the best line of each task of a log."""
    lines = (line for _, _, line in _read_log(source).values())
    Path(target).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


task = SimpleNamespace(create=_create)
tuner = SimpleNamespace(RandomTuner=RandomTuner, GridSearchTuner=GridSearchTuner, XGBTuner=XGBTuner, GATuner=GATuner)
callback = SimpleNamespace(log_to_file=_log_to_file, progress_bar=_progress_bar)
record = SimpleNamespace(pick_best=_pick_best)
