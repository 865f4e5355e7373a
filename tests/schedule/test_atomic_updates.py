"""Atomic updates (``T.atomic_add``): in which order they run, or whether at once, does not matter where nothing uses the old value."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import on_simulator, refused, same, schedule

import tir

HISTOGRAM = """
@T.prim_func
def main(A: T.Buffer((100,), "int32"), H: T.Buffer((4,), "int32"), O: T.Buffer((100,), "int32")):
    for i in range(100):
        with T.block("count"):
            vi = T.axis.spatial(100, i)
            {statement}
"""
PLACES = "T.address_of(H[A[vi]])", 'H.access_ptr("rw", offset=A[vi])', "H.data"


def histogram(place: str = PLACES[0], value: str = "1", form: str = "T.evaluate({})") -> tir.Schedule:
    return schedule(HISTOGRAM.format(statement=form.format(f'T.atomic_add({place}, {value}, dtype="int32")')))


@pytest.mark.parametrize("place", PLACES)
def test_iterations_may_run_in_any_order_and_at_once(place):
    sch = histogram(place)
    outer, inner = sch.split("i", [None, 8])
    sch.reorder(inner, outer)
    sch.parallel(inner)
    same(sch)
    args = [np.arange(100, dtype="int32") % 4, np.zeros(4, "int32"), np.zeros(100, "int32")]
    tir.build(sch.mod, "llvm")(*args)
    assert args[1].tolist() == ([100, 0, 0, 0] if place == PLACES[2] else [25] * 4)


def test_threads_of_a_gpu_count_in_one_histogram():
    sch = histogram()
    outer, inner = sch.split("i", [None, 32])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    on_simulator(sch)


@pytest.mark.parametrize(
    "options",
    [{"form": "O[vi] = {}"}, {"form": "x: T.int32 = {}\n            O[vi] = x"}, {"value": "H[0]"}],
    ids=["stored", "named", "added"],
)
def test_an_update_whose_order_shows_stays_in_order(options):
    sch = histogram(**options)
    refused(lambda: sch.parallel("i"), "count at (i=1)", "H[0]")
    outer, inner = sch.split("i", [10, 10])
    refused(lambda: sch.reorder(inner, outer), "count at", "H[0]")


def test_a_load_beside_updates_stays_between_them():
    sch = schedule(
        HISTOGRAM.format(statement="O[vi] = H[0]\n            T.evaluate(T.atomic_add(T.address_of(H[0]), A[vi]))")
    )
    refused(lambda: sch.parallel("i"), "reads H[0]")


def test_an_update_of_an_own_element_may_give_its_old_value():
    sch = histogram("T.address_of(H[vi // 25])", form="O[vi] = {}")
    outer, _ = sch.split("i", [4, 25])
    sch.parallel(outer)
    same(sch)


def test_updates_are_not_repeated():
    text = HISTOGRAM.format(statement="T.evaluate(T.atomic_add(T.address_of(H[A[vi]]), 1))")
    sch = schedule(text + '    for j in range(4):\n        with T.block("use"):\n            O[j] = H[j]\n')
    refused(lambda: sch.compute_at("count", "j"), "more than once")
