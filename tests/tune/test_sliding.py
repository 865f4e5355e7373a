"""Sums over long windows: what windows share is summed once, and the results are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.tune.rules.sliding import with_shared_sums

SERIAL, NARROW = "llvm -num-cores=1 -vector_width=512", "llvm -num-cores=2 -vector_width=128"


def moving(size: int, terms: int, rows: int | None = None, step: int = 1, scaled: bool = True):
    shape = (size + step * (terms - 1),) if rows is None else (rows, size + step * (terms - 1))
    x, k = te.placeholder(shape, name="x"), te.reduce_axis((0, terms), "k")
    out = (size,) if rows is None else (rows, size)
    made = te.compute(out, lambda *i: te.sum(x[(*i[:-1], i[-1] + step * k)], axis=k), name="sums")
    return te.create_prim_func([x, te.compute(out, lambda *i: made[i] * (1 / terms), name="mean") if scaled else made])


def shares(func: tir.PrimFunc, target: str = SERIAL) -> bool:
    return "share_window" in str(tir.tune.default(func, target).trace)


@pytest.mark.parametrize("target", [SERIAL, NARROW])
@pytest.mark.parametrize(
    ("size", "terms", "rows", "step", "scaled"),
    [(1000, 31, None, 1, True), (2600, 100, None, 1, False), (530, 9, 3, 2, True), (1024, 16, 2, 1, False)],
)
def test_windows_are_summed_rightly(target: str, size: int, terms: int, rows: int | None, step: int, scaled: bool):
    func = moving(size, terms, rows, step, scaled)
    plain = tir.Schedule(func)
    sch = with_shared_sums(plain, tir.tune.Nest.of(plain, "sums"), tir.tune.Env.of(target))
    shape = (size + step * (terms - 1),) if rows is None else (rows, size + step * (terms - 1))
    x = np.random.default_rng(0).random(shape, "float32")
    out = np.zeros((size,) if rows is None else (rows, size), "float32")
    tir.build(sch.mod, target)["main"](x, out)
    wide = x.astype("float64")
    wanted = sum(wide[..., step * k : step * k + size] for k in range(terms)) / (terms if scaled else 1)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


def test_only_long_windows_along_the_vectors_share_sums():
    assert shares(moving(1 << 16, 31))
    assert not shares(moving(1 << 16, 5))
    assert not shares(moving(128, 31))
    x, k = te.placeholder((96, 1024), name="x"), te.reduce_axis((0, 31), "k")
    down = te.compute((66, 1024), lambda i, j: te.sum(x[i + k, j], axis=k), name="sums")
    assert not shares(te.create_prim_func([x, down]))


def test_the_largest_sums_are_not_kept():
    text = tir.tune.default(moving(1 << 16, 31), SERIAL).mod.script()
    assert "sums_8[" in text and "sums_16" not in text
