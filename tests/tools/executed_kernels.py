"""Programs compiled by NVRTC for a GPU, executed as PTX in several orders of their warps, and judged:
``python -m tests.tools.executed_kernels [GROUP or NAME…] [--orders reverse threads] [--record FILE]``.

The groups: ``operators`` (every case of every operator) and ``library`` (the programs of ``tir.library``), both by their
default GPU schedules, and ``examples``. Prints what is wrong or does not compile and a table, a row for each group; exits
with 1 on any failure. With ``--record`` results are kept in a file, and what is right there is not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tir
from codegen.ptx.multiprocessor import ORDERS
from tests.gpu_examples import NAMES, arguments, is_near, load
from tir import library, ops
from tir.display import text_table
from tir.errors import TirError
from tir.interp import run
from tir.library.conv import Layer
from tir.ops.check import Judged
from tir.ops.registry import find
from tir.progress import track
from tir.testing import random_inputs

_HEAD = ("group", "programs", "right", "launches", "instructions", "forms")
LIBRARY: dict[str, Callable[[], tir.PrimFunc]] = {
    "attention": lambda: library.attention.attention(16, 32, 8),
    "batched_gemm": lambda: library.gemm.batched_gemm(2, 12, 64, 16),
    "blur": lambda: library.elementwise.blur(20, 32),
    "column_sum": lambda: library.rows.column_sum(40, 24),
    "conv2d_nchw": lambda: library.conv.conv2d_nchw(Layer(1, 8, 4, 16, 3)),
    "conv2d_nhwc": lambda: library.conv.conv2d_nhwc(Layer(1, 8, 4, 16, 3)),
    "depthwise_nhwc": lambda: library.conv.depthwise_nhwc(Layer(1, 8, 4, 4, 3)),
    "dot_gemm": lambda: library.gemm.dot_gemm(16, 32, 16),
    "gelu_chain": lambda: library.elementwise.gelu_chain(300),
    "gemm": lambda: library.gemm.gemm(48, 64, 32),
    "gemv": lambda: library.gemm.gemv(24, 96),
    "layer_norm": lambda: library.rows.layer_norm(10, 48),
    "row_sum": lambda: library.rows.row_sum(10, 48),
    "scale_add": lambda: library.elementwise.scale_add(300),
    "softmax": lambda: library.rows.softmax(10, 48),
    "transpose": lambda: library.elementwise.transpose(40, 24),
}


@dataclass(frozen=True)
class Program:
    """``build``: the module, of one function; ``judge`` runs a function and raises what is wrong with its results."""

    title: str
    build: Callable[[], Any]
    judge: Callable[[Any], None]


@dataclass
class Result:
    """What executing a program in the first order came to. ``wrong``: the error, or empty."""

    wrong: str
    launches: int
    executed: dict[str, int]


def operators(names: list[str]) -> Iterator[Program]:
    for name in names:
        operator = find(name)
        for n, case in enumerate(operator.cases):
            judged = Judged(operator, case, 0, f"case{n}")
            yield Program(f"{name}, case {n}", lambda j=judged: _default(j.func), judged)


def programs_of_the_library(names: list[str]) -> Iterator[Program]:
    for name in names:
        func = LIBRARY[name]()
        yield Program(f"library: {name}", lambda f=func: _default(f), lambda run_, f=func: _as_executor(f, run_))


def examples(names: list[str]) -> Iterator[Program]:
    for name in names:
        yield Program(f"example: {name}", lambda n=name: example_module(n), lambda run_, n=name: judge_example(n, run_))


GROUPS: dict[str, tuple[Callable[[], list[str]], Callable[[list[str]], Iterator[Program]]]] = {
    "operators": (lambda: list(ops.operators()), operators),
    "library": (lambda: list(LIBRARY), programs_of_the_library),
    "examples": (lambda: NAMES, examples),
}


def _default(func: tir.PrimFunc) -> Any:
    return tir.build(tir.tune.default(func, "cuda").mod, "cuda-ptx -arch=sm_80")


def _as_executor(func: tir.PrimFunc, function: Any) -> None:
    """Compare all arrays with those that the reference executor leaves."""
    given, wanted = random_inputs(func, 1), random_inputs(func, 1)
    function(*given)
    run(func, *wanted)
    for a, b in zip(given, wanted):
        near = 1e-4 if a.dtype.kind == "f" else 0
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


def example_module(name: str) -> Any:
    """An example at its small size, for the architecture that it is written for."""
    _, sch = load(name).small()
    arch = sch.target.attrs.get("arch", "sm_80") if sch.target is not None else "sm_80"
    return tir.build(sch.mod, f"cuda-ptx -arch={arch}")


def judge_example(name: str, function: Any) -> None:
    example = load(name)
    *given, out = arguments(example, example.small()[0], 1)
    function(*given, out)
    is_near(example, out, given)


def executed(program: Program, orders: tuple[str, ...] = ORDERS) -> Result:
    """Compile a program, and run and judge it in each order."""
    launches: list[Any] = []
    counts = Counter[str]()
    try:
        module = program.build()
        (function,) = module.functions.values()
        for order in orders:
            module.order = order
            program.judge(function)
            if order == orders[0]:
                launches = list(module.simulated.launches)
    except (TirError, AssertionError) as error:
        return Result(f"{type(error).__name__}: {str(error).strip().splitlines()[0]}", 0, {})
    for launch in launches:
        counts.update(launch.executed)
    return Result("", len(launches), dict(counts))


def chosen(words: list[str]) -> dict[str, list[str]]:
    """The names of programs of each group, all of a group that is named; without words all of all groups."""
    known = {group: names() for group, (names, _) in GROUPS.items()}
    strange = [w for w in words if w not in known and not any(w in names for names in known.values())]
    if strange:
        raise SystemExit(f"no group and no program is named {strange[0]!r}; the groups are {', '.join(GROUPS)}")
    every = not words
    return {group: [n for n in names if every or group in words or n in words] for group, names in known.items()}


def table(found: dict[str, dict[str, Result]]) -> str:
    rows = []
    for group, results in found.items():
        right = [r for r in results.values() if not r.wrong]
        forms = {form for r in right for form in r.executed}
        instructions = sum(sum(r.executed.values()) for r in right)
        numbers = len(results), len(right), sum(r.launches for r in right), instructions, len(forms)
        rows.append((group, *(f"{n:,}" for n in numbers)))
    every = {form for results in found.values() for r in results.values() for form in r.executed}
    return f"{text_table(_HEAD, rows, (1, 2, 3, 4, 5))}\n{len(every)} forms in all"


class Record:
    """Results by group and title, kept in a file of a line for each; without one, of this run alone."""

    def __init__(self, path: Path | None):
        self.path = path
        self.found: dict[str, dict[str, Result]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                group, title, *rest = json.loads(line)
                self.found.setdefault(group, {})[title] = Result(*rest)

    def add(self, group: str, title: str, result: Result) -> None:
        self.found.setdefault(group, {})[title] = result
        if self.path is not None:
            with self.path.open("a") as file:
                print(json.dumps([group, title, result.wrong, result.launches, result.executed]), file=file)

    def has(self, group: str, title: str) -> bool:
        result = self.found.get(group, {}).get(title)
        return result is not None and not result.wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.executed_kernels", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="GROUP or NAME")
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    record, bad = Record(options.record), 0
    for group, names in chosen(options.words).items():
        for name in track(names, group):
            for program in GROUPS[group][1]([name]):
                if record.has(group, program.title):
                    continue
                result = executed(program, tuple(options.orders))
                record.add(group, program.title, result)
                if result.wrong:
                    bad += 1
                    print(f"{program.title}: {result.wrong}", flush=True)
    print(table(record.found))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
