"""Software pipelines and double buffers on a CPU: versions of buffers, results on awkward lengths, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tir
from tests.hand_schedules.gemm import gemm, schedule_gemm
from tir import BuildError
from tir.interp import run
from tir.script import parse
from tir.script import tir as T
from tir.testing import assert_roundtrip

THREE = """
@T.prim_func
def three(a: T.handle, c: T.handle):
    PARAM
    A = T.match_buffer(a, (n, 8), "float32")
    C = T.match_buffer(c, (n, 8), "float32")
    B = T.alloc_buffer((n, 8), "float32", scope="SCOPE")
    D = T.alloc_buffer((n, 8), "float32", scope="SCOPE")
    for i in T.serial(n, annotations=NOTES):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(8):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = B[vi, vj] + T.float32(1)
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = D[vi, vj] * B[vi, 7 - vj]
"""


def three(stages, orders, n: int | None, scope="global", more=None):
    notes = {"software_pipeline_stage": list(stages), "software_pipeline_order": list(orders), **(more or {})}
    size = "n = T.int32()" if n is None else ""
    text = THREE.replace("PARAM", size).replace("NOTES", repr(notes)).replace("SCOPE", scope)
    return parse(text if n is None else text.replace("(n", f"({n}"))


def check(func, n: int) -> None:
    a = np.random.default_rng(n).random((n, 8), "float32")
    expected = (a * 2 + 1) * (a * 2)[:, ::-1]
    lowered = tir.lower(func, upto="inject_software_pipeline")
    for runs in (tir.build(func), lambda *args: run(lowered, *args)):
        c = np.zeros_like(a)
        runs(a, c)
        np.testing.assert_allclose(c, expected, rtol=1e-6)


@pytest.mark.parametrize("stages", [(0, 0, 1), (0, 1, 1), (0, 1, 2), (0, 2, 2), (0, 0, 3)])
@pytest.mark.parametrize("orders", list(itertools.permutations(range(3))))
def test_every_order_gives_the_result_or_is_refused(stages, orders):
    places = list(zip(stages, orders))
    legal = places[0] < places[1] < places[2] and places[0] < places[2]
    for scope, n in (("global", 9), ("local", 2)):
        func = three(stages, orders, n, scope)
        if legal:
            check(func, n)
        else:
            with pytest.raises(BuildError, match="would run before"):
                tir.build(func)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("symbolic", [False, True])
def test_fewer_iterations_than_stages(n, symbolic):
    if n or symbolic:
        check(three((0, 1, 3), (0, 1, 2), None if symbolic else n), n)
        check(three((0, 1, 3), (2, 1, 0), None if symbolic else n, "local"), n)


def test_versions_of_buffers_are_as_many_as_are_alive():
    def sizes(orders):
        lowered = tir.lower(three((0, 1, 2), orders, 9))
        assert_roundtrip(lowered)
        text = lowered.script()
        return [f"{b} = T.allocate([{8 * k}]" in text for b, k in (("B", 3), ("D", 2))]

    assert sizes((0, 1, 2)) == [True, True]
    text = tir.lower(three((0, 1, 2), (2, 1, 0), 9)).script()
    assert "B = T.allocate([16]" in text and "D = T.allocate([8]" in text


def test_asynchronous_stages_run_where_they_stand():
    func = three((0, 0, 1), (0, 1, 2), 9, more={"software_pipeline_async_stages": [0]})
    check(func, 9)
    assert "async" not in tir.lower(func).script() and "ptx" not in tir.lower(func).script()


def test_a_double_buffer():
    @T.prim_func
    def twice(A: T.Buffer((9, 8), "float32"), C: T.Buffer((9, 8), "float32")):
        B = T.alloc_buffer((9, 8), "float32")
        for i, j in T.grid(9, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(9, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, 7 - vj]

    sch = tir.Schedule(twice)
    sch.compute_at("B", "C.i")
    sch.annotate("B", "double_buffer_scope", 0)
    assert "(i + 1) % 2 * 8" in tir.lower(sch.mod).script()
    a = np.random.rand(9, 8).astype("float32")
    c = np.zeros_like(a)
    tir.build(sch.mod)(a, c)
    np.testing.assert_allclose(c, 2 * a[:, ::-1])
    apart = tir.Schedule(twice)
    apart.annotate("B", "double_buffer_scope", 0)
    with pytest.raises(BuildError, match="no serial loop around it fills and uses it"):
        tir.lower(apart.mod)


def test_what_a_double_buffer_is_made_of_is_made_ahead_too():
    @T.prim_func
    def chain(A: T.Buffer((9, 8), "float32"), C: T.Buffer((9, 8), "float32")):
        E = T.alloc_buffer((9, 8), "float32")
        D = T.alloc_buffer((9, 8), "float32")
        B = T.alloc_buffer((9, 8), "float32")
        for i in range(9):
            for j in range(8):
                with T.block("E"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    E[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(8):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = E[vi, 7 - vj] * T.float32(3)
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = D[vi, 7 - vj] * T.float32(2)
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, 7 - vj] + D[vi, vj]

    sch = tir.Schedule(chain)
    sch.annotate("B", "double_buffer_scope", 0)
    assert '"software_pipeline_stage": [0, 0, 0, 1]' in tir.lower(sch.mod, upto="inject_double_buffer").script()
    a = np.random.rand(9, 8).astype("float32")
    c = np.zeros_like(a)
    tir.build(sch.mod)(a, c)
    np.testing.assert_allclose(c, 9 * (a + 1)[:, ::-1], rtol=1e-6)


WINDOW = """
@T.prim_func
def window(A: T.Buffer((20, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((20, 8), "float32")
    for j in range(8):
        B[0, j] = A[0, j]
    for i in T.serial(16, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": ORDER}):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi WRITTEN, vj] = A[vi + 1, vj]
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi + 1, vj] + B[vi, vj]
"""


@pytest.mark.parametrize("order", ["[0, 1]", "[1, 0]"])
def test_what_later_iterations_read_has_one_version(order):
    func = parse(WINDOW.replace("ORDER", order).replace("WRITTEN", "+ 1"))
    a, c = np.random.rand(20, 8).astype("float32"), np.zeros((16, 8), "float32")
    tir.build(func)(a, c)
    np.testing.assert_allclose(c, a[1:17] + a[:16])


def test_an_iteration_that_overtakes_one_that_needs_the_old_value_is_refused():
    same_row = parse(WINDOW.replace("ORDER", "[0, 1]").replace("WRITTEN", "* 0 + 1"))
    with pytest.raises(BuildError, match="`B` .* of the next iteration would run before `C`"):
        tir.build(same_row)


def test_loops_whose_iterations_run_at_once_have_no_pipeline():
    func = three((0, 0, 1), (0, 1, 2), 9)
    sch = tir.Schedule(func)
    with pytest.raises((BuildError, tir.ScheduleError), match="parallel"):
        sch.parallel(sch.get_loops("C")[0])
        tir.build(sch.mod)


@pytest.mark.parametrize("orders", [(0, 1), (1, 0)])
def test_panels_packed_ahead_of_a_matrix_product(orders):
    sch = schedule_gemm(tir.Schedule(gemm(24, 100, 37, 6, 32)), together=1)
    loop = sch.get_loops("multiply_update")[0]
    sch.annotate(loop, "software_pipeline_stage", [0, 1])
    sch.annotate(loop, "software_pipeline_order", list(orders))
    a, b = np.random.rand(24, 37).astype("float32"), np.random.rand(37, 100).astype("float32")
    c = np.zeros((24, 100), "float32")
    tir.build(sch.mod)(a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-5)
