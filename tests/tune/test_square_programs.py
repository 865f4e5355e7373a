"""Defaults of programs whose axes are equally long: what a rule may fuse is decided by accesses, not by extents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tir
from tir import te
from tir.cost.footprint import operations
from tir.testing import assert_same_result
from tir.tune import space
from tir.tune.space import Env, rule

N = 40
TARGET = "llvm -vector_width=64 -num-cores=1"


def summed(n: int, index: Callable[..., tuple]) -> tuple[te.Tensor, te.Tensor]:
    x, k = te.placeholder((n, n), name="X"), te.reduce_axis((0, n), "k")
    return x, te.compute((n,), lambda j: te.sum(x[index(j, k)], axis=k), name="S")


def column_sums(n: int) -> tir.PrimFunc:
    x, s = summed(n, lambda j, k: (k, j))
    return te.create_prim_func([x, te.compute((n, n), lambda i, j: x[i, j] - s[j], name="Y")])


def both_norms(n: int) -> tir.PrimFunc:
    x, s = summed(n, lambda j, k: (j, k))
    return te.create_prim_func([x, te.compute((n, n), lambda i, j: x[i, j] / te.sqrt(s[i] * s[j]), name="Y")])


def middle_sums(n: int) -> tir.PrimFunc:
    x, k = te.placeholder((4, n, n), name="X"), te.reduce_axis((0, n), "k")
    s = te.compute((4, n), lambda b, j: te.sum(x[b, k, j], axis=k), name="S")
    return te.create_prim_func([x, te.compute((4, n, n), lambda b, i, j: x[b, i, j] - s[b, j], name="Y")])


def reversed_rows(n: int) -> tir.PrimFunc:
    x, s = summed(n, lambda j, k: (j, k))
    return te.create_prim_func([x, te.compute((n, n), lambda i, j: x[i, j] - s[n - 1 - i], name="Y")])


def mirrored(index: Callable[[int, te.Tensor], Callable]) -> Callable[[int], tir.PrimFunc]:
    def program(n: int) -> tir.PrimFunc:
        x = te.placeholder((n, n), name="X")
        e = te.compute((n, n), lambda i, j: te.exp(x[i, j]), name="S")
        return te.create_prim_func([x, te.compute((n, n), index(n, e), name="Y")])

    return program


PROGRAMS = {
    "column sums": column_sums,
    "both norms": both_norms,
    "middle sums": middle_sums,
    "reversed rows": reversed_rows,
    "transposed": mirrored(lambda n, e: lambda i, j: e[i, j] + e[j, i]),
    "upside down": mirrored(lambda n, e: lambda i, j: e[i, j] + e[n - 1 - i, j]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_stage_is_computed_once(name: str):
    program = PROGRAMS[name](N)
    sch = tir.tune.default(program, TARGET)
    assert operations(sch) <= 1.5 * operations(tir.Schedule(program))
    assert_same_result(program, sch.mod, rtol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gpu_computes_the_same(name: str):
    program = PROGRAMS[name](8)
    assert_same_result(program, tir.tune.default(program, "cuda-sim").mod, engines=("cuda-sim",), rtol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_model_does_not_prefer_the_plain_program(name: str):
    env, program = Env.of(TARGET), PROGRAMS[name](512)
    default, plain = (tir.tune.predict(p, env) for p in (tir.tune.default(program, TARGET), program))
    assert default is not None and plain is not None and default.seconds < plain.seconds


def rows_by(index: Callable[..., tuple], shape: tuple[int, ...]) -> tir.PrimFunc:
    x, k = te.placeholder((N, N), name="X"), te.reduce_axis((0, N), "k")
    s = te.compute(shape, lambda j, *_: te.sum(x[j, k], axis=k), name="S")
    return te.create_prim_func([x, te.compute((N, N), lambda i, j: x[i, j] - s[index(i)], name="Y")])


@pytest.mark.parametrize(
    "program", [rows_by(lambda i: (i,), (N,)), rows_by(lambda i: (i, 0), (N, 1))], ids=["vector", "kept axis"]
)
def test_rows_are_fused_where_each_row_needs_its_own_sums(program: tir.PrimFunc):
    sch = tir.tune.default(program, TARGET)
    assert sch.get_loops("S")[0] == sch.get_loops("Y")[0]
    assert_same_result(program, sch.mod, rtol=1e-4)


def test_a_fusion_that_the_model_expects_to_lose_is_left_out():
    @rule(targets=("llvm",), order=1)
    def fuse_at_any_price(sch: tir.Schedule, block: str, env: Env) -> list[tir.Schedule]:
        made = sch.copy()
        if block == "Y":
            made.compute_at("S", made.get_loops("Y")[0])
        return [made] if block == "Y" else []

    try:
        sch = tir.tune.default(column_sums(512), TARGET)
    finally:
        space.remove("fuse_at_any_price")
    assert len(sch.get_child_blocks("root")) == len(tir.tune.default(column_sums(512), TARGET).get_child_blocks("root"))
    assert not set(sch.get_loops("S")) & set(sch.get_loops("Y"))


def test_the_plain_program_is_a_candidate():
    @rule(targets=("llvm",), order=1)
    def backwards(sch: tir.Schedule, block: str, env: Env) -> list[tir.Schedule]:
        loops = sch.get_loops(block)
        made = sch.copy()
        made.reorder(*reversed(loops))
        made.unroll(made.split(loops[0], [None, 2])[1])
        return [made] if len(loops) == 2 else []

    x = te.placeholder((2048, 2048), name="X")
    program = te.create_prim_func([x, te.compute((2048, 2048), lambda i, j: x[i, j] + 1.0, name="Y")])
    try:
        sch = tir.tune.default(program, TARGET)
    finally:
        space.remove("backwards")
    assert [loop.name for loop in sch.get_loops("Y")][0] != "j"
    times = [tir.tune.predict(p, Env.of(TARGET)) for p in (sch, program)]
    assert all(times) and times[0].seconds <= times[1].seconds


@pytest.mark.parametrize("size", [5, 7])
def test_sums_over_a_window_stay_in_registers(size: int):
    x, k = te.placeholder((4096,), name="X"), te.reduce_axis((0, size), "k")
    program = te.create_prim_func([x, te.compute((4097 - size,), lambda i: te.sum(x[i + k], axis=k), name="Y")])
    sch = tir.tune.default(program, TARGET)
    assert any(b.scope == "local" for b in sch.func.body.block.alloc_buffers)
    assert_same_result(program, sch.mod, rtol=1e-4)
