"""Measuring on other machines, through Dask (extra ``dask``): each worker has children of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import TirError
from ..extension import optional
from ..function import IRModule
from ..script import parse_data
from ..target import Target
from .runner import Job, LocalRunner, Measurement, Problem

_RUNNERS: dict[str, tuple[LocalRunner, dict[str, Problem]]] = {}  # of a worker


class DaskRunner:
    """A runner whose candidates are measured by the workers of ``client`` (a ``distributed.Client``), one at a time each.

    Start workers with ``--resources "measure=1"`` and ``resources={"measure": 1}`` here to keep other tasks off those
    machines. A worker that is killed loses nothing: its candidates go to another, and after ``retries`` times they are
    rows with the status ``crashed``. Only this side writes records; use workers of one kind, as their times are compared.
    Raises ``TirError`` without the package distributed.

    >>> import tir
    >>> from distributed import Client  # doctest: +SKIP
    >>> runner = tir.tune.DaskRunner(Client("tcp://scheduler:8786"))  # doctest: +SKIP
    >>> found = tir.tune(tir.library.rows.softmax(1024, 1000), trials=64, runner=runner)  # doctest: +SKIP
    """

    def __init__(
        self, client: Any, *, resources: dict[str, float] | None = None, retries: int = 2, seconds: float = 600.0
    ):
        self._distributed = optional("distributed", "DaskRunner needs the package distributed", "dask", TirError)
        self.client, self.resources, self.retries, self.seconds = client, resources, retries, seconds

    def measure(self, problem: Problem, jobs: Sequence[Job], best: float = math.inf) -> list[Measurement]:
        about = {
            "script": problem.mod.script(), "target": problem.spec, "sizes": dict(problem.sizes), "seed": problem.seed,
            "threads": problem.threads, "cold": problem.cold,
        }  # fmt: skip
        futures = [
            self.client.submit(
                measured_here,
                about,
                job.number,
                job.mod.script(),
                None if best == math.inf else best,
                pure=False,
                retries=self.retries,
                resources=self.resources,
            )
            for job in jobs
        ]
        return [self._result(job, future) for job, future in zip(jobs, futures)]

    def _result(self, job: Job, future: Any) -> Measurement:
        """The measurement of a task. Raises ``TirError`` if the unscheduled program itself cannot be run."""
        try:
            row = future.result(timeout=self.seconds)
        except TirError:
            raise
        except Exception as error:  # a killed worker, a lost connection, a time limit
            future.cancel()
            status = "timeout" if "Timeout" in type(error).__name__ else "crashed"
            return Measurement(job.number, status, error=f"the worker: {type(error).__name__}: {error}")
        seconds = math.inf if row["seconds"] is None else row["seconds"]
        return Measurement(**{**row, "seconds": seconds, "times": tuple(row["times"])})

    def close(self) -> None:
        """The client is the caller's."""


def measured_here(about: dict[str, Any], number: int, script: str, best: float | None) -> dict[str, Any]:
    """Measure a candidate in a child of this worker; plain data both ways."""
    runner, problems = _RUNNERS.setdefault("local", (LocalRunner(), {}))
    key = repr(sorted(about.items(), key=lambda item: item[0]))
    if key not in problems:
        mod = IRModule.of(parse_data(about["script"]))
        about = {**about, "target": Target.of(about["target"])}
        problems[key] = Problem(mod, **{name: value for name, value in about.items() if name != "script"})
    job = Job(number, IRModule.of(parse_data(script)))
    (made,) = runner.measure(problems[key], [job], math.inf if best is None else best)
    row = {name: getattr(made, name) for name in ("number", "status", "times", "error", "build_seconds", "load")}
    return {**row, "seconds": made.seconds if math.isfinite(made.seconds) else None}
