"""Random programs under random GPU schedules: the simulator gives what the program means, in any order of threads, and
has nothing to report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tir
from tir import testing
from tir.errors import BuildError, ScheduleError
from tir.testing.decisions import SeededChoice
from tir.testing.kernel_programs import family_program
from tir.visit import walk

THREADS = (2, 4, 8, 32)


class Steps:
    """Applies steps that may be refused, and remembers those that were not."""

    def __init__(self, sch: Any, seed: int):
        self.sch = sch
        self.choice = SeededChoice(seed)
        self.taken: list[str] = []

    def attempt(self, name: str, *args: Any) -> Any:
        try:
            result = getattr(self.sch, name)(*args)
        except ScheduleError:
            return None
        self.taken.append(f"{name}{args!r}")
        return result if result is not None else True

    def blocks(self) -> list[str]:
        func = next(iter(self.sch.mod.functions.values()))
        return [n.name for n in walk(func.body) if isinstance(n, tir.Block) and n.name != "root"]

    def loops(self, block: str) -> list[Any]:
        return list(self.sch.get_loops(self.sch.get_block(block)))

    def bound(self, block: str) -> set[str]:
        return {self.sch.get(loop).thread for loop in self.loops(block)} - {""}

    def threads(self, block: str) -> None:
        """Bind loops around a block to blocks and threads, as far as that is legal."""
        loops = self.loops(block)
        outer = loops[0] if loops else None
        if len(loops) > 1 and self.choice.pick((True, False)):
            outer = self.attempt("fuse", *loops[:2]) or outer
        if outer is not None:
            parts = self.attempt("split", outer, [None, self.choice.pick(THREADS)])
            if parts:
                self.attempt("bind", parts[0], "blockIdx.x")
                self.attempt("bind", parts[1], self.choice.pick(("threadIdx.x", "threadIdx.y")))
        loops = self.loops(block)
        if loops and self.choice.pick((True, False)):
            axes = {"threadIdx.x", "threadIdx.y"} - self.bound(block)
            inner = self.attempt("split", loops[-1], [None, self.choice.pick(THREADS)])
            if inner and axes:
                self.attempt("bind", inner[1], sorted(axes)[0])

    def both(self, copy: Any, place: str, at: Any) -> Any:
        """``copy()`` made and moved to ``at``, or neither: memory of kernels must not span two of them."""
        before, taken = self.sch.copy(), list(self.taken)
        made = copy()
        if made and self.attempt(place, made, at):
            return made
        self.sch, self.taken = before, taken
        return None

    def caches(self, block: str) -> None:
        """Copies of what a block reads in shared memory, of what it writes in registers."""
        bound = [x for x in self.loops(block) if self.sch.get(x).thread]
        if not bound:
            return
        if self.choice.pick((True, False)):
            at = self.choice.pick((bound[-1], bound[-1], *bound))
            self.both(lambda: self.attempt("cache_write", block, 0, "local"), "reverse_compute_at", at)
        for read in range(self.choice.number(0, 2)):
            places = self.loops(block)
            inside = places[[self.sch.get(x).thread != "" for x in places].index(True) :]
            at = self.choice.pick(inside)
            copy = self.both(lambda read=read: self.attempt("cache_read", block, read, "shared"), "compute_at", at)
            own = self.sch.get_loops(copy)[places.index(at) + 1 :] if copy else []
            if own:
                inner = self.attempt("split", own[-1], [None, self.choice.pick(THREADS)])
                if inner:
                    self.attempt("bind", inner[1], "threadIdx.x")

    def rest(self, block: str) -> None:
        """A block that nothing runs yet gets a thread of its own."""
        if not self.bound(block):
            unit = self.attempt("add_unit_loop", self.loops(block)[0] if self.loops(block) else block)
            if unit:
                self.attempt("bind", unit, "threadIdx.x")


def scheduled(func: tir.PrimFunc, seed: int) -> Steps:
    steps = Steps(tir.Schedule(func), seed)
    names = steps.blocks()
    consumer = steps.choice.pick((True, False))
    for block in names:
        steps.threads(block)
    for block in names:
        steps.caches(block)
    if consumer and len(names) > 1:
        loops = steps.loops(names[-1])
        if loops and steps.attempt("compute_at", names[-2], steps.choice.pick(loops)):
            steps.attempt("set_scope", names[-2], 0, steps.choice.pick(("shared", "local")))
    for block in steps.blocks():
        steps.rest(block)
    return steps


def run_one(func: tir.PrimFunc, seed: int) -> bool:
    """Whether the schedule could be lowered; then it has been run in three orders."""
    steps = scheduled(func, seed)
    try:
        module = tir.build(steps.sch.mod, target="cuda-sim")
    except BuildError:
        return False
    inputs = testing.random_inputs(func, seed=seed)
    want = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
    tir.interp.run(func, *want)
    for order in ("forward", "reverse", "random"):
        module.order, module.seed = order, seed
        args = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
        told = "\n".join(
            [f"seed {seed}, {order}", *steps.taken, str(func), str(steps.sch.mod), module.source("lowered")]
        )
        try:
            module(*args)
        except tir.RunError as error:
            raise AssertionError(f"{error}\n{told}") from error
        for got, expected in zip(args, want):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=told)
    return True


@pytest.mark.parametrize("family", ["matmul", "conv2d", "stencil", "softmax", "layer_norm", "gather"])
def test_families(family: str):
    assert sum(run_one(family_program(family, seed), seed) for seed in range(3)) >= 1


def test_random_programs():
    done = sum(run_one(testing.random_program(seed), seed) for seed in range(24))
    assert done >= 12
