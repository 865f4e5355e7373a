"""Default schedules beside what they should reach: how a case is measured, and the table of a section.

``python -m benchmarks.rules_cases [--only decode,rows] [--case words] [--assembly folder]``. One thread, processor time; the
kernel and what it is compared with take turns in one process, and *share* is the median, over pairs, of the other's time over ours.
The environment must not set ``OPENBLAS_CORETYPE``.
"""

from __future__ import annotations

import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # before NumPy is imported: it would take a kernel of another processor
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tir
from tir import te

from .arrays import aligned

TARGET = "llvm -num-cores=1"
ROUNDS, SECONDS = 31, 2.0  # pairs of a case: at least 5, and no more than these seconds allow
SECTIONS = {
    "rows": "rules_products",
    "decode": "rules_products",
    "bytes": "rules_products",
    "moves": "rules_moves",
    "windows": "rules_windows",
    "symbolic": "rules_symbolic",
}

Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """A program by its default schedule, and what its time is compared with.

    ``arrays`` makes inputs and, last, the ``results`` outputs, which ``expected`` makes of the inputs. ``beside`` makes, for the
    arrays, a call whose time over ours is the share, which ``must`` be reached; ``than`` names it.
    """

    name: str
    must: float
    func: tir.PrimFunc
    arrays: Callable[[], list[np.ndarray]]
    than: str
    beside: Callable[[list[np.ndarray]], Call | None]
    expected: Callable[..., Any] | None = None
    results: int = 1
    tolerance: float = 1e-4


@dataclass(frozen=True)
class Found:
    """Microseconds of ours and of the other, and the share."""

    ours: float
    other: float
    share: float


def scheduled(func: tir.PrimFunc) -> Any:
    """``func`` by its default schedule, as a function that runs on one thread."""
    return tir.build(tir.tune.default(func, TARGET).mod, TARGET)["main"]


def measured(case: Case) -> Found | None:
    """The case measured; None where what it is compared with is not installed. Raises ``AssertionError`` for a wrong result."""
    arrays = case.arrays()
    other = case.beside(arrays)
    if other is None:
        return None
    run = scheduled(case.func)
    run(*arrays)
    if case.expected is not None:
        check(case, arrays)
    return by_turns(lambda: run(*arrays), other)


def check(case: Case, arrays: Sequence[np.ndarray]) -> None:
    """Compare the outputs with what NumPy computes in float64."""
    assert case.expected is not None
    wanted = case.expected(*arrays[: -case.results])
    for got, want in zip(arrays[-case.results :], wanted if isinstance(wanted, (list, tuple)) else [wanted]):
        error = np.abs(got.astype("float64") - want).max() / max(1e-30, np.abs(want).max())
        assert error <= case.tolerance, f"{case.name} is wrong by {error}"


def by_turns(ours: Call, other: Call) -> Found:
    """The least times, and the median of the other's time over ours; each round has both, in either order."""
    pairs: list[tuple[float, float]] = []
    end = time.perf_counter() + SECONDS
    for call in (ours, other):
        call()
    repeat = max(1, int(2e-4 / max(_time(ours, 1), 1e-7)))
    for number in range(ROUNDS):
        if number % 2:
            second, first = _time(other, repeat), _time(ours, repeat)
        else:
            first, second = _time(ours, repeat), _time(other, repeat)
        pairs.append((first, second))
        if number >= 4 and time.perf_counter() > end:
            break
    share = statistics.median(b / a for a, b in pairs)
    return Found(min(a for a, _ in pairs) * 1e6, min(b for _, b in pairs) * 1e6, share)


def _time(call: Call, repeat: int) -> float:
    start = time.thread_time()
    for _ in range(repeat):
        call()
    return (time.thread_time() - start) / repeat


def copy_of(moved: int) -> Callable[[Any], Call]:
    """A copy that reads and writes ``moved`` bytes, half of them each."""

    def made(_: Any) -> Call:
        source, target = aligned((moved // 2,), "uint8"), aligned((moved // 2,), "uint8")
        source[:], target[:] = 1, 0
        return lambda: np.copyto(target, source)

    return made


def reading(size: int) -> Callable[[Any], Call]:
    """A sum of ``size`` bytes, which is bound by reading them."""

    def made(_: Any) -> Call:
        data, total = aligned((size // 4,), "float32"), np.zeros((), "float32")
        data[:] = 1
        run = _sum(size // 4)
        return lambda: run(data, total)

    return made


@cache
def _sum(count: int) -> Any:
    x, k = te.placeholder((count,), name="x"), te.reduce_axis((0, count), "k")
    return scheduled(te.create_prim_func([x, te.compute((), lambda: te.sum(x[k], axis=k), name="total")]))


def sections(only: Sequence[str]) -> Iterator[tuple[str, list[Case]]]:
    """The cases of each section."""
    for name, module in SECTIONS.items():
        if not only or name in only:
            yield name, list(getattr(importlib.import_module(f".{module}", __package__), name)())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help=f"sections, separated by commas: {', '.join(SECTIONS)}")
    options.add_argument("--case", default="", help="only cases whose name has this text")
    options.add_argument("--assembly", type=Path, help="a folder for the assembly of each case")
    args = options.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}\n")
    print("| section | case | ours, us | other, us | than | share | must |\n|---|---|---|---|---|---|---|")
    for section, cases in sections([s for s in args.only.split(",") if s]):
        for case in cases:
            if args.case in case.name:
                print(line(section, case), flush=True)
                if args.assembly:
                    write_assembly(args.assembly, case)


def line(section: str, case: Case) -> str:
    """A row of the table; a share below what it must be is marked."""
    found = measured(case)
    if found is None:
        return f"| {section} | {case.name} | – | – | {case.than} (not installed) | – | {case.must} |"
    short = "" if found.share >= case.must else " *"
    cells = (section, case.name, f"{found.ours:.1f}", f"{found.other:.1f}", case.than, f"{found.share:.2f}{short}")
    return f"| {' | '.join(cells)} | {case.must} |"


def write_assembly(folder: Path, case: Case) -> None:
    """Keep the assembly of a case in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = tir.build(tir.tune.default(case.func, TARGET).mod, TARGET).get_source("asm")
    (folder / f"{case.name.replace(' ', '_').replace('/', '_')}.s").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
