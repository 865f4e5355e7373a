"""One or few rows by quantized weights, whose scales and nibbles are at digits of the term: sums in vectors along the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tir
from tir import te
from tir.expr import BufferLoad, Call, FloorDiv, FloorMod
from tir.stmt import VECTORIZED, For
from tir.testing import assert_same_result
from tir.tune.rules.digits import digits
from tir.tune.rules.reductions import AHEAD, FAR, SECOND
from tir.tune.straighten import straighten
from tir.visit import walk

TARGET = "llvm -vector_width={} -num-cores={} -l2_bytes={}"


def halves(w: te.Tensor, j: Any, k: Any, group: int) -> tir.Expr:
    """Bytes of a group have its first half in the lower four bits, the other half in the upper."""
    byte = w[j, k // group * (group // 2) + k % (group // 2)]
    return ((byte >> (k % group // (group // 2) * 4).astype("uint8")) & tir.const(15, "uint8")).astype("float32") - 8.0


def neighbours(w: te.Tensor, j: Any, k: Any, group: int) -> tir.Expr:
    """Bytes have two neighbours, the first in the lower four bits."""
    return ((w[j, k // 2] >> (k % 2 * 4).astype("uint8")) & tir.const(15, "uint8")).astype("float32") - 8.0


def byte(w: te.Tensor, j: Any, k: Any, group: int) -> tir.Expr:
    return w[j, k].astype("float32")


KINDS = {"halves": (halves, 2), "neighbours": (neighbours, 2), "bytes": (byte, 1)}


def product(kind: str, rows: int, columns: int, terms: int, group: int) -> tir.PrimFunc:
    """``y[i, j]``, the sum over ``k`` of ``weight(j, k) * s[j, k // group] * x[i, k]``."""
    value, each = KINDS[kind]
    dtype = "uint8" if each == 2 else "int8"
    x, w = te.placeholder((rows, terms), name="x"), te.placeholder((columns, terms // each), dtype, name="w")
    s, k = te.placeholder((columns, terms // group), name="s"), te.reduce_axis((0, terms), "k")
    return te.create_prim_func([x, w, s, te.compute(
        (rows, columns), lambda i, j: te.sum(value(w, j, k.var, group) * s[j, k.var // group] * x[i, k], axis=k), name="y"
    )])  # fmt: skip


def numpy_product(kind: str, x: np.ndarray, w: np.ndarray, s: np.ndarray, group: int) -> np.ndarray:
    columns, terms = w.shape[0], x.shape[1]
    values = w.astype("float64")
    if kind == "neighbours":
        values = np.stack([w & 15, w >> 4], -1).reshape(columns, terms) - 8.0
    elif kind == "halves":
        packed = w.reshape(columns, -1, group // 2)
        values = np.concatenate([packed & 15, packed >> 4], -1).reshape(columns, terms) - 8.0
    return x.astype("float64") @ (values * np.repeat(s.astype("float64"), group, 1)).T


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("width", [128, 512])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_by_quantized_weights_are_right(kind: str, width: int, cores: int):
    func = product(kind, 1, 37, 192, 32)
    sch = tir.tune.default(func, TARGET.format(width, cores, 4096))
    vectors = [n for n in walk(sch.func.body) if isinstance(n, For) and n.kind == VECTORIZED]
    assert vectors, "no vectors"
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 3])
def test_random_sizes_agree_with_numpy(kind: str, rows: int):
    rng = np.random.default_rng(rows)
    for _ in range(3):
        group = 2 * int(rng.integers(1, 40))
        columns, terms = int(rng.integers(1, 40)), group * int(rng.integers(1, 6))
        run = tir.build(tir.tune.default(product(kind, rows, columns, terms, group), "llvm -num-cores=1").mod, "llvm")[
            "main"
        ]
        x, s = (rng.standard_normal(n).astype("float32") for n in ((rows, terms), (columns, terms // group)))
        kept = "int8" if kind == "bytes" else "uint8"
        ends = np.iinfo(kept)
        w = rng.integers(ends.min, ends.max, (columns, terms // KINDS[kind][1]), kept, endpoint=True)
        y = np.empty((rows, columns), "float32")
        run(x, w, s, y)
        wanted = numpy_product(kind, x, w, s, group)
        np.testing.assert_allclose(y, wanted, atol=1e-4 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("kind", KINDS)
def test_digits_of_terms_are_iterators_and_what_results_share_lies_along_the_weights(kind: str):
    sch = tir.Schedule(product(kind, 1, 16, 128, 32))
    (sch,) = digits(sch, "y", tir.tune.Env.of("llvm"))
    nest = tir.tune.Nest.of(sch, "y")
    assert nest is not None and len(nest.reduce) >= 2
    nest = straighten(sch, nest, 16)
    assert not [n for a in nest.loads for i in a.indices for n in walk(i) if isinstance(n, (FloorDiv, FloorMod))]
    assert any(all(a.stride(axis.var) in (0, 1) for a in nest.loads) for axis in nest.reduce if axis.size >= 16)


def test_rows_beyond_the_cache_are_read_one_after_the_other():
    x, w, k = te.placeholder((1, 64), name="x"), te.placeholder((64, 64), name="w"), te.reduce_axis((0, 64), "k")
    func = te.create_prim_func([x, w, te.compute((1, 64), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="y")])
    tiles = {}
    for cache in (1 << 12, 1 << 20):
        sch = tir.tune.default(func, TARGET.format(128, 1, cache))
        assert_same_result(func, sch.mod, engines=("llvm",))
        tiles[cache] = [int(sch.get(loop).extent) for loop in sch.get_loops("y")]
    assert 64 in tiles[1 << 12] and 64 not in tiles[1 << 20], "in the cache, several rows share what is read of x"


@pytest.mark.parametrize(
    ("kind", "bytes_of_a_step", "how"),
    [("bytes", 32, (FAR, SECOND)), ("halves", 16, (AHEAD, 3)), ("neighbours", 16, (AHEAD, 3))],
)
def test_narrow_weights_beyond_the_cache_are_requested_ahead(kind: str, bytes_of_a_step: int, how: tuple[int, int]):
    func = product(kind, 1, 64, 256, 32)
    for cache, wanted in ((1 << 12, 1), (1 << 20, 0)):
        sch = tir.tune.default(func, TARGET.format(128, 1, cache))
        requests = [n for n in walk(sch.func.body) if isinstance(n, Call) and n.op == "prefetch"]
        assert len(requests) == wanted
        for request in requests:
            (load,) = (n for n in walk(request.args[0]) if isinstance(n, BufferLoad))
            assert load.buffer.name == "w"
            base, ahead = load.indices[-1].a, load.indices[-1].b
            assert base.b.value == bytes_of_a_step and (ahead.value, request.args[2].value) == how
        assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


def test_numbers_as_wide_as_their_sums_are_not_requested():
    x, w, k = te.placeholder((1, 64), name="x"), te.placeholder((64, 64), name="w"), te.reduce_axis((0, 64), "k")
    func = te.create_prim_func([x, w, te.compute((1, 64), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="y")])
    assert "prefetch" not in tir.tune.default(func, TARGET.format(128, 1, 1 << 12)).mod.script()
