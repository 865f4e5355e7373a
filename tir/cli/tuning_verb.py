"""The verb that searches for a schedule."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .file_verbs import require_writable
from .program_files import is_model, is_saved, program_of
from .subjects import pairs
from .verbs import PROGRAM, TARGET, Answer, option, verb


@verb(
    "tir tune kernels.py:double --trials 1",
    PROGRAM,
    TARGET,
    option("--trials", type=int, default=64, help="schedules that are measured, at most (default 64)"),
    option("--seconds", type=float, default=60.0, help="time that it may take (default 60)"),
    option("--seed", type=int, default=0, help="of the choices (default 0)"),
    option("--db", metavar="FILE", help="keep what was measured here; a later search goes on from it"),
    option("--size", action="append", default=[], metavar="NAME=N", help="a symbolic size to measure at"),
    option("--output", metavar="FILE.tir", help="write the scheduled program"),
    option("--trace", metavar="FILE.json", help="write the steps, as opt --trace reads them"),
)
def tune(options: argparse.Namespace) -> Answer:
    """Search for the fastest schedule by measuring candidates on this machine, and print it as Python."""
    from ..tune import tune as search

    if is_model(options.program) or is_saved(options.program):
        raise ValueError(f"{options.program} is no program: its kernels have schedules already")
    files = [path for path in (options.output, options.trace) if path is not None]
    for path in files:
        require_writable(Path(path))
    found = search(
        program_of(options.program),
        options.target,
        trials=options.trials,
        seconds=options.seconds,
        seed=options.seed,
        db=options.db,
        sizes=_sizes(options.size),
        verbose=sys.stderr.isatty(),
    )
    best = found.best
    steps = best.trace.simplified()
    if options.output is not None:
        Path(options.output).write_text(best.mod.script() + "\n", encoding="utf-8")
    if options.trace is not None:
        Path(options.trace).write_text(json.dumps(steps.as_json(), indent=1) + "\n", encoding="utf-8")
    wrote = [f"wrote {', '.join(files)}"] if files else []
    data = {
        "seconds": found.best_seconds, "trials": len(found.trials), "measured": found.measured,
        "interrupted": found.interrupted, "trace": steps.as_json(), "python": found.script,
    }  # fmt: skip
    return Answer("\n".join([str(found), *wrote, "", found.script.rstrip()]), data)


def _sizes(items: list[str]) -> dict[str, int]:
    """``NAME=N`` by name.

    >>> _sizes(["n=64"])
    {'n': 64}
    """
    found = pairs(items, "--size", [item.partition("=")[0] for item in items])
    for name, size in found.items():
        if not size.isdecimal():
            raise ValueError(f"--size {name}={size}: a size is an integer")
    return {name: int(size) for name, size in found.items()}
