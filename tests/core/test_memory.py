"""What is done with a program leaves nothing of it behind."""

from __future__ import annotations

import gc
import weakref

import pytest

import tir
from tests.fuzz.steps import EVERY, Report, Shares, run_example, run_gpu_example
from tir import te
from tir.analysis.effects import effects
from tir.errors import refusal, require
from tir.node import Memo, Node, once

ALL = Shares(1, 1)


def left_by(work) -> list[Node]:
    """The nodes that are there only since ``work`` was done a second time."""
    work()  # what is made once: tables, registered intrinsics
    put_aside()  # what is there by now is not listed
    work()
    gc.collect()
    return [o for o in gc.get_objects() if isinstance(o, Node)]


def put_aside() -> None:
    """The collector goes through what is there by now once more, and never again: the collected tests are most of it."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("seed", range(3))
def test_random_schedules_that_are_refused_built_and_run_leave_no_node(seed):
    report = Report()
    assert left_by(lambda: run_example(seed, report, 8, None, True, EVERY, ALL)) == []


def test_a_gpu_schedule_on_the_simulator_leaves_no_node():
    assert left_by(lambda: run_gpu_example(3, Report(), 6, shares=ALL)) == []


def test_nodes_that_something_keeps_are_found():
    kept = []
    assert len(left_by(lambda: kept.append(tir.Var("x")))) == 1


def test_a_memo_is_freed_with_its_node_though_it_refers_to_it():
    memo: Memo[object] = Memo()

    def work():
        x = tir.Var("x")
        memo[x] = [x]

    assert left_by(work) == []


def test_a_memo_does_not_travel_with_a_copy_or_a_pickle():
    import copy
    import pickle

    memo: Memo[int] = Memo()
    x = tir.Var("x")
    memo[x] = 1
    assert memo.setdefault(x, 2) == 1
    assert memo.get(x.replace()) is None
    assert memo.get(copy.copy(x)) is None
    assert memo.get(pickle.loads(pickle.dumps(x))) is None


def freed_at_once(make) -> bool:
    """Whether the objects that ``make`` returns are freed when they are dropped, with no search for reference cycles."""
    make()  # what is made once
    put_aside()
    gc.disable()
    try:
        left = [weakref.ref(o) for o in make()]
        return all(r() is None for r in left)
    finally:
        gc.enable()


def matmul() -> tir.PrimFunc:
    A, B = (te.placeholder((32, 32), name=name) for name in "AB")
    k = te.reduce_axis((0, 32), "k")
    return te.create_prim_func([A, B, te.compute((32, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "C")])


def test_a_dropped_schedule_and_its_programs_are_freed_without_a_collection():
    def make():
        sch = tir.Schedule(matmul())
        panel, tile = sch.cache_read("C", 1, "global"), sch.cache_write("C", 0, "global")
        i, j, k = sch.get_loops("C")
        io, ii = sch.split(i, [None, 8])
        ko, ki = sch.split(k, [None, 4])
        sch.reorder(io, ko, ki, ii, j)
        sch.compute_at(panel, io)
        sch.reverse_compute_at(tile, io)
        sch.parallel(io)
        sch.vectorize(sch.get_loops(tile)[-1])
        sch.decompose_reduction("C", ko)
        assert sch.can.unroll(ii) and not sch.can.parallel(ki)
        index = sch.state.index
        realizes = [ref.node for ref in index.blocks.values()]
        assert all(ref.children == [] for ref in index.blocks.values() if ref.name != "root")
        return [
            sch,
            sch.mod,
            sch.func,
            index,
            *realizes,
            *(r.block for r in realizes),
            *(r.block.body for r in realizes),
        ]

    assert freed_at_once(make)


def test_a_dropped_default_schedule_is_freed_without_a_collection():
    def make():
        sch = tir.tune.default(matmul(), "llvm -num-cores=2")
        return [sch, sch.mod, sch.func, sch.state.index]

    assert freed_at_once(make)


def test_a_lowered_function_is_freed_without_a_collection():
    def make():
        func = matmul()
        lowered = tir.lower(func)
        return [func, func.body, lowered, *lowered.functions.values()]

    assert freed_at_once(make)


def test_a_refusal_that_became_a_value_does_not_keep_the_frames_that_it_passed():
    class Thing:
        pass

    def make():
        thing = Thing()

        def plan(held=thing):
            require(held is None, "no {0}", "thing")

        found = refusal(plan)
        assert found is not None
        return [thing, found]

    assert freed_at_once(make)


def test_effects_and_answers_that_are_their_statement_are_kept_once_and_do_not_hold_it():
    def make():
        block = tir.Schedule(matmul()).state.index.blocks["C"].block
        found = effects(block)
        assert found.effects and all(e.block is block for e in found)
        stores = [s for s in (block.body, block.init) if isinstance(s, tir.BufferStore)]
        assert stores and all(effects(s).effects[-1].node is s for s in stores)
        kept: Memo[tir.Block] = Memo()
        kept[block] = block
        assert kept.get(block) is block and kept.take(block) is block and kept.get(block) is None
        assert once(lambda node: node)(block) is block
        return [block, *stores]

    assert freed_at_once(make)
