"""Pictures of accesses, of banks and of shared memory: what they show is what the executor and the simulator do."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import tir
from tir.notebook.element_accesses import points_of
from tir.script import tir as T
from tir.stmt import For
from tir.visit import rewrite

sys.path.insert(0, str(Path(__file__).parents[2] / "docs/examples/gpu"))


@T.prim_func
def shifted(A: T.Buffer((7, 9), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + A[vi + 1, 8 - vj]


def plain(sch):
    return "i"


def tails(sch):
    i, _ = sch.get_loops("B")
    sch.split(i, [None, 4], names=["io", "ii"])
    return "ii"


def fused(sch):
    sch.fuse("i", "j", name="f")
    sch.split("f", [None, 10], names=["fo", "fi"])
    return "fi"


def laid_out(sch):
    sch.transform_layout("B", ("read", 0), lambda i, j: (j, i))
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, j % 4))
    sch.reorder("j", "i")
    return "j"


def only(func, values):
    """The function with these loops held at one iteration."""

    def held(n):
        if isinstance(n, For) and n.loop_var.name in values:
            return n.replace(min=tir.const(values[n.loop_var.name]), extent=tir.const(1))
        return None

    return func.with_body(rewrite(func.body, held))


def executed(func, shapes, name):
    """The elements of ``A`` read or of ``B`` written when the executor runs ``func``: a NaN in one of those read reaches
    the result, and those written are NaN no more."""
    run = tir.build(func, target="interpreter")

    def result(a):
        b = np.full(shapes["B"], np.inf, "float32")
        run(a, b)
        return b

    if name == "B":
        return {tuple(map(int, e)) for e in np.argwhere(np.isfinite(result(np.ones(shapes["A"], "float32"))))}
    found = set()
    for element in np.ndindex(*shapes["A"]):
        a = np.ones(shapes["A"], "float32")
        a[element] = np.nan
        if np.isnan(result(a)).any():
            found.add(element)
    return found


@pytest.mark.parametrize("schedule", [plain, tails, fused, laid_out])
def test_a_picture_has_the_elements_that_the_executor_touches(schedule):
    sch = tir.Schedule(shifted)
    loop = schedule(sch)
    shapes = {b.name: tuple(map(int, b.shape)) for b in sch.func.buffer_map.values()}
    for name in ("A", "B"):
        picture = sch.access_picture(name, loop)
        assert picture.shape == shapes[name]
        for iteration in range(len(picture.touched)):
            program = only(sch.func, {**picture.at, loop: iteration})
            assert set(picture.elements(iteration)) == executed(program, shapes, name), (name, iteration)


def test_loops_around_stand_where_they_are_told_to():
    sch = tir.Schedule(shifted)
    picture = sch.access_picture("B", "j", at={"i": 3})
    assert picture.elements(2) == [(3, 2)] and picture.at == {"i": 3}
    assert sch.access_picture("B", "j").elements(2) == [(0, 2)]
    with pytest.raises(tir.ScheduleError, match="no loop k around `j`; around it are i"):
        sch.access_picture("B", "j", at={"k": 3})
    with pytest.raises(tir.ScheduleError, match="no access to a buffer `C`; there are A, B"):
        sch.access_picture("C")


def test_a_layout_change_shows_before_and_after():
    sch = tir.Schedule(shifted)
    sch.transform_layout("B", ("write", 0), lambda i, j: (j, i))
    before, after = sch.access_picture("B", "j", step=-2), sch.access_picture("B", "j")
    assert before.shape == (6, 8) and after.shape == (8, 6)
    assert before.elements(3) == [(0, 3)] and after.elements(3) == [(3, 0)]
    both = before.beside(after)
    assert repr(both) == f"{before!r}\n\n{after!r}"
    figures = list(ElementTree.fromstring(f"<div>{both._repr_html_()}</div>").iter("{http://www.w3.org/2000/svg}svg"))
    assert len(figures) == 2


def test_cells_of_a_figure_are_the_elements():
    picture = tir.Schedule(shifted).access_picture("B", "i")
    titles = [t.text for t in ElementTree.fromstring(picture.svg()).iter("{http://www.w3.org/2000/svg}title")]
    assert [t for t in titles if t and t.startswith("B[")] == [f"B[{i}, 0] to B[{i}, 7]: i = {i}" for i in range(6)]
    assert str(picture).splitlines()[1:7] == [str(i) * 8 for i in range(6)]
    assert "prefers-color-scheme:dark" in picture.svg() and "--md-typeset-color" in picture.svg()


def test_cache_lines_are_counted_by_the_layout():
    @T.prim_func
    def columns(A: T.Buffer((32, 16), "float32"), B: T.Buffer((16, 32), "float32")):
        for j, i in T.grid(16, 32):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                B[vj, vi] = A[vi, vj]

    sch = tir.Schedule(columns)
    assert sch.access_picture("A", "j").lines == (32,) * 16
    sch.transform_layout("B", ("read", 0), lambda i, j: (j, i))
    assert sch.access_picture("A", "j").lines == (2,) * 16


def test_large_buffers_are_drawn_in_cells_of_several_elements():
    @T.prim_func
    def copy(A: T.Buffer((300, 200), "int8"), B: T.Buffer((300, 200), "int8")):
        for i, j in T.grid(300, 200):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    picture = tir.Schedule(copy).access_picture("A", "i")
    assert "a cell is 19 x 4 elements" in str(picture) and "a cell is 5 x 4 elements" in picture.svg()
    assert len(picture._first()[0]) == 60000


def test_an_access_is_looked_at_in_so_many_iterations_and_no_more(monkeypatch):
    monkeypatch.setattr("tir.notebook.element_accesses.MOST", 48)
    assert len(tir.Schedule(shifted).access_picture("B", "i").elements(5)) == 8
    monkeypatch.setattr("tir.notebook.element_accesses.MOST", 47)
    with pytest.raises(ValueError, match="`B` is accessed in 48 iterations, more than the 47 that are looked at"):
        tir.Schedule(shifted).access_picture("B", "i")


def test_what_is_not_known_before_the_run_is_an_error():
    @T.prim_func
    def gather(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[I[vi]]

    sch = tir.Schedule(gather)
    with pytest.raises(ValueError, match="which elements it touches shows when it runs"):
        sch.access_picture("A", "i")
    assert sch.access_picture("I", "i").elements(5) == [(5,)]


def gpu_schedules():
    import sgemm
    import transpose

    yield transpose.scheduled(64, 96, padded=False)[1], (64, 96)
    yield transpose.scheduled(64, 96)[1], (64, 96)
    yield transpose.scheduled(64, 96, swizzled=True)[1], (64, 96)
    yield sgemm.small()[1], None


@pytest.mark.parametrize("number", range(4))
def test_bank_conflicts_are_those_that_the_simulator_counts(number):
    sch = list(gpu_schedules())[number][0]
    module = tir.build(sch.mod, "cuda-sim")
    arrays = [np.ones(tuple(map(int, b.shape)), str(b.dtype)) for b in sch.func.buffer_map.values()]
    module(*arrays)
    report = module.report[0]
    blocks = int(np.prod(report.grid))
    counted = {}
    for t in report.accesses:
        if t.scope == "shared":
            key = (t.site.buffer, t.site.what)
            counted[key] = counted.get(key, np.zeros(3, int)) + [t.requests, t.passes, t.ideal]
    shown = {}
    for buffer in {name for name, _ in counted}:
        for access in sch.access_picture(buffer).banks:
            key = (buffer, access.what)
            figures = np.array([access.requests, access.passes, access.ideal])
            shown[key] = shown.get(key, np.zeros(3, int)) + blocks * figures
    assert counted and {k: list(v) for k, v in shown.items()} == {k: list(v) for k, v in counted.items()}


def test_a_conflict_shows_as_one_column_of_banks():
    import transpose

    worst = transpose.scheduled(64, 96, padded=False)[1].access_picture("A_shared").banks[1]
    assert worst.conflicts == 992 and len({a // 4 % 32 for a in worst.worst}) == 1
    padded = transpose.scheduled(64, 96)[1].access_picture("A_shared")
    assert padded.banks[1].conflicts == 0 and len({a // 4 % 32 for a in padded.banks[1].worst}) == 32
    assert (
        ElementTree.fromstring(f"<div>{padded._repr_html_()}</div>") is not None and "bank 31" in padded._repr_html_()
    )


def test_the_plan_of_shared_memory_is_drawn():
    import sgemm

    plan = sgemm.small()[1].shared_memory_plan()
    assert len(plan) >= 2 and all(b.name in repr(plan) for b in plan)
    drawn = ElementTree.fromstring(plan.svg())
    titles = [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert [t for t in titles if t] == [
        f"{b.name}: {b.bytes} B at {b.offset}, statements {b.first} to {b.last}" for b in plan
    ]
    assert repr(tir.Schedule(shifted).shared_memory_plan()) == "no shared memory"


def test_points_follow_loops_whose_extent_depends_on_others():
    @T.prim_func
    def triangle(A: T.Buffer((5, 5), "float32")):
        for i in range(5):
            for j in range(i, 5):
                A[i, j] = T.float32(0)

    from tir.analysis.effects import effects

    (store,) = [e for e in effects(triangle.body) if e.write]
    points = points_of(store, {})
    assert list(zip(*(map(int, i) for i in points.indices))) == [(i, j) for i in range(5) for j in range(i, 5)]
