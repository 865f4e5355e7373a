"""One row by quantized weights in panels of columns: what is requested ahead, what stays in four bits, what the model expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tir
from tir import te
from tir.expr import BufferLoad, Call
from tir.graph import Builder, groups, optimized, quantize
from tir.graph.kernels import group_functions
from tir.schedule.constants import at_each_call
from tir.stmt import UNROLLED, For
from tir.testing import assert_same_result
from tir.tune import Env
from tir.tune.rules.reductions import AHEAD, reductions
from tir.visit import walk

SMALL = "llvm -vector_width=512 -num-cores=1 -l1_bytes=4096 -l2_bytes=8192"
AVX512 = "llvm -mcpu=skylake-avx512 -num-cores=1"


def quantized(dtype: str, rows: int = 256, columns: int = 320) -> tir.PrimFunc:
    """The function of one row by a matrix of ``quantize``."""
    b = Builder()
    w = np.random.default_rng(0).standard_normal((rows, columns)).astype("float32")
    graph = b.graph(b.call("matmul", b.input("x", (1, rows)), b.constant(w, "w")))
    graph = optimized(quantize(graph, dtype))
    (func,) = group_functions(groups(graph), graph.constants).values()
    return func


def requests(func: tir.PrimFunc) -> list[Any]:
    return [n for n in walk(func.body) if isinstance(n, Call) and n.op == "prefetch"]


@pytest.mark.parametrize("dtype", ["int4", "int8"])
def test_panels_beyond_the_cache_are_requested_ahead(dtype: str):
    func = quantized(dtype)
    for target, wanted in ((SMALL, 1), (SMALL.replace("8192", "1048576"), 0)):
        sch = tir.tune.default(func, target)
        assert len(requests(sch.func)) == wanted
        for request in requests(sch.func):
            (load,) = (n for n in walk(request.args[0]) if isinstance(n, BufferLoad))
            assert load.indices[1].b.value == AHEAD // 64, "rows of 64 bytes"
        assert_same_result(func, sch.mod, engines=("interpreter", "llvm"))


def test_halves_of_a_byte_are_straight_code_in_any_case_beyond_the_cache():
    sch = tir.tune.default(quantized("int4"), SMALL)
    halves = [n for n in walk(sch.func.body) if isinstance(n, For) and n.kind == UNROLLED and n.extent.value == 2]
    assert halves, "the shift of each is a constant there"


def of_bits(bits: int) -> tir.PrimFunc:
    """A row by columns of numbers of a few bits, which lie side by side in bytes."""
    each = 8 // bits
    x, w = te.placeholder((256, each), name="x"), te.placeholder((256, 64), "uint8", name="w")
    r, part = te.reduce_axis((0, 256), "r"), te.reduce_axis((0, each), "part")

    def term(j: Any) -> Any:
        bits_of_it = (w[r, j] >> (part.var * bits).astype("uint8")) & tir.const((1 << bits) - 1, "uint8")
        return bits_of_it.astype("float32") * x[r, part]

    return te.create_prim_func([x, w, te.compute((64,), lambda j: te.sum(term(j), axis=[r, part]), name="y")])


def of_windows() -> tir.PrimFunc:
    x, k = te.placeholder((16447,), "uint8", name="x"), te.reduce_axis((0, 64), "k")
    return te.create_prim_func(
        [x, te.compute((16384,), lambda i: te.sum(x[i + k.var].astype("float32"), axis=k), name="y")]
    )


def scaled(dtype: str) -> tir.PrimFunc:
    w, s = te.placeholder((16, 32, 64), dtype, name="w"), te.placeholder((16, 64), name="s")
    g, r = te.reduce_axis((0, 16), "g"), te.reduce_axis((0, 32), "r")
    return te.create_prim_func(
        [w, s, te.compute((64,), lambda j: te.sum(w[g, r, j].astype("float32") * s[g, j], axis=[g, r]), name="y")]
    )


@pytest.mark.parametrize(
    ("func", "wanted"),
    [(of_bits(4), 1), (of_bits(2), 1), (of_bits(1), 0), (of_windows(), 0), (scaled("int8"), 1), (scaled("float32"), 0)],
)
def test_what_is_narrow_and_in_panels_of_few_parts_is_requested(func: tir.PrimFunc, wanted: int):
    (sch,) = reductions(tir.Schedule(func), "y", Env.of(SMALL))
    assert len(requests(sch.func)) == wanted
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_weights_of_four_bits_stay_four_bits():
    kept = at_each_call(tir.tune.default(quantized("int4", 1024, 1024), AVX512).func)
    (weights,) = (b for b in kept.buffers() if b.dtype == "uint8")
    assert [int(s) for s in weights.shape] == [16, 512, 64]
