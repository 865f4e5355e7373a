"""Reductions at places that data decides: vectors of results that share the places."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.tune import cost_model, space
from tir.tune.nest import extent_of

pytestmark = pytest.mark.usefixtures("rules_alone")


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs run in parallel too."""
    monkeypatch.setattr(space, "PARALLEL", 0)
    monkeypatch.setattr(cost_model, "START", 0.0)


def gathered(channels: int, layout: str, reducer=te.sum, dtype: str = "float32") -> tir.PrimFunc:
    """Sums of elements of an image at rows and columns that are loaded, some under a condition."""
    sizes = {"C": channels, "Y": 9, "X": 11}
    image = te.placeholder([sizes[a] for a in layout], dtype, name="image")
    rows, columns = te.placeholder((5, 2), "int32", name="rows"), te.placeholder((3, 2), "int32", name="columns")
    k = te.reduce_axis((0, 2), "k")

    def element(r, c, i):
        at = {"C": c, "Y": rows[r, k], "X": columns[i, k]}
        value = image(*(at[a] for a in layout))
        return reducer(te.if_then_else(columns[i, k] > 2, value, tir.expr.const(1, dtype)), axis=k)

    return te.create_prim_func([image, rows, columns, te.compute((5, channels, 3), element, name="out")])


def run(func: tir.PrimFunc, sch: tir.Schedule, dtype: str = "float32") -> None:
    rng = np.random.default_rng(0)
    shape = [int(s) for s in func.buffer_map[func.params[0]].shape]
    out = [int(s) for s in func.buffer_map[func.params[-1]].shape]
    arrays = [rng.integers(-50, 50, shape).astype(dtype), *(rng.integers(0, 9, s, "int32") for s in ((5, 2), (3, 2)))]
    results = [np.zeros(out, dtype) for _ in range(2)]
    tir.build(func, "interpreter")(*arrays, results[0])
    tir.build(sch.mod, "llvm")(*arrays, results[1])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("channels", "lanes"), [(3, 3), (4, 4), (6, 3), (8, 4), (14, 2), (7, None), (1, None)])
def test_results_that_share_the_places_are_a_vector(channels: int, lanes: int | None, cores: int):
    func = gathered(channels, "CYX")
    sch = tir.tune.default(func, f"llvm -num-cores={cores}")
    run(func, sch)
    inner = sch.get_loops("out_update" if lanes else "out")[-1]
    assert (sch.get(inner).kind == "vectorized") == (lanes is not None)
    assert lanes is None or extent_of(sch, inner) == lanes
    assert "gather" not in tir.build(sch.mod, "llvm").source("llvm")


@pytest.mark.parametrize("layout", ["YCX", "YXC"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize("reducer", [te.sum, te.max])
def test_any_layout_type_and_reduction(layout: str, dtype: str, reducer):
    func = gathered(8, layout, reducer, dtype)
    run(func, tir.tune.default(func, "llvm -num-cores=2"), dtype)


def test_an_axis_that_a_condition_depends_on_is_none():
    image, rows = te.placeholder((4, 9), name="image"), te.placeholder((5, 2), "int32", name="rows")
    k = te.reduce_axis((0, 2), "k")
    value = lambda r, c: te.sum(te.if_then_else(rows[r, k] > c, image[c, rows[r, k]], 0.0), axis=k)  # noqa: E731
    func = te.create_prim_func([image, rows, te.compute((5, 4), value, name="out")])
    sch = tir.tune.default(func, "llvm -num-cores=1")
    assert all(sch.get(loop).kind == "serial" for loop in sch.get_loops("out"))
