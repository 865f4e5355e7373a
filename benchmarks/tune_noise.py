"""Whether the tuner picks the fastest candidate while the machine has other work: ``python -m benchmarks.tune_noise``.

The candidates are one program whose cost is known: a chain of multiply-adds of so many steps, which no compiler shortens
and which ends in the same value after any number of them. They are measured as a search does: a batch, in random order, then
the best three once more. Prints how far the steps of the pick are from the fewest, for each run, with the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import random

import tir
from tir.function import IRModule
from tir.target import Target
from tir.tune.runner import Job, LocalRunner, Problem

CHAIN = """
@T.prim_func
def main(A: T.Buffer(({threads},), "float32"), B: T.Buffer(({threads},), "float32")):
    for t in T.parallel({threads}):
        for k in range({steps}):
            with T.block("B"):
                vt, vk = T.axis.remap("SR", [t, k])
                with T.init():
                    B[vt] = A[vt] * T.float32(0) + T.float32(2)
                B[vt] = B[vt] * T.float32(0.5) + T.float32(1)
"""
COSTS = (1.0, 1.02, 1.04, 1.07, 1.1, 1.2, 1.5, 2.0)  # times the fewest steps


def program(steps: int, threads: int) -> IRModule:
    return IRModule.of(tir.script.parse(CHAIN.format(steps=steps, threads=threads)))


def pick(runner: LocalRunner, problem: Problem, steps: int, threads: int, generator: random.Random) -> float:
    """The cost of the candidate that is found to be the fastest."""
    costs = generator.sample(COSTS, len(COSTS))
    jobs = [Job(n, program(int(steps * cost), threads)) for n, cost in enumerate(costs)]
    found = {m.number: m.seconds for m in runner.measure(problem, jobs) if m.ok}
    best = sorted(found, key=found.__getitem__)[:3]
    again = {m.number: m.seconds for m in runner.confirm(problem, [jobs[n] for n in best]) if m.ok}
    return costs[min(again or found, key=(again or found).__getitem__)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--steps", type=int, default=400_000, help="of the fastest candidate: about 1 ms")
    options.add_argument("--threads", type=int, default=1)
    args = options.parse_args()
    target = Target.of(f"llvm -num-cores={args.threads}")
    problem = Problem(program(1, args.threads), target, threads=args.threads)
    generator, near = random.Random(0), 0
    runner = LocalRunner()
    try:
        for number in range(args.runs):
            cost = pick(runner, problem, args.steps, args.threads, generator)
            near += cost <= 1.05
            print(f"run {number}: the pick costs {cost:.2f} of the best, load {os.getloadavg()[0]:.1f}", flush=True)
    finally:
        runner.close()
    print(f"{near} of {args.runs} picks within 5 % of the best, {args.threads} threads")


if __name__ == "__main__":
    main()
