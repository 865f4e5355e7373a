"""The longer property-testing budget: ``python -m tir.testing.fuzz --examples 20000 --seed 1``.

Each example is a random program and a random schedule of it. It must print and parse back, run under every check of the
executor before and after scheduling with the same result, replay from its trace, undo to the same object, and (every
``--llvm-every`` examples) give the same result compiled. Prints a summary and exits with status 1 on any failure;
a failing seed is printed with its program and steps, and ``--examples 1 --seed N`` runs it again. With ``--force``,
steps that are refused with a witness are applied anyway, and the cases in which that changes the result are counted.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .decisions import SeededChoice
from .kernel_programs import FAMILIES, family_program
from .oracle import assert_roundtrip, assert_same_result, random_inputs
from .programs import random_program
from .refusal_audit import Confirmations, is_confirmed
from .schedules import ALL_PRIMITIVES, BLOCK_PRIMITIVES, LOOP_PRIMITIVES, Attempt, random_schedule


@dataclass
class Report:
    """Counts of a run."""

    programs: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    compiled: int = 0
    failures: list[int] = field(default_factory=list)
    families: Counter[str] = field(default_factory=Counter)
    forced: Confirmations | None = None

    def __str__(self) -> str:
        lines = [
            f"programs {self.programs}, steps accepted {self.accepted.total()}, refused {self.refused.total()}, "
            f"compiled {self.compiled}, failures {len(self.failures)}"
        ]
        for name in sorted({*self.accepted, *self.refused}):
            lines.append(f"  {name:24} accepted {self.accepted[name]:6}  refused {self.refused[name]:6}")
        lines += [f"  programs of {name:12} {count:6}" for name, count in sorted(self.families.items())]
        if self.forced is not None:
            lines.append(str(self.forced))
        return "\n".join(lines)


def run_example(
    seed: int, report: Report, steps: int, primitives: list[str] | None, llvm: bool, families: bool = False
) -> None:
    """One program and one schedule of it. Raises whatever is wrong.

    With ``families``, the kernels of :mod:`tir.testing.kernel_programs` take turns with random chains.
    """
    from ..equal import assert_structural_equal

    names = [*FAMILIES, "chain"] if families else ["chain"]
    family = names[seed % len(names)]
    func = random_program(seed) if family == "chain" else family_program(family, SeededChoice(seed))
    report.programs += 1
    report.families[family] += 1
    assert_roundtrip(func)

    def refused(sch: Any, attempt: Attempt) -> None:
        if report.forced is not None and attempt.refusal is not None and attempt.refusal.witness:
            report.forced.add(attempt.name, is_confirmed(sch, attempt), f"seed {seed} ({family}): {attempt}")

    sch, attempts = random_schedule(func, seed + 1, steps, primitives, refused)
    for attempt in attempts:
        (report.accepted if attempt.accepted else report.refused)[attempt.name] += 1
        if attempt.refusal is not None and not str(attempt.refusal).strip():
            raise AssertionError(f"{attempt} was refused without a word")
    try:
        assert_roundtrip(sch.mod)
        inputs = random_inputs(func, seed, {"may_be_zero": seed // len(names) % 3})
        if family in ("argmax", "argmin"):
            inputs = [_distinct(a, seed) for a in inputs]
        threads = any(a.accepted and a.name == "bind" for a in attempts)
        engines = ["interpreter", "llvm"] if llvm and not threads else ["interpreter"]
        assert_same_result(func, sch.mod["main"], inputs, engines)
        report.compiled += "llvm" in engines
        assert_structural_equal(sch.trace.replay(func).mod, sch.mod)
        final = sch.mod
        taken = len(sch.history)
        if taken > 1:
            sch.undo()
            sch.redo()
            if sch.mod is not final:
                raise AssertionError("undo and redo gave another object")
    except Exception as error:
        done = "\n".join(str(a) for a in attempts if a.accepted)
        programs = f"program:\n{func.script()}\nscheduled:\n{sch.mod.script()}"
        raise AssertionError(f"after\n{done}\n{error}\n\n{programs}") from error


def _distinct(array: Any, seed: int) -> Any:
    """Floats that are pairwise distinct: which of equal candidates an arg-max selects is unspecified."""
    if array.dtype.kind != "f":
        return array
    return np.random.default_rng(seed).permutation(array.size).reshape(array.shape).astype(array.dtype)


def run(
    examples: int, seed: int = 0, *, steps: int = 6, primitives: list[str] | None = None, llvm_every: int = 10,
    seconds: float | None = None, log: bool = True, families: bool = False, force: bool = False,
) -> Report:  # fmt: skip
    """Run ``examples`` seeds from ``seed`` on (stopping early after ``seconds``); returns the counts.

    ``force``: count as well how many refusals with a witness are confirmed by a run.
    """
    report = Report(forced=Confirmations() if force else None)
    begin = time.monotonic()
    for number in range(seed, seed + examples):
        try:
            run_example(number, report, steps, primitives, llvm_every > 0 and number % llvm_every == 0, families)
        except Exception:
            report.failures.append(number)
            if log:
                print(f"seed {number} failed:\n{traceback.format_exc()}", flush=True)
        if log and (number - seed + 1) % 500 == 0:
            print(f"{number - seed + 1} examples, {time.monotonic() - begin:.0f} s, failures {len(report.failures)}")
        if seconds is not None and time.monotonic() - begin > seconds:
            break
    return report


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tir.testing.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6, help="primitives tried on each program")
    parser.add_argument("--llvm-every", type=int, default=10, help="compile every n-th example; 0: none")
    parser.add_argument("--seconds", type=float, default=None, help="stop after this time")
    parser.add_argument("--blocks", action="store_true", help="try the block family too")
    parser.add_argument("--all", action="store_true", help="every primitive, and whole kernels as well as chains")
    parser.add_argument("--force", action="store_true", help="force refused steps, and count how often it matters")
    options = parser.parse_args(argv)
    primitives = [*LOOP_PRIMITIVES, *BLOCK_PRIMITIVES] if options.blocks else None
    primitives = list(ALL_PRIMITIVES) if options.all else primitives
    report = run(
        options.examples, options.seed, steps=options.steps, primitives=primitives, llvm_every=options.llvm_every,
        seconds=options.seconds, families=options.all, force=options.force,
    )  # fmt: skip
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
