"""Checks of the exercises in this folder: ``check(answer, program, wants…)`` judges an answer and shows what it made.

An answer is a function that takes steps on a schedule, or a program. Each *want* is a property that is computed or
counted: results by the reference executor or the simulator against NumPy, bytes by the footprint, sectors and bank
conflicts by the simulator. No want is a time.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import tir
from tir import testing
from tir.cost import Machine

# the core that counts are made for, so that they are the same on every machine
TARGET = "llvm -l1_bytes=49152 -l2_bytes=1048576 -l3_bytes=16777216 -vector_width=512"
YES, NO = "\N{HEAVY CHECK MARK}", "\N{HEAVY BALLOT X}"


@dataclass
class Answer:
    """What was made: a program, and the schedule that made it (without steps, if the answer is a program)."""

    sch: tir.Schedule
    program: tir.PrimFunc

    @property
    def is_kernel(self) -> bool:
        return any("Idx" in row.kind for row in self.sch.loop_tree().rows)

    @cached_property
    def launches(self) -> Any:
        """The simulator's reports of a run on random arguments."""
        module = tir.build(self.sch.mod, "cuda-sim")
        module(*testing.random_inputs(self.program))
        return module.last_report


@dataclass(frozen=True)
class Want:
    """A property of an answer: what is asked, and a judge that returns what is wrong, or an empty text."""

    asked: str
    judge: Callable[[Answer], str]


@dataclass
class Verdict:
    """The findings on an answer, in order, each with what was asked and what is wrong, and a picture of what was made.

    True if all is right. Prints as text; in a notebook it is shown as HTML.
    """

    name: str
    findings: list[tuple[str, str]] = field(default_factory=list)
    picture: Any = None

    def __bool__(self) -> bool:
        return not any(wrong for _, wrong in self.findings)

    def lines(self) -> list[str]:
        return [f"{NO} {': '.join(filter(None, pair))}" if pair[1] else f"{YES} {pair[0]}" for pair in self.findings]

    @property
    def head(self) -> str:
        return f"{self.name}: {'solved' if self else 'not yet'}"

    def __repr__(self) -> str:
        shown = [] if self.picture is None else [str(self.picture)]
        return "\n".join([self.head, *self.lines(), *shown])

    def _repr_html_(self) -> str:
        items = "".join(
            f'<pre style="white-space:pre-wrap;margin:0">{html.escape(line)}</pre>' for line in self.lines()
        )
        shown = getattr(self.picture, "_repr_html_", None)
        made = "" if self.picture is None else shown() if shown else f"<pre>{html.escape(str(self.picture))}</pre>"
        return f"<div><b>{html.escape(self.head)}</b>{items}{made}</div>"


def check(
    answer: Any,
    program: tir.PrimFunc | None = None,
    *wants: Want,
    target: str = TARGET,
    picture: Callable[[tir.Schedule], Any] | None = None,
) -> Verdict:
    """Judge an answer: a function that takes steps on ``tir.Schedule(program, target)``, or returns another schedule of it;
    without ``program``, a program, or a function that returns one.

    ``picture`` makes the picture from the schedule; the default is its loop tree. An error of the answer is a finding.
    """
    verdict = Verdict(getattr(answer, "name", None) or getattr(answer, "__name__", "exercise"))
    try:
        made = _made(answer, program, target)
    except Unsolved as reason:
        verdict.findings.append(("", str(reason)))
        return verdict
    except Exception as error:  # whatever a learner's code raises is what is wrong with it
        verdict.findings.append(("the steps are legal", _told(error)))
        return verdict
    for want in [SAME_RESULT, *wants] if program is not None else wants:
        verdict.findings.append((want.asked, _judged(want, made)))
    verdict.picture = _drawn(made.sch, picture)
    return verdict


def _drawn(sch: tir.Schedule, picture: Callable[[tir.Schedule], Any] | None) -> Any:
    try:
        return picture(sch) if picture else sch.loop_tree()
    except (tir.TirError, ValueError):  # what the picture is about is not there yet
        return sch.loop_tree()


def check_test(
    holds: Callable[[int], Any], seeds: Sequence[int], right: Callable[[], Any], faulty: dict[str, Callable[[], Any]]
) -> Verdict:
    """Judge a property test: after ``right()`` it holds for all seeds, and after each of ``faulty`` it fails for one."""
    verdict = Verdict(holds.__name__)
    right()
    failed = _first_failure(holds, seeds)
    verdict.findings.append(("it holds for the right primitive", "seed {}: {}".format(*failed) if failed else ""))
    for fault, plant in faulty.items():
        plant()
        failed = _first_failure(holds, seeds)
        missed = "" if failed else f"it holds for all {len(seeds)} seeds"
        verdict.findings.append((f"it finds a fault ({fault})", missed))
        if failed:
            verdict.picture = tir.Schedule(testing.random_program(failed[0])).loop_tree()
    right()
    return verdict


def _first_failure(holds: Callable[[int], Any], seeds: Sequence[int]) -> tuple[int, str] | None:
    for seed in seeds:
        try:
            holds(seed)
        except Exception as error:  # any error is a failure of the property
            return seed, _told(error)
    return None


class Unsolved(Exception):
    """There is nothing to judge yet."""


def _made(answer: Any, program: tir.PrimFunc | None, target: str) -> Answer:
    if program is not None:
        sch = tir.Schedule(program, target=target)
        value = answer(sch)
        sch = value if isinstance(value, tir.Schedule) else sch
        if len(sch.history) == 1:
            raise Unsolved("no step was taken; write steps in place of `...`")
        return Answer(sch, program)
    made = answer() if callable(answer) and not isinstance(answer, tir.PrimFunc) else answer
    if not isinstance(made, tir.PrimFunc):
        raise Unsolved(f"a program is wanted, not {'nothing' if made is None else type(made).__name__}")
    return Answer(tir.Schedule(made, target=target), made)


def _told(error: Exception) -> str:
    known = isinstance(error, (tir.TirError, AssertionError))
    return str(error) if known else f"{type(error).__name__}: {error}"


def _judged(want: Want, made: Answer) -> str:
    try:
        return want.judge(made)
    except Exception as error:
        return _told(error)


def _same(made: Answer) -> str:
    engine = "cuda-sim" if made.is_kernel else "interpreter"
    testing.assert_same_result(made.program, made.sch.mod, engines=[engine])
    return ""


SAME_RESULT = Want("the results are those of the program before", _same)


def computes(meaning: Callable[..., np.ndarray], words: str) -> Want:
    """The last parameter is what ``meaning`` makes of the others; the reference executor runs the program."""

    def judge(made: Answer) -> str:
        *given, out = testing.random_inputs(made.program)
        expected = meaning(*(x.astype("float64") for x in given))
        out[...] = np.nan
        tir.build(made.sch.mod, "interpreter")(*given, out)
        if np.isnan(out).any():
            place = np.argwhere(np.isnan(out))[0].tolist()
            return f"element {place} of the result was never written"
        wrong = np.argwhere(~np.isclose(out, expected, rtol=1e-4, atol=1e-4))
        if not len(wrong):
            return ""
        place = tuple(wrong[0].tolist())
        return f"{len(wrong)} of {out.size} elements are wrong: at {list(place)} is {out[place]:g}, not {expected[place]:g}"

    return Want(f"computes {words}", judge)


def marked(kind: str, least: int = 2, at: str | None = None) -> Want:
    """A loop (around block ``at``) is ``kind``: parallel, vectorized, unrolled, or bound to a thread axis."""

    def judge(made: Answer) -> str:
        rows = made.sch.loop_tree().rows
        if at is not None:
            last = next(n for n, row in enumerate(rows) if row.is_block and row.name == at)
            around = [
                row
                for n, row in enumerate(rows)
                if n < last and all(r.depth > row.depth for r in rows[n + 1 : last + 1])
            ]
            rows = tuple(around)
        loops = [row for row in rows if not row.is_block]
        found = [row for row in loops if kind in row.kind]
        if not found:
            return f"the loops are {', '.join(f'{row.name} ({row.kind})' for row in loops)}; none is {kind}"
        small = [row for row in found if row.extent.isdigit() and int(row.extent) < least]
        return f"{small[0].name} has {small[0].extent}" if small else ""

    size = f" with at least {least} iterations" if least > 2 else ""
    return Want(f"a loop{f' around `{at}`' if at else ''} is {kind}{size}", judge)


def traffic(level: str, at_most: float, why: str = "") -> Want:
    """The bytes loaded from a cache, by the footprint."""

    def judge(made: Answer) -> str:
        got = made.sch.footprint(Machine.of(TARGET)).traffic[level]
        return "" if got <= at_most else f"it is {_bytes(got)}. {why}".strip()

    return Want(f"at most {_bytes(at_most)} come from {level}", judge)


def lines(buffer: str, loop: int, at_most: int, why: str = "") -> Want:
    """The cache lines of a buffer that an iteration of the ``loop``-th loop touches, counting from outside (or from
    inside, below zero)."""

    def judge(made: Answer) -> str:
        block = made.sch.get_child_blocks(made.sch.get_block("root"))[-1]
        found = max(made.sch.access_picture(buffer, made.sch.get_loops(block)[loop]).lines)
        return "" if found <= at_most else f"it touches {found}. {why}".strip()

    return Want(f"an iteration of the {_place(loop)} loop touches at most {at_most} cache lines of {buffer}", judge)


def of_peak(share: float) -> Want:
    """The share of the peak of one core that the tuner's model expects: it counts arithmetic, loads, stores and bytes."""

    def judge(made: Answer) -> str:
        machine = Machine.of(TARGET)
        flops = made.sch.footprint(machine).flops
        found = tir.tune.predict(made.sch, tir.tune.Env.of(TARGET))
        got = flops / machine.peak / found.seconds
        limit = max(found.terms, key=lambda name: found.terms[name])
        return "" if got >= share else f"{got:.2f}; the longest part is `{limit}`"

    return Want(f"the model expects at least {share} of the peak", judge)


def nests(at_most: int) -> Want:
    """How many loops stand outermost."""

    def judge(made: Answer) -> str:
        names = [row.name for row in made.sch.loop_tree().rows if row.depth == 0]
        return "" if len(names) <= at_most else f"there are {len(names)}: {', '.join(names)}"

    return Want(f"at most {at_most} loop nest{'s' * (at_most > 1)}", judge)


def only_contiguous() -> Want:
    """The vectors of the compiled program are read and written at neighbouring addresses."""

    def judge(made: Answer) -> str:
        report = str(tir.build(made.sch.mod, TARGET).report)
        if "vectors of" not in report:
            return "no loop is vectorized"
        rows = [row.split("  ")[-1] for row in report.splitlines() if "strided" in row or "gather" in row]
        return f"the compiler reports {rows[0]}: lanes that lie apart" if rows else ""

    return Want("lanes of vectors are neighbours in memory", judge)


def without(text: str, words: str) -> Want:
    """The program does not contain ``text``."""

    def judge(made: Answer) -> str:
        found = [line.strip() for line in made.sch.mod.script().splitlines() if text in line]
        return f"there is `{found[0]}`" if found else ""

    return Want(words, judge)


def consecutive(buffer: str, loop: int) -> Want:
    """An iteration of the ``loop``-th loop of the last block touches elements that follow each other in memory."""

    def judge(made: Answer) -> str:
        last = made.sch.get_child_blocks(made.sch.get_block("root"))[-1]
        touched = made.sch.access_picture(buffer, made.sch.get_loops(last)[loop]).touched[0]
        span = int(touched.max() - touched.min()) + 1
        return "" if span == len(touched) else f"{len(touched)} elements lie in a span of {span}"

    return Want(f"an iteration of the {_place(loop)} loop reads consecutive elements of {buffer}", judge)


def _place(loop: int) -> str:
    ordinal = ("first", "second", "third", "fourth")[loop if loop >= 0 else -loop - 1]
    return {0: "outermost", -1: "innermost"}.get(loop, f"{ordinal}{'' if loop > 0 else ' innermost'}")


def counts(what: str, at_most: int, buffer: str = "", why: str = "") -> Want:
    """What the simulator counts: ``sectors`` of global memory, ``conflicts`` of banks, ``passes`` or ``requests``;
    of all accesses, or of those to ``buffer``."""

    def judge(made: Answer) -> str:
        accesses = [t for report in made.launches for t in report.accesses if buffer in ("", t.site.buffer)]
        got = sum(getattr(t, what) for t in accesses)
        return "" if got <= at_most else f"the simulator counts {got}. {why}".strip()

    return Want(f"at most {at_most} {_WORDS[what]}{f' for {buffer}' if buffer else ''}", judge)


_WORDS = {
    "sectors": "sectors of 32 bytes of global memory",
    "conflicts": "bank conflicts",
    "passes": "passes over the banks",
    "requests": "requests of warps",
}


def source_has(text: str, target: str, what: str) -> Want:
    """The generated source contains ``text``."""

    def judge(made: Answer) -> str:
        return "" if text in tir.build(made.sch.mod, target).source("cuda") else f"`{text}` is not in the source"

    return Want(what, judge)


def that(asked: str, judge: Callable[[Answer], str]) -> Want:
    """A want of one exercise."""
    return Want(asked, judge)


def gpu_picture(sch: tir.Schedule) -> Any:
    """What the simulator counts in a run."""
    module = tir.build(sch.mod, "cuda-sim")
    func: Any = sch.mod[sch.func_working_on]
    module(*testing.random_inputs(func))
    return module.last_report


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"
