"""What the tuner's rules make of programs that they were not written for: ``python -m benchmarks.rules [--only plain,square]``.

Section ``plain`` draws random programs (:mod:`benchmarks.random_plain`), section ``square`` chains on square arrays. Each is built as
it is and by ``tir.tune.default``, and both are timed by turns on one thread, the least of each; a program whose default takes
more than :data:`SLOWER` times as long is timed again before it counts. A row is printed for each of these, with the times that the model
expected, and for each program of which the space has one schedule, if ``--single`` asks for it; last, how many there are.
"""

from __future__ import annotations

import argparse
import functools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tir
from tir.function import IRModule
from tir.testing.oracle import random_inputs
from tir.tune.drawing import RuleSource
from tir.tune.space import Env, space_of

from .arrays import placed
from .plain import timed
from .random_plain import plain_program, square_program

TARGET = "llvm -num-cores=1"
SLOWER = 1.1
SECTIONS: dict[str, tuple[Callable[[int], tir.PrimFunc], int]] = {
    "plain": (plain_program, 300),
    "square": (square_program, 100),
}


@dataclass(frozen=True)
class Row:
    """Seconds of the program as it is and by default, measured and (0 without an answer) predicted, how many schedules its space has,
    and the processor seconds that the default took to make."""

    seed: int
    plain: float
    default: float
    expected: tuple[float, float]
    schedules: int
    taken: float

    @property
    def ratio(self) -> float:
        return self.default / self.plain

    def __str__(self) -> str:
        named = zip(("plain", "default"), (self.plain, self.default), self.expected)
        times = "  ".join(f"{name} {t * 1e6:9.1f} us (model {e * 1e6:9.1f})" for name, t, e in named)
        return f"{self.seed:4}  {times}  {self.ratio:6.2f} x  {self.schedules:5} schedules  {self.taken:.2f} s"


def judged(func: tir.PrimFunc, seed: int, begin: int = 0) -> Row:
    """Both programs, which must compute the same, by turns, on arrays that start ``begin`` bytes into a cache line."""
    env = Env.of(TARGET)
    start = time.process_time()
    sch = tir.tune.default(func, TARGET)
    taken = time.process_time() - start
    source = RuleSource(space_of(TARGET), IRModule.of(func))
    list(source.draw(random.Random(0), 1))
    guesses = [tir.tune.predict(p, env) for p in (func, sch)]
    expected = tuple(0.0 if g is None else g.seconds for g in guesses)
    same = sch.mod.script() == tir.Schedule(func).mod.script()
    plain, default = (1.0, 1.0) if same else _measured(func, sch, begin)
    return Row(seed, plain, default, (expected[0], expected[1]), source.considered, taken)


def _measured(func: tir.PrimFunc, sch: tir.Schedule, begin: int) -> tuple[float, float]:
    modules = [tir.build(m, target=TARGET) for m in (IRModule.of(func), sch.mod)]
    given = [[placed(a, begin) for a in random_inputs(func)] for _ in modules]
    for module, arrays in zip(modules, given):
        module(*arrays)
    for one, other in zip(*given):
        np.testing.assert_allclose(one.astype("float64"), other.astype("float64"), rtol=2e-2, atol=1e-2)
    calls = [functools.partial(module, *given[0]) for module in modules]
    for seconds in (0.02, 0.1, 0.3):
        plain, default = timed(calls, 1, seconds)
        if default < SLOWER * plain:
            break
    return plain, default


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help=f"of {', '.join(SECTIONS)}, separated by commas")
    options.add_argument("--count", type=int, help="programs of each section")
    options.add_argument("--seeds", default="", help="these programs only, separated by commas")
    options.add_argument(
        "--begin", type=int, default=0, help="bytes into a cache line at which arrays start (NumPy's: 16)"
    )
    options.add_argument("--single", action="store_true", help="also show programs of which the space has one schedule")
    args = options.parse_args()
    for name in [s for s in args.only.split(",") if s] or SECTIONS:
        make, count = SECTIONS[name]
        seeds = [int(s) for s in args.seeds.split(",") if s] or range(args.count or count)
        rows: list[Row] = []
        for seed in seeds:
            rows.append(judged(make(seed), seed, args.begin))
            if rows[-1].ratio >= SLOWER or args.seeds or (args.single and rows[-1].schedules == 1):
                print(rows[-1], flush=True)
        slow, single = sum(r.ratio >= SLOWER for r in rows), sum(r.schedules == 1 for r in rows)
        speed = np.exp(-np.mean(np.log([r.ratio for r in rows])))
        print(
            f"{name}: {len(rows)} programs, {slow} slower than {SLOWER} x the plain program, {single} with one schedule; "
            f"geometric mean of the speed over the plain program {speed:.2f}; {np.mean([r.taken for r in rows]):.2f} s each"
        )


if __name__ == "__main__":
    main()
