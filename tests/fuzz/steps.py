"""The longer property-testing budget: ``python -m tests.fuzz.steps --examples 20000 --seed 1``.

Each example is a random program and a random schedule of it. It must print and parse back, compute the same result
before and after scheduling under every check of the executor, replay from its trace, undo to the same object, and (every
``--llvm-every`` examples) compute the same result when compiled, on arrays beside pages that may not be touched. Prints a summary and exits with status 1 on any failure;
a failing seed is printed with its program and steps, and ``--examples 1 --seed N`` runs it again. With ``--force``,
steps that are refused with a witness are applied anyway, and the cases in which that changes the result are counted.
With ``--reduce``, the smallest case that fails the same way follows each failure. Results are compared in every example;
of the texts and the replays, a share that the seed draws is checked (``--texts 1 --replays 1``: all), and with ``--gpu`` a
share of the kernels is compiled by NVRTC and executed as PTX (``--executed 1``: all).
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tests.fuzz.classes import CLASSES, classes_of
from tests.fuzz.gpu_schedules import random_gpu_schedule, wider
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tests.fuzz.refusal_audit import Confirmations, is_confirmed, symbolic_sizes, without_names
from tests.fuzz.tensor_programs import stages
from tests.page_ends import at_page_ends, named_in_faults
from tir.analysis.reduction_forms import Reduction
from tir.equal import assert_structural_equal
from tir.errors import BuildError, RunError, ScheduleError
from tir.function import IRModule, PrimFunc
from tir.interp import run as interp_run
from tir.interp.same_results import copied
from tir.progress import track
from tir.schedule import Schedule, apply_text
from tir.stmt import Block
from tir.target import Target
from tir.testing.decisions import SeededChoice
from tir.testing.oracle import assert_roundtrip, assert_same_call, random_inputs, reference
from tir.testing.programs import random_program
from tir.testing.reduce import Case, reduce_case
from tir.testing.schedules import BLOCK_PRIMITIVES, LOOP_PRIMITIVES, Attempt, every_primitive, random_schedule, started
from tir.visit import walk

WEIGHTED = ("steered",) * 3  # families with many variants, drawn more often
STAGES = "stages"  # the family whose schedules begin as stage schedules
CHAIN = ("chain",)  # of tir.testing.programs
EVERY = (*CHAIN, *FAMILIES, *WEIGHTED, STAGES)


@dataclass(frozen=True)
class Shares:
    """Which shares of the costly checks that concern no result are made.

    The seed of an example draws them, apart from its program and its steps, which are the same with any shares.

    ``texts``: of the texts of refusals, each with what would be legal instead, and of the programs before their schedules,
    which must print and parse back. ``replays``: of the histories, which must replay, undo and redo. ``executed``: of the
    GPU schedules, of which NVRTC's PTX is executed in several orders of threads.
    """

    texts: float = 0.1
    replays: float = 0.25
    executed: float = 0.1

    def has_text(self, seed: int, number: int) -> bool:
        """Whether a text of an example is drawn: number 0 is its program, the others are its steps."""
        return random.Random(f"text {number} of {seed}").random() < self.texts

    def has_replay(self, seed: int) -> bool:
        return random.Random(f"replay of {seed}").random() < self.replays

    def is_executed(self, seed: int) -> bool:
        return random.Random(f"PTX of {seed}").random() < self.executed


@dataclass
class Report:
    """Counts of a run."""

    programs: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    compiled: int = 0
    executed: int = 0
    failures: list[int] = field(default_factory=list)
    families: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    not_built: Counter[str] = field(default_factory=Counter)
    forced: Confirmations | None = None

    def __str__(self) -> str:
        lines = [
            f"programs {self.programs}, steps accepted {self.accepted.total()}, refused {self.refused.total()}, "
            f"compiled {self.compiled}, executed as PTX {self.executed}, failures {len(self.failures)}"
        ]
        for name in sorted({*self.accepted, *self.refused}):
            lines.append(f"  {name:24} accepted {self.accepted[name]:6}  refused {self.refused[name]:6}")
        lines += [f"  programs of {name:12} {count:6}" for name, count in sorted(self.families.items())]
        lines += [f"  programs with {name:42} {self.classes[name]:6}" for name in CLASSES]
        lines += [f"  not built: {count:6}  {why}" for why, count in self.not_built.most_common()]
        if self.forced is not None:
            lines.append(str(self.forced))
        return "\n".join(lines)


def run_example(
    seed: int,
    report: Report,
    steps: int,
    primitives: list[str] | None,
    llvm: bool,
    families: Sequence[str] = CHAIN,
    shares: Shares = Shares(),
) -> None:
    """Test one program and one schedule of it; any failure is raised.

    ``families`` take turns: the random chains, kernels of :mod:`tests.fuzz.kernel_programs`, stage schedules.
    """
    from codegen.build import build

    family, program, start = _drawn(seed, report, families, shares)

    def refused(sch: Any, attempt: Attempt) -> None:
        if report.forced is not None and attempt.refusal is not None and attempt.refusal.witness:
            example = f"seed {seed} ({family}): {attempt}"
            report.forced.add(attempt.name, is_confirmed(sch, attempt), example, attempt.refusal.rule)

    sch, attempts = random_schedule(start, seed + 1, steps, primitives, refused)
    _count(report, attempts, seed, shares)

    def check(program: PrimFunc | IRModule, sch: Any) -> None:
        assert_roundtrip(sch.mod)
        names = {step.name for step in sch.trace.insts}
        compiled = build(sch.mod, "llvm") if llvm and "bind" not in names else None
        for name, inputs in call_inputs(program, family, seed, names):
            expected = reference(IRModule.of(program), inputs, name)
            calls: dict[str, Callable[..., Any]] = {"interpreter": partial(interp_run, sch.mod, func=name)}
            if compiled is not None:
                calls["llvm"] = at_page_ends(compiled[name], random.Random(seed).getrandbits(16))
            for engine, call in calls.items():
                assert_same_call(program, call, inputs, engine, func=name, expected=expected)
        report.compiled += compiled is not None
        if shares.has_replay(seed):
            _check_history(sch)

    _checked(check, program, sch)


def run_gpu_example(
    seed: int, report: Report, steps: int, families: Sequence[str] = EVERY, shares: Shares = Shares()
) -> None:
    """Test one program and one GPU schedule of it, lowered and run by the simulator; any failure is raised.

    A schedule that lowering refuses is counted with the reason, and goes on with memory that more threads share: limits of
    the GPU (threads, shared memory, memory that two kernels would share) are not checked at each step.
    """
    from codegen.build import build

    family, program, start = _drawn(seed, report, families, shares)
    sch, attempts = random_gpu_schedule(start, seed + 1, steps)
    _count(report, attempts, seed, shares)
    kernels = lru_cache(1)(lambda mod: build(mod, target="cuda-sim"))
    sch = _with_memory_that_fits(sch, kernels, report)

    def check(program: PrimFunc | IRModule, sch: Any) -> None:
        if shares.has_replay(seed):
            _check_history(sch)
        try:
            built = kernels(sch.mod)
        except BuildError as refusal:
            report.not_built[without_names(str(refusal))] += 1
            return
        report.compiled += 1
        for name, inputs in call_inputs(program, family, seed, {step.name for step in sch.trace.insts}):
            for order in ("forward", "random"):
                built.order, built.seed = order, seed
                assert_same_call(program, built[name], inputs, f"cuda-sim, {order}", func=name)
        if shares.is_executed(seed):
            check_compiled(program, family, seed, sch, built.lowered, report)

    _checked(check, program, sch)


def check_compiled(
    program: PrimFunc | IRModule, family: str, seed: int, sch: Any, lowered: IRModule, report: Report
) -> None:
    """NVRTC's PTX of lowered kernels gives what the program gives, in several orders of threads."""
    from codegen.ptx.module import PTXModule
    from codegen.ptx.multiprocessor import ORDERS

    try:
        built = PTXModule(sch.mod, Target("cuda-ptx", arch="sm_80"), lowered)
    except BuildError as refusal:
        if str(refusal).startswith("NVRTC does not accept"):
            raise
        report.not_built[f"as CUDA C: {without_names(str(refusal))}"] += 1
        return
    report.executed += 1
    for name, inputs in call_inputs(program, family, seed, {step.name for step in sch.trace.insts}):
        for order in ORDERS:
            built.order = order
            assert_same_call(program, built[name], inputs, f"cuda-ptx, {order}", func=name)


def _with_memory_that_fits(sch: Schedule, kernels: Callable[[IRModule], Any], report: Report) -> Schedule:
    """The schedule, or what it becomes with wider memory, and wider again, if lowering refuses it."""
    for _ in range(2):
        try:
            kernels(sch.mod)
            break
        except BuildError as refusal:
            report.not_built[without_names(str(refusal))] += 1
            sch = wider(sch)
        except Exception:
            break  # a failure, which the check finds too
    return sch


def _drawn(
    seed: int, report: Report, families: Sequence[str], shares: Shares
) -> tuple[str, PrimFunc | IRModule, Schedule]:
    """The family and the program of a seed, and the schedule to begin with; counts them in ``report``."""
    family = families[seed % len(families)]
    if family == STAGES:
        program, start = stages(SeededChoice(seed))
    else:
        program = random_program(seed) if family == "chain" else family_program(family, SeededChoice(seed))
        start = started(program)
    report.programs += 1
    report.families[family] += 1
    report.classes.update(classes_of(program))
    if shares.has_text(seed, 0):
        assert_roundtrip(program)
    return family, program, start


def _count(report: Report, attempts: list[Attempt], seed: int, shares: Shares) -> None:
    for number, attempt in enumerate(attempts, 1):
        (report.accepted if attempt.accepted else report.refused)[attempt.name] += 1
        if attempt.refusal is not None:
            _check_refusal(attempt, attempt.refusal, shares.has_text(seed, number))


def _check_refusal(attempt: Attempt, refusal: ScheduleError, in_full: bool) -> None:
    """Check that a refusal says why; ``in_full``: and what would be legal, which takes longer than the steps to find."""
    if not (str(refusal) if in_full else refusal.rule).strip():
        raise AssertionError(f"{attempt} was refused without a word")


class FailedExample(AssertionError):
    """A check that failed, with the program and the trace that it failed on."""

    def __init__(self, check: Callable[..., None], program: PrimFunc | IRModule, sch: Any, error: Exception):
        self.check, self.program, self.trace = check, program, sch.trace
        programs = f"program:\n{program.script()}\nscheduled:\n{sch.mod.script()}"
        super().__init__(f"after\n{self.trace.as_python()}\n{type(error).__name__}: {error}\n\n{programs}")

    def reduced(self, seconds: float = 60.0) -> Case:
        """The smallest case found that fails the same way."""
        return reduce_case(self.program, self.check, self.trace, seconds=seconds)


def _checked(check: Callable[..., None], program: PrimFunc | IRModule, sch: Any) -> None:
    """Run a check; what it raises is told with the program and the steps."""
    try:
        check(program, sch)
    except Exception as error:
        raise FailedExample(check, program, sch, error) from error


def call_inputs(
    program: PrimFunc | IRModule, family: str, seed: int, steps: Collection[str]
) -> Iterator[tuple[str, list[Any]]]:
    """Arguments for each function: random ones, and random ones with each symbolic size zero.

    The latter are left out where the program does not run with them, and after ``decompose_reduction``, which sets the
    result of an empty reduction to its init. Stage schedules always do that, but where they share a reduction among threads:
    its init is in the loops then, which do not run.
    """
    keeps = "bind" not in steps if family == STAGES else "decompose_reduction" not in steps
    for name, func in IRModule.of(program).items():
        for sizes in ({}, *({size: 0} for size in symbolic_sizes(func) if keeps)):
            inputs = random_inputs(func, seed, sizes)
            if not sizes or _runs(program, name, inputs):
                yield name, [_distinct(a, seed) for a in inputs] if _selects(func) else inputs
            if not func.attrs.get("tir.noalias", True):
                yield name, _in_one_memory(inputs, seed)


def _in_one_memory(inputs: list[Any], seed: int) -> list[Any]:
    """The arrays of ``inputs``, which are rows of one type, as parts of one array that overlap."""
    arrays = [a for a in inputs if isinstance(a, np.ndarray)]
    memory = np.resize(np.concatenate(arrays), max(map(len, arrays)) + 3)
    starts = np.random.default_rng(seed).integers(0, 4, len(inputs))
    return [memory[s : s + len(a)] if isinstance(a, np.ndarray) else a for s, a in zip(starts, inputs)]


def _runs(program: PrimFunc | IRModule, name: str, inputs: list[Any]) -> bool:
    """Whether a function accepts arguments: an index modulo a size has no value where that is zero."""
    try:
        interp_run(program, *map(copied, inputs), func=name)
    except RunError:
        return False
    return True


def _check_history(sch: Any) -> None:
    """Check that the trace and its text give the same program, and undo and redo the same object."""
    assert_structural_equal(sch.trace.replay(sch.history[0].mod).mod, sch.mod)
    again = Schedule(sch.history[0].mod)
    apply_text(str(sch.trace), again)
    assert_structural_equal(again.mod, sch.mod)
    final = sch.mod
    if len(sch.history) > 1:
        sch.undo()
        sch.redo()
        if sch.mod is not final:
            raise AssertionError("undo and redo gave another object")


def _selects(func: PrimFunc) -> bool:
    """Whether some block of ``func`` is an arg-max or the like."""
    found = (Reduction.of(n) for n in walk(func) if isinstance(n, Block))
    return any(isinstance(each, Reduction) and each.selects for each in found)


def _distinct(array: Any, seed: int) -> Any:
    """Floats that are pairwise distinct: which of equal candidates an arg-max selects is unspecified."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        return array
    return np.random.default_rng(seed).permutation(array.size).reshape(array.shape).astype(array.dtype)


def run(
    examples: int,
    seed: int = 0,
    *,
    steps: int = 6,
    primitives: list[str] | None = None,
    llvm_every: int = 10,
    seconds: float | None = None,
    log: bool = True,
    families: Sequence[str] = CHAIN,
    force: bool = False,
    gpu: bool = False,
    reduce: bool = False,
    shares: Shares = Shares(),
) -> Report:
    """Run ``examples`` seeds from ``seed`` on (stopping early after ``seconds``); returns the counts.

    Whatever an example raises is a finding: it is counted with its seed, and the run goes on. ``reduce``: the smallest case
    that fails the same way is looked for, and printed.

    ``force``: count as well how many refusals with a witness are confirmed by a run. ``gpu``: GPU schedules, run by the
    simulator. ``shares``: how many of the texts and the replays are checked.
    """
    report = Report(forced=Confirmations() if force else None)

    def example(number: int) -> None:
        if gpu:
            run_gpu_example(number, report, steps, families, shares)
        else:
            compiled = llvm_every > 0 and number % llvm_every == 0
            run_example(number, report, steps, primitives, compiled, families, shares)

    report.failures += run_each(example, examples, seed, seconds=seconds, log=log, reduce=reduce)
    return report


def run_each(
    example: Callable[[int], None],
    examples: int,
    seed: int,
    *,
    seconds: float | None = None,
    log: bool = True,
    reduce: bool = False,
) -> list[int]:
    """Call ``example`` with ``examples`` seeds from ``seed`` on, as long as there is time; returns those that failed."""
    failures: list[int] = []
    begin = time.monotonic()
    for number in track(range(seed, seed + examples), "fuzz", examples):
        try:
            named_in_faults(f"seed {number}", partial(example, number))
        except Exception as error:
            failures.append(number)
            if log:
                print(f"seed {number} failed:\n{traceback.format_exc()}", flush=True)
            if reduce and isinstance(error, FailedExample):
                print(f"seed {number}, reduced:\n{error.reduced()}", flush=True)
        if log and (number - seed + 1) % 500 == 0:
            print(f"{number - seed + 1} examples, {time.monotonic() - begin:.0f} s, failures {len(failures)}")
        if seconds is not None and time.monotonic() - begin > seconds:
            break
    return failures


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.steps", description=__doc__)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6, help="primitives tried on each program")
    parser.add_argument("--llvm-every", type=int, default=10, help="compile every n-th example; 0: none")
    parser.add_argument("--seconds", type=float, default=None, help="stop after this time")
    parser.add_argument("--blocks", action="store_true", help="try the block family too")
    parser.add_argument("--all", action="store_true", help="every primitive, and whole kernels as well as chains")
    parser.add_argument("--family", choices=EVERY, metavar="NAME", help="programs of one family only")
    parser.add_argument("--gpu", action="store_true", help="GPU schedules, run by the simulator")
    parser.add_argument("--force", action="store_true", help="force refused steps, and count how often it matters")
    parser.add_argument("--reduce", action="store_true", help="look for the smallest case of each failure")
    parser.add_argument("--texts", type=float, default=Shares.texts, help="share of texts checked, 0 to 1")
    parser.add_argument("--replays", type=float, default=Shares.replays, help="share of histories checked, 0 to 1")
    parser.add_argument("--executed", type=float, default=Shares.executed, help="share of GPU kernels executed as PTX")
    options = parser.parse_args(argv)
    primitives = [*LOOP_PRIMITIVES, *BLOCK_PRIMITIVES] if options.blocks else None
    primitives = every_primitive() if options.all else primitives
    families = (options.family,) if options.family else EVERY if options.all else CHAIN
    report = run(
        options.examples,
        options.seed,
        steps=options.steps,
        primitives=primitives,
        llvm_every=options.llvm_every,
        seconds=options.seconds,
        families=families,
        force=options.force,
        gpu=options.gpu,
        reduce=options.reduce,
        shares=Shares(options.texts, options.replays, options.executed),
    )
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
