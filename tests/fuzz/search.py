"""Random candidates of the rules, each compared with the reference: ``python -m tests.fuzz.search --examples 600 [--gpu]``.

The programs are those of ``tir.testing``. Each is searched as ``tir.tune`` does, but for the runner, which builds a candidate,
runs it, compares it with the reference executor, and makes its time up. Every other search chooses among results of the rules and values at random, likely or not.
With ``--gpu`` candidates are for a GPU and run by the simulator with all its checks. An exception is a failure, as a wrong
result is; what a GPU has no room for is counted with the reason. Exits with status 1 on any failure.
"""

from __future__ import annotations

import argparse
import faulthandler
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fuzz.kernel_programs import family_program
from tests.fuzz.product_programs import products
from tests.fuzz.refusal_audit import without_names
from tests.fuzz.steps import EVERY, STAGES, call_inputs, run_each
from tests.fuzz.tensor_programs import stages
from tests.page_ends import at_page_ends
from tir.equal import assert_structural_equal
from tir.errors import BuildError
from tir.function import IRModule, PrimFunc
from tir.schedule import Schedule
from tir.stmt import For
from tir.target import GPUS, Target
from tir.testing.decisions import SeededChoice
from tir.testing.oracle import assert_same_call
from tir.testing.programs import random_program
from tir.tune.default import likeliest
from tir.tune.drawing import Replays, RuleSource, Source
from tir.tune.ranking import samplings
from tir.tune.records import Records
from tir.tune.runner import Job, Measurement, Problem
from tir.tune.search import Search
from tir.tune.session import usual_model
from tir.tune.space import Env, Rule, Space, rules_of
from tir.tune.tasks import extract_tasks
from tir.visit import nodes_of

PRODUCTS = "products"  # of tests.fuzz.product_programs, drawn as often as all others
CACHES = "-l1_bytes=256 -l2_bytes=2048 -l3_bytes=8192"  # of a few lines: small programs have panels, groups and strips
CPUS = (
    f"llvm -vector_width=64 -num-cores=2 {CACHES}",
    f"llvm -vector_width=128 -num-cores=1 {CACHES}",
    f"llvm -vector_width=512 -num-cores=2 {CACHES}",
    "llvm -num-cores=2",
)
SIMULATED = ("cuda-sim -arch=sm_80", "cuda-sim -arch=sm_90", "cuda-sim -arch=sm_70")
TRIALS = 16  # candidates of a program, at most


@dataclass
class Report:
    """Counts of a run: programs by family, candidates by origin, and by rule what it made of blocks, 0 where it never did."""

    programs: Counter[str] = field(default_factory=Counter)
    candidates: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    not_built: Counter[str] = field(default_factory=Counter)
    failures: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"programs {self.programs.total()}, candidates {self.candidates.total()}, "
            f"not built {self.not_built.total()}, failures {len(self.failures)}"
        ]
        lines += [f"  programs of {name:12} {count:6}" for name, count in sorted(self.programs.items())]
        lines += [f"  candidates by {name:10} {count:6}" for name, count in sorted(self.candidates.items())]
        lines += [f"  results of rule {name:24} {count:6}" for name, count in sorted(self.rules.items())]
        lines += [f"  not built: {count:6}  {why}" for why, count in self.not_built.most_common()]
        return "\n".join(lines)


class AnySource(Source):
    """The schedules of a space with results of the rules and values of choices at random, each as likely as any other."""

    enough = 6

    def __init__(self, space: Space, mod: IRModule):
        self.space, self.mod, self.faults = space, mod, space.faults
        self.left = 2 * TRIALS  # of a small program many draws are the same

    def draw(self, generator: random.Random, count: int) -> Iterator[Schedule]:
        target = self.space.env.target
        count = min(count, self.left)
        self.left -= count
        for _ in range(count):
            begin = Schedule(self.mod, seed=generator.getrandbits(31), target=target, error_render_level="none")
            trace = self.space.schedule(begin, generator.randrange).trace
            values = [generator.randrange(len(step.args["candidates"])) for step in samplings(trace)]
            made = Replays(trace, self.mod, target, self.faults).decided(values)
            if made is not None:
                yield made


class Comparing:
    """A runner that compares candidates with the reference on every set of ``inputs``, and makes times up."""

    def __init__(self, name: str, inputs: Sequence[list[Any]], seed: int, report: Report):
        self.name, self.inputs, self.report = name, inputs, report
        self._seed, self._generator = seed, random.Random(seed)

    def measure(self, problem: Problem, jobs: Sequence[Job], best: float = math.inf) -> list[Measurement]:
        return [self._one(problem, job) for job in jobs]

    def _one(self, problem: Problem, job: Job) -> Measurement:
        try:
            self._compare(problem, job)
        except BuildError as refusal:
            if problem.target.kind not in GPUS:
                raise
            self.report.not_built[without_names(str(refusal))] += 1
            return Measurement(job.number, "build", error=str(refusal))
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\nscheduled:\n{job.mod.script()}") from error
        return Measurement(job.number, "ok", self._generator.uniform(1.0, 2.0))

    def _compare(self, problem: Problem, job: Job) -> None:
        from codegen.build import build

        built = build(job.mod, problem.target)
        if problem.target.kind == "cuda-sim":  # threads that a barrier does not order run in another order each time
            built.order, built.seed = "random", self._seed + job.number
            call = built[self.name]
        else:
            call = at_page_ends(built[self.name], self._seed + job.number)
        for given in self.inputs:
            assert_same_call(problem.mod, call, given, str(problem.target), func=self.name)

    def close(self) -> None:
        """It started nothing."""


def drawn_program(family: str, seed: int, target: Target) -> PrimFunc | IRModule:
    """The program of a seed: one of a family of the fuzzer, or a product; without thread axes for a CPU."""
    if family == PRODUCTS:
        return products(SeededChoice(seed))
    if family == STAGES:
        plain, scheduled = stages(SeededChoice(seed))
        threads = any(
            isinstance(n, For) and n.thread for f in scheduled.mod.functions.values() for n in nodes_of(f.body)
        )
        return plain if threads and target.kind not in GPUS else scheduled.mod
    return random_program(seed) if family == "chain" else family_program(family, seed)


def run_example(seed: int, report: Report, targets: Sequence[str], trials: int = TRIALS) -> None:
    """Search every function of the program of a seed; any failure is raised, with the program and the target."""
    family = PRODUCTS if seed % 2 else EVERY[seed // 2 % len(EVERY)]
    target = Target.of(random.Random(seed).choice(targets))
    program = drawn_program(family, seed, target)
    report.programs[family] += 1
    inputs: dict[str, list[list[Any]]] = {}
    for name, given in call_inputs(program, family, seed, {"decompose_reduction"}):
        inputs.setdefault(name, []).append(given)
    for task in extract_tasks(IRModule.of(program)):
        runner = Comparing(next(iter(task.mod)), inputs[task.names[0]], seed, report)
        try:
            _run_search(task.mod, target, seed, runner, report, trials)
        except Exception as error:
            raise AssertionError(f"for {target}, program:\n{task.mod.script()}") from error


def _run_search(mod: IRModule, target: Target, seed: int, runner: Comparing, report: Report, trials: int) -> None:
    with Records(None) as records:
        search = _search(mod, target, seed, runner, records, report)
        while len(search.trials) < trials and not search.reason:
            search.step(trials - len(search.trials))
        report.candidates.update(t.origin for t in search.trials)
        for fault in search.source.faults:
            raise AssertionError(f"{fault.where} raised\n{fault.traceback}")
        _check_records(search)


def _search(mod: IRModule, target: Target, seed: int, runner: Comparing, records: Records, report: Report) -> Search:
    """The search of a program: by the likeliest values, or by any."""
    env = replace(Env.of(target), parallel_from=0)
    space = Space(env, [_counted(one, report) for one in rules_of(target)])
    source = random.Random(seed + 1).choice((AnySource, RuleSource))(space, mod)

    return Search(
        Problem(mod, target), source, lambda: likeliest(mod, space), usual_model(space), runner, records, "none", seed=seed, run=0,
        now=lambda: 0.0, tell=lambda search, trial: None, batch=4, patience=TRIALS,
    )  # fmt: skip


def _counted(one: Rule, report: Report) -> Rule:
    """A rule whose results are counted."""

    report.rules[one.name] += 0

    def apply(sch: Schedule, block: str, env: Env) -> Any:
        made = one.apply(sch, block, env)
        report.rules[one.name] += len(made)
        return made

    return replace(one, apply=apply)


def _check_records(search: Search) -> None:
    """The record of the last trial makes the schedule that was measured."""
    record = search.records.of(search.naming.program, search.machine)[-1]
    made = search.naming.schedule(record.trace, search.problem.target)
    assert made is not None, "a record that cannot be replayed"
    assert_structural_equal(made.mod, search.trials[-1].schedule.mod)


def run(
    examples: int, seed: int = 0, *, targets: Sequence[str] = CPUS, seconds: float | None = None, log: bool = True
) -> Report:
    """Search the programs of ``examples`` seeds from ``seed`` on, as long as there is time; returns the counts.

    >>> run(0, seed=1, log=False).failures
    []
    """
    report = Report()
    report.failures = run_each(
        lambda number: run_example(number, report, targets), examples, seed, seconds=seconds, log=log
    )
    return report


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.search", description=__doc__)
    parser.add_argument("--examples", type=int, default=600, help=f"programs, with up to {TRIALS} candidates each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=None, help="stop after this time")
    parser.add_argument("--gpu", action="store_true", help="candidates for a GPU, run by the simulator")
    options = parser.parse_args(argv)
    targets = SIMULATED if options.gpu else CPUS
    report = run(options.examples, options.seed, targets=targets, seconds=options.seconds)
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
