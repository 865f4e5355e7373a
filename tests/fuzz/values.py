"""Random functions with types, judged by NumPy: ``python -m tests.fuzz.values --examples 1000 --seed 1``, or, with
``--family straight``, straight code.

Each runs unscheduled: on the reference executor, as LLVM for the three levels of x86-64 (those that this CPU has) and as NVRTC's
PTX, on arrays beside pages that may not be touched. All must equal NumPy, element by element. A failure is printed with its seed
(``--examples 1 --seed N`` runs it again), its program, reduced where the executor is right, and the first elements that differ. The
processor time of each judge ends the report.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

import tir
from tests.fuzz.straight_programs import straight_program
from tests.fuzz.typed_programs import TypedProgram, typed_program
from tests.page_ends import at_page_ends
from tir.function import IRModule
from tir.script import parse
from tir.testing.oracle import assert_same_call
from tir.testing.reduce import reduce_case

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
CPU = ("interpreter", *(f"llvm -mcpu={level}" for level in LEVELS))
PTX = "cuda-ptx"
FAMILIES = {"typed": (typed_program, 20), "straight": (straight_program, 1)}  # and programs built as one module


def differences(programs: Sequence[TypedProgram], target: str) -> dict[TypedProgram, str]:
    """The programs that compute something else on the target, with what they compute.

    They are built as one module, since a compiler takes longer to start than to compile one of them. If that raises, each half is
    judged by itself, down to the programs that do not build or do not run.
    """
    try:
        return _differences_of_module(programs, target)
    except Exception as error:  # of any class: a defect of the product is what is looked for
        if len(programs) == 1:
            return {programs[0]: f"{type(error).__name__}: {error}"}
        half = len(programs) // 2
        return differences(programs[:half], target) | differences(programs[half:], target)


def _differences_of_module(programs: Sequence[TypedProgram], target: str) -> dict[TypedProgram, str]:
    names = [f"f{p.seed}" for p in programs]
    funcs = {
        name: parse(p.source(name, threads=target == PTX)).with_attr("global_symbol", name)
        for name, p in zip(names, programs)
    }
    module = tir.build(IRModule(funcs), target)
    found = {}
    for name, program in zip(names, programs):
        after = program.before.copy()
        at_page_ends(module[name], program.seed)(*program.params.values(), after)
        wrong = np.flatnonzero(~equal(after, program.expected))
        if len(wrong):
            at = wrong[:4]
            found[program] = (
                f"{len(wrong)} of {len(after)} differ, O[{at}] is {after[at]}, NumPy: {program.expected[at]}"
            )
    return found


def equal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x == y) | ((x != x) & (y != y))


def has_level(target: str) -> bool:
    """Whether this CPU runs code of the target."""
    one = "@T.prim_func\ndef f(A: T.Buffer((1,), 'int32')):\n    A[0] = 1\n"
    try:
        tir.build(parse(one), target)(np.zeros(1, "int32"))
    except tir.RunError as error:
        if "this CPU" not in str(error):
            raise
        return False
    return True


def reduced(program: TypedProgram, target: str) -> str:
    """The smallest program found that the target computes otherwise than the executor; the program, if it does not."""
    source = program.source("f", threads=target == PTX)

    def check(func: tir.PrimFunc) -> None:
        inputs = [*(program.params[b.name] for b in list(func.buffer_map.values())[:-1]), program.before]
        with np.errstate(all="ignore"):
            assert_same_call(func, tir.build(func, target), inputs, target)

    try:
        return str(reduce_case(parse(source), check, seconds=20))
    except (ValueError, tir.ParseError):
        return source


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, default="typed")
    parser.add_argument(
        "--batch",
        type=int,
        help="programs built as one module; what a module is compiled without is decided by all of them",
    )
    parser.add_argument("--largest", type=int, default=1000, help="iterations of the longest loop")
    options = parser.parse_args()
    draw, batch = FAMILIES[options.family]
    batch = options.batch or batch
    targets = [*(t for t in CPU if not t.startswith("llvm") or has_level(t)), PTX]
    judged, seconds, failed = Counter(), Counter(), set()
    end = options.seed + options.examples
    for start in range(options.seed, end, batch):
        programs = [draw(s, largest=options.largest) for s in range(start, min(end, start + batch))]
        for target in targets:
            began = time.process_time()
            found = differences(programs, target)
            judged[target] += len(programs)
            seconds[target] += time.process_time() - began
            for program, what in found.items():
                failed.add(program.seed)
                print(f"seed {program.seed}, {target}: {what}\n{reduced(program, target)}\n", flush=True)
    print(f"programs judged by NumPy: {dict(judged)}; {len(failed)} failed: {sorted(failed)}")
    print(f"processor time in seconds: { {target: round(s) for target, s in seconds.items()} }")
    return bool(failed)


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
