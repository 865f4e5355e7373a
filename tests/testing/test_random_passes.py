"""Passes keep the meaning of random programs, in the order of the pipeline, in others, and run twice."""

from __future__ import annotations

import random

import pytest

import tir
from tir import transform
from tir.testing import assert_same_result, random_inputs, random_program, random_schedule

# passes that may stand anywhere once a program is flat: each is applied in random orders, repeatedly
FLAT = (
    "simplify", "narrow_datatype", "loop_partition", "unroll_loop", "storage_rewrite", "remove_no_op",
    "common_subexpr_elim", "compact_buffer_allocation", "convert_ssa", "canonicalize_loop", "skip_vectorize",
)  # fmt: skip
CPU = ("split", "fuse", "reorder", "parallel", "vectorize", "unroll", "compute_at", "cache_read", "cache_write")
SETTLED = ("storage_rewrite", "remove_no_op", "compact_buffer_allocation", "convert_ssa", "canonicalize_loop")


def flat_program(seed: int):
    """A random program, scheduled at random and lowered to loops over flat memory; and the program it came from."""
    func = random_program(seed)
    sch, _ = random_schedule(func, seed, 3, CPU)
    return func, tir.lower(sch.mod, upto="flatten_buffer")


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_passes_in_any_order_keep_the_meaning(first):
    changed = 0
    for seed in range(first, first + 50):
        func, program = flat_program(seed)
        r, steps = random.Random(seed), []
        for _ in range(r.randint(3, 7)):
            steps.append(r.choice(FLAT))
            made = transform.find(steps[-1])(program)
            changed += made is not program
            program = made
        try:
            assert_same_result(func, program, random_inputs(func, seed), engines=["interpreter"])
        except Exception as error:
            raise AssertionError(f"seed {seed}, passes {steps}: {error}") from error
    assert changed > 10


@pytest.mark.parametrize("name", SETTLED)
def test_a_pass_that_has_run_finds_nothing_more(name):
    step = transform.find(name)
    for seed in range(20):
        once = step(flat_program(seed)[1])
        tir.assert_structural_equal(step(once), once)
